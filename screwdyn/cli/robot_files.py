"""Robots of files, whose formats are known by their suffixes, and those that a scenario names."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from screwdyn import robots
from screwdyn.core.errors import ScrewdynError
from screwdyn.io.document import Entry
from screwdyn.tree import KinematicTree

__all__ = ["WRITERS", "Beside", "named_robot", "read_robot", "require_readable"]

_URDF = (".urdf", ".xacro")
_READERS: dict[str, Callable[[Path], KinematicTree]] = {
    ".json": KinematicTree.from_json,
    ".xml": KinematicTree.from_mjcf,
}
WRITERS: dict[str, Callable[[KinematicTree, str], str]] = {
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
    """A robot of JSON, MJCF or URDF, by the suffix; `xacro` as for :meth:`KinematicTree.from_urdf`."""
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


class Beside(NamedTuple):
    """Where the files of robots are, and whether xacro in them is expanded."""

    folder: Path
    xacro: bool


def named_robot(given: Entry, beside: Beside, floating: bool = False) -> KinematicTree | None:
    """A robot of ``screwdyn.robots`` or of a file, without symbols."""
    name = given.text(f"the name of a file, or one of {', '.join(robots.__all__)}")
    if name is None:
        return None
    try:
        if name in robots.__all__:
            robot: KinematicTree = getattr(robots, name)()
        elif Path(name).suffix:
            robot = read_robot(beside.folder / name, floating, beside.xacro)
        else:
            given.wrong(f"there is no robot {name!r}", given.near(name, robots.__all__))
            return None
    except ScrewdynError as error:
        given.wrong(str(error))
        return None
    if robot.free_symbols:
        given.wrong(f"its numbers contain symbols: {', '.join(sorted(map(str, robot.free_symbols)))}")
        return None
    return robot
