"""Hybrid simulation: continuous motions of one tree each, between them events that change the tree."""

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.polynomial import chebyshev

from screwdyn.changes.breaking import Break
from screwdyn.changes.change import ContactEvent, Happened, LimitEvent, Scheduled
from screwdyn.core import Array, ContactError, LoopError, ScrewdynError, StalledError
from screwdyn.forms.configurations import Key, Limits
from screwdyn.forms.search import progress_bar
from screwdyn.physics import Robot, State
from screwdyn.physics.closure import Closure
from screwdyn.simulation.bounded import CHANGES
from screwdyn.simulation.equations import ENERGIES, Controller, Disturbance, EquationsOfMotion, Stops, guarded
from screwdyn.simulation.integrators import (
    OF_ONE_STEP,
    Crossings,
    Integrator,
    Passages,
    Polynomial,
    Together,
    solution,
)
from screwdyn.simulation.recording import INTEGRATION, Energy, Samples

# Which of the two states at the time of an event.
Side = Literal["before", "after"]
# Fraction of the time between samples that counts as rounding.
ROUNDING = 1e-9
# Changes of contacts, and the time within which so many have no end, relative or in s.
MOST_CHANGES, AT_ONCE = 50, 1e-12
# Steps between samples that one of the integrator may take while contacts, friction and stops are watched within it.
WITHIN = 8
# Steps in which no robot moves, s, such as those of loops that can only be where they are singular.
HOPELESS = 1e-8
# Of the estimated time up to the end of a flight, the first step, so that it does not end just before.
BEYOND = 1.01
# Nodes that determine the polynomial of one step of any integrator.
NODES = 14
# Steps after which the progress is judged; with contacts, whose slips begin and end in many short steps.
WINDOW, WINDOW_OF_CONTACTS = 400, 20_000
# Remaining steps at the present progress that are accepted without a closer look: seconds to minutes.
MANY = 100_000
# Multiple of the tolerance up to which a motion counts as smooth enough for longer steps.
SMOOTH = 100.0
# Multiple of rtol, relative to energies, and of atol, J, that an integrator may leave at most.
LOOSE = 1e3
# Change of a torque, relative to the largest torque, that counts as a jump.
JUMP = 0.01
# Distance from the last state, relative or in rad, m, rad/s or m/s, within which jumps are searched for, and number of
# halvings of this distance that must retain a jump.
NEAR, HALVINGS = 1e-6, 12


@dataclass(frozen=True, eq=False)
class TreeMotion(Samples):
    """The motion of one tree between two changes: samples, and the integrator's polynomials in order of time."""

    tree: Robot
    pieces: Sequence[Polynomial | Together]
    # All joint forces but those that hold freedoms and those of contacts, (k, nv).
    force: Array
    # State and forces of the points of contacts, (k, points, 4).
    contact: Array

    def forces(self, times: Array | None) -> Array:
        """The joint forces at times within the motion, (k, nv), linear between samples, or at all samples."""
        if times is None:
            return self.force
        return np.array([np.interp(times, self.t, x) for x in self.force.T]).reshape(-1, len(times)).T

    def contacts(self, t: float, side: Side) -> Array:
        """States and forces of the points of contacts at a time within the motion, (points, 4), linear between."""
        last = len(self.t) - 1
        k = min(int(np.searchsorted(self.t, t, side="right")) - 1, last)
        if side == "before" and k and self.t[k] == t:
            k = int(np.searchsorted(self.t, t, side="left")) - 1
        found: Array = self.contact[k].copy()
        if k < last:
            share = float((t - self.t[k]) / (self.t[k + 1] - self.t[k]))
            found[:, 1:] += share * (self.contact[k + 1, :, 1:] - found[:, 1:])
        return found

    def values(self, times: Array | None) -> tuple[Array, Array, Array]:
        """Positions, rates and accelerations, (k, nq) and (k, nv), at times within the motion, or at all samples."""
        if times is None or not self.pieces:  # a motion without duration has one sample
            at = np.arange(len(self.t)) if times is None else np.zeros(len(times), dtype=int)
            return self.q[at], self.qd[at], self.qdd[at]
        model = self.tree.model
        nq, n = model.nq, model.nq + model.nv
        y, qdd = solution(self.pieces, times, n), np.empty((len(times), n - nq))
        owners = np.maximum(np.searchsorted([piece.t_old for piece in self.pieces], times, side="right") - 1, 0)
        for k in np.unique(owners):
            at = owners == k
            qdd[at] = accelerations(self.pieces[k], times[at], nq, n)
        return model.configurations.normalized(y[:, :nq]), y[:, nq:], qdd


