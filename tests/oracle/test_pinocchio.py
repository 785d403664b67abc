"""Entry by entry against Pinocchio: real robots read by both, the same trees built in both."""

import numpy as np
import pinocchio as pin
import pytest
from branched import branched_rph
from engine import Engine, model_of, robot
from numpy.testing import assert_allclose
from screwdyn.testing import random_tree

pytestmark = pytest.mark.oracle

STATES = 20  # of each robot


def agree(actual, expected, scale=None):
    """1e-9 relative in every entry; entries that are sums to nothing are held to 1e-13 of the largest term."""
    scale = np.abs(expected).max() if scale is None else scale
    assert_allclose(actual, expected, rtol=1e-9, atol=1e-13 * max(scale, 1))


def compare(tree, engine, seed=0):
    rng = np.random.default_rng(seed)
    frames = {frame.name for frame in engine.model.frames if frame.type == pin.FrameType.BODY}
    for _ in range(STATES):
        q, qd, qdd = rng.uniform(-2, 2, (3, tree.nq))
        M, C = tree.mass_and_coriolis(q, qd)
        agree(M, engine.mass_matrix(q))
        agree(C, engine.coriolis_matrix(q, qd), np.abs(M).max() * np.abs(qd).sum())
        weight = 10 * tree.mass
        agree(tree.gravity_vector(q), engine.gravity_vector(q), weight)
        forces = weight + np.abs(M).max() * (np.abs(qdd).sum() + np.abs(qd).sum() ** 2)
        tau = engine.inverse_dynamics(q, qd, qdd)
        agree(tree.inverse_dynamics(q, qd, qdd), tau, forces)
        # q̈ is known from τ no better than κ(M) roundings, in either engine.
        kappa = np.linalg.cond(M) if tree.nv else 1
        expected = engine.forward_dynamics(q, qd, 10 * qdd)
        terms = np.abs(expected).max() + np.abs(qd).sum() ** 2 + weight / np.abs(M).max()
        assert_allclose(tree.forward_dynamics(q, qd, 10 * qdd), expected, rtol=0, atol=4 * kappa * 2.3e-16 * terms)
        agree(tree.kinetic_energy(q, qd), engine.kinetic_energy(q, qd))
        # Theirs leaves out what is welded to the base.
        raised = engine.potential_energy(q) - engine.potential_energy(0 * q)
        agree(tree.potential_energy(q) - tree.potential_energy(0 * q), raised, weight)
        agree(tree.momentum(q, qd), engine.momentum(q, qd), tree.mass * (1 + np.abs(qd).sum()))
        engine.kinematics(q, qd)
        for link in tree.links[1:]:
            assert link in frames
            agree(tree.forward_kinematics(link, q), engine.pose(link))
            for frame in ("body", "base", "mixed"):
                agree(tree.jacobian(link, q, frame), engine.jacobian(link, frame))
            rate = tree.jacobian_dot(link, q, qd, "base")
            agree(rate, engine.jacobian_dot(link), 4 * np.abs(qd).sum())


@pytest.mark.parametrize(
    ("file", "nq"),
    [
        ("ur5_robot.urdf", 6),
        ("panda.urdf", 9),
        ("talos_reduced.urdf", 32),
        ("talos_full_v2.urdf", 44),
        ("double_pendulum_continuous.urdf", 2),
        ("kinova.urdf", 6),
        ("icub.urdf", 32),
        ("pr2.urdf", 30),
    ],
)
def test_real_robots(file, nq):
    tree, model = robot(file)
    assert tree.nq == nq
    compare(tree, Engine(model, tree))


def test_branched_rph():
    tree, _ = branched_rph()
    compare(tree, Engine(model_of(tree), tree))


ALL = ("revolute", "prismatic", "helical", "fixed")


@pytest.mark.parametrize("kinds", [*((kind,) for kind in ALL[:3]), ALL], ids=" ".join)
@pytest.mark.parametrize("n", [1, 2, 7, 15])
def test_random_trees(n, kinds):
    for seed in range(5):
        tree = random_tree(np.random.default_rng([n, seed]), n, kinds)
        # Pinocchio finds no centre of mass, and so no momentum, where nothing moves.
        if tree.nq:
            compare(tree, Engine(model_of(tree), tree), seed)
