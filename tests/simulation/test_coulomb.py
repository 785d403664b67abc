"""Forces of contacts, dry friction and stops: their law, checked term by term, and problems with a known solution."""

import itertools

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import screwdyn as sd
from screwdyn.simulation import coulomb
from screwdyn.simulation.coulomb import Cone

INF = np.inf


def bodies_with_contacts(rng, most=1.5):
    """Random bodies, as many freedoms as two linked ones have, and contacts: G, u before, and friction."""
    n, k = 7, int(rng.integers(1, 9))
    J = rng.normal(size=(3 * k, n)) * np.exp(rng.uniform(-1, 1, n))
    root = rng.normal(size=(n, n))
    return J @ np.linalg.inv(root @ root.T + np.eye(n)) @ J.T, J @ rng.normal(size=n), rng.uniform(0, most, k)


def cones_of(friction):
    """Bounds and cones of contacts with the rows n, t, t each."""
    k = len(friction)
    cones = [Cone(3 * i, (3 * i + 1, 3 * i + 2), mu) for i, mu in enumerate(friction)]
    return np.tile([0, -INF, -INF], k), np.full(3 * k, INF), cones


def assert_coulomb(G, b, friction, force):
    """Signorini's and Coulomb's law of every contact, relative to the largest force and terms of rates.

    Rates are sums that cancel, whose rounding follows their terms: eps n (|b| + |G| |λ|).
    """
    (N, *T), (rate, *slip) = force.reshape(-1, 3).T, (G @ force + b).reshape(-1, 3).T
    T, slip = np.array(T), np.array(slip)
    F, u = 1e-300 + np.abs(force).max(), (np.abs(b) + np.abs(G) @ np.abs(force)).max()
    assert N.min() >= -1e-12 * F and rate.min() >= -1e-13 * u and np.abs(N * rate).max() <= 1e-13 * F * u
    assert (np.linalg.norm(T, axis=0) - friction * N).max() <= 1e-12 * F
    # All of the power that friction can dissipate
    assert np.abs((T * slip).sum(axis=0) + friction * N * np.linalg.norm(slip, axis=0)).max() <= 1e-12 * F * u


@given(st.integers(0, 2**32 - 1))
@example(12530638)  # forces of 400, and terms of 5000 in rates of 1e-11
def test_contacts_with_friction(seed):
    G, b, friction = bodies_with_contacts(np.random.default_rng(seed))
    assert_coulomb(G, b, friction, coulomb.forces(G, b, *cones_of(friction)))


def test_the_fixed_point_of_convex_problems_alone_finds_the_forces(monkeypatch):
    """Where sweeps do not help, which is rare: they are left out."""
    monkeypatch.setattr(coulomb._Law, "swept", lambda law, x, count: np.zeros_like(x))
    monkeypatch.setattr(coulomb, "SWEEPS", (0,))
    rng = np.random.default_rng(3)
    for _ in range(10):
        G, b, friction = bodies_with_contacts(rng)
        assert_coulomb(G, b, friction, coulomb.forces(G, b, *cones_of(friction)))


@pytest.mark.parametrize("seed", [24, 48])
def test_rows_that_harden_find_the_forces_of_large_friction(seed, monkeypatch):
    """Without random forces; sweeps and convex problems found none."""
    monkeypatch.setattr(coulomb, "GUESSES", 0)
    for most in (100, 1000):
        G, b, friction = bodies_with_contacts(np.random.default_rng(seed), most)
        assert_coulomb(G, b, friction, coulomb.forces(G, b, *cones_of(friction)))


