"""Links, and their connections: to a parent, or to another link by a loop."""

from __future__ import annotations

import functools
import itertools
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, cast

import numpy as np

from screwdyn.core import InertiaError, JointError, ShapeError, TopologyError, expressions
from screwdyn.core.types import NAME, Array, cached_property, is_name
from screwdyn.mechanism.inertia import Inertia
from screwdyn.mechanism.joint import Joint, Mimic, fixed, pose_at
from screwdyn.mechanism.shape import Shape, shapes_of
from screwdyn.screws import screw
from screwdyn.screws.screw import Ad, inverse
from screwdyn.screws.screw_system import constrained_wrenches, is_group

# Product of the moments of inertia, relative to the cube of their sum, below which one may be zero.
_LEAN = 1e-9
# Of the names of the links of a rotor, after that of its joint.
ROTOR_ENDINGS = "_rotor", "_rotor_at_rest"
# A random start distinguishes handles of other processes, which may be pickled.
new_serial = itertools.count(secrets.randbits(64) << 32).__next__
FIXED, _IDENTITY = fixed(), np.eye(4)
_IDENTITY.setflags(write=False)
# What a joint without coordinates cannot have.
_OF_COORDINATES = ("damping", "friction", "stiffness", "rest", "armature", "limits", "effort", "mimic", "rotor")


@dataclass(frozen=True)
class Link:
    """One rigid body of a tree, with a frame of its own.

    Parameters
    ----------
    name : str
        Unique within its tree.
    inertia : Inertia, optional
        Mass, centre of mass and inertia tensor in the link frame; ``None`` for a massless frame such as ``tool0``.
    shapes : tuple of Shape
        What a picture shows of the link; one shape or several may be given.

    Raises
    ------
    TopologyError
        If the name is not a string, is blank, or has control characters.
    InertiaError
        If ``inertia`` is neither an :class:`Inertia` nor ``None``.
    ShapeError
        If ``shapes`` is something else.
    """

    name: str
    inertia: Inertia | None = None
    shapes: tuple[Shape, ...] = ()

    @cached_property
    def lean(self) -> bool:
        """Whether the inertia, of numbers, may be zero for some twist, as that of a thin rod; a determinant tells."""
        if self.inertia is None:
            return True
        xx, xy, xz, yy, yz, zz = self.inertia.entries[1]
        determinant = xx * (yy * zz - yz * yz) - xy * (xy * zz - yz * xz) + xz * (xy * yz - yy * xz)
        return not (self.inertia.mass > 0 and determinant > _LEAN * (xx + yy + zz) ** 3 > 0)

    @cached_property
    def effective(self) -> bool:
        """Whether the inertia may be that of no rigid body."""
        return self.inertia is not None and self.inertia.is_effective

    def prefixed(self, prefix: str) -> Link:
        """The link with a prefix before its name."""
        return Link(prefix + self.name, self.inertia, self.shapes) if prefix else self

    def subs(self, values: Mapping[Any, Any]) -> Link:
        """The link with values substituted for symbols; InertiaError if no rigid body has the resulting inertia."""
        if self.inertia is None:
            return self
        try:
            return replace(self, inertia=self.inertia.subs(values))
        except InertiaError as error:
            raise InertiaError(f"link {self.name!r}: {error}") from None

    def __post_init__(self) -> None:
        if not is_name(self.name):
            raise TopologyError(f"a link needs {NAME} as its name; got {self.name!r}")
        if self.inertia is not None and not isinstance(self.inertia, Inertia):
            raise InertiaError(
                f"link {self.name!r}: inertia must be a screwdyn.Inertia or None; got {type(self.inertia).__name__}"
            )
        if self.shapes != ():
            object.__setattr__(self, "shapes", shapes_of(self.shapes))


