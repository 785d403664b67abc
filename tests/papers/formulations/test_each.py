"""What only one formulation has: the parts of its equations, and its matrix C."""

import numpy as np
import pytest
from duals import partial
from numpy.testing import assert_allclose

import screwdyn as sd
from screwdyn import formulations, robots, screw
from screwdyn.papers.formulations.fu import PoseDerivatives, Q, pseudo_inertia
from screwdyn.papers.formulations.jacobians import derivative_of_product
from screwdyn.testing import random_pose, random_tree

JOINTS = ("revolute", "prismatic", "helical", "universal", "fixed")


@pytest.fixture(scope="module")
def tree():
    """Revolute, prismatic and helical joints in four branches, damping and friction, and a tool that is welded on."""
    tree = random_tree(np.random.default_rng(0), 5, joints=JOINTS)
    tree.attach(
        sd.Link("hand", sd.Inertia.sphere(1, 0.1)),
        to="link4",
        joint=sd.revolute((1, 2, 3), (0.1, 0.2, 0.3), damping=0.7, friction=0.4),
        at=(0.1, 0.2, 0.3),
    )
    tree.attach(
        sd.Link("tool", sd.Inertia.box(0.5, (0.1, 0.2, 0.3))), to="hand", at=random_pose(np.random.default_rng(9))
    )
    return tree


@pytest.fixture(scope="module")
def state(tree):
    return np.random.default_rng(1).uniform(-2, 2, (3, tree.nv))


def equal(actual, expected):
    assert_allclose(actual, expected, rtol=1e-10, atol=1e-10)


@pytest.fixture(scope="module")
def wrenches(tree):
    """A wrench on every link, also on those welded to others and to the base."""
    return dict(zip(tree.links, np.random.default_rng(4).normal(size=(len(tree.links), 6)), strict=True))


# Lagrange-Euler


def test_frames_of_denavit_and_hartenberg_have_the_matrices_of_fu():
    """Eqs. 3.2-5, 3.2-6 and 3.2-8."""
    turn, slide = np.zeros((2, 4, 4))
    turn[0, 1], turn[1, 0], slide[2, 3] = -1, 1, 1
    for row, expected in zip(formulations.lagrange_euler(robots.stanford()).rows, (turn, turn, slide), strict=True):
        assert (Q(row) == expected).all()
    rng = np.random.default_rng(0)
    general = [dict(zip(("a", "d", "alpha", "theta"), rng.uniform(0.1, 1.5, 4), strict=True)) for _ in range(20)]
    for row in formulations.lagrange_euler(sd.KinematicTree.from_dh(general)).rows:  # exact: rounding would be counted
        assert (*row.z, *row.p, row.sigma, row.h) == (0, 0, 1, 0, 0, 0, 1, 0)
    theta, alpha, a, d = 0.3, 0.7, 0.2, 0.4
    (row,) = formulations.lagrange_euler(sd.KinematicTree.from_dh([{"alpha": alpha, "a": a, "d": d}])).rows
    s, c, sa, ca = np.sin(theta), np.cos(theta), np.sin(alpha), np.cos(alpha)
    A = [[c, -ca * s, sa * s, a * c], [s, ca * c, -sa * c, a * s], [0, sa, ca, d], [0, 0, 0, 1]]
    assert_allclose(row.pose(theta), A, atol=1e-15)


def test_the_pseudo_inertia_is_the_sum_over_the_points_of_a_body():
    rng = np.random.default_rng(0)
    masses, points = rng.uniform(0.1, 1, 7), rng.normal(size=(7, 3))
    tree = sd.KinematicTree()
    tree.attach(sd.Link("body"), to="base", joint=sd.revolute("z"))
    for m, r in zip(masses, points, strict=True):
        tree.attach(sd.Inertia.point(m, r), to="body")
    (row,) = formulations.lagrange_euler(tree).rows
    r = np.column_stack([points, np.ones(7)])
    equal(pseudo_inertia(row), np.einsum("k,ki,kj->ij", masses, r, r))


