"""Poses, twists, accelerations and Jacobians of links."""

from screwdyn.physics.frames import (
    BASE,
    COM,
    MIXED,
)
from screwdyn.physics.link_steps import (
    add_twists,
    bracket,
    compose,
    scale_twist,
    screw_from_beyond,
    twist_to_parent,
)
from screwdyn.physics.recursions.joint_space import (
    clear,
)
from screwdyn.physics.row_steps import (
    in_next_frame,
    pose_in_parent,
    row_pose,
    store_poses_on_path,
)
from screwdyn.physics.spatial import (
    AT_REST,
    Pose,
    Twist,
    add,
    cross,
    rotate,
)
from screwdyn.physics.table import (
    Table,
    Workspace,
    begins_joint,
    carries_link,
    home,
    joint_screw,
    load_pose,
    place_com,
    place_frame,
    place_pose,
    place_row,
    store_pose,
)


def pose_in_base(table: Table, i: int, q: Table, work: Workspace) -> Pose:
    """Pose in the base of the frame of row i, which begins its joint, from that of its parent's."""
    # The home of the first row of a group joint, which carries no link, contains the joint's pose.
    T, k = row_pose(table, i, q, work) if carries_link(work, i) else home(table, i), work.parents[i]
    return T if k < 0 else compose(load_pose(work.poses, k), T)


def poses_in_base(table: Table, q: Table, work: Workspace) -> None:
    """Pose of every row's frame in the base."""
    for i in range(table.shape[0] - 1):
        if begins_joint(work, i):
            store_pose(work.poses, i, pose_in_base(table, i, q, work))
        else:
            store_pose(work.poses, i, in_next_frame(load_pose(work.poses, i - 1)))


def write_pose(T: Pose, out: Table, first: int) -> None:
    """A pose as four rows of a matrix."""
    for r in range(3):
        for c in range(3):
            out[first + r, c] = T.R[3 * r + c]
        out[first + r, 3] = T.p[r]
        out[first + 3, r] = 0.0
    out[first + 3, 3] = 1.0


def forward_kinematics(table: Table, q: Table, places: Table, work: Workspace, pose: Table) -> None:
    """Pose of one link in the base, from the rows on its path."""
    store_poses_on_path(table, place_row(places, 0), q, work)
    T, i = place_pose(places, 0), place_row(places, 0)
    while i >= 0:
        T = pose_in_parent(work, i, T)
        i = work.parents[i]
    write_pose(T, pose, 0)


def link_poses(table: Table, q: Table, places: Table, work: Workspace, poses: Table) -> None:
    """Poses of all links in the base, four rows each."""
    for i in range(table.shape[0] - 1):
        if carries_link(work, i):
            first = work.firsts[i]
            T = pose_in_base(table, first, q, work)
            # A group joint has 3 or 6 rows, so the axes of its last row are two renamings from those of its first.
            store_pose(work.poses, i, T if first == i else in_next_frame(in_next_frame(T)))
    for l in range(places.shape[0]):
        i, T = place_row(places, l), place_pose(places, l)
        write_pose(T if i < 0 else compose(load_pose(work.poses, i), T), poses, 4 * l)


def point_pose(places: Table) -> Pose:
    """Pose, in the link's row, of the frame in which columns are computed first: the com frame or the link frame."""
    T = place_pose(places, 0)
    return Pose(T.R, place_com(places, 0)) if place_frame(places, 0) == COM else T


def in_frame(frame: int, T: Pose, V: Twist) -> Twist:
    """Change the frame of a link's twist from its own frame, whose pose in the base is T, to the given frame."""
    if frame == BASE:
        return twist_to_parent(T, V)
    if frame == MIXED:
        return Twist(rotate(T.R, V.w), rotate(T.R, V.v))
    return V


def rate_in_frame(frame: int, T: Pose, V: Twist, X: Twist, rate: Twist) -> Twist:
    """Time derivative of ``in_frame(frame, T, X)`` for a link with twist V: d/dt Ad(T) = Ad(T) ad(V)."""
    if frame == BASE:
        return twist_to_parent(T, add_twists(rate, bracket(V, X)))
    if frame == MIXED:
        return in_frame(frame, T, Twist(add(rate.w, cross(V.w, X.w)), add(rate.v, cross(V.w, X.v))))
    return rate


