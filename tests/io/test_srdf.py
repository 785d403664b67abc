"""Reference poses of SRDF files."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import screwdyn as sd

BODY = sd.Inertia.box(1.0, (0.1, 0.2, 0.3))


@pytest.fixture
def tree():
    tree = sd.KinematicTree("world")
    tree.attach(BODY, to="world", joint=sd.free(passive=True, name="base"), name="trunk")
    tree.attach(BODY, to="trunk", joint=sd.revolute("y", limits=(-2, 2), name="elbow"), name="arm")
    tree.attach(BODY, to="arm", joint=sd.prismatic("x", name="left finger"), name="left")
    mimic = sd.Mimic("left finger", -1.0)
    tree.attach(BODY, to="arm", joint=sd.prismatic("x", mimic=mimic, name="right finger"), name="right")
    tree.attach(BODY, to="trunk", joint=sd.planar("z", name="slab"), name="slab")
    tree.attach(BODY, to="trunk", joint=sd.spherical(name="neck"), name="head")
    tree.attach(BODY, to="arm", joint=sd.fixed(name="camera"), name="camera")
    return tree


def srdf(*lines):
    """One element per line; the first of `lines` is on line 2."""
    return "\n".join(['<robot name="r">', *lines, "</robot>"])


def state(name, group="all", **values):
    inside = "".join(f'<joint name="{joint.replace("_", " ")}" value="{x}"/>' for joint, x in values.items())
    return f'<group_state name="{name}" group="{group}">{inside}</group_state>'


def test_poses_are_states_at_rest(tree):
    text = srdf(
        '<group name="all"><joint name="elbow"/></group>',
        state("ready", elbow=0.5, left_finger=0.01, camera=0, right_finger=0.7),
        state("tuck", elbow=-1.5),
        '<disable_collisions link1="arm" link2="left" reason="Adjacent"/>',
    )
    poses = tree.reference_poses(text)
    assert [*poses] == ["ready", "tuck"]
    assert (poses["ready"]["elbow"], poses["ready"]["left finger"], poses["tuck"]["elbow"]) == (0.5, 0.01, -1.5)
    expected = sd.State(tree, {"elbow": -1.5})
    assert (poses["tuck"].q == expected.q).all() and not poses["tuck"].qd.any()


def test_groups_with_the_same_name_of_a_state_make_one_pose(tree):
    text = srdf(state("home", "arm", elbow=0.5), state("home", "hand", left_finger=0.02, elbow=0.5))
    (home,) = tree.reference_poses(text).values()
    assert (home["elbow"], home["left finger"]) == (0.5, 0.02)
    with pytest.raises(sd.URDFError, match=r"line 3, <group_state name=\"home\">: 'elbow' is 0.6 and 0.5; keep one"):
        tree.reference_poses(srdf(state("home", "arm", elbow=0.5), state("home", "hand", elbow=0.6)))


@pytest.mark.parametrize(
    "declared", ['<virtual_joint name="odom" type="floating" parent_frame="map" child_link="trunk"/>', ""]
)
def test_a_floating_base_is_a_virtual_joint(tree, declared):
    name = "odom" if declared else "root_joint"
    text = srdf(declared, state("up", joint="1 2 3 0 0 0.6 0.8").replace('name="joint"', f'name="{name}"'))
    T = tree.forward_kinematics("trunk", tree.reference_poses(text)["up"].q)
    assert_allclose(T[:3, 3], [1, 2, 3])
    assert_allclose(T[:2, 0], [0.28, 0.96])
    assert tree.detach("arm").reference_poses(text)["up"].q.tolist() == [0.0]  # which has none


def test_positions_come_before_orientations(tree):
    pose = tree.reference_poses(srdf(state("turned", slab="0.1 0.2 0.3", neck="0 0.6 0 0.8")))["turned"]
    assert [pose[f"slab[{x}]"] for x in ("px", "py", "angle")] == [0.1, 0.2, 0.3]
    assert [pose[f"neck[{x}]"] for x in "xyzw"] == [0, 0.6, 0, 0.8]


def test_a_robot_with_a_prefix_among_others(tree):
    both = sd.KinematicTree()
    for side in ("left/", "right/"):
        both.attach(sd.robots.ur5(), to="base", name="foot", prefix=side)
    text = srdf(state("up", elbow=1.0).replace("elbow", "elbow_joint"))
    pose = both.reference_poses(text, prefix="right/")
    assert (pose["up"]["left/elbow_joint"], pose["up"]["right/elbow_joint"]) == (0.0, 1.0)
    with pytest.raises(sd.URDFError, match="the tree has no joint of any group state; give the prefix="):
        both.reference_poses(srdf(state("up", elbow=1.0)))


def test_joints_that_the_tree_does_not_have_are_left_out_with_a_warning(tree):
    text = srdf(state("ready", elbow=0.5, elbo=1), state("open", gripper=0.1))
    with pytest.warns(sd.ScrewdynWarning, match="no joint 'elbo'; did you mean 'elbow'") as warned:
        poses = tree.reference_poses(text)
    assert [*poses] == ["ready"] and "no joint 'gripper'" in str(warned[0].message) and warned[0].filename == __file__
    with pytest.raises(sd.URDFError, match="2 problems"):
        tree.reference_poses(text, strict=True)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ('<joint name="elbow"/>', 'line 2, <joint name="elbow"> of <group_state name="up">: the attribute \'value\''),
        ('<joint name="elbow" value="0.1 0.2"/>', "has 2; expected one number"),
        ('<joint name="elbow" value="90°"/>', "'90°' is not a number"),
        ('<joint name="neck" value="0 0 0 2"/>', "quaternion of length 2"),
        ('<joint value="0.1"/>', "the attribute 'name' is missing"),
        ('<joint name="elbow" value="0.1"></group_state>', "not well-formed XML"),
    ],
)
def test_every_problem_is_named_with_its_line(tree, wrong, message):
    text = srdf(f'<group_state name="up" group="all">{wrong}</group_state>')
    with pytest.raises(sd.URDFError) as caught:
        tree.reference_poses(text)
    assert message in str(caught.value) and "in the SRDF text" in str(caught.value)


def test_a_urdf_is_no_srdf(tree):
    with pytest.raises(sd.URDFError, match=r"this is a URDF, which has no reference poses; give the .srdf file"):
        tree.reference_poses(sd.robots.ur5().to_urdf())


def test_degrees_are_noticed(tree):
    with pytest.warns(sd.ScrewdynWarning, match="'elbow' is at 90 rad"):
        tree.reference_poses(srdf(state("up", elbow=90)))


def test_files_and_xacro(tree, tmp_path):
    file = tmp_path / "robot.srdf.xacro"
    file.write_text(
        '<robot name="r" xmlns:xacro="http://wiki.ros.org/xacro"><xacro:property name="x" value="0.5"/>'
        '<group_state name="up" group="all"><joint name="elbow" value="${x}"/></group_state></robot>'
    )
    assert tree.reference_poses(file)["up"]["elbow"] == 0.5
    with pytest.raises(sd.URDFError, match="this is xacro, not SRDF"):
        tree.reference_poses(file, xacro=False)
    with pytest.raises(sd.URDFError, match=r"cannot read the file 'nowhere\.srdf'.* path of a SRDF file"):
        tree.reference_poses("nowhere.srdf")
    assert tree.reference_poses(srdf()) == tree.reference_poses(srdf(state("empty"))) == {}
    assert np.all(tree.reference_poses(srdf(state("zero", elbow=0)))["zero"].q == tree.neutral())
