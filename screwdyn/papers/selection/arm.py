"""An arm of a comparison: a tree, the link whose origin is the tip, and the ranges of the joints."""

from __future__ import annotations

from collections.abc import Mapping
from reprlib import repr as cut_repr
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from screwdyn.core import expressions
from screwdyn.core.errors import ScrewdynError, UnknownNameError
from screwdyn.core.types import Array
from screwdyn.mechanism.joint.screws import kind
from screwdyn.mechanism.loops import check_open
from screwdyn.papers.formulations import denoc
from screwdyn.tree import KinematicTree

__all__ = ["Arm", "EndlessError", "Limits"]

Limits = Mapping[str, tuple[float, float]]


class EndlessError(ScrewdynError):
    """Joints that slide and have no limits.

    Attributes
    ----------
    arm : str
    position : str
        The first of them.
    fact : str
        The message without the advice, which Python and the command line give in their own terms.
    """

    def __init__(self, arm: str, positions: list[str]) -> None:
        self.arm, self.position = arm, positions[0]
        self.fact = f"{', '.join(map(repr, positions))} of {arm!r} can slide without end"
        super().__init__(
            f"{self.fact}; give the joints limits, or ranges for the comparison: "
            f"limits={{{arm!r}: {{{self.position!r}: (0, 1), …}}}}"
        )


class Arm(NamedTuple):
    """An arm whose joints have one screw for each of their positions: all but spherical, planar and free ones.

    Attributes
    ----------
    name : str
    tree : KinematicTree
    formulation : DeNOC
    tip : str
        The link whose origin works: its positions are the workspace.
    low, high : (n,) arrays
        Range of each position, rad or m.
    turning : (n,) array of bool
        Whether a joint turns by at least 2π, so that its range is no limit to the pose.
    units : tuple of str
        "N m" or "N" for each coordinate.
    """

    name: str
    tree: KinematicTree
    formulation: denoc
    tip: str
    low: Array
    high: Array
    turning: npt.NDArray[np.bool_]
    units: tuple[str, ...]

    @classmethod
    def of(cls, name: str, tree: KinematicTree, tip: str | None, limits: Limits) -> Self:
        """The arm with given limits, those of its joints, or full turns.

        The default tip is the last link with the most freedoms on its path.

        Raises
        ------
        ScrewdynError
            If a joint is of another kind, a joint that slides has no limits, or a range is empty or not two finite
            numbers.
        UnknownNameError
            If the tip is not a link of the tree, or a limit is not for one of its positions.
        """
        check_open(tree.topology, f"the comparison of arms, for {name!r},")
        joints = {joint: tree.joint(joint) for joint in tree.joints if tree.joint(joint).nv}
        if wrong := [f"{joint!r} is {x.kind}" for joint, x in joints.items() if x.chart is not None]:
            raise ScrewdynError(f"the positions of {', '.join(wrong)} in {name!r}, have no ranges; replace the joint")
        for given in limits:
            if given not in tree.positions:
                raise UnknownNameError.of(given, tree.positions, f"position of {name!r}")
        kinds = [kind(S) for joint in joints.values() for S in joint.screws.T]
        own = {p: joint.limits for j, joint in joints.items() for p in joint.position_names(j)}
        ranges, endless = [], []
        for position, moves in zip(tree.positions, kinds, strict=True):
            what = f"the range of {position!r} of {name!r}"
            found = _bounds(limits[position], what) if position in limits else own[position]
            if found is None or not np.isfinite(found).all():
                if moves != "revolute":
                    endless.append(position)
                found = (-np.pi, np.pi)
            if not found[0] < found[1]:
                raise ScrewdynError(f"{what} is empty: {found[0]:g} to {found[1]:g}")
            ranges.append(found)
        if endless:
            raise EndlessError(name, endless)
        if tip is None:
            freedoms = {link: _freedoms(tree, link) for link in tree.links}
            tip = next(link for link in reversed(tree.links) if freedoms[link] == max(freedoms.values()))
        elif tip not in tree.links:
            raise UnknownNameError.of(tip, tree.links)
        low, high = np.array(ranges, dtype=float).reshape(-1, 2).T
        turning = np.array([moves == "revolute" for moves in kinds], dtype=bool) & (high - low > 2 * np.pi - 1e-9)
        units = tuple("N" if moves == "prismatic" else "N m" for moves in kinds)
        return cls(name, tree, denoc(tree), tip, low, high, turning, units)

    def position(self, q: Array) -> Array:
        """Positions of the tip in the base frame, (…, 3), m."""
        return self.tree.forward_kinematics(self.tip, q)[..., :3, 3]

    def jacobian(self, q: Array) -> Array:
        """Derivatives of the positions of the tip, (…, 3, n)."""
        return self.tree.jacobian(self.tip, q, "mixed")[..., 3:, :]


def _bounds(given: object, what: str) -> tuple[float, float]:
    try:
        low, high = expressions.real(given).tolist()
    except (TypeError, ValueError):
        low = high = np.nan
    if not np.isfinite([low, high]).all():
        raise ScrewdynError(f"{what} must be two finite numbers (low, high); got {cut_repr(given)}")
    return low, high


def _freedoms(tree: KinematicTree, link: str) -> int:
    return sum(edge["joint"].nv for *_, edge in tree.graph.subgraph(tree.path(link)).edges(data=True))
