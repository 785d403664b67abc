"""The entry of compiled functions of one state: machine code that Python calls and that reads the arrays directly.

Such a function is ``int64 f(context, arrays)``. Its arguments are an address that belongs to the function, and an array
with the addresses of its inputs and outputs. It returns 0 if it has computed its outputs. The entry computes f(q, …)
and f(q, …, out=array) for contiguous, aligned float64 arrays of the right lengths, if ``out`` is writeable and overlaps
no other array. For any other call, and if the function does not return 0, it calls a Python function that accepts all
arguments. Where the layout of Python's objects is unknown, :class:`_InPython` does the same.
"""

import ctypes
import functools
import itertools
import os
import struct
import sysconfig
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from screwdyn.backends.background import compiling_once
from screwdyn.backends.native import platform_layout as layout
from screwdyn.backends.native.ir import Code
from screwdyn.backends.native.machine import Loaded, shared_code
from screwdyn.backends.native.platform_layout import address

__all__ = ["TURN", "Computation", "Extent", "Read", "addresses", "builtin", "builtin_of_context", "prepare"]

Array = npt.NDArray[Any]
_NAME = "entry"
# What the entry calls and compares with: functions of Python's and NumPy's C interfaces, and objects. Their addresses,
# which differ between processes, follow that of the computation in the array of a built-in function.
_PYTHON = "PyTuple_New", "PyTuple_SetItem", "Py_IncRef", "Py_DecRef", "PyObject_Vectorcall"
_NUMPY = {"PyArray_New": layout.NEW, "PyArray_Scalar": layout.SCALAR}
_OBJECTS = {"ndarray": np.ndarray, "tuple": tuple, "float64": layout.FLOAT64, "out": layout.OUT}
_PLACE = {name: 1 + k for k, name in enumerate((*_PYTHON, *_NUMPY, *_OBJECTS))}
# Place of the context, which precedes the lengths.
_CONTEXT = 1 + len(_PLACE)
# ``int64 f(context, arrays)``. The call holds Python's global lock, because a context may contain the address of
# scratch space; in a build without that lock, it holds this one, as a fork does.
Computation = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
TURN: Any = nullcontext()
if sysconfig.get_config_var("Py_GIL_DISABLED"):
    TURN = threading.RLock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=TURN.acquire, after_in_parent=TURN.release, after_in_child=TURN.release)


def addresses(arrays: Sequence[Array]) -> Array:
    """The addresses of the first entries of some arrays, as arguments of a computation."""
    return np.array([*map(address, arrays), 0], dtype=np.int64)


class Read(NamedTuple):
    """A length of an array that the entry reads from an array of integers.

    Attributes
    ----------
    place : int
    """

    place: int


Extent = int | Read


def builtin(
    name: str,
    computation: int,
    context: int,
    lengths: Sequence[int],
    shapes: Sequence[tuple[int, ...]],
    slow: Callable[..., Any],
    owner: Any,
) -> Any:
    """The built-in function of one state that calls a computation.

    Parameters
    ----------
    name : str
    computation, context : int
        Addresses of the computation and of its context.
    lengths : sequence of int
        Of the inputs.
    shapes : sequence of tuples
        Of the outputs; several outputs are returned, and given as ``out``, as a tuple.
    slow : callable
        The function for other arguments, whose signature and docstring are used.
    owner : object
        The owner of both addresses; the function holds a reference to it.

    Returns
    -------
    callable
        A built-in function, or :class:`_InPython` if the layout of Python's objects is unknown.
    """
    code = prepare(len(lengths), [*map(len, shapes)])
    if code is None:
        return _InPython(computation, context, [(n,) for n in lengths], shapes, slow, owner)
    numbers = np.array([computation, *_addresses(), context, *lengths, *itertools.chain(*shapes)], dtype=np.int64)
    return layout.builtin(name, code.address(_NAME), numbers, slow, (owner, code))


def prepare(inputs: int, axes: Sequence[int]) -> Loaded | None:
    """The code of :func:`builtin` for numbers of inputs and of axes of the outputs; None if it needs none."""
    if not layout.understood():
        return None
    places = itertools.count(_CONTEXT + 1)
    lengths = tuple((Read(next(places)),) for _ in range(inputs))
    return _code(lengths, tuple(tuple(Read(next(places)) for _ in range(n)) for n in axes), False)


