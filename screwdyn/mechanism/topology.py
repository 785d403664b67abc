"""Links joined into a tree, and its surgery: names and arrows, no physics and no state."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.errors import ShapeError, StaleHandleError, TopologyError, UnknownNameError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.mechanism.inertia import Inertia
from screwdyn.mechanism.joint import Joint, fixed
from screwdyn.mechanism.link import Link
from screwdyn.mechanism.outline import outline
from screwdyn.screws import screw

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["Attachment", "Body", "Handle", "Structure", "Topology"]

_serial = itertools.count()
_FIXED, _IDENTITY = fixed(), np.eye(4)
_IDENTITY.setflags(write=False)


@dataclass(frozen=True)
class Handle:
    """One attachment. It stays good until that attachment ends, and is stale from then on.

    Attributes
    ----------
    name : str
        The link that was attached.
    """

    name: str
    _serial: int


@dataclass(frozen=True, eq=False, slots=True)
class Attachment:
    """A link, and how it hangs on its parent; the base hangs on nothing.

    Attributes
    ----------
    link : Link
    parent : str or None
    joint : Joint
        Fixed for the base.
    home : (4, 4) array
        Pose of the link in its parent where the joint is neutral; made read-only.
    serial : int
        Tells this attachment from a later one of the same name.
    """

    link: Link
    parent: str | None = None
    joint: Joint = _FIXED
    home: Array = field(default_factory=lambda: _IDENTITY)
    serial: int = field(default_factory=lambda: next(_serial))

    def __post_init__(self) -> None:
        self.home.setflags(write=False)

    @property
    def name(self) -> str:
        """Name of the joint, after which its freedoms and coordinates are named."""
        return self.joint.name or self.link.name

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the joint's freedoms."""
        return self.joint.freedom_names(self.name)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the joint's freedoms and positions."""
        return *self.coordinates, *self.joint.position_names(self.name)

    def subs(self, values: Mapping[Any, Any]) -> Attachment:
        """The attachment of another link with values in the place of symbols."""
        home = screw.as_pose(expressions.substituted(self.home, values), f"the pose of {self.link.name!r}")
        return replace(
            self, link=self.link.subs(values), serial=next(_serial), joint=self.joint.subs(values), home=home
        )


@dataclass(frozen=True, eq=False, slots=True)
class Topology:
    """All there is to a tree's structure, as one value that never changes; surgery returns another one.

    Attributes
    ----------
    attachments : mapping from link name to Attachment
        The base first, then in order of attachment, so that parents come before children.
    carried : mapping from joint name to the name of the link that it carries
    gravity : (3,) array
        In the base frame, m/s².
    revision : int
        Counts the changes.
    """

    attachments: dict[str, Attachment]
    carried: dict[str, str]
    gravity: Array
    revision: int = 0

    @classmethod
    def rooted(cls, base: Link, gravity: ArrayLike = (0.0, 0.0, -9.81)) -> Topology:
        """A base with nothing on it.

        Raises
        ------
        ShapeError
            Unless gravity is three finite numbers.
        """
        return cls({base.name: Attachment(base)}, {}, _field(gravity))

    @property
    def base(self) -> str:
        """Name of the link that does not move."""
        return next(iter(self.attachments))

    def attach(self, newcomers: Iterable[Attachment]) -> Topology:
        """The structure with some links more, each of which comes after its parent.

        Raises
        ------
        TopologyError
            A name of a link or of a joint that is taken.
        """
        attachments, carried = self.attachments.copy(), self.carried.copy()
        hint = "give the new one another name"
        for new in newcomers:
            link = new.link.name
            for what, name, taken in (("link", link, attachments), ("joint", new.name, carried)):
                if name in taken:
                    raise TopologyError(f"there is a {what} {name!r} already; {hint}")
            self._check_labels(new, attachments, carried)
            attachments[link] = new
            carried[new.name] = link
            hint = "build the tree to be attached with other names of links and joints"
        return Topology(attachments, carried, self.gravity, self.revision + 1)

    @staticmethod
    def _check_labels(new: Attachment, attachments: Mapping[str, Attachment], carried: Mapping[str, str]) -> None:
        """Refuse a name that would stand for a joint and for a freedom or position of another, such as "hip[wx]"."""
        stem, bracket, _ = new.name.rpartition("[")
        other = attachments[carried[stem]] if bracket and stem in carried else None
        taken = new.name if other is not None and new.name in other.labels else None
        taken = taken or next((label for label in new.labels if label != new.name and label in carried), None)
        if taken is not None:
            raise TopologyError(
                f"the name {taken!r} would stand for a joint and for a freedom or position of joint "
                f"{(stem if other is not None else new.name)!r}; give one of the joints another name"
            )

    def detach(self, root: str) -> tuple[Topology, list[Attachment]]:
        """The structure without a link and what hangs on it, and what was taken off, that link first.

        Raises
        ------
        TopologyError
            If the link is the base.
        """
        if root == self.base:
            raise TopologyError(f"{root!r} is the base: it hangs on nothing and cannot be detached")
        attachments, carried, removed = self.attachments.copy(), self.carried.copy(), []
        for name in self.subtree(root):
            removed.append(attachments.pop(name))
            del carried[removed[-1].name]
        return Topology(attachments, carried, self.gravity, self.revision + 1), removed

    def subtree(self, root: str) -> list[str]:
        """Names of a link and of all that hangs on it, in order of attachment."""
        names = list(self.attachments)
        beyond = {root: None}
        for name in names[names.index(root) + 1 :]:  # children come after their parents
            if self.attachments[name].parent in beyond:
                beyond[name] = None
        return list(beyond)

    def with_gravity(self, gravity: ArrayLike) -> Topology:
        """The structure in another field of gravity.

        Raises
        ------
        ShapeError
            Unless gravity is three finite numbers.
        """
        return replace(self, gravity=_field(gravity), revision=self.revision + 1)

    @property
    def graph(self) -> nx.DiGraph:
        """The structure as a frozen graph; see :attr:`Structure.graph`."""
        import networkx as nx  # half the time of `import screwdyn`, were it at the top

        graph = nx.DiGraph()
        for name, at in self.attachments.items():
            graph.add_node(name, link=at.link, serial=at.serial)
            if at.parent is not None:
                named = at.coordinates
                one = named[0] if len(named) == 1 else None
                about = {"joint": at.joint, "home": at.home, "name": at.name, "coordinate": one, "coordinates": named}
                graph.add_edge(at.parent, name, **about)
        return nx.freeze(graph)


