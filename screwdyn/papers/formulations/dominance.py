"""Dominance of translation and rotation in the equations of motion, and simplified models: Fu 1987, section 3.4.1.

Fu's equations Σ_j (D_ij^tran + D_ij^rot) θ̈_j + h_i^tran + h_i^rot + c_i = τ_i (Eq. 3.4-24, `GeneralizedDAlembert`)
separate what the translation and the rotation of the links contribute. Along a trajectory, the parts that hardly matter
can be left out.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from screwdyn.backends.tape.tape import Tape
from screwdyn.backends.tape.trace import inputs
from screwdyn.core import Array, ArrayLike, ScrewdynError, ShapeError, UnboundSymbolError, expressions
from screwdyn.mechanism.structure import Mechanism
from screwdyn.papers.formulations.formulation import symbolic
from screwdyn.papers.formulations.fu import GeneralizedDAlembert
from screwdyn.screws.screw import shaped

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Parts", "SimplifiedModel", "TorqueError", "parts", "simplified"]

_GROUPS = ("q", "qd", "qdd")


class Parts(NamedTuple):
    """The translational and rotational parts of D and h, at the k set points of a trajectory.

    Attributes
    ----------
    D_tran, D_rot : (k, n, n) arrays
        Fu Eq. 3.4-25; their sum is the mass matrix, kg m².
    h_tran, h_rot : (k, n) arrays
        Fu Eqs. 3.4-26 and 3.4-27; their sum is C q̇, N m.
    """

    D_tran: Array
    D_rot: Array
    h_tran: Array
    h_rot: Array

    def translational_share(self) -> tuple[Array, Array]:
        """rms(tran) / (rms(tran) + rms(rot)) of every D_ij, (n, n), and h_i, (n,): 1 where only translation matters.

        NaN where both parts are zero along the trajectory; the share of an element that is zero but for rounding has
        no meaning.
        """
        D_tran, D_rot, h_tran, h_rot = (np.sqrt((x**2).mean(axis=0)) for x in self)
        with np.errstate(invalid="ignore"):
            return D_tran / (D_tran + D_rot), h_tran / (h_tran + h_rot)

    def plot(self) -> Figure:
        """Draw both parts of every D_ij, i ≤ j, and h_i, and their sums, over the set points, as Fu's Figs. 3.10, 3.11.

        Returns
        -------
        matplotlib.figure.Figure
            D_ij in row i and column j, the h_i in a row below.

        Raises
        ------
        ScrewdynError
            If Matplotlib, the extra ``plot``, is not installed.
        """
        from screwdyn.views.figures import blank_figure

        k, n = self.h_tran.shape
        figure = blank_figure(2.4 * n + 1.0, 1.9 * (n + 1))
        grid = figure.add_gridspec(n + 1, n, height_ratios=[1.0] * n + [1.15])
        cells = [
            (grid[i, j], self.D_tran[:, i, j], self.D_rot[:, i, j], f"$D_{{{i + 1}{j + 1}}}$ (kg m²)")
            for i in range(n)
            for j in range(i, n)
        ]
        cells += [(grid[n, i], self.h_tran[:, i], self.h_rot[:, i], f"$h_{i + 1}$ (N m)") for i in range(n)]
        for place, tran, rot, title in cells:
            ax = figure.add_subplot(place)
            for x, style, color, label in (
                (tran, "-", "#0072B2", "translational"),
                (rot, "-", "#D55E00", "rotational"),
                (tran + rot, "--", "black", "sum"),
            ):
                ax.plot(np.arange(1, k + 1), x, style, color=color, lw=1.4, label=label)
            _finish(ax, title)
        for ax in figure.axes[-n:]:
            ax.set_xlabel("set point", fontsize=8)
        figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside upper left", ncols=3, frameon=False)
        return figure


def parts(tree: Mechanism, trajectory: Any) -> Parts:
    """The translational and rotational parts of D and h along a trajectory.

    Parameters
    ----------
    tree : KinematicTree
        With revolute joints, as `formulations.generalized_dalembert` requires.
    trajectory : Run, selection.Trajectory, or three (k, n) arrays
        q, q̇ and q̈ at k ≥ 1 set points: three arrays, or an object that has them as ``q``, ``qd`` and ``qdd``.

    Raises
    ------
    ScrewdynError
        If the tree has other joints.
    UnboundSymbolError
        If numbers of the tree are symbols.
    ShapeError
        If the trajectory has a wrong shape, or entries that are not finite.

    Examples
    --------
    >>> import screwdyn as sd
    >>> found = sd.formulations.dominance.parts(sd.robots.two_link(), ([[0, 0]], [[1, 1]], [[0, 0]]))
    >>> print(found.D_tran[0].round(3))
    [[2.5  0.75]
     [0.75 0.25]]
    >>> print(found.D_rot[0].round(3))
    [[0.167 0.083]
     [0.083 0.083]]
    """
    equations = FuEquations(tree)
    return equations.parts_at(equations.set_points(trajectory))


class FuEquations:
    """Fu's equations of one tree on a tape: each part is computed only if a result depends on it."""

    def __init__(self, tree: Mechanism) -> None:
        fu = GeneralizedDAlembert(tree)
        if symbols := expressions.free_symbols(symbolic(vars(fu))):
            raise UnboundSymbolError.of(symbols, "the robot")
        self.coordinates, self.tape = fu.coordinates, Tape()
        state: list[Any] = [inputs(self.tape, group, range(len(fu.coordinates))) for group in _GROUPS]
        q, qd, self._qdd = state
        x, rates = fu.joint_positions(q), fu.joint_rates(qd)
        D_rot = fu.D_rot(x) + np.diag(fu.armature)  # the rotation of motors
        self.parts = Parts(*map(fu.contracted, (fu.D_tran(x), D_rot, fu.h_tran(x, rates), fu.h_rot(x, rates))))
        self._c = fu.contracted(fu.c(x))
        self.all = Parts(*(np.full(x.shape, True) for x in self.parts))
        self.all_torques = self.torque(self.all)

    def torque(self, kept: Parts) -> Array:
        """τ of the kept parts (Eq. 3.4-24), recorded."""
        D_tran, D_rot, h_tran, h_rot = (np.where(k, x, 0.0) for k, x in zip(kept, self.parts, strict=True))
        return (D_tran + D_rot) @ self._qdd + h_tran + h_rot + self._c

    def set_points(self, trajectory: Any) -> Array:
        """The trajectory as an array (3, k, n), k ≥ 1."""
        given = trajectory
        if not isinstance(trajectory, Sequence | np.ndarray):
            given = [getattr(trajectory, group) for group in _GROUPS if hasattr(trajectory, group)]
        if len(given) != 3:
            got = len(given) if given is trajectory else repr(trajectory)
            expected = "three arrays, q, qd and qdd, or an object that has them, such as a Run"
            raise ShapeError(f"a trajectory is {expected}; got {got}")
        state = self.checked(*given)
        if state.ndim != 3 or not state.shape[1]:
            raise ShapeError(f"q, qd and qdd must have shape (set points, {state.shape[-1]}); got {state.shape[1:]}")
        return state

    def checked(self, *state: ArrayLike) -> Array:
        """q, q̇ and q̈ (…, n) as an array (3, …, n)."""
        n = len(self.coordinates)
        arrays = [shaped(x, (n,), name) for x, name in zip(state, _GROUPS, strict=True)]
        if len({x.shape for x in arrays}) > 1:
            shapes = ", ".join(f"{name} {x.shape}" for x, name in zip(arrays, _GROUPS, strict=True))
            raise ShapeError(f"q, qd and qdd must have the same shape (…, {n}); got {shapes}")
        return np.stack(arrays)

    def evaluated(self, outputs: Array, state: Array) -> Array:
        """Values of recorded results at states (3, …, n)."""
        values: dict[Hashable, Array] = {
            (group, i): x[..., i] for group, x in zip(_GROUPS, state, strict=True) for i in range(state.shape[-1])
        }
        batch = state.shape[1:-1]
        found = self.tape.evaluate(outputs.ravel().tolist(), values, np)
        entries = [np.broadcast_to(x, batch) for x in found]
        return np.array(entries).reshape(outputs.size, math.prod(batch)).T.reshape(*batch, *outputs.shape)

    def parts_at(self, state: Array) -> Parts:
        """The parts at states (3, …, n)."""
        return Parts(*(self.evaluated(x, state) for x in self.parts))


