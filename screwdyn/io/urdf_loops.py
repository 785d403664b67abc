"""Joints that close loops, which URDF does not have, as elements ``<screwdyn_loop>`` that other readers ignore.

Such an element is a child of ``<robot>`` with the attributes ``name``, ``link``, ``to`` and ``type``. Its children are
``<origin>``, the pose of ``link`` in ``to`` while the joint is neutral, and, in the frame of ``link``, ``<axis>`` (with
a ``pitch``, m/rad, if the type is helical) and ``<point>``, a point of the axis or the centre of a spherical joint.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from screwdyn.core import expressions
from screwdyn.core.errors import ScrewdynError
from screwdyn.core.types import Array
from screwdyn.io.document import shown, similar
from screwdyn.io.urdf_origin import axis_direction, numbers_text, origin_of, origin_text
from screwdyn.io.urdf_xml import Element, Report
from screwdyn.io.xml_text import quoted
from screwdyn.mechanism.joint import Joint, cylindrical, fixed, helical, planar, prismatic, revolute, spherical
from screwdyn.mechanism.link import Loop
from screwdyn.screws.screw import axis, pitch

__all__ = ["LOOP", "has_type", "loop_lines", "loops_of"]

LOOP = "screwdyn_loop"
# Whether the joint has an axis, and whether its place matters.
_TYPES = {
    "fixed": (False, False),
    "revolute": (True, True),
    "prismatic": (True, False),
    "helical": (True, True),
    "cylindrical": (True, True),
    "spherical": (False, True),
    "planar": (True, False),
}


def loops_of(robot: Element, links: Collection[str], joints: Collection[str], report: Report) -> dict[str, Loop]:
    """The loops of a robot between its links, by their names; problems are added to the report."""
    loops: dict[str, Loop] = {}
    lines: dict[str, int] = {}
    for element in robot.named(LOOP):
        name = report.attribute(element, "name")
        if name is not None and (name in links or name in joints or name in lines):
            first = f" on line {lines[name]}" if name in lines else ""
            report.add(element, f"there is a link, joint or loop named {shown(name)!r} already{first}", "rename one")
        link, to = (_end(element, which, links, report) for which in ("link", "to"))
        if link is not None and link == to:
            report.add(element, f"it connects {shown(link)!r} with itself", "give two links")
        home, joint = origin_of(element, report), _joint(element, report)
        if name is not None:
            lines.setdefault(name, element.line)
            if link is not None and to is not None and home is not None and joint is not None:
                loops[name] = Loop(name, link, to, joint, home)
    return loops


def _end(element: Element, which: str, links: Collection[str], report: Report) -> str | None:
    name = report.attribute(element, which)
    if name is None or name in links:
        return name
    report.add(element, f"{which}={shown(name)!r} is an unknown link", similar(name, links, len(report.problems)))
    return None


def _joint(element: Element, report: Report) -> Joint | None:
    kind = report.attribute(element, "type")
    if kind is None:
        return None
    if kind not in _TYPES:
        report.add(element, f"unknown type {shown(kind)!r} of a loop", f"use one of {', '.join(_TYPES)}")
        return None
    turns, placed = _TYPES[kind]
    direction = axis_direction(element, report) if turns else ()
    point = _point(element, report) if placed else (0.0, 0.0, 0.0)
    advance = _pitch(element, report) if kind == "helical" else 0.0
    if direction is None or point is None or advance is None:
        return None
    try:
        return _made(kind, direction, point, advance)
    except ScrewdynError as error:
        report.add(element, str(error))
        return None


def _made(kind: str, direction: tuple[float, ...], point: tuple[float, ...], advance: float) -> Joint:
    if kind == "fixed":
        return fixed()
    if kind == "spherical":
        return spherical(point)
    if kind == "prismatic":
        return prismatic(direction)
    if kind == "planar":
        return planar(direction)
    if kind == "helical":
        return helical(direction, advance, point)
    return (revolute if kind == "revolute" else cylindrical)(direction, point)


def _point(element: Element, report: Report) -> tuple[float, ...] | None:
    point = report.only(element, "point")
    return (0.0, 0.0, 0.0) if point is None else report.numbers(point, "xyz", 3)


def _pitch(element: Element, report: Report) -> float | None:
    found = report.only(element, "axis", 'a helical joint needs <axis xyz="…" pitch="…"/>')
    return None if found is None else report.number(found, "pitch")


def has_type(joint: Joint) -> bool:
    """Whether a joint has a name in the attribute ``type``."""
    return joint.kind in _TYPES


def loop_lines(loop: Loop) -> Iterator[str]:
    """The lines of a loop without symbols, whose joint has a type."""
    kind, screws = loop.joint.kind, expressions.floats(loop.joint.screws)
    turns, placed = _TYPES[kind]
    ends = f"link={quoted(loop.link)} to={quoted(loop.to)}"
    yield f'  <{LOOP} name={quoted(loop.name)} type="{kind}" {ends}>'
    yield f"    {origin_text(expressions.floats(loop.home))}"
    if turns:
        advance = f' pitch="{numbers_text(pitch(screws[:, 0]))}"' if kind == "helical" else ""
        yield f'    <axis xyz="{numbers_text(axis(screws[:, 0])[0])}"{advance}/>'
    if placed:
        yield f'    <point xyz="{numbers_text(_place(loop.joint, screws))}"/>'
    yield f"  </{LOOP}>"


def _place(joint: Joint, screws: Array) -> Array:
    """A point of the axis, or the centre of a spherical joint."""
    if joint.chart is not None:
        return expressions.floats(joint.chart.center)
    return np.asarray(axis(screws[:, 0])[1])
