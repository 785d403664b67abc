"""Shapes of links as triangles."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from screwdyn.mechanism.shape import Shape
from screwdyn.views.mesh_files import read_mesh
from screwdyn.views.triangles import Color, Solid, ball, box, capsule, tube

__all__ = ["shape_solids"]


def shape_solids(shape: Shape, color: Color) -> Iterator[Solid]:
    """The surface of a shape in the link's frame, in its own colour or else in a given one.

    Raises
    ------
    ScrewdynError
        If the file of a mesh cannot be read, or trimesh is missing.
    """
    own = color if shape.color is None else _color(shape.color)
    if shape.kind == "mesh":
        for part in read_mesh(str(shape.path)):
            painted = own if shape.color or part.color is None else part.color
            scaled = Solid(part.vertices * np.array(shape.size), part.faces, painted, part.smooth)
            yield scaled.placed(shape.pose)
        return
    yield _simple(shape, own).placed(shape.pose)


def _simple(shape: Shape, color: Color) -> Solid:
    if shape.kind == "box":
        return box(shape.size, color)
    if shape.kind == "sphere":
        return ball(shape.size[0], np.zeros(3), color)
    radius, length = shape.size
    if shape.kind == "capsule":
        return capsule(radius, length, color)
    return tube([(0, 0, -length / 2), (0, 0, length / 2)], radius, color, sides=24)


def _color(color: tuple[float, ...]) -> Color:
    red, green, blue, opacity = color
    return red, green, blue, opacity
