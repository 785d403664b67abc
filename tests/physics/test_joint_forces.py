"""Damping, friction and springs: by hand, and as the gradient of the springs' energy."""

import numpy as np
import pytest
import sympy
from cases import CENTRAL
from numpy.testing import assert_allclose, assert_array_equal

import screwdyn as sd
from screwdyn.physics.joint_forces import SLIP, JointForces

JOINTS = [
    sd.revolute(damping=2.0, friction=3.0, stiffness=4.0, rest=0.5),
    sd.prismatic(stiffness=10.0),
    sd.revolute(friction=1.0),
]


@pytest.fixture
def forces():
    return JointForces.of(JOINTS, None)


def test_forces_by_hand(forces):
    assert_array_equal(forces.viscous_force(np.array([[2.0, 1.0, -1.0]])), [[-4.0, 0, 0]])
    assert_array_equal(forces.smoothed_friction(np.array([0.0, 1.0, 0.0])), [0, 0, 0])
    assert_allclose(forces.smoothed_friction(np.array([[2.0, 1.0, -1.0]])), [[-3.0, 0, 1.0]], rtol=1e-15)
    assert_allclose(forces.spring_force(np.array([1.0, -0.2, 3.0])), [-2.0, 2.0, 0], rtol=1e-15)
    assert forces.spring_energy(np.array([1.0, -0.2, 3.0])) == pytest.approx(0.5 + 0.2)


def test_smoothed_friction_is_continuous_at_rest(forces):
    rates = np.zeros((2, 3))
    rates[:, 2] = [1e-3 * SLIP, 0.5 * SLIP]
    assert_allclose(forces.smoothed_friction(rates)[:, 2], [-1e-3, -np.tanh(0.5)], rtol=1e-6)


def test_spring_force_is_the_gradient_of_the_energy(forces):
    q, h = np.random.default_rng(0).normal(size=3), 0.1
    for i, e in enumerate(np.eye(3)):
        slope = sum(w * (forces.spring_energy(q + k * h * e) - forces.spring_energy(q - k * h * e)) for k, w in CENTRAL)
        assert_allclose(forces.spring_force(q)[i], -slope / h, rtol=1e-10, atol=1e-10)


def test_springs_find_their_positions_beside_joints_of_several_freedoms():
    tree = sd.KinematicTree()
    ball = sd.Inertia.sphere(1.0, 0.1)
    tree.attach(ball, to="base", joint=sd.spherical(damping=0.1), name="hip")
    tree.attach(ball, to="hip", joint=sd.revolute(stiffness=3.0, rest=1.0), name="knee")
    q, qd = [0, 0, 0, 1, 1.5], [1.0, 2.0, 3.0, 4.0]
    assert_allclose(tree.joint_force(q, qd), [-0.1, -0.2, -0.3, -1.5], rtol=1e-15)
    assert tree.model.joint_forces.spring_energy(np.array(q)) == pytest.approx(0.375)


def test_parameters_that_are_expressions():
    with pytest.raises(sd.UnboundSymbolError, match="a joint's own force still depends on k"):
        JointForces.of([sd.revolute(stiffness=sympy.Symbol("k"))], None)
