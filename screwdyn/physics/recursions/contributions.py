"""Contributions of single links: J, J̇, M, C and g from J and J̇ of the parent (docs/mathematics.md §2)."""

from screwdyn.physics.link_steps import (
    add_twists,
    add_wrenches,
    bracket,
    com_coriolis,
    com_momentum,
    compose,
    link_twist,
    power,
    scale_twist,
    twist_to_child,
)
from screwdyn.physics.recursions.joint_space import (
    clear,
    gravity_of,
)
from screwdyn.physics.recursions.links import (
    load_column,
    store_column,
)
from screwdyn.physics.row_steps import (
    row_pose,
)
from screwdyn.physics.spatial import (
    AT_REST,
    ZERO,
    JointScrew,
    Pose,
    Scalar,
    Twist,
    Vector,
    dot,
    rotate_back,
)
from screwdyn.physics.table import (
    Table,
    Workspace,
    armature,
    joint_screw,
    load3,
    load_pose,
    load_twist,
    place_com,
    place_inertia,
    place_mass,
    place_pose,
    place_row,
    place_rows,
    store3,
    store_pose,
    store_twist,
)


def rows_on_path(work: Workspace, row: int) -> int:
    """Number of rows on the path from the base to a row, which is included."""
    k, i = 0, row
    while i >= 0:
        k += 1
        i = work.parents[i]
    return k


def unit_twist(S: JointScrew) -> Twist:
    """A joint's screw in the frame of its row."""
    return Twist((0.0, 0.0, S.turn), (0.0, 0.0, S.slide))


def rate_to_child(T: Pose, rate: Twist, S: JointScrew, qd: Scalar, column: Twist) -> Twist:
    """Ad(T)⁻¹ J̇_p − ad(S ν) J: the rate of a column J of a row's Jacobian, from that of its parent's."""
    return add_twists(twist_to_child(T, rate), scale_twist(-qd, bracket(unit_twist(S), column)))


def rows_of_links(table: Table, q: Table, qd: Table, places: Table, rows: Table, work: Workspace) -> None:
    """Poses in the base, twists, J and J̇ of every row on the paths to some links; ``rows`` (2, n, k, 6) has J and J̇.

    The columns of a row are those of the rows on its path, at most k. J = [X J_p | S] and
    J̇ = [X J̇_p − ad(S ν) X J_p | 0], where p is the parent link and S are all screws of the row's joint: rows of one
    joint do not contribute to each other's J̇.
    """
    n = table.shape[0] - 1
    for i in range(n):
        work.pivots[i, 0] = 0.0
    for l in range(places.shape[0]):
        i = place_row(places, l)
        while i >= 0:
            work.pivots[i, 0] = 1.0
            i = work.parents[i]
    for i in range(n):
        if work.pivots[i, 0] == 0.0:
            continue
        above, first = work.parents[i], work.firsts[i]
        T, S = row_pose(table, i, q, work), joint_screw(table, i)
        store_pose(work.poses, i, T if above < 0 else compose(load_pose(work.poses, above), T))
        store_twist(work.twists, i, link_twist(T, AT_REST if above < 0 else load_twist(work.twists, above), S, qd[i]))
        k, row = rows_on_path(work, above), above
        for c in range(k - 1, -1, -1):
            column = twist_to_child(T, load_row_column(rows, 0, above, c))
            rate = load_row_column(rows, 1, above, c)
            store_row_column(rows, 0, i, c, column)
            store_row_column(rows, 1, i, c, rate_to_child(T, rate, S, qd[i] if row < first else 0.0, column))
            row = work.parents[row]
        store_row_column(rows, 0, i, k, unit_twist(S))
        store_row_column(rows, 1, i, k, AT_REST)


def contribution(
    table: Table,
    q: Table,
    qd: Table,
    places: Table,
    rows: Table,
    work: Workspace,
    J: Table,
    J_dot: Table,
    M: Table,
    C: Table,
    g: Table,
) -> None:
    """J, J̇, M, C and g of a link over the k rows on its path."""
    rows_of_links(table, q, qd, places, rows, work)
    k = rows_on_path(work, place_row(places, 0))
    contribution_of_link(table, places, 0, k, rows, work, J, J_dot, M, C, g)


def load_row_column(rows: Table, which: int, i: int, c: int) -> Twist:
    """Column c of row i's Jacobian, or of its rate."""
    return Twist(
        (rows[which, i, c, 0], rows[which, i, c, 1], rows[which, i, c, 2]),
        (rows[which, i, c, 3], rows[which, i, c, 4], rows[which, i, c, 5]),
    )


def store_row_column(rows: Table, which: int, i: int, c: int, V: Twist) -> None:
    """Write column c of row i's Jacobian, or of its rate."""
    for r in range(3):
        rows[which, i, c, r] = V.w[r]
        rows[which, i, c, 3 + r] = V.v[r]


def contribution_of_link(
    table: Table,
    places: Table,
    l: int,
    k: int,
    rows: Table,
    work: Workspace,
    J: Table,
    J_dot: Table,
    M: Table,
    C: Table,
    g: Table,
) -> None:
    """The contribution of a link from the pose, the twist, J and J̇ of its row.

    The armature of the link's own joint is added to M.
    """
    row, X = place_row(places, l), com_pose(places, l)
    for c in range(k):
        store_column(J, c, twist_to_child(X, load_row_column(rows, 0, row, c)))
        store_column(J_dot, c, twist_to_child(X, load_row_column(rows, 1, row, c)))
    down, w = gravity_of(table), ZERO
    if row >= 0:
        down, w = rotate_back(load_pose(work.poses, row).R, down), load_twist(work.twists, row).w
    dynamics_at_com(places, l, down, w, J, J_dot, k, M, C, g)
    for own in range(1, place_rows(places, l) + 1):
        M[k - own, k - own] += armature(table, row)


