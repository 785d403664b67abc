"""Walks over the rows of a table, out from the base and back in. They order the steps of ``link_steps``.

Every recursion takes the table of a model, one state over its rows, scratch space, and arrays for its results; a
quantity of one link also takes the link's place (``table``). A status other than 0 says that there is no result.
Cost: O(n), except the matrices, O(Σ depth), and the operational inertia, O(n · depth²).
"""

from .frames import BASE, COM, MIXED
from .link_steps import (
    add_twists,
    add_wrenches,
    articulated_column,
    articulated_times,
    articulated_to_parent,
    base_acceleration,
    bias_wrench,
    bracket,
    com_coriolis,
    com_momentum,
    compose,
    coriolis_columns,
    coriolis_tensor,
    coriolis_to_parent,
    inertia_rate,
    inertia_to_parent,
    joint_component,
    joint_pose,
    link_acceleration,
    link_twist,
    momentum,
    momentum_of_joint,
    newton_euler,
    pivot_rounding,
    power,
    project_out_joint,
    rigid_as_articulated,
    scale_twist,
    screw_from_beyond,
    screw_in_base,
    screw_rate,
    spread_to_parent,
    twist_to_child,
    twist_to_parent,
    weight,
    wrench_about,
    wrench_to_parent,
)
from .spatial import (
    AT_REST,
    NO_WRENCH,
    ZERO,
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
    rotate,
    rotate_back,
    scale,
)
from .table import (
    Table,
    Workspace,
    add_articulated,
    add_coriolis,
    add_inertia,
    add_wrench,
    body,
    first_of_joint,
    home,
    joint_screw,
    load3,
    load_acceleration,
    load_articulated,
    load_coriolis,
    load_inertia,
    load_pose,
    load_twist,
    load_wrench,
    parent,
    place_com,
    place_frame,
    place_inertia,
    place_mass,
    place_pose,
    place_row,
    store_acceleration,
    store_articulated,
    store_coriolis,
    store_inertia,
    store_pose,
    store_twist,
    store_wrench,
)

# Status: the tree weighs nothing, or the link cannot move in every direction. Positive ones are 1 + a row.
MASSLESS, CONFINED = -2, -3
# Of the inverse operational inertia: a pivot that small beside its diagonal is rounding.
_CONFINED = 1e-12


# Inverse dynamics


def row_pose(table: Table, i: int, q: Table) -> Pose:
    """Pose of row i's frame in its parent's."""
    return joint_pose(home(table, i), joint_screw(table, i), q[i])


def outward_forces(table: Table, q: Table, qd: Table, qdd: Table, gravity: Vector, work: Workspace) -> None:
    """Poses, accelerations and the wrenches that these need, row by row."""
    for i in range(table.shape[0] - 1):
        T = row_pose(table, i, q)
        store_pose(work.poses, i, T)
        k = parent(table, i)
        before = base_acceleration(gravity) if k < 0 else load_acceleration(work.accelerations, k)
        acceleration = link_acceleration(T, before, joint_screw(table, i), qd[i], qdd[i])
        store_acceleration(work.accelerations, i, acceleration)
        store_wrench(work.wrenches, i, newton_euler(body(table, i), acceleration))


def inward_forces(table: Table, poses: Table, wrenches: Table, tau: Table) -> None:
    """Each joint's component of the wrenches at and beyond it."""
    for i in range(table.shape[0] - 2, -1, -1):
        F = load_wrench(wrenches, i)
        tau[i] = joint_component(F, joint_screw(table, i))
        k = parent(table, i)
        if k >= 0:
            add_wrench(wrenches, k, wrench_to_parent(load_pose(poses, i), F))


def wrench_on_base(table: Table, poses: Table, wrenches: Table) -> Wrench:
    """The sum of the wrenches on all rows, about the base's origin and in its axes."""
    total = NO_WRENCH
    for i in range(table.shape[0] - 2, -1, -1):
        F = wrench_to_parent(load_pose(poses, i), load_wrench(wrenches, i))
        k = parent(table, i)
        if k >= 0:
            add_wrench(wrenches, k, F)
        else:
            total = add_wrenches(total, F)
    return total


def gravity_of(table: Table) -> Vector:
    """Acceleration of gravity in the base frame."""
    return load3(table, table.shape[0] - 1, 0)


