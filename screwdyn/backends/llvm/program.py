"""Machine code of a function on a tape, written out for this processor, and how it is called."""

import ctypes
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from screwdyn.backends.llvm import batch_loop as native_batch
from screwdyn.backends.llvm import call as native_call
from screwdyn.backends.llvm import emit as native_body
from screwdyn.backends.llvm.background import undivided
from screwdyn.backends.llvm.interpreter import Interpreter
from screwdyn.backends.llvm.machine import Loaded, host
from screwdyn.backends.tape.tape import Recorded, Tape
from screwdyn.backends.tape.trace import Scalars
from screwdyn.physics.table import MASS, PARENT

__all__ = ["LARGEST", "Bound", "Program", "inertias"]

Array = npt.NDArray[np.float64]
# Operations of one function beyond which it is not compiled: about 5 s of work.
LARGEST = 50_000
# Bytes that an operation on a tape takes.
_OPERATION = 250
# How many states are computed at a time, and entries of all their arrays together; and states that stay where they are.
_STATES, _ENTRIES, _STAYING = 32, 25_000, 2048
# Bytes of results beyond which they will not be in the processor's caches when they are read.
_CACHED = 2**22


class Program:
    """A function on a tape, and its code.

    Parameters
    ----------
    name : str
    tape : Tape
    groups : mapping from str to int
        Names of the input arrays in order, and how many entries each has; inputs are named (group, index). Other inputs
        are parameters.
    outputs : sequence of arrays of scalars

    Attributes
    ----------
    plan : Plan or None
        Until all code is there.
    compiled : bool
        Whether it is short enough for that, and gives anything; what is not is for the ``interpreter``.
    lengths : list of int
        Of the inputs.
    shapes : list of tuples
        Of the outputs.
    sparse : list of bool
        Outputs of which a batch writes the zeros last.
    rows : list of int
        How many rows of scratch space every input and output needs.
    slots : list of int
        Where the slots of each of them stand, as ``native_batch.Field`` says.
    single, entry, batch : int
        Addresses of the code for one state, of its entry for Python and of the code for many states; 0 until there is.
    """

    def __init__(self, name: str, tape: Tape, groups: Mapping[str, int], outputs: Sequence[Scalars]) -> None:
        self.name, self.lengths = name, list(groups.values())
        self.shapes = [out.shape for out in outputs]
        entries = [out.ravel().tolist() for out in outputs]
        plan = native_body.Plan(tape, groups, entries, tape.assumed, host().fused)
        self.plan: native_body.Plan | None = plan
        self.sparse = plan.sparse
        self.compiled = plan.size <= LARGEST and sum(self.lengths) > 0 and len(outputs) > 0
        self._known = tape.excerpt([Recorded(tape, at) for at in plan.known])
        slots = [list(range(n)) for n in self.lengths] + plan.slots
        self.rows = [1 + max(here, default=-1) for here in slots]
        lanes = range(host().width)
        self._slots = [
            np.array([*lanes, *here, *(n + k for k in lanes)], dtype=np.int64)
            for n, here in zip(self.rows, slots, strict=True)
        ]
        self.slots = [_address(here[len(lanes) :]) for here in self._slots]
        self._code: list[Loaded] = []
        self._interpreter: Interpreter | None = None
        self.single = self.entry = self.batch = 0

    @property
    def nbytes(self) -> int:
        """Memory that is kept, to a few per cent."""
        operations = len(self._known[0].nodes) + (len(self.plan.tape.nodes) if self.plan else 0)
        interpreter = self._interpreter.nbytes if self._interpreter else 0
        return _OPERATION * operations + interpreter + sum(x.nbytes for x in self._code)

    def parameters(self, values: Mapping[Hashable, float]) -> Array:
        """What the code reads that does not depend on the state, for the values of the inputs that are no state."""
        tape, known = self._known
        # Where they mean nothing, the bounds of the program say so.
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.array([*tape.evaluate(known, values), 0.0], dtype=np.float64)

    @undivided
    def compile_single(self) -> None:
        """Code for one state, with an entry for Python where that is possible; nothing if it is there."""
        if self.single:
            return
        assert self.plan is not None
        text = native_body.single(self.plan, host().width, host().sincos)
        direct = native_call.understood()
        if direct:
            text += "\n" + native_call.entry(self.lengths, self.shapes)
        code = self._load(text)
        if direct:
            self.entry = code.address(native_call.ENTRY)
        self.single = code.address(native_body.SINGLE)
        self._forget()

    @undivided
    def compile_batch(self) -> None:
        """Code for many states; nothing if it is there."""
        if self.batch:
            return
        assert self.plan is not None
        code = self._load(native_body.batch(self.plan, host().width, host().sincos))
        self.batch = code.address(native_body.BATCH)
        self._forget()

    @undivided
    def interpreter(self) -> Interpreter:
        """The operations for the kernel that reads them, in place of code."""
        if self._interpreter is None:
            assert self.plan is not None
            self._interpreter, self.plan = Interpreter(self.plan), None
        return self._interpreter

    def _load(self, text: str) -> Loaded:
        code = Loaded(text)
        self._code.append(code)
        return code

    def _forget(self) -> None:
        if self.single and self.batch:
            self.plan = None


