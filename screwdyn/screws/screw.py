"""Twists, wrenches, screws and rigid motions.

A twist is V = [w; v] and a wrench F = [n; f], angular part first; a pose T_AB is the 4x4 matrix of frame B
in frame A. Units are SI and radians. All functions take leading batch axes, written ``...`` in the shapes.
Conventions and formulas: docs/mathematics.md §1, after Lynch and Park, *Modern Robotics*.

All functions raise ShapeError if an argument has a wrong shape or entries that are not finite, or if a pose is not a
rigid motion.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from screwdyn.core import Array, ArrayLike, ScrewdynError, ShapeError, UnboundSymbolError, expressions

# Poses and vectors; twists and their exponentials; screws; the other order of components.
__all__ = ["as_pose", "direction", "frame_along", "inverse", "pose", "skew", "unskew"]
__all__ += ["Ad", "ad", "exp", "log", "screw_motion", "virtual_power"]
__all__ += ["axis", "pitch", "reciprocal_product", "screw_from_axis", "unit"]
__all__ += ["from_linear_first", "to_linear_first", "to_linear_first_matrix"]

# A screw whose pitch exceeds this many metres per radian is a translation disturbed by rounding.
_LARGEST_PITCH = 1e12
_AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}
_AXES |= {"-x": (-1.0, 0.0, 0.0), "-y": (0.0, -1.0, 0.0), "-z": (0.0, 0.0, -1.0)}
_IDENTITY = np.eye(4)
# Tolerance for the length of a quaternion. The formulas divide by the length; the check detects mistakes of the user.
LENGTH_TOLERANCE = 1e-3


def shaped(x: ArrayLike, tail: tuple[int, ...], what: str, read: Callable[[Any], Array] = expressions.real) -> Array:
    """Return x as finite floats, or as ``read`` reads it, after checking that its last axes have lengths ``tail``."""
    numbers = read is expressions.real
    try:
        array = read(x)
    except (TypeError, ValueError) as error:
        given = expressions.read_or_nan(x, expressions.array) if numbers else None
        if symbols := expressions.free_symbols([given]):
            raise UnboundSymbolError.of(symbols, what) from error
        raise ShapeError(f"{what} must be an array of numbers, got {x!r}") from error
    if array.shape[max(array.ndim - len(tail), 0) :] != tail:
        raise ShapeError(f"{what} must have shape ({', '.join(('...', *map(str, tail)))}), got {array.shape}")
    if numbers and not np.isfinite(array).all():
        raise ShapeError(f"{what} has entries that are not finite: {array.tolist()}")
    return array


# The same, of floats or expressions.
entries = functools.partial(shaped, read=expressions.array)


def skew(v: ArrayLike) -> Array:
    """Cross-product matrix (..., 3, 3) of a vector (..., 3), ``skew(v) @ u == np.cross(v, u)``."""
    return skew_of(entries(v, (3,), "vector"))


def skew_of(v: Array) -> Array:
    """Cross-product matrix of a vector (..., 3) that has been checked; for inner loops."""
    result = np.zeros((*v.shape, 3), dtype=v.dtype)
    result[..., 2, 1] = v[..., 0]
    result[..., 0, 2] = v[..., 1]
    result[..., 1, 0] = v[..., 2]
    return result - result.swapaxes(-1, -2)


def dot(a: Array, b: Array) -> Array:
    """Scalar product of vectors (..., k)."""
    product: Array = np.einsum("...i,...i->...", a, b)
    return product


def cross(a: Array, b: Array) -> Array:
    """Cross product of vectors (..., 3)."""
    return (skew_of(a) @ b[..., None])[..., 0]


def unskew(matrix: ArrayLike) -> Array:
    """Vector (..., 3) of ½ (A − Aᵀ), with A (..., 3, 3), so that ``unskew(skew(v)) == v``."""
    a = shaped(matrix, (3, 3), "matrix")
    a = 0.5 * (a - a.swapaxes(-1, -2))
    return np.stack([a[..., 2, 1], a[..., 0, 2], a[..., 1, 0]], axis=-1)


def pose(R: ArrayLike, p: ArrayLike) -> Array:
    """Pose T = [[R, p], [0, 1]], (..., 4, 4), from a rotation R (..., 3, 3) and an origin p (..., 3) in metres.

    Does not check that R is a rotation; `as_pose` does.
    """
    return pose_of(shaped(R, (3, 3), "rotation"), shaped(p, (3,), "position"))


def pose_of(R: Array, p: Array) -> Array:
    """Pose from a rotation and an origin that have been checked; for inner loops."""
    batch = p.shape[:-1] if p.shape[:-1] == R.shape[:-2] else np.broadcast_shapes(R.shape[:-2], p.shape[:-1])
    T = np.zeros((*batch, 4, 4))
    T[..., :3, :3], T[..., :3, 3], T[..., 3, 3] = R, p, 1.0
    return T


def as_pose(at: ArrayLike | None, what: str = "pose") -> Array:
    """Read a pose in any of the forms that users may give.

    Raises ShapeError if `at` has another shape, is not finite, or is not a rigid motion.

    Parameters
    ----------
    at : None, array_like of shape (3,) or (4, 4)
        None for the identity, a translation in metres, or a homogeneous matrix (docs/mathematics.md §1). If the entries
        of RᵀR − 1 are at most 1e-6, as with numbers copied from a file, R is replaced by the nearest rotation.
    what : str
        What error messages call the pose.

    Returns
    -------
    ndarray, shape (4, 4)
        A new array. If it contains expressions, only what does not depend on their values is checked.
    """
    if at is None:
        return np.eye(4)
    given: Array = expressions.read(at, what)
    if not expressions.is_bounded(given):
        raise ShapeError(f"{what} has entries that are not finite, or beyond {expressions.LARGEST:g}: {given.tolist()}")
    if given.shape == (3,):
        T = np.eye(4, dtype=object) if given.dtype.hasobject else _IDENTITY.copy()
        T[:3, 3] = given
        return T
    if given.shape != (4, 4):
        hint = "; for a rotation alone, use screw.pose(R, (0, 0, 0))" if given.shape == (3, 3) else ""
        raise ShapeError(f"{what} must be None, a 3-vector or a 4x4 matrix, got shape {given.shape}{hint}")
    R = given[:3, :3]
    if given.dtype.hasobject:
        _check_known_entries(given, what)
        return given
    rows = given.tolist()  # numbers of Python: a third as long as by NumPy
    x, y, z, _ = zip(*rows[:3], strict=True)
    products = (x, x, 1.0), (y, y, 1.0), (z, z, 1.0), (x, y, 0.0), (x, z, 0.0), (y, z, 0.0)
    error_size = max([abs(a * d + b * e + c * f - one) for (a, b, c), (d, e, f), one in products])
    if error_size > 1e-6:
        raise ShapeError(f"the rotation of {what} is not orthonormal: R^T R - 1 reaches {error_size:.3g}")
    (a, b, c), (d, e, f), (g, h, i) = x, y, z
    if a * (e * i - f * h) + b * (f * g - d * i) + c * (d * h - e * g) < 0.0:
        raise ShapeError(f"the rotation of {what} is a reflection (determinant -1); swap or negate an axis")
    if max(map(abs, map(operator.sub, rows[3], (0.0, 0.0, 0.0, 1.0)))) > 1e-6:
        raise ShapeError(f"the last row of {what} must be [0, 0, 0, 1], got {rows[3]}")
    if error_size > 1e-14:
        for _ in range(2):  # Newton's iteration for the polar factor: each step squares the error
            R = R @ (1.5 * np.eye(3) - 0.5 * (R.T @ R))
        given[:3, :3] = R
    given[3] = _IDENTITY[3]
    return given


def _rigid(T: ArrayLike) -> Array:
    """Poses (…, 4, 4) of numbers; ShapeError, as of :func:`as_pose`, for the first that is not a rigid motion."""
    T = shaped(T, (4, 4), "pose")
    if T.ndim > 2:
        R = T[..., :3, :3]
        wrong = np.abs(R.swapaxes(-1, -2) @ R - np.eye(3)).max(axis=(-2, -1)) > 1e-6
        wrong |= (np.linalg.det(R) < 0) | (np.abs(T[..., 3, :] - _IDENTITY[3]).max(axis=-1) > 1e-6)
    if T.ndim == 2 or wrong.any():
        as_pose(T if T.ndim == 2 else T[wrong][0])
    return T


def _check_known_entries(T: Array, what: str) -> None:
    """Raise ShapeError if the entries without symbols show that a pose with expressions is not a rigid motion."""
    R = T[:3, :3]
    if any(expressions.is_number(x) and abs(x - (k == 3)) > 1e-6 for k, x in enumerate(T[3])):
        raise ShapeError(f"the last row of {what} must be [0, 0, 0, 1], got {T[3].tolist()}")
    if not expressions.free_symbols([R]):
        as_pose(pose(R, (0, 0, 0)), what)
    elif any(expressions.is_number(x) and abs(x) > 1 + 1e-6 for x in R.flat):
        raise ShapeError(f"the rotation of {what} has an entry larger than 1: {R.tolist()}")


def inverse(T: ArrayLike) -> Array:
    """Inverse of a pose, T_BA from T_AB, both (..., 4, 4): [[Rᵀ, −Rᵀ p], [0, 1]]."""
    return inverse_of(_rigid(T))


def inverse_of(T: Array) -> Array:
    """:func:`inverse` of an array that has been checked; for inner loops."""
    Rt = T[..., :3, :3].swapaxes(-1, -2)
    return pose_of(Rt, -(Rt @ T[..., :3, 3, None])[..., 0])


def Ad(T: ArrayLike) -> Array:
    """Adjoint of a pose, [[R, 0], [p^ R, R]]: changes the frame of a twist from B to A if T is T_AB.

    It is (..., 6, 6), of a pose T (..., 4, 4) in metres: ``T @ exp(V) == exp(Ad(T) @ V) @ T``. Its transpose changes
    the frame of a wrench from A to B.
    """
    return Ad_of(_rigid(T))


def Ad_of(T: Array) -> Array:
    """:func:`Ad` of an array that has been checked; for inner loops."""
    R = T[..., :3, :3]
    return _lower_blocks(R, skew_of(T[..., :3, 3]) @ R)


def twist_in(T: Array, V: Array) -> Array:
    """Ad(T)⁻¹ V, [Rᵀ ω; Rᵀ (v + ω × p)]: a twist in a frame of pose T, of arrays that have been checked."""
    # In half the time of small matrices.
    (x, y, z, a, b, c), ((A, B, C, d), (D, E, F, e), (G, H, I, f), _) = V.tolist(), T.tolist()
    a, b, c = a + y * f - z * e, b + z * d - x * f, c + x * e - y * d
    w = A * x + D * y + G * z, B * x + E * y + H * z, C * x + F * y + I * z
    return np.array([*w, A * a + D * b + G * c, B * a + E * b + H * c, C * a + F * b + I * c])


def ad(V: ArrayLike) -> Array:
    """Lie bracket [[w^, 0], [v^, w^]], (..., 6, 6), of a twist (..., 6): the rate of Ad(exp(V t)) at t = 0.

    ``ad(V1) @ V2 == -ad(V2) @ V1``.
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
    """Pose (..., 4, 4) reached by following a constant twist for one second (the exponential of its 4x4 matrix).

    The twist V = [w; v], (..., 6), is in rad/s and m/s (or a screw times an angle). With x the length of w:
    R = 1 + (sin x / x) w^ + ((1 - cos x) / x^2) w^^2 and
    p = (1 + ((1 - cos x) / x^2) w^ + ((x - sin x) / x^3) w^^2) v, to full accuracy at any x.
    """
    V = shaped(V, (6,), "twist")
    angle = np.sqrt(dot(V[..., :3], V[..., :3]))
    return _motion(V, *_exp_coefficients(angle), np.ones_like(angle))


