"""Pictures of scenes: triangles become pixels by a depth buffer in NumPy; Pillow writes lines and texts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from screwdyn.core import Array, Flags, ScrewdynError
from screwdyn.views.scene import Scene, Solid, arrow, creased, distinct

try:
    from matplotlib import get_data_path
    from PIL import Image, ImageDraw, ImageFont
except ImportError as missing:
    raise ScrewdynError(f"drawing needs matplotlib ({missing}): pip install 'screwdyn[plot]'") from missing

# Pixels are drawn this many times finer in both directions, and averaged.
_FINER = 2
# Directions to the light, and between light and viewer, in axes of the picture: right, up, towards the viewer.
_LIGHT = np.array([-0.45, 0.7, 0.55]) / np.linalg.norm([-0.45, 0.7, 0.55])
_GLOSS = (_LIGHT + np.eye(3)[2]) / np.linalg.norm(_LIGHT + np.eye(3)[2])
# Details smaller than this number of the finer pixels are merged in solids with more triangles than the second one.
_DETAIL, _DENSE = 3.0, 500
# How much nearer each solid is drawn than the one before, of its distance: more than rounding.
_AHEAD = 1e-9
# Triangles of opaque solids that are painted at a time: their numbers fit into the processor's caches.
_BLOCK = 16384
# Brightness of the grid's lines, 0 to 255.
_GREY = 222


class _Surface:
    """A solid as it is painted: vertices and normals there, (3, k); dense ones without details below a length, m."""

    def __init__(self, solid: Solid, detail: float) -> None:
        vertices, faces = solid.vertices, solid.faces
        if len(faces) > _DENSE:
            _, merged = distinct(np.round(vertices / detail))
            faces, count = merged[faces], np.bincount(merged)[:, None]
            vertices = np.stack([np.bincount(merged, x) for x in vertices.T], axis=1) / count
        vertices, self.faces = creased(vertices, faces)
        a, b, c = np.moveaxis(vertices[self.faces], 1, 0)
        across = np.cross(b - a, c - a).T
        normals = np.stack([np.bincount(self.faces.ravel(), np.repeat(x, 3), len(vertices)) for x in across])
        self.vertices = np.ascontiguousarray(vertices.T)
        self.normals = normals / np.maximum(np.linalg.norm(normals, axis=0), 1e-300)
        # Whether triangles run along each edge as often in one direction as in the other: what is inside is hidden.
        start = distinct(vertices)[1][self.faces]
        end, many = np.roll(start, -1, axis=1), len(vertices)
        one, other = (np.sort(edges, axis=None) for edges in (start * many + end, end * many + start))
        self.closed = np.array_equal(one, other) and bool((a * np.cross(b, c)).sum() > 0)


class _Group:
    """Solids of one opacity that are painted together."""

    def __init__(self, solids: Sequence[Solid], surfaces: Sequence[_Surface]) -> None:
        self.surfaces, self.opacity = surfaces, solids[0].color[3]
        # Faces (3, m) among the vertices of all surfaces; of each the solid, whether it is closed, its colour.
        begins = np.cumsum([0, *(surface.vertices.shape[1] for surface in surfaces)])
        faces = [surface.faces + begin for surface, begin in zip(surfaces, begins, strict=False)]
        self.faces = np.ascontiguousarray(np.concatenate(faces).T)
        self.owner = np.repeat(np.arange(len(solids)), [len(found) for found in faces])
        self.closed = np.array([surface.closed for surface in surfaces])[self.owner]
        self.colors = 255 * np.array([solid.color[:3] for solid in solids]).T.take(self.owner, axis=1)


class Painter:
    """Draws frames of a scene as images."""

    def __init__(self, scene: Scene) -> None:
        self.scene, self.size = scene, scene.camera.size
        self.surface = lru_cache(maxsize=1000)(lambda solid: _Surface(solid, self.detail))
        self.group = lru_cache(maxsize=100)(lambda *solids: _Group(solids, [self.surface(x) for x in solids]))
        camera = scene.camera
        back = camera.position - camera.target
        distance = float(np.linalg.norm(back))
        right = np.cross(camera.up, back)
        right /= np.linalg.norm(right)
        # The axes of the picture as rows: right, up, towards the viewer.
        self.view = np.stack([right, np.cross(back / distance, right), back / distance])
        self.fine = _FINER * np.array(self.size)
        self.focal = 0.5 * float(self.fine.min()) / np.tan(np.radians(camera.FIELD_OF_VIEW / 2))
        self.detail = _DETAIL * distance / self.focal
        font = Path(get_data_path()) / "fonts/ttf/DejaVuSans.ttf"
        self.font = ImageFont.truetype(str(font), max(12, self.size[1] // 38))
        ground = Image.new("RGB", tuple(self.fine.tolist()), "white")
        if "grid" not in scene.hidden:
            on = ImageDraw.Draw(ground)
            for line in self.grid():
                on.line(line.ravel().tolist(), fill=(_GREY,) * 3, width=_FINER)
        # Red, green and blue of all finer pixels, row by row.
        self.ground = np.asarray(ground).reshape(-1, 3).T.copy()

    def project(self, points: Array) -> Array:
        """From points (3, k) to column and row among the finer pixels, and the inverse of the depth, 1/m."""
        x, y, z = self.view @ points - (self.view @ self.scene.camera.position)[:, None]
        scale = np.where(z < 0, -1 / np.where(z < 0, z, 1), 0)
        width, height = self.fine
        return np.stack([width / 2 + self.focal * scale * x, height / 2 - self.focal * scale * y, scale])

    def draw(self, frame: int) -> Image.Image:
        """The image of a frame."""
        scene, pixels, depths = self.scene, self.ground.copy(), np.zeros(self.ground.shape[1])
        opaque, clear = ([x for x in scene.visible(frame) if (x[1].color[3] < 1) == is_clear] for is_clear in (0, 1))
        shown = [x for x in scene.arrows if x.shown[frame]]
        arrows = [arrow(x.start[frame], x.end[frame], 0.016 * scene.size, x.color) for x in shown]
        clear.sort(key=lambda item: -float(np.linalg.norm(item[0][:3, 3] - scene.camera.position)))
        for placed in (opaque, [(np.eye(4), solid) for solid in arrows], *([item] for item in clear)):
            if placed:
                self.paint(pixels, depths, placed)
        planes = [Image.fromarray(plane.reshape(self.fine[::-1])).reduce(_FINER) for plane in pixels]
        image = Image.merge("RGB", planes)
        if "text" not in scene.hidden:
            self.write(ImageDraw.Draw(image, "RGBA"), frame)
        return image

    def write(self, on: ImageDraw.ImageDraw, frame: int) -> None:
        """Write what happens beside its marks, the time, and the names of arrows and loops."""
        scene, step = self.scene, 1.4 * self.font.size
        texts = []
        for node in scene.nodes:
            if node.text and node.shown[frame]:
                column, row, _ = self.project(node.poses[frame, :3, 3:])[:, 0] / _FINER
                texts.append((column + 0.6 * step, row, node.text, (0, 0, 0)))
        if len(scene.times) > 1:
            texts.append((0.7 * step, step, f"{scene.times[frame]:.2f} s", (0, 0, 0)))
        for k, (name, color) in enumerate(scene.legend(frame)):
            red, green, blue = (round(255 * x) for x in color[:3])
            texts.append((0.7 * step, self.size[1] - step * (k + 0.8), name, (red, green, blue)))
        for column, row, text, color in texts:
            # Text beyond the right edge is moved back.
            at = min(column, self.size[0] - on.textlength(text, font=self.font) - 4), row
            left, top, right, bottom = on.textbbox(at, text, font=self.font, anchor="lm")
            on.rectangle((left - 2, top - 2, right + 2, bottom + 2), fill=(255, 255, 255, 178))
            on.text(at, text, fill=color, font=self.font, anchor="lm")

    def ahead(self, flat: Array) -> Flags:
        """Whether projected points (3, …) are in front of the camera, and not too near."""
        scale: Array = flat[2]
        return (scale > 0) & (scale * 0.01 * self.scene.size < 1)

    def paint(self, pixels: Any, depths: Array, placed: Sequence[tuple[Array, Solid]]) -> None:
        """Paint solids of one opacity at their poses on pixels (3, k), 0 to 255, where they are nearest.

        Depths (k,), inverse ones, become those of opaque solids.
        """
        group = self.group(*(solid for _, solid in placed))
        parts = [(T[:3, :3], T[:3, 3:], x) for (T, _), x in zip(placed, group.surfaces, strict=True)]
        flat = self.project(np.concatenate([R @ x.vertices + p for R, p, x in parts], axis=1))
        bright, gloss = _light(np.concatenate([self.view @ R @ x.normals for R, _, x in parts], axis=1))
        ahead = self.ahead(flat)[group.faces].all(axis=0)
        # Of surfaces in one plane the last one is seen.
        flat[2] *= 1 + _AHEAD * np.repeat(np.arange(len(parts)), [x.vertices.shape[1] for _, _, x in parts])
        (ax, bx), (ay, by) = _sides(*flat[:2].take(group.faces, axis=1))
        front = ax * by < ay * bx
        # Unless parts of a closed surface are behind the camera, which may be inside of it.
        away = group.closed & ~front & (np.bincount(group.owner, ~ahead) == 0)[group.owner]
        some, (width, height) = np.flatnonzero(ahead & ~away), self.fine.tolist()
        for block in np.array_split(some, max(1, len(some) // _BLOCK) if group.opacity == 1 else 1):
            x, y, depth = flat.take(group.faces.take(block, axis=1), axis=1)
            which, rows, columns = _covered(x, y, width, height)
            at = rows * width + columns
            (ax, bx), (ay, by), (a, b) = _sides(x, y, depth)
            area = ax * by - ay * bx
            scale = 1 / np.where(area == 0, np.inf, area)
            right, down = columns + 0.5 - x[0].take(which), rows + 0.5 - y[0].take(which)
            u = (by * scale).take(which) * right - (bx * scale).take(which) * down
            v = (ax * scale).take(which) * down - (ay * scale).take(which) * right
            near = depth[0].take(which) + a.take(which) * u + b.take(which) * v
            before = depths.take(at)
            np.maximum.at(depths, at, near)
            seen = np.flatnonzero((near > before) & (near == depths.take(at)))
            at, faces, u, v = at[seen], block[which[seen]], u[seen], v[seen]
            corners = group.faces.take(faces, axis=1) + bright.size // 2 * (1 - front.take(faces))
            weights = 1 - u - v, u, v
            diffuse, shine = (
                sum(w * values.take(corner) for w, corner in zip(weights, corners, strict=True))
                for values in (bright, gloss)
            )
            for plane, colors in zip(pixels, group.colors, strict=True):
                painted = group.opacity * np.minimum(diffuse * colors.take(faces) + shine, 255)
                plane[at] = painted + (1 - group.opacity) * plane.take(at) + 0.5
            if group.opacity < 1:
                depths[at] = before[seen]

    def grid(self) -> list[Array]:
        """The lines, (k, 2), of a horizontal grid through the origin."""
        up, (cell, count) = self.scene.camera.up, self.scene.grid
        first = np.cross(up, np.eye(3)[int(np.argmin(np.abs(up)))])
        first /= np.linalg.norm(first)
        second = np.cross(up, first)
        at = cell * np.arange(-count, count + 1)
        along = np.linspace(at[0], at[-1], 40)
        ways = (first, second), (second, first)
        lines = [self.project(np.outer(u, along) + x * v[:, None]) for u, v in ways for x in at]
        return [found for line in lines if len(found := line[:2, self.ahead(line)].T) > 1]


def _light(normals: Array) -> tuple[Array, Array]:
    """Of normals (3, k) along the axes of the picture: brightness and gloss, of the front, then of the back, (2 k,).

    Triangles that are seen from behind are lit as from the front.
    """
    up, lit, glossy = (np.concatenate([x, -x]) for x in np.stack([np.eye(3)[1], _LIGHT, _GLOSS]) @ normals)
    fourth = np.square(np.square(np.maximum(glossy, 0)))
    return 0.54 + 0.1 * up + 0.38 * np.maximum(lit, 0), 255 * 0.16 * fourth * np.square(np.square(fourth))


def _sides(*values: Array) -> Any:
    """Of numbers at the corners of triangles, (3, n) each: those of the second and third one less that of the first."""
    return ((x[1] - x[0], x[2] - x[0]) for x in values)


def _covered(x: Array, y: Array, width: int, height: int) -> tuple[Array, Array, Array]:
    """The pixels whose centres are within triangles (3, n): triangle, row and column of each."""
    corners = [*zip(x, y, strict=True)]
    for k in (0, 1, 0):
        (xa, ya), (xb, yb) = corners[k : k + 2]
        up = ya <= yb
        corners[k] = np.where(up, xa, xb), np.minimum(ya, yb)
        corners[k + 1] = np.where(up, xb, xa), np.maximum(ya, yb)
    (xa, ya), (xb, yb), (xc, yc) = corners
    # The row of the middle corner cuts a triangle in two; each part is beside the edge from the lowest to the highest.
    cuts = [np.ceil(at - 0.5).clip(0, height).astype(int) for at in (ya, yb, yc)]
    part, rows = _runs(np.concatenate(cuts[:2]), np.concatenate(cuts[1:]))
    which = np.tile(np.arange(len(xa)), 2).take(part)

    def crossed(of: Array, *ends: tuple[Array, Array, Array, Array]) -> Array:
        x0, y0, x1, y1 = np.concatenate(ends, axis=1)
        slope = (x1 - x0) / np.where(y1 > y0, y1 - y0, 1)
        at: Array = x0.take(of) + (rows + 0.5 - y0.take(of)) * slope.take(of)
        return np.ceil(at - 0.5).clip(0, width).astype(int)

    one, other = crossed(which, (xa, ya, xc, yc)), crossed(part, (xa, ya, xb, yb), (xb, yb, xc, yc))
    line, columns = _runs(np.minimum(one, other), np.maximum(one, other))
    return which.take(line), rows.take(line), columns


def _runs(first: Array, end: Array) -> tuple[Any, Any]:
    """The integers from first to before end, (n,) each, one run after the other: the index of the run, the integer."""
    count = np.maximum(end - first, 0)
    which = np.repeat(np.arange(len(count)), count)
    return which, np.arange(len(which)) + (first - np.cumsum(count) + count)[which]
