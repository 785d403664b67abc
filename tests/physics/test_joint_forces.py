"""Forces of joints, the wrench in a joint, and steps of integrators."""

import math

import numpy as np
import pytest
import sympy
from cases import CENTRAL
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import screwdyn as sd
from screwdyn.physics import charts
from screwdyn.physics.joint_forces import SLIP, JointForces, subtree_wrench
from screwdyn.testing import random_tree

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


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1e-40, 1e-12, 1e-4, 1.0, math.pi, 20.0]))
def test_integrate_and_normalize(seed, size):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 6, ("spherical", "free", "planar", "revolute"))
    q, v = tree.random_configuration(rng), size * rng.normal(size=tree.nv)
    where, groups, *_ = tree.model.charts
    reached = np.zeros(tree.nq)
    charts.integrate(where, groups, q, v, reached)
    assert_allclose(reached, tree.integrate(q, v), rtol=0, atol=1e-13 * (1 + size))
    stretched = 1.0005 * reached
    charts.normalize(groups, stretched)
    assert_allclose(stretched, tree.model.configurations.normalized(1.0005 * reached), rtol=1e-15)


def test_quaternions_keep_their_length():
    rng = np.random.default_rng(2)
    tree = random_tree(rng, 2, ("spherical",), frames=0)
    where, groups, *_ = tree.model.charts
    q = 1.0003 * tree.random_configuration(rng)
    reached = np.zeros(tree.nq)
    charts.integrate(where, groups, q, rng.normal(size=tree.nv), reached)
    assert_allclose(np.linalg.norm(reached.reshape(-1, 4), axis=1), 1.0003, rtol=1e-14)


@given(st.integers(0, 2**32 - 1))
def test_its_component_along_the_screw_is_the_force_of_the_joint(seed) -> None:
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 5)
    q, qd, qdd = rng.normal(size=(3, 2, tree.nv))
    tau = tree.inverse_dynamics(q, qd, qdd)
    for link in tree.links[1:]:
        joint = tree.topology.attachments[link].joint
        if joint.nv:
            found = subtree_wrench(tree, link, q, qd, qdd) @ joint.screw
            np.testing.assert_allclose(
                found, tau[:, tree.coordinates.index(link.replace("link", "joint"))], rtol=1e-9, atol=1e-9
            )


@given(st.integers(0, 2**32 - 1))
def test_on_the_base_it_is_the_reaction_that_changes_the_momentum(seed) -> None:
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 4, ("revolute", "universal", "spherical", "planar", "free"))
    q, (qd, qdd) = np.stack([tree.random_configuration(rng) for _ in range(2)]), rng.normal(size=(2, 2, tree.nv))
    c, rate = tree.center_of_mass(q), tree.centroidal_momentum_rate(q, qd, qdd)
    force = rate[:, 3:] - tree.mass * tree.gravity
    found = subtree_wrench(tree, tree.base, q, qd, qdd)
    np.testing.assert_allclose(found[:, 3:], force, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found[:, :3], rate[:, :3] + np.cross(c, force), rtol=1e-9, atol=1e-9)


def test_a_body_that_hangs_at_rest_pulls_with_its_weight() -> None:
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.point(2.0, (0.3, 0, 0)), to="base", name="bob")
    rest = np.zeros((1, 0))
    np.testing.assert_allclose(subtree_wrench(tree, "bob", rest, rest, rest), [[0, -2 * 9.81 * 0.3, 0, 0, 0, 2 * 9.81]])
