"""Displayed formulas of Fu, Gonzalez, Lee 1987, chapter 3, as printed: which hold, and which are misprints.

The formulations themselves are compared with the library in ``test_formulations`` and ``test_each``.
"""

import numpy as np
import pytest
from duals import partial
from numpy.testing import assert_allclose

import screwdyn as sd
from screwdyn import formulations
from screwdyn.papers.formulations.fu import PoseDerivatives
from screwdyn.testing import random_inertia


@pytest.fixture(scope="module")
def arm():
    """Revolute, prismatic and revolute joints in general frames of Denavit and Hartenberg; gravity along no axis."""
    rng = np.random.default_rng(0)
    keys = ("d", "a", "alpha", "theta")
    rows = [dict(zip(keys, rng.uniform(0.3, 1.2, 4), strict=True), inertia=random_inertia(rng)) for _ in range(4)]
    rows[2].update(type="P", a=0.0)  # Eq. 3.2-6 has no a_i
    return sd.KinematicTree.from_dh(rows, gravity=(1.0, -2.0, -9.0))


@pytest.fixture(scope="module")
def state(arm):
    return np.random.default_rng(1).uniform(-2, 2, (3, arm.nv))


def equal(actual, expected):
    assert_allclose(actual, expected, rtol=1e-10, atol=1e-10)


def differ(actual, expected):
    assert np.abs(np.subtract(actual, expected)).max() > 0.01


# Section 3.2, Lagrange-Euler


def test_gravity_torques_need_u_not_its_transpose(arm, state):
    """Eqs. 3.2-24 and 3.2-34 are printed with U_jiᵀ; Eq. 3.2-22, and c_3 to c_6 after Eq. 3.2-40, have U_ji ʲr̄_j."""
    rows, q = formulations.lagrange_euler(arm).rows, state[0]
    at, g = PoseDerivatives(rows, q), np.array([*arm.gravity, 0])
    sums = np.zeros((2, arm.nv))
    for j, row in enumerate(rows):
        for i in row.path:
            U, r = at.U(j, i), np.array([*row.com, 1])
            sums[:, i] -= row.m * (g @ U @ r), row.m * (g @ U.T @ r)
    equal(sums[0], arm.gravity_vector(q))
    differ(sums[1], arm.gravity_vector(q))


def test_products_of_inertia_in_the_pseudo_inertia_have_the_opposite_sign():
    """I_ij = ∫ (δ_ij Σ x_k² − x_i x_j) dm of the text has I_xy = −∫ x y dm; Eq. 3.2-18 needs +∫ x y dm, Eq. 3.2-17."""
    rng = np.random.default_rng(3)
    masses, points = rng.uniform(0.1, 1, 5), rng.normal(size=(5, 3))
    J = np.einsum("k,ki,kj->ij", masses, points, points)
    tensor = J.trace() * np.eye(3) - J
    printed = np.where(np.eye(3), tensor.trace() / 2 - tensor, tensor)
    equal(np.diag(printed), np.diag(J))
    off = ~np.eye(3, dtype=bool)
    equal(printed[off], -J[off])
    assert np.abs(J[off]).min() > 0.01


def test_the_two_link_example_needs_a_third_in_the_pseudo_inertia():
    """Sections 3.2.6 and 3.3.7 have ½ in J_i, in steps of D and in τ, where the final equations have ⅓ and 4/3."""
    m1, m2, l, q = 1.3, 0.7, 0.9, np.array([0.4, 1.1])
    at = PoseDerivatives(formulations.lagrange_euler(sd.robots.two_link(m1, m2, l)).rows, q)

    def D(share):
        J = np.array([[share * l**2, 0, 0, -l / 2], [0] * 4, [0] * 4, [-l / 2, 0, 0, 1]])
        U = at.U(1, 0), at.U(1, 1)
        second = m2 * np.array([[np.trace(U[k] @ J @ U[i].T) for k in (0, 1)] for i in (0, 1)])
        return second + m1 * np.trace(at.U(0, 0) @ J @ at.U(0, 0).T) * np.diag([1, 0])

    D12 = m2 * l**2 * (1 / 3 + np.cos(q[1]) / 2)
    printed = [[l**2 * (m1 / 3 + m2 * (4 / 3 + np.cos(q[1]))), D12], [D12, m2 * l**2 / 3]]
    equal(D(1 / 3), printed)
    equal(D(1 / 2) - printed, np.array([[m1 + m2, m2], [m2, m2]]) * l**2 / 6)


# Section 3.3, Newton-Euler


