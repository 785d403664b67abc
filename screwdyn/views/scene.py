"""What there is to see of trees that move: bodies, their poses over the frames of a film, arrows and marks.

A scene is data, which :mod:`screwdyn.views.web` and :mod:`screwdyn.views.film` draw. Bodies are triangles: simple
solids, shapes, meshes, and bodies grown from inertias. trimesh is imported here only.
"""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np

from screwdyn.core import Array, ArrayLike, Flags, ScrewdynError, ScrewdynWarning, UnknownNameError, expressions
from screwdyn.core.errors import file_errors
from screwdyn.mechanism import Attachment, Inertia, Joint, Loop, Shape, Topology, Use
from screwdyn.physics import Robot, subtree_wrench
from screwdyn.physics.contact import Contacts
from screwdyn.screws.screw import axis, frame_along, pitch, pose, pose_of

# Red, green, blue and opacity, 0 to 1.
Color = tuple[float, ...]
# Cosine of the angle between the triangles beside an edge, from which on the edge is sharp.
_SHARP = float(np.cos(np.radians(40)))
# The largest of red, green and blue is at least this.
_DARKEST = 0.25


@dataclass(frozen=True, eq=False)
class Solid:
    """A surface of one colour, in the frame of the link that it belongs to."""

    vertices: Array  # (v, 3), m
    faces: Array  # (f, 3) of int, the vertices of each triangle
    color: Color

    def placed(self, T: Array) -> Solid:
        """The solid moved by a pose (4, 4)."""
        return replace(self, vertices=self.vertices @ T[:3, :3].T + T[:3, 3])

    def equals(self, other: Solid) -> bool:
        """Whether both look the same."""
        return (
            self.color == other.color
            and np.array_equal(self.vertices, other.vertices)
            and np.array_equal(self.faces, other.faces)
        )


def distinct(rows: Array) -> tuple[Array, Array]:
    """The different rows of an array (n, k), sorted, and which of them each row is, (n,); faster than np.unique."""
    order = np.lexsort(rows.T[::-1])
    ordered = rows[order]
    first = np.concatenate([[True], (ordered[1:] != ordered[:-1]).any(axis=1)])[: len(rows)]
    which = np.empty(len(rows), dtype=int)
    which[order] = np.cumsum(first) - 1
    return ordered[first], which


