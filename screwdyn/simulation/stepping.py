"""Integrators, step by step, and the first rise of a function through zero within a step."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from screwdyn.core.types import Array, ArrayLike
from screwdyn.simulation.equations import Equations
from screwdyn.simulation.runge_kutta import RungeKutta8

__all__ = ["METHODS", "OF_ONE_STEP", "Crossings", "Integrator", "place"]

METHODS = ("RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA")
# Those that may continue from another y after a step.
OF_ONE_STEP = METHODS[:3]
# Tolerance of SciPy's solve_ivp for the times of events, relative and in s.
LOCATED = 4 * float(np.finfo(float).eps)
# Halvings of an interval of about that length.
HALVINGS = 60
# Increment of a Newton iteration, relative to the tolerance of the iteration, that counts as zero.
NEGLIGIBLE = 0.01

# Numbers that are watched: (t, y) -> one or several of them.
Levels = Callable[[float, Array], ArrayLike]


@dataclass(frozen=True)
class Integrator:
    """A method of integration and its tolerances, as for :func:`scipy.integrate.solve_ivp`."""

    method: str
    rtol: float
    atol: float

    def start(self, equations: Equations, t: float, y: Array, until: float, longest: float, first: float) -> Any:
        """The integrator of ẏ(t, y), with steps of at most ``longest`` and, if not 0, a first step of ``first``."""
        if self.method == "DOP853":
            return RungeKutta8(equations.write_rate, t, y, until, longest, first, self.rtol, self.atol)
        from scipy import integrate

        solver = getattr(integrate, self.method)
        options: dict[str, Any] = {"rtol": self.rtol, "atol": self.atol}
        options["first_step"] = min(first, until - t) if first else None
        if self.method in ("Radau", "BDF"):
            # Their own differences grow tenfold each time for what has no effect, such as the energies, and overflow.
            options["jac"] = equations.jacobian
        started = solver(equations.rate, t, y, until, max_step=longest, **options)
        if self.method in ("Radau", "BDF"):
            _end_at_rounding(started)
        return started


def _end_at_rounding(solver: Any) -> None:
    """Let the Newton iterations of Radau and BDF end where an increment is negligible.

    SciPy ends them when an increment is zero or smaller than the one before. At rest all increments are of the size of
    rounding, so neither happens, and the steps become ever shorter.
    """
    solve = solver.solve_lu

    def increment(factors: Any, residual: Array) -> Array:
        found: Array = solve(factors, residual)
        small = NEGLIGIBLE * solver.newton_tol * (solver.atol + solver.rtol * np.abs(solver.y))
        return np.zeros_like(found) if (np.abs(found) <= small).all() else found

    solver.solve_lu = increment


def place(solver: Any, y: Array) -> None:
    """Let an integrator of one step continue from another y at its present time."""
    if isinstance(solver, RungeKutta8):
        solver.place(y)
    else:
        solver.y, solver.f = y, solver.fun(solver.t, y)


class Crossings:
    """Watches functions for rises through zero.

    Parameters
    ----------
    watched : sequence of callables (t, y) -> number or numbers
    t, y
        The start.
    """

    def __init__(self, watched: Sequence[Levels], t: float, y: Array) -> None:
        self.watched = watched
        self.before = [np.atleast_1d(f(t, y)) for f in watched]

    def first(self, t: float, y: Array, piece: Any) -> tuple[float, int, int] | None:
        """The time of the first rise within a step, the function and its entry; None if there is none.

        ``piece`` is the solution over the step, and y its value at the end, t.
        """
        before, self.before = self.before, [np.atleast_1d(f(t, y)) for f in self.watched]
        found = self._earliest(before, self.before, piece, t)
        # What rises in the step and falls again before its end may still be positive at an earlier rise.
        while found is not None:
            at = found[0]
            values = [np.atleast_1d(f(at, piece(at))) for f in self.watched]
            values[found[1]][found[2]] = 0.0
            earlier = self._earliest(before, values, piece, at)
            if earlier is None or not piece.t_old < earlier[0] < at:
                break
            found = earlier
        return found

    def _earliest(
        self, before: list[Array], after: list[Array], piece: Any, end: float
    ) -> tuple[float, int, int] | None:
        """The first rise of the entries that are not positive before and positive after, at the time ``end``."""
        rises = []
        for k, f in enumerate(self.watched):
            for i in np.flatnonzero((before[k] <= 0) & (after[k] > 0)).tolist():

                def entry(s: float, f: Levels = f, i: int = i) -> float:
                    return float(np.atleast_1d(f(s, piece(s)))[i])

                rises.append((_rise(entry, piece.t_old, end), k, i))
        return min(rises, default=None)


def _rise(f: Callable[[float], float], start: float, end: float) -> float:
    """The earliest time of the rise at which f > 0; f may begin with zero, fall, and then rise.

    It is the start if f does not fall below zero.
    """
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
    root = float(brentq(f, below, end, xtol=LOCATED, rtol=LOCATED))
    return _first_above(f, root, below, end)


def _first_above(f: Callable[[float], float], root: float, below: float, end: float) -> float:
    """The first float at which f > 0, near a root that may lie on either side of the rise; f(below) <= 0 < f(end)."""
    above, width = end, LOCATED * max(1.0, abs(root))
    if f(root) > 0:
        above = root
        while (at := above - width) > below and f(at) > 0:
            above, width = at, 2 * width
        below = max(at, below)
    else:
        below = root
        while (at := below + width) < end and f(at) <= 0:
            below, width = at, 2 * width
        above = min(at, end)
    # Enough halvings to reach neighbouring floats, except at times so near zero that it does not matter.
    for _ in range(HALVINGS):
        middle = below + (above - below) / 2
        if not below < middle < above:
            break
        below, above = (below, middle) if f(middle) > 0 else (middle, above)
    return above
