"""The figure of the demonstration: runs with and without the payload model side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from screwdyn.core.types import Array
from screwdyn.views.curves import Panel, Run, panels
from screwdyn.views.figures import Axes, Figure, MaxNLocator, blank_figure, colormaps, palette
from screwdyn.views.panels import draw_energy, draw_panel, finish

__all__ = ["Comparison", "Snapshot", "plot_comparison"]

# Label, colour and line style of the two controllers.
_WITH, _WITHOUT = ("with payload model", "#0072B2", "-"), ("without", "#D55E00", "--")
_CAPTION = (
    "with payload model: the controller's model includes the payload from the grasp on;  "
    "without: it keeps the model of the empty robot, with the same gains"
)


@dataclass(frozen=True)
class Snapshot:
    """The robot at one time: points that are joined by lines.

    Attributes
    ----------
    label : str
    arm : (k, 3) array
        From the base to the tool, in the base frame, m.
    load : (j, 3) array or None
        From the tool to the payload.
    """

    label: str
    arm: Array
    load: Array | None = None


@dataclass(frozen=True)
class Comparison:
    """Runs of the same task with a controller that has the payload model and with one that does not.

    Attributes
    ----------
    title : str
    with_model, without_model : Run
    planned : mapping from coordinate to (samples,) array
        The planned positions at the times of ``with_model``, rad or m; only these coordinates are drawn.
    deviation_with, deviation_without : (samples,) arrays
        Distance of the tool from its planned position over the two runs, m.
    snapshots : sequence of Snapshot
    trail : (k, 3) array
        Positions of the tool over the run with the payload model, m.
    """

    title: str
    with_model: Run
    without_model: Run
    planned: Mapping[str, Array]
    deviation_with: Array
    deviation_without: Array
    snapshots: Sequence[Snapshot]
    trail: Array


def plot_comparison(comparison: Comparison) -> Figure:
    """Draw the runs with and without the payload model in one figure.

    Parameters
    ----------
    comparison : Comparison

    Returns
    -------
    matplotlib.figure.Figure
        1600 pixels wide.
    """
    first, second = comparison.with_model, comparison.without_model
    figure = blank_figure(11.4, 8.6, 140)
    figure.suptitle(comparison.title, fontsize=11)
    figure.supxlabel(_CAPTION, fontsize=8)
    grid = figure.add_gridspec(3, 2, height_ratios=(1.25, 1, 1))
    _draw_scene(figure.add_subplot(grid[0, 0], projection="3d"), comparison)
    deviation = figure.add_subplot(grid[0, 1])
    for run, distance, (label, colour, style) in (
        (first, comparison.deviation_with, _WITH),
        (second, comparison.deviation_without, _WITHOUT),
    ):
        deviation.plot(run.t, 1000 * distance, style, color=colour, lw=1.5, label=label)
    deviation.set_ylabel("distance (mm)")
    finish(deviation, "distance of the tool from its planned path", first)

    def draw(
        row: int, column: int, quantity: str, names: Sequence[str], title: str, add: Callable[[Axes, Panel], None]
    ) -> None:
        found = panels(first, [quantity], names, True)
        # A cell that is divided is not aligned with the others.
        cell = grid[row, column]
        parts = [cell] if len(found) == 1 else cell.subgridspec(len(found), 1)
        for k, panel in enumerate(found):
            ax = figure.add_subplot(parts[k], sharex=deviation)
            draw_panel(ax, first, panel)
            add(ax, panel)
            finish(ax, title, first)

    swings = [name for name in first.coordinates if first.joints[name].passive]
    draw(1, 0, "positions", [*comparison.planned], "joint positions", partial(_add_plan, comparison))
    draw(1, 1, "positions", swings, "swing of the payload (no motor)", partial(_add_swing, second))
    draw(2, 0, "torques", [*comparison.planned], "torques with payload model", lambda ax, panel: None)
    energy = figure.add_subplot(grid[2, 1], sharex=deviation)
    draw_energy(energy, first)
    finish(energy, "energy with payload model", first)
    for ax in (figure.axes[-2], energy):
        ax.set_xlabel("time (s)", fontsize=8)
    return figure


def _add_plan(comparison: Comparison, ax: Axes, panel: Panel) -> None:
    """Add the positions without the payload model, and the planned ones."""
    first, second = comparison.with_model, comparison.without_model
    for k, curve in enumerate(panel.curves):
        ax.plot(second.t, panel.factor * second[curve.name], ":", color=palette(k, len(panel.curves)), lw=1.3)
        ax.plot(first.t, panel.factor * comparison.planned[curve.name], "--", color="black", lw=0.6)
    for style, label in (("k-", _WITH[0]), ("k:", _WITHOUT[0]), ("k--", "planned")):
        ax.plot([], [], style, lw=0.6 if label == "planned" else 1.3, label=label)


def _add_swing(second: Run, ax: Axes, panel: Panel) -> None:
    """Add the passive joints without the payload model, and name the controllers instead of the joints."""
    label, colour, style = _WITHOUT
    for line in ax.lines[: len(panel.curves)]:
        line.set(color=_WITH[1], label=_WITH[0])
    for curve in panel.curves:
        ax.plot(second.t, panel.factor * second[curve.name], style, color=colour, lw=1.3, label=label)


def _draw_scene(ax: Any, comparison: Comparison) -> None:
    """Draw the robot and its payload at some times of the run with the payload model."""
    snapshots = comparison.snapshots
    for k, shot in enumerate(snapshots):
        colour = colormaps["viridis"](0.85 * k / max(1, len(snapshots) - 1))
        ax.plot(*shot.arm.T, "o-", color=colour, lw=2.2, ms=3, label=shot.label)
        if shot.load is not None:
            ax.plot(*shot.load.T, "-", color=colour, lw=1.2)
            ax.plot(*shot.load[-1:].T, "s", color=colour, ms=8, mec="black")
    ax.plot(*comparison.trail.T, ":", color="0.35", lw=1.4, label="path of the tool")
    for line in ax.lines:
        line.set(clip_on=False, in_layout=False)
    points = np.vstack([*(s.arm for s in snapshots), *(s.load for s in snapshots if s.load is not None)])
    low, high = points.min(axis=0), points.max(axis=0)
    span = max(float((high - low).max()), 1e-3)
    size = 1.12 * np.maximum(high - low, 0.4 * span)
    for axis, middle, length in zip("xyz", (low + high) / 2, size, strict=True):
        getattr(ax, f"set_{axis}lim")(middle - 0.5 * length, middle + 0.5 * length)
        getattr(ax, f"set_{axis}label")(f"{axis} (m)", fontsize=7, labelpad=-6)
        getattr(ax, f"{axis}axis").set_major_locator(MaxNLocator(3))
    # The camera is on the side of the tool.
    out = comparison.trail.mean(axis=0) - snapshots[0].arm[0]
    ax.view_init(elev=18, azim=float(np.degrees(np.arctan2(out[1], out[0]))) - 20)
    ax.set_box_aspect(size, zoom=1.2)
    ax.tick_params(labelsize=6, pad=-1)
    ax.set_title("the robot and its payload", loc="left", fontsize=8.5, fontweight="bold")
    ax.legend(loc="upper left", bbox_to_anchor=(1.1, 1.0), frameon=False, fontsize=7)
