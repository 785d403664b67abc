"""The kinds of changes, the methods of a tree that make them, and their records.

Records are values of JSON or of other files: each field of a kind is read by what it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import cache, partial
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from screwdyn.changes import breaking, grasp, lock, loops, move, release, reroot, set_inertia, weld
from screwdyn.changes.change import Scheduled
from screwdyn.changes.grasp import FreeBody
from screwdyn.core.errors import JSONError
from screwdyn.io.document import Entry, PlacedProblem, listed
from screwdyn.io.json_text import read_part
from screwdyn.mechanism import Handle, Inertia, Joint, Link, Shape, Topology
from screwdyn.physics import Robot, State

T = TypeVar("T")

# Every kind of change by what files call it, in the order in which the documentation lists them.
KINDS: dict[str, type[Scheduled[Any]]] = {
    kind.kind(): kind
    for kind in (
        *(grasp.Grasp, release.Release, move.HandOver, lock.Lock, lock.Unlock, move.ReplaceJoint),
        *(set_inertia.SetInertia, loops.Close, loops.Open, breaking.Break, weld.Weld, weld.Unweld, reroot.Reroot),
    )
}
# What reads a field, by its role.
Readers = Mapping[Any, Callable[[Entry], Any]]


class Changes(Robot):
    """Changes of a tree. After an error, the tree is unchanged.

    With a ``state`` of the tree just before the change, positions are continuous, the momenta are projected on the
    freedoms of the changed tree (docs/mathematics.md §6), and the result has the state just after the change. Without a
    state, only the structure changes; :meth:`State.onto` then carries a state over.
    """

    # Functions whose first argument is the tree.
    grasp, release, move, replace_joint = grasp.grasp, release.release, move.move, move.replace_joint
    lock, unlock, weld, unweld = lock.lock, lock.unlock, weld.weld, weld.unweld
    close, open, set_inertia, reroot = loops.close, loops.open_, set_inertia.set_inertia, reroot.reroot


class Key(NamedTuple):
    """A field of a kind, by its key in a record."""

    field: str
    role: Any  # what it is: the word of its annotation, or its type
    required: bool
    nullable: bool


@cache
def keys_of(kind: Any) -> dict[str, Key]:
    """The fields of a kind by key. A string or a handle is a link unless the annotation says something else."""
    found, hints = {}, get_type_hints(kind, include_extras=True)
    for field in fields(kind):
        hint = hints[field.name]
        parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        words = [part.__metadata__[0] for part in parts if get_origin(part) is Annotated]
        role = words[0] if words else "link" if Handle in parts else parts[0]
        key = field.metadata.get("key", field.name)
        found[key] = Key(field.name, role, field.default is MISSING, NoneType in parts)
    return found


def change_of(record: Mapping[str, Any], tree: type[Robot]) -> Scheduled[Any]:
    """A change as :meth:`Scheduled.to_dict` wrote it, whose trees are of a class; JSONError lists all problems."""
    problems: list[PlacedProblem] = []
    given = Entry(record, "", problems)
    kind = given.variant("event", KINDS)
    change = None if kind is None else read_fields(given, KINDS[kind], readers(tree), ("event",))
    if change is None or problems:
        raise JSONError(listed("the record of a change", problems), problems)
    return change


def read_fields(given: Entry, kind: Callable[..., T], read: Readers, others: Sequence[str] = ()) -> T | None:
    """What a class makes of its fields, read in the order of a table that may have others too; None after a problem."""
    known = keys_of(kind)
    required = [key for key, x in known.items() if x.required]
    entries = given.table((*required, *others), [key for key in known if key not in required])
    values: dict[str, Any] = {}
    whole = entries.keys() >= {*required, *others}
    for key in [key for key in given.value if key in known] if entries else ():
        name, role, _, nullable = known[key]
        null = nullable and entries[key].value is None
        values[name] = None if null else read[role](entries[key])
        whole &= null or values[name] is not None
    return given.made(_made, kind, values) if whole else None


def _made(kind: Callable[..., T], values: dict[str, Any]) -> T:
    """What a class makes of its fields, among which a state is still by name."""
    for name in [x.field for x in keys_of(kind).values() if x.role is State and values.get(x.field) is not None]:
        trees = [x for x in values.values() if isinstance(x, Robot)]
        if not trees:
            raise JSONError(f"{name!r} is of a payload that is a tree")
        values[name] = State.from_dict(trees[0], values[name])
    return kind(**values)


def readers(tree: type[Robot]) -> Readers:
    """What reads the fields of records; trees are of the given class."""

    def grown(given: Entry) -> Robot | None:
        topology = read_part(Topology, given)
        if topology is None:
            return None
        robot = tree()
        robot.topology = topology
        return robot

    def payload(given: Entry) -> Any:
        if not isinstance(given.value, dict):
            return given.text("the name of a link, or the record of a body")
        if "tree" in given.value:
            return read_fields(given, FreeBody, found)
        kind = Link if "name" in given.value else Inertia
        return grown(given) if "format" in given.value else read_part(kind, given)

    def limit(given: Entry) -> breaking.Limit | None:
        kind = given.variant("kind", breaking.LIMITS)
        return None if kind is None else read_fields(given, breaking.LIMITS[kind], found, ("kind",))

    found: Readers = {
        **{what: partial(Entry.text, what=f"the name of a {what}") for what in ("link", "joint", "loop")},
        **{kind: partial(read_part, kind) for kind in (Joint, Inertia)},
        "pose": _pose,
        "twist": _twist,
        "start": _start,
        "payload": payload,
        "limit": limit,
        "number": Entry.number,
        "vector": lambda given: given.numbers(3),
        "rows": lambda given: given.matrix(3),
        "condition": lambda given: given.wrong("a condition cannot be read", "give a time"),
        Robot: grown,
        str: Entry.text,
        bool: Entry.flag,
        float: partial(Entry.number, what="a number of seconds"),
        Shape: _shapes,
        State: lambda given: {what: _numbers(x) for what, x in given.table((), ("q", "qd")).items()},
    }
    return found


def _pose(given: Entry) -> Any:
    """A position of three numbers, or a pose of four rows of four numbers."""
    nested = isinstance(given.value, list) and any(isinstance(row, list) for row in given.value)
    numbers = given.matrix(4, 4) if nested else given.numbers(3)
    return None if numbers is None else np.array(numbers, dtype=float)


def _twist(given: Entry) -> Any:
    """A word, or six numbers."""
    if isinstance(given.value, str):
        return given.one_of("at_rest", "co_moving")
    numbers = given.numbers(6)
    return None if numbers is None else np.array(numbers)


def _start(given: Entry) -> Any:
    """A word, a number, numbers, or numbers by name."""
    if isinstance(given.value, str):
        return given.one_of("hanging")
    if isinstance(given.value, dict):
        return _numbers(given)
    return given.numbers(len(given.value)) if isinstance(given.value, list) else given.number()


def _shapes(given: Entry) -> Shape | list[Shape] | None:
    """A shape, or a list of shapes."""
    if not isinstance(given.value, list):
        shape: Shape | None = read_part(Shape, given)
        return shape
    found = [read_part(Shape, entry) for entry in given.items()]
    return None if None in found else found


def _numbers(given: Entry) -> dict[str, Any] | None:
    """Numbers by name."""
    found = {name: entry.number() for name, entry in given.entries().items()}
    return None if None in found.values() else found
