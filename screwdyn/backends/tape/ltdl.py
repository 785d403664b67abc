"""LTDL factorisation of the mass matrix on a tape, and forward dynamics by it: M q̈ = τ − C q̇ − g.

M = Lᵀ D L, with L zero wherever neither of two joints carries the other (R. Featherstone, *Rigid Body Dynamics
Algorithms*, 2008, §6.5). With all zeros folded, this takes two thirds of the operations of articulated bodies for six
joints in a row, and fewer on branched trees of tens of freedoms; more for a dozen or more joints in a row.
"""

from collections.abc import Sequence
from typing import NamedTuple

from screwdyn.backends.tape.tape import Scalar, Tape
from screwdyn.backends.tape.trace import Scalars, Subject, inputs, record
from screwdyn.physics.base_parameters import base_parameters
from screwdyn.physics.link_steps import carries_inertia
from screwdyn.physics.spatial import ArticulatedInertia, add, dot, scale
from screwdyn.physics.table import INERTIA, MASS, PARENT, SLIDE, joint_screw, load3

__all__ = ["Factors", "factors", "forward_dynamics"]


class Factors(NamedTuple):
    """M = Lᵀ D L.

    Attributes
    ----------
    above : list of lists of int
        The rows that carry each row, nearest first: the columns in which its row of L is not zero.
    L : (n, n) array
        Valid below the diagonal only; the ones on the diagonal are not stored.
    D : (n,) array
    """

    above: list[list[int]]
    L: Scalars
    D: Scalars

    def solve(self, b: Scalars) -> Scalars:
        """The solution x of M x = b, (n,)."""
        x = b.copy()
        for k in range(len(x) - 1, -1, -1):
            for i in self.above[k]:
                x[i] = x[i] - self.L[k, i] * x[k]
        x /= self.D
        for k in range(len(x)):
            for i in self.above[k]:
                x[k] = x[k] - self.L[k, i] * x[i]
        return x


def factors(tape: Tape, table: Scalars, armature: Sequence[Scalar] = ()) -> Factors | None:
    """Factors of M(q) for ``q`` on the tape; None if some joint never carries anything.

    ``armature`` is inertia that each joint has besides, felt by no other joint.
    The tape notes for every joint that what it carries is more than rounding. That is asked more strictly than in
    ``recursions.forward_dynamics``: of an inertia that no pose of what lies beyond the joint exceeds
    (:func:`_carried`).
    """
    n, q = len(table) - 1, inputs(tape, "q", range(len(table) - 1))
    parents = [int(k) for k in table[:-1, PARENT]]
    above = [_above(parents, k) for k in range(n)]
    (M,) = record(tape, "mass_matrix", Subject(base_parameters(table)))
    for k, own in enumerate(armature):
        M[k, k] = M[k, k] + own
    for k, (mass, spread) in reversed(list(enumerate(_carried(table, q)))):
        A, L = (2.0 * spread, 0.0, 0.0, 0.0, 0.0, 0.0), (mass, 0.0, 0.0, mass, 0.0, mass)
        bound = ArticulatedInertia(A, (0.0,) * 9, L)
        if not carries_inertia(bound, M[k, k], joint_screw(table, k)):
            return None
        shares = [M[k, i] / M[k, k] for i in above[k]]
        for i, a in zip(above[k], shares, strict=True):
            for j in above[i]:
                M[i, j] = M[i, j] - a * M[k, j]
            M[i, i] = M[i, i] - a * M[k, i]
        M[k, above[k]] = shares
    return Factors(above, M, M.diagonal())


def forward_dynamics(tape: Tape, table: Scalars, armature: Sequence[Scalar] = ()) -> Scalars | None:
    """Accelerations, (n,), of ``q``, ``qd`` and ``tau`` on the tape; None, and ``armature``, as in :func:`factors`."""
    found = factors(tape, table, armature)
    if found is None:
        return None
    (bias,) = record(tape, "bias_force", Subject(base_parameters(table)))
    return found.solve(inputs(tape, "tau", range(len(table) - 1)) - bias)


def _carried(table: Scalars, q: Scalars) -> list[tuple[Scalar, Scalar]]:
    """The mass beyond every joint, and a bound of ∫ r² dm about the row's origin that holds however it may turn.

    r is at most as long as r of the child and the child's origin together, and (a + b)² ≤ (1 + 1/n) a² + (1 + n) b².
    """
    n = len(table) - 1
    carried = [(row[MASS], (row[INERTIA] + row[INERTIA + 3] + row[INERTIA + 5]) / 2) for row in table[:-1]]
    for k in range(n - 1, -1, -1):
        parent, (mass, spread) = int(table[k, PARENT]), carried[k]
        if parent >= 0:
            origin = add(load3(table, k, 9), scale(table[k, SLIDE] * q[k], (table[k, 2], table[k, 5], table[k, 8])))
            m, own = carried[parent]
            carried[parent] = m + mass, own + (1 + 1 / n) * spread + (1 + n) * (mass * dot(origin, origin))
    return carried


def _above(parents: Sequence[int], k: int) -> list[int]:
    """The rows that carry row k, nearest first."""
    rows = []
    while (k := parents[k]) >= 0:
        rows.append(k)
    return rows
