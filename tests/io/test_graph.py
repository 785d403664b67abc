"""Trees from NetworkX graphs, and pickles."""

import copy
import dataclasses
import pickle

import networkx as nx
import numpy as np
import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st
from kinds import EVERY
from numpy.testing import assert_array_equal

import screwdyn as sd
from screwdyn import KinematicTree, TopologyError
from screwdyn.testing import random_tree


def same(twin, tree, rng):
    assert (twin.links, twin.joints, twin.positions) == (tree.links, tree.joints, tree.positions)
    q, qd = tree.random_configuration(rng), rng.uniform(-2, 2, tree.nv)
    assert_array_equal(twin.mass_matrix(q), tree.mass_matrix(q))
    assert_array_equal(twin.coriolis_matrix(q, qd), tree.coriolis_matrix(q, qd))
    assert_array_equal(twin.gravity_vector(q), tree.gravity_vector(q))


@given(st.integers(0, 2**32 - 1), st.integers(0, 8))
def test_a_tree_comes_back_from_its_graph_and_its_pickle(seed, n):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, n, EVERY)
    twin = KinematicTree.from_graph(tree.graph)
    same(twin, tree, rng)
    assert twin.to_json() == tree.to_json()
    same(pickle.loads(pickle.dumps(tree)), tree, rng)
    same(copy.deepcopy(tree), tree, rng)


def test_a_pickle_can_be_changed_and_keeps_its_handles():
    tree = sd.robots.two_link()
    handle = tree.attach(sd.Inertia(1.0), to=tree.links[-1], name="crate")
    tree.mass_matrix([0.1, 0.2])
    twin, twin_handle = pickle.loads(pickle.dumps((tree, handle)))
    twin.detach(twin_handle)
    assert "crate" in tree.links and "crate" not in twin.links
    q = [0.1, 0.2]
    assert_array_equal(twin.mass_matrix(q), sd.robots.two_link().mass_matrix(q))


def test_states_and_runs_are_pickled():
    arm = sd.robots.two_link()
    state = pickle.loads(pickle.dumps(sd.State(arm, [0.1, 0.2], [0.3, 0.4])))
    assert (state[arm.positions[0]], state.velocity(arm.coordinates[1])) == (0.1, 0.4)
    crate = sd.Grasp(sd.Inertia(0.5), to=arm.links[-1], twist="at_rest", name="crate", time=0.05)
    run = sd.simulate(arm, sd.State(arm, [0.1, 0.2]), 0.1, events=[crate])
    twin = pickle.loads(pickle.dumps(run))
    assert_array_equal(twin.t, run.t)
    for name in run.positions:
        assert_array_equal(twin[name], run[name])
    assert_array_equal(twin.energy.residual, run.energy.residual)
    assert twin.tree.links == arm.links
    assert twin.events[0].event.energy_lost == run.events[0].event.energy_lost


def test_a_graph_by_hand():
    graph = nx.DiGraph()
    graph.add_edge("arm", "hand", joint=sd.revolute("y", name="wrist"), home=(0.3, 0, 0))
    graph.add_edge("base", "arm")
    graph.add_node("hand", link=sd.Link("anything", sd.Inertia(2.0, (0.1, 0, 0))))
    tree = KinematicTree.from_graph(graph)
    assert (tree.base, tree.links, tree.coordinates) == ("base", ("base", "arm", "hand"), ("wrist",))
    assert tree.mass_matrix([0.7])[0, 0] == pytest.approx(2.0 * 0.1**2)
    assert tree.gravity_vector([0.0])[0] == pytest.approx(-2.0 * 9.81 * 0.1)


