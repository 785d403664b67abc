"""Equilibria: configurations in which gravity, springs and constant torques balance (docs/mathematics.md §8)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from screwdyn.core.errors import EquilibriumError, JointError, ShapeError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.physics.robot import Robot
from screwdyn.simulation.state import by_name

__all__ = ["equilibrium", "stable_equilibrium"]

Indices = npt.NDArray[np.intp]

# Half the distance of the two states of a difference quotient of g, rad or m: its error is below 1e-10 of g.
_DIFFERENCE = 1e-5
# Unbalanced force, relative to the forces that act, at which a configuration counts as an equilibrium. Newton's method
# goes on to rounding.
_BALANCED = 1e-11
# Curvature, relative to the forces, below which a freedom is indifferent.
_FLAT = 1e-8
# First step, and travel that counts as without bound, rad or m.
_FIRST_STEP, _FAR = 0.5, 1e6
_MOST_STEPS = 500


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
    q = _configuration(tree, q0)
    balance = _Balance(tree, np.arange(tree.nv), _torques(tree, tau), q)
    found = _descended(balance, q, _unbalance)
    return found if balance.holds(found) else balance.require(_descended(balance, q, _energy))


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
    q = _configuration(tree, q0)
    moving = np.array([tree.coordinates.index(x) for x in freedoms], dtype=np.intp)
    balance = _Balance(tree, moving, np.zeros(tree.nv), q)
    return balance.require(_descended(balance, q, _energy))


def _configuration(tree: Robot, q0: ArrayLike) -> Array:
    (q,), batch = tree.model.flat(q0=q0)
    if batch:
        raise ShapeError(f"q0 must be one configuration, ({tree.nq},); got a batch of shape {batch}")
    return tree.model.configurations.normalized(q.copy())


def _torques(tree: Robot, tau: ArrayLike | Mapping[str, ArrayLike]) -> Array:
    """Forces of all freedoms, (nv,)."""
    model, names = tree.model, tree.coordinates
    if isinstance(tau, Mapping):
        given = by_name(tree, "tau", tau, names)
        tau = [given.get(name, 0.0) for name in names]
    forces, active = model.numbers("tau", tau), ~np.array(model.passive, dtype=bool)
    if forces.shape == (int(active.sum()),):
        everywhere = np.zeros(tree.nv)
        everywhere[active] = forces
        forces = everywhere
    (forces,), _ = model.flat(tau=forces)
    for name, force in itertools.compress(zip(names, forces, strict=True), model.passive):
        if force:
            raise JointError(f"joint {name!r} is passive, but the force on it is {force:g}; give 0")
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

    def name(self, i: int) -> str:
        """Name of a freedom."""
        return self.tree.coordinates[int(self.free[i])]


class _Local(NamedTuple):
    """A function near a configuration: its slope and curvature, and its true change in a step."""

    slope: Array
    curvature: Array
    change: Callable[[Array], float]


def _energy(balance: _Balance, q: Array, r: Array, K: Array) -> _Local:
    """The energy minus the work of τ: its minima are the stable equilibria."""
    return _Local(r, (K + K.T) / 2, lambda x: balance.work(q, x))


def _unbalance(balance: _Balance, q: Array, r: Array, K: Array) -> _Local:
    """½ |r|²: it is zero in every equilibrium."""

    def change(x: Array) -> float:
        beyond = balance.force(balance.moved(q, x)) / np.sqrt(balance.s)
        return float(0.5 * (beyond - r) @ (beyond + r))

    return _Local(K.T @ r, K.T @ K, change)


def _descended(balance: _Balance, q: Array, local: Callable[[_Balance, Array, Array, Array], _Local]) -> Array:
    """Where a descent from q ends, by a trust-region method, and near a minimum by Newton's method.

    Raises
    ------
    EquilibriumError
        If a freedom moves without bound.
    """
    root = np.sqrt(balance.s.min(initial=1.0))
    radius, smallest, travel = _FIRST_STEP * root, 1e-15 * root, np.zeros(len(balance.free))
    for _ in range(_MOST_STEPS if len(balance.free) else 0):
        r, K = balance.at(q)
        here = local(balance, q, r, K)
        x, gain, inside = _step(here.slope, here.curvature, radius, _BALANCED * np.sqrt(balance.s.max()))
        if inside and (close := _polished(balance, q, r, K)) is not None:
            return close
        if gain <= 0:
            break
        gained = -here.change(x) / gain
        if gained > 0.1:
            q, travel = balance.moved(q, x), travel + x / np.sqrt(balance.s)
            if (np.abs(travel) > _FAR).any():
                name = balance.name(int(np.argmax(np.abs(travel))))
                raise EquilibriumError(
                    f"there is no equilibrium: nothing holds {name!r}, which moves without bound; give it a spring or "
                    f"a force, or make it active"
                )
        size = float(np.linalg.norm(x))
        radius = 0.25 * size if gained < 0.25 else max(radius, 2 * size) if gained > 0.75 else radius
        if radius < smallest:  # rounding of the function
            break
    return q


def _step(slope: Array, curvature: Array, radius: float, level: float) -> tuple[Array, float, bool]:
    """The minimum of a quadratic function within a radius, its gain, and whether it is a minimum of the function.

    A slope below ``level`` counts as zero where the curvature is flat. J. Nocedal and S. Wright, *Numerical
    Optimization*, 2006, §4.3.
    """
    w, axes = np.linalg.eigh(curvature)
    c = axes.T @ slope
    bent, steep = w > _FLAT, np.abs(c) > level
    x = np.divide(-c, w, out=np.zeros_like(c), where=bent)
    inside = not (w < -_FLAT).any() and not (steep & ~bent).any() and bool(x @ x <= radius**2)
    if not inside:
        lowest = max(0.0, -w[0])
        least = w + lowest > _FLAT
        x = np.divide(-c, w + lowest, out=np.zeros_like(c), where=least)
        left = radius**2 - x @ x
        if not (steep & ~least).any() and left > 0:  # at an unstable equilibrium, along the axis of least curvature
            i, towards = 0, axes[np.argmax(np.abs(axes[:, 0])), 0]
            x[i] = np.copysign(np.sqrt(left), -c[i] if steep[i] else towards)
        else:
            low, high = lowest, lowest + float(np.linalg.norm(c)) / radius
            for _ in range(60):
                shift = (low + high) / 2
                x = -c / np.maximum(w + shift, 1e-300)
                low, high = (shift, high) if x @ x > radius**2 else (low, shift)
    return axes @ x, -float(c @ x + 0.5 * w @ (x * x)), inside


def _polished(balance: _Balance, q: Array, r: Array, K: Array) -> Array | None:
    """The equilibrium next to q by Newton's method, to rounding; None if its first steps do not approach one."""
    excess = balance.excess(q).max()
    while True:
        x = np.asarray(np.linalg.lstsq(K, -r, rcond=_FLAT)[0], dtype=np.float64)
        ahead = balance.moved(q, x)
        left = balance.excess(ahead).max()
        if not left < 0.5 * excess:
            return q if balance.holds(q) else None
        q, excess = ahead, left
        r, K = balance.at(q)
