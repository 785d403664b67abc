"""Feedback laws that follow a reference in the tree as it is at the time: with payloads, passive joints, followers.

A law is called with a time and a state and returns the torques of all freedoms, so that it can be ``torque=`` of
:func:`screwdyn.simulate` or a part of another program's loop. docs/control.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from screwdyn.core import Array, ArrayLike, ScrewdynError, ShapeError, expressions
from screwdyn.forms.derivatives import Derivatives
from screwdyn.mechanism.plausible import check_positions
from screwdyn.mechanism.topology import Topology, check_open
from screwdyn.physics import Robot, State
from screwdyn.physics.quantities import Result

_TAU = Result("tau", ("v",), "N m or N")
# Step of differences of errors along freedoms of ball joints, rad and m.
STEP = 1e-5
# The least positive number.
LEAST = np.finfo(float).tiny
# Positions, rates and accelerations of the driven joints at a time.
Reference = Callable[[float], tuple[ArrayLike, ArrayLike, ArrayLike]]


class _Plan(NamedTuple):
    """What a law asks of the tree of a state, found once for each structure; indices are slices where they are all."""

    topology: Topology
    tree: Robot
    of_reference: Any  # freedoms of the reference that the tree has
    driven: Any  # these freedoms in the tree
    others: Any  # the other freedoms, which get no torque
    positions_of_reference: Any
    positions: Any
    several: bool  # whether differences of positions are not those of the numbers
    efforts: Array | None  # largest torques of the freedoms; None if no joint has one
    forces: bool  # whether joints have forces of their own


def _slopes(force: Callable[[Array], Array], at: Array, value: Array, rows: Array) -> Array:
    """Rows and columns of the matrix of a linear function, whose value at a place is given."""
    return np.array([force(at + unit) - value for unit in np.eye(len(at))[rows]])[:, rows]


def number(what: str, value: Any, least: float = 0.0, finite: bool = True) -> float:
    """A number of at least some size, or above zero if that is ``LEAST``; ScrewdynError for anything else."""
    found = expressions.read_or_nan(value)
    if found.shape != () or not found >= least or (finite and np.isinf(found)):
        above = "above 0" if least == LEAST else f"of at least {least:g}"
        raise ScrewdynError(f"{what} must be a {'finite ' * finite}number {above}; got {value!r}")
    return float(found)


def check_state(what: str, state: Any) -> None:
    """Raise ShapeError unless something was called with a state."""
    if not hasattr(state, "topology"):
        raise ShapeError(f"{what} is called with a time and a State(tree, q, qd); got {type(state).__name__}")


def difference_by_state(tree: Robot, wanted: Array, q: Array) -> Array:
    """∂(q ⊖ wanted)/∂q along the freedoms, (nv, nv); with ball joints by differences."""
    space, one = tree.model.configurations, np.eye(tree.nv)
    if all(joint.chart is None for joint in tree.model.movers):
        return one
    ends = ([space.difference(wanted, space.integrate(q, s * d)) for d in one] for s in (STEP, -STEP))
    ahead, behind = map(np.array, ends)
    return np.asarray((ahead - behind).T / (2 * STEP))


def since(last: float | None, t: float, state: State, what: str) -> float:
    """The time since the last call, s, 0 in the first one; ScrewdynError if time went back."""
    check_state(f"the {what}", state)
    if not isinstance(t, float | int | np.number) or not math.isfinite(t):
        raise ScrewdynError(f"the {what} was called with the time {t!r}; give a finite number of seconds")
    if last is not None and t < last:
        raise ScrewdynError(
            f"time went back from {last:g} to {t:g} s; call the {what} once in each period, in simulations with "
            f"control_period= and without sensitivities=, and make a new one for each run"
        )
    return 0.0 if last is None else t - last


class Arithmetic(NamedTuple):
    """What laws do with numbers beyond sums and products; in C with traced scalars."""

    solve: Callable[[Any, Any], Any] = np.linalg.solve
    slopes: Callable[[Any, Any, Any, Any], Any] = _slopes
    bounded: Callable[[Any, Any, Any], Any] = lambda x, lower, upper: np.minimum(np.maximum(x, lower), upper)
    clamped: Callable[[Any, Any, Any], Any] = lambda x, lower, upper: min(max(x, lower), upper)  # of one number
    sqrt: Callable[[Any], Any] = math.sqrt


class Law(ABC):
    """The driven joints of a law, its gains, and the torques of the freedoms of the present tree.

    The driven joints are the active ones of ``tree``. Those that the tree of a state does not have, because they are
    locked, are left out; other freedoms of that tree, such as those of a payload on a passive joint, get no torque.
    Torques are clipped at the ``effort`` of the joints.

    Parameters
    ----------
    tree : KinematicTree
        Names the driven joints; torques are those for the tree of the state.
    **gains : float or (n,) array
        One number, or one for each of ``coordinates``, at least 0.

    Attributes
    ----------
    coordinates, positions : tuples of str
        Of the driven joints.
    saturated : tuple of str
        Coordinates whose torque was clipped in the last call.

    Raises
    ------
    ShapeError
        If a gain is negative or has a wrong shape.
    ScrewdynError
        If no joint of the tree is active.
    """

    _arithmetic = Arithmetic()

    def __init__(self, tree: Robot, **gains: ArrayLike) -> None:
        if not isinstance(tree, Robot):
            raise ScrewdynError(f"a {type(self).__name__} is made for a KinematicTree; got {tree!r}")
        joints = {name: tree.joint(name) for name in tree.joints}
        active = {name: x for name, x in joints.items() if x.nv and not x.passive}
        if not active:
            raise ScrewdynError("no joint of the tree is active, so there is nothing to control")
        self.coordinates = tuple(x for name, joint in active.items() for x in joint.freedom_names(name))
        self.positions = tuple(x for name, joint in active.items() for x in joint.position_names(name))
        self.saturated: tuple[str, ...] = ()
        self._plan: _Plan | None = None
        for name, gain in gains.items():
            given = tree.model.numbers(name, gain)
            if given.shape not in ((), (len(self.coordinates),)) or not (given >= 0).all():
                names = ", ".join(self.coordinates)
                raise ShapeError(f"{name} must be a number of at least 0, or one for each of: {names}; got {gain!r}")
            setattr(self, name, np.array(np.broadcast_to(given, len(self.coordinates))))

    @abstractmethod
    def __call__(self, t: float, state: State) -> Array:
        """Torques of all freedoms of the state's tree, (nv,), N m or N; zero for those that are not driven."""

    def _planned(self, state: State) -> _Plan:
        """The plan for the tree of a state."""
        plan = self._plan
        if plan is None or plan.topology is not getattr(state, "topology", None):
            check_state("the law", state)
            plan = self._plan = self._plan_of(state)
        return plan

    def _plan_of(self, state: State) -> _Plan:
        tree = state.tree
        kept, driven = _shared(self.coordinates, tree.coordinates)
        kept_positions, positions = _shared(self.positions, tree.positions)
        if not len(driven):
            raise ScrewdynError(
                f"the tree of the state has none of the joints that this law drives: {', '.join(self.coordinates)}"
            )
        efforts = tree.model.efforts
        return _Plan(
            state.topology,
            tree,
            _all_or(kept, len(self.coordinates)),
            _all_or(driven, tree.nv),
            np.setdiff1d(np.arange(tree.nv), driven),
            _all_or(kept_positions, len(self.positions)),
            _all_or(positions, tree.nq),
            len(positions) != len(driven)
            or any(joint.chart is not None for joint in tree.model.movers if not joint.passive),
            efforts if np.isfinite(efforts).any() else None,
            tree.model.joint_forces.acting,
        )

    def derivative(self, t: float, state: State) -> Array:
        """∂τ/∂[q; q̇], (nv, 2 nv), for ``simulate(…, sensitivities=…)``; zero where torques are clipped.

        It is exact for the laws below, but for trees with closed loops, and by differences for others.
        """
        found = self._by_state(self._planned(state), t, state)
        self(t, state)
        found[np.isin(state.coordinates, self.saturated)] = 0.0
        return found

    def _by_state(self, plan: _Plan, t: float, state: State) -> Array:
        """∂τ/∂[q; q̇] of torques that are not clipped."""
        n, space = len(state.qd), plan.tree.model.configurations
        one = STEP * np.eye(2 * n)
        ends = [(space.integrate(state.q, d[:n]), state.qd + d[n:]) for d in (*one, *-one)]
        torques = np.array([self(t, State.of(plan.tree, *end, own=False)) for end in ends])
        return np.asarray((torques[: 2 * n] - torques[2 * n :]).T / (2 * STEP))

    _given: tuple[str, ...] = ("q", "qd")  # arguments in C

    def _in_c(self, tree: Robot) -> Any:
        from screwdyn.control.in_c import request

        return request(self, tree, self._given, _TAU)

    def _recorded(self, at: Any) -> list[Any]:
        """The results in C."""
        return [at.host(self)(np.nan, at) * at.present]  # NaN in C, which is refused, if it depends on time

    def _clipped(self, plan: _Plan, tau: Array) -> Array:
        """Torques that the motors can give."""
        self.saturated = ()
        if plan.efforts is None:
            return tau
        clipped: Array = self._arithmetic.bounded(tau, -plan.efforts, plan.efforts)
        if clipped.tolist() != tau.tolist():
            self.saturated = tuple(plan.tree.coordinates[k] for k in np.flatnonzero(clipped != tau))
        return clipped


