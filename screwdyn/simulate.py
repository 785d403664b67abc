"""Motion over time, with payloads picked up and let go on the way, and books kept of every joule."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ._types import Array, ArrayLike
from .errors import JointError, ScrewdynError, ShapeError, UnknownLinkError
from .joint import Joint
from .run import Condition, Energy, Grasp, Happened, Release, Run
from .state import State
from .transition import GraspEvent, ReleaseEvent
from .tree import KinematicTree

__all__ = ["simulate"]

Torque = Callable[[float, State], ArrayLike | Mapping[str, float]]


def simulate(
    tree: KinematicTree,
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
        Seconds between samples; a thousandth of the duration by default.
    rtol, atol, method
        Of :func:`scipy.integrate.solve_ivp`. ``"Radau"`` or ``"LSODA"`` suit stiff joints and dry friction.

    Returns
    -------
    Run

    Raises
    ------
    ShapeError
        A torque of the wrong shape or with an entry that is not finite.
    JointError
        A torque on a passive joint.
    ScrewdynError
        A bad duration, an integration that does not come through, or whatever an event raises.
    """
    for what, seconds in (("duration", duration), ("step", step)):
        if seconds is not None and not (isinstance(seconds, int | float) and math.isfinite(seconds) and seconds > 0):
            raise ScrewdynError(f"{what} must be a finite number of seconds > 0; got {seconds!r}")
    for event in events:
        if event.time is not None and event.time > duration:
            raise ScrewdynError(f"the run lasts {duration:g} s, but an event is set for {event.time:g} s: {event}")
    state.fits(tree)
    with tree.transaction():
        simulation = _Simulation(tree, float(duration), torque, step or duration / 1000, (method, rtol, atol))
        return simulation.run(state, events, progress)


