"""What kernels are, and the C around their recursions: functions of a context, arrays and scratch space.

There are two kernels for each quantity. One is for trees in which each row of the table is a freedom. The other is for
trees in which joints follow others (``physics.couplings``): it calls kernels of the first kind over the rows, and
contracts the results. Addresses are integers. ``in_python`` computes the same without C.
"""

import re
from collections import namedtuple
from collections.abc import Iterable, Mapping, Sequence
from inspect import signature
from typing import Any

from screwdyn.physics import charts, couplings
from screwdyn.physics.couplings import COUPLING
from screwdyn.physics.quantities import ACCELERATIONS, ARGUMENTS, CATALOGUE, INTERNAL, Dimension, Quantity
from screwdyn.physics.table import COLUMNS, PLACE, WIDTHS, Workspace

# Begins the names of kernels for trees in which joints follow others.
COUPLED = "coupled_"
# All kernels by name; the step of one link knows nothing of other joints.
_NAMES = (*CATALOGUE, *INTERNAL)
KERNELS = (*_NAMES, *(COUPLED + name for name in _NAMES if name != "link_step"))
STATE: dict[str, Sequence[Dimension]] = {
    "q": ("q",),
    **{rate: ("v",) for rate in ARGUMENTS[1:]},
    "slip": (1, 18),
    "opening": ("L",),
    "onto": ("v", 2),
    "frame_above": (1, 18),
    "columns_above": ("p", 12),
}
# What dimensions stand for, over the freedoms and over the rows.
Sizes = Mapping[str, str]
_FREEDOMS: Sizes = {"v": "nv", "q": "nq", "L": "links", "10L": "columns", "k": "path", "p": "above"}
_ROWS: Sizes = {**_FREEDOMS, "v": "n", "k": "steps"}
# Arrays of the rows that follow from those of the freedoms.
_OF_ROWS = {"q": "x", "qd": "w", "qdd": "a", "qd_ref": "w_ref", "qdd_ref": "a_ref"}


class Context(
    namedtuple(
        "Context",
        "states rows positions links path above groups terms Table Where Groups Terms Moved Places Parents Firsts "
        "joints steps Couplings OnPath InARow columns",
        defaults=(0, 0, 0, 0, 0, 0),
    )
):
    """The arguments of a kernel other than its arrays: counts, and addresses in fields with a capital letter.

    ``rows`` is the number of freedoms, ``path`` and ``above`` those on the paths to a link and to its parent,
    ``columns`` ten times that of links. What follows ``Firsts`` before it is 0 unless joints follow others: the numbers
    of all rows and of those on the path, the couplings of both, and for each freedom the one before it.
    """


_CONTEXT = Context(*(f"context[{k}]" for k in range(len(Context._fields))))
# The places in a context from which shapes are read.
PLACES: dict[Dimension, int] = {
    d: Context._fields.index(field)
    for d, field in {"v": "rows", "q": "positions", "L": "links", "10L": "columns", "k": "path", "p": "above"}.items()
}


def entry_of(name: str) -> Quantity:
    """The entry of the catalogue for the name of a kernel."""
    quantity = name.removeprefix(COUPLED)
    return CATALOGUE.get(quantity) or INTERNAL[quantity]


def _parts(entry: Quantity) -> list[Quantity]:
    """The quantities over the rows from which a quantity follows if joints follow others."""
    return [entry_of(name) for name in entry.coupled.quantities] if entry.coupled else [entry]


