"""Invalid input of simulations: the error, and an unchanged tree."""

import sys
from dataclasses import replace

import numpy as np
import pytest

import screwdyn as sd

BALL = sd.Inertia.sphere(0.5, 0.05)
CRATE = sd.Grasp(BALL, to="hook", twist="at_rest", name="crate", time=0.02)
CLOSE = sd.Close("hook", "link1", name="ring", time=0.02)
EARLY = sd.Grasp(BALL, to="link2", joint=sd.revolute("z", passive=True), name="ball", twist="at_rest", time=0.01)


@pytest.fixture
def arm():
    tree = sd.robots.pelican()
    tree.attach(sd.Inertia.point(0.1, (0.1, 0, 0)), to="link2", joint=sd.revolute("z", passive=True), name="hook")
    return tree


def run(tree, duration=0.1, torque=None, events=(), **options):
    options = {"step": 0.01} | options
    return sd.simulate(tree, sd.State(tree, np.full(tree.nq, 0.1)), duration, torque, events, **options)


def fingerprint(tree):
    graph = tree.graph
    return (
        *(tree.revision, str(tree), tree.links, tree.joints, tree.coordinates, tree.gravity.tobytes()),
        *([*graph.nodes(data="serial")], [*graph.edges], tree.mass_matrix(tree.neutral()).tobytes(), id(tree.model)),
    )


def refused(tree, error, match, **asked):
    """The error is also raised in the middle of a run that has changed the tree before."""
    before = fingerprint(tree)
    for events in ((), (EARLY,)):
        with pytest.raises(error, match=match):
            run(
                tree,
                **{"events": (*events, *asked.get("events", ()))} | {k: v for k, v in asked.items() if k != "events"},
            )
        assert fingerprint(tree) == before


@pytest.mark.parametrize("seconds", [0, -1, np.nan, np.inf, "1", None, [1.0]])
def test_a_bad_duration(arm, seconds):
    refused(arm, sd.ScrewdynError, "duration", duration=seconds)


def test_a_duration_of_which_a_thousandth_is_zero(arm):
    with pytest.raises(sd.ScrewdynError, match="shorter than the resolution of times"):
        sd.simulate(arm, sd.State(arm), 5e-324)


