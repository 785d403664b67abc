"""Joints as unit screws (docs/mathematics.md §1 and §7), gears and rotors (§8)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from math import inf, isfinite, sin, sqrt
from typing import Any, TypedDict, Unpack

import numpy as np

from screwdyn.core import JointError, ScrewdynError, ShapeError, expressions
from screwdyn.core.types import NAME, Array, ArrayLike, given_fields, is_name, spelled_out
from screwdyn.mechanism.chart import Chart, check_lengths
from screwdyn.mechanism.inertia import Inertia
from screwdyn.mechanism.plausible import check_limits
from screwdyn.screws.screw import LENGTH_TOLERANCE, Ad, cross, entries, frame_along, screw_from_axis, screw_motion
from screwdyn.screws.screw import pitch as pitch_of
from screwdyn.screws.screw_system import vanishes

# Tolerance for |w|^2 or |v|^2 of a unit screw; a screw within rounding of unit length is not normalised.
_UNIT, _ROUNDING = 1e-8, 1e-15
# Relative remainder below which a screw counts as a linear combination of others.
_DEPENDENT = 1e-12
# Least singular value of unit screws that need no closer look.
_CLEARLY_INDEPENDENT = 1e-3
NO_SCREWS = np.zeros((6, 0))
NO_SCREWS.setflags(write=False)


def screw(axis: str | ArrayLike, at: ArrayLike, pitch: float) -> Array:
    """The unit screw of a pitch about an axis through a point, (6,); JointError for a wrong axis or point."""
    try:
        S = screw_from_axis(axis, origin(at), pitch)
    except ScrewdynError as wrong:
        raise JointError(str(wrong)) from None
    if S.shape != (6,):
        raise JointError(f"a joint has one axis; got {axis!r}")
    return S


def unit_screws(value: ArrayLike | None) -> Array:
    """Read-only copies of screws, (6, k), normalised if their length does not depend on symbols."""
    if value is None:
        return NO_SCREWS
    screws: Array = expressions.read(value, "a joint's screw", "be six numbers", JointError)
    if screws.shape == (6,):
        screws = screws[:, None]
    if screws.ndim != 2 or len(screws) != 6 or screws.shape[1] > 6:
        raise JointError(f"a joint's screws must have shape (6,) or (6, k), as [w; v]; got {screws.shape}")
    for S in screws.T:
        length = _length(S.tolist())
        if length != 1:
            S /= length
    screws.setflags(write=False)
    return screws


def _length(S: list[Any]) -> float:
    """The length of a screw, 1 within rounding; JointError if it is not a unit screw within the tolerance."""
    if not all(isfinite(x) for x in S if expressions.is_number(x)):
        raise JointError(f"a joint's screw has entries that are not finite: {S}; its axis must not have length 0")
    part = S[:3] if any(S[:3]) else S[3:]
    if not all(map(expressions.is_number, part)):
        return 1
    square = sum(x * x for x in part)
    if abs(square - 1) > _UNIT:
        raise JointError(
            f"a joint's screw must be a unit screw, |w| = 1, or w = 0 and |v| = 1; got {S}; "
            "scale it with screwdyn.screw.unit, or use revolute, prismatic or helical"
        )
    return 1 if abs(square - 1) <= _ROUNDING else sqrt(square)


def check_independent(screws: Array) -> None:
    """JointError for screws that are dependent at the home pose and elsewhere, unlike rotations about z, x and z."""
    if screws.dtype != np.float64 or np.linalg.svd(screws, compute_uv=False)[-1] > _CLEARLY_INDEPENDENT:
        return
    twists = twists_at(screws, np.linspace(1.0, 2.0, screws.shape[1]))
    twists /= np.linalg.norm(twists, axis=0)
    for k in range(1, screws.shape[1]):
        factors, *_ = np.linalg.lstsq(twists[:, :k], twists[:, k], rcond=None)
        if np.linalg.norm(twists[:, k] - twists[:, :k] @ factors) < _DEPENDENT:
            others = " and ".join(str(screws[:, i].tolist()) for i in np.flatnonzero(abs(factors) > _DEPENDENT))
            raise JointError(
                f"the screw {screws[:, k].tolist()} of a joint adds no freedom to {others}: they are linearly "
                "dependent in every configuration; leave one out"
            )


def twists_at(screws: Array, q: Array) -> Array:
    """S, (6, k): the twist of the link relative to its parent is S ν at angles and shifts q of screws in a row."""
    twists = np.array(screws)
    for k in range(screws.shape[1]):
        for S, x in zip(screws.T[k + 1 :], q[k + 1 :], strict=True):
            twists[:, k] = Ad(screw_motion(S, -x)) @ twists[:, k]
    return twists


def screw_kind(S: Array) -> str:
    """The kind of a joint of one screw."""
    h = pitch_of(S).item()
    if not expressions.is_number(h):
        return "helical"
    return "prismatic" if h == inf else "revolute" if abs(h) < 1e-12 else "helical"


def meet(S: Array, Z: Array) -> bool:
    """Whether the axes of two screws of pitch 0 are coplanar: their reciprocal product is zero."""
    return vanishes(S[:3] @ Z[3:] + S[3:] @ Z[:3])


def parallel(S: Array, Z: Array) -> bool:
    """Whether a screw that turns is parallel to another one."""
    return all(map(vanishes, cross(S[:3], Z[:3] if Z[:3].any() else Z[3:])))


def origin(at: ArrayLike) -> Array:
    """A point, (3,); 0 is the origin. JointError unless it is three finite numbers."""
    try:
        r = entries((0, 0, 0) if isinstance(at, int | float) and at == 0 else at, (3,), "point")
    except ScrewdynError as wrong:
        raise JointError(str(wrong)) from None
    if r.shape != (3,) or not expressions.is_finite(r):
        raise JointError(f"a joint's point must be three finite numbers; got {at!r}")
    return r


def number(what: str, value: float, least: float = -inf) -> Any:
    """A finite number or an expression; JointError for anything else, or for a number below the least one."""
    x = expressions.read(value, what, "be a number", JointError, expressions.number)
    if expressions.is_number(x) and (not isfinite(x) or float(x) < least):
        raise JointError(f"{what} must be a finite number{f' >= {least:g}' if isfinite(least) else ''}; got {value!r}")
    return x


def interval(limits: Sequence[float] | None) -> tuple[float, float] | None:
    """Lower and upper limit; JointError unless they are two numbers in order."""
    if limits is None:
        return None
    try:
        low, high = map(float, expressions.real(limits))
    except (TypeError, ValueError):
        raise JointError(f"limits must be two numbers (lower, upper); got {limits!r}") from None
    if not (low <= high and low < inf and high > -inf):
        raise JointError(f"limits must be (lower, upper) with lower <= upper, within reach; got {limits!r}")
    return low, high


def magnitude(what: str, value: float | None) -> float | None:
    """A limit of a magnitude, None if there is none or if it is infinite; JointError unless it is a number >= 0."""
    if value is None:
        return None
    x = float(expressions.read_or_nan(value, lambda given: float(expressions.number(given))))
    if not x >= 0:
        raise JointError(f"{what} must be a number >= 0, or None for no limit; got {value!r}")
    return None if x == inf else x


@dataclass(frozen=True)
class Mimic(expressions.Parametric):
    """The position of a joint as a function of another joint's: q = ratio · q_joint + offset (docs/mathematics.md §8).

    A joint that follows another one has no freedom of its own: it adds no coordinate to the tree.

    Parameters
    ----------
    joint : str
        Name of the joint that it follows, which has one freedom, or follows another joint itself.
    ratio : float
        q̇ / q̇_joint, in units of both, such as rad/rad or m/rad. It and the offset may be SymPy expressions.
    offset : float
        Position at q_joint = 0, rad or m.

    Raises
    ------
    JointError
        If the name is empty, or a number is not finite.
    """

    joint: str
    ratio: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.joint, str) or not self.joint:
            raise JointError(f"mimic must name the joint that is followed; got {self.joint!r}")
        for what in ("ratio", "offset"):
            object.__setattr__(self, what, number(f"the {what} of a mimic joint", getattr(self, what)))

    def prefixed(self, prefix: str) -> Mimic:
        """The same with a prefix before the name of the other joint."""
        return replace(self, joint=prefix + self.joint)


@dataclass(frozen=True, eq=False)
class Rotor(expressions.Parametric):
    """The rotor of a joint's motor: a solid of revolution that turns by ratio · q about its axis in its carrier.

    It becomes a link ``<joint>_rotor`` whose joint follows the motor's joint (:class:`Mimic`); its frame is that of its
    carrier at q = 0. Its spin acts on all links by its inertia and by gyroscopic moments, which an inertia
    ratio² · I added to the joint's own does not contain (docs/mathematics.md §8).

    Parameters
    ----------
    inertia : float
        Moment of inertia about its axis, kg m². All numbers may be SymPy expressions.
    ratio : float
        Angle of the rotor in its carrier divided by q of the joint, negative if they turn in opposite directions;
        rad/rad, or rad/m for a prismatic joint.
    axis : "x", "y", "z", "-x", … or (3,) array
        Direction of its axis in the carrier's frame.
    com : (3,) array
        Its centre in the carrier's frame, m.
    mass, across : float, optional
        Its mass in kg, and its moment about an axis across, kg m². If they are left out, the carrier's inertia is taken
        to contain the rotor at rest, as is usual in URDF; a further link ``<joint>_rotor_at_rest`` then subtracts its
        moment about its axis, which would be counted twice.
    carrier : str, optional
        The link that carries the rotor; by default the parent of the joint's link.

    Raises
    ------
    JointError
        If a number is negative or not finite, the ratio is zero, only one of mass and across is given, no solid of
        revolution has the moments, the axis is zero, or the carrier is not a name.
    """

    inertia: float
    ratio: float
    axis: str | ArrayLike = "z"
    com: ArrayLike = (0.0, 0.0, 0.0)
    mass: float | None = None
    across: float | None = None
    carrier: str | None = None

    def __post_init__(self) -> None:
        if (self.mass is None) != (self.across is None):
            raise JointError("a rotor needs both mass= and across=, or neither if its carrier's inertia contains it")
        for what in ("inertia", "mass", "across"):
            if getattr(self, what) is not None:
                object.__setattr__(self, what, number(f"the {what} of a rotor", getattr(self, what), 0.0))
        object.__setattr__(self, "ratio", number("the ratio of a rotor", self.ratio))
        if expressions.is_zero(self.ratio):
            raise JointError("the ratio of a rotor must not be zero")
        if self.carrier is not None and not isinstance(self.carrier, str):
            raise JointError(f"the carrier of a rotor must be the name of a link; got {self.carrier!r}")
        object.__setattr__(self, "com", origin(self.com))
        object.__setattr__(self, "axis", screw(self.axis, 0, 0.0)[:3])
        numbers = [x for x in (self.inertia, self.across) if x is not None and expressions.is_number(x)]
        if len(numbers) == 2 and numbers[0] > 2 * numbers[1]:
            raise JointError(
                f"no solid of revolution has the moments {numbers[0]:g} about its axis and {numbers[1]:g} across; the "
                "second one is at least half of the first"
            )

    @property
    def screw(self) -> Array:
        """The unit screw of its axis in the carrier's frame, (6,)."""
        return screw(self.axis, self.com, 0.0)

    @property
    def bodies(self) -> tuple[Inertia, Inertia | None]:
        """The inertia that spins, and that which is counted twice; in the carrier's frame."""
        a = expressions.array(self.axis)
        about = self.inertia * np.outer(a, a)
        if self.mass is not None and self.across is not None:
            return Inertia(self.mass, self.com, about + self.across * (np.eye(3) - np.outer(a, a))), None
        com = expressions.array(self.com)
        return Inertia._of(0.0, com, about, effective=True), Inertia._of(0.0, com, -about, effective=True)

    def prefixed(self, prefix: str) -> Rotor:
        """The same with a prefix before the name of the carrier, if it is given."""
        return self if self.carrier is None else replace(self, carrier=prefix + self.carrier)