def simplified(tree: Mechanism, trajectory: Any, tolerance: float) -> SimplifiedModel:
    """Propose a model without the parts of D and h that hardly matter along a trajectory.

    The parts are D_ij^tran, D_ij^rot (together with D_ji, so that D stays symmetric), h_i^tran and h_i^rot; gravity is
    kept. In the order of their largest torque relative to the peak of its joint, smallest first, each part is left out
    if the error of all parts left out so far then remains within the tolerance, for every joint at every set point.

    Parameters
    ----------
    tree, trajectory
        As for :func:`parts`.
    tolerance : float
        Largest torque error of a joint at the set points, as a fraction of the largest torque of that joint there, ≥ 0.

    Returns
    -------
    SimplifiedModel
        Its ``error`` is that of its own torques along the trajectory.

    Raises
    ------
    ScrewdynError, UnboundSymbolError, ShapeError
        As for :func:`parts`, and if the tolerance is not a number ≥ 0.
    """
    number = isinstance(tolerance, float | int | np.number) and not isinstance(tolerance, bool)
    if not (number and 0 <= tolerance < np.inf):
        raise ScrewdynError(f"tolerance must be a fraction of the largest torques, ≥ 0; got {tolerance!r}")
    equations = FuEquations(tree)
    state = equations.set_points(trajectory)
    peak = np.abs(equations.evaluated(equations.all_torques, state)).max(axis=0)
    torques = _torques(equations.parts_at(state), state[2])
    kept, error = Parts(*map(np.copy, equations.all)), np.zeros_like(state[2])
    for (name, *index), torque in sorted(torques.items(), key=lambda item: _ratio(np.abs(item[1]), peak).max()):
        if (np.abs(error + torque) <= tolerance * peak).all():
            error = error + torque
            part = getattr(kept, name)
            part[tuple(index)] = part[tuple(reversed(index))] = False
    return SimplifiedModel(equations, kept, float(tolerance), state)