def load_column(J: Table, i: int) -> Twist:
    """Column i of a Jacobian."""
    return Twist((J[0, i], J[1, i], J[2, i]), (J[3, i], J[4, i], J[5, i]))


def store_column(J: Table, i: int, V: Twist) -> None:
    """Write column i of a Jacobian."""
    for r in range(3):
        J[r, i] = V.w[r]
        J[r + 3, i] = V.v[r]


def columns_in_link(table: Table, q: Table, places: Table, work: Workspace, J: Table) -> Pose:
    """Write the screws on a link's path, in the link's frame, to J; return the link's pose in the base."""
    clear(J)
    store_poses_on_path(table, place_row(places, 0), q, work)
    T, i = point_pose(places), place_row(places, 0)
    while i >= 0:
        store_column(J, i, screw_from_beyond(T, joint_screw(table, i)))
        T = pose_in_parent(work, i, T)
        i = work.parents[i]
    return T


def jacobian(table: Table, q: Table, places: Table, work: Workspace, J: Table) -> None:
    """Twist Jacobian of one link, from the rows on its path."""
    T = columns_in_link(table, q, places, work, J)
    frame, i = place_frame(places, 0), place_row(places, 0)
    while i >= 0 and frame >= BASE:
        store_column(J, i, in_frame(frame, T, load_column(J, i)))
        i = work.parents[i]


def jacobian_dot(table: Table, q: Table, qd: Table, places: Table, work: Workspace, J: Table, J_dot: Table) -> None:
    """Twist Jacobian of one link and its rate entry by entry.

    In the link's frame, the rate of column i is ad(J_i) V, with V the link's twist relative to row i.
    """
    clear(J_dot)
    T = columns_in_link(table, q, places, work, J)
    frame, V, i = place_frame(places, 0), AT_REST, place_row(places, 0)
    while i >= 0:
        column = load_column(J, i)
        store_column(J_dot, i, bracket(column, V))
        V = add_twists(V, scale_twist(qd[i], column))
        i = work.parents[i]
    i = place_row(places, 0)
    while i >= 0 and frame >= BASE:
        column = load_column(J, i)
        store_column(J_dot, i, rate_in_frame(frame, T, V, column, load_column(J_dot, i)))
        store_column(J, i, in_frame(frame, T, column))
        i = work.parents[i]


def write_twist(V: Twist, out: Table) -> None:
    """A twist as six numbers."""
    for r in range(3):
        out[r] = V.w[r]
        out[r + 3] = V.v[r]


def twist_of_link(table: Table, q: Table, qd: Table, places: Table, work: Workspace, twist: Table) -> None:
    """Twist of one link, from the rows on its path."""
    store_poses_on_path(table, place_row(places, 0), q, work)
    T, V, i = point_pose(places), AT_REST, place_row(places, 0)
    while i >= 0:
        S = joint_screw(table, i)
        V = add_twists(V, scale_twist(qd[i], screw_from_beyond(T, S)))
        T = pose_in_parent(work, i, T)
        i = work.parents[i]
    write_twist(in_frame(place_frame(places, 0), T, V), twist)


def acceleration_of_link(
    table: Table, q: Table, qd: Table, qdd: Table, places: Table, work: Workspace, acceleration: Table
) -> None:
    """Time derivative of :func:`twist_of_link`: J q̈ + J̇ q̇."""
    store_poses_on_path(table, place_row(places, 0), q, work)
    T, V, A, i = point_pose(places), AT_REST, AT_REST, place_row(places, 0)
    while i >= 0:
        column = screw_from_beyond(T, joint_screw(table, i))
        A = add_twists(A, scale_twist(qdd[i], column))
        A = add_twists(A, scale_twist(qd[i], bracket(column, V)))
        V = add_twists(V, scale_twist(qd[i], column))
        T = pose_in_parent(work, i, T)
        i = work.parents[i]
    write_twist(rate_in_frame(place_frame(places, 0), T, V, V, A), acceleration)
