"""Regulators against closed forms, SciPy, the cost of runs, and what cannot be regulated."""

import numpy as np
import pytest
from cases import by_differences
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp
from scipy.linalg import solve_continuous_are

import screwdyn as sd
from screwdyn import control

CRUCIBLE = sd.Link("crucible", sd.Inertia.planar(1.5, (0.08, 0), 0.006))
HOOK = sd.revolute("z", passive=True, name="hook")


def slider(mass=2.0, **joint):
    tree = sd.KinematicTree(gravity=(0, 0, -9.81))
    tree.attach(sd.Inertia.point(mass), to="base", joint=sd.prismatic("x", name="cart", **joint), name="cart")
    return tree


def pendulum_cart():
    """A cart of 2 kg with a pendulum of 1 kg on 0.5 m, by a massless rod."""
    tree = slider()
    pin = sd.revolute("y", passive=True, name="pin")
    tree.attach(sd.Inertia.point(1.0, (0, 0, -0.5)), to="cart", joint=pin, name="bob")
    return tree


def carrying():
    arm = sd.robots.pelican()
    arm.attach(CRUCIBLE, to="link2", joint=HOOK)
    return arm, arm.equilibrium([-0.8, 1.1, 0.0])


def test_a_double_integrator_by_hand():
    # m ẍ = u with weights q, 0 and r: K = [√(q/r), √(2 m √(q/r))].
    law = control.LQR(slider(), [0.3], [9.0, 0.0], 0.25)
    assert_allclose(law.gain, [[6.0, np.sqrt(2 * 2.0 * 6.0)]], rtol=1e-12)
    assert_allclose(law(0.0, sd.State(slider(), [0.5], [0.1])), [-0.2 * 6 - 0.1 * np.sqrt(24)], rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("angle", "sign"), [(0.0, -1), (np.pi, 1)])
def test_a_cart_with_a_pendulum_by_hand(angle, sign):
    # About y from below: M ẍ = u − m g θ, l θ̈ = ẍ − g θ; upright: l φ̈ = g φ − ẍ.
    M, m, length, g = 2.0, 1.0, 0.5, 9.81
    A, B = np.zeros((4, 4)), np.array([[0], [0], [1 / M], [-sign / (M * length)]])
    A[:2, 2:] = np.eye(2)
    A[2, 1], A[3, 1] = -m * g / M, sign * (M + m) * g / (M * length)
    tree = pendulum_cart()
    own = tree.linearize([0.0, angle])
    assert_allclose(own.A, A, atol=1e-12)
    assert_allclose(own.B, B, atol=1e-12)
    Q, R = np.diag([1.0, 10.0, 0.1, 0.1]), np.array([[0.1]])
    law = control.LQR(tree, [0.0, angle], np.diag(Q), 0.1)
    P = solve_continuous_are(A, B, Q, R)
    assert_allclose(law.gain, B.T @ P / 0.1, rtol=1e-9)
    assert_allclose(law.cost, P, rtol=1e-9)
    start = sd.State(tree, [0.1, angle + 0.02])
    run = sd.simulate(tree, start, 12.0, law, step=0.2, rtol=1e-6)
    assert_allclose(run.q[-1], [0, angle], atol=1e-4)


@pytest.mark.slow
def test_the_cost_of_a_small_motion_is_that_of_the_riccati_equation():
    arm, q = carrying()
    law = control.LQR(arm, q, [10, 10, 100, 0.1, 0.1, 1], 0.01)
    x0 = np.array([1e-3, -2e-3, 3e-3, 0, 1e-2, 0])
    run = sd.simulate(arm, sd.State(arm, q + x0[:3], x0[3:]), 3.0, law, step=0.01, rtol=1e-5)
    x = np.hstack([run.q - q, run.qd])
    u = run.tau - law.tau
    assert not u[:, 2].any()
    rate = (x**2 * [10, 10, 100, 0.1, 0.1, 1]).sum(axis=1) + 0.01 * (u**2).sum(axis=1)
    assert_allclose(np.trapezoid(rate, run.t), x0 @ law.cost @ x0, rtol=5e-3)


