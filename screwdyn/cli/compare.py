"""``screwdyn compare``: several robots by the criteria of :mod:`screwdyn.papers.selection`."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from screwdyn.cli.robot_files import read_robot
from screwdyn.core.errors import ScrewdynError, UnknownNameError
from screwdyn.papers.selection import Trajectory, compare
from screwdyn.papers.workspace import EndlessError

__all__ = ["compare_files"]


def compare_files(
    files: Sequence[Path],
    path: Path | None,
    tip: str | None,
    limits: Sequence[str],
    output: Path,
    xacro: bool | None = None,
) -> str:
    """Compare the robots of files, draw a figure and return the table.

    Parameters
    ----------
    files : sequence of Path
        Robots are named by the stems of their files, or by whole paths if stems are equal.
    path : Path, optional
        CSV of a motion, which has columns for all robots; see :meth:`screwdyn.papers.selection.Trajectory.from_csv`.
    tip : str, optional
        A link that all robots have.
    limits : sequence of str
        Ranges of joints, each as "NAME:POSITION=LOW,HIGH".
    output : Path
        The figure.
    xacro : bool, optional
        As for :meth:`KinematicTree.from_urdf`.

    Raises
    ------
    ScrewdynError
        If a file cannot be read or written, or the robots cannot be compared; see
        :func:`screwdyn.papers.selection.compare`.
    """
    from screwdyn.views.figures import save, writable

    output = writable(output)
    stems = [file.stem for file in files]
    names = stems if len({*stems}) == len(stems) else [str(file) for file in files]
    if len({*names}) < len(names):
        raise ScrewdynError("a robot is given twice; give different files")
    arms = {name: read_robot(file, xacro=xacro) for name, file in zip(names, files, strict=True)}
    motions = None if path is None else {name: Trajectory.from_csv(path, arm) for name, arm in arms.items()}
    tips = None if tip is None else dict.fromkeys(arms, tip)
    try:
        found = compare(arms, motions, limits=_ranges(limits, arms), tips=tips)
    except EndlessError as error:
        raise ScrewdynError(
            f"{error.fact}; write limits into the file, or give a range, such as --limits "
            f"{error.arm}:{error.position}=0,1"
        ) from None
    save(found.plot(), output)
    return f"{found}\n\nFigure: {output.resolve()}"


def _ranges(given: Iterable[str], arms: Iterable[str]) -> Mapping[str, dict[str, tuple[float, float]]]:
    """The ranges of "NAME:POSITION=LOW,HIGH" by name and position."""
    ranges: dict[str, dict[str, tuple[float, float]]] = {name: {} for name in arms}
    for text in given:
        place, _, interval = text.rpartition("=")
        # Names may contain colons, as paths may.
        name = next((name for name in ranges if place.startswith(f"{name}:")), None)
        try:
            low, high = map(float, interval.split(","))
        except ValueError:
            raise ScrewdynError(f"--limits is given as NAME:POSITION=LOW,HIGH; got {text!r}") from None
        if name is None:
            raise UnknownNameError.of(place.partition(":")[0], ranges, "robot")
        ranges[name][place.removeprefix(f"{name}:")] = low, high
    return ranges
