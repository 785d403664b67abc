"""Loops that close and open within rollouts against runs of one lane each, in which the tree is really changed."""

import numpy as np
import pytest
from mechanisms import door, four_bar, slider_crank
from numpy.testing import assert_allclose, assert_array_equal
from test_switches import DT, alone, compare

import screwdyn as sd
from screwdyn import Close, Grasp, Inertia, Lock, LoopError, Open, Release, ScrewdynError, TopologyError

pytestmark = pytest.mark.usefixtures("compiled_when_called")

CRATE = Inertia.box(3.0, (0.3, 0.2, 0.2), com=(0, -0.3, 0))


def opened(mechanism):
    """The tree of a mechanism without its only loop, a state in which it is closed, and its closing."""
    tree, state = mechanism()
    loop = tree.loop(tree.loops[0])
    tree.open(loop.name)
    return tree, state, Close(loop.link, loop.to, joint=loop.joint, at=loop.home, name=loop.name)


def compare_all(run, tree, q, qd, steps, events, torque, method):
    for b in range(len(qd)):
        own = [(event, np.broadcast_to(at, len(qd))[b]) for event, at in events]
        compare(run, b, alone(tree, q, qd[b], steps, own, torque, method))


@pytest.mark.parametrize("method", ["semi_implicit_euler", "rk4"])
@pytest.mark.parametrize("mechanism", [four_bar, slider_crank, door])
def test_runs_are_those_of_trees_whose_loops_close_and_open(mechanism, method):
    """One never closes, others at once; some open, and two close again, of which one in the same step."""
    tree, (q, _), close = opened(mechanism)
    qd = np.random.default_rng(0).normal(0, 0.2, (6, tree.nv))
    tau = dict(zip(tree.coordinates, np.linspace(-1, 1, tree.nv), strict=True))
    closed, open_, again = (
        np.array([0, 0, 0, -1, 0, 0]),
        np.array([3, 4, -1, -1, 7, 0]),
        np.array([3, -1, -1, -1, -1, 0]),
    )
    as_it_was = Close(close.link, close.to, joint=close.joint, at=close.at.copy(), name=close.name)
    events = [(close, closed), (Open(close.name), open_), (as_it_was, again)]
    run = tree.compile().rollout(q, qd, 12, DT, [*tau.values()], every=1, method=method, events=events)
    assert not run.failed.any()
    compare_all(run, tree, q, qd, 12, events, tau, method)


def arms():
    """Two arms of three joints, of which the left one holds a bar, and a pose of both hands."""
    tree = sd.KinematicTree()
    for side, x in (("left", -0.5), ("right", 0.5)):
        for k, axis in enumerate("zyy"):
            body = Inertia.box(1.0 + k, (0.1, 0.1, 0.5), com=(0, 0, 0.25))
            to, at = (f"{side}{k - 1}", (0, 0, 0.5)) if k else ("base", (x, 0, 0))
            tree.attach(body, to=to, joint=sd.revolute(axis), at=at, name=f"{side}{k}")
    return tree, np.array([0.3, 0.5, 0.7, -0.2, -0.4, -0.9])


def held(tree, q, name="held", **how):
    """The closing of the loop between the bar and the right hand in a configuration."""
    loaded = tree.copy()
    if "bar" not in loaded.links:
        loaded.attach(CRATE, to="left2", at=(0, 0, 0.5), name="bar")
    right, bar = (loaded.forward_kinematics(link, q) for link in ("right2", "bar"))
    return Close("bar", "right2", joint=sd.spherical(), at=np.linalg.solve(right, bar), name=name, **how)


