"""The coupling of a joint to another one: a mimic joint, or a gear."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from screwdyn.core import expressions
from screwdyn.core.errors import JointError
from screwdyn.mechanism.joint.screws import number

__all__ = ["Mimic"]


@dataclass(frozen=True)
class Mimic:
    """The position of a joint as a function of another joint's: q = ratio · q_joint + offset (docs/mathematics.md §8).

    A joint that follows another one has no freedom of its own: it adds no coordinate to the tree.

    Parameters
    ----------
    joint : str
        Name of the joint that it follows, which has one freedom, or follows another joint itself.
    ratio : float
        q̇ / q̇_joint, in units of both, such as rad/rad or m/rad. It and the offset may be SymPy expressions.
    offset : float
        Position at q_joint = 0, rad or m.

    Raises
    ------
    JointError
        If the name is empty, or a number is not finite.
    """

    joint: str
    ratio: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.joint, str) or not self.joint:
            raise JointError(f"mimic must name the joint that is followed; got {self.joint!r}")
        for what in ("ratio", "offset"):
            object.__setattr__(self, what, number(f"the {what} of a mimic joint", getattr(self, what)))

    @property
    def free_symbols(self) -> set[Any]:
        """SymPy symbols in the numbers."""
        return expressions.free_symbols([self.ratio, self.offset])

    def prefixed(self, prefix: str) -> Mimic:
        """The same with a prefix before the name of the other joint."""
        return replace(self, joint=prefix + self.joint)

    def subs(self, values: Mapping[Any, Any]) -> Mimic:
        """The same with values substituted for symbols."""
        return Mimic(self.joint, *(expressions.substituted(x, values) for x in (self.ratio, self.offset)))
