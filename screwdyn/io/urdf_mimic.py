"""URDF's mimic joints: which of them can follow the joints that they name."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from screwdyn.io.document import shown, similar
from screwdyn.io.urdf_xml import Element, Report
from screwdyn.mechanism.joint import Mimic

__all__ = ["mimic_of", "misled"]

_SINGLE = ("revolute", "continuous", "prismatic")
_INDEPENDENT = "the joint is read as an independent one"


class Following(Protocol):
    """A record of a joint."""

    @property
    def element(self) -> Element:
        """Its element."""

    @property
    def kind(self) -> str:
        """Its type."""

    @property
    def mimic(self) -> Mimic | None:
        """What it follows."""


def mimic_of(joint: Element, report: Report) -> Mimic | None:
    """The joint that a joint follows, with URDF's multiplier and offset; None if there is none, or with a problem."""
    element = report.only(joint, "mimic")
    if element is None:
        return None
    leader = report.attribute(element, "joint")
    ratio, offset = (report.number(element, name, x) for name, x in (("multiplier", 1.0), ("offset", 0.0)))
    return Mimic(leader, ratio, offset) if leader and ratio is not None and offset is not None else None


def misled(joints: Mapping[str, Following], known: Collection[str], report: Report) -> list[str]:
    """Names of the joints that cannot follow what they name, each with a warning.

    ``known`` are the names of all joints of the file, also of those that cannot be read.
    """
    wrong: dict[str, None] = {}
    sound: set[str] = set()
    for name, joint in joints.items():
        if joint.mimic is None:
            continue
        leader, message = joint.mimic.joint, ""
        if leader not in joints:
            near = similar(leader, known, len(report.problems)) if leader not in known else ""
            message = f"mimics an unknown joint {shown(leader)!r}" + (f" ({near})" if near else "")
        elif joint.kind not in _SINGLE:
            message = f"a {joint.kind} joint cannot follow another one"
        elif joints[leader].kind not in _SINGLE:
            message = f"mimics {shown(leader)!r}, a {joints[leader].kind} joint, which has not one freedom"
        elif _in_circle(name, joints, wrong, sound):
            message = f"mimics {shown(leader)!r} in a circle"
        if message:
            (element,) = list(joint.element.named("mimic"))[:1]
            report.add(element, message, _INDEPENDENT, "warning")
            wrong[name] = None
    return list(wrong)


def _in_circle(name: str, joints: Mapping[str, Following], wrong: Collection[str], sound: set[str]) -> bool:
    """Whether the joints that a joint follows form a circle; others are added to ``sound``."""
    passed: dict[str, None] = {}
    while name not in sound:
        if name in passed:
            return True
        passed[name] = None
        mimic = joints[name].mimic if name in joints and name not in wrong else None
        if mimic is None:
            break
        name = mimic.joint
    sound.update(passed)
    return False
