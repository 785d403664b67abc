"""The equations of motion as seven publications compute them: a teaching collection, and independent witnesses.

Each class takes a tree and has the methods `mass_matrix`, `velocity_product`, `gravity_vector`, `inverse_dynamics` and,
where the source defines the matrix, `coriolis_matrix`. None of them uses the recursions of the library. See
docs/formulations.md. `dominance` compares the parts of `generalized_dalembert` along a trajectory. `link_frames` has
the matrices of `denoc` by the steps of their source, with the operations of each step.
"""

from screwdyn.papers.formulations import dominance as dominance
from screwdyn.papers.formulations import link_frames as link_frames
from screwdyn.papers.formulations.fu import GeneralizedDAlembert as generalized_dalembert
from screwdyn.papers.formulations.fu import LagrangeEuler as lagrange_euler
from screwdyn.papers.formulations.fu import NewtonEuler as newton_euler
from screwdyn.papers.formulations.jacobians import DeNOC as denoc
from screwdyn.papers.formulations.jacobians import Kronecker as kronecker
from screwdyn.papers.formulations.jacobians import Lagrangian as lagrangian
from screwdyn.papers.formulations.jacobians import Progressive as progressive

__all__ = ["denoc", "generalized_dalembert", "kronecker", "lagrange_euler", "lagrangian", "newton_euler", "progressive"]