@pytest.mark.slow
def test_a_ball_joint_is_regulated_in_its_own_axes():
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.box(2.0, (0.1, 0.2, 0.3), com=(0.1, 0, -0.2)), to="base", joint=sd.spherical(name="ball"))
    pin = sd.revolute("y", passive=True, name="pin")
    tree.attach(sd.Inertia.point(1.0, (0, 0, -0.5)), to=tree.links[-1], joint=pin, name="bob")
    turned = tree.integrate(tree.neutral(), [0.3, -0.4, 0.8, 0.0])
    q = tree.equilibrium(turned)
    law = control.LQR(tree, q, [100.0] * 4 + [1.0] * 4, 0.01)
    off = sd.State(tree, tree.integrate(q, [0.1, -0.1, 0.1, 0.1]), [0.1, 0.2, -0.3, 0.4])
    assert_allclose(law.derivative(0.0, off), by_differences(law, off), rtol=0, atol=1e-8 * np.abs(law.gain).max())
    run = sd.simulate(tree, sd.State(tree, off.q), 4.0, law, step=0.1, rtol=1e-5)
    assert np.abs(tree.difference(q, run.q[-1])).max() < 1e-3


@pytest.mark.slow
def test_along_a_run_the_gains_are_those_of_the_riccati_equation():
    arm, q = carrying()
    q1 = q + np.array([0.1, 0.2, 0])
    move = control.ComputedTorque(arm, lambda t: (q1[:2], np.zeros(2), np.zeros(2)), kp=9, kd=6)
    run = sd.simulate(arm, sd.State(arm, q), 0.5, move, step=1e-2)
    Q, R = np.array([10, 10, 100, 0.1, 0.1, 1.0]), 0.05
    law = control.TimeVaryingLQR(run, Q, R, final=0.0)

    def back(s, P):
        state, k = run.at(0.5 - s), (0.5 - s)
        tau = [np.interp(k, run.t, x) for x in run.tau.T]
        A, B = arm.linearize(state.q, state.qd, tau)
        P = P.reshape(6, 6)
        return (A.T @ P + P @ A - P @ B @ B.T @ P / R + np.diag(Q)).ravel()

    P = solve_ivp(back, (0, 0.25), np.zeros(36), rtol=1e-6, atol=1e-8).y[:, -1].reshape(6, 6)
    state = run.at(0.25)
    B = arm.linearize(state.q, state.qd).B
    x = np.array([1e-3, 2e-3, -3e-3, 0.01, 0.02, -0.01])
    off = sd.State(arm, state.q + x[:3], state.qd + x[3:])
    feedback = (law(0.25, off) - law(0.25, state))[:2]
    assert_allclose(feedback, -B.T @ P @ x / R, rtol=1e-4)


def test_samples_may_be_many_time_constants_apart():
    """The gains of a motion at rest are those of the steady state, whatever the samples."""
    tree = slider()
    run = sd.simulate(tree, sd.State(tree), 40.0, step=20.0)
    law = control.TimeVaryingLQR(run, [9.0, 0.0], 0.25, final=1.0)
    gain = control.LQR(tree, [0.0], [9.0, 0.0], 0.25).gain
    state = sd.State(tree, [0.2], [0.1])
    assert_allclose(law(0.0, state), -gain @ [0.2, 0.1], rtol=1e-9)


@pytest.mark.slow
def test_along_a_run_a_disturbed_crucible_returns():
    arm, q = carrying()

    def way(t):
        s = np.clip(t / 1.5, 0, 1)
        b = 10 * s**3 - 15 * s**4 + 6 * s**5
        return q[:2] + b * np.array([0.4, -0.3]), np.zeros(2), np.zeros(2)

    plan = sd.simulate(arm, sd.State(arm, q), 2.0, control.ComputedTorque(arm, way, kp=100, kd=20), step=0.01)
    law = control.TimeVaryingLQR(plan, [100, 100, 100, 1, 1, 10], 0.01)
    off = sd.State(arm, q + np.array([0, 0, 0.3]))
    ends = {}
    for name, torque in {"open": control.ComputedTorque(arm, way, kp=100, kd=20), "along": law}.items():
        run = sd.simulate(arm, off, 2.0, torque, control_period=5e-3, step=0.01)
        ends[name] = np.abs(run.q[-50:, 2] - plan.q[-50:, 2]).max()
    assert ends["along"] < 0.2 * ends["open"]
    assert law(5.0, plan.states[-1]).shape == (3,)
    assert_allclose(law.derivative(0.7, off), by_differences(law, off, 0.7), rtol=1e-7, atol=1e-7)


