"""Recursions over the whole tree: dynamics in joint space, centre of mass, momentum, energy; a link's inertia.

docs/mathematics.md §2, §4 and §11.
"""

from screwdyn.physics import link_steps as steps
from screwdyn.physics import table as rows
from screwdyn.physics.link_steps import AT_REST, ZERO, MassMoment, Pose, RigidInertia, Twist, Wrench, add, scale
from screwdyn.physics.recursions.links import clear, jacobian, poses_in_base, screw_of_row, store_column, write_six
from screwdyn.physics.table import ARMATURE, MASSLESS, Part, Table, Workspace, add_to, body, joint_screw, load, store

# A pivot below this fraction of its diagonal entry is rounding: of J M⁻¹ Jᵀ, and of M.
NO_FREEDOM, NO_PIVOT = 1e-12, 1e-15
# Refinements of the change of the rates, and the square of a relative size of them that leaves no more than rounding.
MOST_STEPS, SETTLED = 8, 1e-26

# Inverse dynamics


def outward_forces(table: Table, q: Table, qd: Table, qdd: Table, gravity: steps.Vector, work: Workspace) -> None:
    """Outward pass: poses, accelerations and the wrenches that cause them, row by row."""
    for i in range(table.shape[0] - 1):
        T = rows.row_pose(table, i, q, work)
        store(work.poses, i, T)
        k, before = work.parents[i], steps.Acceleration(ZERO, ZERO, scale(-1.0, gravity), steps.ZERO_MATRIX)
        before = before if k < 0 else load(work.accelerations, k, steps.Acceleration)
        acceleration = steps.link_acceleration(T, before, joint_screw(table, i), qd[i], qdd[i])
        store(work.accelerations, i, acceleration)
        store(work.wrenches, i, steps.newton_euler(body(table, i), acceleration))


def inward_forces(table: Table, work: Workspace, tau: Table) -> None:
    """Inward pass: the joint forces of the wrenches on each row and all rows beyond it."""
    for i in range(table.shape[0] - 2, -1, -1):
        F = load(work.wrenches, i, Wrench)
        tau[i] = steps.joint_component(F, joint_screw(table, i))
        k = work.parents[i]
        if k >= 0:
            add_to(work.wrenches, k, rows.wrench_in_parent(work, i, F))


def wrench_on_base(table: Table, work: Workspace) -> Wrench:
    """The sum of the wrenches on all rows, about the base's origin and in its axes."""
    total = steps.NO_WRENCH
    for i in range(table.shape[0] - 2, -1, -1):
        F = rows.wrench_in_parent(work, i, load(work.wrenches, i, Wrench))
        k = work.parents[i]
        if k >= 0:
            add_to(work.wrenches, k, F)
        else:
            total = add(total, F)
    return total


def add_motors(table: Table, qdd: Table, tau: Table) -> None:
    """Add the forces that accelerate the armatures."""
    for i in range(table.shape[0] - 1):
        tau[i] = tau[i] + table[i, ARMATURE] * qdd[i]


def inverse_dynamics(table: Table, q: Table, qd: Table, qdd: Table, work: Workspace, tau: Table) -> None:
    """Recursive Newton-Euler, with the forces that accelerate the armatures."""
    outward_forces(table, q, qd, qdd, rows.gravity_of(table), work)
    inward_forces(table, work, tau)
    add_motors(table, qdd, tau)


def velocity_forces(table: Table, q: Table, qd: Table, qdd: Table, work: Workspace, tau: Table) -> None:
    """The same without gravity."""
    outward_forces(table, q, qd, qdd, ZERO, work)
    inward_forces(table, work, tau)
    add_motors(table, qdd, tau)


def reference_dynamics(
    table: Table, q: Table, qd: Table, qd_ref: Table, qdd_ref: Table, work: Workspace, tau: Table
) -> None:
    """The same for the rates and accelerations of a reference, with C of the actual rates."""
    down = scale(-1.0, rows.gravity_of(table))
    for i in range(table.shape[0] - 1):
        T, k = rows.row_pose(table, i, q, work), work.parents[i]
        before = steps.Reference(ZERO, ZERO, ZERO, down, steps.ZERO_MATRIX)
        before = before if k < 0 else load(work.articulated, k, steps.Reference)
        motion = steps.link_reference(T, before, joint_screw(table, i), qd[i], qd_ref[i], qdd_ref[i])
        store(work.poses, i, T)
        store(work.articulated, i, motion)
        store(work.wrenches, i, steps.reference_wrench(body(table, i), motion))
    inward_forces(table, work, tau)
    add_motors(table, qdd_ref, tau)