@pytest.mark.slow
@pytest.mark.parametrize("joint", [None, sd.revolute("x", passive=True, damping=0.1, name="hook")])
def test_two_arms_grasp_carry_and_let_go(joint):
    """The loop is at a payload, which some runs do not have; a joint is locked while the loop is open."""
    tree, q = arms()
    qd = np.random.default_rng(0).normal(0, 0.1, (8, 6))
    events = [
        (Grasp(CRATE, to="left2", joint=joint, at=(0, 0, 0.5), name="bar", twist="at_rest"), [0, 0, 0, 0, -1, 0, 0, 0]),
        (held(tree, q), [0, 0, 0, -1, -1, 0, 0, 0]),
        (Open("held"), [4, 5, 6, -1, -1, -1, 2, 2]),
        (Release("bar"), [4, 7, -1, 3, -1, -1, 3, 3]),
        (Lock("right1"), [5, 8, -1, 3, 4, -1, 3, 2]),
    ]
    tau = dict.fromkeys(tree.coordinates, 0.1)
    fast = tree.compile(threads=1)
    names = fast.rollout(q, qd, 1, DT, events=[(event, -1) for event, _ in events]).compiled.coordinates
    run = fast.rollout(q, qd, 10, DT, [tau.get(name, 0.0) for name in names], every=1, method="rk4", events=events)
    assert not run.failed.any() and run.compiled.model.topology.loops == {}
    compare_all(run, tree, q, qd, 10, events, tau, "rk4")


@pytest.mark.slow
def test_loops_of_which_one_replaces_another():
    """A loop of the tree opens; it closes again, or another one closes that cannot be closed at the same time."""
    tree, q = arms()
    tree.attach(CRATE, to="left2", at=(0, 0, 0.5), name="bar")
    first, again = held(tree, q), held(tree, q, "again")
    tree.close("bar", "right2", first.joint, first.at, "held")
    elsewhere = Close("bar", "right2", joint=sd.spherical(), at=held(tree, q + 0.1).at, name="elsewhere")
    qd = np.array([tree.project(q, v)[1] for v in np.random.default_rng(1).normal(0, 0.1, (4, 6))])
    events = [(Open("held"), [0, -1, 3, 2]), (again, [0, -1, -1, 2]), (Open("again"), [-1, -1, -1, 5])]
    tau = dict.fromkeys(tree.coordinates, 0.2)
    run = tree.compile().rollout(q, qd, 8, DT, 0.2, every=1, method="rk4", events=[*events, (elsewhere, -1)])
    compare_all(run, tree, q, qd, 8, events, tau, "rk4")


@pytest.mark.slow
def test_a_loop_closes_beside_one_that_stays_closed():
    tree, (q, qd) = four_bar()
    for k in range(2):
        joint = sd.revolute("z", damping=0.3)
        tree.attach(Inertia.box(1.0 + k, (0.3, 0.2, 0.1)), to="rocker", joint=joint, at=(0, 0, k), name=f"disc{k}")
    clutch = Close("disc0", "disc1", joint=sd.prismatic("z"), name="clutch", at=(0, 0, -1))
    q, qd = np.append(q, [0.4, 0.4]), np.array([[*qd, 1.0, 3.0], [*-qd, 2.0, -1.0], [*qd, 0.0, 5.0]])
    events = [(clutch, [0, 0, -1]), (Open("clutch"), [4, -1, -1])]
    run = tree.compile().rollout(q, qd, 8, DT, every=1, method="rk4", events=events)
    compare_all(run, tree, q, qd, 8, events, {}, "rk4")


def test_a_clutch_against_its_closed_form():
    """Discs on one axis share their angular momentum; those of an open clutch keep their rates."""
    tree, rng = sd.KinematicTree(), np.random.default_rng(2)
    for name, r in (("disc", 0.3), ("wheel", 0.5)):
        tree.attach(Inertia.cylinder(2.0, r, 0.1), to="base", joint=sd.revolute("z"), name=name)
    about, qd = np.array([0.09, 0.25]), rng.normal(size=(500, 2))
    closed, bodies = rng.integers(-1, 1, 500), rng.uniform(0.5, 2.0, 500)
    events = [(Close("disc", "wheel", at=(0, 0, 0)), closed), (Open("disc-wheel"), np.where(closed < 0, -1, 3))]
    payload = {"disc": [Inertia.cylinder(2.0 * m, 0.3, 0.1) for m in bodies]}
    run = tree.compile().rollout([0.1, 0.1], qd, 5, DT, events=events, payload=payload)
    shares = about * np.stack([bodies, np.ones(500)], axis=-1)
    common = (shares * qd).sum(axis=1) / shares.sum(axis=1)
    assert_allclose(run.qd, np.where(closed[:, None] < 0, qd, common[:, None]), rtol=0, atol=1e-12)
    assert_allclose(run.q, 0.1 + 5 * DT * run.qd, rtol=0, atol=1e-12)


