"""Locks of joints, loops, and welds, which are one or the other (docs/mathematics.md §6 and §12)."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import overload

import numpy as np

from screwdyn.changes import law
from screwdyn.changes.change import Change, JointName, LinkName, LoopRef, Pose, Scheduled
from screwdyn.core.errors import ShapeError, TopologyError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.mechanism import surgery
from screwdyn.mechanism.joint import Joint
from screwdyn.mechanism.link import Attachment
from screwdyn.mechanism.structure import Handle, Mechanism
from screwdyn.physics.closure import Closure
from screwdyn.physics.model import Robot
from screwdyn.physics.state import State
from screwdyn.screws import screw


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

    concerns = "joint"

    joint: str
    impulse: Array


@dataclass(frozen=True, eq=False)
class Lock(Scheduled[LockEvent]):
    """A joint is locked where it is, at a time or on a condition in :func:`simulate`.

    Parameters as for :meth:`KinematicTree.lock` with a state, ``time`` and ``when`` as for :class:`Grasp`, also their
    errors.
    """

    verb = "lock"

    joint: JointName

    def enact(self, tree: Robot, state: State) -> LockEvent:
        """What slips are the freedoms of the joint, in the tree before, in which all that follow it still move."""
        at, before = tree.topology.carrying(self.joint), tree.copy()
        stays_q, stays = np.ones(len(state.q), dtype=bool), np.ones(len(state.qd), dtype=bool)
        positions = [before.positions.index(name) for name in at.joint.position_names(at.name)]
        own = [before.coordinates.index(name) for name in at.coordinates]
        stays_q[positions] = stays[own] = False
        tree.topology = surgery.lock(tree.topology, self.joint, state.q[positions])
        q, qd = state.q[stays_q], state.qd[stays]
        jump = np.where(stays, 0.0, -state.qd)
        law.check_bodies(before.model, stays | (jump != 0))

        def momentum(change: Array) -> Array:
            jump[stays] = change
            return before.joint_momentum(state.q, jump)

        change, multipliers = law.settled(tree, q, qd, lambda change: momentum(change)[stays])
        impulse = momentum(change)[own]
        if before.loops:
            impulse = impulse - before.constraint_jacobian(state.q)[:, own].T @ multipliers
        return LockEvent(
            state=State.of(tree, q, qd + change),
            link=at.link.name,
            energy_lost=float(before.kinetic_energy(state.q, jump)),
            joint=self.joint,
            impulse=impulse,
        )


@overload
def lock(tree: Robot, joint: str, state: None = None, *, at: ArrayLike | None = None) -> None: ...
@overload
def lock(tree: Robot, joint: str, state: State) -> LockEvent: ...
def lock(tree: Robot, joint: str, state: State | None = None, *, at: ArrayLike | None = None) -> LockEvent | None:
    """Make a joint fixed, until :meth:`unlock` frees it; its coordinates are gone meanwhile.

    Parameters
    ----------
    joint : str
        Name of the joint.
    state : State, optional
        Of the tree just before; the joint is locked at its position of this state.
    at : number or (nq,) array, optional
        Without a state: the position at which the joint is locked, rad or m; neutral by default.

    Returns
    -------
    LockEvent or None
        With a state: the state just after, the impulse of the lock, and the energy lost. The other rates satisfy
        M_rr q̇_r⁺ = M_rr q̇_r⁻ + M_rj q̇_j⁻.

    Raises
    ------
    UnknownNameError, TopologyError, ShapeError
        If there is no such joint, it is fixed or locked already, or ``at`` is no position of it or given with a
        state.
    StaleHandleError, SingularAttachmentError, InertiaError
        For the state, as for :meth:`grasp`.

    Examples
    --------
    >>> import screwdyn as sd
    >>> arm = sd.robots.two_link()
    >>> event = arm.lock("theta2", sd.State(arm, [0.1, 0.2], [1.0, 1.0]))
    >>> print(arm)
    base
    └─ link1 [revolute theta1] 1 kg
       └─ link2 [locked revolute theta2] 1 kg
    """
    if state is None:
        tree.topology = surgery.lock(tree.topology, joint, at)
        return None
    if at is not None:
        raise ShapeError("the joint is locked at its position of the state, so at= cannot be given with a state")
    return Lock(joint).happen(tree, state)


@dataclass(frozen=True, eq=False)
class Unlock(Scheduled[LockEvent]):
    """A locked joint is freed, at a time or on a condition in :func:`simulate`; parameters as for :class:`Lock`."""

    verb = "unlock"

    joint: JointName

    def enact(self, tree: Robot, state: State) -> LockEvent:
        """All rates continue, and the joint starts at rest."""
        tree.topology = surgery.unlock(tree.topology, self.joint)
        at = tree.topology.carrying(self.joint)
        return LockEvent(state=state.onto(tree)[0], link=at.link.name, joint=self.joint, impulse=np.zeros(at.joint.nv))


@overload
def unlock(tree: Robot, joint: str, state: None = None) -> None: ...
@overload
def unlock(tree: Robot, joint: str, state: State) -> LockEvent: ...
def unlock(tree: Robot, joint: str, state: State | None = None) -> LockEvent | None:
    """Free a locked joint; its coordinates return to their place in the order.

    Parameters
    ----------
    joint : str
        Name of the joint.
    state : State, optional
        Of the tree just before. All rates continue, and the joint starts at rest where it was locked.

    Returns
    -------
    LockEvent or None
        With a state: the state just after; there is no impulse, and no energy is lost.

    Raises
    ------
    UnknownNameError, TopologyError
        If there is no such joint, or it is not locked.
    StaleHandleError
        If the state does not belong to the present tree.
    """
    if state is None:
        tree.topology = surgery.unlock(tree.topology, joint)
        return None
    return Unlock(joint).happen(tree, state)


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

    concerns = "loop"

    loop: str
    handle: Handle
    impulse: Array
    impulses: dict[str, Array]


@dataclass(frozen=True, eq=False)
class Close(Scheduled[LoopEvent]):
    """A loop is closed, at a time or on a condition in :func:`simulate` (docs/mathematics.md §12).

    Parameters as for :meth:`KinematicTree.close` with a state, ``time`` and ``when`` as for :class:`Grasp`, also their
    errors.
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
        closure, q = Closure(tree, tree.model), state.q
        if self.at is not None or len(tree.loops) > 1:  # a single loop at the present pose is closed
            closure.check(q, "move the links together before they are connected, or leave out at=")
            q, _ = closure.closed(q)
        taken, impulses, lost = law.closing(closure, q, state.qd)
        # The rates are those before, in a configuration without the gap that counts as rounding.
        moved = float(tree.kinetic_energy(q, state.qd) - tree.kinetic_energy(state.q, state.qd))
        own = {loop.name: N @ impulses[rows] for loop, N, rows in closure.own()}
        return LoopEvent(
            state=State.of(tree, q, state.qd - taken),
            link=self.link,
            loop=handle.name,
            handle=handle,
            energy_lost=lost,
            kinetic_energy_brought=moved,
            impulse=own[handle.name],
            impulses=own,
        )


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


