"""Poses, twists, accelerations and Jacobians of links, and the frames of the last three."""

from screwdyn.core.errors import ShapeError
from screwdyn.physics import link_steps
from screwdyn.physics import table as rows
from screwdyn.physics.link_steps import AT_REST, Pose, Twist, Wrench, add, cross, rotate, scale
from screwdyn.physics.table import Place, Table, Workspace, joint_screw, load, store

COM, BODY, BASE, MIXED = range(4)
FRAMES = ("com", "body", "base", "mixed")
# Names of the frames in other libraries, such as Pinocchio's ReferenceFrame.
_ALSO = {"local": BODY, "world": BASE, "space": BASE, "spatial": BASE, "local_world_aligned": MIXED, "hybrid": MIXED}
_CODES = {name: code for code, name in enumerate(FRAMES)} | _ALSO


def is_frame(name: str) -> bool:
    """Whether a string is the name of a frame."""
    return name.lower() in _CODES


def frame_code(frame: object) -> int:
    """Code of a frame, ``COM``, ``BODY``, ``BASE`` or ``MIXED``; ShapeError, with the known names, for any other one.

    Upper and lower case are equivalent. A member of Pinocchio's ``ReferenceFrame`` is converted by its name.
    """
    if isinstance(frame, str) and frame in _CODES:
        return _CODES[frame]
    name = frame if isinstance(frame, str) else getattr(frame, "name", None)
    code = _CODES.get(name.lower()) if isinstance(name, str) else None
    if code is None:
        also = ", ".join(f"{name!r} = {FRAMES[code]!r}" for name, code in _ALSO.items())
        raise ShapeError(f"frame must be 'com', 'body', 'base' or 'mixed'; got {frame!r} (also known: {also})")
    return code


def clear(A: Table) -> None:
    """Set all entries of a matrix to zero."""
    for i in range(A.shape[0]):
        for k in range(A.shape[1]):
            A[i, k] = 0.0


def pose_in_base(table: Table, i: int, q: Table, work: Workspace) -> Pose:
    """Pose in the base of the frame of row i, which begins its joint, from that of its parent's."""
    # The home of the first row of a group joint, which carries no link, contains the joint's pose.
    T, k = rows.row_pose(table, i, q, work) if rows.carries_link(work, i) else rows.home(table, i), work.parents[i]
    return T if k < 0 else link_steps.compose(load(work.poses, k, Pose), T)


def poses_in_base(table: Table, q: Table, work: Workspace) -> None:
    """Pose of every row's frame in the base."""
    for i in range(table.shape[0] - 1):
        if rows.begins_joint(work, i):
            store(work.poses, i, pose_in_base(table, i, q, work))
        else:
            store(work.poses, i, rows.in_next_frame(load(work.poses, i - 1, Pose)))


def screw_of_row(table: Table, i: int, work: Workspace) -> Twist:
    """The screw of row i in the base, whose pose there is in work."""
    return link_steps.screw_in_base(load(work.poses, i, Pose), joint_screw(table, i))


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
    link = load(places, 0, Place)
    rows.store_poses_on_path(table, link.row, q, work)
    T, i = link.pose, link.row
    while i >= 0:
        T = rows.pose_in_parent(work, i, T)
        i = work.parents[i]
    write_pose(T, pose, 0)


def link_poses(table: Table, q: Table, places: Table, work: Workspace, poses: Table) -> None:
    """Poses of all links in the base, four rows each."""
    for i in range(table.shape[0] - 1):
        if rows.carries_link(work, i):
            first = work.firsts[i]
            T = pose_in_base(table, first, q, work)
            store(work.poses, i, T if rows.axes_as_first(first, i) else rows.in_next_frame(rows.in_next_frame(T)))
    for l in range(places.shape[0]):
        link = load(places, l, Place)
        T = link.pose if link.row < 0 else link_steps.compose(load(work.poses, link.row, Pose), link.pose)
        write_pose(T, poses, 4 * l)


def com_pose(link: Place) -> Pose:
    """Pose of a link's com frame in the frame of its row."""
    return Pose(link.pose.R, link.com)


def point_pose(link: Place) -> Pose:
    """Pose, in the link's row, of the frame in which columns are computed first: the com frame or the link frame."""
    return com_pose(link) if link.frame == COM else link.pose


def in_frame(frame: int, T: Pose, V: Twist) -> Twist:
    """Change the frame of a link's twist from its own frame, whose pose in the base is T, to the given frame."""
    if frame == BASE:
        return link_steps.twist_to_parent(T, V)
    if frame == MIXED:
        return Twist(rotate(T.R, V.w), rotate(T.R, V.v))
    return V


