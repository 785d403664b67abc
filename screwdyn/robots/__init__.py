"""Robots of the literature, with the source of their numbers.

Each function returns a fresh :class:`~screwdyn.KinematicTree`. What is computed with them is held against
values from outside engines by the tests.
"""

from .pelican import pelican
from .puma560 import puma560
from .rtx import rtx
from .stanford import stanford
from .truc_3r import truc_3r
from .two_link import two_link
from .ur5 import ur5

__all__ = ["pelican", "puma560", "rtx", "stanford", "truc_3r", "two_link", "ur5"]
