"""Heat maps of matrices and vectors over named coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from screwdyn.core.types import Array
from screwdyn.views.figures import Axes, Figure, blank_figure, given_axes, plain, short

__all__ = ["HeatMap", "plot_heat_maps"]

# Largest number of coordinates for which the cells have their numbers.
_NUMBERED = 8


@dataclass(frozen=True, eq=False)
class HeatMap:
    """A matrix or a vector over the coordinates.

    Attributes
    ----------
    title : str
        With the unit.
    values : (n, n) or (n,) array
    cells : array of bool of the same shape
        Cells that are drawn; the others are blank.
    """

    title: str
    values: Array
    cells: npt.NDArray[np.bool_]


def plot_heat_maps(
    title: str, names: Sequence[str], maps: Sequence[HeatMap], ax: Sequence[Axes] | None = None
) -> Figure:
    """Draw heat maps side by side, with a colour scale each that is symmetric about 0.

    Parameters
    ----------
    title : str
    names : sequence of str
        Of the n > 0 coordinates.
    maps : sequence of HeatMap
    ax : sequence of matplotlib.axes.Axes, optional
        One for each map; by default those of a new figure.

    Raises
    ------
    ScrewdynError
        If there is another number of axes.
    """
    n = len(names)
    if ax is None:
        side = float(np.clip(0.34 * n, 1.2, 2.9))
        widths = [n if heat.values.ndim == 2 else max(1.0, 0.12 * n) for heat in maps]
        figure = blank_figure(2.1 + side * sum(widths) / n + 0.5, side + 1.7, 200)
        figure.suptitle(plain(title), fontsize=8.5, fontweight="bold")
        drawn = [*figure.subplots(1, len(maps), squeeze=False, width_ratios=widths)[0]]
    else:
        drawn = given_axes(ax, [heat.title for heat in maps])
    for k, (axes, heat) in enumerate(zip(drawn, maps, strict=True)):
        _draw(axes, names, heat, named=k == 0 or ax is not None)
    found: Figure | None = drawn[0].get_figure(root=True)
    assert found is not None
    return found


def _draw(ax: Any, names: Sequence[str], heat: HeatMap, named: bool) -> None:
    """Draw one map; the names of the rows are those of the columns."""
    n = len(names)
    values, cells = (x.reshape(n, -1) for x in (heat.values, heat.cells))
    largest = float(np.abs(values).max(initial=0.0))
    # Zeros are lighter than any other cell; blank cells are white.
    ground = np.where(cells, 0.08, np.nan)
    edges = np.arange(values.shape[1] + 1) - 0.5, np.arange(n + 1) - 0.5
    ax.pcolormesh(*edges, ground, cmap="Greys", vmin=0.0, vmax=1.0)
    shown = np.where(cells & (values != 0), values, np.nan)
    colours = ax.pcolormesh(*edges, shown, cmap="RdBu_r", vmin=-(largest or 1.0), vmax=largest or 1.0)
    ax.set_xlim(-0.5, values.shape[1] - 0.5)
    ax.set_ylim(n - 0.5, -0.5)
    size = float(np.clip(90 / n, 3.0, 7.0))
    labels = [short(name) for name in names]
    ax.set_yticks(range(n), labels if named else [""] * n, fontsize=size)
    across = labels if heat.values.ndim == 2 else []
    ax.set_xticks(range(len(across)), across, fontsize=size, rotation=90)
    ax.set_xticks(edges[0], minor=True)
    ax.set_yticks(edges[1], minor=True)
    ax.grid(which="minor", color="0.9", lw=0.3)
    ax.tick_params(which="both", length=0)
    if n <= _NUMBERED:
        for i, j in np.argwhere(np.isfinite(shown)):
            dark = abs(shown[i, j]) > 0.6 * largest
            ax.text(
                j, i, f"{shown[i, j]:.2g}", ha="center", va="center", fontsize=5, color="white" if dark else "black"
            )
    if largest:
        bar = ax.get_figure().colorbar(
            colours, ax=ax, orientation="horizontal", location="top", aspect=max(12, 5 * values.shape[1]), pad=0.02
        )
        bar.ax.tick_params(labelsize=5.5, length=2, pad=1)
        bar.set_ticks([-largest, 0, largest], labels=[f"{-largest:.2g}", "0", f"{largest:.2g}"])
        bar.outline.set_visible(False)
        bar.set_label(heat.title, fontsize=8)
    else:
        ax.set_title(f"{heat.title}: 0", fontsize=8)