def screw_motion(S: ArrayLike, q: ArrayLike) -> Array:
    """Pose exp(S^ q) of a joint with unit screw S at coordinate q, for any pitch (docs/mathematics.md §1).

    R = 1 + sin q w^ + (1 - cos q) w^^2, p = (q 1 + (1 - cos q) w^ + (q - sin q) w^^2) v.

    The pose is (..., 4, 4). S is (..., 6), with ``|w| = 1``, or ``w = 0`` and ``|v| = 1``, which is not checked; see
    `unit`. q is (...), in radians, or in metres for a pure translation.
    """
    return motion_of(shaped(S, (6,), "screw"), shaped(q, (), "coordinate"))


def motion_of(S: Array, q: Array) -> Array:
    """:func:`screw_motion` of arrays that have been checked; for inner loops."""
    sine = np.sin(q)
    return _motion(S, sine, 2.0 * np.sin(0.5 * q) ** 2, q - sine, q)


def log(T: ArrayLike) -> Array:
    """Twist V with exp(V) = T and angle ``|w|`` in [0, pi] (docs/mathematics.md §1).

    V = [w; v], (..., 6), is in radians and metres, of a pose T (..., 4, 4) in metres. The rotation vector is computed
    from the unit quaternion, which is the largest row of 4 q q^T, normalised, so that no digits are lost near 0 or near
    pi. At exactly pi, w and -w are both solutions, and either may be returned.
    """
    return log_of(_rigid(T))


