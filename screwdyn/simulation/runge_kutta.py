"""The method DOP853 of Dormand and Prince, with SciPy's coefficients and control of steps, and less overhead.

The steps are those of SciPy. The time between evaluations is shorter: derivatives are written to their rows, and
values of the solution within a step are one product of matrices.

E. Hairer, S. P. Nørsett, G. Wanner, *Solving Ordinary Differential Equations I*, Springer, 1993, sections II.4 to II.6.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from screwdyn.core.types import Array

__all__ = ["Polynomial", "RungeKutta8"]

# Control of the length of steps.
SAFETY, LEAST, MOST = 0.9, 0.2, 10.0
EXPONENT = -1 / 8
TOO_SHORT = "Required step size is less than spacing between numbers"

# Writes the derivative ẏ(t, y) to an array.
Rate = Callable[[float, Array, Array], None]


class Coefficients(NamedTuple):
    """The coefficients as rows for products with the rows of derivatives.

    Attributes
    ----------
    nodes : list of float
        Of the 16 stages as fractions of the step; the last three are for the polynomial only.
    weights : list of arrays
        Of the earlier derivatives, for each stage; those of the thirteenth are the result of the step.
    errors : (2, 13) array
        Weights of two estimates of the error.
    terms : (7, 16) array
        Weights for the terms of the polynomial.
    """

    nodes: list[float]
    weights: list[Array]
    errors: Array
    terms: Array


@functools.cache
def coefficients() -> Coefficients:
    """The coefficients, from SciPy's."""
    from scipy.integrate import DOP853

    stages = len(DOP853.C)
    nodes = [*DOP853.C.tolist(), 1.0, *DOP853.C_EXTRA.tolist()]
    weights = [DOP853.A[s, :s].copy() for s in range(stages)] + [DOP853.B.copy()]
    weights += [row[:s].copy() for s, row in enumerate(DOP853.A_EXTRA, start=stages + 1)]
    total, first, last = np.zeros((3, len(nodes)))
    total[:stages], first[0], last[stages] = DOP853.B, 1.0, 1.0
    terms = np.vstack([total, first - total, 2 * total - last - first, DOP853.D])
    return Coefficients(nodes, weights, np.vstack([DOP853.E5, DOP853.E3]), terms)


class Polynomial:
    """The solution over one step.

    Parameters
    ----------
    t_old, t : float
        Start and end of the step, s.
    y_old : (n,) array
    terms : (7, n) array
        Coefficients of x, x (1 − x), x² (1 − x), x² (1 − x)², …, with x from 0 to 1 over the step.
    """

    __slots__ = ("t", "t_old", "terms", "y_old")

    def __init__(self, t_old: float, t: float, y_old: Array, terms: Array) -> None:
        self.t_old, self.t, self.y_old, self.terms = t_old, t, y_old, terms

    def __call__(self, t: Any) -> Array:
        """Y at a time, (n,), or at several times, (n, times)."""
        x = (np.asarray(t) - self.t_old) / (self.t - self.t_old)
        factors = np.empty((len(self.terms), *x.shape))
        factors[::2], factors[1::2] = x, 1 - x
        return np.asarray((np.multiply.accumulate(factors, axis=0).T @ self.terms + self.y_old).T)


