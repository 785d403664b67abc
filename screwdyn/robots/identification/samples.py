"""Samples of motions and torques, and the columns of what they depend on linearly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from screwdyn.core.errors import ShapeError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.physics.joint_forces import SLIP
from screwdyn.tree import KinematicTree

__all__ = ["INERTIAL", "INERTIAL_UNITS", "MotionStates", "friction_names", "measured_torques", "standard_deviations"]

# Names and units of the ten parameters of a body (docs/mathematics.md §10).
INERTIAL: tuple[str, ...] = ("m", "hx", "hy", "hz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
INERTIAL_UNITS: tuple[str, ...] = ("kg", *["kg m"] * 3, *["kg m²"] * 6)


@dataclass(frozen=True, eq=False)
class MotionStates:
    """Samples of a motion, flattened to N states.

    Attributes
    ----------
    tree : KinematicTree
        A copy, which does not change.
    q, qd, qdd : (N, nq), (N, nv), (N, nv) arrays
    """

    tree: KinematicTree
    q: Array
    qd: Array
    qdd: Array

    @classmethod
    def of(cls, tree: KinematicTree, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Self:
        """The samples (…, nq), (…, nv), (…, nv), broadcast together; ShapeError for other arrays."""
        tree = tree.copy()
        flat, _ = tree.model.flat(q=q, qd=qd, qdd=qdd)
        return cls(tree, *(x.reshape(-1, n) for x, n in zip(flat, (tree.nq, tree.nv, tree.nv), strict=True)))

    def friction_columns(self) -> Array:
        """Columns of viscous friction, dry friction (smoothed) and offset of every freedom, (N, nv, 3 nv)."""
        one = np.eye(self.tree.nv)
        columns = (self.qd, np.tanh(self.qd / SLIP), np.ones_like(self.qd))
        return np.concatenate([column[..., None] * one for column in columns], axis=-1)

    def known(self, friction: bool) -> Array:
        """Torques of the tree as it is, with its springs, and with its friction unless that is unknown, (N, nv)."""
        forces = self.tree.model.joint_forces
        tau = self.tree.inverse_dynamics(self.q, self.qd, self.qdd) - forces.spring_force(self.q)
        if friction:
            return tau
        return np.asarray(tau - forces.viscous_force(self.qd) - forces.smoothed_friction(self.qd))


def friction_names(tree: KinematicTree) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names and units of :meth:`MotionStates.friction_columns`."""
    turns = [bool(np.any(S[:3] != 0)) for joint in map(tree.joint, tree.joints) if joint.nv for S in joint.screws.T]
    names = [f"{name}.{what}" for what in ("viscous", "dry", "offset") for name in tree.coordinates]
    units = [(["N m s/rad", "N m", "N m"] if turn else ["N s/m", "N", "N"]) for turn in turns]
    return tuple(names), tuple(unit[k] for k in range(3) for unit in units)


def measured_torques(motion: MotionStates, tau: ArrayLike) -> Array:
    """Torques of all or of the active freedoms, (…, nv), as (N, nv).

    Raises
    ------
    ShapeError, JointError
        For a wrong shape, another number of samples, or a force on a passive joint.
    """
    forces = motion.tree.model.torques(tau).reshape(-1, motion.tree.nv)
    if len(forces) != len(motion.q):
        raise ShapeError(f"tau has {len(forces)} samples, but the motion has {len(motion.q)}; give one for each")
    return forces


def standard_deviations(tree: KinematicTree, noise: ArrayLike) -> Array:
    """Standard deviations of the noise of the torques, (nv,), from one number or one for each freedom.

    Raises
    ------
    ShapeError
        If they are neither, or not positive and finite.
    """
    given = tree.model.numbers("noise", noise)
    if given.shape not in ((), (tree.nv,)) or not np.all((given > 0) & np.isfinite(given)):
        raise ShapeError(
            f"noise must be the standard deviation of the torques, one positive number or one for each of: "
            f"{', '.join(tree.coordinates)}; got {noise!r}"
        )
    return np.array(np.broadcast_to(given, (tree.nv,)))
