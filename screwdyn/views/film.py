"""Films and pictures of scenes, in the format of their suffix: pages, and what Matplotlib draws: PNG, GIF and MP4.

Pages do not need Matplotlib, which is imported where it draws.
"""

from __future__ import annotations

import base64
import html
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from tqdm import tqdm

from screwdyn.core.errors import ScrewdynError
from screwdyn.core.types import Array
from screwdyn.views import checked_path
from screwdyn.views.scene import Camera, Scene
from screwdyn.views.solids import Solid, arrow

if TYPE_CHECKING:
    from screwdyn.views.figures import Figure

__all__ = ["Animation", "film_path", "film_rate", "picture_path", "write_film"]

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


def _draw_frame(figure: Figure, scene: Scene, surfaces: dict[Solid, _Surface], frame: int) -> None:
    """Draw a frame into a figure, instead of what it shows; the triangles of solids are kept from frame to frame."""
    figure.clear()
    figure.set_layout_engine("none")
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    half = np.tan(np.radians(Camera.FIELD_OF_VIEW / 2))
    axes.set(xlim=(-half * _WIDTH / _HEIGHT, half * _WIDTH / _HEIGHT), ylim=(-half, half))
    project = _projection(scene.camera)
    _draw_grid(axes, scene, project)
    _draw_surfaces(axes, scene, surfaces, frame, project)
    for node in scene.texts:
        if node.shown[frame]:
            (x, y, _), box = project(node.poses[frame, :3, 3]), {"color": "white", "alpha": 0.7, "pad": 1}
            axes.text(x, y, f"  {node.text}", fontsize=9, parse_math=False, bbox=box)
    if len(scene.times) > 1:
        axes.text(0.02, 0.95, f"{scene.times[frame]:.2f} s", fontsize=11, transform=axes.transAxes)
    for k, (name, color) in enumerate(scene.legend(frame)):
        axes.text(0.02, 0.03 + 0.045 * k, name, fontsize=9, color=color, parse_math=False, transform=axes.transAxes)


def _drawn(scene: Scene, frames: Iterable[int]) -> Iterator[Figure]:
    """A figure that shows the frames of a scene, one after another."""
    from screwdyn.views.figures import blank_figure

    figure, surfaces = blank_figure(_WIDTH, _HEIGHT), dict[Solid, _Surface]()
    for frame in frames:
        _draw_frame(figure, scene, surfaces, frame)
        yield figure


def _write_png(scene: Scene, path: Path, frames: Iterable[int]) -> None:
    for figure in _drawn(scene, frames):
        figure.savefig(path, dpi=figure.dpi)


def write_gif(scene: Scene, path: Path, frames: Iterable[int]) -> None:
    """Write an animated GIF, which is repeated for ever."""
    # Without writer.saving, which finishes an interrupted film too.
    for k, figure in enumerate(_drawn(scene, frames)):
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
    with tempfile.TemporaryFile() as said:
        # In a session of its own, so that Ctrl-C reaches this process alone.
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=said, start_new_session=True
        )
        assert process.stdin is not None
        with suppress(BrokenPipeError), process:
            for figure in _drawn(scene, frames):
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


def _projection(camera: Camera) -> Callable[[Array], Array]:
    """From points (…, 3) to x and y in the picture, and the distance along the line of sight, m."""
    axes = _view(camera)

    def project(points: Array) -> Array:
        x, y, z = np.moveaxis((points - camera.position) @ axes.T, -1, 0)
        return np.stack([-x / z, -y / z, -z], axis=-1)

    return project


def _view(camera: Camera) -> Array:
    """The axes of the picture as rows: right, up, towards the viewer."""
    back = camera.position - camera.target
    back = back / np.linalg.norm(back)
    right = np.cross(camera.up, back)
    right /= np.linalg.norm(right)
    return np.stack([right, np.cross(back, right), back])