class _Simulation:
    """What the segments of one run share."""

    def __init__(
        self,
        tree: KinematicTree,
        duration: float,
        torque: Torque | None,
        step: float,
        solver: tuple[str, float, float],
    ) -> None:
        self.tree, self.duration, self.torque, self.step, self.solver = tree, duration, torque, step, solver
        self.columns: list[tuple[Array, ...]] = []
        self.states: list[State] = []
        self.torques: list[Array] = []
        self.joints: dict[str, Joint] = {}
        # Work done and heat in the joints so far (integrated), heat in impacts and energy exchanged so far (booked).
        self.integrals, self.booked = np.zeros(2), np.zeros(2)

    def run(self, state: State, events: Sequence[Grasp | Release], progress: bool) -> Run:
        from tqdm import tqdm

        pending, happened, t = list(events), [], 0.0
        layout = "{l_bar}{bar}| {n:.2f}/{total:.2f} s [{elapsed}<{remaining}]"
        with tqdm(total=self.duration, disable=not progress, bar_format=layout) as bar:
            while True:
                while due := [e for e in pending if self._due(e, t, state)]:
                    pending.remove(due[0])
                    event = self._happen(due[0], state)
                    state = event.state
                    happened.append(Happened(t, due[0], event))
                if t >= self.duration:
                    self._record(np.array([t]), np.concatenate([state.q, state.qd, self.integrals])[:, None])
                    break
                t, state, fired = self._segment(t, state, pending, bar)
                if fired is not None:
                    # Located a rounding error early, a condition need not yet hold: it has happened all the same.
                    pending.remove(fired)
                    event = self._happen(fired, state)
                    state = event.state
                    happened.append(Happened(t, fired, event))
        t_all, *ledger = (np.concatenate(c) for c in zip(*self.columns, strict=True))
        return Run(
            t_all, tuple(self.states), tuple(self.torques), Energy(*ledger), tuple(happened), self.joints, self.tree
        )

    def _due(self, event: Grasp | Release, t: float, state: State) -> bool:
        if event.when is None:
            return event.time is not None and t >= event.time
        return _level(event.when, t, state) > 0

    def _happen(self, event: Grasp | Release, state: State) -> GraspEvent | ReleaseEvent:
        before = self._energy(state)
        done = event.happen(self.tree, state)
        lost = done.energy_lost if isinstance(done, GraspEvent) else 0.0
        self.booked = self.booked + np.array([lost, self._energy(done.state) - before + lost])
        return done

    def _segment(
        self, t: float, state: State, pending: Sequence[Grasp | Release], bar: Any
    ) -> tuple[float, State, Grasp | Release | None]:
        """Integrate up to the next event, record the samples, and say which condition came true, if one did."""
        from scipy.integrate import solve_ivp

        tree, model = self.tree, self.tree.model
        n = model.nv
        until = min([self.duration, *(e.time for e in pending if e.time is not None)])
        method, rtol, atol = self.solver

        def rate(s: float, y: Array) -> Array:
            now = State(tree, y[:n], y[n : 2 * n])
            tau, friction = self._torque(s, now), model.friction_force(now.qd)
            qdd = tree.forward_dynamics(now.q, now.qd, tau + friction + model.spring_force(now.q))
            bar.update(max(0.0, s - bar.n))
            return np.concatenate([now.qd, qdd, [tau @ now.qd, -friction @ now.qd]])

        conditional = [e for e in pending if e.when is not None]
        y0 = np.concatenate([state.q, state.qd, self.integrals])
        solution = solve_ivp(
            rate,
            (t, until),
            y0,
            method,
            dense_output=True,
            events=[_crossing(e.when, tree, n) for e in conditional if e.when is not None],
            rtol=rtol,
            atol=atol,
        )
        if not solution.success:
            raise ScrewdynError(f"the integration stopped at t = {solution.t[-1]:.6g} s: {solution.message}")
        end, y = float(solution.t[-1]), solution.y[:, -1]
        k = np.arange(math.floor(t / self.step), math.ceil(end / self.step) + 1) * self.step
        times = np.array([t, *k[(k > t) & (k < end)], end])
        self._record(times, solution.sol(times))
        self.integrals = y[2 * n :]
        fired = [e for e, at in zip(conditional, solution.t_events or [], strict=True) if at.size]
        return end, State(tree, y[:n], y[n : 2 * n]), fired[0] if fired else None

    def _torque(self, t: float, state: State) -> Array:
        names = state.coordinates
        if self.torque is None:
            return np.zeros(len(names))
        value = self.torque(t, state)
        if isinstance(value, Mapping):
            for name in value:
                if name not in names:
                    raise UnknownLinkError.of(name, names, "coordinate")
            value = [value.get(name, 0.0) for name in names]
        (tau,), batch = self.tree.model.flat(torque=value)
        if batch:
            raise ShapeError(f"torque must be one vector over {', '.join(names)}; got a batch of shape {batch}")
        for name, passive, x in zip(names, self.tree.model.passive, tau, strict=True):
            if passive and x != 0:
                raise JointError(f"joint {name!r} is passive, but the torque on it is {x:g} at t = {t:g} s; make it 0")
        return tau

    def _record(self, times: Array, Y: Array) -> None:
        """Add samples of the tree as it is now; Y holds q, q̇ and the two integrals, a column each sample."""
        tree, n = self.tree, self.tree.nv
        q, qd = Y[:n].T, Y[n : 2 * n].T
        states = [State(tree, a, b) for a, b in zip(q, qd, strict=True)]
        self.joints |= {name: tree.joint(name) for name in tree.coordinates}
        self.states += states
        self.torques += [self._torque(float(t), state) for t, state in zip(times, states, strict=True)]
        impact, exchanged = np.broadcast_to(self.booked[:, None], (2, len(times)))
        kinetic, potential = tree.kinetic_energy(q, qd), tree.potential_energy(q) + tree.model.spring_energy(q)
        self.columns.append((times, kinetic, potential, Y[2 * n], Y[2 * n + 1], impact, exchanged))

    def _energy(self, state: State) -> float:
        tree = self.tree
        own = tree.model.spring_energy(state.q)
        return float(tree.kinetic_energy(state.q, state.qd) + tree.potential_energy(state.q) + own)


def _level(condition: Condition, t: float, state: State) -> float:
    value = condition(t, state)
    return (1.0 if value else -1.0) if isinstance(value, bool | np.bool_) else float(value)


def _crossing(condition: Condition, tree: KinematicTree, n: int) -> Callable[[float, Array], float]:
    """The condition as the integrator's event function: it stops where the level rises through zero."""

    def level(t: float, y: Array) -> float:
        return _level(condition, t, State(tree, y[:n], y[n : 2 * n]))

    vars(level).update(terminal=True, direction=1.0)
    return level
