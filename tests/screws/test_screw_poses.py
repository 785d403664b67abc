"""Poses in all accepted forms: rounding that is corrected, and invalid input."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.spatial.transform import Rotation

from screwdyn import screw
from screwdyn.core.errors import ShapeError
from screwdyn.screws.screw import as_pose, exp, pose

poses = st.tuples(*[st.floats(-3.0, 3.0, allow_subnormal=False)] * 6).map(lambda V: exp(np.array(V)))


def close(a, b, tol):
    assert_allclose(a, b, rtol=tol, atol=tol)


def test_as_pose_reads_nothing_a_translation_or_a_matrix():
    T = exp([0.1, 0.2, 0.3, 1.0, 2.0, 3.0])
    close(as_pose(None), np.eye(4), 0.0)
    close(as_pose([1, 2, 3]), pose(np.eye(3), [1.0, 2.0, 3.0]), 0.0)
    result = as_pose(T)
    close(result, T, 0.0)
    result[0, 3] = 9.0
    assert T[0, 3] != 9.0


@given(poses)
def test_as_pose_mends_a_rotation_copied_with_few_digits(T):
    rounded = np.round(T, 7)
    R = as_pose(rounded)[:3, :3]
    close(R.T @ R, np.eye(3), 2e-14)
    U, _, V = np.linalg.svd(rounded[:3, :3])
    close(R, U @ V, 2e-14)


def test_as_pose_mends_the_worst_that_it_accepts():
    R = Rotation.from_rotvec((0.3, -1.0, 2.0)).as_matrix()
    close(as_pose(pose(R @ np.diag([1.0 + 4e-7, 1.0, 1.0 - 4e-7]), np.zeros(3)))[:3, :3], R, 1e-14)


@pytest.mark.parametrize(
    ("at", "reason"),
    [
        (np.diag([1.0, 1.0, 1.001, 1.0]), "not orthonormal"),
        (np.diag([1.0, 1.0, -1.0, 1.0]), "reflection"),
        (np.diag([1.0, 1.0, 1.0, 2.0]), "last row"),
        (np.eye(3), "shape"),
        ([1.0, 2.0], "shape"),
        (1.0, "shape"),
        ([0.0, math.nan, 0.0], "not finite"),
        ("tool", "numbers"),
        ([[1.0], [1.0, 2.0]], "numbers"),
    ],
)
def test_as_pose_refuses_what_is_no_pose(at, reason):
    with pytest.raises(ShapeError, match=reason) as error:
        as_pose(at, "the mounting of 'crate'")
    assert "the mounting of 'crate'" in str(error.value)


def test_users_find_poses_among_the_screws():
    assert set(screw.__all__) >= {"as_pose", "inverse", "pose", "skew", "unskew"}
    assert all(hasattr(screw, name) for name in screw.__all__)


@pytest.mark.parametrize("at", ["123", ["1", "2", "3"], [None, 0, 0], np.zeros(3, dtype="m8[s]"), [1j, 0, 0]])
def test_words_and_dates_are_no_pose(at):
    with pytest.raises(ShapeError, match="pose must be numbers"):
        as_pose(at)
