"""Twists, wrenches, screws and rigid motions.

A twist is V = [w; v] and a wrench F = [n; f], angular part first; a pose T_AB is the 4x4 matrix of frame B
in frame A. Units are SI and radians. Every function batches over leading axes, written ``...`` in the shapes.
Conventions and formulas: docs/mathematics.md §1.
"""

import math

import numpy as np
import numpy.typing as npt

from screwdyn import expressions
from screwdyn._types import Array, ArrayLike
from screwdyn.errors import ScrewdynError, ShapeError, UnboundSymbolError

# A screw whose pitch exceeds this many metres per radian is a translation disturbed by rounding.
_LARGEST_PITCH = 1e12
_AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}
_AXES |= {"-x": (-1.0, 0.0, 0.0), "-y": (0.0, -1.0, 0.0), "-z": (0.0, 0.0, -1.0)}


def _shaped(x: ArrayLike, tail: tuple[int, ...], what: str) -> Array:
    """Return x as floats, after checking that its last axes have lengths `tail`."""
    try:
        array = np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError) as error:
        if symbols := expressions.symbols_in(x):
            raise UnboundSymbolError.of(symbols, what) from error
        raise ShapeError(f"{what} must be an array of numbers, got {x!r}") from error
    return _with_tail(array, tail, what)


def _entries(x: ArrayLike, tail: tuple[int, ...], what: str) -> Array:
    """Return x as floats or expressions, after checking that its last axes have lengths `tail`."""
    try:
        array = expressions.array(x)
    except (TypeError, ValueError) as error:
        raise ShapeError(f"{what} must be an array of numbers, got {x!r}") from error
    return _with_tail(array, tail, what)


def _with_tail(array: Array, tail: tuple[int, ...], what: str) -> Array:
    if array.shape[-len(tail) :] != tail:
        expected = ", ".join(("...", *map(str, tail)))
        raise ShapeError(f"{what} must have shape ({expected}), got {array.shape}")
    return array


def _dot(a: Array, b: Array) -> Array:
    product: Array = np.einsum("...i,...i->...", a, b)
    return product


# rigid motions ------------------------------------------------------------------------------------------


def skew(v: ArrayLike) -> Array:
    """Cross-product matrix (..., 3, 3) of a vector (..., 3): ``skew(v) @ u == np.cross(v, u)``."""
    v = _entries(v, (3,), "vector")
    result = np.zeros((*v.shape, 3), dtype=v.dtype)
    result[..., 2, 1] = v[..., 0]
    result[..., 0, 2] = v[..., 1]
    result[..., 1, 0] = v[..., 2]
    return result - result.swapaxes(-1, -2)


def unskew(matrix: ArrayLike) -> Array:
    """Vector (..., 3) of the skew part of a matrix (..., 3, 3): ``unskew(skew(v)) == v``."""
    a = _shaped(matrix, (3, 3), "matrix")
    a = 0.5 * (a - a.swapaxes(-1, -2))
    return np.stack([a[..., 2, 1], a[..., 0, 2], a[..., 1, 0]], axis=-1)


def pose(R: ArrayLike, p: ArrayLike) -> Array:
    """Pose (..., 4, 4) with rotation R (..., 3, 3) and origin p (..., 3); unchecked (`as_pose` checks)."""
    R, p = _shaped(R, (3, 3), "rotation"), _shaped(p, (3,), "position")
    T = np.zeros((*np.broadcast_shapes(R.shape[:-2], p.shape[:-1]), 4, 4))
    T[..., :3, :3], T[..., :3, 3], T[..., 3, 3] = R, p, 1.0
    return T


