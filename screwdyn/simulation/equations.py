"""What acts on one tree, and its equation of motion as equations of first order (docs/mathematics.md §8)."""

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from numbers import Real
from typing import Literal, NamedTuple, TypeVar

import numpy as np

from screwdyn.core import (
    Array,
    ArrayLike,
    ContactError,
    JointError,
    ScrewdynError,
    ShapeError,
    StalledError,
    TopologyError,
    UnknownNameError,
)
from screwdyn.core.types import Indices
from screwdyn.forms.configurations import Limits
from screwdyn.mechanism.joint import Joint
from screwdyn.physics import LARGEST, Robot, State, by_name
from screwdyn.physics.closure import MENTIONED, Closure
from screwdyn.simulation.bounded import Bounded

T = TypeVar("T")
Torque = Callable[[float, State], ArrayLike | Mapping[str, ArrayLike]]
Wrenches = Callable[[float, State], Mapping[str, ArrayLike]]

# Energies that are integrated with the motion: work of the torques, dissipation in joints, work of the wrenches.
ENERGIES = 3
# Rate in rad/s or m/s above which a run is stopped, because an unstable controller makes the steps ever smaller.
RUNAWAY = 1e6
# Rate above which callbacks are not asked, rad/s or m/s.
TRIAL = 1e3 * RUNAWAY
# Step of finite differences, relative to 1 + |y|.
DIFFERENCE = 1e-6
# Number and distance, rad and m, of configurations with which one is compared that may be singular.
ASIDE, FAR = 3, 0.05
# Torque on a passive joint, relative to the largest torque of the call, that counts as rounding and is set to zero.
ROUNDING = 1e-9


# What acts on the tree: the functions of the user


def guarded(function: Callable[[float, State], T], tree: Robot) -> Callable[[float, State], T]:
    """A function of the user, which raises TopologyError if a call changes the simulated tree."""

    def call(t: float, state: State) -> T:
        before = tree.topology
        try:
            value = function(t, state)
        except Exception as error:
            error.add_note(f"in a call of the run at t = {t:.9g} s")
            raise
        if tree.topology is not before:
            raise TopologyError(
                f"a function changed the simulated tree at t = {t:.6g} s; use events= for changes during a run, and a "
                f"copy, such as state.tree, for anything else"
            )
        return value

    return call


