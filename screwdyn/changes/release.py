"""Releases in motion (docs/mathematics.md §6); a payload that a loop holds hangs on the loop then (§12)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from screwdyn.changes import law, move
from screwdyn.changes.change import Change, Scheduled
from screwdyn.changes.grasp import FreeBody, freed
from screwdyn.core.errors import ScrewdynError, SingularAttachmentError
from screwdyn.mechanism.link import Loop
from screwdyn.mechanism.structure import Handle, Mechanism, Switch
from screwdyn.mechanism.topology import bridging, check_exchange, check_unfollowed
from screwdyn.physics import Robot, State
from screwdyn.physics.closure import Closure


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ReleaseEvent(Change):
    """Outcome of a release: a :class:`Change`, in which no energy is lost, with the following attributes.

    Attributes
    ----------
    released : FreeBody
        The payload just after the release, without loops to the rest; if it stays in the tree, as the ``payload`` of a
        :class:`GraspEvent`.
    loop : str or None
        The loop on which the payload hangs since then, now the name of a joint; ``None`` for a free payload.
    """

    loop: str | None = None
    _released: Callable[[], FreeBody] = field(repr=False)

    @cached_property
    def released(self) -> FreeBody:
        """The payload just after the release, which is made when it is asked for."""
        return self._released()


@dataclass(frozen=True, eq=False, repr=False)
class Release(Scheduled[ReleaseEvent]):
    """A release at a time or on a condition in :func:`simulate` (docs/mathematics.md §6)."""

    verb = "release"

    what: str | Handle
    into_world: bool = field(default=False, kw_only=True)

    def enact(self, tree: Robot, state: State) -> ReleaseEvent:
        """All rates continue: no freedom is lost."""
        if not isinstance(self.into_world, bool | np.bool_):
            raise ScrewdynError(f"into_world must be True or False; got {self.into_world!r}")
        root = tree.resolve(self.what)
        bridges = [] if self.into_world else bridging(tree.topology, root)
        at, left = tree.topology.attachments[root], law.motor_energy(tree, state.q, state.qd, root)
        apart = tree.topology.separable(root) if self.into_world or bridges else tree.topology
        released = partial(freed, tree.copy(), State.of(tree, state.q, state.qd), root, apart)
        if self.into_world:
            check_unfollowed(tree.topology, at)
            world = released().world()
            try:
                world.impulse_response(world.model.configurations.neutral, np.zeros(world.nv))
            except SingularAttachmentError as error:  # of the joint that it will have
                raise SingularAttachmentError(str(error).replace(f"{world.base}[", f"{root}[")) from None
            flying = tree.topology.move(root, tree.base, law.flight(), np.eye(4))
            after = move.rehung(tree, state, root, root, flying)
        elif bridges:
            check_exchange(tree.topology, bridges[0].joint, at)
            Closure(tree).check_moving(state.q, state.qd)
            loop = _carrying(tree, root, bridges[0])
            after = move.rehung(tree, state, root, loop.link, tree.topology.grafted(root, loop))
            tree.forward_dynamics(after.q, after.qd, np.zeros(tree.nv))  # raises an error without inertia of a joint
        else:
            left = float(tree.subtree_kinetic_energy(root, state.q, state.qd))
            left += law.motor_energy(tree, state.q, state.qd, root, apart=True)
            tree.detach(root)
            after = state.part(tree)
        return ReleaseEvent(
            state=after,
            link=root,
            kinetic_energy_brought=-left,
            loop=bridges[0].name if bridges else None,
            _released=released,
        )

    def switch(self, tree: Mechanism) -> Switch:
        """The payload and the rotor of its joint go."""
        if self.into_world:
            raise ScrewdynError("a rollout has no free bodies: what is released leaves it; omit into_world=")
        root, rest = tree.resolve(self.what), tree.copy()
        rest.topology = replace(rest.topology, loops={})  # a run can release what no loop holds then
        rest.detach(root)
        rotors = [link for link in tree.links if link not in {*rest.links, *tree.subtree(root)}]
        return Switch(root, root, goes=(root, *rotors))

    def restructure(self, tree: Robot) -> None:
        """As :meth:`KinematicTree.detach`, but the payload may stay in the tree."""
        root = tree.resolve(self.what)
        if self.into_world:
            self.happen(tree, State(tree))
        elif bridges := bridging(tree.topology, root):
            tree.topology = tree.topology.grafted(root, _carrying(tree, root, bridges[0]))
        else:
            tree.detach(root)


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
    return Release(what, into_world=into_world).happen(tree, state)


def _carrying(tree: Robot, root: str, loop: Loop) -> Loop:
    """A loop as one that carries a link of the subtree of a root."""
    return loop.carrying(loop.link if loop.link in tree.subtree(root) else loop.to)
