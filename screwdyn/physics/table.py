"""The table of a model, scratch space for a recursion, and what a recursion does with one row of both.

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

The rows of a group joint have one origin, and the x, y and z axes of each are the y, z and x axes of the row before it.
Within such a joint a change of frame only renames components.
"""

import functools
import typing
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from screwdyn.physics import link_steps
from screwdyn.physics.link_steps import AT_REST, MassMoment, Pose, RigidInertia, Scalar, Twist, Vector, Wrench

Table = Any  # an array of float64 or of traced scalars
K = TypeVar("K")

TURN, SLIDE, MASS, FIRST_MOMENT, INERTIA, PARENT, FIRST, ARMATURE, COLUMNS = 12, 13, 14, 15, 18, 24, 25, 26, 27

# Statuses of recursions without a result: the tree has no mass; the link cannot move in all six directions. -1 is
# reserved for back-ends.
MASSLESS, CONFINED = -2, -3
# Status if point k of all contacts has no normal: this one, less k.
NO_NORMAL = -4


class Place(NamedTuple):
    """What a recursion reads of one link: a row of a (links, PLACE) array."""

    row: int  # that carries the link; −1 for the base
    frame: int  # code of the frame of the result; see ``recursions.links``
    pose: Pose  # of the link's frame in the row's
    com: Vector  # centre of mass in the row's frame; the link's origin if it is massless
    mass: Scalar  # of this link alone
    inertia: link_steps.Symmetric  # of this link alone, about its centre of mass and in link axes
    rows: int  # of the link's own joint; 0 if it is welded to its parent


class Constraint(NamedTuple):
    """What a recursion reads of one constraint of a loop: the first numbers of a row of such an array."""

    row: int  # that carries the loop's link
    other: int  # that carries the other link
    wrench: Wrench  # that the loop's joint transmits, in the frame of the first one


class Point(NamedTuple):
    """What a recursion reads of one point of a contact: the first numbers of a row of such an array."""

    row: int  # that carries the point's link
    other: int  # that carries the body
    center: Vector  # in the frame of the first one
    radius: Scalar
    core: link_steps.Core  # of the body, in the frame of the other one
    axis: Vector  # from the centre to an end, of a segment; zero for a point


class Part(NamedTuple):
    """What a recursion reads of a row with bodies that slip: the first numbers of a row of such an array."""

    row: int  # that carries them; −1 for the base
    slips: RigidInertia  # of the bodies that slip, in the frame of the row
    stays: RigidInertia  # of the others


ROW, OWN_MASS, OWN_ROWS, PLACE = 0, 17, 24, 25