@dataclass(frozen=True, eq=False)
class Open(Scheduled[LoopEvent]):
    """A loop is opened, at a time or on a condition in :func:`simulate`.

    Parameters as for :meth:`KinematicTree.open`, ``time`` and ``when`` as for :class:`Grasp`, also their errors.
    """

    verb = "open"

    what: LoopRef = field(metadata={"key": "loop"})

    def enact(self, tree: Robot, state: State) -> LoopEvent:
        """All rates continue."""
        loop = tree.loop(self.what.name if isinstance(self.what, Handle) else self.what)
        handle = Handle(loop.name, loop.serial)
        Mechanism.open(tree, self.what)
        after, none = State(tree, state.q, state.qd), np.zeros(6)
        return LoopEvent(state=after, link=loop.link, loop=loop.name, handle=handle, impulse=none, impulses={})


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


@dataclass(frozen=True, eq=False, kw_only=True)
class WeldEvent(Change):
    """Outcome of welding two links, or of undoing it: a :class:`Change` with the following attributes.

    Attributes
    ----------
    to : str
        The other link.
    by : str
        Name of the joint that the weld locks, or of the loop that it closes.
    impulse : (6,) array
        [n; f] of the weld on ``link``, about the origin of its frame and in its axes, N m s and N s: of all impulses
        that rigid bodies allow, the least. Zero if the weld was undone.
    """

    to: str
    by: str
    impulse: Array


