"""Walks over the rows of a model, out from the base and back in. They order the steps; they do no physics.

The table of a model and the scratch space ``work`` are described in ``rows``; the other arrays hold one state after
another, and ``s`` is where this state begins. Cost: O(n), except the two matrices, O(Σ depth).
"""

from numba.extending import register_jitable

from screwdyn.physics.link_steps import (
    along_joint,
    articulated_apply,
    articulated_column,
    articulated_inward,
    bias_wrench,
    bracket,
    carries_inertia,
    composed,
    coriolis_body,
    coriolis_columns,
    coriolis_inward,
    freed,
    inertia_inward,
    joint_pose,
    newton_euler,
    outward_acceleration,
    outward_twist,
    rigid_blocks,
    rigid_column,
    screw_rate,
    seen_from,
    spin,
    twist_inward,
    weight,
    wrench_inward,
)
from screwdyn.physics.table import (
    FIRST_MOMENT,
    INERTIA,
    MASS,
    PARENT,
    SLIDE,
    TURN,
    Table,
    load3,
    load6,
    load9,
    raise3,
    store3,
    store6,
    store9,
)
from screwdyn.physics.vectors import Matrix, Vector, add, dot, plus, rotate, rotate_back, scale


@register_jitable
def place(table: Table, i: int, q: Table, s: int, work: Table) -> tuple[Matrix, Vector]:
    """Pose of link i in its parent, kept in work for the way back."""
    R, p = joint_pose(load9(table, i, 0), load3(table, i, 9), table[i, TURN], table[i, SLIDE], q[s + i])
    store9(work, i, 0, R)
    store3(work, i, 9, p)
    return R, p


@register_jitable
def inverse_dynamics(table: Table, q: Table, qd: Table, qdd: Table, s: int, work: Table, tau: Table) -> None:
    """Recursive Newton-Euler. Work: 12 ω, 15 ω̇, 18 a, 21 n, 24 f, 27 U."""
    n = table.shape[0] - 1
    for i in range(n):
        R, p = place(table, i, q, s, work)
        k = int(table[i, PARENT])
        if k < 0:
            w, dw, a = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), scale(-1, load3(table, n, 0))
            U = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        else:
            w, dw, a, U = load3(work, k, 12), load3(work, k, 15), load3(work, k, 18), load9(work, k, 27)
        w, dw, a = outward_acceleration(R, p, w, dw, U, a, table[i, TURN], table[i, SLIDE], qd[s + i], qdd[s + i])
        U = spin(w, dw)
        moment, f = newton_euler(table[i, MASS], load3(table, i, FIRST_MOMENT), load6(table, i, INERTIA), w, dw, U, a)
        store3(work, i, 12, w)
        store3(work, i, 15, dw)
        store3(work, i, 18, a)
        store3(work, i, 21, moment)
        store3(work, i, 24, f)
        store9(work, i, 27, U)
    wrenches_inward(table, work, 21, s, tau)


@register_jitable
def wrenches_inward(table: Table, work: Table, column: int, s: int, tau: Table) -> None:
    """Each joint's share of the wrenches at and beyond it; they stand in work from the given column on."""
    for i in range(table.shape[0] - 2, -1, -1):
        moment, f = load3(work, i, column), load3(work, i, column + 3)
        tau[s + i] = along_joint(moment, f, table[i, TURN], table[i, SLIDE])
        k = int(table[i, PARENT])
        if k >= 0:
            moment, f = wrench_inward(load9(work, i, 0), load3(work, i, 9), moment, f)
            raise3(work, k, column, moment)
            raise3(work, k, column + 3, f)


@register_jitable
def wrench_torque(table: Table, q: Table, wrenches: Table, s: int, work: Table, tau: Table) -> None:
    """Σ Jᵀ F for a wrench [n; f] on each row, in the row's frame. Work: 12 n, 15 f."""
    for i in range(table.shape[0] - 1):
        place(table, i, q, s, work)
        store6(work, i, 12, load6(wrenches, s + i, 0))
    wrenches_inward(table, work, 12, s, tau)


