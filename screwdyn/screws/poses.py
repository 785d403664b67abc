"""Poses and cross-product matrices (docs/mathematics.md §1).

A pose T_AB is the 4x4 matrix of frame B in frame A. Only `as_pose` checks that a matrix is a rigid motion; the other
functions check shapes and that entries are finite. The public functions are also in `screwdyn.screw`.
"""

from __future__ import annotations

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.errors import ShapeError, UnboundSymbolError
from screwdyn.core.types import Array, ArrayLike

__all__ = ["as_pose", "cross", "dot", "entries", "inverse", "pose", "pose_of", "shaped", "skew", "skew_of", "unskew"]

_IDENTITY = np.eye(4)


def shaped(x: ArrayLike, tail: tuple[int, ...], what: str) -> Array:
    """Return x as floats, after checking that they are finite and that the last axes of x have lengths `tail`."""
    try:
        array = expressions.real(x)
    except (TypeError, ValueError) as error:
        if symbols := expressions.symbols_in(x):
            raise UnboundSymbolError.of(symbols, what) from error
        raise ShapeError(f"{what} must be an array of numbers, got {x!r}") from error
    if not np.isfinite(_with_tail(array, tail, what)).all():
        raise ShapeError(f"{what} has entries that are not finite: {array.tolist()}")
    return array


def entries(x: ArrayLike, tail: tuple[int, ...], what: str) -> Array:
    """Return x as floats or expressions, after checking that the last axes of x have lengths `tail`."""
    try:
        array = expressions.array(x)
    except (TypeError, ValueError) as error:
        raise ShapeError(f"{what} must be an array of numbers, got {x!r}") from error
    return _with_tail(array, tail, what)


def _with_tail(array: Array, tail: tuple[int, ...], what: str) -> Array:
    if array.shape[max(array.ndim - len(tail), 0) :] != tail:
        expected = ", ".join(("...", *map(str, tail)))
        raise ShapeError(f"{what} must have shape ({expected}), got {array.shape}")
    return array


def skew(v: ArrayLike) -> Array:
    """Cross-product matrix (..., 3, 3) of a vector (..., 3): ``skew(v) @ u == np.cross(v, u)``.

    Raises ShapeError if v has another shape. docs/mathematics.md, conventions.
    """
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
    """Vector (..., 3) of the skew-symmetric part ½ (A − Aᵀ) of a matrix A (..., 3, 3): ``unskew(skew(v)) == v``.

    Raises ShapeError if the matrix has another shape or entries that are not finite.
    """
    a = shaped(matrix, (3, 3), "matrix")
    a = 0.5 * (a - a.swapaxes(-1, -2))
    return np.stack([a[..., 2, 1], a[..., 0, 2], a[..., 1, 0]], axis=-1)


def pose(R: ArrayLike, p: ArrayLike) -> Array:
    """Pose T = [[R, p], [0, 1]], (..., 4, 4), from a rotation R (..., 3, 3) and an origin p (..., 3) in metres.

    Does not check that R is a rotation; `as_pose` does. Raises ShapeError for a wrong shape or an entry that is not
    finite.
    """
    return pose_of(shaped(R, (3, 3), "rotation"), shaped(p, (3,), "position"))


def pose_of(R: Array, p: Array) -> Array:
    """Pose from a rotation and an origin that have been checked; for inner loops."""
    T = np.zeros((*np.broadcast_shapes(R.shape[:-2], p.shape[:-1]), 4, 4))
    T[..., :3, :3], T[..., :3, 3], T[..., 3, 3] = R, p, 1.0
    return T


def as_pose(at: ArrayLike | None, what: str = "pose") -> Array:
    """Read a pose in any of the forms that users may give.

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

    Raises
    ------
    ShapeError
        If `at` has another shape, is not finite, or is not a rigid motion.
    """
    if at is None:
        return np.eye(4)
    try:
        given = expressions.array(at)
    except (TypeError, ValueError) as error:
        raise ShapeError(f"{what} must be numbers, got {at!r}") from error
    T = np.eye(4, dtype=object) if given.dtype == object else _IDENTITY.copy()
    if not expressions.is_bounded(given):
        raise ShapeError(f"{what} has entries that are not finite, or beyond {expressions.LARGEST:g}: {given.tolist()}")
    if given.shape == (3,):
        T[:3, 3] = given
        return T
    if given.shape != (4, 4):
        hint = "; for a rotation alone, use screw.pose(R, (0, 0, 0))" if given.shape == (3, 3) else ""
        raise ShapeError(f"{what} must be None, a 3-vector or a 4x4 matrix, got shape {given.shape}{hint}")
    R = given[:3, :3]
    if given.dtype == object:
        _check_known_entries(given, what)
        return given
    error_size = max(map(abs, (R.T @ R - T[:3, :3]).ravel().tolist()))
    if error_size > 1e-6:
        raise ShapeError(f"the rotation of {what} is not orthonormal: R^T R - 1 reaches {error_size:.3g}")
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = R.tolist()
    if xx * (yy * zz - yz * zy) + xy * (yz * zx - yx * zz) + xz * (yx * zy - yy * zx) < 0.0:
        raise ShapeError(f"the rotation of {what} is a reflection (determinant -1); swap or negate an axis")
    if max(map(abs, (given[3] - T[3]).tolist())) > 1e-6:
        raise ShapeError(f"the last row of {what} must be [0, 0, 0, 1], got {given[3].tolist()}")
    if error_size > 1e-14:
        for _ in range(2):  # Newton's iteration for the polar factor: each step squares the error
            R = R @ (1.5 * np.eye(3) - 0.5 * (R.T @ R))
    T[:3, :3], T[:3, 3] = R, given[:3, 3]
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
    """Inverse of a pose, T_BA from T_AB, both (..., 4, 4): [[Rᵀ, −Rᵀ p], [0, 1]].

    Raises ShapeError if T has another shape or entries that are not finite.
    """
    T = shaped(T, (4, 4), "pose")
    Rt = T[..., :3, :3].swapaxes(-1, -2)
    return pose_of(Rt, -(Rt @ T[..., :3, 3, None])[..., 0])
