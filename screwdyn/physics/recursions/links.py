"""Recursions for single links: poses, twists, accelerations and Jacobians in several frames, contributions, energies.

A contribution is J, J̇, M, C and g of a link from J and J̇ of its parent (docs/mathematics.md §2). The columns of J and
J̇ of a row, in its frame, are rows of twelve numbers, one for each row on its path.
"""

from typing import NamedTuple

from screwdyn.core.errors import ShapeError
from screwdyn.physics import link_steps as steps
from screwdyn.physics import table as rows
from screwdyn.physics.link_steps import AT_REST, ZERO, JointScrew, Pose, Twist, Wrench, add, cross, rotate_back, scale
from screwdyn.physics.table import ARMATURE, Place, Table, Workspace, add_to, joint_screw, load, store

COM, BODY, BASE, MIXED = range(4)
FRAMES = ("com", "body", "base", "mixed")
# Names of the frames in other libraries, such as Pinocchio's ReferenceFrame.
_ALSO = {"local": BODY, "world": BASE, "space": BASE, "spatial": BASE, "local_world_aligned": MIXED, "hybrid": MIXED}
_CODES = {name: code for code, name in enumerate(FRAMES)} | _ALSO

Scratch = tuple[Table, ...]  # arrays in addition to the workspace


class Share(NamedTuple):
    """What a link, or several, contribute: arrays of J, J̇, M, C and g."""

    J: Table
    J_dot: Table
    M: Table
    C: Table
    g: Table


def is_frame(name: str) -> bool:
    """Whether a string is the name of a frame."""
    return name.lower() in _CODES


def frame_code(frame: object) -> int:
    """Code of a frame by its name, in upper or lower case, or by a member of Pinocchio's ``ReferenceFrame``."""
    name = getattr(frame, "name", frame)
    if not isinstance(name, str) or not is_frame(name):
        also = ", ".join(f"{name!r} = {FRAMES[code]!r}" for name, code in _ALSO.items())
        raise ShapeError(f"frame must be 'com', 'body', 'base' or 'mixed'; got {frame!r} (also known: {also})")
    return _CODES[name.lower()]


def clear(A: Table) -> None:
    """Set all entries of a matrix to zero."""
    for i in range(A.shape[0]):
        for k in range(A.shape[1]):
            A[i, k] = 0.0


def pose_in_base(table: Table, i: int, q: Table, work: Workspace) -> Pose:
    """Pose in the base of the frame of row i, which begins its joint, from that of its parent's."""
    # The home of the first row of a group joint, which carries no link, contains the joint's pose.
    T, k = rows.row_pose(table, i, q, work) if rows.carries_link(work, i) else rows.home(table, i), work.parents[i]
    return T if k < 0 else steps.compose(load(work.poses, k, Pose), T)


def poses_in_base(table: Table, q: Table, work: Workspace) -> None:
    """Pose of every row's frame in the base."""
    for i in range(table.shape[0] - 1):
        if rows.begins_joint(work, i):
            store(work.poses, i, pose_in_base(table, i, q, work))
        else:
            store(work.poses, i, rows.in_next_frame(load(work.poses, i - 1, Pose)))


def screw_of_row(table: Table, i: int, work: Workspace) -> Twist:
    """The screw of row i in the base, whose pose there is in work."""
    return steps.screw_in_base(load(work.poses, i, Pose), joint_screw(table, i))


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
    """Poses of all links in the base, four rows each; rows of a group joint that carry no link need none."""
    for i in range(table.shape[0] - 1):
        if rows.carries_link(work, i):
            first = work.firsts[i]
            T = pose_in_base(table, first, q, work)
            store(work.poses, i, T if rows.axes_as_first(first, i) else rows.in_next_frame(rows.in_next_frame(T)))
    for l in range(places.shape[0]):
        link = load(places, l, Place)
        if link.row < 0:
            T = link.pose
        else:
            T = load(work.poses, link.row, Pose)
            if not steps.is_identity(link.pose):
                T = steps.compose(T, link.pose)
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
        return steps.twist_to_parent(T, V)
    if frame == MIXED:
        return Twist(steps.rotate(T.R, V.w), steps.rotate(T.R, V.v))
    return V


def rate_in_frame(frame: int, T: Pose, V: Twist, X: Twist, rate: Twist) -> Twist:
    """Time derivative of ``in_frame(frame, T, X)`` for a link with twist V: d/dt Ad(T) = Ad(T) ad(V)."""
    if frame == BASE:
        return steps.twist_to_parent(T, add(rate, steps.bracket(V, X)))
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
        store_column(J, i, steps.twist_to_child(T, steps.unit_twist(joint_screw(table, i))))
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
    """J and its rate; in the link's frame, that of column i is ad(J_i) V, with V the link's twist relative to row i."""
    clear(J_dot)
    link = load(places, 0, Place)
    T = columns_in_link(table, q, link, work, J)
    V, i = AT_REST, link.row
    while i >= 0:
        column = load_column(J, i)
        store_column(J_dot, i, steps.bracket(column, V))
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