def as_pose(at: ArrayLike | None, what: str = "pose") -> Array:
    """Read what a person may write for a pose.

    Parameters
    ----------
    at : None, array_like of shape (3,) or (4, 4)
        Nothing (the identity), a translation in metres, or a homogeneous matrix. A rotation that misses
        orthonormality by less than 1e-6 (numbers copied from a file) is replaced by the nearest rotation.
    what : str
        How error messages call it.

    Returns
    -------
    ndarray, shape (4, 4)
        A new array. With expressions in it, only what is certain without their values is checked.

    Raises
    ------
    ShapeError
        If `at` has another shape, is not finite, or is no rigid motion.
    """
    if at is None:
        return np.eye(4)
    try:
        given = expressions.array(at)
    except (TypeError, ValueError) as error:
        raise ShapeError(f"{what} must be numbers, got {at!r}") from error
    T = np.eye(4, dtype=given.dtype)
    if not expressions.is_finite(given):
        raise ShapeError(f"{what} has entries that are not finite: {given.tolist()}")
    if given.shape == (3,):
        T[:3, 3] = given
        return T
    if given.shape != (4, 4):
        raise ShapeError(f"{what} must be None, a 3-vector or a 4x4 matrix, got shape {given.shape}")
    R = given[:3, :3]
    if given.dtype == object:
        _check_known_entries(given, what)
        return given
    error_size = float(np.abs(R.T @ R - T[:3, :3]).max())
    if error_size > 1e-6:
        raise ShapeError(f"the rotation of {what} is not orthonormal: R^T R - 1 reaches {error_size:.3g}")
    if float(R[0] @ _cross(R[1], R[2])) < 0.0:
        raise ShapeError(f"the rotation of {what} is a reflection (determinant -1); swap or negate an axis")
    if float(np.abs(given[3] - T[3]).max()) > 1e-6:
        raise ShapeError(f"the last row of {what} must be [0, 0, 0, 1], got {given[3].tolist()}")
    if error_size > 1e-14:
        for _ in range(2):  # Newton's polar iteration: the error is squared each time
            R = R @ (1.5 * np.eye(3) - 0.5 * (R.T @ R))
    T[:3, :3], T[:3, 3] = R, given[:3, 3]
    return T


def _check_known_entries(T: Array, what: str) -> None:
    """Refuse a pose with expressions whose entries without symbols already tell that it is no rigid motion."""
    R = T[:3, :3]
    if any(expressions.is_number(x) and abs(x - (k == 3)) > 1e-6 for k, x in enumerate(T[3])):
        raise ShapeError(f"the last row of {what} must be [0, 0, 0, 1], got {T[3].tolist()}")
    if not expressions.free_symbols([R]):
        as_pose(pose(R, (0, 0, 0)), what)
    elif any(expressions.is_number(x) and abs(x) > 1 + 1e-6 for x in R.flat):
        raise ShapeError(f"the rotation of {what} has an entry larger than 1: {R.tolist()}")


def inverse(T: ArrayLike) -> Array:
    """Inverse of a pose (..., 4, 4): T_BA from T_AB."""
    T = _shaped(T, (4, 4), "pose")
    Rt = T[..., :3, :3].swapaxes(-1, -2)
    return pose(Rt, -(Rt @ T[..., :3, 3, None])[..., 0])


def Ad(T: ArrayLike) -> Array:
    """Adjoint of a pose, [[R, 0], [p^ R, R]]: moves a twist from frame B to frame A if T is T_AB.

    ``T @ exp(V) == exp(Ad(T) @ V) @ T``. Wrenches move from A to B by its transpose. docs/mathematics.md §1.

    Parameters
    ----------
    T : array_like, shape (..., 4, 4)

    Returns an array of shape (..., 6, 6).
    """
    T = _shaped(T, (4, 4), "pose")
    R = T[..., :3, :3]
    return _lower_blocks(R, skew(T[..., :3, 3]) @ R)


def ad(V: ArrayLike) -> Array:
    """Lie bracket [[w^, 0], [v^, w^]], (..., 6, 6), of a twist (..., 6): the rate of Ad(exp(V t)) at t = 0.

    ``ad(V1) @ V2 == -ad(V2) @ V1``. docs/mathematics.md §1.
    """
    V = _shaped(V, (6,), "twist")
    return _lower_blocks(skew(V[..., :3]), skew(V[..., 3:]))


def _lower_blocks(diagonal: Array, lower: Array) -> Array:
    """6x6 matrices [[diagonal, 0], [lower, diagonal]]."""
    result = np.zeros((*diagonal.shape[:-2], 6, 6))
    result[..., :3, :3] = result[..., 3:, 3:] = diagonal
    result[..., 3:, :3] = lower
    return result


def _cross(a: Array, b: Array) -> Array:
    return (skew(a) @ b[..., None])[..., 0]


