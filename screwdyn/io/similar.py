"""Hints at names that are similar to a wrong one."""

from collections.abc import Iterable
from difflib import get_close_matches

from screwdyn.io.source import shown

__all__ = ["similar"]

# Similar names are searched for in the first problems of a document, among not too many names: the search is slow.
_MOST_PROBLEMS, _MOST_NAMES = 50, 1000
_LISTED = 30


def similar(name: str, known: Iterable[str], problems: int) -> str:
    """The known names that are similar, or some of them; `problems` is the number of those found before."""
    if problems >= _MOST_PROBLEMS:
        return ""
    names = list(known)
    near = get_close_matches(name, names, n=3, cutoff=0.5) if len(names) <= _MOST_NAMES else []
    if near:
        return f"did you mean {' or '.join(repr(shown(x)) for x in near)}?"
    return f"known: {', '.join(map(shown, names[:_LISTED])) or 'none'}{', …' if len(names) > _LISTED else ''}"
