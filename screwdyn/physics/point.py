"""The progressive evaluation of a tree at one state: every term from its parent's, kept (docs/mathematics.md §2).

This is the method of Laus et al. as it stands: a link needs its parent's Jacobian and nothing else, and ‡ adds what it
contributes. The totals of the tree come from the recursions, which are faster and independent of this.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.cached import cached_property
from screwdyn.core.errors import ShapeError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.mechanism.attachment import Attachment
from screwdyn.mechanism.couplings import leaders
from screwdyn.mechanism.inertia import Inertia
from screwdyn.mechanism.joint import Joint
from screwdyn.mechanism.joint_pose import checked_positions
from screwdyn.mechanism.structure import Body, Handle, Structure
from screwdyn.physics.contribution import Contribution
from screwdyn.physics.padded import Padded, padded_sum
from screwdyn.screws import screw

__all__ = ["Point"]

# p @ _MINUS_SKEW is −p^ and V @ _AD is ad(V), row by row.
_MINUS_SKEW = -screw.skew(np.eye(3)).reshape(3, 9)
_AD = screw.ad(np.eye(6)).reshape(6, 36)

# Positions and rates of joints by their names, in order of attachment.
_State: TypeAlias = dict[str, tuple[Array, Array]]


class _Step(NamedTuple):
    """What a link has from its parent's: its pose in the base, and twists in its own frame, as columns.

    The columns are J over the coordinates, J̇ over the same, the twist V = J q̇ and gravity as [0; Rᵀ g₀]. All of them
    change from the parent's frame to the link's by the same X = Ad(T)⁻¹.
    """

    coordinates: tuple[str, ...]
    pose: Array
    columns: Array


class Point:
    """A tree at one state, which computes each link's terms from its parent's and keeps them; immutable.

    Made by :meth:`screwdyn.KinematicTree.at`. With X = Ad(T)⁻¹ for the pose T of a link in its parent p, S the screws
    of its joint and ν its rates (Laus et al., Eqs. 22-36; docs/mathematics.md §2):

    - J = [X J_p, S] and J̇ = [X J̇_p − ad(S ν) X J_p, 0], both moved to the centre of mass;
    - M_i = Jᵀ M̄ J (Eq. 21), C_i = Jᵀ (M̄ J̇ + B J) (Eq. 35), g_i = −m J_vᵀ Rᵀ g₀ (Eq. 36).

    A column of a joint that follows another one is added to that of its leader, times the ratio. Closed loops change
    no term of any link.

    Attributes
    ----------
    q, qd : (nq,) and (nv,) arrays
        Positions and rates, in the order of ``positions`` and ``coordinates``, in SI units and radians.
    """

    def __init__(self, tree: Structure, state: _State, steps: dict[str, _Step]) -> None:
        self._tree, self._state, self._steps = tree, state, steps
        self._contributions: dict[str, Contribution] = {}
        # By name: a sum over the first links, and their number.
        self._sums: dict[str, tuple[Padded, int]] = {}

    @classmethod
    def of(cls, tree: Structure, q: Array, qd: Array) -> Point:
        """The point of a copy of a tree without symbols, at positions (nq,) and rates (nv,) that have been checked."""
        return cls(tree.copy(), _state_of([*tree.topology.attached], q, qd), {tree.base: _base(tree)})

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the nv freedoms."""
        return self._tree.coordinates

    @property
    def positions(self) -> tuple[str, ...]:
        """Names of the nq entries of q."""
        return self._tree.positions

    @property
    def links(self) -> tuple[str, ...]:
        """Names of all links, the base first, in order of attachment."""
        return self._tree.links

    @property
    def tree(self) -> Structure:
        """The tree of this point, as a copy."""
        return self._tree.copy()

    @property
    def q(self) -> Array:
        """Positions of all joints, (nq,), rad and m."""
        return np.concatenate([np.zeros(0), *(q for q, _ in self._state.values())])

    @property
    def qd(self) -> Array:
        """Rates of all freedoms, (nv,), rad/s and m/s."""
        return np.concatenate([np.zeros(0), *(qd for _, qd in self._state.values())])

    def pose(self, link: Handle | str) -> Array:
        """Pose of a link in the base frame, (4, 4), m."""
        return self._step(self._tree.resolve(link)).pose.copy()

    def twist(self, link: Handle | str) -> Array:
        """Twist [ω; v] of a link in its own frame, (6,), rad/s and m/s."""
        return self._step(self._tree.resolve(link)).columns[:, -2].copy()

    def contribution(self, link: Handle | str) -> Contribution:
        """J_i, J̇_i, M_i, C_i and g_i of a link: one step after its parent's; the same object in every call.

        Raises
        ------
        UnknownNameError, StaleHandleError
            If there is no such link, or the handle is stale.
        """
        name = self._tree.resolve(link)
        found = self._contributions.get(name)
        if found is None:
            found = self._contributions[name] = self._own(self._tree.topology.attachments[name], self._step(name))
        return found

    def contributions(self) -> list[Contribution]:
        """The contributions of all links but the base, in order of attachment."""
        return [self.contribution(link) for link in self.links[1:]]

    @property
    def M(self) -> Padded:
        """Mass matrix: the padded sum ‡ of all M_i (Laus, section 2.4), in SI units and radians."""
        return self._sum("M")

    @property
    def C(self) -> Padded:
        """Coriolis matrix: the padded sum ‡ of all C_i, in SI units and radians."""
        return self._sum("C")

    @property
    def g(self) -> Padded:
        """Gravity vector: the padded sum ‡ of all g_i, N m and N."""
        return self._sum("g")

    def attach(
        self,
        body: Body,
        to: str,
        joint: Joint | None = None,
        at: ArrayLike | None = None,
        name: str | None = None,
        *,
        prefix: str = "",
        q: ArrayLike | None = None,
        qd: ArrayLike | None = None,
    ) -> Point:
        """The point of the tree with a further link, whose contribution is all that is new.

        All contributions that this point has computed are the same objects. Neither this point nor the tree that it was
        made from changes. Rates are given, not found: for a payload that is caught in motion take them from
        ``tree.grasp``.

        Parameters
        ----------
        body, to, joint, at, name, prefix
            As for :meth:`screwdyn.KinematicTree.attach`.
        q, qd : arrays, optional
            Positions and rates of all new freedoms, in order; by default neutral, and zero. SI units and radians.

        Returns
        -------
        Point

        Raises
        ------
        ShapeError
            If q or qd have another length, or are not finite.
        UnboundSymbolError
            If the new links contain symbols.
        UnknownNameError, TopologyError
            As for :meth:`screwdyn.KinematicTree.attach`.
        """
        tree = self._tree.copy()
        tree.attach(body, to, joint, at, name, prefix=prefix)
        new = [*tree.topology.attachments.values()][len(self._tree.topology.attachments) :]
        point = Point(tree, self._state | _state_of(new, q, qd), self._steps.copy())
        point._contributions, point._sums = self._contributions.copy(), self._sums.copy()
        return point

    def detach(self, what: Handle | str) -> Point:
        """The point of the tree without a link and all links beyond it; what it has computed is kept.

        Raises
        ------
        UnknownNameError, StaleHandleError, TopologyError
            As for :meth:`screwdyn.KinematicTree.detach`.
        """
        tree = self._tree.copy()
        tree.detach(what)
        kept = tree.topology
        state = {joint: x for joint, x in self._state.items() if joint in kept.carried}
        point = Point(tree, state, {x: step for x, step in self._steps.items() if x in kept.attachments})
        point._contributions = {x: own for x, own in self._contributions.items() if x in kept.attachments}
        return point

    def __repr__(self) -> str:
        return f"<Point of {len(self.links)} links at {', '.join(self.coordinates) or 'no coordinates'}>"

    # Inside

    def _sum(self, term: str) -> Padded:
        """The sum of a term over all links, from that over the first ones if it is known."""
        links = self.links
        terms, known = [], 1
        if term in self._sums:
            total, known = self._sums[term]
            terms = [total]
        if not terms or known < len(links):
            terms += [getattr(self.contribution(link), term) for link in links[known:]]
            nothing = Padded((), np.zeros((0, 0) if term != "g" else 0), 1 if term == "g" else 2)
            self._sums[term] = padded_sum(terms or [nothing]), len(links)
        return self._sums[term][0]

    def _step(self, link: str) -> _Step:
        """The step of a link, and of those before it that have not been taken."""
        attachments, missing = self._tree.topology.attachments, []
        while link not in self._steps:
            missing.append(attachments[link])
            link = missing[-1].parent or ""
        step = self._steps[link]
        for at in reversed(missing):
            step = self._steps[at.link.name] = self._next(at, step)
        return step

    def _next(self, at: Attachment, above: _Step) -> _Step:
        """The step of a link from its parent's."""
        coordinates, pose, columns = above
        joint, home = at.joint, expressions.floats(at.home, "the home pose of a link")
        if joint.mimic is None:
            (q, nu), names, ratio = self._state[at.name], at.coordinates, 1.0
        else:
            leader, ratio, offset = self._leaders[at.name]
            q, nu = (ratio * x for x in self._state[leader])
            q, names = q + offset, (leader,)
        for T, S, own in _motions(joint, home, q):
            k, X = len(coordinates), _to_child(T)
            V = S @ nu[own]
            columns = X @ columns
            columns[:, k : 2 * k] -= (V @ _AD).reshape(6, 6) @ columns[:, :k]
            columns[:, -2] += V
            pose = pose @ T
            if joint.mimic is not None and names[0] in coordinates:
                columns[:, coordinates.index(names[0])] += ratio * S[:, 0]
            elif S.size:
                J, J_dot, others = columns[:, :k], columns[:, k : 2 * k], columns[:, 2 * k :]
                columns = np.concatenate([J, ratio * S, J_dot, np.zeros(S.shape), others], axis=1)
                coordinates += names[own]
        return _Step(coordinates, pose, columns)

    @cached_property
    def _leaders(self) -> dict[str, tuple[str, float, float]]:
        """For each joint that follows another one: its leader, the ratio and the offset."""
        found = leaders({at.name: at.joint for at in self._tree.topology.attached})
        return {name: (leader, float(ratio), float(offset)) for name, (leader, ratio, offset) in found.items()}

    def _own(self, at: Attachment, step: _Step) -> Contribution:
        """The contribution of a link."""
        coordinates, k = step.coordinates, len(step.coordinates)
        columns, inertia = step.columns, at.link.inertia
        if inertia is None:
            J, J_dot = columns[:, :k].copy(), columns[:, k : 2 * k].copy()
            M, C, g = np.zeros((k, k)), np.zeros((k, k)), np.zeros(k)
        else:
            m, to_com, M_bar, B_of = _body(inertia)
            at_com = columns.copy()
            at_com[3:] -= to_com @ columns[:3]
            J, J_dot, V, gravity = at_com[:, :k], at_com[:, k : 2 * k], at_com[:, -2], at_com[3:, -1]
            M = J.T @ (M_bar @ J)
            C = J.T @ (M_bar @ J_dot + (V[:3] @ B_of).reshape(6, 6) @ J)
            g = (-m * gravity) @ J[3:]
        if at.joint.armature:
            armature = float(expressions.floats(at.joint.armature, "the armature of a joint"))
            leader, ratio, _ = self._leaders[at.name] if at.joint.mimic is not None else (None, 1.0, 0.0)
            for name in at.coordinates if leader is None else (leader,):
                own = coordinates.index(name)
                M[own, own] += ratio**2 * armature
        return Contribution(at.link.name, coordinates, J, J_dot, M, C, g)