class Locked(NamedTuple):
    """What a locked joint is when it is unlocked, and the positions at which it is locked; see ``tree.lock_of``."""

    joint: Joint
    home: Array
    q: tuple[float, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Attachment:
    """A link and its connection to its parent; the joint is fixed for the base, and while it is locked.

    ``home`` is the pose of the link in its parent while the joint is neutral. ``serial`` tells attachments apart.
    """

    link: Link
    parent: str | None = None
    joint: Joint = FIXED
    home: Array = field(default_factory=lambda: _IDENTITY)
    serial: int = field(default_factory=new_serial)
    locked: Locked | None = None

    def __post_init__(self) -> None:
        self.home.setflags(write=False)

    @property
    def name(self) -> str:
        """Name of the joint, after which its freedoms and positions are named."""
        return self.joint.name or self.link.name

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the joint's freedoms."""
        return self.joint.freedom_names(self.name)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the freedoms and positions of the joint, unlocked if it is locked."""
        joint, name = self.unlocked.joint, self.name
        return joint.freedom_names(name) + joint.position_names(name)

    @property
    def unlocked(self) -> Attachment:
        """The same attachment with its joint unlocked."""
        return self if self.locked is None else self.by(self.locked.joint, self.locked.home)

    def by(self, joint: Joint, home: Array, locked: Locked | None = None) -> Attachment:
        """The same attachment by another joint or from another home pose, which may be those of a locked joint."""
        return Attachment(self.link, self.parent, joint, home, self.serial, locked)

    def locked_at(self, q: Array | None) -> Attachment:
        """The same attachment, its joint fixed at some positions, or in its neutral ones, whatever symbols it has."""
        positions = self.joint.neutral if q is None else tuple(q.tolist())
        home = self.home if q is None else self.home @ pose_at(self.joint, q)
        if not expressions.is_bounded(home[:3, 3]):
            where = listed_numbers(positions)
            raise ShapeError(f"joint {self.name!r} at {where} would move its link too far; lock it nearer")
        return self.by(fixed(self.joint.name), home, Locked(self.joint, self.home, positions))

    @property
    def follows(self) -> str | None:
        """Name of the joint that the joint follows, also while it is locked."""
        mimic = (self.joint if self.locked is None else self.locked.joint).mimic
        return None if mimic is None else mimic.joint

    def copied(self, parent: str | None, prefix: str = "") -> Attachment:
        """A new attachment of the same link to a given parent; the prefix begins the names of links and joints."""
        link, joint, locked = self.link.prefixed(prefix), self.joint.inside(prefix), self.locked
        locked = locked and locked._replace(joint=locked.joint.inside(prefix))
        return replace(self, link=link, parent=parent, joint=joint, serial=new_serial(), locked=locked)

    @property
    def rotor(self) -> list[Attachment]:
        """Attachments of the rotor of the joint's motor, if it has one."""
        rotor, parent = self.joint.rotor, self.parent
        if rotor is None:
            return []
        (name, at_rest), carrier = (f"{self.name}{ending}" for ending in ROTOR_ENDINGS), rotor.carrier or parent
        spinning, counted = rotor.bodies
        joint = Joint(rotor.screw, name=name, mimic=Mimic(self.name, rotor.ratio))
        found = [Attachment(Link(name, spinning), carrier, joint)]
        return found if counted is None else [*found, Attachment(Link(at_rest, counted), carrier)]

    def subs(self, values: Mapping[Any, Any]) -> Attachment:
        """A new attachment with values substituted for symbols; errors name the link or the joint."""

        def bound(part: Attachment | Locked) -> dict[str, Any]:
            try:
                joint = part.joint.subs(values)
            except JointError as error:
                raise JointError(f"joint {self.name!r}: {error}") from None
            home = expressions.substituted(part.home, values)
            return {"joint": joint, "home": screw.as_pose(home, f"the pose of {self.link.name!r}")}

        link, locked = self.link.subs(values), self.locked and self.locked._replace(**bound(self.locked))
        return replace(self, link=link, serial=new_serial(), locked=locked, **bound(self))


def reversed_joint(joint: Joint, home: Array) -> Joint:
    """The joint by which a link carries its parent, with the same forces and limits; its home is home⁻¹.

    The pose home · g(q) of the link in its parent becomes home⁻¹ · (home g(q)⁻¹ home⁻¹). The screws are −Ad(home) S in
    the opposite order, so that each freedom keeps its position and rate. A chart keeps its axes; its positions are
    those of g(q)⁻¹. JointError if the chart moves and has damping or friction, whose force would be another one.
    """
    if joint.chart is None:
        return replace(joint, screws=-(Ad(home) @ joint.screws)[:, ::-1] + 0.0)
    if joint.chart.translations and (joint.damping != 0 or joint.friction != 0):
        raise JointError(
            f"a {joint.kind} joint with damping or friction cannot be reversed, because these act on velocities of the "
            f"link that it carries; remove them by replace_joint"
        )
    R, p = home[:3, :3], home[:3, 3]
    return replace(joint, chart=replace(joint.chart, axes=R @ joint.chart.axes, center=R @ joint.chart.center + p))


def reversed_motion(joint: Joint, q: Array, rates: Array) -> tuple[Array, Array]:
    """Positions (nq,) and rates (nv,) of the reversed joint in the same state."""
    chart = joint.chart
    if chart is None:
        return q[::-1], rates[::-1]
    twist = Ad(chart.pose(q)) @ joint.screws @ rates
    return chart.inverse(q), np.asarray(-np.linalg.pinv(joint.screws) @ twist)


def rerooted(attachments: Sequence[Attachment], root: str) -> list[Attachment]:
    """The attachments of a subtree from another root, which is first; joints between are reversed, or JointError."""
    at = {one.link.name: one for one in attachments}
    carried = at.pop(root)
    turned = [carried]
    while carried.link.name != attachments[0].link.name:
        parent = at.pop(carried.parent or "")
        turned.append(_carrying(carried, parent))
        carried = parent
    return [*turned, *at.values()]


def _carrying(at: Attachment, parent: Attachment) -> Attachment:
    """The attachment of the parent to the link of an attachment, by the same joint; its rotor stays on its carrier."""

    def back(part: Attachment | Locked) -> dict[str, Any]:
        rotor = part.joint.rotor and replace(part.joint.rotor, carrier=part.joint.rotor.carrier or at.parent)
        joint = replace(reversed_joint(part.joint, part.home), name=at.name, rotor=rotor)
        return {"joint": joint, "home": inverse(part.home)}

    locked = at.locked
    try:
        if locked is not None:
            q, _ = reversed_motion(locked.joint, np.array(locked.q), np.zeros(locked.joint.nv))
            locked = Locked(**back(locked), q=tuple(q.tolist()))
        return replace(parent, parent=at.link.name, locked=locked, **back(at))
    except JointError as error:
        raise JointError(f"joint {at.name!r} of {at.link.name!r}: {error}") from None


# Found once for each joint, of which loops are closed and opened many times.
@functools.lru_cache(maxsize=256)
def _transmitted(joint: Joint) -> Array | None:
    """The wrenches N that a joint transmits, (6, 6 − k); None if its motions are no group."""
    if not is_group(joint.screws):
        return None
    N = constrained_wrenches(joint.screws)
    N.setflags(write=False)
    return N


@dataclass(frozen=True, eq=False)
class Loop:
    """A joint that closes a loop (docs/mathematics.md §12).

    The pose of ``link`` in ``to`` is ``home`` · g with g in the group of the joint's screws.

    Attributes
    ----------
    name : str
    link, to : str
        The two links.
    joint : Joint
        In the frame of ``link``. It has no coordinates, no motor and no force of its own.
    home : (4, 4) array
        Pose of ``link`` in ``to`` while the joint is neutral, m.
    serial : int
        A number that distinguishes this loop from a later one with the same name.

    Raises
    ------
    JointError
        If the motions of the joint are no group, as of a universal joint; if they are all motions; or if the joint has
        a motor, forces or limits.
    """

    name: str
    link: str
    to: str
    joint: Joint
    home: Array
    serial: int = field(default_factory=new_serial)

    def __post_init__(self) -> None:
        self.home.setflags(write=False)
        joint, which = self.joint, f"the joint of loop {self.name!r}"
        found = [what for what in _OF_COORDINATES if getattr(joint, what) not in (None, 0)]
        if found:
            raise JointError(
                f"{which} has no coordinate, so it takes no {' and no '.join(found)}; give these to a joint of the "
                f"tree, or close the loop at another joint"
            )
        if joint.screws.shape[1] == 6:
            raise JointError(f"{which} is free, which closes nothing; leave it out")
        if _transmitted(joint) is None:
            raise JointError(
                f"{which} is {joint.kind}, whose motions are no group; attach a link on one of its axes to "
                f"{self.to!r}, and close the loop between that link and {self.link!r} by the other axis"
            )

    @property
    def wrenches(self) -> Array:
        """N, (6, 6 − k): the wrenches [n; f] that the joint transmits, in the frame of ``link``; Sᵀ N = 0."""
        return cast(Array, _transmitted(self.joint))

    def copied(self, names: Mapping[str, str], prefix: str = "") -> Loop:
        """A new loop between the same links by their new names; the prefix begins its own."""
        link, to, joint = names[self.link], names[self.to], self.joint.inside(prefix)
        return replace(self, name=prefix + self.name, link=link, to=to, joint=joint, serial=new_serial())

    def carrying(self, link: str) -> Loop:
        """The same loop, with one of its two links as ``link``."""
        if link == self.link:
            return self
        joint = reversed_joint(self.joint, self.home)
        return replace(self, link=self.to, to=self.link, joint=joint, home=screw.inverse(self.home))

    def subs(self, values: Mapping[Any, Any]) -> Loop:
        """A new loop with values substituted for symbols."""
        home = screw.as_pose(expressions.substituted(self.home, values), f"the pose of loop {self.name!r}")
        return replace(self, joint=self.joint.subs(values), home=home, serial=new_serial())


def listed_numbers(q: Iterable[float]) -> str:
    """Numbers for a message."""
    return ", ".join(f"{x:.4g}" for x in q)
