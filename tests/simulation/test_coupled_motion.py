"""Motions and changes of trees in which joints follow others."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import screwdyn as sd
from screwdyn.testing import random_inertia, random_pose, random_tree


def gripper(rng):
    """A random arm with a hand whose second finger follows the first one, and carries a flap that follows as well."""
    tree = random_tree(rng, 3)
    hand = tree.links[-1]
    tree.attach(random_inertia(rng), hand, sd.prismatic("x", name="left"), random_pose(rng), "l")
    right = sd.prismatic("y", name="right", mimic=sd.Mimic("left", -1.5, 0.1))
    tree.attach(random_inertia(rng), hand, right, random_pose(rng), "r")
    flap = sd.revolute("z", name="flap", mimic=sd.Mimic("right", 2.0))
    tree.attach(random_inertia(rng), "r", flap, random_pose(rng), "f")
    q = tree.random_configuration(rng)
    return tree, sd.State(tree, q, rng.uniform(-2, 2, tree.nv))


@given(st.integers(0, 2**32 - 1))
def test_a_lock_in_motion_projects_the_momenta_of_all_joints_that_stop(seed):
    tree, state = gripper(np.random.default_rng(seed))
    M, poses = tree.mass_matrix(state.q), tree.link_poses(state.q)
    j = tree.coordinates.index("left")
    r = [k for k in range(tree.nv) if k != j]
    event = tree.lock("left", state)
    expected = np.linalg.solve(M[np.ix_(r, r)], M[r] @ state.qd)
    assert_allclose(event.state.qd, expected, rtol=1e-9, atol=1e-11)
    after = np.zeros(len(M))
    after[r] = expected
    assert_allclose(event.impulse, [M[j] @ (after - state.qd)], rtol=1e-8, atol=1e-10)
    lost = 0.5 * (state.qd @ M @ state.qd - after @ M @ after)
    assert_allclose(event.energy_lost, lost, rtol=1e-8, atol=1e-11)
    assert_allclose(tree.link_poses(event.state.q), poses, atol=1e-13)
    back = tree.unlock("left", event.state)
    assert_allclose(back.state.q, state.q, atol=1e-15)
    assert back.state.velocity("left") == 0


@given(st.integers(0, 2**32 - 1))
def test_a_grasp_by_the_finger_that_follows_conserves_momentum(seed):
    rng = np.random.default_rng(seed)
    tree, state = gripper(rng)
    payload, V = random_inertia(rng), rng.uniform(-2, 2, 6)
    M, J = tree.mass_matrix(state.q), tree.jacobian("f", state.q, "body")
    event = tree.grasp(state, payload, to="f", twist=V, name="crate")
    new = tree.mass_matrix(state.q)
    assert_allclose(new, M + J.T @ payload.matrix @ J, rtol=1e-9, atol=1e-10)
    expected = np.linalg.solve(new, M @ state.qd + J.T @ payload.matrix @ V)
    assert_allclose(event.state.qd, expected, rtol=1e-7, atol=1e-9)
    released = tree.release(event.state, "crate")
    assert_allclose(released.released.twist, J @ expected, rtol=1e-7, atol=1e-9)


def test_joints_that_follow_cannot_be_exchanged_in_motion():
    tree, state = gripper(np.random.default_rng(1))
    follow = sd.revolute("z", mimic=sd.Mimic("joint1"))
    for change in (
        lambda: tree.grasp(state, sd.Inertia.sphere(1, 0.1), to="f", twist="at_rest", joint=follow),
        lambda: tree.replace_joint("l", follow, state=state),
        lambda: tree.replace_joint("r", sd.prismatic("x"), state=state),
        lambda: tree.move("r", "link1", sd.fixed(), state=state),
    ):
        with pytest.raises(sd.JointError, match=r"follow.* which cannot be exchanged in motion"):
            change()
    with pytest.raises(sd.JointError, match="joint 'left' is followed by another one"):
        tree.replace_joint("l", sd.prismatic("z"), state=state)


def test_a_run_is_that_of_the_tree_with_one_freedom_worked_out_by_hand():
    # A mass m1 on a rail, and a mass m2 that moves −2 times as far: (m1 + 4 m2) ẍ = −4 d ẋ − (k1 + 4 k2) x.
    tree = sd.KinematicTree()
    m1, m2, k1, k2 = 1.2, 0.7, 3.0, 1.5
    tree.attach(sd.Inertia.point(m1, (0, 0, 0)), "base", sd.prismatic("x", stiffness=k1, name="a"))
    second = sd.prismatic("x", stiffness=k2, rest=0.4, damping=0.1, mimic=sd.Mimic("a", -2.0, 0.4))
    tree.attach(sd.Inertia.point(m2, (0, 0, 0)), "base", second, name="b")
    run = sd.simulate(tree, sd.State(tree, [0.3]), 4.0)
    m, c, k = m1 + 4 * m2, 4 * 0.1, k1 + 4 * k2
    decay, w = c / (2 * m), np.sqrt(k / m - (c / (2 * m)) ** 2)
    expected = 0.3 * np.exp(-decay * run.t) * (np.cos(w * run.t) + decay / w * np.sin(w * run.t))
    assert_allclose(run["a"], expected, atol=1e-8)


@pytest.mark.slow
def test_rollouts_agree_with_runs():
    tree, state = gripper(np.random.default_rng(3))
    tree.attach(sd.Inertia.sphere(0.5, 0.1, (0, 0.1, 0)), "l", sd.spherical(damping=0.2), name="bob")
    state = sd.State(tree, {"joint1": 0.2}, np.linspace(-0.5, 0.5, tree.nv))
    run = sd.simulate(tree, state, 0.1, step=0.01)
    found = tree.compile().rollout(state.q, state.qd, steps=200, dt=5e-4, method="rk4")
    assert_allclose(found.q, run.states[-1].q, atol=1e-6)
    assert_allclose(found.qd, run.states[-1].qd, atol=1e-5)


def test_dry_friction_of_a_joint_that_follows_holds_both():
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.point(1.0, (0, 0, 0)), "base", sd.prismatic("x", name="a"))
    second = sd.prismatic("x", friction=2.0, mimic=sd.Mimic("a", -3.0))
    tree.attach(sd.Inertia.point(1.0, (0, 0, 0)), "base", second, name="b")
    still = sd.simulate(tree, sd.State(tree), 1.0, step=0.01, torque=lambda t, state: [5.9])
    assert still["a"][-1] == 0
    moves = sd.simulate(tree, sd.State(tree), 1.0, step=0.01, torque=lambda t, state: [6.1])
    # (1 + 9) ẍ = 6.1 − 3 · 2
    assert_allclose(moves["a"][-1], 0.5 * 0.01, rtol=1e-5)
    assert moves.states[-1].tree.coordinates == ("a",)


def test_an_equilibrium_balances_all_coupled_weights():
    tree = sd.KinematicTree()
    rod = sd.Inertia.rod(1.0, 1.0, com=(0.5, 0, 0))
    tree.attach(rod, "base", sd.revolute("y", passive=True, name="a"))
    tree.attach(rod, "base", sd.revolute("y", stiffness=2.0, mimic=sd.Mimic("a", 0.5, 0.2)))
    (a,) = tree.equilibrium([0.0])
    b, weight = 0.5 * a + 0.2, 9.81 * 0.5
    assert_allclose(weight * np.cos(a) + 0.5 * (weight * np.cos(b) - 2.0 * b), 0, atol=1e-13)


def geared(ratio, mimic_limits=None, leader_limits=None):
    """A slide, and a second one whose position is ratio times that of the first one plus 0.1 m."""
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    tree.attach(sd.Inertia.point(2.0), "base", sd.prismatic("x", limits=leader_limits, name="a"), name="first")
    mimic = sd.Mimic("a", ratio, 0.1)
    tree.attach(
        sd.Inertia.point(1.0), "base", sd.prismatic("y", limits=mimic_limits, mimic=mimic, name="b"), name="2nd"
    )
    return tree


@pytest.mark.slow
@pytest.mark.parametrize("ratio, side", [(2.0, "upper"), (-2.0, "lower")])
@pytest.mark.parametrize("stop", [None, "inelastic", sd.SpringStop(40.0, 0.5)])
def test_limits_of_a_joint_that_follows_are_limits_of_the_joint_followed(ratio, side, stop):
    own = (-np.inf, 0.7) if ratio > 0 else (-0.5, np.inf)
    tree = geared(ratio, mimic_limits=own)
    run = sd.simulate(tree, sd.State(tree, qd=[1.0]), 1.0, step=0.02, stops=stop and {"b": stop})
    event = run.events[0].event
    assert (event.joint, event.link, event.coordinate, event.side) == ("b", "2nd", "a", side)
    assert_allclose(run.events[0].t, 0.3, atol=1e-7)
    # The same limit and the spring as it acts on the first joint.
    plain = geared(ratio, leader_limits=(-np.inf, 0.3))
    spring = isinstance(stop, sd.SpringStop)
    same = sd.SpringStop(160.0, 2.0) if spring else stop
    expected = sd.simulate(plain, sd.State(plain, qd=[1.0]), 1.0, step=0.02, stops=same)
    assert len(run.events) == len(expected.events)
    assert_allclose(run["a"], expected["a"], atol=1e-9)
    assert_allclose(run.energy.potential, expected.energy.potential, atol=1e-9)
    assert_allclose(run.energy.residual, 0, atol=1e-7)
    assert (run["a"].max() > 0.31) == (stop != "inelastic")


def test_a_joint_that_follows_another_one_has_no_history_and_says_so():
    tree, state = gripper(np.random.default_rng(0))
    run = sd.simulate(tree, state, 0.01)
    words = "joint 'right' has no coordinate of its own: it follows 'left', and its position is -1.5 times"
    for ask in (
        lambda: run["right"],
        lambda: run.velocity("right"),
        lambda: state["right"],
        lambda: sd.State(tree, {"right": 0.1}),
    ):
        with pytest.raises(sd.UnknownNameError, match=words):
            ask()
