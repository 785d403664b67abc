"""The robot at the time of an event of a scenario, as far as the events before it could be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from screwdyn.io.document import Entry
from screwdyn.tree import KinematicTree

__all__ = ["Present"]


class Present:
    """The robot after the events that could be tried, and the names that the others would have concerned.

    What is wrong with these names follows from problems that are reported already.

    Parameters
    ----------
    robot : KinematicTree
        At the start; copied.
    """

    def __init__(self, robot: KinematicTree) -> None:
        self.tree = robot.copy()
        self.failed: list[str] = []

    def fail(self, event: Any) -> None:
        """Note the names of an event that could not be tried, given as the value of the file."""
        given = event if isinstance(event, Mapping) else {}
        # A grasp without a name, or of a whole tree without a prefix, may bring any name; all begin with "".
        name = given.get("name")
        named = isinstance(name, str) and name != "" and not isinstance(given.get("body"), str)
        anything = given.get("event") not in _NAMING and not (named or isinstance(given.get("prefix"), str))
        self.failed += [""] if anything else _names(given)

    def doubtful(self, name: str) -> bool:
        """Whether an event that could not be tried may have brought or changed what has this name."""
        return name.startswith(tuple(self.failed))

    def concerns(self, event: Mapping[str, Any]) -> bool:
        """Whether an event needs what :meth:`doubtful` says of."""
        return any(map(self.doubtful, (*_names(event), *(x for x in (event.get("to"),) if isinstance(x, str)))))

    def link(self, given: Entry) -> str | None:
        """The name of a link."""
        return self._one_of(given, "link", self.tree.links)

    def joint(self, given: Entry) -> str | None:
        """The name of a joint."""
        return self._one_of(given, "joint", self.tree.joints)

    def loop(self, given: Entry) -> str | None:
        """The name of a loop."""
        return self._one_of(given, "loop", self.tree.loops)

    def missing(self, given: Entry, what: str, name: str, known: Sequence[str]) -> None:
        """Add the problem that there is no such name, unless it is doubtful."""
        if not self.doubtful(name):
            given.wrong(f"there is no {what} {name!r} at that time", given.near(name, known))

    def _one_of(self, given: Entry, what: str, known: Sequence[str]) -> str | None:
        name = given.text(f"the name of a {what}")
        if name is not None and name not in known:
            self.missing(given, what, name, known)
            return None
        return name


# Events that bring no names but those that they mention.
_NAMING = ("release", "hand_over", "lock", "unlock", "replace_joint", "set_inertia", "open")


def _names(event: Mapping[str, Any]) -> list[str]:
    """The names that an event brings or changes: of links and joints, and beginnings of names."""
    joint = event.get("joint")
    inner = [joint.get("name")] if isinstance(joint, Mapping) else [joint]
    found = [*(event.get(key) for key in ("name", "prefix", "what", "link", "loop")), *inner]
    return [name for name in found if isinstance(name, str) and name]
