"""Reader and writer of URDF.

All problems of a file are reported together, with their lines. A wrong structure is an error. Doubtful numbers that can
be used in computations cause a warning, or an error if ``strict``.

Joints that close loops, which URDF does not have, are elements ``<screwdyn_loop>`` that other readers ignore.
docs/files.md describes them.
"""

from __future__ import annotations

import glob
import io
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from math import atan2, cos, inf, sin
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

import numpy as np

from screwdyn.core import Array, ScrewdynError, ScrewdynWarning, ShapeError, URDFError, expressions
from screwdyn.io.document import Source, inertia_of, listed, read_source, shown, some, unused
from screwdyn.io.xml_text import Element, Problem, Severity, Unexpanded, Writer, nested, opening, parse, tag, utf8_hint
from screwdyn.mechanism import Attachment, Inertia, Joint, Link, Loop, Mimic, Topology, with_ties
from screwdyn.mechanism import joint as joints
from screwdyn.mechanism.shape import Kind, Shape
from screwdyn.screws.screw import as_pose, inverse, pitch, pose
from screwdyn.screws.screw import axis as axis_of

T = TypeVar("T")
Xacro = bool | Mapping[str, Any] | None
Folders = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

_SINGLE = ("revolute", "continuous", "prismatic")
_MOVABLE = (*_SINGLE, "floating", "planar")
_LOOP = "screwdyn_loop"
# Whether the joint of a loop has an axis, and whether its place matters.
_LOOP_TYPES = {
    "fixed": (False, False),
    "revolute": (True, True),
    "prismatic": (True, False),
    "helical": (True, True),
    "cylindrical": (True, True),
    "spherical": (False, True),
    "planar": (True, False),
}
_LEFT_OUT = "the shape is left out"
# Attributes that are the sizes of a shape, with the number of numbers in each.
_SIZES: dict[Kind, dict[str, int]] = {
    "box": {"size": 3},
    "cylinder": {"radius": 1, "length": 1},
    "capsule": {"radius": 1, "length": 1},
    "sphere": {"radius": 1},
    "mesh": {"scale": 3},
}
_ENTRIES = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
# It means that there is no limit: URDF requires limits for revolute and prismatic joints.
_MOST = sys.float_info.max
_PACKAGES = ("package://", "model://")
# Where a package is below a folder above the file, which may be a workspace.
_LAYOUTS = "src/*/{}", "src/*/*/{}", "src/{}", "install/{0}/share/{0}", "install/share/{}"
_PLACES = "package_dirs=, ROS_PACKAGE_PATH, AMENT_PREFIX_PATH, and the folders above the file"


def read_urdf(
    path_or_text: str | os.PathLike[str],
    floating_base: bool = False,
    *,
    strict: bool = False,
    package_dirs: Folders = (),
    xacro: Xacro = None,
) -> Topology:
    """Read a URDF robot; parameters, errors and warnings are those of :meth:`KinematicTree.from_urdf`."""
    if not isinstance(floating_base, bool):
        raise ScrewdynError(f"floating_base must be True or False; got {floating_base!r}")
    found = read_robot(path_or_text, package_dirs, xacro, _Reader, "URDF")
    return accepted(*found, strict=strict).topology(floating_base)


def accepted(title: str, problems: list[Problem], model: T | None, *, strict: bool) -> T:
    """What was read, with a warning of problems; URDFError if there was an error, or if ``strict`` for any problem."""
    if model is None or (strict and problems):
        raise URDFError(listed(title, problems), problems)
    if problems:
        warnings.warn(listed(title, problems), ScrewdynWarning, stacklevel=4)  # of the caller of the method of a tree
    return model


def check_urdf(
    path_or_text: str | os.PathLike[str], package_dirs: Folders = (), *, xacro: Xacro = None
) -> list[Problem]:
    """All problems of a URDF file, errors and warnings, in the order of their lines.

    Parameters
    ----------
    path_or_text, package_dirs, xacro
        As for :func:`read_urdf`.

    Raises
    ------
    URDFError
        Only if the file cannot be opened.
    """
    return read_robot(path_or_text, package_dirs, xacro, _Reader, "URDF")[1]