def _base(tree: Structure) -> _Step:
    """The step of the base: no coordinates, at rest."""
    columns = np.zeros((6, 2))
    columns[3:, 1] = expressions.floats(tree.gravity, "gravity")
    return _Step((), np.eye(4), columns)


def _state_of(new: Sequence[Attachment], q: ArrayLike | None, qd: ArrayLike | None) -> _State:
    """Positions and rates of joints by name, neutral and at rest by default; ShapeError if they do not fit."""
    nq, nv = (sum(getattr(at.joint, size) for at in new) for size in ("nq", "nv"))
    given = {}
    for what, value, size in (("q", q, nq), ("qd", qd, nv)):
        x = None if value is None else np.atleast_1d(np.array(expressions.real(value), dtype=float))
        if x is not None and (x.shape != (size,) or not np.isfinite(x).all()):
            raise ShapeError(f"{what} of the new links must be {size} finite numbers; got {value!r}")
        given[what] = x
    state, at_q, at_v = {}, 0, 0
    for at in new:
        joint = at.joint
        own = joint.neutral if given["q"] is None else given["q"][at_q : at_q + joint.nq]
        rates = np.zeros(joint.nv) if given["qd"] is None else given["qd"][at_v : at_v + joint.nv]
        state[at.name] = checked_positions(at.name, joint, own), rates
        at_q, at_v = at_q + joint.nq, at_v + joint.nv
    return state


