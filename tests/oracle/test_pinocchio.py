"""Entry by entry against Pinocchio: real robots read by both, the same trees built in both."""

import re
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from branched import branched_rph
from engine import Engine, model_of, robot, robot_file
from kinds import EVERY, GROUPS, MOVING, SINGLE
from numpy.testing import assert_allclose, assert_array_equal

from screwdyn import padded_sum, robots
from screwdyn.testing import random_tree

pytestmark = pytest.mark.oracle

STATES = 20  # of each robot
EPS = np.finfo(float).eps
FRAMES = ("com", "body", "base", "mixed")
CENTROIDAL = (
    ("center_of_mass", "q"),
    ("center_of_mass_velocity", "q qd"),
    ("center_of_mass_jacobian", "q"),
    ("center_of_mass_bias_acceleration", "q qd"),
    ("centroidal_momentum", "q qd"),
    ("centroidal_momentum_matrix", "q"),
    ("centroidal_momentum_matrix_dot", "q qd"),
    ("centroidal_momentum_rate", "q qd qdd"),
)


def agree(actual, expected, scale=None):
    """1e-9 relative in every entry; for entries that cancel, 1e-13 of the largest term."""
    scale = np.abs(expected).max() if scale is None else scale
    assert np.shape(actual) == np.shape(expected)
    assert_allclose(actual, expected, rtol=1e-9, atol=1e-13 * max(scale, 1))


def compare(tree, engine, seed=0, states=STATES):
    rng = np.random.default_rng(seed)
    for _ in range(states):
        q, (qd, qdd) = tree.random_configuration(rng), rng.uniform(-2, 2, (2, tree.nv))
        of_dynamics(tree, engine, q, qd, qdd)
        of_centroids(tree, engine, q, qd, qdd)
        of_links(tree, engine, q, qd, qdd)


def of_dynamics(tree, engine, q, qd, qdd):
    M, C = tree.mass_and_coriolis(q, qd)
    agree(M, engine.mass_matrix(q))
    agree(C, engine.coriolis_matrix(q, qd), np.abs(M).max() * np.abs(qd).sum())
    # Moments of the weight grow with the distances that free, planar and sliding joints cover.
    weight = 10 * tree.mass * (1 + np.abs(q).max(initial=0))
    forces = weight + np.abs(M).max() * (np.abs(qdd).sum() + np.abs(qd).sum() ** 2)
    agree(tree.gravity_vector(q), engine.gravity_vector(q), weight)
    agree(tree.bias_force(q, qd), engine.bias_force(q, qd), forces)
    agree(tree.inverse_dynamics(q, qd, qdd), engine.inverse_dynamics(q, qd, qdd), forces)
    C, slower = engine.coriolis_matrix(q, qd), 0.7 * qd[::-1]
    expected = engine.mass_matrix(q) @ qdd + C @ slower + engine.gravity_vector(q)
    agree(tree.reference_dynamics(q, qd, slower, qdd), expected, forces)
    agree(tree.transposed_velocity_product(q, qd), C.T @ qd, forces)
    # q̈ has an error of κ(M) roundings. Pinocchio's articulated bodies have up to twelve times as many in trees of group
    # joints, so that its matrix is solved instead.
    kappa = np.linalg.cond(M) if tree.nv else 1
    expected = np.linalg.solve(engine.mass_matrix(q), 10 * qdd - engine.bias_force(q, qd))
    terms = np.abs(expected).max() + np.abs(qd).sum() ** 2 + weight / np.abs(M).max()
    assert_allclose(tree.forward_dynamics(q, qd, 10 * qdd), expected, rtol=0, atol=4 * kappa * EPS * terms)
    agree(tree.kinetic_energy(q, qd), engine.kinetic_energy(q, qd))
    # Pinocchio does not include bodies welded to the base.
    still = tree.neutral()
    raised = engine.potential_energy(q) - engine.potential_energy(still)
    agree(tree.potential_energy(q) - tree.potential_energy(still), raised, weight)
    agree(tree.momentum(q, qd), engine.momentum(q, qd), tree.mass * (1 + np.abs(qd).sum()))


