"""Dominance of translation and rotation in the equations of motion, and simplified models: Fu 1987, section 3.4.1.

Fu's equations Σ_j (D_ij^tran + D_ij^rot) θ̈_j + h_i^tran + h_i^rot + c_i = τ_i (Eq. 3.4-24, `GeneralizedDAlembert`)
separate what the translation and the rotation of the links contribute. Along a trajectory, the parts that hardly matter
can be left out.
"""

from screwdyn.papers.formulations.dominance.equations import parts
from screwdyn.papers.formulations.dominance.model import SimplifiedModel, TorqueError
from screwdyn.papers.formulations.dominance.parts import Parts
from screwdyn.papers.formulations.dominance.simplified import simplified

__all__ = ["Parts", "SimplifiedModel", "TorqueError", "parts", "simplified"]
