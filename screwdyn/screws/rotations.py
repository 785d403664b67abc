"""Rotations as quaternions [x, y, z, w], scalar last.

The length of a quaternion is a gauge: every function here gives the same rotation for q and any multiple of it.
"""

import numpy as np

from screwdyn.core.types import Array
from screwdyn.screws.poses import cross

__all__ = ["quaternion_of", "quaternion_product", "quaternion_rate", "rotation_of", "rotation_vector_of"]


def rotation_of(q: Array) -> Array:
    """Rotation matrix (…, 3, 3) of a quaternion (…, 4): R = 1 + s (w û + û²), with u its vector and s = 2 / |q|²."""
    x, y, z, w = np.moveaxis(q * np.sqrt(2 / np.sum(q * q, axis=-1, keepdims=True)), -1, 0)
    rows = [
        [1 - y * y - z * z, x * y - w * z, x * z + w * y],
        [x * y + w * z, 1 - x * x - z * z, y * z - w * x],
        [x * z - w * y, y * z + w * x, 1 - x * x - y * y],
    ]
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))


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
    """p ∘ q, (…, 4): first q, then p, as in ``rotation_of(p) @ rotation_of(q)``."""
    u, a, v, b = p[..., :3], p[..., 3:], q[..., :3], q[..., 3:]
    return np.concatenate([a * v + b * u + cross(u, v), a * b - np.sum(u * v, axis=-1, keepdims=True)], axis=-1)


def quaternion_rate(q: Array, w: Array) -> Array:
    """dq/dt = ½ q ∘ [w; 0], (…, 4), for an angular velocity w (…, 3) in the turning frame."""
    return 0.5 * quaternion_product(q, np.concatenate([w, np.zeros_like(w[..., :1])], axis=-1))