class Controller:
    """The torques as a function of time and state; with a period, s, held in each from ``start`` on."""

    def __init__(self, torque: Torque, saturate: bool, period: float | None, start: float) -> None:
        self.torque, self.saturate, self.period, self.start = torque, saturate, period, start
        self.calls, self.names, self.output = 0, tuple[str, ...](), np.zeros(0)
        # Time of the next call, s, up to which torques are held; infinite if the function is called for every trial.
        self.next_call = math.inf if period is None else start

    def enter(self, tree: Robot) -> None:
        """Begin with a tree, or continue with the changed one: held torques of new coordinates are zero."""
        held = dict(zip(self.names, self.output.tolist(), strict=True))
        self.tree, self.names = tree, tree.model.coordinates
        self.output = np.array([held.get(name, 0.0) for name in self.names])
        self.largest, self.passive = tree.model.efforts, np.array(tree.model.passive, dtype=bool)
        self.driven = not self.passive.any()

    def sample(self, t: float, q: Array, qd: Array) -> None:
        """Call the function now if its output is held and the next call is due."""
        if self.period is not None and t >= self.next_call:
            self.output = self.called(t, q, qd).copy()
            self.next_call = self.start + self.calls * self.period

    def __call__(self, t: float, q: Array, qd: Array) -> Array:
        """Torques, (nv,), N m or N."""
        return self.called(t, q, qd) if self.period is None else self.output

    def called(self, t: float, q: Array, qd: Array) -> Array:
        """What the function gives now."""
        tau = self.asked(t, q, qd)
        return np.clip(tau, -self.largest, self.largest) if self.saturate else tau

    def asked(self, t: float, q: Array, qd: Array) -> Array:
        """What the function asks for, also of motors that saturate."""
        self.calls += 1
        return self._checked(t, self.torque(t, State.of(self.tree, q, qd, own=False)))

    def _checked(self, t: float, value: object) -> Array:
        """Torques of all freedoms, (nv,), from what the function returned; JointError for one on a passive joint."""
        names, passive = self.names, self.passive
        plain = type(value) is np.ndarray and value.shape == self.output.shape and value.dtype == np.float64
        tau: Array = value if plain else self._read(t, value)  # type: ignore[assignment]
        if not tau.dot(tau) < LARGEST**2 and not (bounded := np.abs(tau) < LARGEST).all():
            i = int(np.argmin(bounded))
            raise ShapeError(
                f"torque is {tau[i]} at {names[i]!r} at t = {t:g} s; every entry must be finite, and below {LARGEST:g}"
            )
        if not self.driven:
            size = np.where(passive, np.abs(tau), 0.0)
            i = int(np.argmax(size))
            if size[i] > ROUNDING * np.abs(tau).max():
                raise JointError(
                    f"joint {names[i]!r} is passive, but the torque on it is {tau[i]:g} at t = {t:g} s; return 0 for it"
                )
            tau = np.where(passive, 0.0, tau)
        return tau

    def _read(self, t: float, value: object) -> Array:
        """One number for each freedom, (nv,), from those of all or of the active ones, or by name."""
        model, names = self.tree.model, self.names
        if value is None:
            raise ShapeError(
                f"torque returned None at t = {t:g} s; return the torques, as an array of {model.nv} numbers or as "
                f"{{coordinate: torque}}"
            )
        if isinstance(value, Mapping):
            try:
                given = by_name(self.tree, "torque", value, names)
            except ScrewdynError as error:
                error.args = (f"torque at t = {t:g} s: {error}",)
                raise
            return np.array([given.get(name, 0.0) for name in names])
        tau = model.numbers("torque", value)  # type: ignore[arg-type]
        tau = model.over_all(tau) if tau.ndim == 1 else tau
        if tau.shape != (model.nv,):
            active = [*compress(names, ~self.passive)]
            fewer = f", or for each active one: {', '.join(active)}" if 0 < len(active) < model.nv else ""
            raise ShapeError(
                f"torque has shape {tau.shape} at t = {t:g} s; expected one number for each of: "
                f"{', '.join(names) or 'no coordinates'}{fewer}; if events change the coordinates, return them by "
                f"name, as {{coordinate: torque}}"
            )
        return tau


class Disturbance:
    """The joint forces of the external wrenches, {link: (6,) array}, as a function of time and state."""

    def __init__(self, wrenches: Wrenches) -> None:
        self.wrenches = wrenches

    def enter(self, tree: Robot) -> None:
        """Begin with a tree or continue with the changed tree."""
        self.tree = tree

    def __call__(self, t: float, q: Array, qd: Array) -> Array:
        """Σ J_iᵀ F_i, (nv,), N m or N; ShapeError or UnknownNameError unless there are six finite numbers a link."""
        value = self.wrenches(t, State.of(self.tree, q, qd, own=False))
        if not isinstance(value, Mapping):
            raise ShapeError(
                f"wrenches returned {value!r} at t = {t:g} s; return {{link: [n; f]}}, or {{}} for no wrenches"
            )
        try:
            push = self.tree.wrench_torque(q, value)
        except ScrewdynError as error:
            error.args = (f"wrenches= at t = {t:g} s: {error}",)
            raise
        if push.ndim != 1:
            shapes = {link: np.shape(F) for link, F in value.items()}
            raise ShapeError(f"wrenches must be six numbers [n; f] for each link; got shapes {shapes} at t = {t:g} s")
        return push

    asked = __call__


# What acts on the tree: stops and dry friction


