"""Another joint of a link, in place or on another parent: a hand-over (docs/mathematics.md §6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, overload

import numpy as np

from screwdyn.changes import law
from screwdyn.changes.change import ImpactEvent, LinkName, Pose, Scheduled
from screwdyn.core import Array, ArrayLike, ShapeError, UnknownNameError
from screwdyn.mechanism import Handle, Joint, checked_positions, pose_at, require_joint
from screwdyn.mechanism.link import FIXED, Attachment, reversed_motion
from screwdyn.mechanism.plausible import check_angles, check_reach
from screwdyn.mechanism.topology import Topology, check_exchange
from screwdyn.physics import Robot, State
from screwdyn.physics.charts import positions_near, screws_at
from screwdyn.screws import screw

Start = Annotated[ArrayLike | Mapping[str, float], "start"]

# Distance in rad and m, between a pose and what a joint can reach, that counts as rounding of the numbers given.
_REACHED = 1e-6


@dataclass(frozen=True, eq=False, repr=False)
class HandOver(Scheduled[ImpactEvent]):
    """A payload passes from one hand to the other, by its own joint unless another one is given, in :func:`simulate`.

    Unlike a release and a grasp, nothing flies in between: there is one impact (docs/mathematics.md §6).

    Parameters as for :meth:`KinematicTree.move`, ``time`` and ``when`` as for :class:`Grasp`, also their errors.
    """

    verb = "hand over"

    what: str | Handle
    to: LinkName
    joint: Joint | None = field(default=None, kw_only=True)
    at: Pose | None = field(default=None, kw_only=True)
    start: Start | None = field(default=None, kw_only=True)

    def enact(self, tree: Robot, state: State) -> ImpactEvent:
        """The link and all beyond it slip against what their new parent and joint allow."""
        link, joint, start = tree.resolve(self.what), self.joint, self.start
        former = tree.topology.attachments[link]
        locked = former.locked if joint is None and former.unlocked.joint.nv < 6 else None
        if joint is None:
            joint = kept_joint(former)
            if self.at is None and start is None:
                start = locked.q if locked else [state[name] for name in joint.position_names(former.name)]
        require_joint(joint)
        check_exchange(tree.topology, joint, former)
        T, slip = _relative(tree, state, link, self.to)
        topology = tree.topology.move(link, self.to, joint, np.eye(4))
        home, q = seated(topology.attachments[link], T, self.at, start)
        topology = topology.replace_joint(link, joint, home)
        check_reach(topology, link, self.to, T)
        if locked:
            topology, q = topology.lock(former.name, q), np.zeros(0)
        return _exchanged(tree, state, link, topology, q, slip)

    def restructure(self, tree: Robot) -> None:
        """As :meth:`KinematicTree.move`."""
        move(tree, self.what, self.to, self.joint, self.at)

    def joints(self, tree: Robot) -> Mapping[str, Joint]:
        """That of the payload, if it is given."""
        return joint_of(self.what, self.joint)


@overload
def move(
    tree: Robot, what: Handle | str, to: str, joint: Joint | None = ..., at: ArrayLike | None = ..., state: None = ...
) -> None: ...
@overload
def move(
    tree: Robot,
    what: Handle | str,
    to: str,
    joint: Joint | None = None,
    at: ArrayLike | None = None,
    *,
    state: State,
    start: Start | None = None,
) -> ImpactEvent: ...
def move(
    tree: Robot,
    what: Handle | str,
    to: str,
    joint: Joint | None = None,
    at: ArrayLike | None = None,
    state: State | None = None,
    start: Start | None = None,
) -> ImpactEvent | None:
    """Attach a link with all links beyond it to another parent, by its own joint unless another one is given.

    With a state, this is a hand-over: the link passes from one parent to the other in one impact. The rotor of a
    joint that is replaced is removed with it, and a lock of it ends. Handles stay valid; the moved links come last.

    Parameters
    ----------
    what : Handle or str
        The link.
    to : str
        The new parent, which is not beyond the link.
    joint : Joint, optional
        As for :meth:`attach`. By default the joint that the link has, locked if it is locked; a link on a free
        joint, which holds nothing, is fixed.
    at : (4, 4) pose or (3,) position, optional
        Pose of the link's frame in the frame of ``to`` while the joint is neutral, m. Without a state, the identity
        by default. With a state it is worked out from the present pose of the link; if it is given, the positions
        of the joint are worked out.
    state : State, optional
        Of the tree just before.
    start : number, (nq,) array or mapping from position to number, optional
        With a state: positions at which the joint starts, rad and m. By default a new joint is neutral, and the
        joint that the link has keeps its positions.

    Returns
    -------
    ImpactEvent or None
        With a state: the state just after, the impulse on the link, and the energy lost.

    Raises
    ------
    UnknownNameError, StaleHandleError, TopologyError, ShapeError
        If a link is unknown or the handle stale; if the link is the base or a rotor, or ``to`` is the link or
        beyond it; if the name of the joint is taken, or the link is not where the joint can carry it; if joints
        that follow the former joint are locked with it.
    SingularAttachmentError, InertiaError, JointError
        For the state, as for :meth:`grasp`. JointError also if the former joint follows another one or is followed.

    Warns
    -----
    ScrewdynWarning
        For a hand-over over a long distance, and for ``start``, as for :meth:`grasp`.
    """
    if state is not None:
        return HandOver(what, to, joint=joint, at=at, start=start).happen(tree, state)
    if start is not None:
        raise ShapeError("start= needs a state; without one, only the structure of the tree changes")
    root = tree.resolve(what)
    tree.resolve(to)
    former = tree.topology.attachments[root]
    locked = former.locked if joint is None and former.unlocked.joint.nv < 6 else None
    joint = kept_joint(former) if joint is None else joint
    require_joint(joint)
    home = screw.as_pose(at, f"the pose of {root!r} on {to!r}")
    topology = tree.topology.move(root, to, joint, home)
    tree.topology = topology.lock(former.name, locked.q) if locked else topology
    return None


@dataclass(frozen=True, eq=False, repr=False)
class ReplaceJoint(Scheduled[ImpactEvent]):
    """A link gets another joint, at a time or on a condition in :func:`simulate`."""

    verb = "replace joint of"

    link: str | Handle
    joint: Joint

    def enact(self, tree: Robot, state: State) -> ImpactEvent:
        """The link and all beyond it slip by the motion that the former joint allowed."""
        require_joint(self.joint)
        link = tree.resolve(self.link)
        at = tree.topology.attachments[link]
        check_exchange(tree.topology, self.joint, at)
        own = [state.coordinates.index(name) for name in at.coordinates]
        slip = tree.jacobian(link, state.q, "body")[:, own] @ state.qd[own]
        q = np.array([state[name] for name in at.joint.position_names(at.name)])
        topology = tree.topology.replace_joint(link, self.joint, at.home @ pose_at(at.joint, q))
        return _exchanged(tree, state, link, topology, np.array(self.joint.neutral), slip)

    def joints(self, tree: Robot) -> Mapping[str, Joint]:
        """The new joint; without a name, it takes that of the former one."""
        former = tree.topology.attachments.get(self.link.name if isinstance(self.link, Handle) else self.link)
        return joint_of(former.name if former else self.link, self.joint)


@overload
def replace_joint(tree: Robot, link: Handle | str, joint: Joint, state: None = None) -> None: ...
@overload
def replace_joint(tree: Robot, link: Handle | str, joint: Joint, state: State) -> ImpactEvent: ...
def replace_joint(tree: Robot, link: Handle | str, joint: Joint, state: State | None = None) -> ImpactEvent | None:
    """Give a link another joint, in the same place of the order. Handles stay valid.

    The rotor of the former joint is removed with it, and a lock of it ends: the new joint is not locked.

    Parameters
    ----------
    link : Handle or str
        The link that the joint carries.
    joint : Joint
        A joint without a name takes the name of the former one.
    state : State, optional
        Of the tree just before. The pose of the link in its parent at that moment becomes the home of the new
        joint, which starts at its neutral position. Without a state the home stays the same.

    Returns
    -------
    ImpactEvent or None
        With a state: the state just after, the impulse on the link, and the energy lost.

    Raises
    ------
    UnknownNameError, TopologyError
        If there is no such link, it is the base or a rotor, ``joint`` is no joint, its name is taken, or joints
        that follow the former joint are locked with it.
    StaleHandleError, SingularAttachmentError, InertiaError, JointError
        For the state, as for :meth:`grasp`. JointError also if the former joint follows another one or is followed.
    """
    require_joint(joint)
    if state is None:
        tree.topology = tree.topology.replace_joint(tree.resolve(link), joint)
        return None
    return ReplaceJoint(link, joint).happen(tree, state)


def seated(new: Attachment, T: Array, at: ArrayLike | None, start: Start | None) -> tuple[Array, Array]:
    """Home pose and positions, of which one is given or neutral, of a new attachment with the pose T in its parent."""
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
    """The positions at which a new joint starts, (nq,), from a number, an array or a mapping; neutral by default."""
    joint = new.joint
    if start is None:
        return np.array(joint.neutral)
    if isinstance(start, bool | np.bool_):
        raise ShapeError(f"start must be positions of the new joint, or a mapping from position to number; got {start}")
    if isinstance(start, Mapping):
        names = joint.position_names(new.name)
        for name in start:
            UnknownNameError.check(name, names, "position of the new joint")
        start = [start.get(name, x) for name, x in zip(names, joint.neutral, strict=True)]
    q = checked_positions(new.name, joint, start)
    check_angles(new.name, joint, q.tolist())
    return q


def kept_joint(at: Attachment) -> Joint:
    """The joint of a link that is moved without another one: its own, but a fixed one for a link that moves freely."""
    joint = at.unlocked.joint
    return joint if joint.nv < 6 else FIXED


def joint_of(link: str | Handle, joint: Joint | None) -> dict[str, Joint]:
    """A new joint by its name, or by that of its link if it has none; nothing unless it is a joint."""
    name = link.name if isinstance(link, Handle) else str(link)
    return {joint.name or name: joint} if isinstance(joint, Joint) else {}


def _relative(tree: Robot, state: State, link: str, to: str) -> tuple[Array, Array]:
    """The pose of a link in another one, (4, 4), and its twist relative to that one, (6,), in its own frame."""
    T, V = law.pose_in(tree, link, to, state.q), tree.link_twist(link, state.q, state.qd, "body")
    return T, V - screw.twist_in(T, tree.link_twist(to, state.q, state.qd, "body"))


def _exchanged(tree: Robot, state: State, link: str, topology: Topology, q: Array, slip: Array) -> ImpactEvent:
    """The impact in which a link gets its joint of another structure, at positions q with zero rates."""
    # ``slip`` is its twist just before, in its own frame, minus that which the joint then allows, (6,).
    former, at = law.motor_energy(tree, state.q, state.qd, link), topology.attachments[link]
    tree.topology = topology
    positions = dict(zip(at.joint.position_names(at.name), q.tolist(), strict=True))
    after, _ = state.onto(tree, positions, dict.fromkeys(at.coordinates, 0.0))
    outcome, _ = law.struck(tree, after.q, after.qd, link, slip)
    motor = law.motor_energy(tree, after.q, after.qd, link, slip)
    return ImpactEvent(**outcome, kinetic_energy_brought=motor - former)


def rehung(tree: Robot, state: State, root: str, link: str, topology: Topology) -> State:
    """Let a root hang by a link beyond it, as in another structure; returns the state, of the same poses and twists."""
    at, path = topology.attachments[link], tree.path(link)
    T, V = _relative(tree, state, link, at.parent or tree.base)
    start, _ = positions_near(at.joint, screw.inverse(at.home) @ T)
    motions = {at.name: (start, np.linalg.lstsq(screws_at(at.joint, start), V)[0])}
    for one in (tree.topology.attachments[name] for name in path[path.index(root) + 1 :]):
        q = np.array([state[name] for name in one.joint.position_names(one.name)])
        qd = np.array([state.velocity(name) for name in one.coordinates])
        motions[one.name] = reversed_motion(one.joint, q, qd)
    tree.topology = topology
    positions, rates = ({name: np.squeeze(x[k]) for name, x in motions.items() if x[k].size} for k in (0, 1))
    return state.onto(tree, positions, rates)[0]
