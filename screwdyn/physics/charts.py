"""How coordinates enter the rows of a table where they are not those of the rows: group joints.

A group joint (docs/mathematics.md §7) of k freedoms is k rows. The chart is re-centred at the present pose: the home of
the first row is multiplied by the joint's pose g(q), and the coordinates of all its rows are 0. Time derivatives have
an additional term, because the chart moves: with D(ν)_mk = Σ_{l>k} c^m_lk ν_l, where [S_l, S_k] = Σ_m c^m_lk S_m,

    C = C_rows + M D,   J̇ = J̇_rows + J D,   ID(q, ν, ν̇) = ID_rows(ν, ν̇ + D ν),   FD = FD_rows − D ν.
"""

import itertools
import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from screwdyn.core.types import Array
from screwdyn.mechanism.chart import Chart, check_lengths, structure_constants
from screwdyn.mechanism.joint import Joint, pose_at, twists_at
from screwdyn.screws import screw
from screwdyn.screws.screw_system import whole_turns

from . import link_steps as steps
from .couplings import COUPLING, couplings_of
from .link_steps import Matrix, Scalar, Vector, add, cross, scale
from .placement import Placement
from .table import Table, home, renamed, store

# Added to θ², which it does not change unless θ < 1e-22: the formulas of ``integrate`` divide by θ and by θ².
TINY = 1e-60
# Columns of ``Charts.groups``.
ROW, POSITION, ORIENTATION, TRANSLATIONS, GROUP = 0, 1, 2, 3, 4
# Joints of one kind for which their numbers one by one are faster than arrays of them.
FEW = 4
# A step in rad and m below which the search for positions ends, and the largest number of steps.
_STEP, _MOST_STEPS = 1e-14, 100


class Charts(NamedTuple):
    """How the coordinates of a tree with group joints or couplings enter the rows of its table.

    ``where`` has the index in q of each row's coordinate, or of the one that it follows; −1 for rows of a group joint,
    whose coordinates are 0. ``groups`` has for each group joint its first row, its first position, the number of
    positions of its orientation (4: a unit quaternion, scalar last; 1: an angle), and the number of its translations.
    """

    where: Any  # (n,) int64
    groups: Any  # (G, 4) int64
    terms: Any  # (T, 4): m, k, l, c of every term c ν_l of D(ν)_mk; m, k and l are rows
    couplings: Any  # (n, 3), of all rows if some follow others; otherwise (0, 3)

    @property
    def coupled(self) -> bool:
        """Whether there are couplings."""
        return len(self.couplings) > 0


def unit_quaternions(groups: Table, q: Table, nq: int, count: int) -> bool:
    """Whether the quaternions in some states have length 1, to ``LENGTH_TOLERANCE``."""
    for g in range(groups.shape[0]):
        if int(groups[g, ORIENTATION]) == 4:
            for b in range(count):
                at = b * nq + int(groups[g, POSITION])
                square = q[at] * q[at] + q[at + 1] * q[at + 1] + q[at + 2] * q[at + 2] + q[at + 3] * q[at + 3]
                if not abs(square - 1.0) < 2.0 * screw.LENGTH_TOLERANCE:
                    return False
    return True


def rotation_about_z(angle: Scalar) -> Matrix:
    """Matrix of a rotation about z."""
    s, c = steps.sincos(angle)
    return (c, -s, 0.0, s, c, 0.0, 0.0, 0.0, 1.0)


def store_position(table: Table, row: int, p: Vector, moved: Table) -> None:
    """Write the origin of a row's frame after a translation p in its frame at home."""
    T = home(table, row)
    store(moved, row, add(T.p, steps.rotate(T.R, p)), 9)


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
        three = int(groups[g, TRANSLATIONS]) == 3
        # The z axis of the first row's frame is the first axis of rotation: of the chart's axes x, or z of an angle.
        if int(groups[g, ORIENTATION]) == 4:
            x_, y_, z_ = renamed((q[at], q[at + 1], q[at + 2]))
            store(moved, row, steps.multiply(R, screw.rotation_entries(x_, y_, z_, q[at + 3])))
            if three:
                store_position(table, row, renamed((q[at + 4], q[at + 5], q[at + 6])), moved)
        else:
            store(moved, row, steps.multiply(R, rotation_about_z(q[at])))
            store_position(table, row, (q[at + 1], q[at + 2], q[at + 3] if three else 0.0), moved)


