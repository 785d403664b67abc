"""MJCF read by this library and by MuJoCo: M, C q̇, g and the passive forces, entry by entry."""

import warnings

import mujoco
import numpy as np
import pytest
from numpy.testing import assert_allclose

import screwdyn as sd
from screwdyn import KinematicTree, ModelError, ScrewdynWarning
from screwdyn.screws.screw import rotation_of

pytestmark = pytest.mark.oracle

GEOM = '<geom type="capsule" size="0.05 0.2" pos="0.1 0.02 -0.1" euler="20 40 10"/>'
WHOLE = f"""
<mujoco model="whole"><compiler angle="degree"/>
  <option gravity="0.3 -0.5 -9.5"/>
  <worldbody>
    <body name="pillar" pos="0.1 0.2 0.3" euler="10 20 30">
      <inertial pos="0 0.1 0" mass="3" fullinertia="0.3 0.4 0.5 0.01 0.02 0.03"/>
      <body name="arm" pos="0.2 0 0.1" euler="0 30 0">
        <joint name="pan" type="hinge" axis="0 0.6 0.8" pos="0.1 0 0.05" ref="25"
          range="-90 90" limited="true" armature="0.7"/>
        <joint name="push" type="slide" axis="1 0 0" ref="0.1" stiffness="3" springref="0.3"
          damping="2" armature="1.3"/>
        <joint name="tilt" type="hinge" axis="0 1 0" stiffness="7" springref="-40" damping="0.5"/>
        {GEOM}
        <body name="hand" pos="0.3 0 0" quat="0.5 0.5 -0.5 0.5">
          <joint name="wrist" type="ball" pos="0.05 0.02 0" damping="0.1"/>
          {GEOM}
          <body name="flange" pos="0 0 0.1"><body name="finger" pos="0 0.05 0"><joint axis="0 0 1"/>{GEOM}</body></body>
        </body>
      </body>
    </body>
    <body name="ship" pos="1 2 3" euler="30 0 50">
      <freejoint name="fly"/>{GEOM}
      <body name="mast" pos="0 0 0.4"><joint name="sway" axis="1 0 0" pos="0 0 -0.2" armature="0.2"/>{GEOM}</body>
    </body>
  </worldbody>
</mujoco>"""


class Engine:
    """MuJoCo's results over the coordinates of the tree that was read; u = T ν for its velocities u."""

    def __init__(self, model, tree):
        self.model, self.data, self.tree = model, mujoco.MjData(model), tree

    def set(self, q, v):
        m, d, n = self.model, self.data, self.model.nv
        self.T, self.T_dot, self.v = np.eye(n), np.zeros((n, n)), v
        for k in range(m.njnt):
            a, b = m.jnt_qposadr[k], m.jnt_dofadr[k]
            if m.jnt_type[k] == mujoco.mjtJoint.mjJNT_FREE:
                R = rotation_of(q[a : a + 4])
                d.qpos[a : a + 7] = [*q[a + 4 : a + 7], q[a + 3], *q[a : a + 3]]
                self.T[b : b + 6, b : b + 6] = np.block([[np.zeros((3, 3)), R], [np.eye(3), np.zeros((3, 3))]])
                self.T_dot[b : b + 3, b + 3 : b + 6] = R @ sd.screw.skew(v[b : b + 3])
            elif m.jnt_type[k] == mujoco.mjtJoint.mjJNT_BALL:
                d.qpos[a : a + 4] = [q[a + 3], *q[a : a + 3]]
            else:
                d.qpos[a] = q[a]
        d.qvel[:] = self.T @ v
        mujoco.mj_forward(m, d)

    def terms(self):
        """M, C q̇ + g, and the forces of springs and dampers."""
        M = np.empty((self.model.nv, self.model.nv))
        mujoco.mj_fullM(self.model, self.data, M)
        bias = self.T.T @ (M @ self.T_dot @ self.v + self.data.qfrc_bias)
        return self.T.T @ M @ self.T, bias, self.T.T @ self.data.qfrc_passive