def with_everything():
    """A tree with symbols in its gravity, shapes, and joints that are locked, follow another, and close a loop."""
    g, tilt = sp.symbols("g tilt", positive=True)
    tree = KinematicTree("floor", gravity=(g * sp.sin(tilt), 0, -g * sp.cos(tilt)))
    body = sd.Inertia.rod(2.0, 1.0, axis="x", com=(0.5, 0, 0))
    tree.attach(body, to="floor", joint=sd.revolute("y", name="left"), name="a", shape=sd.Shape.sphere(0.1))
    follower = sd.revolute("y", name="right", mimic=sd.Mimic("left", 2.0), stiffness=3.0, damping=0.1, limits=(-1, 1))
    tree.attach(body, to="floor", joint=follower, name="b", at=(1, 0, 0))
    tree.attach(body, to="a", joint=sd.revolute("y", name="wrist"), name="c", at=(1, 0, 0))
    tree.lock("wrist", at=0.3)
    tree.close("c", to="b", joint=sd.spherical((1, 0, 0)), name="pin")
    return tree


def test_gravity_locks_couplings_and_loops_come_back_from_the_graph():
    tree = with_everything()
    for graph in (tree.graph, nx.DiGraph(tree.graph), pickle.loads(pickle.dumps(tree.graph))):
        assert KinematicTree.from_graph(graph).to_json() == tree.to_json()
    assert list(KinematicTree.from_graph(tree.graph, (1, 2, 3)).gravity) == [1, 2, 3]
    assert list(KinematicTree.from_graph(nx.DiGraph([("a", "b")])).gravity) == [0, 0, -9.81]


@pytest.mark.parametrize("wrong", [None, "down", (0, 0), (0, 0, float("nan")), sd.Inertia(1.0)])
def test_a_wrong_gravity_of_the_graph(wrong):
    graph = nx.DiGraph([("a", "b")], gravity=wrong)
    with pytest.raises(sd.ShapeError, match="attribute 'gravity' of the graph: gravity must be three"):
        KinematicTree.from_graph(graph)
    assert list(KinematicTree.from_graph(graph, (0, 0, 1)).gravity) == [0, 0, 1]


@pytest.mark.parametrize(
    ("edges", "words"),
    [
        ([("a", "b"), ("c", "b")], ["one link without a parent", "'a', 'c'", "'b' has several parents: 'a' and 'c'"]),
        ([("a", "b"), ("b", "c"), ("c", "b")], ["a cycle: 'b' → 'c'"]),
        ([("a", "b"), ("b", "a")], ["got none", "a cycle"]),
        ([("a", 3), ("a", "")], ["got 3, ''", "relabel_nodes"]),
        ([("a", "b"), ("c", "d")], ["'a', 'c'; join them: graph.add_edge("]),
        ([], ["got none"]),
    ],
)
def test_graphs_that_are_no_trees(edges, words):
    with pytest.raises(TopologyError) as caught:
        KinematicTree.from_graph(nx.DiGraph(edges))
    for word in words:
        assert word in str(caught.value)


def relabelled(tree, prefix):
    return nx.relabel_nodes(tree.graph, lambda link: prefix + link)


def test_robots_with_the_same_names_are_composed_with_prefixes():
    """Not by relabel_nodes, after which joints still have the same names; the error says so."""
    arm, sides = sd.robots.two_link(), []
    both = nx.compose(relabelled(arm, "left/"), relabelled(arm, "right/"))
    both.add_edges_from([("torso", "left/base"), ("torso", "right/base")])
    with pytest.raises(TopologyError, match="'left/link1' and 'right/link1' are both named 'theta1'") as caught:
        KinematicTree.from_graph(both)
    assert "relabel_nodes renames links only" in str(caught.value)
    for prefix, y in (("left/", 0.4), ("right/", -0.4)):  # what it advises
        sides.append(KinematicTree("torso", arm.gravity))
        sides[-1].attach(arm, to="torso", at=(0, y, 0), prefix=prefix)
        both.edges["torso", f"{prefix}base"]["home"] = (0, y, 0)
    joint = both.edges["left/base", "left/link1"]["joint"]
    both.edges["left/base", "left/link1"]["joint"] = dataclasses.replace(joint, name="left/theta1")
    both.edges["left/link1", "left/link2"]["joint"] = sd.revolute("z", name="left/theta2")
    pair, renamed = (
        KinematicTree.from_graph(nx.compose(*(side.graph for side in sides))),
        KinematicTree.from_graph(both),
    )
    assert pair.coordinates == ("left/theta1", "left/theta2", "right/theta1", "right/theta2")
    assert {*renamed.coordinates} == {"left/theta1", "left/theta2", "theta1", "theta2"}
    q = np.array([0.4, -0.9])
    M, g = pair.mass_matrix([*q, *-q]), pair.gravity_vector([*q, *-q])
    assert_array_equal(M, np.block([[arm.mass_matrix(q), np.zeros((2, 2))], [np.zeros((2, 2)), arm.mass_matrix(-q)]]))
    assert_array_equal(g, [*arm.gravity_vector(q), *arm.gravity_vector(-q)])


