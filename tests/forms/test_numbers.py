"""Laws that hold on every tree, on random trees of every kind of joint and without joints, by kernels and by tapes.

Tolerances are relative to the largest entry of the terms that are added. 1e-13 is some hundreds of roundings; 1e-11
stands where a derivative is taken by differences (see ``cases.derivative``).
"""

from itertools import pairwise

import numpy as np
import pytest
import traced
from branched import branched_rph
from cases import EPS, cases, christoffel, close, derivative, gradient, norm, total
from hypothesis import assume, given

from screwdyn import Inertia, KinematicTree, Link, ScrewdynError, helical, padded_sum, prismatic, revolute, screw
from screwdyn.backends.kernels import entry as kernels
from screwdyn.forms import numbers
from screwdyn.robots import ur5
from screwdyn.testing import random_inertia, random_pose, random_tree

ROUNDING, DIFFERENCE = 1e-13, 1e-11
FRAMES = ("com", "body", "base", "mixed")


@pytest.fixture(autouse=True, scope="module", params=[kernels.Kernels, traced.Kernels], ids=["compiled", "traced"])
def route(request):
    """The compiled recursions, and the tapes recorded from them: the laws hold for both."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numbers, "Kernels", request.param)
        yield


@given(cases(least=1))
def test_totals_are_the_padded_sum_of_contributions(case):
    tree, q, qd = case.tree, case.q, case.qd
    parts = tree.contributions(q, qd)
    assert [part.link for part in parts] == list(tree.links[1:])
    M, C = tree.mass_and_coriolis(q, qd)
    totals = {name: padded_sum(getattr(part, name) for part in parts).matrix(tree.coordinates) for name in "MCg"}
    close(M, totals["M"], norm(M), ROUNDING)
    close(C, totals["C"], norm(M) * total(qd), ROUNDING)
    close(tree.gravity_vector(q), totals["g"], 9.81 * tree.mass, ROUNDING)


@given(cases())
def test_mass_matrix_is_the_same_with_and_without_coriolis_and_symmetric_positive(case):
    tree, q, qd = case.tree, case.q, case.qd
    M, C = tree.mass_and_coriolis(q, qd)
    close(M, tree.mass_matrix(q), norm(M), 0)
    close(C, tree.coriolis_matrix(q, qd), 1, 0)
    close(M, M.T, 1, 0)
    assert (np.linalg.eigvalsh(M) > 0).all()


@given(cases())
def test_coriolis_matrix_is_christoffel(case):
    tree, q, qd = case.tree, case.q, case.qd
    M, C = tree.mass_and_coriolis(q, qd)
    close(C, christoffel(tree.mass_matrix, q, qd), norm(M) * total(qd), DIFFERENCE)


@given(cases(least=1))
def test_every_contribution_is_christoffel_by_itself(case):
    tree, q, qd = case.tree, case.q, case.qd
    link = tree.links[-1]
    path = tree.contribution(link, q, qd).coordinates
    at = np.array([tree.coordinates.index(name) for name in path], dtype=int)

    def own_mass_matrix(x):
        whole = np.zeros((*x.shape[:-1], tree.nv))
        whole[...] = q
        whole[..., at] = x
        return np.asarray(tree.contribution(link, whole, 0 * whole).M)

    part = tree.contribution(link, q, qd)
    expected = christoffel(own_mass_matrix, q[at], qd[at])
    close(part.C, expected, norm(np.asarray(part.M)) * total(qd), DIFFERENCE)


@given(cases())
def test_rate_of_mass_matrix_is_coriolis_plus_its_transpose(case):
    tree, q, qd = case.tree, case.q, case.qd
    M, C = tree.mass_and_coriolis(q, qd)
    close(C + C.T, derivative(tree.mass_matrix, q, qd), norm(M) * total(qd), DIFFERENCE)


@given(cases())
def test_coriolis_matrix_is_linear_and_symmetric_in_the_velocities(case):
    tree, q, a, b = case.tree, case.q, case.qd, case.qdd
    Ca, Cb = tree.coriolis_matrix(q, a), tree.coriolis_matrix(q, b)
    scale = norm(tree.mass_matrix(q)) * total(a) * total(b)
    close(Ca @ b, Cb @ a, scale, ROUNDING)
    close(tree.coriolis_matrix(q, 2 * a - 3 * b), 2 * Ca - 3 * Cb, 6 * norm(tree.mass_matrix(q)), ROUNDING)


@given(cases())
def test_inverse_dynamics_is_the_equation_of_motion(case):
    tree, q, qd, qdd = case.tree, case.q, case.qd, case.qdd
    M, C = tree.mass_and_coriolis(q, qd)
    g = tree.gravity_vector(q)
    scale = norm(M) * (total(qdd) + total(qd) ** 2) + 9.81 * tree.mass
    close(tree.inverse_dynamics(q, qd, qdd), M @ qdd + C @ qd + g, scale, ROUNDING)
    close(tree.bias_force(q, qd), C @ qd + g, scale, ROUNDING)
    close(tree.velocity_product(q, qd), C @ qd, scale, ROUNDING)


@given(cases())
def test_forward_undoes_inverse_dynamics(case):
    """Within 2κ(M)ε of the accelerations that the torque stands for: q̈, and those due to motion and to weight."""
    tree, q, qd, qdd = case.tree, case.q, case.qd, case.qdd
    assume(tree.nv > 0)
    M = tree.mass_matrix(q)
    tau = tree.inverse_dynamics(q, qd, qdd)
    weight = 9.81 * tree.mass / np.linalg.norm(M, 2)
    terms = np.linalg.norm(qdd) + np.linalg.norm(qd) ** 2 + weight
    bound = 2 * np.linalg.cond(M) * EPS * terms
    assert np.linalg.norm(tree.forward_dynamics(q, qd, tau) - qdd) <= bound


@given(cases())
def test_inverse_undoes_forward_dynamics(case):
    tree, q, qd, tau = case.tree, case.q, case.qd, 10 * case.qdd
    assume(tree.nv > 0)
    M = tree.mass_matrix(q)
    qdd = tree.forward_dynamics(q, qd, tau)
    scale = norm(tau) + norm(M) * (total(qdd) + total(qd) ** 2) + 9.81 * tree.mass
    close(tree.inverse_dynamics(q, qd, qdd), tau, scale, ROUNDING)


@given(cases())
def test_gravity_vector_is_the_gradient_of_potential_energy(case):
    tree, q = case.tree, case.q
    close(tree.gravity_vector(q), gradient(tree.potential_energy, q), 9.81 * max(tree.mass, 1), DIFFERENCE)


@given(cases())
def test_energy_changes_by_the_power_of_the_torques(case):
    """d/dt (T + U) = τ·q̇ with q̈ from forward dynamics, the energies differentiated along the motion."""
    tree, q, qd, tau = case.tree, case.q, case.qd, 10 * case.qdd
    qdd = tree.forward_dynamics(q, qd, tau)
    M = tree.mass_matrix(q)
    rate = qd @ M @ qdd + derivative(lambda x: tree.kinetic_energy(x, qd) + tree.potential_energy(x), q, qd)
    scale = norm(M) * norm(qd) * (norm(qdd) + norm(qd) ** 2) + 9.81 * tree.mass * norm(qd) + norm(tau) * norm(qd)
    close(rate, tau @ qd, max(scale, 1), DIFFERENCE)


@given(cases(least=1))
def test_kinetic_energy_link_by_link(case):
    """½ q̇ᵀMq̇ = Σ ½ VᵀIV, with V from each link's own Jacobian and I about its own origin."""
    tree, q, qd = case.tree, case.q, case.qd
    T = 0.0
    for name in tree.links[1:]:
        if (inertia := tree.link(name).inertia) is not None:
            V = tree.jacobian(name, q, "body") @ qd
            T += 0.5 * V @ inertia.matrix @ V
    expected = 0.5 * qd @ tree.mass_matrix(q) @ qd
    scale = 1 + norm(tree.mass_matrix(q)) * total(qd) ** 2
    close(tree.kinetic_energy(q, qd), expected, scale, ROUNDING)
    close(T, expected, scale, ROUNDING)