def _motions(joint: Joint, home: Array, q: Array) -> Iterator[tuple[Array, Array, slice]]:
    """Poses of the frames of a joint, each in the one before, with the screws of each and which freedoms they are."""
    if joint.chart is not None or not joint.screws.size:
        T = home if joint.chart is None else home @ joint.chart.pose(q)
        yield T, expressions.floats(joint.screws, "the screws of a joint"), slice(0, joint.nv)
        return
    for k, (S, basis) in enumerate(_exponentials(joint)):
        x = q[k]
        motion = (np.array((1.0, math.sin(x), math.cos(x), x)) @ basis).reshape(4, 4)
        yield (home @ motion if k == 0 else motion), S, slice(k, k + 1)


@functools.lru_cache(maxsize=1024)
def _exponentials(joint: Joint) -> list[tuple[Array, Array]]:
    """Each screw of a joint, (6, 1), and (4, 16): its exponential is [1, sin q, cos q, q] times this, row by row."""
    found = []
    for S in expressions.floats(joint.screws, "the screws of a joint").T:
        w, v = screw.skew(S[:3]), S[3:]
        w2 = w @ w
        parts = np.zeros((4, 4, 4))
        parts[:3, :3, :3] = np.eye(3) + w2, w, -w2
        parts[:, :3, 3] = w @ v, -w2 @ v, -w @ v, v + w2 @ v
        parts[0, 3, 3] = 1.0
        found.append((S[:, None], parts.reshape(4, 16)))
    return found


def _to_child(T: Array) -> Array:
    """Ad(T)⁻¹, which changes the frame of a twist from a parent's to that of a link with pose T in it."""
    turn, X = T[:3, :3].T, np.zeros((6, 6))
    X[:3, :3] = X[3:, 3:] = turn
    X[3:, :3] = turn @ (T[:3, 3] @ _MINUS_SKEW).reshape(3, 3)
    return X


@functools.lru_cache(maxsize=1024)
def _body(inertia: Inertia) -> tuple[float, Array, Array, Array]:
    """m, c^, M̄ (Laus Eq. 9) and (3, 36), by which ω becomes B = blkdiag((Σ ω)^, m ω^), row by row."""
    body = inertia.evaluated()
    spread = 0.5 * np.trace(body.tensor) * np.eye(3) - body.tensor
    B_of = np.zeros((3, 6, 6))
    B_of[:, :3, :3] = [screw.skew(column) for column in spread.T]
    B_of[:, 3:, 3:] = [body.mass * screw.skew(axis) for axis in np.eye(3)]
    return body.mass, screw.skew(body.com), body.com_matrix, B_of.reshape(3, 36)
