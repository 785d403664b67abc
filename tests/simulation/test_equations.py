"""The equations of motion as the integrators take them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import screwdyn as sd
from screwdyn.simulation.equations import ENERGIES, EquationsOfMotion


def test_jacobian_of_a_damped_pendulum():
    """q̈ = −(g/l) sin q − (d/(m l²)) q̇."""
    g, length, mass, damping = 9.81, 0.5, 2.0, 0.3
    tree = sd.KinematicTree(gravity=(0, 0, -g))
    bob = sd.Inertia.point(mass, (0, 0, -length))
    tree.attach(bob, to="base", joint=sd.revolute("y", damping=damping), name="bob")
    q, qd = 0.7, -1.2
    y = np.array([q, qd, 5.0, 6.0, 7.0])
    found = EquationsOfMotion(tree, None, None, None, y).jacobian(0.0, y)
    exact = np.zeros((2 + ENERGIES, 2 + ENERGIES))
    exact[0, 1] = 1
    exact[1, :2] = -g / length * np.cos(q), -damping / (mass * length**2)
    exact[3, 1] = 2 * damping * qd  # the dissipated power d q̇²
    assert_allclose(found, exact, atol=1e-4)


def test_an_implicit_method_stays_at_rest():
    """Changes of most variables have no effect there, however large they are."""
    tree = sd.robots.pelican()
    target = np.array([0.3, -0.8])

    def torque(t, state):
        return 400 * (target - state.q) - 40 * state.qd + state.tree.gravity_vector(state.q)

    run = sd.simulate(tree, sd.State(tree, target), 0.7, torque, method="Radau", step=1e-3)
    assert_allclose(run.q, np.broadcast_to(target, run.q.shape), atol=1e-12)


@pytest.mark.slow
def test_bdf_comes_to_rest():
    """Its Newton iterations end although rounding keeps their increments from becoming smaller."""
    tree = sd.robots.ur5()
    target = np.array([0.8, 0, 0, 0, 0, 0])

    def torque(t, state):
        return 400 * (target - state.q) - 40 * state.qd

    start = sd.State(tree, {"shoulder_lift_joint": -1})
    run = sd.simulate(tree, start, 12.0, torque, method="BDF", step=0.01)
    assert_allclose(run.qd[-1], 0, atol=1e-12)
    assert_allclose(tree.gravity_vector(run.q[-1]), 400 * (target - run.q[-1]), atol=1e-9)
