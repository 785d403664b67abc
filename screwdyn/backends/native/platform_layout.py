"""Assumptions about the memory layout of CPython's and NumPy's objects, and a check of them.

The entry of compiled functions (``backends.native.entry``) reads its arguments directly. It is used only if
:func:`understood` returns True; otherwise Python code reads the arguments.
"""

import ctypes
import functools
import importlib
import inspect
import struct
import sys
import sysconfig
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["address", "address_of", "array_function", "builtin", "understood"]

# Offsets in bytes, on CPython and NumPy 2 with 64 bits: of an object's type, of a tuple's length and items, of an
# array's data, number of axes, shape, descriptor and flags. An object begins with its head, which ends with its type;
# since Python 3.14, a tuple has a hash between its length and its items.
_HEAD = object.__basicsize__
TYPE, TUPLE_SIZE, TUPLE_ITEMS = _HEAD - 8, _HEAD, tuple.__basicsize__
DATA, NDIM, SHAPE, DESCRIPTOR, FLAGS = _HEAD, _HEAD + 8, _HEAD + 16, _HEAD + 40, _HEAD + 48
CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400
# NumPy's number of float64, and the indices of PyArray_New and PyArray_Scalar in its table of functions.
DOUBLE, NEW, SCALAR = 12, 93, 60
_METH_FASTCALL_KEYWORDS = 0x80 | 0x2
# The keyword and the dtype are compared by identity.
OUT, FLOAT64 = sys.intern("out"), np.dtype(np.float64)


@functools.cache
def understood() -> bool:
    """Whether objects have the assumed layout, tested on arrays with known contents."""
    if sys.implementation.name != "cpython" or struct.calcsize("P") != 8 or np.__version__.split(".")[0] != "2":
        return False
    # Without the global lock, another thread may change an array while it is read.
    if sysconfig.get_config_var("Py_GIL_DISABLED") or hasattr(sys, "gettotalrefcount"):
        return False
    if np.ndarray.__basicsize__ < FLAGS + 4 or TUPLE_ITEMS < TUPLE_SIZE + 8:
        return False
    kinds = ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p
    make = ctypes.PYFUNCTYPE(ctypes.py_object, *kinds, ctypes.c_int, ctypes.c_int, ctypes.c_void_p)(array_function(NEW))
    made = make(id(np.ndarray), 2, (ctypes.c_int64 * 2)(3, 5), DOUBLE, None, None, 0, 0, None)
    if type(made) is not np.ndarray or (made.shape, made.dtype) != ((3, 5), FLOAT64):
        return False
    scalar = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    number = scalar(array_function(SCALAR))(ctypes.addressof(ctypes.c_double(0.25)), FLOAT64, None)
    if type(number) is not np.float64 or number != 0.25:
        return False
    frozen = np.zeros(7)
    frozen.setflags(write=False)
    arrays = np.zeros(3), np.ones((2, 5)), np.zeros((4, 4), order="F"), frozen
    return all(map(_as_assumed, arrays))


def _read(address: int, kind: Any) -> int:
    value: int = kind.from_address(address).value
    return value


def _as_assumed(a: np.ndarray) -> bool:
    one, items = id(a), (a, OUT)
    shape, flags = _read(one + SHAPE, ctypes.c_int64), _read(one + FLAGS, ctypes.c_int32)
    return (
        _read(one + TYPE, ctypes.c_int64) == id(np.ndarray)
        and _read(one + DATA, ctypes.c_int64) == a.ctypes.data
        and _read(one + NDIM, ctypes.c_int32) == a.ndim
        and [_read(shape + 8 * k, ctypes.c_int64) for k in range(a.ndim)] == list(a.shape)
        and _read(one + DESCRIPTOR, ctypes.c_int64) == id(FLOAT64)
        and bool(flags & CONTIGUOUS) == a.flags.c_contiguous
        and bool(flags & ALIGNED) == a.flags.aligned
        and bool(flags & WRITEABLE) == a.flags.writeable
        and _read(id(items) + TYPE, ctypes.c_int64) == id(tuple)
        and _read(id(items) + TUPLE_SIZE, ctypes.c_int64) == 2
        and _read(id(items) + TUPLE_ITEMS + 8, ctypes.c_int64) == id(OUT)
    )


def address(a: np.ndarray) -> int:
    """Address of an array's first entry."""
    if understood():
        return _read(id(a) + DATA, ctypes.c_int64)
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(a.data))
    except (TypeError, ValueError):  # read-only, with gaps or empty; the other way takes four times as long
        where: int = a.__array_interface__["data"][0]
        return where


def array_function(place: int) -> int:
    """Address of a function of NumPy's C interface.

    PyArray_New takes the type, number of axes, shape, number of the dtype, and five arguments that may be null.
    PyArray_Scalar takes an address, a dtype and null, and copies the number at the address.
    """
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    table = pointer(importlib.import_module("numpy._core._multiarray_umath")._ARRAY_API, None)
    return int(ctypes.c_void_p.from_address(table + 8 * place).value or 0)


def address_of(name: str) -> int:
    """Address of a function of Python's C interface."""
    return int(ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0)


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _Self(tuple[Any, ...]):
    """The ``self`` of a built-in function, which is pickled as the object of its Python method."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return _identity, (self[1].__self__,)


def _identity(x: Any) -> Any:
    return x


def builtin(name: str, address: int, first: Any, slow: Callable[..., Any], owner: Any) -> Any:
    """A built-in function whose machine code is at an address.

    Its ``self`` is the tuple ``(first, slow, …)``. Name, signature, docstring and pickling are those of ``slow``. It
    holds a reference to ``owner``, the object that owns the code.
    """
    # Python reads the signature of a built-in function from its docstring.
    signature = inspect.signature(slow)
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    known = signature.replace(parameters=bare, return_annotation=signature.empty)
    text = f"{name}{known}\n--\n\n{slow.__doc__ or ''}"
    method = _MethodDef(name.encode(), address, _METH_FASTCALL_KEYWORDS, text.encode())
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
        ("PyCFunction_NewEx", ctypes.pythonapi)
    )
    return make(ctypes.addressof(method), _Self((first, slow, owner, method)), None)