def of_centroids(tree, engine, q, qd, qdd):
    state = {"q": q, "qd": qd, "qdd": qdd}
    terms = (1 + tree.mass) * (1 + np.abs(q).max()) ** 2 * (np.abs(qdd).sum() + (1 + np.abs(qd).sum()) ** 2)
    expected = engine.centroid(q, qd, qdd)
    for name, arguments in CENTROIDAL:
        found = getattr(tree, name)(*(state[x] for x in arguments.split()))
        agree(found, getattr(expected, name), terms)


def of_links(tree, engine, q, qd, qdd):
    engine.kinematics(q, qd, qdd)
    far = (1 + np.abs(q).max()) ** 2
    rates = 4 * far * (1 + np.abs(qd).sum())
    accelerations = 4 * far * (np.abs(qdd).sum() + (1 + np.abs(qd).sum()) ** 2)
    for link, pose in zip(tree.links, tree.link_poses(q), strict=True):
        agree(pose, engine.pose(link))
        agree(tree.forward_kinematics(link, q), engine.pose(link))
        for frame in FRAMES:
            agree(tree.jacobian(link, q, frame), engine.jacobian(link, frame), far)
            agree(tree.jacobian_dot(link, q, qd, frame), engine.jacobian_dot(link, frame), rates)
            agree(tree.link_twist(link, q, qd, frame), engine.twist(link, frame), rates)
            agree(tree.link_acceleration(link, q, qd, qdd, frame), engine.acceleration(link, frame), accelerations)
            mobility = engine.mobility(link, frame, q)
            if np.linalg.cond(mobility) < 1e8:  # else the link cannot move in every direction
                product = tree.operational_inertia(link, q, frame) @ mobility
                roundings = 100 * EPS * np.linalg.cond(mobility) * np.linalg.cond(tree.mass_matrix(q))
                assert_allclose(product, np.eye(6), rtol=0, atol=roundings)


REAL = [
    ("ur5_robot.urdf", 6),
    ("panda.urdf", 9),
    ("talos_reduced.urdf", 32),
    ("talos_full_v2.urdf", 44),
    ("double_pendulum_continuous.urdf", 2),
    ("kinova.urdf", 6),
    ("icub.urdf", 32),
    ("pr2.urdf", 30),
]


@pytest.mark.parametrize(("file", "nv"), REAL)
def test_real_robots(file, nv):
    tree, model = robot(file)
    assert tree.nv == nv
    compare(tree, Engine(model, tree), states=5)


def test_panda_is_its_description_without_the_hand():
    """Pinocchio holds the fingers, and attributes no mass to them and to the hand."""
    text = Path(robot_file("panda.urdf")).read_text(encoding="utf-8")
    for part in ("hand", "leftfinger", "rightfinger"):
        text = re.sub(rf'(<link name="panda_{part}">.*?)<inertial>.*?</inertial>', r"\1", text, flags=re.DOTALL)
    whole, tree = pin.buildModelFromXML(text), robots.panda()
    fingers = [whole.getJointId(f"panda_finger_joint{k}") for k in (1, 2)]
    model = pin.buildReducedModel(whole, fingers, pin.neutral(whole))
    compare(tree, Engine(model, tree))
    joints = [tree.joint(name) for name in tree.coordinates]
    assert tree.coordinates == tuple(model.names[1:])
    limits = [model.lowerPositionLimit, model.upperPositionLimit, model.effortLimit, model.velocityLimit]
    assert_array_equal([(*joint.limits, joint.effort, joint.velocity) for joint in joints], np.stack(limits, axis=1))