def store_momenta(table: Table, q: Table, qd: Table, work: Workspace) -> None:
    """Poses of all rows in their parents, twists, and momenta in the place of wrenches."""
    rows.store_poses(table, q, work)
    for i in range(table.shape[0] - 1):
        V = rows.store_row_twist(table, i, qd, work)
        store(work.wrenches, i, steps.momentum(body(table, i), V) if rows.carries_link(work, i) else steps.NO_WRENCH)


def joint_momentum(table: Table, q: Table, qd: Table, work: Workspace, p: Table) -> None:
    """M ν: the momenta Σ Jᵀ M V along the freedoms, inward from the rows, and those of the armatures."""
    store_momenta(table, q, qd, work)
    inward_forces(table, work, p)
    add_motors(table, qd, p)


def transposed_velocity_forces(table: Table, q: Table, qd: Table, work: Workspace, p: Table, force: Table) -> None:
    """M ν, and Cᵀ ν: the momenta beyond each row along the rates S̊ of the screws, because Bᵀ V = 0 for every body."""
    joint_momentum(table, q, qd, work, p)
    for i in range(table.shape[0] - 1):
        S = steps.screw_rate(load(work.twists, i, Twist), joint_screw(table, i))
        force[i] = steps.power(S, load(work.wrenches, i, Wrench))


def slip_momentum(
    table: Table,
    q: Table,
    qd: Table,
    slip: Table,
    places: Table,
    work: Workspace,
    p: Table,
    wrench: Table,
    energies: Table,
) -> None:
    """Σ Jᵀ M (V − s) + a ν, where a link and all links beyond it slip by one rigid twist and the others do not.

    ``slip`` is the pose of the link in the frame of its row, and its twist s in its own frame. The places are the parts
    of all rows with bodies that slip, that of the link first. Their wrench M (V − s) is about the link's origin and in
    its axes; the kinetic energies of V − s are those of what slips, and of all bodies and armatures.
    """
    store_momenta(table, q, qd, work)
    T = load(slip, 0, Pose)
    first = steps.twist_to_parent(T, load(slip, 0, Twist, 12))
    for i in range(table.shape[0] - 1):
        V, F = load(work.twists, i, Twist), load(work.wrenches, i, Wrench)
        work.pivots[i, 0] = steps.power(V, F) + table[i, ARMATURE] * (qd[i] * qd[i])
    total, apart, own = steps.NO_WRENCH, 0.0, 0.0
    for l in range(places.shape[0]):
        part = load(places, l, Part)
        i = part.row
        if i < 0:
            s = scale(-1.0, first)
            total = steps.momentum(part.slips, s)
            own = own + steps.power(s, total)
        else:
            s, V, k = first, load(work.twists, i, Twist), work.parents[i]
            if l > 0:
                s = rows.twist_of_parent(work, i, first if k < 0 else load(work.drifts, k, Twist))
            X = add(V, scale(-1.0, s))
            F, G = steps.momentum(part.slips, X), steps.momentum(part.stays, V)
            store(work.drifts, i, s)
            store(work.columns, i, F)
            store(work.wrenches, i, add(F, G))
            motor = table[i, ARMATURE] * (qd[i] * qd[i])
            own = own + steps.power(X, F) + (motor if l > 0 else 0.0)
            work.pivots[i, 0] = steps.power(V, G) + (0.0 if l > 0 else motor)
    for i in range(table.shape[0] - 1):
        apart = apart + work.pivots[i, 0]
    energies[0] = 0.5 * own
    energies[1] = 0.5 * (own + apart)
    energies[2] = 0.0
    for l in range(places.shape[0] - 1, -1, -1):
        i = int(places[l, 0])
        if i >= 0:
            F = load(work.columns, i, Wrench)
            k = work.parents[i]
            if l > 0:
                F = rows.wrench_in_parent(work, i, F)
            if l > 0 and k >= 0:
                add_to(work.columns, k, F)
            else:
                total = add(total, F)
    total = steps.wrench_about(T.p, total)
    write_six(Wrench(steps.rotate_back(T.R, total.n), steps.rotate_back(T.R, total.f)), wrench)
    inward_forces(table, work, p)
    add_motors(table, qd, p)


