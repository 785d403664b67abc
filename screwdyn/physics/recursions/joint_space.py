"""Inverse dynamics, the mass and Coriolis matrices, and forward dynamics."""

from screwdyn.physics.link_steps import (
    add_rate,
    add_twists,
    add_wrenches,
    articulated_column,
    articulated_times,
    articulated_to_parent,
    base_acceleration,
    bias_wrench,
    coriolis_columns,
    coriolis_tensor,
    joint_component,
    link_acceleration,
    link_twist,
    momentum_of_joint,
    newton_euler,
    pivot_rounding,
    power,
    project_out_joint,
    rigid_as_articulated,
    scale_twist,
    screw_rate,
    spread_to_parent,
    transmitted,
    twist_to_child,
    weight,
    wrench_to_parent,
)
from screwdyn.physics.row_steps import (
    coriolis_in_parent,
    inertia_in_parent,
    row_pose,
    store_poses,
    twist_of_parent,
    vector_in_parent,
    vector_of_parent,
    wrench_in_parent,
)
from screwdyn.physics.spatial import (
    AT_REST,
    NO_TENSOR,
    NO_WRENCH,
    ZERO,
    Twist,
    Vector,
    Wrench,
    dot,
    exceeds,
    scale,
)
from screwdyn.physics.table import (
    Table,
    Workspace,
    add_articulated,
    add_coriolis,
    add_inertia,
    add_wrench,
    armature,
    body,
    carries_link,
    joint_screw,
    load3,
    load_acceleration,
    load_articulated,
    load_coriolis,
    load_inertia,
    load_pose,
    load_twist,
    load_wrench,
    store_acceleration,
    store_articulated,
    store_coriolis,
    store_inertia,
    store_pose,
    store_twist,
    store_wrench,
)

# Inverse dynamics


def outward_forces(table: Table, q: Table, qd: Table, qdd: Table, gravity: Vector, work: Workspace) -> None:
    """Outward pass: poses, accelerations and the wrenches that cause them, row by row."""
    for i in range(table.shape[0] - 1):
        T = row_pose(table, i, q, work)
        store_pose(work.poses, i, T)
        k = work.parents[i]
        before = base_acceleration(gravity) if k < 0 else load_acceleration(work.accelerations, k)
        acceleration = link_acceleration(T, before, joint_screw(table, i), qd[i], qdd[i])
        store_acceleration(work.accelerations, i, acceleration)
        store_wrench(work.wrenches, i, newton_euler(body(table, i), acceleration))


def inward_forces(table: Table, work: Workspace, tau: Table) -> None:
    """Inward pass: the joint forces of the wrenches on each row and all rows beyond it."""
    for i in range(table.shape[0] - 2, -1, -1):
        F = load_wrench(work.wrenches, i)
        tau[i] = joint_component(F, joint_screw(table, i))
        k = work.parents[i]
        if k >= 0:
            add_wrench(work.wrenches, k, wrench_in_parent(work, i, F))


def wrench_on_base(table: Table, work: Workspace) -> Wrench:
    """The sum of the wrenches on all rows, about the base's origin and in its axes."""
    total = NO_WRENCH
    for i in range(table.shape[0] - 2, -1, -1):
        F = wrench_in_parent(work, i, load_wrench(work.wrenches, i))
        k = work.parents[i]
        if k >= 0:
            add_wrench(work.wrenches, k, F)
        else:
            total = add_wrenches(total, F)
    return total


def gravity_of(table: Table) -> Vector:
    """Acceleration of gravity in the base frame."""
    return load3(table, table.shape[0] - 1, 0)


def add_motors(table: Table, qdd: Table, tau: Table) -> None:
    """Add the forces that accelerate the armatures."""
    for i in range(table.shape[0] - 1):
        tau[i] = tau[i] + armature(table, i) * qdd[i]


