"""The summary of a run as text."""

from collections.abc import Sequence

import numpy as np

from screwdyn.simulation.events import Scheduled
from screwdyn.simulation.outcomes import LimitEvent, LockEvent
from screwdyn.simulation.simulate import Run

__all__ = ["report"]


def report(run: Run, scheduled: Sequence[Scheduled]) -> str:
    """Events, also those whose condition never held, the state at the end, and the energy ledger."""
    energy, end = run.energy, run.states[-1]
    width = max(map(len, (*end.positions, *end.coordinates)), default=0)
    lines = [f"{run.t[-1]:g} s, {len(run.t)} samples, {len(run.events)} events"]
    for happened in run.events:
        event, what = happened.event, happened.verb.removesuffix(" of")
        named = f"joint {event.joint!r}" if isinstance(event, LockEvent | LimitEvent) else repr(happened.subject)
        lines.append(f"  {happened.t:g} s: {what} of {named}, {event.energy_lost:.4g} J lost")
    due = [happened.what for happened in run.events]
    lines += [f"  never: {x.verb.removesuffix(' of')}, whose condition did not hold" for x in scheduled if x not in due]
    lines += ["", "at the end:", ""]
    lines += [f"  {name:{width}} {end[name]:12.6g}" for name in end.positions]
    lines += ["", "rates at the end:", ""]
    lines += [f"  {name:{width}} {end.velocity(name):12.6g}" for name in end.coordinates]
    rows = (
        ("kinetic and potential energy", energy.total[-1]),
        ("work of the torques", energy.work[-1]),
        ("dissipated in joints", energy.dissipated[-1]),
        ("dissipated in impacts", energy.impact_loss[-1]),
        ("brought by payloads", energy.exchanged[-1]),
        ("largest residual", np.abs(energy.residual).max()),
    )
    lines += ["", "energy, J:", "", *(f"  {what:29} {value:12.6g}" for what, value in rows)]
    return "\n".join(lines)
