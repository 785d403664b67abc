"""Changes within rollouts against runs of one lane each, in which the tree is really changed."""

from contextlib import nullcontext
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import screwdyn as sd
from screwdyn import (
    Grasp,
    Inertia,
    KinematicTree,
    Link,
    Lock,
    Release,
    ScrewdynError,
    SetInertia,
    ShapeError,
    SingularAttachmentError,
    State,
    TopologyError,
    UnknownNameError,
    Unlock,
    robots,
)
from screwdyn.testing import random_inertia, random_tree

pytestmark = pytest.mark.usefixtures("compiled_when_called")

DT = 2e-3
CRATE = Inertia.box(3.0, (0.3, 0.2, 0.2), com=(0, -0.3, 0))
HOOK = sd.revolute("x", passive=True, name="hook", damping=0.1)
GRASP = Grasp(CRATE, to="tool0", joint=HOOK, name="crate", twist="at_rest")


def acceleration(tree, q, qd, tau):
    return tree.forward_dynamics(q, qd, tau + tree.joint_force(q, qd))


def euler(tree, q, qd, tau):
    qd = qd + DT * acceleration(tree, q, qd, tau)
    return tree.model.configurations.normalized(tree.integrate(q, DT * qd)), qd


def rk4(tree, q, qd, tau):
    unit, rates = tree.model.configurations.normalized, [(np.zeros_like(q), np.zeros_like(qd))]
    for c in (0.0, 0.5, 0.5, 1.0):
        x, v = unit(q + c * DT * rates[-1][0]), qd + c * DT * rates[-1][1]
        rates.append((tree.position_rate(x, v), acceleration(tree, x, v, tau)))
    weighted = [sum(b * k[i] for b, k in zip((1, 2, 2, 1), rates[1:], strict=True)) / 6 for i in (0, 1)]
    return unit(q + DT * weighted[0]), qd + DT * weighted[1]


STEP = {"semi_implicit_euler": euler, "rk4": rk4}


def alone(tree, q, qd, steps, events, torque, method="semi_implicit_euler"):
    """The states before the changes of each step, and the last one, of one run, whose tree is changed."""
    tree = tree.copy()
    state = State(tree, q, qd)
    states = []
    for k in range(steps):
        states.append(state)
        for event, at in events:
            state = event.happen(tree, state).state if at == k else state
        tau = np.array([torque.get(name, 0.0) for name in tree.coordinates])
        state = State.of(tree, *STEP[method](tree, state.q, state.qd, tau), own=False)
    return [*states, state]


def compare(run, b, states, scale=1.0):
    for k, state in enumerate(states):
        for labels, found, expected in (
            (run.compiled.positions, run.q, state.q),
            (run.compiled.coordinates, run.qd, state.qd),
        ):
            own = state.positions if found is run.q else state.coordinates
            rows = [labels.index(name) for name in own]
            assert_allclose(found[k, b, rows], expected, rtol=0, atol=1e-10 * scale)
            rest = np.setdiff1d(np.arange(len(labels)), rows)
            assert np.isfinite(found[k, b, rest]).all()
            if found is run.qd:
                assert (np.abs(found[k, b, rest]) < 1e-180).all()