def impact(
    table: Table,
    q: Table,
    qd: Table,
    slip: Table,
    places: Table,
    scratch: tuple[Table, ...],
    work: Workspace,
    change: Table,
    wrench: Table,
    energies: Table,
) -> int:
    """The change of the rates that minimises the energy of V − s, from a guess ``qd``; see ``slip_momentum``.

    Articulated bodies give it, and then what it leaves, until that is rounding. The third of the energies is 1 if it is
    not yet. The status is that of articulated bodies.
    """
    p, step = scratch
    for i in range(table.shape[0] - 1):
        change[i] = qd[i]
    again, left = 0, 1.0
    while again < MOST_STEPS and left > 0.0:
        slip_momentum(table, q, change, slip, places, work, p, wrench, energies)
        status = impulse_response(table, q, p, work, step)
        if status != 0:
            return status
        for i in range(table.shape[0] - 1):
            change[i] = change[i] - step[i]
        left = unsettled(step, change)
        again += 1
    slip_momentum(table, q, change, slip, places, work, p, wrench, energies)
    energies[2] = left
    return 0


def unsettled(step: Table, change: Table) -> float:
    """1 if the last step of a change of the rates is more than rounding, otherwise 0."""
    left, whole = 0.0, 0.0
    for i in range(change.shape[0]):
        left = left + step[i] * step[i]
        whole = whole + change[i] * change[i]
    return 1.0 if left > SETTLED * whole else 0.0


def impact_of_coupled(
    M: Table,
    p: Table,
    on_links: Table,
    of_links: Table,
    qd: Table,
    step: Table,
    work: Workspace,
    change: Table,
    wrench: Table,
    energies: Table,
) -> int:
    """One step of :func:`impact` of a tree with couplings, where the wrench and the energies are those of the guess."""
    status = solved(M, p, work, step)
    for i in range(qd.shape[0]):
        change[i] = qd[i] - step[i]
    for i in range(6):
        wrench[i] = on_links[i]
    energies[0] = of_links[0]
    energies[1] = of_links[1]
    energies[2] = unsettled(step, change)
    return status


def gravity_vector(table: Table, q: Table, work: Workspace, tau: Table) -> None:
    """Joint forces that hold the robot at rest."""
    rows.store_poses(table, q, work)
    for i in range(table.shape[0] - 1):
        k = work.parents[i]
        before = scale(-1.0, rows.gravity_of(table)) if k < 0 else load(work.twists, k, Twist).v
        a = rows.vector_of_parent(work, i, before)
        # The twists hold −gravity as an acceleration here.
        store(work.twists, i, Twist(ZERO, a))
        store(work.wrenches, i, steps.weight(body(table, i), a))
    inward_forces(table, work, tau)


# The mass matrix and the Coriolis matrix


def mass_matrix(table: Table, q: Table, work: Workspace, M: Table) -> None:
    """M by composite inertias, summed from the tips inward."""
    n = table.shape[0] - 1
    rows.store_poses(table, q, work)
    for i in range(n):
        store(work.inertias, i, body(table, i))
    clear(M)
    for j in range(n - 1, -1, -1):
        S = joint_screw(table, j)
        composite = load(work.inertias, j, RigidInertia)
        F = steps.momentum_of_joint(composite, S)
        M[j, j] = steps.joint_component(F, S) + table[j, ARMATURE]
        i, k = j, work.parents[j]
        if k >= 0:
            add_to(work.inertias, k, rows.inertia_in_parent(work, j, composite))
        while k >= 0:
            F = rows.wrench_in_parent(work, i, F)
            M[k, j] = steps.joint_component(F, joint_screw(table, k))
            M[j, k] = M[k, j]
            i, k = k, work.parents[k]


