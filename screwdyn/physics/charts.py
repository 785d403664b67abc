"""How coordinates enter the rows of a table where they are not those of the rows: group joints and couplings.

A group joint (docs/mathematics.md §7) of k freedoms is k rows. The chart is re-centred at the present pose: the home of
the first row is multiplied by the joint's pose g(q), and the coordinates of all its rows are 0. Poses, Jacobians, M, g,
energies and momenta of the rows are then those of the joint. Time derivatives have an additional term, because the
chart moves with the joint: with D(ν)_mk = Σ_{l>k} c^m_lk ν_l, where [S_l, S_k] = Σ_m c^m_lk S_m,

    C = C_rows + M D,   J̇ = J̇_rows + J D,   ID(q, ν, ν̇) = ID_rows(ν, ν̇ + D ν),   FD = FD_rows − D ν.
"""

from typing import Any, NamedTuple

from screwdyn.screws.groups import LENGTH_TOLERANCE, product_entries, rate_entries, rotation_entries

from .spatial import Matrix, Scalar, Vector, add, cross, dot, multiply, rotate, scale, sincos, square_root
from .table import Table, home, renamed, store

__all__ = [
    "Charts",
    "add_drift_of_columns",
    "drift",
    "integrate",
    "normalize",
    "number_of_quaternions",
    "position_rate",
    "recentre",
    "subtract_drift",
    "unit_quaternions",
]

# Added to θ², which it does not change unless θ < 1e-22: the formulas of ``integrate`` divide by θ and by θ².
TINY = 1e-60
# Columns of ``Charts.groups``.
ROW, POSITION, ORIENTATION, TRANSLATIONS, GROUP = 0, 1, 2, 3, 4


class Charts(NamedTuple):
    """How the coordinates of a tree with group joints or couplings enter the rows of its table.

    Attributes
    ----------
    where : (n,) array of int64
        Index in q of each row's coordinate, or of the one that it follows; −1 for rows of a group joint, whose
        coordinates are 0.
    groups : (G, 4) array of int64
        For each group joint its first row, its first position, the number of positions of its orientation (4: a unit
        quaternion, scalar last; 1: an angle), and the number of its translations.
    terms : (T, 4) array
        m, k, l, c of every term c ν_l of D(ν)_mk; m, k and l are rows.
    couplings : (n, 3) array
        Of all rows, if some follow others; otherwise it has no rows. See ``couplings``.
    """

    where: Any
    groups: Any
    terms: Any
    couplings: Any

    @property
    def coupled(self) -> bool:
        """Whether there are couplings."""
        return len(self.couplings) > 0


def number_of_quaternions(groups: Table) -> int:
    """Number of quaternions, each of which has one more position than freedoms."""
    count = 0
    for g in range(groups.shape[0]):
        if int(groups[g, ORIENTATION]) == 4:
            count += 1
    return count


def unit_quaternions(groups: Table, q: Table, nq: int, count: int) -> bool:
    """Whether the quaternions in some states have length 1, to ``LENGTH_TOLERANCE``."""
    for g in range(groups.shape[0]):
        if int(groups[g, ORIENTATION]) == 4:
            for b in range(count):
                at = b * nq + int(groups[g, POSITION])
                square = q[at] * q[at] + q[at + 1] * q[at + 1] + q[at + 2] * q[at + 2] + q[at + 3] * q[at + 3]
                if not abs(square - 1.0) < 2.0 * LENGTH_TOLERANCE:
                    return False
    return True


def rotation_about_z(angle: Scalar) -> Matrix:
    """Matrix of a rotation about z."""
    s, c = sincos(angle)
    return (c, -s, 0.0, s, c, 0.0, 0.0, 0.0, 1.0)


def store_position(table: Table, row: int, p: Vector, moved: Table) -> None:
    """Write the origin of a row's frame after a translation p in its frame at home."""
    T = home(table, row)
    store(moved, row, add(T.p, rotate(T.R, p)), 9)


def recentre(table: Table, where: Table, groups: Table, q: Table, moved: Table, x: Table) -> None:
    """Re-centre the charts at q: write homes of group joints to ``moved``, a copy of the table; coordinates to x."""
    for i in range(table.shape[0] - 1):
        k = int(where[i])
        if k >= 0:
            x[i] = q[k]
        else:
            x[i] = 0.0
    for g in range(groups.shape[0]):
        row, at, R = int(groups[g, ROW]), int(groups[g, POSITION]), home(table, int(groups[g, ROW])).R
        # The z axis of the first row's frame is the joint's x axis, that of a planar joint its z axis.
        if int(groups[g, ORIENTATION]) == 4:
            x_, y_, z_ = renamed((q[at], q[at + 1], q[at + 2]))
            store(moved, row, multiply(R, rotation_entries(x_, y_, z_, q[at + 3])))
            if int(groups[g, TRANSLATIONS]) == 3:
                store_position(table, row, renamed((q[at + 4], q[at + 5], q[at + 6])), moved)
        else:
            store(moved, row, multiply(R, rotation_about_z(q[at])))
            store_position(table, row, (q[at + 1], q[at + 2], 0.0), moved)


