"""``screwdyn compare``: several robots by the criteria of :mod:`screwdyn.selection`."""

from collections.abc import Sequence
from pathlib import Path

from screwdyn.cli.robot_files import read_robot
from screwdyn.core.errors import ScrewdynError
from screwdyn.selection import Trajectory, compare

__all__ = ["compare_files"]


def compare_files(files: Sequence[Path], path: Path | None, tip: str | None, output: Path) -> str:
    """Compare the robots of files, draw a figure and return the table.

    Parameters
    ----------
    files : sequence of Path
        Robots are named by the stems of their files, or by whole paths if stems are equal.
    path : Path, optional
        CSV of a motion, which has columns for all robots; see :meth:`screwdyn.selection.Trajectory.from_csv`.
    tip : str, optional
        A link that all robots have.
    output : Path
        The figure.

    Raises
    ------
    ScrewdynError
        If a file cannot be read or written, or the robots cannot be compared; see
        :func:`screwdyn.selection.compare`.
    """
    from screwdyn.views.figures import save, writable

    output = writable(output)
    stems = [file.stem for file in files]
    names = stems if len({*stems}) == len(stems) else [str(file) for file in files]
    if len({*names}) < len(names):
        raise ScrewdynError("a robot is given twice; give different files")
    arms = {name: read_robot(file) for name, file in zip(names, files, strict=True)}
    motions = None if path is None else {name: Trajectory.from_csv(path, arm) for name, arm in arms.items()}
    found = compare(arms, motions, tips=None if tip is None else dict.fromkeys(arms, tip))
    save(found.plot(), output)
    return f"{found}\n\nFigure: {output.resolve()}"
