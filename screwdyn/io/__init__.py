"""Robots from outside: URDF files and Denavit-Hartenberg tables."""

from .dh import from_dh
from .urdf import check_urdf, read_urdf
from .urdf_xml import Problem

__all__ = ["Problem", "check_urdf", "from_dh", "read_urdf"]
