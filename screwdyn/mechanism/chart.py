"""Positions of joints: charts of groups, configurations of several joints, and poses."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.errors import JointError, ShapeError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.screws import screw
from screwdyn.screws.groups import (
    LENGTH_TOLERANCE,
    quaternion_of,
    quaternion_product,
    quaternion_rate,
    rotation_of,
    whole_turns,
)
from screwdyn.screws.screw import Ad, cross, inverse, log, pose_of, screw_motion

if TYPE_CHECKING:
    from screwdyn.mechanism.joint import Joint

__all__ = ["Chart", "ConfigurationSpace", "checked_positions", "pose_at", "positions_near", "screws_at"]

_KINDS = {(4, 0): "spherical", (4, 3): "free", (1, 2): "planar"}


@dataclass(frozen=True, eq=False)
class Chart:
    """Coordinates q = [orientation, position] of a group joint, with T = home · g(q) (docs/mathematics.md §7).

    g(q) rotates about axes through ``center`` and moves ``center`` along axes that do not rotate with the link. The
    quasi-velocities ν = [angular, linear] are the components of the relative twist along the joint's screws, in the
    link's own frame.

    Parameters
    ----------
    orientation : 4 or 1
        Number of coordinates of the orientation: 4 for a quaternion [x, y, z, w] of any length, 1 for an angle about
        the third axis, in radians.
    translations : int
        Number of coordinates of the position, in metres along the first axes.
    axes : (3, 3) array
        The joint's own axes as columns, in the link's frame.
    center : (3,) array
        Point of the link's frame through which all axes of rotation pass, in metres.

    Raises
    ------
    JointError
        Unless (orientation, translations) is (4, 0) (spherical), (4, 3) (free) or (1, 2) (planar).
    """

    orientation: int
    translations: int
    axes: Array
    center: Array

    def __post_init__(self) -> None:
        if (self.orientation, self.translations) not in _KINDS:
            raise JointError(
                f"orientation and translations of a chart must be one of {', '.join(map(str, _KINDS))}; "
                f"got ({self.orientation}, {self.translations})"
            )
        for what in ("axes", "center"):
            copied = expressions.array(getattr(self, what))
            copied.setflags(write=False)
            object.__setattr__(self, what, copied)

    @property
    def kind(self) -> str:
        """``"spherical"``, ``"free"`` or ``"planar"``."""
        return _KINDS[self.orientation, self.translations]

    @property
    def nq(self) -> int:
        """Number of positions."""
        return self.orientation + self.translations

    @property
    def nv(self) -> int:
        """Number of freedoms."""
        return self.nq - (self.orientation == 4)

    @property
    def neutral(self) -> tuple[float, ...]:
        """The positions of the identity."""
        turn = (0.0, 0.0, 0.0, 1.0) if self.orientation == 4 else (0.0,)
        return turn + (0.0,) * self.translations

    @property
    def screws(self) -> Array:
        """Screws, (6, k): [a; −a×center] for every axis a of rotation, then [0; a] for every axis of translation."""
        turning = self.axes.T if self.orientation == 4 else self.axes.T[2:]
        columns = [np.concatenate([a, cross(self.center, a)]) for a in turning]
        columns += [np.concatenate([np.zeros(3), a]) for a in self.axes.T[: self.translations]]
        return expressions.array(np.transpose(columns))

    @property
    def structure_constants(self) -> tuple[tuple[int, int, int, float], ...]:
        """All (m, k, l, c) with l > k and c ≠ 0 of [S_l, S_k] = Σ_m c S_m, the same for any axes and center."""
        return _structure_constants(self.orientation, self.translations)

    @property
    def freedom_labels(self) -> tuple[str, ...]:
        """Labels of the quasi-velocities: angular, then linear."""
        turns = ("wx", "wy", "wz") if self.orientation == 4 else ("w",)
        return turns + ("vx", "vy", "vz")[: self.translations]

    @property
    def position_labels(self) -> tuple[str, ...]:
        """Labels of the positions: orientation, then translation."""
        turns = ("x", "y", "z", "w") if self.orientation == 4 else ("angle",)
        return turns + ("px", "py", "pz")[: self.translations]

    @property
    def free_symbols(self) -> set[Any]:
        """SymPy symbols that the axes and the center depend on."""
        return expressions.free_symbols([self.axes, self.center])

    def subs(self, values: Mapping[Any, Any]) -> Chart:
        """The chart with values substituted for symbols."""
        axes, center = (expressions.substituted(a, values) for a in (self.axes, self.center))
        return Chart(self.orientation, self.translations, axes, center)

    # The functions below do not depend on axes and center, except `pose`.

    def pose(self, q: Array) -> Array:
        """g(q), (…, 4, 4), for q (…, nq)."""
        axes = expressions.floats(self.axes, "the axes of a joint")
        center = expressions.floats(self.center, "the center of a joint")
        R = axes @ self._rotation(q) @ axes.T
        return pose_of(R, center - R @ center + q[..., self.orientation :] @ axes[:, : self.translations].T)

    def integrate(self, q: Array, nu: Array) -> Array:
        """The positions of g(q) exp(S ν), (…, nq), with a quaternion of length 1."""
        o, t = self.orientation, self.translations
        if o == 4:
            turn = quaternion_product(q[..., :4], quaternion_of(nu[..., :3]))
            turn /= np.sqrt(np.sum(turn * turn, axis=-1, keepdims=True))
        else:
            turn = q[..., :1] + nu[..., :1]
        travel = self._rotation(q) @ screw.exp(self._twist(nu))[..., :3, 3, None]
        return np.concatenate([turn, q[..., o:] + travel[..., :t, 0]], axis=-1)

    def difference(self, q0: Array, q1: Array) -> Array:
        """The ν, (…, k), of the smallest rotation with g(q0) exp(S ν) = g(q1)."""
        o, t = self.orientation, self.translations
        R0 = self._rotation(q0)
        travel = np.zeros(R0.shape[:-1])
        travel[..., :t] = q1[..., o:] - q0[..., o:]
        R0 = R0.swapaxes(-1, -2)
        V = screw.log(pose_of(R0 @ self._rotation(q1), (R0 @ travel[..., None])[..., 0]))
        return V[..., : 3 + t] if o == 4 else V[..., 2 : 3 + t]

    def rate(self, q: Array, nu: Array) -> Array:
        """dq/dt, (…, nq): ½ q ∘ ω for a quaternion, R(q) v for a position."""
        o, t = self.orientation, self.translations
        turn = quaternion_rate(q[..., :4], nu[..., :3]) if o == 4 else nu[..., :1]
        travel = self._rotation(q) @ self._twist(nu)[..., 3:, None]
        return np.concatenate([turn, travel[..., :t, 0]], axis=-1)

    def _rotation(self, q: Array) -> Array:
        """Orientation in the joint's own axes, (…, 3, 3)."""
        if self.orientation == 4:
            return rotation_of(q[..., :4])
        R = np.zeros((*q.shape[:-1], 3, 3))
        R[..., 0, 0] = R[..., 1, 1] = np.cos(q[..., 0])
        R[..., 1, 0] = np.sin(q[..., 0])
        R[..., 0, 1], R[..., 2, 2] = -R[..., 1, 0], 1.0
        return R

    def _twist(self, nu: Array) -> Array:
        """S ν as a twist about the center in the joint's own axes, (…, 6)."""
        first = 0 if self.orientation == 4 else 2
        V = np.zeros((*nu.shape[:-1], 6))
        V[..., first : 3 + self.translations] = nu
        return V


