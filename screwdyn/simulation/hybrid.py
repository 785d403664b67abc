"""Hybrid simulation: continuous motions of one tree each, between them events that change the tree."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from screwdyn.core.errors import LoopError, ScrewdynError
from screwdyn.core.types import Array
from screwdyn.forms.limits import Key, Limits, Passages
from screwdyn.physics.closure import Closure
from screwdyn.physics.robot import Robot
from screwdyn.physics.state import State
from screwdyn.simulation.callbacks import Controller, Disturbance, guarded
from screwdyn.simulation.equations import ENERGIES, Equations
from screwdyn.simulation.events import Happened, Scheduled
from screwdyn.simulation.ledger import Energy
from screwdyn.simulation.motion import ROUNDING, Motion, Recorder
from screwdyn.simulation.outcomes import LimitEvent
from screwdyn.simulation.stalling import StallGuard
from screwdyn.simulation.stepping import OF_ONE_STEP, Crossings, Integrator, place
from screwdyn.simulation.stops import Stops

__all__ = ["HybridSimulation"]


class HybridSimulation:
    """A run while it is computed: motions of one tree each, between them events that change the tree.

    Parameters
    ----------
    tree : KinematicTree
        Changed by the events.
    start, end : float
        Times, s.
    step : float
        Seconds between samples.
    integrator : Integrator
    controller, disturbance, stops, events
        What acts on the tree, and what happens to it.
    """

    def __init__(
        self,
        tree: Robot,
        start: float,
        end: float,
        step: float,
        integrator: Integrator,
        *,
        controller: Controller | None = None,
        disturbance: Disturbance | None = None,
        stops: Stops | None = None,
        events: Sequence[Scheduled] = (),
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

    def run(self, state: State, progress: bool = False) -> tuple[tuple[Motion, ...], Energy, tuple[Happened, ...]]:
        """The motions, the energies and the events from a state on; errors as of :func:`simulate`."""
        from tqdm import tqdm

        state = _moving(self.tree, state)
        t, y, fired = self.start, np.concatenate([state.q, state.qd, np.zeros(ENERGIES)]), None
        layout = "{l_bar}{bar}| {n:.2f}/{total:.2f} s [{elapsed}<{remaining}]"
        hidden = not progress or sys.stderr is None  # as under pythonw
        with tqdm(total=self.end - self.start, disable=hidden, bar_format=layout) as bar:
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
        return tuple(self.motions), energy, tuple(self.happened)

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
