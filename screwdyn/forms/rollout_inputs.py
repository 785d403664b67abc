"""Arguments of a rollout: checks, and their arrays for the compiled code."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.errors import InertiaError, JointError, ScrewdynError, ShapeError, UnknownNameError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.mechanism.inertia import Inertia
from screwdyn.mechanism.rotors import check_no_rotor
from screwdyn.physics.link_steps import inertia_to_parent
from screwdyn.physics.model import Model
from screwdyn.physics.spatial import Pose, RigidInertia
from screwdyn.physics.steps import Feedback

__all__ = ["Inputs", "Payload"]

# Groups of inputs that only active freedoms have.
_DRIVEN = ("tau", "kp", "kd")
_UNTURNED = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
# Negative eigenvalue of a pseudo-inertia, relative to its largest one, that counts as rounding.
_ROUNDING = 1e-9


class Payload:
    """Inertial numbers of some links for every run, as numbers of the rows that carry them.

    Parameters
    ----------
    model : Model
    given : mapping from link to Inertia, sequence of Inertia or (…, 10) array

    Attributes
    ----------
    rows : tuple of int
        Rows that carry the links, in order.
    batch : tuple of int
        Batch axes of the inertias.
    bodies : (…, 10 · len(rows)) array
        Inertial numbers of all bodies of each of these rows, in place of those of the model. They are sums over the
        bodies, not changes of the model's sums: where all bodies are zero, so are the sums, without rounding.
    """

    def __init__(self, model: Model, given: Mapping[str, Any]) -> None:
        if not isinstance(given, Mapping):
            raise ScrewdynError(f"payload must be a mapping from link to inertia, {{'tool': …}}; got {given!r}")
        moved: dict[str, Array] = {}
        for name, value in given.items():
            at = model.placements.get(name)
            if at is None:
                raise UnknownNameError.of(name, model.placements)
            check_no_rotor(model.topology, name)
            m, x, y, z, *tensor = np.moveaxis(_parameters(model, name, value), -1, 0)
            inertia: Any = RigidInertia(m, (x, y, z), tuple(tensor))
            if at.coordinate is not None:
                moved[name] = np.stack(_moved(at.pose, inertia), axis=-1)
        try:
            self.batch = np.broadcast_shapes(*(x.shape[:-1] for x in moved.values()))
        except ValueError:
            shapes = ", ".join(f"{name!r} {x.shape[:-1]}" for name, x in moved.items())
            raise ShapeError(f"the batch axes of the payloads cannot be broadcast together: {shapes}") from None
        index = model.index
        sums = {index[model.placements[name].coordinate]: np.zeros((*self.batch, 10)) for name in moved}
        for name, at in model.placements.items():
            if index[at.coordinate] in sums:
                sums[index[at.coordinate]] += moved.get(name, at.body)
        self.rows = tuple(sorted(sums))
        self.bodies = np.concatenate([sums[row] for row in self.rows], axis=-1) if sums else np.zeros(0)


def _moved(pose: Pose, inertia: RigidInertia) -> list[Array]:
    """Ten arrays of numbers of inertias in a frame in which their own frame has this pose."""
    m, h, I = inertia_to_parent(pose, inertia)
    return [m, *h, *I]


def _parameters(model: Model, name: str, value: Any) -> Array:
    """Mass, first moment and inertia about the link's origin, (…, 10)."""
    what = f"payload[{name!r}]"
    if isinstance(value, Inertia):
        return expressions.floats(value.parameters, what)
    if isinstance(value, Sequence) and value and all(isinstance(x, Inertia) for x in value):
        # All bodies together, from their numbers about the centre of mass.
        given = np.array([(x.mass, *x.entries[0], *x.entries[1]) for x in value]).T
        m, x, y, z, *tensor = expressions.floats(given, what)
        about_com: Any = RigidInertia(m, (0.0, 0.0, 0.0), tuple(tensor))
        return np.stack(_moved(Pose(_UNTURNED, (x, y, z)), about_com), axis=-1)
    numbers = model.numbers(what, value)
    if numbers.ndim == 0 or numbers.shape[-1] != 10:
        raise ShapeError(
            f"{what} has shape {numbers.shape}; expected (…, 10): mass, first moment x, y, z and inertia about the "
            f"link's origin xx, xy, xz, yy, yz, zz of each run, or an Inertia for each run"
        )
    if not np.isfinite(numbers).all():
        raise ShapeError(f"{what} has entries that are not finite")
    m, x, y, z, xx, xy, xz, yy, yz, zz = np.moveaxis(numbers, -1, 0)
    half = (xx + yy + zz) / 2
    rows = [[half - xx, -xy, -xz, x], [-xy, half - yy, -yz, y], [-xz, -yz, half - zz, z], [x, y, z, m]]
    sizes = np.linalg.eigvalsh(np.moveaxis(np.array(rows), (0, 1), (-2, -1)))
    wrong = np.argwhere(sizes[..., 0] < -_ROUNDING * sizes[..., -1])
    if wrong.size:
        where = tuple(wrong[0].tolist())
        raise InertiaError(
            f"{what}{list(where) if where else ''} is the inertia of no rigid body: ∫ [r; 1] [r; 1]ᵀ dm has the "
            f"eigenvalue {sizes[where][0]:.3g}; the order is mass, first moment m c, xx, xy, xz, yy, yz, zz about the "
            f"link's origin"
        )
    return numbers


