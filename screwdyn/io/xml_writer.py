"""Writers of URDF and MJCF, which list together everything that a format cannot express, or has no place for."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import escape
from math import atan2, cos, inf, isfinite, sin
from typing import NamedTuple

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.errors import ModelError, UnboundSymbolError, URDFError
from screwdyn.core.types import Array
from screwdyn.io.document import Findings, unused
from screwdyn.io.urdf import LOOP, LOOP_TYPES
from screwdyn.mechanism.inertia import failing_condition
from screwdyn.mechanism.joint import Joint
from screwdyn.mechanism.link import Attachment, Link, Loop
from screwdyn.mechanism.shape import Shape
from screwdyn.mechanism.topology import Topology
from screwdyn.screws.screw import Ad, as_pose, inverse, pitch, pose
from screwdyn.screws.screw import axis as axis_of

__all__ = ["home_key", "write_mjcf", "write_urdf"]

_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# A reader of XML replaces white space in an attribute by spaces unless it is written as a reference.
_REFERENCES = str.maketrans({c: f"&#{ord(c)};" for c in "\n\r\t"})


def quoted(text: str) -> str:
    """The value of an attribute, in quotes; ``xml.sax.saxutils.quoteattr`` would import ``urllib`` and ``ssl``."""
    return f'"{escape(text).translate(_REFERENCES)}"'


def _numbers(values: object) -> str:
    """Numbers with all digits; adding zero replaces −0 by 0."""
    numbers = [values] if isinstance(values, float) else np.ravel(np.asarray(values, dtype=np.float64)).tolist()
    return " ".join(repr(float(x) + 0.0) for x in numbers)


def _open(what: str, /, **attributes: object) -> str:
    """The tag that opens an element; attributes are texts or numbers, None for those that are left out."""
    given = {key: x for key, x in attributes.items() if x is not None}
    texts = [f" {key}={quoted(x)}" if isinstance(x, str) else f' {key}="{_numbers(x)}"' for key, x in given.items()]
    return f"<{what}{''.join(texts)}>"


def _tag(what: str, /, **attributes: object) -> str:
    """An element without children."""
    return f"{_open(what, **attributes)[:-1]}/>"


class _Writer(Findings):
    """Names, problems and losses of a tree that is written, whose numbers contain no symbols."""

    kind: str
    error: type[ModelError] | type[URDFError]
    what = "robot"
    # Beginnings of expressions in a name.
    marks: tuple[str, ...] = ()

    def __init__(self, topology: Topology, name: str) -> None:
        if not isinstance(name, str) or not name:
            raise self.error(f"the name of the {self.what} must be a non-empty string; got {name!r}")
        held: list[object] = [] if self.kind == "URDF" else [topology.gravity]  # which URDF has no place for
        held += [x for at in topology.attachments.values() for x in (at.link.inertia, at.joint, at.home)]
        held += [x for loop in topology.loops.values() for x in (loop.joint, loop.home)]
        if symbols := expressions.free_symbols(held):
            raise UnboundSymbolError.of(symbols, f"the {self.kind}")
        lost = f"{self.kind} has no place for the following; to_json keeps it"
        super().__init__(self.error, f"{self.kind} cannot express this tree", lost)
        self.topology = topology
        self.check_name(self.what, name)

    def check_name(self, what: str, name: str, kind: str = "name") -> None:
        wrong = _NOT_IN_XML.search(name)
        found = wrong[0] if wrong else next((mark for mark in self.marks if mark in name), None)
        if found is not None:
            reason = "XML does not have" if wrong else "means an expression of xacro"
            self.errors.append(f"the {kind} {name!r} of a {what} contains {found!r}, which {reason}; rename it")

    def freedoms(self, at: Attachment, screws: Array) -> Iterator[tuple[str, str, Array, Array]]:
        """Name, kind, direction and point of the freedoms of a joint, which has these screws."""
        for name, S in zip(at.joint.row_names(at.name), screws.T, strict=True):
            kind = Joint(S).kind
            if kind == "helical":
                hint = f"which {self.kind} does not have; use to_json"
                self.errors.append(f"joint {at.name!r} has the helical freedom {name!r}, {hint}")
            yield name, kind, *axis_of(S)

    def refuse_group(self, at: Attachment) -> None:
        hint = "joints of one freedom in a row have other coordinates"
        self.errors.append(f"joint {at.name!r} is {at.joint.kind}, which {self.kind} does not have; {hint}")

    def note_state(self, at: Attachment) -> None:
        joint = at.joint
        if at.locked is not None:
            self.warnings.append(f"the lock of joint {at.name!r}, which is fixed in the {self.kind}")
        if joint.nv and joint.passive != (joint.kind == "free"):
            state = "passive" if joint.passive else "a free joint that is not passive"
            self.warnings.append(f"joint {at.name!r} is {state}")


# URDF -----------------------------------------------------------------------------------------------------------------

# Distance in metres below which an axis counts as passing through the link's origin.
_AT_ORIGIN = 1e-14
# URDF requires limits for revolute and prismatic joints: the largest float means that there is none.
_MOST = sys.float_info.max
_STANDARD_GRAVITY = (0.0, 0.0, -9.81)


def write_urdf(topology: Topology, name: str = "robot") -> str:
    """The text of a tree; parameters, errors and warnings are those of :meth:`KinematicTree.to_urdf`."""
    writer = _URDF(topology, name)
    lines = [_open("robot", name=name), *writer.lines(), "</robot>\n"]
    writer.report()
    return "\n".join(lines)


def rpy_from_rotation(R: Array) -> tuple[float, float, float]:
    """Angles (roll, pitch, yaw) of a rotation matrix R = Rz(yaw) Ry(pitch) Rx(roll), (3, 3), in radians.

    Roll and pitch are those of Rz(yaw)ᵀ R, so that the product is R within rounding also at a pitch of ±90°, where only
    the difference (or sum) of yaw and roll is determined.
    """
    yaw = atan2(R[1, 0], R[0, 0])
    c, s = cos(yaw), sin(yaw)
    pitch = atan2(-R[2, 0], c * R[0, 0] + s * R[1, 0])
    roll = atan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1])
    return roll, pitch, yaw


def _origin(T: Array) -> str:
    """The element <origin> of a pose."""
    return _tag("origin", xyz=T[:3, 3], rpy=rpy_from_rotation(T[:3, :3]))


class _Step(NamedTuple):
    """One URDF joint: its type, name, frame in the carried link's frame, and axis in its own frame."""

    kind: str
    name: str
    frame: Array
    axis: Array | None = None


