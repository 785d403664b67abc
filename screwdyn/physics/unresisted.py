"""Motions that no inertia resists in any configuration: M is then singular by structure (docs/mathematics.md §4).

A body's inertia is zero for some twists: for a turn of a thin rod about its axis, for any turn of a point about itself,
for all twists of a massless link. From the tips inward, F_i holds the twists of row i that cost no kinetic energy while
the joints beyond it move as they like: those that are free for its own bodies and in F_c ⊕ span(S_c) for every child c,
or in F_c if the joint of c has an armature. M is singular if S_i lies in an F_i. Ranks are those of random
configurations; a singularity of a single configuration, such as a gimbal's, is none of these. The unit of length of the
twists of a row is the extent of what it carries, so that a tree may have parts of very different sizes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from screwdyn.core.types import Array
from screwdyn.physics.charts import recentre
from screwdyn.physics.couplings import COLUMN, RATIO, follow
from screwdyn.physics.link_steps import joint_pose
from screwdyn.physics.placement import Placement
from screwdyn.physics.table import ARMATURE, INERTIA, MASS, SLIDE, TURN, home, integers_of, joint_screw
from screwdyn.screws import screw

if TYPE_CHECKING:
    from screwdyn.physics.model import Model

__all__ = ["unresisted"]

# Random configurations that must agree; the sine of an angle between spaces, and a moment of inertia relative to the
# largest, that are rounding; the share of the largest rate from which a coordinate is named.
_CONFIGURATIONS, _ALIGNED, _SHARED, _NO_MOMENT, _NAMED = 3, 1e-9, 1e-9, 1e-14, 1e-6
_NONE = np.zeros((6, 0))


def unresisted(model: Model) -> tuple[str, ...]:
    """The coordinates of a motion that costs no kinetic energy in any configuration; none if there is none."""
    rng = np.random.default_rng(0)
    found: tuple[str, ...] = ()
    for _ in range(_CONFIGURATIONS):
        found = _found(model, rng)
        if not found:
            return ()
    return found


def _found(model: Model, rng: np.random.Generator) -> tuple[str, ...]:
    """The coordinates of such a motion in a random configuration."""
    table, (parents, _) = model.table, integers_of(model.table)
    n, own = len(parents), _radii(table)
    extents = _extents(parents, own, np.linalg.norm(table[:-1, 9:12], axis=1))
    held, turns = table[:-1, ARMATURE] != 0, table[:-1, TURN] != 0
    W = None
    if model.charts is not None and model.coupled:
        columns = model.charts.couplings[:, COLUMN].astype(np.intp)
        W = np.eye(model.nv)[columns] * model.charts.couplings[:, RATIO, None]
        turns = np.array([turns[columns == k].any() for k in range(model.nv)])
        extents = np.array([extents[columns == k].max() for k in range(model.nv)])
    table, x = _moved(model, rng.uniform(0.3, 1.3, model.nv) * np.where(turns, 1.0, extents))
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
        R, p = joint_pose(home(table, i), joint_screw(table, i), x[i])
        X = screw.Ad(screw.pose(np.reshape(R, (3, 3)), np.array(p) / length))
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


def _moved(model: Model, v: Array) -> tuple[Array, Array]:
    """The table with its charts re-centred, and the coordinates of its rows, after motion at v for unit time."""
    if model.charts is None:
        return model.table, v
    q = model.configurations.integrate(model.configurations.neutral, v)
    table, x = model.table.copy(), np.zeros(len(model.table) - 1)
    recentre(model.table, model.charts.where, model.charts.groups, q, table, x)
    follow(model.charts.couplings, x)
    return table, x


def _radii(table: Array) -> Array:
    """Radii of gyration of the bodies of all rows about the origins of their frames, (n,), m; 0 without mass."""
    rows = table[:-1]
    squares = np.zeros(len(rows))
    traces = np.abs(rows[:, [INERTIA, INERTIA + 3, INERTIA + 5]].sum(axis=1))
    np.divide(traces, 2 * np.abs(rows[:, MASS]), out=squares, where=rows[:, MASS] != 0)
    return np.sqrt(squares)


def _extents(parents: Array, own: Array, distances: Array) -> Array:
    """The largest distance, m, in the frames of each row and of those that it carries, (n,).

    That of its parent where there is none, or 1. The distances are those of the rows' origins from their parents'.
    """
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
        row = model.index[at.coordinate]
        if row >= 0 and at.link.inertia is not None and free[row].size:
            free[row] = _common(free[row], _free_of(at, extents[row])) if at.link.lean else _NONE
    return free


def _free_of(at: Placement, length: float) -> Array:
    """An orthonormal basis of the twists for which the inertia of a link is zero, in the frame of its row."""
    inertia = at.link.inertia
    assert inertia is not None
    moments, axes = np.linalg.eigh(np.asarray(inertia.tensor, dtype=np.float64))
    turns = axes[:, np.abs(moments) <= _NO_MOMENT * np.abs(moments).max()]
    twists = np.vstack([turns, np.zeros_like(turns)])
    if not inertia.mass:
        twists = np.hstack([twists, np.eye(6)[:, 3:]])
    T = screw.pose(np.reshape(at.R, (3, 3)), np.array(at.com, dtype=np.float64) / length)
    return np.linalg.qr(screw.Ad(T) @ twists)[0] if twists.size else _NONE


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