def due(rng, runs, first, last):
    """Steps of the runs, some of which are never."""
    return np.where(rng.random(runs) < 0.2, -1, rng.integers(first, last, runs))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "method"),
    [
        (0, "rk4"),
        (1, "semi_implicit_euler"),
        *(pytest.param(seed, "semi_implicit_euler", marks=pytest.mark.soak) for seed in (0, 2, 3, 4)),
    ],
)
def test_runs_are_those_of_trees_that_are_changed(seed, method):
    rng = np.random.default_rng([seed, 28])
    joints = [("revolute", "prismatic"), ("spherical", "revolute"), ("free",), ("revolute", "universal"), ("revolute",)]
    tree = random_tree(rng, 2 if seed == 2 else 3, joints[seed])
    kinds = [
        None,
        sd.spherical(passive=True),
        sd.revolute("y", passive=True, friction=0.1),
        None,
        sd.universal("x", "z"),
    ]
    body, inner = random_inertia(rng), None
    if seed in (1, 3):  # with joints of its own, which move
        body = KinematicTree(Link("box", random_inertia(rng)))
        body.attach(random_tree(rng, 2, ("revolute",)), "box", prefix="own/")
        inner = State(body, rng.normal(size=body.nq), rng.normal(size=body.nv))
    twist = ["at_rest", "co_moving", rng.normal(size=6), "at_rest", rng.normal(size=6)][seed]
    to = tree.links[-1 - seed % 2]
    grasp = Grasp(body, to=to, joint=kinds[seed], at=(0.1, 0.2, 0.3), name="load", twist=twist, body_state=inner)
    runs, steps = 7, 14
    joint = tree.joints[0]
    heavier = SetInertia(tree.links[2], random_inertia(rng))
    grasped = due(rng, runs, 0, 5)
    released = np.where(grasped < 0, -1, due(rng, runs, 5, 10))
    locked = due(rng, runs, 0, 8)
    freed = np.where(locked < 0, -1, due(rng, runs, 8, 14))
    again = np.where(released < 0, -1, due(rng, runs, 10, 14))
    events = [
        *((grasp, grasped), (Release("load"), released), (Lock(joint), locked), (Unlock(joint), freed)),
        *((grasp, again), (heavier, due(rng, runs, 0, 14))),
    ]
    q = np.array([tree.random_configuration(rng) for _ in range(runs)])
    qd, force = rng.normal(size=(2, runs, tree.nv))
    force *= ~np.array(tree.model.passive)
    tau = np.zeros((runs, tree.nv + 10))
    fast = tree.compile(threads=1)
    names = fast.rollout(q, qd, 1, DT, events=events).compiled.coordinates
    tau = np.zeros((runs, len(names)))
    tau[:, [names.index(name) for name in tree.coordinates]] = force
    run = fast.rollout(q, qd, steps, DT, tau, method=method, events=events, every=1)
    assert not run.failed.any()
    for b in range(runs):
        own = [(event, at[b]) for event, at in events]
        states = alone(tree, q[b], qd[b], steps, own, dict(zip(tree.coordinates, force[b], strict=True)), method)
        compare(run, b, states, max(1.0, *(np.abs(state.qd).max() for state in states)))


@pytest.mark.slow
@pytest.mark.parametrize("joint", [None, sd.free(passive=True)])
def test_a_payload_on_the_base(joint):
    """A robot with joints of its own is set down beside the arm, or flies by, and one of its joints is locked."""
    rng, arm = np.random.default_rng(5), robots.two_link()
    body = KinematicTree(Link("box", random_inertia(rng)))
    body.attach(random_tree(rng, 2, ("revolute",)), "box", prefix="own/")
    inner = State(body, rng.normal(size=2), rng.normal(size=2))
    grasp = Grasp(body, to="base", joint=joint, at=(0.1, 0.2, 0.3), twist=rng.normal(size=6), body_state=inner)
    events = [(grasp, 1), (Lock("own/joint1"), 3)]
    q, qd = rng.normal(size=(2, 1, 2))
    run = arm.compile().rollout(q, qd, 5, DT, events=events, every=1)
    compare(run, 0, alone(arm, q[0], qd[0], 5, events, {}), 10.0)


