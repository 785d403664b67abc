"""The law of all changes: of the motions that the changed tree allows, the one nearest to the motion before.

docs/mathematics.md §6. A change takes freedoms from a tree. In the *free* tree, which still has them, the motion before
is a vector of rates P ν + s: the rates ν that the changed tree keeps, spread by P over the freedoms of the free tree,
and the slip s along those that it loses. The rates after it are ν + δ, with

    δ = argmin ½ (P δ − s)ᵀ M_free (P δ − s) + ½ Σ a δ²   over   J_c (ν + δ) = 0,                                  (1)

so that M δ + J_cᵀ Λ = Pᵀ M_free s. The energy lost is the minimum, and M_free (P δ − s) are the impulses.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from screwdyn.core.errors import InertiaError, LoopError
from screwdyn.core.types import Array
from screwdyn.forms.numbers import Numbers
from screwdyn.mechanism.chart import pose_at
from screwdyn.mechanism.joint import Joint, free
from screwdyn.mechanism.topology import Topology
from screwdyn.physics.charts import screws_at
from screwdyn.physics.closure import TOLERANCE, Closure
from screwdyn.physics.model import Model, Robot
from screwdyn.physics.table import MASS, PARENT
from screwdyn.screws import screw

__all__ = [
    "Free",
    "Impact",
    "closing",
    "flight",
    "impact",
    "motor_energy",
    "places",
    "rotor_energy",
    "without_joint",
]

# Share of the rates at which loops open that an impact may leave: what is dependent up to rounding.
_LEFT_OPEN = 1e-3
# Refinements of the change of the rates, and the square of a relative size of them that leaves no more than rounding.
_MOST_STEPS, _ROUNDING = 8, 1e-26


@functools.lru_cache(maxsize=256)
def flight(name: str | None = None) -> Joint:
    """A passive free joint; one object for each name, because the frames of a joint are cached by its identity."""
    return free(name=name, passive=True)


@functools.lru_cache(maxsize=256)
def _loose(name: str) -> Joint:
    """A joint of six screws, whose rates are a twist while it is at home; it needs no chart, as a free joint does."""
    return Joint(np.eye(6), name=name)


class Free(NamedTuple):
    """The tree that still has the freedoms which a change takes.

    Attributes
    ----------
    numbers : Numbers
    q : (nq,) array
        Its configuration, in which all links are where they are.
    spread : (n, nv) array
        P: its rates are P ν for rates ν of the changed tree.
    armatures : (nv,) array
        Of the freedoms of the changed tree that it does not have, whose motors are at rest before, kg m² or kg.
    """

    numbers: Robot | Numbers
    q: Array
    spread: Array
    armatures: Array


class Impact(NamedTuple):
    """Changes in an impact.

    Attributes
    ----------
    rates : (nv,) array
        δ, the change of the rates.
    impulses : (n,) array
        On the freedoms of the free tree; N m s and N s.
    multipliers : (m,) array
        Λ, of the constraints of the loops.
    energy_lost : float
        J.
    """

    rates: Array
    impulses: Array
    multipliers: Array
    energy_lost: float


def impact(tree: Robot, q: Array, qd: Array, free: Free, slip: Array) -> Impact:
    """The change of the rates by equation (1).

    Articulated bodies from rest give δ, and then what it leaves, until that is rounding: twice as a rule, more often if
    light bodies are next to heavy ones, whose digits the first result does not have.

    Raises
    ------
    SingularAttachmentError
        If a joint of the tree feels no inertia.
    InertiaError
        If the kinetic energy of a body is negative for some motion.
    LoopError
        If a loop is open.
    """
    numbers, q_free, P, motors = free
    _check_bodies(numbers.model, P, slip)
    change, jump = np.zeros(tree.nv), -slip
    for _ in range(_MOST_STEPS):
        left = -(numbers.joint_momentum(q_free, jump) @ P) - motors * change
        step = tree.impulse_response(q, left)
        change = change + step
        jump = P @ change - slip
        if step @ step <= _ROUNDING * (change @ change):
            break
    multipliers = np.zeros(0)
    if tree.loops:
        closure = Closure(tree, tree.model)
        closure.check(q)
        taken, multipliers, _ = closing(closure, q, qd + change)
        change = change - taken
        jump = P @ change - slip
    lost = float(numbers.kinetic_energy(q_free, jump)) + 0.5 * float(motors @ change**2)
    return Impact(change, numbers.joint_momentum(q_free, jump), multipliers, max(lost, 0.0))


def without_joint(tree: Robot, q: Array, root: str, like: Model) -> tuple[Free, slice]:
    """The free tree in which a subtree flies, and its freedoms there: the twist of the root relative to its parent.

    The rotor of the joint stays in it and turns for itself. What a model ``like`` it has is copied.
    """
    topology, nv = tree.topology, tree.nv
    at = topology.attachments[root]
    joint, flying = at.joint, _loose(at.name)
    first, rows = places(topology, root)
    positions = q[first : first + joint.nq]
    freed = [replace(at, joint=flying, home=at.home @ pose_at(joint, positions))]
    q_free = np.concatenate([q[:first], np.zeros(6), q[first + joint.nq :]])
    six, own = slice(rows, rows + 6), slice(rows, rows + joint.nv)
    P = np.zeros((nv + 6 - joint.nv, nv))
    P.flat[: rows * nv : nv + 1] = 1.0
    P[six, own] = screws_at(joint, positions)
    np.fill_diagonal(P[six.stop :, own.stop :], 1.0)
    for rotor in at.rotor:
        name, mimic = rotor.link.name, rotor.joint.mimic
        if mimic is not None:
            freed.append(replace(topology.attachments[name], joint=replace(rotor.joint, mimic=None)))
            first, row = places(topology, name)  # they come after the link; any angle of a solid of revolution will do
            q_free = np.insert(q_free, first + 6 - joint.nq, 0.0)
            P = np.insert(P, row + 6 - joint.nv, 0.0, axis=0)
            P[row + 6 - joint.nv, own] = mimic.ratio
    armatures = np.zeros(nv)
    armatures[own] = joint.armature
    return Free(Numbers(Model(topology.with_attachments(*freed), like)), q_free, P, armatures), six


def places(topology: Topology, link: str) -> tuple[int, int]:
    """The first position and the first freedom of the joint of a link, or where they would be."""
    q = v = 0
    for at in topology.attached:
        if at.link.name == link:
            break
        q, v = q + at.joint.nq, v + at.joint.nv
    return q, v


def motor_energy(tree: Robot, q: Array, qd: Array, link: str, slip: Array | None = None) -> float:
    """Kinetic energy of the motor of a link's joint, which is no part of the link: its rotor and its armature, J.

    ``slip`` is the twist, in its own frame, that the link and all links beyond it have in addition to that of ``qd``.
    """
    at = tree.topology.attachments[link]
    if not at.unlocked.joint.armature and at.unlocked.joint.rotor is None:
        return 0.0
    rates = tree.model.row_rates(qd)[[tree.model.index[name] for name in at.joint.row_names(at.name)]]
    energy = float(at.joint.armature * rates @ rates)
    for rotor in at.unlocked.rotor:
        name, body = rotor.link.name, rotor.link.inertia
        V = tree.link_twist(name, q, qd, "body")
        if slip is not None and name in tree.subtree(link):
            T = screw.inverse(tree.forward_kinematics(name, q)) @ tree.forward_kinematics(link, q)
            V = V + screw.Ad(T) @ slip
        energy += 0.0 if body is None else float(V @ body.matrix @ V)
    return 0.5 * energy


def rotor_energy(tree: Robot, q: Array, qd: Array, root: str) -> float:
    """Kinetic energy of the rotor of a link's joint if it is not beyond the link, J."""
    rotor = tree.topology.attachments[root].unlocked.rotor
    apart = [at.link.name for at in rotor if at.link.name not in tree.subtree(root)] if rotor else []
    return sum(float(tree.link_kinetic_energy(name, q, qd)) for name in apart)


