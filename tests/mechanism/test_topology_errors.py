"""Errors of attaching and detaching, after which the tree is unchanged."""

import subprocess
import sys

import numpy as np
import pytest
from small_arm import BODY, arm, fingerprint

import screwdyn as sd
from screwdyn import (
    KinematicTree,
    Link,
    ScrewdynError,
    ShapeError,
    TopologyError,
    UnknownLinkError,
    UnknownNameError,
    fixed,
    revolute,
)

GOOD = {"body": BODY, "to": "lower", "joint": revolute(), "at": (0, 0, 0.1), "name": "new"}
HAND = KinematicTree("palm")
HAND.attach(Link("elbow", BODY), to="palm", joint=revolute())
CLASH = KinematicTree("palm")
CLASH.attach(Link("finger", BODY), to="palm", joint=revolute(name="new"))


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"to": "lowr"}, UnknownLinkError, "there is no link 'lowr'; did you mean 'lower'"),
        ({"to": "zzz"}, UnknownLinkError, "known: base, upper, lower, tool, lamp"),
        ({"to": None}, UnknownLinkError, "no link None"),
        ({"to": 3}, UnknownLinkError, "no link 3"),
        ({"to": []}, UnknownLinkError, "no link"),
        ({"name": "upper"}, TopologyError, "there is a link 'upper' already; give the new one another name"),
        ({"name": "base"}, TopologyError, "there is a link 'base' already"),
        ({"name": "elbow"}, TopologyError, "there is a joint 'elbow' already"),
        ({"joint": revolute(name="shoulder")}, TopologyError, "there is a joint 'shoulder' already"),
        ({"joint": fixed("tool")}, TopologyError, "there is a joint 'tool' already"),
        ({"name": 3}, TopologyError, "non-blank string"),
        ({"name": "  "}, TopologyError, "non-blank string without control characters as its name; got '  '"),
        ({"name": "", "prefix": "left/"}, TopologyError, "non-blank string"),
        ({"name": 3, "prefix": "left/"}, TopologyError, "non-blank string"),
        ({"prefix": 3}, TopologyError, "prefix must be a string; got 3"),
        ({"prefix": None}, TopologyError, "prefix must be a string; got None"),
        ({"prefix": "up", "name": "per"}, TopologyError, "there is a link 'upper' already; .* prefix='left/'"),
        ({"body": arm(), "to": "base"}, TopologyError, "there is a link 'upper' already; .* prefix='left/'"),
        ({"body": HAND}, TopologyError, "there is a joint 'elbow' already"),
        ({"body": CLASH}, TopologyError, "there is a joint 'new' already"),
        ({"body": None}, TopologyError, "only an Inertia, a Link or a KinematicTree"),
        ({"body": 3.0}, TopologyError, "got float"),
        ({"body": "crate"}, TopologyError, "got str"),
        ({"body": {"mass": 1}}, TopologyError, "got dict"),
        ({"joint": "revolute"}, TopologyError, "joint must be made by"),
        ({"joint": revolute}, TopologyError, "joint must be made by"),
        ({"at": (1, 2)}, ShapeError, "the pose of 'new' on 'lower'"),
        ({"at": np.eye(3)}, ShapeError, "the pose of 'new' on 'lower'"),
        ({"at": 2 * np.eye(4)}, ShapeError, "the pose of 'new' on 'lower'"),
        ({"at": np.diag([1, 1, -1, 1])}, ShapeError, "the pose of 'new' on 'lower'"),
        ({"at": np.full((4, 4), np.nan)}, ShapeError, "the pose of 'new' on 'lower'"),
        ({"at": (0, 0, np.inf)}, ShapeError, "the pose of 'new' on 'lower'"),
        ({"at": "here"}, ShapeError, "the pose of 'new' on 'lower'"),
    ],
)
def test_a_refused_attachment_leaves_no_trace(changes, error, message):
    tree = arm()
    before, model = fingerprint(tree), tree.model
    with pytest.raises(error, match=message) as caught:
        tree.attach(**GOOD | changes)
    assert isinstance(caught.value, ScrewdynError)
    assert fingerprint(tree) == before
    assert tree.model is model
    with pytest.raises(error), tree.attached(**GOOD | changes):
        pass  # pragma: no cover
    assert fingerprint(tree) == before