def creased(vertices: Array, faces: Array) -> tuple[Array, Array]:
    """Vertices and faces of a surface, with a vertex of its own for each side of a sharp edge; triangles without area
    are left out.

    Where a shading is the mean over the triangles about a vertex, edges are sharp and all else is smooth.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    vertices, same = distinct(vertices)
    faces = same[faces]
    across = np.cross(vertices[faces[:, 1]] - vertices[faces[:, 0]], vertices[faces[:, 2]] - vertices[faces[:, 0]])
    area = np.linalg.norm(across, axis=1)
    faces, normals = faces[area > 0], across[area > 0] / area[area > 0, None]
    # Each side of a triangle by its corners, which count through all triangles, and the side in the other direction.
    corners = np.arange(faces.size).reshape(-1, 3)
    start, end = corners.ravel(), np.roll(corners, -1, axis=1).ravel()
    a, b = faces.ravel()[start], faces.ravel()[end]
    order = np.lexsort((a < b, np.maximum(a, b), np.minimum(a, b)))
    one, other = order[:-1], order[1:]
    smooth = (a[one] == b[other]) & (b[one] == a[other])
    smooth &= np.einsum("ij,ij->i", normals[one // 3], normals[other // 3]) > _SHARP
    one, other = one[smooth], other[smooth]
    pairs = np.concatenate([start[one], end[one]]), np.concatenate([end[other], start[other]])
    _, group = connected_components(coo_array((np.ones(2 * len(one)), pairs), shape=(faces.size, faces.size)))
    _, first = np.unique(group, return_index=True)
    return vertices[faces.ravel()[first]], group.reshape(-1, 3)


def box(size: ArrayLike, color: Color) -> Solid:
    """A box with edges (3,), m, about the origin."""
    corners = np.array([(x, y, z) for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
    quads = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
    faces = [triangle for a, b, c, d in quads for triangle in ((a, b, c), (a, c, d))]
    return Solid(corners * np.asarray(size), np.array(faces), color)


def ball(radius: float, center: ArrayLike, color: Color) -> Solid:
    """A sphere about a centre (3,), m."""
    return capsule(radius, 0.0, color).placed(pose_of(np.eye(3), np.asarray(center, dtype=float)))


def capsule(radius: float, length: float, color: Color, sides: int = 16) -> Solid:
    """A cylinder of some length about z with a hemisphere on each end, m."""
    polar = np.linspace(0, np.pi / 2, sides // 4 + 1)
    polar = np.concatenate([polar, np.pi - polar[::-1]])
    heights = np.repeat([-length / 2, length / 2], sides // 4 + 1) - radius * np.cos(polar)
    points = heights[:, None] * np.array([0.0, 0.0, 1.0])
    return tube(points, radius * np.sin(polar), color, sides)


def tube(points: ArrayLike, radius: ArrayLike, color: Color, sides: int = 12) -> Solid:
    """A tube along a curve through points (k, 3), closed at both ends, with one radius or one for each point, m.

    A tube with 4 sides along two points is a bar. Equal points are those of a flat tube about z.
    """
    curve = np.asarray(points, dtype=float)
    tangents = np.gradient(curve, axis=0)
    lengths, upright = np.linalg.norm(tangents, axis=1, keepdims=True), np.tile((0.0, 0.0, 1.0), (len(curve), 1))
    tangents = np.divide(tangents, lengths, out=upright, where=lengths > 0)
    around = 2 * np.pi * (np.arange(sides) + 0.5 * (sides == 4)) / sides
    circle = np.stack([np.cos(around), np.sin(around), np.zeros(sides)], axis=1)
    # Each ring takes over the direction of the one before, so that the tube does not twist.
    across = np.array(frame_along(tangents[0].tolist()), dtype=float).reshape(3, 3)[:, 0]
    rings = [np.repeat(curve[[0]], sides, axis=0)]
    for p, t, r in zip(curve, tangents, np.broadcast_to(radius, len(curve)), strict=True):
        across = across - t * (t @ across)
        across /= np.linalg.norm(across)
        rings.append(p + r * circle @ np.stack([across, np.cross(t, across), t]))
    rings.append(np.repeat(curve[[-1]], sides, axis=0))
    # Two triangles for each side between successive rings.
    here = np.arange(len(rings) - 1)[:, None] * sides + np.arange(sides)
    beside = np.arange(len(rings) - 1)[:, None] * sides + (np.arange(sides) + 1) % sides
    faces = np.stack([here, beside, beside + sides, here, beside + sides, here + sides], axis=-1)
    return Solid(np.concatenate(rings), faces.reshape(-1, 3), color)


def arrow(start: Array, end: Array, thickness: float, color: Color) -> Solid:
    """An arrow between two different points (3,), m, with a head of three times the thickness."""
    length = float(np.linalg.norm(end - start))
    neck = end - (end - start) * min(4 * thickness / length, 0.5)
    return tube([start, neck, neck, end], np.array([0.5, 0.5, 1.5, 0.0]) * thickness, color)


def helix(axis: Array, point: Array, pitch: float, length: float, radius: float, wire: float, color: Color) -> Solid:
    """A wire wound about an axis through a point, which advances by the pitch, m/rad; left-handed if it is negative.

    The winding is about as long as a length, m, but at least half a turn and at most eight.
    """
    turn = 2 * np.pi * abs(pitch)
    advance = min(max(length, 0.5 * turn), 8 * turn)
    angles = np.linspace(-0.5, 0.5, max(24, int(24 * advance / turn))) * advance / pitch
    frame = np.array(frame_along(axis.tolist()), dtype=float).reshape(3, 3)
    curve = np.stack([radius * np.cos(angles), radius * np.sin(angles), pitch * angles], axis=1)
    return tube(point + curve @ frame.T, wire, color, sides=6)


@functools.lru_cache(maxsize=64)
def _read_mesh(path: str, changed: int) -> list[tuple[Array, Array, Color | None]]:
    """Vertices, faces and own colour of each part of a file that changed at a time; errors of many kinds."""
    try:
        import trimesh
    except ImportError as missing:
        raise ScrewdynError(f"reading meshes needs trimesh ({missing}): pip install 'screwdyn[view]'") from missing
    try:
        parts = trimesh.load_scene(path, process=False).dump()
    except OSError:
        raise
    except Exception as error:  # readers of many formats, which raise anything
        raise ScrewdynError(f"cannot read the mesh {path!r}: {type(error).__name__}: {error}") from error
    meshes = [part for part in parts if isinstance(part, trimesh.Trimesh) and len(part.faces)]
    if not meshes:
        raise ScrewdynError(f"cannot read the mesh {path!r}: it has no triangles")
    if not all(np.isfinite(mesh.vertices).all() for mesh in meshes):
        raise ScrewdynError(f"cannot read the mesh {path!r}: it has vertices that are not finite")
    return [_surface(mesh) for mesh in meshes]


def _surface(mesh: Any) -> tuple[Array, Array, Color | None]:
    """What is drawn of a part: in the main colour of its material or of its faces, without textures."""
    vertices, merged = distinct(np.asarray(mesh.vertices, dtype=float))
    faces = merged[mesh.faces]
    visual = mesh.visual
    if not getattr(visual, "defined", False):
        return vertices, faces, None
    found = visual.material.main_color if visual.kind == "texture" else visual.main_color
    return vertices, faces, tuple(float(x) / 255 for x in found)


def _lit(color: Color) -> Color:
    """A colour that is light enough for a shading: on black, parts could not be told from each other."""
    lack = max(0.0, _DARKEST - max(color[:3]))
    return (*(x + lack for x in color[:3]), color[3])


def shape_solids(shape: Shape, color: Color) -> Iterator[Solid]:
    """The surface of a shape in the link's frame, in its own colour or else in a given one.

    ScrewdynError if the file of a mesh cannot be read, or trimesh is missing.
    """
    if shape.kind == "mesh":
        path = str(shape.path)
        with file_errors(f"read the mesh {path!r}"):
            parts = _read_mesh(path, os.stat(path).st_mtime_ns)
        for vertices, faces, its in parts:
            painted = _lit(shape.color or its or color)
            yield Solid(vertices * np.array(shape.size), faces, painted).placed(shape.pose)
        return
    color = _lit(shape.color or color)
    radius, length = shape.size[0], shape.size[-1]
    if shape.kind == "box":
        solid = box(shape.size, color)
    elif shape.kind == "sphere":
        solid = ball(radius, np.zeros(3), color)
    elif shape.kind == "capsule":
        solid = capsule(radius, length, color)
    else:
        solid = tube([(0, 0, -length / 2), (0, 0, length / 2)], radius, color, sides=24)
    yield solid.placed(shape.pose)


ACTIVE, PASSIVE, LOOP = (0.25, 0.25, 0.28, 1.0), (0.84, 0.15, 0.45, 1.0), (0.00, 0.62, 0.62, 1.0)
# Density of a point mass, which is drawn as a ball, and the least one of a box that is drawn as large as it is, kg/m³.
_POINT_DENSITY, _LEAST_DENSITY = 2000.0, 100.0
# As fractions of the size of the robot: thinnest edge of a body, radius of rods, radius and length of a joint, and
# length of the line along its axis, which sticks out of a thick link. A joint of just a tenth would often end in the
# faces of a body, and a browser would show parts of both.
_THIN, _ROD, _PIN, _LONG, _AXIS = 0.006, 0.009, 0.02, 0.102, 0.24


def equivalent_box(inertia: Inertia) -> tuple[Array, Array]:
    """Edges, (3,), and pose, (4, 4), in the link's frame, m, of the uniform box with an inertia.

    The moments of a box with edges a, b, c are m (b² + c²) / 12, …, so that a² = 6 (I_b + I_c − I_a) / m about its
    principal axes. Edges that no rigid body has, as of an effective inertia, are zero.
    """
    moments, axes = inertia.principal_moments, inertia.principal_axes
    squares = 6 * (moments.sum() - 2 * moments) / inertia.mass
    return np.sqrt(np.maximum(squares, 0.0)), pose(axes, inertia.com)


def grown_body(topology: Topology, link: str, size: float, color: Color) -> Iterator[Solid]:
    """The body of a link without shapes: the equivalent box of its inertia, and rods between its joints.

    A rod leads from the link's own joint to that of each child and to each loop; if there are none, to its centre of
    mass; none from a base without mass. A point mass is a ball. A box below 100 kg/m³, as of moments that are far too
    large for the mass, is drawn with the same proportions, but not longer than twice the distance of these points, or
    than one of that density. Rods are as thick as suits a robot of this size, m.
    """
    at = topology.attachments[link]
    inertia, start = at.link.inertia, joint_point(at.joint)
    ends = [child.home[:3, :3] @ joint_point(child.joint) + child.home[:3, 3] for child in _children(topology, link)]
    ends += [joint_point(loop.joint) for loop in topology.loops.values() if loop.link == link]
    ends += [(loop.home @ [*joint_point(loop.joint), 1])[:3] for loop in topology.loops.values() if loop.to == link]
    if inertia is not None and inertia.mass > 0:
        edges, where = equivalent_box(inertia)
        reach = max(float(np.linalg.norm(end - start)) for end in [*ends, inertia.com])
        if inertia.mass < _LEAST_DENSITY * edges.prod():
            dense = edges.max() * (inertia.mass / (_LEAST_DENSITY * edges.prod())) ** (1 / 3)
            edges *= min(1.0, max(2 * reach, min(0.1 * size, dense)) / edges.max())
        if edges.any():
            yield box(np.maximum(edges, _THIN * size), color).placed(where)
        else:
            yield ball((3 * inertia.mass / (4 * np.pi * _POINT_DENSITY)) ** (1 / 3), inertia.com, color)
        ends = ends or [inertia.com]
    elif at.parent is None:
        return
    dark = (*(0.6 * x for x in color[:3]), color[3])
    for end in ends:
        if np.linalg.norm(end - start) > _ROD * size:
            yield tube([start, end], _ROD * size, dark)


def joint_solids(topology: Topology, link: str, size: float, every: bool = True) -> Iterator[Solid]:
    """The axes of joints that stay fixed in a link, in its frame: of its own joint, and of its children's.

    A line along the axis has a pin for a rotation, a bar for a translation, and a helix with the pitch of a screw. A
    spherical joint is a ball; free joints are not drawn. Passive joints have another colour. Of a joint with several
    axes, the first stays fixed in the parent and the last in the child; those between are not drawn. Unless every joint
    is drawn, active joints of links with visual shapes are not: their pins would stick out.
    """

    def drawn(at: Attachment) -> bool:
        return every or at.joint.passive or all(shape.use != "visual" for shape in at.link.shapes)

    at = topology.attachments[link]
    if at.parent is not None and drawn(at):
        yield from _glyph(at.joint, at.joint.screws.T[-1:], np.eye(4), size)
    for child in _children(topology, link):
        if child.joint.chart is None and child.joint.nv > 1 and drawn(child):
            yield from _glyph(child.joint, child.joint.screws.T[:1], child.home, size)


def loop_solids(loop: Loop, size: float) -> Iterator[Solid]:
    """The joint that closes a loop, in the frame of its ``link`` and in a colour of its own; a fixed one is a cube."""
    if not loop.joint.screws.size:
        yield box(np.full(3, 2 * _PIN * size), LOOP)
    yield from _glyph(loop.joint, loop.joint.screws.T[:1], np.eye(4), size, LOOP)


def _glyph(joint: Joint, screws: Array, T: Array, size: float, color: Color | None = None) -> Iterator[Solid]:
    color = color or (PASSIVE if joint.passive else ACTIVE)
    if joint.chart is not None:
        if joint.kind == "spherical":
            yield ball(1.6 * _PIN * size, joint_point(joint), color)
        screws = joint.screws.T[:1] if joint.kind == "planar" else screws[:0]
    for S in screws:
        (along, point), h = axis(S), float(pitch(S))
        pin, line = ([point + k * size * along for k in (-0.5 * x, 0.5 * x)] for x in (_LONG, _AXIS))
        wire = 0.2 * _PIN * size
        if np.isinf(h):
            yield tube(pin, _PIN * size, color, sides=4).placed(T)
        elif abs(h) < 1e-12:
            yield tube(pin, _PIN * size, color, sides=24).placed(T)
        else:
            yield helix(along, point, h, _LONG * size, _PIN * size, wire, color).placed(T)
        yield tube(line, wire, color).placed(T)


def _children(topology: Topology, link: str) -> list[Attachment]:
    return [at for at in topology.attachments.values() if at.parent == link]


def joint_point(joint: Joint) -> Array:
    """The point of a joint's first turning axis that is closest to the origin of its link, m; else that origin."""
    turning = [S for S in joint.screws.T if S[:3].any()]
    return np.asarray(axis(turning[0])[1], dtype=float) if turning else np.zeros(3)


