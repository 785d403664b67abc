"""MJCF whose flags change the equations of motion, read by this library and by MuJoCo."""

import warnings

import mujoco
import numpy as np
import pytest
from numpy.testing import assert_allclose

from screwdyn import KinematicTree, ModelError

pytestmark = pytest.mark.oracle

GEOM = '<geom size="0.1" pos="0.3 0.02 -0.1" contype="0" conaffinity="0"/>'
# Positions and velocities of hinges and slides are MuJoCo's own. q is beyond the limit of "stop".
MODEL = f"""<mujoco><option OPTION gravity="0.3 -0.5 -9.5"/><worldbody>
  <body name="a"><joint name="swing" axis="0 1 0" stiffness="3" springref="20" damping="2"/>{GEOM}
    <body name="b" pos="1 0 0" BODY><joint name="slide" type="slide" axis="1 0 0" stiffness="5" damping="0.7"/>{GEOM}
      <body name="c" pos="0 1 0"><joint name="rub" axis="1 0 0" frictionloss="0.4"/>{GEOM}</body></body></body>
  <body name="d" pos="1 0 0"><joint name="stop" axis="0 1 0" range="-10 10" limited="true"/>{GEOM}</body>
</worldbody><equality><connect name="pin" body1="d" body2="b" anchor="0.1 0.2 0"/></equality>MORE</mujoco>"""
Q, V = np.array([0.3, 0.2, -0.7, 0.5]), np.array([0.4, -0.3, 0.6, -0.5])
FLAGS = [*mujoco.mjtDisableBit.__members__, *mujoco.mjtEnableBit.__members__]
FLAGS = [name for name in FLAGS if name[:7] in ("mjDSBL_", "mjENBL_")]


def compiled(*flags, option="", body="", more=""):
    model = mujoco.MjModel.from_xml_string(MODEL.replace("OPTION", option).replace("BODY", body).replace("MORE", more))
    for name in flags:
        if name.startswith("mjDSBL_"):
            model.opt.disableflags |= int(getattr(mujoco.mjtDisableBit, name))
        else:
            model.opt.enableflags |= int(getattr(mujoco.mjtEnableBit, name))
    if "mjENBL_IPC" in flags:
        model.opt.integrator = mujoco.mjtIntegrator.mjINT_DISCRETE  # which it requires
    return model


def same(model, tree):
    """Compare the terms of the equations, and which constraints there are."""
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = Q, V
    mujoco.mj_forward(model, data)
    M = np.empty((4, 4))
    mujoco.mj_fullM(model, data, M)
    assert_allclose(tree.mass_matrix(Q), M, rtol=1e-12, atol=1e-13)
    bias = tree.coriolis_matrix(Q, V) @ V + tree.gravity_vector(Q)
    assert_allclose(bias, data.qfrc_bias, rtol=1e-12, atol=1e-13)
    rub = tree.coordinates.index("rub")
    assert_allclose(*(np.delete(f, rub) for f in (tree.joint_force(Q, V), data.qfrc_passive)), rtol=1e-12, atol=1e-13)
    kinds = mujoco.mjtConstraint
    rows = [kinds.mjCNSTR_EQUALITY, kinds.mjCNSTR_FRICTION_DOF, kinds.mjCNSTR_LIMIT_JOINT]
    acting = [np.any(data.efc_type == int(kind)) for kind in rows]
    assert [bool(tree.loops), tree.joint("rub").friction > 0, tree.joint("stop").limits is not None] == acting


@pytest.mark.parametrize("flags", [(), *((name,) for name in FLAGS), ("mjDSBL_SPRING", "mjDSBL_DAMPER")], ids="+".join)
def test_every_flag_is_honoured_or_named(flags):
    model = compiled(*flags)
    if flags == ("mjENBL_SLEEP",):
        with pytest.raises(ModelError, match="the flag sleep"):
            KinematicTree.from_mjcf(model, strict=True)
        return
    same(model, KinematicTree.from_mjcf(model, strict=True))


def test_flags_in_a_text():
    text = MODEL.replace('-9.5"/>', '-9.5"><flag spring="disable" damper="disable" limit="disable"/></option>')
    tree = KinematicTree.from_mjcf(text.replace("OPTION", "").replace("BODY", "").replace("MORE", ""), strict=True)
    assert not tree.joint_force(Q, V * [1, 1, 0, 1]).any()
    assert tree.joint("stop").limits is None


MOTOR = '<actuator><motor name="drive" joint="swing" {}/></actuator>'
# What is named as not read unless flags disable it.
NAMED = {
    "medium": ({"option": 'density="1"'}, ("mjDSBL_SPRING", "mjDSBL_DAMPER")),
    "compensation": ({"body": 'gravcomp="1"'}, ("mjDSBL_GRAVITY",)),
    "actuator 'drive'": ({"more": MOTOR.format("")}, ("mjDSBL_ACTUATION",)),
}


@pytest.mark.parametrize("words", NAMED)
def test_what_is_disabled_is_not_named(words):
    parts, flags = NAMED[words]
    with pytest.raises(ModelError, match=words):
        KinematicTree.from_mjcf(compiled(**parts), strict=True)
    model = compiled(*flags, **parts)
    same(model, KinematicTree.from_mjcf(model, strict=True))


@pytest.mark.parametrize("attribute", ["armature", "damping"])
def test_motors_without_actuation_keep_inertia_and_damping(attribute):
    model = compiled("mjDSBL_ACTUATION", more=MOTOR.format(f'{attribute}="0.5"'))
    with pytest.raises(ModelError, match="actuator 'drive'"):
        KinematicTree.from_mjcf(model, strict=True)


def test_springs_that_yield_are_named_unless_there_is_no_spring():
    text = MODEL.replace('springref="20"', 'springref="20" springyield="0.1"')
    model = mujoco.MjModel.from_xml_string(text.replace("OPTION", "").replace("BODY", "").replace("MORE", ""))
    with pytest.raises(ModelError, match="nonlinear spring or damper of joint 'swing'"):
        KinematicTree.from_mjcf(model, strict=True)
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_SPRING)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KinematicTree.from_mjcf(model)
