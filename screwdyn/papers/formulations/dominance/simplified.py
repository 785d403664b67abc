"""The choice of the parts of D and h that hardly matter along a trajectory."""

from __future__ import annotations

from typing import Any

import numpy as np

from screwdyn.core.errors import ScrewdynError
from screwdyn.core.types import Array
from screwdyn.mechanism.structure import Structure
from screwdyn.papers.formulations.dominance.equations import Equations, Trajectory
from screwdyn.papers.formulations.dominance.model import SimplifiedModel, ratio
from screwdyn.papers.formulations.dominance.parts import Parts

__all__ = ["simplified"]


def simplified(tree: Structure, trajectory: Trajectory, tolerance: float) -> SimplifiedModel:
    """Propose a model without the parts of D and h that hardly matter along a trajectory.

    The parts are D_ij^tran, D_ij^rot (together with D_ji, so that D stays symmetric), h_i^tran and h_i^rot; gravity is
    kept. In the order of their largest torque relative to the peak of its joint, smallest first, each part is left out
    if the error of all parts left out so far then remains within the tolerance, for every joint at every set point.

    Parameters
    ----------
    tree, trajectory
        As for :func:`parts`.
    tolerance : float
        Largest torque error of a joint at the set points, as a fraction of the largest torque of that joint there, ≥ 0.

    Returns
    -------
    SimplifiedModel
        Its ``error`` is that of its own torques along the trajectory.

    Raises
    ------
    ScrewdynError, UnboundSymbolError, ShapeError
        As for :func:`parts`, and if the tolerance is not a number ≥ 0.
    """
    number = isinstance(tolerance, float | int | np.number) and not isinstance(tolerance, bool)
    if not (number and 0 <= tolerance < np.inf):
        raise ScrewdynError(f"tolerance must be a fraction of the largest torques, ≥ 0; got {tolerance!r}")
    equations = Equations(tree)
    state = equations.set_points(trajectory)
    peak = np.abs(equations.full(state)).max(axis=0)
    torques = _torques(equations.parts_at(state), state[2])
    kept = Parts(*(x.copy() for x in equations.all))
    error = np.zeros_like(state[2])
    for (name, *index), torque in sorted(torques.items(), key=lambda item: ratio(np.abs(item[1]), peak).max()):
        if (np.abs(error + torque) <= tolerance * peak).all():
            error = error + torque
            part = getattr(kept, name)
            part[tuple(index)] = part[tuple(reversed(index))] = False
    return SimplifiedModel(equations, kept, float(tolerance), state)


def _torques(found: Parts, qdd: Array) -> dict[tuple[Any, ...], Array]:
    """The torque of each part alone, (k, n), by name and indices; that of D_ij includes D_ji."""
    n = qdd.shape[1]
    torques: dict[tuple[Any, ...], Array] = {}
    for name, values in found._asdict().items():
        for i in range(n):
            if name in ("h_tran", "h_rot"):
                torques[name, i] = np.zeros_like(qdd)
                torques[name, i][:, i] = values[:, i]
            else:
                for j in range(i, n):
                    torques[name, i, j] = np.zeros_like(qdd)
                    torques[name, i, j][:, i] = values[:, i, j] * qdd[:, j]
                    torques[name, i, j][:, j] = values[:, j, i] * qdd[:, i]
    return torques
