"""The methods of a tree that change it, at rest or while it moves."""

from __future__ import annotations

from typing import overload

from screwdyn.core.errors import ShapeError
from screwdyn.core.types import ArrayLike
from screwdyn.mechanism import surgery
from screwdyn.mechanism.inertia import Inertia
from screwdyn.mechanism.joint import Joint
from screwdyn.mechanism.structure import Handle, require_joint
from screwdyn.physics.state import State
from screwdyn.screws import screw
from screwdyn.simulation import impact, rearrange
from screwdyn.simulation.closing import Closing
from screwdyn.simulation.outcomes import Change, ImpactEvent, LockEvent
from screwdyn.simulation.rearrange import Start

__all__ = ["Changes"]


class Changes(Closing):
    """Changes of a tree. After an error, the tree is unchanged.

    With a ``state`` of the tree just before the change, positions are continuous, the momenta are projected on the
    freedoms of the changed tree (docs/mathematics.md §6), and the result has the state just after the change. Without a
    state, only the structure changes; :meth:`State.onto` then carries a state over.
    """

    # Functions whose first argument is the tree.
    grasp = impact.grasp
    release = impact.release

    @overload
    def lock(self, joint: str, state: None = None, *, at: ArrayLike | None = None) -> None: ...
    @overload
    def lock(self, joint: str, state: State) -> LockEvent: ...
    def lock(self, joint: str, state: State | None = None, *, at: ArrayLike | None = None) -> LockEvent | None:
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
            self.topology = surgery.lock(self.topology, joint, at)
            return None
        if at is not None:
            raise ShapeError("the joint is locked at its position of the state, so at= cannot be given with a state")
        return rearrange.lock(self, state, joint)

    @overload
    def unlock(self, joint: str, state: None = None) -> None: ...
    @overload
    def unlock(self, joint: str, state: State) -> LockEvent: ...
    def unlock(self, joint: str, state: State | None = None) -> LockEvent | None:
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
            self.topology = surgery.unlock(self.topology, joint)
            return None
        return rearrange.unlock(self, state, joint)

    @overload
    def replace_joint(self, link: Handle | str, joint: Joint, state: None = None) -> None: ...
    @overload
    def replace_joint(self, link: Handle | str, joint: Joint, state: State) -> ImpactEvent: ...
    def replace_joint(self, link: Handle | str, joint: Joint, state: State | None = None) -> ImpactEvent | None:
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
            self.topology = surgery.replace_joint(self.topology, self.resolve(link), joint)
            return None
        return rearrange.replace_joint(self, state, link, joint)

    @overload
    def set_inertia(self, link: Handle | str, inertia: Inertia | None, state: None = None) -> None: ...
    @overload
    def set_inertia(self, link: Handle | str, inertia: Inertia | None, state: State) -> Change: ...
    def set_inertia(self, link: Handle | str, inertia: Inertia | None, state: State | None = None) -> Change | None:
        """Give a link another inertia, in place. Coordinates and handles stay valid.

        Parameters
        ----------
        link : Handle or str
        inertia : Inertia or None
            ``None`` for a massless link.
        state : State, optional
            Of the tree just before. All rates continue: what is added or removed moves with the link.

        Returns
        -------
        Change or None
            With a state: the state just after, and the kinetic energy of what was added minus that of what was
            removed.

        Raises
        ------
        UnknownNameError, InertiaError, TopologyError
            If there is no such link, ``inertia`` is no inertia, or the link is the rotor of a joint.
        StaleHandleError, UnboundSymbolError
            With a state: if it does not belong to the present tree, or ``inertia`` has symbols.
        """
        if state is None:
            self.topology = surgery.set_inertia(self.topology, self.resolve(link), inertia)
            return None
        return rearrange.set_inertia(self, state, link, inertia)

    @overload
    def move(
        self, what: Handle | str, to: str, joint: Joint | None = None, at: ArrayLike | None = None, state: None = None
    ) -> None: ...
    @overload
    def move(
        self,
        what: Handle | str,
        to: str,
        joint: Joint | None = None,
        at: ArrayLike | None = None,
        *,
        state: State,
        start: Start | None = None,
    ) -> ImpactEvent: ...
    def move(
        self,
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
        """
        if state is not None:
            return rearrange.move(self, state, what, to, joint, at, start)
        if start is not None:
            raise ShapeError("start= needs a state; without one, only the structure of the tree changes")
        root = self.resolve(what)
        self.resolve(to)
        former = self.topology.attachments[root]
        locked = former.locked if joint is None else None
        joint = surgery.kept_joint(former) if joint is None else joint
        require_joint(joint)
        home = screw.as_pose(at, f"the pose of {root!r} on {to!r}")
        topology = surgery.move(self.topology, root, to, joint, home)
        self.topology = surgery.lock(topology, former.name, locked.q) if locked else topology
        return None
