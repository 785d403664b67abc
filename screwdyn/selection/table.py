"""The criteria of several arms as a table of text."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from screwdyn.selection.criteria import Criteria

__all__ = ["table"]

_UNITS = {1: "m", 2: "m²", 3: "m³"}


class _Line(NamedTuple):
    """A criterion: its value, how it is written, and whether the least or the greatest value is best."""

    label: str
    value: Callable[[Criteria], float]
    text: Callable[[Criteria], str]
    best: Callable[..., float]


def table(arms: Mapping[str, Criteria]) -> str:
    """A column for each arm; * marks the best values of a line, unless all are equal."""
    # Lengths, areas and volumes cannot be compared.
    alike = len({c.dimension for c in arms.values()}) == 1
    rows = [("", *arms)]
    for line in _lines(arms):
        values = [line.value(c) for c in arms.values()]
        marked = len({*values}) > 1 and (alike or line.best is min)
        best = line.best(values)
        marks = [" *" if marked and value == best else "" for value in values]
        rows.append((line.label, *(line.text(c) + mark for c, mark in zip(arms.values(), marks, strict=True))))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(f"{c:{w}}" for c, w in zip(row, widths, strict=True)).rstrip() for row in rows)


def _lines(arms: Mapping[str, Criteria]) -> Iterator[_Line]:
    first = next(iter(arms.values()))
    for what in first.operations:
        yield _operations(what)
    yield _number(f"time of inverse dynamics / {next(iter(arms))}", lambda c: c.time, min)
    yield _Line("workspace", lambda c: c.workspace.value, _size, max)
    yield _number("manipulability, largest", lambda c: c.manipulability, max)
    yield _number("manipulability, mean", lambda c: c.mean_manipulability, max)
    yield _number("condition of M, median", lambda c: c.condition.median, min)
    yield _number("condition of M, largest", lambda c: c.condition.largest, min)
    yield _number("coupling of M, median", lambda c: c.coupling.median, min)
    yield _number("coupling of M, largest", lambda c: c.coupling.largest, min)


def _operations(what: str) -> _Line:
    def text(c: Criteria) -> str:
        count = c.operations[what]
        shown = [f"{count[key]} {name}" for key, name in (("mul", "mul"), ("add", "add"), ("div", "div")) if count[key]]
        return ", ".join([*shown, f"{count['sincos']} sin/cos"] if count["sincos"] else shown or ["none"])

    return _Line(f"{what}: operations", lambda c: sum(c.operations[what].values()), text, min)


def _number(label: str, value: Callable[[Criteria], float], best: Callable[..., float]) -> _Line:
    """A line of numbers with three digits, which are also what is compared."""
    return _Line(label, lambda c: float(f"{value(c):.3g}"), lambda c: f"{value(c):.3g}", best)


def _size(c: Criteria) -> str:
    return f"{c.workspace.value:.4g} ± {c.workspace.error:.1g} {_UNITS[c.dimension]}"