def rate_in_frame(frame: int, T: Pose, V: Twist, X: Twist, rate: Twist) -> Twist:
    """Time derivative of ``in_frame(frame, T, X)`` for a link with twist V: d/dt Ad(T) = Ad(T) ad(V)."""
    if frame == BASE:
        return link_steps.twist_to_parent(T, add(rate, link_steps.bracket(V, X)))
    if frame == MIXED:
        return in_frame(frame, T, Twist(add(rate.w, cross(V.w, X.w)), add(rate.v, cross(V.w, X.v))))
    return rate


def load_column(J: Table, i: int) -> Twist:
    """Column i of a Jacobian."""
    return Twist((J[0, i], J[1, i], J[2, i]), (J[3, i], J[4, i], J[5, i]))


def store_column(J: Table, i: int, x: Twist | Wrench) -> None:
    """Write column i of a Jacobian or of a momentum matrix."""
    turning, moving = x
    for r in range(3):
        J[r, i] = turning[r]
        J[r + 3, i] = moving[r]


def columns_in_link(table: Table, q: Table, link: Place, work: Workspace, J: Table) -> Pose:
    """Write the screws on a link's path, in the link's frame, to J; return the link's pose in the base."""
    clear(J)
    rows.store_poses_on_path(table, link.row, q, work)
    T, i = point_pose(link), link.row
    while i >= 0:
        store_column(J, i, link_steps.screw_from_beyond(T, joint_screw(table, i)))
        T = rows.pose_in_parent(work, i, T)
        i = work.parents[i]
    return T


def jacobian(table: Table, q: Table, places: Table, work: Workspace, J: Table) -> None:
    """Twist Jacobian of one link, from the rows on its path."""
    link = load(places, 0, Place)
    T, i = columns_in_link(table, q, link, work, J), link.row
    while i >= 0 and link.frame >= BASE:
        store_column(J, i, in_frame(link.frame, T, load_column(J, i)))
        i = work.parents[i]


def jacobian_dot(table: Table, q: Table, qd: Table, places: Table, work: Workspace, J: Table, J_dot: Table) -> None:
    """Twist Jacobian of one link and its rate entry by entry.

    In the link's frame, the rate of column i is ad(J_i) V, with V the link's twist relative to row i.
    """
    clear(J_dot)
    link = load(places, 0, Place)
    T = columns_in_link(table, q, link, work, J)
    V, i = AT_REST, link.row
    while i >= 0:
        column = load_column(J, i)
        store_column(J_dot, i, link_steps.bracket(column, V))
        V = add(V, scale(qd[i], column))
        i = work.parents[i]
    i = link.row
    while i >= 0 and link.frame >= BASE:
        column = load_column(J, i)
        store_column(J_dot, i, rate_in_frame(link.frame, T, V, column, load_column(J_dot, i)))
        store_column(J, i, in_frame(link.frame, T, column))
        i = work.parents[i]


def write_six(x: Twist | Wrench, out: Table) -> None:
    """A twist or wrench as six numbers."""
    turning, moving = x
    for r in range(3):
        out[r] = turning[r]
        out[r + 3] = moving[r]


def twist_of_link(table: Table, q: Table, qd: Table, places: Table, work: Workspace, twist: Table) -> None:
    """Twist of one link, from the rows on its path."""
    link = load(places, 0, Place)
    rows.store_poses_on_path(table, link.row, q, work)
    T, V, i = point_pose(link), AT_REST, link.row
    while i >= 0:
        S = joint_screw(table, i)
        V = add(V, scale(qd[i], link_steps.screw_from_beyond(T, S)))
        T = rows.pose_in_parent(work, i, T)
        i = work.parents[i]
    write_six(in_frame(link.frame, T, V), twist)


def acceleration_of_link(
    table: Table, q: Table, qd: Table, qdd: Table, places: Table, work: Workspace, acceleration: Table
) -> None:
    """Time derivative of :func:`twist_of_link`: J q̈ + J̇ q̇."""
    link = load(places, 0, Place)
    rows.store_poses_on_path(table, link.row, q, work)
    T, V, A, i = point_pose(link), AT_REST, AT_REST, link.row
    while i >= 0:
        column = link_steps.screw_from_beyond(T, joint_screw(table, i))
        A = add(A, scale(qdd[i], column))
        A = add(A, scale(qd[i], link_steps.bracket(column, V)))
        V = add(V, scale(qd[i], column))
        T = rows.pose_in_parent(work, i, T)
        i = work.parents[i]
    write_six(rate_in_frame(link.frame, T, V, V, A), acceleration)
