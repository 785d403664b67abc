"""The law of impacts: bounded energy, momentum, and impacts with a known solution."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from test_coulomb import bodies_with_contacts, cones_of

import screwdyn as sd
from screwdyn.simulation import coulomb
from screwdyn.simulation.impacts import impulses


def normals(J, M, qd, e, pairs=None):
    """Rates after an impact of rows without friction, and the energy lost."""
    P, rows = np.linalg.inv(M), np.zeros((3 * len(J), len(qd)))
    rows[::3] = J
    impulse = impulses(rows @ P @ rows.T, rows @ qd, np.zeros(len(J)), np.full(len(J), e), pairs)
    after = qd + P @ rows.T @ impulse
    return after, 0.5 * (qd @ M @ qd - after @ M @ after)


@given(st.integers(0, 2**32 - 1))
def test_the_energy_is_bounded(seed):
    """T⁺ ≤ T⁻ − (1 − e²) A / 2, with A = Λ_cᵀ G Λ_c of the compression; further rounds only lose more."""
    rng = np.random.default_rng(seed)
    G, u, friction = bodies_with_contacts(rng)
    e = rng.uniform(0, 1)
    impulse = impulses(G, u, friction, np.full(len(friction), e))
    after = u + G @ impulse
    N, slides = impulse[::3], np.linalg.norm(impulse.reshape(-1, 3)[:, 1:], axis=1)
    tiny = 1e-12 * max(np.abs(impulse).max(), np.abs(u / np.diagonal(G)).max())
    assert after[::3].min() >= -1e-9 * np.abs(u).max() and N.min() >= -tiny and (slides - friction * N).max() <= tiny
    gained = 0.5 * impulse @ (u + after)
    if impulse.any():
        compression = coulomb.forces(G, u, *cones_of(friction))
        A = compression @ G @ compression
        assert gained <= (1 + e) * compression @ u + 0.5 * (1 + e) ** 2 * A + 1e-12 * abs(impulse @ u)
        assert gained <= -0.5 * (1 - e**2) * A + 1e-12 * abs(impulse @ u)
    by_pairs = impulses(G, u, friction, np.full(len(friction), e), pairs=rng.integers(0, 3, len(friction)))
    assert by_pairs @ (2 * u + G @ by_pairs) <= 1e-12 * abs(by_pairs @ u)


def balls(count, mass=1.0):
    """Balls in a row on rails, each touching the next one: J, M and the rates when the first one arrives."""
    J = np.eye(count)[1:] - np.eye(count)[:-1]
    return J, mass * np.eye(count), np.eye(count)[0]


def test_newtons_cradle_by_pairs():
    after, lost = normals(*balls(5), 1.0, pairs=range(4))
    assert_allclose(after, [0, 0, 0, 0, 1], atol=1e-14)
    assert abs(lost) < 1e-14


def test_newtons_cradle_at_once():
    after, lost = normals(*balls(5), 1.0)
    assert_allclose(after, np.array([-3, 2, 2, 2, 2]) / 5, atol=1e-14)
    assert abs(lost) < 1e-14


@pytest.mark.parametrize("e", [0.0, 0.5, 1.0])
def test_two_balls(e):
    """Newton's law of a central impact."""
    J, M, qd = balls(2)
    M[1, 1] = 3.0
    after, lost = normals(J, M, qd, e)
    assert_allclose(after, [0.25 - 0.75 * e, 0.25 * (1 + e)], atol=1e-15)
    assert_allclose(lost, 0.5 * 0.75 * (1 - e**2), atol=1e-15)


def test_impacts_that_nothing_connects_have_their_own_restitution():
    G, u = np.eye(6), np.array([-1.0, 0, 0, -2.0, 0, 0])
    assert_allclose(u + G @ impulses(G, u, np.zeros(2), np.array([0.0, 0.5])), [0, 0, 0, 1, 0, 0], atol=1e-15)


def sphere_on_floor(qd, mu, e):
    """A solid sphere of 2 kg and 0.1 m: rates [ω; v] of its centre after it strikes the floor."""
    P = np.linalg.inv(sd.Inertia.sphere(2.0, 0.1).matrix)
    axes = np.eye(3)[[2, 0, 1]]
    J = np.hstack([np.cross([0, 0, -0.1], axes), axes])
    return qd + P @ J.T @ impulses(J @ P @ J.T, J @ qd, np.array([mu]), np.array([e]))


def test_a_sphere_that_grips_rolls_after_the_impact():
    """It grips for μ ≥ 2/7 vx / ((1 + e) vz): then vx falls to 5/7; else friction is μ times the normal impulse."""
    vx, vz, e = 1.5, 2.0, 0.6
    qd = np.array([0, 0, 0, vx, 0, -vz])
    least = 2 / 7 * vx / vz
    after = sphere_on_floor(qd, 1.01 * least, e)
    assert_allclose(after, [0, 5 / 7 * vx / 0.1, 0, 5 / 7 * vx, 0, e * vz], atol=1e-13)
    mu = 0.99 * least / (1 + e)
    after = sphere_on_floor(qd, mu, e)
    slip = mu * (1 + e) * vz
    assert_allclose(after, [0, 2.5 * slip / 0.1, 0, vx - slip, 0, e * vz], atol=1e-13)


@pytest.mark.parametrize("mu", [0.1, 1.0, 1.4, 1.6])
def test_a_slider_that_strikes_obliquely(mu):
    """One freedom that moves by (a, b) in the normal and a tangent slides in, and back with friction: it keeps less
    than e of its rate, the share e (a − μ b) / (a + μ b), or sticks.
    """
    a, b, e, rate = 0.6, 0.4, 0.8, -2.0
    J = np.array([[a], [b], [0.0]])
    after = rate + J[:, 0] @ impulses(J @ J.T, J[:, 0] * rate, np.array([mu]), np.array([e]))
    assert_allclose(after, -rate * e * max(0.0, (a - mu * b) / (a + mu * b)), atol=1e-14)


def test_housners_block():
    """A block that rocks from one edge to the other keeps the share 1 − 1.5 sin²a of its rate."""
    half, height = 0.15, 0.4
    a = np.arctan2(half, height)
    M = 5.0 * np.diag([((2 * half) ** 2 + (2 * height) ** 2) / 12, 1, 1])
    rows = [[-s * half, 0, 1] for s in (1, -1)], [[-height, 1, 0]] * 2
    J = np.zeros((6, 3))
    J[::3], J[1::3] = rows
    w = 1.0
    qd = w * np.array([1, height, -half])
    assert_allclose(J[3:5] @ qd, 0, atol=1e-15)
    P = np.linalg.inv(M)
    after = qd + P @ J.T @ impulses(J @ P @ J.T, J @ qd, np.full(2, 2.0), np.zeros(2))
    assert_allclose(after[0] / w, 1 - 1.5 * np.sin(a) ** 2, rtol=1e-13)


def test_contacts_that_separate_have_no_impulse():
    G, u, friction = bodies_with_contacts(np.random.default_rng(1))
    assert_array_equal(impulses(G, np.abs(u), friction, np.ones(len(friction))), 0)
    assert impulses(np.zeros((0, 0)), np.zeros(0), np.zeros(0), np.zeros(0)).shape == (0,)
