"""Dry friction: which freedoms stick, which slide, and when that changes (docs/mathematics.md §8)."""

from __future__ import annotations

import numpy as np

from screwdyn.core.types import Array
from screwdyn.physics.robot import Robot

__all__ = ["EDGE", "DryFriction"]

# A freedom at rest sticks up to friction (1 + EDGE / 2), and one that sticks begins to slide at friction (1 + EDGE):
# a rounding error cannot make it alternate between the two.
EDGE = 1e-9
# Rate in rad/s or m/s that counts as rest where a change between sticking and sliding is decided.
REST = 1e-12


class DryFriction:
    """Sticking and sliding freedoms of one tree.

    While none of them changes, the motion is smooth: freedoms that slide have a constant friction force, and those that
    stick have q̈ = 0.

    Parameters
    ----------
    tree : KinematicTree
    friction : (nv,) array
        Largest friction force of each freedom, N m or N.

    Attributes
    ----------
    force : (nv,) array
        Friction −F sgn q̇ of the freedoms that slide; zero for all others.
    stuck, sliding, watched : arrays of int
        Rows of the freedoms with friction, separately and in this order.
    """

    def __init__(self, tree: Robot, friction: Array) -> None:
        self.tree, self.friction = tree, friction
        self.rows = np.flatnonzero(friction)
        self._note(np.zeros(len(friction)))

    def settle(self, q: Array, qd: Array, force: Array) -> None:
        """Decide which freedoms stick from now on, and in which direction the others slide.

        Of the friction forces λ of the freedoms at rest, |λ_i| <= F_i, those act that minimise ½ λᵀ A λ + λᵀ a, with a
        the accelerations without λ and A the block of M⁻¹. A freedom slides if its λ_i is at a bound.

        Parameters
        ----------
        q : (nq,) array
        qd : (nv,) array
        force : (nv,) array
            All joint forces but dry friction, N m or N.

        Raises
        ------
        SingularAttachmentError
            If a joint feels no inertia; otherwise M is positive definite.
        """
        moving = (np.abs(qd) > REST) & (self.friction > 0)
        self._note(np.where(moving, np.sign(qd), 0.0))
        if self.stuck.size:
            a = self.tree.forward_dynamics(q, qd, force + self.force)[self.stuck]
            A = np.linalg.inv(self.tree.mass_matrix(q))[np.ix_(self.stuck, self.stuck)]
            direction = self.direction.copy()
            direction[self.stuck] = _sliding(A, a, self.friction[self.stuck] * (1 + EDGE / 2))
            self._note(direction)

    def _note(self, direction: Array) -> None:
        self.direction = direction
        self.force = -self.friction * direction
        slides = direction[self.rows] != 0
        self.sliding, self.stuck = self.rows[slides], self.rows[~slides]
        self.watched = np.concatenate([self.stuck, self.sliding])
        self.free = np.setdiff1d(np.arange(len(direction)), self.stuck)

    def accelerations(self, q: Array, qd: Array, force: Array) -> tuple[Array, Array]:
        """q̈, (nv,), and the friction λ of the freedoms that stick, (stuck,).

        M_ff q̈_f = (force − C q̇ − g)_f for the freedoms f that do not stick; ``force`` includes the friction of those
        that slide.
        """
        M, rest = self.tree.mass_matrix(q), force - self.tree.bias_force(q, qd)
        qdd = np.zeros(len(qd))
        qdd[self.free] = np.linalg.solve(M[np.ix_(self.free, self.free)], rest[self.free])
        return qdd, (M @ qdd - rest)[self.stuck]

    def levels(self, q: Array, qd: Array, force: Array) -> Array:
        """A number for each row of ``watched`` that rises through zero when the freedom begins or ceases to slide."""
        held = self.accelerations(q, qd, force)[1] if self.stuck.size else np.zeros(0)
        begins = np.abs(held) / self.friction[self.stuck] - (1 + EDGE)
        return np.concatenate([begins, -self.direction[self.sliding] * qd[self.sliding]])


def _sliding(A: Array, a: Array, bounds: Array) -> Array:
    """−1 and 1 where the λ that minimises ½ λᵀ A λ + λᵀ a is at its upper and lower bound, else 0."""
    from scipy.optimize import lsq_linear

    if (np.abs(np.linalg.solve(A, a)) <= bounds).all():  # everything sticks
        return np.zeros(len(a))
    root = np.linalg.cholesky(A).T
    found = lsq_linear(root, -np.linalg.solve(root.T, a), (-bounds, bounds), method="bvls", tol=1e-14)
    return np.asarray(-found.active_mask, dtype=float)
