"""Configurations that are searched for: of equilibria, and those in which a link has a given pose."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NoReturn

import numpy as np

from screwdyn.core import Array, ArrayLike, Flags, Indices, UnknownNameError, expressions
from screwdyn.core.errors import EquilibriumError, InverseKinematicsError, LoopError, ScrewdynError, ShapeError
from screwdyn.forms.closed_loops import indices
from screwdyn.forms.configurations import Limits
from screwdyn.forms.numbers import one_state
from screwdyn.mechanism.plausible import check_positions
from screwdyn.mechanism.topology import check_untouched
from screwdyn.physics import Robot, by_name
from screwdyn.physics.closure import SLIGHT, Closure
from screwdyn.screws import screw

# Newton steps that close the loops of a configuration that a step or a search leaves.
_CLOSING = 20
# Time after which a search or a run shows its progress unasked, s.
LONG = 10.0


def progress_bar(steps: Iterator[Any] | None = None, *, shown: bool | None = None, **looks: Any) -> Any:
    """A bar of tqdm on stderr, around some steps or to be updated; by default on a terminal, after ten seconds."""
    from tqdm import tqdm

    # There is no stderr under pythonw.
    hidden = sys.stderr is None or not (sys.stderr.isatty() if shown is None else shown)
    return tqdm(steps, disable=hidden, delay=LONG if shown is None else 0.0, **looks)


# Equilibria: configurations in which gravity, springs and constant torques balance (docs/mathematics.md §8)

# Unbalanced force, relative to the forces that act, at which a configuration counts as an equilibrium. Newton's method
# goes on to rounding.
BALANCED = 1e-11
# Half the distance of the two states of a difference quotient of g, rad or m: its error is below 1e-10 of g.
_DIFFERENCE = 1e-5


class Balance:
    """The unbalanced force Zᵀ (g + K (q − rest) − τ) of some freedoms of a tree in k motions, with q̇ = Z ẋ / √s.

    Z = 1 without loops. With closed loops it spans the motions that they allow, ZᵀZ = 1, and turns from one
    configuration to the next. s are the forces at q0, in N m and N (or their rates of change, if these are larger),
    with closed loops the largest one: the entries of the derivative by x are then of order 1, whatever the masses.
    """

    def __init__(self, tree: Robot, free: Indices, tau: Array, q: Array) -> None:
        self.tree, self.free, self.tau = tree, free, tau[free]
        self.springs, self.closure = tree.model.joint_forces, Closure(tree)
        self.closure.check(q)
        self.count = len(free) - (self.closure.factors(q, free, flat=True).rank if tree.loops else 0)
        slightest = SLIGHT * tree.model.weight_bound * np.sqrt(np.diag(tree.mass_matrix(q))[free])
        self.acting, self.s = self._alike(slightest), np.ones(self.count)
        self.at(q)
        self.s = np.where(self.acting > 0, self.acting, max(self.acting.max(initial=0.0), 1e-300))

    def _alike(self, sizes: Array) -> Array:
        """Sizes of forces along all motions: the largest one with closed loops, whose motions turn."""
        return np.full(self.count, sizes.max(initial=0.0)) if self.tree.loops else sizes

    def _jacobian(self, q: Array) -> Array:
        return np.asarray(self.tree.constraint_jacobian(q)[..., self.free])

    def _motions(self, q: Array) -> Array:
        """Z, (number of free freedoms, k)."""
        looped = self.tree.loops
        self.Z = np.linalg.svd(self._jacobian(q))[2][len(self.free) - self.count :].T if looped else np.eye(self.count)
        return self.Z

    def _forces(self, q: Array) -> Array:
        """g + K (q − rest) − τ of the free freedoms."""
        return np.asarray((self.tree.gravity_vector(q) - self.springs.spring_force(q))[self.free] - self.tau)

    def force(self, q: Array) -> Array:
        """Zᵀ r, (k,)."""
        return np.asarray(self._motions(q).T @ self._forces(q))

    def at(self, q: Array) -> tuple[Array, Array]:
        """Zᵀ r, and Zᵀ (∂r/∂q − ∂J_cᵀ/∂q λ) Z with J_cᵀ λ = r, both divided by √s."""
        Z, r, space = self._motions(q), self._forces(q), self.tree.model.configurations
        steps = np.zeros((2, self.count, self.tree.nv))
        steps[..., self.free] = _DIFFERENCE * np.stack([Z.T, -Z.T])
        ends = space.integrate(np.broadcast_to(q, (2, self.count, len(q))), steps)
        forces = self.tree.gravity_vector(ends)[..., self.free]
        if self.tree.loops:
            forces = forces - self.closure.factors(q, self.free, flat=True).multipliers(r) @ self._jacobian(ends)
        by = Z.T @ ((forces[0] - forces[1]).T / (2 * _DIFFERENCE) + self.springs.stiffness[self.free, None] * Z)
        terms = np.abs(r) + np.abs(self.tau) + np.abs(self.springs.spring_force(q)[self.free])
        size = np.abs(Z.T) @ terms + np.abs(by).max(axis=1, initial=0.0)
        self.acting, root = self._alike(np.maximum(self.acting, size)), np.sqrt(self.s)
        return Z.T @ r / root, by / np.outer(root, root)

    def moved(self, q: Array, x: Array) -> Array:
        """The configuration beyond q by a step x, with closed loops; LoopError if there is none."""
        v = np.zeros(self.tree.nv)
        v[self.free] = self._motions(q) @ (x / np.sqrt(self.s))
        q = self.tree.model.configurations.integrate(q, v)
        q, _ = self.closure.assembled(q, self.free, flat=True, steps=_CLOSING)
        self.closure.check(q)
        return q

    def work(self, q: Array, x: Array) -> float:
        """Energy that gravity and springs gain in a step x, minus the work of τ."""
        both = np.stack([q, self.moved(q, x)])
        energies = self.tree.potential_energy(both) + self.springs.spring_energy(both)
        along = self.tree.model.configurations.difference(*both)[self.free] if self.tree.loops else x / np.sqrt(self.s)
        return float(energies[1] - energies[0] - self.tau @ along)

    def excess(self, q: Array) -> Array:
        """The unbalanced force relative to the largest forces that have acted, (k,)."""
        return np.abs(self.force(q)) / np.maximum(self.acting, 1e-300)

    def require(self, q: Array) -> Array:
        """q, if the forces balance there; EquilibriumError otherwise."""
        excess, r = self.excess(q), self.force(q)
        if (excess <= BALANCED).all():
            return q
        i = int(np.argmax(excess))
        if self.tree.loops:
            what = f"{r[i]:.6g} is unbalanced in a motion of the closed loops, mostly of {self.name(i)!r}"
        else:
            needed, given = r[i] + self.tau[i], self.tau[i]
            what = f"{self.name(i)!r} needs {needed:.6g} against its weight and spring, and gets {given:.6g}"
        raise EquilibriumError(
            f"no equilibrium was found from q0: where the search ends, {what}; change the force, add a spring, or "
            f"start elsewhere"
        )

    def unbounded(self, i: int) -> NoReturn:
        """The error for a freedom that moves without bound."""
        k = self.freedom(i)
        if self.tau[k]:
            cause, remedy = f" under its force of {self.tau[k]:.6g}", "give it another force, or a spring"
        elif self.tree.model.passive[self.free[k]]:
            cause, remedy = "", "give it a spring, or make it active"
        else:
            cause, remedy = "", "give it a force or a spring"
        raise EquilibriumError(
            f"there is no equilibrium: nothing holds {self.name(i)!r}, which moves without bound{cause}; {remedy}"
        )

    def freedom(self, i: int) -> int:
        """The freedom that moves most along a coordinate, among the free ones."""
        return int(np.argmax(np.abs(self.Z[:, i])))

    def name(self, i: int) -> str:
        """Name of that freedom."""
        return self.tree.coordinates[int(self.free[self.freedom(i)])]


# Curvature, relative to the forces, below which a freedom is indifferent.
_FLAT = 1e-8
# First radius of the descent; radius at which Newton's method for the forces takes over; travel that counts as without
# bound; rad or m.
_FIRST_RADIUS, _NEAR, _FAR = 0.5, 1e-6, 1e6
_MOST_STEPS = 500
# Newton step along an axis of negative curvature, rad or m, below which the equilibrium there is left.
_BESIDE = 1e-5
# Unbalanced force of a passive freedom, relative to the forces that act, above which nothing holds a configuration.
_HELD = 1e-6


def equilibrium(tree: Robot, q0: ArrayLike, tau: ArrayLike | Mapping[str, ArrayLike] | None = None) -> Array:
    """A configuration at rest: g(q) + K (q − rest) = τ (docs/mathematics.md §8).

    Without ``tau``, the active freedoms keep their positions of ``q0``, and the passive ones move to a stable
    equilibrium: to a minimum of the energy of gravity and springs, by descent from ``q0``.

    With ``tau``, all freedoms move to the nearest solution, stable or not, by Newton's method from ``q0``; where the
    unbalanced force has no root nearby, to a stable equilibrium by descent of the energy.

    Parameters
    ----------
    q0 : (nq,) array
        Start of the search, rad and m.
    tau : (nv,) or (number of active freedoms,) array, or mapping from coordinate to number, optional
        Constant forces of the active joints, N m or N. Coordinates that a mapping omits have none. The force on a
        freedom of a spherical, free or planar joint turns with its link.

    Returns
    -------
    (nq,) array
        The unbalanced force is that of rounding. Joint limits are not considered, nor dry friction.

    Raises
    ------
    LoopError
        If closed loops are open in ``q0``; ``tree.assemble`` closes them.
    EquilibriumError
        If none is found, such as for a torque that exceeds the greatest moment of the weight, or a slide that nothing
        holds. The message names the freedom.
    JointError
        If there is a force on a passive joint.
    ShapeError, UnknownNameError, UnboundSymbolError
        For wrong arrays or names, or if numbers of the tree contain symbols.

    Warns
    -----
    ScrewdynWarning
        For ``q0``, as for :class:`State`.

    Notes
    -----
    ∂g/∂q is a central difference of g. It guides the search; the result does not depend on its error.
    """
    check_untouched(tree.topology, "equilibrium")
    tree = tree.copy()
    q = _configuration(tree, "q0", q0)
    check_positions(tree.topology, q)
    if tau is None:
        return stable_equilibrium(tree, q, itertools.compress(tree.coordinates, tree.model.passive))
    balance = Balance(tree, np.arange(tree.nv), _torques(tree, tau), q)
    found = _root(balance, _lowest(balance, q, _unbalance))
    near = (balance.excess(found) <= BALANCED).all()
    return found if near else balance.require(_root(balance, _lowest(balance, q, _energy)))


def stable_equilibrium(tree: Robot, q0: ArrayLike, freedoms: Iterable[str]) -> Array:
    """The positions, (nq,), at a minimum of the energy of gravity and springs over some freedoms; the others keep q0.

    Parameters
    ----------
    tree : KinematicTree
    q0 : (nq,) array
        Start of the descent, rad and m. An unstable equilibrium is left.
    freedoms : names of coordinates

    Raises
    ------
    EquilibriumError
        If there is no minimum, such as for a slide that nothing holds; the message names the freedom.
    ShapeError, UnboundSymbolError
        For a wrong ``q0``, or if numbers of the tree contain symbols.
    """
    q = _configuration(tree, "q0", q0)
    moving = np.array([tree.coordinates.index(x) for x in freedoms], dtype=np.intp)
    balance = Balance(tree, moving, np.zeros(tree.nv), q)
    return balance.require(_root(balance, _lowest(balance, q, _energy)))


def holding_torque(tree: Robot, q: ArrayLike) -> Array:
    """The torques that hold a configuration at rest, τ = g(q) + K (q − rest), (nv,), N m or N (docs/mathematics.md §8).

    The inverse of :meth:`equilibrium`: ``tree.equilibrium(q, tree.holding_torque(q))`` is q.

    Parameters
    ----------
    q : (nq,) array
        rad and m.

    Returns
    -------
    (nv,) array
        Zero for passive freedoms.

    Raises
    ------
    EquilibriumError
        If a passive freedom does not balance, to 1e-6 of the forces that act on it, or to 1e-8 of the largest weight
        that it could have; the message names it.
    ShapeError, UnboundSymbolError
        For a wrong ``q``, or if numbers of the tree contain symbols.
    """
    check_untouched(tree.topology, "holding_torque")
    tree = tree.copy()
    q = _configuration(tree, "q", q)
    passive = np.array(tree.model.passive, dtype=bool)
    if tree.loops:
        return _holding_loops(tree, q, ~passive)
    balance = Balance(tree, np.flatnonzero(passive), np.zeros(tree.nv), q)
    if (unbalanced := balance.excess(q) > _HELD).any():
        i = int(np.argmax(unbalanced))
        raise EquilibriumError(
            f"no torques hold this configuration: the passive freedom {balance.name(i)!r} needs "
            f"{balance.force(q)[i]:.6g} against its weight and spring; let it hang first: q = tree.equilibrium(q)"
        )
    return np.where(passive, 0.0, tree.gravity_vector(q) - tree.model.joint_forces.spring_force(q))


def _holding_loops(tree: Robot, q: Array, active: Flags) -> Array:
    """The shortest torques that hold closed loops: the loops transmit the rest (docs/mathematics.md §12)."""
    closure = Closure(tree)
    closure.check(q)
    factors, force = closure.factors(q), tree.gravity_vector(q) - tree.model.joint_forces.spring_force(q)
    tau = factors.motor_forces(force, active)
    if (left := factors.missing(force, tau, tree.model.weight_bound)) > _HELD:
        raise EquilibriumError(
            f"no torques of the motors hold this configuration of the closed loops: {left:.3g} of its weight and "
            f"springs is left in some motion; let it hang first: q = tree.equilibrium(q)"
        )
    return tau


def _configuration(tree: Robot, name: str, values: ArrayLike) -> Array:
    (q,) = one_state(tree.model, **{name: values})
    return tree.model.configurations.normalized(q.copy())


def _torques(tree: Robot, tau: ArrayLike | Mapping[str, ArrayLike]) -> Array:
    """Forces of all freedoms, (nv,)."""
    model, names = tree.model, tree.coordinates
    if isinstance(tau, Mapping):
        given = by_name(tree, "tau", tau, names)
        tau = [given.get(name, 0.0) for name in names]
    return one_state(model, tau=model.torques(tau))[0]


# The slope and curvature of a function at a configuration, and its true change in a step.
_Local = tuple[Array, Array, Callable[[Array], float]]


def _energy(balance: Balance, q: Array) -> _Local:
    """The energy minus the work of τ: its minima are the stable equilibria."""
    r, K = balance.at(q)
    return r, (K + K.T) / 2, lambda x: balance.work(q, x)


def _unbalance(balance: Balance, q: Array) -> _Local:
    """½ |r|²: it is zero in every equilibrium."""
    r, K = balance.at(q)

    def change(x: Array) -> float:
        beyond = balance.force(balance.moved(q, x)) / np.sqrt(balance.s)
        return float(0.5 * (beyond - r) @ (beyond + r))

    return K.T @ r, K.T @ K, change


def _lowest(balance: Balance, q: Array, function: Callable[[Balance, Array], _Local]) -> Array:
    """A configuration near a minimum of a function, by descent from q; an error if a freedom moves without bound.

    Each step is that of Newton's method with the absolute curvatures (Nocedal and Wright, *Numerical Optimization*,
    2006, §3.4), within a radius that adapts.
    """
    root, radius, travel = np.sqrt(balance.s), _FIRST_RADIUS, np.zeros(balance.count)
    steps = iter(range(_MOST_STEPS if balance.count else 0))
    for _ in progress_bar(steps, desc="search of an equilibrium", unit=" steps", leave=False):
        slope, curvature, change = function(balance, q)
        w, axes = np.linalg.eigh(curvature)
        c = axes.T @ slope
        steep = np.abs(c) > BALANCED * root.max()
        x = np.where(steep, -c / np.maximum(np.abs(w), _FLAT), 0.0)
        # From an unstable equilibrium, or beside one, along the axes of negative curvature. Beside one, the curvature
        # must also exceed the rounding of the forces that are largest.
        unit = np.abs(axes / root[:, None]).max(axis=0)  # rad or m of a unit of x along each axis
        beside = (np.abs(x) * unit < _BESIDE) & (w < -_FLAT * (unit * root.max()) ** 2)
        unstable = (w < -_FLAT) & (beside | ~steep)
        x[unstable] = np.where(steep & (c > 0.0), -radius, radius)[unstable] * root.max()
        longest = np.abs(axes @ x / root).max()
        radius = min(radius, longest)
        if radius < _NEAR:
            break
        x *= radius / longest
        gain, step, gained = -(c @ x + 0.5 * w @ (x * x)), axes @ x, -np.inf
        with suppress(LoopError):  # closed loops cannot follow every step
            gained = -change(step)
        if gained > 0.1 * gain:
            q, travel, radius = balance.moved(q, step), travel + step / root, 2 * radius
        else:
            radius /= 4
        if (np.abs(travel) > _FAR).any():
            balance.unbounded(int(np.argmax(np.abs(travel))))
    return q


def _root(balance: Balance, q: Array) -> Array:
    """The equilibrium next to q by Newton's method, to rounding; or the last configuration that approaches one."""
    found, excess = q, np.inf
    while (left := balance.excess(q).max(initial=0.0)) < 0.5 * excess:
        found, excess = q, left
        r, K = balance.at(q)
        left_axes, w, axes = np.linalg.svd(K)
        x = np.divide(left_axes.T @ r, w, out=np.zeros_like(r), where=w > _FLAT)
        q = balance.moved(q, -axes.T @ x)
    return found


