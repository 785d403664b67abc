"""Films and pictures of scenes, in the format of their suffix: pages, and what Matplotlib draws: PNG, GIF and MP4.

Pages do not need Matplotlib, which is imported where it draws.
"""

from __future__ import annotations

import base64
import html
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import TYPE_CHECKING, Any

import numpy as np
from tqdm import tqdm

from screwdyn.core.errors import ScrewdynError, file_errors
from screwdyn.core.types import Array
from screwdyn.views import checked_path
from screwdyn.views.scene import Camera, Scene, Solid, arrow

if TYPE_CHECKING:
    from screwdyn.views.figures import Figure

# Inches of 100 pixels.
_WIDTH, _HEIGHT = 6.4, 4.8
# Longest edge of a triangle as a fraction of the robot: triangles are drawn in order of their distances.
_FINE = 0.12
# Solids with more triangles are not divided further.
_MOST = 50_000
# Details of solids with many triangles that are smaller than this fraction of the robot are merged.
_DETAIL, _DENSE = 0.004, 2000
# Direction to the light in axes of the picture: right, up, towards the viewer.
_LIGHT = np.array([-0.35, 0.6, 0.72])


class _Surface:
    """The triangles of a solid: corners (n, 3, 3), unit normals (n, 3), colour; whether none is seen from behind."""

    def __init__(self, solid: Solid, size: float) -> None:
        triangles = _refined(solid.vertices[solid.faces], _FINE * size)
        # Details that are smaller than a pixel are merged: corners move to the corners of a grid.
        merged = np.round(triangles / (_DETAIL * size)) * (_DETAIL * size) if len(triangles) > _DENSE else triangles
        kept = np.linalg.norm(_across(merged), axis=1) > 0
        across = _across(triangles[kept])
        self.corners, self.normals = merged[kept], across / np.linalg.norm(across, axis=1, keepdims=True)
        self.color, self.closed = np.array(solid.color), _closed(solid) and solid.color[3] == 1


class _Painter:
    """Draws frames of a scene into one figure, instead of what it shows; the triangles of solids are kept."""

    def __init__(self, scene: Scene) -> None:
        from screwdyn.views.figures import blank_figure

        self.scene, self.camera, self.figure = scene, scene.camera, blank_figure(_WIDTH, _HEIGHT)
        self.surfaces: dict[Solid, _Surface] = {}
        back = self.camera.position - self.camera.target
        back = back / np.linalg.norm(back)
        right = np.cross(self.camera.up, back)
        right /= np.linalg.norm(right)
        # The axes of the picture as rows: right, up, towards the viewer.
        self.view = np.stack([right, np.cross(back, right), back])

    def project(self, points: Array) -> Array:
        """From points (…, 3) to x and y in the picture, and the distance along the line of sight, m."""
        x, y, z = np.moveaxis((points - self.camera.position) @ self.view.T, -1, 0)
        return np.stack([-x / z, -y / z, -z], axis=-1)

    def draw(self, frame: int) -> Figure:
        """The figure, which shows a frame."""
        from matplotlib.collections import LineCollection, PolyCollection

        figure, scene = self.figure, self.scene
        figure.clear()
        figure.set_layout_engine("none")
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set_axis_off()
        half = np.tan(np.radians(Camera.FIELD_OF_VIEW / 2))
        axes.set(xlim=(-half * _WIDTH / _HEIGHT, half * _WIDTH / _HEIGHT), ylim=(-half, half))
        axes.add_collection(LineCollection(self.grid(), colors="0.85", linewidths=0.6, zorder=0), autolim=False)
        shown, tint = self.triangles(frame)
        # Edges close the gaps between triangles, but those of translucent ones would be a web of lines.
        widths = np.where(tint[:, 3] == 1, 0.7, 0.0)
        axes.add_collection(PolyCollection(shown, facecolors=tint, edgecolors=tint, linewidths=widths), autolim=False)
        for node in scene.nodes:
            if node.text and node.shown[frame]:
                (x, y, _), box = self.project(node.poses[frame, :3, 3]), {"color": "white", "alpha": 0.7, "pad": 1}
                axes.text(x, y, f"  {node.text}", fontsize=9, parse_math=False, bbox=box)
        if len(scene.times) > 1:
            axes.text(0.02, 0.95, f"{scene.times[frame]:.2f} s", fontsize=11, transform=axes.transAxes)
        for k, (name, color) in enumerate(scene.legend(frame)):
            at = 0.02, 0.03 + 0.045 * k
            axes.text(*at, name, fontsize=9, color=color, parse_math=False, transform=axes.transAxes)
        return figure

    def triangles(self, frame: int) -> tuple[Any, Array]:
        """The triangles that are seen, (k, 3, 2), the farthest first, and their colours, (k, 4)."""
        scene = self.scene
        placed = []
        for found in scene.arrows:
            if found.shown[frame]:
                solid = arrow(found.start[frame], found.end[frame], 0.016 * scene.size, found.color)
                placed.append((np.eye(4), _Surface(solid, scene.size)))
        for T, solid in scene.visible(frame):
            if solid not in self.surfaces:
                self.surfaces[solid] = _Surface(solid, scene.size)
            placed.append((T, self.surfaces[solid]))
        corners, normals, colors = [np.zeros((0, 3, 3))], [np.zeros((0, 3))], [np.zeros((0, 4))]
        for T, surface in placed:
            points, across = surface.corners @ T[:3, :3].T + T[:3, 3], surface.normals @ T[:3, :3].T
            seen = np.einsum("ni,ni->n", across, self.camera.position - points[:, 0])
            kept = seen > 0 if surface.closed else np.ones(len(seen), dtype=bool)
            corners.append(points[kept])
            normals.append(across[kept] * np.where(seen[kept] < 0, -1.0, 1.0)[:, None])
            colors.append(np.broadcast_to(surface.color, (int(kept.sum()), 4)))
        flat, painted = self.project(np.concatenate(corners)), np.concatenate(colors)
        light = np.concatenate(normals) @ (_LIGHT @ self.view)
        painted[:, :3] *= (0.55 + 0.45 * np.clip(light, 0, 1))[:, None]
        ahead = flat[..., 2].min(axis=1) > 0.01 * scene.size
        order = np.argsort(-flat[ahead, :, 2].mean(axis=1), kind="stable")
        return flat[ahead][order, :, :2], painted[ahead][order]

    def grid(self) -> list[Array]:
        """The lines, (k, 2), of a horizontal grid through the origin."""
        first = np.cross(self.camera.up, np.eye(3)[int(np.argmin(np.abs(self.camera.up)))])
        first /= np.linalg.norm(first)
        second = np.cross(self.camera.up, first)
        cell, count = self.scene.grid
        at = cell * np.arange(-count, count + 1)
        along = np.linspace(at[0], at[-1], 40)[:, None]
        lines = [self.project(along * u + x * v) for u, v in ((first, second), (second, first)) for x in at]
        return [line[line[:, 2] > 0.05 * self.scene.size, :2] for line in lines]