@pytest.mark.slow
def test_followers_and_motors():
    """A gripper with a motor is grasped, its fingers follow each other; a joint that is followed is locked."""
    arm = robots.two_link()
    mirrored = sd.revolute("z", mimic=sd.Mimic("theta1", -0.5, 0.2), name="mirrored")
    arm.attach(Inertia.rod(0.4, 0.3, com=(0.15, 0, 0)), "link2", mirrored, at=(1.0, 0, 0), name="flap")
    hand = KinematicTree(Link("palm", Inertia.box(0.5, (0.1, 0.1, 0.1))))
    hand.attach(Inertia.box(0.1, (0.1, 0.2, 0.6)), "palm", sd.prismatic("x", name="left"), name="l")
    right = sd.prismatic("x", mimic=sd.Mimic("left", -1.0), name="right")
    hand.attach(Inertia.box(0.1, (0.1, 0.2, 0.6)), "palm", right, name="r")
    wrist = sd.revolute("x", rotor=sd.Rotor(1e-3, 30.0, axis="x", mass=0.2, across=6e-4), name="wrist")
    grasp = Grasp(hand, to="link2", joint=wrist, at=(1.0, 0, 0), twist=[1, 2, 3, 0, 1, 2], start=0.3)
    events = [
        (grasp, [1, 0, 2]),
        (Lock("theta1"), [2, 3, -1]),
        (Lock("left"), [3, 4, 4]),
        (Release("palm"), [-1, 6, 5]),
    ]
    rng = np.random.default_rng(3)
    q, qd = rng.normal(size=(2, 3, 2))
    run = arm.compile().rollout(q, qd, 8, DT, events=events, every=1)
    assert {"wrist", "left"} < {*run.compiled.coordinates}
    for b in range(3):
        compare(run, b, alone(arm, q[b], qd[b], 8, [(event, at[b]) for event, at in events], {}), 100.0)


def test_what_was_in_the_tree_is_released_and_unlocked():
    arm = robots.ur5()
    arm.attach(CRATE, "tool0", HOOK, name="crate")
    arm.lock("elbow_joint", at=0.7)
    rng = np.random.default_rng(4)
    q, qd = rng.normal(size=(2, 5, arm.nv))
    events = [(Release("forearm_link"), [-1, 3, 8, -1, 5]), (Unlock("elbow_joint"), [2, 2, -1, -1, 4])]
    run = arm.compile().rollout(q, qd, 12, DT, events=events[::-1], every=1)
    for b in range(5):
        compare(run, b, alone(arm, q[b], qd[b], 12, [(event, at[b]) for event, at in events[::-1]], {}), 10.0)


@pytest.fixture(scope="module")
def arm():
    return robots.ur5()


@pytest.fixture(scope="module")
def fast(arm):
    return arm.compile(threads=1)


def starts(runs=5, seed=7):
    return np.random.default_rng(seed).normal(0, 0.5, (2, runs, 6))


@pytest.mark.slow
def test_a_payload_of_each_run(arm, fast):
    masses = np.random.default_rng(1).uniform(0.5, 5, 5)
    crates = [Inertia.box(m, (0.3, 0.2, 0.2), com=(0, -0.3, 0)) for m in masses]
    q, qd = starts()
    run = fast.rollout(q, qd, 6, DT, events=[(GRASP, 2), (Release("crate"), 5)], payload={"crate": crates}, every=1)
    for b, crate in enumerate(crates):
        grasp = Grasp(crate, to="tool0", joint=HOOK, name="crate", twist="at_rest")
        compare(run, b, alone(arm, q[b], qd[b], 6, [(grasp, 2), (Release("crate"), 5)], {}), 10.0)


@pytest.mark.slow
@pytest.mark.parametrize("torque", [None, sd.Feedback(20.0, 2.0, 0.3), lambda t, q, qd: -qd[..., :6]])
def test_bits_do_not_depend_on_the_batch_samples_or_threads(arm, fast, torque, monkeypatch):
    q, qd = starts(40)
    at = np.random.default_rng(2).integers(0, 20, 40)
    events = [(GRASP, at), (Lock("elbow_joint"), 12), (Release("crate"), at + 10)]
    whole = fast.rollout(q, qd, 24, DT, torque, events=events, every=4)
    one = [(event, x if np.ndim(x) == 0 else x[17]) for event, x in events]
    single = fast.rollout(q[17], qd[17], 24, DT, torque, events=one, every=4)
    monkeypatch.setattr("screwdyn.forms.compiled._STEPS", 200)
    threads = arm.compile(threads=2).rollout(q, qd, 24, DT, torque, events=events)
    out = np.empty((40, 7)), np.empty((40, 7))
    assert fast.rollout(q, qd, 24, DT, torque, events=events, out=out).q is out[0]
    assert_array_equal(single.q, whole.q[:, 17])
    assert_array_equal(single.qd, whole.qd[:, 17])
    for found in (threads.q, out[0]):
        assert_array_equal(found, whole.q[-1])
    assert (whole.steps == 24).all()


