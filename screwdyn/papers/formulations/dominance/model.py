"""A model without some parts of D and h, and its torque error."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from screwdyn.core.types import Array, ArrayLike
from screwdyn.papers.formulations.dominance.equations import Equations, Trajectory
from screwdyn.papers.formulations.dominance.parts import Parts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SimplifiedModel", "TorqueError", "ratio"]


class TorqueError(NamedTuple):
    """Error of the torques of a simplified model along a trajectory, for each joint.

    Attributes
    ----------
    max, rms : (n,) arrays
        Largest magnitude and root mean square, N m.
    peak : (n,) array
        Largest magnitude of the torque of the full model, N m.
    """

    max: Array
    rms: Array
    peak: Array

    @property
    def relative(self) -> Array:
        """``max`` over ``peak``, (n,); 0 where the error is 0."""
        return ratio(self.max, self.peak)


@dataclass(frozen=True, repr=False)
class SimplifiedModel:
    """Fu's equations with some parts left out, for inverse dynamics near the trajectory that it was made for.

    Gravity and all kept parts are exact at any state; what is left out was small along the trajectory only. The mass
    matrix is symmetric, but it may be indefinite: do not solve it for accelerations.

    Attributes
    ----------
    kept : Parts
        True for the parts that are kept, (n, n) and (n,).
    tolerance : float
    trajectory : (3, k, n) array
        q, q̇ and q̈.
    """

    _equations: Equations
    kept: Parts
    tolerance: float
    trajectory: Array

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the n joints."""
        return self._equations.coordinates

    @cached_property
    def _outputs(self) -> Array:
        return self._equations.torque(self.kept)

    def inverse_dynamics(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
        """τ of the kept parts, (…, n), N m, without friction; the computation omits the other parts.

        ShapeError if the arguments are not (…, n) arrays of one shape of finite numbers.
        """
        return self._equations.evaluated(self._outputs, self._equations.checked(q, qd, qdd))

    @cached_property
    def error(self) -> TorqueError:
        """Error along the trajectory of the model, at most ``tolerance`` relative to the peaks, up to rounding."""
        return self.error_along(self.trajectory)

    def error_along(self, trajectory: Trajectory) -> TorqueError:
        """Error along another trajectory, for which the tolerance is no bound.

        Parameters
        ----------
        trajectory : Run, selection.Trajectory, or three (k, n) arrays
            As for :func:`parts`.

        Raises
        ------
        ShapeError
            If the trajectory has a wrong shape, or entries that are not finite.
        """
        state = self._equations.set_points(trajectory)
        exact = self._equations.full(state)
        error = self._equations.evaluated(self._outputs, state) - exact
        return TorqueError(np.abs(error).max(axis=0), np.sqrt((error**2).mean(axis=0)), np.abs(exact).max(axis=0))

    def operation_count(self) -> dict[str, int]:
        """Operations of inverse dynamics: "mul", "add", "div" and "sincos", as `KinematicTree.operation_count`."""
        return self._equations.count(self._outputs)

    def full_operation_count(self) -> dict[str, int]:
        """The same for the equations with all parts."""
        return self._equations.count(self._equations.all_torques)

    def plot(self) -> Figure:
        """Draw the torques of the full and of the simplified model over the set points, and their difference.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        ScrewdynError
            If Matplotlib, the extra ``plot``, is not installed.
        """
        from screwdyn.papers.formulations.dominance.figure import plot_torques

        state = self.trajectory
        return plot_torques(self.coordinates, self._equations.full(state), self.inverse_dynamics(*state))

    def __repr__(self) -> str:
        kept = self.kept
        D, h = _labels(kept.D_tran, kept.D_rot), _labels(kept.h_tran, kept.h_rot)
        error, width = self.error, max(map(len, self.coordinates), default=0)
        lines = [f"SimplifiedModel: parts kept for a tolerance of {self.tolerance:g} (t: translation, r: rotation)"]
        for i, name in enumerate(self.coordinates):
            worst = f"{error.relative[i]:.2%} of {error.peak[i]:.3g} N m"
            lines.append(f"  {name:{width}}  D: {'  '.join(D[i])}  h: {h[i]}  error: {worst}")
        few, all_ = self.operation_count(), self.full_operation_count()
        lines.append(f"  multiplications/additions: {few['mul']}/{few['add']} of {all_['mul']}/{all_['add']}")
        return "\n".join(lines)


def ratio(error: Array, peak: Array) -> Array:
    """error / peak, where 0 / 0 is 0."""
    return np.divide(error, peak, out=np.where(error > 0, np.inf, 0.0), where=peak > 0)


def _labels(translation: Array, rotation: Array) -> Array:
    return np.where(translation, np.where(rotation, "tr", "t·"), np.where(rotation, "·r", "··"))