def com_pose(places: Table, l: int) -> Pose:
    """Pose of a link's com frame in the frame of its row."""
    return Pose(place_pose(places, l).R, place_com(places, l))


def dynamics_at_com(
    places: Table, l: int, down: Vector, w: Vector, J: Table, J_dot: Table, k: int, M: Table, C: Table, g: Table
) -> None:
    """M = Jᵀ M̄ J, C = Jᵀ (M̄ J̇ + B J) and g = −m J_vᵀ Rᵀ g₀ of a link from the k columns of its J and J̇.

    Gravity and the angular velocity are in the frame of its row.
    """
    m, I, R = place_mass(places, l), place_inertia(places, l), place_pose(places, l).R
    down, w = rotate_back(R, down), rotate_back(R, w)
    for c in range(k):
        column = load_column(J, c)
        F = com_momentum(m, I, column)
        G = add_wrenches(com_momentum(m, I, load_column(J_dot, c)), com_coriolis(m, I, w, column))
        for b in range(k):
            other = load_column(J, b)
            M[b, c] = power(other, F)
            C[b, c] = power(other, G)
        g[c] = -m * dot(column.v, down)


def subtree_contribution(
    table: Table,
    q: Table,
    qd: Table,
    places: Table,
    rows: Table,
    own_J: Table,
    own_J_dot: Table,
    own_M: Table,
    own_C: Table,
    own_g: Table,
    work: Workspace,
    J: Table,
    J_dot: Table,
    M: Table,
    C: Table,
    g: Table,
) -> None:
    """The padded sum of the contributions of some links over all rows, and J and J̇ of the first of them."""
    rows_of_links(table, q, qd, places, rows, work)
    clear(J)
    clear(J_dot)
    clear(M)
    clear(C)
    for i in range(g.shape[0]):
        g[i] = 0.0
    for l in range(places.shape[0]):
        k = rows_on_path(work, place_row(places, l))
        contribution_of_link(table, places, l, k, rows, work, own_J, own_J_dot, own_M, own_C, own_g)
        i = place_row(places, l)
        for c in range(k - 1, -1, -1):
            if l == 0:
                store_column(J, i, load_column(own_J, c))
                store_column(J_dot, i, load_column(own_J_dot, c))
            j = place_row(places, l)
            for b in range(k - 1, -1, -1):
                M[j, i] += own_M[b, c]
                C[j, i] += own_C[b, c]
                j = work.parents[j]
            g[i] += own_g[c]
            i = work.parents[i]


# A column of a link's J and J̇ in the frame of its row: a row of twelve numbers.


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
    J: Table,
    J_dot: Table,
    M: Table,
    C: Table,
    g: Table,
) -> None:
    """The contribution of a link from what its parent's row has: one step, which gives what the link's row has.

    The table has the rows of the link's own joint only, and ``onto`` their columns in J with the ratios of the rows to
    the freedoms of these: a row that follows a joint on the path is added to the column of that joint. A row has a pose
    and a twist (1, 18), and columns (k, 12) of J and J̇. Equations as for ``rows_of_links``.
    """
    T, V = load_pose(frame_above, 0), Twist(load3(frame_above, 0, 12), load3(frame_above, 0, 15))
    p = columns_above.shape[0]
    for c in range(columns.shape[0]):
        for r in range(12):
            columns[c, r] = columns_above[c, r] if c < p else 0.0
    for i in range(table.shape[0] - 1):
        X, S, before = row_pose(table, i, q, work), joint_screw(table, i), p + work.firsts[i]
        T, V = compose(T, X), link_twist(X, V, S, qd[i])
        for c in range(p + i):
            column = twist_to_child(X, load_twist(columns, c))
            rate = rate_to_child(X, load_rate(columns, c), S, qd[i] if c < before else 0.0, column)
            store_twist(columns, c, column)
            store_rate(columns, c, rate)
        c = int(onto[i, 0])
        store_twist(columns, c, add_twists(load_twist(columns, c), scale_twist(onto[i, 1], unit_twist(S))))
    store_pose(frame, 0, T)
    store3(frame, 0, 12, V.w)
    store3(frame, 0, 15, V.v)
    X = com_pose(places, 0)
    for c in range(columns.shape[0]):
        store_column(J, c, twist_to_child(X, load_twist(columns, c)))
        store_column(J_dot, c, twist_to_child(X, load_rate(columns, c)))
    dynamics_at_com(places, 0, rotate_back(T.R, gravity_of(table)), V.w, J, J_dot, columns.shape[0], M, C, g)
    for i in range(table.shape[0] - 1):
        c = int(onto[i, 0])
        M[c, c] += onto[i, 1] * onto[i, 1] * armature(table, i)


def load_rate(columns: Table, c: int) -> Twist:
    """Column c of J̇."""
    return Twist(load3(columns, c, 6), load3(columns, c, 9))


def store_rate(columns: Table, c: int, V: Twist) -> None:
    """Write column c of J̇."""
    store3(columns, c, 6, V.w)
    store3(columns, c, 9, V.v)
