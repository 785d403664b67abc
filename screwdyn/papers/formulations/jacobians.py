"""Equations of motion by Jacobians of the links: a lecture on robot dynamics; Truc 2019; Laus; Bhangale 2004."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from screwdyn.core import Array, ArrayLike, ShapeError, UnknownNameError
from screwdyn.papers.formulations.formulation import JointVector, MatrixFormulation, Row, Wrenches, cross, symbolic
from screwdyn.papers.formulations.fu import PoseDerivatives
from screwdyn.screws.screw import skew_of


def christoffel(dM: Array) -> Array:
    """c_ijk = ½ (∂m_ij/∂q_k + ∂m_ik/∂q_j − ∂m_jk/∂q_i), (n, n, n), from ∂m_ij/∂q_k of a symmetric matrix."""
    return 0.5 * (dM + dM.swapaxes(1, 2) - dM.transpose(2, 0, 1))


def column_derivatives(J: Array) -> Array:
    """∂J_j/∂q_k, (6, k, k), of the twist J, (6, k), in axes of the link: ad(J_j) J_k for joints k beyond joint j."""
    dJ = np.full((*J.shape, J.shape[1]), 0.0, dtype=J.dtype)
    for j, k in itertools.combinations(range(J.shape[1]), 2):
        (omega_j, v_j), (omega_k, v_k) = J[:, j].reshape(2, 3), J[:, k].reshape(2, 3)
        dJ[:, j, k] = *cross(omega_j, omega_k), *(cross(v_j, omega_k) + cross(omega_j, v_k))
    return dJ


def inertia_derivative(row: Row, J: Array) -> Array:
    """∂(J_ωᵀ I J_ω + m J_vᵀ J_v)/∂q, (k, k, k), for the twist J of the centre of mass, in axes of the link."""
    dJ = column_derivatives(J)
    half = np.tensordot(J[:3].T @ row.I, dJ[:3], 1) + row.m * np.tensordot(J[3:].T, dJ[3:], 1)
    return half + half.swapaxes(0, 1)


class Lagrangian(MatrixFormulation):
    """The lecture's B(q) q̈ + C(q, q̇) q̇ + g(q) = ξ (Eq. 44), with friction and contact in ξ (Eq. 50).

    `B` is `mass_matrix`, `C` `coriolis_matrix` and `g` `gravity_vector`. Parameters as for `Formulation`.
    """

    scope = "the lecture, Eq. 35, has an open chain with prismatic and revolute joints"

    def jacobians(self, q: JointVector) -> list[tuple[Array, Array]]:
        """J_P and J_O of all links, (3, n): velocity of the centre of mass and angular velocity (Eq. 35).

        Column j is z_{j−1} × (p_ℓi − p_{j−1}) and z_{j−1} for a revolute joint, z_{j−1} and 0 for a prismatic one.
        """
        _, axes, centres = self.geometry(q)
        return [(J[3:], J[:3]) for J in (self.jacobian(i, p, axes) for i, p in enumerate(centres))]

    def B(self, q: JointVector) -> Array:
        """Σ_i m_i J_Pᵀ J_P + J_Oᵀ R_i I_i R_iᵀ J_O, (n, n) (Eq. 37)."""
        B = np.full((len(q), len(q)), 0.0)
        for row, A, (J_P, J_O) in zip(self.rows, self.poses(q), self.jacobians(q), strict=True):
            R = A[:3, :3]
            B = B + row.m * (J_P.T @ J_P) + J_O.T @ (R @ row.I @ R.T) @ J_O
        return B

    def h_ijk(self, q: JointVector) -> Array:
        """∂b_ij/∂q_k − ½ ∂b_jk/∂q_i, (n, n, n) (Eq. 41).

        Σ_jk h_ijk q̇_k q̇_j is C q̇, but the h_ijk are not symmetric in j and k, and Σ_k h_ijk q̇_k is not C.
        """
        dB = self._dB(q)
        return dB - 0.5 * dB.transpose(2, 0, 1)

    def g(self, q: JointVector) -> Array:
        """g_i = −Σ_j m_j gᵀ J_Pi of link j, (n,) (Eq. 42)."""
        return self._gravity_of([J_P for J_P, _ in self.jacobians(q)])

    def C(self, q: JointVector, qd: JointVector) -> Array:
        """C_ij = Σ_k c_ijk q̇_k, (n, n) (Eq. 45)."""
        return self.c_ijk(q) @ qd

    def c_ijk(self, q: JointVector) -> Array:
        """½ (∂b_ij/∂q_k + ∂b_ik/∂q_j − ∂b_jk/∂q_i), (n, n, n) (Eq. 46)."""
        return christoffel(self._dB(q))

    def _dB(self, q: Array) -> Array:
        turned = [(row, np.kron(np.eye(2), R.T) @ J) for row, R, J in self._twists(q)]
        return self.padded_sum(3, [inertia_derivative(row, J) for row, J in turned])

    def motor_torque(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, wrenches: Wrenches = None) -> Array:
        """τ = B q̈ + C q̇ + g + F_v q̇ + F_s sgn q̇ + Jᵀ h_e, (n,), N m or N (Eq. 50).

        F_v and F_s are the damping and friction of the joints. Springs are not in the source. Arguments and errors as
        for `NewtonEuler.inverse_dynamics`, but the rates must be numbers; h_e, which the arm exerts on its environment,
        is the negative of the wrenches.
        """
        x, rates = self.joint_positions(q), self.joint_rates(qd)
        if unknown := [name for name, rate in zip(self.joints, rates, strict=True) if symbolic(rate)]:
            raise ShapeError(f"qd must be numbers, because friction has their signs; not so {', '.join(unknown)}")
        tau = np.array([row.damping * v + row.friction * np.sign(v) for row, v in zip(self.rows, rates, strict=True)])
        A = self.poses(x)
        axes = self.axes(A)
        for i, wrench in enumerate(self._loads(wrenches)):
            J, h_e = self.jacobian(i, A[i][:3, 3], axes), -np.kron(np.eye(2), A[i][:3, :3]) @ wrench
            tau = tau + J[:3].T @ h_e[:3] + J[3:].T @ h_e[3:]
        return self.inverse_dynamics(q, qd, qdd) + self.contracted(tau)

    _mass_matrix, _coriolis_matrix, _gravity_vector = B, C, g


def _vector(S: Array) -> Array:
    """The vector of a matrix that is skew-symmetric by construction (Eq. 1), for any scalars."""
    return np.array([S[2, 1], S[0, 2], S[1, 0]])


def derivative_of_product(D: Array, dD: Array, H: Array, dH: Array) -> Array:
    """∂(D H)/∂x = ∂D/∂x (H ⊗ 1_r) + D ∂H/∂x (Truc Eq. 32).

    The derivative of a matrix (p, q) by x (r,) is a matrix (p, q r): the entry d_ij becomes the row ∂d_ij/∂x (Eq. 31).
    """
    r = dD.shape[1] // D.shape[1]
    return dD @ np.kron(H, np.eye(r, dtype=int)) + D @ dH


class Kronecker(MatrixFormulation):
    """Truc's equations τ = M q̈ + C q̇ + g (Eq. 29), with C made of the matrix ∂M/∂q (Eq. 52).

    `M` is `mass_matrix`, `C` `coriolis_matrix` and `g` `gravity_vector`. C is the Christoffel matrix, as in the tree.
    Parameters as for `Formulation`.
    """

    scope = "Truc, Eqs. 15 and 16, has one chain of poses, and joint variables whose derivatives are the rates"

    def jacobians(self, q: JointVector) -> list[tuple[Array, Array, Array, Array]]:
        """J_Ti⁰ = ∂p_Ci/∂q (Eq. 24), J_Ri = ∂ω_i/∂q̇ (Eq. 25), and their derivatives by q, of all links.

        (3, n), (3, n), (3, n n) and (3, n n). S(ω_i) = (R_i⁰)ᵀ Ṙ_i⁰ (Eq. 10), so that column j of J_Ri is the vector of
        (R_i⁰)ᵀ ∂R_i⁰/∂q_j.
        """
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

    def M(self, q: JointVector) -> Array:
        """Σ_i m_i (J_Ti⁰)ᵀ J_Ti⁰ + J_Riᵀ I_i J_Ri, (n, n) (Eq. 28)."""
        M = np.full((len(q), len(q)), 0.0)
        for row, (J_T, J_R, _, _) in zip(self.rows, self.jacobians(q), strict=True):
            M = M + row.m * (J_T.T @ J_T) + J_R.T @ row.I @ J_R
        return M

    def dM(self, q: JointVector) -> Array:
        """∂M/∂q, (n, n n), by the rule of products (Eqs. 31 and 32)."""
        n = len(q)
        dM = np.full((n, n * n), 0.0)
        for row, (J_T, J_R, dJ_T, dJ_R) in zip(self.rows, self.jacobians(q), strict=True):
            I = np.asarray(row.I)
            dM = dM + row.m * derivative_of_product(J_T.T, _transposed(dJ_T, n), J_T, dJ_T)
            dM = dM + derivative_of_product(J_R.T, _transposed(dJ_R, n), I @ J_R, I @ dJ_R)
        return dM

    def C(self, q: JointVector, qd: JointVector) -> Array:
        """½ [∂M/∂q (1 ⊗ q̇) + ∂M/∂q (q̇ ⊗ 1) − (∂M/∂q (q̇ ⊗ 1))ᵀ], (n, n) (Eq. 52)."""
        dM, one, rates = self.dM(q), np.eye(len(q), dtype=int), qd[:, None]
        U, V = dM @ np.kron(one, rates), dM @ np.kron(rates, one)  # Eq. 53; U = Ṁ, Eq. 40
        return 0.5 * (U + V - V.T)

    def g(self, q: JointVector) -> Array:
        """(∂P/∂q)ᵀ with P = −Σ_i m_i (g⁰)ᵀ p_Ci, (n,) (Eqs. 17 and 45)."""
        return self._gravity_of([J_T for J_T, _, _, _ in self.jacobians(q)])

    _mass_matrix, _coriolis_matrix, _gravity_vector = M, C, g


def _transposed(dD: Array, r: int) -> Array:
    """∂(Dᵀ)/∂x, (q, p r), from ∂D/∂x, (p, q r)."""
    p = len(dD)
    return dD.reshape(p, -1, r).swapaxes(0, 1).reshape(-1, p * r)


class Progressive(MatrixFormulation):
    """M = M_1 ‡ M_2 ‡ …, and likewise C and g: each link adds its own terms (Laus section 2.4).

    Link i is row i of `rows`; its terms have the size of its path and are added at the rows of the path. J_i^{C_i},
    M_i, C_i and g_i are `J`, `M`, `C` and `g` of the tree's `contribution`; M, C and g are `mass_matrix`,
    `coriolis_matrix` and `gravity_vector`. C_i in closed form is the Christoffel matrix of M_i. Parameters as for
    `Formulation`.
    """

    scope = (
        "Laus, Eq. 23, has an open chain with one screw for each joint, rotative or prismatic (footnote 3), and leaves "
        "closed chains to future works (section 4)"
    )

    # The inertia of link i

    def M_bar(self, i: int) -> Array:
        """M̄_i = blkdiag(Ī, m 1), (6, 6) (Eq. 9)."""
        zero, row = np.zeros((3, 3)), self._row(i)
        return np.block([[row.I, zero], [zero, row.m * np.eye(3)]])

    def M_i(self, i: int, q: JointVector) -> Array:
        """J_i^{C_i}ᵀ M̄_i J_i^{C_i}, (k, k) (Eq. 21)."""
        J = self.J(i, q)
        return J.T @ self.M_bar(i) @ J

    # The three ways to J_i^{C_i}, (6, k): the twist [ω; v] of the centre of mass in axes of link i

    def J_by_transformation(self, i: int, q: JointVector) -> Array:
        """T_0^{C_i} J_i⁰ (Eqs. 22 to 24): the Jacobian at the origin of the base, moved to the centre of mass."""
        R, p_C, axes = self._geometry(i, q)
        zero = np.zeros((3, 3))
        T = np.block([[R, zero], [-R @ skew_of(p_C), R]])
        return T @ self.jacobian(i, np.zeros(3), axes)[:, self.rows[i].path]

    def J(self, i: int, q: JointVector) -> Array:
        """Columns [R z_j; R (z_j × (p_C − p_j))], built directly (Eqs. 25 to 28)."""
        R, p_C, axes = self._geometry(i, q)
        J_bar = self.jacobian(i, p_C, axes)[:, self.rows[i].path]
        return np.vstack([R @ J_bar[:3], R @ J_bar[3:]])

    def J_by_rotation(self, i: int, q: JointVector) -> Array:
        """T̄_0^{C_i} J̄_i⁰ (Eqs. 29 to 31): the Jacobian at the centre of mass, turned into axes of the link."""
        R, _, _ = self._geometry(i, q)
        return np.kron(np.eye(2), R) @ self.J_bar(i, q)

    def J_bar(self, i: int, q: JointVector) -> Array:
        """J̄_i⁰, (6, k): columns [z_j; z_j × (p_C − p_j)] in axes of the base (Eq. 30)."""
        _, p_C, axes = self._geometry(i, q)
        return self.jacobian(i, p_C, axes)[:, self.rows[i].path]

    # The other terms of link i

    def C_i(self, i: int, q: JointVector, qd: JointVector) -> Array:
        """Jᵀ (M̄ J̇ + B J) with B = blkdiag((Σω)^, m ω̂), Σ = ½ tr(Ī) 1 − Ī, (k, k) (docs/mathematics.md §2)."""
        row, J, rates = self._row(i), self.J(i, q), qd[[*self._row(i).path]]
        J_dot, omega, zero = column_derivatives(J) @ rates, J[:3] @ rates, np.zeros((3, 3))
        Sigma = 0.5 * np.trace(row.I) * np.eye(3) - row.I
        B = np.block([[skew_of(Sigma @ omega), zero], [zero, row.m * skew_of(omega)]])
        return J.T @ (self.M_bar(i) @ J_dot + B @ J)

    def C_by_christoffel(self, i: int, q: JointVector, qd: JointVector) -> Array:
        """c_ij = ½ Σ_k (∂m_ij/∂q_k + ∂m_ik/∂q_j − ∂m_jk/∂q_i) q̇_k of M_i, (k, k) (Eq. 35)."""
        return christoffel(inertia_derivative(self._row(i), self.J(i, q))) @ qd[[*self._row(i).path]]

    def g_i(self, i: int, q: JointVector) -> Array:
        """−m_i J̄_i⁰ᵀ $_g with $_g = [0; g_0], (k,) (Eq. 36)."""
        return -self._row(i).m * (self.J_bar(i, q)[3:].T @ self.gravity)

    # The names of the library: sums ‡ over all links

    def _mass_matrix(self, q: Array) -> Array:
        return self.padded_sum(2, [self.M_i(i, q) for i in range(len(q))])

    def _coriolis_matrix(self, q: Array, qd: Array) -> Array:
        return self.padded_sum(2, [self.C_i(i, q, qd) for i in range(len(q))])

    def _gravity_vector(self, q: Array) -> Array:
        return self.padded_sum(1, [self.g_i(i, q) for i in range(len(q))])

    def _geometry(self, i: int, q: JointVector) -> tuple[Array, Array, list[tuple[Array, Array]]]:
        """R_0^i, p_Ci, and z and p of all joints, in the base frame."""
        self._row(i)
        A, axes, centres = self.geometry(q)
        return A[i][:3, :3].T, centres[i], axes

    def _row(self, i: int) -> Row:
        """Row i; UnknownNameError for −1 too, which would be the last one."""
        if i not in range(len(self.rows)):
            raise UnknownNameError(f"there is no link {i!r}: links are rows, counted from 0, of {len(self.rows)}")
        return self.rows[i]


class Blocks(NamedTuple):
    """Vectors and matrices of all links in the base frame; twists are [ω; v] at O_i."""

    O: list[Array]  # O_i, a point of link i on the axis of joint i, (3,)
    d: list[Array]  # from O_i to the centre of mass, (3,)
    p: list[Array]  # screws of the joints at O_i, the blocks of T_d, (6,) (Eq. 11)
    M: list[Array]  # mass matrices about O_i, (6, 6) (Eq. 2)


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

    def blocks(self, q: JointVector) -> Blocks:
        """The vectors and matrices of the links at θ = q."""
        found = Blocks([], [], [], [])
        for row, x, T, (e, point), c in zip(self.rows, q, *self.geometry(q), strict=True):
            O, R = point + e * (row.h * x), T[:3, :3]
            d = c - O
            D, m = skew_of(d), row.m
            found.O.append(O)
            found.d.append(d)
            found.p.append(np.concatenate([row.sigma * e, row.h * e]))
            found.M.append(np.block([[R @ row.I @ R.T - m * (D @ D), m * D], [-m * D, m * np.eye(3)]]))
        return found

    def twists(self, at: Blocks, thetad: JointVector) -> list[Array]:
        """t_i = A_{i,i−1} t_{i−1} + p_i θ̇_i, (6,): t = T_l T_d θ̇ (Eq. 7)."""
        t: list[Array] = []
        for i, row in enumerate(self.rows):
            own, k = at.p[i] * thetad[i], row.parent
            t.append(own if k < 0 else self.A(at, i, k) @ t[k] + own)
        return t

    def g(self, theta: JointVector) -> Array:
        """−T_dᵀ T_lᵀ w of the weights w_i = [d_i × m_i g; m_i g], (n,): gravity is part of w^E (Eq. 8)."""
        at, terms = self.blocks(theta), []
        for j, row in enumerate(self.rows):
            weight = row.m * self.gravity
            w = np.concatenate([cross(at.d[j], weight), weight])
            terms.append([-(at.p[i] @ self.A(at, j, i).T @ w) for i in row.path])
        return self.padded_sum(1, terms)

    def GIM(self, theta: JointVector) -> Array:
        """i_ij = p_iᵀ M̃_i A_ij p_j for j ≤ i, (n, n) (Eq. 10)."""
        at, n = self.blocks(theta), len(theta)
        M = self.composite(at, at.M)
        GIM = np.full((n, n), 0.0, dtype=theta.dtype)
        for i, row in enumerate(self.rows):
            for j in row.path:
                GIM[i, j] = GIM[j, i] = at.p[i] @ M[i] @ self.A(at, i, j) @ at.p[j]
        return GIM

    def MCI(self, theta: JointVector, thetad: JointVector) -> Array:
        """c_ij (Eq. 10), (n, n), with H̃_ij = M̃_i Ȧ_ij + A_{i+1,i}ᵀ H̃_{i+1,i} A_ij (Eq. 12).

        p_iᵀ (A_jiᵀ M̃_j W_j + A_{j+1,i}ᵀ H̃_{j+1,j} + A_jiᵀ M̃'_j) p_j for i ≤ j,
        p_iᵀ (M̃_i A_ij W_j + H̃_ij + M̃'_i A_ij) p_j for i > j, where M̃' is the composite of W_i M_i E_i.
        """
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

    _mass_matrix, _coriolis_matrix, _gravity_vector = GIM, MCI, g
