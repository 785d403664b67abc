"""Events of a simulation: changes of the tree at given times or on conditions, and their outcomes."""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import ClassVar, Literal

import numpy as np

from screwdyn.core.errors import ScrewdynError
from screwdyn.core.types import ArrayLike
from screwdyn.mechanism.inertia import Inertia
from screwdyn.mechanism.joint import Joint
from screwdyn.mechanism.shape import Shapes
from screwdyn.mechanism.structure import Handle
from screwdyn.physics.model import Robot
from screwdyn.physics.state import State
from screwdyn.simulation import rearrange
from screwdyn.simulation.equations import joints_of
from screwdyn.simulation.impact import Payload, Twist, brings_its_motion, grasp, payload_twist, release
from screwdyn.simulation.outcomes import (
    Change,
    FreeBody,
    GraspEvent,
    ImpactEvent,
    LimitEvent,
    LockEvent,
    LoopEvent,
    ReleaseEvent,
)
from screwdyn.simulation.rearrange import Start

__all__ = [
    "Condition",
    "Grasp",
    "HandOver",
    "Happened",
    "Lock",
    "Release",
    "ReplaceJoint",
    "Scheduled",
    "SetInertia",
    "Unlock",
    "seconds",
]

Condition = Callable[[float, State], float | bool]


def seconds(what: str, value: object, *, positive: bool = False) -> float:
    """Check a time in seconds and return it as a float.

    Raises
    ------
    ScrewdynError
        If it is not a finite number >= 0, or > 0 if ``positive``.
    """
    number = float(value) if isinstance(value, Real) else math.nan
    if not math.isfinite(number) or number < 0 or (positive and number == 0):
        least = "> 0" if positive else ">= 0"
        raise ScrewdynError(f"{what} must be a finite number of seconds {least}; got {value!r}")
    return number


@dataclass(frozen=True, kw_only=True, eq=False)
class Scheduled(ABC):
    """A change of the tree at a time, or as soon as a condition holds."""

    # For figures and texts: "grasp".
    verb: ClassVar[str]

    time: float | None = None
    when: Condition | None = None

    def __post_init__(self) -> None:
        kind = type(self).__name__
        if (self.time is None) == (self.when is None):
            raise ScrewdynError(f"a {kind} needs either time= or when=")
        if self.time is not None:
            object.__setattr__(self, "time", seconds(f"the time of a {kind}", self.time))
        elif not callable(self.when):
            raise ScrewdynError(f"when= of a {kind} must be a function of (t, state); got {self.when!r}")

    @abstractmethod
    def happen(self, tree: Robot, state: State) -> Change:
        """Change the tree, which is in the given state. After an error, tree and state are unchanged."""

    def joints(self, tree: Robot) -> Mapping[str, Joint]:
        """The joints that it brings, by name, in a run that begins with the tree."""
        return {}

    def level(self, t: float, state: State) -> float:
        """A number that is positive if and only if the event is due at time t in the given state.

        Raises
        ------
        ScrewdynError
            If the condition returns neither a finite number nor a truth value.
        """
        if self.time is not None:
            return 1.0 if t >= self.time else -1.0
        value = self.when(t, state) if self.when else None
        if isinstance(value, bool | np.bool_):
            return 1.0 if value else -1.0
        try:
            level = math.nan if value is None else float(value)
        except (TypeError, ValueError):
            level = math.nan
        if not math.isfinite(level):
            raise ScrewdynError(
                f"when= of a {type(self).__name__} must return a finite number, True or False; "
                f"it returned {value!r} at t = {t:g} s"
            )
        # 0 becomes negative: SciPy would treat two successive zeros as a rise through zero.
        return level if level > 0 else min(level, -sys.float_info.min)


