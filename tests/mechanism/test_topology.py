"""Attaching and detaching. Errors are in ``test_topology_errors``."""

import contextlib
import copy
import pickle

import networkx as nx
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from small_arm import BODY, arm, fingerprint

from screwdyn import (
    Inertia,
    KinematicTree,
    Link,
    Mimic,
    StaleHandleError,
    TopologyError,
    UnknownLinkError,
    fixed,
    helical,
    prismatic,
    revolute,
    spherical,
)
from screwdyn.testing import random_inertia, random_pose, random_tree

# What there is


def test_names_come_in_order_of_attachment():
    tree = arm()
    assert tree.base == "base"
    assert tree.links == ("base", "upper", "lower", "tool", "lamp")
    assert tree.joints == ("shoulder", "elbow", "tool", "lamp")
    assert tree.coordinates == ("shoulder", "elbow", "lamp")
    assert tree.nq == tree.nv == 3
    assert tree.mass == 4


@pytest.mark.parametrize("what", ["links", "joints", "coordinates", "positions"])
def test_names_are_found_once_in_a_revision_and_are_not_sent_with_it(what):
    tree = random_tree(np.random.default_rng(0), 3)
    size = len(pickle.dumps(tree.topology))
    names = getattr(tree, what)
    assert getattr(tree, what) is names
    assert getattr(tree.copy(), what) is names
    assert len(pickle.dumps(tree.topology)) == size
    with tree.attached(BODY, to=tree.links[-1], joint=spherical(), name="ball"):
        assert len(getattr(tree, what)) > len(names)
    assert getattr(tree, what) == names


def test_paths_subtrees_and_parents():
    tree = arm()
    assert tree.path("tool") == ("base", "upper", "lower", "tool")
    assert tree.path("base") == ("base",)
    assert tree.subtree("upper") == ("upper", "lower", "tool")
    assert tree.subtree("base") == tree.links
    assert tree.parent("lower") == "upper"
    assert tree.parent("base") is None


def test_links_and_joints_are_found_by_name():
    tree = arm()
    assert tree.link("upper").inertia is BODY
    assert tree.joint("elbow").kind == "revolute"
    assert tree.joint("tool").kind == "fixed"


def test_joints_and_links_are_found_by_each_other():
    tree = KinematicTree()
    tree.attach(BODY, to="base", joint=revolute("z", name="hip"), name="leg")
    tree.attach(BODY, to="leg", name="foot")
    assert [tree.link_of(joint) for joint in tree.joints] == ["leg", "foot"]
    assert [tree.joint_of(link) for link in tree.links] == [None, "hip", "foot"]
    with pytest.raises(UnknownLinkError, match="that is a link, which joint 'hip' carries"):
        tree.link_of("leg")
    with pytest.raises(UnknownLinkError, match="that is a joint, which carries the link 'leg'"):
        tree.joint_of("hip")


def test_a_copy_without_dry_friction():
    rough, smooth = KinematicTree(), KinematicTree()
    for tree, friction in ((rough, 0.3), (smooth, 0.0)):
        tree.attach(BODY, to="base", joint=revolute("z", friction=friction, damping=0.2, name="hip"), name="leg")
        tree.attach(BODY, to="leg", joint=revolute("x", friction=2 * friction), name="foot")
        mimic = Mimic("hip", 2.0)
        tree.attach(BODY, to="leg", joint=revolute("x", friction=friction, mimic=mimic), name="follower")
        tree.attach(BODY, to="leg", joint=revolute("y", friction=friction), name="hand")
        tree.lock("hand", at=0.4)
    before = fingerprint(rough)
    assert rough.model.joint_forces.friction.tolist() == [0.3 + 2 * 0.3, 0.6]
    found = rough.without_friction()
    assert fingerprint(rough) == before
    for tree in (found, smooth):
        tree.unlock("hand")
    assert found.to_json() == smooth.to_json()
    handle = rough.attach(BODY, to="hand", name="crate")
    assert rough.without_friction().detach(handle).base == "crate"


def test_the_graph_tells_everything_and_cannot_be_edited():
    graph = arm().graph
    assert nx.is_arborescence(graph)
    assert graph.nodes["lower"]["link"].inertia is BODY
    edge = graph.edges["upper", "lower"]
    assert edge["coordinate"] == edge["name"] == "elbow"
    assert_array_equal(edge["home"][:3, 3], [0, 0, 1])
    assert graph.edges["lower", "tool"]["coordinate"] is None
    with pytest.raises(nx.NetworkXError):
        graph.add_edge("tool", "base")
    with pytest.raises(ValueError, match="read-only"):
        edge["home"][0, 3] = 7


