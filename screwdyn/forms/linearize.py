"""The equation of motion linearized about a state (docs/mathematics.md §10)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np

from screwdyn.core.types import Array, ArrayLike
from screwdyn.forms.closed_loops import ClosedLoops
from screwdyn.forms.derivatives import Derivatives
from screwdyn.forms.loop_torques import torques
from screwdyn.forms.numbers import Numbers
from screwdyn.physics.model import Model

__all__ = ["Linearization", "linearize"]


@dataclass(frozen=True, eq=False)
class Linearization:
    """δẋ = A δx + B δu about a state, with δx = [δq; δq̇] and δu = δτ of the active freedoms.

    ``A, B = tree.linearize(q)`` unpacks the two matrices. With joints of one freedom, ẋ = rate + A δx + B δu. With
    spherical, free or planar joints, δq has nv entries too: two neighbouring motions q(t) and q'(t) deviate by
    δq(t) = difference(q(t), q'(t)), while the state about which they deviate moves on at ``rate``.

    Attributes
    ----------
    A : (…, 2 nv, 2 nv) array
    B : (…, 2 nv, number of active freedoms) array
    rate : (…, 2 nv) array
        [q̇; q̈] of the state itself; zero in an equilibrium.
    tau : (…, nv) array
        The torques, N m or N; zero for passive freedoms.
    coordinates : tuple of str
        Names of the freedoms: x has their positions in this order, then their rates. With closed loops, the independent
        ones.
    inputs : tuple of str
        Names of the active freedoms, the entries of u.
    """

    A: Array
    B: Array
    rate: Array
    tau: Array
    coordinates: tuple[str, ...]
    inputs: tuple[str, ...]

    def __iter__(self) -> Iterator[Array]:
        yield from (self.A, self.B)

    def __repr__(self) -> str:
        if self.A.ndim > 2:
            return f"<{type(self).__name__} of {self.A.shape[:-2]} states: {', '.join(self.coordinates)}>"
        nv = len(self.coordinates)
        fastest = np.abs(self.rate).max(initial=0.0)
        return (
            f"<{type(self).__name__}: x = {', '.join(self.coordinates)} and their rates, u = "
            f"{', '.join(self.inputs) or 'nothing'}; fastest rate {fastest:.3g}, eigenvalues of A "
            f"{np.array2string(np.linalg.eigvals(self.A), precision=4, threshold=2 * nv)}>"
        )


def linearize(
    model: Model,
    q: ArrayLike,
    qd: ArrayLike | None = None,
    tau: ArrayLike | None = None,
    independent: Sequence[str] | None = None,
) -> Linearization:
    """M q̈ + C q̇ + g = τ − F_v q̇ − K (q − rest) − F_c sgn q̇, linearized about a state (docs/mathematics.md §10).

    ``A = [[−ad(q̇), 1], [∂q̈/∂q − M⁻¹ K, ∂q̈/∂q̇ − M⁻¹ F_v]]`` and ``B = [0; M⁻¹ B_a]``, with the exact derivatives of
    forward dynamics, and the columns of the active freedoms. ad(q̇) is zero but for the rotating charts of spherical,
    free and planar joints. Dry friction acts, but is constant in A: it has no derivative where it matters, at rest.

    Parameters
    ----------
    model : Model
    q : (…, nq) array
        rad and m.
    qd : (…, nv) array, optional
        rad/s and m/s; zero by default.
    tau : (…, nv) or (…, number of active freedoms) array, optional
        N m or N. By default those of inverse dynamics at q̈ = 0 in the active freedoms, which hold the tree in the state
        if any torques can; ``rate`` is not zero if none can, as where a passive joint does not hang.

    independent : sequence of str, optional
        With closed loops: the freedoms y of x = [y; ẏ], by default those that determine the others best. The loops are
        closed in the state, and in all neighbouring ones.

    Returns
    -------
    Linearization

    Raises
    ------
    ShapeError, UnboundSymbolError
        As for :class:`~screwdyn.physics.quantities.Quantities`; with closed loops also for a batch of states.
    LoopError, UnknownNameError
        If the independent freedoms do not determine the others, if there is none of that name, or if the motors cannot
        hold closed loops in the state; give ``tau`` then.
    JointError
        If there is a torque on a passive joint.
    SingularAttachmentError
        If a joint feels no inertia.
    """
    numbers, forces, nv = Numbers(model), model.joint_forces, model.nv
    qd = np.zeros(nv) if qd is None else qd
    given = np.zeros(nv) if tau is None else model.torques(tau)
    flat, batch = model.flat(q=q, qd=qd, tau=given)
    q, qd, given = (x.reshape(*batch, n) for x, n in zip(flat, (model.nq, nv, nv), strict=True))
    own = forces.viscous_force(qd) + forces.smoothed_friction(qd) + forces.spring_force(q)
    active = ~np.array(model.passive, dtype=bool)
    kept = _Independent(numbers, q, qd, independent) if model.constraints or independent is not None else None
    if tau is None and kept is not None:
        given = torques(numbers, model, q, qd, kept.qdd, own)
    elif tau is None:
        given = np.where(active, numbers.inverse_dynamics(q, qd, np.zeros(nv)) - own, 0.0)
    by_q, by_qd, by_tau = model.derived(Derivatives).forward_dynamics(q, qd, given + own)
    A, B = np.zeros((*batch, 2 * nv, 2 * nv)), np.zeros((*batch, 2 * nv, int(active.sum())))
    A[..., :nv, :nv] = -model.chart_rotation(qd)
    A[..., :nv, nv:] = np.eye(nv)
    A[..., nv:, :nv] = by_q - by_tau * forces.stiffness
    A[..., nv:, nv:] = by_qd - by_tau * forces.damping
    B[..., nv:, :] = by_tau[..., active]
    rate = np.concatenate([qd, numbers.forward_dynamics(q, qd, given + own)], axis=-1)
    names, inputs = model.coordinates, tuple(compress(model.coordinates, active))
    if kept is not None:
        rows = [*kept.freedoms, *(nv + k for k in kept.freedoms)]
        A, B, rate, names = A[rows] @ kept.deviation, B[rows], rate[rows], tuple(names[k] for k in kept.freedoms)
    return Linearization(A, B, rate, given, names, inputs)


class _Closed(Numbers, ClosedLoops):
    """The functions of one model with loops."""


class _Independent:
    """Independent freedoms y of closed loops in one state.

    Attributes
    ----------
    freedoms : list of int
    qdd : (nv,) array
        Ż ẏ, the accelerations while ÿ = 0.
    deviation : (2 nv, 2 r) array
        δ[q; q̇] = [[Z, 0], [H, Z]] δ[y; ẏ]. Loops remain closed in neighbouring states if
        J_c δq̇ + J̇_c(q, δq) q̇ = 0, so H_d = −J_d⁺ J̇_c(q, Z e_j) q̇ in column j.
    """

    def __init__(self, one: Numbers, q: Array, qd: Array, independent: Sequence[str] | None) -> None:
        model, closed = one.model, _Closed(one.model)
        found = closed.reduced(q, qd, independent)
        Z = found.Z
        self.freedoms = [model.coordinates.index(name) for name in found.independent]
        self.qdd = found.Z_dot @ qd[self.freedoms]
        H = np.stack([closed.reduced(q, z, found.independent).Z_dot @ qd[self.freedoms] for z in Z.T], axis=-1)
        self.deviation = np.block([[Z, np.zeros_like(Z)], [H, Z]])
