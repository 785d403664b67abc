"""What a link looks like: the body grown from its inertia and joints, and its joints and loops as screws."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from screwdyn.core.types import Array
from screwdyn.mechanism.inertia import Inertia
from screwdyn.mechanism.joint import Joint
from screwdyn.mechanism.link import Attachment, Loop
from screwdyn.mechanism.topology import Topology
from screwdyn.screws.screw import axis, pitch, pose
from screwdyn.views.triangles import Color, Solid, ball, box, helix, tube

__all__ = ["ACTIVE", "LOOP", "PASSIVE", "equivalent_box", "grown_body", "joint_point", "joint_solids", "loop_solids"]

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
    mass. A
    point mass is a ball. A box below 100 kg/m³, as of moments that are far too large for the mass, is drawn with the
    same proportions, but not longer than twice the distance of these points.

    Parameters
    ----------
    topology : Topology
    link : str
    size : float
        Of the robot, m, for the thickness of rods.
    color : Color
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
    red, green, blue, opacity = color
    dark = (0.6 * red, 0.6 * green, 0.6 * blue, opacity)
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
        yield from _glyph(at.joint, at.joint.screws.T[-1:], np.eye(4), size, _color(at.joint))
    for child in _children(topology, link):
        if child.joint.chart is None and child.joint.nv > 1:
            yield from _glyph(child.joint, child.joint.screws.T[:1], child.home, size, _color(child.joint))


def loop_solids(loop: Loop, size: float) -> Iterator[Solid]:
    """The joint that closes a loop, in the frame of its ``link`` and in a colour of its own; a fixed one is a cube."""
    if not loop.joint.screws.size:
        yield box(np.full(3, 2 * _PIN * size), LOOP)
    yield from _glyph(loop.joint, loop.joint.screws.T[:1], np.eye(4), size, LOOP)


def _color(joint: Joint) -> Color:
    return PASSIVE if joint.passive else ACTIVE


def _glyph(joint: Joint, screws: Array, T: Array, size: float, color: Color) -> Iterator[Solid]:
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


def _children(topology: Topology, link: str) -> Iterable[Attachment]:
    return [at for at in topology.attachments.values() if at.parent == link]


def joint_point(joint: Joint) -> Array:
    """The point of a joint's first turning axis that is closest to the origin of its link, m; else that origin."""
    turning = [S for S in joint.screws.T if S[:3].any()]
    return np.asarray(axis(turning[0])[1], dtype=float) if turning else np.zeros(3)
