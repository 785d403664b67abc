"""Runs of trees with contacts whose parts nothing couples: an event ends the step of its own island only."""

from dataclasses import replace
from itertools import pairwise

import numpy as np

from screwdyn.changes.change import Happened, LimitEvent
from screwdyn.core import Array
from screwdyn.core.types import Flags, Indices
from screwdyn.physics import Robot, State
from screwdyn.physics.contact import Contacts
from screwdyn.simulation.bounded import OPEN, REDUNDANT, islands_of
from screwdyn.simulation.equations import ENERGIES
from screwdyn.simulation.hybrid import HybridSimulation, TreeMotion, accelerations
from screwdyn.simulation.integrators import Together
from screwdyn.simulation.recording import Energy


class Island:
    """The run of one island, with where its positions, freedoms and points of contacts are in the whole tree."""

    def __init__(self, whole: HybridSimulation, part: Robot, state: State, progress: bool | None) -> None:
        model, own = whole.tree.model, part.model
        self.q = np.array([model.positions.index(name) for name in own.positions], dtype=np.intp)
        self.v = np.array([model.coordinates.index(name) for name in own.coordinates], dtype=np.intp)
        contacts = model.topology.contacts.values()
        self.points = np.flatnonzero([x.name in own.topology.contacts for x in contacts for _ in x.spots])
        run = replace(whole, tree=part).run(State(part, state.q[self.q], state.qd[self.v]), progress)
        motions, self.energy, self.happened = run
        self.pieces = [piece for motion in motions for piece in motion.pieces]
        self.starts = np.array([piece.t_old for piece in self.pieces])
        self.owner = np.repeat(np.arange(len(motions)), [len(motion.t) for motion in motions])
        names = "t", "q", "qd", "qdd", "force", "contact"
        self.t, self.q_of, self.qd_of, *self.others = (np.concatenate([getattr(x, k) for x in motions]) for k in names)
        self.tree, self.contacts = part, Contacts(part, own)

    def samples(self, t: Array) -> tuple[Indices, list[Array]]:
        """The last sample up to each time, and q, q̇, q̈, forces, contacts, heat and losses there; times may repeat.

        Between own samples, motions are those of the integrator, with closed contacts, and forces linear.
        """
        first, after = np.searchsorted(self.t, t), np.searchsorted(self.t, t, side="right")
        repeated = np.arange(len(t)) - np.searchsorted(t, t)
        row = np.where(after > first, np.minimum(first + repeated, after - 1), after - 1)
        q, qd, *others, heat, loss = (
            x[row] for x in (self.q_of, self.qd_of, *self.others, self.energy.dissipated, self.energy.impact_loss)
        )
        between = np.flatnonzero(after == first)
        k = row[between]
        share = (t[between] - self.t[k]) / (self.t[k + 1] - self.t[k])
        for x, own in zip(others, self.others, strict=True):
            x[between] += (share * (own[k + 1] - own[k]).T).T
        others[2][between, :, 0] = self.others[2][k, :, 0]
        owners = np.searchsorted(self.starts, t[between], side="right") - 1
        nq, n = len(self.q), len(self.q) + len(self.v)
        for piece in np.unique(owners):
            at = between[owners == piece]
            y, others[0][at] = self.pieces[piece](t[at]).T, accelerations(self.pieces[piece], t[at], nq, n)
            q[at], qd[at], heat[at] = y[:, :nq], y[:, nq:n], y[:, n + 1]
        q[between] = self.closed(q[between], others[2][between, :, 0] > OPEN)
        return row, [q, qd, *others, heat, loss]

    def reported(self) -> Array:
        """When events were reported: those that lie ahead, such as the end of a series of bounces, just before."""
        times = [one.t for one in self.happened]
        return np.asarray(np.minimum.accumulate([*times, self.t[-1]][::-1])[:0:-1])

    def closed(self, q: Array, closed: Flags) -> Array:
        """The nearest configurations, (k, nq), in the metric of M, in which some points, (k, points), have no gap."""
        configurations = self.tree.model.configurations
        q = configurations.normalized(q)
        for which in np.unique(closed, axis=0):
            at = (closed == which).all(axis=1)
            rows = self.contacts.rows(q[at], np.zeros((at.sum(), len(self.v))))
            J = rows.jacobian[:, which, 0]
            moves = np.linalg.solve(self.tree.mass_matrix(q[at]), J.transpose(0, 2, 1))
            pushes = np.linalg.pinv(J @ moves, REDUNDANT, hermitian=True) @ rows.gaps[:, which, None]
            q[at] = configurations.integrate(q[at], -(moves @ pushes)[..., 0])
        return q


