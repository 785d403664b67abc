"""Source of the kernels: functions of a context and of addresses of arrays, made from the entries of the catalogue.

There are two kernels for each quantity. One is for trees in which each row of the table is a freedom; the other is for
trees in which joints follow others (``physics.couplings``), whose results are contracted, so that these cost others
nothing.
"""

from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Any, NamedTuple

from screwdyn.physics import charts
from screwdyn.physics.couplings import COUPLING
from screwdyn.physics.quantities import CATALOGUE, Dimension, Quantity
from screwdyn.physics.table import COLUMNS, PLACE, WIDTHS, Workspace

__all__ = ["COUPLED", "STATE", "Context", "coupled_text", "kernel_text", "recursions", "scratch_space"]

# Begins the names of kernels for trees in which joints follow others.
COUPLED = "coupled_"
STATE: dict[str, Sequence[Dimension]] = {
    "q": ("q",),
    "qd": ("v",),
    "qdd": ("v",),
    "tau": ("v",),
    "wrenches": ("n", 6),
}
Sizes = Mapping[str, str]
# What dimensions stand for: in a kernel without couplings; over the rows and over the freedoms in one with couplings.
_SIZES: Sizes = {"v": "n", "n": "n", "q": "nq", "L": "links", "k": "path", "6v": "6 * n"}
_ROWS: Sizes = {**_SIZES, "k": "steps"}
_FREEDOMS: Sizes = {**_SIZES, "v": "nv"}
Arrays = Mapping[str, tuple[Sequence[Dimension], Sizes]]


class Context(NamedTuple):
    """The arguments of a kernel other than its arrays: counts, and addresses in fields with a capital letter.

    ``rows`` is the number of freedoms; ``joints`` and ``Couplings`` are those of all rows, if joints follow others.
    """

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
    joints: Any
    Couplings: Any


_CONTEXT = Context(*(f"context[{k}]" for k in range(len(Context._fields))))


def _extents(dimensions: Sequence[Dimension], sizes: Sizes) -> list[str]:
    return [sizes[d] if isinstance(d, str) else str(d) for d in dimensions]


def _size(dimensions: Sequence[Dimension], sizes: Sizes) -> str:
    """Text of the number of entries of an array."""
    return " * ".join(_extents(dimensions, sizes)) or "1"


def _shape(dimensions: Sequence[Dimension], sizes: Sizes) -> str:
    """Text of a shape for recursions: a number is an array of length 1, several matrices form one."""
    if len(dimensions) > 2:
        dimensions, sizes = ("first", dimensions[-1]), {**sizes, "first": _size(dimensions[:-1], sizes)}
    return f"({', '.join(_extents(dimensions or (1,), sizes))},)"


def _plain_shape(dimensions: Sequence[Dimension], sizes: Sizes) -> str:
    return f"({', '.join(_extents(dimensions, sizes))},)"


def scratch_space(entry: Quantity, coupled: bool = False) -> Arrays:
    """Arrays of scratch space of a kernel: their dimensions, and what these stand for."""
    rows = _ROWS if coupled else _SIZES
    arrays: dict[str, tuple[Sequence[Dimension], Sizes]] = {name: (("v",), rows) for name in ("x", "a")}
    arrays |= {f"work_{name}": (("v", width), rows) for name, width in WIDTHS._asdict().items()}
    if coupled:
        arrays |= {"w": (("v",), rows), "on_path": (("k", COUPLING), rows)}
    for part in _parts(entry, coupled):
        arrays |= {f"{part.name}_scratch{k}": (shape, rows) for k, shape in enumerate(part.scratch)}
        contracted = [r for r in part.results if r.hidden or (coupled and r.contraction)]
        arrays |= {f"{part.name}_{r.name}": (r.shape, rows) for r in contracted}
        if part is not entry:
            arrays |= {f"{r.name}_of_freedoms": (r.shape, _FREEDOMS) for r in part.given}
    return arrays


def _parts(entry: Quantity, coupled: bool) -> list[Quantity]:
    """The quantities whose recursions a kernel runs."""
    return [CATALOGUE[name] for name in entry.coupled.quantities] if coupled and entry.coupled else [entry]


def recursions(entry: Quantity, coupled: bool = False) -> dict[str, Any]:
    """The functions that a kernel calls by the names of quantities."""
    functions: dict[str, Any] = {f"{part.name}_recursion": part.recursion for part in _parts(entry, coupled)}
    if coupled and entry.coupled:
        functions["finish"] = entry.coupled.finish
    functions |= {f.__name__: f for part in _parts(entry, coupled) for r in part.results if (f := r.contraction)}
    return functions


def kernel_text(entry: Quantity) -> str:
    """Source of a quantity's kernel."""
    lines = [f"def {entry.name}(context, arrays):", f"count, n, nq, links, path = {', '.join(_CONTEXT[:5])}"]
    return _indented([*lines, *_arrays(entry, False), *_checked(entry, _SIZES), *_for_each_state(_one_state(entry))])


def coupled_text(entry: Quantity) -> str:
    """Source of a quantity's kernel for trees in which joints follow others."""
    lines = [
        f"def {COUPLED}{entry.name}(context, arrays):",
        f"count, nv, nq, links, path = {', '.join(_CONTEXT[:5])}",
        f"n = {_CONTEXT.joints}",
        *_arrays(entry, True),
    ]
    return _indented([*lines, *_checked(entry, _FREEDOMS), *_for_each_state(_one_coupled_state(entry))])


def _indented(lines: Sequence[str]) -> str:
    return "\n    ".join(lines) + "\n"


