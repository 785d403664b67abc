"""Homes of joints that do not depend on where their coordinates are zero.

A turn about a joint's axis, or a slide along it, that is part of its home is the same as a constant that is added to
its coordinate: T exp(Ŝ c) exp(Ŝ q) = T exp(Ŝ (q + c)). The sum has the rounding of q.
"""

import math

import numpy as np

from screwdyn.core import expressions

from .spatial import JointScrew, Matrix, Pose, Scalar, Vector, cross, scale, subtract
from .table import Table, grouped_rows, home, joint_screw

__all__ = ["moved_zeros"]

# Rounding of a difference, relative to its terms.
_ROUNDING = 4e-15
# A slide is computed from components of the axis above this, so that it has as many digits as the home.
_LEAST = 0.1


def moved_zeros(table: Table) -> tuple[Table, Table]:
    """The table with homes T exp(−Ŝ c) that have more zeros, and the constants c, which are added to the coordinates.

    After a turn, a unit vector of the parent's frame is as near as possible to one of the joint's: no angle remains in
    the home of a parallel axis, one in that of an axis in a coordinate plane. A slide moves the origin to the parent's,
    or to an axis of the parent's frame, if the joint's axis meets it. Homes in which nothing is gained remain, and so
    do those of group joints, because charts are given at them.

    Parameters
    ----------
    table : array
        See ``table``; of Python floats, except that inertias may be traced scalars; or of expressions, where angles
        must occur as such.
    """
    table = table.copy()
    n = len(table) - 1
    grouped = grouped_rows(table)
    constants = np.full(n, 0.0, dtype=object)
    for i in range(n):
        if i not in grouped:
            constants[i], T = _moved(home(table, i), joint_screw(table, i))
            table[i, :12] = [*T.R, *T.p]
    return table, constants


def _moved(T: Pose, S: JointScrew) -> tuple[Scalar, Pose]:
    """The constant c of a joint, and its home T exp(−Ŝ c)."""
    if S.slide == 0:
        c, R = _turned(T.R)
        return c, Pose(R, T.p)
    if any(map(expressions.is_expression, (*T.R, *T.p, S.slide))):
        return 0.0, T
    axis = (T.R[2], T.R[5], T.R[8])
    if S.turn == 0:
        slides = [p / (S.slide * a) for p, a in zip(T.p, axis, strict=True) if abs(a) > _LEAST]
        choices = [(c, T.R) for c in (0.0, *slides)]
    else:
        c, R = _turned(T.R)
        choices = [(c + k * math.pi / 2, _quarter_turns(R, -k)) for k in range(-4, 5)]
    homes = [(c, Pose(R, _less(T.p, scale(S.slide * c, axis)))) for c, R in choices]
    # A zero is worth the addition of c, and none is worth a longer way.
    return min(homes, key=lambda choice: ((choice[0] != 0) - choice[1].p.count(0), abs(choice[0])))


def _turned(R: Matrix) -> tuple[Scalar, Matrix]:
    """The angle c about z and the rotation R Rz(−c), with a zero where the axis has its smallest component."""
    axis = (R[2], R[5], R[8])
    # Components that differ by rounding count as equal.
    sizes = [round(abs(float(a)), 12) if expressions.is_number(a) else 1.0 for a in axis]
    k = min(range(3), key=lambda k: (axis[k] != 0, sizes[k]))
    if R[3 * k] == 0 or R[3 * k + 1] == 0 or (axis[k] != 0 and any(map(expressions.is_expression, R))):
        return 0.0, R
    found = expressions.angle(R[3 * k], R[3 * k + 1])
    if found is None:
        return 0.0, R
    c, quarters = found
    # y is a unit vector of the parent's frame if that is perpendicular to the axis, or else as near to one as possible.
    unit = (int(k == 0), int(k == 1), int(k == 2))
    x, y = cross(unit, axis), unit
    if axis[k] != 0:
        x = scale(1 / math.hypot(*x), x)
        y = cross(axis, x)
    return c, _quarter_turns((x[0], y[0], axis[0], x[1], y[1], axis[1], x[2], y[2], axis[2]), quarters)


def _quarter_turns(R: Matrix, times: int) -> Matrix:
    """R Rz(π/2)ᵏ."""
    for _ in range(times % 4):
        R = (R[1], -R[0], R[2], R[4], -R[3], R[5], R[7], -R[6], R[8])
    return R


def _less(p: Vector, way: Vector) -> Vector:
    """p minus a way, without rounding."""
    least = _ROUNDING * max(map(abs, p))
    x, y, z = (x if abs(x) > least else 0.0 for x in subtract(p, way))
    return x, y, z
