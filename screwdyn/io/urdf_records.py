"""URDF reader, second stage: from XML elements to checked links and joints."""

import sys
from dataclasses import dataclass, field, replace

import numpy as np

from screwdyn.core.types import Array
from screwdyn.io.document import shown, similar
from screwdyn.io.meshes import Meshes
from screwdyn.io.urdf_loops import LOOP, loops_of
from screwdyn.io.urdf_mimic import mimic_of, misled
from screwdyn.io.urdf_origin import axis_direction, origin_of
from screwdyn.io.urdf_shapes import ShapeReader
from screwdyn.io.urdf_xml import Element, Report
from screwdyn.mechanism.inertia import failing_condition
from screwdyn.mechanism.joint import Mimic
from screwdyn.mechanism.link import Loop
from screwdyn.mechanism.shape import Shape

__all__ = ["JointRecord", "LinkRecord", "MassRecord", "Model", "model_of"]

_MOVABLE = ("revolute", "continuous", "prismatic", "floating", "planar")
_USE_ONE = f"use one of {', '.join(_MOVABLE)}, fixed"


@dataclass(frozen=True, slots=True, eq=False)
class MassRecord:
    """Mass in kg, centre of mass in m and inertia about it in kg m², both in the link frame."""

    mass: float
    com: Array
    tensor: Array
    physical: bool


@dataclass(frozen=True, slots=True, eq=False)
class LinkRecord:
    """A link; a massless frame has no mass record."""

    element: Element
    name: str
    mass: MassRecord | None
    shapes: tuple[Shape, ...]


@dataclass(frozen=True, slots=True, eq=False)
class JointRecord:
    """A joint; `home` is the child's frame in the parent's, `axis` is in the child's frame (empty if floating)."""

    element: Element
    name: str
    kind: str
    parent: str
    child: str
    home: Array
    axis: tuple[float, ...] = ()
    damping: float = 0.0
    friction: float = 0.0
    limits: tuple[float, float] | None = None
    effort: float | None = None
    velocity: float | None = None
    mimic: Mimic | None = None


@dataclass(slots=True, eq=False)
class Model:
    """A checked tree: its root, each link's outgoing joints in document order, and the joints that close loops."""

    links: dict[str, LinkRecord]
    joints: dict[str, JointRecord]
    root: str = ""
    outgoing: dict[str, list[JointRecord]] = field(default_factory=dict)
    loops: dict[str, Loop] = field(default_factory=dict)


def model_of(root: Element, report: Report, meshes: Meshes) -> Model:
    """Read all links and joints, then check that they form one tree; problems are added to the report."""
    reader = ShapeReader(root, meshes, report)
    links: dict[str, LinkRecord] = {}
    for element in root.named("link"):
        mass, shapes = _mass(element, report), reader.shapes(element)
        name = _unique_name(element, links, report)
        if name is not None:
            links[name] = LinkRecord(element, name, mass, shapes)
    reader.report_missing()
    joints: dict[str, JointRecord] = {}
    ends: list[tuple[Element, str | None, str | None]] = []
    known = dict.fromkeys(name for element in root.named("joint") if (name := element.attributes.get("name")))
    for element in root.named("joint"):
        joint_name = _unique_name(element, joints, report)
        parent, child = (_end(element, tag, links, report) for tag in ("parent", "child"))
        ends.append((element, parent, child))
        joint = _joint(element, joint_name or "", parent or "", child or "", report)
        if joint_name is not None and joint is not None:
            joints[joint_name] = joint
    for name in misled(joints, known, report):
        joints[name] = replace(joints[name], mimic=None)
    model = Model(links, joints)
    model.root = _root(root, links, ends, report)
    model.loops = loops_of(root, links, known, report)
    for joint in joints.values():
        model.outgoing.setdefault(joint.parent, []).append(joint)
    return model


def _unique_name(element: Element, taken: dict[str, LinkRecord] | dict[str, JointRecord], report: Report) -> str | None:
    name = report.attribute(element, "name")
    if name is None or name not in taken:
        return name
    first = taken[name].element.line
    report.add(element, f"a second {element.tag} named {shown(name)!r}", f"the first is on line {first}; rename one")
    return None


