"""Compilation of the physics by numba: registration of its functions, access to memory, and the cache folder."""

import functools
import gc
import math
import sys
from collections.abc import Callable
from inspect import isfunction
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic, overload, register_jitable

from screwdyn.backends.cache_folder import kernel_folder, user_folder
from screwdyn.physics import charts, couplings, frames, internal, link_steps, quantities, row_steps, spatial, table
from screwdyn.physics.quantities import LARGEST
from screwdyn.physics.recursions import (
    constrained,
    contributions,
    coupled,
    joint_space,
    links,
    loops,
    operational,
    whole_tree,
)
from screwdyn.screws import rotations

__all__ = ["compiled", "finite", "run"]

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
    contributions,
    operational,
    loops,
    coupled,
    constrained,
)
config: Any = numba.config
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
def _cache_folder() -> str:
    """A folder named after all source of the kernels, because numba does not notice an edited link step."""
    files = [
        *(Path(str(module.__file__)) for module in (*PHYSICS, internal, quantities)),
        *sorted(Path(__file__).parent.glob("*.py")),
    ]
    return str(kernel_folder(user_folder(), b"".join(file.read_bytes() for file in files)))


def compiled(function: Callable[..., int]) -> Any:
    """A kernel as machine code at ``.address``, compiled or loaded from disk; stderr announces compilation."""
    folder, previous, name = _cache_folder(), config.CACHE_DIR, function.__name__
    if not any(Path(folder).glob(f"*/*.{name}-*.nbi")):
        print(f"screwdyn: compiling {name} for this machine (once; kept in {folder})", file=sys.stderr, flush=True)
    # numba reads the name of the folder only when the function is decorated.
    config.CACHE_DIR = folder
    # Walks through all objects of the compiler would take a tenth of the time.
    collected = gc.isenabled()
    gc.disable()
    try:
        # A kernel must not raise errors, because its caller cannot receive them.
        return numba.cfunc(types.int64(_ADDRESSES, _ADDRESSES), cache=True, error_model="numpy", fastmath={"contract"})(
            function
        )
    finally:
        config.CACHE_DIR = previous
        if collected:
            gc.enable()


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
def finite(x: Array) -> bool:
    """Whether all numbers are finite and so small that M does not overflow."""
    fits = True
    for k in range(x.shape[0]):
        fits = fits and abs(x[k]) <= LARGEST
    return fits
