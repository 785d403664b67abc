"""The contribution of one link: J_i, J̇_i, M_i, C_i and g_i over the freedoms on its path (docs/mathematics.md §2)."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from screwdyn.core.types import Array
from screwdyn.physics.padded import Padded

if TYPE_CHECKING:
    from screwdyn.physics.model import Model
    from screwdyn.physics.quantities import Quantity

__all__ = ["SHARES", "Contribution", "share_of"]


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


def _share_of_link(model: Model, link: str, results: Sequence[Array]) -> Contribution:
    return Contribution(link, model.path(link), *results)


def _share_of_subtree(model: Model, link: str, results: Sequence[Array]) -> Contribution:
    J, J_dot, M, C, g = results
    names = tuple(dict.fromkeys(x for name in model.subtree(link) for x in model.path(name)))
    at = [model.coordinates.index(name) for name in names]
    return Contribution(
        link, names, J[..., at], J_dot[..., at], M[..., at, :][..., at], C[..., at, :][..., at], g[..., at]
    )


# Functions that make a contribution, over its freedoms, from the results of a recursion.
SHARES: dict[str, Callable[[Model, str, Sequence[Array]], Contribution]] = {
    "contribution": _share_of_link,
    "subtree_contribution": _share_of_subtree,
}


def share_of(model: Model, entry: Quantity, link: str) -> Callable[..., Contribution]:
    """The function that makes the contribution of a link or subtree from the results of a recursion for one state."""
    numbered: list[Any] = [np.arange(math.prod(shape)).reshape(shape) for shape in model.shapes(entry, link)]
    share = SHARES[entry.name](model, link, numbered)
    entries: Sequence[Any] = share.arrays
    if all(map(np.array_equal, entries, numbered)):
        return functools.partial(Contribution, link, share.coordinates)
    return lambda *results: Contribution(link, share.coordinates, *map(np.take, results, entries))