def mass_and_coriolis(table: Table, q: Table, qd: Table, work: Workspace, M: Table, C: Table) -> None:
    """Mass and Coriolis matrices from composite inertias and composite Coriolis tensors."""
    n = table.shape[0] - 1
    rows.store_poses(table, q, work)
    for i in range(n):
        V = rows.store_row_twist(table, i, qd, work)
        store(work.inertias, i, body(table, i))
        B = steps.coriolis_tensor(body(table, i), V) if rows.carries_link(work, i) else steps.NO_TENSOR
        store(work.coriolis, i, B)
    clear(M)
    clear(C)
    for j in range(n - 1, -1, -1):
        S = joint_screw(table, j)
        composite, B = load(work.inertias, j, RigidInertia), load(work.coriolis, j, steps.CoriolisTensor)
        F1, F2, n3 = steps.coriolis_columns(composite, B, load(work.twists, j, Twist), S)
        M[j, j] = steps.joint_component(F2, S) + table[j, ARMATURE]
        C[j, j] = steps.joint_component(F1, S)
        i, k = j, work.parents[j]
        if k >= 0:
            add_to(work.inertias, k, rows.inertia_in_parent(work, j, composite))
            add_to(work.coriolis, k, rows.coriolis_in_parent(work, j, B))
        while k >= 0:
            F1 = rows.wrench_in_parent(work, i, F1)
            F2 = rows.wrench_in_parent(work, i, F2)
            n3 = rows.vector_in_parent(work, i, n3)
            S = joint_screw(table, k)
            M[k, j] = steps.joint_component(F2, S)
            M[j, k] = M[k, j]
            C[k, j] = steps.joint_component(F1, S)
            C[j, k] = steps.power(steps.screw_rate(load(work.twists, k, Twist), S), F2) + S.turn * n3[2]
            i, k = k, work.parents[k]


def dynamics(table: Table, q: Table, qd: Table, work: Workspace, M: Table, C: Table, g: Table) -> None:
    """M, C and g."""
    mass_and_coriolis(table, q, qd, work, M, C)
    gravity_vector(table, q, work, g)


# Forward dynamics


def forward_dynamics(table: Table, q: Table, qd: Table, tau: Table, work: Workspace, qdd: Table) -> int:
    """The articulated-body algorithm. The status is 0, or 1 + the first row whose joint feels no inertia."""
    return articulated_bodies(table, q, qd, tau, rows.gravity_of(table), work, qdd)


def impulse_response(table: Table, q: Table, tau: Table, work: Workspace, jump: Table) -> int:
    """M⁻¹ τ, the rates that impulses τ give to a tree at rest, by articulated bodies; status as there."""
    for i in range(table.shape[0] - 1):
        jump[i] = 0.0
    return articulated_bodies(table, q, jump, tau, ZERO, work, jump)


def articulated_bodies(
    table: Table, q: Table, qd: Table, tau: Table, gravity: steps.Vector, work: Workspace, qdd: Table
) -> int:
    """Forward dynamics in some gravity. The status is 0, or 1 + the first row whose joint feels no inertia.

    The columns of ``work.pivots`` are D, u, and of all bodies that the row carries the spread, what of it acts about
    the row's axis, and the mass (``pivot_rounding``).
    """
    n = table.shape[0] - 1
    for i in range(n):
        T, S = rows.row_pose(table, i, q, work), joint_screw(table, i)
        store(work.poses, i, T)
        k = work.parents[i]
        V = steps.link_twist(T, AT_REST if k < 0 else load(work.twists, k, Twist), S, qd[i])
        store(work.twists, i, V)
        store(work.drifts, i, scale(qd[i], steps.screw_rate(V, S)))
        own = body(table, i)
        store(work.articulated, i, steps.rigid_as_articulated(own))
        store(work.wrenches, i, steps.bias_wrench(own, V))
        spread = own.I[0] + own.I[3] + own.I[5]
        store(work.pivots, i, (spread, spread, own.m), 2)
    for i in range(n - 1, -1, -1):
        S = joint_screw(table, i)
        inertia, F = load(work.articulated, i, steps.ArticulatedInertia), load(work.wrenches, i, Wrench)
        U = steps.articulated_column(inertia, S)
        D = steps.joint_component(U, S) + table[i, ARMATURE]
        work.pivots[i, 0] = D
        spread, felt, mass = work.pivots[i, 2], work.pivots[i, 3], work.pivots[i, 4]
        if not steps.exceeds(D, steps.pivot_rounding(felt, mass, S)):
            return i + 1
        u = tau[i] - steps.joint_component(F, S)
        store(work.columns, i, U)
        work.pivots[i, 1] = u
        k = work.parents[i]
        if k >= 0:
            T = load(work.poses, i, Pose)
            add_to(work.pivots, k, steps.spread_to_parent(T, spread, felt, mass), 2)
            inertia = steps.project_out_joint(inertia, U, D, S)
            drift = steps.articulated_times(inertia, load(work.drifts, i, Twist))
            F = add(steps.transmitted(F, U, D, u, tau[i], S), drift)
            add_to(work.wrenches, k, steps.wrench_to_parent(T, F))
            add_to(work.articulated, k, steps.articulated_to_parent(T, inertia))
    for i in range(n):
        S = joint_screw(table, i)
        k = work.parents[i]
        # From here on, twists hold accelerations.
        before = Twist(ZERO, scale(-1.0, gravity)) if k < 0 else load(work.twists, k, Twist)
        A = add(steps.twist_to_child(load(work.poses, i, Pose), before), load(work.drifts, i, Twist))
        U = load(work.columns, i, Wrench)
        x = (work.pivots[i, 1] - steps.dot(U.n, A.w) - steps.dot(U.f, A.v)) / work.pivots[i, 0]
        qdd[i] = x
        store(work.twists, i, steps.add_rate(A, S, x))
    return 0


