"""Reference poses of public robots, with the poses of all links in them, against Pinocchio."""

import pinocchio as pin
import pytest
from engine import robot, robot_file
from numpy.testing import assert_allclose

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize(
    ("urdf", "srdf", "floating"),
    [
        ("robots/talos_reduced.urdf", "srdf/talos.srdf", True),
        ("urdf/centauro.urdf", "srdf/centauro.srdf", True),
        ("robots/hyq_no_sensors.urdf", "srdf/hyq.srdf", True),
        ("urdf/xarm7.urdf", "srdf/xarm7.srdf", False),
        ("pr2.urdf", "srdf/pr2.srdf", False),
    ],
)
def test_every_link_is_where_pinocchio_has_it(urdf, srdf, floating):
    tree, model = robot(urdf, floating)
    poses, data = tree.reference_poses(robot_file(srdf)), model.createData()
    pin.loadReferenceConfigurations(model, robot_file(srdf), False)
    expected = {pair.key(): pair.data() for pair in model.referenceConfigurations}
    assert {*poses} == {*expected} and poses
    for name, state in poses.items():
        pin.framesForwardKinematics(model, data, expected[name])
        for k, frame in enumerate(model.frames):
            if frame.type == pin.FrameType.BODY:
                found = tree.forward_kinematics(frame.name, state.q)
                assert_allclose(found, data.oMf[k].homogeneous, rtol=0, atol=1e-14)
