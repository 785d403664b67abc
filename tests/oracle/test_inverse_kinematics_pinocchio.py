"""Inverse kinematics against Pinocchio's forward kinematics."""

import numpy as np
import pytest
from engine import Engine, robot
from numpy.testing import assert_allclose

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize(
    ("file", "link", "floating"),
    [
        ("ur5_robot.urdf", "tool0", False),
        ("panda.urdf", "panda_hand", False),
        ("talos_reduced.urdf", "gripper_left_base_link", True),
    ],
)
def test_a_pose_that_pinocchio_gives_is_found(file, link, floating):
    tree, model = robot(file, floating)
    engine, rng = Engine(model, tree), np.random.default_rng(0)
    for _ in range(10):
        q = tree.random_configuration(rng)
        engine.kinematics(q, *np.zeros((2, tree.nv)))
        pose = engine.pose(link)
        found = tree.inverse_kinematics(link, pose, freedoms=tree.coordinates)
        engine.kinematics(found, *np.zeros((2, tree.nv)))
        assert_allclose(engine.pose(link), pose, rtol=0, atol=1e-8)
        limits = [(tree.joint(x).limits or (-np.inf, np.inf)) for x in tree.joints if tree.joint(x).nv == 1]
        within = found[-len(limits) :]
        assert np.all((np.array(limits)[:, 0] <= within) & (within <= np.array(limits)[:, 1]))