@dataclass(frozen=True, eq=False)
class Weld(Scheduled[WeldEvent]):
    """Two links become one body where they are, at a time or on a condition in :func:`simulate`.

    Parameters as for :meth:`KinematicTree.weld`, ``time`` and ``when`` as for :class:`Grasp`, also their errors.
    """

    verb = "weld"

    link: str | Handle
    to: str | Handle

    def enact(self, tree: Robot, state: State) -> WeldEvent:
        """The impact of a lock is that of a fixed loop; so is the least wrench by which it acts on the joint."""
        link, to = tree.resolve(self.link), tree.resolve(self.to)
        joint = _to_lock(tree, link, to)
        if joint is None:
            closed = Close(link, to).enact(tree, state)
            return _outcome(closed, link, to, closed.impulse)
        own = [state.coordinates.index(name) for name in joint.coordinates]
        J_link, J_to = (tree.jacobian(name, state.q, "body")[:, own] for name in (link, to))
        S = J_link - screw.Ad(law.pose_in(tree, to, link, state.q)) @ J_to
        locked = Lock(joint.name).enact(tree, state)
        return _outcome(locked, link, to, np.asarray(np.linalg.pinv(S).T @ locked.impulse, dtype=np.float64))


@overload
def weld(tree: Robot, link: Handle | str, to: Handle | str, state: None = None) -> None: ...
@overload
def weld(tree: Robot, link: Handle | str, to: Handle | str, state: State) -> WeldEvent: ...
def weld(tree: Robot, link: Handle | str, to: Handle | str, state: State | None = None) -> WeldEvent | None:
    """Make two links one body where they are.

    If one joint alone moves one link in the other, the weld is a lock of it (:meth:`lock`), as of a child to its
    parent; otherwise it is a fixed loop (:meth:`close`). The motion is the same: a lock has fewer coordinates.

    Parameters
    ----------
    link, to : Handle or str
        The links; ``to`` may be the base.
    state : State, optional
        Of the tree just before. Without a state, the links are welded where they are while all joints are neutral.

    Returns
    -------
    WeldEvent or None
        With a state: the state just after, the impulse of the weld on ``link``, and the energy lost.

    Raises
    ------
    UnknownNameError, StaleHandleError, TopologyError
        If there is no such link, a handle or the state is stale, the links are one body already, or one of them is a
        rotor.
    LoopError, SingularAttachmentError, InertiaError
        For the state, as for :meth:`close` and :meth:`lock`.

    Examples
    --------
    >>> import screwdyn as sd
    >>> tree = sd.KinematicTree()
    >>> for name in ("left", "right"):
    ...     _ = tree.attach(sd.Inertia.rod(1, 1, com=(0.5, 0, 0)), to="base", joint=sd.revolute("z"), name=name)
    >>> event = tree.weld("right", "left", sd.State(tree, [0.0, 0.5], [1.0, 0.0]))
    >>> event.by, event.state.qd.round(12).tolist(), round(event.energy_lost, 12)
    ('right-left', [0.5, 0.5], 0.083333333333)
    >>> tree.weld("left", "base", event.state).by
    'left'
    """
    if state is not None:
        return Weld(link, to).happen(tree, state)
    names = tree.resolve(link), tree.resolve(to)
    joint = _to_lock(tree, *names)
    if joint is None:
        close(tree, *names, at=law.pose_in(tree, *names, tree.topology.neutral))
    else:
        lock(tree, joint.name)
    return None


