"""Rigid motions: the exponential and the logarithm of twists, and the change of frame of twists and wrenches.

Conventions as in :mod:`screwdyn.screws.screw`, which also has these functions.
"""

from __future__ import annotations

import math

import numpy as np

from screwdyn.core.types import Array, ArrayLike
from screwdyn.screws.poses import cross, dot, pose_of, shaped, skew_of, unskew

__all__ = ["Ad", "ad", "exp", "log", "screw_motion"]


def Ad(T: ArrayLike) -> Array:
    """Adjoint of a pose, [[R, 0], [p^ R, R]]: changes the frame of a twist from B to A if T is T_AB.

    ``T @ exp(V) == exp(Ad(T) @ V) @ T``. Its transpose changes the frame of a wrench from A to B.
    docs/mathematics.md §1.

    Parameters
    ----------
    T : array_like, shape (..., 4, 4)
        Pose, in metres.

    Returns
    -------
    ndarray, shape (..., 6, 6)

    Raises
    ------
    ShapeError
        If T has another shape or entries that are not finite.
    """
    T = shaped(T, (4, 4), "pose")
    R = T[..., :3, :3]
    return _lower_blocks(R, skew_of(T[..., :3, 3]) @ R)


def ad(V: ArrayLike) -> Array:
    """Lie bracket [[w^, 0], [v^, w^]], (..., 6, 6), of a twist (..., 6): the rate of Ad(exp(V t)) at t = 0.

    ``ad(V1) @ V2 == -ad(V2) @ V1``. docs/mathematics.md §1. Raises ShapeError if V has another shape or entries that
    are not finite.
    """
    V = shaped(V, (6,), "twist")
    return _lower_blocks(skew_of(V[..., :3]), skew_of(V[..., 3:]))


def _lower_blocks(diagonal: Array, lower: Array) -> Array:
    """6x6 matrices [[diagonal, 0], [lower, diagonal]]."""
    result = np.zeros((*diagonal.shape[:-2], 6, 6))
    result[..., :3, :3] = result[..., 3:, 3:] = diagonal
    result[..., 3:, :3] = lower
    return result


def _motion(V: Array, sine: Array, versine: Array, lag: Array, slide: Array) -> Array:
    """Pose with R = 1 + sine w^ + versine w^^2 and p = (slide 1 + versine w^ + lag w^^2) v."""
    w1 = skew_of(V[..., :3])
    w2 = w1 @ w1
    one = np.eye(3)
    sine, versine, lag, slide = (k[..., None, None] for k in (sine, versine, lag, slide))
    travel = slide * one + versine * w1 + lag * w2
    return pose_of(one + sine * w1 + versine * w2, (travel @ V[..., 3:, None])[..., 0])


def _exp_coefficients(angle: Array) -> tuple[Array, Array, Array]:
    """sin(x)/x, (1 - cos x)/x^2 and (x - sin x)/x^3, without loss of digits near zero."""
    x = np.where(angle == 0.0, 1.0, angle)
    sine = np.where(angle == 0.0, 1.0, np.sin(x) / x)
    half = 0.5 * x
    versine = np.where(angle == 0.0, 0.5, 0.5 * (np.sin(half) / half) ** 2)
    square = np.minimum(angle, 1.0) ** 2
    series = np.zeros_like(angle)
    for k in reversed(range(9)):
        series = 1.0 / math.factorial(2 * k + 3) - square * series
    far = np.maximum(angle, 1.0)
    lag = np.where(angle < 1.0, series, (far - np.sin(far)) / far**3)
    return sine, versine, lag


def exp(V: ArrayLike) -> Array:
    """Pose reached by following the constant twist V for one second (the exponential of its 4x4 matrix).

    With x the length of w: R = 1 + (sin x / x) w^ + ((1 - cos x) / x^2) w^^2 and
    p = (1 + ((1 - cos x) / x^2) w^ + ((x - sin x) / x^3) w^^2) v, to full accuracy at any x.

    Parameters
    ----------
    V : array_like, shape (..., 6)
        Twist [w; v] in rad/s and m/s (or a screw times an angle).

    Returns
    -------
    ndarray, shape (..., 4, 4)

    Raises
    ------
    ShapeError
        If V has another shape or entries that are not finite.
    """
    V = shaped(V, (6,), "twist")
    angle = np.sqrt(dot(V[..., :3], V[..., :3]))
    return _motion(V, *_exp_coefficients(angle), np.ones_like(angle))