# Scenes ---------------------------------------------------------------------------------------------------------------

# The group of the nodes of joints that close loops.
LOOPS = "loops"


@dataclass(eq=False)
class Part:
    """Solids that appear and disappear together."""

    name: str  # unique within its node
    solids: tuple[Solid, ...]
    shown: Flags


@dataclass(eq=False)
class SceneNode:
    """A moving frame with its parts."""

    name: str  # of the link, or of what it shows; unique within its group
    poses: Array  # (frames, 4, 4) in the base frame of the robot, m; the identity while it is not shown
    shown: Flags
    parts: list[Part] = field(default_factory=list)
    group: str = "links"
    text: str = ""  # what is written beside it: what happened there


@dataclass(frozen=True, eq=False)
class Arrow:
    """A vector over the frames, named with the magnitude of the longest one."""

    name: str
    color: Color
    start: Array  # (frames, 3) in the base frame, m, as the end
    end: Array
    shown: Flags


@dataclass(frozen=True, eq=False)
class Camera:
    """A point of view: where it is and looks, and the unit vector opposite to gravity, (3,) in the base frame, m."""

    # Of the shorter side of a picture, degrees.
    FIELD_OF_VIEW: ClassVar[float] = 40.0

    position: Array
    target: Array
    up: Array
    size: tuple[int, int] = (640, 480)  # width and height of a picture in pixels; a browser has its own


