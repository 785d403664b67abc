"""The kernels as Python functions: what runs where they were not compiled, and what the compiled ones are checked with.

Operations are those of the C file in the same order, so that both give the same bits.
"""

import ctypes
import functools
import math
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from screwdyn.backends.kernels import source
from screwdyn.backends.kernels.source import COUPLED, KERNELS, PLACES, STATE, Context, entry_of
from screwdyn.physics import charts, placement
from screwdyn.physics.link_steps import Pose, RigidInertia
from screwdyn.physics.quantities import LARGEST
from screwdyn.physics.table import COLUMNS, Workspace, load, store

__all__ = ["OF_NUMBERS", "SCOPE", "array", "integers", "play"]

Array = Any
# Status of a kernel for invalid input.
WRONG_INPUT = -1
# Bytes of a real and of an integer.
REAL = INTEGER = 8


def address(a: np.ndarray) -> int:
    """Address of an array's first entry."""
    found: int = a.__array_interface__["data"][0]
    return found


def _view(kind: Any, code: Literal["d", "q"], at: int, shape: tuple[int, ...]) -> Array:
    """An array of Python numbers at an address."""
    size = math.prod(shape)
    if not size:
        return np.zeros(shape, code)
    return memoryview((kind * size).from_address(at)).cast("B").cast(code, shape)


array = functools.partial(_view, ctypes.c_double, "d")
integers = functools.partial(_view, ctypes.c_int64, "q")


def _with_rows(at: int, shape: tuple[int, ...]) -> np.ndarray:
    """An array whose rows are arrays, which a memoryview does not have; its entries take three times as long."""
    return np.asarray(array(at, shape))


def address_of(a: Any) -> int:
    """The address of an array's first entry, in a kernel."""
    return address(np.asarray(a))


def bounded(x: Array, largest: float) -> bool:
    """Whether no number is NaN or larger than a bound."""
    fits = True
    for k in range(x.shape[0]):
        fits = fits and abs(x[k]) <= largest
    return fits


def play(context: Array, arrays: Array, at: int) -> int:
    """Execute operations on rows of results; a row of code has the operation and the rows of result and operands."""
    code, states = integers(arrays[0], (4 * context[0],)), context[1]
    results = arrays[1]
    for i in range(context[0]):
        op, to, a, b = code[4 * i], code[4 * i + 1], code[4 * i + 2], code[4 * i + 3]
        x, y = array(results + REAL * a * states, (states,)), array(results + REAL * b * states, (states,))
        out = array(results + REAL * to * states, (states,))
        for s in range(states):
            if op == 0:
                out[s] = x[s] + y[s]
            elif op == 1:
                out[s] = x[s] - y[s]
            elif op == 2:
                out[s] = x[s] * y[s]
            elif op == 3:
                out[s] = x[s] / y[s]
            elif op == 4:
                out[s] = math.sin(x[s])
            else:
                out[s] = math.cos(x[s])
    return at - at


def weld(context: Array, arrays: Array, at: int) -> int:
    """``placement.welded`` of a pose, the sixteen entries of a home pose, and the numbers of an inertia."""
    given, found = array(arrays[0], (1, 38)), array(arrays[1], (1, 22))
    pose, body = placement.welded(load(given, 0, Pose), _home(given), load(given, 0, RigidInertia, 28))
    store(found, 0, pose)
    store(found, 0, body, 12)
    return at - at


def mount(context: Array, arrays: Array, at: int) -> int:
    """``placement.mounted`` of a pose, the sixteen entries of a home pose, and the pose of a joint's first row."""
    given, found = array(arrays[0], (1, 40)), array(arrays[1], (1, 12))
    store(found, 0, placement.mounted(load(given, 0, Pose), _home(given), load(given, 0, Pose, 28)))
    return at - at


def _home(A: Array) -> Pose:
    """The pose of which all entries are in columns 12 to 27."""
    R = A[0, 12], A[0, 13], A[0, 14], A[0, 16], A[0, 17], A[0, 18], A[0, 20], A[0, 21], A[0, 22]
    return Pose(R, (A[0, 15], A[0, 19], A[0, 23]))


# Functions of numbers for tuples and arrays of them, which only machine code calls: how many they take and return.
OF_NUMBERS = {weld: (38, 22), mount: (40, 12)}


def _run(name: str) -> Callable[[Array, Array, int], int]:
    """A function that runs a kernel within another one."""
    return lambda context, arrays, at: _kernel(name)(context, arrays, at)


# What the source of kernels refers to, besides the functions of their recursions.
SCOPE: dict[str, Any] = {
    "INTEGER": INTEGER,
    "LARGEST": LARGEST,
    "LARGEST_FINITE": sys.float_info.max,
    "REAL": REAL,
    "WRONG_INPUT": WRONG_INPUT,
    "Workspace": Workspace,
    "array": array,
    "integers": integers,
    **{f.__name__: f for f in (address_of, bounded, charts.drift, charts.follow, charts.recentre, charts.spread)},
    **{f.__name__: f for f in (charts.add_drift_of_columns, charts.subtract_drift, charts.unit_quaternions)},
    **{f"run_{name}": _run(name) for name in KERNELS if not name.startswith(COUPLED)},
}


