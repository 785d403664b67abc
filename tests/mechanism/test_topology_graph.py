"""The graph of a tree: one object in each revision, which nothing can change."""

import copy
import io
import pickle

import networkx as nx
import pytest
from small_arm import BODY, arm

import screwdyn as sd


def test_there_is_one_graph_until_the_tree_changes():
    tree = arm()
    graph, twin = tree.graph, tree.copy()
    assert tree.graph is graph and twin.graph is graph
    changes = [
        lambda: setattr(tree, "gravity", (0, 0, -1.62)),
        lambda: tree.attach(BODY, to="tool", name="crate"),
        lambda: tree.detach("crate"),
    ]
    for change in changes:
        before = tree.graph
        change()
        assert tree.graph is not before and tree.graph is tree.graph
        assert set(tree.graph) == set(tree.links)
        assert list(tree.graph.graph["gravity"]) == list(tree.gravity)
    assert twin.graph is graph and list(graph) == list(twin.links)


ATTEMPTS = {
    "gravity": lambda graph: graph.graph.update(gravity=(0, 0, 0)),
    "loops": lambda graph: graph.graph.pop("loops"),
    "name": lambda graph: setattr(graph, "name", "robot"),
    "link": lambda graph: graph.nodes["lower"].__setitem__("link", None),
    "nodes": lambda graph: nx.set_node_attributes(graph, 1.0, "weight"),
    "edges": lambda graph: nx.set_edge_attributes(graph, 1.0, "weight"),
    "joint": lambda graph: graph["upper"]["lower"].__delitem__("joint"),
    "incoming": lambda graph: graph.pred["lower"]["upper"].clear(),
    "a pickle": lambda graph: pickle.loads(pickle.dumps(graph)).nodes["lower"].popitem(),
    "a deep copy": lambda graph: copy.deepcopy(graph).nodes["lower"].setdefault("weight", 1.0),
    "a file of NetworkX": lambda graph: nx.write_graphml(graph, io.BytesIO()),
    "in place": lambda graph: graph.nodes["lower"].__ior__({"link": None}),
}


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_attributes_are_read_only(attempt):
    tree = arm()
    before = str(tree)
    with pytest.raises(sd.TopologyError, match=r"cannot be changed; change the tree, or a copy.*to_json"):
        ATTEMPTS[attempt](tree.graph)
    assert str(tree) == before and sd.KinematicTree.from_graph(tree.graph).to_json() == tree.to_json()


def test_nodes_edges_and_arrays_are_read_only():
    graph = arm().graph
    with pytest.raises(nx.NetworkXError):
        graph.remove_node("lower")
    for array in (graph.graph["gravity"], graph.edges["upper", "lower"]["home"]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_copies_can_be_changed():
    tree = arm()
    for graph in (nx.DiGraph(tree.graph), tree.graph.copy(), tree.graph.reverse().reverse()):
        graph.graph["gravity"] = (0, 0, -1.62)
        graph.edges["upper", "lower"]["weight"] = 1.0
        graph.remove_node("lamp")
        other = sd.KinematicTree.from_graph(graph)
        assert other.gravity[2] == -1.62 and "lamp" not in other.links
    assert tree.gravity[2] == -9.81 and "lamp" in tree.links
