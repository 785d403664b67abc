"""The table of a model, scratch space for a recursion, and functions that read and write both.

The table has one row for each freedom, parents before children, and a last row for the base:

====== ==================================================================================
column
====== ==================================================================================
0-8    R0, orientation of the row's frame in its parent's at coordinate 0
9-11   p0, position of its origin there
12, 13 turn and slide of the joint's screw along z
14     mass of all bodies welded to the row
15-17  its first moment about the origin
18-23  its inertia about the origin (xx, xy, xz, yy, yz, zz)
24     row of the parent, −1 for the base
25     first row of the group joint that the row belongs to; the row itself for other joints; −1 for the base
26     armature of the row's joint
====== ==================================================================================

The last row holds gravity in columns 0-2 and, in columns 14-23, the inertia of all bodies welded to the base.

A *place* is a row of numbers for one link: the row of the table that carries it, and its pose and inertia.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .spatial import (
    Acceleration,
    ArticulatedInertia,
    CoriolisTensor,
    JointScrew,
    MassMoment,
    Matrix,
    Pose,
    RigidInertia,
    Scalar,
    Symmetric,
    Twist,
    Vector,
    Wrench,
)

Table = Any  # an array of float64 or of traced scalars

TURN, SLIDE, MASS, FIRST_MOMENT, INERTIA, PARENT, FIRST, ARMATURE, COLUMNS = 12, 13, 14, 15, 18, 24, 25, 26, 27

# Columns of a place: the row that carries the link (−1: the base) and the frame's code; pose of the link's frame in the
# row's; its centre of mass there; its mass and its inertia about the centre of mass in link axes; the number of rows of
# its joint.
# The place of a constraint: the row that carries the link of a loop, the row that carries the other link, and a wrench
# in the frame of the first one.
ROW, FRAME, POSE, COM, OWN_MASS, OWN_INERTIA, OWN_ROWS, PLACE = 0, 1, 2, 14, 17, 18, 24, 25
OTHER_ROW, WRENCH = 1, 2

# Statuses of recursions without a result: the tree has no mass; the link cannot move in all six directions. -1 is
# reserved for back-ends.
MASSLESS, CONFINED = -2, -3


class Workspace(NamedTuple):
    """Scratch space of a recursion: arrays with a row for each freedom; and two columns of the table as integers.

    A walk along a path would take twice as long if it had to convert numbers of the table to integers.

    Attributes
    ----------
    parents, firsts : (n,) and (n + 1,) arrays of int64
        Row of the parent, and first row of the group joint, of every row; the base has the entry −1 in ``firsts``.
    """

    poses: Table  # (n, 12)
    twists: Table  # (n, 6)
    accelerations: Table  # (n, 18)
    wrenches: Table  # (n, 6)
    inertias: Table  # (n, 10)
    coriolis: Table  # (n, 12)
    articulated: Table  # (n, 21)
    columns: Table  # (n, 6)
    drifts: Table  # (n, 6)
    pivots: Table  # (n, 5)
    parents: Any  # (n,)
    firsts: Any  # (n + 1,)


# Columns of the scratch space.
WIDTHS = dict(zip(Workspace._fields, (12, 6, 18, 6, 10, 12, 21, 6, 6, 5), strict=False))


def workspace(table: Table, scratch: Callable[[int, int], Table]) -> Workspace:
    """A workspace for a table, with arrays made by ``scratch(rows, columns)``."""
    n = len(table) - 1
    arrays = [scratch(n, width) for width in WIDTHS.values()]
    return Workspace._make([*arrays, *integers_of(table)])


def integers_of(table: Table) -> tuple[Any, Any]:
    """The parents and first rows of a workspace for a table."""
    return table[:-1, PARENT].astype(np.int64), table[:, FIRST].astype(np.int64)


def home(table: Table, i: int) -> Pose:
    """Pose of row i's frame in its parent's at coordinate 0."""
    return Pose(load9(table, i, 0), load3(table, i, 9))


def joint_screw(table: Table, i: int) -> JointScrew:
    """Turn and slide of row i."""
    return JointScrew(table[i, TURN], table[i, SLIDE])


def body(table: Table, i: int) -> RigidInertia:
    """Inertia of all bodies welded to row i."""
    return RigidInertia(table[i, MASS], load3(table, i, FIRST_MOMENT), load6(table, i, INERTIA))


def parent(table: Table, i: int) -> int:
    """Row of the parent; −1 for the base."""
    return int(table[i, PARENT])


def path_of(table: Table, row: int) -> list[int]:
    """Rows from a row to the base, the row first."""
    rows = []
    while row >= 0:
        rows.append(row)
        row = parent(table, row)
    return rows


def first_of_joint(table: Table, i: int) -> int:
    """First row of the group joint that row i belongs to; i for other joints."""
    return int(table[i, FIRST])


def begins_joint(work: Workspace, i: int) -> bool:
    """Whether row i is the first one of its joint, or of a joint that is no group joint."""
    return bool(work.firsts[i] == i)


def carries_link(work: Workspace, i: int) -> bool:
    """Whether row i carries bodies; the rows of a group joint before its last do not."""
    return bool(work.firsts[i + 1] != work.firsts[i])


def armature(table: Table, i: int) -> Scalar:
    """Armature of row i's joint, which is added to its diagonal entry of M."""
    return table[i, ARMATURE]


