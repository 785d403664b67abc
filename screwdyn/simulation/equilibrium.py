"""Equilibria: configurations in which gravity, springs and constant torques balance (docs/mathematics.md §8)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from screwdyn.core.errors import EquilibriumError, ShapeError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.mechanism.loops import check_open
from screwdyn.physics.robot import Robot
from screwdyn.simulation.state import by_name

__all__ = ["equilibrium", "holding_torque", "stable_equilibrium"]

Indices = npt.NDArray[np.intp]

# Half the distance of the two states of a difference quotient of g, rad or m: its error is below 1e-10 of g.
_DIFFERENCE = 1e-5
# Unbalanced force, relative to the forces that act, at which a configuration counts as an equilibrium. Newton's method
# goes on to rounding.
_BALANCED = 1e-11
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
    tree : KinematicTree
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
    EquilibriumError
        If none is found, such as for a torque that exceeds the greatest moment of the weight, or a slide that nothing
        holds. The message names the freedom.
    JointError
        If there is a force on a passive joint.
    ShapeError, UnknownNameError, UnboundSymbolError
        For wrong arrays or names, or if numbers of the tree contain symbols.

    Notes
    -----
    ∂g/∂q is a central difference of g. It guides the search; the result does not depend on its error.
    """
    if tau is None:
        return stable_equilibrium(tree, q0, itertools.compress(tree.coordinates, tree.model.passive))
    q = _configuration(tree, "q0", q0)
    balance = _Balance(tree, np.arange(tree.nv), _torques(tree, tau), q)
    found = _root(balance, _lowest(balance, q, _unbalance))
    return found if balance.holds(found) else balance.require(_root(balance, _lowest(balance, q, _energy)))


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
    balance = _Balance(tree, moving, np.zeros(tree.nv), q)
    return balance.require(_root(balance, _lowest(balance, q, _energy)))


def holding_torque(tree: Robot, q: ArrayLike) -> Array:
    """The torques that hold a configuration at rest, τ = g(q) + K (q − rest), (nv,), N m or N (docs/mathematics.md §8).

    The inverse of :func:`equilibrium`: ``equilibrium(tree, q, holding_torque(tree, q))`` is q.

    Parameters
    ----------
    tree : KinematicTree
    q : (nq,) array
        rad and m.

    Returns
    -------
    (nv,) array
        Zero for passive freedoms.

    Raises
    ------
    EquilibriumError
        If a passive freedom does not balance, to 1e-6 of the forces that act on it; the message names it.
    ShapeError, UnboundSymbolError
        For a wrong ``q``, or if numbers of the tree contain symbols.
    """
    q = _configuration(tree, "q", q)
    passive = np.array(tree.model.passive, dtype=bool)
    balance = _Balance(tree, np.flatnonzero(passive), np.zeros(tree.nv), q)
    if (unbalanced := balance.excess(q) > _HELD).any():
        i = int(np.argmax(unbalanced))
        raise EquilibriumError(
            f"no torques hold this configuration: the passive freedom {balance.name(i)!r} needs "
            f"{balance.force(q)[i]:.6g} against its weight and spring; let it hang first: q = tree.equilibrium(q)"
        )
    return np.where(passive, 0.0, tree.gravity_vector(q) - tree.model.joint_forces.spring_force(q))


def _configuration(tree: Robot, name: str, values: ArrayLike) -> Array:
    check_open(tree.topology, "an equilibrium")
    (q,), batch = tree.model.flat(**{name: values})
    if batch:
        raise ShapeError(f"{name} must be one configuration, ({tree.nq},); got a batch of shape {batch}")
    return tree.model.configurations.normalized(q.copy())


def _torques(tree: Robot, tau: ArrayLike | Mapping[str, ArrayLike]) -> Array:
    """Forces of all freedoms, (nv,)."""
    model, names = tree.model, tree.coordinates
    if isinstance(tau, Mapping):
        given = by_name(tree, "tau", tau, names)
        tau = [given.get(name, 0.0) for name in names]
    (forces,), batch = model.flat(tau=model.torques(tau))
    if batch:
        raise ShapeError(f"tau must be one state's forces, ({tree.nv},); got a batch of shape {batch}")
    return forces


