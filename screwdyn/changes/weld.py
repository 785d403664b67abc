"""Making two links one body where they are, and undoing it (docs/mathematics.md §6): a lock, or a fixed loop."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import overload

import numpy as np

from screwdyn.changes import law
from screwdyn.changes.change import Change, Scheduled
from screwdyn.changes.lock import Lock, Unlock, lock
from screwdyn.changes.loops import Close, Open, close
from screwdyn.core import Array, TopologyError
from screwdyn.mechanism import Attachment, Handle
from screwdyn.physics import Robot, State
from screwdyn.screws import screw


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
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


@dataclass(frozen=True, eq=False, repr=False)
class Weld(Scheduled[WeldEvent]):
    """Two links become one body where they are, at a time or on a condition in :func:`simulate`."""

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


@dataclass(frozen=True, eq=False, repr=False)
class Unweld(Scheduled[WeldEvent]):
    """The weld of two links is undone, at a time or on a condition in :func:`simulate`."""

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
    return joint if len(moving) == 1 and not locked and joint.joint.nv else None


def _undone(tree: Robot, link: str, to: str) -> Open | Unlock:
    """The change that undoes a weld; errors as for :func:`unweld`."""
    loops, moving, locked = _between(tree, link, to)
    if not loops and (moving or len(locked) != 1):
        why = f"joints between them move: {', '.join(moving)}"
        why = why if moving else f"locked joints between them: {', '.join(locked) or 'none'}"
        raise TopologyError(f"{link!r} and {to!r} are not welded by a fixed loop or by the lock of one joint; {why}")
    return Open(loops[-1]) if loops else Unlock(locked[0])
