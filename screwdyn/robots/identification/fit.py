"""Weighted linear least squares, with the directions that the data do not determine."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from screwdyn.core.errors import ScrewdynError
from screwdyn.core.types import Array

Indices = npt.NDArray[np.intp]

__all__ = ["Fit", "dependencies", "fit"]

# Singular values, of columns scaled to length 1 and relative to the largest, below which a direction counts as not
# determined: rounding leaves less.
_RANK = 1e-9
# Length of a column, relative to the longest, that rounding leaves.
_ROUNDING = 1e-13
# Coefficients of a dependency below which it counts as none: rounding, times the condition of the columns.
_NONE = 1e-6
# Least standard deviation of the noise of a freedom, relative to the largest, and to the largest torque.
_QUIET, _EXACT = 1e-6, 1e-15


class Fit(NamedTuple):
    """The minimum of Σ (A x − b)² / σ², with p unknowns.

    Attributes
    ----------
    x : (p,) array
        In directions that the data do not determine, the start.
    covariance : (p, p) array
        Infinite variances, and NaN beside them, for unknowns that the data do not determine.
    noise : (nv,) array
        σ of each freedom.
    condition : float
        Of the columns scaled to length 1, without the directions that the data do not determine.
    undetermined : (d, p) array
        Directions along which the residual does not change.
    """

    x: Array
    covariance: Array
    noise: Array
    condition: float
    undetermined: Array


def fit(A: Array, b: Array, noise: Array | None, start: Array) -> Fit:
    """Weighted least squares.

    Parameters
    ----------
    A : (N, nv, p) array
    b : (N, nv) array
    noise : (nv,) array or None
        By default estimated from the residual of an unweighted fit, for each freedom.
    start : (p,) array

    Raises
    ------
    ScrewdynError
        If the noise cannot be estimated, because there are no more numbers than unknowns.
    """
    if noise is None:
        x, rank = _solve(A, b, np.ones(A.shape[1]), start)[:2]
        if b.size <= rank:
            raise ScrewdynError(
                f"{b.size} measured torques cannot determine {rank} unknowns and the noise; give more samples, or the "
                f"noise of the torques"
            )
        noise = np.sqrt(np.mean((b - A @ x) ** 2, axis=0) * b.size / (b.size - rank))
        noise = np.maximum(noise, max(_QUIET * noise.max(), _EXACT * np.abs(b).max(), np.finfo(float).tiny ** 0.25))
    x, rank, size, s, Vt = _solve(A, b, noise, start)
    root = Vt[:rank].T / s[:rank] / size[:, None]
    covariance = root @ root.T
    weighted = (A / noise[:, None]).reshape(-1, A.shape[2])
    kept, dropped, combination = dependencies(weighted, rank)
    undetermined = np.zeros((len(dropped), len(x)))
    undetermined[range(len(dropped)), dropped] = 1.0
    undetermined[:, kept] = -combination.T
    free = np.any(undetermined != 0.0, axis=0)
    covariance[free] = covariance[:, free] = np.nan
    covariance[free, free] = np.inf
    return Fit(x, covariance, noise, float(s[0] / s[rank - 1]) if rank else np.inf, undetermined)


def _solve(A: Array, b: Array, noise: Array, start: Array) -> tuple[Array, int, Array, Array, Array]:
    """The solution next to start, the rank, the lengths of the columns, and the singular values and vectors."""
    from scipy.linalg import svd

    rest = ((b - A @ start) / noise).ravel()
    weighted = (A / noise[:, None]).reshape(len(rest), -1)
    size = _lengths(weighted)
    U, s, Vt = svd(weighted / size, full_matrices=False)
    rank = int(np.sum(s > _RANK * s.max(initial=0.0)))
    return start + Vt[:rank].T @ (U[:, :rank].T @ rest / s[:rank]) / size, rank, size, s, Vt


def _lengths(A: Array) -> Array:
    """Lengths by which columns are divided: columns that contain only rounding remain short."""
    size = np.linalg.norm(A, axis=0)
    largest = size.max(initial=0.0)
    return np.where(size > _ROUNDING * largest, size, largest or 1.0)


def dependencies(A: Array, rank: int | None = None) -> tuple[Indices, Indices, Array]:
    """Columns that are independent, those that are combinations of them, and the coefficients.

    Of dependent columns, the first ones are kept: ``A[:, dropped] = A[:, kept] @ coefficients``.

    Parameters
    ----------
    A : (m, p) array
    rank : int, optional
        By default from a QR decomposition with pivoting.
    """
    from scipy.linalg import lstsq, qr

    size = _lengths(A)
    scaled = A / size
    R = np.asarray(np.linalg.qr(scaled, mode="r"))
    if len(R) < R.shape[1]:
        R = np.concatenate([R, np.zeros((R.shape[1] - len(R), R.shape[1]))])
    if rank is None:
        found = np.abs(np.diag(qr(R, mode="r", pivoting=True)[0]))
        rank = int(np.sum(found > _RANK * found.max(initial=0.0)))
    # A column whose part perpendicular to those before it vanishes depends on them.
    kept = np.sort(np.argsort(-np.abs(np.diag(R)), kind="stable")[:rank])
    dropped = np.setdiff1d(np.arange(A.shape[1]), kept)
    coefficients = np.zeros((rank, len(dropped)))
    if rank and len(dropped):
        coefficients = lstsq(scaled[:, kept], scaled[:, dropped])[0]
    coefficients[np.abs(coefficients) < _NONE] = 0.0
    return kept, dropped, coefficients * size[dropped] / size[kept, None]