def test_progress_without_a_terminal(arm, monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    assert sd.simulate(arm, sd.State(arm), 1e-3, progress=True).t[-1] == 1e-3


@pytest.mark.parametrize("step", [0, -0.1, np.nan, "1"])
def test_a_bad_step(arm, step):
    refused(arm, sd.ScrewdynError, "step", step=step)


@pytest.mark.parametrize("option", ["rtol", "atol"])
@pytest.mark.parametrize("tolerance", [0, -1, np.nan, np.inf, "x", None])
def test_a_bad_tolerance(arm, option, tolerance):
    refused(arm, sd.ScrewdynError, f"{option} must be a number > 0", **{option: tolerance})


@pytest.mark.parametrize("method", ["rk4", "", None, 3, np.eye(3), ["RK45"]])
def test_an_unknown_method(arm, method):
    refused(arm, sd.ScrewdynError, "method must be one of RK23, .*LSODA; got", method=method)


def test_arguments_in_another_order(arm):
    with pytest.raises(sd.ScrewdynError, match="tree must be a KinematicTree; got State"):
        sd.simulate(sd.State(arm), arm, 0.1)


FLAGS = [(option, flag) for option in ("saturate", "progress") for flag in (1, "yes", np.eye(3))]


@pytest.mark.parametrize(("option", "flag"), [("saturate", None), *FLAGS])
def test_a_bad_flag(arm, option, flag):
    refused(arm, sd.ScrewdynError, f"{option} must be True or False; got", **{option: flag})


@pytest.mark.parametrize("stop", ["soft", 3, None, np.eye(3)])
def test_a_bad_stop(arm, stop):
    refused(arm, sd.ScrewdynError, "'inelastic' or a SpringStop of 'hook'", stops={"hook": stop})


@pytest.mark.parametrize("duration", [1, np.float64(1), np.float32(1), np.int64(1)])
def test_numbers_as_durations(arm, duration):
    assert run(arm, duration, step=np.float32(0.5)).t[-1] == 1.0


@pytest.mark.parametrize("state", [[0, 0, 0], np.zeros(3), None])
def test_state_of_another_type(arm, state):
    with pytest.raises(sd.ShapeError, match="the state of the tree must be a State"):
        sd.simulate(arm, state, 1.0)


def test_a_stale_state(arm):
    state = sd.State(arm)
    arm.detach("hook")
    with pytest.raises(sd.StaleHandleError, match="but the tree now has"):
        sd.simulate(arm, state, 1.0)


def test_state_made_invalid_after_its_construction(arm):
    state = sd.State(arm)
    state.q[1] = np.nan
    with pytest.raises(sd.ShapeError, match="q is nan at 'elbow'"):
        sd.simulate(arm, state, 1.0)


@pytest.mark.parametrize(
    "value, error, match",
    [
        ([0, 0, 1e-9], sd.JointError, "joint 'hook' is passive, but the torque on it is 1e-09"),
        ({"hook": 1.0}, sd.JointError, "joint 'hook' is passive"),
        ([np.nan, 0, 0, 0][:3], sd.ShapeError, "torque is nan at 'shoulder' at t = 0 s"),
        ([0, np.inf, 0], sd.ShapeError, "torque is inf at 'elbow'"),
        ({"elbow": np.nan}, sd.ShapeError, "torque is nan at 'elbow'"),
        ({"elbow": None}, sd.ShapeError, "torque"),
        ({"elbow": [1, 2]}, sd.ShapeError, r"torque of 'elbow' must be one number; got \[1, 2\]"),
        ({"elbw": 1.0}, sd.UnknownLinkError, "torque at t = 0 s: there is no coordinate 'elbw'; did you mean 'elbow'"),
        ([1e100, 0, 0], sd.ShapeError, r"torque is 1e\+100 at 'shoulder' at t = 0 s; .* below 1e\+60"),
        (
            [0],
            sd.ShapeError,
            r"torque has shape \(1,\) at t = 0 s; expected one number for each of: shoulder, elbow, hook, or for each "
            "active one: shoulder, elbow",
        ),
        ([[0, 0, 0]], sd.ShapeError, r"torque has shape \(1, 3\)"),
        (1.0, sd.ShapeError, r"torque has shape \(\)"),
        (None, sd.ShapeError, "torque returned None at t = 0 s; return the torques, as an array of 3 numbers or as {"),
        ([2.0, 0, 3e-9], sd.JointError, "joint 'hook' is passive, but the torque on it is 3e-09"),
        ([0, 0, 1e-30], sd.JointError, "joint 'hook' is passive, but the torque on it is 1e-30"),
        ([1j, 0, 0], sd.ShapeError, "torque must be an array of real numbers"),
    ],
    ids=str,
)
def test_a_bad_torque(arm, value, error, match):
    before = fingerprint(arm)
    with pytest.raises(error, match=match):
        run(arm, torque=lambda t, state: value)
    assert fingerprint(arm) == before


@pytest.mark.parametrize("rounding", [1e-12, -1.9e-9])
def test_rounding_on_a_passive_joint_is_taken_for_zero(arm, rounding):
    made = run(arm, torque=lambda t, state: np.array([2.0, 0, rounding]))
    assert not made.torque("hook").any()
    assert (made.torque("shoulder") == 2.0).all()
    calm = run(arm, torque=lambda t, state: [2.0, 0, 0])
    assert (made["hook"] == calm["hook"]).all()


@pytest.mark.parametrize(
    "value, error, match",
    [
        (None, sd.ShapeError, r"wrenches returned None at t = 0 s; return \{link: \[n; f\]\}, or \{\} for no"),
        ([0] * 6, sd.ShapeError, "wrenches returned .* at t = 0 s"),
        ({"lnk2": np.zeros(6)}, sd.UnknownLinkError, "did you mean 'link2'"),
        ({"link2": np.zeros(5)}, sd.ShapeError, "wrenches= at t = 0 s: the wrench on 'link2' must be"),
        ({"link2": np.zeros((1, 6))}, sd.ShapeError, r"six numbers .* got shapes \{'link2': \(1, 6\)\} at t = 0 s"),
        ({"link2": [np.nan] * 6}, sd.ShapeError, "the wrench on 'link2' is nan"),
    ],
    ids=str,
)
def test_bad_wrenches(arm, value, error, match):
    refused(arm, error, match, wrenches=lambda t, state: value)


def test_wrenches_that_are_no_function(arm):
    refused(arm, sd.ScrewdynError, "wrenches must be a function", wrenches={"link2": np.zeros(6)})


def test_torque_that_is_wrong_only_with_the_payload(arm):
    refused_later = {"torque": lambda t, state: [0, 0, 0], "events": [EARLY]}
    before = fingerprint(arm)
    with pytest.raises(sd.ShapeError, match=r"at t = 0\.01 s; expected one number for each of: .*, hook, ball"):
        run(arm, **refused_later)
    assert fingerprint(arm) == before


def test_a_torque_that_raises(arm):
    def torque(t, state):
        if t > 0.05:
            raise ZeroDivisionError("mine")
        return {}

    refused(arm, ZeroDivisionError, "mine", torque=torque)


def test_a_torque_that_is_no_function(arm):
    refused(arm, sd.ScrewdynError, "torque must be a function", torque=[0, 0, 0])
    refused(arm, sd.ScrewdynError, r"torque must be a function of \(t, state\)", torque=lambda state: [0, 0, 0])
    refused(arm, sd.ScrewdynError, "control.ComputedTorque is such a function", torque=sd.Feedback(300.0, 30.0))


def test_torque_that_overwrites_its_state_changes_nothing(arm):
    def overwrite(t, state):
        state.q[:] = 7
        state.qd[:] = 7
        return {}

    watched = sd.Release("hook", when=lambda t, state: -1.0 if overwrite(t, state) == {} else 1.0)
    calm = run(arm.copy(), torque=lambda t, state: {})
    for torque, events in ((overwrite, ()), (None, [watched])):
        made = run(arm.copy(), torque=torque, events=events)
        for one, other in zip(made.states, calm.states, strict=True):
            assert (one.q == other.q).all() and (one.qd == other.qd).all()


def test_torque_may_return_the_same_array_each_time(arm):
    tau = np.zeros(3)

    def torque(t, state):
        tau[0] = t
        return tau

    made = run(arm, torque=torque)
    assert (made.torque("shoulder") == made.t).all()


@pytest.mark.parametrize("value", [np.nan, None, "yes", np.zeros(2)])
def test_bad_condition(arm, value):
    refused(
        arm, sd.ScrewdynError, "when= of a Release must return", events=[sd.Release("hook", when=lambda t, s: value)]
    )


def test_condition_that_becomes_bad(arm):
    when = sd.Release("hook", when=lambda t, state: -1 if t < 0.05 else np.nan)
    refused(arm, sd.ScrewdynError, "it returned nan at t = 0.0", events=[when])


def test_a_condition_that_raises(arm):
    refused(arm, ZeroDivisionError, "division", events=[sd.Release("hook", when=lambda t, state: 1 / 0)])


@pytest.mark.parametrize("events", [EARLY, [3], [EARLY, None], "now", {"hook"}, [(EARLY, 3)]])
def test_events_of_another_type(arm, events):
    before = fingerprint(arm)
    with pytest.raises(sd.ScrewdynError, match="events must be a list of events with time= or when="):
        run(arm, events=events)
    assert fingerprint(arm) == before


def test_an_event_beyond_the_end(arm):
    refused(arm, sd.ScrewdynError, "lasts 0.1 s, but a Release is set for 0.2 s", events=[sd.Release("hook", time=0.2)])


@pytest.mark.parametrize(
    "event, error",
    [
        (sd.Release("hok", time=0.05), sd.UnknownLinkError),
        (sd.Release("base", time=0.05), sd.TopologyError),
        (sd.Grasp(BALL, to="hand", twist="at_rest", time=0.05), sd.UnknownLinkError),
        (sd.Grasp(BALL, to="hook", twist="at_rest", name="hook", time=0.05), sd.TopologyError),
        (sd.Grasp(BALL, to="hook", twist=[1, 2], time=0.05), sd.ShapeError),
        (sd.Grasp(3.0, to="hook", twist="at_rest", time=0.05), sd.TopologyError),
        (sd.Grasp("ball", to="hook", twist="at_rest", time=0.05), sd.ShapeError),
        (sd.Grasp("bell", to="hook", time=0.05), sd.UnknownLinkError),
        (sd.HandOver("ball", to="ball", time=0.05), sd.TopologyError),
        (sd.Lock("hok", time=0.05), sd.UnknownNameError),
        (sd.Unlock("hook", time=0.05), sd.TopologyError),
        (sd.ReplaceJoint("base", sd.fixed(), time=0.05), sd.TopologyError),
        (sd.SetInertia("hook", 3.0, time=0.05), sd.InertiaError),
        (
            sd.Grasp(sd.Link("x"), to="hook", joint=sd.revolute(), twist="at_rest", time=0.05),
            sd.SingularAttachmentError,
        ),
    ],
)
def test_an_event_that_cannot_happen(arm, event, error):
    before = fingerprint(arm)
    with pytest.raises(error) as raised:
        run(arm, events=[EARLY, event])
    assert str(raised.value).startswith(f"the run cannot have the {type(event).__name__} at t = 0.05 s: ")
    assert fingerprint(arm) == before


@pytest.mark.parametrize(
    ("event", "message", "due"),
    [
        (sd.Release("crte", time=0.05), "no link 'crte'; did you mean 'crate'", "Release at t = 0.05 s"),
        (sd.HandOver("crate", "lnk1", when=lambda t, state: -1.0), "no link 'lnk1'", "HandOver"),
        (sd.Lock("hok", time=0.05), "no joint 'hok'; did you mean 'hook'", "Lock at t = 0.05 s"),
        (sd.Open("lop", time=0.05), "no loop 'lop'", "Open at t = 0.05 s"),
    ],
)
def test_names_that_a_run_never_has_are_refused_at_its_start(arm, event, message, due):
    """Not only when their time comes, after an hour of computing; but an event before may bring them."""
    grasp = sd.Grasp(BALL, to="hook", twist="at_rest", name="crate", time=0.01)
    with pytest.raises(sd.UnknownNameError, match=message) as raised:
        run(arm, events=[grasp, event], torque=lambda t, state: pytest.fail("it has begun"))
    assert str(raised.value).startswith(f"the run cannot have the {due}: there is no ")


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([sd.Release("crate", time=0.01), CRATE], "Release at t = 0.01 s: there is no link 'crate'"),
        ([sd.Release("crate", time=0.05), CRATE, sd.Release("crate", time=0.04)], "Release at t = 0.05 s: there is no"),
        ([CRATE, replace(CRATE, time=0.05)], "Grasp at t = 0.05 s: there is a link 'crate' already"),
        ([sd.Lock("hook", time=t) for t in (0.05, 0.06)], "Lock at t = 0.06 s: joint 'hook' is locked already"),
        ([sd.Unlock("hook", time=0.05)], "Unlock at t = 0.05 s: joint 'hook' is not locked"),
        ([CLOSE, replace(CLOSE, time=0.05)], "Close at t = 0.05 s: there is a link, joint, loop or contact 'ring'"),
        ([CLOSE, *(sd.Open("ring", time=t) for t in (0.04, 0.05))], "Open at t = 0.05 s: there is no loop 'ring'"),
        ([sd.Weld("hook", "link2", time=t) for t in (0.04, 0.05)], "Weld at t = 0.05 s: 'hook' and 'link2' are one"),
    ],
)
def test_an_impossible_order_is_refused_at_the_start(arm, events, message):
    with pytest.raises(sd.ScrewdynError, match=f"^the run cannot have the {message}"):
        run(arm, events=events, torque=lambda t, state: pytest.fail("it has begun"))


