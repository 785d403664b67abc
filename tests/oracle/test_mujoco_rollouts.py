"""Rollouts against MuJoCo: arms step by step, without MuJoCo's implicit damping, and the way of a crate."""

import mujoco
import numpy as np
import pytest
from mujoco_engine import Mujoco
from numpy.testing import assert_allclose

from screwdyn import Feedback, Inertia, KinematicTree, Link, Plane, Shape, free, revolute, robots
from screwdyn.testing import random_inertia, random_tree

pytestmark = pytest.mark.oracle

INTEGRATORS = {
    "semi_implicit_euler": mujoco.mjtIntegrator.mjINT_EULER,
    "rk4": mujoco.mjtIntegrator.mjINT_RK4,
}
STEPS, DT = 200, 1e-3


def stepped(tree, method, q, qd, torque=None):
    """All states by MuJoCo; ``torque(q, qd)`` is constant during a step."""
    engine = Mujoco(tree)
    model, data = engine.model, engine.data
    model.opt.integrator, model.opt.timestep = INTEGRATORS[method], DT
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_EULERDAMP
    model.dof_damping[engine.order] = tree.model.joint_forces.damping
    at = np.concatenate([[start] for _, _, start, _ in engine.positions])
    data.qpos[at], data.qvel[engine.order] = q, qd
    states = [(q, qd)]
    for _ in range(STEPS):
        if torque is not None:
            data.qfrc_applied[engine.order] = torque(*states[-1])
        mujoco.mj_step(model, data)
        states.append((data.qpos[at].copy(), data.qvel[engine.order].copy()))
    return [np.array(x) for x in zip(*states, strict=True)]


def agree(found, expected, k=0):
    assert_allclose(found.q[:, k], expected[0], rtol=0, atol=1e-9)
    assert_allclose(found.qd[:, k], expected[1], rtol=0, atol=1e-9 * np.abs(expected[1]).max())


@pytest.mark.parametrize("method", INTEGRATORS)
def test_an_arm_with_payloads(method):
    rng = np.random.default_rng(0)
    arm, bodies = robots.ur5(), [Inertia.box(m, (0.1, 0.2, 0.3), (0, 0, 0.1)) for m in (0.5, 2.0, 5.0)]
    q, qd = rng.normal(size=(2, 3, 6))
    with arm.attached(Link("crate", bodies[0]), to="tool0"):
        found = arm.compile().rollout(q, qd, STEPS, DT, method=method, payload={"crate": bodies}, every=1)
    for k, body in enumerate(bodies):
        with arm.attached(Link("crate", body), to="tool0"):
            agree(found, stepped(arm, method, q[k], qd[k]), k)


def test_a_controlled_arm():
    rng = np.random.default_rng(1)
    arm = robots.ur5()
    q, qd = 0.5 * rng.normal(size=(2, 1, 6))
    kp, kd = np.array([400.0, 400, 200, 50, 50, 20]), np.array([40.0, 40, 20, 5, 5, 0.1])
    found = arm.compile().rollout(q, qd, STEPS, DT, Feedback(kp, kd), every=1)
    agree(found, stepped(arm, "semi_implicit_euler", q[0], qd[0], torque=lambda q, qd: -kp * q - kd * qd))
    held = arm.compile().rollout(q, qd, STEPS, DT, lambda t, q, qd: -kp * q - kd * qd, method="rk4", every=1)
    agree(held, stepped(arm, "rk4", q[0], qd[0], torque=lambda q, qd: -kp * q - kd * qd))


@pytest.mark.parametrize("method", INTEGRATORS)
def test_damping(method):
    rng = np.random.default_rng(3)
    tree = KinematicTree()
    tree.attach(Link("upper", random_inertia(rng)), to="base", joint=revolute("y", damping=0.3))
    tree.attach(Link("lower", random_inertia(rng)), to="upper", joint=revolute("x", damping=0.1), at=(0, 0, 0.3))
    q, qd = 3 * rng.normal(size=(2, 1, 2))
    agree(tree.compile().rollout(q, qd, STEPS, DT, method=method, every=1), stepped(tree, method, q[0], qd[0]))


@pytest.mark.parametrize("method", INTEGRATORS)
@pytest.mark.parametrize("seed", range(3))
def test_random_trees(method, seed):
    rng = np.random.default_rng([2, seed])
    tree = random_tree(rng, 5, ("revolute", "prismatic"), frames=0)
    q, qd = 0.5 * rng.normal(size=(2, 1, tree.nv))
    agree(tree.compile().rollout(q, qd, STEPS, DT, method=method, every=1), stepped(tree, method, q[0], qd[0]))


CRATE = """<mujoco><option timestep="1e-3" cone="elliptic" impratio="100"/>
<default><geom solref="0.02 1" friction=".3"/></default><worldbody><geom type="plane" size="9 9 .1"/>
<body pos="0 0 .1"><freejoint/><geom type="box" size=".2 .15 .1" mass="3"/></body></worldbody></mujoco>"""


def test_a_crate_slides_and_turns_as_far():
    """To 1 cm of 41, and to 5 % of its turn, by which MuJoCo's differ with its step and stiffness."""
    tree, size = KinematicTree(), (0.4, 0.3, 0.2)
    tree.attach(Inertia.box(3.0, size), to="base", joint=free(), name="crate", shape=Shape.box(size))
    tree.touch("crate", to="base", on=Plane(), friction=0.3)
    q, qd = tree.neutral(), np.array([0, 0, 4.0, 1.5, 0, 0])
    q[6] = 0.1
    found = tree.compile().rollout(q, qd, 1000, 1e-3)
    model = mujoco.MjModel.from_xml_string(CRATE)
    data = mujoco.MjData(model)
    data.qvel[:] = 1.5, 0, 0, 0, 0, 4.0
    mujoco.mj_step(model, data, 1000)
    assert abs(found.qd).max() < 1e-9
    w, z = data.qpos[[3, 6]]
    assert_allclose(found.q[4:6], data.qpos[:2], atol=1e-2)
    assert 2 * np.arctan2(*found.q[2:4]) == pytest.approx(2 * np.arctan2(z, w), rel=0.05)