def read_robot(
    path_or_text: str | os.PathLike[str],
    package_dirs: Folders,
    xacro: Xacro,
    make: Callable[[Element, Meshes], T],
    kind: str,
) -> tuple[str, list[Problem], T | None]:
    """Title for messages, all problems, and what is made of the root of a file if there was no error."""
    if not (xacro is None or isinstance(xacro, bool | Mapping)):
        raise ScrewdynError(
            f"xacro must be True or False, None for files named .xacro, or arguments of xacro by name; got {xacro!r}"
        )
    source = read_source(path_or_text, kind, "<", URDFError)
    problems: list[Problem] = []
    meshes, expansion = Meshes(source.path and source.path.parent, package_dirs), False
    given = {key: str(x) for key, x in xacro.items()} if isinstance(xacro, Mapping) else {}
    expand = source.path is not None and source.path.suffix.lower() == ".xacro" if xacro is None else xacro is not False
    try:
        root = parse(source.document, problems, source.encoding, source.skipped_lines)
    except Unexpanded as found:
        root = _expanded(source, found, meshes, given) if expand else None
        expansion = root is not None
        if not expand:
            hint = "if you trust it, expand it by xacro=True or --xacro, which runs the Python expressions in it"
            found.element.wrong(f"this is xacro, not {kind}{found.where}", hint)
    model = None if root is None or _failed(problems) else make(root, meshes)
    if expansion and problems:
        message = f"this is xacro; lines are those of the {kind} that it expands to"
        problems.insert(0, Problem(1, "<robot>", message, "see them by: xacro FILE", "warning"))
    problems.sort(key=lambda problem: problem.line)
    return source.title, problems, None if _failed(problems) else model


def _failed(problems: list[Problem]) -> bool:
    return any(problem.severity == "error" for problem in problems)


class _Arguments(dict[str, str]):
    """Values of xacro's arguments, which note the names that a document declares or uses, in its order."""

    def __init__(self, given: dict[str, str]) -> None:
        super().__init__(given)
        self.asked: dict[object, None] = {}

    def __contains__(self, name: object) -> bool:
        self.asked[name] = None
        return super().__contains__(name)

    def __getitem__(self, name: str) -> str:
        self.asked[name] = None
        return super().__getitem__(name)


def _expanded(source: Source, found: Unexpanded, meshes: Meshes, given: dict[str, str]) -> Element | None:
    """The root of a xacro document after expansion; files that it includes are searched in its folder, or else here."""
    try:
        import xacro
        from xacro import substitution_args as names

        xacro.init_stacks(None if source.path is None else str(source.path))
        text = source.document.decode(source.encoding) if source.encoding else io.BytesIO(source.document)
        document = xacro.parse(text)
        # Its own $(find …) needs modules of ROS.
        own, names._eval_find, arguments = names._eval_find, meshes.package, _Arguments(given)
        try:
            xacro.process_doc(document, mappings=arguments, verbosity=0)
        finally:
            names._eval_find = own
        known = [*map(str, arguments.asked)]
        for name in given:
            if name not in known:  # it may be that of another file of one command
                found.element.doubtful(f"this xacro has no argument {name!r}", found.element.near(name, known))
        return parse(document.toprettyxml(indent="  ").encode("utf-8"), found.element.problems, "utf-8")
    except ModuleNotFoundError as error:
        message = f"this is xacro, not URDF{found.where}"
        hint = "pip install 'screwdyn[xacro]', or expand it first: xacro FILE > robot.urdf"
        if error.name != "xacro":
            message, hint = f"xacro cannot expand this: {error}", "install what it asks for"
        return found.element.wrong(message, hint)
    except Unexpanded as left:
        return left.element.wrong(f"this is still xacro after expansion{left.where}")
    except Exception as error:  # an expression can raise any error
        # Xacro says the words of a cause twice, once after its class.
        cause = error
        while isinstance(inner := getattr(cause, "exc", None), Exception):
            cause = inner
        said = str(error).replace(f"{type(cause)}: {cause} ", "")
        message = f"xacro cannot expand this: {said or type(error).__name__}"
        return found.element.wrong(message, utf8_hint(cause, source.document))


def rotation_from_rpy(roll: float, pitch: float, yaw: float) -> Array:
    """Rotation matrix R = Rz(yaw) Ry(pitch) Rx(roll), (3, 3), of angles in radians."""
    (cr, cp, cy), (sr, sp, sy) = np.cos([roll, pitch, yaw]), np.sin([roll, pitch, yaw])
    x = [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr]
    y = [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr]
    return np.array([x, y, [-sp, cp * sr, cp * cr]])


