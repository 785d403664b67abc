"""Loops: the Jacobian of their constraints, and accelerations of trees with closed loops (docs/mathematics.md §12).

With M = L Lᵀ and z = Lᵀ q̈, z = f + Qᵀ (c − Q f), f = L⁻¹ (τ − b). The rows of Q are an orthonormal basis of those of
A = J_c L⁻ᵀ, from which redundant constraints drop out; c are the components of z that the constraints determine.
"""

from math import sqrt

from screwdyn.physics import link_steps as steps
from screwdyn.physics.link_steps import AT_REST, Pose, Twist, add, exceeds, scale
from screwdyn.physics.recursions.links import Scratch, clear, poses_in_base, screw_of_row
from screwdyn.physics.recursions.whole_tree import NO_PIVOT, inverse_dynamics, mass_matrix
from screwdyn.physics.table import Constraint, Table, Workspace, load, store

# Of a row of A, relative to its own length, which is redundant; of the length of a row, relative to the longest, which
# is zero.
REDUNDANT, NO_ROW = 1e-5, 1e-12
# Length of a row of J_c, rad and m for each unit of rate, that is rounding: the tree keeps this constraint by itself.
KEPT_ANYWAY = 1e-12


def rows_of_constraints(places: Table, work: Workspace, rates: bool, J: Table) -> None:
    """J_c, a row for each constraint, or its rate, from the screws, poses and twists of the rows in the base frame."""
    clear(J)
    for l in range(places.shape[0]):
        link, k, F = load(places, l, Constraint)
        F, i = F if link < 0 else steps.wrench_to_parent(load(work.poses, link, Pose), F), link
        while i != k:  # parents come before children, so the larger one does not carry the other
            r = i if i > k else k
            S = load(work.columns, r, Twist)
            if rates:
                V = load(work.twists, r, Twist)
                S = steps.bracket(V if link < 0 else add(V, scale(-1.0, load(work.twists, link, Twist))), S)
            if i > k:
                J[l, i] = steps.power(S, F)
                i = work.parents[i]
            else:
                J[l, k] = -steps.power(S, F)
                k = work.parents[k]


def constraint_jacobian(table: Table, q: Table, places: Table, work: Workspace, J: Table) -> None:
    """J_c, a row for each constraint."""
    poses_in_base(table, q, work)
    for i in range(table.shape[0] - 1):
        store(work.columns, i, screw_of_row(table, i, work))
    rows_of_constraints(places, work, False, J)


def constraint_jacobian_dot(
    table: Table, q: Table, qd: Table, places: Table, work: Workspace, J: Table, J_dot: Table
) -> None:
    """J_c, and its rate entry by entry."""
    constraint_jacobian(table, q, places, work, J)
    for i in range(table.shape[0] - 1):
        V, k = scale(qd[i], load(work.columns, i, Twist)), work.parents[i]
        store(work.twists, i, add(AT_REST if k < 0 else load(work.twists, k, Twist), V))
    rows_of_constraints(places, work, True, J_dot)


# Accelerations


def cholesky(M: Table) -> int:
    """M = L Lᵀ in place, L in the lower half; 0, or 1 + the first row whose pivot is rounding."""
    for i in range(M.shape[0]):
        solve_lower(M, i, M[i])
        pivot = M[i, i]
        for k in range(i):
            pivot = pivot - M[i, k] * M[i, k]
        if not exceeds(pivot, NO_PIVOT * M[i, i]):
            return i + 1
        M[i, i] = sqrt(pivot)
    return 0


def solve_lower(L: Table, n: int, x: Table) -> None:
    """L⁻¹ x in place, of the first n rows."""
    for i in range(n):
        a = x[i]
        for k in range(i):
            a = a - L[i, k] * x[k]
        x[i] = a / L[i, i]


def solve_transposed(L: Table, n: int, x: Table) -> None:
    """L⁻ᵀ x in place, of the first n rows."""
    for i in range(n - 1, -1, -1):
        a = x[i]
        for k in range(i + 1, n):
            a = a - L[k, i] * x[k]
        x[i] = a / L[i, i]


def inner(x: Table, y: Table) -> float:
    """xᵀ y."""
    a = 0.0
    for i in range(x.shape[0]):
        a = a + x[i] * y[i]
    return a


def subtract(x: Table, a: float, y: Table) -> None:
    """x − a y, in place of x."""
    for i in range(x.shape[0]):
        x[i] = x[i] - a * y[i]


def swap(A: Table, i: int, k: int) -> None:
    """Exchange two rows."""
    for c in range(A.shape[1]):
        A[i, c], A[k, c] = A[k, c], A[i, c]


