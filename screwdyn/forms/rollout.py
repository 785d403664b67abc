"""Many independent runs of fixed step, computed side by side by compiled code."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from screwdyn.backends.llvm.code_cache import TooLong
from screwdyn.backends.llvm.stepper import LARGEST, Stepper
from screwdyn.backends.tape.step import Kind
from screwdyn.backends.tape.trace import Undetermined
from screwdyn.core import out_arrays as memory
from screwdyn.core.errors import ScrewdynError, SingularAttachmentError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.forms.numbers import require_resisted
from screwdyn.forms.rollout_inputs import Inputs
from screwdyn.mechanism.inertia import Inertia
from screwdyn.mechanism.loops import check_open
from screwdyn.physics.joint_forces import JointForces
from screwdyn.physics.model import Model
from screwdyn.physics.quantities import CATALOGUE
from screwdyn.physics.steps import STEPS, Feedback

__all__ = ["Rollout", "Rollouts"]

Torque = ArrayLike | Feedback | Callable[[float, Array, Array], ArrayLike]
# Largest number of rows of scratch space in a call, so that it fits into the second-level cache.
_ROWS = 1500
# Numbers of steps of all runs: for which a further thread is used, and largest one of a call, whose end Ctrl-C awaits.
_SHARE, _CALL = 20_000, 5_000_000
# Number of steppers that a compiled tree keeps, each for a kind and a length of step.
_KEPT = 16


@dataclass(frozen=True, eq=False)
class Rollout:
    """The result of :meth:`Compiled.rollout`.

    Attributes
    ----------
    t : float or (samples,) array
        Time of the final states, or of the samples, s.
    q : (…, nq) or (samples, …, nq) array
        Positions at the end, or at the samples, rad or m; NaN where a run has failed before.
    qd : (…, nv) or (samples, …, nv) array
        Rates, rad/s or m/s.
    steps : (…) array of int
        Number of steps that succeeded in each run.
    failed : (…) array of bool
        Runs that did not reach the end: an entry was no longer finite or exceeded 1e60, or a joint felt no inertia.
    """

    t: Any
    q: Array
    qd: Array
    steps: npt.NDArray[np.int64]
    failed: npt.NDArray[np.bool_]


class Rollouts(ABC):
    """Runs of fixed step of a model (docs/rollouts.md)."""

    threads: int

    @property
    @abstractmethod
    def model(self) -> Model:
        """The frozen snapshot of the tree."""

    def rollout(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        steps: int,
        dt: float,
        torque: Torque | None = None,
        *,
        method: str = "semi_implicit_euler",
        payload: Mapping[str, Inertia | Sequence[Inertia] | ArrayLike] | None = None,
        every: int | None = None,
        t0: float = 0.0,
        out: tuple[Array, Array] | None = None,
    ) -> Rollout:
        """Integrate M q̈ + C q̇ + g = τ + joint forces over steps of fixed length, for many independent runs.

        Joint forces are damping, springs, and dry friction as friction · tanh(1000 q̇) (docs/mathematics.md §8).

        Parameters
        ----------
        q : (…, nq)
            Start positions of the runs. Batch axes are broadcast: ``(1, nq)`` is one start for all runs.
        qd : (…, nv)
            Start rates.
        steps : int
            Number of steps, >= 1.
        dt : float
            Length of a step, s, > 0.
        torque : array, Feedback or callable, optional
            Torques of the joints, N m or N. ``(nv,)`` or ``(…, nv)`` is constant, ``(steps, …, nv)`` has an entry for
            each step, with one more axis than the start; axes of length 1 are broadcast. The last axis may have an
            entry for each active freedom only, and a number is for all of these. :class:`Feedback` is computed in the
            compiled code. ``torque(t, q, qd)`` is called once per step with the states of all runs and returns
            the torques, (…, nv); it must not change its arguments. Torques are constant during a step; feedback is
            computed anew wherever the method evaluates accelerations. Torques are not clipped at the efforts of the
            joints. By default there are none.
        method : "semi_implicit_euler" or "rk4"
            Of order 1, with one evaluation of the accelerations per step (q̇ first, then q with the new q̇), or of
            order 4, with four evaluations (the classical Runge-Kutta method).
        payload : mapping from link to inertia, optional
            Inertia of these links in place of their own: one :class:`Inertia`, one for each run, or an array (…, 10) of
            mass, first moment m c and inertia about the link's origin (xx, xy, xz, yy, yz, zz), in link axes; kg, kg m,
            kg m². Ten zeros are a run without the body.
        every : int, optional
            Record the start and every so many steps, a divisor of ``steps``; by default only the final states.
        t0 : float
            Time at the start, s.
        out : tuple of two arrays, optional
            Float64 arrays for the positions and the rates of the result, of their shapes. They may be ``q`` and ``qd``.

        Returns
        -------
        Rollout
            A run that fails has NaN from there on and does not disturb others. The result of a run has the same bits
            alone, in any batch and with any number of threads.

        Raises
        ------
        ShapeError
            If an argument has a wrong shape, or an entry that is not finite.
        JointError
            If there is a torque on a passive joint, or a gain ``kp`` on a spherical, free or planar joint.
        UnknownNameError, InertiaError
            If a payload is no link of the tree, or no rigid body.
        TopologyError
            If a payload is for the rotor of a joint.
        SingularAttachmentError
            If a joint feels no inertia in any run.
        ScrewdynError
            If ``steps``, ``dt``, ``method``, ``every`` or ``t0`` is invalid, or the tree is too large to be compiled.
        """
        model = self.model
        check_open(model.topology, "rollout", "use simulate, which keeps loops closed, for each run")
        count, record = _whole("steps", steps), None if every is None else _whole("every", every)
        if record is not None and count % record:
            raise ScrewdynError(f"every must be a divisor of steps; got every={record} and steps={count}")
        dt, t0 = _real("dt", dt), _real("t0", t0)
        if dt <= 0:
            raise ScrewdynError(f"dt must be positive; got {dt!r}")
        if not isinstance(method, str) or method not in STEPS:
            raise ScrewdynError(f"method must be one of {', '.join(map(repr, STEPS))}; got {method!r}")
        given = Inputs(model, q, qd, count, torque, payload)
        samples = 1 if record is None else count // record + 1
        lead = given.batch if record is None else (samples, *given.batch)
        if out is not None:
            memory.check(out, [(*lead, model.nq), (*lead, model.nv)])
        stored = _storage([(samples, given.count, n) for n in (model.nq, model.nv)], out, given.arrays)
        done = np.zeros((given.count, 1))
        if model.nv and given.count:
            stepper = self._stepper(method, given, dt)
            _Run(stepper, given, self.threads, (t0, dt)).compute(count, record, stored, done)
            given.check_finite(failed=bool((done < count).any()))
        else:
            done += count
        q_end, qd_end = memory.hand_over([x.reshape(*lead, x.shape[-1]) for x in stored], out)
        t = t0 + dt * (count if record is None else np.arange(samples) * record)
        reached = done.astype(np.int64).reshape(given.batch)
        return Rollout(t, q_end, qd_end, reached, reached < count)

    @cached_property
    def _steppers(self) -> dict[tuple[Kind, float], Stepper]:
        return {}

    def _stepper(self, method: str, given: Inputs, dt: float) -> Stepper:
        """The compiled code for these inputs."""
        forces = _forces(self.model)
        kind = Kind(method, given.groups, given.loads.rows, tuple(forces))
        found = self._steppers.get((kind, dt))
        if found is None:
            found = _made(self.model, kind, {("dt", 0): dt, **forces})
            if len(self._steppers) >= _KEPT:
                self._steppers.clear()
            self._steppers[kind, dt] = found
        return found


class _Run:
    """Calls of the compiled code for all steps, one after the other.

    Parameters
    ----------
    stepper : Stepper
    given : Inputs
    threads : int
    clock : tuple of float
        Time at the start, and length of a step, s.
    """

    def __init__(self, stepper: Stepper, given: Inputs, threads: int, clock: tuple[float, float]) -> None:
        self.stepper, self.given, self.threads, self.clock = stepper, given, threads, clock

    def compute(self, steps: int, record: int | None, stored: Sequence[Array], done: Array) -> None:
        """Write the samples, or the final states, and the number of steps that succeeded in each run.

        Parameters
        ----------
        steps : int
        record : int or None
            Number of steps between two samples.
        stored : sequence of two (samples, count, n) arrays
        done : (count, 1) array of zeros
        """
        given, sample = self.given, 0
        state = [given.q, given.qd]
        if record is not None:
            sample = 1
            for x, start in zip(stored, state, strict=True):
                x[0] = start
        threads = max(1, min(self.threads, given.count * steps // _SHARE))
        # Each part has whole cache lines.
        ends = [given.count * k // threads // 8 * 8 for k in range(threads)] + [given.count]
        parts = [slice(a, b) for a, b in pairwise(ends) if a < b]
        step = 0
        with ThreadPoolExecutor(threads, "screwdyn-rollout") as pool:
            for samples, every in _calls(steps, record or steps, given):
                after = step + samples * every
                if after % (record or steps):
                    # Coordinate by coordinate: the code reads and writes such arrays without copies.
                    outputs = [np.empty((1, x.shape[-1], given.count)).swapaxes(1, 2) for x in state]
                else:
                    outputs, sample = [x[sample : sample + samples] for x in stored], sample + samples
                inputs, varying = given.inputs(step, after, self.clock[0] + self.clock[1] * step, state)
                reached = np.empty((given.count, 1))
                arrays = *(np.moveaxis(x, 0, 1) for x in outputs), reached
                call = partial(self._part, samples, every, inputs, varying, arrays)
                if len(parts) == 1:
                    call(parts[0])
                else:
                    list(pool.map(call, parts))
                done += reached
                state, step = [x[-1] for x in outputs], after

    def _part(
        self,
        samples: int,
        every: int,
        inputs: Sequence[Array],
        varying: Sequence[bool],
        outputs: Sequence[Array],
        part: slice,
    ) -> None:
        """Compute some of the runs."""
        self.stepper.run(samples, every, [x[part] for x in inputs], varying, [x[part] for x in outputs])


def _calls(steps: int, every: int, given: Inputs) -> Iterator[tuple[int, int]]:
    """Numbers of samples, and of steps between them, of each call; one sample if it takes several calls."""
    longest = 1 if given.call else max(1, _CALL // given.count)
    if given.rows_per_step:
        longest = max(1, min(longest, _ROWS // given.rows_per_step))
    if every > longest:
        for _ in range(steps // every):
            yield from ((1, min(longest, every - k)) for k in range(0, every, longest))
        return
    most = max(1, min(longest // every, _ROWS // (given.q.shape[1] + given.qd.shape[1])))
    for k in range(0, steps // every, most):
        yield min(most, steps // every - k), every


def _forces(model: Model) -> dict[Any, float]:
    """The parameters of the joints' own forces that are not zero, by field and row."""
    fields = {field: getattr(model.joint_forces, field) for field in JointForces._fields if field != "where"}
    return {(field, row): float(x) for field, numbers in fields.items() for row, x in enumerate(numbers) if x}


