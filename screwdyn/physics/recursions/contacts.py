"""Contacts: gaps of points, and rows of a normal and two tangents with their rates (docs/mathematics.md §14)."""

from typing import NamedTuple

from screwdyn.physics import link_steps as steps
from screwdyn.physics.link_steps import (
    AT_REST,
    ZERO,
    Nearest,
    Pose,
    Scalar,
    Twist,
    Vector,
    Wrench,
    add,
    cross,
    rotate,
    rotate_back,
    scale,
    subtract,
)
from screwdyn.physics.recursions.links import Scratch, clear, poses_in_base, screw_of_row
from screwdyn.physics.table import NO_NORMAL, Point, Table, Workspace, load, store


class Meeting(NamedTuple):
    """Where a point, or the point of a segment that is nearest to a core, is beside the core; in the base."""

    core: Pose
    c: Vector
    axis: Vector  # of the segment, along which c moves; zero for a point
    free: Scalar  # 0 if c is an end of the segment, else 1
    room: Scalar  # negative where segments do not cross
    near: Nearest  # in the frame of the core


def meeting(work: Workspace, point: Point) -> Meeting:
    """Where a point is beside its core."""
    core, c, axis, free, room, crosses = point.core.pose, point.center, point.axis, 0.0, 1.0, False
    if point.other >= 0:
        core = steps.compose(load(work.poses, point.other, Pose), core)
    if point.row >= 0:
        T = load(work.poses, point.row, Pose)
        c, axis = add(T.p, rotate(T.R, c)), rotate(T.R, axis)
    half, thickness = point.core.half, 0.0
    if steps.dot(point.axis, point.axis) > 0:
        crosses, thickness, half = True, -half[1], (0.0, 0.0, half[2])
        at, d = rotate_back(core.R, subtract(c, core.p)), rotate_back(core.R, axis)
        s = steps.along(half, at, d)
        over, ended = steps.beyond(s, 1.0)
        c, free, room = add(c, scale(s - over, axis)), 1.0 - ended, steps.room(half, at, d, s)
    near = steps.nearest(half, rotate_back(core.R, subtract(c, core.p)))
    if crosses and near.divisor == 0:  # deep inside, as in a step beyond an event: any normal will do
        near = Nearest((1.0, 0.0, 0.0), 0.0, ZERO, 1.0)
    if thickness > 0:
        near = steps.solid(near, thickness, room)
    return Meeting(core, c, axis, free, room, near)


def contact_frames(
    table: Table, q: Table, places: Table, work: Workspace, gaps: Table, points: Table, axes: Table
) -> int:
    """φ, x and room, the normal and two tangents of every point; NO_NORMAL less the first point without a normal."""
    poses_in_base(table, q, work)
    for l in range(places.shape[0]):
        point = load(places, l, Point)
        at = meeting(work, point)
        core, near = at.core, at.near
        if near.divisor == 0:
            return NO_NORMAL - l
        n = rotate(core.R, near.n)
        gaps[l] = near.distance - point.core.radius - point.radius
        store(points, l, subtract(at.c, scale(point.radius, n)))
        points[l, 3] = at.room
        store(axes, l, n)
        store(axes, l, rotate(core.R, steps.tangent(near.n, 0.0)), 3)
        store(axes, l, rotate(core.R, steps.tangent(near.n, 1.0)), 6)
    return 0


def vector(A: Table, l: int, k: int) -> Vector:
    """Three numbers of row l, from column k on."""
    return (A[l, k], A[l, k + 1], A[l, k + 2])


def write_row(work: Workspace, point: Point, F: Wrench, J: Table, l: int) -> None:
    """Row l of J: the power of a unit force on the motion of the point relative to the body, per unit rate."""
    i, k = point.row, point.other
    while i != k:  # parents come before children, so the larger one does not carry the other
        if i > k:
            J[l, i] = steps.power(load(work.columns, i, Twist), F)
            i = work.parents[i]
        else:
            J[l, k] = -steps.power(load(work.columns, k, Twist), F)
            k = work.parents[k]


def contact_jacobian(table: Table, q: Table, places: Table, scratch: Scratch, work: Workspace, J: Table) -> int:
    """J, three rows for each point; the status is that of :func:`contact_frames`."""
    gaps, points, axes = scratch
    status = contact_frames(table, q, places, work, gaps, points, axes)
    if status != 0:
        return status
    for i in range(table.shape[0] - 1):
        store(work.columns, i, screw_of_row(table, i, work))
    clear(J)
    for l in range(places.shape[0]):
        for k in range(3):
            F = steps.force_at(vector(points, l, 0), vector(axes, l, 3 * k))
            write_row(work, load(places, l, Point), F, J, 3 * l + k)
    return 0


def contact_rows(
    table: Table,
    q: Table,
    qd: Table,
    qdd: Table,
    places: Table,
    scratch: Scratch,
    work: Workspace,
    gaps: Table,
    J: Table,
    drift: Table,
    rates: Table,
) -> int:
    """φ, J, J̇ q̇ + J q̈ and J q̇; the status is that of :func:`contact_frames`."""
    _, points, axes = scratch
    status = contact_jacobian(table, q, places, scratch, work, J)
    if status != 0:
        return status
    for i in range(table.shape[0] - 1):
        S, k = load(work.columns, i, Twist), work.parents[i]
        V = AT_REST if k < 0 else load(work.twists, k, Twist)
        A = AT_REST if k < 0 else load(work.drifts, k, Twist)
        store(work.drifts, i, add(A, add(scale(qdd[i], S), scale(qd[i], steps.bracket(V, S)))))
        store(work.twists, i, add(V, scale(qd[i], S)))
    for l in range(places.shape[0]):
        point = load(places, l, Point)
        at = meeting(work, point)
        core, near = at.core, at.near
        gaps[l] = near.distance - point.core.radius - point.radius
        V = AT_REST if point.row < 0 else load(work.twists, point.row, Twist)
        A = AT_REST if point.row < 0 else load(work.drifts, point.row, Twist)
        if point.other >= 0:
            body = load(work.twists, point.other, Twist)
            V = subtract(V, body)
            A = subtract(subtract(A, load(work.drifts, point.other, Twist)), steps.bracket(body, V))
        moves, x, n = add(V.v, cross(V.w, at.c)), vector(points, l, 0), vector(axes, l, 0)
        if steps.dot(point.axis, point.axis) > 0:
            d, d_dot = rotate_back(core.R, at.axis), rotate_back(core.R, cross(V.w, at.axis))
            slides = steps.along_rate(near, d, d_dot, rotate_back(core.R, moves))
            moves = add(moves, scale(at.free * slides, at.axis))
        n_dot = rotate(core.R, steps.normal_rate(near, rotate_back(core.R, moves)))
        x_dot = subtract(moves, scale(point.radius, n_dot))
        for k in range(3):
            e, e_dot = n, n_dot
            if k > 0:  # tangents turn with the normal only: their own turn would multiply a slip
                e = vector(axes, l, 3 * k)
                e_dot = scale(-steps.dot(n_dot, e), n)
            F = steps.force_at(x, e)
            rates[l, k] = steps.power(V, F)
            drift[l, k] = steps.contact_drift(F, V, A, x, x_dot, e_dot)
    return 0
