"""The structure of a tree as one frozen value, without physics and state, and its surgery, which makes other values."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from screwdyn.core import ContactError, JointError, LoopError, ShapeError, TopologyError, UnknownNameError, expressions
from screwdyn.core.types import NAME, Array, ArrayLike, Entries, cached_property, growing, is_name
from screwdyn.mechanism.contact import Contact
from screwdyn.mechanism.inertia import Inertia
from screwdyn.mechanism.joint import Joint, Mimic, checked_positions
from screwdyn.mechanism.link import ROTOR_ENDINGS, Attachment, Link, Loop, rerooted
from screwdyn.mechanism.shape import Shapes, shapes_of
from screwdyn.screws import screw

if TYPE_CHECKING:
    import networkx as nx

_NO_EXCHANGE = "which cannot be exchanged in motion; change the tree without a state"


def leaders(joints: Mapping[str, Joint]) -> dict[str, tuple[str, Any, Any]]:
    """For each joint, by name, that follows another one: the freedom that it follows in the end, ratio and offset."""
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
    """Raise TopologyError or UnknownNameError if a joint follows another one that it cannot follow."""
    joints = {name: attachments[link].joint for name, link in carried.items()}
    for name, joint in joints.items():
        leader = "" if joint.mimic is None else joint.mimic.joint
        if leader in carried and attachments[carried[leader]].locked is not None:
            raise TopologyError(f"joint {name!r} cannot follow {leader!r}, which is locked; unlock it first")
    leaders(joints)


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


class _Found:
    """What follows from a topology and has been asked for: a dictionary beside the slots of the topology."""


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Topology(_Found):
    """The structure of a tree as one immutable value; what follows from it is found when it is first asked for."""

    attachments: Entries[Attachment]  # by link: the base first, then in order of attachment, parents before children
    carried: Entries[str]  # the link that each joint carries
    gravity: Array  # in the base frame, (3,), m/s²
    revision: int = 0  # number of changes
    followers: int = 0  # number of joints that follow others, also while locked; only then are these looked for
    loops: dict[str, Loop] = field(default_factory=dict)  # in the order in which they were closed
    contacts: dict[str, Contact] = field(default_factory=dict)  # in the order in which they were made

    @classmethod
    def rooted(cls, base: Link, gravity: ArrayLike = (0.0, 0.0, -9.81)) -> Topology:
        """A base without further links; ShapeError if gravity is not three finite numbers."""
        return cls({base.name: Attachment(base)}, {}, _field(gravity))

    @property
    def base(self) -> str:
        """Name of the link that does not move."""
        return next(iter(self.attachments))

    @property
    def coupled(self) -> bool:
        """Whether a joint follows another one and is not locked."""
        return self.followers > 0 and any(at.joint.mimic is not None for at in self.attachments.values())

    @cached_property
    def links(self) -> tuple[str, ...]:
        """Names of all links, the base first, in order of attachment."""
        return tuple(self.attachments)

    @cached_property
    def joints(self) -> tuple[str, ...]:
        """Names of all joints, fixed ones too, in order of attachment."""
        return tuple(self.carried)

    @cached_property
    def locked(self) -> tuple[str, ...]:
        """Names of the locked joints, in order of attachment; see ``tree.lock`` and ``tree.lock_of``."""
        return tuple([at.name for at in self.attached if at.locked is not None])

    @cached_property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the nv freedoms, in order of attachment: the indices of M, C, g, rates and torques."""
        return tuple([name for at in self.attached if at.joint.nv for name in at.coordinates])

    @cached_property
    def positions(self) -> tuple[str, ...]:
        """Names of the nq entries of q, in order of attachment; quaternions have their scalar last."""
        if all([at.joint.nv < 2 for at in self.attachments.values()]):
            return self.coordinates
        return tuple([name for at in self.attached for name in at.joint.position_names(at.name)])

    @cached_property
    def leaders(self) -> dict[str, tuple[str, Any, Any]]:
        """What :func:`leaders` finds."""
        return leaders({at.name: at.joint for at in self.attached})

    @cached_property
    def neutral(self) -> Array:
        """The neutral positions of all joints, (nq,)."""
        return np.array([x for at in self.attached for x in at.joint.neutral])

    @cached_property
    def nv(self) -> int:
        """Number of freedoms."""
        return sum([at.joint.nv for at in self.attached])

    @cached_property
    def nq(self) -> int:
        """Number of positions."""
        return sum([at.joint.nq for at in self.attached])

    @cached_property
    def mass(self) -> float:
        """Mass of all links together, kg; an expression if it contains symbols."""
        bodies = (at.link.inertia for at in self.attachments.values())
        total = sum(inertia.mass for inertia in bodies if inertia is not None)
        return float(total) if expressions.is_number(total) else total

    @property
    def touching(self) -> list[Contact]:
        """The contact of each point of all contacts."""
        return [contact for contact in self.contacts.values() for _ in contact.spots]

    @property
    def ties(self) -> list[Loop | Contact]:
        """The loops, then the contacts."""
        return [*self.loops.values(), *self.contacts.values()]

    @property
    def attached(self) -> Iterable[Attachment]:
        """All links but the base."""
        return itertools.islice(self.attachments.values(), 1, None)

    def __reduce__(self) -> tuple[object, ...]:
        """Without what follows from it."""
        return type(self), tuple(getattr(self, part.name) for part in fields(self))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.base!r}: {len(self.attachments)} links, revision {self.revision}>"

    def __contains__(self, name: object) -> bool:
        """Whether a link, a joint, a loop or a contact has a given name."""
        return name in self.attachments or name in self.carried or name in self.loops or name in self.contacts

    def attach(self, newcomers: Sequence[Attachment]) -> Topology:
        """The structure with further links, each of which comes after its parent; errors as for a tree."""
        followers, further = self.followers, len(newcomers)
        attachments, carried = growing(self.attachments, further), growing(self.carried, further)
        hint = "give the new one another name, or attach it with a prefix: attach(…, prefix='left/')"
        for new in newcomers:
            UnknownNameError.check(new.parent, attachments)
            self.check_names(new, attachments, carried, hint)
            attachments[new.link.name] = new
            carried[new.name] = new.link.name
            followers += new.follows is not None
            hint = "attach the tree with a prefix, which begins all its names: attach(…, prefix='left/')"
        if followers:
            check_couplings(attachments, carried)
        revision = self.revision + 1
        return Topology(attachments, carried, self.gravity, revision, followers, self.loops, self.contacts)

    def check_names(
        self, new: Attachment, attachments: Mapping[str, Attachment], carried: Mapping[str, str], hint: str
    ) -> None:
        """Raise TopologyError if a name of a new attachment is taken."""
        link, name = new.link.name, new.name
        for what, ties in (("loop", self.loops), ("contact", self.contacts)):
            if ties and (taken := [x for x in (link, name) if x in ties]):
                raise TopologyError(f"there is a {what} {taken[0]!r} already; {hint}")
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
        """The structure without a link and what is beyond it, and the removed attachments, that of the link first."""
        if root == self.base:
            raise TopologyError(f"{root!r} is the base, which cannot be detached; name a link that was attached")
        attachments, carried, removed = self.attachments.copy(), self.carried.copy(), []
        for name in self.subtree(root):
            removed.append(attachments.pop(name))
            del carried[removed[-1].name]
        followers = self.followers - sum([at.follows is not None for at in removed])
        loops, contacts = self.loops, self.contacts
        if loops:
            loops = {x: loop for x, loop in loops.items() if loop.link in attachments and loop.to in attachments}
        if contacts:
            contacts = {x: one for x, one in contacts.items() if one.link in attachments and one.to in attachments}
        return Topology(attachments, carried, self.gravity, self.revision + 1, followers, loops, contacts), removed

    def at(self, link: object) -> Attachment:
        """The attachment of a link; UnknownNameError if there is no such link."""
        if isinstance(link, str) and link in self.attachments:
            return self.attachments[link]
        if isinstance(link, str) and link in self.carried:
            raise UnknownNameError(
                f"there is no link {link!r}: that is a joint, which carries the link {self.carried[link]!r}"
            )
        raise UnknownNameError.of(link, self.attachments)

    def carrying(self, joint: str) -> Attachment:
        """The attachment by a joint; UnknownNameError if there is no such joint."""
        if not isinstance(joint, str) or joint not in self.carried:
            if isinstance(joint, str) and joint in self.attachments and joint != self.base:
                raise UnknownNameError(
                    f"there is no joint {joint!r}: that is a link, which joint {self.attachments[joint].name!r} carries"
                )
            raise UnknownNameError.of(joint, self.carried, "joint")
        return self.attachments[self.carried[joint]]

    def with_attachments(self, *new: Attachment) -> Topology:
        """The structure with other attachments of some links, at the same places in the order."""
        attachments, carried, followers = self.attachments.copy(), self.carried, self.followers
        for at in new:
            former = attachments[at.link.name]
            if at.name != former.name:
                carried = {at.name if joint == former.name else joint: link for joint, link in carried.items()}
            followers += (at.follows is not None) - (former.follows is not None)
            attachments[at.link.name] = at
        if followers:
            check_couplings(attachments, carried)
        revision = self.revision + 1
        return Topology(attachments, carried, self.gravity, revision, followers, self.loops, self.contacts)

    def followers_of(self, joint: str) -> list[tuple[Attachment, Any, Any]]:
        """The joints that follow a joint, through any number of others, with their ratios and offsets."""
        found = self.leaders.items() if self.followers else ()
        return [(self.attachments[self.carried[x]], r, c) for x, (leader, r, c) in found if leader == joint]

    def check_separated(self, removed: Sequence[Attachment]) -> None:
        """Raise TopologyError if a joint would lose the joint that it follows, also among detached attachments."""
        _, *rest = removed
        apart = {at.name for at in rest}
        staying = self.attachments.values() if self.followers else ()
        for at, present in [*((at, self.carried) for at in staying), *((at, apart) for at in rest)]:
            if at.follows is not None and at.follows not in present:
                raise TopologyError(
                    f"joint {at.name!r} follows {at.follows!r}, from which it would be separated; detach a "
                    f"link that carries both, or replace the joint"
                )

    def subtree(self, root: str) -> tuple[str, ...]:
        """Names of a link and all links beyond it, in order of attachment."""
        names = list(self.attachments)
        beyond = {root: None}
        for name in names[names.index(root) + 1 :]:  # children come after their parents
            if self.attachments[name].parent in beyond:
                beyond[name] = None
        return tuple(beyond)

    def neighbours(self, link: str) -> set[str]:
        """Names of the links that joints and loops connect with a link."""
        ends = [(loop.link, loop.to) for loop in self.loops.values()]
        ends += [(at.link.name, at.parent or "") for at in self.attached]
        return {x for pair in ends if link in pair for x in pair} - {link}

    def with_gravity(self, gravity: ArrayLike) -> Topology:
        """The structure with another acceleration of gravity; ShapeError if it is not three finite numbers."""
        return replace(self, gravity=_field(gravity), revision=self.revision + 1)

    # Changes of links and joints

    def lock(self, joint: str, q: ArrayLike | None = None) -> Topology:
        """The structure with a joint, and those that follow it, fixed at some positions, neutral by default."""
        at = self.carrying(joint)
        if at.locked is not None:
            raise TopologyError(f"joint {joint!r} is locked already; unlock it first")
        if at.follows is not None:
            raise TopologyError(f"joint {joint!r} follows {at.follows!r}; lock that one, and both are locked")
        if not at.joint.nv:
            raise TopologyError(f"joint {joint!r} is fixed, so there is nothing to lock")
        followers = self.followers_of(joint)
        positions = None if q is None else checked_positions(joint, at.joint, q)
        places = [(at, positions)]
        for other, ratio, offset in followers:
            x = expressions.array([ratio * (0.0 if positions is None else positions[0]) + offset])
            places.append((other, expressions.floats(x, "the coupling of joints")))
        return self.with_attachments(*(at.locked_at(x) for at, x in places))

    def unlock(self, joint: str) -> Topology:
        """The structure with a locked joint, and those that follow it, as before; coordinates return to their place."""
        at = self.carrying(joint)
        if at.locked is None:
            others = [name for name, link in self.carried.items() if self.attachments[link].locked]
            raise TopologyError(f"joint {joint!r} is not locked; locked joints: {', '.join(others) or 'none'}")
        if at.follows is not None:
            raise TopologyError(f"joint {joint!r} follows {at.follows!r}; unlock that one, and both are unlocked")
        free = replace(self, attachments={link: other.unlocked for link, other in self.attachments.items()})
        return self.with_attachments(at.unlocked, *(other for other, _, _ in free.followers_of(joint)))

    def move(self, root: str, to: str, joint: Joint, home: Array, by: str | None = None) -> Topology:
        """The structure with a link and all links beyond it on another parent; they come last, with the joint's rotor.

        A lock of the former joint ends. The new joint carries the link, or ``by``, which is one of the links beyond it:
        the joints between the two are then reversed.
        """
        remaining, removed = self._vacated(root).detach(root)
        if to not in remaining.attachments:
            where = "the same link" if to == root else "beyond it"
            raise TopologyError(f"{root!r} cannot be moved to {to!r}, which is {where}; name a link of the rest")
        first, *beyond = removed if by is None else self._turned(removed, by)
        moved = replace(first, parent=to, joint=joint, home=home, locked=None)
        for other in beyond:
            if other.name == moved.name:
                raise TopologyError(
                    f"the new joint of {root!r} would be named {other.name!r}, as that of {other.link.name!r} beyond "
                    f"it; move it by a joint of another name: tree.move({root!r}, …, joint=…(name=…))"
                )
        changed = remaining.attach([moved, *beyond, *moved.rotor])
        return replace(changed, revision=self.revision + 1, loops=self.loops, contacts=self.contacts)

    def replace_joint(self, link: str, joint: Joint, home: Array | None = None) -> Topology:
        """The structure with another joint of a link, which has the same place in the order; its rotor comes last.

        A joint without a name takes the name of the former one. The home pose stays the same if none is given.
        """
        at = self.attachments[link]
        if at.parent is None:
            raise TopologyError(f"{link!r} is the base, which has no joint; name a link that was attached")
        new = at.by(joint.named(joint.name or at.joint.name), at.unlocked.home if home is None else screw.as_pose(home))
        vacated = self._vacated(link)
        others, carried = vacated.attachments.copy(), vacated.carried.copy()
        del others[link], carried[at.name]
        self.check_names(new, others, carried, "give the joint another name")
        changed = vacated.with_attachments(new)
        return replace(changed.attach(new.rotor), revision=changed.revision) if new.rotor else changed

    def grafted(self, root: str, loop: Loop) -> Topology:
        """The structure in which a link and all links beyond it hang on one of the loops that bridge its joint.

        The joint of the loop, whose ``link`` is at or beyond the root, becomes a passive joint of the tree.
        """
        joint = replace(loop.joint, name=loop.name, passive=loop.joint.nv > 0)
        return without_ties(self, loop.name).move(root, loop.to, joint, loop.home, loop.link)

    def reroot(self, root: str, link: str) -> Topology:
        """The structure in which the joint of a root carries a link beyond it instead; the joints between are reversed.

        The subtree keeps its places in the order: there, the links between come first, outward from the new root.
        """
        former, inside = self.attachments[root], self.subtree(root)
        first, *beyond = self._turned([self.attachments[name] for name in inside], link)
        joint = former.joint.named(former.name)
        first = replace(first, parent=former.parent, joint=joint, home=former.home, locked=None)
        turned = dict(zip(inside, (first, *beyond), strict=True))
        placed = [turned.get(name, at) for name, at in self.attachments.items()]
        carried = {at.name: at.link.name for at in placed[1:]}
        return replace(self, attachments={at.link.name: at for at in placed}, carried=carried).with_attachments()

    def set_inertia(self, link: str, inertia: Inertia | None) -> Topology:
        """The structure with another inertia of a link; InertiaError if it is none, TopologyError for a rotor."""
        check_no_rotor(self, link)
        at = self.attachments[link]
        return self.with_attachments(replace(at, link=replace(at.link, inertia=inertia)))

    def set_shapes(self, link: str, shapes: Shapes) -> Topology:
        """The structure with other shapes of a link; ShapeError if they are none."""
        at = self.attachments[link]
        return self.with_attachments(replace(at, link=replace(at.link, shapes=shapes_of(shapes))))

    def separable(self, root: str) -> Topology:
        """The structure in which joints beyond a link and of the rest neither follow nor drive each other."""
        if not self.followers:
            return self
        inside = {*self.subtree(root)} - {root}
        own, changed = {self.attachments[link].name for link in inside}, []
        for link, at in self.attachments.items():
            within = link in inside
            parted = at.follows is not None and (at.follows in own) != within
            drives = any((part.link.name in inside) != within for part in at.unlocked.rotor)
            if link != root and (parted or drives):
                mimic, rotor = None if parted else at.joint.mimic, None if drives else at.joint.rotor
                changed.append(replace(at, joint=replace(at.joint, mimic=mimic, rotor=rotor), locked=None))
        return self.with_attachments(*changed)

    def _turned(self, attachments: list[Attachment], link: str) -> list[Attachment]:
        """The attachments of a subtree with one of its links as the root; TopologyError also if a rotor is between."""
        at = self.attachments[link]
        while at.link.name != attachments[0].link.name:
            check_no_rotor(self, at.link.name)
            at = self.attachments[at.parent or self.base]
        return rerooted(attachments, link)

    def _vacated(self, link: str) -> Topology:
        """The structure without the rotor of a link's joint; TopologyError also if joints are locked with it."""
        vacated, at = without_rotor(self, link), self.attachments[link]
        if at.locked is not None:
            for other in vacated.attachments.values():
                if other.follows == at.name:
                    raise TopologyError(
                        f"joint {at.name!r} is locked together with {other.name!r}, which follows it; unlock it first"
                    )
        return vacated

    @cached_property
    def graph(self) -> nx.DiGraph:
        """The structure as a frozen graph; see :attr:`KinematicTree.graph`."""
        import networkx as nx  # at the top of the module it would take half the time of `import screwdyn`

        graph = nx.DiGraph()
        graph.graph = _ReadOnly(
            gravity=self.gravity, loops=tuple(self.loops.values()), contacts=tuple(self.contacts.values())
        )
        for name, at in self.attachments.items():
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