@dataclass(frozen=True, eq=False)
class Joint(expressions.Parametric):
    """The motion of a link relative to its parent; made by :func:`revolute`, :func:`spherical`, :func:`free`, ….

    docs/mathematics.md §1 and §7.

    Parameters
    ----------
    screws : (6,) or (6, k) array, or None
        Unit screws [ω; v] in the carried link's own frame, one for each freedom, copied; ``None`` for a fixed joint.
    passive : bool
        Whether the joint has no motor. A torque on a passive joint is an error in a simulation.
    damping, friction, stiffness, rest : float
        Parameters of the joint's own force −damping q̇ − friction sgn q̇ − stiffness (q − rest), the same for each
        freedom, in N m and rad for a rotation, in N and m for a translation (docs/mathematics.md §8). Simulated joints
        stick while the load is below the friction. These numbers and the screws may be SymPy expressions.
    limits : (float, float) or None
        Lower and upper position, rad or m. Simulations report when they are reached, and enforce them with ``stops``.
    name : str or None
        Name of the joint, after which its freedoms and positions are named; ``None`` for the name of the link that it
        carries.
    chart : Chart or None
        The coordinates of a joint whose motions form a group; the screws are then the chart's. Such a joint has
        neither stiffness nor limits nor an armature.
    effort, velocity : float or None
        Largest magnitudes of the motor's force and of the rate, the same for each freedom; N m or N, rad/s or m/s. The
        dynamics does not enforce them; simulations clip torques at the effort with ``saturate=True``.
    armature : float
        Inertia of the motor as the joint feels it, ratio² times that of the rotor, the same for each freedom; kg m² or
        kg; maybe a SymPy expression. It is added to the diagonal of M and has neither weight nor gyroscopic moments,
        unlike ``rotor``.
    mimic : Mimic or None
        The joint that this one follows, q = ratio · q_joint + offset. It then has one screw and no freedom of its own.
    rotor : Rotor or None
        The rotor of the motor of a joint of one freedom. ``attach`` adds it as a link ``<joint>_rotor``.

    Raises
    ------
    JointError
        If a screw is not six numbers or not of unit length; screws are linearly dependent in every configuration;
        damping, friction, stiffness or armature is negative or not finite; the lower limit exceeds the upper one;
        effort or velocity is negative; a joint with a chart has a spring, limits or an armature; the name is empty;
        `passive` is not a bool; a joint that follows another one is passive or has several screws; or a joint with a
        rotor has not one freedom.
    """

    screws: Array
    passive: bool = False
    damping: float = 0.0
    friction: float = 0.0
    stiffness: float = 0.0
    rest: float = 0.0
    limits: Sequence[float] | None = None
    name: str | None = None
    chart: Chart | None = None
    effort: float | None = field(default=None, kw_only=True)
    velocity: float | None = field(default=None, kw_only=True)
    armature: float = field(default=0.0, kw_only=True)
    mimic: Mimic | None = field(default=None, kw_only=True)
    rotor: Rotor | None = field(default=None, kw_only=True)

    def __repr__(self) -> str:
        screws = [f"screw {S}" for S in self.screws.T.tolist()] if self.chart is None else []
        given = [f"{x.name}={value!r}" for x, value in given_fields(self) if x.name not in ("screws", "chart")]
        return f"<Joint: {', '.join([self.kind, *screws, *given])}>"

    def __post_init__(self) -> None:
        for what, least in (("damping", 0.0), ("friction", 0.0), ("stiffness", 0.0), ("rest", -inf), ("armature", 0.0)):
            object.__setattr__(self, what, number(what, getattr(self, what), least))
        object.__setattr__(self, "limits", interval(self.limits))
        for what in ("effort", "velocity"):
            object.__setattr__(self, what, magnitude(what, getattr(self, what)))
        _check_name(self.name)
        if not isinstance(self.passive, bool | np.bool_):
            raise JointError(f"passive must be True or False; got {self.passive!r}")
        object.__setattr__(self, "passive", bool(self.passive))
        if self.chart is not None:
            if self.stiffness != 0 or self.rest != 0 or self.limits is not None or self.armature != 0:
                raise JointError(f"a {self.chart.kind} joint takes no stiffness, rest, limits or armature")
            object.__setattr__(self, "screws", self.chart.screws)
        object.__setattr__(self, "screws", unit_screws(self.screws))
        if self.mimic is not None:
            if not isinstance(self.mimic, Mimic):
                raise JointError(f"mimic must be a Mimic, such as Mimic('finger', -1.0); got {self.mimic!r}")
            if self.passive or self.chart is not None or self.screws.shape[1] != 1:
                raise JointError(
                    f"a joint that follows another one has one screw and is not passive; got a "
                    f"{'passive ' * self.passive}{self.kind} joint"
                )
        if self.rotor is not None:
            if not isinstance(self.rotor, Rotor):
                raise JointError(f"rotor must be a Rotor, such as Rotor(1e-4, ratio=100); got {self.rotor!r}")
            if self.nv != 1:
                raise JointError(f"only a joint of one freedom has a rotor; got a {self.kind} joint with {self.nv}")
        if self.chart is None and self.nv > 1:
            check_independent(self.screws)

    @functools.cached_property
    def nv(self) -> int:
        """Number of freedoms: that of the screws; 0 if the joint follows another one."""
        return 0 if self.mimic is not None else int(self.screws.shape[1])

    @functools.cached_property
    def nq(self) -> int:
        """Number of positions: that of the freedoms, or that of the chart."""
        return self.nv if self.chart is None else self.chart.nq

    @functools.cached_property
    def turns(self) -> bool:
        """Whether one of its freedoms turns."""
        return bool(self.screws[:3].any())

    @functools.cached_property
    def stroke(self) -> float:
        """How far it slides without turning, if it has no chart; infinite without limits."""
        if self.chart is not None or self.screws[:3].any(axis=0).all():
            return 0.0
        return max(map(abs, self.limits or (inf,)))

    @property
    def neutral(self) -> tuple[float, ...]:
        """The positions at which the link is at its home pose."""
        return (0.0,) * self.nv if self.chart is None else self.chart.neutral

    @property
    def screw(self) -> Array | None:
        """(6,): the only screw of a joint of one freedom, ``None`` for a fixed joint; JointError if there are more."""
        if self.nv > 1:
            raise JointError(f"a {self.kind} joint has {self.nv} screws; see its `screws`")
        return self.screws[:, 0] if self.screws.shape[1] else None

    @property
    def kind(self) -> str:
        """Name of the kind, derived from the screws: ``"revolute"``, ``"spherical"``, ``"fixed"``, ….

        The kind of other joints is a list of the kinds of their screws, such as ``"prismatic-prismatic"``.
        """
        if self.chart is not None:
            return self.chart.kind
        kinds = [screw_kind(S) for S in self.screws.T]
        if kinds == ["revolute", "revolute"] and meet(*self.screws.T):
            return "universal"
        if kinds == ["revolute", "prismatic"] and parallel(*self.screws.T):
            return "cylindrical"
        return "-".join(kinds) or "fixed"

    def freedom_names(self, name: str) -> tuple[str, ...]:
        """Names of the freedoms of a joint with a given name: ``hip[wx]``, …; that name if there is one freedom."""
        return self._names(name, 0)

    def row_names(self, name: str) -> tuple[str, ...]:
        """A name for each screw of a joint with a given name: its freedoms, or that name if it follows another one."""
        return self.freedom_names(name) if self.mimic is None else (name,)

    def position_names(self, name: str) -> tuple[str, ...]:
        """Names of the positions of a joint with a given name: ``hip[x]``, …; that name if there is one freedom."""
        return self._names(name, 1)

    def _names(self, name: str, of: int) -> tuple[str, ...]:
        """The name with each label of the freedoms (0) or positions (1); alone if there is one freedom."""
        nv = self.nv
        return (name,) * nv if nv < 2 else tuple([f"{name}[{label}]" for label in self._labels[of]])

    @functools.cached_property
    def _labels(self) -> tuple[Sequence[str], Sequence[str]]:
        """Those of the chart, or of the screws, numbered if several screws have the same label."""
        if self.chart is not None:
            return self.chart.labels

        def numbered(turn: str, slide: str) -> list[str]:
            labels = [turn if S[:3].any() else slide for S in self.screws.T]
            return [s if labels.count(s) == 1 else f"{s}{labels[: i + 1].count(s)}" for i, s in enumerate(labels)]

        return numbered("w", "v"), numbered("angle", "p")

    def named(self, name: str | None) -> Joint:
        """The joint with another name, or none; itself if it has the name."""
        if name == self.name:
            return self
        _check_name(name)
        twin = object.__new__(type(self))  # all else has been checked
        vars(twin).update(vars(self), name=name)
        return twin

    def prefixed(self, prefix: str) -> Joint:
        """The joint with a prefix before its name, if it has a name."""
        return self.named(prefix + self.name) if prefix and self.name is not None else self

    def moves_like(self, other: Joint) -> bool:
        """Whether positions and rates mean the same for both joints: their screws and charts are equal."""
        one, two = (() if joint.chart is None else joint.chart.axes for joint in (self, other))
        return self is other or (np.array_equal(self.screws, other.screws) and np.array_equal(one, two))

    def inside(self, prefix: str) -> Joint:
        """The joint in a tree with a prefix before all names, also before those that it refers to."""
        parts = {what: getattr(self, what) for what in ("mimic", "rotor")} if prefix else {}
        others = {what: part.prefixed(prefix) for what, part in parts.items() if part is not None}
        return replace(self.prefixed(prefix), **others) if others else self.prefixed(prefix)


