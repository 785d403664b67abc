"""How Python reaches a compiled function of one state: an entry in machine code that reads NumPy's arrays itself.

The entry answers a call that fits exactly, f(q, …) or f(q, …, out=array): plain, contiguous, aligned float64 arrays of
the right lengths, ``out`` writeable and apart from the others. Anything else it hands on, arguments unopened, to a
function of Python that answers everything.
"""

import ctypes
import importlib
import inspect
import math
import struct
import sys
import sysconfig
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from screwdyn.backends.llvm.emit import SINGLE
from screwdyn.backends.llvm.ir import Code

__all__ = ["ENTRY", "builtin", "entry", "understood"]

ENTRY = "entry"
# Offsets in bytes of what the entry reads, on CPython and NumPy 2 with 64 bits.
_TYPE, _TUPLE_SIZE, _TUPLE_ITEMS = 8, 16, 24
_DATA, _NDIM, _SHAPE, _DESCRIPTOR, _FLAGS = 16, 24, 32, 56, 64
_CONTIGUOUS, _ALIGNED, _WRITEABLE = 0x1, 0x100, 0x400
_METH_FASTCALL_KEYWORDS = 0x80 | 0x2
# NumPy's number of float64, and the place of PyArray_New in its table of functions, fixed by its binary interface.
_DOUBLE, _PYARRAY_NEW = 12, 93
# The name of the keyword and the type of entries must be these very objects.
_OUT, _FLOAT64 = sys.intern("out"), np.dtype(np.float64)


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def understood() -> bool:
    """Whether objects lie in memory here as the entry expects: tried on arrays whose contents are known."""
    if sys.implementation.name != "cpython" or struct.calcsize("P") != 8 or np.__version__.split(".")[0] != "2":
        return False
    if sysconfig.get_config_var("Py_GIL_DISABLED") or hasattr(sys, "gettotalrefcount"):
        return False
    if (object.__basicsize__, tuple.__basicsize__, np.ndarray.__basicsize__ >= _FLAGS + 4) != (16, 24, True):
        return False
    made = ctypes.PYFUNCTYPE(
        ctypes.py_object,
        ctypes.c_void_p,
        ctypes.c_int,
        ctypes.c_void_p,
        ctypes.c_int,
        ctypes.c_void_p,
        ctypes.c_void_p,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_void_p,
    )(_new_array())(id(np.ndarray), 2, (ctypes.c_int64 * 2)(3, 5), _DOUBLE, None, None, 0, 0, None)
    if type(made) is not np.ndarray or (made.shape, made.dtype) != ((3, 5), _FLOAT64):
        return False
    return all(_as_expected(a) for a in (np.zeros(3), np.ones((2, 5)), np.zeros((4, 4), order="F"), _read_only()))


def _new_array() -> int:
    """Address of NumPy's function that makes arrays."""
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    table = pointer(importlib.import_module("numpy._core._multiarray_umath")._ARRAY_API, None)
    return int(ctypes.c_void_p.from_address(table + 8 * _PYARRAY_NEW).value or 0)


def _read_only() -> np.ndarray:
    a = np.zeros(7)
    a.setflags(write=False)
    return a


def _as_expected(a: np.ndarray) -> bool:
    def at(address: int, kind: Any) -> int:
        return int(kind.from_address(address).value)

    one, items = id(a), (a, _OUT)
    shape = at(one + _SHAPE, ctypes.c_int64)
    flags = at(one + _FLAGS, ctypes.c_int32)
    return (
        at(one + _TYPE, ctypes.c_int64) == id(np.ndarray)
        and at(one + _DATA, ctypes.c_int64) == a.ctypes.data
        and at(one + _NDIM, ctypes.c_int32) == a.ndim
        and [at(shape + 8 * k, ctypes.c_int64) for k in range(a.ndim)] == list(a.shape)
        and at(one + _DESCRIPTOR, ctypes.c_int64) == id(_FLOAT64)
        and bool(flags & _CONTIGUOUS) == a.flags.c_contiguous
        and bool(flags & _ALIGNED) == a.flags.aligned
        and bool(flags & _WRITEABLE) == a.flags.writeable
        and at(id(items) + _TYPE, ctypes.c_int64) == id(tuple)
        and at(id(items) + _TUPLE_SIZE, ctypes.c_int64) == 2
        and at(id(items) + _TUPLE_ITEMS + 8, ctypes.c_int64) == id(_OUT)
    )


