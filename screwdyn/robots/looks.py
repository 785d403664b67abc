"""What robots look like: cylinders and capsules that follow the frames and the sizes of the real links.

``looks.csv`` has a line for each: colour, radius, and the middles of both ends in the frame of the link, m; a capsule
has a hemisphere on each end.
"""

import csv
from functools import cache
from importlib.resources import files

import numpy as np

from screwdyn.mechanism.shape import Shape
from screwdyn.screws.screw import frame_along, pose

_COLORS = {
    "black": (0.18, 0.18, 0.19),
    "blue": (0.33, 0.56, 0.75),
    "dark": (0.2, 0.2, 0.22),
    "steel": (0.74, 0.76, 0.78),
    "white": (0.95, 0.95, 0.95),
}


@cache
def shapes(robot: str) -> dict[str, list[Shape]]:
    """The shapes of the links of a robot."""
    found: dict[str, list[Shape]] = {}
    text = files("screwdyn.robots").joinpath("looks.csv").read_text(encoding="utf-8")
    for owner, link, color, kind, *numbers in csv.reader(text.splitlines()[1:]):
        if owner == robot:
            radius, start, end = float(numbers[0]), *np.reshape([float(x) for x in numbers[1:]], (2, 3))
            length = float(np.linalg.norm(end - start))
            at = pose(np.reshape(frame_along(((end - start) / length).tolist()), (3, 3)), (start + end) / 2)
            make = Shape.capsule if kind == "capsule" else Shape.cylinder
            found.setdefault(link, []).append(make(radius, length, pose=at, color=_COLORS[color]))
    return found
