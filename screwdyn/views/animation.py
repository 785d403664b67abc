"""Files of scenes: films and pictures, in the format of their suffix."""

from __future__ import annotations

import base64
import html
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from tqdm import tqdm

from screwdyn.core.errors import ScrewdynError
from screwdyn.views.scene import Scene

__all__ = ["Animation", "embedded", "film_path", "film_rate", "picture_path", "write_film", "write_picture"]

# Of a page in a notebook, pixels.
_HEIGHT = 480


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
            return embedded(self.path.read_text(encoding="utf-8"))
        data = base64.b64encode(self.path.read_bytes()).decode("ascii")
        if suffix == ".mp4":
            return f'<video controls loop src="data:video/mp4;base64,{data}"></video>'
        return f'<img src="data:image/{suffix[1:]};base64,{data}" alt="{html.escape(self.path.stem)}">'


def embedded(page: str) -> str:
    """A page within another one, as text."""
    frame = 'style="border: 1px solid #ddd; width: 100%;"'
    return f'<iframe srcdoc="{html.escape(page)}" height="{_HEIGHT}" {frame}></iframe>'


def _write_page(scene: Scene, path: Path, frames: Iterable[int]) -> None:
    from screwdyn.views.web import page

    title = f"<title>{html.escape(path.stem)}</title>"
    path.write_text(page(scene, frames).replace("<title>Viser</title>", title, 1), encoding="utf-8")


def _write_gif(scene: Scene, path: Path, frames: Iterable[int]) -> None:
    from screwdyn.views.film import write_gif

    write_gif(scene, path, frames)


def _write_mp4(scene: Scene, path: Path, frames: Iterable[int]) -> None:
    from screwdyn.views.film import write_mp4

    write_mp4(scene, path, frames)


def _write_png(scene: Scene, path: Path, frames: Iterable[int]) -> None:
    from screwdyn.views.film import write_png

    write_png(scene, path)


_Writer = Callable[[Scene, Path, Iterable[int]], None]
_FILMS: Mapping[str, _Writer] = {".html": _write_page, ".gif": _write_gif, ".mp4": _write_mp4}
_PICTURES: Mapping[str, _Writer] = {".html": _write_page, ".png": _write_png}


def film_path(path: str | os.PathLike[str]) -> Path:
    """The path of a film, checked before the work for it starts.

    Raises
    ------
    ScrewdynError
        If the folder does not exist, the suffix is not that of a format, there is no ffmpeg for an MP4, or the extra
        ``view`` for a page is not installed.
    """
    out = _checked(path, _FILMS)
    if out.suffix.lower() == ".html":
        import_module("screwdyn.views.web")  # raises the error
    if out.suffix.lower() == ".mp4":
        from screwdyn.views.film import ffmpeg

        ffmpeg()
    return out


def picture_path(path: str | os.PathLike[str]) -> Path:
    """The path of a picture; errors as for :func:`film_path`."""
    return _checked(path, _PICTURES)


def film_rate(path: Path, fps: float) -> float:
    """The frames per second that a format can have: a frame of a GIF lasts a whole number of hundredths of a second."""
    return 100 / max(2, round(100 / fps)) if path.suffix.lower() == ".gif" else fps


def write_film(scene: Scene, path: Path, progress: bool) -> Animation:
    """Write a film of all frames.

    Raises
    ------
    ScrewdynError
        If the file cannot be written, or what its format needs is not installed.
    """
    frames = tqdm(range(len(scene.times)), disable=not progress, unit=" frames", leave=False)
    return _written(_FILMS, scene, path, frames)


def write_picture(scene: Scene, path: Path) -> Animation:
    """Write a picture of the first frame; errors as for :func:`write_film`."""
    return _written(_PICTURES, scene, path, [0])


def _checked(path: str | os.PathLike[str], writers: Mapping[str, _Writer]) -> Path:
    out = Path(path)
    if out.suffix.lower() not in writers:
        raise ScrewdynError(f"cannot draw into {str(out)!r}: its name must end in {', '.join(writers)}")
    if not out.parent.is_dir():
        raise ScrewdynError(f"cannot write {str(out)!r}: there is no folder {str(out.parent)!r}")
    if out.is_dir():
        raise ScrewdynError(f"cannot write {str(out)!r}: it is a folder")
    return out


def _written(writers: Mapping[str, _Writer], scene: Scene, path: Path, frames: Iterable[int]) -> Animation:
    target = path.resolve()
    try:
        # Written elsewhere first: an interrupted film would look like a whole one, and replace the former file.
        with TemporaryDirectory(dir=target.parent, prefix=".screwdyn-") as folder:
            part = Path(folder) / target.name
            writers[path.suffix.lower()](scene, part, frames)
            part.replace(target)
    except OSError as error:
        raise ScrewdynError(f"cannot write {str(path)!r}: {error.strerror or error}") from None
    return Animation(path.absolute())