def _check_name(name: object) -> None:
    """Raise JointError unless it is a name, or None."""
    if name is not None and not is_name(name):
        raise JointError(f"a joint's name must be {NAME}; got {name!r}")


class GroupOptions(TypedDict, total=False):
    """Keyword arguments of all kinds of joints; see :class:`Joint`."""

    passive: bool
    damping: float
    friction: float
    effort: float | None
    velocity: float | None
    name: str | None


class Options(GroupOptions, total=False):
    """Keyword arguments of joints whose positions are those of their screws."""

    stiffness: float
    rest: float
    limits: Sequence[float] | None
    armature: float
    mimic: Mimic | None
    rotor: Rotor | None


_spelled_out = spelled_out({field.name: field.default for field in fields(Joint)})


@_spelled_out
def revolute(axis: str | ArrayLike = "z", point: ArrayLike = 0, **own: Unpack[Options]) -> Joint:
    """A revolute joint about an axis, S = [a; −a×r] (docs/mathematics.md §1).

    Parameters
    ----------
    axis : "x", "y", "z", "-x", … or (3,) array
        Direction a in the carried link's own frame; any length but zero.
    point : (3,) array or 0
        Any point r of the axis, in the link's own frame, in metres.
    passive, damping, friction, stiffness, rest, limits, effort, velocity, armature, mimic, rotor, name
        As for :class:`Joint`.

    Raises
    ------
    JointError
        If the axis is zero or not finite, or another argument is invalid.

    Warns
    -----
    ScrewdynWarning
        If the limits are many turns, as in degrees.
    """
    joint = Joint(screw(axis, point, 0.0), **own)
    if joint.limits is not None:
        check_limits(*joint.limits)
    return joint


