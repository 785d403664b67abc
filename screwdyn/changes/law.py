"""The law of all changes: of the motions that the changed tree allows, the one nearest to the motion before.

docs/mathematics.md §6. Just before a change, body i has the twist J_i ν + s_i: that of the rates ν which the changed
tree keeps, and the slip s_i, which it does not allow. The rates after it are ν + δ, with

    δ = argmin ½ Σ |J_i δ − s_i|² + ½ Σ a δ²   over   J_c (ν + δ) = 0,                                             (1)

in the metric of the inertias, so that M δ + J_cᵀ Λ = Σ J_iᵀ M_i s_i. The energy lost is the minimum, and
M_i (J_i δ − s_i) are the impulses.
"""

from __future__ import annotations

import functools
from operator import add
from typing import Any

import numpy as np

from screwdyn.core import Array, InertiaError
from screwdyn.mechanism.joint import Joint, free
from screwdyn.physics import Model, Robot, State
from screwdyn.physics.closure import Closure
from screwdyn.physics.placement import NOTHING
from screwdyn.physics.recursions.whole_tree import MOST_STEPS, SETTLED
from screwdyn.physics.table import MASS, PARENT, PLACE
from screwdyn.screws import screw


@functools.lru_cache(maxsize=256)
def flight(name: str | None = None) -> Joint:
    """A passive free joint; one object for each name, because the frames of a joint are cached by its identity."""
    return free(name=name, passive=True)


def pose_in(tree: Robot, link: str, other: str, q: Array) -> Array:
    """The pose of a link in another one, (4, 4)."""
    T, X = tree.forward_kinematics(other, q), tree.forward_kinematics(link, q)
    X[:3, 3] -= T[:3, 3]
    X[:3] = T[:3, :3].T @ X[:3]
    return X


def struck(tree: Robot, q: Array, qd: Array, root: str, slip: Array) -> tuple[dict[str, Any], float]:
    """What an ImpactEvent has, if a link with all links beyond it stops to slip; their kinetic energy just before, J.

    ``slip`` is a twist of the link in its own frame, (6,). The motor of its joint is at rest just before; the energy
    contains the armatures of the joints beyond it. Errors as for :func:`stopped`; InertiaError if the kinetic energy of
    a body is negative for some motion.
    """
    model, at = tree.model, tree.model.placements[root]
    parts = _parts(model, root)
    check_bodies(model, None if at.freedoms else (parts[0], root, slip))
    (impact, momentum), of_root = tree._slipping(parts), np.array([[*at.pose.R, *at.pose.p, *slip.tolist()]])
    change = np.zeros(len(qd))
    for _ in range(MOST_STEPS):
        change, wrench, energies = impact(q, change, of_root)
        if not energies[2]:
            break
    if tree.topology.loops:
        change = change - closing(tree, q, qd + change)[0]
        _, wrench, energies = momentum(q, change, of_root)
    _, _, before = momentum(q, -qd, of_root)  # of what slips, at − V − s
    state = State.of(tree, q, qd + change)
    return {"state": state, "link": root, "energy_lost": float(energies[1]), "impulse": wrench}, float(before[0])


def stopped(tree: Robot, q: Array, qd: Array, own: slice) -> Array:
    """The change of the rates of a tree without loops, (nv,), if those of its ``own`` freedoms become zero.

    Of equation (1) only the slip differs: it is the motion of these. Articulated bodies from rest, among which they are
    held, give δ, and then what it leaves, until that is rounding: twice as a rule, more often if light bodies are next
    to heavy ones, whose digits the first result does not have. SingularAttachmentError if another freedom feels no
    inertia.
    """
    gone, change = np.zeros((2, len(qd)))
    gone[own] = -qd[own]
    response = tree._response_holding(own)
    for _ in range(MOST_STEPS):
        step = response(q, tree.joint_momentum(q, gone + change))
        change = change - step
        if step.dot(step) <= SETTLED * change.dot(change):
            break
    return gone + change