def accelerations(piece: Polynomial | Together, times: Array, nq: int, n: int) -> Array:
    """The slopes of the rates, (k, n − nq), of an integrator's polynomial at times in its step."""
    x, length = np.cos(np.pi * (np.arange(NODES) + 0.5) / NODES), piece.t - piece.t_old
    rates = piece(piece.t_old + 0.5 * length * (x + 1))[nq:n].T
    slope = chebyshev.chebder(chebyshev.chebfit(x, rates, NODES - 1))
    return np.asarray(chebyshev.chebval(2 * (times - piece.t_old) / length - 1, slope).T * (2 / length))


class Recorder:
    """Collects the samples of a motion from ``begin`` on: at times start + k step, s, and at both ends of it."""

    def __init__(self, equations: EquationsOfMotion, begin: float, start: float, step: float) -> None:
        self.equations, self.start, self.step = equations, start, step
        self.next = math.floor((begin - start) / step + ROUNDING) + 1
        self.times: list[Array] = []
        self.values: list[Array] = []
        # Torques, accelerations and joint forces; states and forces of contacts.
        self.derived: list[tuple[Array, Array, Array, Array]] = []
        self.pieces: list[Polynomial] = []

    def sample(self, t: float, y: Array) -> None:
        """Take a sample, of a state in which loops and contacts are closed."""
        self._take(np.array([t]), y[:, None])

    def step_to(self, end: float, piece: Polynomial) -> None:
        """Take the samples before the end of a step."""
        self.pieces.append(piece)
        after = math.ceil((end - self.start) / self.step - ROUNDING)
        if after > self.next:
            times = np.maximum(self.start + self.step * np.arange(self.next, after), piece.t_old)
            self.next = after
            self._take(times, piece(times))

    def _take(self, times: Array, values: Array) -> None:
        equations = self.equations
        if equations.touching:
            values = np.array([equations.closed(y) for y in values.T]).T
        elif equations.bounded is not None:  # what is held now may move at the end
            values = equations.closed(values.T).T
        self.times.append(times)
        self.values.append(values)
        if not equations.smooth:
            states = zip(times.tolist(), *equations.parts(values.T), strict=True)
            self.derived += [equations.sample(*state) for state in states]

    def ended(self) -> tuple[TreeMotion, tuple[Array, ...]]:
        """The motion, and its kinetic and potential energy, work of torques, dissipation and work of wrenches, J."""
        equations = self.equations
        y = np.concatenate(self.values, axis=1).T
        y = equations.closed(y) if equations.bounded is None else y
        q, qd = equations.parts(y)
        if equations.smooth:
            force, torque = equations.own.viscous_force(qd) + equations.own.spring_force(q), np.zeros(qd.shape)
            qdd, contact = np.asarray(equations.tree.forward_dynamics(q, qd, force)), np.zeros((len(q), 0, 4))
        else:
            *derived, contacts = zip(*self.derived, strict=True)
            torque, qdd, force = (np.array(x).reshape(qd.shape) for x in derived)
            contact = np.array(contacts)
        model, tree, t = equations.model, equations.tree, np.concatenate(self.times)
        samples = model.positions, model.coordinates, t, q, qd, qdd, torque, equations.joints
        motion = TreeMotion(*samples, tree, self.pieces, force, contact)
        kinetic = np.asarray(tree.kinetic_energy(q, qd))
        return motion, (kinetic, equations.potential(q), *y[:, equations.n :].T)