def builtin_of_context(
    name: str,
    computation: int,
    inputs: Sequence[tuple[Extent, ...]],
    outputs: Sequence[tuple[Extent, ...]],
    slow: Callable[..., Any],
    owner: Any,
) -> Any:
    """As :func:`builtin`, but the context is the first argument: an array of integers that contains the lengths."""
    if not layout.understood():
        return _InPython(computation, None, inputs, outputs, slow, owner)
    code = _code(tuple(inputs), tuple(outputs), True)
    return layout.builtin(name, code.address(_NAME), np.array([computation, *_addresses()]), slow, (owner, code))


class _InPython:
    """What :func:`builtin` returns where the layout of Python's objects is unknown, or where there is no global lock.

    ``context`` is None if it is the first argument of each call.
    """

    def __init__(
        self,
        computation: int,
        context: int | None,
        inputs: Sequence[tuple[Extent, ...]],
        outputs: Sequence[tuple[Extent, ...]],
        slow: Any,
        owner: Any,
    ) -> None:
        self._compute, self._context, self._shapes = Computation(computation), context, [*inputs, *outputs]
        self._inputs, self._slow, self._owner = len(inputs), slow, owner
        self._turn = TURN if context is None else nullcontext()
        self._packed = struct.Struct(f"{len(self._shapes)}q").pack
        functools.update_wrapper(self, slow)

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (self._slow.__self__, self._slow.__name__)

    def __call__(self, *given: Any, out: Any = None, **others: Any) -> Any:
        found = None if others else self._computed(given, out)
        return self._slow(*given, out=out, **others) if found is None else found

    def _computed(self, given: Sequence[Any], out: Any) -> Any:
        """The result for one state in contiguous arrays; None for other arguments, or if there is none."""
        context, first = self._context, self._inputs
        shapes: Any = self._shapes
        if context is None:
            numbers, *given = given
            context, numbers = address(numbers), numbers.tolist()
            shapes = [tuple([numbers[n.place] if isinstance(n, Read) else n for n in shape]) for shape in shapes]
        outs = out
        if out is None:
            outs = tuple([np.empty(shape) for shape in shapes[first:]])
        elif len(shapes) == first + 1:
            outs = (out,)
        if type(outs) is not tuple:
            return None
        arrays = [*given, *outs]
        # Inlined, because each call of a function takes a twentieth of the time.
        if shapes != [
            a.shape
            if type(a) is np.ndarray and a.dtype is layout.FLOAT64 and (f := a.flags).c_contiguous and f.aligned
            else None
            for a in arrays
        ]:
            return None
        starts = [address(a) for a in arrays]
        if out is not None:
            ends = [start + a.nbytes for start, a in zip(starts, arrays, strict=True)]
            for k, a in enumerate(outs, first):
                if not a.flags.writeable or any([starts[k] < ends[j] and starts[j] < ends[k] for j in range(k)]):
                    return None
        with self._turn:
            if self._compute(context, self._packed(*starts)):
                return None
        if out is not None:
            return out
        return outs if len(outs) > 1 else outs[0][()]


@functools.cache
def _addresses() -> tuple[int, ...]:
    """The addresses of what the entry calls and compares with, in the order of their places."""
    return *map(layout.address_of, _PYTHON), *map(layout.array_function, _NUMPY.values()), *map(id, _OBJECTS.values())


@compiling_once
def _code(inputs: tuple[tuple[Extent, ...], ...], outputs: tuple[tuple[Extent, ...], ...], handed: bool) -> Loaded:
    """The entry of all functions with given shapes; ``handed`` if the context is an argument of each call."""
    return Loaded(shared_code(_text, inputs, outputs, handed))


