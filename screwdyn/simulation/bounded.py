"""Dry friction, inelastic stops and contacts in a simulation: what is held, slides or opens, and its forces.

docs/mathematics.md §8, §13, §14.
"""

import copy
import itertools
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from screwdyn.core import Array, ContactError, Flags, Indices, ScrewdynError
from screwdyn.forms.configurations import Limits
from screwdyn.mechanism import Contact
from screwdyn.physics.closure import Closure
from screwdyn.physics.contact import ContactRows, Contacts
from screwdyn.physics.model import Model, Robot
from screwdyn.physics.recursions.loops import KEPT_ANYWAY
from screwdyn.simulation.coulomb import Cone, forces, lapack, least
from screwdyn.simulation.impacts import impulses

OPEN, IDLE, STICKS, SLIDES = range(4)
NONE = np.zeros(0, dtype=np.intp)
# What a user reads.
STATES = "open", "idle", "sticks", "slides"
# What is reported when a point changes from one state to another.
CHANGES: dict[tuple[int | None, int | None], str] = {
    (SLIDES, STICKS): "rest",
    **dict.fromkeys([(STICKS, SLIDES), (IDLE, SLIDES)], "slip"),
    **dict.fromkeys([(OPEN, IDLE), (OPEN, STICKS), (OPEN, SLIDES)], "touch"),
    **dict.fromkeys([(IDLE, OPEN), (STICKS, OPEN), (SLIDES, OPEN)], "leave"),
}

# What rests is held up to a force that exceeds its bound by EDGE / 2, and begins to move at one that exceeds it by
# EDGE, relative to the friction, or at a stop and where several bear a load, to the load and to the force for 1 rad/s²
# or m/s²: a rounding error cannot make it alternate between the two.
EDGE = 1e-9
# Acceleration that counts as rounding, relative to its terms or in rad/s² or m/s²; of a normal, EDGE.
STILL = 1e-11
# Rate of a freedom in rad/s or m/s that counts as rest where a change between rest and motion is decided.
REST = 1e-12
# Distance from a stop that counts as rounding, relative or in rad or m.
AT_STOP = 1e-12
# Mobility of a freedom that loops leave, relative to that of the tree without them, that is rounding.
IMMOBILE = 1e-12
# Gap, m, of a point that touches, and rate of the gap, m/s, that closes again within the rounding of the gap, within
# 1 m of the origin of the base.
TOUCH, SLIGHT = 1e-9, 1e-7
# Slip, m/s, that counts as rest; of a point of which another one on the same two links rests; and that has a direction.
SLOW, TOGETHER, MOVING = 1e-8, 1e-6, 1e-10
# Rebound that ends a series of bounces, relative to such a rate.
REBOUND = 10
# While a slip in a plane begins, below so many m/s, friction has the direction that the slip has so many seconds later.
FAST, LAG = 1e-3, 1e-7
# Change of such a slip in finite differences, relative to it, and slip in a plane, m/s, below which they are needed,
# because its direction changes steeply with rates.
FINE, STEEP = 1e-3, 1e-4
# Acceleration of a gap, m/s², at which an idle point is decided again.
LEAVING = 1e-7
# Part of a force in a distribution of length 1 that moves nothing, from which on the force is one of several possible.
SHARED = 1e-6
# Parts of the friction with which several points that stick are tried to bear a load.
SAFER = 0.5, 0.9, 0.98, 0.995
# Singular values, relative to the largest, that are those of redundant forces.
REDUNDANT = 1e-10
# Singular values of the two tangents, relative to the larger, of a point that slides along a line only.
IN_A_LINE = 3e-5
# Of 1 / mass along the normal of a sliding point, what friction leaves of it where the point jams.
JAMMED = 1e-9
# Sets of freedoms and points of which something is kept, before all is forgotten.
MOST_KEPT = 1000


class Acting(NamedTuple):
    """Accelerations q̈, and the power of friction at contacts, W; levels of what is closed.

    These are of freedoms that are held, (h,), and of points, (k, 2): their forces reach a bound when they rise through
    zero. The forces themselves are those of a system, with the directions of slips.
    """

    qdd: Array
    heat: float = 0.0
    held: Array | None = None
    points: Array | None = None
    own: "tuple[_System, Array, Array] | None" = None


class Struck(NamedTuple):
    """What an impact does: the state after it, and the energy it takes, J.

    Impulses on points, (k, 3), N s, which points hit, and when their bounces end, s; impulses on freedoms at their
    stops, (nv,), and which stops are hit.
    """

    q: Array
    qd: Array
    lost: float
    impulses: Array
    hits: Indices
    ends: dict[int, float]
    pushes: Array
    stops: Indices


class _Island(NamedTuple):
    """The rows of one island, which forces of the others do not move, and the cones of its points that stick."""

    rows: Any
    # Which of all points that stick, and the rows of their normals and tangents among those of the island.
    rough: Flags
    normals: list[int]
    tangents: list[tuple[int, int]]


class _Layout(NamedTuple):
    """The rows of freedoms that are held, of the normals of points, and of two tangents of those that stick."""

    held: Indices
    points: Indices
    sticks: Indices
    slides: Indices
    # The rows of the normals of all points, those of points that stick, and of their tangents, (…, 2).
    normals: slice
    rough: Indices
    tangents: Indices
    # The rows of the normals of points that slide; of all, and then their tangents, among those of all points.
    smooth: Indices
    every: Indices
    islands: list[_Island]


