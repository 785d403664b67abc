"""Pictures of scenes: triangles become pixels by a depth buffer in NumPy; Pillow writes lines and texts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from screwdyn.core import Array, Flags, ScrewdynError
from screwdyn.views.scene import Scene, Solid, arrow, creased

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
    """A solid as it is painted: vertices and normals there, (k, 3); dense ones without details below a length, m."""

    def __init__(self, solid: Solid, detail: float) -> None:
        vertices, faces = solid.vertices, solid.faces
        if len(faces) > _DENSE:
            _, merged = np.unique(np.round(vertices / detail), axis=0, return_inverse=True)
            faces = merged.reshape(-1)[faces]
            count = np.bincount(merged.ravel())[:, None]
            vertices = np.stack([np.bincount(merged.ravel(), x) for x in vertices.T], axis=1) / count
        self.vertices, self.faces = creased(vertices, faces)
        a, b, c = np.moveaxis(self.vertices[self.faces], 1, 0)
        about = [np.bincount(self.faces.ravel(), np.repeat(x, 3), len(self.vertices)) for x in np.cross(b - a, c - a).T]
        normals = np.stack(about, axis=1)
        self.normals = normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
        # Whether every edge is that of one other triangle, which runs along it the other way: what is inside is hidden.
        same = np.unique(self.vertices, axis=0, return_inverse=True)[1].reshape(-1)[self.faces]
        edges = np.stack([same, np.roll(same, -1, axis=1)], axis=-1).reshape(-1, 2)
        ways, other = (np.unique(x, axis=0, return_counts=True) for x in (edges, edges[:, ::-1]))
        self.closed = bool((ways[1] == 1).all()) and np.array_equal(ways[0], other[0])
        self.closed &= bool((a * np.cross(b, c)).sum() > 0)


class Painter:
    """Draws frames of a scene as images."""

    def __init__(self, scene: Scene) -> None:
        self.scene, self.size = scene, scene.camera.size
        self.surfaces: dict[Solid, _Surface] = {}
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
        self.ground = np.asarray(ground).reshape(-1, 3)

    def project(self, points: Array) -> Array:
        """From points (…, 3) to column and row among the finer pixels, and the inverse of the depth, 1/m."""
        x, y, z = np.moveaxis((points - self.scene.camera.position) @ self.view.T, -1, 0)
        scale = np.divide(-1.0, z, out=np.zeros_like(z), where=z < 0)
        width, height = self.fine
        return np.stack([width / 2 + self.focal * scale * x, height / 2 - self.focal * scale * y, scale], axis=-1)

    def draw(self, frame: int) -> Image.Image:
        """The image of a frame."""
        scene, clear = self.scene, []
        pixels, depths = self.ground.astype(np.float32), np.zeros(len(self.ground))
        solid_parts = []
        for T, solid in scene.visible(frame):
            if solid.color[3] == 1:
                solid_parts.append(self.lit(T, solid))
            else:
                clear.append((float(np.linalg.norm(T[:3, 3] - scene.camera.position)), solid.color[3], (T, solid)))
        for found in scene.arrows:
            if found.shown[frame]:
                solid = arrow(found.start[frame], found.end[frame], 0.016 * scene.size, found.color)
                solid_parts.append(self.lit(np.eye(4), solid))
        if solid_parts:
            self.paint(pixels, depths, solid_parts, 1.0)
        for _, opacity, placed in sorted(clear, key=lambda item: -item[0]):
            self.paint(pixels, depths.copy(), [self.lit(*placed)], opacity)
        width, height = self.fine
        image = Image.fromarray(pixels.clip(0, 255).astype(np.uint8).reshape(height, width, 3)).reduce(_FINER)
        if "text" not in scene.hidden:
            self.write(ImageDraw.Draw(image, "RGBA"), frame)
        return image

    def write(self, on: ImageDraw.ImageDraw, frame: int) -> None:
        """Write what happens beside its marks, the time, and the names of arrows and loops."""
        scene, step = self.scene, 1.4 * self.font.size
        texts = []
        for node in scene.nodes:
            if node.text and node.shown[frame]:
                column, row, _ = self.project(node.poses[frame, :3, 3]) / _FINER
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

    def lit(self, T: Array, solid: Solid) -> tuple[Array, Array, Array]:
        """Of a solid at a pose: vertices in the picture (k, 3), their colours on both sides (2, k, 3), and faces."""
        if solid not in self.surfaces:
            self.surfaces[solid] = _Surface(solid, self.detail)
        surface = self.surfaces[solid]
        normals = surface.normals @ (self.view @ T[:3, :3]).T
        # Triangles that are seen from behind are lit as from the front.
        sides = np.stack([normals, -normals])
        bright = 0.54 + 0.1 * sides[..., 1] + 0.38 * np.maximum(sides @ _LIGHT, 0)
        gloss = 0.16 * np.maximum(sides @ _GLOSS, 0) ** 20
        colors = 255 * (bright[..., None] * np.array(solid.color[:3]) + gloss[..., None])
        flat = self.project(surface.vertices @ T[:3, :3].T + T[:3, 3])
        faces = surface.faces[self.ahead(flat)[surface.faces].all(axis=1)]
        if surface.closed and len(faces) == len(surface.faces):  # the camera is outside
            (x, y), (p, q, r) = flat[:, :2].T, faces.T
            faces = faces[(x[q] - x[p]) * (y[r] - y[p]) < (y[q] - y[p]) * (x[r] - x[p])]
        return flat, colors, faces

    def ahead(self, flat: Array) -> Flags:
        """Whether projected points are in front of the camera, and not too near."""
        return (flat[..., 2] > 0) & (flat[..., 2] * 0.01 * self.scene.size < 1)

    def paint(self, pixels: Any, depths: Array, solids: Sequence[tuple[Array, Array, Array]], opacity: float) -> None:
        """Paint solids on pixels (k, 3) where they are nearest; depths (k,), inverse ones, become theirs."""
        begins = np.cumsum([0, *(len(flat) for flat, _, _ in solids)])
        faces = np.concatenate([faces + begin for (_, _, faces), begin in zip(solids, begins, strict=False)]).T
        colors = np.concatenate([colors for _, colors, _ in solids], axis=1)
        # Of surfaces in one plane the last one is seen.
        flat = np.concatenate([flat * (1, 1, 1 + k * _AHEAD) for k, (flat, _, _) in enumerate(solids)])
        triangles = faces, *(values[faces] for values in flat.T.copy())
        width, height = self.fine.tolist()
        (west, east), (low, high) = _centres(triangles[1], width), _centres(triangles[2], height)
        some = np.flatnonzero((west < east) & (low < high))
        for block in np.array_split(some, max(1, len(some) // _BLOCK) if opacity == 1.0 else 1):
            corners, x, y, depth = (values[:, block] for values in triangles)
            (_, ax, bx), (_, ay, by), (_, a, b) = x - x[0], y - y[0], depth - depth[0]
            area = ax * by - ay * bx
            area[area == 0] = np.inf
            which, rows, columns = _covered(x, y, low[block], high[block], width)
            right, down = columns + 0.5 - x[0, which], rows + 0.5 - y[0, which]
            slope_x, slope_y = (a * by - b * ay) / area, (b * ax - a * bx) / area
            near = depth[0, which] + slope_x[which] * right + slope_y[which] * down
            at = rows * width + columns
            before = depths[at]
            np.maximum.at(depths, at, near)
            seen = np.flatnonzero((near > before) & (near == depths[at]))
            which, at, right, down = which[seen], at[seen], right[seen], down[seen]
            ax, ay, bx, by, area = ax[which], ay[which], bx[which], by[which], area[which]
            u, v = (right * by - down * bx) / area, (down * ax - right * ay) / area
            side, (first, second, third) = (area > 0).astype(int), corners[:, which]
            painted = colors[side, first] * (1 - u - v)[:, None]
            painted += colors[side, second] * u[:, None] + colors[side, third] * v[:, None]
            pixels[at] += opacity * (painted - pixels[at])

    def grid(self) -> list[Array]:
        """The lines, (k, 2), of a horizontal grid through the origin."""
        up, (cell, count) = self.scene.camera.up, self.scene.grid
        first = np.cross(up, np.eye(3)[int(np.argmin(np.abs(up)))])
        first /= np.linalg.norm(first)
        second = np.cross(up, first)
        at = cell * np.arange(-count, count + 1)
        along = np.linspace(at[0], at[-1], 40)[:, None]
        lines = [self.project(along * u + x * v) for u, v in ((first, second), (second, first)) for x in at]
        return [found for line in lines if len(found := line[self.ahead(line), :2]) > 1]


def _centres(x: Array, count: int) -> tuple[Any, ...]:
    """First and end of the centres of pixels, of which there are some, within the extent (3, n) of triangles."""
    extent = np.minimum(np.minimum(*x[:2]), x[2]), np.maximum(np.maximum(*x[:2]), x[2])
    return tuple(np.ceil(bound - 0.5).clip(0, count).astype(int) for bound in extent)


def _covered(x: Array, y: Array, first: Array, end: Array, width: int) -> tuple[Array, Array, Array]:
    """The pixels whose centres are within triangles (3, n) of some rows: triangle, row and column of each."""
    which, rows = _runs(first, end)
    x, y = x[:, which], y[:, which] - (rows + 0.5)
    left, right = np.full(len(rows), np.inf), np.full(len(rows), -np.inf)
    for k in range(3):
        (xa, ya), (xb, yb) = (x[k - 1], y[k - 1]), (x[k], y[k])
        crossed = (ya <= 0) != (yb <= 0)
        found = xa - np.divide(ya, yb - ya, out=np.zeros(len(rows)), where=crossed) * (xb - xa)
        np.minimum(left, found, out=left, where=crossed)
        np.maximum(right, found, out=right, where=crossed)
    lines, columns = _runs(*(np.ceil(bound - 0.5).clip(0, width).astype(int) for bound in (left, right)))
    return which[lines], rows[lines], columns


def _runs(first: Array, end: Array) -> tuple[Any, Any]:
    """The integers from first to before end, (n,) each, one run after the other: the index of the run, the integer."""
    count = np.maximum(end - first, 0)
    which = np.repeat(np.arange(len(count)), count)
    return which, np.arange(len(which)) + (first - np.cumsum(count) + count)[which]
