"""The joint limits of one tree, and the times at which a motion passes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from screwdyn.core.types import Array
from screwdyn.physics.robot import Robot

__all__ = ["Limits", "Passages", "Side"]

Side = Literal["lower", "upper"]


class Limits(NamedTuple):
    """Limits of the freedoms of one tree: an entry for each lower and each upper limit, k in all.

    Attributes
    ----------
    names : tuple of (link, joint, coordinate)
        Of each entry; the link is the one that the joint carries.
    rows, where : (k,) arrays of int
        The freedom, and its position in q.
    sign : (k,) array
        −1 for a lower limit, 1 for an upper one.
    values : (k,) array
        rad or m.
    """

    names: tuple[tuple[str, str, str], ...]
    rows: npt.NDArray[np.intp]
    where: npt.NDArray[np.intp]
    sign: Array
    values: Array

    @classmethod
    def of(cls, tree: Robot, chosen: Callable[[str], bool]) -> Self:
        """Finite limits of the chosen joints, by name; joints that follow others have those of the joint followed."""
        rows = {name: k for k, name in enumerate(tree.model.coordinates)}
        where = {name: k for k, name in enumerate(tree.model.positions)}
        names, entries = [], []
        for at in tree.topology.attachments.values():
            joint = at.joint
            if joint.limits is None or not chosen(at.name):
                continue
            # Joints with limits have one position for each freedom.
            for freedom, position in zip(at.coordinates, joint.position_names(at.name), strict=True):
                for sign, value in zip((-1, 1), joint.limits, strict=True):
                    if freedom in rows and np.isfinite(value):
                        names.append((at.link.name, at.name, freedom))
                        entries.append((rows[freedom], where[position], sign, value))
        table = np.array(entries, dtype=float).reshape(-1, 4)
        return cls(tuple(names), table[:, 0].astype(np.intp), table[:, 1].astype(np.intp), table[:, 2], table[:, 3])

    def excess(self, q: Array) -> Array:
        """Distances beyond the limits, (…, k), rad or m; negative within them."""
        return np.asarray(self.sign * (q[..., self.where] - self.values))

    def approach(self, qd: Array) -> Array:
        """Rates at which the distances grow, (…, k), rad/s or m/s."""
        return np.asarray(self.sign * qd[..., self.rows])

    def key(self, k: int) -> tuple[str, Side]:
        """The coordinate of an entry, and which limit it is."""
        return self.names[k][2], self.side(k)

    def side(self, k: int) -> Side:
        """Which limit an entry is."""
        return "upper" if self.sign[k] > 0 else "lower"


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
    def beyond(self) -> set[tuple[str, Side]]:
        """The coordinates that are beyond a limit, and which."""
        return {self.limits.key(k) for k in np.flatnonzero(self.before > 0).tolist()}

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
