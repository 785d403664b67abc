"""What numba must know to compile the physics: its functions, scratch space, and checks of the input."""

import functools
import math
import os
import sys
from collections.abc import Callable, Sequence
from inspect import isfunction
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic, overload, register_jitable

from screwdyn.backends import platform_layout
from screwdyn.backends.numba.cache_folder import cache_folder
from screwdyn.physics import charts, frames, link_steps, quantities, spatial, table
from screwdyn.physics.recursions import contributions, joint_space, links, operational, whole_tree
from screwdyn.screws import rotations

__all__ = ["REFUSALS", "SMALL", "compiled", "fits", "stack"]

# What the compiler raises, before anything is computed, for arguments of types that a kernel is not made for.
REFUSALS = (TypeError, ValueError, numba.core.errors.NumbaError)
# Up to so many rows, scratch space lies on the stack.
SMALL = 48
RECURSIONS: tuple[ModuleType, ...] = (joint_space, links, whole_tree, contributions, operational)
PHYSICS: tuple[ModuleType, ...] = (rotations, spatial, frames, link_steps, table, charts, *RECURSIONS)
config: Any = numba.config
Array = Any


@overload(spatial.sincos, strict=False)
def _sincos(x: Any) -> Any:
    return lambda x: (math.sin(x), math.cos(x))


@overload(spatial.exceeds, strict=False)
def _exceeds(x: Any, least: Any) -> Any:
    return lambda x, least: x > least


def _register() -> None:
    """Let kernels call the functions of the physics, which know no compiler.

    Recursions are inlined: to pass the ten arrays of a workspace costs a third of inverse dynamics.
    """
    for module in PHYSICS:
        for function in vars(module).values():
            own = isfunction(function) and function.__module__ == module.__name__
            if own and function not in (spatial.sincos, spatial.exceeds, frames.frame_code):
                register_jitable(forceinline=module in RECURSIONS)(function)


_register()


@functools.cache
def _cache_folder() -> str:
    """A folder named after all text that kernels are made of: numba itself would not notice an edited step."""
    files = [
        *(Path(str(module.__file__)) for module in (*PHYSICS, quantities, platform_layout)),
        *sorted(Path(__file__).parent.glob("*.py")),
    ]
    text = b"".join(file.read_bytes() for file in files) + bytes([platform_layout.understood()])
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return str(cache_folder(config.CACHE_DIR or home, text))


def compiled(function: Callable[..., int], arguments: Sequence[Any]) -> Callable[..., int]:
    """A function compiled for these types of arguments, or loaded from disk; a line on stderr says if it takes time."""
    folder, previous, name = _cache_folder(), config.CACHE_DIR, function.__name__
    if not any(Path(folder).glob(f"*/*.{name}-*.nbi")):
        print(f"screwdyn: compiling {name} for this machine (once; kept in {folder})", file=sys.stderr, flush=True)
    # numba reads the folder when the function is decorated, and only there.
    config.CACHE_DIR = folder
    try:
        result: Callable[..., int] = numba.njit(numba.int64(*arguments), cache=True, fastmath={"contract"})(function)
    finally:
        config.CACHE_DIR = previous
    return result if platform_layout.understood() else _checked(result)


def _checked(kernel: Callable[..., int]) -> Callable[..., int]:
    """A kernel that refuses arrays of another byte order, which on this platform only Python can see."""

    @functools.wraps(kernel)
    def checked(*arguments: Any) -> int:
        if not all(x.dtype.isnative for x in arguments if isinstance(x, np.ndarray)):
            raise TypeError("an array has not this machine's byte order")
        return kernel(*arguments)

    return checked


def stack(width: int) -> Any:
    """A function of kernels that gives the address of SMALL x width numbers on the stack.

    They cost no allocation and last until the function in which it is called returns: that must be the kernel itself.
    """

    def typed(context: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return cgutils.alloca_once(builder, context.get_value_type(types.float64), SMALL * width)

        return types.CPointer(types.float64)(), generate

    return intrinsic(typed)


def _own_byte_order(context: Any, x: Any) -> Any:
    """Whether an array from Python has this machine's byte order.

    numba takes a swapped one for a native one if it has met an unaligned one before, so NumPy's own record is read.
    Where the layout of NumPy's objects is unknown, ``_checked`` has looked before.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if not platform_layout.understood():
            return cgutils.true_bit
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        descriptor = cgutils.pointer_add(
            builder, array.parent, platform_layout.DESCRIPTOR, cgutils.voidptr_t.as_pointer()
        )
        order = cgutils.pointer_add(builder, builder.load(descriptor), platform_layout.BYTE_ORDER, cgutils.voidptr_t)
        return builder.icmp_unsigned("==", builder.load(order), cgutils.int8_t(ord("=")))

    return types.boolean(x), generate


own_byte_order: Any = intrinsic(_own_byte_order)


@register_jitable
def fits(x: Array, count: int) -> bool:
    """Whether x has as many entries as it should, in this machine's byte order and none so large that M overflows."""
    if x.size != count or not own_byte_order(x):
        return False
    zero = 0.0
    for k in range(count):
        square = x[k] * x[k]
        zero += 0.0 * (square * square * x[k])  # NaN unless finite
    return zero == 0.0
