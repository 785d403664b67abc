"""Inertial parameters from measured motions and torques: a body's ten, or the base parameters of a whole robot.

See docs/identification.md.
"""

from screwdyn.identification.base import BaseParameters, base_parameters
from screwdyn.identification.estimate import Friction, ParameterEstimate
from screwdyn.identification.identify import Identified, identify

__all__ = ["BaseParameters", "Friction", "Identified", "ParameterEstimate", "base_parameters", "identify"]
