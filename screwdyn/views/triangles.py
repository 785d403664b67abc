"""Triangle meshes of simple solids: boxes, spheres, and tubes along curves."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from screwdyn.core.types import Array, ArrayLike
from screwdyn.screws.screw import frame_along, pose_of

__all__ = ["Color", "Solid", "arrow", "ball", "box", "capsule", "helix", "tube"]

# Red, green, blue and opacity, 0 to 1.
Color = tuple[float, float, float, float]


@dataclass(frozen=True, eq=False)
class Solid:
    """A surface of one colour, in the frame of the link that it belongs to.

    Attributes
    ----------
    vertices : (v, 3) array
        m.
    faces : (f, 3) array of int
        The vertices of each triangle.
    color : Color
    smooth : bool
        Whether the shading hides the edges between triangles.
    """

    vertices: Array
    faces: Array
    color: Color
    smooth: bool = False

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
    polar = np.linspace(0, np.pi, sides // 2 + 1)
    polar = np.concatenate([polar[: len(polar) // 2 + 1], polar[len(polar) // 2 :]])
    offset = np.repeat([-length / 2, length / 2], len(polar) // 2)
    around = 2 * np.pi * np.arange(sides) / sides
    rings = np.stack(
        [
            radius * np.outer(np.sin(polar), np.cos(around)),
            radius * np.outer(np.sin(polar), np.sin(around)),
            np.repeat((offset - radius * np.cos(polar))[:, None], sides, axis=1),
        ],
        axis=-1,
    )
    return Solid(*_skin(rings), color, smooth=True)


def tube(points: ArrayLike, radius: ArrayLike, color: Color, sides: int = 12) -> Solid:
    """A tube along a curve through points (k, 3), closed at both ends, with one radius or one for each point, m.

    A tube with 4 sides along two points is a bar.
    """
    curve = np.asarray(points, dtype=float)
    tangents = np.gradient(curve, axis=0)
    tangents /= np.linalg.norm(tangents, axis=1, keepdims=True)
    around = 2 * np.pi * (np.arange(sides) + 0.5) / sides
    circle = np.stack([np.cos(around), np.sin(around), np.zeros(sides)], axis=1)
    # Each ring takes over the direction of the one before, so that the tube does not twist.
    across = np.array(frame_along(tangents[0].tolist()), dtype=float).reshape(3, 3)[:, 0]
    rings = []
    for p, t, r in zip(curve, tangents, np.broadcast_to(radius, len(curve)), strict=True):
        across = across - t * (t @ across)
        across /= np.linalg.norm(across)
        rings.append(p + r * circle @ np.stack([across, np.cross(t, across), t]))
    caps = [np.repeat(curve[[0]], sides, axis=0), *rings, np.repeat(curve[[-1]], sides, axis=0)]
    vertices, faces = _skin(np.array(caps))
    return Solid(vertices, faces, color)


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


def _skin(rings: Array) -> tuple[Array, Array]:
    """Vertices and faces of the surface between successive rings, (k, sides, 3)."""
    count, sides, _ = rings.shape
    here = np.arange(count - 1)[:, None] * sides + np.arange(sides)
    beside = np.arange(count - 1)[:, None] * sides + (np.arange(sides) + 1) % sides
    faces = np.stack([here, beside, beside + sides, here, beside + sides, here + sides], axis=-1)
    return rings.reshape(-1, 3), faces.reshape(-1, 3)
