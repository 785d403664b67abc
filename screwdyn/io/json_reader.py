"""Reader of trees from JSON, the format in which nothing of a tree is lost.

All problems of a document are reported together, with their places. Version 1 of the format is an object with the keys

- ``format``: ``"screwdyn tree"``; ``version``: 1;
- ``gravity``: three numbers, m/s²;
- ``base``: the link that does not move, with ``name`` and, unless it is massless, ``inertia``, and ``shapes`` if it has
  any;
- ``links``: a list of the other links in order of attachment, with ``name``, ``inertia``, ``shapes``, ``parent`` (the
  name of an earlier link or the base), ``home`` (three rows of four numbers: the pose in the parent while the joint is
  neutral) and ``joint`` (by default fixed, without a name). A locked joint is fixed; ``locked`` then has the ``home``
  and ``joint`` that it has when it is unlocked, and the positions ``q`` at which it is locked;
- ``loops``, optional: a list of the joints that close loops, in the order of closing: ``name``, ``link``, ``to``,
  ``home`` (the pose of ``link`` in ``to`` while the joint is neutral) and ``joint`` (fixed by default);
- ``symbols``, optional: what SymPy assumes of symbols, such as ``{"L": {"positive": true}}``.

An inertia has ``mass``, ``com``, ``tensor`` (xx, xy, xz, yy, yz, zz about the centre of mass) and, for numbers that no
rigid body needs to have, ``"effective": true``. A shape has ``kind``, ``size``, ``path`` (of a mesh) and, as in
:class:`screwdyn.Shape`, the optional ``pose`` (three rows of four numbers), ``color`` and ``use``. A joint has
``name``, ``passive``, ``damping``, ``friction``, ``stiffness``, ``rest``, ``limits`` (``null`` for none on a side),
``effort``, ``velocity``, ``armature``, ``mimic`` (the ``joint`` that it follows, ``ratio`` and ``offset``), ``rotor``
(as :class:`screwdyn.Rotor`; its links are in the list of links), and either ``screws`` (a list of six numbers each) or
``chart`` (``orientation``, ``translations``, ``axes`` as three rows, ``center``; see
:class:`screwdyn.mechanism.chart.Chart`). Numbers are finite and, except limits, at most 1e50, in SI units and in full,
or, except in shapes, strings with expressions of symbols such as ``"m*L**2/3"``.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import inf
from sys import float_info
from typing import Any, TypeVar, get_args

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.errors import JSONError, ScrewdynError
from screwdyn.core.types import Array
from screwdyn.io.document import Entry, NotANumber, PlacedProblem, Table, known_effective, listed, read_source
from screwdyn.io.expression_text import expression_of, symbol_of
from screwdyn.io.json_writer import FORMAT, VERSION
from screwdyn.mechanism.chart import Chart, checked_positions
from screwdyn.mechanism.inertia import Inertia
from screwdyn.mechanism.joint import Joint, Mimic, Rotor
from screwdyn.mechanism.link import FIXED, Attachment, Link, Locked, Loop
from screwdyn.mechanism.shape import Kind, Shape, Use
from screwdyn.mechanism.topology import Topology, check_rotors, with_loops
from screwdyn.screws import screw

__all__ = ["read_json"]

Made = TypeVar("Made")
_NUMBERS, _MAGNITUDES = ("damping", "friction", "stiffness", "rest", "armature"), ("effort", "velocity")
_JOINT = ("name", "screws", "chart", "passive", *_NUMBERS, "limits", *_MAGNITUDES, "mimic", "rotor")


def read_json(path_or_text: str | os.PathLike[str]) -> Topology:
    """Read the links and joints of a tree; :meth:`KinematicTree.from_json` makes a tree from them.

    Parameters
    ----------
    path_or_text : str or path
        Text if it begins with ``{``, otherwise the path of a file.

    Returns
    -------
    Topology

    Raises
    ------
    JSONError
        Lists every problem with its place, or states which file cannot be opened.
    """
    source = read_source(path_or_text, "JSON", "{[", JSONError)
    document = _parsed(source.document, source.title)
    problems: list[PlacedProblem] = []
    topology = _tree(Entry(document, "", problems))
    if problems or topology is None:
        raise JSONError(listed(source.title, problems), problems)
    return topology


def _parsed(document: bytes, title: str) -> Any:
    """The values of a JSON text; JSONError if it is not JSON."""
    try:
        text = document.decode("utf-8-sig")
        return json.loads(text, object_pairs_hook=_table, parse_constant=NotANumber, parse_int=_integer)
    except json.JSONDecodeError as error:
        problem = PlacedProblem(f"line {error.lineno}, column {error.colno}", f"not valid JSON: {error.msg}")
    except UnicodeDecodeError as error:
        problem = PlacedProblem("", f"not valid UTF-8: {error.reason} at byte {error.start}", "save the file as UTF-8")
    except RecursionError:
        problem = PlacedProblem("", "lists and objects are nested too deeply")
    raise JSONError(listed(title, [problem]), [problem])


def _table(pairs: list[tuple[str, Any]]) -> Table:
    table = Table(pairs)
    if len(table) < len(pairs):
        table.repeated = tuple(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
    return table


def _integer(text: str) -> Any:
    # Python refuses to convert thousands of digits; floats end at 308.
    return int(text) if len(text) <= 310 else NotANumber(text)


def _tree(root: Entry) -> Topology | None:
    if not _is_of_this_format(root):
        return None
    given = root.table(("format", "version", "gravity", "base", "links"), ("loops", "symbols"))
    reader = _Reader(_symbols(given["symbols"]) if "symbols" in given else {})
    gravity = given["gravity"].numbers(3, reader.expression) if "gravity" in given else None
    base = reader.link(given["base"].table(("name",), ("inertia", "shapes"))) if "base" in given else None
    attachments = reader.attachments(given["links"], base) if "links" in given else []
    loops = reader.loops(given["loops"]) if "loops" in given else []
    if root.problems or base is None or gravity is None:
        return None
    try:
        topology = with_loops(Topology.rooted(base, gravity).attach(attachments), loops)
        check_rotors(topology)
        return topology
    except ScrewdynError as error:
        root.wrong(str(error))
        return None


def _is_of_this_format(root: Entry) -> bool:
    """Whether format and version are those that this module reads; if not, nothing else is looked at."""
    if not isinstance(root.value, dict):
        root.unexpected("an object")
    elif root.value.get("format") != FORMAT:
        root.wrong(f'the key "format" is not "{FORMAT}"', "give a text written by to_json")
    elif type(root.value.get("version")) is not int or root.value["version"] != VERSION:
        version = root.value.get("version")
        root.wrong(f"version {version!r} of the format is not known; this is version {VERSION}", "update screwdyn")
    return not root.problems


def _symbols(given: Entry) -> dict[str, Any]:
    """Symbols by name, with what is assumed of them."""
    found = {}
    for name, entry in given.entries().items():
        flags = {what: assumed.flag() for what, assumed in entry.entries().items()}
        try:
            found[name] = symbol_of(name, {what: flag for what, flag in flags.items() if flag is not None})
        except ValueError as error:
            entry.wrong(f"these are not assumptions of a symbol: {error}")
    return found


class _Reader:
    """Reads links and joints; each method adds the problems that it finds."""

    def __init__(self, symbols: dict[str, Any]) -> None:
        self.expression: Callable[[str], Any] = lambda text: expression_of(text, symbols)

    def attachments(self, given: Entry, base: Link | None) -> list[Attachment]:
        """The links of the list that have no problem."""
        known = {} if base is None else {base.name: "base.name"}
        joints: dict[str, str] = {}
        found = []
        for entry in given.items("a list of links"):
            fields = entry.table(("name", "parent", "home"), ("inertia", "shapes", "joint", "locked"))
            link = self.link(fields)
            parent = fields["parent"].text() if "parent" in fields else None
            if parent is not None and parent not in known and base is not None:
                hint = fields["parent"].near(parent, known)
                fields["parent"].wrong(f"there is no link {parent!r} before this one", hint)
            joint = self.joint(fields["joint"]) if "joint" in fields else FIXED
            home = self.home(fields["home"]) if "home" in fields else None
            locked = self.locked(fields["locked"], joint) if "locked" in fields else None
            if link is not None:
                _claim(fields["name"], link.name, known)
                if joint is not None:
                    _claim(fields["joint"] if joint.name else fields["name"], joint.name or link.name, joints, "joint")
            if link is not None and parent is not None and joint is not None and home is not None:
                found.append(Attachment(link, parent, joint, home, locked=locked))
        return found

    def loops(self, given: Entry) -> list[Loop]:
        """The loops of the list that have no problem by themselves."""
        found = []
        for entry in given.items("a list of loops"):
            fields = entry.table(("name", "link", "to", "home"), ("joint",))
            name, link, to = (fields[what].text() if what in fields else None for what in ("name", "link", "to"))
            home = self.home(fields["home"]) if "home" in fields else None
            joint = self.joint(fields["joint"]) if "joint" in fields else FIXED
            if name is not None and link is not None and to is not None and home is not None and joint is not None:
                loop = _made(entry, partial(Loop, name, link, to, joint, home))
                found += [] if loop is None else [loop]
        return found

    def locked(self, given: Entry, fixed: Joint | None) -> Locked | None:
        fields = given.table(("home", "joint", "q"))
        home = self.home(fields["home"]) if "home" in fields else None
        joint = self.joint(fields["joint"]) if "joint" in fields else None
        if home is None or joint is None or fixed is None or "q" not in fields:
            return None
        if fixed.screws.size or not joint.screws.size or joint.name != fixed.name:
            given.wrong("a locked joint must be fixed, and have freedoms and the same name when it is unlocked")
            return None
        alone = replace(joint, mimic=None)  # a joint that follows another one is locked at a position too
        q = fields["q"].numbers(alone.nq)
        checked = None if q is None else _made(fields["q"], lambda: checked_positions("of the lock", alone, q))
        if q is None or checked is None:
            return None
        # A quaternion that has been scaled to length 1 may change by rounding if it is scaled again.
        exact = np.allclose(checked, q, rtol=0, atol=1e-15)
        return Locked(joint, home, tuple(map(float, q)) if exact else tuple(checked.tolist()))

    def link(self, fields: dict[str, Entry]) -> Link | None:
        name = fields["name"].text() if "name" in fields else None
        inertia = self.inertia(fields["inertia"]) if "inertia" in fields else None
        shapes = (
            [self.shape(entry) for entry in fields["shapes"].items("a list of shapes")] if "shapes" in fields else []
        )
        return None if name is None else Link(name, inertia, tuple(shape for shape in shapes if shape is not None))

    def shape(self, given: Entry) -> Shape | None:
        before = len(given.problems)
        fields = given.table(("kind", "size"), ("path", "pose", "color", "use"))
        options: dict[str, Any] = {}
        for what, known in (("kind", get_args(Kind)), ("use", get_args(Use))):
            if what in fields:
                options[what] = fields[what].one_of(*known)
        for what in ("size", "color"):
            if what in fields:
                options[what] = [x.number() for x in fields[what].items("a list of numbers")]
        if "path" in fields:
            options["path"] = fields["path"].text()
        if "pose" in fields:
            rows = fields["pose"].matrix(4, 3)
            options["pose"] = None if rows is None else [*rows, [0, 0, 0, 1]]
        if len(given.problems) > before:
            return None
        return _made(given, lambda: Shape(**options))

    def inertia(self, given: Entry) -> Inertia | None:
        fields = given.table(("mass", "com", "tensor"), ("effective",))
        mass = fields["mass"].number(self.expression) if "mass" in fields else None
        com = fields["com"].numbers(3, self.expression) if "com" in fields else None
        six = fields["tensor"].numbers(6, self.expression) if "tensor" in fields else None
        effective = fields["effective"].flag() if "effective" in fields else False
        if mass is None or com is None or six is None:
            return None
        xx, xy, xz, yy, yz, zz = six
        tensor = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]
        return _made(given, lambda: (known_effective if effective else Inertia)(mass, com, tensor))

    def home(self, given: Entry) -> Array | None:
        rows = given.matrix(4, 3, self.expression)
        return None if rows is None else _made(given, lambda: screw.as_pose([*rows, [0, 0, 0, 1]], "the pose"))

    def joint(self, given: Entry) -> Joint | None:
        fields = given.table((), _JOINT)
        before = len(given.problems)
        options: dict[str, Any] = {}
        for what in _NUMBERS:
            if what in fields:
                options[what] = fields[what].number(self.expression)
        for what in _MAGNITUDES:
            if what in fields:
                options[what] = fields[what].number(largest=float_info.max)
        if "name" in fields:
            options["name"] = fields["name"].text()
        if "passive" in fields:
            options["passive"] = fields["passive"].flag()
        if "limits" in fields:
            options["limits"] = _limits(fields["limits"])
        if "chart" in fields:
            options["chart"] = self.chart(fields["chart"])
            if "screws" in fields:
                given.wrong("both screws and a chart are given", "leave the screws out")
        if "mimic" in fields:
            options["mimic"] = self.mimic(fields["mimic"])
        if "rotor" in fields:
            options["rotor"] = self.rotor(fields["rotor"])
        screws = fields["screws"].matrix(6, None, self.expression) if "screws" in fields else None
        if len(given.problems) > before:
            return None
        columns = np.zeros((6, 0)) if screws is None else expressions.array(screws).T
        return _made(given, lambda: Joint(columns, **options))

    def mimic(self, given: Entry) -> Mimic | None:
        fields = given.table(("joint", "ratio", "offset"))
        if len(fields) < 3:
            return None
        leader, (ratio, offset) = (
            fields["joint"].text(),
            (fields[x].number(self.expression) for x in ("ratio", "offset")),
        )
        if leader is None or ratio is None or offset is None:
            return None
        return _made(given, lambda: Mimic(leader, ratio, offset))

    def rotor(self, given: Entry) -> Rotor | None:
        before = len(given.problems)
        fields = given.table(("inertia", "ratio", "axis", "com"), ("mass", "across", "carrier"))
        options: dict[str, Any] = {
            what: fields[what].number(self.expression)
            for what in ("inertia", "ratio", "mass", "across")
            if what in fields
        }
        options |= {what: fields[what].numbers(3, self.expression) for what in ("axis", "com") if what in fields}
        if "carrier" in fields:
            options["carrier"] = fields["carrier"].text()
        if len(given.problems) > before:
            return None
        return _made(given, lambda: Rotor(**options))

    def chart(self, given: Entry) -> Chart | None:
        fields = given.table(("orientation", "translations", "axes", "center"))
        if len(fields) < 4:
            return None
        sizes = [fields[what].one_of(*known) for what, known in (("orientation", (1, 4)), ("translations", (0, 2, 3)))]
        rows = fields["axes"].matrix(3, 3, self.expression)
        center = fields["center"].numbers(3, self.expression)
        if rows is None or center is None or None in sizes:
            return None
        turn = [[*row, 0] for row in rows]
        axes = _made(fields["axes"], lambda: screw.as_pose([*turn, [0, 0, 0, 1]], "the axes of the joint"))
        if axes is None:
            return None
        return _made(given, lambda: Chart(sizes[0], sizes[1], axes[:3, :3], expressions.array(center)))


def _claim(entry: Entry, name: str, taken: dict[str, str], what: str = "link") -> None:
    """Note the place that gives a name; a problem if an earlier one does."""
    if taken.setdefault(name, entry.place) != entry.place:
        entry.wrong(f"a second {what} has the name {name!r}", f"the first is at {taken[name]}; rename one")


def _limits(given: Entry) -> tuple[float, float] | None:
    items = given.items("two numbers or null")
    if len(items) != 2:
        if isinstance(given.value, list):
            given.unexpected("two numbers or null")
        return None
    low, high = (
        default if x.value is None else x.number(largest=float_info.max)
        for x, default in zip(items, (-inf, inf), strict=True)
    )
    return None if low is None or high is None else (low, high)


def _made(given: Entry, make: Callable[[], Made]) -> Made | None:
    """What a constructor returns; its error becomes a problem."""
    try:
        return make()
    except ScrewdynError as error:
        given.wrong(str(error))
    except ArithmeticError as error:  # of exact numbers that SymPy cannot tell from 0
        given.wrong(f"SymPy cannot compute its numbers ({str(error) or type(error).__name__})")
    return None
