"""Quantities of a tree as functions for ``sympy.lambdify``, JAX and CasADi.

For JAX and CasADi, the tape is evaluated on the arrays or symbols of these tools.
"""

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import sympy
from sympy.core.function import Application
from sympy.printing.numpy import NumPyPrinter

from screwdyn.backends.sympy.closed_form import Derivation, rows_and_columns, symbol
from screwdyn.backends.tape.trace import Scalars
from screwdyn.core.errors import ScrewdynError, ShapeError
from screwdyn.mechanism.chart import ConfigurationSpace

__all__ = ["Recording", "casadi_function", "jax_function", "lambdified"]

# Functions with the same name and meaning in all tools.
_ELEMENTARY = {
    *(sympy.sin, sympy.cos, sympy.tan, sympy.asin, sympy.acos, sympy.atan, sympy.atan2),
    *(sympy.sinh, sympy.cosh, sympy.tanh, sympy.exp, sympy.log, sympy.Abs, sympy.Piecewise),
}


class Recording(NamedTuple):
    """Results on a tape from which one function is made.

    Attributes
    ----------
    derivation : Derivation
    function : str
        Name of the function, for messages.
    outputs : sequence of arrays of scalars
        The results; a function with one result returns an array, one with several a tuple.
    arguments : mapping from "q", "qd", "qdd", "tau" to names
        The arguments in order: q has an entry for each position, the others have one for each freedom.
    parameters : sequence of Symbol
        Symbols whose values are the last argument, if there are any.
    configurations : ConfigurationSpace
        Of the positions.
    """

    derivation: Derivation
    function: str
    outputs: Sequence[Scalars]
    arguments: Mapping[str, Sequence[str]]
    parameters: Sequence[sympy.Symbol]
    configurations: ConfigurationSpace

    @property
    def scalars(self) -> list[Any]:
        """All entries of the results, row by row."""
        return [x for part in self.outputs for x in part.ravel().tolist()]

    def batch(self, given: Sequence[Any]) -> tuple[int, ...]:
        """The batch axes of some arguments.

        Raises
        ------
        ShapeError
            If their number or the length of a last axis is wrong, or batch axes cannot be broadcast.
        """
        lengths = {name: len(names) for name, names in self.arguments.items()}
        if self.parameters:
            lengths["parameters"] = len(self.parameters)
        shapes = [_shape(x) for x in given]
        try:
            if [shape[-1] for shape in shapes] == list(lengths.values()):
                return np.broadcast_shapes(*(shape[:-1] for shape in shapes))
        except (IndexError, TypeError, ValueError):
            pass
        wanted = ", ".join(f"{name} of {length}" for name, length in lengths.items())
        got = ", ".join(str(shape[0] if len(shape) == 1 else f"shape {shape}") for shape in shapes) or "nothing"
        raise ShapeError(f"{self.function} takes {wanted} entries, with batch axes before them; got {got}")

    def check(self, q: Any) -> None:
        """Check that all quaternions have length 1, if q contains numbers.

        Raises
        ------
        ShapeError
            If one has not; the message names the joint and the length.
        """
        try:
            numbers = np.asarray(_entries(q), dtype=np.float64)
        except (TypeError, ValueError):  # symbols, or values that are traced
            return
        self.configurations.check("q", numbers)

    def split(self, entries: Sequence[Any], batch: tuple[int, ...], module: Any) -> Any:
        """The results as arrays with the batch axes first, from all entries as numbers or arrays over the batch."""
        results, first = [], 0
        for part in self.outputs:
            own = [module.broadcast_to(module.asarray(x), batch) for x in entries[first : first + part.size]]
            first += part.size
            stacked = module.stack(own) if own else module.zeros((0, *batch))
            whole = stacked.reshape((*part.shape, *batch))
            axes = range(part.ndim)
            results.append(module.moveaxis(whole, axes, [len(batch) + axis for axis in axes]))
        return results[0] if len(results) == 1 else tuple(results)