@given(cases(least=1))
def test_wrenches_act_through_the_body_jacobian(case):
    tree, q, qd, qdd = case.tree, case.q, case.qd, case.qdd
    wrenches = {name: case.rng.uniform(-3, 3, 6) for name in tree.links}
    torque = sum(tree.jacobian(name, q, "body").T @ F for name, F in wrenches.items())
    scale = 10 * len(tree.links) ** 2
    close(tree.wrench_torque(q, wrenches), torque, scale, ROUNDING)
    tau = tree.inverse_dynamics(q, qd, qdd)
    close(tree.inverse_dynamics(q, qd, qdd, wrenches), tau - torque, scale + norm(tau), ROUNDING)
    pushed = tree.forward_dynamics(q, qd, tau, wrenches)
    alone = tree.forward_dynamics(q, qd, tau + torque)
    kappa = np.linalg.cond(tree.mass_matrix(q)) if tree.nv else 0
    close(pushed, alone, norm(alone) + 1, max(kappa, 1) * ROUNDING)


@given(cases(least=1))
def test_poses_follow_the_joints_screws(case):
    """T = ∏ home · exp(Ŝ q) along the path (docs/mathematics.md §1)."""
    tree, q = case.tree, case.q
    at = dict(zip(tree.coordinates, q, strict=True))
    for name in tree.links:
        T = np.eye(4)
        for parent, link in pairwise(tree.path(name)):
            edge = tree.graph.edges[parent, link]
            T = T @ edge["home"]
            if edge["coordinate"] is not None:
                T = T @ screw.exp(edge["joint"].screw * at[edge["coordinate"]])
        close(tree.forward_kinematics(name, q), T, 1 + norm(T), ROUNDING)


