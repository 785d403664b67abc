"""A link: a name and, unless it is massless, an inertia."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from screwdyn.core.errors import InertiaError, TopologyError
from screwdyn.mechanism.inertia import Inertia

__all__ = ["Link"]


@dataclass(frozen=True)
class Link:
    """One rigid body of a tree, with a frame of its own.

    Parameters
    ----------
    name : str
        Unique within its tree.
    inertia : Inertia, optional
        Mass, centre of mass and inertia tensor in the link frame; ``None`` for a massless frame such as ``tool0``.

    Raises
    ------
    TopologyError
        If the name is not a non-empty string.
    InertiaError
        If ``inertia`` is neither an :class:`Inertia` nor ``None``.
    """

    name: str
    inertia: Inertia | None = None

    def prefixed(self, prefix: str) -> "Link":
        """The link with a prefix before its name."""
        return Link(prefix + self.name, self.inertia) if prefix else self

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
            return Link(self.name, self.inertia.subs(values))
        except InertiaError as error:
            raise InertiaError(f"link {self.name!r}: {error}") from None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise TopologyError(f"a link needs a non-empty string as its name; got {self.name!r}")
        if self.inertia is not None and not isinstance(self.inertia, Inertia):
            raise InertiaError(
                f"link {self.name!r}: inertia must be a screwdyn.Inertia or None; got {type(self.inertia).__name__}"
            )
