"""Changes of joints, bodies and parents in motion, other than grasp and release (docs/mathematics.md §6)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.errors import JointError, ShapeError, UnknownNameError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.mechanism import surgery
from screwdyn.mechanism.chart import checked_positions, pose_at
from screwdyn.mechanism.inertia import Inertia
from screwdyn.mechanism.joint import Joint
from screwdyn.mechanism.link import Attachment
from screwdyn.mechanism.structure import Handle, require_joint
from screwdyn.mechanism.topology import check_no_rotor
from screwdyn.physics.charts import positions_near
from screwdyn.physics.model import Robot
from screwdyn.physics.state import State, check_state
from screwdyn.screws import screw
from screwdyn.simulation import momentum
from screwdyn.simulation.outcomes import Change, ImpactEvent, LockEvent

__all__ = [
    "Start",
    "lock",
    "move",
    "replace_joint",
    "require_independent",
    "seated",
    "set_inertia",
    "started",
    "unlock",
]

Start = ArrayLike | Mapping[str, float]

# Distance in rad and m, between a pose and what a joint can reach, that counts as rounding of the numbers given.
_REACHED = 1e-6


def lock(tree: Robot, state: State, joint: str) -> LockEvent:
    """See :meth:`KinematicTree.lock`."""
    check_state(state, tree)
    at = tree.topology.carrying(joint)
    own = [state.coordinates.index(name) for name in at.coordinates]
    q = [state[name] for name in at.joint.position_names(at.name)]
    before = momentum.bodies(tree, state.q)
    constraints = tree.constraint_jacobian(state.q)[:, own] if tree.loops else np.zeros((0, len(own)))
    with tree.transaction():
        tree.topology = surgery.lock(tree.topology, joint, q)
        kept = state.onto(tree)[0]
        impact = momentum.stop(tree, kept.q, kept.qd, before, own, state.qd[own], constraints)
        after = State(tree, kept.q, kept.qd + impact.rates)
        return LockEvent(
            state=after, link=at.link.name, energy_lost=impact.energy_lost, joint=joint, impulse=impact.impulse
        )


def unlock(tree: Robot, state: State, joint: str) -> LockEvent:
    """See :meth:`KinematicTree.unlock`."""
    check_state(state, tree)
    with tree.transaction():
        tree.topology = surgery.unlock(tree.topology, joint)
        at = tree.topology.carrying(joint)
        return LockEvent(state=state.onto(tree)[0], link=at.link.name, joint=joint, impulse=np.zeros(at.joint.nv))


def replace_joint(tree: Robot, state: State, what: Handle | str, joint: Joint) -> ImpactEvent:
    """See :meth:`KinematicTree.replace_joint`."""
    check_state(state, tree)
    require_joint(joint)
    link = tree.resolve(what)
    at = tree.topology.attachments[link]
    require_independent(tree, joint, at)
    S, rates = _own(tree, state, at)
    q = np.array([state[name] for name in at.joint.position_names(at.name)])
    motor = momentum.motor_energy(tree, state.q, state.qd, link)
    with tree.transaction():
        tree.topology = surgery.replace_joint(tree.topology, link, joint, at.home @ pose_at(at.joint, q))
        return _struck(tree, _anew(tree, state, link, joint.neutral), link, S @ rates, motor)


def set_inertia(tree: Robot, state: State, what: Handle | str, inertia: Inertia | None) -> Change:
    """See :meth:`KinematicTree.set_inertia`."""
    check_state(state, tree)
    link = tree.resolve(what)
    former = tree.link(link).inertia
    V = tree.jacobian(link, state.q, "body") @ state.qd
    with tree.transaction():
        tree.topology = surgery.set_inertia(tree.topology, link, inertia)
        new, old = (
            np.zeros((6, 6)) if body is None else expressions.floats(body.matrix, f"the inertia of {link!r}")
            for body in (inertia, former)
        )
        with np.errstate(over="ignore", invalid="ignore"):
            brought = 0.5 * (V @ new @ V - V @ old @ V)
        return Change(state=state.onto(tree)[0], link=link, kinetic_energy_brought=float(brought))


def move(
    tree: Robot,
    state: State,
    what: Handle | str,
    to: str,
    joint: Joint | None = None,
    at: ArrayLike | None = None,
    start: Start | None = None,
) -> ImpactEvent:
    """See :meth:`KinematicTree.move`."""
    check_state(state, tree)
    link = tree.resolve(what)
    former = tree.topology.attachments[link]
    locked = former.locked if joint is None else None
    if joint is None:
        joint = surgery.kept_joint(former)
        if at is None and start is None:
            start = locked.q if locked else [state[name] for name in joint.position_names(former.name)]
    require_joint(joint)
    require_independent(tree, joint, former)
    T = screw.inverse(tree.forward_kinematics(to, state.q)) @ tree.forward_kinematics(link, state.q)
    V = tree.jacobian(link, state.q, "body") @ state.qd
    carried = screw.Ad(screw.inverse(T)) @ tree.jacobian(to, state.q, "body") @ state.qd
    motor = momentum.motor_energy(tree, state.q, state.qd, link)
    with tree.transaction():
        tree.topology = surgery.move(tree.topology, link, to, joint, np.eye(4))
        home, q = seated(tree.topology.attachments[link], T, at, start)
        tree.topology = surgery.replace_joint(tree.topology, link, joint, home)
        if locked:
            tree.topology, q = surgery.lock(tree.topology, former.name, q), np.zeros(0)
        return _struck(tree, _anew(tree, state, link, q), link, V - carried, motor)


def require_independent(tree: Robot, joint: Joint, former: Attachment | None = None) -> None:
    """Raise JointError if a new joint in motion follows another one, or the former one does or is followed.

    Positions would not be continuous, or not be free to be chosen. The rotor of the former joint may follow it, because
    it is removed with it. TopologyError if the former joint is that of a rotor.
    """
    name, followed = None if former is None else former.name, False
    if former is not None:
        check_no_rotor(tree.topology, former.link.name)
        own = {at.name for at in former.rotor}
        others = (at for at in tree.topology.attachments.values() if at.name not in own)
        followed = any(at.joint.mimic is not None and at.joint.mimic.joint == name for at in others)
    if joint.mimic is not None or followed or (former is not None and former.joint.mimic is not None):
        what = f"joint {name!r} is followed by another one" if followed else "a joint that follows another one"
        raise JointError(f"{what}, which cannot be exchanged in motion; change the tree without a state")


def seated(new: Attachment, T: Array, at: ArrayLike | None, start: Start | None) -> tuple[Array, Array]:
    """Home pose and positions of a new attachment whose link has the pose T in its parent.

    The home pose is worked out from the positions ``start``, neutral by default, or the positions from the home ``at``.

    Raises
    ------
    ShapeError
        If both are given, or the joint cannot have the pose T with the home ``at``.
    """
    if at is None:
        q = started(new, start)
    elif start is not None:
        raise ShapeError(f"the pose of {new.link.name!r} is known, so give at= or start=, not both")
    else:
        home = screw.as_pose(at, f"the pose of {new.link.name!r} on {new.parent!r}")
        q, gap = positions_near(new.joint, screw.inverse(home) @ T)
        turn, slide = np.linalg.norm(gap[:3]), np.linalg.norm(gap[3:])
        if max(turn, slide) > _REACHED:
            raise ShapeError(
                f"{new.link.name!r} is not where the {new.joint.kind} joint at= can carry it: it is off by {turn:.3g} "
                f"rad and {slide:.3g} m; leave at= out to attach it where it is"
            )
    return T @ screw.inverse(pose_at(new.joint, q)), q


def started(new: Attachment, start: Start | None) -> Array:
    """The positions at which a new joint starts, (nq,), from a number, an array or a mapping; neutral by default.

    Raises
    ------
    ShapeError, UnknownNameError
        If they are not positions of the joint.
    """
    joint, names = new.joint, new.joint.position_names(new.name)
    if isinstance(start, Mapping):
        unknown = [name for name in start if name not in names]
        if unknown:
            raise UnknownNameError.of(unknown[0], names, "position of the new joint")
        start = [start.get(name, x) for name, x in zip(names, joint.neutral, strict=True)]
    return checked_positions(new.name, joint, joint.neutral if start is None else start)


def _own(tree: Robot, state: State, at: Attachment) -> tuple[Array, Array]:
    """Screws of the freedoms of an attachment's joint in the link's frame, (6, k), and their rates, (k,)."""
    own = [state.coordinates.index(name) for name in at.coordinates]
    return tree.jacobian(at.link.name, state.q, "body")[:, own], state.qd[own]


def _anew(tree: Robot, state: State, link: str, q: ArrayLike) -> State:
    """The state of a changed tree in which the joint of a link starts at positions q with zero rates."""
    at = tree.topology.attachments[link]
    positions = dict(zip(at.joint.position_names(at.name), np.array(q).tolist(), strict=True))
    return state.onto(tree, positions, dict.fromkeys(at.coordinates, 0.0))[0]


def _struck(tree: Robot, state: State, root: str, slip: Array, former: float) -> ImpactEvent:
    """An impact that ends the slip of a subtree; see :func:`momentum.impact`.

    ``former`` is the energy of the motor of the former joint, J, which leaves with it.
    """
    impact = momentum.impact(tree, state.q, state.qd, root, slip)
    brought = momentum.motor_energy(tree, state.q, state.qd, root, slip) - former
    return ImpactEvent(
        state=State(tree, state.q, state.qd + impact.rates),
        link=root,
        energy_lost=impact.energy_lost,
        kinetic_energy_brought=brought,
        impulse=impact.impulse,
    )
