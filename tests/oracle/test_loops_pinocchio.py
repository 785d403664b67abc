"""Accelerations and wrenches of two arms that hold one bar, against Pinocchio's constrained dynamics."""

import numpy as np
import pinocchio as pin
import pytest
from engine import Engine, model_of
from numpy.testing import assert_allclose

import screwdyn as sd
from screwdyn import screw

pytestmark = pytest.mark.oracle


def two_arms(joint):
    """Two UR5, of which the left carries a bar; a joint connects the bar to the right one. At a state of the loop."""
    rng = np.random.default_rng(7)
    tree = sd.KinematicTree()
    for side, y in (("left/", 0.4), ("right/", -0.4)):
        tree.attach(sd.robots.ur5(), to="base", at=(0, y, 0), name="foot", prefix=side)
    tree.attach(sd.Inertia.box(3.0, (0.6, 0.05, 0.05), com=(0.3, 0, 0)), to="left/tool0", name="bar")
    q = rng.uniform(-1, 1, 12)
    at = screw.inverse(tree.forward_kinematics("right/tool0", q)) @ tree.forward_kinematics("bar", q)
    tree.close("bar", to="right/tool0", joint=joint, at=at, name="grip")
    q, qd = tree.project(q, rng.uniform(-1, 1, 12))
    return tree, q, qd, rng.uniform(-20, 20, 12)


def constrained(tree, q, qd, tau, kind, at):
    """Accelerations and the wrench on the bar by the proximal algorithm, iterated until its regularisation is gone."""
    model = model_of(tree)
    engine, data = Engine(model, tree), model.createData()
    bar, hand = (model.frames[model.getFrameId(name)] for name in ("bar", "right/tool0"))
    T = tree.forward_kinematics("right/tool0", q)
    T = screw.inverse(T) @ tree.forward_kinematics("bar", q) @ at
    places = bar.placement * pin.SE3(at), hand.placement * pin.SE3(T)
    contact = pin.RigidConstraintModel(
        kind, model, bar.parentJoint, places[0], hand.parentJoint, places[1], pin.ReferenceFrame.LOCAL
    )
    models, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    models.append(contact)
    datas.append(contact.createData())
    pin.initConstraintDynamics(model, data, models, datas)
    state = engine.position(q), engine.velocity(qd), engine.velocity(tau)
    settings = pin.ProximalSettings(1e-14, 1e-14, 1e-9, 200)
    qdd = pin.constraintDynamics(model, data, *state, models, datas, settings)[engine.order]
    force = datas[0].contact_force
    return qdd, np.concatenate([force.angular, force.linear])


@pytest.mark.parametrize("joint", ["fixed", "spherical"])
def test_two_arms_with_one_bar(joint):
    at = screw.pose(np.eye(3), (0.6, 0, 0))
    closing = sd.fixed() if joint == "fixed" else sd.spherical((0.6, 0, 0))
    kind = pin.ContactType.CONTACT_6D if joint == "fixed" else pin.ContactType.CONTACT_3D
    tree, q, qd, tau = two_arms(closing)
    assert tree.freedoms(q) == (6 if joint == "fixed" else 9)
    qdd, wrench = constrained(tree, q, qd, tau, kind, at)
    assert_allclose(tree.forward_dynamics(q, qd, tau), qdd, rtol=0, atol=1e-8 * np.abs(qdd).max())
    found = tree.constraint_wrenches(q, qd, tau)
    assert not found.undetermined
    # Pinocchio's wrench is about the contact, in whose axes the bar's are.
    there = screw.Ad(at).T @ found.wrenches["grip"]
    assert_allclose(there, wrench, rtol=0, atol=1e-8 * np.abs(wrench).max())