def test_derivatives_of_poses(tree, state):
    rows, q, step = formulations.lagrange_euler(tree).rows, state[0], 1e-5
    at, i = PoseDerivatives(rows, q), 5
    assert len(rows[i].path) > 2
    for j in rows[i].path:
        ahead, behind = (PoseDerivatives(rows, q + d * np.eye(len(q))[j]) for d in (step, -step))
        assert_allclose(at.U(i, j), (ahead.A(i) - behind.A(i)) / (2 * step), atol=1e-9)
        for k in rows[i].path:
            assert_allclose(at.U2(i, j, k), (ahead.U(i, k) - behind.U(i, k)) / (2 * step), atol=1e-9)


def test_h_ikm_are_christoffel_symbols(tree, state):
    h = formulations.lagrange_euler(tree).h_ikm(state[0])
    equal(h, formulations.lagrangian(tree).c_ijk(state[0]))
    assert np.abs(np.einsum("iii->i", h)).max() < 1e-12  # Fu: h_iii = 0


# Newton-Euler


def test_both_newton_euler_recursions_with_forces_on_links(tree, state, wrenches):
    witness = formulations.newton_euler(tree)
    expected = tree.inverse_dynamics(*state, wrenches)
    equal(witness.inverse_dynamics(*state, wrenches), expected)
    equal(witness.inverse_dynamics_in_base_frame(*state, wrenches), expected)
    equal(witness.inverse_dynamics_in_base_frame(*state), tree.inverse_dynamics(*state))


def test_damping_is_part_of_the_motor_torque(tree, state, wrenches):
    damping = np.zeros(tree.nv)
    damping[-1] = 0.7 * state[1, -1]
    witness = formulations.newton_euler(tree)
    equal(witness.motor_torque(*state, wrenches), tree.inverse_dynamics(*state, wrenches) + damping)


def test_a_wrench_on_an_unknown_link_is_refused(tree, state):
    for name in ("newton_euler", "lagrangian"):
        with pytest.raises(sd.UnknownNameError, match="did you mean 'hand'"):
            getattr(formulations, name)(tree).motor_torque(*state, {"hnad": np.zeros(6)})
    with pytest.raises(sd.ShapeError, match="the wrench on 'hand' must have shape"):
        formulations.newton_euler(tree).inverse_dynamics(*state, {"hand": np.zeros(3)})


# Generalized d'Alembert


def test_translational_parts_are_those_of_point_masses():
    """D and h of bodies without tensors; the rotational parts are the remainder."""
    tree = random_tree(np.random.default_rng(2), 4, joints=["revolute"])
    points = tree.copy()
    for link in tree.links[1:]:
        body = tree.link(link).inertia
        if body is not None:
            points.set_inertia(link, sd.Inertia.point(body.mass, body.com))
    witness = formulations.generalized_dalembert(tree)
    q, qd = np.random.default_rng(3).uniform(-2, 2, (2, tree.nv))
    equal(witness.D_tran(q), points.mass_matrix(q))
    equal(witness.h_tran(q, qd), points.velocity_product(q, qd))
    equal(witness.D_rot(q), tree.mass_matrix(q) - points.mass_matrix(q))
    equal(witness.h_rot(q, qd), tree.velocity_product(q, qd) - points.velocity_product(q, qd))


# Kronecker


def test_the_derivative_of_a_product_is_that_of_truc():
    """Eq. 32 for D = A + B x₁ + C x₂ and H of the same kind, against the product multiplied out."""
    D, H = np.random.default_rng(0).normal(size=(2, 3, 4, 4))
    x = np.array([0.3, -0.8])
    at = [A[0] + A[1] * x[0] + A[2] * x[1] for A in (D, H)]
    by = [np.stack([A[1], A[2]], axis=-1).reshape(4, 8) for A in (D, H)]
    expected = np.stack([D[k] @ at[1] + at[0] @ H[k] for k in (1, 2)], axis=-1)
    equal(derivative_of_product(at[0], by[0], at[1], by[1]), expected.reshape(4, 8))