class Bound:
    """A program with the parameters of one table, if it has parameters."""

    def __init__(self, program: Program, table: Array | None = None) -> None:
        self.program = program
        self.parameters = program.parameters({} if table is None else inertias(table))

    def builtin(self, slow: Callable[..., Any]) -> Any:
        """The function for one state as Python calls it fastest, or ``slow`` where it cannot be reached so."""
        program = self.program
        if not program.entry:
            return slow
        return native_call.builtin(program.name, program.entry, self.parameters, slow, program)

    def one(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> bool:
        """One state in contiguous arrays; whether the numbers mean anything."""
        arrays = [self.parameters, *inputs, *outputs]
        call = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * len(arrays))(self.program.single)
        return not call(*map(_address, arrays))

    def many(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> bool:
        """Any number of states along the first axis, in arrays of any strides; whether all numbers mean anything."""
        count = len(outputs[0])
        if count == 0:
            return True
        program, arrays, lanes = self.program, [*inputs, *outputs], host().width
        shared = [False] * len(inputs) + program.sparse
        grids = [_grid(a) for a in arrays]
        # Blocks that stay in the processor's second cache, unless nothing has to be moved.
        block = min(_STATES, max(lanes, _power_of_two(_ENTRIES // sum(program.rows))))
        stays = [a.strides[0] == a.itemsize and rows == 1 for a, (rows, *_) in zip(arrays, grids, strict=True)]
        if all(stays) and not any(shared):
            block = _STAYING
        streamed = sum(out.nbytes for out in outputs) > _CACHED
        scratch = np.empty((sum(program.rows) + lanes, block))
        table: list[native_batch.Field] = []
        row = 0
        for k, (a, grid) in enumerate(zip(arrays, grids, strict=True)):
            place, written = 8 * block * row, k >= len(inputs)
            use = written, program.slots[k], shared[k], written and streamed
            table.append(native_batch.Field(_address(a), a.strides[0], *grid, place, *use))
            row += program.rows[k]
            if shared[k]:
                scratch[row - 1] = 0.0
        fields = np.array(table, dtype=np.int64)
        parameters, arguments = _address(self.parameters), (len(arrays), _address(fields), _address(scratch), block)
        return not host().drive(program.batch, count, parameters, *arguments)


def inertias(table: Array) -> dict[Hashable, float]:
    """The inertial numbers of all rows, by the names that they have on a tape."""
    numbers = table[:-1, MASS:PARENT]
    return {("inertia", at): x for at, x in np.ndenumerate(numbers)}


def _grid(a: Array) -> tuple[int, int, int, int]:
    """Rows and columns of each state's entries, and their distances: one row where that is possible."""
    rows, columns = a.shape[1:] if a.ndim == 3 else (1, a.shape[1])
    row_step, column_step = a.strides[1:] if a.ndim == 3 else (0, a.strides[1])
    if rows == 1 or row_step == columns * column_step:
        return 1, rows * columns, 0, column_step
    return rows, columns, row_step, column_step


def _power_of_two(most: int) -> int:
    """The largest one that is not more; 0 if there is none."""
    return (1 << most.bit_length()) >> 1


def _address(a: npt.NDArray[Any]) -> int:
    address: int = a.__array_interface__["data"][0]
    return address
