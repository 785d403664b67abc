"""Lagrange-Euler, Newton-Euler and generalized d'Alembert equations of motion: Fu, Gonzalez, Lee 1987, chapter 3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from screwdyn.core.types import Array, ArrayLike
from screwdyn.papers.formulations.formulation import Formulation, JointVector, MatrixFormulation, Row, Wrenches, cross
from screwdyn.screws.screw import skew_of


def Q(row: Row) -> Array:
    """Q_i, (4, 4): ∂^{i−1}A_i/∂q_i = Q_i ^{i−1}A_i (Fu Eq. 3.2-9).

    In frames of Denavit and Hartenberg it is that of Eq. 3.2-8a or b; for other axes it is the joint's screw.
    """
    turn = row.sigma * skew_of(row.z)
    return np.vstack([np.column_stack([turn, row.h * row.z - turn @ row.p]), np.zeros(4)])


class PoseDerivatives:
    """⁰A_i, U_ij = ∂⁰A_i/∂q_j and U_ijk = ∂²⁰A_i/∂q_j∂q_k at a configuration q, (4, 4).

    The frame i − 1 is that of the link that carries link i, and j ≤ i means that row j is on the path of row i.
    """

    def __init__(self, rows: Sequence[Row], q: Array) -> None:
        self._rows, self._Q = rows, [Q(row) for row in rows]
        # ^{j−1}A_i for all j on the path of i.
        self._A: dict[tuple[int, int], Array] = {}
        for i, (row, x) in enumerate(zip(rows, q, strict=True)):
            A = row.pose(x)
            for j in row.path:
                self._A[j, i] = A if j == i else self._A[j, row.parent] @ A

    def A(self, i: int) -> Array:
        """⁰A_i (Eq. 3.2-4)."""
        return self._A[self._rows[i].path[0], i]

    def U(self, i: int, j: int) -> Array:
        """U_ij = ⁰A_{j−1} Q_j ^{j−1}A_i for j ≤ i (Eq. 3.2-11)."""
        return self._from_base(j, self._Q[j] @ self._A[j, i])

    def U2(self, i: int, j: int, k: int) -> Array:
        """U_ijk = ⁰A_{j−1} Q_j ^{j−1}A_{k−1} Q_k ^{k−1}A_i for j ≤ k ≤ i (Eq. 3.2-13); U_ijk = U_ikj."""
        j, k = sorted((j, k))
        beyond = self._Q[k] @ self._A[k, i]
        if j != k:
            beyond = self._A[j, self._rows[k].parent] @ beyond
        return self._from_base(j, self._Q[j] @ beyond)

    def _from_base(self, j: int, beyond: Array) -> Array:
        """⁰A_{j−1} times a matrix."""
        parent = self._rows[j].parent
        return beyond if parent < 0 else self.A(parent) @ beyond


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

    scope = "Fu, section 3.2, has a chain of links with one variable q_i of each joint, rotary or prismatic (Eq. 3.2-5)"

    def D(self, q: JointVector) -> Array:
        """D_ik = Σ_j Tr(U_jk J_j U_jiᵀ), the sum over all links beyond joints i and k, (n, n) (Eq. 3.2-31)."""
        at, terms = PoseDerivatives(self.rows, q), []
        for j, row in enumerate(self.rows):
            J, U = pseudo_inertia(row), [at.U(j, i) for i in row.path]
            terms.append([[np.trace(U_k @ J @ U_i.T) for U_k in U] for U_i in U])
        return self.padded_sum(2, terms)

    def h(self, q: JointVector, qd: JointVector) -> Array:
        """h_i = Σ_k Σ_m h_ikm q̇_k q̇_m, (n,) (Eq. 3.2-32)."""
        return self.h_ikm(q) @ qd @ qd

    def h_ikm(self, q: JointVector) -> Array:
        """h_ikm = Σ_j Tr(U_jkm J_j U_jiᵀ), the sum over all links beyond joints i, k and m, (n, n, n) (Eq. 3.2-33)."""
        at, terms = PoseDerivatives(self.rows, q), []
        for j, row in enumerate(self.rows):
            J, U = pseudo_inertia(row), [at.U(j, i) for i in row.path]
            U_km = [at.U2(j, k, m) for k in row.path for m in row.path]
            terms.append([[np.trace(U_jkm @ J @ U_i.T) for U_jkm in U_km] for U_i in U])
        return self.padded_sum(3, terms)

    def c(self, q: JointVector) -> Array:
        """c_i = Σ_j −m_j g U_ji ʲr̄_j, (n,), with the gravity row vector g = (g_x, g_y, g_z, 0) (Eq. 3.2-34).

        The equation is printed with the transpose of U_ji; Eq. 3.2-22 gives it without.
        """
        at, g = PoseDerivatives(self.rows, q), np.array([*self.gravity, 0.0])
        r = [np.array([*row.com, 1.0]) for row in self.rows]
        terms = [[-row.m * (g @ at.U(j, i) @ r[j]) for i in row.path] for j, row in enumerate(self.rows)]
        return self.padded_sum(1, terms)

    def _coriolis_matrix(self, q: Array, qd: Array) -> Array:
        return self.h_ikm(q) @ qd

    _mass_matrix, _velocity_product, _gravity_vector = D, h, c


class Vectors(NamedTuple):
    """Vectors of link i: R is ^iR_{i−1}; z_{i−1} and p, a point of joint i's axis, are in axes of link i − 1.

    p_i* leads from that point to the origin of frame i, s̄_i from there to the centre of mass. They, the tensor I_i
    about the centre of mass and the wrench on the link about the origin of frame i are in axes of link i.
    """

    R: Array
    z: Array
    p: Array
    p_star: Array
    s_bar: Array
    I: Array
    wrench: Array


class Step(NamedTuple):
    """Motion and forces of link i, (3,), rad/s, rad/s², m/s², N and N m.

    ω_i, ω̇_i, v̇_i of the origin of frame i, and ā_i of the centre of mass; both accelerations contain −g, the upward
    acceleration of the base that stands for gravity (Eq. 3.3-46). F_i and N_i are the sums of all forces and moments on
    the link at its centre of mass, with −m g in F_i; f_i and n_i are those that link i − 1 exerts on it, n_i at the
    axis of joint i.
    """

    omega: Array
    omegad: Array
    vd: Array
    a: Array
    F: Array
    N: Array
    f: Array
    n: Array


def recursion(rows: Sequence[Row], links: Sequence[Vectors], qd: Array, qdd: Array, gravity: Array) -> list[Step]:
    """The equations of Table 3.3, or with R = 1 of Table 3.2; wrenches take the place of −f_{n+1} and −n_{n+1}."""
    motion: list[tuple[Array, Array, Array, Array]] = []
    for row, at, rate, rate_dot in zip(rows, links, qd, qdd, strict=True):  # Eqs. 3.3-50 to 3.3-53
        turn, slide = row.sigma * at.z, row.h * at.z
        spin, spind, vd = np.zeros(3), np.zeros(3), -gravity  # of link i − 1
        if row.parent >= 0:
            spin, spind, vd, _ = motion[row.parent]
            vd = _acceleration(vd, spin, spind, at.p)
        omega = at.R @ (spin + turn * rate)
        omegad = at.R @ (spind + turn * rate_dot + cross(spin, turn * rate))
        vd = at.R @ (vd + slide * rate_dot) + 2 * cross(omega, at.R @ (slide * rate))
        vd = _acceleration(vd, omega, omegad, at.p_star)
        motion.append((omega, omegad, vd, _acceleration(vd, omega, omegad, at.s_bar)))
    found: list[Any] = [None] * len(links)
    f, n = [-at.wrench[3:] for at in links], [-at.wrench[:3] for at in links]
    for i, (row, at, (omega, omegad, vd, a)) in reversed([*enumerate(zip(rows, links, motion, strict=True))]):
        F = row.m * a  # Eqs. 3.3-54 to 3.3-57
        N = at.I @ omegad + cross(omega, at.I @ omega)
        # Here f[i] and n[i] are the sums over all links that link i carries, n[i] at the origin of frame i.
        n_i = n[i] + cross(at.p_star, f[i]) + cross(at.p_star + at.s_bar, F) + N
        found[i] = Step(omega, omegad, vd, a, F, N, F + f[i], n_i)
        if (k := row.parent) >= 0:
            f_i = at.R.T @ found[i].f
            f[k] = f[k] + f_i
            n[k] = n[k] + at.R.T @ n_i + cross(at.p, f_i)
    return found


def _acceleration(vd: Array, omega: Array, omegad: Array, r: Array) -> Array:
    """Acceleration of the point r from one of acceleration v̇ on the same link: Eqs. 3.3-35 and 3.3-39."""
    return cross(omegad, r) + cross(omega, cross(omega, r)) + vd


class NewtonEuler(Formulation):
    """Newton-Euler recursions in link frames (Table 3.3) and in the base frame (Table 3.2).

    They give torques. M, C q̇ and g are found by probing: they are the torques of suitable accelerations and rates, with
    or without gravity (Problem 3.11). There is no matrix C. `steps` gives the vectors of each link; f_i and n_i are
    `f` and `n`, the damping b_i is `damping` of a joint, and −f_{n+1} and −n_{n+1} are `wrenches` on a link.

    Fu's two cases, rotational and translational, are one with sigma and h (see `Row`). In Fu's frames the axis of joint
    i passes through the origin of frame i − 1; in a tree several joints may leave one link, and p leads to their axes.

    Parameters as for `Formulation`.
    """

    scope = "Fu, section 3.3, has an open chain of rotational and translational joints of one variable (Eq. 3.3-58)"

    def inverse_dynamics(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, wrenches: Wrenches = None) -> Array:
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
        return self._motor_side(self._in_link_frames(self.joint_positions(q), wrenches), qd, qdd)

    def inverse_dynamics_in_base_frame(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, wrenches: Wrenches = None
    ) -> Array:
        """τ, (n,), by the recursion in the base frame; arguments and errors as for `inverse_dynamics`."""
        return self._motor_side(self._in_base_frame(self.joint_positions(q), wrenches), qd, qdd)

    def motor_torque(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, wrenches: Wrenches = None) -> Array:
        """τ_i with the damping b_i q̇_i of the joints, (n,) (Eq. 3.3-45); arguments and errors as above."""
        damping = np.array([row.damping for row in self.rows])
        return self.inverse_dynamics(q, qd, qdd, wrenches) + self.contracted(damping * self.joint_rates(qd))

    def steps(self, q: JointVector, qd: JointVector, qdd: JointVector, wrenches: Wrenches = None) -> list[Step]:
        """ω_i, ω̇_i, v̇_i, ā_i, F_i, N_i, f_i and n_i of all links, each in axes of its own frame (Table 3.3).

        Arguments and errors as for `inverse_dynamics`.
        """
        return recursion(self.rows, self._in_link_frames(q, wrenches), qd, qdd, self.gravity)

    def steps_in_base_frame(
        self, q: JointVector, qd: JointVector, qdd: JointVector, wrenches: Wrenches = None
    ) -> list[Step]:
        """The same in axes of the base (Table 3.2)."""
        return recursion(self.rows, self._in_base_frame(q, wrenches), qd, qdd, self.gravity)

    def _in_base_frame(self, q: Array, wrenches: Wrenches) -> list[Vectors]:
        """The vectors of Table 3.2: all in axes of the base, so that ^iR_{i−1} = 1."""
        poses, found = self.poses(q), []
        for row, A, (z, p), load in zip(self.rows, poses, self.axes(poses), self._loads(wrenches), strict=True):
            R, origin = A[:3, :3], A[:3, 3]
            before = poses[row.parent][:3, 3] if row.parent >= 0 else np.zeros(3)
            wrench = np.concatenate([R @ load[:3], R @ load[3:]])
            found.append(Vectors(np.eye(3), z, p - before, origin - p, R @ row.com, R @ row.I @ R.T, wrench))
        return found

    def _in_link_frames(self, q: Array, wrenches: Wrenches) -> list[Vectors]:
        """The vectors of Table 3.3. For a rotational joint p_i* is constant (Eq. 3.3-59)."""
        found = []
        for row, x, wrench in zip(self.rows, q, self._loads(wrenches), strict=True):
            p_star = row.home[:3, :3].T @ (row.home[:3, 3] - row.p + row.z * (row.h * x))
            found.append(Vectors(row.pose(x)[:3, :3].T, row.z, row.p, p_star, row.com, row.I, wrench))
        return found

    def _motor_side(self, links: list[Vectors], qd: ArrayLike, qdd: ArrayLike) -> Array:
        """The torques at the freedoms, with the armatures of the joints."""
        rates, accelerations = self.joint_rates(qd), self.joint_rates(qdd, "qdd")
        tau = self._torques(links, rates, accelerations, self.gravity)
        return self.contracted(tau + self.armature * accelerations if self.armature.any() else tau)

    def _torques(self, links: list[Vectors], qd: Array, qdd: Array, gravity: Array) -> Array:
        """n_i · z_{i−1} or f_i · z_{i−1} (Eq. 3.3-58, without damping)."""
        tau = []
        for row, at, step in zip(self.rows, links, recursion(self.rows, links, qd, qdd, gravity), strict=True):
            z = at.R @ at.z
            tau.append(row.sigma * (step.n @ z) + row.h * (step.f @ z))
        return np.array(tau)

    # The names of the library: probing

    def _mass_matrix(self, q: Array) -> Array:
        n, links = len(q), self._in_link_frames(q, None)
        columns = [self._torques(links, np.zeros(n), unit, np.zeros(3)) for unit in np.eye(n)]
        return np.array(columns).reshape(n, n).T

    def _velocity_product(self, q: Array, qd: Array) -> Array:
        return self._torques(self._in_link_frames(q, None), qd, np.zeros(len(q)), np.zeros(3))

    def _gravity_vector(self, q: Array) -> Array:
        return self._torques(self._in_link_frames(q, None), np.zeros(len(q)), np.zeros(len(q)), self.gravity)


class GeneralizedDAlembert(Formulation):
    """Σ_j D_ij θ̈_j + h_i^tran + h_i^rot + c_i = τ_i (Fu Eq. 3.4-24), for revolute joints.

    D is `mass_matrix`, h^tran + h^rot is `velocity_product` and `c` is `gravity_vector`; θ is `q`. The source has no
    matrix C. `formulations.dominance` compares the parts along a trajectory.
    Parameters as for `Formulation`; the source covers revolute joints only.
    """

    kinds = ("revolute",)
    scope = "Fu, section 3.4, has arms with rotary joints only"

    def D_rot(self, q: JointVector) -> Array:
        """Σ_s (ˢR_0 z_{i−1})ᵀ I_s (ˢR_0 z_{j−1}), the sum over all links beyond joints i and j, (n, n) (Eq. 3.4-25)."""
        turned = [(row, R.T @ J[:3]) for row, R, J in self._twists(q)]  # ˢR_0 z
        return self.padded_sum(2, [z.T @ row.I @ z for row, z in turned])

    def D_tran(self, q: JointVector) -> Array:
        """Σ_s m_s [z_{j−1} × (r̄_s − p_{j−1})] · [z_{i−1} × (r̄_s − p_{i−1})], (n, n) (Eq. 3.4-25)."""
        return self.padded_sum(2, [row.m * (J[3:].T @ J[3:]) for row, _, J in self._twists(q)])

    def h_tran(self, q: JointVector, qd: JointVector) -> Array:
        """Σ_s m_s v̇_s · [z_{i−1} × (r̄_s − p_{i−1})] with v̇_s at θ̈ = 0, (n,) (Eqs. 3.4-11 and 3.4-26)."""
        _, axes, r = self.geometry(q)
        terms = []
        for row, r_s in zip(self.rows, r, strict=True):
            # p_k* from one axis to the next on the path, and c̄_s from the last axis to the centre of mass.
            ends = [*(axes[k][1] for k in row.path[1:]), r_s]
            omega, spin, vd = np.zeros(3), np.zeros(3), np.zeros(3)
            for k, end in zip(row.path, ends, strict=True):
                z, p = axes[k]
                spin = spin + cross(omega, z * qd[k])  # Σ_p (Σ_{q<p} θ̇_q z_{q−1}) × θ̇_p z_{p−1}
                omega = omega + z * qd[k]
                vd = vd + cross(omega, cross(omega, end - p)) + cross(spin, end - p)
            terms.append([row.m * (vd @ cross(z, r_s - p)) for z, p in (axes[i] for i in row.path)])
        return self.padded_sum(1, terms)

    def h_rot(self, q: JointVector, qd: JointVector) -> Array:
        """Coriolis and centrifugal torques of the rotation of the links, (n,) (Eq. 3.4-27).

        Σ_s (ˢR_0 z_{i−1})ᵀ I_s Σ_j [θ̇_j ˢR_0 z_{j−1} × Σ_{k>j} θ̇_k ˢR_0 z_{k−1}]
        + [ˢR_0 z_{i−1} × Σ_p θ̇_p ˢR_0 z_{p−1}]ᵀ I_s Σ_q θ̇_q ˢR_0 z_{q−1}.
        """
        A = self.poses(q)
        axes, terms = self.axes(A), []
        for row, A_s in zip(self.rows, A, strict=True):
            z = {j: A_s[:3, :3].T @ axes[j][0] for j in row.path}
            beyond, coriolis = np.zeros(3), np.zeros(3)
            for j in reversed(row.path):
                coriolis = coriolis + cross(z[j] * qd[j], beyond)
                beyond = beyond + z[j] * qd[j]
            omega = beyond
            terms.append([z_i @ row.I @ coriolis + cross(z_i, omega) @ row.I @ omega for z_i in z.values()])
        return self.padded_sum(1, terms)

    def c(self, q: JointVector) -> Array:
        """c_i = −g · [z_{i−1} × Σ_j m_j (r̄_j − p_{i−1})], the sum over all links beyond joint i, (n,) (Eq. 3.4-28).

        Eqs. 3.4-21 and 3.4-22 are printed with the opposite sign; Eqs. 3.4-20, 3.4-23 and 3.4-28 agree.
        """
        return self.padded_sum(1, [-row.m * (self.gravity @ J[3:]) for row, _, J in self._twists(q)])

    def _mass_matrix(self, q: Array) -> Array:
        return self.D_rot(q) + self.D_tran(q)

    def _velocity_product(self, q: Array, qd: Array) -> Array:
        return self.h_tran(q, qd) + self.h_rot(q, qd)

    _gravity_vector = c
