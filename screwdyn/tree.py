"""The kinematic tree: the only thing that changes. It knows links and joints, and no state."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np

from . import screw
from ._types import Array, ArrayLike
from .contribution import Contribution, LinkMotion, contribution_of, motion_beyond
from .dynamics import Dynamics
from .errors import ScrewdynError, ShapeError, StaleHandleError, TopologyError, UnknownLinkError
from .inertia import Inertia
from .joint import Joint, fixed
from .link import Link

if TYPE_CHECKING:
    from .model import Model, Placement
    from .transition import Grasped, Released, State, Twist

__all__ = ["Body", "Handle", "KinematicTree"]

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


class KinematicTree(Dynamics):
    """Links joined into a tree; a robot with a fixed base.

    Parameters
    ----------
    base : str or Link
        The link that does not move.
    gravity : (3,) array
        Acceleration of gravity in the base frame, m/s².

    Attributes
    ----------
    gravity : (3,) array
        May be set; later numbers follow.
    revision : int
        Grows with every change of the tree.

    Notes
    -----
    Coordinates are named after their joints (or, where a joint has no name, after the link it carries) and stand in
    the order of attachment: attaching adds at the end and renumbers nothing.
    """

    def __init__(self, base: str | Link = "base", gravity: ArrayLike = (0, 0, -9.81)) -> None:
        root = base if isinstance(base, Link) else Link(base)
        self._graph = nx.DiGraph()
        self._graph.add_node(root.name, link=root, serial=next(_serial))
        self._base = root.name
        self._placements: dict[str, Placement] = {}
        self._revision = 0
        self.gravity = gravity

    @classmethod
    def from_urdf(cls, path_or_text: str | os.PathLike[str], *, strict: bool = False) -> KinematicTree:
        """Read a URDF file, or URDF text that begins with ``<``.

        Fixed joints stay links, the root link becomes the base, coordinates are named after the joints.

        Parameters
        ----------
        path_or_text : str or path
        strict : bool
            Refuse what is otherwise only warned about, such as an inertia that no rigid body has.

        Raises
        ------
        URDFError
            Listing every problem in the file with its line.
        """
        from .io.urdf import read_urdf

        return read_urdf(path_or_text, strict=strict)

    @classmethod
    def from_dh(
        cls, rows: Iterable[Mapping[str, Any]], convention: str = "standard", **options: Any
    ) -> KinematicTree:
        """A serial arm from a Denavit-Hartenberg table; see :func:`screwdyn.io.dh.from_dh`."""
        from .io.dh import from_dh

        return from_dh(rows, convention, **options)

    # What there is ---------------------------------------------------------------------------------------------

    @property
    def graph(self) -> nx.DiGraph:
        """Read-only view: nodes carry ``link``, edges ``joint``, ``home`` (pose at q = 0) and ``coordinate``."""
        return self._graph.copy(as_view=True)

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
        return tuple(self._edge(link)["name"] for link in self._moving())

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the coordinates, in order of attachment."""
        return tuple(name for link in self._moving() if (name := self._edge(link)["coordinate"]) is not None)

    @property
    def nq(self) -> int:
        """Number of coordinates."""
        return len(self.coordinates)

    @property
    def nv(self) -> int:
        """Number of freedoms."""
        return len(self.coordinates)

    @property
    def revision(self) -> int:
        """Counts the changes of the tree."""
        return self._revision

    @property
    def gravity(self) -> Array:
        """Acceleration of gravity in the base frame, (3,), m/s²."""
        return self._gravity

    @gravity.setter
    def gravity(self, value: ArrayLike) -> None:
        try:
            g = np.array(value, dtype=float)
        except (TypeError, ValueError):
            raise ShapeError(f"gravity must be three numbers; got {value!r}") from None
        if g.shape != (3,) or not np.isfinite(g).all():
            raise ShapeError(f"gravity must be three finite numbers in the base frame; got {value!r}")
        g.setflags(write=False)
        self._gravity = g
        self._changed()

    def link(self, name: str) -> Link:
        """The link of that name."""
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
        for link in self._moving():
            if self._edge(link)["name"] == name:
                joint: Joint = self._edge(link)["joint"]
                return joint
        raise UnknownLinkError.of(name, self.joints, "joint")

    def parent(self, link: str) -> str | None:
        """Name of the link that a link hangs on; ``None`` for the base."""
        self._known(link)
        return next(self._graph.predecessors(link), None)

    def path(self, link: str) -> tuple[str, ...]:
        """Names of the links from the base to a link, both included."""
        self._known(link)
        names = [link]
        while (above := self.parent(names[-1])) is not None:
            names.append(above)
        return tuple(reversed(names))

    def subtree(self, link: str) -> tuple[str, ...]:
        """Names of a link and of all that hangs on it, in order of attachment."""
        self._known(link)
        beyond = nx.descendants(self._graph, link) | {link}
        return tuple(name for name in self._graph if name in beyond)

    @property
    def mass(self) -> float:
        """Mass of all links together, kg."""
        return float(sum(link.inertia.mass for link in self._bodies() if link.inertia is not None))

    @property
    def actuation_matrix(self) -> Array:
        """(nv, number of active freedoms): puts the active torques in their places, zero elsewhere."""
        return np.eye(self.nv)[:, [not joint.passive for joint in self._freedoms()]]

    def neutral(self) -> Array:
        """The configuration q = 0, (nq,)."""
        return np.zeros(self.nq)

    def random_configuration(self, rng: np.random.Generator) -> Array:
        """A configuration drawn evenly within the limits, or within ±π (rad or m) where there are none, (nq,)."""
        ranges = [
            (low, high) if np.isfinite(low) and np.isfinite(high) else (-np.pi, np.pi)
            for low, high in (joint.limits or (-np.pi, np.pi) for joint in self._freedoms())
        ]
        return np.array([rng.uniform(low, high) for low, high in ranges])

    def integrate(self, q: ArrayLike, v: ArrayLike) -> Array:
        """The configuration reached from q by moving at v for unit time, (…, nq)."""
        (q, v), batch = self.model.flat(q=q, v=v)
        return (q + v).reshape(*batch, self.nq)

    def difference(self, q0: ArrayLike, q1: ArrayLike) -> Array:
        """The v with ``integrate(q0, v) == q1``, (…, nv)."""
        (q0, q1), batch = self.model.flat(q0=q0, q1=q1)
        return (q1 - q0).reshape(*batch, self.nv)

    # Surgery ---------------------------------------------------------------------------------------------------

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
            Unknown ``to``; a link or coordinate name that is taken already; a bad pose. The tree is then unchanged.
        """
        self._known(to)
        if joint is not None and not isinstance(joint, Joint):
            raise TopologyError(
                f"joint must be made by revolute(), prismatic(), helical() or fixed(); got {joint!r}"
            )
        newcomers = self._as_nodes(body, name)
        root = newcomers[0][0].name
        home = screw.as_pose(at, f"the pose of {root!r} on {to!r}")
        home.setflags(write=False)
        edge = {"joint": joint or fixed(), "home": home}
        newcomers[0] = (newcomers[0][0], to, edge)
        self._check_names(newcomers)
        for link, parent, edge in newcomers:
            label = edge["joint"].name or link.name
            coordinate = None if edge["joint"].screw is None else label
            self._graph.add_node(link.name, link=link, serial=next(_serial))
            self._graph.add_edge(parent, link.name, **edge | {"name": label, "coordinate": coordinate})
        self._changed()
        return Handle(root, self._graph.nodes[root]["serial"])

    def detach(self, what: Handle | str) -> KinematicTree:
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
        removed = KinematicTree(self.link(root), self._gravity)
        removed._graft((self.link(name), self.parent(name), self._edge(name)) for name in names[1:])
        self._graph.remove_nodes_from(names)
        for name in names:
            self._placements.pop(name, None)
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
            node = self._graph.nodes.get(handle.name)
            if node is not None and node["serial"] == handle._serial:
                self.detach(handle)

    def copy(self) -> KinematicTree:
        """A tree of its own with the same links and joints; handles of this tree are good for the copy too."""
        twin = KinematicTree(self.link(self._base), self._gravity)
        twin._graph = self._graph.copy()
        twin._placements = dict(self._placements)
        return twin

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
            node = self._graph.nodes.get(what.name)
            if node is None or node["serial"] != what._serial:
                raise StaleHandleError(
                    f"the attachment of {what.name!r} that this handle stands for has ended"
                )
            return what.name
        self._known(what)
        return what

    # One link's share ------------------------------------------------------------------------------------------

    def contribution(self, link: str, q: ArrayLike, qd: ArrayLike) -> Contribution:
        """What one link contributes: J_i, J̇_i, M_i, C_i, g_i over its own path's coordinates.

        Parameters
        ----------
        link : str
        q, qd : (…, nv)
            Of the whole tree.
        """
        self._known(link)
        *_, share = self._contributions(self.path(link), q, qd)
        return share

    def contributions(self, q: ArrayLike, qd: ArrayLike) -> list[Contribution]:
        """The contribution of every link but the base, in order of attachment; their ‡ is the whole model."""
        return list(self._contributions(self.links, q, qd))[1:]

    def _contributions(self, links: Sequence[str], q: ArrayLike, qd: ArrayLike) -> Iterator[Contribution]:
        (q, qd), batch = self.model.flat(q=q, qd=qd)
        q, qd = q.reshape(*batch, self.nv), qd.reshape(*batch, self.nv)
        place = {name: i for i, name in enumerate(self.coordinates)}
        nothing = np.zeros((*batch, 6, 0))
        rest = LinkMotion(
            (), np.broadcast_to(np.eye(4), (*batch, 4, 4)), nothing, nothing, nothing[..., 0, :]
        )
        motions = {self._base: rest}
        for name in links:
            if name != self._base:
                edge = self._edge(name)
                coordinate = edge["coordinate"]
                i = place.get(coordinate, 0)
                x, xd = (q[..., i], qd[..., i]) if coordinate else (np.zeros(batch), np.zeros(batch))
                parent = motions[next(self._graph.predecessors(name))]
                motions[name] = motion_beyond(parent, edge["joint"], edge["home"], coordinate, x, xd)
            yield contribution_of(self._graph.nodes[name]["link"], motions[name], self._gravity)

    # Picking up and letting go ---------------------------------------------------------------------------------

    def grasp(
        self,
        state: State,
        body: Body,
        *,
        to: str,
        twist: Twist,
        joint: Joint | None = None,
        at: ArrayLike | None = None,
        name: str | None = None,
        body_state: State | None = None,
    ) -> Grasped:
        """Attach a body while the robot moves, conserving momentum; see :func:`screwdyn.transition.grasp`."""
        from .transition import grasp

        return grasp(
            self, state, body, to=to, twist=twist, joint=joint, at=at, name=name, body_state=body_state
        )

    def release(self, state: State, what: Handle | str) -> Released:
        """Let go of what was attached while the robot moves; see :func:`screwdyn.transition.release`."""
        from .transition import release

        return release(self, state, what)

    # -----------------------------------------------------------------------------------------------------------

    @cached_property
    def model(self) -> Model:
        """Frozen snapshot of this revision: it goes on answering for the tree as it is now."""
        from .model import Model, place

        for name in self._graph:
            if name not in self._placements:
                parent = self.parent(name)
                edge = (
                    self._edge(name)
                    if parent is not None
                    else {"joint": None, "home": np.eye(4), "coordinate": None}
                )
                self._placements[name] = place(
                    self.link(name),
                    edge["joint"],
                    edge["home"],
                    edge["coordinate"],
                    None if parent is None else self._placements[parent],
                )
        links = {name: self.link(name) for name in self._graph}
        return Model(dict(self._placements), links, self._freedoms(), self._gravity, self._revision)

    def __str__(self) -> str:
        lines = [self._line(self._base)]
        stack = [(child, "") for child in reversed(list(self._graph.successors(self._base)))]
        while stack:
            name, indent = stack.pop()
            siblings = list(self._graph.successors(next(self._graph.predecessors(name))))
            last = siblings[-1] == name
            lines.append(f"{indent}{'└─ ' if last else '├─ '}{self._line(name)}")
            deeper = indent + ("   " if last else "│  ")
            stack += [(child, deeper) for child in reversed(list(self._graph.successors(name)))]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<KinematicTree {self._base!r}: {len(self._graph)} links, {self.nq} coordinates, {self.mass:.4g} kg>"

    def _line(self, name: str) -> str:
        inertia = self.link(name).inertia
        words = [name]
        if name != self._base:
            edge = self._edge(name)
            joint: Joint = edge["joint"]
            label = "" if joint.screw is None or edge["name"] == name else f" {edge['name']}"
            words.append(f"[{'passive ' if joint.passive else ''}{joint.kind}{label}]")
        if inertia is not None:
            words.append(f"{inertia.mass:.4g} kg")
        return " ".join(words)

    def _moving(self) -> Iterator[str]:
        return itertools.islice(self._graph, 1, None)

    def _bodies(self) -> Iterator[Link]:
        return (self._graph.nodes[name]["link"] for name in self._graph)

    def _freedoms(self) -> list[Joint]:
        return [
            edge["joint"] for link in self._moving() if (edge := self._edge(link))["coordinate"] is not None
        ]

    def _edge(self, link: str) -> dict[str, Any]:
        """Joint, home, name and coordinate of the one edge that leads to a link."""
        edge: dict[str, Any] = next(iter(self._graph.pred[link].values()))
        return edge

    def _known(self, link: object) -> None:
        if not isinstance(link, str) or link not in self._graph:
            raise UnknownLinkError.of(link, self._graph)

    def _changed(self) -> None:
        self._revision += 1
        self.__dict__.pop("model", None)

    def _as_nodes(self, body: Body, name: str | None) -> list[tuple[Link, str | None, dict[str, Any]]]:
        """(link, parent, edge) of everything that a body brings, its root first."""
        if isinstance(body, Inertia):
            return [(Link(name or self._free_name("payload"), body), None, {})]
        if isinstance(body, Link):
            return [(Link(name or body.name, body.inertia), None, {})]
        if isinstance(body, KinematicTree):
            new = {body._base: name or body._base}
            root = Link(new[body._base], body.link(body._base).inertia)
            rest = body.links[1:]
            return [
                (root, None, {}),
                *((body.link(n), new.get(p := body.parent(n), p), dict(body._edge(n))) for n in rest),
            ]
        raise TopologyError(
            f"only an Inertia, a Link or a KinematicTree can be attached; got {type(body).__name__}"
        )

    def _free_name(self, stem: str) -> str:
        names = (stem if k == 1 else f"{stem}_{k}" for k in itertools.count(1))
        taken = {*self._graph, *self.joints}
        return next(name for name in names if name not in taken)

    def _check_names(self, newcomers: Sequence[tuple[Link, str | None, dict[str, Any]]]) -> None:
        links, joints = set(self._graph), set(self.joints)
        for link, _, edge in newcomers:
            label = edge["joint"].name or link.name
            for what, one, taken in (("link", link.name, links), ("joint", label, joints)):
                if one in taken:
                    raise TopologyError(f"there is a {what} {one!r} already; give the new one another name")
                taken.add(one)

    def _graft(self, nodes: Iterable[tuple[Link, str | None, dict[str, Any]]]) -> None:
        for link, parent, edge in nodes:
            self._graph.add_node(link.name, link=link, serial=next(_serial))
            self._graph.add_edge(parent, link.name, **edge)
        self._changed()


Body = Inertia | Link | KinematicTree