def orthonormal_rows(A: Table, R: Table, order: Table) -> int:
    """An orthonormal basis of the rows of A, in its first rows; returns their number, which is the rank.

    Row ``order[k]`` of the given A, a constraint, is Σ R[k, j] q_j over j ≤ k. Rows that are left out come last.
    """
    m = int(A.shape[0])
    longest = 0.0
    for l in range(m):
        order[l, 0] = l
        order[l, 1] = sqrt(inner(A[l], A[l]))
        longest = max(longest, order[l, 1])
    for k in range(m):
        best, share = k, -1.0
        for l in range(k, m):
            if order[l, 1] > NO_ROW * longest:
                remainder = sqrt(inner(A[l], A[l])) / order[l, 1]
                if remainder > share:
                    best, share = l, remainder
        if share < REDUNDANT:
            return k
        swap(A, k, best)
        swap(R, k, best)
        swap(order, k, best)
        for j in range(k):  # once more, which removes what rounding has left
            x = inner(A[k], A[j])
            R[k, j] = R[k, j] + x
            subtract(A[k], x, A[j])
        R[k, k] = sqrt(inner(A[k], A[k]))
        for c in range(A.shape[1]):
            A[k, c] = A[k, c] / R[k, k]
        for l in range(k + 1, m):
            R[l, k] = inner(A[l], A[k])
            subtract(A[l], R[l, k], A[k])
    return m


def constrained(M: Table, J: Table, given: Table, R: Table, order: Table, x: Table) -> int:
    """From forces the motion x that they cause and for which J_c x is given, as far as constraints are independent.

    Returns their rank, or −1 − the first coordinate that feels no inertia. ``order[k, 1]`` are the c of the rows
    ``J[k]`` of Q. M is overwritten too.
    """
    status = cholesky(M)
    if status != 0:
        return -status
    n, m = M.shape[0], J.shape[0]
    solve_lower(M, n, x)
    for l in range(m):
        if inner(J[l], J[l]) < KEPT_ANYWAY * KEPT_ANYWAY:
            for i in range(n):
                J[l, i] = 0.0
        solve_lower(M, n, J[l])
        for k in range(m):
            R[l, k] = 0.0
    rank = orthonormal_rows(J, R, order)
    for k in range(rank):
        c = given[int(order[k, 0])]
        for j in range(k):
            c = c - R[k, j] * order[j, 1]
        order[k, 1] = c / R[k, k]
    for k in range(rank):
        c = order[k, 1]
        for i in range(n):
            c = c - J[k, i] * x[i]
        subtract(x, -c, J[k])
    solve_transposed(M, n, x)
    return rank


def accelerations(
    M: Table,
    b: Table,
    J: Table,
    J_dot: Table,
    qd: Table,
    tau: Table,
    given: Table,
    R: Table,
    order: Table,
    _: Workspace,
    qdd: Table,
) -> int:
    """q̈ of the constrained tree; 0, or 1 + the first coordinate that feels no inertia."""
    for i in range(M.shape[0]):
        qdd[i] = tau[i] - b[i]
    for l in range(J.shape[0]):
        c = 0.0
        for i in range(M.shape[0]):
            c = c - J_dot[l, i] * qd[i]
        given[l] = c
    rank = constrained(M, J, given, R, order, qdd)
    return -rank if rank < 0 else 0


def forward_dynamics(
    table: Table, q: Table, qd: Table, tau: Table, places: Table, scratch: Scratch, work: Workspace, qdd: Table
) -> int:
    """q̈ of a tree whose loops are closed; the status is that of :func:`accelerations`."""
    M, bias, rest, J, J_dot, given, R, order = scratch
    for i in range(qd.shape[0]):
        rest[i] = 0.0
    mass_matrix(table, q, work, M)
    inverse_dynamics(table, q, qd, rest, work, bias)
    constraint_jacobian_dot(table, q, qd, places, work, J, J_dot)
    return accelerations(M, bias, J, J_dot, qd, tau, given, R, order, work, qdd)


# Impacts


def least_rates(
    M: Table, J: Table, opening: Table, R: Table, order: Table, _: Workspace, rates: Table, impulses: Table
) -> int:
    """The x of least xᵀ M x with J_c x = ``opening``, and of all λ with M x = J_cᵀ λ that of least λᵀλ.

    0, or 1 + the first coordinate that feels no inertia. The basic solution Rᵀ λ = c, in which redundant constraints
    have no part, is freed from the λ that cause nothing; these are orthogonal rows of R from the rank on.
    """
    m = J.shape[0]
    for i in range(M.shape[0]):
        rates[i] = 0.0
    rank = constrained(M, J, opening, R, order, rates)
    if rank < 0:
        return -rank
    for k in range(m):
        impulses[k] = order[k, 1] if k < rank else 0.0
    solve_transposed(R, rank, impulses)
    for l in range(rank, m):
        solve_transposed(R, rank, R[l])
        R[l, l] = -1.0
        for _again in range(2):  # which removes what rounding has left
            for k in range(rank, l):
                subtract(R[l], inner(R[l], R[k]) / inner(R[k], R[k]), R[k])
        subtract(impulses, inner(R[l], impulses) / inner(R[l], R[l]), R[l])
    for k in range(m):
        order[k, 1] = impulses[k]
    for k in range(m):
        impulses[int(order[k, 0])] = order[k, 1]
    return 0


def closing(
    table: Table, q: Table, opening: Table, places: Table, scratch: Scratch, work: Workspace, x: Table, impulses: Table
) -> int:
    """:func:`least_rates` of a tree."""
    M, J, R, order = scratch
    mass_matrix(table, q, work, M)
    constraint_jacobian(table, q, places, work, J)
    return least_rates(M, J, opening, R, order, work, x, impulses)
