"""Joints as unit screws: the value, the kinds, and the checks of screws (docs/mathematics.md §1 and §7)."""

from screwdyn.mechanism.joint.kinds import (
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
from screwdyn.mechanism.joint.mimic import Mimic
from screwdyn.mechanism.joint.rotor import Rotor
from screwdyn.mechanism.joint.value import Joint

__all__ = [
    "Joint",
    "Mimic",
    "Rotor",
    "cylindrical",
    "fixed",
    "free",
    "helical",
    "planar",
    "prismatic",
    "revolute",
    "spherical",
    "universal",
]
