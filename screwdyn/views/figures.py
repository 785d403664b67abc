"""Figures: runs over time, alone and side by side, heat maps; and what other figures share.

Matplotlib is imported by :mod:`screwdyn.views` only. Each figure has its own canvas, so no display is needed and the
state of pyplot is not used.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from screwdyn.core import Array, Flags, ScrewdynError, file_errors
from screwdyn.screws.screw import rotation_vector_of
from screwdyn.views import checked_path

try:
    from matplotlib import colormaps
    from matplotlib.axes import Axes as Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Figure
except ImportError as missing:
    raise ScrewdynError(f"drawing needs matplotlib ({missing}): pip install 'screwdyn[plot]'") from missing

if TYPE_CHECKING:
    from screwdyn.simulation.recording import Recording as Run

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


def _given_axes(axes: Any, titles: Sequence[str], hint: str = "") -> list[Any]:
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


def short(name: str) -> str:
    """The name cut to 26 characters in its middle: names of joints often differ at their ends only.

    Matplotlib shows it as it is: a dollar sign in it begins no formula.
    """
    return (name if len(name) <= 26 else f"{name[:10]}…{name[-15:]}").replace("$", r"\$")


def writable(path: str | os.PathLike[str]) -> Path:
    """The path of a figure, checked before the work for it starts; ScrewdynError if it cannot be that of one."""
    return checked_path(path, tuple(f".{kind}" for kind in sorted(FigureCanvasAgg.get_supported_filetypes())))


def save(figure: Figure, path: Path) -> None:
    """Write a figure with its own number of pixels; ScrewdynError if the file cannot be written."""
    with file_errors(f"write {str(path)!r}"):
        figure.savefig(path, dpi=figure.dpi)


# Largest number of coordinates for which the cells have their numbers.
_NUMBERED = 8


@dataclass(frozen=True, eq=False)
class HeatMap:
    """A matrix or a vector over the coordinates, with a title that has the unit; cells that are not drawn are blank."""

    title: str
    values: Array  # (n, n) or (n,)
    cells: Flags  # of the same shape


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
        figure.suptitle(title, fontsize=8.5, fontweight="bold", parse_math=False)
        drawn = [*figure.subplots(1, len(maps), squeeze=False, width_ratios=widths)[0]]
    else:
        drawn = _given_axes(ax, [heat.title for heat in maps])
    for k, (axes, heat) in enumerate(zip(drawn, maps, strict=True)):
        _draw(axes, names, heat, named=k == 0 or ax is not None)
    whole: Figure = drawn[0].get_figure(root=True)
    return whole


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


# Largest number of lines of a panel that can be told apart.
_LINES = 8
# Variations below this fraction of the physical scale of a quantity are errors of the integration and rounding.
_NOISE = 1e-7
_QUANTITIES = ("positions", "velocities", "torques", "energy")

# Of quantity and sort of freedom: a name, a label of the axis, and the unit.
_NAMES = {
    ("positions", "turn"): ("angles", "angle", "rad"),
    ("positions", "slide"): ("displacements", "displacement", "m"),
    ("velocities", "turn"): ("angular velocities", "angular velocity", "rad/s"),
    ("velocities", "slide"): ("velocities", "velocity", "m/s"),
    ("torques", "turn"): ("torques", "torque", "N m"),
    ("torques", "slide"): ("forces", "force", "N"),
}


@dataclass(frozen=True, eq=False)
class _Curve:
    """The history of one quantity of one freedom."""

    name: str  # the coordinate
    label: str  # what is drawn: "hip[rx]" for the rotation vector of "hip[wx]"
    values: Array  # (samples,) in the unit of the panel; NaN while the tree does not have the freedom
    limits: tuple[float, ...] = ()  # finite ones of the values


@dataclass(frozen=True, eq=False)
class _Panel:
    """Curves of one unit, at most ``_LINES``."""

    title: str
    axis: str  # with its unit
    curves: Sequence[_Curve]
    others: Sequence[Array]  # the curves of the same kind that are drawn in grey
    factor: float  # unit of the panel as a multiple of the SI unit
    scale: float  # physical scale of the values, in the unit of the panel


def _panels(run: Run, what: Sequence[str], coordinates: str | Sequence[str] | None, degrees: bool) -> list[_Panel]:
    """The panels of some quantities but the energy.

    Freedoms are separated into those that turn and those that slide, and into driven and passive ones. Without a choice
    of coordinates, positions or joints, a panel has the ``_LINES`` curves that vary most; more chosen ones are
    distributed over several panels. UnknownNameError if the tree never had a coordinate.
    """
    chosen = None if coordinates is None else _freedoms(run, coordinates)
    groups: dict[tuple[bool, str], list[str]] = {}
    for name in run.coordinates:
        groups.setdefault((run.joints[name].passive, _sort_of(run, name)), []).append(name)
    found = []
    positions = _positions(run)
    # A radian or a metre, in the time of the run, or the energies.
    scales = {"positions": 1.0, "velocities": 1.0 / (float(run.t[-1] - run.t[0]) or 1.0), "torques": _energy_scale(run)}
    for quantity in what:
        for (passive, sort), names in sorted(groups.items(), key=lambda group: (group[0][0], group[0][1] != "turn")):
            if quantity == "energy" or (quantity == "torques" and passive):
                continue
            selection = _largest(run, positions, names) if chosen is None else [x for x in names if x in chosen]
            plural, singular, unit = _NAMES[quantity, sort]
            factor = 180 / np.pi if degrees and unit.startswith("rad") else 1.0
            unit = unit.replace("rad", "°") if degrees else unit
            curves = {name: _curve(run, positions, quantity, name, factor) for name in names}
            whose = "motors" if quantity == "torques" else "passive joints" if passive else "driven joints"
            for first in range(0, len(selection), _LINES):
                part = selection[first : first + _LINES]
                count = f", part {first // _LINES + 1}" if len(selection) > _LINES else ""
                title, axis = f"{plural} of {whose}{count}", f"{singular} ({unit})"
                others = [] if chosen is not None else [x.values for name, x in curves.items() if name not in part]
                shown = [curves[name] for name in part]
                found.append(_Panel(title, axis, shown, others, factor, factor * scales[quantity]))
    return found


def _energy_scale(run: Run) -> float:
    """The largest magnitude of all entries of the ledger, J."""
    return max((_largest_of(x) for x in vars(run.energy).values()), default=0.0)


def _sort_of(run: Run, name: str) -> str:
    """The type of a position or a coordinate: "turn", "slide" or "quaternion"."""
    joint = run.joints[name]
    if joint.nv == 1:
        return "slide" if joint.kind == "prismatic" else "turn"
    label = name[name.rindex("[") + 1 : -1]
    if label[0] in "pv":
        return "slide"
    return "quaternion" if joint.nq > joint.nv and len(label) == 1 else "turn"


def _largest_of(x: Array) -> float:
    """The largest magnitude, without NaN."""
    return float(np.fmax.reduce(np.abs(x), axis=None, initial=0.0))


def _curve(run: Run, positions: Mapping[str, tuple[str, Array]], quantity: str, name: str, factor: float) -> _Curve:
    """The curve of a quantity of a freedom."""
    joint = run.joints[name]
    if quantity == "positions":
        label, values = positions[name]
        limits = joint.limits
    else:
        label, values = name, run.velocity(name) if quantity == "velocities" else run.torque(name)
        most = joint.velocity if quantity == "velocities" else joint.effort
        limits = None if most is None else (-most, most)
    return _Curve(name, label, factor * values, tuple(factor * x for x in limits or () if np.isfinite(x)))


def _positions(run: Run) -> dict[str, tuple[str, Array]]:
    """For each freedom the label and the values of its position; a quaternion becomes a rotation vector."""
    found = {}
    for name in run.positions:
        freedoms = _freedoms_of(run, name)
        if len(freedoms) == 1:
            found[freedoms[0]] = (name, run[name])
        elif name.endswith("[x]"):
            joint = name.removesuffix("[x]")
            q = np.stack([run[f"{joint}[{component}]"] for component in "xyzw"], axis=-1)
            # q and -q are the same rotation: choose the signs for which the curves are continuous.
            turned = np.sum(q[1:] * q[:-1], axis=-1) < 0
            q[1:] *= np.where(np.cumsum(turned) % 2, -1.0, 1.0)[:, None]
            vector = np.asarray(rotation_vector_of(q))
            found |= {at: (f"{joint}[r{at[-2]}]", vector[:, k]) for k, at in enumerate(freedoms)}
    return found


def _freedoms_of(run: Run, position: str) -> list[str]:
    """The coordinates of a position, such as "pin[v]" of "pin[p]", and all three of a component of a quaternion."""
    if position in run.coordinates:
        return [position]
    stem, _, label = position[:-1].rpartition("[")
    if _sort_of(run, position) == "quaternion":
        return [f"{stem}[w{axis}]" for axis in "xyz"]
    return [f"{stem}[w{label[5:]}]" if label.startswith("angle") else f"{stem}[v{label.removeprefix('p')}]"]


def _freedoms(run: Run, names: str | Sequence[str]) -> set[str]:
    """The freedoms of coordinates, positions or joints."""
    if not isinstance(names, str) and not (isinstance(names, Sequence) and names):
        raise ScrewdynError(f"coordinates must be a name or a sequence of names; got {names!r}")
    found: set[str] = set()
    for name in [names] if isinstance(names, str) else names:
        entries = {x for x in run.coordinates if isinstance(name, str) and x.startswith(f"{name}[")}
        if name in run.positions and name not in run.coordinates:
            entries = {*_freedoms_of(run, name)}
        elif not entries:
            run.velocity(name)  # its error says what is wrong with the name
            entries = {name}
        found |= entries
    return found


def _largest(run: Run, positions: Mapping[str, tuple[str, Array]], names: Sequence[str]) -> list[str]:
    """The freedoms of a group with the largest motions and torques; the same ones in all panels."""
    motions = [(positions[name][1], run.torque(name)) for name in names]
    sizes = np.array([[_largest_of(x - np.fmin.reduce(x)), _largest_of(torque)] for x, torque in motions])
    rank = (sizes / np.maximum(sizes.max(axis=0), np.finfo(float).tiny)).max(axis=1)
    kept = {names[k] for k in np.argsort(-rank, kind="stable")[:_LINES]}
    return [name for name in names if name in kept]


# Entries of the ledger: label, colour and line style.
_KINETIC, _POTENTIAL = ("kinetic", "#0072B2", "-"), ("potential, change", "#009E73", "-")
_BOOKED = (
    ("work of the motors", "#D55E00", "-"),
    ("work of external wrenches", "#56B4E9", "-"),
    ("brought or taken by payloads", "#CC79A7", "-"),
    ("lost in joints", "#E69F00", "--"),
    ("lost in impacts", "#000000", ":"),
)
_THICK = 1.3
# Rows of texts of events; lines of further events have no text. Pixels between texts in a row.
_ROWS, _APART = 4, 15.0
# Most limits of joints in a panel that the legend names, and most joints of one limit.
_LIMITS, _OWNERS = 6, 3


def _draw_panel(ax: Axes, run: Run, panel: _Panel) -> None:
    """Draw the curves of a panel, and the limits of joints that are near them."""
    for k, curve in enumerate(panel.curves):
        ax.plot(run.t, curve.values, color=palette(k, len(panel.curves)), lw=_THICK, label=short(curve.label))
    others = "1 other" if len(panel.others) == 1 else f"{len(panel.others)} others"
    for k, values in enumerate(panel.others):
        ax.plot(run.t, values, color="0.82", lw=0.7, zorder=1.5, label="" if k else others)
    ax.set_ylabel(panel.axis)
    shown = [curve.values for curve in panel.curves] + [*panel.others]
    low, high = _range(shown, panel.scale)
    limits: dict[float, list[int]] = {}
    for k, curve in enumerate(panel.curves):
        for value in curve.limits:
            # Near in the panel and among its own limits: far from them, lines of weak joints would crowd a panel.
            half = (curve.limits[-1] - curve.limits[0]) / 2 or np.inf
            if np.fmin.reduce(np.abs(curve.values - value)) <= 0.2 * min(high - low, half):
                limits.setdefault(value, []).append(k)
    named = set()
    for value, owners in limits.items():
        colour = palette(owners[0], len(panel.curves)) if len(owners) == 1 else "0.4"
        names = ",\n".join(short(panel.curves[k].label) for k in owners)
        of = names if len(owners) <= _OWNERS else f"{len(owners)} joints"
        # A legend of many limits would hide the curves; each has the colour of its own.
        label = f"limit of {of}" if len(limits) <= _LIMITS else "limits, in the colours of their joints"
        ax.axhline(value, color=colour, lw=0.9, ls=(0, (1, 1.5)), zorder=1.6, label="" if label in named else label)
        named.add(label)
    _set_range(ax, min([low, *limits]), max([high, *limits]))


def _ledger(run: Run) -> list[tuple[tuple[str, str, str], Array]]:
    """What is drawn of the ledger, and how: entries that are not zero, and what the robot has."""
    E = run.energy
    booked = zip(_BOOKED, (E.work, E.external, E.exchanged, -E.dissipated, -E.impact_loss), strict=True)
    had = [(_KINETIC, E.kinetic), (_POTENTIAL, E.potential - E.potential[0])]
    return had + [(style, x) for style, x in booked if np.abs(x).max() > 1e-12 * _energy_scale(run)]


def _draw_energy(ax: Axes, run: Run) -> None:
    """Draw the ledger: what the robot has, what it gains with a plus, what it loses with a minus."""
    E, scale, drawn = run.energy, _energy_scale(run), _ledger(run)
    for (label, colour, line), x in drawn:
        signed = f"{x[-1]:+.3g}".replace("-", "−")
        text = label if label in (_KINETIC[0], _POTENTIAL[0]) else f"{label}, {signed} J"
        ax.plot(run.t, x, line, color=colour, lw=_THICK, label=text)
    worst = float(np.abs(E.residual).max())
    # Wide and below the other curves, which it would hide.
    label = f"unaccounted for, up to {worst:{'.0e' if worst else '.0f'}} J"
    ax.plot(run.t, E.residual, color="0.8", lw=3.5, zorder=1.2, label=label)
    ax.set_ylabel("energy (J)")
    _set_range(ax, *_range([x for _, x in drawn] + [E.residual], scale))


def _range(values: Sequence[Array], scale: float) -> tuple[float, float]:
    """The range of values, but not that of noise."""
    low = float(min(np.fmin.reduce(x) for x in values))
    high = float(max(np.fmax.reduce(x) for x in values))
    if high - low <= _NOISE * scale:
        middle, half = 0.5 * (low + high), 0.01 * scale or 1.0
        # Otherwise the axis would count from an offset such as 1e-13.
        middle = 0.0 if abs(middle) <= _NOISE * scale else middle
        low, high = middle - half, middle + half
    return low, high


def _set_range(ax: Axes, low: float, high: float) -> None:
    ax.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))


def _finish(ax: Axes, title: str, run: Run, beside: bool = True) -> None:
    """Add title, grid, and a legend, beside the data or among them."""
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


def _mark_events(panels: Sequence[Axes], run: Run) -> None:
    """A dashed line for every event, and above the curves what it is, in rows that do not overlap."""
    found: dict[float, list[str]] = {}
    for happened in run.events:
        found.setdefault(happened.t, []).append(f"{happened.verb} {short(happened.subject)}")
    if found:
        figure: Any = panels[0].get_figure(root=True)
        figure.draw_without_rendering()  # places the panels, by which texts are measured
    for ax in panels:
        inside, rows = ax.get_window_extent(), list[float]()  # rows: where the texts of each end, in pixels
        written: dict[str, float] = {}
        for t, words in sorted(found.items()):
            text = ", ".join(dict.fromkeys(words))
            ax.axvline(t, color="0.35", lw=0.8, ls=(0, (5, 3)), zorder=1.8)
            at = float(ax.transData.transform((t, 0))[0])
            # Repeated marks, such as of a joint that bounces, share a text.
            if at - written.get(text, -math.inf) < 0.1 * inside.width:
                continue
            written[text] = at
            style: dict[str, Any] = {"fontsize": 7, "color": "0.25", "bbox": {"color": "white", "pad": 0.3}}
            place: dict[str, Any] = {"xycoords": ax.get_xaxis_transform(), "textcoords": "offset points", "va": "top"}
            label = ax.annotate(text, (t, 1), xytext=(3, -1), **place, **style)
            label.set_in_layout(False)
            box = label.get_window_extent()
            if box.x1 > inside.x1 and at > 0.5 * (inside.x0 + inside.x1):
                # Without an arrow, a text before its line seems to belong to the line before it.
                label.set(text=f"{text} →", ha="right", position=(-3, -1))
                box = label.get_window_extent()
            row = next((k for k, taken in enumerate(rows) if taken + _APART < box.x0), len(rows))
            if row == _ROWS:
                label.remove()
                continue
            rows[row : row + 1] = [box.x1]
            label.set_position((label.xyann[0], -1 - 8.5 * row))
        low, high = ax.get_ylim()
        taken = 0.085 * len(rows)
        ax.set_ylim(low, high + taken / (1 - taken) * (high - low))


# Inches of a figure and of a panel, which is lower where many would not fit on a page; letters have 7 points or more.
_WIDTH, _HIGHEST, _LOWEST, _PAGE, _DPI = 7.2, 1.75, 1.3, 9.0, 200


def plot_run(
    run: Run,
    what: str | Sequence[str],
    coordinates: str | Sequence[str] | None,
    degrees: bool,
    ax: Axes | Sequence[Axes] | None,
) -> Figure:
    """Draw quantities over time, as :meth:`screwdyn.Run.plot` describes."""
    names: Any = [what] if isinstance(what, str) else what
    if not isinstance(names, Sequence) or not names or any(name not in _QUANTITIES for name in names):
        raise ScrewdynError(f"what must be one or more of {', '.join(map(repr, _QUANTITIES))}; got {what!r}")
    wanted = [name for name in _QUANTITIES if name in names]
    found = _panels(run, wanted, coordinates, degrees)
    if ax is None and coordinates is None:
        # Panels of noise alone are left out, unless all are.
        moved = [panel for panel in found if any(_largest_of(x.values) > _NOISE * panel.scale for x in panel.curves)]
        found = moved or ([] if "energy" in wanted else found)
        if found and all(_largest_of(x) <= _NOISE * _energy_scale(run) for _, x in _ledger(run)):
            wanted = [name for name in wanted if name != "energy"]
    titles = [panel.title for panel in found] + ["energy"] * ("energy" in wanted)
    if not titles:
        raise ScrewdynError(f"there is nothing to draw: none of the coordinates has {' or '.join(wanted)}")
    if ax is None:
        height = min(_HIGHEST, max(_LOWEST, _PAGE / len(titles)))
        figure = blank_figure(_WIDTH, height * len(titles) + 0.25, _DPI)
        axes = [*figure.subplots(len(titles), 1, sharex=True, squeeze=False)[:, 0]]
    else:
        axes = _given_axes(ax, titles, "; choose panels with what= and coordinates=")
    for axis, panel in zip(axes, found, strict=False):
        _draw_panel(axis, run, panel)
    if "energy" in wanted:
        _draw_energy(axes[-1], run)
    for axis, title in zip(axes, titles, strict=True):
        _finish(axis, title, run, beside=ax is None)
    axes[-1].set_xlabel("time (s)", fontsize=8)
    _mark_events(axes, run)
    whole: Figure = axes[-1].get_figure(root=True)
    return whole


# Label, colour and line style of the two controllers.
_CONTROLLERS = (
    ("controller with payload model", "#0072B2", "-"),
    ("without it, with the same gains", "#D55E00", "--"),
)


def plot_comparison(
    title: str, pictures: Mapping[str, Any], runs: tuple[Run, Run], deviations: tuple[Array, Array]
) -> Figure:
    """Named images of moments of a run, and how far two runs of the same task are off their path; 1600 pixels wide.

    The first run is of a controller that has the payload model. Deviations are distances of the tool from its planned
    positions over both runs, m.
    """
    figure = blank_figure(5.6, 3.5, 285)  # inches so few that a phone shows the letters legibly
    figure.suptitle(title, fontsize=8.5, wrap=True)
    grid = figure.add_gridspec(2, len(pictures), height_ratios=(1.75, 1))
    for k, (label, image) in enumerate(pictures.items()):
        picture = figure.add_subplot(grid[0, k])
        picture.imshow(image)
        picture.set_axis_off()
        picture.set_title(label, fontsize=8.5)
    ax = figure.add_subplot(grid[1, :])
    for run, distance, (label, colour, style) in zip(runs, deviations, _CONTROLLERS, strict=True):
        ax.plot(run.t, 1000 * distance, style, color=colour, lw=1.5, label=label)
    ax.set_ylabel("distance (mm)")
    ax.set_xlabel("time (s)")
    _finish(ax, "distance of the tool from its planned path", runs[0], beside=False)
    _mark_events([ax], runs[0])
    return figure
