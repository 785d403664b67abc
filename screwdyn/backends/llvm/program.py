"""Machine code of functions on a tape: called with NumPy arrays, kept for structures of trees, and for integrators.

Code is made for a structure: the poses of the links, the screws of the joints, gravity, and which inertial numbers are
exactly zero. The other inertial numbers are parameters of the code. In rows that may carry a payload, and in a row one
of whose zeros has changed, all ten numbers are parameters, so another payload needs no new code.
"""

from __future__ import annotations

import ctypes
import math
import os
import pickle
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future
from functools import cached_property, partial
from itertools import chain, islice
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from screwdyn.backends.kernels import entry
from screwdyn.backends.kernels.entry import address
from screwdyn.backends.llvm import emit, machine
from screwdyn.backends.llvm.machine import Loaded, compiling, host, object_file
from screwdyn.backends.tape import trace
from screwdyn.backends.tape.tape import Recorded, Scalar, Tape, TooLong
from screwdyn.backends.tape.trace import Scalars, Subject, Undetermined
from screwdyn.core import Array, Flags, apart
from screwdyn.physics import CATALOGUE, INTERNAL, STEPS, Feedback, JointForces, Model, quantities
from screwdyn.physics import charts as charting
from screwdyn.physics.charts import Charts
from screwdyn.physics.reductions import aligned_frames
from screwdyn.physics.table import ARMATURE, MASS, PARENT, PLACE
from screwdyn.physics.time_stepping import moreau

# Functions with more operations are not compiled; compiling this many takes about 5 s.
LARGEST = 50_000
# Operations that are compiled in a second of a busy processor.
_A_SECOND = 5_000
# Memory of an operation on a tape, in bytes.
_OPERATION = 250
# States at a time in the interpreter: the width of a vector, because the results of all operations are stored.
_LANES = 8
# Largest number of states in a block, and of entries of all their arrays; number of states in a block without copies.
_STATES, _ENTRIES, _IN_PLACE = 32, 25_000, 2048
# The signature of code for one state: parameters, and the addresses of inputs and outputs.
_SIGNATURE = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
# Results of more bytes than this do not fit into the processor's caches.
_CACHED = 2**22
# Bytes of code that are kept: for some sixty six-axis arms.
MEMORY = 64_000_000
NO_PLACES = np.zeros((0, PLACE))
# Bound of the ratio of all operations on a tape to those that its outputs depend on, for trees of more than 20
# rows.
_WRITTEN = 3


class Interface(NamedTuple):
    """What callers of a compiled function need besides its code."""

    name: str
    lengths: list[int]  # of the inputs
    shapes: list[tuple[int, ...]]  # of the outputs
    slots: list[list[int]]  # for each input and output the row of scratch space of every entry, which zeros may share
    tape: Tape  # with the values that depend on parameters only
    known: list[Scalar]  # these values, in the order in which the code reads them


class Interpreter:
    """A function on a tape as an array that a kernel reads; every operation has a row for its result."""

    def __init__(self, plan: emit.Plan) -> None:
        groups, tape, bounds = list(plan.groups), plan.tape, list(zip(*plan.bounds, strict=True)) or [(), ()]
        arrays = [
            [x if isinstance(x, Recorded) else tape.constant(x) for x in entries]
            for entries in (*plan.outputs, *bounds)
        ]
        row = {at: k for k, at in enumerate(plan.known)}
        for at in tape.live(chain(*arrays), row):
            row[at] = len(row)
        start = [0.0] * len(row)
        self._inputs: list[tuple[int, int, int]] = []
        code = []
        for at, k in islice(row.items(), len(plan.known), None):
            op, a, b = tape.nodes[at]
            if op == "constant":
                start[k] = a
            elif op == "input":
                self._inputs.append((k, groups.index(a[0]), a[1]))
            else:
                code.append((entry.OPERATIONS.index(op), k, row[a], row[a if b is None else b]))
        self._code = np.array(code, dtype=np.int64).reshape(-1, 4)
        # Rows of the scalars in each array, and their signs.
        *self._outputs, self._carried, self._least = (
            (
                np.array([row[x.node] for x in array], np.intp),
                np.array([-1.0 if x.minus else 1.0 for x in array])[:, None],
            )
            for array in arrays
        )
        self._start, self._known = np.array(start)[:, None], len(plan.known)
        self.nbytes = self._code.nbytes + self._start.nbytes

    def __call__(self, parameters: Array, inputs: Sequence[Array], outputs: Sequence[Array]) -> bool:
        """Compute states along the first axis; return whether the assumptions of the tape hold for all of them."""
        count, sound = len(inputs[0]), all([np.abs(x).max(initial=0.0) < quantities.LARGEST for x in inputs])
        lanes = min(count, _LANES)
        results = np.repeat(self._start, lanes, axis=1)
        results[: self._known] = parameters[: self._known, None]
        (carried, a), (least, b) = self._carried, self._least
        for first in range(0, count, _LANES):
            first = min(first, count - lanes)  # the last ones overlap those before
            now = slice(first, first + lanes)
            for row, group, k in self._inputs:
                results[row] = inputs[group][now, k]
            entry.play(self._code, results)
            for (rows, signs), out in zip(self._outputs, outputs, strict=True):
                out[now] = (results[rows] * signs).T.reshape(out[now].shape)
            sound &= bool((results[carried] * a > results[least] * b).all())
        return sound


