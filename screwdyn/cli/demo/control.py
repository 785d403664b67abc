"""The controllers of the demonstration, which follow a smooth path by computed torque."""

from dataclasses import dataclass

import numpy as np

from screwdyn.core.types import Array
from screwdyn.physics.state import State
from screwdyn.tree import KinematicTree

__all__ = ["DAMPING", "STIFFNESS", "ComputedTorque", "Path5"]

# Critically damped at 10 rad/s.
STIFFNESS, DAMPING = 100.0, 20.0


@dataclass(frozen=True)
class Path5:
    """A minimum-jerk path q(t) = start + (end − start) s³ (10 − 15 s + 6 s²), s = t / seconds; at rest afterwards."""

    start: Array
    end: Array
    seconds: float

    def __call__(self, t: float) -> tuple[Array, Array, Array]:
        """Position, rate and acceleration at a time in seconds, each (nv,)."""
        s, way = min(max(t / self.seconds, 0.0), 1.0), self.end - self.start
        q = self.start + way * (s**3 * (10 - 15 * s + 6 * s**2))
        qd = way * (30 * s**2 * (1 - s) ** 2 / self.seconds)
        return q, qd, way * (60 * s * (1 - s) * (1 - 2 * s) / self.seconds**2)


@dataclass(frozen=True)
class ComputedTorque:
    """Follow a path by partial feedback linearisation.

    The commanded acceleration of the active joints (a) is v = q̈_path + K_d (q̇_path − q̇) + K_p (q_path − q). The
    acceleration of the passive joints (p) follows from their rows of the equation of motion,
    M_pp q̈_p = f_p − M_pa v − h_p, with h = C q̇ + g and f the joints' own forces. The torques are
    τ_a = M_aa v + M_ap q̈_p + h_a − f_a.

    Attributes
    ----------
    path : Path5
        Of the coordinates of the robot, which come before those of payloads.
    model : KinematicTree or None
        The controller's model; ``None`` for the simulated tree at the current time.
    """

    path: Path5
    model: KinematicTree | None = None

    def __call__(self, t: float, state: State) -> dict[str, float]:
        """Torques of the active joints, N m or N, by name."""
        tree = self.model or state.tree
        n = tree.nv
        q, qd = state.q[:n], state.qd[:n]
        target, rate, acceleration = self.path(t)
        own = len(target)
        v = np.zeros(n)
        v[:own] = acceleration + DAMPING * (rate - qd[:own]) + STIFFNESS * (target - q[:own])
        M, h = tree.mass_matrix(q), tree.bias_force(q, qd) - tree.joint_force(q, qd)
        p = np.array(tree.model.passive)
        if p.any():
            v[p] = np.linalg.solve(M[np.ix_(p, p)], -M[np.ix_(p, ~p)] @ v[~p] - h[p])
        tau = M @ v + h
        return {name: float(x) for name, x, idle in zip(tree.coordinates, tau, p, strict=True) if not idle}
