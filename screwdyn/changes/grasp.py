"""Grasps in motion (docs/mathematics.md §6).

Positions are continuous. Rates are not, unless the payload moves with the link that grasps it: the new constraint
exerts an impulse, the motors do not, and momentum is conserved along the motions that the joint allows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property, partial
from itertools import compress
from typing import Annotated, Literal

import numpy as np

from screwdyn.changes import law, move
from screwdyn.changes.change import ImpactEvent, LinkName, Pose, Scheduled
from screwdyn.changes.move import HandOver, Start
from screwdyn.core import Array, ArrayLike, EquilibriumError, ScrewdynError, ShapeError, TopologyError, expressions
from screwdyn.forms.configurations import Limits
from screwdyn.forms.search import stable_equilibrium
from screwdyn.mechanism import FIXED, Joint, Shapes, pose_at
from screwdyn.mechanism.plausible import check_reach
from screwdyn.mechanism.structure import Body, Handle, Mechanism, Switch, require_joint
from screwdyn.mechanism.topology import Topology, check_exchange, without_bridges
from screwdyn.physics import LARGEST, Robot, State, check_state
from screwdyn.screws import screw

# Distance beyond a limit, rad or m, that counts as rounding of an equilibrium.
_ROUNDING = 1e-9


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
    pose: Annotated[Array, "pose"]
    twist: Annotated[Array, "twist"]
    state: State

    def world(self) -> Robot:
        """The payload alone, on a free joint."""
        ground = f"{max((*self.tree.links, *self.tree.joints), key=len)}+"  # a name that the tree does not have
        world = type(self.tree)(ground)
        world.attach(self.tree, ground, law.flight(ground))
        return world

    @property
    def kinetic_energy(self) -> float:
        """Kinetic energy of the payload including its own joints, J (docs/mathematics.md §6)."""
        q = np.concatenate([law.flight().neutral, self.state.q])
        return float(self.world().kinetic_energy(q, np.concatenate([self.twist, self.state.qd])))


Twist = Annotated[Literal["co_moving", "at_rest"] | ArrayLike, "twist"]
Payload = Annotated[Body | FreeBody | Handle | str, "payload"]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class GraspEvent(ImpactEvent):
    """Outcome of a grasp: an :class:`ImpactEvent`, whose link is the payload's base, with the following attributes.

    Attributes
    ----------
    handle : Handle
        For :meth:`KinematicTree.release`.
    payload : FreeBody
        The payload just before the grasp. Joints of a link of the tree that follow joints of the rest are independent
        in it, and joints whose rotor is on the rest have none.
    """

    handle: Handle
    _payload: Callable[[], FreeBody] = field(repr=False)

    @cached_property
    def payload(self) -> FreeBody:
        """The payload just before the grasp, which is made when it is asked for."""
        return self._payload()


@dataclass(frozen=True, eq=False, repr=False)
class Grasp(Scheduled[GraspEvent]):
    """A grasp at a time or on a condition in :func:`simulate` (docs/mathematics.md §6).

    Parameters
    ----------
    body, to, twist, joint, at, name, body_state, prefix, pose, start, shape
        As for :meth:`KinematicTree.grasp`.
    time : float
        In seconds, on the clock of the run, which begins at ``t0``; or
    when : callable (t, state) -> float or bool
        The event is due as soon as this returns True or a number > 0. The time of a smooth change of sign is located
        with the smallest error. The function is called from the start of the run, at least once every ``step``, with
        the state of the tree at that time.

    Raises
    ------
    ScrewdynError
        Unless exactly one of a valid ``time`` and a callable ``when`` is given.
    ShapeError
        If ``twist`` is missing for a payload that does not bring its motion.
    """

    verb = "grasp"

    body: Payload
    _: KW_ONLY
    to: LinkName
    twist: Twist | None = None
    joint: Joint | None = None
    at: Pose | None = None
    name: str | None = None
    body_state: State | None = None
    prefix: str = ""
    pose: Pose | None = None
    start: Start | Literal["hanging"] | None = None
    shape: Shapes | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.twist is None and not brings_its_motion(self.body):
            payload_twist(None, np.zeros(6))

    def enact(self, tree: Robot, state: State) -> GraspEvent:
        """The payload slips by its twist relative to the link that grasps it."""
        if isinstance(self.body, Handle | str):
            return self._again(tree, state, tree.resolve(self.body))
        given, pose, twist, inner, start = self.body, self.pose, self.twist, self.body_state, self.start
        body = given.tree if isinstance(given, FreeBody) else given
        if isinstance(given, FreeBody):
            self._refuse("a FreeBody has")
            pose, twist, inner = given.pose, given.twist, given.state
        if not isinstance(body, Body):
            raise TopologyError(
                f"only an Inertia, a Link, a KinematicTree or a FreeBody can be grasped, or a link of the tree by its "
                f"handle or name; got {body!r}"
            )
        joint = FIXED if self.joint is None else require_joint(self.joint)
        check_exchange(tree.topology, joint)
        hanging = isinstance(start, str)
        if hanging and (start != "hanging" or pose is not None):
            raise ShapeError(
                f"start must be positions of the new joint, or 'hanging' for a payload without a pose; got {start!r}"
            )
        hand, rates = tree.forward_kinematics(self.to, state.q), tree.link_twist(self.to, state.q, state.qd, "body")
        handle = tree._hang(body, self.to, joint, self.at, self.name, self.prefix, self.shape)
        new = tree.topology.attachments[handle.name]
        if pose is not None:
            T = screw.inverse(hand) @ screw.as_pose(pose, f"the pose of {handle.name!r}")
            home, first = move.seated(new, T, self.at, start)
            tree.topology = tree.topology.replace_joint(handle.name, new.joint, home)
        else:
            home, first = new.home, move.started(new, None if hanging else start)
        if inner is not None:
            check_state(inner, body if isinstance(body, Robot) else tree.copy().detach(handle.name), "payload")
        elif isinstance(body, Robot):
            inner = State(body)
        q, qd = state.q, state.qd
        if joint.nv or inner:
            own_q, own_qd = (inner.q, inner.qd) if inner else ((), ())
            q, qd = np.concatenate([q, first, own_q]), np.concatenate([qd, np.zeros(joint.nv), own_qd])
        if hanging:
            q, k = _hung(tree, q, handle.name, new.coordinates, len(state.qd) + joint.nv), len(state.q)
            if joint.chart is not None and joint.chart.orientation == 4:  # of its two quaternions, that with w >= 0
                q[k : k + 4] *= np.copysign(1.0, q[k + 3])
        k = len(state.q) + joint.nq
        first, own_q, own_qd = q[len(state.q) : k], q[k:], qd[len(state.qd) + joint.nv :]
        T = home
        if joint.nv:  # zeros have the same signs as in the product with the identity
            T = home + 0.0 if start is None and pose is None else home @ pose_at(joint, first)
        check_reach(tree.topology, handle.name, self.to, T)
        carried = screw.twist_in(T, rates)
        V = payload_twist(twist, carried)
        outcome, brought = law.struck(tree, q, qd, handle.name, V - carried)
        brought += law.motor_energy(tree, q, qd, handle.name, apart=True)
        before = partial(_alone, tree.copy(), handle.name, hand, T, V, own_q, own_qd)
        return GraspEvent(**outcome, kinetic_energy_brought=brought, handle=handle, _payload=before)

    def _again(self, tree: Robot, state: State, root: str) -> GraspEvent:
        """The grasp of a link of the tree, which is a hand-over."""
        more = {"name": self.name, "prefix": self.prefix or None, "shape": self.shape}
        self._refuse(f"{root!r} is a link of the tree, which has", **more)
        if isinstance(self.start, str):
            raise ShapeError(
                f"{root!r} stays where it is, so start must be positions of the new joint; got {self.start!r}"
            )
        apart = tree.topology.separable(root)
        before = partial(freed, tree.copy(), State.of(tree, state.q, state.qd), root, apart)
        moved = HandOver(root, self.to, joint=self.joint, at=self.at, start=self.start).enact(tree, state)
        handle = Handle(root, tree.topology.attachments[root].serial)
        return GraspEvent(**vars(moved), handle=handle, _payload=before)

    def _refuse(self, what: str, **more: object) -> None:
        """Raise ShapeError if something is given that the payload brings itself."""
        known = {"twist": self.twist, "pose": self.pose, "body_state": self.body_state} | more
        given = [f"{name}=" for name, value in known.items() if value is not None]
        if given:
            raise ShapeError(f"{what} its own {', '.join(x[:-1] for x in given)}; leave out {', '.join(given)}")

    def restructure(self, tree: Robot) -> None:
        """As :meth:`KinematicTree.attach`, or :meth:`~KinematicTree.move` for a link of the tree."""
        if isinstance(self.body, Handle | str):
            HandOver(self.body, self.to, joint=self.joint, at=self.at).restructure(tree)
        else:
            body = self.body.tree if isinstance(self.body, FreeBody) else self.body
            tree.attach(body, self.to, self.joint, self.at, self.name, prefix=self.prefix, shape=self.shape)

    def switch(self, tree: Mechanism) -> Switch:
        """The payload comes to ``at``; a pose in the base frame would be another place on the hand in each run."""
        if not isinstance(self.body, Body) or self.pose is not None or isinstance(self.start, str):
            raise ScrewdynError(
                "a rollout grasps an Inertia, a Link or a KinematicTree with at= on the hand and start= of the joint; "
                "a FreeBody, a link of the tree, pose= and start='hanging' depend on the run: use simulate for each"
            )
        check_exchange(tree.topology, FIXED if self.joint is None else require_joint(self.joint))
        links, positions, freedoms = tree.links, tree.positions, tree.coordinates
        root = tree.attach(
            self.body, self.to, self.joint, self.at, self.name, prefix=self.prefix, shape=self.shape
        ).name
        own_q = own_qd = np.zeros(0)
        if isinstance(self.body, Robot):
            inner = State(self.body) if self.body_state is None else self.body_state
            check_state(inner, self.body, "payload")
            own_q, own_qd = inner.q, inner.qd
        elif self.body_state is not None:
            raise ShapeError(f"body_state is of a payload that is a tree; {root!r} is a {type(self.body).__name__}")
        q = move.started(tree.topology.attachments[root], self.start), own_q
        qd = np.zeros(tree.nv - len(freedoms) - len(own_qd)), own_qd
        V = payload_twist(self.twist, np.full(6, np.nan))
        return Switch(
            root,
            self.to,
            comes=tuple([link for link in tree.links if link not in {*links}]),
            q=dict(zip(tree.positions[len(positions) :], np.concatenate(q).tolist(), strict=True)),
            qd=dict(zip(tree.coordinates[len(freedoms) :], np.concatenate(qd).tolist(), strict=True)),
            twist=None if np.isnan(V).any() else V,
        )

    def joints(self, tree: Robot) -> Mapping[str, Joint]:
        """That of the grasp, and those of the payload."""
        if isinstance(self.body, Handle | str):
            return move.joint_of(self.body, self.joint)
        alone = self.brings(tree)
        return {} if alone is None else {at.name: at.unlocked.joint for at in alone.topology.attached}

    def brings(self, tree: Robot) -> Robot | None:
        """The payload with its joint, alone on the base of a tree; None if it cannot be attached."""
        if isinstance(self.body, Handle | str):
            return None
        body = self.body.tree if isinstance(self.body, FreeBody) else self.body
        # A rotor may have a carrier in the tree.
        joint = replace(self.joint, rotor=None) if isinstance(self.joint, Joint) else self.joint
        alone = type(tree)(tree.base)
        try:
            alone.attach(body, alone.base, joint, name=self.name, prefix=self.prefix)
        except ScrewdynError:  # the event raises it when it happens
            return None
        return alone


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
        (:func:`~screwdyn.forms.search.stable_equilibrium`), which must be within the limits of the joints.
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

    Warns
    -----
    ScrewdynWarning
        If the payload is farther from ``to`` than the links of the moving chain and the payload are long together; if
        ``start`` is an angle far beyond the limits of the joint, or a quaternion (1, 0, 0, 0), as for :class:`State`.

    Notes
    -----
    After an error, the tree and the state are unchanged.
    """
    return Grasp(
        body,
        to=to,
        twist=twist,
        joint=joint,
        at=at,
        name=name,
        body_state=body_state,
        prefix=prefix,
        pose=pose,
        start=start,
        shape=shape,
    ).happen(tree, state)


