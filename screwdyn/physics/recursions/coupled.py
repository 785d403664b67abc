"""Quantities of trees with couplings that need the inverse of M = Wᵀ M_rows W (docs/mathematics.md §8).

No entry of this M vanishes because of the structure of the tree, so it is factorised as that of joints in a row.
"""

from screwdyn.physics.recursions.operational import factorise, inertia_felt
from screwdyn.physics.table import Table, Workspace


def in_a_row(n: int, work: Workspace) -> Table:
    """The parents of n joints in a row."""
    for k in range(n):
        work.pivots[k, 1] = k - 1.0
    return work.pivots[:, 1]


def accelerations(M: Table, bias: Table, tau: Table, work: Workspace, qdd: Table) -> int:
    """M⁻¹ (τ − bias). The status is 0, or 1 + the first coordinate that feels no inertia."""
    n = M.shape[0]
    status = factorise(in_a_row(n, work), M, work.pivots[:, 0])
    if status != 0:
        return status
    for k in range(n - 1, -1, -1):
        x = tau[k] - bias[k]
        for j in range(k + 1, n):
            x = x - M[j, k] * qdd[j]
        qdd[k] = x
    for k in range(n):
        x = qdd[k] / M[k, k]
        for j in range(k):
            x = x - M[k, j] * qdd[j]
        qdd[k] = x
    return 0


def operational_inertia(M: Table, J: Table, work: Workspace, inverse: Table) -> int:
    """Λ = (J M⁻¹ Jᵀ)⁻¹."""
    return inertia_felt(in_a_row(M.shape[0], work), M, J, work, inverse)