def drift(terms: Table, v: Table, u: Table, a: Table) -> None:
    """a += D(ν) u for rates u, usually ν: the term of the moving chart in the accelerations of the rows."""
    for t in range(terms.shape[0]):
        m, k, l = int(terms[t, 0]), int(terms[t, 1]), int(terms[t, 2])
        a[m] += terms[t, 3] * (v[l] * u[k])


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


def add_transposed_drift(terms: Table, v: Table, p: Table, rate: Table) -> None:
    """rate += D(ν)ᵀ p for the momenta p of the rows."""
    for t in range(terms.shape[0]):
        m, k, l = int(terms[t, 0]), int(terms[t, 1]), int(terms[t, 2])
        rate[k] += terms[t, 3] * v[l] * p[m]


def add_transposed_drift_of_rows(terms: Table, v: Table, P: Table, rate: Table) -> None:
    """rate += D(ν)ᵀ P for a matrix P with a row for each row of the table."""
    for t in range(terms.shape[0]):
        m, k, l = int(terms[t, 0]), int(terms[t, 1]), int(terms[t, 2])
        c = terms[t, 3] * v[l]
        for i in range(P.shape[1]):
            rate[k, i] += c * P[m, i]


def orientation(turns: int, q: Table, at: int) -> Matrix:
    """The orientation of a group joint in its own axes, from its coordinates: a quaternion, or an angle about z."""
    if turns == 4:
        return screw.rotation_entries(q[at], q[at + 1], q[at + 2], q[at + 3])
    return rotation_about_z(q[at])


def velocities(turns: int, slides: int, v: Table, row: int) -> tuple[Vector, Vector]:
    """Angular and linear quasi-velocity of a group joint in its own axes."""
    w = (v[row], v[row + 1], v[row + 2]) if turns == 4 else (0.0, 0.0, v[row])
    first = row + 3 if turns == 4 else row + 1
    return w, (v[first], v[first + 1], v[first + 2] if slides == 3 else 0.0) if slides else (0.0, 0.0, 0.0)


def position_rate(where: Table, groups: Table, q: Table, v: Table, rate: Table) -> None:
    """dq/dt of quasi-velocities ν, (nq,): ½ q∘(ω, 0) for a quaternion, R v for a position."""
    for i in range(where.shape[0]):
        k = int(where[i])
        if k >= 0:
            rate[k] = v[i]
    for g in range(groups.shape[0]):
        at, turns, slides = int(groups[g, POSITION]), int(groups[g, ORIENTATION]), int(groups[g, TRANSLATIONS])
        w, u = velocities(turns, slides, v, int(groups[g, ROW]))
        turn = screw.rate_entries(q[at], q[at + 1], q[at + 2], q[at + 3], *w) if turns == 4 else w[2:]
        travel = steps.rotate(orientation(turns, q, at), u) if slides else u
        for i in range(turns):
            rate[at + i] = turn[i]
        for i in range(slides):
            rate[at + turns + i] = travel[i]


def normalize(groups: Table, q: Table) -> None:
    """Scale the quaternions in q to length 1."""
    for g in range(groups.shape[0]):
        if int(groups[g, ORIENTATION]) == 4:
            at = int(groups[g, POSITION])
            x, y, z, w = q[at], q[at + 1], q[at + 2], q[at + 3]
            length = steps.square_root(x * x + y * y + z * z + w * w)
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
        at, turns, slides = int(groups[g, POSITION]), int(groups[g, ORIENTATION]), int(groups[g, TRANSLATIONS])
        w, u = velocities(turns, slides, v, int(groups[g, ROW]))
        square = steps.dot(w, w) + TINY
        size = steps.square_root(square)
        s, c = steps.sincos(0.5 * size)
        s = s / size
        if turns == 4:
            turn = screw.product_entries(q[at], q[at + 1], q[at + 2], q[at + 3], s * w[0], s * w[1], s * w[2], c)
        else:
            turn = (q[at] + w[2],)
        for i in range(turns):
            reached[at + i] = turn[i]
        if slides:
            across = cross(w, u)
            further = scale((1.0 - 2.0 * s * c) / square, cross(w, across))
            travel = steps.rotate(orientation(turns, q, at), add(u, add(scale(2.0 * s * s, across), further)))
            for i in range(slides):
                reached[at + turns + i] = q[at + turns + i] + travel[i]


# Steps in which free bodies keep the direction of their velocity, whose components turn with their axes.


