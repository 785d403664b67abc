"""Which mass and inertia tensor a rigid body can have (docs/mathematics.md §5)."""

import math

import numpy as np

from screwdyn import expressions
from screwdyn._types import Array, ArrayLike

__all__ = ["ROUNDING", "failing_condition", "malformed_numbers"]

# What rounding may add to a moment of a point, a rod or a lamina, relative to the sum of the moments.
ROUNDING = 1e-9


def malformed_numbers(mass: float, tensor: Array) -> str | None:
    """What keeps the numbers from being mass properties of anything, even of a fictitious body."""
    if expressions.is_number(mass) and not math.isfinite(mass):
        return f"mass {mass} is not finite"
    if not expressions.is_finite(tensor):
        return f"tensor is not finite: {tensor.tolist()}"
    if tensor.dtype == object:
        symmetric = all(expressions.is_zero(x) for x in (tensor - tensor.T).flat)
        return None if symmetric else f"tensor is not symmetric: {tensor.tolist()}"
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
        The failing condition with its numbers, or None for a possible body. Where there are symbols, what fails
        whatever their values.
    """
    tensor = expressions.array(tensor)
    malformed = malformed_numbers(mass, tensor)
    if malformed:
        return malformed
    if expressions.is_never_positive(mass):
        return f"mass {expressions.short(mass, 6)} kg is not positive"
    if expressions.free_symbols([tensor]):
        negative = [x for x in np.diag(tensor) if expressions.is_never_positive(x) and not expressions.is_zero(x)]
        return f"moment of inertia {negative[0]} kg m^2 is negative" if negative else None
    tensor = expressions.floats(tensor)
    a, b, c = np.linalg.eigvalsh(tensor).tolist()
    slack = ROUNDING * (abs(a) + abs(b) + abs(c))
    if a < -slack:
        return f"principal moment {a:.6g} kg m^2 is negative"
    if a + b < c - slack:
        return f"principal moments break the triangle inequality: {a:.6g} + {b:.6g} < {c:.6g} kg m^2"
    return None