@dataclass(frozen=True)
class SpringStop:
    """A stop at a joint limit that is a spring with a damper (docs/mathematics.md §8).

    At a distance x beyond the limit its force is max(0, stiffness x + damping ẋ), back towards the limit.

    Parameters
    ----------
    stiffness : float
        > 0; N m/rad for a rotation, N/m for a translation.
    damping : float
        >= 0; N m s/rad or N s/m.

    Raises
    ------
    ScrewdynError
        If a number is out of range or not finite.
    """

    stiffness: float
    damping: float = 0.0

    def __post_init__(self) -> None:
        for what, least in (("stiffness", "> 0"), ("damping", ">= 0")):
            value = getattr(self, what)
            number = float(value) if isinstance(value, Real) else math.nan
            if not math.isfinite(number) or number < 0 or (number == 0 and least == "> 0"):
                raise ScrewdynError(f"the {what} of a SpringStop must be a finite number {least}; got {value!r}")
            object.__setattr__(self, what, number)


Stop = Literal["inelastic"] | SpringStop
Stops = Stop | Mapping[str, Stop]


def joints_of(tree: Robot) -> dict[str, Joint]:
    """All joints by name; a locked one as it is when it is unlocked."""
    return {at.name: at.unlocked.joint for at in tree.topology.attached}


def check_stops(stops: object, joints: Sequence[tuple[str, Joint]]) -> None:
    """Check the argument ``stops`` of :func:`simulate`, for the joints, some of one name, that the run may have."""
    limited = {name for name, joint in joints if joint.limits is not None}
    for joint, stop in stops.items() if isinstance(stops, Mapping) else [(None, stops)]:
        inelastic = isinstance(stop, str) and stop == "inelastic"
        if not inelastic and not isinstance(stop, SpringStop):
            of = "" if joint is None else f" of {joint!r}"
            raise ScrewdynError(f"stops must be 'inelastic' or a SpringStop{of}, or a mapping to them; got {stop!r}")
        if joint is None or joint in limited:
            continue
        names = tuple(dict(joints))
        if joint in names:
            raise ScrewdynError(f"joint {joint!r} has no limits, so it cannot have a stop; give limits= of the joint")
        raise UnknownNameError.of(joint, names, "joint")


class SpringStops:
    """The springs at the limits of one tree; one that leaves its limit more slowly than the joint dissipates energy."""

    def __init__(self, limits: Limits, stops: list[SpringStop], q: Array, qd: Array) -> None:
        self.limits, self.count = limits, len(qd)
        reflected = limits.ratio**2
        self.stiffness = reflected * [stop.stiffness for stop in stops]
        self.damping = reflected * [stop.damping for stop in stops]
        self._begin(q, qd)

    def resumed(self, q: Array, qd: Array) -> "SpringStops":
        """The same, as they begin at a state."""
        new = copy.copy(self)
        new._begin(q, qd)
        return new

    def _begin(self, q: Array, qd: Array) -> None:
        """Let those press whose limits are passed, or are reached and approached."""
        x = self.limits.excess(q)
        self.pressed = (x > 0) | ((x == 0) & (self.limits.approach(qd) > 0))

    def energy(self, q: Array) -> Array:
        """½ Σ stiffness x² of the distances x > 0 beyond the limits, (…), J."""
        return np.asarray(0.5 * np.maximum(self.limits.excess(q), 0) ** 2 @ self.stiffness)

    def force(self, q: Array, qd: Array) -> tuple[Array, float]:
        """Force on the freedoms, (nv,), N m or N, and the power that is dissipated, W."""
        limits = self.limits
        spring = self.stiffness * limits.excess(q)
        push = np.maximum(self.push(q, qd), 0) * self.pressed
        force = np.zeros(self.count)
        np.add.at(force, limits.rows, -limits.sign * push)
        return force, float((push - spring * self.pressed) @ limits.approach(qd))

    def push(self, q: Array, qd: Array) -> Array:
        """The forces of the springs and dampers, (…, k), N m or N, of which those below 0 do not act."""
        return np.asarray(self.stiffness * self.limits.excess(q) + self.damping * self.limits.approach(qd))

    def slopes(self, q: Array, qd: Array) -> tuple[Array, Array]:
        """−∂(force on each freedom)/∂(its position) and by its rate, (…, nv) each."""
        acts, at = self.pressed & (self.push(q, qd) > 0), np.eye(self.count)[self.limits.rows]
        return np.asarray(acts * self.stiffness @ at), np.asarray(acts * self.damping @ at)

    def levels(self, q: Array) -> Array:
        """A number for each limit that rises through zero when its spring begins or ceases to press."""
        x = self.limits.excess(q)
        return np.where(self.pressed, -x, x)

    def change(self, k: int, q: Array) -> None:
        """Let a spring begin or cease to press, and set its position in q, which differs from the limit by rounding."""
        q[self.limits.where[k]] = self.limits.values[k]
        self.pressed[k] ^= True

    def settle(self, q: Array) -> None:
        """Let springs change whose limits are reached at the time of another event, which rounding tells apart."""
        for k in np.flatnonzero(self.levels(q) > 0).tolist():
            self.change(k, q)


