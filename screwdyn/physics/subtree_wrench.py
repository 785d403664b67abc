"""The wrench on a link and all links beyond it, from their motion (docs/mathematics.md §11)."""

from __future__ import annotations

import numpy as np

from screwdyn.core.types import Array
from screwdyn.physics.robot import Robot
from screwdyn.screws.screw import Ad, ad, inverse

__all__ = ["subtree_wrench"]


def subtree_wrench(tree: Robot, link: str, q: Array, qd: Array, qdd: Array) -> Array:
    """Ad(T)ᵀ Σ Ad(T_i)⁻ᵀ (I_i (V̇_i − [0; R_iᵀ g]) − ad(V_i)ᵀ I_i V_i), (k, 6), in the link's frame, N m and N.

    The sum of all wrenches on the link and all links beyond it but their weight: that of the link's joint, those of
    closed loops, and external ones. Without the last two, and without an armature, its component along the joint's
    screw is the joint's force.

    Parameters
    ----------
    tree : Robot
    link : str
    q, qd, qdd : (k, nq), (k, nv) and (k, nv) arrays
    """
    total = np.zeros((len(q), 6))
    for name in tree.subtree(link):
        inertia = tree.link(name).inertia
        if inertia is not None:
            T, V = tree.forward_kinematics(name, q), tree.link_twist(name, q, qd, "body")
            A = tree.link_acceleration(name, q, qd, qdd, "body")
            A[:, 3:] -= tree.gravity @ T[:, :3, :3]
            F = A @ inertia.matrix - _transposed(ad(V), V @ inertia.matrix)
            total += _transposed(Ad(inverse(T)), F)
    return _transposed(Ad(tree.forward_kinematics(link, q)), total)


def _transposed(matrix: Array, F: Array) -> Array:
    """Matrixᵀ F of each sample."""
    return np.asarray(np.einsum("kji,kj->ki", matrix, F))
