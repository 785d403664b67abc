"""screwdyn: robot dynamics that can be reconfigured while it runs."""

from importlib import import_module
from typing import Any

from . import errors, screw
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
    UnknownLinkError,
    URDFError,
)
from .inertia import Inertia
from .joint import Joint, fixed, helical, prismatic, revolute
from .link import Link
from .padded import Padded, padded_sum
from .tree import Handle, KinematicTree

__version__ = "0.1.0"
