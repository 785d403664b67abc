"""Recursive Newton-Euler equations of motion: Fu, Gonzalez, Lee 1987, section 3.3."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from screwdyn.core.types import Array, ArrayLike
from screwdyn.papers.formulations.formulation import Formulation
from screwdyn.papers.formulations.newton_euler_steps import Step, Vectors, backward, forward

__all__ = ["NewtonEuler"]


class NewtonEuler(Formulation):
    """Newton-Euler recursions in link frames (Table 3.3) and in the base frame (Table 3.2).

    They give torques. M, C q̇ and g are found by probing: they are the torques of suitable accelerations and rates, with
    or without gravity (Problem 3.11). There is no matrix C. `steps` gives the vectors of each link; f_i and n_i are
    `f` and `n`, the damping b_i is `damping` of a joint, and −f_{n+1} and −n_{n+1} are `wrenches` on a link.

    Fu's two cases, rotational and translational, are one with sigma and h (see `Row`). In Fu's frames the axis of joint
    i passes through the origin of frame i − 1; in a tree several joints may leave one link, and p leads to their axes.

    Parameters as for `Formulation`.
    """

    scope = (
        "Fu, section 3.3, has an open chain with rotational and translational joints of one variable q_i (Eq. 3.3-58)"
    )

    def inverse_dynamics(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, wrenches: Mapping[str, ArrayLike] | None = None
    ) -> Array:
        """τ, (n,), N m or N, by the recursion in link frames, without damping.

        Parameters
        ----------
        q, qd, qdd : (n,) arrays
        wrenches : mapping, optional
            [n, f], (6,), that act on links, in the link's frame, as for the tree. Fu's f_{n+1} and n_{n+1}, which the
            hand exerts on an object, act on the hand as −f_{n+1} and −n_{n+1}.

        Raises
        ------
        ShapeError
            If an argument has a wrong shape.
        UnknownNameError
            If there is no such link.
        """
        links = self._in_link_frames(self.joint_positions(q), self._loads(wrenches))
        return self._motor_side(links, qd, qdd)

    def inverse_dynamics_in_base_frame(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, wrenches: Mapping[str, ArrayLike] | None = None
    ) -> Array:
        """τ, (n,), by the recursion in the base frame; arguments and errors as for `inverse_dynamics`."""
        links = self._in_base_frame(self.joint_positions(q), self._loads(wrenches))
        return self._motor_side(links, qd, qdd)

    def motor_torque(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, wrenches: Mapping[str, ArrayLike] | None = None
    ) -> Array:
        """τ_i with the damping b_i q̇_i of the joints, (n,) (Eq. 3.3-45); arguments and errors as above."""
        damping = np.array([row.damping for row in self.rows])
        return self.inverse_dynamics(q, qd, qdd, wrenches) + self.contracted(damping * self.joint_rates(qd))

    def steps(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, wrenches: Mapping[str, ArrayLike] | None = None
    ) -> list[Step]:
        """ω_i, ω̇_i, v̇_i, ā_i, F_i, N_i, f_i and n_i of all links, each in axes of its own frame (Table 3.3).

        Arguments and errors as for `inverse_dynamics`.
        """
        links = self._in_link_frames(self._vector(q, "q"), self._loads(wrenches))
        return self._steps(links, self._vector(qd, "qd"), self._vector(qdd, "qdd"), self.gravity)

    def steps_in_base_frame(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, wrenches: Mapping[str, ArrayLike] | None = None
    ) -> list[Step]:
        """The same in axes of the base (Table 3.2)."""
        links = self._in_base_frame(self._vector(q, "q"), self._loads(wrenches))
        return self._steps(links, self._vector(qd, "qd"), self._vector(qdd, "qdd"), self.gravity)

    def _in_base_frame(self, q: Array, wrenches: list[Array]) -> list[Vectors]:
        """The vectors of Table 3.2: all in axes of the base, so that ^iR_{i−1} = 1."""
        A = self.poses(q)
        found = []
        for i, (row, (z, p)) in enumerate(zip(self.rows, self.axes(A), strict=True)):
            R, origin = A[i][:3, :3], A[i][:3, 3]
            wrench = np.concatenate([R @ wrenches[i][:3], R @ wrenches[i][3:]])
            before = A[row.parent][:3, 3] if row.parent >= 0 else np.zeros(3)
            found.append(Vectors(np.eye(3), z, p - before, origin - p, R @ row.com, R @ row.I @ R.T, wrench))
        return found

    def _in_link_frames(self, q: Array, wrenches: list[Array]) -> list[Vectors]:
        """The vectors of Table 3.3. For a rotational joint p_i* is constant (Eq. 3.3-59)."""
        found = []
        for row, x, wrench in zip(self.rows, q, wrenches, strict=True):
            p_star = row.home[:3, :3].T @ (row.home[:3, 3] - row.p + row.z * (row.h * x))
            found.append(Vectors(row.pose(x)[:3, :3].T, row.z, row.p, p_star, row.com, row.I, wrench))
        return found

    def _steps(self, links: list[Vectors], qd: Array, qdd: Array, gravity: Array) -> list[Step]:
        return backward(self.rows, links, forward(self.rows, links, qd, qdd, gravity))

    def _motor_side(self, links: list[Vectors], qd: ArrayLike, qdd: ArrayLike) -> Array:
        """The torques at the freedoms, with the armatures of the joints."""
        rates, accelerations = self.joint_rates(qd), self.joint_rates(qdd, "qdd")
        tau = self._torques(links, rates, accelerations, self.gravity)
        return self.contracted(tau + self.armature * accelerations if self.armature.any() else tau)

    def _torques(self, links: list[Vectors], qd: Array, qdd: Array, gravity: Array) -> Array:
        """n_i · z_{i−1} or f_i · z_{i−1} (Eq. 3.3-58, without damping)."""
        tau = []
        for row, at, step in zip(self.rows, links, self._steps(links, qd, qdd, gravity), strict=True):
            z = at.R @ at.z
            tau.append(row.sigma * (step.n @ z) + row.h * (step.f @ z))
        return np.array(tau)

    # The names of the library: probing

    def _probe(self, q: Array, qd: Array, qdd: Array, gravity: Array) -> Array:
        return self._torques(self._in_link_frames(q, self._loads(None)), qd, qdd, gravity)

    def _mass_matrix(self, q: Array) -> Array:
        still, n = np.zeros(3), len(q)
        columns = [self._probe(q, np.zeros(n), unit, still) for unit in np.eye(n)]
        return np.array(columns).reshape(n, n).T

    def _velocity_product(self, q: Array, qd: Array) -> Array:
        return self._probe(q, qd, np.zeros(len(q)), np.zeros(3))

    def _gravity_vector(self, q: Array) -> Array:
        return self._probe(q, np.zeros(len(q)), np.zeros(len(q)), self.gravity)