def motion_of_link(
    table: Table, q: Table, qd: Table, qdd: Table, link: Place, work: Workspace
) -> tuple[Pose, Twist, Twist]:
    """Pose in the base, twist and its rate of one link in its own frame, from the rows on its path."""
    rows.store_poses_on_path(table, link.row, q, work)
    T, V, A, i = point_pose(link), AT_REST, AT_REST, link.row
    while i >= 0:
        column = steps.twist_to_child(T, steps.unit_twist(joint_screw(table, i)))
        A = add(A, scale(qdd[i], column))
        A = add(A, scale(qd[i], steps.bracket(column, V)))
        V = add(V, scale(qd[i], column))
        T = rows.pose_in_parent(work, i, T)
        i = work.parents[i]
    return T, V, A


def twist_of_link(table: Table, q: Table, qd: Table, places: Table, work: Workspace, twist: Table) -> None:
    """Twist of one link."""
    link = load(places, 0, Place)
    T, V, _ = motion_of_link(table, q, qd, qd, link, work)
    write_six(in_frame(link.frame, T, V), twist)


def acceleration_of_link(
    table: Table, q: Table, qd: Table, qdd: Table, places: Table, work: Workspace, acceleration: Table
) -> None:
    """Time derivative of :func:`twist_of_link`: J q̈ + J̇ q̇."""
    link = load(places, 0, Place)
    T, V, A = motion_of_link(table, q, qd, qdd, link, work)
    write_six(rate_in_frame(link.frame, T, V, V, A), acceleration)


# Regressors


def reference_regressor(
    table: Table,
    q: Table,
    qd: Table,
    qd_ref: Table,
    qdd_ref: Table,
    places: Table,
    scratch: Scratch,
    work: Workspace,
    Y: Table,
) -> None:
    """The joint forces of reference dynamics of links with each of their ten parameters 1 and all others 0."""
    (J,) = scratch
    clear(Y)
    for l in range(places.shape[0]):
        link = load(places, l, Place)
        T = columns_in_link(table, q, link, work, J)
        V, V_ref, A, i = AT_REST, AT_REST, AT_REST, link.row
        while i >= 0:
            column = load_column(J, i)
            A = add(A, add(scale(qdd_ref[i], column), scale(qd_ref[i], steps.bracket(column, V))))
            V, V_ref = add(V, scale(qd[i], column)), add(V_ref, scale(qd_ref[i], column))
            i = work.parents[i]
        # A has the rates of the components in the link's frame, which turns.
        a = add(A.v, steps.subtract(cross(V.w, V_ref.v), rotate_back(T.R, rows.gravity_of(table))))
        motion = steps.reference_of(V.w, V_ref.w, add(A.w, cross(V.w, V_ref.w)), a)
        for k in range(10):
            write_along_path(J, link, steps.reference_wrench(steps.unit_inertia(k), motion), 10 * l + k, work, Y)


def twist_along_path(J: Table, qd: Table, link: Place, work: Workspace) -> Twist:
    """The twist of a link from the columns of its path."""
    V, i = AT_REST, link.row
    while i >= 0:
        V = add(V, scale(qd[i], load_column(J, i)))
        i = work.parents[i]
    return V


def momentum_regressor(
    table: Table, q: Table, qd: Table, places: Table, scratch: Scratch, work: Workspace, Y: Table
) -> None:
    """The momenta along the freedoms of links with each of their ten parameters 1 and all others 0."""
    (J,) = scratch
    clear(Y)
    for l in range(places.shape[0]):
        link = load(places, l, Place)
        columns_in_link(table, q, link, work, J)
        V = twist_along_path(J, qd, link, work)
        for k in range(10):
            write_along_path(J, link, steps.momentum(steps.unit_inertia(k), V), 10 * l + k, work, Y)


def momentum_rate_regressor(
    table: Table, q: Table, qd: Table, places: Table, scratch: Scratch, work: Workspace, momenta: Table, Y: Table
) -> None:
    """The same momenta, and their rates besides those by torques: momenta along the rates of screws, and weights."""
    (J,) = scratch
    clear(momenta)
    clear(Y)
    for l in range(places.shape[0]):
        link = load(places, l, Place)
        T = columns_in_link(table, q, link, work, J)
        V = twist_along_path(J, qd, link, work)
        up = rotate_back(T.R, scale(-1.0, rows.gravity_of(table)))
        for k in range(10):
            body = steps.unit_inertia(k)
            F, held, X, i = steps.momentum(body, V), steps.weight(body, up), V, link.row
            write_along_path(J, link, F, 10 * l + k, work, momenta)
            while i >= 0:
                column = load_column(J, i)
                Y[i, 10 * l + k] = steps.power(steps.bracket(X, column), F) - steps.power(column, held)
                X = add(X, scale(-qd[i], column))
                i = work.parents[i]