def recursion(arm, state, *, moment="3.3-57", spin="omega"):
    """Torques by Eqs. 3.3-50 to 3.3-58 for frames of Denavit and Hartenberg, as the text has them.

    Parameters
    ----------
    moment : str
        "3.3-57", or "Table 3.3": p*_{i+1} for p_i*, or "f for F": f_i for F_i in (p* + s̄) ×.
    spin : str
        What stands twice in the centripetal terms of Eqs. 3.3-52 and 3.3-53: "omega", or "omega dot" as printed there.
    """
    rows, (q, qd, qdd) = formulations.newton_euler(arm).rows, state
    z0, zero = np.array([0.0, 0.0, 1.0]), np.zeros(3)
    R, p, w, wd, a, vd = [], [], [zero], [zero], [], [-arm.gravity]
    for i, row in enumerate(rows):
        A = row.pose(q[i])
        R.append(A[:3, :3].T)
        p.append(A[:3, :3].T @ A[:3, 3])
        turn, slide = row.sigma * z0, row.h * z0
        w.append(R[i] @ (w[i] + turn * qd[i]))
        wd.append(R[i] @ (wd[i] + turn * qdd[i] + np.cross(w[i], turn * qd[i])))
        x = w[-1] if spin == "omega" else wd[-1]
        coriolis = 2 * np.cross(w[-1], R[i] @ slide * qd[i])
        there = R[i] @ (vd[i] + slide * qdd[i]) + coriolis
        vd.append(np.cross(wd[-1], p[i]) + np.cross(x, np.cross(x, p[i])) + there)
        a.append(np.cross(wd[-1], row.com) + np.cross(x, np.cross(x, row.com)) + vd[-1])
    tau = np.zeros(len(rows))
    f, n, R_next, p_next = zero, zero, np.eye(3), zero
    for i, row in reversed([*enumerate(rows)]):
        F = row.m * a[i]
        N = row.I @ wd[i + 1] + np.cross(w[i + 1], row.I @ w[i + 1])
        arm_of_f = p_next if moment == "Table 3.3" else R_next @ p[i]
        n = R_next.T @ (n + np.cross(arm_of_f, f)) + N
        f = R_next.T @ f + F
        n = n + np.cross(p[i] + row.com, f if moment == "f for F" else F)
        tau[i] = row.sigma * n @ R[i] @ z0 + row.h * f @ R[i] @ z0
        R_next, p_next = R[i], p[i]
    return tau


def test_the_moment_of_table_3_3_and_the_printed_dots(arm, state):
    """Eq. 3.3-57 is right. Table 3.3 has p*_{i+1} for p_i* and f_i for F_i; Eqs. 3.3-50 to 3.3-55 have ω̇ for ω."""
    expected = arm.inverse_dynamics(*state)
    equal(recursion(arm, state), expected)
    for printed in ({"moment": "Table 3.3"}, {"moment": "f for F"}, {"spin": "omega dot"}):
        differ(recursion(arm, state, **printed), expected)


def test_the_acceleration_of_the_base_is_minus_gravity(arm, state):
    """Eq. 3.3-46 names it g = (g_x, g_y, g_z); the same letter is the downward vector of Eq. 3.2-22 (Problem 3.13)."""
    up = sd.KinematicTree.from_json(arm.to_json())
    still = state[0], np.zeros(arm.nv), np.zeros(arm.nv)
    equal(recursion(up, still), formulations.lagrange_euler(arm).c(state[0]))
    up.gravity = -arm.gravity
    equal(recursion(up, still), -formulations.lagrange_euler(arm).c(state[0]))


# Section 3.4, generalized d'Alembert


def test_the_second_identity_of_equation_3_4_8_lacks_a_factor_of_two():
    """∂v̇_s/∂θ̇_i = 2 ∂v_s/∂θ_i. Equation 3.4-9 follows from d/dt(∂v_s/∂θ̇_i) = ∂v_s/∂θ_i, which holds."""
    witness = formulations.lagrangian(sd.robots.truc_3r())
    q, qd = np.random.default_rng(4).uniform(-2, 2, (2, 3))
    dJ = partial(lambda x: witness.jacobians(x)[2][0], q)  # of v_3 = J θ̇
    by_angle = np.einsum("xji,j->xi", dJ, qd)
    equal(dJ @ qd, by_angle)

    def acceleration(rates):
        """v̇_3 at θ̈ = 0, quadratic in the rates, so that a central difference is exact."""
        return dJ @ rates @ rates

    by_rate = np.transpose([(acceleration(qd + e) - acceleration(qd - e)) / 2 for e in np.eye(3)])
    equal(by_rate, 2 * by_angle)
    assert np.abs(by_angle).max() > 0.1


def test_derivatives_of_axes_and_of_the_energy_of_rotation():
    """Eqs. 3.4-14 and 3.4-17, by exact derivatives; j ≤ i ≤ s."""
    witness = formulations.generalized_dalembert(sd.robots.truc_3r())
    (q, qd), s = np.random.default_rng(2).uniform(-2, 2, (2, 3)), 2

    def turned(x):
        """ˢR_0 z_{j−1} as columns."""
        A = witness.poses(x)
        return A[s][:3, :3].T @ np.array([z for z, _ in witness.axes(A)]).T

    z, by, I = turned(q), partial(turned, q), witness.rows[s].I
    energy = partial(lambda x: np.array([0.5 * (turned(x) @ qd) @ I @ (turned(x) @ qd)]), q)[0]
    for i in range(3):
        for j in range(3):
            equal(by[:, j, i], np.cross(z[:, j], z[:, i]) if i >= j else 0)
        equal(np.cross(z[:, : i + 1] @ qd[: i + 1], z[:, i]) @ I @ (z @ qd), energy[i])


def test_the_gravity_torque_is_minus_the_sum_of_equation_3_4_22():
    """Eqs. 3.4-21 and 3.4-22 are −∂P/∂θ_i; the torque is +∂P/∂θ_i, so that the sum after them is a difference."""
    tree, q = sd.robots.truc_3r(), np.array([0.3, -0.4, 1.2])
    witness = formulations.generalized_dalembert(tree)
    A = witness.poses(q)
    axes, r = witness.axes(A), witness.centres(A)
    printed = np.zeros(3)
    for s, row in enumerate(witness.rows):
        for i in row.path:
            printed[i] += tree.gravity @ (row.m * np.cross(axes[i][0], r[s] - axes[i][1]))
    assert np.abs(printed).max() > 1
    equal(-printed, tree.gravity_vector(q))
