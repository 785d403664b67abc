"""URDF writer."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from math import inf, isfinite

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.errors import ScrewdynWarning, UnboundSymbolError, URDFError
from screwdyn.core.types import Array
from screwdyn.io.document import Names
from screwdyn.io.urdf_loops import has_type, loop_lines
from screwdyn.io.urdf_origin import numbers_text, origin_text
from screwdyn.io.urdf_shape_writer import ShapeWriter
from screwdyn.io.xml_text import NOT_IN_XML, quoted
from screwdyn.mechanism.joint import Joint
from screwdyn.mechanism.link import Attachment, Link, Loop
from screwdyn.mechanism.topology import Topology
from screwdyn.screws.screw import axis as axis_of
from screwdyn.screws.screw import inverse, pose

__all__ = ["write_urdf"]

# Distance in metres below which an axis counts as passing through the link's origin.
_AT_ORIGIN = 1e-14
# URDF requires limits for revolute and prismatic joints: the largest float means that there is none.
_UNLIMITED = sys.float_info.max
_NONE = (-inf, inf)
_STANDARD_GRAVITY = (0.0, 0.0, -9.81)


def write_urdf(topology: Topology, name: str = "robot") -> str:
    """The text of a tree; :meth:`KinematicTree.to_urdf` describes it.

    Raises
    ------
    URDFError
        Lists every joint and name that URDF cannot express.
    UnboundSymbolError
        If numbers contain symbols.

    Warns
    -----
    ScrewdynWarning
        Once, with everything that URDF has no place for.
    """
    if not isinstance(name, str) or not name:
        raise URDFError(f"the name of the robot must be a non-empty string; got {name!r}")
    attachments = list(topology.attachments.values())
    loops = list(topology.loops.values())
    held = [x for at in attachments for x in (at.link.inertia, at.joint, at.home)]
    held += [x for loop in loops for x in (loop.joint, loop.home)]
    if symbols := expressions.free_symbols(held):
        raise UnboundSymbolError.of(symbols, "the URDF")
    writer = _Writer(topology)
    lines = [f"<robot name={quoted(name)}>"]
    for at in attachments:
        lines += writer.attached(at)
    for loop in loops:
        lines += writer.loop(loop)
    writer.check_name("robot", name)
    if writer.problems:
        raise URDFError("\n  ".join(["URDF cannot express this tree", *writer.problems]), writer.problems)
    lost = writer.lost
    if not np.array_equal(topology.gravity, _STANDARD_GRAVITY):
        lost = [f"gravity {topology.gravity.tolist()} m/s², which readers take as {list(_STANDARD_GRAVITY)}", *lost]
    if lost:
        message = "URDF has no place for the following; to_json keeps it"
        warnings.warn("\n  ".join([message, *lost]), ScrewdynWarning, stacklevel=3)  # of to_urdf's caller
    return "\n".join([*lines, "</robot>"]) + "\n"


@dataclass(frozen=True, eq=False)
class _Step:
    """One URDF joint: its type, name, frame in the carried link's frame, and axis in its own frame."""

    kind: str
    name: str
    frame: Array
    axis: Array | None = None


