"""A joint that a tree does not have: it connects two links of the tree and so closes a loop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from screwdyn.core import expressions
from screwdyn.core.errors import JointError
from screwdyn.core.types import Array
from screwdyn.mechanism.attachment import new_serial
from screwdyn.mechanism.joint import Joint
from screwdyn.mechanism.reversal import reversed_joint
from screwdyn.screws import screw
from screwdyn.screws.groups import constrained_wrenches, is_group

__all__ = ["Loop"]

# What a joint without coordinates cannot have.
_OF_COORDINATES = ("damping", "friction", "stiffness", "rest", "armature", "limits", "effort", "mimic", "rotor")


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
        if not is_group(joint.screws):
            raise JointError(
                f"{which} is {joint.kind}, whose motions are no group; attach a link on one of its axes to "
                f"{self.to!r}, and close the loop between that link and {self.link!r} by the other axis"
            )

    @cached_property
    def wrenches(self) -> Array:
        """N, (6, 6 − k): the wrenches [n; f] that the joint transmits, in the frame of ``link``; Sᵀ N = 0."""
        N = constrained_wrenches(self.joint.screws)
        N.setflags(write=False)
        return N

    def copied(self, names: Mapping[str, str], prefix: str = "") -> Loop:
        """A new loop between the same links by their new names; the prefix begins its own."""
        return replace(
            self,
            name=prefix + self.name,
            link=names[self.link],
            to=names[self.to],
            joint=self.joint.inside(prefix),
            serial=new_serial(),
        )

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
