"""Joints as unit screws.

A joint is k unit screws S₁ … S_k in the frame of the link that it carries (docs/mathematics.md §1 and §7). The pose of
the link in its parent is ``home · exp(Ŝ₁ q₁) … exp(Ŝ_k q_k)``, or ``home · g(q)`` with g in the group that the screws
generate; a :class:`Chart` is the coordinates of such a group. Computations do not depend on the kind of a joint.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import inf, isfinite, isnan, sqrt
from typing import Any

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.errors import JointError, ScrewdynError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.mechanism.chart import Chart
from screwdyn.screws.poses import cross, entries
from screwdyn.screws.screw import Ad, frame_along, inverse, screw_from_axis, screw_motion
from screwdyn.screws.screw import pitch as pitch_of

__all__ = [
    "Joint",
    "cylindrical",
    "fixed",
    "free",
    "helical",
    "planar",
    "prismatic",
    "revolute",
    "spherical",
    "universal",
]

# Tolerance for |w|^2 or |v|^2 of a unit screw; a screw within rounding of unit length is not normalised.
_UNIT, _ROUNDING = 1e-9, 1e-15
# Relative remainder below which a screw counts as a linear combination of others.
_DEPENDENT = 1e-12
# Least singular value of unit screws that need no closer look.
_CLEARLY_INDEPENDENT = 1e-3
_NO_SCREWS = np.zeros((6, 0))
_NO_SCREWS.setflags(write=False)


@dataclass(frozen=True, eq=False)
class Joint:
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
        freedom, in N m and rad for a rotation, in N and m for a translation (docs/mathematics.md §8). sgn q̇ is computed
        as tanh(1000 q̇). These numbers and the screws may be SymPy expressions.
    limits : (float, float) or None
        Lower and upper position, rad or m; the dynamics does not enforce them.
    name : str or None
        Name of the joint, after which its freedoms and positions are named; ``None`` for the name of the link that it
        carries.
    chart : Chart or None
        The coordinates of a joint whose motions form a group; the screws are then the chart's. Such a joint has
        neither stiffness nor limits.

    Raises
    ------
    JointError
        If a screw is not six numbers or not of unit length; screws are linearly dependent in every configuration;
        damping, friction or stiffness is negative or not finite; the lower limit exceeds the upper one; a joint with a
        chart has a spring or limits; the name is empty; or `passive` is not a bool.
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

    def __post_init__(self) -> None:
        for what, least in (("damping", 0.0), ("friction", 0.0), ("stiffness", 0.0), ("rest", -inf)):
            object.__setattr__(self, what, _number(what, getattr(self, what), least))
        object.__setattr__(self, "limits", _limits(self.limits))
        if self.name is not None and (not isinstance(self.name, str) or not self.name):
            raise JointError(f"a joint's name must be a non-empty string; got {self.name!r}")
        if not isinstance(self.passive, bool | np.bool_):
            raise JointError(f"passive must be True or False; got {self.passive!r}")
        object.__setattr__(self, "passive", bool(self.passive))
        if self.chart is not None:
            if self.stiffness != 0 or self.rest != 0 or self.limits is not None:
                raise JointError(f"a {self.chart.kind} joint takes no stiffness, rest or limits")
            object.__setattr__(self, "screws", self.chart.screws)
        object.__setattr__(self, "screws", _unit_screws(self.screws))
        if self.chart is None and self.nv > 1:
            _check_independent(self.screws)

    @functools.cached_property
    def nv(self) -> int:
        """Number of freedoms k."""
        return int(self.screws.shape[1])

    @functools.cached_property
    def nq(self) -> int:
        """Number of positions: that of the freedoms, or that of the chart."""
        return self.nv if self.chart is None else self.chart.nq

    @property
    def neutral(self) -> tuple[float, ...]:
        """The positions at which the link is at its home pose."""
        return (0.0,) * self.nv if self.chart is None else self.chart.neutral

    @property
    def screw(self) -> Array | None:
        """(6,): the only screw of a joint of one freedom; ``None`` for a fixed joint.

        Raises
        ------
        JointError
            If there are several.
        """
        if self.nv > 1:
            raise JointError(f"a {self.kind} joint has {self.nv} screws; see its `screws`")
        return self.screws[:, 0] if self.nv else None

    @property
    def kind(self) -> str:
        """Name of the kind, derived from the screws: ``"revolute"``, ``"spherical"``, ``"fixed"``, ….

        The kind of other joints is a list of the kinds of their screws, such as ``"prismatic-prismatic"``.
        """
        if self.chart is not None:
            return self.chart.kind
        kinds = [_kind(S) for S in self.screws.T]
        if kinds == ["revolute", "revolute"] and _meet(*self.screws.T):
            return "universal"
        if kinds == ["revolute", "prismatic"] and _parallel(*self.screws.T):
            return "cylindrical"
        return "-".join(kinds) or "fixed"

    def freedom_names(self, name: str) -> tuple[str, ...]:
        """Names of the freedoms of a joint with a given name: ``hip[wx]``, …; that name if there is one freedom."""
        if self.nv < 2:
            return (name,) * self.nv
        labels = self._numbered("w", "v") if self.chart is None else self.chart.freedom_labels
        return _names(name, labels)

    def position_names(self, name: str) -> tuple[str, ...]:
        """Names of the positions of a joint with a given name: ``hip[x]``, …; that name if there is one freedom."""
        if self.nv < 2:
            return (name,) * self.nv
        labels = self._numbered("angle", "p") if self.chart is None else self.chart.position_labels
        return _names(name, labels)

    def _numbered(self, turn: str, slide: str) -> tuple[str, ...]:
        """A label for each screw, numbered if several screws have the same label."""
        sorts = [turn if S[:3].any() else slide for S in self.screws.T]
        return tuple(s if sorts.count(s) == 1 else f"{s}{sorts[: i + 1].count(s)}" for i, s in enumerate(sorts))

    def prefixed(self, prefix: str) -> Joint:
        """The joint with a prefix before its name, if it has a name."""
        return replace(self, name=prefix + self.name) if prefix and self.name is not None else self

    @property
    def free_symbols(self) -> set[Any]:
        """SymPy symbols that the joint's numbers depend on."""
        return expressions.free_symbols(getattr(self, field.name) for field in fields(self))

    def subs(self, values: Mapping[Any, Any]) -> Joint:
        """The joint with values substituted for symbols; JointError if a value is invalid."""
        values = expressions.bound(values, self.free_symbols)
        numbers = {
            what: expressions.substituted(getattr(self, what), values)
            for what in ("screws", "damping", "friction", "stiffness", "rest")
        }
        return replace(self, chart=None if self.chart is None else self.chart.subs(values), **numbers)


