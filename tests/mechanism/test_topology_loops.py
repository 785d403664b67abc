"""Closing and opening of loops, and changes of trees that have them."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import screwdyn as sd
from screwdyn.testing import random_inertia


def ring(name=None):
    """Two links on the base, and a tool on the second; a pin between the two closes a loop."""
    rng = np.random.default_rng(3)
    tree = sd.KinematicTree("frame")
    tree.attach(random_inertia(rng), to="frame", joint=sd.revolute("z"), name="left")
    tree.attach(random_inertia(rng), to="frame", joint=sd.revolute("x"), at=(1, 0, 0), name="right")
    tree.attach(random_inertia(rng), to="right", joint=sd.spherical(), at=(0, 0, 1), name="tool")
    handle = tree.close("tool", to="left", joint=sd.cylindrical("y", (0, 0, 0.2)), at=(0, 1, 0), name=name)
    return tree, handle


def same_loops(tree, other):
    for one, two in zip(tree.topology.loops.values(), other.topology.loops.values(), strict=True):
        assert (one.name, one.link, one.to) == (two.name, two.link, two.to)
        assert_array_equal(one.home, two.home)
        assert_array_equal(one.joint.screws, two.joint.screws)


def test_close_and_open():
    tree, handle = ring()
    assert tree.loops == ("tool-left",) == (handle.name,)
    loop = tree.loop("tool-left")
    assert (loop.link, loop.to, loop.joint.kind) == ("tool", "left", "cylindrical")
    assert tree.constraint_jacobian(tree.neutral()).shape == (4, 5)
    assert (tree.nv, len(tree.links)) == (5, 4)  # a loop adds neither freedoms nor links
    revision = tree.revision
    tree.open(handle)
    assert (tree.loops, tree.revision) == ((), revision + 1)
    with pytest.raises(sd.UnknownNameError, match="tool-left"):
        tree.open(handle)
    tree.close("tool", to="left", name="tool-left")
    with pytest.raises(sd.StaleHandleError, match="has been opened since"):
        tree.open(handle)
    assert tree.loops == ("tool-left",)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (dict(link="nothing", to="left"), sd.UnknownNameError, "nothing"),
        (dict(link="tool", to=None), sd.UnknownNameError, "None"),
        (dict(link="tool", to="tool"), sd.TopologyError, "two links"),
        (dict(link="tool", to="left", name="pin"), sd.TopologyError, "already"),
        (dict(link="tool", to="left", name="left"), sd.TopologyError, "already"),
        (dict(link="tool", to="left", name=""), sd.TopologyError, "non-blank"),
        (dict(link="tool", to="left", joint=3), sd.TopologyError, "joint must be"),
        (dict(link="tool", to="left", joint=sd.free()), sd.JointError, "closes nothing"),
        (dict(link="tool", to="left", joint=sd.universal("x", "y")), sd.JointError, "no group"),
        (dict(link="tool", to="left", joint=sd.revolute("x", damping=1.0)), sd.JointError, "no damping"),
        (dict(link="tool", to="left", joint=sd.revolute("x", limits=(-1, 1))), sd.JointError, "no limits"),
        (dict(link="tool", to="left", at=(1, 2)), sd.ShapeError, "pose of 'tool' on 'left'"),
    ],
)
def test_wrong_loops_change_nothing(given, error, message):
    tree, _ = ring("pin")
    before = tree.topology
    with pytest.raises(error, match=message):
        tree.close(**given)
    assert tree.topology is before


def test_a_tree_is_attached_with_its_loops():
    part, _ = ring("pin")
    whole = sd.KinematicTree()
    handles = [whole.attach(part, to="base", at=(k, 0, 0), name=f"{k}", prefix=f"{k}/") for k in range(2)]
    assert whole.loops == ("0/pin", "1/pin")
    assert (whole.loop("1/pin").link, whole.loop("1/pin").to) == ("1/tool", "1/left")
    q = part.integrate(part.neutral(), np.linspace(-1, 1, 5))
    J = whole.constraint_jacobian(np.tile(q, 2))
    assert_allclose(J, np.kron(np.eye(2), part.constraint_jacobian(q)), rtol=0, atol=1e-14)
    removed = whole.detach(handles[0])
    assert (removed.loops, whole.loops) == (("0/pin",), ("1/pin",))
    assert_array_equal(removed.constraint_jacobian(q), part.constraint_jacobian(q))
    whole.close("1/tool", to="base", name="0/pin")
    before = whole.topology
    with pytest.raises(sd.TopologyError, match="'0/pin' already"):
        whole.attach(removed, to="base")
    assert whole.topology is before


def test_a_link_of_a_loop_is_not_detached_alone():
    tree, _ = ring("pin")
    before = tree.topology
    for link in ("tool", "right", "left"):
        with pytest.raises(sd.TopologyError, match="loop 'pin' connects 'tool' and 'left', which would be separated"):
            tree.detach(link)
        assert tree.topology is before
    tree.open("pin")
    tree.detach("right")


@pytest.mark.parametrize("link", ["tool", "right", "left"])
def test_a_structure_without_an_end_of_a_loop_has_no_loop(link):
    tree, _ = ring("pin")
    assert tree.topology.detach(link)[0].loops == {}


def test_changes_keep_the_loops():
    tree, handle = ring("pin")
    tree.move("tool", to="frame", joint=sd.revolute("y"))
    assert tree.loops == ("pin",)
    tree.set_inertia("tool", None)
    tree.lock("left")
    tree.unlock("left")
    tree.gravity = (0, 0, -1)
    tree.replace_joint("left", sd.prismatic("x"))
    tree.set_shapes("left", ())
    tree.attach(sd.Inertia.point(1), to="left")
    assert tree.loops == ("pin",)
    assert tree.constraint_jacobian(tree.neutral()).shape == (4, 3)
    copy = tree.copy()
    copy.open(handle)
    assert (tree.loops, copy.loops) == (("pin",), ())
    with pytest.raises(RuntimeError), tree.transaction():
        tree.open("pin")
        raise RuntimeError
    assert tree.loops == ("pin",)


def test_files_keep_the_loops():
    tree, _ = ring("pin")
    others = [
        sd.KinematicTree.from_json(tree.to_json()),
        sd.KinematicTree.from_graph(tree.graph),
        pickle.loads(pickle.dumps(tree)),
    ]
    q = tree.integrate(tree.neutral(), np.linspace(-1, 1, 5))
    for other in others:
        same_loops(tree, other)
        assert_array_equal(other.constraint_jacobian(q), tree.constraint_jacobian(q))
    assert "pin" in str(tree)
