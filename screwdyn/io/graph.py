"""Reader of NetworkX graphs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from screwdyn.core.errors import ShapeError, TopologyError
from screwdyn.core.text import NAME, is_name
from screwdyn.core.types import ArrayLike
from screwdyn.mechanism.attachment import FIXED, Attachment, Locked
from screwdyn.mechanism.joint import Joint
from screwdyn.mechanism.link import Link
from screwdyn.mechanism.loop import Loop
from screwdyn.mechanism.loops import with_loops
from screwdyn.mechanism.rotors import check_rotors
from screwdyn.mechanism.topology import Topology
from screwdyn.screws import screw

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["from_graph"]


def from_graph(graph: nx.DiGraph, gravity: ArrayLike | None = None) -> Topology:
    """Read the links and joints of a directed graph; :meth:`KinematicTree.from_graph` describes it."""
    import networkx as nx

    if not isinstance(graph, nx.DiGraph) or graph.is_multigraph():
        raise TopologyError(f"a tree is read from a networkx.DiGraph; got {type(graph).__name__}")
    _check_tree(graph)
    position = {name: k for k, name in enumerate(graph)}
    base, *others = nx.lexicographical_topological_sort(graph, position.__getitem__)
    loops: Any = graph.graph.get("loops", ())
    if not isinstance(loops, tuple | list) or not all(isinstance(loop, Loop) for loop in loops):
        raise TopologyError(f"the attribute 'loops' of the graph must be a tuple of loops of a tree; got {loops!r}")
    attachments = [_attachment(graph, name) for name in others]
    rooted = _rooted(graph, base) if gravity is None else Topology.rooted(_link(graph, base), gravity)
    topology = with_loops(rooted.attach(attachments), loops)
    check_rotors(topology)
    return topology


def _check_tree(graph: nx.DiGraph) -> None:
    """Raise TopologyError with all reasons why the graph is not a tree with edges that point away from its root."""
    import networkx as nx

    problems = [f"the name of a link must be {NAME}; got {x!r}" for x in graph if not is_name(x)]
    roots = [name for name, degree in graph.in_degree if degree == 0]
    if len(roots) != 1:
        names = ", ".join(map(repr, roots[:8])) + ", …" * (len(roots) > 8)
        problems.append(f"there must be one link without a parent, the base; got {names or 'none'}")
    for name, degree in graph.in_degree:
        if degree > 1:
            parents = " and ".join(map(repr, graph.predecessors(name)))
            problems.append(f"link {name!r} has several parents: {parents}")
    if not nx.is_directed_acyclic_graph(graph):
        around = " → ".join(repr(edge[0]) for edge in nx.find_cycle(graph))
        problems.append(f"there is a cycle: {around}; close a loop by a joint of its own: tree.close(link, to=…)")
    if problems:
        raise TopologyError("\n  ".join(["the graph is not a tree", *problems]))


def _rooted(graph: nx.DiGraph, base: str) -> Topology:
    """The base with the gravity of the graph, by default that of a new tree."""
    link, attributes = _link(graph, base), graph.graph
    try:
        return Topology.rooted(link, attributes["gravity"]) if "gravity" in attributes else Topology.rooted(link)
    except ShapeError as error:
        raise ShapeError(f"the attribute 'gravity' of the graph: {error}") from None


def _link(graph: nx.DiGraph, name: str) -> Link:
    link: Any = graph.nodes[name].get("link", Link(name))
    if not isinstance(link, Link):
        raise TopologyError(f"the attribute 'link' of node {name!r} must be a Link; got {type(link).__name__}")
    return link if link.name == name else replace(link, name=name)


def _attachment(graph: nx.DiGraph, name: str) -> Attachment:
    ((parent, _, edge),) = graph.in_edges(name, data=True)
    joint: Any = edge.get("joint", FIXED)
    if not isinstance(joint, Joint):
        kind = type(joint).__name__
        raise TopologyError(f"the attribute 'joint' of edge {parent!r} → {name!r} must be a Joint; got {kind}")
    home = screw.as_pose(edge.get("home"), f"the attribute 'home' of edge {parent!r} → {name!r}")
    locked: Any = edge.get("locked")
    if locked is not None and (joint.screws.size or not isinstance(locked, Locked)):
        raise TopologyError(
            f"the attribute 'locked' of edge {parent!r} → {name!r} must be that of a tree's locked joint"
        )
    return Attachment(_link(graph, name), parent, joint, home, locked=locked)
