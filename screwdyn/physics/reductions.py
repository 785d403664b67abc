"""Tables with fewer numbers and the same dynamics: base parameters, aligned frames, moved zeros; idle motions.

docs/mathematics.md §4. What a motion cannot feel, it need not compute; and a motion that no inertia resists has no
acceleration.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from screwdyn.core import Array, expressions
from screwdyn.physics import link_steps as steps
from screwdyn.physics import table as rows
from screwdyn.physics.charts import recentre
from screwdyn.physics.couplings import follow
from screwdyn.physics.link_steps import ZERO, JointScrew, Matrix, Pose, RigidInertia, Scalar
from screwdyn.physics.placement import squared
from screwdyn.physics.table import ARMATURE, INERTIA, MASS, PARENT, SLIDE, TURN, Table, body, home, joint_screw, parent
from screwdyn.screws import screw

if TYPE_CHECKING:
    from screwdyn.physics.model import Model


# Rounding of a product of two rotations; of a difference, relative to its terms.
_ROUNDING, _OF_A_DIFFERENCE = 1e-15, 4e-15
# A slide is computed from components of the axis above this, so that it has as many digits as the home.
_LEAST = 0.1
# Random configurations that must agree; the sine of an angle between spaces, and a moment of inertia relative to the
# largest, that are rounding; the share of the largest rate from which a coordinate is named.
_CONFIGURATIONS, _ALIGNED, _SHARED, _NO_MOMENT, _NAMED = 3, 1e-9, 1e-9, 1e-14, 1e-6
_NONE = np.zeros((6, 0))


def base_parameters(table: Table) -> Table:
    """The table with base parameters in place of the inertial numbers; the numbers that are not needed are zero.

    M. Gautier and W. Khalil, "Direct calculation of minimum set of inertial parameters of serial robots", IEEE Trans.
    Robotics and Automation 6(3), 1990. Further reductions for parallel axes and for the direction of gravity are not
    made. Rows of group joints keep their inertia, because their charts are re-centred. The table is of floats or of
    traced scalars.
    """
    table = table.copy()
    n = len(table) - 1
    grouped = rows.grouped_rows(table)
    for i in range(n - 1, -1, -1):
        if i in grouped:
            continue
        (m, (_, _, hz), I), S = body(table, i), joint_screw(table, i)
        constant = (I[3], 0.0, 0.0, I[3], 0.0, 0.0) if S.turn else I
        moved = RigidInertia(0.0, ZERO, constant) if S.slide else RigidInertia(m, (0.0, 0.0, hz), constant)
        table[i, MASS:PARENT] -= [moved.m, *moved.h, *moved.I]
        if (k := parent(table, i)) >= 0:
            rows.add_to(table, k, steps.inertia_to_parent(home(table, i), moved), MASS)
    return table


def aligned_frames(table: Table) -> Table:
    """The table, of floats but for inertias, with frames turned about joints' axes, so that more entries are zero."""
    table = table.copy()
    n = len(table) - 1
    beyond: list[list[int]] = [[] for _ in range(n + 1)]
    for i in range(n):
        beyond[parent(table, i)].append(i)
    grouped = rows.grouped_rows(table)
    for i in range(n):
        own = [home(table, i).R] if parent(table, i) >= 0 else []
        axes = [home(table, k).R for k in beyond[i]]
        parallel = any(R[2] == R[5] == 0 for R in own + axes)
        turn = None if parallel or i in grouped else _turn(axes)
        if turn is not None:
            back = steps.transpose(turn)
            table[i, :9] = squared(steps.multiply(home(table, i).R, turn))
            rows.store(table, i, steps.inertia_to_parent(Pose(back, ZERO), body(table, i)), MASS)
            for k in beyond[i]:
                R, p = home(table, k)
                least = _ROUNDING * max(map(abs, p))
                turned = [x if abs(x) > least else 0.0 for x in steps.rotate(back, p)]
                table[k, :12] = [*squared(steps.multiply(back, R)), *turned]
    return table


def _turn(beyond: list[Matrix]) -> Matrix | None:
    """The turn about z after which all axes R z of joints beyond have no x or no y component; None if there is none."""
    across = [(R[2], R[5]) for R in beyond]
    skew = [(x, y) for x, y in across if x != 0 and y != 0]
    if not skew:
        return None
    x, y = skew[0]
    c, s = y / math.hypot(x, y), -x / math.hypot(x, y)
    if any(min(abs(c * x + s * y), abs(c * y - s * x)) > _ROUNDING for x, y in across):
        return None
    return (c, -s, 0.0, s, c, 0.0, 0.0, 0.0, 1.0)


def moved_zeros(table: Table) -> tuple[Table, Table]:
    """The table with homes T exp(−Ŝ c) that have more zeros, and the constants c, which are added to the coordinates.

    After a turn, a unit vector of the parent's frame is as near as possible to one of the joint's. A slide moves the
    origin to the parent's, or to an axis of the parent's frame, if the joint's axis meets it. Homes in which nothing is
    gained remain, and so do those of group joints. The table is of floats, except for inertias, or of expressions.
    """
    table = table.copy()
    n = len(table) - 1
    grouped = rows.grouped_rows(table)
    constants = np.full(n, 0.0, dtype=object)
    for i in range(n):
        if i not in grouped:
            constants[i], T = _moved(home(table, i), joint_screw(table, i))
            table[i, :12] = [*T.R, *T.p]
    return table, constants


