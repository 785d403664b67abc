"""Derivatives of forward dynamics with closed loops (docs/mathematics.md §12)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from screwdyn.core.types import Array, ArrayLike
from screwdyn.forms.numbers import Numbers
from screwdyn.physics.closure import Closure, Factors
from screwdyn.physics.model import Model

__all__ = ["forward_dynamics"]


class Differentiated(Protocol):
    """The derivatives of the quantities of a model, by their names."""

    def __getattr__(self, name: str) -> Callable[..., Any]: ...


def forward_dynamics(
    model: Model, of: Differentiated, opened: Differentiated, q: ArrayLike, qd: ArrayLike, tau: ArrayLike
) -> list[Array]:
    """∂q̈/∂q, ∂q̈/∂q̇ and ∂q̈/∂τ, each (…, nv, nv), of a model with loops in states in which they are closed.

    M δq̈ − J_cᵀ δλ = δτ − δ(M q̈ + C q̇ + g − J_cᵀ λ) and J_c δq̈ = −δ(J_c q̈ + J̇_c q̇), with q̈ and λ constant in the
    variations on the right. The derivatives are those of the model, and of the model without its loops.
    """
    one = Numbers(model)
    (q, qd, tau), batch = model.flat(q=q, qd=qd, tau=tau)
    q, qd, tau = (x.reshape(*batch, -1) for x in (q, qd, tau))
    qdd = one.forward_dynamics(q, qd, tau)
    by_q, by_qd, M = opened.inverse_dynamics(q, qd, qdd)
    J, J_dot = one.constraint_jacobian(q), one.constraint_jacobian_dot(q, qd)
    dJ = of.constraint_jacobian(q)
    dJ_dot_q, dJ_dot_qd = of.constraint_jacobian_dot(q, qd)
    factors = Closure(one, model).factors(q)
    caused = (M @ qdd[..., None])[..., 0] + one.bias_force(q, qd) - tau
    multipliers = factors.multipliers(factors.lower(caused[..., None])[..., 0])
    by_q = by_q - np.einsum("...lik,...l->...ik", dJ, multipliers)
    opening_q = np.einsum("...lik,...i->...lk", dJ, qdd) + np.einsum("...lik,...i->...lk", dJ_dot_q, qd)
    opening_qd = J_dot + np.einsum("...lik,...i->...lk", dJ_dot_qd, qd)
    unit = np.broadcast_to(np.eye(model.nv), M.shape)
    terms = ((-by_q, -opening_q), (-by_qd, -opening_qd), (unit, np.zeros_like(J)))
    return [_constrained(factors, M, J, forces, accelerations) for forces, accelerations in terms]


def _constrained(factors: Factors, M: Array, J: Array, forces: Array, accelerations: Array) -> Array:
    """x with M x − Jᵀ λ = forces and J x = accelerations, for columns of both."""
    x = np.linalg.solve(M, forces)
    missing = np.moveaxis(accelerations - J @ x, -1, 0)
    return np.asarray(x + np.moveaxis(factors.least(missing), 0, -1))
