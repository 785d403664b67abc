"""Trees as MJCF: MuJoCo has the same M, bias and loops, and what MJCF cannot express is named."""

import mujoco
import numpy as np
import pytest
from engine import robot_file
from numpy.testing import assert_allclose

import screwdyn as sd
from screwdyn import KinematicTree, ModelError, ScrewdynWarning
from screwdyn.testing import random_inertia, random_pose

pytestmark = pytest.mark.oracle

JOINTS = (
    *(sd.free(passive=True, name="fly"), sd.revolute((1, 2, 2), (0.1, 0.2, 0), limits=(-1, 2), damping=0.3, effort=7)),
    *(sd.prismatic("x", stiffness=3, rest=0.2, armature=0.1), sd.cylindrical((0, 1, 1), (0.1, 0, 0))),
    *(sd.spherical((0.1, 0, 0.2), friction=0.1), sd.universal("x", "y", (0, 0.1, 0)), sd.fixed()),
)


def of_all_kinds(rng):
    tree, to = KinematicTree("floor", gravity=(0.3, 0.2, -9)), "floor"
    for k, joint in enumerate(JOINTS):
        body = sd.Inertia.box(2.0, (0.2, 0.3, 0.4), com=rng.uniform(-0.2, 0.2, 3))
        home = None if joint.kind == "free" else random_pose(rng)
        to = tree.attach(body, to=to, joint=joint, at=home, name=f"link {k}").name
    return tree


def test_what_is_written_is_read_again() -> None:
    rng = np.random.default_rng(2)
    tree = of_all_kinds(rng)
    shapes = [sd.Shape.box((1, 2, 3), pose=(0, 0, 1), color=(1, 0, 0, 1)), sd.Shape.sphere(0.2, use="collision")]
    tree.set_shapes("link 1", [*shapes, sd.Shape.cylinder(0.1, 2), sd.Shape.capsule(0.1, 3)])
    tree.close("link 6", to="link 1", joint=sd.spherical((0.1, 0.2, 0.3)), at=random_pose(rng), name="ball & socket")
    tree.close("link 5", to="floor", at=random_pose(rng), name="glue")
    text = tree.to_mjcf("<all>")
    twin = KinematicTree.from_mjcf(text, strict=True)
    assert (twin.base, twin.coordinates, twin.loops) == ("world", tree.coordinates, tree.loops)
    assert {*tree.links[1:]} < {*twin.links}
    for name in tree.loops:
        one, other = tree.loop(name), twin.loop(name)
        assert (one.link, one.to.replace("floor", "world"), one.joint.kind) == (other.link, other.to, other.joint.kind)
    for one, other in zip(tree.shapes("link 1"), twin.shapes("link 1"), strict=True):
        assert (one.kind, one.use, one.color) == (other.kind, other.use, other.color)
        assert_allclose([*one.size, *one.pose.ravel()], [*other.size, *other.pose.ravel()], rtol=0, atol=1e-14)
    assert (twin.joint("link 1").limits, twin.joint("link 1").effort) == ((-1, 2), 7)
    q, qd = tree.random_configuration(rng), rng.uniform(-1, 1, tree.nv)
    for what in ("mass_matrix", "gravity_vector", "constraint_jacobian", "gap"):
        assert_allclose(getattr(twin, what)(q), getattr(tree, what)(q), rtol=0, atol=1e-11, err_msg=what)
    for what in ("bias_force", "joint_force", "constraint_jacobian_dot"):
        assert_allclose(getattr(twin, what)(q, qd), getattr(tree, what)(q, qd), rtol=0, atol=1e-10, err_msg=what)


def test_the_written_constraints_are_those_of_mujoco() -> None:
    tree = of_all_kinds(np.random.default_rng(2))
    tree.close("link 6", to="link 1", name="glue")
    model = mujoco.MjModel.from_xml_string(tree.to_mjcf())
    assert [model.eq_type[0], model.neq, model.nu] == [mujoco.mjtEq.mjEQ_WELD, 1, 0]
    assert model.opt.gravity.tolist() == [0.3, 0.2, -9]
    assert model.jnt_actfrcrange[model.jnt_actfrclimited].tolist() == [[-7, 7]]


def test_limits_of_force_that_differ_by_side_are_named() -> None:
    tree = KinematicTree()
    tree.attach(sd.Inertia.box(1.0, (0.1, 0.1, 0.1)), to="base", joint=sd.prismatic("z", effort=9.5), name="lift")
    text = tree.to_mjcf().replace("-9.5", "-1")
    with pytest.warns(ScrewdynWarning, match="the limits of force of joint 'lift'"):
        assert KinematicTree.from_mjcf(text).joint("lift").effort is None