def _mass(link: Element, report: Report) -> MassRecord | None:
    inertial = report.only(link, "inertial")
    if inertial is None:
        return None
    home = origin_of(inertial, report)
    element = report.only(inertial, "mass", 'add <mass value="…"/>')
    mass = None if element is None else report.number(element, "value")
    if element is not None and mass is not None and mass < 0:
        report.add(element, f"the mass is negative ({mass:g} kg)", "give a mass >= 0")
        mass = None
    matrix = report.only(inertial, "inertia", "add <inertia ixx=… ixy=… ixz=… iyy=… iyz=… izz=…/>")
    if matrix is None:
        return None
    entries = [report.number(matrix, name) for name in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")]
    if mass is None or home is None or None in entries:
        return None
    xx, xy, xz, yy, yz, zz = (x for x in entries if x is not None)
    R = home[:3, :3]
    tensor = R @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R.T
    tensor = (tensor + tensor.T) / 2
    if mass == 0 and not tensor.any():
        return None
    failing = failing_condition(mass, tensor)
    if failing is not None:
        hint = "no rigid body has these numbers; they are used as they are"
        report.add(inertial, failing, hint, "warning")
    return MassRecord(mass, home[:3, 3], tensor, failing is None)


def _end(joint: Element, tag: str, links: dict[str, LinkRecord], report: Report) -> str | None:
    """Name of the parent or child link of a joint; ``None`` if the file has no such link."""
    element = report.only(joint, tag, f'add <{tag} link="…"/>')
    name = None if element is None else report.attribute(element, "link")
    if element is None or name is None:
        return None
    if name not in links:
        report.add(element, f"unknown {tag} link {shown(name)!r}", similar(name, links, len(report.problems)))
        return None
    return name


def _joint(element: Element, name: str, parent: str, child: str, report: Report) -> JointRecord | None:
    home = origin_of(element, report)
    kind = report.attribute(element, "type")
    if kind is not None and kind != "fixed" and kind not in _MOVABLE:
        report.add(element, f"unknown joint type {shown(kind)!r}", _USE_ONE)
    if kind == "fixed" and home is not None:
        return JointRecord(element, name, kind, parent, child, home)
    if kind not in _MOVABLE:
        return None
    axis = () if kind == "floating" else axis_direction(element, report)
    damping, friction = _dynamics(element, report)
    limit = report.only(element, "limit")
    limits = _limits(element, limit, report) if kind in ("revolute", "prismatic") else None
    effort, velocity = (None if limit is None else _magnitude(limit, name, report) for name in ("effort", "velocity"))
    mimic = mimic_of(element, report)
    if home is None or axis is None or damping is None or friction is None:
        return None
    return JointRecord(
        element, name, kind, parent, child, home, axis, damping, friction, limits, effort, velocity, mimic
    )


def _dynamics(joint: Element, report: Report) -> tuple[float | None, float | None]:
    element = report.only(joint, "dynamics")
    if element is None:
        return 0.0, 0.0
    values = [report.number(element, name, default=0.0) for name in ("damping", "friction")]
    for name, value in zip(("damping", "friction"), values, strict=True):
        if value is not None and value < 0:
            report.add(element, f"the {name} is negative ({value:g})", "give a value >= 0")
    return values[0], values[1]


def _limits(joint: Element, element: Element | None, report: Report) -> tuple[float, float] | None:
    if element is None:
        kind = joint.attributes["type"]
        report.add(joint, f"a {kind} joint without <limit>", "it is read as unlimited", "warning")
        return None
    if not {"lower", "upper"} & element.attributes.keys():
        report.add(element, "neither lower nor upper is given", "the joint is read as unlimited", "warning")
        return None
    lower, upper = (report.number(element, name, default=0.0, largest=np.inf) for name in ("lower", "upper"))
    if lower is None or upper is None:
        return None
    if lower > upper:
        message = f"the lower limit {lower:g} is above the upper limit {upper:g}"
        report.add(element, message, "the joint is read as unlimited", "warning")
        return None
    # The largest float, which the writer gives where URDF requires a limit and there is none.
    low, high = (x if abs(x) < sys.float_info.max else np.copysign(np.inf, x) for x in (lower, upper))
    return None if (low, high) == (-np.inf, np.inf) else (low, high)


def _magnitude(limit: Element, name: str, report: Report) -> float | None:
    """The limit of effort or velocity; ``None`` if it is not given or not valid."""
    value = report.number(limit, name, default=np.inf, severity="warning", largest=np.inf)
    if value is not None and value < 0:
        report.add(limit, f"the {name} is negative ({value:g})", "it is read as unlimited", "warning")
        return None
    return None if value is None or value >= sys.float_info.max else value


def _root(
    robot: Element,
    links: dict[str, LinkRecord],
    ends: list[tuple[Element, str | None, str | None]],
    report: Report,
) -> str:
    """Name of the only link without a parent; empty, with a problem, if there is no such link."""
    if not links:
        report.add(robot, "there is no <link>", "a robot needs at least one")
        return ""
    claimed: dict[str, Element] = {}
    above: dict[str, str] = {}  # from a link to one of its ancestors
    unknown_children = 0
    for element, parent, child in ends:
        if child is None:
            unknown_children += 1
        elif child in claimed:
            first = claimed[child]
            hint = f"the first is {first} on line {first.line}; remove one"
            report.add(element, f"a second parent of link {shown(child)!r}", hint)
        elif parent is not None and _top(parent, above) == child:
            message = f"closes a cycle: link {shown(child)!r} would be its own ancestor"
            report.add(element, message, f"a tree has no cycles; write one joint of the cycle as <{LOOP}>")
        else:
            claimed[child] = element
            if parent is not None:
                above[child] = parent
    roots = [link for name, link in links.items() if name not in claimed]
    # The child of a joint with an unknown child is probably one of these links; that joint is reported already.
    if len(roots) - 1 > unknown_children:
        listed = ", ".join(f"{shown(link.name)!r} (line {link.element.line})" for link in roots[:8])
        message = f"there are {len(roots)} links without a parent: {listed}{', …' if len(roots) > 8 else ''}"
        report.add(roots[1].element, message, "connect them by joints so that one root remains")
    return roots[0].name if roots else ""


def _top(link: str, above: dict[str, str]) -> str:
    """The topmost known ancestor of a link, with path compression."""
    way = []
    while link in above:
        way.append(link)
        link = above[link]
    for passed in way:
        above[passed] = link
    return link
