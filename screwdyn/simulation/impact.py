"""Grasp and release in motion: the impact and the rates after it (docs/mathematics.md §6).

Positions are continuous. Rates are not, unless the payload moves with the link that grasps it: the new constraint
exerts an impulse, the motors do not, and momentum is conserved along the motions that the joint allows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.errors import ShapeError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.mechanism.joint import Joint, fixed
from screwdyn.mechanism.structure import Body, Handle
from screwdyn.physics.robot import Robot
from screwdyn.screws import screw
from screwdyn.simulation import momentum
from screwdyn.simulation.state import State, check_state

__all__ = ["Change", "FreeBody", "GraspEvent", "ReleaseEvent", "Twist", "grasp", "payload_twist", "release"]

Twist = Literal["co_moving", "at_rest"] | ArrayLike


@dataclass(frozen=True, eq=False)
class FreeBody:
    """A payload that moves freely, before a grasp or after a release.

    Attributes
    ----------
    tree : KinematicTree
        The payload; its base is the link that is attached or was attached. Gravity is in that link's frame.
    pose : (4, 4) array
        Of that link's frame in the robot's base frame, m.
    twist : (6,) array
        [ω; v] of that link, in its own frame, rad/s and m/s.
    state : State
        Of the payload's own joints.
    """

    tree: Robot
    pose: Array
    twist: Array
    state: State

    @property
    def kinetic_energy(self) -> float:
        """Kinetic energy of the payload including its own joints, J (docs/mathematics.md §6)."""
        return momentum.kinetic_energy(self.tree, self.state.q, self.state.qd, self.twist)


@dataclass(frozen=True, eq=False, kw_only=True)
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
        removes, J. The kinetic energy of the tree increases by ``kinetic_energy_brought - energy_lost``.
    """

    state: State
    link: str
    energy_lost: float = 0.0
    kinetic_energy_brought: float = 0.0


@dataclass(frozen=True, eq=False, kw_only=True)
class GraspEvent(Change):
    """Outcome of a grasp: a :class:`Change` with the following attributes.

    Attributes
    ----------
    impulse : (6,) array
        [n; f] on the payload, about the origin of its frame and in its axes; N m s and N s.
    handle : Handle
        For :meth:`KinematicTree.release`.
    payload : FreeBody
        The payload just before the grasp.
    """

    impulse: Array
    handle: Handle
    payload: FreeBody

    @property
    def caught(self) -> FreeBody:
        """Former name of :attr:`payload`."""
        return self.payload


@dataclass(frozen=True, eq=False, kw_only=True)
class ReleaseEvent(Change):
    """Outcome of a release: a :class:`Change`, in which no energy is lost, with the following attribute.

    Attributes
    ----------
    released : FreeBody
        The payload just after the release.
    """

    released: FreeBody


def grasp(
    tree: Robot,
    state: State,
    body: Body,
    *,
    to: str,
    twist: Twist | None = None,
    joint: Joint | None = None,
    at: ArrayLike | None = None,
    name: str | None = None,
    body_state: State | None = None,
    prefix: str = "",
) -> GraspEvent:
    """Attach a body while the robot moves, conserving momentum (docs/mathematics.md §6).

    Parameters
    ----------
    tree : KinematicTree
        Changed by the grasp.
    state : State
        Of the tree just before the grasp.
    body, to, joint, at, name, prefix
        As for :meth:`KinematicTree.attach`. The new joint starts at its neutral position.
    twist : "co_moving", "at_rest" or (6,) array
        Motion of the payload's base just before the grasp: with the link that grasps it, at rest, or [ω; v] in the
        payload's own frame, rad/s and m/s. Required, because the outcome depends on it.
    body_state : State, optional
        Of the payload's own joints, if it is a tree; neutral and at rest by default.

    Returns
    -------
    GraspEvent

    Raises
    ------
    SingularAttachmentError
        If the payload has no inertia along the new joint, such as a point mass on a pin through itself.
    StaleHandleError
        If the state does not belong to the present tree.
    InertiaError
        If the kinetic energy of some motion is negative, because an inertia is not that of a rigid body.
    UnknownNameError, TopologyError, ShapeError
        As for :meth:`KinematicTree.attach`, and for a missing or invalid twist.

    Notes
    -----
    After an error, the tree and the state are unchanged.
    """
    check_state(state, tree)
    J, pose = tree.jacobian(to, state.q, "body"), tree.forward_kinematics(to, state.q)
    with tree.transaction():
        handle = tree.attach(body, to, joint, at, name, prefix=prefix)
        joint, home = joint or fixed(), screw.as_pose(at)
        carried = screw.Ad(screw.inverse(home)) @ J @ state.qd
        V, pose = payload_twist(twist, carried), pose @ home
        alone = tree.copy().detach(handle.name)
        alone.gravity = pose[:3, :3].T @ tree.gravity
        if body_state is not None:
            check_state(body_state, body if isinstance(body, Robot) else alone, "payload")
        inner = State(alone) if body_state is None else State(alone, body_state.q, body_state.qd)
        q = np.concatenate([state.q, joint.neutral, inner.q])
        qd = np.concatenate([state.qd, np.zeros(joint.nv), inner.qd])
        impact = momentum.impact(tree, q, handle.name, V - carried)
        payload = FreeBody(alone, pose, V, inner)
        return GraspEvent(
            state=State(tree, q, qd + impact.rates),
            link=handle.name,
            energy_lost=impact.energy_lost,
            kinetic_energy_brought=payload.kinetic_energy,
            impulse=impact.impulse,
            handle=handle,
            payload=payload,
        )


def release(tree: Robot, state: State, what: Handle | str) -> ReleaseEvent:
    """Detach a payload while the robot moves (docs/mathematics.md §6).

    The robot keeps its rates; the twist of the payload is V = J q̇ + S θ̇. No energy is lost. Only accelerations are
    discontinuous.

    Parameters
    ----------
    tree : KinematicTree
        Changed by the release.
    state : State
        Of the tree just before the release.
    what : Handle or str
        As for :meth:`KinematicTree.detach`.

    Returns
    -------
    ReleaseEvent

    Raises
    ------
    StaleHandleError, UnknownNameError, TopologyError
        As for :meth:`KinematicTree.detach`, and for a state that does not belong to the present tree.
    """
    check_state(state, tree)
    root = tree.resolve(what)
    pose = tree.forward_kinematics(root, state.q)
    twist = tree.jacobian(root, state.q, "body") @ state.qd
    with tree.transaction():
        removed = tree.detach(what)
        removed.gravity = pose[:3, :3].T @ tree.gravity
        released = FreeBody(removed, pose, twist, state.part(removed))
        return ReleaseEvent(
            state=state.part(tree), link=root, kinetic_energy_brought=-released.kinetic_energy, released=released
        )


def payload_twist(twist: Twist | None, co_moving: Array) -> Array:
    """The payload's twist, (6,), from the argument ``twist`` of a grasp and the twist of the link that grasps it.

    Raises
    ------
    ShapeError
        If ``twist`` is missing or invalid.
    """
    if isinstance(twist, str) and twist == "co_moving":
        return co_moving
    if isinstance(twist, str) and twist == "at_rest":
        return np.zeros(6)
    try:
        V = np.array(expressions.real(twist))
    except (TypeError, ValueError, OverflowError):
        raise ShapeError(
            f"twist must be 'co_moving', 'at_rest' or six numbers [ω; v] in the payload's own frame; got {twist!r}"
        ) from None
    if V.shape != (6,) or not np.isfinite(V).all():
        raise ShapeError(f"twist must be six finite numbers [ω; v] in the payload's own frame; got {twist!r}")
    return V