def test_names_that_events_bring(arm):
    grasps = [sd.Grasp(BALL, to="hook", twist="at_rest", time=t) for t in (0.01, 0.02)]
    later = [sd.Release(name, time=0.03) for name in ("payload", "payload_2")]
    assert len(run(arm, 0.05, events=[*grasps, *later]).events) == 4


@pytest.mark.parametrize(
    "event",
    [
        sd.ReplaceJoint("hook", None, time=0.05),
        sd.ReplaceJoint(None, sd.revolute("z"), time=0.05),
        sd.HandOver(3, "link1", joint=sd.revolute("z"), time=0.05),
        sd.HandOver("hook", "link1", joint="x", time=0.05),
        sd.Grasp("hook", to="link1", joint="x", time=0.05),
        sd.Grasp(BALL, to="link1", joint="x", twist="at_rest", name="bob", time=0.05),
        sd.Release("hook", into_world=np.eye(3), time=0.05),
    ],
)
@pytest.mark.parametrize("stops", [None, {"door": "inelastic"}])
def test_arguments_of_an_event_of_another_type(arm, event, stops):
    """The error is that of the event when it happens, also if its joints are looked through for stops."""
    arm.attach(BALL, to="base", joint=sd.revolute("x", limits=(-9, 9), name="door"), name="leaf")
    with pytest.raises(sd.ScrewdynError) as raised:
        run(arm, events=[event], stops=stops)
    assert str(raised.value).startswith(f"the run cannot have the {type(event).__name__} at t = 0.05 s: ")