@dataclass(frozen=True, eq=False)
class Grasp(Scheduled):
    """A grasp at a time or on a condition in :func:`simulate` (docs/mathematics.md §6).

    Parameters
    ----------
    body, to, twist, joint, at, name, body_state, prefix, pose, start, shape
        As for :meth:`KinematicTree.grasp`.
    time : float
        In seconds, on the clock of the run, which begins at ``t0``; or
    when : callable (t, state) -> float or bool
        The event is due as soon as this returns True or a number > 0. The time of a smooth change of sign is located
        with the smallest error. The function is called from the start of the run, at least once every ``step``, with
        the state of the tree at that time.

    Raises
    ------
    ScrewdynError
        Unless exactly one of a valid ``time`` and a callable ``when`` is given.
    ShapeError
        If ``twist`` is missing for a payload that does not bring its motion.
    """

    verb = "grasp"

    body: Payload
    to: str = field(kw_only=True)
    twist: Twist | None = field(default=None, kw_only=True)
    joint: Joint | None = field(default=None, kw_only=True)
    at: ArrayLike | None = field(default=None, kw_only=True)
    name: str | None = field(default=None, kw_only=True)
    body_state: State | None = field(default=None, kw_only=True)
    prefix: str = field(default="", kw_only=True)
    pose: ArrayLike | None = field(default=None, kw_only=True)
    start: Start | Literal["hanging"] | None = field(default=None, kw_only=True)
    shape: Shapes | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.twist is None and not brings_its_motion(self.body):
            payload_twist(None, np.zeros(6))

    def happen(self, tree: Robot, state: State) -> GraspEvent:
        """Grasp the payload; errors as for :meth:`KinematicTree.grasp`."""
        return grasp(
            tree,
            state,
            self.body,
            to=self.to,
            twist=self.twist,
            joint=self.joint,
            at=self.at,
            name=self.name,
            body_state=self.body_state,
            prefix=self.prefix,
            pose=self.pose,
            start=self.start,
            shape=self.shape,
        )

    def joints(self, tree: Robot) -> Mapping[str, Joint]:
        """That of the grasp, and those of the payload."""
        if isinstance(self.body, Handle | str):
            return _joint_of(_name(self.body), self.joint)
        body = self.body.tree if isinstance(self.body, FreeBody) else self.body
        # A rotor may have a carrier in the tree.
        joint = replace(self.joint, rotor=None) if isinstance(self.joint, Joint) else self.joint
        alone = type(tree)(tree.base)
        try:
            alone.attach(body, alone.base, joint, name=self.name, prefix=self.prefix)
        except ScrewdynError:  # the event raises it when it happens
            return {}
        return joints_of(alone)


@dataclass(frozen=True, eq=False)
class Release(Scheduled):
    """A release at a time or on a condition in :func:`simulate` (docs/mathematics.md §6).

    Parameters
    ----------
    what : str or Handle
        The link to be detached.
    into_world : bool
        Keep it in the tree as a free body, as for :meth:`KinematicTree.release`.
    time, when
        As for :class:`Grasp`, with the same errors.
    """

    verb = "release"

    what: str | Handle
    into_world: bool = field(default=False, kw_only=True)

    def happen(self, tree: Robot, state: State) -> ReleaseEvent:
        """Release the payload; errors as for :meth:`KinematicTree.release`."""
        return release(tree, state, self.what, into_world=self.into_world)


@dataclass(frozen=True, eq=False)
class HandOver(Scheduled):
    """A payload passes from one hand to the other, by its own joint unless another one is given, in :func:`simulate`.

    Unlike a release and a grasp, nothing flies in between: there is one impact (docs/mathematics.md §6).

    Parameters
    ----------
    what : str or Handle
        The payload, which may be any link with all links beyond it.
    to, joint, at, start
        As for :meth:`KinematicTree.move`.
    time, when
        As for :class:`Grasp`, with the same errors.
    """

    verb = "hand over"

    what: str | Handle
    to: str
    joint: Joint | None = field(default=None, kw_only=True)
    at: ArrayLike | None = field(default=None, kw_only=True)
    start: Start | None = field(default=None, kw_only=True)

    def happen(self, tree: Robot, state: State) -> ImpactEvent:
        """Move the payload; errors as for :meth:`KinematicTree.move`."""
        return rearrange.move(tree, state, self.what, self.to, self.joint, self.at, self.start)

    def joints(self, tree: Robot) -> Mapping[str, Joint]:
        """That of the payload, if it is given."""
        return _joint_of(_name(self.what), self.joint)


