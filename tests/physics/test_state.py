"""States: numbers with names, checked once."""

import json
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import screwdyn as sd
from screwdyn.physics.state import State, check_state


@pytest.fixture
def arm():
    return sd.robots.pelican()


def test_numbers_go_by_name(arm):
    state = sd.State(arm, [0.1, 0.2], [0.3, 0.4])
    assert state.coordinates == ("shoulder", "elbow")
    assert (state["shoulder"], state["elbow"]) == (0.1, 0.2)
    assert (state.velocity("shoulder"), state.velocity("elbow")) == (0.3, 0.4)
    assert repr(state) == "State(shoulder=0.1 (0.3/s), elbow=0.2 (0.4/s))"
    assert state.tree is arm


def test_the_default_is_rest_at_zero(arm):
    state = sd.State(arm)
    assert_array_equal(state.q, [0, 0])
    assert_array_equal(state.qd, [0, 0])
    assert state.q.dtype == state.qd.dtype == float


def test_numbers_may_be_given_by_name(arm):
    state = sd.State(arm, {"elbow": 0.2}, {"shoulder": np.float32(0.5)})
    assert_array_equal(state.q, [0, 0.2])
    assert_array_equal(state.qd, [0.5, 0])
    assert_array_equal(sd.State(arm, {}).q, [0, 0])


@pytest.mark.parametrize("which", ["q", "qd"])
@pytest.mark.parametrize(
    "given, error, match",
    [
        ({"elbw": 1}, sd.UnknownLinkError, "no coordinate 'elbw'; did you mean 'elbow'"),
        ({"elb": 1}, sd.UnknownLinkError, "no coordinate 'elb'"),
        ({3: 1}, sd.UnknownLinkError, "no coordinate 3"),
        ({"elbow": [1, 2]}, sd.ShapeError, r"of 'elbow' must be one number; got \[1, 2\]"),
        ({"elbow": [1]}, sd.ShapeError, r"of 'elbow' must be one number; got \[1\]"),
        ({"elbow": "1"}, sd.ShapeError, "of 'elbow' must be an array of real numbers"),
        ({"elbow": None}, sd.ShapeError, "of 'elbow' must be an array of real numbers"),
        ({"elbow": np.nan}, sd.ShapeError, "is nan at 'elbow'"),
    ],
    ids=str,
)
def test_bad_mappings(arm, which, given, error, match):
    with pytest.raises(error, match=match):
        sd.State(arm, **{which: given})


@pytest.mark.parametrize("q", [[1, 2], (1, 2), np.array([1, 2]), np.array([1, 2], dtype=np.float32)])
def test_numbers_of_other_types(arm, q):
    assert_array_equal(sd.State(arm, q).q, [1.0, 2.0])


def test_arrays_are_copied(arm):
    q, qd = np.array([0.1, 0.2]), np.array([0.3, 0.4])
    states = [sd.State(arm, q, qd), State.of(arm, q, qd, own=False)]
    q[0] = qd[0] = 9
    for state in states:
        assert_array_equal(state.q, [0.1, 0.2])
        assert_array_equal(state.qd, [0.3, 0.4])


def test_a_tree_without_coordinates_has_a_state():
    state = sd.State(sd.KinematicTree())
    assert state.q.shape == state.qd.shape == (0,)
    assert state.coordinates == ()
    assert repr(state) == "State()"


@pytest.mark.parametrize("q", [0.1, [0.1], [0.1, 0.2, 0.3], [[0.1, 0.2]], np.zeros((3, 2)), "ab", [1j, 0], [[], []]])
@pytest.mark.parametrize("which", ["q", "qd"])
def test_wrong_shapes_are_refused(arm, q, which):
    with pytest.raises(sd.ShapeError):
        sd.State(arm, **{which: q})


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("which", ["q", "qd"])
def test_numbers_that_are_not_finite_are_refused_by_name(arm, bad, which):
    with pytest.raises(sd.ShapeError, match=f"{which} is .* at 'elbow'"):
        sd.State(arm, **{which: [0.0, bad]})


def test_unknown_coordinates_list_the_near_ones(arm):
    state = sd.State(arm)
    with pytest.raises(sd.UnknownLinkError, match="no coordinate 'elbw'; did you mean 'elbow'"):
        state["elbw"]
    with pytest.raises(sd.UnknownLinkError, match="no coordinate 'wrist'"):
        state.velocity("wrist")