@dataclass(frozen=True, eq=False)
class Scene:
    """All there is to see, at times (frames,), s."""

    times: Array
    nodes: tuple[SceneNode, ...]
    arrows: tuple[Arrow, ...]
    camera: Camera
    size: float  # of the robot, m
    hidden: frozenset[str] = frozenset()  # what is not drawn, such as "grid" and "text"

    @property
    def grid(self) -> tuple[float, int]:
        """Of a horizontal grid about the origin: edge of a cell, m, and cells from the origin to each side.

        The edge is 1, 2 or 5 times a power of ten.
        """
        power = 10.0 ** float(np.floor(np.log10(self.size / 3)))
        cell = max([power, *(k * power for k in (2, 5) if k * power <= self.size / 3)])
        return cell, int(np.ceil(1.5 * self.size / cell))

    def legend(self, frame: int) -> list[tuple[str, Color]]:
        """Names and colours of the arrows of all frames, and of the loops that are shown in one."""
        loops = [node for node in self.nodes if node.group == LOOPS and node.shown[frame]]
        named = [(f"loop {node.name}", node.parts[0].solids[0].color) for node in loops]
        return [(arrow.name, arrow.color) for arrow in self.arrows] + named

    def visible(self, frame: int) -> Iterator[tuple[Array, Solid]]:
        """The pose and the surface of every solid that is shown in a frame."""
        for node in self.nodes:
            if node.shown[frame]:
                for part in node.parts:
                    if part.shown[frame]:
                        yield from ((node.poses[frame], solid) for solid in part.solids)


# What show= may name, and what hide= besides links.
_SHOWN, _HIDDEN = ("collision", "com", "contacts", "joints", "momentum"), ("events", "grid", "joints", "text")
# Of a picture, in pixels.
_SMALLEST, _LARGEST = 16, 4096
_ROBOT: tuple[Color, ...] = ((0.42, 0.55, 0.70, 1.0), (0.60, 0.68, 0.76, 1.0))
_PAYLOAD, _WAITING = (0.93, 0.60, 0.10, 1.0), (0.93, 0.60, 0.10, 0.45)
_COM, _LINEAR, _ANGULAR = (0.85, 0.10, 0.10, 1.0), (0.00, 0.55, 0.35, 1.0), (0.50, 0.20, 0.70, 1.0)
_LIGHT, IMPACT = (1.0, 0.85, 0.2, 0.7), (1.0, 0.35, 0.1, 0.8)
_FORCE, _MOMENT = (0.85, 0.35, 0.00, 1.0), (0.75, 0.60, 0.00, 1.0)
# Energy of an impact, J, that is more than rounding.
_LOST = 1e-9
# How long an event is marked, s, and the length of the longest arrow as a fraction of the size of the robot.
_MARK, _LONGEST = 0.6, 0.5
# Joints and rods are drawn as of a robot that is not larger than this multiple of the distance between its joints.
_JOINTS_APART = 8.0
# Shapes that reach farther than this multiple of the size of the robot are not in metres.
_FAR_MESH, _FAR = 30.0, 1000.0


