"""The default back-end: a kernel for every quantity of the catalogue, which serves any tree.

A kernel is a computation of ``backends.entry`` for consecutive states. Its context contains the numbers of the model;
see :class:`Context`. Its arrays are those of the state, then those of the results. It checks that the state is finite
and returns 0, ``WRONG_INPUT`` if it has computed nothing, or the status of the recursion. Plan: the source of the
kernel is made from the entry of the catalogue. Emit: numba compiles it in the first call and keeps it on disk. Call:
:class:`Kernels`.
"""

import functools
import math
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import signature
from typing import Any, NamedTuple

import numpy as np

from screwdyn.backends.entry import Computation, Extent, Read, addresses, builtin_of_context
from screwdyn.backends.llvm.background import compiling
from screwdyn.backends.numba.jit import array, compiled, finite, integers
from screwdyn.backends.platform_layout import address
from screwdyn.physics import charts
from screwdyn.physics.frames import BODY, frame_code
from screwdyn.physics.model import Model
from screwdyn.physics.quantities import CATALOGUE, INTERNAL, Dimension, Quantity
from screwdyn.physics.recursions import joint_space
from screwdyn.physics.table import COLUMNS, PLACE, WIDTHS, Workspace

__all__ = ["OPERATIONS", "WRONG_INPUT", "Kernels", "play"]

WRONG_INPUT = -1
# The operations of ``play``, by number.
OPERATIONS = ("+", "-", "*", "/", "sin", "cos")
_PLAYER = "play"
Array = Any


class Context(NamedTuple):
    """The arguments of a kernel other than its arrays: counts, and addresses in fields with a capital letter."""

    states: Any
    rows: Any
    positions: Any
    links: Any
    path: Any
    groups: Any
    terms: Any
    Table: Any
    Where: Any
    Groups: Any
    Terms: Any
    Moved: Any
    Places: Any
    Work: Any


_STATES, _LINKS, _PATH, _PLACES = map(Context._fields.index, ("states", "links", "path", "Places"))

_GLOBALS: dict[str, Any] = {
    "WRONG_INPUT": WRONG_INPUT,
    "Workspace": Workspace,
    "add_rate": charts.add_rate,
    "array": array,
    "drift": charts.drift,
    "finite": finite,
    "integers": integers,
    "recentre": charts.recentre,
    "subtract_drift": charts.subtract_drift,
    "unit_quaternions": charts.unit_quaternions,
}
_STATE: dict[str, Sequence[Dimension]] = {
    "q": ("q",),
    "qd": ("v",),
    "qdd": ("v",),
    "tau": ("v",),
    "wrenches": ("v", 6),
}
_SIZES = {"v": "n", "q": "nq", "L": "links", "k": "path", "6v": "6 * n"}


def _extent(dimension: Dimension) -> str:
    return _SIZES[dimension] if isinstance(dimension, str) else str(dimension)


def _size(dimensions: Sequence[Dimension]) -> str:
    """Text of the number of entries of an array."""
    return " * ".join(map(_extent, dimensions)) or "1"


def _shape(dimensions: Sequence[Dimension]) -> str:
    """Text of a shape."""
    return f"({', '.join(map(_extent, dimensions))},)"


def _shape_in_recursion(dimensions: Sequence[Dimension]) -> str:
    """Text of a result's shape for recursions: a number is an array of length 1, several matrices form one."""
    if len(dimensions) > 2:
        return f"({_size(dimensions[:-1])}, {_extent(dimensions[-1])})"
    return _shape(dimensions or (1,))


def _consecutive(address: str, arrays: Mapping[str, Sequence[Dimension]]) -> list[str]:
    """Statements that define consecutive arrays from an address on."""
    lines, first = [], "0"
    for name, dimensions in arrays.items():
        lines.append(f"{name} = array({address}, {first}, {_shape(dimensions)})")
        first += f" + {name}.size"
    return lines


def _shared() -> dict[str, Sequence[Dimension]]:
    """Scratch space of every kernel: coordinates, accelerations, and the workspace."""
    return {"x": ("v",), "a": ("v",)} | {f"work_{name}": ("v", width) for name, width in WIDTHS._asdict().items()}