def test_the_name_of_a_joint_of_several_freedoms_is_answered_with_its_entries():
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.sphere(1, 0.1), to="base", joint=sd.spherical(name="leg"))
    state = sd.State(tree)
    entries = r"did you mean 'leg\[x\]' or 'leg\[y\]' or 'leg\[z\]' or 'leg\[w\]'\?$"
    for ask in (lambda: state["leg"], lambda: sd.State(tree, {"lg": [0, 0, 0, 1]})):
        with pytest.raises(sd.UnknownNameError, match=entries):
            ask()
    with pytest.raises(sd.UnknownNameError, match=r"did you mean 'leg\[wx\]' or 'leg\[wy\]' or 'leg\[wz\]'\?$"):
        state.velocity("leg")
    with pytest.raises(sd.UnknownNameError, match=r"did you mean 'leg\[x\]' or"):
        state["leg[wx]"]


def test_part_keeps_what_the_other_tree_has(arm):
    state = sd.State(arm, [0.1, 0.2], [0.3, 0.4])
    forearm = arm.detach("link2")
    assert repr(state.part(arm)) == "State(shoulder=0.1 (0.3/s))"
    assert state.part(arm).tree is arm
    # The forearm is the base of the removed tree: its joint ended with the attachment.
    assert state.part(forearm).coordinates == ()


def test_a_state_outlives_a_change_that_leaves_its_coordinates(arm):
    state = sd.State(arm, [0.1, 0.2])
    arm.attach(sd.Inertia.point(1.0), to="link2")
    check_state(state, arm)


def test_a_state_of_other_coordinates_is_stale(arm):
    state = sd.State(arm)
    arm.attach(sd.Inertia.point(1.0, (0.1, 0, 0)), to="link2", joint=sd.revolute(), name="hook")
    with pytest.raises(sd.StaleHandleError, match=r"over \(shoulder, elbow\), but the tree now has .*, hook\)"):
        check_state(state, arm)


@pytest.mark.parametrize("thing", [None, [0, 0], np.zeros(2), "state"])
def test_states_of_another_type_are_refused(arm, thing):
    with pytest.raises(sd.ShapeError, match="must be a State"):
        check_state(thing, arm)


def test_a_state_whose_arrays_have_become_a_batch_is_refused(arm):
    state = sd.State(arm)
    state.q, state.qd = np.zeros((2, 3, 2))
    with pytest.raises(sd.ShapeError, match=r"one configuration; got a batch of shape \(3,\)"):
        check_state(state, arm)


@pytest.mark.parametrize("thing", [None, 3, "arm"])
def test_state_needs_a_tree(thing):
    with pytest.raises(sd.ScrewdynError, match="must be a KinematicTree; got"):
        sd.State(thing)


# Joints of several freedoms ----------------------------------------------------------------------------------------


@pytest.fixture
def rider():
    """A cart that carries a body on a ball joint, which carries a wheel."""
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.point(1.0), to="base", joint=sd.prismatic("x"), name="cart")
    tree.attach(sd.Inertia.sphere(1.0, 0.1), to="cart", joint=sd.spherical(name="hip"), name="body")
    tree.attach(sd.Inertia.sphere(1.0, 0.1), to="body", joint=sd.revolute(), name="wheel")
    return tree


def test_positions_and_rates_have_names_of_their_own(rider):
    turn = [0.0, 0.6, 0.0, 0.8]
    state = sd.State(rider, [1.0, *turn, 2.0], [0.1, 0.2, 0.3, 0.4, 0.5])
    assert state.positions == ("cart", "hip[x]", "hip[y]", "hip[z]", "hip[w]", "wheel")
    assert state.coordinates == ("cart", "hip[wx]", "hip[wy]", "hip[wz]", "wheel")
    assert [state[name] for name in state.positions] == [1.0, *turn, 2.0]
    assert [state.velocity(name) for name in state.coordinates] == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert repr(state) == (
        "State(cart=1, hip[x]=0, hip[y]=0.6, hip[z]=0, hip[w]=0.8, wheel=2, "
        "cart=0.1/s, hip[wx]=0.2/s, hip[wy]=0.3/s, hip[wz]=0.4/s, wheel=0.5/s)"
    )
    with pytest.raises(sd.UnknownLinkError, match=r"no coordinate 'hip\[wx\]'"):
        state["hip[wx]"]
    with pytest.raises(sd.UnknownLinkError, match=r"no coordinate 'hip\[x\]'"):
        state.velocity("hip[x]")


