"""Groups of motions: which screws generate one, the wrenches that they do not feel, and the nearest element."""

import numpy as np
import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.transform import Rotation

import screwdyn as sd
from screwdyn.screws import screw
from screwdyn.screws.screw import Ad, exp, inverse, log, rotation_of, rotation_vector_of
from screwdyn.screws.screw_system import constrained_wrenches, is_group, nearest_element, projection, whole_turns
from screwdyn.testing import random_pose

E = np.eye(6)
# Screws of the group joints, and of translations in two and three directions.
KINDS = {
    "fixed": E[:, :0],
    "revolute": E[:, 2:3],
    "prismatic": E[:, 5:],
    "helical": E[:, 2:3] + 0.2 * E[:, 5:],
    "cylindrical": E[:, [2, 5]],
    "planar": E[:, 2:5],
    "spherical": E[:, :3],
    "translation": E[:, 3:],
}
seeds = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("kind", KINDS)
@given(seed=seeds)
def test_wrenches_do_no_work_on_the_motions(kind, seed):
    S = Ad(random_pose(np.random.default_rng(seed))) @ KINDS[kind]
    N = constrained_wrenches(S)
    assert N.shape == (6, 6 - S.shape[1])
    assert np.linalg.matrix_rank(N) == N.shape[1]
    assert_allclose(S.T @ N, 0, rtol=0, atol=1e-13 * max(1, np.abs(N).max()))
    assert is_group(S)


def test_wrenches_of_a_pin_by_hand():
    x = sp.Symbol("x")
    N = constrained_wrenches(sd.revolute("z", (x, 0, 0)).screws)
    # Moments about the axes x and y through the link's origin; forces at the pin.
    by_hand = [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, x, 0], [0, 0, 1, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 1]]
    assert_array_equal(N, by_hand)


def test_screws_that_generate_no_group():
    parallel = np.column_stack([E[2], Ad(exp(E[3])) @ E[2]])  # together they also translate
    assert not is_group(parallel)
    assert is_group(np.column_stack([parallel, E[3]]))
    assert not is_group(sd.universal("x", "y").screws)
    assert not is_group(E[:, [2, 2]])  # two freedoms, but motions of one
    assert not is_group(E[:, [2, 3]])
    assert is_group(np.eye(6))


@pytest.mark.parametrize("kind", KINDS)
@given(seed=seeds)
def test_nearest_element(kind, seed):
    rng = np.random.default_rng(seed)
    S = Ad(random_pose(rng)) @ KINDS[kind]
    element = exp(S @ rng.uniform(-1.5, 1.5, S.shape[1]))
    assert_allclose(nearest_element(projection(S), element)[1], 0, rtol=0, atol=1e-12)
    away = element @ exp(0.1 * rng.normal(size=6))
    g, remainder = nearest_element(projection(S), away)
    assert_allclose(nearest_element(projection(S), g)[1], 0, rtol=0, atol=1e-12)
    assert_allclose(exp(remainder), inverse(g) @ away, rtol=0, atol=1e-12)
    assert_allclose(S.T @ remainder, 0, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@given(seed=seeds)
def test_whole_turns(kind, seed):
    """The shift of a helical motion shows them, also beside the group; no other motion has any."""
    rng = np.random.default_rng(seed)
    S = Ad(random_pose(rng)) @ KINDS[kind]
    x = rng.uniform(-100, 100, S.shape[1])
    turns = whole_turns(S, exp(S @ x) @ exp(0.01 * rng.normal(size=6)))
    if kind == "helical":
        assert abs(x[0] - turns) < np.pi + 0.5
        assert_allclose(np.sin(turns), 0, rtol=0, atol=1e-12)
    else:
        assert turns == 0


def test_nearest_rotation_is_that_of_the_pose():
    """For a spherical joint at the origin, the remainder is the displacement of the centre, in the turned axes."""
    pose = exp([0.3, -0.2, 0.9, 0.0, 0.0, 0.0])
    pose[:3, 3] = 0.1, 0.2, 0.3
    g, remainder = nearest_element(projection(KINDS["spherical"]), pose)
    assert_allclose(g[:3, :3], pose[:3, :3], rtol=0, atol=1e-15)
    assert_allclose(remainder, [0, 0, 0, *(pose[:3, :3].T @ pose[:3, 3])], rtol=0, atol=1e-15)
    assert_allclose(log(pose)[:3], [0.3, -0.2, 0.9], rtol=0, atol=1e-15)


def quaternion_of(w):
    return Rotation.from_rotvec(w).as_quat()


def test_a_quaternion_is_that_of_its_rotation_vector():
    rng = np.random.default_rng(2)
    axis = rng.normal(size=(200, 3))
    axis /= np.linalg.norm(axis, axis=-1, keepdims=True)
    w = rng.uniform(0, 2 * np.pi, (200, 1)) * axis
    q = quaternion_of(w)
    assert_allclose(rotation_vector_of(q), w, atol=1e-13)
    assert_allclose(rotation_vector_of(7 * q), w, atol=1e-13)
    twists = np.concatenate([w, np.zeros_like(w)], axis=-1)
    assert_allclose(rotation_of(q), screw.exp(twists)[:, :3, :3], atol=1e-14)


def test_small_and_no_rotations():
    assert_array_equal(rotation_vector_of(np.array([0.0, 0, 0, 1])), np.zeros(3))
    assert_allclose(rotation_vector_of(quaternion_of(np.array([0, 3e-100, 0]))), [0, 3e-100, 0], rtol=1e-12)
    assert_allclose(rotation_vector_of(np.array([0, 0, -1.0, 0])), [0, 0, -np.pi])
