"""Files of triangle meshes, such as STL, OBJ and Collada.

trimesh is imported here only.
"""

from __future__ import annotations

import functools
import os
from typing import Any, NamedTuple

import numpy as np

from screwdyn.core.errors import ScrewdynError
from screwdyn.core.types import Array
from screwdyn.views.triangles import Color

__all__ = ["Surface", "read_mesh"]


class Surface(NamedTuple):
    """A surface of one colour.

    Attributes
    ----------
    vertices : (v, 3) array
    faces : (f, 3) array of int
    color : Color or None
        None if the file has none.
    smooth : bool
        Whether neighbouring triangles share vertices, except at sharp edges.
    """

    vertices: Array
    faces: Array
    color: Color | None
    smooth: bool


def read_mesh(path: str) -> tuple[Surface, ...]:
    """The surfaces of a file, one for each part of one colour, in the units of the file.

    Raises
    ------
    ScrewdynError
        If the file cannot be read, its format needs a package that is missing, or trimesh is missing.
    """
    try:
        return _read(path, os.stat(path).st_mtime_ns)
    except OSError as error:
        raise ScrewdynError(f"cannot read the mesh {path!r}: {error.strerror or error}") from None


@functools.lru_cache(maxsize=64)
def _read(path: str, changed: int) -> tuple[Surface, ...]:
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
    return tuple(_surface(mesh) for mesh in meshes)


def _surface(mesh: Any) -> Surface:
    vertices, faces = np.asarray(mesh.vertices, dtype=float), np.asarray(mesh.faces, dtype=int)
    smooth = len(vertices) < 3 * len(faces)
    if not smooth:  # each triangle has its own vertices, as in STL
        vertices, merged = np.unique(vertices, axis=0, return_inverse=True)
        faces = merged.reshape(-1)[faces]
    return Surface(vertices, faces, _color(mesh), smooth)


def _color(mesh: Any) -> Color | None:
    """The main colour of a mesh's material or of its faces; textures are not drawn."""
    visual = mesh.visual
    if not getattr(visual, "defined", False):
        return None
    found = visual.material.main_color if visual.kind == "texture" else visual.main_color
    red, green, blue, opacity = (float(x) / 255 for x in found)
    return red, green, blue, opacity
