"""Freedoms that are held at rest by dry friction or by stops, and when that changes (docs/mathematics.md §8)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from screwdyn.core.errors import ScrewdynError
from screwdyn.core.types import Array
from screwdyn.forms.limits import Limits
from screwdyn.physics.robot import Robot

Mask = npt.NDArray[np.bool_]

__all__ = ["EDGE", "Holding", "Strike"]

# A freedom at rest is held up to a force that exceeds its bound by EDGE / 2, and one that is held begins to move at a
# force that exceeds it by EDGE, relative to the friction, or at a stop relative to the load and to the force for 1
# rad/s² or m/s²: a rounding error cannot make it alternate between the two.
EDGE = 1e-9
# Rate in rad/s or m/s that counts as rest where a change between rest and motion is decided.
REST = 1e-12
# Distance from a stop that counts as rounding, relative or in rad or m.
CONTACT = 1e-12


class Strike(NamedTuple):
    """An impact on stops.

    Attributes
    ----------
    entries : list of int
        The limits that are reached.
    rates : (nv,) array
        After the impact.
    impulse : (nv,) array
        Of the stops on the freedoms, N m s and N s.
    energy_lost : float
        J.
    """

    entries: list[int]
    rates: Array
    impulse: Array
    energy_lost: float


class Holding:
    """Freedoms of one tree that are held and that move, where there is dry friction or a stop.

    While none of them changes, the motion is smooth: freedoms that slide have a constant friction force, and those that
    are held have q̈ = 0.

    Parameters
    ----------
    tree : KinematicTree
    friction : (nv,) array
        Largest friction force of each freedom, N m or N.
    stops : Limits
        The limits with an inelastic stop.

    Attributes
    ----------
    force : (nv,) array
        Friction −F sgn q̇ of the freedoms that slide; zero for all others.
    held, sliding : arrays of int
        Rows of the freedoms that are held, and of those with friction that slide.
    open : array of int
        The stops whose freedoms are not held.
    """

    def __init__(self, tree: Robot, friction: Array, stops: Limits) -> None:
        self.tree, self.friction, self.stops = tree, friction, stops
        self.contact = CONTACT * (1 + np.abs(stops.values))
        self._note(np.zeros(len(friction)), friction > 0, np.zeros(len(stops.values), dtype=bool))

    def check(self, q: Array) -> None:
        """Raise ScrewdynError if a position is beyond a stop."""
        for k in np.flatnonzero(self.stops.excess(q) > self.contact).tolist():
            _, joint, name, side = self.stops.keys[k]
            raise ScrewdynError(
                f"{name!r} is at {q[self.stops.where[k]]:.9g}, beyond {self.stops.values[k]:.9g}, where joint "
                f"{joint!r} has a stop at its {side} limit; start within the limits, or use a SpringStop"
            )

    def strikes(self, q: Array, qd: Array) -> list[int]:
        """The stops that freedoms at their limits run against."""
        return np.flatnonzero(self._touching(q) & (self.stops.approach(qd) > REST)).tolist()

    def strike(self, q: Array, qd: Array) -> Strike:
        """The inelastic impact on all stops at whose limits the freedoms are.

        The rates after it are the nearest ones, in the metric of kinetic energy, that run against no stop: the impulses
        P only push, and minimise ½ Pᵀ A P + Pᵀ q̇, with A the block of M⁻¹. Friction is finite, so it has no impulse.
        """
        touching = self._touching(q)
        low, high = self._bounds(np.zeros(len(qd)), touching)
        at = np.flatnonzero((low < 0) | (high > 0))
        M = self.tree.mass_matrix(q)
        side = _at_bounds(np.linalg.inv(M)[np.ix_(at, at)], qd[at], low[at], high[at])
        stopped = at[side == 0]
        rest = np.setdiff1d(np.arange(len(qd)), stopped)
        change = np.zeros(len(qd))
        change[stopped] = -qd[stopped]
        change[rest] = np.linalg.solve(M[np.ix_(rest, rest)], M[np.ix_(rest, stopped)] @ qd[stopped])
        impulse = np.zeros(len(qd))
        impulse[stopped] = (M @ change)[stopped]
        rates = qd + change
        rates[stopped] = 0.0
        # Those that leave their stop move away from it but for rounding.
        rates[self.stops.rows[touching & (self.stops.approach(rates) > 0)]] = 0.0
        return Strike(self.strikes(q, qd), rates, impulse, float(0.5 * change @ M @ change))

    def settle(self, q: Array, qd: Array, force: Array) -> None:
        """Decide which freedoms are held from now on, and in which direction the others slide.

        Of the forces λ of friction and stops on the freedoms at rest, within their bounds, those act that minimise
        ½ λᵀ A λ + λᵀ a, with a the accelerations without λ and A the block of M⁻¹. A freedom moves if its λ_i is at a
        bound.

        Parameters
        ----------
        q : (nq,) array
        qd : (nv,) array
        force : (nv,) array
            All joint forces but those of dry friction and stops, N m or N.

        Raises
        ------
        SingularAttachmentError
            If a joint feels no inertia; otherwise M is positive definite.
        """
        moving = np.abs(qd) > REST
        touching = self._touching(q) & ~moving[self.stops.rows]
        at_rest = ~moving & (self.friction > 0)
        at_rest[self.stops.rows[touching]] = True
        self._note(np.where(moving, np.sign(qd), 0.0), at_rest, touching)
        if self.held.size:
            at, total = self.held, force + self.force
            a = self.tree.forward_dynamics(q, qd, total)[at]
            M = self.tree.mass_matrix(q)
            edge = self._edge(M, total - self.tree.bias_force(q, qd))
            low, high = self._bounds(self.friction + 0.5 * edge, touching)
            side = _at_bounds(np.linalg.inv(M)[np.ix_(at, at)], a, low[at], high[at])
            direction = self.direction.copy()
            direction[at] = -side
            at_rest[at] = side == 0
            self._note(direction, at_rest, touching)

    def _note(self, direction: Array, held: Mask, touching: Mask) -> None:
        self.direction = direction
        self.force = -self.friction * direction
        self.held, self.free = np.flatnonzero(held), np.flatnonzero(~held)
        self._block = np.ix_(self.free, self.free)
        self.sliding = np.flatnonzero((self.friction > 0) & ~held)
        self.closed = touching & held[self.stops.rows]
        self.open = np.flatnonzero(~held[self.stops.rows])

    def _touching(self, q: Array) -> Mask:
        return np.asarray(self.stops.excess(q) >= -self.contact, dtype=bool)

    def _bounds(self, largest: Array, touching: Mask) -> tuple[Array, Array]:
        """Bounds of what acts on each freedom: ± ``largest``, or infinite where a stop that it touches can push."""
        low, high = -largest, largest.copy()
        stops = self.stops
        low[stops.rows[touching & (stops.sign > 0)]] = -np.inf
        high[stops.rows[touching & (stops.sign < 0)]] = np.inf
        return low, high

    def _edge(self, M: Array, load: Array) -> Array:
        edge = self.friction.copy()
        at = self.stops.rows
        edge[at] += np.abs(load[at]) + np.diagonal(M)[at]
        return EDGE * edge

    def accelerations(self, q: Array, qd: Array, force: Array) -> tuple[Array, Array]:
        """q̈, (nv,), and the force λ that holds the freedoms that are held, (held,).

        M_ff q̈_f = (force − C q̇ − g)_f for the freedoms f that are not held; ``force`` includes the friction of those
        that slide.
        """
        M, load = self.tree.mass_matrix(q), force - self.tree.bias_force(q, qd)
        return self._solved(M, load)

    def _solved(self, M: Array, load: Array) -> tuple[Array, Array]:
        qdd = np.zeros(len(load))
        qdd[self.free] = np.linalg.solve(M[self._block], load[self.free])
        return qdd, (M @ qdd - load)[self.held]

    def levels(self, q: Array, qd: Array, force: Array) -> Array:
        """Numbers that rise through zero when something changes; see :meth:`change`.

        They are for the freedoms that are held, for those that slide, and for the open stops.
        """
        begins = np.zeros(0)
        if self.held.size:
            M, load = self.tree.mass_matrix(q), force - self.tree.bias_force(q, qd)
            low, high = self._bounds(self.friction + self._edge(M, load), self.closed)
            reaction = self._solved(M, load)[1]
            begins = np.maximum(reaction - high[self.held], low[self.held] - reaction)
        rests = -self.direction[self.sliding] * qd[self.sliding]
        return np.concatenate([begins, rests, self.stops.excess(q)[self.open]])

    def change(self, k: int, q: Array, qd: Array) -> None:
        """Set in q or q̇ what is known but for rounding when the level k rises: a position at a stop, a rate of rest."""
        rows = np.concatenate([self.held, self.sliding])
        if k < len(rows):
            qd[rows[k]] = 0.0
        else:
            entry = self.open[k - len(rows)]
            q[self.stops.where[entry]] = self.stops.values[entry]
            if self.stops.approach(qd)[entry] <= 0:  # it left the stop and came back within rounding
                qd[self.stops.rows[entry]] = 0.0


def _at_bounds(A: Array, a: Array, low: Array, high: Array) -> Array:
    """−1 and 1 where the λ that minimises ½ λᵀ A λ + λᵀ a is at its lower and upper bound, else 0."""
    from scipy.optimize import lsq_linear

    unbounded = -np.linalg.solve(A, a)
    if ((low <= unbounded) & (unbounded <= high)).all():
        return np.zeros(len(a))
    root = np.linalg.cholesky(A).T
    found = lsq_linear(root, -np.linalg.solve(root.T, a), (low, high), method="bvls", tol=1e-14)
    return np.asarray(found.active_mask, dtype=float)
