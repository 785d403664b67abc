"""Readers of robot descriptions: URDF, xacro and Denavit-Hartenberg tables."""

from screwdyn.io.dh import from_dh
from screwdyn.io.urdf import check_urdf, read_urdf
from screwdyn.io.urdf_xml import Problem

__all__ = ["Problem", "check_urdf", "from_dh", "read_urdf"]
