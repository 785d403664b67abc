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


@pytest.mark.parametrize("slip", [1e-7, 1e-5])
def test_slopes_where_a_slip_of_a_large_wheel_begins(slip):
    """Friction turns within 1 μm/s: wider differences made Radau's steps thousands of times too short."""
    tree, radius = sd.KinematicTree(gravity=(8, 0, -9.81)), 1e4
    tree.attach(sd.Inertia.sphere(1e15, radius), to="base", joint=sd.free(), name="wheel")
    tree.touch("wheel", on=sd.Plane(), points=(0, 0, 0), radius=radius, friction=0.1)
    y = np.r_[0, 0, 0, 1, 0, 0, radius, 0, 1e-4, 0, slip + 1e-4 * radius, 0.5 * slip, 0, np.zeros(ENERGIES)]
    equations = EquationsOfMotion(tree, None, None, None, y)
    equations.settle(0.0, y)
    equations.bounded.young[:], equations.bounded.speed[:] = True, slip
    rates = np.arange(7, 13)
    found = equations.jacobian(0.0, y)
    for k in (7, 8, 10, 11):
        ahead = 1e-4 * slip / (radius if k < 10 else 1) * np.eye(len(y))[k]
        expected = ((equations.rate(0.0, y + ahead) - equations.rate(0.0, y - ahead)) / (2 * ahead[k]))[rates]
        assert_allclose(found[rates, k], expected, atol=5e-3 * np.abs(expected).max())
