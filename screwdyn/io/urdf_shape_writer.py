"""URDF writer: the shapes of links."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from screwdyn.io.urdf_origin import numbers_text, origin_text
from screwdyn.io.xml_text import quoted
from screwdyn.mechanism.shape import Shape
from screwdyn.screws.screw import as_pose

__all__ = ["ShapeWriter"]


class ShapeWriter:
    """Writes visual and collision elements of a robot."""

    def __init__(self) -> None:
        self._materials: dict[tuple[float, ...], str] = {}

    def lines(self, shape: Shape) -> Iterator[str]:
        """The lines of a shape; URDF has no colours of collision elements."""
        for part in _parts(shape):
            yield f"    <{part.use}>"
            yield f"      {origin_text(part.pose)}"
            yield f"      <geometry>{_body(part)}</geometry>"
            if part.color is not None and part.use == "visual":
                # All materials of one name have the colour of the first.
                name = self._materials.setdefault(part.color, f"color_{len(self._materials) + 1}")
                yield f'      <material name="{name}"><color rgba="{numbers_text(part.color)}"/></material>'
            yield f"    </{part.use}>"


def _parts(shape: Shape) -> list[Shape]:
    """The shape; of a capsule, which most readers of URDF do not know, a cylinder and two spheres."""
    if shape.kind != "capsule":
        return [shape]
    radius, length = shape.size
    ends = [shape.pose @ as_pose((0, 0, z)) for z in (length / 2, -length / 2)]
    return [replace(shape, kind="cylinder"), *(replace(shape, kind="sphere", size=(radius,), pose=T) for T in ends)]


def _body(shape: Shape) -> str:
    if shape.kind == "mesh":
        scale = "" if shape.size == (1, 1, 1) else f' scale="{numbers_text(shape.size)}"'
        return f"<mesh filename={quoted(shape.path or '')}{scale}/>"
    if shape.kind == "box":
        return f'<box size="{numbers_text(shape.size)}"/>'
    sizes = (f'{name}="{x!r}"' for name, x in zip(("radius", "length"), shape.size, strict=False))
    return f"<{shape.kind} {' '.join(sizes)}/>"