def _write_png(scene: Scene, path: Path, frames: Iterable[int]) -> None:
    for figure in map(_Painter(scene).draw, frames):
        figure.savefig(path, dpi=figure.dpi)


def write_gif(scene: Scene, path: Path, frames: Iterable[int]) -> None:
    """Write an animated GIF, which is repeated for ever."""
    # Without writer.saving, which finishes an interrupted film too.
    for k, figure in enumerate(map(_Painter(scene).draw, frames)):
        if k == 0:
            from matplotlib.animation import PillowWriter

            writer = PillowWriter(fps=_rate(scene))
            writer.setup(figure, path, figure.dpi)
        writer.grab_frame()
    writer.finish()


def _write_mp4(scene: Scene, path: Path, frames: Iterable[int]) -> None:
    """Write an MP4; ScrewdynError if there is no ffmpeg, OSError with its message if it fails."""
    size = f"{100 * _WIDTH:.0f}x{100 * _HEIGHT:.0f}"
    raw = ["-f", "rawvideo", "-pix_fmt", "rgba", "-s", size, "-framerate", f"{_rate(scene):.9g}"]
    out = ["-vcodec", "h264", "-pix_fmt", "yuv420p", "-y", str(path)]
    command = [ffmpeg(), "-loglevel", "error", *raw, "-i", "pipe:", *out]
    with TemporaryFile() as said:
        # In a session of its own, so that Ctrl-C reaches this process alone.
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=said, start_new_session=True
        )
        assert process.stdin is not None
        with suppress(BrokenPipeError), process:
            for figure in map(_Painter(scene).draw, frames):
                figure.savefig(process.stdin, format="rgba", dpi=figure.dpi)
        if process.returncode:
            said.seek(0)
            raise OSError(f"ffmpeg: {said.read().decode(errors='replace').strip() or process.returncode}")