@register_jitable
def gravity_vector(table: Table, q: Table, s: int, work: Table, tau: Table) -> None:
    """Torques that hold the arm still. Work: 12 −gravity in the link's frame, 15 n, 18 f."""
    n = table.shape[0] - 1
    for i in range(n):
        R, _ = place(table, i, q, s, work)
        k = int(table[i, PARENT])
        a = rotate_back(R, scale(-1, load3(table, n, 0)) if k < 0 else load3(work, k, 12))
        moment, f = weight(table[i, MASS], load3(table, i, FIRST_MOMENT), a)
        store3(work, i, 12, a)
        store3(work, i, 15, moment)
        store3(work, i, 18, f)
    wrenches_inward(table, work, 15, s, tau)


@register_jitable
def composite_inward(work: Table, i: int, k: int, column: int) -> None:
    """Add link i's composite inertia (10 numbers from the given column on) to its parent's."""
    m, h, I = inertia_inward(
        load9(work, i, 0),
        load3(work, i, 9),
        work[i, column],
        load3(work, i, column + 1),
        load6(work, i, column + 4),
    )
    work[k, column] += m
    raise3(work, k, column + 1, h)
    store6(work, k, column + 4, plus(load6(work, k, column + 4), I))


@register_jitable
def own_inertia(table: Table, work: Table, i: int, column: int) -> None:
    """Start link i's composite inertia with its own."""
    work[i, column] = table[i, MASS]
    store3(work, i, column + 1, load3(table, i, FIRST_MOMENT))
    store6(work, i, column + 4, load6(table, i, INERTIA))


@register_jitable
def mass_matrix(table: Table, q: Table, s: int, work: Table, M: Table) -> None:
    """Composite inertias. Work: 12 composite inertia (10)."""
    n = table.shape[0] - 1
    for i in range(n):
        place(table, i, q, s, work)
        own_inertia(table, work, i, 12)
        for k in range(n):
            M[s + i, k] = 0.0
    for j in range(n - 1, -1, -1):
        turn, slide = table[j, TURN], table[j, SLIDE]
        moment, f = rigid_column(work[j, 12], load3(work, j, 13), load6(work, j, 16), turn, slide)
        M[s + j, j] = along_joint(moment, f, turn, slide)
        i, k = j, int(table[j, PARENT])
        if k >= 0:
            composite_inward(work, j, k, 12)
        while k >= 0:
            moment, f = wrench_inward(load9(work, i, 0), load3(work, i, 9), moment, f)
            M[s + k, j] = along_joint(moment, f, table[k, TURN], table[k, SLIDE])
            M[s + j, k] = M[s + k, j]
            i, k = k, int(table[k, PARENT])


