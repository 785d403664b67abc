"""Writer of trees as JSON; :mod:`screwdyn.io.json_reader` describes the format."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.errors import JSONError
from screwdyn.core.types import Array
from screwdyn.io.expression_text import assumptions_of, text_of
from screwdyn.mechanism.inertia import Inertia
from screwdyn.mechanism.joint import Joint
from screwdyn.mechanism.link import Attachment, Link, Loop
from screwdyn.mechanism.shape import Shape
from screwdyn.mechanism.topology import Topology

__all__ = ["FORMAT", "VERSION", "write_json"]

FORMAT, VERSION = "screwdyn tree", 1


def write_json(topology: Topology) -> str:
    """The text of a tree, with one line for each link.

    Raises
    ------
    JSONError
        If an expression cannot be written; the message lists all of them.
    """
    return _Writer().text(topology)


class _Writer:
    def __init__(self) -> None:
        self.symbols: set[Any] = set()
        self.problems: list[str] = []
        self.place = ""

    def text(self, topology: Topology) -> str:
        base, *others = topology.attachments.values()
        self.place = "gravity"
        gravity = self.numbers(topology.gravity)
        root = self.link(base.link)
        lines = [self.attachment(at) for at in others]
        loops = [self.loop(loop) for loop in topology.loops.values()]
        symbols = self.assumptions()
        if self.problems:
            raise JSONError("\n  ".join(["this tree cannot be written as JSON", *self.problems]), self.problems)
        head: dict[str, Any] = {"format": FORMAT, "version": VERSION, "gravity": gravity, "base": root}
        if symbols:
            head["symbols"] = symbols
        parts = [f"{json.dumps(key)}: {json.dumps(value, allow_nan=False)}" for key, value in head.items()]
        listed = ",\n".join(json.dumps(line, allow_nan=False) for line in lines)
        parts.append(f'"links": [\n{listed}\n]' if lines else '"links": []')
        if loops:
            parts.append('"loops": [\n' + ",\n".join(json.dumps(loop, allow_nan=False) for loop in loops) + "\n]")
        return "{\n" + ",\n".join(parts) + "\n}\n"

    def attachment(self, at: Attachment) -> dict[str, Any]:
        record = self.link(at.link)
        record["parent"] = at.parent
        record |= self.seat(at.joint, at.home)
        if at.locked is not None:
            record["locked"] = self.seat(at.locked.joint, at.locked.home) | {"q": list(at.locked.q)}
        return record

    def loop(self, loop: Loop) -> dict[str, Any]:
        self.place = f"loop {loop.name!r}"
        return {"name": loop.name, "link": loop.link, "to": loop.to} | self.seat(loop.joint, loop.home)

    def seat(self, joint: Joint, home: Array) -> dict[str, Any]:
        """A joint and the home pose of its link."""
        record: dict[str, Any] = {"home": [self.numbers(row) for row in home[:3]]}
        described = self.joint(joint)
        return record | ({"joint": described} if described else {})

    def link(self, link: Link) -> dict[str, Any]:
        self.place = f"link {link.name!r}"
        record: dict[str, Any] = {"name": link.name}
        if link.inertia is not None:
            record["inertia"] = self.inertia(link.inertia)
        if link.shapes:
            record["shapes"] = [self.shape(shape) for shape in link.shapes]
        return record

    def shape(self, shape: Shape) -> dict[str, Any]:
        """The entries that differ from those of a visual shape at the origin without a colour."""
        record: dict[str, Any] = {"kind": shape.kind, "size": list(shape.size)}
        if shape.path is not None:
            record["path"] = shape.path
        if not np.array_equal(shape.pose, np.eye(4)):
            record["pose"] = shape.pose[:3].tolist()
        if shape.color is not None:
            record["color"] = list(shape.color)
        return record | ({} if shape.use == "visual" else {"use": shape.use})

    def inertia(self, inertia: Inertia) -> dict[str, Any]:
        com, tensor = inertia.entries
        record = {"mass": self.number(inertia.mass), "com": self.numbers(com), "tensor": self.numbers(tensor)}
        return record | ({"effective": True} if inertia.is_effective else {})

    def joint(self, joint: Joint) -> dict[str, Any]:
        """The entries that differ from those of a fixed joint without a name."""
        record: dict[str, Any] = {}
        if joint.name is not None:
            record["name"] = joint.name
        if joint.chart is not None:
            record["chart"] = {
                "orientation": joint.chart.orientation,
                "translations": joint.chart.translations,
                "axes": [self.numbers(row) for row in joint.chart.axes],
                "center": self.numbers(joint.chart.center),
            }
        elif joint.screws.size:
            record["screws"] = [self.numbers(S) for S in joint.screws.T]
        if joint.passive:
            record["passive"] = True
        for what in ("damping", "friction", "stiffness", "rest", "armature"):
            value = getattr(joint, what)
            if value != 0:
                record[what] = self.number(value)
        if joint.limits is not None:
            record["limits"] = [x if isfinite(x) else None for x in joint.limits]
        for what in ("effort", "velocity"):
            value = getattr(joint, what)
            if value is not None:
                record[what] = value
        if joint.mimic is not None:
            numbers = {what: self.number(getattr(joint.mimic, what)) for what in ("ratio", "offset")}
            record["mimic"] = {"joint": joint.mimic.joint} | numbers
        if joint.rotor is not None:
            rotor = joint.rotor
            numbers = {what: getattr(rotor, what) for what in ("inertia", "ratio", "mass", "across")}
            record["rotor"] = {what: self.number(x) for what, x in numbers.items() if x is not None}
            record["rotor"] |= {what: self.numbers(expressions.array(getattr(rotor, what))) for what in ("axis", "com")}
            record["rotor"] |= {} if rotor.carrier is None else {"carrier": rotor.carrier}
        return record

    def numbers(self, values: Array | tuple[Any, ...]) -> list[Any]:
        return [self.number(x) for x in (values.tolist() if isinstance(values, np.ndarray) else values)]

    def number(self, x: Any) -> Any:
        if not expressions.is_expression(x):
            if not -expressions.LARGEST <= x <= expressions.LARGEST:
                self.problems.append(f"{self.place}: {x:g} is larger than {expressions.LARGEST:g}; rescale the model")
            return x
        self.symbols |= x.free_symbols
        try:
            return text_of(x)
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
            found[symbol.name] = assumptions_of(symbol)
        return found