def inverse_dynamics(table: Table, q: Table, qd: Table, qdd: Table, work: Workspace, tau: Table) -> None:
    """Recursive Newton-Euler."""
    outward_forces(table, q, qd, qdd, gravity_of(table), work)
    inward_forces(table, work, tau)
    add_motors(table, qdd, tau)


def velocity_forces(table: Table, q: Table, qd: Table, qdd: Table, work: Workspace, tau: Table) -> None:
    """Newton-Euler without gravity."""
    outward_forces(table, q, qd, qdd, ZERO, work)
    inward_forces(table, work, tau)
    add_motors(table, qdd, tau)


def wrench_torque(table: Table, q: Table, wrenches: Table, work: Workspace, tau: Table) -> None:
    """Σ Jᵀ F for a wrench [n; f] on each row, in the row's frame."""
    store_poses(table, q, work)
    for i in range(table.shape[0] - 1):
        store_wrench(work.wrenches, i, load_wrench(wrenches, i))
    inward_forces(table, work, tau)


def gravity_vector(table: Table, q: Table, work: Workspace, tau: Table) -> None:
    """Joint forces that hold the robot at rest."""
    store_poses(table, q, work)
    for i in range(table.shape[0] - 1):
        k = work.parents[i]
        a = vector_of_parent(work, i, scale(-1.0, gravity_of(table)) if k < 0 else load3(work.twists, k, 3))
        # The twists hold −gravity as an acceleration here.
        store_twist(work.twists, i, Twist(ZERO, a))
        store_wrench(work.wrenches, i, weight(body(table, i), a))
    inward_forces(table, work, tau)


# The mass matrix and the Coriolis matrix


def clear(A: Table) -> None:
    """Set all entries of a matrix to zero."""
    for i in range(A.shape[0]):
        for k in range(A.shape[1]):
            A[i, k] = 0.0


def mass_matrix(table: Table, q: Table, work: Workspace, M: Table) -> None:
    """M by composite inertias, summed from the tips inward."""
    n = table.shape[0] - 1
    store_poses(table, q, work)
    for i in range(n):
        store_inertia(work.inertias, i, body(table, i))
    clear(M)
    for j in range(n - 1, -1, -1):
        S = joint_screw(table, j)
        composite = load_inertia(work.inertias, j)
        F = momentum_of_joint(composite, S)
        M[j, j] = joint_component(F, S) + armature(table, j)
        i, k = j, work.parents[j]
        if k >= 0:
            add_inertia(work.inertias, k, inertia_in_parent(work, j, composite))
        while k >= 0:
            F = wrench_in_parent(work, i, F)
            M[k, j] = joint_component(F, joint_screw(table, k))
            M[j, k] = M[k, j]
            i, k = k, work.parents[k]


def mass_and_coriolis(table: Table, q: Table, qd: Table, work: Workspace, M: Table, C: Table) -> None:
    """Mass and Coriolis matrices from composite inertias and composite Coriolis tensors."""
    n = table.shape[0] - 1
    store_poses(table, q, work)
    V = AT_REST
    for i in range(n):
        V = add_rate(twist_of_parent(work, i, V), joint_screw(table, i), qd[i])
        store_twist(work.twists, i, V)
        store_inertia(work.inertias, i, body(table, i))
        B = coriolis_tensor(body(table, i), V) if carries_link(work, i) else NO_TENSOR
        store_coriolis(work.coriolis, i, B)
    clear(M)
    clear(C)
    for j in range(n - 1, -1, -1):
        S = joint_screw(table, j)
        composite, B = load_inertia(work.inertias, j), load_coriolis(work.coriolis, j)
        F1, F2, n3 = coriolis_columns(composite, B, load_twist(work.twists, j), S)
        M[j, j] = joint_component(F2, S) + armature(table, j)
        C[j, j] = joint_component(F1, S)
        i, k = j, work.parents[j]
        if k >= 0:
            add_inertia(work.inertias, k, inertia_in_parent(work, j, composite))
            add_coriolis(work.coriolis, k, coriolis_in_parent(work, j, B))
        while k >= 0:
            F1 = wrench_in_parent(work, i, F1)
            F2 = wrench_in_parent(work, i, F2)
            n3 = vector_in_parent(work, i, n3)
            S = joint_screw(table, k)
            M[k, j] = joint_component(F2, S)
            M[j, k] = M[k, j]
            C[k, j] = joint_component(F1, S)
            C[j, k] = power(screw_rate(load_twist(work.twists, k), S), F2) + S.turn * n3[2]
            i, k = k, work.parents[k]


