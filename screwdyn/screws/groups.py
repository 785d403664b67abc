"""Quaternions, and groups of motions that screws generate.

A quaternion is [x, y, z, w], scalar last; its length has no meaning: q and any nonzero multiple of q describe the same
rotation. Screws S (6, k) generate a group of dimension k if every bracket ad(Sᵢ) Sⱼ lies in their span
(docs/mathematics.md §12).
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.types import Array
from screwdyn.screws.screw import ad, exp, inverse, log

# Tolerance for the length of a quaternion. The formulas divide by the length; the check detects mistakes of the user.
LENGTH_TOLERANCE = 1e-3
# Relative remainder below which a bracket lies in the span of screws.
_IN_SPAN = 1e-12
# Largest number of steps, and change in rad and m, after which the nearest element is found.
NEAREST, _FOUND = 50, 1e-15


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


def is_group(screws: Array) -> bool:
    """Whether the motions of some screws (6, k), without symbols if k > 1, form a group of dimension k."""
    if screws.shape[1] < 2:
        return True
    S = expressions.floats(screws, "the screws of a group")
    if np.linalg.matrix_rank(S) < S.shape[1]:
        return False
    brackets = np.array([ad(a) @ b for a, b in combinations(S.T, 2)]).T
    remainder = brackets - S @ np.linalg.lstsq(S, brackets)[0]
    return bool((np.abs(remainder) <= _IN_SPAN * max(1.0, np.abs(S).max()) ** 2).all())


def constrained_wrenches(screws: Array) -> Array:
    """A basis N (6, 6 − k) of the wrenches [n; f] that do no work on the motions of screws S (6, k): Sᵀ N = 0.

    The basis of unit wrenches, changed as little as possible, by Gauss elimination of Sᵀ with pivots among rotations
    first: for a pin along z through (l, 0, 0) these are the moments about x and y, and the forces along x, y and z that
    act on the pin. Entries may contain symbols.
    """
    rows, pivots = reduced_rows(screws.T)
    others = [column for column in range(6) if column not in pivots]
    N = np.zeros((6, len(others)), dtype=screws.dtype)
    for at, column in enumerate(others):
        N[column, at] = 1
        for row, pivot in zip(rows, pivots, strict=True):
            N[pivot, at] = -row[column] + 0
    return expressions.array(N)


def reduced_rows(screws: Array, least: float = _IN_SPAN) -> tuple[list[list[Any]], list[int]]:
    """Independent screws (k, 6) combined so that each has a component 1 in which all others are 0; these components.

    Numbers below ``least`` are no pivots. Entries may contain symbols.
    """
    rows: list[list[Any]] = [list(S) for S in screws]
    pivots: list[int] = []
    for _ in range(len(rows)):
        k, column = _pivot(rows[len(pivots) :], least)
        done = len(pivots)
        rows[done], rows[done + k] = rows[done + k], rows[done]
        head = rows[done][column]
        rows[done] = [x / head for x in rows[done]]
        for i, row in enumerate(rows):
            if i != done:
                rows[i] = [x - row[column] * y for x, y in zip(row, rows[done], strict=True)]
        pivots.append(column)
    return rows, pivots


def _pivot(rows: list[list[Any]], least: float) -> tuple[int, int]:
    """Row and column of the largest rotation of some screws, or translation if none of them turns."""
    for columns in (range(3), range(3, 6)):
        found = [(k, c) for k in range(len(rows)) for c in columns if not vanishes(rows[k][c], least)]
        if found:
            return max(found, key=lambda place: _size(rows[place[0]][place[1]]))
    raise AssertionError("the screws of a joint are independent")


def _size(x: Any) -> float:
    """Of a pivot: numbers come before expressions."""
    return abs(float(x)) if expressions.is_number(x) else 0.0


def vanishes(x: Any, least: float = _IN_SPAN) -> bool:
    """Whether a number is smaller than the least one, or an expression is 0 for all values of its symbols."""
    return abs(x) < least if expressions.is_number(x) else expressions.is_zero(x)


def projection(screws: Array) -> Array:
    """S S⁺, (6, 6): the orthogonal projection of twists on the span of screws S (6, k)."""
    return np.asarray(screws @ np.linalg.pinv(screws)) if screws.size else np.zeros((6, 6))


def whole_turns(screws: Array, pose: Array) -> Array:
    """The part of the angle of a helical motion that a rotation does not show, a multiple of 2π rad, (…,).

    Only of a single screw with a pitch are there any: the shift of the pose (…, 4, 4) along its axis tells the angle.
    """
    w, v = screws[:3].sum(axis=1), screws[3:].sum(axis=1)
    if screws.shape[1] != 1 or w @ w < _IN_SPAN or abs(w @ v) < _IN_SPAN * (w @ w):
        return np.zeros(pose.shape[:-2])
    period = 2 * np.pi / np.sqrt(w @ w)
    angle, seen = pose[..., :3, 3] @ w / (w @ v), log(pose)[..., :3] @ w / (w @ w)
    return np.asarray(np.round((angle - seen) / period) * period)


def nearest_element(span: Array, pose: Array, most: int = NEAREST) -> tuple[Array, Array]:
    """The motion g of a group nearest to a pose T (…, 4, 4) without its whole turns, and log(g⁻¹ T), (…, 6), rad and m.

    Gauss-Newton steps g ← g exp(S S⁺ log(g⁻¹ T)), at most ``most``, with ``span`` the :func:`projection` S S⁺. One step
    suffices for translations and for all rotations about a point; and for a logarithm that is in the span for the same
    poses, with the same derivative there but for motions of the group.
    """
    g, remainder = np.eye(4), log(pose)
    for _ in range(most):
        step = (span @ remainder[..., None])[..., 0]
        g = g @ exp(step)
        remainder = log(inverse(g) @ pose)
        if np.abs(step).max(initial=0.0) <= _FOUND:
            break
    return g, np.asarray(remainder)
