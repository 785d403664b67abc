"""Poses, axes, centres of mass and geometric Jacobians of the rows of a tree, in the base frame."""

from __future__ import annotations

import numpy as np

from screwdyn.core.types import Array
from screwdyn.formulations.rows import Row, cross

__all__ = ["Geometry"]


class Geometry:
    """What all formulations take from the rows of a tree at a configuration q.

    Attributes
    ----------
    rows : tuple of Row
    """

    rows: tuple[Row, ...]

    def poses(self, q: Array) -> list[Array]:
        """⁰A_i, (4, 4), of all rows: the product of ^{k−1}A_k along the path (Fu Eq. 3.2-4)."""
        found: list[Array] = []
        for row, x in zip(self.rows, q, strict=True):
            A = row.pose(x)
            found.append(A if row.parent < 0 else found[row.parent] @ A)
        return found

    def axes(self, poses: list[Array]) -> list[tuple[Array, Array]]:
        """z_{i−1} and p_{i−1} of all rows: direction and point of the axis of joint i in the base frame, (3,)."""
        before = [np.eye(4) if row.parent < 0 else poses[row.parent] for row in self.rows]
        return [(A[:3, :3] @ row.z, A[:3, :3] @ row.p + A[:3, 3]) for row, A in zip(self.rows, before, strict=True)]

    def centres(self, poses: list[Array]) -> list[Array]:
        """Centres of mass of all rows in the base frame, (3,)."""
        return [A[:3, :3] @ row.com + A[:3, 3] for row, A in zip(self.rows, poses, strict=True)]

    def jacobian(self, i: int, point: Array, axes: list[tuple[Array, Array]]) -> Array:
        """Twist [ω; v] of a point of link i for unit rates of the joints on its path, (6, k).

        The column of joint j is [z_{j−1}; z_{j−1} × (point − p_{j−1})] if it is revolute, [0; z_{j−1}] if prismatic.
        """
        columns = []
        for j in self.rows[i].path:
            (z, p), s, h = axes[j], self.rows[j].sigma, self.rows[j].h
            columns.append(np.concatenate([s * z, s * cross(z, point - p) + h * z]))
        return np.array(columns).T