# The inverse of M


def factorise(parents: Table, M: Table, pivots: Table) -> int:
    """M = Lᵀ D L in place, L below the diagonal; its entry is zero where neither of two joints carries the other.

    The status is 0, or 1 + the first row whose pivot is rounding. ``pivots`` is scratch space, (n, 1) or wider.
    R. Featherstone, *Rigid Body Dynamics Algorithms*, 2008, §6.5.
    """
    n = M.shape[0]
    for k in range(n):
        pivots[k, 0] = M[k, k]
    for k in range(n - 1, -1, -1):
        if not steps.exceeds(M[k, k], NO_PIVOT * pivots[k, 0]):
            return k + 1
        i = parents[k]
        while i >= 0:
            a = M[k, i] / M[k, k]
            j = i
            while j >= 0:
                M[i, j] = M[i, j] - a * M[k, j]
                j = parents[j]
            M[k, i] = a
            i = parents[i]
    return 0


def accelerations(M: Table, bias: Table, tau: Table, work: Workspace, qdd: Table) -> int:
    """M⁻¹ (τ − bias) of a tree with couplings, whose M = Wᵀ M_rows W (docs/mathematics.md §8).

    The status is 0, or 1 + the first coordinate that feels no inertia. No entry of M vanishes because of the structure
    of the tree, so it is factorised as that of joints in a row; ``work.parents`` are theirs.
    """
    for k in range(M.shape[0]):
        qdd[k] = tau[k] - bias[k]
    return solved(M, qdd, work, qdd)


def solved(M: Table, tau: Table, work: Workspace, qdd: Table) -> int:
    """M⁻¹ τ of a tree with couplings; ``tau`` may be the result's array. The status is that of its accelerations."""
    n = M.shape[0]
    status = factorise(work.parents, M, work.pivots)
    if status != 0:
        return status
    for k in range(n - 1, -1, -1):
        x = tau[k]
        for j in range(k + 1, n):
            x = x - M[j, k] * qdd[j]
        qdd[k] = x
    for k in range(n):
        x = qdd[k] / M[k, k]
        for j in range(k):
            x = x - M[k, j] * qdd[j]
        qdd[k] = x
    return 0


def operational_inertia(
    table: Table, q: Table, places: Table, scratch: tuple[Table, ...], work: Workspace, inverse: Table
) -> int:
    """Λ = (J M⁻¹ Jᵀ)⁻¹."""
    M, J = scratch
    mass_matrix(table, q, work, M)
    jacobian(table, q, places, work, J)
    return inertia_felt(M, J, work, inverse)


def inertia_felt(M: Table, J: Table, work: Workspace, inverse: Table) -> int:
    """(J M⁻¹ Jᵀ)⁻¹ by the factors of M: J M⁻¹ Jᵀ = Y D⁻¹ Yᵀ with Y = J L⁻¹."""
    n, parents = M.shape[0], work.parents
    status = factorise(parents, M, work.pivots)
    if status != 0:
        return status
    for k in range(n - 1, -1, -1):
        i = parents[k]
        while i >= 0:
            for r in range(6):
                J[r, i] = J[r, i] - M[k, i] * J[r, k]
            i = parents[i]
    for r in range(6):
        for c in range(r + 1):
            x = 0.0
            for k in range(n):
                x = x + J[r, k] * J[c, k] / M[k, k]
            inverse[r, c] = x
            inverse[c, r] = x
    return invert(inverse)


