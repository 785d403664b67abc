"""A tree of links and joints that is built and changed: the holder of a structure, and what is attached to it."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from screwdyn.core import expressions
from screwdyn.core.errors import StaleHandleError, TopologyError, UnknownNameError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.mechanism.inertia import Inertia
from screwdyn.mechanism.joint import Joint
from screwdyn.mechanism.link import Link
from screwdyn.mechanism.outline import outline
from screwdyn.mechanism.topology import FIXED, Attachment, Topology
from screwdyn.screws import screw

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["Body", "Handle", "Structure"]


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
        if body is self:
            raise TopologyError(
                "a tree cannot be attached to itself; attach another one, whose links and joints have other names"
            )
        root, rest = self._unpack(body, name)
        home = screw.as_pose(at, f"the pose of {root.name!r} on {to!r}")
        first = Attachment(root, to, joint or FIXED, home)
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
            removed._become(removed._topology.attach(at.again(at.parent) for at in rest))
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
        state = vars(self) | {"_topology": topology}
        for name in self._cached.intersection(state):
            del state[name]
        self.__dict__ = state

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
            rest = body._attached()
            return root, [at.again(root.name if at.parent == body.base else at.parent) for at in rest]
        raise TopologyError(f"only an Inertia, a Link or a KinematicTree can be attached; got {type(body).__name__}")

    def _free_name(self, stem: str) -> str:
        """stem, stem_2, stem_3, …: the first that is free where they are taken without a gap."""
        topology = self._topology
        if stem not in topology:
            return stem
        free = 2
        while f"{stem}_{free}" in topology:
            free *= 2
        last = free // 2  # is taken
        while free - last > 1:
            middle = (last + free) // 2
            last, free = (middle, free) if f"{stem}_{middle}" in topology else (last, middle)
        return f"{stem}_{free}"

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


Body = Inertia | Link | Structure
