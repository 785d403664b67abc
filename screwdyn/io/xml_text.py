"""XML: elements that are read, with their lines, and text that is written.

Of URDF and SRDF, only the elements that describe the mechanism, the shapes of its links and reference poses are kept;
all others (gazebo, transmission, …) are ignored. Document types are an error, so entities are never expanded. Invalid
content does not raise errors here: every problem is added to a list. Writers list everything that a format cannot
express, or has no place for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html import escape
from math import inf, isfinite
from typing import Literal
from xml.parsers import expat

import numpy as np

from screwdyn.core import Array, ModelError, UnboundSymbolError, URDFError, expressions, is_name, printable
from screwdyn.io.document import Findings, Missing, shown, similar
from screwdyn.mechanism import Attachment, Joint, Topology
from screwdyn.screws.screw import axis as axis_of

Severity = Literal["error", "warning"]

_KEPT = {
    "robot": {"link", "joint", "material", "screwdyn_loop", "group_state", "virtual_joint"},
    "group_state": {"joint"},
    "link": {"inertial", "visual", "collision"},
    "inertial": {"origin", "mass", "inertia"},
    "joint": {"origin", "parent", "child", "axis", "limit", "dynamics", "mimic"},
    "screwdyn_loop": {"origin", "axis", "point"},
    "visual": {"origin", "geometry", "material"},
    "collision": {"origin", "geometry"},
    "geometry": {"box", "cylinder", "capsule", "sphere", "mesh"},
    "material": {"color"},
}
# Parts of shapes: an expression of xacro in one of them is a wrong number, with which the robot can be read.
_DECORATION = {"visual", "collision", "geometry", "material"}

# Possessive quantifiers avoid backtracking over a megabyte of digits that ends with a letter.
_NUMBER = re.compile(r"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?")
_COMMA = re.compile(r"[+-]?[0-9]*+,[0-9]++(?:[eE][+-]?[0-9]++)?")
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of a file.

    Attributes
    ----------
    line : int
        Line of the offending element, counted from 1.
    element : str
        The element in words, such as ``<axis> of <joint name="elbow">``.
    message, hint : str
        The problem, and what to do about it (may be empty).
    severity : "error" or "warning"
        After an error the file is not read; after a warning it is read with the stated assumption.
    """

    line: int
    element: str
    message: str
    hint: str = ""
    severity: Severity = "error"

    def __str__(self) -> str:
        label = " (warning)" if self.severity == "warning" else ""
        return f"line {self.line}, {self.element}{label}: {self.message}" + (f"; {self.hint}" if self.hint else "")


@dataclass(slots=True, eq=False)
class Element:
    """An XML element with its line, its attributes, those of its children that are kept, and the problems of the file.

    What cannot be read is None, and a problem: an error or, in a shape, a warning.
    """

    tag: str
    attributes: dict[str, str]
    line: int
    problems: list[Problem]
    owner: Element | None = None
    children: list[Element] = field(default_factory=list)

    def __str__(self) -> str:
        name = self.attributes.get("name")
        own = f"<{shown(self.tag)}>" if name is None else f'<{self.tag} name="{printable(shown(name))}">'
        nested = self.owner is not None and self.owner.tag != "robot"
        return f"{own} of {self.owner}" if nested else own

    @property
    def severity(self) -> Severity:
        """Of its problems: the motion does not depend on shapes."""
        decorates = self.tag in _DECORATION or (self.owner is not None and self.owner.tag in _DECORATION)
        return "warning" if decorates else "error"

    def wrong(self, message: str, hint: str = "", severity: Severity | None = None) -> Missing | None:
        """Add a problem; returns None, in place of what cannot be read."""
        self.problems.append(Problem(self.line, str(self), message, hint, severity or self.severity))
        return None

    def doubtful(self, message: str, hint: str = "") -> Missing | None:
        """Add a warning, likewise."""
        return self.wrong(message, hint, "warning")

    def near(self, name: str, known: Iterable[str]) -> str:
        """A hint with the known names that are similar, or some of them."""
        return similar(name, known, len(self.problems))

    def named(self, tag: str) -> Iterator[Element]:
        """Children with this tag, in document order."""
        return (child for child in self.children if child.tag == tag)

    def attribute(self, name: str) -> str | None:
        """A required attribute that is not empty."""
        value = self.attributes.get(name)
        if is_name(value):
            return value
        if value and value.strip():
            return self.wrong(f"{name}={shown(value)!r} has control characters", "remove them")
        return self.wrong(f"the attribute {name!r} is {'missing' if value is None else 'empty'}", f'add {name}="…"')

    def only(self, tag: str, required: str = "") -> Element | None:
        """The only child with this tag.

        `required` is the hint for a child that must occur once. If it is empty, the child may be missing, and further
        children are ignored with a warning.
        """
        found = list(self.named(tag))
        for other in found[1:]:
            other.wrong(f"a second <{tag}>; only the first counts", "remove one", "error" if required else "warning")
        if not found and required:
            self.wrong(f"it has no <{tag}>", required)
        return found[0] if found else None

    def numbers(
        self, name: str, count: int, default: tuple[float, ...] | None = None, severity: Severity | None = None
    ) -> tuple[float, ...] | None:
        """The `count` finite numbers of an attribute, which is required if there is no default.

        Numbers above 1e50 in magnitude are a problem, because their products would overflow; those of limits have none.
        """
        text = self.attributes.get(name)
        if text is None:
            if default is None:
                self.wrong(f"the attribute {name!r} is missing", f'add {name}="…"', severity)
            return default
        words = text.split()
        given = f"{name}={shown(text)!r}"
        bad = [word for word in words if not _NUMBER.fullmatch(word)]
        if bad:
            message, hint = _not_a_number(bad[0])
            return self.wrong(f"{given}: {message}", hint, severity)
        if len(words) != count:
            expected = "one number" if count == 1 else f"{count} numbers"
            return self.wrong(f"{given} has {len(words)}", f"expected {expected}", severity)
        values, largest = tuple(map(float, words)), inf if self.tag == "limit" else 1e50
        beyond = [word for word, x in zip(words, values, strict=True) if not isfinite(x) or abs(x) > largest]
        if beyond:
            return self.wrong(f"{given}: {shown(beyond[0])} is too large", "give a value in SI units", severity)
        return values

    def number(self, name: str, default: float | None = None, severity: Severity | None = None) -> float | None:
        """One number; see :meth:`numbers`."""
        values = self.numbers(name, 1, None if default is None else (default,), severity)
        return None if values is None else values[0]