def add_turn(groups: Any, v: Any, a: Any) -> None:
    """a += ω × u: quasi-accelerations of group joints in axes that do not turn."""
    for row, _, turns, slides in groups.tolist():
        w, u = velocities(turns, slides, v, row)
        first = row + (3 if turns == 4 else 1)
        for i, x in enumerate(cross(w, u)[:slides]):
            a[first + i] = a[first + i] + x


def move_straight(where: Any, groups: Any, q: Any, v: Any, dt: Any, reached: Any) -> None:
    """The positions reached by moving at ν for some time, on straight lines; ν is then in the axes there."""
    turning = v * dt
    for row, _, turns, slides in groups.tolist():
        first = row + (3 if turns == 4 else 1)
        turning[first : first + slides] = 0.0
    integrate(where, groups, q, turning, reached)
    normalize(groups, reached)
    for row, at, turns, slides in groups.tolist():
        u = steps.rotate(orientation(turns, q, at), velocities(turns, slides, v, row)[1])
        after, first = steps.rotate_back(orientation(turns, reached, at), u), row + (3 if turns == 4 else 1)
        for i in range(slides):
            reached[at + turns + i] = reached[at + turns + i] + u[i] * dt
            v[first + i] = after[i]


_ORDINARY = Charts(np.zeros(0, np.int64), np.zeros((0, GROUP), np.int64), np.zeros((0, 4)), np.zeros((0, COUPLING)))


def charts_of(former: Charts | None, row: int, position: int, new: Sequence[Placement], coupled: bool) -> Charts | None:
    """Charts of a former model before a row and position, and of later links; all are new if they are ``coupled``."""
    new_where: list[int] = []
    if former is None:
        if not coupled and not any([at.joint is not None and at.joint.chart is not None for at in new]):
            return None
        former, new_where = _ORDINARY, [*range(row)]
    where, groups, terms = former.where[:row], former.groups, former.terms
    if len(groups) and groups[-1, ROW] >= row:  # a group joint has been detached
        groups, terms = (x[: bisect_left(x[:, ROW].tolist(), row)] for x in (groups, terms))
    new_groups: list[list[int]] = []
    new_terms: list[tuple[float, ...]] = []
    for at in new:
        joint = at.joint
        if joint is None:
            continue
        if joint.chart is None:
            new_where += range(position, position + len(at.freedoms))
        else:
            new_where += [-1] * joint.nv
            kind = joint.chart.orientation, joint.chart.translations
            new_groups.append([row, position, *kind])
            new_terms += [(row + m, row + k, row + l, c) for m, k, l, c in structure_constants(*kind)]
        row, position = row + len(at.freedoms), position + joint.nq
    where, groups, terms = _joined(where, new_where), _joined(groups, new_groups), _joined(terms, new_terms)
    if coupled:
        return Charts(where, groups, terms, couplings_of(where, new))
    return Charts(where, groups, terms, _ORDINARY.couplings) if len(groups) else None


def _joined(rows: Array, further: list[Any]) -> Array:
    """An array with further rows."""
    if not further:
        return rows
    return np.concatenate([rows, further]) if len(rows) else np.array(further, rows.dtype)


_ANYWHERE = (-np.pi, np.pi)


