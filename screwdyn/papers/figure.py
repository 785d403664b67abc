"""The figure of a comparison of arms: cost, workspace, manipulability, conditioning and torques."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from screwdyn.papers.workspace import UNITS
from screwdyn.views.figures import Axes, Figure, blank_figure, palette, short

if TYPE_CHECKING:
    from screwdyn.papers.selection import Criteria


def plot_selection(arms: Mapping[str, Criteria]) -> Figure:
    """Draw the criteria as bars; for each arm, manipulability over a section of the workspace, and torques."""
    figure = blank_figure(max(16.0, 5.5 * len(arms)), 11.5)
    grid = figure.add_gridspec(3, 1, height_ratios=(1, 1.35, 1))
    bars, fields, torques = (figure.add_subfigure(grid[k]) for k in range(3))
    wide, *narrow = bars.subplots(1, 5, width_ratios=(3, 1, 1, 1, 1))
    _draw_operations(wide, arms)
    units = " or ".join(sorted({UNITS[c.dimension] for c in arms.values() if c.dimension})) or "no size"
    _draw_bars(narrow[0], "time, inverse dynamics", {name: (c.time, 0) for name, c in arms.items()})
    _draw_bars(narrow[1], f"workspace ({units})", {name: c.workspace for name, c in arms.items()})
    _draw_bars(narrow[2], "largest manipulability", {name: (c.manipulability, 0) for name, c in arms.items()})
    _draw_bars(narrow[3], "median coupling of M", {name: (c.coupling.median, 0) for name, c in arms.items()})
    for part, draw in ((fields, _draw_section), (torques, _draw_torques)):
        for ax, (name, c) in zip(part.subplots(1, len(arms), squeeze=False)[0], arms.items(), strict=True):
            draw(part, ax, name, c)
    return figure


def _draw_operations(ax: Axes, arms: Mapping[str, Criteria]) -> None:
    labels = [*next(iter(arms.values())).operations]
    width = 0.8 / len(arms)
    for k, (name, c) in enumerate(arms.items()):
        heights = [sum(found.values()) for found in c.operations.values()]
        at = np.arange(len(labels)) + (k + 0.5) * width - 0.4
        drawn = ax.bar(at, heights, width, color=palette(k, len(arms)), label=name)
        ax.bar_label(drawn, fontsize=9)
    ax.set_xticks(range(len(labels)), labels)
    ax.legend(frameon=False)
    _title(ax, "operations, with sines and cosines")


def _draw_bars(ax: Axes, title: str, bars: Mapping[str, tuple[float, float]]) -> None:
    """A bar for the value and error of each arm."""
    for k, (name, (value, error)) in enumerate(bars.items()):
        missing = math.isnan(value)
        drawn = ax.bar(name, 0) if missing else ax.bar(name, value, yerr=error or None, color=palette(k, len(bars)))
        ax.bar_label(drawn, ["n/a" if missing else f"{value:.3g}"], fontsize=9)
    _title(ax, title)


def _draw_section(figure: Any, ax: Axes, name: str, c: Criteria) -> None:
    section = c.section
    if section is None:
        ax.set_axis_off()
        ax.text(0.5, 0.5, "no length, area or volume", ha="center", transform=ax.transAxes)
        _title(ax, f"{short(name)}: workspace")
        return
    if len(section.axes) == 1:
        ax.plot(section.axes[0], section.w, color=palette(0, 1))
        ax.set_ylabel("manipulability")
    else:
        x, y = section.axes
        drawn = ax.pcolormesh(x, y, section.w.T, vmin=0, vmax=c.manipulability, cmap="viridis", shading="nearest")
        ax.set_aspect("equal")
        ax.set_ylabel(f"{section.labels[1]} (m)")
        figure.colorbar(drawn, ax=ax, label="manipulability")
    ax.set_xlabel(f"{section.labels[0]} (m)")
    _title(ax, f"{short(name)}: " + ("section of the workspace" if c.dimension == 3 else "workspace"))


def _draw_torques(_: Any, ax: Axes, name: str, c: Criteria) -> None:
    """Torques on the left axis, forces on the right one."""
    sides = {"N m": ax, "N": ax.twinx() if {*c.units} == {"N m", "N"} else ax}
    lines: list[Any] = []
    for k, (coordinate, unit, tau) in enumerate(zip(c.coordinates, c.units, c.torque.T, strict=True)):
        style = "--" if unit == "N" else "-"
        label = f"{short(coordinate)} ({unit})"
        lines += sides[unit].plot(c.trajectory.t, tau, style, color=palette(k, len(c.units)), lw=1.6, label=label)
        sides[unit].set_ylabel({"N m": "torque (N m)", "N": "force (N)"}[unit])
    ax.set_xlabel("time (s)")
    ax.legend(handles=lines, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3, frameon=False, fontsize=9)
    ax.grid(alpha=0.25)
    _title(ax, f"{short(name)}: torques and forces along the trajectory")


def _title(ax: Axes, text: str) -> None:
    ax.set_title(text, loc="left", fontsize=11, fontweight="bold")
    ax.spines[["top", "right"]].set_visible(False)
