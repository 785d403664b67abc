"""The decoupled natural orthogonal complement: Bhangale, Saha, Agrawal 2004, section 2 and Eqs. 10 to 13."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from screwdyn.core.types import Array, ArrayLike
from screwdyn.papers.formulations.formulation import MatrixFormulation
from screwdyn.papers.formulations.rows import cross
from screwdyn.screws.poses import skew_of

__all__ = ["DeNOC"]


class Blocks(NamedTuple):
    """Vectors and matrices of all links in the base frame; twists are [ω; v] at O_i.

    Attributes
    ----------
    O, d : lists of (3,)
        O_i, a point of link i on the axis of joint i, and d_i from O_i to the centre of mass.
    p : list of (6,)
        Screws of the joints at O_i, the blocks of T_d (Eq. 11).
    M : list of (6, 6)
        Mass matrices about O_i (Eq. 2).
    """

    O: list[Array]
    d: list[Array]
    p: list[Array]
    M: list[Array]


class DeNOC(MatrixFormulation):
    """I θ̈ + C θ̇ = τ (Bhangale Eq. 9), by composite bodies.

    The generalized inertia matrix `GIM` is `mass_matrix`, and the matrix of convective inertia `MCI` is
    `coriolis_matrix`; θ is `q`. Gravity is part of the source's τ; here it is `g`, the `gravity_vector`. The MCI is not
    the Christoffel matrix: it exceeds it by
    Σ_i J_ωᵀ (½ tr(I_i) ω̂_i) J_ω − m_i J_vᵀ d̂_i ω̂_i J_ω, where [J_ω; J_v] maps θ̇ to the twist of link i at O_i. As
    ω̂_i J_ω θ̇ = 0, the products with θ̇ are equal; Ṁ − 2C is not skew-symmetric.

    Parameters as for `Formulation`.
    """

    scope = "Bhangale, section 2, has an open-loop robot with one displacement θ_i for each joint"

    def blocks(self, q: ArrayLike) -> Blocks:
        """The vectors and matrices of the links at θ = q."""
        q = self._vector(q, "q")
        A = self.poses(q)
        found = Blocks([], [], [], [])
        for row, T, x, (e, point), c in zip(self.rows, A, q, self.axes(A), self.centres(A), strict=True):
            O, R = point + e * (row.h * x), T[:3, :3]
            d = c - O
            D, m = skew_of(d), row.m
            found.O.append(O)
            found.d.append(d)
            found.p.append(np.concatenate([row.sigma * e, row.h * e]))
            found.M.append(np.block([[R @ row.I @ R.T - m * (D @ D), m * D], [-m * D, m * np.eye(3)]]))
        return found

    def twists(self, at: Blocks, thetad: ArrayLike) -> list[Array]:
        """t_i = A_{i,i−1} t_{i−1} + p_i θ̇_i, (6,): t = T_l T_d θ̇ (Eq. 7)."""
        thetad = self._vector(thetad, "thetad")
        t: list[Array] = []
        for i, row in enumerate(self.rows):
            own, k = at.p[i] * thetad[i], row.parent
            t.append(own if k < 0 else self.A(at, i, k) @ t[k] + own)
        return t

    def g(self, theta: ArrayLike) -> Array:
        """−T_dᵀ T_lᵀ w of the weights w_i = [d_i × m_i g; m_i g], (n,): gravity is part of w^E (Eq. 8)."""
        theta = self._vector(theta, "theta")
        at, n = self.blocks(theta), len(theta)
        g = np.full(n, 0.0, dtype=np.result_type(theta, self.gravity))
        for j, row in enumerate(self.rows):
            weight = row.m * self.gravity
            w = np.concatenate([cross(at.d[j], weight), weight])
            for i in row.path:
                g[i] += -(at.p[i] @ self.A(at, j, i).T @ w)
        return g

    def GIM(self, theta: ArrayLike) -> Array:
        """i_ij = p_iᵀ M̃_i A_ij p_j for j ≤ i, (n, n) (Eq. 10)."""
        theta = self._vector(theta, "theta")
        at, n = self.blocks(theta), len(theta)
        M = self.composite(at, at.M)
        GIM = np.full((n, n), 0.0, dtype=theta.dtype)
        for i, row in enumerate(self.rows):
            for j in row.path:
                GIM[i, j] = GIM[j, i] = at.p[i] @ M[i] @ self.A(at, i, j) @ at.p[j]
        return GIM

    def MCI(self, theta: ArrayLike, thetad: ArrayLike) -> Array:
        """c_ij (Eq. 10), (n, n), with H̃_ij = M̃_i Ȧ_ij + A_{i+1,i}ᵀ H̃_{i+1,i} A_ij (Eq. 12).

        p_iᵀ (A_jiᵀ M̃_j W_j + A_{j+1,i}ᵀ H̃_{j+1,j} + A_jiᵀ M̃'_j) p_j for i ≤ j,
        p_iᵀ (M̃_i A_ij W_j + H̃_ij + M̃'_i A_ij) p_j for i > j, where M̃' is the composite of W_i M_i E_i.
        """
        theta, thetad = self._vector(theta, "theta"), self._vector(thetad, "thetad")
        at, n = self.blocks(theta), len(theta)
        t = self.twists(at, thetad)
        W = [np.kron(np.eye(2, dtype=int), skew_of(x[:3])) for x in t]
        E = np.diag([1, 1, 1, 0, 0, 0])
        M, M_prime = self.composite(at, at.M), self.composite(at, [w @ m @ E for w, m in zip(W, at.M, strict=True)])
        carried = self._carried(at, t, M)
        MCI = np.full((n, n), 0.0, dtype=np.result_type(theta, thetad))
        for j, row in enumerate(self.rows):
            for i in row.path:
                A = self.A(at, j, i).T
                MCI[i, j] = at.p[i] @ A @ (M[j] @ W[j] + carried[j] + M_prime[j]) @ at.p[j]
                if i != j:
                    A = self.A(at, j, i)
                    H = M[j] @ self._A_dot(at, t, j, i) + carried[j] @ A
                    MCI[j, i] = at.p[j] @ (M[j] @ A @ W[i] + H + M_prime[j] @ A) @ at.p[i]
        return MCI

    def A(self, at: Blocks, i: int, j: int) -> Array:
        """A_ij, (6, 6), of T_l (Eq. 11): moves twists of link j from O_j to O_i."""
        zero, one = np.zeros((3, 3)), np.eye(3)
        return np.block([[one, zero], [-skew_of(at.O[i] - at.O[j]), one]])

    def _A_dot(self, at: Blocks, t: list[Array], i: int, j: int) -> Array:
        """Ȧ_ij: O_i moves with v_i."""
        zero = np.zeros((3, 3))
        return np.block([[zero, zero], [-skew_of(t[i][3:] - t[j][3:]), zero]])

    def _carried(self, at: Blocks, t: list[Array], M: list[Array]) -> list[Array]:
        """A_{j+1,j}ᵀ H̃_{j+1,j}, (6, 6), summed over all links that link j carries (Eq. 12)."""
        total = [np.zeros((6, 6)) for _ in self.rows]
        for i in reversed(range(len(total))):
            if (k := self.rows[i].parent) >= 0:
                A = self.A(at, i, k)
                total[k] = total[k] + A.T @ (M[i] @ self._A_dot(at, t, i, k) + total[i] @ A)
        return total

    def composite(self, at: Blocks, M: list[Array]) -> list[Array]:
        """M̃_i = M_i + A_{i+1,i}ᵀ M̃_{i+1} A_{i+1,i}, (6, 6), summed over all links that link i carries (Eq. 13)."""
        total = [*M]
        for i in reversed(range(len(total))):
            if (k := self.rows[i].parent) >= 0:
                A = self.A(at, i, k)
                total[k] = total[k] + A.T @ total[i] @ A
        return total

    # The names of the library
    _mass_matrix, _coriolis_matrix, _gravity_vector = GIM, MCI, g
