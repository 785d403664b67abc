"""Displayed formulas of Truc, Quyen, Quang 2019, as printed: which hold, and which are misprints.

Closed forms of Eqs. 58 to 70 are in ``forms/test_symbolic_papers``; ``forms/test_papers`` has the misprint of Eq. 70.
"""

import numpy as np
import pytest
from duals import partial
from numpy.testing import assert_allclose

import screwdyn as sd
from screwdyn import formulations, screw
from screwdyn.testing import random_tree


@pytest.fixture(scope="module")
def tree():
    return random_tree(np.random.default_rng(5), 5, joints=("revolute", "prismatic", "helical"))


@pytest.fixture(scope="module")
def state(tree):
    return np.random.default_rng(6).uniform(-2, 2, (2, tree.nv))


def equal(actual, expected):
    assert_allclose(actual, expected, rtol=1e-10, atol=1e-10)


def test_link_velocities(tree, state):
    """Eqs. 10, 12, 21, 23 and 26: S(ω_i) = Rᵀ Ṙ, S(ω_i⁰) = Ṙ Rᵀ, ω_i⁰ = R ω_i."""
    q, qd = state
    witness = formulations.kronecker(tree)
    poses = witness.poses(q)
    rates = [partial(lambda x, i=i: witness.poses(x)[i], q) @ qd for i in range(tree.nv)]
    for A, A_dot, (_, J_R, _, _) in zip(poses, rates, witness.jacobians(q), strict=True):
        R, R_dot = A[:3, :3], A_dot[:3, :3]
        equal(R.T @ R_dot, screw.skew(J_R @ qd))
        equal(R_dot @ R.T, screw.skew(R @ J_R @ qd))


def test_the_translational_jacobian_is_a_derivative_by_q(tree, state):
    """Eq. 24 is printed ∂v/∂q̇ = ∂p_C/∂q̇; p_C does not depend on q̇, and Eq. 62 takes ∂p_C/∂q."""
    witness = formulations.kronecker(tree)
    for i, (J_T, _, _, _) in enumerate(witness.jacobians(state[0])):
        equal(J_T, partial(lambda x, i=i: witness.centres(witness.poses(x))[i], state[0]))


def test_theorem_2_needs_the_identity_of_the_columns():
    """Eq. 33 is printed Ḋ = ∂D/∂x (1_r ⊗ ẋ) with r = dim x; D of q columns needs 1_q, as 1_r does not even fit."""
    p, q, r = 2, 3, 4
    slopes, rates = np.random.default_rng(7).normal(size=(p, q, r)), np.arange(1.0, r + 1)[:, None]
    dD = slopes.reshape(p, q * r)  # Eq. 31 for d_ij = Σ_k slope_ijk x_k
    equal(dD @ np.kron(np.eye(q), rates), slopes @ rates[:, 0])
    with pytest.raises(ValueError, match="mismatch"):
        dD @ np.kron(np.eye(r), rates)


def test_equation_36_is_a_sum():
    """[e_1ᵀ … e_nᵀ] (h ⊗ 1_n) = h_1 e_1ᵀ + … + h_n e_nᵀ = hᵀ; it is printed as the row [h_1 e_1ᵀ … h_n e_nᵀ]."""
    h = np.array([2.0, 3.0, 5.0])
    equal(np.eye(3).reshape(1, 9) @ np.kron(h[:, None], np.eye(3)), [h])


def test_the_matrix_of_equation_46_is_not_skew_and_is_that_of_the_lecture(tree, state):
    """U − ½ Vᵀ of Eq. 46 gives C q̇ as well; it exceeds C of Eq. 52 by ½ (U − V), and equals Σ_k h_ijk q̇_k (lecture)."""
    q, qd = state
    witness, n = formulations.kronecker(tree), tree.nv
    dM, rates = witness.dM(q), qd[:, None]
    U, V, C = dM @ np.kron(np.eye(n), rates), dM @ np.kron(rates, np.eye(n)), witness.coriolis_matrix(q, qd)
    equal((np.kron(np.eye(n), rates) - np.kron(rates, np.eye(n))) @ qd, 0)  # Lemma 1, Eq. 47
    first = U - V.T / 2
    equal(first @ qd, C @ qd)
    equal(first - C, (U - V) / 2)
    equal(first, formulations.lagrangian(tree).h_ijk(q) @ qd)
    equal(U - 2 * C, V.T - V)  # Eq. 55
    skew = U - 2 * first
    assert np.abs(skew + skew.T).max() > 0.01


def test_poses_of_the_example():
    """Eqs. 56 and 57, from Table 1."""
    l0, l1, l2 = 0.294, 0.190, 0.170
    q = np.array([0.4, 0.9, -0.5])
    (s1, s2, s23), (c1, c2, c23) = (f([q[0], q[1], q[1] + q[2]]) for f in (np.sin, np.cos))
    reach, height = l1 * c2 + l2 * c23, l0 - l1 * s2 - l2 * s23
    expected = [
        [[c1, 0, -s1, 0], [s1, 0, c1, 0], [0, -1, 0, l0]],
        [[c1 * c2, -c1 * s2, -s1, l1 * c1 * c2], [s1 * c2, -s1 * s2, c1, l1 * s1 * c2], [-s2, -c2, 0, l0 - l1 * s2]],
        [[c1 * c23, -c1 * s23, -s1, c1 * reach], [s1 * c23, -s1 * s23, c1, s1 * reach], [-s23, -c23, 0, height]],
    ]
    tree = sd.robots.truc_3r()
    for link, A, T in zip(tree.links[1:], formulations.kronecker(tree).poses(q), expected, strict=True):
        equal(A[:3], T)
        equal(tree.forward_kinematics(link, q)[:3], T)
