"""The contribution of one link, J_i, J̇_i, M_i, C_i and g_i over the freedoms on its path, and the padded sum ‡ of many.

docs/mathematics.md §2 and §3.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from screwdyn.core import Array, ShapeError, UnknownNameError, expressions

if TYPE_CHECKING:
    from screwdyn.physics.model import Model


def _places(names: Sequence[str]) -> dict[str, int]:
    """The place of every name; ShapeError if one occurs twice."""
    places = {name: i for i, name in enumerate(names)}
    if len(places) != len(names):
        repeated = next(name for i, name in enumerate(names) if name in names[:i])
        raise ShapeError(f"{repeated!r} is named twice in {tuple(names)}")
    return places


class Padded:
    """A matrix or vector over named coordinates; its rows and columns for all other coordinates are zero.

    Parameters
    ----------
    coordinates : sequence of str
        Names of the rows (and columns), without repetition.
    array : (…, k, k) or (…, k) array, or SymPy matrix
        The entries, in any unit, with k = ``len(coordinates)``; leading axes are batch axes. A closed form is a matrix
        of SymPy, a column for a vector, or an array of expressions, which becomes one.
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
    coordinates, in any order, and equal entries. All of this also holds for closed forms; a sum of a closed form and
    numbers is a closed form.

    Attributes
    ----------
    coordinates, order
        As given.
    array : array or sympy.ImmutableDenseMatrix
        The entries.
    """

    __slots__ = ("array", "coordinates", "order")
    # NumPy and SymPy leave arithmetic to this class: ndarray + Padded raises TypeError, because the array has no names.
    __array_ufunc__ = None
    _op_priority = 100.0
    __hash__ = None  # type: ignore[assignment]  # its array may change
    __iter__ = None

    def __init__(self, coordinates: Sequence[str], array: Any, order: int = 2) -> None:
        self.coordinates = tuple(coordinates)
        self.order = order
        k, entries = len(_places(self.coordinates)), _entries(array, order)
        if entries.ndim < order or entries.shape[entries.ndim - order :] != (k,) * order:
            raise ShapeError(
                f"an array over {', '.join(self.coordinates) or 'no coordinates'} needs {order} trailing axes of {k}; "
                f"got shape {entries.shape}"
            )
        if entries.dtype == object and entries.ndim > order:
            raise ShapeError(f"a closed form has no batch axes; got an array of expressions of shape {entries.shape}")
        self.array: Any = expressions.as_matrix(entries) if entries.dtype == object else entries

    @property
    def _entries(self) -> Array:
        """The entries as an array, of objects for a closed form."""
        return _entries(self.array, self.order)

    def matrix(self, coordinates: Sequence[str]) -> Any:
        """The plain array, or matrix of SymPy, over the given coordinates, in their order, padded with zeros.

        Raises
        ------
        UnknownNameError
            If they do not include all coordinates of this term.
        ShapeError
            If one of them occurs twice.
        """
        place = _places(coordinates)
        for name in self.coordinates:
            UnknownNameError.check(name, place, "coordinate")
        entries = self._entries
        batch = entries.shape[: entries.ndim - self.order]
        out = np.zeros(batch + (len(place),) * self.order, dtype=entries.dtype)
        out[_at([place[name] for name in self.coordinates], self.order)] = entries
        return expressions.as_matrix(out) if out.dtype == object else out

    def _with(self, entries: Any) -> Padded:
        """Other entries over the same coordinates."""
        return Padded(self.coordinates, entries, self.order)

    def __add__(self, other: object) -> Padded:
        return padded_sum((self, other)) if isinstance(other, Padded) else NotImplemented

    def __radd__(self, other: object) -> Padded:
        """0 + a is a, since ``sum`` begins with 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __neg__(self) -> Padded:
        return self._with(-self._entries)

    def __sub__(self, other: object) -> Padded:
        return self + -other if isinstance(other, Padded) else NotImplemented

    def __mul__(self, factor: Any) -> Padded:
        return self._with(self._entries * factor) if _is_number(factor) else NotImplemented

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> Padded:
        return self._with(self._entries / divisor) if _is_number(divisor) else NotImplemented

    def __matmul__(self, vector: Any) -> Any:
        """Product with a vector: (…, k) entries in the order of the coordinates, or a Padded, matched by name.

        A vector of expressions may also be a column of SymPy, such as the rates ``tree.symbolic().qd``.

        Raises
        ------
        ShapeError
            If the last axis of the vector does not have length k.
        """
        if isinstance(vector, Padded):
            if vector.order != 1:
                return NotImplemented
            names = tuple(dict.fromkeys(self.coordinates + vector.coordinates))
            vector = _entries(vector.matrix(names), 1)[..., : len(self.coordinates)]
        v = _entries(vector, 1)
        if v.ndim == 0 or v.shape[-1] != len(self.coordinates):
            raise ShapeError(
                f"a vector over {', '.join(self.coordinates) or 'no coordinates'} has {len(self.coordinates)} entries "
                f"in its last axis; got shape {v.shape}"
            )
        product = np.einsum("...ij,...j->...i" if self.order == 2 else "...i,...i->...", self._entries, v)
        return Padded(self.coordinates, product, 1) if self.order == 2 else product

    def __rmatmul__(self, vector: Any) -> Any:
        """Product of a vector of numbers with this matrix or vector."""
        return self._with(self._entries.swapaxes(-1, -self.order)) @ vector

    def __getitem__(self, names: str | tuple[str, ...]) -> Any:
        """The entry of a vector at one coordinate, or of a matrix at two, as a number, expression or (…) array.

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
            UnknownNameError.check(name, self.coordinates, "coordinate")
        where: tuple[Any, ...] = (..., *map(self.coordinates.index, wanted))
        return self._entries[where][()]  # an expression or a number, not an array without axes

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Padded):
            return NotImplemented
        if other.order != self.order or {*other.coordinates} != {*self.coordinates}:
            return False
        return np.array_equal(self._entries, _entries(other.matrix(self.coordinates), self.order))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self._entries, dtype=dtype, copy=copy)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the entries; that of a vector in closed form is (k,)."""
        return self._entries.shape

    def __repr__(self) -> str:
        return f"Padded({', '.join(self.coordinates)}:\n{self._entries})"


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
    place = _places([*dict.fromkeys(name for term in summands for name in term.coordinates)])
    entries = [term._entries for term in summands]
    batches = [a.shape[: a.ndim - order] for a in entries]
    try:
        batch = np.broadcast_shapes(*batches)
    except ValueError:
        raise ShapeError(
            f"the batch axes of the terms cannot be broadcast together: {[*dict.fromkeys(batches)]}"
        ) from None
    total = np.zeros(batch + (len(place),) * order, dtype=np.result_type(*(a.dtype for a in entries)))
    for term, a in zip(summands, entries, strict=True):
        total[_at([place[name] for name in term.coordinates], order)] += a
    return Padded(tuple(place), total, order)