def log_of(T: Array) -> Array:
    """:func:`log` of an array that has been checked; for inner loops."""
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


def unit(S: ArrayLike) -> Array:
    """Scale screws (..., 6) so that ``|w| = 1``, or ``w = 0`` and ``|v| = 1``.

    A pitch above 1e12 m/rad is treated as rounding of a pure translation: w becomes 0. Raises ScrewdynError if a screw
    is zero or not finite.
    """
    S = shaped(S, (6,), "screw")
    w, v = np.sqrt(dot(S[..., :3], S[..., :3])), np.sqrt(dot(S[..., 3:], S[..., 3:]))
    if np.any((w == 0.0) & (v == 0.0)):
        raise ScrewdynError("a screw is zero: it has neither an axis nor a direction")
    turning = w * _LARGEST_PITCH > v
    result = S / np.where(turning, w, v)[..., None]
    result[..., :3] *= turning[..., None]
    return result


def pitch(S: ArrayLike) -> Array:
    """Pitch h = w.v / w.w in metres per radian, (...), of screws (..., 6); infinite for a pure translation.

    A screw may contain SymPy expressions. Raises ScrewdynError if a screw is zero or not finite.
    docs/mathematics.md §1.
    """
    S = entries(S, (6,), "screw")
    if S.dtype == object and S.shape == (6,):  # assumed to be a unit screw: its length may depend on symbols
        w = S[:3]
        return expressions.array(*expressions.tidied([w @ S[3:] / (w @ w)])) if w.any() else np.array(np.inf)
    S = unit(S)
    h: Array = np.where(S[..., :3].any(axis=-1), dot(S[..., :3], S[..., 3:]), np.inf)
    return h


