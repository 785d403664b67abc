"""The result of a simulation: histories, events and the energy ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, overload

import numpy as np

from screwdyn.core.errors import UnknownNameError
from screwdyn.core.types import Array
from screwdyn.mechanism.joint import Joint
from screwdyn.physics.robot import Robot
from screwdyn.simulation.events import Condition, Grasp, Happened, Release, seconds
from screwdyn.simulation.motion import Motion
from screwdyn.simulation.state import State

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Includes the events, which were defined here before.
__all__ = ["Condition", "Energy", "Grasp", "Happened", "Release", "Run", "seconds"]


@dataclass(frozen=True, eq=False, repr=False)
class Energy:
    """The energy ledger of a run, J; every entry is (samples,).

    Attributes
    ----------
    kinetic, potential : arrays
        Of the tree as it was at that time; ``potential`` includes gravity and the springs of joints.
    work : array
        Work of the torques up to that time.
    dissipated : array
        Energy dissipated by damping and friction in the joints up to that time.
    impact_loss : array
        Kinetic energy dissipated by changes of the tree, such as grasps, up to that time.
    exchanged : array
        Energy of the payloads grasped up to that time, minus that of the payloads released. Their kinetic energy is
        computed from the payloads alone, so that :attr:`residual` checks the momentum balance.
    external : array
        Work of the external wrenches up to that time.
    """

    kinetic: Array
    potential: Array
    work: Array
    dissipated: Array
    impact_loss: Array
    exchanged: Array
    external: Array

    @property
    def total(self) -> Array:
        """Sum of kinetic and potential energy, J."""
        return self.kinetic + self.potential

    @property
    def residual(self) -> Array:
        """Change of :attr:`total` minus the balance of the other entries, J: the error of the integration."""
        explained = self.work + self.external - self.dissipated - self.impact_loss + self.exchanged
        return np.asarray(self.total - self.total[0] - explained)

    def __repr__(self) -> str:
        total, worst = self.total, np.abs(self.residual).max()
        return f"<{type(self).__name__}: {total[0]:.4g} J to {total[-1]:.4g} J, largest residual {worst:.1g} J>"


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """A simulated motion; see :func:`simulate`.

    Attributes
    ----------
    motions : tuple of Motion
        The parts of the run between changes of the tree.
    energy : Energy
    events : tuple of Happened
    joints : mapping from name to Joint
        The joint of every coordinate and every position that the tree had at some time.
    tree : KinematicTree
        The simulated tree, which the events have changed.

    Notes
    -----
    ``run["elbow"]`` and ``run["hip[x]"]`` are histories of positions. :meth:`velocity` and :meth:`torque` return
    histories of coordinates, such as ``"elbow"`` and ``"hip[wx]"``. Histories are NaN while the tree does not have the
    joint.
    """

    motions: tuple[Motion, ...]
    energy: Energy
    events: tuple[Happened, ...]
    joints: Mapping[str, Joint]
    tree: Robot

    @cached_property
    def t(self) -> Array:
        """Times of the samples, (samples,), s. The time of an event appears twice: just before and just after it."""
        return np.concatenate([motion.t for motion in self.motions])

    @property
    def states(self) -> Sequence[State]:
        """The state at each sample; ``state.tree`` is a copy of the tree as it was at that time."""
        return _States(self.motions)

    @property
    def torques(self) -> tuple[Array, ...]:
        """Applied torques, N m or N: for each sample an array over the coordinates of its state."""
        return tuple(tau for motion in self.motions for tau in motion.torque)

    @cached_property
    def coordinates(self) -> tuple[str, ...]:
        """Every coordinate that the tree had at some time."""
        return tuple(dict.fromkeys(name for motion in self.motions for name in motion.coordinates))

    @cached_property
    def positions(self) -> tuple[str, ...]:
        """Every position that the tree had at some time."""
        return tuple(dict.fromkeys(name for motion in self.motions for name in motion.positions))

    @cached_property
    def q(self) -> Array:
        """Positions, (samples, positions), in the order of :attr:`positions`; NaN while the tree does not have them."""
        return _table(self.positions, [(motion.positions, motion.q) for motion in self.motions])

    @cached_property
    def qd(self) -> Array:
        """Rates, (samples, coordinates), in the order of :attr:`coordinates`; NaN while the tree does not have them."""
        return _table(self.coordinates, [(motion.coordinates, motion.qd) for motion in self.motions])

    @cached_property
    def tau(self) -> Array:
        """Torques, N m or N, (samples, coordinates); NaN while the tree does not have them.

        With ``control_period`` a sample at the time of a call has the new torques.
        """
        return _table(self.coordinates, [(motion.coordinates, motion.torque) for motion in self.motions])

    def __getitem__(self, position: str) -> Array:
        """Values of one position, (samples,), rad, m or a component of a quaternion.

        Raises UnknownNameError if the tree never had it.
        """
        return self.q[:, _index(position, self.positions)].copy()

    def velocity(self, coordinate: str) -> Array:
        """Rates of one coordinate, (samples,), rad/s or m/s.

        Raises UnknownNameError if the tree never had it.
        """
        return self.qd[:, _index(coordinate, self.coordinates)].copy()

    def torque(self, coordinate: str) -> Array:
        """Torques applied to one coordinate, (samples,), N m or N.

        Raises UnknownNameError if the tree never had it.
        """
        return self.tau[:, _index(coordinate, self.coordinates)].copy()

    def plot(self) -> Figure:
        """Draw joint positions, torques and energy over time.

        Returns
        -------
        matplotlib.figure.Figure
            ``run.plot().savefig("run.png")`` writes it.

        Raises
        ------
        ScrewdynError
            If Matplotlib, the extra ``plot``, is not installed.
        """
        from screwdyn.views.plot import plot_run

        return plot_run(self)

    def __repr__(self) -> str:
        names = self.coordinates
        some = ", ".join(names if len(names) <= 6 else [*names[:5], "…", names[-1]])
        return (
            f"<{type(self).__name__}: {self.t[-1] - self.t[0]:.6g} s, {len(self.t)} samples, "
            f"{len(self.events)} events, {len(names)} coordinates ({some})>"
        )


class _States(Sequence[State]):
    """The states of some motions, which are made when they are asked for."""

    def __init__(self, motions: Sequence[Motion]) -> None:
        self._motions = motions
        self._ends = np.cumsum([len(motion.t) for motion in motions])

    def __len__(self) -> int:
        return int(self._ends[-1])

    @overload
    def __getitem__(self, index: int) -> State: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[State, ...]: ...
    def __getitem__(self, index: int | slice) -> State | tuple[State, ...]:
        if isinstance(index, slice):
            return tuple(self[k] for k in range(*index.indices(len(self))))
        k = range(len(self))[index]
        at = int(np.searchsorted(self._ends, k, side="right"))
        motion = self._motions[at]
        return motion.state(k - int(self._ends[at]) + len(motion.t))


def _table(names: tuple[str, ...], parts: Sequence[tuple[tuple[str, ...], Array]]) -> Array:
    """Rows of several arrays with named columns, below each other; NaN where an array does not have the column."""
    rows = []
    for known, x in parts:
        table = np.full((len(x), len(names)), np.nan)
        table[:, [names.index(name) for name in known]] = x
        rows.append(table)
    return np.concatenate(rows)


def _index(name: str, known: tuple[str, ...]) -> int:
    if name not in known:
        raise UnknownNameError.of(name, known, "coordinate")
    return known.index(name)
