"""Which mass and inertia tensor a rigid body can have (docs/mathematics.md §5)."""

import math

import numpy as np

from screwdyn._types import Array, ArrayLike

__all__ = ["ROUNDING", "failing_condition", "malformed_numbers"]

# What rounding may add to a moment of a point, a rod or a lamina, relative to the sum of the moments.
ROUNDING = 1e-9


def malformed_numbers(mass: float, tensor: Array) -> str | None:
    """What keeps the numbers from being mass properties of anything, even of a fictitious body."""
    if not math.isfinite(mass):
        return f"mass {mass} is not finite"
    if not np.isfinite(tensor).all():
        return f"tensor is not finite: {tensor.tolist()}"
    if np.abs(tensor - tensor.T).max() > ROUNDING * np.abs(tensor).max():
        return f"tensor is not symmetric: {tensor.tolist()}"
    return None


def failing_condition(mass: float, tensor: ArrayLike) -> str | None:
    """Name the first condition for a rigid body that mass and tensor fail.

    The mass must be positive, the principal moments not negative and none larger than the sum of the other
    two (docs/mathematics.md §5), with 1e-9 of the sum of the moments to spare for rounding: points, thin rods
    and laminas lie on the edge and pass.

    Parameters
    ----------
    mass : float
        In kg.
    tensor : array_like, shape (3, 3)
        About the centre of mass, in kg m^2.

    Returns
    -------
    str or None
        The failing condition with its numbers, or None for a possible body.
    """
    tensor = np.asarray(tensor, dtype=np.float64)
    malformed = malformed_numbers(mass, tensor)
    if malformed:
        return malformed
    if mass <= 0.0:
        return f"mass {mass:g} kg is not positive"
    a, b, c = np.linalg.eigvalsh(tensor).tolist()
    slack = ROUNDING * (abs(a) + abs(b) + abs(c))
    if a < -slack:
        return f"principal moment {a:.6g} kg m^2 is negative"
    if a + b < c - slack:
        return f"principal moments break the triangle inequality: {a:.6g} + {b:.6g} < {c:.6g} kg m^2"
    return None
