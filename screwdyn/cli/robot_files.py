"""Files of robots, whose formats are known by their suffixes."""

from collections.abc import Callable
from pathlib import Path

from screwdyn.core.errors import ScrewdynError
from screwdyn.tree import KinematicTree

__all__ = ["read_robot", "require_readable", "write_robot"]

_URDF = (".urdf", ".xacro")
_READERS: dict[str, Callable[[Path], KinematicTree]] = {
    ".json": KinematicTree.from_json,
    ".xml": KinematicTree.from_mjcf,
}
_WRITERS: dict[str, Callable[[KinematicTree, str], str]] = {
    ".urdf": lambda tree, name: tree.to_urdf(name),
    ".json": lambda tree, name: tree.to_json(),
    ".xml": lambda tree, name: tree.to_mjcf(name),
}


def require_readable(path: Path) -> None:
    """Raise ScrewdynError unless a path is that of a file that can be read."""
    try:
        path.open("rb").close()
    except OSError as error:
        raise ScrewdynError(f"cannot read the file {str(path)!r}: {error.strerror}") from None


def read_robot(path: Path, floating_base: bool = False, xacro: bool | None = None) -> KinematicTree:
    """Read a robot: JSON, MJCF or URDF, by its suffix; `xacro` as for :meth:`KinematicTree.from_urdf`.

    Raises
    ------
    ScrewdynError
        If the suffix is not that of a format, the file cannot be read, or a floating base is wanted for another format
        than URDF.
    """
    require_readable(path)
    suffix = path.suffix.lower()
    if suffix not in (*_URDF, *_READERS):
        raise ScrewdynError(
            f"cannot read {str(path)!r}: its suffix must be {', '.join(_URDF)}, {' or '.join(_READERS)}"
        )
    read = _READERS.get(suffix)
    if read is None:
        return KinematicTree.from_urdf(path, floating_base=floating_base, xacro=xacro)
    if floating_base:
        raise ScrewdynError(f"--floating-base is for URDF; {str(path)!r} states itself how its base moves")
    return read(path)


def write_robot(tree: KinematicTree, path: Path, name: str) -> None:
    """Write a robot as URDF, JSON or MJCF; `name` is its name in URDF and MJCF.

    Raises
    ------
    ScrewdynError
        If the suffix is not that of a format that can be written, the format cannot express the robot, or the file
        cannot be written.
    """
    write = _WRITERS.get(path.suffix.lower())
    if write is None:
        *others, last = _WRITERS
        raise ScrewdynError(f"cannot write {str(path)!r}: its suffix must be {', '.join(others)} or {last}")
    text = write(tree, name)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ScrewdynError(f"cannot write the file {str(path)!r}: {error.strerror}") from None
