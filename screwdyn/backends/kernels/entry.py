"""Calls of kernels with arrays: compiled or in Python, also of one model.

A kernel gets the address of a context, and an array with the addresses of its inputs and outputs. It returns the status
of the recursion, which is 0 if it has computed its outputs.
"""

import functools
import importlib
import inspect
import os
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import numpy as np

from screwdyn.backends.kernels import in_python
from screwdyn.backends.kernels.source import COUPLED, KERNELS, Context
from screwdyn.core.errors import ScrewdynWarning
from screwdyn.physics import SHARES, Contribution, Model, couplings, placement, share_of
from screwdyn.physics.quantities import CATALOGUE, INTERNAL, SOLVING, Quantity, computed
from screwdyn.physics.recursions.links import frame_code
from screwdyn.physics.table import ARMATURE, COLUMNS, PLACE, ROW, integers_of

machine: Any = in_python
with suppress(ImportError, KeyError, AttributeError):
    _compiled = importlib.import_module("screwdyn.backends.kernels._compiled")
    for _name in KERNELS:
        _compiled.builtin(_name)  # KeyError if it was compiled before the quantity was declared
    _ = _compiled.of_numbers  # AttributeError if it was compiled before it had this function
    machine = _compiled
    placement.weld, placement.mount = map(_compiled.of_numbers, ("weld", "mount"))

if machine is in_python:
    warnings.warn(
        "screwdyn has no compiled kernels of its present formulas, which run as Python, hundreds of times slower. "
        "With a C compiler (Debian: apt install gcc; macOS: xcode-select --install), install it again: in a clone by "
        "pip install -e ., else by pip install --force-reinstall --no-cache-dir screwdyn",
        ScrewdynWarning,
        stacklevel=2,
    )


Array = np.ndarray
# The address of an array's first entry.
address: Callable[[Array], int] = machine.address
# The operations of ``play``, by number.
OPERATIONS = ("+", "-", "*", "/", "sin", "cos")

_LINKS, _PATH, _ABOVE, _TABLE, _MOVED, _PLACES, _JOINTS, _COLUMNS = (
    Context._fields.index(name) for name in ("links", "path", "above", "Table", "Moved", "Places", "joints", "columns")
)
_NO_PLACES, _UNCOUPLED = np.zeros((0, PLACE)), (0,) * len(Context._field_defaults)
# States times rows from which threads share a batch: some milliseconds of work, to which they add a tenth of one.
_LARGE = 100_000


def method(owner: type[Any], k: int, quantity: Quantity, slow: Callable[..., Any], compiled: bool = False) -> Any:
    """The method of a quantity for a class, with a number of its own: it calls kernels or ``compiled`` code itself.

    ``slow`` computes with other arguments; it gets the values of all of them in order, unless they do not fit.
    """
    parameters = [*quantity.signature.parameters.values()][1:]
    usual = ... if parameters[-1].default is inspect.Parameter.empty else parameters[-1].default
    text, names = text_of(slow.__name__, slow).replace("(self", "($self", 1), tuple(p.name for p in parameters)
    return machine.define(owner, k, text, slow, names, usual, quantity.name if compiled else None)


def text_of(name: str, function: Callable[..., Any]) -> str:
    """The signature and docstring of a function, as Python reads both from the docstring of a built-in function."""
    signature = inspect.signature(function)
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    known = signature.replace(parameters=bare, return_annotation=signature.empty)
    return f"{name}{known}\n--\n\n{function.__doc__ or ''}"


def refuse(*state: Any, out: Any = None) -> None:
    """Return None: the arguments are not one state in contiguous arrays."""