def test_the_default_is_neutral(rider):
    assert_array_equal(sd.State(rider).q, [0, 0, 0, 0, 1, 0])
    assert_array_equal(sd.State(rider).qd, np.zeros(5))


def test_a_joint_of_several_freedoms_may_be_given_as_a_whole_or_by_entry(rider):
    whole = sd.State(rider, {"hip": [0.6, 0, 0, 0.8], "cart": 1}, {"hip": (1, 2, 3)})
    entries = sd.State(rider, {"hip[x]": 0.6, "hip[w]": 0.8, "cart": 1}, {"hip[wx]": 1, "hip[wy]": 2, "hip[wz]": 3})
    for state in (whole, entries):
        assert_array_equal(state.q, [1, 0.6, 0, 0, 0.8, 0])
        assert_array_equal(state.qd, [0, 1, 2, 3, 0])


@pytest.mark.parametrize(
    "q, error, match",
    [
        ([0, 0, 0, 0, 2, 0], sd.ShapeError, "q holds a quaternion of length 2 for joint 'hip'"),
        ([0, 0, 0, 0, 0, 0], sd.ShapeError, "q holds a quaternion of length 0 for joint 'hip'"),
        ({"hip[x]": 0.6}, sd.ShapeError, "q holds a quaternion of length 1.16.* for joint 'hip'"),
        (
            {"hip": [1, 0, 0]},
            sd.ShapeError,
            r"q of 'hip' has shape \(3,\); expected one number for each of: hip\[x\], ",
        ),
        ({"hip": [[1], [2, 3]]}, sd.ShapeError, "q of 'hip' must be an array of real numbers"),
        ({"hip": 1}, sd.ShapeError, r"q of 'hip' has shape \(\); expected one number for each of"),
        ({"hip[wx]": 1}, sd.UnknownLinkError, r"no coordinate 'hip\[wx\]'; did you mean"),
        ([0, 0, 0, 1, 0], sd.ShapeError, r"q has shape \(5,\); expected .* 6\), one entry for each of: cart, hip\[x\]"),
    ],
    ids=str,
)
def test_bad_positions(rider, q, error, match):
    with pytest.raises(error, match=match):
        sd.State(rider, q)


def test_the_numbers_of_a_joint_are_those_of_no_other_joint():
    tree, body = sd.KinematicTree(), sd.Inertia.box(1, (0.1, 0.2, 0.3))
    tree.attach(body, "base", sd.spherical(name="hip"), name="a")
    tree.attach(body, "a", sd.revolute("z", name="hip[px]"), name="b")
    state = sd.State(tree, {"hip": [0, 0.6, 0, 0.8], "hip[px]": 0.3}, {"hip": [1, 2, 3]})
    assert_array_equal(state.q, [0, 0.6, 0, 0.8, 0.3])
    assert_array_equal(state.qd, [1, 2, 3, 0])
    for k in (1, 2):
        tree.attach(body, "base", sd.revolute("z", name=f"j[{k}]"), name=f"j{k}")
    with pytest.raises(sd.UnknownNameError, match="no coordinate 'j'"):
        sd.State(tree, {"j": [1, 2]})


def test_part_keeps_joints_of_several_freedoms_whole(rider):
    state = sd.State(rider, [1.0, 0.0, 0.6, 0.0, 0.8, 2.0], [0.1, 0.2, 0.3, 0.4, 0.5])
    body = rider.detach("body")
    assert repr(state.part(rider)) == "State(cart=1 (0.1/s))"
    assert repr(state.part(body)) == "State(wheel=2 (0.5/s))"


def test_a_state_of_other_positions_is_stale(rider):
    state = sd.State(rider)
    rider.detach("wheel")
    with pytest.raises(sd.StaleHandleError, match="but the tree now has"):
        check_state(state, rider)


# Across changes


