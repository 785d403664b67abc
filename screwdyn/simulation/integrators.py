"""Integrators, step by step, and the first rise of a function through zero within a step."""

import functools
import itertools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from screwdyn.core.types import Array, ArrayLike, Indices
from screwdyn.forms.configurations import Key, Limits

METHODS = ("RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA")
# Those that are explicit, and may continue from another y after a step.
OF_ONE_STEP = METHODS[:3]
# Control of the length of steps of DOP853.
SAFETY, LEAST, MOST = 0.9, 0.2, 10.0
EXPONENT = -1 / 8
# Tolerance of SciPy's solve_ivp for the times of events, relative and in s.
LOCATED = 4 * float(np.finfo(float).eps)
# Halvings of an interval of about that length.
HALVINGS = 60
# Tolerance of the Newton iterations of Radau and BDF, relative to that of a step, if SciPy's is not larger: with small
# rtol, its square root demands what is below the rounding of stiff forces, and most iterations fail.
NEWTON = 0.01
# Increment of a Newton iteration, relative to the tolerance of the iteration, that counts as zero.
NEGLIGIBLE = 0.01

# Writes the derivative ẏ(t, y) to an array.
Rate = Callable[[float, Array, Array], object]
# Numbers that are watched: (t, y) -> one or several of them.
Levels = Callable[[float, Array], ArrayLike]


@dataclass(frozen=True)
class Integrator:
    """A method of integration and its tolerances, as for :func:`scipy.integrate.solve_ivp`."""

    method: str
    rtol: float
    atol: float

    def start(self, motion: Any, t: float, y: Array, until: float, longest: float, first: float) -> Any:
        """The integrator of ẏ(t, y), with steps of at most ``longest`` and, if not 0, a first step of ``first``."""
        if self.method == "DOP853":
            return RungeKutta8(motion.rate, t, y, until, longest, first, self.rtol, self.atol)
        from scipy import integrate

        implicit = self.method in ("Radau", "BDF")
        # Their own differences grow tenfold each time for what has no effect, such as the energies, and overflow.
        options = {"jac": motion.jacobian} if implicit else {}
        start = min(first, until - t) if first else None
        solver = getattr(integrate, self.method)(
            motion.rate, t, y, until, max_step=longest, first_step=start, rtol=self.rtol, atol=self.atol, **options
        )
        if implicit:
            solver.newton_tol = max(solver.newton_tol, NEWTON)
            _end_at_rounding(solver)
        return solver


def _end_at_rounding(solver: Any) -> None:
    """Let the Newton iterations of Radau and BDF end where an increment is negligible, as all are at rest."""
    solve = solver.solve_lu

    def increment(factors: Any, residual: Array) -> Array:
        found: Array = solve(factors, residual)
        small = NEGLIGIBLE * solver.newton_tol * (solver.atol + solver.rtol * np.abs(solver.y))
        return np.zeros_like(found) if (np.abs(found) <= small).all() else found

    solver.solve_lu = increment


@functools.cache
def _coefficients() -> tuple[list[float], list[Array], Array, Array]:
    """Of DOP853: nodes and weights of 16 stages, two estimates of the error, (2, 13), and polynomials, (7, 16)."""
    # The weights of the thirteenth stage are the result of the step; the last three are for the polynomial only.
    from scipy.integrate import DOP853

    stages = len(DOP853.C)
    nodes = [*DOP853.C.tolist(), 1.0, *DOP853.C_EXTRA.tolist()]
    weights = [DOP853.A[s, :s].copy() for s in range(stages)] + [DOP853.B.copy()]
    weights += [row[:s].copy() for s, row in enumerate(DOP853.A_EXTRA, start=stages + 1)]
    total, first, last = np.zeros((3, len(nodes)))
    total[:stages], first[0], last[stages] = DOP853.B, 1.0, 1.0
    terms = np.vstack([total, first - total, 2 * total - last - first, DOP853.D])
    return nodes, weights, np.vstack([DOP853.E5, DOP853.E3]), terms