def ffmpeg() -> str:
    """The command of ffmpeg, on the path or of the package imageio-ffmpeg; ScrewdynError if there is none."""
    found = shutil.which("ffmpeg")
    if found is None:
        try:
            from imageio_ffmpeg import get_ffmpeg_exe

            found = str(get_ffmpeg_exe())
        except (ImportError, RuntimeError):
            raise ScrewdynError(
                "an MP4 needs ffmpeg: pip install imageio-ffmpeg, or apt-get install ffmpeg; "
                "films with the suffixes .html and .gif do not"
            ) from None
    return found


def _rate(scene: Scene) -> Any:
    """Frames per second; of a single frame, 1."""
    return float(1 / (scene.times[1] - scene.times[0])) if len(scene.times) > 1 else 1.0


def _refined(triangles: Array, longest: float) -> Array:
    """The triangles with edges halved until none is longer than some length, or there are too many."""
    done: list[Array] = []
    while len(triangles) and sum(map(len, done)) + len(triangles) <= _MOST:
        edges = np.linalg.norm(np.roll(triangles, -1, axis=1) - triangles, axis=2)
        long = edges.max(axis=1) > longest
        done.append(triangles[~long])
        # The longest edge first: from corner 0 to corner 1.
        turns = (edges[long].argmax(axis=1)[:, None] + np.arange(3)) % 3
        turned = np.take_along_axis(triangles[long], turns[..., None], axis=1)
        a, b, c = np.moveaxis(turned, 1, 0)
        middle = (a + b) / 2
        triangles = np.concatenate([np.stack([a, middle, c], axis=1), np.stack([middle, b, c], axis=1)])
    return np.concatenate([*done, triangles])


def _across(triangles: Array) -> Array:
    """Vectors across triangles, twice as long as their areas."""
    return np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])


def _closed(solid: Solid) -> bool:
    """Whether each edge of a triangle is that of another one in the opposite direction, as of a solid body."""
    _, merged = np.unique(solid.vertices.round(9), axis=0, return_inverse=True)
    faces = merged.reshape(-1)[solid.faces]
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    edges = edges[edges[:, 0] != edges[:, 1]]
    forward, backward = (pairs[np.lexsort(pairs.T)] for pairs in (edges, edges[:, ::-1]))
    return np.array_equal(forward, backward)


def _write_page(scene: Scene, path: Path, frames: Iterable[int]) -> None:
    from screwdyn.views.web import page

    title = f"<title>{html.escape(path.stem)}</title>"
    path.write_text(page(scene, frames).replace("<title>Viser</title>", title, 1), encoding="utf-8")


_WRITERS: Mapping[str, Callable[[Scene, Path, Iterable[int]], None]] = {
    ".html": _write_page,
    ".gif": write_gif,
    ".mp4": _write_mp4,
    ".png": _write_png,
}


@dataclass(frozen=True)
class Animation:
    """A file of a film or a picture, which shows itself in a notebook.

    Attributes
    ----------
    path : Path
        Absolute.
    """

    path: Path

    def _repr_html_(self) -> str:
        suffix = self.path.suffix.lower()
        if suffix == ".html":
            from screwdyn.views.web import embedded

            return embedded(self.path.read_text(encoding="utf-8"))
        data = base64.b64encode(self.path.read_bytes()).decode("ascii")
        if suffix == ".mp4":
            return f'<video controls loop src="data:video/mp4;base64,{data}"></video>'
        return f'<img src="data:image/{suffix[1:]};base64,{data}" alt="{html.escape(self.path.stem)}">'


def film_path(path: str | os.PathLike[str]) -> Path:
    """The path of a film, checked before the work for it starts; ScrewdynError if it could not be written."""
    out = checked_path(path, (".html", ".gif", ".mp4"))
    if out.suffix.lower() == ".html":
        import_module("screwdyn.views.web")  # raises the error
    if out.suffix.lower() == ".mp4":
        ffmpeg()
    return out


def film_rate(path: Path, fps: float) -> float:
    """The frames per second that a format can have: a frame of a GIF lasts a whole number of hundredths of a second."""
    return 100 / max(2, round(100 / fps)) if path.suffix.lower() == ".gif" else fps


def write_film(scene: Scene, path: Path, progress: bool = False) -> Animation:
    """Write a film of all frames, or a picture of a single one; ScrewdynError if it cannot be written."""
    target, frames = path.resolve(), range(len(scene.times))
    # Written elsewhere first: an interrupted film would look like a whole one, and replace the former file.
    with file_errors(f"write {str(path)!r}"), TemporaryDirectory(dir=target.parent, prefix=".screwdyn-") as folder:
        part = Path(folder) / target.name
        shown = tqdm(frames, disable=not progress, unit=" frames", leave=False)
        _WRITERS[path.suffix.lower()](scene, part, shown)
        part.replace(target)
    return Animation(path.absolute())
