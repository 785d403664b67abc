"""Joints as unit screws.

A one-freedom joint is one unit screw S, given in the frame of the link that it carries; the link's pose in its
parent is ``home · exp(Ŝ q)`` (docs/mathematics.md §1). Revolute, prismatic and helical joints differ in nothing
but their S, and nothing that computes asks which is which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import inf, isfinite, isnan
from typing import Any

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.errors import JointError, ScrewdynError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.screws.screw import pitch as pitch_of
from screwdyn.screws.screw import screw_from_axis

__all__ = ["Joint", "fixed", "helical", "prismatic", "revolute"]

# What rounding may take |w|^2 or |v|^2 of a unit screw away from one.
_UNIT = 1e-9


@dataclass(frozen=True, eq=False)
class Joint:
    """What a link may do relative to its parent; made by :func:`revolute`, :func:`prismatic`, :func:`helical`, ….

    Parameters
    ----------
    screw : (6,) array or None
        Unit screw [ω; v] in the carried link's own frame, copied; ``None`` for a fixed joint.
    passive : bool
        No motor: simulation refuses a torque on it.
    damping, friction, stiffness, rest : float
        The joint's own force −damping q̇ − friction sgn q̇ − stiffness (q − rest), in SI units: N m and radians
        for a turning joint, N and metres for a sliding one. They and the screw may hold SymPy expressions.
    limits : (float, float) or None
        Lower and upper position; for the user, not enforced by the dynamics.
    name : str or None
        Name of the joint and of its coordinate; ``None`` takes the name of the link it carries.

    Raises
    ------
    JointError
        A screw that is none or has another length than one; negative or non-finite damping, friction or stiffness;
        limits the wrong way round; an empty name; a `passive` that is no bool.
    """

    screw: Array | None
    passive: bool = False
    damping: float = 0.0
    friction: float = 0.0
    stiffness: float = 0.0
    rest: float = 0.0
    limits: Sequence[float] | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        for what, least in (("damping", 0.0), ("friction", 0.0), ("stiffness", 0.0), ("rest", -inf)):
            object.__setattr__(self, what, _number(what, getattr(self, what), least))
        object.__setattr__(self, "limits", _limits(self.limits))
        if self.name is not None and (not isinstance(self.name, str) or not self.name):
            raise JointError(f"a joint's name must be a non-empty string; got {self.name!r}")
        if not isinstance(self.passive, bool | np.bool_):
            raise JointError(f"passive must be True or False; got {self.passive!r}")
        object.__setattr__(self, "passive", bool(self.passive))
        if self.screw is not None:
            object.__setattr__(self, "screw", _unit_screw(self.screw))

    @property
    def kind(self) -> str:
        """``"revolute"``, ``"prismatic"``, ``"helical"`` or ``"fixed"``, read off the screw for people to read."""
        if self.screw is None:
            return "fixed"
        h = pitch_of(self.screw).item()
        if not expressions.is_number(h):
            return "helical"
        return "prismatic" if h == inf else "revolute" if abs(h) < 1e-12 else "helical"

    @property
    def free_symbols(self) -> set[Any]:
        """SymPy symbols that the joint's numbers depend on."""
        return expressions.free_symbols(getattr(self, field.name) for field in fields(self))

    def subs(self, values: Mapping[Any, Any]) -> Joint:
        """The joint with values in the place of symbols; JointError if they make no sense."""
        values = expressions.bound(values, self.free_symbols)
        numbers = {
            what: expressions.substituted(getattr(self, what), values)
            for what in ("screw", "damping", "friction", "stiffness", "rest")
        }
        return replace(self, **numbers)


def revolute(
    axis: str | ArrayLike = "z",
    point: ArrayLike = 0,
    *,
    passive: bool = False,
    damping: float = 0.0,
    friction: float = 0.0,
    stiffness: float = 0.0,
    rest: float = 0.0,
    limits: Sequence[float] | None = None,
    name: str | None = None,
) -> Joint:
    """Turn about an axis: S = [a; −a×r] (docs/mathematics.md §1).

    Parameters
    ----------
    axis : "x", "y", "z", "-x", … or (3,) array
        Direction a in the carried link's own frame; any length but zero.
    point : (3,) array or 0
        Any point r of the axis, in the link's own frame, in metres.
    passive, damping, friction, stiffness, rest, limits, name
        As for :class:`Joint`.

    Raises
    ------
    JointError
        Zero or non-finite axis, or another argument that makes no sense.
    """
    return Joint(_screw(axis, point, 0.0), passive, damping, friction, stiffness, rest, limits, name)


