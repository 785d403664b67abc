"""Lagrange-Euler equations of motion with 4x4 matrices: Fu, Gonzalez, Lee 1987, section 3.2."""

from __future__ import annotations

import numpy as np

from screwdyn.core.types import Array, ArrayLike
from screwdyn.papers.formulations.formulation import MatrixFormulation
from screwdyn.papers.formulations.pose_derivatives import PoseDerivatives
from screwdyn.papers.formulations.rows import Row

__all__ = ["LagrangeEuler", "pseudo_inertia"]


def pseudo_inertia(row: Row) -> Array:
    """J_i = ∫ r rᵀ dm, (4, 4), about the origin of frame i, from the tensor of inertia (Fu Eqs. 3.2-17 and 3.2-18).

    Fu's I_xy is +∫ x y dm off the diagonal of Eq. 3.2-18; here it is minus the entry of the tensor.
    """
    m, r = row.m, row.com
    I = row.I + m * (r @ r * np.eye(3) - np.outer(r, r))
    J = 0.5 * np.trace(I) * np.eye(3) - I
    return np.vstack([np.column_stack([J, m * r]), [*(m * r), m]])


class LagrangeEuler(MatrixFormulation):
    """Lagrange-Euler equations τ = D(q) q̈ + h(q, q̇) + c(q), Fu Eq. 3.2-26.

    `D` is `mass_matrix`, h `velocity_product` and `c` `gravity_vector`. The h_ikm are the Christoffel symbols of D, so
    that Σ_m h_ikm q̇_m is the same `coriolis_matrix` as that of the library. Parameters as for `Formulation`.

    Examples
    --------
    >>> import screwdyn as sd
    >>> arm = sd.robots.two_link()
    >>> print(sd.formulations.lagrange_euler(arm).mass_matrix([0, 0]).round(3))
    [[2.667 0.833]
     [0.833 0.333]]
    """

    def D(self, q: ArrayLike) -> Array:
        """D_ik = Σ_j Tr(U_jk J_j U_jiᵀ), the sum over all links beyond joints i and k, (n, n) (Eq. 3.2-31)."""
        q = self._vector(q, "q")
        at, n = PoseDerivatives(self.rows, q), len(q)
        D = np.full((n, n), 0.0, dtype=q.dtype)
        for j, row in enumerate(self.rows):
            J, U = pseudo_inertia(row), {i: at.U(j, i) for i in row.path}
            for i in row.path:
                for k in row.path:
                    D[i, k] += np.trace(U[k] @ J @ U[i].T)
        return D

    def h(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """h_i = Σ_k Σ_m h_ikm q̇_k q̇_m, (n,) (Eq. 3.2-32)."""
        q, qd = self._vector(q, "q"), self._vector(qd, "qd")
        h: Array = self.h_ikm(q) @ qd @ qd
        return h

    def h_ikm(self, q: ArrayLike) -> Array:
        """h_ikm = Σ_j Tr(U_jkm J_j U_jiᵀ), the sum over all links beyond joints i, k and m, (n, n, n) (Eq. 3.2-33)."""
        q = self._vector(q, "q")
        at, n = PoseDerivatives(self.rows, q), len(q)
        h = np.full((n, n, n), 0.0, dtype=q.dtype)
        for j, row in enumerate(self.rows):
            J, U = pseudo_inertia(row), {i: at.U(j, i) for i in row.path}
            for k in row.path:
                for m in row.path:
                    U_jkm = at.U2(j, k, m)
                    for i in row.path:
                        h[i, k, m] += np.trace(U_jkm @ J @ U[i].T)
        return h

    def c(self, q: ArrayLike) -> Array:
        """c_i = Σ_j −m_j g U_ji ʲr̄_j, (n,), with the gravity row vector g = (g_x, g_y, g_z, 0) (Eq. 3.2-34).

        The equation is printed with the transpose of U_ji; Eq. 3.2-22 gives it without.
        """
        q = self._vector(q, "q")
        at, g = PoseDerivatives(self.rows, q), np.array([*self.gravity, 0.0])
        c = np.full(len(q), 0.0, dtype=np.result_type(q, g))
        for j, row in enumerate(self.rows):
            for i in row.path:
                c[i] += -row.m * (g @ at.U(j, i) @ np.array([*row.com, 1.0]))
        return c

    # The names of the library

    def _coriolis_matrix(self, q: Array, qd: Array) -> Array:
        C: Array = self.h_ikm(q) @ qd
        return C

    _mass_matrix, _velocity_product, _gravity_vector = D, h, c
