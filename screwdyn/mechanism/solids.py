"""Mass properties of common solids (docs/mathematics.md §5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np

from screwdyn.core.errors import InertiaError
from screwdyn.core.types import Array, ArrayLike
from screwdyn.mechanism.mass_properties import read_array, read_number, read_size
from screwdyn.screws.screw import direction

__all__ = ["Solids", "squared_lengths"]


def squared_lengths(sizes: Array, what: str) -> Array:
    """Squares of lengths; InertiaError if one is negative."""
    return np.array([size * size for size in (read_size(x, what) for x in sizes)])


class Solids:
    """The constructors of `Inertia` for solids of uniform density."""

    __slots__ = ()

    if TYPE_CHECKING:

        def __init__(self, mass: float, com: ArrayLike = (0.0, 0.0, 0.0), tensor: ArrayLike = 0.0) -> None: ...

    @classmethod
    def point(cls, mass: float, com: ArrayLike = 0.0) -> Self:
        """Point mass in kg at `com` (3,) in metres.

        Raises InertiaError as `Inertia` does.
        """
        return cls(mass, com)

    @classmethod
    def _axial(cls, mass: float, along: float, across: float, axis: str | ArrayLike, com: ArrayLike) -> Self:
        """Body of revolution with moments `along` about its axis and `across` about perpendicular axes."""
        a = direction(axis)
        if a.shape != (3,):
            raise InertiaError(f"axis must be one direction, got {a.tolist()}")
        return cls(mass, com, np.diag([across] * 3) + (along - across) * np.outer(a, a))

    @classmethod
    def rod(cls, mass: float, length: float, axis: str | ArrayLike = "x", com: ArrayLike = 0.0) -> Self:
        """Thin uniform rod along `axis` ("x", "y", "z" or a vector), with moments 0 about it and m l^2 / 12 across it.

        Mass in kg, length in metres; `com` (3,) in metres. Raises InertiaError as `Inertia` does, and for a negative
        length; ScrewdynError for a zero axis.
        """
        m, l = read_number(mass, "mass"), read_size(length, "length")
        return cls._axial(m, 0.0, m * (l * l) / 12, axis, com)

    @classmethod
    def box(cls, mass: float, size: ArrayLike, com: ArrayLike = 0.0) -> Self:
        """Uniform box with edges `size` (3,) in metres along the link axes, with moments m (y^2 + z^2) / 12, ….

        Mass in kg; `com` (3,) in metres. Raises InertiaError as `Inertia` does, and for a negative edge.
        """
        m, edges = read_number(mass, "mass"), read_array(size, "size")
        if edges.shape != (3,):
            raise InertiaError(f"size must be the three edges of the box, got {edges.tolist()}")
        squares = squared_lengths(edges, "edge")
        return cls(m, com, m * (squares.sum() - squares) / 12)

    @classmethod
    def cylinder(
        cls, mass: float, radius: float, length: float, axis: str | ArrayLike = "z", com: ArrayLike = 0.0
    ) -> Self:
        """Uniform solid cylinder, with moments m r^2 / 2 about `axis` and m (3 r^2 + l^2) / 12 across it.

        Mass in kg, radius and length in metres; `com` (3,) in metres. Raises InertiaError as `Inertia` does, and for a
        negative size; ScrewdynError for a zero axis.
        """
        m, r, l = read_number(mass, "mass"), read_size(radius, "radius"), read_size(length, "length")
        return cls._axial(m, m * (r * r) / 2, m * (3 * (r * r) + l * l) / 12, axis, com)

    @classmethod
    def sphere(cls, mass: float, radius: float, com: ArrayLike = 0.0) -> Self:
        """Uniform solid sphere, with moments 2 m r^2 / 5.

        Mass in kg, radius in metres; `com` (3,) in metres. Raises InertiaError as `Inertia` does, and for a negative
        radius.
        """
        m, r = read_number(mass, "mass"), read_size(radius, "radius")
        return cls(m, com, [2 * m * (r * r) / 5] * 3)

    @classmethod
    def planar(cls, mass: float, com: ArrayLike, izz: float) -> Self:
        """Lamina in the xy plane, with moment `izz` about z through its centre of mass and izz / 2 about x and y.

        For planar arms of textbooks, whose motion about z does not depend on the other moments. Mass in kg, `com` (2,)
        or (3,) in metres, `izz` in kg m^2. Raises InertiaError as `Inertia` does.
        """
        com, izz = read_array(com, "com"), read_number(izz, "izz")
        if com.shape == (2,):
            com = np.append(com, 0)
        return cls(mass, com, (izz / 2, izz / 2, izz))