class TrackingLaw(Law):
    """A law that follows a reference; it takes into account how freedoms that are not driven move.

    Springs, damping and dry friction of the joints are compensated. All else as for :class:`Law`.

    Parameters
    ----------
    tree, **gains
        As for :class:`Law`.
    reference : callable t -> (q, qd, qdd)
        Of the driven joints, in the order of ``positions`` and ``coordinates``; rad, rad/s, rad/s², or m.

    Raises
    ------
    ShapeError
        If the reference is no function; in a call, if it returns wrong shapes.
    LoopError
        In a call, if the tree has closed loops.

    Warns
    -----
    ScrewdynWarning
        In the first call for a tree, for positions of the reference, as for :class:`State`.
    """

    def __init__(self, tree: Robot, reference: Reference, **gains: ArrayLike) -> None:
        super().__init__(tree, **gains)
        if reference is not None and not callable(reference):
            raise ShapeError(f"the reference must be a function of time that returns (q, qd, qdd); got {reference!r}")
        self.reference = reference
        self._plausible: _Plan | None = None  # the plan with which positions of the reference were checked

    _given = ("q", "qd", "q_ref", "qd_ref", "qdd_ref")

    def _recorded(self, at: Any) -> list[Any]:
        return [self._referred(at)(np.nan, at) * at.present]

    def _referred(self, at: Any) -> Any:
        """The law in C, with its reference as arguments that have entries for all positions and freedoms."""
        law = at.host(self)
        plan = law._planned(at)
        _check_numbers(at)
        reference = [np.zeros(len(self.positions), dtype=object), *np.zeros((2, len(self.coordinates)), dtype=object)]
        reference[0][plan.positions_of_reference] = at.inputs("q_ref", at.nq)[plan.positions]
        for x, name in zip(reference[1:], self._given[3:5], strict=True):
            x[plan.of_reference] = at.inputs(name, at.nv)[plan.driven]
        law.reference = lambda t: tuple(reference)
        return law

    def _plan_of(self, state: State) -> _Plan:
        check_open(state.topology, type(self).__name__)
        return super()._plan_of(state)

    def _errors(self, plan: _Plan, t: float, state: State) -> tuple[Array, Array, Array]:
        """Errors of positions and of rates, and the accelerations of the reference, of the driven freedoms."""
        if self.reference is None:
            raise ShapeError("the reference must be a function of time; it is None, which serves C source only")
        given = self.reference(t)
        if not isinstance(given, tuple | list) or len(given) != 3:
            raise ShapeError(f"the reference must return (q, qd, qdd); it returned {given!r} at t = {t:g} s")
        q, qd, qdd = map(np.asarray, given)
        positions, freedoms = (len(self.positions),), (len(self.coordinates),)
        if q.shape != positions or qd.shape != freedoms or qdd.shape != freedoms:
            raise ShapeError(
                f"the reference returned arrays of shapes {[q.shape, qd.shape, qdd.shape]} at t = {t:g} s; expected q, "
                f"qd and qdd of {', '.join(self.coordinates)}"
            )
        q, qd, qdd = q[plan.positions_of_reference], qd[plan.of_reference], qdd[plan.of_reference]
        if self._plausible is not plan and q.dtype != object:
            self._plausible, places = plan, plan.topology.neutral.copy()
            places[plan.positions] = q
            check_positions(plan.topology, places)
        if plan.several:
            wanted = state.q.copy()
            wanted[plan.positions] = q
            error = plan.tree.model.configurations.difference(wanted, state.q)[plan.driven]
        else:
            error = state.q[plan.positions] - q
        return error, state.qd[plan.driven] - qd, qdd

    def _driving(self, plan: _Plan, state: State, force: Callable[[Array], Array], qdd: Array) -> tuple[Array, Array]:
        """Torques, (nv,), with which driven freedoms have some accelerations and the others get none; accelerations.

        ``force`` are the forces for accelerations of all freedoms, M q̈ + other terms; its last call is for the result.
        """
        accelerations = np.zeros_like(state.qd)
        accelerations[plan.driven] = qdd
        own = plan.tree.joint_force(state.q, state.qd) if plan.forces else 0.0
        tau = force(accelerations) - own
        if len(plan.others):
            M = self._arithmetic.slopes(force, accelerations, tau + own, plan.others)
            accelerations[plan.others] = self._arithmetic.solve(M, -tau[plan.others])
            tau = force(accelerations) - own
            tau[plan.others] = 0.0
        return np.asarray(tau), accelerations

    def _errors_by_state(self, plan: _Plan, t: float, state: State) -> tuple[Array, Array]:
        """Derivatives of the errors of positions and of rates by [q; q̇], (driven, 2 nv)."""
        wanted, one = state.q.copy(), np.eye(len(state.qd))
        wanted[plan.positions] = np.asarray(self.reference(t)[0])[plan.positions_of_reference]
        by_q = difference_by_state(plan.tree, wanted, state.q)
        return np.hstack([by_q, 0 * one])[plan.driven], np.hstack([0 * one, one])[plan.driven]

    def _driving_by_state(self, plan: _Plan, state: State, by_state: Array, M: Array, qdd_by_state: Array) -> Array:
        """As :meth:`_driving`, ∂τ/∂[q; q̇], of the derivatives of the forces and of the wanted accelerations."""
        n, own = len(state.qd), plan.tree.model.joint_forces
        by_state[:, :n] += np.diag(own.stiffness)
        by_state[:, n:] -= np.diag(own.slopes(state.qd))
        by = np.zeros((n, 2 * n))
        by[plan.driven] = qdd_by_state
        if len(plan.others):
            free = plan.others
            by[free] = np.linalg.solve(M[np.ix_(free, free)], -(by_state + M @ by)[free])
        found = by_state + M @ by
        found[plan.others] = 0.0
        return np.asarray(found)


