"""What robots look like: cylinders and capsules, whose numbers follow the frames and the size of the real links."""

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from screwdyn.core.types import Array
from screwdyn.mechanism.shape import Shape
from screwdyn.screws.screw import frame_along, pose

# Colour, radius, and the middles of both ends, m, in the frame of the link; a capsule if a hemisphere is on each end.
_Row = tuple[tuple[float, float, float], float, tuple[float, float, float], tuple[float, float, float], bool]

_STEEL, _BLUE, _DARK = (0.74, 0.76, 0.78), (0.33, 0.56, 0.75), (0.2, 0.2, 0.22)
_WHITE, _BLACK = (0.95, 0.95, 0.95), (0.18, 0.18, 0.19)
_FLAT, _ROUND = False, True

_ROBOTS: dict[str, dict[str, list[_Row]]] = {
    "ur5": {
        "base_link": [
            (_DARK, 0.0745, (0, 0, 0), (0, 0, 0.022), _FLAT),
            (_STEEL, 0.056, (0, 0, 0), (0, 0, 0.04), _FLAT),
        ],
        "shoulder_link": [
            (_STEEL, 0.058, (0, 0, -0.055), (0, 0, 0.03), _FLAT),
            (_BLUE, 0.0595, (0, 0, 0.026), (0, 0, 0.0685), _FLAT),
            (_STEEL, 0.056, (0, 0, 0), (0, 0.0705, 0), _FLAT),
            (_DARK, 0.053, (0, 0, 0), (0, 0.08, 0), _FLAT),
        ],
        "upper_arm_link": [
            (_STEEL, 0.058, (0, -0.0599, 0), (0, 0.03, 0), _FLAT),
            (_BLUE, 0.0595, (0, 0.026, 0), (0, 0.0685, 0), _FLAT),
            (_STEEL, 0.058, (0, 0, 0), (0, 0, 0.0705), _FLAT),
            (_STEEL, 0.052, (0, 0, 0), (0, 0, 0.425), _FLAT),
            (_STEEL, 0.058, (0, 0, 0.3545), (0, 0, 0.425), _FLAT),
            (_STEEL, 0.058, (0, -0.0599, 0.425), (0, 0.03, 0.425), _FLAT),
            (_BLUE, 0.0595, (0, 0.026, 0.425), (0, 0.0685, 0.425), _FLAT),
            (_DARK, 0.053, (0, 0, 0.425), (0, -0.07, 0.425), _FLAT),
        ],
        "forearm_link": [
            (_STEEL, 0.058, (0, 0.0183, 0), (0, 0.0545, 0), _FLAT),
            (_STEEL, 0.058, (0, 0.0183, 0), (0, 0.03, 0), _ROUND),
            (_STEEL, 0.056, (0, 0, 0), (0, 0, 0.074), _FLAT),
            (_STEEL, 0.0425, (0, 0, 0), (0, 0, 0.347), _FLAT),
            (_STEEL, 0.0375, (0, 0, 0.34), (0, 0, 0.392), _FLAT),
            (_STEEL, 0.0375, (0, -0.025, 0.392), (0, 0.0475, 0.392), _FLAT),
            (_BLUE, 0.0387, (0, -0.0572, 0.392), (0, -0.02, 0.392), _FLAT),
        ],
        "wrist_1_link": [
            (_DARK, 0.034, (0, 0.04, 0), (0, 0.06, 0), _FLAT),
            (_STEEL, 0.0375, (0, 0.05, 0), (0, 0.093, 0), _FLAT),
            (_STEEL, 0.0375, (0, 0.093, -0.025), (0, 0.093, 0.045), _FLAT),
            (_BLUE, 0.0387, (0, 0.093, -0.0572), (0, 0.093, -0.02), _FLAT),
        ],
        "wrist_2_link": [
            (_DARK, 0.034, (0, 0, 0.04), (0, 0, 0.06), _FLAT),
            (_STEEL, 0.0375, (0, 0, 0.0491), (0, 0, 0.0946), _FLAT),
            (_STEEL, 0.0375, (0, -0.025, 0.0946), (0, 0.045, 0.0946), _FLAT),
            (_BLUE, 0.0387, (0, -0.0572, 0.0946), (0, -0.02, 0.0946), _FLAT),
        ],
        "wrist_3_link": [
            (_DARK, 0.034, (0, 0.04, 0), (0, 0.06, 0), _FLAT),
            (_STEEL, 0.0375, (0, 0.0495, 0), (0, 0.0818, 0), _FLAT),
        ],
    },
    "panda": {
        "panda_link0": [
            (_WHITE, 0.0545, (0, 0, 0), (0, 0, 0.14), _FLAT),
            (_WHITE, 0.066, (0, 0, 0), (0, 0, 0.05), _FLAT),
            (_WHITE, 0.052, (-0.075, 0, 0.03), (0, 0, 0.085), _ROUND),
            (_WHITE, 0.028, (-0.12, 0.06, 0.028), (0.02, 0.05, 0.028), _ROUND),
            (_WHITE, 0.028, (-0.12, -0.06, 0.028), (0.02, -0.05, 0.028), _ROUND),
            (_BLACK, 0.03, (-0.11, 0.04, 0.03), (-0.11, -0.04, 0.03), _FLAT),
        ],
        "panda_link1": [
            (_WHITE, 0.0545, (0, 0, -0.192), (0, 0, -0.12), _FLAT),
            (_WHITE, 0.0545, (0, 0, -0.12), (0, -0.065, 0), _ROUND),
            (_WHITE, 0.055, (0, -0.074, 0), (0, -0.0554, 0), _ROUND),
            (_WHITE, 0.055, (0, -0.0554, 0), (0, -0.0005, 0), _FLAT),
        ],
        "panda_link2": [
            (_WHITE, 0.055, (0, 0, 0.074), (0, 0, 0.0554), _ROUND),
            (_WHITE, 0.055, (0, 0, 0.0554), (0, 0, 0.0005), _FLAT),
            (_WHITE, 0.0545, (0, -0.12, 0), (0, 0, 0.065), _ROUND),
            (_WHITE, 0.0545, (0, -0.1938, 0), (0, -0.12, 0), _FLAT),
        ],
        "panda_link3": [
            (_WHITE, 0.0545, (0, 0, -0.1212), (0, 0, -0.03), _FLAT),
            (_WHITE, 0.0545, (0, 0, -0.03), (0.07, 0.025, -0.005), _ROUND),
            (_WHITE, 0.055, (0.0825, 0.0005, 0), (0.0825, 0.0535, 0), _FLAT),
            (_BLACK, 0.0585, (0.0825, 0.0535, 0), (0.0825, 0.1, 0), _FLAT),
            (_WHITE, 0.043, (0.0825, 0.09, 0), (0.0825, 0.108, 0), _FLAT),
        ],
        "panda_link4": [
            (_WHITE, 0.055, (0, 0, 0.0005), (0, 0, 0.0535), _FLAT),
            (_BLACK, 0.0585, (0, 0, 0.0535), (0, 0, 0.1), _FLAT),
            (_WHITE, 0.043, (0, 0, 0.09), (0, 0, 0.108), _FLAT),
            (_WHITE, 0.0545, (-0.07, 0.005, 0.025), (-0.0825, 0.03, 0), _ROUND),
            (_WHITE, 0.0545, (0, 0.0, 0.025), (-0.07, 0.005, 0.025), _ROUND),
            (_WHITE, 0.0545, (-0.0825, 0.03, 0), (-0.0825, 0.1242, 0), _FLAT),
        ],
        "panda_link5": [
            (_WHITE, 0.0545, (0, 0, -0.2592), (0, 0, -0.19), _FLAT),
            (_WHITE, 0.0545, (0, 0, -0.19), (0, 0.02, -0.16), _ROUND),
            (_WHITE, 0.044, (0, 0.03, -0.16), (0, 0.08, -0.03), _ROUND),
            (_BLACK, 0.038, (0, 0.07, -0.18), (0, 0.088, -0.03), _ROUND),
            (_WHITE, 0.046, (0, 0.0485, 0), (0, 0.07, 0), _FLAT),
            (_BLACK, 0.0495, (0, 0.07, 0), (0, 0.115, 0), _FLAT),
            (_WHITE, 0.036, (0, 0.11, 0), (0, 0.122, 0), _FLAT),
        ],
        "panda_link6": [
            (_WHITE, 0.046, (0, 0, -0.048), (0, 0, 0.03), _FLAT),
            (_BLACK, 0.0485, (0, 0, 0.03), (0, 0, 0.054), _FLAT),
            (_WHITE, 0.034, (0, 0, 0.05), (0, 0, 0.058), _FLAT),
            (_WHITE, 0.04, (0, 0, -0.004), (0.088, 0, 0), _ROUND),
            (_WHITE, 0.044, (0.088, -0.0515, 0), (0.088, 0.062, 0), _FLAT),
            (_BLACK, 0.036, (0.088, 0.062, 0), (0.088, 0.081, 0), _FLAT),
        ],
        "panda_link7": [
            (_STEEL, 0.0435, (0, 0, 0.0525), (0, 0, 0.107), _FLAT),
            (_WHITE, 0.019, (0.012, -0.012, 0.079), (0.06, 0.036, 0.079), _ROUND),
            (_WHITE, 0.019, (-0.012, 0.012, 0.079), (0.036, 0.06, 0.079), _ROUND),
            (_BLACK, 0.0195, (0.058, 0.038, 0.079), (0.038, 0.058, 0.079), _ROUND),
        ],
    },
}


@cache
def shapes(robot: str) -> Mapping[str, Sequence[Shape]]:
    """The shapes of the links of a robot."""
    return {link: [_shape(*row) for row in rows] for link, rows in _ROBOTS[robot].items()}


def _shape(color: Sequence[float], radius: float, start: Sequence[float], end: Sequence[float], rounded: bool) -> Shape:
    a, b = np.array(start, dtype=float), np.array(end, dtype=float)
    length = float(np.linalg.norm(b - a))
    at: Array = pose(np.reshape(frame_along(((b - a) / length).tolist()), (3, 3)), (a + b) / 2)
    make = Shape.capsule if rounded else Shape.cylinder
    return make(radius, length, pose=at, color=color)
