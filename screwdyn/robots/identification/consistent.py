"""Least squares over the bodies that exist, whose pseudo-inertia is positive definite (docs/mathematics.md §5)."""

from __future__ import annotations

import numpy as np

from screwdyn.core.types import Array

__all__ = ["consistent_fit", "is_consistent", "parameters_of", "pseudo_inertia"]

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
    """The minimum of |A π − b|² over the bodies that exist, (10,).

    The pseudo-inertia J is linear in π, so the sum ½ |A π − b|² + μ (tr J₀⁻¹J − log det J) is convex, and finite only
    for positive definite J. Its minima approach that of |A π − b|² as μ vanishes (Lee, Wensing and Park 2020). Newton's
    method with damped steps follows them; each step is a problem of least squares.

    Parameters
    ----------
    A : (m, 10) array
        With b, divided by the standard deviations of the noise.
    b : (m,) array
    near : (10,) array
        J₀ is its pseudo-inertia, with eigenvalues that are not positive replaced. Directions that A does not determine
        end next to it.
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
