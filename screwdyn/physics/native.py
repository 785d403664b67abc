"""Machine code of the functions of a structure: a tape, written out for this processor and kept for the next time.

A structure is what code is made for: where the links sit, how the joints move, gravity, and which inertial numbers
are exactly zero. The other inertial numbers are parameters. All ten are, zero or not, in rows that may carry a payload
and in any row once one of its zeros has changed; so a payload's ten numbers change without a compiler.
"""

import atexit
import ctypes
import functools
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from itertools import count
from queue import PriorityQueue
from typing import Any, NamedTuple, TypeVar

import llvmlite.binding as llvm
import numpy as np
import numpy.typing as npt

from . import native_batch, native_body, native_call, native_text
from .regrouped import regrouped
from .rows import MASS, PARENT
from .solved import forward_dynamics
from .tape import Node, Tape
from .unrolled import FUNCTIONS, Scalars, constants, record

__all__ = ["ARGUMENTS", "LARGEST", "Bound", "Program", "Structure", "structure"]

Array = npt.NDArray[np.float64]
Result = TypeVar("Result")

# What each compiled function is a function of, and what it gives.
ARGUMENTS: dict[str, tuple[str, ...]] = {**FUNCTIONS, "dynamics": ("q", "qd")}
_PARTS = {"dynamics": ("mass_matrix", "coriolis_matrix", "gravity_vector")}
# Operations of one function beyond which it is left to ``looped``: about 5 s of compiling.
LARGEST = 50_000
# Operations on a tape for one that is left; on trees of more than 20 rows less than 3 were measured.
_WRITTEN = 3
# Structures whose code is kept.
_KEPT = 32
_STATES = 32
# Held where a process must not be forked: the other one would inherit locks that nobody there opens.
_whole = threading.RLock()


class Host(NamedTuple):
    """What this processor has, and the code that all functions share."""

    width: int
    fused: bool
    sincos: int
    drive: int
    engines: tuple[Any, ...]


def _undivided(function: Callable[..., Result]) -> Callable[..., Result]:
    """The function, during which no process is forked; the compiler has locks of its own in all that it does."""

    @functools.wraps(function)
    def undivided(*arguments: Any) -> Result:
        with _whole:
            return function(*arguments)

    return undivided


