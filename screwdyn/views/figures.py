"""What all figures share: the canvas, colours, short names, and files; and heat maps.

Matplotlib is imported here only; the other figures import it from this module. Each figure has its own canvas, so no
display is needed and the state of pyplot is not used.
"""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from screwdyn.core.errors import ScrewdynError
from screwdyn.core.types import Array
from screwdyn.views import checked_path

try:
    from matplotlib import animation, colormaps
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.collections import LineCollection, PolyCollection
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator
except ImportError as missing:
    raise ScrewdynError(f"drawing needs matplotlib ({missing}): pip install 'screwdyn[plot]'") from missing

__all__ = [
    "Axes",
    "Figure",
    "HeatMap",
    "LineCollection",
    "MaxNLocator",
    "PolyCollection",
    "animation",
    "blank_figure",
    "colormaps",
    "given_axes",
    "palette",
    "plain",
    "plot_heat_maps",
    "save",
    "short",
    "writable",
]

# The palette of Okabe and Ito, which colour-blind readers can distinguish; wine instead of yellow, which prints badly.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#882255", "#000000")


class _Picture(Figure):
    """A figure that a notebook shows as an image; one that pyplot does not know would be shown as text."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """The image, and its size on the screen, at 100 pixels per inch."""
        image = io.BytesIO()
        self.savefig(image, format="png", dpi=self.dpi)
        width, height = self.get_size_inches()
        return image.getvalue(), {"width": round(100 * width), "height": round(100 * height)}


def blank_figure(width: float, height: float, dpi: float = 100) -> Figure:
    """An empty figure on its own canvas; width and height in inches."""
    figure = _Picture(figsize=(width, height), dpi=dpi, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def given_axes(axes: Any, titles: Sequence[str], hint: str = "") -> list[Axes]:
    """The axes that a user gave, in any array or sequence; ScrewdynError unless they are as many as the titles."""
    found = [axes] if isinstance(axes, Axes) else np.ravel(np.array(axes, dtype=object)).tolist()
    if len(found) != len(titles) or not all(isinstance(ax, Axes) for ax in found):
        got = len(found) if all(isinstance(ax, Axes) for ax in found) else repr(axes)
        raise ScrewdynError(
            f"ax must be one Axes for each panel, here {len(titles)} ({'; '.join(titles)}); got {got}{hint}"
        )
    return found


def palette(k: int, count: int) -> Any:
    """The colour of the k-th of some curves."""
    return _COLOURS[k] if count <= len(_COLOURS) else colormaps["turbo"]((k + 0.5) / count)


def plain(text: str) -> str:
    """Text that Matplotlib shows as it is: a dollar sign in it begins no formula."""
    return text.replace("$", r"\$")


def short(name: str) -> str:
    """The name as plain text, cut to 26 characters in its middle: names of joints often differ at their ends only."""
    return plain(name if len(name) <= 26 else f"{name[:10]}…{name[-15:]}")


def writable(path: str | os.PathLike[str]) -> Path:
    """The path of a figure, checked before the work for it starts; ScrewdynError if it cannot be that of one."""
    return checked_path(path, tuple(f".{kind}" for kind in sorted(FigureCanvasAgg.get_supported_filetypes())))


def save(figure: Figure, path: Path) -> None:
    """Write a figure with its own number of pixels; ScrewdynError if the file cannot be written."""
    try:
        figure.savefig(path, dpi=figure.dpi)
    except OSError as error:
        raise ScrewdynError(f"cannot write {str(path)!r}: {error.strerror or error}") from None


# Largest number of coordinates for which the cells have their numbers.
_NUMBERED = 8


@dataclass(frozen=True, eq=False)
class HeatMap:
    """A matrix or a vector over the coordinates, with a title that has the unit; cells that are not drawn are blank."""

    title: str
    values: Array  # (n, n) or (n,)
    cells: npt.NDArray[np.bool_]  # of the same shape


def plot_heat_maps(
    title: str, names: Sequence[str], maps: Sequence[HeatMap], ax: Sequence[Axes] | None = None
) -> Figure:
    """Draw heat maps over n > 0 coordinates side by side, with a colour scale each that is symmetric about 0.

    The axes are by default those of a new figure; ScrewdynError if they are not one for each map.
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
            color = "white" if dark else "black"
            ax.text(j, i, f"{shown[i, j]:.2g}", ha="center", va="center", fontsize=5, color=color)
    if largest:
        aspect = max(12, 5 * values.shape[1])
        bar = ax.get_figure().colorbar(colours, ax=ax, location="top", aspect=aspect, pad=0.02)
        bar.ax.tick_params(labelsize=5.5, length=2, pad=1)
        bar.set_ticks([-largest, 0, largest], labels=[f"{-largest:.2g}", "0", f"{largest:.2g}"])
        bar.outline.set_visible(False)
        bar.set_label(heat.title, fontsize=8)
    else:
        ax.set_title(f"{heat.title}: 0", fontsize=8)