def invert(A: Table) -> int:
    """Invert a positive definite 6x6 matrix in place, by Gauss-Jordan elimination."""
    diagonal = (A[0, 0], A[1, 1], A[2, 2], A[3, 3], A[4, 4], A[5, 5])
    for k in range(6):
        if not steps.exceeds(A[k, k], NO_FREEDOM * diagonal[k]):
            return rows.CONFINED
        x = 1 / A[k, k]
        for i in range(6):
            if i != k:
                a = A[i, k] * x
                for j in range(6):
                    if j != k:
                        A[i, j] = A[i, j] - a * A[k, j]
        for j in range(6):
            if j != k:
                A[k, j] = A[k, j] * x
                A[j, k] = -(A[j, k] * x)
        A[k, k] = x
    return 0


# Centre of mass and momentum


def total_mass(table: Table) -> steps.Scalar:
    """Mass of the tree including its base."""
    m = body(table, table.shape[0] - 1).m
    for i in range(table.shape[0] - 1):
        m = m + body(table, i).m
    return m


def bodies_in_base(table: Table, q: Table, work: Workspace) -> MassMoment:
    """Write poses and inertias of all rows in the base frame to work; return the mass and first moment of the tree."""
    poses_in_base(table, q, work)
    m, h = body(table, table.shape[0] - 1).m, body(table, table.shape[0] - 1).h
    for i in range(table.shape[0] - 1):
        inertia = body(table, i)
        if rows.carries_link(work, i):
            inertia = steps.inertia_to_parent(load(work.poses, i, Pose), inertia)
            m, h = m + inertia.m, add(h, inertia.h)
        store(work.inertias, i, inertia)
    return MassMoment(m, h)


def write_per_mass(m: steps.Scalar, a: steps.Vector, out: Table) -> int:
    """A vector divided by the mass of the tree, as three numbers."""
    if not steps.exceeds(m, 0.0):
        return MASSLESS
    a = scale(1 / m, a)
    for r in range(3):
        out[r] = a[r]
    return 0


def moment_of_tree(table: Table, work: Workspace) -> MassMoment:
    """Mass and first moment Σ m c of the tree in the base frame; work has the poses of the rows in their parents."""
    # The four numbers of a moment fit into the array of the pivots, which is not used here.
    for i in range(table.shape[0] - 1):
        store(work.pivots, i, load(table, i, MassMoment, rows.MASS))
    m, h = load(table, table.shape[0] - 1, MassMoment, rows.MASS)
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
    return write_per_mass(m, h, c)


def momentum_of_tree(table: Table, q: Table, qd: Table, work: Workspace) -> Wrench:
    """Sum of the momenta of all rows about the base's origin; work then has the poses of the rows in their parents."""
    store_momenta(table, q, qd, work)
    return wrench_on_base(table, work)


def spatial_momentum(table: Table, q: Table, qd: Table, work: Workspace, out: Table) -> None:
    """Momentum about the base's origin."""
    write_six(momentum_of_tree(table, q, qd, work), out)


def center_of_mass_velocity(table: Table, q: Table, qd: Table, work: Workspace, v: Table) -> int:
    """ċ = P / m."""
    return write_per_mass(total_mass(table), momentum_of_tree(table, q, qd, work).f, v)


def write_about_center(table: Table, F: Wrench, work: Workspace, out: Table) -> int:
    """A wrench about the centre of mass, from that about the base's origin; work has the poses of the rows."""
    m, h = moment_of_tree(table, work)
    if not steps.exceeds(m, 0.0):
        return MASSLESS
    write_six(steps.wrench_about(scale(1 / m, h), F), out)
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
    return write_per_mass(total_mass(table), wrench_on_base(table, work).f, a)


def sum_beyond(inertias: Table, work: Workspace) -> None:
    """Sum, in the base frame, the inertia of each row and of all rows beyond it."""
    for i in range(inertias.shape[0] - 1, -1, -1):
        k = work.parents[i]
        if k >= 0:
            add_to(inertias, k, load(inertias, i, RigidInertia))


