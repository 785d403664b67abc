"""Forward dynamics of closed loops on a tape, and their rates over independent ones (docs/mathematics.md §12).

A tape cannot choose, so the independent constraints are chosen before it is recorded. With M = Lᵀ D L,
Y = L⁻ᵀ J_cᵀ and z = L⁻ᵀ (τ − C q̇ − g):

    K λ = −J̇_c q̇ − Yᵀ D⁻¹ z,   K = Yᵀ D⁻¹ Y = J_c M⁻¹ J_cᵀ,   L q̈ = D⁻¹ (z + Y λ).
"""

from collections.abc import Sequence

import numpy as np

from screwdyn.backends.tape.ltdl import factors
from screwdyn.backends.tape.tape import Scalar, Tape
from screwdyn.backends.tape.trace import Scalars, Subject, record
from screwdyn.physics.base_parameters import base_parameters
from screwdyn.physics.recursions.constrained import REDUNDANT
from screwdyn.physics.spatial import exceeds

__all__ = ["dependent_rates", "forward_dynamics"]


def _constraints(tape: Tape, subject: Subject) -> tuple[Scalars, Scalars]:
    """J_c and J̇_c, (m, n), of the constraints at the places of a subject."""
    (J,) = record(tape, "constraint_jacobian", subject)
    (J_dot,) = record(tape, "constraint_jacobian_dot", subject)
    return J, J_dot


def forward_dynamics(tape: Tape, subject: Subject) -> Scalars:
    """Accelerations, (n,), from ``q``, ``qd`` and ``tau`` on the tape.

    The tape records the assumptions that M is regular, and that no constraint follows from those before it.

    Parameters
    ----------
    tape : Tape
    subject : Subject
        Its places are those of independent constraints.

    Raises
    ------
    Undetermined
        If some joint feels no inertia in any state.
    """
    alone = subject._replace(table=base_parameters(subject.table), places=None)
    (bias,) = record(tape, "bias_force", alone)
    M = factors(tape, subject._replace(places=None))
    J, J_dot = _constraints(tape, subject)
    qd = subject.inputs(tape, "qd")
    z = M.inward(subject.inputs(tape, "tau") - bias)
    Y = [M.inward(row) for row in J]
    wanted = np.array([-(J_dot[l] @ qd) - (Y[l] / M.D) @ z for l in range(len(Y))], dtype=object)
    K = np.array([(row / M.D) @ column for row in Y for column in Y], dtype=object).reshape(len(Y), len(Y))
    forces = _solved(K, wanted)
    for row, force in zip(Y, forces, strict=True):
        z = z + row * force
    return M.outward(z / M.D)


def dependent_rates(
    tape: Tape, subject: Subject, independent: Sequence[int], others: Sequence[int]
) -> tuple[Scalars, Scalars]:
    """Z, (n, r), of q̇ = Z ẏ, and the matrix B, (n, m), with Ż = B Z.

    By Cramer's rule, which gives short closed forms for few constraints and needs no pivots: Z_d = −J_d⁻¹ J_y and
    B_d = −J_d⁻¹ J̇_c.

    Parameters
    ----------
    tape : Tape
    subject : Subject
        Its places are those of n − r independent constraints.
    independent, others : sequences of int
        The r freedoms y, and those that they determine.
    """
    J, J_dot = _constraints(tape, subject)
    adjugate, determinant = _adjugate(J[:, others])
    Z = np.full((subject.nv, len(independent)), 0.0, dtype=object)
    B = np.full((subject.nv, subject.nv), 0.0, dtype=object)
    Z[independent, range(len(independent))] = 1.0
    Z[others] = -(adjugate @ J[:, independent]) / determinant
    B[others] = -(adjugate @ J_dot) / determinant
    return Z, B


def _adjugate(A: Scalars) -> tuple[Scalars, Scalar]:
    """adj A and det A, A adj A = det A, by expansion along the first rows, each minor once."""
    n = len(A)
    known: dict[tuple[tuple[int, ...], tuple[int, ...]], Scalar] = {}

    def minor(rows: tuple[int, ...], columns: tuple[int, ...]) -> Scalar:
        if not rows:
            return 1.0
        if (rows, columns) not in known:
            value: Scalar = 0.0
            for k, column in enumerate(columns):
                value = value + (-1.0) ** k * (A[rows[0], column] * minor(rows[1:], columns[:k] + columns[k + 1 :]))
            known[rows, columns] = value
        return known[rows, columns]

    everything = tuple(range(n))
    without = [everything[:k] + everything[k + 1 :] for k in everything]
    cofactors = [(-1.0) ** (i + j) * minor(without[i], without[j]) for j in everything for i in everything]
    adjugate: Scalars = np.array(cofactors, dtype=object).reshape(n, n)
    return adjugate, minor(everything, everything)


def _solved(K: Scalars, b: Scalars) -> Scalars:
    """The solution x of K x = b for a symmetric positive definite K, by K = L D Lᵀ; K is overwritten."""
    n, x = len(b), b.copy()
    for k in range(n):
        diagonal = K[k, k]
        for j in range(k):
            K[k, k] = K[k, k] - K[k, j] * (K[k, j] * K[j, j])
        exceeds(K[k, k], REDUNDANT**2 * diagonal)  # records the assumption, which some state fulfils
        for i in range(k + 1, n):
            for j in range(k):
                K[i, k] = K[i, k] - K[i, j] * (K[k, j] * K[j, j])
            K[i, k] = K[i, k] / K[k, k]
    for k in range(n):
        for j in range(k):
            x[k] = x[k] - K[k, j] * x[j]
    x /= K.diagonal()
    for k in reversed(range(n)):
        for i in range(k + 1, n):
            x[k] = x[k] - K[i, k] * x[i]
    return x
