"""Mimic joints and a rotor on the base, against Pinocchio's mimic joints and its armature."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from cases import close, norm

import screwdyn as sd
from screwdyn.testing import random_inertia, random_pose

pytestmark = pytest.mark.oracle


def symmetric(M):
    """Pinocchio writes the upper triangle of M only."""
    return np.triu(M) + np.triu(M, 1).T


@pytest.mark.parametrize("seed", range(6))
def test_trees_with_mimic_joints(seed):
    rng = np.random.default_rng(seed)
    tree = sd.KinematicTree(gravity=(0, 0, -9.81))  # that of Pinocchio's models
    # In Pinocchio a joint with limits has one position, and a joint may follow one of its own kind.
    leaders = {sd.revolute: "turn", sd.prismatic: "slide"}
    for make, name in leaders.items():
        joint = make(rng.normal(size=3), limits=(-9, 9), name=name)
        tree.attach(random_inertia(rng), tree.links[-1], joint, random_pose(rng), f"of {name}")
    for k in range(4):
        make = (sd.revolute, sd.prismatic)[k % 2]
        mimic = sd.Mimic(leaders[make], *rng.uniform(-2, 2, 2))
        joint = make(rng.normal(size=3), limits=(-9, 9), mimic=mimic, name=f"follow{k}")
        # Pinocchio has an order of joints in which those that are followed come first on each path.
        to = rng.choice(tree.links[2:])
        tree.attach(random_inertia(rng), to, joint, random_pose(rng), f"body{k}")
    model = pin.buildModelFromXML(tree.to_urdf(), True)
    data = model.createData()
    assert [name for name in model.names if name in tree.coordinates] == list(tree.coordinates)
    assert (model.nq, model.nv) == (2, 2)
    q, qd, qdd = rng.uniform(-1, 1, (3, 2))
    M = symmetric(pin.crba(model, data, q))
    close(tree.mass_matrix(q), M, norm(M), 1e-12)
    tau = pin.rnea(model, data, q, qd, qdd)
    close(tree.inverse_dynamics(q, qd, qdd), tau, norm(tau), 1e-11)
    for name in set(sd.formulations.__all__) - {"generalized_dalembert"}:  # of revolute joints
        close(getattr(sd.formulations, name)(tree).inverse_dynamics(q, qd, qdd), tau, norm(tau), 1e-11)
    pin.forwardKinematics(model, data, q)
    for k in range(4):
        found = data.oMi[model.getJointId(f"follow{k}")].homogeneous
        close(tree.forward_kinematics(f"body{k}", q), found, 1.0, 1e-12)


def test_a_rotor_on_the_base_is_pinocchio_s_armature():
    plain = sd.robots.ur5()
    tree = sd.KinematicTree(plain.link(plain.base), plain.gravity)
    rotor = sd.Rotor(1e-4, ratio=100)  # about z of the base, as the first joint
    for at in list(plain.topology.attachments.values())[1:]:
        joint, rotor = (replace(at.joint, rotor=rotor), None) if at.joint.nv and rotor else (at.joint, rotor)
        tree.attach(at.link, at.parent, joint, at.home)
    model = pin.buildModelFromXML(plain.to_urdf())
    model.armature[0] = 1e-4 * 100**2
    data = model.createData()
    rng = np.random.default_rng(0)
    armed = plain.copy()
    armed.replace_joint("shoulder_link", replace(armed.joint("shoulder_pan_joint"), armature=1e-4 * 100**2))
    q, qd, qdd = rng.uniform(-2, 2, (3, 6))
    expected = pin.rnea(model, data, q, qd, qdd)
    for name in sd.formulations.__all__:
        for robot in (tree, armed):
            tau = getattr(sd.formulations, name)(robot).inverse_dynamics(q, qd, qdd)
            close(tau, expected, norm(expected), 1e-11)
    for _ in range(5):
        q, qd, tau = rng.uniform(-2, 2, (3, 6))
        close(tree.mass_matrix(q), symmetric(pin.crba(model, data, q)), norm(tree.mass_matrix(q)), 1e-13)
        found = pin.aba(model, data, q, qd, tau)
        close(tree.forward_dynamics(q, qd, tau), found, norm(found), 1e-10)