def _scratch_space(entry: Quantity, coupled: bool) -> dict[str, tuple[Sequence[Dimension], Sizes]]:
    """The dimensions of the arrays of scratch space, and what these stand for."""
    arrays: dict[str, tuple[Sequence[Dimension], Sizes]] = {}
    if coupled:
        arrays |= {name: (("v",), _ROWS) for name in _OF_ROWS.values()}
        for part in _parts(entry):
            arrays |= {f"{part.name}_{r.name}": (r.shape, _ROWS) for r in part.given if r.contraction}
            if entry.coupled:
                arrays |= {f"{r.name}_of_freedoms": (r.shape, _FREEDOMS) for r in part.given}
    else:
        arrays |= {name: (("v",), _ROWS) for name in ("x", "a")}
        arrays |= {f"out_{r.name}": (r.shape, _ROWS) for r in entry.results if r.hidden}
    if entry.coupled or not coupled:
        space = entry.coupled.scratch if coupled and entry.coupled else entry.scratch
        arrays |= {f"scratch{k}": (shape, _FREEDOMS if coupled else _ROWS) for k, shape in enumerate(space)}
        arrays |= {f"work_{name}": (("v", width), _ROWS) for name, width in WIDTHS.items()}
    return arrays


def _extents(dimensions: Sequence[Dimension], sizes: Sizes = _FREEDOMS) -> list[str]:
    return [sizes[d] if isinstance(d, str) else str(d) for d in dimensions]


def _matrix(dimensions: Sequence[Dimension], sizes: Sizes = _FREEDOMS) -> list[str]:
    """The extents of a result for recursions, where several matrices form one."""
    *before, last = _extents(dimensions, sizes)
    return [*([" * ".join(before)] if before else []), last]


def _size(dimensions: Sequence[Dimension], sizes: Sizes = _FREEDOMS) -> str:
    """Text of the number of entries of an array."""
    return " * ".join(_extents(dimensions, sizes)) or "1"


class _Kernel:
    """The C text of a kernel; ``to`` translates the functions that it calls. Lines that define an unused name go."""

    def __init__(self, to: Any, name: str) -> None:
        self.to, self.entry, self.coupled = to, entry_of(name), name.startswith(COUPLED)
        self.indent = "    "
        self.lines: list[tuple[str, str]] = []
        self.kinds: dict[str, Any] = {}
        c, of_rows = _CONTEXT, self.coupled
        counts = {"count": c.states, "n": c.joints if of_rows else c.rows, "nv": c.rows, "nq": c.positions}
        counts |= {"links": c.links, "path": c.path, "steps": c.steps if of_rows else c.path, "above": c.above}
        counts |= {"columns": c.columns}
        for count, value in counts.items():
            self.define(count, f"const integer {count} = {value};")

    def do(self, *lines: str) -> None:
        """Write statements."""
        self.lines += [("", self.indent + line) for line in lines]

    def define(self, name: str, line: str) -> None:
        """Write a definition, which goes unless the name is used."""
        self.lines.append((name, self.indent + line))

    def array(self, name: str, at: str, extents: Sequence[str], of: str = "real") -> None:
        """Define an array at an address."""
        kind, self.kinds[name] = self.to.array(of, len(extents))
        self.define(name, f"{kind} {name} = MAKE({kind}){{({of} *){at}, {{{', '.join(extents)}}}}};")

    def record(self, name: str, fields: Sequence[str], cls: Any = tuple) -> str:
        """Define a tuple of arrays, or a named tuple; returns its name."""
        kind = self.kinds[name] = self.to.tuple_kind([self.kinds[x] for x in fields], cls)
        self.define(name, f"const {kind.name} {name} = {{{', '.join(fields)}}};")
        return name

    def call(self, f: Any, *given: str) -> str:
        """Text of a call; what is no array is an integer."""
        name, _ = self.to.function(f, tuple(self.kinds.get(x, "integer") for x in given))
        return f"{name}({', '.join(given)})"

    def compute(self, f: Any, *given: str) -> None:
        """Call a function, and return its status, if it returns one, unless it is 0."""
        call = self.call(f, *given)
        self.do(*_or_status(call) if signature(f).return_annotation is int else [f"{call};"])

    def text(self, head: str) -> str:
        """The function."""
        words = re.findall(r"\w+", " ".join(line for _, line in self.lines))
        return "\n".join([head, "{", *(line for name, line in self.lines if words.count(name) != 1), "}"])


def _or_status(call: str) -> list[str]:
    return [f"status = {call};", "if (status != 0)", "    return status;"]


