"""The sweeps compiled by numba, over any number of states: one compilation serves every tree.

Each kernel takes the table of a model and flat, contiguous float64 arrays (state after state), checks that they are
finite and fit together, and fills its last arguments. It returns 0, or ``WRONG_INPUT`` if it has computed nothing,
or 1 + the row of a joint that carries no inertia. A kernel is compiled when it is first called and kept on disk.
"""

import ctypes
import functools
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic, register_jitable
from numba.np.numpy_support import carray

from screwdyn.backends.numba.cache_folder import cache_folder
from screwdyn.physics import link_steps as steps
from screwdyn.physics import recursions as sweeps
from screwdyn.physics import table as rows
from screwdyn.physics import vectors

WRONG_INPUT = -1
# What the compiler raises, before anything is computed, for arguments of types that a kernel is not made for.
REFUSALS = (TypeError, ValueError, numba.core.errors.NumbaError)
config: Any = numba.config
WORK = rows.WORK
# What ``play`` knows, by number.
OPERATIONS = ("+", "-", "*", "/", "sin", "cos")
# Up to so many rows, scratch space lies on the stack.
SMALL = 48
Array = Any

_flat, _table = numba.float64[::1], numba.float64[:, ::1]


@functools.cache
def _cache_folder() -> str:
    """A folder named after the text of the physics: numba itself would not notice an edited step."""
    text = b"".join(Path(str(m.__file__)).read_bytes() for m in (vectors, steps, rows, sweeps))
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return str(cache_folder(config.CACHE_DIR or home, text))


def kernel(*arguments: Any) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Compile a function for these types, or load it from disk, when it is first called; then put it in its place."""

    def waiting(function: Callable[..., int]) -> Callable[..., int]:
        name = function.__name__

        @functools.wraps(function)
        def first_call(*values: Any) -> int:
            folder, previous = _cache_folder(), config.CACHE_DIR
            if not any(Path(folder).glob(f"*/*.{name}-*.nbi")):
                print(
                    f"screwdyn: compiling {name} for this machine (once; kept in {folder})",
                    file=sys.stderr,
                    flush=True,
                )
            # numba reads the folder when the function is decorated, and only there.
            config.CACHE_DIR = folder
            try:
                compiled = numba.njit(numba.int64(*arguments), cache=True, fastmath={"contract"})(function)
            finally:
                config.CACHE_DIR = previous
            globals()[name] = compiled
            status: int = compiled(*values)
            return status

        return first_call

    return waiting


def _on_stack(context: Any) -> Any:
    """SMALL x WORK numbers on the stack, which cost no allocation and last until the kernel returns."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return cgutils.alloca_once(builder, context.get_value_type(types.float64), SMALL * WORK)

    return types.CPointer(types.float64)(), generate


stack: Any = intrinsic(_on_stack)


@register_jitable(inline="always")
def scratch(n: int) -> Array:
    """Scratch space for n rows. Inlined, because the stack that it may lie on must be the kernel's own."""
    return carray(stack(), (SMALL, WORK)) if n <= SMALL else np.empty((n, WORK))


def _own_byte_order(context: Any, x: Any) -> Any:
    """Whether an array from Python has this machine's byte order.

    numba takes a swapped one for a native one if it has met an unaligned one before, so NumPy's own record is read:
    the array's descriptor stands at byte 56 of the array, and in it at byte 26 the character of its byte order.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if ctypes.c_void_p.from_address(id(_SAMPLE) + _DESCRIPTOR).value != id(_SAMPLE.dtype):
            return cgutils.true_bit  # an interpreter that lays out its objects in another way
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        descriptor = cgutils.pointer_add(builder, array.parent, _DESCRIPTOR, cgutils.voidptr_t.as_pointer())
        order = cgutils.pointer_add(builder, builder.load(descriptor), _BYTE_ORDER, cgutils.voidptr_t)
        return builder.icmp_unsigned("==", builder.load(order), cgutils.int8_t(ord("=")))

    return types.boolean(x), generate


_DESCRIPTOR, _BYTE_ORDER, _SAMPLE = 56, 26, np.zeros(1)
own_byte_order: Any = intrinsic(_own_byte_order)


@register_jitable
def fits(x: Array, count: int) -> bool:
    """Whether x has as many entries as it should, all of them finite and in this machine's byte order."""
    if x.size != count or not own_byte_order(x):
        return False
    zero = 0.0
    for k in range(count):
        zero += 0.0 * x[k]  # NaN unless finite
    return zero == 0.0


