"""A tree's functions for the tools that people already use: plain callables, JAX, CasADi.

Each is the tape played on what the tool computes with.
"""

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import sympy
from sympy.core.function import Application
from sympy.printing.numpy import NumPyPrinter

from screwdyn.backends.sympy.closed_form import Derivation, symbol
from screwdyn.backends.tape.trace import FUNCTIONS, Scalars
from screwdyn.core.errors import ScrewdynError, ShapeError

__all__ = ["Recording", "casadi_function", "jax_function", "lambdified"]

# Functions that are called the same and are the same for every tool; others share at most the name.
_ELEMENTARY = {
    *(sympy.sin, sympy.cos, sympy.tan, sympy.asin, sympy.acos, sympy.atan, sympy.atan2),
    *(sympy.sinh, sympy.cosh, sympy.tanh, sympy.exp, sympy.log, sympy.Abs, sympy.Piecewise),
}


class Recording(NamedTuple):
    """One function of a tree on a tape, with the names of what it takes."""

    derivation: Derivation
    function: str
    outputs: Scalars
    coordinates: Sequence[str]
    parameters: Sequence[sympy.Symbol]


def lambdified(recording: Recording, modules: Any) -> Callable[..., Any]:
    """See :meth:`screwdyn.symbolic.Symbolic.lambdify`."""
    derivation, function, outputs, coordinates, parameters = recording
    groups = [[symbol(group, x) for x in coordinates] for group in FUNCTIONS[function]]
    if parameters:
        groups.append(list(parameters))
    # Names of their own: a joint or a parameter may be called like a function of the module.
    safe = {x: sympy.Dummy() for group in groups for x in group}
    intermediates, (matrix,) = derivation.shared([outputs], safe)
    intermediates, matrix = [(x, e.xreplace(safe)) for x, e in intermediates], matrix.xreplace(safe)
    arguments = [[safe[x] for x in group] for group in groups]
    made: Callable[..., Any] = sympy.lambdify(arguments, matrix, modules, cse=lambda _: (intermediates, matrix))
    expected = _lengths(recording)

    @functools.wraps(made)
    def checked(*given: Any) -> Any:
        lengths = [_length(x) for x in given]
        if lengths != list(expected.values()):
            raise _misfit(recording, lengths)
        return made(*given)

    return checked


def jax_function(recording: Recording) -> Callable[..., Any]:
    """See :meth:`screwdyn.symbolic.Symbolic.jax`."""
    import jax.numpy as jnp

    tape, outputs = recording.derivation.tape, recording.outputs
    expected = [(length,) for length in _lengths(recording).values()]

    def made(*arguments: Any) -> Any:
        shapes = [(len(x),) if isinstance(x, list | tuple) else np.shape(x) for x in arguments]
        if shapes != expected:
            raise _misfit(recording, shapes, "; for batches use jax.vmap")
        entries = tape.evaluate(outputs.ravel().tolist(), _values(recording, arguments, jnp), jnp.sin, jnp.cos)
        return jnp.array(entries).reshape(outputs.shape)

    return made


def casadi_function(recording: Recording) -> Any:
    """See :meth:`screwdyn.symbolic.Symbolic.casadi`."""
    import casadi

    derivation, function, outputs, coordinates, parameters = recording
    arguments = {group: casadi.SX.sym(group, len(coordinates)) for group in FUNCTIONS[function]}
    if parameters:
        arguments["parameters"] = casadi.SX.sym("parameters", len(parameters))
    values = _values(recording, list(arguments.values()), casadi)
    # CasADi fills column after column.
    entries = derivation.tape.evaluate(outputs.T.ravel().tolist(), values, casadi.sin, casadi.cos)
    rows, *columns = outputs.shape
    result = casadi.reshape(casadi.vertcat(*entries), rows, *(columns or [1]))
    return casadi.Function(function, list(arguments.values()), [result], list(arguments), ["value"])


def _select(conditions: Sequence[Any], choices: Sequence[Any], default: float) -> Any:
    """``numpy.select`` by arithmetic, for the conditions of a ``Piecewise``: the last one is True."""
    value: Any = choices[-1]
    for condition, choice in zip(conditions[-2::-1], choices[-2::-1], strict=True):
        value = value + condition * (choice - value)
    return value


def _length(x: Any) -> Any:
    """How many entries a list, an array or a column has; what it is instead, if it is something else."""
    shape = getattr(x, "shape", None)
    if shape is None:
        return len(x) if isinstance(x, Sequence) else type(x).__name__
    return shape[0] if len(shape) == 1 or (isinstance(x, sympy.MatrixBase) and shape[1] == 1) else f"shape {shape}"


def _lengths(recording: Recording) -> dict[str, int]:
    """What a function takes, and how many entries of it."""
    lengths = dict.fromkeys(FUNCTIONS[recording.function], len(recording.coordinates))
    return lengths | ({"parameters": len(recording.parameters)} if recording.parameters else {})


def _misfit(recording: Recording, given: Sequence[Any], hint: str = "") -> ShapeError:
    wanted = ", ".join(f"{name} of {length}" for name, length in _lengths(recording).items())
    got = ", ".join(map(str, given)) or "nothing"
    return ShapeError(f"{recording.function} takes {wanted} entries; got {got}{hint}")


def _values(recording: Recording, arguments: Sequence[Any], module: Any) -> Mapping[Any, Any]:
    """What the inputs on the tape are in one call: entries of the arguments, and constants made of parameters."""
    derivation, function, outputs, coordinates, parameters = recording
    groups = FUNCTIONS[function]
    values = {(g, x): of[i] for g, of in zip(groups, arguments, strict=False) for i, x in enumerate(coordinates)}
    live = (derivation.tape.nodes[at] for at in derivation.tape.live(outputs.ravel().tolist()))
    constants = [node.a for node in live if node.op == "input" and node.a[0] == "symbol"]
    if constants:
        strange = {str(f.func) for _, e in constants for f in e.atoms(Application) if f.func not in _ELEMENTARY}
        if strange:
            name = module.__name__.split(".")[0]
            raise ScrewdynError(f"{', '.join(sorted(strange))} in a number of the robot cannot be handed to {name}")
        made = sympy.lambdify(
            parameters,
            [expression for _, expression in constants],
            [{"select": _select, "greater_equal": operator.ge}, vars(module), "math"],
            printer=NumPyPrinter({"fully_qualified_modules": False, "inline": True, "allow_unknown_functions": True}),
            dummify=True,
        )
        given = [arguments[-1][i] for i in range(len(parameters))]
        values |= zip(constants, made(*given), strict=True)
    return values
