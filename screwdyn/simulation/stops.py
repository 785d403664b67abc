"""Stops at joint limits: which joints have one, and the forces of springs (docs/mathematics.md §8)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Literal

import numpy as np

from screwdyn.core.errors import ScrewdynError, UnknownNameError
from screwdyn.core.types import Array
from screwdyn.forms.limits import Limits
from screwdyn.mechanism.joint import Joint
from screwdyn.physics.robot import Robot

__all__ = ["SpringStop", "SpringStops", "Stop", "Stops", "check_stops", "joints_of", "stop_of"]


@dataclass(frozen=True)
class SpringStop:
    """A stop at a joint limit that is a spring with a damper (docs/mathematics.md §8).

    At a distance x beyond the limit its force is max(0, stiffness x + damping ẋ), back towards the limit.

    Parameters
    ----------
    stiffness : float
        > 0; N m/rad for a rotation, N/m for a translation.
    damping : float
        >= 0; N m s/rad or N s/m.

    Raises
    ------
    ScrewdynError
        If a number is out of range or not finite.
    """

    stiffness: float
    damping: float = 0.0

    def __post_init__(self) -> None:
        for what, least in (("stiffness", "> 0"), ("damping", ">= 0")):
            value = getattr(self, what)
            number = float(value) if isinstance(value, Real) else math.nan
            if not math.isfinite(number) or number < 0 or (number == 0 and least == "> 0"):
                raise ScrewdynError(f"the {what} of a SpringStop must be a finite number {least}; got {value!r}")
            object.__setattr__(self, what, number)


Stop = Literal["inelastic"] | SpringStop
Stops = Stop | Mapping[str, Stop]


def stop_of(stops: Stops | None, joint: str) -> Stop | None:
    """The stop of a joint with limits; None if there is none."""
    return stops.get(joint) if isinstance(stops, Mapping) else stops


def joints_of(tree: Robot) -> dict[str, Joint]:
    """All joints by name; a locked one as it is when it is unlocked."""
    locks = {name: tree.lock_of(name) for name in tree.joints}
    return {name: tree.joint(name) if lock is None else lock.joint for name, lock in locks.items()}


def check_stops(stops: object, joints: Sequence[tuple[str, Joint]]) -> None:
    """Check the argument ``stops`` of :func:`simulate`.

    ``joints`` are those that the run may have, some of which may have the same name.

    Raises
    ------
    UnknownNameError
        If a stop belongs to no joint.
    ScrewdynError
        If it is no stop, or its joint has no limits.
    """
    limited = {name for name, joint in joints if joint.limits is not None}
    for joint, stop in stops.items() if isinstance(stops, Mapping) else [(None, stops)]:
        inelastic = isinstance(stop, str) and stop == "inelastic"
        if not inelastic and not isinstance(stop, SpringStop):
            of = "" if joint is None else f" of {joint!r}"
            raise ScrewdynError(f"stops must be 'inelastic' or a SpringStop{of}, or a mapping to them; got {stop!r}")
        if joint is None or joint in limited:
            continue
        names = tuple(dict(joints))
        if joint in names:
            raise ScrewdynError(f"joint {joint!r} has no limits, so it cannot have a stop; give limits= of the joint")
        raise UnknownNameError.of(joint, names, "joint")


class SpringStops:
    """The springs at the limits of one tree.

    While none begins or ceases to press, the force is continuous. A spring that leaves its limit more slowly than the
    joint does not pull; its energy is then dissipated.

    Parameters
    ----------
    limits : Limits
    stops : sequence of SpringStop
        For each limit.
    q, qd : (nq,) and (nv,) arrays
        The start.
    """

    def __init__(self, limits: Limits, stops: list[SpringStop], q: Array, qd: Array) -> None:
        self.limits, self.count = limits, len(qd)
        reflected = limits.ratio**2
        self.stiffness = reflected * [stop.stiffness for stop in stops]
        self.damping = reflected * [stop.damping for stop in stops]
        x = limits.excess(q)
        self.pressed = (x > 0) | ((x == 0) & (limits.approach(qd) > 0))

    def energy(self, q: Array) -> Array:
        """½ Σ stiffness x² of the distances x > 0 beyond the limits, (…), J."""
        return np.asarray(0.5 * np.maximum(self.limits.excess(q), 0) ** 2 @ self.stiffness)

    def force(self, q: Array, qd: Array) -> tuple[Array, float]:
        """Force on the freedoms, (nv,), N m or N, and the power that is dissipated, W."""
        limits = self.limits
        rate = limits.approach(qd)
        spring = self.stiffness * limits.excess(q)
        push = np.maximum(spring + self.damping * rate, 0) * self.pressed
        force = np.zeros(self.count)
        np.add.at(force, limits.rows, -limits.sign * push)
        return force, float((push - spring * self.pressed) @ rate)

    def levels(self, q: Array) -> Array:
        """A number for each limit that rises through zero when its spring begins or ceases to press."""
        x = self.limits.excess(q)
        return np.where(self.pressed, -x, x)

    def change(self, k: int, q: Array) -> None:
        """Let a spring begin or cease to press, and set its position in q, which differs from the limit by rounding."""
        q[self.limits.where[k]] = self.limits.values[k]
        self.pressed[k] ^= True