class Structure:
    """A rooted tree of named links with a joint on every edge: the holder of a :class:`Topology`.

    Coordinates are named after their joints (or, where a joint has no name, after the link it carries) and stand in
    the order of attachment: attaching adds at the end and renumbers nothing. A change is one assignment: it happens
    wholly or not at all, also when it is interrupted.

    Parameters
    ----------
    base : str or Link
        The root, which does not move.
    gravity : (3,) array
        Acceleration of gravity in the base frame, m/s².
    """

    # Names of the class's cached properties.
    _cached: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls) -> None:
        named = (item for base in cls.__mro__ for item in vars(base).items())
        cls._cached = frozenset(name for name, value in named if isinstance(value, functools.cached_property))

    def __init__(self, base: str | Link = "base", gravity: ArrayLike = (0.0, 0.0, -9.81)) -> None:
        root = base if isinstance(base, Link) else Link(base)
        self._topology = Topology.rooted(root, gravity)

    @property
    def topology(self) -> Topology:
        """The structure as it is now, as a value that no later change reaches."""
        return self._topology

    @property
    def graph(self) -> nx.DiGraph:
        """The structure as a frozen NetworkX graph.

        Nodes carry ``link``; edges ``joint``, ``home``, ``name`` and ``coordinates``. ``home`` is the link's pose in
        its parent where the joint is neutral; ``coordinates`` are the joint's freedoms, and ``coordinate`` is the only
        one, or ``None``.
        """
        return self._topology.graph

    @property
    def gravity(self) -> Array:
        """Acceleration of gravity in the base frame, (3,), m/s². May be set; later numbers follow."""
        return self._topology.gravity

    @gravity.setter
    def gravity(self, value: ArrayLike) -> None:
        self._become(self._topology.with_gravity(value))

    @property
    def base(self) -> str:
        """Name of the link that does not move."""
        return self._topology.base

    @property
    def links(self) -> tuple[str, ...]:
        """Names of all links, the base first, in order of attachment."""
        return tuple(self._topology.attachments)

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of all joints, fixed ones too, in order of attachment."""
        return tuple(self._topology.carried)

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the freedoms, nv of them, in order of attachment: M, C, g, rates and torques go by these."""
        return tuple(name for at in self._attached() for name in at.coordinates)

    @property
    def positions(self) -> tuple[str, ...]:
        """Names of the entries of q, nq of them, in order of attachment; quaternions are scalar last."""
        return tuple(name for at in self._attached() for name in at.joint.position_names(at.name))

    @property
    def nq(self) -> int:
        """Number of positions."""
        return sum(at.joint.nq for at in self._attached())

    @property
    def nv(self) -> int:
        """Number of freedoms."""
        return sum(at.joint.nv for at in self._attached())

    @property
    def revision(self) -> int:
        """Counts the changes of the tree."""
        return self._topology.revision

    @property
    def mass(self) -> float:
        """Mass of all links together, kg; an expression if there are symbols in it."""
        bodies = (at.link.inertia for at in self._topology.attachments.values())
        total = sum(inertia.mass for inertia in bodies if inertia is not None)
        return float(total) if expressions.is_number(total) else total

    def link(self, name: str) -> Link:
        """The link of that name.

        Raises
        ------
        UnknownNameError
            If there is none; the message lists the near ones.
        """
        return self._at(name).link

    def joint(self, name: str) -> Joint:
        """The joint of that name.

        Raises
        ------
        UnknownNameError
            If there is none; the message lists the near ones.
        """
        topology = self._topology
        if not isinstance(name, str) or name not in topology.carried:
            raise UnknownNameError.of(name, topology.carried, "joint")
        return topology.attachments[topology.carried[name]].joint

    def parent(self, link: str) -> str | None:
        """Name of the link that a link hangs on; ``None`` for the base."""
        return self._at(link).parent

    def path(self, link: str) -> tuple[str, ...]:
        """Names of the links from the base to a link, both included."""
        names = [link]
        while (above := self.parent(names[-1])) is not None:
            names.append(above)
        return tuple(reversed(names))

    def subtree(self, link: str) -> tuple[str, ...]:
        """Names of a link and of all that hangs on it, in order of attachment."""
        self._at(link)
        return tuple(self._topology.subtree(link))

    # Surgery

    def attach(
        self,
        body: Body,
        to: str,
        joint: Joint | None = None,
        at: ArrayLike | None = None,
        name: str | None = None,
    ) -> Handle:
        """Hang a body, or a whole tree, on a link.

        Parameters
        ----------
        body : Inertia, Link or KinematicTree
            A tree is attached by its base, with all its links and joints; it is copied, not shared.
        to : str
            The link to hang it on.
        joint : Joint, optional
            Given in the attached link's own frame; fixed by default.
        at : (4, 4) pose or (3,) position, optional
            The attached link's frame in ``to``'s frame at q = 0; the same frame by default.
        name : str, optional
            Name of the attached link (of the base, for a tree). Default: the link's own; ``payload``, ``payload_2``,
            … for an Inertia.

        Returns
        -------
        Handle
            For :meth:`detach` and :meth:`release`.

        Raises
        ------
        UnknownNameError, TopologyError, ShapeError
            Unknown ``to``; a link or joint name that is taken already; a bad pose. The tree is then unchanged.
        """
        self._at(to)
        if joint is not None and not isinstance(joint, Joint):
            raise TopologyError(f"joint must be made by revolute(), spherical(), free(), fixed(), …; got {joint!r}")
        root, rest = self._unpack(body, name)
        home = screw.as_pose(at, f"the pose of {root.name!r} on {to!r}")
        first = Attachment(root, to, joint or _FIXED, home)
        self._become(self._topology.attach([first, *rest]))
        return Handle(root.name, first.serial)

    def detach(self, what: Handle | str) -> Self:
        """Take off a link with all that hangs on it.

        Parameters
        ----------
        what : Handle or str
            What :meth:`attach` returned, or the link's name.

        Returns
        -------
        KinematicTree
            What was removed; its base is the link that was attached. Its gravity has this tree's numbers, in the base
            frame of the removed tree: set it if that frame is turned. :meth:`release` knows the pose and does so.

        Raises
        ------
        UnknownNameError, StaleHandleError, TopologyError
            No such link; a handle whose attachment has ended; the base, which hangs on nothing.
        """
        topology, (root, *rest) = self._topology.detach(self.resolve(what))
        removed = self._rooted(root.link)
        if rest:
            removed._become(removed._topology.attach(replace(at, serial=next(_serial)) for at in rest))
        self._become(topology)
        return removed

    @contextmanager
    def attached(
        self,
        body: Body,
        to: str,
        joint: Joint | None = None,
        at: ArrayLike | None = None,
        name: str | None = None,
    ) -> Iterator[Handle]:
        """:meth:`attach` for the length of a ``with`` block, and detach after it."""
        handle = self.attach(body, to, joint, at, name)
        try:
            yield handle
        finally:
            if self._stands(handle):
                self.detach(handle)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing: if the block raises, the tree is as it was when the block began."""
        before = vars(self)  # with all that is cached: a change takes another dictionary, and leaves this one alone
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    def copy(self) -> Self:
        """A tree of its own with the same links and joints; handles of this tree are good for the copy too."""
        twin = self._rooted(self.link(self.base))
        twin._become(self._topology)
        return twin

    __copy__ = copy

    def resolve(self, what: Handle | str) -> str:
        """The name of the link that a handle or name stands for.

        Raises
        ------
        StaleHandleError
            If the handle's attachment has ended.
        UnknownNameError
            If there is no link of that name.
        """
        if isinstance(what, Handle):
            if not self._stands(what):
                raise StaleHandleError(f"the attachment of {what.name!r} that this handle stands for has ended")
            return what.name
        self._at(what)
        return what

    # To look at

    def __str__(self) -> str:
        return outline(self._topology.graph, self.base)

    def __repr__(self) -> str:
        count = f"{len(self.links)} links, {self.nv} coordinates, {expressions.short(self.mass)} kg"
        return f"<{type(self).__name__} {self.base!r}: {count}>"

    # Inside

    def _become(self, topology: Topology) -> None:
        """Take another structure. What was cached belongs to the former one and goes with it, in one assignment."""
        kept = {name: value for name, value in vars(self).items() if name not in self._cached}
        self.__dict__ = kept | {"_topology": topology}

    def _rooted(self, base: Link) -> Self:
        """A new tree of this kind with that base and nothing on it."""
        return type(self)(base, self.gravity)

    def _attached(self) -> Iterable[Attachment]:
        """All links but the base."""
        return itertools.islice(self._topology.attachments.values(), 1, None)

    def _unpack(self, body: Body, name: str | None) -> tuple[Link, list[Attachment]]:
        """The root that a body brings, and all that hangs on it."""
        if isinstance(body, Inertia):
            return Link(self._free_name("payload") if name is None else name, body), []
        if isinstance(body, Link):
            return Link(body.name if name is None else name, body.inertia), []
        if isinstance(body, Structure):
            root = Link(body.base if name is None else name, body.link(body.base).inertia)
            rest = (replace(at, serial=next(_serial)) for at in body._attached())
            return root, [replace(at, parent=root.name) if at.parent == body.base else at for at in rest]
        raise TopologyError(f"only an Inertia, a Link or a KinematicTree can be attached; got {type(body).__name__}")

    def _free_name(self, stem: str) -> str:
        """stem, stem_2, stem_3, …: the first that is free where they are taken without a gap."""
        topology = self._topology

        def taken(k: int) -> bool:
            name = numbered(k)
            return name in topology.attachments or name in topology.carried

        def numbered(k: int) -> str:
            return stem if k == 1 else f"{stem}_{k}"

        free = 1
        while taken(free):
            free *= 2
        last = free // 2  # is taken, or 0
        while free - last > 1:
            middle = (last + free) // 2
            last, free = (middle, free) if taken(middle) else (last, middle)
        return numbered(free)

    def _stands(self, handle: Handle) -> bool:
        at = self._topology.attachments.get(handle.name)
        return at is not None and at.serial == handle._serial

    def _at(self, link: object) -> Attachment:
        topology = self._topology
        if isinstance(link, str) and link in topology.attachments:
            return topology.attachments[link]
        if isinstance(link, str) and link in topology.carried:
            raise UnknownNameError(
                f"there is no link {link!r}: that is a joint, which carries the link {topology.carried[link]!r}"
            )
        raise UnknownNameError.of(link, topology.attachments)


def _field(gravity: ArrayLike) -> Array:
    try:
        g = expressions.array(gravity)
    except (TypeError, ValueError):
        raise ShapeError(f"gravity must be three numbers; got {gravity!r}") from None
    if g.shape != (3,) or not expressions.is_finite(g):
        raise ShapeError(f"gravity must be three finite numbers in the base frame; got {gravity!r}")
    g.setflags(write=False)
    return g


Body = Inertia | Link | Structure