def _draw_surfaces(
    axes: Any, scene: Scene, surfaces: dict[Solid, _Surface], frame: int, project: Callable[[Array], Array]
) -> None:
    """Draw all triangles, the farthest first."""
    from matplotlib.collections import PolyCollection

    fresh = [
        arrow(found.start[frame], found.end[frame], 0.016 * scene.size, found.color)
        for found in scene.arrows
        if found.shown[frame]
    ]
    corners, normals, colors = [np.zeros((0, 3, 3))], [np.zeros((0, 3))], [np.zeros((0, 4))]
    placed = [(np.eye(4), _Surface(solid, scene.size)) for solid in fresh]
    for T, solid in scene.visible(frame):
        if solid not in surfaces:
            surfaces[solid] = _Surface(solid, scene.size)
        placed.append((T, surfaces[solid]))
    for T, surface in placed:
        points, across = surface.corners @ T[:3, :3].T + T[:3, 3], surface.normals @ T[:3, :3].T
        seen = np.einsum("ni,ni->n", across, scene.camera.position - points[:, 0])
        kept = seen > 0 if surface.closed else np.ones(len(seen), dtype=bool)
        corners.append(points[kept])
        normals.append(across[kept] * np.where(seen[kept] < 0, -1.0, 1.0)[:, None])
        colors.append(np.broadcast_to(surface.color, (int(kept.sum()), 4)))
    flat = project(np.concatenate(corners))
    light = np.concatenate(normals) @ (_LIGHT @ _view(scene.camera))
    painted = np.concatenate(colors)
    painted[:, :3] *= (0.55 + 0.45 * np.clip(light, 0, 1))[:, None]
    ahead = flat[..., 2].min(axis=1) > 0.01 * scene.size
    order = np.argsort(-flat[ahead, :, 2].mean(axis=1), kind="stable")
    shown, tint = flat[ahead][order, :, :2], painted[ahead][order]
    # Edges close the gaps between triangles, but those of translucent ones would be a web of lines.
    widths = np.where(tint[:, 3] == 1, 0.7, 0.0)
    axes.add_collection(PolyCollection(shown, facecolors=tint, edgecolors=tint, linewidths=widths), autolim=False)


def _draw_grid(axes: Any, scene: Scene, project: Callable[[Array], Array]) -> None:
    """Lines of a horizontal grid through the origin."""
    from matplotlib.collections import LineCollection

    first = np.cross(scene.camera.up, np.eye(3)[int(np.argmin(np.abs(scene.camera.up)))])
    first /= np.linalg.norm(first)
    second = np.cross(scene.camera.up, first)
    cell, count = scene.grid
    at = cell * np.arange(-count, count + 1)
    ends = np.array([at[0], at[-1]])
    lines = [np.outer(ends, u) + x * v for u, v in ((first, second), (second, first)) for x in at]
    points = [project(np.linspace(line[0], line[1], 40)) for line in lines]
    ahead = [line[line[:, 2] > 0.05 * scene.size, :2] for line in points]
    axes.add_collection(LineCollection(ahead, colors="0.85", linewidths=0.6, zorder=0), autolim=False)


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


def picture_path(path: str | os.PathLike[str]) -> Path:
    """The path of a picture; errors as for :func:`film_path`."""
    return checked_path(path, (".html", ".png"))


def film_rate(path: Path, fps: float) -> float:
    """The frames per second that a format can have: a frame of a GIF lasts a whole number of hundredths of a second."""
    return 100 / max(2, round(100 / fps)) if path.suffix.lower() == ".gif" else fps


def write_film(scene: Scene, path: Path, progress: bool = False) -> Animation:
    """Write a film of all frames, or a picture of a single one; ScrewdynError if it cannot be written."""
    target, frames = path.resolve(), range(len(scene.times))
    try:
        # Written elsewhere first: an interrupted film would look like a whole one, and replace the former file.
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".screwdyn-") as folder:
            part = Path(folder) / target.name
            shown = tqdm(frames, disable=not progress, unit=" frames", leave=False)
            _WRITERS[path.suffix.lower()](scene, part, shown)
            part.replace(target)
    except OSError as error:
        raise ScrewdynError(f"cannot write {str(path)!r}: {error.strerror or error}") from None
    return Animation(path.absolute())
