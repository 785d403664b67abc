"""Warnings about numbers that are accepted, but probably have another unit, order or place than was meant."""

from __future__ import annotations

import math
import sys
import warnings

from screwdyn.core import Array, ScrewdynWarning
from screwdyn.mechanism import Joint, Topology

_TURN = 2 * math.pi
# Extent of a body about its centre of mass, relative to its radius of gyration: 1.3 of a ball, 1.7 of a rod, or more.
_EXTENT = 3.0


def check_positions(topology: Topology, q: Array) -> None:
    """Warn about angles of more than a turn beyond limits, which may be degrees, and quaternions (1, 0, 0, 0)."""
    for k in [k for k, x in enumerate(q.tolist()) if x == 1.0 or not -_TURN <= x <= _TURN]:
        name, x = topology.positions[k], float(q[k])
        link = topology.carried.get(name.removesuffix("[x]"))
        joint = None if link is None else topology.attachments[link].joint
        if joint is None:
            continue
        if joint.chart is not None and joint.chart.orientation == 4 and not q[k + 1 : k + 4].any():
            _warn(
                f"the quaternion of {name[:-3]!r} is (1, 0, 0, 0), which is half a turn about x, because the scalar is "
                f"last; no rotation is (0, 0, 0, 1). For the half turn give (-1, 0, 0, 0)"
            )
        low, high = (-math.inf, math.inf) if joint.limits is None else joint.limits
        if joint.kind == "revolute" and not low - _TURN <= x <= high + _TURN:
            _warn(
                f"{name!r} is at {x:.6g} rad, more than a turn beyond its limits {low:.4g} and {high:.4g}; angles are "
                f"in radians: {x:.6g} degrees are {math.radians(x):.4g}"
            )
            return


def check_period(period: float, duration: float) -> None:
    """Warn about a period that is longer than the run, which may be a frequency."""
    if period > duration:
        _warn(
            f"control_period={period:g} s is longer than the run, {duration:g} s, so that the torque is computed once; "
            f"a frequency of {period:g} Hz is control_period={1 / period:g}"
        )


def check_reach(topology: Topology, link: str, to: str, T: Array) -> None:
    """Warn about a payload, with the pose T in a hand, at a distance longer than itself and the links to the base.

    The base, and joints that slide without limits, are of any length.
    """
    distance = math.hypot(*T[:3, 3].tolist())
    if distance == 0.0:
        return
    at, own = topology.attachments[to], topology.attachments[link]
    inertia, length = own.link.inertia, _stroke(own.joint)
    if own.joint.chart is not None and own.joint.chart.translations:
        return
    if inertia is not None and inertia.mass > 0:
        xx, _, _, yy, _, zz = inertia.entries[1]
        length += math.hypot(*inertia.entries[0]) + _EXTENT * math.sqrt(max(0.0, xx + yy + zz) / (2 * inertia.mass))
    while length < distance and to != topology.base:
        length += math.hypot(*at.home[:3, 3].tolist())
        if at.link.inertia is not None:
            length += math.hypot(*at.link.inertia.entries[0])
        length += _stroke(at.joint)
        if at.parent is None:
            _warn(
                f"{link!r} is {distance:.3g} m from {to!r}, which grasps it there; all links from the base to {to!r} "
                f"and {link!r} itself are less than {length:.3g} m long together. Poses are in m, "
                f"pose= in the base frame, at= in that of {to!r}"
            )
            break
        at = topology.attachments[at.parent]


def _stroke(joint: Joint) -> float:
    """How far a joint slides, if it has no chart."""
    if joint.chart is not None or joint.screws[:3].any(axis=0).all():
        return 0.0
    return max(map(abs, joint.limits or (math.inf,)))


def _warn(message: str) -> None:
    """Warn at the line of the program that called the library."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("screwdyn."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, ScrewdynWarning, stacklevel=level)