@pytest.mark.slow
def test_times_as_in_a_simulation(arm, fast):
    """Runge-Kutta and an integrator that controls its error see the same motion."""
    q, qd = starts(1)
    events = [
        Grasp(CRATE, to="tool0", joint=HOOK, name="crate", twist="at_rest", time=1.02),
        Lock("elbow_joint", time=1.031),
        Release("crate", time=1.05),
    ]
    run = fast.rollout(q[0], qd[0], 60, 1e-3, method="rk4", events=events, every=1, t0=1.0)
    motion = sd.simulate(arm.copy(), State(arm, q[0], qd[0]), 0.06, events=events, t0=1.0, step=0.01)
    for t, x, v in zip(run.t, run.q, run.qd, strict=True):
        state = motion.at(t, side="before")
        names = run.compiled.positions
        assert_allclose(x[[names.index(name) for name in state.positions]], state.q, atol=1e-9)
        assert_allclose(v[[names.index(name) for name in state.coordinates]], state.qd, atol=1e-7)


def test_a_time_within_a_step_is_the_start_of_the_next(fast):
    q, qd = starts(1)
    for time, step in ((0.0, 0), (0.0101, 2), (0.02, 2), (0.06, 6)):
        timed = fast.rollout(q, qd, 9, 0.01, events=[Lock("elbow_joint", time=time)]).q
        assert_array_equal(timed, fast.rollout(q, qd, 9, 0.01, events=[(Lock("elbow_joint"), step)]).q)


def test_changes_that_never_happen(fast):
    q, qd = starts()
    never = np.array([-1, 9, 30, -5, 9])
    run = fast.rollout(q, qd, 9, DT, events=[(GRASP, never), (Release("crate"), 9)])
    plain = fast.rollout(q, qd, 9, DT)
    assert_allclose(run.q[:, :6], plain.q, rtol=0, atol=1e-13)
    assert not run.q[:, 6].any()
    assert plain.compiled is fast


def test_a_run_that_diverges_disturbs_no_other(fast):
    q, qd = starts()
    events = [(GRASP, 3), (Lock("elbow_joint"), 4)]
    whole = fast.rollout(q, qd, 8, DT, events=events)
    qd[2] = 1e50
    broken = fast.rollout(q, qd, 8, DT, events=events)
    assert broken.failed.tolist() == [False, False, True, False, False]
    assert broken.steps[2] < 4
    assert np.isnan(broken.q[2]).all()
    assert_array_equal(broken.q[broken.steps == 8], whole.q[broken.steps == 8])


@pytest.mark.slow
def test_energy_is_lost_only_in_impacts(arm, fast):
    """An independent look: without gravity and torques the momentum about the first axis stays through a grasp."""
    still = arm.copy()
    still.gravity = (0, 0, 0)
    q, qd = starts()
    run = still.compile().rollout(q, qd, 4, 1e-6, events=[(GRASP, 2)], every=1)
    loaded = still.copy()
    loaded.attach(CRATE, "tool0", HOOK, name="crate")
    before, after = still.momentum(run.q[2, :, :6], run.qd[2, :, :6]), loaded.momentum(run.q[3], run.qd[3])
    assert_allclose(after[:, 2], before[:, 2], atol=1e-4)  # the base holds the other five
    lost = still.kinetic_energy(run.q[2, :, :6], run.qd[2, :, :6]) - loaded.kinetic_energy(run.q[3], run.qd[3])
    assert (lost > 1e-3).all()