def entry(lengths: Sequence[int], shapes: Sequence[tuple[int, ...]]) -> str:
    """Text that joins a module with ``single``: a function that Python calls.

    Parameters
    ----------
    lengths : sequence of int
        Of the inputs.
    shapes : sequence of tuples
        Of the outputs.

    Notes
    -----
    Its ``self`` is a tuple of the array of parameters and the function for all that does not fit. Several outputs make
    a tuple, and are expected as one.
    """
    code, inputs = Code(1), len(lengths)

    def read(address: str, offset: int, kind: str = "i64") -> str:
        at = code.let(f"getelementptr i8, ptr {address}, i64 {offset}")
        return code.let(f"load {kind}, ptr {at}, align {4 if kind == 'i32' else 8}")

    blocks = iter(range(1000))

    def require(equal: Sequence[tuple[str, str, str]]) -> None:
        """Go on only if all pairs of values of some type are equal."""
        wrong = "false"
        for kind, x, y in equal:
            wrong = code.let(f"or i1 {wrong}, {code.let(f'icmp ne {kind} {x}, {y}')}")
        label = f"next{next(blocks)}"
        code.do(f"br i1 {wrong}, label %slow, label %{label}")
        code.label(label)

    def pointer(thing: object) -> str:
        return f"inttoptr (i64 {id(thing)} to ptr)"

    def array_checks(arrays: Sequence[str], shapes: Sequence[tuple[int, ...]], flags: int) -> list[str]:
        """Go on only if objects are plain arrays of some shapes; returns where their entries begin."""
        require([("ptr", read(a, _TYPE, "ptr"), pointer(np.ndarray)) for a in arrays])
        pairs = []
        for a, shape in zip(arrays, shapes, strict=True):
            pairs += [
                ("i32", read(a, _NDIM, "i32"), str(len(shape))),
                ("ptr", read(a, _DESCRIPTOR, "ptr"), pointer(_FLOAT64)),
                ("i32", code.let(f"and i32 {read(a, _FLAGS, 'i32')}, {flags}"), str(flags)),
            ]
        require(pairs)
        pairs = []
        for a, shape in zip(arrays, shapes, strict=True):
            extents = read(a, _SHAPE, "ptr")
            pairs += [("i64", read(extents, 8 * axis), str(length)) for axis, length in enumerate(shape)]
        require(pairs)
        return [read(a, _DATA, "ptr") for a in arrays]

    def compute(outs: Sequence[str]) -> str:
        parameters = read(read("%self", _TUPLE_ITEMS, "ptr"), _DATA, "ptr")
        handed = ", ".join(f"ptr {data}" for data in (parameters, *given, *outs))
        return code.let(f"call i64 @{SINGLE}({handed})")

    require([("i64", "%count", str(inputs))])
    objects = [read("%args", 8 * k, "ptr") for k in range(inputs)]
    given = array_checks(objects, [(n,) for n in lengths], _CONTIGUOUS | _ALIGNED)
    code.do(f"br i1 {code.let('icmp eq ptr %names, null')}, label %fresh, label %named")

    code.label("named")
    require([("i64", read("%names", _TUPLE_SIZE), "1"), ("ptr", read("%names", _TUPLE_ITEMS, "ptr"), pointer(_OUT))])
    out = read("%args", 8 * inputs, "ptr")
    outs = [out]
    if len(shapes) > 1:
        require([("ptr", read(out, _TYPE, "ptr"), pointer(tuple))])
        require([("i64", read(out, _TUPLE_SIZE), str(len(shapes)))])
        outs = [read(out, _TUPLE_ITEMS + 8 * k, "ptr") for k in range(len(shapes))]
    starts = array_checks(outs, shapes, _CONTIGUOUS | _ALIGNED | _WRITEABLE)
    sizes = [8 * n for n in lengths] + [8 * math.prod(shape) for shape in shapes]
    spans = [
        (start, code.let(f"getelementptr i8, ptr {start}, i64 {size}"))
        for start, size in zip((*given, *starts), sizes, strict=True)
    ]
    # What is written must not overlap anything else.
    apart = []
    for k in range(inputs, len(spans)):
        for j in range(k):
            before = code.let(f"icmp ult ptr {spans[k][0]}, {spans[j][1]}")
            after = code.let(f"icmp ult ptr {spans[j][0]}, {spans[k][1]}")
            apart.append(("i1", code.let(f"and i1 {before}, {after}"), "false"))
    require(apart)
    require([("i64", compute(starts), "0")])
    code.do(f"call void {_function(ctypes.pythonapi.Py_IncRef)}(ptr {out})")
    code.do(f"ret ptr {out}")

    def must(made: str, failed: str) -> None:
        """Go on only if an object was made."""
        label = f"next{next(blocks)}"
        code.do(f"br i1 {code.let(f'icmp eq ptr {made}, null')}, label %{failed}, label %{label}")
        code.label(label)

    code.label("fresh")
    several, axes = len(shapes) > 1, max(map(len, shapes))
    extents = code.let(f"alloca [{axes} x i64], align 8")
    result, arrays = "", []
    if several:
        result = code.let(f"call ptr {_function(ctypes.pythonapi.PyTuple_New)}(i64 {len(shapes)})")
        must(result, "failed")
    for k, shape in enumerate(shapes):
        # PyArray_New: type, axes, shape, double, no strides, no data, …
        for axis, length in enumerate(shape):
            at = code.let(f"getelementptr i64, ptr {extents}, i64 {axis}")
            code.do(f"store i64 {length}, ptr {at}, align 8")
        details = f"i32 {len(shape)}, ptr {extents}, i32 {_DOUBLE}, ptr null, ptr null, i32 0, i32 0, ptr null"
        new = code.let(f"call ptr inttoptr (i64 {_new_array()} to ptr)(ptr {pointer(np.ndarray)}, {details})")
        must(new, "unmade" if several else "failed")
        if several:
            # The tuple owns it from now on.
            code.let(f"call i32 {_function(ctypes.pythonapi.PyTuple_SetItem)}(ptr {result}, i64 {k}, ptr {new})")
        arrays.append(new)
    result = result or arrays[0]
    bad = code.let(f"icmp ne i64 {compute([read(new, _DATA, 'ptr') for new in arrays])}, 0")
    code.do(f"br i1 {bad}, label %drop, label %good")
    code.label("good")
    code.do(f"ret ptr {result}")
    code.label("drop")
    code.do(f"call void {_function(ctypes.pythonapi.Py_DecRef)}(ptr {result})")
    code.do("br label %slow")
    if several:
        code.label("unmade")
        code.do(f"call void {_function(ctypes.pythonapi.Py_DecRef)}(ptr {result})")
        code.do("br label %failed")
    code.label("failed")
    code.do("ret ptr null")

    code.label("slow")
    slow = read("%self", _TUPLE_ITEMS + 8, "ptr")
    call = f"{_function(ctypes.pythonapi.PyObject_Vectorcall)}(ptr {slow}, ptr %args, i64 %count, ptr %names)"
    code.do(f"ret ptr {code.let(f'call ptr {call}')}")
    signature = "ptr %self, ptr %args, i64 %count, ptr %names"
    return "\n".join([f"define ptr @{ENTRY}({signature}) {{", *code.lines, "}"])


def _function(exported: Any) -> str:
    return f"inttoptr (i64 {ctypes.cast(exported, ctypes.c_void_p).value} to ptr)"


class _Itself(tuple[Any, ...]):
    """What an entry is called with; where it is pickled with its function, the object that ``slow`` is a method of."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return _same, (self[1].__self__,)


def _same(x: Any) -> Any:
    return x


def builtin(name: str, address: int, parameters: np.ndarray, slow: Callable[..., Any], owner: Any) -> Any:
    """A function of Python whose code is at an address; it keeps alive what it needs."""
    # Python reads the signature of such a function from its documentation.
    signature = inspect.signature(slow)
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    known = signature.replace(parameters=bare, return_annotation=signature.empty)
    text = f"{name}{known}\n--\n\n{slow.__doc__ or ''}"
    method = _MethodDef(name.encode(), address, _METH_FASTCALL_KEYWORDS, text.encode())
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
        ("PyCFunction_NewEx", ctypes.pythonapi)
    )
    return make(ctypes.addressof(method), _Itself((parameters, slow, owner, method)), None)
