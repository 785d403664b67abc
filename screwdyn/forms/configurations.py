"""Configurations of a tree, its limits and motors, and its screw system over all configurations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import compress, product
from operator import not_
from typing import Any, Literal, NamedTuple, Self, TypeAlias

import numpy as np

from screwdyn.core import Array, ArrayLike, Indices, ScrewdynError, ShapeError, UnboundSymbolError
from screwdyn.forms.numbers import Dynamics, of_finite
from screwdyn.mechanism.structure import Handle, Mechanism
from screwdyn.physics import Frame, Robot
from screwdyn.physics.recursions.links import frame_code
from screwdyn.screws.screw_system import ScrewSystem


class Partition(NamedTuple):
    """M, C and g in blocks of active (a) and passive (p) freedoms; a and p are their numbers.

    ``[M_aa M_ap; M_pa M_pp] [q̈_a; q̈_p] + [C_aa C_ap; C_pa C_pp] [q̇_a; q̇_p] + [g_a; g_p] = [τ_a; 0]``

    Attributes
    ----------
    active, passive : tuples of str
        Names of the freedoms, in the order of the tree's coordinates: the indices of the blocks.
    M_aa, M_ap, M_pa, M_pp : (…, a, a), (…, a, p), (…, p, a), (…, p, p) arrays
        kg m², kg m or kg.
    C_aa, C_ap, C_pa, C_pp : arrays of the same shapes
        N m s, N s or kg/s.
    g_a, g_p : (…, a), (…, p) arrays
        N m or N.
    """

    active: tuple[str, ...]
    passive: tuple[str, ...]
    M_aa: Array
    M_ap: Array
    M_pa: Array
    M_pp: Array
    C_aa: Array
    C_ap: Array
    C_pa: Array
    C_pp: Array
    g_a: Array
    g_p: Array


class Configurations(Dynamics):
    """Configurations of a tree, conversions between positions and rates (docs/mathematics.md §7), and motors (§8)."""

    def neutral(self) -> Array:
        """The configuration with every link at its home pose, (nq,): zeros, and [0, 0, 0, 1] for quaternions."""
        return self.model.configurations.neutral.copy()

    def random_configuration(self, rng: np.random.Generator) -> Array:
        """A random configuration, (nq,).

        Each position is uniform within the joint's limits, or within ±π (rad or m) if it has none. Orientations of
        spherical and free joints are uniform over all rotations.

        Raises
        ------
        ScrewdynError
            If ``rng`` is not a numpy.random.Generator.
        """
        if not isinstance(rng, np.random.Generator):
            raise ScrewdynError(f"rng must be a numpy.random.Generator, such as default_rng(0); got {rng!r}")
        return self.model.configurations.random(rng)

    def integrate(self, q: ArrayLike, v: ArrayLike) -> Array:
        """The configuration reached from q (…, nq) at the constant rates v (…, nv) in unit time, (…, nq).

        A joint of one freedom moves to q + v. A spherical, free or planar joint moves from g(q) to g(q) exp(S v), where
        v are the components of a twist in the link's own frame (docs/mathematics.md §7). Quaternions of the result have
        length 1. Errors as for :class:`~screwdyn.physics.quantities.Quantities`.
        """
        return of_finite(self.model, self.model.configurations.integrate, q=q, v=v)

    def difference(self, q0: ArrayLike, q1: ArrayLike) -> Array:
        """The constant rates v, (…, nv), that move q0 to q1 in unit time: the inverse of :meth:`integrate`.

        A spherical, free or planar joint rotates by the smallest angle (docs/mathematics.md §7), so that
        ``integrate(q0, v)`` may differ from q1 by the sign of a quaternion or by whole turns. Errors as for
        :class:`~screwdyn.physics.quantities.Quantities`.
        """
        return of_finite(self.model, self.model.configurations.difference, q0=q0, q1=q1)

    def position_rate(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """The time derivative dq/dt, (…, nq), at the rates qd (…, nv) of the freedoms.

        ½ q ∘ (ω, 0) for quaternions and R(q) v for positions of spherical, free and planar joints
        (docs/mathematics.md §7); qd for all others. Errors as for :class:`~screwdyn.physics.quantities.Quantities`.
        """
        return of_finite(self.model, self.model.configurations.rate, q=q, qd=qd)

    @property
    def active(self) -> tuple[str, ...]:
        """Names of the freedoms of joints with a motor, in the order of ``coordinates``."""
        model = self.model
        return tuple(compress(model.coordinates, map(not_, model.passive)))

    @property
    def passive(self) -> tuple[str, ...]:
        """Names of the freedoms of passive joints, in the order of ``coordinates``."""
        model = self.model
        return tuple(compress(model.coordinates, model.passive))

    @property
    def actuation_matrix(self) -> Array:
        """Matrix B of zeros and ones, (nv, number of active freedoms), with τ = B τ_active."""
        model = self.model
        return np.eye(model.nv)[:, ~np.array(model.passive, dtype=bool)]

    def partition(self, q: ArrayLike, qd: ArrayLike | None = None) -> Partition:
        """M, C and g in blocks of active and passive freedoms (docs/mathematics.md §8).

        Parameters
        ----------
        q : (…, nq)
            rad and m.
        qd : (…, nv), optional
            rad/s and m/s; by default zero, so that the blocks of C are zero.

        Returns
        -------
        Partition

        Raises
        ------
        ShapeError, UnboundSymbolError
            As for :class:`~screwdyn.physics.quantities.Quantities`.

        Examples
        --------
        The accelerations of passive freedoms while the active ones keep their rates:

        >>> import numpy as np
        >>> import screwdyn as sd
        >>> rod = sd.Inertia.rod(1.0, 1.0, com=(0.5, 0, 0))
        >>> tree = sd.KinematicTree()
        >>> _ = tree.attach(rod, to="base", joint=sd.revolute("y", name="shoulder"), name="upper")
        >>> elbow = sd.revolute("y", passive=True, name="elbow")
        >>> _ = tree.attach(rod, to="upper", joint=elbow, at=(1, 0, 0), name="lower")
        >>> part = tree.partition([0.0, 0.0])
        >>> part.active, part.passive
        (('shoulder',), ('elbow',))
        >>> np.linalg.solve(part.M_pp, -part.g_p)
        array([14.715])
        """
        one = self._frozen()
        model = one.model
        M, C, g = one.dynamics(q, np.zeros(model.nv) if qd is None else qd)
        passive = np.array(model.passive, dtype=bool)
        a, p = np.flatnonzero(~passive), np.flatnonzero(passive)
        blocks: dict[str, Any] = {
            f"{name}_{i}{j}": A[..., rows[:, None], columns]
            for name, A in (("M", M), ("C", C))
            for (i, rows), (j, columns) in product((("a", a), ("p", p)), repeat=2)
        }
        active, passive_ones = (tuple(model.coordinates[i] for i in rows) for rows in (a, p))
        return Partition(active, passive_ones, g_a=g[..., a], g_p=g[..., p], **blocks)


Side = Literal["lower", "upper"]
SIDES: tuple[Side, Side] = ("lower", "upper")
Key = tuple[str, str, str, Side]


class Limits(NamedTuple):
    """Limits of the freedoms of one tree: an entry for each lower and each upper limit, k in all."""

    keys: tuple[Key, ...]  # link, joint, coordinate (that of the joint that is followed) and side
    rows: Indices  # freedoms
    where: Indices  # their positions in q
    sign: Array  # 1 if a limit is passed upwards, −1 if downwards
    values: Array  # positions at the limits, rad or m
    ratio: Array  # rates of the joints divided by those of the freedoms

    @classmethod
    def of(cls, tree: Mechanism, chosen: Callable[[str], bool]) -> Self:
        """Finite limits of the chosen joints, by name."""
        rows = {name: k for k, name in enumerate(tree.coordinates)}
        where = {name: k for k, name in enumerate(tree.positions)}
        keys: list[Key] = []
        entries = []
        for at in tree.topology.attachments.values():
            joint = at.joint
            if joint.limits is None or not chosen(at.name):
                continue
            # Joints with limits have one position for each freedom, and a joint that is followed has one freedom.
            leader, ratio, offset = tree.topology.leaders.get(at.name, (None, 1.0, 0.0))
            names = [*zip(at.coordinates, joint.position_names(at.name), strict=True)]
            for freedom, position in names if leader is None else [(leader, leader)] if ratio else []:
                for side, sign, value in zip(SIDES, (-1, 1), joint.limits, strict=True):
                    if freedom in rows and np.isfinite(value):
                        keys.append((at.link.name, at.name, freedom, side))
                        entries.append(
                            (rows[freedom], where[position], np.sign(ratio) * sign, (value - offset) / ratio, ratio)
                        )
        table = np.array(entries, dtype=float).reshape(-1, 5)
        return cls(tuple(keys), table[:, 0].astype(np.intp), table[:, 1].astype(np.intp), *table[:, 2:].T)

    def excess(self, q: Array) -> Array:
        """Distances beyond the limits, (…, k), rad or m; negative within them."""
        return np.asarray(self.sign * (q[..., self.where] - self.values))

    def approach(self, qd: Array) -> Array:
        """Rates at which the distances grow, (…, k), rad/s or m/s."""
        return np.asarray(self.sign * qd[..., self.rows])


# One link, several, or all.
Links: TypeAlias = Handle | str | Iterable[Handle | str] | None

# A column of a Jacobian is an analytic function with values in a space of six dimensions at most, so that its values at
# six random configurations span all of them, with probability one; twice as many keep them apart.
_CONFIGURATIONS = 12


def system_order(tree: Robot, links: Links = None, *, tol: float = 1e-9) -> int:
    """Order λ ≤ 6 of the screw system of a chain over all configurations (docs/mathematics.md §9).

    The dimension of the space that the joint screws span in the base frame: 3 for a planar or spherical arm, also
    where the screws of one configuration span less. It is that of :meth:`screw_system`, but exists for almost all
    values of symbols even if the system depends on them. Parameters and errors as there.

    Examples
    --------
    >>> import screwdyn as sd
    >>> arm = sd.robots.two_link()
    >>> arm.system_order(), arm.system_order("link1")
    (3, 1)
    """
    return next(_systems(tree.copy(), links, "base", tol)).order


def screw_system(tree: Robot, links: Links = None, frame: Frame = "base", *, tol: float = 1e-9) -> ScrewSystem:
    """The space of the twists of some links over all configurations, in which Jacobians have λ rows.

    docs/mathematics.md §9. Loops are not considered: the configurations are those of the tree. Limits of joints
    have no influence, unless a joint cannot move at all.

    Parameters
    ----------
    links : Handle or str, or iterable of these, optional
        All links by default. A link stands for the chain of joints from the base to it.
    frame : "com", "body", "base" or "mixed"
        As for :meth:`jacobian`. In "base" it is the screw system of the joints. In "com" it is that of the twists
        of ``contribution``, in which the inertia M̄ of a link is constant.
    tol : float
        What is below this fraction of the largest counts as zero. A file whose angles are rounded to 1.5708 needs a
        larger one, such as 1e-4.

    Returns
    -------
    ScrewSystem
        Its ``jacobian`` and ``inertia`` take λ rows of numbers and of closed forms.

    Raises
    ------
    UnknownNameError, StaleHandleError, ShapeError
        If there is no such link, a handle is stale, the frame is unknown, or tol is not between 0 and 1.
    UnboundSymbolError
        If the space depends on the values of symbols.

    Examples
    --------
    >>> import screwdyn as sd
    >>> arm = sd.robots.two_link()
    >>> system = arm.screw_system(frame="com")
    >>> system
    <ScrewSystem of order 3 with components (2, 3, 4)>
    >>> part = arm.contribution("link2", [0.1, 0.2], [0, 0])
    >>> J, M_bar = system.jacobian(part.J), system.inertia(arm.link("link2").inertia.com_matrix)
    >>> J.shape, bool(abs(J.T @ M_bar @ J - part.M.array).max() < 1e-15)
    ((3, 2), True)
    """
    tree = tree.copy()
    systems = _systems(tree, links, frame, tol)
    found = next(systems)
    if tree.model.ready is None:
        other = next(systems)
        if found.components != other.components or not np.allclose(found.basis, other.basis, rtol=0, atol=tol):
            raise UnboundSymbolError(
                f"the screw system, of order {found.order}, depends on the symbols of the tree; give values with "
                "tree.subs({...}), or choose frames in which its axes have no symbols"
            )
    return found


def _systems(tree: Robot, links: Links, frame: Frame, tol: float) -> Iterator[ScrewSystem]:
    """The system, again and again for other values of the symbols."""
    frame_code(frame)
    if not (isinstance(tol, float | int) and 0.0 < tol < 1.0):
        raise ShapeError(f"tol must be a number between 0 and 1; got {tol!r}")
    links = tree.links if links is None else links
    links = links if isinstance(links, Iterable) and not isinstance(links, str) else [links]
    names = [tree.resolve(link) for link in links]
    numeric, rng = tree.model.ready is not None, np.random.default_rng(0)
    poses: Callable[..., Array] = tree.link_poses
    jacobians: list[Callable[..., Array]] = [partial(tree.jacobian, link, frame=frame) for link in names]
    symbols = 0
    if not numeric:
        forms = tree.symbolic()
        symbols, poses = len(forms.parameters), forms.lambdify("link_poses")
        jacobians = [forms.lambdify("jacobian", link=link, frame=frame) for link in names]
    while True:
        q = np.array([tree.random_configuration(rng) for _ in range(_CONFIGURATIONS)])
        values = [rng.uniform(0.3, 1.3, symbols)] if symbols else []
        length = float(np.abs(poses(q, *values)[..., :3, 3]).max(initial=0.0)) or 1.0
        screws = np.zeros((0, 6))
        for jacobian in jacobians:  # R of their QR decomposition spans the same space and has the same singular values
            columns = np.moveaxis(jacobian(q, *values), -1, -2).reshape(-1, 6)
            screws = np.asarray(np.linalg.qr(np.vstack([screws, columns]), mode="r"))
        yield ScrewSystem.of(screws, tol, length)