def _torques(found: Parts, qdd: Array) -> dict[tuple[Any, ...], Array]:
    """The torque of each part alone, (k, n), by name and indices, i or i ≤ j; that of D_ij includes D_ji."""
    torques: dict[tuple[Any, ...], Array] = {}
    for name, values in found._asdict().items():
        for index in itertools.combinations_with_replacement(range(qdd.shape[1]), values.ndim - 1):
            torque = torques[name, *index] = np.zeros_like(qdd)
            if len(index) == 1:
                torque[:, index] = values[:, index]
            else:
                i, j = index
                torque[:, i], torque[:, j] = values[:, i, j] * qdd[:, j], values[:, j, i] * qdd[:, i]
    return torques


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
        return _ratio(self.max, self.peak)


def _ratio(error: Array, peak: Array) -> Array:
    """error / peak, where 0 / 0 is 0."""
    return np.divide(error, peak, out=np.where(error > 0, np.inf, 0.0), where=peak > 0)


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

    _equations: FuEquations
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

    def error_along(self, trajectory: Any) -> TorqueError:
        """Error along another trajectory, given as for :func:`parts`, for which the tolerance is no bound.

        ShapeError if the trajectory has a wrong shape, or entries that are not finite.
        """
        full, own = self._torques(self._equations.set_points(trajectory))
        return TorqueError(np.abs(own - full).max(0), np.sqrt(((own - full) ** 2).mean(0)), np.abs(full).max(0))

    def _torques(self, state: Array) -> tuple[Array, Array]:
        """τ of the full and of this model at states (3, …, n)."""
        outputs = np.stack([self._equations.all_torques, self._outputs])
        full, own = np.moveaxis(self._equations.evaluated(outputs, state), -2, 0)
        return full, own

    def operation_count(self) -> dict[str, int]:
        """Operations of inverse dynamics: "mul", "add", "div" and "sincos", as `KinematicTree.operation_count`."""
        return self._equations.tape.count(self._outputs.tolist())

    def full_operation_count(self) -> dict[str, int]:
        """The same for the equations with all parts."""
        return self._equations.tape.count(self._equations.all_torques.tolist())

    def plot(self) -> Figure:
        """Draw the torques of the full and of the simplified model over the set points, and their difference.

        Result and error as for :meth:`Parts.plot`.
        """
        from screwdyn.views.figures import blank_figure

        names, (full, own) = self.coordinates, self._torques(self.trajectory)
        figure = blank_figure(11.0, 1.7 * len(names) + 0.6)
        axes, points = figure.subplots(len(names), 2, squeeze=False), np.arange(1, len(full) + 1)
        for name, (left, right), exact, tau in zip(names, axes, full.T, own.T, strict=True):
            left.plot(points, exact, color="black", lw=1.6, label="full")
            left.plot(points, tau, "--", color="#D55E00", lw=1.6, label="simplified")
            right.plot(points, tau - exact, color="#D55E00", lw=1.4)
            _finish(left, f"{name} (N m)")
            _finish(right, "error (N m)")
        axes[0, 0].legend(frameon=False, fontsize=8)
        for ax in axes[-1]:
            ax.set_xlabel("set point", fontsize=8)
        return figure

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


def _labels(translation: Array, rotation: Array) -> Array:
    return np.where(translation, np.where(rotation, "tr", "t·"), np.where(rotation, "·r", "··"))


def _finish(ax: Any, title: str) -> None:
    ax.set_title(title, loc="left", fontsize=9)
    ax.grid(alpha=0.25)
    ax.tick_params(labelsize=7)
    ax.spines[["top", "right"]].set_visible(False)
