"""Trees as JSON, the format in which nothing of a tree is lost; docs/files.md describes it.

The form of each record is said once, for reading and for writing. A reader reports all problems of a document together,
with their places.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import inf, isfinite
from sys import float_info
from typing import Any, NamedTuple, get_args

import numpy as np

from screwdyn.core import JSONError, expressions, is_name
from screwdyn.io import document
from screwdyn.io.document import Entry, PlacedProblem, listed
from screwdyn.mechanism import Contact, Inertia, Plane, Topology, check_rotors, with_ties
from screwdyn.mechanism.chart import Chart
from screwdyn.mechanism.joint import Joint, Mimic, Rotor, checked_positions
from screwdyn.mechanism.link import FIXED, Attachment, Link, Locked, Loop
from screwdyn.mechanism.shape import Kind, Shape, Use
from screwdyn.screws import screw

_FORMAT, _VERSION = "screwdyn tree", 1
_dumped = partial(json.dumps, allow_nan=False)
_LOCKS = "a locked joint must be fixed, and have freedoms and the same name when it is unlocked"


def read_json(path_or_text: str | os.PathLike[str]) -> Topology:
    """Read the links and joints of a tree; parameters and errors are those of :meth:`KinematicTree.from_json`."""
    source = document.read_source(path_or_text, "JSON", "{[", JSONError)
    problems: list[PlacedProblem] = []
    topology = _tree(Entry(_parsed(source.document, source.title), "", problems, symbols={}))
    if problems or topology is None:
        raise JSONError(listed(source.title, problems), problems)
    return topology


def write_json(topology: Topology) -> str:
    """The text of a tree, with one line for each link; errors are those of :meth:`KinematicTree.to_json`."""
    parts = []
    for key, value in _document(topology).items():
        lines = key in ("links", "loops", "contacts") and value
        text = "[\n" + ",\n".join(map(_dumped, value)) + "\n]" if lines else _dumped(value)
        parts.append(f'"{key}": {text}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _document(topology: Topology) -> dict[str, Any]:
    writer = _Writer()
    found: dict[str, Any] = {"format": _FORMAT, "version": _VERSION, "gravity": writer.numbers(topology.gravity)}
    base, *others = topology.attachments.values()
    found["base"] = writer.placed(f"link {base.link.name!r}", _BASE, base)
    links = [writer.placed(f"link {at.link.name!r}", _ATTACHMENT, at) for at in others]
    loops = [writer.placed(f"loop {loop.name!r}", _LOOP, loop) for loop in topology.loops.values()]
    contacts = [writer.placed(f"contact {one.name!r}", _CONTACT, one) for one in topology.contacts.values()]
    if symbols := writer.assumptions():
        found["symbols"] = symbols
    if writer.problems:
        raise JSONError("\n  ".join(["this tree cannot be written as JSON", *writer.problems]), writer.problems)
    return found | {"links": links} | ({"loops": loops} if loops else {}) | ({"contacts": contacts} if contacts else {})


def write_part(value: Joint | Inertia | Link | Shape | Topology, what: str) -> dict[str, Any]:
    """The record of a joint, an inertia, a link or a shape, without symbols, or of a whole tree; else JSONError."""
    if isinstance(value, Topology):
        return _document(value)
    writer = _Writer()
    found: dict[str, Any] = writer.placed(what, _PARTS[type(value)], value)
    if writer.symbols:
        writer.problems.append(f"{what} has symbols, {', '.join(sorted(map(str, writer.symbols)))}; give numbers")
    if writer.problems:
        raise JSONError("\n  ".join(["this change cannot be written", *writer.problems]), writer.problems)
    return found


def read_part(kind: type[Any], given: Entry) -> Any:
    """A joint, an inertia, a link, a shape or the topology of a tree by its record; None after a problem."""
    return _tree(Entry(given.value, given.place, given.problems, {})) if kind is Topology else _PARTS[kind].read(given)


class _Writer:
    """Writes numbers; collects symbols and problems."""

    def __init__(self) -> None:
        self.symbols: set[Any] = set()
        self.problems: list[str] = []
        self.place = "gravity"

    def placed(self, place: str, form: _Form, value: Any) -> Any:
        """What a form writes; problems are at this place."""
        self.place = place
        return form.write(value, self)

    def numbers(self, values: Any) -> list[Any]:
        return [self.number(x) for x in (values.tolist() if isinstance(values, np.ndarray) else values)]

    def number(self, x: Any) -> Any:
        if isinstance(x, float) or not expressions.is_expression(x):
            if not -expressions.LARGEST <= x <= expressions.LARGEST:
                self.problems.append(f"{self.place}: {x:g} is larger than {expressions.LARGEST:g}; rescale the model")
            return x
        self.symbols |= x.free_symbols
        try:
            return document.text_of(x)
        except ValueError as error:
            problem = f"{self.place}: {error}"
            if problem not in self.problems:
                self.problems.append(problem)
            return None

    def assumptions(self) -> dict[str, dict[str, bool]]:
        """What is assumed of symbols, by name."""
        found: dict[str, dict[str, bool]] = {}
        for symbol in sorted(self.symbols, key=str):
            if symbol.name in found:
                self.problems.append(f"two symbols have the name {symbol.name!r}; rename one")
            found[symbol.name] = document.assumptions_of(symbol)
        return found


class _Form(NamedTuple):
    """How a value is read from an entry, and how it is written. A reader returns None after it has added a problem."""

    read: Callable[[Entry], Any]
    write: Callable[[Any, _Writer], Any] = lambda value, _: value


def _words(*known: Any) -> _Form:
    return _Form(lambda given: given.one_of(*known))


def _vector(count: int) -> _Form:
    return _Form(lambda given: given.numbers(count), lambda x, writer: writer.numbers(x))


def _rows(columns: int, rows: int | None = None) -> _Form:
    return _Form(lambda given: given.matrix(columns, rows), lambda x, writer: [writer.numbers(row) for row in x[:rows]])


def _list(form: _Form, what: str) -> _Form:
    return _Form(
        lambda given: [form.read(entry) for entry in given.items(what)],
        lambda values, writer: [form.write(value, writer) for value in values],
    )


def _record(
    make: Callable[..., Any], view: Callable[[Any], dict[str, Any]] = lambda _: {}, /, **keys: _Form | tuple[_Form, Any]
) -> _Form:
    """The form of objects of JSON, made by a function of the values by key, and written from attributes or a view."""
    # An optional key has the value, as it is written, that is left out.
    forms = {key: form if isinstance(form, _Form) else form[0] for key, form in keys.items()}
    optional = {key: form[1] for key, form in keys.items() if not isinstance(form, _Form)}
    readers = {key: form.read for key, form in forms.items() if key in optional}
    required = {key: form.read for key, form in forms.items() if key not in optional}

    def read(given: Entry) -> Any:
        values = given.read(required, readers)
        return None if values is None else given.made(make, **values)

    def write(value: Any, writer: _Writer) -> dict[str, Any]:
        given = view(value)
        found = {}
        for key, form in forms.items():
            x = given[key] if key in given else getattr(value, key)
            written = None if x is None else form.write(x, writer)
            if key not in optional or written != optional[key]:
                found[key] = written
        return found

    return _Form(read, write)


def _read_limits(given: Entry) -> tuple[float, float] | None:
    items = given.plain.items("two numbers or null")
    if len(items) != 2:
        return given.unexpected("two numbers or null") if isinstance(given.value, list) else None
    sides = zip(items, (-inf, inf), strict=True)
    low, high = (none if x.value is None else x.number(largest=float_info.max) for x, none in sides)
    return None if low is None or high is None else (low, high)


def _inertia(mass: Any, com: list[Any], tensor: list[Any], effective: bool = False) -> Inertia:
    xx, xy, xz, yy, yz, zz = tensor
    return (document.known_effective if effective else Inertia)(mass, com, [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def _joint(screws: list[Any] | None = None, chart: Chart | None = None, **options: Any) -> Joint:
    if screws is not None and chart is not None:
        raise JSONError("both screws and a chart are given; leave the screws out")
    return Joint(np.zeros((6, 0)) if screws is None else expressions.array(screws).T, chart=chart, **options)


def _chart(axes: list[list[Any]], center: list[Any], **sizes: int) -> Chart:
    turn = screw.as_pose([*([*row, 0] for row in axes), [0, 0, 0, 1]], "the axes of the joint")
    return Chart(axes=turn[:3, :3], center=expressions.array(center), **sizes)


def _read_locked(given: Entry) -> Locked | None:
    """The joint and the home that a locked joint has when it is unlocked, and its positions."""
    seat = _UNLOCKED.read(given)
    if seat is None:
        return None
    if not seat["joint"].screws.size:
        return given.wrong(_LOCKS)
    alone = replace(seat["joint"], mimic=None)  # a joint that follows another one is locked at a position too
    place = given.below("q").plain
    q = place.numbers(alone.nq)
    checked = None if q is None else place.made(checked_positions, "of the lock", alone, q)
    if q is None or checked is None:
        return None
    # A quaternion that has been scaled to length 1 may change by rounding if it is scaled again.
    exact = np.allclose(checked, q, rtol=0, atol=1e-15)
    return Locked(seat["joint"], seat["home"], tuple(map(float, q)) if exact else tuple(checked.tolist()))


def _attachment(name: str, inertia: Inertia | None = None, shapes: Any = (), **rest: Any) -> Attachment:
    return Attachment(Link(name, inertia, shapes), **rest)


_TEXT, _FLAG = _Form(Entry.text), _Form(Entry.flag)
_ANY = _Form(lambda given: given.value)
_NUMBER = _Form(Entry.number, lambda x, writer: writer.number(x))
_MAGNITUDE = _Form(lambda given: given.plain.number(largest=float_info.max))
_LIMITS = _Form(_read_limits, lambda limits, _: [x if isfinite(x) else None for x in limits])
_SIZES = _Form(lambda given: [x.number() for x in given.plain.items("a list of numbers")], lambda x, _: list(x))
_POSE = _Form(
    lambda given: (rows := given.matrix(4, 3)) and given.made(screw.as_pose, [*rows, [0, 0, 0, 1]], "the pose"),
    _rows(4, 3).write,
)
_INERTIA = _record(
    _inertia,
    lambda inertia: dict(zip(("com", "tensor"), inertia.entries, strict=True)) | {"effective": inertia.is_effective},
    mass=_NUMBER,
    com=_vector(3),
    tensor=_vector(6),
    effective=(_FLAG, False),
)
_SHAPE = _record(
    lambda pose=None, **rest: Shape(pose=pose and [*pose, [0, 0, 0, 1]], **rest),
    kind=_words(*get_args(Kind)),
    size=_SIZES,
    path=(_TEXT, None),
    pose=(_Form(lambda given: given.plain.matrix(4, 3), _POSE.write), np.eye(4)[:3].tolist()),
    color=(_SIZES, None),
    use=(_words(*get_args(Use)), "visual"),
)
_CHART = _record(_chart, orientation=_words(1, 4), translations=_words(0, 2, 3), axes=_rows(3, 3), center=_vector(3))
_MIMIC = _record(Mimic, joint=_TEXT, ratio=_NUMBER, offset=_NUMBER)
_ROTOR = _record(
    Rotor,
    inertia=_NUMBER,
    ratio=_NUMBER,
    mass=(_NUMBER, None),
    across=(_NUMBER, None),
    axis=_vector(3),
    com=_vector(3),
    carrier=(_TEXT, None),
)
_JOINT = _record(
    _joint,
    lambda joint: {"screws": () if joint.chart is not None else joint.screws.T},
    name=(_TEXT, None),
    screws=(_rows(6), []),
    chart=(_CHART, None),
    passive=(_FLAG, False),
    **dict.fromkeys(("damping", "friction", "stiffness", "rest", "armature"), (_NUMBER, 0)),
    limits=(_LIMITS, None),
    effort=(_MAGNITUDE, None),
    velocity=(_MAGNITUDE, None),
    mimic=(_MIMIC, None),
    rotor=(_ROTOR, None),
)
_UNLOCKED = _record(dict, home=_POSE, joint=_JOINT, q=_Form(lambda given: given, lambda q, _: list(q)))
_LOCKED = _Form(_read_locked, _UNLOCKED.write)
_LINK: dict[str, Any] = {"name": _TEXT, "inertia": (_INERTIA, None), "shapes": (_list(_SHAPE, "a list of shapes"), [])}
_PARTS = {Joint: _JOINT, Inertia: _INERTIA, Link: _record(Link, **_LINK), Shape: _SHAPE}
_SEAT: dict[str, Any] = {"home": _POSE, "joint": (_JOINT, {})}
_BASE = _record(_attachment, lambda at: vars(at.link), **_LINK)
_ATTACHMENT = _record(_attachment, lambda at: vars(at.link), **_LINK, parent=_TEXT, **_SEAT, locked=(_LOCKED, None))
_PLANE = _record(Plane, normal=_vector(3), offset=_NUMBER)
_CONTACT = _record(
    Contact,
    **dict.fromkeys(("name", "link", "to"), _TEXT),
    points=(_rows(3), []),
    radii=(_SIZES, []),
    shapes=(_list(_SHAPE, "a list of shapes"), []),
    rounding=(_NUMBER, 0),
    on=_Form(
        lambda given: (_SHAPE if isinstance(given.value, dict) and "kind" in given.value else _PLANE).read(given),
        lambda on, writer: (_SHAPE if isinstance(on, Shape) else _PLANE).write(on, writer),
    ),
    friction=_NUMBER,
    restitution=_NUMBER,
)
_LOOP = _record(lambda joint=FIXED, **rest: Loop(joint=joint, **rest), name=_TEXT, link=_TEXT, to=_TEXT, **_SEAT)


def _parsed(data: bytes, title: str) -> Any:
    """The values of a JSON text; JSONError if it is not JSON."""
    try:
        text = data.decode("utf-8-sig")
        return json.loads(
            text, object_pairs_hook=document.Table, parse_constant=document.NotANumber, parse_int=_integer
        )
    except json.JSONDecodeError as error:
        problem = PlacedProblem(f"line {error.lineno}, column {error.colno}", f"not valid JSON: {error.msg}")
    except UnicodeDecodeError as error:
        problem = PlacedProblem("", f"not valid UTF-8: {error.reason} at byte {error.start}", "save the file as UTF-8")
    except RecursionError:
        problem = PlacedProblem("", "lists and objects are nested too deeply")
    raise JSONError(listed(title, [problem]), [problem])


def _integer(text: str) -> Any:
    # Python refuses to convert thousands of digits; floats end at 308.
    return int(text) if len(text) <= 310 else document.NotANumber(text)


def _tree(root: Entry) -> Topology | None:
    if not isinstance(root.value, dict):
        return root.unexpected("an object")
    version = root.value.get("version")
    if root.value.get("format") != _FORMAT:
        return root.wrong(f'the key "format" is not "{_FORMAT}"', "give a text written by to_json")
    if type(version) is not int or version != _VERSION:
        message = f"version {version!r} of the format is not known; this is version {_VERSION}"
        return root.wrong(message, "update screwdyn")
    for name, entry in root.below("symbols").entries().items() if "symbols" in root.value else ():
        flags = {what: assumed.flag() for what, assumed in entry.entries().items()}
        try:
            root.symbols[name] = document.symbol_of(name, flags)
        except ValueError as error:
            entry.wrong(f"these are not assumptions of a symbol: {error}")
    base = root.below("base").below("name")
    topology: Topology | None = _record(
        _topology,
        format=_ANY,
        version=_ANY,
        gravity=_vector(3),
        base=_BASE,
        links=_Form(lambda given: _attachments(given, base)),
        loops=(_list(_LOOP, "a list of loops"), []),
        contacts=(_list(_CONTACT, "a list of contacts"), []),
        symbols=(_ANY, {}),
    ).read(root)
    return topology


def _topology(
    gravity: list[Any], base: Attachment, links: list[Attachment], loops: Any = (), contacts: Any = (), **_: Any
) -> Topology:
    topology = with_ties(Topology.rooted(base.link, gravity).attach(links), [*loops, *contacts])
    check_rotors(topology)
    return topology


def _attachments(given: Entry, base: Entry) -> list[Attachment]:
    """The links of the list; links and joints need names of their own, and a parent comes before its children."""
    links, joints = {base.value if is_name(base.value) else "": base.place}, dict[str, str]()
    found = []
    for entry in given.items("a list of links"):
        at = _ATTACHMENT.read(entry)
        name, parent, joint = (entry.below(key) for key in ("name", "parent", "joint"))
        if is_name(parent.value) and is_name(base.value) and parent.value not in links:
            parent.wrong(f"there is no link {parent.value!r} before this one", parent.near(parent.value, links))
        if is_name(name.value):
            own = joint.below("name")
            for claimed, taken, what in ((name, links, "link"), (own if is_name(own.value) else name, joints, "joint")):
                first = taken.setdefault(claimed.value, claimed.place)
                if first != claimed.place:
                    message = f"a second {what} has the name {claimed.value!r}"
                    claimed.wrong(message, f"the first is at {first}; rename one")
        found += [] if at is None else [at]
        free = at and at.locked and at.locked.joint
        if free and (at.joint.screws.size or at.joint.name != free.name):
            entry.below("locked").wrong(_LOCKS)
    return found