def write_kernel(to: Any, name: str) -> str:
    """The C text of a kernel, and of the function that gives the size of its scratch space in bytes."""
    k, c = _Kernel(to, name), _CONTEXT
    entry, coupled = k.entry, k.coupled
    k.array("table", c.Table, ["n + 1", str(COLUMNS)])
    k.array("where", c.Where, ["n"], "integer")
    k.array("groups", c.Groups, [c.groups, str(charts.GROUP)], "integer")
    k.array("moved", c.Moved, ["n + 1", str(COLUMNS)])
    k.array("terms", c.Terms, [c.terms, "4"])
    k.array("places", c.Places, [c.links, str(PLACE)])
    k.define("status", "integer status;")
    handed = len(Context._fields)
    integers = handed + max(len(part.arguments) + len(part.given) for part in _parts(entry)) if coupled else 0
    arrays = _scratch_space(entry, coupled)
    if coupled:
        k.array("couplings", c.Couplings, ["n", str(COUPLING)])
        k.array("on_path", c.OnPath, ["steps", str(COUPLING)])
        k.do(f"integer *const of_rows = (integer *)at, *const handed = of_rows + {handed};")
        k.do(f"at += (integer)sizeof(integer) * {integers};", f"for (integer i = 0; i < {handed}; i++)")
        k.do("    of_rows[i] = context[i];")
        of_rows = {"states": "1", "rows": "n", "positions": "n", "path": "steps", "groups": "0", "Table": c.Moved}
        k.do(*(f"of_rows[{Context._fields.index(field)}] = {value};" for field, value in of_rows.items()))
    for array, (dimensions, sizes) in arrays.items():
        k.array(array, "at", (_extents if array.startswith("scratch") else _matrix)(dimensions, sizes))
        k.do(f"at += (integer)sizeof(real) * ({_size(dimensions, sizes)});")
    if "work_poses" in arrays:
        freedoms, parents = ("nv", c.InARow) if coupled else ("n", c.Parents)
        k.array("parents", parents, [freedoms], "integer")
        k.array("firsts", c.Firsts, [f"{freedoms} + 1"], "integer")
        fields = [x for x in arrays if x.startswith("work_")] + ["parents", "firsts"]
        k.record("work", fields, Workspace)
    given = [*enumerate(STATE[x] for x in entry.arguments)]
    results = [(len(entry.arguments) + i, r.shape) for i, r in enumerate(entry.given)]
    k.do(f"const bool small = {_all_bounded(given, 'SCREWDYN_LARGEST')};")
    k.do(f"if (!(small || ({_all_bounded(given, 'SCREWDYN_LARGEST_FINITE')})))", "    return WRONG_INPUT;")
    k.array("every_q", "arrays[0]", ["count * nq"])
    k.do(f"if (!{k.call(charts.unit_quaternions, 'groups', 'every_q', 'nq', 'count')})", "    return WRONG_INPUT;")
    k.do("for (integer b = 0; b < count; b++) {")
    k.indent *= 2
    shapes = [(x, STATE[x]) for x in entry.arguments] + [(f"out_{r.name}", r.shape) for r in entry.given]
    for i, (array, shape) in enumerate(shapes):
        k.array(array, f"arrays[{i}] + b * ({_size(shape)})", _matrix(shape or (1,)))
    (_coupled if coupled else _uncoupled)(k)
    k.indent = "    "
    k.do("}", f"if (!(small || ({_all_bounded(results, 'SCREWDYN_LARGEST_FINITE')})))", "    return WRONG_INPUT;")
    k.do("return 0;")
    text = k.text(f"SCREWDYN_API integer screwdyn_run_{name}(words context, words arrays, integer at)")
    space = _Kernel(to, name)
    spaces = [*arrays.values()]
    if coupled:
        spaces += [x for part in _parts(entry) for x in _scratch_space(part, False).values()]
    size = " + ".join(_size(*x) for x in spaces)
    space.do(f"return (integer)sizeof(integer) * {integers} + (integer)sizeof(real) * ({size});")
    return text + "\n\n" + space.text(f"SCREWDYN_API integer screwdyn_scratch_{name}(words context)")


