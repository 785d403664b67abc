"""Screw systems: the space that the screws of joints span, and its reciprocal space (docs/mathematics.md §9)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.errors import ShapeError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.screws.groups import reduced_rows
from screwdyn.screws.screw import to_linear_first

__all__ = ["ScrewSystem", "reciprocal_system", "system_basis", "system_order"]


@dataclass(frozen=True, eq=False)
class ScrewSystem:
    """A space of twists of dimension λ, in which Jacobians have λ rows (docs/mathematics.md §9).

    ``J = system.basis.T @ system.jacobian(J)`` for every Jacobian J whose columns are in the space.

    Attributes
    ----------
    basis : (λ, 6) array
        Twists [ω; v] as rows. Each has a component 1 in which all others are 0.
    components : tuple of int
        These components, rotations first: a twist in the space has them as its coordinates.
    """

    basis: Array
    components: tuple[int, ...]

    @classmethod
    def of(cls, screws: ArrayLike, tol: float = 1e-9, length: float = 1.0) -> ScrewSystem:
        """The system that some screws (…, 6) span, all in one frame, with their sizes as weights.

        Singular values and components below ``tol`` times the largest count as zero, with lengths in units of
        ``length``, m: the size of the robot. Errors as for `system_basis`.
        """
        units = np.repeat([1.0, length], 3)
        _, sizes, space = np.linalg.svd(_numbers(screws) / units)
        rows, pivots = reduced_rows(space[: np.sum(sizes > tol * sizes.max(initial=0.0))], tol)
        basis = np.reshape(rows, (-1, 6))[np.argsort(pivots)]
        components = tuple(sorted(pivots))
        basis[np.abs(basis) <= tol] = 0.0
        return cls(basis * units / units[list(components), None], components)

    @property
    def order(self) -> int:
        """λ."""
        return len(self.components)

    def jacobian(self, J: Any) -> Any:
        """The λ rows of a Jacobian (…, 6, k), its time derivative, or a SymPy matrix of either, (…, λ, k).

        Raises ShapeError if it has another shape.
        """
        if np.shape(J)[-2:-1] != (6,):
            raise ShapeError(f"a Jacobian has 6 rows, [ω; v]; got shape {np.shape(J)}")
        rows = list(self.components)
        return J[rows, :] if expressions.is_matrix(J) else np.asarray(J)[..., rows, :]

    def inertia(self, M: Any) -> Any:
        """An inertia (…, 6, 6), or a SymPy matrix, restricted to the space: B M Bᵀ, (…, λ, λ), with B the basis.

        Raises ShapeError if it has another shape.
        """
        if np.shape(M)[-2:] != (6, 6):
            raise ShapeError(f"an inertia is a matrix (…, 6, 6); got shape {np.shape(M)}")
        if expressions.is_matrix(M):
            return expressions.as_matrix(self.inertia(expressions.entries_of(M)))
        M, B = np.asarray(M), self.basis
        if M.dtype == object:  # so that 1.0 x is x
            B = np.array([expressions.whole(x) for x in B.ravel().tolist()], dtype=object).reshape(B.shape)
        return B @ M @ B.T

    def __repr__(self) -> str:
        return f"<ScrewSystem of order {self.order} with components {self.components}>"


def _numbers(screws: ArrayLike) -> Array:
    """Screws as rows, (k, 6), without those that are zero."""
    try:
        S = expressions.real(screws)
    except (TypeError, ValueError):
        raise ShapeError(f"screws must be an array of numbers, got {screws!r}") from None
    if S.size and S.shape[-1:] != (6,):
        raise ShapeError(f"screws must have shape (..., 6), got {S.shape}")
    if not np.isfinite(S).all():
        raise ShapeError("screws have entries that are not finite")
    S = S.reshape(-1, 6)
    return np.asarray(S[np.linalg.norm(S, axis=1) > 0.0])


def _span(screws: ArrayLike, tol: float) -> tuple[Array, int]:
    """Orthonormal basis, (6, 6), whose first rows span the screws, and the number of these rows."""
    S = _numbers(screws)
    _, sizes, basis = np.linalg.svd(S / np.linalg.norm(S, axis=1, keepdims=True))
    return basis, int(np.sum(sizes > tol * sizes.max(initial=0.0)))


def system_basis(screws: ArrayLike, tol: float = 1e-9) -> Array:
    """Orthonormal basis, (order, 6), with respect to the six components, of the space spanned by some screws.

    The right singular vectors of the stacked screws (docs/mathematics.md §9). Raises ShapeError if the screws have
    another shape, or entries that are not finite numbers.

    Parameters
    ----------
    screws : array_like, shape (..., 6)
        All in one frame. Each is first scaled to Euclidean length 1, so that `tol` is dimensionless.
    tol : float
        Singular values below this fraction of the largest count as zero.
    """
    basis, order = _span(screws, tol)
    return basis[:order]


def system_order(screws: ArrayLike, tol: float = 1e-9) -> int:
    """Order of a screw system: the dimension λ ≤ 6 of the space spanned by screws (..., 6) (docs/mathematics.md §9).

    Parameters and errors as for `system_basis`.
    """
    return _span(screws, tol)[1]


def reciprocal_system(screws: ArrayLike, tol: float = 1e-9) -> Array:
    """Orthonormal basis, (6 - order, 6), of the screws reciprocal to all given screws (docs/mathematics.md §9).

    Parameters and errors as for `system_basis`.
    """
    basis, order = _span(screws, tol)
    return to_linear_first(basis[order:])