def closing(tree: Robot, q: Array, qd: Array) -> tuple[Array, Array]:
    """The rates that closed loops take, and the impulses Λ: see :meth:`Closure.impact`; LoopError if one is open."""
    closure = Closure(tree)
    closure.check(q)
    return closure.impact(q, qd)


def motor_energy(tree: Robot, q: Array, qd: Array, link: str, slip: Array | None = None, apart: bool = False) -> float:
    """Kinetic energy of the motor of a link's joint, which is no part of the link: its rotor and its armature, J.

    ``slip`` is the twist, in its own frame, that the link and all links beyond it have in addition to that of ``qd``.
    If ``apart``, only that of a rotor that is not beyond the link.
    """
    at = tree.topology.attachments[link]
    joint, energy = at.unlocked.joint, 0.0
    if joint.armature and not apart:
        rates = tree.model.of_rows(qd)[[tree.model.index[name] for name in at.joint.row_names(at.name)]]
        energy = float(at.joint.armature * rates @ rates)
    if joint.rotor is None:
        return 0.5 * energy
    beyond = tree.subtree(link)
    for rotor in at.unlocked.rotor:
        name, body = rotor.link.name, rotor.link.inertia
        if body is None or (apart and name in beyond):
            continue
        V = tree.link_twist(name, q, qd, "body")
        if slip is not None and name in beyond:
            V = V + screw.Ad(pose_in(tree, link, name, q)) @ slip
        energy += float(V @ body.matrix @ V)
    return 0.5 * energy


def check_bodies(model: Model, slipping: tuple[Array, str, Array] | None = None) -> None:
    """Raise InertiaError if welded links that move in an impact have a negative kinetic energy in some motion.

    A link that is ``slipping`` is a body of its own: the first of its :func:`_parts`, its name, and its slip.
    """
    if not any([at.link.effective for at in model.nodes]):
        return
    first = {model.index[at.coordinate]: name for name, at in reversed(model.placements.items())}
    bodies = {name: model.table[row, MASS:PARENT] for row, name in first.items() if row >= 0}
    if slipping is not None:
        part, root, slip = slipping
        bodies |= {name: part[11:21] for row, name in first.items() if row == part[0] and name in bodies}
        bodies |= {root: part[1:11]} if slip.any() else {}
    for name, (m, hx, hy, hz, xx, xy, xz, yy, yz, zz) in bodies.items():
        H = screw.skew(np.array([hx, hy, hz]))
        body = np.block([[np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]), H], [H.T, m * np.eye(3)]])
        scale = np.sqrt(np.repeat([np.abs(body[:3, :3]).max(), abs(m)], 3))
        scale[scale == 0] = 1
        if np.linalg.eigvalsh(body / np.outer(scale, scale))[0] < -1e-12:
            raise InertiaError(
                f"the kinetic energy of some motion is negative for link {name!r} and what is welded to it, "
                f"so the momentum balance has no solution; use inertias of rigid bodies (Inertia.is_physical), and "
                f"give the rotor of a motor mass= and across= unless the inertia of its carrier contains it"
            )


def _parts(model: Model, root: str) -> Array:
    """The bodies of a link, which come first, and of all links beyond it, (rows, 25), as ``table.Part`` reads them."""
    # Only the first row may also carry bodies of others, which do not slip.
    (_, *beyond), placements, table = model.topology.subtree(root), model.placements, model.table
    at = placements[root]
    row, rows = model.index[at.coordinate], [model.index[name] for x in beyond for name in placements[x].names]
    bodies: dict[bool, tuple[float, ...]] = {True: NOTHING, False: NOTHING}
    inside, parts = {root, *beyond}, np.zeros((1 + len(rows), PLACE))
    for name, other in placements.items():
        if other.coordinate == at.coordinate and other.body is not NOTHING:
            known = bodies[name in inside]
            bodies[name in inside] = other.body if known is NOTHING else tuple(map(add, known, other.body))
    parts[0, :21] = row, *bodies[True], *bodies[False]
    if rows:
        parts[1:, 0], parts[1:, 1:11] = rows, table[rows, MASS:PARENT]
    return parts
