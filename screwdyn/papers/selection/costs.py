"""What the dynamics of arms cost: operations, and the time of inverse dynamics."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import numpy as np

from screwdyn.backends.llvm.processor import processor
from screwdyn.core.types import Array
from screwdyn.forms.operation_count import operations_of
from screwdyn.papers.selection.arm import Arm
from screwdyn.papers.selection.trajectory import Trajectory

__all__ = ["operations", "time_ratios"]

_STATES, _TURNS = 4096, 60


def operations(arm: Arm) -> dict[str, dict[str, int]]:
    """Operations as counted by tracing: M, C and τ of the library, M and C by the DeNOC formulation."""
    tree, denoc, n = arm.tree, arm.formulation, arm.tree.nv
    return {
        "M": tree.operation_count("mass_matrix"),
        "C": tree.operation_count("coriolis_matrix"),
        "inverse dynamics": tree.operation_count("inverse_dynamics"),
        "M, DeNOC": operations_of(denoc.mass_matrix, q=n),
        "C, DeNOC": operations_of(denoc.coriolis_matrix, q=n, qd=n),
    }


def time_ratios(arms: Mapping[str, Arm], trajectories: Mapping[str, Trajectory]) -> dict[str, float]:
    """Time of inverse dynamics along the trajectories, for equally many states, relative to the first arm.

    By compiled code, or without llvmlite by the default kernel. The arms take turns; the least time of each counts.
    """
    calls = {name: _call(arm, trajectories[name]) for name, arm in arms.items()}
    least = dict.fromkeys(calls, np.inf)
    for _ in range(_TURNS):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            least[name] = min(least[name], time.perf_counter() - start)
    first = next(iter(least.values()))
    return {name: float(x / first) for name, x in least.items()}


def _call(arm: Arm, trajectory: Trajectory) -> Callable[[], Array]:
    """Inverse dynamics of 4096 states: the samples of the trajectory, repeated."""
    n = arm.tree.nv
    q, qd, qdd = (
        np.ascontiguousarray(np.resize(x, (_STATES, n)).T).T for x in (trajectory.q, trajectory.qd, trajectory.qdd)
    )
    if processor() is None:
        return lambda: arm.tree.inverse_dynamics(q, qd, qdd)
    fast = arm.tree.compile(threads=1).wait()
    out = np.empty((n, _STATES)).T
    return lambda: fast.inverse_dynamics(q, qd, qdd, out=out)
