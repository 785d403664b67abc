"""The terms on the right-hand side of Fu (Eq. 3.3-45) and of the lecture (Eq. 50) in simulations."""

from dataclasses import replace
from math import exp, log, pi, sqrt

import numpy as np
import pytest
from numpy.testing import assert_allclose

import screwdyn as sd
from screwdyn import formulations, robots

DAMPING, FRICTION = (0.4, 0.3), (0.5, 0.2)


def two_link(friction=FRICTION):
    """Fu's arm with friction in its joints; frame 2 is at the tip."""
    arm = robots.two_link()
    for link, name, b, f in zip(arm.links[1:], arm.joints, DAMPING, friction, strict=True):
        arm.replace_joint(link, replace(arm.joint(name), damping=b, friction=f))
    return arm


def on_the_tip(arm, q, force, moment=(0, 0, 0)):
    """The wrench on link 2 of a force and a moment in axes of the base."""
    R = arm.forward_kinematics("link2", q)[:3, :3]
    return {"link2": np.concatenate([R.T @ moment, R.T @ force])}


def wall(t, state):
    """An elastic wall at x = 1.6 m, along which the tip slides."""
    x = state.tree.forward_kinematics("link2", state.q)[0, 3]
    return on_the_tip(state.tree, state.q, [-300 * max(0.0, x - 1.6), 0, 0])


@pytest.mark.slow
def test_the_lecture_s_terms_in_a_simulation():
    """τ = B q̈ + C q̇ + g + F_v q̇ + F_s sgn q̇ + Jᵀ h_e at all samples of a swing against a wall."""
    arm = two_link()
    lecture = formulations.lagrangian(arm)
    run = sd.simulate(
        arm,
        sd.State(arm, [-2.2, 0.3], [1.0, -0.5]),
        1.2,
        torque=lambda t, state: [6 * np.sin(3 * t), 2.0],
        wrenches=wall,
        step=0.02,
    )
    wrenches = [wall(t, state) for t, state in zip(run.t, run.states, strict=True)]
    pushed = np.array([np.abs(wrench["link2"]).max() for wrench in wrenches])
    # While a joint is at rest, any friction below F_s may act, where the formula has sgn 0 = 0.
    moving = (run.qd != 0).all(axis=1)
    assert (pushed > 1).sum() > 5 and (pushed == 0).sum() > 5 and moving.sum() > 40
    assert (np.sign(run.qd[moving]).min(axis=0) == -1).all() and (np.sign(run.qd[moving]).max(axis=0) == 1).all()
    for k in np.flatnonzero(moving):
        tau = lecture.motor_torque(run.q[k], run.qd[k], run.qdd[k], wrenches[k])
        assert_allclose(tau, run.tau[k], atol=1e-10)


def test_fu_s_motor_torque_drives_the_arm_along_a_motion():
    """Feed-forward of Eqs. 3.3-43 to 3.3-45 with b_i and a hand that carries a load: f_3, n_3 in axes of the base."""
    arm = two_link(friction=(0, 0))
    fu = formulations.newton_euler(arm)

    def reference(t):
        return np.array([[0.3 + t**2, np.sin(2 * t)], [2 * t, 2 * np.cos(2 * t)], [2, -4 * np.sin(2 * t)]])

    def load(t, q):
        return on_the_tip(arm, q, [3 * np.cos(5 * t), -20, 0], [0, 0, 2])

    run = sd.simulate(
        arm,
        sd.State(arm, *reference(0)[:2]),
        0.8,
        torque=lambda t, state: fu.motor_torque(*reference(t), load(t, reference(t)[0])),
        wrenches=lambda t, state: load(t, state.q),
        step=0.1,
    )
    assert_allclose(run.q, [reference(t)[0] for t in run.t], atol=1e-8)
    # Without the load the same torques lead elsewhere.
    assert np.abs(run.tau[-1] - arm.inverse_dynamics(*reference(run.t[-1]))).max() > 1


@pytest.fixture
def disk():
    """I = 0.5 kg m², b = 0.4 N m s, F_s = 0.3 N m."""
    tree = sd.KinematicTree()
    body = sd.Inertia(1.0, tensor=np.diag([0.3, 0.3, 0.5]))
    tree.attach(body, to="base", joint=sd.revolute("z", damping=0.4, friction=0.3, name="axle"))
    return tree


def test_viscous_and_coulomb_friction_bring_a_disk_to_rest(disk):
    """q̇ = (q̇_0 + F_s/b) e^{−bt/I} − F_s/b until the time I/b ln(1 + b q̇_0/F_s)."""
    I, b, F, rate = 0.5, 0.4, 0.3, 3.0
    stop = I / b * log(1 + b * rate / F)
    run = sd.simulate(disk, sd.State(disk, qd=[rate]), 3.0, step=0.25)
    assert 1 < stop < 2.5
    expected = [(rate + F / b) * exp(-b * t / I) - F / b if t < stop else 0 for t in run.t]
    assert_allclose(run.qd[:, 0], expected, atol=1e-8)
    assert run.qd[-1, 0] == 0
    assert_allclose(run.q[-1, 0], I / b * (rate - F / b * log(1 + b * rate / F)), atol=1e-8)


def test_a_cart_rebounds_from_an_elastic_wall():
    """Contact lasts π √(m/k), and the rate is reversed."""
    m, k, rate = 2.0, 800.0, 1.5
    cart = sd.KinematicTree(gravity=(0, 0, 0))
    cart.attach(sd.Inertia.point(m), to="base", joint=sd.prismatic("x"), name="cart")

    def contact(t, state):
        return {"cart": [0, 0, 0, -k * max(0.0, state.q[0]), 0, 0]}

    run = sd.simulate(cart, sd.State(cart, [-0.3], [rate]), 1.0, wrenches=contact, step=1e-2)
    touch, leave = 0.3 / rate, 0.3 / rate + pi * sqrt(m / k)
    w = sqrt(k / m)
    expected = np.select(
        [run.t < touch, run.t < leave],
        [-0.3 + rate * run.t, rate / w * np.sin(w * (run.t - touch))],
        -rate * (run.t - leave),
    )
    assert_allclose(run.q[:, 0], expected, atol=1e-7)
    assert_allclose(run.energy.external[-1], 0, atol=1e-7)