@_spelled_out
def prismatic(axis: str | ArrayLike = "z", **own: Unpack[Options]) -> Joint:
    """A prismatic joint along an axis, S = [0; a] (docs/mathematics.md §1); all else as for :func:`revolute`."""
    return Joint(screw(axis, 0, inf), **own)


@_spelled_out
def helical(axis: str | ArrayLike, pitch: float, point: ArrayLike = 0, **own: Unpack[Options]) -> Joint:
    """A helical joint about an axis, S = [a; −a×r + h a], with pitch h in metres per radian (docs/mathematics.md §1).

    Parameters and errors as for :func:`revolute`; raises JointError also if the pitch is not a finite number.
    """
    return Joint(screw(axis, point, number("pitch", pitch)), **own)


# One object for each name, because the frames of a joint are cached by its identity.
@functools.lru_cache(maxsize=1024)
def fixed(name: str | None = None) -> Joint:
    """A joint without freedoms, which welds the link to its parent; JointError if the name is empty."""
    return Joint(NO_SCREWS, name=name)


@_spelled_out
def cylindrical(axis: str | ArrayLike = "z", point: ArrayLike = 0, **own: Unpack[Options]) -> Joint:
    """A cylindrical joint about and along an axis, T = home · exp(Ŝ₁ angle) exp(Ŝ₂ p), S₁ = [a; −a×r], S₂ = [0; a].

    docs/mathematics.md §7. A joint named ``pin`` has the freedoms ``pin[w]``, ``pin[v]`` and the positions
    ``pin[angle]``, ``pin[p]``, in radians and metres. Parameters and errors as for :func:`revolute`.
    """
    screws = np.stack([screw(axis, point, 0.0), screw(axis, 0, inf)], axis=1)
    return Joint(screws, **own)


