"""Joint forces of a motion with closed loops (docs/mathematics.md §12)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.errors import LoopError, ShapeError, UnknownNameError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.mechanism.loop import Loop
from screwdyn.physics.closure import Closure
from screwdyn.physics.model import Model
from screwdyn.physics.quantities import Quantities

__all__ = ["Wrenches", "multipliers_of", "torques"]

# Of accelerations that open a loop, of forces that motors cannot give, and of a wrench that a loop's joint does not
# transmit, each relative to its largest term; of the accelerations at least relative to 1 rad/s² or m/s².
_ROUNDING = 1e-8

Wrenches = Mapping[str, ArrayLike]


def torques(
    one: Quantities,
    model: Model,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    given: Array | None = None,
    multipliers: Array | None = None,
) -> Array:
    """τ of the active freedoms, nearest to that for the multipliers λ, or of least norm; errors as for the methods.

    ``given`` are joint forces that act besides, (…, nv), such as those of external wrenches.
    """
    states, batch = model.flat(q=q, qd=qd, qdd=qdd)
    given = np.zeros(model.nv) if given is None else given
    arrays = [*(a.reshape(*batch, -1) for a in states), given]
    batch = np.broadcast_shapes(batch, given.shape[:-1])
    rows = [np.broadcast_to(a, (*batch, a.shape[-1])).reshape(-1, a.shape[-1]) for a in arrays]
    found = [_torques(one, model, multipliers, *row) for row in zip(*rows, strict=True)]
    return np.array(found).reshape(*batch, model.nv)


def _torques(one: Quantities, model: Model, multipliers: Array | None, *state: Array) -> Array:
    """τ of one state, from Zᵀ B u = Zᵀ (M q̈ + C q̇ + g − Σ J_iᵀ F_i) with J_c Z = 0."""
    q, qd, qdd, external = state
    J = one.constraint_jacobian(q)
    turning = one.constraint_jacobian_dot(q, qd) @ qd
    opening, terms = J @ qdd + turning, np.concatenate([np.abs(J) @ np.abs(qdd), np.abs(turning)])
    if np.any(np.abs(opening) > _ROUNDING * terms.max(initial=1.0)):
        raise LoopError(
            f"these accelerations open {', '.join(map(repr, model.topology.loops))}: J_c q̈ + J̇_c q̇ has an entry of "
            f"{np.abs(opening).max():.3g}; with found = reduced(q, qd), q̈ = Z ÿ + Ż ẏ keeps the loops closed"
        )
    force = one.bias_force(q, qd) + one.mass_matrix(q) @ qdd - external
    factors = Closure(one, model).factors(q)
    active = ~np.array(model.passive, dtype=bool)
    wanted = None if multipliers is None else force - J.T @ multipliers
    tau = factors.motor_forces(force, active, wanted)
    if factors.missing(force, tau, model.weight_bound) > _ROUNDING:
        motors, others = (", ".join(map(repr, _names(model, which))) or "none" for which in (active, ~active))
        raise LoopError(
            f"the motors ({motors}) cannot give these accelerations: the passive joints {others} move otherwise; take "
            f"the accelerations of forward_dynamics, or make a joint active"
        )
    return tau


def multipliers_of(model: Model, squeeze: Wrenches) -> Array:
    """λ of chosen wrenches, N λ = F in every loop."""
    loops = model.topology.loops
    if not isinstance(squeeze, Mapping):
        raise ShapeError(f"squeeze must map names of loops to [n; f], {{loop: six numbers}}; got {squeeze!r}")
    for name in squeeze:
        if name not in loops:
            raise UnknownNameError.of(name, loops, "loop")
    parts = [_transmitted(loop, squeeze[name]) if name in squeeze else None for name, loop in loops.items()]
    given = zip(parts, loops.values(), strict=True)
    return np.concatenate([np.zeros(loop.wrenches.shape[1]) if part is None else part for part, loop in given])


def _transmitted(loop: Loop, wrench: ArrayLike) -> Array:
    """λ of the wrench of one loop."""
    N = expressions.floats(loop.wrenches, f"loop {loop.name!r}")
    try:
        F = np.asarray(wrench, dtype=np.float64)
    except (TypeError, ValueError):
        F = np.empty(0)
    if F.shape != (6,) or not np.isfinite(F).all():
        raise ShapeError(f"the wrench in loop {loop.name!r} must be six finite numbers [n; f]; got {wrench!r}")
    multipliers = np.linalg.lstsq(N, F, rcond=None)[0]
    if np.abs(N @ multipliers - F).max() > _ROUNDING * np.abs(F).max(initial=0.0):
        raise LoopError(
            f"the {loop.joint.kind} joint of loop {loop.name!r} yields to the wrench {F.tolist()}; leave out the "
            f"forces and moments along its freedoms"
        )
    return np.asarray(multipliers)


def _names(model: Model, which: Array) -> list[str]:
    return [model.coordinates[k] for k in np.flatnonzero(which)]
