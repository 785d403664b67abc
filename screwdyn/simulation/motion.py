"""The motion of one tree between two changes: samples, and the polynomials of the integrator between them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from screwdyn.core.errors import ScrewdynError
from screwdyn.core.types import Array
from screwdyn.simulation.equations import Equations
from screwdyn.simulation.state import State

__all__ = ["Interpolation", "Motion", "Recorder"]

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


class Interpolation:
    """The solution of the equations between the first and the last sample of a motion.

    Parameters
    ----------
    equations : Equations
    pieces : sequence of Piece
        In order of time.
    """

    def __init__(self, equations: Equations, pieces: Sequence[Piece]) -> None:
        self.equations, self.pieces = equations, pieces
        self.starts = np.array([piece.t_old for piece in pieces])

    def at(self, t: float) -> Array:
        """Y = [q; q̇; energies] at a time within the motion; quaternions are not scaled."""
        return np.asarray(self._piece(t)(t))

    def accelerations(self, t: float) -> Array:
        """Time derivatives of the rates q̇ at a time within the motion, (nv,): those of the integrator's polynomial."""
        piece, rates = self._piece(t), slice(self.equations.nq, self.equations.n)
        x, length = np.cos(np.pi * (np.arange(NODES) + 0.5) / NODES), piece.t - piece.t_old
        values = piece(piece.t_old + 0.5 * length * (x + 1))[rates].T
        fit = np.polynomial.chebyshev.chebfit(x, values, NODES - 1)
        at = 2 * (t - piece.t_old) / length - 1
        slope = np.polynomial.chebyshev.chebval(at, np.polynomial.chebyshev.chebder(fit))
        return np.asarray(slope * 2 / length)

    def _piece(self, t: float) -> Piece:
        return self.pieces[max(0, int(np.searchsorted(self.starts, t, side="right")) - 1)]


@dataclass(frozen=True, eq=False)
class Motion:
    """Samples of the motion of one tree.

    Attributes
    ----------
    positions, coordinates : tuple of str
    t : (k,) array
    q, qd, torque : (k, nq), (k, nv) and (k, nv) arrays
    interpolation : Interpolation or None
        None if the motion was read from a file.
    """

    positions: tuple[str, ...]
    coordinates: tuple[str, ...]
    t: Array
    q: Array
    qd: Array
    torque: Array
    interpolation: Interpolation | None

    @property
    def solution(self) -> Interpolation:
        """The solution between the samples.

        Raises
        ------
        ScrewdynError
            If the motion was read from a file.
        """
        if self.interpolation is None:
            raise ScrewdynError("a run that was read from a file has samples, but no trees and nothing between samples")
        return self.interpolation

    def state(self, k: int) -> State:
        """The state at a sample; errors as for :attr:`solution`."""
        return self.solution.equations.state(np.concatenate([self.q[k], self.qd[k]]))


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
        self.torques: list[Array] = []
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
        if self.equations.controller is not None:
            q, qd = self.equations.parts(values.T)
            self.torques += [self.equations.torque(t, *x).copy() for t, *x in zip(times.tolist(), q, qd, strict=True)]

    def motion(self) -> Motion:
        """The samples so far."""
        model, (q, qd), t = self.equations.model, self.equations.parts(self._all()), np.concatenate(self.times)
        torque = np.array(self.torques).reshape(len(t), model.nv) if self.torques else np.zeros((len(t), model.nv))
        interpolation = Interpolation(self.equations, self.pieces)
        return Motion(model.positions, model.coordinates, t, q, qd, torque, interpolation)

    def energies(self) -> tuple[Array, ...]:
        """Kinetic and potential energy, work of torques, dissipation, work of wrenches: each (samples,), J."""
        values = self._all()
        q, qd = self.equations.parts(values)
        kinetic = np.asarray(self.equations.tree.kinetic_energy(q, qd))
        return kinetic, self.equations.potential(q), *values[:, self.equations.n :].T

    def _all(self) -> Array:
        return np.concatenate(self.values, axis=1).T
