"""Progressive dynamics, link by link: Laus, Simoni, Martins, section 2."""

from __future__ import annotations

import numpy as np

from screwdyn.core.errors import UnknownNameError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.papers.formulations.differentiation import christoffel, partial, rate
from screwdyn.papers.formulations.formulation import MatrixFormulation
from screwdyn.papers.formulations.rows import Row
from screwdyn.screws.poses import skew_of

__all__ = ["Progressive"]


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

    def M_i(self, i: int, q: ArrayLike) -> Array:
        """J_i^{C_i}ᵀ M̄_i J_i^{C_i}, (k, k) (Eq. 21)."""
        J = self.J(i, q)
        M: Array = J.T @ self.M_bar(i) @ J
        return M

    # The three ways to J_i^{C_i}, (6, k): the twist [ω; v] of the centre of mass in axes of link i

    def J_by_transformation(self, i: int, q: ArrayLike) -> Array:
        """T_0^{C_i} J_i⁰ (Eqs. 22 to 24): the Jacobian at the origin of the base, moved to the centre of mass."""
        R, p_C, axes = self._geometry(i, q)
        zero = np.zeros((3, 3))
        T = np.block([[R, zero], [-R @ skew_of(p_C), R]])
        J: Array = T @ self.jacobian(i, np.zeros(3), axes)
        return J

    def J(self, i: int, q: ArrayLike) -> Array:
        """Columns [R z_j; R (z_j × (p_C − p_j))], built directly (Eqs. 25 to 28)."""
        R, p_C, axes = self._geometry(i, q)
        J_bar = self.jacobian(i, p_C, axes)
        return np.vstack([R @ J_bar[:3], R @ J_bar[3:]])

    def J_by_rotation(self, i: int, q: ArrayLike) -> Array:
        """T̄_0^{C_i} J̄_i⁰ (Eqs. 29 to 31): the Jacobian at the centre of mass, turned into axes of the link."""
        R, _, _ = self._geometry(i, q)
        J: Array = np.kron(np.eye(2), R) @ self.J_bar(i, q)
        return J

    def J_bar(self, i: int, q: ArrayLike) -> Array:
        """J̄_i⁰, (6, k): columns [z_j; z_j × (p_C − p_j)] in axes of the base (Eq. 30)."""
        _, p_C, axes = self._geometry(i, q)
        return self.jacobian(i, p_C, axes)

    # The other terms of link i

    def C_i(self, i: int, q: ArrayLike, qd: ArrayLike) -> Array:
        """Jᵀ (M̄ J̇ + B J) with B = blkdiag((Σω)^, m ω̂), Σ = ½ tr(Ī) 1 − Ī, (k, k) (docs/mathematics.md §2)."""
        q, qd = self._vector(q, "q"), self._vector(qd, "qd")
        row, path = self._row(i), list(self._row(i).path)
        J, J_dot = self.J(i, q), rate(lambda x: self.J(i, x), q, qd)
        omega, zero = J[:3] @ qd[path], np.zeros((3, 3))
        Sigma = 0.5 * np.trace(row.I) * np.eye(3) - row.I
        B = np.block([[skew_of(Sigma @ omega), zero], [zero, row.m * skew_of(omega)]])
        C: Array = J.T @ (self.M_bar(i) @ J_dot + B @ J)
        return C

    def C_by_christoffel(self, i: int, q: ArrayLike, qd: ArrayLike) -> Array:
        """c_ij = ½ Σ_k (∂m_ij/∂q_k + ∂m_ik/∂q_j − ∂m_jk/∂q_i) q̇_k of M_i, (k, k) (Eq. 35)."""
        q, qd = self._vector(q, "q"), self._vector(qd, "qd")
        path = list(self._row(i).path)
        C: Array = christoffel(partial(lambda x: self.M_i(i, x), q)[..., path]) @ qd[path]
        return C

    def g_i(self, i: int, q: ArrayLike) -> Array:
        """−m_i J̄_i⁰ᵀ $_g with $_g = [0; g_0], (k,) (Eq. 36)."""
        g: Array = -self._row(i).m * (self.J_bar(i, q)[3:].T @ self.gravity)
        return g

    # The names of the library: sums ‡ over all links

    def _mass_matrix(self, q: Array) -> Array:
        return self._padded_sum((len(q), len(q)), [self.M_i(i, q) for i in range(len(q))])

    def _coriolis_matrix(self, q: Array, qd: Array) -> Array:
        return self._padded_sum((len(q), len(q)), [self.C_i(i, q, qd) for i in range(len(q))])

    def _gravity_vector(self, q: Array) -> Array:
        return self._padded_sum((len(q),), [self.g_i(i, q) for i in range(len(q))])

    def _padded_sum(self, shape: tuple[int, ...], terms: list[Array]) -> Array:
        """X_1 ‡ X_2 ‡ …: rows and columns of other coordinates are zero (section 2.4)."""
        total = np.full(shape, 0.0, dtype=np.result_type(float, *terms))
        for row, term in zip(self.rows, terms, strict=True):
            total[np.ix_(*[row.path] * len(shape))] += term
        return total

    def _geometry(self, i: int, q: ArrayLike) -> tuple[Array, Array, list[tuple[Array, Array]]]:
        """R_0^i, p_Ci, and z and p of all joints, in the base frame."""
        self._row(i)
        A = self.poses(q)
        return A[i][:3, :3].T, self.centres(A)[i], self.axes(A)

    def _row(self, i: int) -> Row:
        """Row i; UnknownNameError for −1 too, which would be the last one."""
        if i not in range(len(self.rows)):
            raise UnknownNameError(f"there is no link {i!r}: links are rows, counted from 0, of {len(self.rows)}")
        return self.rows[i]