class StallGuard:
    """Judges the steps of an integration of one tree, of a run until ``end``, from a start on."""

    def __init__(self, equations: EquationsOfMotion, integrator: Integrator, end: float, t: float, y: Array) -> None:
        self.equations, self.integrator, self.end = equations, integrator, end
        self.restart(t, y)

    def restart(self, t: float, y: Array) -> None:
        """Begin at a state, and forget the steps before it."""
        self.t, self.Y = [t], [y]
        self.window = WINDOW_OF_CONTACTS if self.equations.touching else WINDOW
        self.gain = self._gained(y)[0]

    def step(self, t: float, y: Array, longest: float) -> None:
        """StalledError if the run would not end at the pace of the steps up to t, though smooth, or ever.

        LoopError if energy is gained or lost without a cause near a singular configuration.
        """
        self.t.append(t)
        self.Y.append(y)
        gain, scale = self._gained(y)
        rtol, atol = self.integrator.rtol, self.integrator.atol
        if abs(gain - self.gain) > max(INTEGRATION, LOOSE * rtol) * scale + LOOSE * atol:
            singular = self.lost(t, y, f"{abs(gain - self.gain):.2g} J of energy have no cause")
            if singular is not None:
                raise singular
            self.gain = gain
        if len(self.t) > self.window:
            pace = (t - self.t[0]) / self.window
            slow = pace * MANY < self.end - t and pace < 0.1 * longest
            if slow and (pace < HOPELESS or self._smooth() or self._jump()):
                raise self.error(t, f"its steps are only {pace:.1g} s long")
            self.restart(t, y)

    def _gained(self, y: Array) -> tuple[float, float]:
        """Energy that the ledger does not explain, and its largest term, J; zero without loops."""
        if self.equations.closure is None:
            return 0.0, 0.0
        work, dissipated, disturbed = y[-ENERGIES:].tolist()
        energy = self.equations.energy(y)
        terms = energy, -work, dissipated, -disturbed
        return sum(terms), max(map(abs, terms))

    def _smooth(self) -> bool:
        """Whether a cubic polynomial follows the motion over all noted steps."""
        integrator = self.integrator
        t, Y = np.array(self.t), np.array(self.Y)[:, : self.equations.n]
        basis = chebyshev.chebvander(2 * (t - t[0]) / (t[-1] - t[0]) - 1, 3)
        residual = Y - basis @ np.linalg.lstsq(basis, Y, rcond=None)[0]
        return bool((np.abs(residual) < SMOOTH * (integrator.atol + integrator.rtol * np.abs(Y))).all())

    def lost(self, t: float, y: Array, seen: str) -> LoopError | None:
        """The error for loops with a singular configuration near y; None if there is none."""
        names = ", ".join(map(repr, self.equations.dependent(y)))
        if not names:
            return None
        return LoopError(
            f"the run cannot pass a singular configuration at t = {t:.9g} s, near which constraints of {names} are "
            f"dependent: {seen}; choose a motion that avoids it, or open the loop there"
        )

    def error(self, t: float, seen: str) -> ScrewdynError:
        """The error for an integration that does not get on at time t, with its cause."""
        singular = self.lost(t, self.Y[-1], seen)
        if singular is not None:
            return singular
        name, jump = None, self._jump()
        if jump is not None:
            what, name, low, high = jump
            cause = (
                f", because {what} {name!r} jumps between {low:.4g} and {high:.4g}. Compute it once per period "
                f"(control_period=), or make it continuous, such as tanh instead of sign; dry friction is a parameter "
                f"of a joint (friction=)"
            )
        elif self.integrator.method in OF_ONE_STEP and (stiffest := self._stiffest(t, self.Y[-1]))[1] < self.end - t:
            name, constant = stiffest
            implicit = "Reduce" if self.equations.closure else "Use method='Radau' or 'LSODA', or reduce"
            if self.equations.touching:
                implicit = "Reduce friction= of the contacts, which may jam (the paradox of Painlevé), or"
            cause = (
                f", because the forces on {name!r} balance within {constant:.1g} s, which the explicit method "
                f"{self.integrator.method} must follow. {implicit} the damping, stiffness or gain at {name!r}"
            )
        elif self.equations.closure is not None:
            cause = (
                ". If its closed loops can only be where they are, such as two bars that are stretched between two "
                "pins, lock their joints, or open a loop"
            )
        else:
            cause = (
                ". If the motion does not diverge there, try another method=, such as 'Radau' or 'DOP853', or a "
                "larger rtol="
            )
        return StalledError(f"the integration stalls at t = {t:.9g} s: {seen}{cause}", t, name)

    def _jump(self) -> tuple[str, str, float, float] | None:
        """A torque or a force of wrenches that jumps close to the last state: what, coordinate, both values."""
        equations, t, y = self.equations, self.t[-1], self.Y[-1]
        sources = {"the torque on": equations.controller, "the force of wrenches= on": equations.disturbance}
        for what, source in sources.items():
            if source is None:
                continue
            largest = np.abs(source(t, *equations.parts(y))).max(initial=0.0)
            for k in range(equations.n):
                aside = np.zeros(len(y))
                aside[k] = NEAR * (1 + abs(y[k]))
                low, high = y - aside, y + aside
                below, above = (source(t, *equations.parts(x)) for x in (low, high))
                jump = np.abs(above - below)
                if jump.max(initial=0.0) <= JUMP * max(largest, np.abs(above).max(), np.abs(below).max()):
                    continue
                i = int(np.argmax(jump))
                # Where a function is continuous, its change over a part of an interval is a part of its change.
                for _ in range(HALVINGS):
                    middle = 0.5 * (low + high)
                    value = source(t, *equations.parts(middle))
                    if abs(value[i] - below[i]) > abs(above[i] - value[i]):
                        high, above = middle, value
                    else:
                        low, below = middle, value
                if abs(above[i] - below[i]) > 0.3 * jump[i]:
                    values = float(below[i]), float(above[i])
                    return what, equations.model.coordinates[i], min(values), max(values)
        return None

    def _stiffest(self, t: float, y: Array) -> tuple[str, float]:
        """The coordinate with the fastest balance of forces, and its time constant, s."""
        equations = self.equations
        rates = slice(equations.nq, equations.n)
        values, vectors = np.linalg.eig(equations.jacobian(t, y)[rates, rates])
        k = int(np.argmax(np.abs(values)))
        name = equations.model.coordinates[int(np.argmax(np.abs(vectors[:, k])))]
        return name, float(1 / max(abs(values[k]), 1e-300))