@functools.cache
def _structure_constants(orientation: int, translations: int) -> tuple[tuple[int, int, int, float], ...]:
    own = Chart(orientation, translations, np.eye(3), np.zeros(3)).screws.T
    brackets = np.einsum("lij,kj->lki", screw.ad(own), own) @ own.T
    return tuple((m, k, l, float(brackets[l, k, m])) for l, k, m in np.argwhere(brackets).tolist() if l > k)


_ANYWHERE = (-np.pi, np.pi)


class ConfigurationSpace:
    """Functions of positions q (…, nq) and rates ν (…, nv) of a sequence of joints (docs/mathematics.md §7).

    Parameters
    ----------
    joints : mapping from name to Joint

    Attributes
    ----------
    nq, nv : int
    neutral : (nq,) array
        Positions at which all links are at their home poses.
    """

    def __init__(self, joints: Mapping[str, Joint]) -> None:
        self.neutral = np.array([*chain.from_iterable(joint.neutral for joint in joints.values())])
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
        self._groups = [
            (
                [name for name, *_ in found],
                found[0][1],
                np.add.outer([q for *_, q, _ in found], np.arange(found[0][1].nq)),
                np.add.outer([v for *_, v in found], np.arange(found[0][1].nv)),
            )
            for found in groups.values()
        ]

    def integrate(self, q: Array, v: Array) -> Array:
        """The configuration reached from q by moving at v for unit time, (…, nq)."""
        reached = np.empty_like(q)
        reached[..., self._q] = q[..., self._q] + v[..., self._v]
        for _, chart, at_q, at_v in self._groups:
            reached[..., at_q] = chart.integrate(q[..., at_q], v[..., at_v])
        return reached

    def difference(self, q0: Array, q1: Array) -> Array:
        """The v, (…, nv), with which ``integrate(q0, v)`` is the configuration q1."""
        v = np.empty((*q0.shape[:-1], self.nv))
        v[..., self._v] = q1[..., self._q] - q0[..., self._q]
        for _, chart, at_q, at_v in self._groups:
            v[..., at_v] = chart.difference(q0[..., at_q], q1[..., at_q])
        return v

    def rate(self, q: Array, v: Array) -> Array:
        """dq/dt, (…, nq)."""
        rate = np.empty_like(q)
        rate[..., self._q] = v[..., self._v]
        for _, chart, at_q, at_v in self._groups:
            rate[..., at_q] = chart.rate(q[..., at_q], v[..., at_v])
        return rate

    def normalized(self, q: Array) -> Array:
        """A copy of q, (…, nq), with all quaternions scaled to length 1; q itself if there are none."""
        for _, chart, at_q, _ in self._groups:
            if chart.orientation == 4:
                q = q.copy()
                turns = q[..., at_q[:, :4]]
                q[..., at_q[:, :4]] = turns / np.sqrt(np.sum(turns * turns, axis=-1, keepdims=True))
        return q

    def random(self, rng: np.random.Generator) -> Array:
        """Each coordinate uniform within its joint's limits, or within ±π; orientations uniform over all, (nq,)."""
        q = np.asarray(rng.uniform(*self._range))
        for _, chart, at_q, _ in self._groups:
            if chart.orientation == 4:
                turn = rng.normal(size=(len(at_q), 4))
                q[at_q[:, :4]] = turn / np.linalg.norm(turn, axis=-1, keepdims=True)
        return q

    def check(self, what: str, q: Array) -> None:
        """Check that all quaternions have length 1, to 1e-3.

        Raises
        ------
        ShapeError
            If one has not; the message names the joint and the length.
        """
        for names, chart, at_q, _ in self._groups:
            if chart.orientation == 4:
                with np.errstate(over="ignore"):  # an infinite length is wrong, too
                    length = np.linalg.norm(q[..., at_q[:, :4]], axis=-1)
                wrong = np.argwhere(np.abs(length - 1) > LENGTH_TOLERANCE)
                if wrong.size:
                    where = tuple(wrong[0])
                    raise ShapeError(
                        f"{what} holds a quaternion of length {length[where]:.6g} for joint {names[where[-1]]!r}; "
                        f"divide it by its length ([x, y, z, w], scalar last; neutral is [0, 0, 0, 1])"
                    )