@dataclass(frozen=True)
class Mark:
    """Something that happens to a body at a time, s."""

    t: float
    body: str  # the node that shows it
    text: str
    energy_lost: float = 0.0  # J
    point: Array = field(default_factory=lambda: np.zeros(3))  # where on the body, (3,) in its frame, m


@dataclass(frozen=True, eq=False)
class Stage:
    """A tree that moves over an interval of time, s; the end belongs to it only if it is that of the film."""

    tree: Robot
    begin: float
    end: float
    # Positions, rates and accelerations (k, nq), (k, nv), (k, nv) at times (k,) within the interval.
    values: Callable[[Array], tuple[Array, Array, Array]]
    links: tuple[str, ...]  # those that are drawn
    names: Mapping[str, str] = field(default_factory=dict)  # of nodes that differ from those of their links
    payloads: frozenset[str] = frozenset()  # links that are drawn in the colour of payloads
    adrift: frozenset[str] = frozenset()  # links that the camera does not follow, such as released payloads
    origin: Array = field(default_factory=lambda: np.eye(4))  # the pose of the tree's base, (4, 4), m
    waiting: bool = False  # whether the tree is drawn pale, as a payload before its grasp, without arrows
    # States and forces of the points of its contacts at a time, (points, 4); of a run.
    contacts: Callable[[float, Literal["after"]], Array] | None = None

    def node(self, link: str) -> str:
        """The name of the node of a link."""
        return self.names.get(link, link)


class View:
    """What is drawn, from where and how large: the arguments of :meth:`KinematicTree.draw` and :meth:`Run.animate`.

    ScrewdynError for what cannot be drawn; links are checked when the scene is made.
    """

    def __init__(
        self,
        show: Sequence[str] = (),
        hide: Sequence[str] = (),
        camera: ArrayLike | None = None,
        size: Sequence[int] = (640, 480),
        wrenches: Sequence[str] = (),
    ) -> None:
        for what, names in (("show", show), ("hide", hide), ("wrenches", wrenches)):
            if not isinstance(names, Iterable):
                raise ScrewdynError(f"{what} must be a name or several names; got {names!r}")
        self.show, self.hide, self.wrenches = (
            (names,) if isinstance(names, str) else tuple(names) for names in (show, hide, wrenches)
        )
        for name in {*self.show}.difference(_SHOWN):
            raise ScrewdynError(f"show may name {', '.join(map(repr, _SHOWN))}; got {name!r}")
        pixels = np.asarray(size)
        if pixels.shape != (2,) or pixels.dtype.kind != "i" or not ((pixels >= _SMALLEST) & (pixels <= _LARGEST)).all():
            raise ScrewdynError(
                f"size is (width, height) in pixels, whole numbers from {_SMALLEST} to {_LARGEST}; got {size!r}"
            )
        self.size = int(pixels[0]), int(pixels[1])
        self.eye = None if camera is None else expressions.read_or_nan(camera)
        if self.eye is not None:
            apart = -np.diff(self.eye, axis=0)[0] if self.eye.shape == (2, 3) else self.eye
            if apart.shape != (3,) or not np.isfinite(self.eye).all() or not apart.any():
                raise ScrewdynError(
                    "camera is the direction (3,) from the robot to the camera, or (2, 3), the position of the camera "
                    f"and the point that it looks at, m; got {camera!r}"
                )


def still(tree: Robot, q: Array, view: View | None = None) -> Scene:
    """The scene of a tree at rest at positions q (nq,), rad and m; the view as for :func:`stage_scene`."""
    return stage_scene([Stage(tree, 0.0, 0.0, at_rest(tree, q), tree.links)], np.zeros(1), (), view)


def at_rest(tree: Robot, q: Array) -> Callable[[Array], tuple[Array, Array, Array]]:
    """The values of a stage in which a tree stays at positions q (nq,), rad and m."""
    return lambda t: (np.tile(q, (len(t), 1)), np.zeros((len(t), tree.nv)), np.zeros((len(t), tree.nv)))


class _Act:
    """A stage in the frames that show it, with the motion there and the poses (k, links, 4, 4) of all its links."""

    def __init__(self, stage: Stage, frames: Flags, times: Array) -> None:
        self.stage, self.frames, self.times = stage, frames, np.minimum(times, stage.end)
        self.q, self.qd, self.qdd = stage.values(self.times)
        self.poses = stage.origin @ stage.tree.link_poses(self.q)

    def points(self) -> Array:
        """Origins and centres of mass, (k, points, 3), of the links that the camera follows."""
        found = []
        for i, link in enumerate(self.stage.tree.links):
            if link in self.stage.links and link not in self.stage.adrift:
                found.append(self.poses[:, i, :3, 3])
                inertia = self.stage.tree.link(link).inertia
                if inertia is not None:
                    found.append(self.poses[:, i, :3, 3] + self.poses[:, i, :3, :3] @ inertia.com)
        return np.stack(found, axis=1) if found else np.zeros((len(self.q), 0, 3))


