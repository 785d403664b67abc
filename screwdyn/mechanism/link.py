"""A link: a name, an inertia unless it is massless, and shapes if it has any."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from screwdyn.core.cached import cached_property
from screwdyn.core.errors import InertiaError, TopologyError
from screwdyn.core.text import NAME, is_name
from screwdyn.mechanism.inertia import Inertia
from screwdyn.mechanism.shape import Shape, shapes_of

__all__ = ["Link"]

# Product of the moments of inertia, relative to the cube of their sum, below which one may be zero.
_LEAN = 1e-9


@dataclass(frozen=True)
class Link:
    """One rigid body of a tree, with a frame of its own.

    Parameters
    ----------
    name : str
        Unique within its tree.
    inertia : Inertia, optional
        Mass, centre of mass and inertia tensor in the link frame; ``None`` for a massless frame such as ``tool0``.
    shapes : tuple of Shape
        What a picture shows of the link; one shape or several may be given.

    Raises
    ------
    TopologyError
        If the name is not a non-empty string, or has control characters.
    InertiaError
        If ``inertia`` is neither an :class:`Inertia` nor ``None``.
    ShapeError
        If ``shapes`` is something else.
    """

    name: str
    inertia: Inertia | None = None
    shapes: tuple[Shape, ...] = ()

    @cached_property
    def lean(self) -> bool:
        """Whether the inertia, of numbers, may be zero for some twist, as that of a thin rod; a determinant tells."""
        if self.inertia is None:
            return True
        xx, xy, xz, yy, yz, zz = self.inertia.entries[1]
        determinant = xx * (yy * zz - yz * yz) - xy * (xy * zz - yz * xz) + xz * (xy * yz - yy * xz)
        return not (self.inertia.mass > 0 and determinant > _LEAN * (xx + yy + zz) ** 3 > 0)

    def prefixed(self, prefix: str) -> "Link":
        """The link with a prefix before its name."""
        return Link(prefix + self.name, self.inertia, self.shapes) if prefix else self

    def subs(self, values: Mapping[Any, Any]) -> "Link":
        """The link with values substituted for the symbols in its inertia.

        Raises
        ------
        InertiaError
            If no rigid body has the resulting inertia.
        """
        if self.inertia is None:
            return self
        try:
            return replace(self, inertia=self.inertia.subs(values))
        except InertiaError as error:
            raise InertiaError(f"link {self.name!r}: {error}") from None

    def __post_init__(self) -> None:
        if not is_name(self.name):
            raise TopologyError(f"a link needs {NAME} as its name; got {self.name!r}")
        if self.inertia is not None and not isinstance(self.inertia, Inertia):
            raise InertiaError(
                f"link {self.name!r}: inertia must be a screwdyn.Inertia or None; got {type(self.inertia).__name__}"
            )
        if self.shapes != ():
            object.__setattr__(self, "shapes", shapes_of(self.shapes))