def lambdified(recording: Recording, modules: Any) -> Callable[..., Any]:
    """See :meth:`screwdyn.forms.symbolic.Symbolic.lambdify`."""
    groups = [[symbol(group, x) for x in names] for group, names in recording.arguments.items()]
    if recording.parameters:
        groups.append(list(recording.parameters))
    # Dummy symbols, because a joint or a parameter may have the name of a function of the module.
    safe = {x: sympy.Dummy() for group in groups for x in group}
    intermediates, matrices = recording.derivation.shared(recording.outputs, safe)
    intermediates = [(x, e.xreplace(safe)) for x, e in intermediates]
    entries = [x for matrix in matrices for x in matrix.xreplace(safe)]
    arguments = [[safe[x] for x in group] for group in groups]
    made: Callable[..., Any] = sympy.lambdify(arguments, entries, modules, cse=lambda _: (intermediates, entries))

    @functools.wraps(made)
    def checked(*given: Any) -> Any:
        batch = recording.batch(given)
        recording.check(given[0])
        # One array for each coordinate, over the batch.
        rows = [np.ascontiguousarray(np.moveaxis(np.asarray(x), -1, 0)) if batch else _entries(x) for x in given]
        return recording.split(made(*rows), batch, np)

    return checked


def jax_function(recording: Recording) -> Callable[..., Any]:
    """See :meth:`screwdyn.forms.symbolic.Symbolic.jax`."""
    import jax.numpy as jnp

    def made(*arguments: Any) -> Any:
        batch = recording.batch(arguments)
        # With the states in the last axis, vector instructions process several states at once.
        rows = [jnp.moveaxis(jnp.asarray(x), -1, 0) for x in arguments]
        values = _values(recording, rows, jnp)
        entries = recording.derivation.tape.evaluate(recording.scalars, values, jnp.sin, jnp.cos)
        return recording.split(entries, batch, jnp)

    return made


def casadi_function(recording: Recording) -> Any:
    """See :meth:`screwdyn.forms.symbolic.Symbolic.casadi`."""
    import casadi

    arguments = {group: casadi.SX.sym(group, len(names)) for group, names in recording.arguments.items()}
    if recording.parameters:
        arguments["parameters"] = casadi.SX.sym("parameters", len(recording.parameters))
    values = _values(recording, list(arguments.values()), casadi)
    results = []
    for part in recording.outputs:
        # CasADi stores matrices column by column.
        rows, columns = rows_and_columns(part.shape)
        by_columns = part.reshape(rows, columns).T.ravel().tolist()
        entries = recording.derivation.tape.evaluate(by_columns, values, casadi.sin, casadi.cos)
        results.append(casadi.reshape(casadi.vertcat(*entries), rows, columns))
    names = ["value"] if len(results) == 1 else [f"value{i}" for i in range(len(results))]
    return casadi.Function(recording.function, list(arguments.values()), results, list(arguments), names)


def _select(conditions: Sequence[Any], choices: Sequence[Any], default: float) -> Any:
    """``numpy.select`` by arithmetic, for the conditions of a ``Piecewise``, of which the last is True."""
    value: Any = choices[-1]
    for condition, choice in zip(conditions[-2::-1], choices[-2::-1], strict=True):
        value = value + condition * (choice - value)
    return value


def _entries(x: Any) -> Any:
    """The entries of a SymPy matrix as a list; a list or array unchanged."""
    return list(x) if isinstance(x, sympy.MatrixBase) else x


def _shape(x: Any) -> tuple[Any, ...]:
    """Shape of an array, a list or a SymPy column; () for other objects."""
    if isinstance(x, sympy.MatrixBase):
        return (x.rows,) if x.cols == 1 else x.shape
    if not isinstance(x, Sequence) or isinstance(x, str):
        return tuple(getattr(x, "shape", ()))
    # Entry by entry, because NumPy does not know the shape of traced values.
    shapes = {_shape(entry) for entry in x}
    if len(shapes) > 1:
        return ()
    return (len(x), *(shapes.pop() if shapes else ()))


def _values(recording: Recording, arguments: Sequence[Any], module: Any) -> Mapping[Any, Any]:
    """Values of the tape's inputs: entries of the arguments, and constants computed from the parameters."""
    tape, parameters = recording.derivation.tape, recording.parameters
    groups = zip(recording.arguments.items(), arguments, strict=False)
    values = {(group, x): given[i] for (group, names), given in groups for i, x in enumerate(names)}
    live = (tape.nodes[at] for at in tape.live(recording.scalars))
    constants = [node.a for node in live if node.op == "input" and node.a[0] == "symbol"]
    if constants:
        strange = {str(f.func) for _, e in constants for f in e.atoms(Application) if f.func not in _ELEMENTARY}
        if strange:
            name = module.__name__.split(".")[0]
            raise ScrewdynError(f"{', '.join(sorted(strange))} in a number of the robot cannot be used in {name}")
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
