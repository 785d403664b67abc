"""The fixed-axis angles of URDF: R = Rz(yaw) Ry(pitch) Rx(roll)."""

from math import atan2, cos, sin

import numpy as np

from screwdyn.core.types import Array

__all__ = ["rotation_from_rpy", "rpy_from_rotation"]


def rotation_from_rpy(roll: float, pitch: float, yaw: float) -> Array:
    """Rotation matrix R = Rz(yaw) Ry(pitch) Rx(roll), (3, 3), of angles in radians."""
    (cr, cp, cy), (sr, sp, sy) = np.cos([roll, pitch, yaw]), np.sin([roll, pitch, yaw])
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def rpy_from_rotation(R: Array) -> tuple[float, float, float]:
    """Angles (roll, pitch, yaw) of a rotation matrix, (3, 3), in radians.

    Roll and pitch are those of Rz(yaw)ᵀ R, so that the product is R within rounding also at a pitch of ±90°, where only
    the difference (or sum) of yaw and roll is determined.
    """
    yaw = atan2(R[1, 0], R[0, 0])
    c, s = cos(yaw), sin(yaw)
    pitch = atan2(-R[2, 0], c * R[0, 0] + s * R[1, 0])
    roll = atan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1])
    return roll, pitch, yaw
