"""Reader of NetworkX graphs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from screwdyn.core.errors import ShapeError, TopologyError, UnknownNameError
from screwdyn.core.types import NAME, ArrayLike, is_name
from screwdyn.io.document import some
from screwdyn.mechanism.joint import Joint
from screwdyn.mechanism.link import FIXED, Attachment, Link, Locked, Loop
from screwdyn.mechanism.topology import Topology, check_rotors, with_loops
from screwdyn.screws import screw

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["from_graph"]

_RENAMED = (
    "networkx.relabel_nodes renames links only; a prefix renames everything: attach the robot to a tree, "
    "tree.attach(robot, to=…, prefix='left/'), and take tree.graph"
)


def from_graph(graph: nx.DiGraph, gravity: ArrayLike | None = None) -> Topology:
    """Read the links and joints of a directed graph; :meth:`KinematicTree.from_graph` describes it."""
    import networkx as nx

    if not isinstance(graph, nx.DiGraph) or graph.is_multigraph():
        raise TopologyError(
            f"a tree is read from a networkx.DiGraph, whose edges lead from parents to children, such as "
            f"networkx.DiGraph(tree.graph); got {type(graph).__name__}"
        )
    _check_tree(graph)
    position = {name: k for k, name in enumerate(graph)}
    base, *others = nx.lexicographical_topological_sort(graph, position.__getitem__)
    loops: Any = graph.graph.get("loops", ())
    if not isinstance(loops, tuple | list) or not all(isinstance(loop, Loop) for loop in loops):
        raise TopologyError(f"the attribute 'loops' of the graph must be a tuple of loops of a tree; got {loops!r}")
    for loop in loops:
        for link in (loop.link, loop.to):
            if link not in graph:
                raise UnknownNameError(
                    f"loop {loop.name!r} connects {link!r}, which is not in the graph; remove the loop from "
                    f"graph.graph['loops'], or rename its ends there: dataclasses.replace(loop, link=…, to=…)"
                )
    attachments = [_attachment(graph, name) for name in others]
    _check_joints(attachments)
    given = graph.graph if gravity is None else {"gravity": gravity}
    try:
        rooted = Topology.rooted(_link(graph, base), *([given["gravity"]] if "gravity" in given else []))
    except ShapeError as error:
        where = "the attribute 'gravity' of the graph: " if gravity is None else ""
        raise ShapeError(f"{where}{error}") from None
    try:
        topology = with_loops(rooted.attach(attachments), loops)
        check_rotors(topology)
    except (TopologyError, UnknownNameError) as error:
        if any(link is not None and link.name != name for name, link in graph.nodes(data="link")):
            error.add_note(_RENAMED)
        raise
    return topology


def _check_tree(graph: nx.DiGraph) -> None:
    """Raise TopologyError with all reasons why the graph is not a tree with edges that point away from its root."""
    import networkx as nx

    problems, unnamed = [], [x for x in graph if not is_name(x)]
    if unnamed:
        problems.append(
            f"the name of a link must be {NAME}, as networkx.relabel_nodes gives it; got {some(map(repr, unnamed))}"
        )
    roots = [name for name, degree in graph.in_degree if degree == 0]
    if len(roots) != 1:
        join = "; join them: graph.add_edge(parent, child, home=…)" if roots else ""
        found = some(map(repr, roots)) or "none"
        problems.append(f"there must be one link without a parent, the base; got {found}{join}")
    for name, degree in graph.in_degree:
        if degree > 1:
            parents = " and ".join(map(repr, graph.predecessors(name)))
            problems.append(f"link {name!r} has several parents: {parents}")
    if not nx.is_directed_acyclic_graph(graph):
        around = " → ".join(repr(edge[0]) for edge in nx.find_cycle(graph))
        problems.append(f"there is a cycle: {around}; close a loop by a joint of its own: tree.close(link, to=…)")
    if problems:
        raise TopologyError("\n  ".join(["the graph is not a tree", *problems]))


def _check_joints(attachments: list[Attachment]) -> None:
    """Raise TopologyError if two joints have the same name, as after a union of graphs of the same robot."""
    carried: dict[str, Attachment] = {}
    for at in attachments:
        other, link = carried.setdefault(at.name, at), at.link.name
        if other is not at:
            raise TopologyError(
                f"the joints of {other.link.name!r} and {link!r} are both named {at.name!r}. {_RENAMED}; or name one: "
                f"graph.edges[{at.parent!r}, {link!r}]['joint'] = dataclasses.replace(joint, name=…)"
            )


def _link(graph: nx.DiGraph, name: str) -> Link:
    data = graph.nodes[name]
    if "contraction" in data:
        lost = some(map(repr, list(data["contraction"])))
        raise TopologyError(
            f"link {name!r} is contracted with {lost}, whose inertia and joint would be lost; keep both links, and fix "
            f"the joint between them: tree.lock(joint)"
        )
    link: Any = data.get("link", Link(name))
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
