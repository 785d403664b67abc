"""Closing and opening of loops (docs/mathematics.md §12)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import overload

import numpy as np

from screwdyn.changes import law
from screwdyn.changes.change import Change, LinkName, LoopRef, Pose, Scheduled
from screwdyn.core import Array, ArrayLike, ScrewdynError
from screwdyn.mechanism import Handle, Joint, Mechanism, require_joint
from screwdyn.mechanism.link import FIXED
from screwdyn.mechanism.structure import Switch
from screwdyn.physics import Robot, State
from screwdyn.physics.closure import Closure
from screwdyn.screws.screw import as_pose


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
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

    concerns = "loop"

    loop: str
    handle: Handle
    impulse: Array
    impulses: dict[str, Array]


@dataclass(frozen=True, eq=False, repr=False)
class Close(Scheduled[LoopEvent]):
    """A loop is closed, at a time or on a condition in :func:`simulate` (docs/mathematics.md §12).

    In a rollout, whose runs share the loop, ``at`` must be given.
    """

    verb = "close"

    link: LinkName
    to: LinkName
    joint: Joint | None = field(default=None, kw_only=True)
    at: Pose | None = field(default=None, kw_only=True)
    name: str | None = field(default=None, kw_only=True)

    def enact(self, tree: Robot, state: State) -> LoopEvent:
        """Nothing slips in the tree, which stays the same; the loop takes the rates that open it."""
        at = self.at
        if at is None:
            at = law.pose_in(tree, self.link, self.to, state.q)
        handle = Mechanism.close(tree, self.link, self.to, self.joint, at, self.name)
        closure, q = Closure(tree), state.q
        if self.at is not None or len(tree.loops) > 1:  # a single loop at the present pose is closed
            closure.check(q, "move the links together before they are connected, or leave out at=")
            q = closure.closed(q)
        taken, impulses = closure.impact(q, state.qd)
        # The rates are those before, in a configuration without the gap that counts as rounding.
        moved = float(tree.kinetic_energy(q, state.qd) - tree.kinetic_energy(state.q, state.qd))
        own = {loop.name: N @ impulses[rows] for loop, N, rows in closure.own()}
        return LoopEvent(
            state=State.of(tree, q, state.qd - taken),
            link=self.link,
            loop=handle.name,
            handle=handle,
            energy_lost=float(tree.kinetic_energy(q, taken)),
            kinetic_energy_brought=moved,
            impulse=own[handle.name],
            impulses=own,
        )

    def switch(self, tree: Mechanism) -> Switch:
        """The loop is closed at ``at``; the present pose would make another loop in each run."""
        if self.at is None:
            raise ScrewdynError(
                f"a rollout closes the same loop in all runs: give at=, the pose of {self.link!r} in {self.to!r}; to "
                f"close one at the present pose, use simulate for each run"
            )
        known = tree.topology.loops.get(f"{self.link}-{self.to}" if self.name is None else self.name)
        screws = (FIXED if self.joint is None else require_joint(self.joint)).screws
        if (
            known is not None
            and (known.link, known.to) == (self.link, self.to)
            and np.array_equal(known.joint.screws, screws)
            and np.array_equal(known.home, as_pose(self.at))
        ):  # the loop that a run has opened before
            return Switch(known.name, self.link, closes=(known.name,))
        loop = tree.close(self.link, self.to, self.joint, self.at, self.name).name
        return Switch(loop, self.link, closes=(loop,))


@overload
def close(
    tree: Robot, link: str, to: str, joint: Joint | None = ..., at: ArrayLike | None = ..., name: str | None = ...
) -> Handle: ...
@overload
def close(
    tree: Robot,
    link: str,
    to: str,
    joint: Joint | None = None,
    at: ArrayLike | None = None,
    name: str | None = None,
    *,
    state: State,
) -> LoopEvent: ...
def close(
    tree: Robot,
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
        return Mechanism.close(tree, link, to, joint, at, name)
    return Close(link, to, joint=joint, at=at, name=name).happen(tree, state)


@dataclass(frozen=True, eq=False, repr=False)
class Open(Scheduled[LoopEvent]):
    """A loop is opened, at a time or on a condition in :func:`simulate`."""

    verb = "open"

    what: LoopRef = field(metadata={"key": "loop"})

    def enact(self, tree: Robot, state: State) -> LoopEvent:
        """All rates continue."""
        loop = tree.loop(self.what.name if isinstance(self.what, Handle) else self.what)
        handle = Handle(loop.name, loop.serial)
        Mechanism.open(tree, self.what)
        after, none = State(tree, state.q, state.qd), np.zeros(6)
        return LoopEvent(state=after, link=loop.link, loop=loop.name, handle=handle, impulse=none, impulses={})

    def switch(self, tree: Mechanism) -> Switch:
        """The loop is opened; errors as without a state."""
        rest = tree.copy()
        rest.open(self.what)
        (loop,) = {*tree.loops} - {*rest.loops}
        return Switch(loop, tree.loop(loop).link, opens=(loop,))


@overload
def open_(tree: Robot, what: Handle | str, state: None = None) -> None: ...
@overload
def open_(tree: Robot, what: Handle | str, state: State) -> LoopEvent: ...
def open_(tree: Robot, what: Handle | str, state: State | None = None) -> LoopEvent | None:
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
        Mechanism.open(tree, what)
        return None
    return Open(what).happen(tree, state)