@given(st.integers(0, 2**32 - 1))
def test_bounded_rows_have_the_only_forces_that_fit(seed):
    """Of all combinations of rows at their bounds and between, one is consistent; dry friction and stops."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 5))
    root, b = rng.normal(size=(n, n + 1)), rng.normal(size=n)
    G, bound = root @ root.T, rng.uniform(0.1, 1, n)
    low, high = np.where(rng.random(n) < 0.3, 0, -bound), np.where(rng.random(n) < 0.3, INF, bound)
    fitting = []
    for side in itertools.product([-1, 0, 1], repeat=n):
        side = np.array(side)
        force = np.where(side < 0, low, np.where(side > 0, high, 0.0))
        held = side == 0
        if np.isfinite(force).all():
            force[held] = np.linalg.solve(G[np.ix_(held, held)], -(G @ force + b)[held])
            if (low <= force).all() and (force <= high).all() and (side * (G @ force + b) <= 1e-12).all():
                fitting.append(force)
    assert len(fitting) == 1
    assert_allclose(coulomb.forces(G, b, low, high), fitting[0], atol=1e-9)


def test_given_normal_forces_bound_friction():
    """A plate that slides in x under a given load, and one that a smaller push cannot move."""
    low, high, cones = np.array([4.0, 0, 0]), np.array([4.0, 0, 0]), [Cone(0, (1, 2), 0.5)]
    assert_allclose(coulomb.forces(np.eye(3), np.array([0, 3.0, 0]), low, high, cones), [4, -2, 0], atol=1e-15)
    assert_allclose(coulomb.forces(np.eye(3), np.array([0, 0.9, 1.2]), low, high, cones), [4, -0.9, -1.2], atol=1e-15)


def test_four_feet_bear_equal_parts_of_the_weight():
    """Redundant contacts: the forces of least norm are those of equal legs."""
    m, g, size = 3.0, 9.81, np.array([0.2, 0.15, 0.1])
    feet = [size * [x, y, -1] for x in (1, -1) for y in (1, -1)]
    axes = np.eye(3)[[2, 0, 1]]
    J = np.concatenate([np.hstack([np.cross(foot, axes), axes]) for foot in feet])
    P = np.linalg.inv(sd.Inertia.box(m, 2 * size).matrix)
    force = coulomb.forces(J @ P @ J.T, J @ [0, 0, 0, 0, 0, -g], *cones_of([0.5] * 4)).reshape(-1, 3)
    assert_allclose(force, np.tile([m * g / 4, 0, 0], (4, 1)), atol=1e-13)


@pytest.mark.parametrize("turns", [6e-7, 2e-6])
def test_feet_that_are_almost_redundant_bear_by_the_edges_that_can(turns):
    """What little turns them about the line between both feet is more than the terms of the forces that it needs."""
    corners = [(side, x, y) for side in (0, 1) for x in (1, -1) for y in (1, -1)]
    J = np.array([[1 - side, side, (1 - side) * x, side * x, turns * y] for side, x, y in corners])
    b = np.array([-9.8 + 2.7 * x + 4e-8 * y for _, x, y in corners])
    force = coulomb.forces(J @ J.T, b, np.zeros(8), np.full(8, INF))
    u = J @ (J.T @ force) + b
    assert force.min() > -1e-12 and u.min() > -1e-11 and np.abs(force * u).max() < 1e-11
    assert np.abs(force[::2]).max() < 1e-12 < force[1::2].min()


def test_a_row_that_cannot_move_has_the_force_against_its_acceleration():
    G, b = np.diag([2.0, 0, 0, 0]), np.array([-3.0, 0.5, -0.5, 0])
    assert_allclose(coulomb.forces(G, b, -np.ones(4), np.ones(4)), [1, -1, 1, 0])
    assert coulomb.forces(np.zeros((0, 0)), np.zeros(0), np.zeros(0), np.zeros(0)).shape == (0,)


@pytest.mark.slow
def test_a_rod_that_jams_has_no_forces():
    """Painlevé's rod presses harder the more it is held: G is negative, and no force lifts its end."""
    with pytest.raises(sd.ContactError, match="were not found"):
        coulomb.forces(np.array([[-1.0]]), np.array([-1.0]), np.zeros(1), np.full(1, INF))


def test_forces_follow_a_start():
    G, b, friction = bodies_with_contacts(np.random.default_rng(5))
    force = coulomb.forces(G, b, *cones_of(friction))
    near = coulomb.forces(G, b * (1 + 1e-9), *cones_of(friction), start=force)
    assert_coulomb(G, b * (1 + 1e-9), friction, near)
    assert_allclose(near, force, atol=1e-6 * np.abs(force).max())