def _shared(own: tuple[str, ...], names: tuple[str, ...]) -> Any:
    """Indices of the names that two have in common, in the first and in the second, both in the order of the first."""
    pairs = [(k, names.index(x)) for k, x in enumerate(own) if x in names]
    return np.array(pairs, dtype=np.intp).reshape(-1, 2).T


def _check_numbers(tree: Robot, passive: bool = False) -> None:
    """ScrewdynError if positions of driven joints, or all, are not numbers whose differences are errors, as C needs."""
    joints = {name: tree.joint(name) for name in tree.joints}
    groups = [name for name, x in joints.items() if x.chart is not None and (passive or not x.passive)]
    if groups:
        raise ScrewdynError(f"a law in C has errors of joints whose positions are numbers, not {', '.join(groups)}")


def _all_or(indices: Any, count: int) -> Any:
    """Indices, or a slice if they are all of them in order; NumPy takes slices in a third of the time."""
    return slice(None) if np.array_equal(indices, np.arange(count)) else indices


class GravityCompensation(Law):
    """τ = g(q) − K (rest − q) − k q̇: what holds the driven joints, with springs; a hand can move the arm.

    With closed loops, the torques of least norm that hold the tree. All else as for :class:`Law`; docs/control.md.

    Parameters
    ----------
    tree
        As for :class:`Law`.
    damping : float or (n,) array
        k, N m s/rad or N s/m.

    Raises
    ------
    LoopError
        In a call, if the motors cannot hold a tree with closed loops.
    """

    damping: Array

    def __init__(self, tree: Robot, *, damping: ArrayLike = 0.0) -> None:
        super().__init__(tree, damping=damping)

    def __call__(self, t: float, state: State) -> Array:
        """Torques of all freedoms of the state's tree, (nv,), N m or N."""
        plan, rest = self._planned(state), np.zeros(len(state.qd))
        tau = plan.tree.inverse_dynamics(state.q, rest, rest)
        if plan.forces:
            tau = tau - plan.tree.joint_force(state.q, rest)
        tau[plan.others] = 0.0
        tau[plan.driven] -= self.damping[plan.of_reference] * state.qd[plan.driven]
        return self._clipped(plan, tau)

    def _by_state(self, plan: _Plan, t: float, state: State) -> Array:
        model, n = plan.tree.model, len(state.qd)
        if model.topology.loops:
            return super()._by_state(plan, t, state)
        by_q, found = model.derived(Derivatives).gravity_vector(state.q), np.zeros((n, 2 * n))
        found[plan.driven, :n] = (by_q + np.diag(model.joint_forces.stiffness))[plan.driven]
        found[plan.driven, n:] = -(self.damping[plan.of_reference][:, None] * np.eye(n)[plan.driven])
        return found


