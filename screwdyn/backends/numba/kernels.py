"""The default back-end: every quantity of the catalogue as a kernel that serves any tree.

A kernel takes the table of a model (for trees with group joints the three arrays of its charts first), then contiguous
float64 arrays, state after state, and fills its last arguments. It checks that the arrays are finite and fit together
and returns 0; ``WRONG_INPUT`` if it has computed nothing; or the recursion's own status. Plan: the text of the kernel
is made from the entry. Emit: numba compiles it when it is first called and keeps it on disk. Call: :class:`Kernels`.
"""

import functools
import math
from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any

import numba
import numpy as np
from numba.np.numpy_support import carray

from screwdyn.backends.numba.jit import REFUSALS, SMALL, compiled, fits, stack
from screwdyn.physics import charts
from screwdyn.physics.contribution import Contribution
from screwdyn.physics.frames import COM, frame_code
from screwdyn.physics.model import Model
from screwdyn.physics.quantities import CATALOGUE, INTERNAL, Dimension, Quantity, Result
from screwdyn.physics.recursions import joint_space
from screwdyn.physics.table import WIDTHS, Workspace

__all__ = ["OPERATIONS", "REFUSALS", "WRONG_INPUT", "Kernels", "play"]

WRONG_INPUT = -1
# What ``play`` knows, by number.
OPERATIONS = ("+", "-", "*", "/", "sin", "cos")
Array = Any

_flat, _table, _integers = numba.float64[::1], numba.float64[:, ::1], numba.int64[::1]
_GLOBALS: dict[str, Any] = {
    "WRONG_INPUT": WRONG_INPUT,
    "Workspace": Workspace,
    "add_rate": charts.add_rate,
    "drift": charts.drift,
    "empty": np.empty,
    "fits": fits,
    "number_of_positions": charts.number_of_positions,
    "recentre": charts.recentre,
    "subtract_drift": charts.subtract_drift,
    "unit_quaternions": charts.unit_quaternions,
    "zeros": np.zeros,
    "SMALL": SMALL,
    "carray": carray,
    **{f"stack{width}": stack(width) for width in set(WIDTHS)},
}
_SIZES = {"v": "n", "q": "nq", "L": "places.shape[0]", "6v": "6 * n", "vv": "n * n"}


def _size(dimension: Dimension) -> str:
    return _SIZES[dimension] if isinstance(dimension, str) else str(dimension)


def _out(result: Result) -> str:
    """Name of a result's array in the kernel, where it must not be that of anything else."""
    return f"{result.name}_out"


def _rows(result: Result) -> str:
    """How many entries of the first axis of a result's array belong to one state."""
    if not result.shape:
        return "1"
    leading = result.shape[:-1] if len(result.shape) > 1 else result.shape
    return " * ".join(map(_size, leading))


def kernel_text(entry: Quantity, grouped: bool) -> str:
    """Source of a quantity's kernel, for trees with or without group joints."""
    charted = ["where", "groups", "terms"] if grouped else []
    places = ["places"] if entry.links else []
    given = [_out(result) for result in entry.given]
    lines = [
        f"def {entry.name}({', '.join([*charted, 'table', *entry.arguments, *places, *given])}):",
        "n = table.shape[0] - 1",
        f"nq = {'number_of_positions(where, groups)' if grouped else 'n'}",
    ]
    first = entry.given[0]
    if first.flat:
        lines.append("count = q.size // nq if nq else 0")
    else:
        lines.append(f"rows = {_rows(first)}")
        lines.append(f"count = {_out(first)}.shape[0] // rows if rows else 0")
    checks = [f"fits({x}, count * {'nq' if x == 'q' else 'n'})" for x in entry.arguments if x != "wrenches"]
    if grouped:
        checks.append("unit_quaternions(groups, q, nq, count)")
    lines += [f"if not ({' and '.join(checks)}):", "    return WRONG_INPUT"]
    spaces = (f"carray(stack{k}(), (SMALL, {k})) if n <= SMALL else empty((n, {k}))" for k in WIDTHS)
    lines.append(f"work = Workspace({', '.join(spaces)})")
    lines += [f"scratch{i} = empty(({', '.join(map(_size, shape))},))" for i, shape in enumerate(entry.scratch)]
    lines += [
        f"{_out(result)} = empty(({', '.join(map(_size, result.shape))},))" for result in entry.results if result.hidden
    ]
    if grouped:
        lines += ["moved = table.copy()", "x = empty(n)"]
    if "qdd" in entry.at_rest or (grouped and "qdd" in entry.arguments):
        lines.append("a = zeros(n)")
    if not grouped:
        # Views of a state cost as much as a small robot's gravity: a single state goes without.
        lines += ["if count == 1:", *(f"    {line}" for line in _one_state(entry, False, lambda name, rows: name))]
        lines.append("    return 0")
    lines.append("for b in range(count):")
    lines += [f"    {line}" for line in _one_state(entry, grouped, _view)]
    lines.append("return 0")
    return "\n    ".join(lines) + "\n"


