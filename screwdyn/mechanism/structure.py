"""A tree of links and joints to which links can be attached, and from which they can be detached."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

from screwdyn.core.errors import StaleHandleError, TopologyError
from screwdyn.core.lease import Lease
from screwdyn.core.types import ArrayLike
from screwdyn.mechanism import surgery
from screwdyn.mechanism.attachment import FIXED, Attachment
from screwdyn.mechanism.holder import Holder
from screwdyn.mechanism.inertia import Inertia
from screwdyn.mechanism.joint import Joint
from screwdyn.mechanism.link import Link
from screwdyn.mechanism.loop import Loop
from screwdyn.mechanism.loops import check_unbridged, loops_among, with_loops, without_loop
from screwdyn.mechanism.rotors import without_rotor
from screwdyn.mechanism.shape import Shapes, shapes_of
from screwdyn.screws import screw

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


class Structure(Holder):
    """A rooted tree of named links with a joint on every edge.

    Attaching and detaching are changes of the structure that it holds. Parameters as for :class:`Holder`.
    """

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
        root, rest, loops = self._unpack(body, name, prefix)
        if shape is not None:
            root = replace(root, shapes=shapes_of(shape))
        home = screw.as_pose(at, f"the pose of {root.name!r} on {to!r}")
        first = Attachment(root, to, (joint or FIXED).prefixed(prefix), home)
        self._become(with_loops(self._topology.attach([first, *rest, *first.rotor]), loops))
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
            Loops between the removed links go with them.

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
        removed = self._rooted(root.link)
        if rest:
            names = {at.link.name: at.link.name for at in (root, *rest)}
            loops = [loop.copied(names) for loop in loops_among(self._topology, names)]
            removed._become(with_loops(removed._topology.attach([at.copied(at.parent) for at in rest]), loops))
        self._become(topology)
        return removed

    def close(
        self, link: str, to: str, joint: Joint | None = None, at: ArrayLike | None = None, name: str | None = None
    ) -> Handle:
        """Connect two links by a joint that the tree does not have; as for a tree, without a state."""
        self._at(link)
        self._at(to)
        if joint is not None:
            require_joint(joint)
        name = f"{link}-{to}" if name is None else name
        loop = Loop(name, link, to, joint or FIXED, screw.as_pose(at, f"the pose of {link!r} on {to!r}"))
        topology = self._topology
        self._become(replace(with_loops(topology, [loop]), revision=topology.revision + 1))
        return Handle(loop.name, loop.serial)

    def open(self, what: Handle | str) -> None:
        """Remove the joint of a loop; errors as for a tree, without a state."""
        loop = self.loop(what.name if isinstance(what, Handle) else what)
        if isinstance(what, Handle) and loop.serial != what._serial:
            raise StaleHandleError(f"this handle of loop {what.name!r} is stale: the loop has been opened since")
        topology = self._topology
        self._become(replace(without_loop(topology, loop.name), revision=topology.revision + 1))

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
    ) -> Lease[Handle]:
        """Attach for the duration of a ``with`` block; parameters and errors as for :meth:`attach`.

        At the end of the block, the link is detached if it still stands. A link of the same name that has been attached
        in its place within the block stays.

        An interrupt (KeyboardInterrupt) at any moment of a ``with`` statement does not leave the link attached: after
        one at the start of the block the tree is as it was, and one at the end is raised after the link is detached.
        """
        return Lease(self._lent(partial(self.attach, body, to, joint, at, name, prefix=prefix, shape=shape)))

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
        """Give a link other shapes: one, several, or ``()`` for none. Dynamics, handles and states stay as they are.

        Raises
        ------
        UnknownNameError, StaleHandleError, ShapeError
            If there is no such link, the handle is stale, or ``shapes`` are something else.
        """
        self._become(surgery.set_shapes(self._topology, self.resolve(what), shapes))

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

    def _rooted(self, base: Link) -> Self:
        """A new tree of this class with a given base and no further links."""
        return type(self)(base, self.gravity)

    def _unpack(self, body: Body, name: str | None, prefix: str) -> tuple[Link, list[Attachment], list[Loop]]:
        """The root link of a body, the attachments of all links beyond it, and its loops, with their new names."""
        if isinstance(body, Inertia):
            if name is None:
                return Link(self._free_name(f"{prefix}payload"), body), [], []
            return Link(name, body).prefixed(prefix), [], []
        if isinstance(body, Link):
            return Link(body.name if name is None else name, body.inertia, body.shapes).prefixed(prefix), [], []
        if not isinstance(body, Structure):
            kind = type(body).__name__
            raise TopologyError(f"only an Inertia, a Link or a KinematicTree can be attached; got {kind}")
        base, *rest = body.topology.attachments.values()
        root = Link(base.link.name if name is None else name, base.link.inertia, base.link.shapes).prefixed(prefix)
        names = {at.link.name: f"{prefix}{at.link.name}" for at in rest} | {base.link.name: root.name}
        loops = [loop.copied(names, prefix) for loop in body.topology.loops.values()]
        return root, [at.copied(names[at.parent or ""], prefix) for at in rest], loops

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


def require_joint(joint: object) -> None:
    """Raise TopologyError for anything but a joint."""
    if not isinstance(joint, Joint):
        raise TopologyError(f"joint must be made by revolute(), spherical(), free(), fixed(), …; got {joint!r}")


Body = Inertia | Link | Structure