def inverse_dynamics(table: Table, q: Table, qd: Table, qdd: Table, work: Workspace, tau: Table) -> None:
    """Recursive Newton-Euler."""
    outward_forces(table, q, qd, qdd, gravity_of(table), work)
    inward_forces(table, work.poses, work.wrenches, tau)


def velocity_forces(table: Table, q: Table, qd: Table, qdd: Table, work: Workspace, tau: Table) -> None:
    """Newton-Euler without gravity."""
    outward_forces(table, q, qd, qdd, ZERO, work)
    inward_forces(table, work.poses, work.wrenches, tau)


def wrench_torque(table: Table, q: Table, wrenches: Table, work: Workspace, tau: Table) -> None:
    """Σ Jᵀ F for a wrench [n; f] on each row, in the row's frame."""
    for i in range(table.shape[0] - 1):
        store_pose(work.poses, i, row_pose(table, i, q))
        store_wrench(work.wrenches, i, load_wrench(wrenches, i))
    inward_forces(table, work.poses, work.wrenches, tau)


def gravity_vector(table: Table, q: Table, work: Workspace, tau: Table) -> None:
    """Forces of the joints that hold the robot still."""
    for i in range(table.shape[0] - 1):
        T = row_pose(table, i, q)
        store_pose(work.poses, i, T)
        k = parent(table, i)
        a = rotate_back(T.R, scale(-1, gravity_of(table)) if k < 0 else load3(work.twists, k, 3))
        # The acceleration that gravity amounts to travels in the place of a velocity.
        store_twist(work.twists, i, Twist(ZERO, a))
        store_wrench(work.wrenches, i, weight(body(table, i), a))
    inward_forces(table, work.poses, work.wrenches, tau)


# The mass matrix and the Coriolis matrix


def clear(A: Table) -> None:
    """Zeros in a matrix."""
    for i in range(A.shape[0]):
        for k in range(A.shape[1]):
            A[i, k] = 0.0


def mass_matrix(table: Table, q: Table, work: Workspace, M: Table) -> None:
    """Composite inertias, from the ends inward."""
    n = table.shape[0] - 1
    for i in range(n):
        store_pose(work.poses, i, row_pose(table, i, q))
        store_inertia(work.inertias, i, body(table, i))
    clear(M)
    for j in range(n - 1, -1, -1):
        S = joint_screw(table, j)
        composite = load_inertia(work.inertias, j)
        F = momentum_of_joint(composite, S)
        M[j, j] = joint_component(F, S)
        i, k = j, parent(table, j)
        if k >= 0:
            add_inertia(work.inertias, k, inertia_to_parent(load_pose(work.poses, j), composite))
        while k >= 0:
            F = wrench_to_parent(load_pose(work.poses, i), F)
            M[k, j] = joint_component(F, joint_screw(table, k))
            M[j, k] = M[k, j]
            i, k = k, parent(table, k)


def mass_and_coriolis(table: Table, q: Table, qd: Table, work: Workspace, M: Table, C: Table) -> None:
    """Mass and Coriolis matrices from composite inertias and composite Coriolis tensors."""
    n = table.shape[0] - 1
    for i in range(n):
        T = row_pose(table, i, q)
        store_pose(work.poses, i, T)
        k = parent(table, i)
        V = link_twist(T, AT_REST if k < 0 else load_twist(work.twists, k), joint_screw(table, i), qd[i])
        store_twist(work.twists, i, V)
        store_inertia(work.inertias, i, body(table, i))
        store_coriolis(work.coriolis, i, coriolis_tensor(body(table, i), V))
    clear(M)
    clear(C)
    for j in range(n - 1, -1, -1):
        S, T = joint_screw(table, j), load_pose(work.poses, j)
        composite, B = load_inertia(work.inertias, j), load_coriolis(work.coriolis, j)
        F1, F2, n3 = coriolis_columns(composite, B, load_twist(work.twists, j), S)
        M[j, j] = joint_component(F2, S)
        C[j, j] = joint_component(F1, S)
        i, k = j, parent(table, j)
        if k >= 0:
            add_inertia(work.inertias, k, inertia_to_parent(T, composite))
            add_coriolis(work.coriolis, k, coriolis_to_parent(T, B))
        while k >= 0:
            T = load_pose(work.poses, i)
            F1 = wrench_to_parent(T, F1)
            F2 = wrench_to_parent(T, F2)
            n3 = rotate(T.R, n3)
            S = joint_screw(table, k)
            M[k, j] = joint_component(F2, S)
            M[j, k] = M[k, j]
            C[k, j] = joint_component(F1, S)
            C[j, k] = power(screw_rate(load_twist(work.twists, k), S), F2) + S.turn * n3[2]
            i, k = k, parent(table, k)


