"""Calls of machine code with arrays: the compiled kernels, or the same in Python; and functions at an address.

A function at an address is ``int64 f(context, arrays)``. Its arguments are an address that belongs to the function, and
an array with the addresses of its inputs and outputs. It returns 0 if it has computed its outputs.
"""

import ctypes
import importlib
import inspect
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from screwdyn.backends.kernels import in_python
from screwdyn.backends.kernels.source import KERNELS
from screwdyn.core.errors import ScrewdynWarning

machine: Any = in_python
with suppress(ImportError, KeyError, AttributeError):
    _compiled = importlib.import_module("screwdyn.backends.kernels._compiled")
    for _name in KERNELS:
        _compiled.builtin(_name)  # KeyError if it was compiled before the quantity was declared
    _ = _compiled.Bound  # AttributeError if it was compiled before methods called it
    machine = _compiled

if machine is in_python:
    warnings.warn(
        "screwdyn has no compiled kernels: the same formulas run as Python, hundreds of times slower. Install a C "
        "compiler (Debian: apt install gcc; macOS: xcode-select --install), then screwdyn again.",
        ScrewdynWarning,
        stacklevel=2,
    )

__all__ = ["Computation", "address", "addresses", "builtin_at", "machine", "method"]

Array = npt.NDArray[Any]
# ``int64 f(context, arrays)``.
Computation = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
# The address of an array's first entry.
address: Callable[[Array], int] = machine.address


def addresses(arrays: Sequence[Array]) -> Array:
    """The addresses of the first entries of some arrays, as arguments of a computation."""
    return np.array([*map(address, arrays), 0], dtype=np.int64)


def builtin_at(
    name: str,
    code: int,
    context: int,
    lengths: Sequence[int],
    shapes: Sequence[tuple[int, ...]],
    slow: Callable[..., Any],
    owner: Any,
) -> Any:
    """The built-in function of one state that calls code at an address.

    It computes f(q, …) and f(q, …, out=array) for contiguous, aligned float64 arrays of the right lengths, if ``out``
    is writeable and overlaps no other array. For any other call, and if the code does not return 0, it calls ``slow``.

    Parameters
    ----------
    name : str
    code, context : int
        Addresses.
    lengths : sequence of int
        Of the inputs.
    shapes : sequence of tuples
        Of the outputs; several outputs are returned, and given as ``out``, as a tuple.
    slow : callable
        The function for other arguments, whose signature, docstring and pickling are used.
    owner : object
        The owner of both addresses; the function holds a reference to it.
    """
    text = f"{_text(name, slow)}\0{name}"
    return machine.builtin_at(text, code, context, tuple(lengths), tuple(map(tuple, shapes)), slow, owner)


def method(owner: type[Any], k: int, slow: Callable[..., Any]) -> Any:
    """The method number k of the catalogue, for a class: it calls kernels itself, and ``slow`` for other arguments."""
    return machine.method(owner, k, _text(slow.__name__, slow).replace("(self", "($self", 1), slow)


def _text(name: str, function: Callable[..., Any]) -> str:
    """The signature and docstring of a function, as Python reads both from the docstring of a built-in function."""
    signature = inspect.signature(function)
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    known = signature.replace(parameters=bare, return_annotation=signature.empty)
    return f"{name}{known}\n--\n\n{function.__doc__ or ''}"
