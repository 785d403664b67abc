import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import screwdyn as sd
from screwdyn.physics.subtree_wrench import subtree_wrench
from screwdyn.testing import random_tree


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
