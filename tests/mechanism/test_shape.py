"""Shapes of links: their values, and that they go where their links go."""

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest

import screwdyn as sd
from screwdyn.screws.screw import pose

BALL = sd.Inertia.sphere(1.0, 0.1)
TURN = [[0.8, -0.6, 0], [0.6, 0.8, 0], [0, 0, 1]]
RED, BLUE = sd.Shape.sphere(0.1, color=(1, 0, 0)), sd.Shape.box((0.1, 0.2, 0.3), use="collision")


def test_a_shape_has_all_that_a_picture_needs():
    T = pose(TURN, (1, 2, 3))
    mesh = sd.Shape.mesh(Path("a") / "b.stl", 0.001, pose=T, color=(0.1, 0.2, 0.3), use="collision")
    assert (mesh.kind, mesh.size, mesh.use) == ("mesh", (0.001,) * 3, "collision")
    assert Path(mesh.path) == Path("a/b.stl")
    assert mesh.color == (0.1, 0.2, 0.3, 1.0)
    np.testing.assert_array_equal(mesh.pose, T)
    plain = sd.Shape.cylinder(0.1, 0.5)
    assert (plain.kind, plain.size, plain.path, plain.color, plain.use) == (
        "cylinder",
        (0.1, 0.5),
        None,
        None,
        "visual",
    )
    np.testing.assert_array_equal(plain.pose, np.eye(4))
    assert sd.Shape.capsule(0.1, 0.5).size == (0.1, 0.5)
    assert sd.Shape.sphere(np.float64(0.1)).size == (0.1,)
    assert sd.Shape.mesh("a.stl", (1, -1, 2)).size == (1, -1, 2)


def test_a_shape_cannot_be_changed():
    for shape in (RED, pickle.loads(pickle.dumps(RED)), copy.deepcopy(RED)):
        assert shape == RED
        with pytest.raises(ValueError, match="read-only"):
            shape.pose[0, 3] = 1.0
        with pytest.raises(AttributeError):
            shape.kind = "box"


def test_shapes_are_equal_if_all_their_values_are():
    others = [
        sd.Shape.sphere(0.2, color=(1, 0, 0)),
        sd.Shape.sphere(0.1, color=(1, 0, 0, 0.5)),
        sd.Shape.sphere(0.1),
        sd.Shape.sphere(0.1, color=(1, 0, 0), use="collision"),
        sd.Shape.sphere(0.1, color=(1, 0, 0), pose=(0, 0, 1)),
        sd.Shape.cylinder(0.1, 0.1),
        sd.Shape.capsule(0.1, 0.1),
        sd.Shape.mesh("a.stl"),
        sd.Shape.mesh("b.stl"),
    ]
    assert len({RED, *others}) == 1 + len(others)
    assert sd.Shape.sphere(0.1, color=(1, 0, 0, 1), pose=np.eye(4)) == RED
    assert hash(sd.Shape.sphere(0.1, color=(1, 0, 0, 1), pose=(-0.0, 0, 0))) == hash(RED)
    assert RED != "sphere"