def axis(S: ArrayLike) -> tuple[Array, Array]:
    """Axis of a screw (..., 6): its direction, and its point w x v / w.w in metres, which is the closest to the origin.

    Both are (..., 3); the direction is a unit vector. A pure translation has no particular axis: the point returned is
    the origin. Raises ScrewdynError if a screw is zero or not finite. docs/mathematics.md §1.
    """
    S = unit(S)
    w, v = S[..., :3], S[..., 3:]
    return np.where(w.any(axis=-1, keepdims=True), w, v), cross(w, v)


def direction(axis: str | ArrayLike) -> Array:
    """Unit vector (..., 3) along an axis: "x", "-x", "y", "-y", "z", "-z" or a vector (..., 3) of any length but zero.

    Raises ScrewdynError if a vector is zero or not finite, or the string is not an axis.
    """
    if isinstance(axis, str) and axis not in _AXES:
        raise ScrewdynError(f'there is no axis {axis!r}: write "x", "y", "z", "-x", "-y", "-z" or a vector')
    a = entries(_AXES[axis] if isinstance(axis, str) else axis, (3,), "axis")
    if a.dtype == object and a.shape == (3,):
        return expressions.array(a / expressions.root(a @ a))
    length = np.sqrt(dot(a, a))
    if not np.all((length > 0.0) & (length < np.inf)):
        raise ScrewdynError(f"an axis is zero or not finite, so it has no direction: {a.tolist()}")
    return a / length[..., None]


