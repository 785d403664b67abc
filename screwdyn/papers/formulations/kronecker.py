"""The Coriolis matrix by Kronecker products: Truc, Quyen, Quang 2019."""

from __future__ import annotations

import numpy as np

from screwdyn.core.types import Array, ArrayLike
from screwdyn.papers.formulations.formulation import MatrixFormulation
from screwdyn.papers.formulations.lagrange_euler import PoseDerivatives

__all__ = ["Kronecker", "derivative_of_product"]


def _vector(S: Array) -> Array:
    """The vector of a matrix that is skew-symmetric by construction (Eq. 1), for any scalars."""
    return np.array([S[2, 1], S[0, 2], S[1, 0]])


def derivative_of_product(D: Array, dD: Array, H: Array, dH: Array) -> Array:
    """∂(D H)/∂x = ∂D/∂x (H ⊗ 1_r) + D ∂H/∂x (Truc Eq. 32).

    The derivative of a matrix (p, q) by x (r,) is a matrix (p, q r): the entry d_ij becomes the row ∂d_ij/∂x (Eq. 31).
    """
    r = dD.shape[1] // D.shape[1]
    product: Array = dD @ np.kron(H, np.eye(r, dtype=int)) + D @ dH
    return product


class Kronecker(MatrixFormulation):
    """Truc's equations τ = M q̈ + C q̇ + g (Eq. 29), with C made of the matrix ∂M/∂q (Eq. 52).

    `M` is `mass_matrix`, `C` `coriolis_matrix` and `g` `gravity_vector`. C is the Christoffel matrix, as in the tree.
    Parameters as for `Formulation`.
    """

    scope = "Truc, Eqs. 15 and 16, has one chain of poses, and joint variables whose derivatives are the rates"

    def jacobians(self, q: ArrayLike) -> list[tuple[Array, Array, Array, Array]]:
        """J_Ti⁰ = ∂p_Ci/∂q (Eq. 24), J_Ri = ∂ω_i/∂q̇ (Eq. 25), and their derivatives by q, of all links.

        (3, n), (3, n), (3, n n) and (3, n n). S(ω_i) = (R_i⁰)ᵀ Ṙ_i⁰ (Eq. 10), so that column j of J_Ri is the vector of
        (R_i⁰)ᵀ ∂R_i⁰/∂q_j.
        """
        q = self._vector(q, "q")
        at, n = PoseDerivatives(self.rows, q), len(q)
        found = []
        for i, row in enumerate(self.rows):
            r_C, R = np.array([*row.com, 1.0]), at.A(i)[:3, :3]
            J_T, J_R = np.full((2, 3, n), 0.0, dtype=q.dtype)
            dJ_T, dJ_R = np.full((2, 3, n, n), 0.0, dtype=q.dtype)
            for j in row.path:
                U_j = at.U(i, j)
                J_T[:, j] = (U_j @ r_C)[:3]
                J_R[:, j] = _vector(R.T @ U_j[:3, :3])
                for k in row.path:
                    U_jk = at.U2(i, j, k)
                    dJ_T[:, j, k] = (U_jk @ r_C)[:3]
                    dJ_R[:, j, k] = _vector(at.U(i, k)[:3, :3].T @ U_j[:3, :3] + R.T @ U_jk[:3, :3])
            found.append((J_T, J_R, dJ_T.reshape(3, n * n), dJ_R.reshape(3, n * n)))
        return found

    def M(self, q: ArrayLike) -> Array:
        """Σ_i m_i (J_Ti⁰)ᵀ J_Ti⁰ + J_Riᵀ I_i J_Ri, (n, n) (Eq. 28)."""
        q = self._vector(q, "q")
        M = np.full((len(q), len(q)), 0.0)
        for row, (J_T, J_R, _, _) in zip(self.rows, self.jacobians(q), strict=True):
            M = M + row.m * (J_T.T @ J_T) + J_R.T @ row.I @ J_R
        return M

    def dM(self, q: ArrayLike) -> Array:
        """∂M/∂q, (n, n n), by the rule of products (Eqs. 31 and 32)."""
        q = self._vector(q, "q")
        n = len(q)
        dM = np.full((n, n * n), 0.0)
        for row, (J_T, J_R, dJ_T, dJ_R) in zip(self.rows, self.jacobians(q), strict=True):
            I = np.asarray(row.I)
            dM = dM + row.m * derivative_of_product(J_T.T, _transposed(dJ_T, n), J_T, dJ_T)
            dM = dM + derivative_of_product(J_R.T, _transposed(dJ_R, n), I @ J_R, I @ dJ_R)
        return dM

    def C(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """½ [∂M/∂q (1 ⊗ q̇) + ∂M/∂q (q̇ ⊗ 1) − (∂M/∂q (q̇ ⊗ 1))ᵀ], (n, n) (Eq. 52)."""
        q, qd = self._vector(q, "q"), self._vector(qd, "qd")
        dM, one, rates = self.dM(q), np.eye(len(q), dtype=int), qd[:, None]
        U, V = dM @ np.kron(one, rates), dM @ np.kron(rates, one)  # Eq. 53; U = Ṁ, Eq. 40
        C: Array = 0.5 * (U + V - V.T)
        return C

    def g(self, q: ArrayLike) -> Array:
        """(∂P/∂q)ᵀ with P = −Σ_i m_i (g⁰)ᵀ p_Ci, (n,) (Eqs. 17 and 45)."""
        q = self._vector(q, "q")
        return self._gravity_of([J_T for J_T, _, _, _ in self.jacobians(q)])

    # The names of the library
    _mass_matrix, _coriolis_matrix, _gravity_vector = M, C, g


def _transposed(dD: Array, r: int) -> Array:
    """∂(Dᵀ)/∂x, (q, p r), from ∂D/∂x, (p, q r)."""
    p = len(dD)
    return dD.reshape(p, -1, r).swapaxes(0, 1).reshape(-1, p * r)
