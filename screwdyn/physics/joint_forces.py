"""Forces of joints: their own, linear feedback, the wrench that a joint transmits; and integrators of fixed step.

docs/mathematics.md §8 and §11, docs/rollouts.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from screwdyn.core import Array, expressions
from screwdyn.mechanism.joint import Joint
from screwdyn.physics.charts import Charts
from screwdyn.screws.screw import Ad_of, ad, inverse_of

if TYPE_CHECKING:
    from screwdyn.physics.model import Robot


# Rate in rad/s or m/s below which smoothed dry friction is nearly proportional to it.
SLIP = 1e-3


class JointForces(NamedTuple):
    """Parameters, (nv,), of the forces of freedoms and joints that follow them; the resulting forces and energies."""

    damping: Array  # N m s/rad of a rotational freedom, N s/m of a translational one
    friction: Array  # N m or N
    stiffness: Array  # N m/rad or N/m
    rest: Array  # positions at which the springs have no force, rad or m
    where: Any  # index in q of the position of each freedom; any index for group joints, which have no springs

    @classmethod
    def of(cls, joints: Sequence[Joint], charts: Charts | None) -> Self:
        """Parameters of the freedoms of the joints of all rows, in order; UnboundSymbolError for expressions."""
        parameters = [(j.damping, j.friction, j.stiffness, j.rest) for j in joints]
        numbers = expressions.floats(np.array(parameters), "a joint's own force").reshape(-1, 4)
        if charts is not None and charts.coupled:
            return cls._coupled(numbers, charts)
        damping, friction, stiffness, rest = numbers.T
        return cls(damping, friction, stiffness, rest, slice(None) if charts is None else charts.where)

    @classmethod
    def _coupled(cls, numbers: Array, charts: Charts) -> Self:
        """Parameters in which joints follow others, x = r y + c: f = r f_x gives r² F_v, |r| F_c and r² K."""
        column, ratio, offset = expressions.floats(charts.couplings, "the coupling of joints").T
        nv = 1 + int(column.max())
        added, where = np.zeros((4, nv)), np.zeros(nv, dtype=np.intp)
        where[column.astype(np.intp)] = charts.where
        damping, friction, stiffness, rest = numbers.T
        terms = ratio**2 * damping, np.abs(ratio) * friction, ratio**2 * stiffness, ratio * stiffness * (rest - offset)
        for total, term in zip(added, terms, strict=True):
            np.add.at(total, column.astype(np.intp), term)
        damping, friction, stiffness, moment = added
        rest = np.divide(moment, stiffness, out=np.zeros(nv), where=stiffness > 0)
        return cls(damping, friction, stiffness, rest, where)

    @property
    def acting(self) -> bool:
        """Whether any joint has forces of its own."""
        return bool(self.damping.any() or self.friction.any() or self.stiffness.any())

    def viscous_force(self, qd: Array) -> Array:
        """−damping q̇, (…, nv), N m or N."""
        return np.asarray(-self.damping * qd)

    def smoothed_friction(self, qd: Array) -> Array:
        """−friction tanh(q̇ / 1e-3), (…, nv), N m or N: dry friction as a continuous function of the rates."""
        return np.asarray(-self.friction * np.tanh(qd / SLIP))

    def slopes(self, qd: Array) -> Array:
        """Derivatives of the viscous force and of the smoothed friction of each freedom by its rate, (…, nv)."""
        return np.asarray(-self.damping - self.friction / SLIP * (1.0 - np.tanh(qd / SLIP) ** 2))

    def spring_force(self, q: Array) -> Array:
        """−stiffness (q − rest), (…, nv), N m or N."""
        return np.asarray(-self.stiffness * (q[..., self.where] - self.rest))

    def smoothed_force(self, q: Array, qd: Array) -> Array:
        """The sum of these, (…, nv), N m or N."""
        return self.viscous_force(qd) + self.smoothed_friction(qd) + self.spring_force(q)

    def spring_energy(self, q: Array) -> Array:
        """Σ ½ stiffness (q − rest)², (…), J: with joints that follow others, up to a constant."""
        strain = q[..., self.where] - self.rest
        return np.asarray(0.5 * np.sum(self.stiffness * strain * strain, axis=-1))  # 0 without stiffness, however far


def subtree_wrench(tree: Robot, link: str, q: Array, qd: Array, qdd: Array) -> Array:
    """Wrenches but weight on a link and all links beyond it, (k, 6), in its frame, in k states, N m and N.

    Ad(T)ᵀ Σ Ad(T_i)⁻ᵀ (I_i (V̇_i − [0; R_iᵀ g]) − ad(V_i)ᵀ I_i V_i).
    """
    total = np.zeros((len(q), 6))
    for name in tree.subtree(link):
        inertia = tree.link(name).inertia
        if inertia is not None:
            T, V = tree.forward_kinematics(name, q), tree.link_twist(name, q, qd, "body")
            A = tree.link_acceleration(name, q, qd, qdd, "body")
            A[:, 3:] -= tree.gravity @ T[:, :3, :3]
            F = A @ inertia.matrix - _transposed(ad(V), V @ inertia.matrix)
            total += _transposed(Ad_of(inverse_of(T)), F)
    return _transposed(Ad_of(tree.forward_kinematics(link, q)), total)


def _transposed(matrix: Array, F: Array) -> Array:
    """Matrixᵀ F of each sample."""
    return np.asarray(np.einsum("kji,kj->ki", matrix, F))


class Feedback(NamedTuple):
    """Linear feedback of every joint, τ = tau + kp (q_target − q) + kd (qd_target − q̇).

    In :meth:`screwdyn.forms.compiled.Compiled.rollout` each entry may be a number, an array for the coordinates,
    ``(n,)``, an array for each run, ``(B, n)``, or an array for each step, ``(steps, B or 1, n)``.

    Attributes
    ----------
    kp, kd : array_like
        Gains of the nv freedoms, N m/rad and N m s/rad of a rotational freedom, N/m and N s/m of a translational one.
        ``kp`` of a spherical, free or planar joint must be 0. As for torques, a number is for all active freedoms, and
        an array may have entries for these only.
    q_target : array_like
        The nq positions, rad or m, or an entry for each active freedom; those of spherical, free and planar joints
        have no influence.
    qd_target : array_like
        The rates of the nv freedoms, or of the active ones, rad/s or m/s.
    tau : array_like
        Torques or forces of the nv freedoms that are added, N m or N.
    """

    kp: Any
    kd: Any
    q_target: Any = 0.0
    qd_target: Any = 0.0
    tau: Any = 0.0

    def torque(self, q: Any, qd: Any, where: Any) -> Any:
        """The torque, (nv,); ``where`` is the index in q of the position of each freedom, any index where kp is 0."""
        return self.tau + self.kp * (self.q_target[where] - q[where]) + self.kd * (self.qd_target - qd)


# Steps of integrators, on arrays that may be of traced scalars. An object ``motion`` has the functions
# acceleration(q, q̇), (nv,); rate(q, q̇), the time derivative of the positions, (nq,); normalized(q), with quaternions of
# length 1; and moved(q, v), the positions reached from q by moving at v for unit time.


def semi_implicit_euler(motion: Any, q: Any, qd: Any, dt: Any) -> tuple[Any, Any]:
    """The state after a step of order 1: q̇₁ = q̇ + h q̈(q, q̇), and q₁ is reached from q by moving at q̇₁ for h seconds."""
    qd = qd + motion.acceleration(q, qd) * dt
    return motion.normalized(motion.moved(q, qd * dt)), qd


def runge_kutta_4(motion: Any, q: Any, qd: Any, dt: Any) -> tuple[Any, Any]:
    """The state after a step of the classical Runge-Kutta method, of order 4, in which quaternions are four numbers."""
    half, sixth, third = dt / 2.0, dt / 6.0, dt / 3.0
    k1, a1 = motion.rate(q, qd), motion.acceleration(q, qd)
    q2, qd2 = motion.normalized(q + k1 * half), qd + a1 * half
    k2, a2 = motion.rate(q2, qd2), motion.acceleration(q2, qd2)
    q3, qd3 = motion.normalized(q + k2 * half), qd + a2 * half
    k3, a3 = motion.rate(q3, qd3), motion.acceleration(q3, qd3)
    q4, qd4 = motion.normalized(q + k3 * dt), qd + a3 * dt
    k4, a4 = motion.rate(q4, qd4), motion.acceleration(q4, qd4)
    q = q + (k1 + k4) * sixth + (k2 + k3) * third
    return motion.normalized(q), qd + (a1 + a4) * sixth + (a2 + a3) * third


# The methods by name.
STEPS = {"semi_implicit_euler": semi_implicit_euler, "rk4": runge_kutta_4}