def test_names_of_loops_followers_and_rotors_after_relabelling():
    linkage, driven = with_everything(), KinematicTree()
    graph = nx.relabel_nodes(linkage.graph, {"c": "C"})
    with pytest.raises(sd.UnknownLinkError, match=r"loop 'pin' connects 'c', which is not in the graph; remove"):
        KinematicTree.from_graph(graph)
    graph.graph["loops"] = [dataclasses.replace(loop, link="C") for loop in graph.graph["loops"]]
    assert KinematicTree.from_graph(graph).loop("pin").link == "C"
    driven.attach(sd.Inertia(1.0), to="base", joint=sd.revolute("y", rotor=sd.Rotor(1e-4, ratio=100)), name="arm")
    with pytest.raises(sd.UnknownNameError, match="no joint 'arm'") as caught:
        KinematicTree.from_graph(relabelled(driven, "left/"))
    assert any("relabel_nodes renames links only" in note for note in caught.value.__notes__)


def test_contracted_links_would_lose_their_mass():
    arm = sd.robots.two_link()
    with pytest.raises(TopologyError, match=r"'link1' is contracted with 'link2', whose inertia and joint"):
        KinematicTree.from_graph(nx.contracted_edge(arm.graph, ("link1", "link2"), self_loops=False))


def test_wrong_types():
    for wrong in (None, nx.Graph([("a", "b")]), nx.MultiDiGraph([("a", "b")]), sd.robots.two_link()):
        with pytest.raises(TopologyError, match=r"networkx\.DiGraph"):
            KinematicTree.from_graph(wrong)
    graph = nx.DiGraph([("a", "b")])
    graph.nodes["b"]["link"] = sd.Inertia(1.0)
    with pytest.raises(TopologyError, match="'link' of node 'b' must be a Link; got Inertia"):
        KinematicTree.from_graph(graph)
    graph.nodes["b"]["link"] = sd.Link("b")
    graph.edges["a", "b"]["joint"] = "revolute"
    with pytest.raises(TopologyError, match="'joint' of edge 'a' → 'b' must be a Joint"):
        KinematicTree.from_graph(graph)
    graph.edges["a", "b"].update(joint=sd.revolute(), home=[1])
    with pytest.raises(sd.ShapeError, match="'home' of edge 'a' → 'b'"):
        KinematicTree.from_graph(graph)


def test_locked_joints_can_be_unlocked():
    arm = sd.robots.two_link()
    arm.lock("theta1", at=0.5)
    twin = sd.KinematicTree.from_graph(arm.graph)
    assert twin.locked == ("theta1",)
    twin.unlock("theta1")
    assert_array_equal(twin.mass_matrix([0.1, 0.2]), sd.robots.two_link().mass_matrix([0.1, 0.2]))
    graph = nx.DiGraph(arm.graph)
    graph.edges["base", "link1"]["locked"] = "yes"
    with pytest.raises(sd.TopologyError, match="the attribute 'locked' of edge 'base' → 'link1'"):
        sd.KinematicTree.from_graph(graph)
