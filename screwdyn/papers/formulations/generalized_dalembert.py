"""Generalized d'Alembert equations of motion: Fu, Gonzalez, Lee 1987, section 3.4."""

from __future__ import annotations

import numpy as np

from screwdyn.core.types import Array, ArrayLike
from screwdyn.papers.formulations.formulation import Formulation
from screwdyn.papers.formulations.rows import cross

__all__ = ["GeneralizedDAlembert"]


class GeneralizedDAlembert(Formulation):
    """Σ_j D_ij θ̈_j + h_i^tran + h_i^rot + c_i = τ_i (Fu Eq. 3.4-24), for revolute joints.

    D is `mass_matrix`, h^tran + h^rot is `velocity_product` and `c` is `gravity_vector`; θ is `q`. The source has no
    matrix C. `formulations.dominance` compares the parts along a trajectory.
    Parameters as for `Formulation`; the source covers revolute joints only.
    """

    kinds = ("revolute",)
    scope = "Fu, section 3.4, has arms with rotary joints only"

    def D_rot(self, q: ArrayLike) -> Array:
        """Σ_s (ˢR_0 z_{i−1})ᵀ I_s (ˢR_0 z_{j−1}), the sum over all links beyond joints i and j, (n, n) (Eq. 3.4-25)."""
        q = self._vector(q, "q")
        A = self.poses(q)
        z = [z for z, _ in self.axes(A)]
        D = np.full((len(q), len(q)), 0.0, dtype=q.dtype)
        for s, row in enumerate(self.rows):
            R = A[s][:3, :3].T  # ˢR_0
            for i in row.path:
                for j in row.path:
                    D[i, j] += (R @ z[i]) @ row.I @ (R @ z[j])
        return D

    def D_tran(self, q: ArrayLike) -> Array:
        """Σ_s m_s [z_{j−1} × (r̄_s − p_{j−1})] · [z_{i−1} × (r̄_s − p_{i−1})], (n, n) (Eq. 3.4-25)."""
        q = self._vector(q, "q")
        A = self.poses(q)
        axes, r = self.axes(A), self.centres(A)
        D = np.full((len(q), len(q)), 0.0, dtype=q.dtype)
        for s, row in enumerate(self.rows):
            arms = {i: cross(axes[i][0], r[s] - axes[i][1]) for i in row.path}
            for i in row.path:
                for j in row.path:
                    D[i, j] += row.m * (arms[j] @ arms[i])
        return D

    def h_tran(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """Σ_s m_s v̇_s · [z_{i−1} × (r̄_s − p_{i−1})] with v̇_s at θ̈ = 0, (n,) (Eqs. 3.4-11 and 3.4-26)."""
        q, qd = self._vector(q, "q"), self._vector(qd, "qd")
        A = self.poses(q)
        axes, r = self.axes(A), self.centres(A)
        h = np.full(len(q), 0.0, dtype=np.result_type(q, qd))
        for s, row in enumerate(self.rows):
            # p_k* from one axis to the next on the path, and c̄_s from the last axis to the centre of mass.
            ends = [*(axes[k][1] for k in row.path[1:]), r[s]]
            omega, spin, vd = np.zeros(3), np.zeros(3), np.zeros(3)
            for k, end in zip(row.path, ends, strict=True):
                z, p = axes[k]
                spin = spin + cross(omega, z * qd[k])  # Σ_p (Σ_{q<p} θ̇_q z_{q−1}) × θ̇_p z_{p−1}
                omega = omega + z * qd[k]
                vd = vd + cross(omega, cross(omega, end - p)) + cross(spin, end - p)
            for i in row.path:
                z, p = axes[i]
                h[i] += row.m * (vd @ cross(z, r[s] - p))
        return h

    def h_rot(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """Coriolis and centrifugal torques of the rotation of the links, (n,) (Eq. 3.4-27).

        Σ_s (ˢR_0 z_{i−1})ᵀ I_s Σ_j [θ̇_j ˢR_0 z_{j−1} × Σ_{k>j} θ̇_k ˢR_0 z_{k−1}]
        + [ˢR_0 z_{i−1} × Σ_p θ̇_p ˢR_0 z_{p−1}]ᵀ I_s Σ_q θ̇_q ˢR_0 z_{q−1}.
        """
        q, qd = self._vector(q, "q"), self._vector(qd, "qd")
        A = self.poses(q)
        axes = self.axes(A)
        h = np.full(len(q), 0.0, dtype=np.result_type(q, qd))
        for s, row in enumerate(self.rows):
            z = {j: A[s][:3, :3].T @ axes[j][0] for j in row.path}
            beyond, coriolis = np.zeros(3), np.zeros(3)
            for j in reversed(row.path):
                coriolis = coriolis + cross(z[j] * qd[j], beyond)
                beyond = beyond + z[j] * qd[j]
            omega = beyond
            for i in row.path:
                h[i] += z[i] @ row.I @ coriolis + cross(z[i], omega) @ row.I @ omega
        return h

    def c(self, q: ArrayLike) -> Array:
        """c_i = −g · [z_{i−1} × Σ_j m_j (r̄_j − p_{i−1})], the sum over all links beyond joint i, (n,) (Eq. 3.4-28).

        Eqs. 3.4-21 and 3.4-22 are printed with the opposite sign; Eqs. 3.4-20, 3.4-23 and 3.4-28 agree.
        """
        q = self._vector(q, "q")
        A = self.poses(q)
        axes, r = self.axes(A), self.centres(A)
        c = np.full(len(q), 0.0, dtype=np.result_type(q, self.gravity))
        for j, row in enumerate(self.rows):
            for i in row.path:
                z, p = axes[i]
                c[i] += -self.gravity @ cross(z, row.m * (r[j] - p))
        return c

    # The names of the library

    def _mass_matrix(self, q: Array) -> Array:
        return self.D_rot(q) + self.D_tran(q)

    def _velocity_product(self, q: Array, qd: Array) -> Array:
        return self.h_tran(q, qd) + self.h_rot(q, qd)

    _gravity_vector = c