def _all_bounded(arrays: Iterable[tuple[int, Sequence[Dimension]]], largest: str) -> str:
    """Text of the condition that no entry of some arrays is NaN or beyond a bound."""
    texts = (f"bounded((real *)arrays[{k}], count * ({_size(dimensions)}), {largest})" for k, dimensions in arrays)
    return " && ".join(texts)


def _uncoupled(k: _Kernel) -> None:
    """Compute the quantity for state b."""
    entry = k.entry
    k.kinds |= {"rows": k.kinds["table"], "coordinates": k.kinds["q"]}
    k.do("Array2 rows = table;", "Array1 coordinates = q;", "if (groups.shape[0] > 0) {")
    k.do(f"    {k.call(charts.recentre, 'table', 'where', 'groups', 'q', 'moved', 'x')};")
    k.do("    rows = moved;", "    coordinates = x;", "}")
    for given, rates in ACCELERATIONS.items():
        if given in (*entry.arguments, *entry.at_rest):
            start = f"{given}.data[i]" if given in entry.arguments else "0"
            k.do("for (integer i = 0; i < n; i++)", f"    a.data[i] = {start};")
            k.compute(charts.drift, "terms", "qd", rates, "a")
    handed = {"q": "coordinates"} | dict.fromkeys(ACCELERATIONS, "a")
    k.compute(
        entry.recursion,
        "rows",
        *(handed.get(x, x) for x in (*entry.arguments, *entry.at_rest)),
        *(["places"] if entry.places else []),
        *([k.record("scratch", [f"scratch{i}" for i in range(len(entry.scratch))])] if entry.scratch else []),
        "work",
        *entry.handed([f"out_{r.name}" for r in entry.results], lambda names: k.record("share", names, entry.record)),
    )
    for result in entry.results:
        if result.rate_of:
            k.compute(charts.add_drift_of_columns, "terms", "qd", f"out_{result.rate_of}", f"out_{result.name}")
        if result.acceleration:
            k.compute(charts.subtract_drift, "terms", "qd", f"out_{result.name}")
        if result.momentum:
            k.compute(result.drifted, "terms", "qd", f"out_{result.momentum}", f"out_{result.name}")


def _coupled(k: _Kernel) -> None:
    """Compute the quantity over the rows for state b, and contract the results."""
    entry = k.entry
    k.compute(charts.recentre, "table", "where", "groups", "q", "moved", "x")
    k.compute(couplings.follow, "couplings", "x")
    for rate, rows in [*_OF_ROWS.items()][1:]:
        if rate in entry.arguments:
            k.compute(couplings.spread, "couplings", rate, rows)
    for part in _parts(entry):
        given = [_OF_ROWS.get(name, name) for name in part.arguments]
        plain = "{}_of_freedoms" if entry.coupled else "out_{}"
        given += [f"{part.name}_{r.name}" if r.contraction else plain.format(r.name) for r in part.given]
        k.do(*(f"handed[{i}] = (integer){name}.data;" for i, name in enumerate(given)))
        k.do(*_or_status(f"screwdyn_run_{part.name}(of_rows, handed, at)"))
        for r in part.given:
            if r.contraction:
                over = "on_path" if "k" in r.shape else "couplings"
                out = f"{r.name}_of_freedoms" if entry.coupled else f"out_{r.name}"
                k.compute(r.contraction, over, f"{part.name}_{r.name}", out)
    if entry.coupled:
        contracted = [f"{r.name}_of_freedoms" for part in _parts(entry) for r in part.given]
        scratch = [f"scratch{i}" for i in range(len(entry.coupled.scratch))]
        results = [f"out_{r.name}" for r in entry.results]
        k.compute(entry.coupled.finish, *contracted, *entry.coupled.arguments, *scratch, "work", *results)
