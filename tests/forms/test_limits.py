"""Limits without stops: they are reported, and the motion does not change."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import screwdyn as sd

G = 9.81


def oscillator(limits, mass=2.0, stiffness=8.0):
    """A mass on a spring, of 2 rad/s."""
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    joint = sd.prismatic("x", stiffness=stiffness, limits=limits, name="slide")
    tree.attach(sd.Inertia.point(mass), to="base", joint=joint, name="box")
    return tree


def reached(run):
    return [(h.event.coordinate, h.event.side) for h in run.events if isinstance(h.event, sd.LimitEvent)]


@pytest.mark.parametrize("method", ["DOP853", "RK45", "Radau"])
def test_each_passage_from_inside_is_reported_at_its_time(method):
    tree = oscillator((-0.5, 0.8))
    run = sd.simulate(tree, sd.State(tree, qd=[2.0]), 2 * np.pi, method=method)  # sin 2t, two periods
    up, down = np.arcsin(0.8) / 2, (np.pi + np.arcsin(0.5)) / 2
    assert reached(run) == [("slide", "upper"), ("slide", "lower")] * 2
    assert_allclose(
        [h.t for h in run.events], [up, down, up + np.pi, down + np.pi], atol=1e-5 if method == "Radau" else 1e-7
    )
    for happened, value in zip(run.events, [0.8, -0.5, 0.8, -0.5], strict=True):
        event = happened.event
        assert (happened.what, happened.verb, happened.link, event.joint) == (None, "reach limit of", "box", "slide")
        assert_allclose(event.state["slide"], value, atol=1e-12)
        assert event.energy_lost == 0 and not event.impulse.any()


def test_motion_is_that_without_limits():
    runs = []
    for limits in (None, (-0.5, 0.8)):
        tree = oscillator(limits)
        runs.append(sd.simulate(tree, sd.State(tree, qd=[2.0]), 3.0, lambda t, state: [np.sin(t)], step=0.01))
    free, limited = runs
    assert len(free.events) == 0 and len(limited.events) == 2
    assert_array_equal(limited.q, free.q)
    assert_array_equal(limited.qd, free.qd)


@pytest.mark.parametrize("top, count", [(0.9999, 1), (1.0001, 0)])
def test_a_passage_within_one_step_is_reported(top, count):
    """The oscillator turns just beyond its limit, in steps much longer than it stays there."""
    tree = oscillator((-2.0, top))
    run = sd.simulate(tree, sd.State(tree, qd=[2.0]), 2.0)
    assert reached(run) == [("slide", "upper")] * count
    for happened in run.events:
        assert_allclose(happened.t, np.arcsin(top) / 2, atol=1e-6)


def test_start_beyond_a_limit_is_reported_once():
    tree = oscillator((-2.0, 0.5))
    run = sd.simulate(tree, sd.State(tree, [1.0]), 1.0, t0=3.0)  # cos 2t
    assert reached(run) == [("slide", "upper")]
    assert run.events[0].t == 3.0


def test_start_at_a_limit_is_not_reported():
    tree = oscillator((-2.0, 1.0))
    assert not sd.simulate(tree, sd.State(tree, [1.0]), 1.0).events


def test_changes_of_the_tree_do_not_repeat_reports():
    tree = oscillator((-2.0, 0.5))
    events = [sd.SetInertia("box", sd.Inertia.point(1.0), time=0.1)] * 2
    run = sd.simulate(tree, sd.State(tree, [1.0]), 0.2, events=events)
    assert [h.verb for h in run.events] == ["reach limit of", "set inertia of", "set inertia of"]


def test_a_grasp_beyond_the_limit_of_the_new_joint_is_reported_after_it():
    tree = oscillator(None)
    hook = sd.revolute("y", limits=(0.1, 1.0), name="hook")
    grasp = sd.Grasp(sd.Inertia.point(1.0, (0.1, 0, 0)), to="box", twist="at_rest", joint=hook, name="load", time=0.1)
    run = sd.simulate(tree, sd.State(tree, [0.1]), 0.2, events=[grasp])
    assert [(h.t, h.verb, h.link) for h in run.events] == [(0.1, "grasp", "load"), (0.1, "reach limit of", "load")]
    assert run.events[1].event.coordinate == "hook" and run.events[1].event.side == "lower"


def test_joints_of_several_freedoms():
    """The limits of a joint hold for each of its freedoms."""
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    tree.attach(sd.Inertia.sphere(1.0, 0.1), to="base", joint=sd.cylindrical("x", limits=(-1, 1), name="c"), name="rod")
    tree.attach(sd.Inertia.sphere(1.0, 0.1), to="rod", joint=sd.spherical(name="ball"), name="end")
    names = tree.coordinates[:2]
    run = sd.simulate(tree, sd.State(tree, qd=[2.0, -4.0, 0, 0, 0]), 1.0)
    assert reached(run) == [(names[1], "lower"), (names[0], "upper")]
    assert_allclose([h.t for h in run.events], [0.25, 0.5], atol=1e-9)


def test_files_and_figures_have_the_event(tmp_path):
    tree = oscillator((-2.0, 0.8))
    run = sd.simulate(tree, sd.State(tree, qd=[2.0]), 1.0)
    run.to_npz(tmp_path / "run.npz")
    (event,) = sd.Recording.from_npz(tmp_path / "run.npz").events
    assert (event.t, event.verb, event.link) == (run.events[0].t, "reach limit of", "box")
