"""Loops of a structure: they are closed between links that exist, and no link of a loop is detached alone."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import replace

from screwdyn.core.errors import LoopError, TopologyError, UnknownNameError
from screwdyn.core.text import NAME, is_name
from screwdyn.mechanism.loop import Loop
from screwdyn.mechanism.rotors import check_no_rotor
from screwdyn.mechanism.topology import Topology

__all__ = [
    "bridging",
    "check_open",
    "check_unbridged",
    "loops_among",
    "with_loops",
    "without_bridges",
    "without_loop",
]


def with_loops(topology: Topology, loops: Iterable[Loop]) -> Topology:
    """The structure of the same revision with further loops.

    Raises
    ------
    UnknownNameError, TopologyError
        If there is no such link, one is the rotor of a joint, both are the same, or the name of a loop is taken.
    """
    for loop in loops:
        for link in (loop.link, loop.to):
            if not isinstance(link, str) or link not in topology.attachments:
                raise UnknownNameError.of(link, topology.attachments)
            check_no_rotor(topology, link)
        if loop.link == loop.to:
            raise TopologyError(f"a loop connects two links; got {loop.link!r} twice")
        if not is_name(loop.name):
            raise TopologyError(f"the name of a loop must be {NAME}; got {loop.name!r}")
        if loop.name in topology:
            raise TopologyError(f"there is a link, joint or loop {loop.name!r} already; give the loop another name")
        topology = replace(topology, loops=topology.loops | {loop.name: loop})
    return topology


def without_loop(topology: Topology, name: str) -> Topology:
    """The structure of the same revision without a loop, which exists."""
    return replace(topology, loops={other: loop for other, loop in topology.loops.items() if other != name})


def loops_among(topology: Topology, links: Container[str]) -> list[Loop]:
    """The loops between some links."""
    return [loop for loop in topology.loops.values() if loop.link in links and loop.to in links]


def check_open(topology: Topology, what: str, instead: str = "open the loops in a copy of the tree first") -> None:
    """Raise LoopError if there are loops, which something would ignore; it says what to do instead."""
    if topology.loops:
        names = ", ".join(map(repr, topology.loops))
        raise LoopError(
            f"{what} is not available for a tree with closed loops, because it would ignore the forces in {names}; "
            f"{instead}"
        )


def check_unbridged(topology: Topology, root: str) -> None:
    """Raise TopologyError if a loop connects a link at or beyond a root with one of the rest."""
    for loop in bridging(topology, root):
        raise TopologyError(
            f"loop {loop.name!r} connects {loop.link!r} and {loop.to!r}, which would be separated; open it first, or "
            f"release {root!r} with a state, after which it hangs on that loop"
        )


def bridging(topology: Topology, root: str) -> list[Loop]:
    """The loops that connect a link at or beyond a root with one of the rest, in the order of their closing."""
    beyond = frozenset(topology.subtree(root)) if topology.loops else frozenset()
    return [loop for loop in topology.loops.values() if (loop.link in beyond) != (loop.to in beyond)]


def without_bridges(topology: Topology, root: str) -> Topology:
    """The structure of the same revision without the loops between a subtree and the rest."""
    for loop in bridging(topology, root):
        topology = without_loop(topology, loop.name)
    return topology
