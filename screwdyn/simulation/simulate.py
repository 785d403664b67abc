"""Simulation of a motion from event to event, with an energy ledger."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from screwdyn.core.errors import LoopError, ScrewdynError
from screwdyn.core.types import Array
from screwdyn.physics.closure import Closure
from screwdyn.physics.robot import Robot
from screwdyn.simulation.callbacks import Controller, Disturbance, SampledController, Torque, Wrenches, guarded
from screwdyn.simulation.equations import ENERGIES, Equations
from screwdyn.simulation.events import Happened, Scheduled, seconds
from screwdyn.simulation.limits import Key, Limits, Passages
from screwdyn.simulation.motion import ROUNDING, Motion, Recorder
from screwdyn.simulation.outcomes import LimitEvent
from screwdyn.simulation.recording import Energy
from screwdyn.simulation.result import Run
from screwdyn.simulation.stalling import StallGuard
from screwdyn.simulation.state import State, check_state
from screwdyn.simulation.stepping import METHODS, OF_ONE_STEP, Crossings, Integrator, place
from screwdyn.simulation.stops import Stops, check_stops, joints_of

__all__ = ["simulate"]

# Samples of a run, and calls of a controller, that fit in memory and time.
MOST = 10_000_000


def simulate(
    tree: Robot,
    state: State,
    duration: float,
    torque: Torque | None = None,
    events: Sequence[Scheduled] = (),
    progress: bool = False,
    *,
    t0: float = 0.0,
    control_period: float | None = None,
    wrenches: Wrenches | None = None,
    stops: Stops | None = None,
    saturate: bool = False,
    step: float | None = None,
    rtol: float = 1e-9,
    atol: float = 1e-10,
    method: str = "DOP853",
) -> Run:
    """Integrate M q̈ + C q̇ + g = τ + joint forces + Σ J_iᵀ F_i from event to event (docs/mathematics.md §8).

    Parameters
    ----------
    tree : KinematicTree
        Changed by the events, as by :meth:`KinematicTree.grasp`; restored after an error.
    state : State
        At time ``t0``.
    duration : float
        Seconds, > 0.
    torque : callable (t, state) -> array or mapping from coordinate to torque, optional
        Torques in N m or N, as an array over all freedoms, (nv,), or over the active ones only, in order. A mapping may
        omit coordinates, whose torque is then zero, and may give the torques of a joint of several freedoms together,
        ``{"hip": [x, y, z]}``. ``state.tree`` is a copy of the tree at that time. The torque on a passive joint must be
        zero; below 1e-9 of the largest torque it counts as rounding and is set to zero. By default there are no
        torques. Without ``control_period``, the integrator also calls the function for trial steps, so its results must
        be a continuous function of time and state and must not depend on earlier calls.
    events : sequence of events, such as :class:`Grasp` and :class:`Release`
        Each happens once, at its time or as soon as its condition holds. Events that are due at the same time happen in
        the given order.
    progress : bool
        Show a progress bar.
    t0 : float
        Time at the start of the run, s, >= 0. Times in callbacks, events and the result are absolute, so that a run
        can be continued: ``simulate(tree, run.states[-1], …, t0=run.t[-1])``.
    control_period : float, optional
        Seconds between calls of ``torque``, > 0: the function is called at t0, t0 + period, …, once each, and its
        output is held between calls, as a digital controller does. It may keep a memory, such as an integral or an
        observer. An event between two calls does not cause another: the torques of the coordinates that remain are
        held, and those of new coordinates are zero. An event at the time of a call happens first.
    wrenches : callable (t, state) -> mapping from link to (6,) array, optional
        External wrenches [n; f], N m and N, about the origin of the link's frame and in its axes. Called like
        ``torque`` without ``control_period``: also for trial steps.
    stops : "inelastic", SpringStop, or mapping from joint to one of them, optional
        What happens at joint limits, for all joints or for those of the mapping, which may also name joints that
        events bring. At an inelastic stop the coordinate
        comes to rest in an impact, and stays until a force pulls it away. By default the motion continues beyond the
        limits. In each case a :class:`LimitEvent` is reported when a coordinate reaches a limit from inside, or begins
        beyond it; one that begins exactly at a limit reaches it if it goes beyond, be it by rounding.
    saturate : bool
        Clip each torque at the ``effort`` of its joint, as a motor that cannot give more does. The clipped torques act,
        do work, and are those of the run. Joints without an effort are not limited. The effort of a joint that follows
        another one has no influence: the torque is that of the joint that it follows.
    step : float, optional
        Seconds between samples, > 0; a thousandth of the duration by default. It is also the largest step of the
        integrator if there are callbacks, dry friction or stops: the integrator can miss changes of a torque or of a
        condition that last less.
    rtol, atol, method
        As for :func:`scipy.integrate.solve_ivp`. Use ``"Radau"`` or ``"LSODA"`` for stiff joints.

    Returns
    -------
    Run

    Raises
    ------
    StaleHandleError
        If the state does not belong to the present tree.
    ShapeError, UnknownNameError
        If a torque or wrench has a wrong shape or an entry that is not finite, or belongs to an unknown coordinate or
        link.
    JointError
        If there is a torque on a passive joint.
    UnknownNameError
        If a stop belongs to no joint of the tree or of an event.
    StalledError
        If the run would not end, because a torque is discontinuous or because an explicit method meets stiff joints;
        the message states the coordinate and a remedy.
    TopologyError
        If a callback changes the tree.
    LoopError
        If the state opens a closed loop, or the run cannot pass a singular configuration of loops, which the message
        names; for methods other than RK23, RK45 and DOP853, dry friction, or inelastic stops in a tree with loops.
    ScrewdynError
        If the duration, step, period, an event, a condition or a stop is invalid, a coordinate begins beyond an
        inelastic stop, or the integration fails.

    Notes
    -----
    Closed loops stay closed: after each step and in each sample, the state is projected on them in the metric of M
    (docs/mathematics.md §12). In a singular configuration the motion may continue on another branch.

    Dry friction is not smoothed: a joint at rest sticks until the force on it exceeds its friction, and the times at
    which joints begin and cease to slide are located (docs/mathematics.md §8).

    Errors raised in ``torque``, ``wrenches``, ``when`` or an event are passed to the caller after the tree is restored.
    """
    start, duration = seconds("t0", t0), seconds("duration", duration, positive=True)
    end = start + duration
    step = duration / 1000 if step is None else seconds("step", step, positive=True)
    _check_count("step", step, start, duration, "samples")
    for what, tolerance in (("rtol", rtol), ("atol", atol)):
        if not (isinstance(tolerance, float | int | np.floating) and 0 < tolerance < math.inf):
            raise ScrewdynError(f"{what} must be a number > 0; got {tolerance!r}")
    if not isinstance(method, str) or method not in METHODS:
        raise ScrewdynError(f"method must be one of {', '.join(METHODS)}; got {method!r}")
    for what, function in (("torque", torque), ("wrenches", wrenches)):
        if function is not None and not callable(function):
            raise ScrewdynError(f"{what} must be a function of (t, state); got {function!r}")
    for what, flag in (("saturate", saturate), ("progress", progress)):
        if not isinstance(flag, bool | np.bool_):
            raise ScrewdynError(f"{what} must be True or False; got {flag!r}")
    if saturate and torque is None:
        raise ScrewdynError("saturate needs a torque to clip; give torque= or omit it")
    controller = None if torque is None else Controller(guarded(torque, tree), saturate)
    if control_period is not None:
        period = seconds("control_period", control_period, positive=True)
        _check_count("control_period", period, start, duration, "calls")
        if torque is None:
            raise ScrewdynError("control_period needs a torque to call; give torque= or omit it")
        controller = SampledController(guarded(torque, tree), period, start, saturate)
    if not isinstance(events, Sequence) or not all(isinstance(event, Scheduled) for event in events):
        raise ScrewdynError(f"events must be a list of events, such as Grasp and Release; got {events!r}")
    for event in events:
        if event.time is not None and not start <= event.time <= end:
            span = f"lasts {duration:g} s" if start == 0 else f"is from {start:g} s to {end:g} s"
            raise ScrewdynError(f"the run {span}, but a {type(event).__name__} is set for {event.time:g} s")
    check_state(state, tree)
    if stops is not None:
        ever = (joints_of(tree), *(event.joints(tree) for event in events))
        check_stops(stops, [named for joints in ever for named in joints.items()])
    with tree.transaction():
        disturbance = None if wrenches is None else Disturbance(guarded(wrenches, tree))
        integrator = Integrator(method, rtol, atol)
        simulation = _Simulation(tree, start, end, controller, disturbance, stops, events, step, integrator)
        return simulation.run(_moving(tree, state), progress)


def _moving(tree: Robot, state: State) -> State:
    """The start of a run, without a gap or a rate of loops that counts as rounding.

    Raises
    ------
    LoopError
        If the state opens a loop.
    """
    closure = Closure(tree, tree.model)
    if not closure.loops:
        return State(tree, state.q, state.qd)
    closure.check_moving(state.q, state.qd)
    return State(tree, *closure.project(state.q, state.qd))


def _check_count(what: str, period: float, start: float, duration: float, counted: str) -> None:
    """Raise an error for a period that is too short for memory and time, or for the resolution of floats."""
    if duration / period > MOST:
        raise ScrewdynError(
            f"{what}={period:g} s makes {duration / period:.3g} {counted} in {duration:g} s, more than {MOST:g}; "
            f"choose it larger"
        )
    if not start + duration + period > start + duration:
        raise ScrewdynError(f"{what}={period:g} s is shorter than the resolution of times at t0 = {start:g} s")


class _Simulation:
    """A run while it is computed: motions of one tree each, between them events that change the tree."""

    def __init__(
        self,
        tree: Robot,
        start: float,
        end: float,
        controller: Controller | None,
        disturbance: Disturbance | None,
        stops: Stops | None,
        events: Sequence[Scheduled],
        step: float,
        integrator: Integrator,
    ) -> None:
        self.tree, self.start, self.end, self.step = tree, start, end, step
        self.controller, self.disturbance, self.integrator = controller, disturbance, integrator
        self.stops = stops
        self.pending = list(events)
        self.levels = {event: guarded(event.level, tree) for event in events}
        self.happened: list[Happened] = []
        self.motions: list[Motion] = []
        self.columns: list[tuple[Array, ...]] = []
        # Energy dissipated by events, and energy exchanged by them.
        self.booked = np.zeros(2)
        # The limits that are passed.
        self.beyond: set[Key] = set()
        # The next step as the integrator planned it when it last stopped; 0 if the tree has changed since.
        self.stride = 0.0

    def run(self, state: State, progress: bool) -> Run:
        from tqdm import tqdm

        t, y, fired = self.start, np.concatenate([state.q, state.qd, np.zeros(ENERGIES)]), None
        layout = "{l_bar}{bar}| {n:.2f}/{total:.2f} s [{elapsed}<{remaining}]"
        with tqdm(total=self.end - self.start, disable=not progress, bar_format=layout) as bar:
            self._enter(t, y)
            self._begin_beyond(t, y)
            while True:
                y = self._events(t, y, fired)
                while self.equations.struck(y):
                    y = self._events(t, self._strike(t, y), None)
                if t >= self.end:
                    break
                if self.controller is not None:
                    self.controller.sample(t, *self.equations.layout.parts(y))
                self.equations.settle(t, y)
                if not self.recorder.times:
                    self.recorder.sample(t, y)
                t, y, fired = self._advance(t, y, bar)
        self._leave(t, y)
        kinetic, potential, work, dissipated, external, impact_loss, exchanged = (
            np.concatenate(c) for c in zip(*self.columns, strict=True)
        )
        energy = Energy(kinetic, potential, work, dissipated, impact_loss, exchanged, external)
        return Run(tuple(self.motions), energy, tuple(self.happened), self.tree)

    def _enter(self, t: float, y: Array) -> None:
        """Begin the motion of the present tree at y."""
        self.equations = Equations(self.tree, self.controller, self.disturbance, self.stops, y)
        self.equations.check_rates(t, y[self.equations.nq : self.equations.n])
        self.recorder = Recorder(self.equations, t, self.start, self.step)
        self.guard = StallGuard(self.equations, self.integrator, self.end, t, y)
        self.stride = 0.0
        if self.equations.closure is not None and self.integrator.method not in OF_ONE_STEP:
            usable = ", ".join(OF_ONE_STEP)
            raise LoopError(f"method={self.integrator.method!r} cannot keep loops closed; use one of {usable}")
        self.passages = Passages(self.equations.passable, self.equations.nq, y)

    def _leave(self, t: float, y: Array) -> None:
        """End the motion of the present tree."""
        self.recorder.sample(t, y)
        self.beyond = self.passages.beyond
        self.motions.append(self.recorder.motion())
        energies = self.recorder.energies()
        self.columns.append((*energies, *np.broadcast_to(self.booked[:, None], (2, len(energies[0])))))

    def _events(self, t: float, y: Array, fired: Scheduled | None) -> Array:
        """Let the events that are due happen; returns y after them."""
        due = self._due(t, y, fired)
        if due is not None:
            self._leave(t, y)
        while due is not None:
            y = self._happen(due, t, y)
            due = self._due(t, y, fired)
        return y

    def _due(self, t: float, y: Array, fired: Scheduled | None) -> Scheduled | None:
        """The first pending event that is due; ``fired`` is due, although its condition may hold only to rounding."""
        for event in self.pending:
            if event is fired or self._level(event, t, y) > 0:
                return event
        return None

    def _happen(self, what: Scheduled, t: float, y: Array) -> Array:
        self.pending.remove(what)
        state = self.equations.layout.state(y)
        potential = float(self.equations.potential(state.q))
        try:
            event = what.happen(self.tree, state)
        except ScrewdynError as error:
            error.add_note(f"in a {type(what).__name__} at t = {t:g} s")
            raise
        y = np.concatenate([event.state.q, event.state.qd, y[-ENERGIES:]])
        self._enter(t, y)
        event = replace(event, state=self.equations.layout.state(y))
        brought = float(self.equations.potential(event.state.q)) - potential + event.kinetic_energy_brought
        self.booked = self.booked + np.array([event.energy_lost, brought])
        self.happened.append(Happened(t, what, event))
        self._begin_beyond(t, y)
        return y

    def _begin_beyond(self, t: float, y: Array) -> None:
        """Report the limits that are passed by a start or a change."""
        limits = self.equations.passable
        for k in np.flatnonzero(self.passages.before > 0).tolist():
            if limits.keys[k] not in self.beyond:
                self._report(t, y, limits, k)
        self.beyond = self.passages.beyond

    def _strike(self, t: float, y: Array) -> Array:
        """Let the impact on inelastic stops happen; returns y after it."""
        holding, layout = self.equations.holding, self.equations.layout
        assert holding is not None
        # Just after a change of the tree at the same time, the motion has no sample and no duration.
        if self.recorder.times or not self.motions:
            self._leave(t, y)
        strike = holding.strike(*layout.parts(y))
        y = np.concatenate([y[: layout.nq], strike.rates, y[-ENERGIES:]])
        self._enter(t, y)
        self.booked = self.booked + np.array([strike.energy_lost, 0.0])
        first, *others = strike.entries
        self._report(t, y, holding.stops, first, strike.impulse, strike.energy_lost)
        for k in others:
            self._report(t, y, holding.stops, k)
        return y

    def _report(
        self, t: float, y: Array, limits: Limits, k: int, impulse: Array | None = None, lost: float = 0.0
    ) -> None:
        """Report that a limit is reached."""
        link, joint, coordinate, side = limits.keys[k]
        event = LimitEvent(
            state=self.equations.layout.state(y),
            link=link,
            joint=joint,
            coordinate=coordinate,
            side=side,
            impulse=np.zeros(self.equations.model.nv) if impulse is None else impulse,
            energy_lost=lost,
        )
        self.happened.append(Happened(t, None, event))

    def _advance(self, t: float, y: Array, bar: Any) -> tuple[float, Array, Scheduled | None]:
        """Integrate until an event or a call of the controller is due, or dry friction or a stop changes.

        Returns the time, y, and the event whose condition began to hold.
        """
        equations, guard = self.equations, self.guard
        times = [event.time for event in self.pending if event.time is not None]
        called = math.inf if self.controller is None else self.controller.next_call
        until = min([self.end, called, *times])
        if self.end - until < ROUNDING * self.step:
            until = self.end
        conditions = [event for event in self.pending if event.when is not None]
        watched: list[Any] = [partial(self._level, event) for event in conditions]
        if equations.holding is not None or equations.springs is not None:
            watched.append(equations.levels)
        # Without functions of the user, dry friction and stops, nothing can happen between two steps, however long.
        longest = self.step if watched or equations.tried else math.inf
        solver = self.integrator.start(equations, t, y, until, longest, self.stride)
        crossings = Crossings(watched, t, y)
        found = None
        while solver.status == "running" and found is None:
            message = solver.step()
            if solver.status == "failed":
                raise guard.error(solver.t, message.rstrip("."))
            t, y = solver.t, solver.y
            equations.check_rates(t, y[equations.nq : equations.n])
            piece = solver.dense_output()
            found = crossings.first(t, y, piece)
            if found is not None:
                t = found[0]
                y = piece(t)
            if equations.closure is not None:
                y = self._closed(t, y)
                if found is None:
                    place(solver, y)
            guard.step(t, y, longest)
            self.recorder.step_to(t, piece)
            for at, k in self.passages.step(t, y, piece):
                self._report(at, piece(at), equations.passable, k)
            bar.update(max(0.0, t - self.start - bar.n))
        self.stride = getattr(solver, "h_abs", t - piece.t_old)
        y = np.concatenate([*equations.layout.parts(y), y[-ENERGIES:]])
        if found is None:
            guard.restart(t, y)
        if found is not None and found[1] < len(conditions):
            return t, y, conditions[found[1]]
        if found is not None:
            equations.change(found[2], y)
        return t, y, None

    def _closed(self, t: float, y: Array) -> Array:
        """The y with closed loops that is nearest to a given one."""
        try:
            return self.equations.closed(y)
        except LoopError as error:
            raise (self.guard.lost(t, y, str(error)) or error) from None

    def _level(self, event: Scheduled, t: float, y: Array) -> float:
        return self.levels[event](t, self.equations.layout.state(y))