@pytest.mark.parametrize(
    "shape",
    [RED, BLUE, sd.Shape.mesh("a.stl", (1, 2, 3), pose=(0, 0, 1)), sd.Shape.cylinder(1, 2, pose=pose(TURN, (1, 0, 0)))],
)
def test_the_text_of_a_shape_makes_it_again(shape):
    assert eval(repr(shape), {"Shape": sd.Shape}) == shape


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sd.Shape.box((0.1, -0.2, 0.3)), "edge y of a box must be >= 0 m; got -0.2"),
        (lambda: sd.Shape.box(0.1), r"size of a box is \(edge x, edge y, edge z\); got 0.1"),
        (lambda: sd.Shape.box((0.1, 0.2, np.nan)), "finite"),
        (lambda: sd.Shape.box("big"), "must be numbers; got 'big'"),
        (lambda: sd.Shape.cylinder(0.1, -1), "length of a cylinder"),
        (lambda: sd.Shape.capsule(-0.1, 1), "radius of a capsule"),
        (lambda: sd.Shape.sphere([[0.1]]), "size of a sphere must be"),
        (lambda: sd.Shape.mesh(""), "needs the path of its file; got ''"),
        (lambda: sd.Shape.mesh(b"a.stl"), "needs the path of its file; got b'a.stl'"),
        (lambda: sd.Shape.mesh("a.stl", 0), "scale x of a mesh must not be 0"),
        (lambda: sd.Shape.mesh("a.stl", (1, 2)), "scale of a mesh"),
        (lambda: sd.Shape.sphere(0.1, color=(0, 0, 2)), "each from 0 to 1"),
        (lambda: sd.Shape.sphere(0.1, color=(0, 1)), "red, green, blue, opacity"),
        (lambda: sd.Shape.sphere(0.1, color="red"), "colour of a shape must be numbers; got 'red'"),
        (lambda: sd.Shape.sphere(0.1, use="both"), "'visual' or 'collision'; got 'both'"),
        (lambda: sd.Shape.sphere(0.1, pose=np.zeros((4, 4))), "the pose of a sphere is not orthonormal"),
        (lambda: sd.Shape("cone", (1, 2)), "one of box, cylinder, capsule, sphere, mesh; got 'cone'"),
        (lambda: sd.Shape("box", (1, 2, 3), "a.stl"), "only a mesh has a path"),
        (lambda: sd.Link("a", None, 3), "a shape is made by Shape.box.*got 3"),
        (lambda: sd.Link("a", None, [RED, "box"]), "a shape is made by Shape.box.*got 'box'"),
    ],
)
def test_wrong_values_are_named(make, message):
    with pytest.raises(sd.ShapeError, match=message):
        make()


def test_a_size_must_be_a_number_and_not_a_symbol():
    sympy = pytest.importorskip("sympy")
    with pytest.raises(sd.UnboundSymbolError, match="size of a sphere still depends on r"):
        sd.Shape.sphere(sympy.Symbol("r"))
    with pytest.raises(sd.UnboundSymbolError, match="pose of a sphere still depends on x"):
        sd.Shape.sphere(1, pose=(sympy.Symbol("x"), 0, 0))


def test_attach_takes_one_shape_or_several():
    tree = sd.KinematicTree(sd.Link("base", None, BLUE))
    assert tree.shapes("base") == (BLUE,)
    tree.attach(BALL, to="base", name="none")
    tree.attach(BALL, to="base", name="one", shape=RED)
    tree.attach(BALL, to="base", name="two", shape=[RED, BLUE])
    tree.attach(sd.Link("its own", BALL, (RED,)), to="base")
    tree.attach(sd.Link("another", BALL, (RED,)), to="base", shape=BLUE)
    tree.attach(sd.Link("bare", BALL, (RED,)), to="base", shape=())
    assert [tree.shapes(link) for link in tree.links[1:]] == [(), (RED,), (RED, BLUE), (RED,), (BLUE,), ()]
    with pytest.raises(sd.UnknownNameError, match="there is no link 'six'"):
        tree.shapes("six")


def test_a_wrong_shape_changes_nothing():
    tree = sd.KinematicTree()
    before = tree.topology
    with pytest.raises(sd.ShapeError, match=r"a shape is made by.*got 'box'"):
        tree.attach(BALL, to="base", shape="box")
    with pytest.raises(sd.ShapeError, match="a shape is made by"):
        tree.set_shapes("base", "box")
    assert tree.topology is before


def test_shapes_go_with_a_robot_under_a_prefix_and_back():
    hand = sd.KinematicTree(sd.Link("palm", BALL, RED))
    hand.attach(BALL, to="palm", joint=sd.revolute(), name="finger", shape=BLUE)
    robot = sd.KinematicTree()
    robot.attach(hand, to="base", prefix="left/")
    robot.attach(hand, to="base", prefix="right/", name="grip", shape=(RED, BLUE))
    shown = {link: robot.shapes(link) for link in robot.links[1:]}
    assert shown == {
        "left/palm": (RED,),
        "left/finger": (BLUE,),
        "right/grip": (RED, BLUE),
        "right/finger": (BLUE,),
    }
    removed = robot.detach("right/grip")
    assert removed.shapes("right/grip") == (RED, BLUE)
    assert removed.shapes("right/finger") == (BLUE,)
    with robot.attached(BALL, to="left/palm", name="crate", shape=RED):
        assert robot.shapes("crate") == (RED,)


