"""Text form of a tree, with one line for each link and each loop."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from screwdyn.core import expressions
from screwdyn.mechanism.link import Link

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["outline"]

# Levels that are indented in full, so that the text of a long chain is not the square of its length.
_DEEPEST = 40


def outline(graph: "nx.DiGraph", base: str) -> str:
    """The links beyond the base, in order of attachment, with their joints and masses.

    The levels beyond the 40th are indented alike, with an ellipsis on the left.
    """
    lines = [_described(graph.nodes[base]["link"])]
    names = list(graph.succ[base])
    todo = [(name, base, "", name == names[-1]) for name in reversed(names)]
    while todo:
        name, parent, indent, last = todo.pop()
        edge = graph.edges[parent, name]
        words = _described(graph.nodes[name]["link"], _joined(edge, name))
        lines.append(f"{indent}{'└─ ' if last else '├─ '}{words}")
        below = list(graph.succ[name])
        within = indent + ("   " if last else "│  ")
        if len(within) > 3 * _DEEPEST:
            within = f"…  {within[6:]}"
        todo += [(child, name, within, child == below[-1]) for child in reversed(below)]
    lines += [f"{loop.link} ↔ {loop.to} [{loop.joint.kind} loop {loop.name}]" for loop in graph.graph["loops"]]
    return "\n".join(lines)


def _described(link: Link, joint: str = "") -> str:
    mass = "" if link.inertia is None else f" {expressions.short(link.inertia.mass)} kg"
    return f"{link.name}{joint}{mass}"


def _joined(edge: Mapping[str, Any], link: str) -> str:
    joint, name = edge["locked"].joint if edge["locked"] else edge["joint"], edge["name"]
    named = f" {name}" if joint.screws.size and name != link else ""
    named += f" follows {joint.mimic.joint}" if joint.mimic is not None else ""
    return f" [{'locked ' * bool(edge['locked'])}{'passive ' * joint.passive}{joint.kind}{named}]"