@functools.cache
def _kernel(name: str, rows: bool = False) -> Callable[[Any, Any, int], int]:
    """A kernel as a Python function; ``rows`` if its matrices need rows that are arrays."""
    scope = {**SCOPE, **source.functions(name), "array": _with_rows if rows else array}
    exec(compile(source.kernel_text(name), f"<{name}>", "exec"), scope)
    found: Callable[[Any, Any, int], int] = scope[name]
    if rows:
        return found

    def tried(context: Any, arrays: Any, at: int) -> int:
        try:
            return found(context, arrays, at)
        except NotImplementedError:  # a row of a memoryview
            with np.errstate(all="ignore"):
                return _kernel(name, True)(context, arrays, at)

    return tried


@functools.cache
def _scratch(name: str) -> Callable[[Any], int]:
    """The size of a kernel's scratch space in bytes, as a function of the context."""
    scope = dict(SCOPE)
    exec(source.scratch_text(name), scope)
    found: Callable[[Any], int] = scope[f"scratch_{name}"]
    return found


def batch(name: str, context: np.ndarray, states: int, arrays: Sequence[np.ndarray]) -> int:
    """The status of a kernel for some states. All arrays are contiguous, state after state."""
    numbers: list[int] = context.tolist()
    if name == "play":
        return play(numbers, [*map(address, arrays)], 0)
    numbers[0] = states
    own = np.empty(_scratch(name)(numbers), np.uint8)
    read = Context(*numbers)
    moved = np.empty(((read.joints or read.rows) + 1) * COLUMNS)
    if read.Moved != read.Table:  # other calls may run in between
        moved[:] = array(read.Table, moved.shape)
        numbers[Context._fields.index("Moved")] = address(moved)
    try:
        return _kernel(name)(numbers, [*map(address, arrays)], address(own))
    except (ArithmeticError, ValueError):  # of numbers that are not finite
        return WRONG_INPUT


def builtin(name: str) -> Callable[..., Any]:
    """The function of a context and one state in contiguous arrays; None for other arguments, or without result."""
    entry = entry_of(name)

    def function(context: np.ndarray, *state: Any, out: Any = None) -> Any:
        numbers = context.tolist()

        def shaped(dimensions: Any) -> tuple[int, ...]:
            return tuple([numbers[PLACES[d]] if isinstance(d, str) else d for d in dimensions])

        if out is not None or not _plain(state, [shaped(STATE[x]) for x in entry.arguments]):
            return None
        results = [np.empty(shaped(r.shape)) for r in entry.given]
        return None if batch(name, context, 1, [*state, *results]) else _handed_over(results)

    return function


def _plain(arrays: Sequence[Any], shapes: Sequence[tuple[int, ...]]) -> bool:
    """Whether some objects are contiguous arrays of float64 with some shapes."""
    plain = [type(a) is np.ndarray and a.dtype is _FLOAT64 and a.flags.c_contiguous and a.flags.aligned for a in arrays]
    return all(plain) and [a.shape for a in arrays] == list(shapes)


def _handed_over(results: Sequence[np.ndarray]) -> Any:
    """Several results as a tuple, or one."""
    return tuple(results) if len(results) > 1 else results[0][()]


class Bound:
    """What methods use of the kernels of a model; here they are functions in Python, which use nothing."""

    def bind(self, kind: None, context: np.ndarray, by_link: Sequence[Mapping[Any, Any]]) -> None:
        """Do nothing."""


def kind(names: Sequence[str | None], places: Sequence[int], shares: Sequence[int]) -> None:
    """Do nothing; see :class:`Bound`."""


def define(owner: type[Any], k: int, text: str, slow: Callable[..., Any], *declared: Any) -> Callable[..., Any]:
    """The method of a class: the given function."""
    return slow


class builtin_at:  # the name of the function that takes its place in C
    """See ``llvm.program.Function.builtin``; in Python it calls ``slow`` also for ``out=``."""

    def __init__(
        self,
        text: str,
        code: int,
        context: int,
        lengths: Sequence[int],
        shapes: Sequence[Any],
        slow: Any,
        owner: Any,
        share: Callable[..., Any] | None,
        k: int,
    ) -> None:
        kind = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
        self._compute, self._context, self._slow, self._owner = kind(code), context, slow, owner
        self._share = share
        self._lengths, self._shapes = [(n,) for n in lengths], shapes
        functools.update_wrapper(self, slow)

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (self._slow.__self__, self._slow.__name__)

    def __call__(self, *given: Any, **others: Any) -> Any:
        """The result of the code, or of the Python function."""
        if not others and _plain(given, self._lengths):
            arrays = [*given, *map(np.empty, self._shapes)]
            if not self._compute(self._context, struct.pack(f"{len(arrays)}q", *map(address, arrays))):
                results = arrays[len(given) :]
                return self._share(*results) if self._share else _handed_over(results)
        return self._slow(*given, **others)


_FLOAT64 = np.dtype(np.float64)