def dynamics(table: Table, q: Table, qd: Table, work: Workspace, M: Table, C: Table, g: Table) -> None:
    """M, C and g."""
    mass_and_coriolis(table, q, qd, work, M, C)
    gravity_vector(table, q, work, g)


# Forward dynamics


def forward_dynamics(table: Table, q: Table, qd: Table, tau: Table, work: Workspace, qdd: Table) -> int:
    """The articulated-body algorithm. The status is 0, or 1 + the first row whose joint feels no inertia.

    The columns of ``work.pivots`` are D, u, and of all bodies that the row carries the spread, what of it acts about
    the row's axis, and the mass (``pivot_rounding``).
    """
    n = table.shape[0] - 1
    for i in range(n):
        T, S = row_pose(table, i, q, work), joint_screw(table, i)
        store_pose(work.poses, i, T)
        k = work.parents[i]
        V = link_twist(T, AT_REST if k < 0 else load_twist(work.twists, k), S, qd[i])
        store_twist(work.twists, i, V)
        store_twist(work.drifts, i, scale_twist(qd[i], screw_rate(V, S)))
        own = body(table, i)
        store_articulated(work.articulated, i, rigid_as_articulated(own))
        store_wrench(work.wrenches, i, bias_wrench(own, V))
        work.pivots[i, 2] = own.I[0] + own.I[3] + own.I[5]
        work.pivots[i, 3] = work.pivots[i, 2]
        work.pivots[i, 4] = own.m
    for i in range(n - 1, -1, -1):
        S = joint_screw(table, i)
        inertia, F = load_articulated(work.articulated, i), load_wrench(work.wrenches, i)
        U = articulated_column(inertia, S)
        D = joint_component(U, S) + armature(table, i)
        work.pivots[i, 0] = D
        spread, felt, mass = work.pivots[i, 2], work.pivots[i, 3], work.pivots[i, 4]
        if not exceeds(D, pivot_rounding(felt, mass, S)):
            return i + 1
        u = tau[i] - joint_component(F, S)
        store_wrench(work.columns, i, U)
        work.pivots[i, 1] = u
        k = work.parents[i]
        if k >= 0:
            T = load_pose(work.poses, i)
            spread, felt = spread_to_parent(T, spread, felt, mass)
            work.pivots[k, 2] += spread
            work.pivots[k, 3] += felt
            work.pivots[k, 4] += mass
            inertia = project_out_joint(inertia, U, D, S)
            F = add_wrenches(transmitted(F, U, D, u, tau[i], S), articulated_times(inertia, load_twist(work.drifts, i)))
            add_wrench(work.wrenches, k, wrench_to_parent(T, F))
            add_articulated(work.articulated, k, articulated_to_parent(T, inertia))
    for i in range(n):
        S = joint_screw(table, i)
        k = work.parents[i]
        # From here on, twists hold accelerations.
        before = Twist(ZERO, scale(-1.0, gravity_of(table))) if k < 0 else load_twist(work.twists, k)
        A = add_twists(twist_to_child(load_pose(work.poses, i), before), load_twist(work.drifts, i))
        U = load_wrench(work.columns, i)
        x = (work.pivots[i, 1] - dot(U.n, A.w) - dot(U.f, A.v)) / work.pivots[i, 0]
        qdd[i] = x
        w, v = A
        store_twist(work.twists, i, Twist((w[0], w[1], w[2] + S.turn * x), (v[0], v[1], v[2] + S.slide * x)))
    return 0
