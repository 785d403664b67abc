"""MJCF writer."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from math import isfinite

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.errors import ModelError, ScrewdynWarning, UnboundSymbolError
from screwdyn.core.types import Array
from screwdyn.io.document import Names
from screwdyn.io.urdf_origin import numbers_text
from screwdyn.io.xml_text import NOT_IN_XML, quoted
from screwdyn.mechanism.inertia import Inertia, failing_condition
from screwdyn.mechanism.joint import Joint
from screwdyn.mechanism.link import Attachment, Link, Loop
from screwdyn.mechanism.shape import Shape
from screwdyn.mechanism.topology import Topology
from screwdyn.screws.screw import Ad, inverse
from screwdyn.screws.screw import axis as axis_of

__all__ = ["home_key", "write_mjcf"]

# Names of the world in MuJoCo, and of constraints that are joints of loops.
_WORLD, _CONSTRAINTS = "world", {"spherical": "connect", "fixed": "weld"}
# MuJoCo's mjMINVAL, kg and kg m²: the least mass and moments of a body that moves.
_LEAST = 1e-15
# Kinds of joints beside which a body has no other in MJCF, or which MJCF does not have.
_ALONE = "free", "planar"
# Of the joints of one body, in MuJoCo.
_MOST_FREEDOMS = 6
_HIDDEN = 3


def home_key(joint: str) -> str:
    """Name of the custom number that says that q of a free joint is that from the pose of its body in the file."""
    return f"screwdyn_q_from_pose_of_body/{joint}"


def write_mjcf(topology: Topology, name: str = "robot") -> str:
    """The text of a tree; :meth:`KinematicTree.to_mjcf` describes it."""
    if not isinstance(name, str) or not name:
        raise ModelError(f"the name of the model must be a non-empty string; got {name!r}")
    loops = list(topology.loops.values())
    held = [x for at in topology.attachments.values() for x in (at.link.inertia, at.joint, at.home)]
    held += [x for loop in loops for x in (loop.joint, loop.home)]
    if symbols := expressions.free_symbols(held):
        raise UnboundSymbolError.of(symbols, "the MJCF")
    writer = _Writer(topology)
    constraints = [line for loop in loops for line in writer.loop(loop)]
    bodies = writer.bodies()
    constraints += writer.couplings
    writer.check_name("model", name)
    if writer.problems:
        raise ModelError("\n  ".join(["MJCF cannot express this tree", *writer.problems]), writer.problems)
    if writer.lost:
        message = "MJCF has no place for the following; to_json keeps it"
        warnings.warn("\n  ".join([message, *writer.lost]), ScrewdynWarning, stacklevel=3)  # of to_mjcf's caller
    lines = [
        f"<mujoco model={quoted(name)}>",
        '  <compiler angle="radian" inertiafromgeom="false" autolimits="true"/>',
        f'  <option gravity="{numbers_text(topology.gravity)}"/>',
        *bodies,
        *_section("equality", constraints),
        *_section("custom", writer.numerics),
        "</mujoco>",
    ]
    return "\n".join(lines) + "\n"


class _Writer:
    """The lines of a tree, the problems, and what is lost."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.problems: list[str] = []
        self.lost: list[str] = []
        self.couplings: list[str] = []
        self.numerics: list[str] = []
        self.children: dict[str, list[Attachment]] = {name: [] for name in topology.attachments}
        for at in topology.attachments.values():
            if at.parent is not None:
                self.children[at.parent].append(at)
        self.sites: dict[str, list[str]] = {name: [] for name in topology.attachments}
        self.names = Names()

    def bodies(self) -> list[str]:
        """The lines of the base, which is MuJoCo's world, and of all bodies in it."""
        base = self.topology.attachments[self.topology.base].link
        lines = ["  <worldbody>", *self.content(base)]
        # A stack, because a chain may be longer than Python's.
        todo: list[Attachment | str] = list(reversed(self.children[base.name]))
        while todo:
            item = todo.pop()
            if isinstance(item, str):
                lines.append(item)
                continue
            row = self.row(item)
            lines += self.body(row)
            todo += ["    </body>", *reversed(self.children[row[-1].link.name])]
        return [*lines, "  </worldbody>"]

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
            self.problems.append(f"link {_WORLD!r} has the name of MuJoCo's world; rename it")
        # From each link to the last one, whose frame MuJoCo has for all joints.
        ahead = [np.eye(4)]
        for part in reversed(row):
            ahead.append(expressions.floats(part.home) @ ahead[-1])
        home, *places = reversed(ahead)
        yield f"    <body name={quoted(at.link.name)} {_placed(home)}>"
        if at.locked is not None:
            self.lost.append(f"the lock of joint {at.name!r}, which is fixed in the MJCF")
        if at.joint.screws.size:
            self.check_massive(at)
        for part, place in zip(row, places, strict=True):
            if part.joint.screws.size:
                self.check_name("joint", part.name)
                yield from self.joint(part, inverse(place))
            if part is not at:
                self.note_between(part, at.link.name, not np.array_equal(place, np.eye(4)))
        inertia = None if at.link.inertia is None else at.link.inertia.evaluated()
        if inertia is not None:
            yield self.inertial(at.link.name, inertia)
        yield from self.content(at.link)

    def note_between(self, at: Attachment, body: str, moved: bool) -> None:
        """Note what is lost of a massless link between the joints of a body."""
        name, read = at.link.name, f"{body}_{at.joint.row_names(at.name)[-1]}"
        if name != read:
            self.lost.append(f"the name of the massless link {name!r}, which is read as {read!r}")
        if moved:
            self.lost.append(f"the frame of the massless link {name!r}, which becomes that of {body!r}")

    def content(self, link: Link) -> Iterator[str]:
        """The shapes of a link, and the sites of its loops."""
        yield from self.sites[link.name]
        for shape in link.shapes:
            if shape.kind == "mesh":
                self.lost.append(f"a mesh of link {link.name!r}")
            else:
                yield _geom(shape)

    def joint(self, at: Attachment, place: Array) -> Iterator[str]:
        """The lines of a joint, whose own frame has a pose in that of its body."""
        joint, name = at.joint, at.name
        if joint.mimic is not None:
            numbers = numbers_text([joint.mimic.offset, joint.mimic.ratio, 0, 0, 0])
            ends = f"joint1={quoted(name)} joint2={quoted(joint.mimic.joint)}"
            self.couplings.append(f'    <joint {ends} polycoef="{numbers}"/>')
        if joint.passive != (joint.kind == "free"):
            self.lost.append(f"joint {name!r} is {'passive' if joint.passive else 'a free joint that is not passive'}")
        if joint.effort is not None or joint.velocity is not None:
            self.lost.append(f"the limits of effort and velocity of joint {name!r}")
        friction = {"damping": joint.damping, "frictionloss": joint.friction, "armature": joint.armature}
        options = "".join(f' {what}="{numbers_text(x)}"' for what, x in friction.items() if x != 0)
        if joint.chart is not None:
            yield from self.group(at, place, options)
            return
        if joint.stiffness != 0:
            options += f' stiffness="{numbers_text(joint.stiffness)}" springref="{numbers_text(joint.rest)}"'
        if joint.limits is not None and all(map(isfinite, joint.limits)):
            options += f' range="{numbers_text(joint.limits)}"'
        elif joint.limits is not None:
            self.lost.append(f"the limit on one side of joint {name!r}")
        screws = Ad(place) @ expressions.floats(joint.screws)
        for freedom, S in zip(joint.row_names(name), screws.T, strict=True):
            kind, (direction, point) = Joint(S).kind, axis_of(S)
            if kind == "helical":
                self.problems.append(f"joint {name!r} has the helical freedom {freedom!r}, which MJCF does not have")
                continue
            at_point = f' pos="{numbers_text(point)}"' if kind == "revolute" else ""
            sort = "hinge" if kind == "revolute" else "slide"
            axis = numbers_text(direction)
            yield f'      <joint name={quoted(freedom)} type="{sort}" axis="{axis}"{at_point}{options}/>'

    def group(self, at: Attachment, place: Array, options: str) -> Iterator[str]:
        """A joint whose positions are no angles and lengths."""
        joint, name = at.joint, at.name
        if joint.kind == "planar":
            hint = "joints in a row have other coordinates"
            self.problems.append(f"joint {name!r} is planar, which MJCF does not have; {hint}")
        elif joint.kind == "free" and at.parent != self.topology.base:
            self.problems.append(f"free joint {name!r} is not on the base, as in MJCF")
        elif joint.kind == "free":
            yield f'      <joint name={quoted(name)} type="free"{options}/>'
            if not np.array_equal(expressions.floats(at.home), np.eye(4)):
                self.numerics.append(f'    <numeric name={quoted(home_key(name))} data="1"/>')
        elif joint.chart is not None:
            center = numbers_text(expressions.floats(joint.chart.center) + place[:3, 3])
            yield f'      <joint name={quoted(name)} type="ball" pos="{center}"{options}/>'

    def inertial(self, link: str, inertia: Inertia) -> str:
        wrong = failing_condition(inertia.mass, inertia.tensor)
        if wrong is not None:
            self.problems.append(f"link {link!r}: no rigid body has its inertia, which MuJoCo refuses: {wrong}")
        moments, axes = np.maximum(inertia.principal_moments, 0.0), numbers_text(inertia.principal_axes.T[:2])
        about = f'pos="{numbers_text(inertia.com)}" xyaxes="{axes}" diaginertia="{numbers_text(moments)}"'
        return f'      <inertial mass="{inertia.mass!r}" {about}/>'

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

    def check_massive(self, at: Attachment) -> None:
        """MuJoCo requires a mass and moments of a body that moves, or of one that is welded to it."""
        if not self.is_massive(at):
            hint = "MuJoCo requires a mass and three moments of what moves"
            self.problems.append(f"link {at.link.name!r} and those fixed to it have no inertia; {hint}")

    def loop(self, loop: Loop) -> Iterator[str]:
        """The constraint of a loop between two sites, which are noted for their links."""
        self.check_name("loop", loop.name)
        kind = _CONSTRAINTS.get(loop.joint.kind)
        if kind is None:
            known = " and ".join(_CONSTRAINTS)
            self.problems.append(f"loop {loop.name!r} has a {loop.joint.kind} joint; MJCF has {known} ones only")
            return
        here, home = np.eye(4), expressions.floats(loop.home)
        if loop.joint.chart is not None:
            here[:3, 3] = expressions.floats(loop.joint.chart.center)
        ends = []
        for link, frame in ((loop.link, here), (loop.to, home @ here)):
            ends.append(self.names.unused(f"{loop.name}_{link}"))
            self.sites[link].append(f"      <site name={quoted(ends[-1])} {_placed(frame)}/>")
        yield f"    <{kind} name={quoted(loop.name)} site1={quoted(ends[0])} site2={quoted(ends[1])}/>"

    def check_name(self, what: str, name: str) -> None:
        wrong = NOT_IN_XML.search(name)
        if wrong is not None:
            self.problems.append(f"the name {name!r} of a {what} contains {wrong[0]!r}, which XML does not have")


def _section(name: str, lines: Sequence[str]) -> list[str]:
    """The element of the model with some lines; nothing if there are none."""
    return [f"  <{name}>", *lines, f"  </{name}>"] if lines else []


def _placed(T: Array) -> str:
    """The attributes of a pose."""
    return f'pos="{numbers_text(T[:3, 3])}" xyaxes="{numbers_text(T[:3, :2].T)}"'


def _geom(shape: Shape) -> str:
    """A geom; visual ones touch nothing."""
    size = np.array(shape.size)
    half = size / 2 if shape.kind == "box" else size / (1, 2)[: len(size)]  # a radius, and a half length
    color = "" if shape.color is None else f' rgba="{numbers_text(shape.color)}"'
    use = 'contype="0" conaffinity="0"' if shape.use == "visual" else f'group="{_HIDDEN}"'
    return f'      <geom type="{shape.kind}" size="{numbers_text(half)}" {_placed(shape.pose)}{color} {use}/>'