@_spelled_out
def universal(
    axis1: str | ArrayLike = "x", axis2: str | ArrayLike = "y", point: ArrayLike = 0, **own: Unpack[Options]
) -> Joint:
    """A universal joint about two axes through one point, T = home · exp(Ŝ₁ angle1) exp(Ŝ₂ angle2).

    docs/mathematics.md §7. A joint named ``hook`` has the freedoms ``hook[w1]``, ``hook[w2]`` and the positions
    ``hook[angle1]``, ``hook[angle2]``, in radians.

    Parameters
    ----------
    axis1 : "x", "y", "z", "-x", … or (3,) array
        Direction of the axis that is fixed in the parent, in the carried link's own frame at angle2 = 0.
    axis2 : "x", "y", "z", "-x", … or (3,) array
        Direction of the axis that is fixed in the link, in the link's own frame.
    point : (3,) array or 0
        The point where the axes meet, in the link's own frame, in metres.
    passive, damping, friction, stiffness, rest, limits, effort, velocity, armature, mimic, rotor, name
        As for :class:`Joint`.

    Raises
    ------
    JointError
        As for :func:`revolute`, and if the axes are parallel.
    """
    screws = np.stack([screw(axis1, point, 0.0), screw(axis2, point, 0.0)], axis=1)
    if parallel(*screws.T):
        raise JointError(f"the axes of a universal joint must not be parallel; got {axis1!r} and {axis2!r}")
    return Joint(screws, **own)


