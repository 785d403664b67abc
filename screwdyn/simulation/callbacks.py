"""The user's functions for torques and external wrenches: calls, and checks of what they return."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import numpy as np

from screwdyn.core.errors import JointError, ScrewdynError, ShapeError, TopologyError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.physics.model import Model
from screwdyn.physics.robot import Robot
from screwdyn.physics.state import State, by_name

__all__ = ["Controller", "Disturbance", "SampledController", "Torque", "Wrenches", "guarded", "joint_torques"]

T = TypeVar("T")
Torque = Callable[[float, State], ArrayLike | Mapping[str, ArrayLike]]
Wrenches = Callable[[float, State], Mapping[str, ArrayLike]]

# Torque on a passive joint, relative to the largest torque of the call, that counts as rounding and is set to zero.
ROUNDING = 1e-9


def guarded(function: Callable[[float, State], T], tree: Robot) -> Callable[[float, State], T]:
    """A function of the user, which raises TopologyError if a call changes the simulated tree."""

    def call(t: float, state: State) -> T:
        before = tree.topology
        value = function(t, state)
        if tree.topology is not before:
            raise TopologyError(
                f"a function changed the simulated tree at t = {t:.6g} s; use events= for changes during a run, and a "
                f"copy, such as state.tree, for anything else"
            )
        return value

    return call


class Controller:
    """The torques as a function of time and state.

    Parameters
    ----------
    torque : callable (t, state) -> torques
    saturate : bool
        Whether the torques are clipped at the efforts of the joints.
    """

    # Time of the next call, s, up to which torques are held; infinite if the function is called for every trial.
    next_call = np.inf

    @property
    def tried(self) -> bool:
        """Whether the function is called for trial states of the integrator."""
        return self.next_call == np.inf

    def __init__(self, torque: Torque, saturate: bool = False) -> None:
        self.torque, self.saturate = torque, saturate

    def enter(self, tree: Robot) -> None:
        """Begin with a tree or continue with the changed tree."""
        self.tree, self.model = tree, tree.model
        efforts = [joint.effort if self.saturate else None for joint in tree.model.joints if joint.mimic is None]
        self.largest = np.array([np.inf if effort is None else effort for effort in efforts])

    def sample(self, t: float, q: Array, qd: Array) -> None:
        """Call the function now if its output is held and the next call is due."""

    def __call__(self, t: float, q: Array, qd: Array) -> Array:
        """Torques, (nv,), N m or N; errors as for :func:`joint_torques`."""
        value = self.torque(t, State.unchecked(self.tree, self.model.coordinates, q, qd, self.model.positions))
        tau = joint_torques(self.tree, self.model, value, t)
        return np.clip(tau, -self.largest, self.largest) if self.saturate else tau


class SampledController(Controller):
    """Torques that are computed once in each period and held.

    Parameters
    ----------
    torque : callable (t, state) -> torques
    period : float
        Seconds between calls.
    start : float
        Time of the first call, s.
    saturate : bool
        As for :class:`Controller`.
    """

    def __init__(self, torque: Torque, period: float, start: float, saturate: bool = False) -> None:
        super().__init__(torque, saturate)
        self.period, self.start, self.calls = period, start, 0
        self.next_call = start
        self.held: dict[str, float] = {}

    def enter(self, tree: Robot) -> None:
        """Keep the torques of the coordinates that the tree still has; those of new ones are zero until the next call.

        The function is not called, because it may have a memory that counts its calls.
        """
        super().enter(tree)
        self._hold(np.array([self.held.get(name, 0.0) for name in self.model.coordinates]))

    def sample(self, t: float, q: Array, qd: Array) -> None:
        """Call the function if the next call is due."""
        if t >= self.next_call:
            self.calls += 1
            self.next_call = self.start + self.calls * self.period
            self._hold(super().__call__(t, q, qd).copy())

    def __call__(self, t: float, q: Array, qd: Array) -> Array:
        """The held torques, (nv,), N m or N."""
        return self.output

    def _hold(self, output: Array) -> None:
        self.output = output
        self.held = dict(zip(self.model.coordinates, output.tolist(), strict=True))


class Disturbance:
    """The joint forces of the external wrenches as a function of time and state.

    Parameters
    ----------
    wrenches : callable (t, state) -> mapping from link to (6,) array
    """

    def __init__(self, wrenches: Wrenches) -> None:
        self.wrenches = wrenches

    def enter(self, tree: Robot) -> None:
        """Begin with a tree or continue with the changed tree."""
        self.tree, self.model = tree, tree.model

    def __call__(self, t: float, q: Array, qd: Array) -> Array:
        """Σ J_iᵀ F_i, (nv,), N m or N.

        Raises
        ------
        ShapeError, UnknownNameError
            If the function returns anything but six finite numbers for each of some links.
        """
        value = self.wrenches(t, State.unchecked(self.tree, self.model.coordinates, q, qd, self.model.positions))
        if not isinstance(value, Mapping):
            raise ShapeError(
                f"wrenches returned {value!r} at t = {t:g} s; return {{link: [n; f]}}, or {{}} for no wrenches"
            )
        try:
            push = self.tree.wrench_torque(q, value)
        except ScrewdynError as error:
            error.add_note(f"in wrenches= at t = {t:g} s")
            raise
        if push.ndim != 1:
            shapes = {link: np.shape(F) for link, F in value.items()}
            raise ShapeError(f"wrenches must be six numbers [n; f] for each link; got shapes {shapes} at t = {t:g} s")
        return push


def joint_torques(tree: Robot, model: Model, value: object, t: float) -> Array:
    """Torques of all freedoms, (nv,), from what a callback returned at time t.

    Raises
    ------
    ShapeError, UnknownNameError
        If the value is neither an array over all or over the active freedoms nor a mapping from coordinates.
    JointError
        If there is a torque on a passive joint.
    """
    names, passive = model.coordinates, np.array(model.passive, dtype=bool)
    active = [name for name, loose in zip(names, model.passive, strict=True) if not loose]
    if value is None:
        raise ShapeError(
            f"torque returned None at t = {t:g} s; return the torques, as an array of {model.nv} numbers or as "
            f"{{coordinate: torque}}"
        )
    if isinstance(value, Mapping):
        given = by_name(tree, "torque", value, names)
        value = [given.get(name, 0.0) for name in names]
    tau = model.numbers("torque", value)  # type: ignore[arg-type]
    if tau.shape == (len(active),) != (model.nv,):
        tau, driven = np.zeros(model.nv), tau
        tau[~passive] = driven
    if tau.shape != (model.nv,):
        fewer = f", or for each active one: {', '.join(active)}" if 0 < len(active) < model.nv else ""
        raise ShapeError(
            f"torque has shape {tau.shape} at t = {t:g} s; expected one number for each of: "
            f"{', '.join(names) or 'no coordinates'}{fewer}; if events change the coordinates, return them by name, as "
            f"{{coordinate: torque}}"
        )
    finite = np.isfinite(tau)
    if not finite.all():
        i = int(np.argmin(finite))
        raise ShapeError(f"torque is {tau[i]} at {names[i]!r} at t = {t:g} s; every entry must be finite")
    size = np.where(passive, np.abs(tau), 0.0)
    if size.any():
        i = int(np.argmax(size))
        if size[i] > ROUNDING * np.abs(tau).max():
            raise JointError(
                f"joint {names[i]!r} is passive, but the torque on it is {tau[i]:g} at t = {t:g} s; return 0 for it"
            )
        tau = np.where(passive, 0.0, tau)
    return tau