def _origin(element: Element) -> Array | None:
    """The pose of the only <origin> of an element, the identity if there is none; None, with a problem, if invalid."""
    origin = element.only("origin")
    if origin is None:
        return np.eye(4)
    if "quat_xyzw" in origin.attributes:
        origin.wrong("quat_xyzw is not supported yet", 'give the orientation as rpy="roll pitch yaw"')
    xyz, rpy = (origin.numbers(name, 3, (0.0, 0.0, 0.0)) for name in ("xyz", "rpy"))
    return None if xyz is None or rpy is None else pose(rotation_from_rpy(*rpy), xyz)


def _axis(joint: Element) -> tuple[float, ...] | None:
    """The direction in the only <axis> of a joint, x if there is none; None, with a problem, if invalid."""
    element = joint.only("axis")
    if element is None:
        return (1.0, 0.0, 0.0)
    axis = element.numbers("xyz", 3)
    if axis is None:
        return None
    largest = max(abs(x) for x in axis)  # avoids underflow and overflow of the norm
    if largest == 0:
        return element.wrong("the axis is zero", "give the direction of the joint, such as 0 0 1")
    return tuple(x / largest for x in axis)


def _magnitude(element: Element | None, name: str, default: float, hint: str) -> float | None:
    """A number >= 0; the default if it is not given or negative, and None, both with a problem, if it is no number."""
    if element is None:
        return default
    severity: Severity | None = "warning" if element.tag == "limit" else None
    value = element.number(name, default, severity)
    if value is None or value >= 0:
        return value
    element.wrong(f"the {name} is negative ({value:g})", hint, severity)
    return default


@dataclass(frozen=True, slots=True, eq=False)
class _Edge:
    """A joint of a file; its type is that of URDF, and `home` is the child's frame in the parent's."""

    element: Element
    kind: str
    parent: str
    child: str
    joint: Joint
    home: Array
    mimic: Mimic | None = None


