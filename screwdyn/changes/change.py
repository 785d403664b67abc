"""A change of a moving tree as a value, its record, and its outcome."""

from __future__ import annotations

import inspect
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import Field, dataclass, fields, is_dataclass
from numbers import Real
from typing import Annotated, Any, ClassVar, Generic, TypeVar

import numpy as np

from screwdyn.core import Array, ArrayLike, errors, expressions, given_fields
from screwdyn.forms.configurations import Side
from screwdyn.io.json_text import write_part
from screwdyn.mechanism import Inertia, Joint, Link, Shape
from screwdyn.mechanism.structure import Handle, Mechanism, Switch
from screwdyn.physics.model import Robot
from screwdyn.physics.state import State, check_current, check_state

# Types of fields, with what files must know besides. Of other fields, `str | Handle` is a link, and `str` a new name.
LinkName = Annotated[str, "link"]
JointName = Annotated[str, "joint"]
LoopRef = Annotated[str | Handle, "loop"]
Pose = Annotated[ArrayLike, "pose"]
Condition = Annotated[Callable[[float, State], float | bool], "condition"]

Outcome = TypeVar("Outcome", bound="Change")
# What fields of these types name, unless they hold a handle or a body.
_NAMED = {"LinkName": "link", "str | Handle": "link", "Payload": "link", "JointName": "joint", "LoopRef": "loop"}
# The fields that say when a change happens.
_DUE = ("time", "when")


def seconds(what: str, value: object, *, positive: bool = False) -> float:
    """A time in seconds as a float; ScrewdynError unless it is a finite number >= 0, or > 0 if ``positive``."""
    number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    if not math.isfinite(number) or number < 0 or (positive and number == 0):
        least = "> 0" if positive else ">= 0"
        raise errors.ScrewdynError(f"{what} must be a finite number of seconds {least}; got {value!r}")
    return number