@pytest.mark.slow
def test_a_payload_that_is_changed_between_calls(fast):
    """The tree with all links is kept for the same events only."""
    q, qd = starts(2)
    box = KinematicTree(Link("box", CRATE))
    events = [(Grasp(box, to="tool0", twist="at_rest"), 0)]
    first = fast.rollout(q, qd, 3, DT, events=events)
    assert fast.rollout(q, qd, 3, DT, events=events).compiled is first.compiled
    box.set_inertia("box", Inertia.point(1.0))
    second = fast.rollout(q, qd, 3, DT, events=events)
    assert abs(second.qd - first.qd).max() > 1e-3
    place = np.zeros(3)
    events = [(Grasp(box, to="tool0", twist="at_rest", at=place), 0)]
    assert_array_equal(fast.rollout(q, qd, 3, DT, events=events).qd, second.qd)
    place[0] = 1.0
    assert abs(fast.rollout(q, qd, 3, DT, events=events).qd - second.qd).max() > 1e-3


def test_a_payload_that_is_grasped_again_has_the_first_inertia(arm, fast):
    q, qd = starts(2)
    events = [(GRASP, 0), (SetInertia("crate", Inertia.sphere(1.0, 0.1)), [1, 2]), (Release("crate"), 3), (GRASP, 4)]
    run = fast.rollout(q, qd, 6, DT, events=events, every=1)
    for b in range(2):
        own = [(event, at if isinstance(at, int) else at[b]) for event, at in events]
        compare(run, b, alone(arm, q[b], qd[b], 6, own, {}))


def test_positions_of_what_comes_later_and_has_gone(fast):
    q, qd = starts(2)
    grasp = Grasp(CRATE, to="tool0", joint=HOOK, name="crate", twist="at_rest", start=0.3)
    hook = fast.rollout(q, qd, 9, DT, events=[(grasp, 3), (Release("crate"), [6, -1])], every=1).q[..., 6]
    assert (hook[:4] == 0.3).all() and (hook[7:, 0] == hook[6, 0]).all()
    assert np.unique(hook[3:7]).size == 7 and np.unique(hook[7:, 1]).size == 3


