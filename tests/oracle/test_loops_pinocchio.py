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


def contact(tree, q, kind, at):
    """The model in Pinocchio, and the contact of the bar with the right hand where they are in q."""
    model = model_of(tree)
    bar, hand = (model.frames[model.getFrameId(name)] for name in ("bar", "right/tool0"))
    T = screw.inverse(tree.forward_kinematics("right/tool0", q)) @ tree.forward_kinematics("bar", q) @ at
    places = bar.placement * pin.SE3(at), hand.placement * pin.SE3(T)
    ends = bar.parentJoint, places[0], hand.parentJoint, places[1], pin.ReferenceFrame.LOCAL
    return model, Engine(model, tree), pin.RigidConstraintModel(kind, model, *ends)


def constrained(tree, q, qd, tau, kind, at):
    """Accelerations and the wrench on the bar by the proximal algorithm, iterated until its regularisation is gone."""
    model, engine, one = contact(tree, q, kind, at)
    data, models, datas = model.createData(), pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    models.append(one)
    datas.append(one.createData())
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


def test_operational_inertia_of_a_bar_in_two_hands():
    """Λ times the accelerations of the bar by unit wrenches, from Pinocchio's accelerations of the joints."""
    tree, q, qd, tau = two_arms(sd.fixed())
    at, kind, J = screw.pose(np.eye(3), (0.6, 0, 0)), pin.ContactType.CONTACT_6D, tree.jacobian("bar", q, "body")
    rest, _ = constrained(tree, q, qd, tau, kind, at)
    pushed = [constrained(tree, q, qd, tau + force, kind, at)[0] for force in J]
    accelerations = J @ (np.array(pushed) - rest).T
    assert_allclose(tree.operational_inertia("bar", q, "body") @ accelerations, np.eye(6), rtol=0, atol=1e-8)


@pytest.mark.parametrize("joint", ["fixed", "spherical"])
def test_closing_in_motion(joint):
    """The rates after the impact, and the impulse on the bar."""
    at = screw.pose(np.eye(3), (0.6, 0, 0))
    closing = sd.fixed() if joint == "fixed" else sd.spherical((0.6, 0, 0))
    kind = pin.ContactType.CONTACT_6D if joint == "fixed" else pin.ContactType.CONTACT_3D
    tree, q, _, _ = two_arms(closing)
    qd = np.random.default_rng(9).uniform(-1, 1, 12)
    model, engine, one = contact(tree, q, kind, at)
    data, of_contact = model.createData(), one.createData()
    pin.computeJointJacobians(model, data, engine.position(q))
    one.calc(model, data, of_contact)
    J = pin.getConstraintJacobian(model, data, one, of_contact)
    after = pin.impulseDynamics(model, data, engine.position(q), engine.velocity(qd), J)[engine.order]
    home = tree.loop("grip").home
    tree.open("grip")
    event = tree.close("bar", to="right/tool0", joint=closing, at=home, state=sd.State(tree, q, qd))
    assert_allclose(event.state.qd, after, rtol=0, atol=1e-9)
    impulse = np.array(data.impulse_c)
    there = screw.Ad(at).T @ event.impulse
    expected = (
        np.concatenate([impulse[3:], impulse[:3]]) if len(impulse) == 6 else np.concatenate([np.zeros(3), impulse])
    )
    assert_allclose(there, expected, rtol=0, atol=1e-8 * np.abs(impulse).max())
    assert event.energy_lost > 0.1


def test_a_bar_that_the_left_hand_lets_go():
    """Held by the right hand alone, as Pinocchio computes it for the tree without a loop."""
    tree, q, qd, tau = two_arms(sd.spherical((0.6, 0, 0)))
    after = tree.release(sd.State(tree, q, qd), "bar").state
    tau = np.append(tau, np.zeros(3))
    model = model_of(tree)
    engine, data = Engine(model, tree), model.createData()
    expected = pin.aba(model, data, engine.position(after.q), engine.velocity(after.qd), engine.velocity(tau))
    found = tree.forward_dynamics(after.q, after.qd, tau)
    assert_allclose(found, expected[engine.order], rtol=0, atol=1e-9 * np.abs(found).max())
