"""Entries of a JSON or TOML document with their places; every problem is collected, and no entry raises an error."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from math import inf
from typing import Any

from screwdyn.core import expressions
from screwdyn.core.text import NAME, is_name
from screwdyn.io.similar import similar
from screwdyn.io.source import shown

__all__ = ["Entry", "NotANumber", "PlacedProblem", "Table", "listed"]


@dataclass(frozen=True, slots=True)
class PlacedProblem:
    """One problem of a document.

    Attributes
    ----------
    place : str
        The keys that lead to the entry, such as ``links[3].joint.damping``; empty for the document itself.
    message, hint : str
        The problem, and what to do about it (may be empty).
    """

    place: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        place = f"{self.place}: " if self.place else ""
        return f"{place}{self.message}" + (f"; {self.hint}" if self.hint else "")


class NotANumber(str):
    """The text of a number that is not finite: NaN, Infinity, or one that no float can hold."""


class Table(dict[str, Any]):
    """A mapping of a document with the keys that it gives more than once."""

    repeated: tuple[str, ...] = ()


def listed(title: str, problems: Sequence[object]) -> str:
    """The message of an error with all problems of a document."""
    count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
    return "\n  ".join([f"{count} in {title}", *map(str, problems)])


class Entry:
    """A value of a document, its place, and the list that receives its problems.

    The readers return ``None`` (or nothing) after they have added a problem.
    """

    __slots__ = ("place", "problems", "value")

    def __init__(self, value: Any, place: str, problems: list[PlacedProblem]) -> None:
        self.value, self.place, self.problems = value, place, problems

    def wrong(self, message: str, hint: str = "") -> None:
        """Add a problem of this entry."""
        self.problems.append(PlacedProblem(self.place, message, hint))

    def unexpected(self, expected: str) -> None:
        """Add the problem that the value is not what was expected."""
        self.wrong(f"expected {expected}; got {_described(self.value)}")

    def near(self, name: str, known: Iterable[str]) -> str:
        """A hint with the known names that are similar, or some of them."""
        return similar(name, known, len(self.problems))

    def table(self, required: Sequence[str] = (), optional: Sequence[str] = ()) -> dict[str, Entry]:
        """Entries by key; missing, unknown and repeated keys are problems."""
        if not isinstance(self.value, dict):
            self.unexpected(f"the keys {', '.join((*required, *optional))}")
            return {}
        known = (*required, *optional)
        for key in self.value:
            if key not in known:
                self._below(key).wrong("unknown key", self.near(key, known))
        for key in required:
            if key not in self.value:
                self.wrong(f"the key {key!r} is missing")
        for key in getattr(self.value, "repeated", ()):
            self._below(key).wrong("the key is given more than once", "keep one")
        return {key: self._below(key) for key in known if key in self.value}

    def variant(self, key: str, known: Iterable[str]) -> Any:
        """One of some words under the key that decides which other keys there are; these are not checked here."""
        if not isinstance(self.value, dict):
            self.unexpected(f"the key {key!r}, which is one of {', '.join(known)}, and others")
            return None
        if key not in self.value:
            near = get_close_matches(key, map(str, self.value), n=1)
            self.wrong(f"the key {key!r} is missing", f"write it instead of {near[0]!r}" if near else "")
            return None
        return self._below(key).one_of(*known)

    def entries(self) -> dict[str, Entry]:
        """Entries by key, whatever the keys are; repeated keys are problems."""
        if not isinstance(self.value, dict):
            self.unexpected("keys and values")
            return {}
        for key in getattr(self.value, "repeated", ()):
            self._below(key).wrong("the key is given more than once", "keep one")
        return {key: self._below(key) for key in self.value}

    def items(self, what: str = "a list") -> list[Entry]:
        """The entries of a list."""
        if not isinstance(self.value, list):
            self.unexpected(what)
            return []
        return [Entry(x, f"{self.place}[{k}]", self.problems) for k, x in enumerate(self.value)]

    def text(self, what: str = NAME) -> str | None:
        """A string that is not empty and has no control characters."""
        if is_name(self.value) and type(self.value) is not NotANumber:
            return str(self.value)
        self.unexpected(what)
        return None

    def one_of(self, *known: Any) -> Any:
        """One of some words or integers."""
        if type(self.value) in (str, int) and self.value in known:
            return self.value
        self.unexpected(f"one of {', '.join(map(repr, known))}")
        return None

    def flag(self) -> bool | None:
        """True or false."""
        if isinstance(self.value, bool):
            return self.value
        self.unexpected("true or false")
        return None

    def number(
        self,
        expression: Callable[[str], Any] | None = None,
        what: str = "a number",
        largest: float = expressions.LARGEST,
    ) -> Any:
        """A finite number; or what `expression` makes of a string, whose ValueError is a problem.

        Numbers above `largest` in magnitude are a problem, because their products would overflow.
        """
        value = self.value
        if type(value) is str and expression is not None:
            try:
                value = expression(value)
            except ValueError as error:
                self.wrong(f"the expression {shown(value)!r}: {error}")
                return None
            if value.free_symbols:
                return value
        elif type(value) not in (float, int):
            if isinstance(value, NotANumber):
                self.wrong(f"{_described(value)} is not a finite number", "give a finite value in SI units")
            else:
                self.unexpected(what)
            return None
        # SymPy takes seconds to compare some exact numbers, which it evaluates at once.
        size = float(value) if expressions.is_expression(value) else value
        if -largest <= size <= largest:
            return value
        bound = "not a finite number" if size != size or abs(size) == inf else f"larger than {largest:g}"
        self.wrong(f"{_described(value)} is {bound}", "give a finite value in SI units")
        return None

    def numbers(self, count: int, expression: Callable[[str], Any] | None = None) -> list[Any] | None:
        """A list of so many finite numbers."""
        value = self.value
        if type(value) is not list or len(value) != count:
            self.unexpected(f"a list of {count} numbers")
            return None
        if all(type(x) is float and -expressions.LARGEST <= x <= expressions.LARGEST for x in value):
            return value
        found = [x.number(expression) for x in self.items()]
        return None if any(x is None for x in found) else found

    def matrix(
        self, columns: int, rows: int | None = None, expression: Callable[[str], Any] | None = None
    ) -> list[list[Any]] | None:
        """A list of rows of so many finite numbers, at least one row."""
        items = self.items(f"rows of {columns} numbers")
        found = [row.numbers(columns, expression) for row in items]
        if isinstance(self.value, list) and (not items or rows not in (None, len(items))):
            self.unexpected(f"{'some' if rows is None else rows} rows of {columns} numbers")
            return None
        whole = [row for row in found if row is not None]
        return whole if items and len(whole) == len(items) else None

    def _below(self, key: str) -> Entry:
        place = key if key.isidentifier() else repr(shown(key))
        return Entry(self.value.get(key), f"{self.place}.{place}" if self.place else place, self.problems)


def _described(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if type(value) is str:
        return repr(shown(value))
    if type(value) is int and value.bit_length() > 1000:
        return "a number too large for a float"
    return shown(str(value))
