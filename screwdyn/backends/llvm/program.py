"""A planned function and its machine code, called with NumPy arrays for one state and for batches in any layout."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from screwdyn.backends.kernels.entry import OPERATIONS, Computation, address, addresses, builtin_at, play, refuse
from screwdyn.backends.llvm import emit, machine
from screwdyn.backends.llvm.emit import Plan
from screwdyn.backends.llvm.machine import Loaded, compiling, host, object_file
from screwdyn.backends.tape.tape import Node, Recorded, Scalar, Tape
from screwdyn.backends.tape.trace import Scalars
from screwdyn.physics import quantities
from screwdyn.physics.table import MASS, PARENT

__all__ = ["LARGEST", "Evaluator", "Function", "Program", "drive", "inertias", "kept", "planned"]


class Interface(NamedTuple):
    """The arrays of a compiled function, and the values that it reads before the state is known."""

    name: str
    lengths: list[int]  # of the inputs
    shapes: list[tuple[int, ...]]  # of the outputs
    sparse: list[bool]  # whether each output has many zeros, which share a row of scratch space
    slots: list[list[int]]  # for each input and output the row of scratch space of every entry in a batch
    # (Tape, list of Recorded): The values that depend on parameters only, in the order in which the code reads
    # them
    known: tuple[Tape, list[Any]]

    def plain(self) -> list[Any]:
        """The interface as lists, texts and numbers, for JSON."""
        tape, known = self.known
        return [*self[:-1], tape.nodes, [x.node for x in known]]


def interface(name: str, plan: Plan, outputs: Sequence[Scalars]) -> Interface:
    """The interface of a planned function."""
    lengths = list(plan.groups.values())
    slots = [list(range(n)) for n in lengths] + plan.slots
    known = plan.tape.excerpt([Recorded(plan.tape, at) for at in plan.known])
    return Interface(name, lengths, [x.shape for x in outputs], plan.sparse, slots, known)


def restored(plain: list[Any]) -> Interface:
    """The interface from what :meth:`Interface.plain` has returned."""
    name, lengths, shapes, sparse, slots, nodes, known = plain
    tape = Tape()
    tape.nodes = [Node(op, _hashable(a), b) for op, a, b in nodes]
    return Interface(name, lengths, [*map(tuple, shapes)], sparse, slots, (tape, [Recorded(tape, at) for at in known]))


def _hashable(x: Any) -> Any:
    """A list as nested tuples, as in the names of inputs."""
    return tuple(map(_hashable, x)) if isinstance(x, list) else x


# Functions that are not compiled

Array = npt.NDArray[np.float64]
# States at a time: the width of a vector, because the results of all operations are stored.
_LANES = 8


class Interpreter:
    """A function on a tape as an array that a kernel reads; every operation has a row for its result."""

    def __init__(self, plan: Plan) -> None:
        nodes, groups = plan.tape.nodes, list(plan.groups)
        ends = [x for x in chain(*plan.outputs, *plan.bounds) if isinstance(x, Recorded)]
        row = {at: k for k, at in enumerate(plan.known)}
        for at in plan.tape.live(ends, row):
            row[at] = len(row)
        start = [0.0] * len(row)
        self._inputs: list[tuple[int, int, int]] = []
        code = []
        for at, k in islice(row.items(), len(plan.known), None):
            op, a, b = nodes[at]
            if op == "constant":
                start[k] = a
            elif op == "input":
                self._inputs.append((k, groups.index(a[0]), a[1]))
            else:
                code.append((OPERATIONS.index(op), k, row[a], row[a if b is None else b]))
        self._code = np.array(code, dtype=np.int64).reshape(-1, 4)

        def found(entries: Sequence[Scalar]) -> tuple[npt.NDArray[np.int64], Array]:
            """Rows of some scalars, and their signs."""
            rows, signs = [], []
            for x in entries:
                if isinstance(x, Recorded):
                    rows.append(row[x.node])
                    signs.append(-1.0 if x.minus else 1.0)
                else:
                    rows.append(len(start))
                    signs.append(1.0)
                    start.append(float(x))
            return np.array(rows, dtype=np.int64), np.array(signs)[:, None]

        self._outputs = [found(entries) for entries in plan.outputs]
        self._carried = found([x for x, _ in plan.bounds])
        self._least = found([least for _, least in plan.bounds])
        self._start, self._known = np.array(start)[:, None], len(plan.known)
        self.nbytes = self._code.nbytes + self._start.nbytes

    def __call__(self, parameters: Array, inputs: Sequence[Array], outputs: Sequence[Array]) -> bool:
        """Compute states along the first axis; return whether the assumptions of the tape hold for all of them."""
        count, sound = len(inputs[0]), all([np.abs(x).max(initial=0.0) < quantities.LARGEST for x in inputs])
        lanes = min(count, _LANES)
        results = np.repeat(self._start, lanes, axis=1)
        results[: self._known] = parameters[: self._known, None]
        for first in range(0, count, _LANES):
            first = min(first, count - lanes)  # the last ones overlap those before
            now = slice(first, first + lanes)
            for row, group, k in self._inputs:
                results[row] = inputs[group][now, k]
            play(self._code, results)
            for (rows, signs), out in zip(self._outputs, outputs, strict=True):
                out[now] = (results[rows] * signs).T.reshape(out[now].shape)
            (carried, a), (least, b) = self._carried, self._least
            sound &= bool((results[carried] * a > results[least] * b).all())
        return sound


# Programs

# Functions with more operations are not compiled; compiling this many takes about 5 s.
LARGEST = 50_000
# Memory of an operation on a tape, in bytes.
_OPERATION = 250


class Program:
    """A function, and the machine code that is made from its plan on request."""

    def __init__(self, interface: Interface, plan: Plan | None, code: Mapping[str, bytes] | None = None) -> None:
        self._interface, self.plan = interface, plan
        self.name, self.lengths, self.shapes, self.sparse, slots, self._known = interface
        short = plan is None or (plan.size <= LARGEST and sum(self.lengths) > 0 and len(self.shapes) > 0)
        self.compiled = short and host().code is not None
        self.rows = [1 + max(here, default=-1) for here in slots]
        lanes = range(host().width)
        self._slots = [
            np.array([*lanes, *here, *(n + k for k in lanes)], dtype=np.int64)
            for n, here in zip(self.rows, slots, strict=True)
        ]
        self.slots = [address(here[len(lanes) :]) for here in self._slots]
        self._record: Callable[[], Program] | None = None
        self._key = ""
        self._interpreter: Interpreter | None = None
        self._code = [Loaded(*code.values())] if code else []
        self._found = {name: self._code[0].address(name) for name in code or ()}
        self.single = self._found.get(emit.SINGLE, 0)
        self.batch = self._found.get(emit.BATCH, self._found.get(emit.STEPS, 0))

    @property
    def nbytes(self) -> int:
        """Memory that is kept in bytes, with an error of a few per cent."""
        operations = len(self._known[0].nodes) + (len(self.plan.tape.nodes) if self.plan else 0)
        interpreter = self._interpreter.nbytes if self._interpreter else 0
        return _OPERATION * operations + interpreter + sum(x.nbytes for x in self._code)

    def parameters(self, values: Mapping[Hashable, float]) -> Array:
        """The array that the code reads: known values, from the values of the parameters, and an address."""
        tape, known = self._known
        # Values that are not finite violate the bounds of the program.
        with np.errstate(divide="ignore", invalid="ignore"):
            array = np.array([*tape.evaluate(known, values), 0.0], dtype=np.float64)
        array[-1:].view(np.int64)[0] = host().sincos
        return array

    def compile_single(self) -> None:
        """Make the code for one state unless it exists."""
        if not self.single:
            self.single = self._function(emit.SINGLE, emit.single)
            self._forget()

    def compile_batch(self) -> None:
        """Make the code for many states, unless it exists."""
        if not self.batch:
            self.batch = self._function(emit.BATCH, emit.batch)
            self._forget()

    def compile_steps(self) -> None:
        """Make the code for many steps of an integrator, unless it exists."""
        if not self.batch:
            self.batch = self._function(emit.STEPS, emit.steps)
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

    def _function(self, name: str, text: Callable[[Plan, int], str]) -> int:
        """The address of a function, which is loaded from disk or compiled; stderr announces what takes long."""
        folder = machine.folder() if self._key else None
        kept = "not kept on disk" if folder is None else f"once; kept in {folder}"
        address: int = self._compiled(name, text, line=f"compiling {self.name} of this robot ({kept})")
        return address

    @compiling
    def _compiled(self, name: str, text: Callable[[Plan, int], str]) -> int:
        if name not in self._found:
            if self.plan is None:
                assert self._record is not None
                self.plan = self._record().plan
                assert self.plan is not None
            code = object_file(text(self.plan, host().width))
            self._code.append(Loaded(code))
            self._found[name] = self._code[-1].address(name)
            if self._key:
                _, others = _read(self._key) or (None, {})
                _write(self._key, self._interface, {**others, name: code})
        return self._found[name]

    def _forget(self) -> None:
        if self.single and self.batch:
            self.plan = None


def planned(name: str, tape: Tape, groups: Mapping[str, int], outputs: Sequence[Scalars]) -> Program:
    """The program of a function on a tape."""
    plan = Plan(tape, groups, [out.ravel().tolist() for out in outputs], tape.assumed, host().fused)
    return Program(interface(name, plan, outputs), plan)


def kept(made_from: Hashable, record: Callable[[], Program]) -> Program:
    """The program with the code that is on disk; or a new one, whose code is kept there when it has been made."""
    key = machine.key(made_from, host().width, host().fused)
    program = _loaded(key) or record()
    program._key, program._record = key, record
    return program


@compiling
def _loaded(key: str) -> Program | None:
    """The program with the code of a key; None if it is not on machine."""
    found = _read(key)
    return None if found is None else Program(found[0], None, found[1])


def _read(key: str) -> tuple[Interface, dict[str, bytes]] | None:
    """What :func:`_write` has written; None if it is not on machine."""
    content = machine.read(key)
    if content is None:
        return None
    head, _, code = content.partition(b"\n")
    lengths, plain = json.loads(head)
    parts = {}
    for name, length in lengths.items():
        parts[name], code = code[:length], code[length:]
    return restored(plain), parts


def _write(key: str, interface: Interface, code: Mapping[str, bytes]) -> None:
    lengths = {name: len(part) for name, part in code.items()}
    machine.write(key, json.dumps([lengths, interface.plain()]).encode() + b"\n" + b"".join(code.values()))


# Calls

# Largest number of states in a block, and of entries of all their arrays; number of states in a block without copies.
_STATES, _ENTRIES, _IN_PLACE = 32, 25_000, 2048
# Results of more bytes than this do not fit into the processor's caches.
_CACHED = 2**22


class Function:
    """A program with the parameters of one table, if it has parameters."""

    def __init__(self, program: Program, table: Array | None = None) -> None:
        self.program = program
        self.parameters = program.parameters({} if table is None else inertias(table))

    def builtin(self, slow: Callable[..., Any]) -> Any:
        """The built-in function for one state, which calls ``slow`` for other arguments; ``slow`` if there is none."""
        program, parameters = self.program, self.parameters
        arrays = program.lengths, program.shapes
        return builtin_at(program.name, program.single, address(parameters), *arrays, slow, (program, parameters))

    def single(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> bool:
        """Compute one state in contiguous arrays; False if an input is not finite or a bound does not hold."""
        arrays = addresses([*inputs, *outputs])
        return not Computation(self.program.single)(address(self.parameters), address(arrays))

    def batch(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> bool:
        """Compute states along the first axis of arrays of any strides; False as for :meth:`single`, for any state."""
        program = self.program
        shared = [False] * len(inputs) + program.sparse
        return drive(program.batch, self.parameters, inputs, outputs, program.rows, program.slots, shared)


def drive(
    code: int,
    parameters: Array,
    inputs: Sequence[Array],
    outputs: Sequence[Array],
    rows: Sequence[int],
    slots: Sequence[int],
    shared: Sequence[bool],
) -> bool:
    """Call code for a batch on arrays of any strides, with states along the first axis; False if it returns nonzero.

    ``rows``, ``slots`` and ``shared`` describe the scratch space of every input and output: see ``ir.Field``.
    """
    count = len(outputs[0])
    if count == 0:
        return True
    arrays, lanes, given = [*inputs, *outputs], host().width, len(inputs)
    grids = [_grid(a) for a in arrays]
    block = _IN_PLACE
    if any(shared) or any([a.strides[0] != a.itemsize or grid[0] > 1 for a, grid in zip(arrays, grids, strict=True)]):
        # The scratch space of a block fits into the second-level cache.
        block = min(_STATES, max(lanes, _power_of_two(_ENTRIES // sum(rows))))
    streamed = sum([out.nbytes for out in outputs]) > _CACHED
    scratch = np.empty((sum(rows) + lanes, block))
    fields: list[int] = []  # of the ``Field`` of each array, in order; named tuples take longer
    row = 0
    for k, a in enumerate(arrays):
        fields += address(a), a.strides[0], *grids[k], 8 * block * row
        fields += k >= given, slots[k], shared[k], k >= given and streamed
        row += rows[k]
        if shared[k]:
            scratch[row - 1] = 0.0
    table = np.array(fields, dtype=np.int64)
    arguments = len(arrays), address(table), address(scratch), block
    return not host().drive(code, count, address(parameters), *arguments)


def inertias(table: Array) -> dict[Hashable, float]:
    """The inertial numbers of all rows, by their names on a tape."""
    numbers = table[:-1, MASS:PARENT]
    return {("inertia", at): x for at, x in np.ndenumerate(numbers)}


def _grid(a: Array) -> tuple[int, int, int, int]:
    """Numbers of rows and columns of each state's entries, and their strides; one row if that is possible."""
    rows, columns = a.shape[1:] if a.ndim == 3 else (1, a.shape[1])
    row_step, column_step = a.strides[1:] if a.ndim == 3 else (0, a.strides[1])
    if rows == 1 or row_step == columns * column_step:
        return 1, rows * columns, 0, column_step
    return rows, columns, row_step, column_step


