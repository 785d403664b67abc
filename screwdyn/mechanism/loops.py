"""Loops of a structure: they are closed between links that exist, and no link of a loop is detached alone."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from screwdyn.core.errors import LoopError, TopologyError, UnknownNameError
from screwdyn.mechanism.loop import Loop
from screwdyn.mechanism.rotors import check_no_rotor

if TYPE_CHECKING:
    from screwdyn.mechanism.topology import Topology

__all__ = ["bridge_of", "bridges", "check_open", "check_unbridged", "loops_among", "with_loops", "without_loop"]


def with_loops(topology: Topology, *loops: Loop) -> Topology:
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
        if not isinstance(loop.name, str) or not loop.name:
            raise TopologyError(f"the name of a loop must be a non-empty string; got {loop.name!r}")
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


def check_open(topology: Topology, what: str) -> None:
    """Raise LoopError if there are loops, which something would ignore."""
    if topology.loops:
        names = ", ".join(map(repr, topology.loops))
        raise LoopError(
            f"{what} is not available for a tree with closed loops, because it would ignore the forces in {names}; "
            f"open the loops in a copy of the tree first"
        )


def bridges(topology: Topology, root: str) -> list[Loop]:
    """The loops that connect a link at or beyond a root with one of the rest."""
    beyond = frozenset(topology.subtree(root)) if topology.loops else frozenset()
    return [loop for loop in topology.loops.values() if (loop.link in beyond) != (loop.to in beyond)]


def check_unbridged(topology: Topology, root: str) -> None:
    """Raise TopologyError if a loop connects a link at or beyond a root with one of the rest."""
    for loop in bridges(topology, root):
        raise TopologyError(
            f"loop {loop.name!r} connects {loop.link!r} and {loop.to!r}, which would be separated; open it first"
        )


def bridge_of(topology: Topology, root: str, among: Sequence[Loop]) -> Loop:
    """The first bridge by whose joint a root can be attached instead of by its own.

    Raises
    ------
    TopologyError
        If no bridge is the loop of this link.
    """
    for loop in among:
        if loop.link == root and loop.to in topology.attachments:
            return loop
    first = among[0]
    raise TopologyError(
        f"loop {first.name!r} connects {first.link!r} to {first.to!r}, so {root!r} cannot be carried by its joint; "
        f"open it first, or close a loop of {root!r} itself: tree.close({root!r}, to=…)"
    )
