"""The default back-end: a kernel for every quantity of the catalogue, which serves any tree.

A kernel is a computation of ``backends.native.entry`` for consecutive states. Its context contains the numbers of the
model; see :class:`Context`. Its arrays are those of the state, then those of the results. It checks that the state is
finite, and the results if an entry of the state is beyond ``LARGEST``. It returns 0, ``WRONG_INPUT`` if a check has
failed, ``NO_SPACE`` if it has computed nothing, or the status of the recursion. Plan: the source of the kernel is made
from the entry of the catalogue. Emit: numba compiles it in the first call and keeps it on disk. Call: :class:`Kernels`.
"""

import functools
import math
import sys
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from screwdyn.backends.background import compiling
from screwdyn.backends.native.entry import TURN, Computation, Extent, Read, addresses, builtin_of_context
from screwdyn.backends.native.platform_layout import address
from screwdyn.backends.numba.arrays import address_of, array, integers
from screwdyn.backends.numba.jit import bounded, compiled, run
from screwdyn.backends.numba.source import (
    COUPLED,
    KERNELS,
    STATE,
    Arrays,
    Context,
    Coupled,
    coupled_text,
    functions,
    kernel_text,
    parts,
    scratch_space,
)
from screwdyn.physics import charts, couplings
from screwdyn.physics.contribution import Contribution, share_of
from screwdyn.physics.frames import BODY, frame_code
from screwdyn.physics.internal import INTERNAL, SOLVING, WITH_LOOPS
from screwdyn.physics.model import Model
from screwdyn.physics.quantities import CATALOGUE, LARGEST, Dimension, Quantity
from screwdyn.physics.recursions import joint_space
from screwdyn.physics.table import PLACE, ROW, Workspace, integers_of

__all__ = ["OPERATIONS", "WRONG_INPUT", "Kernels", "kernels_of", "play"]

# Statuses of a kernel for invalid input, and for scratch space that is too small.
WRONG_INPUT, NO_SPACE = -1, -4
# The operations of ``play``, by number.
OPERATIONS = ("+", "-", "*", "/", "sin", "cos")
_PLAYER = "play"
Array = Any

_STATES, _LINKS, _PATH, _PLACES, _SPACE, _WORK = map(
    Context._fields.index, ("states", "links", "path", "Places", "space", "Work")
)
_STEPS = len(Context._fields) + Coupled._fields.index("steps")
_NO_PLACES = np.zeros((0, PLACE))
# The addresses of the kernels that are called by those of trees in which joints follow others, once they are loaded.
_KERNELS = np.zeros(len(KERNELS), dtype=np.int64)

_GLOBALS: dict[str, Any] = {
    "LARGEST": LARGEST,
    "LARGEST_FINITE": sys.float_info.max,
    "NO_SPACE": NO_SPACE,
    "WRONG_INPUT": WRONG_INPUT,
    "Workspace": Workspace,
    "add_drift_of_columns": charts.add_drift_of_columns,
    "address_of": address_of,
    "array": array,
    "bounded": bounded,
    "drift": charts.drift,
    "follow": couplings.follow,
    "integers": integers,
    "recentre": charts.recentre,
    "run": run,
    "spread": couplings.spread,
    "subtract_drift": charts.subtract_drift,
    "unit_quaternions": charts.unit_quaternions,
}


# The arguments that a kernel hands to another one follow its scratch space.
_HANDED = len(STATE) + max(len(entry.given) for entry in CATALOGUE.values())


class _Memory:
    """Scratch space, which grows to what kernels need.

    Attributes
    ----------
    held : tuple
        An array, its address, and the number of entries before the arguments that a kernel hands to another one.
    """

    def __init__(self) -> None:
        self._hold(0)

    def _hold(self, entries: int) -> None:
        array = np.empty(entries + _HANDED)
        self.held: tuple[Array, int, int] = array, address(array), entries

    def reserve(self, arrays: Arrays, rows: int, places: int, path: int) -> None:
        """Make it large enough for some arrays."""
        sizes = {"v": int(rows), "k": int(path), "L": int(places)}
        needed = sum(math.prod(sizes[d] if isinstance(d, str) else d for d in shape) for shape, _ in arrays.values())
        if needed > self.held[2]:
            self._hold(needed)