class _Writer:
    def __init__(self, topology: Topology) -> None:
        self.problems: list[str] = []
        self.lost: list[str] = []
        self.shapes = ShapeWriter()
        self.base = topology.base
        labels = (label for at in topology.attachments.values() for label in at.labels)
        self.names = Names([*topology.attachments, *topology.carried, *topology.loops, *labels])

    def attached(self, at: Attachment) -> list[str]:
        """The lines of a link and of the joints that connect it to its parent, with massless links between them."""
        self.check_name("link", at.link.name)
        if at.parent is None:
            return [self.link(at.link)]
        self.check_name("joint", at.name)
        self.note_losses(at)
        lines, parent, place = [], at.parent, at.home
        steps = self.steps(at)
        for k, step in enumerate(steps):
            last = k == len(steps) - 1 and np.array_equal(step.frame, np.eye(4))
            child = at.link.name if last else self.names.unused(f"{at.link.name}_axis")
            lines += [] if last else [self.link(Link(child))]
            lines.append(_joint(step, parent, child, place @ step.frame, at.joint))
            parent, place = child, inverse(step.frame)
        lines.insert(0, self.link(at.link))
        if parent != at.link.name:
            weld = at.name if not steps else self.names.unused(f"{at.link.name}_offset")
            lines.append(_joint(_Step("fixed", weld, np.eye(4)), parent, at.link.name, place, at.joint))
        return lines

    def steps(self, at: Attachment) -> list[_Step]:
        """The URDF joints in a row that move like a joint, with the same coordinates."""
        joint = at.joint
        if joint.chart is not None:
            if joint.kind == "spherical":
                hint = "three revolute joints in a row have other coordinates"
                self.problems.append(f"joint {at.name!r} is spherical, which URDF does not have; {hint}")
            frame = pose(expressions.floats(joint.chart.axes), expressions.floats(joint.chart.center))
            if joint.kind == "planar":
                return [_Step("planar", at.name, frame, np.array([0.0, 0.0, 1.0]))]
            return [_Step("floating", at.name, frame)]
        steps = []
        for name, S in zip(joint.row_names(at.name), expressions.floats(joint.screws).T, strict=True):
            frame, kind = np.eye(4), Joint(S).kind
            direction, point = axis_of(S)
            if kind == "helical":
                hint = "URDF has no such joint; use to_json"
                self.problems.append(f"joint {at.name!r} has the helical freedom {name!r}; {hint}")
            if kind != "prismatic" and np.linalg.norm(point) > _AT_ORIGIN:
                frame[:3, 3] = point
            steps.append(_Step(kind, name, frame, direction))
        return steps

    def note_losses(self, at: Attachment) -> None:
        name, joint = at.name, at.joint
        if at.locked is not None:
            self.lost.append(f"the lock of joint {name!r}, which is fixed in the URDF")
        floating = joint.kind == "free"
        if joint.nv and joint.passive != floating:
            self.lost.append(f"joint {name!r} is {'passive' if joint.passive else 'a free joint that is not passive'}")
        if joint.stiffness != 0:
            self.lost.append(f"the spring of joint {name!r}")
        if joint.armature != 0:
            self.lost.append(f"the armature of joint {name!r}")

    def link(self, link: Link) -> str:
        """The lines of a link."""
        lines = []
        if link.inertia is not None or link.name != self.base:
            mass, com, tensor = 0.0, (0.0,) * 3, (0.0,) * 6  # left out, some readers would take 1 kg
            if link.inertia is not None:
                inertia = link.inertia.evaluated()
                mass, (com, tensor) = inertia.mass, inertia.entries
            named = zip(("xx", "xy", "xz", "yy", "yz", "zz"), tensor, strict=True)
            entries = " ".join(f'i{k}="{x!r}"' for k, x in named)
            lines = [
                "    <inertial>",
                f'      <origin xyz="{numbers_text(com)}"/>',
                f'      <mass value="{mass!r}"/>',
                f"      <inertia {entries}/>",
                "    </inertial>",
            ]
        for shape in link.shapes:
            lines += self.shapes.lines(shape)
            if shape.path is not None:
                self.check_name("mesh", shape.path, "path")
        if any(shape.use == "collision" and shape.color is not None for shape in link.shapes):
            self.lost.append(f"the colours of collision shapes of link {link.name!r}")
        if not lines:
            return f"  <link name={quoted(link.name)}/>"
        return "\n".join([f"  <link name={quoted(link.name)}>", *lines, "  </link>"])

    def loop(self, loop: Loop) -> list[str]:
        """The lines of the joint of a loop."""
        self.check_name("loop", loop.name)
        if has_type(loop.joint):
            return [*loop_lines(loop)]
        self.problems.append(f"loop {loop.name!r} has a {loop.joint.kind} joint, which has no type here; use to_json")
        return []

    def check_name(self, what: str, name: str, kind: str = "name") -> None:
        wrong = NOT_IN_XML.search(name)
        found = wrong[0] if wrong else next((mark for mark in ("${", "$(") if mark in name), None)
        if found is not None:
            reason = "XML does not have" if wrong else "means an expression of xacro"
            self.problems.append(f"the {kind} {name!r} of a {what} contains {found!r}, which {reason}; rename it")


def _joint(step: _Step, parent: str, child: str, home: Array, joint: Joint) -> str:
    home = expressions.floats(home)
    bounded = step.kind in ("revolute", "prismatic")
    kind = "continuous" if step.kind == "revolute" and joint.limits is None else step.kind
    lines = [
        f'  <joint name={quoted(step.name)} type="{kind}">',
        f"    {origin_text(home)}",
        f"    <parent link={quoted(parent)}/>",
        f"    <child link={quoted(child)}/>",
    ]
    if step.axis is not None:
        lines.append(f'    <axis xyz="{numbers_text(step.axis)}"/>')
    motor = {"effort": joint.effort, "velocity": joint.velocity}
    limits = (
        {} if kind == "continuous" or not bounded else dict(zip(("lower", "upper"), joint.limits or _NONE, strict=True))
    )
    if limits or (step.kind != "fixed" and set(motor.values()) != {None}):
        shown = (f'{what}="{numbers_text(_bound(x))}"' for what, x in (limits | motor).items())
        lines.append(f"    <limit {' '.join(shown)}/>")
    if step.kind != "fixed" and (joint.damping or joint.friction):
        lines.append(
            f'    <dynamics damping="{numbers_text(joint.damping)}" friction="{numbers_text(joint.friction)}"/>'
        )
    if joint.mimic is not None and step.kind != "fixed":
        numbers = f'multiplier="{numbers_text(joint.mimic.ratio)}" offset="{numbers_text(joint.mimic.offset)}"'
        lines.append(f"    <mimic joint={quoted(joint.mimic.joint)} {numbers}/>")
    return "\n".join([*lines, "  </joint>"])


def _bound(x: float | None) -> float:
    return _UNLIMITED if x is None else x if isfinite(x) else float(np.copysign(_UNLIMITED, x))