# Inverse kinematics: configurations within the joint limits in which a link has a given pose

# Largest number of steps of one search; damping relative to the largest diagonal entry of JᵀJ, at the start and where a
# search ends.
_MOST_TRIALS, _DAMPING, _STUCK = 200, 1e-3, 1e12
# Step at which a search ends, rad or m: more than that changes only the rounding.
_SMALL = 1e-15
# Decrease of |e|² in a step, relative to it, at which a search is given up beside the target, and at which the nearest
# configuration is final.
_SLOW, _FINAL = 1e-5, 1e-14
# Distance from a limit at which a freedom counts as being there, rad or m.
_STOPPED = 1e-6
# Gap of closed loops in a result, m and rad; how much more a gap counts than an error of the pose where no
# configuration has the pose.
_CLOSED, _STIFF = 1e-12, 1e3
_TURN = 2 * np.pi


def inverse_kinematics(
    tree: Robot,
    link: str,
    pose: ArrayLike,
    q0: ArrayLike | None = None,
    *,
    freedoms: Iterable[str] | None = None,
    tolerance: float = 1e-9,
    searches: int = 20,
) -> Array:
    """A configuration within the joint limits in which a link has a pose, near q0 if possible.

    Damped least squares: each step minimises ``|e − J δ|² + λ |δ|²`` within the limits, where e are the error of the
    position and, times a length, the rotation vector of the error of the orientation, and λ adapts (Nielsen's rule). If
    the search from q0 ends elsewhere, others begin at random configurations, the same in every call. The gaps of
    closed loops are errors too: q0 need not close them, and a result does.

    Parameters
    ----------
    link : str
    pose : (4, 4) or (3,) array
        Pose of the link's frame in the base, or the position of its origin, m; the orientation is then free.
    q0 : (nq,) array, optional
        Start of the search, rad and m, moved into the limits; neutral by default.
    freedoms : names of coordinates, optional
        The others keep their positions of q0. By default the active freedoms. The passive freedoms in closed loops
        follow in any case.
    tolerance : float
        Largest error of a result, m and rad. Most results are exact to rounding.
    searches : int
        Largest number of searches.

    Returns
    -------
    (nq,) array
        Other solutions may exist, such as those of another elbow: they are found from other q0.

    Raises
    ------
    InverseKinematicsError
        If no search finds the pose. The error has the nearest configuration that was found, ``q``, and its
        ``position_error`` (m) and ``angle_error`` (rad); the message names the freedoms that are at their limits.
    ShapeError, UnknownNameError, UnboundSymbolError
        For wrong arrays or names, or if numbers of the tree contain symbols.

    Warns
    -----
    ScrewdynWarning
        For ``q0``, as for :class:`State`.

    Notes
    -----
    The nearest configuration minimises ``|e|²``. The length that multiplies the angle is that of the chain of links, in
    q0.

    Examples
    --------
    >>> import numpy as np
    >>> import screwdyn as sd
    >>> arm = sd.robots.ur5()
    >>> pose = arm.forward_kinematics("tool0", [0.3, -1.2, 1.5, -0.4, 1.2, 0.1])
    >>> q = arm.inverse_kinematics("tool0", pose, q0=[0, -1, 1, 0, 1, 0])
    >>> bool(np.allclose(arm.forward_kinematics("tool0", q), pose, rtol=0, atol=1e-9))
    True
    """
    tree = tree.copy()
    UnknownNameError.check(link, tree.model.placements)
    given = (pose := tree.model.numbers("pose", pose)).shape
    if given not in ((4, 4), (3,)):
        raise ShapeError(f"pose must be a 4x4 matrix, or three numbers for a position alone; got shape {given}")
    (q,) = one_state(tree.model, q0=tree.model.configurations.neutral if q0 is None else q0)
    check_positions(tree.topology, q)
    if not searches >= 1 or not tolerance > 0:
        raise ScrewdynError(f"searches must be at least 1 and tolerance positive; got {searches} and {tolerance}")
    moving = tree.active if freedoms is None else [tree.coordinates[k] for k in indices(tree.model, freedoms)]
    target = _Target(tree, link, screw.as_pose(pose), given == (4, 4), q, moving)
    rng, found = np.random.default_rng(0), []
    for k in range(searches):
        end = _search(target, target.limited(q if k == 0 else target.elsewhere(q, rng)))
        while max(target.misses(end)) > tolerance and (same := target.turned_back(end)) is not None:
            further = _search(target, same)
            if not target.distance(further) < 0.99 * target.distance(end):
                break
            end = further
        found.append(target.closure.assembled(end, target.free, flat=True, steps=_CLOSING)[0])
        position, angle = target.misses(found[-1])
        if max(position, angle) <= tolerance and target.gap(found[-1]) <= _CLOSED:
            return found[-1]
        if not len(target.free):
            break
    target.stiffness = _STIFF
    nearest = _search(target, min(found, key=target.distance), _FINAL)
    nearest, _ = target.closure.assembled(nearest, target.free, flat=True, steps=_CLOSING)
    position, angle = target.misses(nearest)
    orientation = f" and {angle:.3g} rad" if target.oriented else ""
    stopped = ", ".join(target.stopped(nearest))
    ajar = f"; its loops are open by {gap:.3g} m or rad" if (gap := target.gap(nearest)) > _CLOSED else ""
    raise InverseKinematicsError(
        f"no configuration was found in which {link!r} has this {'pose' if target.oriented else 'position'}: the "
        f"nearest of {len(found)} searches misses it by {position:.3g} m{orientation}"
        f"{f', with {stopped} at the limits' if stopped else ''}{ajar}; choose a pose within reach"
        f"{'' if freedoms is None else ', or more freedoms'}"
        f"{', or give three numbers to leave the orientation free' if target.oriented else ''} (the error has the "
        f"nearest configuration as its q)",
        nearest,
        position,
        angle,
    )


