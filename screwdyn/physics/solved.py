"""Forward dynamics of one tree written out in full: M q̈ = τ − C q̇ − g, solved along the tree.

Where every zero is known beforehand, this takes about half the operations of articulated bodies on arms, and fewer on
trees of tens of freedoms. M is factored as Lᵀ D L, with L zero wherever neither of two joints carries the other, as
in R. Featherstone, *Rigid Body Dynamics Algorithms*, 2008, §6.5.
"""

from collections.abc import Sequence

import numpy as np

from . import sweeps
from .regrouped import regrouped
from .rows import PARENT, SLIDE, TURN, WORK, load3, load6
from .steps import carries_inertia, rigid_blocks
from .tape import Scalar, Tape
from .unrolled import Scalars, inputs, record

__all__ = ["forward_dynamics"]


def forward_dynamics(tape: Tape, table: Scalars, armature: Sequence[Scalar] = ()) -> Scalars | None:
    """Accelerations, (n,), of ``q``, ``qd`` and ``tau`` on the tape; None if some joint never carries anything.

    ``armature`` is inertia that each joint has besides, felt by no other joint.
    The tape notes for every joint that what it carries is more than rounding. That is asked more strictly than in
    ``sweeps.forward_dynamics``, with the rigid instead of the articulated inertia beyond the joint.
    """
    n = len(table) - 1
    parents = [int(k) for k in table[:-1, PARENT]]
    x = inputs(tape, "tau", range(n)) - record(tape, regrouped(table), "bias_force")
    M, work = np.full((n, n), 0.0, dtype=object), np.full((n, WORK), 0.0, dtype=object)
    sweeps.mass_matrix(table, inputs(tape, "q", range(n)), 0, work, M)
    for k, own in enumerate(armature):
        M[k, k] = M[k, k] + own
    for k in range(n - 1, -1, -1):
        A, _, L = rigid_blocks(work[k, 12], load3(work, k, 13), load6(work, k, 16))
        if M[k, k] == 0 or not carries_inertia(A, L, M[k, k], table[k, TURN], table[k, SLIDE]):
            return None
        above = _above(parents, k)
        factors = [M[k, i] / M[k, k] for i in above]
        for i, a in zip(above, factors, strict=True):
            for j in _above(parents, i):
                M[i, j] = M[i, j] - a * M[k, j]
            M[i, i] = M[i, i] - a * M[k, i]
        M[k, above] = factors
    for k in range(n - 1, -1, -1):
        for i in _above(parents, k):
            x[i] = x[i] - M[k, i] * x[k]
    x = x / M.diagonal()
    for k in range(n):
        for i in _above(parents, k):
            x[k] = x[k] - M[k, i] * x[i]
    return x


def _above(parents: Sequence[int], k: int) -> list[int]:
    """The rows that carry row k, nearest first."""
    rows = []
    while (k := parents[k]) >= 0:
        rows.append(k)
    return rows