class ConfigurationSpace:
    """Functions of positions q (…, nq) and rates ν (…, nv) of some joints; at ``neutral``, (nq,), links are at home."""

    def __init__(self, joints: Mapping[str, Joint]) -> None:
        self.neutral = np.array([*itertools.chain.from_iterable(joint.neutral for joint in joints.values())])
        limits = [joint.limits or _ANYWHERE for joint in joints.values() for _ in range(joint.nq)]
        self._range = np.array([x if np.isfinite(x).all() else _ANYWHERE for x in limits]).reshape(-1, 2).T
        ordinary: list[tuple[int, int]] = []
        groups: dict[str, list[tuple[str, Chart, int, int]]] = {}
        at_q = at_v = 0
        for name, joint in joints.items():
            if joint.chart is None:
                ordinary += [(at_q + k, at_v + k) for k in range(joint.nv)]
            else:
                groups.setdefault(joint.chart.kind, []).append((name, joint.chart, at_q, at_v))
            at_q, at_v = at_q + joint.nq, at_v + joint.nv
        self.nq, self.nv = at_q, at_v
        self._q, self._v = np.array(ordinary, dtype=np.intp).reshape(-1, 2).T
        # All joints of one kind together, by the functions of one chart, which do not depend on its axes.
        self._groups, self._turning, quaternions = [], list[str](), list[int]()
        for found in groups.values():
            names, (chart, *_), qs, vs = zip(*found, strict=True)
            group = np.array([[0, 0, chart.orientation, chart.translations]])
            at_qs, at_vs = np.add.outer(qs, np.arange(chart.nq)), np.add.outer(vs, np.arange(chart.nv))
            self._groups.append((chart, group, at_qs, at_vs))
            if chart.orientation == 4:
                self._turning += names
                quaternions += qs
        self._quaternions = np.add.outer(np.array(quaternions, dtype=np.intp), np.arange(4))

    def integrate(self, q: Array, v: Array) -> Array:
        """The configuration reached from q by moving at v for unit time, (…, nq)."""
        reached = np.empty_like(q)
        reached[..., self._q] = q[..., self._q] + v[..., self._v]
        self._by_entries(integrate, q, v, reached)
        return self.normalized(reached)

    def difference(self, q0: Array, q1: Array) -> Array:
        """The v, (…, nv), with which ``integrate(q0, v)`` is the configuration q1."""
        v = np.empty_like(q1, shape=(*q0.shape[:-1], self.nv))
        v[..., self._v] = q1[..., self._q] - q0[..., self._q]
        for chart, _, at_q, at_v in self._groups:
            v[..., at_v] = chart.difference(q0[..., at_q], q1[..., at_q])
        return v

    def rate(self, q: Array, v: Array) -> Array:
        """dq/dt, (…, nq)."""
        rate = np.empty_like(q)
        if len(self._q):
            rate[..., self._q] = v[..., self._v]
        self._by_entries(position_rate, q, v, rate)
        return rate

    def _by_entries(self, function: Callable[..., None], q: Array, v: Array, out: Array) -> None:
        """Write what a function above makes of the group joints of a kind, with arrays over joints and states."""
        for chart, group, at_q, at_v in self._groups:
            if q.ndim == 1 and len(at_q) <= FEW:
                for at, own in zip(at_q[:, 0].tolist(), at_v[:, 0].tolist(), strict=True):
                    numbers, end = [0.0] * chart.nq, at + chart.nq
                    function(_ORDINARY.where, group, q[at:end].tolist(), v[own : own + chart.nv].tolist(), numbers)
                    out[at:end] = numbers
                continue
            entries = q.T[at_q.T]
            made = np.empty_like(entries)
            function(_ORDINARY.where, group, entries, v.T[at_v.T], made)
            out.T[at_q.T] = made

    def normalized(self, q: Array) -> Array:
        """A copy of q, (…, nq), with all quaternions scaled to length 1; q itself if there are none."""
        if self._turning:
            q = q.copy()
            if q.ndim == 1 and len(self._turning) <= FEW:
                for at in self._quaternions[:, 0].tolist():
                    turn = q[at : at + 4]
                    turn /= math.sqrt(turn @ turn)
                return q
            turns = q[..., self._quaternions]
            q[..., self._quaternions] = turns / np.sqrt((turns * turns).sum(axis=-1, keepdims=True))
        return q

    def random(self, rng: np.random.Generator) -> Array:
        """Each coordinate uniform within its joint's limits, or within ±π; orientations uniform over all, (nq,)."""
        q = np.asarray(rng.uniform(*self._range))
        turns = rng.normal(size=self._quaternions.shape)
        q[self._quaternions] = turns / np.linalg.norm(turns, axis=-1, keepdims=True)
        return q

    def check(self, what: str, q: Array) -> None:
        """Check that all quaternions have length 1, to 1e-3; ShapeError names the joint and the length if not."""
        if self._turning:
            check_lengths(what, self._turning, q[..., self._quaternions])


def screws_at(joint: Joint, q: Array) -> Array:
    """S, (6, nv): the twist of the link relative to its parent is S ν at positions q, in the link's own frame."""
    return twists_at(joint.screws, q) if joint.chart is None else joint.screws


def positions_near(joint: Joint, T: Array) -> tuple[Array, Array]:
    """The positions at which a joint's pose relative to home is nearest to T, and the twist, (6,), from there to T."""
    space = ConfigurationSpace({"": joint})
    q = space.integrate(space.neutral, np.full(joint.nv, whole_turns(joint.screws, T)))
    for _ in range(_MOST_STEPS):
        gap = screw.log_of(screw.inverse_of(pose_at(joint, q)) @ T)
        step = np.asarray(np.linalg.lstsq(screws_at(joint, q), gap)[0], dtype=np.float64)
        if np.abs(step).max(initial=0.0) < _STEP * (1 + np.abs(q).max(initial=0.0)):
            break
        q = space.integrate(q, step)
    return q, gap