def load_pose(A: Table, i: int) -> Pose:
    """The pose in row i."""
    return Pose(load9(A, i, 0), load3(A, i, 9))


def store_pose(A: Table, i: int, x: Pose) -> None:
    """Write a pose to row i."""
    store9(A, i, 0, x.R)
    store3(A, i, 9, x.p)


def load_twist(A: Table, i: int) -> Twist:
    """The twist in row i."""
    return Twist(load3(A, i, 0), load3(A, i, 3))


def store_twist(A: Table, i: int, x: Twist) -> None:
    """Write a twist to row i."""
    store3(A, i, 0, x.w)
    store3(A, i, 3, x.v)


def load_wrench(A: Table, i: int) -> Wrench:
    """The wrench in row i."""
    return Wrench(load3(A, i, 0), load3(A, i, 3))


def store_wrench(A: Table, i: int, x: Wrench) -> None:
    """Write a wrench to row i."""
    store3(A, i, 0, x.n)
    store3(A, i, 3, x.f)


def add_wrench(A: Table, i: int, x: Wrench) -> None:
    """Add a wrench to that in row i."""
    add_to3(A, i, 0, x.n)
    add_to3(A, i, 3, x.f)


def load_acceleration(A: Table, i: int) -> Acceleration:
    """The acceleration in row i."""
    return Acceleration(load3(A, i, 0), load3(A, i, 3), load3(A, i, 6), load9(A, i, 9))


def store_acceleration(A: Table, i: int, x: Acceleration) -> None:
    """Write an acceleration to row i."""
    store3(A, i, 0, x.w)
    store3(A, i, 3, x.dw)
    store3(A, i, 6, x.a)
    store9(A, i, 9, x.U)


def load_inertia(A: Table, i: int) -> RigidInertia:
    """The rigid inertia in row i."""
    return RigidInertia(A[i, 0], load3(A, i, 1), load6(A, i, 4))


def store_inertia(A: Table, i: int, x: RigidInertia) -> None:
    """Write a rigid inertia to row i."""
    A[i, 0] = x.m
    store3(A, i, 1, x.h)
    store6(A, i, 4, x.I)


def add_inertia(A: Table, i: int, x: RigidInertia) -> None:
    """Add a rigid inertia to that in row i."""
    A[i, 0] += x.m
    add_to3(A, i, 1, x.h)
    add_to6(A, i, 4, x.I)


def load_moment(A: Table, i: int) -> MassMoment:
    """The mass and first moment in row i."""
    return MassMoment(A[i, 0], load3(A, i, 1))


def store_moment(A: Table, i: int, x: MassMoment) -> None:
    """Write a mass and a first moment to row i."""
    A[i, 0] = x.m
    store3(A, i, 1, x.h)


def add_moment(A: Table, i: int, x: MassMoment) -> None:
    """Add a mass and a first moment to those in row i."""
    A[i, 0] += x.m
    add_to3(A, i, 1, x.h)


def load_coriolis(A: Table, i: int) -> CoriolisTensor:
    """The Coriolis tensor in row i."""
    return CoriolisTensor(load9(A, i, 0), load3(A, i, 9))


def store_coriolis(A: Table, i: int, x: CoriolisTensor) -> None:
    """Write a Coriolis tensor to row i."""
    store9(A, i, 0, x.K)
    store3(A, i, 9, x.P)


def add_coriolis(A: Table, i: int, x: CoriolisTensor) -> None:
    """Add a Coriolis tensor to that in row i."""
    add_to9(A, i, 0, x.K)
    add_to3(A, i, 9, x.P)


def load_articulated(A: Table, i: int) -> ArticulatedInertia:
    """The articulated inertia in row i."""
    return ArticulatedInertia(load6(A, i, 0), load9(A, i, 6), load6(A, i, 15))


def store_articulated(A: Table, i: int, x: ArticulatedInertia) -> None:
    """Write an articulated inertia to row i."""
    store6(A, i, 0, x.A)
    store9(A, i, 6, x.H)
    store6(A, i, 15, x.L)


