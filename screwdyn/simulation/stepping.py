"""SciPy's integrators, step by step, and the first rise of a function through zero within a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from screwdyn.core.types import Array, ArrayLike

__all__ = ["METHODS", "Crossings", "Integrator"]

METHODS = ("RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA")
# Tolerance of SciPy's solve_ivp for the times of events, relative and in s.
LOCATED = 4 * float(np.finfo(float).eps)

# Numbers that are watched: (t, y) -> one or several of them.
Levels = Callable[[float, Array], ArrayLike]


@dataclass(frozen=True)
class Integrator:
    """A method of integration and its tolerances, as for :func:`scipy.integrate.solve_ivp`."""

    method: str
    rtol: float
    atol: float

    def start(
        self, rate: Callable[[float, Array], Array], t: float, y: Array, until: float, longest: float, first: float
    ) -> Any:
        """SciPy's integrator of ẏ = rate(t, y), with steps of at most ``longest`` and, if not 0, a first step."""
        from scipy import integrate

        solver = getattr(integrate, self.method)
        first_step = min(first, until - t) if first else None
        return solver(rate, t, y, until, max_step=longest, rtol=self.rtol, atol=self.atol, first_step=first_step)


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
        from scipy.optimize import brentq

        found: tuple[float, int, int] | None = None
        for k, f in enumerate(self.watched):
            before, after = self.before[k], np.atleast_1d(f(t, y))
            self.before[k] = after
            for i in np.flatnonzero((before <= 0) & (after > 0)).tolist():

                def entry(s: float, f: Levels = f, i: int = i) -> float:
                    return float(np.atleast_1d(f(s, piece(s)))[i])

                # The polynomial may differ from the solution at the start by rounding.
                at = (
                    brentq(entry, piece.t_old, t, xtol=LOCATED, rtol=LOCATED)
                    if entry(piece.t_old) <= 0
                    else piece.t_old
                )
                if found is None or at < found[0]:
                    found = at, k, i
        return found
