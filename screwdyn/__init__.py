"""screwdyn: dynamics of robots that are reconfigured while they move.

A robot is a tree of links. Each link contributes its own Jacobian, mass matrix, Coriolis matrix and gravity vector; the
padded sum ‡ adds these contributions by coordinate name. See README.md, docs/ and :class:`KinematicTree`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from screwdyn.changes.breaking import Bolt, Break, Hand, Pull, SuctionCup
from screwdyn.changes.change import Change, ContactEvent, ImpactEvent, LimitEvent
from screwdyn.changes.grasp import FreeBody, Grasp, GraspEvent
from screwdyn.changes.lock import Lock, LockEvent, Unlock
from screwdyn.changes.loops import Close, LoopEvent, Open
from screwdyn.changes.move import HandOver, ReplaceJoint
from screwdyn.changes.release import Release, ReleaseEvent
from screwdyn.changes.reroot import Reroot
from screwdyn.changes.set_inertia import SetInertia
from screwdyn.changes.weld import Unweld, Weld, WeldEvent
from screwdyn.core import errors
from screwdyn.core.errors import *  # noqa: F403
from screwdyn.forms.c_source import c_library
from screwdyn.forms.point import Point
from screwdyn.mechanism import Ball, Box, Capsule, Contact, Handle, Inertia, Link, Plane, Shape
from screwdyn.mechanism.joint import (
    Joint,
    Mimic,
    Rotor,
    cylindrical,
    fixed,
    free,
    helical,
    planar,
    prismatic,
    revolute,
    spherical,
    universal,
)
from screwdyn.physics import Contribution, Feedback, Padded, State, padded_sum
from screwdyn.screws import screw, screw_system
from screwdyn.simulation.equations import SpringStop
from screwdyn.simulation.recording import Energy, Recording
from screwdyn.simulation.simulate import Run, simulate
from screwdyn.tree import KinematicTree, read_change

if TYPE_CHECKING:
    from screwdyn import control, io, robots, testing
    from screwdyn.papers import formulations, selection
    from screwdyn.robots import identification
    from screwdyn.robots.identification import identify

__version__ = "0.1.0"

__all__ = ["Handle", "Inertia", "KinematicTree", "Link", "Shape", "State"]
__all__ += ["Contribution", "Padded", "Point", "padded_sum"]
__all__ += ["Joint", "Mimic", "Rotor", "cylindrical", "fixed", "free"]
__all__ += ["helical", "planar", "prismatic", "revolute", "spherical", "universal"]
__all__ += ["Change", "Close", "Grasp", "HandOver", "Lock", "Open", "Release"]
__all__ += ["ReplaceJoint", "Reroot", "SetInertia", "Unlock", "Unweld", "Weld"]
__all__ += ["ContactEvent", "GraspEvent", "ImpactEvent", "LimitEvent", "LockEvent"]
__all__ += ["LoopEvent", "ReleaseEvent", "WeldEvent", "read_change"]
__all__ += ["Ball", "Bolt", "Box", "Break", "Capsule", "Contact", "Hand", "Plane", "Pull", "SuctionCup"]
__all__ += ["Energy", "Feedback", "FreeBody", "Recording", "Run", "SpringStop", "simulate"]
__all__ += ["c_library", "control", "errors", "formulations", "identification", "identify"]
__all__ += ["io", "robots", "screw", "screw_system", "selection", "testing"]
__all__ += errors.__all__

# Imported when they are first used.
_LATER = {
    "control": "control",
    "formulations": "papers.formulations",
    "identification": "robots.identification",
    "io": "io",
    "robots": "robots",
    "selection": "papers.selection",
    "testing": "testing",
}


def __getattr__(name: str) -> Any:
    """A public module that is imported when it is first used, or its function."""
    if name == "identify":
        return import_module(".robots.identification", __name__).identify
    if name in _LATER:
        return import_module(f".{_LATER[name]}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, including those of modules that are imported on first use."""
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
