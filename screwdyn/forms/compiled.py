"""The result of ``tree.compile()``: machine code for the quantities of one tree, and for many runs of fixed step."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from types import MethodType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from screwdyn.backends.kernels.entry import Kernels, processors
from screwdyn.backends.kernels.entry import method as in_c
from screwdyn.backends.llvm import machine, program
from screwdyn.backends.llvm.program import CONTACT, IMPACT, LARGEST_STEP, Compilation, Function, StepKind, Stepper
from screwdyn.backends.tape.tape import TooLong
from screwdyn.backends.tape.trace import Undetermined
from screwdyn.core import Array, ArrayLike, Flags, apart, check_out, errors, expressions, hand_over
from screwdyn.core.errors import ScrewdynError, ShapeError, SingularAttachmentError, UnknownNameError
from screwdyn.forms.configurations import Configurations
from screwdyn.forms.numbers import Numbers, require_resisted
from screwdyn.forms.requests import Request
from screwdyn.forms.search import progress_bar
from screwdyn.forms.switches import Constraints, Integers, Lanes, Switching, Union, moved, scheduled, sources, sums
from screwdyn.mechanism import Inertia, check_no_rotor, check_open
from screwdyn.mechanism.inertia import failing_condition
from screwdyn.mechanism.plausible import check_positions
from screwdyn.physics import SHARES, STEPS, Feedback, JointForces, Model, share_of
from screwdyn.physics.closure import Closure
from screwdyn.physics.contact import Contacts
from screwdyn.physics.link_steps import Pose
from screwdyn.physics.quantities import CATALOGUE, SOLVING, Method, Quantity, TakesOut
from screwdyn.physics.recursions.links import frame_code
from screwdyn.physics.recursions.loops import KEPT_ANYWAY
from screwdyn.physics.table import PLACE
from screwdyn.physics.time_stepping import POINTS

# Quantities that are compiled at once; the others are compiled after their first call.
AT_ONCE = (
    "mass_matrix",
    "coriolis_matrix",
    "gravity_vector",
    "bias_force",
    "inverse_dynamics",
    "forward_dynamics",
    "dynamics",
)
# Numbers of the methods in C, after those of trees.
_NUMBERS = {name: k for k, name in enumerate((x for x, e in CATALOGUE.items() if e.parameters), len(CATALOGUE))}
# Numbers of states, and of steps of all runs, for which a further thread is used.
_STATES, _STEPS = 4096, 20_000
Torque = ArrayLike | Feedback | Callable[[float, Array, Array], ArrayLike]


class Compiled(Numbers, Configurations, TakesOut):
    """The quantities of a model as machine code; made by :meth:`KinematicTree.compile`.

    It has a method for every quantity of the tree, with the same arguments, units and errors. Every method also takes
    ``out=``: a float64 array of the shape of the result, or a tuple of arrays if there are several results, in any
    layout. ``out`` may alias the arguments. After an error its contents are undefined.

    Calls without conversions are fastest: single states as contiguous float64 arrays with ``out=``, and batches as
    transposed views ``x.T`` of contiguous (nv, B) arrays, in which a coordinate of all states is contiguous. If all
    arguments of a batch have this layout and ``out`` is not given, so has the result. The results for a state have the
    same bits alone, in any batch and with any number of threads. The exception is a batch with a state that violates an
    assumption of the compiled code: the default kernel then computes the whole batch.

    A thread compiles in the background: M, C, g, bias force, inverse and forward dynamics at once, and any other
    quantity, for each link and frame, after its first call. Until a function is compiled, the default kernel computes
    it. Functions of more than ``screwdyn.backends.llvm.program.LARGEST`` operations are never compiled. A forked
    process has the code that was ready, and compiles other functions when they are next called. The process caches the
    code and uses it for all trees that differ in inertias only, and keeps it on disk: see docs/compiled.md. Compiled
    trees and their methods can be pickled; the other process loads the code from disk.

    Parameters
    ----------
    model : Model
        The snapshot; later changes of the tree do not affect it.
    threads : int, optional
        Number of threads for large batches; by default the number of processors that the process may use. A pickled
        copy uses as many, or by default those of its own process.

    Attributes
    ----------
    coordinates, positions : tuples of str
        Names of the nv freedoms, in the order of the entries of q̇, and of the nq entries of q.
    nq, nv, threads : int

    Raises
    ------
    ScrewdynError
        If llvmlite is not installed, or ``threads`` is not an integer of at least 1.
    """

    def __init__(self, model: Model, threads: int | None = None) -> None:
        machine.require_compiler()
        self._asked, several = threads, "an integer >= 1, or None for one per processor"
        self.threads = processors() if threads is None else _whole("threads", threads, several)
        super().__init__(model)
        self.coordinates, self.positions, self.nq, self.nv = model.coordinates, model.positions, model.nq, model.nv
        self._compilations: dict[tuple[str, str | None, int], Compilation] = {}
        self._functions: dict[tuple[str, str | None, int], Function] = {}
        self._calls: dict[tuple[str, str, Any], Callable[..., Any]] = {}
        self._steppers: dict[tuple[StepKind, float], Stepper] = {}
        self._pool: ThreadPoolExecutor | None = None
        self._process = 0
        self._union: tuple[Compiled, Union] | None = None
        for name in AT_ONCE:
            self._request(Request(CATALOGUE[name]))

    def __reduce__(self) -> tuple[Any, ...]:
        """Code is not pickled: a copy uses the code that its process has, or compiles it."""
        return Compiled, (self._model, self._asked)

    def __repr__(self) -> str:
        state = "ready" if self.ready else "compiling"
        return f"<Compiled {self.nv} coordinates, {state}: {', '.join(self.compiled) or 'nothing compiled'}>"

    @property
    def compiled(self) -> tuple[str, ...]:
        """Names of the quantities whose code is ready; the default kernels compute all others."""
        found = {name for (name, *_), x in [*self._compilations.items()] if x.program is not None}
        return tuple(name for name in CATALOGUE if name in found)

    @property
    def ready(self) -> bool:
        """Whether all code that was requested is ready."""
        machine.resume()
        return all([x.batch.done() for x in [*self._compilations.values()]])

    def wait(self, timeout: float | None = None) -> Compiled:
        """Wait until all code that was requested is ready; returns the object itself.

        Raises
        ------
        TimeoutError
            If it is not ready after ``timeout`` seconds.
        """
        machine.resume()
        parts = [x.batch for x in [*self._compilations.values()]]
        with machine.announced("compiling functions of this robot"):
            late = wait(parts, timeout).not_done
        if late:
            raise TimeoutError(f"the code is not ready after {timeout} s")
        for part in parts:
            part.result()
        return self

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
        events: Sequence[Switching | tuple[Switching, ArrayLike]] = (),
        stops: Literal["inelastic"] | None = None,
        out: tuple[Array, Array] | None = None,
    ) -> Rollout:
        """Integrate M q̈ + C q̇ + g = τ + joint forces over steps of fixed length, for many independent runs.

        Joint forces are damping, springs, and dry friction as friction · tanh(1000 q̇) (docs/mathematics.md §8).
        Contacts, of at most 16 points, act by impulses in each step (§14), whose order is then 1. Closed loops act by
        forces (§12); they open by the error of the method.

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
            order 4, with four evaluations (the classical Runge-Kutta method), which knows no contacts.
        payload : mapping from link to inertia, optional
            Inertia of these links in place of their own: one :class:`Inertia`, one for each run, or an array (…, 10) of
            mass, first moment m c and inertia about the link's origin (xx, xy, xz, yy, yz, zz), in link axes; kg, kg m,
            kg m². Ten zeros are a run without the body.
        every : int, optional
            Record the start and every so many steps, a divisor of ``steps``; by default only the final states.
        t0 : float
            Time at the start, s.
        events : sequence, optional
            Changes within the runs: each a :class:`Grasp`, :class:`Release`, :class:`Lock`, :class:`Unlock`,
            :class:`Close`, :class:`Open` or :class:`SetInertia` with ``time=``, on the clock that begins at ``t0``, or
            a pair ``(change, steps)`` of one without a time and the number of the step before which it happens, for all
            runs, or for each run, (…); negative or beyond the last step for never. A time within a step is the start of
            the next one. Rates change by the law of :meth:`KinematicTree.grasp`. In one step, events happen in the
            order of the list. Loops close only where links meet, to 1e-6 m and rad, as ``at=`` says. Results,
            torques and payloads are then those of the tree with the links of all events, ``compiled`` of the result.
            What a run does not have at a sample stays at its last positions, or at those at which it starts, with rates
            below 1e-180. Samples are just before the changes of their step.
        stops : "inelastic", optional
            The limits of joints stop them without rebound: a freedom that a step has carried beyond a limit is put back
            to it, stops as by a lock, and stays until the force on it points inwards. Where several freedoms are at
            stops, an impact of one holds the others too. By default joints move beyond their limits.
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
            If a payload is for the rotor of a joint, or if an event is impossible in a run at its time, such as a
            release before the grasp. Errors of events are otherwise those of their methods without a state.
        SingularAttachmentError
            If a joint feels no inertia in any run.
        LoopError
            If a loop is open at the start, or where it closes within a run, or an event or stop is not possible beside
            a loop that is closed then: one that locks or frees a joint of it, or after which a link of it is missing;
            or if loops of which one closes or opens have redundant constraints.
        ContactError
            If contacts have more than 16 points, or points without radius on a box, or links begin inside each other.
        ScrewdynError
            If ``steps``, ``dt``, ``method``, ``every`` or ``t0`` is invalid, the tree is too large to be compiled, an
            event is of another kind, on a condition, or has an argument that depends on the state, a freedom begins
            beyond its stop, or contacts are given with ``"rk4"`` or stops.

        Warns
        -----
        ScrewdynWarning
            For ``q``, as for :class:`State`.
        """
        model = self.model
        count, record = _whole("steps", steps), None if every is None else _whole("every", every)
        if record is not None and count % record:
            raise ScrewdynError(f"every must be a divisor of steps; got every={record} and steps={count}")
        dt, t0 = _real("dt", dt), _real("t0", t0)
        if dt <= 0:
            raise ScrewdynError(f"dt must be positive; got {dt!r}")
        if not isinstance(method, str) or method not in STEPS:
            raise ScrewdynError(f"method must be one of {', '.join(map(repr, STEPS))}; got {method!r}")
        if stops is not None and not (isinstance(stops, str) and stops == "inelastic"):
            raise ScrewdynError(f"stops of a rollout must be 'inelastic' or None; got {stops!r}")
        changes, due = scheduled(events, count, t0, dt)
        fast, union = self._united(changes, stops is not None, due) if changes or stops else (self, None)
        if union is not None:
            model, (q, qd) = union.model, union.started(model, q, qd)
        if model.topology.contacts:
            _check_contacts(model, method, stops)
        given = _Inputs(model, q, qd, count, torque, payload, union, due)
        samples = 1 if record is None else count // record + 1
        lead = given.batch if record is None else (samples, *given.batch)
        if out is not None:
            check_out(out, [(*lead, model.nq), (*lead, model.nv)])
        # Results are written to ``out`` where that is possible before all inputs are read.
        stored = [
            (x if x is not None and x.flags.carray and apart(x, given.arrays) else np.empty((*lead, n))).reshape(
                samples, given.count, n
            )
            for x, n in zip((*(out or (None, None)), None), (model.nq, model.nv, 3 * len(model.points)), strict=True)
        ]
        done = np.full((given.count, 1), count)
        if model.nv and given.count:
            given.check_closed()
            stepper = fast._stepper(method, given, dt)
            if union is not None:
                given.change(partial(fast._stepper_of, values={}, dt=dt, constraints=given.constraints))
            given.check_apart(fast, dt)
            done = self._run(stepper, given, (t0, dt), count, record, stored[: len(given.state)])
            given.check_finite(failed=bool((done < count).any()))
        q_end, qd_end = hand_over([x.reshape(*lead, x.shape[-1]) for x in stored[:2]], out)
        forces = stored[2].reshape(*lead, len(model.points), 3) / dt
        t = t0 + dt * (count if record is None else np.arange(samples) * record)
        reached = done.astype(np.int64).reshape(given.batch)
        return Rollout(t, q_end, qd_end, reached, reached < count, fast, forces)

    # Inside

    def _request(self, request: Request) -> Compilation | None:
        """Request the compilation of a quantity; None if a result has no entries, or if it is refused."""
        name, model = request.entry.name, self._model
        if not model.nv or model.computed(name) is None:
            return None
        if name in SOLVING and (model.unresisted or model.topology.contacts):
            return None
        places = np.array(request.places(model), dtype=np.float64).reshape(-1, PLACE)
        if any(0 in shape for shape in model.shapes(request.entry, request.link or "")):
            return None
        key = name, request.link, request.code
        found = self._compilations[key] = program.compilation_of(name, model, places)
        return found

    def _function(self, request: Request) -> Function | None:
        """A compiled quantity with the numbers of this model if its code is ready; otherwise request it."""
        key = request.entry.name, request.link, request.code
        function = self._functions.get(key)
        if function is None:
            compilation = self._compilations.get(key) or self._request(request)
            if compilation is not None and compilation.program is not None:
                function = self._functions[key] = Function(compilation.program, self._model.table)
            else:
                machine.resume()
        return function

    def _call(self, request: Request) -> Callable[..., Any]:
        """The function that computes a quantity of one link: the built-in function as soon as its code is ready."""
        slow, name, link = partial(self._answer, request), request.entry.name, str(request.link)
        self._model.check_link(request.link)
        if "frame" in request.entry.parameters:
            frame_code(request.frame)
        function = self._function(request)
        if function is None:
            return slow
        call: Callable[..., Any]
        call = function.builtin(slow, share_of(self._model, name, link) if name in SHARES else None)
        self._calls[name, link, request.frame] = call
        return call

    def _answer(self, request: Request, *state: ArrayLike, out: Any = None) -> Any:
        """Evaluate a quantity of one link in other cases than those of its built-in function."""
        frame = (request.frame,) if "frame" in request.entry.parameters else ()
        return self._evaluate(request.entry, request.link, *state, *frame, out=out)

    def _results(
        self, kernels: Kernels, entry: Quantity, link: Any, frame: Any, state: Mapping[str, ArrayLike], out: Any
    ) -> Sequence[Array]:
        """The results by compiled code if it is ready and no state violates an assumption; otherwise by the kernels."""
        values, batch = self._model.arrays(state, checked=False)
        shapes = [(*batch, *shape) for shape in self._model.shapes(entry, link or "")]
        if out is not None:
            check_out(out, shapes)
        function = self._function(Request(entry, link, frame))
        if function is not None and (math.prod(batch) == 1 or function.program.batch):
            found, sound = function.evaluate(values, shapes, out, partial(self._in_parts, least=_STATES))
            if sound:
                return found
        machine.resume()
        return super()._results(kernels, entry, link, frame, state, out)

    def _united(self, changes: Sequence[Switching], stops: bool, due: Sequence[Integers]) -> tuple[Compiled, Union]:
        """The tree with the links of all changes, compiled; the one before it if it is for the same changes."""
        found = self._union
        if found is None or [*map(id, found[1].made_from)] != [*map(id, sources(changes, stops))]:
            union = Union(self.model, changes, stops, due)
            self._union = found = Compiled(union.model, self._asked), union
        return found

    def _stepper(self, method: str, given: _Inputs, dt: float) -> Stepper:
        """The compiled code for these inputs; errors if it is too long, or if a joint feels no inertia."""
        forces = self.model.joint_forces
        fields = [field for field in JointForces._fields if field != "where"]
        # The parameters of the joints' own forces that are not zero, by field and row.
        values: Any = {(field, k): float(x) for field in fields for k, x in enumerate(getattr(forces, field)) if x}
        for k, contact in enumerate(self.model.topology.touching):
            own = zip(CONTACT, (contact.friction, contact.restitution), strict=True)
            values |= {(field, k): x for field, x in own if x}
        rows, apart, loose = tuple(given.rows), given.apart, given.loose
        kind = StepKind(method, given.groups, rows, tuple(values), given.held, apart=apart, loose=loose)
        return self._stepper_of(kind, values, dt, given.constraints)

    def _stepper_of(self, kind: StepKind, values: Mapping[Any, float], dt: float, constraints: Constraints) -> Stepper:
        """The code for a kind of steps with these parameters and constraints; errors as for :meth:`_stepper`."""
        model, method = self.model, kind.method
        asked, found = kind, self._steppers.get((kind, dt))
        if found is not None:
            return found
        require_resisted(CATALOGUE["forward_dynamics"], model)
        places: Sequence[Sequence[Any]] = [] if method == IMPACT else model.points
        if constraints:
            places, kind = constraints, kind._replace(closed=True)
        try:
            found = Stepper(model, kind, {("dt", 0): dt, **values}, places)
        except TooLong:
            raise ScrewdynError(
                f"a step of this tree by {method!r} has more than {LARGEST_STEP} operations, which are not compiled; "
                f"use {'simulate' if method == 'semi_implicit_euler' else repr('semi_implicit_euler')}"
            ) from None
        except Undetermined as stopped:
            raise SingularAttachmentError(
                f"joint {model.coordinates[stopped.row]!r} feels no inertia in any run; give its links mass, or a "
                f"payload"
            ) from None
        if len(self._steppers) >= _KEPT:
            self._steppers.clear()
        self._steppers[asked, dt] = found
        return found

    def _run(
        self,
        stepper: Stepper,
        given: _Inputs,
        clock: tuple[float, float],
        steps: int,
        record: int | None,
        stored: Sequence[Array],
    ) -> Array:
        """Write samples after ``record`` steps each, or final states; return the steps that succeeded, (count, 1)."""
        # The clock is the time at the start and a step, s.
        state, sample, step, done = given.state, 0, 0, np.zeros((given.count, 1))
        if record is not None:
            sample = 1
            for x, start in zip(stored, state, strict=True):
                x[0] = start
        long = steps * given.count > _LONG
        bar = progress_bar(total=steps, unit=" steps") if long else None
        for samples, every in _calls(steps, record or steps, given):
            after, state = step + samples * every, given.changed(step, state)
            if after % (record or steps):
                # Coordinate by coordinate: the code reads and writes such arrays without copies.
                outputs = [np.empty((1, x.shape[-1], given.count)).swapaxes(1, 2) for x in state]
            else:
                outputs, sample = [x[sample : sample + samples] for x in stored], sample + samples
            inputs = given.inputs(step, after, clock[0] + clock[1] * step, state)
            reached = np.empty((given.count, 1))
            arrays = *(np.moveaxis(x, 0, 1) for x in outputs), reached
            compute = partial(stepper.run, samples, every, inputs, arrays)
            self._in_parts(compute, given.count, _STEPS / (steps if given.single else samples * every))
            done += reached
            state, step = [x[-1] for x in outputs], after
            if given.lanes is not None and given.lanes.union.limits.keys:
                given.lanes.stop(*state[:2])
            if bar is not None:
                bar.update(samples * every)
        if bar is not None:
            bar.close()
        return done

    def _in_parts(self, compute: Callable[[slice], Any], states: int, least: float) -> list[Any]:
        """What a function returns for slices of some states, with at least so many states for each thread."""
        parts = min(self.threads, int(states / least))
        if parts < 2:
            return [compute(slice(0, states))]
        if self._pool is None or self._process != os.getpid():  # threads do not exist in a forked process
            self._pool, self._process = ThreadPoolExecutor(self.threads, "screwdyn-batch"), os.getpid()
        # Each part has whole cache lines.
        ends = [states * k // parts // 8 * 8 for k in range(parts)] + [states]
        running = [self._pool.submit(compute, slice(a, b)) for a, b in pairwise(ends) if a < b]
        try:
            return [part.result() for part in running]
        finally:
            wait(running)  # also after Ctrl-C: they write to arrays of the caller


class _Quantity:
    """The method of a quantity of the whole tree; the built-in function replaces it as soon as its code is ready."""

    def __init__(self, entry: Quantity, method: Callable[..., Any]) -> None:
        self._entry, self._method = entry, method

    def __get__(self, compiled: Compiled | None, owner: type) -> Callable[..., Any]:
        if compiled is None:
            return self._method
        method = MethodType(self._method, compiled)
        function = compiled._function(Request(self._entry))
        if function is None:
            return method
        builtin: Callable[..., Any] = function.builtin(method, k=[*CATALOGUE].index(self._entry.name))
        vars(compiled)[self._entry.name] = builtin
        return builtin


def _method(entry: Quantity) -> Any:
    """The method of a quantity, with ``out``."""
    one = len(entry.given) == 1
    kind, results = ("an array", "result") if one else (f"a tuple of {len(entry.given)} arrays", "results")
    takes = f"The optional ``out`` is {kind} of float64 for the {results}."
    declared = Method(entry, "Compiled", f"{entry.doc}\n\nCompiled; see :class:`Compiled`. {takes}\n", out=None)
    name, last = entry.name, 1 + len(entry.arguments)
    framed = "frame" in entry.parameters

    def of_tree(self: Compiled, *values: Any, out: Any = None, **named: Any) -> Any:
        if named or len(values) != declared.most:
            values = declared.values(values, named)[:-1]
        return self._evaluate(entry, *values, out=out)

    def of_link(self: Compiled, *values: Any, out: Any = None, **named: Any) -> Any:
        if named or len(values) != declared.most:
            values = declared.values(values, named)
        link, frame = values[0], values[last] if framed else None
        try:
            call = self._calls[name, link, frame]
        except (KeyError, TypeError):
            call = self._call(Request(entry, link, frame))
        return call(*values[1:last]) if out is None else call(*values[1:last], out=out)

    if not entry.parameters:
        return _Quantity(entry, declared.of(of_tree))
    return in_c(Compiled, _NUMBERS[name], entry, declared.of(of_link), compiled=True)


for _entry in CATALOGUE.values():
    setattr(Compiled, _entry.name, _method(_entry))


# Rollouts

# Groups of inputs that only active freedoms have.
_DRIVEN = ("tau", "kp", "kd")
_UNTURNED = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
# Rounding of moments about the centre of mass, relative to those about the origin of which they are the difference.
_ROUNDING = 1e-13
# Where the entries of a tensor are among the ten numbers of a body.
_TENSOR = np.array([[4, 5, 6], [5, 7, 8], [6, 8, 9]])
# Largest number of rows of scratch space in a call, so that it fits into the second-level cache.
_ROWS = 1500
# Largest number of steps of all runs of a call, whose end Ctrl-C awaits.
_CALL = 5_000_000
# Number of steps of all runs from which their progress is shown.
_LONG = 100_000_000
# Rate at which a first step may push links apart, m/s.
_PUSHED = 0.1
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
    compiled : Compiled
        The tree with the links of all events, and the loops that are closed in all runs at all times:
        ``compiled.positions`` and ``compiled.coordinates`` name the entries of ``q`` and ``qd``, and
        ``compiled.forward_kinematics("crate", run.q)`` are poses. Without events, it is the one that was called.
    forces : (…, k, 3) or (samples, …, k, 3) array
        Forces at the k points of contacts in the step before, N: along the normal and two tangents, as the rows of
        ``contact_jacobian`` in the state before that step; zero at the start. Impacts are impulses divided by the step.
    """

    t: Any
    q: Array
    qd: Array
    steps: npt.NDArray[np.int64]
    failed: Flags
    compiled: Compiled
    forces: Array