def _arrays(entry: Quantity, coupled: bool) -> list[str]:
    """Statements that define the arrays of the model and the scratch space."""
    lines = [
        f"table = array({_CONTEXT.Table}, 0, (n + 1, {COLUMNS}))",
        f"where = integers({_CONTEXT.Where}, n)",
        f"groups = array({_CONTEXT.Groups}, 0, ({_CONTEXT.groups}, {charts.GROUP}))",
        f"terms = array({_CONTEXT.Terms}, 0, ({_CONTEXT.terms}, 4))",
        f"moved = array({_CONTEXT.Moved}, 0, (n + 1, {COLUMNS}))",
        f"places = array({_CONTEXT.Places}, 0, (links, {PLACE}))",
    ]
    if coupled:
        lines += [
            f"couplings = array({_CONTEXT.Couplings}, 0, (n, {COUPLING}))",
            "steps = rows_on_path(table, place_row(places, 0)) if links > 0 else 0",
        ]
    first = "0"
    for name, (dimensions, sizes) in scratch_space(entry, coupled).items():
        lines.append(f"{name} = array({_CONTEXT.Work}, {first}, {_plain_shape(dimensions, sizes)})")
        first += f" + {name}.size"
    lines.append(f"work = Workspace({', '.join(f'work_{name}' for name in Workspace._fields)})")
    if coupled:
        lines += ["if links > 0:", "    columns_of_path(table, couplings, place_row(places, 0), on_path)"]
    return lines


def _checked(entry: Quantity, sizes: Sizes) -> list[str]:
    """Statements that refuse states that are not finite."""
    whole = [f"array(arrays[{k}], 0, (count * {_size(STATE[x], sizes)},))" for k, x in enumerate(entry.arguments)]
    checks = [f"finite({states})" for x, states in zip(entry.arguments, whole, strict=True) if x != "wrenches"]
    return [
        f"if not ({' and '.join(checks)} and unit_quaternions(groups, {whole[0]}, nq, count)):",
        "    return WRONG_INPUT",
    ]


def _for_each_state(statements: Sequence[str]) -> list[str]:
    return ["for b in range(count):", *(f"    {line}" for line in statements), "return 0"]


def _of_one_state(entry: Quantity, sizes: Sizes, prefix: str) -> list[str]:
    """Statements that define the arrays of state b; the names of results begin with a prefix."""
    arrays = [(name, _size(STATE[name], sizes), _plain_shape(STATE[name], sizes)) for name in entry.arguments]
    arrays += [(f"{prefix}{r.name}", _size(r.shape, sizes), _shape(r.shape, sizes)) for r in entry.given]
    return [f"{name} = array(arrays[{k}], b * {size}, {shape})" for k, (name, size, shape) in enumerate(arrays)]


def _one_state(entry: Quantity) -> list[str]:
    """Statements that compute the quantity for state b."""
    lines = [
        *_of_one_state(entry, _SIZES, f"{entry.name}_"),
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
    lines += _recursion(entry, {"q": "coordinates", "qdd": "a"}, "qd")
    return lines


def _recursion(entry: Quantity, handed: Mapping[str, str], rates: str) -> list[str]:
    """Statements that call a recursion, and add the terms of moving charts."""
    arguments = [
        "rows",
        *(handed.get(name, name) for name in (*entry.arguments, *entry.at_rest)),
        *(["places"] if entry.links else []),
        *(f"{entry.name}_scratch{k}" for k in range(len(entry.scratch))),
        "work",
        *(f"{entry.name}_{result.name}" for result in entry.results),
    ]
    lines = _called(f"{entry.name}_recursion", arguments, entry.recursion)
    for result in entry.results:
        if result.rate_of:
            lines.append(f"add_rate(terms, {rates}, {entry.name}_{result.rate_of}, {entry.name}_{result.name})")
        if result.acceleration:
            lines.append(f"subtract_drift(terms, {rates}, {entry.name}_{result.name})")
    return lines


def _called(name: str, arguments: Sequence[str], function: Any) -> list[str]:
    """Statements that call a function, and return its status unless it is 0."""
    call = f"{name}({', '.join(arguments)})"
    if signature(function).return_annotation is not int:
        return [call]
    return [f"status = {call}", "if status != 0:", "    return status"]


def _one_coupled_state(entry: Quantity) -> list[str]:
    """Statements that compute the quantity over the rows for state b, and contract the results."""
    lines = [
        *_of_one_state(entry, _FREEDOMS, "out_"),
        "recentre(table, where, groups, q, moved, x)",
        "follow(couplings, x)",
        "rows = moved",
    ]
    for part in _parts(entry, True):
        state = (*part.arguments, *part.at_rest)
        lines += ["spread(couplings, qd, w)"] if "qd" in state else []
        if "qdd" in state:
            given = (
                ["spread(couplings, qdd, a)"] if "qdd" in part.arguments else ["for i in range(n):", "    a[i] = 0.0"]
            )
            lines += [*given, "drift(terms, w, a)"]
        lines += [f"{part.name}_{r.name} = out_{r.name}" for r in part.given if r.contraction is None]
        lines += _recursion(part, {"q": "x", "qd": "w", "qdd": "a"}, "w")
        for r in part.given:
            if r.contraction is not None:
                over = "on_path" if "k" in r.shape else "couplings"
                out = f"out_{r.name}" if part is entry else f"{r.name}_of_freedoms"
                lines.append(f"{r.contraction.__name__}({over}, {part.name}_{r.name}, {out})")
    if entry.coupled:
        parts = [f"{r.name}_of_freedoms" for part in _parts(entry, True) for r in part.given]
        results = [f"out_{r.name}" for r in entry.results]
        lines += _called("finish", [*parts, *entry.coupled.arguments, "work", *results], entry.coupled.finish)
    return lines
