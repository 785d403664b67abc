"""The poses of the links and their partial derivatives, as products of 4x4 matrices: Fu 1987, section 3.2.2."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from screwdyn.core.types import Array
from screwdyn.papers.formulations.rows import Row
from screwdyn.screws.poses import skew_of

__all__ = ["PoseDerivatives", "Q"]


def Q(row: Row) -> Array:
    """Q_i, (4, 4): ∂^{i−1}A_i/∂q_i = Q_i ^{i−1}A_i (Fu Eq. 3.2-9).

    In frames of Denavit and Hartenberg it is that of Eq. 3.2-8a or b; for other axes it is the joint's screw.
    """
    turn = row.sigma * skew_of(row.z)
    return np.vstack([np.column_stack([turn, row.h * row.z - turn @ row.p]), np.zeros(4)])


class PoseDerivatives:
    """⁰A_i, U_ij = ∂⁰A_i/∂q_j and U_ijk = ∂²⁰A_i/∂q_j∂q_k at a configuration q, (4, 4).

    The frame i − 1 is that of the link that carries link i, and j ≤ i means that row j is on the path of row i.
    """

    def __init__(self, rows: Sequence[Row], q: Array) -> None:
        self._rows, self._Q = rows, [Q(row) for row in rows]
        # ^{j−1}A_i for all j on the path of i.
        self._A: dict[tuple[int, int], Array] = {}
        for i, (row, x) in enumerate(zip(rows, q, strict=True)):
            A = row.pose(x)
            for j in row.path:
                self._A[j, i] = A if j == i else self._A[j, row.parent] @ A

    def A(self, i: int) -> Array:
        """⁰A_i (Eq. 3.2-4)."""
        return self._A[self._rows[i].path[0], i]

    def U(self, i: int, j: int) -> Array:
        """U_ij = ⁰A_{j−1} Q_j ^{j−1}A_i for j ≤ i (Eq. 3.2-11)."""
        return self._from_base(j, self._Q[j] @ self._A[j, i])

    def U2(self, i: int, j: int, k: int) -> Array:
        """U_ijk = ⁰A_{j−1} Q_j ^{j−1}A_{k−1} Q_k ^{k−1}A_i for j ≤ k ≤ i (Eq. 3.2-13); U_ijk = U_ikj."""
        j, k = sorted((j, k))
        beyond = self._Q[k] @ self._A[k, i]
        if j != k:
            beyond = self._A[j, self._rows[k].parent] @ beyond
        return self._from_base(j, self._Q[j] @ beyond)

    def _from_base(self, j: int, beyond: Array) -> Array:
        """⁰A_{j−1} times a matrix."""
        parent = self._rows[j].parent
        return beyond if parent < 0 else self.A(parent) @ beyond