class Program:
    """A function, and the machine code that is made from its plan on request; ``code`` has object files by function.

    It is interpreted if it is too long, has no inputs or outputs, or without llvmlite. Without a plan it is recorded
    again if code is missing.
    """

    def __init__(self, interface: Interface, plan: emit.Plan | None, code: Mapping[str, bytes] | None = None) -> None:
        self._interface, self.plan = interface, plan
        self.name, self.lengths, self.shapes = interface[:3]
        short = plan is None or (plan.size <= LARGEST and sum(self.lengths) > 0 and len(self.shapes) > 0)
        self.compiled = short and host().code is not None
        lanes = range(host().width)
        # For each array its rows of scratch space, the address of their slots, and whether entries share a row.
        self._slots, self.layout = [], []
        for here in interface.slots:
            rows = 1 + max(here, default=-1)
            self._slots.append(np.array([*lanes, *here, *(rows + k for k in lanes)], dtype=np.int64))
            self.layout.append((rows, address(self._slots[-1][len(lanes) :]), rows < len(here)))
        self._record: Callable[[], Program] | None = None
        self._key = ""
        self._interpreter: Interpreter | None = None
        self._code = [Loaded(*code.values())] if code else []
        self._found = {name: self._code[0].address(name) for name in code or ()}

    @property
    def single(self) -> int:
        """Address of the code for one state; 0 if it is not made yet."""
        return self._found.get(emit.SINGLE, 0)

    @property
    def batch(self) -> int:
        """Address of the code for many states or many steps; 0 if it is not made yet."""
        return self._found.get(emit.BATCH) or self._found.get(emit.STEPS, 0)

    @cached_property
    def _order(self) -> list[int]:
        """The operations of the known values."""
        tape, known = self._interface[4:]
        return tape.live(known)

    @property
    def nbytes(self) -> int:
        """Memory that is kept in bytes, with an error of a few per cent."""
        operations = len(self._interface.tape.nodes) + (len(self.plan.tape.nodes) if self.plan else 0)
        interpreter = self._interpreter.nbytes if self._interpreter else 0
        return _OPERATION * operations + interpreter + sum(x.nbytes for x in self._code)

    def parameters(self, values: Mapping[Hashable, float]) -> Array:
        """The array that the code reads: known values, from the values of the parameters, and an address."""
        tape, known = self._interface[4:]
        # Values that are not finite violate the bounds of the program.
        with np.errstate(divide="ignore", invalid="ignore"):
            array = np.array([*tape.evaluate(known, values, order=self._order), 0.0], dtype=np.float64)
        array[-1:].view(np.int64)[0] = host().sincos
        return array

    def compile(self, name: str) -> None:
        """Make the code of a function of ``emit`` unless it exists; stderr announces what takes long."""
        if name not in self._found:
            folder = machine.folder() if self._key else None
            kept = "not kept on disk" if folder is None else f"once; kept in {folder}"
            size = self.plan.size if self.plan is not None else 0
            long = f", {size} operations, some {size / _A_SECOND:.0f} s of a processor" if size > 2 * _A_SECOND else ""
            self._compile(name, line=f"compiling {self.name} of this robot{long} ({kept})")

    @compiling
    def _compile(self, name: str) -> None:
        if name in self._found:
            return
        if self.plan is None:
            assert self._record is not None
            self.plan = self._record().plan
            assert self.plan is not None
        code = object_file(getattr(emit, name)(self.plan, host().width))
        self._code.append(Loaded(code))
        self._found[name] = self._code[-1].address(name)
        if self._key:
            others = _read(self._key)[1]
            machine.write(self._key, pickle.dumps((self._interface, {**others, name: code})))
        if name == emit.STEPS or {emit.SINGLE, emit.BATCH} <= self._found.keys():
            self.plan = None

    def interpreter(self) -> Interpreter:
        """The interpreter of the function, used instead of code."""
        return self._interpreter or self._interpreted()

    @compiling
    def _interpreted(self) -> Interpreter:
        """The interpreter, made once."""
        if self._interpreter is None:
            assert self.plan is not None
            self._interpreter, self.plan = Interpreter(self.plan), None
        return self._interpreter


