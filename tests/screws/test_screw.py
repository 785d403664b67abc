"""Group laws, SciPy's matrix functions, and statements of textbooks about screws."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm, logm
from scipy.spatial.transform import Rotation

from screwdyn import screw
from screwdyn.core.errors import ScrewdynError, ShapeError
from screwdyn.core.types import Array
from screwdyn.screws.screw import Ad, ad, exp, inverse, log, pose, screw_motion, skew

number = st.floats(-3.0, 3.0, allow_subnormal=False)
vectors = st.tuples(number, number, number).map(np.array)
twists = st.tuples(*[number] * 6).map(np.array)
directions = vectors.filter(lambda v: np.linalg.norm(v) > 1e-3).map(lambda v: v / np.linalg.norm(v))
poses = twists.map(exp)
EDGE_ANGLES = [0.0, 1e-300, 1e-160, 1e-12, 1e-8, 1e-4, 0.3, 1.0 - 1e-12, 1.0 + 1e-12, 2.0, math.pi - 1e-3]
NEAR_PI = [math.pi - 1e-5, math.pi - 1e-8, math.pi - 1e-11, math.pi - 1e-15]


def close(a: Array, b: Array, tol: float = 1e-13) -> None:
    np.testing.assert_allclose(a, b, rtol=tol, atol=tol)


def hat(V: Array) -> Array:
    """4x4 matrix of which `exp` is the exponential."""
    matrix = np.zeros((4, 4))
    matrix[:3, :3], matrix[:3, 3] = np.cross(np.eye(3), V[:3]), V[3:]
    return matrix


# rigid motions ------------------------------------------------------------------------------------------


@given(vectors, vectors)
def test_skew_is_the_cross_product(a, b):
    close(skew(a) @ b, np.cross(a, b))
    close(screw.unskew(skew(a)), a, 0.0)


def test_unskew_ignores_the_symmetric_part():
    symmetric = np.arange(9.0).reshape(3, 3) + np.arange(9.0).reshape(3, 3).T
    close(screw.unskew(skew([1.0, 2.0, 3.0]) + symmetric), [1.0, 2.0, 3.0])


@given(twists)
def test_exp_is_the_matrix_exponential(V):
    close(exp(V), expm(hat(V)), 1e-12)


@pytest.mark.parametrize("angle", EDGE_ANGLES + NEAR_PI + [math.pi, 4.0, 2 * math.pi, 30.0])
def test_exp_at_the_edges_is_the_matrix_exponential(angle):
    V = np.concatenate([angle * np.array([2.0, -1.0, 2.0]) / 3.0, [0.5, -1.0, 3.0]])
    close(exp(V), expm(hat(V)), 1e-13 * max(1.0, angle))


def test_exp_keeps_every_digit_of_a_small_motion():
    w = 1e-9 * np.array([1.0, 2.0, -2.0])
    T = exp(np.concatenate([w, 1e-9 * np.array([3.0, 1.0, 2.0])]))
    np.testing.assert_allclose(screw.unskew(T[:3, :3]), w, rtol=1e-15)
    np.testing.assert_allclose(T[:3, 3], 1e-9 * np.array([3.0, 1.0, 2.0]), rtol=1e-8)


@given(twists)
def test_exp_is_a_rigid_motion(V):
    R = exp(V)[:3, :3]
    close(R.T @ R, np.eye(3), 1e-14)
    assert np.linalg.det(R) > 0.0
    close(R, Rotation.from_rotvec(V[:3]).as_matrix(), 1e-14)


@given(directions, vectors, st.floats(0.0, math.pi - 1e-3))
def test_log_undoes_exp(a, v, angle):
    V = np.concatenate([angle * a, v])
    close(log(exp(V)), V, 1e-12)


@given(directions, vectors, st.sampled_from(EDGE_ANGLES + NEAR_PI))
def test_log_undoes_exp_at_the_edges(a, v, angle):
    V = np.concatenate([angle * a, v])
    close(log(exp(V)), V, 1e-13)


@given(directions, vectors, st.sampled_from([math.pi, math.pi + 1e-12, math.pi - 1e-12]))
def test_log_near_half_a_turn_is_a_logarithm_with_angle_at_most_pi(a, v, angle):
    T = exp(np.concatenate([angle * a, v]))
    V = log(T)
    assert np.linalg.norm(V[:3]) <= math.pi * (1.0 + 1e-15)
    close(exp(V), T, 1e-13)


@pytest.mark.parametrize("diagonal", [(1, -1, -1), (-1, 1, -1), (-1, -1, 1)])
def test_log_of_a_half_turn_about_a_frame_axis(diagonal):
    V = log(pose(np.diag(diagonal), (1.0, 2.0, 3.0)))
    close(np.abs(V[:3]), math.pi * (np.array(diagonal) == 1), 1e-15)
    close(exp(V)[:3, 3], (1.0, 2.0, 3.0))


@pytest.mark.parametrize("angle", [1e-3, 0.1, 1.0, 2.0, 3.0, 3.1])
def test_log_is_the_matrix_logarithm(angle):
    rng = np.random.default_rng(3)
    for V in rng.normal(size=(5, 6)):
        V[:3] *= angle / np.linalg.norm(V[:3])
        T = expm(hat(V))
        close(hat(log(T)), np.real(logm(T)), 1e-10)


def test_log_of_the_identity_and_of_a_translation():
    close(log(np.eye(4)), np.zeros(6), 0.0)
    close(log(pose(np.eye(3), (1.0, 2.0, 3.0))), (0.0, 0.0, 0.0, 1.0, 2.0, 3.0), 0.0)


@given(poses, poses)
def test_inverse(A, B):
    close(inverse(A) @ A, np.eye(4))
    close(inverse(A @ B), inverse(B) @ inverse(A))
    close(inverse(A), np.linalg.inv(A), 1e-12)


@given(poses, poses, twists)
def test_adjoint_is_a_group_map_that_conjugates(A, B, V):
    close(Ad(A @ B), Ad(A) @ Ad(B))
    close(Ad(inverse(A)), np.linalg.inv(Ad(A)), 1e-11)
    close(A @ exp(V), exp(Ad(A) @ V) @ A, 1e-12)
    close(hat(Ad(A) @ V), A @ hat(V) @ inverse(A), 1e-12)


@given(twists, twists)
def test_ad_is_the_bracket_and_the_exponent_of_Ad(V, W):
    close(hat(ad(V) @ W), hat(V) @ hat(W) - hat(W) @ hat(V), 1e-12)
    close(ad(V) @ W, -ad(W) @ V)
    close(Ad(exp(V)), expm(ad(V)), 1e-11)


@given(twists, twists)
def test_ad_is_the_rate_of_Ad(V, W):
    h = 1e-4
    rate = (Ad(exp(h * V)) - Ad(exp(-h * V))) @ W / (2.0 * h)
    close(rate, ad(V) @ W, 1e-4)


@given(poses, twists, twists)
def test_ad_moves_with_its_frame(T, V, W):
    close(Ad(T) @ (ad(V) @ W), ad(Ad(T) @ V) @ (Ad(T) @ W), 1e-11)


@given(twists, poses, twists)
def test_power_is_the_same_in_every_frame(V, T, F):
    close(screw.virtual_power(Ad(T) @ V, F), screw.virtual_power(V, Ad(T).T @ F), 1e-11)


def test_power_by_hand():
    # 2 rad/s against 3 N m and 5 m/s against 7 N
    assert screw.virtual_power([0, 0, 2, 5, 0, 0], [0, 0, 3, 7, 0, 0]) == 41.0


# joints -------------------------------------------------------------------------------------------------


@given(directions, vectors, number, st.floats(-50.0, 50.0))
def test_screw_motion_is_exp_of_a_unit_screw(a, r, h, q):
    S = screw.screw_from_axis(a, r, h)
    close(screw_motion(S, q), exp(S * q), 1e-12)
    close(screw_motion(np.r_[0.0, 0.0, 0.0, a], q), pose(np.eye(3), q * a))


@given(directions, vectors, number, number)
def test_screw_motion_turns_about_its_axis_and_slides_along_it(a, r, h, q):
    T = screw_motion(screw.screw_from_axis(a, r, h), q)
    close(T[:3, :3], Rotation.from_rotvec(q * a).as_matrix())
    close(T[:3, :3] @ r + T[:3, 3], r + h * q * a, 1e-12)


@given(directions, vectors, number, number, number)
def test_screw_motions_of_one_screw_add_up(a, r, h, q1, q2):
    S = screw.screw_from_axis(a, r, h)
    close(screw_motion(S, q1) @ screw_motion(S, q2), screw_motion(S, q1 + q2), 1e-12)


def test_screw_motion_keeps_every_digit_of_a_small_angle():
    p = screw_motion(screw.screw_from_axis("z", (1.0, 0.0, 0.0)), 1e-9)[:3, 3]
    np.testing.assert_allclose(p[:2], [0.5e-18, -1e-9], rtol=1e-14)


# one screw ----------------------------------------------------------------------------------------------


@given(directions, vectors, number)
def test_pitch_and_axis_of_a_screw_made_from_them(a, r, h):
    S = 2.5 * screw.screw_from_axis(a, r, h)
    direction, point = screw.axis(S)
    close(screw.pitch(S), h, 1e-12)
    close(direction, a, 1e-14)
    close(point, r - (r @ a) * a, 1e-12)
    close(screw.unit(S), S / 2.5, 1e-14)


@given(directions, vectors, number, poses)
def test_pitch_is_the_same_in_every_frame_and_the_axis_moves(a, r, h, T):
    S = Ad(T) @ screw.screw_from_axis(a, r, h)
    close(screw.pitch(S), h, 1e-11)
    direction, point = screw.axis(S)
    moved = T[:3, :3] @ r + T[:3, 3]
    close(direction, T[:3, :3] @ a)
    close(np.cross(point - moved, direction), np.zeros(3), 1e-11)


def test_helix_by_hand():
    close(screw.screw_from_axis((0, 0, 2), (1, 0, 0), 0.25), (0, 0, 1, 0, -1, 0.25), 0.0)
    close(screw.screw_from_axis("y", (0, 0, 3)), (0, 1, 0, -3, 0, 0), 0.0)
    close(screw.screw_from_axis("x", pitch=math.inf), (0, 0, 0, 1, 0, 0), 0.0)


def test_a_translation_has_infinite_pitch_and_no_place():
    S = (0.0, 0.0, 0.0, 0.0, 3.0, 4.0)
    assert screw.pitch(S) == math.inf
    direction, point = screw.axis(S)
    close(direction, (0.0, 0.6, 0.8), 1e-15)
    close(point, np.zeros(3), 0.0)
    close(screw.unit(S), (0.0, 0.0, 0.0, 0.0, 0.6, 0.8), 1e-15)


def test_a_translation_with_rounding_in_its_turning_is_a_translation():
    close(screw.unit((1e-17, 0.0, -1e-17, 0.0, 2.0, 0.0)), (0, 0, 0, 0, 1, 0), 0.0)
    assert screw.pitch((1e-17, 0.0, -1e-17, 0.0, 2.0, 0.0)) == math.inf


def test_a_zero_screw_is_refused():
    for function in (screw.unit, screw.pitch, screw.axis):
        with pytest.raises(ScrewdynError, match="zero"):
            function([[0, 0, 1, 0, 0, 0], [0.0] * 6])
        with pytest.raises(ScrewdynError, match="not finite"):
            function([0, 0, math.nan, 0, 0, 0])


def test_axes_without_direction_are_refused():
    for axis in ((0, 0, 0), (math.nan, 0, 0), (math.inf, 0, 0)):
        with pytest.raises(ScrewdynError, match="no direction"):
            screw.screw_from_axis(axis)
    with pytest.raises(ScrewdynError, match=r"axis 'w'.*a vector"):
        screw.direction("w")
    with pytest.raises(ScrewdynError, match="not finite"):
        screw.screw_from_axis("z", (0, math.nan, 0))
    with pytest.raises(ScrewdynError, match="not finite"):
        screw.screw_from_axis("z", pitch=math.nan)


@given(directions, vectors, number, directions, vectors, number)
def test_reciprocal_product_is_balls_virtual_coefficient(a1, r1, h1, a2, r2, h2):
    # (h1 + h2) cos(angle) - distance sin(angle), from Ball's Treatise; here without choosing a common normal
    S1, S2 = screw.screw_from_axis(a1, r1, h1), screw.screw_from_axis(a2, r2, h2)
    expected = (h1 + h2) * (a1 @ a2) - (r2 - r1) @ np.cross(a1, a2)
    close(screw.reciprocal_product(S1, S2), expected, 1e-12)


@given(twists, twists, poses)
def test_reciprocal_product_is_the_same_in_every_frame(S1, S2, T):
    close(screw.reciprocal_product(Ad(T) @ S1, Ad(T) @ S2), screw.reciprocal_product(S1, S2), 1e-11)
    close(screw.reciprocal_product(S1, S2), screw.reciprocal_product(S2, S1))


@given(directions, directions, vectors)
def test_lines_that_meet_are_reciprocal(a, b, r):
    close(screw.reciprocal_product(screw.screw_from_axis(a, r), screw.screw_from_axis(b, r)), 0.0)


# shapes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (4,), (2, 3), (0,)])
def test_everything_batches_over_leading_axes(shape):
    rng = np.random.default_rng(1)
    V, W = rng.normal(size=(2, *shape, 6))
    q = rng.normal(size=shape)
    S = screw.unit(V)
    T = exp(V)

    def each(function, *arrays, core):
        flat = [a.reshape(-1, *a.shape[len(shape) :]) for a in arrays]
        rows = [function(*row) for row in zip(*flat, strict=True)]
        return np.array(rows).reshape((*shape, *core))

    close(T, each(exp, V, core=(4, 4)))
    close(log(T), each(log, T, core=(6,)))
    close(inverse(T), each(inverse, T, core=(4, 4)))
    close(Ad(T), each(Ad, T, core=(6, 6)))
    close(ad(V), each(ad, V, core=(6, 6)))
    close(S, each(screw.unit, V, core=(6,)))
    close(screw.pitch(V), each(screw.pitch, V, core=()))
    for k in (0, 1):
        close(screw.axis(V)[k], each(lambda x, k=k: screw.axis(x)[k], V, core=(3,)))
    close(screw_motion(S, q), each(screw_motion, S, q, core=(4, 4)))
    close(
        screw_motion(screw.unit(np.ones(6)), q),
        screw_motion(np.broadcast_to(screw.unit(np.ones(6)), V.shape), q),
    )
    made = screw.screw_from_axis(V[..., :3], V[..., 3:], q)
    close(made, each(screw.screw_from_axis, V[..., :3], V[..., 3:], q, core=(6,)))
    close(screw.reciprocal_product(V, W), each(screw.reciprocal_product, V, W, core=()))
    close(screw.virtual_power(V, W), each(screw.virtual_power, V, W, core=()))
    close(screw.to_linear_first(V), each(screw.to_linear_first, V, core=(6,)))
    close(screw.to_linear_first_matrix(ad(V)), each(screw.to_linear_first_matrix, ad(V), core=(6, 6)))


def test_a_batch_may_mix_edges():
    angles = np.array([0.0, 1e-200, 1e-7, 0.5, 1.5, math.pi - 1e-9])
    V = np.column_stack([np.outer(angles, [0.6, 0.0, 0.8]), np.ones((6, 3))])
    close(log(exp(V)), V, 1e-13)
    S = np.array([[0, 0, 1.0, 0, 0, 0.5], [0, 0, 0, 1.0, 0, 0]])
    np.testing.assert_array_equal(screw.pitch(S), [0.5, math.inf])


@pytest.mark.parametrize("function", [exp, ad, screw.unit, screw.pitch, screw.to_linear_first])
def test_wrong_lengths_are_named(function):
    with pytest.raises(ShapeError, match=r"\(\.\.\., 6\), got \(5,\)"):
        function(np.zeros(5))
    with pytest.raises(ShapeError, match="array of numbers"):
        function("abcdef")


@pytest.mark.parametrize("function", [log, Ad, inverse])
def test_wrong_matrices_are_named(function):
    with pytest.raises(ShapeError, match=r"\(\.\.\., 4, 4\), got \(3, 3\)"):
        function(np.eye(3))


def test_linear_first_and_back():
    V = np.arange(6.0)
    close(screw.to_linear_first(V), [3, 4, 5, 0, 1, 2], 0.0)
    close(screw.from_linear_first(screw.to_linear_first(V)), V, 0.0)
    A = np.arange(36.0).reshape(6, 6)
    close(screw.to_linear_first_matrix(A) @ screw.to_linear_first(V), screw.to_linear_first(A @ V), 0.0)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_refused_by_name(bad):
    V, T = np.ones(6), np.tile(np.eye(4), (2, 1, 1))
    V[4], T[1, 0, 3] = bad, bad
    for function in (exp, ad, screw.unit, screw.pitch, screw.axis, screw.to_linear_first):
        with pytest.raises(ShapeError, match="not finite"):
            function(V)
    for function in (log, Ad, inverse):
        with pytest.raises(ShapeError, match="pose has entries that are not finite"):
            function(T)
    with pytest.raises(ShapeError, match="coordinate has entries that are not finite"):
        screw_motion(screw.unit(np.ones(6)), bad)


def test_words_are_no_coordinates():
    for wrong in (lambda: screw_motion(np.eye(6)[2], "1"), lambda: screw.screw_from_axis("z", pitch="1")):
        with pytest.raises(ShapeError, match="must be an array of numbers, got '1'"):
            wrong()


@pytest.mark.parametrize("function", [Ad, inverse, log])
def test_what_is_no_pose_is_refused(function):
    far, stretched, mirrored, bottom = (np.eye(4) for _ in range(4))
    far[0, 0], stretched[1, 1], mirrored[2, 2], bottom[3, 0] = 1 + 1e-7, 2.0, -1.0, 1.0
    function(far)  # as of numbers from a file
    for T, message in (
        (stretched, r"not orthonormal: R\^T R - 1 reaches 3"),
        (mirrored, "a reflection"),
        (bottom, r"last row of pose must be \[0, 0, 0, 1\], got \[1.0, "),
    ):
        for poses in (T, np.stack([np.eye(4), T])):
            with pytest.raises(ShapeError, match=message):
                function(poses)