class _Target:
    """The errors of one link against a pose, over the freedoms that move it, and their limits.

    ``stiffness`` is how much more the gap of a loop counts than an error of the pose.
    """

    def __init__(self, tree: Robot, link: str, pose: Array, oriented: bool, q0: Array, moving: Iterable[str]) -> None:
        self.tree, self.link, self.pose, self.oriented = tree, link, pose, oriented
        self.closure, self.stiffness = Closure(tree), 1.0
        looped = {x for loop in self.closure.loops for end in (loop.link, loop.to) for x in tree.model.path(end)}
        passive = set(itertools.compress(tree.coordinates, tree.model.passive))
        free = ({*moving} & ({*tree.model.path(link)} | looped)) | (looped & passive)
        self.free: Indices = np.flatnonzero([name in free for name in tree.coordinates])
        self.lower, self.upper = np.full((2, tree.nv), [[-np.inf], [np.inf]])
        limits = Limits.of(tree, lambda joint: True)
        self.where = np.full(tree.nv, -1)
        self.where[limits.rows], up = limits.where, limits.sign > 0
        np.minimum.at(self.upper, limits.rows[up], limits.values[up])
        np.maximum.at(self.lower, limits.rows[~up], limits.values[~up])
        turning = _turning(tree)
        self.periodic = np.array([name in turning for name in tree.coordinates], dtype=bool)
        # The sum of the distances between the origins of the links on the path, m.
        origins = dict(zip(tree.links, tree.link_poses(q0)[:, :3, 3], strict=True))
        inward = itertools.pairwise(reversed(tree.path(link)))
        self.length = sum(float(np.linalg.norm(origins[a] - origins[b])) for a, b in inward) or 1.0

    def errors(self, q: Array) -> tuple[Array, Array]:
        """Rotation vector and translation from the link's pose to the target, in axes of the base, (3,) and (3,)."""
        T = self.tree.forward_kinematics(self.link, q)
        turn = screw.log_of(screw.pose(self.pose[:3, :3] @ T[:3, :3].T, np.zeros(3)))[:3]
        return (turn if self.oriented else np.zeros(0)), self.pose[:3, 3] - T[:3, 3]

    def error(self, q: Array) -> Array:
        """e, (6,) or (3,), m, followed by the gaps of closed loops, m and rad."""
        turn, travel = self.errors(q)
        return np.concatenate([self.length * turn, travel, -self.stiffness * self.closure.gap(q)])

    def distance(self, q: Array) -> float:
        """|e|, m."""
        return float(np.linalg.norm(self.error(q)))

    def jacobian(self, q: Array) -> Array:
        """J, with −Jᵀ e the slope of ½ |e|²: exact, although −J is ∂e/∂q only where the orientations agree."""
        J = self.tree.jacobian(self.link, q, "mixed")[:, self.free]
        opening = self.stiffness * self.tree.constraint_jacobian(q)[:, self.free]
        return np.concatenate([self.length * J[: 3 * self.oriented], J[3:], opening])

    def misses(self, q: Array) -> tuple[float, float]:
        """Errors of position and angle, m and rad."""
        turn, travel = self.errors(q)
        return float(np.linalg.norm(travel)), float(np.linalg.norm(turn))

    def gap(self, q: Array) -> float:
        """The largest entry of the gap of the closed loops, m and rad."""
        return float(np.abs(self.closure.gap(q)).max(initial=0.0))

    def room(self, q: Array) -> tuple[Array, Array]:
        """How far the free freedoms may move down and up, (k,) and (k,), rad and m."""
        here = q[self.where[self.free]]
        return np.minimum(self.lower[self.free] - here, 0.0), np.maximum(self.upper[self.free] - here, 0.0)

    def moved(self, q: Array, step: Array) -> Array:
        """The configuration beyond q by a step of the free freedoms."""
        v = np.zeros(self.tree.nv)
        v[self.free] = step
        return self.tree.model.configurations.integrate(q, v)

    def limited(self, q: Array) -> Array:
        """The nearest configuration within the limits of the free freedoms."""
        q, bounded = q.copy(), self.free[self.where[self.free] >= 0]
        where = self.where[bounded]
        q[where] = np.clip(q[where], self.lower[bounded], self.upper[bounded])
        return q

    def elsewhere(self, q: Array, rng: np.random.Generator) -> Array:
        """q with random positions of the free freedoms."""
        space = self.tree.model.configurations
        return self.moved(q, space.difference(q, space.random(rng))[self.free])

    def turned_back(self, q: Array) -> Array | None:
        """The same pose with freedoms at a limit turned by whole turns towards the middle; None if none can turn."""
        down, up = self.room(q)
        lower, upper = self.lower[self.free], self.upper[self.free]
        stopped = ((down > -_STOPPED) | (up < _STOPPED)) & (upper - lower > _TURN - _STOPPED) & self.periodic[self.free]
        if not stopped.any():
            return None
        # By one turn if the range is open on the other side.
        room = np.where(up < _STOPPED, -down, up)
        turns = np.where(np.isfinite(room), np.maximum(1, np.round(0.5 * room / _TURN)), 1)
        step = np.where(stopped, _TURN * turns, 0.0)
        return self.limited(self.moved(q, np.where(up < _STOPPED, -step, step)))

    def stopped(self, q: Array) -> list[str]:
        """Names of the freedoms at their limits."""
        down, up = self.room(q)
        names = [repr(self.tree.coordinates[i]) for i in self.free]
        return list(itertools.compress(names, (down > -_STOPPED) | (up < _STOPPED)))


