"""The criteria of several arms as a table of text."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

from screwdyn.papers.selection.criteria import Criteria

__all__ = ["table"]

_UNITS = {1: "m", 2: "m²", 3: "m³"}
# Relative errors of times, and over the default number of samples of means and medians, and of largest values.
_TIME, _MEAN, _LARGEST = 0.02, 0.02, 0.1


class _Line(NamedTuple):
    """A criterion.

    Attributes
    ----------
    label : str
    value : function of Criteria
        NaN if it is not available.
    error : function of Criteria
        Values are distinguished if they differ by more than the sum of their errors.
    text : function of Criteria
    best : min or max
    """

    label: str
    value: Callable[[Criteria], float]
    error: Callable[[Criteria], float]
    text: Callable[[Criteria], str]
    best: Callable[..., Any]

    def cells(self, arms: Collection[Criteria], ranked: bool) -> Iterator[str]:
        """The texts, where * marks the best of the values that are available, unless all of them are."""
        values = [(self.value(c), self.error(c)) for c in arms]
        known = [x for x in values if not math.isnan(x[0])]
        best, error = self.best(known, default=(math.nan, 0.0))
        equal = [abs(value - best) <= error + own for value, own in values]
        distinct = ranked and sum(equal) < len(known)
        for c, (value, _), mark in zip(arms, values, equal, strict=True):
            yield "n/a" if math.isnan(value) else self.text(c) + " *" * (distinct and mark)


def table(arms: Mapping[str, Criteria]) -> str:
    """A column for each arm; * marks the best values of a line, unless all are equal within their errors."""
    # Lengths, areas and volumes cannot be compared.
    alike = len({c.dimension for c in arms.values() if c.dimension}) == 1
    rows: list[tuple[str, ...]] = [("", *arms)]
    rows += [(line.label, *line.cells(arms.values(), alike or line.best is min)) for line in _lines(arms)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    text = ["  ".join(f"{c:{w}}" for c, w in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([*text, *(f"n/a of {name!r}: {reason}" for name, c in arms.items() for reason in c.missing)])


def _lines(arms: Mapping[str, Criteria]) -> Iterator[_Line]:
    for what in next(iter(arms.values())).operations:
        yield _operations(what)
    yield _number(f"time of inverse dynamics / {next(iter(arms))}", lambda c: c.time, min, _TIME)
    yield _Line("workspace", lambda c: c.workspace.value, lambda c: c.workspace.error, _size, max)
    yield _number("manipulability, largest", lambda c: c.manipulability, max)
    yield _number("manipulability, mean", lambda c: c.mean_manipulability, max, _MEAN)
    yield _number("condition of M, median", lambda c: c.condition.median, min, _MEAN)
    yield _number("condition of M, largest", lambda c: c.condition.largest, min, _LARGEST)
    yield _number("coupling of M, median", lambda c: c.coupling.median, min, _MEAN)
    yield _number("coupling of M, largest", lambda c: c.coupling.largest, min, _LARGEST)


def _operations(what: str) -> _Line:
    def value(c: Criteria) -> float:
        return sum(c.operations[what].values())

    def text(c: Criteria) -> str:
        count = c.operations[what]
        shown = [f"{count[key]} {name}" for key, name in (("mul", "mul"), ("add", "add"), ("div", "div")) if count[key]]
        return ", ".join([*shown, f"{count['sincos']} sin/cos"] if count["sincos"] else shown or ["none"])

    return _Line(f"{what}: operations", value, lambda c: 0.0, text, min)


def _number(label: str, value: Callable[[Criteria], float], best: Callable[..., float], error: float = 0.0) -> _Line:
    """A line of numbers with three digits, which are also what is compared, and their relative error."""

    def shown(c: Criteria) -> float:
        return float(f"{value(c):.3g}")

    return _Line(label, shown, lambda c: error * shown(c), lambda c: f"{shown(c):.3g}", best)


def _size(c: Criteria) -> str:
    return f"{c.workspace.value:.4g} ± {c.workspace.error:.1g} {_UNITS[c.dimension]}"
