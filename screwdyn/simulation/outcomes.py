"""Outcomes of changes of a moving tree, and bodies that move freely."""

from __future__ import annotations

import math
from dataclasses import dataclass

from screwdyn.core.errors import ShapeError
from screwdyn.core.types import Array
from screwdyn.forms.configurations import Side
from screwdyn.mechanism.structure import Handle
from screwdyn.physics.model import Robot
from screwdyn.physics.state import State
from screwdyn.simulation import momentum

__all__ = ["Change", "FreeBody", "GraspEvent", "ImpactEvent", "LimitEvent", "LockEvent", "LoopEvent", "ReleaseEvent"]


@dataclass(frozen=True, eq=False)
class FreeBody:
    """A payload that moves freely, before a grasp or after a release.

    Attributes
    ----------
    tree : KinematicTree
        The payload; its base is the link that is attached or was attached. Gravity is in that link's frame.
    pose : (4, 4) array
        Of that link's frame in the robot's base frame, m.
    twist : (6,) array
        [ω; v] of that link, in its own frame, rad/s and m/s.
    state : State
        Of the payload's own joints.
    """

    tree: Robot
    pose: Array
    twist: Array
    state: State

    @property
    def kinetic_energy(self) -> float:
        """Kinetic energy of the payload including its own joints, J (docs/mathematics.md §6)."""
        return momentum.kinetic_energy(self.tree, self.state.q, self.state.qd, self.twist)


@dataclass(frozen=True, eq=False, kw_only=True)
class Change:
    """Outcome of a change of a moving tree.

    Attributes
    ----------
    state : State
        Of the changed tree, just after the change.
    link : str
        Name of the link that the change concerns.
    energy_lost : float
        Kinetic energy dissipated by the change, J; never negative.
    kinetic_energy_brought : float
        Kinetic energy just before the change of the bodies that it adds to the tree, minus that of the bodies that it
        removes, J; the rotors and armatures of joints are among them. The kinetic energy of the tree increases by
        ``kinetic_energy_brought - energy_lost``.
    """

    state: State
    link: str
    energy_lost: float = 0.0
    kinetic_energy_brought: float = 0.0

    def __post_init__(self) -> None:
        if not math.isfinite(self.energy_lost + self.kinetic_energy_brought):
            raise ShapeError(
                f"the kinetic energy in a change of {self.link!r} is not a finite number; the rates before it are too "
                f"large"
            )


@dataclass(frozen=True, eq=False, kw_only=True)
class ImpactEvent(Change):
    """Outcome of a change that moves a link to another parent or joint: a :class:`Change` with an impulse.

    Attributes
    ----------
    impulse : (6,) array
        [n; f] on the link and all links beyond it, about the origin of the link's frame and in its axes; N m s and N s.
    """

    impulse: Array


@dataclass(frozen=True, eq=False, kw_only=True)
class LockEvent(Change):
    """Outcome of locking or unlocking a joint: a :class:`Change` with the following attributes.

    Attributes
    ----------
    joint : str
        Name of the joint.
    impulse : (k,) array
        Of the lock on the k freedoms of the joint, N m s and N s; zero if the joint was unlocked.
    """

    joint: str
    impulse: Array


@dataclass(frozen=True, eq=False, kw_only=True)
class LoopEvent(Change):
    """Outcome of closing or opening a loop: a :class:`Change` with the following attributes.

    Attributes
    ----------
    loop : str
        Name of the loop; ``link`` is its first link.
    handle : Handle
        For :meth:`KinematicTree.open`; stale if the loop was opened.
    impulse : (6,) array
        [n; f] of ``to`` on ``link``, about the origin of its frame and in its axes, N m s and N s; zero if the loop was
        opened.
    impulses : dict
        From each loop of the tree to its impulse in the impact. Of all impulses that rigid bodies allow, those that are
        least over the constraints.
    """

    loop: str
    handle: Handle
    impulse: Array
    impulses: dict[str, Array]


@dataclass(frozen=True, eq=False, kw_only=True)
class LimitEvent(Change):
    """A coordinate reaches a limit of its joint: a :class:`Change` with the following attributes.

    Attributes
    ----------
    joint, coordinate : str
        Names of the joint and of the coordinate; if the joint follows another one, the coordinate is that of the other.
    side : "lower" or "upper"
        Which limit.
    impulse : (nv,) array
        Of inelastic stops on all coordinates, N m s and N s; zero otherwise. If several coordinates reach stops at the
        same time, the first of their events has the impulse and the energy lost of the common impact.
    """

    joint: str
    coordinate: str
    side: Side
    impulse: Array


@dataclass(frozen=True, eq=False, kw_only=True)
class GraspEvent(ImpactEvent):
    """Outcome of a grasp: an :class:`ImpactEvent`, whose link is the payload's base, with the following attributes.

    Attributes
    ----------
    handle : Handle
        For :meth:`KinematicTree.release`.
    payload : FreeBody
        The payload just before the grasp. Joints of a link of the tree that follow joints of the rest are independent
        in it, and joints whose rotor is on the rest have none.
    """

    handle: Handle
    payload: FreeBody

    @property
    def caught(self) -> FreeBody:
        """Former name of ``payload``."""
        return self.payload


@dataclass(frozen=True, eq=False, kw_only=True)
class ReleaseEvent(Change):
    """Outcome of a release: a :class:`Change`, in which no energy is lost, with the following attributes.

    Attributes
    ----------
    released : FreeBody
        The payload just after the release, without loops to the rest; if it stays in the tree, as the ``payload`` of a
        :class:`GraspEvent`.
    loop : str or None
        The loop on which the payload hangs since then, now the name of a joint; ``None`` for a free payload.
    """

    released: FreeBody
    loop: str | None = None
