"""Simulation of a motion from event to event, with an energy ledger."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from screwdyn.core.errors import JointError, ScrewdynError, ShapeError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.mechanism.joint import Joint
from screwdyn.physics.robot import Robot
from screwdyn.simulation.events import Happened, Scheduled, seconds
from screwdyn.simulation.result import Energy, Run
from screwdyn.simulation.state import State, by_name, check_state

__all__ = ["simulate"]

# Rate in rad/s or m/s above which a run is stopped, because an unstable controller makes the steps ever smaller.
RUNAWAY = 1e6
# Torque on a passive joint, relative to the largest torque of the call, that counts as rounding and is set to zero.
ROUNDING = 1e-9
METHODS = ("RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA")

Torque = Callable[[float, State], ArrayLike | Mapping[str, float]]
Wrenches = Callable[[float, State], Mapping[str, ArrayLike]]


def simulate(
    tree: Robot,
    state: State,
    duration: float,
    torque: Torque | None = None,
    events: Sequence[Scheduled] = (),
    progress: bool = False,
    *,
    wrenches: Wrenches | None = None,
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
        At time 0.
    duration : float
        Seconds, > 0.
    torque : callable (t, state) -> (nv,) array or mapping from coordinate to torque, optional
        Torques of the active joints, N m or N. A mapping may omit coordinates, whose torque is then zero, and may give
        the torques of a joint of several freedoms together, ``{"hip": [x, y, z]}``. ``state.tree`` is a copy of the
        tree at that time. The integrator also calls the function for trial steps, so its results must not depend on
        earlier calls. The torque on a passive joint must be zero; below 1e-9 of the largest torque it counts as
        rounding and is set to zero. By default there are no torques.
    events : sequence of events, such as :class:`Grasp` and :class:`Release`
        Each happens once, at its time or as soon as its condition holds. Events that are due at the same time happen in
        the given order.
    progress : bool
        Show a progress bar.
    wrenches : callable (t, state) -> mapping from link to (6,) array, optional
        External wrenches [n; f], N m and N, about the origin of the link's frame and in its axes. Called like
        ``torque``.
    step : float, optional
        Seconds between samples, > 0; a thousandth of the duration by default. It is also the largest step of the
        integrator, which can miss changes of a torque or of a condition that last less.
    rtol, atol, method
        As for :func:`scipy.integrate.solve_ivp`. Use ``"Radau"`` or ``"LSODA"`` for stiff joints and for dry friction,
        which is friction · tanh(1000 q̇) here.

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
    ScrewdynError
        If the duration, step, an event or a condition is invalid, or the integration fails.

    Notes
    -----
    Errors raised in ``torque``, ``wrenches``, ``when``, a grasp or a release are passed to the caller after the tree is
    restored.
    """
    duration = seconds("duration", duration, positive=True)
    step = duration / 1000 if step is None else seconds("step", step, positive=True)
    for what, tolerance in (("rtol", rtol), ("atol", atol)):
        if not (isinstance(tolerance, float | int | np.floating) and 0 < tolerance < math.inf):
            raise ScrewdynError(f"{what} must be a number > 0; got {tolerance!r}")
    if method not in METHODS:
        raise ScrewdynError(f"method must be one of {', '.join(METHODS)}; got {method!r}")
    for what, function in (("torque", torque), ("wrenches", wrenches)):
        if function is not None and not callable(function):
            raise ScrewdynError(f"{what} must be a function of (t, state); got {function!r}")
    if not isinstance(events, Sequence) or not all(isinstance(event, Scheduled) for event in events):
        raise ScrewdynError(f"events must be a list of events, such as Grasp and Release; got {events!r}")
    for event in events:
        if event.time is not None and event.time > duration:
            kind = type(event).__name__
            raise ScrewdynError(f"the run lasts {duration:g} s, but a {kind} is set for {event.time:g} s")
    check_state(state, tree)
    with tree.transaction():
        simulation = _Simulation(tree, duration, torque, wrenches, events, step, (method, rtol, atol))
        return simulation.run(State(tree, state.q, state.qd), progress)