@register_jitable
def coriolis_matrix(table: Table, q: Table, qd: Table, s: int, work: Table, M: Table, C: Table) -> None:
    """Mass and Coriolis matrices from composite inertias and composite B.

    Work: 12 composite inertia (10), 22 ω, 25 v, 28 K, 37 P.
    """
    n = table.shape[0] - 1
    for i in range(n):
        R, p = place(table, i, q, s, work)
        own_inertia(table, work, i, 12)
        k = int(table[i, PARENT])
        w, v = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
        if k >= 0:
            w, v = load3(work, k, 22), load3(work, k, 25)
        w, v = outward_twist(R, p, w, v, table[i, TURN], table[i, SLIDE], qd[s + i])
        K, P = coriolis_body(table[i, MASS], load3(table, i, FIRST_MOMENT), load6(table, i, INERTIA), w, v)
        store3(work, i, 22, w)
        store3(work, i, 25, v)
        store9(work, i, 28, K)
        store3(work, i, 37, P)
        for k in range(n):
            M[s + i, k] = 0.0
            C[s + i, k] = 0.0
    for j in range(n - 1, -1, -1):
        turn, slide = table[j, TURN], table[j, SLIDE]
        K, P = load9(work, j, 28), load3(work, j, 37)
        (n1, f1), (n2, f2), n3 = coriolis_columns(
            work[j, 12],
            load3(work, j, 13),
            load6(work, j, 16),
            K,
            P,
            load3(work, j, 22),
            load3(work, j, 25),
            turn,
            slide,
        )
        M[s + j, j] = along_joint(n2, f2, turn, slide)
        C[s + j, j] = along_joint(n1, f1, turn, slide)
        i, k = j, int(table[j, PARENT])
        if k >= 0:
            composite_inward(work, j, k, 12)
            K, P = coriolis_inward(load9(work, j, 0), load3(work, j, 9), K, P)
            raise3(work, k, 28, (K[0], K[1], K[2]))
            raise3(work, k, 31, (K[3], K[4], K[5]))
            raise3(work, k, 34, (K[6], K[7], K[8]))
            raise3(work, k, 37, P)
        while k >= 0:
            R, p = load9(work, i, 0), load3(work, i, 9)
            n1, f1 = wrench_inward(R, p, n1, f1)
            n2, f2 = wrench_inward(R, p, n2, f2)
            n3 = rotate(R, n3)
            turn, slide = table[k, TURN], table[k, SLIDE]
            M[s + k, j] = along_joint(n2, f2, turn, slide)
            M[s + j, k] = M[s + k, j]
            C[s + k, j] = along_joint(n1, f1, turn, slide)
            a, b = screw_rate(load3(work, k, 22), load3(work, k, 25), turn, slide)
            C[s + j, k] = dot(a, n2) + dot(b, f2) + turn * n3[2]
            i, k = k, int(table[k, PARENT])


@register_jitable
def forward_dynamics(table: Table, q: Table, qd: Table, tau: Table, s: int, work: Table, qdd: Table) -> int:
    """Articulated bodies. Returns the first row found to carry no inertia along its joint, or −1.

    Work: 12 ω, 15 v, 18 c = S̊ q̇, 24 A, 30 H, 39 L, 45 p, 51 U, 57 D, 58 u, 59 a.
    """
    n = table.shape[0] - 1
    for i in range(n):
        R, p = place(table, i, q, s, work)
        turn, slide = table[i, TURN], table[i, SLIDE]
        k = int(table[i, PARENT])
        w, v = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
        if k >= 0:
            w, v = load3(work, k, 12), load3(work, k, 15)
        w, v = outward_twist(R, p, w, v, turn, slide, qd[s + i])
        m, h, I = table[i, MASS], load3(table, i, FIRST_MOMENT), load6(table, i, INERTIA)
        a, b = screw_rate(w, v, turn, slide)
        moment, f = bias_wrench(m, h, I, w, v)
        A, H, L = rigid_blocks(m, h, I)
        store3(work, i, 12, w)
        store3(work, i, 15, v)
        store3(work, i, 18, scale(qd[s + i], a))
        store3(work, i, 21, scale(qd[s + i], b))
        store6(work, i, 24, A)
        store9(work, i, 30, H)
        store6(work, i, 39, L)
        store3(work, i, 45, moment)
        store3(work, i, 48, f)
    for i in range(n - 1, -1, -1):
        turn, slide = table[i, TURN], table[i, SLIDE]
        A, H, L = load6(work, i, 24), load9(work, i, 30), load6(work, i, 39)
        moment, f = load3(work, i, 45), load3(work, i, 48)
        Un, Uf = articulated_column(A, H, L, turn, slide)
        D = along_joint(Un, Uf, turn, slide)
        if not carries_inertia(A, L, D, turn, slide):
            return i
        u = tau[s + i] - along_joint(moment, f, turn, slide)
        store3(work, i, 51, Un)
        store3(work, i, 54, Uf)
        work[i, 57] = D
        work[i, 58] = u
        k = int(table[i, PARENT])
        if k >= 0:
            A, H, L = freed(A, H, L, Un, Uf, D)
            dn, df = articulated_apply(A, H, L, load3(work, i, 18), load3(work, i, 21))
            moment = add(moment, add(dn, scale(u / D, Un)))
            f = add(f, add(df, scale(u / D, Uf)))
            R, p = load9(work, i, 0), load3(work, i, 9)
            moment, f = wrench_inward(R, p, moment, f)
            A, H, L = articulated_inward(R, p, A, H, L)
            store6(work, k, 24, plus(load6(work, k, 24), A))
            raise3(work, k, 30, (H[0], H[1], H[2]))
            raise3(work, k, 33, (H[3], H[4], H[5]))
            raise3(work, k, 36, (H[6], H[7], H[8]))
            store6(work, k, 39, plus(load6(work, k, 39), L))
            raise3(work, k, 45, moment)
            raise3(work, k, 48, f)
    for i in range(n):
        turn, slide = table[i, TURN], table[i, SLIDE]
        k = int(table[i, PARENT])
        a, b = (0.0, 0.0, 0.0), scale(-1, load3(table, n, 0))
        if k >= 0:
            a, b = load3(work, k, 59), load3(work, k, 62)
        a, b = twist_inward(load9(work, i, 0), load3(work, i, 9), a, b)
        a, b = add(a, load3(work, i, 18)), add(b, load3(work, i, 21))
        x = (work[i, 58] - dot(load3(work, i, 51), a) - dot(load3(work, i, 54), b)) / work[i, 57]
        qdd[s + i] = x
        store3(work, i, 59, (a[0], a[1], a[2] + turn * x))
        store3(work, i, 62, (b[0], b[1], b[2] + slide * x))
    return -1


