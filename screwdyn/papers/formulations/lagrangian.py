"""Lagrange's equations by geometric Jacobians and Christoffel symbols: a lecture on robot dynamics, Eqs. 27 to 50."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from screwdyn.core.errors import ShapeError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.papers.formulations.differentiation import christoffel, partial
from screwdyn.papers.formulations.formulation import MatrixFormulation
from screwdyn.papers.formulations.states import symbolic

__all__ = ["Lagrangian"]


class Lagrangian(MatrixFormulation):
    """The lecture's B(q) q̈ + C(q, q̇) q̇ + g(q) = ξ (Eq. 44), with friction and contact in ξ (Eq. 50).

    `B` is `mass_matrix`, `C` `coriolis_matrix` and `g` `gravity_vector`. Parameters as for `Formulation`.
    """

    scope = "the lecture, Eq. 35, has an open chain with prismatic and revolute joints"

    def jacobians(self, q: ArrayLike) -> list[tuple[Array, Array]]:
        """J_P and J_O of all links, (3, n): velocity of the centre of mass and angular velocity (Eq. 35).

        Column j is z_{j−1} × (p_ℓi − p_{j−1}) and z_{j−1} for a revolute joint, z_{j−1} and 0 for a prismatic one.
        """
        A = self.poses(q)
        axes = self.axes(A)
        return [self._jacobian(i, p, axes) for i, p in enumerate(self.centres(A))]

    def B(self, q: ArrayLike) -> Array:
        """Σ_i m_i J_Pᵀ J_P + J_Oᵀ R_i I_i R_iᵀ J_O, (n, n) (Eq. 37)."""
        q = self._vector(q, "q")
        B = np.full((len(q), len(q)), 0.0)
        for row, A, (J_P, J_O) in zip(self.rows, self.poses(q), self.jacobians(q), strict=True):
            R = A[:3, :3]
            B = B + row.m * (J_P.T @ J_P) + J_O.T @ (R @ row.I @ R.T) @ J_O
        return B

    def h_ijk(self, q: ArrayLike) -> Array:
        """∂b_ij/∂q_k − ½ ∂b_jk/∂q_i, (n, n, n) (Eq. 41).

        Σ_jk h_ijk q̇_k q̇_j is C q̇, but the h_ijk are not symmetric in j and k, and Σ_k h_ijk q̇_k is not C.
        """
        q = self._vector(q, "q")
        dB = partial(self.B, q)
        h: Array = dB - 0.5 * dB.transpose(2, 0, 1)
        return h

    def g(self, q: ArrayLike) -> Array:
        """g_i = −Σ_j m_j gᵀ J_Pi of link j, (n,) (Eq. 42)."""
        return self._gravity_of([J_P for J_P, _ in self.jacobians(q)])

    def C(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """C_ij = Σ_k c_ijk q̇_k, (n, n) (Eq. 45)."""
        q, qd = self._vector(q, "q"), self._vector(qd, "qd")
        C: Array = self.c_ijk(q) @ qd
        return C

    def c_ijk(self, q: ArrayLike) -> Array:
        """½ (∂b_ij/∂q_k + ∂b_ik/∂q_j − ∂b_jk/∂q_i), (n, n, n) (Eq. 46)."""
        q = self._vector(q, "q")
        return christoffel(partial(self.B, q))

    def motor_torque(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, wrenches: Mapping[str, ArrayLike] | None = None
    ) -> Array:
        """τ = B q̈ + C q̇ + g + F_v q̇ + F_s sgn q̇ + Jᵀ h_e, (n,), N m or N (Eq. 50).

        F_v and F_s are the damping and friction of the joints. Springs are not in the source.

        Parameters
        ----------
        q, qd, qdd : (n,) arrays
            The rates must be numbers.
        wrenches : mapping, optional
            [n, f], (6,), that act on links, in the link's frame, as for the tree: h_e, which the arm exerts on its
            environment, is their negative.

        Raises
        ------
        ShapeError
            If an argument has a wrong shape, or qd has expressions.
        UnknownNameError
            If there is no such link.
        """
        x, rates = self.joint_positions(q), self.joint_rates(qd)
        unknown = [name for name, rate in zip(self.joints, rates, strict=True) if symbolic(rate)]
        if unknown:
            raise ShapeError(f"qd must be numbers, because friction has their signs; not so {', '.join(unknown)}")
        tau = np.array([row.damping * v + row.friction * np.sign(v) for row, v in zip(self.rows, rates, strict=True)])
        A = self.poses(x)
        axes = self.axes(A)
        for i, wrench in enumerate(self._loads(wrenches)):
            J_P, J_O = self._jacobian(i, A[i][:3, 3], axes)
            h_e = -np.kron(np.eye(2), A[i][:3, :3]) @ wrench
            tau = tau + J_O.T @ h_e[:3] + J_P.T @ h_e[3:]
        total: Array = self.inverse_dynamics(q, qd, qdd) + self.contracted(tau)
        return total

    def _jacobian(self, i: int, p: Array, axes: list[tuple[Array, Array]]) -> tuple[Array, Array]:
        """J_P and J_O, (3, n), of the point p of link i; the columns of joints that do not carry it are zero."""
        J_on_path = self.jacobian(i, p, axes)
        J = np.full((6, len(axes)), 0.0, dtype=J_on_path.dtype)
        J[:, self.rows[i].path] = J_on_path
        return J[3:], J[:3]

    # The names of the library
    _mass_matrix, _coriolis_matrix, _gravity_vector = B, C, g
