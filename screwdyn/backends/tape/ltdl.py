"""LTDL factorisation of the mass matrix on a tape, and forward dynamics by it: M q̈ = τ − C q̇ − g.

M = Lᵀ D L, where without couplings an entry of L is zero if neither of its joints carries the other (R. Featherstone,
*Rigid Body Dynamics Algorithms*, 2008, §6.5). With zeros folded, this takes half of the operations of the
articulated-body algorithm for six joints in a row, and also fewer for branched trees of tens of freedoms; it takes as
many for a dozen joints in a row, and more for longer chains.
"""

from typing import NamedTuple

from screwdyn.backends.tape.tape import Scalar, Tape
from screwdyn.backends.tape.trace import Scalars, Subject, Undetermined, record
from screwdyn.physics.base_parameters import base_parameters
from screwdyn.physics.link_steps import pivot_rounding
from screwdyn.physics.spatial import add, dot, exceeds, scale
from screwdyn.physics.table import FIRST, INERTIA, MASS, SLIDE, home, joint_screw, parent, path_of

__all__ = ["Factors", "factors", "favoured", "forward_dynamics"]

# Pivots below this multiple of their rounding are left to the articulated-body algorithm, which keeps more digits.
_STRICTER = 12
# Pivots of a tree with couplings below this fraction of their diagonal entry are left to the default kernel.
_ROUNDING = 1e-13
# Sum of the squares of the depths of the rows, per joint, at which both algorithms take about as long.
_EVEN = 75


class Factors(NamedTuple):
    """M = Lᵀ D L.

    Attributes
    ----------
    above : list of lists of int
        For each row the rows that carry it, nearest first: the columns in which its row of L is not zero.
    L : (n, n) array
        Valid below the diagonal only; the ones on the diagonal are not stored.
    D : (n,) array
    """

    above: list[list[int]]
    L: Scalars
    D: Scalars

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


def factors(tape: Tape, subject: Subject) -> Factors:
    """Factors of M(q) for ``q`` on the tape.

    The tape records the assumption that each pivot exceeds its rounding. It is stricter than the condition of
    ``recursions.forward_dynamics``: the pivot is compared with a bound of the carried inertia for all angles of the
    joints beyond (:func:`_carried`).

    Parameters
    ----------
    tape : Tape
    subject : Subject

    Raises
    ------
    Undetermined
        If some joint feels no inertia in any state.
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
    return Factors(above, M, M.diagonal())


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
