"""Displayed formulas of Bhangale, Saha, Agrawal 2004, sections 2, 3 and B: which hold, and which are misprints.

The counts of Tables I and II are compared with traced counts by ``benchmarks/formulation_counts.py``.
"""

import numpy as np
import pytest
from duals import rate
from numpy.testing import assert_allclose

import screwdyn as sd
from screwdyn import formulations, screw
from screwdyn.testing import random_tree


@pytest.fixture(scope="module")
def tree():
    return random_tree(np.random.default_rng(12), 5, joints=("revolute", "prismatic"))


@pytest.fixture(scope="module")
def state(tree):
    return np.random.default_rng(13).uniform(-2, 2, (2, tree.nv))


def equal(actual, expected):
    assert_allclose(actual, expected, rtol=1e-10, atol=1e-10)


def blockdiag(blocks):
    return np.block([[b if i == j else np.zeros_like(b) for j, b in enumerate(blocks)] for i in range(len(blocks))])


def test_newton_euler_equations_of_a_link_about_the_point_of_its_joint():
    """M ṫ + W M E t = w (Eqs. 1 and 2) for particles; Eq. 1 is printed with t for ṫ in its first term, Eq. 4 is not."""
    rng = np.random.default_rng(14)
    masses, points = rng.uniform(0.1, 1, 6), rng.normal(size=(6, 3))  # points from O
    t, td = rng.normal(size=(2, 6))
    omega, m, d = screw.skew(t[:3]), masses.sum(), masses @ points / masses.sum()
    I = sum(k * screw.skew(x).T @ screw.skew(x) for k, x in zip(masses, points, strict=True))
    M = np.block([[I, m * screw.skew(d)], [-m * screw.skew(d), m * np.eye(3)]])
    W, E = np.kron(np.eye(2), omega), np.diag([1, 1, 1, 0, 0, 0])
    forces = masses[:, None] * (td[3:] + np.cross(td[:3], points) + points @ (omega @ omega).T)
    expected = np.concatenate([np.cross(points, forces).sum(axis=0), forces.sum(axis=0)])
    equal(M @ td + W @ M @ E @ t, expected)
    assert np.abs(M @ t + W @ M @ E @ t - expected).max() > 0.1
    I_c = I + m * screw.skew(d) @ screw.skew(d)  # I = I^c − d × (m d × 1)
    equal(I_c, sum(k * screw.skew(x - d).T @ screw.skew(x - d) for k, x in zip(masses, points, strict=True)))


def test_the_block_matrices(tree, state):
    """Eqs. 4 to 12: T = T_l T_d, the GIM Tᵀ M T, and both forms of the MCI after Eq. 9, element by element."""
    q, qd = state
    witness = formulations.denoc(tree)
    at, n, zero = witness.blocks(q), tree.nv, np.zeros((6, 6))

    def lower(at):
        return np.block(
            [[witness.A(at, i, j) if j in witness.rows[i].path else zero for j in range(n)] for i in range(n)]
        )

    T_l, T_d = lower(at), blockdiag([p[:, None] for p in at.p])
    T, t = T_l @ T_d, witness.twists(at, qd)
    equal(T @ qd, np.concatenate(t))  # Eq. 7
    M, W = blockdiag(at.M), blockdiag([np.kron(np.eye(2), screw.skew(x[:3])) for x in t])
    E = blockdiag([np.diag([1, 1, 1, 0, 0, 0])] * n)
    T_l_dot = rate(lambda x: lower(witness.blocks(x)), q, qd)
    T_dot = rate(lambda x: lower(witness.blocks(x)) @ blockdiag([p[:, None] for p in witness.blocks(x).p]), q, qd)
    equal(T_dot, T_l_dot @ T_d + T_l @ W @ T_d)
    equal(T.T @ M @ T, witness.GIM(q))
    MCI = witness.MCI(q, qd)
    equal(T.T @ (M @ T_dot + W @ M @ E @ T), MCI)
    M_tilde, M_prime = T_l.T @ M @ T_l, T_l.T @ W @ M @ E @ T_l
    equal(T_d.T @ (T_l.T @ M @ T_l_dot + M_tilde @ W + M_prime) @ T_d, MCI)
    assert np.abs(M_prime - M_tilde).max() > 0.1  # printed with one symbol in Eqs. 9 and 10


def test_composite_masses_are_those_of_rigid_bodies(tree, state):
    """Eq. 13 and the remark after it: M̃_i is the mass matrix about O_i of all that joint i carries."""
    witness = formulations.denoc(tree)
    at = witness.blocks(state[0])
    for i, composite in enumerate(witness.composite(at, at.M)):
        carried = [j for j, row in enumerate(witness.rows) if i in row.path]
        equal(composite, sum(witness.A(at, j, i).T @ at.M[j] @ witness.A(at, j, i) for j in carried))