@kernel(_table, _flat, _flat, _flat, _flat)
def inverse_dynamics(table: Array, q: Array, qd: Array, qdd: Array, tau: Array) -> int:
    """Torques of every state, into tau."""
    n, count = max(table.shape[0] - 1, 1), tau.size
    if not (fits(q, count) and fits(qd, count) and fits(qdd, count)):
        return WRONG_INPUT
    work = scratch(n)
    for s in range(0, count, n):
        sweeps.inverse_dynamics(table, q, qd, qdd, s, work, tau)
    return 0


@kernel(_table, _flat, _flat)
def gravity_vector(table: Array, q: Array, tau: Array) -> int:
    """Torques against gravity, into tau."""
    n, count = max(table.shape[0] - 1, 1), tau.size
    if not fits(q, count):
        return WRONG_INPUT
    work = scratch(n)
    for s in range(0, count, n):
        sweeps.gravity_vector(table, q, s, work, tau)
    return 0


@kernel(_table, _flat, _table)
def mass_matrix(table: Array, q: Array, M: Array) -> int:
    """Mass matrices one below the other, into M."""
    n, count = max(table.shape[0] - 1, 1), M.shape[0]
    if not fits(q, count):
        return WRONG_INPUT
    work = scratch(n)
    for s in range(0, count, n):
        sweeps.mass_matrix(table, q, s, work, M)
    return 0


@kernel(_table, _flat, _flat, _table, _table)
def coriolis_matrix(table: Array, q: Array, qd: Array, M: Array, C: Array) -> int:
    """Mass and Coriolis matrices one below the other, into M and C."""
    n, count = max(table.shape[0] - 1, 1), M.shape[0]
    if not (fits(q, count) and fits(qd, count)):
        return WRONG_INPUT
    work = scratch(n)
    for s in range(0, count, n):
        sweeps.coriolis_matrix(table, q, qd, s, work, M, C)
    return 0


@kernel(_table, _flat, _flat, _flat, _flat)
def forward_dynamics(table: Array, q: Array, qd: Array, tau: Array, qdd: Array) -> int:
    """Accelerations, into qdd."""
    n, count = max(table.shape[0] - 1, 1), qdd.size
    if not (fits(q, count) and fits(qd, count) and fits(tau, count)):
        return WRONG_INPUT
    work = scratch(n)
    for s in range(0, count, n):
        massless = sweeps.forward_dynamics(table, q, qd, tau, s, work, qdd)
        if massless >= 0:
            return massless + 1
    return 0


@kernel(_table, _flat, _flat, _table, _table)
def motion(table: Array, q: Array, qd: Array, pose: Array, twist: Array) -> int:
    """Poses and twists of all rows, into pose and twist."""
    n, count = max(table.shape[0] - 1, 1), pose.shape[0]
    if not (fits(q, count) and fits(qd, count)):
        return WRONG_INPUT
    work = scratch(n)
    for s in range(0, count, n):
        sweeps.motion(table, q, qd, s, work, pose, twist)
    return 0


@kernel(_table, _flat, _flat, numba.int64, _table, _table)
def jacobian(table: Array, q: Array, qd: Array, row: int, J: Array, J_dot: Array) -> int:
    """A row's Jacobian, transposed, and its rate, into J and J_dot."""
    n, count = max(table.shape[0] - 1, 1), J.shape[0]
    if not (fits(q, count) and fits(qd, count)):
        return WRONG_INPUT
    work = scratch(n)
    for s in range(0, count, n):
        sweeps.jacobian(table, q, qd, row, s, work, J, J_dot)
    return 0


@kernel(numba.int64[:, ::1], _table)
def play(code: Array, results: Array) -> int:
    """Operations on rows of results, one after the other: which of ``OPERATIONS``, the result's row, the operands'."""
    for i in range(code.shape[0]):
        op, at, a, b = code[i, 0], code[i, 1], code[i, 2], code[i, 3]
        for s in range(results.shape[1]):
            x, y = results[a, s], results[b, s]
            if op == 0:
                results[at, s] = x + y
            elif op == 1:
                results[at, s] = x - y
            elif op == 2:
                results[at, s] = x * y
            elif op == 3:
                results[at, s] = x / y
            elif op == 4:
                results[at, s] = math.sin(x)
            else:
                results[at, s] = math.cos(x)
    return 0


@kernel(_table, _flat, _table, _flat)
def wrench_torque(table: Array, q: Array, wrenches: Array, tau: Array) -> int:
    """Torques that wrenches on the rows amount to, into tau."""
    n, count = max(table.shape[0] - 1, 1), tau.size
    if not fits(q, count):
        return WRONG_INPUT
    work = scratch(n)
    for s in range(0, count, n):
        sweeps.wrench_torque(table, q, wrenches, s, work, tau)
    return 0
