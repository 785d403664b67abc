"""The result of a simulation: histories, events and the energy ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from screwdyn.core.errors import UnknownNameError
from screwdyn.core.types import Array
from screwdyn.mechanism.joint import Joint
from screwdyn.physics.robot import Robot
from screwdyn.simulation.events import Condition, Grasp, Happened, Release, seconds
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
    t : (samples,) array
        Seconds. The time of an event appears twice: just before and just after it.
    states : tuple of State
        One for each sample; ``state.tree`` is a copy of the tree as it was at that time.
    torques : tuple of arrays
        Applied torques, N m or N: for each sample an array over the coordinates of its state.
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

    t: Array
    states: tuple[State, ...]
    torques: tuple[Array, ...]
    energy: Energy
    events: tuple[Happened, ...]
    joints: Mapping[str, Joint]
    tree: Robot

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Every coordinate that the tree had at some time."""
        return tuple(dict.fromkeys(name for state in self.states for name in state.coordinates))

    @property
    def positions(self) -> tuple[str, ...]:
        """Every position that the tree had at some time."""
        return tuple(dict.fromkeys(name for state in self.states for name in state.positions))

    def __getitem__(self, position: str) -> Array:
        """Values of one position, (samples,), rad, m or a component of a quaternion.

        Raises UnknownNameError if the tree never had it.
        """
        return _history(position, self.positions, [(state.positions, state.q) for state in self.states])

    def velocity(self, coordinate: str) -> Array:
        """Rates of one coordinate, (samples,), rad/s or m/s.

        Raises UnknownNameError if the tree never had it.
        """
        return _history(coordinate, self.coordinates, [(state.coordinates, state.qd) for state in self.states])

    def torque(self, coordinate: str) -> Array:
        """Torques applied to one coordinate, (samples,), N m or N.

        Raises UnknownNameError if the tree never had it.
        """
        torques = zip(self.states, self.torques, strict=True)
        return _history(coordinate, self.coordinates, [(state.coordinates, tau) for state, tau in torques])

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
            f"<{type(self).__name__}: {self.t[-1]:.6g} s, {len(self.t)} samples, {len(self.events)} events, "
            f"{len(names)} coordinates ({some})>"
        )


def _history(name: str, known: tuple[str, ...], samples: Sequence[tuple[tuple[str, ...], Array]]) -> Array:
    """The entry of that name of each sample's array; NaN where the sample does not have it."""
    if name not in known:
        raise UnknownNameError.of(name, known, "coordinate")
    return np.array([x[names.index(name)] if name in names else np.nan for names, x in samples])
