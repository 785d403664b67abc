"""Kinetic and potential energy of the tree, and of some of its links (docs/mathematics.md §2)."""

from screwdyn.physics.link_steps import (
    add_rate,
    com_momentum,
    momentum,
    power,
    twist_to_child,
)
from screwdyn.physics.recursions.joint_space import (
    gravity_of,
)
from screwdyn.physics.recursions.links import (
    poses_in_base,
)
from screwdyn.physics.recursions.whole_tree import (
    moment_of_tree,
)
from screwdyn.physics.row_steps import (
    store_poses,
    twist_of_parent,
)
from screwdyn.physics.spatial import (
    AT_REST,
    ZERO,
    Pose,
    add,
    dot,
    rotate,
    scale,
)
from screwdyn.physics.table import (
    Table,
    Workspace,
    armature,
    body,
    carries_link,
    joint_screw,
    load_pose,
    load_twist,
    place_com,
    place_inertia,
    place_mass,
    place_pose,
    place_row,
    place_rows,
    store_twist,
)


def kinetic_energy(table: Table, q: Table, qd: Table, work: Workspace, T: Table) -> None:
    """½ Σ Vᵀ I V, and that of the armatures."""
    store_poses(table, q, work)
    total, V = 0.0, AT_REST
    for i in range(table.shape[0] - 1):
        V = add_rate(twist_of_parent(work, i, V), joint_screw(table, i), qd[i])
        store_twist(work.twists, i, V)
        if carries_link(work, i):
            total = total + power(V, momentum(body(table, i), V)) + armature(table, i) * (qd[i] * qd[i])
    T[0] = 0.5 * total


def potential_energy(table: Table, q: Table, work: Workspace, U: Table) -> None:
    """−g₀ᵀ Σ m c."""
    store_poses(table, q, work)
    _, h = moment_of_tree(table, work)
    U[0] = -dot(gravity_of(table), h)


def kinetic_energy_of_links(table: Table, q: Table, qd: Table, places: Table, work: Workspace, T: Table) -> None:
    """½ Σ Vᵀ M̄ V of some links, each with the armature of its own joint."""
    store_poses(table, q, work)
    total, V = 0.0, AT_REST
    for i in range(table.shape[0] - 1):
        V = add_rate(twist_of_parent(work, i, V), joint_screw(table, i), qd[i])
        store_twist(work.twists, i, V)
    for l in range(places.shape[0]):
        row = place_row(places, l)
        if row >= 0:
            V = twist_to_child(Pose(place_pose(places, l).R, place_com(places, l)), load_twist(work.twists, row))
            total = total + power(V, com_momentum(place_mass(places, l), place_inertia(places, l), V))
            for own in range(place_rows(places, l)):
                total = total + armature(table, row) * (qd[row - own] * qd[row - own])
    T[0] = 0.5 * total


def potential_energy_of_links(table: Table, q: Table, places: Table, work: Workspace, U: Table) -> None:
    """−g₀ᵀ Σ m c of some links."""
    poses_in_base(table, q, work)
    h = ZERO
    for l in range(places.shape[0]):
        row, c = place_row(places, l), place_com(places, l)
        if row >= 0:
            T = load_pose(work.poses, row)
            c = add(T.p, rotate(T.R, c))
        h = add(h, scale(place_mass(places, l), c))
    U[0] = -dot(gravity_of(table), h)
