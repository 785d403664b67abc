"""The holder of a topology: a tree of links and joints to which links can be attached and detached."""

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
from screwdyn.mechanism.attachment import FIXED, Attachment
from screwdyn.mechanism.inertia import Inertia
from screwdyn.mechanism.joint import Joint
from screwdyn.mechanism.link import Link
from screwdyn.mechanism.outline import outline
from screwdyn.mechanism.topology import Topology
from screwdyn.screws import screw

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["Body", "Handle", "Structure", "require_joint"]


@dataclass(frozen=True)
class Handle:
    """One attachment. It is valid until the link is detached, and stale afterwards.

    Attributes
    ----------
    name : str
        Name of the link that was attached.
    """

    name: str
    _serial: int


class Structure:
    """A rooted tree of named links with a joint on every edge: the holder of a :class:`Topology`.

    Coordinates are named after their joints (or, if a joint has no name, after the link it carries) and are in the
    order of attachment: new coordinates come last, and the others keep their indices. A change is one assignment, so an
    interrupted change has happened completely or not at all.

    Parameters
    ----------
    base : str or Link
        The root, which does not move.
    gravity : (3,) array
        Acceleration of gravity in the base frame, m/s².
    """

    # Names of the cached properties of the class.
    _cached: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls) -> None:
        named = (item for base in cls.__mro__ for item in vars(base).items())
        cls._cached = frozenset(name for name, value in named if isinstance(value, functools.cached_property))

    def __init__(self, base: str | Link = "base", gravity: ArrayLike = (0.0, 0.0, -9.81)) -> None:
        root = base if isinstance(base, Link) else Link(base)
        self._topology = Topology.rooted(root, gravity)

    @property
    def topology(self) -> Topology:
        """The present structure as an immutable value. It can be set, which is a change of the tree."""
        return self._topology

    @topology.setter
    def topology(self, value: Topology) -> None:
        self._become(value)

    @property
    def graph(self) -> nx.DiGraph:
        """The structure as a frozen NetworkX graph.

        Nodes have the attribute ``link``; edges have ``joint``, ``home``, ``name``, ``coordinates``, ``coordinate`` and
        ``locked``. ``home`` is the pose of the link in its parent while the joint is neutral; ``coordinates`` are the
        names of the joint's freedoms, and ``coordinate`` is the name of a single freedom, or ``None``. A locked joint
        is fixed; ``locked`` has its ``joint`` and ``home`` when it is unlocked, and is ``None`` for other joints.
        """
        return self._topology.graph

    @property
    def gravity(self) -> Array:
        """Acceleration of gravity in the base frame, (3,), m/s². It can be set, which is a change of the tree."""
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
    def locked(self) -> tuple[str, ...]:
        """Names of the locked joints, in order of attachment; see :meth:`KinematicTree.lock`."""
        return tuple(at.name for at in self._attached() if at.locked is not None)

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the nv freedoms, in order of attachment: the indices of M, C, g, rates and torques."""
        return tuple(name for at in self._attached() for name in at.coordinates)

    @property
    def positions(self) -> tuple[str, ...]:
        """Names of the nq entries of q, in order of attachment; quaternions have their scalar last."""
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
        """Number of changes of the tree."""
        return self._topology.revision

    @property
    def mass(self) -> float:
        """Mass of all links together, kg; an expression if it contains symbols."""
        bodies = (at.link.inertia for at in self._topology.attachments.values())
        total = sum(inertia.mass for inertia in bodies if inertia is not None)
        return float(total) if expressions.is_number(total) else total

    def link(self, name: str) -> Link:
        """The link with a given name.

        Raises
        ------
        UnknownNameError
            If there is none; the message lists similar names.
        """
        return self._at(name).link

    def joint(self, name: str) -> Joint:
        """The joint with a given name.

        Raises
        ------
        UnknownNameError
            If there is none; the message lists similar names.
        """
        return self._topology.carrying(name).joint

    def parent(self, link: str) -> str | None:
        """Name of the parent of a link; ``None`` for the base. UnknownNameError if there is no such link."""
        return self._at(link).parent

    def path(self, link: str) -> tuple[str, ...]:
        """Names of the links from the base to a link, both included. UnknownNameError if there is no such link."""
        topology = self._topology
        at = self._at(link, topology)
        names = [at.link.name]
        while at.parent is not None:
            at = topology.attachments[at.parent]
            names.append(at.link.name)
        return tuple(reversed(names))

    def subtree(self, link: str) -> tuple[str, ...]:
        """Names of a link and all links beyond it, in order of attachment. UnknownNameError if there is none."""
        topology = self._topology
        self._at(link, topology)
        return tuple(topology.subtree(link))

    # Changes

    def attach(
        self,
        body: Body,
        to: str,
        joint: Joint | None = None,
        at: ArrayLike | None = None,
        name: str | None = None,
        *,
        prefix: str = "",
    ) -> Handle:
        """Attach a body or a whole tree to a link.

        Parameters
        ----------
        body : Inertia, Link or KinematicTree
            A tree is attached by its base, with all its links and joints; it is copied.
        to : str
            The link to which it is attached.
        joint : Joint, optional
            In the attached link's own frame; fixed by default. The rotor of its motor, if it has one, is attached too.
        at : (4, 4) pose or (3,) position, optional
            Pose of the attached link's frame in the frame of ``to`` while the joint is neutral, m; the identity by
            default.
        name : str, optional
            Name of the attached link (of the base, for a tree). By default that of the link, or ``payload``,
            ``payload_2``, … for an Inertia.
        prefix : str
            Begins the names of all links and joints that are attached, and so those of their coordinates:
            ``attach(ur5, to="torso", prefix="left/")`` attaches links ``left/base_link``, ….

        Returns
        -------
        Handle
            Identifies the attachment in :meth:`detach` and :meth:`release`.

        Raises
        ------
        UnknownNameError, TopologyError, ShapeError
            If ``to`` is unknown, the name of a link or joint is taken, or ``at`` is not a pose. The tree is then
            unchanged.
        """
        self._at(to)
        if joint is not None:
            require_joint(joint)
        if body is self and not prefix:
            raise TopologyError(
                "a tree cannot be attached to itself; attach another one, whose links and joints have other names, or "
                "give a prefix for the names of a copy, such as prefix='left/'"
            )
        if not isinstance(prefix, str):
            raise TopologyError(f"prefix must be a string; got {prefix!r}")
        root, rest = self._unpack(body, name, prefix)
        home = screw.as_pose(at, f"the pose of {root.name!r} on {to!r}")
        first = Attachment(root, to, (joint or FIXED).prefixed(prefix), home)
        newcomers = [first, *rest]
        if first.joint.rotor is not None:
            carrier = first.joint.rotor.carrier or to
            if carrier not in [at.link.name for at in newcomers]:
                self._at(carrier)
            newcomers += first.rotor
        self._become(self._topology.attach(newcomers))
        return Handle(root.name, first.serial)

    def detach(self, what: Handle | str) -> Self:
        """Detach a link and all links beyond it, with the rotor of its joint, which is removed as the joint is.

        Parameters
        ----------
        what : Handle or str
            The result of :meth:`attach`, or the name of the link.

        Returns
        -------
        KinematicTree
            The removed links; the base is the link that was attached. Its gravity has the same components as that of
            this tree, but in the removed tree's base frame: set it if that frame is rotated. :meth:`release` does so.

        Raises
        ------
        UnknownNameError, StaleHandleError, TopologyError
            If there is no such link, the handle is stale, the link is the base, or a joint would lose the joint that it
            follows.
        """
        name, topology = self.resolve(what), self._topology
        if topology.followers:
            topology = topology.without_rotor(name)
        topology, (root, *rest) = topology.detach(name)
        if self._topology.followers:
            topology.check_separated([root, *rest])
        removed = self._rooted(root.link)
        if rest:
            removed._become(removed._topology.attach(at.copied(at.parent) for at in rest))
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
        *,
        prefix: str = "",
    ) -> Iterator[Handle]:
        """Attach for the duration of a ``with`` block; parameters and errors as for :meth:`attach`."""
        handle = self.attach(body, to, joint, at, name, prefix=prefix)
        try:
            yield handle
        finally:
            if self._stands(handle):
                self.detach(handle)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """If the ``with`` block raises an error, restore the tree as it was at the start of the block."""
        # With the cache. The dictionary itself may receive a late value, which another thread computes meanwhile.
        before = vars(self).copy()
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    def copy(self) -> Self:
        """A new tree with the same links and joints; handles of this tree are also valid for the copy.

        The trees share everything that has been computed until one of them changes, so a copy takes less than a
        microsecond whatever the size.
        """
        twin = type(self).__new__(type(self))
        twin.__dict__ = vars(self).copy()
        return twin

    __copy__ = copy

    def resolve(self, what: Handle | str) -> str:
        """The name of the link of a handle, or a name that has been checked.

        Raises
        ------
        StaleHandleError
            If the handle is stale.
        UnknownNameError
            If there is no such link.
        """
        if isinstance(what, Handle):
            if not self._stands(what):
                raise StaleHandleError(
                    f"this handle of {what.name!r} is stale: its link has been detached, or is part of another tree"
                )
            return what.name
        self._at(what)
        return what

    # Text

    def __str__(self) -> str:
        return outline(self._topology.graph, self.base)

    def __repr__(self) -> str:
        count = f"{len(self.links)} links, {self.nv} coordinates, {expressions.short(self.mass)} kg"
        return f"<{type(self).__name__} {self.base!r}: {count}>"

    # Inside

    def _become(self, topology: Topology) -> None:
        """Replace the structure and discard what was cached for the former one, in one assignment."""
        state = vars(self) | {"_topology": topology}
        for name in self._cached.intersection(state):
            del state[name]
        self.__dict__ = state

    def _rooted(self, base: Link) -> Self:
        """A new tree of this class with a given base and no further links."""
        return type(self)(base, self.gravity)

    def _attached(self) -> Iterable[Attachment]:
        """All links but the base."""
        return itertools.islice(self._topology.attachments.values(), 1, None)

    def _unpack(self, body: Body, name: str | None, prefix: str) -> tuple[Link, list[Attachment]]:
        """The root link of a body, and the attachments of all links beyond it, with the names that they will have."""
        rest: Iterable[Attachment] = ()
        if isinstance(body, Inertia):
            root = (
                Link(self._free_name(f"{prefix}payload"), body) if name is None else Link(name, body).prefixed(prefix)
            )
        elif isinstance(body, Link):
            root = Link(body.name if name is None else name, body.inertia).prefixed(prefix)
        elif isinstance(body, Structure):
            root = Link(body.base if name is None else name, body.link(body.base).inertia).prefixed(prefix)
            rest = body._attached()
        else:
            kind = type(body).__name__
            raise TopologyError(f"only an Inertia, a Link or a KinematicTree can be attached; got {kind}")
        base = body.base if isinstance(body, Structure) else None
        return root, [at.copied(root.name if at.parent == base else f"{prefix}{at.parent}", prefix) for at in rest]

    def _free_name(self, stem: str) -> str:
        """The first free name of stem, stem_2, stem_3, …, if these are taken without a gap."""
        topology = self._topology
        if stem not in topology:
            return stem
        free = 2
        while f"{stem}_{free}" in topology:
            free *= 2
        last = free // 2  # taken
        while free - last > 1:
            middle = (last + free) // 2
            last, free = (middle, free) if f"{stem}_{middle}" in topology else (last, middle)
        return f"{stem}_{free}"

    def _stands(self, handle: Handle) -> bool:
        at = self._topology.attachments.get(handle.name)
        return at is not None and at.serial == handle._serial

    def _at(self, link: object, topology: Topology | None = None) -> Attachment:
        """The attachment of a link in a topology, the present one by default."""
        topology = topology or self._topology
        if isinstance(link, str) and link in topology.attachments:
            return topology.attachments[link]
        if isinstance(link, str) and link in topology.carried:
            raise UnknownNameError(
                f"there is no link {link!r}: that is a joint, which carries the link {topology.carried[link]!r}"
            )
        raise UnknownNameError.of(link, topology.attachments)


def require_joint(joint: object) -> None:
    """Raise TopologyError for anything but a joint."""
    if not isinstance(joint, Joint):
        raise TopologyError(f"joint must be made by revolute(), spherical(), free(), fixed(), …; got {joint!r}")


Body = Inertia | Link | Structure
