"""Quaternions and rotation vectors."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from screwdyn.screws import screw
from screwdyn.screws.groups import quaternion_of, rotation_of, rotation_vector_of


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
