"""Grasp and release in motion: the impact and the rates after it (docs/mathematics.md §6).

Positions are continuous. Rates are not, unless the payload moves with the link that grasps it: the new constraint
exerts an impulse, the motors do not, and momentum is conserved along the motions that the joint allows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress
from typing import Literal

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.errors import EquilibriumError, ScrewdynError, ShapeError, TopologyError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.forms.configurations import Limits
from screwdyn.forms.equilibrium import stable_equilibrium
from screwdyn.mechanism import surgery
from screwdyn.mechanism.chart import pose_at
from screwdyn.mechanism.joint import Joint, fixed, free
from screwdyn.mechanism.shape import Shapes
from screwdyn.mechanism.structure import Body, Handle, require_joint
from screwdyn.mechanism.topology import Topology, bridging, without_bridges
from screwdyn.physics.charts import positions_near
from screwdyn.physics.model import Robot
from screwdyn.physics.state import State, check_state
from screwdyn.screws import screw
from screwdyn.simulation import momentum
from screwdyn.simulation.graft import graft
from screwdyn.simulation.outcomes import Change, FreeBody, GraspEvent, ReleaseEvent
from screwdyn.simulation.rearrange import Start, move, require_independent, seated, started

__all__ = [
    "Change",
    "FreeBody",
    "GraspEvent",
    "Payload",
    "ReleaseEvent",
    "Twist",
    "brings_its_motion",
    "grasp",
    "payload_twist",
    "release",
]

Twist = Literal["co_moving", "at_rest"] | ArrayLike
Payload = Body | FreeBody | Handle | str

# Distance beyond a limit, rad or m, that counts as rounding of an equilibrium.
_ROUNDING = 1e-9
# One object for all bodies, because the frames of a joint are cached by its identity.
_FLIGHT = free(passive=True)


def grasp(
    tree: Robot,
    state: State,
    body: Payload,
    *,
    to: str,
    twist: Twist | None = None,
    joint: Joint | None = None,
    at: ArrayLike | None = None,
    name: str | None = None,
    body_state: State | None = None,
    prefix: str = "",
    pose: ArrayLike | None = None,
    start: Start | Literal["hanging"] | None = None,
    shape: Shapes | None = None,
) -> GraspEvent:
    """Attach a body, or move a link by its own joint, conserving momentum in motion (docs/mathematics.md §6).

    Parameters
    ----------
    tree : KinematicTree
        Changed by the grasp.
    state : State
        Of the tree just before the grasp.
    body : Inertia, Link, KinematicTree, FreeBody, Handle or str
        A :class:`FreeBody`, such as ``event.released``, brings its pose, twist and state. A handle or name is that of a
        link of the tree, such as a body on a free joint: it moves to its new parent from where it is, as by
        :meth:`KinematicTree.move`.
    to, joint, at, name, prefix
        As for :meth:`KinematicTree.attach`. If the pose of the payload is known, ``at`` is worked out from it; if
        ``at`` is given too, the positions of the joint are worked out. A link of the tree keeps its joint by default.
    twist : "co_moving", "at_rest" or (6,) array
        Motion of the payload's base just before the grasp: with the link that grasps it, at rest, or [ω; v] in the
        payload's own frame, rad/s and m/s. Required unless the payload brings it, because the outcome depends on it.
    body_state : State, optional
        Of the payload's own joints, if it is a tree; neutral and at rest by default.
    pose : (4, 4) pose or (3,) position, optional
        Of the payload's frame in the base frame, m.
    start : number, (nq,) array, mapping from position to number, or "hanging", optional
        Positions at which the joint starts, rad and m; by default neutral for a new joint, and the present ones for
        the joint that a link of the tree keeps. "hanging": the new joint and the passive joints of the payload start
        where the payload hangs at rest, at a minimum of the energy of gravity and springs
        (:func:`~screwdyn.forms.equilibrium.stable_equilibrium`), which must be within the limits of the joints.
    shape : Shape or sequence of Shape, optional
        As for :meth:`KinematicTree.attach`.

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
    EquilibriumError
        If the payload has no position in which it hangs, such as on a slide that nothing holds, or if this is beyond
        the limits of a joint.
    JointError
        If the joint follows another one, or the link of the tree that is grasped has such a joint or one that is
        followed: positions would not be continuous.
    UnknownNameError, TopologyError, ShapeError
        As for :meth:`KinematicTree.attach`; for a missing or invalid twist; for a payload whose known pose the joint
        cannot have; for arguments that contradict what the payload brings.

    Notes
    -----
    After an error, the tree and the state are unchanged.
    """
    check_state(state, tree)
    known = {"twist": twist, "pose": pose, "body_state": body_state}
    if isinstance(body, Handle | str):
        root = tree.resolve(body)
        _refuse(
            f"{root!r} is a link of the tree, which has",
            known | {"name": name, "prefix": prefix or None, "shape": shape},
        )
        if isinstance(start, str):
            raise ShapeError(f"{root!r} stays where it is, so start must be positions of the new joint; got {start!r}")
        payload = _freed(tree, state, root, surgery.separable(tree.topology, root))
        moved = move(tree, state, root, to, joint, at, start)
        handle = Handle(root, tree.topology.attachments[root].serial)
        return GraspEvent(**vars(moved), handle=handle, payload=payload)
    if isinstance(body, FreeBody):
        _refuse("a FreeBody has", known)
        pose, twist, body_state = body.pose, body.twist, body.state
        body = body.tree
    if not isinstance(body, Body):
        raise TopologyError(
            f"only an Inertia, a Link, a KinematicTree or a FreeBody can be grasped, or a link of the tree by its "
            f"handle or name; got {body!r}"
        )
    joint = fixed() if joint is None else joint
    require_joint(joint)
    require_independent(tree, joint)
    hanging = isinstance(start, str)
    if hanging and (start != "hanging" or pose is not None):
        raise ShapeError(
            f"start must be positions of the new joint, or 'hanging' for a payload without a pose; got {start!r}"
        )
    J, hand = tree.jacobian(to, state.q, "body"), tree.forward_kinematics(to, state.q)
    with tree.transaction():
        handle = tree.attach(body, to, joint, at, name, prefix=prefix, shape=shape)
        new = tree.topology.attachments[handle.name]
        if pose is not None:
            T = screw.inverse(hand) @ screw.as_pose(pose, f"the pose of {handle.name!r}")
            home, first = seated(new, T, at, start)
            tree.topology = surgery.replace_joint(tree.topology, handle.name, new.joint, home)
        else:
            home, first = new.home, started(new, None if hanging else start)
        alone = tree.copy().detach(handle.name)
        if body_state is not None:
            check_state(body_state, body if isinstance(body, Robot) else alone, "payload")
        inner = State(alone) if body_state is None else State(alone, body_state.q, body_state.qd)
        q = np.concatenate([state.q, first, inner.q])
        if hanging:
            freedoms = [*new.coordinates, *compress(alone.coordinates, alone.model.passive)]
            try:
                q = stable_equilibrium(tree, q, freedoms)
            except EquilibriumError as error:
                raise EquilibriumError(
                    f"start='hanging' needs a position in which {handle.name!r} hangs at rest by its {joint.kind} "
                    f"joint and its own passive joints, and none was found; give start= as positions ({error})"
                ) from None
            _check_limits(tree, q, freedoms)
            first, below = np.split(q[len(state.q) :], [joint.nq])
            inner = State(alone, below, inner.qd)
        T = home @ pose_at(joint, first)
        carried = screw.Ad(screw.inverse(T)) @ J @ state.qd
        V, pose = payload_twist(twist, carried), hand @ T
        alone.gravity = pose[:3, :3].T @ tree.gravity
        qd = np.concatenate([state.qd, np.zeros(joint.nv), inner.qd])
        impact = momentum.impact(tree, q, qd, handle.name, V - carried)
        payload = FreeBody(alone, pose, V, inner)
        motor = momentum.motor_energy(tree, q, qd, handle.name, V - carried)
        return GraspEvent(
            state=State(tree, q, qd + impact.rates),
            link=handle.name,
            energy_lost=impact.energy_lost,
            kinetic_energy_brought=payload.kinetic_energy + motor,
            impulse=impact.impulse,
            handle=handle,
            payload=payload,
        )


def release(tree: Robot, state: State, what: Handle | str, *, into_world: bool = False) -> ReleaseEvent:
    """Detach a payload while the robot moves (docs/mathematics.md §6).

    The robot keeps its rates; the twist of the payload is V = J q̇ + S θ̇. No energy is lost. Only accelerations are
    discontinuous.

    A payload that loops connect to the rest does not leave the tree. It hangs on the first of these loops that was
    closed, whose joint becomes a passive joint of the tree with the name of the loop (docs/mathematics.md §12). All
    coordinates but those of the former joint keep their names; those of the payload come last, after those of the new
    joint. If the loop holds a link beyond the payload, the joints between are reversed: each keeps its name, positions
    and rates, in the opposite order if there are several, so that the first axis of a universal joint becomes its
    second; a spherical, free or planar joint has those of the opposite motion.

    Parameters
    ----------
    tree : KinematicTree
        Changed by the release.
    state : State
        Of the tree just before the release.
    what : Handle or str
        As for :meth:`KinematicTree.detach`.
    into_world : bool
        Keep the payload in the tree as a free body: on the base by a passive free joint that has the payload's name,
        ``crate[x]``, …, ``crate[pz]``, with its pose in the base frame as coordinates. All loops stay. A simulation
        then shows its flight, and :meth:`KinematicTree.grasp` grasps it by name. Handles of the payload stay valid.

    Returns
    -------
    ReleaseEvent

    Raises
    ------
    StaleHandleError, UnknownNameError, TopologyError
        As for :meth:`KinematicTree.detach`, and for a state that does not belong to the present tree.
    ScrewdynError
        If ``into_world`` is neither True nor False.
    SingularAttachmentError
        With ``into_world``, if the payload has no inertia, such as a massless frame; if it hangs on a loop, and a joint
        then feels no inertia.
    LoopError, JointError
        If the payload hangs on a loop: if the state opens a loop; if the former joint follows another one or is
        followed; if a joint between has damping or friction and cannot be reversed.
    """
    check_state(state, tree)
    if not isinstance(into_world, bool | np.bool_):
        raise ScrewdynError(f"into_world must be True or False; got {into_world!r}")
    root = tree.resolve(what)
    bridges = [] if into_world else bridging(tree.topology, root)
    stays = into_world or bridges
    with tree.transaction():
        released = _freed(tree, state, root, surgery.separable(tree.topology, root) if stays else tree.topology)
        motor = momentum.motor_energy(tree, state.q, state.qd, root)
        if into_world:
            tree.topology = surgery.move(tree.topology, root, tree.base, _FLIGHT, np.eye(4))
            _check_flight(tree, released)
            positions, _ = positions_near(_FLIGHT, released.pose)
            q = dict(zip(_FLIGHT.position_names(root), positions.tolist(), strict=True))
            qd = dict(zip(_FLIGHT.freedom_names(root), released.twist.tolist(), strict=True))
            after, brought = state.onto(tree, q, qd)[0], 0.0
        elif bridges:
            require_independent(tree, bridges[0].joint, tree.topology.attachments[root])
            after, brought = graft(tree, state, root, bridges[0]), 0.0
        else:
            tree.detach(root)
            after, brought = state.part(tree), -released.kinetic_energy
        return ReleaseEvent(
            state=after,
            link=root,
            kinetic_energy_brought=brought - motor,
            released=released,
            loop=bridges[0].name if bridges else None,
        )


def brings_its_motion(body: object) -> bool:
    """Whether a payload has a pose and a twist: a FreeBody, or a link of the tree by its handle or name."""
    return isinstance(body, FreeBody | Handle | str)


def _refuse(what: str, known: Mapping[str, object]) -> None:
    """Raise ShapeError if something is given that is known."""
    given = [f"{name}=" for name, value in known.items() if value is not None]
    if given:
        raise ShapeError(f"{what} its own {', '.join(x[:-1] for x in given)}; leave out {', '.join(given)}")


def _check_limits(tree: Robot, q: Array, freedoms: Sequence[str]) -> None:
    """Raise EquilibriumError if a payload hangs with one of some freedoms beyond a limit."""
    limits = Limits.of(tree, lambda joint: True)
    for (_, joint, coordinate, side), excess in zip(limits.keys, limits.excess(q).tolist(), strict=True):
        if coordinate in freedoms and excess > _ROUNDING:
            raise EquilibriumError(
                f"the payload hangs at rest with {coordinate!r} {excess:.4g} beyond the {side} limit of joint "
                f"{joint!r}, so start='hanging' has no position; give start= as positions"
            )


def _freed(tree: Robot, state: State, root: str, topology: Topology) -> FreeBody:
    """A link and all links beyond it as they would fly on, detached from a structure of the same links.

    Loops to the rest are left out.
    """
    pose = tree.forward_kinematics(root, state.q)
    twist = tree.jacobian(root, state.q, "body") @ state.qd
    rest = tree.copy()
    rest.topology = without_bridges(topology, root)
    removed = rest.detach(root)
    removed.gravity = pose[:3, :3].T @ tree.gravity
    return FreeBody(removed, pose, twist, state.onto(removed)[0])


def _check_flight(tree: Robot, body: FreeBody) -> None:
    """Raise SingularAttachmentError if a free body has no inertia, such as a massless frame."""
    world = type(tree)(tree.base)
    world.attach(body.tree, world.base, _FLIGHT)
    rest = np.zeros(world.nv)
    world.forward_dynamics(State(world, body.state.to_dict()["q"]).q, rest, rest)


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
    if twist is None:
        raise ShapeError(
            "twist must be 'co_moving', 'at_rest' or six numbers [ω; v] in the payload's own frame, because the impact "
            "depends on the motion of the payload just before; it was not given"
        )
    try:
        V = np.array(expressions.real(twist))
    except (TypeError, ValueError, OverflowError):
        raise ShapeError(
            f"twist must be 'co_moving', 'at_rest' or six numbers [ω; v] in the payload's own frame; got {twist!r}"
        ) from None
    if V.shape != (6,) or not np.isfinite(V).all():
        raise ShapeError(f"twist must be six finite numbers [ω; v] in the payload's own frame; got {twist!r}")
    return V
