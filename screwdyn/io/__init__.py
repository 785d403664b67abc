"""Readers and writers of robot descriptions.

Formats are JSON, URDF, xacro, MJCF, models of Pinocchio, NetworkX graphs and Denavit-Hartenberg tables.
"""

from screwdyn.io.document import PlacedProblem
from screwdyn.io.json_text import read_json, write_json
from screwdyn.io.objects import from_dh, from_graph
from screwdyn.io.urdf import check_urdf, read_urdf, write_urdf
from screwdyn.io.xml_text import Problem

__all__ = [
    "PlacedProblem",
    "Problem",
    "check_urdf",
    "from_dh",
    "from_graph",
    "read_json",
    "read_urdf",
    "write_json",
    "write_urdf",
]