@pytest.mark.parametrize(("file", "nv"), [("solo12.urdf", 18), ("talos_reduced.urdf", 38), ("icub.urdf", 38)])
def test_real_robots_with_a_free_base(file, nv):
    tree, model = robot(file, floating=True)
    assert (tree.nq, tree.nv) == (nv + 1, nv)
    compare(tree, Engine(model, tree), states=5)


def test_branched_rph():
    tree, _ = branched_rph()
    compare(tree, Engine(model_of(tree), tree))


@pytest.mark.parametrize("kinds", [*((kind,) for kind in MOVING), SINGLE, GROUPS, EVERY], ids=" ".join)
@pytest.mark.parametrize("n", [1, 2, 7, 15])
def test_random_trees(n, kinds):
    for seed in range(5 if n < 7 else 2):
        tree = random_tree(np.random.default_rng([n, seed]), n, kinds)
        # Pinocchio computes no centre of mass and no momentum if nothing moves.
        if tree.nv:
            compare(tree, Engine(model_of(tree), tree), seed, states=5)


@pytest.mark.parametrize("kinds", [SINGLE, GROUPS, EVERY], ids=" ".join)
def test_contributions(kinds):
    """The contribution of a link is that of the tree with all other links massless; likewise for subtrees."""
    for seed in range(5):
        rng = np.random.default_rng([7, seed])
        tree = random_tree(rng, 6, kinds)
        q, (qd, qdd) = tree.random_configuration(rng), rng.uniform(-2, 2, (2, tree.nv))
        Engine(model_of(tree), tree).kinematics(q, qd, qdd)
        weight, alone = 10 * tree.mass * (1 + np.abs(q).max()), {}
        for link in tree.links:
            engine = Engine(model_of(tree, only=link), tree)
            shares = engine.mass_matrix(q).copy(), engine.coriolis_matrix(q, qd).copy(), engine.gravity_vector(q).copy()
            part = tree.contribution(link, q, qd)
            columns = [tree.coordinates.index(name) for name in part.coordinates]
            agree(tree.link_kinetic_energy(link, q, qd), engine.kinetic_energy(q, qd))
            if part.coordinates:  # Pinocchio does not include bodies welded to the base
                agree(tree.link_potential_energy(link, q), engine.potential_energy(q), weight)
            engine.kinematics(q, qd, qdd)
            agree(part.J, engine.jacobian(link, "com")[:, columns], weight)
            agree(part.J_dot, engine.jacobian_dot(link, "com")[:, columns], weight * (1 + np.abs(qd).sum()))
            for found, expected in zip((part.M, part.C, part.g), shares, strict=True):
                agree(padded_sum([found]).matrix(tree.coordinates), expected, weight * (1 + np.abs(qd).sum()))
            alone[link] = shares
        for link in tree.links:
            part = tree.subtree_contribution(link, q, qd)
            together = zip(*(alone[other] for other in tree.subtree(link)), strict=True)
            for found, expected in zip((part.M, part.C, part.g), together, strict=True):
                agree(found.matrix(tree.coordinates), sum(expected), weight * (1 + np.abs(qd).sum()))


def test_configurations_move_as_theirs():
    """integrate and difference are Pinocchio's; quaternions of either sign are the same turn."""
    for seed in range(20):
        rng = np.random.default_rng([3, seed])
        tree = random_tree(rng, 5, EVERY)
        engine = Engine(model_of(tree), tree)
        q, v = tree.random_configuration(rng), rng.uniform(-1, 1, tree.nv)
        moved = pin.integrate(engine.model, engine.position(q), engine.velocity(v))
        ours = tree.integrate(q, v)
        theirs = engine.position(ours)
        back = pin.difference(engine.model, theirs, moved)
        assert_allclose(back, 0, atol=1e-12)
        expected = pin.difference(engine.model, engine.position(q), theirs)[engine.order]
        assert_allclose(tree.difference(q, ours), expected, rtol=0, atol=1e-11)