def test_release_that_leaves_a_joint_without_inertia(arm):
    arm.attach(sd.Link("shell"), to="link1", joint=sd.revolute("z"))
    arm.attach(BALL, to="shell", name="pea")
    before = fingerprint(arm)
    with pytest.raises(sd.SingularAttachmentError, match="nothing beyond joint 'shell'"):
        run(arm, events=[sd.Release("pea", time=0.05)])
    assert fingerprint(arm) == before


def test_a_torque_that_is_held_for_too_long(arm):
    with pytest.raises(sd.ScrewdynError, match=r"check its torque, which is held for 0.1 s: a shorter control_period"):
        run(arm, torque=lambda t, state: -300 * state.qd * [1, 1, 0], duration=9.0, control_period=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["DOP853", "Radau", "LSODA"])
def test_a_controller_that_makes_the_arm_run_away(arm, method):
    before = fingerprint(arm)
    with pytest.raises(sd.ScrewdynError, match=r"is faster than 1e\+06 /s at t = "):
        run(
            arm,
            torque=lambda t, state: 100 * state.qd * [1, 1, 0],
            events=[EARLY],
            duration=10.0,
            method=method,
            rtol=1e-3,
        )
    assert fingerprint(arm) == before


def test_a_torque_of_the_former_coordinates_after_an_event(arm):
    lock = sd.Lock("elbow", time=0.05)
    words = r"shape \(3,\) at t = 0.05 s; .*: shoulder, hook.*; if events change the coordinates, return them by name"
    with pytest.raises(sd.ShapeError, match=words):
        sd.simulate(arm, sd.State(arm), 0.1, lambda t, state: np.zeros(3), [lock], step=0.05)