def dynamics(table: Table, q: Table, qd: Table, work: Workspace, M: Table, C: Table, g: Table) -> None:
    """M, C and g."""
    mass_and_coriolis(table, q, qd, work, M, C)
    gravity_vector(table, q, work, g)


# Forward dynamics


def forward_dynamics(table: Table, q: Table, qd: Table, tau: Table, work: Workspace, qdd: Table) -> int:
    """Articulated bodies. The status is 0, or 1 + the first row found to carry no inertia along its joint.

    The columns of ``work.pivots`` are D, u, and the spread and mass of all that the row carries (``pivot_rounding``).
    """
    n = table.shape[0] - 1
    for i in range(n):
        T, S = row_pose(table, i, q), joint_screw(table, i)
        store_pose(work.poses, i, T)
        k = parent(table, i)
        V = link_twist(T, AT_REST if k < 0 else load_twist(work.twists, k), S, qd[i])
        store_twist(work.twists, i, V)
        store_twist(work.drifts, i, scale_twist(qd[i], screw_rate(V, S)))
        own = body(table, i)
        store_articulated(work.articulated, i, rigid_as_articulated(own))
        store_wrench(work.wrenches, i, bias_wrench(own, V))
        work.pivots[i, 2] = own.I[0] + own.I[3] + own.I[5]
        work.pivots[i, 3] = own.m
    for i in range(n - 1, -1, -1):
        S = joint_screw(table, i)
        inertia, F = load_articulated(work.articulated, i), load_wrench(work.wrenches, i)
        U = articulated_column(inertia, S)
        D = joint_component(U, S)
        work.pivots[i, 0] = D
        spread, mass = work.pivots[i, 2], work.pivots[i, 3]
        if not exceeds(D, pivot_rounding(spread, mass, S)):
            return i + 1
        u = tau[i] - joint_component(F, S)
        store_wrench(work.columns, i, U)
        work.pivots[i, 1] = u
        k = parent(table, i)
        if k >= 0:
            T = load_pose(work.poses, i)
            work.pivots[k, 2] += spread_to_parent(T, spread, mass)
            work.pivots[k, 3] += mass
            inertia = project_out_joint(inertia, U, D)
            G = articulated_times(inertia, load_twist(work.drifts, i))
            F = Wrench(
                add(F.n, add(G.n, scale(u / D, U.n))),
                add(F.f, add(G.f, scale(u / D, U.f))),
            )
            add_wrench(work.wrenches, k, wrench_to_parent(T, F))
            add_articulated(work.articulated, k, articulated_to_parent(T, inertia))
    for i in range(n):
        S = joint_screw(table, i)
        k = parent(table, i)
        # From here on, twists hold accelerations.
        before = Twist(ZERO, scale(-1, gravity_of(table))) if k < 0 else load_twist(work.twists, k)
        A = add_twists(twist_to_child(load_pose(work.poses, i), before), load_twist(work.drifts, i))
        U = load_wrench(work.columns, i)
        x = (work.pivots[i, 1] - dot(U.n, A.w) - dot(U.f, A.v)) / work.pivots[i, 0]
        qdd[i] = x
        w, v = A
        store_twist(work.twists, i, Twist((w[0], w[1], w[2] + S.turn * x), (v[0], v[1], v[2] + S.slide * x)))
    return 0


# Poses, twists and Jacobians of links


def poses_in_base(table: Table, q: Table, poses: Table) -> None:
    """Pose of every row's frame in the base."""
    for i in range(table.shape[0] - 1):
        T = row_pose(table, i, q)
        k = parent(table, i)
        store_pose(poses, i, T if k < 0 else compose(load_pose(poses, k), T))


def write_pose(T: Pose, out: Table, first: int) -> None:
    """A pose as four rows of a matrix."""
    for r in range(3):
        for c in range(3):
            out[first + r, c] = T.R[3 * r + c]
        out[first + r, 3] = T.p[r]
        out[first + 3, r] = 0.0
    out[first + 3, 3] = 1.0


