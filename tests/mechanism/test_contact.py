"""Contacts as values of a tree: points, bodies, copies, files and errors."""

import networkx as nx
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import screwdyn as sd

CORNERS = [(x, y, z) for x in (0.2, -0.2) for y in (0.15, -0.15) for z in (0.1, -0.1)]


def centers(contact):
    return [spot.at.pose[:3, 3] for spot in contact.spots]


def crate_on_table():
    tree = sd.KinematicTree("room")
    tree.attach(sd.Inertia.box(5.0, (1, 1, 0.1)), to="room", joint=sd.prismatic("z"), name="table")
    crate = sd.Inertia.box(3.0, (0.4, 0.3, 0.2))
    tree.attach(crate, to="room", joint=sd.free(), name="crate", shape=sd.Shape.box((0.4, 0.3, 0.2)))
    handle = tree.touch("crate", to="table", on=sd.Plane((0, 0, 2), 0.05), friction=0.4, restitution=0.2, name="top")
    return tree, handle


def same(one, other):
    for a, b in zip(one.topology.contacts.values(), other.topology.contacts.values(), strict=True):
        for what in ("name", "link", "to", "on", "shapes", "rounding", "friction", "restitution"):
            assert getattr(a, what) == getattr(b, what)
        assert_array_equal(a.points, b.points)
        assert_array_equal(a.radii, b.radii)


def test_touch_and_part():
    tree, handle = crate_on_table()
    assert tree.contacts == ("top",) == (handle.name,)
    contact = tree.contact("top")
    assert_allclose(centers(contact), CORNERS, atol=1e-15)
    assert contact.shapes == tree.shapes("crate")
    assert contact.on == sd.Plane((0, 0, 1), 0.05)
    assert (contact.friction, contact.restitution, tree.nv) == (0.4, 0.2, 7)
    assert str(tree).endswith("\ncrate ↔ table [contact top]")
    assert "contact top" in tree._repr_html_()
    revision = tree.revision
    tree.part(handle)
    assert (tree.contacts, tree.revision) == ((), revision + 1)
    with pytest.raises(sd.UnknownNameError, match="top"):
        tree.part("top")
    tree.touch("crate", to="table", on=sd.Plane(), name="top")
    with pytest.raises(sd.StaleHandleError, match="has been removed since"):
        tree.part(handle)


def test_points_of_shapes():
    """Collision shapes come before what a link looks like; ends of capsules keep their radius."""
    tree, pose = sd.KinematicTree(), sd.screw.exp([0, np.pi / 2, 0, 0, 0, 0])
    solid = [
        sd.Shape.cylinder(0.1, 0.6),
        sd.Shape.capsule(0.1, 0.6, pose=pose, use="collision"),
        sd.Shape.sphere(0.2, pose=(1, 2, 3), use="collision"),
    ]
    tree.attach(sd.Inertia.box(1, (1, 1, 1)), to="base", joint=sd.free(), name="leg", shape=solid)
    tree.touch("leg", to="base", on=sd.Plane())
    contact = tree.contact("leg/base")
    assert_allclose(centers(contact), [(0.3, 0, 0), (-0.3, 0, 0), (1, 2, 3)], atol=1e-15)
    assert_array_equal([spot.at.radius for spot in contact.spots], [0.1, 0.1, 0.2])
    for array in (contact.points, contact.radii):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_shapes_of_both_links():
    """Corners of each on the other, and edges that cross; of rounded boxes these are within the size."""
    tree = sd.KinematicTree()
    for name in ("hand", "table"):
        box = [sd.Shape.sphere(1.0), sd.Shape.box((2, 2, 2), pose=(0, 0, 1), use="collision")]
        tree.attach(sd.Inertia.sphere(1, 1), to="base", joint=sd.free(), name=name, shape=box)
    tree.touch("hand", "table", radius=0.1)
    contact = tree.contact("hand/table")
    assert contact.on == tree.shapes("table")[1]
    assert [spot.turned for spot in contact.spots] == [False] * 8 + [True] * 8 + [False] * 144
    for spot in contact.spots:
        assert_allclose(np.abs(spot.at.pose[:3, 3] - (0, 0, 1)) + np.abs(spot.at.pose[:3, 2] * spot.at.half[2]), 0.9)
    kinds = {"ball": sd.Shape.sphere(0.1), "rod": sd.Shape.capsule(0.1, 1)}
    for name, shape in kinds.items():
        tree.attach(sd.Inertia.sphere(1, 1), to="base", joint=sd.free(), name=name, shape=shape)
    for pair, count in {("ball", "rod"): 1, ("rod", "ball"): 1, ("rod", "hand"): 22, ("ball", "hand"): 1}.items():
        tree.touch(*pair)
        assert len(tree.contact("/".join(pair)).spots) == count
    tree.attach(sd.Inertia.sphere(1, 1), to="base", name="both", shape=[*kinds.values()])
    with pytest.raises(sd.ContactError, match="link 'both' has 2 shapes that could be touched; give one as on="):
        tree.touch("hand", "both")


