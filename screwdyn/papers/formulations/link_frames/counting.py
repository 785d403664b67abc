"""Scalars that count the operations of an algorithm as it is written, row by row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["Begin", "Counted", "Elements", "Tally", "silent"]

Begin = Callable[[str], None]
Elements = dict[tuple[int, int], Any]  # entries of a matrix by row and column


def silent(row: str) -> None:
    """Begin a row without counting."""


class Tally:
    """Multiplications and additions by row of a table; a change of sign is no operation."""

    def __init__(self) -> None:
        self._rows: dict[str, list[int]] = {}
        self._current = [0, 0]

    def begin(self, row: str) -> None:
        """Count what follows in this row."""
        self._current = self._rows.setdefault(row, [0, 0])

    def multiplied(self) -> None:
        """Count a multiplication."""
        self._current[0] += 1

    def added(self) -> None:
        """Count an addition or subtraction."""
        self._current[1] += 1

    @property
    def rows(self) -> Mapping[str, tuple[int, int]]:
        """(multiplications, additions) by row, and their sum as "total"."""
        found = {row: (count[0], count[1]) for row, count in self._rows.items()}
        return found | {"total": (sum(m for m, _ in found.values()), sum(a for _, a in found.values()))}


class Counted:
    """A number of which only the operations matter."""

    __slots__ = ("_tally",)

    def __init__(self, tally: Tally) -> None:
        self._tally = tally

    def _added(self, _: Any) -> Counted:
        self._tally.added()
        return self

    def _multiplied(self, _: Any) -> Counted:
        self._tally.multiplied()
        return self

    def __neg__(self) -> Counted:
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = _added
    __mul__ = __rmul__ = _multiplied