def processors() -> int:
    """Number of processors that this process may use, which a cluster may restrict."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Kernels(machine.Bound):  # type: ignore[misc]
    """The kernels of the catalogue for one model; UnboundSymbolError if its numbers contain symbols.

    Each quantity is an attribute: a built-in function of a context and of one state in contiguous float64 arrays, which
    returns None for other arguments or if there is no result. Calls are ``kernels.mass_matrix(kernels.context, q)`` and
    ``kernels.jacobian(kernels.found(CATALOGUE["jacobian"], link, frame), q)``. :meth:`fill` computes any number of
    states. Freedoms that are ``held``, by their indices, do not move in any of them; see :func:`_holding`.
    """

    def __init__(self, model: Model, held: Sequence[int] = ()) -> None:
        self.model, self.held = model, held
        # Begins the names of the kernels.
        self._kind = COUPLED if model.coupled else ""
        self._loops = bool(model.topology.loops)
        table, chart = _holding(model, held) if len(held) else model.table, model.charts
        places = model.places("loops") if self._loops else _NO_PLACES
        at = moved = address(table)
        parents, firsts = integers_of(table)
        # The context contains the addresses of these arrays.
        self._kept = [table, places, parents, firsts]
        groups = terms = of_where = of_groups = of_terms = 0
        if chart is not None:
            copied = table.copy()
            if model.coupled:  # kernels read memory as it is: any other type would be read wrong
                chart = chart._replace(couplings=np.asarray(chart.couplings, np.float64, order="C"))
            self._kept += [copied, *chart]
            moved, groups, terms = address(copied), len(chart.groups), len(chart.terms)
            of_where, of_groups, of_terms, _ = map(address, chart)
        sizes = (1, model.nv, model.nq, len(places), 0, 0, groups, terms)
        arrays = (at, of_where, of_groups, of_terms, moved, address(places), address(parents), address(firsts))
        # For quantities of the whole tree; its places are those of the constraints of the loops.
        self.context = np.array((*sizes, *arrays, *_UNCOUPLED), np.int64)
        if model.coupled:
            assert chart is not None
            self._couplings, self._in_a_row = chart.couplings, np.arange(-1, model.nv - 1)
            self._follow(self.context, self._couplings[:0])
        # What methods find at once: the contexts of links in their own frames, at centres of mass, of subtrees, of all
        # links, of links and frames; what makes contributions of links, of subtrees; the contexts of contacts, and of
        # subtrees without the base.
        self._at_once: tuple[dict[Any, Any], ...] = tuple([{} for _ in range(_LAST + 1)])
        self._bind(solving=not model.lean)

    def _bind(self, solving: bool) -> None:
        """Find the kernels; without ``solving`` not those that need the inverse of M, which may not exist."""
        if not solving:
            self.__dict__.update(dict.fromkeys(SOLVING, refuse))
        self.bind(_methods(self._kind, self._loops, solving), self.context, self._at_once)

    def solve(self) -> None:
        """Let methods use the inverse of M, which exists."""
        for name in SOLVING:
            self.__dict__.pop(name, None)
        self._bind(solving=True)

    def __getattr__(self, name: str) -> Any:
        """The built-in function of a quantity, which is kept; most are never asked for in a model."""
        known = _functions(self._kind, self._loops) if name in CATALOGUE or name in INTERNAL else {}
        if name not in known:
            raise AttributeError(name)
        self.__dict__[name] = known[name]
        return known[name]

    def __reduce__(self) -> tuple[Any, ...]:
        """Addresses are not valid in another process."""
        return type(self), (self.model, self.held)

    def found(self, entry: Quantity, link: Any = None, frame: Any = "body") -> Array:
        """The context of a quantity, which methods find at once from then on; KeyError for an unknown link."""
        if entry.places in (None, "loops"):
            return self.context
        key = (link, frame) if entry.places == "one" else link
        known = self._at_once[_FRAMED if entry.places == "one" else _OF_PLACES[entry.places]]
        context: Array | None = known.get(key)
        if context is None:
            if entry.parameters and (not isinstance(link, str) or link not in self.model.placements):
                raise KeyError(link)
            places = self.model.places(entry.places, link or "", frame_code(frame))
            self._kept.append(places)
            context = self.with_places(places)
            context[_PATH] = len(self.model.path(link)) if link else 0
            if self._kind:
                row = int(places[0, ROW]) if len(places) else -1
                self._follow(context, couplings.of_path(self.model.table, self._couplings, row))
            if entry.places == "one" and frame in _OWN:
                self._at_once[_OWN[frame]][link] = context
            known[key] = context  # last, because other threads take it from there
        return context

    def share_of(self, name: str, link: str) -> Callable[..., Contribution]:
        """What makes a contribution from the results for one state, by quantity and link, found once."""
        known: dict[str, Callable[..., Contribution]] = self._at_once[_SHARES[name]]
        if link not in known:
            known[link] = share_of(self.model, name, link)
        return known[link]

    def with_places(self, places: Array) -> Array:
        """The context of the whole tree with some places, which the caller keeps."""
        context: Array = self.context.copy()
        context[_LINKS], context[_PLACES], context[_COLUMNS] = len(places), address(places), 10 * len(places)
        return context

    def holding(self, freedoms: slice) -> tuple[Array, tuple[Array, ...]]:
        """The context of the tree with freedoms that do not move, and arrays to be kept."""
        table = _holding(self.model, range(self.model.nv)[freedoms])
        context, moved = self.context.copy(), table if self.model.charts is None else table.copy()
        context[_TABLE], context[_MOVED] = address(table), address(moved)
        return context, (table, moved)

    def _follow(self, context: Array, on_path: Array) -> None:
        """Write the fields of joints that follow others, with the couplings of the rows on a path."""
        self._kept.append(on_path)
        at = map(address, (self._couplings, on_path, self._in_a_row))
        context[_JOINTS:_COLUMNS] = len(self._couplings), len(on_path), *at

    def kernel_of(self, entry: Quantity) -> str:
        """Name of the kernel that computes a quantity."""
        return self._kind + (computed(entry.name, self._loops) or entry.name)

    def fill(
        self, entry: Quantity, context: Array, states: int, arguments: Sequence[Array], results: Sequence[Array]
    ) -> int:
        """Compute results for states in contiguous arrays, large batches in several threads; returns the status."""
        name = self.kernel_of(entry)
        if states * len(self.model.table) >= _LARGE and (parts := processors()) > 1:
            ends = [states * k // parts for k in range(parts + 1)]
            flat = [a.reshape(states, -1) for a in (*arguments, *results)]

            def part(first: int, end: int) -> int:
                return int(machine.batch(name, context, end - first, tuple([a[first:end] for a in flat])))

            # RuntimeError if no thread can be started: at the end of the process, or where their number is limited.
            with suppress(RuntimeError), ThreadPoolExecutor(parts) as pool:
                return next(filter(None, pool.map(part, ends, ends[1:])), 0)
        return int(machine.batch(name, context, states, (*arguments, *results)))


def _holding(model: Model, freedoms: Sequence[int]) -> Array:
    """The table of a model with freedoms that do not move, by a boundless armature.

    1e200 kg m² or kg: whatever moves such a freedom is less than the rounding of all else.
    """
    table = model.table.copy()
    table[[model.index[model.coordinates[k]] for k in freedoms], ARMATURE] = 1e200
    return table


# Which of the dictionaries of what methods find at once are those of a frame, and others.
_OWN, _OF_PLACES, _FRAMED, _LAST = {"body": 0, "com": 1}, {"subtree": 2, "all": 3, "contacts": 7, "bodies": 8}, 4, 8
_SHARES = dict(zip(SHARES, (5, 6), strict=True))


@functools.cache
def _functions(prefix: str, loops: bool) -> dict[str, Any]:
    """The built-in functions of all quantities; one that refuses all arguments if it is not available."""
    every = {name: computed(name, loops) for name in (*CATALOGUE, *INTERNAL)}
    known = {name: to for name, to in every.items() if to is None or prefix + to in KERNELS}
    return {name: machine.builtin(prefix + to) if to else refuse for name, to in known.items()}


@functools.cache
def _methods(prefix: str, loops: bool, solving: bool) -> Any:
    """What the methods of the catalogue call, by their numbers."""
    names, places, shares = [], [], []
    for name, entry in CATALOGUE.items():
        by = None if name in SOLVING and not solving else computed(name, loops)
        names.append(by and prefix + by)
        frame = entry.signature.parameters.get("frame")
        at = {"one": _OWN[frame.default if frame else "body"], **_OF_PLACES}
        places.append(at.get(entry.places or "", -1))
        shares.append(_SHARES.get(name, -1))
    return machine.kind(tuple(names), tuple(places), tuple(shares))


def play(code: Array, results: Array) -> None:
    """Carry out operations on rows of results; see ``head.c``."""
    machine.batch("play", np.array([len(code), results.shape[1]], dtype=np.int64), 1, (code, results))


@functools.cache
def _joint(rows: int, positions: int, group: tuple[int, int] | None) -> tuple[Array, list[Array]]:
    """The context of links whose joints have some rows and positions, without their numbers; the arrays in it."""
    integers = [[-1] * rows, [0, 0, *group] if group else [], range(-1, rows - 1)]
    integers += [[*([0] * rows if group else range(rows)), -1]]
    kept = [np.array(x, np.int64) for x in integers]
    where, groups, parents, firsts = map(address, kept)
    sizes = (1, rows, positions, 1, 0, 0, 1 if group else 0, 0)
    return np.array(Context(*sizes, 0, where, groups, 0, 0, 0, parents, firsts), np.int64), kept


_step = machine.builtin("link_step")


def link_step(
    numbers: Array, rows: int, group: tuple[int, int] | None, path: int, state: Sequence[Array]
) -> tuple[Array, ...] | None:
    """The results of the internal quantity ``link_step`` for its arguments ``state``; None if they overflow.

    ``numbers`` has the table of the rows of the link's own joint, and the place of the link; ``group`` the positions of
    the orientation and of the translations of a group joint. ``path`` freedoms are on the path to the link.
    """
    context = _joint(rows, len(state[0]), group)[0].copy()
    at = address(numbers)
    context[_PATH], context[_ABOVE] = path, len(state[-1])
    context[_TABLE], context[_PLACES] = at, at + 8 * COLUMNS * (rows + 1)
    if group:
        moved = numbers.copy()
        context[_MOVED] = address(moved)
    found: tuple[Array, ...] | None = _step(context, *state)
    return found
