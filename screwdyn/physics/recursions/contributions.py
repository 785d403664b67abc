"""Contributions of single links: J, J̇, M, C and g from J and J̇ of the parent (docs/mathematics.md §2)."""

from screwdyn.physics.link_steps import (
    add_twists,
    add_wrenches,
    bracket,
    com_coriolis,
    com_momentum,
    compose,
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
    Pose,
    Twist,
    add,
    dot,
    rotate_back,
    scale,
)
from screwdyn.physics.table import (
    Table,
    Workspace,
    armature,
    joint_screw,
    load_pose,
    place_com,
    place_inertia,
    place_mass,
    place_pose,
    place_row,
    place_rows,
    store_pose,
)


def rows_on_path(work: Workspace, row: int) -> int:
    """Number of rows on the path from the base to a row, which is included."""
    k, i = 0, row
    while i >= 0:
        k += 1
        i = work.parents[i]
    return k


def rows_of_links(table: Table, q: Table, qd: Table, places: Table, rows: Table, work: Workspace) -> None:
    """J and J̇ of every row on the paths to some links, in ``rows`` (2, n, k, 6), and their poses in the base.

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
        screw = Twist((0.0, 0.0, S.turn), (0.0, 0.0, S.slide))
        k, row = rows_on_path(work, above), above
        for c in range(k - 1, -1, -1):
            column = twist_to_child(T, load_row_column(rows, 0, above, c))
            rate = twist_to_child(T, load_row_column(rows, 1, above, c))
            if row < first:
                rate = add_twists(rate, scale_twist(-qd[i], bracket(screw, column)))
            store_row_column(rows, 0, i, c, column)
            store_row_column(rows, 1, i, c, rate)
            row = work.parents[row]
        store_row_column(rows, 0, i, k, screw)
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
    contribution_of_link(table, qd, places, 0, k, rows, work, J, J_dot, M, C, g)


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
    qd: Table,
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
    """M = Jᵀ M̄ J, C = Jᵀ (M̄ J̇ + B J) and g = −m J_vᵀ Rᵀ g₀ of a link from its row's J and J̇.

    The armature of the link's own joint is added to M.
    """
    row = place_row(places, l)
    X = Pose(place_pose(places, l).R, place_com(places, l))
    m, I = place_mass(places, l), place_inertia(places, l)
    w, i = ZERO, row
    for c in range(k - 1, -1, -1):
        column, rate = (
            twist_to_child(X, load_row_column(rows, 0, row, c)),
            twist_to_child(X, load_row_column(rows, 1, row, c)),
        )
        store_column(J, c, column)
        store_column(J_dot, c, rate)
        w = add(w, scale(qd[i], column.w))
        i = work.parents[i]
    T = compose(load_pose(work.poses, row), X) if row >= 0 else X
    down = rotate_back(T.R, gravity_of(table))
    for c in range(k):
        column = load_column(J, c)
        F = com_momentum(m, I, column)
        G = add_wrenches(com_momentum(m, I, load_column(J_dot, c)), com_coriolis(m, I, w, column))
        for b in range(k):
            other = load_column(J, b)
            M[b, c] = power(other, F)
            C[b, c] = power(other, G)
        g[c] = -m * dot(column.v, down)
    for own in range(1, place_rows(places, l) + 1):
        M[k - own, k - own] += armature(table, row)


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
        contribution_of_link(table, qd, places, l, k, rows, work, own_J, own_J_dot, own_M, own_C, own_g)
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
