"""Source of the kernels, made from the entries of the catalogue: functions of a context, arrays and scratch space.

There are two kernels for each quantity. One is for trees in which each row of the table is a freedom. The other is for
trees in which joints follow others (``physics.charts``): it calls kernels of the first kind over the rows, and
contracts the results. Addresses are integers. ``written`` makes C of the text, and ``in_python`` Python functions.
"""

from collections import namedtuple
from collections.abc import Iterable, Mapping, Sequence
from inspect import signature
from typing import Any

from screwdyn.physics import charts
from screwdyn.physics.charts import COUPLING
from screwdyn.physics.quantities import CATALOGUE, INTERNAL, Dimension, Quantity
from screwdyn.physics.table import COLUMNS, PLACE, WIDTHS

__all__ = ["COUPLED", "KERNELS", "PLACES", "STATE", "Context", "entry_of", "functions", "kernel_text", "scratch_text"]

# Begins the names of kernels for trees in which joints follow others.
COUPLED = "coupled_"
# All kernels by name; the step of one link knows nothing of other joints.
_NAMES = (*CATALOGUE, *INTERNAL)
KERNELS = (*_NAMES, *(COUPLED + name for name in _NAMES if name != "link_step"))
STATE: dict[str, Sequence[Dimension]] = {
    "q": ("q",),
    "qd": ("v",),
    "qdd": ("v",),
    "tau": ("v",),
    "wrenches": ("n", 6),
    "slip": (1, 18),
    "onto": ("v", 2),
    "frame_above": (1, 18),
    "columns_above": ("p", 12),
}
Sizes = Mapping[str, str]
# What dimensions stand for: in a kernel without couplings; over the rows and over the freedoms in one with couplings.
_SIZES: Sizes = {"v": "n", "n": "n", "q": "nq", "L": "links", "k": "path", "p": "above"}
_ROWS: Sizes = {**_SIZES, "k": "steps"}
_FREEDOMS: Sizes = {**_SIZES, "v": "nv"}
# Arrays of the rows that follow from those of the freedoms.
_OF_ROWS = {"q": "x", "qd": "w", "qdd": "a"}
Arrays = Mapping[str, tuple[Sequence[Dimension], Sizes]]


class Context(
    namedtuple(
        "Context",
        "states rows positions links path above groups terms Table Where Groups Terms Moved Places Parents Firsts "
        "joints steps Couplings OnPath InARow",
        defaults=(0, 0, 0, 0, 0),
    )
):
    """The arguments of a kernel other than its arrays: counts, and addresses in fields with a capital letter.

    ``rows`` is the number of freedoms, ``path`` and ``above`` those on the paths to a link and to its parent. What
    follows ``Firsts`` is 0 unless joints follow others: the numbers of all rows and of those on the path, the couplings
    of both, and for each freedom the one before it.
    """


_CONTEXT = Context(*(f"context[{k}]" for k in range(len(Context._fields))))
# The places in a context from which shapes are read.
PLACES: dict[Dimension, int] = {
    d: Context._fields.index(field)
    for d, field in {"v": "rows", "q": "positions", "L": "links", "k": "path", "p": "above", "n": "rows"}.items()
}


def _extents(dimensions: Sequence[Dimension], sizes: Sizes) -> list[str]:
    return [sizes[d] if isinstance(d, str) else str(d) for d in dimensions]


def _size(dimensions: Sequence[Dimension], sizes: Sizes) -> str:
    """Text of the number of entries of an array."""
    return " * ".join(_extents(dimensions, sizes)) or "1"


def _shape(dimensions: Sequence[Dimension], sizes: Sizes) -> str:
    """Text of a shape for recursions: a number is an array of length 1, several matrices form one."""
    if len(dimensions) > 2:
        dimensions, sizes = ("first", dimensions[-1]), {**sizes, "first": _size(dimensions[:-1], sizes)}
    return _plain_shape(dimensions or (1,), sizes)


def _plain_shape(dimensions: Sequence[Dimension], sizes: Sizes) -> str:
    return f"({', '.join(_extents(dimensions, sizes))},)"


def entry_of(name: str) -> Quantity:
    """The entry of the catalogue for the name of a kernel."""
    quantity = name.removeprefix(COUPLED)
    return CATALOGUE.get(quantity) or INTERNAL[quantity]


def parts(entry: Quantity) -> list[Quantity]:
    """The quantities over the rows from which a quantity follows if joints follow others."""
    return [CATALOGUE.get(name) or INTERNAL[name] for name in entry.coupled.quantities] if entry.coupled else [entry]


def functions(name: str) -> dict[str, Any]:
    """The functions of the physics that a kernel calls, by their names in its source."""
    entry = entry_of(name)
    if not name.startswith(COUPLED):
        return {"recursion": entry.recursion, "Record": entry.record}
    found: dict[str, Any] = {f.__name__: f for part in parts(entry) for r in part.given if (f := r.contraction)}
    return found | ({"finish": entry.coupled.finish} if entry.coupled else {})


