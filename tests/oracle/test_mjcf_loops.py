"""Equality constraints of MJCF as loops: residuals and Jacobians, entry by entry, as MuJoCo has them."""

import mujoco
import numpy as np
import pytest
from numpy.testing import assert_allclose

from screwdyn import KinematicTree, ScrewdynWarning, screw

pytestmark = pytest.mark.oracle

GEOM = '<geom type="capsule" size="0.05 0.2" pos="0.1 0.02 -0.1" contype="0" conaffinity="0"/>'
BODIES = f"""<worldbody>
  <site name="wall" pos="0.4 0.1 0.2" euler="10 20 30"/>
  <body name="a" pos="0.3 0 0.1" euler="0 0 40"><joint name="a1" axis="0 1 0" ref="20"/>{GEOM}
    <site name="palm" pos="0.1 0.2 0.3" euler="40 0 10"/>
    <body name="a2" pos="0 0 1"><joint name="a2" axis="1 0 0"/><joint name="a3" type="slide"/>{GEOM}</body></body>
  <body name="b" pos="-0.3 0 0.1" euler="50 0 20"><joint name="bx" type="slide" axis="1 0 0"/>
    <joint name="by" type="slide" axis="0 1 0"/><joint name="bz" type="slide" axis="0 0 1"/>
    <joint name="b1" type="ball" pos="0.1 0 0"/>{GEOM}
    <body name="b2" pos="0 0.2 1"><joint name="b2" axis="1 0 0"/><joint name="b3" axis="0 0 1"/>{GEOM}
    <site name="tip" pos="0.1 0 0.3"/></body></body>
</worldbody>"""
KINDS = {
    "connect": '<connect name="l" body1="a2" body2="b2" anchor="0.1 0.2 0.3"/>',
    "connect to the world": '<connect name="l" body1="b2" anchor="0.1 0.2 0.3"/>',
    "connect sites": '<connect name="l" site1="palm" site2="tip"/>',
    "connect a site of the world": '<connect name="l" site1="tip" site2="wall"/>',
    "weld": '<weld name="l" body1="a2" body2="b2"/>',
    "weld to the world": '<weld name="l" body1="b2" anchor="0.3 0.1 0"/>',
    "weld at an anchor": '<weld name="l" body1="a2" body2="b2" relpose="0.1 0.2 0.3 0.7 0.1 0.3 0.2" '
    'anchor="0.1 0.1 0.2" torquescale="0.3"/>',
    "weld sites": '<weld name="l" site1="palm" site2="tip" torquescale="2"/>',
    "weld without torques": '<weld name="l" body1="a2" body2="b2" anchor="0.1 0.1 0.2" torquescale="0"/>',
}


def model_text(equality, option=""):
    return f'<mujoco><compiler angle="degree"/>{option}{BODIES}<equality>{equality}</equality></mujoco>'


def engine_at(model, q):
    """Results at positions of the tree, whose only quaternion is that of joint b1 with its scalar last."""
    data, at = mujoco.MjData(model), model.joint("b1").qposadr[0]
    data.qpos[:] = q
    data.qpos[at : at + 4] = np.roll(q[at : at + 4], 1)
    mujoco.mj_forward(model, data)
    return data, data.efc_J.reshape(-1, model.nv)


def ends(model, data):
    """Origins and axes in the world of the frames that coincide."""
    one, other, x = model.eq_obj1id[0], model.eq_obj2id[0], model.eq_data[0]
    if model.eq_objtype[0] == mujoco.mjtObj.mjOBJ_SITE:
        return data.site_xpos[one], data.site_xpos[other], data.site_xmat[other].reshape(3, 3)
    R, S = (data.xmat[k].reshape(3, 3) for k in (one, other))
    here, there = (x[:3], x[3:6]) if model.eq_type[0] == mujoco.mjtEq.mjEQ_CONNECT else (x[3:6], x[:3])
    return data.xpos[one] + R @ here, data.xpos[other] + S @ there, S


