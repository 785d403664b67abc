"""Poses, axes, centres of mass and geometric Jacobians of the rows of a tree at a state, and the check of a state."""

from __future__ import annotations

from typing import Any

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.errors import ShapeError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.papers.formulations.rows import Row, cross

__all__ = ["Geometry"]


class Geometry:
    """What all formulations take from the rows of a tree at a configuration q.

    Attributes
    ----------
    coordinates : tuple of str
    rows : tuple of Row
    """

    coordinates: tuple[str, ...]
    rows: tuple[Row, ...]
    _dtype: np.dtype[Any]

    def _vector(self, x: ArrayLike, what: str) -> Array:
        """The argument as an array (n,) of floats; of objects if it or the tree has expressions or traced scalars.

        All public methods pass their states through it.
        """
        try:
            given = np.asarray(x)
            numbers = [entry for entry in given.flat if not _is_symbolic(entry)]
            values = expressions.real(numbers)
        except (TypeError, ValueError):
            raise ShapeError(f"{what} must be numbers; got {x!r}") from None
        if given.shape != (len(self.rows),):
            names = ", ".join(self.coordinates)
            raise ShapeError(f"{what} of one state must have an entry for each of {names}; got shape {given.shape}")
        if not np.isfinite(values).all():
            raise ShapeError(f"{what} has entries that are not finite: {given.tolist()}")
        return given if len(numbers) < given.size else values.astype(self._dtype)

    def poses(self, q: ArrayLike) -> list[Array]:
        """⁰A_i, (4, 4), of all rows: the product of ^{k−1}A_k along the path (Fu Eq. 3.2-4)."""
        q = self._vector(q, "q")
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


def _is_symbolic(x: Any) -> bool:
    """Whether a number is an expression, or a scalar with sines and cosines of its own, such as a traced one."""
    return expressions.is_expression(x) or hasattr(x, "cos")