def planned(
    name: str, tape: Tape, groups: Mapping[str, int], outputs: Sequence[Scalars], loop: emit.Loop | None = None
) -> Program:
    """The program of a function on a tape with inputs (group, index), from the lengths of their groups in order."""
    plan = emit.Plan(tape, groups, [out.ravel().tolist() for out in outputs], tape.assumed, host().fused, loop)
    part, known = tape.excerpt([Recorded(tape, at) for at in plan.known])
    slots = [*([*range(n)] for n in groups.values()), *plan.slots]
    shapes = [x.shape for x in outputs]
    return Program(Interface(name, [*groups.values()], shapes, slots, part, known), plan)


def kept(made_from: Hashable, record: Callable[[], Program], what: str = "a function") -> Program:
    """The program of what it is ``made_from``, which has an exact ``repr``, with the code on disk; or a new one."""
    key = machine.key(made_from, host().width, host().fused)
    with machine.announced(f"tracing {what} of this robot (once in a process)"):
        program = _loaded(key) or record()
    program._key, program._record = key, record
    return program


@compiling
def _loaded(key: str) -> Program | None:
    """The program with the code of a key; None if it is not on disk."""
    interface, code = _read(key)
    return interface and Program(interface, None, code)


def _read(key: str) -> tuple[Interface | None, dict[str, bytes]]:
    """The interface of a program on disk, and the code of its functions."""
    content = machine.read(key)
    found: tuple[Interface | None, dict[str, bytes]] = pickle.loads(content) if content else (None, {})
    return found


