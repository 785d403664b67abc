"""Links joined into a tree, and its surgery: names and arrows, no physics and no state."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Self, TypedDict

from screwdyn.core import expressions
from screwdyn.core.errors import StaleHandleError, TopologyError, UnknownLinkError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.mechanism.inertia import Inertia
from screwdyn.mechanism.joint import Joint, fixed
from screwdyn.mechanism.link import Link
from screwdyn.mechanism.outline import outline
from screwdyn.screws import screw

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["Body", "Edge", "Handle", "Structure"]

_serial = itertools.count()


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


class Edge(TypedDict):
    """What the graph stores with the arrow from a parent to a link."""

    joint: Joint
    home: Array
    name: str
    coordinate: str | None
    coordinates: tuple[str, ...]


class _Newcomer(NamedTuple):
    link: Link
    parent: str
    joint: Joint
    home: Array

    @property
    def label(self) -> str:
        """Name of the joint, and of its coordinate if it has one."""
        return self.joint.name or self.link.name


class Structure:
    """A rooted tree of named links with a joint on every edge.

    Coordinates are named after their joints (or, where a joint has no name, after the link it carries) and stand in
    the order of attachment: attaching adds at the end and renumbers nothing.

    Parameters
    ----------
    base : str or Link
        The root, which does not move.
    """

    def __init__(self, base: str | Link = "base") -> None:
        import networkx as nx  # half the time of `import screwdyn`, were it at the top

        root = base if isinstance(base, Link) else Link(base)
        self._graph = nx.DiGraph()
        self._graph.add_node(root.name, link=root, serial=next(_serial))
        self._base = root.name
        # Which link each joint carries, so that a name is found, or found to be taken, without a search.
        self._carried: dict[str, str] = {}
        self._revision = 0

    @property
    def graph(self) -> nx.DiGraph:
        """A frozen copy: nodes carry ``link``, edges ``joint``, ``home``, ``name`` and ``coordinates``.

        ``home`` is the link's pose in its parent where the joint is neutral; ``coordinates`` are the joint's freedoms,
        and ``coordinate`` is the only one, or ``None``.
        """
        import networkx as nx

        return nx.freeze(self._graph.copy())

    @property
    def base(self) -> str:
        """Name of the link that does not move."""
        return self._base

    @property
    def links(self) -> tuple[str, ...]:
        """Names of all links, the base first, in order of attachment."""
        return tuple(self._graph)

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of all joints, fixed ones too, in order of attachment."""
        return tuple(self._carried)

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the freedoms, nv of them, in order of attachment: M, C, g, rates and torques go by these."""
        return tuple(name for edge in self._freedoms() for name in edge["coordinates"])

    @property
    def positions(self) -> tuple[str, ...]:
        """Names of the entries of q, nq of them, in order of attachment; quaternions are scalar last."""
        return tuple(name for edge in self._freedoms() for name in edge["joint"].position_names(edge["name"]))

    @property
    def nq(self) -> int:
        """Number of positions."""
        return sum(edge["joint"].nq for edge in self._freedoms())

    @property
    def nv(self) -> int:
        """Number of freedoms."""
        return sum(edge["joint"].nv for edge in self._freedoms())

    @property
    def revision(self) -> int:
        """Counts the changes of the tree."""
        return self._revision

    @property
    def mass(self) -> float:
        """Mass of all links together, kg; an expression if there are symbols in it."""
        bodies = (self.link(name).inertia for name in self._graph)
        total = sum(inertia.mass for inertia in bodies if inertia is not None)
        return float(total) if expressions.is_number(total) else total

    def link(self, name: str) -> Link:
        """The link of that name.

        Raises
        ------
        UnknownLinkError
            If there is none; the message lists the near ones.
        """
        self._known(name)
        link: Link = self._graph.nodes[name]["link"]
        return link

    def joint(self, name: str) -> Joint:
        """The joint of that name.

        Raises
        ------
        UnknownLinkError
            If there is none; the message lists the near ones.
        """
        if not isinstance(name, str) or name not in self._carried:
            raise UnknownLinkError.of(name, self._carried, "joint")
        return self._edge(self._carried[name])["joint"]

    def parent(self, link: str) -> str | None:
        """Name of the link that a link hangs on; ``None`` for the base."""
        self._known(link)
        return next(iter(self._graph.pred[link]), None)

    def path(self, link: str) -> tuple[str, ...]:
        """Names of the links from the base to a link, both included."""
        names = [link]
        while (above := self.parent(names[-1])) is not None:
            names.append(above)
        return tuple(reversed(names))

    def subtree(self, link: str) -> tuple[str, ...]:
        """Names of a link and of all that hangs on it, in order of attachment."""
        self._known(link)
        beyond = {link}
        for name in self._graph:
            if not beyond.isdisjoint(self._graph.pred[name]):
                beyond.add(name)
        return tuple(name for name in self._graph if name in beyond)

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
        UnknownLinkError, TopologyError, ShapeError
            Unknown ``to``; a link or joint name that is taken already; a bad pose. The tree is then unchanged.
        """
        self._known(to)
        if joint is not None and not isinstance(joint, Joint):
            raise TopologyError(f"joint must be made by revolute(), spherical(), free(), fixed(), …; got {joint!r}")
        root, rest = self._unpack(body, name)
        home = screw.as_pose(at, f"the pose of {root.name!r} on {to!r}")
        home.setflags(write=False)
        newcomers = [_Newcomer(root, to, joint or fixed(), home), *rest]
        links, joints = set[str](), set[str]()
        for new in newcomers:
            if new.link.name in self._graph or new.link.name in links:
                raise TopologyError(f"there is a link {new.link.name!r} already; give the new one another name")
            if new.label in self._carried or new.label in joints:
                raise TopologyError(f"there is a joint {new.label!r} already; give the new one another name")
            links.add(new.link.name)
            joints.add(new.label)
        for new in newcomers:
            self._add(new)
        self._changed()
        return Handle(root.name, self._graph.nodes[root.name]["serial"])

    def detach(self, what: Handle | str) -> Self:
        """Take off a link with all that hangs on it.

        Parameters
        ----------
        what : Handle or str
            What :meth:`attach` returned, or the link's name.

        Returns
        -------
        KinematicTree
            What was removed; its base is the link that was attached, its gravity this tree's.

        Raises
        ------
        UnknownLinkError, StaleHandleError, TopologyError
            No such link; a handle whose attachment has ended; the base, which hangs on nothing.
        """
        root = self.resolve(what)
        if root == self._base:
            raise TopologyError(f"{root!r} is the base: it hangs on nothing and cannot be detached")
        names = self.subtree(root)
        removed = self._rooted(self.link(root))
        for newcomer in self._newcomers(names[1:]):
            removed._add(newcomer)
        removed._changed()
        for name in names:
            del self._carried[self._edge(name)["name"]]
        self._graph.remove_nodes_from(names)
        self._changed()
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
        """All or nothing: if the block raises, the tree is put back as it was when the block began."""
        kept = vars(self) | {"_graph": self._graph.copy(), "_carried": dict(self._carried)}
        try:
            yield
        except BaseException:
            vars(self).clear()
            vars(self).update(kept)
            raise

    def copy(self) -> Self:
        """A tree of its own with the same links and joints; handles of this tree are good for the copy too."""
        twin = self._rooted(self.link(self._base))
        twin._graph = self._graph.copy()
        twin._carried = dict(self._carried)
        twin._changed()
        return twin

    __copy__ = copy

    def resolve(self, what: Handle | str) -> str:
        """The name of the link that a handle or name stands for.

        Raises
        ------
        StaleHandleError
            If the handle's attachment has ended.
        UnknownLinkError
            If there is no link of that name.
        """
        if isinstance(what, Handle):
            if not self._stands(what):
                raise StaleHandleError(f"the attachment of {what.name!r} that this handle stands for has ended")
            return what.name
        self._known(what)
        return what

    # To look at

    def __str__(self) -> str:
        return outline(self._graph, self._base)

    def __repr__(self) -> str:
        count = f"{len(self._graph)} links, {self.nv} coordinates, {expressions.short(self.mass)} kg"
        return f"<{type(self).__name__} {self._base!r}: {count}>"

    # Inside

    def _rooted(self, base: Link) -> Self:
        """A new tree of this kind with that base and nothing on it."""
        return type(self)(base)

    def _changed(self) -> None:
        self._revision += 1

    def _add(self, new: _Newcomer) -> None:
        coordinates = new.joint.freedom_names(new.label)
        edge = Edge(
            joint=new.joint,
            home=new.home,
            name=new.label,
            coordinate=coordinates[0] if len(coordinates) == 1 else None,
            coordinates=coordinates,
        )
        self._graph.add_node(new.link.name, link=new.link, serial=next(_serial))
        self._graph.add_edge(new.parent, new.link.name, **edge)
        self._carried[new.label] = new.link.name

    def _unpack(self, body: Body, name: str | None) -> tuple[Link, list[_Newcomer]]:
        """The root that a body brings, and all that hangs on it."""
        if isinstance(body, Inertia):
            return Link(self._free_name("payload") if name is None else name, body), []
        if isinstance(body, Link):
            return Link(body.name if name is None else name, body.inertia), []
        if isinstance(body, Structure):
            root = Link(body._base if name is None else name, body.link(body._base).inertia)
            rest = body._newcomers(body.links[1:])
            return root, [new._replace(parent=root.name) if new.parent == body._base else new for new in rest]
        raise TopologyError(f"only an Inertia, a Link or a KinematicTree can be attached; got {type(body).__name__}")

    def _newcomers(self, names: tuple[str, ...]) -> list[_Newcomer]:
        found = []
        for name in names:
            ((parent, edge),) = self._graph.pred[name].items()
            found.append(_Newcomer(self.link(name), parent, edge["joint"], edge["home"]))
        return found

    def _free_name(self, stem: str) -> str:
        names = (stem if k == 1 else f"{stem}_{k}" for k in itertools.count(1))
        return next(name for name in names if name not in self._graph and name not in self._carried)

    def _edge(self, link: str) -> Edge:
        """Joint, home, name and coordinate of the one edge that leads to a link."""
        edge: Edge = next(iter(self._graph.pred[link].values()))
        return edge

    def _freedoms(self) -> list[Edge]:
        """The edges that can move, in order of attachment."""
        edges = (self._edge(link) for link in self._carried.values())
        return [edge for edge in edges if edge["coordinates"]]

    def _stands(self, handle: Handle) -> bool:
        node = self._graph.nodes.get(handle.name)
        return node is not None and node["serial"] == handle._serial

    def _known(self, link: object) -> None:
        if not isinstance(link, str) or link not in self._graph:
            raise UnknownLinkError.of(link, self._graph)


Body = Inertia | Link | Structure