@pytest.mark.slow
def test_times_as_in_a_simulation():
    tree, (q, _), close = opened(four_bar)
    qd, own = np.array([1.0, -0.5, 0.3]), {"joint": close.joint, "at": close.at, "name": close.name}
    events = [Close(close.link, close.to, **own, time=0.0), Open(close.name, time=0.04)]
    run = tree.compile().rollout(q, qd, 80, 1e-3, method="rk4", events=events, every=1)
    motion = sd.simulate(tree.copy(), sd.State(tree, q, qd), 0.08, events=events, step=0.01)
    for t, x, v in zip(run.t[1:], run.q[1:], run.qd[1:], strict=True):
        assert_allclose(np.hstack([x, v]), np.hstack([(s := motion.at(t, side="before")).q, s.qd]), rtol=0, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("gap", [3e-8, 5e-7, 9e-7])
def test_a_gap_that_counts_as_rounding_is_removed(gap):
    tree, q = arms()
    tree.attach(CRATE, to="left2", at=(0, 0, 0.5), name="bar")
    close, start = held(tree, q), q + gap * np.array([1, 0, 0, -1, 0, 1])
    qd = np.random.default_rng(3).normal(0, 0.1, (2, 6))
    run = tree.compile().rollout(start, qd, 3, DT, every=1, events=[(close, 0)])
    compare_all(run, tree, start, qd, 3, [(close, 0)], {}, "semi_implicit_euler")


@pytest.mark.slow
def test_bits_do_not_depend_on_the_batch_samples_or_threads(monkeypatch):
    tree, (q, _), close = opened(four_bar)
    qd, rng = np.random.default_rng(4).normal(0, 0.2, (40, 3)), np.random.default_rng(5)
    events = [(close, rng.integers(-1, 1, 40))]
    events += [(Open(close.name), np.where(events[0][1] < 0, -1, rng.integers(1, 20, 40)))]
    whole = tree.compile(threads=1).rollout(q, qd, 24, DT, events=events, every=4)
    one = [(event, np.broadcast_to(at, 40)[17]) for event, at in events]
    single = tree.compile(threads=1).rollout(q, qd[17], 24, DT, events=one, every=4)
    monkeypatch.setattr("screwdyn.forms.compiled._STEPS", 200)
    threads = tree.compile(threads=2).rollout(q, qd, 24, DT, events=events)
    for name in ("q", "qd"):
        assert_array_equal(getattr(single, name), getattr(whole, name)[:, 17])
        assert_array_equal(getattr(threads, name), getattr(whole, name)[-1])


@pytest.mark.slow
def test_a_run_that_fails_disturbs_no_other():
    tree, (q, _), close = opened(four_bar)
    qd = np.random.default_rng(4).normal(0, 0.2, (3, 3))
    events = [(close, [0, 4, 0]), (Open(close.name), 6)]
    qd[1] = 1e50
    broken = tree.compile().rollout(q, qd, 8, DT, events=events)
    others = tree.compile().rollout(q, qd[::2], 8, DT, events=[(close, 0), (Open(close.name), 6)])
    assert broken.failed.tolist() == [False, True, False] and broken.steps[1] < 4
    assert_array_equal(broken.q[::2], others.q)


PIN = opened(four_bar)[2]
TWIN = Close(PIN.link, PIN.to, joint=PIN.joint, at=PIN.at, name="twin")
FAR = Close(PIN.link, PIN.to, joint=PIN.joint, at=(0, 0, 0), name="far")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("events", "error", "message"),
    [
        ([(PIN, [0, 0, 3])], LoopError, "; run 2 cannot have the Close before step 3: let links meet"),
        ([(FAR, [-1, -1, 0])], LoopError, "loop 'far' is open by 373 mm along (0.98, -0.18, 0) and "),
        ([(PIN, 0), (PIN, [-1, 3, 3])], TopologyError, "Close before step 3: it has loop 'pin' closed already"),
        ([(PIN, [0, 0, -1]), (Open("pin"), 4)], TopologyError, "run 2 cannot have the Open before step 4: it does not"),
        ([(PIN, 0), (Open("pin"), 2), (Open("pin"), [-1, 3, 2])], TopologyError, "does not have loop 'pin' closed"),
        ([(Open("pin"), 4), (PIN, 0)], sd.UnknownNameError, "there is no loop 'pin'"),
        ([(PIN, 0), (Close("crank", "base", at=(0, 0, 0), name="pin"), 2)], TopologyError, "'pin' already"),
        ([(Close("crank", "base"), 0)], ScrewdynError, "a rollout closes the same loop in all runs: give at="),
        ([(PIN, 0), (TWIN, [-1, 0, 0])], LoopError, "loops 'pin', 'twin' have constraints in common"),
        ([(PIN, 0), (Lock("rocker"), 1)], LoopError, "run 0 cannot have the Lock before step 1: joint 'rocker'"),
        (
            [(Lock("crank"), [-1, 0, 0]), (PIN, 0)],
            LoopError,
            "run 1 cannot have the Close before step 0: joint 'crank'",
        ),
        ([(PIN, 0), (Release("rocker"), 1)], LoopError, "link 'rocker' is in loop 'pin', which is closed then"),
        (
            [(Release("rocker"), 0), (PIN, 0)],
            TopologyError,
            "run 0 cannot have the Close before step 0: it has no link",
        ),
    ],
)
def test_what_is_impossible_is_refused(events, error, message):
    tree, (q, _), _ = opened(four_bar)
    with pytest.raises(error) as caught:
        tree.compile().rollout(q, [[0, 0, 0], [1.0, 0, 0], [0.5, 0, 0]], 6, DT, events=events)
    assert message in str(caught.value)


