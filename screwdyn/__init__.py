"""screwdyn: robot dynamics that can be reconfigured while it runs.

A robot is a tree of links; each link contributes its own Jacobian, mass matrix, Coriolis matrix and gravity vector,
and the padded sum ‡ assembles the whole by coordinate name. See README.md, docs/ and :class:`KinematicTree`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import errors, screw, screw_system
from .contribution import Contribution
from .errors import (
    InertiaError,
    JointError,
    ScrewdynError,
    ScrewdynWarning,
    ShapeError,
    SingularAttachmentError,
    StaleHandleError,
    TopologyError,
    UnboundSymbolError,
    UnknownLinkError,
    URDFError,
)
from .inertia import Inertia
from .joint import Joint, fixed, helical, prismatic, revolute
from .link import Link
from .padded import Padded, padded_sum
from .run import Energy, Grasp, Release, Run
from .simulate import simulate
from .state import State
from .transition import FreeBody, GraspEvent, ReleaseEvent
from .tree import Handle, KinematicTree

if TYPE_CHECKING:
    from . import io, robots, testing

__version__ = "0.1.0"

__all__ = [
    "Contribution",
    "Energy",
    "FreeBody",
    "Grasp",
    "GraspEvent",
    "Handle",
    "Inertia",
    "InertiaError",
    "Joint",
    "JointError",
    "KinematicTree",
    "Link",
    "Padded",
    "Release",
    "ReleaseEvent",
    "Run",
    "ScrewdynError",
    "ScrewdynWarning",
    "ShapeError",
    "SingularAttachmentError",
    "StaleHandleError",
    "State",
    "TopologyError",
    "URDFError",
    "UnboundSymbolError",
    "UnknownLinkError",
    "errors",
    "fixed",
    "helical",
    "io",
    "padded_sum",
    "prismatic",
    "revolute",
    "robots",
    "screw",
    "screw_system",
    "simulate",
    "testing",
]


def __getattr__(name: str) -> Any:
    """Import the parts that not everybody needs when they are first asked for."""
    if name in ("io", "robots", "testing"):
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