def _motion(V: Array, sine: Array, versine: Array, lag: Array, slide: Array) -> Array:
    """Pose with R = 1 + sine w^ + versine w^^2 and p = (slide 1 + versine w^ + lag w^^2) v."""
    w1 = skew(V[..., :3])
    w2 = w1 @ w1
    one = np.eye(3)
    sine, versine, lag, slide = (k[..., None, None] for k in (sine, versine, lag, slide))
    travel = slide * one + versine * w1 + lag * w2
    return pose(one + sine * w1 + versine * w2, (travel @ V[..., 3:, None])[..., 0])


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

    With x = |w|: R = 1 + (sin x / x) w^ + ((1 - cos x) / x^2) w^^2 and
    p = (1 + ((1 - cos x) / x^2) w^ + ((x - sin x) / x^3) w^^2) v, to full accuracy at any x.

    Parameters
    ----------
    V : array_like, shape (..., 6)
        Twist [w; v] in rad/s and m/s (or a screw times an angle).

    Returns an array of shape (..., 4, 4).
    """
    V = _shaped(V, (6,), "twist")
    angle = np.sqrt(_dot(V[..., :3], V[..., :3]))
    return _motion(V, *_exp_coefficients(angle), np.ones_like(angle))


def screw_motion(S: ArrayLike, q: ArrayLike) -> Array:
    """Pose exp(S^ q) of a joint with unit screw S at coordinate q, without a branch (docs/mathematics.md §1).

    R = 1 + sin q w^ + (1 - cos q) w^^2, p = (q 1 + (1 - cos q) w^ + (q - sin q) w^^2) v.

    Parameters
    ----------
    S : array_like, shape (..., 6)
        Unit screw: |w| = 1, or w = 0 and |v| = 1. Not checked; see `unit`.
    q : array_like, shape (...)
        In radians, or in metres for a pure translation.

    Returns an array of shape (..., 4, 4).
    """
    S, q = _shaped(S, (6,), "screw"), np.asarray(q, dtype=np.float64)
    sine = np.sin(q)
    return _motion(S, sine, 2.0 * np.sin(0.5 * q) ** 2, q - sine, q)


def log(T: ArrayLike) -> Array:
    """Twist V with exp(V) = T and angle |w| in [0, pi].

    The rotation goes through its unit quaternion, read from the largest row of 4 q q^T, so that no digits
    are lost near 0 or near pi. At exactly pi both axes are right, and either is returned.

    Parameters
    ----------
    T : array_like, shape (..., 4, 4)

    Returns an array of shape (..., 6).
    """
    T = _shaped(T, (4, 4), "pose")
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
    sine = np.sqrt(_dot(vector, vector))
    angle = 2.0 * np.arctan2(sine, scalar)
    w = (angle / np.where(sine == 0.0, 1.0, sine))[..., None] * vector
    # p = travel v, where travel is what exp multiplies v by: the columns of exp's p for v = e1, e2, e3
    basis = np.zeros((*w.shape[:-1], 3, 6))
    basis[..., :3] = w[..., None, :]
    basis[..., 3:] = np.eye(3)
    travel = exp(basis)[..., :3, 3].swapaxes(-1, -2)
    return np.concatenate([w, np.linalg.solve(travel, T[..., :3, 3, None])[..., 0]], axis=-1)


# one screw ----------------------------------------------------------------------------------------------


def _turns(S: Array) -> tuple[Array, Array, npt.NDArray[np.bool_]]:
    """|w|, |v| and whether the screw turns at all; refuses the zero screw."""
    w, v = np.sqrt(_dot(S[..., :3], S[..., :3])), np.sqrt(_dot(S[..., 3:], S[..., 3:]))
    if not np.isfinite(S).all():
        raise ScrewdynError(f"a screw has entries that are not finite: {S.tolist()}")
    if np.any((w == 0.0) & (v == 0.0)):
        raise ScrewdynError("a screw is zero: it has neither an axis nor a direction")
    return w, v, w * _LARGEST_PITCH > v


def unit(S: ArrayLike) -> Array:
    """Scale screws so that |w| = 1, or w = 0 and |v| = 1.

    A screw with a pitch above 1e12 m/rad is a translation that rounding disturbed: its w is dropped.

    Parameters
    ----------
    S : array_like, shape (..., 6)

    Returns
    -------
    ndarray, shape (..., 6)

    Raises
    ------
    ScrewdynError
        If a screw is zero or not finite.
    """
    S = _shaped(S, (6,), "screw")
    w, v, turning = _turns(S)
    result = S / np.where(turning, w, v)[..., None]
    result[..., :3] *= turning[..., None]
    return result


def pitch(S: ArrayLike) -> Array:
    """Pitch h = w.v / w.w in metres per radian, (...), of screws (..., 6); infinite for a pure translation.

    Raises ScrewdynError as `unit` does.
    """
    S = _entries(S, (6,), "screw")
    if S.dtype == object and S.shape == (6,):  # a unit screw already, or not known to be anything else
        w = S[:3]
        return expressions.array(expressions.tidied(w @ S[3:] / (w @ w))) if w.any() else np.array(np.inf)
    S = unit(S)
    h: Array = np.where(S[..., :3].any(axis=-1), _dot(S[..., :3], S[..., 3:]), np.inf)
    return h


def axis(S: ArrayLike) -> tuple[Array, Array]:
    """Axis of a screw (..., 6) as a direction and the point w x v / w.w, the one closest to the origin.

    A pure translation has a direction only; its point is given as the origin. Raises ScrewdynError as
    `unit` does.

    Returns
    -------
    direction, point : ndarray, shape (..., 3)
        Unit vector, and metres.
    """
    S = unit(S)
    w, v = S[..., :3], S[..., 3:]
    return np.where(w.any(axis=-1, keepdims=True), w, v), _cross(w, v)


def direction(axis: str | ArrayLike) -> Array:
    """Unit vector (..., 3) along "x", "-x", … or vectors (..., 3); ScrewdynError if it has no direction."""
    if isinstance(axis, str) and axis not in _AXES:
        raise ScrewdynError(f'there is no axis {axis!r}: write "x", "y", "z", "-x", "-y", "-z" or a vector')
    a = _entries(_AXES[axis] if isinstance(axis, str) else axis, (3,), "axis")
    if a.dtype == object and a.shape == (3,):
        return expressions.array(a / expressions.root(a @ a))
    length = np.sqrt(_dot(a, a))
    if not np.all((length > 0.0) & (length < np.inf)):
        raise ScrewdynError(f"an axis is zero or not finite, so it has no direction: {a.tolist()}")
    return a / length[..., None]


def screw_from_axis(axis: str | ArrayLike, point: ArrayLike = (0, 0, 0), pitch: ArrayLike = 0.0) -> Array:
    """Unit screw [a; -a x r + h a] with axis a through r and pitch h, or [0; a] for an infinite pitch.

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

    Raises
    ------
    ScrewdynError
        If an axis is zero, or anything but the pitch is not finite.
    """
    a, r, h = direction(axis), _entries(point, (3,), "point"), expressions.array(pitch)
    if not expressions.is_finite(r):
        raise ScrewdynError(f"a point of an axis is not finite: {r.tolist()}")
    if object in (a.dtype, r.dtype, h.dtype):
        slides = h.dtype != object and np.isinf(h)
        parts = (0 * a, a) if slides else (a, _cross(r, a) + h * a)
        return expressions.array([expressions.tidied(x) for x in np.concatenate(parts)])
    sliding = np.isinf(h[..., None])
    v = np.where(sliding, a, _cross(r, a) + np.where(sliding, 0.0, h[..., None]) * a)
    S = np.concatenate(np.broadcast_arrays(np.where(sliding, 0.0, a), v), axis=-1)
    return unit(S)


def reciprocal_product(S1: ArrayLike, S2: ArrayLike) -> Array:
    """Reciprocal product w1.v2 + v1.w2 of two screws in the same frame; the same in every frame.

    Zero means that a wrench along one does no work on a twist along the other.

    Parameters
    ----------
    S1, S2 : array_like, shape (..., 6)
        Both as [w; v], so a wrench [n; f] along a screw enters as [f; n].

    Returns an array of shape (...).
    """
    return _dot(_shaped(S1, (6,), "screw"), to_linear_first(S2))


def virtual_power(V: ArrayLike, F: ArrayLike) -> Array:
    """Power w.n + v.f in watts of wrenches [n; f] on twists [w; v], both (..., 6) and in the same frame."""
    return _dot(_shaped(V, (6,), "twist"), _shaped(F, (6,), "wrench"))


# other people's order of coordinates --------------------------------------------------------------------


def to_linear_first(V: ArrayLike) -> Array:
    """[v; w] from [w; v] (or [f; n] from [n; f]), shape (..., 6)."""
    V = _shaped(V, (6,), "twist or wrench")
    return np.concatenate([V[..., 3:], V[..., :3]], axis=-1)


def from_linear_first(V: ArrayLike) -> Array:
    """[w; v] from [v; w] (or [n; f] from [f; n]), shape (..., 6): an exchange that undoes itself."""
    return to_linear_first(V)


def to_linear_first_matrix(matrix: ArrayLike) -> Array:
    """6x6 matrix on [v; w] from the same map on [w; v], or the other way round; shape (..., 6, 6)."""
    return np.roll(_shaped(matrix, (6, 6), "matrix"), (3, 3), axis=(-2, -1))
