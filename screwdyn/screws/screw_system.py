"""Screw systems: the space that the screws of joints span, and its reciprocal space (docs/mathematics.md §9)."""

from __future__ import annotations

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.errors import ShapeError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.screws.screw import to_linear_first

__all__ = ["reciprocal_system", "system_basis", "system_order"]


def _span(screws: ArrayLike, tol: float) -> tuple[Array, int]:
    """Orthonormal basis, (6, 6), whose first rows span the screws, and the number of these rows."""
    try:
        S = expressions.real(screws)
    except (TypeError, ValueError):
        raise ShapeError(f"screws must be an array of numbers, got {screws!r}") from None
    if S.size and S.shape[-1:] != (6,):
        raise ShapeError(f"screws must have shape (..., 6), got {S.shape}")
    if not np.isfinite(S).all():
        raise ShapeError("screws have entries that are not finite")
    S = S.reshape(-1, 6)
    length = np.linalg.norm(S, axis=1)
    S = S[length > 0.0] / length[length > 0.0, None]
    _, sizes, basis = np.linalg.svd(S)
    return basis, int(np.sum(sizes > tol * sizes.max(initial=0.0)))


def system_basis(screws: ArrayLike, tol: float = 1e-9) -> Array:
    """Orthonormal basis (with respect to the six components) of the space spanned by some screws.

    The right singular vectors of the stacked screws (docs/mathematics.md §9).

    Parameters
    ----------
    screws : array_like, shape (..., 6)
        All in one frame. Each is first scaled to Euclidean length 1, so that `tol` is dimensionless.
    tol : float
        Singular values below this fraction of the largest count as zero.

    Returns
    -------
    ndarray, shape (order, 6)

    Raises
    ------
    ShapeError
        If the screws have another shape, or entries that are not finite numbers.
    """
    basis, order = _span(screws, tol)
    return basis[:order]


def system_order(screws: ArrayLike, tol: float = 1e-9) -> int:
    """Order of a screw system: the dimension λ ≤ 6 of the space spanned by screws (..., 6) (docs/mathematics.md §9).

    Parameters and errors as for `system_basis`.
    """
    return _span(screws, tol)[1]


def reciprocal_system(screws: ArrayLike, tol: float = 1e-9) -> Array:
    """Orthonormal basis of the screws that are reciprocal to all given screws (docs/mathematics.md §9).

    Parameters and errors as for `system_basis`.

    Returns
    -------
    ndarray, shape (6 - order, 6)
    """
    basis, order = _span(screws, tol)
    return to_linear_first(basis[order:])
