"""Entry by entry against MuJoCo, in which the linear velocity of a free body is in world axes."""

import numpy as np
import pytest
from mujoco_engine import Mujoco
from numpy.testing import assert_allclose

from screwdyn import Link, free, revolute, spherical, universal
from screwdyn.testing import random_inertia, random_pose, random_tree

pytestmark = pytest.mark.oracle

KINDS = ("revolute", "prismatic", "cylindrical", "universal", "spherical")


def agree(actual, expected, terms):
    """MuJoCo rotates each tensor to principal axes, in double precision: 1e-11 of the size of the terms."""
    assert_allclose(actual, expected, rtol=1e-9, atol=1e-11 * max(terms, 1))


def compare(tree, rng):
    engine = Mujoco(tree)
    for _ in range(5):
        q, (v, a) = tree.random_configuration(rng), rng.uniform(-2, 2, (2, tree.nv))
        engine.set(q, v)
        far = 1 + np.abs(q).max()
        M = engine.mass_matrix()
        terms = tree.mass * far**2 * (10 + np.abs(a).sum() + (1 + np.abs(v).sum()) ** 2)
        agree(tree.mass_matrix(q), M, terms)
        agree(tree.inverse_dynamics(q, v, a), engine.inverse_dynamics(a), terms)
        potential, kinetic = engine.energies()
        agree(tree.potential_energy(q), potential, terms)
        agree(tree.kinetic_energy(q, v), kinetic, terms)
        agree(tree.center_of_mass(q), engine.center_of_mass(), far)
        agree(tree.center_of_mass_jacobian(q), engine.center_of_mass_jacobian(), far)
        agree(tree.centroidal_momentum_matrix(q), engine.centroidal_momentum_matrix(), terms)
        for link in tree.links:
            agree(tree.forward_kinematics(link, q), engine.pose(link), far)
            agree(tree.jacobian(link, q, "mixed"), engine.jacobian(link), far)


@pytest.mark.parametrize("kinds", [KINDS[:2], ("spherical",), KINDS], ids=" ".join)
@pytest.mark.parametrize("n", [1, 3, 8])
def test_random_trees(n, kinds):
    for seed in range(5):
        rng = np.random.default_rng([n, seed])
        compare(random_tree(rng, n, kinds, frames=0), rng)


def test_free_bodies_that_carry_trees():
    for seed in range(5):
        rng = np.random.default_rng([4, seed])
        tree = random_tree(rng, 2, KINDS, frames=0)
        for trunk in ("first", "second"):
            tree.attach(
                Link(trunk, random_inertia(rng)), to="base", joint=free(name=f"{trunk} root"), at=random_pose(rng)
            )
            for limb, joint in (
                ("arm", spherical((0.1, 0, 0.2))),
                ("leg", universal("x", "z")),
                ("tail", revolute("y")),
            ):
                body = Link(f"{trunk} {limb}", random_inertia(rng))
                tree.attach(body, to=trunk if limb != "tail" else f"{trunk} leg", joint=joint, at=random_pose(rng))
        compare(tree, rng)
