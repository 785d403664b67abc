"""The class that holds a tree of links and joints, to which links are attached and from which they are detached."""

from __future__ import annotations

import functools
import operator
from bisect import bisect_left
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from screwdyn.core import Array, ArrayLike, expressions, html_table
from screwdyn.core.errors import ContactError, StaleHandleError, TopologyError, UnknownNameError
from screwdyn.mechanism.contact import Contact, Plane, bodies_of
from screwdyn.mechanism.inertia import Inertia
from screwdyn.mechanism.joint import Joint
from screwdyn.mechanism.link import FIXED, Attachment, Link, Locked, Loop
from screwdyn.mechanism.plausible import check_reach
from screwdyn.mechanism.shape import Shape, Shapes, shapes_of
from screwdyn.mechanism.topology import Topology, check_unbridged, with_ties, without_rotor, without_ties
from screwdyn.screws import screw

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["Body", "Handle", "Mechanism", "Switch", "require_joint"]

# Levels that the text of a tree indents in full, so that the text of a long chain is not the square of its length.
_DEEPEST = 40


@dataclass(frozen=True)
class Handle:
    """One attachment. It is valid until the link is detached, and stale afterwards.

    Attributes
    ----------
    name : str
        Name of the link that was attached.
    """

    name: str
    _serial: int = field(repr=False)


class Switch(NamedTuple):
    """What a change does in a run of fixed step, by names in the tree that has the links of all its changes."""

    concerns: str  # for errors
    on: str  # a link that the run must have before
    comes: tuple[str, ...] = ()  # links, the root of a payload first
    goes: tuple[str, ...] = ()  # links, which take all links beyond them along
    holds: tuple[str, ...] = ()  # freedoms of a joint
    frees: tuple[str, ...] = ()  # freedoms of a joint
    closes: tuple[str, ...] = ()  # a loop
    opens: tuple[str, ...] = ()  # a loop
    q: Mapping[str, float] = {}  # at which the freedoms of links that come start
    qd: Mapping[str, float] = {}
    bodies: Mapping[str, Array] = {}  # mass, first moment and inertia about the origin of links, (10,)
    twist: Array | None = None  # of a payload just before, in its own frame, (6,); None if it moves with its joint


class _Direct:
    """A special method that is another function for each object, such as one of C."""

    def __init__(self, of: Callable[[Any], Callable[..., Any]]) -> None:
        self.of = of

    def __get__(self, held: object, kind: type | None = None) -> Callable[..., Any]:
        return self if held is None else self.of(held)

    def __call__(self, held: object, *arguments: Any) -> Any:  # as contextlib.ExitStack does
        return self.of(held)(*arguments)


class Lease:
    """What :func:`contextlib.contextmanager` makes of a generator, without a line of Python outside of the generator.

    Python reacts to signals between its instructions. Here the ``with`` statement begins and ends the generator by
    functions of C, so from its first ``yield`` on, any interrupt is one within the generator. If one comes in the
    ``with`` statement itself, outside of the block, the statement discards the lease, and Python closes the generator.
    The generator yields the target of ``as``, resumes at the end of the block, whose exceptions it does not receive,
    and then yields zeros without end.
    """

    def __init__(self, steps: Generator[Any]) -> None:
        self.steps = steps

    if TYPE_CHECKING:

        def __enter__(self) -> Handle: ...
        def __exit__(self, *error: object) -> None: ...
    else:
        __enter__ = _Direct(lambda lease: lease.steps.__next__)
        # A function of C that takes the three arguments of __exit__, resumes the generator and returns None.
        __exit__ = _Direct(lambda lease: functools.partial(min, None, key=lease.steps.send))


def of_structure(name: str, at: str = "_topology") -> Any:
    """The property of a topology as one of the class that holds it in an attribute, by a function of C."""
    return property(operator.attrgetter(f"{at}.{name}"), doc=vars(Topology)[name].__doc__)