class _Simulation:
    """The data of a run while it is computed; a segment is the motion between two events."""

    def __init__(
        self,
        tree: Robot,
        duration: float,
        torque: Torque | None,
        wrenches: Wrenches | None,
        events: Sequence[Scheduled],
        step: float,
        solver: tuple[str, float, float],
    ) -> None:
        self.tree, self.duration, self.step, self.solver = tree, duration, step, solver
        self.torque, self.wrenches = torque, wrenches
        # The tree of the states of the present segment: events change the tree, not this copy.
        self.present = tree.copy()
        self.pending = list(events)
        self.happened: list[Happened] = []
        self.columns: list[tuple[Array, ...]] = []
        self.states: list[State] = []
        self.torques: list[Array] = []
        self.joints: dict[str, Joint] = {}
        # Work of the torques, dissipation in joints, work of the wrenches; dissipation in impacts, energy exchanged.
        self.integrals, self.booked = np.zeros(3), np.zeros(2)

    def run(self, state: State, progress: bool) -> Run:
        from tqdm import tqdm

        t, fired = 0.0, None
        layout = "{l_bar}{bar}| {n:.2f}/{total:.2f} s [{elapsed}<{remaining}]"
        with tqdm(total=self.duration, disable=not progress, bar_format=layout) as bar:
            self._sample(t, state)
            while True:
                due = self._due(t, state, fired)
                if due is not None:
                    while due is not None:
                        state = self._happen(due, t, state)
                        due = self._due(t, state, fired)
                    self._sample(t, state)
                if t >= self.duration:
                    break
                t, state, fired = self._segment(t, state, bar)
        t_all, kinetic, potential, work, dissipated, external, impact_loss, exchanged = (
            np.concatenate(c) for c in zip(*self.columns, strict=True)
        )
        energy = Energy(kinetic, potential, work, dissipated, impact_loss, exchanged, external)
        states, torques, happened = tuple(self.states), tuple(self.torques), tuple(self.happened)
        return Run(t_all, states, torques, energy, happened, self.joints, self.tree)

    def _due(self, t: float, state: State, fired: Scheduled | None) -> Scheduled | None:
        """The first pending event that is due; ``fired`` is due, although rounding may locate it slightly too early."""
        for event in self.pending:
            if event is fired or event.level(t, self._state(state.q, state.qd)) > 0:
                return event
        return None

    def _happen(self, what: Scheduled, t: float, state: State) -> State:
        self.pending.remove(what)
        potential = float(self._potential(state.q))
        try:
            event = what.happen(self.tree, state)
        except ScrewdynError as error:
            error.add_note(f"in a {type(what).__name__} at t = {t:g} s")
            raise
        self.present = self.tree.copy()
        event = replace(event, state=self._state(event.state.q, event.state.qd))
        brought = float(self._potential(event.state.q)) - potential + event.kinetic_energy_brought
        self.booked = self.booked + np.array([event.energy_lost, brought])
        self.happened.append(Happened(t, what, event))
        return event.state

    def _segment(self, t: float, state: State, bar: Any) -> tuple[float, State, Scheduled | None]:
        """Integrate up to the next event and record the samples; also return the event whose condition fired."""
        from scipy.integrate import solve_ivp

        model = self.tree.model
        forces = model.joint_forces
        until = min([self.duration, *(e.time for e in self.pending if e.time is not None)])
        method, rtol, atol = self.solver

        def rate(s: float, y: Array) -> Array:
            q, qd, _ = self._parts(y)
            if not (np.abs(qd) < RUNAWAY).all():
                name = model.coordinates[int(np.argmin(np.abs(qd) < RUNAWAY))]
                raise ScrewdynError(f"{name!r} is faster than {RUNAWAY:g} /s at t = {s:.6g} s; check its torque")
            tau, push, friction = self._torque(s, q, qd), self._push(s, q, qd), forces.friction_force(qd)
            qdd = self.tree.forward_dynamics(q, qd, tau + push + friction + forces.spring_force(q))
            bar.update(max(0.0, s - bar.n))
            # The rate of a quaternion is perpendicular to it, so its length stays constant without projection.
            rate = qd if model.charts is None else model.configurations.rate(y[: model.nq], qd)
            return np.concatenate([rate, qdd, [tau @ qd, -friction @ qd, push @ qd]])

        conditional = [e for e in self.pending if e.when is not None]
        solution = solve_ivp(
            rate,
            (t, until),
            np.concatenate([state.q, state.qd, self.integrals]),
            method,
            dense_output=True,
            events=[self._crossing(event) for event in conditional],
            rtol=rtol,
            atol=atol,
            max_step=self.step,
        )
        if not solution.success:
            raise ScrewdynError(
                f"the integration stopped at t = {solution.t[-1]:.6g} s: {solution.message} "
                f"If the motion does not diverge there, try another method= or a larger rtol="
            )
        end, y = float(solution.t[-1]), solution.y[:, -1]
        k = np.arange(math.floor(t / self.step), math.ceil(end / self.step) + 1) * self.step
        times = np.array([*k[(k > t) & (k < end)], end])
        self._record(times, solution.sol(times))
        q, qd, self.integrals = self._parts(y)
        fired = [e for e, at in zip(conditional, solution.t_events or [], strict=True) if at.size]
        return end, self._state(q, qd), fired[0] if fired else None

    def _parts(self, y: Array) -> tuple[Array, Array, Array]:
        """Positions, with quaternions scaled to length 1, rates and the three integrals; columns are samples."""
        model = self.tree.model
        n = model.nq + model.nv
        return model.configurations.normalized(y[: model.nq].T).T, y[model.nq : n], y[n:]

    def _state(self, q: Array, qd: Array) -> State:
        """A state for callbacks and results, with copied arrays, because a callback may change them."""
        model = self.tree.model
        return State.unchecked(self.present, model.coordinates, q, qd, model.positions)

    def _crossing(self, event: Scheduled) -> Callable[[float, Array], float]:
        """The condition of an event as an event function of SciPy, which stops where it rises through zero."""

        def level(t: float, y: Array) -> float:
            q, qd, _ = self._parts(y)
            return event.level(t, self._state(q, qd))

        vars(level).update(terminal=True, direction=1.0)
        return level

    def _torque(self, t: float, q: Array, qd: Array) -> Array:
        model = self.tree.model
        names = model.coordinates
        if self.torque is None:
            return np.zeros(model.nv)
        value = self.torque(t, self._state(q, qd))
        if value is None:
            raise ShapeError(
                f"torque returned None at t = {t:g} s; return the torques, as an array of {model.nv} numbers or as "
                f"{{coordinate: torque}}"
            )
        if isinstance(value, Mapping):
            given = by_name(self.tree, "torque", value, names)
            value = [given.get(name, 0.0) for name in names]
        tau = model.numbers("torque", value)
        if tau.shape != (model.nv,):
            raise ShapeError(
                f"torque has shape {tau.shape} at t = {t:g} s; expected one number for each of: "
                f"{', '.join(names) or 'no coordinates'}"
            )
        finite = np.isfinite(tau)
        if not finite.all():
            i = int(np.argmin(finite))
            raise ShapeError(f"torque is {tau[i]} at {names[i]!r} at t = {t:g} s; every entry must be finite")
        size = np.where(model.passive, np.abs(tau), 0.0)
        if size.any():
            i = int(np.argmax(size))
            if size[i] > ROUNDING * np.abs(tau).max():
                raise JointError(
                    f"joint {names[i]!r} is passive, but the torque on it is {tau[i]:g} at t = {t:g} s; return 0 for it"
                )
            tau = np.where(model.passive, 0.0, tau)
        return tau

    def _push(self, t: float, q: Array, qd: Array) -> Array:
        """Joint forces of the external wrenches."""
        model = self.tree.model
        if self.wrenches is None:
            return np.zeros(model.nv)
        value = self.wrenches(t, self._state(q, qd))
        if not isinstance(value, Mapping):
            raise ShapeError(
                f"wrenches returned {value!r} at t = {t:g} s; return {{link: [n; f]}}, or {{}} for no wrenches"
            )
        try:
            push = self.tree.wrench_torque(q, value)
        except ScrewdynError as error:
            error.add_note(f"in wrenches= at t = {t:g} s")
            raise
        if push.ndim != 1:
            shapes = {link: np.shape(F) for link, F in value.items()}
            raise ShapeError(f"wrenches must be six numbers [n; f] for each link; got shapes {shapes} at t = {t:g} s")
        return push

    def _sample(self, t: float, state: State) -> None:
        self._record(np.array([t]), np.concatenate([state.q, state.qd, self.integrals])[:, None])

    def _record(self, times: Array, Y: Array) -> None:
        """Add samples of the present tree; each column of Y contains q, q̇ and the three integrals of a sample."""
        tree = self.tree
        for name in tree.joints:
            joint = tree.joint(name)
            self.joints |= dict.fromkeys([*joint.position_names(name), *joint.freedom_names(name)], joint)
        Q, Qd, integrals = self._parts(Y)
        for t, q, qd in zip(times, Q.T, Qd.T, strict=True):
            self.states.append(self._state(q, qd))
            self.torques.append(self._torque(float(t), q, qd).copy())
        impact, exchanged = np.broadcast_to(self.booked[:, None], (2, len(times)))
        kinetic, potential = tree.kinetic_energy(Q.T, Qd.T), self._potential(Q.T)
        self.columns.append((times, kinetic, potential, *integrals, impact, exchanged))

    def _potential(self, q: Array) -> Array:
        return np.asarray(self.tree.potential_energy(q) + self.tree.model.joint_forces.spring_energy(q))