def _scratch_space(entry: Quantity, coupled: bool) -> Arrays:
    """Arrays of scratch space of a kernel: their dimensions, and what these stand for."""
    arrays: dict[str, tuple[Sequence[Dimension], Sizes]] = {}
    if coupled:
        arrays |= {name: (("v",), _ROWS) for name in _OF_ROWS.values()}
        for part in parts(entry):
            arrays |= {f"{part.name}_{r.name}": (r.shape, _ROWS) for r in part.given if r.contraction}
            if entry.coupled:
                arrays |= {f"{r.name}_of_freedoms": (r.shape, _FREEDOMS) for r in part.given}
        if entry.coupled:
            arrays |= {f"scratch{k}": (shape, _FREEDOMS) for k, shape in enumerate(entry.coupled.scratch)}
    else:
        arrays |= {name: (("v",), _SIZES) for name in ("x", "a")}
        arrays |= {f"scratch{k}": (shape, _SIZES) for k, shape in enumerate(entry.scratch)}
        arrays |= {f"out_{r.name}": (r.shape, _SIZES) for r in entry.results if r.hidden}
    if entry.coupled or not coupled:
        arrays |= {f"work_{name}": (("v", width), _SIZES) for name, width in WIDTHS.items()}
    return arrays


def _handed(entry: Quantity) -> int:
    """The largest number of arrays that a kernel hands to another one."""
    return max(len(part.arguments) + len(part.given) for part in parts(entry))


def scratch_text(name: str) -> str:
    """Source of the function ``scratch_NAME`` of a context: the size of a kernel's scratch space in bytes."""
    entry, coupled, integers = entry_of(name), name.startswith(COUPLED), 0
    arrays = [*_scratch_space(entry, coupled).values()]
    if coupled:
        integers = len(Context._fields) + _handed(entry)
        arrays += [(shape, _ROWS) for part in parts(entry) for shape, _ in _scratch_space(part, False).values()]
    size = " + ".join(_size(*x) for x in arrays)
    lines = [*_counts(coupled), f"integers = {integers}", f"return INTEGER * integers + REAL * ({size})"]
    return _indented([f"def scratch_{name}(context):", *lines])


def kernel_text(name: str) -> str:
    """Source of a kernel, which refuses states, and in the end results, that are not finite."""
    entry, coupled, c = entry_of(name), name.startswith(COUPLED), _CONTEXT
    sizes, freedoms, parents = (_FREEDOMS, "nv", c.InARow) if coupled else (_SIZES, "n", c.Parents)
    counts = [f"count, nq = {c.states}, {c.positions}"]
    counts += [f"n, links, path, above = {c.rows}, {c.links}, {c.path}, {c.above}"]
    more = [f"terms = array({c.Terms}, ({c.terms}, 4))", f"places = array({c.Places}, ({c.links}, {PLACE}))"]
    if coupled:
        counts = [f"count = {c.states}", *_counts(True)]
        more = _of_rows(entry)
    given = [(k, STATE[x]) for k, x in enumerate(entry.arguments) if x != "wrenches"]
    results = [(len(entry.arguments) + k, r.shape) for k, r in enumerate(entry.given)]
    lines = [
        *counts,
        f"table = array({c.Table}, (n + 1, {COLUMNS}))",
        f"where = integers({c.Where}, (n,))",
        f"groups = integers({c.Groups}, ({c.groups}, {charts.GROUP}))",
        f"moved = array({c.Moved}, (n + 1, {COLUMNS}))",
        *more,
        *_scratch(_scratch_space(entry, coupled), freedoms, parents),
        f"small = {_all_bounded(given, 'LARGEST', sizes)}",
        f"if not (small or {_all_bounded(given, 'LARGEST_FINITE', sizes)}):",
        "    return WRONG_INPUT",
        f"if not unit_quaternions(groups, {_of_all_states(0, STATE['q'], sizes)}, nq, count):",
        "    return WRONG_INPUT",
        "for b in range(count):",
        *(f"    {line}" for line in [*_of_one_state(entry, sizes), *(_coupled if coupled else _uncoupled)(entry)]),
        f"if not (small or {_all_bounded(results, 'LARGEST_FINITE', sizes)}):",
        "    return WRONG_INPUT",
        "return 0",
    ]
    return _indented([f"def {name}(context, arrays, at):", *lines])


def _counts(coupled: bool) -> list[str]:
    """Statements that give the sizes of arrays their names."""
    freedoms, rows = _CONTEXT.rows, _CONTEXT.joints if coupled else _CONTEXT.rows
    return [
        f"n, nv, nq = {rows}, {freedoms}, {_CONTEXT.positions}",
        f"links, path, above, steps = {_CONTEXT.links}, {_CONTEXT.path}, {_CONTEXT.above}, {_CONTEXT.steps}",
    ]


def _indented(lines: Sequence[str]) -> str:
    return "\n    ".join(lines) + "\n"