def frame_along(z: Sequence[Any]) -> tuple[Any, ...]:
    """Rotation matrix, as nine numbers row by row, whose third column is the unit vector z (docs/mathematics.md §1).

    Its first column is a unit vector of the frame if one is perpendicular to z, so that right angles stay exact. The
    three numbers of z may be expressions.
    """
    if any(map(expressions.is_number, z)):
        # The number of smallest magnitude, so that the length below is not 0.
        k = min(range(3), key=lambda i: abs(z[i]) if expressions.is_number(z[i]) else 1.0)
        x = [int(i == k) - z[k] * z[i] for i in range(3)]
        length = expressions.root(x[0] * x[0] + x[1] * x[1] + x[2] * x[2])
        x = [x[i] * (1 / length) for i in range(3)]
    else:
        x = _perpendicular(z)
    y = z[1] * x[2] - z[2] * x[1], z[2] * x[0] - z[0] * x[2], z[0] * x[1] - z[1] * x[0]
    return x[0], y[0], z[0], x[1], y[1], z[1], x[2], y[2], z[2]


def _perpendicular(z: Sequence[Any]) -> list[Any]:
    """A unit vector perpendicular to a unit vector z of expressions, with denominators of at least 1 for all values."""
    # Duff et al., "Building an orthonormal basis, revisited", 2017, about a component of known sign if there is one.
    sides = [expressions.side(component) for component in z]
    k = next((k for k in (2, 0, 1) if expressions.is_number(sides[k])), 2)
    x = [0, 0, 0]
    x[k - 2] = 1 - z[k - 2] ** 2 / (1 + sides[k] * z[k])
    x[k - 1] = -z[k - 2] * z[k - 1] / (1 + sides[k] * z[k])
    x[k] = -sides[k] * z[k - 2]
    return x


def screw_from_axis(axis: str | ArrayLike, point: ArrayLike = (0, 0, 0), pitch: ArrayLike = 0.0) -> Array:
    """Unit screw [a; -a x r + h a] with axis a through r and pitch h, or [0; a] for an infinite pitch.

    docs/mathematics.md §1. All arguments may contain SymPy expressions. Raises ScrewdynError if an axis is zero, or the
    axis or the point is not finite.

    Parameters
    ----------
    axis : str or array_like, shape (..., 3)
        "x", "y", "z", "-x", "-y", "-z" or a vector of any length but zero.
    point : array_like, shape (..., 3)
        Any point of the axis, in metres.
    pitch : array_like, shape (...)
        In metres per radian.

    Returns
    -------
    ndarray, shape (..., 6)
    """
    a, r, h = direction(axis), entries(point, (3,), "point"), entries(pitch, (), "pitch")
    if not expressions.is_finite(r):
        raise ScrewdynError(f"a point of an axis is not finite: {r.tolist()}")
    if object in (a.dtype, r.dtype, h.dtype):
        slides = h.dtype != object and np.isinf(h)
        parts = (0 * a, a) if slides else (a, cross(r, a) + h * a)
        return expressions.array([x for part in parts for x in expressions.tidied(part)])
    sliding = np.isinf(h[..., None])
    v = np.where(sliding, a, cross(r, a) + np.where(sliding, 0.0, h[..., None]) * a)
    S = np.concatenate(np.broadcast_arrays(np.where(sliding, 0.0, a), v), axis=-1)
    return unit(S)


