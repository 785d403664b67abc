"""What one link contributes: J_i, J̇_i, M_i, C_i and g_i over the freedoms on its own path (docs/mathematics.md §2)."""

from __future__ import annotations

import numpy as np

from screwdyn.core.types import Array
from screwdyn.physics.padded import Padded

__all__ = ["Contribution"]


class Contribution:
    """One link's share of the dynamics, at its natural size k = number of freedoms on its path.

    Parameters
    ----------
    link : str
    coordinates : tuple of str
        Names of the k freedoms.
    J, J_dot : (…, 6, k) arrays
        Twist Jacobian of the link's centre of mass in axes parallel to the link frame (Laus Eqs. 22-31), and its rate.
    M, C : (…, k, k) arrays
        Mass matrix (Laus Eq. 21) and Coriolis matrix (Eq. 35) of this link alone.
    g : (…, k) array
        Gravity forces of the joints for this link alone (Eq. 36).

    Attributes
    ----------
    link, coordinates, J, J_dot
        As given.
    M, C, g : Padded
        Labelled with ``coordinates``; ``np.asarray`` gives the plain arrays.
    """

    __slots__ = ("J", "J_dot", "_C", "_M", "_g", "coordinates", "link")

    def __init__(
        self, link: str, coordinates: tuple[str, ...], J: Array, J_dot: Array, M: Array, C: Array, g: Array
    ) -> None:
        self.link, self.coordinates, self.J, self.J_dot = link, coordinates, J, J_dot
        self._M, self._C, self._g = M, C, g

    @property
    def M(self) -> Padded:
        """Mass matrix of this link alone, (…, k, k)."""
        return Padded(self.coordinates, self._M)

    @property
    def C(self) -> Padded:
        """Coriolis matrix of this link alone, (…, k, k)."""
        return Padded(self.coordinates, self._C)

    @property
    def g(self) -> Padded:
        """Gravity forces of the joints for this link alone, (…, k)."""
        return Padded(self.coordinates, self._g, 1)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Contribution):
            return NotImplemented
        return (self.link, self.coordinates) == (other.link, other.coordinates) and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in ("J", "J_dot", "_M", "_C", "_g")
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Contribution of {self.link!r} over {', '.join(self.coordinates) or 'no coordinates'}>"
