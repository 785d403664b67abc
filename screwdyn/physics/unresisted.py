"""Motions that no inertia resists in any configuration: M is then singular by structure (docs/mathematics.md §4).

A body's inertia is zero for some twists: for a turn of a thin rod about its axis, for any turn of a point about itself,
for all twists of a massless link. From the tips inward, F_i holds the twists of row i that cost no kinetic energy while
the joints beyond it move as they like: those that are free for its own bodies and in F_c ⊕ span(S_c) for every child c,
or in F_c if the joint of c has an armature. M is singular if S_i lies in an F_i. Ranks are those of random
configurations; a singularity of a single configuration, such as a gimbal's, is none of these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from screwdyn.core.types import Array
from screwdyn.physics.charts import recentre
from screwdyn.physics.couplings import COLUMN, RATIO, follow
from screwdyn.physics.link_steps import joint_pose
from screwdyn.physics.placement import Placement
from screwdyn.physics.table import ARMATURE, FIRST_MOMENT, INERTIA, MASS, SLIDE, TURN, home, integers_of, joint_screw
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
    n, length = len(parents), _length(table, parents)
    held, turns = table[:-1, ARMATURE] != 0, table[:-1, TURN] != 0
    W = None
    if model.charts is not None and model.coupled:
        columns = model.charts.couplings[:, COLUMN].astype(np.intp)
        W = np.eye(model.nv)[columns] * model.charts.couplings[:, RATIO, None]
        turns = np.array([turns[columns == k].any() for k in range(model.nv)])
    table, x = _moved(model, rng.uniform(0.3, 1.3, model.nv) * np.where(turns, 1.0, length))
    free = _free_of_bodies(model, length)
    S = np.zeros((n, 6))
    S[:, 2], S[:, 5] = table[:-1, TURN], table[:-1, SLIDE] / length
    S /= np.linalg.norm(S, axis=1, keepdims=True)

    def to_parent(i: int) -> Array:
        """Ad of the pose of a row in its parent, with lengths in units of the tree's."""
        R, p = joint_pose(home(table, i), joint_screw(table, i), x[i])
        return screw.Ad(screw.pose(np.reshape(R, (3, 3)), np.array(p) / length))

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
            free[k] = _common(free[k], np.linalg.qr(to_parent(i) @ F)[0])
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


def _length(table: Array, parents: Array) -> float:
    """The largest distance in the frames of the rows, m; 1 if there is none. Where the tree stands does not matter."""
    massive = table[table[:, MASS] > 0]
    centres = massive[:, FIRST_MOMENT:INERTIA] / massive[:, MASS, None]
    return float(max(np.abs(table[:-1][parents >= 0, 9:12]).max(initial=0.0), np.abs(centres).max(initial=0.0)) or 1.0)


def _free_of_bodies(model: Model, length: float) -> list[Array]:
    """For each row an orthonormal basis, (6, k), of the twists for which the inertia of its bodies is zero."""
    free = [np.eye(6)] * (len(model.table) - 1)
    for at in model.placements.values():
        row = model.index[at.coordinate]
        if row >= 0 and at.link.inertia is not None and free[row].size:
            free[row] = _common(free[row], _free_of(at, length)) if at.link.lean else _NONE
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
