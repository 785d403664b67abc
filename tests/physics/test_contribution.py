"""The contribution of one link: its size, its independence of other links, and its laws."""

from itertools import pairwise

import numpy as np
import pytest
from cases import cases, close, norm, total
from hypothesis import given
from numpy.testing import assert_allclose, assert_array_equal

from screwdyn import Inertia, KinematicTree, Link, padded_sum, revolute, robots
from screwdyn.testing import random_inertia, random_pose, random_tree

ROUNDING = 1e-13


@given(cases(least=1))
def test_natural_size_is_the_path_s(case):
    tree, q, qd = case.tree, case.q, case.qd
    for part in tree.contributions(q, qd):
        on_path = {tree.graph.edges[edge]["coordinate"] for edge in pairwise(tree.path(part.link))}
        assert part.coordinates == tuple(c for c in tree.coordinates if c in on_path)
        k = len(part.coordinates)
        assert part.J.shape == part.J_dot.shape == (6, k)
        assert part.M.shape == part.C.shape == (k, k)
        assert part.g.shape == (k,)
        for named, x in zip((part.J, part.J_dot, part.M, part.C, part.g), part.arrays, strict=True):
            assert_array_equal(np.asarray(named), x)
        assert part.M.coordinates == part.C.coordinates == part.g.coordinates == part.coordinates


@given(cases(least=1))
def test_one_link_alone_is_the_same_as_among_all(case):
    tree, q, qd = case.tree, case.q, case.qd
    for part in tree.contributions(q, qd):
        alone = tree.contribution(part.link, q, qd)
        assert alone.link == part.link
        for a, b in zip(alone.arrays, part.arrays, strict=True):
            assert_array_equal(a, b)


@given(cases(least=1))
def test_mass_rate_less_twice_coriolis_is_skew_for_every_link(case):
    """Ṁ_i = J̇ᵀM̄J + JᵀM̄J̇ = C_i + C_iᵀ."""
    tree, q, qd = case.tree, case.q, case.qd
    for part in tree.contributions(q, qd):
        inertia = tree.link(part.link).inertia
        if inertia is not None:
            half = part.J.T @ inertia.com_matrix @ part.J_dot
            C = np.asarray(part.C)
            scale = norm(np.asarray(part.M)) * total(qd)
            close(C + C.T, half + half.T, scale, ROUNDING)


def test_massless_links_contribute_zeros_of_their_size():
    rng = np.random.default_rng(0)
    tree = random_tree(rng, 3, frames=0)
    tree.attach(Link("tool0"), to="link3", at=random_pose(rng))
    q, qd = rng.normal(size=(2, 3))
    part, carrier = tree.contribution("tool0", q, qd), tree.contribution("link3", q, qd)
    assert part.coordinates == carrier.coordinates
    assert not any(np.any(x) for x in part.arrays[2:])
    assert np.any(part.J)


def test_the_base_contributes_nothing():
    tree = KinematicTree(Link("base", Inertia.sphere(1, 1)))
    part = tree.contribution("base", [], [])
    assert part.coordinates == ()
    assert part.M.shape == (0, 0)
    assert tree.contributions([], []) == []


def test_attaching_changes_no_other_contribution():
    """A payload adds its own M, C and g, and does not change a bit of the other contributions."""
    rng = np.random.default_rng(1)
    tree = random_tree(rng, 6)
    q, qd = rng.normal(size=(2, 6))
    before = tree.contributions(q, qd)
    totals = [padded_sum(getattr(part, name) for part in before) for name in "MCg"]
    tree.attach(random_inertia(rng), to="link6", joint=revolute([1, 2, 3], [0.1, 0, 0]), at=random_pose(rng))
    *after, payload = tree.contributions([*q, 0.3], [*qd, 0.4])
    assert payload.link == "payload"
    for old, new in zip(before, after, strict=True):
        assert old.coordinates == new.coordinates
        for a, b in zip(old.arrays, new.arrays, strict=True):
            assert_array_equal(a, b)
    M, C = tree.mass_and_coriolis([*q, 0.3], [*qd, 0.4])
    g = tree.gravity_vector([*q, 0.3])
    for old, own, new in zip(totals, (payload.M, payload.C, payload.g), (M, C, g), strict=True):
        assert_allclose((old + own).matrix(tree.coordinates), new, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("batch", [(3,), (2, 5), (0,)])
def test_batches_keep_their_axes(batch):
    rng = np.random.default_rng(2)
    tree = random_tree(rng, 3)
    part = tree.contribution("link3", rng.normal(size=(*batch, 3)), rng.normal(size=3))
    k = len(part.coordinates)
    assert part.J.shape == (*batch, 6, k)
    assert part.M.shape == part.C.shape == (*batch, k, k)
    assert part.g.shape == (*batch, k)


def test_contributions_are_compared_by_value():
    tree = robots.pelican()
    one, other = (tree.contribution("link2", [0.1, q2], [0.3, 0.4]) for q2 in (0.2, 0.25))
    assert one == tree.contribution("link2", [0.1, 0.2], [0.3, 0.4])
    assert one != other and one != tree.contribution("link1", [0.1, 0.2], [0.3, 0.4]) and one != 1
