"""Joints that follow others: what can follow what, names, and changes of the tree."""

import numpy as np
import pytest
import sympy
from numpy.testing import assert_allclose

import screwdyn as sd

BODY = sd.Inertia.box(1, (0.1, 0.2, 0.3), (0.1, 0, 0))


def gripper():
    """A palm on a wrist, and two fingers of which the right one follows the left one."""
    tree = sd.KinematicTree()
    tree.attach(BODY, "base", sd.revolute("z", name="wrist"), name="palm")
    tree.attach(BODY, "palm", sd.prismatic("x", name="left"), name="l")
    tree.attach(BODY, "palm", sd.prismatic("x", name="right", mimic=sd.Mimic("left", -1.0, 0.05)), name="r")
    return tree


def test_a_joint_that_follows_another_one_has_no_freedom():
    joint = sd.revolute("z", mimic=sd.Mimic("left"))
    assert (joint.nv, joint.nq, joint.kind, joint.neutral, joint.freedom_names("x")) == (0, 0, "revolute", (), ())
    assert joint.screw.tolist() == [0, 0, 1, 0, 0, 0]
    assert joint.mimic == sd.Mimic("left", 1.0, 0.0)
    tree = gripper()
    assert (tree.coordinates, tree.positions, tree.nq, tree.nv) == (("wrist", "left"),) * 2 + (2, 2)
    assert tree.joints == ("wrist", "left", "right")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sd.Mimic(""), "must name the joint"),
        (lambda: sd.Mimic("a", np.inf), "the ratio of a mimic joint must be a finite number"),
        (lambda: sd.Mimic("a", True), "the ratio of a mimic joint must be a number; got True"),
        (lambda: sd.Mimic("a", 1.0, "b"), "the offset of a mimic joint must be a number"),
        (lambda: sd.revolute(mimic="left"), r"must be a Mimic, such as Mimic\('finger', -1.0\); got 'left'"),
        (lambda: sd.revolute(mimic=sd.Mimic("a"), passive=True), "not passive; got a passive revolute joint"),
        (lambda: sd.universal(mimic=sd.Mimic("a")), "has one screw and is not passive; got a universal joint"),
    ],
)
def test_bad_couplings_are_refused(make, message):
    with pytest.raises(sd.JointError, match=message):
        make()


def test_what_cannot_be_followed_is_named_and_changes_nothing():
    tree = gripper()
    tree.attach(BODY, "palm", sd.spherical(name="ball"), name="b")
    before = tree.topology
    for leader, error, words in (
        ("lefd", sd.UnknownNameError, "did you mean 'left'"),
        ("ball", sd.TopologyError, "joint 'new' cannot follow 'ball', a spherical joint"),
        ("new", sd.TopologyError, "joint 'new' follows 'new' in a circle"),
    ):
        with pytest.raises(error, match=words):
            tree.attach(BODY, "palm", sd.revolute(name="new", mimic=sd.Mimic(leader)))
        assert tree.topology is before


def test_chains_of_couplings_are_multiplied():
    tree = gripper()
    tree.attach(BODY, "r", sd.revolute("y", name="flap", mimic=sd.Mimic("right", 3.0, 0.2)), name="f")
    q = [0.0, 0.4]
    # right = 0.05 − left, flap = 0.2 + 3 right
    T = tree.forward_kinematics("f", q)
    assert_allclose(T[:3, 3], [0.05 - 0.4, 0, 0], atol=1e-15)
    assert_allclose(np.arctan2(T[0, 2], T[0, 0]), 0.2 + 3 * (0.05 - 0.4), atol=1e-15)
    assert tree.model.path("f") == ("wrist", "left")


def test_couplings_may_hold_symbols():
    r, c = sympy.symbols("r c")
    tree = gripper()
    tree.attach(BODY, "r", sd.revolute("y", name="flap", mimic=sd.Mimic("wrist", r, c)), name="f")
    assert tree.free_symbols == {r, c}
    for ask in (tree.mass_matrix, lambda q: tree.derivatives.mass_matrix(q), lambda q: tree.compile()):
        with pytest.raises(sd.UnboundSymbolError, match="c, r"):
            ask([0.0, 0.0])
    numbers, q = tree.subs({r: 2.0, c: 0.1}), np.array([0.3, 0.2])
    symbolic = tree.symbolic()
    assert symbolic.parameters == (c, r)
    assert_allclose(symbolic.lambdify("mass_matrix")(q, [0.1, 2.0]), numbers.mass_matrix(q), rtol=1e-12)
    assert "double c; double r;" in " ".join(tree.c_source("mass_matrix").split())