def _check_contacts(model: Model, method: str, stops: str | None) -> None:
    """Raise an error for contacts that steps of fixed length do not know."""
    contacts = model.topology.contacts.values()
    names = ", ".join(repr(contact.name) for contact in contacts)
    if len(model.points) > POINTS:
        raise errors.ContactError(
            f"a rollout has at most {POINTS} points of contacts; this tree has {len(model.points)}, at {names}: give "
            f"fewer points=, such as the corners that touch, or use simulate for each run"
        )
    check_open(model.topology, "a rollout with contacts", "use simulate for each run", touching=True)
    if method != "semi_implicit_euler" or stops:
        given = "stops" if stops else f"method={method!r}"
        raise ScrewdynError(
            f"{given} is not available for a tree with contacts, here {names}: their steps are of order 1 and know no "
            f"stops; use semi_implicit_euler without stops, or simulate for each run"
        )
    for contact in contacts:
        contact.check_slides()


def _payload(model: Model, given: Mapping[str, Any]) -> tuple[dict[str, Array], tuple[int, ...]]:
    """The inertial numbers of links that move, in the frames of their rows, (…, 10), and their batch axes."""
    if not isinstance(given, Mapping):
        raise ScrewdynError(f"payload must be a mapping from link to inertia, {{'tool': …}}; got {given!r}")
    bodies: dict[str, Array] = {}
    for name, value in given.items():
        at = model.placements[UnknownNameError.check(name, model.placements)]
        check_no_rotor(model.topology, name)
        parameters = _parameters(model, name, value)
        if at.coordinate is not None:
            bodies[name] = moved(at.pose, parameters)
    try:
        return bodies, np.broadcast_shapes(*(x.shape[:-1] for x in bodies.values()))
    except ValueError:
        shapes = ", ".join(f"{name!r} {x.shape[:-1]}" for name, x in bodies.items())
        raise ShapeError(f"the batch axes of the payloads cannot be broadcast together: {shapes}") from None