def test_everything_that_mjcf_cannot_express_is_listed() -> None:
    tree, body = KinematicTree(), sd.Inertia.box(1.0, (0.1, 0.1, 0.1))
    tree.attach(body, to="base", joint=sd.helical("z", 0.1), name="screw")
    tree.attach(body, to="base", joint=sd.planar(), name="puck")
    tree.attach(body, to="puck", joint=sd.free(passive=True), name="moon")
    tree.attach(sd.Inertia.point(1.0), to="base", joint=sd.revolute(), name="bob")
    tree.attach(sd.Link("world"), to="base", name="world")
    tree.close("moon", to="puck", joint=sd.revolute(), name="pin\uffff")
    with pytest.raises(ModelError) as caught:
        tree.to_mjcf()
    words = ("'screw' has the helical", "'puck' is planar", "'moon' is not on the base")
    words += ("'bob' and those fixed to it have no inertia", "'world' has the name", "has a revolute joint", "XML does")
    assert len(caught.value.problems) == len(words)
    for word in words:
        assert word in str(caught.value)
    with pytest.raises(ModelError, match="name of the model"):
        tree.to_mjcf("")


def test_what_is_lost_is_warned_about() -> None:
    tree, body = KinematicTree(), sd.Inertia.box(1.0, (0.1, 0.1, 0.1))
    tree.attach(body, to="base", joint=sd.revolute(passive=True, limits=(-np.inf, 1), velocity=3), name="flap")
    tree.attach(body, to="base", joint=sd.cylindrical("z", effort=3), name="bolt")
    tree.attach(body, to="base", joint=sd.revolute(), name="latch", shape=sd.Shape.mesh("a.stl"))
    tree.lock("latch", at=0.3)
    with pytest.warns(ScrewdynWarning) as caught:
        tree.to_mjcf()
    assert [w.filename for w in caught] == [__file__]
    for words in (
        "'flap' is passive",
        "limit on one side",
        "velocity of joint 'flap'",
        "effort of joint 'bolt'",
        "mesh of link 'latch'",
        "lock of",
    ):
        assert words in str(caught[0].message)


def compare_with_mujoco(tree, text, rng, W, constant):
    """M and the bias of a tree of hinges and slides: those of all of MuJoCo's joints, whose rates are W times ours."""
    model = mujoco.MjModel.from_xml_string(text)
    data, M = mujoco.MjData(model), np.empty((model.nv, model.nv))
    for _ in range(3):
        q, qd = rng.uniform(-1, 1, (2, tree.nv))
        data.qpos[:], data.qvel[:] = W @ q + constant, W @ qd
        mujoco.mj_forward(model, data)
        mujoco.mj_fullM(model, data, M)
        size = np.abs(M).max()
        assert_allclose(tree.mass_matrix(q), W.T @ M @ W, rtol=0, atol=1e-11 * size)
        assert_allclose(tree.bias_force(q, qd), W.T @ data.qfrc_bias, rtol=0, atol=1e-10 * size)


@pytest.mark.filterwarnings("error")
def test_a_free_joint_keeps_its_home() -> None:
    rng = np.random.default_rng(5)
    tree, homes = KinematicTree(), {"bird": random_pose(rng), "kite": np.eye(4)}
    for name, home in homes.items():
        tree.attach(random_inertia(rng), "base", sd.free(passive=True, name=f"fly {name}"), home, name)
    text = tree.to_mjcf()
    twin, q = KinematicTree.from_mjcf(text, strict=True), tree.random_configuration(rng)
    for name in homes:
        assert_allclose(twin.forward_kinematics(name, q), tree.forward_kinematics(name, q), rtol=0, atol=1e-14)
    assert_allclose(twin.gravity_vector(q), tree.gravity_vector(q), rtol=0, atol=1e-12)
    assert_allclose(mujoco.MjModel.from_xml_string(text).qpos0[:3], homes["bird"][:3, 3], rtol=0, atol=1e-15)
    assert text.count("<numeric ") == 1


def chain(rng, joints):
    """A link with an inertia at the end of massless ones."""
    tree, to = KinematicTree("world"), "world"
    for k, joint in enumerate(joints):
        last = k == len(joints) - 1
        body = random_inertia(rng) if last else sd.Link(f"link{k}")
        to = tree.attach(body, to, joint, random_pose(rng), f"link{k}").name
    return tree


