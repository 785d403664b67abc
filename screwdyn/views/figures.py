"""What all figures share: the canvas, colours, short names, and files.

Matplotlib is imported here only; the other figures import it from this module. Each figure has its own canvas, so no
display is needed and the state of pyplot is not used.
"""

import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from screwdyn.core.errors import ScrewdynError

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
    "LineCollection",
    "MaxNLocator",
    "PolyCollection",
    "animation",
    "blank_figure",
    "colormaps",
    "given_axes",
    "palette",
    "plain",
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
    """The axes that a user gave, in an array of any shape, a sequence, or as a single one.

    Raises
    ------
    ScrewdynError
        Unless they are as many as the titles of what is drawn into them.
    """
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
    """The path of a figure, checked before the work for it starts.

    Raises
    ------
    ScrewdynError
        If the folder does not exist, or the extension of the file name is not that of an image format.
    """
    out = Path(path)
    kinds = FigureCanvasAgg.get_supported_filetypes()
    if out.suffix[1:].lower() not in kinds:
        raise ScrewdynError(f"cannot draw into {str(out)!r}: its name must end in .{', .'.join(sorted(kinds))}")
    if not out.parent.is_dir():
        raise ScrewdynError(f"cannot write {str(out)!r}: there is no folder {str(out.parent)!r}")
    return out


def save(figure: Figure, path: Path) -> None:
    """Write a figure with its own number of pixels.

    Raises
    ------
    ScrewdynError
        If the file cannot be written.
    """
    try:
        figure.savefig(path, dpi=figure.dpi)
    except OSError as error:
        raise ScrewdynError(f"cannot write {str(path)!r}: {error.strerror or error}") from None
