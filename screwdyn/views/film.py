"""Scenes as pictures and films, drawn by Matplotlib: PNG, GIF, and MP4 through ffmpeg."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from screwdyn.core.errors import ScrewdynError
from screwdyn.core.types import Array
from screwdyn.views.figures import Figure, LineCollection, PolyCollection, animation, blank_figure
from screwdyn.views.scene import Camera, Scene
from screwdyn.views.triangles import Solid, arrow, ball

__all__ = ["ffmpeg", "write_gif", "write_mp4", "write_png"]

# Inches of 100 pixels.
_WIDTH, _HEIGHT = 6.4, 4.8
_FLASH, _IMPACT = (1.0, 0.85, 0.2, 0.6), (1.0, 0.35, 0.1, 0.7)
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
    """Draw a frame of a scene into a figure, instead of what it shows.

    Parameters
    ----------
    figure : Figure
    scene : Scene
    surfaces : dict
        The triangles of solids, which are kept there from frame to frame.
    frame : int
    """
    figure.clear()
    figure.set_layout_engine("none")
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    half = np.tan(np.radians(Camera.FIELD_OF_VIEW / 2))
    axes.set(xlim=(-half * _WIDTH / _HEIGHT, half * _WIDTH / _HEIGHT), ylim=(-half, half))
    project = _projection(scene.camera)
    _draw_grid(axes, scene, project)
    _draw_surfaces(axes, scene, surfaces, frame, project)
    for flash in scene.flashes:
        if flash.shown[frame]:
            (x, y, _) = project(flash.position)
            axes.text(
                x, y, f"  {flash.text}", fontsize=9, parse_math=False, bbox={"color": "white", "alpha": 0.7, "pad": 1}
            )
    if len(scene.times) > 1:
        axes.text(0.02, 0.95, f"{scene.times[frame]:.2f} s", fontsize=11, transform=axes.transAxes)
    for k, (name, color) in enumerate(scene.legend(frame)):
        axes.text(0.02, 0.03 + 0.045 * k, name, fontsize=9, color=color, parse_math=False, transform=axes.transAxes)


def _drawn(scene: Scene, figure: Figure, frames: Iterable[int]) -> Iterator[None]:
    """Draw the frames of a scene into a figure, one after another."""
    surfaces: dict[Solid, _Surface] = {}
    for frame in frames:
        _draw_frame(figure, scene, surfaces, frame)
        yield


def write_png(scene: Scene, path: Path) -> None:
    """Write a picture of the first frame."""
    figure = blank_figure(_WIDTH, _HEIGHT)
    _draw_frame(figure, scene, {}, 0)
    figure.savefig(path, dpi=100)


def write_gif(scene: Scene, path: Path, frames: Iterable[int]) -> None:
    """Write an animated GIF, which is repeated for ever."""
    figure, writer = blank_figure(_WIDTH, _HEIGHT), animation.PillowWriter(fps=_rate(scene))
    # Without writer.saving, which finishes an interrupted film too.
    writer.setup(figure, path, figure.dpi)
    for _ in _drawn(scene, figure, frames):
        writer.grab_frame()
    writer.finish()


def write_mp4(scene: Scene, path: Path, frames: Iterable[int]) -> None:
    """Write an MP4 with ffmpeg.

    Raises
    ------
    ScrewdynError
        If there is no ffmpeg.
    OSError
        If ffmpeg fails, with its message.
    """
    figure = blank_figure(_WIDTH, _HEIGHT)
    width, height = figure.canvas.get_width_height()
    raw = ["-f", "rawvideo", "-pix_fmt", "rgba", "-s", f"{width}x{height}", "-framerate", f"{_rate(scene):.9g}"]
    out = ["-vcodec", "h264", "-pix_fmt", "yuv420p", "-y", str(path)]
    command = [ffmpeg(), "-loglevel", "error", *raw, "-i", "pipe:", *out]
    with tempfile.TemporaryFile() as said:
        # In a session of its own, so that Ctrl-C reaches this process alone.
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=said, start_new_session=True
        )
        assert process.stdin is not None
        with suppress(BrokenPipeError), process:
            for _ in _drawn(scene, figure, frames):
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
    fresh = [
        arrow(found.start[frame], found.end[frame], 0.016 * scene.size, found.color)
        for found in scene.arrows
        if found.shown[frame]
    ]
    fresh += [
        ball(0.05 * scene.size, flash.position, _IMPACT if flash.impact else _FLASH)
        for flash in scene.flashes
        if flash.shown[frame]
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
        turned = np.take_along_axis(triangles[long], _turns(edges[long].argmax(axis=1)), axis=1)
        a, b, c = np.moveaxis(turned, 1, 0)
        middle = (a + b) / 2
        triangles = np.concatenate([np.stack([a, middle, c], axis=1), np.stack([middle, b, c], axis=1)])
    return np.concatenate([*done, triangles])


def _across(triangles: Array) -> Array:
    """Vectors across triangles, twice as long as their areas."""
    return np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])


def _turns(first: Array) -> Any:
    return ((np.asarray(first)[:, None] + np.arange(3)) % 3)[..., None]


def _closed(solid: Solid) -> bool:
    """Whether each edge of a triangle is that of another one in the opposite direction, as of a solid body."""
    _, merged = np.unique(solid.vertices.round(9), axis=0, return_inverse=True)
    faces = merged.reshape(-1)[solid.faces]
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    edges = edges[edges[:, 0] != edges[:, 1]]
    forward, backward = (pairs[np.lexsort(pairs.T)] for pairs in (edges, edges[:, ::-1]))
    return np.array_equal(forward, backward)