@functools.lru_cache(maxsize=8)
def _memory(rows: int, coupled: bool) -> _Memory:
    """Scratch space for kernels of one kind and tables with ``rows`` rows.

    All models share it, because one kernel runs at a time: see ``backends.native.entry.TURN``.
    """
    return _Memory()


_loaded: dict[str, Any] = {}


def kernel(name: str) -> Any:
    """The compiled kernel of a quantity, whose code is at ``.address``; it is never freed."""
    found = _loaded.get(name)
    return _load(name) if found is None else found


@compiling
def _load(name: str) -> Any:
    """Make a kernel or load it from disk, unless another thread has done so meanwhile."""
    if name not in _loaded:
        if name.startswith(COUPLED):
            for part in parts(_entry(name)):
                _KERNELS[KERNELS.index(part.name)] = kernel(part.name).address
        made = compiled(_play if name == _PLAYER else _kernel_function(name))
        _loaded.setdefault(name, made)  # a signal handler may have made another one in between
    return _loaded[name]


def _kernel_function(name: str) -> Callable[..., int]:
    """The kernel of a quantity as a Python function."""
    entry, coupled = _entry(name), name.startswith(COUPLED)
    scope = _GLOBALS | functions(entry, coupled)
    code = compile(coupled_text(entry) if coupled else kernel_text(entry), f"<{name}>", "exec")
    exec(code, scope)
    function: Callable[..., int] = scope[name]
    function.__module__, function.__qualname__ = joint_space.__name__, name
    return function


def _entry(name: str) -> Quantity:
    """The entry of the catalogue for the name of a kernel."""
    quantity = name.removeprefix(COUPLED)
    return CATALOGUE.get(quantity) or INTERNAL[quantity]


def _refuse(*state: Any, out: Any = None) -> None:
    """Return None: the arguments are not one state in contiguous arrays."""


def _function(name: str, prefix: str = "") -> Any:
    """The built-in function of a context and one state in contiguous float64 arrays; None for other arguments."""
    entry, code = _entry(name), kernel(prefix + name)
    inputs, outputs = [_read(STATE[x]) for x in entry.arguments], [_read(r.shape) for r in entry.given]
    return builtin_of_context(name, code.address, inputs, outputs, _refuse, code)


def _read(dimensions: Sequence[Dimension]) -> tuple[Extent, ...]:
    """The places in a context from which a shape is read."""
    fields = {"v": "rows", "q": "positions", "L": "links", "k": "path", "p": "above"}
    return tuple(Read(Context._fields.index(fields[d])) if isinstance(d, str) else d for d in dimensions)