def _own(entry: Quantity) -> dict[str, Sequence[Dimension]]:
    """Scratch space of one quantity, and its hidden results."""
    scratch: dict[str, Sequence[Dimension]] = {f"scratch{k}": shape for k, shape in enumerate(entry.scratch)}
    return scratch | {f"{result.name}_out": result.shape for result in entry.results if result.hidden}


@functools.lru_cache(maxsize=4)
def _memory(rows: int) -> tuple[Array, int]:
    """Scratch space for any kernel and a table with ``rows`` rows, and its address.

    All models share it, because a kernel runs under Python's global lock.
    """
    sizes = {"v": rows, "6v": 6 * rows}

    def count(arrays: Mapping[str, Sequence[Dimension]]) -> int:
        return sum(math.prod(sizes[d] if isinstance(d, str) else d for d in shape) for shape in arrays.values())

    memory = np.empty(count(_shared()) + max(count(_own(entry)) for entry in CATALOGUE.values()))
    return memory, address(memory)


def kernel_text(entry: Quantity) -> str:
    """Source of a quantity's kernel."""
    context = Context(*(f"context[{k}]" for k in range(len(Context._fields))))
    whole = [f"array(arrays[{k}], 0, (count * {_size(_STATE[x])},))" for k, x in enumerate(entry.arguments)]
    checks = [f"finite({states})" for x, states in zip(entry.arguments, whole, strict=True) if x != "wrenches"]
    lines = [
        f"def {entry.name}(context, arrays):",
        f"count, n, nq, links, path = {', '.join(context[:5])}",
        f"table = array({context.Table}, 0, (n + 1, {COLUMNS}))",
        f"where = integers({context.Where}, n)",
        f"groups = array({context.Groups}, 0, ({context.groups}, {charts.GROUP}))",
        f"terms = array({context.Terms}, 0, ({context.terms}, 4))",
        f"moved = array({context.Moved}, 0, (n + 1, {COLUMNS}))",
        f"places = array({context.Places}, 0, (links, {PLACE}))",
        *_consecutive(context.Work, _shared() | _own(entry)),
        f"work = Workspace({', '.join(f'work_{name}' for name in Workspace._fields)})",
        f"if not ({' and '.join(checks)} and unit_quaternions(groups, {whole[0]}, nq, count)):",
        "    return WRONG_INPUT",
        "for b in range(count):",
        *(f"    {line}" for line in _one_state(entry)),
        "return 0",
    ]
    return "\n    ".join(lines) + "\n"


def _one_state(entry: Quantity) -> list[str]:
    """Statements that compute the quantity for state b."""
    arrays = [(name, _size(_STATE[name]), _shape(_STATE[name])) for name in entry.arguments]
    arrays += [(f"{r.name}_out", _size(r.shape), _shape_in_recursion(r.shape)) for r in entry.given]
    lines = [f"{name} = array(arrays[{k}], b * {size}, {shape})" for k, (name, size, shape) in enumerate(arrays)]
    lines += [
        "rows, coordinates = table, q",
        "if groups.shape[0] > 0:",
        "    recentre(table, where, groups, q, moved, x)",
        "    rows, coordinates = moved, x",
    ]
    if "qdd" in (*entry.arguments, *entry.at_rest):
        lines += [
            "for i in range(n):",
            f"    a[i] = {'qdd[i]' if 'qdd' in entry.arguments else '0.0'}",
            "drift(terms, qd, a)",
        ]
    handed = {"q": "coordinates", "qdd": "a"}
    arguments = [
        "rows",
        *(handed.get(name, name) for name in (*entry.arguments, *entry.at_rest)),
        *(["places"] if entry.links else []),
        *(f"scratch{k}" for k in range(len(entry.scratch))),
        "work",
        *(f"{result.name}_out" for result in entry.results),
    ]
    call = f"recursion({', '.join(arguments)})"
    if signature(entry.recursion).return_annotation is int:
        lines += [f"status = {call}", "if status != 0:", "    return status"]
    else:
        lines.append(call)
    for result in entry.results:
        if result.rate_of:
            lines.append(f"add_rate(terms, qd, {result.rate_of}_out, {result.name}_out)")
        if result.acceleration:
            lines.append(f"subtract_drift(terms, qd, {result.name}_out)")
    return lines


