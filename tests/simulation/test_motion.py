"""A run at any time, the motion of its links, and runs that continue each other."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import screwdyn as sd
from screwdyn.testing import random_tree

METHODS = ["RK45", "DOP853", "Radau", "BDF", "LSODA"]


def oscillator():
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    tree.attach(sd.Inertia.point(2.0), to="base", joint=sd.prismatic("x", stiffness=50.0), name="mass")
    return tree


@pytest.fixture(scope="module")
def throw():
    """A tree of several kinds of joints that takes a payload at 0.2 s and releases it at 0.4 s."""
    rng = np.random.default_rng(5)
    tree = random_tree(rng, 4)
    events = [
        sd.Grasp(sd.Inertia.sphere(1.0, 0.1), to="link4", joint=sd.spherical(), twist="at_rest", name="load", time=0.2),
        sd.Release("load", time=0.4),
    ]
    state = sd.State(tree, tree.random_configuration(rng), rng.uniform(-1, 1, tree.nv))
    return sd.simulate(tree, state, 0.6, events=events, step=0.05)


@pytest.mark.parametrize("method", METHODS)
def test_states_between_samples(method):
    tree = oscillator()
    run = sd.simulate(tree, sd.State(tree, [0.1]), 2.0, step=0.5, method=method, rtol=1e-8, atol=1e-10)
    times = np.random.default_rng(0).uniform(0, 2, 40)
    states = [run.at(t) for t in times]
    assert_allclose([s["mass"] for s in states], 0.1 * np.cos(5 * times), atol=2e-5)
    assert_allclose([s.velocity("mass") for s in states], -0.5 * np.sin(5 * times), atol=1e-4)
    found = run.acceleration("mass", times, frame="base")[:, 3]
    assert_allclose(found, -2.5 * np.cos(5 * times), atol=2e-2 if method == "BDF" else 2e-3)


def test_dense_output_has_the_order_of_the_integrator():
    tree = oscillator()
    run = sd.simulate(tree, sd.State(tree, [0.1]), 2.0, step=2.0)
    times = np.random.default_rng(0).uniform(0, 2, 40)
    assert_allclose([run.at(t)["mass"] for t in times], 0.1 * np.cos(5 * times), atol=1e-8)
    assert_allclose(run.acceleration("mass", times, frame="base")[:, 3], -2.5 * np.cos(5 * times), atol=1e-5)


def test_samples_are_on_the_dense_output(throw):
    for k, t in enumerate(throw.t):
        side = "before" if k + 1 < len(throw.t) and throw.t[k + 1] == t else "after"
        state = throw.at(t, side)
        assert state.positions == throw.states[k].positions
        assert_allclose(state.q, throw.states[k].q, atol=1e-13)
        assert_allclose(state.qd, throw.states[k].qd, atol=1e-12)


def test_the_time_of_an_event_has_two_sides(throw):
    before, after = throw.at(0.2, "before"), throw.at(0.2)
    assert "load" not in before.tree.links and "load" in after.tree.links
    assert_allclose(after.q[: len(before.q)], before.q, atol=1e-12)
    assert_allclose(after.qd, throw.events[0].event.state.qd, atol=1e-12)
    assert np.isnan(throw.pose("load", 0.2, "before")).all()
    assert np.isfinite(throw.pose("load", 0.2)).all()


def test_motion_of_links_at_samples(throw):
    poses, twists = throw.pose("link4"), throw.twist("link4", frame="body")
    accelerations = throw.acceleration("link4", frame="mixed")
    for k, state in enumerate(throw.states):
        tree, qdd = state.tree, throw.qdd[k][np.isfinite(throw.qdd[k])]
        assert_allclose(poses[k], tree.forward_kinematics("link4", state.q), atol=1e-14)
        assert_allclose(twists[k], tree.link_twist("link4", state.q, state.qd, "body"), atol=1e-13)
        expected = tree.link_acceleration("link4", state.q, state.qd, qdd, "mixed")
        assert_allclose(accelerations[k], expected, rtol=1e-12, atol=1e-12)
    held = np.array(["load" in state.tree.links for state in throw.states])
    assert_array_equal(np.isnan(throw.pose("load")).all(axis=(1, 2)), ~held)
    assert_array_equal(np.isnan(throw.twist("load")).any(axis=1), ~held)


def test_motion_of_links_at_any_time(throw):
    """Twists are derivatives of poses, and accelerations of twists, by central differences over dense output."""
    times, h = np.array([0.033, 0.11, 0.27, 0.35, 0.51]), 1e-4
    places = throw.pose("link4", np.concatenate([times - h, times + h]))[:, :3, 3].reshape(2, -1, 3)
    found = throw.twist("link4", times, frame="mixed")
    assert found.shape == (5, 6)
    assert_allclose(found[:, 3:], (places[1] - places[0]) / (2 * h), atol=1e-5)
    twists = throw.twist("link4", np.concatenate([times - h, times + h]), frame="mixed").reshape(2, -1, 6)
    assert_allclose(throw.acceleration("link4", times, frame="mixed"), (twists[1] - twists[0]) / (2 * h), atol=1e-3)
    assert throw.pose("link4", 0.3).shape == (4, 4)
    # Quaternions between samples have length 1.
    state = throw.at(0.333)
    orientation = [state[f"load[{x}]"] for x in "xyzw"]
    assert_allclose(np.linalg.norm(orientation), 1, rtol=1e-15)


def test_a_run_is_pickled_without_the_functions_of_the_user():
    tree = oscillator()
    for method in METHODS:
        run = sd.simulate(tree, sd.State(tree, [0.1]), 0.5, lambda t, s: [1.0], method=method, step=0.1, rtol=1e-6)
        twin = pickle.loads(pickle.dumps(run))
        assert_array_equal(twin.q, run.q)
        assert_array_equal(twin.at(0.33).q, run.at(0.33).q)
        assert_array_equal(twin.pose("mass", 0.33), run.pose("mass", 0.33))


def test_times_outside_the_run(throw):
    for t in (-0.1, 0.61):
        with pytest.raises(sd.ScrewdynError, match=r"the run is from 0 s to 0\.6 s; got t = "):
            throw.at(t)
        with pytest.raises(sd.ScrewdynError, match=r"the run is from 0 s to 0\.6 s"):
            throw.pose("link1", [0.1, t])
    for t in (None, np.nan):
        with pytest.raises(sd.ScrewdynError, match=f"t must be a number of seconds; got {t}"):
            throw.at(t)
    with pytest.raises(sd.ScrewdynError, match=r"t must be a number of seconds; got \[0\.1, nan\]"):
        throw.pose("link1", [0.1, np.nan])
    with pytest.raises(sd.ScrewdynError, match="side must be 'after' or 'before'"):
        throw.at(0.1, "left")
    with pytest.raises(sd.UnknownNameError, match="no link 'lod'; did you mean 'load'"):
        throw.twist("lod")


def test_events_at_both_ends_have_two_sides():
    tree = oscillator()
    ball = sd.Inertia.point(2.0)
    events = [sd.Grasp(ball, to="mass", twist="at_rest", name="b", time=0.0), sd.Release("b", time=1.0)]
    run = sd.simulate(tree, sd.State(tree, qd=[1.0]), 1.0, events=events, step=0.5)
    assert run.at(0.0, "before").velocity("mass") == 1.0
    assert run.at(0.0).velocity("mass") == 0.5
    assert run.at(1.0, "before").tree.links == ("base", "mass", "b")
    assert run.at(1.0).tree.links == ("base", "mass")
    assert_allclose(run.acceleration("mass", 1.0)[3], -25 * run.at(1.0)["mass"], rtol=1e-9)


# Runs that continue each other -----------------------------------------------------------------------------------


def drive(t, state):
    return {state.coordinates[0]: np.sin(3 * t)}


def test_a_run_that_is_continued_equals_a_whole_one():
    def events():
        load = sd.Inertia.point(0.5, (0, 0, -0.2))
        hook = sd.revolute("y", passive=True, damping=0.01)
        grasp = sd.Grasp(load, to="mass", joint=hook, twist="at_rest", name="load", time=0.7)
        return [grasp, sd.Release("load", time=1.5)]

    tree = oscillator()
    whole = sd.simulate(tree, sd.State(tree, [0.1]), 2.0, drive, events(), step=0.1)
    tree, (grasp, release) = oscillator(), events()
    first = sd.simulate(tree, sd.State(tree, [0.1]), 1.0, drive, [grasp], step=0.1)
    second = sd.simulate(tree, first.states[-1], 1.0, drive, [release], step=0.1, t0=first.t[-1])
    assert (second.t[0], second.t[-1]) == (1.0, 2.0)
    joined = first + second
    assert [event.t for event in joined.events] == [0.7, 1.5]
    twice = np.flatnonzero(joined.t == 1.0)
    assert len(twice) == 2
    once = np.delete(np.arange(len(joined.t)), twice[0])
    assert_allclose(joined.t[once], whole.t, atol=1e-12)
    assert_allclose(joined.q[once], whole.q, atol=1e-8)
    assert_allclose(joined.tau[once], whole.tau, atol=1e-12)
    for name, x in vars(whole.energy).items():
        assert_allclose(getattr(joined.energy, name)[once], x, atol=1e-8)
    assert np.abs(joined.energy.residual).max() < 1e-7
    assert_allclose(joined.at(1.7).q, whole.at(1.7).q, atol=1e-8)
    assert joined.tree is second.tree and "1 s" not in repr(joined) and repr(joined).startswith("<Run: 2 s, ")


def test_a_sampled_controller_that_is_continued():
    tree = oscillator()
    whole = sd.simulate(tree, sd.State(tree, [0.1]), 2.0, drive, control_period=0.25, step=0.5)
    first = sd.simulate(tree, sd.State(tree, [0.1]), 1.0, drive, control_period=0.25, step=0.5)
    second = sd.simulate(tree, first.states[-1], 1.0, drive, control_period=0.25, step=0.5, t0=1.0)
    assert_allclose(second.states[-1].q, whole.states[-1].q, atol=1e-9)


def test_runs_that_do_not_continue_each_other():
    tree = oscillator()
    first = sd.simulate(tree, sd.State(tree, [0.1]), 1.0, step=0.5)
    late = sd.simulate(tree, first.states[-1], 1.0, step=0.5)
    with pytest.raises(sd.ScrewdynError, match=r"ends at t = 1 s, the second begins at t = 0 s; use t0="):
        first + late
    other = sd.simulate(tree, sd.State(tree, [0.3]), 1.0, step=0.5, t0=1.0)
    with pytest.raises(sd.ScrewdynError, match="does not begin in the last state of the first: 'mass' differs"):
        first.join(other)
    pelican = sd.robots.pelican()
    arm = sd.simulate(pelican, sd.State(pelican), 1.0, step=0.5, t0=1.0)
    with pytest.raises(sd.ScrewdynError, match=r"ends with \(mass\), the second begins with \(shoulder, elbow\)"):
        first + arm
    with pytest.raises(sd.ScrewdynError, match="only a Run can continue a Run; got float"):
        first + 1.0


@pytest.mark.parametrize("t0", [-1.0, np.nan, "now"])
def test_bad_starts(t0):
    tree = oscillator()
    with pytest.raises(sd.ScrewdynError, match="t0 must be a finite number of seconds >= 0"):
        sd.simulate(tree, sd.State(tree), 1.0, t0=t0)


@pytest.mark.parametrize("time", [0.5, 3.5])
def test_events_before_and_after_a_run(time):
    tree = oscillator()
    with pytest.raises(sd.ScrewdynError, match=rf"is from 1 s to 3 s, but a Release is set for {time} s"):
        sd.simulate(tree, sd.State(tree), 2.0, events=[sd.Release("mass", time=time)], t0=1.0)