class Inputs:
    """Start states, torques and payloads of all runs, checked and broadcast.

    Parameters
    ----------
    model, q, qd, steps, torque, payload
        As for :meth:`Rollouts.rollout`.

    Attributes
    ----------
    batch : tuple of int
        Shape of the batch of runs.
    count : int
        Number of runs.
    q, qd : (count, n) arrays
        With quaternions of length 1.
    groups : tuple of str
        Groups of inputs that control the joints.
    loads : Payload
    call : callable or None
        The torque if it is a function.
    rows_per_step : int
        Number of entries of a run that vary with time.
    arrays : list of arrays
        Arrays of the user that must not be overwritten.
    """

    def __init__(
        self,
        model: Model,
        q: ArrayLike,
        qd: ArrayLike,
        steps: int,
        torque: Any,
        payload: Mapping[str, Any] | None,
    ) -> None:
        self._model = model
        self._passive = np.array(model.passive, dtype=bool)
        self.loads = Payload(model, {} if payload is None else payload)
        (q, qd), start = model.flat(q=q, qd=qd)
        q, qd = q.reshape(*start, model.nq), qd.reshape(*start, model.nv)
        self._axes = max(len(start), len(self.loads.batch))
        self.call: Callable[..., Any] | None = None
        control: dict[str, tuple[str, Any]] = {}
        if isinstance(torque, Feedback):
            control = {field: (f"torque.{field}", x) for field, x in torque._asdict().items()}
        elif callable(torque):
            self.call = torque
        elif torque is not None:
            control = {"tau": ("torque", torque)}
        self._control = {group: self._read(what, group, x, steps) for group, (what, x) in control.items()}
        self.groups = ("tau",) if self.call else tuple(self._control)
        leads = [start, self.loads.batch, *(x.shape[1:-1] for _, x in self._control.values())]
        try:
            self.batch = np.broadcast_shapes(*leads)
        except ValueError:
            names = ["q and qd", "payload", *(what for what, _ in self._control.values())]
            shapes = ", ".join(f"{name} {shape}" for name, shape in zip(names, leads, strict=True) if shape)
            raise ShapeError(f"the batch axes cannot be broadcast together: {shapes}") from None
        self.count = math.prod(self.batch)
        self.q = self._runs(model.configurations.normalized(q))
        self.qd = self._runs(qd)
        self._bodies = self._runs(self.loads.bodies) if self.loads.rows else None
        full = {group: (len(x), *self.batch, x.shape[-1]) for group, (_, x) in self._control.items()}
        self._steps = {
            group: np.broadcast_to(x, full[group]).reshape(len(x), self.count, x.shape[-1])
            for group, (_, x) in self._control.items()
        }
        self.rows_per_step = sum(x.shape[-1] for x in self._steps.values() if len(x) > 1)
        self.arrays = [self.q, self.qd, *self._steps.values()]

    def _runs(self, x: Array) -> Array:
        """An array (…, n) for all runs, (count, n), aligned."""
        return np.require(
            np.broadcast_to(x, (*self.batch, x.shape[-1])).reshape(self.count, x.shape[-1]), requirements="A"
        )

    def _read(self, what: str, group: str, value: ArrayLike, steps: int) -> tuple[str, Array]:
        """An array of torques, gains or targets as (1, …, n), or as (steps, …, n) if it varies with time."""
        model = self._model
        names = model.positions if group == "q_target" else model.coordinates
        n, a = len(names), np.require(model.numbers(what, value), requirements="A")
        if group in _DRIVEN:
            a = self._over_all(a)
        elif a.ndim == 0:
            a = np.full(n, float(a))
        varies = a.ndim == self._axes + 2
        if a.shape[-1] != n or a.ndim > self._axes + 2 or (varies and len(a) != steps):
            runs = f"(…, {n}) for each run, " if self._axes else ""
            fewer = group in _DRIVEN and 0 < np.sum(~self._passive) < n
            active = ", or entries for the active freedoms only" if fewer else ""
            hint = "" if self._axes else f"; for several runs from one start give q as (1, {model.nq})"
            each = f"({steps}, {'…, ' if self._axes else ''}{n})"
            raise ShapeError(
                f"{what} has shape {a.shape}; expected ({n},), {runs}or {each} for each step{hint}; "
                f"the entries are {', '.join(names)}{active}"
            )
        self._check_joints(what, group, a)
        return what, a if varies else a[None]

    def _over_all(self, a: Array) -> Array:
        """Torques or gains of all freedoms, from a number or an array for the active ones."""
        active = np.flatnonzero(~self._passive)
        if a.ndim and (a.shape[-1] != active.size or active.size == self._model.nv):
            return a
        full = np.zeros((*a.shape[:-1], self._model.nv))
        full[..., active] = a
        return full

    def _check_joints(self, what: str, group: str, a: Array) -> None:
        if group in _DRIVEN:
            self._refuse(what, a, self._passive, "is passive")
        if group == "kp" and self._model.charts is not None:
            grouped = [joint.chart is not None for joint in self._model.joints if joint.mimic is None]
            self._refuse(what, a, grouped, "is spherical, free or planar, so that q_target − q is no error")

    def _refuse(self, what: str, a: Array, which: Any, reason: str) -> None:
        """Raise an error if there is an entry for a freedom that must have none."""
        rows = np.flatnonzero(which)
        wrong = np.any(a[..., rows] != 0, axis=tuple(range(a.ndim - 1)))
        if wrong.any():
            name = self._model.coordinates[rows[int(np.argmax(wrong))]]
            raise JointError(f"{what} must be 0 for {name!r}, whose joint {reason}")

    def inputs(self, start: int, end: int, t: float, state: Sequence[Array]) -> tuple[list[Array], list[bool]]:
        """The inputs of the compiled code for some steps, and which of them vary with time.

        Parameters
        ----------
        start, end : int
            The first step, and the one after the last.
        t : float
            Time at the first step, s.
        state : sequence of two (count, n) arrays
        """
        arrays, varying = list(state), [False, False]
        if self.call:
            arrays.append(self._called(t, state))
            varying.append(False)
        for x in self._steps.values():
            varying.append(len(x) > 1)
            arrays.append(np.moveaxis(x[start:end], 0, 1) if len(x) > 1 else x[0])
        if self._bodies is not None:
            arrays.append(self._bodies)
            varying.append(False)
        return arrays, varying

    def _called(self, t: float, state: Sequence[Array]) -> Array:
        """The torques that the function returns, (count, nv)."""
        assert self.call is not None
        views = [x.reshape(*self.batch, x.shape[-1]) for x in state]
        for x in views:
            x.flags.writeable = False
        value = self.call(t, *views)
        if value is None:
            raise ShapeError(f"torque returned None at t = {t:g} s; return the torques of all runs")
        tau, full = self._over_all(self._model.numbers("torque", value)), (*self.batch, self._model.nv)
        try:
            found = self._runs(np.broadcast_to(tau, full))
        except ValueError:
            raise ShapeError(f"torque returned shape {tau.shape} at t = {t:g} s; expected {full}") from None
        self._check_joints("the result of torque", "tau", found)
        return found

    def check_finite(self, failed: bool) -> None:
        """Raise an error if a run has failed because an array of torques, gains or targets is not finite."""
        if not failed:
            return
        for group, (what, a) in self._control.items():
            finite = np.isfinite(a)
            if not finite.all():
                where = tuple(np.argwhere(~finite)[0].tolist())
                names = self._model.positions if group == "q_target" else self._model.coordinates
                step = f" in step {where[0]}" if len(a) > 1 else ""
                raise ShapeError(f"{what} is {a[where]} at {names[where[-1]]!r}{step}; every entry must be finite")