class Workspace(NamedTuple):
    """Scratch space of a recursion: arrays with a row for each freedom; and two columns of the table as integers.

    ``parents`` has the row of the parent of every row, and ``firsts`` the first row of its group joint; that of the
    base is −1. A walk along a path would take twice as long if it had to convert numbers of the table to integers.
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
    return Workspace._make([*(scratch(n, width) for width in WIDTHS.values()), *integers_of(table)])


def integers_of(table: Table) -> tuple[Any, Any]:
    """The parents and first rows of a workspace for a table."""
    return table[:-1, PARENT].astype(np.int64), table[:, FIRST].astype(np.int64)


# Records in a row of an array


def load(A: Table, i: int, kind: type[K], k: int = 0) -> K:
    """The record of a kind, such as a Pose or a Place, in row i from column k on."""
    reader: Any = _reader
    return typing.cast(K, reader(kind)(A, i, k))


def store(A: Table, i: int, x: Any, k: int = 0) -> None:
    """Write a record to row i, from column k on."""
    for at, number in enumerate(_numbers(x), k):
        A[i, at] = number


def add_to(A: Table, i: int, x: Any, k: int = 0) -> None:
    """Add a record to that in row i, from column k on."""
    for at, number in enumerate(_numbers(x), k):
        A[i, at] += number


def _numbers(x: Any) -> list[Scalar]:
    """The numbers of a record in order."""
    return [number for part in x for number in (_numbers(part) if isinstance(part, tuple) else [part])]


@functools.cache
def _reader(kind: Any) -> Callable[[Table, int, int], Any]:
    """The function that reads a record of a kind: an expression for all of its numbers, which is faster than a loop."""
    columns, kinds = iter(range(PLACE)), {}

    def source(kind: Any) -> str:
        parts = typing.get_args(kind) or [*getattr(kind, "__annotations__", {}).values()]
        if not parts:
            entry = f"A[i, k + {next(columns)}]"
            return f"int({entry})" if kind is int else entry
        name = "" if typing.get_args(kind) else kind.__name__
        kinds[name] = kind
        return f"{name}({', '.join(map(source, parts))})"

    return typing.cast("Callable[[Table, int, int], Any]", eval(f"lambda A, i, k: {source(kind)}", kinds))


def home(table: Table, i: int) -> Pose:
    """Pose of row i's frame in its parent's at coordinate 0."""
    return load(table, i, Pose)


def joint_screw(table: Table, i: int) -> link_steps.JointScrew:
    """Turn and slide of row i."""
    return load(table, i, link_steps.JointScrew, TURN)


def body(table: Table, i: int) -> RigidInertia:
    """Inertia of all bodies welded to row i."""
    return load(table, i, RigidInertia, MASS)


def gravity_of(table: Table) -> Vector:
    """Acceleration of gravity in the base frame."""
    last = table.shape[0] - 1
    return (table[last, 0], table[last, 1], table[last, 2])


# The tree


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


def grouped_rows(table: Table) -> set[int]:
    """The rows of group joints."""
    firsts = table[:-1, FIRST].astype(int).tolist()
    return {i for i, first in enumerate(firsts) if firsts.count(first) > 1}


def begins_joint(work: Workspace, i: int) -> bool:
    """Whether row i is the first one of its joint, or of a joint that is no group joint."""
    return bool(work.firsts[i] == i)


def carries_link(work: Workspace, i: int) -> bool:
    """Whether row i carries bodies; the rows of a group joint before its last do not."""
    return bool(work.firsts[i + 1] != work.firsts[i])


# Poses of rows, and changes of frame between a row and its parent

# Pose of a row of a group joint in the row before it.
RENAMING = Pose((0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0), (0.0, 0.0, 0.0))


def renamed(a: Vector) -> Vector:
    """A vector in the frame of the next row of a group joint."""
    return (a[1], a[2], a[0])


def renamed_back(a: Vector) -> Vector:
    """A vector in the frame of the former row of a group joint."""
    return (a[2], a[0], a[1])


def row_pose(table: Table, i: int, q: Table, work: Workspace) -> Pose:
    """Pose of row i's frame in its parent's."""
    if begins_joint(work, i):
        return link_steps.joint_pose(home(table, i), joint_screw(table, i), q[i])
    return RENAMING


def store_row_pose(table: Table, i: int, q: Table, work: Workspace) -> None:
    """Write the pose of row i in its parent, if it is the first row of its joint; those of the others are constant."""
    if begins_joint(work, i):
        store(work.poses, i, row_pose(table, i, q, work))


def store_poses(table: Table, q: Table, work: Workspace) -> None:
    """Write the poses of the first rows of all joints in their parents."""
    for i in range(table.shape[0] - 1):
        store_row_pose(table, i, q, work)


def store_poses_on_path(table: Table, row: int, q: Table, work: Workspace) -> None:
    """Write the poses of the first rows of the joints on the path to a row in their parents."""
    i = row
    while i >= 0:
        store_row_pose(table, i, q, work)
        i = work.parents[i]


def in_next_frame(T: Pose) -> Pose:
    """Pose of the frame of the next row of a group joint, from that of a row, both in the same frame."""
    R, p = T
    return Pose((R[1], R[2], R[0], R[4], R[5], R[3], R[7], R[8], R[6]), p)


def pose_in_parent(work: Workspace, i: int, X: Pose) -> Pose:
    """Pose in the frame of row i's parent of a frame with pose X in row i's."""
    if begins_joint(work, i):
        return link_steps.compose(load(work.poses, i, Pose), X)
    R, p = X
    return Pose((R[6], R[7], R[8], R[0], R[1], R[2], R[3], R[4], R[5]), renamed_back(p))


def store_row_twist(table: Table, i: int, qd: Table, work: Workspace) -> Twist:
    """Write and return the twist of row i."""
    k = work.parents[i]
    V = AT_REST if k < 0 else twist_of_parent(work, i, load(work.twists, k, Twist))
    V = link_steps.add_rate(V, joint_screw(table, i), qd[i])
    store(work.twists, i, V)
    return V


def twist_of_parent(work: Workspace, i: int, V: Twist) -> Twist:
    """A twist in the frame of row i's parent in that of row i."""
    if begins_joint(work, i):
        return link_steps.twist_to_child(load(work.poses, i, Pose), V)
    return Twist(renamed(V.w), renamed(V.v))


def vector_of_parent(work: Workspace, i: int, a: Vector) -> Vector:
    """A vector in the frame of row i's parent in that of row i."""
    if begins_joint(work, i):
        return link_steps.rotate_back(load(work.poses, i, Pose).R, a)
    return renamed(a)


def vector_in_parent(work: Workspace, i: int, a: Vector) -> Vector:
    """A vector in row i's frame in that of its parent."""
    if begins_joint(work, i):
        return link_steps.rotate(load(work.poses, i, Pose).R, a)
    return renamed_back(a)


def wrench_in_parent(work: Workspace, i: int, F: Wrench) -> Wrench:
    """A wrench in row i's frame in that of its parent."""
    if begins_joint(work, i):
        return link_steps.wrench_to_parent(load(work.poses, i, Pose), F)
    return Wrench(renamed_back(F.n), renamed_back(F.f))


def moment_before_joint(work: Workspace, i: int, moment: MassMoment) -> MassMoment:
    """A first moment in the frame of row i, which carries a link, in that of the parent of its joint."""
    first, (m, h) = work.firsts[i], moment
    h = h if axes_as_first(first, i) else renamed(h)
    return link_steps.moment_to_parent(load(work.poses, first, Pose), MassMoment(m, h))


def axes_as_first(first: int, i: int) -> bool:
    """Whether the axes of a joint's last row are those of its first; they follow them in joints of 3 and 6 rows."""
    return i == first or i == first + 3


def inertia_in_parent(work: Workspace, i: int, inertia: RigidInertia) -> RigidInertia:
    """A rigid inertia in row i's frame in that of its parent."""
    if begins_joint(work, i):
        return link_steps.inertia_to_parent(load(work.poses, i, Pose), inertia)
    m, h, I = inertia
    return RigidInertia(m, renamed_back(h), (I[5], I[2], I[4], I[0], I[1], I[3]))


def coriolis_in_parent(work: Workspace, i: int, B: link_steps.CoriolisTensor) -> link_steps.CoriolisTensor:
    """A Coriolis tensor in row i's frame in that of its parent."""
    if begins_joint(work, i):
        return link_steps.coriolis_to_parent(load(work.poses, i, Pose), B)
    K, P = B
    return link_steps.CoriolisTensor((K[8], K[6], K[7], K[2], K[0], K[1], K[5], K[3], K[4]), renamed_back(P))
