"""A floating tree that another link carries: Pinocchio's poses, twists, accelerations and energies are the same."""

import numpy as np
import pinocchio as pin
import pytest
from engine import Engine, model_of
from kinds import EVERY
from numpy.testing import assert_allclose

import screwdyn as sd
from screwdyn.testing import random_inertia, random_pose, random_tree

pytestmark = pytest.mark.oracle


def motion(tree, state):
    """By link: pose, twist and acceleration as it falls freely, by articulated bodies; and both energies."""
    engine = Engine(model_of(tree), tree)
    place, rates = engine.position(state.q), engine.velocity(state.qd)
    qdd = pin.aba(engine.model, engine.data, place, rates, np.zeros(tree.nv))[engine.order]
    engine.kinematics(state.q, state.qd, qdd)
    found = {
        link: np.concatenate([engine.pose(link).ravel(), engine.twist(link, "base"), engine.acceleration(link, "base")])
        for link in tree.links[1:]
    }
    return found, (engine.kinetic_energy(state.q, state.qd), engine.potential_energy(state.q))


@pytest.mark.parametrize("seed", range(30))
def test_the_motion_is_the_same_from_any_link(seed):
    rng = np.random.default_rng(seed)
    tree = sd.KinematicTree("ground")
    tree.attach(random_tree(rng, 5, EVERY), "ground", sd.free(name="float"), random_pose(rng), "trunk")
    tree.set_inertia("trunk", random_inertia(rng))
    state = sd.State(tree, tree.random_configuration(rng), rng.uniform(-2, 2, tree.nv))
    expected, energies = motion(tree, state)
    link = str(rng.choice([x for x in tree.subtree("trunk") if x != "trunk"]))
    after = tree.reroot(link, state).state
    assert tree.parent(link) == "ground"
    found, energies_after = motion(tree, after)
    assert_allclose(energies_after, energies, rtol=1e-10)
    size = max(np.abs(x).max() for x in expected.values())
    for name, values in expected.items():
        assert_allclose(found[name], values, rtol=0, atol=1e-8 * size)