def drift(terms: Table, v: Table, a: Table) -> None:
    """a += D(ν) ν: the term of the moving chart in the accelerations of the rows."""
    for t in range(terms.shape[0]):
        m, k, l = int(terms[t, 0]), int(terms[t, 1]), int(terms[t, 2])
        a[m] += terms[t, 3] * (v[l] * v[k])


def subtract_drift(terms: Table, v: Table, a: Table) -> None:
    """a −= D(ν) ν."""
    for t in range(terms.shape[0]):
        m, k, l = int(terms[t, 0]), int(terms[t, 1]), int(terms[t, 2])
        a[m] -= terms[t, 3] * (v[l] * v[k])


def add_drift_of_columns(terms: Table, v: Table, A: Table, rate: Table) -> None:
    """rate += A D(ν) for a matrix A with a column for each row of the table."""
    for t in range(terms.shape[0]):
        m, k, l = int(terms[t, 0]), int(terms[t, 1]), int(terms[t, 2])
        c = terms[t, 3] * v[l]
        for r in range(A.shape[0]):
            rate[r, k] += c * A[r, m]


def position_rate(where: Table, groups: Table, q: Table, v: Table, rate: Table) -> None:
    """dq/dt of quasi-velocities ν, (nq,): ½ q∘(ω, 0) for a quaternion, R v for a position."""
    for i in range(where.shape[0]):
        k = int(where[i])
        if k >= 0:
            rate[k] = v[i]
    for g in range(groups.shape[0]):
        row, at = int(groups[g, ROW]), int(groups[g, POSITION])
        turns, slides = int(groups[g, ORIENTATION]), int(groups[g, TRANSLATIONS])
        if turns == 4:
            x, y, z, w = q[at], q[at + 1], q[at + 2], q[at + 3]
            turn = rate_entries(x, y, z, w, v[row], v[row + 1], v[row + 2])
            for i in range(4):
                rate[at + i] = turn[i]
            if slides == 3:
                R = rotation_entries(x, y, z, w)
                u = rotate(R, (v[row + 3], v[row + 4], v[row + 5]))
                rate[at + 4] = u[0]
                rate[at + 5] = u[1]
                rate[at + 6] = u[2]
        else:
            rate[at] = v[row]
            if slides == 2:
                s, c = sincos(q[at])
                rate[at + 1] = c * v[row + 1] - s * v[row + 2]
                rate[at + 2] = s * v[row + 1] + c * v[row + 2]


def normalize(groups: Table, q: Table) -> None:
    """Scale the quaternions in q to length 1."""
    for g in range(groups.shape[0]):
        if int(groups[g, ORIENTATION]) == 4:
            at = int(groups[g, POSITION])
            x, y, z, w = q[at], q[at + 1], q[at + 2], q[at + 3]
            length = square_root(x * x + y * y + z * z + w * w)
            for i in range(4):
                q[at + i] = q[at + i] / length


def integrate(where: Table, groups: Table, q: Table, v: Table, reached: Table) -> None:
    """The positions reached from q by moving at ν for unit time, (nq,): those of g(q) exp(S ν).

    With ν = (ω, u) and θ = |ω|, exp(S ν) turns by the quaternion [sin(θ/2)/θ ω; cos(θ/2)] and moves by
    u + (1 − cos θ)/θ² ω×u + (1 − sin(θ)/θ)/θ² ω×(ω×u). Quaternions of the result have the length of those in q.
    """
    for i in range(where.shape[0]):
        k = int(where[i])
        if k >= 0:
            reached[k] = q[k] + v[i]
    for g in range(groups.shape[0]):
        row, at = int(groups[g, ROW]), int(groups[g, POSITION])
        turns, slides = int(groups[g, ORIENTATION]), int(groups[g, TRANSLATIONS])
        if turns == 4:
            w, first = (v[row], v[row + 1], v[row + 2]), row + 3
            R = rotation_entries(q[at], q[at + 1], q[at + 2], q[at + 3])
        else:
            w, first = (0.0, 0.0, v[row]), row + 1
            R = rotation_about_z(q[at])
        square = dot(w, w) + TINY
        size = square_root(square)
        s, c = sincos(0.5 * size)
        s = s / size
        if turns == 4:
            turn = product_entries(q[at], q[at + 1], q[at + 2], q[at + 3], s * w[0], s * w[1], s * w[2], c)
            for i in range(4):
                reached[at + i] = turn[i]
        else:
            reached[at] = q[at] + w[2]
        if slides:
            u = (v[first], v[first + 1], v[first + 2] if slides == 3 else 0.0)
            across = cross(w, u)
            further = scale((1.0 - 2.0 * s * c) / square, cross(w, across))
            travel = rotate(R, add(u, add(scale(2.0 * s * s, across), further)))
            for i in range(slides):
                reached[at + turns + i] = q[at + turns + i] + travel[i]