def test_orthogonal_prismatic_joints_are_decoupled_wherever_their_axes_are():
    """Section 3.2 asks that the axes intersect as well; i_{i+1,i} = m̃ e_{i+1} · e_i shows that this is not needed."""
    tree = sd.KinematicTree()
    tree.attach(sd.Link("one", sd.Inertia.sphere(2, 0.1)), to="base", joint=sd.prismatic("x"))
    box = sd.Inertia.box(3, (0.1, 0.2, 0.3), com=(0.5, 0.4, 0.3))
    tree.attach(sd.Link("two", box), to="one", joint=sd.prismatic("y"), at=(0.3, 0.2, 0.7))
    equal(formulations.denoc(tree).GIM(np.array([0.3, 0.4])), np.diag([5, 3]))


def Q(theta, alpha):
    (s, sa), (c, ca) = np.sin([theta, alpha]), np.cos([theta, alpha])
    return np.array([[c, -s * ca, s * sa], [s, c * ca, -c * sa], [0, sa, ca]])


def test_appendix_b_1_has_a_wrong_sign():
    """[r]_i = Q [r]_{i+1}: its last entry is r_y sin α + r_z cos α; the printed one has a minus sign."""
    theta, alpha, r = 0.4, 1.1, np.array([0.3, -0.5, 0.7])
    r_c = r[1] * np.cos(alpha) - r[2] * np.sin(alpha)
    first = r[0] * np.cos(theta) - r_c * np.sin(theta), r[0] * np.sin(theta) + r_c * np.cos(theta)
    equal(Q(theta, alpha) @ r, [*first, r[1] * np.sin(alpha) + r[2] * np.cos(alpha)])


def congruence(I, theta, alpha, *, beta_1, beta_5):
    """The matrix of appendix B.2; ``beta_1``: subtracted from i_11 in β_1; ``beta_5``: sign of β_5 in entry 2, 2."""
    (s, sa), (c, ca) = np.sin([theta, alpha]), np.cos([theta, alpha])
    b1 = (I[0, 0] - beta_1) * s - 2 * I[0, 1] * c
    b2, b4 = I[0, 2] * c + I[1, 2] * s, I[0, 2] * s - I[1, 2] * c
    b3, b5 = b1 * c + I[0, 1], b1 * s
    b7 = ((I[1, 1] - I[2, 2]) + b5) * sa + 2 * b4 * ca
    b8 = b7 * sa
    low = b2 * sa - b3 * ca, b2 * ca + b3 * sa, b4 - b7 * ca
    upper = [[I[0, 0] - b5, low[0], low[1]], [low[0], I[1, 1] + beta_5 * b5 - b8, low[2]]]
    return np.array([*upper, [low[1], low[2], b8 + I[2, 2]]])


def test_appendix_b_2_turns_the_tensor_the_other_way():
    """Its 16M 17A give Qᵀ I Q, once i_12 in β_1 is i_22 and −β_5 in entry 2, 2 is +β_5.

    The paper announces Q I Qᵀ, for the tensor given in frame i + 1; with R_x before R_z it takes as many operations.
    """
    a = np.random.default_rng(15).normal(size=(3, 3))
    I, theta, alpha = a + a.T, 0.4, 1.1
    R = Q(theta, alpha)
    corrected = congruence(I, theta, alpha, beta_1=I[1, 1], beta_5=1)
    equal(corrected, R.T @ I @ R)
    assert np.abs(corrected - R @ I @ R.T).max() > 0.1
    for wrong in ({"beta_1": I[0, 1], "beta_5": 1}, {"beta_1": I[1, 1], "beta_5": -1}):
        found = congruence(I, theta, alpha, **wrong)
        assert min(np.abs(found - R.T @ I @ R).max(), np.abs(found - R @ I @ R.T).max()) > 0.1


def test_appendix_b_2_has_a_wrong_sign_in_the_parallel_axis_term():
    """d × (m d × 1): the last diagonal entry is −δ_y d_y − δ_x d_x; the printed one has +δ_y d_y."""
    d, m = np.array([0.3, -0.5, 0.7]), 2.0
    x, y, z = m * d * d
    expected = np.array([[-z - y, 0, 0], [0, -z - x, 0], [0, 0, -y - x]]) + m * (np.outer(d, d) - np.diag(d * d))
    equal(m * screw.skew(d) @ screw.skew(d), expected)


def test_the_planar_mass_matrix_needs_the_parallel_axis_term():
    """Section 3.2.1, step 5: about O_i the corner is i_zz^c + m d², which takes 2M 2A; and m d^T R is m (R d)^T.

    As printed the matrix is not symmetric, since R^T = −R, and the corner is the moment about the centre of mass.
    """
    d, m, I = np.array([0.3, -0.5]), 2.0, 0.1
    tree = sd.KinematicTree()
    tree.attach(sd.Link("body", sd.Inertia.planar(m, d, I)), to="base", joint=sd.revolute("z"))
    witness = formulations.denoc(tree)
    planar = witness.blocks(np.zeros(1)).M[0][np.ix_([2, 3, 4], [2, 3, 4])]
    R = np.array([[0, -1], [1, 0]])
    equal(planar[0, 0], I + m * d @ d)
    equal(planar[1:, 0], m * R @ d)
    equal(planar[0, 1:], m * R @ d)
    equal(planar[0, 1:], -m * d @ R)
