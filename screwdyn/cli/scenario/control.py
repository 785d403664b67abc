"""Controllers of scenarios."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from screwdyn.core.types import Array
from screwdyn.physics.state import State
from screwdyn.simulation.equations import Torque

__all__ = ["Hold", "constant"]


def constant(torque: Mapping[str, Any]) -> Torque:
    """The same torques at all times, N m or N by coordinate, for the coordinates that the tree has at that time."""

    def function(t: float, state: State) -> dict[str, Any]:
        tree = state.tree
        known = {*state.coordinates, *(name for name in tree.joints if tree.joint(name).nv)}
        return {name: value for name, value in torque.items() if name in known}

    return function


@dataclass(frozen=True)
class Hold:
    """Proportional-derivative control towards a configuration, τ = K (q_goal ⊖ q) − D q̇ + g(q), on the active joints.

    ⊖ is the difference of positions along the freedoms of a joint. Joints without gains get only g.

    Attributes
    ----------
    goal : mapping from position to number
        rad and m.
    stiffness, damping : mapping from joint to gain
        N m/rad and N m s/rad, or N/m and N s/m.
    compensate : bool
        Whether g, which includes all payloads, is added.
    """

    goal: Mapping[str, float]
    stiffness: Mapping[str, float]
    damping: Mapping[str, float]
    compensate: bool

    def __call__(self, t: float, state: State) -> dict[str, Array]:
        """Torques by joint."""
        tree, found = state.tree, {}
        gravity = tree.gravity_vector(state.q) if self.compensate else np.zeros(len(state.qd))
        p = v = 0
        for name in tree.joints:
            joint = tree.joint(name)
            q, qd = state.q[p : p + joint.nq], state.qd[v : v + joint.nv]
            if joint.nv and not joint.passive:
                tau = gravity[v : v + joint.nv].copy()
                if name in self.stiffness or name in self.damping:
                    labels = joint.position_names(name)
                    goal = np.array([self.goal[label] for label in labels])
                    error = goal - q if joint.chart is None else joint.chart.difference(q, goal)
                    tau += self.stiffness.get(name, 0.0) * error - self.damping.get(name, 0.0) * qd
                found[name] = tau if joint.nv > 1 else tau[0]
            p, v = p + joint.nq, v + joint.nv
        return found
