"""The schedule of a scenario: changes of the robot at times or on conditions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from screwdyn.changes.change import Scheduled
from screwdyn.changes.grasp import Grasp
from screwdyn.changes.lock import Lock, Unlock
from screwdyn.changes.loops import Close, Open
from screwdyn.changes.move import HandOver, ReplaceJoint
from screwdyn.changes.release import Release
from screwdyn.changes.reroot import Reroot
from screwdyn.changes.set_inertia import SetInertia
from screwdyn.changes.weld import Unweld, Weld
from screwdyn.cli.robot_files import Beside, named_robot
from screwdyn.cli.scenario.present import Present, condition
from screwdyn.core.errors import ScrewdynError
from screwdyn.io.document import Entry
from screwdyn.mechanism.inertia import Inertia
from screwdyn.mechanism.joint import KINDS, Joint, Mimic, Rotor
from screwdyn.mechanism.shape import Shape
from screwdyn.physics.state import State

__all__ = ["schedule"]

# Makes an event of its time or condition.
Change = Callable[..., Scheduled[Any]]
_SHAPES = ("box", "sphere", "cylinder", "tensor")


class _Given(NamedTuple):
    """An event of the file.

    Attributes
    ----------
    order : float
        The time at which it is tried, s: its own, or that of the event before it in the file.
    entry, fields : Entry, and its entries by key, also of required keys that it lacks
    kind : str
    time : float or None
        Its own, s, if it is valid.
    complete : bool
        Whether it has all required keys.
    """

    order: float
    entry: Entry
    fields: dict[str, Entry]
    kind: str
    time: float | None
    complete: bool


def schedule(given: Entry, present: Present, duration: float | None, beside: Beside) -> list[Scheduled[Any]]:
    """The events of a list. Each is tried on the robot, in the order of the times, and must be possible.

    An event on a condition is tried after the event before it in the list.
    """
    found: list[_Given] = []
    order = 0.0
    for entry in given.items("a list of events, [[schedule]]"):
        kind = entry.variant("event", _EVENTS)
        if kind is None:
            present.fail(entry.value)
            continue
        required, optional, _ = _EVENTS[kind]
        fields = entry.table(("event", *required), ("time", "when", *optional))
        time = fields["time"].number(what="a number of seconds") if "time" in fields else None
        if ("time" in fields) == ("when" in fields):
            entry.wrong("an event has either a time or a condition", "give one of the keys 'time' and 'when'")
        elif time is not None and not 0 <= time <= (time if duration is None else duration):
            fields["time"].wrong(
                f"the run lasts from 0 to {'…' if duration is None else f'{duration:g}'} s; got {time}"
            )
            time = None
        order = order if time is None else float(time)
        # The other keys are read too; what is missing is a problem already, so those of its value go to another list.
        missing = {key: Entry(None, "", []) for key in required if key not in fields}
        found.append(_Given(order, entry, fields | missing, kind, time, not missing))
    events = []
    for _, entry, fields, kind, time, complete in sorted(found, key=lambda item: item.order):
        due = {"when": condition(fields["when"], present)} if "when" in fields else {"time": time}
        try:
            make = _EVENTS[kind][2](fields, present, beside)
        except ScrewdynError as error:
            make = None
            if not present.concerns(entry.value):
                entry.wrong(str(error))
        if make is None:
            present.fail(entry.value)
        elif complete and None not in due.values():
            events.append(make(**due))
    return events


def _grasp(fields: dict[str, Entry], present: Present, beside: Beside) -> Change | None:
    before = len(fields["to"].problems)
    to = present.link(fields["to"])
    name = fields["name"].text()
    body = named_robot(fields["body"], beside) if isinstance(fields["body"].value, str) else _body(fields["body"])
    joint = _joint(fields["joint"]) if "joint" in fields else None
    at = _place(fields["at"]) if "at" in fields else None
    twist = _twist(fields["twist"])
    start = fields["start"].one_of("hanging") if "start" in fields else None
    prefix = (fields["prefix"].text() if "prefix" in fields else "") or ""
    if len(fields["to"].problems) > before or to is None or body is None or name is None:
        return None
    present.tree.attach(body, to, joint, at, name, prefix=prefix)
    shape = _shape(fields["body"].value) if isinstance(body, Inertia) else None
    return partial(
        Grasp, body, to=to, twist=twist, joint=joint, at=at, name=name, prefix=prefix, start=start, shape=shape
    )


def _release(fields: dict[str, Entry], present: Present, beside: Beside) -> Change | None:
    what = present.link(fields["what"])
    into_world = fields["into_world"].flag() if "into_world" in fields else False
    if what is None or into_world is None:
        return None
    if into_world:
        present.tree.release(State(present.tree), what, into_world=True)
    else:
        present.tree.detach(what)
    return partial(Release, what, into_world=into_world)


def _hand_over(fields: dict[str, Entry], present: Present, beside: Beside) -> Change | None:
    before = len(fields["to"].problems)
    what, to = present.link(fields["what"]), present.link(fields["to"])
    joint = _joint(fields["joint"]) if "joint" in fields else None
    at = _place(fields["at"]) if "at" in fields else None
    if len(fields["to"].problems) > before or what is None or to is None:
        return None
    present.tree.move(what, to, joint, at)
    return partial(HandOver, what, to=to, joint=joint, at=at)


def _lock(fields: dict[str, Entry], present: Present, beside: Beside) -> Change | None:
    name = present.joint(fields["joint"])
    if name is None:
        return None
    present.tree.lock(name)
    return partial(Lock, name)


def _unlock(fields: dict[str, Entry], present: Present, beside: Beside) -> Change | None:
    name = present.joint(fields["joint"])
    if name is None:
        return None
    present.tree.unlock(name)
    return partial(Unlock, name)


def _replace_joint(fields: dict[str, Entry], present: Present, beside: Beside) -> Change | None:
    link, joint = present.link(fields["link"]), _joint(fields["joint"])
    if link is None or joint is None:
        return None
    present.tree.replace_joint(link, joint)
    return partial(ReplaceJoint, link, joint)


def _set_inertia(fields: dict[str, Entry], present: Present, beside: Beside) -> Change | None:
    link, inertia = present.link(fields["link"]), _body(fields["inertia"])
    if link is None or inertia is None:
        return None
    present.tree.set_inertia(link, inertia)
    return partial(SetInertia, link, inertia)


def _close(fields: dict[str, Entry], present: Present, beside: Beside) -> Change | None:
    before = len(fields["link"].problems)
    link, to = present.link(fields["link"]), present.link(fields["to"])
    joint = _joint(fields["joint"]) if "joint" in fields else None
    at = _place(fields["at"]) if "at" in fields else None
    name = fields["name"].text() if "name" in fields else None
    if len(fields["link"].problems) > before or link is None or to is None:
        return None
    present.tree.close(link, to, joint, at, name)
    return partial(Close, link, to, joint=joint, at=at, name=name)


def _open(fields: dict[str, Entry], present: Present, beside: Beside) -> Change | None:
    name = present.loop(fields["loop"])
    if name is None:
        return None
    present.tree.open(name)
    return partial(Open, name)


def _weld(kind: type[Weld | Unweld], fields: dict[str, Entry], present: Present, beside: Beside) -> Change | None:
    link, to = present.link(fields["link"]), present.link(fields["to"])
    if link is None or to is None:
        return None
    (present.tree.weld if kind is Weld else present.tree.unweld)(link, to)
    return partial(kind, link, to)


def _reroot(fields: dict[str, Entry], present: Present, beside: Beside) -> Change | None:
    link = present.link(fields["link"])
    if link is None:
        return None
    present.tree.reroot(link)
    return partial(Reroot, link)


# Required and optional keys of an event, besides "event", "time" and "when", and what reads it.
_EVENTS: dict[str, tuple[tuple[str, ...], tuple[str, ...], Callable[..., Change | None]]] = {
    "grasp": (("body", "to", "name", "twist"), ("joint", "at", "start", "prefix"), _grasp),
    "release": (("what",), ("into_world",), _release),
    "hand_over": (("what", "to"), ("joint", "at"), _hand_over),
    "lock": (("joint",), (), _lock),
    "unlock": (("joint",), (), _unlock),
    "replace_joint": (("link", "joint"), (), _replace_joint),
    "set_inertia": (("link", "inertia"), (), _set_inertia),
    "close": (("link", "to"), ("joint", "at", "name"), _close),
    "open": (("loop",), (), _open),
    "weld": (("link", "to"), (), partial(_weld, Weld)),
    "unweld": (("link", "to"), (), partial(_weld, Unweld)),
    "reroot": (("link",), (), _reroot),
}


def _body(given: Entry) -> Inertia | None:
    fields = given.table(("mass",), ("com", *_SHAPES))
    mass = fields["mass"].number(what="a number of kilograms") if "mass" in fields else None
    com = fields["com"].numbers(3) if "com" in fields else [0.0, 0.0, 0.0]
    shapes = [what for what in _SHAPES if what in fields]
    if len(shapes) > 1:
        given.wrong(f"{' and '.join(shapes)} are given", "keep one")
    if mass is None or com is None or len(shapes) > 1:
        return None
    sizes = {"box": 3, "sphere": 1, "cylinder": 2, "tensor": 6}
    try:
        if not shapes:
            return Inertia.point(mass, com)
        shape = fields[shapes[0]]
        if shapes[0] == "sphere":
            radius = shape.number(what="a radius in metres")
            return None if radius is None else Inertia.sphere(mass, radius, com)
        numbers = shape.numbers(sizes[shapes[0]])
        if numbers is None:
            return None
        if shapes[0] == "box":
            return Inertia.box(mass, numbers, com)
        if shapes[0] == "cylinder":
            return Inertia.cylinder(mass, numbers[0], numbers[1], com=com)
        xx, xy, xz, yy, yz, zz = numbers
        return Inertia(mass, com, [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    except ScrewdynError as error:
        given.wrong(str(error))
        return None


def _shape(body: Mapping[str, Any]) -> Shape | None:
    """The shape of a valid body; None for a point or a tensor."""
    com = body.get("com")
    if "box" in body:
        return Shape.box(body["box"], pose=com)
    if "sphere" in body:
        return Shape.sphere(body["sphere"], pose=com)
    return Shape.cylinder(*body["cylinder"], pose=com) if "cylinder" in body else None


def _joint(given: Entry) -> Joint | None:
    kind = given.variant("type", KINDS)
    if kind is None:
        return None
    joint: Joint | None = _called(given, KINDS[kind], "type")
    if joint is not None and joint.mimic is not None:
        given.wrong("an event cannot bring a joint that follows another one", "leave out 'mimic'")
    return joint


def _called(given: Entry, make: Callable[..., Any], *others: str) -> Any:
    """What a function makes of its arguments, which are the keys of a table besides some others."""
    known = inspect.signature(make).parameters
    required = tuple(name for name, x in known.items() if x.default is x.empty)
    fields = given.table((*others, *required), tuple(name for name in known if name not in required))
    values = {name: _READ.get(name, Entry.number)(entry) for name, entry in fields.items() if name in known}
    if any(value is None for value in values.values()) or not {*required} <= values.keys():
        return None
    try:
        return make(**values)
    except ScrewdynError as error:
        given.wrong(str(error))
        return None


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
    "rotor": lambda given: _called(given, Rotor),
    "com": lambda given: given.numbers(3),
    "carrier": Entry.text,
    "mimic": lambda given: _called(given, Mimic),
    "joint": Entry.text,
}


def _place(given: Entry) -> Any:
    """A position of three numbers, or a pose of four rows of four numbers."""
    nested = isinstance(given.value, list) and any(isinstance(row, list) for row in given.value)
    return given.matrix(4, 4) if nested else given.numbers(3)


def _twist(given: Entry) -> Any:
    return given.one_of("at_rest", "co_moving") if isinstance(given.value, str) else given.numbers(6)
