"""Letting go of a link that a loop holds: it hangs on the joint of the loop then (docs/mathematics.md §12)."""

from __future__ import annotations

import numpy as np

from screwdyn.core.types import Array
from screwdyn.mechanism import surgery
from screwdyn.mechanism.link import Loop, reversed_motion
from screwdyn.physics.charts import positions_near, screws_at
from screwdyn.physics.closure import Closure
from screwdyn.physics.model import Robot
from screwdyn.physics.state import State
from screwdyn.screws import screw

__all__ = ["graft"]


def graft(tree: Robot, state: State, root: str, loop: Loop) -> State:
    """Hang a link and all links beyond it on a loop instead of on its joint; the state of the changed tree.

    All bodies keep their poses and twists.

    Parameters
    ----------
    tree : Robot
        Changed.
    state : State
        Of the tree.
    root : str
    loop : Loop
        One of those that bridge the joint of the link.

    Raises
    ------
    LoopError
        If the state opens a loop.
    TopologyError, UnknownNameError, JointError
        If the links cannot be hung on the loop.
    SingularAttachmentError
        If a joint of the changed tree feels no inertia.
    """
    Closure(tree, tree.model).check_moving(state.q, state.qd)
    loop = loop.carrying(loop.link if loop.link in tree.subtree(root) else loop.to)
    T = screw.inverse(tree.forward_kinematics(loop.to, state.q)) @ tree.forward_kinematics(loop.link, state.q)
    twist, of_carrier = (tree.jacobian(link, state.q, "body") @ state.qd for link in (loop.link, loop.to))
    start, _ = positions_near(loop.joint, screw.inverse(loop.home) @ T)
    slip = twist - screw.Ad(screw.inverse(T)) @ of_carrier
    motions = {loop.name: (start, np.linalg.lstsq(screws_at(loop.joint, start), slip)[0])}
    path = tree.path(loop.link)
    for at in (tree.topology.attachments[link] for link in path[path.index(root) + 1 :]):
        if at.joint.nv:
            own = (state[name] for name in at.joint.position_names(at.name)), map(state.velocity, at.coordinates)
            motions[at.name] = reversed_motion(at.joint, *(np.array([*x]) for x in own))
    tree.topology = surgery.grafted(tree.topology, root, loop)
    q: dict[str, Array] = {}
    qd: dict[str, Array] = {}
    for name, (positions, rates) in motions.items():
        joint = tree.joint(name)
        q |= zip(joint.position_names(name), positions, strict=True)
        qd |= zip(joint.freedom_names(name), rates, strict=True)
    after, _ = state.onto(tree, q, qd)
    tree.forward_dynamics(after.q, after.qd, np.zeros(tree.nv))  # raises an error for a joint that feels no inertia
    return after