def check_exchange(topology: Topology, joint: Joint, former: Attachment | None = None) -> None:
    """Raise an error for a new joint in motion if positions would not be continuous, or not free to be chosen."""
    if former is not None:
        check_no_rotor(topology, former.link.name)
        check_unfollowed(topology, former)
    if joint.mimic is not None or (former is not None and former.joint.mimic is not None):
        raise JointError(f"a joint that follows another one, {_NO_EXCHANGE}")


def check_unfollowed(topology: Topology, former: Attachment) -> None:
    """Raise JointError if a joint follows one that is to be exchanged, but that of its rotor, which goes with it."""
    own = {at.name for at in former.rotor}
    others = (at for at in topology.attachments.values() if at.name not in own) if topology.followers else ()
    if any(at.joint.mimic is not None and at.joint.mimic.joint == former.name for at in others):
        raise JointError(f"joint {former.name!r} is followed by another one, {_NO_EXCHANGE}")


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
    """The structure of the same revision without the links of the rotor of a link's joint, or TopologyError."""
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


def with_ties(topology: Topology, ties: Iterable[Loop | Contact]) -> Topology:
    """The structure of the same revision with further loops and contacts; errors as for a tree."""
    for tie in ties:
        what = "loop" if isinstance(tie, Loop) else "contact"
        for link in (tie.link, tie.to):
            check_no_rotor(topology, UnknownNameError.check(link, topology.attachments))
        if tie.link == tie.to:
            raise TopologyError(f"a {what} connects two links; got {tie.link!r} twice")
        if not is_name(tie.name):
            raise TopologyError(f"the name of a {what} must be {NAME}; got {tie.name!r}")
        if tie.name in topology:
            raise TopologyError(
                f"there is a link, joint, loop or contact {tie.name!r} already; give the {what} another name"
            )
        if isinstance(tie, Loop):
            topology = replace(topology, loops=topology.loops | {tie.name: tie})
        else:
            topology = replace(topology, contacts=topology.contacts | {tie.name: tie})
    return topology


def without_ties(topology: Topology, *names: str) -> Topology:
    """The structure of the same revision without some loops and contacts, which exist."""
    loops = {x: loop for x, loop in topology.loops.items() if x not in names}
    return replace(topology, loops=loops, contacts={x: one for x, one in topology.contacts.items() if x not in names})


def check_open(
    topology: Topology, what: str, instead: str = "open the loops in a copy of the tree first", touching: bool = False
) -> None:
    """Raise LoopError or, unless it knows ``touching`` links, ContactError if something would ignore their forces."""
    if topology.loops:
        names = ", ".join(map(repr, topology.loops))
        raise LoopError(
            f"{what} is not available for a tree with closed loops, because it would ignore the forces in {names}; "
            f"{instead}"
        )
    if not touching:
        check_untouched(topology, what)


def check_untouched(topology: Topology, what: str) -> None:
    """Raise ContactError if there are contacts, which something would ignore."""
    if topology.contacts:
        names = ", ".join(map(repr, topology.contacts))
        raise ContactError(
            f"{what} is not available for a tree with contacts, because it would ignore the forces at {names}; remove "
            f"them in a copy of the tree first: tree.part(…)"
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
    return without_ties(topology, *[loop.name for loop in bridging(topology, root)])