def test_massless_links_between_joints_become_joints_of_one_body() -> None:
    rng = np.random.default_rng(6)
    joints = sd.revolute((1, 2, 2), (0.1, 0.2, 0)), sd.prismatic((1, 0, 2)), sd.universal("x", "y", (0, 0.1, 0.3))
    tree = chain(rng, joints)
    with pytest.warns(ScrewdynWarning) as caught:
        text = tree.to_mjcf()
    for words in (
        "name of the massless link 'link0', which is read as 'link2_link0'",
        "frame of the massless link 'link1'",
    ):
        assert words in str(caught[0].message)
    assert text.count("<body ") == 1
    compare_with_mujoco(tree, text, rng, np.eye(4), 0)
    twin, q = KinematicTree.from_mjcf(text, strict=True), rng.uniform(-1, 1, 4)
    assert twin.coordinates == tree.coordinates
    assert_allclose(twin.forward_kinematics("link2", q), tree.forward_kinematics("link2", q), rtol=0, atol=1e-13)


@pytest.mark.filterwarnings("error")
def test_a_body_with_several_joints_keeps_all_names() -> None:
    body = '<inertial pos="0 0 0.1" mass="1" diaginertia="1 1 1"/>'
    text = f"""<mujoco><worldbody><body name="a" pos="1 0 0" euler="10 20 30"><joint name="x" type="slide"/>
      <joint axis="0 1 2" pos="0 0.1 0"/><joint name="tip" type="ball" pos="0.1 0 0"/>{body}
      <body pos="0 0 1"><joint name="b"/><joint name="a" axis="1 0 0" pos="0 0 0.3"/>{body}</body>
      </body></worldbody></mujoco>"""
    tree = KinematicTree.from_mjcf(text)
    twin = KinematicTree.from_mjcf(tree.to_mjcf())
    assert (twin.links, twin.positions) == (tree.links, tree.positions)
    q = tree.random_configuration(np.random.default_rng(7))
    assert_allclose(twin.mass_matrix(q), tree.mass_matrix(q), rtol=0, atol=1e-13)
    for link in tree.links:
        assert_allclose(twin.forward_kinematics(link, q), tree.forward_kinematics(link, q), rtol=0, atol=1e-13)


def test_massless_links_that_one_body_cannot_replace_are_refused() -> None:
    rng = np.random.default_rng(8)
    seven, ball = chain(rng, [sd.revolute()] * 7), chain(rng, [sd.spherical(), sd.revolute()])
    shown, held, forked = (chain(rng, [sd.revolute(), sd.revolute()]) for _ in range(3))
    shown.set_shapes("link0", [sd.Shape.sphere(0.1)])
    held.close("link0", to="world", joint=sd.spherical(), name="string")
    forked.attach(random_inertia(rng), "link0", sd.revolute(), name="fork")
    for tree in (seven, ball, shown, held, forked, chain(rng, [sd.free(passive=True), sd.revolute()])):
        with pytest.raises(ModelError, match="'link0' and those fixed to it have no inertia"):
            tree.to_mjcf()


def test_panda_and_its_finger_that_follows() -> None:
    tree = KinematicTree.from_urdf(robot_file("panda.urdf"))
    with pytest.warns(ScrewdynWarning, match="a mesh of link"):
        text = tree.to_mjcf()
    twin = KinematicTree.from_mjcf(text, strict=True)
    assert twin.coordinates == tree.coordinates
    assert twin.joint("panda_finger_joint2").mimic == tree.joint("panda_finger_joint2").mimic
    compare_with_mujoco(tree, text, np.random.default_rng(9), np.eye(9, 8) + np.outer(np.eye(9)[8], np.eye(8)[7]), 0)


def test_gears_with_ratio_and_offset() -> None:
    rng, tree = np.random.default_rng(10), KinematicTree()
    tree.attach(random_inertia(rng), "base", sd.revolute("x", name="crank"), random_pose(rng), "arm")
    tree.attach(
        random_inertia(rng), "arm", sd.prismatic("y", mimic=sd.Mimic("crank", -0.7, 0.2)), random_pose(rng), "rack"
    )
    tree.attach(
        random_inertia(rng), "rack", sd.revolute("z", mimic=sd.Mimic("rack", 3, 0.1)), random_pose(rng), "pinion"
    )
    text = tree.to_mjcf()
    twin = KinematicTree.from_mjcf(text, strict=True)
    assert [twin.joint(x).mimic for x in ("rack", "pinion")] == [tree.joint(x).mimic for x in ("rack", "pinion")]
    compare_with_mujoco(tree, text, rng, np.array([[1], [-0.7], [-2.1]]), (0, 0.2, 0.7))