def compare(model, tree, states=5):
    engine, rng = Engine(model, tree), np.random.default_rng(3)
    assert (tree.nq, tree.nv) == (model.nq, model.nv)
    for _ in range(states):
        q, v = tree.random_configuration(rng), rng.uniform(-1, 1, tree.nv)
        engine.set(q, v)
        M, bias, passive = engine.terms()
        size = np.abs(M).max()
        assert_allclose(tree.mass_matrix(q), M, rtol=1e-9, atol=1e-11 * size)
        assert_allclose(tree.coriolis_matrix(q, v) @ v + tree.gravity_vector(q), bias, rtol=1e-9, atol=1e-10 * size)
        assert_allclose(tree.joint_force(q, v), passive, rtol=1e-9, atol=1e-10)
        for body in range(model.nbody):
            name = model.body(body).name
            pose = tree.forward_kinematics(name or f"body{body}", q)
            assert_allclose(pose[:3, 3], engine.data.xpos[body], rtol=0, atol=1e-11)
            assert_allclose(pose[:3, :3].ravel(), engine.data.xmat[body], rtol=0, atol=1e-11)
        engine.set(q, 0 * v)
        assert_allclose(tree.gravity_vector(q), engine.terms()[1], rtol=1e-9, atol=1e-10 * size)


def test_every_kind_of_joint():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tree = KinematicTree.from_mjcf(WHOLE, strict=True)
    assert tree.links[:5] == ("world", "pillar", "arm_pan", "arm_push", "arm")
    assert tree.coordinates[:3] == ("pan", "push", "tilt")
    assert "finger" in tree.coordinates  # the unnamed joint of a body
    assert tree.joint("pan").limits == pytest.approx((-np.pi / 2, np.pi / 2))
    assert [name for name in tree.joints if tree.joint(name).passive] == ["fly"]
    assert tree.link("flange").inertia is None
    assert [tree.joint(name).armature for name in ("pan", "push", "tilt", "sway")] == [0.7, 1.3, 0, 0.2]
    compare(mujoco.MjModel.from_xml_string(WHOLE), tree)


def test_a_file_and_a_compiled_model(tmp_path):
    path = tmp_path / "whole.xml"
    path.write_text(WHOLE, encoding="utf-8")
    text = KinematicTree.from_mjcf(WHOLE).to_json()
    assert KinematicTree.from_mjcf(path).to_json() == text
    assert KinematicTree.from_mjcf(mujoco.MjModel.from_xml_path(str(path))).to_json() == text


def test_gravity_can_be_disabled():
    text = WHOLE.replace('-9.5"/>', '-9.5"><flag gravity="disable"/></option>')
    tree = KinematicTree.from_mjcf(text)
    assert not tree.gravity.any()
    compare(mujoco.MjModel.from_xml_string(text), tree, states=1)


def test_names_that_bodies_and_joints_share():
    text = f"""<mujoco><worldbody>
      <body name="a"><joint name="b"/>{GEOM}<body name="b" pos="0 0 1">{GEOM}
      <body><joint/><joint type="slide"/>{GEOM}</body></body></body></worldbody></mujoco>"""
    tree = KinematicTree.from_mjcf(text)
    assert tree.links == ("world", "a", "b", "body3_body3", "body3")
    assert tree.joints == ("b", "b_2", "body3", "body3_2")
    compare(mujoco.MjModel.from_xml_string(text), tree, states=1)


def test_what_is_not_read_is_listed():
    text = f"""<mujoco><option density="1"/><worldbody>
      <body name="a" gravcomp="1"><joint name="j"/>{GEOM}<site name="p"/>
      <body name="b" pos="0 0 1"><joint name="k" type="ball" range="0 1" limited="true" stiffness="1" armature="0.1"/>
      {GEOM}</body></body>
      </worldbody>
      <equality><joint name="glue" joint1="j"/></equality>
      <tendon><fixed name="rope"><joint joint="j" coef="1"/></fixed></tendon>
      <actuator><motor name="drive" joint="j"/><motor joint="j"/></actuator></mujoco>"""
    with pytest.warns(ScrewdynWarning) as caught:
        KinematicTree.from_mjcf(text)
    assert [w.filename for w in caught] == [__file__]
    for words in (
        *("armature of joint 'k'", "gravity or motion capture of body 'a'", "equality constraint 'glue'"),
        *("tendon 'rope'", "actuators 'drive', 'actuator1'", "medium", "stiffness of joint 'k'", "limit of joint 'k'"),
    ):
        assert words in str(caught[0].message)
    with pytest.raises(ModelError) as refused:
        KinematicTree.from_mjcf(text, strict=True)
    assert len(refused.value.problems) == 8