class Mechanism:
    """The holder of a :class:`Topology`; a change is one assignment, which an interrupt cannot split."""

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
        attributes ``loops`` and ``contacts`` of the graph contain each :class:`Loop` and :class:`Contact`, and
        ``gravity`` is that of the tree. Attributes cannot be changed either; ``networkx.DiGraph(tree.graph)`` is a copy
        that can.
        """
        return self._topology.graph

    @property
    def gravity(self) -> Array:
        """Acceleration of gravity in the base frame, (3,), m/s². It can be set, which is a change of the tree."""
        return self._topology.gravity

    @gravity.setter
    def gravity(self, value: ArrayLike) -> None:
        self._become(self._topology.with_gravity(value))

    base: str = of_structure("base")
    links: tuple[str, ...] = of_structure("links")
    joints: tuple[str, ...] = of_structure("joints")
    locked: tuple[str, ...] = of_structure("locked")
    coordinates: tuple[str, ...] = of_structure("coordinates")
    positions: tuple[str, ...] = of_structure("positions")
    nq: int = of_structure("nq")
    nv: int = of_structure("nv")
    mass: float = of_structure("mass")

    @property
    def revision(self) -> int:
        """Number of changes of the tree."""
        return self._topology.revision

    def link(self, name: str) -> Link:
        """The link with a given name; UnknownNameError, which lists similar names, if there is none."""
        return self._topology.at(name).link

    def shapes(self, link: str) -> tuple[Shape, ...]:
        """The shapes of a link, in its frame; empty if it has none. UnknownNameError if there is no such link."""
        return self._topology.at(link).link.shapes

    def joint(self, name: str) -> Joint:
        """The joint with a name, fixed while it is locked (:meth:`lock_of`); UnknownNameError, with similar names."""
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
        """The joint that closes the loop with a given name; UnknownNameError, with similar names, if there is none."""
        return self._topology.loops[UnknownNameError.check(name, self._topology.loops, "loop")]

    @property
    def contacts(self) -> tuple[str, ...]:
        """Names of the contacts, in the order in which they were made; see :meth:`KinematicTree.touch`."""
        return tuple(self._topology.contacts)

    def contact(self, name: str) -> Contact:
        """The contact with a given name; UnknownNameError, with similar names, if there is none."""
        return self._topology.contacts[UnknownNameError.check(name, self._topology.contacts, "contact")]

    def parent(self, link: str) -> str | None:
        """Name of the parent of a link; ``None`` for the base. UnknownNameError if there is no such link."""
        return self._topology.at(link).parent

    def link_of(self, joint: str) -> str:
        """Name of the link that a joint carries. UnknownNameError, with similar names, if there is no such joint."""
        return self._topology.carrying(joint).link.name

    def joint_of(self, link: str) -> str | None:
        """Name of the joint that carries a link; ``None`` for the base. UnknownNameError if there is no such link."""
        at = self._topology.at(link)
        return None if at.parent is None else at.name

    def path(self, link: str) -> tuple[str, ...]:
        """Names of the links from the base to a link, both included. UnknownNameError if there is no such link."""
        topology = self._topology
        names = [topology.at(link).link.name]
        while (parent := topology.attachments[names[-1]].parent) is not None:
            names.append(parent)
        return tuple(reversed(names))

    def subtree(self, link: str) -> tuple[str, ...]:
        """Names of a link and all links beyond it, in order of attachment. UnknownNameError if there is none."""
        self._topology.at(link)
        return self._topology.subtree(link)

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

    def without_friction(self) -> Self:
        """A copy of the tree whose joints have no dry friction, which states and handles of this tree fit.

        Such as to see what friction does, or for a run with contacts. Damping stays.

        Examples
        --------
        >>> import screwdyn as sd
        >>> tree = sd.KinematicTree()
        >>> joint = sd.revolute("y", friction=0.1, damping=0.2, name="hip")
        >>> _ = tree.attach(sd.Inertia.point(1.0, (1, 0, 0)), to="base", joint=joint)
        >>> smooth = tree.without_friction().joint("hip")
        >>> smooth.friction, smooth.damping
        (0.0, 0.2)
        """
        smooth = self.copy()
        smooth.topology = self.topology.with_attachments(*map(_without_friction, self.topology.attached))
        return smooth

    def __str__(self) -> str:
        return _outline(self._topology)

    def __repr__(self) -> str:
        count = f"{len(self.links)} links, {self.nv} coordinates, {expressions.short(self.mass)} kg"
        return f"<{type(self).__name__} {self.base!r}: {count}>"

    def _repr_html_(self) -> str:
        """For notebooks."""
        rows = []
        for at in self._topology.attachments.values():
            limits, inertia = at.unlocked.joint.limits, at.link.inertia
            within = "" if limits is None else f"{limits[0]:.4g} to {limits[1]:.4g}"
            mass = "" if inertia is None else str(expressions.short(inertia.mass))
            rows.append((at.link.name, at.parent or "", _carried(at) if at.parent else "", within, mass))
        loops = self._topology.loops.values()
        rows += [(loop.link, loop.to, f"{loop.joint.kind} loop {loop.name}", "", "") for loop in loops]
        rows += [(x.link, x.to, f"contact {x.name}", "", "") for x in self._topology.contacts.values()]
        return html_table(repr(self)[1:-1], ("link", "parent", "joint", "limits", "mass, kg"), rows)

    def attach(
        self,
        body: Body,
        to: str,
        joint: Joint | None = None,
        at: ArrayLike | None = None,
        name: str | None = None,
        *,
        prefix: str = "",
        shape: Shapes | None = None,
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
        shape : Shape or sequence of Shape, optional
            What a picture shows of the attached link, in its own frame, instead of the shapes that it has. Shapes have
            no part in the dynamics.

        Returns
        -------
        Handle
            Identifies the attachment in :meth:`detach` and :meth:`release`.

        Raises
        ------
        UnknownNameError, TopologyError, ShapeError
            If ``to`` is unknown, the name of a link or joint is taken, ``at`` is not a pose, or ``shape`` is no shape.
            The tree is then unchanged.

        Warns
        -----
        ScrewdynWarning
            If a body is fixed farther from ``to`` than the links of the moving chain and the body are long together.
        """
        handle = self._hang(body, to, joint, at, name, prefix, shape)
        own = self._topology.attachments[handle.name]
        if to != self.base and not own.joint.screws.size:
            check_reach(self._topology, handle.name, to, own.home)
        return handle

    def _hang(
        self, body: Body, to: str, joint: Joint | None, at: Any, name: str | None, prefix: str, shape: Shapes | None
    ) -> Handle:
        """Attach without a warning."""
        self._topology.at(to)
        joint = FIXED if joint is None else require_joint(joint)
        if body is self and not prefix:
            raise TopologyError(
                "a tree cannot be attached to itself; attach another one, whose links and joints have other names, or "
                "give a prefix for the names of a copy, such as prefix='left/'"
            )
        if not isinstance(prefix, str):
            raise TopologyError(f"prefix must be a string; got {prefix!r}")
        root, rest, ties = self._unpack(body, name, prefix)
        if shape is not None:
            root = replace(root, shapes=shapes_of(shape))
        home = screw.as_pose(at, f"the pose of {root.name!r} on {to!r}")
        first = Attachment(root, to, joint.prefixed(prefix), home)
        self._become(with_ties(self._topology.attach([first, *rest, *first.rotor]), ties))
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
            Loops and contacts between the removed links go with them; contacts with the rest end.

        Raises
        ------
        UnknownNameError, StaleHandleError, TopologyError
            If there is no such link, the handle is stale, the link is the base or a rotor, a joint would lose the
            joint that it follows, or a loop one of its links.
        """
        name = self.resolve(what)
        check_unbridged(self._topology, name)
        topology, (root, *rest) = without_rotor(self._topology, name).detach(name)
        topology.check_separated([root, *rest])
        removed = type(self)(root.link, self.gravity)
        if rest:
            names = {at.link.name: at.link.name for at in (root, *rest)}
            ties = [tie.copied(names) for tie in self._topology.ties if tie.link in names and tie.to in names]
            removed._become(with_ties(removed._topology.attach([at.copied(at.parent) for at in rest]), ties))
        self._become(topology)
        return removed

    def close(
        self, link: str, to: str, joint: Joint | None = None, at: ArrayLike | None = None, name: str | None = None
    ) -> Handle:
        """Connect two links by a joint that the tree does not have; as for a tree, without a state."""
        topology = self._topology
        topology.at(link)
        topology.at(to)
        name = f"{link}-{to}" if name is None else name
        joint = FIXED if joint is None else require_joint(joint)
        return self._tie(Loop(name, link, to, joint, screw.as_pose(at, f"the pose of {link!r} on {to!r}")))

    def open(self, what: Handle | str) -> None:
        """Remove the joint of a loop; errors as for a tree, without a state."""
        loop = self.loop(what.name if isinstance(what, Handle) else what)
        if isinstance(what, Handle) and loop.serial != what._serial:
            raise StaleHandleError(f"this handle of loop {what.name!r} is stale: the loop has been opened since")
        self._revise(without_ties(self._topology, loop.name))

    def _tie(self, tie: Loop | Contact) -> Handle:
        """Add a loop or a contact."""
        self._revise(with_ties(self._topology, [tie]))
        return Handle(tie.name, tie.serial)

    def touch(
        self,
        link: str,
        to: str | None = None,
        *,
        on: Plane | Shape | None = None,
        points: ArrayLike | None = None,
        radius: ArrayLike | None = None,
        friction: float = 0.0,
        restitution: float = 0.0,
        name: str | None = None,
    ) -> Handle:
        """Let two links push each other where they meet (docs/mathematics.md §14).

        Parameters
        ----------
        link, to : str
            The links. One side of the contact are points or shapes of ``link``, the other a body of ``to``, by default
            of the base.
        on : Plane or Shape, optional
            The body, in the frame of ``to``: a :class:`Plane`, ``Ball(radius)``, ``Capsule(radius, length)`` or
            ``Box(size)``; the last three are :meth:`Shape.sphere`, :meth:`Shape.capsule` and :meth:`Shape.box`. By
            default the only collision shape of ``to``, or its only shape.
        points : (k, 3) or (3,) array, optional
            In the frame of ``link``, m. By default its collision shapes touch, or if there are none all its shapes:
            spheres, capsules and boxes.
        radius : number or (k,) array, optional
            Of spheres around the points, m; 0 by default. Without points, one radius of the edges and corners of boxes,
            within their size, which boxes on boxes need.
        friction : float
            Coulomb's coefficient, >= 0.
        restitution : float
            From 0, plastic, to 1.
        name : str, optional
            Name of the contact; ``<link>/<to>`` by default.

        Returns
        -------
        Handle
            Its name is that of the contact, for :meth:`part`.

        Raises
        ------
        UnknownNameError, TopologyError
            If a link is unknown or a rotor, both are the same, or the name is taken.
        ContactError
            If shapes are no spheres, capsules or boxes, or edges of boxes could meet that have no radius; or if
            friction or restitution is out of range.
        ShapeError
            If a number is not finite, or an array has another shape.

        Notes
        -----
        A contact adds no coordinate, and no link's J, M, C or g changes. :func:`simulate` computes its forces; other
        functions of forces ignore it, or raise ContactError. After an error, the tree is unchanged.

        Examples
        --------
        >>> import screwdyn as sd
        >>> tree = sd.KinematicTree()
        >>> crate = sd.Inertia.box(3.0, (0.4, 0.3, 0.2))
        >>> _ = tree.attach(crate, to="base", joint=sd.free(), name="crate", shape=sd.Shape.box((0.4, 0.3, 0.2)))
        >>> handle = tree.touch("crate", to="base", on=sd.Plane(), friction=0.4, name="floor")
        >>> print(tree.contact_gaps([0, 0, 0, 1, 0, 0, 0.35]).min().round(12))
        0.25
        """
        topology = self._topology
        at, body = topology.at(link), topology.at(self.base if to is None else to)
        to = body.link.name
        if to == link:
            raise TopologyError(f"a contact connects two links; got {link!r} twice")
        if on is None:
            on, *others = bodies_of(to, body.link.shapes)
            if others:
                raise ContactError(f"link {to!r} has {1 + len(others)} shapes that could be touched; give one as on=")
        name, radius = f"{link}/{to}" if name is None else name, 0.0 if radius is None else radius
        if points is None:
            own: dict[str, Any] = {"shapes": bodies_of(link, at.link.shapes), "rounding": radius}
        else:
            rows = np.atleast_2d(expressions.read(points, f"the points of {link!r}"))
            own = {"points": rows if rows.size else np.zeros((0, 3)), "radii": radius}
        return self._tie(Contact(name, link, to, on, friction, restitution, **own))

    def part(self, what: Handle | str) -> None:
        """Remove a contact; UnknownNameError or StaleHandleError if there is none, or the handle is stale."""
        contact = self.contact(what.name if isinstance(what, Handle) else what)
        if isinstance(what, Handle) and contact.serial != what._serial:
            raise StaleHandleError(f"this handle of contact {what.name!r} is stale: the contact has been removed since")
        self._revise(without_ties(self._topology, contact.name))

    def attached(
        self,
        body: Body,
        to: str,
        joint: Joint | None = None,
        at: ArrayLike | None = None,
        name: str | None = None,
        *,
        prefix: str = "",
        shape: Shapes | None = None,
    ) -> Lease:
        """Attach for the duration of a ``with`` block; parameters and errors as for :meth:`attach`.

        At the end of the block, the link is detached if it still stands. A link of the same name that has been attached
        in its place within the block stays.

        An interrupt (KeyboardInterrupt) at any moment of a ``with`` statement does not leave the link attached: after
        one at the start of the block the tree is as it was, and one at the end is raised after the link is detached.
        """
        return Lease(self._lent(functools.partial(self.attach, body, to, joint, at, name, prefix=prefix, shape=shape)))

    def _lent(self, attach: Callable[[], Handle]) -> Generator[Handle | int]:
        """The steps of :meth:`attached`: what an interrupt has broken off is repeated."""
        before, handle = vars(self).copy(), None
        try:
            handle = attach()
            yield handle
            self._end(handle)
        except BaseException:
            if handle is None:
                self.__dict__ = before
            else:
                self._end(handle)
            raise
        while True:
            yield 0

    def _end(self, handle: Handle) -> None:
        """Detach what a handle stands for, unless it is stale."""
        if self._stands(handle):
            self.detach(handle)

    def set_shapes(self, what: Handle | str, shapes: Shapes) -> None:
        """Give a link other shapes, ``()`` for none; dynamics and states stay. Errors of `resolve`, and ShapeError."""
        self._become(self._topology.set_shapes(self.resolve(what), shapes))

    def resolve(self, what: Handle | str) -> str:
        """The name of the link of a handle, or a checked name; StaleHandleError or UnknownNameError without a link."""
        if isinstance(what, Handle):
            if not self._stands(what):
                raise StaleHandleError(
                    f"this handle of {what.name!r} is stale: its link has been detached, or is part of another tree"
                )
            return what.name
        self._topology.at(what)
        return what

    def _revise(self, topology: Topology) -> None:
        """Replace the structure by the next revision."""
        self._become(replace(topology, revision=topology.revision + 1))

    def _become(self, topology: Topology) -> None:
        """Replace the structure and discard what was cached for the former one, in one assignment."""
        state = vars(self) | {"_topology": topology}
        for name in self._cached.intersection(state):
            del state[name]
        self.__dict__ = state

    def _unpack(self, body: Body, name: str | None, prefix: str) -> tuple[Link, list[Attachment], list[Loop | Contact]]:
        """The root link of a body, the attachments of all links beyond it, its loops and contacts, with new names."""
        if isinstance(body, Inertia):
            free = self._free_name(f"{prefix}payload").removeprefix(prefix) if name is None else name
            body, name = Link(free, body), None
        if not isinstance(body, Link | Mechanism):
            raise TopologyError(
                f"only an Inertia, a Link or a KinematicTree can be attached; got {type(body).__name__}"
            )
        base = body if isinstance(body, Link) else body.link(body.base)
        root = (base if name is None else replace(base, name=name)).prefixed(prefix)
        if isinstance(body, Link):
            return root, [], []
        topology = body.topology
        names = {link: f"{prefix}{link}" for link in topology.attachments} | {base.name: root.name}
        rest = [at.copied(names[at.parent or ""], prefix) for at in topology.attached]
        return root, rest, [tie.copied(names, prefix) for tie in topology.ties]

    def _free_name(self, stem: str) -> str:
        """The first free name of stem, stem_2, stem_3, …, if these are taken without a gap."""
        topology = self._topology
        if stem not in topology:
            return stem
        end = 2
        while f"{stem}_{end}" in topology:
            end *= 2
        some = range(end // 2 + 1, end)
        return f"{stem}_{some.start + bisect_left(some, True, key=lambda k: f'{stem}_{k}' not in topology)}"

    def _stands(self, handle: Handle) -> bool:
        at = self._topology.attachments.get(handle.name)
        return at is not None and at.serial == handle._serial


def require_joint(joint: object) -> Joint:
    """The joint; TopologyError for anything else."""
    if not isinstance(joint, Joint):
        raise TopologyError(f"joint must be made by revolute(), spherical(), free(), fixed(), …; got {joint!r}")
    return joint


Body = Inertia | Link | Mechanism


def _without_friction(at: Attachment) -> Attachment:
    """The attachment by the same joint without dry friction, also unlocked."""
    own, lock = replace(at.joint, friction=0.0), at.locked
    return replace(at, joint=own, locked=lock and lock._replace(joint=replace(lock.joint, friction=0.0)))


def _outline(topology: Topology) -> str:
    """A line for each link, loop and contact; levels beyond the deepest have an ellipsis on the left."""
    base, *rest = topology.attachments.values()
    beyond: dict[str | None, list[Attachment]] = {name: [] for name in topology.attachments}
    for at in rest:
        beyond[at.parent].append(at)
    lines, todo = [], [(base, "", "")]
    while todo:
        at, start, indent = todo.pop()
        lines.append(start + _described(at))
        if len(indent) > 3 * _DEEPEST:
            indent = f"…  {indent[6:]}"
        for child in reversed(beyond[at.link.name]):
            last = child is beyond[at.link.name][-1]
            todo.append((child, indent + ("└─ " if last else "├─ "), indent + ("   " if last else "│  ")))
    lines += [f"{loop.link} ↔ {loop.to} [{loop.joint.kind} loop {loop.name}]" for loop in topology.loops.values()]
    lines += [f"{x.link} ↔ {x.to} [contact {x.name}]" for x in topology.contacts.values()]
    return "\n".join(lines)


def _described(at: Attachment) -> str:
    """Name, joint and mass of a link."""
    words = at.link.name if at.parent is None else f"{at.link.name} [{_carried(at)}]"
    return words if at.link.inertia is None else f"{words} {expressions.short(at.link.inertia.mass)} kg"


def _carried(at: Attachment) -> str:
    """Kind and name of the joint of a link."""
    joint = at.unlocked.joint
    named = f" {at.name}" if joint.screws.size and at.name != at.link.name else ""
    named += f" follows {joint.mimic.joint}" if joint.mimic is not None else ""
    return f"{'locked ' * (at.locked is not None)}{'passive ' * joint.passive}{joint.kind}{named}"