def test_joints_that_follow_each_other_cannot_be_separated():
    tree = gripper()
    before = tree.topology
    with pytest.raises(sd.TopologyError, match="'right' follows 'left', from which it would be separated"):
        tree.detach("l")
    with pytest.raises(sd.TopologyError, match="'right' follows 'left'"):
        tree.detach("palm").detach("l")
    tree = gripper()
    tree.detach("r")
    assert tree.topology.followers == 0
    tree.detach("l")
    assert before.followers == 1
    whole = gripper()
    hand = whole.detach("palm")
    assert (hand.coordinates, whole.coordinates) == (("left",), ())
    # A joint cannot follow the joint that is lost with its base.
    tree.attach(BODY, "palm", sd.revolute(name="tip", mimic=sd.Mimic("wrist")), name="t")
    with pytest.raises(sd.TopologyError, match="'tip' follows 'wrist'"):
        tree.detach("palm")


def test_prefixes_rename_what_is_followed():
    tree = sd.KinematicTree()
    for side in ("a/", "b/"):
        tree.attach(gripper(), "base", prefix=side)
    assert tree.coordinates == ("a/wrist", "a/left", "b/wrist", "b/left")
    assert tree.joint("b/right").mimic.joint == "b/left"


def test_a_lock_holds_all_joints_that_follow():
    tree = gripper()
    tree.attach(BODY, "r", sd.revolute("y", name="flap", mimic=sd.Mimic("right", 3.0)), name="f")
    q = np.array([0.3, 0.2])
    poses, M = tree.link_poses(q), tree.mass_matrix(q)
    twin = tree.copy()
    tree.lock("left", sd.State(tree, q))
    assert tree.coordinates == ("wrist",)
    assert tree.locked == ("left", "right", "flap")
    assert_allclose(tree.link_poses(q[:1]), poses, atol=1e-15)
    assert_allclose(tree.mass_matrix(q[:1]), M[:1, :1], rtol=1e-14)
    tree.unlock("left")
    assert tree.coordinates == twin.coordinates
    assert np.array_equal(tree.mass_matrix(q), M)
    with pytest.raises(sd.TopologyError, match="joint 'right' follows 'left'; lock that one"):
        tree.lock("right")
    tree.lock("left", sd.State(tree, q))
    with pytest.raises(sd.TopologyError, match="joint 'right' follows 'left'; unlock that one"):
        tree.unlock("right")


def test_what_is_locked_is_not_followed_by_further_joints():
    tree = gripper()
    tree.lock("left", at=0.1)
    before = tree.topology
    for leader in ("left", "right"):
        new = sd.prismatic("x", mimic=sd.Mimic(leader), name="new")
        for change in (lambda new=new: tree.attach(BODY, "palm", new), lambda new=new: tree.replace_joint("palm", new)):
            with pytest.raises(sd.TopologyError, match=f"'new' cannot follow '{leader}', which is locked; unlock it"):
                change()
            assert tree.topology is before
    tree.unlock("left")
    tree.attach(BODY, "palm", new)
    assert tree.coordinates == ("wrist", "left")


def test_replacing_a_joint_that_is_followed_is_checked():
    tree = gripper()
    with pytest.raises(sd.TopologyError, match="'right' cannot follow 'left', a spherical joint"):
        tree.replace_joint("l", sd.spherical())
    tree.replace_joint("r", sd.prismatic("x"))
    assert tree.coordinates == ("wrist", "left", "right")
    tree.replace_joint("r", sd.prismatic("x", mimic=sd.Mimic("left")))
    assert tree.coordinates == ("wrist", "left")


@pytest.mark.parametrize(
    "change",
    [
        lambda tree: tree.replace_joint("l", sd.prismatic("x")),
        lambda tree: tree.move("l", "base", sd.prismatic("x")),
    ],
)
def test_a_lock_ends_with_its_joint_unless_others_are_locked_with_it(change):
    tree = gripper()
    tree.lock("left", at=0.1)
    before = tree.topology
    with pytest.raises(sd.TopologyError, match="'left' is locked together with 'right', which follows it; unlock it"):
        change(tree)
    assert tree.topology is before
    tree.detach("r")
    change(tree)
    assert tree.locked == () and tree.lock_of(tree.joints[-1]) is None


def test_a_link_that_was_locked_with_the_rest_flies_on_rigidly():
    """Nothing of what is released can follow what stays, also once it is unlocked there."""
    tree = gripper()
    tree.attach(BODY, "palm", sd.revolute("z", name="tool"), name="hand")
    tree.attach(BODY, "hand", sd.prismatic("x", mimic=sd.Mimic("left", 2.0)), at=(1, 0, 0), name="finger")
    tree.lock("left", at=0.1)
    body = tree.release(sd.State(tree), "hand", into_world=True).released
    assert (body.tree.locked, body.tree.coordinates, body.tree.joint("finger").mimic) == ((), (), None)
    assert body.tree.forward_kinematics("finger", [])[:3, 3].tolist() == [1.2, 0, 0]
