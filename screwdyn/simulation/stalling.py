"""Detection of integrations whose steps are far shorter than the motion requires, and of the reason."""

from __future__ import annotations

import numpy as np

from screwdyn.core.errors import LoopError, ScrewdynError, StalledError
from screwdyn.core.types import Array
from screwdyn.simulation.equations import Equations
from screwdyn.simulation.stepping import Integrator

__all__ = ["StallGuard"]

# Steps after which the progress is judged.
WINDOW = 400
# Remaining steps at the present progress that are accepted without a closer look: seconds to minutes.
MANY = 100_000
# Multiple of the tolerance up to which a motion counts as smooth enough for longer steps.
SMOOTH = 100.0
# Change of a torque, relative to the largest torque, that counts as a jump.
JUMP = 0.01
# Distance from the last state, relative or in rad, m, rad/s or m/s, within which jumps are searched for, and number of
# halvings of this distance that must retain a jump.
NEAR, HALVINGS = 1e-6, 12
EXPLICIT = ("RK23", "RK45", "DOP853")


class StallGuard:
    """Judges the steps of an integration of one tree.

    Parameters
    ----------
    equations : Equations
    integrator : Integrator
    end : float
        Of the run, s.
    t, y
        The start.
    """

    def __init__(self, equations: Equations, integrator: Integrator, end: float, t: float, y: Array) -> None:
        self.equations, self.integrator, self.end = equations, integrator, end
        self.restart(t, y)

    def restart(self, t: float, y: Array) -> None:
        """Begin at a state, and forget the steps before it."""
        self.t, self.Y = [t], [y]

    def step(self, t: float, y: Array, longest: float) -> None:
        """Judge the steps up to time t, of which none may be longer than ``longest``.

        Raises
        ------
        StalledError
            If the run would not end at the pace of the last steps, although the motion is smooth.
        """
        self.t.append(t)
        self.Y.append(y)
        if len(self.t) > WINDOW:
            pace = (t - self.t[0]) / WINDOW
            slow = pace * MANY < self.end - t and pace < 0.1 * longest
            if slow and (pace == 0 or self._smooth() or self._jump()):
                raise self.error(t, f"its steps are only {pace:.1g} s long")
            self.restart(t, y)

    def _smooth(self) -> bool:
        """Whether a cubic polynomial follows the motion over all noted steps."""
        integrator = self.integrator
        t, Y = np.array(self.t), np.array(self.Y)[:, : self.equations.n]
        basis = np.polynomial.chebyshev.chebvander(2 * (t - t[0]) / (t[-1] - t[0]) - 1, 3)
        residual = Y - basis @ np.linalg.lstsq(basis, Y, rcond=None)[0]
        return bool((np.abs(residual) < SMOOTH * (integrator.atol + integrator.rtol * np.abs(Y))).all())

    def lost(self, t: float, y: Array, seen: str) -> LoopError | None:
        """The error for loops with a singular configuration near y; None if there is none."""
        names = ", ".join(map(repr, self.equations.dependent(y)))
        if not names:
            return None
        return LoopError(
            f"the run cannot pass a singular configuration at t = {t:.9g} s, near which constraints of {names} are "
            f"dependent: {seen}; choose a motion that avoids it, or open the loop there"
        )

    def error(self, t: float, seen: str) -> ScrewdynError:
        """The error for an integration that does not get on at time t, with its cause."""
        singular = self.lost(t, self.Y[-1], seen)
        if singular is not None:
            return singular
        where = f"the integration stalls at t = {t:.9g} s: {seen}"
        jump = self._jump()
        if jump is not None:
            what, name, low, high = jump
            return StalledError(
                f"{where}, because {what} {name!r} jumps between {low:.4g} and {high:.4g}. Compute it once per period "
                f"(control_period=), or make it continuous, such as tanh instead of sign; dry friction is a parameter "
                f"of a joint (friction=)",
                t,
                name,
            )
        if self.integrator.method in EXPLICIT:
            name, constant = self._stiffest(t, self.Y[-1])
            implicit = "Use method='Radau' or 'LSODA', or reduce" if self.equations.closure is None else "Reduce"
            return StalledError(
                f"{where}, because the forces on {name!r} balance within {constant:.1g} s, which the explicit method "
                f"{self.integrator.method} must follow. {implicit} the damping, stiffness or gain at {name!r}",
                t,
                name,
            )
        return StalledError(
            f"{where}. If the motion does not diverge there, try another method=, such as 'Radau' or 'DOP853', or a "
            f"larger rtol=",
            t,
        )

    def _jump(self) -> tuple[str, str, float, float] | None:
        """A torque or a force of wrenches that jumps close to the last state: what, coordinate, both values."""
        equations, t, y = self.equations, self.t[-1], self.Y[-1]
        sources = {"the torque on": equations.controller, "the force of wrenches= on": equations.disturbance}
        for what, source in sources.items():
            if source is None:
                continue
            largest = np.abs(source(t, *equations.layout.parts(y))).max(initial=0.0)
            for k in range(equations.n):
                aside = np.zeros(len(y))
                aside[k] = NEAR * (1 + abs(y[k]))
                low, high = y - aside, y + aside
                below, above = (source(t, *equations.layout.parts(x)) for x in (low, high))
                jump = np.abs(above - below)
                if jump.max(initial=0.0) <= JUMP * max(largest, np.abs(above).max(), np.abs(below).max()):
                    continue
                i = int(np.argmax(jump))
                # Where a function is continuous, its change over a part of an interval is a part of its change.
                for _ in range(HALVINGS):
                    middle = 0.5 * (low + high)
                    value = source(t, *equations.layout.parts(middle))
                    if abs(value[i] - below[i]) > abs(above[i] - value[i]):
                        high, above = middle, value
                    else:
                        low, below = middle, value
                if abs(above[i] - below[i]) > 0.3 * jump[i]:
                    values = float(below[i]), float(above[i])
                    return what, equations.model.coordinates[i], min(values), max(values)
        return None

    def _stiffest(self, t: float, y: Array) -> tuple[str, float]:
        """The coordinate with the fastest balance of forces, and its time constant, s."""
        equations = self.equations
        rates = slice(equations.nq, equations.n)
        values, vectors = np.linalg.eig(equations.jacobian(t, y)[rates, rates])
        k = int(np.argmax(np.abs(values)))
        name = equations.model.coordinates[int(np.argmax(np.abs(vectors[:, k])))]
        return name, float(1 / max(abs(values[k]), 1e-300))
