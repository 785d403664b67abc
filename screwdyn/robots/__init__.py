"""Robots of the literature, with the source of their numbers, and the parameters of a robot.

Each function returns a new :class:`~screwdyn.KinematicTree`. The tests compare results for these robots with values
from independent engines.
"""

from screwdyn.robots.andrews import andrews
from screwdyn.robots.panda import panda
from screwdyn.robots.pelican import pelican
from screwdyn.robots.planar_two_joint import planar_pr, planar_rp
from screwdyn.robots.puma560 import puma560
from screwdyn.robots.rtx import rtx
from screwdyn.robots.stanford import stanford
from screwdyn.robots.truc_3r import truc_3r
from screwdyn.robots.two_link import two_link
from screwdyn.robots.ur5 import ur5

__all__ = [
    "andrews",
    "panda",
    "pelican",
    "planar_pr",
    "planar_rp",
    "puma560",
    "rtx",
    "stanford",
    "truc_3r",
    "two_link",
    "ur5",
]
