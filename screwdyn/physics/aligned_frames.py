"""Rows' frames that are turned about their joints' axes until the axes of the joints beyond are coordinate axes."""

import math

from .link_steps import inertia_to_parent
from .placement import squared
from .spatial import Matrix, Pose, multiply, rotate_back, transpose
from .table import MASS, PARENT, Table, body, grouped_rows, home, parent

__all__ = ["aligned_frames"]

# Rounding of a product of two rotations.
_ROUNDING = 1e-15


def aligned_frames(table: Table) -> Table:
    """The table with frames in which more entries of poses are zero; the dynamics in joint space are the same.

    A row's frame may be turned about the axis of its joint, because this turn commutes with the motion of the joint.
    It is turned where an axis of a joint beyond becomes a coordinate axis and no other one ceases to be one. The frames
    of group joints remain, because charts are given in them, and those of parallel axes, so that angles can be added.

    Parameters
    ----------
    table : array
        See ``table``; of Python floats, except that inertias may be traced scalars.
    """
    table = table.copy()
    n = len(table) - 1
    beyond: list[list[int]] = [[] for _ in range(n + 1)]
    for i in range(n):
        beyond[parent(table, i)].append(i)
    grouped = grouped_rows(table)
    for i in range(n):
        own = [home(table, i).R] if parent(table, i) >= 0 else []
        parallel = any(R[2] == R[5] == 0 for R in own + [home(table, k).R for k in beyond[i]])
        kept = parallel or i in grouped
        turn = None if kept else _turn([home(table, k).R for k in beyond[i]])
        if turn is not None:
            table[i, :9] = squared(multiply(home(table, i).R, turn))
            m, h, I = inertia_to_parent(Pose(transpose(turn), (0.0, 0.0, 0.0)), body(table, i))
            table[i, MASS:PARENT] = [m, *h, *I]
            for k in beyond[i]:
                R, p = home(table, k)
                size = max(map(abs, p))
                turned = [x if abs(x) > _ROUNDING * size else 0.0 for x in rotate_back(turn, p)]
                table[k, :12] = [*squared(multiply(transpose(turn), R)), *turned]
    return table


def _turn(beyond: list[Matrix]) -> Matrix | None:
    """The turn about z after which all axes R z of joints beyond have no x or no y component; None if there is none."""
    across = [(R[2], R[5]) for R in beyond]
    skew = [(x, y) for x, y in across if x != 0 and y != 0]
    if not skew:
        return None
    x, y = skew[0]
    c, s = y / math.hypot(x, y), -x / math.hypot(x, y)
    if any(min(abs(c * x + s * y), abs(c * y - s * x)) > _ROUNDING for x, y in across):
        return None
    return (c, -s, 0.0, s, c, 0.0, 0.0, 0.0, 1.0)
