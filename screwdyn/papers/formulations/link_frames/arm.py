"""DeNOC in link frames as formulations: which arms they take, and their operations by row."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.errors import ScrewdynError, UnknownNameError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.mechanism.structure import Mechanism
from screwdyn.papers.formulations.formulation import MatrixFormulation, Row
from screwdyn.papers.formulations.link_frames.counting import Begin, Counted, Elements, Tally, silent

__all__ = ["InLinkFrames", "carried_masses", "is_none"]


class InLinkFrames(MatrixFormulation):
    """The GIM and the MCI of a serial arm by steps in link frames, and the operations of each step."""

    kinds: ClassVar[tuple[str, ...]] = ("revolute", "prismatic")
    frames: ClassVar[str]
    """What the frames must be, for the error."""
    scope = "Bhangale, section 2, has an open-loop serial robot with one displacement θ_i for each joint"

    def __init__(self, tree: Mechanism) -> None:
        super().__init__(tree)
        name = type(self).__name__
        if wrong := [i for i, row in enumerate(self.rows) if row.parent != i - 1]:
            raise ScrewdynError(f"{name} is for serial arms; {self._links_of(wrong[:1])} begins a branch: {self.scope}")
        if wrong := [i for i, row in enumerate(self.rows) if not self._covers(row)]:
            raise ScrewdynError(f"{name} needs {self.frames}; those of {self._links_of(wrong)} are others")

    def _links_of(self, rows: Sequence[int]) -> str:
        """Names of the links that these rows move."""
        return ", ".join(repr(next(link for link, (at, _) in self.places.items() if at >= i)) for i in rows)

    def operations(self, matrix: str) -> Mapping[str, tuple[int, int]]:
        """(Multiplications, additions) of the GIM or the MCI by row, and in "total", as the steps are written.

        Every operation of a step counts, also with 0 and 1 and on constants. The values of sines, cosines and composite
        masses, and what is constant because its joint is prismatic, are given. A change of sign is no operation.

        Parameters
        ----------
        matrix : "GIM" or "MCI"

        Raises
        ------
        UnknownNameError
            For another matrix.
        """
        if matrix not in ("GIM", "MCI"):
            raise UnknownNameError.of(matrix, ("GIM", "MCI"), "matrix")
        tally, n = Tally(), len(self.rows)
        links = _counted(self._links([0.0] * n), tally)
        if matrix == "GIM":
            self._gim(links, tally.begin)
        else:
            self._mci(links, [Counted(tally)] * n, tally.begin)
        return tally.rows

    def GIM(self, theta: ArrayLike) -> Array:
        """i_ij, (n, n) (Eq. 10)."""
        theta = self._vector(theta, "theta")
        found = self._gim(self._links(theta.tolist()), silent)
        return self._matrix(found | {(j, i): x for (i, j), x in found.items()}, theta)

    def MCI(self, theta: ArrayLike, thetad: ArrayLike) -> Array:
        """c_ij, (n, n) (Eqs. 10 and 12)."""
        theta, thetad = self._vector(theta, "theta"), self._vector(thetad, "thetad")
        return self._matrix(self._mci(self._links(theta.tolist()), thetad.tolist(), silent), theta, thetad)

    def _matrix(self, elements: Elements, *states: Array) -> Array:
        n = len(self.rows)
        found = np.zeros((n, n), dtype=np.result_type(self._dtype, *states))
        for at, x in elements.items():
            found[at] = x
        return found

    @abstractmethod
    def _covers(self, row: Row) -> bool:
        """Whether the frames of a row are those of the source."""

    @abstractmethod
    def _links(self, q: Sequence[Any]) -> list[Any]:
        """The links at a configuration."""

    @abstractmethod
    def _gim(self, links: list[Any], begin: Begin) -> Elements: ...

    @abstractmethod
    def _mci(self, links: list[Any], rates: Sequence[Any], begin: Begin) -> Elements: ...

    # The names of the library
    _mass_matrix, _coriolis_matrix = GIM, MCI


def carried_masses(rows: Sequence[Row]) -> list[Any]:
    """m̃_i of all rows: the masses of link i and of those beyond it."""
    return [*itertools.accumulate(row.m for row in reversed(rows))][::-1]


def is_none(*entries: Any) -> bool:
    """Whether all entries are zero but for rounding."""
    return all(expressions.is_zero(x) if expressions.is_expression(x) else abs(x) < 1e-12 for x in entries)


def _counted(value: Any, tally: Tally) -> Any:
    """The tuples and lists of a value, with counting scalars for its numbers."""
    if value is None:
        return None
    if isinstance(value, tuple | list):
        entries = [_counted(x, tally) for x in value]
        return type(value)(*entries) if hasattr(value, "_fields") else type(value)(entries)
    return Counted(tally)