def _view(name: str, rows: str) -> str:
    """State b's part of an array."""
    return f"{name}[b * ({rows}) : (b + 1) * ({rows})]"


def _one_state(entry: Quantity, grouped: bool, view: Callable[[str, str], str]) -> list[str]:
    """Statements that compute the quantity for one state, whose arrays ``view`` gives."""
    state = {name: view(name, "nq" if name == "q" else "n") for name in entry.arguments}
    lines = []
    if grouped:
        lines.append(f"recentre(table, where, groups, {state['q']}, moved, x)")
        state["q"] = "x"
        if "qdd" in entry.arguments + entry.at_rest:
            lines.append(f"a[:] = {state.get('qdd', '0.0')}")
            lines.append(f"drift(terms, {state['qd']}, a)")
            state["qdd"] = "a"
    state |= dict.fromkeys(entry.at_rest, "a")
    outputs = {}
    for result in entry.results:
        rows = f"{_out(result)}.shape[0] // count" if result.flat else _rows(result)
        outputs[result.name] = _out(result) if result.hidden else view(_out(result), rows)
    arguments = [
        "moved" if grouped else "table",
        *(state[name] for name in entry.arguments + entry.at_rest),
        *(["places"] if entry.links else []),
        *(f"scratch{i}" for i in range(len(entry.scratch))),
        "work",
        *outputs.values(),
    ]
    call = f"recursion({', '.join(arguments)})"
    if signature(entry.recursion).return_annotation is int:
        lines += [f"status = {call}", "if status != 0:", "    return status"]
    else:
        lines.append(call)
    for result in entry.results if grouped else ():
        if result.rate_of:
            lines.append(f"add_rate(terms, {state['qd']}, {outputs[result.rate_of]}, {outputs[result.name]})")
        if result.acceleration:
            lines.append(f"subtract_drift(terms, {state['qd']}, {outputs[result.name]})")
    return lines


def _types(entry: Quantity, grouped: bool) -> list[Any]:
    types = [*([_integers, _table, _table] if grouped else []), _table]
    types += [_table if name == "wrenches" else _flat for name in entry.arguments]
    types += [_table] if entry.links else []
    return types + [_table if len(r.shape) > 1 and not r.flat else _flat for r in entry.given]


@functools.cache
def kernel(name: str, grouped: bool) -> Callable[..., int]:
    """The compiled kernel of a quantity."""
    entry = CATALOGUE.get(name) or INTERNAL[name]
    scope = _GLOBALS | {"recursion": entry.recursion}
    # The file that numba's cache watches; its folder is named after the text of the physics besides.
    code = compile(kernel_text(entry, grouped), str(joint_space.__file__), "exec")
    exec(code, scope)
    function = scope[name]
    function.__module__ = joint_space.__name__
    function.__name__ = f"{name}_of_groups" if grouped else name
    function.__qualname__ = function.__name__
    return compiled(function, _types(entry, grouped))