def revolute(
    axis: str | ArrayLike = "z",
    point: ArrayLike = 0,
    *,
    passive: bool = False,
    damping: float = 0.0,
    friction: float = 0.0,
    stiffness: float = 0.0,
    rest: float = 0.0,
    limits: Sequence[float] | None = None,
    name: str | None = None,
) -> Joint:
    """A revolute joint about an axis, S = [a; −a×r] (docs/mathematics.md §1).

    Parameters
    ----------
    axis : "x", "y", "z", "-x", … or (3,) array
        Direction a in the carried link's own frame; any length but zero.
    point : (3,) array or 0
        Any point r of the axis, in the link's own frame, in metres.
    passive, damping, friction, stiffness, rest, limits, name
        As for :class:`Joint`.

    Raises
    ------
    JointError
        If the axis is zero or not finite, or another argument is invalid.
    """
    return Joint(_screw(axis, point, 0.0), passive, damping, friction, stiffness, rest, limits, name)


def prismatic(
    axis: str | ArrayLike = "z",
    *,
    passive: bool = False,
    damping: float = 0.0,
    friction: float = 0.0,
    stiffness: float = 0.0,
    rest: float = 0.0,
    limits: Sequence[float] | None = None,
    name: str | None = None,
) -> Joint:
    """A prismatic joint along an axis, S = [0; a] (docs/mathematics.md §1).

    Parameters and errors as for :func:`revolute`.
    """
    return Joint(_screw(axis, 0, inf), passive, damping, friction, stiffness, rest, limits, name)


def helical(
    axis: str | ArrayLike,
    pitch: float,
    point: ArrayLike = 0,
    *,
    passive: bool = False,
    damping: float = 0.0,
    friction: float = 0.0,
    stiffness: float = 0.0,
    rest: float = 0.0,
    limits: Sequence[float] | None = None,
    name: str | None = None,
) -> Joint:
    """A helical joint about an axis, S = [a; −a×r + h a], with pitch h in metres per radian (docs/mathematics.md §1).

    Parameters and errors as for :func:`revolute`; raises JointError also if the pitch is not a finite number.
    """
    S = _screw(axis, point, _number("pitch", pitch))
    return Joint(S, passive, damping, friction, stiffness, rest, limits, name)


