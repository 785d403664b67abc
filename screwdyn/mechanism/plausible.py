"""Warnings about numbers that are accepted, but probably have another unit, order or place than was meant."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from screwdyn.core import Array, ScrewdynWarning

if TYPE_CHECKING:
    from screwdyn.mechanism.joint import Joint
    from screwdyn.mechanism.link import Link
    from screwdyn.mechanism.topology import Topology

_TURN = 2 * math.pi
# Extent of a body about its centre of mass, relative to its radius of gyration: 1.3 of a ball, 1.7 of a rod, or more.
_EXTENT = 3.0
# Density, kg/m³, below that of any body: air has 1.2. And the volume, m³, up to which a body may stand for no mass.
_THIN, _LARGE = 1e-3, 1.0
# Turns from which limits may be degrees: in halves of a degree, or in other numbers; and the largest limit in degrees.
_MANY, _MORE, _MOST = 2, 5, 360.0


def check_angles(name: str, joint: Joint, q: Sequence[float]) -> bool:
    """Warn about positions of a joint: an angle that may be degrees, with True, and quaternions (1, 0, 0, 0)."""
    if joint.chart is not None and joint.chart.orientation == 4 and q[0] == 1.0 and not any(q[1:4]):
        warn(
            f"the quaternion of {name!r} is (1, 0, 0, 0), which is half a turn about x, because the scalar is "
            f"last; no rotation is (0, 0, 0, 1). For the half turn give (-1, 0, 0, 0)"
        )
    if joint.limits is None or joint.kind != "revolute" or joint.mimic is not None:
        return False
    (low, high), x = joint.limits, float(q[0])
    if low - _TURN <= x <= high + _TURN:
        return False
    warn(
        f"{name!r} is at {x:.6g} rad, more than a turn beyond its limits {low:.4g} and {high:.4g}; angles are "
        f"in radians: {x:.6g} degrees are {math.radians(x):.4g}"
    )
    return True


def check_positions(topology: Topology, q: Array) -> None:
    """As :func:`check_angles`, for all joints of a tree; the first angle in degrees stands for the others."""
    for k in [k for k, x in enumerate(q.tolist()) if x == 1.0 or not -_TURN <= x <= _TURN]:
        name = topology.positions[k].removesuffix("[x]")
        link = topology.carried.get(name)
        if link is not None and check_angles(name, topology.attachments[link].joint, q[k : k + 4].tolist()):
            return


def check_limits(low: float, high: float) -> None:
    """Warn about limits of an angle that may be degrees: many turns, in halves of a unit or no quarters of a turn."""
    most = max(abs(low), abs(high))
    if not _MANY * _TURN < most <= _MOST:
        return
    halves = (2 * low).is_integer() and (2 * high).is_integer()
    quarters = all(abs(math.remainder(x, _TURN / 4)) < 0.01 for x in (low, high))
    if halves or (most > _MORE * _TURN and not quarters):
        warn(
            f"the limits {low:g} and {high:g} of a revolute joint are up to {most / _TURN:.3g} turns; angles are in "
            f"radians: {low:g} and {high:g} degrees are {math.radians(low):.4g} and {math.radians(high):.4g}"
        )


def check_density(mass: Any, volume: Any) -> None:
    """Warn about a body that is thinner than any gas, whose sizes may be in mm; symbols have any size."""
    if isinstance(mass, float) and isinstance(volume, float) and volume > _LARGE and 0 < mass < _THIN * volume:
        warn(
            f"{mass:g} kg in {volume:.3g} m³ are {mass / volume:.2g} kg/m³, and air has 1.2: sizes are in m, and "
            f"mass in kg"
        )


def check_period(period: float, duration: float) -> None:
    """Warn about a period that is longer than the run, which may be a frequency."""
    if period > duration:
        hertz = 1 / period < duration
        instead = f"a frequency of {period:g} Hz is control_period={1 / period:g}" if hertz else "choose it shorter"
        warn(
            f"control_period={period:g} s is longer than the run, {duration:g} s, so that the torque is computed once, "
            f"at its start, and held; {instead}"
        )


def check_reach(topology: Topology, link: str, to: str, T: Array) -> None:
    """Warn about a payload, with the pose T in a hand, at a distance longer than the chain of links that carries it.

    The chain begins at the first joint that turns, beyond the mount. What slides without limits is of any length.
    """
    own = topology.attachments[link]
    if own.joint.chart is not None and own.joint.chart.translations:
        return
    try:
        com, extent = _body(own.link)
        (x, y, z), length = T[:3, 3].tolist(), extent + own.joint.stroke
        if math.hypot(x, y, z) + math.hypot(*com) <= length:
            return
        distance, more = math.hypot(*(T[:3, :3] @ com + (x, y, z)).tolist()), 0.0
        # From the hand inwards; what a joint that turns carries belongs to the chain.
        at, turns = topology.attachments[to], False
        length += _body(at.link)[1]
        while at.parent is not None:
            more += math.hypot(*_body(at.link)[0])
            if at.joint.turns:
                length, more, turns = length + more, 0.0, True
            if distance <= length:
                return
            more += math.hypot(*at.home[:3, 3].tolist()) + at.joint.stroke
            at = topology.attachments[at.parent]
    except TypeError:  # lengths with symbols
        return
    if turns:
        warn(
            f"{link!r} is {distance:.3g} m from {to!r}, which holds it there; the links that carry {to!r}, from the "
            f"first joint that turns, and {link!r} itself are less than {length:.3g} m long together. Places are in "
            f"m, pose= in the base frame, at= in that of {to!r}, and com= of the body in its own"
        )


def _body(link: Link) -> tuple[tuple[float, ...], float]:
    """The centre of mass of a link in its frame, and how far its body extends about it, m."""
    inertia = link.inertia
    if inertia is None or not inertia.mass > 0:
        return (0.0, 0.0, 0.0), 0.0
    com, (xx, _, _, yy, _, zz) = inertia.entries
    return com, _EXTENT * math.sqrt(max(0.0, xx + yy + zz) / (2 * inertia.mass))


def warn(message: str) -> None:
    """Warn at the line of the program that called the library."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("screwdyn."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, ScrewdynWarning, stacklevel=level)