@functools.cache
@_undivided
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
        drive.get_function_address(native_batch.DRIVER),
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
    groups : sequence of str
        Names of the input arrays in order; inputs are named (group, index). Other inputs are parameters.
    n : int
        Entries of every input array.
    outputs : sequence of arrays of scalars

    Attributes
    ----------
    shapes : list of tuples
        Of the outputs.
    """

    def __init__(self, name: str, tape: Tape, groups: Sequence[str], n: int, outputs: Sequence[Scalars]) -> None:
        self.name, self.n = name, n
        self.shapes = [out.shape for out in outputs]
        entries = [out.ravel().tolist() for out in outputs]
        self.plan = native_body.Plan(tape, groups, entries, tape.assumed, n, host().fused)
        self._engines: list[Any] = []
        self.single = self.entry = self.batch = 0

    @_undivided
    def compile_single(self) -> None:
        """Code for one state, with an entry for Python where that is possible."""
        text = native_body.single(self.plan, host().width, host().sincos)
        direct = native_call.understood()
        if direct:
            text += "\n" + native_call.entry(len(self.plan.groups), self.n, self.shapes)
        engine = assemble(text)
        self._engines.append(engine)
        self.single = engine.get_function_address(native_body.SINGLE)
        if direct:
            self.entry = engine.get_function_address(native_call.ENTRY)

    @_undivided
    def compile_batch(self) -> None:
        """Code for many states."""
        engine = assemble(native_body.batch(self.plan, host().width, host().sincos))
        self._engines.append(engine)
        self.batch = engine.get_function_address(native_body.BATCH)


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


class Bound:
    """A program with the parameters of one table, if it has parameters."""

    def __init__(self, program: Program, table: Array | None = None) -> None:
        self.program = program
        values: dict[Hashable, float] = {}
        if table is not None:
            values = {
                ("inertia", (row, k)): table[row, MASS + k] for row in range(program.n) for k in range(PARENT - MASS)
            }
        self.parameters = np.array([*program.plan.parameters(values), 0.0])

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
        return not call(*(a.ctypes.data for a in arrays))

    def many(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> bool:
        """Any number of states along the first axis, in arrays of any strides; whether all numbers mean anything."""
        count = len(outputs[0])
        if count == 0:
            return True
        arrays = [a[:, None] for a in inputs] + [a if a.ndim == 3 else a[:, None] for a in outputs]
        entries = [a.shape[1] * a.shape[2] for a in arrays]
        # Blocks that stay in the processor's second cache.
        block = min(_STATES, max(host().width, 2 ** int(np.log2(5e4 / sum(entries)))))
        table = []
        start = 0
        for k, (a, size) in enumerate(zip(arrays, entries, strict=True)):
            (_, rows, columns), (states, row, column) = a.shape, a.strides
            if row == columns * column:
                rows, columns = 1, size
            table += [a.ctypes.data, states, rows, columns, row, column, start, k >= len(inputs)]
            start += 8 * size * block
        fields, scratch = np.array(table, dtype=np.int64), np.empty(start // 8 + host().width * block)
        drive = _Drive(host().drive)
        return not drive(
            self.program.batch,
            count,
            self.parameters.ctypes.data,
            len(arrays),
            fields.ctypes.data,
            scratch.ctypes.data,
            block,
        )


class Structure:
    """The programs of one structure, compiled one after another in the background.

    Attributes
    ----------
    opened : (n, 10) array of bool
        Which inertial numbers are parameters; the others are zero.
    single, batch : dict of Future
        By name of function; each gives a program, or None if it is left to ``looped``.
    """

    def __init__(self, table: Array, opened: npt.NDArray[np.bool_]) -> None:
        self.opened = opened
        self.single: dict[str, Future[Program | None]] = {}
        self.batch: dict[str, Future[Program | None]] = {}
        for name in ARGUMENTS:
            self.single[name] = _background().submit(len(table), _first, name, table, opened)
        for name in ARGUMENTS:
            self.batch[name] = _background().submit(len(table), _second, self.single[name])


class _TooLong(Exception):
    """There are more operations than will be compiled."""


class _Nodes(list[Node]):
    """Operations, up to a number beyond which hardly fewer than ``LARGEST`` can be left of them."""

    def append(self, node: Node) -> None:
        if len(self) > _WRITTEN * LARGEST:
            raise _TooLong
        super().append(node)


def _recorded(name: str, table: Array, opened: npt.NDArray[np.bool_]) -> Program | None:
    """One function of a structure; None if its sweep stops at a joint that carries nothing, whatever the numbers.

    Raises
    ------
    _TooLong
    """
    tape, numbers = Tape(), constants(table)
    tape.nodes = _Nodes()
    for row, k in np.argwhere(opened).tolist():
        numbers[row, MASS + k] = tape.input(("inertia", (row, k)))
    if name == "forward_dynamics":
        qdd = forward_dynamics(tape, numbers)
        if qdd is None:
            return None
        outputs = [qdd]
    else:
        numbers = regrouped(numbers)
        outputs = [record(tape, numbers, part) for part in _PARTS.get(name, (name,))]
    return Program(name, tape, ARGUMENTS[name], len(table) - 1, outputs)


def _first(name: str, table: Array, opened: npt.NDArray[np.bool_]) -> Program | None:
    try:
        program = _recorded(name, table, opened)
    except _TooLong:
        return None
    if program is None or program.plan.size > LARGEST:
        return None
    program.compile_single()
    return program


def _second(first: "Future[Program | None]") -> Program | None:
    program = first.result()
    if program is not None:
        program.compile_batch()
    return program


class _Background:
    """A thread that does one thing after another, small ones first, and drops the rest when the process ends."""

    def __init__(self) -> None:
        self._tasks: PriorityQueue[tuple[int, int, Future[Any], Callable[..., Any], tuple[Any, ...]]] = PriorityQueue()
        self._order = count()
        self._ended = False
        self._thread = threading.Thread(target=self._work, name="screwdyn-compile", daemon=True)
        self._thread.start()
        atexit.register(self._end)

    def submit(self, size: int, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Have a function called after all that is smaller, and after what is as large and was submitted before."""
        future: Future[Any] = Future()
        self._tasks.put((size, next(self._order), future, function, arguments))
        return future

    def _work(self) -> None:
        while True:
            _, _, future, function, arguments = self._tasks.get()
            if self._ended:
                return
            try:
                result = function(*arguments)
            except Exception as error:
                with _whole:
                    future.set_exception(error)
            else:
                with _whole:
                    future.set_result(result)
            # What is waited for may be large, and nobody else may want it.
            del future, function, arguments

    def _end(self) -> None:
        # The compiler must not be at work when the process is taken apart.
        self._ended = True
        if self._thread.is_alive():  # in a forked process it is not, and its queue may be locked for good
            self.submit(-1, _Background)
            self._thread.join()


@functools.cache
def _background() -> _Background:
    return _Background()


_structures: OrderedDict[bytes, Structure] = OrderedDict()


def _after_fork() -> None:
    """The thread that compiles does not follow into another process: what is not compiled yet would never be."""
    _whole.release()
    _background.cache_clear()
    for key, known in list(_structures.items()):
        if not all(part.done() for part in (*known.single.values(), *known.batch.values())):
            del _structures[key]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_whole.acquire, after_in_parent=_whole.release, after_in_child=_after_fork)


def structure(table: Array, loaded: npt.NDArray[np.bool_]) -> Structure:
    """The structure that serves a table: one that is known, or a new one, whose compilation then begins.

    Parameters
    ----------
    table : (n + 1, 25) array
    loaded : (n,) array of bool
        Rows that may carry a payload.
    """
    frame = table + 0.0
    inertias = frame[:-1, MASS:PARENT]
    needed = (inertias != 0) | loaded[:, None]
    inertias[:] = 0
    key = frame.tobytes()
    known = _structures.get(key)
    if known is None or (needed & ~known.opened).any():
        if known is not None:
            needed |= known.opened | (needed & ~known.opened).any(axis=1)[:, None]
        known = _structures[key] = Structure(frame, needed)
    _structures.move_to_end(key)
    while len(_structures) > _KEPT:
        _structures.popitem(last=False)
    return known