@dataclass(frozen=True, kw_only=True, eq=False)
class Scheduled(ABC, Generic[Outcome]):
    """A change of the tree at a time, or as soon as a condition holds."""

    # For figures and texts: "grasp".
    verb: ClassVar[str]

    time: float | None = None
    when: Condition | None = None

    def __init_subclass__(cls) -> None:
        """Add to the documentation of a kind where its parameters are described, unless it describes them."""
        if "arameters" not in (doc := inspect.cleandoc(cls.__doc__ or "parameters")):
            given = f"Parameters as for :meth:`KinematicTree.{cls.kind()}` with a state"
            cls.__doc__ = f"{doc}\n\n{given}, ``time`` and ``when`` as for :class:`Grasp`, also their errors."

    def __post_init__(self) -> None:
        kind = type(self).__name__
        if self.time is not None and self.when is not None:
            raise errors.ScrewdynError(f"a {kind} needs either time= or when=, not both")
        if self.time is not None:
            object.__setattr__(self, "time", seconds(f"the time of a {kind}", self.time))
        elif self.when is not None and not callable(self.when):
            raise errors.ScrewdynError(f"when= of a {kind} must be a function of (t, state); got {self.when!r}")

    def __repr__(self) -> str:
        given = ", ".join(f"{field.name}={x!r}" for field, x in self._given())
        return f"{type(self).__name__}({' '.join(given.split())})"  # poses on one line

    def _given(self) -> list[tuple[Field[Any], Any]]:
        """The fields that are not at their defaults, and their values; when it happens comes last."""
        return sorted(given_fields(self), key=lambda given: given[0].name in _DUE)

    @classmethod
    def kind(cls) -> str:
        """What files call the kind: "set_inertia"."""
        return cls.verb.removesuffix(" of").replace(" ", "_")

    def to_dict(self) -> dict[str, Any]:
        """The change as values that JSON can hold, which :func:`read_change` reads.

        The key ``"event"`` has its kind, such as ``"lock"``, and others the arguments that are not the defaults: a
        handle as the name of its link or loop, and joints, inertias and trees as in :meth:`KinematicTree.to_json`.

        Raises
        ------
        JSONError
            If it has a condition ``when=``, numbers with symbols, or numbers that are not finite.
        """
        found: dict[str, Any] = {}
        for field, value in self._given():
            key = field.metadata.get("key", field.name)
            found[key] = _written(value, f"{field.name}= of a {type(self).__name__}")
        return {"event": self.kind()} | found

    def happen(self, tree: Robot, state: State) -> Outcome:
        """Change the tree, which is in the given state. After an error, tree and state are unchanged.

        Errors as for the method of :class:`KinematicTree` that makes this change.
        """
        check_current(state, tree)
        if not isinstance(tree.kinetic_energy(state.q, state.qd), float):  # an error for rates that are too large
            check_state(state, tree)
        before = vars(tree).copy()
        try:
            return self.enact(tree, state)
        except BaseException:
            tree.__dict__ = before  # as after a transaction, whose context takes 2 µs
            raise

    @abstractmethod
    def enact(self, tree: Robot, state: State) -> Outcome:
        """Change the tree, within a transaction, and return the outcome."""

    def restructure(self, tree: Robot) -> None:
        """Make the change without a state, by the method of the tree, which may have the name of the kind."""
        getattr(tree, self.kind())(**{x.name: getattr(self, x.name) for x in fields(self) if x.name not in _DUE})

    def switch(self, tree: Mechanism) -> Switch:
        """What the change does in runs of fixed step, whose tree gets the links that come; see ``forms.switches``.

        ScrewdynError if it is none that rollouts can make.
        """
        raise errors.ScrewdynError(
            f"a rollout cannot contain a {type(self).__name__}, whose structure depends on the state; rollouts have "
            f"Grasp, Release, Lock, Unlock, Close, Open and SetInertia; use simulate for each run"
        )

    def joints(self, tree: Robot) -> Mapping[str, Joint]:
        """The joints that it brings, by name, in a run that begins with the tree."""
        return {}

    def check_names(self, ever: Mapping[str, Collection[str]]) -> None:
        """UnknownNameError for a link, joint or loop that a run never has: neither at its start, nor by its events."""
        for x in fields(self):
            name, what = getattr(self, x.name), _NAMED.get(str(x.type), "")
            if what in ever and isinstance(name, str) and name not in ever[what]:
                raise self.placed(errors.UnknownNameError.of(name, sorted(ever[what]), what))

    def placed(self, error: errors.ScrewdynError, t: float | None = None) -> errors.ScrewdynError:
        """An error of this change in a run, whose message then tells of what and when; t is the time set by default."""
        t = self.time if t is None else t
        due = "" if t is None else f" at t = {t:g} s"
        error.args = (f"the run cannot have the {type(self).__name__}{due}: {error}",)
        return error

    @property
    def watched(self) -> bool:
        """Whether its level must be watched between the times of events."""
        return self.when is not None

    def level(self, t: float, state: State, force: Array | None = None) -> float:
        """A number that is positive if and only if the event is due at time t in the given state.

        ScrewdynError if the condition returns neither a finite number nor a truth value.
        """
        if self.time is not None:
            return 1.0 if t >= self.time else -1.0
        value = self.when(t, state) if self.when else None
        if isinstance(value, bool | np.bool_):
            return 1.0 if value else -1.0
        level = float(expressions.read_or_nan(value, float))
        if not math.isfinite(level):
            raise errors.ScrewdynError(
                f"when= of a {type(self).__name__} must return a finite number, True or False; "
                f"it returned {value!r} at t = {t:g} s"
            )
        # 0 becomes negative: SciPy would treat two successive zeros as a rise through zero.
        return level if level > 0 else min(level, -sys.float_info.min)