@dataclass(frozen=True, eq=False)
class Unweld(Scheduled[WeldEvent]):
    """The weld of two links is undone, at a time or on a condition in :func:`simulate`.

    Parameters as for :meth:`KinematicTree.unweld`, ``time`` and ``when`` as for :class:`Grasp`, also their errors.
    """

    verb = "unweld"

    link: str | Handle
    to: str | Handle

    def enact(self, tree: Robot, state: State) -> WeldEvent:
        """All rates continue, and a joint that was locked starts at rest."""
        link, to = tree.resolve(self.link), tree.resolve(self.to)
        undone = _undone(tree, link, to).enact(tree, state)
        return _outcome(undone, link, to, np.zeros(6))


@overload
def unweld(tree: Robot, link: Handle | str, to: Handle | str, state: None = None) -> None: ...
@overload
def unweld(tree: Robot, link: Handle | str, to: Handle | str, state: State) -> WeldEvent: ...
def unweld(tree: Robot, link: Handle | str, to: Handle | str, state: State | None = None) -> WeldEvent | None:
    """Undo the weld of two links, in whichever order: open their fixed loop, or unlock the joint between them.

    Parameters
    ----------
    link, to : Handle or str
    state : State, optional
        Of the tree just before. All rates continue, and a joint that was locked starts at rest where it is.

    Returns
    -------
    WeldEvent or None
        With a state: the state just after; there is no impulse, and no energy is lost.

    Raises
    ------
    UnknownNameError, StaleHandleError, TopologyError
        If there is no such link, a handle or the state is stale, or the links are not welded. Also if several joints
        between them are locked, of which :meth:`unlock` frees one by its name.
    """
    if state is not None:
        return Unweld(link, to).happen(tree, state)
    _undone(tree, tree.resolve(link), tree.resolve(to)).restructure(tree)
    return None


def _outcome(made: Change, link: str, to: str, impulse: Array) -> WeldEvent:
    """The outcome of a weld, from that of the lock or the loop that it is."""
    every = {part.name: getattr(made, part.name) for part in fields(Change)}
    return WeldEvent(**every | {"link": link}, to=to, by=made.subject, impulse=impulse)


def _between(tree: Robot, link: str, to: str) -> tuple[list[str], list[str], list[str]]:
    """The names of the fixed loops of two links, and of the joints between them that move and that are locked."""
    one, other = tree.path(link), tree.path(to)
    apart = {*one} ^ {*other}
    between = [tree.topology.attachments[name] for name in (*one, *other) if name in apart]
    loops = [x for x in tree.topology.loops.values() if {x.link, x.to} == {link, to} and not x.joint.screws.size]
    moving = [at.name for at in between if at.joint.screws.size]
    return [loop.name for loop in loops], moving, [at.name for at in between if at.locked is not None]


def _to_lock(tree: Robot, link: str, to: str) -> Attachment | None:
    """The joint by which two links move, if a lock of it welds them; None for a loop. Errors as for :func:`weld`."""
    loops, moving, locked = _between(tree, link, to)
    if loops or not moving:
        by = f"loop {loops[0]!r} holds them" if loops else "no joint between them moves"
        raise TopologyError(f"{link!r} and {to!r} are one body already: {by}")
    joint = tree.topology.carrying(moving[0])
    return joint if len(moving) == 1 and not locked and joint.joint.mimic is None else None


def _undone(tree: Robot, link: str, to: str) -> Open | Unlock:
    """The change that undoes a weld; errors as for :func:`unweld`."""
    loops, moving, locked = _between(tree, link, to)
    if not loops and (moving or len(locked) != 1):
        why = f"joints between them move: {', '.join(moving)}"
        why = why if moving else f"locked joints between them: {', '.join(locked) or 'none'}"
        raise TopologyError(f"{link!r} and {to!r} are not welded by a fixed loop or by the lock of one joint; {why}")
    return Open(loops[-1]) if loops else Unlock(locked[0])