@pytest.mark.parametrize("kind", KINDS)
def test_residual_and_jacobian(kind):
    model = mujoco.MjModel.from_xml_string(model_text(KINDS[kind]))
    model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    tree, rng = KinematicTree.from_mjcf(model, strict=True), np.random.default_rng(4)
    loop, scale = tree.loop("l"), model.eq_data[0, 10]
    spherical = "connect" in kind or "torques" in kind
    assert loop.joint.kind == ("spherical" if spherical else "fixed")
    # Where the loop is open: the distance of the anchors, and the angle between the frames.
    q = tree.random_configuration(rng)
    data, _ = engine_at(model, q)
    T, to = tree.forward_kinematics(loop.link, q), tree.forward_kinematics(loop.to, q) @ loop.home
    here, there, _ = ends(model, data)
    point = (screw.inverse(T) @ [*here, 1])[:3]
    assert_allclose(data.efc_pos[:3], here - there, rtol=0, atol=1e-12)
    assert_allclose(data.efc_pos[:3], (T @ [*point, 1] - to @ [*point, 1])[:3], rtol=0, atol=1e-12)
    if not spherical:
        turned = (np.trace(T[:3, :3].T @ to[:3, :3]) - 1) / 2
        assert_allclose(data.efc_pos[3:] @ data.efc_pos[3:], scale**2 * (1 - turned) / 2, rtol=0, atol=1e-12)
    # Where it is closed: velocities of the anchor, and half of the angular velocity in axes of body2, or of the site.
    q = tree.assemble(q)
    data, theirs = engine_at(model, q)
    assert np.abs(data.efc_pos).max() < 1e-12
    R, ours = tree.forward_kinematics(loop.link, q)[:3, :3], tree.constraint_jacobian(q)
    if spherical:
        assert_allclose(ours, R.T @ theirs[:3], rtol=0, atol=1e-12)
        return
    _, _, axes = ends(model, data)
    assert_allclose(ours[3:] - screw.skew(point) @ ours[:3], R.T @ theirs[:3], rtol=0, atol=1e-12)
    half = 0.5 * scale * axes.T @ R @ ours[:3]
    sign = np.sign((half * theirs[3:]).sum())  # two quaternions are one rotation
    assert_allclose(sign * half, theirs[3:], rtol=0, atol=1e-12)


def test_an_acceleration_with_a_hard_constraint():
    """MuJoCo's constraints give way; an impedance near 1 leaves a difference of about 1e-4."""
    text = model_text(KINDS["connect"].replace("/>", ' solimp="0.9999 0.9999 0.001" solref="-1 -1"/>'))
    model = mujoco.MjModel.from_xml_string(text)
    tree = KinematicTree.from_mjcf(model)
    q = np.array(model.qpos0)
    at = model.joint("b1").qposadr[0]
    q[at : at + 4] = np.roll(q[at : at + 4], -1)
    data, _ = engine_at(model, q)
    qdd = tree.forward_dynamics(q, np.zeros(tree.nv), np.zeros(tree.nv))
    free = data.qacc_smooth
    assert np.abs(qdd - free).max() > 0.5
    assert_allclose(qdd, data.qacc, rtol=0, atol=1e-3 * np.abs(free).max())


def test_constraints_that_are_no_joints_are_listed():
    others = '<joint name="gear" joint1="a1" joint2="a2" polycoef="0 1 1"/>'
    others += '<connect name="off" body1="a" body2="b" anchor="0 0 0" active="false"/>'
    others += '<weld body1="a" body2="b"/><connect name="a1" body1="a" body2="b" anchor="0 0 0"/>'
    with pytest.warns(ScrewdynWarning, match="equality constraint 'gear'") as caught:
        tree = KinematicTree.from_mjcf(model_text(others))
    assert "off" not in str(caught[0].message)
    assert tree.loops == ("equality2", "a1_2")


def test_constraints_can_be_disabled():
    for flag in ("constraint", "equality"):
        option = f'<option><flag {flag}="disable"/></option>'
        assert KinematicTree.from_mjcf(model_text(KINDS["weld"], option), strict=True).loops == ()