def test_print_shows_the_tree():
    tree = arm()
    tree.attach(Inertia.point(0.25), to="tool", joint=helical("z", 0.1, passive=True, name="bolt"), name="nut")
    assert str(tree).splitlines() == [
        "base",
        "├─ upper [revolute shoulder] 1 kg",
        "│  └─ lower [revolute elbow] 1 kg",
        "│     └─ tool [fixed]",
        "│        └─ nut [passive helical bolt] 0.25 kg",
        "└─ lamp [prismatic] 2 kg",
    ]
    assert str(KinematicTree("world")) == "world"
    assert repr(tree) == "<KinematicTree 'base': 6 links, 4 coordinates, 4.25 kg>"


# Attach


def test_attach_takes_inertias_links_and_trees():
    tree = KinematicTree()
    assert tree.attach(BODY, to="base").name == "payload"
    assert tree.attach(BODY, to="payload").name == "payload_2"
    assert tree.attach(BODY, to="base", name="box").name == "box"
    assert tree.attach(Link("flange"), to="box").name == "flange"
    assert tree.attach(Link("flange", BODY), to="box", name="flange2").name == "flange2"
    hand = KinematicTree("palm")
    hand.attach(Link("finger", BODY), to="palm", joint=prismatic("x"))
    assert tree.attach(hand, to="flange", joint=revolute("z", name="wrist")).name == "palm"
    assert tree.attach(hand.detach("finger"), to="palm", name="spare").name == "spare"
    assert tree.links[-3:] == ("palm", "finger", "spare")
    assert tree.coordinates == ("wrist", "finger")
    assert tree.parent("finger") == "palm"


def test_a_payload_s_default_name_is_one_that_is_free():
    tree = KinematicTree()
    tree.attach(Link("payload"), to="base")
    tree.attach(Link("x"), to="base", joint=fixed("payload_2"))
    assert tree.attach(BODY, to="base").name == "payload_3"


def test_attaching_never_renumbers():
    tree = random_tree(np.random.default_rng(0), 6)
    for k in range(5):
        before = tree.links, tree.joints, tree.coordinates
        on = ["base", "link3", "link1", "link6", "payload"][k]
        tree.attach(BODY, to=on, joint=[revolute(), None, prismatic()][k % 3])
        for old, new in zip(before, (tree.links, tree.joints, tree.coordinates), strict=True):
            assert new[: len(old)] == old


def test_an_attached_tree_is_copied_not_shared():
    tree, hand = KinematicTree(), KinematicTree("palm")
    hand.attach(Link("finger", BODY), to="palm", joint=prismatic("x"))
    tree.attach(hand, to="base")
    hand.attach(BODY, to="finger")
    hand.detach("payload")
    hand.detach("finger")
    assert tree.links == ("base", "palm", "finger")
    tree.detach("finger")
    assert hand.links == ("palm",)


def test_a_tree_may_be_attached_to_a_copy_of_itself_under_other_names():
    tree = arm()
    spare = KinematicTree("second")
    spare.attach(Link("rod", BODY), to="second", joint=revolute())
    tree.attach(spare, to="tool")
    assert tree.coordinates == ("shoulder", "elbow", "lamp", "rod")
    with pytest.raises(TopologyError, match="there is a link 'second' already"):
        tree.attach(spare, to="tool")
    with pytest.raises(TopologyError, match="there is a link 'rod' already"):
        tree.attach(spare, to="tool", name="third")
    for name in (None, "third"):
        with pytest.raises(TopologyError, match="cannot be attached to itself"):
            tree.attach(tree, to="tool", name=name)


def test_poses_may_be_left_out_or_given_in_three_ways():
    tree = KinematicTree()
    tree.attach(Link("a"), to="base")
    tree.attach(Link("b"), to="base", at=(1, 2, 3))
    T = random_pose(np.random.default_rng(0))
    tree.attach(Link("c"), to="b", at=T)
    T[0, 3] = 99  # what was given is copied
    assert_array_equal(tree.forward_kinematics("a", []), np.eye(4))
    assert_array_equal(tree.forward_kinematics("b", [])[:3, 3], [1, 2, 3])
    assert tree.forward_kinematics("c", [])[0, 3] < 10