@dataclass(frozen=True, eq=False)
class Lock(Scheduled):
    """A joint is locked where it is, at a time or on a condition in :func:`simulate`.

    Parameters
    ----------
    joint : str
        As for :meth:`KinematicTree.lock`.
    time, when
        As for :class:`Grasp`, with the same errors.
    """

    verb = "lock"

    joint: str

    def happen(self, tree: Robot, state: State) -> LockEvent:
        """Lock the joint; errors as for :meth:`KinematicTree.lock`."""
        return rearrange.lock(tree, state, self.joint)


@dataclass(frozen=True, eq=False)
class Unlock(Scheduled):
    """A locked joint is freed, at a time or on a condition in :func:`simulate`.

    Parameters and errors as for :class:`Lock`.
    """

    verb = "unlock"

    joint: str

    def happen(self, tree: Robot, state: State) -> LockEvent:
        """Unlock the joint; errors as for :meth:`KinematicTree.unlock`."""
        return rearrange.unlock(tree, state, self.joint)


@dataclass(frozen=True, eq=False)
class ReplaceJoint(Scheduled):
    """A link gets another joint, at a time or on a condition in :func:`simulate`.

    Parameters
    ----------
    link, joint
        As for :meth:`KinematicTree.replace_joint`.
    time, when
        As for :class:`Grasp`, with the same errors.
    """

    verb = "replace joint of"

    link: str | Handle
    joint: Joint

    def happen(self, tree: Robot, state: State) -> ImpactEvent:
        """Replace the joint; errors as for :meth:`KinematicTree.replace_joint`."""
        return rearrange.replace_joint(tree, state, self.link, self.joint)

    def joints(self, tree: Robot) -> Mapping[str, Joint]:
        """The new joint; without a name, it takes that of the former one."""
        name = _name(self.link)
        former = tree.topology.attachments.get(name)
        return _joint_of(former.name if former else name, self.joint)


@dataclass(frozen=True, eq=False)
class SetInertia(Scheduled):
    """A link gets another inertia, at a time or on a condition in :func:`simulate`.

    Parameters
    ----------
    link, inertia
        As for :meth:`KinematicTree.set_inertia`.
    time, when
        As for :class:`Grasp`, with the same errors.
    """

    verb = "set inertia of"

    link: str | Handle
    inertia: Inertia | None

    def happen(self, tree: Robot, state: State) -> Change:
        """Set the inertia; errors as for :meth:`KinematicTree.set_inertia`."""
        return rearrange.set_inertia(tree, state, self.link, self.inertia)


def _name(link: str | Handle) -> str:
    """The name of a link; of anything else, what the event names in its error when it happens."""
    return link.name if isinstance(link, Handle) else str(link)


def _joint_of(name: str, joint: Joint | None) -> dict[str, Joint]:
    """A new joint by its name, or by this one if it has none; nothing unless it is a joint."""
    return {joint.name or name: joint} if isinstance(joint, Joint) else {}


@dataclass(frozen=True, eq=False)
class Happened:
    """One change of the tree in a run, or a joint that reached its limit.

    Attributes
    ----------
    t : float
        Time, s.
    what : Grasp, Release, … or None
        The event as it was passed to :func:`simulate`; None for a limit that was reached.
    event : GraspEvent, ReleaseEvent, … or LimitEvent
        Its outcome.
    """

    t: float
    what: Scheduled | None
    event: Change

    @property
    def verb(self) -> str:
        """What happened, such as ``"grasp"`` or ``"reach limit of"``."""
        return "reach limit of" if self.what is None else self.what.verb

    @property
    def link(self) -> str:
        """Name of the link that it concerns, such as the one that was attached or released."""
        return self.event.link

    @property
    def subject(self) -> str:
        """Name of what it concerns, for figures and texts: the joint of a lock or a limit, a loop, or the link."""
        if isinstance(self.event, LoopEvent):
            return self.event.loop
        return self.event.joint if isinstance(self.event, LockEvent | LimitEvent) else self.event.link
