"""Figures of runs, arms and models (extra ``plot``), films of runs and pages for browsers (extra ``view``)."""

import os
from pathlib import Path

from screwdyn.core.errors import ScrewdynError

__all__ = ["checked_path"]


def checked_path(path: str | os.PathLike[str], suffixes: tuple[str, ...]) -> Path:
    """The path of a file, checked before the work for it starts; ScrewdynError unless it can be written."""
    out = Path(path)
    if out.suffix.lower() not in suffixes:
        raise ScrewdynError(f"cannot draw into {str(out)!r}: its name must end in {', '.join(suffixes)}")
    if not out.parent.is_dir():
        raise ScrewdynError(f"cannot write {str(out)!r}: there is no folder {str(out.parent)!r}")
    if out.is_dir():
        raise ScrewdynError(f"cannot write {str(out)!r}: it is a folder")
    return out