def _is_number(x: Any) -> bool:
    """Whether a matrix or vector may be multiplied by it."""
    return not isinstance(x, Padded) and np.ndim(x) == 0


def _entries(array: Any, order: int) -> Array:
    """The entries of an array or of a SymPy matrix, whose columns are vectors."""
    if not expressions.is_matrix(array):
        return np.asarray(array)
    entries = expressions.entries_of(array)
    return entries[:, 0] if order == 1 and entries.shape[1] == 1 else entries


def _at(where: Sequence[int], order: int) -> tuple[Any, ...]:
    """Index of the entries of some coordinates; slices, which are faster, if these are consecutive."""
    first, k = where[0] if where else 0, len(where)
    if [*where] == [*range(first, first + k)]:
        return (..., *(slice(first, first + k),) * order)
    return (..., *np.ix_(*(np.array(where, dtype=int),) * order))


class Contribution:
    """The contribution of one link, or of a subtree, to the dynamics over k freedoms (docs/mathematics.md §2).

    ``a == b`` is True if link, coordinates and all entries are equal.

    Parameters
    ----------
    link : str
    coordinates : tuple of str
        Names of the k freedoms: those on the path to the link and, for a subtree, those beyond it.
    J, J_dot : (…, 6, k) arrays
        Jacobian of the twist [ω; v] of the link in the com frame (Laus Eqs. 22-31), and its time derivative, in SI
        units and radians.
    M, C : (…, k, k) arrays
        Mass matrix (Laus Eq. 21) and Coriolis matrix (Eq. 35) of this link or subtree alone, in SI units.
    g : (…, k) array
        Joint forces that hold this link or subtree alone against gravity (Eq. 36), N m or N.

    Attributes
    ----------
    link, coordinates, J, J_dot
        As given.
    M, C, g : Padded
        The given arrays with ``coordinates`` as labels; ``np.asarray`` returns the plain arrays.

    Raises
    ------
    ShapeError
        By the attributes M, C and g, if an array does not have size k.
    """

    __slots__ = ("J", "J_dot", "_C", "_M", "_g", "coordinates", "link")

    def __init__(
        self, link: str, coordinates: tuple[str, ...], J: Array, J_dot: Array, M: Array, C: Array, g: Array
    ) -> None:
        self.link, self.coordinates, self.J, self.J_dot = link, coordinates, J, J_dot
        self._M, self._C, self._g = M, C, g

    @property
    def M(self) -> Padded:
        """Mass matrix M_i = J_iᵀ M̄_i J_i, (…, k, k) (Laus Eq. 21)."""
        return Padded(self.coordinates, self._M)

    @property
    def C(self) -> Padded:
        """Coriolis matrix C_i = J_iᵀ (M̄_i J̇_i + B_i J_i), (…, k, k) (Laus Eq. 35)."""
        return Padded(self.coordinates, self._C)

    @property
    def g(self) -> Padded:
        """Gravity vector g_i = −m J_vᵀ Rᵀ g₀, (…, k), N m or N (Laus Eq. 36)."""
        return Padded(self.coordinates, self._g, 1)

    def reference_force(self, qd_ref: Any, qdd_ref: Any) -> Padded:
        """M_i q̈_r + C_i q̇_r + g_i, (…, k), N m or N: the ‡ of all links is the tree's ``reference_dynamics``.

        ``qd_ref`` and ``qdd_ref`` are (…, k) over the coordinates, or Padded, matched by name. Errors as for ``@``.
        """
        total: Padded = self.M @ qdd_ref + self.C @ qd_ref + self.g
        return total

    @property
    def arrays(self) -> tuple[Array, Array, Array, Array, Array]:
        """J, J_dot, M, C and g as plain arrays."""
        return self.J, self.J_dot, self._M, self._C, self._g

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Contribution):
            return NotImplemented
        named = (self.link, self.coordinates) == (other.link, other.coordinates)
        return named and all(map(np.array_equal, self.arrays, other.arrays))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Contribution of {self.link!r} over {', '.join(self.coordinates) or 'no coordinates'}>"


# Quantities whose results are made a contribution.
SHARES = ("contribution", "subtree_contribution")


def share_of(model: Model, name: str, link: str) -> Callable[..., Contribution]:
    """The function that makes the contribution of a link or subtree, over its freedoms, from a recursion's results."""
    if name == "contribution":
        return functools.partial(Contribution, link, model.path(link))
    names = tuple(dict.fromkeys(x for name in model.topology.subtree(link) for x in model.path(name)))
    at = [model.coordinates.index(name) for name in names]
    if at == [*range(model.nv)]:
        return functools.partial(Contribution, link, names)

    def share(J: Array, J_dot: Array, M: Array, C: Array, g: Array) -> Contribution:
        M, C = (np.take(A, at, -2) for A in (M, C))
        return Contribution(link, names, *(np.take(A, at, -1) for A in (J, J_dot, M, C, g)))

    return share
