"""Reference dynamics, its regressor and C(q, q̇)ᵀ q̇, against M, C and g of the definition."""

import numpy as np
from cases import close, norm
from hypothesis import given
from hypothesis import strategies as st
from kinds import EVERY

import screwdyn as sd
from screwdyn.testing import random_tree


def with_armature(rng, n):
    """A random tree of all kinds of joints whose last joint has an armature; a state, and rates of a reference."""
    tree = random_tree(rng, n, EVERY)
    joint = sd.revolute(rng.normal(size=3), armature=0.7, name="geared")
    tree.attach(sd.Inertia.box(1, (0.1, 0.2, 0.3), com=(0.1, 0, 0.2)), to=tree.links[-1], joint=joint, name="last")
    return tree, tree.random_configuration(rng), *rng.uniform(-2, 2, (3, tree.nv))


def parameters(tree, link):
    body = tree.link(link).inertia
    return np.zeros(10) if body is None else body.parameters


@given(st.integers(0, 2**32 - 1), st.integers(0, 6))
def test_quantities_of_a_reference(seed, n):
    tree, q, qd, qd_ref, qdd_ref = with_armature(np.random.default_rng(seed), n)
    shares = tree.contributions(q, qd)
    M, C, g = (sd.padded_sum(getattr(x, name) for x in shares).matrix(tree.coordinates) for name in "MCg")
    expected, size = M @ qdd_ref + C @ qd_ref + g, norm(M) * (1 + norm(qd)) * (norm(qd_ref) + norm(qdd_ref)) + norm(g)
    found = tree.reference_dynamics(q, qd, qd_ref, qdd_ref)
    close(found, expected, size, 1e-12)
    close(
        tree.reference_dynamics(q, qd, qd, qdd_ref), tree.inverse_dynamics(q, qd, qdd_ref), size * (1 + norm(qd)), 1e-12
    )
    close(tree.transposed_velocity_product(q, qd), C.T @ qd, norm(M) * norm(qd) ** 2, 1e-12)
    close(tree.joint_momentum(q, qd), M @ qd, norm(M) * norm(qd), 1e-12)
    references = (sd.Padded(tree.coordinates, x, 1) for x in (qd_ref, qdd_ref))
    references = [*references]
    close(sd.padded_sum(x.reference_force(*references) for x in shares).matrix(tree.coordinates), found, size, 1e-12)


@given(st.integers(0, 2**32 - 1), st.integers(0, 6))
def test_regressors_of_all_links_give_the_whole(seed, n):
    tree, q, qd, qd_ref, qdd_ref = with_armature(np.random.default_rng(seed), n)
    M = tree.mass_matrix(q)
    geared = 0.7 * (np.array(tree.coordinates) == "geared")
    force, momentum, rate = geared * qdd_ref, geared * qd, np.zeros(tree.nv)
    for link in tree.links[1:]:
        force = force + tree.reference_regressor(link, q, qd, qd_ref, qdd_ref) @ parameters(tree, link)
        rate = rate + tree.momentum_rate_regressor(link, q, qd) @ parameters(tree, link)
        momentum = momentum + tree.momentum_regressor(link, q, qd) @ parameters(tree, link)
    found = tree.reference_dynamics(q, qd, qd_ref, qdd_ref)
    size = norm(M) * (1 + norm(qd)) * (norm(qd_ref) + norm(qdd_ref)) + norm(tree.gravity_vector(q))
    close(force, found, size, 1e-11)
    close(momentum, tree.joint_momentum(q, qd), norm(M) * norm(qd), 1e-11)
    expected = tree.transposed_velocity_product(q, qd) - tree.gravity_vector(q)
    close(rate, expected, norm(M) * norm(qd) ** 2 + norm(tree.gravity_vector(q)), 1e-11)
    assert not tree.reference_regressor("base", q, qd, qd_ref, qdd_ref).any()


@given(st.integers(0, 2**32 - 1), st.integers(0, 6))
def test_regressors_of_subtrees_have_those_of_their_links_side_by_side(seed, n):
    tree, *state = with_armature(np.random.default_rng(seed), n)
    tree.attach(sd.Link("massless"), to=tree.links[n])
    known, pi = tree.reference_dynamics(*state), tree.derivatives.parameters()
    geared = 0.7 * (np.array(tree.coordinates) == "geared") * state[3]
    close(tree.subtree_reference_regressor("base", *state) @ pi + geared, known, norm(known) + norm(pi), 1e-11)
    for name, given_ in {"reference": state, "momentum": state[:2], "momentum_rate": state[:2]}.items():
        whole, one = (getattr(tree, f"{kind}{name}_regressor") for kind in ("subtree_", ""))
        for root in ("base", tree.links[n // 2], "massless"):
            links = [link for link in tree.subtree(root) if link != "base"]
            assert np.array_equal(whole(root, *given_), np.hstack([one(link, *given_) for link in links]))
            assert len(tree.derivatives.parameters(links)) == whole(root, *given_).shape[-1]


def test_subtree_regressors_of_bare_trees_are_empty():
    assert sd.KinematicTree().subtree_reference_regressor("base", [], [], [], []).shape == (0, 0)
    arm = sd.robots.two_link()
    q = np.ones((3, 2))
    assert arm.subtree_momentum_regressor(arm.links[-1], q, q).shape == (3, 2, 10)