class ComputedTorque(TrackingLaw):
    """τ = M (q̈_d − k_d ė − k_p e) + C q̇ + g: every driven freedom follows ë + k_d ė + k_p e = 0, e = q − q_d.

    With freedoms that are not driven, their accelerations are those that the equation of motion gives them (partial
    feedback linearization; Spong 1994). Exact for an exact model: see :class:`AdaptiveControl` for an unknown load.
    All else as for :class:`TrackingLaw`; docs/control.md.

    Parameters
    ----------
    tree, reference
        As for :class:`TrackingLaw`.
    kp, kd : float or (n,) array
        1/s² and 1/s; kd = 2 √kp is without overshoot.
    """

    kp: Array
    kd: Array

    def __init__(self, tree: Robot, reference: Reference, *, kp: ArrayLike = 100.0, kd: ArrayLike = 20.0) -> None:
        super().__init__(tree, reference, kp=kp, kd=kd)

    def __call__(self, t: float, state: State) -> Array:
        """Torques of all freedoms of the state's tree, (nv,), N m or N."""
        plan = self._planned(state)
        return self._clipped(plan, self._exact(plan, t, state)[0])

    def _exact(self, plan: _Plan, t: float, state: State) -> tuple[Array, Array]:
        """Torques that are not clipped, and accelerations, of all freedoms."""
        error, rate, qdd = self._errors(plan, t, state)
        qdd = qdd - self.kd[plan.of_reference] * rate - self.kp[plan.of_reference] * error
        return self._driving(plan, state, partial(plan.tree.inverse_dynamics, state.q, state.qd), qdd)

    def _by_state(self, plan: _Plan, t: float, state: State) -> Array:
        _, qdd = self._exact(plan, t, state)
        by_q, by_qd, M = plan.tree.model.derived(Derivatives).inverse_dynamics(state.q, state.qd, qdd)
        error, rate = self._errors_by_state(plan, t, state)
        wanted = -self.kd[plan.of_reference][:, None] * rate - self.kp[plan.of_reference][:, None] * error
        return self._driving_by_state(plan, state, np.hstack([by_q, by_qd]), M, wanted)