def _hung(tree: Robot, q: Array, root: str, own: Sequence[str], first: int) -> Array:
    """The configuration in which a payload hangs at rest; EquilibriumError if there is none, also within the limits."""
    # ``first`` is the first of its own freedoms.
    passive = compress(tree.coordinates[first:], tree.model.passive[first:])
    freedoms = [*own, *passive]
    try:
        q = stable_equilibrium(tree, q, freedoms)
    except EquilibriumError as error:
        kind = tree.topology.attachments[root].joint.kind
        raise EquilibriumError(
            f"start='hanging' needs a position in which {root!r} hangs at rest by its {kind} joint and its own passive "
            f"joints, and none was found; give start= as positions ({error})"
        ) from None
    limits = Limits.of(tree, lambda joint: True)
    for (_, joint, coordinate, side), excess in zip(limits.keys, limits.excess(q).tolist(), strict=True):
        if coordinate in freedoms and excess > _ROUNDING:
            raise EquilibriumError(
                f"the payload hangs at rest with {coordinate!r} {excess:.4g} beyond the {side} limit of joint "
                f"{joint!r}, so start='hanging' has no position; give start= as positions"
            )
    return q


def _alone(tree: Robot, root: str, hand: Array, T: Array, twist: Array, q: Array, qd: Array) -> FreeBody:
    """The payload of a tree that has grasped it, as it was before: with the pose T in the hand, and a twist."""
    alone, pose = tree.copy().detach(root), hand @ T
    alone.gravity = pose[:3, :3].T @ tree.gravity
    return FreeBody(alone, pose, twist, State(alone, q, qd))


