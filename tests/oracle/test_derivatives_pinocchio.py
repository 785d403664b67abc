"""Derivatives and regressor, entry by entry against Pinocchio's analytical ones."""

import numpy as np
import pinocchio as pin
import pytest
from branched import branched_rph
from engine import Engine, model_of, robot
from kinds import EVERY
from numpy.testing import assert_allclose

from screwdyn import Inertia
from screwdyn.testing import random_inertia, random_tree

pytestmark = pytest.mark.oracle

STATES = 10
EPS = np.finfo(float).eps
# Indices of our ten numbers in Pinocchio's, whose tensor is xx, xy, yy, xz, yz, zz.
THEIRS = [0, 1, 2, 3, 4, 5, 7, 6, 8, 9]


def agree(actual, expected, terms):
    """1e-9 relative in every entry; for entries that cancel, 1e-13 of the size of their terms."""
    assert actual.shape == expected.shape
    assert_allclose(actual, expected, rtol=1e-9, atol=1e-13 * max(terms, 1))


def full(A):
    """A full matrix; Pinocchio fills the upper triangle of symmetric matrices."""
    return np.triu(A) + np.triu(A, 1).T


def moved(place):
    """How a body's ten numbers change with the frame, (10, 10): by differences, since they change linearly."""
    some = pin.Inertia(1.0, np.zeros(3), np.diag([3.0, 4.0, 5.0])).toDynamicParameters()
    numbers = [some, *(some + 0.1 * e for e in np.eye(10)[THEIRS])]
    there = [place.act(pin.Inertia.FromDynamicParameters(x)).toDynamicParameters() for x in numbers]
    return 10 * (np.array(there[1:]) - there[0]).T


def regressor_of(link, Y, model):
    """Ten columns of Pinocchio's regressor for a body in a link's frame instead of its joint's."""
    frame = model.frames[model.getFrameId(link, pin.FrameType.BODY)]
    joint = frame.parentJoint
    if joint == 0:
        return np.zeros((len(Y), 10))
    return Y[:, 10 * joint - 10 : 10 * joint] @ moved(frame.placement)


def compare(tree, engine, seed=0):
    model, data, D = engine.model, engine.data, tree.derivatives
    rng = np.random.default_rng(seed)
    U, V, A = rng.uniform(-2, 2, (3, STATES, tree.nv))
    Q = tree.integrate(tree.neutral(), U)
    ours, solved = D.inverse_dynamics(Q, V, A), D.forward_dynamics(Q, V, A)
    hessian, regressor = D.gravity_vector(Q), D.regressor(Q, V, A)
    for s, (q, v, a) in enumerate(zip(Q, V, A, strict=True)):
        p, u, b = engine.position(q), engine.velocity(v), engine.velocity(a)
        # A single row comes without its axis.
        Y = np.reshape(pin.computeJointTorqueRegressor(model, data, p, u, b), (tree.nv, -1))[engine.order]
        again = tree.subtree_reference_regressor(tree.links[0], Q[s], V[s], V[s], A[s])
        for k, link in enumerate(tree.links[1:]):
            expected = regressor_of(link, Y, model)
            for columns in (regressor[s], again):
                assert_allclose(columns[:, 10 * k : 10 * k + 10], expected, rtol=1e-9, atol=1e-11)
        dq, dqd, M = pin.computeRNEADerivatives(model, data, p, u, b)
        M = engine.matrix(full(M))
        terms = 10 * tree.mass + np.abs(M).max() * (np.abs(a).sum() + np.abs(v).sum() ** 2)
        for found, expected in zip(ours, (engine.matrix(dq), engine.matrix(dqd), M), strict=True):
            agree(found[s], expected, terms)
        agree(hessian[s], engine.matrix(pin.computeGeneralizedGravityDerivatives(model, data, p)), terms)
        # Solutions have errors of κ(M) roundings in both engines.
        pin.computeABADerivatives(model, data, p, u, b)
        theirs = [engine.matrix(x) for x in (data.ddq_dq, data.ddq_dv, full(data.Minv))]
        kappa = np.linalg.cond(M)
        size = np.abs(theirs[2]).max() * terms
        for found, expected in zip(solved, theirs, strict=True):
            assert_allclose(found[s], expected, rtol=0, atol=4 * kappa * EPS * size)


def test_ten_parameters_of_a_body():
    rng = np.random.default_rng(0)
    for _ in range(5):
        body = random_inertia(rng)
        theirs = pin.Inertia(body.mass, body.com, body.tensor).toDynamicParameters()
        assert_allclose(body.parameters, theirs[THEIRS], rtol=1e-12, atol=1e-14)
        back = pin.Inertia.FromDynamicParameters(theirs)
        again = Inertia.from_parameters(theirs[THEIRS])
        assert_allclose(again.com, back.lever, rtol=1e-12)
        assert_allclose(again.tensor, back.inertia, rtol=1e-9, atol=1e-12 * np.abs(theirs).max())


@pytest.mark.parametrize(
    ("file", "nq"),
    [
        ("ur5_robot.urdf", 6),
        ("panda.urdf", 9),
        ("solo12.urdf", 12),
    ],
)
def test_real_robots(file, nq):
    tree, model = robot(file)
    assert tree.nq == nq
    compare(tree, Engine(model, tree))


def test_branched_rph():
    tree, _ = branched_rph()
    compare(tree, Engine(model_of(tree), tree))


@pytest.mark.parametrize(
    "kinds", [("revolute",), ("prismatic",), ("helical",), ("revolute", "prismatic", "helical", "fixed")]
)
@pytest.mark.parametrize("n", [1, 2, 5])
def test_random_trees(n, kinds):
    for seed in range(3 if n < 5 else 1):
        tree = random_tree(np.random.default_rng([n, seed]), n, kinds)
        if tree.nv:
            compare(tree, Engine(model_of(tree), tree), seed)


@pytest.mark.parametrize("kinds", [("spherical",), ("free",), ("planar",), ("universal", "cylindrical"), EVERY])
@pytest.mark.parametrize("n", [1, 2, 4])
def test_random_trees_of_joints_of_several_freedoms(n, kinds):
    """Derivatives with respect to q are along tangents in both; in Pinocchio the linear part comes first."""
    # Every tree is compiled.
    for seed in range(3 if n == 1 else 1):
        tree = random_tree(np.random.default_rng([n, seed, 1]), n, kinds)
        if tree.nv:
            compare(tree, Engine(model_of(tree), tree), seed)
