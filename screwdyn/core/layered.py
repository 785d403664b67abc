"""Dictionaries to which entries are added one at a time, with every former state kept."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import ItemsView, Iterator, ValuesView
from itertools import chain
from typing import TypeAlias, TypeVar

__all__ = ["Entries", "growing"]

Value = TypeVar("Value")

# Number of entries from which copies share some; a dictionary of fewer is copied in the time that sharing takes.
_MANY = 1000


class Layered(ChainMap[str, Value]):
    """Two dictionaries, of the last entries and of those before, without a common name, as one in their order."""

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(reversed(self.maps))

    def __len__(self) -> int:
        return sum(map(len, self.maps))

    def copy(self) -> dict[str, Value]:  # type: ignore[override]
        """A dictionary of all entries."""
        last, before = self.maps
        together = dict(before)
        together.update(last)
        return together

    def values(self) -> ValuesView[Value]:
        """As of a dictionary."""
        return self.copy().values()

    def items(self) -> ItemsView[str, Value]:
        """As of a dictionary."""
        return self.copy().items()


Entries: TypeAlias = dict[str, Value] | Layered[Value]


def growing(entries: Entries[Value], further: int) -> Entries[Value]:
    """A copy for some further entries; one at a time, it takes an amortized time of the square root of their number.

    Entries of the copy are neither replaced nor removed.
    """
    if len(entries) >= _MANY:
        last, before = ({}, entries) if isinstance(entries, dict) else entries.maps
        if (len(last) + further) ** 2 < 4 * len(before):
            return Layered(dict(last), before)
    return entries.copy()