@_spelled_out
def spherical(point: ArrayLike = 0, **own: Unpack[GroupOptions]) -> Joint:
    """A spherical joint about a point r, T = home · g(q), with screws S_k = [e_k; −e_k×r] (docs/mathematics.md §7).

    The positions of a joint named ``hip`` are the components of a quaternion of length 1, scalar last: ``hip[x]``,
    ``hip[y]``, ``hip[z]``, ``hip[w]``. The freedoms are the components of the link's angular velocity relative to its
    parent, in the link's own axes: ``hip[wx]``, ``hip[wy]``, ``hip[wz]``, rad/s.

    Parameters
    ----------
    point : (3,) array or 0
        The center, in the link's own frame, in metres.
    passive, damping, friction, effort, velocity, name
        As for :class:`Joint`. There are no springs, limits and armatures.

    Raises
    ------
    JointError
        If the point is not three finite numbers, or another argument is invalid.
    """
    return Joint(NO_SCREWS, chart=Chart(4, 0, np.eye(3), origin(point)), **own)


@_spelled_out
def free(**own: Unpack[GroupOptions]) -> Joint:
    """A free joint, T = home · g(q), with g(q) = [R(x, y, z, w), p] (docs/mathematics.md §7).

    The positions of a joint named ``base`` are a quaternion of length 1, scalar last, ``base[x]``, ``base[y]``,
    ``base[z]``, ``base[w]``, and the position of the link's origin in the axes of the home pose, ``base[px]``,
    ``base[py]``, ``base[pz]``, in metres. The freedoms are the components of the link's twist [ω; v] relative to its
    parent, in the link's own frame: ``base[wx]``, …, ``base[vz]``, rad/s and m/s. Parameters and errors as for
    :func:`spherical`.
    """
    return Joint(NO_SCREWS, chart=Chart(4, 3, np.eye(3), np.zeros(3)), **own)