class _Reader:
    """A robot: its links, its joints, and those that close loops, by name."""

    def __init__(self, robot: Element, meshes: Meshes) -> None:
        self.first: dict[tuple[str, str], Element] = {}  # elements by tag and name
        self.links: dict[str, Link] = {}
        self.edges: dict[str, _Edge] = {}
        shapes = _Shapes(robot, meshes)
        for element in robot.named("link"):
            inertia, own = self.inertia(element), shapes.of(element)
            name = self.unique_name(element)
            if name is not None:
                self.links[name] = Link(name, inertia, own)
        shapes.report_missing()
        ends: list[tuple[Element, str | None, str | None]] = []
        self.joints = dict.fromkeys(name for x in robot.named("joint") if (name := x.attributes.get("name")))
        for element in robot.named("joint"):
            name = self.unique_name(element)
            parent, child = (self.end(element, tag) for tag in ("parent", "child"))
            ends.append((element, parent, child))
            edge = self.edge(element, name, parent or "", child or "")
            if name is not None and edge is not None:
                self.edges[name] = edge
        self.follow()
        self.root = self.root_of(robot, ends)
        self.loops = self.loops_of(robot)

    def topology(self, floating_base: bool) -> Topology:
        """Depth first, and in the order of the file."""
        root, attachments = self.links[self.root], []
        base = Link(unused("world", {*self.links, *self.loops})) if floating_base else root
        if floating_base:
            joint = joints.free(passive=True, name=unused("base", {*self.edges, *self.loops}))
            attachments.append(Attachment(root, base.name, joint))
        beyond: dict[str, list[_Edge]] = {name: [] for name in self.links}
        for edge in reversed(self.edges.values()):
            beyond[edge.parent].append(edge)
        todo = beyond[self.root]
        while todo:
            edge = todo.pop()
            attachments.append(Attachment(self.links[edge.child], edge.parent, edge.joint, edge.home))
            todo += beyond[edge.child]
        return with_ties(Topology.rooted(base).attach(attachments), self.loops.values())

    def unique_name(self, element: Element) -> str | None:
        name = element.attribute("name")
        if name is None:
            return None
        first = self.first.setdefault((element.tag, name), element)
        if first is element:
            return name
        message = f"a second {element.tag} named {shown(name)!r}"
        return element.wrong(message, f"the first is on line {first.line}; rename one")

    def link_named(self, element: Element, attribute: str, unknown: str) -> str | None:
        """The name of a link in an attribute; None, with a problem, if the file has no such link."""
        name = element.attribute(attribute)
        if name is None or name in self.links:
            return name
        return element.wrong(unknown.format(repr(shown(name))), element.near(name, self.links))

    def end(self, joint: Element, tag: str) -> str | None:
        """The name of the parent or child link of a joint."""
        element = joint.only(tag, f'add <{tag} link="…"/>')
        return None if element is None else self.link_named(element, "link", f"unknown {tag} link {{}}")

    def inertia(self, link: Element) -> Inertia | None:
        inertial = link.only("inertial")
        if inertial is None:
            return None
        home = _origin(inertial)
        element = inertial.only("mass", 'add <mass value="…"/>')
        mass = None if element is None else element.number("value")
        if element is not None and mass is not None and mass < 0:
            element.wrong(f"the mass is negative ({mass:g} kg)", "give a mass >= 0")
            mass = None
        matrix = inertial.only("inertia", "add <inertia ixx=… ixy=… ixz=… iyy=… iyz=… izz=…/>")
        if matrix is None:
            return None
        entries = [matrix.number(name) for name in _ENTRIES]
        if mass is None or home is None or None in entries:
            return None
        xx, xy, xz, yy, yz, zz = (x for x in entries if x is not None)
        R = home[:3, :3]
        tensor = R @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R.T
        tensor = (tensor + tensor.T) / 2
        hint = "no rigid body has these numbers; they are used as they are"
        return inertia_of(mass, home[:3, 3], tensor, lambda failing: inertial.doubtful(failing, hint))

    def edge(self, element: Element, name: str | None, parent: str, child: str) -> _Edge | None:
        home, kind = _origin(element), element.attribute("type")
        if kind is not None and kind != "fixed" and kind not in _MOVABLE:
            element.wrong(f"unknown joint type {shown(kind)!r}", f"use one of {', '.join(_MOVABLE)}, fixed")
        if kind == "fixed" and home is not None:
            return _Edge(element, kind, parent, child, joints.fixed(name=name), home)
        if kind not in _MOVABLE:
            return None
        axis = () if kind == "floating" else _axis(element)
        dynamics, limit = element.only("dynamics"), element.only("limit")
        friction = {what: _magnitude(dynamics, what, 0.0, "give a value >= 0") for what in ("damping", "friction")}
        bounds = {what: _magnitude(limit, what, inf, "it is read as unlimited") for what in ("effort", "velocity")}
        options: dict[str, Any] = {what: None if x is None or x >= _MOST else x for what, x in bounds.items()}
        if kind in ("revolute", "prismatic"):
            options["limits"] = self.limits(element, limit)
        mimic = self.mimic(element)
        if home is None or axis is None or None in friction.values():
            return None
        options |= friction | {"name": name, "passive": kind == "floating"}
        make: Any = {"continuous": joints.revolute, "floating": joints.free}.get(kind) or getattr(joints, kind)
        joint = make(**options) if kind == "floating" else make(axis, **options)
        return _Edge(element, kind, parent, child, joint, home, mimic)

    def limits(self, joint: Element, element: Element | None) -> tuple[float, float] | None:
        if element is None:
            return joint.doubtful(f"a {joint.attributes['type']} joint without <limit>", "it is read as unlimited")
        if not {"lower", "upper"} & element.attributes.keys():
            return element.doubtful("neither lower nor upper is given", "the joint is read as unlimited")
        lower, upper = (element.number(name, default=0.0) for name in ("lower", "upper"))
        if lower is None or upper is None:
            return None
        if lower > upper:
            message = f"the lower limit {lower:g} is above the upper limit {upper:g}"
            return element.doubtful(message, "the joint is read as unlimited")
        low, high = (x if abs(x) < _MOST else np.copysign(np.inf, x) for x in (lower, upper))
        return None if (low, high) == (-np.inf, np.inf) else (low, high)

    def mimic(self, joint: Element) -> Mimic | None:
        """The joint that a joint follows, with URDF's multiplier and offset."""
        element = joint.only("mimic")
        if element is None:
            return None
        leader = element.attribute("joint")
        ratio, offset = (element.number(name, x) for name, x in (("multiplier", 1.0), ("offset", 0.0)))
        return Mimic(leader, ratio, offset) if leader and ratio is not None and offset is not None else None

    def follow(self) -> None:
        """Let joints follow what they name; those that cannot are independent, each with a warning."""
        leaders: dict[str, str] = {}
        for name, edge in reversed([*self.edges.items()]):
            if edge.mimic is None:
                continue
            leader = edge.mimic.joint
            led = self.edges.get(leader)
            if led is None:
                near = "" if leader in self.joints else edge.element.near(leader, self.joints)
                message = f"mimics an unknown joint {shown(leader)!r}" + (f" ({near})" if near else "")
            elif edge.kind not in _SINGLE:
                message = f"a {edge.kind} joint cannot follow another one"
            elif led.kind not in _SINGLE:
                message = f"mimics {shown(leader)!r}, a {led.kind} joint, which has not one freedom"
            elif _top(leader, leaders) == name:
                message = f"mimics {shown(leader)!r} in a circle"
            else:
                leaders[name] = leader
                self.edges[name] = replace(edge, joint=replace(edge.joint, mimic=edge.mimic))
                continue
            element = next(edge.element.named("mimic"))
            element.doubtful(message, "the joint is read as an independent one")

    def root_of(self, robot: Element, ends: list[tuple[Element, str | None, str | None]]) -> str:
        """Name of the only link without a parent; empty, with a problem, if there is no such link."""
        if not self.links:
            robot.wrong("there is no <link>", "a robot needs at least one")
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
                element.wrong(f"a second parent of link {shown(child)!r}", hint)
            elif parent is not None and _top(parent, above) == child:
                message = f"closes a cycle: link {shown(child)!r} would be its own ancestor"
                element.wrong(message, f"a tree has no cycles; write one joint of the cycle as <{_LOOP}>")
            else:
                claimed[child] = element
                if parent is not None:
                    above[child] = parent
        roots = [name for name in self.links if name not in claimed]
        # The child of a joint with an unknown child is probably one of these links; that joint is reported already.
        if len(roots) - 1 > unknown_children:
            lines = [(shown(name), self.first["link", name].line) for name in roots]
            message = f"there are {len(roots)} links without a parent: {some(f'{x!r} (line {at})' for x, at in lines)}"
            self.first["link", roots[1]].wrong(message, "connect them by joints so that one root remains")
        return roots[0] if roots else ""

    def loops_of(self, robot: Element) -> dict[str, Loop]:
        """The loops of the robot between its links."""
        loops: dict[str, Loop] = {}
        for element in robot.named(_LOOP):
            name = element.attribute("name")
            first = None if name is None else self.first.setdefault((_LOOP, name), element)
            if name is not None and (first is not element or name in self.links or name in self.joints):
                where = f" on line {first.line}" if first is not None and first is not element else ""
                message = f"there is a link, joint or loop named {shown(name)!r} already{where}"
                element.wrong(message, "rename one")
            link, to = (self.link_named(element, which, f"{which}={{}} is an unknown link") for which in ("link", "to"))
            if link is not None and link == to:
                element.wrong(f"it connects {shown(link)!r} with itself", "give two links")
            home, joint = _origin(element), self.loop_joint(element)
            if name is not None and link is not None and to is not None and home is not None and joint is not None:
                loops[name] = Loop(name, link, to, joint, home)
        return loops

    def loop_joint(self, element: Element) -> Joint | None:
        kind = element.attribute("type")
        if kind is None:
            return None
        if kind not in _LOOP_TYPES:
            return element.wrong(f"unknown type {shown(kind)!r} of a loop", f"use one of {', '.join(_LOOP_TYPES)}")
        turns, placed = _LOOP_TYPES[kind]
        given: list[Any] = [_axis(element)] if turns else []
        if placed:
            point = element.only("point")
            given.append((0.0, 0.0, 0.0) if point is None else point.numbers("xyz", 3))
        if kind == "helical":
            found = element.only("axis", 'a helical joint needs <axis xyz="…" pitch="…"/>')
            given.insert(1, None if found is None else found.number("pitch"))
        if None in given:
            return None
        joint: Joint = getattr(joints, kind)(*given)
        return joint


