"""The rotors of motors as links of a structure: they come and go with their joints, and are not changed alone."""

from __future__ import annotations

from dataclasses import replace

from screwdyn.core.errors import TopologyError
from screwdyn.mechanism.attachment import ROTOR_ENDINGS
from screwdyn.mechanism.topology import Topology

__all__ = ["check_no_rotor", "check_rotors", "without_rotor"]


def check_no_rotor(topology: Topology, link: str) -> None:
    """Raise TopologyError if a link is the rotor of a joint, which is a solid of revolution and changes with it."""
    for ending in ROTOR_ENDINGS:
        joint = link.removesuffix(ending)
        if joint == link or joint not in topology.carried:
            continue
        at = topology.attachments[topology.carried[joint]].unlocked
        if link in [part.link.name for part in at.rotor]:
            raise TopologyError(
                f"{link!r} is the rotor of joint {joint!r}, with which it is attached and detached; give link "
                f"{at.link.name!r} a joint with another rotor or none by replace_joint"
            )


def check_rotors(topology: Topology) -> None:
    """Raise TopologyError if a joint has a rotor whose links are missing, such as in a text or a graph."""
    for at in topology.attachments.values():
        missing = [part.link.name for part in at.unlocked.rotor if part.link.name not in topology.attachments]
        if missing:
            raise TopologyError(
                f"joint {at.name!r} has a rotor, but there is no link {missing[0]!r}; add it, or leave the "
                f"rotor out and give the joint one by replace_joint"
            )


def without_rotor(topology: Topology, link: str) -> Topology:
    """The structure of the same revision without the links of the rotor of a link's joint.

    Raises
    ------
    TopologyError
        If the rotor carries other links, or the link is itself a rotor.
    """
    check_no_rotor(topology, link)
    revision = topology.revision
    for at in topology.attachments[link].unlocked.rotor:
        if at.link.name in topology.attachments:
            topology, (_, *beyond) = topology.detach(at.link.name)
            if beyond:
                raise TopologyError(
                    f"the rotor {at.link.name!r} carries {beyond[0].link.name!r}; detach that link first"
                )
    return topology if topology.revision == revision else replace(topology, revision=revision)