def _moved(T: Pose, S: JointScrew) -> tuple[Scalar, Pose]:
    """The constant c of a joint, and its home T exp(−Ŝ c)."""
    if S.slide == 0:
        c, R = _turned(T.R)
        return c, Pose(R, T.p)
    if any(map(expressions.is_expression, (*T.R, *T.p, S.slide))):
        return 0.0, T
    axis = (T.R[2], T.R[5], T.R[8])
    if S.turn == 0:
        slides = [p / (S.slide * a) for p, a in zip(T.p, axis, strict=True) if abs(a) > _LEAST]
        choices = [(c, T.R) for c in (0.0, *slides)]
    else:
        c, R = _turned(T.R)
        choices = [(c + k * math.pi / 2, _quarter_turns(R, -k)) for k in range(-4, 5)]
    least, homes = _OF_A_DIFFERENCE * max(map(abs, T.p)), []
    for c, R in choices:
        x, y, z = (x if abs(x) > least else 0.0 for x in steps.subtract(T.p, steps.scale(S.slide * c, axis)))
        homes.append((c, Pose(R, (x, y, z))))
    # A zero is worth the addition of c, and none is worth a longer way.
    return min(homes, key=lambda choice: ((choice[0] != 0) - choice[1].p.count(0), abs(choice[0])))


def _turned(R: Matrix) -> tuple[Scalar, Matrix]:
    """The angle c about z and the rotation R Rz(−c), with a zero where the axis has its smallest component."""
    axis = (R[2], R[5], R[8])
    # Components that differ by rounding count as equal.
    sizes = [round(abs(float(a)), 12) if expressions.is_number(a) else 1.0 for a in axis]
    k = min(range(3), key=lambda k: (axis[k] != 0, sizes[k]))
    if R[3 * k] == 0 or R[3 * k + 1] == 0 or (axis[k] != 0 and any(map(expressions.is_expression, R))):
        return 0.0, R
    found = expressions.angle(R[3 * k], R[3 * k + 1])
    if found is None:
        return 0.0, R
    c, quarters = found
    # y is a unit vector of the parent's frame if that is perpendicular to the axis, or else as near to one as possible.
    unit = (int(k == 0), int(k == 1), int(k == 2))
    x, y = steps.cross(unit, axis), unit
    if axis[k] != 0:
        x = steps.scale(1 / math.hypot(*x), x)
        y = steps.cross(axis, x)
    return c, _quarter_turns((x[0], y[0], axis[0], x[1], y[1], axis[1], x[2], y[2], axis[2]), quarters)


def _quarter_turns(R: Matrix, times: int) -> Matrix:
    """R Rz(π/2)ᵏ."""
    for _ in range(times % 4):
        R = (R[1], -R[0], R[2], R[4], -R[3], R[5], R[7], -R[6], R[8])
    return R


def unresisted(model: Model) -> tuple[str, ...]:
    """The coordinates of a motion that costs no kinetic energy in any configuration, not only in one, as a gimbal's."""
    rng, found = np.random.default_rng(0), model.coordinates
    for _ in range(_CONFIGURATIONS):
        found = found and _found(model, rng)
    return found


