"""Torques and loads observed through the momentum p = M q̇, without accelerations. docs/control.md."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from itertools import compress
from typing import Any

import numpy as np

from screwdyn.control.laws import LEAST, number, since
from screwdyn.core import Array, ArrayLike, ScrewdynError, ShapeError, UnknownNameError
from screwdyn.mechanism import Inertia, Topology, check_open
from screwdyn.physics import Robot, State, by_name
from screwdyn.physics.quantities import Result
from screwdyn.robots.identification import consistent_fit, is_consistent

# Eigenvalue of the information, of unit diagonal, below which a direction counts as not determined.
_UNDETERMINED = 1e-9
# What an estimator keeps in C between calls, with its shape; "v" is the number of freedoms.
_KEPT: dict[str, tuple[Any, ...]] = {
    "_information": (10, 10),
    "_sum": (10,),
    "windows": (),
    "_columns": ("v", 10),
    "_known": ("v",),
    "_last_columns": ("v", 10),
    "_last_rate": ("v",),
    "_torques": (),
    "_left": (),
}


class _Momentum:
    """p, and the integral of what changes it: τ, which is held between calls, own forces of joints, Cᵀ q̇ − g."""

    def __init__(self) -> None:
        self.topology: Topology | None = None
        self.time: float | None = None

    def begins(self, t: float, state: State, what: str) -> bool:
        """Note the tree and the time; whether the tree is another one. ScrewdynError if time went back."""
        period = since(self.time, t, state, what)
        new = state.topology is not self.topology
        if new:
            check_open(state.topology, f"the {what}")
            self.topology = state.topology
            self.watch(state.tree)
        self.period, self.time = period, t
        return new

    def watch(self, tree: Robot) -> None:
        """Note the tree."""
        self.tree, self.forces = tree, tree.model.joint_forces.acting

    def rate(self, state: State) -> Array:
        """Cᵀ q̇ − g and the own forces of joints, (nv,), N m or N."""
        tree, q, qd = self.tree, state.q, state.qd
        rate = tree.transposed_velocity_product(q, qd) - tree.gravity_vector(q)
        return rate + tree.joint_force(q, qd) if self.forces else rate

    def torque(self, tau: ArrayLike) -> Array:
        """Torques of all freedoms; ShapeError for a wrong shape or an entry that is not finite."""
        names = self.tree.coordinates
        if isinstance(tau, Mapping):
            found = by_name(self.tree, "tau", tau, names)
            tau = [found.get(name, 0.0) for name in names]
        given = self.tree.model.numbers("tau", tau)
        if not np.isfinite(given).all():
            raise ShapeError(f"tau is {given[~np.isfinite(given)][0]} in an entry; every entry must be finite")
        return given if given.shape == (len(names),) else np.asarray(self.tree.model.torques(given))


class MomentumObserver:
    """External torques without accelerations: r follows them with ṙ = K (τ_ext − r) (De Luca and Mattone 2003).

    r = K (p − ∫ (τ + Cᵀ q̇ − g + own forces + r) dt) with p = M q̇ (docs/mathematics.md §4). A payload that is lost or
    not in the model shows as its weight, a collision as its force. With another tree, r of the freedoms that remain
    goes on, so that a grasp that the model knows leaves it as it was.

    Parameters
    ----------
    gain : float
        K, 1/s: the bandwidth; larger ones let more noise of the rates pass.
    threshold : float
        Torque above which a freedom is in ``alarms``, N m or N.

    Attributes
    ----------
    residual : (nv,) array
        r, N m or N, after the last call.
    alarms : tuple of str
        Coordinates whose ``|r|`` exceeds the threshold.

    Raises
    ------
    ScrewdynError
        If the gain or the threshold is not positive; in a call, if time goes back.
    LoopError, ShapeError
        In a call, for a tree with closed loops, or torques of a wrong shape.
    """

    def __init__(self, gain: float = 50.0, threshold: float = np.inf) -> None:
        self.gain, self.threshold = number("gain", gain, LEAST), number("threshold", threshold, LEAST, finite=False)
        self.residual, self._names = np.zeros(0), tuple[str, ...]()
        self._momentum = _Momentum()

    @property
    def alarms(self) -> tuple[str, ...]:
        """Coordinates whose ``|r|`` exceeds the threshold."""
        return tuple(self._names[k] for k in np.flatnonzero(np.abs(self.residual) > self.threshold))

    def __call__(self, t: float, state: State, tau: ArrayLike) -> Array:
        """r, (nv,), N m or N.

        Parameters
        ----------
        t : float
            s, from 0 on or later; not before that of the last call.
        state : State
        tau : (nv,) or (number of active freedoms,) array, or mapping from coordinate to torque
            The torques that have acted since the last call, not those that the law gives now; of no effect in the first
            call.
        """
        seen = self._momentum
        if seen.begins(t, state, "observer"):
            old = dict(zip(self._names, self.residual.tolist(), strict=True))
            self._names = seen.tree.coordinates
            self.residual = np.array([old.get(name, 0.0) for name in self._names])
            self._offset, self._rate = self._begun(state)
        else:
            self._move(state, seen.torque(tau), seen.period)
        return self.residual

    def _begun(self, state: State) -> tuple[Array, Array]:
        """The integral with which r is as it is, and the present rate."""
        seen = self._momentum
        return seen.tree.joint_momentum(state.q, state.qd) - self.residual / self.gain, seen.rate(state)

    def _move(self, state: State, tau: Array, period: float) -> None:
        seen, rate = self._momentum, self._momentum.rate(state)
        offset = self._offset + period * (tau + 0.5 * (self._rate + rate))
        # The integral of r by its new value: stable for any period.
        excess = seen.tree.joint_momentum(state.q, state.qd) - offset
        self.residual = self.gain * excess / (1.0 + self.gain * period)
        self._offset, self._rate = offset + period * self.residual, rate

    def _in_c(self, tree: Robot) -> Any:
        from screwdyn.control.in_c import request

        result = Result("residual", ("v",), "N m or N")
        return request(self, tree, ("q", "qd", "tau", "dt"), result, "offset", "rate", "external", "carried")

    def _recorded(self, at: Any) -> list[Any]:
        from screwdyn.control.in_c import chosen, positive

        one, n, bits = copy.copy(self), at.nv, at.bits
        one._momentum = _Momentum()
        one._momentum.watch(at)
        one._offset, one._rate, before = (at.kept(x, n) for x in ("offset", "rate", "external"))
        changed = at.kept("carried", len(bits)) - bits
        one.residual = before
        begun = *one._begun(at), before
        one._move(at, at.inputs("tau", n), at.dt)
        moved = one._offset, one._rate, one.residual
        offset, rate, r = (chosen(positive(changed @ changed), x, y) for x, y in zip(begun, moved, strict=True))
        return [r * at.present, offset, rate, r * at.present, bits]

    def around(self, law: Callable[[float, State], Any]) -> Callable[[float, State], Any]:
        """The law, which then also calls this observer, with the torques that the law has returned before."""
        held: Any = {}

        def observed(t: float, state: State) -> Any:
            nonlocal held
            self(t, state, held)
            held = law(t, state)
            return held

        observed.derivative = None  # type: ignore[attr-defined]  # observers have a memory
        return observed


class PayloadEstimator:
    """The ten inertial parameters of a link from torques, while the robot moves, with their covariance.

    Over each window p(t₁) − p(t₀) − ∫ (τ + Cᵀ q̇ − g + own forces) dt = 0 is linear in the parameters
    (docs/mathematics.md §4); information adds up, without accelerations. The inertia that the tree has for the link
    does not matter. A free base adds the conservation of its momentum.

    Parameters
    ----------
    link : str
        Such as a payload without inertia: ``tree.attach(sd.Link("crate"), to="tool0")``.
    noise : float or mapping from coordinate to float
        Standard deviation of each measured torque, independent in each call, N m or N; 0 for freedoms without motors.
    momentum_noise : float or mapping from coordinate to float
        Standard deviation of each p = M q̇ by the noise of rates, N m s or N s.
    window : int
        Calls in each window, at least 1. Long ones average torques, short ones excite more.

    Attributes
    ----------
    windows : int
        Number of windows so far.

    Raises
    ------
    ScrewdynError
        If both noises of a freedom are zero, or the window is less than 1; in a call, if time goes back.
    UnknownNameError, LoopError, ShapeError
        In a call: if the tree lacks the link; if it has closed loops; for torques of a wrong shape.
    """

    def __init__(
        self,
        link: str,
        *,
        noise: float | Mapping[str, float],
        momentum_noise: float | Mapping[str, float] = 0.0,
        window: int = 20,
    ) -> None:
        if not number("window", window, 1).is_integer():
            raise ScrewdynError(f"window must be a whole number of calls; got {window!r}")
        for what, given in (("noise", noise), ("momentum_noise", momentum_noise)):
            for name, x in given.items() if isinstance(given, Mapping) else [("", given)]:
                number(f"{what} of {name!r}" if name else what, x)
        self.link, self.window, self.windows = link, int(window), 0
        self._noise, self._momentum_noise = noise, momentum_noise
        self._momentum = _Momentum()
        self._information, self._sum = np.zeros((10, 10)), np.zeros(10)
        # Of the present window: calls to come; its sums; what the last call gave.
        self._left, self._torques = 0, 0.0
        self._columns = self._last_columns = np.zeros((0, 10))
        self._known = self._last_rate = np.zeros(0)

    def __call__(self, t: float, state: State, tau: ArrayLike) -> None:
        """Take one measurement; arguments as for :class:`MomentumObserver`."""
        seen = self._momentum
        new = seen.begins(t, state, "estimator")
        tree, q, qd = seen.tree, state.q, state.qd
        if new:
            self._watch(tree)
        Y, rate = self._rates(state)
        if self._left:
            self._integrate(Y, rate, seen.torque(tau), seen.period)
            if not self._left:
                self._add(*self._momenta(tree, q, qd))
                self.windows += 1
        else:
            # A window begins one call after the last one has ended, so that their noise is independent.
            P, p = self._momenta(tree, q, qd)
            self._columns, self._known, self._torques, self._left = P, p, 0.0, self.window
        self._last_columns, self._last_rate = Y, rate

    def _watch(self, tree: Robot) -> None:
        """Note the tree; errors as of a call."""
        UnknownNameError.check(self.link, tree.links)
        body = tree.link(self.link).inertia
        self._of_tree = np.zeros(10) if body is None else body.parameters
        self._variances = self._of(tree, self._noise), self._of(tree, self._momentum_noise)
        if not (known := self._variances[0] + self._variances[1] > 0).all():
            lacking = ", ".join(compress(tree.coordinates, ~known))
            raise ScrewdynError(f"each freedom needs a noise of its torque or of its momentum above 0: {lacking}")
        self._left = 0

    def _rates(self, state: State) -> tuple[Array, Array]:
        """The regressor of the link in what changes p besides torques, and what changes p of all other links."""
        Y = self._momentum.tree.momentum_rate_regressor(self.link, state.q, state.qd)
        return Y, self._momentum.rate(state) - Y @ self._of_tree

    def _integrate(self, Y: Array, rate: Array, tau: Array, period: float) -> None:
        """Add a period to the sums of the window."""
        self._columns = self._columns + 0.5 * period * (self._last_columns + Y)
        self._known = self._known + period * (tau + 0.5 * (self._last_rate + rate))
        self._torques += period * period
        self._left -= 1

    def _of(self, tree: Robot, noise: float | Mapping[str, float]) -> Array:
        """Variances of all freedoms."""
        if isinstance(noise, Mapping):
            for name in noise:
                UnknownNameError.check(name, tree.coordinates, "coordinate")
            return np.array([noise.get(name, 0.0) for name in tree.coordinates]) ** 2
        return np.full(tree.nv, float(noise)) ** 2

    def _momenta(self, tree: Robot, q: Array, qd: Array) -> tuple[Array, Array]:
        """The regressor of the link in p, and p of all other links."""
        P = tree.momentum_regressor(self.link, q, qd)
        return P, tree.joint_momentum(q, qd) - P @ self._of_tree

    def _add(self, P: Array, p: Array) -> None:
        """Add what a window says: (P − columns) π = known − p, with the variance of the sums."""
        A, b = P - self._columns, self._known - p
        weights = 1.0 / (self._torques * self._variances[0] + 2.0 * self._variances[1])
        self._information = self._information + A.T @ (weights[:, None] * A)
        self._sum = self._sum + A.T @ (weights * b)

    def _in_c(self, tree: Robot) -> Any:
        from screwdyn.control.in_c import request

        result, given = Result("parameters", (10,), "kg, kg m and kg m^2"), ("q", "qd", "tau", "dt")
        return request(self, tree, given, result, *(name.strip("_") for name in _KEPT), "carried")

    def _recorded(self, at: Any) -> list[Any]:
        from screwdyn.control.in_c import chosen, least_squares, positive

        one, bits, has = copy.copy(self), at.bits, at.has(self.link)
        one._momentum = _Momentum()
        one._momentum.watch(at)
        one._watch(at)
        one._of_tree = at.numbers(one._of_tree)
        for name, shape in _KEPT.items():
            sizes = [at.nv if x == "v" else x for x in shape]
            setattr(one, name, at.kept(name.strip("_"), math.prod(sizes)).reshape(sizes)[()])
        before = vars(one).copy()
        changed = at.kept("carried", len(bits)) - bits
        goes_on = positive(before["_left"]) * (1.0 - positive(changed @ changed))
        Y, rate = one._rates(at)
        one._integrate(Y, rate, at.inputs("tau", at.nv), at.dt)
        ends = goes_on * (1.0 - positive(one._left - 0.5))
        P, p = one._momenta(at, at.q, at.qd)
        # The variance of a window that has no duration yet may be zero.
        one._torques, torques = chosen(ends, one._torques, 1.0), one._torques
        one._add(P, p)
        begun = {"_columns": P, "_known": p, "_torques": 0.0, "_left": float(self.window)}
        now = vars(one) | {"_torques": torques, "_last_columns": Y, "_last_rate": rate, "windows": one.windows + ends}
        now |= {name: chosen(goes_on, now[name], x) for name, x in begun.items()}
        now |= {name: chosen(ends, now[name], before[name]) for name in ("_information", "_sum")}
        kept = [np.atleast_1d(has * now[name]) for name in _KEPT]
        return [least_squares(kept[0], kept[1], at.single), *kept, bits]

    @property
    def _scaled(self) -> tuple[Array, Array, Array]:
        """Lengths of the parameters' columns, eigenvalues and eigenvectors of the information of unit diagonal."""
        size = np.sqrt(np.diag(self._information))
        size = np.where(size > 0, size, 1.0)
        values, axes = np.linalg.eigh(self._information / np.outer(size, size))
        return size, values, axes

    @property
    def covariance(self) -> Array:
        """Of [m, hx, hy, hz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz], (10, 10).

        What is not determined, as all is before the end of the first window, has an infinite variance, and NaN for its
        covariances.
        """
        size, values, axes = self._scaled
        known = values > _UNDETERMINED
        root = axes[:, known] / np.sqrt(values[known])
        covariance = np.asarray(root @ root.T / np.outer(size, size))
        free = np.any(np.abs(axes[:, ~known]) > 1e-6, axis=1)
        covariance[free] = covariance[:, free] = np.nan
        covariance[free, free] = np.inf
        return covariance

    @property
    def parameters(self) -> Array:
        """Least squares of the ten parameters, (10,), kg, kg m and kg m², of least norm where data leave them open."""
        size, values, axes = self._scaled
        known = axes[:, values > _UNDETERMINED]
        return np.asarray(known @ (known.T @ (self._sum / size) / values[values > _UNDETERMINED]) / size)

    @property
    def inertia(self) -> Inertia:
        """The nearest body that can exist, in the metric of the information.

        Raises
        ------
        ScrewdynError
            Before the end of the first window.
        """
        if not self.windows:
            raise ScrewdynError(f"no window has ended yet; call the estimator {self.window + 1} times")
        x = self.parameters
        if not is_consistent(x):
            size, values, axes = self._scaled
            A = np.sqrt(np.maximum(values, 0.0))[:, None] * axes.T * size
            x = consistent_fit(A, A @ x, x)
        return Inertia.from_parameters(x)