class _System(NamedTuple):
    """u = A Bᵀ λ + b: A = R Z, B = C Z, with rows R of what is constrained, columns C of the forces, and P = Z Zᵀ."""

    at: _Layout
    A: Array
    B: Array
    b: Array


class Bounded:
    """All that is held by forces with bounds in one tree, from a configuration on.

    Freedoms with ``friction``, (nv,), or at inelastic ``stops`` are held, with q̈ = 0, or move; points of contacts are
    open, idle, stick or slide.
    """

    def __init__(self, tree: Robot, friction: Array, stops: Limits, q: Array) -> None:
        self.tree, self.friction, self.stops = tree, friction, stops
        self.at_stop = AT_STOP * (1 + np.abs(stops.values))
        for k in np.flatnonzero(stops.excess(q) > self.at_stop).tolist():
            _, joint, name, side = stops.keys[k]
            raise ScrewdynError(
                f"{name!r} is at {q[stops.where[k]]:.9g}, beyond {stops.values[k]:.9g}, where joint {joint!r} has a "
                f"stop at its {side} limit; start within the limits, or use a SpringStop"
            )
        self.contacts, self.islands = Contacts(tree, tree.model), tree.model.derived(islands_of)
        contacts, owner = self.contacts.contacts, self.contacts.owner
        self.loops = bool(tree.topology.loops)
        # Whether several may bear one load.
        self.shared = self.loops or bool(contacts)
        self.mu = np.array([contact.friction for contact in contacts])[owner]
        self.restitution = np.array([contact.restitution for contact in contacts])[owner]
        bodies = [{contact.link, contact.to} for contact in contacts]
        self.bodies = np.array([bodies.index(pair) for pair in bodies], dtype=np.intp)[owner]
        for contact in contacts:
            contact.check_slides()
        # Of each point, the serial number of its contact and which of its points it is.
        self.keys = [(contact.serial, i) for contact in contacts for i in range(len(contact.spots))]
        # The tree in which the freedoms that are held do not move, by these.
        self._known: dict[tuple[int, ...], Closure] = {}
        # What has been found of some freedoms and points: their rows, and the freedoms of their islands.
        self._layouts: dict[tuple[bytes, ...], _Layout] = {}
        self._moved: dict[tuple[bytes, bytes], Indices] = {}
        # Which points are closed and bear a load in some states; of those that rub, their number among these, and μ.
        self._active: dict[bytes, tuple[Indices, Indices, list[tuple[int, int, float]]]] = {}
        self._begin(q)

    def resumed(self, q: Array) -> "Bounded":
        """The same, as it begins in a configuration."""
        new = copy.copy(self)
        new._begin(q)
        return new

    def _begin(self, q: Array) -> None:
        """Hold all freedoms with friction, and open all points."""
        rows = self.contacts.rows(q, np.zeros(len(self.friction)))
        # Links that no joint moves relative to each other push nothing, wherever they are.
        self.moves = np.abs(rows.jacobian).max(axis=(1, 2), initial=0.0) > KEPT_ANYWAY
        gaps = np.where(self.moves, rows.gaps, 0.0)
        if gaps.min(initial=0.0) < -TOUCH:
            at, depth = self.contacts.deepest(gaps)
            raise ContactError(
                f"{at.link!r} is {depth:.3g} mm inside {at.to!r} at contact {at.name!r}; start from "
                f"q = tree.separate(q)"
            )
        # Gaps are rounded as their points, and heights of flights are squares of rates; parallel edges have no point.
        self.slight = SLIGHT * math.sqrt(np.fmax.reduce(np.abs(self.contacts.frames(q)[0]), axis=None, initial=1.0))
        self.edge = EDGE * self.friction
        self._note(np.zeros(len(self.friction)), self.friction > 0, np.zeros(len(self.stops.values), dtype=bool))
        self._release()

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

    def _release(self) -> None:
        """Let all points be open."""
        k = len(self.mu)
        self.state, self.slip = np.full(k, OPEN), np.zeros((k, 2))
        for known in (self._known, self._layouts, self._moved, self._active):
            if len(known) > MOST_KEPT:
                known.clear()
        # Slips that begin in a plane, forces that are possible where those of least norm are not, the speed after the
        # last step, and what helps to find directions.
        self.young, self.speed = np.zeros(k, dtype=bool), np.zeros(k)
        # Points that slide in a plane.
        self.plane = np.zeros(k, dtype=bool)
        self.start: Array | None = None
        # Slips that begin at rest now, and points that leave although they still approach within rounding.
        self.begun, self.grazes = np.zeros((2, k), dtype=bool)
        self.guess: dict[tuple[bytes, bytes], Array] = {}

    @property
    def slow(self) -> Flags:
        """Points whose slip in a plane begins or is slow, on whose rates accelerations depend steeply."""
        return np.asarray(self.young | (self.plane & (self.state == SLIDES) & (self.speed < STEEP)))

    @property
    def stiff(self) -> bool:
        """Whether there are such points, and the slips of all have a clear direction, so that the motion is smooth."""
        slow = self.slow
        return bool(slow.any() and (self.speed[slow] > SLOW).all())

    def grouped(self, points: Sequence[int]) -> Iterator[tuple[Contact, tuple[int, ...], list[int]]]:
        """The contacts of some points in their order, with these points, and where they are among the points of all."""
        for k, group in itertools.groupby(points, self.contacts.owner.__getitem__):
            at = list(group)
            yield self.contacts.contacts[k], tuple(self.keys[i][1] for i in at), at

    # Rows and forces

    def rows(self, q: Array, qd: Array, points: Indices, freedoms: Indices) -> tuple[ContactRows, Array]:
        """The rows of all points, and Z of :meth:`_mobility` for some of them and some freedoms.

        What loops hold has a row of zeros in Z; so have normals and tangents, of these points, along which nothing
        moves.
        """
        rows, (Z, alone) = self.contacts.rows(q, qd), self._mobility(q, points, freedoms)
        J = rows.jacobian[points]
        sizes = largest = ((J @ Z) ** 2).sum(axis=2)
        if alone is not Z:
            largest = ((J @ alone) ** 2).sum(axis=2)
        rows.jacobian[points] = np.where(
            (sizes <= REDUNDANT**2 * largest.max(axis=1, keepdims=True))[..., None], 0.0, J
        )
        return rows, Z

    def _mobility(self, q: Array, points: Indices, freedoms: Indices) -> tuple[Array, Array]:
        """Z with the mobility P = Z Zᵀ in the islands of points and of freedoms, and the same without loops.

        Forces f change the accelerations by P f. Products of rows with Z agree to rounding where rows are redundant,
        those with P as well as M is conditioned.
        """
        if self.loops:
            factors = Closure(self.tree).factors(q)
            Z, alone = factors.motions(), factors.lower(np.eye(self.tree.model.nv)).T
            Z[(Z**2).sum(axis=1) <= IMMOBILE * (alone**2).sum(axis=1)] = 0.0
            return Z, alone
        dpotrf, dtrtri = lapack("dpotrf", "dtrtri")
        key, M = (points.tobytes(), freedoms.tobytes()), self.tree.mass_matrix(q)
        if key not in self._moved:
            of_freedoms, of_points = self.islands
            self._moved[key] = np.isin(of_freedoms, [*of_freedoms[freedoms], *of_points[points]]).nonzero()[0]
        own = self._moved[key]
        if len(own) == len(M):
            Z = dtrtri(dpotrf(M.T)[0])[0]
        else:
            Z = np.zeros((len(M), len(own)))
            Z[own] = dtrtri(dpotrf(M.take(own, axis=0).take(own, axis=1).T)[0])[0]
        return Z, Z

    def _system(self, rows: ContactRows, Z: Array, points: Indices, free: Array, slip: Array) -> _System:
        """The equations of what is held and of some points; from the accelerations without them, and directions."""
        at, R, moves = self._constrained(rows, Z, points, points[self.state[points] == STICKS])
        b, n = R @ free, len(R)
        b[len(at.held) :] += rows.drift.take(at.every[: n - len(at.held)])
        A = B = moves[:n]
        if len(moves) > n:  # what slides has forces in the plane of its normal and its slip
            pushed, across = -self.mu[at.slides, None] * slip[at.slides], moves[n:].reshape(len(at.slides), 2, -1)
            B = A.copy()
            B[at.smooth] += (pushed[:, None] @ across)[:, 0]
        return _System(at, A, B, b)

    def _constrained(
        self, rows: ContactRows, Z: Array, points: Indices, sticks: Indices
    ) -> tuple[_Layout, Array, Array]:
        """The rows R of what is held, of normals and of the tangents of some points; R Z, also of those that slide."""
        key = self.held.tobytes(), points.tobytes(), sticks.tobytes()
        at = self._layouts.get(key) or self._layouts.setdefault(key, self._laid_out(points, sticks))
        R = rows.jacobian.reshape(-1, len(Z)).take(at.every, axis=0)
        if self.held.size:
            R = np.concatenate([np.eye(len(Z))[self.held], R])
        return at, R[: len(R) - 2 * len(at.slides)], R @ Z

    def _laid_out(self, points: Indices, sticks: Indices) -> _Layout:
        """Where the rows of some points are, some of which stick."""
        h, (of_freedoms, of_points), slides = len(self.held), self.islands, np.setdiff1d(points, sticks)
        own = np.concatenate([of_freedoms[self.held], of_points[points], np.repeat(of_points[sticks], 2)])
        n, rough, islands = len(own), h + np.searchsorted(points, sticks), list[_Island]()
        tangents = np.arange(h + len(points), n).reshape(-1, 2)
        for k in np.unique(own):
            at = np.flatnonzero(own == k)
            within = np.isin(rough, at)
            n_at, t_at = (np.searchsorted(at, part[within]).tolist() for part in (rough, tangents))
            islands.append(_Island(at if len(at) < n else slice(None), within, n_at, t_at))
        of_sticks, of_slides = ((3 * own[:, None] + (1, 2)).ravel() for own in (sticks, slides))
        smooth, every = h + np.searchsorted(points, slides), np.concatenate([3 * points, of_sticks, of_slides])
        rows = slice(h, h + len(points)), rough, tangents, smooth, every
        return _Layout(self.held, points, sticks, slides, *rows, islands)

    def _bounds(self, largest: Array, touching: Flags) -> tuple[Array, Array]:
        """Bounds of what acts on each freedom: ± ``largest``, or infinite where a stop that it touches can push."""
        low, high = -largest, largest.copy()
        stops = self.stops
        low[stops.rows[touching & (stops.sign > 0)]] = -np.inf
        high[stops.rows[touching & (stops.sign < 0)]] = np.inf
        return low, high

    def _terms(self, x: _System, Z: Array, q: Array, qd: Array, force: Array) -> Array:
        """The size of the terms of accelerations u; what cannot move and is rounding in comparison becomes zero."""
        acting = np.abs(force) + np.abs(self.tree.bias_force(q, qd))  # which may balance each other
        terms = np.asarray(np.abs(x.A) @ (np.abs(Z.T) @ acting))
        x.b[~x.A.any(axis=1) & (np.abs(x.b) <= STILL * (1 + terms))] = 0.0
        return terms

    def _solved(
        self,
        x: _System,
        share: float,
        terms: Array | None = None,
        start: Array | None = None,
        friction: Array | float = 1.0,
    ) -> tuple[Array, Array, Array]:
        """Forces, accelerations u with them, and which freedoms are at their lower (−1) and upper (1) bound.

        Bounds are wider by a share of the edge; ``friction`` is relative to that of the points that stick.
        """
        low, high = np.zeros((2, len(x.b)))
        high += np.inf
        own = slice(0, len(x.at.held))
        if x.at.held.size:
            bounds = self._bounds(self.friction + share * self.edge, self.closed)
            low[own], high[own] = (bound[x.at.held] for bound in bounds)
        rough = self.mu[x.at.sticks] * (1 + share * EDGE) * friction
        found, u = np.zeros(len(x.b)), x.b.copy()
        for at, within, n, t in x.at.islands:
            G, cones = x.A[at] @ x.B[at].T, [Cone(*x) for x in zip(n, t, rough[within].tolist(), strict=True)]
            near, size = (None if given is None else given[at] for given in (start, terms))
            found[at] = forces(G, x.b[at], low[at], high[at], cones, near, size)
            u[at] += G @ found[at]
        with np.errstate(divide="ignore", invalid="ignore"):
            # Infinite, or not a number, where loops hold the freedom.
            z = found[own] - u[own] / (x.A[own] * x.B[own]).sum(axis=1)
        return found, u, np.asarray((z > high[own]).astype(float) - (z < low[own]))

    def _excess(self, x: _System, found: Array) -> tuple[Array, Array, Array]:
        """How far forces are beyond their bounds, of freedoms that are held, of normals and of points that stick."""
        own, normals = found[: len(x.at.held)], found[x.at.normals]
        if own.size:
            low, high = (bound[x.at.held] for bound in self._bounds(self.friction + self.edge, self.closed))
            own = np.maximum(own - high, low - own)
        lightest = (x.A[x.at.normals] ** 2).sum(axis=1).max(initial=0.0)  # what 1e-3 m/s² takes has the units of forces
        least = 1e-3 / lightest if lightest else 0.0
        scale = EDGE * (least + np.abs(found[len(x.at.held) :]).max(initial=0.0))
        cones = (1 + EDGE) * self.mu[x.at.sticks] * found[x.at.rough]
        tangents = np.hypot(*found[x.at.tangents].T) - cones
        return own, -normals - scale, tangents - scale

    # Impacts

    def strikes(self, q: Array, qd: Array) -> tuple[Indices, Indices]:
        """The points that touch and approach, and the stops that freedoms at their limits run against."""
        points = np.flatnonzero(self._near(q))
        if points.size:
            points = points[self.contacts.rows(q, qd).rates[points, 0] <= -self.slight]
        return points, np.flatnonzero(self._touching(q) & (self.stops.approach(qd) > REST))

    def _near(self, q: Array) -> Flags:
        """Which points touch."""
        return np.asarray(self.moves & (self.contacts.gaps(q)[0] < TOUCH))

    def _touching(self, q: Array) -> Flags:
        """At which stops freedoms are."""
        return np.asarray(self.stops.excess(q) >= -self.at_stop, dtype=bool)

    def strike(self, q: Array, qd: Array, force: Array, pairs: bool) -> Struck:
        """The impact of all points that touch, one pair of bodies after another if ``pairs``, and of freedoms at stops.

        A stop is a point without friction and restitution. Dry friction is finite, so it has no impulse.
        """
        hits, stopped = self.strikes(q, qd)
        at, touching, stops = np.flatnonzero(self._near(q)), np.flatnonzero(self._touching(q)), self.stops
        # With gaps that are not quite zero, the slips of a face that turns would not be quite those of a plane motion.
        q = self._shut(q, qd, at)
        rows, Z = self.rows(q, qd, at, stops.rows[touching])
        ends, e = dict[int, float](), self.restitution.copy()
        if hits.size:
            rebound = -e * rows.rates[:, 0]
            falls = -(rows.jacobian[:, 0] @ self.tree.forward_dynamics(q, qd, force) + rows.drift[:, 0])
            slow = hits[rebound[hits] < REBOUND * self.slight]
            ends = {
                i: float(2 * rebound[i] / ((1 - e[i]) * falls[i])) for i in slow.tolist() if rebound[i] > 0 < falls[i]
            }
            e[slow] = 0.0
        walls = np.zeros((len(touching), 3, len(qd)))
        walls[np.arange(len(touching)), 0, stops.rows[touching]] = -stops.sign[touching]
        J, none = np.concatenate([rows.jacobian[at], walls]).reshape(-1, len(qd)), np.zeros(len(touching))
        A, before = J @ Z, J @ qd
        bodies = [*self.bodies[at].tolist(), *(("stop", k) for k in touching.tolist())] if pairs else None
        rough, rigid = np.concatenate([self.mu[at], none]), np.concatenate([e[at], none])
        found = impulses(A @ A.T, before, rough, rigid, bodies, np.abs(J) @ np.abs(qd))
        rates = qd + Z @ (A.T @ found)
        after = J @ rates
        lost = -0.5 * float(found @ (before + after))
        impulse, pushes = np.zeros((len(e), 3)), np.zeros(len(qd))
        impulse[at] = found.reshape(-1, 3)[: len(at)]
        push, leaves = (x[3 * len(at) :: 3] for x in (found, after))
        # Those that are stopped are at rest but for rounding; so are those that approach their stop. Others have none.
        stopping = (push * (A[3 * len(at) :: 3] ** 2).sum(axis=1) > leaves) | (leaves < 0)
        np.add.at(pushes, stops.rows[touching], -stops.sign[touching] * push * stopping)
        rates[stops.rows[touching[stopping]]] = 0.0
        return Struck(q, rates, lost, impulse, hits, ends, pushes, stopped)

    def _shut(self, q: Array, qd: Array, at: Indices) -> Array:
        """The nearest configuration in the metric of M in which some points have no gap."""
        if not at.size:
            return q
        rows, Z = self.rows(q, qd, at, self.held)
        layout, R, moves = self._constrained(rows, Z, at, NONE)
        gaps = np.concatenate([np.zeros(len(self.held)), rows.gaps[at]])
        return self.tree.model.configurations.integrate(q, -_shift(layout, moves[: len(R)], Z, gaps))

    # Between events

    def settle(self, q: Array, qd: Array, force: Array) -> None:
        """Decide what is held, and in which direction the others slide, from now on.

        What moves is known from the rates; of what rests, that moves whose forces are at a bound and do not hold it.
        """
        moving = np.abs(qd) > REST
        touching = self._touching(q) & ~moving[self.stops.rows]
        at_rest = ~moving & (self.friction > 0)
        at_rest[self.stops.rows[touching]] = True
        self._note(np.where(moving, np.sign(qd), 0.0), at_rest, touching)
        young = self.young
        self._release()
        near = self._near(q)
        if not self.held.size and not near.any():
            return
        force = force + self.force
        free = self.tree.forward_dynamics(q, qd, force)
        rows, Z = self.rows(q, qd, np.flatnonzero(near), self.held)
        # What begins inside and would fall back before it is out of there stays.
        falls = np.maximum(-(rows.jacobian[:, 0] @ free + rows.drift[:, 0]), 0.0)
        inside = np.sqrt(self.slight**2 - 2 * falls * np.minimum(rows.gaps, 0.0))
        points = self._closed(rows, near & (rows.rates[:, 0] < inside), young)
        if self.young.any():  # as while they go on
            self._begin_slips(rows, Z, points, free, self.slip)
        x = self._system(rows, Z, points, free, self.slip)
        self._check_jams(x)
        h, mobility, terms = len(x.at.held), (x.A**2).sum(axis=1), self._terms(x, Z, q, qd, force)
        wide = (mobility[:h] > 0) & (self.shared | np.isin(x.at.held, self.stops.rows[self.closed]))
        self.edge = EDGE * self.friction
        self.edge[x.at.held[wide]] += EDGE * (1 + terms[:h][wide]) / mobility[:h][wide]
        found, u, sides = self._solved(x, 0.5, terms)
        if self.shared:
            sides *= np.abs(u[:h]) > STILL * (1 + terms[:h])
        direction = self.direction.copy()
        direction[x.at.held], at_rest[x.at.held] = -sides, sides == 0
        self._note(direction, at_rest, touching)
        scale = EDGE * (1e-3 + np.abs(x.b).max(initial=0.0))
        leave = points[u[x.at.normals] > scale]
        self.state[leave], self.grazes[leave] = OPEN, rows.rates[leave, 0] < 0
        slips = u[x.at.tangents]
        sizes = np.linalg.norm(slips, axis=1)
        for j in np.flatnonzero((sizes > 1e-2 * scale) & (self.state[x.at.sticks] != OPEN)).tolist():
            i = x.at.sticks[j]
            self.state[i], self.slip[i], self.speed[i], self.begun[i] = SLIDES, slips[j] / sizes[j], 0.0, True
        slides = np.flatnonzero((self.state == SLIDES) & (self.mu > 0))
        if slides.size:
            across = np.linalg.svd(rows.jacobian[slides, 1:] @ Z, compute_uv=False)
            self.plane[slides] = across[:, 1] > IN_A_LINE * across[:, 0]
            self.young |= self.begun & self.plane
        if not points.size:
            return
        # If the forces of least norm are not possible, keep others.
        least = self._system(rows, Z, points[self.state[points] != OPEN], free, self.slip)
        if all((part <= 0).all() for part in self._excess(least, _balance(least, None)[0])):
            return
        found = self._safer(x, terms, found, u, scale)
        bears = (found * mobility)[x.at.normals] > 1e-3 * scale
        self.state[points[(self.state[points] != OPEN) & ~bears]] = IDLE
        kept, state = np.zeros(len(x.b), dtype=bool), self.state
        kept[:h], kept[x.at.normals] = sides == 0, state[points] >= STICKS
        kept[x.at.tangents] = state[x.at.sticks, None] == STICKS
        self.start = found[kept]

    def _safer(self, x: _System, terms: Array, found: Array, u: Array, scale: float) -> Array:
        """Forces with the same accelerations for which what sticks would need less friction; the given ones if not."""
        # Those on the surface of a cone leave it at once where loads shift.
        for part in SAFER:
            friction = np.where(self.state[x.at.sticks] == STICKS, part, 1.0)
            with suppress(ContactError):
                safer, same, _ = self._solved(x, 0.5, terms, found, friction)
                if np.abs(same - u).max(initial=0.0) <= 1e-2 * scale:
                    return safer
        return found

    def _closed(self, rows: ContactRows, near: Flags, young: Flags) -> Indices:
        """The points that stay closed, or may, with their states as their rates are."""
        normal = rows.jacobian[:, 0].any(axis=1)
        near &= rows.rates[:, 0] > -self.slight
        self.state[near & ~normal & (rows.drift[:, 0] <= LEAVING)] = IDLE
        points = np.flatnonzero(near & normal)
        slip = rows.rates[:, 1:]
        speed = np.linalg.norm(slip, axis=1)
        for i in points.tolist():
            # A face that comes to rest while it turns does so as a whole.
            slowest = speed[points[self.bodies[points] == self.bodies[i]]].min()
            moves = self.mu[i] > 0 and speed[i] > (TOGETHER if slowest < SLOW else SLOW)
            self.state[i] = SLIDES if moves or self.mu[i] == 0 else STICKS
            self.slip[i] = slip[i] / speed[i] if moves else 0.0
        self.young, self.speed = young & (self.state == SLIDES) & (speed < FAST), speed
        return points

    def _check_jams(self, x: _System) -> None:
        """Raise ContactError if friction presses a sliding point harder than it yields (Painlevé)."""
        A, B = x.A[x.at.normals], x.B[x.at.normals]
        for i in x.at.points[(A * B).sum(axis=1) <= JAMMED * (A**2).sum(axis=1)].tolist():
            contact = self.contacts.contacts[self.contacts.owner[i]]
            raise ContactError(
                f"contact {contact.name!r} of {contact.link!r} and {contact.to!r} jams while it slides: friction "
                f"{contact.friction:g} presses it harder than it yields, so rigid bodies have no motion (the paradox "
                f"of Painlevé); reduce friction="
            )

    def forward_dynamics(self, q: Array, qd: Array, force: Array) -> Array:
        """q̈, (nv,), if what is held has none; without contacts."""
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

    def act(self, q: Array, qd: Array, force: Array, levels: bool = False) -> Acting:
        """What acts, with all other joint forces; also beyond the bounds of what is held."""
        h, state = len(self.held), self.state
        if not self.contacts.contacts and not (self.loops and levels):
            qdd, excess = self.forward_dynamics(q, qd, force), np.zeros(h)
            if levels and h:
                low, high = self._bounds(self.friction + self.edge, self.closed)
                reaction = self.tree.inverse_dynamics(q, qd, qdd) - force
                excess = np.maximum(reaction - high, low - reaction)[self.held]
            return Acting(qdd, held=excess)
        free, key = self.tree.forward_dynamics(q, qd, force), state.tobytes()
        if key not in self._active:
            loaded = np.flatnonzero(state >= STICKS)
            rubs = [(k, i, self.mu[i]) for k, i in enumerate(loaded.tolist()) if state[i] == SLIDES and self.mu[i] > 0]
            self._active[key] = np.flatnonzero(state), loaded, rubs
        closed, loaded, rubs = self._active[key]
        if not h and not closed.size:
            return Acting(free)
        rows, Z, slip = self.contacts.rows(q, qd), self._mobility(q, closed, self.held)[0], self.slip
        if rubs:  # smooth where a slip along a line comes to rest
            rates, slip, ahead = rows.rates.tolist(), slip.copy(), slip.tolist()
            for _, i, _ in rubs:
                _, u, v = rates[i]
                speed = math.hypot(u, v)
                if speed > MOVING:
                    along = math.copysign(1 / speed, u * ahead[i][0] + v * ahead[i][1])
                    slip[i] = along * u, along * v
            if np.count_nonzero(self.young):
                self._begin_slips(rows, Z, loaded, free, slip)
        x = self._system(rows, Z, loaded, free, slip)
        own, several = _balance(x, self.start)
        qdd, heat = free + Z @ (x.B.T @ own), 0.0
        if h:
            qdd[self.held] = 0.0
        if rubs:
            normal, ahead = own[x.at.normals].tolist(), slip.tolist()
            heat = sum(mu * normal[k] * (rates[i][1] * ahead[i][0] + rates[i][2] * ahead[i][1]) for k, i, mu in rubs)
        if not levels:
            return Acting(qdd, heat, own=(x, own, slip))
        out, (excess, normals, tangents) = -np.ones((len(state), 2)), self._excess(x, own)
        beyond = any((part > 0).any() for part in (excess, normals, tangents))
        if several and beyond and not _undetermined(x)[x.at.normals][[k for k, *_ in rubs]].any():
            # Of several that bear a load together one may be beyond its bound at rest.
            terms = self._terms(x, Z, q, qd, force)
            _, u, _ = self._solved(x, 1.0, terms)
            scale = EDGE * (1e-3 + np.abs(x.b).max())
            excess = np.abs(u[:h]) - STILL * (1 + terms[:h])
            normals = u[x.at.normals] - 2 * scale
            tangents = np.linalg.norm(u[x.at.tangents], axis=1) - 2e-2 * scale
        out[loaded, 0], out[x.at.sticks, 1] = normals, tangents
        sliding = [i for _, i, _ in rubs]
        out[sliding, 1] = -(rows.rates[sliding, 1:] * self.slip[sliding]).sum(axis=1)
        idle, away = state == IDLE, rows.jacobian[:, 0] @ qdd + rows.drift[:, 0]
        # Beyond what would be decided otherwise, by some margin.
        out[idle, 0] = np.abs(away[idle]) - max(LEAVING, 2 * EDGE * (1e-3 + np.abs(x.b).max(initial=0.0)))
        return Acting(qdd, heat, excess, out, (x, own, slip))

    def forces(self, acting: Acting) -> Array:
        """The forces λ of points, (k, 3), N."""
        found = np.zeros((len(self.state), 3))
        if acting.own is not None:
            x, own, slip = acting.own
            found[x.at.points, 0] = normal = own[x.at.normals]
            found[x.at.points, 1:] = (-self.mu[x.at.points] * normal)[:, None] * slip[x.at.points]
            found[x.at.sticks, 1:] = own[x.at.tangents]
        return found

    def pushes(self, q: Array, qd: Array, found: Array) -> Array:
        """The forces on the freedoms of forces on points, (nv,), N m or N."""
        return np.asarray(np.einsum("ki,kiv->v", found, self.contacts.rows(q, qd).jacobian))

    def reaction(self, q: Array, qd: Array, force: Array) -> Array:
        """The forces that hold freedoms if all others but those of loops are known, (nv,), N m or N: some that can."""
        found = np.zeros(len(force))
        if self.held.size:
            rows, Z = self.rows(q, qd, NONE, self.held)
            free = self.tree.forward_dynamics(q, qd, force)
            x = self._system(rows, Z, NONE, free, self.slip)
            found[self.held] = self._solved(x, 1.0, self._terms(x, Z, q, qd, force))[0]
        return found

    def _begin_slips(self, rows: ContactRows, Z: Array, loaded: Indices, free: Array, slip: Array) -> None:
        """Set the directions of slips that begin in a plane to those of u + LAG u̇, which explicit steps can follow."""
        speed = np.linalg.norm(rows.rates[:, 1:], axis=1)
        begin = np.flatnonzero(self.young & (self.state == SLIDES) & (speed < FAST))
        if not begin.size:
            return
        self.state[begin], island = STICKS, self.islands[1]
        key = begin.tobytes(), self.state.tobytes()
        x = self._system(rows, Z, loaded[(island[loaded, None] == island[begin]).any(axis=1)], free, slip)
        self.state[begin] = SLIDES
        own = x.at.tangents[np.searchsorted(x.at.sticks, begin)]
        # The time is the same for all slow points: redundant rows demand that what is added is that of rigid bodies.
        x.b[own] += rows.rates[begin, 1:] / (LAG * np.minimum(1.0, 2 - 2 * speed[begin, None] / FAST) ** 2)
        self.guess[key], u, _ = self._solved(x, 0.0, None, self.guess.get(key))
        sizes = np.hypot(*u[own].T)
        clear = sizes > 1e-12 * np.abs(x.b).max()
        slip[begin[clear]] = u[own][clear] / sizes[clear, None]

    def slipping(self, q: Array, qd: Array) -> tuple[Indices, Array]:
        """The freedoms that move points whose slip is slow, and rates of each that change no slip by more than FINE."""
        rows, slow = self.contacts.rows(q, qd), self.slow
        speed = np.maximum(np.linalg.norm(rows.rates[slow, 1:], axis=1), SLOW)
        reach = (np.abs(rows.jacobian[slow]).max(axis=1) / speed[:, None]).max(axis=0)
        freedoms = np.flatnonzero(reach)
        return freedoms, FINE / reach[freedoms]

    def project(self, q: Array, qd: Array) -> tuple[Array, Array]:
        """The nearest state with closed loops, (…, nq) and (…, nv), in which what is held stays where it is.

        Of one state, points that are closed have no gap, and those that stick or begin to slip do not slip.
        """
        q, qd = self.closure.project(q, np.array(qd))
        qd[..., self.held] = 0.0
        closed, sticks = np.flatnonzero(self.state), (self.state == STICKS) | self.begun
        if q.ndim > 1 or not closed.size:
            return q, qd
        q = self._shut(q, qd, closed)
        rows, Z = self.rows(q, qd, closed, self.held)
        at, R, moves = self._constrained(rows, Z, closed, np.flatnonzero(sticks))
        qd = qd - _shift(at, moves[: len(R)], Z, R @ qd)
        qd[self.held] = 0.0
        return q, qd

    def levels(self, q: Array, qd: Array, force: Array) -> Array:
        """Numbers that rise through zero when something changes.

        Freedoms begin to move, come to rest, or reach open stops; two for each point that is closed.
        """
        if not (self.held.size or self.sliding.size or self.open.size or np.count_nonzero(self.state)):
            return -np.ones(2 * len(self.state))
        acting = self.act(q, qd, force, levels=True)
        rests = -self.direction[self.sliding] * qd[self.sliding]
        out = -np.ones((len(self.state), 2)) if acting.points is None else acting.points
        held, closed = np.zeros(0) if acting.held is None else acting.held, self.state > OPEN
        if self.contacts.edges and closed.any():
            room = self.contacts.gaps(q)[1][closed]
            out[closed, 0] = np.maximum(out[closed, 0], -room)
        return np.concatenate([held, rests, self.stops.excess(q)[self.open], out.ravel()])

    def depths(self, q: Array) -> Array:
        """Numbers that rise through zero when open points touch, or those that graze go deeper, (k,), m."""
        depths = -self.contacts.gaps(q)[0] - 0.5 * TOUCH * self.grazes
        return np.where(self.moves & (self.state == OPEN), depths, -1.0)

    def change(self, k: int, q: Array, qd: Array) -> None:
        """Set in q or q̇ what is known but for rounding when the level k rises: a position at a stop, a rate of rest."""
        rows = np.concatenate([self.held, self.sliding])
        if k < len(rows):
            self._rest(q, qd, rows[k])
        elif k < len(rows) + len(self.open):
            entry = self.open[k - len(rows)]
            q[self.stops.where[entry]] = self.stops.values[entry]
            if self.stops.approach(qd)[entry] <= 0:  # it left the stop and came back within rounding
                self._rest(q, qd, self.stops.rows[entry])

    def _rest(self, q: Array, qd: Array, row: int) -> None:
        """Set a rate that is zero but for rounding, and with it those of the freedoms that others couple to it."""
        if self.loops:
            Z = self._mobility(q, NONE, NONE)[0]
            P = Z @ Z[row]
            qd -= P * (qd[row] / P[row] if P[row] else 0.0)
        qd[row] = 0.0

    def step(self, q: Array, qd: Array) -> int | None:
        """Note the directions of slips at the end of a step; the level of one that has come to rest, or None."""
        slides = np.flatnonzero((self.state == SLIDES) & (self.mu > 0)).tolist()
        rested, clear = None, ~self.young | self.stiff
        if slides:
            slip = self.contacts.rows(q, qd).rates[:, 1:]
            for i in slides:
                speed = float(np.linalg.norm(slip[i]))
                if speed < SLOW <= self.speed[i] and clear[i]:  # explicit steps of a slip that begins are not smooth
                    rested = len(self.held) + len(self.sliding) + len(self.open) + 2 * i + 1
                elif speed > SLOW:
                    self.slip[i] = slip[i] / speed
                self.speed[i] = speed
                self.young[i] &= speed < FAST
        return rested

    def flight(self, q: Array, qd: Array, force: Array) -> float:
        """The shortest time after which a point that leaves returns, s; infinite if none does."""
        leaving = self._near(q) & (self.state == OPEN)
        if not leaving.any():
            return np.inf
        rows = self.contacts.rows(q, qd)
        away = rows.jacobian[:, 0] @ self.act(q, qd, force).qdd + rows.drift[:, 0]
        back = leaving & (rows.rates[:, 0] > 0) & (away < 0)
        return float((2 * rows.rates[back, 0] / -away[back]).min(initial=np.inf))