@register_jitable
def motion(table: Table, q: Table, qd: Table, s: int, work: Table, pose: Table, twist: Table) -> None:
    """Pose (R, p: 12 numbers) of every row's frame in the base, and its twist in its own frame."""
    for i in range(table.shape[0] - 1):
        R, p = place(table, i, q, s, work)
        w, v = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
        k = int(table[i, PARENT])
        if k >= 0:
            w, v = load3(twist, s + k, 0), load3(twist, s + k, 3)
        w, v = outward_twist(R, p, w, v, table[i, TURN], table[i, SLIDE], qd[s + i])
        if k >= 0:
            R, p = composed(load9(pose, s + k, 0), load3(pose, s + k, 9), R, p)
        store9(pose, s + i, 0, R)
        store3(pose, s + i, 9, p)
        store3(twist, s + i, 0, w)
        store3(twist, s + i, 3, v)


@register_jitable
def jacobian(table: Table, q: Table, qd: Table, row: int, s: int, work: Table, J: Table, J_dot: Table) -> None:
    """Twist Jacobian of one row in its own frame and its entry-by-entry rate, transposed: a row for each coordinate.

    A coordinate's screw is seen from the row; it drifts with the row's motion relative to that joint.
    """
    for i in range(table.shape[0] - 1):
        place(table, i, q, s, work)
        for k in range(6):
            J[s + i, k] = 0.0
            J_dot[s + i, k] = 0.0
    R, p = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 0.0)
    w, v = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    while row >= 0:
        a, b = seen_from(R, p, table[row, TURN], table[row, SLIDE])
        da, db = bracket(a, b, w, v)
        store3(J, s + row, 0, a)
        store3(J, s + row, 3, b)
        store3(J_dot, s + row, 0, da)
        store3(J_dot, s + row, 3, db)
        w, v = add(w, scale(qd[s + row], a)), add(v, scale(qd[s + row], b))
        R, p = composed(load9(work, row, 0), load3(work, row, 9), R, p)
        row = int(table[row, PARENT])
