"""Contacts in a simulation: which points are open, idle, stick or slide, and their forces (docs/mathematics.md §14)."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from screwdyn.core import Array, ContactError, Flags, Indices
from screwdyn.mechanism import Contact
from screwdyn.physics.closure import Closure
from screwdyn.physics.contact import ContactRows, Contacts
from screwdyn.physics.model import Robot
from screwdyn.physics.recursions.loops import KEPT_ANYWAY
from screwdyn.simulation.coulomb import Cone, forces
from screwdyn.simulation.impacts import impulses

# The entries of each point in a system of equations: the normal, and two tangents where it sticks.
Entries = dict[int, list[int]]

OPEN, IDLE, STICKS, SLIDES = range(4)
# What a user reads.
STATES = "open", "idle", "sticks", "slides"
# What is reported when a point changes from one state to another.
CHANGES: dict[tuple[int | None, int | None], str] = {
    (SLIDES, STICKS): "rest",
    **dict.fromkeys([(STICKS, SLIDES), (IDLE, SLIDES)], "slip"),
    **dict.fromkeys([(OPEN, IDLE), (OPEN, STICKS), (OPEN, SLIDES)], "touch"),
    **dict.fromkeys([(IDLE, OPEN), (STICKS, OPEN), (SLIDES, OPEN)], "leave"),
}

# Gap, m, of a point that touches, and rate of the gap, m/s, that closes again within the rounding of the gap.
TOUCH, SLIGHT = 1e-9, 1e-7
# Slip, m/s, that counts as rest; of a point of which another one on the same two links rests; and that has a direction.
SLOW, TOGETHER, MOVING = 1e-8, 1e-6, 1e-10
# Share of its cone by which a force exceeds it before a point slips; half of it where that is decided. A point slips
# if it then accelerates by a share of this share of the load.
EDGE, SHARP = 1e-9, 1e-2
# Rebound, m/s, that ends a series of bounces.
REBOUND = 1e-6
# While a slip in a plane begins, below so many m/s, friction has the direction that the slip has so many seconds later.
FAST, LAG = 1e-2, 1e-7
# Acceleration of a gap, m/s², at which an idle point is decided again.
LEAVING = 1e-7
# Singular values, relative to the largest, that are those of redundant forces.
REDUNDANT = 1e-10
# Singular values of the two tangents, relative to the larger, of a point that slides along a line only.
IN_A_LINE = 3e-5
# Of 1 / mass along the normal of a sliding point, what friction leaves of it where the point jams.
JAMMED = 1e-9
# Halvings of the friction that a distribution of redundant forces needs, and of these how many at least.
HALVINGS, ROUGH = 30, 6


class Acting(NamedTuple):
    """Accelerations q̈, forces λ, (k, 3), N, the power of friction, W, and accelerations of the gaps, (k,)."""

    qdd: Array
    forces: Array
    heat: float
    rates: Array
    away: Array


class Struck(NamedTuple):
    """The state after an impact, impulses, (k, 3), N s, which points hit, and when their bounces end, s."""

    q: Array
    qd: Array
    impulses: Array
    hits: Indices
    ends: dict[int, float]


class Touching:
    """The points of all contacts of one tree in a run, from a configuration on."""

    def __init__(self, tree: Robot, q: Array) -> None:
        self.tree, self.closure = tree, Closure(tree)
        self.contacts = Contacts(tree, tree.model)
        contacts, owner = self.contacts.contacts, self.contacts.owner
        self.friction = np.array([contact.friction for contact in contacts])[owner]
        self.restitution = np.array([contact.restitution for contact in contacts])[owner]
        bodies = [{contact.link, contact.to} for contact in contacts]
        self.bodies = np.array([bodies.index(pair) for pair in bodies])[owner]
        for contact in contacts:
            contact.check_slides()
        rows = self.contacts.rows(q, np.zeros(tree.model.nv))
        # Links that no joint moves relative to each other push nothing, wherever they are.
        self.moves = np.abs(rows.jacobian).max(axis=(1, 2), initial=0.0) > KEPT_ANYWAY
        gaps = np.where(self.moves, rows.gaps, 0.0)
        if gaps.min() < -TOUCH:
            at, depth = self.contacts.deepest(gaps)
            raise ContactError(
                f"{at.link!r} is {depth:.3g} mm inside {at.to!r} at contact {at.name!r}; start from "
                f"q = tree.separate(q)"
            )
        self._begin()

    def _begin(self) -> None:
        k = len(self.friction)
        self.state, self.direction = np.full(k, OPEN), np.zeros((k, 2))
        # Slips that begin in a plane, redundant forces that are possible, the slip after the last step, and what helps
        # to find directions.
        self.young, self.given, self.slip = np.zeros(k, dtype=bool), np.zeros((k, 3)), np.zeros(k)
        self.guess: dict[tuple[int, ...], Array] = {}

    def keys(self, points: Iterable[int]) -> list[tuple[int, int]]:
        """The contacts of points, by serial number, and which of their own points these are."""
        return [(contact.serial, own) for contact, (own,), _ in (next(self.grouped([i])) for i in points)]

    def grouped(self, points: Sequence[int]) -> Iterator[tuple[Contact, tuple[int, ...], list[int]]]:
        """The contacts of some points, with these points, and where they are among the points of all."""
        owner = self.contacts.owner
        for k, contact in enumerate(self.contacts.contacts):
            at = [i for i in points if owner[i] == k]
            if at:
                first = int(np.searchsorted(owner, k))
                yield contact, tuple(i - first for i in at), at

    def motions(self, q: Array) -> Array:
        """Z with the mobility P = Z Zᵀ: forces f on the freedoms change the accelerations by P f.

        Products of rows with Z agree to rounding where rows are redundant, those with P as well as M is conditioned.
        """
        if self.closure.loops:
            return self.closure.factors(q).motions()
        return np.asarray(np.linalg.inv(np.linalg.cholesky(self.tree.mass_matrix(q))).T)

    def rows(self, q: Array, qd: Array) -> tuple[ContactRows, Array]:
        """The rows of all points, and Z; normals along which no joint moves the points are zero, so have no forces."""
        rows, Z = self.contacts.rows(q, qd), self.motions(q)
        sizes = np.linalg.norm(rows.jacobian @ Z, axis=2)
        rows.jacobian[sizes[:, 0] <= REDUNDANT * sizes.max(axis=1, initial=0.0), 0] = 0.0
        return rows, Z

    # Impacts

    def strikes(self, q: Array, qd: Array) -> Indices:
        """The points that touch and approach."""
        if not self._near(q).any():
            return np.zeros(0, dtype=np.intp)
        return np.flatnonzero(self._near(q) & (self.contacts.rows(q, qd).rates[:, 0] <= -SLIGHT))

    def _near(self, q: Array) -> Flags:
        """Which points touch."""
        return np.asarray(self.moves & (self.contacts.gaps(q) < TOUCH))

    def strike(self, q: Array, qd: Array, free: Array, pairs: bool) -> Struck:
        """The impact of all points that touch, one pair of bodies after another if ``pairs``.

        ``free`` are the accelerations without contacts.
        """
        hits = self.strikes(q, qd)
        at = np.flatnonzero(self._near(q))
        # With gaps that are not quite zero, the slips of a face that turns would not be quite those of a plane motion.
        q = self._shut(q, qd, at)
        rows, Z = self.rows(q, qd)
        J = rows.jacobian[at].reshape(-1, len(qd))
        rebound, e = -self.restitution * rows.rates[:, 0], self.restitution.copy()
        ends = [i for i in hits.tolist() if rebound[i] < REBOUND]
        e[ends] = 0.0
        found = np.zeros((len(e), 3))
        one_by_one = self.bodies[at].tolist() if pairs else None
        A = J @ Z
        terms, bodies = np.abs(J) @ np.abs(qd), (self.friction[at], e[at], one_by_one)
        impulse = impulses(A @ A.T, rows.rates[at].ravel(), *bodies, terms)
        found[at] = impulse.reshape(-1, 3)
        rates = qd + Z @ (A.T @ impulse)
        falls = -(rows.jacobian[:, 0] @ free + rows.drift[:, 0])
        e = self.restitution
        waits = {i: float(2 * rebound[i] / ((1 - e[i]) * falls[i])) for i in ends if rebound[i] > 0 < falls[i]}
        return Struck(q, rates, found, hits, waits)

    def _shut(self, q: Array, qd: Array, at: Indices) -> Array:
        """The nearest configuration in the metric of M in which some points have no gap."""
        rows, Z = self.rows(q, qd)
        return self.tree.model.configurations.integrate(q, -Z @ _least(rows.jacobian[at, 0] @ Z, rows.gaps[at]))

    # Between events

    def settle(self, q: Array, qd: Array, force: Array) -> None:
        """Decide from the rates, and by the law of friction on accelerations, in which state each point is."""
        young = self.young
        self._begin()
        near = self._near(q)
        if not near.any():
            return
        rows, Z = self.rows(q, qd)
        near &= np.abs(rows.rates[:, 0]) < SLIGHT
        fixed = ~rows.jacobian[:, 0].any(axis=1)
        self.state[near & fixed & (rows.drift[:, 0] <= LEAVING)] = IDLE
        touching = np.flatnonzero(near & ~fixed)
        if not touching.size:
            return
        state, friction = self.state, self.friction
        slip = rows.rates[:, 1:]
        speed = np.linalg.norm(slip, axis=1)
        for i in touching.tolist():
            # A face that comes to rest while it turns does so as a whole.
            slowest = speed[touching[self.bodies[touching] == self.bodies[i]]].min()
            moves = friction[i] > 0 and speed[i] > (TOGETHER if slowest < SLOW else SLOW)
            state[i] = SLIDES if moves or friction[i] == 0 else STICKS
            self.direction[i] = slip[i] / speed[i] if moves else 0.0
        self.young = young & (state == SLIDES) & (speed < FAST)
        free = self.tree.forward_dynamics(q, qd, force)
        R, C, b, entries = self._system(rows, touching, free, self.direction)
        G = (R @ Z) @ (C @ Z).T
        self._check_jams(G, R @ Z, entries)
        x, u = self._solved(G, b, entries, 1 + EDGE / 2)
        scale = EDGE * (1e-3 + np.abs(b).max())
        for i, (n, *t) in entries.items():
            if u[n] > scale:
                state[i] = OPEN
            elif t and np.linalg.norm(u[t]) > SHARP * scale:
                state[i], self.direction[i] = SLIDES, u[t] / np.linalg.norm(u[t])
                sizes = np.linalg.svd(rows.jacobian[i, 1:] @ Z, compute_uv=False)
                self.young[i] = sizes[1] > IN_A_LINE * sizes[0]
        self._distribute(G, b, entries, self._least(rows, Z, free), x, scale)

    def _check_jams(self, G: Array, A: Array, entries: Entries) -> None:
        """Raise ContactError if friction presses a sliding point harder than it yields (Painlevé)."""
        for i, (n, *_) in entries.items():
            if G[n, n] <= JAMMED * (A[n] @ A[n]):
                contact = self.contacts.contacts[self.contacts.owner[i]]
                raise ContactError(
                    f"contact {contact.name!r} of {contact.link!r} and {contact.to!r} jams while it slides: friction "
                    f"{contact.friction:g} presses it harder than it yields, so rigid bodies have no motion (the "
                    f"paradox of Painlevé); reduce friction="
                )

    def _solved(self, G: Array, b: Array, entries: Entries, share: float) -> tuple[Array, Array]:
        """Forces, and accelerations with them, if friction bears a share of what it can."""
        cones = [Cone(n, (t[0], t[1]), share * self.friction[i]) for i, (n, *t) in entries.items() if t]
        x = forces(G, b, np.zeros(len(b)), np.full(len(b), np.inf), cones)
        return x, G @ x + b

    def _least(self, rows: ContactRows, Z: Array, free: Array) -> bool:
        """Whether the forces of least norm are possible."""
        closed = np.flatnonzero(self.state != OPEN)
        R, C, b, entries = self._system(rows, closed, free, self.direction)
        x, slack = np.linalg.lstsq((R @ Z) @ (C @ Z).T, -b, rcond=REDUNDANT)[0], 1 + EDGE
        return all(
            x[n] >= 0 and (not t or np.linalg.norm(x[t]) <= slack * self.friction[i] * x[n])
            for i, (n, *t) in entries.items()
        )

    def _distribute(self, G: Array, b: Array, entries: Entries, least: bool, x: Array, scale: float) -> None:
        """If the forces of least norm are not possible, keep others: those with about the least friction."""
        if least:
            return
        sticks = [i for i in entries if self.state[i] == STICKS]
        opens = [entries[i][0] for i in entries if self.state[i] == OPEN]
        low, high = 0.0, 1.0
        for count in range(HALVINGS if len(sticks) > 1 else 0):
            if count > ROUGH and high < 1:
                break
            middle = (low + high) / 2
            z, v = self._solved(G, b, entries, middle * (1 + EDGE / 2))
            stay = all(np.abs(v[entries[i]]).max() < scale for i in sticks) and (v[opens] >= scale).all()
            low, high, x = (low, middle, z) if stay else (middle, high, x)
        for i, (n, *t) in entries.items():
            if self.state[i] == OPEN:
                continue
            if x[n] <= 1e-3 * scale:
                self.state[i] = IDLE
            else:
                self.given[i, 0], self.given[i, 1:] = x[n], x[t] if t and self.state[i] == STICKS else 0.0

    def _system(
        self, rows: ContactRows, at: Indices, free: Array, direction: Array
    ) -> tuple[Array, Array, Array, Entries]:
        """Rows R of what is constrained, columns C of the forces, R q̈ + drift without them, and entries by point."""
        R, C, b, entries = list[Array](), list[Array](), list[float](), Entries()
        for i in at.tolist():
            J, drift = rows.jacobian[i], rows.drift[i].tolist()
            entries[i] = [len(R)]
            R.append(J[0])
            b.append(drift[0])
            C.append(J[0] - self.friction[i] * direction[i] @ J[1:] if self.state[i] == SLIDES else J[0])
            if self.state[i] == STICKS:
                entries[i] += [len(R), len(R) + 1]
                R, C, b = [*R, *J[1:]], [*C, *J[1:]], [*b, *drift[1:]]
        rows_, columns = (np.array(x).reshape(-1, len(free)) for x in (R, C))
        return rows_, columns, np.array(b) + rows_ @ free, entries

    def act(self, q: Array, qd: Array, force: Array) -> Acting:
        """What the contacts do, with all other joint forces."""
        free, k = self.tree.forward_dynamics(q, qd, force), len(self.state)
        closed = np.flatnonzero(self.state != OPEN)
        if not closed.size:
            return Acting(free, np.zeros((k, 3)), 0.0, np.zeros((k, 3)), np.zeros(k))
        (rows, Z), found, heat = self.rows(q, qd), np.zeros((k, 3)), 0.0
        slip, direction = rows.rates[:, 1:], self.direction.copy()
        for i in np.flatnonzero((self.state == SLIDES) & (self.friction > 0)).tolist():
            speed = np.linalg.norm(slip[i])
            if speed > MOVING:  # smooth where a slip along a line comes to rest
                direction[i] = np.copysign(1.0, slip[i] @ direction[i]) * slip[i] / speed
        loaded = np.flatnonzero(self.state >= STICKS)
        if self.young.any():
            self._begin_slips(rows, Z, loaded, free, direction)
        R, C, b, entries = self._system(rows, loaded, free, direction)
        G, x = (R @ Z) @ (C @ Z).T, np.zeros(len(b))
        for i, own in entries.items():
            x[own] = self.given[i, : len(own)]
        x += np.linalg.lstsq(G, -b - G @ x, rcond=REDUNDANT)[0]
        qdd = free + Z @ ((C @ Z).T @ x)
        for i, (n, *t) in entries.items():
            found[i, 0], found[i, 1:] = x[n], x[t] if t else -self.friction[i] * x[n] * direction[i]
            heat -= float(found[i] @ rows.rates[i]) if self.state[i] == SLIDES else 0.0
        return Acting(qdd, found, heat, rows.rates, rows.jacobian[:, 0] @ qdd + rows.drift[:, 0])

    def _begin_slips(self, rows: ContactRows, Z: Array, loaded: Indices, free: Array, direction: Array) -> None:
        """Set the directions of slips that begin in a plane to those of u + LAG u̇, which explicit steps can follow."""
        speed = np.linalg.norm(rows.rates[:, 1:], axis=1)
        begin = [i for i in np.flatnonzero(self.young).tolist() if speed[i] < FAST]
        if not begin:
            return
        self.state[begin] = STICKS
        R, C, b, entries = self._system(rows, loaded, free, direction)
        self.state[begin] = SLIDES
        for i in begin:
            b[entries[i][1:]] += rows.rates[i, 1:] / (LAG * (1 - speed[i] / FAST) ** 2)
        G, key = (R @ Z) @ (C @ Z).T, tuple(begin)
        cones = [Cone(n, (t[0], t[1]), self.friction[i]) for i, (n, *t) in entries.items() if t]
        x = forces(G, b, np.zeros(len(b)), np.full(len(b), np.inf), cones, self.guess.get(key))
        self.guess[key], u = x, G @ x + b
        for i in begin:
            v = u[entries[i][1:]]
            size = np.linalg.norm(v)
            if size > 1e-12 * np.abs(b).max():
                direction[i] = v / size

    def levels(self, q: Array, qd: Array, force: Array) -> Array:
        """Two numbers for each point that rise through zero when it changes, (2 k,)."""
        out = -np.ones((len(self.state), 2))
        opened, closed = self.moves & (self.state == OPEN), np.flatnonzero(self.state != OPEN)
        if opened.any():
            out[opened, 0] = -self.contacts.gaps(q)[opened]
        if closed.size:
            acting = self.act(q, qd, force)
            scale = EDGE * (1e-3 + np.abs(acting.forces).max())
            for i in closed.tolist():
                (n, *t), mu = acting.forces[i], self.friction[i]
                if self.state[i] == IDLE:
                    out[i, 0] = abs(acting.away[i]) - LEAVING
                elif self.state[i] == STICKS:
                    out[i] = -n - scale, np.linalg.norm(t) - mu * (1 + EDGE) * n - scale
                else:
                    out[i] = -n - scale, -acting.rates[i, 1:] @ self.direction[i] if mu > 0 else -1.0
        return out.ravel()

    def project(self, q: Array, qd: Array) -> tuple[Array, Array]:
        """The nearest state in the metric of M in which closed points stay closed, and those that stick at rest."""
        closed, sticks = np.flatnonzero(self.state != OPEN), self.state == STICKS
        if not closed.size:
            return q, qd
        q = self._shut(q, qd, closed)
        rows, Z = self.rows(q, qd)
        R = np.concatenate([rows.jacobian[closed, 0], rows.jacobian[sticks, 1:].reshape(-1, len(qd))])
        return q, qd - Z @ _least(R @ Z, R @ qd)

    def step(self, q: Array, qd: Array) -> int | None:
        """Note the directions of slips at the end of a step; the level of one that has come to rest, or None."""
        slides = np.flatnonzero((self.state == SLIDES) & (self.friction > 0)).tolist()
        rested = None
        if slides:
            slip = self.contacts.rows(q, qd).rates[:, 1:]
            for i in slides:
                speed = float(np.linalg.norm(slip[i]))
                if speed < SLOW and speed < 0.5 * self.slip[i]:
                    rested = 2 * i + 1
                elif speed > SLOW:
                    self.direction[i] = slip[i] / speed
                self.slip[i] = speed
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


def _least(A: Array, y: Array) -> Array:
    """The shortest x with A x = y."""
    return np.asarray(np.linalg.lstsq(A, y, rcond=REDUNDANT**0.5)[0])
