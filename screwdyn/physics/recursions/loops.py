"""Constraints of loops: rows of J_c and of its rate, from the wrenches that the joints of the loops transmit.

A wrench F that a loop's joint transmits is fixed in the loop's link. In the base frame, its row of J_c is
Fᵀ (J_link − J_to), and that of J̇_c has Fᵀ ad(V_j − V_link) S_j with the same signs (docs/mathematics.md §12). Columns
of rows that carry both links vanish.
"""

from screwdyn.physics.link_steps import (
    add_twists,
    bracket,
    power,
    scale_twist,
    screw_in_base,
    wrench_to_parent,
)
from screwdyn.physics.recursions.joint_space import clear
from screwdyn.physics.recursions.links import poses_in_base
from screwdyn.physics.spatial import AT_REST, Twist, Wrench
from screwdyn.physics.table import (
    Table,
    Workspace,
    joint_screw,
    load_pose,
    load_twist,
    place_other_row,
    place_row,
    place_wrench,
    store_twist,
)


def wrench_in_base(places: Table, l: int, poses: Table) -> Wrench:
    """The wrench of a constraint in the base frame."""
    i, F = place_row(places, l), place_wrench(places, l)
    return F if i < 0 else wrench_to_parent(load_pose(poses, i), F)


def screws_in_base(table: Table, q: Table, work: Workspace) -> None:
    """The screw of every row in the base frame, in ``work.columns``, and the poses of the rows."""
    poses_in_base(table, q, work)
    for i in range(table.shape[0] - 1):
        store_twist(work.columns, i, screw_in_base(load_pose(work.poses, i), joint_screw(table, i)))


def constraint_jacobian(table: Table, q: Table, places: Table, work: Workspace, J: Table) -> None:
    """J_c, a row for each constraint."""
    screws_in_base(table, q, work)
    constraint_rows(table, places, work, J)


def constraint_rows(table: Table, places: Table, work: Workspace, J: Table) -> None:
    """J_c from the screws and poses of all rows in the base."""
    clear(J)
    for l in range(places.shape[0]):
        F = wrench_in_base(places, l, work.poses)
        i, k = place_row(places, l), place_other_row(places, l)
        while i != k:  # parents come before children, so the larger one does not carry the other
            if i > k:
                J[l, i] = power(load_twist(work.columns, i), F)
                i = work.parents[i]
            else:
                J[l, k] = -power(load_twist(work.columns, k), F)
                k = work.parents[k]


def twists_in_base(table: Table, qd: Table, work: Workspace) -> None:
    """The twist of every row in the base frame, from the screws there."""
    for i in range(table.shape[0] - 1):
        k = work.parents[i]
        before = AT_REST if k < 0 else load_twist(work.twists, k)
        store_twist(work.twists, i, add_twists(before, scale_twist(qd[i], load_twist(work.columns, i))))


def slip(work: Workspace, i: int, k: int) -> Twist:
    """The twist of row i relative to row k in the base frame."""
    V = AT_REST if i < 0 else load_twist(work.twists, i)
    return V if k < 0 else add_twists(V, scale_twist(-1.0, load_twist(work.twists, k)))


def constraint_jacobian_dot(
    table: Table, q: Table, qd: Table, places: Table, work: Workspace, J: Table, J_dot: Table
) -> None:
    """J_c, and its rate entry by entry."""
    screws_in_base(table, q, work)
    constraint_rows(table, places, work, J)
    twists_in_base(table, qd, work)
    clear(J_dot)
    for l in range(places.shape[0]):
        F = wrench_in_base(places, l, work.poses)
        link = place_row(places, l)
        i, k = link, place_other_row(places, l)
        while i != k:
            if i > k:
                J_dot[l, i] = power(bracket(slip(work, i, link), load_twist(work.columns, i)), F)
                i = work.parents[i]
            else:
                J_dot[l, k] = -power(bracket(slip(work, k, link), load_twist(work.columns, k)), F)
                k = work.parents[k]