# A step in rad and m below which the search for positions ends, and the largest number of steps.
_STEP, _MOST_STEPS = 1e-14, 100


def checked_positions(name: str, joint: Joint, q: ArrayLike) -> Array:
    """Positions of one joint as a new array, (nq,), rad and m; a number will do for a single position.

    Raises
    ------
    ShapeError
        If the shape is wrong, an entry is not finite, or the length of a quaternion is not 1.
    """
    what = f"the position of joint {name!r}"
    try:
        positions = np.array(np.atleast_1d(expressions.real(q)), dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise ShapeError(f"{what} must be numbers; got {q!r}") from None
    if positions.shape != (joint.nq,) or not np.isfinite(positions).all():
        entries = ", ".join(joint.position_names(name))
        raise ShapeError(f"{what} must be a finite number for each of: {entries}; got {q!r}")
    space = ConfigurationSpace({name: joint})
    space.check(what, positions)
    return space.normalized(positions)


def pose_at(joint: Joint, q: Array) -> Array:
    """The pose of the link relative to its home at positions q (nq,): g(q), (4, 4) (docs/mathematics.md §7)."""
    if joint.chart is not None:
        return joint.chart.pose(q)
    T = np.eye(4)
    for S, x in zip(joint.screws.T, q, strict=True):
        T = T @ screw_motion(S, x)
    return T


def screws_at(joint: Joint, q: Array) -> Array:
    """S, (6, nv): the twist of the link relative to its parent is S ν at positions q, in the link's own frame."""
    screws = np.array(joint.screws)
    if joint.chart is None:
        for k in range(joint.nv):
            for S, x in zip(joint.screws.T[k + 1 :], q[k + 1 :], strict=True):
                screws[:, k] = Ad(screw_motion(S, -x)) @ screws[:, k]
    return screws


def positions_near(joint: Joint, T: Array) -> tuple[Array, Array]:
    """The positions at which a joint has the pose T relative to home, by Newton's method from the neutral positions.

    A helical joint starts with the whole turns that the pose shows.

    Returns
    -------
    (nq,) array
        If the joint cannot have the pose, the positions at which the twist below is shortest.
    (6,) array
        The twist that moves the reached pose to T in unit time, in the link's own frame, rad and m.
    """
    space = ConfigurationSpace({"": joint})
    q = space.integrate(space.neutral, np.full(joint.nv, whole_turns(joint.screws, T)))
    for _ in range(_MOST_STEPS):
        gap = log(inverse(pose_at(joint, q)) @ T)
        step = np.asarray(np.linalg.lstsq(screws_at(joint, q), gap)[0], dtype=np.float64)
        if np.abs(step).max(initial=0.0) < _STEP * (1 + np.abs(q).max(initial=0.0)):
            break
        q = space.integrate(q, step)
    return q, gap