class PassivityControl(TrackingLaw):
    """τ = M q̈_r + C q̇_r + g − K s with q̇_r = q̇_d − Λ e and s = q̇ − q̇_r (Slotine and Li 1987).

    C is Christoffel's, so that ½ sᵀ M s changes at the rate −sᵀ K s; with quasi-velocities it is that of the
    Levi-Civita connection. Forces f that the model lacks add sᵀ f to that rate: s stays bounded if they are. Freedoms
    that are not driven have q̇_r = q̇ and the q̈_r with which they get no torque; the rate has further terms then.
    All else as for :class:`TrackingLaw`; docs/control.md.

    Parameters
    ----------
    tree, reference
        As for :class:`TrackingLaw`.
    stiffness : float or (n,) array
        Λ, 1/s.
    damping : float or (n,) array
        K, N m s/rad or N s/m.
    """

    stiffness: Array
    damping: Array

    def __init__(
        self, tree: Robot, reference: Reference, *, stiffness: ArrayLike = 10.0, damping: ArrayLike = 20.0
    ) -> None:
        super().__init__(tree, reference, stiffness=stiffness, damping=damping)

    def __call__(self, t: float, state: State) -> Array:
        """Torques of all freedoms of the state's tree, (nv,), N m or N."""
        plan = self._planned(state)
        return self._clipped(plan, self._passive(plan, t, state)[0])

    def _by_state(self, plan: _Plan, t: float, state: State) -> Array:
        _, slip, qdd = self._passive(plan, t, state)
        derivatives = plan.tree.model.derived(Derivatives)
        by_q, by_qd, by_ref, M = derivatives.reference_dynamics(state.q, state.qd, state.qd - slip, qdd)
        error, rate = self._errors_by_state(plan, t, state)
        stiffness, damping = (x[plan.of_reference][:, None] for x in (self.stiffness, self.damping))
        by_slip = rate + stiffness * error
        by_state = np.hstack([by_q, by_qd + by_ref]) - by_ref[:, plan.driven] @ by_slip
        found = self._driving_by_state(plan, state, by_state, M, -stiffness * rate)
        found[plan.driven] -= damping * by_slip
        return found

    def _passive(self, plan: _Plan, t: float, state: State) -> tuple[Array, Array, Array]:
        """Torques that are not clipped, s, and reference accelerations, of all freedoms."""
        error, rate, qdd = self._errors(plan, t, state)
        stiffness = self.stiffness[plan.of_reference]
        slip = np.zeros_like(state.qd)
        slip[plan.driven] = rate + stiffness * error
        tau, qdd_ref = self._driving(plan, state, self._force(plan, state, state.qd - slip), qdd - stiffness * rate)
        tau[plan.driven] -= self.damping[plan.of_reference] * slip[plan.driven]
        return tau, slip, qdd_ref

    def _force(self, plan: _Plan, state: State, qd_ref: Array) -> Callable[[Array], Array]:
        """M q̈_r + C q̇_r + g as a function of q̈_r."""
        return lambda qdd_ref: plan.tree.reference_dynamics(state.q, state.qd, qd_ref, qdd_ref)
