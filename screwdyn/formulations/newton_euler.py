"""Recursive Newton-Euler equations of motion: Fu, Gonzalez, Lee 1987, section 3.3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from screwdyn.core.types import Array, ArrayLike
from screwdyn.formulations.formulation import Formulation, whole
from screwdyn.formulations.rows import cross

__all__ = ["NewtonEuler"]


class Vectors(NamedTuple):
    """Vectors of link i: R is ^iR_{i−1}; z_{i−1} and p, a point of joint i's axis, are in axes of link i − 1.

    p_i* leads from that point to the origin of frame i, s̄_i from there to the centre of mass. They, the tensor I_i
    about the centre of mass and the wrench on the link about the origin of frame i are in axes of link i.
    """

    R: Array
    z: Array
    p: Array
    p_star: Array
    s_bar: Array
    I: Array
    wrench: Array


class NewtonEuler(Formulation):
    """Newton-Euler recursions in link frames (Table 3.3) and in the base frame (Table 3.2).

    They give torques. M, C q̇ and g are found by probing: they are the torques of suitable accelerations and rates, with
    or without gravity (Problem 3.11). There is no matrix C.

    Fu's two cases, rotational and translational, are one with sigma and h (see `Row`). In Fu's frames the axis of joint
    i passes through the origin of frame i − 1; in a tree several joints may leave one link, and p leads to their axes.

    Parameters as for `Formulation`.
    """

    def inverse_dynamics(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, wrenches: Mapping[str, ArrayLike] | None = None
    ) -> Array:
        """τ, (n,), N m or N, by the recursion in link frames, without damping.

        Parameters
        ----------
        q, qd, qdd : (n,) arrays
        wrenches : mapping, optional
            [n, f], (6,), that act on links, in the link's frame, as for the tree. Fu's f_{n+1} and n_{n+1}, which the
            hand exerts on an object, act on the hand as −f_{n+1} and −n_{n+1}.

        Raises
        ------
        ShapeError
            If an argument has a wrong shape.
        UnknownNameError
            If there is no such link.
        """
        links = self.in_link_frames(self._vector(q, "q"), self._loads(wrenches or {}))
        return self._torques(links, self._vector(qd, "qd"), self._vector(qdd, "qdd"), self.gravity)

    def inverse_dynamics_in_base_frame(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, wrenches: Mapping[str, ArrayLike] | None = None
    ) -> Array:
        """τ, (n,), by the recursion in the base frame; arguments and errors as for `inverse_dynamics`."""
        links = self.in_base_frame(self._vector(q, "q"), self._loads(wrenches or {}))
        return self._torques(links, self._vector(qd, "qd"), self._vector(qdd, "qdd"), self.gravity)

    def motor_torque(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, wrenches: Mapping[str, ArrayLike] | None = None
    ) -> Array:
        """τ_i with the damping b_i q̇_i of the joints, (n,) (Eq. 3.3-45); arguments and errors as above."""
        damping = np.array([row.damping for row in self.rows])
        tau: Array = self.inverse_dynamics(q, qd, qdd, wrenches) + damping * self._vector(qd, "qd")
        return tau

    def in_link_frames(self, q: Array, wrenches: list[Array]) -> list[Vectors]:
        """The vectors of Table 3.3. For a rotational joint p_i* is constant (Eq. 3.3-59)."""
        found = []
        for row, x, wrench in zip(self.rows, q, wrenches, strict=True):
            p_star = row.home[:3, :3].T @ (row.home[:3, 3] - row.p + row.z * (row.h * x))
            found.append(Vectors(row.pose(x)[:3, :3].T, row.z, row.p, p_star, row.com, row.I, wrench))
        return found

    def in_base_frame(self, q: Array, wrenches: list[Array]) -> list[Vectors]:
        """The vectors of Table 3.2: all in axes of the base, so that ^iR_{i−1} = 1."""
        A = self.poses(q)
        found = []
        for i, (row, (z, p)) in enumerate(zip(self.rows, self.axes(A), strict=True)):
            R, origin = A[i][:3, :3], A[i][:3, 3]
            wrench = np.concatenate([R @ wrenches[i][:3], R @ wrenches[i][3:]])
            before = A[row.parent][:3, 3] if row.parent >= 0 else np.zeros(3)
            found.append(Vectors(np.eye(3), z, p - before, origin - p, R @ row.com, R @ row.I @ R.T, wrench))
        return found

    def _torques(self, links: list[Vectors], qd: Array, qdd: Array, gravity: Array) -> Array:
        """Table 3.3, and in axes of the base Table 3.2: Eqs. 3.3-50 to 3.3-58."""
        omega: list[Array] = []
        omegad: list[Array] = []
        vd: list[Array] = []
        f, n = [], []
        for i, (row, at) in enumerate(zip(self.rows, links, strict=True)):
            k = row.parent
            w, wd = (omega[k], omegad[k]) if k >= 0 else (np.zeros(3), np.zeros(3))
            a = _acceleration(vd[k], w, wd, at.p) if k >= 0 else -gravity  # v̇_0, Eq. 3.3-46
            turn, slide = row.sigma * at.z, row.h * at.z
            omega.append(at.R @ (w + turn * qd[i]))
            omegad.append(at.R @ (wd + turn * qdd[i] + cross(w, turn * qd[i])))
            a = at.R @ (a + slide * qdd[i]) + 2 * cross(omega[i], at.R @ (slide * qd[i]))
            vd.append(_acceleration(a, omega[i], omegad[i], at.p_star))
            F = row.m * _acceleration(vd[i], omega[i], omegad[i], at.s_bar)
            N = at.I @ omegad[i] + cross(omega[i], at.I @ omega[i])
            f.append(F - at.wrench[3:])
            n.append(cross(at.p_star + at.s_bar, F) + N - at.wrench[:3] - cross(at.p_star, at.wrench[3:]))
        tau = np.empty(len(links), dtype=object)
        for i, (row, at) in reversed([*enumerate(zip(self.rows, links, strict=True))]):
            z, k = at.R @ at.z, row.parent
            tau[i] = row.sigma * (n[i] @ z) + row.h * (f[i] @ z)
            if k >= 0:
                f_i = at.R.T @ f[i]
                f[k] = f[k] + f_i
                n[k] = n[k] + at.R.T @ n[i] + cross(links[k].p_star + at.p, f_i)
        return whole(np.array(tau.tolist()))

    # The names of the library: probing

    def _probe(self, q: Array, qd: Array, qdd: Array, gravity: Array) -> Array:
        return self._torques(self.in_link_frames(q, self._loads({})), qd, qdd, gravity)

    def _mass_matrix(self, q: Array) -> Array:
        still, n = np.zeros(3), len(q)
        columns = [self._probe(q, np.zeros(n), unit, still) for unit in np.eye(n)]
        return np.array(columns).reshape(n, n).T

    def _velocity_product(self, q: Array, qd: Array) -> Array:
        return self._probe(q, qd, np.zeros(len(q)), np.zeros(3))

    def _gravity_vector(self, q: Array) -> Array:
        return self._probe(q, np.zeros(len(q)), np.zeros(len(q)), self.gravity)


def _acceleration(a: Array, omega: Array, omegad: Array, r: Array) -> Array:
    """Acceleration of the point r from one of acceleration a on the same link: Eqs. 3.3-35 and 3.3-39."""
    there: Array = cross(omegad, r) + cross(omega, cross(omega, r)) + a
    return there