@_spelled_out
def planar(axis: str | ArrayLike = "z", point: ArrayLike = 0, **own: Unpack[GroupOptions]) -> Joint:
    """A planar joint: S₁ = [a; −a×r], S₂ = [0; e₁], S₃ = [0; e₂] with e₁×e₂ = a (docs/mathematics.md §7).

    The positions of a joint named ``base`` are the angle about a, and the position of the point r along e₁ and e₂ in
    the axes of the home pose: ``base[angle]``, ``base[px]``, ``base[py]``, radians and metres. The freedoms are the
    rate of the angle and the velocity of this point along e₁ and e₂ in the link's own axes: ``base[w]``, ``base[vx]``,
    ``base[vy]``, rad/s and m/s.

    Parameters
    ----------
    axis : "x", "y", "z", "-x", … or (3,) array
        Normal a of the plane, in the link's own frame; any length but zero. e₁ is the projection on the plane of the
        first link axis among those most nearly perpendicular to a: for "z", e₁ and e₂ are x and y.
    point : (3,) array or 0
        The point r, in the link's own frame, in metres.
    passive, damping, friction, effort, velocity, name
        As for :func:`spherical`.

    Raises
    ------
    JointError
        If the axis is zero or not finite, the point is not three finite numbers, or another argument is invalid.
    """
    axes = np.reshape(frame_along(screw(axis, 0, 0.0)[:3].tolist()), (3, 3))
    return Joint(NO_SCREWS, chart=Chart(1, 2, axes, origin(point)), **own)