def fixed(name: str | None = None) -> Joint:
    """A joint without freedoms, which welds the link to its parent.

    Raises JointError if the name is empty.
    """
    return Joint(_NO_SCREWS, name=name)


def cylindrical(
    axis: str | ArrayLike = "z",
    point: ArrayLike = 0,
    *,
    passive: bool = False,
    damping: float = 0.0,
    friction: float = 0.0,
    stiffness: float = 0.0,
    rest: float = 0.0,
    limits: Sequence[float] | None = None,
    name: str | None = None,
) -> Joint:
    """A cylindrical joint about and along an axis, T = home · exp(Ŝ₁ angle) exp(Ŝ₂ p), S₁ = [a; −a×r], S₂ = [0; a].

    docs/mathematics.md §7. A joint named ``pin`` has the freedoms ``pin[w]``, ``pin[v]`` and the positions
    ``pin[angle]``, ``pin[p]``, in radians and metres. Parameters and errors as for :func:`revolute`.
    """
    screws = np.stack([_screw(axis, point, 0.0), _screw(axis, 0, inf)], axis=1)
    return Joint(screws, passive, damping, friction, stiffness, rest, limits, name)


def universal(
    axis1: str | ArrayLike = "x",
    axis2: str | ArrayLike = "y",
    point: ArrayLike = 0,
    *,
    passive: bool = False,
    damping: float = 0.0,
    friction: float = 0.0,
    stiffness: float = 0.0,
    rest: float = 0.0,
    limits: Sequence[float] | None = None,
    name: str | None = None,
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
    passive, damping, friction, stiffness, rest, limits, name
        As for :class:`Joint`.

    Raises
    ------
    JointError
        As for :func:`revolute`, and if the axes are parallel.
    """
    screws = np.stack([_screw(axis1, point, 0.0), _screw(axis2, point, 0.0)], axis=1)
    if _parallel(*screws.T):
        raise JointError(f"the axes of a universal joint must not be parallel; got {axis1!r} and {axis2!r}")
    return Joint(screws, passive, damping, friction, stiffness, rest, limits, name)


def spherical(
    point: ArrayLike = 0,
    *,
    passive: bool = False,
    damping: float = 0.0,
    friction: float = 0.0,
    name: str | None = None,
) -> Joint:
    """A spherical joint about a point r, T = home · g(q), with screws S_k = [e_k; −e_k×r] (docs/mathematics.md §7).

    The positions of a joint named ``hip`` are the components of a quaternion of length 1, scalar last: ``hip[x]``,
    ``hip[y]``, ``hip[z]``, ``hip[w]``. The freedoms are the components of the link's angular velocity relative to its
    parent, in the link's own axes: ``hip[wx]``, ``hip[wy]``, ``hip[wz]``, rad/s.

    Parameters
    ----------
    point : (3,) array or 0
        The center, in the link's own frame, in metres.
    passive, damping, friction, name
        As for :class:`Joint`. There are no springs and no limits.

    Raises
    ------
    JointError
        If the point is not three finite numbers, or another argument is invalid.
    """
    chart = Chart(4, 0, np.eye(3), _point(point))
    return Joint(chart.screws, passive, damping, friction, name=name, chart=chart)


def free(*, passive: bool = False, damping: float = 0.0, friction: float = 0.0, name: str | None = None) -> Joint:
    """A free joint, T = home · g(q), with g(q) = [R(x, y, z, w), p] (docs/mathematics.md §7).

    The positions of a joint named ``base`` are a quaternion of length 1, scalar last, ``base[x]``, ``base[y]``,
    ``base[z]``, ``base[w]``, and the position of the link's origin in the axes of the home pose, ``base[px]``,
    ``base[py]``, ``base[pz]``, in metres. The freedoms are the components of the link's twist [ω; v] relative to its
    parent, in the link's own frame: ``base[wx]``, …, ``base[vz]``, rad/s and m/s. Parameters and errors as for
    :func:`spherical`.
    """
    chart = Chart(4, 3, np.eye(3), np.zeros(3))
    return Joint(chart.screws, passive, damping, friction, name=name, chart=chart)


def planar(
    axis: str | ArrayLike = "z",
    point: ArrayLike = 0,
    *,
    passive: bool = False,
    damping: float = 0.0,
    friction: float = 0.0,
    name: str | None = None,
) -> Joint:
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
    passive, damping, friction, name
        As for :func:`spherical`.

    Raises
    ------
    JointError
        If the axis is zero or not finite, the point is not three finite numbers, or another argument is invalid.
    """
    axes = np.reshape(frame_along(_screw(axis, 0, 0.0)[:3].tolist()), (3, 3))
    chart = Chart(1, 2, axes, _point(point))
    return Joint(chart.screws, passive, damping, friction, name=name, chart=chart)


def _names(name: str, labels: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{name}[{label}]" for label in labels)


def _vanishes(x: Any) -> bool:
    return abs(x) < 1e-12 if expressions.is_number(x) else expressions.is_zero(x)


def _meet(S: Array, Z: Array) -> bool:
    """Whether the axes of two screws of pitch 0 are coplanar: their reciprocal product is zero."""
    return _vanishes(S[:3] @ Z[3:] + S[3:] @ Z[:3])


def _parallel(S: Array, Z: Array) -> bool:
    return all(map(_vanishes, cross(S[:3], Z[:3] if Z[:3].any() else Z[3:])))


def _kind(S: Array) -> str:
    h = pitch_of(S).item()
    if not expressions.is_number(h):
        return "helical"
    return "prismatic" if h == inf else "revolute" if abs(h) < 1e-12 else "helical"


def _unit_screws(value: ArrayLike | None) -> Array:
    """Read-only copies of screws, (6, k), normalised if their length does not depend on symbols."""
    if value is None:
        return _NO_SCREWS
    try:
        screws = expressions.array(value)
    except (TypeError, ValueError):
        raise JointError(f"a joint's screw must be six numbers; got {value!r}") from None
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


def _check_independent(screws: Array) -> None:
    """Raise JointError for numeric screws that are linearly dependent at the home pose and at a generic configuration.

    Rotations about z, x and z are dependent at the home pose only: a joint of three freedoms.
    """
    if screws.dtype != np.float64 or np.linalg.svd(screws, compute_uv=False)[-1] > _CLEARLY_INDEPENDENT:
        return
    T, twists = np.eye(4), np.empty_like(screws)
    for k in reversed(range(screws.shape[1])):
        twists[:, k] = Ad(inverse(T)) @ screws[:, k]
        T = screw_motion(screws[:, k], 1.0 + 0.3 * k) @ T
    twists /= np.linalg.norm(twists, axis=0)
    for k in range(1, screws.shape[1]):
        factors, *_ = np.linalg.lstsq(twists[:, :k], twists[:, k], rcond=None)
        if np.linalg.norm(twists[:, k] - twists[:, :k] @ factors) < _DEPENDENT:
            others = " and ".join(str(screws[:, i].tolist()) for i in np.flatnonzero(abs(factors) > _DEPENDENT))
            raise JointError(
                f"the screw {screws[:, k].tolist()} of a joint adds no freedom to {others}: they are linearly "
                "dependent in every configuration; leave one out"
            )


def _length(S: list[Any]) -> float:
    """The length of a screw, 1 within rounding; JointError if it is not a unit screw within the tolerance."""
    if not all(isfinite(x) for x in S if expressions.is_number(x)):
        raise JointError(f"a joint's screw has entries that are not finite: {S}")
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


def _screw(axis: str | ArrayLike, point: ArrayLike, pitch: float) -> Array:
    try:
        S = screw_from_axis(axis, _point(point), pitch)
    except ScrewdynError as wrong:
        raise JointError(str(wrong)) from None
    if S.shape != (6,):
        raise JointError(f"a joint has one axis; got {axis!r}")
    return S


def _point(point: ArrayLike) -> Array:
    try:
        r = entries((0, 0, 0) if isinstance(point, int | float) and point == 0 else point, (3,), "point")
    except ScrewdynError as wrong:
        raise JointError(str(wrong)) from None
    if r.shape != (3,) or not expressions.is_finite(r):
        raise JointError(f"a joint's point must be three finite numbers; got {point!r}")
    return r


def _number(what: str, value: float, least: float = -inf) -> Any:
    try:
        x = expressions.number(value)
    except (TypeError, ValueError):
        raise JointError(f"{what} must be a number; got {value!r}") from None
    if expressions.is_number(x) and (not isfinite(x) or x < least):
        raise JointError(f"{what} must be a finite number{f' >= {least:g}' if isfinite(least) else ''}; got {value!r}")
    return x


def _limits(limits: Sequence[float] | None) -> tuple[float, float] | None:
    if limits is None:
        return None
    try:
        low, high = map(float, expressions.real(limits))
    except (TypeError, ValueError):
        raise JointError(f"limits must be two numbers (lower, upper); got {limits!r}") from None
    if isnan(low) or isnan(high) or low > high:
        raise JointError(f"limits must be (lower, upper) with lower <= upper; got {limits!r}")
    return low, high