def simulated(
    whole: HybridSimulation, state: State, progress: bool | None
) -> tuple[tuple[TreeMotion, ...], Energy, tuple[Happened, ...]]:
    """:meth:`HybridSimulation.run`, of one island after another where no function and no change sees several."""
    parts = [] if whole.controller or whole.disturbance or whole.stops or whole.events else islands(whole.tree)
    if len(parts) < 2:
        return whole.run(state, progress)
    equations = whole.equations_from(np.concatenate([state.q, state.qd, np.zeros(ENERGIES)]))
    found = [Island(whole, part, state, progress) for part in parts]
    times = np.unique(np.concatenate([x.t for x in found]))
    counts = [np.searchsorted(x.t, times, side="right") - np.searchsorted(x.t, times) for x in found]
    t = times.repeat(np.max(counts, axis=0))
    model, k = equations.model, len(t)
    q, (qd, qdd, force) = np.empty((k, model.nq)), np.empty((3, k, model.nv))
    contact = np.empty((k, sum(len(x.points) for x in found), 4))
    heat, loss, none, ends = np.zeros(k), np.zeros(k), np.zeros(k), np.zeros(k, dtype=bool)
    for x in found:
        row, (q[:, x.q], qd[:, x.v], qdd[:, x.v], force[:, x.v], contact[:, x.points], *more) = x.samples(t)
        heat, loss, ends[1:] = heat + more[0], loss + more[1], ends[1:] | (np.diff(x.owner[row]) > 0)
    cuts = np.unique(np.concatenate([t[ends], t[[0, -1]], *(x.starts for x in found)]))
    middles, pieces = 0.5 * (cuts[1:] + cuts[:-1]), list[Together]()
    rows = [np.concatenate([x.q, model.nq + x.v]) for x in found]
    owners = [np.searchsorted(x.starts, middles, side="right") - 1 for x in found]
    for begin, end, *own in zip(cuts[:-1].tolist(), cuts[1:].tolist(), *owners, strict=True):
        parts_of = [(at, x.pieces[i]) for at, x, i in zip(rows, found, own, strict=True)]
        pieces.append(Together(begin, end, parts_of))
    motions = []
    for begin, end in pairwise([0, *np.flatnonzero(ends).tolist(), k]):
        first, last = np.searchsorted(cuts, t[[begin, end - 1]])
        at = slice(begin, end)
        samples = t[at], q[at], qd[at], qdd[at], np.zeros(qd[at].shape), equations.joints
        acting = pieces[first:last], force[at], contact[at]
        motions.append(TreeMotion(model.positions, model.coordinates, *samples, equations.tree, *acting))
    kinetic = np.asarray(equations.tree.kinetic_energy(q, qd))
    energy = Energy(kinetic, equations.potential(q), none, heat, loss, none, none)
    # In order of time, but for ends of bounces that are reported before.
    order = [(at, x, one) for x in found for at, one in zip(x.reported(), x.happened, strict=True)]
    order.sort(key=lambda what: what[0])
    q, qd = np.empty((len(order), model.nq)), np.empty((len(order), model.nv))
    for x in found:
        q[:, x.q], qd[:, x.v], *_ = x.samples(np.array([at for at, *_ in order]))[1]
    happened = []
    for (_, x, one), own_q, own_qd in zip(order, q, qd, strict=True):
        own_q[x.q], own_qd[x.v] = one.event.state.q, one.event.state.qd
        event = replace(one.event, state=State.of(equations.tree, own_q, own_qd, own=False))
        if isinstance(event, LimitEvent):  # of a limit that is passed
            event = replace(event, impulse=np.zeros(model.nv))
        happened.append(replace(one, event=event))
    return tuple(motions), energy, tuple(happened)


def islands(tree: Robot) -> list[Robot]:
    """Copies of a tree with contacts, each with the links of one island and those that no joint moves; or none.

    Beside loops, dry friction or joints that follow others, contacts are left as they are.
    """
    model = tree.model
    other = model.topology.loops or model.topology.followers or model.joint_forces.friction.any()
    if other or not model.topology.contacts:
        return []
    island, at = islands_of(model)[0], {name: k for k, name in enumerate(model.coordinates)}
    roots = dict[str, int]()
    for link in tree.links[1:]:
        path = model.path(link)
        if path and not model.path(tree.parent(link) or ""):
            roots[link] = int(island[at[path[0]]])
    parts = []
    for own in dict.fromkeys(roots.values()):
        part = tree.copy()
        for root, other in roots.items():
            if other != own:
                part.detach(root)
        parts.append(part)
    return parts