@pytest.mark.parametrize("frame", FRAMES)
@given(case=cases(least=1, most=6))
def test_jacobian_is_the_derivative_of_the_pose(frame, case):
    tree, q = case.tree, case.q
    link = tree.links[-1]
    inertia = tree.link(link).inertia
    com = np.zeros(3) if inertia is None else inertia.com
    T = tree.forward_kinematics(link, q)
    dT = gradient(lambda x: tree.forward_kinematics(link, x), q)
    R, p = T[:3, :3], T[:3, 3]
    expected = np.zeros((6, tree.nv))
    for k in range(tree.nv):
        w = screw.unskew(dT[:3, :3, k] @ R.T)
        v = dT[:3, 3, k]
        expected[:, k] = {
            "mixed": np.concatenate([w, v]),
            "base": np.concatenate([w, v - np.cross(w, p)]),
            "body": np.concatenate([R.T @ w, R.T @ v]),
            "com": np.concatenate([R.T @ w, R.T @ (v + np.cross(w, R @ com))]),
        }[frame]
    close(tree.jacobian(link, q, frame), expected, 1 + norm(T) ** 2, DIFFERENCE)


@pytest.mark.parametrize("frame", FRAMES)
@given(case=cases(least=1, most=6))
def test_jacobian_dot_is_the_entry_by_entry_rate(frame, case):
    tree, q, qd = case.tree, case.q, case.qd
    link = tree.links[-1]
    rate = derivative(lambda x: tree.jacobian(link, x, frame), q, qd)
    scale = (1 + norm(tree.jacobian(link, q, frame))) * (1 + total(qd))
    close(tree.jacobian_dot(link, q, qd, frame), rate, scale, DIFFERENCE)


@given(cases(least=1))
def test_com_jacobian_is_the_contribution_s(case):
    tree, q, qd = case.tree, case.q, case.qd
    for part in tree.contributions(q, qd):
        J, J_dot = tree.jacobian(part.link, q), tree.jacobian_dot(part.link, q, qd)
        at = np.array([tree.coordinates.index(name) for name in part.coordinates], dtype=int)
        others = np.array([i for i in range(tree.nv) if i not in at], dtype=int)
        close(J[:, at], part.J, 1 + norm(J), ROUNDING)
        close(J_dot[:, at], part.J_dot, 1 + norm(J_dot) + norm(J) * norm(qd), ROUNDING)
        close(J[:, others], np.zeros((6, len(others))), 1, 0)
        close(J_dot[:, others], np.zeros((6, len(others))), 1, 0)


@given(cases(least=1))
def test_momentum_is_the_sum_over_links(case):
    tree, q, qd = case.tree, case.q, case.qd
    total = np.zeros(6)
    for name in tree.links[1:]:
        if (inertia := tree.link(name).inertia) is not None:
            X = screw.Ad(screw.inverse(tree.forward_kinematics(name, q)))
            total += X.T @ inertia.matrix @ tree.jacobian(name, q, "body") @ qd
    close(tree.momentum(q, qd), total, 1 + norm(total) + tree.mass * (1 + norm(qd)) * 10, ROUNDING)