def _parameters(model: Model, name: str, value: Any) -> Array:
    """Mass, first moment and inertia about the link's origin, (…, 10)."""
    what = f"payload[{name!r}]"
    if isinstance(value, Inertia):
        return expressions.floats(value.parameters, what)
    if isinstance(value, Sequence) and value and all(isinstance(x, Inertia) for x in value):
        # All bodies together, from their numbers about the centre of mass.
        about = [(x.mass, 0.0, 0.0, 0.0, *x.entries[1]) for x in value]
        com: Any = expressions.floats(np.array([x.entries[0] for x in value]).T, what)
        return moved(Pose(_UNTURNED, tuple(com)), expressions.floats(np.array(about), what))
    numbers = model.numbers(what, value)
    if numbers.ndim == 0 or numbers.shape[-1] != 10:
        raise ShapeError(
            f"{what} has shape {numbers.shape}; expected (…, 10): mass, first moment x, y, z and inertia about the "
            f"link's origin xx, xy, xz, yy, yz, zz of each run, or an Inertia for each run"
        )
    if not np.isfinite(numbers).all():
        raise ShapeError(f"{what} has entries that are not finite")
    mass, h, theta = numbers[..., 0], numbers[..., 1:4], numbers[..., _TENSOR]
    outer, size = h[..., None] * h[..., None, :], np.trace(theta, axis1=-2, axis2=-1)
    shift = np.trace(outer, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - outer
    tensor = theta - shift / np.where(mass > 0, mass, 1.0)[..., None, None]
    least = 0.5 * np.trace(tensor, axis1=-2, axis2=-1) - np.linalg.eigvalsh(tensor)[..., -1]
    wrong = numbers.any(axis=-1) & ((mass <= 0) | (least < -_ROUNDING * size))
    for where in np.argwhere(np.atleast_1d(wrong)).tolist():
        at = tuple(where) if mass.ndim else ()
        if condition := failing_condition(mass[at].item(), tensor[at]):
            raise errors.InertiaError(
                f"{what}{where if at else ''} is the inertia of no rigid body: {condition}; the order is mass, first "
                f"moment m c, xx, xy, xz, yy, yz, zz about the link's origin"
            )
    return numbers


class _Inputs:
    """Start states, torques and payloads of all runs as for :meth:`Compiled.rollout`, checked and broadcast.

    ``count`` runs of shape ``batch`` start at a ``state`` of q, qd and impulses of contacts, (count, n), with
    quaternions of length 1. ``groups`` are the inputs that control the joints, ``call`` the torque if it is a function,
    ``rows_per_step`` the number of entries of a run that vary with time, and ``arrays`` those of the user that must not
    be overwritten. ``rows`` have inertial numbers that are inputs, ``held`` armatures, points ``apart`` gaps. ``due``
    are the steps of the changes of a union.
    """

    def __init__(
        self,
        model: Model,
        q: ArrayLike,
        qd: ArrayLike,
        steps: int,
        torque: Any,
        payload: Mapping[str, Any] | None,
        union: Union | None = None,
        due: Sequence[Integers] = (),
    ) -> None:
        self._model = model
        self._passive = np.array(model.passive, dtype=bool)
        self._grouped = np.array([joint.chart is not None for joint in model.movers], dtype=bool)
        self._payload, of_payload = _payload(model, {} if payload is None else payload)
        links = {*self._payload} if union is None else {*self._payload, *union.varying}
        self.rows = sorted({model.index[model.placements[name].coordinate] for name in links} - {-1})
        self.held = () if union is None else tuple(map(union.row, union.holdable))
        self.apart = () if union is None else tuple(union.apart)
        self.loose = () if union is None else union.loose
        (q, qd), start = model.flat(q=q, qd=qd)
        q, qd = q.reshape(*start, model.nq), qd.reshape(*start, model.nv)
        self._axes = max([len(start), len(of_payload), *(x.ndim for x in due)])
        self.call: Callable[..., Any] | None = None
        self.single = callable(torque) or (union is not None and len(union.limits.rows) > 0)  # one step in each call
        control: dict[str, Any] = {}
        if hasattr(torque, "_in_c"):
            raise ScrewdynError(
                f"a {type(torque).__name__} is called with the state of one run, but torque= of a rollout with those "
                f"of all runs, torque(t, q, qd); write its linear law so (docs/control.md), or give sd.Feedback"
            )
        if isinstance(torque, Feedback):
            control = torque._asdict()
        elif callable(torque):
            self.call = torque
        elif torque is not None:
            control = {"tau": torque}
        self._named = {group: f"torque.{group}" if isinstance(torque, Feedback) else "torque" for group in control}
        read = {group: self._read(group, x, steps) for group, x in control.items()}
        self.groups = ("tau",) if self.call else tuple(read)
        leads = [start, of_payload, *(x.shape[1:-1] for x in read.values()), *(x.shape for x in due)]
        try:
            self.batch = np.broadcast_shapes(*leads)
        except ValueError:
            names = ["q and qd", "payload", *self._named.values(), *(f"events[{k}]" for k in range(len(due)))]
            shapes = ", ".join(f"{name} {shape}" for name, shape in zip(names, leads, strict=True) if shape)
            raise ShapeError(f"the batch axes cannot be broadcast together: {shapes}") from None
        self.count = math.prod(self.batch)
        self.q = self._runs(model.configurations.normalized(q))
        for extreme in (self.q.min(axis=0), self.q.max(axis=0)) if self.count else ():
            check_positions(model.topology, extreme)
        self.qd = self._runs(qd)
        touching = [np.zeros((self.count, 3 * len(model.points)))] if model.points else []
        self.state = [self.q, self.qd, *touching]
        self._union, self._due = union, [np.broadcast_to(x, self.batch).reshape(self.count) for x in due]
        self.lanes: Lanes | None = None
        self._varied = [self._runs(sums(model, self.rows, self._payload, {}))] if self.rows and not union else []
        self._steps = {
            group: np.broadcast_to(x, (len(x), *self.batch, x.shape[-1])).reshape(len(x), self.count, x.shape[-1])
            for group, x in read.items()
        }
        self.rows_per_step = sum(x.shape[-1] for x in self._steps.values() if len(x) > 1)
        self.arrays = [self.q, self.qd, *self._steps.values()]

    def _runs(self, x: Array) -> Array:
        """An array (…, n) for all runs, (count, n), aligned."""
        return np.require(
            np.broadcast_to(x, (*self.batch, x.shape[-1])).reshape(self.count, x.shape[-1]), requirements="A"
        )

    def _read(self, group: str, value: ArrayLike, steps: int) -> Array:
        """An array of torques, gains or targets as (1, …, n), or as (steps, …, n) if it varies with time."""
        model, what = self._model, self._named[group]
        names = model.positions if group == "q_target" else model.coordinates
        n, a = len(names), np.require(model.numbers(what, value), requirements="A")
        if group != "q_target":
            a = model.over_all(a)
        elif a.ndim == 0:
            a = np.full(n, float(a))
        elif a.shape[-1] != n and (given := model.over_all(a)).shape[-1] == model.nv:
            freedoms = np.flatnonzero(~self._grouped)
            a = np.zeros((*a.shape[:-1], n))
            a[..., np.arange(n)[model.joint_forces.where][freedoms]] = given[..., freedoms]
        varies = a.ndim == self._axes + 2
        if a.shape[-1] != n or a.ndim > self._axes + 2 or (varies and len(a) != steps):
            runs = f"(…, {n}) for each run, " if self._axes else ""
            fewer = 0 < np.sum(~self._passive) < n
            active = ", or entries for the active freedoms only" if fewer else ""
            hint = "" if self._axes else f"; for several runs from one start give q as (1, {model.nq})"
            each = f"({steps}, {'…, ' if self._axes else ''}{n})"
            raise ShapeError(
                f"{what} has shape {a.shape}; expected ({n},), {runs}or {each} for each step{hint}; "
                f"the entries are {', '.join(names)}{active}"
            )
        self._check_joints(what, group, a)
        return a if varies else a[None]

    def _check_joints(self, what: str, group: str, a: Array) -> None:
        """Raise an error if there is an entry for a freedom that must have none."""
        refused: list[tuple[Any, str]] = [(self._passive, "is passive")] if group in _DRIVEN else []
        if group == "kp":
            refused.append((self._grouped, "is spherical, free or planar, so that q_target − q is no error"))
        for which, reason in refused:
            rows = np.flatnonzero(which)
            wrong = np.any(a[..., rows] != 0, axis=tuple(range(a.ndim - 1)))
            if wrong.any():
                name = self._model.coordinates[rows[int(np.argmax(wrong))]]
                raise errors.JointError(f"{what} must be 0 for {name!r}, whose joint {reason}")

    def change(self, stepper: Callable[[StepKind], Stepper]) -> None:
        """Prepare the changes; errors as for :class:`Lanes`."""
        assert self._union is not None
        bodies = {name: self._runs(x) for name, x in self._payload.items()}
        due = np.array(self._due, dtype=np.int64).reshape(-1, self.count)
        self.lanes = Lanes(self._union, due, bodies, self.rows, stepper)
        self._varied = self.lanes.inputs
        self.lanes.check_start(self.q)

    def changed(self, step: int, state: list[Array]) -> list[Array]:
        """The state after the changes before a step."""
        if self.lanes is None or step not in self.lanes.steps:
            return state
        state = [x.copy(order="K") for x in state]
        self.lanes.change(step, *state[:2])
        return state

    def inputs(self, start: int, end: int, t: float, state: Sequence[Array]) -> list[Array]:
        """The inputs of the compiled code for steps from start to end, at time t: (count, n), or (count, steps, n)."""
        called = [self._called(t, state)] if self.call else []
        steps = [np.moveaxis(x[start:end], 0, 1) if len(x) > 1 else x[0] for x in self._steps.values()]
        return [*state, *called, *steps, *self._varied]

    @property
    def constraints(self) -> Constraints:
        """Independent constraints of closed loops."""
        if self._union is not None:
            return self._union.constraints
        return Request(CATALOGUE["forward_dynamics"]).places(self._model) if self._model.topology.loops else []

    def check_closed(self) -> None:
        """Raise LoopError if a loop of one of the runs is open, or opens, at the start."""
        closure = Closure(Numbers(self._model)) if self._union is None else self._union.closure(self._union.first)
        for found in (closure.gap(self.q, 1), closure.opening(self.q, self.qd)) if closure.loops else ():
            run = int(np.abs(found).max(axis=1).argmax())
            advice = f"start run {run} from tree.project(q, qd)"
            closure.check(self.q[run], advice)
            closure.check_moving(self.q[run], self.qd[run], advice)

    def check_apart(self, of: Compiled, dt: float) -> None:
        """Raise an error if links begin so deep inside each other that the first step would push them apart fast."""
        if not self._model.points:
            return
        contacts = Contacts(of, self._model)
        # Links that no joint moves relative to each other push nothing, wherever they are.
        moves = np.abs(of.contact_jacobian(self.q[:1])).max(axis=(0, 2, 3)) > KEPT_ANYWAY
        gaps = np.where(moves, of.contact_gaps(self.q), 0.0)
        if self.lanes is not None and self.apart:
            gaps[:, list(self.apart)] += self.lanes.inputs[-1]
        if gaps.min(initial=0.0) < -_PUSHED * dt:
            run = int(gaps.min(axis=1).argmin())
            at, depth = contacts.deepest(gaps[run])
            raise errors.ContactError(
                f"{at.link!r} is {depth:.3g} mm inside {at.to!r} at contact {at.name!r} in run {run}; start from q = "
                f"tree.separate(q)"
            )

    def _called(self, t: float, state: Sequence[Array]) -> Array:
        """The torques that the function returns, (count, nv)."""
        assert self.call is not None
        views = [x.reshape(*self.batch, x.shape[-1]) for x in state[:2]]
        for x in views:
            x.flags.writeable = False
        try:
            value = self.call(t, *views)
        except Exception as error:
            error.add_note(f"in a call of torque(t, q, qd) of all runs at t = {t:.9g} s")
            raise
        if value is None:
            raise ShapeError(f"torque returned None at t = {t:g} s; return the torques of all runs")
        tau, full = self._model.over_all(self._model.numbers("torque", value)), (*self.batch, self._model.nv)
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
        for group, a in self._steps.items():
            finite = np.isfinite(a)
            if not finite.all():
                where = tuple(np.argwhere(~finite)[0].tolist())
                names = self._model.positions if group == "q_target" else self._model.coordinates
                step = f" in step {where[0]}" if len(a) > 1 else ""
                raise ShapeError(
                    f"{self._named[group]} is {a[where]} at {names[where[-1]]!r}{step}; every entry must be finite"
                )


def _calls(steps: int, every: int, given: _Inputs) -> Iterator[tuple[int, int]]:
    """Numbers of samples, and of steps between them, of each call; one sample if it takes several calls."""
    longest = 1 if given.single else max(1, _CALL // given.count)
    if given.rows_per_step:
        longest = max(1, min(longest, _ROWS // given.rows_per_step))
    most = max(1, min(longest // every, _ROWS // sum(x.shape[1] for x in given.state)))
    k = 0
    for end in (*(given.lanes.steps if given.lanes else ()), steps):
        while k < end:
            some = min(longest, every - k % every, end - k)
            samples = min(most, (end - k) // every) if some == every else 1
            yield samples, some
            k += samples * some


def _whole(what: str, value: int, kind: str = "an integer >= 1") -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ScrewdynError(f"{what} must be {kind}; got {value!r}")
    return int(value)


def _real(what: str, value: float) -> float:
    if not isinstance(value, float | int | np.floating | np.integer) or not math.isfinite(value):
        raise ScrewdynError(f"{what} must be a finite number; got {value!r}")
    return float(value)