def islands_of(model: Model) -> tuple[Indices, Indices]:
    """A number for each freedom and each point, which differs between islands.

    An island are the freedoms that joints, loops or contacts connect: what acts on one moves no other.
    """
    island, at = np.arange(model.nv), {name: k for k, name in enumerate(model.coordinates)}
    moved = {link: [at[name] for name in model.path(link)] for link in model.topology.attachments}
    for together in [*moved.values(), *(moved[tie.link] + moved[tie.to] for tie in model.topology.ties)]:
        own = island[together]
        island[np.isin(island, own)] = own.min(initial=model.nv)
    ends = [moved[x.link] + moved[x.to] for x in model.topology.contacts.values() for _ in x.spots]
    return island, np.array([island[own[0]] if own else 0 for own in ends], dtype=np.intp)


def _balance(x: _System, start: Array | None) -> tuple[Array, bool]:
    """The forces nearest to some with u = 0, or of least norm, and whether others are possible."""
    rest = -x.b if start is None else -x.b - x.A @ (x.B.T @ start)
    if len(x.at.islands) == 1:
        found, rank = least(x.A @ x.B.T, rest, REDUNDANT)
        several = rank < len(found)
    else:
        found, several = np.empty(len(rest)), False
        for at, *_ in x.at.islands:
            found[at], rank = least(x.A[at] @ x.B[at].T, rest[at], REDUNDANT)
            several |= rank < len(at)
    return found if start is None else found + start, several


def _undetermined(x: _System) -> Flags:
    """Which forces the equations leave open, because several bear a load together."""
    found = np.zeros(len(x.b), dtype=bool)
    for at, *_ in x.at.islands:
        _, sizes, kernel = np.linalg.svd(x.A[at] @ x.B[at].T)
        found[at] = (np.abs(kernel[sizes <= REDUNDANT * sizes[0]]) > SHARED).any(axis=0)
    return found


def _shift(at: _Layout, A: Array, Z: Array, y: Array) -> Array:
    """The v with R v = y that is least in the metric of M."""
    return np.asarray(Z @ (A.T @ _balance(_System(at, A, A, -y), None)[0]))
