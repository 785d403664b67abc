"""Configurations of a tree: the charts of its joints together."""

from collections.abc import Mapping
from itertools import chain

import numpy as np

from screwdyn.core.errors import ShapeError
from screwdyn.core.types import Array
from screwdyn.mechanism.chart import Chart
from screwdyn.mechanism.joint import Joint
from screwdyn.screws.rotations import LENGTH_TOLERANCE

__all__ = ["ConfigurationSpace"]

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