@dataclass(eq=False)
class HybridSimulation:
    """A run from start to end while it is computed: motions of one tree each, between them events that change it."""

    tree: Robot
    start: float
    end: float
    step: float
    integrator: Integrator
    controller: Controller | None = None
    disturbance: Disturbance | None = None
    stops: Stops | None = None
    events: Sequence[Scheduled[Any]] = ()
    # Whether pairs of bodies that touch act one after another in an impact.
    pairs: bool = False

    def __post_init__(self) -> None:
        self.pending = list(self.events)
        self.happened: list[Happened] = []
        self.motions: list[TreeMotion] = []
        # Of each motion.
        self.acting: list[EquationsOfMotion] = []
        # Of the ledger, in its order, for each motion.
        self.columns: list[tuple[Array, ...]] = []
        # Energy dissipated by events, and energy exchanged by them.
        self.booked = np.zeros(2)
        # The states of the points of contacts, by contact and point; None for one that was just in an impact.
        self.touching: dict[tuple[int, int], int | None] = {}
        # The time of the last change of contacts, and how many there were at about this time.
        self.changed, self.changes = -math.inf, 0
        # The next step as the integrator planned it when it last stopped; 0 if the tree has changed since.
        self.stride = 0.0

    def run(
        self, state: State, progress: bool | None = False
    ) -> tuple[tuple[TreeMotion, ...], Energy, tuple[Happened, ...]]:
        """The motions, the energies and the events from a state on; errors as of :func:`simulate`."""
        # Without a gap or a rate of loops that counts as rounding; LoopError if the state opens a loop.
        closure = Closure(self.tree)
        closure.check_moving(state.q, state.qd)
        q, qd = closure.project(state.q, state.qd)
        t, y, fired = self.start, np.concatenate([q, qd, np.zeros(ENERGIES)]), None
        looks = "{l_bar}{bar}| {n:.2f}/{total:.2f} s [{elapsed}<{remaining}]"
        with progress_bar(shown=progress, total=self.end - self.start, bar_format=looks) as bar:
            self._enter(t, y, self.equations_from(y))
            self._begin_beyond(t, y, ())
            while True:
                y = self._events(t, y, fired)
                while self.equations.struck(y):
                    y = self._events(t, self._strike(t, y), None)
                if t >= self.end:
                    break
                if self.controller is not None:
                    self.controller.sample(t, *self.equations.parts(y))
                self.equations.settle(t, y)
                if self._settled(t, y) or not self.recorder.times:
                    self.recorder.sample(t, y)
                t, y, fired = self._advance(t, y, bar)
        self._leave(t, y)
        energy = Energy(*(np.concatenate(column) for column in zip(*self.columns, strict=True)))
        return tuple(self.motions), energy, tuple(self.happened)

    def equations_from(self, y: Array) -> EquationsOfMotion:
        """The equations of the present tree, from y on."""
        return EquationsOfMotion(self.tree, self.controller, self.disturbance, self.stops, y)

    def _enter(self, t: float, y: Array, equations: EquationsOfMotion) -> None:
        """Begin a motion at y."""
        self.equations = equations
        self.equations.check_rates(t, y[self.equations.nq : self.equations.n])
        self.recorder = Recorder(self.equations, t, self.start, self.step)
        self.guard = StallGuard(self.equations, self.integrator, self.end, t, y)
        self.stride = 0.0
        if self.integrator.method not in OF_ONE_STEP:
            method, usable = self.integrator.method, ", ".join(OF_ONE_STEP)
            if self.equations.closure is not None:
                raise LoopError(f"method={method!r} cannot keep loops closed; use one of {usable}")
            if self.equations.touching:
                raise ContactError(f"method={method!r} cannot keep contacts closed; use one of {usable}")
        self.passages = Passages(self.equations.passable, self.equations.nq, y)

    def _leave(self, t: float, y: Array) -> None:
        """End the motion of the present tree."""
        self.recorder.sample(t, y)
        motion, (*own, external) = self.recorder.ended()
        self.motions.append(motion)
        self.acting.append(self.equations)
        self.columns.append((*own, *np.broadcast_to(self.booked[:, None], (2, len(external))), external))

    def _events(self, t: float, y: Array, fired: Scheduled[Any] | None) -> Array:
        """Let the events that are due happen, ``fired`` in any case, and return y after them."""
        left = False
        while (due := next((x for x in self.pending if x is fired or self._level(x, t, y) > 0), None)) is not None:
            if not left:
                self._leave(t, y)
                left = True
            y = self._happen(due, t, y)
        return y

    def _happen(self, what: Scheduled[Any], t: float, y: Array) -> Array:
        self.pending.remove(what)
        state = self._state(y)
        potential = float(self.equations.potential(state.q))
        try:
            event = what.happen(self.tree, state)
        except ScrewdynError as error:
            what.placed(error, t)
            raise
        y, beyond = np.concatenate([event.state.q, event.state.qd, y[-ENERGIES:]]), self.passages.beyond
        self._enter(t, y, self.equations_from(y))
        event = replace(event, state=self._state(y))
        brought = float(self.equations.potential(event.state.q)) - potential + event.kinetic_energy_brought
        self.booked = self.booked + np.array([event.energy_lost, brought])
        self.happened.append(Happened(t, what, event))
        self._begin_beyond(t, y, beyond)
        return y

    def _begin_beyond(self, t: float, y: Array, before: Container[Key]) -> None:
        """Report the limits that are passed by a start or a change, and were not passed before."""
        for key, k in self.passages.beyond.items():
            if key not in before:
                self._report(t, y, self.equations.passable, k)

    def _strike(self, t: float, y: Array) -> Array:
        """Let the impact on inelastic stops or at contacts happen; returns y after it."""
        equations, bounded = self.equations, self.equations.bounded
        assert bounded is not None
        # Just after a change of the tree at the same time, the motion has no sample and no duration.
        if self.recorder.times or not self.motions:
            self._leave(t, y)
        q, qd = equations.parts(y)
        struck = bounded.strike(q, qd, equations.forces(t, q, qd)[1], self.pairs)
        if struck.hits.size:
            self._count(t)
        # What closes gaps takes only counts as rounding.
        lost = struck.lost + equations.energy(y)
        lost -= equations.energy(np.concatenate([struck.q, qd]))
        y = np.concatenate([struck.q, struck.qd, y[-ENERGIES:]])
        self._enter(t, y, equations.resumed(y))
        self.booked = self.booked + np.array([lost, 0.0])
        if struck.hits.size:
            self._report_contact(t, y, "touch", struck.hits.tolist(), struck.impulses, lost)
            lost = 0.0
        if struck.ends:
            self._report_contact(t + max(struck.ends.values()), y, "rest", [*struck.ends])
        self.touching.update({bounded.keys[i]: None for i in struck.hits.tolist()})
        for k in struck.stops.tolist():
            self._report(t, y, bounded.stops, k, struck.pushes, lost)
            lost, struck.pushes[:] = 0.0, 0.0
        return y

    def _report(
        self, t: float, y: Array, limits: Limits, k: int, impulse: Array | None = None, lost: float = 0.0
    ) -> None:
        """Report that a limit is reached."""
        link, joint, name, side = limits.keys[k]
        impulse = np.zeros(self.equations.model.nv) if impulse is None else impulse.copy()
        event = LimitEvent(
            state=self._state(y), link=link, joint=joint, coordinate=name, side=side, impulse=impulse, energy_lost=lost
        )
        self.happened.append(Happened(t, None, event))

    def _settled(self, t: float, y: Array) -> bool:
        """Report what has changed at contacts, and choose the first step; whether something has changed."""
        equations, bounded = self.equations, self.equations.bounded
        if bounded is None or not equations.touching:
            return False
        before, found = self.touching, dict[str, list[int]]()
        self.touching = dict(zip(bounded.keys, bounded.state.tolist(), strict=True))
        for point, key in enumerate(bounded.keys):
            what = CHANGES.get((before.get(key), self.touching[key]))
            if what is not None:
                found.setdefault(what, []).append(point)
        for what, points in found.items():
            self._report_contact(t, y, what, points)
        q, qd = equations.parts(y)
        flight = bounded.flight(q, qd, equations.forces(t, q, qd)[1])
        if flight < math.inf:  # a long first step has errors larger than the height of a short flight
            flight *= BEYOND
            self.stride = min(self.stride or flight, flight)
        return before != self.touching

    def _count(self, t: float) -> None:
        """Count a change of contacts; StalledError if there is no end of them at one time."""
        self.changes = self.changes + 1 if t - self.changed < AT_ONCE * max(1.0, abs(t)) else 0
        self.changed = t
        if self.changes > MOST_CHANGES:
            raise StalledError(
                f"the contacts {', '.join(self.equations.tree.contacts)} change without end at t = {t:.9g} s; "
                f"give faces fewer points, such as three, which determine their forces, or restitution=0",
                t,
            )

    def _report_contact(
        self, t: float, y: Array, what: str, points: list[int], impulses: Array | None = None, lost: float = 0.0
    ) -> None:
        """Report that something happens at points of contacts, an event for each contact; the first has the loss."""
        bounded = self.equations.bounded
        assert bounded is not None
        axes = bounded.contacts.frames(self.equations.parts(y)[0])[1]
        for contact, own, at in bounded.grouped(points):
            impulse = np.zeros((len(at), 3))
            if impulses is not None:
                impulse = np.einsum("ki,kij->kj", impulses[at], axes[at])
            event = ContactEvent(
                state=self._state(y),
                link=contact.link,
                contact=contact.name,
                points=own,
                change=what,
                impulse=impulse,
                energy_lost=lost,
            )
            lost = 0.0
            self.happened.append(Happened(t, None, event))

    def _advance(self, t: float, y: Array, bar: Any) -> tuple[float, Array, Scheduled[Any] | None]:
        """The time and y at the next event, call of the controller or change of friction or stops, and that event."""
        equations, guard = self.equations, self.guard
        times = [event.time for event in self.pending if event.time is not None and event.time > t]
        called = math.inf if self.controller is None else self.controller.next_call
        until = min([self.end, called, *times])
        if self.end - until < ROUNDING * self.step:
            until = self.end
        conditions = [event for event in self.pending if event.watched]
        watched: list[Any] = [partial(self._level, event) for event in conditions]
        if equations.bounded is not None or equations.springs is not None:
            watched += [equations.levels, equations.depths] if equations.touching else [equations.levels]
        # Without functions of the user, dry friction and stops, nothing can happen between two steps, however long.
        longest = self.step if watched or equations.tried else math.inf
        if equations.bounded is not None and not conditions and not equations.tried:
            longest *= WITHIN
        stiff = equations.stiff
        integrator = replace(self.integrator, method="Radau") if stiff else self.integrator
        solver = integrator.start(equations, t, y, until, longest, self.stride)
        crossings = Crossings(watched, t, y)
        found = None
        while solver.status == "running" and found is None and equations.stiff == stiff:
            message = solver.step()
            if solver.status == "failed":
                raise guard.error(solver.t, message.rstrip("."))
            t, y = float(solver.t), solver.y
            equations.check_rates(t, y[equations.nq : equations.n])
            piece = solver.dense_output()
            parts = round((t - piece.t_old) / self.step) if watched else 1
            for inside in np.linspace(piece.t_old, t, max(1, parts) + 1)[1:-1].tolist():
                found = found or crossings.first(inside, piece(inside), piece)
            found = found or crossings.first(t, y, piece)
            if found is not None:
                t = found[0]
                y = piece(t)
            if equations.closure is not None or equations.touching:
                free = y
                try:
                    y = equations.closed(y)
                except LoopError as error:
                    raise (guard.lost(t, y, str(error)) or error) from None
                rested = equations.step(y)
                if found is None and rested is not None:
                    found = t, len(conditions) + rested
                if found is None and y is not free:
                    solver.y, solver.f[:] = y, equations.rate(t, y)
            guard.step(t, y, longest)
            self.recorder.step_to(t, piece)
            for at, k in self.passages.step(t, y, piece):
                self._report(at, piece(at), equations.passable, k)
            bar.update(max(0.0, t - self.start - bar.n))
        self.stride = getattr(solver, "h_abs", t - piece.t_old)
        y = np.concatenate([*equations.parts(y), y[-ENERGIES:]])
        if found is None:
            guard.restart(t, y)
        elif found[1] < len(conditions):
            return t, y, conditions[found[1]]
        else:
            if equations.touching:
                self._count(t)
                self.recorder.sample(t, y)
            equations.change(found[1] - len(conditions), y)
        return t, y, None

    def _level(self, event: Scheduled[Any], t: float, y: Array) -> float:
        level = partial(event.level, force=self.equations.loads(t, y)) if isinstance(event, Break) else event.level
        return guarded(level, self.tree)(t, self._state(y))

    def _state(self, y: Array) -> State:
        return State.of(self.equations.tree, *self.equations.parts(y), own=False)
