"""The schedule of a scenario: changes of the robot at times, or as a number passes a value."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from screwdyn.changes.catalogue import KINDS, Readers, keys_of, read_fields, readers
from screwdyn.changes.change import Scheduled
from screwdyn.cli.files import Beside, named_robot
from screwdyn.core.errors import ScrewdynError
from screwdyn.io.document import Entry
from screwdyn.io.json_text import read_part
from screwdyn.mechanism import joint as joints
from screwdyn.mechanism.inertia import Inertia
from screwdyn.mechanism.joint import Joint, Mimic, Rotor
from screwdyn.mechanism.link import Link
from screwdyn.mechanism.shape import Shape
from screwdyn.physics.state import State
from screwdyn.tree import KinematicTree

# The numbers of bodies; those of solids are arguments of functions of their names.
_SIZES: dict[str, Callable[[Entry], Any]] = {
    "box": lambda given: given.numbers(3),
    "sphere": lambda given: given.number(what="a radius in metres"),
    "cylinder": lambda given: given.numbers(2),
    "tensor": lambda given: given.numbers(6),
}
_BODY: dict[str, Callable[[Entry], Any]] = {
    "mass": lambda given: given.number(what="a number of kilograms"),
    "com": lambda given: given.numbers(3),
    **_SIZES,
}
# What a grasp must say, because the payload of a file brings neither.
_NEEDED = {"grasp": ("name", "twist")}


class Present:
    """The robot after the events that could be tried, and the names of the others, which are not searched for."""

    def __init__(self, robot: KinematicTree) -> None:
        self.tree = robot.copy()
        self.failed: list[str] = []

    def fail(self, given: Any) -> None:
        """Note the names of an event that could not be tried, given as the value of the file."""
        event = given if isinstance(given, Mapping) else {}
        kind = KINDS.get(str(event.get("event")))
        # What has a name of its own may bring any without it, as a whole tree does without a prefix; all begin with "".
        name = event.get("name")
        named = isinstance(name, str) and name != "" and not isinstance(event.get("body"), str)
        anything = (kind is None or "name" in keys_of(kind)) and not (named or isinstance(event.get("prefix"), str))
        self.failed += [""] if anything else _names(event)

    def doubtful(self, name: str) -> bool:
        """Whether an event that could not be tried may have brought or changed what has this name."""
        return name.startswith(tuple(self.failed))

    def known(self, what: str, given: Entry, names: str = "") -> str | None:
        """A name of a link, joint, loop or coordinate, in the tree's list of these; doubtful names are None too."""
        name, known = given.text(f"the name of a {what}"), getattr(self.tree, names or f"{what}s")
        if name is None or name in known or self.doubtful(name):
            return name if name in known else None
        return given.wrong(f"there is no {what} {name!r} at that time", given.near(name, known))


def _names(event: Mapping[str, Any], *others: str) -> list[str]:
    """The names that an event brings or changes: of links and joints, and beginnings of names."""
    joint = event.get("joint")
    inner = [joint.get("name")] if isinstance(joint, Mapping) else [joint]
    found = [*(event.get(key) for key in ("name", "prefix", "what", "link", "loop", *others)), *inner]
    return [name for name in found if isinstance(name, str) and name]


def schedule(given: Entry, present: Present, duration: float | None, beside: Beside) -> list[Scheduled[Any]]:
    """The events of a list, each tried on the robot: in the order of times, or on a condition after the one before."""

    def time(given: Entry) -> float | None:
        seconds = given.number(what="a number of seconds")
        if seconds is not None and not 0 <= seconds <= (seconds if duration is None else duration):
            end = "…" if duration is None else f"{duration:g}"
            return given.wrong(f"the run lasts from 0 to {end} s; got {seconds}")
        return None if seconds is None else float(seconds)

    def payload(given: Entry) -> Any:
        if isinstance(given.value, dict) and given.value.keys().isdisjoint(("effective", "format", "name")):
            return _body(given)
        return named_robot(given, beside) if isinstance(given.value, str) else of_records["payload"](given)

    of_records = readers(KinematicTree)
    read: Readers = {
        **of_records,
        **{what: partial(present.known, what) for what in ("link", "joint", "loop")},
        "payload": payload,
        "condition": lambda given: _condition(given, present),
        float: time,
        Joint: _joint,
        Inertia: _inertia,
    }
    found, order = [], 0.0
    for entry in given.items("a list of events, [[schedule]]"):
        own = time(Entry(entry.below("time").value, "", []))
        order = order if own is None else own
        found.append((order, entry))
    events = [_event(entry, present, read) for _, entry in sorted(found, key=lambda item: item[0])]
    return [event for event in events if event is not None]