def forward_kinematics(table: Table, q: Table, places: Table, work: Workspace, pose: Table) -> None:
    """Pose of one link in the base; only the rows on its path are visited."""
    T, i = place_pose(places, 0), place_row(places, 0)
    while i >= 0:
        T = compose(row_pose(table, i, q), T)
        i = parent(table, i)
    write_pose(T, pose, 0)


def link_poses(table: Table, q: Table, places: Table, work: Workspace, poses: Table) -> None:
    """Poses of all links in the base, four rows each."""
    poses_in_base(table, q, work.poses)
    for l in range(places.shape[0]):
        i, T = place_row(places, l), place_pose(places, l)
        write_pose(T if i < 0 else compose(load_pose(work.poses, i), T), poses, 4 * l)


def point_pose(places: Table) -> Pose:
    """Pose, in the link's row, of the frame in which columns are first computed: at the origin, or at the com."""
    T = place_pose(places, 0)
    return Pose(T.R, place_com(places, 0)) if place_frame(places, 0) == COM else T


def in_frame(frame: int, T: Pose, V: Twist) -> Twist:
    """A link's twist, given in its own frame whose pose in the base is T, in the frame that is asked for."""
    if frame == BASE:
        return twist_to_parent(T, V)
    if frame == MIXED:
        return Twist(rotate(T.R, V.w), rotate(T.R, V.v))
    return V


def rate_in_frame(frame: int, T: Pose, V: Twist, X: Twist, rate: Twist) -> Twist:
    """The rate of :func:`in_frame` of X while the link moves with V: d/dt Ad(T) = Ad(T) ad(V), of what moves of T."""
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


def columns_in_link(table: Table, q: Table, places: Table, J: Table) -> Pose:
    """The screws on a link's path seen from the link, into J; returns the link's pose in the base."""
    clear(J)
    T, i = point_pose(places), place_row(places, 0)
    while i >= 0:
        store_column(J, i, screw_from_beyond(T, joint_screw(table, i)))
        T = compose(row_pose(table, i, q), T)
        i = parent(table, i)
    return T


def jacobian(table: Table, q: Table, places: Table, work: Workspace, J: Table) -> None:
    """Twist Jacobian of one link; only the rows on its path are visited."""
    T = columns_in_link(table, q, places, J)
    frame, i = place_frame(places, 0), place_row(places, 0)
    while i >= 0 and frame >= BASE:
        store_column(J, i, in_frame(frame, T, load_column(J, i)))
        i = parent(table, i)


def jacobian_dot(table: Table, q: Table, qd: Table, places: Table, work: Workspace, J: Table, J_dot: Table) -> None:
    """Twist Jacobian of one link and its rate entry by entry.

    A column seen from the link changes by the link's motion relative to that joint: ad(J_i) V_relative.
    """
    clear(J_dot)
    T = columns_in_link(table, q, places, J)
    frame, V, i = place_frame(places, 0), AT_REST, place_row(places, 0)
    while i >= 0:
        column = load_column(J, i)
        store_column(J_dot, i, bracket(column, V))
        V = add_twists(V, scale_twist(qd[i], column))
        i = parent(table, i)
    i = place_row(places, 0)
    while i >= 0 and frame >= BASE:
        column = load_column(J, i)
        store_column(J_dot, i, rate_in_frame(frame, T, V, column, load_column(J_dot, i)))
        store_column(J, i, in_frame(frame, T, column))
        i = parent(table, i)


def write_twist(V: Twist, out: Table) -> None:
    """A twist as six numbers."""
    for r in range(3):
        out[r] = V.w[r]
        out[r + 3] = V.v[r]


def twist_of_link(table: Table, q: Table, qd: Table, places: Table, work: Workspace, twist: Table) -> None:
    """Twist of one link; only the rows on its path are visited."""
    T, V, i = point_pose(places), AT_REST, place_row(places, 0)
    while i >= 0:
        S = joint_screw(table, i)
        V = add_twists(V, scale_twist(qd[i], screw_from_beyond(T, S)))
        T = compose(row_pose(table, i, q), T)
        i = parent(table, i)
    write_twist(in_frame(place_frame(places, 0), T, V), twist)