def test_the_rate_of_m_is_that_of_truc(tree, state):
    """Ṁ = ∂M/∂q (1 ⊗ q̇) (Eq. 40) is C + Cᵀ."""
    q, qd, _ = state
    C = tree.coriolis_matrix(q, qd)
    equal(formulations.kronecker(tree).dM(q) @ np.kron(np.eye(tree.nv), qd[:, None]), C + C.T)


# The lecture


def test_h_ijk_of_the_lecture_give_the_same_product_and_another_matrix(tree, state):
    q, qd, _ = state
    H = formulations.lagrangian(tree).h_ijk(q) @ qd
    C = tree.coriolis_matrix(q, qd)
    equal(H @ qd, C @ qd)
    assert np.abs(H - C).max() > 0.01


def test_skew_symmetry_of_the_lecture(tree, state):
    """Ḃ − 2C with Ḃ = Σ_k ∂B/∂q_k q̇_k."""
    q, qd, _ = state
    witness = formulations.lagrangian(tree)
    skew = partial(witness.B, q) @ qd - 2 * witness.C(q, qd)
    assert np.abs(skew).max() > 0.01
    equal(skew, -skew.T)


def test_friction_and_contact_are_part_of_the_motor_torque(tree, state, wrenches):
    friction = np.zeros(tree.nv)
    friction[-1] = 0.7 * state[1, -1] + 0.4 * np.sign(state[1, -1])
    expected = tree.inverse_dynamics(*state, wrenches) + friction
    equal(formulations.lagrangian(tree).motor_torque(*state, wrenches), expected)


# DeNOC


def test_the_mci_differs_from_the_christoffel_matrix_as_stated(tree, state):
    """Each link adds J_ωᵀ (½ tr(I) ω̂) J_ω − m J_vᵀ d̂ ω̂ J_ω at O, a point of its joint's axis."""
    q, qd, _ = state
    witness, expected = formulations.denoc(tree), tree.coriolis_matrix(q, qd)
    at = witness.blocks(q)
    for i, row in enumerate(witness.rows):
        J = np.zeros((6, tree.nv))
        for j in row.path:
            J[:, j] = witness.A(at, i, j) @ at.p[j]
        omega, m = screw.skew(J[:3] @ qd), row.m
        expected = expected + J[:3].T @ (0.5 * np.trace(at.M[i][:3, :3]) * omega) @ J[:3]
        expected = expected - m * J[3:].T @ screw.skew(at.d[i]) @ omega @ J[:3]
    MCI = witness.coriolis_matrix(q, qd)
    equal(MCI, expected)
    rate = tree.coriolis_matrix(q, qd) + tree.coriolis_matrix(q, qd).T
    assert np.abs(rate - MCI - MCI.T).max() > 0.01


# Progressive


def test_progressive_terms_of_each_link(tree, state):
    """Three ways to J, two to C, and M and g, are the library's contributions of links on joints of one freedom."""
    q, qd, _ = state
    witness = formulations.progressive(tree)
    found = 0
    for i, _ in enumerate(witness.rows):
        links = [link for link, (at, _) in witness.places.items() if at == i]
        for J in (witness.J_by_transformation(i, q), witness.J_by_rotation(i, q)):
            equal(J, witness.J(i, q))
        equal(witness.C_by_christoffel(i, q, qd), witness.C_i(i, q, qd))
        if len(links) == 1:
            part = tree.contribution(links[0], q, qd)
            equal(witness.J(i, q), part.J)
            equal(witness.M_i(i, q), part.M)
            equal(witness.C_i(i, q, qd), part.C)
            equal(witness.g_i(i, q), part.g)
            found += 1
    assert found > 2
