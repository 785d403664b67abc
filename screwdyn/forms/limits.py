"""The joint limits of one tree, and the times at which a motion passes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from screwdyn.core.types import Array
from screwdyn.mechanism.couplings import leaders
from screwdyn.physics.robot import Robot

__all__ = ["Key", "Limits", "Passages", "Side"]

Side = Literal["lower", "upper"]
SIDES: tuple[Side, Side] = ("lower", "upper")
Key = tuple[str, str, str, Side]


class Limits(NamedTuple):
    """Limits of the freedoms of one tree: an entry for each lower and each upper limit, k in all.

    Attributes
    ----------
    keys : tuple of (link, joint, coordinate, side)
        Of each entry; the link is the one that the joint carries, and the coordinate of a joint that follows another
        one is that of the joint followed.
    rows, where : (k,) arrays of int
        The freedom, and its position in q.
    sign : (k,) array
        1 if the freedom passes the limit upwards, −1 if downwards.
    values : (k,) array
        Position of the freedom at the limit, rad or m.
    ratio : (k,) array
        Rate of the joint divided by that of the freedom, which differ if the joint follows another one.
    """

    keys: tuple[Key, ...]
    rows: npt.NDArray[np.intp]
    where: npt.NDArray[np.intp]
    sign: Array
    values: Array
    ratio: Array

    @classmethod
    def of(cls, tree: Robot, chosen: Callable[[str], bool]) -> Self:
        """Finite limits of the chosen joints, by name."""
        rows = {name: k for k, name in enumerate(tree.model.coordinates)}
        where = {name: k for k, name in enumerate(tree.model.positions)}
        topology = tree.topology
        followed = leaders({name: topology.attachments[link].joint for name, link in topology.carried.items()})
        keys: list[Key] = []
        entries = []
        for at in topology.attachments.values():
            joint = at.joint
            if joint.limits is None or not chosen(at.name):
                continue
            # Joints with limits have one position for each freedom, and a joint that is followed has one freedom.
            leader, ratio, offset = followed.get(at.name, (None, 1.0, 0.0))
            names = [*zip(at.coordinates, joint.position_names(at.name), strict=True)]
            for freedom, position in names if leader is None else [(leader, leader)] if ratio else []:
                for side, sign, value in zip(SIDES, (-1, 1), joint.limits, strict=True):
                    if freedom in rows and np.isfinite(value):
                        keys.append((at.link.name, at.name, freedom, side))
                        entries.append(
                            (rows[freedom], where[position], np.sign(ratio) * sign, (value - offset) / ratio, ratio)
                        )
        table = np.array(entries, dtype=float).reshape(-1, 5)
        return cls(tuple(keys), table[:, 0].astype(np.intp), table[:, 1].astype(np.intp), *table[:, 2:].T)

    def excess(self, q: Array) -> Array:
        """Distances beyond the limits, (…, k), rad or m; negative within them."""
        return np.asarray(self.sign * (q[..., self.where] - self.values))

    def approach(self, qd: Array) -> Array:
        """Rates at which the distances grow, (…, k), rad/s or m/s."""
        return np.asarray(self.sign * qd[..., self.rows])


class Passages:
    """Finds the times at which a motion passes limits from inside, without a part in the motion.

    Parameters
    ----------
    limits : Limits
    nq : int
        Number of positions.
    y : (n,) array
        The start, [q; q̇; …].
    """

    def __init__(self, limits: Limits, nq: int, y: Array) -> None:
        self.limits, self.nq = limits, nq
        self.before = self._excess(y)
        self.approached = limits.approach(y[nq:])

    @property
    def beyond(self) -> set[Key]:
        """The limits that are passed."""
        return {self.limits.keys[k] for k in np.flatnonzero(self.before > 0).tolist()}

    def step(self, t: float, y: Array, piece: Any) -> list[tuple[float, int]]:
        """Times and entries of the limits that are passed in a step, in order of time.

        ``piece`` is the solution over the step, and y its value at the end, t.
        """
        inside, approached = self.before <= 0, self.approached
        self.before, self.approached = after, approach = self._excess(y), self.limits.approach(y[self.nq :])
        # A coordinate that turned beyond its limit within the step came back less than its rate at the end allows.
        near = after > (piece.t_old - t) * np.abs(approach)
        if not near.any():
            return []
        from scipy.optimize import brentq

        ends = {k: t for k in np.flatnonzero(inside & (after > 0)).tolist()}
        for k in np.flatnonzero(inside & near & (after <= 0) & (approached > 0) & (approach < 0)).tolist():
            turn = float(brentq(lambda s, k=k: self.limits.approach(piece(s)[self.nq :])[k], piece.t_old, t))
            if self._excess(piece(turn))[k] > 0:
                ends[k] = turn
        found = []
        for k, end in ends.items():
            begins = self._excess(piece(piece.t_old))[k] >= 0
            at = piece.t_old if begins else brentq(lambda s, k=k: self._excess(piece(s))[k], piece.t_old, end)
            found.append((float(at), k))
        return sorted(found)

    def _excess(self, y: Array) -> Array:
        return self.limits.excess(y[: self.nq])
