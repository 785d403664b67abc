"""Steps of fixed length with contacts, on traced scalars (docs/mathematics.md §14).

Impulses stand for forces and impacts alike, so steps look for no events; their order is 1.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from screwdyn.physics.link_steps import square_root

# Points of all contacts of a run; sweeps of a step; the change by the last one, relative to that by all; and what a
# point that does not hit yields, relative to its mobility.
POINTS, SWEEPS, SETTLED, SOFT = 16, 100, 1e-5, 0.05
# Rate at which a point hits, relative to that at which it yields to its last impulse.
HIT = 4.0
# Rate at which a point would be pushed out, m/s, with which a run has failed; and what its rates become then.
DEEP, FAILED = 10.0, 1e70
# Square of a row that is rounding: such links do not move relative to each other.
RIGID = 1e-18
# Mobility in a direction, relative to that in all of them, that is rounding; and what keeps divisors from zero.
FIXED, TINY = 1e-20, 1e-60


def moreau(
    motion: Any, q: Any, qd: Any, before: Any, friction: Sequence[Any], restitution: Sequence[Any], dt: Any
) -> tuple[Any, Any, Any]:
    """The state and the impulses after a step of order 1, from those before it, where the search for impulses starts.

    J. J. Moreau's time stepping (docs/mathematics.md §14): q̇₁ = q̇ + h q̈(q, q̇) + M⁻¹ Jᵀ Λ, and q₁ is reached from q by
    moving at q̇₁ for h seconds. u = J q̇₁ obeys Coulomb's law and 0 <= Λ_n ⊥ u_n + ε G_nn Λ_n − c >= 0. c = −φ / h lets
    gaps just close; of points that hit, it is Newton's −e φ̇, if that is more, and ε = 0. Where gaps close no longer, as
    of heavy links that sink into light ones, the run fails.
    """
    acceleration, gaps, J, Z = motion.touching(q, qd)
    free = qd + motion.unturned(qd, acceleration) * dt
    points, failed = [], 0.0
    for k, gap in enumerate(gaps):
        point = _Point(J[k] @ Z, J[k] @ free, friction[k])
        least, approach = -gap / dt, -(J[k, 0] @ qd)
        failed = failed + _above(least - DEEP) * _above(J[k, 0] @ J[k, 0] - RIGID)
        hits = _above(least - point.rates[0]) * _above(approach - HIT * point.soft * before[3 * k])
        if hasattr(restitution[k], "tape"):
            more = restitution[k] * approach - least
            least = least + hits * _above(more) * more
        point.bound(least, hits)
        points.append(point)
    n = len(qd)

    def sweep(values: Any) -> list[Any]:
        """One sweep of Gauss-Seidel, by points: the change of the rates, impulses, and whether there is another one."""
        change, active, after = values[:n], values[-1], []
        for k, point in enumerate(points):
            change, impulse = point.pressed(change, values[n + 3 * k : n + 3 * k + 3], active)
            after += impulse
        step = change - values[:n]
        return [*change, *after, active * _above(step @ step - SETTLED**2 * (change @ change))]

    start = sum((before[3 * k : 3 * k + 3] @ point.rows for k, point in enumerate(points)), np.zeros(n, dtype=object))
    found = motion.repeated(sweep, [*start, *before, 1.0], SWEEPS)
    return *motion.moved_straight(q, free + Z @ found[:n] + FAILED * failed, dt), found[n:-1]


class _Point:
    """A point with the rows A = J Z of its normal and tangents, and its rates less their bounds, without impulses."""

    def __init__(self, rows: Any, rates: Any, friction: Any) -> None:
        self.rows, self.rates, self._friction = rows, rates, friction
        G = self._G = rows @ rows.T
        self.soft, half = SOFT * G[0, 0], 0.5 * (G[1, 1] - G[2, 2])
        # The larger eigenvalue of the tangents' mobility.
        self._slips = self._inverse(G[1, 1] - half + square_root(half * half + G[1, 2] * G[1, 2] + TINY))

    def bound(self, least: Any, hits: Any) -> None:
        """The least normal rate, and whether the point hits, 1 or 0, which is not soft."""
        self.soft, self.rates[0] = self.soft * (1.0 - hits), self.rates[0] - least
        self._yields = self._inverse(self._G[0, 0] + self.soft)

    def _inverse(self, mobility: Any) -> Any:
        """The inverse of a mobility; 0 if it is rounding."""
        return _above(mobility - FIXED * (self._G[0, 0] + self._G[1, 1] + self._G[2, 2])) / (mobility + TINY)

    def pressed(self, change: Any, impulse: Any, active: Any) -> tuple[Any, list[Any]]:
        """The change of the rates, Zᵀ M Δq̇, and the impulse after this point acts; the same if not active."""
        G, rows, friction = self._G, self.rows, self._friction
        u = [_dot(row, change) + rate for row, rate in zip(rows, self.rates, strict=True)]
        n = impulse[0] - (u[0] + self.soft * impulse[0]) * self._yields
        step = active * (_above(n) * n - impulse[0])
        n, change = impulse[0] + step, change + rows[0] * step
        if not hasattr(friction, "tape"):
            return change, [n, *impulse[1:]]
        y = [impulse[i] - (u[i] + G[0, i] * step) * self._slips for i in (1, 2)]
        most, square = friction * n, y[0] * y[0] + y[1] * y[1]
        share = 1.0 + _above(square - most * most) * (most / square_root(square + TINY) - 1.0)
        steps = [active * (share * y[i - 1] - impulse[i]) for i in (1, 2)]
        change = change + rows[1] * steps[0] + rows[2] * steps[1]
        return change, [n, impulse[1] + steps[0], impulse[2] + steps[1]]


def _dot(a: Any, b: Any) -> Any:
    """Σ a b, in two halves, which processors add at once."""
    middle = len(a) // 2
    return a[:middle] @ b[:middle] + a[middle:] @ b[middle:]


def _above(x: Any) -> Any:
    """1 if a scalar is positive, 0 otherwise."""
    return x.positive() if hasattr(x, "tape") else float(x > 0)
