"""Changes of the links and joints of a structure; each returns a new structure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from screwdyn.core import expressions
from screwdyn.core.errors import ShapeError, TopologyError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.mechanism.chart import checked_positions, pose_at
from screwdyn.mechanism.inertia import Inertia
from screwdyn.mechanism.joint import Joint, fixed
from screwdyn.mechanism.link import FIXED, Attachment, Locked, Loop, rerooted
from screwdyn.mechanism.shape import Shapes, shapes_of
from screwdyn.mechanism.topology import Topology, check_no_rotor, without_loop, without_rotor
from screwdyn.screws import screw

__all__ = [
    "grafted",
    "kept_joint",
    "lock",
    "move",
    "replace_joint",
    "reroot",
    "separable",
    "set_inertia",
    "set_shapes",
    "unlock",
]


def lock(topology: Topology, joint: str, q: ArrayLike | None = None) -> Topology:
    """The structure with a joint, and those that follow it, fixed at some positions, neutral by default.

    Raises UnknownNameError, TopologyError or ShapeError if there is no such joint, it is fixed or locked already, or
    ``q`` are no positions of it.
    """
    at = topology.carrying(joint)
    if at.locked is not None:
        raise TopologyError(f"joint {joint!r} is locked already, at {_numbers(at.locked.q)}; unlock it first")
    if at.joint.mimic is not None:
        raise TopologyError(f"joint {joint!r} follows {at.joint.mimic.joint!r}; lock that one, and both are locked")
    if not at.joint.nv:
        raise TopologyError(f"joint {joint!r} is fixed, so there is nothing to lock")
    positions = None if q is None else checked_positions(joint, at.joint, q)
    changed = [_locked(at, positions)]
    for other, ratio, offset in topology.followers_of(joint):
        x = expressions.array([ratio * (0.0 if positions is None else positions[0]) + offset])
        changed.append(_locked(other, expressions.floats(x, "the coupling of joints")))
    return topology.with_attachments(*changed)


def _locked(at: Attachment, q: Array | None) -> Attachment:
    """An attachment with its joint fixed at some positions, or in its neutral ones, whatever symbols it has."""
    positions = at.joint.neutral if q is None else tuple(q.tolist())
    home = at.home if q is None else at.home @ pose_at(at.joint, q)
    if not expressions.is_bounded(home[:3, 3]):
        raise ShapeError(f"joint {at.name!r} at {_numbers(positions)} would move its link too far; lock it nearer")
    locked = Locked(at.joint, at.home, positions)
    return at.by(fixed(at.joint.name), home, locked)


def unlock(topology: Topology, joint: str) -> Topology:
    """The structure with a locked joint, and those that follow it, as before; coordinates return to their places.

    Raises UnknownNameError or TopologyError if there is no such joint, it is not locked, or it was locked with another
    one that it follows.
    """
    at = topology.carrying(joint)
    if at.locked is None:
        others = [name for name, link in topology.carried.items() if topology.attachments[link].locked]
        raise TopologyError(f"joint {joint!r} is not locked; locked joints: {', '.join(others) or 'none'}")
    mimic = at.locked.joint.mimic
    if mimic is not None:
        raise TopologyError(f"joint {joint!r} follows {mimic.joint!r}; unlock that one, and both are unlocked")
    free = replace(topology, attachments={link: other.unlocked for link, other in topology.attachments.items()})
    return topology.with_attachments(at.unlocked, *(other for other, _, _ in free.followers_of(joint)))


def move(topology: Topology, root: str, to: str, joint: Joint, home: Array, by: str | None = None) -> Topology:
    """The structure with a link and all links beyond it on another parent; they come last, with the joint's rotor.

    A lock of the former joint ends. The new joint carries the link, or ``by``, which is one of the links beyond it:
    the joints between the two are then reversed. Raises JointError if one of these cannot be; TopologyError if one of
    them carries a rotor, the link is the base or a rotor, ``to`` is the link or beyond it, the name of the joint is
    taken, the rotor of the former joint carries other links, or joints that follow it are locked with it;
    UnknownNameError if there is no link that carries the new rotor.
    """
    remaining, removed = _vacated(topology, root).detach(root)
    if to not in remaining.attachments:
        where = "the same link" if to == root else "beyond it"
        raise TopologyError(f"{root!r} cannot be moved to {to!r}, which is {where}; name a link of the rest")
    first, *beyond = removed if by is None else _turned(topology, removed, by)
    moved = replace(first, parent=to, joint=joint, home=home, locked=None)
    for other in beyond:
        if other.name == moved.name:
            raise TopologyError(
                f"the new joint of {root!r} would be named {other.name!r}, as that of {other.link.name!r} beyond it; "
                f"move it by a joint of another name: tree.move({root!r}, …, joint=…(name=…))"
            )
    changed = remaining.attach([moved, *beyond, *moved.rotor])
    return replace(changed, revision=topology.revision + 1, loops=topology.loops)


def kept_joint(at: Attachment) -> Joint:
    """The joint of a link that is moved without another one: its own, but a fixed one for a link that moves freely."""
    joint = at.unlocked.joint
    return joint if joint.nv < 6 else FIXED


def replace_joint(topology: Topology, link: str, joint: Joint, home: Array | None = None) -> Topology:
    """The structure with another joint of a link, which has the same place in the order; its rotor comes last.

    A joint without a name takes the name of the former one. The home pose stays the same if none is given.
    A lock of the former joint ends. Errors as for :func:`move`.
    """
    at = topology.attachments[link]
    if at.parent is None:
        raise TopologyError(f"{link!r} is the base, which has no joint; name a link that was attached")
    new = at.by(joint.named(joint.name or at.joint.name), at.unlocked.home if home is None else screw.as_pose(home))
    vacated = _vacated(topology, link)
    others, carried = vacated.attachments.copy(), vacated.carried.copy()
    del others[link], carried[at.name]
    topology.check_names(new, others, carried, "give the joint another name")
    changed = vacated.with_attachments(new)
    return replace(changed.attach(new.rotor), revision=changed.revision) if new.rotor else changed


def grafted(topology: Topology, root: str, loop: Loop) -> Topology:
    """The structure in which a link and all links beyond it hang on one of the loops that bridge its joint.

    The joint of the loop, whose ``link`` is at or beyond the root, becomes a passive joint of the tree with the name of
    the loop; that of the link is removed. Errors as for :func:`move`.
    """
    joint = replace(loop.joint, name=loop.name, passive=loop.joint.nv > 0)
    return move(without_loop(topology, loop.name), root, loop.to, joint, loop.home, loop.link)


def reroot(topology: Topology, root: str, link: str) -> Topology:
    """The structure in which the joint of a root carries a link beyond it instead; the joints between are reversed.

    The subtree keeps its places in the order: there, the links between come first, outward from the new root, and all
    others follow as before. Raises JointError if a joint cannot be reversed, TopologyError for that of a rotor.
    """
    former, inside = topology.attachments[root], topology.subtree(root)
    first, *beyond = _turned(topology, [topology.attachments[name] for name in inside], link)
    joint = former.joint.named(former.name)
    first = replace(first, parent=former.parent, joint=joint, home=former.home, locked=None)
    turned = dict(zip(inside, (first, *beyond), strict=True))
    placed = [turned.get(name, at) for name, at in topology.attachments.items()]
    carried = {at.name: at.link.name for at in placed[1:]}
    return replace(topology, attachments={at.link.name: at for at in placed}, carried=carried).with_attachments()


def set_inertia(topology: Topology, link: str, inertia: Inertia | None) -> Topology:
    """The structure with another inertia of a link; InertiaError if it is none, TopologyError for a rotor."""
    check_no_rotor(topology, link)
    at = topology.attachments[link]
    return topology.with_attachments(replace(at, link=replace(at.link, inertia=inertia)))


def set_shapes(topology: Topology, link: str, shapes: Shapes) -> Topology:
    """The structure with other shapes of a link; ShapeError if they are none."""
    at = topology.attachments[link]
    return topology.with_attachments(replace(at, link=replace(at.link, shapes=shapes_of(shapes))))


def separable(topology: Topology, root: str) -> Topology:
    """The structure in which nothing beyond a link and nothing of the rest follow each other.

    Joints that do are independent, and those that drive a rotor on the other side have none.
    """
    if not topology.followers:
        return topology
    inside = {*topology.subtree(root)} - {root}
    own, changed = {topology.attachments[link].name for link in inside}, []
    for link, at in topology.attachments.items():
        joint, within = at.unlocked.joint, link in inside
        follows = joint.mimic is not None and (joint.mimic.joint in own) != within
        drives = any((part.link.name in inside) != within for part in at.unlocked.rotor)
        if link != root and (follows or drives):
            mimic, rotor = None if follows else at.joint.mimic, None if drives else at.joint.rotor
            changed.append(replace(at, joint=replace(at.joint, mimic=mimic, rotor=rotor), locked=None))
    return topology.with_attachments(*changed)


def _turned(topology: Topology, attachments: list[Attachment], link: str) -> list[Attachment]:
    """The attachments of a subtree with one of its links as the root; TopologyError also if a rotor is between."""
    at = topology.attachments[link]
    while at.link.name != attachments[0].link.name:
        check_no_rotor(topology, at.link.name)
        at = topology.attachments[at.parent or topology.base]
    return rerooted(attachments, link)


def _vacated(topology: Topology, link: str) -> Topology:
    """The structure without the rotor of a link's joint; TopologyError also if joints are locked with it."""
    vacated, at = without_rotor(topology, link), topology.attachments[link]
    if at.locked is not None:
        for other in vacated.attachments.values():
            mimic = other.unlocked.joint.mimic
            if mimic is not None and mimic.joint == at.name:
                raise TopologyError(
                    f"joint {at.name!r} is locked together with {other.name!r}, which follows it; unlock it first"
                )
    return vacated


def _numbers(q: Iterable[float]) -> str:
    return ", ".join(f"{x:.4g}" for x in q)