class _URDF(_Writer):
    kind, error, marks = "URDF", URDFError, ("${", "$(")

    def lines(self) -> Iterator[str]:
        topology = self.topology
        attachments = topology.attachments.values()
        labels = (label for at in attachments for label in at.labels)
        self.names = {*topology.attachments, *topology.carried, *topology.loops, *labels}
        self.materials: dict[tuple[float, ...], str] = {}
        if not np.array_equal(topology.gravity, _STANDARD_GRAVITY):
            read = list(_STANDARD_GRAVITY)
            self.warnings.append(f"gravity {topology.gravity.tolist()} m/s², which readers take as {read}")
        for at in attachments:
            yield from self.attached(at)
        for loop in topology.loops.values():
            yield from self.loop(loop)

    def attached(self, at: Attachment) -> Iterator[str]:
        """A link and the joints that connect it to its parent, with massless links between them."""
        self.check_name("link", at.link.name)
        yield self.link(at.link)
        if at.parent is None:
            return
        self.check_name("joint", at.name)
        self.note_state(at)
        for what, value in (("spring", at.joint.stiffness), ("armature", at.joint.armature)):
            if value != 0:
                self.warnings.append(f"the {what} of joint {at.name!r}")
        parent, place, steps = at.parent, at.home, self.steps(at)
        for step in steps:
            last = step is steps[-1] and np.array_equal(step.frame, np.eye(4))
            child = at.link.name if last else unused(f"{at.link.name}_axis", self.names)
            if not last:
                yield self.link(Link(child))
            yield _joint(step, parent, child, place @ step.frame, at.joint)
            parent, place = child, inverse(step.frame)
        if parent != at.link.name:
            weld = at.name if not steps else unused(f"{at.link.name}_offset", self.names)
            yield _joint(_Step("fixed", weld, np.eye(4)), parent, at.link.name, place, at.joint)

    def steps(self, at: Attachment) -> list[_Step]:
        """The URDF joints in a row that move like a joint, with the same coordinates."""
        joint = at.joint
        if joint.chart is not None:
            if joint.kind == "spherical":
                self.refuse_group(at)
            frame = pose(expressions.floats(joint.chart.axes), expressions.floats(joint.chart.center))
            normal = np.array([0.0, 0.0, 1.0]) if joint.kind == "planar" else None
            return [_Step("floating" if normal is None else "planar", at.name, frame, normal)]
        steps = []
        for name, kind, direction, point in self.freedoms(at, expressions.floats(joint.screws)):
            frame = np.eye(4)
            if kind != "prismatic" and np.linalg.norm(point) > _AT_ORIGIN:
                frame[:3, 3] = point
            steps.append(_Step(kind, name, frame, direction))
        return steps

    def link(self, link: Link) -> str:
        """The lines of a link."""
        lines = []
        if link.inertia is not None or link.name != self.topology.base:
            mass, com, tensor = 0.0, (0.0,) * 3, (0.0,) * 6  # left out, some readers would take 1 kg
            if link.inertia is not None:
                inertia = link.inertia.evaluated()
                mass, (com, tensor) = inertia.mass, inertia.entries
            entries = dict(zip(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), tensor, strict=True))
            parts = _tag("origin", xyz=com), _tag("mass", value=mass), _tag("inertia", **entries)
            lines = ["    <inertial>", *(f"      {part}" for part in parts), "    </inertial>"]
        for shape in link.shapes:
            lines += self.shape(shape)
            if shape.path is not None:
                self.check_name("mesh", shape.path, "path")
        if any(shape.use == "collision" and shape.color is not None for shape in link.shapes):
            self.warnings.append(f"the colours of collision shapes of link {link.name!r}")
        if not lines:
            return f"  {_tag('link', name=link.name)}"
        return "\n".join([f"  {_open('link', name=link.name)}", *lines, "  </link>"])

    def shape(self, shape: Shape) -> Iterator[str]:
        """The lines of a shape; of a capsule, which most readers do not know, those of a cylinder and two spheres."""
        if shape.kind == "capsule":
            radius, length = shape.size
            yield from self.shape(replace(shape, kind="cylinder"))
            for z in (length / 2, -length / 2):
                end = shape.pose @ as_pose((0, 0, z))
                yield from self.shape(replace(shape, kind="sphere", size=(radius,), pose=end))
            return
        sizes: dict[str, object] = dict(zip(("radius", "length"), shape.size, strict=False))
        if shape.kind == "mesh":
            sizes = {"filename": shape.path or "", "scale": None if shape.size == (1, 1, 1) else shape.size}
        elif shape.kind == "box":
            sizes = {"size": shape.size}
        yield f"    <{shape.use}>"
        yield f"      {_origin(shape.pose)}"
        yield f"      <geometry>{_tag(shape.kind, **sizes)}</geometry>"
        if shape.color is not None and shape.use == "visual":  # collision elements have no colours
            # All materials of one name have the colour of the first.
            name = self.materials.setdefault(shape.color, f"color_{len(self.materials) + 1}")
            yield f"      {_open('material', name=name)}{_tag('color', rgba=shape.color)}</material>"
        yield f"    </{shape.use}>"

    def loop(self, loop: Loop) -> Iterator[str]:
        """The lines of the joint of a loop."""
        self.check_name("loop", loop.name)
        joint, kind, screws = loop.joint, loop.joint.kind, expressions.floats(loop.joint.screws)
        if kind not in LOOP_TYPES:
            self.errors.append(f"loop {loop.name!r} has a {kind} joint, which has no type here; use to_json")
            return
        turns, placed = LOOP_TYPES[kind]
        yield f"  {_open(LOOP, name=loop.name, type=kind, link=loop.link, to=loop.to)}"
        yield f"    {_origin(expressions.floats(loop.home))}"
        if turns:
            advance = pitch(screws[:, 0]) if kind == "helical" else None
            yield f"    {_tag('axis', xyz=axis_of(screws[:, 0])[0], pitch=advance)}"
        if placed:
            point = axis_of(screws[:, 0])[1] if joint.chart is None else expressions.floats(joint.chart.center)
            yield f"    {_tag('point', xyz=point)}"
        yield f"  </{LOOP}>"


