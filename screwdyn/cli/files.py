"""Files of the command: robots, whose formats are known by their suffixes, and the outputs of scenarios."""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path

from screwdyn import robots
from screwdyn.core.errors import ScrewdynError, file_errors
from screwdyn.io.document import Entry
from screwdyn.io.urdf import Xacro
from screwdyn.tree import KinematicTree

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
_RECORD = ".screwdyn-outputs.json"


def require_readable(path: Path) -> None:
    """Raise ScrewdynError unless a path is that of a file that can be read."""
    with file_errors(f"read the file {str(path)!r}"):
        path.open("rb").close()


def read_robot(path: Path, floating_base: bool = False, xacro: Xacro = None) -> KinematicTree:
    """A robot of JSON, MJCF or URDF, by the suffix; `xacro` as for :meth:`KinematicTree.from_urdf`."""
    require_readable(path)
    suffix = path.suffix.lower()
    if suffix in _URDF:
        return KinematicTree.from_urdf(path, floating_base=floating_base, xacro=xacro)
    if suffix not in _READERS:
        raise ScrewdynError(f"cannot read '{path}': its suffix must be {', '.join(_URDF)}, {' or '.join(_READERS)}")
    if floating_base:
        raise ScrewdynError(f"--floating-base is for URDF; {str(path)!r} states itself how its base moves")
    return _READERS[suffix](path)


def named_robot(given: Entry, folder: Path, xacro: Xacro, floating: bool = False) -> KinematicTree | None:
    """A robot of ``screwdyn.robots`` or of a file, seen from a folder, without symbols; `xacro` as above."""
    name = given.text(f"the name of a file, or one of {', '.join(robots.__all__)}")
    robot: KinematicTree | None = None
    if name in robots.__all__:
        robot = getattr(robots, name)()
    elif name is not None and Path(name).suffix:
        robot = given.made(read_robot, folder / name, floating, xacro)
    elif name is not None:
        given.wrong(f"there is no robot {name!r}", given.near(name, robots.__all__))
    if robot is not None and robot.free_symbols:
        return given.wrong(f"its numbers contain symbols: {', '.join(sorted(map(str, robot.free_symbols)))}")
    return robot


def output_paths(names: Mapping[str, str], folder: Path, overwrite: bool) -> dict[str, Path]:
    """Where outputs are written, after all of them have been checked; their folders are made.

    Scenarios may come from strangers: their files stay in the folder, also by symbolic links, and replace only what a
    scenario has written there and nobody has changed, as the digests in a file of the folder show.
    """
    root = folder.resolve()
    written = {} if overwrite else _record(root)
    found = {what: (root / name).resolve() for what, name in names.items()}
    for what, path in found.items():
        if not path.is_relative_to(root):
            name = names[what]
            raise ScrewdynError(f"the output {name!r} is outside the folder {str(folder)!r}; give a name inside it")
        if path.exists() and not path.is_file():
            raise ScrewdynError(f"{str(path)!r} exists, and is no file; give another name")
        if path.exists() and not overwrite and written.get(str(path.relative_to(root))) != _digest(path):
            raise ScrewdynError(
                f"{str(path)!r} exists, and is not what a scenario wrote there; remove it, give another --output, or "
                "replace it by --overwrite"
            )
        if inside := [str(other) for other in found.values() if path in other.parents]:
            raise ScrewdynError(f"the output '{path}' would also be the folder of {inside[0]!r}; rename one of them")
    for path in found.values():
        with file_errors(f"make the folder {str(path.parent)!r}"):
            path.parent.mkdir(parents=True, exist_ok=True)
    return found


def note_output(path: Path, folder: Path) -> None:
    """Record that an output has been written."""
    root = folder.resolve()
    record = _record(root) | {str(path.relative_to(root)): _digest(path)}
    (root / _RECORD).unlink(missing_ok=True)  # never written through a link
    (root / _RECORD).write_text(json.dumps(record, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def _record(root: Path) -> dict[str, str]:
    """Digests by names of files; none if there is no valid record."""
    try:
        found = json.loads((root / _RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
