"""Compilation of the physics by numba: registration of its functions, access to memory, and kernels on disk."""

import functools
import gc
import hashlib
import math
import os
import pickle
from collections.abc import Callable
from inspect import isfunction
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
from llvmlite import ir
from numba.core import types
from numba.core.caching import NullCache
from numba.core.ccallback import CFunc
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps
from numba.extending import intrinsic, overload, register_jitable

from screwdyn.backends.cache_folder import announce
from screwdyn.backends.native import disk
from screwdyn.physics import charts, couplings, frames, internal, link_steps, quantities, row_steps, spatial, table
from screwdyn.physics.recursions import (
    constrained,
    contributions,
    coupled,
    energies,
    joint_space,
    links,
    loops,
    operational,
    whole_tree,
)
from screwdyn.screws import rotations

__all__ = ["bounded", "compiled", "run"]

PHYSICS: tuple[ModuleType, ...] = (
    rotations,
    spatial,
    frames,
    link_steps,
    table,
    row_steps,
    charts,
    couplings,
    joint_space,
    links,
    whole_tree,
    energies,
    contributions,
    operational,
    loops,
    coupled,
    constrained,
)
Array = Any
# The arguments of a kernel are the address of its context and that of the addresses of its arrays; see
# ``backends.native.entry``.
_ADDRESSES = types.CPointer(types.int64)


@overload(spatial.sincos, strict=False)
def _sincos(x: Any) -> Any:
    def of_angle(x: Any) -> Any:
        if x == 0.0:  # in rows of group joints
            return x, 1.0
        return math.sin(x), math.cos(x)

    return of_angle


@overload(spatial.exceeds, strict=False)
def _exceeds(x: Any, least: Any) -> Any:
    return lambda x, least: x > least


def _register() -> None:
    """Make the functions of the physics callable from kernels.

    All are inlined: passing the ten arrays of a workspace would take a third of the time of inverse dynamics, and numba
    compiles a function anew for callers with other options.
    """
    for module in PHYSICS:
        for function in vars(module).values():
            own = isfunction(function) and function.__module__ == module.__name__
            if own and function not in (spatial.sincos, spatial.exceeds, frames.frame_code):
                register_jitable(forceinline=True, no_cfunc_wrapper=True)(function)


_register()


@functools.cache
def _source() -> str:
    """A digest of all source of the kernels."""
    physics = (str(module.__file__) for module in (*PHYSICS, internal, quantities))
    return disk.digest_of([*physics, *sorted(Path(__file__).parent.glob("*.py"))])


class _OnDisk(NullCache):
    """A kernel on disk, for numba, whose own files have no digests and which fails on a full disk."""

    def __init__(self, function: Callable[..., int]) -> None:
        self._function = function

    def _key(self, codegen: Any) -> str:
        function = self._function.__name__, self._function.__code__.co_code
        made_from = _source(), numba.__version__, disk.PYTHON, codegen.magic_tuple(), function
        return hashlib.sha256(repr(made_from).encode()).hexdigest()

    def load_overload(self, signature: Any, target: Any) -> Any:
        """The compiled kernel; None if it is not on disk, so that numba compiles it, which stderr announces."""
        target.refresh()
        content = disk.read(self._key(target.codegen()))
        if content is not None:
            try:
                return CompileResult._rebuild(target, *pickle.loads(content))
            except Exception:  # whatever it is, the kernel is compiled anew
                pass
        folder = disk.folder()
        kept = folder is not None and os.access(folder, os.W_OK)
        name, where = self._function.__name__, f"once; kept in {folder}" if kept else "not kept on disk"
        announce(f"compiling {name} for this machine ({where})")
        return None

    def save_overload(self, signature: Any, made: Any) -> None:
        """Keep a compiled kernel, unless it contains addresses of this process."""
        if not made.library.has_dynamic_globals:
            disk.write(self._key(made.codegen), dumps(made._reduce()))


def compiled(function: Callable[..., int]) -> Any:
    """A kernel as machine code at ``.address``, compiled or loaded from disk; stderr announces compilation."""
    # A kernel must not raise errors, because its caller cannot receive them.
    options = {"error_model": "numpy", "fastmath": {"contract"}}
    kernel: Any = CFunc(function, ((_ADDRESSES, _ADDRESSES), types.int64), {}, options)
    kernel._cache = _OnDisk(function)
    # Walks through all objects of the compiler would take a tenth of the time.
    collected = gc.isenabled()
    gc.disable()
    try:
        kernel.compile()
    finally:
        if collected:
            gc.enable()
    return kernel


@intrinsic
def run(context: Any, kernel: Any, of: Any, arrays: Any) -> Any:
    """Call the kernel at an address with the addresses of its context and of its arrays; returns its status."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number, pointer = context.get_value_type(types.int64), context.get_value_type(_ADDRESSES)
        function, *given = arguments
        kind = ir.FunctionType(number, [pointer, pointer])
        given = [builder.inttoptr(x, pointer) for x in given]
        return builder.call(builder.inttoptr(function, kind.as_pointer()), given)

    return types.int64(types.int64, types.int64, types.int64), generate


@register_jitable
def bounded(x: Array, largest: float) -> bool:
    """Whether no number is NaN or larger than a bound."""
    fits = True
    for k in range(x.shape[0]):
        fits = fits and abs(x[k]) <= largest
    return fits