def _written(value: Any, what: str) -> Any:
    """A field as JSON can hold it; JSONError for functions, symbols and numbers that are not finite."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if callable(value):
        raise errors.JSONError(f"{what} is a function, which cannot be written; give time= instead")
    if isinstance(value, Handle):
        return value.name
    if isinstance(value, Joint | Inertia | Link | Shape):
        return write_part(value, what)
    if isinstance(value, Robot):
        return write_part(value.topology, what)
    if isinstance(value, State):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {key: _written(x, f"{key!r} in {what}") for key, x in value.items()}
    if is_dataclass(value):  # a FreeBody, or what a loop bears
        found = {x.name: _written(getattr(value, x.name), f"{x.name} of {what}") for x in fields(value)}
        return {"kind": value.kind()} | found if hasattr(value, "kind") else found
    if isinstance(value, list | tuple) and any(isinstance(x, Shape) for x in value):
        return [_written(x, what) for x in value]
    numbers: Array = expressions.read_or_nan(value, expressions.floats)
    if not np.isfinite(numbers).all():
        raise errors.JSONError(f"{what} must be finite numbers to be written; got {value!r}")
    return numbers.tolist()


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
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

    # What it concerns, for figures and texts: the attribute that has the name.
    concerns: ClassVar[str] = "link"

    state: State
    link: str
    energy_lost: float = 0.0
    kinetic_energy_brought: float = 0.0

    @property
    def subject(self) -> str:
        """Name of what it concerns, for figures and texts: a joint, a loop, a contact, or the link."""
        return str(getattr(self, self.concerns))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.subject}, {self.energy_lost:.4g} J lost>"

    def __post_init__(self) -> None:
        if not math.isfinite(self.energy_lost + self.kinetic_energy_brought):
            raise errors.ShapeError(
                f"the kinetic energy in a change of {self.link!r} is not a finite number; the rates before it are too "
                f"large"
            )


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ImpactEvent(Change):
    """Outcome of a change that moves a link to another parent or joint: a :class:`Change` with an impulse.

    Attributes
    ----------
    impulse : (6,) array
        [n; f] on the link and all links beyond it, about the origin of the link's frame and in its axes; N m s and N s.
    """

    impulse: Array


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
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

    concerns = "joint"

    joint: str
    coordinate: str
    side: Side
    impulse: Array


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ContactEvent(Change):
    """Something happens at a contact: a :class:`Change` with the following attributes.

    Attributes
    ----------
    contact : str
        Name of the contact.
    points : tuple of int
        Which of its points.
    change : "touch", "leave", "slip" or "rest"
        Points touch, in an impact or gently; leave; begin to slip; or come to rest, at the end of a slip or of a series
        of bounces, whose time is that of the limit of the series.
    impulse : (k, 3) array
        On ``link`` at these points, in the base frame, N s. If several contacts are in the same impact, the first of
        their events has the energy lost.
    """

    concerns = "contact"

    contact: str
    points: tuple[int, ...]
    change: str
    impulse: Array

    @property
    def verb(self) -> str:
        """For figures and texts: "touch", or "slip at"."""
        return self.change if self.change in ("touch", "leave") else f"{self.change} at"


@dataclass(frozen=True, eq=False)
class Happened:
    """One change of the tree in a run, a joint that reached its limit, or what happens at a contact.

    Attributes
    ----------
    t : float
        Time, s.
    what : Grasp, Release, … or None
        The event as it was passed to :func:`simulate`; None for a limit that was reached, and at contacts.
    event : GraspEvent, ReleaseEvent, …, LimitEvent or ContactEvent
        Its outcome.
    """

    t: float
    what: Scheduled[Any] | None
    event: Change

    def __repr__(self) -> str:
        return f"<{self.verb} {self.subject} at {self.t:.6g} s>"

    @property
    def verb(self) -> str:
        """What happened, such as ``"grasp"`` or ``"reach limit of"``."""
        if isinstance(self.event, ContactEvent):
            return self.event.verb
        return "reach limit of" if self.what is None else self.what.verb

    @property
    def link(self) -> str:
        """Name of the link that it concerns, such as the one that was attached or released."""
        return self.event.link

    @property
    def subject(self) -> str:
        """Name of what it concerns, for figures and texts: a joint, a loop, a contact, or the link."""
        return self.event.subject