class Function:
    """A program with the parameters of one table: its inertias, if the program has parameters.

    It is compiled in its first call with one state, and with a batch; what is not compiled is interpreted.
    """

    _entry: Any = None

    def __init__(self, program: Program, table: Array | None = None) -> None:
        self.program = program
        self.parameters = program.parameters({} if table is None else inertias(table))

    def builtin(self, slow: Callable[..., Any], share: Callable[..., Any] | None = None, k: int = -1) -> Any:
        """The built-in function f(q, …, out=array) of one state, with signature, docstring and pickling of ``slow``.

        It calls ``slow`` for other arguments than contiguous, aligned float64 arrays that do not overlap, and if the
        code fails. ``share`` makes its result of several outputs; it knows the arguments of method ``k`` by name.
        """
        program, text = self.program, f"{entry.text_of(self.program.name, slow)}\0{self.program.name}"
        at, arrays = (program.single, address(self.parameters)), (tuple(program.lengths), tuple(program.shapes))
        return entry.machine.builtin_at(text, *at, *arrays, slow, (program, self.parameters), share, k)

    def state(self, state: Sequence[Any], out: Any = None) -> Sequence[Array] | None:
        """The outputs for one state in contiguous arrays of the right shape; None for other arguments."""
        program = self.program
        if self._entry is None:
            if any(getattr(x, "ndim", 1) > 1 for x in state):
                return None  # a batch, which has code of its own
            if program.compiled:
                program.compile(emit.SINGLE)
            self._entry = self.builtin(entry.refuse) if program.compiled else entry.refuse
        several = len(program.shapes) > 1
        found = self._entry(*state) if out is None else self._entry(*state, out=out if several else out[0])
        return found if several or found is None else (found,)

    def evaluate(
        self,
        values: Sequence[Array],
        shapes: Sequence[tuple[int, ...]],
        out: Sequence[Array] | None = None,
        in_parts: Callable[[Callable[[slice], bool], int], Sequence[bool]] | None = None,
    ) -> tuple[Sequence[Array], bool]:
        """The outputs for arrays of any layout with the same batch axes; False as for :meth:`single`, for any state.

        An ``out`` that may overlap the arguments is not written to, because the caller may need them. A batch is
        computed in one part, or by ``in_parts`` of a function of slices and the number of states.
        """
        axes, count = values[0].ndim - 1, math.prod(values[0].shape[:-1])
        inputs = [_states(a, axes, count) for a in values]
        contiguous = count != 1 and all(a.strides[0] == a.itemsize for a in inputs)
        results = [_empty(shape, axes, count, contiguous) for shape in shapes] if out is None else [*out]
        for k, a in enumerate(out or ()):
            if not apart(a, values) or apart(_states(a, axes, count), [a]):
                results[k] = _empty(shapes[k], axes, count, contiguous)
        outputs = [_states(a, axes, count) for a in results]
        if count == 1:
            whole = [np.ascontiguousarray(a) for a in outputs]
            sound = self.single([np.ascontiguousarray(a) for a in inputs], whole)
            for a, b in zip(outputs, whole, strict=True):
                if a is not b and sound:
                    a[...] = b
            return results, sound

        def part(of: slice) -> bool:
            return self.batch([a[of] for a in inputs], [a[of] for a in outputs])

        return results, part(slice(count)) if in_parts is None else all(in_parts(part, count))

    def single(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> bool:
        """Compute one state in contiguous arrays; False if an input is not finite or a bound does not hold."""
        if not self.program.compiled:
            return self.program.interpreter()(self.parameters, inputs, outputs)
        self.program.compile(emit.SINGLE)
        arrays = np.array([*map(address, [*inputs, *outputs]), 0], dtype=np.int64)
        return not _SIGNATURE(self.program.single)(address(self.parameters), address(arrays))

    def batch(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> bool:
        """Compute states along the first axis of arrays of any strides; False as for :meth:`single`, for any state."""
        if not self.program.compiled:
            return self.program.interpreter()(self.parameters, inputs, outputs)
        if not self.program.batch:
            self.program.compile(emit.BATCH)
        return drive(self.program.batch, self.parameters, inputs, outputs, self.program.layout)


def _states(a: Array, axes: int, count: int) -> Array:
    """An aligned array, (count, columns) or (count, rows, columns), with the batch axes merged; a view if possible."""
    entries = a.shape[axes:] or (1,)
    if len(entries) > 2:
        entries = math.prod(entries[:-1]), entries[-1]
    if type(a) is not np.ndarray or a.shape != (count, *entries):
        a = np.asarray(a).reshape(count, *entries)
    return a if a.flags.aligned else a.copy()


def _empty(shape: tuple[int, ...], axes: int, count: int, contiguous: bool) -> Array:
    """A new array, in which an entry of all states is contiguous, or all entries of a state."""
    if not contiguous:
        return np.empty(shape)
    entries = np.empty((*shape[axes:], count))
    return np.moveaxis(entries, -1, 0).reshape(shape)


def drive(
    code: int,
    parameters: Array,
    inputs: Sequence[Array],
    outputs: Sequence[Array],
    layout: Sequence[tuple[int, int, bool]],
) -> bool:
    """Call code for a batch on arrays of any strides, with the ``layout`` of a program; False if it returns nonzero."""
    count, lanes, given = len(outputs[0]), host().width, len(inputs)
    if count == 0:
        return True
    arrays = [(a, _grid(a), *own) for a, own in zip([*inputs, *outputs], layout, strict=True)]
    block, total = _IN_PLACE, sum([rows for rows, _, _ in layout])
    in_place = [a.strides[0] == a.itemsize and grid[0] == 1 and not shared for a, grid, _, _, shared in arrays]
    if not all(in_place):
        # The scratch space of a block fits into the second-level cache: the largest power of two.
        block = min(_STATES, max(lanes, (1 << (_ENTRIES // total).bit_length()) >> 1))
    streamed = sum([out.nbytes for out in outputs]) > _CACHED
    scratch = np.empty((total + lanes, block))
    fields: list[int] = []  # of the ``Field`` of each array, in order; named tuples take longer
    row = 0
    for k, (a, grid, rows, slots, shared) in enumerate(arrays):
        fields += address(a), a.strides[0], *grid, 8 * block * row
        fields += k >= given, slots, in_place[k], k >= given and streamed
        row += rows
        if shared:
            scratch[row - 1] = 0.0
    table = np.array(fields, dtype=np.int64)
    arguments = len(arrays), address(table), address(scratch), block
    return not host().drive(code, count, address(parameters), *arguments)


def inertias(table: Array) -> dict[Hashable, float]:
    """The inertial numbers of all rows, by their names on a tape."""
    return {("inertia", at): x for at, x in np.ndenumerate(table[:-1, MASS:PARENT])}


def _grid(a: Array) -> tuple[int, int, int, int]:
    """Numbers of rows and columns of each state's entries, and their strides; one row if that is possible."""
    rows, columns = a.shape[1:] if a.ndim == 3 else (1, a.shape[1])
    row_step, column_step = a.strides[1:] if a.ndim == 3 else (0, a.strides[1])
    if rows == 1 or row_step == columns * column_step:
        return 1, rows * columns, 0, column_step
    return rows, columns, row_step, column_step


# Code for structures of trees


class Structure(NamedTuple):
    """The structure that code is made for."""

    table: Array  # (n + 1, 27), rows of a model, with zeros for their inertias, and the base's
    opened: Flags  # (n, 10), which inertial numbers are parameters; the others are zero
    charts: Charts | None = None  # of a model with group joints or couplings
    places: Array = NO_PLACES  # (links, 25), of the links of the quantity

    def subject(self, tape: Tape) -> Subject:
        """The structure on a tape, with inputs for its parameters."""
        charts = self.charts and Charts(self.charts.where, *map(trace.constants, self.charts[1:]))
        return Subject(trace.open_inertias(self.table, tape, self.opened), charts, trace.constants(self.places))


def frozen(x: Any) -> Any:
    """A value in which tuples contain arrays as a hashable one."""
    if isinstance(x, tuple):
        return tuple(map(frozen, x))
    return x.tobytes() if isinstance(x, np.ndarray) else x


Made = TypeVar("Made")


class Kept(Generic[Made]):
    """A cache of objects for structures: ``most`` bytes of those most recently used, and at least the last one."""

    def __init__(self, make: Callable[[Structure, Any], Made], most: int) -> None:
        self._make, self._most = make, most
        self._known: OrderedDict[Hashable, tuple[Flags, Any]] = OrderedDict()
        # Several threads that ask for the same object share it; the process is not forked meanwhile.
        self._lock = threading.RLock()
        if hasattr(os, "register_at_fork"):
            release = self._lock.release
            os.register_at_fork(before=self._lock.acquire, after_in_parent=release, after_in_child=release)

    def serving(
        self, table: Array, loaded: Flags, what: Any = None, charts: Charts | None = None, places: Array = NO_PLACES
    ) -> Made:
        """The object for ``what`` that serves a model, whose ``loaded`` rows may carry a payload; or a new one."""
        frame = table + 0.0
        inertias = frame[:-1, MASS:PARENT]
        needed = (inertias != 0) | loaded[:, None]
        inertias[:] = 0
        key = frozen((what, frame, charts, places))
        with self._lock:
            opened, made = self._known.pop(key, (None, None))
            if made is None or opened is None or (needed & ~opened).any():
                if opened is not None:
                    # Parameters stay parameters; all numbers of a row in which a zero has changed become parameters.
                    needed |= opened | (needed & ~opened).any(axis=1)[:, None]
                opened, made = needed, self._make(Structure(frame, needed, charts, places), what)
                self._known[key] = opened, made
                excess = sum(x.nbytes for _, x in self._known.values()) - self._most
                while len(self._known) > 1 and excess > 0:
                    excess -= self._known.popitem(last=False)[1][1].nbytes
            self._known[key] = opened, made
            return made


class Compilation:
    """The program of a quantity of one structure while it is compiled in the background.

    ``single`` and ``batch`` are the program as soon as it has that code, or None if it is too long to compile.
    """

    def __init__(self, structure: Structure, name: str) -> None:
        # Code for single states before code for batches, and small trees first.
        size = len(structure.table)
        self.single: Future[Program | None] = machine.submit((size, 0), partial(_compile_single, name, structure))
        self.batch: Future[Program | None] = machine.submit((size, 1), partial(_compile_batch, self.single))

    @property
    def program(self) -> Program | None:
        """The program if its code for single states is ready; otherwise None."""
        return self.single.result() if self.single.done() and self.single.exception() is None else None

    @property
    def nbytes(self) -> int:
        """Memory of the program if it is ready, in bytes."""
        return 0 if self.program is None else self.program.nbytes


def recorded(name: str, structure: Structure) -> Program:
    """Record a quantity of a structure, and plan it; raises TooLong, or Undetermined as ``record``."""
    tape = Tape(_WRITTEN * LARGEST)
    subject = structure.subject(tape)
    if CATALOGUE[name].base_parameters and not len(structure.places):
        subject = subject._replace(table=aligned_frames(subject.table))
    lengths = {group: subject.nq if group == "q" else subject.nv for group in CATALOGUE[name].arguments}
    return planned(name, tape, lengths, trace.outputs(tape, name, subject.with_zeros()))


def _compile_single(name: str, structure: Structure) -> Program | None:
    try:
        program = kept((name, frozen(structure)), partial(recorded, name, structure))
    except (TooLong, Undetermined):
        return None
    if not program.compiled:
        return None
    program.compile(emit.SINGLE)
    return program


def _compile_batch(single: Future[Program | None]) -> Program | None:
    program = single.result()
    if program is not None:
        program.compile(emit.BATCH)
    return program


_programs = Kept(Compilation, MEMORY)


def compilation_of(name: str, model: Model, places: Array = NO_PLACES) -> Compilation:
    """The compilation of a quantity of a model, for links at some places; it starts in the first call."""
    table = felt_by(name, model.table)
    return _programs.serving(table, model.loaded, name, model.charts, places)


def felt_by(name: str, table: Array) -> Array:
    """A table without the bodies that are welded to the base, if these have no influence on a quantity."""
    table = table.copy()
    if CATALOGUE[name].base_parameters:
        table[-1, MASS:PARENT] = 0.0
    return table


# A step of an integrator on a tape: the state after it from the state before. Inputs besides the state are ("dt", 0),
# the torques or the entries of a ``Feedback`` by name, ("bodies", k) for the inertial numbers of some rows, ("held", k)
# for armatures that hold some rows, ("apart", k) for what is added to the gaps of some points, ("loose", k) for the
# compliances of some constraints, and (field, row) for the parameters of the joints' own forces, and of contacts, that
# are not zero. With contacts, the state includes impulses.

# Inertial numbers of a row.
NUMBERS = PARENT - MASS
# The impulses of contacts in a state, and the parameters of a contact.
IMPULSES, CONTACT = "impulses", ("friction of contact", "restitution")
# The method of a step that refines the change of the rates by an impact, in place of a name in ``STEPS``.
IMPACT = "impact"


class StepKind(NamedTuple):
    """What the code of a step depends on besides the structure of the tree."""

    method: str  # a name in ``joint_forces.STEPS``, or ``IMPACT``
    control: tuple[str, ...]  # groups of inputs that control the joints: none, ("tau",), or the fields of ``Feedback``
    rows: tuple[int, ...]  # rows whose inertial numbers are inputs
    forces: tuple[tuple[str, int], ...]  # parameters of the joints' own forces that are not zero
    held: tuple[int, ...] = ()  # rows with an armature that is an input: 0, or boundless while they do not move
    struck: tuple[tuple[int, ...], tuple[float, ...]] | None = None  # rows of what slips in an impact, pose of its root
    apart: tuple[int, ...] = ()  # points of contacts with an input that is added to their gaps
    closed: bool = False  # whether the places are constraints of closed loops, not points of contacts
    loose: tuple[int, ...] = ()  # constraints with a compliance that is an input: 0, or boundless while loops are open


class Motion:
    """A tree on a tape, for ``STEPS`` and ``moreau``; what is ``found`` is recorded once, and repeated for each state.

    These are the accelerations, and of contacts what ``touching`` returns, on the tape ``own``. ``parameters`` are
    those of the joints' own forces, by field and freedom; ``control`` has the torques, "tau", or the fields of
    :class:`Feedback`.
    """

    def __init__(
        self,
        tape: Tape,
        own: Tape,
        subject: Subject,
        found: Sequence[Scalars],
        parameters: Mapping[tuple[str, int], Scalar],
        control: Mapping[str, Scalars],
    ) -> None:
        self._tape, self._own, self._charts, self._freedoms = tape, own, subject.chart, subject.freedoms
        self._found, n = found, subject.nv
        self.loop: emit.Loop | None = None
        # The position of each freedom.
        self._where = np.zeros(n, dtype=np.intp)
        self._where[self._freedoms] = self._charts.where
        numbers = {field: trace.zeros(n) for field in JointForces._fields if field != "where"}
        for (field, row), value in parameters.items():
            if field in numbers:
                numbers[field][row] = value
        forces: Any = JointForces
        self._forces = forces(**numbers, where=self._where)
        self._tau = control.get("tau", 0.0)
        self._feedback = Feedback(**control) if len(control) > 1 else None

    def acceleration(self, q: Scalars, qd: Scalars) -> Scalars:
        """Forward dynamics with the torques and the joints' own forces."""
        return self.touching(q, qd)[0]

    def touching(self, q: Scalars, qd: Scalars) -> list[Scalars]:
        """The accelerations, and of contacts the gaps, the rows J, and Z with M⁻¹ = Z Zᵀ."""
        forces, tape, own = self._forces, self._tape, self._own
        tau = forces.smoothed_force(q, qd)
        tau = tau + (self._tau if self._feedback is None else self._feedback.torque(q, qd, self._where))
        state = {"q": q, "qd": qd, "tau": tau}
        values = {
            node.a: state[node.a[0]][node.a[1]] if node.a[0] in state else tape.input(node.a)
            for node in own.nodes
            if node.op == "input"
        }
        ends: list[Any] = [*chain(*(x.flat for x in self._found), *own.assumed)]
        made = iter(own.evaluate(ends, values))
        found = [np.array([*islice(made, x.size)], dtype=object).reshape(x.shape) for x in self._found]
        tape.assumed += zip(made, made, strict=True)
        return found

    def unturned(self, v: Scalars, a: Scalars) -> Scalars:
        """The accelerations in axes that do not turn with group joints."""
        a, extra = a.copy(), trace.zeros(len(self._freedoms))
        charting.add_turn(self._charts.groups, v[self._freedoms], extra)
        for row, freedom in enumerate(self._freedoms):
            a[freedom] = a[freedom] + extra[row]
        return a

    def moved_straight(self, q: Scalars, v: Scalars, dt: Scalar) -> tuple[Scalars, Scalars]:
        """The positions reached by moving at v for some time, on straight lines, and the rates there."""
        v, rows, reached = v.copy(), v[self._freedoms], trace.zeros(len(q))
        charting.move_straight(self._charts.where, self._charts.groups, q, rows, dt, reached)
        v[self._freedoms] = rows
        return reached, v

    def repeated(self, sweep: Callable[[Scalars], Sequence[Scalar]], start: Sequence[Scalar], most: int) -> Scalars:
        """What values become by a function that is repeated until the last is not positive, at most so many times."""
        before, after = (trace.inputs(self._tape, group, range(len(start))) for group in (emit.SOUGHT, emit.FOUND))
        self.loop = emit.Loop(start, sweep(before), most)
        return after

    def rate(self, q: Scalars, qd: Scalars) -> Scalars:
        """The time derivative of the positions."""
        rate = trace.zeros(len(q))
        charting.position_rate(self._charts.where, self._charts.groups, q, qd[self._freedoms], rate)
        return rate

    def normalized(self, q: Scalars) -> Scalars:
        """The positions with quaternions of length 1."""
        q = q.copy()
        charting.normalize(self._charts.groups, q)
        return q

    def moved(self, q: Scalars, v: Scalars) -> Scalars:
        """The positions reached by moving at v for unit time."""
        reached = trace.zeros(len(q))
        charting.integrate(self._charts.where, self._charts.groups, q, v[self._freedoms], reached)
        return reached


# Compiled steps: many steps of an integrator in one call, for a batch of states

# Steps with more operations are not compiled; compiling this many takes about 6 s.
LARGEST_STEP = 100_000


def _stepped(structure: Structure, kind: StepKind) -> Program:
    """The steps of a structure."""
    record = _recorded_impact if kind.method == IMPACT else _recorded_steps
    return kept(("steps", kind, frozen(structure)), partial(record, structure, kind), "the step")


def _recorded_steps(structure: Structure, kind: StepKind) -> Program:
    """The steps of a structure, recorded on a tape and planned."""
    tape, own = Tape(_WRITTEN * LARGEST), Tape(_WRITTEN * LARGEST)
    subject = structure.subject(own).with_zeros()
    n, points = subject.nv, 0 if kind.closed else len(structure.places)
    lengths = {"q": subject.nq, "qd": n, **({IMPULSES: 3 * points} if points else {})}
    lengths |= {x: subject.nq if x == "q_target" else n for x in kind.control}
    lengths |= _of_rows(kind)
    q, qd = (subject.inputs(tape, group) for group in ("q", "qd"))
    moving = _varied(subject, own, kind)
    if kind.loose:
        found = [trace.loop_dynamics(own, moving, kind.loose)]
    else:
        found = trace.touching_dynamics(own, moving) if points else trace.outputs(own, "forward_dynamics", moving)
    control = {
        group: trace.inputs(tape, group, range(subject.nq if group == "q_target" else n)) for group in kind.control
    }
    parameters = {name: tape.input(name) for name in kind.forces}
    dt, motion = tape.input(("dt", 0)), Motion(tape, own, subject, found, parameters, control)
    if not points:
        return planned("step", tape, lengths, STEPS[kind.method](motion, q, qd, dt))
    found[1][list(kind.apart)] += trace.inputs(own, "apart", range(len(kind.apart)))
    before = trace.inputs(tape, IMPULSES, range(3 * points))
    slips, rebounds = ([parameters.get((field, k), 0.0) for k in range(points)] for field in CONTACT)
    return planned("step", tape, lengths, moreau(motion, q, qd, before, slips, rebounds, dt), motion.loop)


def _of_rows(kind: StepKind) -> dict[str, int]:
    """Lengths of the groups of inputs for some rows."""
    lengths = {"bodies": NUMBERS * len(kind.rows), "held": len(kind.held), "apart": len(kind.apart)}
    return {group: n for group, n in {**lengths, "loose": len(kind.loose)}.items() if n}


def _varied(subject: Subject, tape: Tape, kind: StepKind) -> Subject:
    """The subject with inputs for the inertial numbers of some rows, and for armatures that hold some."""
    table = subject.table.copy()
    bodies = trace.inputs(tape, "bodies", range(NUMBERS * len(kind.rows)))
    table[list(kind.rows), MASS:PARENT] = bodies.reshape(-1, NUMBERS)
    table[list(kind.held), ARMATURE] += trace.inputs(tape, "held", range(len(kind.held)))
    return subject._replace(table=table)


def _recorded_impact(structure: Structure, kind: StepKind) -> Program:
    """A refinement of the change δ of the rates by an impact, as the recursion ``impact``, with δ in place of rates.

    What is struck slips by a twist, "slip", and of the bodies of its first row those of ten inertial numbers, "slips".
    The rates "before" and their change together keep loops closed.
    """
    tape = Tape(_WRITTEN * LARGEST)
    moving = _varied(structure.subject(tape).with_zeros(), tape, kind._replace(held=()))
    subject = _varied(moving, tape, kind)
    lengths = {"q": subject.nq, "qd": subject.nv, **_of_rows(kind)}
    slip, parts = trace.zeros(1, 18), trace.zeros(0, PLACE)
    if kind.struck is not None:
        more = {"slip": 6, "slips": NUMBERS}
        twist, slips = (trace.inputs(tape, group, range(n)) for group, n in more.items())
        lengths, (rows, pose), slip[0, 12:] = lengths | more, kind.struck, twist
        slip[0, :12], parts, bodies = pose, trace.zeros(len(rows), PLACE), subject.table[list(rows), MASS:PARENT]
        parts[:, 0], parts[1:, 1 : 1 + NUMBERS] = rows, bodies[1:]
        parts[0, 1 : 1 + 2 * NUMBERS] = *slips, *(bodies[0] - slips)
    state = {"q": subject.inputs(tape, "q"), "qd": subject.inputs(tape, "qd"), "slip": slip}
    state["tau"], *_ = trace.computed(INTERNAL["slip_momentum"], moving._replace(places=parts), state.__getitem__)
    if kind.closed:
        lengths["before"] = subject.nv
        (J,), before = trace.record(tape, "constraint_jacobian", subject), subject.inputs(tape, "before")
        jump = trace.constrained(tape, subject, state["tau"], J @ (before + state["qd"]), kind.loose)
    else:
        (jump,) = trace.computed(INTERNAL["impulse_response"], subject, state.__getitem__)
    return planned("impact", tape, lengths, [state["q"], state["qd"] - jump])


_steps = Kept(_stepped, MEMORY)


class Stepper:
    """Steps of a model, with values of parameters; TooLong, or Undetermined if some joint feels no inertia.

    The places are the points of contacts, none in an impact, or independent constraints of closed loops.
    """

    def __init__(
        self, model: Model, kind: StepKind, values: Mapping[Hashable, float], places: Sequence[Sequence[Any]]
    ) -> None:
        table, at = felt_by("forward_dynamics", model.table), np.array(places, np.float64).reshape(-1, PLACE)
        self._program = _steps.serving(table, model.loaded, kind, model.charts, at)
        plan = self._program.plan  # another thread may discard it
        if plan is not None and plan.size > LARGEST_STEP:
            raise TooLong
        self._program.compile(emit.STEPS)
        self._known = self._program.parameters({**inertias(table), **values})

    def run(self, samples: int, every: int, inputs: Sequence[Array], outputs: Sequence[Array], part: slice) -> bool:
        """Compute ``samples`` · ``every`` steps of some of the runs; False if a state became NaN.

        Inputs are (count, n), or (count, steps, n) if they vary with time. Outputs are positions, rates, and with
        contacts impulses, (count, samples, n), and the number of steps until the state became NaN, (count, 1).
        """
        program, lanes = self._program, host().width
        lengths, varying = program.lengths, [x.ndim > 2 for x in inputs]
        header = np.array([samples, every, *(n * v for n, v in zip(lengths, varying, strict=True))])
        context = np.concatenate([header.astype(np.int64).view(np.float64), self._known])
        rows = [n * (samples * every if v else 1) for n, v in zip(lengths, varying, strict=True)]
        rows += [*(samples * n for n in lengths[: len(outputs) - 1]), 1]
        numbers = np.array([*range(lanes), *range(max(rows) + lanes)], dtype=np.int64)
        inputs, outputs = [x[part] for x in inputs], [x[part] for x in outputs]
        return drive(program.batch, context, inputs, outputs, [(n, address(numbers[lanes:]), False) for n in rows])
