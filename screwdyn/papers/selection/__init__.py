"""Which of several arms to choose: cost of the dynamics, workspace, manipulability and conditioning of M.

The criteria are those of P. P. Bhangale, S. K. Saha, V. P. Agrawal, "A dynamic model based robot arm selection
criterion", Multibody System Dynamics 12, 2004. See docs/arm_selection.md.
"""

from screwdyn.papers.selection.criteria import Criteria, Section, Spread
from screwdyn.papers.selection.selection import Selection, compare
from screwdyn.papers.selection.trajectory import Trajectory
from screwdyn.papers.selection.workspace import Estimate

__all__ = ["Criteria", "Estimate", "Section", "Selection", "Spread", "Trajectory", "compare"]
