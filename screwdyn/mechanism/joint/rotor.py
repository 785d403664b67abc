"""Motor rotors: bodies that spin at a multiple of a joint's rate (docs/mathematics.md §8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.errors import JointError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.mechanism.inertia import Inertia
from screwdyn.mechanism.joint.screws import number, point, screw

__all__ = ["Rotor"]


@dataclass(frozen=True, eq=False)
class Rotor:
    """The rotor of a joint's motor: a solid of revolution that turns by ratio · q about its axis in its carrier.

    It becomes a link ``<joint>_rotor`` whose joint follows the motor's joint (:class:`Mimic`); its frame is that of its
    carrier at q = 0. Its spin acts on all links by its inertia and by gyroscopic moments, which an inertia
    ratio² · I added to the joint's own does not contain (docs/mathematics.md §8).

    Parameters
    ----------
    inertia : float
        Moment of inertia about its axis, kg m². All numbers may be SymPy expressions.
    ratio : float
        Angle of the rotor in its carrier divided by q of the joint, negative if they turn in opposite directions;
        rad/rad, or rad/m for a prismatic joint.
    axis : "x", "y", "z", "-x", … or (3,) array
        Direction of its axis in the carrier's frame.
    com : (3,) array
        Its centre in the carrier's frame, m.
    mass, across : float, optional
        Its mass in kg, and its moment about an axis across, kg m². If they are left out, the carrier's inertia is taken
        to contain the rotor at rest, as is usual in URDF; a further link ``<joint>_rotor_at_rest`` then subtracts its
        moment about its axis, which would be counted twice.
    carrier : str, optional
        The link that carries the rotor; by default the parent of the joint's link.

    Raises
    ------
    JointError
        If a number is negative or not finite, the ratio is zero, only one of mass and across is given, no solid of
        revolution has the moments, the axis is zero, or the carrier is not a name.
    """

    inertia: float
    ratio: float
    axis: str | ArrayLike = "z"
    com: ArrayLike = (0.0, 0.0, 0.0)
    mass: float | None = None
    across: float | None = None
    carrier: str | None = None

    def __post_init__(self) -> None:
        if (self.mass is None) != (self.across is None):
            raise JointError("a rotor needs both mass= and across=, or neither if its carrier's inertia contains it")
        for what in ("inertia", "mass", "across"):
            if getattr(self, what) is not None:
                object.__setattr__(self, what, number(f"the {what} of a rotor", getattr(self, what), 0.0))
        object.__setattr__(self, "ratio", number("the ratio of a rotor", self.ratio))
        if expressions.is_zero(self.ratio):
            raise JointError("the ratio of a rotor must not be zero")
        if self.carrier is not None and not isinstance(self.carrier, str):
            raise JointError(f"the carrier of a rotor must be the name of a link; got {self.carrier!r}")
        object.__setattr__(self, "com", point(self.com))
        object.__setattr__(self, "axis", screw(self.axis, 0, 0.0)[:3])
        numbers = [x for x in (self.inertia, self.across) if x is not None and expressions.is_number(x)]
        if len(numbers) == 2 and numbers[0] > 2 * numbers[1]:
            raise JointError(
                f"no solid of revolution has the moments {numbers[0]:g} about its axis and {numbers[1]:g} across; the "
                "second one is at least half of the first"
            )

    @property
    def screw(self) -> Array:
        """The unit screw of its axis in the carrier's frame, (6,)."""
        return screw(self.axis, self.com, 0.0)

    @property
    def bodies(self) -> tuple[Inertia, Inertia | None]:
        """The inertia that spins, and that which is counted twice; in the carrier's frame."""
        a = expressions.array(self.axis)
        about = self.inertia * np.outer(a, a)
        if self.mass is not None and self.across is not None:
            return Inertia(self.mass, self.com, about + self.across * (np.eye(3) - np.outer(a, a))), None
        com = expressions.array(self.com)
        return Inertia._of(0.0, com, about, effective=True), Inertia._of(0.0, com, -about, effective=True)

    def prefixed(self, prefix: str) -> Rotor:
        """The same with a prefix before the name of the carrier, if it is given."""
        return self if self.carrier is None else replace(self, carrier=prefix + self.carrier)

    @property
    def free_symbols(self) -> set[Any]:
        """SymPy symbols in the numbers."""
        return expressions.free_symbols(getattr(self, field.name) for field in fields(self))

    def subs(self, values: Mapping[Any, Any]) -> Rotor:
        """The same with values substituted for symbols."""
        given: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        return Rotor(**{name: expressions.substituted(x, values) for name, x in given.items()})
