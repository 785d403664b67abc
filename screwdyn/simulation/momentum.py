"""The law of all impacts: momenta are projected on the freedoms of the changed tree (docs/mathematics.md §6)."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import NamedTuple

import numpy as np

from screwdyn.core.errors import InertiaError
from screwdyn.core.types import Array
from screwdyn.physics.closure import Closure
from screwdyn.physics.model import Robot
from screwdyn.screws import screw

__all__ = ["Bodies", "Impact", "Loops", "bodies", "impact", "kinetic_energy", "motor_energy", "stop"]


class Bodies(NamedTuple):
    """The rigid bodies of a tree in one configuration; links that are welded together are one body.

    Attributes
    ----------
    links : tuple of str
        Name of the first link of each body, in whose frame the other entries are.
    poses : (n, 4, 4) array
        In the base frame.
    jacobians : (n, 6, nv) array
        The twist of a body is J ν.
    inertias : (n, 6, 6) array
    armatures : (nv,) array
        Of the freedoms, kg m² or kg: further bodies, which have only the motion of their freedom.
    """

    links: tuple[str, ...]
    poses: Array
    jacobians: Array
    inertias: Array
    armatures: Array


class Impact(NamedTuple):
    """Changes in an impact.

    Attributes
    ----------
    rates : (nv,) array
        ν⁺ − ν, the change of the rates.
    impulse : array
        [n; f] on the slipping subtree, about the origin of its root's frame and in its axes, (6,); N m s and N s.
    energy_lost : float
        J.
    """

    rates: Array
    impulse: Array
    energy_lost: float


def bodies(tree: Robot, q: Array, apart: Container[str] = ()) -> Bodies:
    """The bodies of a tree; links of ``apart`` are not welded to others."""
    every = tree.link_poses(q)  # raises an error for symbols
    placements = tree.model.placements
    first: dict[tuple[str | None, bool], int] = {}
    pairs, matrices, names = [], [], [*placements]
    for k, (name, at) in enumerate(placements.items()):
        leader = first.setdefault((at.coordinate, name in apart), k)
        if at.link.inertia is not None:
            pairs.append((k, leader))
            matrices.append(at.link.inertia.matrix)
    welded, leaders = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
    used, which = np.unique(leaders, return_inverse=True)
    in_row = np.tile(np.eye(4), (len(names), 1, 1))
    in_row[:, :3, :3] = np.reshape([at.R for at in placements.values()], (-1, 3, 3))
    in_row[:, :3, 3] = [at.p for at in placements.values()]
    X = screw.Ad(screw.inverse(in_row[welded]) @ in_row[leaders])
    inertias = np.zeros((len(used), 6, 6))
    np.add.at(inertias, which, X.swapaxes(-1, -2) @ np.reshape(matrices, (-1, 6, 6)) @ X)
    links = tuple(names[k] for k in used)
    J = np.array([tree.jacobian(name, q, "body") for name in links]).reshape(len(links), 6, tree.nv)
    return Bodies(links, every[used], J, inertias, tree.model.armatures)


def kinetic_energy(tree: Robot, q: Array, qd: Array, twist: Array) -> float:
    """Kinetic energy of a tree whose base moves with a twist in its own frame, J."""
    _, poses, J, inertias, armatures = bodies(tree, q)
    V = screw.Ad(screw.inverse(poses)) @ twist + J @ qd
    return float(0.5 * (np.einsum("ni,nij,nj", V, inertias, V) + armatures @ qd**2))


def motor_energy(tree: Robot, q: Array, qd: Array, link: str, slip: Array | None = None) -> float:
    """Kinetic energy of the motor of a link's joint, which is no part of the link: its rotor and its armature, J.

    ``slip`` is that of the link and all links beyond it, as for :func:`impact`.
    """
    at = tree.topology.attachments[link]
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


def impact(tree: Robot, q: Array, qd: Array, root: str, slip: Array) -> Impact:
    """The impact in which a subtree stops to slip.

    Before it, every body has the twist J ν of the rates ν; those of the subtree have the slip in addition. The rates
    after it minimise Σ |V⁺ − V⁻|² in the metrics of the bodies' inertias, so that M ν⁺ = Σ Jᵀ 𝓜 V⁻
    (docs/mathematics.md §6).

    Parameters
    ----------
    tree : KinematicTree
        After the change.
    q, qd : (nq,), (nv,) arrays
        The rates are ν, in which only closed loops have an influence.
    root : str
        The link whose subtree slips.
    slip : (6,) array
        [ω; v] of the root before the impact minus J ν, in the root's frame, rad/s and m/s.

    Raises
    ------
    SingularAttachmentError
        If a joint of the tree feels no inertia.
    InertiaError
        If the kinetic energy of a body is negative for some motion.
    LoopError
        If a loop is open.
    """
    rest = np.zeros(tree.nv)
    tree.forward_dynamics(q, rest, rest)  # raises an error for a joint that feels no inertia
    beyond = frozenset(tree.subtree(root))
    found = bodies(tree, q, beyond)
    links, poses, J = found.links, found.poses, found.jacobians
    # The joint of the root takes on what it can of the slip, so that a joint that allows all of it changes no rate.
    at = tree.topology.attachments[root]
    own = [k for k, name in enumerate(tree.coordinates) if name in at.coordinates]
    S = tree.jacobian(root, q, "body")[:, own]
    rates = np.zeros(tree.nv)
    rates[own] = np.linalg.lstsq(S, slip)[0]
    slips = np.array([name in beyond for name in links], dtype=bool)  # it may be empty
    X = screw.Ad(screw.inverse(poses[slips]) @ tree.forward_kinematics(root, q))
    excess = -(J[:, :, own] @ rates[own])  # also of the rotor and the armature, which do not turn with the joint yet
    excess[slips] += X @ slip
    loops = Loops(tree, q, qd + rates)
    change, impulses, _, lost = _projected(found, J, np.eye(tree.nv), excess, -rates, loops.allowed)
    return Impact(rates + change, np.einsum("nji,nj->i", X, impulses[slips]), lost)


def stop(
    tree: Robot, q: Array, qd: Array, before: Bodies, freedoms: Sequence[int], rates: Array, constraints: Array
) -> Impact:
    """The impact in which some freedoms stop, with all joints that follow them.

    Before it, every body has the twist J ν of the rates ν that the changed tree has kept, and J_k ν_k in addition, with
    the columns J_k of the freedoms that stop.

    Parameters
    ----------
    tree : KinematicTree
        After the change, without these freedoms.
    q, qd : (nq,), (nv,) arrays
        The rates are ν, in which only closed loops have an influence.
    before : Bodies
        Of the tree before the change, of which each is a part of one body of the tree.
    freedoms, rates : (k,)
        Columns of the freedoms in ``before``, and their rates, rad/s and m/s.
    constraints : (m, k) array
        Columns of the freedoms in J_c before the change.

    Returns
    -------
    Impact
        The impulse is that on the freedoms, (k,), N m s and N s.

    Raises
    ------
    SingularAttachmentError, InertiaError, LoopError
        As for :func:`impact`.
    """
    rest = np.zeros(tree.nv)
    tree.forward_dynamics(q, rest, rest)  # raises an error for a joint that feels no inertia
    own = before.jacobians[:, :, freedoms]
    J = np.array([tree.jacobian(name, q, "body") for name in before.links]).reshape(len(own), 6, tree.nv)
    one = np.eye(len(before.armatures))
    kept, stopped = np.delete(one, freedoms, axis=1), one[:, freedoms]
    loops = Loops(tree, q, qd)
    change, impulses, of_motors, lost = _projected(before, J, kept, own @ rates, stopped @ rates, loops.allowed)
    momentum = np.einsum("nik,ni->k", own, impulses) + of_motors[list(freedoms)]
    return Impact(change, momentum - constraints.T @ loops.impulses, lost)


class Loops:
    """The closed loops of a tree in an impact (docs/mathematics.md §12).

    Parameters
    ----------
    tree : Robot
        After the change.
    q, qd : (nq,), (nv,) arrays
        The rates ν to which changes are added.

    Attributes
    ----------
    impulses : (m,) array
        Λ, of the constraints, after :meth:`allowed`; of all that rigid bodies allow, those of least ΛᵀΛ.
    lost : float
        Kinetic energy that the constraints take, J.

    Raises
    ------
    LoopError
        If a loop is open.
    """

    def __init__(self, tree: Robot, q: Array, qd: Array) -> None:
        self.closure = Closure(tree, tree.model)
        self.closure.check(q)
        self.q, self.qd = q, qd
        self.impulses, self.lost = np.zeros(len(tree.model.constraints)), 0.0

    def allowed(self, change: Array) -> Array:
        """The change that is nearest to a given one in the metric of M, so that J_c (ν + change) = 0."""
        if not self.closure.loops:
            return change
        factors = self.closure.factors(self.q)
        removed = factors.least(self.closure.opening(self.q, self.qd + change))
        z = factors.L.T @ removed
        self.impulses, self.lost = -factors.least_multipliers(z), 0.5 * float(z @ z)
        return np.asarray(change - removed)


def _projected(
    bodies: Bodies, J: Array, turns: Array, excess: Array, spins: Array, allowed: Callable[[Array], Array]
) -> tuple[Array, Array, Array, float]:
    """The changes when bodies and armatures lose an excess.

    Parameters
    ----------
    bodies : Bodies
        Of which the inertias and armatures are used.
    J, turns : (n, 6, nv) and (m, nv) arrays
        The twist of a body is J ν; the rate of an armature is that entry of ``turns`` ν.
    excess, spins : (n, 6) and (m,) arrays
        Twists and rates before minus J ν and ``turns`` ν.
    allowed : callable
        The nearest change that closed loops allow.

    Returns
    -------
    change : (nv,) array
        Of the rates.
    impulses : (n, 6) array
        On the bodies.
    of_motors : (m,) array
        On the armatures.
    lost : float
        J.
    """
    moving = J.any(axis=(1, 2)) | excess.any(axis=1)  # a base that is fixed may have any inertia
    roots = np.zeros((len(J), 6, 6))
    roots[moving] = _roots(bodies.inertias[moving], tuple(bodies.links[k] for k in np.flatnonzero(moving)))
    count, nv = len(J), J.shape[-1]
    weight = np.sqrt(bodies.armatures)
    A = np.concatenate([(roots @ J).reshape(6 * count, nv), weight[:, None] * turns])
    change = allowed(_least_squares(A, np.concatenate([(roots @ excess[..., None]).ravel(), weight * spins])))
    jump, turn = J @ change - excess, turns @ change - spins
    impulses, of_motors = (bodies.inertias @ jump[..., None])[..., 0], bodies.armatures * turn
    lost = float(0.5 * (np.vdot(jump[moving], impulses[moving]) + turn @ of_motors))
    return change, impulses, of_motors, max(lost, 0.0)  # NaN stays NaN


def _least_squares(A: Array, b: Array) -> Array:
    """The x that minimises |A x − b|, for rows of very different magnitudes.

    A QR factorisation and one step of iterative refinement keep the digits of light bodies next to heavy ones.
    """
    scale = np.linalg.norm(A, axis=0)
    A, nv = A / scale, len(scale)
    factor = np.asarray(np.linalg.qr(np.column_stack([A, b]), mode="r"))
    R, projected = factor[:nv, :nv], factor[:nv, nv]  # Qᵀb, without Q
    x = np.linalg.solve(R, projected)
    x += np.linalg.solve(R, np.linalg.solve(R.T, A.T @ (b - A @ x)))
    return np.asarray(x / scale)


def _roots(inertias: Array, links: tuple[str, ...]) -> Array:
    """R, (n, 6, 6), with RᵀR = 𝓜 for positive semidefinite inertias 𝓜.

    Raises
    ------
    InertiaError
        If one has a negative eigenvalue, as an effective inertia that no rigid body has may have.
    """
    scale = np.sqrt(np.abs(np.diagonal(inertias, axis1=1, axis2=2)))
    scale[scale == 0] = 1
    squares, axes = np.linalg.eigh(inertias / (scale[:, :, None] * scale[:, None, :]))
    negative = np.flatnonzero((squares < -1e-12).any(axis=1))
    if negative.size:
        raise InertiaError(
            f"the kinetic energy of some motion is negative for link {links[negative[0]]!r} and what is welded to it, "
            f"so the momentum balance has no solution; use inertias of rigid bodies (Inertia.is_physical), and "
            f"give the rotor of a motor mass= and across= unless the inertia of its carrier contains it"
        )
    return np.asarray(np.sqrt(np.maximum(squares, 0))[:, :, None] * axes.swapaxes(-1, -2) * scale[:, None, :])