def _joint(step: _Step, parent: str, child: str, home: Array, joint: Joint) -> str:
    """The lines of a URDF joint."""
    kind = "continuous" if step.kind == "revolute" and joint.limits is None else step.kind
    parts = [_origin(expressions.floats(home)), _tag("parent", link=parent), _tag("child", link=child)]
    if step.axis is not None:
        parts.append(_tag("axis", xyz=step.axis))
    if step.kind != "fixed":
        low, high = joint.limits or (-inf, inf)
        limits = {"lower": low, "upper": high} if kind in ("revolute", "prismatic") else {}
        if limits or joint.effort is not None or joint.velocity is not None:
            bounds = limits | {"effort": joint.effort, "velocity": joint.velocity}
            largest = {what: np.clip(inf if x is None else x, -_MOST, _MOST) for what, x in bounds.items()}
            parts.append(_tag("limit", **largest))
        if joint.damping or joint.friction:
            parts.append(_tag("dynamics", damping=joint.damping, friction=joint.friction))
        if joint.mimic is not None:
            mimic = joint.mimic
            parts.append(_tag("mimic", joint=mimic.joint, multiplier=mimic.ratio, offset=mimic.offset))
    lines = [_open("joint", name=step.name, type=kind), *(f"  {part}" for part in parts), "</joint>"]
    return "\n".join(f"  {line}" for line in lines)