_loaded: dict[str, Any] = {}


def kernel(name: str) -> Any:
    """The compiled kernel of a quantity, whose code is at ``.address``; it is never freed."""
    found = _loaded.get(name)
    return _load(name) if found is None else found


@compiling
def _load(name: str) -> Any:
    """Make a kernel or load it from disk, unless another thread has done so meanwhile."""
    if name not in _loaded:
        made = compiled(_play if name == _PLAYER else _kernel_function(name))
        _loaded.setdefault(name, made)  # a signal handler may have made another one in between
    return _loaded[name]


def _kernel_function(name: str) -> Callable[..., int]:
    """The kernel of a quantity as a Python function."""
    entry = CATALOGUE.get(name) or INTERNAL[name]
    scope = _GLOBALS | {"recursion": entry.recursion}
    # The source file that numba checks for changes; the name of the folder depends on all source of the physics.
    code = compile(kernel_text(entry), str(joint_space.__file__), "exec")
    exec(code, scope)
    function: Callable[..., int] = scope[name]
    function.__module__, function.__qualname__ = joint_space.__name__, name
    return function


def _refuse(*state: Any, out: Any = None) -> None:
    """Return None: the arguments are not one state in contiguous arrays."""


def _function(name: str) -> Any:
    """The built-in function of a context and one state in contiguous float64 arrays; None for other arguments."""
    entry, code = CATALOGUE[name], kernel(name)
    inputs, outputs = [_read(_STATE[x]) for x in entry.arguments], [_read(r.shape) for r in entry.given]
    return builtin_of_context(name, code.address, inputs, outputs, _refuse, code)


def _read(dimensions: Sequence[Dimension]) -> tuple[Extent, ...]:
    """The places in a context from which a shape is read."""
    fields = {"v": "rows", "q": "positions", "L": "links", "k": "path"}
    return tuple(Read(Context._fields.index(fields[d])) if isinstance(d, str) else d for d in dimensions)


class Kernels:
    """The kernels of the catalogue for one model.

    Each quantity is an attribute: a built-in function of a context and of one state in contiguous float64 arrays, which
    returns None for other arguments or if there is no result. Calls are ``kernels.mass_matrix(kernels.context, q)``,
    ``kernels.jacobian(kernels.of_link[link, frame], q)``, which raises KeyError for an unknown link, and
    ``kernels.link_poses(kernels.of_all, q)``. :meth:`fill` computes any number of states.

    Parameters
    ----------
    model : Model

    Attributes
    ----------
    context : array of int64
        For quantities of the whole tree.

    Raises
    ------
    UnboundSymbolError
        If the numbers of the model contain symbols.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        table, chart = model.table, model.charts
        memory, work = _memory(model.nv)
        at = moved = address(table)
        # The context contains the addresses of these arrays.
        self._kept = [table, memory]
        groups = terms = of_where = of_groups = of_terms = 0
        if chart is not None:
            copied, where, *numbers = table.copy(), *chart
            # Kernels read memory as it is: any other type would be read wrong.
            chart = charts.Charts(where.astype(np.int64), *(x.astype(np.float64) for x in numbers))
            self._kept += [copied, *chart]
            moved, groups, terms = address(copied), len(chart.groups), len(chart.terms)
            of_where, of_groups, of_terms = map(address, chart)
        context = Context(1, model.nv, model.nq, 0, 0, groups, terms, at, of_where, of_groups, of_terms, moved, 0, work)
        self.context = np.fromiter(context, np.int64)
        self._contexts: dict[tuple[str, str, int], Array] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Addresses are not valid in another process."""
        return type(self), (self.model,)

    @staticmethod
    def function(name: str) -> Any:
        """The built-in function of a quantity."""
        return _function(name)

    @functools.cached_property
    def of_link(self) -> "_OfLink":
        """Contexts of single links, by link and frame."""
        return _OfLink(self)

    @functools.cached_property
    def of_all(self) -> Array:
        """Context of all links, the base first."""
        return self.context_of(CATALOGUE["link_poses"])

    @functools.cached_property
    def path(self) -> Callable[[str], tuple[str, ...]]:
        """Names of the freedoms on the path to a link, found once."""
        return functools.cache(self.model.path)

    def places(self, entry: Quantity, link: str = "", code: int = BODY) -> Array:
        """The places of the links of a quantity, (links, 24), with the code of a frame."""
        links: Iterable[str] = ()
        if entry.links == "one":
            links = (link,)
        elif entry.links == "subtree":
            links = self.model.subtree(link)
        elif entry.links == "all":
            links = self.model.placements
        return self.model.places(links, code)

    def context_of(self, entry: Quantity, link: str = "", code: int = BODY) -> Array:
        """The context of a quantity, for a link and the code of a frame if it depends on them."""
        if entry.links is None:
            return self.context
        key = entry.links, link, code
        context = self._contexts.get(key)
        if context is None:
            places, context = self.places(entry, link, code), self.context.copy()
            self._kept.append(places)
            context[_LINKS], context[_PLACES] = len(places), address(places)
            context[_PATH] = len(self.path(link)) if link else 0
            self._contexts[key] = context
        return context

    def shapes(self, entry: Quantity, context: Array) -> list[tuple[int, ...]]:
        """Shapes of the results of one state."""
        shapes = [_read(result.shape) for result in entry.given]
        return [tuple(int(context[d.place]) if isinstance(d, Read) else d for d in shape) for shape in shapes]

    def fill(
        self, entry: Quantity, context: Array, states: int, arguments: Sequence[Array], results: Sequence[Array]
    ) -> int:
        """Compute the results for some states; returns the status. All arrays are contiguous, state after state."""
        context, arrays = context.copy(), addresses([*arguments, *results])
        context[_STATES] = states
        status: int = Computation(kernel(entry.name).address)(address(context), address(arrays))
        return status


