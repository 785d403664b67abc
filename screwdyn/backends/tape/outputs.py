"""A quantity on a tape with as few operations as possible: forward dynamics by factors of M, also of closed loops."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from screwdyn.backends.tape.tape import Scalar, Tape
from screwdyn.backends.tape.trace import Scalars, Subject, Undetermined, record
from screwdyn.physics.link_steps import add, dot, exceeds, pivot_rounding, scale
from screwdyn.physics.quantities import CATALOGUE
from screwdyn.physics.recursions.loops import REDUNDANT
from screwdyn.physics.reductions import base_parameters
from screwdyn.physics.table import FIRST, INERTIA, MASS, PARENT, SLIDE, home, joint_screw, parent, path_of

__all__ = ["LTDL", "dependent_rates", "factors", "loop_dynamics", "outputs"]

# Pivots below this multiple of their rounding are left to the articulated-body algorithm, which keeps more digits.
_STRICTER = 12
# Pivots of a tree with couplings below this fraction of their diagonal entry are left to the default kernel.
_ROUNDING = 1e-13
# Sum of the squares of the depths of the rows, per joint, at which both algorithms take about as long.
_EVEN = 75


class LTDL(NamedTuple):
    """M = Lᵀ D L."""

    # For each row the rows that carry it, nearest first: the columns in which its row of L is not zero.
    above: list[list[int]]
    L: Scalars  # (n, n), valid below the diagonal only; the ones on the diagonal are not stored
    D: Scalars  # (n,)

    def solve(self, b: Scalars) -> Scalars:
        """The solution x of M x = b, (n,)."""
        return self.outward(self.inward(b) / self.D)

    def inward(self, b: Scalars) -> Scalars:
        """L⁻ᵀ b, (n,)."""
        x = b.copy()
        for k in range(len(x) - 1, -1, -1):
            for i in self.above[k]:
                x[i] = x[i] - self.L[k, i] * x[k]
        return x

    def outward(self, b: Scalars) -> Scalars:
        """L⁻¹ b, (n,)."""
        x = b.copy()
        for k in range(len(x)):
            for i in self.above[k]:
                x[k] = x[k] - self.L[k, i] * x[i]
        return x


def favoured(subject: Subject) -> bool:
    """Whether forward dynamics takes less time by factors than by articulated bodies.

    The time to factor M is proportional to the sum of the squares of the depths, that of articulated bodies to the
    number of joints. With couplings only M is available.
    """
    rows = subject.table[:-1]
    squares = sum(len(path_of(subject.table, k)) ** 2 for k in range(len(rows)))
    return subject.couplings is not None or squares <= _EVEN * len({int(row[FIRST]) for row in rows})


def factors(tape: Tape, subject: Subject) -> LTDL:
    """LTDL of M(q) for ``q`` on the tape.

    The tape records the assumption that each pivot exceeds its rounding. It is stricter than the condition of
    ``recursions.forward_dynamics``: the pivot is compared with a bound of the carried inertia for all angles of the
    joints beyond (:func:`_carried`).
    """
    table, x = subject.rows(tape)
    coupled = subject.couplings is not None
    above = [list(range(k))[::-1] if coupled else path_of(table, k)[1:] for k in range(subject.nv)]
    (M,) = record(tape, "mass_matrix", subject._replace(table=base_parameters(subject.table)))
    if coupled:
        least = [_ROUNDING * M[k, k] for k in range(subject.nv)]
    else:
        carried = enumerate(_carried(table, x))
        least = [_STRICTER * pivot_rounding(2 * spread, m, joint_screw(table, k)) for k, (m, spread) in carried]
    for k in reversed(range(subject.nv)):
        if not exceeds(M[k, k], least[k]):
            raise Undetermined("forward_dynamics", k + 1)
        shares = [M[k, i] / M[k, k] for i in above[k]]
        for i, a in zip(above[k], shares, strict=True):
            for j in above[i]:
                M[i, j] = M[i, j] - a * M[k, j]
            M[i, i] = M[i, i] - a * M[k, i]
        M[k, above[k]] = shares
    return LTDL(above, M, M.diagonal())


def forward_dynamics(tape: Tape, subject: Subject) -> Scalars:
    """Accelerations, (n,), from ``q``, ``qd`` and ``tau`` on the tape; parameters and errors as for :func:`factors`."""
    (bias,) = record(tape, "bias_force", subject._replace(table=base_parameters(subject.table)))
    return factors(tape, subject).solve(subject.inputs(tape, "tau") - bias)


def _carried(table: Scalars, x: Scalars) -> list[tuple[Scalar, Scalar]]:
    """The mass that each joint carries, and a bound of its ∫ r² dm about the row's origin for all angles beyond.

    |r| is at most the sum of |r| in the child's frame and the distance of the child's origin, and
    (a + b)² ≤ (1 + 1/n) a² + (1 + n) b². The child's origin is that of the present q of prismatic joints and charts.
    """
    n = len(x)
    carried = [(row[MASS], (row[INERTIA] + row[INERTIA + 3] + row[INERTIA + 5]) / 2) for row in table[:-1]]
    for k in range(n - 1, -1, -1):
        above, (mass, spread) = parent(table, k), carried[k]
        if above >= 0:
            R, p = home(table, k)
            origin = add(p, scale(table[k, SLIDE] * x[k], (R[2], R[5], R[8])))
            m, own = carried[above]
            carried[above] = m + mass, own + (1 + 1 / n) * spread + (1 + n) * (mass * dot(origin, origin))
    return carried


# Closed loops


def loop_dynamics(tape: Tape, subject: Subject) -> Scalars:
    """Accelerations, (n,), from ``q``, ``qd`` and ``tau`` on the tape.

    The tape records the assumptions that M is regular, and that no constraint follows from those before it.
    """
    alone = subject._replace(table=base_parameters(subject.table), places=None)
    (bias,) = record(tape, "bias_force", alone)
    M = factors(tape, subject._replace(places=None))
    (J,), (J_dot,) = (record(tape, f"constraint_jacobian{end}", subject) for end in ("", "_dot"))
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
    """
    (J,), (J_dot,) = (record(tape, f"constraint_jacobian{end}", subject) for end in ("", "_dot"))
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


def outputs(tape: Tape, quantity: str, subject: Subject, extra: Scalars | float = 0.0) -> list[Scalars]:
    """The results of a quantity on a tape, from base parameters if the catalogue allows it.

    Forward dynamics is by LTDL factors or by articulated bodies, whichever takes less time. With places it is that of
    closed loops, whose independent constraints are at the places.
    """
    solves = quantity == "forward_dynamics"
    if solves and subject.places is not None and len(subject.places):
        return [loop_dynamics(tape, subject)]
    regrouped = CATALOGUE[quantity].base_parameters and not solves
    table = base_parameters(subject.table) if regrouped else subject.table.copy()
    table[:, MASS:PARENT] += extra
    subject = subject._replace(table=table)
    return [forward_dynamics(tape, subject)] if solves and favoured(subject) else record(tape, quantity, subject)
