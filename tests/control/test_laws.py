"""Laws against the equations that the error then obeys: with passive payloads, springs, all kinds of joints."""

import numpy as np
import pytest
from cases import FULL_SOAK, by_differences, close, norm
from hypothesis import given
from hypothesis import strategies as st
from kinds import EVERY
from mechanisms import four_bar

import screwdyn as sd
from screwdyn import control
from screwdyn.testing import random_inertia, random_tree


def still(arm):
    n = len(arm.coordinates)
    q = arm.neutral()
    return lambda t: (q, np.zeros(n), np.zeros(n))


def case(seed, n):
    """A tree of all kinds of joints with a payload on a passive joint and springs; a state; any reference."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, n, EVERY)
    first = sd.revolute("z", damping=0.3, stiffness=2.0, rest=0.1, name="sprung")
    tree.attach(random_inertia(rng), to=tree.links[-1], joint=first, name="own")
    arm = tree.copy()
    hook = sd.universal(passive=True, name="hook")
    tree.attach(random_inertia(rng), to="own", joint=hook, at=(0.1, 0, 0.2), name="load")
    state = sd.State(tree, tree.random_configuration(rng), rng.uniform(-1, 1, tree.nv))
    wanted = arm.random_configuration(rng), *rng.uniform(-1, 1, (2, arm.nv))
    return arm, tree, state, wanted, rng


def errors(arm, tree, state, wanted):
    """e and ė of the driven freedoms, and their indices in the tree."""
    at = [tree.coordinates.index(x) for x in arm.coordinates]
    q = np.array([state[x] for x in arm.positions])
    return arm.difference(wanted[0], q), state.qd[at] - wanted[1], at


def accelerations(tree, state, tau):
    return tree.forward_dynamics(state.q, state.qd, tau + tree.joint_force(state.q, state.qd))


SEEDS, SIZES = st.integers(0, 2**32 - 1), st.integers(0, 4)


@given(SEEDS, SIZES)
def test_computed_torque_leaves_linear_errors(seed, n):
    arm, tree, state, wanted, rng = case(seed, n)
    kp, kd = rng.uniform(1, 9, (2, arm.nv))
    tau = control.ComputedTorque(arm, lambda t: wanted, kp=kp, kd=kd)(0.0, state)
    e, rate, at = errors(arm, tree, state, wanted)
    expected = wanted[2] - kp * e - kd * rate
    kappa = np.linalg.cond(tree.mass_matrix(state.q))
    close(accelerations(tree, state, tau)[at], expected, 1 + norm(expected), 1e-13 * kappa)
    assert not tau[[k for k in range(tree.nv) if k not in at]].any()


@given(SEEDS, SIZES)
def test_passivity_control_leaves_m_and_christoffels_c(seed, n):
    """M ṡ + C s + K s = 0 on the driven rows, with ṡ of the others as it may be: they have s = 0."""
    arm, tree, state, wanted, rng = case(seed, n)
    stiffness, damping = rng.uniform(1, 9, (2, arm.nv))
    tau = control.PassivityControl(arm, lambda t: wanted, stiffness=stiffness, damping=damping)(0.0, state)
    e, rate, at = errors(arm, tree, state, wanted)
    M, C = tree.mass_and_coriolis(state.q, state.qd)
    others = [k for k in range(tree.nv) if k not in at]
    s, s_dot = np.zeros(tree.nv), np.zeros(tree.nv)
    s[at] = rate + stiffness * e
    s_dot[at] = accelerations(tree, state, tau)[at] - (wanted[2] - stiffness * rate)
    # The q̈_r of the others follows from their rows.
    s_dot[others] = np.linalg.solve(M[np.ix_(others, others)], -(M[others] @ s_dot + C[others] @ s))
    K = np.zeros(tree.nv)
    K[at] = damping
    left, kappa = M @ s_dot + C @ s + K * s, np.linalg.cond(M)
    close(left, np.zeros(tree.nv), norm(M) * (1 + norm(s_dot)) + norm(K * s), 1e-13 * kappa)
    assert not tau[others].any()


MORE_SEEDS = range(2, 6) if FULL_SOAK else (2, 4)


@pytest.mark.slow
@pytest.mark.parametrize("law", [control.ComputedTorque, control.PassivityControl, control.GravityCompensation])
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(x, marks=pytest.mark.soak) for x in MORE_SEEDS)])
def test_derivatives_are_those_of_differences(law, seed):
    """Also of torques that are clipped, which have none."""
    arm, tree, state, wanted, rng = case(seed, seed)
    gains = {"kp": 5.0, "kd": rng.uniform(1, 9, arm.nv)} if law is control.ComputedTorque else {"stiffness": 3.0}
    given = (arm, lambda t: wanted)
    if law is control.GravityCompensation:
        given, gains = (arm,), {"damping": rng.uniform(1, 9, arm.nv)}
    tree.replace_joint("own", sd.revolute("z", damping=0.3, stiffness=2.0, friction=1e-4, effort=1e-3, name="sprung"))
    state = sd.State(tree, state.q, state.qd)
    made = law(*given, **gains)
    found, expected = made.derivative(0.0, state), by_differences(made, state)
    np.testing.assert_allclose(found, expected, atol=1e-8 * (1 + np.abs(expected).max()))
    made(0.0, state)
    assert made.saturated == ("sprung",)
    assert not found[tree.coordinates.index("sprung")].any()


def test_derivatives_of_gravity_compensation_with_closed_loops():
    tree, (q, qd) = four_bar()
    law, state = control.GravityCompensation(tree, damping=3.0), sd.State(tree, q, qd)
    np.testing.assert_allclose(law.derivative(0.0, state), by_differences(law, state), rtol=0, atol=1e-6)


@given(SEEDS, SIZES)
def test_gravity_compensation_holds_what_is_driven(seed, n):
    arm, tree, state, _, _ = case(seed, n)
    rest = sd.State(arm, {x: state[x] for x in arm.positions})
    tau = control.GravityCompensation(arm)(0.0, rest)
    M = arm.mass_matrix(rest.q)
    size = norm(arm.gravity_vector(rest.q)) + 10
    close(M @ accelerations(arm, rest, tau), np.zeros(arm.nv), size, 1e-13 * np.linalg.cond(M))
    at = [tree.coordinates.index(x) for x in arm.coordinates]
    others = np.delete(control.GravityCompensation(arm, damping=2.0)(0.0, state), at)
    assert not others.any()


@pytest.mark.slow
def test_a_grasp_and_a_lock_in_the_middle_of_a_motion():
    """e(t) = e0 (1 + k t) exp(−k t) goes on, while a payload swings, until one joint is locked."""
    arm, k = sd.robots.ur5(), 4.0
    target = np.array([0.3, -1.2, 1.4, -0.5, 1.0, 0.2])
    law = control.ComputedTorque(arm, lambda t: (target, np.zeros(6), np.zeros(6)), kp=k**2, kd=2 * k)
    bob = sd.Inertia.sphere(0.5, 0.05, com=(0, 0, 0.2))
    hook = sd.spherical(passive=True, name="hook")
    grasp = sd.Grasp(bob, to="tool0", joint=hook, time=0.2, twist="co_moving", name="bob")
    lock = sd.Lock("wrist_3_joint", time=0.4)
    start = sd.State(arm, target + 0.1)
    run = sd.simulate(arm, start, 0.6, torque=law, events=[grasp, lock], rtol=1e-10, atol=1e-12, step=0.02)
    for t in (0.19, 0.3, 0.39):
        expected = target + 0.1 * (1 + k * t) * np.exp(-k * t)
        state = run.at(t)
        found = np.array([state[x] for x in law.coordinates])
        assert abs(found - expected).max() < 1e-7
    assert "wrist_3_joint" not in run.states[-1].coordinates


def test_torques_stop_at_the_efforts():
    arm = sd.KinematicTree()
    arm.attach(sd.Inertia.point(1.0, (1, 0, 0)), to="base", joint=sd.revolute("y", effort=5.0, name="a"), name="one")
    law = control.ComputedTorque(arm, lambda t: ([0.0], [0.0], [0.0]))
    assert law(0.0, sd.State(arm, [0.5]))[0] == -5.0 and law.saturated == ("a",)
    assert abs(law(0.0, sd.State(arm, [np.pi / 2 - 0.001]))[0]) == 5.0
    held, q = control.GravityCompensation(arm), [np.pi / 2 - 0.1]
    assert held(0.0, sd.State(arm, q))[0] == arm.gravity_vector(q)[0] and not held.saturated


@pytest.mark.parametrize(
    ("what", "error", "match"),
    [
        (lambda arm: control.ComputedTorque(arm, still(arm), kp=-1.0), sd.ShapeError, "kp must be"),
        (lambda arm: control.ComputedTorque(arm, lambda t: None)(0.0, sd.State(arm)), sd.ShapeError, "must return"),
        (lambda arm: control.ComputedTorque(arm, still(arm), kp="high"), sd.ShapeError, "kp must be"),
        (
            lambda arm: control.GravityCompensation(arm)(0.0, sd.State(sd.robots.panda())),
            sd.ScrewdynError,
            "none of the joints that this law drives",
        ),
        (lambda arm: control.ComputedTorque(arm, still(arm), kd=[1.0]), sd.ShapeError, "shoulder_pan"),
        (lambda arm: control.ComputedTorque(arm, np.zeros(6)), sd.ShapeError, "must be a function of time"),
        (lambda arm: control.ComputedTorque(arm, None)(0.0, sd.State(arm)), sd.ShapeError, "serves C source only"),
        (lambda arm: control.ComputedTorque(arm.compile(), still(arm)), sd.ScrewdynError, "made for a KinematicTree"),
        (lambda arm: control.GravityCompensation(arm)(0.0, np.zeros(6)), sd.ShapeError, "a time and a State"),
        (lambda arm: control.ComputedTorque(arm, still(arm), kd=np.nan), sd.ShapeError, "kd must be"),
        (lambda arm: control.PassivityControl(arm, lambda t: ([0.0],) * 3)(0.0, sd.State(arm)), sd.ShapeError, "elbow"),
        (
            lambda arm: control.GravityCompensation(sd.KinematicTree()),
            sd.ScrewdynError,
            "no joint .* is active",
        ),
    ],
)
def test_errors(what, error, match):
    with pytest.raises(error, match=match):
        what(sd.robots.ur5())
