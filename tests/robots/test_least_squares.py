"""Least squares over the bodies that exist, against the conditions of their minimum."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import screwdyn as sd
from screwdyn.robots.identification import consistent_fit, is_consistent, parameters_of, pseudo_inertia
from screwdyn.testing import random_inertia

seeds = st.integers(0, 2**32 - 1)


def test_a_pseudo_inertia_is_the_sum_over_points():
    points, masses = np.random.default_rng(0).uniform(-1, 1, (6, 3)), np.arange(1.0, 7.0)
    r = np.column_stack([points, np.ones(6)])
    J = np.einsum("n,ni,nj->ij", masses, r, r)
    body = sum((sd.Inertia.point(m, p) for m, p in zip(masses, points, strict=True)), start=sd.Inertia.point(1e-300))
    assert_allclose(pseudo_inertia(body.parameters), J, rtol=1e-12, atol=1e-14)
    assert_allclose(parameters_of(J), body.parameters, rtol=1e-12, atol=1e-14)


@given(seeds)
def test_a_body_is_consistent_if_and_only_if_an_inertia_can_be_made_of_it(seed):
    rng = np.random.default_rng(seed)
    parameters = random_inertia(rng).parameters
    parameters = parameters + rng.normal(0, 0.3, 10) * np.abs(parameters).max()
    try:
        sd.Inertia.from_parameters(parameters)
        possible = True
    except sd.InertiaError:
        possible = False
    assert is_consistent(parameters) == possible


@pytest.mark.parametrize(
    "body", [sd.Inertia.point(2.0, (1, 0, 0)), sd.Inertia.rod(2.0, 1.0), sd.Inertia.planar(1.0, 0, 1)]
)
def test_bodies_without_volume_are_limits(body):
    assert not is_consistent(body.parameters)
    thick = body + sd.Inertia.sphere(0.01, 0.1)
    assert is_consistent(thick.parameters)


@given(
    seeds, st.sampled_from([0.01, 0.3, 3.0, 30.0]), st.sampled_from([1e-3, 1.0, 1e3]), st.sampled_from([1, 1e6, 1e12])
)
def test_the_minimum_satisfies_its_conditions(seed, noise, size, precision):
    """The slope G of the sum with respect to J has no negative eigenvalue, and G J = 0 (Karush, Kuhn, Tucker)."""
    rng = np.random.default_rng(seed)
    unit = 2.0 * np.repeat([1.0, size, size**2], [1, 3, 6])
    A = rng.normal(size=(14, 10))
    b = A @ random_inertia(rng).parameters + rng.normal(0, noise, 14)
    found = consistent_fit(precision * A / unit, precision * b, np.linalg.lstsq(A, b)[0] * unit) / unit
    J = pseudo_inertia(found)
    assert np.linalg.eigvalsh(J)[0] > 0
    slope = A.T @ (A @ found - b)
    G = np.zeros((4, 4))
    for i, j in np.ndindex(4, 4):
        E = np.zeros((4, 4))
        E[i, j] += 0.5
        E[j, i] += 0.5
        G[i, j] = slope @ parameters_of(E)
    scale = 1 + np.sum(b**2)
    assert np.linalg.eigvalsh(G)[0] > -1e-5 * scale
    # By convexity, no body has a sum that is smaller by more than this.
    assert abs(np.trace(G @ J)) < 1e-6 * scale


def test_directions_without_data_end_near_the_start():
    A, near = np.zeros((1, 10)), sd.Inertia.box(2.0, (0.1, 0.2, 0.3), (1, 0, 0)).parameters
    A[0, 0] = 100.0
    found = consistent_fit(A, np.array([300.0]), near)
    assert_allclose(found[0], 3.0, rtol=1e-9)
    # The rest stays within the body's own size.
    assert np.all(np.abs(found - 1.5 * near) < 1.5 * near[4:].max())