@pytest.mark.parametrize("ratio", [1e-8, 1e8])
def test_light_and_heavy_payloads(ratio):
    """Impacts are refined until their steps are rounding."""
    arm, (q, qd) = robots.two_link(), np.random.default_rng(6).normal(size=(2, 3, 2))
    arm.gravity, pin = (0, 0, 0), sd.revolute("x", passive=True)
    crate = Inertia.box(ratio, (0.2, 0.3, 0.2), com=(0, -0.3, 0.1))
    events = [(Grasp(crate, to="link2", joint=pin, name="crate", twist="at_rest"), 1), (Lock("theta1"), 2)]
    run = arm.compile().rollout(q, qd, 3, 1e-14, events=events, every=1)
    for b in range(3):
        tree = arm.copy()
        grasped = events[0][0].happen(tree, State(tree, run.q[1, b, :2], run.qd[1, b, :2])).state
        assert_allclose(run.qd[2, b], grasped.qd, rtol=1e-10, atol=1e-14)
        locked = events[1][0].happen(tree, State(tree, run.q[2, b], run.qd[2, b])).state
        assert_allclose(run.qd[3, b, 1:], locked.qd, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize(
    ("events", "error", "message"),
    [
        ({"at": 1}, ScrewdynError, "events must be a list of changes, such as Grasp and Release; got {"),
        (["grasp"], ScrewdynError, "events[0] must be a change, such as Grasp(…, time=0.5), or a pair (change, steps)"),
        ([GRASP], ScrewdynError, "a Grasp in a rollout needs either time= or a step"),
        ([(Lock("elbow_joint", time=0.0), 1)], ScrewdynError, "a Lock in a rollout needs either time= or a step"),
        ([Lock("elbow_joint", when=bool)], ScrewdynError, "a Lock has when=, which rollouts do not evaluate"),
        (
            [Lock("elbow_joint", time=1.0)],
            ScrewdynError,
            "the rollout is from 0 s to 0.018 s, but a Lock is set for 1 s",
        ),
        ([(GRASP, 1.0)], ShapeError, "the steps of a Grasp must be integers, for all runs or each"),
        ([(GRASP, [1, 2, 3])], ShapeError, "cannot be broadcast together: q and qd (5,), events[0] (3,)"),
        ([(sd.HandOver("tool0", "base"), 1)], ScrewdynError, "a rollout cannot contain a HandOver"),
        ([(sd.Close("tool0", to="base"), 1)], ScrewdynError, "a rollout closes the same loop in all runs: give at="),
        ([(Release("tool0", into_world=True), 1)], ScrewdynError, "a rollout has no free bodies"),
        ([(Grasp("tool0", to="base"), 1)], ScrewdynError, "a rollout grasps an Inertia, a Link or a KinematicTree"),
        ([(Grasp(CRATE, to="tool0", twist="at_rest", pose=(0, 0, 1)), 1)], ScrewdynError, "pose= and start='hanging'"),
        ([(Grasp(CRATE, to="tool0", twist="at_rest", start=[1, 2]), 1)], ShapeError, "'payload'"),
        ([(Grasp(CRATE, to="tool", twist="at_rest"), 1)], UnknownNameError, "did you mean 'tool0'?"),
        ([(Lock("elbow"), 1)], UnknownNameError, "did you mean 'elbow_joint'?"),
        (
            [(GRASP, 1), (Grasp(CRATE, to="tool0", name="crate", twist="at_rest"), 3)],
            TopologyError,
            "run 0 cannot have the Grasp before step 3",
        ),
        (
            [(Release("crate"), 1)],
            UnknownNameError,
            "run 0 cannot have the Release before step 1: there is no link 'crate'",
        ),
        (
            [(Release("crate"), [-1, -1, 3, 3, 3]), (GRASP, 5)],
            UnknownNameError,
            "run 2 cannot have the Release before step 3: there is no link 'crate'",
        ),
        (
            [(GRASP, [4, 4, 4, 4, 4]), (Release("crate"), [5, -1, 5, 2, 2])],
            TopologyError,
            "run 3 cannot have the Release before step 2: it has no link 'crate' then",
        ),
        (
            [(GRASP, 1), (GRASP, 3)],
            TopologyError,
            "run 0 cannot have the Grasp before step 3: it has link 'crate' already",
        ),
        (
            [(Lock("elbow_joint"), 1), (Lock("elbow_joint"), 2)],
            TopologyError,
            "it has joint 'elbow_joint' locked already",
        ),
        ([(Unlock("elbow_joint"), 2)], TopologyError, "it does not have joint 'elbow_joint' locked"),
        ([(Release("forearm_link"), 2), (GRASP, 3)], TopologyError, "it has no link 'tool0' then"),
        (
            [(Release("forearm_link"), 2), (Lock("wrist_1_joint"), 3)],
            TopologyError,
            "it has no link 'wrist_1_link' then",
        ),
        ([(Grasp(Inertia.point(1.0), to="tool0", joint=HOOK, twist="at_rest"), 1)], SingularAttachmentError, "'hook'"),
    ],
)
def test_wrong_events(arm, fast, events, error, message):
    q, qd = starts()
    n = 7 if any(getattr(x[0], "joint", None) is HOOK for x in events if isinstance(x, tuple)) else 6
    out = np.zeros((5, n)), np.zeros((5, n))
    with pytest.raises(error) as caught:
        fast.rollout(q, qd, 9, DT, events=events, out=out)
    assert message in str(caught.value)
    assert not out[0].any() and not out[1].any()
    assert arm.nv == 6


def test_the_order_of_events_in_one_step(arm, fast):
    q, qd = starts(1)
    events = [(GRASP, 2), (Release("crate"), 2), (Lock("elbow_joint"), 2)]
    run = fast.rollout(q, qd, 4, DT, events=events, every=1)
    compare(run, 0, alone(arm, q[0], qd[0], 4, events, {}), 10.0)


def test_a_payload_on_a_payload(arm, fast):
    more = Grasp(Inertia.box(0.5, (0.1, 0.1, 0.1)), to="crate", at=(0, -0.5, 0), name="lid", twist=np.arange(6.0))
    q, qd = starts()
    steps = ([1, 2, 3, 0, 1], [4, 5, 4, -1, -1], [-1, 6, 8, 7, 7])
    events = [*zip((GRASP, more, Release("crate")), map(np.array, steps), strict=True)]
    run = fast.rollout(q, qd, 10, DT, events=events, every=1)
    for b in range(5):
        compare(run, b, alone(arm, q[b], qd[b], 10, [(event, at[b]) for event, at in events], {}), 10.0)
    assert all(a <= b for a, b in pairwise(run.t))


def limited(rng):
    """A random tree of four joints with limits."""
    tree = KinematicTree()
    for k in range(4):
        joint = (sd.revolute, sd.prismatic)[k % 2]("xyz"[k % 3], limits=(-0.2, 0.15), damping=0.1, name=f"joint{k}")
        to = tree.links[int(rng.integers(len(tree.links)))]
        tree.attach(random_inertia(rng), to, joint, at=tuple(rng.uniform(-0.3, 0.3, 3)), name=f"link{k}")
    return tree


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_stops_hold_freedoms_until_forces_point_inwards(seed):
    """Against matrices: rows of M of freedoms that are held, and the forces that hold them."""
    rng = np.random.default_rng([seed, 3])
    tree, runs, steps = limited(rng), 6, 120
    q, qd = rng.uniform(-0.15, 0.12, (runs, 4)), rng.normal(0, 2, (runs, 4))
    torque = rng.normal(0, 40, (steps, runs, 4)) * (np.arange(steps) // 30 % 2)[:, None, None]
    run = tree.compile(threads=1).rollout(q, qd, steps, DT, torque, stops="inelastic", every=1)
    low, high = np.array([tree.joint(f"joint{k}").limits for k in range(4)]).T
    struck = left = 0
    for b in range(runs):
        x, v, side = q[b], qd[b], np.zeros(4)
        for k in range(steps):
            M, tau = tree.mass_matrix(x), torque[k, b] + tree.joint_force(x, v)
            free, a = side == 0, np.zeros(4)
            load = tau - tree.bias_force(x, v)
            a[free] = np.linalg.solve(M[np.ix_(free, free)], load[free])
            pull = side * (load - M @ a) < 0
            v = v + DT * a
            x = x + DT * v
            M = tree.mass_matrix(x)
            hits = free & (((x >= high) & (v > 0)) | ((x <= low) & (v < 0)))
            side = np.where(pull, 0, side) + hits * np.sign(v)
            x = np.where(hits, np.where(v > 0, high, low), x)
            M, stop, rest = tree.mass_matrix(x), side != 0, side == 0
            change = np.where(hits, -v, 0.0)
            if hits.any() and rest.any():
                change[rest] = -np.linalg.solve(M[np.ix_(rest, rest)], (M[np.ix_(rest, stop)] @ change[stop]))
            v = np.where(stop, 0.0, v + change)
            struck, left = struck + hits.sum(), left + pull.sum()
            assert_allclose(run.q[k + 1, b], x, rtol=0, atol=1e-9)
            assert_allclose(run.qd[k + 1, b], v, rtol=0, atol=1e-8)
    assert struck > 20 and left > 10
    assert (run.q <= high).all() and (run.q >= low).all()


@pytest.mark.slow
def test_stops_beside_changes():
    """A joint that rests at its stop is locked and freed; a payload whose hook rests at its stop is grasped anew."""
    tree = KinematicTree()
    tree.attach(
        Inertia.rod(1.0, 1.0, com=(0.5, 0, 0)), "base", sd.revolute("y", limits=(-1, 0.5), name="door"), name="d"
    )
    hook = sd.revolute("y", passive=True, name="hook", limits=(-0.2, 0.2))
    grasp = Grasp(Inertia.point(0.5, (0.3, 0, 0)), to="d", joint=hook, at=(1, 0, 0), name="bob", twist="at_rest")
    events = [(grasp, 0), (Lock("door"), 400), (Unlock("door"), 500), (Release("bob"), 700), (grasp, 800)]
    run = tree.compile().rollout([0.0], [0.0], 1000, 1e-3, events=events, stops="inelastic", every=1)
    door, hook = run.q.T
    assert (door[390:] == 0.5).all() and (hook[390:800] == 0.2).all()
    assert 0 < hook[801] < 1e-3 and (hook[990:] == 0.2).all() and hook[820] < 0.1
    assert np.abs(run.qd[390:800]).max() < 1e-180


@pytest.mark.slow
def test_changes_that_begin_beyond_a_stop():
    """As by :func:`simulate`; of the runs in which they happen, which has any start that a joint may have."""
    tree, hook = robots.pelican(), sd.revolute("z", passive=True, name="pin", limits=(-0.1, 0.1))
    start, box = (np.zeros((3, 2)), np.zeros((3, 2)), 3, 1e-3), Inertia.box(2.0, (0.2, 0.2, 0.2), com=(0, 0, 0.3))
    grasp = Grasp(box, to="link2", name="crate", joint=hook, start=0.15, twist="at_rest")
    refused = "'pin' is at 0.15 in run 1 after the {}, beyond its stop at 0.1"
    with pytest.raises(ScrewdynError, match=refused.format("Grasp")):
        tree.compile().rollout(*start, events=[(grasp, [-1, 2, -1])], stops="inelastic")
    tree.compile().rollout(*start, events=[(grasp, -1)], stops="inelastic")
    tree.attach(box, to="link2", joint=hook, name="crate")
    for at in (0.15, 0.05):
        locked = tree.copy()
        locked.lock("pin", at=at)
        with pytest.raises(ScrewdynError, match=refused.format("Unlock")) if at > 0.1 else nullcontext():
            locked.compile().rollout(*start, events=[(Unlock("pin"), [-1, 1, 1])], stops="inelastic")


@pytest.mark.parametrize(
    ("q", "stops", "message"),
    [
        (0.0, "elastic", "stops of a rollout must be 'inelastic' or None; got 'elastic'"),
        (0.0, {"hip": "inelastic"}, "stops of a rollout must be 'inelastic' or None"),
        (0.6, "inelastic", "'hip' is at 0.6 in run 0, beyond its stop at 0.5"),
    ],
)
def test_wrong_stops(q, stops, message):
    tree = KinematicTree()
    tree.attach(CRATE, "base", sd.revolute("x", limits=(-0.5, 0.5), name="hip"))
    with pytest.raises(ScrewdynError) as caught:
        tree.compile().rollout([[q]], [[0.0]], 3, DT, stops=stops)
    assert message in str(caught.value)


@pytest.mark.slow
def test_stops_of_a_simulation(arm):
    """A payload on a hook with limits swings against its stop; the step of fixed length converges to the run."""
    hook = sd.revolute("x", passive=True, name="hook", limits=(-0.4, 0.3))
    q, qd = starts(1)
    grasp = Grasp(CRATE, to="tool0", joint=hook, name="crate", twist="at_rest", time=0.02)
    hold = sd.Feedback(200.0, 30.0, q[0])
    motion = sd.simulate(arm.copy(), State(arm, q[0], qd[0]), 0.6, None, [grasp], stops="inelastic", step=0.02)
    assert any(x.verb.startswith("reach") for x in motion.events)
    errors = []
    for h in (1e-3, 2.5e-4):
        run = arm.compile().rollout(q[0], qd[0], round(0.6 / h), h, events=[grasp], stops="inelastic")
        errors.append(np.abs(run.q - motion.states[-1].q).max())
    assert errors[1] < errors[0] / 2 < 0.02
    held = arm.compile().rollout(q[0], qd[0], 100, 1e-3, hold, stops="inelastic")
    assert_allclose(held.q, arm.compile().rollout(q[0], qd[0], 100, 1e-3, hold).q, rtol=0, atol=1e-11)
