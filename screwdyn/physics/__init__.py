"""Formulas: the steps for a single link, recursions over the tree, and the catalogue of quantities.

``link_steps`` are functions of scalars; ``recursions`` call them for the rows of a ``table``;
``quantities`` is the catalogue of what the recursions compute. No module here imports a compiler or checks its input;
``forms`` checks it.
"""

from screwdyn.physics.contribution import SHARES, Contribution, Padded, padded_sum, share_of
from screwdyn.physics.joint_forces import STEPS, Feedback, JointForces, subtree_wrench
from screwdyn.physics.model import Model, Robot
from screwdyn.physics.quantities import CATALOGUE, INTERNAL, LARGEST, SOLVING, Dimension, Frame, Method, Quantity
from screwdyn.physics.state import State, by_name, check_state