class Polynomial(NamedTuple):
    """The solution over one step from t_old to t, as SciPy's other integrators have it."""

    t_old: float
    t: float
    y_old: Array
    # Coefficients, (7, n), of x, x (1 − x), x² (1 − x), x² (1 − x)², …, with x from 0 to 1 over the step.
    terms: Array

    def __call__(self, t: Any) -> Array:
        """Y at a time, (n,), or at several times, (n, times)."""
        if isinstance(t, float):
            part = (t - self.t_old) / (self.t - self.t_old)
            products = itertools.accumulate(([part, 1 - part] * len(self.terms))[: len(self.terms)], operator.mul)
            return np.asarray(np.dot(list(products), self.terms) + self.y_old)
        return np.asarray((self._factors(t).T @ self.terms + self.y_old).T)

    def _factors(self, t: Any) -> Array:
        """What multiplies each of the terms, (7,) or (7, times)."""
        x = (np.asarray(t) - self.t_old) / (self.t - self.t_old)
        factors = np.empty((7, *x.shape))
        factors[::2], factors[1::2] = x, 1 - x
        return np.asarray(np.multiply.accumulate(factors, axis=0))


def solution(pieces: Sequence[Any], times: Array, n: int) -> Array:
    """The first n numbers of y at some times, (k, n), by the polynomials of all steps, of any integrator."""
    owners = np.maximum(np.searchsorted([piece.t_old for piece in pieces], times, side="right") - 1, 0)
    used, which = np.unique(owners, return_inverse=True)
    some = [pieces[k] for k in used]
    if some and all(isinstance(piece, Polynomial) for piece in some):  # all at once
        each = Polynomial(*(np.array(x)[which] for x in zip(*some, strict=True)))  # type: ignore[arg-type]
        return np.asarray(np.einsum("jk,kjn->kn", each._factors(times), each.terms[..., :n]) + each.y_old[:, :n])
    y = np.empty((len(times), n))
    for k, piece in enumerate(some):
        y[which == k] = piece(times[which == k])[:n].T
    return y


class Together(NamedTuple):
    """The solutions of all islands over one interval, and their rows in that of the tree."""

    t_old: float
    t: float
    parts: Sequence[tuple[Indices, Polynomial]]

    def __call__(self, t: Any) -> Array:
        """[q; q̇] at a time, (nq + nv,), or at several times, (nq + nv, times)."""
        y = np.empty((sum(len(rows) for rows, _ in self.parts), *np.shape(t)))
        for rows, piece in self.parts:
            y[rows] = piece(t)[: len(rows)]
        return y


class RungeKutta8:
    """DOP853 (Hairer, Nørsett, Wanner, *Solving Ordinary Differential Equations I*, 1993, §II.4-6) with SciPy's steps.

    Runs are 13 to 34 % faster than by SciPy's own, because derivatives are written to their rows, and values within a
    step are one product of matrices. ``first`` is the length of the first step, or 0.
    """

    def __init__(
        self, rate: Rate, t: float, y: Array, until: float, longest: float, first: float, rtol: float, atol: float
    ) -> None:
        self.rate, self.t, self.y, self.until, self.longest = rate, t, y.copy(), until, longest
        self.rtol, self.atol = max(rtol, 100 * float(np.finfo(float).eps)), atol
        self.status = "running"
        self.nodes, self.weights, self.errors, self.terms = _coefficients()
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

    def step(self) -> str | None:
        """Take a step; returns the reason if none is possible."""
        t, y, K = self.t, self.y, self.K
        least = 10 * (math.nextafter(t, math.inf) - t)
        length, rejected = max(min(self.h_abs, self.longest), least), False
        self.K[0] = self.f
        while True:
            if not length >= least:
                self.status = "failed"
                return "Required step size is less than spacing between numbers"
            end = min(t + length, self.until)
            h = end - t
            new = self._stages(t, y, h)
            scale = np.maximum(np.abs(y), np.abs(new))
            scale *= self.rtol
            scale += self.atol
            errors = self.errors @ K[: self.steps + 1]
            errors /= scale
            fifth, third = float(errors[0] @ errors[0]), float(errors[1] @ errors[1])
            both = fifth + 0.01 * third  # zero also where a third of 1e-323 is left
            error = h * fifth / math.sqrt(both * len(y)) if both else 0.0
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


