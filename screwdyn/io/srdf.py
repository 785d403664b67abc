"""Reader of the reference poses in SRDF files, such as those of MoveIt and of Pinocchio's models."""

from __future__ import annotations

import os

from screwdyn.core.errors import ScrewdynError
from screwdyn.io.urdf import Xacro, accepted, read_robot
from screwdyn.io.xml_text import Element
from screwdyn.mechanism import Topology, checked_positions

# Name of the joint of a floating base in files that declare none.
_ROOT = "root_joint"

Positions = dict[str, float]


def read_srdf(
    path_or_text: str | os.PathLike[str], topology: Topology, prefix: str, strict: bool, xacro: Xacro
) -> dict[str, Positions]:
    """The positions that each group state gives, by name; see :meth:`KinematicTree.reference_poses`."""

    def make(root: Element, _: object) -> _States:
        return _States(root, topology, prefix)

    return accepted(*read_robot(path_or_text, (), xacro, make, "SRDF"), strict=strict).positions


class _States:
    """The positions of all group states; those of the same name in several groups are one."""

    def __init__(self, root: Element, topology: Topology, prefix: str) -> None:
        self.topology, self.prefix = topology, prefix
        self.virtual = {_ROOT, *(element.attributes.get("name") for element in root.named("virtual_joint"))}
        floating = (at.name for at in topology.attached if at.parent == topology.base and at.joint.chart is not None)
        self.floating = next(floating, None)
        self.positions: dict[str, Positions] = {}
        self.missing = False
        if any(root.named("link")):
            hint = "give the .srdf file, which names groups of joints and their <group_state>s"
            root.wrong("this is a URDF, which has no reference poses", hint)
        for state in root.named("group_state"):
            name = state.attribute("name")
            found = [x for x in map(self.of, state.named("joint")) if x is not None]
            if name is None or not found:
                continue
            positions = self.positions.setdefault(name, {})
            for label, x in ((label, x) for own in found for label, x in own.items()):
                if positions.setdefault(label, x) != x:
                    state.wrong(f"{label!r} is {x:g} and {positions[label]:g}", "keep one, or rename the state")
        if not self.positions and self.missing:
            root.wrong("the tree has no joint of any group state", "give the prefix= with which the robot was attached")

    def of(self, element: Element) -> Positions | None:
        """The positions of one joint, none of one without coordinates of its own; None if there is no such joint."""
        given, carried = element.attribute("name"), self.topology.carried
        if given is None:
            return None
        name = self.prefix + given
        if name not in carried and given in self.virtual:
            if self.floating is None:
                return {}
            name = self.floating
        if name not in carried:
            self.missing = True
            return element.doubtful(f"the tree has no joint {name!r}", element.near(name, carried))
        joint = self.topology.carrying(name).joint
        labels = joint.position_names(name)
        values = element.numbers("value", len(labels)) if labels else ()
        if not values:
            return {}
        first = 0 if joint.chart is None else joint.chart.translations  # SRDF has the position before the orientation
        try:
            positions = checked_positions(name, joint, values[first:] + values[:first])
        except ScrewdynError as error:
            return element.wrong(str(error))
        return dict(zip(labels, positions.tolist(), strict=True))