class _OnFirstUse:
    """An attribute of a class that is replaced by the built-in function of a quantity when it is first read.

    ``__getattr__`` would make every later reading of an attribute take 20 ns longer.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type[Any]) -> Any:
        return self._function_of(owner)

    @compiling
    def _function_of(self, owner: type[Any]) -> Any:
        """Replace the attribute once: calls may be using the first function."""
        if vars(owner).get(self._name) in (None, self):
            function = owner.function(self._name)
            if vars(owner).get(self._name) in (None, self):
                setattr(owner, self._name, function)
        return vars(owner)[self._name]


for _name in CATALOGUE:
    setattr(Kernels, _name, _OnFirstUse(_name))


class _OfLink(dict[tuple[str, str], Array]):
    """Contexts of single links by link and frame, made on first use; KeyError for an unknown link."""

    def __init__(self, kernels: Kernels) -> None:
        super().__init__()
        self._kernels = weakref.ref(kernels)

    def __missing__(self, key: tuple[str, str]) -> Array:
        kernels = self._kernels()
        link, frame = key
        if kernels is None or not isinstance(link, str) or link not in kernels.model.placements:
            raise KeyError(link)
        context = self[key] = kernels.context_of(CATALOGUE["jacobian"], link, frame_code(frame))
        return context


def _play(context: Array, arrays: Array) -> int:
    """Execute operations on rows of results; a row of code has the operation and the rows of result and operands."""
    code, states = integers(arrays[0], 4 * context[0]), context[1]
    results = arrays[1]
    for i in range(context[0]):
        op, at, a, b = code[4 * i], code[4 * i + 1], code[4 * i + 2], code[4 * i + 3]
        x, y = array(results, a * states, (states,)), array(results, b * states, (states,))
        out = array(results, at * states, (states,))
        for s in range(states):
            if op == 0:
                out[s] = x[s] + y[s]
            elif op == 1:
                out[s] = x[s] - y[s]
            elif op == 2:
                out[s] = x[s] * y[s]
            elif op == 3:
                out[s] = x[s] / y[s]
            elif op == 4:
                out[s] = math.sin(x[s])
            else:
                out[s] = math.cos(x[s])
    return 0


def play(code: Array, results: Array) -> None:
    """Carry out operations on rows of results; see ``_play``."""
    context = np.array([len(code), results.shape[1]], dtype=np.int64)
    Computation(kernel(_PLAYER).address)(address(context), address(addresses([code, results])))
