"""Screws and numbers of a joint: checks of what users give, and the relations of screws that name a kind."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite, isnan, sqrt
from typing import Any

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.errors import JointError, ScrewdynError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.screws.poses import cross, entries
from screwdyn.screws.screw import Ad, inverse, screw_from_axis, screw_motion
from screwdyn.screws.screw import pitch as pitch_of

__all__ = [
    "NO_SCREWS",
    "check_independent",
    "interval",
    "kind",
    "magnitude",
    "meet",
    "number",
    "parallel",
    "point",
    "screw",
    "unit_screws",
]

# Tolerance for |w|^2 or |v|^2 of a unit screw; a screw within rounding of unit length is not normalised.
_UNIT, _ROUNDING = 1e-8, 1e-15
# Relative remainder below which a screw counts as a linear combination of others.
_DEPENDENT = 1e-12
# Least singular value of unit screws that need no closer look.
_CLEARLY_INDEPENDENT = 1e-3
NO_SCREWS = np.zeros((6, 0))
NO_SCREWS.setflags(write=False)


def screw(axis: str | ArrayLike, at: ArrayLike, pitch: float) -> Array:
    """The unit screw of a pitch about an axis through a point, (6,); JointError for a wrong axis or point."""
    try:
        S = screw_from_axis(axis, point(at), pitch)
    except ScrewdynError as wrong:
        raise JointError(str(wrong)) from None
    if S.shape != (6,):
        raise JointError(f"a joint has one axis; got {axis!r}")
    return S


def unit_screws(value: ArrayLike | None) -> Array:
    """Read-only copies of screws, (6, k), normalised if their length does not depend on symbols."""
    if value is None:
        return NO_SCREWS
    try:
        screws = expressions.array(value)
    except (TypeError, ValueError):
        raise JointError(f"a joint's screw must be six numbers; got {value!r}") from None
    if screws.shape == (6,):
        screws = screws[:, None]
    if screws.ndim != 2 or len(screws) != 6 or screws.shape[1] > 6:
        raise JointError(f"a joint's screws must have shape (6,) or (6, k), as [w; v]; got {screws.shape}")
    for S in screws.T:
        length = _length(S.tolist())
        if length != 1:
            S /= length
    screws.setflags(write=False)
    return screws


def _length(S: list[Any]) -> float:
    """The length of a screw, 1 within rounding; JointError if it is not a unit screw within the tolerance."""
    if not all(isfinite(x) for x in S if expressions.is_number(x)):
        raise JointError(f"a joint's screw has entries that are not finite: {S}; its axis must not have length 0")
    part = S[:3] if any(S[:3]) else S[3:]
    if not all(map(expressions.is_number, part)):
        return 1
    square = sum(x * x for x in part)
    if abs(square - 1) > _UNIT:
        raise JointError(
            f"a joint's screw must be a unit screw, |w| = 1, or w = 0 and |v| = 1; got {S}; "
            "scale it with screwdyn.screw.unit, or use revolute, prismatic or helical"
        )
    return 1 if abs(square - 1) <= _ROUNDING else sqrt(square)


def check_independent(screws: Array) -> None:
    """Raise JointError for numeric screws that are linearly dependent at the home pose and at a generic configuration.

    Rotations about z, x and z are dependent at the home pose only: a joint of three freedoms.
    """
    if screws.dtype != np.float64 or np.linalg.svd(screws, compute_uv=False)[-1] > _CLEARLY_INDEPENDENT:
        return
    T, twists = np.eye(4), np.empty_like(screws)
    for k in reversed(range(screws.shape[1])):
        twists[:, k] = Ad(inverse(T)) @ screws[:, k]
        T = screw_motion(screws[:, k], 1.0 + 0.3 * k) @ T
    twists /= np.linalg.norm(twists, axis=0)
    for k in range(1, screws.shape[1]):
        factors, *_ = np.linalg.lstsq(twists[:, :k], twists[:, k], rcond=None)
        if np.linalg.norm(twists[:, k] - twists[:, :k] @ factors) < _DEPENDENT:
            others = " and ".join(str(screws[:, i].tolist()) for i in np.flatnonzero(abs(factors) > _DEPENDENT))
            raise JointError(
                f"the screw {screws[:, k].tolist()} of a joint adds no freedom to {others}: they are linearly "
                "dependent in every configuration; leave one out"
            )


def kind(S: Array) -> str:
    """The kind of a joint of one screw."""
    h = pitch_of(S).item()
    if not expressions.is_number(h):
        return "helical"
    return "prismatic" if h == inf else "revolute" if abs(h) < 1e-12 else "helical"


def meet(S: Array, Z: Array) -> bool:
    """Whether the axes of two screws of pitch 0 are coplanar: their reciprocal product is zero."""
    return _vanishes(S[:3] @ Z[3:] + S[3:] @ Z[:3])


def parallel(S: Array, Z: Array) -> bool:
    """Whether a screw that turns is parallel to another one."""
    return all(map(_vanishes, cross(S[:3], Z[:3] if Z[:3].any() else Z[3:])))


def _vanishes(x: Any) -> bool:
    return abs(x) < 1e-12 if expressions.is_number(x) else expressions.is_zero(x)


def point(at: ArrayLike) -> Array:
    """A point, (3,); 0 is the origin. JointError unless it is three finite numbers."""
    try:
        r = entries((0, 0, 0) if isinstance(at, int | float) and at == 0 else at, (3,), "point")
    except ScrewdynError as wrong:
        raise JointError(str(wrong)) from None
    if r.shape != (3,) or not expressions.is_finite(r):
        raise JointError(f"a joint's point must be three finite numbers; got {at!r}")
    return r


def number(what: str, value: float, least: float = -inf) -> Any:
    """A finite number or an expression; JointError for anything else, or for a number below the least one."""
    try:
        x = expressions.number(_no_flag(value))
    except (TypeError, ValueError):
        raise JointError(f"{what} must be a number; got {value!r}") from None
    if expressions.is_number(x) and (not isfinite(x) or float(x) < least):
        raise JointError(f"{what} must be a finite number{f' >= {least:g}' if isfinite(least) else ''}; got {value!r}")
    return x


def _no_flag(value: Any) -> Any:
    """The value; TypeError for True and False, which NumPy reads as 1 and 0."""
    if isinstance(value, bool | np.bool_):
        raise TypeError("a number is expected")
    return value


def interval(limits: Sequence[float] | None) -> tuple[float, float] | None:
    """Lower and upper limit; JointError unless they are two numbers in order."""
    if limits is None:
        return None
    try:
        low, high = map(float, expressions.real(limits))
    except (TypeError, ValueError):
        raise JointError(f"limits must be two numbers (lower, upper); got {limits!r}") from None
    if isnan(low) or isnan(high) or low > high:
        raise JointError(f"limits must be (lower, upper) with lower <= upper; got {limits!r}")
    return low, high


def magnitude(what: str, value: float | None) -> float | None:
    """A limit of a magnitude, None if there is none or if it is infinite; JointError unless it is a number >= 0."""
    if value is None:
        return None
    try:
        x = float(expressions.real(_no_flag(value)))
    except (TypeError, ValueError):
        x = -1.0
    if not x >= 0:
        raise JointError(f"{what} must be a number >= 0, or None for no limit; got {value!r}")
    return None if x == inf else x
