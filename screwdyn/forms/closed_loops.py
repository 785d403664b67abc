"""Trees whose loops are closed: gap, freedoms, assembly, reactions, chosen reactions and reduced equation of motion.

docs/mathematics.md §12. The accelerations themselves are those of ``forward_dynamics``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from screwdyn.backends.tape.tape import Tape
from screwdyn.backends.tape.trace import record, subject_of
from screwdyn.core import Array, ArrayLike, Indices, LoopError, ShapeError, UnknownNameError, expressions
from screwdyn.forms.numbers import Dynamics, Numbers, one_state
from screwdyn.mechanism.link import Loop
from screwdyn.physics import Model, Robot, subtree_wrench
from screwdyn.physics.closure import Closure, significant, weights
from screwdyn.physics.recursions.loops import REDUNDANT, orthonormal_rows
from screwdyn.screws.screw import Ad_of, inverse_of

# Gap, m and rad, of loops that count as assembled.
_CLOSED = 1e-10
# For the choice of constraints: number of random configurations from which the loops are closed, and of those near a
# closed one; their distance.
_RANDOM, _AWAY = 3, 0.3


class Reactions(NamedTuple):
    """What the joints of loops transmit.

    Attributes
    ----------
    wrenches : dict
        From loop to the wrench [n; f], (6,), of ``to`` on ``link`` in the frame of ``link``; N m and N. Of all wrenches
        that rigid bodies allow, those of least λᵀλ.
    undetermined : dict
        From each loop whose wrench rigid bodies do not determine to an orthonormal basis, (6, k), of the wrenches that
        can be added to it, together with others, without a change of motion.
    """

    wrenches: dict[str, Array]
    undetermined: dict[str, Array]


class Reduced(NamedTuple):
    """The equation of motion over independent coordinates y, M ÿ + C ẏ + g = Zᵀ τ with q̇ = Z ẏ.

    Attributes
    ----------
    independent : tuple of str
        Names of the freedoms y.
    M, C, g : (r, r), (r, r), (r,) arrays
        M_r = Zᵀ M Z, C_r = Zᵀ (M Ż + C Z), which is that of the Christoffel symbols of M_r, and g_r = Zᵀ g.
    Z, Z_dot : (nv, r) arrays
    """

    independent: tuple[str, ...]
    M: Array
    C: Array
    g: Array
    Z: Array
    Z_dot: Array


class ClosedLoops(Dynamics):
    """Functions of a tree with loops."""

    def gap(self, q: ArrayLike) -> Array:
        """How far the loops are from being closed, φ = Nᵀ log(g⁻¹ home⁻¹ T), (…, m); m and rad.

        T is the pose of a loop's link in the other one, and g the element of the joint's group that is nearest to
        home⁻¹ T. The entries are those of J_c, and φ̇ = J_c q̇ where φ = 0. Errors as for ``forward_kinematics``.
        """
        closure = Closure(self._frozen())
        (q,), _ = closure.model.arrays({"q": q})
        return closure.gap(q)

    def freedoms(self, q: ArrayLike) -> int:
        """Number of freedoms that the closed loops leave in a configuration: nv minus the rank of J_c."""
        closure = Closure(self._frozen())
        (q,) = one_state(closure.model, q=q)
        return closure.model.nv - closure.factors(q).rank

    def assemble(self, q: ArrayLike, hold: Iterable[str] = ()) -> Array:
        """A configuration near q in which all loops are closed, (nq,).

        Newton steps that are least in the metric of M.

        Parameters
        ----------
        q : (nq,) array
            A guess, rad and m.
        hold : sequence of str
            Freedoms that stay as they are in q.

        Raises
        ------
        LoopError
            If the loops cannot be closed from there; the message states what is left of each gap.
        UnknownNameError, ShapeError
            For an unknown freedom, or as for ``forward_kinematics``.
        """
        closure = Closure(self._frozen())
        return _assembled(closure, q, _free(closure.model, hold))

    def project(self, q: ArrayLike, qd: ArrayLike, hold: Iterable[str] = ()) -> tuple[Array, Array]:
        """The state with closed loops near a state: :meth:`assemble`, and the nearest rates in the metric of M.

        Freedoms that are held keep their positions and rates. Errors as for :meth:`assemble`; also LoopError if the
        loops do not allow the rates that are held.
        """
        closure = Closure(self._frozen())
        free = _free(closure.model, hold)
        q, (rates,) = _assembled(closure, q, free), one_state(closure.model, qd=qd)
        rates = rates - closure.step(q, closure.opening(q, rates), free)
        if len(free) < closure.model.nv:
            closure.check_moving(q, rates, "the loops do not allow the rates that are held; hold fewer freedoms")
        return q, rates

    def constraint_wrenches(self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike) -> Reactions:
        """The wrenches in the joints of the loops, M q̈ + C q̇ + g = τ + J_cᵀ λ.

        Parameters
        ----------
        q, qd, tau : (nq,), (nv,), (nv,) arrays
            A state in which the loops are closed, and the joint forces.

        Returns
        -------
        Reactions
            Redundant constraints leave some reactions undetermined, which are named.

        Raises
        ------
        ShapeError, SingularAttachmentError
            As for ``forward_dynamics``.
        """
        closure = Closure(self._frozen())
        given, nothing = closure.multipliers(*one_state(closure.model, q=q, qd=qd, tau=tau))
        wrenches, undetermined = {}, {}
        for loop, N, own in closure.own():
            wrenches[loop.name] = N @ given[own]
            basis, sizes, _ = np.linalg.svd(N @ nothing[own], full_matrices=False)
            if (sizes > REDUNDANT).any():
                undetermined[loop.name] = basis[:, sizes > REDUNDANT]
        return Reactions(wrenches, undetermined)

    def squeezing_torque(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, squeeze: Wrenches, wrenches: Wrenches | None = None
    ) -> Array:
        """Joint forces τ of a motion with chosen wrenches in the loops, as two hands that press on a bar, (…, nv).

        M q̈ + C q̇ + g = τ + J_cᵀ λ + Σ J_iᵀ F_i. Of all τ that give the motion, the one nearest to that with the chosen
        λ. With at least as many motors as the tree has freedoms, the wrenches are the chosen ones.

        Parameters
        ----------
        q, qd, qdd : (…, nq), (…, nv), (…, nv) arrays
            As for ``inverse_dynamics``.
        squeeze : mapping
            From loop to the wrench [n; f], (6,), of ``to`` on ``link`` in the frame of ``link``, N m and N. Loops that
            are not named transmit nothing.
        wrenches : mapping, optional
            External wrenches on links, as for ``inverse_dynamics``.

        Returns
        -------
        (…, nv) array
            Zero for passive joints; N m or N.

        Raises
        ------
        LoopError
            As for ``inverse_dynamics``, or if the joint of a loop does not transmit the wrench.
        UnknownNameError, ShapeError
            If there is no such loop, if a wrench is not six finite numbers, or as for ``inverse_dynamics``.
        """
        one = self._frozen()
        given = None if wrenches is None else one.wrench_torque(q, wrenches)
        return Closure(one).inverse_dynamics(q, qd, qdd, given, multipliers_of(one.model, squeeze))

    def reduced(self, q: ArrayLike, qd: ArrayLike, independent: Sequence[str] | None = None) -> Reduced:
        """M, C and g over independent coordinates of the closed loops (docs/mathematics.md §12).

        Parameters
        ----------
        q, qd : (nq,), (nv,) arrays
            A state in which the loops are closed.
        independent : sequence of str, optional
            As many freedoms as the loops leave; by default those that determine the others best.

        Raises
        ------
        LoopError
            If these freedoms do not determine the others.
        UnknownNameError
            If there is no such freedom.
        ShapeError
            For a batch of states, or as for ``forward_kinematics``.
        """
        one = self._frozen()
        model = one.model
        q, qd = one_state(model, q=q, qd=qd)
        closure, J = Closure(one), one.constraint_jacobian(q)
        rank, D = closure.factors(q).rank, weights(J)[:, None]
        J, J_dot = D * J, D * one.constraint_jacobian_dot(q, qd)
        if independent is None:
            from scipy.linalg import qr

            chosen = sorted(qr(J, pivoting=True, mode="r")[1][rank:]) if len(J) else [*range(model.nv)]
        else:
            chosen = indices(model, independent)
        others = dependent(model, J, rank, chosen)
        Z, Z_dot = np.zeros((2, model.nv, len(chosen)))
        Z[chosen] = np.eye(len(chosen))
        inward = np.linalg.pinv(J[:, others], rcond=REDUNDANT)
        Z[others] = -inward @ J[:, chosen]
        Z_dot[others] = -inward @ J_dot @ Z
        M, C, g = one.dynamics(q, qd)
        kept = tuple(model.coordinates[k] for k in chosen)
        return Reduced(kept, Z.T @ M @ Z, Z.T @ (M @ Z_dot + C @ Z), Z.T @ g, Z, Z_dot)


class ClosedNumbers(Numbers, ClosedLoops):
    """The functions of one model with loops."""


def accelerations_by(derivatives: Any, q: ArrayLike, qd: ArrayLike, tau: ArrayLike) -> list[Array]:
    """∂q̈/∂q, ∂q̈/∂q̇ and ∂q̈/∂τ in states in which the loops are closed (docs/mathematics.md §12).

    M δq̈ − J_cᵀ δλ = δτ − δ(M q̈ + C q̇ + g − J_cᵀ λ) and J_c δq̈ = −δ(J_c q̈ + J̇_c q̇), with q̈ and λ constant in the
    variations on the right. The derivatives are those of the model, and of the model without its loops.
    """
    model: Model = derivatives._model
    one, opened = Numbers(model), type(derivatives)(Model(replace(model.topology, loops={})))
    (q, qd, tau), _ = model.arrays({"q": q, "qd": qd, "tau": tau})
    qdd = one.forward_dynamics(q, qd, tau)
    by_q, by_qd, M = opened.inverse_dynamics(q, qd, qdd)
    J, J_dot = one.constraint_jacobian(q), one.constraint_jacobian_dot(q, qd)
    dJ = derivatives.constraint_jacobian(q)
    dJ_dot_q, dJ_dot_qd = derivatives.constraint_jacobian_dot(q, qd)
    added = qdd + np.linalg.solve(M, (one.bias_force(q, qd) - tau)[..., None])[..., 0]
    multipliers = one._closing(q, (J @ added[..., None])[..., 0])[1]
    by_q = by_q - np.einsum("...lik,...l->...ik", dJ, multipliers)
    opening_q = np.einsum("...lik,...i->...lk", dJ, qdd) + np.einsum("...lik,...i->...lk", dJ_dot_q, qd)
    opening_qd = J_dot + np.einsum("...lik,...i->...lk", dJ_dot_qd, qd)
    unit = np.broadcast_to(np.eye(model.nv), M.shape)
    found = []
    for forces, accelerations in ((-by_q, -opening_q), (-by_qd, -opening_qd), (unit, np.zeros_like(J))):
        x = np.linalg.solve(M, forces)
        missing = np.moveaxis(accelerations - J @ x, -1, 0)
        every_q = np.broadcast_to(q, (len(missing), *q.shape))
        found.append(x + np.moveaxis(one._closing(every_q, missing)[0], 0, -1))
    return found


def deviations(
    model: Model, q: Array, qd: Array, independent: Sequence[str] | None
) -> tuple[list[int], Array, Array] | None:
    """Indices of independent freedoms y of closed loops in one state, q̈ = Ż ẏ while ÿ = 0, and the deviation.

    δ[q; q̇] = [[Z, 0], [H, Z]] δ[y; ẏ], (2 nv, 2 r). Loops remain closed in neighbouring states if
    J_c δq̇ + J̇_c(q, δq) q̇ = 0, so H_d = −J_d⁺ J̇_c(q, Z e_j) q̇ in column j. None without loops unless
    freedoms are chosen.
    """
    if independent is None and not model.topology.loops:
        return None
    closed = ClosedNumbers(model)
    found = closed.reduced(q, qd, independent)
    Z, freedoms = found.Z, [model.coordinates.index(name) for name in found.independent]
    H = np.stack([closed.reduced(q, z, found.independent).Z_dot @ qd[freedoms] for z in Z.T], axis=-1)
    return freedoms, found.Z_dot @ qd[freedoms], np.block([[Z, np.zeros_like(Z)], [H, Z]])


@lru_cache(maxsize=32)
def independent_constraints(model: Model) -> tuple[tuple[int, ...], Array]:
    """The indices of independent constraints among all, and their Jacobians (…, rank, nv) where loops are closed.

    Operations that are written out cannot choose between constraints: these ones imply the others. They are chosen in
    configurations in which the loops are closed, because constraints of some mechanisms are redundant only there
    (docs/mathematics.md §12). If the model has symbols, these get arbitrary values, and the loops are not closed: only
    what is redundant for all values is recognised. LoopError if the loops cannot be closed.
    """
    jacobians = np.stack([_of_symbols(model)] if model.ready is None else _closed(model))
    chosen = max(map(_chosen, jacobians), key=len)
    return chosen, jacobians[:, chosen]


def _closed(model: Model) -> list[Array]:
    """J_c in some configurations with closed loops: one, which may be singular, and others near it."""
    one, rng, space = ClosedNumbers(model), np.random.default_rng(0), model.configurations
    reasons = []
    for start in (space.neutral, *(space.random(rng) for _ in range(_RANDOM))):
        try:
            q = one.assemble(start)
            break
        except LoopError as error:
            reasons.append(error)
    else:
        raise reasons[0]
    found = [one.constraint_jacobian(q)]
    for _ in range(_RANDOM):
        with suppress(LoopError):
            near = space.integrate(q, rng.uniform(-_AWAY, _AWAY, model.nv))
            found.append(one.constraint_jacobian(one.assemble(near)))
    return found


def _of_symbols(model: Model) -> Array:
    """J_c for arbitrary values of the symbols, and in an arbitrary configuration."""
    tape, rng = Tape(), np.random.default_rng(0)
    (recorded,) = record(tape, "constraint_jacobian", subject_of(model, tape, model.constraints))
    symbols = {symbol: rng.uniform(0.5, 1.5) for symbol in model.symbols}
    values: dict[Any, Any] = {("q", k): x for k, x in enumerate(model.configurations.random(rng))}
    read = (node.a for node in tape.nodes if node.op == "input" and node.a[0] == "symbol")
    values |= {name: float(expressions.substituted(name[1], symbols)) for name in read}
    found = tape.evaluate(recorded.ravel().tolist(), values)
    return np.array(found, dtype=np.float64).reshape(recorded.shape)


def _chosen(J: Array) -> tuple[int, ...]:
    """Independent rows, by Gram-Schmidt, which does not depend on inertias: code is kept when a payload changes."""
    m = len(J)
    order = np.zeros((m, 2))
    rank = orthonormal_rows(significant(J), np.zeros((m, m)), order)
    return tuple(sorted(map(int, order[:rank, 0])))


def exerted_wrench(tree: Robot, link: str, by: str, q: Array, qd: Array, qdd: Array, tau: Array) -> Array:
    """Wrenches that another link exerts on a link, (k, 6), in its frame, in k states with the forces of all joints.

    By the loops between them and, if one is the parent of the other, by that joint, which transmits what acts on the
    links beyond it but by loops (docs/mathematics.md §11). NaN if redundant constraints leave it undetermined.
    """

    def to_base(name: str) -> Array:
        return Ad_of(inverse_of(tree.forward_kinematics(name, q))).swapaxes(-1, -2)

    closure, found = Closure(tree), np.zeros((len(q), 6, 1))
    child, sign = (link, 1) if tree.parent(link) == by else (by, -1)
    beyond = tree.subtree(child) if tree.parent(child) in (link, by) else ()
    if beyond:
        found += sign * (to_base(child) @ subtree_wrench(tree, child, q, qd, qdd)[..., None])
    by_loops = np.zeros((len(q), 6, sum(N.shape[1] for N in closure.wrenches)))
    for loop, N, own in closure.own():
        between = ((loop.link, loop.to) == (link, by)) - ((loop.link, loop.to) == (by, link))
        crossing = sign * ((loop.link in beyond) - (loop.to in beyond))
        by_loops[..., own] = (between - crossing) * (to_base(loop.link) @ N)
    for k, A in enumerate(by_loops):
        if A.any():
            given, nothing = closure.multipliers(q[k], qd[k], tau[k])
            known = np.abs(A @ nothing).max(initial=0.0) <= REDUNDANT * np.abs(A).max()
            found[k, :, 0] += A @ given if known else np.nan
    return np.asarray((Ad_of(tree.forward_kinematics(link, q)).swapaxes(-1, -2) @ found)[..., 0])


def dependent(model: Model, J: Array, rank: int, independent: Sequence[int]) -> list[int]:
    """Indices of the freedoms that others determine, by constraints with a Jacobian of known rank; LoopError if not."""
    others = [k for k in range(model.nv) if k not in independent]
    if len(others) != rank or np.linalg.matrix_rank(J[:, others], tol=REDUNDANT * np.abs(J).max(initial=0.0)) < rank:
        names = ", ".join(model.coordinates[k] for k in independent)
        raise LoopError(
            f"{names or 'no freedoms'} do not determine the other freedoms of the closed loops: the loops leave "
            f"{model.nv - rank} of {model.nv} freedoms; give that many that move independently"
        )
    return others


def indices(model: Model, freedoms: Iterable[str]) -> list[int]:
    """Indices of some freedoms, or of one, in the order of all; UnknownNameError if there is no such freedom."""
    found = set()
    for name in (freedoms,) if isinstance(freedoms, str) else freedoms:
        UnknownNameError.check(name, model.coordinates, "freedom")
        found.add(model.coordinates.index(name))
    return sorted(found)


def _free(model: Model, held: Iterable[str]) -> Indices:
    """Indices of the freedoms that are not held."""
    return np.delete(np.arange(model.nv), indices(model, held))


def _assembled(closure: Closure, q: ArrayLike, free: Indices) -> Array:
    (start,) = one_state(closure.model, q=q)
    found, left = closure.assembled(start, free)
    if left > _CLOSED:
        raise LoopError(f"the loops cannot be closed from here: {closure.described(found)}")
    return found


# Of a wrench that a loop's joint does not transmit, relative to its largest entry.
_ROUNDING = 1e-8

Wrenches = Mapping[str, ArrayLike]


def multipliers_of(model: Model, squeeze: Wrenches) -> Array:
    """λ of chosen wrenches, N λ = F in every loop; those of other loops are zero."""
    loops = model.topology.loops
    if not isinstance(squeeze, Mapping):
        raise ShapeError(f"squeeze must map names of loops to [n; f], {{loop: six numbers}}; got {squeeze!r}")
    for name in squeeze:
        UnknownNameError.check(name, loops, "loop")
    parts = [_transmitted(loop, squeeze.get(name, np.zeros(6))) for name, loop in loops.items()]
    return np.concatenate([np.zeros(0), *parts])


def _transmitted(loop: Loop, wrench: ArrayLike) -> Array:
    """λ of the wrench of one loop."""
    N = expressions.floats(loop.wrenches, f"loop {loop.name!r}")
    F: Array = expressions.read_or_nan(wrench)
    if F.shape != (6,) or not np.isfinite(F).all():
        raise ShapeError(f"the wrench in loop {loop.name!r} must be six finite numbers [n; f]; got {wrench!r}")
    multipliers = np.linalg.lstsq(N, F, rcond=None)[0]
    if np.abs(N @ multipliers - F).max() > _ROUNDING * np.abs(F).max(initial=0.0):
        raise LoopError(
            f"the {loop.joint.kind} joint of loop {loop.name!r} yields to the wrench {F.tolist()}; leave out the "
            f"forces and moments along its freedoms"
        )
    return np.asarray(multipliers)