def test_a_prefix_begins_all_names_that_are_attached():
    tree = KinematicTree("torso")
    handles = [
        tree.attach(arm(), to="torso", at=(0, y, 0), prefix=side) for side, y in (("left/", 0.3), ("right/", -0.3))
    ]
    assert [handle.name for handle in handles] == ["left/base", "right/base"]
    links, coordinates = ("base", "upper", "lower", "tool", "lamp"), ("shoulder", "elbow", "lamp")
    assert tree.links == ("torso", *(f"left/{x}" for x in links), *(f"right/{x}" for x in links))
    assert tree.coordinates == (*(f"left/{x}" for x in coordinates), *(f"right/{x}" for x in coordinates))
    assert tree.joints[:2] == ("left/base", "left/shoulder")
    assert tree.path("right/tool") == ("torso", "right/base", "right/upper", "right/lower", "right/tool")
    M, alone = tree.mass_matrix(tree.neutral()), arm().mass_matrix(np.zeros(3))
    assert_array_equal(M[:3, :3], M[3:, 3:])
    assert_allclose(M[:3, :3], alone, rtol=1e-14)
    assert_array_equal(M[:3, 3:], 0)
    assert tree.detach(handles[0]).links == tuple(f"left/{x}" for x in links)


def test_a_prefix_begins_given_names_too():
    tree = KinematicTree()
    assert tree.attach(BODY, to="base", prefix="a/").name == "a/payload"
    assert tree.attach(BODY, to="base", prefix="a/").name == "a/payload_2"
    assert tree.attach(BODY, to="base", joint=revolute(name="pin"), name="box", prefix="a/").name == "a/box"
    assert tree.attach(Link("frame"), to="a/box", prefix="b/").name == "b/frame"
    with tree.attached(arm(), to="b/frame", name="stand", joint=spherical(name="ball"), prefix="c/") as handle:
        assert handle.name == "c/stand"
        assert tree.parent("c/upper") == "c/stand"
        assert tree.coordinates[:4] == ("a/pin", "c/ball[wx]", "c/ball[wy]", "c/ball[wz]")
    assert tree.coordinates == ("a/pin",)


def test_the_same_module_ten_times():
    module = KinematicTree("in")
    module.attach(Link("out", BODY), to="in", joint=revolute("y", name="bend"), at=(0, 0, 0.2))
    tree, to = KinematicTree(), "base"
    for k in range(10):
        tree.attach(module, to=to, prefix=f"{k}/")
        to = f"{k}/out"
    assert tree.coordinates == tuple(f"{k}/bend" for k in range(10))
    assert_allclose(tree.forward_kinematics("9/out", np.zeros(10))[:3, 3], [0, 0, 2])
    # The names are valid in other forms.
    assert "void jacobian" in tree.c_source(["jacobian:9/out"])
    assert str(tree.symbolic().q[3]) == "3/bend"


def test_a_tree_may_be_attached_to_itself_with_a_prefix():
    tree = arm()
    tree.attach(tree, to="tool", prefix="second/")
    assert tree.links == (*arm().links, *(f"second/{link}" for link in arm().links))


# Detach


def test_detach_by_handle_or_name_returns_the_subtree_as_a_tree():
    tree = arm()
    handle = tree.attach(BODY, to="tool", joint=revolute(name="swing"), name="crate")
    removed = tree.detach("lower")
    assert tree.links == ("base", "upper", "lamp")
    assert tree.coordinates == ("shoulder", "lamp")
    assert isinstance(removed, KinematicTree)
    assert removed.base == "lower"
    assert removed.links == ("lower", "tool", "crate")
    assert removed.coordinates == ("swing",)
    assert removed.link("lower").inertia is BODY
    assert_array_equal(removed.gravity, tree.gravity)
    assert_array_equal(removed.forward_kinematics("tool", [0])[:3, 3], [0, 0, 0.5])
    with pytest.raises(StaleHandleError):
        tree.detach(handle)
    again = tree.attach(removed, to="upper", joint=revolute("y", name="elbow"), at=(0, 0, 1))
    assert tree.detach(again).links == removed.links