def _found(model: Model, rng: np.random.Generator) -> tuple[str, ...]:
    """The coordinates of such a motion in a random configuration."""
    table, (parents, _) = model.table, rows.integers_of(model.table)
    n, masses = len(parents), np.abs(table[:-1, MASS])
    # Radii of gyration of the bodies of all rows about the origins of their frames, m; 0 without mass.
    traces = np.abs(table[:-1, [INERTIA, INERTIA + 3, INERTIA + 5]].sum(axis=1))
    own = np.sqrt(np.divide(traces, 2 * masses, out=np.zeros(n), where=masses != 0))
    extents = _extents(parents, own, np.linalg.norm(table[:-1, 9:12], axis=1))
    held, turns, columns = table[:-1, ARMATURE] != 0, table[:-1, TURN] != 0, model.columns
    W = np.eye(model.nv)[columns] * model.ratios[:, None] if model.coupled else None
    turns = np.array([turns[columns == k].any() for k in range(model.nv)])
    extents = np.array([extents[columns == k].max() for k in range(model.nv)])
    x = rng.uniform(0.3, 1.3, model.nv) * np.where(turns, 1.0, extents)
    if model.charts is not None:
        q, table, x = model.configurations.integrate(model.configurations.neutral, x), table.copy(), np.zeros(n)
        recentre(model.table, model.charts.where, model.charts.groups, q, table, x)
        follow(model.charts.couplings, x)
    origins = table[:-1, 9:12] + table[:-1, 2:9:3] * (table[:-1, SLIDE] * x)[:, None]
    extents = _extents(parents, own, np.linalg.norm(origins, axis=1))
    free = _free_of_bodies(model, extents)
    S = np.zeros((n, 6))
    S[:, 2], S[:, 5] = table[:-1, TURN], table[:-1, SLIDE] / extents
    sizes = np.linalg.norm(S, axis=1, keepdims=True)
    S /= sizes

    def to_parent(i: int) -> Array:
        """Ad of the pose of a row in its parent, with lengths in units of the extents of both."""
        length = extents[parents[i]]
        R, p = steps.joint_pose(home(table, i), joint_screw(table, i), x[i])
        X = screw.Ad_of(screw.pose(np.reshape(R, (3, 3)), np.array(p) / length))
        X[3:, 3:] *= extents[i] / length
        return X

    idle = []  # joints that move at no cost, while those beyond them move as they like
    for i in range(n - 1, -1, -1):
        F, k = free[i], parents[i]
        carries = k >= 0 and free[k].size > 0
        if not F.size and not carries:
            continue
        if not held[i]:
            beside = _beside(F, S[i])
            size = float(np.linalg.norm(beside))
            if size < _ALIGNED:
                idle.append(i)
            else:
                F = np.column_stack([F, beside / size])
        if carries:
            F = to_parent(i) @ _translations_first(F)
            free[k] = _common(free[k], np.linalg.qr(F / np.linalg.norm(F, axis=0))[0])
    if not idle:
        return ()
    # The motions: such a joint moves, and the joints beyond it keep the twists of their links free.
    motions = np.zeros((n, len(idle) if W is not None else 1))
    for rates, i in zip(motions.T, idle, strict=False):
        twists = {i: S[i]}
        rates[i] = 1.0
        for c in range(i + 1, n):
            if parents[c] in twists:
                V = np.linalg.solve(to_parent(c), twists[parents[c]])
                if not held[c] and c not in idle:
                    beside = _beside(free[c], S[c])
                    rates[c] = -(beside @ V) / (beside @ beside)
                twists[c] = V + rates[c] * S[c]
    moves = motions[:, 0]
    if W is not None:  # the freedoms move the rows at rates W v, which must be a sum of these motions
        W = W * sizes
        _, sines, Vt = np.linalg.svd(_beside(np.linalg.qr(motions)[0], W / np.linalg.norm(W, axis=0)))
        if sines[-1] > _SHARED:
            return ()
        moves = Vt[-1]
    moves = np.abs(moves)
    return tuple(model.coordinates[c] for c in np.flatnonzero(moves > _NAMED * moves.max()))


def _extents(parents: Array, own: Array, distances: Array) -> Array:
    """The largest distance of a row, or of one that it carries, from the row before, m, (n,)."""
    # That of its parent where there is none, or 1.
    found = own.copy()
    for i in range(len(own) - 1, -1, -1):
        if parents[i] >= 0:
            found[parents[i]] = max(found[parents[i]], found[i], distances[i])
    for i, k in enumerate(parents):
        found[i] = found[i] or (found[k] if k >= 0 else 1.0)
    return found


def _translations_first(F: Array) -> Array:
    """Another orthonormal basis of a space, whose translations come first and turn nothing, to the last digit."""
    _, sines, Vt = np.linalg.svd(F[:3])
    F = F @ Vt.T
    F[:3, np.count_nonzero(sines > _ALIGNED) :] = 0.0
    return F[:, ::-1]


def _free_of_bodies(model: Model, extents: Array) -> list[Array]:
    """For each row an orthonormal basis, (6, k), of the twists for which the inertia of its bodies is zero."""
    free = [np.eye(6)] * (len(model.table) - 1)
    for at in model.placements.values():
        row, inertia = model.index[at.coordinate], at.link.inertia
        if row < 0 or inertia is None or not free[row].size:
            continue
        twists = _NONE
        if at.link.lean:
            moments, axes = np.linalg.eigh(np.asarray(inertia.tensor, dtype=np.float64))
            turns = axes[:, np.abs(moments) <= _NO_MOMENT * np.abs(moments).max()]
            twists = np.vstack([turns, np.zeros_like(turns)])
            if not inertia.mass:
                twists = np.hstack([twists, np.eye(6)[:, 3:]])
            T = screw.pose(np.reshape(at.pose.R, (3, 3)), np.array(at.com, dtype=np.float64) / extents[row])
            twists = np.linalg.qr(screw.Ad_of(T) @ twists)[0]
        free[row] = _common(free[row], twists)
    return free


def _beside(F: Array, S: Array) -> Array:
    """The part of S that is orthogonal to a space, to the last digit."""
    beside = S - F @ (F.T @ S)
    return np.asarray(beside - F @ (F.T @ beside))


def _common(A: Array, B: Array) -> Array:
    """An orthonormal basis of what two spaces have in common, from such bases of each."""
    if not A.size or not B.size:
        return _NONE
    _, sines, Vt = np.linalg.svd(_beside(B, A))
    return np.asarray(A @ Vt[np.count_nonzero(sines > _ALIGNED) :].T)
