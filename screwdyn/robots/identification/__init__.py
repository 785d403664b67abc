"""Inertial parameters from measured motions and torques: a body's ten, or the base parameters of a whole robot.

See docs/identification.md.
"""

from screwdyn.robots.identification.base import BaseParameters, base_parameters
from screwdyn.robots.identification.estimate import Friction, ParameterEstimate
from screwdyn.robots.identification.identify import Identified, identify

__all__ = ["BaseParameters", "Friction", "Identified", "ParameterEstimate", "base_parameters", "identify"]