def acceleration_of_link(
    table: Table, q: Table, qd: Table, qdd: Table, places: Table, work: Workspace, acceleration: Table
) -> None:
    """The rate of :func:`twist_of_link`: J q̈ + J̇ q̇."""
    T, V, A, i = point_pose(places), AT_REST, AT_REST, place_row(places, 0)
    while i >= 0:
        column = screw_from_beyond(T, joint_screw(table, i))
        A = add_twists(A, scale_twist(qdd[i], column))
        A = add_twists(A, scale_twist(qd[i], bracket(column, V)))
        V = add_twists(V, scale_twist(qd[i], column))
        T = compose(row_pose(table, i, q), T)
        i = parent(table, i)
    write_twist(rate_in_frame(place_frame(places, 0), T, V, V, A), acceleration)


# The whole tree: centre of mass, momentum, energy


def base_body(table: Table) -> RigidInertia:
    """Inertia of all that is welded to the base."""
    return body(table, table.shape[0] - 1)


def total_mass(table: Table) -> Scalar:
    """Mass of the tree with its base."""
    m = base_body(table).m
    for i in range(table.shape[0] - 1):
        m = m + body(table, i).m
    return m


def bodies_in_base(table: Table, q: Table, work: Workspace) -> RigidInertia:
    """Poses and inertias of all rows in the base frame; returns the inertia of the whole tree there."""
    poses_in_base(table, q, work.poses)
    total = base_body(table)
    m, h, I = total.m, total.h, total.I
    for i in range(table.shape[0] - 1):
        inertia = inertia_to_parent(load_pose(work.poses, i), body(table, i))
        store_inertia(work.inertias, i, inertia)
        m, h = m + inertia.m, add(h, inertia.h)
    return RigidInertia(m, h, I)


def write3(a: Vector, out: Table) -> None:
    """A vector as three numbers."""
    for r in range(3):
        out[r] = a[r]


def write_wrench(F: Wrench, out: Table) -> None:
    """A wrench as six numbers."""
    for r in range(3):
        out[r] = F.n[r]
        out[r + 3] = F.f[r]


def first_moment(table: Table, q: Table, work: Workspace) -> Vector:
    """Σ m c of the tree in the base frame."""
    poses_in_base(table, q, work.poses)
    h = base_body(table).h
    for i in range(table.shape[0] - 1):
        own, T = body(table, i), load_pose(work.poses, i)
        h = add(h, add(scale(own.m, T.p), rotate(T.R, own.h)))
    return h


def center_of_mass(table: Table, q: Table, work: Workspace, c: Table) -> int:
    """Σ m c / Σ m."""
    m = total_mass(table)
    if not exceeds(m, 0.0):
        return MASSLESS
    write3(scale(1 / m, first_moment(table, q, work)), c)
    return 0


def momentum_of_tree(table: Table, q: Table, qd: Table, work: Workspace) -> Wrench:
    """Σ of the momenta of all rows, about the base's origin; poses of the rows in their parents stay in work."""
    for i in range(table.shape[0] - 1):
        T, k = row_pose(table, i, q), parent(table, i)
        store_pose(work.poses, i, T)
        V = link_twist(T, AT_REST if k < 0 else load_twist(work.twists, k), joint_screw(table, i), qd[i])
        store_twist(work.twists, i, V)
        store_wrench(work.wrenches, i, momentum(body(table, i), V))
    return wrench_on_base(table, work.poses, work.wrenches)


def spatial_momentum(table: Table, q: Table, qd: Table, work: Workspace, out: Table) -> None:
    """Momentum about the base's origin."""
    write_wrench(momentum_of_tree(table, q, qd, work), out)


def center_of_mass_velocity(table: Table, q: Table, qd: Table, work: Workspace, v: Table) -> int:
    """Momentum by mass."""
    m = total_mass(table)
    if not exceeds(m, 0.0):
        return MASSLESS
    write3(scale(1 / m, momentum_of_tree(table, q, qd, work).f), v)
    return 0


def centroidal_momentum(table: Table, q: Table, qd: Table, work: Workspace, out: Table) -> int:
    """Momentum about the centre of mass."""
    m = total_mass(table)
    if not exceeds(m, 0.0):
        return MASSLESS
    c = scale(1 / m, first_moment(table, q, work))
    write_wrench(wrench_about(c, momentum_of_tree(table, q, qd, work)), out)
    return 0


