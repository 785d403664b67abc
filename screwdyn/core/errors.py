"""Errors and warnings of the package.

Each message states what was given, what was expected (with names, not indices), and what to do.
"""

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from reprlib import repr as cut_repr
from typing import Any

# Names that a message lists if none is similar.
MOST_LISTED = 8


class ScrewdynWarning(UserWarning):
    """Input that is accepted but is probably a mistake."""


class ScrewdynError(ValueError):
    """Base class of all errors that screwdyn raises for wrong input."""


class TopologyError(ScrewdynError):
    """Links that do not form a tree: a cycle, a second parent, a duplicate name."""


class UnknownNameError(ScrewdynError):
    """A name of a link, joint, coordinate or symbol that does not exist; the message lists similar names."""

    @classmethod
    def of(cls, name: object, known: Iterable[str], what: str = "link") -> "UnknownNameError":
        """The error for a name that is not among the known names of a kind of thing, such as ``"joint"``."""
        if isinstance(called := getattr(name, "name", None), str):
            return cls(f"a {what} is given by its name, {called!r}; got {cut_repr(name)}")
        if not isinstance(name, str) and hasattr(name, "__len__"):
            order = "; arguments are (link, …)" if what == "link" else ""
            return cls(f"there is no {what} {cut_repr(name)}: a {what} is given by its name, a str{order}")
        return cls(f"there is no {what} {name!r}; {cls.hint(name, known)}")

    @classmethod
    def check(cls, name: object, known: Iterable[str], what: str = "link") -> str:
        """The name, which must be among the known ones; raises the error for any other thing."""
        if not isinstance(name, str) or name not in known:
            raise cls.of(name, known, what)
        return name

    @staticmethod
    def hint(name: object, known: Iterable[str]) -> str:
        """The known names that are similar; or, if none is, all of them, or the nearest of many, in their order."""
        known = list(known)
        # The name of a joint matches those of its entries: "hip" matches "hip[wx]", "hip[wy]" and "hip[wz]".
        entries: dict[str, list[str]] = {x: [x] for x in known}
        for x in known:
            stem, bracket, _ = x.rpartition("[")
            if bracket and stem not in known:
                entries.setdefault(stem, []).append(x)
        near = {x: x for match in get_close_matches(str(name), entries, n=3, cutoff=0.5) for x in entries[match]}
        if near:
            return f"did you mean {' or '.join(map(repr, near))}?"
        nearest = get_close_matches(str(name), known, n=MOST_LISTED, cutoff=0.0)
        shown = [x for x in known if x in nearest]
        more = f" and {len(known) - len(shown)} more" if len(known) > len(shown) else ""
        return f"known: {', '.join(shown) or 'none'}{more}"


# The name under which programs catch it for links.
UnknownLinkError = UnknownNameError


class InertiaError(ScrewdynError):
    """Mass properties that no rigid body has; the message states the condition that fails."""


class JointError(ScrewdynError):
    """Invalid parameters of a joint, such as a zero axis or a pitch that is not finite."""


class ShapeError(ScrewdynError):
    """An array of the wrong shape, or with entries that are not finite numbers; a wrong :class:`Shape` of a link."""


class StaleHandleError(ScrewdynError):
    """A handle or state of an earlier revision of the tree."""


class SingularAttachmentError(ScrewdynError):
    """A joint that feels no inertia along its screw, so that its acceleration is undetermined."""


class EquilibriumError(ScrewdynError):
    """Gravity, springs and the given torques do not balance in any configuration that was found."""


class InverseKinematicsError(ScrewdynError):
    """No configuration was found in which a link has the given pose.

    ``q`` is the nearest configuration that was found, (nq,), rad and m. ``position_error`` is the distance of the link
    from the position, m, and ``angle_error`` the angle between both orientations, rad; 0 if the orientation is free.
    """

    def __init__(
        self, message: str, q: object = None, position_error: float = math.nan, angle_error: float = 0.0
    ) -> None:
        super().__init__(message)
        self.q, self.position_error, self.angle_error = q, position_error, angle_error


class LoopError(ScrewdynError):
    """Loops that cannot be closed from a configuration, or a computation that is not available for trees with loops."""


class ContactError(ScrewdynError):
    """Contacts, dry friction and stops whose forces or impulses were not found, or that rigid bodies do not have."""


class StalledError(ScrewdynError):
    """A simulation whose steps have become so short that it would not end; the message states the cause and a remedy.

    It was stopped at time ``t``, s; ``coordinate`` is the one whose force or motion makes the steps short, or None.
    """

    def __init__(self, message: str, t: float = math.nan, coordinate: str | None = None) -> None:
        super().__init__(message)
        self.t, self.coordinate = t, coordinate


class UnboundSymbolError(ScrewdynError):
    """A numeric function called on a tree whose numbers contain symbols; the message names the symbols."""

    @classmethod
    def of(cls, symbols: Iterable[object], what: str) -> "UnboundSymbolError":
        """The error for a quantity that depends on these symbols."""
        names = ", ".join(sorted(map(str, symbols)))
        return cls(f"{what} still depends on {names}; give values with tree.subs({{...}}), or use tree.symbolic()")


class _InputError(ScrewdynError):
    """All problems of some input at once."""

    problems: tuple[Any, ...]

    def __init__(self, message: str, problems: Iterable[object] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)


class URDFError(_InputError):
    """All ``problems`` of a URDF file at once, each with ``line``, ``element``, ``message`` and ``hint``."""


class JSONError(_InputError):
    """All ``problems`` of a JSON document of a tree at once, each with ``place``, ``message`` and ``hint``; or, as
    strings, all that cannot be written as JSON.
    """


class ModelError(_InputError):
    """A model of another library, such as MuJoCo or Pinocchio, that cannot be read; ``problems`` lists all reasons."""


class ScenarioError(_InputError):
    """All ``problems`` of the TOML file of a scenario at once, each with ``place``, ``message`` and ``hint``."""


@contextmanager
def file_errors(what: str) -> Iterator[None]:
    """Raise an OSError of the block as a ScrewdynError, such as "cannot read 'arm.urdf': Permission denied"."""
    try:
        yield
    except OSError as error:
        raise ScrewdynError(f"cannot {what}: {error.strerror or error}") from None


__all__ = ["ContactError", "EquilibriumError", "InertiaError", "InverseKinematicsError", "JSONError", "JointError"]
__all__ += ["LoopError", "ModelError", "ScenarioError", "ScrewdynError", "ScrewdynWarning", "ShapeError"]
__all__ += ["SingularAttachmentError", "StaleHandleError", "StalledError", "TopologyError", "URDFError"]
__all__ += ["UnboundSymbolError", "UnknownLinkError", "UnknownNameError"]
