"""Positions of group joints on traced scalars and floats, against the charts of `mechanism`."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from screwdyn.physics import charts
from screwdyn.testing import random_tree


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1e-40, 1e-12, 1e-4, 1.0, math.pi, 20.0]))
def test_integrate_and_normalize(seed, size):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 6, ("spherical", "free", "planar", "revolute"))
    q, v = tree.random_configuration(rng), size * rng.normal(size=tree.nv)
    where, groups, *_ = tree.model.charts
    reached = np.zeros(tree.nq)
    charts.integrate(where, groups, q, v, reached)
    assert_allclose(reached, tree.integrate(q, v), rtol=0, atol=1e-13 * (1 + size))
    stretched = 1.0005 * reached
    charts.normalize(groups, stretched)
    assert_allclose(stretched, tree.model.configurations.normalized(1.0005 * reached), rtol=1e-15)


def test_quaternions_keep_their_length():
    rng = np.random.default_rng(2)
    tree = random_tree(rng, 2, ("spherical",), frames=0)
    where, groups, *_ = tree.model.charts
    q = 1.0003 * tree.random_configuration(rng)
    reached = np.zeros(tree.nq)
    charts.integrate(where, groups, q, rng.normal(size=tree.nv), reached)
    assert_allclose(np.linalg.norm(reached.reshape(-1, 4), axis=1), 1.0003, rtol=1e-14)