@pytest.mark.slow
def test_parts_of_a_run_before_and_after_a_grasp():
    arm, start = sd.robots.pelican(), np.array([-0.8, 1.1])
    hold = control.ComputedTorque(arm, lambda t: (start, np.zeros(2), np.zeros(2)))
    grasp = sd.Grasp(CRUCIBLE, to="link2", joint=HOOK, start="hanging", twist="at_rest", time=0.2)
    fresh = arm.copy()
    plan = sd.simulate(arm, sd.State(arm, start), 0.6, hold, [grasp], step=0.01)
    law = control.TimeVaryingLQR(plan, lambda names: [1e3] * len(names) + [10] * len(names), 0.1)
    run = sd.simulate(fresh, sd.State(fresh, start + 0.01), 0.6, law, [grasp], rtol=1e-6, step=0.02)
    assert np.abs(run.q[-1, :2] - plan.q[-1, :2]).max() < 1e-3
    other = fresh.copy()
    other.attach(sd.Inertia.point(1.0, (0.1, 0, 0)), to="crucible", joint=sd.revolute("z", passive=True, name="tail"))
    with pytest.raises(sd.ScrewdynError, match=r"at t = 0\.3 s the tree has other freedoms .*: it has .*tail"):
        law(0.3, sd.State(other))


def test_what_torques_do_not_reach_is_named():
    tree = slider()
    tree.attach(sd.Inertia.point(1.0), to="base", joint=sd.prismatic("x", passive=True, name="loose"), name="loose")
    with pytest.raises(sd.ScrewdynError, match="torques of cart cannot stabilise loose; give passive joints damping"):
        control.LQR(tree, [0, 0], 1.0, 1.0)
    with pytest.raises(sd.ScrewdynError, match="Q has no weight on cart"):
        control.LQR(slider(), [0], 0.0, 1.0)


@pytest.mark.parametrize(
    ("Q", "R", "match"),
    [
        ([1, 2, 3], 1.0, "Q must be a number, 2 numbers or a 2 × 2 matrix, of cart and of their rates"),
        (-1.0, 1.0, "eigenvalues of Q must be not negative"),
        (1.0, 0.0, "eigenvalues of R must be positive"),
        ([[1, 1], [0, 1]], 1.0, "Q must be symmetric"),
        (np.nan, 1.0, "Q must be symmetric and finite"),
    ],
)
def test_wrong_weights(Q, R, match):
    with pytest.raises(sd.ShapeError, match=match):
        control.LQR(slider(), [0], Q, R)


def test_other_errors():
    arm, q = carrying()
    with pytest.raises(sd.ScrewdynError, match=r"q is no equilibrium; it accelerates .*hook by .*tree\.equilibrium"):
        control.LQR(arm, [0.3, 0.2, 1.0], 1.0, 1.0)
    law = control.LQR(arm, q, 1.0, 1.0)
    with pytest.raises(sd.ShapeError, match="called with a time and a State"):
        law(0.0, q)
    with pytest.raises(sd.ScrewdynError, match="made along a Run"):
        control.TimeVaryingLQR(None, 1.0, 1.0)
    with pytest.raises(sd.ScrewdynError, match=r"a LQR is called with the state of one run, .* torque\(t, q, qd\)"):
        arm.compile().rollout(q, np.zeros(3), 2, 1e-3, law)
    with pytest.raises(sd.ScrewdynError, match="it lacks hook; make one for each tree"):
        law(0.0, sd.State(sd.robots.pelican()))


@pytest.mark.slow
def test_a_load_on_a_rope_grasped_in_mid_run_is_brought_back_although_no_torque_reaches_its_yaw():
    crane = sd.KinematicTree()
    crane.attach(sd.Inertia.point(20), to="base", joint=sd.prismatic("x", name="rail"), name="bridge")
    crane.attach(sd.Inertia.point(20), to="bridge", joint=sd.prismatic("y", name="track"), name="trolley")
    load, rope = sd.Inertia.sphere(5.0, 0.1, com=(0, 0, -2)), sd.spherical(passive=True, name="rope")
    grasp = sd.Grasp(load, to="trolley", joint=rope, twist="co_moving", name="load", time=0.5)
    push = {"control_period": 0.02, "events": [grasp], "step": 0.02}
    plan = sd.simulate(crane.copy(), sd.State(crane), 4.0, lambda t, s: {"rail": 30 * np.cos(2 * t)}, **push)
    law = control.TimeVaryingLQR(plan, 1.0, 1e-4)
    run = sd.simulate(crane, sd.State(crane, [0.2, -0.1], [0.0, 0.3]), 4.0, law, **push)
    end, wanted = run.states[-1], plan.states[-1]
    assert np.abs(end.q - wanted.q).max() < 0.02 and np.abs(end.qd - wanted.qd).max() < 0.05
    hanging = end.tree
    with pytest.raises(sd.ScrewdynError, match=r"cannot stabilise rope\[wz\]"):
        control.LQR(hanging, hanging.neutral(), 1.0, 1.0)
