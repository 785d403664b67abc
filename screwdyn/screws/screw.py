"""Twists, wrenches, screws and rigid motions.

A twist is V = [w; v] and a wrench F = [n; f], angular part first; a pose T_AB is the 4x4 matrix of frame B
in frame A. Units are SI and radians. All functions take leading batch axes, written ``...`` in the shapes.
Conventions and formulas: docs/mathematics.md §1, after Lynch and Park, *Modern Robotics*.

All functions raise ShapeError if an argument has a wrong shape or entries that are not finite. Functions of a pose do
not check that it is a rigid motion: the results for any other matrix have no meaning. `as_pose` checks a pose.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from screwdyn.core import expressions
from screwdyn.core.errors import ScrewdynError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.screws.motions import Ad, ad, exp, log, screw_motion
from screwdyn.screws.poses import as_pose, cross, dot, entries, inverse, pose, shaped, skew, unskew

__all__ = [
    "Ad",
    "ad",
    "as_pose",
    "axis",
    "direction",
    "exp",
    "frame_along",
    "from_linear_first",
    "inverse",
    "log",
    "pitch",
    "pose",
    "reciprocal_product",
    "screw_from_axis",
    "screw_motion",
    "skew",
    "to_linear_first",
    "to_linear_first_matrix",
    "unit",
    "unskew",
    "virtual_power",
]

# A screw whose pitch exceeds this many metres per radian is a translation disturbed by rounding.
_LARGEST_PITCH = 1e12
_AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}
_AXES |= {"-x": (-1.0, 0.0, 0.0), "-y": (0.0, -1.0, 0.0), "-z": (0.0, 0.0, -1.0)}


def _turns(S: Array) -> tuple[Array, Array, npt.NDArray[np.bool_]]:
    """|w|, |v| and whether the screw has a finite pitch; ScrewdynError for the zero screw."""
    w, v = np.sqrt(dot(S[..., :3], S[..., :3])), np.sqrt(dot(S[..., 3:], S[..., 3:]))
    if np.any((w == 0.0) & (v == 0.0)):
        raise ScrewdynError("a screw is zero: it has neither an axis nor a direction")
    return w, v, w * _LARGEST_PITCH > v


def unit(S: ArrayLike) -> Array:
    """Scale screws so that ``|w| = 1``, or ``w = 0`` and ``|v| = 1``.

    A pitch above 1e12 m/rad is treated as rounding of a pure translation: w becomes 0.

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
    S = shaped(S, (6,), "screw")
    w, v, turning = _turns(S)
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
    """Axis of a screw (..., 6): its direction and its point w x v / w.w, which is the closest to the origin.

    A pure translation has no particular axis: the point returned is the origin. docs/mathematics.md §1.

    Returns
    -------
    direction : ndarray, shape (..., 3)
        Unit vector.
    point : ndarray, shape (..., 3)
        In metres.

    Raises
    ------
    ScrewdynError
        If a screw is zero or not finite.
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
    """A unit vector perpendicular to a unit vector z of expressions, with denominators of at least 1 for all values.

    Duff et al., "Building an orthonormal basis, revisited", 2017. The pivot is a component of z whose sign is known, or
    else the last component, with one case for each sign.
    """
    sides = [expressions.side(component) for component in z]
    k = next((k for k in (2, 0, 1) if expressions.is_number(sides[k])), 2)
    x = [0, 0, 0]
    x[k - 2] = 1 - z[k - 2] ** 2 / (1 + sides[k] * z[k])
    x[k - 1] = -z[k - 2] * z[k - 1] / (1 + sides[k] * z[k])
    x[k] = -sides[k] * z[k - 2]
    return x


def screw_from_axis(axis: str | ArrayLike, point: ArrayLike = (0, 0, 0), pitch: ArrayLike = 0.0) -> Array:
    """Unit screw [a; -a x r + h a] with axis a through r and pitch h, or [0; a] for an infinite pitch.

    docs/mathematics.md §1. All arguments may contain SymPy expressions.

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
        If an axis is zero, or the axis or the point is not finite.
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
    """Reciprocal product w1.v2 + v1.w2 of two screws in the same frame; the same in every frame.

    Zero means that a wrench along one does no work on a twist along the other.

    Parameters
    ----------
    S1, S2 : array_like, shape (..., 6)
        Both as [w; v]: pass a wrench [n; f] as [f; n].

    Returns
    -------
    ndarray, shape (...)

    Raises
    ------
    ShapeError
        If a screw has another shape or entries that are not finite.
    """
    return dot(shaped(S1, (6,), "screw"), to_linear_first(S2))


def virtual_power(V: ArrayLike, F: ArrayLike) -> Array:
    """Power w.n + v.f in watts, (...), of wrenches [n; f] on twists [w; v], both (..., 6) and in the same frame.

    Raises ShapeError if an argument has another shape or entries that are not finite. docs/mathematics.md §1.
    """
    return dot(shaped(V, (6,), "twist"), shaped(F, (6,), "wrench"))


# the other order of components --------------------------------------------------------------------


def to_linear_first(V: ArrayLike) -> Array:
    """[v; w] from [w; v] (or [f; n] from [n; f]), shape (..., 6). Raises ShapeError for another shape."""
    V = shaped(V, (6,), "twist or wrench")
    return np.concatenate([V[..., 3:], V[..., :3]], axis=-1)


def from_linear_first(V: ArrayLike) -> Array:
    """[w; v] from [v; w] (or [n; f] from [f; n]), shape (..., 6): the inverse of `to_linear_first`; the same errors."""
    return to_linear_first(V)


def to_linear_first_matrix(matrix: ArrayLike) -> Array:
    """Matrix (..., 6, 6) of a linear map for [v; w] from its matrix for [w; v], or the reverse.

    Raises ShapeError for another shape.
    """
    return np.roll(shaped(matrix, (6, 6), "matrix"), (3, 3), axis=(-2, -1))
