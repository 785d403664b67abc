"""Locking a joint, and freeing it again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import overload

import numpy as np

from screwdyn.changes import law
from screwdyn.changes.change import Change, JointName, Scheduled
from screwdyn.core import Array, ArrayLike, ShapeError
from screwdyn.mechanism.plausible import check_angles
from screwdyn.mechanism.structure import Mechanism, Switch
from screwdyn.physics import Robot, State


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
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


@dataclass(frozen=True, eq=False, repr=False)
class Lock(Scheduled[LockEvent]):
    """A joint is locked where it is, at a time or on a condition in :func:`simulate`."""

    verb = "lock"

    joint: JointName

    def enact(self, tree: Robot, state: State) -> LockEvent:
        """What slips are the freedoms of the joint, in the tree before, in which all that follow it still move."""
        topology, before = tree.topology, tree.copy()
        at = topology.carrying(self.joint)
        joint, name = at.joint, at.name
        positions = _entries(joint.position_names(name), topology.positions)
        own = _entries(joint.freedom_names(name), topology.coordinates)
        tree.topology = topology.lock(self.joint, state.q[positions])
        if state.qd[own].any():  # otherwise nothing slips
            law.check_bodies(before.model)
        change = law.stopped(before, state.q, state.qd, own)
        q = np.concatenate([state.q[: positions.start], state.q[positions.stop :]])
        stays = np.ones(len(change), bool)
        stays[own] = False
        impulses = np.zeros(joint.nv)
        if before.loops:
            taken, multipliers = law.closing(tree, q, (state.qd + change)[stays])
            change[stays] -= taken
            impulses = before.constraint_jacobian(state.q)[:, own].T @ multipliers
        return LockEvent(
            state=State.of(tree, q, (state.qd + change)[stays]),
            link=at.link.name,
            energy_lost=float(before.kinetic_energy(state.q, change)),
            joint=self.joint,
            impulse=before.joint_momentum(state.q, change)[own] - impulses,
        )

    def switch(self, tree: Mechanism) -> Switch:
        """The freedoms of the joint are held."""
        joint, link, freedoms = _freed(tree, self.joint)
        return Switch(joint, link, holds=freedoms)


def _freed(tree: Mechanism, joint: str) -> tuple[str, str, tuple[str, ...]]:
    """A joint that moves in a tree from now on, its link, and its freedoms; errors if it cannot be locked."""
    if tree.topology.carrying(joint).locked is not None:
        tree.topology = tree.topology.unlock(joint)
    tree.topology.lock(joint)
    at = tree.topology.carrying(joint)
    return joint, at.link.name, at.coordinates


def _entries(names: tuple[str, ...], of: tuple[str, ...]) -> slice:
    """Where the names of a joint are, which follow each other."""
    first = of.index(names[0]) if names else 0
    return slice(first, first + len(names))


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

    Warns
    -----
    ScrewdynWarning
        If ``at`` is an angle far beyond the limits of the joint, as for :class:`State`.

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
        tree.topology = tree.topology.lock(joint, at)
        if (locked := tree.lock_of(joint)) is not None:
            check_angles(joint, locked.joint, locked.q)
        return None
    if at is not None:
        raise ShapeError("the joint is locked at its position of the state, so at= cannot be given with a state")
    return Lock(joint).happen(tree, state)


@dataclass(frozen=True, eq=False, repr=False)
class Unlock(Scheduled[LockEvent]):
    """A locked joint is freed, at a time or on a condition in :func:`simulate`; parameters as for :class:`Lock`."""

    verb = "unlock"

    joint: JointName

    def enact(self, tree: Robot, state: State) -> LockEvent:
        """All rates continue, and the joint starts at rest."""
        tree.topology = tree.topology.unlock(self.joint)
        at = tree.topology.carrying(self.joint)
        return LockEvent(state=state.onto(tree)[0], link=at.link.name, joint=self.joint, impulse=np.zeros(at.joint.nv))

    def switch(self, tree: Mechanism) -> Switch:
        """The freedoms of the joint move, from rest."""
        joint, link, freedoms = _freed(tree, self.joint)
        return Switch(joint, link, frees=freedoms)


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
        tree.topology = tree.topology.unlock(joint)
        return None
    return Unlock(joint).happen(tree, state)