def test_a_state_is_carried_onto_a_changed_tree_by_name(arm):
    state = sd.State(arm, [0.1, 0.2], [0.3, 0.4])
    arm.detach("link2")
    arm.attach(sd.Inertia.sphere(1, 0.1), to="link1", joint=sd.spherical(name="ball"), name="head")
    after, gone = state.onto(arm, {"ball": [0.5, 0.5, 0.5, 0.5]}, {"ball[wx]": 2.0})
    assert after.coordinates == ("shoulder", "ball[wx]", "ball[wy]", "ball[wz]")
    assert_array_equal(after.q, [0.1, 0.5, 0.5, 0.5, 0.5])
    assert_array_equal(after.qd, [0.3, 2.0, 0, 0])
    assert gone == {"q": {"elbow": 0.2}, "qd": {"elbow": 0.4}}
    neutral, _ = state.onto(arm)
    assert_array_equal(neutral.q, [0.1, 0, 0, 0, 1])
    assert_array_equal(neutral.qd, [0.3, 0, 0, 0])
    back, gone = after.onto(sd.robots.pelican())
    assert_array_equal(back.q, [0.1, 0])
    assert gone["qd"] == {"ball[wx]": 2.0, "ball[wy]": 0.0, "ball[wz]": 0.0}


def test_a_given_value_replaces_a_kept_one(arm):
    after, gone = sd.State(arm, [0.1, 0.2], [0.3, 0.4]).onto(arm.copy(), {"elbow": 1.0}, {"shoulder": 2.0})
    assert_array_equal(after.q, [0.1, 1.0])
    assert_array_equal(after.qd, [2.0, 0.4])
    assert gone == {"q": {}, "qd": {}}


def test_an_unlocked_joint_starts_where_it_was_locked(arm):
    before = sd.State(arm, [0.1, 0.2], [0.3, 0.4])
    arm.lock("elbow", at=0.7)
    locked, gone = before.onto(arm)
    assert gone == {"q": {"elbow": 0.2}, "qd": {"elbow": 0.4}}
    arm.unlock("elbow")
    after, _ = locked.onto(arm)
    assert_array_equal(after.q, [0.1, 0.7])
    assert_array_equal(after.qd, [0.3, 0.0])
    # A state from before the lock has values of its own.
    assert_array_equal(before.onto(arm)[0].q, [0.1, 0.2])


def test_a_joint_with_another_home_or_parent_needs_a_value(arm):
    """A position is the same pose only beyond the same home pose."""
    before = sd.State(arm, [0.1, 0.7], [0.3, 0.4])
    pose = arm.forward_kinematics("link2", before.q)
    event = arm.replace_joint("link2", arm.joint("elbow"), before)
    with pytest.raises(sd.StaleHandleError, match="joint 'elbow' of the tree has other screws, another home pose"):
        arm.release(before, "link2")
    with pytest.raises(sd.StaleHandleError, match="or has another axis, home pose or parent; give its positions"):
        before.onto(arm)
    assert_allclose(arm.forward_kinematics("link2", event.state.q), pose, atol=1e-15)
    assert_array_equal(before.onto(arm, {"elbow": 0.7})[0].q, [0.1, 0.7])

    again = arm.copy()
    again.move("link2", "base", again.joint("elbow"))
    with pytest.raises(sd.StaleHandleError, match="another parent"):
        check_state(event.state, again)
    # In another tree, the names count.
    other = sd.KinematicTree("floor")
    other.attach(sd.robots.pelican(), "floor", name="pedestal")
    assert_array_equal(before.onto(other)[0].q, before.q)


@pytest.mark.parametrize("axis", ["x", "y"])
def test_a_joint_that_followed_another_one_starts_where_it_was(axis):
    hand, finger = sd.KinematicTree("palm"), sd.Inertia.box(1, (0.1, 0.2, 0.3))
    hand.attach(finger, "palm", sd.prismatic("x", name="left"), name="l")
    hand.attach(finger, "palm", sd.prismatic("x", mimic=sd.Mimic("left", -2.0, 0.3), name="middle"), name="m")
    hand.attach(finger, "palm", sd.prismatic("x", mimic=sd.Mimic("middle", 3.0, 0.1), name="right"), name="r")
    state = sd.State(hand, [0.02], [0.5])
    poses = hand.link_poses(state.q)
    hand.replace_joint("r", sd.prismatic(axis, name="right"))
    if axis == "y":
        with pytest.raises(sd.StaleHandleError, match="joint 'right' of this state is prismatic"):
            state.onto(hand)
        return
    after, gone = state.onto(hand)
    assert gone == {"q": {}, "qd": {}}
    assert_allclose(hand.link_poses(after.q), poses, atol=1e-15)
    assert_allclose(after.qd, [0.5, -3.0])


