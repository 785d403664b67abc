"""The structure of a tree as one frozen value: links, joints, names and gravity, without physics and state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.errors import ShapeError, TopologyError, UnknownNameError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.mechanism.attachment import Attachment, Locked
from screwdyn.mechanism.couplings import check_couplings, leaders
from screwdyn.mechanism.inertia import Inertia
from screwdyn.mechanism.joint import Joint, fixed
from screwdyn.mechanism.joint_pose import checked_positions, pose_at
from screwdyn.mechanism.link import Link
from screwdyn.mechanism.loop import Loop
from screwdyn.mechanism.loops import with_loops
from screwdyn.mechanism.reversal import rerooted
from screwdyn.mechanism.rotors import check_no_rotor, without_rotor
from screwdyn.mechanism.shape import Shapes, shapes_of
from screwdyn.screws import screw

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["Topology"]


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Topology:
    """The structure of a tree as one immutable value; attaching and detaching return a new one.

    Attributes
    ----------
    attachments : mapping from link name to Attachment
        The base first, then in order of attachment, so that parents come before children.
    carried : mapping from joint name to the name of the link that it carries
    gravity : (3,) array
        In the base frame, m/s².
    revision : int
        Number of changes.
    followers : int
        Number of joints that follow others, also while they are locked; only if there are any are they looked for.
    loops : mapping from name to Loop
        Joints between links of the tree that the tree does not have, in the order in which they were closed.
    """

    attachments: dict[str, Attachment]
    carried: dict[str, str]
    gravity: Array
    revision: int = 0
    followers: int = 0
    loops: dict[str, Loop] = field(default_factory=dict)

    @classmethod
    def rooted(cls, base: Link, gravity: ArrayLike = (0.0, 0.0, -9.81)) -> Topology:
        """A base without further links.

        Raises
        ------
        ShapeError
            If gravity is not three finite numbers.
        """
        return cls({base.name: Attachment(base)}, {}, _field(gravity))

    @property
    def base(self) -> str:
        """Name of the link that does not move."""
        return next(iter(self.attachments))

    @property
    def coupled(self) -> bool:
        """Whether a joint follows another one and is not locked."""
        return self.followers > 0 and any(at.joint.mimic is not None for at in self.attachments.values())

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.base!r}: {len(self.attachments)} links, revision {self.revision}>"

    def __contains__(self, name: object) -> bool:
        """Whether a link, a joint or a loop has a given name."""
        return name in self.attachments or name in self.carried or name in self.loops

    def attach(self, newcomers: Iterable[Attachment], loops: Sequence[Loop] = ()) -> Topology:
        """The structure with further links, each of which comes after its parent, and loops between links.

        Raises
        ------
        TopologyError
            If the name of a link, a joint or a loop is taken, or would also be the name of a freedom or position; or if
            a joint cannot follow another one.
        UnknownNameError
            If there is no link to which one of them is attached, or no joint that it follows.
        """
        attachments, carried, followers = self.attachments.copy(), self.carried.copy(), self.followers
        hint = "give the new one another name, or attach it with a prefix: attach(…, prefix='left/')"
        for new in newcomers:
            if new.parent not in attachments:
                raise UnknownNameError.of(new.parent, attachments)
            self._check_names(new, attachments, carried, hint)
            attachments[new.link.name] = new
            carried[new.name] = new.link.name
            followers += new.follows
            hint = "attach the tree with a prefix, which begins all its names: attach(…, prefix='left/')"
        if followers:
            check_couplings(attachments, carried)
        topology = Topology(attachments, carried, self.gravity, self.revision + 1, followers, self.loops)
        return with_loops(topology, *loops) if loops else topology

    def _check_names(
        self, new: Attachment, attachments: Mapping[str, Attachment], carried: Mapping[str, str], hint: str
    ) -> None:
        """Raise TopologyError if a name of a new attachment is taken."""
        link, name = new.link.name, new.name
        taken = next((x for x in (link, name) if x in self.loops), None) if self.loops else None
        if taken is not None:
            raise TopologyError(f"there is a loop {taken!r} already; {hint}")
        if link in attachments or name in carried:
            what = f"link {link!r}" if link in attachments else f"joint {name!r}"
            raise TopologyError(f"there is a {what} already; {hint}")
        if "[" in name or new.unlocked.joint.nq > 1:
            self._check_labels(new, attachments, carried)

    @staticmethod
    def _check_labels(new: Attachment, attachments: Mapping[str, Attachment], carried: Mapping[str, str]) -> None:
        """Raise TopologyError if a joint has the name of another joint's freedom or position, such as "hip[wx]"."""
        stem, bracket, _ = new.name.rpartition("[")
        other = attachments[carried[stem]] if bracket and stem in carried else None
        taken = new.name if other is not None and new.name in other.labels else None
        taken = taken or next((label for label in new.labels if label != new.name and label in carried), None)
        if taken is not None:
            raise TopologyError(
                f"the name {taken!r} would be that of a joint and of a freedom or position of joint "
                f"{(stem if other is not None else new.name)!r}; give one of the joints another name"
            )

    def detach(self, root: str) -> tuple[Topology, list[Attachment]]:
        """The structure without a link and all links beyond it, and the removed attachments, that link first.

        Loops that one of these links closes are gone too.

        Raises
        ------
        TopologyError
            If the link is the base.
        """
        if root == self.base:
            raise TopologyError(f"{root!r} is the base, which cannot be detached; name a link that was attached")
        attachments, carried, removed = self.attachments.copy(), self.carried.copy(), []
        for name in self.subtree(root):
            removed.append(attachments.pop(name))
            del carried[removed[-1].name]
        followers = self.followers - sum([at.follows for at in removed])
        loops = self.loops
        if loops:
            loops = {x: loop for x, loop in loops.items() if loop.link in attachments and loop.to in attachments}
        return Topology(attachments, carried, self.gravity, self.revision + 1, followers, loops), removed

    def _vacated(self, link: str) -> Topology:
        """The structure without the rotor of a link's joint, which is to be exchanged.

        Raises
        ------
        TopologyError
            As for :func:`without_rotor`, and if joints are locked with it because they follow it.
        """
        topology, at = without_rotor(self, link), self.attachments[link]
        if at.locked is not None:
            for other in topology.attachments.values():
                mimic = other.unlocked.joint.mimic
                if mimic is not None and mimic.joint == at.name:
                    raise TopologyError(
                        f"joint {at.name!r} is locked together with {other.name!r}, which follows it; unlock it first"
                    )
        return topology

    def move(self, root: str, to: str, joint: Joint, home: Array, by: str | None = None) -> Topology:
        """The structure with a link and all links beyond it on another parent; they come last, with the joint's rotor.

        A lock of the former joint ends. The new joint carries the link, or ``by``, which is one of the links beyond it:
        the joints between the two are then reversed (:func:`~screwdyn.mechanism.reversal.reversed_joint`).

        Raises
        ------
        JointError
            If one of these joints cannot be reversed.
        TopologyError
            If the link is the base or a rotor, ``to`` is the link or beyond it, the name of the joint is taken, the
            rotor of the former joint carries other links, or joints that follow it are locked with it.
        UnknownNameError
            If there is no link that carries the rotor.
        """
        topology, removed = self._vacated(root).detach(root)
        if to not in topology.attachments:
            where = "the same link" if to == root else "beyond it"
            raise TopologyError(f"{root!r} cannot be moved to {to!r}, which is {where}; name a link of the rest")
        first, *rest = removed if by is None else rerooted(removed, by)
        moved = replace(first, parent=to, joint=joint, home=home, locked=None)
        changed = topology.attach([moved, *rest, *moved.rotor])
        return replace(changed, revision=self.revision + 1, loops=self.loops)

    def replace_joint(self, link: str, joint: Joint, home: Array | None = None) -> Topology:
        """The structure with another joint of a link, which has the same place in the order; its rotor comes last.

        A joint without a name takes the name of the former one. The home pose stays the same if none is given.
        A lock of the former joint ends.

        Raises
        ------
        TopologyError
            If the link is the base or a rotor, the name of the joint is taken, the rotor of the former joint carries
            other links, or joints that follow it are locked with it.
        UnknownNameError
            If there is no link that carries the rotor.
        """
        at = self.attachments[link]
        if at.parent is None:
            raise TopologyError(f"{link!r} is the base, which has no joint; name a link that was attached")
        joint = joint if joint.name is not None else replace(joint, name=at.joint.name)
        new = replace(at, joint=joint, home=at.unlocked.home if home is None else screw.as_pose(home), locked=None)
        topology = self._vacated(link)
        others, carried = topology.attachments.copy(), topology.carried.copy()
        del others[link], carried[at.name]
        self._check_names(new, others, carried, "give the joint another name")
        changed = topology._with(new)
        return replace(changed.attach(new.rotor), revision=changed.revision) if new.rotor else changed

    def set_inertia(self, link: str, inertia: Inertia | None) -> Topology:
        """The structure with another inertia of a link; InertiaError if it is none, TopologyError for a rotor."""
        check_no_rotor(self, link)
        at = self.attachments[link]
        return self._with(replace(at, link=replace(at.link, inertia=inertia)))

    def set_shapes(self, link: str, shapes: Shapes) -> Topology:
        """The structure with other shapes of a link; ShapeError if they are none."""
        at = self.attachments[link]
        return self._with(replace(at, link=replace(at.link, shapes=shapes_of(shapes))))

    def lock(self, joint: str, q: ArrayLike | None = None) -> Topology:
        """The structure with a joint fixed at some positions, neutral by default, which :meth:`unlock` frees again.

        Joints that follow it are locked with it.

        Raises
        ------
        UnknownNameError, TopologyError, ShapeError
            If there is no such joint, it is fixed or locked already, or ``q`` are no positions of it.
        """
        at = self.carrying(joint)
        if at.locked is not None:
            raise TopologyError(f"joint {joint!r} is locked already, at {_numbers(at.locked.q)}; unlock it first")
        if at.joint.mimic is not None:
            raise TopologyError(f"joint {joint!r} follows {at.joint.mimic.joint!r}; lock that one, and both are locked")
        if not at.joint.nv:
            raise TopologyError(f"joint {joint!r} is fixed, so there is nothing to lock")
        home, positions = at.home, at.joint.neutral
        if q is not None:
            found = checked_positions(joint, at.joint, q)
            home, positions = screw.as_pose(at.home @ pose_at(at.joint, found)), tuple(found.tolist())
        locked = Locked(at.joint, at.home, positions)
        changed = [replace(at, joint=fixed(at.joint.name), home=home, locked=locked)]
        for other, ratio, offset in self._followers(joint):
            (x,) = expressions.floats(expressions.array([ratio * positions[0] + offset]), "the coupling of joints")
            home = screw.as_pose(other.home @ pose_at(other.joint, np.array([x])))
            locked = Locked(other.joint, other.home, (float(x),))
            changed.append(replace(other, joint=fixed(other.joint.name), home=home, locked=locked))
        return self._with(*changed)

    def unlock(self, joint: str) -> Topology:
        """The structure with a locked joint as it was before; its coordinates return to their place in the order.

        Joints that follow it are unlocked with it.

        Raises
        ------
        UnknownNameError, TopologyError
            If there is no such joint, it is not locked, or it was locked with another one that it follows.
        """
        at = self.carrying(joint)
        if at.locked is None:
            others = [name for name, link in self.carried.items() if self.attachments[link].locked]
            raise TopologyError(f"joint {joint!r} is not locked; locked joints: {', '.join(others) or 'none'}")
        mimic = at.locked.joint.mimic
        if mimic is not None:
            raise TopologyError(f"joint {joint!r} follows {mimic.joint!r}; unlock that one, and both are unlocked")
        followers = Topology(
            {link: other.unlocked for link, other in self.attachments.items()}, self.carried, self.gravity
        )._followers(joint)
        return self._with(at.unlocked, *(other for other, _, _ in followers))

    def carrying(self, joint: str) -> Attachment:
        """The attachment by a joint.

        Raises
        ------
        UnknownNameError
            If there is no such joint.
        """
        if not isinstance(joint, str) or joint not in self.carried:
            if isinstance(joint, str) and joint in self.attachments and joint != self.base:
                raise UnknownNameError(
                    f"there is no joint {joint!r}: that is a link, which joint {self.attachments[joint].name!r} carries"
                )
            raise UnknownNameError.of(joint, self.carried, "joint")
        return self.attachments[self.carried[joint]]

    def _with(self, *new: Attachment) -> Topology:
        """The structure with other attachments of some links, at the same places in the order."""
        attachments = self.attachments | {at.link.name: at for at in new}
        carried = {at.name: link for link, at in attachments.items() if at.parent is not None}
        followers = sum([at.follows for at in attachments.values()])
        if followers:
            check_couplings(attachments, carried)
        return Topology(attachments, carried, self.gravity, self.revision + 1, followers, self.loops)

    def _followers(self, joint: str) -> list[tuple[Attachment, Any, Any]]:
        """The joints that follow a joint, through any number of others, with their ratios and offsets."""
        found = leaders({name: self.attachments[link].joint for name, link in self.carried.items()})
        return [(self.attachments[self.carried[x]], r, c) for x, (leader, r, c) in found.items() if leader == joint]

    def check_separated(self, removed: Sequence[Attachment]) -> None:
        """Raise TopologyError if a joint would lose the joint that it follows, also among detached attachments."""
        _, *rest = removed
        apart = {at.name for at in rest}
        staying = self.attachments.values() if self.followers else ()
        for at, present in [*((at, self.carried) for at in staying), *((at, apart) for at in rest)]:
            mimic = at.unlocked.joint.mimic
            if mimic is not None and mimic.joint not in present:
                raise TopologyError(
                    f"joint {at.name!r} follows {mimic.joint!r}, from which it would be separated; detach a "
                    f"link that carries both, or replace the joint"
                )

    def separable(self, root: str) -> Topology:
        """The structure in which nothing beyond a link and nothing of the rest follow each other.

        Joints that do are independent, and those that drive a rotor on the other side have none.
        """
        if not self.followers:
            return self
        inside = {*self.subtree(root)} - {root}
        own, changed = {self.attachments[link].name for link in inside}, []
        for link, at in self.attachments.items():
            joint, within = at.unlocked.joint, link in inside
            follows = joint.mimic is not None and (joint.mimic.joint in own) != within
            drives = any((part.link.name in inside) != within for part in at.unlocked.rotor)
            if link != root and (follows or drives):
                mimic, rotor = None if follows else at.joint.mimic, None if drives else at.joint.rotor
                changed.append(replace(at, joint=replace(at.joint, mimic=mimic, rotor=rotor), locked=None))
        return self._with(*changed)

    def subtree(self, root: str) -> list[str]:
        """Names of a link and all links beyond it, in order of attachment."""
        names = list(self.attachments)
        beyond = {root: None}
        for name in names[names.index(root) + 1 :]:  # children come after their parents
            if self.attachments[name].parent in beyond:
                beyond[name] = None
        return list(beyond)

    def with_gravity(self, gravity: ArrayLike) -> Topology:
        """The structure with another acceleration of gravity.

        Raises
        ------
        ShapeError
            If gravity is not three finite numbers.
        """
        return replace(self, gravity=_field(gravity), revision=self.revision + 1)

    @property
    def graph(self) -> nx.DiGraph:
        """The structure as a frozen graph; see :attr:`Structure.graph`."""
        import networkx as nx  # at the top of the module it would take half the time of `import screwdyn`

        graph = nx.DiGraph(loops=tuple(self.loops.values()))
        for name, at in self.attachments.items():
            graph.add_node(name, link=at.link, serial=at.serial)
            if at.parent is not None:
                named = at.coordinates
                one = named[0] if len(named) == 1 else None
                about = {"joint": at.joint, "home": at.home, "name": at.name, "coordinate": one, "coordinates": named}
                about["locked"] = at.locked
                graph.add_edge(at.parent, name, **about)
        return nx.freeze(graph)


def _numbers(q: Iterable[float]) -> str:
    return ", ".join(f"{x:.4g}" for x in q)


def _field(gravity: ArrayLike) -> Array:
    try:
        g = expressions.array(gravity)
    except (TypeError, ValueError):
        raise ShapeError(f"gravity must be three numbers; got {gravity!r}") from None
    if g.shape != (3,) or not expressions.is_bounded(g):
        largest = f"{expressions.LARGEST:g} m/s^2"
        raise ShapeError(f"gravity must be three finite numbers in the base frame, at most {largest}; got {gravity!r}")
    g.setflags(write=False)
    return g
