"""Screw systems: the space that the screws of joints span, and its reciprocal space (docs/mathematics.md §9).

Also the groups of motions that screws S (6, k) generate: of dimension k if every bracket ad(Sᵢ) Sⱼ lies in their span
(§12).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from screwdyn.core import Array, ArrayLike, ShapeError, expressions
from screwdyn.screws.screw import ad, exp, inverse_of, log_of, shaped, to_linear_first

__all__ = ["ScrewSystem", "reciprocal_system", "system_basis", "system_order"]

# Relative remainder below which a bracket lies in the span of screws.
_IN_SPAN = 1e-12
# Largest number of steps, and change in rad and m, after which the nearest element is found.
NEAREST, _FOUND = 50, 1e-15


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
        basis = rows[np.argsort(pivots)]
        components = tuple(sorted(pivots))
        basis[np.abs(basis) <= tol] = 0.0
        return cls(basis * units / units[list(components), None], components)

    @property
    def order(self) -> int:
        """λ."""
        return len(self.components)

    def jacobian(self, J: Any) -> Any:
        """The λ rows (…, λ, k) of a Jacobian (…, 6, k), its rate, or a SymPy matrix; ShapeError for other shapes."""
        if np.shape(J)[-2:-1] != (6,):
            raise ShapeError(f"a Jacobian has 6 rows, [ω; v]; got shape {np.shape(J)}")
        rows = list(self.components)
        return J[rows, :] if expressions.is_matrix(J) else np.asarray(J)[..., rows, :]

    def inertia(self, M: Any) -> Any:
        """An inertia (…, 6, 6), also of SymPy, in the space: B M Bᵀ, (…, λ, λ); ShapeError for other shapes."""
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
    S = shaped(screws if expressions.read_or_nan(screws).size else np.zeros((0, 6)), (6,), "screws").reshape(-1, 6)
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
    """Order λ ≤ 6 of a screw system: the dimension of the space of screws (..., 6); all else as for `system_basis`."""
    return _span(screws, tol)[1]


def reciprocal_system(screws: ArrayLike, tol: float = 1e-9) -> Array:
    """Orthonormal basis, (6 - order, 6), of the screws reciprocal to all given; all else as for `system_basis`."""
    basis, order = _span(screws, tol)
    return to_linear_first(basis[order:])


# Groups of motions


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
    """N (6, 6 − k), Sᵀ N = 0: wrenches [n; f] that do no work on S (6, k), unit ones where that is possible."""
    rows, pivots = reduced_rows(screws.T)
    others = [column for column in range(6) if column not in pivots]
    N = np.zeros((6, len(others)), dtype=screws.dtype)
    N[others, range(len(others))] = 1
    N[pivots] = 0 - rows[:, others]
    return expressions.array(N)


def reduced_rows(screws: Array, least: float = _IN_SPAN) -> tuple[Array, list[int]]:
    """Independent screws (k, 6) combined so that each has a component 1 in which all others are 0; these components."""
    rows, pivots = screws.copy(), []
    for done in range(len(rows)):
        k, column = _pivot(rows[done:], least)
        rows[[done, done + k]] = rows[[done + k, done]]
        rows[done] = rows[done] / rows[done, column]
        others = np.arange(len(rows)) != done
        rows[others] = rows[others] - np.outer(rows[others, column], rows[done])
        pivots.append(column)
    return rows, pivots


def _pivot(rows: Array, least: float) -> tuple[int, int]:
    """Row and column of the largest rotation of some screws, or translation if none of them turns."""
    for columns in (range(3), range(3, 6)):
        found = [(k, c) for k in range(len(rows)) for c in columns if not vanishes(rows[k, c], least)]
        if found:  # numbers come before expressions
            return max(found, key=lambda at: abs(float(rows[at])) if expressions.is_number(rows[at]) else 0.0)
    raise AssertionError("the screws of a joint are independent")


def vanishes(x: Any, least: float = _IN_SPAN) -> bool:
    """Whether a number is smaller than the least one, or an expression is 0 for all values of its symbols."""
    return abs(x) < least if expressions.is_number(x) else expressions.is_zero(x)


def projection(screws: Array) -> Array:
    """S S⁺, (6, 6): the orthogonal projection of twists on the span of screws S (6, k)."""
    return np.asarray(screws @ np.linalg.pinv(screws)) if screws.size else np.zeros((6, 6))


def whole_turns(screws: Array, pose: Array) -> Array:
    """The whole turns, (…,) rad, of a helical pose (…, 4, 4), which only its shift along the axis of a screw tells."""
    w, v = screws[:3].sum(axis=1), screws[3:].sum(axis=1)
    if screws.shape[1] != 1 or w @ w < _IN_SPAN or abs(w @ v) < _IN_SPAN * (w @ w):
        return np.zeros(pose.shape[:-2])
    period = 2 * np.pi / np.sqrt(w @ w)
    angle, seen = pose[..., :3, 3] @ w / (w @ v), log_of(pose)[..., :3] @ w / (w @ w)
    return np.asarray(np.round((angle - seen) / period) * period)


def nearest_element(span: Array, pose: Array, most: int = NEAREST) -> tuple[Array, Array]:
    """The motion g of a group nearest to a pose T (…, 4, 4) without its whole turns, and log(g⁻¹ T), (…, 6), rad and m.

    Gauss-Newton steps g ← g exp(S S⁺ log(g⁻¹ T)), at most ``most``, with ``span`` the :func:`projection` S S⁺. One step
    suffices for translations and for all rotations about a point; and for a logarithm that is in the span for the same
    poses, with the same derivative there but for motions of the group.
    """
    g, remainder = np.eye(4), log_of(pose)
    for _ in range(most):
        step = (span @ remainder[..., None])[..., 0]
        g = g @ exp(step)
        remainder = log_of(inverse_of(g) @ pose)
        if np.abs(step).max(initial=0.0) <= _FOUND:
            break
    return g, np.asarray(remainder)