def _top(name: str, above: dict[str, str]) -> str:
    """The topmost known ancestor of a link, or leader of a joint, with path compression."""
    way = []
    while name in above:
        way.append(name)
        name = above[name]
    above.update(dict.fromkeys(way, name))
    return name


class _Shapes:
    """The visual and collision elements of links, also with materials of other links; all problems are warnings."""

    def __init__(self, robot: Element, meshes: Meshes) -> None:
        self.find = cache(meshes.find)
        self.missing: dict[str, Element] = {}
        links = [shape for link in robot.named("link") for shape in link.children]
        materials = [material for owner in (robot, *links) for material in owner.named("material")]
        self.own = {material: self.color(material) for material in materials}
        self.named: dict[str, tuple[float, ...]] = {}
        for material, color in self.own.items():
            name = material.attributes.get("name")
            if name and color is not None:
                self.named.setdefault(name, color)

    def of(self, link: Element) -> tuple[Shape, ...]:
        """The shapes of a link in the order of the file; those with a problem are left out."""
        found = [self.shape(child) for child in link.children if child.tag in ("visual", "collision")]
        return tuple(shape for shape in found if shape is not None)

    def report_missing(self) -> None:
        """Add one warning that names all meshes without a file."""
        if self.missing:
            first, *others = self.missing
            count = f"{len(others) + 1} meshes are" if others else "the mesh is"
            message = f"{count} missing: {some(shown(name, 200) for name in self.missing)}"
            hint = "name the folders of packages by package_dirs=…, or in the environment variable ROS_PACKAGE_PATH"
            self.missing[first].doubtful(message, hint)

    def shape(self, element: Element) -> Shape | None:
        home = _origin(element)
        bodies = [body for geometry in element.named("geometry") for body in geometry.children]
        if len(bodies) != 1:
            found = "several bodies" if bodies else f"none of {', '.join(_SIZES)}"
            return element.doubtful(f"its <geometry> has {found}", _LEFT_OUT)
        (body,) = bodies
        mesh, path = body.tag == "mesh", None
        default = (1.0, 1.0, 1.0) if mesh else None
        attributes = _SIZES[body.tag].items()  # type: ignore[index]
        sizes = [body.numbers(name, count, default) for name, count in attributes]
        if mesh:
            name = body.attributes.get("filename", "")
            if not name:
                return body.doubtful("the attribute 'filename' is missing or empty", _LEFT_OUT)
            path = self.find(name) or name  # that in the URDF if there is no such file
            if self.find(name) is None:
                self.missing.setdefault(name, body)
        if home is None or None in sizes:
            return None
        # The colour of the first material of that name, or its own.
        material = element.only("material")
        color = material and (self.named.get(material.attributes.get("name", "")) or self.own[material])
        size = [x for numbers in sizes for x in numbers or ()]
        try:
            return Shape(body.tag, size, path, home, color, element.tag)  # type: ignore[arg-type]
        except ShapeError as error:
            return body.doubtful(str(error), _LEFT_OUT)

    def color(self, material: Element) -> tuple[float, ...] | None:
        """The colour that a material states itself."""
        element = material.only("color")
        rgba = None if element is None else element.numbers("rgba", 4)
        if element is None or rgba is None or all(0 <= x <= 1 for x in rgba):
            return rgba
        message = f"rgba={shown(element.attributes['rgba'])!r} has numbers that are not from 0 to 1"
        return element.doubtful(message, "it is read as no colour")