class Phase(NamedTuple):
    """Which freedoms are held and which springs press from a time on.

    ``row`` is that of [q; q̇] in which a number passed zero then, if the accelerations jumped by it.
    """

    t: float
    row: int | None = None
    bounded: Bounded | None = None
    springs: SpringStops | None = None

    @property
    def held(self) -> Indices:
        """The freedoms that are held."""
        return np.zeros(0, dtype=np.intp) if self.bounded is None else self.bounded.held

    def same(self, other: "Phase") -> bool:
        """Whether the same acts."""
        return all(
            a is None or b is None or all(np.array_equal(getattr(a, x), getattr(b, x)) for x in names)
            for a, b, names in (
                (self.bounded, other.bounded, ("held", "direction")),
                (self.springs, other.springs, ("pressed",)),
            )
        )


class EquationsOfMotion:
    """ẏ = f(t, y) of one tree, with y = [q; q̇; energies], (nq + nv + 3,), from a start y on.

    M q̈ + C q̇ + g = τ + joint forces + Σ J_iᵀ F_i. The energies are those of ENERGIES. The tree is a copy, which
    results keep; ``passable`` are the limits without an inelastic stop.
    """

    def __init__(
        self, tree: Robot, controller: Controller | None, disturbance: Disturbance | None, stops: Stops | None, y: Array
    ) -> None:
        self.tree = tree.copy()
        model = self.model = self.tree.model
        self.nq, self.n, own = model.nq, model.nq + model.nv, model.joint_forces
        self.own = own
        self.elastic, self.viscous = bool(own.stiffness.any()), bool(own.damping.any())
        q, qd = self.parts(y)
        by = stops if isinstance(stops, Mapping) else dict.fromkeys(tree.joints, stops)
        self.passable = Limits.of(tree, lambda joint: by.get(joint) != "inelastic")
        rigid = Limits.of(tree, lambda joint: by.get(joint) == "inelastic")
        loops = model.topology.loops
        self.closure = Closure(self.tree) if loops else None
        self._begun = q
        bounds = bool(own.friction.any() or rigid.keys or model.topology.contacts)
        self.bounded = Bounded(self.tree, own.friction, rigid, q) if bounds else None
        self.touching = bool(model.topology.contacts)
        self.settled = math.nan  # the time at which the contacts were last decided
        soft = Limits.of(tree, lambda joint: isinstance(by.get(joint), SpringStop))
        found = [stop for _, joint, _, _ in soft.keys if isinstance(stop := by[joint], SpringStop)]
        self.springs = SpringStops(soft, found, q, qd) if found else None
        self.controller, self.disturbance = controller, disturbance
        self.none = np.zeros(model.nv)
        # The joint of every position and freedom.
        named = [(name, tree.joint(name)) for name in tree.joints]
        self.joints = {x: on for name, on in named for x in (*on.position_names(name), *on.freedom_names(name))}
        # What :meth:`settle` has decided up to now, and the row of the change that comes before it.
        self.phases: list[Phase] = []
        self._row: int | None = None
        # Whether functions of the user are called for trial states.
        self.tried = disturbance is not None or (controller is not None and controller.period is None)
        for function in (controller, disturbance):
            if function is not None:
                function.enter(self.tree)

    def resumed(self, y: Array) -> "EquationsOfMotion":
        """The same, as they begin at the state after an impact."""
        new, (q, qd) = copy.copy(self), self.parts(y)
        new.settled, new.phases, new._row = math.nan, [], None
        new.bounded = None if self.bounded is None else self.bounded.resumed(q)
        new.springs = None if self.springs is None else self.springs.resumed(q, qd)
        return new

    def parts(self, y: Array) -> tuple[Array, Array]:
        """Positions, with quaternions scaled to length 1, and rates, from y of shape (…, nq + nv + 3)."""
        q = y[..., : self.nq]
        return self.model.configurations.normalized(q) if self.model.charts else q, y[..., self.nq : self.n]

    @property
    def stiff(self) -> bool:
        """Whether slips in a plane begin or are slow, whose equations are stiff."""
        return self.bounded is not None and self.bounded.stiff

    def potential(self, q: Array) -> Array:
        """Energy of gravity and of springs, (…), J."""
        energy = np.asarray(self.tree.potential_energy(q) + self.own.spring_energy(q))
        return energy if self.springs is None else energy + self.springs.energy(q)

    def energy(self, y: Array) -> float:
        """Kinetic energy, and that of gravity and of springs, J."""
        q, qd = self.parts(y)
        return float(self.tree.kinetic_energy(q, qd) + self.potential(q))

    def rate(self, t: float, y: Array, rate: Array | None = None) -> Array:
        """ẏ, (nq + nv + 3,), in a given array or a new one: NaN out of range, so that a shorter step is tried."""
        rate = np.zeros(len(y)) if rate is None else rate
        nq, n = self.nq, self.n
        q, qd = y[:nq], y[nq:n]
        if not qd @ qd < (TRIAL if self.tried else LARGEST) ** 2:
            rate[nq:n] = np.nan
            return rate
        if self.model.charts is None:
            rate[:nq] = qd
        else:
            # The rate of a quaternion is perpendicular to it, so its length stays constant without projection.
            rate[:nq] = self.model.configurations.rate(q, qd)
            q = self.model.configurations.normalized(q)
        if self.touching:
            rate[n:] = 0.0
        _, force = self.forces(t, q, qd, rate[n:])
        try:
            if self.touching and self.bounded is not None:
                acting = self.bounded.act(q, qd, force)
                rate[nq:n] = acting.qdd
                rate[n + 1] += acting.heat
            else:
                rate[nq:n] = self.accelerations(q, qd, force)
        except (ShapeError, ContactError):  # numbers beyond the range of the recursions, or a trial deep inside a body
            rate[nq:n] = np.nan
        return rate

    def loads(self, t: float, y: Array) -> Array:
        """All joint forces but those of loops, (nv,): also those that hold freedoms and those of contacts."""
        q, qd = self.parts(y)
        force, bounded = self.forces(t, q, qd)[1], self.bounded
        if bounded is None:
            return force
        force = force + bounded.pushes(q, qd, bounded.forces(bounded.act(q, qd, force)))
        return force + bounded.reaction(q, qd, force)

    def jacobian(self, t: float, y: Array) -> Array:
        """∂ẏ/∂y by forward differences, (nq + nv + 3, nq + nv + 3); no rate depends on the energies.

        Where slips are slow, only by the rates of what slips, on which accelerations depend steeply.
        """
        here, slopes = self.rate(t, y), np.zeros((len(y), len(y)))
        columns, steps = np.arange(self.n), DIFFERENCE * (1 + np.abs(y[: self.n]))
        if self.stiff and self.bounded is not None:
            columns, steps = self.bounded.slipping(*self.parts(y))
            columns = self.nq + columns
        for k, step in zip(columns.tolist(), steps.tolist(), strict=True):
            there = y.copy()
            there[k] += step
            slopes[:, k] = (self.rate(t, there) - here) / (there[k] - y[k])
        if not np.isfinite(slopes).all():
            raise StalledError(
                f"the integration stalls at t = {t:g} s: states near that of the run have no accelerations, such as "
                f"where forces of contacts are not found; reduce friction= or the number of points"
            )
        return slopes

    @property
    def smooth(self) -> bool:
        """Whether the accelerations are a fixed function of the state: no callbacks, dry friction, stops, contacts."""
        others = self.controller, self.disturbance, self.bounded, self.springs
        return all(x is None for x in others)

    def sample(self, t: float, q: Array, qd: Array) -> tuple[Array, Array, Array, Array]:
        """Torques, accelerations and :meth:`forces` at a time, (nv,); state and forces of the contacts, (k, 4)."""
        tau, force = self.forces(t, q, qd)
        tau = self.none.copy() if tau is None else tau.copy()
        if self.bounded is None:
            return tau, self.tree.forward_dynamics(q, qd, force), force.copy(), np.zeros((0, 4))
        acting, bounded = self.bounded.act(q, qd, force), self.bounded
        found = bounded.forces(acting)
        if self.closure is not None:  # what loops transmit depends on these forces
            force = force + bounded.reaction(q, qd, force + bounded.pushes(q, qd, found))
        return tau, acting.qdd, force.copy(), np.column_stack([bounded.state, found])

    def accelerations(self, q: Array, qd: Array, force: Array) -> Array:
        """q̈, (nv,), for all joint forces but those on freedoms that are held, without contacts."""
        of = self.tree if self.bounded is None else self.bounded
        return np.asarray(of.forward_dynamics(q, qd, force))

    def forces(self, t: float, q: Array, qd: Array, power: Array | None = None) -> tuple[Array | None, Array]:
        """The torques, if any, and all forces but those that hold freedoms; the powers of ENERGIES go to ``power``."""
        tau = None if self.controller is None else self.controller(t, q, qd)
        power = np.zeros(ENERGIES) if power is None else power
        force = self.none if self.bounded is None else self.bounded.force
        if self.viscous:
            force = force + self.own.viscous_force(qd)
        if force is not self.none:
            power[1] = -(force @ qd)
        if self.springs is not None:
            push, heat = self.springs.force(q, qd)
            power[1] = heat - force @ qd
            force = force + push
        if self.elastic:
            force = force + self.own.spring_force(q)
        if tau is not None:
            power[0] = tau @ qd
            force = tau if force is self.none else force + tau
        if self.disturbance is not None:
            push = self.disturbance(t, q, qd)
            power[2] = push @ qd
            force = force + push
        return tau, force

    def settle(self, t: float, y: Array) -> None:
        """Decide which springs press and which freedoms are held, whose rates in y are zero but for rounding."""
        if self.springs is not None:
            self.springs.settle(y[: self.nq])
        bounded, before = self.bounded, np.zeros(0)
        if bounded is not None:
            (q, qd), before = self.parts(y), bounded.state
            bounded.settle(q, qd, self.forces(t, q, qd)[1] - bounded.force)
            y[self.nq + bounded.held] = 0.0
        if bounded is not None or self.springs is not None:
            springs = copy.copy(self.springs)
            if springs is not None:
                springs.pressed = springs.pressed.copy()
            phase = Phase(t, self._row, copy.copy(bounded), springs)
            if not self.phases or not phase.same(self.phases[-1]):
                self.phases.append(phase)
            self._row = None
        if self.touching and bounded is not None:
            same = np.array_equal(before, bounded.state) and not np.count_nonzero(bounded.begun)
            closed = y if same else self.closed(y)  # as after the last step if the same is closed
            if closed is not y:  # what an end of slips takes away counts as rounding
                y[self.n + 1] += self.energy(y) - self.energy(closed)
                y[: self.n] = closed[: self.n]
            bounded.begun[:] = False
            self.settled = t

    def resume(self, phase: Phase) -> None:
        """Let those freedoms be held and those springs press that did in a phase."""
        self.bounded, self.springs = phase.bounded, phase.springs

    def closed(self, y: Array) -> Array:
        """The nearest y, (…, nq + nv + 3), with closed loops and, of one state, closed contacts.

        See :meth:`Closure.project` and :meth:`Bounded.project`.
        """
        if self.closure is None and (self.bounded is None or not np.count_nonzero(self.bounded.state)):
            return y
        q, qd = (self.bounded or Closure(self.tree)).project(*self.parts(y))
        return np.concatenate([q, qd, y[..., self.n :]], axis=-1)

    def dependent(self, y: Array) -> list[str]:
        """Names of the loops with fewer independent constraints than at the start or nearby, where it is singular."""
        if self.closure is None:
            return []
        q, rng = self.parts(y)[0], np.random.default_rng(0)
        others = [self._begun]
        for _ in range(ASIDE):
            aside = self.model.configurations.integrate(q, rng.uniform(-FAR, FAR, self.model.nv))
            aside, left = self.closure.assembled(aside, np.arange(self.model.nv))
            if left <= MENTIONED:
                others.append(aside)
        return self.closure.dependent(q, others)

    def levels(self, t: float, y: Array) -> Array:
        """Numbers that rise through zero when dry friction, a stop or a closed contact changes; see :meth:`change`."""
        q, qd = self.parts(y)
        levels = [] if self.springs is None else [self.springs.levels(q)]
        if self.bounded is not None:
            found = self.bounded.levels(q, qd, self.forces(t, q, qd)[1])
            levels.append(np.minimum(found, 0.0) if t == self.settled else found)
        return np.concatenate(levels)

    def depths(self, t: float, y: Array) -> Array:
        """Numbers that rise through zero when an open contact touches, which need no forces."""
        assert self.bounded is not None
        found = self.bounded.depths(self.parts(y)[0])
        # What just became open has a gap of zero but for rounding, and may return within the first step.
        return np.minimum(found, 0.0) if t == self.settled else found

    def struck(self, y: Array) -> bool:
        """Whether a freedom at its limit runs against an inelastic stop, or a point that touches approaches."""
        return self.bounded is not None and any(found.size for found in self.bounded.strikes(*self.parts(y)))

    def change(self, k: int, y: Array) -> None:
        """Set what changes when the level k rises; :meth:`settle` then decides what is held."""
        q, qd = y[: self.nq], y[self.nq : self.n]
        count = 0 if self.springs is None else len(self.springs.pressed)
        if self.springs is not None and k < count:
            self._row = int(self.springs.limits.rows[k])
            self.springs.change(k, q)
        elif self.bounded is not None:
            sliding = self.bounded.sliding
            begun = k - count - len(self.bounded.held)  # the accelerations do not jump where a freedom begins to move
            self._row = len(qd) + int(sliding[begun]) if 0 <= begun < len(sliding) else None
            self.bounded.change(k - count, q, qd)

    def step(self, y: Array) -> int | None:
        """Note a step of the integrator; the level of a contact that has come to rest in it, or None."""
        rested = None if self.bounded is None else self.bounded.step(*self.parts(y))
        return None if rested is None else rested + (0 if self.springs is None else len(self.springs.pressed))

    def check_rates(self, t: float, qd: Array) -> None:
        """Raise ScrewdynError for a rate that only an unstable controller causes, with the name of its coordinate."""
        fast = ~(np.abs(qd) < RUNAWAY)
        if fast.any():
            name = self.model.coordinates[int(np.argmax(fast))]
            period = None if self.controller is None else self.controller.period
            held = "" if period is None else f", which is held for {period:g} s: a shorter control_period may do"
            raise ScrewdynError(f"{name!r} is faster than {RUNAWAY:g} /s at t = {t:.6g} s; check its torque{held}")
