"""Simulation of a motion from event to event, with an energy ledger."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from screwdyn.core.errors import ScrewdynError
from screwdyn.physics.robot import Robot
from screwdyn.physics.state import State, check_state
from screwdyn.simulation.callbacks import Controller, Disturbance, SampledController, Torque, Wrenches, guarded
from screwdyn.simulation.events import Scheduled, seconds
from screwdyn.simulation.hybrid import HybridSimulation
from screwdyn.simulation.result import Run
from screwdyn.simulation.stepping import METHODS, Integrator
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
        simulation = HybridSimulation(
            tree,
            start,
            end,
            step,
            Integrator(method, rtol, atol),
            controller=controller,
            disturbance=disturbance,
            stops=stops,
            events=events,
        )
        return Run(*simulation.run(state, progress), tree)


def _check_count(what: str, period: float, start: float, duration: float, counted: str) -> None:
    """Raise an error for a period that is too short for memory and time, or for the resolution of floats."""
    if duration / MOST > period:
        raise ScrewdynError(
            f"{what}={period:g} s makes {duration / period:.3g} {counted} in {duration:g} s, more than {MOST:g}; "
            f"choose it larger"
        )
    if not start + duration + period > start + duration:
        raise ScrewdynError(
            f"{what}={period:g} s is shorter than the resolution of times at t0 = {start:g} s; choose it, or the "
            f"duration of {duration:g} s, larger"
        )