def write_along_path(J: Table, link: Place, F: Wrench, k: int, work: Workspace, Y: Table) -> None:
    """Jᵀ F of a wrench on a link, as column k."""
    i = link.row
    while i >= 0:
        Y[i, k] = steps.power(load_column(J, i), F)
        i = work.parents[i]


# Contributions and energies


def rows_on_path(work: Workspace, row: int) -> int:
    """Number of rows on the path from the base to a row, which is included."""
    k, i = 0, row
    while i >= 0:
        k += 1
        i = work.parents[i]
    return k


def columns_of_row(X: Pose, S: JointScrew, qd: steps.Scalar, above: Table, before: int, count: int, own: Table) -> None:
    """X J_p and Ad(X)⁻¹ J̇_p − ad(S ν) X J_p: the columns of a row's J and J̇ but its own, from those of its parent.

    The rows of one joint do not contribute to each other's J̇: the columns of the row's joint are not ``before`` it.
    """
    for c in range(count):
        column = steps.twist_to_child(X, load(above, c, Twist))
        rate = steps.twist_to_child(X, load(above, c, Twist, 6))
        turn = scale(-(qd if c < before else 0.0), steps.bracket(steps.unit_twist(S), column))
        store(own, c, column)
        store(own, c, add(rate, turn), 6)


def rows_of_links(table: Table, q: Table, qd: Table, places: Table, columns: Table, work: Workspace) -> None:
    """Poses in the base, twists, and the columns (n, k, 12) of J and J̇ of every row on the paths to some links.

    J = [X J_p | S] and J̇ = [X J̇_p − ad(S ν) X J_p | 0], where p is the parent link and S are all screws of the joint.
    """
    n = table.shape[0] - 1
    for i in range(n):
        work.pivots[i, 0] = 0.0
    for l in range(places.shape[0]):
        i = load(places, l, Place).row
        while i >= 0:
            work.pivots[i, 0] = 1.0
            i = work.parents[i]
    for i in range(n):
        if work.pivots[i, 0] == 0.0:
            continue
        above = work.parents[i]
        X, S, k = rows.row_pose(table, i, q, work), joint_screw(table, i), rows_on_path(work, above)
        T, V, parent = X, AT_REST, columns[i]
        if above >= 0:
            T, V = steps.compose(load(work.poses, above, Pose), X), load(work.twists, above, Twist)
            parent = columns[above]
        store(work.poses, i, T)
        store(work.twists, i, steps.link_twist(X, V, S, qd[i]))
        columns_of_row(X, S, qd[i], parent, k - (i - work.firsts[i]), k, columns[i])
        store(columns[i], k, steps.unit_twist(S))
        store(columns[i], k, AT_REST, 6)


def contribution(
    table: Table, q: Table, qd: Table, places: Table, scratch: Scratch, work: Workspace, share: Share
) -> None:
    """J, J̇, M, C and g of a link over the k rows on its path."""
    (columns,) = scratch
    rows_of_links(table, q, qd, places, columns, work)
    contribution_of_link(table, load(places, 0, Place), columns, work, share)


def contribution_of_link(table: Table, link: Place, columns: Table, work: Workspace, share: Share) -> None:
    """The contribution of a link from the pose, the twist, J and J̇ of its row, with the armature of its own joint."""
    row, k = link.row, rows_on_path(work, link.row)
    down, w = rows.gravity_of(table), ZERO
    if row >= 0:
        down, w = rotate_back(load(work.poses, row, Pose).R, down), load(work.twists, row, Twist).w
        dynamics_at_com(link, down, w, columns[row], k, share)
    for own in range(1, link.rows + 1):
        share.M[k - own, k - own] += table[row, ARMATURE]


def dynamics_at_com(link: Place, down: steps.Vector, w: steps.Vector, columns: Table, k: int, share: Share) -> None:
    """J, J̇, M = Jᵀ M̄ J, C = Jᵀ (M̄ J̇ + B J), g = −m J_vᵀ Rᵀ g₀ of a link, from gravity and ω in its row's frame."""
    m, I, X = link.mass, link.inertia, com_pose(link)
    J, J_dot, M, C, g = share
    for c in range(k):
        store_column(J, c, steps.twist_to_child(X, load(columns, c, Twist)))
        store_column(J_dot, c, steps.twist_to_child(X, load(columns, c, Twist, 6)))
    down, w = rotate_back(X.R, down), rotate_back(X.R, w)
    for c in range(k):
        column = load_column(J, c)
        F = steps.com_momentum(m, I, column)
        G = steps.com_momentum(m, I, load_column(J_dot, c))
        G = add(G, steps.com_coriolis(m, I, w, column))
        for b in range(k):
            other = load_column(J, b)
            M[b, c] = steps.power(other, F)
            C[b, c] = steps.power(other, G)
        g[c] = -m * steps.dot(column.v, down)


