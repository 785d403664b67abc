"""The C file with all kernels: ``python -m screwdyn.backends.kernels.written FILE``.

Every kernel of the catalogue, for any tree, from its Python source. Nothing in it depends on the machine.
"""

import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from screwdyn.backends.kernels import source
from screwdyn.backends.kernels.in_python import SCOPE, array, integers, play
from screwdyn.backends.kernels.source import COUPLED, KERNELS, STATE, Context, entry_of
from screwdyn.backends.kernels.translate import BUILTINS, Builtin, Translator, array_at, c_function, kernel_call
from screwdyn.physics import spatial
from screwdyn.physics.quantities import Dimension

__all__ = ["main", "text"]

_HEAD = """/* The kernels of screwdyn: rigid-body dynamics of any tree. Made from screwdyn/physics; do not edit.
 *
 * C99, no heap, no global that changes. Operations have the order of the Python source: without fused products
 * (-ffp-contract=off) both give the same bits. */
#include "screwdyn.h"
#include <math.h>
#include <stdbool.h>

typedef screwdyn_real real;
typedef screwdyn_integer integer;
typedef const integer *words;
#ifndef SCREWDYN_API
#define SCREWDYN_API
#endif
#define R(x) ((real)(x))
#ifdef __cplusplus
#define MAKE(T) T
#else
#define MAKE(T) (T)
#endif
#ifdef _MSC_VER
#define ALWAYS __forceinline
#else
#define ALWAYS inline __attribute__((always_inline))
#endif

static ALWAYS real sine(real x) { return sizeof x == sizeof(float) ? (real)sinf((float)x) : (real)sin((double)x); }
static ALWAYS real cosine(real x) { return sizeof x == sizeof(float) ? (real)cosf((float)x) : (real)cos((double)x); }
static ALWAYS real root(real x) { return sizeof x == sizeof(float) ? (real)sqrtf((float)x) : (real)sqrt((double)x); }
static ALWAYS real absolute(real x) { return x < R(0.0) ? -x : x; }
static ALWAYS real greater(real a, real b) { return b > a ? b : a; }
"""
_CONSTANTS = {
    "LARGEST": ("SCREWDYN_LARGEST", "real"),
    "LARGEST_FINITE": ("SCREWDYN_LARGEST_FINITE", "real"),
    "ROUNDING": ("SCREWDYN_ROUNDING", "real"),
    "PICOMETRE_SQUARED": ("SCREWDYN_LEAST_GYRATION", "real"),
    "REAL": ("((integer)sizeof(real))", "integer"),
    "INTEGER": ("((integer)sizeof(integer))", "integer"),
}
# The places in a context from which shapes are read.
_PLACES = {
    d: Context._fields.index(field)
    for d, field in {"v": "rows", "q": "positions", "L": "links", "k": "path", "p": "above", "n": "rows"}.items()
}


def _sincos(x: float) -> tuple[float, float]:
    """The sine and cosine of an angle, which is 0 in rows of group joints."""
    if x == 0.0:
        return x, 1.0
    return math.sin(x), math.cos(x)


_sincos.__module__ = "written"  # part of its name in C, also if this module is run


def _known() -> Mapping[Any, Builtin]:
    """What takes the place of functions that the dialect does not know."""
    known = {
        spatial.sincos: lambda body, nodes: (
            f"{body.to.function(_sincos, ('real',))[0]}({body.of(nodes[0])[0]})",
            body.to.function(_sincos, ("real",))[1],
        ),
        spatial.exceeds: c_function("({0} > {1})", "bool"),
        spatial.square_root: c_function("root({0})", "real"),
        array: array_at("real"),
        integers: array_at("integer"),
        SCOPE["address_of"]: c_function("(integer){0}.data", "integer"),
    }
    runs = {
        SCOPE[f"run_{name}"]: kernel_call(f"screwdyn_run_{name}") for name in KERNELS if not name.startswith(COUPLED)
    }
    return {**BUILTINS, **known, **runs}


def _shape(dimensions: Sequence[Dimension]) -> str:
    """An extent, or the complement of its place in the context, for each axis."""
    values = [~_PLACES[d] if isinstance(d, str) else d for d in dimensions]
    return f"{{{len(values)}, {{{', '.join(map(str, values)) or 0}}}}}"


def text() -> str:
    """The C file.

    Raises
    ------
    DialectError
        If a recursion, or a function that it calls, is not in the dialect; the message names the line.
    """
    to = Translator(_known(), _CONSTANTS)
    rows = []
    for name in KERNELS:
        entry, scope = entry_of(name), {"__name__": "kernels", **SCOPE, **source.functions(name)}
        for prefix, given, code in (
            ("screwdyn_run_", ("words", "words", "integer"), source.kernel_text(name)),
            ("screwdyn_scratch_", ("words",), source.scratch_text(name)),
        ):
            made = dict(scope)
            exec(code, made)
            to.function(made[code[4 : code.index("(")]], given, prefix + name, code)
        inputs, outputs = (
            [_shape(d) for d in x] for x in ([STATE[x] for x in entry.arguments], [r.shape for r in entry.given])
        )
        numbers = f"{len(inputs)}, {len(outputs)}, {{{', '.join(inputs)}}}, {{{', '.join(outputs)}}}"
        rows.append(f'    {{"{name}", screwdyn_run_{name}, screwdyn_scratch_{name}, {numbers}}},')
    to.function(play, ("words", "words", "integer"), "screwdyn_play")
    rows.append('    {"play", screwdyn_play, 0, 0, 0, {{0, {0}}}, {{0, {0}}}},')
    last = "    {0, 0, 0, 0, 0, {{0, {0}}}, {{0, {0}}}},"
    table = "\n".join(["const struct screwdyn_kernel screwdyn_kernels[] = {", *rows, last, "};"])
    return "\n".join([_HEAD, to.text(), "", table, ""])


def main(arguments: Sequence[str]) -> None:
    """Write the C file to a path."""
    Path(arguments[0]).write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
