"""Animations: files of scenes that move, in the format of their suffix."""

from __future__ import annotations

import html
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from screwdyn.core.errors import ScrewdynError
from screwdyn.views.scene import Scene

__all__ = ["Animation", "animation_path", "write_animation"]

_SUFFIXES = (".html",)
# Of a page in a notebook, pixels.
_HEIGHT = 480


@dataclass(frozen=True)
class Animation:
    """A file of an animation, which shows itself in a notebook.

    Attributes
    ----------
    path : Path
    """

    path: Path

    def _repr_html_(self) -> str:
        return embedded(self.path.read_text(encoding="utf-8"))


def embedded(page: str) -> str:
    """A page within another one, as text."""
    frame = 'style="border: 1px solid #ddd; width: 100%;"'
    return f'<iframe srcdoc="{html.escape(page)}" height="{_HEIGHT}" {frame}></iframe>'


def animation_path(path: str | os.PathLike[str]) -> Path:
    """The path of an animation, checked before the work for it starts.

    Raises
    ------
    ScrewdynError
        If the folder does not exist, or the suffix is not that of a format.
    """
    out = Path(path)
    if out.suffix.lower() not in _SUFFIXES:
        raise ScrewdynError(f"cannot animate into {str(out)!r}: its name must end in {', '.join(_SUFFIXES)}")
    if not out.parent.is_dir():
        raise ScrewdynError(f"cannot write {str(out)!r}: there is no folder {str(out.parent)!r}")
    return out


def write_animation(scene: Scene, path: Path, progress: bool) -> Animation:
    """Write a scene to a file.

    Raises
    ------
    ScrewdynError
        If the file cannot be written, or what its format needs is not installed.
    """
    from screwdyn.views.web import page

    text = page(scene, _counted(scene, progress))
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ScrewdynError(f"cannot write {str(path)!r}: {error.strerror or error}") from None
    return Animation(path)


def _counted(scene: Scene, progress: bool) -> Iterator[int]:
    return iter(tqdm(range(len(scene.times)), disable=not progress, unit=" frames", leave=False))