def arm():
    tree = sd.KinematicTree()
    tree.attach(BALL, to="base", joint=sd.revolute("y"), at=(0, 0, 1), name="arm", shape=RED)
    tree.attach(BALL, to="arm", joint=sd.revolute("y"), at=(1, 0, 0), name="hand", shape=BLUE)
    tree.attach(sd.Link("tip"), to="hand")
    return tree


def moving(tree):
    return sd.State(tree, np.full(tree.nv, 0.3), np.full(tree.nv, 0.2))


CHANGES = {
    "copy": lambda tree: tree.copy(),
    "deep copy": copy.deepcopy,
    "pickle": lambda tree: pickle.loads(pickle.dumps(tree)),
    "subs": lambda tree: tree.subs({}),
    "graph": lambda tree: sd.KinematicTree.from_graph(tree.graph),
    "lock": lambda tree: tree.lock("hand"),
    "lock in motion": lambda tree: tree.lock("hand", moving(tree)),
    "lock and unlock": lambda tree: (tree.lock("hand"), tree.unlock("hand")),
    "replace joint": lambda tree: tree.replace_joint("hand", sd.revolute("x")),
    "replace joint in motion": lambda tree: tree.replace_joint("hand", sd.spherical(), moving(tree)),
    "set inertia": lambda tree: tree.set_inertia("hand", sd.Inertia.sphere(2, 0.1)),
    "set inertia in motion": lambda tree: tree.set_inertia("hand", sd.Inertia.sphere(2, 0.1), moving(tree)),
    "move": lambda tree: tree.move("hand", "base", sd.revolute("z")),
    "hand over": lambda tree: tree.move("hand", "base", sd.free(passive=True), state=moving(tree)),
    "release into the world": lambda tree: tree.release(moving(tree), "hand", into_world=True),
    "gravity": lambda tree: setattr(tree, "gravity", (0, 0, 0)),
    "attach": lambda tree: tree.attach(BALL, to="tip"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_keeps_the_shapes(change):
    tree = arm()
    changed = CHANGES[change](tree)
    changed = changed if isinstance(changed, sd.KinematicTree) else tree
    assert [changed.shapes(link) for link in ("base", "arm", "hand", "tip")] == [(), (RED,), (BLUE,), ()]
    assert changed.link("hand").shapes == (BLUE,)


def test_a_payload_brings_its_shapes_and_takes_them_away():
    tree = arm()
    grasp = tree.grasp(moving(tree), BALL, to="tip", twist="co_moving", name="crate", shape=(RED, BLUE))
    assert tree.shapes("crate") == grasp.payload.tree.shapes("crate") == (RED, BLUE)
    free = tree.release(grasp.state, "crate")
    assert free.released.tree.shapes("crate") == (RED, BLUE)
    again = tree.grasp(free.state, free.released, to="hand")
    assert tree.shapes("crate") == (RED, BLUE)
    with pytest.raises(sd.ShapeError, match="leave out shape="):
        tree.grasp(again.state, "crate", to="tip", shape=RED)


def test_events_of_a_run_keep_the_shapes():
    tree = arm()
    events = [
        sd.Grasp(BALL, to="tip", twist="co_moving", name="crate", shape=RED, time=0.01),
        sd.HandOver("crate", to="arm", time=0.02),
        sd.Release("crate", into_world=True, time=0.03),
    ]
    run = sd.simulate(tree, moving(tree), 0.04, events=events, step=0.01)
    assert run.tree.shapes("crate") == (RED,)
    assert run.tree.shapes("hand") == (BLUE,)


def test_shapes_change_no_dynamics():
    tree = sd.robots.two_link()
    handle = tree.attach(BALL, to=tree.links[-1], name="crate")
    q, qd = np.full((2, tree.nv), 0.3)
    state, model, compiled = sd.State(tree, q, qd), tree.model, tree.compile()
    before = tree.dynamics(q, qd)
    tree.set_shapes(handle, [RED, BLUE])
    assert tree.shapes("crate") == (RED, BLUE)
    np.testing.assert_array_equal(tree.model.table, model.table)
    for was, now in zip(before, tree.dynamics(q, qd), strict=True):
        np.testing.assert_array_equal(was, now)
    assert tree.compile()._compilations == compiled._compilations
    assert tree.lock(tree.joints[0], state).state.coordinates == state.coordinates[1:]
    assert tree.detach(handle).shapes("crate") == (RED, BLUE)
