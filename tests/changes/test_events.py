"""Changes in a run: the same as by hand, in the ledger, and drawn."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import screwdyn as sd

BALL = sd.Inertia.sphere(0.5, 0.05)
CRATE = sd.Inertia.box(1.0, (0.1, 0.2, 0.1), com=(0.05, 0.02, -0.1))


def two_arms():
    """Two arms of two links on one torso; the left one carries a crate."""
    tree, arm = sd.KinematicTree("torso"), sd.robots.two_link()
    for side, x in (("left/", -1.0), ("right/", 1.0)):
        tree.attach(arm, to="torso", at=(x, 0, 0), prefix=side)
    tree.attach(CRATE, to="left/link2", joint=sd.spherical(passive=True, name="hook"), at=(1, 0, 0), name="crate")
    q = {"left/theta1": 0.3, "left/theta2": 0.4, "right/theta1": 2.5, "right/theta2": -0.5}
    return tree, sd.State(tree, q, {"left/theta1": 1.0, "hook[wx]": 0.5, "right/theta2": -0.7})


CHANGES = {
    "hand over": (
        sd.HandOver("crate", to="right/link2", joint=sd.universal(passive=True, name="grip"), time=0.2),
        lambda tree, state: tree.move("crate", "right/link2", sd.universal(passive=True, name="grip"), state=state),
        "crate",
    ),
    "lock": (sd.Lock("left/theta2", time=0.2), lambda tree, state: tree.lock("left/theta2", state), "left/link2"),
    "replace joint of": (
        sd.ReplaceJoint("crate", sd.revolute("x", passive=True), time=0.2),
        lambda tree, state: tree.replace_joint("crate", sd.revolute("x", passive=True), state),
        "crate",
    ),
    "set inertia of": (
        sd.SetInertia("crate", BALL, time=0.2),
        lambda tree, state: tree.set_inertia("crate", BALL, state),
        "crate",
    ),
    "release": (
        sd.Release("crate", into_world=True, time=0.2),
        lambda tree, state: tree.release(state, "crate", into_world=True),
        "crate",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("verb", CHANGES)
def test_a_change_in_a_run_is_the_one_by_hand(verb):
    scheduled, by_hand, link = CHANGES[verb]
    tree, state = two_arms()
    twin = tree.copy()
    run = sd.simulate(tree, state, 0.4, events=[scheduled], step=0.01)
    (happened,) = run.events
    assert (happened.verb, happened.link, happened.what) == (verb, link, scheduled)
    before, after = (run.states[int(k)] for k in np.flatnonzero(run.t == 0.2))
    expected = by_hand(twin, sd.State(twin, before.q, before.qd))
    assert type(expected) is type(happened.event)
    assert_array_equal(after.q, expected.state.q)
    assert_array_equal(after.qd, expected.state.qd)
    assert after.tree.links == twin.links == tree.links
    assert run.energy.impact_loss[-1] == expected.energy_lost
    turnover = max(np.ptp(x) for x in (run.energy.kinetic, run.energy.potential))
    assert np.abs(run.energy.residual).max() < 1e-7 * turnover
    assert run.plot().axes


def test_lock_and_unlock_in_a_run():
    tree, state = two_arms()
    events = [sd.Lock("left/theta2", time=0.1), sd.Unlock("left/theta2", when=lambda t, state: t - 0.3)]
    run = sd.simulate(tree, state, 0.4, events=events, step=0.01)
    assert [happened.verb for happened in run.events] == ["lock", "unlock"]
    assert run.states[-1].coordinates == state.coordinates
    locked = np.isnan(run["left/theta2"])
    assert_allclose(run.t[locked][[0, -1]], [0.1, 0.3], atol=1e-12)
    at = run["left/theta2"]
    assert_allclose(at[~locked & (run.t <= 0.1)][-1], at[~locked & (run.t >= 0.3)][0], atol=1e-15)
    assert run.velocity("left/theta2")[~locked & (run.t >= 0.3)][0] == 0
    assert np.abs(run.energy.residual).max() < 1e-7


def test_energy_enters_with_mass_that_moves_along():
    tree, state = two_arms()
    run = sd.simulate(tree, state, 0.3, events=[sd.SetInertia("left/link1", CRATE, time=0.15)], step=0.01)
    assert run.energy.impact_loss[-1] == 0
    assert run.energy.exchanged[-1] != 0
    assert np.abs(run.energy.residual).max() < 1e-7


@pytest.mark.parametrize(
    "make",
    [
        lambda **when: sd.HandOver("crate", to="right/link2", **when),
        lambda **when: sd.HandOver("crate", "right/link2", **when),
        lambda **when: sd.Lock("left/theta1", **when),
        lambda **when: sd.Unlock("left/theta1", **when),
        lambda **when: sd.ReplaceJoint("crate", sd.fixed(), **when),
        lambda **when: sd.SetInertia("crate", None, **when),
        lambda **when: sd.Weld("crate", "torso", **when),
        lambda **when: sd.Unweld("crate", "torso", **when),
        lambda **when: sd.Reroot("crate", **when),
    ],
)
def test_every_event_needs_a_time_or_a_condition(make):
    with pytest.raises(sd.ScrewdynError, match="needs either time= or when=, not both"):
        make(time=0.1, when=lambda t, state: True)
    tree = sd.robots.two_link()
    with pytest.raises(sd.ScrewdynError, match="needs either time= or when= in a run"):
        sd.simulate(tree, sd.State(tree), 0.1, events=[make()])
    for time in (-1.0, True):
        with pytest.raises(sd.ScrewdynError, match="must be a finite number of seconds"):
            make(time=time)


def test_a_grasp_of_a_body_that_brings_its_motion_needs_no_twist():
    assert sd.Grasp("crate", to="torso", time=0.1).twist is None
    tree, state = two_arms()
    free = tree.release(state, "crate").released
    assert sd.Grasp(free, to="torso", time=0.1).body is free
    with pytest.raises(sd.ShapeError, match="twist must be"):
        sd.Grasp(BALL, to="torso", time=0.1)


@pytest.mark.parametrize("at", [0.02, 0.03])
def test_an_event_on_a_condition_does_not_happen_before_it_holds(at):
    """Events of the same time happen in the given order, also if one of them is located."""
    tree = sd.robots.pelican()
    events = [sd.Lock("elbow", time=at), sd.Lock("shoulder", when=lambda t, s: t >= at)]
    run = sd.simulate(tree, sd.State(tree, [0, 0], [1, 0]), 0.04, step=0.01, events=events)
    assert [(event.link, event.t) for event in run.events] == [("link2", at), ("link1", at)]


def test_a_truth_value_is_no_position():
    tree = sd.robots.two_link()
    pin = sd.revolute("y", passive=True)
    with pytest.raises(sd.ShapeError, match="start must be positions of the new joint"):
        tree.grasp(
            sd.State(tree), sd.Inertia.point(1.0, (0.1, 0, 0)), to="link2", joint=pin, twist="at_rest", start=True
        )


def test_an_event_shows_what_is_not_the_default():
    assert repr(sd.Close("a", to="b", time=1)) == "Close(link='a', to='b', time=1.0)"
    assert repr(sd.Release("crate")) == "Release(what='crate')"
    assert repr(sd.Close("a", to="b", at=np.eye(2))) == "Close(link='a', to='b', at=array([[1., 0.], [0., 1.]]))"
