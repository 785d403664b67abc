"""The numbers that a tree gives: every public function of q, q̇, q̈ and τ.

Input is checked here and nowhere below. The functions that control loops call try the kernel at once: it takes one
contiguous float64 state as it is and refuses everything else, which is then checked, broadcast and flattened.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy import empty  # np.empty takes 15 ns longer

from screwdyn.core.errors import ShapeError, SingularAttachmentError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.screws import screw

if TYPE_CHECKING:  # the model brings numba with it, which must not slow down `import screwdyn`
    from screwdyn.physics.model import Model

__all__ = ["Dynamics", "Frame", "Numbers"]


class _Kernels:
    """The compiled kernels, which are imported when the first of them is needed."""

    def __getattr__(self, name: str) -> Any:
        from screwdyn.backends.numba import kernels

        vars(self).update(vars(kernels))
        return getattr(kernels, name)


kernels = _Kernels()

Frame = Literal["com", "body", "base", "mixed"]


class Dynamics(ABC):
    """Rigid-body dynamics of a tree, τ = M(q) q̈ + C(q, q̇) q̇ + g(q).

    Shapes throughout: q, qd, qdd and tau are (…, nv), one entry per coordinate in the order of ``coordinates``; leading
    axes are batches and broadcast. SI units, radians. Every function raises :class:`ShapeError` for an array of the
    wrong shape or with an entry that is not finite, and :class:`UnknownLinkError` for a link that is not in the tree.
    A joint's damping, friction and spring are not part of the rigid-body equation: they are :meth:`joint_force`.
    """

    @property
    @abstractmethod
    def model(self) -> Model:
        """The snapshot that the numbers are computed from."""

    def mass_matrix(self, q: ArrayLike) -> Array:
        """Mass matrix M(q), (…, nv, nv), symmetric.

        M = Σ_i J_iᵀ M̄_i J_i (docs/mathematics.md §2, Laus Eq. 21), by composite inertias (§4). Cost O(Σ depth).
        """
        model = self.model
        M = empty(model.square)
        try:
            if kernels.mass_matrix(model.ready, q, M) == 0:
                return M
        except kernels.REFUSALS:
            pass
        (flat,), batch = model.flat(q=q)
        M = empty((flat.size, model.nv))
        kernels.mass_matrix(model.table, flat, M)
        return M.reshape(*batch, *model.square)

    def mass_and_coriolis(self, q: ArrayLike, qd: ArrayLike) -> tuple[Array, Array]:
        """M(q) and C(q, q̇), each (…, nv, nv), in one sweep at hardly more than the price of C."""
        model = self.model
        M, C = empty(model.square), empty(model.square)
        try:
            if kernels.coriolis_matrix(model.ready, q, qd, M, C) == 0:
                return M, C
        except kernels.REFUSALS:
            pass
        (flat, flat_qd), batch = model.flat(q=q, qd=qd)
        M, C = empty((flat.size, model.nv)), empty((flat.size, model.nv))
        kernels.coriolis_matrix(model.table, flat, flat_qd, M, C)
        return M.reshape(*batch, *model.square), C.reshape(*batch, *model.square)

    def coriolis_matrix(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """Coriolis matrix C(q, q̇), (…, nv, nv), made of the Christoffel symbols of M (Laus Eq. 35).

        C = Σ_i J_iᵀ (M̄_i J̇_i + B_i J_i) (docs/mathematics.md §2), so that Ṁ = C + Cᵀ; nothing is differentiated.
        """
        return self.mass_and_coriolis(q, qd)[1]

    def gravity_vector(self, q: ArrayLike) -> Array:
        """Torques g(q) = ∂U/∂q that hold the arm still, (…, nv) (Laus Eq. 36)."""
        model = self.model
        g = empty(model.nv)
        try:
            if kernels.gravity_vector(model.ready, q, g) == 0:
                return g
        except kernels.REFUSALS:
            pass
        (flat,), batch = model.flat(q=q)
        g = empty(flat.size)
        kernels.gravity_vector(model.table, flat, g)
        return g.reshape(*batch, model.nv)

    def inverse_dynamics(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, wrenches: Mapping[str, ArrayLike] | None = None
    ) -> Array:
        """Torques for a motion, τ = M q̈ + C q̇ + g − Σ J_iᵀ F_i, (…, nv), by recursive Newton-Euler. Cost O(nv).

        Parameters
        ----------
        q, qd, qdd : (…, nv)
        wrenches : mapping from link name to (…, 6), optional
            External wrench [n; f] on each link, about the origin of the link's frame and in its axes; N m and N.
        """
        model = self.model
        if wrenches is None:
            tau = empty(model.nv)
            try:
                if kernels.inverse_dynamics(model.ready, q, qd, qdd, tau) == 0:
                    return tau
            except kernels.REFUSALS:
                pass
            return _inverse_dynamics(model, model.table, q, qd, qdd)
        return _inverse_dynamics(model, model.table, q, qd, qdd) - self.wrench_torque(q, wrenches)

    def forward_dynamics(
        self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, wrenches: Mapping[str, ArrayLike] | None = None
    ) -> Array:
        """Accelerations q̈ = M⁻¹ (τ + Σ J_iᵀ F_i − C q̇ − g), (…, nv), by articulated bodies. Cost O(nv).

        Parameters as :meth:`inverse_dynamics`.

        Raises
        ------
        SingularAttachmentError
            If a joint carries no inertia along its screw, so that M is singular; the message names it.
        """
        model = self.model
        if wrenches is not None:
            (tau,), batch = model.flat(tau=tau)
            tau = tau.reshape(*batch, model.nv) + self.wrench_torque(q, wrenches)
        qdd = empty(model.nv)
        try:
            status = kernels.forward_dynamics(model.ready, q, qd, tau, qdd)
            if status == 0:
                return qdd
        except kernels.REFUSALS:
            pass
        (flat, flat_qd, flat_tau), batch = model.flat(q=q, qd=qd, tau=tau)
        qdd = empty(flat.size)
        status = kernels.forward_dynamics(model.table, flat, flat_qd, flat_tau, qdd)
        if status > 0:
            name = model.coordinates[status - 1]
            raise SingularAttachmentError(
                f"nothing beyond joint {name!r} resists its motion, so its acceleration is undetermined; "
                f"give a link that it carries an inertia, or make the joint fixed"
            )
        return qdd.reshape(*batch, model.nv)

    def bias_force(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """C(q, q̇) q̇ + g(q), (…, nv): the torques of a motion without acceleration."""
        return self.inverse_dynamics(q, qd, np.zeros(self.model.nv))

    def velocity_product(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """C(q, q̇) q̇, (…, nv): Coriolis and centrifugal torques."""
        model = self.model
        return _inverse_dynamics(model, model.weightless, q, qd, np.zeros(model.nv))

    def joint_force(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """The joints' own forces −damping q̇ − friction tanh(1000 q̇) − stiffness (q − rest), (…, nv).

        They stand beside τ on the right side of the equation (docs/mathematics.md §8); :func:`simulate` adds them.
        Dry friction, friction · sgn q̇, is smoothed below about 1e-3 rad/s or m/s by tanh, for integrators.
        """
        model = self.model
        (q, qd), batch = model.flat(q=q, qd=qd)
        q, qd = q.reshape(*batch, model.nq), qd.reshape(*batch, model.nv)
        forces = model.joint_forces
        return forces.friction_force(qd) + forces.spring_force(q)

    def wrench_torque(self, q: ArrayLike, wrenches: Mapping[str, ArrayLike]) -> Array:
        """Joint torques Σ J_iᵀ F_i that external wrenches amount to, (…, nv).

        Parameters
        ----------
        q : (…, nv)
        wrenches : mapping from link name to (…, 6)
            [n; f] about the origin of the link's frame and in its axes.
        """
        model = self.model
        (flat,), q_batch = model.flat(q=q)
        batch = q_batch
        on_rows: dict[int, Array] = {}
        if not isinstance(wrenches, Mapping):
            raise ShapeError(f"wrenches must map names of links to [n; f], {{link: six numbers}}; got {wrenches!r}")
        for link, F in wrenches.items():
            row, T = self._carrier(link)
            F = model.numbers(f"the wrench on {link!r}", F)
            if F.ndim == 0 or F.shape[-1] != 6:
                raise ShapeError(f"the wrench on {link!r} must be (…, 6) numbers [n; f]; got shape {F.shape}")
            if not np.isfinite(F).all():
                raise ShapeError(f"the wrench on {link!r} is {F[~np.isfinite(F)][0]} in an entry; all must be finite")
            try:
                batch = np.broadcast_shapes(batch, F.shape[:-1])
            except ValueError:
                raise ShapeError(
                    f"the wrench on {link!r} has batch axes {F.shape[:-1]}, which do not fit {batch} before it"
                ) from None
            if row >= 0:
                # Ad(T)⁻ᵀ moves the wrench from the link's frame to its row's.
                on_rows[row] = on_rows.get(row, 0.0) + F @ screw.Ad(screw.inverse(T))
        W = np.zeros((*batch, model.nv, 6))
        for row, F in on_rows.items():
            W[..., row, :] = F
        flat = np.require(
            np.broadcast_to(flat.reshape(*q_batch, model.nv), W.shape[:-1]), requirements=["C", "W"]
        ).ravel()
        tau = empty(flat.size)
        kernels.wrench_torque(model.table, flat, W.reshape(-1, 6), tau)
        return tau.reshape(*batch, model.nv)

    # Kinematics ------------------------------------------------------------------------------------------------

    def forward_kinematics(self, link: str, q: ArrayLike) -> Array:
        """Pose of a link's frame in the base frame, (…, 4, 4)."""
        row, T = self._carrier(link)
        poses, _ = self._motion(q, np.zeros(self.model.nv))
        return poses[..., row, :, :] @ T if row >= 0 else np.broadcast_to(T, (*poses.shape[:-3], 4, 4)).copy()

    def jacobian(self, link: str, q: ArrayLike, frame: Frame = "com") -> Array:
        """Twist Jacobian of a link, (…, 6, nv): twist [ω; v] = J q̇.

        Parameters
        ----------
        link : str
        q : (…, nv)
        frame : "com", "body", "base" or "mixed"
            Where the twist is taken and in which axes: at the centre of mass in link axes (Laus's J^C), at the link's
            origin in link axes, at the base's origin in base axes (Laus's J⁰), or at the link's origin in base axes.
        """
        return self._jacobians(link, q, np.zeros(self.model.nv), frame)[0]

    def jacobian_dot(self, link: str, q: ArrayLike, qd: ArrayLike, frame: Frame = "com") -> Array:
        """Entry-by-entry time derivative of :meth:`jacobian`, (…, 6, nv)."""
        return self._jacobians(link, q, qd, frame)[1]

    # Energy and momentum ---------------------------------------------------------------------------------------

    def kinetic_energy(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """½ Σ V_iᵀ I_i V_i = ½ q̇ᵀ M q̇, (…), J."""
        _, V = self._motion(q, qd)
        return np.asarray(0.5 * np.einsum("...ri,rij,...rj->...", V, self.model.inertias, V))

    def potential_energy(self, q: ArrayLike) -> Array:
        """U(q) = −Σ m_i g₀ᵀ p_i, (…), J: zero for a mass at the base's origin. Springs of joints are not in it."""
        model = self.model
        poses, _ = self._motion(q, np.zeros(model.nv))
        m, h = model.table[:-1, 14], model.table[:-1, 15:18]
        moment = np.einsum("...rij,rj->...i", poses[..., :3, :3], h) + np.einsum("...ri,r->...i", poses[..., :3, 3], m)
        return np.asarray(-(moment + model.base_first_moment) @ model.gravity)

    def momentum(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """Spatial momentum [L; P] of the whole tree about the base's origin, base axes, (…, 6), N m s and N s."""
        poses, V = self._motion(q, qd)
        own = np.einsum("rij,...rj->...ri", self.model.inertias, V)
        return np.asarray(np.einsum("...rji,...rj->...i", screw.Ad(screw.inverse(poses)), own))

    # -----------------------------------------------------------------------------------------------------------

    def _carrier(self, link: str) -> tuple[int, Array]:
        """Row that carries a link, and the link's pose in that row's frame."""
        return self.model.carrier(link)

    def _motion(self, q: ArrayLike, qd: ArrayLike) -> tuple[Array, Array]:
        """Poses (…, nv, 4, 4) in the base and twists (…, nv, 6) in their own frames of all rows."""
        model = self.model
        (flat, flat_qd), batch = model.flat(q=q, qd=qd)
        pose, twist = empty((flat.size, 12)), empty((flat.size, 6))
        kernels.motion(model.table, flat, flat_qd, pose, twist)
        T = np.zeros((*batch, model.nv, 4, 4))
        T[..., :3, :3] = pose[:, :9].reshape(*batch, model.nv, 3, 3)
        T[..., :3, 3] = pose[:, 9:].reshape(*batch, model.nv, 3)
        T[..., 3, 3] = 1
        return T, twist.reshape(*batch, model.nv, 6)

    def _jacobians(self, link: str, q: ArrayLike, qd: ArrayLike, frame: Frame) -> tuple[Array, Array]:
        model = self.model
        row, T = self._carrier(link)
        (flat, flat_qd), batch = model.flat(q=q, qd=qd)
        Jt, Jt_dot = empty((flat.size, 6)), empty((flat.size, 6))
        kernels.jacobian(model.table, flat, flat_qd, row, Jt, Jt_dot)
        # From the row's frame to the link's, which is fixed in it.
        X = screw.Ad(screw.inverse(T))
        J = X @ np.swapaxes(Jt.reshape(*batch, model.nv, 6), -1, -2)
        J_dot = X @ np.swapaxes(Jt_dot.reshape(*batch, model.nv, 6), -1, -2)
        if frame == "body":
            return J, J_dot
        if frame == "com":
            X = screw.Ad(screw.pose(np.eye(3), -model.com(link)))
            return X @ J, X @ J_dot
        if frame not in ("base", "mixed"):
            raise ShapeError(f"frame must be 'com', 'body', 'base' or 'mixed'; got {frame!r}")
        # d/dt Ad(T) = Ad(T) ad(V); in the mixed frame only the axes turn.
        q, qd = flat.reshape(*batch, model.nv), flat_qd.reshape(*batch, model.nv)
        pose, V = self.forward_kinematics(link, q), (J @ qd[..., None])[..., 0]
        if frame == "mixed":
            pose[..., :3, 3] = 0
            V[..., 3:] = 0
        X = screw.Ad(pose)
        return X @ J, X @ (J_dot + screw.ad(V) @ J)


def _inverse_dynamics(model: Model, table: Array, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
    (flat, flat_qd, flat_qdd), batch = model.flat(q=q, qd=qd, qdd=qdd)
    tau = empty(flat.size)
    kernels.inverse_dynamics(table, flat, flat_qd, flat_qdd, tau)
    return tau.reshape(*batch, model.nv)


class Numbers(Dynamics):
    """The numbers of one snapshot, which go on answering for the tree as it was."""

    def __init__(self, model: Model) -> None:
        self._model = model

    @property
    def model(self) -> Model:
        """The snapshot."""
        return self._model
