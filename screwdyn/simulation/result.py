"""What is to happen in a simulation, and what came of it."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np

from screwdyn.core.errors import ScrewdynError, UnknownLinkError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.forms.tree_forms import Forms
from screwdyn.mechanism.joint import Joint
from screwdyn.mechanism.topology import Body, Handle
from screwdyn.simulation.impact import GraspEvent, ReleaseEvent, Twist, grasp, release
from screwdyn.simulation.state import State

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Condition", "Energy", "Grasp", "Happened", "Release", "Run", "seconds"]

Condition = Callable[[float, State], float | bool]


def seconds(what: str, value: object) -> float:
    """A time, as a float.

    Raises
    ------
    ScrewdynError
        If it is not a finite number >= 0.
    """
    number = float(value) if isinstance(value, Real) else math.nan
    if not (math.isfinite(number) and number >= 0):
        raise ScrewdynError(f"{what} must be a finite number of seconds >= 0; got {value!r}")
    return number


@dataclass(frozen=True, kw_only=True, eq=False)
class _Timed:
    """When something happens: at a time, or as soon as a condition holds."""

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

    def level(self, t: float, state: State) -> float:
        """The condition as a number that is positive from the moment on at which the event is to happen.

        Raises
        ------
        ScrewdynError
            If the condition gives something else than a number or a truth value.
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
                f"when= of a {type(self).__name__} must give a finite number, True or False; "
                f"it gave {value!r} at t = {t:g} s"
            )
        # The integrator takes a step from zero to zero for a rise through zero.
        return level if level > 0 else min(level, -sys.float_info.min)


@dataclass(frozen=True, eq=False)
class Grasp(_Timed):
    """A payload to be picked up in a simulation.

    Parameters
    ----------
    body, to, twist, joint, at, name, body_state
        As for :meth:`KinematicTree.grasp`.
    time : float
        When, in seconds from the start; or
    when : callable (t, state) -> float or bool
        As soon as the value is true or positive; zero is not yet. A number that changes its sign smoothly is located
        most exactly. It is asked from the start of the run, over the coordinates of that time, and once a ``step``
        at least.
    """

    body: Body
    to: str = field(kw_only=True)
    twist: Twist = field(kw_only=True)
    joint: Joint | None = field(default=None, kw_only=True)
    at: ArrayLike | None = field(default=None, kw_only=True)
    name: str | None = field(default=None, kw_only=True)
    body_state: State | None = field(default=None, kw_only=True)

    def happen(self, tree: Forms, state: State) -> GraspEvent:
        """Do it now."""
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
        )


@dataclass(frozen=True, eq=False)
class Release(_Timed):
    """A payload to be let go in a simulation; ``time`` and ``when`` as for :class:`Grasp`.

    Parameters
    ----------
    what : str or Handle
        The attached link.
    """

    what: str | Handle

    def happen(self, tree: Forms, state: State) -> ReleaseEvent:
        """Do it now."""
        return release(tree, state, self.what)


@dataclass(frozen=True, eq=False)
class Happened:
    """One grasp or release of a run: when, what was asked for, and what it did."""

    t: float
    what: Grasp | Release
    event: GraspEvent | ReleaseEvent

    @property
    def verb(self) -> str:
        """``"grasp"`` or ``"release"``."""
        return type(self.what).__name__.lower()

    @property
    def payload(self) -> str:
        """Name of the link that was attached or released."""
        return self.event.handle.name if isinstance(self.event, GraspEvent) else self.event.released.tree.base


@dataclass(frozen=True, eq=False)
class Energy:
    """The energy ledger of a run, J; every entry is (samples,).

    Attributes
    ----------
    kinetic, potential : arrays
        Of the tree as it is at that time; ``potential`` holds gravity and the joints' springs.
    work : array
        Done so far by the torques.
    dissipated : array
        Turned to heat so far by damping and friction in the joints.
    impact_loss : array
        Turned to heat so far by grasps.
    exchanged : array
        Brought in so far by payloads that were picked up, minus what those let go took with them; their kinetic
        energy is computed from them alone.
    """

    kinetic: Array
    potential: Array
    work: Array
    dissipated: Array
    impact_loss: Array
    exchanged: Array

    @property
    def total(self) -> Array:
        """Kinetic and potential."""
        return self.kinetic + self.potential

    @property
    def residual(self) -> Array:
        """What the books do not explain: the integrator's error, zero but for that."""
        explained = self.work - self.dissipated - self.impact_loss + self.exchanged
        return np.asarray(self.total - self.total[0] - explained)


@dataclass(frozen=True, eq=False)
class Run:
    """A simulated motion.

    Attributes
    ----------
    t : (samples,) array
        Seconds; the time of an event comes twice, just before and just after.
    states : tuple of State
        One per sample, over the coordinates of that time.
    torques : tuple of arrays
        Applied torques, one per sample, over the same coordinates.
    energy : Energy
    events : tuple of Happened
    joints : mapping from coordinate to Joint
        Every joint that could move at some time, also one that has been let go.
    tree : KinematicTree
        As it is at the end.

    Notes
    -----
    ``run["elbow"]`` is the history of a coordinate, (samples,), NaN while the tree does not have it;
    :meth:`velocity` and :meth:`torque` likewise.
    """

    t: Array
    states: tuple[State, ...]
    torques: tuple[Array, ...]
    energy: Energy
    events: tuple[Happened, ...]
    joints: Mapping[str, Joint]
    tree: Forms

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Every coordinate that the tree had at some time."""
        return tuple(self.joints)

    def __getitem__(self, coordinate: str) -> Array:
        """Positions of one coordinate over time."""
        return self._history(coordinate, [state.q for state in self.states])

    def velocity(self, coordinate: str) -> Array:
        """Rates of one coordinate over time."""
        return self._history(coordinate, [state.qd for state in self.states])

    def torque(self, coordinate: str) -> Array:
        """Torque applied to one coordinate over time."""
        return self._history(coordinate, self.torques)

    def plot(self) -> Figure:
        """Joint positions, torques and energy over time; needs the ``plot`` extra."""
        from screwdyn.views.plot import plot_run

        return plot_run(self)

    def _history(self, coordinate: str, values: Sequence[Array]) -> Array:
        if coordinate not in self.coordinates:
            raise UnknownLinkError.of(coordinate, self.coordinates, "coordinate")
        return np.array(
            [
                x[state.coordinates.index(coordinate)] if coordinate in state.coordinates else np.nan
                for state, x in zip(self.states, values, strict=True)
            ]
        )
