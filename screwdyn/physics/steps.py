"""Integrators of fixed step, and linear feedback, on arrays of traced scalars (docs/rollouts.md)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

__all__ = ["STEPS", "Feedback", "Motion", "runge_kutta_4", "semi_implicit_euler"]

State = tuple[Any, Any]


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
        The nq positions, rad or m; those of spherical, free and planar joints have no influence.
    qd_target : array_like
        The nv rates, rad/s or m/s.
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


class Motion(ABC):
    """A mechanism as its integrators see it; q, q̇ and the results are arrays with an entry for each coordinate."""

    @abstractmethod
    def acceleration(self, q: Any, qd: Any) -> Any:
        """Accelerations q̈, (nv,)."""

    @abstractmethod
    def rate(self, q: Any, qd: Any) -> Any:
        """The time derivative of the positions, (nq,)."""

    @abstractmethod
    def normalized(self, q: Any) -> Any:
        """The positions with quaternions of length 1, (nq,)."""

    @abstractmethod
    def moved(self, q: Any, v: Any) -> Any:
        """The positions reached from q by moving at v (nv,) for unit time, (nq,)."""


def semi_implicit_euler(motion: Motion, q: Any, qd: Any, dt: Any) -> State:
    """The state after a step: q̇₁ = q̇ + h q̈(q, q̇), and q₁ is reached from q by moving at q̇₁ for h seconds.

    The error after a given time is proportional to h.
    """
    qd = qd + motion.acceleration(q, qd) * dt
    return motion.normalized(motion.moved(q, qd * dt)), qd


def runge_kutta_4(motion: Motion, q: Any, qd: Any, dt: Any) -> State:
    """The state after a step of the classical Runge-Kutta method; the error after a given time is proportional to h⁴.

    Quaternions are integrated as four numbers and scaled to length 1.
    """
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