class RungeKutta8:
    """Integrates ẏ = rate(t, y), with the attributes and methods of SciPy's integrators that a run uses.

    Parameters
    ----------
    rate : callable (t, y, out)
        Writes ẏ to ``out``.
    t, y
        The start; y is not changed.
    until : float
        The end, s.
    longest : float
        Largest step, s.
    first : float
        Length of the first step, or 0.
    rtol, atol : float

    Attributes
    ----------
    t, y
        The present time and y.
    h_abs : float
        Length of the next step, s.
    status : "running", "finished" or "failed"
    """

    def __init__(
        self, rate: Rate, t: float, y: Array, until: float, longest: float, first: float, rtol: float, atol: float
    ) -> None:
        self.rate, self.t, self.y, self.until, self.longest = rate, t, y.copy(), until, longest
        self.rtol, self.atol = max(rtol, 100 * float(np.finfo(float).eps)), atol
        self.status = "running"
        self.nodes, self.weights, self.errors, self.terms = coefficients()
        self.K = np.zeros((len(self.nodes), len(y)))
        self.rows = [self.K[:s] for s in range(len(self.nodes))]
        self.out = [*self.K]
        self.steps = len(self.nodes) - 4
        # The derivative at the present time is in the row after the stages of a step.
        self.f = self.out[self.steps]
        rate(t, self.y, self.f)
        self.h_abs = first or self._first()

    def _first(self) -> float:
        """Length of the first step, from the first two derivatives."""
        scale = self.atol + np.abs(self.y) * self.rtol
        size, slope = _norm(self.y / scale), _norm(self.f / scale)
        guess = min(1e-6 if min(size, slope) < 1e-5 else 0.01 * size / slope, self.until - self.t)
        there = np.zeros(len(self.y))
        self.rate(self.t + guess, self.y + guess * self.f, there)
        bend = _norm((there - self.f) / scale) / guess
        steep = max(slope, bend)
        longer = max(1e-6, guess * 1e-3) if steep <= 1e-15 else (0.01 / steep) ** -EXPONENT
        return min(100 * guess, longer)

    def place(self, y: Array) -> None:
        """Continue from another y at the present time."""
        self.y = y
        self.rate(self.t, y, self.f)

    def step(self) -> str | None:
        """Take a step; returns the reason if none is possible."""
        t, y, K = self.t, self.y, self.K
        least = 10 * (math.nextafter(t, math.inf) - t)
        length, rejected = max(min(self.h_abs, self.longest), least), False
        self.K[0] = self.f
        while True:
            if not length >= least:
                self.status = "failed"
                return TOO_SHORT
            end = min(t + length, self.until)
            h = end - t
            new = self._stages(t, y, h)
            scale = np.maximum(np.abs(y), np.abs(new))
            scale *= self.rtol
            scale += self.atol
            errors = self.errors @ K[: self.steps + 1]
            errors /= scale
            fifth, third = float(errors[0] @ errors[0]), float(errors[1] @ errors[1])
            error = h * fifth / math.sqrt((fifth + 0.01 * third) * len(y)) if fifth or third else 0.0
            if error < 1:
                break
            length, rejected = h * max(LEAST, SAFETY * error**EXPONENT), True
        factor = MOST if error == 0 else min(MOST, SAFETY * error**EXPONENT)
        self.h_abs = h * (min(1.0, factor) if rejected else factor)
        self.before, self.t, self.y = (t, y, h), end, new
        if end >= self.until:
            self.status = "finished"
        return None

    def _stages(self, t: float, y: Array, h: float) -> Array:
        """Fill the rows of derivatives for a step of length h; returns y at its end."""
        rate, nodes, weights, rows, out = self.rate, self.nodes, self.weights, self.rows, self.out
        between = np.empty(len(y))
        for s in range(1, self.steps):
            np.dot(weights[s], rows[s], out=between)
            between *= h
            between += y
            rate(t + nodes[s] * h, between, out[s])
        new: Array = np.dot(weights[self.steps], rows[self.steps])
        new *= h
        new += y
        rate(t + h, new, out[self.steps])
        return new

    def dense_output(self) -> Polynomial:
        """The solution over the last step."""
        t, y, h = self.before
        for s in range(self.steps + 1, len(self.nodes)):
            self.rate(t + self.nodes[s] * h, y + np.dot(self.weights[s], self.rows[s]) * h, self.out[s])
        return Polynomial(t, self.t, y, np.dot(self.terms, self.K) * h)


def _norm(x: Array) -> float:
    return math.sqrt(float(x @ x) / max(1, len(x)))