def test_a_joint_of_the_same_name_but_other_screws_needs_a_value(arm):
    state = sd.State(arm, [0.1, 0.2], [0.3, 0.4])
    arm.replace_joint("link2", sd.prismatic("x"))
    with pytest.raises(sd.StaleHandleError, match="joint 'elbow' of this state is revolute, that of the tree is prism"):
        state.onto(arm)
    after, _ = state.onto(arm, {"elbow": 0.05})
    assert_array_equal(after.q, [0.1, 0.05])
    assert_array_equal(after.qd, [0.3, 0.0])
    arm.replace_joint("link2", sd.spherical())
    with pytest.raises(sd.StaleHandleError, match="is spherical or has another axis, home pose or parent; give"):
        state.onto(arm, {"elbow[x]": 0.0})
    with pytest.raises(sd.UnknownNameError, match="no coordinate 'ebow'"):
        state.onto(arm, {"ebow": 0.0})
    assert_array_equal(state.onto(arm, {"elbow": [0, 0, 0, 1]})[0].qd, [0.3, 0, 0, 0])


def test_dictionaries_of_states(arm):
    arm.attach(sd.Inertia.sphere(1, 0.1), to="link2", joint=sd.spherical(name="ball"), name="head")
    state = sd.State(arm, [0.1, 0.2, 0.5, -0.5, 0.5, 0.5], [0.3, 0.4, 1, 2, 3])
    entries = json.loads(json.dumps(state.to_dict()))
    again = sd.State.from_dict(arm, entries)
    assert_array_equal(again.q, state.q)
    assert_array_equal(again.qd, state.qd)
    assert sd.State.from_dict(arm, {"q": {"elbow": 0.5}})["elbow"] == 0.5
    assert_array_equal(sd.State.from_dict(arm, {}).q, arm.neutral())
    for wrong in ({"p": {}}, {"q": [1, 2]}, [1, 2], None):
        with pytest.raises(sd.ScrewdynError, match="entries must be"):
            sd.State.from_dict(arm, wrong)
    with pytest.raises(sd.UnknownNameError, match="did you mean 'elbow'"):
        sd.State.from_dict(arm, {"qd": {"elbw": 1}})


@pytest.mark.parametrize("tree", [None, 3, "pelican"])
def test_what_is_no_tree(arm, tree):
    state = sd.State(arm)
    for ask in (sd.State, state.onto, state.part):
        with pytest.raises(sd.ScrewdynError, match="must be a KinematicTree; got"):
            ask(tree)


def test_what_is_no_mapping_or_name(arm):
    state = sd.State(arm)
    for values in ({"q": [1, 2]}, {"qd": 3.0}):
        with pytest.raises(sd.ShapeError, match="must be a mapping from name to number"):
            state.onto(arm, **values)
    for name in (np.eye(3), ["elbow"], None):
        for ask in (state.__getitem__, state.velocity):
            with pytest.raises(sd.UnknownNameError, match="there is no coordinate"):
                ask(name)


def test_the_name_of_a_locked_joint(arm):
    """The same error in a state, a mapping of torques and an equilibrium says that the joint is locked."""
    arm.lock("elbow", at=0.3)
    locked = "joint 'elbow' has no coordinate while it is locked; unlock it first, or omit 'elbow'"
    state = sd.State(arm)
    for call in (
        lambda: state["elbow"],
        lambda: state.velocity("elbow"),
        lambda: sd.State(arm, {"elbow": 0.1}),
        lambda: sd.simulate(arm, state, 0.1, lambda t, s: {"elbow": 0.5}),
        lambda: arm.equilibrium(state.q, {"elbow": 0.5}),
    ):
        with pytest.raises(sd.UnknownNameError, match=locked):
            call()


def test_the_name_of_a_freedom_of_a_locked_joint():
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.point(1, (0, 0, -0.5)), to="base", joint=sd.spherical(passive=True, name="hip"), name="bob")
    tree.lock("hip")
    for name in ("hip", "hip[wx]", "hip[x]"):
        with pytest.raises(
            sd.UnknownNameError, match="joint 'hip' has no coordinate .* or omit " + re.escape(repr(name))
        ):
            sd.State(tree)[name]