def stage_scene(stages: Sequence[Stage], times: Array, marks: Sequence[Mark] = (), view: View | None = None) -> Scene:
    """The scene of some stages, of which the first is of the robot, at rising times (frames,), s.

    UnknownNameError if the view names links that no stage has.
    """
    view = view or View()
    acts = []
    for stage in stages:
        frames = (times >= stage.begin) & ((times < stage.end) | (stage.end >= times[-1]))
        if frames.any():
            acts.append(_Act(stage, frames, times[frames]))
    size = _size(acts)
    known = dict.fromkeys(x for act in acts for link in act.stage.tree.links for x in (link, act.stage.node(link)))
    for name in view.hide:
        UnknownNameError.check(name, [*known, *_HIDDEN])
    nodes = _nodes(acts, size, min(size, _JOINTS_APART * _apart(acts, size)), view)
    camera = _camera(acts, nodes, size, stages[0].tree.gravity, view)
    robots = [act for act in acts if not act.stage.waiting and act.stage.tree.base in act.stage.links]
    arrows: list[Arrow] = []
    if "com" in view.show:
        nodes.append(_com(robots, times, size))
    if "momentum" in view.show:
        trees = [(act, act.stage.tree) for act in robots]
        momenta = [(act, tree.centroidal_momentum(act.q, act.qd), tree.center_of_mass(act.q)) for act, tree in trees]
        names = ("linear momentum", "N s", _LINEAR), ("angular momentum", "N m s", _ANGULAR)
        arrows += _arrows(momenta, times, size, *names)
    if "contacts" in view.show:
        of_runs = [act for act in robots if act.stage.contacts is not None]
        touching = dict.fromkeys(name for act in of_runs for name in act.stage.tree.contacts)
        pushes = {x: [(act, *_push(act, x)) for act in of_runs if x in act.stage.tree.contacts] for x in touching}
        sizes = [float(np.linalg.norm(F, axis=1).max()) for found in pushes.values() for _, F, _ in found]
        for name, found in pushes.items():
            arrows += _arrows(found, times, size, (f"force at {name}", "N", _FORCE), ("", "", _MOMENT), most=max(sizes))
    links = dict.fromkeys(name for act in robots for name in act.stage.tree.links)
    for link in view.wrenches:
        UnknownNameError.check(link, links)
        names = (f"force on {link}", "N", _FORCE), (f"moment on {link}", "N m", _MOMENT)
        wrenches = [(act, *_wrench(act, link)) for act in robots if link in act.stage.tree.links]
        arrows += _arrows(wrenches, times, size, *names)
    if "events" not in view.hide:
        nodes += _flashes(marks, nodes, times, size)
    return Scene(times, tuple(nodes), tuple(arrows), camera, size, frozenset(view.hide))


def _nodes(acts: Sequence[_Act], robot: float, size: float, view: View) -> list[SceneNode]:
    """A node for each link and each loop of any act, with parts that differ between acts; sizes as for a body."""
    nodes: dict[tuple[str, str], SceneNode] = {}
    use: Use = "collision" if "collision" in view.show else "visual"
    for act in acts:
        stage, topology = act.stage, act.stage.tree.topology
        for i, link in enumerate(stage.tree.links):
            if link in stage.links and not {link, stage.node(link)}.intersection(view.hide):
                node = _moved(nodes, stage.node(link), "links", act, i)
                color = _PAYLOAD if link in stage.payloads else _ROBOT[i % 2]
                _show(node, "body", _body(topology, link, use, robot, size, _WAITING if stage.waiting else color), act)
                if not stage.waiting and "joints" not in view.hide:
                    _show(node, "joint", (*joint_solids(topology, link, size, "joints" in view.show),), act)
        for loop in () if stage.waiting or "joints" in view.hide else topology.loops.values():
            if loop.link in stage.links and loop.to in stage.links:
                node = _moved(nodes, loop.name, LOOPS, act, stage.tree.links.index(loop.link))
                _show(node, "joint", tuple(loop_solids(loop, size)), act)
    return sorted(nodes.values(), key=lambda node: node.group == LOOPS)


def _moved(nodes: dict[tuple[str, str], SceneNode], name: str, group: str, act: _Act, k: int) -> SceneNode:
    """The node of a group with a name, new or known, which moves with the k-th link of an act."""
    node = nodes.setdefault((group, name), _blank(name, len(act.frames), group))
    node.poses[act.frames], node.shown[act.frames] = act.poses[:, k], True
    return node


def _body(topology: Topology, link: str, use: Use, robot: float, size: float, color: Color) -> tuple[Solid, ...]:
    """The shapes of a link for a use; a grown body if it has none, or, with a warning, if they cannot be drawn."""
    shapes = [shape for shape in topology.attachments[link].link.shapes if shape.use == use]
    try:
        drawn = [solid for shape in shapes for solid in _near(shape, color, robot)]
    except ScrewdynError as error:
        warnings.warn(f"link {link!r} is drawn without its shapes: {error}", ScrewdynWarning, stacklevel=2)
        drawn = []
    return tuple(drawn or grown_body(topology, link, size, color))