class Meshes:
    """The files of the meshes that a robot's file, in a folder, names; only their existence is looked at."""

    def __init__(self, folder: Path | None = None, package_dirs: Folders = ()) -> None:
        given: list[Any] = [package_dirs]
        if isinstance(package_dirs, Iterable) and not isinstance(package_dirs, str | os.PathLike):
            given = list(package_dirs)
        wrong = [x for x in given if not isinstance(x, str | os.PathLike)]
        if wrong:
            raise ScrewdynError(f"package_dirs are paths of folders; got {wrong[0]!r}")
        self.given = [Path(x) for x in given]
        self.folder = None if folder is None else Path(os.path.abspath(folder))
        self.above = [] if self.folder is None else [self.folder, *self.folder.parents]
        ros, ament = (os.environ.get(name, "").split(os.pathsep) for name in ("ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH"))
        self.listed = [*(Path(x) for x in ros if x), *(Path(x) / "share" for x in ament if x)]
        self.packages = cache(self._packages)

    def _packages(self, name: str) -> list[Path]:
        """The folders that may be a package; docs/files.md says where it is looked for."""
        folders = [*self.given, *self.listed, *self.above]
        found = [*(folder / name for folder in folders), *(folder for folder in folders if folder.name == name)]
        # Repositories with several packages in a workspace, and what it has installed.
        for layout in _LAYOUTS:
            found += [path for folder in self.above for path in sorted(folder.glob(layout.format(glob.escape(name))))]
        return [path for path in found if os.path.isdir(path)]

    def package(self, name: str) -> str:
        """The path of a package; URDFError if it is not found."""
        if found := self.packages(name):
            return os.path.abspath(found[0])
        raise URDFError(f"there is no package {name!r} in {_PLACES}")

    def find(self, name: str) -> str | None:
        """The path of the file that a name stands for, or None; docs/files.md says where it is looked for."""
        package = next((scheme for scheme in _PACKAGES if name.startswith(scheme)), None)
        if package is not None:
            stem, _, inside = name[len(package) :].lstrip("/").partition("/")
            candidates = [root / inside for root in (*self.packages(stem), *self.above)]
        else:
            candidates = [folder / name.removeprefix("file://") for folder in (self.folder or Path.cwd(), *self.given)]
        for path in map(str, candidates):
            found = next((x for x in (path, unquote(path)) if os.path.isfile(x)), None)
            if found is not None:
                return os.path.abspath(found)
        return None


