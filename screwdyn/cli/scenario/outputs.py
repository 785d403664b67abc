"""Output files of scenarios: they stay in their folder, and replace only files that a scenario has written.

Scenarios may come from strangers, who choose the names of the files. A file of the folder has the digests of what was
written last.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from screwdyn.core.errors import ScrewdynError

__all__ = ["FIGURES", "FILMS", "note", "targets"]

# Formats of figures that Matplotlib writes without further programs.
FIGURES = (".png", ".svg", ".pdf", ".eps", ".ps", ".jpg", ".jpeg", ".tif", ".tiff", ".webp")
FILMS = (".html", ".gif", ".mp4")
_RECORD = ".screwdyn-outputs.json"


def targets(names: Mapping[str, str], folder: Path, overwrite: bool) -> dict[str, Path]:
    """Where outputs are written, after all of them have been checked; their folders are made.

    Raises
    ------
    ScrewdynError
        If a file would be outside the folder, also by symbolic links, or replace one that no scenario has written, or
        that has changed since, unless `overwrite`; or if a folder cannot be made.
    """
    root = folder.resolve()
    written = {} if overwrite else _record(root)
    found = {}
    for what, name in names.items():
        path = (root / name).resolve()
        if not path.is_relative_to(root):
            raise ScrewdynError(f"the output {name!r} is outside the folder {str(folder)!r}; give a name inside it")
        if path.exists() and not path.is_file():
            raise ScrewdynError(f"{str(path)!r} exists, and is no file; give another name")
        if path.exists() and not overwrite and written.get(str(path.relative_to(root))) != _digest(path):
            raise ScrewdynError(
                f"{str(path)!r} exists, and is not what a scenario wrote there; remove it, give another --output, or "
                "replace it by --overwrite"
            )
        found[what] = path
    for path in found.values():
        if inside := [str(other) for other in found.values() if path in other.parents]:
            raise ScrewdynError(
                f"the output {str(path)!r} would also be the folder of {inside[0]!r}; rename one of them"
            )
    for path in found.values():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ScrewdynError(f"cannot make the folder {str(path.parent)!r}: {error.strerror}") from None
    return found


def note(path: Path, folder: Path) -> None:
    """Record that an output has been written."""
    root = folder.resolve()
    record = _record(root) | {str(path.relative_to(root)): _digest(path)}
    try:
        (root / _RECORD).unlink(missing_ok=True)  # never written through a link
        (root / _RECORD).write_text(json.dumps(record, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    except OSError as error:
        raise ScrewdynError(f"cannot write {str(root / _RECORD)!r}: {error.strerror or error}") from None


def _record(root: Path) -> dict[str, str]:
    """Digests by names of files; none if there is no valid record."""
    try:
        found = json.loads((root / _RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise ScrewdynError(f"cannot read {str(path)!r}: {error.strerror or error}") from None