def _near(shape: Shape, color: Color, robot: float) -> list[Solid]:
    """The surface of a shape; ScrewdynError if its units look wrong."""
    with np.errstate(over="ignore", invalid="ignore"):
        solids = [*shape_solids(shape, color)]
    reach = max(float(np.abs(solid.vertices).max()) for solid in solids)
    if not reach <= (_FAR_MESH if shape.kind == "mesh" else _FAR) * robot:
        what = f"mesh {shape.path!r}" if shape.kind == "mesh" else shape.kind
        advice = "a mesh in millimetres needs the scale 0.001" if shape.kind == "mesh" else "give metres"
        raise ScrewdynError(
            f"the {what} reaches {reach:.3g} m from the link, and the robot is {robot:.3g} m large: its units look "
            f"wrong; {advice}"
        )
    return solids


def _blank(name: str, frames: int, group: str = "links") -> SceneNode:
    return SceneNode(name, np.tile(np.eye(4), (frames, 1, 1)), np.zeros(frames, dtype=bool), group=group)


def _show(node: SceneNode, what: str, solids: tuple[Solid, ...], act: _Act) -> None:
    """Show solids in the frames of an act: those of an earlier part if they look the same, or a new part."""
    if not solids:
        return
    for part in node.parts:
        if len(part.solids) == len(solids) and all(map(Solid.equals, part.solids, solids)):
            part.shown |= act.frames
            return
    name = f"{what} {len(node.parts)}" if any(part.name == what for part in node.parts) else what
    node.parts.append(Part(name, solids, act.frames.copy()))


def _com(acts: Sequence[_Act], times: Array, size: float) -> SceneNode:
    node = _blank("centre of mass", len(times), "marks")
    for act in acts:
        node.poses[act.frames, :3, 3] = act.stage.tree.center_of_mass(act.q)
        node.shown |= act.frames
    node.parts.append(Part("mark", (ball(0.03 * size, np.zeros(3), _COM),), np.ones(len(times), dtype=bool)))
    return node


def _wrench(act: _Act, link: str) -> tuple[Array, Array]:
    """Moment and force on a link at its origin, (k, 6), along the axes of the base, and the origin, (k, 3)."""
    T = act.stage.tree.forward_kinematics(link, act.q)
    F = subtree_wrench(act.stage.tree, link, act.q, act.qd, act.qdd)
    return (T[:, None, :3, :3] @ F.reshape(-1, 2, 3, 1)).reshape(-1, 6), T[:, :3, 3]


def _push(act: _Act, name: str) -> tuple[Array, Array]:
    """The force at a contact, (k, 6), without moment about the middle of its pressure, (k, 3)."""
    contacts = Contacts(act.stage.tree, act.stage.tree.model)
    own = np.array([contact.name == name for contact in contacts.contacts])[contacts.owner]
    assert act.stage.contacts is not None
    found = np.array([act.stage.contacts(t, "after")[own, 1:] for t in act.times.tolist()])
    x, axes = (part[:, own] for part in contacts.frames(act.q))
    share = np.maximum(found[..., :1], 1e-300)
    F = np.einsum("tki,tkij->tj", found, axes)
    return np.concatenate([np.zeros_like(F), F], axis=1), (share * x).sum(axis=1) / share.sum(axis=1)


def _arrows(
    measured: Sequence[tuple[_Act, Array, Array]],
    times: Array,
    size: float,
    *names: tuple[str, str, Color],
    most: float = 0.0,
) -> Iterator[Arrow]:
    """Arrows of the last and the first three of six numbers from points; none where all of them are zero.

    The longest arrow, or one of so ``most``, is half as long as the robot. Of each: name, unit and colour.
    """
    F, start, shown = np.zeros((len(times), 6)), np.zeros((len(times), 3)), np.zeros(len(times), dtype=bool)
    for act, six, point in measured:
        F[act.frames], start[act.frames] = six, point
        shown |= act.frames
    for vector, (name, unit, color) in zip((F[:, 3:], F[:, :3]), names, strict=True):
        length = np.linalg.norm(vector, axis=1)
        longest = float(length.max())
        if longest > 0:
            end = start + vector * (_LONGEST * size / max(longest, most))
            yield Arrow(f"{name}, up to {longest:.3g} {unit}", color, start, end, shown & (length > 0.02 * longest))


def _flashes(marks: Sequence[Mark], nodes: Sequence[SceneNode], times: Array, size: float) -> list[SceneNode]:
    """A ball with a text for each mark, until the next one of that body; those in one frame share a ball."""
    flashes: list[SceneNode] = []
    known = {node.name: node for node in nodes}
    found: dict[str, dict[int, list[Mark]]] = {}
    for mark in marks:
        first = min(int(np.searchsorted(times, mark.t)), len(times) - 1)
        if mark.body in known and known[mark.body].shown[first]:
            found.setdefault(mark.body, {}).setdefault(first, []).append(mark)
    for body, begins in found.items():
        ends = [*[times[first] for first in begins][1:], np.inf]
        for (first, together), end in zip(begins.items(), ends, strict=True):
            flash = _blank(f"{len(flashes) + 1}", len(times), "events")
            flash.shown |= (times >= times[first]) & (times < min(times[first] + _MARK, end))
            flash.poses[:, :3, 3] = (known[body].poses[first] @ [*together[0].point, 1])[:3]
            color = IMPACT if any(mark.energy_lost > _LOST for mark in together) else _LIGHT
            flash.parts.append(Part("mark", (ball(0.05 * size, np.zeros(3), color),), flash.shown))
            words = (f": {mark.energy_lost:.3g} J lost" if mark.energy_lost > _LOST else "" for mark in together)
            flash.text = ", ".join(mark.text + lost for mark, lost in zip(together, words, strict=True))
            flashes.append(flash)
    return flashes