def freed(tree: Robot, state: State, root: str, topology: Topology) -> FreeBody:
    """A link and all links beyond it as they would fly on, detached from a structure and from loops to the rest."""
    pose, rest = tree.forward_kinematics(root, state.q), tree.copy()
    rest.topology = without_bridges(topology, root)
    removed = rest.detach(root)
    removed.gravity = pose[:3, :3].T @ tree.gravity
    return FreeBody(removed, pose, tree.link_twist(root, state.q, state.qd, "body"), state.onto(removed)[0])


def brings_its_motion(body: object) -> bool:
    """Whether a payload has a pose and a twist: a FreeBody, or a link of the tree by its handle or name."""
    return isinstance(body, FreeBody | Handle | str)


def payload_twist(twist: Twist | None, co_moving: Array) -> Array:
    """The payload's twist, (6,), from the argument ``twist`` of a grasp and the twist of the link that grasps it."""
    if isinstance(twist, str) and twist in ("co_moving", "at_rest"):
        return co_moving if twist == "co_moving" else np.zeros(6)
    expected = "twist must be 'co_moving', 'at_rest' or six numbers [ω; v] in the payload's own frame"
    if twist is None:
        raise ShapeError(
            f"{expected}, because the impact depends on the motion of the payload just before; it was not given"
        )
    try:
        V = np.array(expressions.real(twist))
    except (TypeError, ValueError, OverflowError):
        raise ShapeError(f"{expected}; got {twist!r}") from None
    if V.shape != (6,) or not np.abs(V).max() < LARGEST:
        raise ShapeError(
            f"twist must be six finite numbers [ω; v] in the payload's own frame, below {LARGEST:g}; got {twist!r}"
        )
    return V
