"""Conditions of scenarios: an event happens as soon as a number passes a value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from screwdyn.cli.scenario.present import Present
from screwdyn.io.document import Entry
from screwdyn.physics.state import State
from screwdyn.tree import KinematicTree

__all__ = ["Passing", "condition"]


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
    """A number is above or below a value.

    Attributes
    ----------
    number, name : str
        A position or velocity of a coordinate, or the x, y or z of a link's origin in the base frame.
    side : "above" or "below"
    value : float
        rad, m, rad/s or m/s.
    after : float
        Seconds, before which the condition does not hold. Nor does it while the tree has no such name.
    """

    number: str
    name: str
    side: str
    value: float
    after: float = 0.0

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
