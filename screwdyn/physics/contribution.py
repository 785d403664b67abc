"""What one link contributes: J_i, J̇_i, M_i, C_i, g_i, from its parent's Jacobian alone.

This is docs/mathematics.md §2 line by line, in NumPy with leading batch axes. It is the meaning of the model; the
compiled sweeps reach the same totals by another road, and tests hold the two together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.types import Array
from screwdyn.mechanism.joint import Joint
from screwdyn.mechanism.link import Link
from screwdyn.physics.padded import Padded
from screwdyn.screws import screw

__all__ = ["Contribution", "LinkMotion", "contribution_of", "motion_beyond"]


@dataclass(frozen=True)
class LinkMotion:
    """How a link moves with the coordinates on its path, in its own frame.

    Attributes
    ----------
    coordinates : tuple of str
        Those on the path from the base, in order; k of them.
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


@dataclass(frozen=True)
class Contribution:
    """One link's share of the dynamics, at its natural size k = number of coordinates on its path.

    Attributes
    ----------
    link : str
    coordinates : tuple of str
    J, J_dot : (…, 6, k) arrays
        Twist Jacobian of the link's centre of mass in axes parallel to the link frame (Laus Eqs. 22-31), and its rate.
    M, C : Padded, (…, k, k)
        Mass matrix (Laus Eq. 21) and Coriolis matrix (Eq. 35) of this link alone.
    g : Padded, (…, k)
        Gravity torques of this link alone (Eq. 36).
    """

    link: str
    coordinates: tuple[str, ...]
    J: Array
    J_dot: Array
    M: Padded
    C: Padded
    g: Padded


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
        none_g = Padded(names, none.sum(axis=-1), 1)
        return Contribution(link.name, names, J, J_dot, Padded(names, none), Padded(names, none), none_g)
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
        Padded(names, J_t @ M_bar @ J),
        Padded(names, J_t @ (M_bar @ J_dot + B @ J)),
        Padded(names, g, 1),
    )
