"""Unbalanced forces of a tree, with closed loops or without, over some of its freedoms (docs/mathematics.md §8)."""

from __future__ import annotations

from typing import NoReturn

import numpy as np
import numpy.typing as npt

from screwdyn.core.errors import EquilibriumError
from screwdyn.core.types import Array
from screwdyn.physics.closure import SLIGHT, Closure, weights
from screwdyn.physics.recursions.constrained import REDUNDANT
from screwdyn.physics.robot import Robot

__all__ = ["BALANCED", "Balance", "balance_of"]

Indices = npt.NDArray[np.intp]

# Unbalanced force, relative to the forces that act, at which a configuration counts as an equilibrium. Newton's method
# goes on to rounding.
BALANCED = 1e-11
# Half the distance of the two states of a difference quotient of g, rad or m: its error is below 1e-10 of g.
_DIFFERENCE = 1e-5
# Newton steps that close the loops after a step, and the gap that counts as closed, m and rad.
_CLOSING, _CLOSED = 20, 1e-12


class Balance:
    """The unbalanced force r = g + K (q − rest) − τ of k freedoms of a tree, in coordinates x = √s q.

    s are the forces at q0, in N m and N (or their rates of change, if these are larger): the entries of ∂r/∂x are then
    of order 1, whatever the masses.
    """

    def __init__(self, tree: Robot, free: Indices, tau: Array, q: Array) -> None:
        self.tree, self.free, self.tau = tree, free, tau[free]
        self.springs = tree.model.joint_forces
        self.count = self.number(q)
        self.acting, self.s = self.slightest(q), np.ones(self.count)
        self.at(q)
        self.s = np.where(self.acting > 0, self.acting, max(self.acting.max(initial=0.0), 1e-300))

    def number(self, q: Array) -> int:
        """Number k of the coordinates x."""
        return len(self.free)

    def slightest(self, q: Array) -> Array:
        """The least size of forces to which an unbalanced one is compared, (k,)."""
        return SLIGHT * self.tree.model.weight_bound * np.sqrt(np.diag(self.tree.mass_matrix(q))[self.free])

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
        return bool((self.excess(q) <= BALANCED).all())

    def require(self, q: Array) -> Array:
        """q, if the forces balance there; EquilibriumError otherwise."""
        if self.holds(q):
            return q
        i = int(np.argmax(self.excess(q)))
        raise EquilibriumError(
            f"no equilibrium was found from q0: where the search ends, {self.unbalanced(q, i)}; change the force, add "
            f"a spring, or start elsewhere"
        )

    def unbalanced(self, q: Array, i: int) -> str:
        """What is unbalanced along a coordinate, in words."""
        needed, given = self.force(q)[i] + self.tau[i], self.tau[i]
        return f"{self.name(i)!r} needs {needed:.6g} against its weight and spring, and gets {given:.6g}"

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
        return i

    def name(self, i: int) -> str:
        """Name of that freedom."""
        return self.tree.coordinates[int(self.free[self.freedom(i)])]


class ClosedBalance(Balance):
    """The unbalanced force Zᵀ r in the motions that closed loops allow, with q̇ = Z ẋ / √s and ZᵀZ = 1 at every q."""

    def __init__(self, tree: Robot, free: Indices, tau: Array, q: Array) -> None:
        self.closure = Closure(tree, tree.model)
        self.closure.check(q)
        self.which = np.isin(np.arange(tree.nv), free)
        super().__init__(tree, free, tau, q)
        # The coordinates turn from one configuration to the next.
        self.s = np.full(self.count, self.s.max(initial=1e-300))

    def number(self, q: Array) -> int:
        """Number k of the coordinates x."""
        J = self._jacobian(q)
        D = weights(J, self.closure.counts)
        return len(self.free) - int(np.linalg.matrix_rank(D[:, None] * J, rtol=REDUNDANT))

    def slightest(self, q: Array) -> Array:
        """The largest of those of the free freedoms, for every motion."""
        return np.full(self.count, super().slightest(q).max(initial=0.0))

    def _jacobian(self, q: Array) -> Array:
        return np.asarray(self.tree.constraint_jacobian(q)[..., self.free])

    def _motions(self, q: Array) -> Array:
        """Z, (number of free freedoms, k)."""
        _, _, axes = np.linalg.svd(self._jacobian(q))
        self.Z = np.asarray(axes[len(self.free) - self.count :].T)
        return self.Z

    def force(self, q: Array) -> Array:
        """Zᵀ r, (k,)."""
        return self._motions(q).T @ super().force(q)

    def at(self, q: Array) -> tuple[Array, Array]:
        """Zᵀ r, and Zᵀ (∂r/∂q − ∂J_cᵀ/∂q λ) Z with J_cᵀ λ = r, both divided by √s."""
        Z, r, space = self._motions(q), super().force(q), self.tree.model.configurations
        J = self._jacobian(q)
        D = weights(J, self.closure.counts)
        multipliers = D * np.linalg.lstsq(J.T * D, r, rcond=REDUNDANT)[0]
        steps = np.zeros((2, self.count, self.tree.nv))
        steps[..., self.free] = _DIFFERENCE * np.stack([Z.T, -Z.T])
        ends = space.integrate(np.broadcast_to(q, (2, self.count, len(q))), steps)
        forces = self.tree.gravity_vector(ends)[..., self.free] - multipliers @ self._jacobian(ends)
        by = Z.T @ ((forces[0] - forces[1]).T / (2 * _DIFFERENCE) + self.springs.stiffness[self.free, None] * Z)
        terms = np.abs(self.tree.gravity_vector(q)[self.free]) + np.abs(self.springs.spring_force(q)[self.free])
        size = np.abs(Z.T) @ (terms + np.abs(self.tau)) + np.abs(by).max(axis=1, initial=0.0)
        self.acting = np.full(self.count, np.maximum(self.acting, size).max(initial=0.0))
        return Z.T @ r / np.sqrt(self.s), by / self.s

    def moved(self, q: Array, x: Array) -> Array:
        """The configuration with closed loops beyond q by a step x; LoopError if there is none."""
        space, v = self.tree.model.configurations, np.zeros(self.tree.nv)
        v[self.free] = self._motions(q) @ (x / np.sqrt(self.s))
        q = space.integrate(q, v)
        for _ in range(_CLOSING):
            gap = self.closure.gap(q, 1)
            if np.abs(gap).max(initial=0.0) <= _CLOSED:
                break
            v[self.free] = -self.closure.factors(q, self.which).least(gap)
            q = space.integrate(q, v)
        self.closure.check(q)
        return q

    def work(self, q: Array, x: Array) -> float:
        """Energy that gravity and springs gain in a step x, minus the work of τ."""
        both = np.stack([q, self.moved(q, x)])
        energies = self.tree.potential_energy(both) + self.springs.spring_energy(both)
        moved = self.tree.model.configurations.difference(*both)[self.free]
        return float(energies[1] - energies[0] - self.tau @ moved)

    def freedom(self, i: int) -> int:
        """The freedom that moves most along a coordinate, among the free ones."""
        return int(np.argmax(np.abs(self.Z[:, i])))

    def unbalanced(self, q: Array, i: int) -> str:
        """What is unbalanced along a coordinate, in words."""
        return f"{self.force(q)[i]:.6g} is unbalanced in a motion of the closed loops, mostly of {self.name(i)!r}"


def balance_of(tree: Robot, free: Indices, tau: Array, q: Array) -> Balance:
    """The balance of a tree, with closed loops or without."""
    return (ClosedBalance if tree.loops else Balance)(tree, free, tau, q)
