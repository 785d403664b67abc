"""How a panel of a run is drawn: lines, limits of joints, the range of the axis, the legend, and marks of events."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from screwdyn.core.types import Array
from screwdyn.views.curves import NOISE, Panel, Run, energy_scale
from screwdyn.views.figures import Axes, palette, short

__all__ = ["draw_energy", "draw_panel", "event_texts", "finish", "set_range"]

# Entries of the ledger: label, colour and line style.
_KINETIC, _POTENTIAL = ("kinetic", "#0072B2", "-"), ("potential, change", "#009E73", "-")
_BOOKED = (
    ("work of the motors", "#D55E00", "-"),
    ("work of external wrenches", "#56B4E9", "-"),
    ("brought or taken by payloads", "#CC79A7", "-"),
    ("lost in joints", "#E69F00", "--"),
    ("lost in impacts", "#000000", ":"),
)
_WIDTH = 1.3
# Rows of texts of events; lines of further events have no text.
_ROWS = 4


def draw_panel(ax: Axes, run: Run, panel: Panel) -> None:
    """Draw the curves of a panel, and the limits of joints that are near them."""
    for k, curve in enumerate(panel.curves):
        ax.plot(run.t, curve.values, color=palette(k, len(panel.curves)), lw=_WIDTH, label=short(curve.label))
    others = "1 other" if len(panel.others) == 1 else f"{len(panel.others)} others"
    for k, values in enumerate(panel.others):
        ax.plot(run.t, values, color="0.82", lw=0.7, zorder=1.5, label="" if k else others)
    ax.set_ylabel(panel.axis)
    shown = [curve.values for curve in panel.curves] + [*panel.others]
    low, high = set_range(ax, shown, panel.scale)
    limits: dict[float, list[Any]] = {}
    for k, curve in enumerate(panel.curves):
        for value in curve.limits:
            if low - 0.2 * (high - low) <= value <= high + 0.2 * (high - low):
                limits.setdefault(value, []).append(palette(k, len(panel.curves)))
    for k, (value, colours) in enumerate(limits.items()):
        colour = colours[0] if len(colours) == 1 else "0.4"
        ax.axhline(value, color=colour, lw=0.9, ls=(0, (1, 1.5)), zorder=1.6, label="" if k else "limit of a joint")
    if limits:
        ax.set_ylim(*_with_margin(min(low, *limits), max(high, *limits)))


def draw_energy(ax: Axes, run: Run) -> None:
    """Draw the ledger: what the robot has, what it gains with a plus, what it loses with a minus."""
    E = run.energy
    scale = energy_scale(run)
    booked = (E.work, E.external, E.exchanged, -E.dissipated, -E.impact_loss)
    drawn = [(_KINETIC, E.kinetic), (_POTENTIAL, E.potential - E.potential[0])]
    drawn += [(style, x) for style, x in zip(_BOOKED, booked, strict=True) if np.abs(x).max() > 1e-12 * scale]
    for (label, colour, line), x in drawn:
        text = label if x is E.kinetic or label == _POTENTIAL[0] else f"{label}, {_signed(x[-1])} J"
        ax.plot(run.t, x, line, color=colour, lw=_WIDTH, label=text)
    worst = float(np.abs(E.residual).max())
    # Wide and below the other curves, which it would hide.
    ax.plot(
        run.t,
        E.residual,
        color="0.8",
        lw=3.5,
        zorder=1.2,
        label=f"unaccounted for, up to {worst:{'.0e' if worst else '.0f'}} J",
    )
    ax.set_ylabel("energy (J)")
    set_range(ax, [x for _, x in drawn] + [E.residual], scale)


def set_range(ax: Axes, values: Sequence[Array], scale: float) -> tuple[float, float]:
    """Set the range of the axis so that it shows the values, but not noise; returns the range without its margin.

    Values that differ by less than ``NOISE`` of the scale are drawn as the same one.
    """
    low = float(min(np.fmin.reduce(x) for x in values))
    high = float(max(np.fmax.reduce(x) for x in values))
    if high - low <= NOISE * scale:
        middle, half = 0.5 * (low + high), 0.01 * scale or 1.0
        # Otherwise the axis would count from an offset such as 1e-13.
        middle = 0.0 if abs(middle) <= NOISE * scale else middle
        low, high = middle - half, middle + half
    ax.set_ylim(*_with_margin(low, high))
    return low, high


def finish(ax: Axes, title: str, run: Run, beside: bool = True) -> None:
    """Add title, grid, a legend, beside the data or among them, and a labelled line for every event."""
    ax.set_title(title, loc="left", fontsize=8.5, fontweight="bold")
    ax.grid(alpha=0.25, lw=0.6)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=7.5)
    ax.yaxis.label.set_fontsize(8)
    ax.xaxis.label.set_fontsize(8)
    begin, end = float(run.t[0]), float(run.t[-1])
    ax.set_xlim(begin, end if end > begin else begin + 1.0)
    where: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.05)} if beside else {"loc": "best"}
    if ax.get_legend_handles_labels()[1]:
        ax.legend(**where, frameon=not beside, fontsize=7, handlelength=1.4, labelspacing=0.35)
    _mark_events(ax, run)


def event_texts(run: Run) -> dict[float, str]:
    """What happens at each time of an event: "grasp crate, lock elbow"."""
    found: dict[float, list[str]] = {}
    for happened in run.events:
        found.setdefault(happened.t, []).append(f"{happened.verb} {short(happened.subject)}")
    return {t: ", ".join(dict.fromkeys(words)) for t, words in found.items()}


def _mark_events(ax: Axes, run: Run) -> None:
    """A dashed line for every event, and above the curves what it is, in rows that do not overlap."""
    begin, span = float(run.t[0]), float(run.t[-1] - run.t[0]) or 1.0
    # Where the texts of each row end, as a fraction of the time.
    rows: list[float] = []
    written: dict[str, float] = {}
    placed: list[tuple[float, str, int, bool]] = []
    for t, text in sorted(event_texts(run).items()):
        ax.axvline(t, color="0.35", lw=0.8, ls=(0, (5, 3)), zorder=1.8)
        # Repeated marks, such as of a joint that bounces, share a text.
        if t - written.get(text, -math.inf) < 0.1 * span:
            continue
        written[text] = t
        at, wide = (t - begin) / span, 0.015 + 0.0135 * len(text)
        late = at + wide > 1.0 and at > 0.5
        wide += 0.027 * late
        start, stop = (at - wide, at) if late else (at, at + wide)
        row = next((k for k, taken in enumerate(rows) if taken <= start), len(rows))
        if row == _ROWS:
            continue
        rows[row : row + 1] = [stop]
        placed.append((t, text, row, late))
    low, high = ax.get_ylim()
    ax.set_ylim(low, high + 0.11 * len(rows) * (high - low))
    for t, text, row, late in placed:
        ax.annotate(
            # Else a text before its line seems to belong to the line before it.
            f"{text} →" if late else text,
            (t, 1),
            xycoords=ax.get_xaxis_transform(),
            xytext=(-3 if late else 3, -1 - 9 * row),
            textcoords="offset points",
            ha="right" if late else "left",
            va="top",
            fontsize=7,
            color="0.25",
            bbox={"color": "white", "alpha": 0.8, "pad": 0.3},
        )


def _with_margin(low: float, high: float) -> tuple[float, float]:
    margin = 0.05 * (high - low)
    return low - margin, high + margin


def _signed(x: float) -> str:
    return f"{x:+.3g}".replace("-", "−")
