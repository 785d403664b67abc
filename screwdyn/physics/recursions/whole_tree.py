"""Centre of mass, momentum and energy of the whole tree (docs/mathematics.md §2 and §11)."""

from screwdyn.physics import link_steps
from screwdyn.physics import table as rows
from screwdyn.physics.link_steps import (
    AT_REST,
    ZERO,
    MassMoment,
    Pose,
    RigidInertia,
    Scalar,
    Twist,
    Vector,
    Wrench,
    add,
    cross,
    dot,
    exceeds,
    scale,
)
from screwdyn.physics.recursions.joint_space import outward_forces, store_momenta, wrench_on_base
from screwdyn.physics.recursions.links import poses_in_base, screw_of_row, store_column, write_six
from screwdyn.physics.table import ARMATURE, MASSLESS, Table, Workspace, add_to, body, load, store


def base_body(table: Table) -> RigidInertia:
    """Inertia of all bodies welded to the base."""
    return body(table, table.shape[0] - 1)


def total_mass(table: Table) -> Scalar:
    """Mass of the tree including its base."""
    m = base_body(table).m
    for i in range(table.shape[0] - 1):
        m = m + body(table, i).m
    return m


def bodies_in_base(table: Table, q: Table, work: Workspace) -> MassMoment:
    """Write poses and inertias of all rows in the base frame to work; return the mass and first moment of the tree."""
    poses_in_base(table, q, work)
    m, h = base_body(table).m, base_body(table).h
    for i in range(table.shape[0] - 1):
        inertia = body(table, i)
        if rows.carries_link(work, i):
            inertia = link_steps.inertia_to_parent(load(work.poses, i, Pose), inertia)
            m, h = m + inertia.m, add(h, inertia.h)
        store(work.inertias, i, inertia)
    return MassMoment(m, h)


def write3(a: Vector, out: Table) -> None:
    """A vector as three numbers."""
    for r in range(3):
        out[r] = a[r]


def store_moments(table: Table, moments: Table) -> None:
    """Write the mass and first moment of every row's body."""
    for i in range(table.shape[0] - 1):
        own = body(table, i)
        store(moments, i, MassMoment(own.m, own.h))


def moment_of_tree(table: Table, work: Workspace) -> MassMoment:
    """Mass and first moment Σ m c of the tree in the base frame; work has the poses of the rows in their parents."""
    # The four numbers of a moment fit into the array of the pivots, which is not used here.
    store_moments(table, work.pivots)
    m, h = base_body(table).m, base_body(table).h
    for i in range(table.shape[0] - 2, -1, -1):
        if rows.carries_link(work, i):
            beyond = rows.moment_before_joint(work, i, load(work.pivots, i, MassMoment))
            k = work.parents[work.firsts[i]]
            if k >= 0:
                add_to(work.pivots, k, beyond)
            else:
                m, h = m + beyond.m, add(h, beyond.h)
    return MassMoment(m, h)


def center_of_mass(table: Table, q: Table, work: Workspace, c: Table) -> int:
    """Σ m c / Σ m."""
    rows.store_poses(table, q, work)
    m, h = moment_of_tree(table, work)
    if not exceeds(m, 0.0):
        return MASSLESS
    write3(scale(1 / m, h), c)
    return 0


def momentum_of_tree(table: Table, q: Table, qd: Table, work: Workspace) -> Wrench:
    """Sum of the momenta of all rows about the base's origin; work then has the poses of the rows in their parents."""
    store_momenta(table, q, qd, work)
    return wrench_on_base(table, work)


def spatial_momentum(table: Table, q: Table, qd: Table, work: Workspace, out: Table) -> None:
    """Momentum about the base's origin."""
    write_six(momentum_of_tree(table, q, qd, work), out)


def write_per_mass(table: Table, f: Vector, out: Table) -> int:
    """A force or linear momentum divided by the mass of the tree."""
    m = total_mass(table)
    if not exceeds(m, 0.0):
        return MASSLESS
    write3(scale(1 / m, f), out)
    return 0


def center_of_mass_velocity(table: Table, q: Table, qd: Table, work: Workspace, v: Table) -> int:
    """ċ = P / m."""
    return write_per_mass(table, momentum_of_tree(table, q, qd, work).f, v)


def write_about_center(table: Table, F: Wrench, work: Workspace, out: Table) -> int:
    """A wrench about the centre of mass, from that about the base's origin; work has the poses of the rows."""
    m, h = moment_of_tree(table, work)
    if not exceeds(m, 0.0):
        return MASSLESS
    write_six(link_steps.wrench_about(scale(1 / m, h), F), out)
    return 0


def centroidal_momentum(table: Table, q: Table, qd: Table, work: Workspace, out: Table) -> int:
    """Momentum about the centre of mass."""
    return write_about_center(table, momentum_of_tree(table, q, qd, work), work, out)


def centroidal_momentum_rate(table: Table, q: Table, qd: Table, qdd: Table, work: Workspace, out: Table) -> int:
    """Sum of the wrenches that accelerate the rows, about the centre of mass; ċ × P vanishes because P = m ċ."""
    outward_forces(table, q, qd, qdd, ZERO, work)
    return write_about_center(table, wrench_on_base(table, work), work, out)