def _event(given: Entry, present: Present, read: Readers) -> Scheduled[Any] | None:
    """An event that the robot can make, which it has made then."""
    kind, event = given.variant("event", KINDS), None
    if kind is not None:
        table, due = given, ("time" in given.value) != ("when" in given.value)
        if not due:
            given.wrong("an event has either a time or a condition", "give one of the keys 'time' and 'when'")
            table = Entry({key: x for key, x in given.value.items() if key != "when"}, given.place, given.problems)
        event = read_fields(table, KINDS[kind], read, ("event", *_NEEDED.get(kind, ())))
        event = event if due else None
    try:
        if event is not None:
            event.restructure(present.tree)
            return event
    except ScrewdynError as error:
        if not any(map(present.doubtful, _names(given.value, "to"))):
            given.wrong(str(error))
    present.fail(given.value)
    return None


def _body(given: Entry) -> Link | None:
    """A link of any name, whose inertia is also its shape if it is that of a solid."""
    values = {what: _BODY[what](entry) for what, entry in given.table(("mass",), ("com", *_SIZES)).items()}
    found = [what for what in _SIZES if what in values]
    if len(found) > 1:
        return given.wrong(f"{' and '.join(found)} are given", "keep one")
    if "mass" not in values or None in values.values():
        return None
    kind = found[0] if found else "tensor"
    mass, com, size = values["mass"], values.get("com", [0.0, 0.0, 0.0]), values.get(kind, [0.0] * 6)
    shapes: list[Shape] = []
    if kind == "tensor":
        xx, xy, xz, yy, yz, zz = size
        inertia = given.made(Inertia, mass, com, [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    else:
        sizes = size if kind == "cylinder" else [size]
        inertia = given.made(getattr(Inertia, kind), mass, *sizes, com=com)
        shapes += [] if inertia is None else [getattr(Shape, kind)(*sizes, pose=com)]
    return None if inertia is None else Link("payload", inertia, tuple(shapes))


def _inertia(given: Entry) -> Inertia | None:
    """That of a body, or its record."""
    if isinstance(given.value, dict) and "effective" in given.value:
        record: Inertia | None = read_part(Inertia, given)
        return record
    body = _body(given)
    return None if body is None else body.inertia


def _joint(given: Entry) -> Joint | None:
    """A joint by its function and its arguments, or by its record."""
    if isinstance(given.value, dict) and "type" not in given.value and given.value.keys() & {"screws", "chart"}:
        joint: Joint | None = read_part(Joint, given)
    else:
        kind = given.variant("type", joints.KINDS)
        joint = None if kind is None else called(given, joints.KINDS[kind], "type")
    if joint is not None and joint.mimic is not None:
        return given.wrong("an event cannot bring a joint that follows another one", "leave out 'mimic'")
    return joint


def called(given: Entry, make: Callable[..., Any], *others: str) -> Any:
    """What a function makes of its arguments, which are the keys of a table besides some others."""
    known = inspect.signature(make).parameters
    required = tuple(name for name, x in known.items() if x.default is x.empty)
    fields = given.table((*others, *required), tuple(name for name in known if name not in required))
    values = {name: _READ.get(name, Entry.number)(entry) for name, entry in fields.items() if name in known}
    whole = None not in values.values() and {*required} <= values.keys()
    return given.made(make, **values) if whole else None


def _axis(given: Entry) -> Any:
    if isinstance(given.value, str):
        return given.one_of("x", "y", "z", "-x", "-y", "-z")
    return given.numbers(3)


# Arguments of joints and of what they contain that are not one number.
_READ: dict[str, Callable[[Entry], Any]] = {
    "axis": _axis,
    "axis1": _axis,
    "axis2": _axis,
    "point": lambda given: given.numbers(3),
    "limits": lambda given: given.numbers(2),
    "passive": Entry.flag,
    "name": Entry.text,
    "rotor": lambda given: called(given, Rotor),
    "com": lambda given: given.numbers(3),
    "carrier": Entry.text,
    "mimic": lambda given: called(given, Mimic),
    "joint": Entry.text,
}


# The numbers that may pass a value, and what lists their names in a tree.
_NUMBERS = {"position": "positions", "velocity": "coordinates", "x": "links", "y": "links", "z": "links"}
_SIDES = {"above": 1.0, "below": -1.0}


def _passed(number: str, name: str, side: str, value: float, after: float, t: float, state: State) -> float | bool:
    """How far a number is above or below a value, rad, m, rad/s or m/s; False earlier, or if there is no such name.

    It is the position or velocity of a coordinate, or x, y or z of a link's origin in the base frame.
    """
    tree: Any = state.tree
    if t < after or name not in getattr(tree, _NUMBERS[number]):
        return False
    if number in ("position", "velocity"):
        found = state[name] if number == "position" else state.velocity(name)
    else:
        found = tree.forward_kinematics(name, state.q)["xyz".index(number), 3]
    return _SIDES[side] * (float(found) - value)


def _condition(given: Entry, present: Present) -> Callable[[float, State], float | bool] | None:
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
    what = "coordinate" if number in ("position", "velocity") else "link"
    present.known(what, fields[number], _NUMBERS[number])
    value = fields[side].number()
    after = fields["after"].number(what="a number of seconds") if "after" in fields else 0.0
    if len(given.problems) > before:
        return None
    return partial(_passed, number, fields[number].value, side, float(value), float(after))