def _not_a_number(word: str) -> tuple[str, str]:
    if _NOT_FINITE.fullmatch(word):
        return f"{word} is not a finite number", "give a finite value"
    hint = "separate numbers by spaces, and write the decimal point as '.'" if "," in word else ""
    if _COMMA.fullmatch(word):
        hint = "write the decimal point as '.', not ','"
    return f"{shown(word)!r} is not a number", hint


class Unexpanded(Exception):
    """The document is xacro: its first element or expression that must be expanded first, and the latter's text."""

    def __init__(self, element: Element, where: str = "") -> None:
        super().__init__(f"{element}{where}")
        self.element, self.where = element, where


class _StopReading(Exception):
    """Raised inside expat's handlers to end the parse."""


def utf8_hint(error: object, document: bytes) -> str:
    """What to do about an error of expat where a byte is not text in UTF-8; nothing for all other errors."""
    if not isinstance(error, expat.ExpatError):
        return ""
    line = document.splitlines()[error.lineno - 1 :][:1]
    try:
        b"".join(line)[error.offset :][:4].decode("utf-8")
    except UnicodeDecodeError as wrong:
        if not wrong.start:
            return 'declare its encoding, <?xml version="1.0" encoding="…"?>, or save it as UTF-8'
    return ""


def parse(
    document: bytes, problems: list[Problem], encoding: str | None = None, skipped_lines: int = 0
) -> Element | None:
    """The root of a document, up to the first error in the XML, a problem; Unexpanded at the first word of xacro."""
    parser = expat.ParserCreate(encoding)
    roots: list[Element] = []
    inside: list[tuple[Element, bool]] = []  # the elements that are open, and whether they are kept

    def new(tag: str, attributes: dict[str, str], line: int | None = None, owner: Element | None = None) -> Element:
        line = parser.CurrentLineNumber if line is None else line
        return Element(tag, attributes, line + skipped_lines, problems, owner)

    def start(tag: str, attributes: dict[str, str]) -> None:
        owner = next((above for above, kept in inside[-1:] if kept), None)
        element = new(tag, attributes, owner=owner)
        kept = owner is not None and tag in _KEPT.get(owner.tag, ())
        if not inside:
            roots.append(element)
            if tag != "robot":
                element.wrong("the root element is not <robot>", "give a URDF file")
                raise _StopReading
        elif tag.startswith("xacro:"):
            raise Unexpanded(element)
        elif owner is not None and kept:
            for name, value in attributes.items() if _DECORATION.isdisjoint((tag, owner.tag)) else ():
                if "${" in value or "$(" in value:
                    raise Unexpanded(element, f" ({name}={shown(value)!r})")
            owner.children.append(element)
        inside.append((element, kept or not inside))

    def doctype(name: str, *_: object) -> None:
        new("!DOCTYPE " + name, {}).wrong("document types are not allowed", "remove the <!DOCTYPE …>")
        raise _StopReading

    parser.StartElementHandler, parser.StartDoctypeDeclHandler = start, doctype
    parser.EndElementHandler = lambda tag: inside.pop()
    try:
        parser.Parse(document, True)
    except _StopReading:
        pass
    except expat.ExpatError as error:
        ends = {expat.errors.XML_ERROR_NO_ELEMENTS, expat.errors.XML_ERROR_UNCLOSED_TOKEN}
        reason, undeclared = expat.ErrorString(error.code), utf8_hint(error, document)
        message = f"not well-formed XML: {reason}"
        if inside:
            element, kept = inside[-1]
            hint = f"<{shown(element.tag)}>, opened on line {element.line}, is not closed yet"
            message = "the file ends too early" if reason in ends else message
            found = new(element.tag, element.attributes if kept else {}, error.lineno)
            found.wrong(message, undeclared or hint, "error")
        else:
            empty = not roots and reason in ends
            new("xml", {}, error.lineno).wrong("there is no XML element" if empty else message, undeclared)
    except (LookupError, ValueError) as error:  # raised by Python for an unknown encoding
        new("?xml", {}).wrong(f"unusable encoding: {error}", "save the file as UTF-8")
    return roots[0] if roots else None


