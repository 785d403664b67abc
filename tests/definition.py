"""The contribution of a link in NumPy, as defined in docs/mathematics.md §2, independent of the recursions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from screwdyn import screw
from screwdyn.core import expressions
from screwdyn.core.types import Array
from screwdyn.mechanism.joint import Joint
from screwdyn.mechanism.link import Link
from screwdyn.physics.contribution import Contribution


@dataclass(frozen=True)
class LinkMotion:
    """The motion of a link with the coordinates on its path, in its own frame.

    Attributes
    ----------
    coordinates : tuple of str
        The k coordinates on the path from the base, in order.
    T : (…, 4, 4) array
        Pose of the link in the base.
    J, J_dot : (…, 6, k) arrays
        Twist Jacobian at the link's origin and its entry-by-entry time derivative.
    qd : (…, k) array
        Rates of the coordinates.
    """

    coordinates: tuple[str, ...]
    T: Array
    J: Array
    J_dot: Array
    qd: Array


def motion_beyond(parent: LinkMotion, joint: Joint, home: Array, name: str, q: Array, v: Array) -> LinkMotion:
    """The motion of a link from its parent's.

    Parameters
    ----------
    parent : LinkMotion
    joint, home, name
        The link's joint, its pose in the parent at home, and the joint's name.
    q, v : (…, joint.nq) and (…, joint.nv) arrays
        Positions and rates of the joint.
    """
    S = expressions.floats(joint.screws, f"joint {name!r}")
    names = joint.freedom_names(name)
    T = expressions.floats(home, f"the pose at joint {name!r}")
    if joint.chart is not None:
        return _moved(parent, T @ joint.chart.pose(q), S, names, v)
    # Screws in a row: joints of one freedom, one after another.
    motion = _moved(parent, T, S[:, :0], (), v[..., :0])
    for k in range(joint.nv):
        one = slice(k, k + 1)
        motion = _moved(motion, screw.screw_motion(S[:, k], q[..., k]), S[:, one], names[one], v[..., one])
    return motion


def _moved(parent: LinkMotion, T: Array, S: Array, names: tuple[str, ...], v: Array) -> LinkMotion:
    """J = [X J_p | S], J̇ = [X J̇_p − ad(S v) X J_p | 0] of a frame with pose T in its parent, X = Ad(T)⁻¹."""
    X = screw.Ad(screw.inverse(T))
    J, J_dot = X @ parent.J, X @ parent.J_dot
    if S.shape[1]:
        J_dot = J_dot - screw.ad(v @ S.T) @ J
    columns = np.broadcast_to(S, (*J.shape[:-2], *S.shape))
    return LinkMotion(
        (*parent.coordinates, *names),
        parent.T @ T,
        np.concatenate([J, columns], axis=-1),
        np.concatenate([J_dot, np.zeros_like(columns)], axis=-1),
        np.concatenate([parent.qd, v], axis=-1),
    )


def contribution_of(link: Link, motion: LinkMotion, gravity: Array) -> Contribution:
    """M_i = Jᵀ M̄ J, C_i = Jᵀ (M̄ J̇ + B J) and g_i = −m J_vᵀ Rᵀ g₀, with B = blkdiag((Σω)^, m ω̂).

    Parameters
    ----------
    link : Link
    motion : LinkMotion
    gravity : (3,) array
        g₀ in the base frame, m/s².
    """
    inertia = None if link.inertia is None else link.inertia.evaluated()
    com = np.zeros(3) if inertia is None else inertia.com
    X_C = screw.Ad(screw.pose(np.eye(3), -com))
    J, J_dot = X_C @ motion.J, X_C @ motion.J_dot
    names = motion.coordinates
    if inertia is None:
        none = np.zeros((*J.shape[:-2], len(names), len(names)))
        return Contribution(link.name, names, J, J_dot, none, none, none[..., 0] if names else none.sum(-1))
    m, I, M_bar = inertia.mass, inertia.tensor, inertia.com_matrix
    Sigma = 0.5 * np.trace(I) * np.eye(3) - I
    w = (J @ motion.qd[..., None])[..., :3, 0]
    B = np.zeros((*w.shape[:-1], 6, 6))
    B[..., :3, :3] = screw.skew((Sigma @ w[..., None])[..., 0])
    B[..., 3:, 3:] = m * screw.skew(w)
    J_t = np.swapaxes(J, -1, -2)
    # Gravity in link axes, as a column: Rᵀ g₀.
    g_link = np.swapaxes(motion.T[..., :3, :3], -1, -2) @ gravity
    g = -m * (J_t[..., 3:] @ g_link[..., None])[..., 0]
    return Contribution(
        link.name,
        names,
        J,
        J_dot,
        J_t @ M_bar @ J,
        J_t @ (M_bar @ J_dot + B @ J),
        g,
    )


def contributions(tree, q, qd):
    """The contribution of every link but the base, in order of attachment."""
    q, qd = np.asarray(q, dtype=float), np.asarray(qd, dtype=float)
    at_q = {name: i for i, name in enumerate(tree.positions)}
    at_v = {name: i for i, name in enumerate(tree.coordinates)}
    batch = q.shape[:-1]
    nothing = np.zeros((*batch, 6, 0))
    rest = LinkMotion((), np.broadcast_to(np.eye(4), (*batch, 4, 4)), nothing, nothing, nothing[..., 0, :])
    motions, found = {tree.base: rest}, []
    for name in tree.links[1:]:
        edge = tree.graph.edges[tree.parent(name), name]
        joint = edge["joint"]
        x = q[..., [at_q[p] for p in joint.position_names(edge["name"])]]
        xd = qd[..., [at_v[c] for c in joint.freedom_names(edge["name"])]]
        motions[name] = motion_beyond(motions[tree.parent(name)], joint, edge["home"], edge["name"], x, xd)
        found.append(contribution_of(tree.link(name), motions[name], tree.gravity))
    return found