def subtree_contribution(
    table: Table, q: Table, qd: Table, places: Table, scratch: Scratch, work: Workspace, total: Share
) -> None:
    """The padded sum of the contributions of some links over all rows, and J and J̇ of the first of them."""
    columns, own_J, own_J_dot, own_M, own_C, own_g = scratch
    rows_of_links(table, q, qd, places, columns, work)
    J, J_dot, M, C, g = total
    clear(J)
    clear(J_dot)
    clear(M)
    clear(C)
    for i in range(g.shape[0]):
        g[i] = 0.0
    for l in range(places.shape[0]):
        link = load(places, l, Place)
        contribution_of_link(table, link, columns, work, Share(own_J, own_J_dot, own_M, own_C, own_g))
        i, k = link.row, rows_on_path(work, link.row)
        for c in range(k - 1, -1, -1):
            if l == 0:
                store_column(J, i, load_column(own_J, c))
                store_column(J_dot, i, load_column(own_J_dot, c))
            j = link.row
            for b in range(k - 1, -1, -1):
                M[j, i] += own_M[b, c]
                C[j, i] += own_C[b, c]
                j = work.parents[j]
            g[i] += own_g[c]
            i = work.parents[i]


def link_step(
    table: Table,
    q: Table,
    qd: Table,
    onto: Table,
    frame_above: Table,
    columns_above: Table,
    places: Table,
    work: Workspace,
    frame: Table,
    columns: Table,
    share: Share,
) -> None:
    """The contribution of a link from what its parent's row has, a pose and a twist (1, 18), and columns (k, 12).

    The table has the rows of the link's own joint only, and ``onto`` their columns in J with the ratios of the rows to
    the freedoms of these: a row that follows a joint on the path is added to the column of that joint.
    """
    T, V, p = load(frame_above, 0, Pose), load(frame_above, 0, Twist, 12), columns_above.shape[0]
    for c in range(columns.shape[0]):
        for r in range(12):
            columns[c, r] = columns_above[c, r] if c < p else 0.0
    for i in range(table.shape[0] - 1):
        X, S, c = rows.row_pose(table, i, q, work), joint_screw(table, i), int(onto[i, 0])
        T, V = steps.compose(T, X), steps.link_twist(X, V, S, qd[i])
        columns_of_row(X, S, qd[i], columns, p + work.firsts[i], p + i, columns)
        add_to(columns, c, scale(onto[i, 1], steps.unit_twist(S)))
    store(frame, 0, T)
    store(frame, 0, V, 12)
    down = rotate_back(T.R, rows.gravity_of(table))
    dynamics_at_com(load(places, 0, Place), down, V.w, columns, columns.shape[0], share)
    for i in range(table.shape[0] - 1):
        c = int(onto[i, 0])
        share.M[c, c] += onto[i, 1] * onto[i, 1] * table[i, ARMATURE]


def kinetic_energy(table: Table, q: Table, qd: Table, places: Table, work: Workspace, T: Table) -> None:
    """½ Σ Vᵀ M̄ V of some links, each with the armature of its own joint."""
    rows.store_poses(table, q, work)
    total = 0.0
    for i in range(table.shape[0] - 1):
        rows.store_row_twist(table, i, qd, work)
    for l in range(places.shape[0]):
        link = load(places, l, Place)
        if link.row >= 0:
            V = steps.twist_to_child(com_pose(link), load(work.twists, link.row, Twist))
            total = total + steps.power(V, steps.com_momentum(link.mass, link.inertia, V))
            for own in range(link.rows):
                total = total + table[link.row, ARMATURE] * (qd[link.row - own] * qd[link.row - own])
    T[0] = 0.5 * total


def potential_energy(table: Table, q: Table, places: Table, work: Workspace, U: Table) -> None:
    """−g₀ᵀ Σ m c of some links."""
    poses_in_base(table, q, work)
    h = ZERO
    for l in range(places.shape[0]):
        link = load(places, l, Place)
        c = link.com
        if link.row >= 0:
            T = load(work.poses, link.row, Pose)
            c = add(T.p, steps.rotate(T.R, c))
        h = add(h, scale(link.mass, c))
    U[0] = -steps.dot(rows.gravity_of(table), h)
