"""The conditions for a rigid body, from known limits and from clouds of points."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from screwdyn.mechanism.inertia import failing_condition

coordinate = st.floats(-2.0, 2.0)
clouds = st.lists(st.tuples(st.floats(0.01, 5.0), coordinate, coordinate, coordinate), min_size=1, max_size=6).map(
    np.array
)
angles = st.tuples(*[st.floats(-3.0, 3.0)] * 3)


def turned(moments, rotvec):
    R = Rotation.from_rotvec(rotvec).as_matrix()
    tensor = R @ np.diag(moments) @ R.T
    return 0.5 * (tensor + tensor.T)


@given(clouds)
def test_every_cloud_of_points_is_a_possible_body(cloud):
    m, r = cloud[:, 0], cloud[:, 1:]
    r = r - m @ r / m.sum()
    tensor = sum(mi * (ri @ ri * np.eye(3) - np.outer(ri, ri)) for mi, ri in zip(m, r, strict=True))
    assert failing_condition(m.sum(), tensor) is None


@given(angles)
@pytest.mark.parametrize("moments", [(0, 0, 0), (0, 2, 2), (1, 2, 3), (1, 1, 1), (1e-9, 1e-9, 2e-9), (3, 4, 5)])
def test_points_rods_and_laminas_pass_in_any_orientation(moments, rotvec):
    assert failing_condition(1.0, turned(moments, rotvec)) is None


@given(angles)
def test_the_triangle_inequality_is_named_with_its_numbers_in_any_orientation(rotvec):
    condition = failing_condition(1.0, turned((1.0, 2.0, 3.5), rotvec))
    assert condition is not None
    assert "triangle inequality: 1 + 2 < 3.5" in condition


def test_one_moment_alone_is_that_of_a_planar_model():
    assert "Inertia.planar" in str(failing_condition(1.0, np.diag([0.0, 0.0, 2.0])))
    assert "Inertia.planar" not in str(failing_condition(1.0, np.diag([0.1, 0.0, 2.0])))


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e12])
def test_the_edge_is_as_sharp_as_documented_for_bodies_of_any_size(size):
    assert failing_condition(1.0, size * np.diag([1.0, 2.0, 3.0 + 1e-10])) is None
    assert failing_condition(1.0, size * np.diag([1.0, 2.0, 3.0 + 1e-7])) is not None


@pytest.mark.parametrize(
    ("mass", "tensor", "reason"),
    [
        (0.0, np.eye(3), "mass 0 kg is not positive"),
        (-1.5, np.eye(3), "mass -1.5 kg is not positive"),
        (math.nan, np.eye(3), "mass nan is not finite"),
        (math.inf, np.eye(3), "mass inf is not finite"),
        (1.0, np.diag([1.0, math.nan, 1.0]), "tensor is not finite"),
        (1.0, np.eye(3) + np.eye(3, k=1), "not symmetric"),
        (1.0, np.diag([-0.25, 1.0, 1.0]), "moment -0.25 kg m^2 is negative"),
        (1.0, [[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]], "moment -1 kg m^2 is negative"),
    ],
)
def test_failing_conditions_are_named(mass, tensor, reason):
    condition = failing_condition(mass, tensor)
    assert condition is not None
    assert reason in condition


@given(angles, st.tuples(*[st.floats(-1.0, 3.0)] * 3))
def test_it_is_the_definiteness_of_the_second_moments(rotvec, moments):
    tensor = turned(moments, rotvec)
    smallest = np.linalg.eigvalsh(0.5 * np.trace(tensor) * np.eye(3) - tensor)[0]
    if abs(smallest) > 1e-6:
        assert (failing_condition(1.0, tensor) is None) == (smallest > 0.0)