@pytest.mark.parametrize(
    "joint", [revolute([1, 2, 3], (0.1, 0, 0.2)), prismatic([3, 1, -1]), helical([0, 1, 2], 0.2, (0.3, 0, 0))]
)
@given(case=cases())
def test_momentum_changes_by_weight_and_by_what_the_base_passes_on(joint, case):
    """With one joint on the base, d/dt momentum = weight + that joint's reaction, of which Sᵀ sees the torque."""
    tree = KinematicTree(gravity=case.tree.gravity)
    tree.attach(random_inertia(case.rng), to="base", joint=joint, at=random_pose(case.rng), name="root")
    tree.attach(case.tree, to="root", at=random_pose(case.rng), name="stem")
    q, qd, qdd = case.rng.uniform(-2, 2, (3, tree.nq))
    h_dot = derivative(lambda x: tree.momentum(x, qd), q, qd) + tree.momentum(q, qdd)
    weight = np.zeros(6)
    for name in tree.links:
        if (inertia := tree.link(name).inertia) is not None:
            T = tree.forward_kinematics(name, q)
            force = inertia.mass * tree.gravity
            weight += np.concatenate([np.cross(T[:3, :3] @ inertia.com + T[:3, 3], force), force])
    S = tree.jacobian("root", q, "base")[:, 0]
    scale = (1 + norm(S)) * (norm(h_dot) + norm(weight) + norm(tree.momentum(q, qd)) * total(qd))
    close(S @ (h_dot - weight), tree.inverse_dynamics(q, qd, qdd)[0], scale, DIFFERENCE)


@pytest.mark.slow
@given(cases(least=1, batch=(2, 3)))
def test_a_batch_gives_the_bits_of_its_members(case):
    tree, q, qd, qdd = case.tree, case.q, case.qd, case.qdd
    link = tree.links[-1]
    wrench = case.rng.normal(size=(2, 3, 6))
    questions = {
        "M": lambda i: tree.mass_matrix(q[i]),
        "C": lambda i: tree.coriolis_matrix(q[i], qd[i]),
        "g": lambda i: tree.gravity_vector(q[i]),
        "inverse": lambda i: tree.inverse_dynamics(q[i], qd[i], qdd[i]),
        "forward": lambda i: tree.forward_dynamics(q[i], qd[i], qdd[i]),
        "bias": lambda i: tree.bias_force(q[i], qd[i]),
        "velocity": lambda i: tree.velocity_product(q[i], qd[i]),
        "joints": lambda i: tree.joint_force(q[i], qd[i]),
    }
    for name, ask in questions.items():
        whole = ask(...)
        for i in np.ndindex(2, 3):
            assert whole[i].tobytes() == ask(i).tobytes(), name
    # NumPy multiplies stacks of small matrices with another routine than single ones.
    pose = tree.forward_kinematics(link, q)
    for i in np.ndindex(2, 3):
        close(pose[i], tree.forward_kinematics(link, q[i]), 1 + norm(pose), ROUNDING)
        J, J_dot = tree.jacobian(link, q, "base")[i], tree.jacobian_dot(link, q, qd, "base")[i]
        close(J, tree.jacobian(link, q[i], "base"), 1 + norm(J), ROUNDING)
        close(J_dot, tree.jacobian_dot(link, q[i], qd[i], "base"), 1 + norm(J_dot), ROUNDING)
        T, U, h = tree.kinetic_energy(q, qd), tree.potential_energy(q), tree.momentum(q, qd)
        close(T[i], tree.kinetic_energy(q[i], qd[i]), 1 + norm(T), ROUNDING)
        close(U[i], tree.potential_energy(q[i]), 1 + 9.81 * tree.mass, ROUNDING)
        tau = tree.wrench_torque(q, {link: wrench})
        close(tau[i], tree.wrench_torque(q[i], {link: wrench[i]}), 1 + norm(tau), ROUNDING)
        close(h[i], tree.momentum(q[i], qd[i]), 1 + norm(h), ROUNDING)
        part, one = tree.contribution(link, q, qd), tree.contribution(link, q[i], qd[i])
        for term in ("M", "C", "g"):
            many, single = np.asarray(getattr(part, term)), np.asarray(getattr(one, term))
            close(many[i], single, 1 + norm(many) + 10 * norm(qd), ROUNDING)


def test_batches_broadcast_against_single_states():
    rng = np.random.default_rng(0)
    tree = random_tree(rng, 4)
    q, qd, qdd = rng.normal(size=(5, 1, 4)), rng.normal(size=(3, 4)), rng.normal(size=4)
    tau = tree.inverse_dynamics(q, qd, qdd, {"link2": rng.normal(size=(2, 1, 1, 6))})
    assert tau.shape == (2, 5, 3, 4)
    assert tree.mass_matrix(np.zeros((0, 4))).shape == (0, 4, 4)
    assert tree.forward_dynamics(q, qd, qdd).shape == (5, 3, 4)