def test_joints_that_follow_others():
    kinds = ("hinge", "slide", "hinge", "hinge", "hinge")
    joints = [f'<joint name="j{k}" type="{kind}" axis="1 {k} 2" ref="{0.1 * k}"/>' for k, kind in enumerate(kinds)]
    bodies = "".join(f'<body name="b{k}" pos="0 {k} 0">{joint}{GEOM}</body>' for k, joint in enumerate(joints))
    ties = [("j1", "j0", "0.3 -2"), ("j2", "j1", "0.1 0.5")]
    ties += [("j0", "j2", "0 1"), ("j1", "j3", "0 1"), ("j3", "j4", "0 1 0.2")]  # a circle, twice, and bent
    tied = "".join(
        f'<joint name="e{k}" joint1="{a}" joint2="{b}" polycoef="{numbers}"/>' for k, (a, b, numbers) in enumerate(ties)
    )
    text = f"""<mujoco><compiler angle="radian"/><worldbody>{bodies}</worldbody><equality>{tied}</equality></mujoco>"""
    model = mujoco.MjModel.from_xml_string(text)
    with pytest.warns(ScrewdynWarning, match="the equality constraints 'e2', 'e3', 'e4'$"):
        tree = KinematicTree.from_mjcf(model)
    assert tree.coordinates == ("j0", "j3", "j4")
    # The residuals of MuJoCo's constraints are zero where our followers are.
    data, q = mujoco.MjData(model), np.array([0.4, 0.5, 0.6])
    one = -2 * q[0] + 0.3 + 0.1
    data.qpos[:] = [q[0], one, 0.5 * (one - 0.1) + 0.1 + 0.2, *q[1:]]
    mujoco.mj_forward(model, data)
    assert_allclose(data.efc_pos[:2], 0, atol=1e-15)
    for body in ("b1", "b2"):
        assert_allclose(tree.forward_kinematics(body, q)[:3, :3].ravel(), data.body(body).xmat, rtol=0, atol=1e-14)
        assert_allclose(tree.forward_kinematics(body, q)[:3, 3], data.body(body).xpos, rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    "text", ["<mujoco", "<model/>", "<mujoco><worldbody><body><joint/></body></worldbody></mujoco>"]
)
def test_what_mujoco_cannot_compile(text):
    with pytest.raises(ModelError, match="MuJoCo cannot compile the MJCF text"):
        KinematicTree.from_mjcf(text)


def test_a_file_that_is_not_there():
    with pytest.raises(ModelError, match=r"cannot read the file 'nowhere\.xml'"):
        KinematicTree.from_mjcf("nowhere.xml")