class Kernels:
    """The kernels of the catalogue for one model, by name: ``kernels.mass_matrix(kernels.table, q, M)``.

    Shapes of results are ``shape_v_v`` and so on, and ``rows_L_4_4`` for those that a kernel writes as one matrix.

    Parameters
    ----------
    model : Model

    Attributes
    ----------
    table : (nv + 1, 26) array
        Of the model.
    places : mapping from (link, frame) to (1, 24) array
    sizes : dict
        Of the dimensions of results.

    Raises
    ------
    UnboundSymbolError
        If symbols stand in the model where numbers should.
    """

    # What refuses arguments before anything is computed, an unknown link among them.
    REFUSALS = (KeyError, *REFUSALS)

    def __init__(self, model: Model) -> None:
        self._model = model
        self.table = model.table
        self.places = _Places(model)
        self.links = tuple(model.placements)
        self.sizes = {"v": model.nv, "q": model.nq, "L": len(self.links)}

    def __getattr__(self, name: str) -> Any:
        kind, _, label = name.partition("_")
        value: Any
        if kind in ("shape", "rows"):
            shape = tuple(self.sizes[d] if d in self.sizes else int(d) for d in label.split("_"))
            value = shape if kind == "shape" else (math.prod(shape[:-1]), shape[-1])
        elif name in CATALOGUE or name in INTERNAL:
            charts = self._model.charts
            value = kernel(name, charts is not None)
            value = value if charts is None else functools.partial(value, *charts)
        else:
            raise AttributeError(name)
        setattr(self, name, value)  # found before __getattr__ from now on
        return value

    @functools.cached_property
    def all_places(self) -> Array:
        """(links, 24): places of all links, the base first."""
        return self._model.places(self.links, COM)

    @functools.cached_property
    def shares(self) -> "_OfEach":
        """By name of a link, what its contribution needs."""
        return _OfEach(self._model)

    @functools.cached_property
    def all_shares(self) -> "Shares":
        """What the contributions of all links but the base need."""
        return Shares(self._model, self.links[1:])


class Shares:
    """Where the contributions of some links stand in the arrays that the kernel fills, one after another."""

    def __init__(self, model: Model, links: tuple[str, ...]) -> None:
        self.links = links
        self.places = model.places(links, COM)
        self._parts = []
        columns = squares = lines = 0
        for link in links:
            path = model.path(link)
            k = len(path)
            where = slice(columns, columns + 6 * k), slice(squares, squares + k * k), slice(lines, lines + k)
            self._parts.append((link, path, (6, k), (k, k), *where))
            columns, squares, lines = columns + 6 * k, squares + k * k, lines + k
        self._sizes = columns, squares, lines

    def arrays(self) -> tuple[Array, Array, Array, Array, Array]:
        """New arrays for J, J̇, M, C and g."""
        columns, squares, lines = self._sizes
        return np.empty(columns), np.empty(columns), np.empty(squares), np.empty(squares), np.empty(lines)

    def split(self, arrays: Sequence[Array]) -> list[Contribution]:
        """The contributions, as views of the filled arrays."""
        J, J_dot, M, C, g = arrays
        return [
            Contribution(
                link,
                names,
                J[columns].reshape(wide),
                J_dot[columns].reshape(wide),
                M[block].reshape(square),
                C[block].reshape(square),
                g[line],
            )
            for link, names, wide, square, columns, block, line in self._parts
        ]


class _OfEach(dict[str, Shares]):
    """Shares of single links, made when they are first asked for; KeyError for a link that is unknown."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self._model = model

    def __missing__(self, link: str) -> Shares:
        if not isinstance(link, str) or link not in self._model.placements:
            raise KeyError(link)
        shares = self[link] = Shares(self._model, (link,))
        return shares


class _Places(dict[tuple[str, str], Array]):
    """Places by link and frame, made when they are first asked for; KeyError for a link that is unknown."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self._model = model

    def __missing__(self, key: tuple[str, str]) -> Array:
        link, frame = key
        if not isinstance(link, str) or link not in self._model.placements:
            raise KeyError(link)
        place = self[key] = self._model.places((link,), frame_code(frame))
        return place


def _play(code: Array, results: Array) -> int:
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


@functools.cache
def _player() -> Callable[..., int]:
    return compiled(_play, (numba.int64[:, ::1], _table))


def play(code: Array, results: Array) -> int:
    """Carry out operations on rows of results; see ``_play``."""
    return _player()(code, results)
