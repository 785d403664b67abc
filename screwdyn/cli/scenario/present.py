"""The robot at the time of an event of a scenario, and conditions: an event happens as a number passes a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from screwdyn.io.document import Entry
from screwdyn.physics.state import State
from screwdyn.tree import KinematicTree

__all__ = ["Present", "condition"]


class Present:
    """The robot after the events that could be tried, and the names that the others would have concerned.

    What is wrong with these names follows from problems that are reported already. The robot at the start is copied.
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
_NAMING = ("release", "hand_over", "lock", "unlock", "replace_joint", "set_inertia", "open", "unweld", "reroot")


def _names(event: Mapping[str, Any]) -> list[str]:
    """The names that an event brings or changes: of links and joints, and beginnings of names."""
    joint = event.get("joint")
    inner = [joint.get("name")] if isinstance(joint, Mapping) else [joint]
    found = [*(event.get(key) for key in ("name", "prefix", "what", "link", "loop")), *inner]
    return [name for name in found if isinstance(name, str) and name]


def _of_link(axis: int) -> Callable[[State, str], float]:
    return lambda state, link: float(state.tree.forward_kinematics(link, state.q)[axis, 3])


# The numbers that may pass a value, and the names that each of them may have in a tree.
_NUMBERS: dict[str, tuple[Callable[[KinematicTree], tuple[str, ...]], Callable[[State, str], float]]] = {
    "position": (lambda tree: tree.positions, lambda state, name: float(state[name])),
    "velocity": (lambda tree: tree.coordinates, lambda state, name: float(state.velocity(name))),
    "x": (lambda tree: tree.links, _of_link(0)),
    "y": (lambda tree: tree.links, _of_link(1)),
    "z": (lambda tree: tree.links, _of_link(2)),
}
_SIDES = {"above": 1.0, "below": -1.0}


@dataclass(frozen=True)
class Passing:
    """A number is above or below a value."""

    number: str  # "position" or "velocity" of a coordinate, or "x", "y" or "z" of a link's origin in the base frame
    name: str
    side: str  # "above" or "below"
    value: float  # rad, m, rad/s or m/s
    after: float = 0.0  # seconds, before which the condition does not hold; nor while the tree has no such name

    def __call__(self, t: float, state: State) -> float | bool:
        """A number that is positive while the condition holds, or False."""
        names, measure = _NUMBERS[self.number]
        tree = state.tree
        assert isinstance(tree, KinematicTree)
        if t < self.after or self.name not in names(tree):
            return False
        return _SIDES[self.side] * (measure(state, self.name) - self.value)


def condition(given: Entry, present: Present) -> Passing | None:
    """A condition, such as ``{z = "tool0", below = 0.2}``; the robot must have the name that it gives."""
    before = len(given.problems)
    fields = given.table((), (*_NUMBERS, *_SIDES, "after"))
    numbers, sides = ([key for key in keys if key in fields] for keys in (_NUMBERS, _SIDES))
    for what, found, known in (("number", numbers, _NUMBERS), ("side", sides, _SIDES)):
        if isinstance(given.value, dict) and len(found) != 1:
            given.wrong(f"expected one {what}, of {', '.join(known)}; got {' and '.join(found) or 'none'}")
    if len(given.problems) > before:
        return None
    (number,), (side,) = numbers, sides
    name, value = fields[number].text("a name"), fields[side].number()
    after = fields["after"].number(what="a number of seconds") if "after" in fields else 0.0
    names = _NUMBERS[number][0](present.tree)
    if name is not None and name not in names:
        what = "coordinate" if number in ("position", "velocity") else "link"
        present.missing(fields[number], what, name, names)
    if len(given.problems) > before or name is None:
        return None
    return Passing(number, name, side, float(value), float(after))
