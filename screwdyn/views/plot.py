"""Figures of runs: positions, swing, torques and energy over time.

Angles are drawn in degrees, lengths in centimetres.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from screwdyn.core.types import Array
from screwdyn.screws.rotations import rotation_vector_of
from screwdyn.views.figures import Axes, Figure, MaxNLocator, blank_figure, colormaps, palette, short

__all__ = ["Comparison", "Snapshot", "plot_comparison", "plot_run"]

# Label, colour and line style of the two controllers.
_WITH, _WITHOUT = ("with payload model", "#0072B2", "-"), ("without", "#D55E00", "--")
_CAPTION = (
    "with payload model: the controller's model includes the payload from the grasp on;  "
    "without: it keeps the model of the empty robot, with the same gains"
)
_ENERGY = {
    "kinetic": "#0072B2",
    "potential, change": "#009E73",
    "work of the motors": "#D55E00",
    "work of external wrenches": "#56B4E9",
    "brought or taken by payloads": "#CC79A7",
    "heat, joints": "#E69F00",
    "heat, impacts": "#B22222",
    "unaccounted for": "#000000",
}


# Degrees and centimetres.
_SCALES = {"turn": 180 / np.pi, "slide": 100.0}
_POSITIONS = {"turn": "angle (°)", "slide": "slide (cm)", "quaternion": "rotation vector (°)"}
_TORQUES = {"turn": "torque (N m)", "slide": "force (N)"}


class Joint(Protocol):
    """The attributes of :class:`screwdyn.Joint` that a run records and a figure draws."""

    @property
    def kind(self) -> str: ...
    @property
    def passive(self) -> bool: ...
    @property
    def nq(self) -> int: ...
    @property
    def nv(self) -> int: ...


class Run(Protocol):
    """The attributes of :class:`screwdyn.Run` that are drawn."""

    @property
    def t(self) -> Array: ...
    @property
    def coordinates(self) -> Sequence[str]: ...
    @property
    def positions(self) -> Sequence[str]: ...
    @property
    def joints(self) -> Mapping[str, Joint]: ...
    @property
    def energy(self) -> Any: ...
    @property
    def events(self) -> Sequence[Any]: ...
    def __getitem__(self, position: str, /) -> Array: ...
    def torque(self, coordinate: str, /) -> Array: ...


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


def plot_run(run: Run) -> Figure:
    """Draw positions, torques and energy over time; passive joints have a separate panel, and events are marked.

    The orientation of a spherical or free joint is drawn as its rotation vector: the axis times the angle, in degrees.

    Parameters
    ----------
    run : Run

    Returns
    -------
    matplotlib.figure.Figure
        1400 pixels wide; ``figure.savefig("run.png")`` writes it.
    """
    driven = [name for name in run.positions if not run.joints[name].passive]
    passive = [name for name in run.positions if run.joints[name].passive]
    motors = [name for name in run.coordinates if not run.joints[name].passive]
    panels = [
        (driven, _draw_positions, "position of the driven joints"),
        (passive, _draw_positions, "position of the passive joints"),
        (motors, _draw_torques, "torque of the motors"),
    ]
    drawn = [panel for panel in panels if panel[0]]
    figure = blank_figure(14.0, 2.7 * (len(drawn) + 1))
    *axes, last = figure.subplots(len(drawn) + 1, 1, sharex=True, squeeze=False)[:, 0]
    for ax, (names, draw, title) in zip(axes, drawn, strict=True):
        draw(ax, run, names)
        _finish(ax, title, run)
    _draw_energy(last, run)
    _finish(last, "energy ledger", run)
    last.set_xlabel("time (s)")
    return figure


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
    first, second, planned = comparison.with_model, comparison.without_model, comparison.planned
    names, swings = list(planned), [name for name in first.coordinates if first.joints[name].passive]
    figure = blank_figure(16.0, 11.5)
    figure.suptitle(f"{comparison.title}\n{_CAPTION}", fontsize=13)
    grid = figure.add_gridspec(3, 2, height_ratios=(1.25, 1, 1))
    _draw_scene(figure.add_subplot(grid[0, 0], projection="3d"), comparison)
    deviation = figure.add_subplot(grid[0, 1])
    axes = {where: figure.add_subplot(grid[where], sharex=deviation) for where in ((1, 0), (1, 1), (2, 0), (2, 1))}
    for run, distance, (label, colour, style) in (
        (first, comparison.deviation_with, _WITH),
        (second, comparison.deviation_without, _WITHOUT),
    ):
        deviation.plot(run.t, 1000 * distance, style, color=colour, lw=2, label=label)
        for name in swings:
            axes[1, 1].plot(run.t, _SCALES[_sort(run, name)] * run[name], style, color=colour, lw=1.6, label=label)
    deviation.set_ylabel("distance (mm)")
    _finish(deviation, "distance of the tool from its planned path", first)
    axes[1, 1].set_ylabel(_units(first, swings, _POSITIONS))
    _finish(axes[1, 1], "swing of the payload (no motor)", first)

    ax = axes[1, 0]
    _draw_positions(ax, first, names)
    for k, name in enumerate(names):
        scale = _SCALES[_sort(first, name)]
        ax.plot(second.t, scale * second[name], ":", color=palette(k, len(names)), lw=1.6)
        ax.plot(first.t, scale * planned[name], "--", color="black", lw=0.7)
    for style, label in (("k-", _WITH[0]), ("k:", _WITHOUT[0]), ("k--", "planned")):
        ax.plot([], [], style, lw=0.7 if label == "planned" else 1.6, label=label)
    _finish(ax, "joint positions", first)

    _draw_torques(axes[2, 0], first, names)
    _finish(axes[2, 0], "torques with payload model", first)
    _draw_energy(axes[2, 1], first)
    _finish(axes[2, 1], "energy with payload model", first)
    for where in ((2, 0), (2, 1)):
        axes[where].set_xlabel("time (s)")
    return figure


def _sort(run: Run, name: str) -> str:
    """The type of a position or a coordinate: "turn", "slide" or "quaternion"."""
    joint = run.joints[name]
    if joint.nv == 1:
        return "slide" if joint.kind == "prismatic" else "turn"
    label = name[name.rindex("[") + 1 : -1]
    if label[0] in "pv":
        return "slide"
    return "quaternion" if joint.nq > joint.nv and len(label) == 1 else "turn"


def _curves(run: Run, names: Sequence[str]) -> list[tuple[str, Array]]:
    """Labels and values of the curves of some positions; a quaternion is drawn as a rotation vector."""
    curves = []
    for name in names:
        sort = _sort(run, name)
        if sort != "quaternion":
            curves.append((name, _SCALES[sort] * run[name]))
        elif name.endswith("[x]"):
            joint = name.removesuffix("[x]")
            q = np.stack([run[f"{joint}[{component}]"] for component in "xyzw"], axis=-1)
            # q and -q are the same rotation: choose the signs for which the curves are continuous.
            turned = np.sum(q[1:] * q[:-1], axis=-1) < 0
            q[1:] *= np.where(np.cumsum(turned) % 2, -1.0, 1.0)[:, None]
            vector = np.degrees(rotation_vector_of(q))
            curves += [(f"{joint}[r{axis}]", vector[:, k]) for k, axis in enumerate("xyz")]
    return curves


def _units(run: Run, names: Sequence[str], units: Mapping[str, str]) -> str:
    sorts = {_sort(run, name) for name in names}
    return ", ".join(unit for sort, unit in units.items() if sort in sorts)


def _draw_positions(ax: Axes, run: Run, names: Sequence[str]) -> None:
    curves = _curves(run, names)
    for k, (label, x) in enumerate(curves):
        ax.plot(run.t, x, color=palette(k, len(curves)), lw=1.6, label=short(label))
    ax.set_ylabel(_units(run, names, _POSITIONS))


def _draw_torques(ax: Axes, run: Run, names: Sequence[str]) -> None:
    for k, name in enumerate(names):
        ax.plot(run.t, run.torque(name), color=palette(k, len(names)), lw=1.4, label=short(name))
    ax.set_ylabel(_units(run, names, _TORQUES))


def _draw_energy(ax: Axes, run: Run) -> None:
    E = run.energy
    residual = E.residual
    energies = (E.kinetic, E.potential - E.potential[0], E.work, E.external, E.exchanged)
    books = (*energies, -E.dissipated, -E.impact_loss, residual)
    # These values are too small to be read from the axis.
    sizes = {
        "heat, joints": f": {E.dissipated[-1]:.2g} J",
        "heat, impacts": f": {E.impact_loss[-1]:.2g} J",
        "unaccounted for": f": {np.abs(residual).max():.0e} J",
    }
    for (label, colour), x in zip(_ENERGY.items(), books, strict=True):
        if x.any() or x is residual:
            ax.plot(run.t, x, color=colour, lw=1.6, label=label + sizes.get(label, ""))
    ax.set_ylabel("energy (J)")


def _draw_scene(ax: Any, comparison: Comparison) -> None:
    """Draw the robot and its payload at some times of the run with the payload model."""
    snapshots = comparison.snapshots
    for k, shot in enumerate(snapshots):
        colour = colormaps["viridis"](0.85 * k / max(1, len(snapshots) - 1))
        ax.plot(*shot.arm.T, "o-", color=colour, lw=3, ms=4, label=shot.label)
        if shot.load is not None:
            ax.plot(*shot.load.T, "-", color=colour, lw=1.2)
            ax.plot(*shot.load[-1:].T, "s", color=colour, ms=11, mec="black")
    ax.plot(*comparison.trail.T, ":", color="0.35", lw=1.4, label="path of the tool")
    for line in ax.lines:
        line.set(clip_on=False, in_layout=False)
    points = np.vstack([*(s.arm for s in snapshots), *(s.load for s in snapshots if s.load is not None)])
    low, high = points.min(axis=0), points.max(axis=0)
    span = max(float((high - low).max()), 1e-3)
    size = 1.12 * np.maximum(high - low, 0.4 * span)
    for axis, middle, length in zip("xyz", (low + high) / 2, size, strict=True):
        getattr(ax, f"set_{axis}lim")(middle - 0.5 * length, middle + 0.5 * length)
        getattr(ax, f"set_{axis}label")(f"{axis} (m)", fontsize=8, labelpad=-4)
        getattr(ax, f"{axis}axis").set_major_locator(MaxNLocator(5))
    # The camera is on the side of the tool.
    out = comparison.trail.mean(axis=0) - snapshots[0].arm[0]
    ax.view_init(elev=18, azim=float(np.degrees(np.arctan2(out[1], out[0]))) - 20)
    ax.set_box_aspect(size, zoom=1.2)
    ax.tick_params(labelsize=7, pad=-2)
    ax.set_title("the robot and its payload", loc="left", fontsize=11, fontweight="bold")
    ax.legend(loc="upper left", bbox_to_anchor=(1.1, 1.0), frameon=False, fontsize=9)


def _finish(ax: Axes, title: str, run: Run) -> None:
    """Add title, grid, a legend beside the data, and a labelled line for every event."""
    ax.set_title(title, loc="left", fontsize=11, fontweight="bold")
    ax.grid(alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_xlim(run.t[0], run.t[-1])
    entries = len(ax.get_legend_handles_labels()[1])
    ax.legend(
        loc="upper left",
        bbox_to_anchor=(1.01, 1.03),
        frameon=False,
        fontsize=9 if entries <= 13 else 7,
        ncols=math.ceil(entries / 16),
        handlelength=1.6,
        columnspacing=1.0,
    )
    low, high = ax.get_ylim()
    ax.set_ylim(low, high + 0.16 * (high - low))
    marks: dict[float, list[str]] = {}
    for happened in run.events:
        words = marks.setdefault(happened.t, [])
        words.append(f"{happened.verb} {short(happened.link)}")
    span = run.t[-1] - run.t[0]
    written: dict[str, float] = {}
    for t, words in marks.items():
        text = ", ".join(words)
        late = t > run.t[0] + 0.8 * span
        ax.axvline(t, color="0.35", lw=1, ls=(0, (5, 3)))
        # Repeated marks, such as of a joint that bounces, share a text.
        if t - written.get(text, -math.inf) < 0.1 * span:
            continue
        written[text] = t
        ax.annotate(
            text,
            (t, 1),
            xycoords=ax.get_xaxis_transform(),
            xytext=(-4 if late else 4, -2),
            textcoords="offset points",
            ha="right" if late else "left",
            va="top",
            fontsize=9,
            color="0.25",
        )
