"""Operational-space inertia of a link."""

from screwdyn.physics.recursions.joint_space import mass_matrix
from screwdyn.physics.recursions.links import jacobian
from screwdyn.physics.spatial import (
    exceeds,
)
from screwdyn.physics.table import (
    CONFINED,
    Table,
    Workspace,
)

# A pivot below this fraction of its diagonal entry is rounding: of J M⁻¹ Jᵀ, and of M.
_CONFINED, _MASSLESS = 1e-12, 1e-15


def factorise(parents: Table, M: Table, pivots: Table) -> int:
    """M = Lᵀ D L in place, L below the diagonal; its entry is zero where neither of two joints carries the other.

    The status is 0, or 1 + the first row whose pivot is rounding. ``pivots`` is scratch space, (n, 1) or wider.
    R. Featherstone, *Rigid Body Dynamics Algorithms*, 2008, §6.5.
    """
    n = M.shape[0]
    for k in range(n):
        pivots[k, 0] = M[k, k]
    for k in range(n - 1, -1, -1):
        if not exceeds(M[k, k], _MASSLESS * pivots[k, 0]):
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


def operational_inertia(
    table: Table, q: Table, places: Table, M: Table, J: Table, work: Workspace, inverse: Table
) -> int:
    """Λ = (J M⁻¹ Jᵀ)⁻¹. M and J are scratch space."""
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
