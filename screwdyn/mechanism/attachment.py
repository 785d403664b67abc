"""A link and its connection to its parent: the entries of a :class:`~screwdyn.mechanism.topology.Topology`."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.errors import JointError
from screwdyn.core.types import Array
from screwdyn.mechanism.joint import Joint, Mimic, fixed
from screwdyn.mechanism.link import Link
from screwdyn.screws import screw

__all__ = ["FIXED", "ROTOR_ENDINGS", "Attachment", "Locked", "new_serial"]

# Of the names of the links of a rotor, after that of its joint.
ROTOR_ENDINGS = "_rotor", "_rotor_at_rest"
# A random start distinguishes handles of other processes, which may be pickled.
new_serial = itertools.count(secrets.randbits(64) << 32).__next__
FIXED, _IDENTITY = fixed(), np.eye(4)
_IDENTITY.setflags(write=False)


class Locked(NamedTuple):
    """What a locked joint is when it is unlocked.

    Attributes
    ----------
    joint : Joint
    home : (4, 4) array
    q : tuple of floats
        The positions at which it is locked.
    """

    joint: Joint
    home: Array
    q: tuple[float, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Attachment:
    """A link and its connection to its parent; the base has no parent.

    Attributes
    ----------
    link : Link
    parent : str or None
    joint : Joint
        Fixed for the base and while the joint is locked.
    home : (4, 4) array
        Pose of the link in its parent while the joint is neutral; made read-only.
    serial : int
        A number that distinguishes this attachment from a later one with the same name.
    locked : Locked or None
        The joint and home of a joint that is locked.
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
        joint = self.unlocked.joint
        return *joint.freedom_names(self.name), *joint.position_names(self.name)

    @property
    def unlocked(self) -> Attachment:
        """The same attachment with its joint unlocked."""
        if self.locked is None:
            return self
        return replace(self, joint=self.locked.joint, home=self.locked.home, locked=None)

    @property
    def follows(self) -> bool:
        """Whether the joint follows another one, also while it is locked."""
        return (self.joint if self.locked is None else self.locked.joint).mimic is not None

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

        def pose(home: Array) -> Array:
            return screw.as_pose(expressions.substituted(home, values), f"the pose of {self.link.name!r}")

        def bound(joint: Joint) -> Joint:
            try:
                return joint.subs(values)
            except JointError as error:
                raise JointError(f"joint {self.name!r}: {error}") from None

        locked = self.locked
        if locked is not None:
            locked = Locked(bound(locked.joint), pose(locked.home), locked.q)
        return replace(
            self,
            link=self.link.subs(values),
            serial=new_serial(),
            joint=bound(self.joint),
            home=pose(self.home),
            locked=locked,
        )