def _text(inputs: Sequence[tuple[Extent, ...]], outputs: Sequence[tuple[Extent, ...]], handed: bool) -> str:
    """Text of a module with the entry.

    The ``self`` of the function is a tuple of an array of integers and the Python function for other arguments. The
    array begins with the address of the computation and those of :func:`_addresses`. If the context is not an
    argument, its address follows, then the lengths.
    """
    code = Code(1)

    def read(at: str, offset: int, kind: str = "i64") -> str:
        place = code.let(f"getelementptr i8, ptr {at}, i64 {offset}")
        return code.let(f"load {kind}, ptr {place}, align {4 if kind == 'i32' else 8}")

    blocks = iter(range(1000))

    def require(equal: Sequence[tuple[str, str, str]]) -> None:
        """Continue only if the values of all pairs are equal; otherwise call the Python function."""
        wrong = "false"
        for kind, x, y in equal:
            wrong = code.let(f"or i1 {wrong}, {code.let(f'icmp ne {kind} {x}, {y}')}")
        label = f"next{next(blocks)}"
        code.do(f"br i1 {wrong}, label %slow, label %{label}")
        code.label(label)

    def must(made: str, failed: str) -> None:
        """Continue only if an object was created."""
        label = f"next{next(blocks)}"
        code.do(f"br i1 {code.let(f'icmp eq ptr {made}, null')}, label %{failed}, label %{label}")
        code.label(label)

    def known(name: str) -> str:
        """The address of a function or of an object."""
        return read(own, 8 * _PLACE[name], "ptr")

    def array_checks(arrays: Sequence[str], shapes: Sequence[Sequence[str]], flags: int) -> list[str]:
        """Continue only if objects are arrays of given shapes; returns the addresses of their entries."""
        require([("ptr", read(a, layout.TYPE, "ptr"), known("ndarray")) for a in arrays])
        pairs = []
        for a, shape in zip(arrays, shapes, strict=True):
            pairs += [
                ("i32", read(a, layout.NDIM, "i32"), str(len(shape))),
                ("ptr", read(a, layout.DESCRIPTOR, "ptr"), known("float64")),
                ("i32", code.let(f"and i32 {read(a, layout.FLAGS, 'i32')}, {flags}"), str(flags)),
            ]
        require(pairs)
        pairs = []
        for a, shape in zip(arrays, shapes, strict=True):
            extents = read(a, layout.SHAPE, "ptr")
            pairs += [("i64", read(extents, 8 * axis), length) for axis, length in enumerate(shape)]
        require(pairs)
        return [read(a, layout.DATA, "ptr") for a in arrays]

    def span(start: str, shape: Sequence[str]) -> tuple[str, str]:
        """The addresses of the begin and the end of an array's entries."""
        size = "8"
        for length in shape:
            size = code.let(f"mul i64 {size}, {length}")
        return start, code.let(f"getelementptr i8, ptr {start}, i64 {size}")

    def compute(outs: Sequence[str]) -> str:
        for k, data in enumerate((*given, *outs)):
            code.do(f"store ptr {data}, ptr {code.let(f'getelementptr ptr, ptr %arrays, i64 {k}')}, align 8")
        return code.let(f"call i64 {computation}(ptr {context}, ptr %arrays)")

    def return_arrays() -> None:
        """Compute new arrays, or a tuple of them, and return them."""
        several = len(shapes) > 1
        result, arrays = "", []
        if several:
            result = code.let(f"call ptr {known('PyTuple_New')}(i64 {len(shapes)})")
            must(result, "failed")
        for k, shape in enumerate(shapes):
            # PyArray_New: type, axes, shape, double, no strides, no data, …
            for axis, length in enumerate(shape):
                at = code.let(f"getelementptr i64, ptr %extents, i64 {axis}")
                code.do(f"store i64 {length}, ptr {at}, align 8")
            details = f"i32 {len(shape)}, ptr %extents, i32 {layout.DOUBLE}, ptr null, ptr null, i32 0, i32 0, ptr null"
            make = known("PyArray_New")
            new = code.let(f"call ptr {make}(ptr {known('ndarray')}, {details})")
            must(new, "unmade" if several else "failed")
            if several:
                # The tuple takes over the reference.
                code.let(f"call i32 {known('PyTuple_SetItem')}(ptr {result}, i64 {k}, ptr {new})")
            arrays.append(new)
        result = result or arrays[0]
        bad = code.let(f"icmp ne i64 {compute([read(new, layout.DATA, 'ptr') for new in arrays])}, 0")
        code.do(f"br i1 {bad}, label %drop, label %good")
        code.label("good")
        code.do(f"ret ptr {result}")
        code.label("drop")
        code.do(f"call void {known('Py_DecRef')}(ptr {result})")
        code.do("br label %slow")
        if several:
            code.label("unmade")
            code.do(f"call void {known('Py_DecRef')}(ptr {result})")
            code.do("br label %failed")
        code.label("failed")
        code.do("ret ptr null")

    first, last = int(handed), int(handed) + len(inputs)
    code.do(f"%arrays = alloca [{len(inputs) + len(outputs) + 1} x ptr], align 8")
    code.do("%number = alloca double, align 8")
    code.do(f"%extents = alloca [{max((1, *map(len, outputs)))} x i64], align 8")
    own = numbers = read(read("%self", layout.TUPLE_ITEMS, "ptr"), layout.DATA, "ptr")
    require([("i64", "%count", str(last))])
    computation = read(own, 0, "ptr")
    if handed:
        numbers = context = read(read("%args", 0, "ptr"), layout.DATA, "ptr")
    else:
        context = read(own, 8 * _CONTEXT, "ptr")
    lengths, shapes = (
        [[read(numbers, 8 * n.place) if isinstance(n, Read) else str(n) for n in shape] for shape in all_shapes]
        for all_shapes in (inputs, outputs)
    )
    objects = [read("%args", 8 * k, "ptr") for k in range(first, last)]
    given = array_checks(objects, lengths, layout.CONTIGUOUS | layout.ALIGNED)
    code.do(f"br i1 {code.let('icmp eq ptr %names, null')}, label %fresh, label %named")

    code.label("named")
    require(
        [
            ("i64", read("%names", layout.TUPLE_SIZE), "1"),
            ("ptr", read("%names", layout.TUPLE_ITEMS, "ptr"), known("out")),
        ]
    )
    out = read("%args", 8 * last, "ptr")
    outs = [out]
    if len(shapes) > 1:
        require([("ptr", read(out, layout.TYPE, "ptr"), known("tuple"))])
        require([("i64", read(out, layout.TUPLE_SIZE), str(len(shapes)))])
        outs = [read(out, layout.TUPLE_ITEMS + 8 * k, "ptr") for k in range(len(shapes))]
    starts = array_checks(outs, shapes, layout.CONTIGUOUS | layout.ALIGNED | layout.WRITEABLE)
    spans = [span(start, shape) for start, shape in zip((*given, *starts), (*lengths, *shapes), strict=True)]
    # Outputs must not overlap other arrays.
    apart = []
    for k in range(len(inputs), len(spans)):
        for j in range(k):
            before = code.let(f"icmp ult ptr {spans[k][0]}, {spans[j][1]}")
            after = code.let(f"icmp ult ptr {spans[j][0]}, {spans[k][1]}")
            apart.append(("i1", code.let(f"and i1 {before}, {after}"), "false"))
    require(apart)
    require([("i64", compute(starts), "0")])
    code.do(f"call void {known('Py_IncRef')}(ptr {out})")
    code.do(f"ret ptr {out}")

    code.label("fresh")
    if shapes == [[]]:
        # A number instead of an array without axes, as NumPy's functions return.
        require([("i64", compute(["%number"]), "0")])
        made = known("PyArray_Scalar")
        details = f"ptr %number, ptr {known('float64')}, ptr null"
        code.do(f"ret ptr {code.let(f'call ptr {made}({details})')}")
    else:
        return_arrays()

    code.label("slow")
    slow = read("%self", layout.TUPLE_ITEMS + 8, "ptr")
    call = f"{known('PyObject_Vectorcall')}(ptr {slow}, ptr %args, i64 %count, ptr %names)"
    code.do(f"ret ptr {code.let(f'call ptr {call}')}")
    signature = "ptr %self, ptr %args, i64 %count, ptr %names"
    return "\n".join([f"define ptr @{_NAME}({signature}) {{", *code.lines, "}"])