def prismatic(
    axis: str | ArrayLike = "z",
    *,
    passive: bool = False,
    damping: float = 0.0,
    friction: float = 0.0,
    stiffness: float = 0.0,
    rest: float = 0.0,
    limits: Sequence[float] | None = None,
    name: str | None = None,
) -> Joint:
    """Slide along an axis: S = [0; a]. Parameters and errors as :func:`revolute`."""
    return Joint(_screw(axis, 0, inf), passive, damping, friction, stiffness, rest, limits, name)


def helical(
    axis: str | ArrayLike,
    pitch: float,
    point: ArrayLike = 0,
    *,
    passive: bool = False,
    damping: float = 0.0,
    friction: float = 0.0,
    stiffness: float = 0.0,
    rest: float = 0.0,
    limits: Sequence[float] | None = None,
    name: str | None = None,
) -> Joint:
    """Screw along an axis: S = [a; −a×r + h a], with h the pitch in metres per radian.

    Parameters and errors as :func:`revolute`; a pitch that is not a finite number is refused too.
    """
    S = _screw(axis, point, _number("pitch", pitch))
    return Joint(S, passive, damping, friction, stiffness, rest, limits, name)


def fixed(name: str | None = None) -> Joint:
    """No freedom: the link is welded to its parent."""
    return Joint(None, name=name)


def _unit_screw(value: ArrayLike) -> Array:
    """A read-only copy of a screw, after checking that it is a unit screw as far as its symbols let that be known."""
    try:
        S = expressions.array(value)
    except (TypeError, ValueError):
        raise JointError(f"a joint's screw must be six numbers; got {value!r}") from None
    if S.shape != (6,):
        raise JointError(f"a joint's screw must have shape (6,), as [w; v]; got {S.shape}")
    entries = S.tolist()
    if not all(isfinite(x) for x in entries if expressions.is_number(x)):
        raise JointError(f"a joint's screw has entries that are not finite: {entries}")
    turning = any(entries[:3])
    part = entries[:3] if turning else entries[3:]
    if all(map(expressions.is_number, part)) and abs(sum(x * x for x in part) - 1) > _UNIT:
        raise JointError(
            f"a joint's screw must be a unit screw, |w| = 1, or w = 0 and |v| = 1; got {entries}; "
            "scale it with screwdyn.screw.unit, or use revolute, prismatic or helical"
        )
    S.setflags(write=False)
    return S


def _screw(axis: str | ArrayLike, point: ArrayLike, pitch: float) -> Array:
    try:
        S = screw_from_axis(axis, (0, 0, 0) if isinstance(point, int | float) and point == 0 else point, pitch)
    except ScrewdynError as wrong:
        raise JointError(str(wrong)) from None
    if S.shape != (6,):
        raise JointError(f"a joint has one axis and one point; got axis {axis!r} and point {point!r}")
    return S


def _number(what: str, value: float, least: float = -inf) -> Any:
    try:
        x = expressions.number(value)
    except (TypeError, ValueError):
        raise JointError(f"{what} must be a number; got {value!r}") from None
    if expressions.is_number(x) and (not isfinite(x) or x < least):
        raise JointError(f"{what} must be a finite number{f' >= {least:g}' if isfinite(least) else ''}; got {value!r}")
    return x


def _limits(limits: Sequence[float] | None) -> tuple[float, float] | None:
    if limits is None:
        return None
    try:
        low, high = map(float, expressions.real(limits))
    except (TypeError, ValueError):
        raise JointError(f"limits must be two numbers (lower, upper); got {limits!r}") from None
    if isnan(low) or isnan(high) or low > high:
        raise JointError(f"limits must be (lower, upper) with lower <= upper; got {limits!r}")
    return low, high