def _power_of_two(most: int) -> int:
    """The largest power of two up to ``most``; 0 if there is none."""
    return (1 << most.bit_length()) >> 1


class Evaluator:
    """A function on a tape, for one state or many.

    Code for one state and code for batches are made in the first call with one state or with a batch.
    """

    def __init__(self, program: Program, table: Array | None = None) -> None:
        self._program = program
        self.shapes = program.shapes
        self.compiled = program.compiled
        self._function = Function(program, table)
        self._entry: Any = None

    def single(self, state: Sequence[Any], out: Any = None) -> Sequence[Array] | None:
        """The outputs for one state in contiguous arrays of the right shape; None for other arguments."""
        if self._entry is None:
            if self.compiled:
                self._program.compile_single()
            self._entry = self._function.builtin(refuse) if self.compiled else refuse
        if self._entry is refuse:
            return None
        several = len(self.shapes) > 1
        found = self._entry(*state) if out is None else self._entry(*state, out=out if several else out[0])
        return found if several or found is None else (found,)

    def many(self, inputs: Sequence[Array], out: Sequence[Array] | None = None) -> tuple[Sequence[Array], bool]:
        """The outputs for states along the first axis, and whether the assumptions of the tape hold for all of them.

        Arguments are contiguous, do not overlap, and have been checked.
        """
        count = len(inputs[0])
        results = self._parts(np.empty(count * sum(map(math.prod, self.shapes))), count) if out is None else out
        if self.compiled:
            return results, self._run(inputs, results)
        return results, self._program.interpreter()(self._function.parameters, inputs, results)

    def _run(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> bool:
        count = len(inputs[0])
        if count == 1:
            return self._function.single(inputs, outputs)
        self._program.compile_batch()
        return self._function.batch(inputs, [out.reshape(count, 1, math.prod(out.shape[1:])) for out in outputs])

    def _parts(self, block: Array, count: int) -> list[Array]:
        """Output arrays in one block of memory, which is allocated faster than several blocks."""
        ends = np.cumsum([count * math.prod(shape) for shape in self.shapes])[:-1]
        parts = np.split(block, ends)
        return [part.reshape(count, *shape) for part, shape in zip(parts, self.shapes, strict=True)]