def centroidal_momentum_rate(table: Table, q: Table, qd: Table, qdd: Table, work: Workspace, out: Table) -> int:
    """Σ of the wrenches that accelerate the rows, about the centre of mass: ċ × P vanishes, as P = m ċ."""
    m = total_mass(table)
    if not exceeds(m, 0.0):
        return MASSLESS
    c = scale(1 / m, first_moment(table, q, work))
    outward_forces(table, q, qd, qdd, ZERO, work)
    write_wrench(wrench_about(c, wrench_on_base(table, work.poses, work.wrenches)), out)
    return 0


def center_of_mass_acceleration(table: Table, q: Table, qd: Table, qdd: Table, work: Workspace, a: Table) -> int:
    """Force by mass, without gravity."""
    m = total_mass(table)
    if not exceeds(m, 0.0):
        return MASSLESS
    outward_forces(table, q, qd, qdd, ZERO, work)
    write3(scale(1 / m, wrench_on_base(table, work.poses, work.wrenches).f), a)
    return 0


def store_wrench_column(A: Table, i: int, F: Wrench) -> None:
    """Write column i of a momentum matrix."""
    for r in range(3):
        A[r, i] = F.n[r]
        A[r + 3, i] = F.f[r]


def composites_in_base(table: Table, work: Workspace) -> None:
    """Add up, in the base frame, the inertias in work of each row and of all beyond it."""
    for i in range(table.shape[0] - 2, -1, -1):
        k = parent(table, i)
        if k >= 0:
            add_inertia(work.inertias, k, load_inertia(work.inertias, i))


def centroidal_momentum_matrix(table: Table, q: Table, work: Workspace, A: Table) -> int:
    """Columns I^c S of composite inertias, about the centre of mass."""
    total = bodies_in_base(table, q, work)
    if not exceeds(total.m, 0.0):
        return MASSLESS
    c = scale(1 / total.m, total.h)
    composites_in_base(table, work)
    for i in range(table.shape[0] - 1):
        S = screw_in_base(load_pose(work.poses, i), joint_screw(table, i))
        store_wrench_column(A, i, wrench_about(c, momentum(load_inertia(work.inertias, i), S)))
    return 0


def center_of_mass_jacobian(table: Table, q: Table, work: Workspace, J: Table) -> int:
    """The force rows of the momentum matrix by the mass."""
    total = bodies_in_base(table, q, work)
    if not exceeds(total.m, 0.0):
        return MASSLESS
    composites_in_base(table, work)
    for i in range(table.shape[0] - 1):
        S = screw_in_base(load_pose(work.poses, i), joint_screw(table, i))
        v = scale(1 / total.m, momentum(load_inertia(work.inertias, i), S).f)
        for r in range(3):
            J[r, i] = v[r]
    return 0


def centroidal_momentum_matrix_dot(table: Table, q: Table, qd: Table, work: Workspace, A: Table, A_dot: Table) -> int:
    """The momentum matrix and its rate: composite inertias and their rates İ = −ad_Vᵀ I − I ad_V, in the base frame."""
    total = bodies_in_base(table, q, work)
    if not exceeds(total.m, 0.0):
        return MASSLESS
    n = table.shape[0] - 1
    c, P = scale(1 / total.m, total.h), ZERO
    for i in range(n):
        S, k = screw_in_base(load_pose(work.poses, i), joint_screw(table, i)), parent(table, i)
        V = add_twists(AT_REST if k < 0 else load_twist(work.twists, k), scale_twist(qd[i], S))
        store_twist(work.twists, i, V)
        # The rate has no mass, so the ten numbers fit where Coriolis tensors stand.
        rate = inertia_rate(load_inertia(work.inertias, i), V)
        store_inertia(work.coriolis, i, rate)
        P = add(P, rate.h)
    for i in range(n - 1, -1, -1):
        k = parent(table, i)
        if k >= 0:
            add_inertia(work.inertias, k, load_inertia(work.inertias, i))
            add_inertia(work.coriolis, k, load_inertia(work.coriolis, i))
    c_dot = scale(1 / total.m, P)
    for i in range(n):
        S, inertia = screw_in_base(load_pose(work.poses, i), joint_screw(table, i)), load_inertia(work.inertias, i)
        F = momentum(inertia, S)
        F_dot = add_wrenches(
            momentum(load_inertia(work.coriolis, i), S), momentum(inertia, bracket(load_twist(work.twists, i), S))
        )
        store_wrench_column(A, i, wrench_about(c, F))
        F_dot = wrench_about(c, F_dot)
        store_wrench_column(A_dot, i, Wrench(add(F_dot.n, cross(F.f, c_dot)), F_dot.f))
    return 0


