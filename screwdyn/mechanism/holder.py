"""The holder of a topology: the names and parts of the present structure, and its replacement in one assignment."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar, Self

from screwdyn.core import expressions
from screwdyn.core.errors import UnknownNameError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.mechanism.attachment import Attachment, Locked
from screwdyn.mechanism.joint import Joint
from screwdyn.mechanism.link import Link
from screwdyn.mechanism.loop import Loop
from screwdyn.mechanism.outline import outline
from screwdyn.mechanism.shape import Shape
from screwdyn.mechanism.topology import Topology

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["Holder"]


class Holder:
    """The holder of a :class:`Topology`, with its names and parts.

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
        """The structure as a frozen NetworkX graph, the same object until the tree changes.

        Nodes have the attribute ``link``; edges have ``joint``, ``home``, ``name``, ``coordinates``, ``coordinate`` and
        ``locked``. ``home`` is the pose of the link in its parent while the joint is neutral; ``coordinates`` are the
        names of the joint's freedoms, and ``coordinate`` is the name of a single freedom, or ``None``. A locked joint
        is fixed; ``locked`` has its ``joint`` and ``home`` when it is unlocked, and is ``None`` for other joints. The
        attribute ``loops`` of the graph contains each :class:`Loop`, and ``gravity`` is that of the tree. Attributes
        cannot be changed either; ``networkx.DiGraph(tree.graph)`` is a copy that can.
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
        return self._topology.links

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of all joints, fixed ones too, in order of attachment."""
        return self._topology.joints

    @property
    def locked(self) -> tuple[str, ...]:
        """Names of the locked joints, in order of attachment; see :meth:`KinematicTree.lock` and :meth:`lock_of`."""
        return self._topology.locked

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the nv freedoms, in order of attachment: the indices of M, C, g, rates and torques."""
        return self._topology.coordinates

    @property
    def positions(self) -> tuple[str, ...]:
        """Names of the nq entries of q, in order of attachment; quaternions have their scalar last."""
        return self._topology.positions

    @property
    def nq(self) -> int:
        """Number of positions."""
        return self._topology.nq

    @property
    def nv(self) -> int:
        """Number of freedoms."""
        return self._topology.nv

    @property
    def revision(self) -> int:
        """Number of changes of the tree."""
        return self._topology.revision

    @property
    def mass(self) -> float:
        """Mass of all links together, kg; an expression if it contains symbols."""
        return self._topology.mass

    def link(self, name: str) -> Link:
        """The link with a given name.

        Raises
        ------
        UnknownNameError
            If there is none; the message lists similar names.
        """
        return self._at(name).link

    def shapes(self, link: str) -> tuple[Shape, ...]:
        """The shapes of a link, in its frame; empty if it has none. UnknownNameError if there is no such link."""
        return self._at(link).link.shapes

    def joint(self, name: str) -> Joint:
        """The joint with a given name, which is fixed while it is locked; see :meth:`lock_of`.

        Raises
        ------
        UnknownNameError
            If there is none; the message lists similar names.
        """
        return self._topology.carrying(name).joint

    def lock_of(self, joint: str) -> Locked | None:
        """What a locked joint is when it is unlocked, and where it is locked; ``None`` if it is not locked.

        Returns
        -------
        Locked or None
            ``joint``, the :class:`Joint` with its kind, limits and rotor; ``home``, the pose of its link in the parent
            while it is neutral; ``q``, the positions at which it is locked, rad and m.

        Raises
        ------
        UnknownNameError
            If there is no such joint; the message lists similar names.

        Examples
        --------
        >>> import screwdyn as sd
        >>> arm = sd.robots.two_link()
        >>> arm.lock("theta2", at=0.5)
        >>> lock = arm.lock_of("theta2")
        >>> lock.joint.kind, lock.q
        ('revolute', (0.5,))
        """
        return self._topology.carrying(joint).locked

    @property
    def loops(self) -> tuple[str, ...]:
        """Names of the loops, in the order in which they were closed; see :meth:`KinematicTree.close`."""
        return tuple(self._topology.loops)

    def loop(self, name: str) -> Loop:
        """The joint that closes the loop with a given name.

        Raises
        ------
        UnknownNameError
            If there is none; the message lists similar names.
        """
        found = self._topology.loops.get(name) if isinstance(name, str) else None
        if found is None:
            raise UnknownNameError.of(name, self._topology.loops, "loop")
        return found

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

    def __str__(self) -> str:
        return outline(self._topology.graph, self.base)

    def __repr__(self) -> str:
        count = f"{len(self.links)} links, {self.nv} coordinates, {expressions.short(self.mass)} kg"
        return f"<{type(self).__name__} {self.base!r}: {count}>"

    def _become(self, topology: Topology) -> None:
        """Replace the structure and discard what was cached for the former one, in one assignment."""
        state = vars(self) | {"_topology": topology}
        for name in self._cached.intersection(state):
            del state[name]
        self.__dict__ = state

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
