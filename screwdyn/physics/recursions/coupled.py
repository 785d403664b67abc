"""Quantities of trees with couplings that need the inverse of M = Wᵀ M_rows W (docs/mathematics.md §8).

No entry of this M vanishes because of the structure of the tree, so it is factorised as that of joints in a row;
``work.parents`` are theirs.
"""

from screwdyn.physics.recursions.operational import factorise, inertia_felt
from screwdyn.physics.table import Table, Workspace


def accelerations(M: Table, bias: Table, tau: Table, work: Workspace, qdd: Table) -> int:
    """M⁻¹ (τ − bias). The status is 0, or 1 + the first coordinate that feels no inertia."""
    n = M.shape[0]
    status = factorise(work.parents, M, work.pivots)
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
    return inertia_felt(M, J, work, inverse)
