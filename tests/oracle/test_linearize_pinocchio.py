"""Linearized equations against differences of Pinocchio's forward dynamics with damping and springs."""

import numpy as np
import pinocchio as pin
import pytest
from engine import Engine, model_of
from kinds import EVERY
from numpy.testing import assert_allclose
from tangents import state_of

import screwdyn as sd
from screwdyn.testing import random_tree

pytestmark = pytest.mark.oracle
STEP = 1e-5


@pytest.mark.parametrize("seed", range(4))
def test_random_trees(seed):
    rng = np.random.default_rng(seed)
    case = state_of(random_tree(rng, 3, EVERY if seed else ("revolute", "prismatic")), rng)
    tree, q, qd, tau = case.tree, case.q, case.qd, case.qdd
    for name in tree.joints:
        joint = tree.joint(name)
        spring = {"stiffness": rng.uniform(0, 5), "rest": 0.1} if joint.nv and joint.chart is None else {}
        changed = sd.Joint(joint.screws, damping=rng.uniform(0, 2), chart=joint.chart, **spring)
        tree.replace_joint(tree.topology.carried[name], changed)
    engine, n = Engine(model_of(tree), tree), tree.nv
    model, data = engine.model, engine.data
    damping, stiffness = np.array([(joint.damping, joint.stiffness) for joint in tree.model.joints]).T
    # Freedoms of group joints have no springs, and are not positions.
    position = np.zeros(n)
    for name in tree.joints:
        joint = tree.joint(name)
        if joint.chart is None:
            for freedom, place in zip(joint.freedom_names(name), joint.position_names(name), strict=True):
                position[tree.coordinates.index(freedom)] = q[tree.positions.index(place)]

    def acceleration(x):
        """Pinocchio's, at a state that deviates by x, with its own steps along tangents."""
        there = pin.integrate(model, engine.position(q), engine.velocity(x[:n]))
        rates = qd + x[n : 2 * n]
        force = tau + x[2 * n :] - damping * rates - stiffness * (position + x[:n] - 0.1)
        return pin.aba(model, data, there, engine.velocity(rates), engine.velocity(force))[engine.order]

    found = tree.linearize(q, qd, tau)
    assert_allclose(found.rate[n:], acceleration(np.zeros(3 * n)), rtol=1e-9, atol=1e-9)
    columns = [(acceleration(s) - acceleration(-s)) / (2 * STEP) for s in STEP * np.eye(3 * n)]
    lower = np.concatenate([found.A[n:], found.B[n:]], axis=1)
    assert_allclose(lower, np.array(columns).T, rtol=1e-5, atol=1e-6 * (1 + np.abs(lower).max()))
