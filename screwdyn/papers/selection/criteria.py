"""The criteria by which an arm is judged, and how they are computed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from screwdyn.core.types import Array
from screwdyn.papers.selection.arm import Arm
from screwdyn.papers.selection.costs import operations
from screwdyn.papers.selection.trajectory import Trajectory
from screwdyn.papers.selection.workspace import Estimate, NoSizeError, Reach

__all__ = ["Criteria", "Section", "Spread", "criteria"]


class Spread(NamedTuple):
    """The median and the largest of the values of a quantity over the workspace."""

    median: float
    largest: float


class Section(NamedTuple):
    """Manipulability over a planar workspace, or over the section x-z through the middle of a spatial one.

    Attributes
    ----------
    labels : tuple of str
        Names of the axes; one if the tip moves on a line.
    axes : tuple of (m,) arrays
        Coordinates along the axes, m.
    w : (m,) or (m, m) array
        Manipulability at one configuration that reaches the position; NaN out of reach.
    """

    labels: tuple[str, ...]
    axes: tuple[Array, ...]
    w: Array


class Criteria(NamedTuple):
    """What :func:`compare` finds for one arm.

    If the workspace has no size, its dimension is 0, there is no section, and what refers to the workspace is NaN.

    Attributes
    ----------
    tip : str
        The link whose origin works.
    dimension : int
        Of the workspace: 1, 2 or 3, or 0 without size.
    operations : mapping
        Operations by quantity ("M", "C", "inverse dynamics", "M, DeNOC", "C, DeNOC") and operation, as for
        :meth:`screwdyn.KinematicTree.operation_count`.
    time : float
        Time of inverse dynamics along the trajectory, for equally many states, relative to the first arm; of compiled
        code, or without the extra ``compile`` of the default kernel.
    workspace : Estimate
        Length, area or volume of the positions of the tip, m, m² or m³, with its standard error.
    manipulability : float
        The greatest w = √det(J Jᵀ) (Bhangale Eq. 21) of the velocity of the tip; J has the rows of the axes of the
        workspace.
    mean_manipulability : float
        The mean of w over the workspace, at one configuration for each position.
    condition : Spread
        Condition number of M over the workspace (2-norm, SI units). It depends on the units if joints turn and slide.
    coupling : Spread
        Condition number of D M D, where D scales the diagonal to 1: it does not depend on units, and is 1 where M is
        diagonal.
    section : Section or None
    trajectory : Trajectory
    torque : (samples, n) array
        τ = M q̈ + C q̇ + g along the trajectory, N m or N.
    units : tuple of str
        "N m" or "N" for each coordinate.
    coordinates : tuple of str
    missing : tuple of str
        Why criteria are not available.
    """

    tip: str
    dimension: int
    operations: Mapping[str, Mapping[str, int]]
    time: float
    workspace: Estimate
    manipulability: float
    mean_manipulability: float
    condition: Spread
    coupling: Spread
    section: Section | None
    trajectory: Trajectory
    torque: Array
    units: tuple[str, ...]
    coordinates: tuple[str, ...]
    missing: tuple[str, ...]


class _Region(NamedTuple):
    """The criteria that refer to the workspace; the defaults are those of one without size."""

    dimension: int = 0
    workspace: Estimate = Estimate(math.nan, math.nan)
    manipulability: float = math.nan
    mean_manipulability: float = math.nan
    condition: Spread = Spread(math.nan, math.nan)
    coupling: Spread = Spread(math.nan, math.nan)
    section: Section | None = None


def criteria(arm: Arm, trajectory: Trajectory, time: float, samples: int, seed: int) -> Criteria:
    """The criteria of one arm."""
    missing: tuple[str, ...] = ()
    try:
        region = _region(arm, samples, seed)
    except NoSizeError as error:
        region, missing = _Region(), (str(error),)
    return Criteria(
        tip=arm.tip,
        operations=operations(arm),
        time=time,
        trajectory=trajectory,
        torque=arm.tree.inverse_dynamics(trajectory.q, trajectory.qd, trajectory.qdd),
        units=arm.units,
        coordinates=arm.tree.coordinates,
        missing=missing,
        **region._asdict(),
    )


def _region(arm: Arm, samples: int, seed: int) -> _Region:
    """The criteria that refer to the workspace; NoSizeError as for :class:`Reach`."""
    reach = Reach(arm, np.random.default_rng(seed))
    size, q = reach.measure(samples)
    M = arm.tree.mass_matrix(q)
    return _Region(
        len(reach.low),
        size,
        reach.largest_manipulability(),
        float(reach.manipulability(q).mean()),
        _spread(np.linalg.cond(M)),
        _spread(np.linalg.cond(_unit_diagonal(M))),
        _section(reach, samples),
    )


def _spread(values: Array) -> Spread:
    return Spread(float(np.median(values)), float(values.max()))


def _unit_diagonal(M: Array) -> Array:
    """D M D with D = diag(M)^(−1/2); rows of freedoms without inertia stay zero."""
    diagonal = np.diagonal(M, axis1=-2, axis2=-1)
    d = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1))
    return np.asarray(d[..., :, None] * M * d[..., None, :])


def _section(reach: Reach, samples: int) -> Section:
    dimension = len(reach.low)
    kept = [0, 2] if dimension == 3 else [*range(dimension)]
    count = math.ceil(samples ** (1 / len(kept)))
    axes = [np.linspace(reach.low[k], reach.high[k], count) for k in kept]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    x = np.tile((reach.low + reach.high) / 2, (grid[..., 0].size, 1))
    x[:, kept] = grid.reshape(-1, len(kept))
    q, reached = reach.solve(x)
    w = np.full(len(x), np.nan)
    w[reached] = reach.manipulability(q[reached])
    return Section(tuple(map(_name, reach.axes.T[kept])), tuple(axes), w.reshape(grid.shape[:-1]))


def _name(axis: Array) -> str:
    """x, y or z for an axis of the base frame, otherwise its direction."""
    k = int(np.argmax(axis))
    return "xyz"[k] if axis[k] > 1 - 1e-9 else f"along ({', '.join(f'{a:.2g}' for a in axis)})"
