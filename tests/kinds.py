"""The kinds of joints, in one list, so that a new kind is in all tests that draw from it."""

from dataclasses import replace

import numpy as np

import screwdyn as sd
from screwdyn.testing import KINDS, random_tree


def random_joint(rng, kind, name=None):
    """A joint of that kind in any direction; its name is that of its link by default."""
    return replace(random_tree(rng, 1, (kind,), frames=0).joint("joint1"), name=name)


_JOINTS = {kind: random_joint(np.random.default_rng(0), kind) for kind in KINDS}

EVERY = tuple(KINDS)
MOVING = tuple(kind for kind in EVERY if _JOINTS[kind].nv)
SINGLE = tuple(kind for kind in EVERY if _JOINTS[kind].nv == 1)
GROUPS = tuple(kind for kind in EVERY if _JOINTS[kind].chart is not None)

# Joints by which loops are closed.
OF_LOOPS = {
    "fixed": None,
    "revolute": sd.revolute("y", (0.1, 0.2, 0.3)),
    "prismatic": sd.prismatic("x"),
    "helical": sd.helical("z", 0.1),
    "cylindrical": sd.cylindrical("x"),
    "spherical": sd.spherical((0.1, 0.0, -0.2)),
    "planar": sd.planar("z"),
}