def _turning(tree: Robot) -> set[str]:
    """Names of the freedoms of which a whole turn changes no pose: rotations that no joint follows."""
    attached = tree.topology.attachments.values()
    followed = {leader for leader, *_ in tree.topology.leaders.values()}
    return {
        name
        for at in attached
        if at.joint.nv and at.joint.chart is None and at.name not in followed
        for name, S in zip(at.coordinates, expressions.floats(at.joint.screws, "a screw").T, strict=True)
        if S[:3].any() and abs(screw.pitch(S)) < _STOPPED
    }


def _search(target: _Target, q: Array, slow: float = _SLOW) -> Array:
    """The end of the descent of ½ |e|² from q; ``slow`` is the relative decrease in a step at which it ends."""
    e, J = target.error(q), target.jacobian(q)
    damping, growth = _DAMPING, 2.0
    for _ in range(_MOST_TRIALS if len(target.free) else 0):
        scale = float(np.einsum("ij,ij->j", J, J).max())
        if damping > _STUCK or not scale:
            break
        step = _step(J, e, damping * scale, *target.room(q))
        if np.abs(step).max() < _SMALL:
            break
        ahead = target.moved(q, step)
        there = target.error(ahead)
        gain, predicted = float(e @ e - there @ there), float(e @ e - np.sum((e - J @ step) ** 2))
        if gain > 0.0:
            q, e, J = ahead, there, target.jacobian(ahead)
            if gain < slow * (e @ e):
                break
            damping *= max(1 / 3, 1 - (2 * gain / predicted - 1) ** 3) if predicted > 0 else 1.0
            growth = 2.0
        else:
            damping, growth = damping * growth, 2 * growth
    return q


def _step(J: Array, e: Array, damping: float, down: Array, up: Array) -> Array:
    """The minimum of |e − J δ|² + damping |δ|² where no bound is active; entries that pass a bound stop there."""
    step, inside = np.zeros(len(down)), np.ones(len(down), dtype=bool)
    while inside.any():
        K = J[:, inside]
        rest = e - J[:, ~inside] @ step[~inside]
        stacked = np.concatenate([K, np.sqrt(damping) * np.eye(K.shape[1])])
        step[inside] = np.linalg.lstsq(stacked, np.concatenate([rest, np.zeros(K.shape[1])]))[0]
        beyond = inside & ((step < down) | (step > up))
        if not beyond.any():
            break
        step[beyond], inside = np.clip(step, down, up)[beyond], inside & ~beyond
    return step