def closing(closure: Closure, q: Array, qd: Array) -> tuple[Array, Array, float]:
    """The rates that closed loops take, the impulses Λ of their constraints, and the kinetic energy that is lost, J.

    Of all rates that the loops allow, the others are nearest in the metric of M; of all impulses that rigid bodies
    allow, Λ are those of least ΛᵀΛ (docs/mathematics.md §12). LoopError if the loops would open all the same, because a
    constraint on a heavy link counts as none beside those on links that are lighter by many orders of magnitude.
    """
    factors, opening = closure.factors(q), closure.opening(q, qd)
    taken = factors.least(opening)
    left = float(np.abs(closure.opening(q, qd - taken)).max(initial=0.0))
    if left > max(TOLERANCE, _LEFT_OPEN * float(np.abs(opening).max(initial=0.0))):
        raise LoopError(
            f"the rates after it would open the loops {', '.join(repr(loop.name) for loop in closure.loops)} at up to "
            f"{left:.3g} rad/s or m/s: their links have inertias too different for the constraints to be told apart; "
            f"give the lightest ones more, or the heaviest ones less"
        )
    z = factors.L.T @ taken
    return taken, -factors.least_multipliers(z), 0.5 * float(z @ z)


def _check_bodies(model: Model, P: Array, slip: Array) -> None:
    """Raise InertiaError if welded links that move in an impact have a negative kinetic energy in some motion."""
    if not any([at.link.inertia is not None and at.link.inertia.is_effective for at in model.placements.values()]):
        return
    moving = P.any(axis=1) | (slip != 0)
    moved = {name for name, moves in zip(model.coordinates, moving, strict=True) if moves}
    ends = {model.index[at.coordinate]: name for name, at in reversed(model.placements.items())}
    for row, name in ends.items():
        if row < 0 or not moved.intersection(model.path(name)):
            continue
        m, *h, xx, xy, xz, yy, yz, zz = model.table[row, MASS:PARENT]
        H = screw.skew(np.array(h))
        body = np.block([[np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]), H], [H.T, m * np.eye(3)]])
        scale = np.sqrt(np.repeat([np.abs(body[:3, :3]).max(), abs(m)], 3))
        scale[scale == 0] = 1
        if np.linalg.eigvalsh(body / np.outer(scale, scale))[0] < -1e-12:
            raise InertiaError(
                f"the kinetic energy of some motion is negative for link {name!r} and what is welded to it, "
                f"so the momentum balance has no solution; use inertias of rigid bodies (Inertia.is_physical), and "
                f"give the rotor of a motor mass= and across= unless the inertia of its carrier contains it"
            )