def screw_motion(S: ArrayLike, q: ArrayLike) -> Array:
    """Pose exp(S^ q) of a joint with unit screw S at coordinate q, for any pitch (docs/mathematics.md §1).

    R = 1 + sin q w^ + (1 - cos q) w^^2, p = (q 1 + (1 - cos q) w^ + (q - sin q) w^^2) v.

    Parameters
    ----------
    S : array_like, shape (..., 6)
        Unit screw: ``|w| = 1``, or ``w = 0`` and ``|v| = 1``. Not checked; see `unit`.
    q : array_like, shape (...)
        In radians, or in metres for a pure translation.

    Returns
    -------
    ndarray, shape (..., 4, 4)

    Raises
    ------
    ShapeError
        If an argument has another shape or entries that are not finite.
    """
    S, q = shaped(S, (6,), "screw"), shaped(q, (), "coordinate")
    sine = np.sin(q)
    return _motion(S, sine, 2.0 * np.sin(0.5 * q) ** 2, q - sine, q)


def log(T: ArrayLike) -> Array:
    """Twist V with exp(V) = T and angle ``|w|`` in [0, pi] (docs/mathematics.md §1).

    The rotation vector is computed from the unit quaternion, which is the largest row of 4 q q^T, normalised, so that
    no digits are lost near 0 or near pi. At exactly pi, w and -w are both solutions, and either may be returned.

    Parameters
    ----------
    T : array_like, shape (..., 4, 4)
        Pose, in metres.

    Returns
    -------
    ndarray, shape (..., 6)
        Twist [w; v] in radians and metres.

    Raises
    ------
    ShapeError
        If T has another shape or entries that are not finite.
    """
    T = shaped(T, (4, 4), "pose")
    R = T[..., :3, :3]
    outer = np.empty((*R.shape[:-2], 4, 4))
    trace = np.trace(R, axis1=-2, axis2=-1)
    outer[..., 0, 0] = 1.0 + trace
    outer[..., 0, 1:] = outer[..., 1:, 0] = 2.0 * unskew(R)
    outer[..., 1:, 1:] = R + R.swapaxes(-1, -2) + (1.0 - trace)[..., None, None] * np.eye(3)
    largest = np.argmax(np.diagonal(outer, axis1=-2, axis2=-1), axis=-1)
    quaternion = np.take_along_axis(outer, largest[..., None, None], axis=-2)[..., 0, :]
    quaternion *= np.copysign(1.0, quaternion[..., :1])
    scalar, vector = quaternion[..., 0], quaternion[..., 1:]
    sine = np.sqrt(dot(vector, vector))
    angle = 2.0 * np.arctan2(sine, scalar)
    w = (angle / np.where(sine == 0.0, 1.0, sine))[..., None] * vector
    # v = travel⁻¹ p, of which the powers of w^ beyond the second follow from those before.
    turned = cross(w, T[..., :3, 3])
    v = T[..., :3, 3] - 0.5 * turned + _log_coefficient(angle)[..., None] * cross(w, turned)
    return np.concatenate([w, v], axis=-1)


def _log_coefficient(angle: Array) -> Array:
    """(1 − (x/2) cot(x/2)) / x², without loss of digits near zero."""
    square = np.minimum(angle, 0.5) ** 2
    series = np.zeros_like(angle)
    for k in (691 / 1307674368000, 1 / 47900160, 1 / 1209600, 1 / 30240, 1 / 720, 1 / 12):
        series = k + square * series
    far = np.maximum(angle, 0.5)
    return np.where(angle < 0.5, series, (1.0 - 0.5 * far / np.tan(0.5 * far)) / far**2)
