"""Figures of the parts of the equations of motion, and of the torques of simplified models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from screwdyn.core.types import Array
from screwdyn.views.figures import blank_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_parts", "plot_torques"]

_TRAN, _ROT, _BOTH = (
    {"color": "#0072B2", "ls": "-", "label": "translational"},
    {"color": "#D55E00", "ls": "-", "label": "rotational"},
    {"color": "black", "ls": "--", "label": "sum"},
)


def plot_parts(D_tran: Array, D_rot: Array, h_tran: Array, h_rot: Array) -> Figure:
    """Draw both parts and the sum of every D_ij, i ≤ j, and h_i over the set points of a trajectory.

    Parameters
    ----------
    D_tran, D_rot : (k, n, n) arrays
        kg m².
    h_tran, h_rot : (k, n) arrays
        N m.

    Returns
    -------
    matplotlib.figure.Figure
        D_ij in row i and column j, the h_i in a row below.
    """
    n = h_tran.shape[1]
    figure = blank_figure(2.4 * n + 1.0, 1.9 * (n + 1))
    grid = figure.add_gridspec(n + 1, n, height_ratios=[1.0] * n + [1.15])
    for i in range(n):
        for j in range(i, n):
            ax = figure.add_subplot(grid[i, j])
            _draw(ax, D_tran[:, i, j], D_rot[:, i, j], f"$D_{{{i + 1}{j + 1}}}$ (kg m²)")
        ax = figure.add_subplot(grid[n, i])
        _draw(ax, h_tran[:, i], h_rot[:, i], f"$h_{i + 1}$ (N m)")
        ax.set_xlabel("set point", fontsize=8)
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside upper left", ncols=3, frameon=False)
    return figure


def plot_torques(names: Sequence[str], full: Array, simplified: Array) -> Figure:
    """Draw the torques (k, n), N m, of a full and of a simplified model over the set points.

    Parameters
    ----------
    names : sequence of str
        Of the n joints.
    full, simplified : (k, n) arrays

    Returns
    -------
    matplotlib.figure.Figure
        For each joint the torques, and the simplified less the full one.
    """
    figure = blank_figure(11.0, 1.7 * len(names) + 0.6)
    points = np.arange(1, len(full) + 1)
    for i, (name, (left, right)) in enumerate(zip(names, figure.subplots(len(names), 2, squeeze=False), strict=True)):
        left.plot(points, full[:, i], color="black", lw=1.6, label="full")
        left.plot(points, simplified[:, i], "--", color="#D55E00", lw=1.6, label="simplified")
        right.plot(points, simplified[:, i] - full[:, i], color="#D55E00", lw=1.4)
        _finish(left, f"{name} (N m)")
        _finish(right, "error (N m)")
        if i == 0:
            left.legend(frameon=False, fontsize=8)
    for ax in figure.axes[-2:]:
        ax.set_xlabel("set point", fontsize=8)
    return figure


def _draw(ax: Any, tran: Array, rot: Array, title: str) -> None:
    points = np.arange(1, len(tran) + 1)
    for x, style in ((tran, _TRAN), (rot, _ROT), (tran + rot, _BOTH)):
        ax.plot(points, x, lw=1.4, **style)
    _finish(ax, title)


def _finish(ax: Any, title: str) -> None:
    ax.set_title(title, loc="left", fontsize=9)
    ax.grid(alpha=0.25)
    ax.tick_params(labelsize=7)
    ax.spines[["top", "right"]].set_visible(False)
