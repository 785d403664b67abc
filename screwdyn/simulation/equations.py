"""What acts on one tree, and its equation of motion as differential equations of first order."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from numbers import Real
from typing import Literal, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from screwdyn.core.errors import JointError, LoopError, ScrewdynError, ShapeError, TopologyError, UnknownNameError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.forms.configurations import Limits
from screwdyn.mechanism.joint import Joint
from screwdyn.physics.closure import Closure
from screwdyn.physics.model import Model
from screwdyn.physics.quantities import LARGEST
from screwdyn.physics.robot import Robot
from screwdyn.physics.state import State, by_name

__all__ = [
    "ENERGIES",
    "Controller",
    "Disturbance",
    "Equations",
    "Holding",
    "Layout",
    "SampledController",
    "SpringStop",
    "Stop",
    "Stops",
    "Torque",
    "Wrenches",
    "check_stops",
    "guarded",
    "joints_of",
]

T = TypeVar("T")
Torque = Callable[[float, State], ArrayLike | Mapping[str, ArrayLike]]
Wrenches = Callable[[float, State], Mapping[str, ArrayLike]]

# Torque on a passive joint, relative to the largest torque of the call, that counts as rounding and is set to zero.
ROUNDING = 1e-9


def guarded(function: Callable[[float, State], T], tree: Robot) -> Callable[[float, State], T]:
    """A function of the user, which raises TopologyError if a call changes the simulated tree."""

    def call(t: float, state: State) -> T:
        before = tree.topology
        value = function(t, state)
        if tree.topology is not before:
            raise TopologyError(
                f"a function changed the simulated tree at t = {t:.6g} s; use events= for changes during a run, and a "
                f"copy, such as state.tree, for anything else"
            )
        return value

    return call


class Controller:
    """The torques as a function of time and state.

    Parameters
    ----------
    torque : callable (t, state) -> torques
    saturate : bool
        Whether the torques are clipped at the efforts of the joints.
    """

    # Time of the next call, s, up to which torques are held; infinite if the function is called for every trial.
    next_call = np.inf

    @property
    def tried(self) -> bool:
        """Whether the function is called for trial states of the integrator."""
        return self.next_call == np.inf

    def __init__(self, torque: Torque, saturate: bool = False) -> None:
        self.torque, self.saturate = torque, saturate

    def enter(self, tree: Robot) -> None:
        """Begin with a tree or continue with the changed tree."""
        self.tree, self.model = tree, tree.model
        efforts = [joint.effort if self.saturate else None for joint in tree.model.joints if joint.mimic is None]
        self.largest = np.array([np.inf if effort is None else effort for effort in efforts])

    def sample(self, t: float, q: Array, qd: Array) -> None:
        """Call the function now if its output is held and the next call is due."""

    def __call__(self, t: float, q: Array, qd: Array) -> Array:
        """Torques, (nv,), N m or N; errors as for :func:`joint_torques`."""
        value = self.torque(t, State.unchecked(self.tree, self.model.coordinates, q, qd, self.model.positions))
        tau = joint_torques(self.tree, self.model, value, t)
        return np.clip(tau, -self.largest, self.largest) if self.saturate else tau


class SampledController(Controller):
    """Torques that are computed once in each period and held.

    Parameters
    ----------
    torque : callable (t, state) -> torques
    period : float
        Seconds between calls.
    start : float
        Time of the first call, s.
    saturate : bool
        As for :class:`Controller`.
    """

    def __init__(self, torque: Torque, period: float, start: float, saturate: bool = False) -> None:
        super().__init__(torque, saturate)
        self.period, self.start, self.calls = period, start, 0
        self.next_call = start
        self.held: dict[str, float] = {}

    def enter(self, tree: Robot) -> None:
        """Keep the torques of the coordinates that the tree still has; those of new ones are zero until the next call.

        The function is not called, because it may have a memory that counts its calls.
        """
        super().enter(tree)
        self._hold(np.array([self.held.get(name, 0.0) for name in self.model.coordinates]))

    def sample(self, t: float, q: Array, qd: Array) -> None:
        """Call the function if the next call is due."""
        if t >= self.next_call:
            self.calls += 1
            self.next_call = self.start + self.calls * self.period
            self._hold(super().__call__(t, q, qd).copy())

    def __call__(self, t: float, q: Array, qd: Array) -> Array:
        """The held torques, (nv,), N m or N."""
        return self.output

    def _hold(self, output: Array) -> None:
        self.output = output
        self.held = dict(zip(self.model.coordinates, output.tolist(), strict=True))


class Disturbance:
    """The joint forces of the external wrenches as a function of time and state.

    Parameters
    ----------
    wrenches : callable (t, state) -> mapping from link to (6,) array
    """

    def __init__(self, wrenches: Wrenches) -> None:
        self.wrenches = wrenches

    def enter(self, tree: Robot) -> None:
        """Begin with a tree or continue with the changed tree."""
        self.tree, self.model = tree, tree.model

    def __call__(self, t: float, q: Array, qd: Array) -> Array:
        """Σ J_iᵀ F_i, (nv,), N m or N.

        Raises
        ------
        ShapeError, UnknownNameError
            If the function returns anything but six finite numbers for each of some links.
        """
        value = self.wrenches(t, State.unchecked(self.tree, self.model.coordinates, q, qd, self.model.positions))
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


def joint_torques(tree: Robot, model: Model, value: object, t: float) -> Array:
    """Torques of all freedoms, (nv,), from what a callback returned at time t.

    Raises
    ------
    ShapeError, UnknownNameError
        If the value is neither an array over all or over the active freedoms nor a mapping from coordinates.
    JointError
        If there is a torque on a passive joint.
    """
    names, passive = model.coordinates, np.array(model.passive, dtype=bool)
    active = [name for name, loose in zip(names, model.passive, strict=True) if not loose]
    if value is None:
        raise ShapeError(
            f"torque returned None at t = {t:g} s; return the torques, as an array of {model.nv} numbers or as "
            f"{{coordinate: torque}}"
        )
    if isinstance(value, Mapping):
        given = by_name(tree, "torque", value, names)
        value = [given.get(name, 0.0) for name in names]
    tau = model.numbers("torque", value)  # type: ignore[arg-type]
    if tau.shape == (len(active),) != (model.nv,):
        tau, driven = np.zeros(model.nv), tau
        tau[~passive] = driven
    if tau.shape != (model.nv,):
        fewer = f", or for each active one: {', '.join(active)}" if 0 < len(active) < model.nv else ""
        raise ShapeError(
            f"torque has shape {tau.shape} at t = {t:g} s; expected one number for each of: "
            f"{', '.join(names) or 'no coordinates'}{fewer}; if events change the coordinates, return them by name, as "
            f"{{coordinate: torque}}"
        )
    finite = np.isfinite(tau)
    if not finite.all():
        i = int(np.argmin(finite))
        raise ShapeError(f"torque is {tau[i]} at {names[i]!r} at t = {t:g} s; every entry must be finite")
    size = np.where(passive, np.abs(tau), 0.0)
    if size.any():
        i = int(np.argmax(size))
        if size[i] > ROUNDING * np.abs(tau).max():
            raise JointError(
                f"joint {names[i]!r} is passive, but the torque on it is {tau[i]:g} at t = {t:g} s; return 0 for it"
            )
        tau = np.where(passive, 0.0, tau)
    return tau


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


def stop_of(stops: Stops | None, joint: str) -> Stop | None:
    """The stop of a joint with limits; None if there is none."""
    return stops.get(joint) if isinstance(stops, Mapping) else stops


def joints_of(tree: Robot) -> dict[str, Joint]:
    """All joints by name; a locked one as it is when it is unlocked."""
    locks = {name: tree.lock_of(name) for name in tree.joints}
    return {name: tree.joint(name) if lock is None else lock.joint for name, lock in locks.items()}


def check_stops(stops: object, joints: Sequence[tuple[str, Joint]]) -> None:
    """Check the argument ``stops`` of :func:`simulate`.

    ``joints`` are those that the run may have, some of which may have the same name.

    Raises
    ------
    UnknownNameError
        If a stop belongs to no joint.
    ScrewdynError
        If it is no stop, or its joint has no limits.
    """
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
    """The springs at the limits of one tree.

    While none begins or ceases to press, the force is continuous. A spring that leaves its limit more slowly than the
    joint does not pull; its energy is then dissipated.

    Parameters
    ----------
    limits : Limits
    stops : sequence of SpringStop
        For each limit.
    q, qd : (nq,) and (nv,) arrays
        The start.
    """

    def __init__(self, limits: Limits, stops: list[SpringStop], q: Array, qd: Array) -> None:
        self.limits, self.count = limits, len(qd)
        reflected = limits.ratio**2
        self.stiffness = reflected * [stop.stiffness for stop in stops]
        self.damping = reflected * [stop.damping for stop in stops]
        x = limits.excess(q)
        self.pressed = (x > 0) | ((x == 0) & (limits.approach(qd) > 0))

    def energy(self, q: Array) -> Array:
        """½ Σ stiffness x² of the distances x > 0 beyond the limits, (…), J."""
        return np.asarray(0.5 * np.maximum(self.limits.excess(q), 0) ** 2 @ self.stiffness)

    def force(self, q: Array, qd: Array) -> tuple[Array, float]:
        """Force on the freedoms, (nv,), N m or N, and the power that is dissipated, W."""
        limits = self.limits
        rate = limits.approach(qd)
        spring = self.stiffness * limits.excess(q)
        push = np.maximum(spring + self.damping * rate, 0) * self.pressed
        force = np.zeros(self.count)
        np.add.at(force, limits.rows, -limits.sign * push)
        return force, float((push - spring * self.pressed) @ rate)

    def levels(self, q: Array) -> Array:
        """A number for each limit that rises through zero when its spring begins or ceases to press."""
        x = self.limits.excess(q)
        return np.where(self.pressed, -x, x)

    def change(self, k: int, q: Array) -> None:
        """Let a spring begin or cease to press, and set its position in q, which differs from the limit by rounding."""
        q[self.limits.where[k]] = self.limits.values[k]
        self.pressed[k] ^= True


Mask = npt.NDArray[np.bool_]


# A freedom at rest is held up to a force that exceeds its bound by EDGE / 2, and one that is held begins to move at a
# force that exceeds it by EDGE, relative to the friction, or at a stop relative to the load and to the force for 1
# rad/s² or m/s²: a rounding error cannot make it alternate between the two.
EDGE = 1e-9
# Rate in rad/s or m/s that counts as rest where a change between rest and motion is decided.
REST = 1e-12
# Distance from a stop that counts as rounding, relative or in rad or m.
CONTACT = 1e-12


class Strike(NamedTuple):
    """An impact on stops.

    Attributes
    ----------
    entries : list of int
        The limits that are reached.
    rates : (nv,) array
        After the impact.
    impulse : (nv,) array
        Of the stops on the freedoms, N m s and N s.
    energy_lost : float
        J.
    """

    entries: list[int]
    rates: Array
    impulse: Array
    energy_lost: float


class Holding:
    """Freedoms of one tree that are held and that move, where there is dry friction or a stop.

    While none of them changes, the motion is smooth: freedoms that slide have a constant friction force, and those that
    are held have q̈ = 0.

    Parameters
    ----------
    tree : KinematicTree
    friction : (nv,) array
        Largest friction force of each freedom, N m or N.
    stops : Limits
        The limits with an inelastic stop.

    Attributes
    ----------
    force : (nv,) array
        Friction −F sgn q̇ of the freedoms that slide; zero for all others.
    held, sliding : arrays of int
        Rows of the freedoms that are held, and of those with friction that slide.
    open : array of int
        The stops whose freedoms are not held.
    """

    def __init__(self, tree: Robot, friction: Array, stops: Limits) -> None:
        self.tree, self.friction, self.stops = tree, friction, stops
        self.contact = CONTACT * (1 + np.abs(stops.values))
        self._note(np.zeros(len(friction)), friction > 0, np.zeros(len(stops.values), dtype=bool))

    def check(self, q: Array) -> None:
        """Raise ScrewdynError if a position is beyond a stop."""
        for k in np.flatnonzero(self.stops.excess(q) > self.contact).tolist():
            _, joint, name, side = self.stops.keys[k]
            raise ScrewdynError(
                f"{name!r} is at {q[self.stops.where[k]]:.9g}, beyond {self.stops.values[k]:.9g}, where joint "
                f"{joint!r} has a stop at its {side} limit; start within the limits, or use a SpringStop"
            )

    def strikes(self, q: Array, qd: Array) -> list[int]:
        """The stops that freedoms at their limits run against."""
        return np.flatnonzero(self._touching(q) & (self.stops.approach(qd) > REST)).tolist()

    def strike(self, q: Array, qd: Array) -> Strike:
        """The inelastic impact on all stops at whose limits the freedoms are.

        The rates after it are the nearest ones, in the metric of kinetic energy, that run against no stop: the impulses
        P only push, and minimise ½ Pᵀ A P + Pᵀ q̇, with A the block of M⁻¹. Friction is finite, so it has no impulse.
        """
        touching = self._touching(q)
        low, high = self._bounds(np.zeros(len(qd)), touching)
        at = np.flatnonzero((low < 0) | (high > 0))
        M = self.tree.mass_matrix(q)
        side = _at_bounds(np.linalg.inv(M)[np.ix_(at, at)], qd[at], low[at], high[at])
        stopped = at[side == 0]
        rest = np.setdiff1d(np.arange(len(qd)), stopped)
        change = np.zeros(len(qd))
        change[stopped] = -qd[stopped]
        change[rest] = np.linalg.solve(M[np.ix_(rest, rest)], M[np.ix_(rest, stopped)] @ qd[stopped])
        impulse = np.zeros(len(qd))
        impulse[stopped] = (M @ change)[stopped]
        rates = qd + change
        rates[stopped] = 0.0
        # Those that leave their stop move away from it but for rounding.
        rates[self.stops.rows[touching & (self.stops.approach(rates) > 0)]] = 0.0
        return Strike(self.strikes(q, qd), rates, impulse, float(0.5 * change @ M @ change))

    def settle(self, q: Array, qd: Array, force: Array) -> None:
        """Decide which freedoms are held from now on, and in which direction the others slide.

        Of the forces λ of friction and stops on the freedoms at rest, within their bounds, those act that minimise
        ½ λᵀ A λ + λᵀ a, with a the accelerations without λ and A the block of M⁻¹. A freedom moves if its λ_i is at a
        bound.

        Parameters
        ----------
        q : (nq,) array
        qd : (nv,) array
        force : (nv,) array
            All joint forces but those of dry friction and stops, N m or N.

        Raises
        ------
        SingularAttachmentError
            If a joint feels no inertia; otherwise M is positive definite.
        """
        moving = np.abs(qd) > REST
        touching = self._touching(q) & ~moving[self.stops.rows]
        at_rest = ~moving & (self.friction > 0)
        at_rest[self.stops.rows[touching]] = True
        self._note(np.where(moving, np.sign(qd), 0.0), at_rest, touching)
        if self.held.size:
            at, total = self.held, force + self.force
            a = self.tree.forward_dynamics(q, qd, total)[at]
            M = self.tree.mass_matrix(q)
            edge = self._edge(M, total - self.tree.bias_force(q, qd))
            low, high = self._bounds(self.friction + 0.5 * edge, touching)
            side = _at_bounds(np.linalg.inv(M)[np.ix_(at, at)], a, low[at], high[at])
            direction = self.direction.copy()
            direction[at] = -side
            at_rest[at] = side == 0
            self._note(direction, at_rest, touching)

    def _note(self, direction: Array, held: Mask, touching: Mask) -> None:
        self.direction = direction
        self.force = -self.friction * direction
        self.held, self.free = np.flatnonzero(held), np.flatnonzero(~held)
        self._block = np.ix_(self.free, self.free)
        self.sliding = np.flatnonzero((self.friction > 0) & ~held)
        self.closed = touching & held[self.stops.rows]
        self.open = np.flatnonzero(~held[self.stops.rows])

    def _touching(self, q: Array) -> Mask:
        return np.asarray(self.stops.excess(q) >= -self.contact, dtype=bool)

    def _bounds(self, largest: Array, touching: Mask) -> tuple[Array, Array]:
        """Bounds of what acts on each freedom: ± ``largest``, or infinite where a stop that it touches can push."""
        low, high = -largest, largest.copy()
        stops = self.stops
        low[stops.rows[touching & (stops.sign > 0)]] = -np.inf
        high[stops.rows[touching & (stops.sign < 0)]] = np.inf
        return low, high

    def _edge(self, M: Array, load: Array) -> Array:
        edge = self.friction.copy()
        at = self.stops.rows
        edge[at] += np.abs(load[at]) + np.diagonal(M)[at]
        return EDGE * edge

    def accelerations(self, q: Array, qd: Array, force: Array) -> tuple[Array, Array]:
        """q̈, (nv,), and the force λ that holds the freedoms that are held, (held,).

        M_ff q̈_f = (force − C q̇ − g)_f for the freedoms f that are not held; ``force`` includes the friction of those
        that slide.
        """
        M, load = self.tree.mass_matrix(q), force - self.tree.bias_force(q, qd)
        return self._solved(M, load)

    def _solved(self, M: Array, load: Array) -> tuple[Array, Array]:
        qdd = np.zeros(len(load))
        qdd[self.free] = np.linalg.solve(M[self._block], load[self.free])
        return qdd, (M @ qdd - load)[self.held]

    def levels(self, q: Array, qd: Array, force: Array) -> Array:
        """Numbers that rise through zero when something changes; see :meth:`change`.

        They are for the freedoms that are held, for those that slide, and for the open stops.
        """
        begins = np.zeros(0)
        if self.held.size:
            M, load = self.tree.mass_matrix(q), force - self.tree.bias_force(q, qd)
            low, high = self._bounds(self.friction + self._edge(M, load), self.closed)
            reaction = self._solved(M, load)[1]
            begins = np.maximum(reaction - high[self.held], low[self.held] - reaction)
        rests = -self.direction[self.sliding] * qd[self.sliding]
        return np.concatenate([begins, rests, self.stops.excess(q)[self.open]])

    def change(self, k: int, q: Array, qd: Array) -> None:
        """Set in q or q̇ what is known but for rounding when the level k rises: a position at a stop, a rate of rest."""
        rows = np.concatenate([self.held, self.sliding])
        if k < len(rows):
            qd[rows[k]] = 0.0
        else:
            entry = self.open[k - len(rows)]
            q[self.stops.where[entry]] = self.stops.values[entry]
            if self.stops.approach(qd)[entry] <= 0:  # it left the stop and came back within rounding
                qd[self.stops.rows[entry]] = 0.0


def _at_bounds(A: Array, a: Array, low: Array, high: Array) -> Array:
    """−1 and 1 where the λ that minimises ½ λᵀ A λ + λᵀ a is at its lower and upper bound, else 0."""
    from scipy.optimize import lsq_linear

    unbounded = -np.linalg.solve(A, a)
    if ((low <= unbounded) & (unbounded <= high)).all():
        return np.zeros(len(a))
    root = np.linalg.cholesky(A).T
    found = lsq_linear(root, -np.linalg.solve(root.T, a), (low, high), method="bvls", tol=1e-14)
    return np.asarray(found.active_mask, dtype=float)


# Rate in rad/s or m/s above which a run is stopped, because an unstable controller makes the steps ever smaller.
RUNAWAY = 1e6
# Rate above which callbacks are not asked, rad/s or m/s.
TRIAL = 1e3 * RUNAWAY
# Energies that are integrated with the motion: work of the torques, dissipation in joints, work of the wrenches.
ENERGIES = 3
# Step of finite differences, relative to 1 + |y|.
DIFFERENCE = 1e-6


class Layout:
    """The tree of a motion, and the parts of y = [q; q̇; …].

    Parameters
    ----------
    tree : KinematicTree
        Copied: later changes have no effect.

    Attributes
    ----------
    tree : KinematicTree
        The copy from which values are computed.
    nq, n : int
        Numbers of positions, and of positions and rates.
    """

    def __init__(self, tree: Robot) -> None:
        self.tree = tree.copy()
        self.model = self.tree.model
        self.nq, self.n = self.model.nq, self.model.nq + self.model.nv

    def state(self, y: Array) -> State:
        """A state for callbacks and results, with copied arrays, because a callback may change them."""
        q, qd = self.parts(y)
        return State.unchecked(self.tree, self.model.coordinates, q, qd, self.model.positions)

    def parts(self, y: Array) -> tuple[Array, Array]:
        """Positions, with quaternions scaled to length 1, and rates, from y of shape (…, nq + nv + 3)."""
        q = y[..., : self.nq]
        return self.model.configurations.normalized(q) if self.model.charts else q, y[..., self.nq : self.n]


# Number and distance, rad and m, of configurations with which one is compared that may be singular.
_ASIDE, _FAR = 3, 0.05


class Equations:
    """ẏ = f(t, y) of one tree, with y = [q; q̇; energies], (nq + nv + 3,).

    M q̈ + C q̇ + g = τ + joint forces + Σ J_iᵀ F_i (docs/mathematics.md §8). The energies are the work of the torques,
    the energy dissipated in joints and the work of the external wrenches.

    Parameters
    ----------
    tree : KinematicTree
        Copied: later changes have no effect.
    controller : Controller or None
        The torques; zero by default.
    disturbance : Disturbance or None
        The external wrenches; none by default.
    stops : Stops or None
        At joint limits; none by default.
    y : (nq + nv + 3,) array
        The start.

    Attributes
    ----------
    layout : Layout
    holding : Holding or None
        Dry friction and inelastic stops.
    springs : SpringStops or None
    closure : Closure or None
        The loops of the tree.
    passable : Limits
        Those without an inelastic stop.

    Raises
    ------
    ScrewdynError
        If a position is beyond an inelastic stop.
    LoopError
        If there are loops, and dry friction or inelastic stops.
    """

    def __init__(
        self, tree: Robot, controller: Controller | None, disturbance: Disturbance | None, stops: Stops | None, y: Array
    ) -> None:
        # Without the functions of the user, so that results do not refer to them.
        self.layout = layout = Layout(tree)
        self.tree, self.model, self.nq, self.n = layout.tree, layout.model, layout.nq, layout.n
        own = self.own = layout.model.joint_forces
        self.elastic, self.viscous = bool(own.stiffness.any()), bool(own.damping.any())
        q, qd = layout.parts(y)
        self.passable = Limits.of(tree, lambda joint: stop_of(stops, joint) != "inelastic")
        rigid = Limits.of(tree, lambda joint: stop_of(stops, joint) == "inelastic")
        self.holding = Holding(self.tree, own.friction, rigid) if own.friction.any() or rigid.keys else None
        if self.holding is not None:
            self.holding.check(q)
        loops = layout.model.topology.loops
        self.closure = Closure(self.tree, self.model) if loops else None
        self._ranks = self.closure.ranks(q) if self.closure is not None else {}
        if loops and self.holding is not None:
            raise LoopError(
                f"dry friction and inelastic stops are not available for a tree with closed loops, because they would "
                f"ignore the forces in {', '.join(map(repr, loops))}; use damping and stops=SpringStop(…) instead"
            )
        soft = Limits.of(tree, lambda joint: isinstance(stop_of(stops, joint), SpringStop))
        found = [stop for _, joint, _, _ in soft.keys if isinstance(stop := stop_of(stops, joint), SpringStop)]
        self.springs = SpringStops(soft, found, q, qd) if found else None
        self.controller, self.disturbance = controller, disturbance
        self.none = np.zeros(layout.model.nv)
        # Whether functions of the user are called for trial states.
        self.tried = disturbance is not None or (controller is not None and controller.tried)
        if controller is not None:
            controller.enter(layout.tree)
        if disturbance is not None:
            disturbance.enter(layout.tree)

    def potential(self, q: Array) -> Array:
        """Energy of gravity and of springs, (…), J."""
        energy = np.asarray(self.tree.potential_energy(q) + self.own.spring_energy(q))
        return energy if self.springs is None else energy + self.springs.energy(q)

    def rate(self, t: float, y: Array) -> Array:
        """ẏ, (nq + nv + 3,); see :meth:`write_rate`."""
        rate = np.zeros(len(y))
        self.write_rate(t, y, rate)
        return rate

    def write_rate(self, t: float, y: Array, rate: Array) -> None:
        """Write ẏ to ``rate``, (nq + nv + 3,): NaN for trial states out of range, so that a shorter step is tried."""
        nq, n = self.nq, self.n
        q, qd = y[:nq], y[nq:n]
        if not qd @ qd < (TRIAL if self.tried else LARGEST) ** 2:
            rate[nq:n] = np.nan
            return
        if self.model.charts is None:
            rate[:nq] = qd
        else:
            # The rate of a quaternion is perpendicular to it, so its length stays constant without projection.
            rate[:nq] = self.model.configurations.rate(q, qd)
            q = self.model.configurations.normalized(q)
        tau = None if self.controller is None else self.controller(t, q, qd)
        force = self.forces(t, q, qd, tau, rate[n:])
        try:
            rate[nq:n] = self.accelerations(q, qd, force)
        except ShapeError:  # numbers beyond the range of the recursions
            rate[nq:n] = np.nan

    def jacobian(self, t: float, y: Array) -> Array:
        """∂ẏ/∂y by forward differences, (nq + nv + 3, nq + nv + 3); no rate depends on the energies."""
        here, slopes = self.rate(t, y), np.zeros((len(y), len(y)))
        for k, step in enumerate(DIFFERENCE * (1 + np.abs(y[: self.n]))):
            there = y.copy()
            there[k] += step
            slopes[:, k] = (self.rate(t, there) - here) / step
        return slopes

    @property
    def smooth(self) -> bool:
        """Whether the accelerations are a fixed function of the state: without callbacks, dry friction and stops."""
        called = self.controller is not None or self.disturbance is not None
        return not called and self.holding is None and self.springs is None

    def sample(self, t: float, q: Array, qd: Array) -> tuple[Array, Array]:
        """Torques and accelerations at a time, (nv,)."""
        tau = None if self.controller is None else self.controller(t, q, qd)
        qdd = self.accelerations(q, qd, self.forces(t, q, qd, tau, np.zeros(ENERGIES)))
        return np.zeros(len(qd)) if tau is None else tau, qdd

    def smooth_accelerations(self, q: Array, qd: Array) -> Array:
        """q̈ at any number of states, (…, nv), if the equations are :attr:`smooth`."""
        return np.asarray(self.tree.forward_dynamics(q, qd, self.own.viscous_force(qd) + self.own.spring_force(q)))

    def accelerations(self, q: Array, qd: Array, force: Array) -> Array:
        """q̈, (nv,), for all joint forces but those on freedoms that are held."""
        if self.holding is not None and self.holding.held.size:
            return self.holding.accelerations(q, qd, force)[0]
        return np.asarray(self.tree.forward_dynamics(q, qd, force))

    def forces(self, t: float, q: Array, qd: Array, tau: Array | None, power: Array) -> Array:
        """All joint forces but those that hold freedoms, (nv,), N m or N; their powers are written to ``power``.

        ``tau`` are the torques.
        """
        force = self.none if self.holding is None else self.holding.force
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
        return force

    def settle(self, t: float, y: Array) -> None:
        """Decide which freedoms are held, and set their rates in y, which are zero but for rounding."""
        if self.holding is not None:
            q, qd = self.layout.parts(y)
            self.holding.settle(q, qd, self._total(t, q, qd) - self.holding.force)
            y[self.nq + self.holding.held] = 0.0

    def closed(self, y: Array) -> Array:
        """The nearest y, (…, nq + nv + 3), with closed loops; see :meth:`Closure.project`."""
        if self.closure is None:
            return y
        q, qd = self.closure.project(*self.layout.parts(y))
        return np.concatenate([q, qd, y[..., self.n :]], axis=-1)

    def dependent(self, y: Array) -> list[str]:
        """Names of the loops with fewer independent constraints than at the start or nearby, where it is singular."""
        if self.closure is None:
            return []
        q, rng = self.layout.parts(y)[0], np.random.default_rng(0)
        others = [self._ranks]
        for _ in range(_ASIDE):
            aside = self.model.configurations.integrate(q, rng.uniform(-_FAR, _FAR, self.model.nv))
            with suppress(LoopError):
                others.append(self.closure.ranks(self.closure.closed(aside)[0]))
        return [name for name, rank in self.closure.ranks(q).items() if rank < max(other[name] for other in others)]

    def levels(self, t: float, y: Array) -> Array:
        """Numbers that rise through zero when dry friction or a stop changes; see :meth:`change`."""
        q, qd = self.layout.parts(y)
        levels = [] if self.springs is None else [self.springs.levels(q)]
        if self.holding is not None:
            levels.append(self.holding.levels(q, qd, self._total(t, q, qd)))
        return np.concatenate(levels)

    def struck(self, y: Array) -> bool:
        """Whether a freedom at its limit runs against an inelastic stop."""
        return self.holding is not None and bool(self.holding.strikes(*self.layout.parts(y)))

    def change(self, k: int, y: Array) -> None:
        """Set what changes when the level k rises; :meth:`settle` then decides what is held."""
        q, qd = y[: self.nq], y[self.nq : self.n]
        count = 0 if self.springs is None else len(self.springs.pressed)
        if self.springs is not None and k < count:
            self.springs.change(k, q)
        elif self.holding is not None:
            self.holding.change(k - count, q, qd)

    def _total(self, t: float, q: Array, qd: Array) -> Array:
        tau = None if self.controller is None else self.controller(t, q, qd)
        return self.forces(t, q, qd, tau, np.zeros(ENERGIES))

    def check_rates(self, t: float, qd: Array) -> None:
        """Raise an error for rates that only an unstable controller causes.

        Raises
        ------
        ScrewdynError
            The message names the coordinate.
        """
        fast = ~(np.abs(qd) < RUNAWAY)
        if fast.any():
            name = self.model.coordinates[int(np.argmax(fast))]
            raise ScrewdynError(f"{name!r} is faster than {RUNAWAY:g} /s at t = {t:.6g} s; check its torque")
