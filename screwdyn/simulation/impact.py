"""Picking up and letting go in mid-motion: what happens to the velocities (docs/mathematics.md §6).

Positions are continuous. Velocities are not, unless the payload already moves along: the new constraint acts by an
impulse, with none from the motors, and the momenta are projected onto the motions that are left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.errors import ShapeError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.forms.tree_forms import Forms
from screwdyn.mechanism.joint import Joint
from screwdyn.mechanism.topology import Body, Handle
from screwdyn.screws import screw
from screwdyn.simulation.state import State, check_state

__all__ = ["FreeBody", "GraspEvent", "ReleaseEvent", "Twist", "grasp", "payload_twist", "release"]

Twist = Literal["co_moving", "at_rest"] | ArrayLike


@dataclass(frozen=True, eq=False)
class FreeBody:
    """What flies freely: before a grasp, or after a release.

    Attributes
    ----------
    tree : KinematicTree
        Its links; the base is the link that is, or had been, attached.
    pose : (4, 4) array
        Of that link's frame in the robot's base frame.
    twist : (6,) array
        [ω; v] of that link, in its own frame.
    state : State
        Of the joints within.
    """

    tree: Forms
    pose: Array
    twist: Array
    state: State

    @property
    def kinetic_energy(self) -> float:
        """½ νᵀ 𝓜 ν, J, with 𝓜 the floating mass matrix and ν the twist and the rates of the joints within."""
        rates = np.concatenate([self.twist, self.state.qd])
        return float(0.5 * rates @ floating_mass_matrix(self.tree, self.state.q) @ rates)


@dataclass(frozen=True, eq=False)
class GraspEvent:
    """What a grasp did.

    Attributes
    ----------
    state : State
        Of the tree with the payload, right after the grasp.
    impulse : (6,) array
        [n; f] on the payload, about the origin of its frame and in its axes; N m s and N s.
    energy_lost : float
        Kinetic energy that the impact turned to heat, J; never negative.
    handle : Handle
        For :meth:`KinematicTree.release`.
    payload : FreeBody
        The payload just before the grasp.
    """

    state: State
    impulse: Array
    energy_lost: float
    handle: Handle
    payload: FreeBody

    @property
    def caught(self) -> FreeBody:
        """Former name of :attr:`payload`."""
        return self.payload


@dataclass(frozen=True, eq=False)
class ReleaseEvent:
    """What a release did: the robot's state after it, and what flies on."""

    state: State
    released: FreeBody


