"""Reading of mass properties, and the conditions for those of a rigid body (docs/mathematics.md §5)."""

from __future__ import annotations

from typing import Any

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.errors import InertiaError
from screwdyn.core.types import Array, ArrayLike

__all__ = [
    "ROUNDING",
    "failing_condition",
    "malformed_numbers",
    "read_array",
    "read_com",
    "read_number",
    "read_size",
    "read_tensor",
]

# Tolerance for rounding of the moments of a point, a rod or a lamina, relative to the sum of the moments.
ROUNDING = 1e-9


def read_array(value: ArrayLike, what: str) -> Array:
    """Numbers and expressions as a new array of any shape. All readers raise InertiaError for other input."""
    try:
        return expressions.array(value)
    except (TypeError, ValueError) as error:
        raise InertiaError(f"{what} must be numbers, got {value!r}") from error


def read_number(value: ArrayLike, what: str) -> Any:
    """One number or expression."""
    number = read_array(value, what)
    if number.shape != ():
        raise InertiaError(f"{what} must be one number, got shape {number.shape}")
    return number.item()


def read_size(value: ArrayLike, what: str) -> Any:
    """One length that is not negative, or an expression."""
    size = read_number(value, what)
    if expressions.is_number(size) and not 0.0 <= size <= expressions.LARGEST:
        raise InertiaError(
            f"{what} must be finite, not negative and at most {expressions.LARGEST:g} m, got {float(size):g}"
        )
    return size


def read_com(value: ArrayLike) -> Array:
    """Centre of mass, (3,); 0 means the origin."""
    com = read_array(value, "com")
    if com.shape == () and com == 0.0:
        return np.zeros(3)
    if com.shape != (3,):
        raise InertiaError(f"com must be a 3-vector in metres or 0, got {com.tolist()}")
    if not expressions.is_bounded(com):
        raise InertiaError(f"com is not finite, or beyond {expressions.LARGEST:g} m: {com.tolist()}")
    return com


def read_tensor(value: ArrayLike) -> Array:
    """Tensor of inertia, (3, 3), from nine numbers, three moments, or 0."""
    tensor = read_array(value, "tensor")
    if tensor.shape == (3, 3):
        return tensor
    if tensor.shape == (3,):
        return np.diag(tensor)
    if tensor.shape == () and tensor == 0.0:
        return np.zeros((3, 3))
    raise InertiaError(f"tensor must be 3x3, 3 principal moments or 0, got {tensor.tolist()}")


def malformed_numbers(mass: float, tensor: Array) -> str | None:
    """Why the numbers are invalid even for an effective inertia; None if they are not."""
    if expressions.is_number(mass) and not abs(mass) <= expressions.LARGEST:
        return f"mass {mass} is not finite, or beyond {expressions.LARGEST:g} kg"
    if not expressions.is_finite(tensor):
        return f"tensor is not finite: {tensor.tolist()}"
    if tensor.dtype == object:
        symmetric = all(expressions.is_zero(x) for x in (tensor - tensor.T).flat)
        return None if symmetric else f"tensor is not symmetric: {tensor.tolist()}"
    if np.abs(tensor - tensor.T).max() > ROUNDING * np.abs(tensor).max():
        return f"tensor is not symmetric: {tensor.tolist()}"
    return None


def failing_condition(mass: float, tensor: ArrayLike) -> str | None:
    """The first condition for a rigid body that mass and tensor do not satisfy.

    The mass must be positive, and no principal moment may be negative or larger than the sum of the other two
    (docs/mathematics.md §5), with a tolerance of 1e-9 of the sum of the moments. Points, thin rods and laminas satisfy
    the conditions with equality.

    Parameters
    ----------
    mass : float
        In kg.
    tensor : array_like, shape (3, 3)
        About the centre of mass, in kg m^2.

    Returns
    -------
    str or None
        The failing condition with its numbers, or None if all hold. If there are symbols, only conditions that fail
        for all values.
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
        hint = "; for a planar model, use Inertia.planar" if a + b <= slack else ""
        return f"principal moments break the triangle inequality: {a:.6g} + {b:.6g} < {c:.6g} kg m^2{hint}"
    return None