class _Balance:
    """The unbalanced force r = g + K (q − rest) − τ of k freedoms of a tree, in coordinates x = √s q.

    s are the forces at q0, in N m and N (or their rates of change, if these are larger): the entries of ∂r/∂x are then
    of order 1, whatever the masses.
    """

    def __init__(self, tree: Robot, free: Indices, tau: Array, q: Array) -> None:
        self.tree, self.free, self.tau = tree, free, tau[free]
        self.springs = tree.model.joint_forces
        self.acting, self.s = np.zeros(len(free)), np.ones(len(free))
        self.at(q)
        self.s = np.where(self.acting > 0, self.acting, max(self.acting.max(initial=0.0), 1e-300))

    def force(self, q: Array) -> Array:
        """r, (k,)."""
        weight, spring = self.tree.gravity_vector(q), self.springs.spring_force(q)
        return np.asarray((weight - spring)[self.free] - self.tau)

    def at(self, q: Array) -> tuple[Array, Array]:
        """r and ∂r/∂x, both divided by √s."""
        r, count = self.force(q), len(self.free)
        steps = np.zeros((2, count, self.tree.nv))
        steps[0, range(count), self.free], steps[1, range(count), self.free] = _DIFFERENCE, -_DIFFERENCE
        space = self.tree.model.configurations
        ahead, behind = self.tree.gravity_vector(space.integrate(np.broadcast_to(q, (2, count, len(q))), steps))
        by = (ahead - behind)[:, self.free].T / (2 * _DIFFERENCE) + np.diag(self.springs.stiffness[self.free])
        spring = np.abs(self.springs.spring_force(q)[self.free])
        size = np.abs(r) + np.abs(self.tau) + spring + np.abs(by).max(axis=1, initial=0.0)
        self.acting = np.maximum(self.acting, size)
        root = np.sqrt(self.s)
        return r / root, by / np.outer(root, root)

    def moved(self, q: Array, x: Array) -> Array:
        """The configuration beyond q by a step x."""
        v = np.zeros(self.tree.nv)
        v[self.free] = x / np.sqrt(self.s)
        return self.tree.model.configurations.integrate(q, v)

    def work(self, q: Array, x: Array) -> float:
        """Energy that gravity and springs gain in a step x, minus the work of τ."""
        both = np.stack([q, self.moved(q, x)])
        energies = self.tree.potential_energy(both) + self.springs.spring_energy(both)
        return float(energies[1] - energies[0] - self.tau @ (x / np.sqrt(self.s)))

    def excess(self, q: Array) -> Array:
        """|r| relative to the largest forces that have acted, (k,)."""
        return np.abs(self.force(q)) / np.maximum(self.acting, 1e-300)

    def holds(self, q: Array) -> bool:
        """Whether the forces at q balance."""
        return bool((self.excess(q) <= _BALANCED).all())

    def require(self, q: Array) -> Array:
        """q, if the forces balance there; EquilibriumError otherwise."""
        if self.holds(q):
            return q
        i = int(np.argmax(self.excess(q)))
        needed, given = self.force(q)[i] + self.tau[i], self.tau[i]
        raise EquilibriumError(
            f"no equilibrium was found from q0: where the search ends, {self.name(i)!r} needs {needed:.6g} against "
            f"its weight and spring, and gets {given:.6g}; change the force, add a spring, or start elsewhere"
        )

    def unbounded(self, i: int) -> NoReturn:
        """The error for a freedom that moves without bound."""
        if self.tau[i]:
            cause, remedy = f" under its force of {self.tau[i]:.6g}", "give it another force, or a spring"
        elif self.tree.model.passive[self.free[i]]:
            cause, remedy = "", "give it a spring, or make it active"
        else:
            cause, remedy = "", "give it a force or a spring"
        raise EquilibriumError(
            f"there is no equilibrium: nothing holds {self.name(i)!r}, which moves without bound{cause}; {remedy}"
        )

    def name(self, i: int) -> str:
        """Name of a freedom."""
        return self.tree.coordinates[int(self.free[i])]


# The slope and curvature of a function at a configuration, and its true change in a step.
_Local = tuple[Array, Array, Callable[[Array], float]]


def _energy(balance: _Balance, q: Array) -> _Local:
    """The energy minus the work of τ: its minima are the stable equilibria."""
    r, K = balance.at(q)
    return r, (K + K.T) / 2, lambda x: balance.work(q, x)


def _unbalance(balance: _Balance, q: Array) -> _Local:
    """½ |r|²: it is zero in every equilibrium."""
    r, K = balance.at(q)

    def change(x: Array) -> float:
        beyond = balance.force(balance.moved(q, x)) / np.sqrt(balance.s)
        return float(0.5 * (beyond - r) @ (beyond + r))

    return K.T @ r, K.T @ K, change


def _lowest(balance: _Balance, q: Array, function: Callable[[_Balance, Array], _Local]) -> Array:
    """A configuration near a minimum of a function, by descent from q.

    Each step is that of Newton's method with the absolute curvatures (Nocedal and Wright, *Numerical Optimization*,
    2006, §3.4), within a radius that adapts.

    Raises
    ------
    EquilibriumError
        If a freedom moves without bound.
    """
    root, radius, travel = np.sqrt(balance.s), _FIRST_RADIUS, np.zeros(len(balance.free))
    for _ in range(_MOST_STEPS if len(balance.free) else 0):
        slope, curvature, change = function(balance, q)
        w, axes = np.linalg.eigh(curvature)
        c = axes.T @ slope
        steep = np.abs(c) > _BALANCED * root.max()
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
        gain, step = -(c @ x + 0.5 * w @ (x * x)), axes @ x
        if -change(step) > 0.1 * gain:
            q, travel, radius = balance.moved(q, step), travel + step / root, 2 * radius
        else:
            radius /= 4
        if (np.abs(travel) > _FAR).any():
            balance.unbounded(int(np.argmax(np.abs(travel))))
    return q


def _root(balance: _Balance, q: Array) -> Array:
    """The equilibrium next to q by Newton's method, to rounding; or the last configuration that approaches one."""
    found, excess = q, np.inf
    while (left := balance.excess(q).max(initial=0.0)) < 0.5 * excess:
        found, excess = q, left
        r, K = balance.at(q)
        left_axes, w, axes = np.linalg.svd(K)
        x = np.divide(left_axes.T @ r, w, out=np.zeros_like(r), where=w > _FLAT)
        q = balance.moved(q, -axes.T @ x)
    return found