def grasp(
    tree: Forms,
    state: State,
    body: Body,
    *,
    to: str,
    twist: Twist | None = None,
    joint: Joint | None = None,
    at: ArrayLike | None = None,
    name: str | None = None,
    body_state: State | None = None,
) -> GraspEvent:
    """Attach a body while the robot moves, conserving momentum.

    With v⁻ the rates of robot and free payload before, D = diag(M, 𝓜) and W the map from the new rates to all of
    these, the rates after are ν⁺ = (WᵀDW)⁻¹ WᵀD v⁻, and WᵀDW is the new tree's mass matrix (docs/mathematics.md §6).
    It is solved for the jump of the rates, which for a payload that moves along is exactly zero.

    Parameters
    ----------
    tree : KinematicTree
        Changed by the grasp.
    state : State
        Of the tree just before.
    body, to, joint, at, name
        As for :meth:`KinematicTree.attach`. The new joint's coordinate starts at 0.
    twist : "co_moving", "at_rest" or (6,) array
        Motion of the payload's base just before: with the link that grasps it, at rest, or [ω; v] in the payload's own
        frame. Required: each choice has another outcome.
    body_state : State, optional
        Of the payload's own joints, if it is a tree; all zero by default.

    Raises
    ------
    SingularAttachmentError
        If the payload has no inertia along the new joint, such as a point mass on a pin through itself.
    StaleHandleError
        If the state is not one of the tree as it is now.
    UnknownLinkError, TopologyError, ShapeError
        As for :meth:`KinematicTree.attach`; a bad twist. Tree and state are then unchanged.
    """
    check_state(state, tree)
    n, M, pose = tree.nv, tree.mass_matrix(state.q), tree.forward_kinematics(to, state.q)
    J = tree.jacobian(to, state.q, "body")
    with tree.transaction():
        handle = tree.attach(body, to, joint, at, name)
        home = screw.as_pose(at)
        J = screw.Ad(screw.inverse(home)) @ J
        carried = J @ state.qd
        S = np.zeros((6, 0)) if joint is None or joint.screw is None else joint.screw[:, None]
        k = S.shape[1]
        payload = tree.copy().detach(handle.name)
        if body_state is not None:
            check_state(body_state, payload, "payload")
        inner = State(payload) if body_state is None else State(payload, body_state.q, body_state.qd)
        caught = FreeBody(payload, pose @ home, payload_twist(twist, carried), inner)

        b = payload.nv
        q = np.concatenate([state.q, np.zeros(k), inner.q])
        _refuse_singular(tree, q)
        D = np.zeros((n + 6 + b, n + 6 + b))
        D[:n, :n] = M
        D[n:, n:] = floating_mass_matrix(payload, inner.q)
        W = np.zeros((n + 6 + b, n + k + b))
        W[:n, :n] = np.eye(n)
        W[n : n + 6, :n] = J
        W[n : n + 6, n : n + k] = S
        W[n + 6 :, n + k :] = np.eye(b)
        slip = np.zeros(n + 6 + b)
        slip[n : n + 6] = caught.twist - carried
        jump = np.linalg.solve(W.T @ D @ W, W.T @ D @ slip)
        change = W @ jump - slip
        lost = max(0.0, float(0.5 * change @ D @ change))
        after = State(tree, q, np.concatenate([state.qd, np.zeros(k), inner.qd]) + jump)
        return GraspEvent(after, (D @ change)[n : n + 6], lost, handle, caught)


def release(tree: Forms, state: State, what: Handle | str) -> ReleaseEvent:
    """Let go of what was attached: the rest keeps its rates, the payload flies on with V = J q̇ + S θ̇.

    Nothing is lost; only accelerations jump.

    Parameters
    ----------
    tree : KinematicTree
        Changed by the release.
    state : State
        Of the tree just before.
    what : Handle or str
        As for :meth:`KinematicTree.detach`.

    Raises
    ------
    StaleHandleError, UnknownLinkError, TopologyError
        As for :meth:`KinematicTree.detach`; or a state that is not one of the tree as it is now.
    """
    check_state(state, tree)
    root = tree.resolve(what)
    pose = tree.forward_kinematics(root, state.q)
    twist = tree.jacobian(root, state.q, "body") @ state.qd
    removed = tree.detach(what)
    return ReleaseEvent(state.part(tree), FreeBody(removed, pose, twist, state.part(removed)))


def floating_mass_matrix(tree: Forms, q: Array) -> Array:
    """Mass matrix of a tree whose base floats, (6 + nv, 6 + nv), over the base's twist in its own frame and q̇."""
    total = np.zeros((6 + tree.nv, 6 + tree.nv))
    for name in tree.links:
        inertia = tree.link(name).inertia
        if inertia is not None:
            X = screw.Ad(screw.inverse(tree.forward_kinematics(name, q)))
            W = np.hstack([X, tree.jacobian(name, q, "body")])
            total += W.T @ inertia.matrix @ W
    return total


def _refuse_singular(tree: Forms, q: Array) -> None:
    """Raise SingularAttachmentError if a joint carries no inertia, which is seen by asking for accelerations."""
    rest = np.zeros(tree.nv)
    tree.forward_dynamics(q, rest, rest)


def payload_twist(twist: Twist | None, co_moving: Array) -> Array:
    """The payload's twist, (6,), from what a user gives.

    Raises
    ------
    ShapeError
        If it is none of the choices.
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