class Kernels:
    """The kernels of the catalogue for one model.

    Each quantity is an attribute: a built-in function of a context and of one state in contiguous float64 arrays, which
    returns None for other arguments or if there is no result. Calls are ``kernels.mass_matrix(kernels.context, q)``,
    ``kernels.jacobian(kernels.of_link[link, frame], q)`` and likewise of subtrees, which raises KeyError for an unknown
    link, and ``kernels.link_poses(kernels.of_all, q)``. :meth:`fill` computes any number of states.

    Parameters
    ----------
    model : Model

    Attributes
    ----------
    context : array of int64
        For quantities of the whole tree; its places are those of the constraints of the loops.

    Raises
    ------
    UnboundSymbolError
        If the numbers of the model contain symbols.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        table, chart = model.table, model.charts
        places = model.places("loops") if model.topology.loops else _NO_PLACES
        self._memory = _memory(len(table) - 1, model.coupled)
        at = moved = address(table)
        parents, firsts = integers_of(table)
        # The context contains the addresses of these arrays.
        memory, work, space = self._memory.held
        self._kept = [table, memory, places, parents, firsts]
        groups = terms = of_where = of_groups = of_terms = 0
        if chart is not None:
            copied, kinds = table.copy(), (np.int64, np.int64, np.float64, np.float64)
            # Kernels read memory as it is: any other type would be read wrong.
            chart = charts.Charts(*(x.astype(kind) for x, kind in zip(chart, kinds, strict=True)))
            self._kept += [copied, *chart]
            moved, groups, terms = address(copied), len(chart.groups), len(chart.terms)
            of_where, of_groups, of_terms, _ = map(address, chart)
        sizes = (1, model.nv, model.nq, len(places), 0, 0, groups, terms, space)
        arrays = (at, of_where, of_groups, of_terms, moved, address(places), work, address(parents), address(firsts))
        self.context = np.array(sizes + arrays, np.int64)  # in the order of Context
        self._contexts: dict[tuple[str, str, int], Array] = {}
        if model.lean:  # the first call asks whether M has an inverse
            vars(self).update(dict.fromkeys(SOLVING, _refuse))

    def __reduce__(self) -> tuple[Any, ...]:
        """Addresses are not valid in another process."""
        return type(self), (self.model,)

    # Begins the names of the kernels.
    _kind = ""
    # Names of the quantities that are computed in place of others; None for one that is not available.
    _instead: Mapping[str, str | None] = {}

    @classmethod
    def kernel(cls, name: str) -> Any:
        """The compiled kernel of a quantity."""
        return kernel(cls._kind + (cls._instead.get(name) or name))

    @classmethod
    def function(cls, name: str) -> Any:
        """The built-in function of a quantity; one that refuses all arguments if it is not available."""
        computed = cls._instead.get(name, name)
        return _refuse if computed is None else _function(computed, cls._kind)

    @functools.cached_property
    def of_link(self) -> "_OfLink":
        """Contexts of single links, by link and frame."""
        return _OfLink(self, CATALOGUE["jacobian"])

    @functools.cached_property
    def of_subtree(self) -> "_OfLink":
        """Contexts of links with all links beyond them, by link and frame."""
        return _OfLink(self, CATALOGUE["subtree_contribution"])

    @functools.cached_property
    def of_all(self) -> Array:
        """Context of all links, the base first."""
        return self.context_of(CATALOGUE["link_poses"])

    @functools.cached_property
    def path(self) -> Callable[[str], tuple[str, ...]]:
        """Names of the freedoms on the path to a link, found once."""
        return functools.cache(self.model.path)

    @functools.cached_property
    def share_of_subtree(self) -> Callable[[str], Callable[..., Contribution]]:
        """What makes the contribution of the subtree of a link from the results for one state, found once."""
        return functools.cache(functools.partial(share_of, self.model, CATALOGUE["subtree_contribution"]))

    def context_of(self, entry: Quantity, link: str = "", code: int = BODY) -> Array:
        """The context of a quantity, for a link and the code of a frame if it depends on them."""
        if entry.places in (None, "loops"):
            return self.context
        key = entry.places, link, code
        context = self._contexts.get(key)
        if context is None:
            places = self.model.places(entry.places, link, code)
            self._kept.append(places)
            context = self._contexts[key] = self._at_places(places, len(self.path(link)) if link else 0)
        return context

    def _at_places(self, places: Array, path: int) -> Array:
        """The context for the places of some links, the first of which has a number of freedoms on its path."""
        context = self.context.copy()
        context[_LINKS], context[_PATH], context[_PLACES] = len(places), path, address(places)
        return context

    def fill(
        self, entry: Quantity, context: Array, states: int, arguments: Sequence[Array], results: Sequence[Array]
    ) -> int:
        """Compute the results for some states; returns the status. All arrays are contiguous, state after state."""
        own, arrays = context.copy(), addresses([*arguments, *results])
        own[_STATES] = states
        compute = Computation(self.kernel(entry.name).address)
        with TURN:
            status: int = compute(address(own), address(arrays))
        if status == NO_SPACE:
            self._reserve(_entry(self._instead.get(entry.name) or entry.name), context)
            return self.fill(entry, context, states, arguments, results)
        return status

    def _reserve(self, entry: Quantity, context: Array) -> None:
        """Make the scratch space of all contexts large enough for the kernel of a quantity with one of them."""
        self._memory.reserve(scratch_space(entry), len(self.model.table) - 1, context[_LINKS], context[_PATH])
        self._point([context, self.context, *self._contexts.values()], self._memory)

    def _point(self, contexts: Iterable[Array], memory: _Memory) -> None:
        """Give contexts the present scratch space; the former one is kept, since a thread may be about to use it."""
        array, work, space = memory.held
        self._kept.append(array)
        for context in contexts:
            context[_WORK] = work  # first: a call in between may use less of a larger space, not more of a smaller one
            context[_SPACE] = space


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


class CoupledKernels(Kernels):
    """The kernels of the catalogue for one model in which joints follow others."""

    _kind = COUPLED

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        assert model.charts is not None
        self._couplings = np.ascontiguousarray(model.charts.couplings, dtype=np.float64)
        self._memory_of_rows = _memory(len(self._couplings), False)
        self._contexts_of_rows: list[Array] = []
        self._in_a_row = np.arange(-1, model.nv - 1)
        self._parents = Context(*self.context).Parents
        self.context = self._with_rows(self.context, self._couplings[:0])

    def _at_places(self, places: Array, path: int) -> Array:
        on_path = couplings.of_path(self.model.table, self._couplings, int(places[0, ROW]) if len(places) else -1)
        return self._with_rows(super()._at_places(places, path), on_path)

    def _with_rows(self, context: Array, on_path: Array) -> Array:
        """The context that begins as a given one, with the couplings of the rows on a path."""
        n, steps = len(self._couplings), len(on_path)
        plain = Context(*context[: len(Context._fields)])
        of_rows = plain._replace(
            rows=n,
            positions=n,
            path=steps,
            groups=0,
            Table=plain.Moved,
            Parents=self._parents,
        )
        plain = plain._replace(Parents=address(self._in_a_row))
        arrays = [self._couplings, on_path, np.array(of_rows, np.int64), _KERNELS]
        self._point(arrays[2:3], self._memory_of_rows)
        self._contexts_of_rows.append(arrays[2])
        self._kept += arrays
        return np.array(plain + Coupled(n, steps, *map(address, arrays)), np.int64)

    def _reserve(self, entry: Quantity, context: Array) -> None:
        rows, links, steps = len(self._couplings), context[_LINKS], context[_STEPS]
        self._memory.reserve(scratch_space(entry, True), rows, links, steps)
        self._point([context, self.context, *self._contexts.values()], self._memory)
        for part in parts(entry):
            self._memory_of_rows.reserve(scratch_space(part), rows, links, steps)
        self._point(self._contexts_of_rows, self._memory_of_rows)


class LoopKernels(Kernels):
    """The kernels of the catalogue for one model with loops."""

    _instead = WITH_LOOPS


class CoupledLoopKernels(CoupledKernels):
    """The kernels of the catalogue for one model with loops in which joints follow others."""

    _instead = WITH_LOOPS


def kernels_of(model: Model) -> Kernels:
    """The kernels for a model; UnboundSymbolError if its numbers contain symbols."""
    kinds = (CoupledLoopKernels, CoupledKernels) if model.coupled else (LoopKernels, Kernels)
    kind: type[Kernels] = kinds[0] if model.topology.loops else kinds[1]
    return kind(model)


class _OfLink(dict[tuple[str, str], Array]):
    """Contexts of a quantity by link and frame, made on first use; KeyError for an unknown link."""

    def __init__(self, kernels: Kernels, entry: Quantity) -> None:
        super().__init__()
        self._kernels, self._entry = weakref.ref(kernels), entry

    def __missing__(self, key: tuple[str, str]) -> Array:
        kernels = self._kernels()
        link, frame = key
        if kernels is None or not isinstance(link, str) or link not in kernels.model.placements:
            raise KeyError(link)
        context = self[key] = kernels.context_of(self._entry, link, frame_code(frame))
        return context


for _name in CATALOGUE:
    for _owner in (Kernels, CoupledKernels, LoopKernels, CoupledLoopKernels):
        setattr(_owner, _name, _OnFirstUse(_name))


def _play(context: Array, arrays: Array) -> int:
    """Execute operations on rows of results; a row of code has the operation and the rows of result and operands."""
    code, states = integers(arrays[0], (4 * context[0],)), context[1]
    results = arrays[1]
    for i in range(context[0]):
        op, at, a, b = code[4 * i], code[4 * i + 1], code[4 * i + 2], code[4 * i + 3]
        x, y = array(results + 8 * a * states, (states,)), array(results + 8 * b * states, (states,))
        out = array(results + 8 * at * states, (states,))
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