# MJCF -----------------------------------------------------------------------------------------------------------------

# Names of the world in MuJoCo, and of constraints that are joints of loops.
_WORLD, _CONSTRAINTS = "world", {"spherical": "connect", "fixed": "weld"}
# MuJoCo's mjMINVAL, kg and kg m²: the least mass and moments of a body that moves.
_LEAST = 1e-15
# Kinds of joints beside which a body has no other in MJCF, or which MJCF does not have.
_ALONE = "free", "planar"
# Of the joints of one body, in MuJoCo.
_MOST_FREEDOMS = 6


def home_key(joint: str) -> str:
    """Name of the custom number that says that q of a free joint is that from the pose of its body in the file."""
    return f"screwdyn_q_from_pose_of_body/{joint}"


def write_mjcf(topology: Topology, name: str = "robot") -> str:
    """The text of a tree; :meth:`KinematicTree.to_mjcf` describes it."""
    writer = _MJCF(topology, name)
    lines = [_open("mujoco", model=name), *writer.lines(), "</mujoco>\n"]
    writer.report()
    return "\n".join(lines)


class _MJCF(_Writer):
    kind, error, what = "MJCF", ModelError, "model"

    def lines(self) -> Iterator[str]:
        self.couplings: list[str] = []
        self.numerics: list[str] = []
        self.children: dict[str, list[Attachment]] = {name: [] for name in self.topology.attachments}
        for at in self.topology.attachments.values():
            if at.parent is not None:
                self.children[at.parent].append(at)
        self.sites: dict[str, list[str]] = {name: [] for name in self.topology.attachments}
        self.names: set[str] = set()
        loops = [line for loop in self.topology.loops.values() for line in self.loop(loop)]
        yield '  <compiler angle="radian" inertiafromgeom="false" autolimits="true"/>'
        yield f"  {_tag('option', gravity=self.topology.gravity)}"
        yield from self.bodies()
        for section, lines in (("equality", [*loops, *self.couplings]), ("custom", self.numerics)):
            if lines:
                yield from (f"  <{section}>", *lines, f"  </{section}>")

    def bodies(self) -> Iterator[str]:
        """The lines of the base, which is MuJoCo's world, and of all bodies in it."""
        base = self.topology.attachments[self.topology.base].link
        yield "  <worldbody>"
        yield from self.content(base)
        # A stack, because a chain may be longer than Python's.
        todo: list[Attachment | str] = list(reversed(self.children[base.name]))
        while todo:
            item = todo.pop()
            if isinstance(item, str):
                yield item
                continue
            row = self.row(item)
            yield from self.body(row)
            todo += ["    </body>", *reversed(self.children[row[-1].link.name])]
        yield "  </worldbody>"

    def row(self, first: Attachment) -> list[Attachment]:
        """An attachment and those beyond it whose joints become those of one body: the links between are massless."""
        row = [first]
        while self.is_only_between_joints(row[-1]):
            (at,) = self.children[row[-1].link.name]
            freedoms = sum(part.joint.screws.shape[1] for part in (*row, at))
            if at.joint.kind in _ALONE or freedoms > _MOST_FREEDOMS:
                break
            # MuJoCo has a ball joint after all hinges of its body, and its quaternion in the body's axes.
            turned = not np.array_equal(expressions.floats(at.home)[:3, :3], np.eye(3))
            turns = expressions.floats(at.joint.screws)[:3].any()
            if (turned or turns) and any(part.joint.kind == "spherical" for part in row):
                break
            row.append(at)
        return row if len(row) == 1 or self.is_massive(row[-1]) else [first]

    def is_only_between_joints(self, at: Attachment) -> bool:
        """Whether a link has no other use than to connect its joint to that of the only link on it."""
        link, children = at.link, self.children[at.link.name]
        empty = link.inertia is None and not link.shapes and not self.sites[link.name]
        moves = at.joint.screws.size and at.joint.kind not in _ALONE
        return bool(empty and moves and len(children) == 1 and children[0].joint.screws.size)

    def body(self, row: Sequence[Attachment]) -> Iterator[str]:
        """The lines of a body, on which are the joints of a row of attachments, up to the bodies in it."""
        at = row[-1]
        self.check_name("link", at.link.name)
        if at.link.name == _WORLD:
            self.errors.append(f"link {_WORLD!r} has the name of MuJoCo's world; rename it")
        # From each link to the last one, whose frame MuJoCo has for all joints.
        ahead = [np.eye(4)]
        for part in reversed(row):
            ahead.append(expressions.floats(part.home) @ ahead[-1])
        home, *places = reversed(ahead)
        yield f"    {_open('body', name=at.link.name, **_placed(home))}"
        if at.joint.screws.size and not self.is_massive(at):
            hint = "MuJoCo requires a mass and three moments of what moves"
            self.errors.append(f"link {at.link.name!r} and those fixed to it have no inertia; {hint}")
        for part, place in zip(row, places, strict=True):
            self.note_state(part)
            if part.joint.screws.size:
                self.check_name("joint", part.name)
                yield from self.joint(part, inverse(place))
            if part is not at:
                name, read = part.link.name, f"{at.link.name}_{part.joint.row_names(part.name)[-1]}"
                if name != read:
                    self.warnings.append(f"the name of the massless link {name!r}, which is read as {read!r}")
                if not np.array_equal(place, np.eye(4)):
                    moved = f"the frame of the massless link {name!r}"
                    self.warnings.append(f"{moved}, which becomes that of {at.link.name!r}")
        if at.link.inertia is not None:
            inertia = at.link.inertia.evaluated()
            wrong = failing_condition(inertia.mass, inertia.tensor)
            if wrong is not None:
                refused = f"link {at.link.name!r}: no rigid body has its inertia, which MuJoCo refuses"
                self.errors.append(f"{refused}: {wrong}")
            moments, axes = np.maximum(inertia.principal_moments, 0.0), inertia.principal_axes.T[:2]
            yield f"      {_tag('inertial', mass=inertia.mass, pos=inertia.com, xyaxes=axes, diaginertia=moments)}"
        yield from self.content(at.link)

    def content(self, link: Link) -> Iterator[str]:
        """The shapes of a link, and the sites of its loops."""
        yield from self.sites[link.name]
        for shape in link.shapes:
            if shape.kind == "mesh":
                self.warnings.append(f"a mesh of link {link.name!r}")
                continue
            size = np.array(shape.size)
            half = size / 2 if shape.kind == "box" else size / (1, 2)[: len(size)]  # a radius, and a half length
            # Visual ones touch nothing; MuJoCo's viewer hides group 3 at first.
            use = {"contype": "0", "conaffinity": "0"} if shape.use == "visual" else {"group": "3"}
            yield f"      {_tag('geom', type=shape.kind, size=half, **_placed(shape.pose), rgba=shape.color, **use)}"

    def joint(self, at: Attachment, place: Array) -> Iterator[str]:
        """The lines of a joint, whose own frame has a pose in that of its body."""
        joint, name = at.joint, at.name
        if joint.mimic is not None:
            polynomial = [joint.mimic.offset, joint.mimic.ratio, 0, 0, 0]
            self.couplings.append(f"    {_tag('joint', joint1=name, joint2=joint.mimic.joint, polycoef=polynomial)}")
        if joint.effort is not None or joint.velocity is not None:
            self.warnings.append(f"the limits of effort and velocity of joint {name!r}")
        friction = {"damping": joint.damping, "frictionloss": joint.friction, "armature": joint.armature}
        options: dict[str, object] = {what: x for what, x in friction.items() if x != 0}
        if joint.chart is not None:
            yield from self.group(at, place, options)
            return
        if joint.stiffness != 0:
            options |= {"stiffness": joint.stiffness, "springref": joint.rest}
        if joint.limits is not None and all(map(isfinite, joint.limits)):
            options["range"] = joint.limits
        elif joint.limits is not None:
            self.warnings.append(f"the limit on one side of joint {name!r}")
        screws = Ad(place) @ expressions.floats(joint.screws)
        for freedom, kind, direction, point in self.freedoms(at, screws):
            if kind == "revolute":
                yield f"      {_tag('joint', name=freedom, type='hinge', axis=direction, pos=point, **options)}"
            elif kind == "prismatic":
                yield f"      {_tag('joint', name=freedom, type='slide', axis=direction, **options)}"

    def group(self, at: Attachment, place: Array, options: dict[str, object]) -> Iterator[str]:
        """A joint whose positions are no angles and lengths."""
        joint, name = at.joint, at.name
        if joint.kind == "planar":
            self.refuse_group(at)
        elif joint.kind == "free" and at.parent != self.topology.base:
            self.errors.append(f"free joint {name!r} is not on the base, as in MJCF")
        elif joint.kind == "free":
            yield f"      {_tag('joint', name=name, type='free', **options)}"
            if not np.array_equal(expressions.floats(at.home), np.eye(4)):
                self.numerics.append(f"    {_tag('numeric', name=home_key(name), data='1')}")
        elif joint.chart is not None:
            center = expressions.floats(joint.chart.center) + place[:3, 3]
            yield f"      {_tag('joint', name=name, type='ball', pos=center, **options)}"

    def is_massive(self, at: Attachment) -> bool:
        """Whether a link, or one that is welded to it, has a mass and moments."""
        todo = [at]
        while todo:
            part = todo.pop()
            inertia = part.link.inertia
            if inertia is not None and min(float(inertia.mass), *inertia.evaluated().principal_moments) > _LEAST:
                return True
            todo += [child for child in self.children[part.link.name] if not child.joint.screws.size]
        return False

    def loop(self, loop: Loop) -> Iterator[str]:
        """The constraint of a loop between two sites, which are noted for their links."""
        self.check_name("loop", loop.name)
        kind = _CONSTRAINTS.get(loop.joint.kind)
        if kind is None:
            known = " and ".join(_CONSTRAINTS)
            self.errors.append(f"loop {loop.name!r} has a {loop.joint.kind} joint; MJCF has {known} ones only")
            return
        here, home = np.eye(4), expressions.floats(loop.home)
        if loop.joint.chart is not None:
            here[:3, 3] = expressions.floats(loop.joint.chart.center)
        ends = []
        for link, frame in ((loop.link, here), (loop.to, home @ here)):
            ends.append(unused(f"{loop.name}_{link}", self.names))
            self.sites[link].append(f"      {_tag('site', name=ends[-1], **_placed(frame))}")
        yield f"    {_tag(kind, name=loop.name, site1=ends[0], site2=ends[1])}"


def _placed(T: Array) -> dict[str, Array]:
    """The attributes of a pose."""
    return {"pos": T[:3, 3], "xyaxes": T[:3, :2].T}