def test_shapes_are_where_mujoco_has_the_geoms(tmp_path):
    corners = np.array([(0, 0, 0), (0.4, 0, 0), (0, 0.2, 0), (0.1, 0.1, 0.3)])
    faces = "f 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n"
    (tmp_path / "a.obj").write_text("".join(f"v {x} {y} {z}\n" for x, y, z in corners) + faces)
    text = f"""<mujoco><compiler angle="degree" meshdir="{tmp_path}"/>
      <asset><mesh name="a" file="a.obj" scale="1 2 -1"/><material name="red" rgba="1 0 0 0.5"/>
        <mesh name="inline" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>
      <worldbody><geom type="plane" size="1 1 0.1"/><geom size="0.2" pos="1 2 3"/>
      <body name="arm" pos="0 0 1"><joint axis="1 2 3"/>
        <geom type="mesh" mesh="a" pos="0.1 0.2 0.3" euler="10 20 30" material="red" contype="0" conaffinity="0"/>
        <geom type="mesh" mesh="inline" contype="0" conaffinity="0"/>
        <geom type="ellipsoid" size="0.1 0.2 0.3"/>
        <geom type="box" size="0.1 0.2 0.3" euler="30 0 20" rgba="0 0 1 1" material="red"/>
        <geom type="capsule" fromto="0 0 0 0.1 0.2 0.3" size="0.05" group="3"/>
        <geom type="cylinder" size="0.1 0.4" pos="0 0.2 0" material="red"/>
      </body></worldbody></mujoco>"""
    tree, model = KinematicTree.from_mjcf(text), mujoco.MjModel.from_xml_string(text)
    (ball,) = tree.shapes("world")
    assert ball == sd.Shape.sphere(0.2, pose=(1, 2, 3))
    mesh, box, capsule, cylinder = tree.shapes("arm")
    assert (mesh.kind, mesh.size, mesh.path) == ("mesh", (1, 2, -1), str(tmp_path / "a.obj"))
    assert (box.kind, box.size) == ("box", pytest.approx((0.2, 0.4, 0.6)))
    assert (capsule.kind, capsule.size) == ("capsule", pytest.approx((0.05, np.sqrt(0.14))))
    assert (cylinder.kind, cylinder.size) == ("cylinder", pytest.approx((0.1, 0.8)))
    assert [shape.use for shape in tree.shapes("arm")] == ["visual", "visual", "collision", "visual"]
    assert [shape.color for shape in tree.shapes("arm")] == [(1, 0, 0, 0.5), (0, 0, 1, 1), None, (1, 0, 0, 0.5)]

    data = mujoco.MjData(model)
    data.qpos[:] = 0.7
    mujoco.mj_kinematics(model, data)
    T = tree.forward_kinematics("arm", [0.7])
    for shape, geom in ((box, 5), (capsule, 6), (cylinder, 7)):
        placed = T @ shape.pose
        assert_allclose(placed[:3, 3], data.geom_xpos[geom], atol=1e-7)
        assert_allclose(placed[:3, :3].ravel(), data.geom_xmat[geom], atol=1e-7)
    # MuJoCo has moved the corners of the mesh.
    first = model.mesh_vertadr[0]
    theirs = model.mesh_vert[first : first + 4] @ data.geom_xmat[2].reshape(3, 3).T + data.geom_xpos[2]
    placed = T @ mesh.pose
    ours = (corners * mesh.size) @ placed[:3, :3].T + placed[:3, 3]
    assert_allclose(sorted(map(tuple, theirs)), sorted(map(tuple, ours)), atol=1e-6)


def test_contacts_are_read_if_asked_for():
    """A world whose geoms touch by pairs that have closed forms, or not; gaps are MuJoCo's distances."""
    text = """<mujoco><worldbody>
      <geom name="floor" type="plane" size="5 5 1" pos="0 0 0.1" euler="0 10 0" friction="0.3"/>
      <body name="crate" pos="0 0 1"><freejoint/><geom name="box" type="box" size="0.2 0.15 0.1" friction="0.8"/></body>
      <body name="ball" pos="1 0 1"><freejoint/><geom name="round" type="sphere" size="0.1"/>
        <body name="tail" pos="0.2 0 0"><joint axis="0 1 0"/>
          <geom name="rod" type="capsule" size="0.02 0.1"/></body></body>
      <body name="lid" pos="0 1 1"><freejoint/><geom name="lid" type="box" size="0.2 0.2 0.1"/></body>
      <body name="ghost" pos="2 0 1"><freejoint/><geom type="sphere" size="0.1" contype="0" conaffinity="0"/></body>
    </worldbody></mujoco>"""
    assert sd.KinematicTree.from_mjcf(text).contacts == ()
    with pytest.warns(sd.ScrewdynWarning, match="the contact of geoms 'box' and 'lid'") as told:
        tree = sd.KinematicTree.from_mjcf(text, contacts=True)
    assert len(told) == 1
    crossed = ("box/round", "box/rod", "round/lid", "rod/lid")
    assert tree.contacts == ("box/floor", "round/floor", "rod/floor", "lid/floor", *crossed)
    assert [tree.contact(name).friction for name in tree.contacts] == [0.8, *[1.0] * 7]
    assert (tree.contact("rod/floor").link, tree.contact("rod/floor").to) == ("tail", "world")
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    q = np.array([0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1, 1, 0, 1, 0, 0, 0, 0, 1, 0, 1, 1, 0, 0, 0, 1, 2, 0, 1.0])
    gaps = iter(tree.contact_gaps(q))
    for name in tree.contacts:
        pair = (mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_GEOM, x) for x in name.split("/"))
        ours = min(next(gaps) for _ in tree.contact(name).spots)
        np.testing.assert_allclose(ours, mujoco.mj_geomDistance(model, data, *pair, 10.0, None), atol=1e-6)
    again = sd.KinematicTree.from_json(tree.to_json())
    np.testing.assert_array_equal(again.contact_gaps(q), tree.contact_gaps(q))