@pytest.mark.slow
def test_twins_of_which_a_run_has_one():
    tree, (q, _), _ = opened(four_bar)
    qd = np.random.default_rng(6).normal(0, 0.2, (3, 3))
    events = [(PIN, [0, -1, -1]), (TWIN, [-1, 0, -1])]
    run = tree.compile().rollout(q, qd, 4, DT, every=1, events=events)
    compare_all(run, tree, q, qd, 4, events, {}, "semi_implicit_euler")


@pytest.mark.slow
def test_stops_and_contacts_beside_loops_that_close():
    """Stops act on joints of a loop that is open; contacts are refused as beside all loops."""
    tree, rng = sd.KinematicTree(), np.random.default_rng(7)
    for name in ("disc", "wheel"):
        joint = sd.revolute("z", limits=(-1, 1))
        tree.attach(Inertia.cylinder(2.0, 0.3, 0.1), to="base", joint=joint, name=name)
    given = np.zeros(2), rng.normal(0, 3, (3, 2)), 500, DT
    clutch = Close("disc", "wheel", at=(0, 0, 0))
    run = tree.compile().rollout(*given, events=[(clutch, -1)], stops="inelastic")
    assert_array_equal(run.q, np.where(abs(given[1]) > 1, np.sign(given[1]), run.q))
    assert_array_equal(run.q, tree.compile().rollout(*given, stops="inelastic").q)
    with pytest.raises(LoopError, match="run 1 cannot have the Close before step 0: joint 'disc' is in loop"):
        tree.compile().rollout(*given, events=[(clutch, [-1, 0, -1])], stops="inelastic")
    tree.touch("disc", to="base", on=sd.Plane(), points=[(0, 0, 1)])
    with pytest.raises(LoopError, match=r"a rollout with contacts is not available .* 'disc-wheel'"):
        tree.compile().rollout(*given, events=[(clutch, -1)])
