"""Dry friction and inelastic stops: which freedoms are held, and which slide (docs/mathematics.md §8, §13)."""

import numpy as np

from screwdyn.core import Array, Flags, Indices, ScrewdynError
from screwdyn.forms.configurations import Limits
from screwdyn.physics.closure import Closure
from screwdyn.physics.model import Robot
from screwdyn.simulation import coulomb

# A freedom at rest is held up to a force that exceeds its bound by EDGE / 2, and one that is held begins to move at a
# force that exceeds it by EDGE, relative to the friction, or at a stop and beside loops relative to the load and to the
# force for 1 rad/s² or m/s²: a rounding error cannot make it alternate between the two.
EDGE = 1e-9
# Rate in rad/s or m/s that counts as rest where a change between rest and motion is decided.
REST = 1e-12
# Distance from a stop that counts as rounding, relative or in rad or m.
CONTACT = 1e-12
# Acceleration of a freedom beside loops that counts as rounding, relative to its terms or in rad/s² or m/s², and
# mobility that loops leave, relative to that of the tree without them.
STILL, IMMOBILE = 1e-11, 1e-12


class Holding:
    """Freedoms that are held, with q̈ = 0, and that move, where there is ``friction``, (nv,), or an inelastic stop."""

    def __init__(self, tree: Robot, friction: Array, stops: Limits) -> None:
        self.tree, self.friction, self.stops = tree, friction, stops
        self.loops = bool(tree.topology.loops)
        self.contact = CONTACT * (1 + np.abs(stops.values))
        self.edge = EDGE * friction
        # The tree in which the freedoms that are held do not move, by these.
        self._known: dict[tuple[int, ...], Closure] = {}
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

    def strike(self, q: Array, qd: Array) -> tuple[Array, Array, float]:
        """The inelastic impact on all stops at whose limits the freedoms are: rates after it, impulse, loss of energy.

        The rates are the nearest ones, in the metric of kinetic energy, that run against no stop. Friction is finite,
        so it has no impulse.
        """
        touching, impulse = self._touching(q), np.zeros(len(qd))
        low, high = self._bounds(impulse, touching)
        at = np.flatnonzero((low < 0) | (high > 0))
        P, _ = self._mobility(q, at, impulse)
        terms = np.full(len(at), np.abs(qd).max())
        impulse[at] = coulomb.forces(P[:, at], qd[at], low[at], high[at], terms=terms)
        change = impulse[at] @ P
        rates = qd + change
        rates[at[_sides(P[:, at], impulse[at], rates[at], low[at], high[at]) == 0]] = 0.0
        # Those that leave their stop move away from it but for rounding.
        rates[self.stops.rows[touching & (self.stops.approach(rates) > 0)]] = 0.0
        return rates, impulse, float(self.tree.kinetic_energy(q, change))

    def settle(self, q: Array, qd: Array, force: Array) -> None:
        """Decide which freedoms are held from now on, and in which direction the others slide.

        Of the freedoms at rest, those move whose friction or stop is at a bound and does not hold them.
        """
        moving = np.abs(qd) > REST
        touching = self._touching(q) & ~moving[self.stops.rows]
        at_rest = ~moving & (self.friction > 0)
        at_rest[self.stops.rows[touching]] = True
        self._note(np.where(moving, np.sign(qd), 0.0), at_rest, touching)
        if self.held.size:
            at, direction = self.held, self.direction.copy()
            _, side, _ = self._pushed(q, qd, force + self.force, 0.5)
            direction[at] = -side
            at_rest[at] = side == 0
            self._note(direction, at_rest, touching)

    def _pushed(self, q: Array, qd: Array, force: Array, share: float) -> tuple[Array, Array, Array]:
        """Of what is held, with bounds wider by a share of the edge: forces, :func:`_sides`, and levels beside loops.

        These are positive where a freedom moves: of several that share a load, one may be at its bound at rest.
        """
        at = self.held
        P, terms = self._mobility(q, at, force - self.tree.bias_force(q, qd))
        G = P[:, at]
        mobile = np.diagonal(G) > 0
        wide = mobile & (self.loops | np.isin(at, self.stops.rows[self.closed]))
        self.edge = EDGE * self.friction
        self.edge[at[wide]] += EDGE * (1 + terms[wide]) / np.diagonal(G)[wide]
        low, high = (bound[at] for bound in self._bounds(self.friction + share * self.edge, self.closed))
        a = self.tree.forward_dynamics(q, qd, force)[at]
        still = STILL * (1 + terms)
        a[~mobile & (np.abs(a) <= still)] = 0.0
        found = coulomb.forces(G, a, low, high, terms=terms)
        u = G @ found + a
        moves = np.abs(u) - still
        return found, _sides(G, found, u, low, high) * (moves > 0 if self.loops else 1), moves

    def _mobility(self, q: Array, rows: Indices, force: Array) -> tuple[Array, Array]:
        """Rows of the mobility P, (k, nv), of which those that loops hold are zero; sizes of the terms of P f, (k,)."""
        tree = self.tree
        P = np.array([tree.impulse_response(q, one) for one in np.eye(len(force))[rows]]).reshape(-1, len(force))
        terms = np.abs(P) @ np.abs(force)
        if self.loops:
            alone = P[:, rows].diagonal().copy()
            P -= tree._closing(np.tile(q, (len(rows), 1)), P @ tree.constraint_jacobian(q).T)[0]
            P[P[:, rows].diagonal() <= IMMOBILE * alone] = 0.0
            P[:, rows] *= np.any(P, axis=1)
        return P, terms

    def _note(self, direction: Array, held: Flags, touching: Flags) -> None:
        """Keep sgn q̇ and the friction of what slides, the rows that are held and that slide, and the open stops."""
        self.direction = direction
        self.force = -self.friction * direction
        self.held = np.flatnonzero(held)
        self.sliding = np.flatnonzero((self.friction > 0) & ~held)
        self.closed = touching & held[self.stops.rows]
        self.open = np.flatnonzero(~held[self.stops.rows])
        known = tuple(self.held.tolist())
        if known not in self._known:
            self._known[known] = Closure(self.tree._holding(known) if known else self.tree)
        self.closure = self._known[known]

    def _touching(self, q: Array) -> Flags:
        return np.asarray(self.stops.excess(q) >= -self.contact, dtype=bool)

    def _bounds(self, largest: Array, touching: Flags) -> tuple[Array, Array]:
        """Bounds of what acts on each freedom: ± ``largest``, or infinite where a stop that it touches can push."""
        low, high = -largest, largest.copy()
        stops = self.stops
        low[stops.rows[touching & (stops.sign > 0)]] = -np.inf
        high[stops.rows[touching & (stops.sign < 0)]] = np.inf
        return low, high

    def forward_dynamics(self, q: Array, qd: Array, force: Array) -> Array:
        """q̈, (nv,), if what is held has none."""
        tree, held = self.tree, self.closure.of
        if tree.model.charts is None:
            found: Array = held.forward_dynamics(q, qd, force)
        else:  # where the boundless armature of what is held would have a part in the velocity products
            found = held.impulse_response(q, force - tree.bias_force(q, qd))
            if self.loops:
                opening = self.closure.opening(q, found) + tree.constraint_jacobian_dot(q, qd) @ qd
                found = found - held._closing(q, opening)[0]
        found[self.held] = 0.0
        return found

    def reaction(self, q: Array, qd: Array, force: Array) -> Array:
        """The forces that hold freedoms, (nv,), N m or N; some of those possible if loops leave a choice."""
        found = np.zeros(len(force))
        if self.loops and self.held.size:
            found[self.held] = self._pushed(q, qd, force, 1.0)[0]
        elif self.held.size:
            found = self.tree.inverse_dynamics(q, qd, self.forward_dynamics(q, qd, force)) - force
        return found

    def project(self, q: Array, qd: Array) -> tuple[Array, Array]:
        """The nearest state with closed loops, (…, nq) and (…, nv), in which what is held stays where it is."""
        q, qd = self.closure.project(q, qd)
        qd[..., self.held] = 0.0
        return q, qd

    def levels(self, q: Array, qd: Array, force: Array) -> Array:
        """Numbers that rise through zero when freedoms begin to move or come to rest, or reach open stops."""
        begins = np.zeros(0)
        if self.held.size and self.loops:
            begins = self._pushed(q, qd, force, 1.0)[2]
        elif self.held.size:
            low, high = self._bounds(self.friction + self.edge, self.closed)
            reaction = self.reaction(q, qd, force)
            begins = np.maximum(reaction - high, low - reaction)[self.held]
        rests = -self.direction[self.sliding] * qd[self.sliding]
        return np.concatenate([begins, rests, self.stops.excess(q)[self.open]])

    def change(self, k: int, q: Array, qd: Array) -> None:
        """Set in q or q̇ what is known but for rounding when the level k rises: a position at a stop, a rate of rest."""
        rows = np.concatenate([self.held, self.sliding])
        if k < len(rows):
            self._rest(q, qd, rows[k])
        else:
            entry = self.open[k - len(rows)]
            q[self.stops.where[entry]] = self.stops.values[entry]
            if self.stops.approach(qd)[entry] <= 0:  # it left the stop and came back within rounding
                self._rest(q, qd, self.stops.rows[entry])

    def _rest(self, q: Array, qd: Array, row: int) -> None:
        """Set a rate that is zero but for rounding, and with it those of the freedoms that loops couple to it."""
        if self.loops:
            (P,), _ = self._mobility(q, np.array([row]), qd)
            qd -= P * (qd[row] / P[row] if P[row] else 0.0)
        qd[row] = 0.0


def _sides(G: Array, force: Array, u: Array, low: Array, high: Array) -> Array:
    """−1 and 1 where a force is at its lower and upper bound and does not hold its row, else 0."""
    mobility = np.diagonal(G)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = force - u / mobility  # infinite, or not a number, where loops hold the row
    return np.asarray((z > high).astype(float) - (z < low))
