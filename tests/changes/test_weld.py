"""Two links become one body where they are: by a lock or a fixed loop, whose impacts are the same."""

import numpy as np
import pytest
from cases import norm
from hypothesis import assume, given
from hypothesis import strategies as st
from kinds import EVERY
from maximal import impact, kinetic_energy, twists
from numpy.testing import assert_allclose

import screwdyn as sd
from screwdyn.screws.screw import Ad, inverse
from screwdyn.testing import random_tree


def drawn(seed):
    """A tree of all kinds of joints, a state of it, and two links."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 6, EVERY, frames=0)
    link, to = map(str, rng.choice(tree.links, 2, replace=False))
    return tree, sd.State(tree, tree.random_configuration(rng), rng.normal(size=tree.nv)), link, to


def relative(tree, q, link, to):
    return inverse(tree.forward_kinematics(to, q)) @ tree.forward_kinematics(link, q)


@given(st.integers(0, 2**32 - 1))
def test_the_impact_is_that_of_bodies_with_six_rates_each(seed):
    tree, state, link, to = drawn(seed)
    before = tree.copy()
    assume(np.linalg.cond(tree.mass_matrix(state.q)) < 1e7)
    try:
        event = tree.weld(link, to, state)
    except sd.TopologyError as error:
        assert "are one body already: no joint between them moves" in str(error)
        assume(False)
    assert (event.link, event.to) == (link, to)
    assert event.by in (*tree.loops, *tree.locked)
    assert (len(tree.loops), len(tree.locked)) in ((1, 0), (0, 1))
    # With maximal coordinates: a fixed loop of the same links, whatever the weld is.
    looped = before.copy()
    looped.close(link, to, at=relative(before, state.q, link, to))
    V_before = twists(before, state.q, state.qd)
    expected, found = impact(looped, state.q, V_before), twists(tree, event.state.q, event.state.qd)
    size = 1 + max(map(norm, V_before.values()))
    for name, twist in expected.items():
        assert_allclose(found[name], twist, rtol=0, atol=1e-9 * size)
    lost = kinetic_energy(before, V_before) - kinetic_energy(before, expected)
    assert_allclose(event.energy_lost, lost, rtol=0, atol=1e-9 * (1 + kinetic_energy(before, V_before)))
    # They move as one.
    V = {before.base: np.zeros(6)} | found
    T = relative(tree, event.state.q, link, to)
    assert_allclose(V[link], Ad(inverse(T)) @ V[to], rtol=0, atol=1e-9 * size)
    # A lock has the impulse of a loop.
    closed = before.close(link, to, state=state)
    assert_allclose(event.impulse, closed.impulse, rtol=0, atol=1e-9 * (1 + norm(closed.impulse)))


@given(st.integers(0, 2**32 - 1))
def test_undone_in_either_order_of_the_links(seed):
    """Everything as before but for the rates: the same joints and coordinates; positions and twists stay."""
    tree, state, link, to = drawn(seed)
    before = tree.copy()
    assume(np.linalg.cond(tree.mass_matrix(state.q)) < 1e7)
    try:
        event = tree.weld(link, to, state)
    except sd.TopologyError:
        assume(False)
    twin = tree.copy()
    undone = tree.unweld(to, link, event.state)
    assert (undone.link, undone.to, undone.by, undone.energy_lost) == (to, link, event.by, 0)
    assert not undone.impulse.any()
    assert (tree.loops, tree.locked, tree.coordinates) == ((), (), before.coordinates)
    assert_allclose(undone.state.q, state.q, rtol=0, atol=1e-12 * (1 + norm(state.q)))
    V = twists(twin, event.state.q, event.state.qd)
    for name, twist in twists(tree, undone.state.q, undone.state.qd).items():
        assert_allclose(twist, V[name], rtol=0, atol=1e-12 * (1 + norm(state.qd)))
    # Welded again at once, nothing is lost.
    again = tree.weld(link, to, undone.state)
    assert again.by == event.by
    assert again.energy_lost < 1e-12 * (1 + before.kinetic_energy(state.q, state.qd))


def test_two_rods_on_one_pin():
    """I ω on one of two equal rods: both turn at half of it, and half of the energy is lost; a loop, or a lock."""
    rod = sd.Inertia.rod(1.0, 1.0, com=(0.5, 0, 0))
    apart = sd.KinematicTree()
    for name in ("left", "right"):
        apart.attach(rod, "base", sd.revolute("z"), name=name)
    event = apart.weld("right", "left", sd.State(apart, [0, 0.5], [1.0, 0.0]))
    assert_allclose(event.state.qd, [0.5, 0.5], rtol=1e-14)
    assert_allclose((event.energy_lost, event.impulse[2]), (1 / 12, 1 / 6), rtol=1e-13)
    assert (event.by, event.subject) == ("right-left", "right")
    stacked = sd.KinematicTree()
    stacked.attach(rod, "base", sd.revolute("z"), name="left")
    stacked.attach(rod, "left", sd.revolute("z"), name="right")
    for link, to, sign in (("right", "left", 1), ("left", "right", -1)):
        tree = stacked.copy()
        locked = tree.weld(link, to, sd.State(tree, [0, 0.5], [1.0, -1.0]))
        assert_allclose(locked.state.qd, [0.5], rtol=1e-14)
        assert_allclose((locked.energy_lost, locked.impulse[2]), (1 / 12, sign / 6), rtol=1e-13)
        assert (locked.by, tree.lock_of("right").q) == ("right", (0.5,))


def two_arms():
    tree, arm = sd.KinematicTree("torso"), sd.robots.two_link()
    for side, x in (("left/", -1.0), ("right/", 1.0)):
        tree.attach(arm, to="torso", at=(x, 0, 0), prefix=side)
        tree.attach(sd.Link("hand"), to=f"{side}link2", at=(0.5, 0, 0), prefix=side)
    return tree, sd.State(tree, [0.3, 0.4, 2.5, -0.5], [1.0, 0.5, -1.0, 0.3])


def test_links_that_one_joint_alone_moves_are_locked():
    """Through welded frames, and in both directions; other pairs need a loop."""
    tree, state = two_arms()
    ways = {
        ("left/hand", "left/link1"): "left/theta2",
        ("left/link1", "left/hand"): "left/theta2",
        ("torso", "left/link1"): "left/theta1",
        ("left/hand", "torso"): "left/hand-torso",
        ("left/hand", "right/hand"): "left/hand-right/hand",
    }
    for pair, by in ways.items():
        copy = tree.copy()
        assert copy.weld(*pair, state).by == by
        assert copy.locked + copy.loops == (by,)
        assert copy.unweld(*pair) is None
        assert copy.locked + copy.loops == ()


def test_a_lock_by_hand_between_them_stays():
    """A weld beside it is a loop, so that undoing the weld does not free it."""
    tree, state = two_arms()
    state = tree.lock("left/theta2", state).state
    event = tree.weld("left/hand", "torso", state)
    assert (event.by, tree.locked) == ("left/hand-torso", ("left/theta2",))
    assert_allclose(event.state.velocity("left/theta1"), 0, rtol=0, atol=1e-14)
    tree.unweld("torso", "left/hand", event.state)
    assert (tree.loops, tree.locked) == ((), ("left/theta2",))
    # What is welded may be a lock that was made by hand, if it is the only one.
    tree.unweld("left/link1", "left/hand")
    assert tree.locked == ()


def test_a_finger_that_follows_another_one():
    """The leader is locked with its follower; the follower alone is held by a loop, with the same motion."""
    finger, ends = sd.Inertia.box(0.1, (0.01, 0.02, 0.06)), []
    for link in ("l", "r"):
        hand = sd.KinematicTree("palm")
        hand.attach(finger, "palm", sd.prismatic("x", name="left", armature=0.2), name="l")
        hand.attach(finger, "palm", sd.prismatic("x", mimic=sd.Mimic("left", -1.0), name="right"), name="r")
        hand.attach(finger, "r", sd.revolute("y", name="tip"), (0, 0, 0.1), "nail")
        event = hand.weld(link, "palm", sd.State(hand, [0.01, 0.3], [1.0, 2.0]))
        ends.append((event.state.velocity("tip"), event.energy_lost))
        assert event.by == {"l": "left", "r": "r-palm"}[link]
        hand.unweld("palm", link, event.state)
        assert (hand.locked, hand.loops, hand.coordinates) == ((), (), ("left", "tip"))
    assert_allclose(*ends, rtol=1e-12)


def test_at_rest_links_are_welded_where_they_are_while_joints_are_neutral():
    tree, _ = two_arms()
    for link, to in (("left/link1", "torso"), ("left/hand", "right/hand")):
        tree.weld(link, to)
    assert tree.lock_of("left/theta1").q == (0.0,)
    loop = tree.loop("left/hand-right/hand")
    assert_allclose(loop.home, relative(tree, tree.topology.neutral, "left/hand", "right/hand"), rtol=0, atol=1e-15)
    tree.unweld("left/link1", "torso")
    tree.unweld("right/hand", "left/hand")
    assert (tree.locked, tree.loops) == ((), ())


def test_welds_in_a_run():
    """The same as by hand; the ledger closes."""
    tree, state = two_arms()
    twin = tree.copy()
    events = [
        sd.Weld("left/hand", "right/hand", time=0.1),
        sd.Unweld("right/hand", "left/hand", time=0.2),
        sd.Weld("right/link1", "torso", when=lambda t, state: t - 0.25),
    ]
    run = sd.simulate(tree, state, 0.3, events=events, step=0.01)
    assert [(happened.verb, happened.subject) for happened in run.events] == [
        ("weld", "left/hand"),
        ("unweld", "right/hand"),
        ("weld", "right/link1"),
    ]
    before, after = (run.states[int(k)] for k in np.flatnonzero(run.t == 0.1))
    by_hand = twin.weld("left/hand", "right/hand", sd.State(twin, before.q, before.qd))
    assert_allclose(after.qd, by_hand.state.qd, rtol=0, atol=1e-14)
    assert (tree.loops, tree.locked) == ((), ("right/theta1",))
    assert run.energy.impact_loss[-1] > by_hand.energy_lost > 0
    assert np.abs(run.energy.residual).max() < 1e-7
    assert run.plot().axes


REFUSED = {
    "itself": (lambda tree: tree.weld("left/hand", "left/hand"), "are one body already: no joint between them moves"),
    "a welded frame": (lambda tree: tree.weld("left/hand", "left/link2"), "are one body already: no joint between"),
    "twice": (lambda tree: tree.weld("torso", "left/hand"), "are one body already: loop 'left/hand-torso' holds them"),
    "not welded": (
        lambda tree: tree.unweld("right/hand", "torso"),
        "joints between them move: right/theta1, right/theta2",
    ),
    "fixed": (lambda tree: tree.unweld("right/hand", "right/link2"), "locked joints between them: none"),
    "two locks": (
        lambda tree: [tree.lock("right/theta1"), tree.lock("right/theta2"), tree.unweld("right/hand", "torso")],
        "locked joints between them: right/theta1, right/theta2",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused(what):
    make, message = REFUSED[what]
    tree, _ = two_arms()
    tree.weld("left/hand", "torso")
    with pytest.raises(sd.TopologyError, match=message):
        make(tree)
    assert tree.loops == ("left/hand-torso",)


def test_names_rotors_and_states_are_checked():
    tree, state = two_arms()
    tree.attach(
        sd.Inertia.sphere(1, 0.1), "torso", sd.revolute("x", rotor=sd.Rotor(1e-3, 10), name="neck"), name="head"
    )
    with pytest.raises(sd.StaleHandleError):
        tree.weld("left/hand", "right/hand", state)
    for moving in (None, sd.State(tree)):
        before = tree.topology
        with pytest.raises(sd.UnknownNameError, match="that is a joint"):
            tree.weld("left/theta1", "torso", moving)
        with pytest.raises(sd.UnknownNameError, match="did you mean"):
            tree.unweld("left/hnd", "torso", moving)
        with pytest.raises(sd.TopologyError, match="'neck_rotor' is the rotor of joint 'neck'"):
            tree.weld("neck_rotor", "head", moving)
        assert tree.topology is before