def test_contacts_go_with_copies_prefixes_and_removed_links():
    tree, _ = crate_on_table()
    tree.attach(sd.Inertia.sphere(0.1, 0.02), to="crate", joint=sd.free(), name="marble")
    tree.touch("marble", to="crate", on=sd.Plane((0, 0, 1), 0.1), points=(0, 0, 0), radius=0.02, name="lid")
    hall = sd.KinematicTree()
    hall.attach(tree, to="base", prefix="left/")
    assert hall.contacts == ("left/top", "left/lid")
    assert (hall.contact("left/lid").link, hall.contact("left/lid").to) == ("left/marble", "left/crate")
    twin = tree.copy()
    removed = twin.detach("crate")
    assert (removed.contacts, twin.contacts, tree.contacts) == (("lid",), (), ("top", "lid"))
    assert_allclose(removed.contact_gaps(removed.neutral()), [-0.12])
    same(tree, tree.subs({}))


def test_contacts_stay_when_links_move_to_other_places():
    tree, _ = crate_on_table()
    tree.attach(sd.Inertia.sphere(1, 0.1), to="table", joint=sd.revolute("y"), name="hand")
    tree.move("crate", to="hand", joint=sd.fixed())
    tree.lock("hand")
    assert tree.contacts == ("top",)
    assert tree.subtree("hand") == ("hand", "crate")


def test_files():
    tree, _ = crate_on_table()
    tree.touch("crate", to="table", on=sd.Shape.capsule(0.1, 0.5, pose=(0, 0, 1)), points=(0, 0, 0), name="bar")
    tree.touch("crate", to="table", on=sd.Shape.box((1, 1, 0.1)), radius=0.001, name="board")
    same(tree, sd.KinematicTree.from_json(tree.to_json()))
    same(tree, sd.KinematicTree.from_graph(nx.DiGraph(tree.graph)))
    for write, error in ((tree.to_urdf, sd.URDFError), (tree.to_mjcf, sd.ModelError)):
        with pytest.raises(error, match="contact 'top' has no element here; use to_json"):
            write()
    text = tree.to_json().replace('"friction": 0.4', '"friction": -0.4')
    with pytest.raises(
        sd.JSONError, match=r"contacts\[0\].*friction of contact 'top' must be a number from 0 to 1e\+50; got -0.4"
    ):
        sd.KinematicTree.from_json(text)
    graph = nx.DiGraph(tree.graph)
    graph.remove_node("crate")
    with pytest.raises(sd.UnknownNameError, match="contact 'top' connects 'crate', which is not in the graph"):
        sd.KinematicTree.from_graph(graph)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (dict(link="nothing"), sd.UnknownNameError, "nothing"),
        (dict(to="crate"), sd.TopologyError, "a contact connects two links; got 'crate' twice"),
        (dict(to="crate", on=None, points=None), sd.TopologyError, "a contact connects two links; got 'crate' twice"),
        (dict(name="table"), sd.TopologyError, "there is a link, joint, loop or contact 'table' already"),
        (dict(name="top"), sd.TopologyError, "there is a link, joint, loop or contact 'top' already"),
        (dict(name=""), sd.TopologyError, "the name of a contact must be"),
        (dict(on=1), sd.ContactError, r"needs a Plane\(…\), Shape.sphere\(…\), .* as on=; got 1"),
        (dict(on=sd.Shape.cylinder(1, 1)), sd.ContactError, "needs a Plane"),
        (
            dict(on=sd.Shape.box((1, 1, 1)), points=None),
            sd.ContactError,
            "sharp edges: there is no normal.*give a radiu",
        ),
        (
            dict(points=None, radius=0.1),
            sd.ContactError,
            r"the edges of Shape.box.* are too short for a radius of 0.1 m",
        ),
        (
            dict(points=None, radius=(0.1, 0.1)),
            sd.ContactError,
            "the rounding of contact 'new' must be a number from 0",
        ),
        (dict(on=None), sd.ContactError, "link 'table' has no shapes"),
        (dict(link="table", to="crate", points=None), sd.ContactError, "'table' has no shapes"),
        (dict(on=sd.Shape.box((1, 1, 0))), sd.ContactError, "no thickness: there is no normal.*give the points a rad"),
        (dict(points=(1, 2)), sd.ShapeError, r"the points of contact 'new' must be finite numbers of shape \(k, 3\)"),
        (dict(points=[]), sd.ContactError, "contact 'new' has no point; give points="),
        (dict(radius=-1), sd.ShapeError, "must be numbers >= 0 m, one or 1; got"),
        (
            dict(friction=-1),
            sd.ContactError,
            r"the friction of contact 'new' must be a number from 0 to 1e\+50; got -1",
        ),
        (dict(friction=True), sd.ContactError, r"from 0 to 1e\+50; got True"),
        (dict(friction=1e51), sd.ContactError, r"from 0 to 1e\+50; got 1e\+51"),
        (dict(restitution=1.1), sd.ContactError, "the restitution of contact 'new' must be a number from 0 to 1"),
    ],
)
def test_errors(given, error, message):
    tree, _ = crate_on_table()
    before = tree.topology
    with pytest.raises(error, match=message):
        tree.touch(**dict(link="crate", to="table", on=sd.Plane(), points=(0, 0, 0), name="new") | given)
    assert tree.topology is before


@pytest.mark.parametrize(
    "given", [((0, 0, 0),), ((0, 0, np.inf),), ((0, 0, 1), np.nan), ((0, 1),), ("up",), ((0, 1, 0), (0, -9, 0))]
)
def test_planes_that_are_none(given):
    with pytest.raises(sd.ShapeError, match="of a Plane"):
        sd.Plane(*given)


def test_a_link_cannot_take_the_name_of_a_contact():
    tree, _ = crate_on_table()
    with pytest.raises(sd.TopologyError, match="there is a contact 'top' already"):
        tree.attach(sd.Inertia.point(1), to="room", name="top")