def _made(model: Model, kind: Kind, values: Mapping[Hashable, float]) -> Stepper:
    """The compiled code of a kind of step.

    Raises
    ------
    ScrewdynError
        If it has too many operations.
    SingularAttachmentError
        If a joint feels no inertia in any run.
    """
    require_resisted(CATALOGUE["forward_dynamics"], model)
    try:
        return Stepper(model, kind, values)
    except TooLong:
        raise ScrewdynError(
            f"a step of this tree by {kind.method!r} has more than {LARGEST} operations, which are not compiled; use "
            f"{'simulate' if kind.method == 'semi_implicit_euler' else repr('semi_implicit_euler')}"
        ) from None
    except Undetermined as found:
        raise SingularAttachmentError(
            f"joint {model.coordinates[found.row]!r} feels no inertia in any run; give its links mass, or a payload"
        ) from None


def _storage(shapes: Sequence[tuple[int, ...]], out: Sequence[Array] | None, others: Sequence[Array]) -> list[Array]:
    """Arrays for the results: those of ``out`` where results can be written to them before all inputs are read."""
    found = []
    for k, shape in enumerate(shapes):
        array = None if out is None else out[k]
        if array is not None and array.flags.c_contiguous and array.flags.aligned and memory.apart(array, others):
            found.append(array.reshape(shape))
        else:
            found.append(np.empty(shape))
    return found


def _whole(what: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ScrewdynError(f"{what} must be an integer >= 1; got {value!r}")
    return int(value)


def _real(what: str, value: float) -> float:
    if not isinstance(value, float | int | np.floating | np.integer) or not math.isfinite(value):
        raise ScrewdynError(f"{what} must be a finite number; got {value!r}")
    return float(value)
