"""The motion of one tree between two changes: samples, and the polynomials of the integrator between them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from screwdyn.core.types import Array
from screwdyn.physics.state import State
from screwdyn.simulation.equations import Equations, Layout

if TYPE_CHECKING:
    from screwdyn.views.curves import Joint

__all__ = ["ROUNDING", "Motion", "Recorder", "Samples", "Solution"]

# Fraction of the time between samples that counts as rounding.
ROUNDING = 1e-9
# Nodes that determine the polynomial of one step of any integrator.
NODES = 14


class Piece(Protocol):
    """The solution over one step of the integrator, a polynomial."""

    t_old: float
    t: float

    def __call__(self, t: Any) -> Array:
        """Y at a time, (n,), or at several times, (n, times)."""


class Solution:
    """The solution of the equations between the first and the last sample of a motion.

    Parameters
    ----------
    layout : Layout
    pieces : sequence of Piece
        In order of time.
    """

    def __init__(self, layout: Layout, pieces: Sequence[Piece]) -> None:
        self.layout, self.pieces = layout, pieces
        self.starts = np.array([piece.t_old for piece in pieces])

    def values(self, times: Array) -> tuple[Array, Array, Array]:
        """Positions, rates and accelerations at times within the motion, (times, nq) and (times, nv).

        The accelerations are the time derivatives of the integrator's polynomials for the rates.
        """
        layout = self.layout
        y, qdd = np.empty((len(times), layout.n)), np.empty((len(times), layout.n - layout.nq))
        x = np.cos(np.pi * (np.arange(NODES) + 0.5) / NODES)
        owners = np.maximum(np.searchsorted(self.starts, times, side="right") - 1, 0)
        for k in np.unique(owners):
            piece, at = self.pieces[k], owners == k
            y[at] = piece(times[at])[: layout.n].T
            length = piece.t - piece.t_old
            rates = piece(piece.t_old + 0.5 * length * (x + 1))[layout.nq : layout.n].T
            slope = np.polynomial.chebyshev.chebder(np.polynomial.chebyshev.chebfit(x, rates, NODES - 1))
            where = 2 * (times[at] - piece.t_old) / length - 1
            qdd[at] = np.polynomial.chebyshev.chebval(where, slope).T * (2 / length)
        return *layout.parts(y), qdd


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples of the motion of one tree.

    Attributes
    ----------
    positions, coordinates : tuple of str
    t : (k,) array
    q, qd, qdd, torque : (k, nq), (k, nv), (k, nv) and (k, nv) arrays
    joints : mapping from name to joint
        The joint of every position and coordinate.
    """

    positions: tuple[str, ...]
    coordinates: tuple[str, ...]
    t: Array
    q: Array
    qd: Array
    qdd: Array
    torque: Array
    joints: Mapping[str, Joint]


@dataclass(frozen=True, eq=False)
class Motion(Samples):
    """The motion of one tree: samples with the following attribute.

    Attributes
    ----------
    solution : Solution
    """

    solution: Solution

    def state(self, k: int) -> State:
        """The state at a sample."""
        return self.solution.layout.state(np.concatenate([self.q[k], self.qd[k]]))

    def values(self, times: Array | None) -> tuple[Array, Array, Array]:
        """Positions, rates and accelerations at times within the motion, or at all samples."""
        if times is None or not self.solution.pieces:  # a motion without duration has one sample
            at = np.arange(len(self.t)) if times is None else np.zeros(len(times), dtype=int)
            return self.q[at], self.qd[at], self.qdd[at]
        return self.solution.values(times)


class Recorder:
    """Collects the samples of a motion.

    Parameters
    ----------
    equations : Equations
    begin : float
        Start of the motion, s.
    start, step : float
        Samples are taken at times start + k step, s, and at both ends of the motion.
    """

    def __init__(self, equations: Equations, begin: float, start: float, step: float) -> None:
        self.equations, self.start, self.step = equations, start, step
        self.next = math.floor((begin - start) / step + ROUNDING) + 1
        self.times: list[Array] = []
        self.values: list[Array] = []
        # Torques and accelerations.
        self.derived: list[tuple[Array, Array]] = []
        self.pieces: list[Piece] = []

    def sample(self, t: float, y: Array) -> None:
        """Take a sample."""
        self._take(np.array([t]), y[:, None])

    def step_to(self, end: float, piece: Piece) -> None:
        """Take the samples before the end of a step."""
        self.pieces.append(piece)
        after = math.ceil((end - self.start) / self.step - ROUNDING)
        if after > self.next:
            times = np.maximum(self.start + self.step * np.arange(self.next, after), piece.t_old)
            self.next = after
            self._take(times, piece(times))

    def _take(self, times: Array, values: Array) -> None:
        self.times.append(times)
        self.values.append(values)
        if not self.equations.smooth:
            q, qd = self.equations.layout.parts(values.T)
            for t, *state in zip(times.tolist(), q, qd, strict=True):
                torque, qdd = self.equations.sample(t, *state)
                self.derived.append((torque.copy(), qdd))

    def motion(self) -> Motion:
        """The samples so far."""
        model, (q, qd), t = self.equations.model, self.equations.layout.parts(self._all), np.concatenate(self.times)
        if self.equations.smooth:
            torque, qdd = np.zeros(qd.shape), self.equations.smooth_accelerations(q, qd)
        else:
            torque, qdd = (np.array(x).reshape(qd.shape) for x in zip(*self.derived, strict=True))
        solution = Solution(self.equations.layout, self.pieces)
        tree = self.equations.layout.tree
        named = [(name, tree.joint(name)) for name in tree.joints]
        joints = {x: joint for name, joint in named for x in (*joint.position_names(name), *joint.freedom_names(name))}
        return Motion(model.positions, model.coordinates, t, q, qd, qdd, torque, joints, solution)

    def energies(self) -> tuple[Array, ...]:
        """Kinetic and potential energy, work of torques, dissipation, work of wrenches: each (samples,), J."""
        values = self._all
        q, qd = self.equations.layout.parts(values)
        kinetic = np.asarray(self.equations.tree.kinetic_energy(q, qd))
        return kinetic, self.equations.potential(q), *values[:, self.equations.n :].T

    @cached_property
    def _all(self) -> Array:
        """All samples, (samples, nq + nv + 3), once the last one has been taken."""
        return self.equations.closed(np.concatenate(self.values, axis=1).T)
