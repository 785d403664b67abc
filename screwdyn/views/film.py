"""Films and pictures of scenes, in the format of their suffix: pages, PNG, GIF and MP4."""

from __future__ import annotations

import base64
import html
import os
import shutil
import subprocess
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any

from tqdm import tqdm

from screwdyn.core.errors import ScrewdynError, file_errors
from screwdyn.views import checked_path
from screwdyn.views.scene import Scene

# Images that are drawn at a time, in threads.
_AT_ONCE = 2


def _images(scene: Scene, frames: Iterable[int], paletted: bool = False) -> Iterator[Any]:
    """The images of frames, by Pillow; with a palette each, or in all colours."""
    from PIL.Image import Quantize

    from screwdyn.views.picture import Painter

    painter, waiting = Painter(scene), deque[Future[Any]]()

    def drawn(frame: int) -> Any:
        image = painter.draw(frame)
        # The colours of small parts keep a place in the palette, and it takes two thirds of the time of a median cut.
        return image.quantize(method=Quantize.MAXCOVERAGE) if paletted else image

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for frame in frames:
            waiting.append(pool.submit(drawn, frame))
            if len(waiting) > _AT_ONCE:
                yield waiting.popleft().result()
        yield from (image.result() for image in waiting)


def _write_png(scene: Scene, path: Path, frames: Iterable[int]) -> None:
    for image in _images(scene, frames):
        image.save(path, optimize=True)


def _write_gif(scene: Scene, path: Path, frames: Iterable[int]) -> None:
    """Write an animated GIF, which is repeated for ever."""
    images, duration = _images(scene, frames, paletted=True), round(1000 / _rate(scene))
    with path.open("wb") as file:
        next(images).save(file, format="GIF", save_all=True, append_images=images, duration=duration, loop=0)


def _write_mp4(scene: Scene, path: Path, frames: Iterable[int]) -> None:
    """Write an MP4; ScrewdynError if there is no ffmpeg, OSError with its message if it fails."""
    width, height = scene.camera.size
    raw = f"-f rawvideo -pix_fmt rgb24 -s {width}x{height} -framerate {_rate(scene):.9g} -i pipe:"
    command = f"-loglevel error {raw} -vcodec h264 -pix_fmt yuv420p -y".split()
    with TemporaryFile() as said:
        # In a session of its own, so that Ctrl-C reaches this process alone.
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "stderr": said}
        process = subprocess.Popen([ffmpeg(), *command, str(path)], **pipes, start_new_session=True)
        assert process.stdin is not None
        with suppress(BrokenPipeError), process:
            for image in _images(scene, frames):
                process.stdin.write(image.tobytes())
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


def _write_page(scene: Scene, path: Path, frames: Iterable[int]) -> None:
    from screwdyn.views.web import page

    title = f"<title>{html.escape(path.stem)}</title>"
    path.write_text(page(scene, frames).replace("<title>Viser</title>", title, 1), encoding="utf-8")


_WRITERS: Mapping[str, Callable[[Scene, Path, Iterable[int]], None]] = {
    ".html": _write_page,
    ".gif": _write_gif,
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
    import_module(f"screwdyn.views.{'web' if out.suffix.lower() == '.html' else 'picture'}")  # raises the error
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
