"""Motion over time, with payloads picked up and let go on the way, and books kept of every joule."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from screwdyn.core.errors import JointError, ScrewdynError, ShapeError, UnknownLinkError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.forms.tree_forms import Forms
from screwdyn.mechanism.joint import Joint
from screwdyn.simulation.impact import GraspEvent
from screwdyn.simulation.result import Energy, Grasp, Happened, Release, Run, seconds
from screwdyn.simulation.state import State, check_state

__all__ = ["simulate"]

# In rad/s or m/s: a motion that is still faster is an unstable controller's, and would take forever to follow.
RUNAWAY = 1e6
METHODS = ("RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA")

Torque = Callable[[float, State], ArrayLike | Mapping[str, float]]


def simulate(
    tree: Forms,
    state: State,
    duration: float,
    torque: Torque | None = None,
    events: Sequence[Grasp | Release] = (),
    progress: bool = False,
    *,
    step: float | None = None,
    rtol: float = 1e-9,
    atol: float = 1e-10,
    method: str = "DOP853",
) -> Run:
    """Integrate M q̈ + C q̇ + g = τ + joint forces, from event to event.

    Parameters
    ----------
    tree : KinematicTree
        Changed as the events happen, as by :meth:`KinematicTree.grasp`; put back as it was if anything fails.
    state : State
        At time 0.
    duration : float
        Seconds.
    torque : callable (t, state) -> (nv,) array or mapping from coordinate to torque, optional
        Active joints only; what a mapping leaves out is zero. ``state.tree`` is the tree as it is at that time. It is
        called at the integrator's trial times too, so it must not keep a history of its own. No torque by default.
    events : sequence of Grasp and Release
        Each happens once, at its time or as soon as its condition holds; those of one time in the order given.
    progress : bool
        Show a progress bar.
    step : float, optional
        Seconds between samples; a thousandth of the duration by default. The integrator does not step farther either,
        so that it sees whatever lasts longer in a torque or a condition.
    rtol, atol, method
        Of :func:`scipy.integrate.solve_ivp`. ``"Radau"`` or ``"LSODA"`` suit stiff joints and dry friction.

    Returns
    -------
    Run

    Raises
    ------
    StaleHandleError
        A state that is not one of the tree as it is now.
    ShapeError, UnknownLinkError
        A torque of the wrong shape, with an entry that is not finite, or for a coordinate that is not there.
    JointError
        A torque on a passive joint.
    ScrewdynError
        A bad duration, step, event or condition, or an integration that does not come through.

    Notes
    -----
    What a grasp or release, ``torque`` or ``when`` raises comes through, and the tree is put back.
    """
    duration = seconds("duration", duration)
    step = duration / 1000 if step is None else seconds("step", step)
    if not (duration > 0 and step > 0):
        raise ScrewdynError(f"duration and step must be > 0; got {duration:g} s and {step:g} s")
    for what, tolerance in (("rtol", rtol), ("atol", atol)):
        if not (isinstance(tolerance, float | int | np.floating) and 0 < tolerance < math.inf):
            raise ScrewdynError(f"{what} must be a number > 0; got {tolerance!r}")
    if method not in METHODS:
        raise ScrewdynError(f"method must be one of {', '.join(METHODS)}; got {method!r}")
    if torque is not None and not callable(torque):
        raise ScrewdynError(f"torque must be a function of (t, state); got {torque!r}")
    if not isinstance(events, Sequence) or not all(isinstance(event, Grasp | Release) for event in events):
        raise ScrewdynError(f"events must be a list of Grasp and Release; got {events!r}")
    for event in events:
        if event.time is not None and event.time > duration:
            kind = type(event).__name__
            raise ScrewdynError(f"the run lasts {duration:g} s, but a {kind} is set for {event.time:g} s")
    check_state(state, tree)
    with tree.transaction():
        simulation = _Simulation(tree, duration, torque, events, step, (method, rtol, atol))
        return simulation.run(State(tree, state.q, state.qd), progress)


class _Simulation:
    """What the segments of one run share."""

    def __init__(
        self,
        tree: Forms,
        duration: float,
        torque: Torque | None,
        events: Sequence[Grasp | Release],
        step: float,
        solver: tuple[str, float, float],
    ) -> None:
        self.tree, self.duration, self.torque, self.step, self.solver = tree, duration, torque, step, solver
        self.pending = list(events)
        self.happened: list[Happened] = []
        self.columns: list[tuple[Array, ...]] = []
        self.states: list[State] = []
        self.torques: list[Array] = []
        self.joints: dict[str, Joint] = {}
        # Work done and heat in the joints so far (integrated), heat in impacts and energy exchanged so far (booked).
        self.integrals, self.booked = np.zeros(2), np.zeros(2)

    def run(self, state: State, progress: bool) -> Run:
        from tqdm import tqdm

        t, fired = 0.0, None
        layout = "{l_bar}{bar}| {n:.2f}/{total:.2f} s [{elapsed}<{remaining}]"
        with tqdm(total=self.duration, disable=not progress, bar_format=layout) as bar:
            self._sample(t, state)
            while True:
                # Located a rounding error early, a condition need not yet hold: it has happened all the same.
                due = fired or self._due(t, state)
                if due is not None:
                    while due is not None:
                        state = self._happen(due, t, state)
                        due = self._due(t, state)
                    self._sample(t, state)
                if t >= self.duration:
                    break
                t, state, fired = self._segment(t, state, bar)
        t_all, *ledger = (np.concatenate(c) for c in zip(*self.columns, strict=True))
        states, torques, happened = tuple(self.states), tuple(self.torques), tuple(self.happened)
        return Run(t_all, states, torques, Energy(*ledger), happened, self.joints, self.tree)

    def _due(self, t: float, state: State) -> Grasp | Release | None:
        y = np.concatenate([state.q, state.qd])
        return next((event for event in self.pending if event.level(t, self._state(y)) > 0), None)

    def _happen(self, what: Grasp | Release, t: float, state: State) -> State:
        self.pending.remove(what)
        potential = self._potential(state)
        try:
            event = what.happen(self.tree, state)
        except ScrewdynError as error:
            error.add_note(f"in a {type(what).__name__} at t = {t:g} s")
            raise
        # The payload's kinetic energy is taken from the payload, so that the ledger closes only if momenta do.
        brought, lost = self._potential(event.state) - potential, 0.0
        if isinstance(event, GraspEvent):
            brought, lost = brought + event.caught.kinetic_energy, event.energy_lost
        else:
            brought -= event.released.kinetic_energy
        self.booked = self.booked + np.array([lost, brought])
        self.happened.append(Happened(t, what, event))
        return event.state

    def _segment(self, t: float, state: State, bar: Any) -> tuple[float, State, Grasp | Release | None]:
        """Integrate up to the next event, record the samples, and say which condition came true, if one did."""
        from scipy.integrate import solve_ivp

        model, n = self.tree.model, self.tree.nv
        until = min([self.duration, *(e.time for e in self.pending if e.time is not None)])
        method, rtol, atol = self.solver

        def rate(s: float, y: Array) -> Array:
            q, qd = y[:n], y[n : 2 * n]
            if not (np.abs(qd) < RUNAWAY).all():
                name = model.coordinates[int(np.argmin(np.abs(qd) < RUNAWAY))]
                raise ScrewdynError(f"{name!r} runs away at t = {s:.6g} s, faster than {RUNAWAY:g} /s; see its torque")
            tau, friction = self._torque(s, y), model.friction_force(qd)
            qdd = model.forward_dynamics(q, qd, tau + friction + model.spring_force(q))
            bar.update(max(0.0, s - bar.n))
            return np.concatenate([qd, qdd, [tau @ qd, -friction @ qd]])

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
                f"If the motion does not run away there, try another method= or a larger rtol="
            )
        end, y = float(solution.t[-1]), solution.y[:, -1]
        k = np.arange(math.floor(t / self.step), math.ceil(end / self.step) + 1) * self.step
        times = np.array([*k[(k > t) & (k < end)], end])
        self._record(times, solution.sol(times))
        self.integrals = y[2 * n :]
        fired = [e for e, at in zip(conditional, solution.t_events or [], strict=True) if at.size]
        return end, self._state(y), fired[0] if fired else None

    def _state(self, y: Array) -> State:
        """A state to hand out: what a torque or a condition may write on it goes nowhere."""
        n = self.tree.model.nv
        return State.unchecked(self.tree, self.tree.model.coordinates, y[:n], y[n : 2 * n])

    def _crossing(self, event: Grasp | Release) -> Callable[[float, Array], float]:
        """A condition as the integrator's event function: it stops where the level rises through zero."""

        def level(t: float, y: Array) -> float:
            return event.level(t, self._state(y))

        vars(level).update(terminal=True, direction=1.0)
        return level

    def _torque(self, t: float, y: Array) -> Array:
        model = self.tree.model
        names = model.coordinates
        if self.torque is None:
            return np.zeros(model.nv)
        value = self.torque(t, self._state(y))
        if isinstance(value, Mapping):
            for name in value:
                if name not in names:
                    raise UnknownLinkError.of(name, names, "coordinate")
            value = [value.get(name, 0.0) for name in names]
        tau = model.numbers("torque", value)
        if tau.shape != (model.nv,):
            raise ShapeError(
                f"torque has shape {tau.shape} at t = {t:g} s; expected one number for each of: "
                f"{', '.join(names) or 'no coordinates'}"
            )
        finite, forbidden = np.isfinite(tau), (tau != 0) & model.passive
        if not finite.all():
            i = int(np.argmin(finite))
            raise ShapeError(f"torque is {tau[i]} at {names[i]!r} at t = {t:g} s; every entry must be finite")
        if forbidden.any():
            i = int(np.argmax(forbidden))
            raise JointError(
                f"joint {names[i]!r} is passive, but the torque on it is {tau[i]:g} at t = {t:g} s; make it 0"
            )
        return tau

    def _sample(self, t: float, state: State) -> None:
        self._record(np.array([t]), np.concatenate([state.q, state.qd, self.integrals])[:, None])

    def _record(self, times: Array, Y: Array) -> None:
        """Add samples of the tree as it is now; Y holds q, q̇ and the two integrals, a column each sample."""
        tree, n = self.tree, self.tree.nv
        self.joints |= {name: tree.joint(name) for name in tree.coordinates}
        q, qd = Y[:n].T, Y[n : 2 * n].T
        self.states += [self._state(y) for y in Y.T]
        self.torques += [self._torque(float(t), y).copy() for t, y in zip(times, Y.T, strict=True)]
        impact, exchanged = np.broadcast_to(self.booked[:, None], (2, len(times)))
        kinetic, potential = tree.kinetic_energy(q, qd), tree.potential_energy(q) + tree.model.spring_energy(q)
        self.columns.append((times, kinetic, potential, Y[2 * n], Y[2 * n + 1], impact, exchanged))

    def _potential(self, state: State) -> float:
        return float(self.tree.potential_energy(state.q) + self.tree.model.spring_energy(state.q))
