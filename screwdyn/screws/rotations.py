"""Rotations as quaternions [x, y, z, w], scalar last.

The length of a quaternion has no meaning: q and any nonzero multiple of q describe the same rotation.
"""

from typing import Any

import numpy as np

from screwdyn.core.types import Array

__all__ = [
    "LENGTH_TOLERANCE",
    "product_entries",
    "quaternion_of",
    "quaternion_product",
    "quaternion_rate",
    "rate_entries",
    "rotation_entries",
    "rotation_of",
    "rotation_vector_of",
]

# Tolerance for the length of a quaternion. The formulas divide by the length; the check detects mistakes of the user.
LENGTH_TOLERANCE = 1e-3


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
    entries = rotation_entries(*np.moveaxis(q, -1, 0))
    return np.stack(entries, axis=-1).reshape(*q.shape[:-1], 3, 3)


def quaternion_of(w: Array) -> Array:
    """Unit quaternion (…, 4) of a rotation vector (…, 3) in radians: [sin(|w|/2) w/|w|; cos(|w|/2)]."""
    half = 0.5 * np.sqrt(np.sum(w * w, axis=-1, keepdims=True))
    return np.concatenate([0.5 * np.sinc(half / np.pi) * w, np.cos(half)], axis=-1)


def rotation_vector_of(q: Array) -> Array:
    """Rotation vector (…, 3) in radians of a quaternion (…, 4), of length 2 atan2(|u|, w) in [0, 2π]."""
    u, w = q[..., :3], q[..., 3:]
    sine = np.sqrt(np.sum(u * u, axis=-1, keepdims=True))
    turning = np.where(sine > 0, sine, 1.0)
    return np.asarray(u * (2 * np.arctan2(sine, w) / turning))


def quaternion_product(p: Array, q: Array) -> Array:
    """Product p ∘ q, (…, 4), of quaternions: ``rotation_of(p ∘ q) == rotation_of(p) @ rotation_of(q)``."""
    return np.stack(product_entries(*np.moveaxis(p, -1, 0), *np.moveaxis(q, -1, 0)), axis=-1)


def quaternion_rate(q: Array, w: Array) -> Array:
    """dq/dt = ½ q ∘ [w; 0], (…, 4), for an angular velocity w (…, 3) in rad/s in the rotating frame."""
    return np.stack(rate_entries(*np.moveaxis(q, -1, 0), *np.moveaxis(w, -1, 0)), axis=-1)