@pytest.mark.parametrize(
    ("what", "error", "message"),
    [
        ("base", TopologyError, "'base' is the base, which cannot be detached"),
        ("toool", UnknownLinkError, "did you mean 'tool'"),
        ("shoulder", UnknownLinkError, "no link 'shoulder'"),
        (None, UnknownLinkError, "no link None"),
    ],
)
def test_a_refused_detachment_leaves_no_trace(what, error, message):
    tree = arm()
    before = fingerprint(tree)
    with pytest.raises(error, match=message):
        tree.detach(what)
    assert fingerprint(tree) == before


@pytest.mark.parametrize("ask", ["link", "parent", "path", "subtree"])
@pytest.mark.parametrize("name", ["uper", None, ("upper",), 3])
def test_unknown_links_are_named(ask, name):
    with pytest.raises(UnknownLinkError, match="there is no link"):
        getattr(arm(), ask)(name)


@pytest.mark.parametrize("name", ["elbo", None])
def test_unknown_joints_are_named(name):
    with pytest.raises(UnknownLinkError, match=r"there is no joint .*; (did you mean 'elbow'|known: shoulder)"):
        arm().joint(name)


def test_the_name_of_a_link_given_for_a_joint_is_told_apart():
    with pytest.raises(UnknownNameError, match="no joint 'lower': that is a link, which joint 'elbow' carries"):
        arm().joint("lower")


@pytest.mark.parametrize("base", ["", None, 3, BODY])
def test_a_base_needs_a_name(base):
    with pytest.raises(TopologyError, match="non-blank string"):
        KinematicTree(base)


def test_the_name_of_a_joint_given_for_a_link_is_told_apart():
    tree = arm()
    for ask in (tree.link, tree.path, tree.detach, lambda name: tree.attach(BODY, to=name)):
        with pytest.raises(UnknownNameError, match="no link 'elbow': that is a joint, which carries the link 'lower'"):
            ask("elbow")


def test_two_like_robots_need_a_prefix():
    pair = arm()
    with pytest.raises(TopologyError, match="a link 'upper' already; attach the tree with a prefix"):
        pair.attach(arm(), to="base", name="second")


def test_a_rotation_where_a_pose_is_wanted_is_told_about_poses():
    with pytest.raises(ShapeError, match=r"got shape \(3, 3\); for a rotation alone, use screw.pose\(R, \(0, 0, 0\)\)"):
        arm().attach(BODY, to="tool", at=np.eye(3))


@pytest.mark.parametrize("label", ["hip[wz]", "hip[x]"])
def test_a_joint_named_like_a_freedom_of_another_is_refused(label):
    body = sd.Inertia.sphere(1.0, 0.1)
    hip, other = sd.spherical(name="hip"), sd.revolute("z", name=label)
    for first, second in ((hip, other), (other, hip)):
        tree = sd.KinematicTree()
        tree.attach(body, to="base", joint=first, name="one")
        before = tree.topology
        with pytest.raises(sd.TopologyError, match=r"joint and of a freedom or position of joint .*hip"):
            tree.attach(body, to="one", joint=second, name="two")
        assert tree.topology is before
    tree = sd.KinematicTree()
    tree.attach(body, to="base", joint=sd.revolute("z", name="hip"), name="one")
    tree.attach(body, to="one", joint=sd.revolute("z", name="hip[wz]"), name="two")
    assert tree.coordinates == ("hip", "hip[wz]")


def test_a_handle_where_a_name_is_wanted_is_told_about_its_name():
    tree = arm()
    handle = tree.attach(BODY, to="base", name="crate")
    with pytest.raises(UnknownLinkError, match="given by its name, 'crate'"):
        tree.parent(handle)


@pytest.mark.slow
def test_handles_of_other_processes_are_others():
    """A handle that was pickled in one process names no attachment of another."""
    text = "import screwdyn as sd; print(sd.KinematicTree().attach(sd.Link('a'), to='base')._serial)"
    serials = {subprocess.run([sys.executable, "-c", text], capture_output=True, check=True).stdout for _ in range(2)}
    assert len(serials) == 2


MASKED = np.ma.masked_array([0.0, 0.0, 1.0], mask=[0, 0, 1])


@pytest.mark.parametrize("far", [(0, 0, 1e51), MASKED])
def test_numbers_beyond_reason_and_masked_arrays_are_refused(far):
    tree = arm()
    for wrong in (
        lambda: tree.attach(BODY, to="base", at=far),
        lambda: setattr(tree, "gravity", far),
        lambda: sd.Inertia(1.0, far),
        lambda: sd.Inertia(1e51),
    ):
        before = fingerprint(tree)
        with pytest.raises(sd.ScrewdynError):
            wrong()
        assert fingerprint(tree) == before