class Crossings:
    """Watches functions of (t, y), of one number or several, for rises through zero from a start on."""

    def __init__(self, watched: Sequence[Levels], t: float, y: Array) -> None:
        self.watched, values = watched, [np.atleast_1d(f(t, y)) for f in watched]
        self.entries = [(f, i) for f, own in zip(watched, values, strict=True) for i in range(len(own))]
        self.before = np.concatenate([np.zeros(0), *values])

    def first(self, t: float, y: Array, piece: Any) -> tuple[float, int] | None:
        """Time and entry of the first rise in a step that ends at (t, y) with the solution ``piece``."""
        before, self.before = self.before, self._values(t, y)
        found = self._earliest(before, self.before, piece, t)
        # What rises in the step and falls again before its end may still be positive at an earlier rise.
        while found is not None:
            at = found[0]
            values = self._values(at, piece(at))
            values[found[1]] = 0.0
            earlier = self._earliest(before, values, piece, at)
            if earlier is None or not piece.t_old < earlier[0] < at:
                break
            found = earlier
        return found

    def _values(self, t: float, y: Array) -> Array:
        return np.concatenate([np.zeros(0), *(np.atleast_1d(f(t, y)) for f in self.watched)])

    def _earliest(self, before: Array, after: Array, piece: Any, end: float) -> tuple[float, int] | None:
        """The first rise of the entries that are not positive before and positive after, at the time ``end``."""

        def entry(k: int, s: float) -> float:
            f, i = self.entries[k]
            return float(np.asarray(f(s, piece(s))).flat[i])

        ends = dict.fromkeys(np.flatnonzero((before <= 0) & (after > 0)).tolist(), end)
        return next(iter(_rises(entry, ends, piece.t_old)), None)


class Passages:
    """Finds the times at which a motion from y = [q; q̇; …] passes limits from inside, without a part in the motion."""

    def __init__(self, limits: Limits, nq: int, y: Array) -> None:
        self.limits, self.nq = limits, nq
        self.before = self._excess(y)
        self.approached = limits.approach(y[nq:])

    @property
    def beyond(self) -> dict[Key, int]:
        """The limits that are passed, and their entries."""
        return {self.limits.keys[k]: k for k in np.flatnonzero(self.before > 0).tolist()}

    def step(self, t: float, y: Array, piece: Any) -> list[tuple[float, int]]:
        """Times and entries of the limits that are passed in a step, as for :meth:`Crossings.first`, in order."""
        inside, approached = self.before <= 0, self.approached
        self.before, self.approached = after, approach = self._excess(y), self.limits.approach(y[self.nq :])
        # A coordinate that turned beyond its limit within the step came back less than its rate at the end allows.
        near = after > (piece.t_old - t) * np.abs(approach)
        if not near.any():
            return []
        from scipy.optimize import brentq

        ends = {k: t for k in np.flatnonzero(inside & (after > 0)).tolist()}
        for k in np.flatnonzero(inside & near & (after <= 0) & (approached > 0) & (approach < 0)).tolist():
            turn = float(brentq(lambda s, k=k: self.limits.approach(piece(s)[self.nq :])[k], piece.t_old, t))
            if self._excess(piece(turn))[k] > 0:
                ends[k] = turn
        return _rises(lambda k, s: float(self._excess(piece(s))[k]), ends, piece.t_old)

    def _excess(self, y: Array) -> Array:
        return self.limits.excess(y[: self.nq])


def _rises(entry: Callable[[int, float], float], ends: Mapping[int, float], start: float) -> list[tuple[float, int]]:
    """Times and entries of rises of some entries, which end at some times, in order of time."""
    return sorted([(_rise(functools.partial(entry, k), start, end), k) for k, end in ends.items()])


def _rise(f: Callable[[float], float], start: float, end: float) -> float:
    """The first float at which f > 0 of a rise; f may begin with zero, and fall before; the start if it does not."""
    from scipy.optimize import brentq

    below = start
    if f(start) >= 0:
        times = (start + (end - start) * 0.5**k for k in range(1, 50))
        below = next((s for s in times if f(s) < 0), math.nan)
        if math.isnan(below):
            return start
    # The solution over the step meets its value at the end only to rounding.
    if f(end) <= 0:
        return end
    try:
        root = float(brentq(f, below, end, xtol=LOCATED, rtol=LOCATED))
    except ValueError:  # of the signs at the ends, which are not the same in each call if f is rounding
        return end
    # The first float at which f > 0 is near the root, on either side.
    low, high, width = root, root, LOCATED * max(1.0, abs(root))
    while low > below and f(low) > 0:
        low, width = max(low - width, below), 2 * width
    while high < end and f(high) <= 0:
        high, width = min(high + width, end), 2 * width
    # Enough halvings to reach neighbouring floats, except at times so near zero that it does not matter.
    for _ in range(HALVINGS):
        middle = low + (high - low) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if f(middle) > 0 else (middle, high)
    return high