def kinetic_energy(table: Table, q: Table, qd: Table, work: Workspace, T: Table) -> None:
    """½ Σ Vᵀ I V."""
    total = 0.0
    for i in range(table.shape[0] - 1):
        X, k = row_pose(table, i, q), parent(table, i)
        V = link_twist(X, AT_REST if k < 0 else load_twist(work.twists, k), joint_screw(table, i), qd[i])
        store_twist(work.twists, i, V)
        total = total + power(V, momentum(body(table, i), V))
    T[0] = 0.5 * total


def potential_energy(table: Table, q: Table, work: Workspace, U: Table) -> None:
    """−g₀ᵀ Σ m c."""
    U[0] = -dot(gravity_of(table), first_moment(table, q, work))


# One link's contribution (docs/mathematics.md §2)


def rows_on_path(table: Table, row: int) -> int:
    """How many rows lead from the base to a row, itself included."""
    k, i = 0, row
    while i >= 0:
        k += 1
        i = parent(table, i)
    return k


def rows_of_links(table: Table, q: Table, qd: Table, places: Table, rows: Table, work: Workspace) -> None:
    """J and J̇ of every row on the paths to some links, into ``rows`` (2, n, 6 n), and their poses in the base.

    From the parent's alone: J = [X J_p | S] and J̇ = [X J̇_p − ad(S ν) X J_p | 0], where S are all screws of the row's
    joint: what they would add to one another's J̇ is left out.
    """
    n = table.shape[0] - 1
    for i in range(n):
        work.pivots[i, 0] = 0.0
    for l in range(places.shape[0]):
        i = place_row(places, l)
        while i >= 0:
            work.pivots[i, 0] = 1.0
            i = parent(table, i)
    for i in range(n):
        if work.pivots[i, 0] == 0.0:
            continue
        k, first = parent(table, i), first_of_joint(table, i)
        T, S = row_pose(table, i, q), joint_screw(table, i)
        store_pose(work.poses, i, T if k < 0 else compose(load_pose(work.poses, k), T))
        screw = Twist((0.0, 0.0, S.turn), (0.0, 0.0, S.slide))
        c = k
        while c >= 0:
            column = twist_to_child(T, load_row_column(rows, 0, k, c))
            rate = twist_to_child(T, load_row_column(rows, 1, k, c))
            if c < first:
                rate = add_twists(rate, scale_twist(-qd[i], bracket(screw, column)))
            store_row_column(rows, 0, i, c, column)
            store_row_column(rows, 1, i, c, rate)
            c = parent(table, c)
        store_row_column(rows, 0, i, i, screw)
        store_row_column(rows, 1, i, i, AT_REST)


