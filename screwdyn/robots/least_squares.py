"""Weighted linear least squares: the directions that the data do not determine, and fits to bodies that exist."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from screwdyn.core.errors import ScrewdynError
from screwdyn.core.types import Array

Indices = npt.NDArray[np.intp]

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
    """The minimum of Σ (A x − b)² / σ², with p unknowns."""

    x: Array  # (p,); in directions that the data do not determine, the start
    covariance: Array  # (p, p); infinite variances, and NaN beside them, for unknowns that the data do not determine
    noise: Array  # (nv,), σ of each freedom
    condition: float  # of the columns scaled to length 1, without the directions that the data do not determine
    undetermined: Array  # (d, p), directions along which the residual does not change


def fit(A: Array, b: Array, noise: Array | None, start: Array) -> Fit:
    """Weighted least squares of A (N, nv, p) and b (N, nv); noise by default estimated from an unweighted one."""
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
    """Columns kept, the first ones of dependent ones; the others; and ``A[:, dropped] = A[:, kept] @ coefficients``."""
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


_ROWS, _COLUMNS = np.triu_indices(3)
# Least eigenvalue of a pseudo-inertia at the start, relative to the largest, in units in which the body has size 1.
_INSIDE = 1e-2
# Size of a body whose estimate has none, m.
_SIZE = 0.1
# Last weight of the divergence, eight times which the sum of squares then exceeds its minimum. The ratio of
# successive weights, the decrement at which Newton's method goes on to the next one, and its largest number of steps.
_LAST, _RATIO, _NEAR, _MOST_STEPS = 1e-9, 0.1, 0.1, 1000
# About the least eigenvalue that a pseudo-inertia may have, in units in which the body has mass and size 1.
_BORDER = 1e-12


def pseudo_inertia(parameters: Array) -> Array:
    """J = ∫ [r; 1] [r; 1]ᵀ dm = [[½ tr(Θ) 1 − Θ, h], [hᵀ, m]], (4, 4), of ten parameters."""
    theta, J = np.zeros((3, 3)), np.zeros((4, 4))
    theta[_ROWS, _COLUMNS] = theta[_COLUMNS, _ROWS] = parameters[4:]
    J[:3, :3] = 0.5 * np.trace(theta) * np.eye(3) - theta
    J[3, :3] = J[:3, 3] = parameters[1:4]
    J[3, 3] = parameters[0]
    return J


def parameters_of(J: Array) -> Array:
    """The ten parameters of a pseudo-inertia (4, 4), (10,)."""
    theta = np.trace(J[:3, :3]) * np.eye(3) - J[:3, :3]
    return np.concatenate([J[3:, 3], J[:3, 3], theta[_ROWS, _COLUMNS]])


def is_consistent(parameters: Array) -> bool:
    """Whether a body of positive density everywhere in some region has these parameters: J is positive definite."""
    J = pseudo_inertia(parameters)
    scale = np.sqrt(np.diag(J)) if np.all(np.diag(J) > 0.0) else np.zeros(4)
    return bool(scale.all()) and bool(np.linalg.eigvalsh(J / np.outer(scale, scale))[0] > 1e-12)


def consistent_fit(A: Array, b: Array, near: Array) -> Array:
    """The minimum of |A π − b|² over the bodies that exist, (10,); what A (m, 10) leaves open ends next to ``near``.

    Damped Newton steps follow the minima of ½ |A π − b|² + μ (tr J₀⁻¹J − log det J), which is convex, as μ vanishes
    (Lee, Wensing and Park 2020). J and J₀ are the pseudo-inertias of π and of ``near`` without negative eigenvalues.
    """
    unit = near[0] if near[0] > 0.0 else 1.0
    unit *= np.repeat([1.0, (size := _size(near)), size**2], [1, 3, 6])
    A, basis = A * unit, np.array([pseudo_inertia(e) for e in np.eye(10)])
    values, axes = np.linalg.eigh(pseudo_inertia(near / unit))
    values = np.maximum(values, _INSIDE * (np.abs(values).max() or 1.0))  # or of an empty hand: all are zero
    J, inverse = (axes * values) @ axes.T, (axes / values) @ axes.T
    x = parameters_of(J)
    weight = 1.0 + float(np.sum((A @ x - b) ** 2))
    for _ in range(_MOST_STEPS):
        L = np.linalg.cholesky(pseudo_inertia(x))
        relative = np.linalg.solve(L, np.linalg.solve(L, basis).swapaxes(1, 2)).reshape(10, 16).T
        slope = (np.eye(4) - L.T @ inverse @ L).ravel()
        rows, root = np.concatenate([A, np.sqrt(weight) * relative]), np.sqrt(weight)
        step = np.linalg.lstsq(rows, np.concatenate([b - A @ x, root * slope]))[0]
        decrement = float(np.linalg.norm(rows @ step)) / root
        # The sum divided by μ is self-concordant: this step stays inside, and decreases it.
        x = x + step / (1.0 + decrement if decrement > _NEAR else 1.0)
        if decrement <= _NEAR:
            if weight <= _LAST or L.diagonal().min() ** 2 < _BORDER:
                break
            weight = max(_RATIO * weight, _LAST)
    return np.asarray(x * unit)


def _size(parameters: Array) -> float:
    """Radius of gyration about the origin, m."""
    square = 0.5 * (parameters[4] + parameters[7] + parameters[9])
    return float(np.sqrt(square / parameters[0])) if square > 0.0 and parameters[0] > 0.0 else _SIZE
