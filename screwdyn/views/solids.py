"""What links and joints look like, as triangles: simple solids, shapes, meshes, and bodies grown from inertias.

trimesh is imported here only.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from screwdyn.core.errors import ScrewdynError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.mechanism.inertia import Inertia
from screwdyn.mechanism.joint import Joint
from screwdyn.mechanism.link import Attachment, Loop
from screwdyn.mechanism.shape import Shape
from screwdyn.mechanism.topology import Topology
from screwdyn.screws.screw import axis, frame_along, pitch, pose, pose_of

# Red, green, blue and opacity, 0 to 1.
Color = tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Solid:
    """A surface of one colour, in the frame of the link that it belongs to."""

    vertices: Array  # (v, 3), m
    faces: Array  # (f, 3) of int, the vertices of each triangle
    color: Color
    smooth: bool = False  # whether the shading hides the edges between triangles

    def placed(self, T: Array) -> Solid:
        """The solid moved by a pose (4, 4)."""
        return replace(self, vertices=self.vertices @ T[:3, :3].T + T[:3, 3])

    def equals(self, other: Solid) -> bool:
        """Whether both look the same."""
        return (
            self.color == other.color
            and self.smooth == other.smooth
            and np.array_equal(self.vertices, other.vertices)
            and np.array_equal(self.faces, other.faces)
        )


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
    return replace(tube(points, radius * np.sin(polar), color, sides), smooth=True)


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


def _read_mesh(path: str) -> list[tuple[Array, Array, Color | None, bool]]:
    """Vertices, faces, own colour and smoothness of each part of a file; ScrewdynError if it cannot be read."""
    try:
        return _read_version(path, os.stat(path).st_mtime_ns)
    except OSError as error:
        raise ScrewdynError(f"cannot read the mesh {path!r}: {error.strerror or error}") from None


@functools.lru_cache(maxsize=64)
def _read_version(path: str, changed: int) -> list[tuple[Array, Array, Color | None, bool]]:
    try:
        import trimesh
    except ImportError as missing:
        raise ScrewdynError(f"reading meshes needs trimesh ({missing}): pip install 'screwdyn[view]'") from missing
    try:
        # Vertices stay apart where the file has them apart, so that sharp edges stay sharp.
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


def _surface(mesh: Any) -> tuple[Array, Array, Color | None, bool]:
    """What is drawn of a part: in the main colour of its material or of its faces, without textures."""
    vertices, faces = np.asarray(mesh.vertices, dtype=float), np.asarray(mesh.faces, dtype=int)
    smooth = len(vertices) < 3 * len(faces)
    if not smooth:  # each triangle has its own vertices, as in STL
        vertices, merged = np.unique(vertices, axis=0, return_inverse=True)
        faces = merged.reshape(-1)[faces]
    visual = mesh.visual
    if not getattr(visual, "defined", False):
        return vertices, faces, None, smooth
    found = visual.material.main_color if visual.kind == "texture" else visual.main_color
    return vertices, faces, tuple(float(x) / 255 for x in found), smooth


def shape_solids(shape: Shape, color: Color) -> Iterator[Solid]:
    """The surface of a shape in the link's frame, in its own colour or else in a given one.

    ScrewdynError if the file of a mesh cannot be read, or trimesh is missing.
    """
    if shape.kind == "mesh":
        for vertices, faces, its, smooth in _read_mesh(str(shape.path)):
            painted = shape.color or its or color
            yield Solid(vertices * np.array(shape.size), faces, painted, smooth).placed(shape.pose)
        return
    color = shape.color or color
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
# length of the line along its axis, which sticks out of a thick link.
_THIN, _ROD, _PIN, _LONG, _AXIS = 0.006, 0.009, 0.02, 0.1, 0.24


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
    mass. A point mass is a ball. A box below 100 kg/m³, as of moments that are far too large for the mass, is drawn
    with the same proportions, but not longer than twice the distance of these points. Rods are as thick as suits a
    robot of this size, m.
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
            edges *= min(1.0, max(2 * reach, 0.1 * size) / edges.max())
        if edges.any():
            yield box(np.maximum(edges, _THIN * size), color).placed(where)
        else:
            yield ball((3 * inertia.mass / (4 * np.pi * _POINT_DENSITY)) ** (1 / 3), inertia.com, color)
        ends = ends or [inertia.com]
    dark = (*(0.6 * x for x in color[:3]), color[3])
    for end in ends:
        if np.linalg.norm(end - start) > _ROD * size:
            yield tube([start, end], _ROD * size, dark)


def joint_solids(topology: Topology, link: str, size: float) -> Iterator[Solid]:
    """The axes of joints that stay fixed in a link, in its frame: of its own joint, and of its children's.

    A line along the axis has a pin for a rotation, a bar for a translation, and a helix with the pitch of a screw. A
    spherical joint is a ball; free joints are not drawn. Passive joints have another colour. Of a joint with several
    axes, the first stays fixed in the parent and the last in the child; those between are not drawn.
    """
    at = topology.attachments[link]
    if at.parent is not None:
        yield from _glyph(at.joint, at.joint.screws.T[-1:], np.eye(4), size)
    for child in _children(topology, link):
        if child.joint.chart is None and child.joint.nv > 1:
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
