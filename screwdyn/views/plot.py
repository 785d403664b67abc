"""The figure of a run: positions, velocities, torques and energy over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from screwdyn.core.errors import ScrewdynError
from screwdyn.views.curves import QUANTITIES, Run, panels
from screwdyn.views.figures import Axes, Figure, blank_figure, given_axes
from screwdyn.views.panels import draw_energy, draw_panel, finish

__all__ = ["plot_run"]

# Inches of a figure and of a panel, which is lower where many would not fit on a page; letters have 7 points or more.
_WIDTH, _HIGHEST, _LOWEST, _PAGE, _DPI = 7.2, 1.75, 1.3, 9.0, 200


def plot_run(
    run: Run,
    what: str | Sequence[str] = ("positions", "torques", "energy"),
    coordinates: str | Sequence[str] | None = None,
    degrees: bool = True,
    ax: Axes | Sequence[Axes] | None = None,
) -> Figure:
    """Draw quantities over time, as :meth:`screwdyn.Run.plot` describes."""
    wanted = _wanted(what)
    found = panels(run, wanted, coordinates, degrees)
    titles = [panel.title for panel in found] + ["energy"] * ("energy" in wanted)
    if not titles:
        raise ScrewdynError(f"there is nothing to draw: none of the coordinates has {' or '.join(wanted)}")
    axes = _axes(titles, ax)
    for axis, panel in zip(axes, found, strict=False):
        draw_panel(axis, run, panel)
    if "energy" in wanted:
        draw_energy(axes[-1], run)
    for axis, title in zip(axes, titles, strict=True):
        finish(axis, title, run, beside=ax is None)
    axes[-1].set_xlabel("time (s)", fontsize=8)
    figure = axes[-1].get_figure(root=True)
    assert figure is not None
    return figure


def _wanted(what: str | Sequence[str]) -> list[str]:
    """The quantities to draw, in their order."""
    names: Any = [what] if isinstance(what, str) else what
    if not isinstance(names, Sequence) or not names or any(name not in QUANTITIES for name in names):
        raise ScrewdynError(f"what must be one or more of {', '.join(map(repr, QUANTITIES))}; got {what!r}")
    return [name for name in QUANTITIES if name in names]


def _axes(titles: Sequence[str], ax: Axes | Sequence[Axes] | None) -> list[Axes]:
    """The given axes, or those of a new figure: one for each title."""
    if ax is None:
        height = min(_HIGHEST, max(_LOWEST, _PAGE / len(titles)))
        figure = blank_figure(_WIDTH, height * len(titles) + 0.25, _DPI)
        return [*figure.subplots(len(titles), 1, sharex=True, squeeze=False)[:, 0]]
    return given_axes(ax, titles, "; choose panels with what= and coordinates=")