# Writing --------------------------------------------------------------------------------------------------------------

# Distance in metres below which an axis counts as passing through the link's origin.
_AT_ORIGIN = 1e-14
_STANDARD_GRAVITY = (0.0, 0.0, -9.81)


def write_urdf(topology: Topology, name: str = "robot") -> str:
    """The text of a tree; parameters, errors and warnings are those of :meth:`KinematicTree.to_urdf`."""
    writer = _Writer(topology, name)
    lines = nested("robot", writer.lines(), name=name)
    writer.report()
    return "\n".join([*lines, ""])


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


def _placed(T: Array) -> str:
    """The element <origin> of a pose."""
    return tag("origin", xyz=T[:3, 3], rpy=rpy_from_rotation(T[:3, :3]))


class _Writer(Writer):
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
        yield from self.link(at.link)
        if at.parent is None:
            return
        self.check_name("joint", at.name)
        self.note_state(at)
        for what, value in (("spring", at.joint.stiffness), ("armature", at.joint.armature)):
            if value != 0:
                self.warnings.append(f"the {what} of joint {at.name!r}")
        parent, place, steps = at.parent, expressions.floats(at.home), self.steps(at)
        for k, (kind, name, frame, axis) in enumerate(steps, start=1):
            child = at.link.name
            if k < len(steps):
                child = unused(f"{child}_axis", self.names)
                yield from self.link(Link(child))
            lines = [_placed(place @ frame), tag("parent", link=parent), tag("child", link=child)]
            lines += [] if axis is None else [tag("axis", xyz=axis)]
            if kind == "revolute" and at.joint.limits is None:
                kind = "continuous"
            yield from nested("joint", lines + _of_joint(kind, at.joint), name=name, type=kind)
            parent, place = child, inverse(frame)

    def steps(self, at: Attachment) -> list[tuple[str, str, Array, Array | None]]:
        """The URDF joints in a row that move like a joint, with the same coordinates, and perhaps a fixed one.

        Of each, its type, its name, its frame in that of the link that it carries, and the axis in its own frame.
        """
        joint, steps = at.joint, list[tuple[str, str, Array, Array | None]]()
        if joint.chart is not None:
            if joint.kind == "spherical":
                self.refuse_group(at)
            frame = pose(expressions.floats(joint.chart.axes), expressions.floats(joint.chart.center))
            flat = joint.kind == "planar"
            steps.append(("planar" if flat else "floating", at.name, frame, np.eye(3)[2] if flat else None))
        else:
            for name, kind, direction, point in self.freedoms(at, expressions.floats(joint.screws)):
                apart = kind != "prismatic" and np.linalg.norm(point) > _AT_ORIGIN
                steps.append((kind, name, as_pose(point) if apart else np.eye(4), direction))
        if not steps or not np.array_equal(steps[-1][2], np.eye(4)):
            weld = unused(f"{at.link.name}_offset", self.names) if steps else at.name
            steps.append(("fixed", weld, np.eye(4), None))
        return steps

    def link(self, link: Link) -> list[str]:
        """The lines of a link."""
        lines = []
        if link.inertia is not None or link.name != self.topology.base:
            mass, com, tensor = 0.0, (0.0,) * 3, (0.0,) * 6  # left out, some readers would take 1 kg
            if link.inertia is not None:
                inertia = link.inertia.evaluated()
                mass, (com, tensor) = inertia.mass, inertia.entries
            entries = dict(zip(_ENTRIES, tensor, strict=True))
            parts = tag("origin", xyz=com), tag("mass", value=mass), tag("inertia", **entries)
            lines = nested("inertial", parts)
        for shape in link.shapes:
            lines += self.shape(shape)
            if shape.path is not None:
                self.check_name("mesh", shape.path, "path")
        if any(shape.use == "collision" and shape.color is not None for shape in link.shapes):
            self.warnings.append(f"the colours of collision shapes of link {link.name!r}")
        return nested("link", lines, name=link.name)

    def shape(self, shape: Shape) -> list[str]:
        """The lines of a shape; of a capsule, which most readers do not know, those of a cylinder and two spheres."""
        if shape.kind == "capsule":
            radius, length = shape.size
            ends = [shape.pose @ as_pose((0, 0, z)) for z in (length / 2, -length / 2)]
            balls = [replace(shape, kind="sphere", size=(radius,), pose=end) for end in ends]
            return [line for part in (replace(shape, kind="cylinder"), *balls) for line in self.shape(part)]
        left = iter(shape.size)
        sizes: dict[str, Any] = {name: [*islice(left, count)] for name, count in _SIZES[shape.kind].items()}
        if shape.kind == "mesh":
            sizes = {"filename": shape.path, "scale": None if shape.size == (1, 1, 1) else shape.size}
        body = tag(shape.kind, **sizes)
        lines = [_placed(shape.pose), f"<geometry>{body}</geometry>"]
        if shape.color is not None and shape.use == "visual":  # collision elements have no colours
            # All materials of one name have the colour of the first.
            name = self.materials.setdefault(shape.color, f"color_{len(self.materials) + 1}")
            lines.append(f"{opening('material', name=name)}{tag('color', rgba=shape.color)}</material>")
        return nested(shape.use, lines)

    def loop(self, loop: Loop) -> list[str]:
        """The lines of the joint of a loop."""
        self.check_name("loop", loop.name)
        joint, kind, screws = loop.joint, loop.joint.kind, expressions.floats(loop.joint.screws)
        if kind not in _LOOP_TYPES:
            self.errors.append(f"loop {loop.name!r} has a {kind} joint, which has no type here; use to_json")
            return []
        turns, placed = _LOOP_TYPES[kind]
        lines = [_placed(expressions.floats(loop.home))]
        if turns:
            advance = pitch(screws[:, 0]) if kind == "helical" else None
            lines.append(tag("axis", xyz=axis_of(screws[:, 0])[0], pitch=advance))
        if placed:
            point = axis_of(screws[:, 0])[1] if joint.chart is None else expressions.floats(joint.chart.center)
            lines.append(tag("point", xyz=point))
        return nested(_LOOP, lines, name=loop.name, type=kind, link=loop.link, to=loop.to)


def _of_joint(kind: str, joint: Joint) -> list[str]:
    """The elements of a URDF joint of a type that do not depend on its place."""
    if kind == "fixed":
        return []
    low, high = joint.limits or (-inf, inf)
    bounds = {"lower": low, "upper": high} if kind in ("revolute", "prismatic") else {}
    efforts = {"effort": joint.effort, "velocity": joint.velocity}
    if bounds or any(x is not None for x in efforts.values()):
        bounds |= {what: inf if x is None else x for what, x in efforts.items()}
    lines = [tag("limit", **{what: np.clip(x, -_MOST, _MOST) for what, x in bounds.items()})] if bounds else []
    if joint.damping or joint.friction:
        lines.append(tag("dynamics", damping=joint.damping, friction=joint.friction))
    if joint.mimic is not None:
        mimic = joint.mimic
        lines.append(tag("mimic", joint=mimic.joint, multiplier=mimic.ratio, offset=mimic.offset))
    return lines