# Writing --------------------------------------------------------------------------------------------------------------

_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# A reader of XML replaces white space in an attribute by spaces unless it is written as a reference.
_REFERENCES = str.maketrans({c: f"&#{ord(c)};" for c in "\n\r\t"})


def quoted(text: str) -> str:
    """The value of an attribute, in quotes; ``xml.sax.saxutils.quoteattr`` would import ``urllib`` and ``ssl``."""
    return f'"{escape(text).translate(_REFERENCES)}"'


def _numbers(values: object) -> str:
    """Numbers with all digits; adding zero replaces −0 by 0."""
    numbers = [values] if isinstance(values, float) else np.ravel(np.asarray(values, dtype=np.float64)).tolist()
    return " ".join(repr(float(x) + 0.0) for x in numbers)


def opening(what: str, /, **attributes: object) -> str:
    """The tag that opens an element; attributes are texts or numbers, None for those that are left out."""
    given = {key: x for key, x in attributes.items() if x is not None}
    texts = [f" {key}={quoted(x)}" if isinstance(x, str) else f' {key}="{_numbers(x)}"' for key, x in given.items()]
    return f"<{what}{''.join(texts)}>"


def tag(what: str, /, **attributes: object) -> str:
    """An element without children."""
    return f"{opening(what, **attributes)[:-1]}/>"


def nested(what: str, lines: Iterable[str], /, **attributes: object) -> list[str]:
    """The lines of an element that contains some lines."""
    inner = [f"  {line}" for line in lines]
    return [opening(what, **attributes), *inner, f"</{what}>"] if inner else [tag(what, **attributes)]


class Writer(Findings):
    """Names, problems and losses of a tree that is written, whose numbers contain no symbols."""

    kind: str
    error: type[ModelError] | type[URDFError]
    what = "robot"
    # Beginnings of expressions in a name.
    marks: tuple[str, ...] = ()

    def __init__(self, topology: Topology, name: str) -> None:
        if not isinstance(name, str) or not name:
            raise self.error(f"the name of the {self.what} must be a non-empty string; got {name!r}")
        held: list[object] = [] if self.kind == "URDF" else [topology.gravity]  # which URDF has no place for
        held += [x for at in topology.attachments.values() for x in (at.link.inertia, at.joint, at.home)]
        held += [x for loop in topology.loops.values() for x in (loop.joint, loop.home)]
        if symbols := expressions.free_symbols(held):
            raise UnboundSymbolError.of(symbols, f"the {self.kind}")
        lost = f"{self.kind} has no place for the following; to_json keeps it"
        super().__init__(self.error, f"{self.kind} cannot express this tree", lost)
        self.topology = topology
        self.check_name(self.what, name)
        self.errors += [f"contact {x!r} has no element here; use to_json" for x in topology.contacts]

    def check_name(self, what: str, name: str, kind: str = "name") -> None:
        """Note an error if XML or a reader cannot have a name."""
        wrong = _NOT_IN_XML.search(name)
        found = wrong[0] if wrong else next((mark for mark in self.marks if mark in name), None)
        if found is not None:
            reason = "XML does not have" if wrong else "means an expression of xacro"
            self.errors.append(f"the {kind} {name!r} of a {what} contains {found!r}, which {reason}; rename it")

    def freedoms(self, at: Attachment, screws: Array) -> Iterator[tuple[str, str, Array, Array]]:
        """Name, kind, direction and point of the freedoms of a joint, which has these screws."""
        for name, S in zip(at.joint.row_names(at.name), screws.T, strict=True):
            kind = Joint(S).kind
            if kind == "helical":
                hint = f"which {self.kind} does not have; use to_json"
                self.errors.append(f"joint {at.name!r} has the helical freedom {name!r}, {hint}")
            yield name, kind, *axis_of(S)

    def refuse_group(self, at: Attachment) -> None:
        """Note the error that the format does not have a joint whose motions are a group."""
        hint = "joints of one freedom in a row have other coordinates"
        self.errors.append(f"joint {at.name!r} is {at.joint.kind}, which {self.kind} does not have; {hint}")

    def note_state(self, at: Attachment) -> None:
        """Note warnings of a lock, and of a joint that is passive where it is not in the format."""
        joint = at.joint
        if at.locked is not None:
            self.warnings.append(f"the lock of joint {at.name!r}, which is fixed in the {self.kind}")
        if joint.nv and joint.passive != (joint.kind == "free"):
            state = "passive" if joint.passive else "a free joint that is not passive"
            self.warnings.append(f"joint {at.name!r} is {state}")
