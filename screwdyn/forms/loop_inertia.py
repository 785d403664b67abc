"""Operational-space inertia of a link with closed loops (docs/mathematics.md §12)."""

from __future__ import annotations

import numpy as np

from screwdyn.core.types import Array, ArrayLike
from screwdyn.physics.closure import Closure
from screwdyn.physics.model import Model
from screwdyn.physics.quantities import Frame, Quantities
from screwdyn.physics.recursions.operational import invert

__all__ = ["operational_inertia"]


def operational_inertia(one: Quantities, model: Model, link: str, q: ArrayLike, frame: Frame) -> tuple[Array, int]:
    """Λ = (J Z Zᵀ Jᵀ)⁻¹, (…, 6, 6), with the motions Z that the loops allow, Zᵀ M Z = 1; and a status.

    The status is that of the recursion without loops: not 0 if the link cannot move in all six directions.
    """
    (q,), batch = model.flat(q=q)
    closure, inverse = Closure(one, model), np.empty((*batch, 6, 6))
    for found, x in zip(inverse.reshape(-1, 6, 6), q.reshape(-1, model.nq), strict=True):
        motions = np.asarray(one.jacobian(link, x, frame)) @ closure.factors(x).motions()
        found[...] = motions @ motions.T
        status = invert(found)
        if status:
            return inverse, status
    return inverse, 0
