"""Everything that can go wrong, by name.

Each message says what was wrong, where (with names, not indices), and what to do about it.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from reprlib import repr as cut_repr

__all__ = [
    "InertiaError",
    "JointError",
    "ScrewdynError",
    "ScrewdynWarning",
    "ShapeError",
    "SingularAttachmentError",
    "StaleHandleError",
    "TopologyError",
    "URDFError",
    "UnboundSymbolError",
    "UnknownLinkError",
]


class ScrewdynWarning(UserWarning):
    """Input that is accepted, but that a careful person would look at."""


class ScrewdynError(ValueError):
    """Base of every error that screwdyn raises on purpose."""


class TopologyError(ScrewdynError):
    """The links would not form a tree: a cycle, a second parent, a duplicate name."""


class UnknownLinkError(ScrewdynError):
    """A name that the tree does not have; the message lists the near ones."""

    @classmethod
    def of(cls, name: object, known: Iterable[str], what: str = "link") -> "UnknownLinkError":
        """The error for a name that is not among the known ones."""
        if not isinstance(name, str) and hasattr(name, "__len__"):
            order = "; arguments are (link, q, …)" if what == "link" else ""
            return cls(f"there is no {what} {cut_repr(name)}: a {what} is given by its name, a str{order}")
        return cls(f"there is no {what} {name!r}; {cls.hint(name, known)}")

    @staticmethod
    def hint(name: object, known: Iterable[str]) -> str:
        """The known names that are near, or all of them."""
        known = list(known)
        near = get_close_matches(str(name), known, n=3, cutoff=0.5)
        return f"did you mean {' or '.join(map(repr, near))}?" if near else f"known: {', '.join(known)}"


class InertiaError(ScrewdynError):
    """Mass properties that no rigid body has; the message names the failing condition."""


class JointError(ScrewdynError):
    """A joint that moves nothing or whose numbers make no sense (zero axis, bad pitch)."""


class ShapeError(ScrewdynError):
    """An array of the wrong shape, or with entries that are not finite numbers."""


class StaleHandleError(ScrewdynError):
    """A handle, state or snapshot that belongs to an earlier form of the tree."""


class SingularAttachmentError(ScrewdynError):
    """A joint that carries no inertia along its screw, so that its acceleration is undetermined."""


class UnboundSymbolError(ScrewdynError):
    """Numbers were asked for where symbols still stand; the message names them."""

    @classmethod
    def of(cls, symbols: Iterable[object], what: str) -> "UnboundSymbolError":
        """The error for something that depends on these symbols."""
        names = ", ".join(sorted(map(str, symbols)))
        return cls(f"{what} still depends on {names}; give values with tree.subs({{...}}), or use tree.symbolic()")


class URDFError(ScrewdynError):
    """Everything wrong with a URDF file, all at once.

    Attributes
    ----------
    problems : tuple of Problem
        Each with ``line``, ``element``, ``message`` and ``hint``.
    """

    def __init__(self, message: str, problems: Iterable[object] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)
