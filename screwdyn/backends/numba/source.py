"""Source of the kernels: functions of a context and of addresses of arrays, made from the entries of the catalogue.

There are two kernels for each quantity. One is for trees in which each row of the table is a freedom. The other is for
trees in which joints follow others (``physics.couplings``): it calls kernels of the first kind over the rows, by their
addresses, and contracts the results.
"""

from collections.abc import Iterable, Mapping, Sequence
from inspect import signature
from typing import Any, NamedTuple

from screwdyn.physics import charts
from screwdyn.physics.couplings import COUPLING
from screwdyn.physics.internal import INTERNAL
from screwdyn.physics.quantities import CATALOGUE, Dimension, Quantity
from screwdyn.physics.table import COLUMNS, PLACE, WIDTHS

__all__ = [
    "COUPLED",
    "KERNELS",
    "STATE",
    "Arrays",
    "Context",
    "Coupled",
    "coupled_text",
    "functions",
    "kernel_text",
    "parts",
    "scratch_space",
]

# Begins the names of kernels for trees in which joints follow others.
COUPLED = "coupled_"
# The kernels that these call, in the order of the addresses in their context.
KERNELS = (*CATALOGUE, *INTERNAL)
STATE: dict[str, Sequence[Dimension]] = {
    "q": ("q",),
    "qd": ("v",),
    "qdd": ("v",),
    "tau": ("v",),
    "wrenches": ("n", 6),
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


class Context(NamedTuple):
    """The arguments of a kernel other than its arrays: counts, and addresses in fields with a capital letter.

    ``rows`` is the number of freedoms, ``path`` and ``above`` those on the paths to a link and to its parent, ``space``
    the number of entries of the scratch space at ``Work``.
    """

    states: Any
    rows: Any
    positions: Any
    links: Any
    path: Any
    above: Any
    groups: Any
    terms: Any
    space: Any
    Table: Any
    Where: Any
    Groups: Any
    Terms: Any
    Moved: Any
    Places: Any
    Work: Any
    Parents: Any
    Firsts: Any


class Coupled(NamedTuple):
    """What follows in the context if joints follow others: the numbers of all rows and of those on the path; addresses.

    ``OnPath`` are the couplings of the rows on the path. ``Kernels`` are the addresses of the kernels that are called,
    and ``OfRows`` is the context for these, with ``Moved`` as its table.
    """

    joints: Any
    steps: Any
    Couplings: Any
    OnPath: Any
    OfRows: Any
    Kernels: Any


_CONTEXT = Context(*(f"context[{k}]" for k in range(len(Context._fields))))
_COUPLED = Coupled(*(f"context[{len(Context._fields) + k}]" for k in range(len(Coupled._fields))))


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


def parts(entry: Quantity) -> list[Quantity]:
    """The quantities over the rows from which a quantity follows if joints follow others."""
    return [CATALOGUE.get(name) or INTERNAL[name] for name in entry.coupled.quantities] if entry.coupled else [entry]


def functions(entry: Quantity, coupled: bool) -> dict[str, Any]:
    """The functions of the physics that a kernel calls, by their names in its source."""
    if not coupled:
        return {"recursion": entry.recursion}
    found: dict[str, Any] = {f.__name__: f for part in parts(entry) for r in part.given if (f := r.contraction)}
    return found | ({"finish": entry.coupled.finish} if entry.coupled else {})


def scratch_space(entry: Quantity, coupled: bool = False) -> Arrays:
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


def _indented(lines: Sequence[str]) -> str:
    return "\n    ".join(lines) + "\n"


def _arrays_of_model() -> list[str]:
    """Statements that define the arrays of the model that both kinds of kernels read."""
    return [
        f"table = array({_CONTEXT.Table}, (n + 1, {COLUMNS}))",
        f"where = integers({_CONTEXT.Where}, (n,))",
        f"groups = integers({_CONTEXT.Groups}, ({_CONTEXT.groups}, {charts.GROUP}))",
        f"moved = array({_CONTEXT.Moved}, (n + 1, {COLUMNS}))",
    ]


def _scratch(arrays: Arrays, freedoms: str) -> list[str]:
    """Statements that define arrays one after another in the scratch space, and a workspace if it is among them.

    They return if the scratch space is too small.
    """
    lines = [f"at = {_CONTEXT.Work}"]
    for name, (dimensions, sizes) in arrays.items():
        lines += [f"{name} = array(at, {_plain_shape(dimensions, sizes)})", f"at += 8 * {_size(dimensions, sizes)}"]
    lines += [f"if at > {_CONTEXT.Work} + 8 * {_CONTEXT.space}:", "    return NO_SPACE"]
    fields = [name for name in arrays if name.startswith("work_")]
    fields += [f"integers({_CONTEXT.Parents}, ({freedoms},))", f"integers({_CONTEXT.Firsts}, ({freedoms} + 1,))"]
    return [*lines, f"work = Workspace({', '.join(fields)})"] if len(fields) > 2 else lines


def _checked(entry: Quantity, sizes: Sizes) -> list[str]:
    """Statements that refuse states that are not finite."""
    given = [(k, STATE[x]) for k, x in enumerate(entry.arguments) if x != "wrenches"]
    return [
        f"small = {_all_bounded(given, 'LARGEST', sizes)}",
        f"if not (small or {_all_bounded(given, 'LARGEST_FINITE', sizes)}):",
        "    return WRONG_INPUT",
        f"if not unit_quaternions(groups, {_of_all_states(0, STATE['q'], sizes)}, nq, count):",
        "    return WRONG_INPUT",
    ]


def _of_all_states(k: int, dimensions: Sequence[Dimension], sizes: Sizes) -> str:
    """Text of the array of index k as one vector."""
    return f"array(arrays[{k}], (count * {_size(dimensions, sizes)},))"


def _all_bounded(arrays: Iterable[tuple[int, Sequence[Dimension]]], largest: str, sizes: Sizes) -> str:
    """Text of the condition that no entry of some arrays is NaN or beyond a bound."""
    return " and ".join(f"bounded({_of_all_states(k, dimensions, sizes)}, {largest})" for k, dimensions in arrays)


def _for_each_state(entry: Quantity, sizes: Sizes, statements: Sequence[str]) -> list[str]:
    """Statements for each state; at the end they refuse results that are not finite, which a small state never has."""
    results = [(len(entry.arguments) + k, r.shape) for k, r in enumerate(entry.given)]
    return [
        "for b in range(count):",
        *(f"    {line}" for line in statements),
        f"if not (small or {_all_bounded(results, 'LARGEST_FINITE', sizes)}):",
        "    return WRONG_INPUT",
        "return 0",
    ]


def _of_one_state(entry: Quantity, sizes: Sizes) -> list[str]:
    """Statements that define the arrays of state b; the names of results begin with ``out_``."""
    arrays = [(name, _size(STATE[name], sizes), _plain_shape(STATE[name], sizes)) for name in entry.arguments]
    arrays += [(f"out_{r.name}", _size(r.shape, sizes), _shape(r.shape, sizes)) for r in entry.given]
    return [f"{name} = array(arrays[{k}] + 8 * b * {size}, {shape})" for k, (name, size, shape) in enumerate(arrays)]


def _called(name: str, arguments: Sequence[str], returns: object) -> list[str]:
    """Statements that call a function, and return its status, if it returns one, unless it is 0."""
    call = f"{name}({', '.join(arguments)})"
    return [f"status = {call}", "if status != 0:", "    return status"] if returns is int else [call]


def kernel_text(entry: Quantity) -> str:
    """Source of a quantity's kernel."""
    lines = [
        f"def {entry.name}(context, arrays):",
        f"count, n, nq, links, path, above = {', '.join(_CONTEXT[:6])}",
        *_arrays_of_model(),
        f"terms = array({_CONTEXT.Terms}, ({_CONTEXT.terms}, 4))",
        f"places = array({_CONTEXT.Places}, (links, {PLACE}))",
        *_scratch(scratch_space(entry), "n"),
        *_checked(entry, _SIZES),
        *_for_each_state(entry, _SIZES, _one_state(entry)),
    ]
    return _indented(lines)


def _one_state(entry: Quantity) -> list[str]:
    """Statements that compute the quantity for state b."""
    lines = [
        *_of_one_state(entry, _SIZES),
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
        *(f"scratch{k}" for k in range(len(entry.scratch))),
        "work",
        *(f"out_{result.name}" for result in entry.results),
    ]
    lines += _called("recursion", arguments, signature(entry.recursion).return_annotation)
    for result in entry.results:
        if result.rate_of:
            lines.append(f"add_drift_of_columns(terms, qd, out_{result.rate_of}, out_{result.name})")
        if result.acceleration:
            lines.append(f"subtract_drift(terms, qd, out_{result.name})")
    return lines


def coupled_text(entry: Quantity) -> str:
    """Source of a quantity's kernel for trees in which joints follow others."""
    lines = [
        f"def {COUPLED}{entry.name}(context, arrays):",
        f"count, nv, nq, links, path = {', '.join(_CONTEXT[:5])}",
        f"n, steps = {_COUPLED.joints}, {_COUPLED.steps}",
        *_arrays_of_model(),
        f"couplings = array({_COUPLED.Couplings}, (n, {COUPLING}))",
        f"on_path = array({_COUPLED.OnPath}, (steps, {COUPLING}))",
        f"kernels = integers({_COUPLED.Kernels}, ({len(KERNELS)},))",
        *_scratch(scratch_space(entry, True), "nv"),
        f"handed = integers(at, ({max(len(part.arguments) + len(part.given) for part in parts(entry))},))",
        *_checked(entry, _FREEDOMS),
        *_for_each_state(entry, _FREEDOMS, _one_coupled_state(entry)),
    ]
    return _indented(lines)


def _one_coupled_state(entry: Quantity) -> list[str]:
    """Statements that compute the quantity over the rows for state b, and contract the results."""
    lines = [
        *_of_one_state(entry, _FREEDOMS),
        "recentre(table, where, groups, q, moved, x)",
        "follow(couplings, x)",
        *(f"spread(couplings, {v}, {_OF_ROWS[v]})" for v in ("qd", "qdd") if v in entry.arguments),
    ]
    for part in parts(entry):
        given = [_OF_ROWS.get(name, name) for name in part.arguments]
        given += [f"{part.name}_{r.name}" if r.contraction else f"out_{r.name}" for r in part.given]
        lines += [f"handed[{k}] = address_of({name})" for k, name in enumerate(given)]
        lines += _called("run", [f"kernels[{KERNELS.index(part.name)}]", _COUPLED.OfRows, "address_of(handed)"], int)
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
