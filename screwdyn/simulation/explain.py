"""The energy ledger of a run in sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from screwdyn.core.text import Text
from screwdyn.core.types import Array
from screwdyn.simulation.ledger import Energy, Event

__all__ = ["ledger"]

# Residuals relative to the largest energy: below the first they are rounding, below the second those of an integrator.
_ROUNDING, _INTEGRATION = 1e-12, 1e-5
# Energies are printed as 0 below these fractions of the largest one, and of the largest one without the constant part
# of the potential energy, which may be of any size.
_ZERO, _ZERO_OF_CHANGES = 1e-12, 1e-6


class _Occasion(NamedTuple):
    """What happens at one time, with the energies of the ledger that change there, J."""

    t: float
    what: str
    lost: float
    brought: float


def ledger(t: Array, E: Energy, events: Sequence[Event]) -> Text:
    """The energy ledger of a run in sentences; see :meth:`Recording.explain`."""
    scale = max(float(np.abs(entry).max()) for entry in vars(E).values())
    changes = vars(E) | {"potential": E.potential - E.potential[0]}
    zero = max(_ZERO * scale, _ZERO_OF_CHANGES * max(float(np.abs(entry).max()) for entry in changes.values()))

    def joules(x: float) -> str:
        return f"{0.0 if abs(x) <= zero else x:.4g} J".replace("-", "−", int(x < 0))

    def account(k: int) -> str:
        sign, size = ("−" if E.potential[k] < -zero else "+"), joules(abs(E.potential[k]))
        return f"{joules(E.kinetic[k])} kinetic {sign} {size} potential = {joules(E.total[k])}."

    happened = [_sentence(same, joules) for same in _occasions(t, E, events)]
    none = "Nothing is attached, released or changed, and no joint reaches a limit."
    return Text(
        "\n".join(
            [
                f"The run lasts {t[-1] - t[0]:.6g} s, from t = {t[0]:.6g} s to t = {t[-1]:.6g} s.",
                "",
                f"Energy at the start: {account(0)}",
                f"Energy at the end:   {account(-1)}",
                *_changes(E, joules, zero),
                "",
                *(["What happened:", *happened] if happened else [none]),
                "",
                _unaccounted(E.residual, scale),
            ]
        )
    )


def _changes(E: Energy, joules: Callable[[float], str], zero: float) -> list[str]:
    """What the energy of the robot gains and loses, and the sum of it."""
    rows: list[tuple[float, str]] = []
    for x, done, taken in (
        (E.work, "work of the motors", "they supply {} and absorb {}"),
        (E.external, "work of external wrenches", "they supply {} and absorb {}"),
        (E.exchanged, "energy of bodies that come or go", "these changes add {} and take {}"),
    ):
        steps = np.diff(x)
        plus, minus = float(steps[steps > 0].sum()), float(-steps[steps < 0].sum())
        if max(plus, minus) > zero:
            both = f" ({taken.format(joules(plus), joules(minus))})" if min(plus, minus) > zero else ""
            rows.append((float(x[-1]), done + both))
    for x, lost in ((E.dissipated, "heat of damping and friction in joints"), (E.impact_loss, "heat of impacts")):
        if np.abs(x).max() > zero:
            rows.append((-float(x[-1]), lost))
    change = float(E.total[-1] - E.total[0])
    if not rows:
        return ["The robot keeps its energy: nothing is added or lost."]
    verb = "gains" if change > zero else "loses" if change < -zero else "neither gains nor loses energy"
    amount = f" {joules(abs(change))}" if abs(change) > zero else ""
    cells = [(f"{'−' if x < 0 else '+'} {joules(abs(x))}", text) for x, text in rows]
    width = max(len(cell) for cell, _ in cells)
    return [f"The robot {verb}{amount}:", *(f"  {cell:{width}}  {text}" for cell, text in cells)]


def _occasions(times: Array, E: Energy, events: Sequence[Event]) -> list[list[_Occasion]]:
    """What happened, in order of the first time; the same things at several times together."""
    at: dict[float, list[str]] = {}
    for event in events:
        at.setdefault(event.t, []).append(f"{event.verb} {event.subject}")
    same: dict[str, list[_Occasion]] = {}
    for t, words in sorted(at.items()):
        what = ", ".join(dict.fromkeys(words))
        same.setdefault(what, []).append(
            _Occasion(t, what, _jump(times, E.impact_loss, t), _jump(times, E.exchanged, t))
        )
    return list(same.values())


def _jump(times: Array, entry: Array, t: float) -> float:
    """The change of an entry of the ledger at a time: between its first and last sample there, if it has samples."""
    first, end = np.searchsorted(times, t, side="left"), np.searchsorted(times, t, side="right")
    return float(entry[end - 1] - entry[first]) if end > first else 0.0


def _sentence(same: Sequence[_Occasion], joules: Callable[[float], str]) -> str:
    """What happened at one time or several, and what it cost."""
    first, last, times = same[0], same[-1], len(same)
    when = f"t = {first.t:.6g} s" if times == 1 else f"{times} times, t = {first.t:.6g} s to {last.t:.6g} s"
    lost, brought = sum(x.lost for x in same), sum(x.brought for x in same)
    parts = []
    if joules(brought) != joules(0.0):
        # A body below the origin of the base has negative potential energy: without it, the robot has more.
        parts.append(f"the robot {'gains' if brought > 0 else 'loses'} {joules(abs(brought))} by it")
    if joules(lost) != joules(0.0):
        parts.append(f"{joules(lost)} are lost in the impact")
    costs = ", ".join(parts) or "no energy is lost"
    return f"  {when}: {first.what}; {costs}."


def _unaccounted(residual: Array, scale: float) -> str:
    """The largest residual, and what it means."""
    worst = float(np.abs(residual).max())
    if not worst:
        return "Unaccounted for: 0 J. The ledger closes."
    relative = worst / scale
    if relative <= _ROUNDING:
        meaning = "This is rounding: the ledger closes."
    elif relative <= _INTEGRATION:
        meaning = "This is the error of the integration, which smaller rtol= and atol= of simulate reduce."
    else:
        meaning = (
            "This is more than an integrator leaves: reduce rtol= and atol= of simulate. If it remains, a torque or "
            "wrench jumps, or is not a function of time and state."
        )
    return f"Unaccounted for: at most {worst:.2g} J, {relative:.2g} of the largest energy in the ledger. {meaning}"
