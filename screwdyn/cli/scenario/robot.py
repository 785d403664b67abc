"""Robots that a scenario names: those of the library, and files beside the scenario."""

from pathlib import Path
from typing import NamedTuple

from screwdyn import robots
from screwdyn.cli.robot_files import read_robot
from screwdyn.core.errors import ScrewdynError
from screwdyn.io.document import Entry
from screwdyn.tree import KinematicTree

__all__ = ["Beside", "named_robot"]


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
