"""The structure of a tree as a frozen NetworkX graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from screwdyn.core.errors import TopologyError

if TYPE_CHECKING:
    import networkx as nx

    from screwdyn.mechanism.topology import Topology

__all__ = ["graph_of"]


class _ReadOnly(dict[str, Any]):
    """Attributes of a graph that many share; a copy of them is an ordinary dictionary."""

    def _refuse(self, *args: object, **named: object) -> NoReturn:
        """Raise TopologyError: ``networkx.freeze`` protects the nodes and edges only."""
        raise TopologyError(
            "the graph of a tree cannot be changed; change the tree, or a copy of the graph, "
            "networkx.DiGraph(tree.graph), and read it by KinematicTree.from_graph; tree.to_json() writes all of it to "
            "a file, and writers of NetworkX take a copy with numbers and words only"
        )

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[object, ...]:
        """As a whole: entries cannot be added to it."""
        return type(self), (dict(self),)


def graph_of(topology: Topology) -> nx.DiGraph:
    """The graph of a structure; :attr:`KinematicTree.graph` describes it."""
    import networkx as nx  # at the top of the module it would take half the time of `import screwdyn`

    graph = nx.DiGraph()
    graph.graph = _ReadOnly(gravity=topology.gravity, loops=tuple(topology.loops.values()))
    for name, at in topology.attachments.items():
        graph.add_node(name)
        graph._node[name] = _ReadOnly(link=at.link, serial=at.serial)
        if at.parent is not None:
            named = at.coordinates
            graph._succ[at.parent][name] = graph._pred[name][at.parent] = _ReadOnly(
                joint=at.joint,
                home=at.home,
                name=at.name,
                coordinate=named[0] if len(named) == 1 else None,
                coordinates=named,
                locked=at.locked,
            )
    return nx.freeze(graph)