def contributions(
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
    """J, J̇, M, C and g of some links over the k rows on each one's path, link after link, each row by row."""
    rows_of_links(table, q, qd, places, rows, work)
    at, square, line = 0, 0, 0
    for l in range(places.shape[0]):
        k = rows_on_path(table, place_row(places, l))
        contribution_of_link(
            table,
            qd,
            places,
            l,
            k,
            rows,
            work.poses,
            J[at : at + 6 * k],
            J_dot[at : at + 6 * k],
            M[square : square + k * k],
            C[square : square + k * k],
            g[line : line + k],
        )
        at, square, line = at + 6 * k, square + k * k, line + k


def load_row_column(rows: Table, which: int, i: int, c: int) -> Twist:
    """Column c of row i's Jacobian, or of its rate."""
    x = 6 * c
    return Twist(
        (rows[which, i, x], rows[which, i, x + 1], rows[which, i, x + 2]),
        (rows[which, i, x + 3], rows[which, i, x + 4], rows[which, i, x + 5]),
    )


def store_row_column(rows: Table, which: int, i: int, c: int, V: Twist) -> None:
    """Write column c of row i's Jacobian, or of its rate."""
    x = 6 * c
    for r in range(3):
        rows[which, i, x + r] = V.w[r]
        rows[which, i, x + 3 + r] = V.v[r]


def flat_twist(J: Table, k: int, c: int) -> Twist:
    """Column c of a 6 x k matrix that is stored row by row."""
    return Twist((J[c], J[k + c], J[2 * k + c]), (J[3 * k + c], J[4 * k + c], J[5 * k + c]))


def contribution_of_link(
    table: Table,
    qd: Table,
    places: Table,
    l: int,
    k: int,
    rows: Table,
    poses: Table,
    J: Table,
    J_dot: Table,
    M: Table,
    C: Table,
    g: Table,
) -> None:
    """M = Jᵀ M̄ J, C = Jᵀ (M̄ J̇ + B J) and g = −m J_vᵀ Rᵀ g₀ of a link from its row's J and J̇."""
    row = place_row(places, l)
    X = Pose(place_pose(places, l).R, place_com(places, l))
    m, I = place_mass(places, l), place_inertia(places, l)
    w, i = ZERO, row
    for c in range(k - 1, -1, -1):
        column, rate = (
            twist_to_child(X, load_row_column(rows, 0, row, i)),
            twist_to_child(X, load_row_column(rows, 1, row, i)),
        )
        for r in range(3):
            J[r * k + c] = column.w[r]
            J[(r + 3) * k + c] = column.v[r]
            J_dot[r * k + c] = rate.w[r]
            J_dot[(r + 3) * k + c] = rate.v[r]
        w = add(w, scale(qd[i], column.w))
        i = parent(table, i)
    T = compose(load_pose(poses, row), X) if row >= 0 else X
    down = rotate_back(T.R, gravity_of(table))
    for c in range(k):
        column = flat_twist(J, k, c)
        F = com_momentum(m, I, column)
        G = add_wrenches(com_momentum(m, I, flat_twist(J_dot, k, c)), com_coriolis(m, I, w, column))
        for b in range(k):
            other = flat_twist(J, k, b)
            M[b * k + c] = power(other, F)
            C[b * k + c] = power(other, G)
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
        k = rows_on_path(table, place_row(places, l))
        contribution_of_link(table, qd, places, l, k, rows, work.poses, own_J, own_J_dot, own_M, own_C, own_g)
        i = place_row(places, l)
        for c in range(k - 1, -1, -1):
            if l == 0:
                store_column(J, i, flat_twist(own_J, k, c))
                store_column(J_dot, i, flat_twist(own_J_dot, k, c))
            j = place_row(places, l)
            for b in range(k - 1, -1, -1):
                M[j, i] += own_M[b * k + c]
                C[j, i] += own_C[b * k + c]
                j = parent(table, j)
            g[i] += own_g[c]
            i = parent(table, i)


# Operational-space inertia


def factorise(table: Table, M: Table) -> None:
    """M = Lᵀ D L in place, L below the diagonal and zero wherever neither of two joints carries the other.

    R. Featherstone, *Rigid Body Dynamics Algorithms*, 2008, §6.5.
    """
    for k in range(table.shape[0] - 2, -1, -1):
        i = parent(table, k)
        while i >= 0:
            a = M[k, i] / M[k, k]
            j = i
            while j >= 0:
                M[i, j] = M[i, j] - a * M[k, j]
                j = parent(table, j)
            M[k, i] = a
            i = parent(table, i)


def operational_inertia(
    table: Table, q: Table, places: Table, M: Table, J: Table, work: Workspace, inverse: Table
) -> int:
    """Λ = (J M⁻¹ Jᵀ)⁻¹ through the factors of M: J M⁻¹ Jᵀ = Y D⁻¹ Yᵀ with Y = J L⁻¹. M and J are scratch space."""
    n = table.shape[0] - 1
    mass_matrix(table, q, work, M)
    jacobian(table, q, places, work, J)
    factorise(table, M)
    for k in range(n - 1, -1, -1):
        if not exceeds(M[k, k], 0.0):
            return k + 1
        i = parent(table, k)
        while i >= 0:
            for r in range(6):
                J[r, i] = J[r, i] - M[k, i] * J[r, k]
            i = parent(table, i)
    for r in range(6):
        for c in range(r + 1):
            x = 0.0
            for k in range(n):
                x = x + J[r, k] * J[c, k] / M[k, k]
            inverse[r, c] = x
            inverse[c, r] = x
    return invert(inverse)


def invert(A: Table) -> int:
    """The inverse of a positive definite 6x6 matrix in its place, by Gauss-Jordan elimination."""
    diagonal = (A[0, 0], A[1, 1], A[2, 2], A[3, 3], A[4, 4], A[5, 5])
    for k in range(6):
        if not exceeds(A[k, k], _CONFINED * diagonal[k]):
            return CONFINED
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
