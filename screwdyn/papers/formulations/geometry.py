"""Positions of the joints, poses, axes, centres of mass and geometric Jacobians of the rows of a tree at a state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.errors import ShapeError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.mechanism.couplings import leaders
from screwdyn.mechanism.structure import Structure
from screwdyn.papers.formulations.rows import Row, cross
from screwdyn.papers.formulations.states import Stated, numbers

__all__ = ["Geometry", "couplings"]


class Geometry(Stated):
    """What all formulations take from the rows of a tree at a configuration.

    Attributes
    ----------
    coordinates, joints : tuples of str
        Names of the n freedoms, and of the joints of the rows.
    rows : tuple of Row
    W, offset : (rows, n) and (rows,) arrays
        W q + offset are the positions of all joints; each row of W has one entry.
    """

    coordinates: tuple[str, ...]
    joints: tuple[str, ...]
    rows: tuple[Row, ...]
    W: Array
    offset: Array
    _dtype: np.dtype[Any]

    def joint_positions(self, q: ArrayLike) -> Array:
        """W q + offset, (rows,): the positions that methods with the names of the source take."""
        q = self._vector(q, "q", self.coordinates)
        return q if self._independent else self.W @ q + self.offset

    def joint_rates(self, qd: ArrayLike, what: str = "qd") -> Array:
        """W q̇, (rows,), and likewise accelerations, which an error then names."""
        qd = self._vector(qd, what, self.coordinates)
        return qd if self._independent else self.W @ qd

    def contracted(self, a: Array) -> Array:
        """Wᵀ a or Wᵀ a W of a vector or a matrix over all joints."""
        if self._independent:
            return a
        left: Array = self.W.T @ a
        return left @ self.W if a.ndim > 1 else left

    @property
    def _independent(self) -> bool:
        """Whether no joint follows another one: W = 1."""
        return self.joints == self.coordinates

    def _vector(self, x: ArrayLike, what: str, names: tuple[str, ...] | None = None) -> Array:
        """A state with an entry for each name, by default for each row.

        It is of objects if it or the tree has expressions or traced scalars. All public methods pass their states
        through it.
        """
        found, names = numbers(x, what), self.joints if names is None else names
        if found.shape != (len(names),):
            expected = f"must have an entry for each of {', '.join(names)}"
            raise ShapeError(f"{what} of one state {expected}; got shape {found.shape}")
        return found if found.dtype == object else found.astype(self._dtype)

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


def couplings(tree: Structure, joints: Sequence[str]) -> tuple[Array, Array]:
    """W, (rows, n), and the offset, (rows,), of the positions of all joints, W q + offset."""
    ways = leaders({edge["name"]: edge["joint"] for _, _, edge in tree.graph.edges(data=True)})
    led = [ways.get(name, (name, 1.0, 0.0)) for name in joints]
    W = [[ratio if name == leader else 0.0 for name in tree.coordinates] for leader, ratio, _ in led]
    offset = [offset for _, _, offset in led]
    return expressions.array(W).reshape(len(joints), len(tree.coordinates)), expressions.array(offset)