def centroidal_momentum_matrix(table: Table, q: Table, work: Workspace, A: Table) -> int:
    """Columns I^c S about the centre of mass, with I^c the composite inertias."""
    total = bodies_in_base(table, q, work)
    if not steps.exceeds(total.m, 0.0):
        return MASSLESS
    c = scale(1 / total.m, total.h)
    sum_beyond(work.inertias, work)
    for i in range(table.shape[0] - 1):
        S = screw_of_row(table, i, work)
        store_column(A, i, steps.wrench_about(c, steps.momentum(load(work.inertias, i, RigidInertia), S)))
    return 0


def center_of_mass_jacobian(table: Table, q: Table, work: Workspace, J: Table) -> int:
    """Columns (m v + ω × h) / Σ m, with [ω; v] the joint's screw and m, h the moment of all bodies that it carries."""
    n, total = table.shape[0] - 1, total_mass(table)
    if not steps.exceeds(total, 0.0):
        return MASSLESS
    poses_in_base(table, q, work)
    for i in range(n):  # as in moment_of_tree, but in the base frame
        own = load(table, i, MassMoment, rows.MASS)
        store(work.pivots, i, steps.moment_to_parent(load(work.poses, i, Pose), own))
    for i in range(n - 1, -1, -1):
        S, carried = screw_of_row(table, i, work), load(work.pivots, i, MassMoment)
        v = scale(1 / total, add(scale(carried.m, S.v), steps.cross(S.w, carried.h)))
        for r in range(3):
            J[r, i] = v[r]
        k = work.parents[i]
        if k >= 0:
            add_to(work.pivots, k, carried)
    return 0


def centroidal_momentum_matrix_dot(table: Table, q: Table, qd: Table, work: Workspace, A: Table, A_dot: Table) -> int:
    """The centroidal momentum matrix and its rate, by composite inertias and their rates İ = −ad_Vᵀ I − I ad_V."""
    total = bodies_in_base(table, q, work)
    if not steps.exceeds(total.m, 0.0):
        return MASSLESS
    n = table.shape[0] - 1
    c, P = scale(1 / total.m, total.h), ZERO
    for i in range(n):
        S, k = screw_of_row(table, i, work), work.parents[i]
        V = add(AT_REST if k < 0 else load(work.twists, k, Twist), scale(qd[i], S))
        store(work.twists, i, V)
        # The ten numbers of the rate fit into the array of the Coriolis tensors, which is not used here.
        rate = steps.inertia_rate(load(work.inertias, i, RigidInertia), V)
        store(work.coriolis, i, rate)
        P = add(P, rate.h)
    sum_beyond(work.inertias, work)
    sum_beyond(work.coriolis, work)
    c_dot = scale(1 / total.m, P)
    for i in range(n):
        S, inertia = screw_of_row(table, i, work), load(work.inertias, i, RigidInertia)
        F, moving = steps.momentum(inertia, S), steps.bracket(load(work.twists, i, Twist), S)
        F_dot = add(steps.momentum(load(work.coriolis, i, RigidInertia), S), steps.momentum(inertia, moving))
        store_column(A, i, steps.wrench_about(c, F))
        F_dot = steps.wrench_about(c, F_dot)
        store_column(A_dot, i, Wrench(add(F_dot.n, steps.cross(F.f, c_dot)), F_dot.f))
    return 0


def kinetic_energy(table: Table, q: Table, qd: Table, work: Workspace, T: Table) -> None:
    """½ Σ Vᵀ I V, and that of the armatures."""
    rows.store_poses(table, q, work)
    total = 0.0
    for i in range(table.shape[0] - 1):
        V = rows.store_row_twist(table, i, qd, work)
        if rows.carries_link(work, i):
            twice = steps.power(V, steps.momentum(body(table, i), V))
            total = total + twice + table[i, ARMATURE] * (qd[i] * qd[i])
    T[0] = 0.5 * total


def potential_energy(table: Table, q: Table, work: Workspace, U: Table) -> None:
    """−g₀ᵀ Σ m c."""
    rows.store_poses(table, q, work)
    _, h = moment_of_tree(table, work)
    U[0] = -steps.dot(rows.gravity_of(table), h)