def test_a_tree_without_coordinates_has_empty_numbers():
    tree = KinematicTree(Link("base", Inertia.sphere(2, 0.1)))
    tree.attach(Inertia.point(3, (0, 0, 2)), to="base", at=(0, 0, 1))
    assert tree.mass_matrix([]).shape == tree.coriolis_matrix([], []).shape == (0, 0)
    assert tree.gravity_vector([]).shape == tree.forward_dynamics([], [], []).shape == (0,)
    assert tree.mass_matrix(np.zeros((7, 0))).shape == (7, 0, 0)
    assert tree.inverse_dynamics(np.zeros((7, 0)), [], []).shape == (7, 0)
    assert tree.kinetic_energy([], []) == 0
    assert tree.potential_energy([]) == pytest.approx(3 * 9.81 * 3, rel=1e-15)
    assert tree.jacobian("payload", []).shape == (6, 0)
    assert (tree.momentum([], []) == np.zeros(6)).all()
    part = tree.contribution("payload", [], [])
    assert part.M.matrix(()).shape == (0, 0)


def test_moving_the_base_mass_moves_no_number_but_the_potential_energy():
    rng = np.random.default_rng(1)
    light, heavy = KinematicTree(), KinematicTree(Link("base", random_inertia(rng)))
    arm = random_tree(rng, 5)
    for tree in (light, heavy):
        tree.attach(arm, to="base", name="arm")
    q, qd, qdd = rng.normal(size=(3, 5))
    assert (light.inverse_dynamics(q, qd, qdd) == heavy.inverse_dynamics(q, qd, qdd)).all()
    base = heavy.link("base").inertia
    expected = 9.81 * base.mass * base.com[2]
    assert heavy.potential_energy(q) - light.potential_energy(q) == pytest.approx(expected, rel=1e-12)


def test_joint_force_is_damping_friction_and_spring():
    tree = KinematicTree()
    hinge = revolute(damping=0.5, friction=2, stiffness=3, rest=0.25, name="hinge")
    tree.attach(Inertia.sphere(1, 0.1), to="base", joint=hinge, name="a")
    tree.attach(Inertia.sphere(1, 0.1), to="a", joint=prismatic("x"), name="b")
    force = tree.joint_force([1.25, 5], [[2, 1], [-2, 1], [0, 1]])
    np.testing.assert_allclose(force, [[-1 - 2 - 3, 0], [1 + 2 - 3, 0], [-3, 0]], atol=1e-15)


def test_gravity_may_be_set_and_is_kept_apart_from_the_velocity_product():
    rng = np.random.default_rng(2)
    tree = random_tree(rng, 5)
    q, qd = rng.normal(size=(2, 5))
    g, velocity = tree.gravity_vector(q), tree.velocity_product(q, qd)
    tree.gravity = 2 * tree.gravity
    np.testing.assert_allclose(tree.gravity_vector(q), 2 * g, rtol=1e-13)
    np.testing.assert_array_equal(tree.velocity_product(q, qd), velocity)
    tree.gravity = (0, 0, 0)
    assert norm(tree.gravity_vector(q)) == 0
    np.testing.assert_array_equal(tree.bias_force(q, qd), velocity)


def test_a_branched_tree_of_every_kind_of_joint_has_the_values_of_another_engine():
    tree, oracle = branched_rph()
    assert len(oracle["states"]) > 1
    for state in oracle["states"]:
        q, qd, qdd = (np.array(state[name]) for name in ("q", "qd", "qdd"))
        for found, name in (
            (tree.mass_matrix(q), "mass_matrix"),
            (tree.coriolis_matrix(q, qd), "coriolis_matrix"),
            (tree.gravity_vector(q), "gravity_vector"),
            (tree.inverse_dynamics(q, qd, qdd), "inverse_dynamics"),
        ):
            expected = np.array(state[name])
            # The tolerance of entries that are zero up to rounding is 1e-13 of the largest.
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-13 * np.abs(expected).max(), err_msg=name)


@pytest.mark.parametrize(("link", "frame"), [("toll0", "com"), ("tool0", "locale")])
def test_an_unknown_link_or_frame_is_one_error(link, frame):
    """Its traceback begins with the call, not with a search of the library."""
    with pytest.raises(ScrewdynError, match=f"{link}|{frame}") as raised:
        ur5().jacobian(link, [0] * 6, frame)
    assert raised.value.__context__ is None
