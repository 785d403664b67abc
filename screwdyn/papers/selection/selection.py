"""A comparison of arms by the criteria of Bhangale, Saha and Agrawal 2004."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from reprlib import repr as cut_repr
from typing import TYPE_CHECKING, Any

import numpy as np

from screwdyn.core.errors import ScrewdynError, ShapeError, UnknownNameError
from screwdyn.papers.selection.arm import Arm, Limits
from screwdyn.papers.selection.costs import time_ratios
from screwdyn.papers.selection.criteria import Criteria, criteria
from screwdyn.papers.selection.table import table
from screwdyn.papers.selection.trajectory import Trajectory
from screwdyn.simulation.simulate import Run
from screwdyn.tree import KinematicTree

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Selection", "compare"]


@dataclass(frozen=True, repr=False)
class Selection:
    """The criteria of several arms. Its text is a table, in which * marks the best values of a line.

    Fewer operations, less time, condition numbers near 1, a larger workspace and a larger manipulability are better.
    Workspaces and manipulabilities of different dimensions are not compared. Values are distinguished only if they
    differ by more than their errors. What an arm does not have is "n/a", with the reason below the table.

    Attributes
    ----------
    arms : mapping from name to Criteria
    """

    arms: Mapping[str, Criteria]

    def __getitem__(self, name: str) -> Criteria:
        """The criteria of one arm. UnknownNameError if there is none of this name."""
        if name not in self.arms:
            raise UnknownNameError.of(name, self.arms, "arm")
        return self.arms[name]

    def __repr__(self) -> str:
        return table(self.arms)

    def plot(self) -> Figure:
        """Draw the criteria, sections of the workspaces coloured by manipulability, and the torques.

        Returns
        -------
        matplotlib.figure.Figure
            ``selection.plot().savefig("arms.png")`` writes it.

        Raises
        ------
        ScrewdynError
            If Matplotlib, the extra ``plot``, is not installed.
        """
        from screwdyn.papers.selection.figure import plot_selection

        return plot_selection(self.arms)


def compare(
    arms: Mapping[str, KinematicTree],
    trajectories: Mapping[str, Trajectory | Run] | None = None,
    *,
    limits: Mapping[str, Limits] | None = None,
    tips: Mapping[str, str] | None = None,
    samples: int = 4096,
    seed: int = 0,
) -> Selection:
    """Compare arms by the cost of their dynamics, their workspaces, their manipulability and the conditioning of M.

    Parameters
    ----------
    arms : mapping from name to KinematicTree
        Arms or trees whose joints are revolute, prismatic, helical, universal, cylindrical or fixed.
    trajectories : mapping from name of an arm to Trajectory or Run, optional
        By default each joint moves through its range by Bhangale Eq. 23, in 10 s.
    limits : mapping from name of an arm to mapping from position to (low, high), optional
        Ranges of joints, rad or m; by default the limits of the joints of the tree. Joints that only turn may have
        none: their range is a full turn.
    tips : mapping from name of an arm to link, optional
        The link whose origin works; by default the last one with the most freedoms on its path.
    samples : int
        Positions that are tried for the workspace, in quasi-random order, and again for its section.
    seed : int
        Of the random shifts of the samples: equal seeds give equal results, except for the time.

    Returns
    -------
    Selection

    Raises
    ------
    ScrewdynError
        If an argument is not of the type above, there is no arm, a range is empty or not finite, or an arm has joints
        of other kinds or a joint that can slide without end.
    UnknownNameError
        For a name that is not that of an arm, position or link.
    ShapeError
        If a trajectory does not have the coordinates of its arm.
    UnboundSymbolError
        If numbers of an arm contain symbols.

    Examples
    --------
    >>> import screwdyn as sd
    >>> arms = {"RTX": sd.robots.rtx(), "Stanford": sd.robots.stanford()}
    >>> ranges = {"RTX": {"b1": (0, 1)}, "Stanford": {"b3": (0, 1)}}
    >>> found = sd.selection.compare(arms, limits=ranges, samples=256)
    >>> print(f"{found['RTX'].manipulability:.4f} m³")  # a2 a3
    0.0864 m³
    """
    _require_mapping(arms, "arms", KinematicTree)
    if not arms:
        raise ScrewdynError("give at least one arm to compare")
    _require_integer(samples, "samples", 1)
    _require_integer(seed, "seed", 0)
    given = {} if trajectories is None else trajectories
    ranges = {} if limits is None else limits
    ends = {} if tips is None else tips
    _require_mapping(given, "trajectories", Trajectory, Run)
    _require_mapping(ranges, "limits", Mapping)
    _require_mapping(ends, "tips", str)
    for name in (*given, *ranges, *ends):
        if name not in arms:
            raise UnknownNameError.of(name, arms, "arm")
    read = {name: Arm.of(name, tree, ends.get(name), ranges.get(name, {})) for name, tree in arms.items()}
    paths = {
        name: Trajectory.of(given[name]) if name in given else Trajectory.cycloidal(arm.low, arm.high)
        for name, arm in read.items()
    }
    for name, path in paths.items():
        if path.q.shape[1] != len(names := arms[name].coordinates):
            raise ShapeError(f"the trajectory of {name!r} has {path.q.shape[1]} coordinates; expected {list(names)}")
    ratios = time_ratios(read, paths)
    return Selection({name: criteria(arm, paths[name], ratios[name], samples, seed) for name, arm in read.items()})


def _require_mapping(given: object, what: str, *kinds: type) -> None:
    expected = " or ".join(kind.__name__ for kind in kinds)
    if not isinstance(given, Mapping):
        raise ScrewdynError(f"{what} must be a mapping from name of an arm to {expected}; got {cut_repr(given)}")
    for name, value in given.items():
        if not isinstance(value, kinds):
            raise ScrewdynError(f"{what}[{name!r}] must be a {expected}; got {cut_repr(value)}")


def _require_integer(given: Any, what: str, least: int) -> None:
    if not isinstance(given, int | np.integer) or given < least:
        raise ScrewdynError(f"{what} must be an integer, at least {least}; got {given!r}")