def reciprocal_product(S1: ArrayLike, S2: ArrayLike) -> Array:
    """Reciprocal product w1.v2 + v1.w2, (...), of two screws (..., 6) in the same frame; the same in every frame.

    Both are [w; v]: pass a wrench [n; f] as [f; n]. Zero means that a wrench along one does no work on a twist along
    the other.
    """
    return dot(shaped(S1, (6,), "screw"), to_linear_first(S2))


def virtual_power(V: ArrayLike, F: ArrayLike) -> Array:
    """Power w.n + v.f in watts, (...), of wrenches [n; f] on twists [w; v], both (..., 6) and in the same frame."""
    return dot(shaped(V, (6,), "twist"), shaped(F, (6,), "wrench"))


# quaternions [x, y, z, w], scalar last, whose length has no meaning ---------------------------------


def rotation_entries(x: Any, y: Any, z: Any, w: Any) -> tuple[Any, ...]:
    """The nine entries, row by row, of R = 1 + s (w û + û²), u the vector of the quaternion and s = 2 / |q|².

    The entries of q may be floats, traced scalars, or arrays of one shape.
    """
    s = 2.0 / (x * x + y * y + z * z + w * w)
    return (
        1.0 - s * (y * y + z * z),
        s * (x * y - w * z),
        s * (x * z + w * y),
        s * (x * y + w * z),
        1.0 - s * (x * x + z * z),
        s * (y * z - w * x),
        s * (x * z - w * y),
        s * (y * z + w * x),
        1.0 - s * (x * x + y * y),
    )


def rate_entries(x: Any, y: Any, z: Any, w: Any, a: Any, b: Any, c: Any) -> tuple[Any, ...]:
    """The four entries of dq/dt = ½ q ∘ [a, b, c, 0], with the angular velocity (a, b, c) in the rotating frame."""
    return (
        0.5 * (w * a + y * c - z * b),
        0.5 * (w * b + z * a - x * c),
        0.5 * (w * c + x * b - y * a),
        -0.5 * (x * a + y * b + z * c),
    )


def product_entries(x: Any, y: Any, z: Any, w: Any, a: Any, b: Any, c: Any, d: Any) -> tuple[Any, ...]:
    """The four entries of the product [x, y, z, w] ∘ [a, b, c, d]."""
    return (
        w * a + y * c - z * b + x * d,
        w * b + z * a - x * c + y * d,
        w * c + x * b - y * a + z * d,
        w * d - x * a - y * b - z * c,
    )


def rotation_of(q: Array) -> Array:
    """Rotation matrix (…, 3, 3) of a quaternion (…, 4)."""
    if q.ndim == 1:
        return np.array(rotation_entries(*q.tolist())).reshape(3, 3)
    entries = rotation_entries(*np.moveaxis(q, -1, 0))
    return np.stack(entries, axis=-1).reshape(*q.shape[:-1], 3, 3)


def rotation_vector_of(q: Array) -> Array:
    """Rotation vector (…, 3) in radians of a quaternion (…, 4), of length 2 atan2(|u|, w) in [0, 2π]."""
    u, w = q[..., :3], q[..., 3:]
    sine = np.sqrt(np.sum(u * u, axis=-1, keepdims=True))
    turning = np.where(sine > 0, sine, 1.0)
    return np.asarray(u * (2 * np.arctan2(sine, w) / turning))


# the other order of components --------------------------------------------------------------------


def to_linear_first(V: ArrayLike) -> Array:
    """[v; w] from [w; v] (or [f; n] from [n; f]), shape (..., 6)."""
    V = shaped(V, (6,), "twist or wrench")
    return np.concatenate([V[..., 3:], V[..., :3]], axis=-1)


def from_linear_first(V: ArrayLike) -> Array:
    """[w; v] from [v; w] (or [n; f] from [f; n]), shape (..., 6): the inverse of `to_linear_first`."""
    return to_linear_first(V)


def to_linear_first_matrix(matrix: ArrayLike) -> Array:
    """Matrix (..., 6, 6) of a linear map for [v; w] from that for [w; v], or the reverse."""
    return np.roll(shaped(matrix, (6, 6), "matrix"), (3, 3), axis=(-2, -1))
