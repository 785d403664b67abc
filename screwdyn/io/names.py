"""Names that a document does not use yet."""

from collections.abc import Iterable
from itertools import count

__all__ = ["Names"]


class Names:
    """The names that are taken."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.taken = set(taken)

    def unused(self, stem: str) -> str:
        """The first of stem, stem_2, stem_3, … that is not taken; it is taken then."""
        names = (stem if k == 1 else f"{stem}_{k}" for k in count(1))
        name = next(name for name in names if name not in self.taken)
        self.taken.add(name)
        return name
