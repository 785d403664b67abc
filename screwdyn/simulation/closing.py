"""Closing and opening of loops in motion: the impact, and events of a simulation (docs/mathematics.md §12)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import overload

import numpy as np

from screwdyn.core.types import ArrayLike
from screwdyn.mechanism.joint import Joint
from screwdyn.mechanism.structure import Handle, Mechanism
from screwdyn.physics.closure import Closure
from screwdyn.physics.model import Robot
from screwdyn.physics.state import State, check_state
from screwdyn.screws import screw
from screwdyn.simulation import momentum
from screwdyn.simulation.events import Scheduled
from screwdyn.simulation.outcomes import LoopEvent

__all__ = ["Close", "Closing", "Open"]


def close(
    tree: Robot, state: State, link: str, to: str, joint: Joint | None, at: ArrayLike | None, name: str | None
) -> LoopEvent:
    """See :meth:`KinematicTree.close`."""
    check_state(state, tree)
    if at is None:
        at = screw.inverse(tree.forward_kinematics(to, state.q)) @ tree.forward_kinematics(link, state.q)
    with tree.transaction():
        handle = Mechanism.close(tree, link, to, joint, at, name)
        closure = Closure(tree, tree.model)
        closure.check(state.q, "move the links together before they are connected, or leave out at=")
        q, _ = closure.closed(state.q)
        impact = momentum.Loops(tree, q, state.qd)
        after = State(tree, q, state.qd + impact.allowed(np.zeros(tree.nv)))
        # The rates are those before, in a configuration without the gap that counts as rounding.
        moved = float(tree.kinetic_energy(q, state.qd) - tree.kinetic_energy(state.q, state.qd))
        own = {loop.name: N @ impact.impulses[rows] for loop, N, rows in closure.own()}
        return LoopEvent(
            state=after,
            link=link,
            loop=handle.name,
            handle=handle,
            energy_lost=impact.lost,
            kinetic_energy_brought=moved,
            impulse=own[handle.name],
            impulses=own,
        )


def open_loop(tree: Robot, state: State, what: Handle | str) -> LoopEvent:
    """See :meth:`KinematicTree.open`."""
    check_state(state, tree)
    with tree.transaction():
        loop = tree.loop(what.name if isinstance(what, Handle) else what)
        handle = Handle(loop.name, loop.serial)
        Mechanism.open(tree, what)
        after, none = State(tree, state.q, state.qd), np.zeros(6)
        return LoopEvent(state=after, link=loop.link, loop=loop.name, handle=handle, impulse=none, impulses={})


class Closing(Robot):
    """Closing and opening of loops, at rest or in motion."""

    @overload
    def close(
        self,
        link: str,
        to: str,
        joint: Joint | None = None,
        at: ArrayLike | None = None,
        name: str | None = None,
        state: None = None,
    ) -> Handle: ...
    @overload
    def close(
        self,
        link: str,
        to: str,
        joint: Joint | None = None,
        at: ArrayLike | None = None,
        name: str | None = None,
        *,
        state: State,
    ) -> LoopEvent: ...
    def close(
        self,
        link: str,
        to: str,
        joint: Joint | None = None,
        at: ArrayLike | None = None,
        name: str | None = None,
        state: State | None = None,
    ) -> Handle | LoopEvent:
        """Connect two links by a joint that the tree does not have, which closes a loop (docs/mathematics.md §12).

        Parameters
        ----------
        link, to : str
            The links. As for :meth:`attach`, ``link`` is on the side of the joint's screws.
        joint : Joint, optional
            In the frame of ``link``; fixed by default. Its motions must form a group: revolute, prismatic, helical,
            cylindrical, planar, spherical or fixed. It has no coordinates, motor or force of its own.
        at : (4, 4) pose or (3,) position, optional
            Pose of ``link`` in ``to`` while the joint is neutral, m. Without a state, the identity by default. With a
            state, the present pose by default.
        name : str, optional
            Name of the loop; ``<link>-<to>`` by default.
        state : State, optional
            Of the tree just before. Closing is then an impact: of all rates that the loops allow, those after it are
            nearest to those before it in the metric of M.

        Returns
        -------
        Handle or LoopEvent
            The handle identifies the loop in :meth:`open`. With a state: the state just after, the impulse, the energy
            lost, and the handle.

        Raises
        ------
        UnknownNameError, TopologyError, JointError, ShapeError
            If a link is unknown or a rotor, both are the same, the name is taken, the joint cannot close a loop, or
            ``at`` is not a pose.
        LoopError
            With a state: if a loop is open by more than 1e-6 m or rad; the message states by how much and where.
        StaleHandleError, SingularAttachmentError
            If the state does not belong to the present tree, or a joint feels no inertia.

        Notes
        -----
        After an error, the tree is unchanged.

        Examples
        --------
        >>> import screwdyn as sd
        >>> tree = sd.KinematicTree()
        >>> for name in ("left", "right"):
        ...     _ = tree.attach(sd.Inertia.rod(1, 1, com=(0.5, 0, 0)), to="base", joint=sd.revolute("z"), name=name)
        >>> event = tree.close("right", to="left", state=sd.State(tree, [0.0, 0.5], [1.0, 0.0]))
        >>> print(event.state.qd.round(12), round(event.energy_lost, 12))
        [0.5 0.5] 0.083333333333
        """
        if state is None:
            return Mechanism.close(self, link, to, joint, at, name)
        return close(self, state, link, to, joint, at, name)

    @overload
    def open(self, what: Handle | str, state: None = None) -> None: ...
    @overload
    def open(self, what: Handle | str, state: State) -> LoopEvent: ...
    def open(self, what: Handle | str, state: State | None = None) -> LoopEvent | None:
        """Remove the joint of a loop.

        Parameters
        ----------
        what : Handle or str
            The result of :meth:`close`, or the name of the loop.
        state : State, optional
            Of the tree just before. All rates continue.

        Returns
        -------
        LoopEvent or None
            With a state: the state just after; there is no impulse, and no energy is lost.

        Raises
        ------
        UnknownNameError, StaleHandleError
            If there is no such loop, the handle is that of a loop that has been opened, or the state does not belong to
            the present tree.
        """
        if state is None:
            Mechanism.open(self, what)
            return None
        return open_loop(self, state, what)


@dataclass(frozen=True, eq=False)
class Close(Scheduled):
    """A loop is closed, at a time or on a condition in :func:`simulate` (docs/mathematics.md §12).

    Parameters
    ----------
    link, to, joint, at, name
        As for :meth:`KinematicTree.close` with a state.
    time, when
        As for :class:`Grasp`, with the same errors.
    """

    verb = "close"
    link: str
    to: str
    joint: Joint | None = field(default=None, kw_only=True)
    at: ArrayLike | None = field(default=None, kw_only=True)
    name: str | None = field(default=None, kw_only=True)

    def happen(self, tree: Robot, state: State) -> LoopEvent:
        """Close the loop; errors as for :meth:`KinematicTree.close`."""
        return close(tree, state, self.link, self.to, self.joint, self.at, self.name)


@dataclass(frozen=True, eq=False)
class Open(Scheduled):
    """A loop is opened, at a time or on a condition in :func:`simulate`.

    Parameters
    ----------
    what : Handle or str
        As for :meth:`KinematicTree.open`.
    time, when
        As for :class:`Grasp`, with the same errors.
    """

    verb = "open"
    what: Handle | str

    def happen(self, tree: Robot, state: State) -> LoopEvent:
        """Open the loop; errors as for :meth:`KinematicTree.open`."""
        return open_loop(tree, state, self.what)