def center_of_mass_acceleration(table: Table, q: Table, qd: Table, qdd: Table, work: Workspace, a: Table) -> int:
    """The force that accelerates the rows, divided by the mass."""
    outward_forces(table, q, qd, qdd, ZERO, work)
    return write_per_mass(table, wrench_on_base(table, work).f, a)


def sum_beyond(inertias: Table, work: Workspace) -> None:
    """Sum, in the base frame, the inertia of each row and of all rows beyond it."""
    for i in range(inertias.shape[0] - 1, -1, -1):
        k = work.parents[i]
        if k >= 0:
            add_to(inertias, k, load(inertias, i, RigidInertia))


def centroidal_momentum_matrix(table: Table, q: Table, work: Workspace, A: Table) -> int:
    """Columns I^c S about the centre of mass, with I^c the composite inertias."""
    total = bodies_in_base(table, q, work)
    if not exceeds(total.m, 0.0):
        return MASSLESS
    c = scale(1 / total.m, total.h)
    sum_beyond(work.inertias, work)
    for i in range(table.shape[0] - 1):
        S = screw_of_row(table, i, work)
        store_column(A, i, link_steps.wrench_about(c, link_steps.momentum(load(work.inertias, i, RigidInertia), S)))
    return 0


def center_of_mass_jacobian(table: Table, q: Table, work: Workspace, J: Table) -> int:
    """Columns (m v + ω × h) / Σ m, with [ω; v] the joint's screw and m, h the moment of all bodies that it carries."""
    n, total = table.shape[0] - 1, total_mass(table)
    if not exceeds(total, 0.0):
        return MASSLESS
    poses_in_base(table, q, work)
    # As in moment_of_tree, but in the base frame.
    store_moments(table, work.pivots)
    for i in range(n):
        store(work.pivots, i, link_steps.moment_to_parent(load(work.poses, i, Pose), load(work.pivots, i, MassMoment)))
    for i in range(n - 1, -1, -1):
        S, carried = (
            screw_of_row(table, i, work),
            load(work.pivots, i, MassMoment),
        )
        v = scale(1 / total, add(scale(carried.m, S.v), cross(S.w, carried.h)))
        for r in range(3):
            J[r, i] = v[r]
        k = work.parents[i]
        if k >= 0:
            add_to(work.pivots, k, carried)
    return 0


def centroidal_momentum_matrix_dot(table: Table, q: Table, qd: Table, work: Workspace, A: Table, A_dot: Table) -> int:
    """The centroidal momentum matrix and its rate, by composite inertias and their rates İ = −ad_Vᵀ I − I ad_V."""
    total = bodies_in_base(table, q, work)
    if not exceeds(total.m, 0.0):
        return MASSLESS
    n = table.shape[0] - 1
    c, P = scale(1 / total.m, total.h), ZERO
    for i in range(n):
        S, k = screw_of_row(table, i, work), work.parents[i]
        V = add(AT_REST if k < 0 else load(work.twists, k, Twist), scale(qd[i], S))
        store(work.twists, i, V)
        # The ten numbers of the rate fit into the array of the Coriolis tensors, which is not used here.
        rate = link_steps.inertia_rate(load(work.inertias, i, RigidInertia), V)
        store(work.coriolis, i, rate)
        P = add(P, rate.h)
    sum_beyond(work.inertias, work)
    sum_beyond(work.coriolis, work)
    c_dot = scale(1 / total.m, P)
    for i in range(n):
        S, inertia = screw_of_row(table, i, work), load(work.inertias, i, RigidInertia)
        F, moving = link_steps.momentum(inertia, S), link_steps.bracket(load(work.twists, i, Twist), S)
        F_dot = link_steps.momentum(load(work.coriolis, i, RigidInertia), S)
        F_dot = add(F_dot, link_steps.momentum(inertia, moving))
        store_column(A, i, link_steps.wrench_about(c, F))
        F_dot = link_steps.wrench_about(c, F_dot)
        store_column(A_dot, i, Wrench(add(F_dot.n, cross(F.f, c_dot)), F_dot.f))
    return 0


def kinetic_energy(table: Table, q: Table, qd: Table, work: Workspace, T: Table) -> None:
    """½ Σ Vᵀ I V, and that of the armatures."""
    rows.store_poses(table, q, work)
    total, V = 0.0, AT_REST
    for i in range(table.shape[0] - 1):
        V = rows.store_row_twist(table, i, qd, work, V)
        if rows.carries_link(work, i):
            twice = link_steps.power(V, link_steps.momentum(body(table, i), V))
            total = total + twice + table[i, ARMATURE] * (qd[i] * qd[i])
    T[0] = 0.5 * total


def potential_energy(table: Table, q: Table, work: Workspace, U: Table) -> None:
    """−g₀ᵀ Σ m c."""
    rows.store_poses(table, q, work)
    _, h = moment_of_tree(table, work)
    U[0] = -dot(rows.gravity_of(table), h)
