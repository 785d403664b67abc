"""Screw systems: the screws that a set of joints spans, and those it cannot feel (docs/mathematics.md §9)."""

from __future__ import annotations

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.errors import ShapeError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.screws.screw import to_linear_first

__all__ = ["reciprocal_system", "system_basis", "system_order"]


def _span(screws: ArrayLike, tol: float) -> tuple[Array, int]:
    """Orthonormal basis of six-space whose first rows span the screws, and how many those are."""
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
    """Orthonormal basis (in the six coordinates) of the screw system spanned by some screws.

    Parameters
    ----------
    screws : array_like, shape (..., 6)
        All in one frame; each is first scaled to length one, so that `tol` is a pure number.
    tol : float
        Singular values below this fraction of the largest count as zero.

    Returns
    -------
    ndarray, shape (order, 6)
    """
    basis, order = _span(screws, tol)
    return basis[:order]


def system_order(screws: ArrayLike, tol: float = 1e-9) -> int:
    """Order (dimension, Laus's lambda) of the screw system spanned by some screws; see `system_basis`."""
    return _span(screws, tol)[1]


def reciprocal_system(screws: ArrayLike, tol: float = 1e-9) -> Array:
    """Orthonormal basis of all screws reciprocal to every given one; see `system_basis`.

    Returns
    -------
    ndarray, shape (6 - order, 6)
    """
    basis, order = _span(screws, tol)
    return to_linear_first(basis[order:])
