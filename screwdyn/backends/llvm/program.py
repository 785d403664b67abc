"""Machine code of a function on a tape, written out for this processor, and how it is called."""

import ctypes
import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import numpy as np
import numpy.typing as npt

from screwdyn.backends.llvm import batch_loop as native_batch
from screwdyn.backends.llvm import call as native_call
from screwdyn.backends.llvm import emit as native_body
from screwdyn.backends.llvm import ir as native_text
from screwdyn.backends.llvm.background import undivided
from screwdyn.backends.tape.tape import Tape
from screwdyn.backends.tape.trace import Scalars
from screwdyn.physics.table import MASS, PARENT

__all__ = ["LARGEST", "Bound", "Host", "Program", "host", "with_lanes"]

Array = npt.NDArray[np.float64]
# Operations of one function beyond which it is not compiled: about 5 s of work.
LARGEST = 50_000
# How many states are computed at a time, and entries of all their arrays together; and states that stay where they are.
_STATES, _ENTRIES, _STAYING = 32, 25_000, 2048
# Bytes of results beyond which they will not be in the processor's caches when they are read.
_CACHED = 2**22


# As ``native_batch.driver`` says.
_Drive = ctypes.CFUNCTYPE(
    ctypes.c_int64,
    ctypes.c_void_p,
    ctypes.c_int64,
    ctypes.c_void_p,
    ctypes.c_int64,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_int64,
)


class Host(NamedTuple):
    """What this processor has, and the code that all functions share."""

    width: int
    fused: bool
    sincos: int
    drive: Callable[..., int]
    engines: tuple[Any, ...]


@functools.cache
@undivided
def host() -> Host:
    """What functions share on this processor, for its widest vectors."""
    features = llvm.get_host_cpu_features()
    x86 = llvm.get_default_triple().startswith(("x86_64", "i686"))
    width = 8 if features.get("avx512f") and features.get("avx512dq") else 4 if features.get("avx2") else 2
    return with_lanes(width, not x86 or bool(features.get("fma")))


def with_lanes(width: int, fused: bool) -> Host:
    """The code that functions share, for vectors of so many lanes."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    sincos = assemble(native_text.sincos(width))
    drive = assemble(native_batch.driver(width))
    return Host(
        width,
        fused,
        sincos.get_function_address(native_text.SINCOS),
        _Drive(drive.get_function_address(native_batch.DRIVER)),
        (sincos, drive),
    )


def assemble(text: str) -> Any:
    """Machine code of a module, for this very processor; the engine must outlive what points into it."""
    target = llvm.Target.from_triple(llvm.get_process_triple())
    # The operations are folded and ordered by the tape: what is left is to choose instructions and registers.
    machine = target.create_target_machine(
        opt=1, cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten()
    )
    module = llvm.parse_assembly(text)
    module.verify()
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine


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
    lengths : list of int
        Of the inputs.
    shapes : list of tuples
        Of the outputs.
    rows : list of int
        How many rows of scratch space every input and output needs.
    slots : list of int
        Where the slots of each of them stand, as ``native_batch.Field`` says.
    """

    def __init__(self, name: str, tape: Tape, groups: Mapping[str, int], outputs: Sequence[Scalars]) -> None:
        self.name, self.lengths = name, list(groups.values())
        self.shapes = [out.shape for out in outputs]
        entries = [out.ravel().tolist() for out in outputs]
        self.plan = native_body.Plan(tape, groups, entries, tape.assumed, host().fused)
        slots = [list(range(n)) for n in self.lengths] + self.plan.slots
        self.rows = [1 + max(here, default=-1) for here in slots]
        lanes = range(host().width)
        self._slots = [
            np.array([*lanes, *here, *(n + k for k in lanes)], dtype=np.int64)
            for n, here in zip(self.rows, slots, strict=True)
        ]
        self.slots = [_address(here[len(lanes) :]) for here in self._slots]
        self._engines: list[Any] = []
        self.single = self.entry = self.batch = 0

    @undivided
    def compile_single(self) -> None:
        """Code for one state, with an entry for Python where that is possible; nothing if it is there."""
        if self.single:
            return
        text = native_body.single(self.plan, host().width, host().sincos)
        direct = native_call.understood()
        if direct:
            text += "\n" + native_call.entry(self.lengths, self.shapes)
        engine = assemble(text)
        self._engines.append(engine)
        self.single = engine.get_function_address(native_body.SINGLE)
        if direct:
            self.entry = engine.get_function_address(native_call.ENTRY)

    @undivided
    def compile_batch(self) -> None:
        """Code for many states; nothing if it is there."""
        if self.batch:
            return
        engine = assemble(native_body.batch(self.plan, host().width, host().sincos))
        self._engines.append(engine)
        self.batch = engine.get_function_address(native_body.BATCH)


class Bound:
    """A program with the parameters of one table, if it has parameters.

    Attributes
    ----------
    values : dict
        Of the inputs that are no state, by name.
    """

    def __init__(self, program: Program, table: Array | None = None) -> None:
        self.program = program
        self.values: dict[Hashable, float] = {}
        if table is not None:
            self.values = {
                ("inertia", (row, k)): table[row, MASS + k]
                for row in range(len(table) - 1)
                for k in range(PARENT - MASS)
            }
        # Where they mean nothing, the bounds of the program say so.
        with np.errstate(divide="ignore", invalid="ignore"):
            self.parameters = np.array([*program.plan.parameters(self.values), 0.0])

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
        shared = [False] * len(inputs) + program.plan.sparse
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