def _size(acts: Sequence[_Act]) -> float:
    """The largest extent of the robot in any frame, m; without one, the longest edge of its bodies, or else 1."""
    spans = [np.ptp(points, axis=1) for act in acts if (points := act.points()).size]
    span = max((float(np.linalg.norm(found, axis=-1).max()) for found in spans), default=0.0)
    links = (at.link.inertia for act in acts for at in act.stage.tree.topology.attachments.values())
    edges = (float(equivalent_box(body)[0].max()) for body in links if body is not None and body.mass > 0)
    return span or max(edges, default=0.0) or 1.0


def _apart(acts: Sequence[_Act], size: float) -> float:
    """The median distance of a joint from that of its parent link, m, of those that are apart; else the size."""
    found = []
    for topology in (act.stage.tree.topology for act in acts):
        for at in topology.attachments.values():
            if at.parent is not None and at.joint.nv:
                own, parents = (at.home @ [*joint_point(at.joint), 1])[:3], topology.attachments[at.parent].joint
                found.append(float(np.linalg.norm(own - joint_point(parents))))
    return float(np.median([distance for distance in found if distance > 0.01 * size] or [size]))


def _camera(acts: Sequence[_Act], nodes: Sequence[SceneNode], size: float, gravity: Array, view: View) -> Camera:
    """A view of all frames: across the plane if the points stay in an upright plane, else from above one side."""
    weight = float(np.linalg.norm(gravity))
    up = -gravity / weight if weight else np.array([0.0, 0.0, 1.0])
    ahead = np.array([1.0, 0.0, 0.0]) if abs(up[0]) < 0.9 else np.array([0.0, 1.0, 0.0])
    ahead = ahead - up * (up @ ahead)
    ahead /= np.linalg.norm(ahead)
    aside = np.cross(up, ahead)
    direction = 0.75 * ahead - 0.65 * aside + 0.45 * up
    cloud = np.concatenate([np.zeros((1, 3)), *(act.points().reshape(-1, 3) for act in acts)])
    _, spread, axes = np.linalg.svd(cloud - cloud.mean(axis=0), full_matrices=False)
    if view.eye is not None:
        direction = view.eye if view.eye.ndim == 1 else view.eye[0] - view.eye[1]
    elif len(spread) == 3 and spread[2] < 0.1 * spread[1] and abs(axes[2] @ up) < 0.1:
        across = axes[2] * (1.0 if axes[2] @ np.array([0.3, -1.0, 0.2]) > 0 else -1.0)
        direction = across + 0.3 * up + 0.25 * np.cross(up, across)
    back = direction / np.linalg.norm(direction)
    if np.linalg.norm(np.cross(up, back)) < 1e-3:  # from above or below: "up" in the picture is to the side
        back = back - 1e-3 * aside
    if view.eye is not None and view.eye.ndim == 2:
        return Camera(view.eye[1] + np.linalg.norm(direction) * back, view.eye[1], up, view.size)
    # Axes of the picture; the target is in the middle, and the corners of all bodies are within the frame.
    right = np.cross(up, back) / np.linalg.norm(np.cross(up, back))
    picture = np.stack([right, np.cross(back, right), back])
    corners = np.concatenate([np.zeros((1, 3)), *(_corners(act, nodes) for act in acts)]) @ picture.T
    middle = (corners.min(axis=0) + corners.max(axis=0)) / 2
    half = np.tan(np.radians(Camera.FIELD_OF_VIEW / 2)) * np.array(view.size) / min(view.size)
    for _ in range(3):  # what is near is seen farther from the middle
        away = corners - middle
        distance = float((away[:, 2] + 1.15 * (np.abs(away[:, :2]) / half).max(axis=1)).max()) + 0.05 * size
        seen = away[:, :2] / (distance - away[:, 2:])
        middle[:2] += distance * (seen.min(axis=0) + seen.max(axis=0)) / 2
    return Camera(middle @ picture + distance * back, middle @ picture, up, view.size)


def _corners(act: _Act, nodes: Sequence[SceneNode]) -> Array:
    """Corners of boxes about the links that the camera follows, (k, 3)."""
    found, known = [np.zeros((0, 3))], {node.name: node for node in nodes}
    for link in act.stage.links:
        node = known.get(act.stage.node(link))
        if node is not None and link not in act.stage.adrift and node.parts:
            vertices = np.concatenate([solid.vertices for part in node.parts for solid in part.solids])
            ends = np.stack([vertices.min(axis=0), vertices.max(axis=0)])
            eight = np.stack(np.meshgrid(*ends.T, indexing="ij"), axis=-1).reshape(-1, 3)
            T = act.poses[:, act.stage.tree.links.index(link)]
            found.append((eight @ np.swapaxes(T[:, :3, :3], 1, 2) + T[:, None, :3, 3]).reshape(-1, 3))
    return np.concatenate(found)