def add_articulated(A: Table, i: int, x: ArticulatedInertia) -> None:
    """Add an articulated inertia to that in row i."""
    add_to6(A, i, 0, x.A)
    add_to9(A, i, 6, x.H)
    add_to6(A, i, 15, x.L)


# Groups of numbers in a row, from column k on


def load3(A: Table, i: int, k: int) -> Vector:
    """Three numbers of row i, from column k on."""
    return (A[i, k], A[i, k + 1], A[i, k + 2])


def load6(A: Table, i: int, k: int) -> Symmetric:
    """Six numbers of row i, from column k on."""
    return (A[i, k], A[i, k + 1], A[i, k + 2], A[i, k + 3], A[i, k + 4], A[i, k + 5])


def load9(A: Table, i: int, k: int) -> Matrix:
    """Nine numbers of row i, from column k on."""
    return (
        A[i, k],
        A[i, k + 1],
        A[i, k + 2],
        A[i, k + 3],
        A[i, k + 4],
        A[i, k + 5],
        A[i, k + 6],
        A[i, k + 7],
        A[i, k + 8],
    )


def store3(A: Table, i: int, k: int, a: Vector) -> None:
    """Write three numbers to row i, from column k on."""
    A[i, k] = a[0]
    A[i, k + 1] = a[1]
    A[i, k + 2] = a[2]


def store6(A: Table, i: int, k: int, a: Symmetric) -> None:
    """Write six numbers to row i, from column k on."""
    A[i, k] = a[0]
    A[i, k + 1] = a[1]
    A[i, k + 2] = a[2]
    A[i, k + 3] = a[3]
    A[i, k + 4] = a[4]
    A[i, k + 5] = a[5]


def store9(A: Table, i: int, k: int, a: Matrix) -> None:
    """Write nine numbers to row i, from column k on."""
    A[i, k] = a[0]
    A[i, k + 1] = a[1]
    A[i, k + 2] = a[2]
    A[i, k + 3] = a[3]
    A[i, k + 4] = a[4]
    A[i, k + 5] = a[5]
    A[i, k + 6] = a[6]
    A[i, k + 7] = a[7]
    A[i, k + 8] = a[8]


def add_to3(A: Table, i: int, k: int, a: Vector) -> None:
    """Add to three numbers of row i, from column k on."""
    A[i, k] += a[0]
    A[i, k + 1] += a[1]
    A[i, k + 2] += a[2]


def add_to6(A: Table, i: int, k: int, a: Symmetric) -> None:
    """Add to six numbers of row i, from column k on."""
    A[i, k] += a[0]
    A[i, k + 1] += a[1]
    A[i, k + 2] += a[2]
    A[i, k + 3] += a[3]
    A[i, k + 4] += a[4]
    A[i, k + 5] += a[5]


def add_to9(A: Table, i: int, k: int, a: Matrix) -> None:
    """Add to nine numbers of row i, from column k on."""
    A[i, k] += a[0]
    A[i, k + 1] += a[1]
    A[i, k + 2] += a[2]
    A[i, k + 3] += a[3]
    A[i, k + 4] += a[4]
    A[i, k + 5] += a[5]
    A[i, k + 6] += a[6]
    A[i, k + 7] += a[7]
    A[i, k + 8] += a[8]


# A link's place, a row of a (links, PLACE) array


def place_row(places: Table, l: int) -> int:
    """Row that carries link l; −1 for the base."""
    return int(places[l, ROW])


def place_other_row(places: Table, l: int) -> int:
    """Row that carries the other link of a constraint's loop; −1 for the base."""
    return int(places[l, OTHER_ROW])


def place_wrench(places: Table, l: int) -> Wrench:
    """Wrench of a constraint, in the frame of its first row."""
    return Wrench(load3(places, l, WRENCH), load3(places, l, WRENCH + 3))


def place_frame(places: Table, l: int) -> int:
    """Code of the frame of the result; see ``frames``."""
    return int(places[l, FRAME])


def place_pose(places: Table, l: int) -> Pose:
    """Pose of link l's own frame in its row's."""
    return Pose(load9(places, l, POSE), load3(places, l, POSE + 9))


def place_com(places: Table, l: int) -> Vector:
    """Centre of mass of link l in its row's frame; the link's origin if it is massless."""
    return load3(places, l, COM)


def place_mass(places: Table, l: int) -> Scalar:
    """Mass of link l alone."""
    return places[l, OWN_MASS]


def place_inertia(places: Table, l: int) -> Symmetric:
    """Inertia of link l alone about its centre of mass, in link axes."""
    return load6(places, l, OWN_INERTIA)


def place_rows(places: Table, l: int) -> int:
    """Number of rows of link l's own joint; 0 if it is welded to its parent."""
    return int(places[l, OWN_ROWS])
