"""The path to one link as a model of its own, in which that link alone has inertia, and how the link moves."""

from typing import Any, NamedTuple

import numpy as np

from screwdyn.backends.sympy.closed_form import Derivation
from screwdyn.backends.tape.trace import Scalars, Subject
from screwdyn.core import expressions
from screwdyn.core.errors import UnknownLinkError
from screwdyn.physics.frames import frame_code
from screwdyn.physics.model import Model
from screwdyn.physics.spatial import Matrix, Vector, add, rotate
from screwdyn.physics.table import COLUMNS, MASS, PARENT, PLACE

__all__ = ["Path", "path_to"]


class Path(NamedTuple):
    """All that a link's contribution depends on.

    Attributes
    ----------
    coordinates : tuple of str
    rows : tuple of rows
        See ``physics.rows``.
    gravity, R, p, com
        Gravity in the base; pose of the link and its centre of mass in the frame of the last row (or of the base).
    """

    coordinates: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    gravity: Vector
    R: Matrix
    p: Vector
    com: Vector

    def table(self, derivation: Derivation) -> Scalars:
        """The rows as scalars."""
        return derivation.table([*self.rows, [*self.gravity, *[0] * (COLUMNS - 3)]])

    def subject(self, derivation: Derivation, frame: str = "body") -> Subject:
        """The chain with the link at its end, to record a quantity of."""
        place = [len(self.rows) - 1, frame_code(frame), *map(derivation.scalar, (*self.R, *self.p, *self.com))]
        place += [0.0] * (PLACE - len(place))
        places = np.array([place], dtype=object)
        return Subject(self.table(derivation), None, places, self.coordinates, self.coordinates)


def path_to(model: Model, link: str) -> Path:
    """The path to a link.

    Raises
    ------
    UnknownLinkError
        If the tree has no such link.
    """
    at = model.placements.get(link)
    if at is None:
        raise UnknownLinkError.of(link, model.placements)
    path: list[int] = []
    row = model.index[at.coordinate]
    while row >= 0:
        path.insert(0, row)
        row = int(model.rows[row][PARENT])
    rows = [(*model.rows[row][:MASS], *[0] * (PARENT - MASS), i - 1, i) for i, row in enumerate(path)]
    if rows:
        rows[-1] = (*rows[-1][:MASS], *at.body, *rows[-1][PARENT:])
    com: Any = at.p
    if at.link.inertia is not None:
        R, p, c = expressions.alike(at.R, at.p, tuple(at.link.inertia.com.tolist()))
        com = expressions.tidied(add(p, rotate(R, c)))
    names = tuple(model.coordinates[row] for row in path)
    return Path(names, tuple(rows), tuple(model.gravity.tolist()), at.R, at.p, com)