def test_a_link_detached_and_attached_again_has_the_same_numbers_by_name():
    rng = np.random.default_rng(1)
    tree = random_tree(rng, 8)
    q, qd, qdd = (dict(zip(tree.coordinates, x, strict=True)) for x in rng.normal(size=(3, tree.nq)))

    def torques():
        x = (np.array([state[name] for name in tree.coordinates]) for state in (q, qd, qdd))
        return dict(zip(tree.coordinates, tree.inverse_dynamics(*x), strict=True))

    before = torques()
    for link in ("link3", "link1", "link5"):
        parent = tree.parent(link)
        edge = tree.graph.edges[parent, link]
        tree.attach(tree.detach(link), to=parent, joint=edge["joint"], at=edge["home"])
    after = torques()
    assert before.keys() == after.keys()
    for name, tau in before.items():
        assert after[name] == pytest.approx(tau, rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("seed", range(3))
def test_attach_then_detach_leaves_every_bit(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 7)
    *before, revision, nodes, edges, numbers = fingerprint(tree)
    body, joint = [
        (random_inertia(rng), None),
        (random_inertia(rng), helical([1, 2, 3], 0.1)),
        (KinematicTree("stem"), revolute([1, 2, 3])),
    ][seed % 3]
    if isinstance(body, KinematicTree):
        body.attach(random_inertia(rng), to="stem", joint=prismatic([3, 2, 1]), at=random_pose(rng))
    handle = tree.attach(body, to="link4", joint=joint, at=random_pose(rng), name="root")
    assert tree.mass_matrix(np.zeros(tree.nq)).shape == (tree.nq, tree.nq)
    tree.detach(handle)
    *after, new_revision, new_nodes, new_edges, new_numbers = fingerprint(tree)
    assert list(after) == list(before)
    assert (new_nodes, new_edges, new_numbers) == (nodes, edges, numbers)
    assert new_revision > revision


@pytest.mark.parametrize("seed", range(3))
def test_a_changed_tree_equals_one_built_directly(seed):
    """Bit by bit: a tree with the same links in the same order does not depend on links that were detached."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 10)
    for _ in range(4):
        victims = [name for name in tree.links[1:] if len(tree.subtree(name)) < 4]
        removed = tree.detach(victims[rng.integers(len(victims))])
        tree.attach(removed, to=tree.links[rng.integers(len(tree.links))], joint=revolute(rng.normal(size=3)))
    rebuilt = KinematicTree(gravity=tree.gravity)
    for name in tree.links[1:]:
        edge = tree.graph.edges[tree.parent(name), name]
        rebuilt.attach(tree.link(name), to=tree.parent(name), joint=edge["joint"], at=edge["home"])
    assert fingerprint(rebuilt)[:3] == fingerprint(tree)[:3]
    assert fingerprint(rebuilt)[6] == fingerprint(tree)[6]


# attached()


def test_attached_takes_off_at_the_end():
    tree = arm()
    before = fingerprint(tree)
    with tree.attached(BODY, to="tool", joint=revolute("x"), name="crate") as handle:
        assert handle.name == "crate"
        assert tree.coordinates[-1] == "crate"
    after = fingerprint(tree)
    assert after[:3] == before[:3]
    assert after[4:] == before[4:]


def test_attached_takes_off_after_an_exception_and_lets_it_through():
    tree = arm()
    before = fingerprint(tree)
    with pytest.raises(RuntimeError, match="dropped"), tree.attached(BODY, to="tool"):
        raise RuntimeError("dropped")
    assert fingerprint(tree)[4:] == before[4:]


def test_attached_allows_other_changes_inside():
    tree = arm()
    with tree.attached(BODY, to="tool", name="crate") as handle:
        tree.attach(BODY, to="crate", name="lid")
    assert "lid" not in tree.links
    with tree.attached(BODY, to="tool", name="crate") as handle:
        tree.detach(handle)
        tree.attach(BODY, to="lamp", name="crate")
    assert tree.parent("crate") == "lamp", "another link of that name is not ours to take off"
    with tree.attached(BODY, to="tool", name="box"):
        tree.detach("upper")
    assert tree.links == ("base", "lamp", "crate")


def test_attached_in_an_exit_stack():
    tree = arm()
    with contextlib.ExitStack() as stack:
        handle = stack.enter_context(tree.attached(BODY, to="tool", name="crate"))
        assert tree.resolve(handle) == "crate"
    assert tree.links == arm().links


def test_attached_inside_attached():
    tree = arm()
    with tree.attached(BODY, to="tool"), tree.attached(BODY, to="payload", joint=revolute()):
        assert tree.links[-2:] == ("payload", "payload_2")
    assert tree.links == arm().links


def test_a_transaction_is_all_or_nothing():
    tree = arm()
    before, model = fingerprint(tree), tree.model
    with pytest.raises(TopologyError), tree.transaction():
        tree.attach(BODY, to="tool", joint=revolute(name="a"))
        tree.detach("lamp")
        tree.gravity = (0, 0, 0)
        tree.attach(BODY, to="tool", name="upper")
    assert fingerprint(tree) == before
    assert tree.model is model
    with tree.transaction():
        tree.detach("lamp")
    assert "lamp" not in tree.links


# Handles and copies


def test_a_handle_ends_with_its_attachment_and_not_before():
    tree = arm()
    handle = tree.attach(BODY, to="tool", name="crate")
    tree.attach(BODY, to="crate", name="lid")
    tree.detach("lamp")
    assert tree.resolve(handle) == "crate"
    tree.detach(handle)
    other = tree.attach(BODY, to="tool", name="crate")
    assert other != handle
    with pytest.raises(StaleHandleError, match="handle of 'crate' is stale"):
        tree.detach(handle)
    assert tree.resolve(other) == tree.resolve("crate") == "crate"
    with pytest.raises(StaleHandleError):
        arm().detach(other)


def test_a_copy_shares_what_has_been_computed():
    tree = arm()
    tree.mass_matrix(np.zeros(3))
    twin = tree.copy()
    model, kernels, topology = tree.model, tree._kernels, tree.topology
    assert twin.model is model and twin._kernels is kernels and twin.topology is topology
    M = tree.mass_matrix(np.zeros(3))
    twin.attach(BODY, to="tool")
    assert twin.model is not model
    assert tree.model is model and tree.topology is topology
    assert_array_equal(tree.mass_matrix(np.zeros(3)), M)


def test_a_copy_is_a_tree_of_its_own_that_knows_the_same_handles():
    tree = arm()
    handle = tree.attach(BODY, to="tool", joint=revolute(name="swing"), name="crate")
    twin = tree.copy()
    assert type(twin) is KinematicTree
    assert fingerprint(twin)[:3] == fingerprint(tree)[:3]
    assert fingerprint(twin)[4:] == fingerprint(tree)[4:]
    twin.detach(handle)
    twin.gravity = (1, 2, 3)
    assert "crate" in tree.links
    assert_array_equal(tree.gravity, [0, 0, -9.81])
    tree.attach(BODY, to="crate")
    assert "payload" not in twin.links


def test_every_change_raises_the_revision():
    tree = KinematicTree()
    seen = [tree.revision]
    for change in (
        lambda: tree.attach(BODY, to="base", joint=revolute()),
        lambda: setattr(tree, "gravity", (0, 0, 0)),
        lambda: tree.detach("payload"),
    ):
        change()
        seen.append(tree.revision)
    assert seen == sorted(set(seen))


# Large trees


@pytest.mark.slow
def test_a_chain_of_two_thousand_links():
    tree = KinematicTree()
    for i in range(2000):
        tree.attach(
            Link(f"l{i}", Inertia.point(1e-3, (0.005, 0, 0))),
            to=tree.links[-1] if i == 0 else f"l{i - 1}",
            joint=revolute("z") if i % 2 else None,
            at=(0.01, 0, 0),
        )
    assert len(tree.path("l1999")) == 2001
    assert len(tree.subtree("l0")) == 2000
    assert str(tree).count("\n") == 2000
    assert_allclose(tree.forward_kinematics("l1999", np.zeros(1000))[:3, 3], [20, 0, 0], rtol=1e-12)
    # A horizontal chain: each joint holds the weight of all links beyond it.
    tree.gravity = (0, -10, 0)
    g = tree.gravity_vector(np.zeros(1000))
    arms = 0.01 * np.arange(1999) + 0.005
    assert_allclose(g[0], 10 * 1e-3 * arms.sum(), rtol=1e-10)
    twin = tree.copy()
    half = tree.detach("l1000")
    assert (tree.nq, half.nq) == (500, 500)
    tree.attach(half, to="l999", at=(0.01, 0, 0))
    assert tree.links == twin.links


def test_a_shallow_copy_is_a_tree_of_its_own_too():
    tree = arm()
    before = fingerprint(tree)
    copy.copy(tree).attach(BODY, to=tree.links[-1], joint=revolute("x"), name="only here")
    assert fingerprint(tree) == before


@pytest.mark.parametrize("name", ["", 0, 3, ["a"], "a\x1b[2J", "a\0", "a\n", "a\x9b", "a\ud800", "a\u202e"])
def test_a_name_that_is_none(name):
    tree = arm()
    before = fingerprint(tree)
    for body in (BODY, Link("a", BODY), KinematicTree("a")):
        with pytest.raises(TopologyError, match="needs a non-blank string without control characters as its name"):
            tree.attach(body, to=tree.links[-1], name=name)
    with pytest.raises(UnknownLinkError, match="there is no joint"):
        tree.joint(name)
    assert fingerprint(tree) == before
