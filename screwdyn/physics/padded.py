"""The padded sum ‡: matrices and vectors with named coordinates, added by name (docs/mathematics.md §3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from screwdyn.core.errors import ShapeError, UnknownNameError
from screwdyn.core.types import Array

__all__ = ["Padded", "padded_sum"]


def _repeated(names: Sequence[str]) -> str:
    """The first name that occurs twice."""
    return next(name for i, name in enumerate(names) if name in names[:i])


class Padded:
    """A matrix or vector over named coordinates; its rows and columns for all other coordinates are zero.

    Parameters
    ----------
    coordinates : sequence of str
        Names of the rows (and columns), without repetition.
    array : (…, k, k) or (…, k) array
        The entries, in any unit, with k = ``len(coordinates)``; leading axes are batch axes.
    order : 2 or 1
        Number of trailing axes that the coordinates label: 2 for M and C, 1 for g.

    Raises
    ------
    ShapeError
        If a name occurs twice, or a labelled axis of the array does not have length k.

    Notes
    -----
    ``a + b`` is a ‡ b: its coordinates are those of a, then those of b that a does not have. ‡ is associative and, up
    to the order of the names, commutative (Laus et al., section 2.4; docs/mathematics.md §3). ``a - b``, ``-a``,
    ``2 * a``, ``a / 2`` and ``sum(terms)`` are defined. ``M["elbow", "wrist"]`` and ``g["elbow"]`` are entries,
    ``M @ v`` is a vector, and ``g @ v`` is a number for each state. ``a == b`` is True if both have the same
    coordinates, in any order, and equal entries.
    """

    __slots__ = ("array", "coordinates", "order")
    # NumPy leaves arithmetic to this class: ndarray + Padded raises TypeError, because the array has no names.
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]  # its array may change
    __iter__ = None

    def __init__(self, coordinates: Sequence[str], array: Array, order: int = 2) -> None:
        self.coordinates = tuple(coordinates)
        self.array = np.asarray(array)
        self.order = order
        k = len(self.coordinates)
        if len(set(self.coordinates)) != k:
            raise ShapeError(f"{_repeated(self.coordinates)!r} is named twice in {self.coordinates}")
        if self.array.ndim < order or self.array.shape[self.array.ndim - order :] != (k,) * order:
            raise ShapeError(
                f"an array over {', '.join(self.coordinates) or 'no coordinates'} needs {order} trailing axes of {k}; "
                f"got shape {self.array.shape}"
            )

    def matrix(self, coordinates: Sequence[str]) -> Array:
        """The plain array over the given coordinates, in their order, padded with zeros.

        Raises
        ------
        UnknownNameError
            If they do not include all coordinates of this term.
        ShapeError
            If one of them occurs twice.
        """
        place = {name: i for i, name in enumerate(coordinates)}
        if len(place) != len(coordinates):
            raise ShapeError(f"{_repeated(coordinates)!r} is named twice in {tuple(coordinates)}")
        for name in self.coordinates:
            if name not in place:
                raise UnknownNameError.of(name, coordinates, "coordinate")
        batch = self.array.shape[: self.array.ndim - self.order]
        out = np.zeros(batch + (len(place),) * self.order, dtype=self.array.dtype)
        out[_at([place[name] for name in self.coordinates], self.order)] = self.array
        return out

    def __add__(self, other: object) -> Padded:
        if not isinstance(other, Padded):
            return NotImplemented
        return padded_sum((self, other))

    def __radd__(self, other: object) -> Padded:
        """0 + a is a, since ``sum`` begins with 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __neg__(self) -> Padded:
        return Padded(self.coordinates, -self.array, self.order)

    def __sub__(self, other: object) -> Padded:
        return self + -other if isinstance(other, Padded) else NotImplemented

    def __mul__(self, factor: Any) -> Padded:
        if isinstance(factor, Padded) or np.ndim(factor):
            return NotImplemented
        return Padded(self.coordinates, self.array * factor, self.order)

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> Padded:
        if isinstance(divisor, Padded) or np.ndim(divisor):
            return NotImplemented
        return Padded(self.coordinates, self.array / divisor, self.order)

    def __matmul__(self, vector: Any) -> Any:
        """Product with a vector: (…, k) numbers in the order of the coordinates, or a Padded, matched by name.

        Raises
        ------
        ShapeError
            If the last axis of the vector does not have length k.
        """
        if isinstance(vector, Padded):
            if vector.order != 1:
                return NotImplemented
            names = self.coordinates + tuple(c for c in vector.coordinates if c not in set(self.coordinates))
            vector = vector.matrix(names)[..., : len(self.coordinates)]
        v = np.asarray(vector)
        if v.ndim == 0 or v.shape[-1] != len(self.coordinates):
            raise ShapeError(
                f"a vector over {', '.join(self.coordinates) or 'no coordinates'} has {len(self.coordinates)} entries "
                f"in its last axis; got shape {v.shape}"
            )
        product = np.einsum("...ij,...j->...i" if self.order == 2 else "...i,...i->...", self.array, v)
        return Padded(self.coordinates, product, 1) if self.order == 2 else product

    def __rmatmul__(self, vector: Any) -> Any:
        """Product of a vector of numbers with this matrix or vector."""
        array = np.swapaxes(self.array, -1, -2) if self.order == 2 else self.array
        return Padded(self.coordinates, array, self.order) @ vector

    def __getitem__(self, names: str | tuple[str, ...]) -> Any:
        """The entry of a vector at one coordinate, or of a matrix at two, as a number or (…) array.

        Raises
        ------
        UnknownNameError
            If there is no such coordinate.
        ShapeError
            If there is another number of names, or an index is not a name.
        """
        wanted = (names,) if isinstance(names, str) else names
        if not isinstance(wanted, tuple) or len(wanted) != self.order or not all(isinstance(x, str) for x in wanted):
            raise ShapeError(
                f"an entry is indexed by {('one name', 'two names')[self.order - 1]} of coordinates; got {names!r}; "
                "for integer indices use .array"
            )
        for name in wanted:
            if name not in self.coordinates:
                raise UnknownNameError.of(name, self.coordinates, "coordinate")
        where: tuple[Any, ...] = (..., *map(self.coordinates.index, wanted))
        return self.array[where]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Padded):
            return NotImplemented
        if other.order != self.order or {*other.coordinates} != {*self.coordinates}:
            return False
        return np.array_equal(self.array, other.matrix(self.coordinates))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.array, dtype=dtype, copy=copy)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the plain array."""
        return self.array.shape

    def __repr__(self) -> str:
        return f"Padded({', '.join(self.coordinates)}:\n{self.array})"


def padded_sum(terms: Iterable[Padded]) -> Padded:
    """Padded sum t_1 ‡ t_2 ‡ … (docs/mathematics.md §3; Laus et al., section 2.4).

    Parameters
    ----------
    terms : iterable of Padded
        Such as the M of several contributions, all with the same number of labelled axes and the same units.

    Returns
    -------
    Padded
        Over the union of the coordinates, in the order in which they first occur.

    Raises
    ------
    ShapeError
        If there is no term, a term is not a Padded, or matrices and vectors are mixed.
    """
    summands = tuple(terms)
    for term in summands:
        if not isinstance(term, Padded):
            raise ShapeError(f"the terms of a padded sum must be Padded, such as contribution.M; got {term!r}")
    if not summands:
        raise ShapeError("the padded sum of no terms is undefined: give at least one")
    order = summands[0].order
    if any(term.order != order for term in summands):
        raise ShapeError("a vector and a matrix have no padded sum")
    names = dict.fromkeys(name for term in summands for name in term.coordinates)
    place = {name: i for i, name in enumerate(names)}
    batches = [term.array.shape[: term.array.ndim - order] for term in summands]
    try:
        batch = np.broadcast_shapes(*batches)
    except ValueError:
        raise ShapeError(
            f"the batch axes of the terms cannot be broadcast together: {[*dict.fromkeys(batches)]}"
        ) from None
    total = np.zeros(batch + (len(names),) * order, dtype=np.result_type(*(term.array.dtype for term in summands)))
    for term in summands:
        total[_at([place[name] for name in term.coordinates], order)] += term.array
    return Padded(tuple(names), total, order)


def _at(where: Sequence[int], order: int) -> tuple[Any, ...]:
    """Index of the entries of some coordinates; slices, which are faster, if these are consecutive."""
    first, k = where[0] if where else 0, len(where)
    if [*where] == [*range(first, first + k)]:
        return (..., *(slice(first, first + k),) * order)
    return (..., *np.ix_(*(np.array(where, dtype=int),) * order))
