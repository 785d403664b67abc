"""Active and passive freedoms, and the blocks of the equation of motion."""

import numpy as np
import pytest
from cases import close, norm
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import screwdyn as sd
from screwdyn.testing import random_inertia, random_pose, random_tree

KINDS = ("revolute", "prismatic", "spherical", "planar", "universal")


def half_passive(rng, n):
    """A random tree with further bodies on active and passive joints in between."""
    tree = random_tree(rng, n, KINDS)
    for passive in rng.permutation([True, True, False, False]):
        joint = rng.choice([sd.spherical(passive=passive), sd.revolute(rng.normal(size=3), passive=passive)])
        tree.attach(random_inertia(rng), rng.choice(tree.links), joint, random_pose(rng))
    return tree


@given(st.integers(0, 2**32 - 1), st.integers(1, 3))
def test_the_blocks_are_the_equation_of_motion(seed, n):
    rng = np.random.default_rng(seed)
    tree = half_passive(rng, n)
    q, qd = tree.random_configuration(rng), rng.uniform(-2, 2, tree.nv)
    tau = tree.actuation_matrix @ rng.uniform(-3, 3, len(tree.active))
    qdd = dict(zip(tree.coordinates, tree.forward_dynamics(q, qd, tau), strict=True))
    rate, force = (dict(zip(tree.coordinates, x, strict=True)) for x in (qd, tau))
    part = tree.partition(q, qd)
    assert set(part.active) | set(part.passive) == set(tree.coordinates)
    a, p = ([of[x] for x in names] for of in (qdd,) for names in (part.active, part.passive))
    va, vp = ([rate[x] for x in names] for names in (part.active, part.passive))
    upper = part.M_aa @ a + part.M_ap @ p + part.C_aa @ va + part.C_ap @ vp + part.g_a
    lower = part.M_pa @ a + part.M_pp @ p + part.C_pa @ va + part.C_pp @ vp + part.g_p
    scale = norm(part.M_aa) * norm(a) + norm(part.g_a) + norm(part.M_pp) * norm(p) + norm(part.C_aa) * norm(qd)
    close(upper, [force[x] for x in part.active], scale, 1e-10)
    close(lower, np.zeros(len(part.passive)), scale, 1e-10)


def test_names_and_blocks_of_a_batch():
    tree = sd.robots.two_link()
    tree.attach(sd.Inertia.sphere(1, 0.1, (0, 0, 0.2)), tree.links[-1], sd.spherical(passive=True, name="ball"))
    assert tree.active == tree.coordinates[:2]
    assert tree.passive == ("ball[wx]", "ball[wy]", "ball[wz]")
    assert_array_equal(tree.actuation_matrix, np.eye(5)[:, :2])
    q = np.stack([tree.random_configuration(np.random.default_rng(k)) for k in range(3)])
    part, M = tree.partition(q), tree.mass_matrix(q)
    assert part.M_ap.shape == (3, 2, 3)
    assert_array_equal(part.M_ap, M[:, :2, 2:])
    assert_array_equal(part.M_pa, M[:, 2:, :2])
    assert_array_equal(part.C_aa, np.zeros((3, 2, 2)))
    assert_array_equal(part.g_p, tree.gravity_vector(q)[:, 2:])
    assert_allclose(tree.compile().wait().partition(q).M_pp, part.M_pp, rtol=1e-12, atol=1e-14)


def test_a_tree_without_passive_freedoms_has_empty_blocks():
    tree = sd.robots.two_link()
    part = tree.partition(np.zeros(2), np.ones(2))
    assert (part.passive, part.M_pp.shape, part.M_ap.shape, part.g_p.shape) == ((), (0, 0), (2, 0), (0,))
    with pytest.raises(sd.ShapeError, match="q has shape"):
        tree.partition([0.0])