def _of_rows(entry: Quantity) -> list[str]:
    """Statements that define the couplings, and the context and arrays that are handed to kernels over the rows."""
    place = {field: k for k, field in enumerate(Context._fields)}
    of_rows = {"states": "1", "rows": "n", "positions": "n", "path": "steps", "groups": "0", "Table": _CONTEXT.Moved}
    return [
        f"couplings = array({_CONTEXT.Couplings}, (n, {COUPLING}))",
        f"on_path = array({_CONTEXT.OnPath}, (steps, {COUPLING}))",
        f"of_rows, handed = integers(at, ({len(place)},)), integers(at + INTEGER * {len(place)}, ({_handed(entry)},))",
        f"at += INTEGER * {len(place) + _handed(entry)}",
        f"for i in range({len(place)}):",
        "    of_rows[i] = context[i]",
        *(f"of_rows[{place[field]}] = {value}" for field, value in of_rows.items()),
    ]


def _scratch(arrays: Arrays, freedoms: str, parents: str) -> list[str]:
    """Statements that define arrays one after another from ``at`` on, and a workspace if it is among them."""
    lines = []
    for name, (dimensions, sizes) in arrays.items():
        lines += [
            f"{name} = array(at, {_plain_shape(dimensions, sizes)})",
            f"at += REAL * ({_size(dimensions, sizes)})",
        ]
    fields = [name for name in arrays if name.startswith("work_")]
    fields += [f"integers({parents}, ({freedoms},))", f"integers({_CONTEXT.Firsts}, ({freedoms} + 1,))"]
    return [*lines, f"work = Workspace({', '.join(fields)})"] if len(fields) > 2 else lines


def _of_all_states(k: int, dimensions: Sequence[Dimension], sizes: Sizes) -> str:
    """Text of the array of index k as one vector."""
    return f"array(arrays[{k}], (count * {_size(dimensions, sizes)},))"


def _all_bounded(arrays: Iterable[tuple[int, Sequence[Dimension]]], largest: str, sizes: Sizes) -> str:
    """Text of the condition that no entry of some arrays is NaN or beyond a bound."""
    return " and ".join(f"bounded({_of_all_states(k, dimensions, sizes)}, {largest})" for k, dimensions in arrays)


def _of_one_state(entry: Quantity, sizes: Sizes) -> list[str]:
    """Statements that define the arrays of state b; the names of results begin with ``out_``."""
    arrays = [(name, _size(STATE[name], sizes), _plain_shape(STATE[name], sizes)) for name in entry.arguments]
    arrays += [(f"out_{r.name}", _size(r.shape, sizes), _shape(r.shape, sizes)) for r in entry.given]
    return [
        f"{name} = array(arrays[{k}] + REAL * b * ({size}), {shape})" for k, (name, size, shape) in enumerate(arrays)
    ]


def _called(name: str, arguments: Sequence[str], returns: object) -> list[str]:
    """Statements that call a function, and return its status, if it returns one, unless it is 0."""
    call = f"{name}({', '.join(arguments)})"
    return [f"status = {call}", "if status != 0:", "    return status"] if returns is int else [call]


def _uncoupled(entry: Quantity) -> list[str]:
    """Statements that compute the quantity for state b."""
    lines = [
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
        *(["places"] if entry.places else []),
        *([f"({''.join(f'scratch{k}, ' for k in range(len(entry.scratch)))})"] if entry.scratch else []),
        "work",
        *entry.handed([f"out_{result.name}" for result in entry.results], lambda names: f"Record({', '.join(names)})"),
    ]
    lines += _called("recursion", arguments, signature(entry.recursion).return_annotation)
    for result in entry.results:
        if result.rate_of:
            lines.append(f"add_drift_of_columns(terms, qd, out_{result.rate_of}, out_{result.name})")
        if result.acceleration:
            lines.append(f"subtract_drift(terms, qd, out_{result.name})")
    return lines


def _coupled(entry: Quantity) -> list[str]:
    """Statements that compute the quantity over the rows for state b, and contract the results."""
    lines = [
        "recentre(table, where, groups, q, moved, x)",
        "follow(couplings, x)",
        *(f"spread(couplings, {v}, {_OF_ROWS[v]})" for v in ("qd", "qdd") if v in entry.arguments),
    ]
    for part in parts(entry):
        given = [_OF_ROWS.get(name, name) for name in part.arguments]
        given += [f"{part.name}_{r.name}" if r.contraction else f"out_{r.name}" for r in part.given]
        lines += [f"handed[{k}] = address_of({name})" for k, name in enumerate(given)]
        lines += _called(f"run_{part.name}", ["of_rows", "handed", "at"], int)
        for r in part.given:
            if r.contraction:
                over = "on_path" if "k" in r.shape else "couplings"
                out = f"{r.name}_of_freedoms" if entry.coupled else f"out_{r.name}"
                lines.append(f"{r.contraction.__name__}({over}, {part.name}_{r.name}, {out})")
    if entry.coupled:
        contracted = [f"{r.name}_of_freedoms" for part in parts(entry) for r in part.given]
        results = [f"out_{r.name}" for r in entry.results]
        scratch = [f"scratch{k}" for k in range(len(entry.coupled.scratch))]
        lines += _called("finish", [*contracted, *entry.coupled.arguments, *scratch, "work", *results], int)
    return lines