# By name, as scenarios give them.
KINDS: dict[str, Callable[..., Joint]] = {
    make.__name__: make
    for make in (revolute, prismatic, helical, fixed, cylindrical, universal, spherical, free, planar)
}


# Positions of a joint


def checked_positions(name: str, joint: Joint, q: ArrayLike) -> Array:
    """Positions of one joint as a new array, (nq,), or ShapeError; a number will do for a single position."""
    what = f"the position of joint {name!r}"
    positions = np.array(expressions.read(q, what, by=expressions.real), ndmin=1)
    if positions.shape != (joint.nq,) or not expressions.is_finite(positions):
        if not joint.nq:
            raise ShapeError(f"joint {name!r} is rigid, and has no start or other position: leave it out; got {q!r}")
        entries = ", ".join(joint.position_names(name))
        raise ShapeError(f"{what} must be a finite number for each of: {entries}; got {q!r}")
    if joint.chart is not None and joint.chart.orientation == 4:
        x, y, z, w, *_ = positions.tolist()
        length = sqrt(x * x + y * y + z * z + w * w)
        if not abs(length - 1) < LENGTH_TOLERANCE:
            check_lengths(what, [name], positions[None, :4])
        positions[:4] /= length
    return positions


def pose_at(joint: Joint, q: Array) -> Array:
    """The pose of the link relative to its home at positions q (nq,): g(q), (4, 4) (docs/mathematics.md §7)."""
    positions = q.tolist()
    if (*positions,) == joint.neutral:
        return np.eye(4)
    if joint.chart is not None:
        return joint.chart.pose(q)
    return functools.reduce(np.matmul, map(_displacement, joint.screws.T.tolist(), positions))


def _displacement(S: Sequence[Any], q: float) -> Array:
    """exp(Ŝ q) of a unit screw [w; v]: p = q v + (1 − cos q) w×v + (q − sin q) w×(w×v); see ``screw.screw_motion``."""
    (x, y, z, a, b, c), sine, half = S, sin(q), sin(0.5 * q)
    k, lag = 2.0 * half * half, q - sine
    d, e, f = y * c - z * b, z * a - x * c, x * b - y * a
    px, py, pz = lag * (y * f - z * e), lag * (z * d - x * f), lag * (x * e - y * d)
    T = [
        [1.0 - k * (y * y + z * z), k * x * y - sine * z, k * x * z + sine * y, q * a + k * d + px],
        [k * x * y + sine * z, 1.0 - k * (x * x + z * z), k * y * z - sine * x, q * b + k * e + py],
        [k * x * z - sine * y, k * y * z + sine * x, 1.0 - k * (x * x + y * y), q * c + k * f + pz],
        [0.0, 0.0, 0.0, 1.0],
    ]
    return expressions.array(T) if expressions.possible() else np.array(T)
