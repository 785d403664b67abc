"""Which freedom a joint follows, through any number of couplings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from screwdyn.core.errors import TopologyError, UnknownNameError
from screwdyn.mechanism.attachment import Attachment
from screwdyn.mechanism.joint import Joint, Mimic

__all__ = ["check_couplings", "leaders"]


def leaders(joints: Mapping[str, Joint]) -> dict[str, tuple[str, Any, Any]]:
    """For each joint that follows another one: the joint whose freedom it follows in the end, the ratio and the offset.

    Parameters
    ----------
    joints : mapping from name to Joint

    Raises
    ------
    UnknownNameError
        If a joint that is followed does not exist.
    TopologyError
        If joints follow each other in a circle, or a joint that is followed has not one freedom.
    """
    found: dict[str, tuple[str, Any, Any]] = {}
    for name in joints:
        chain: dict[str, Mimic] = {}
        at = name
        while at not in found and (mimic := joints[at].mimic) is not None:
            chain[at] = mimic
            if mimic.joint not in joints:
                error = UnknownNameError.of(mimic.joint, joints, "joint")
                error.add_note(f"which joint {at!r} follows")
                raise error
            if mimic.joint in chain:
                raise TopologyError(f"joint {at!r} follows {mimic.joint!r} in a circle; let one of them lead")
            if joints[mimic.joint].mimic is None and joints[mimic.joint].nv != 1:
                raise TopologyError(
                    f"joint {at!r} cannot follow {mimic.joint!r}, a {joints[mimic.joint].kind} joint: "
                    f"a joint that is followed has one freedom"
                )
            at = mimic.joint
        leader, ratio, offset = found.get(at, (at, 1.0, 0.0))
        for follower, mimic in reversed(chain.items()):
            ratio, offset = mimic.ratio * ratio, mimic.ratio * offset + mimic.offset
            found[follower] = leader, ratio, offset
    return found


def check_couplings(attachments: Mapping[str, Attachment], carried: Mapping[str, str]) -> None:
    """Check that every joint that follows another one can; errors as for :func:`leaders`, and if that one is locked."""
    joints = {name: attachments[link].joint for name, link in carried.items()}
    for name, joint in joints.items():
        leader = "" if joint.mimic is None else joint.mimic.joint
        if leader in carried and attachments[carried[leader]].locked is not None:
            raise TopologyError(f"joint {name!r} cannot follow {leader!r}, which is locked; unlock it first")
    leaders(joints)
