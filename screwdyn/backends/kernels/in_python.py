"""The kernels as Python functions: what runs where they were not compiled, and what the compiled ones are checked with.

Operations are those of the C file in the same order, so that both give the same bits.
"""

import ctypes
import functools
import math
import operator
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from screwdyn.backends.kernels.source import PLACES, STATE, Context, entry_of
from screwdyn.backends.tape.trace import Subject, Undetermined, computed, constants
from screwdyn.physics import LARGEST, charts
from screwdyn.physics.charts import GROUP, Charts
from screwdyn.physics.couplings import COUPLING
from screwdyn.physics.table import COLUMNS, PLACE

Array = np.ndarray
# Status of a kernel for invalid input.
WRONG_INPUT = -1
_FLOAT64 = np.dtype(np.float64)
_PLAYED = (
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    *(np.vectorize(f, [float]) for f in (math.sin, math.cos)),
)


def address(a: Array) -> int:
    """Address of an array's first entry."""
    return int(a.__array_interface__["data"][0])


def _at(address: int, kind: Any, *shape: int) -> Array:
    """The array at an address."""
    size = math.prod(shape)
    return np.frombuffer((kind * size).from_address(address) if size else b"", kind).reshape(shape)


def _subject(name: str, numbers: Sequence[int]) -> Subject:
    """What a context says of the tree."""
    c = Context(*numbers)
    n, real, chart = c.joints or c.rows, ctypes.c_double, None
    if c.groups or c.joints:
        where, groups = _at(c.Where, ctypes.c_int64, n), _at(c.Groups, ctypes.c_int64, c.groups, GROUP)
        terms, couplings = _at(c.Terms, real, c.terms, 4), _at(c.Couplings, real, c.joints, COUPLING)
        chart = Charts(where, groups, constants(terms), constants(couplings))
    places = constants(_at(c.Places, real, c.links, PLACE))
    path = c.path if name == "link_step" else None
    return Subject(constants(_at(c.Table, real, n + 1, COLUMNS)), chart, places, path=path)


def batch(name: str, context: Array, states: int, arrays: Sequence[Array]) -> int:
    """The status of a kernel for some states. All arrays are contiguous, state after state."""
    if name == "play":
        code, rows = arrays
        with np.errstate(all="ignore"):
            for op, to, a, b in code.tolist():
                rows[to] = _PLAYED[op](rows[a], rows[b]) if op < 4 else _PLAYED[op](rows[a])
        return 0
    if not states:
        return 0
    entry, subject = entry_of(name), _subject(name, context.tolist())
    names, outs = entry.arguments, arrays[len(entry.arguments) :]
    state = {x: a.reshape(states, -1, *STATE[x][1:]) for x, a in zip(names, arrays, strict=False)}
    largest = np.max([np.abs(a).max(initial=0.0) for a in state.values()])
    turned = charts.unit_quaternions(subject.chart.groups, arrays[0].ravel(), state["q"].shape[1], states)
    if not (largest < math.inf and turned):
        return WRONG_INPUT
    try:
        for b in range(states):
            now = {group: a[b].astype(object) for group, a in state.items()}
            for out, result in zip(outs, computed(entry, subject, now.__getitem__), strict=True):
                out.reshape(states, -1)[b] = result.ravel()
    except Undetermined as undetermined:
        return undetermined.status
    except (ArithmeticError, ValueError):  # of numbers that are not finite
        return WRONG_INPUT
    return 0 if largest <= LARGEST or all([np.isfinite(out).all() for out in outs]) else WRONG_INPUT


def builtin(name: str) -> Callable[..., Any]:
    """The function of a context and one state in contiguous arrays; None for other arguments, or without result."""
    entry = entry_of(name)

    def function(context: Array, *state: Any, out: Any = None) -> Any:
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
    plain = [type(a) is Array and a.dtype is _FLOAT64 and a.flags.c_contiguous and a.flags.aligned for a in arrays]
    return all(plain) and [a.shape for a in arrays] == list(shapes)


def _handed_over(results: Sequence[Array]) -> Any:
    """Several results as a tuple, or one."""
    return tuple(results) if len(results) > 1 else results[0][()]


class Bound:
    """What methods use of the kernels of a model; here they are functions in Python, which use nothing."""

    def bind(self, kind: None, context: Array, by_link: Sequence[Mapping[Any, Any]]) -> None:
        """Do nothing."""


def kind(names: Sequence[str | None], places: Sequence[int], shares: Sequence[int]) -> None:
    """Do nothing; see :class:`Bound`."""


def define(owner: type[Any], k: int, text: str, slow: Callable[..., Any], *declared: Any) -> Callable[..., Any]:
    """The method of a class: the given function."""
    return slow


class builtin_at:  # the name of the function that takes its place in C
    """See ``llvm.program.Function.builtin``; in Python it calls ``slow`` also for ``out=``."""

    def __init__(
        self, _: str, code: int, context: int, lengths: Sequence[int], shapes: Sequence[Any], slow: Any, *others: Any
    ) -> None:
        kind = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
        self._compute, self._context, self._slow = kind(code), context, slow
        self._owner, self._share, _ = others
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
