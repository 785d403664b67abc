"""Reader of MJCF: the geoms of a compiled model as shapes of links."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from screwdyn.core.types import Array
from screwdyn.mechanism.shape import Shape
from screwdyn.screws.poses import inverse, pose
from screwdyn.screws.rotations import rotation_of

__all__ = ["pose_of_quaternion", "shapes_of_body"]

# Values of mjtGeom.
_SPHERE, _CAPSULE, _CYLINDER, _BOX, _MESH = 2, 3, 5, 6, 7
# MuJoCo's viewer shows the groups below this one unless told otherwise.
_HIDDEN = 3
# MuJoCo's colour of geoms that have none.
_GREY = 0.5, 0.5, 0.5, 1.0


def shapes_of_body(m: Any, body: int) -> tuple[Shape, ...]:
    """The shapes of a body; planes, height fields, ellipsoids and meshes that are not in a file are left out.

    Geoms in the groups that MuJoCo's viewer shows at first are visual, the others collision.
    """
    first = m.body_geomadr[body]
    found = [_shape(m, geom) for geom in range(first, first + m.body_geomnum[body])]
    return tuple(shape for shape in found if shape is not None)


def _shape(m: Any, geom: int) -> Shape | None:
    kind, size = m.geom_type[geom], m.geom_size[geom]
    options: dict[str, Any] = {
        "pose": pose_of_quaternion(m.geom_quat[geom], m.geom_pos[geom]),
        "color": _color(m, geom),
        "use": "visual" if m.geom_group[geom] < _HIDDEN else "collision",
    }
    if kind == _SPHERE:
        return Shape.sphere(size[0], **options)
    if kind == _BOX:
        return Shape.box(2 * size, **options)
    if kind in (_CAPSULE, _CYLINDER):
        make = Shape.capsule if kind == _CAPSULE else Shape.cylinder
        return make(size[0], 2 * size[1], **options)
    mesh = m.geom_dataid[geom]
    if kind != _MESH or m.mesh_pathadr[mesh] < 0:
        return None
    # MuJoCo moves the vertices into the principal frame of the mesh.
    moved = pose_of_quaternion(m.mesh_quat[mesh], m.mesh_pos[mesh])
    options["pose"] = options["pose"] @ inverse(moved)
    path = m.paths[m.mesh_pathadr[mesh] :].split(b"\0")[0].decode("utf-8", "surrogateescape")
    return Shape.mesh(os.path.abspath(path), m.mesh_scale[mesh], **options)


def pose_of_quaternion(quaternion: Array, position: Array) -> Array:
    """The pose with a quaternion whose scalar is first."""
    return pose(rotation_of(np.roll(quaternion, -1)), position)


def _color(m: Any, geom: int) -> Array | None:
    """The colour of a geom or, if it has none, of its material."""
    rgba: Array = m.geom_rgba[geom]
    if np.array_equal(rgba, _GREY):
        material = m.geom_matid[geom]
        if material < 0:
            return None
        rgba = m.mat_rgba[material]
    return np.clip(rgba, 0, 1)
