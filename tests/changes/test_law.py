"""The law of all changes, and its passes."""

import pickle

import maximal
import numpy as np
import pytest
from cases import close, norm
from hypothesis import given
from hypothesis import strategies as st
from kinds import EVERY
from numpy.testing import assert_allclose

import screwdyn as sd
from screwdyn import screw
from screwdyn.changes import law
from screwdyn.physics.table import ARMATURE
from screwdyn.testing import random_inertia, random_pose, random_tree


def drawn(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 6, EVERY)
    tree.attach(random_inertia(rng), to="link6", joint=sd.revolute("x", armature=0.3), name="driven")
    return rng, tree, tree.integrate(tree.neutral(), rng.uniform(-2, 2, tree.nv))


@given(st.integers(0, 2**32 - 1))
def test_the_two_passes_are_m_and_its_inverse(seed):
    """A term of M that they do not have, such as a rotor's, would be missing in every impact."""
    rng, tree, q = drawn(seed)
    M, rates = tree.mass_matrix(q), rng.uniform(-2, 2, tree.nv)
    p = tree.joint_momentum(q, rates)
    close(p, M @ rates, norm(M) * norm(rates), 1e-14)
    close(tree.impulse_response(q, p), rates, norm(rates), 1e-16 * np.linalg.cond(M) + 1e-13)


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_joints_that_are_held_do_not_move(seed, coupled):
    rng, tree, q = drawn(seed)
    if coupled:
        follower = sd.prismatic("y", mimic=sd.Mimic("driven", 0.7), armature=0.2)
        tree.attach(random_inertia(rng), "link3", follower, random_pose(rng), "follower")
    M, p = tree.mass_matrix(q), rng.uniform(-2, 2, tree.nv)
    joints = [at.names for at in tree.model.placements.values() if at.freedoms and at.name != "follower"]
    names = joints[rng.integers(len(joints))]
    first = tree.model.index[names[0]]
    held = slice(first, first + len(names))
    others = np.delete(np.arange(tree.nv), held)
    rest = M[np.ix_(others, others)]
    expected, found = np.linalg.solve(rest, p[others]), tree._response_holding(held)(q, p)
    close(found[others], expected, norm(expected), 1e-15 * np.linalg.cond(rest) + 1e-13)
    assert not found[held].any()


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_what_slips_and_what_does_not(seed, coupled):
    """The sum over the links, those welded to others and those that follow others among them."""
    rng, tree, q = drawn(seed)
    if coupled:
        follower = sd.prismatic("y", mimic=sd.Mimic("driven", 0.7), armature=0.2)
        tree.attach(random_inertia(rng), "link3", follower, random_pose(rng), "follower")
        tree.attach(random_inertia(rng), "base", sd.revolute("z", rotor=sd.Rotor(1e-3, 20, carrier="link2"), name="m"))
        q = np.append(q, 0.3)
    weld = tree.attach(random_inertia(rng), rng.choice(tree.links), at=random_pose(rng), name="weld").name
    tree.attach(random_inertia(rng), weld, sd.spherical(), name="beyond")
    q, rates = np.append(q, sd.spherical().neutral), rng.uniform(-2, 2, tree.nv)
    root, s = rng.choice(["weld", *tree.links[1:6]]), rng.uniform(-2, 2, 6)
    at = tree.model.placements[root]
    parts = law._parts(tree.model, root)
    p, wrench, energies = tree._slipping(parts)[1](q, rates, np.array([[*at.pose.R, *at.pose.p, *s]]))
    model, base, armatures = tree.model, tree.forward_kinematics(root, q), np.zeros(tree.nv)
    np.add.at(armatures, model.columns, model.ratios**2 * model.table[:-1, ARMATURE])
    expected, on_root, of_all = armatures * rates, np.zeros(6), armatures @ rates**2
    own, inside = 0.0, tree.subtree(root)
    rows = (model.ratios * rates[model.columns]) ** 2 * model.table[:-1, ARMATURE]
    for name in tree.links[1:]:
        if tree.link(name).inertia is None:
            continue
        X = screw.Ad(screw.inverse(tree.forward_kinematics(name, q)) @ base)
        J, I = tree.jacobian(name, q, "body"), tree.link(name).inertia.matrix
        slip = X @ s if name in inside else np.zeros(6)
        F = I @ (J @ rates - slip)
        expected, of_all = expected + J.T @ F, of_all + F @ (J @ rates - slip)
        if name in inside:
            on_root, own = on_root + X.T @ F, own + F @ (J @ rates - slip)
    own += sum(rows[model.index[row]] for name in inside if name != root for row in model.placements[name].names)
    scale = norm(expected) + norm(on_root) + of_all + 1
    close(p, expected, scale, 1e-13)
    close(wrench, on_root, scale, 1e-13)
    close(energies[:2], [own / 2, of_all / 2], scale, 1e-13)


def test_impulses_on_a_joint_without_inertia_are_refused():
    tree = sd.KinematicTree()
    tree.attach(sd.Link("frame"), to="base", joint=sd.revolute("z", name="pan"))
    with pytest.raises(sd.SingularAttachmentError, match="nothing beyond joint 'pan' resists its motion"):
        tree.impulse_response(np.zeros(1), np.ones(1))
    with pytest.raises(sd.ShapeError, match="results would overflow"):
        sd.robots.two_link().joint_momentum(np.zeros(2), np.full(2, 1e308))


@given(st.integers(0, 2**32 - 1))
def test_kinetic_energy_of_a_tree_whose_base_moves(seed):
    rng, tree, q = drawn(seed)
    qd, twist = rng.uniform(-2, 2, tree.nv), rng.uniform(-2, 2, 6)
    floating, joint = sd.KinematicTree("ground"), sd.free(name="floating")
    floating.attach(tree, to="ground", joint=joint)
    q_all, rates = [*joint.neutral, *q], np.concatenate([twist, qd])
    expected = floating.kinetic_energy(q_all, rates)
    body = sd.FreeBody(tree, np.eye(4), twist, sd.State(tree, q, qd))
    close(body.kinetic_energy, expected, expected, 1e-13)
    of_links = maximal.kinetic_energy(floating, maximal.twists(floating, np.array(q_all), rates))
    close(of_links + 0.5 * 0.3 * qd[-1] ** 2, expected, expected, 1e-12)


@given(st.integers(0, 2**32 - 1))
def test_without_a_slip_there_is_no_impact(seed):
    _, tree, q = drawn(seed)
    result = tree.replace_joint("link4", sd.spherical(), sd.State(tree, q))
    assert not result.state.qd.any()
    assert not result.impulse.any()
    assert result.energy_lost == 0


def test_a_hole_is_a_body_of_negative_mass():
    """A disc with a hole is a disc and a welded body of negative mass: impacts take both as one body."""
    disc, hole = sd.Inertia(3.0, tensor=(0.3, 0.3, 0.5)), (0.1, 0, 0)
    with pytest.warns(sd.ScrewdynWarning):
        drilled = sd.Inertia.effective(-1.0, 0, (-0.01, -0.01, -0.02))
    wheels = []
    for cut in (True, False):
        tree = sd.KinematicTree()
        if cut:
            tree.attach(disc, to="base", joint=sd.revolute("z"), name="disc")
            tree.attach(drilled, to="disc", at=hole, name="hole")
        else:
            left = 0.5 - 0.02 - 1.0 * 0.1**2
            tree.attach(sd.Inertia(2.0, tensor=(1, 1, left)), to="base", joint=sd.revolute("z"), name="disc")
        state = sd.State(tree, [0.2], [3.0])
        wheels.append(tree.grasp(state, sd.Inertia.point(0.5), to="disc", at=(0.2, 0, 0), twist="at_rest"))
    assert_allclose(wheels[0].state.qd, wheels[1].state.qd, rtol=1e-14)
    assert_allclose(wheels[0].energy_lost, wheels[1].energy_lost, rtol=1e-13)
    alone = sd.KinematicTree()
    alone.attach(drilled, to="base", joint=sd.revolute("z"), name="hole")
    with pytest.raises((sd.InertiaError, sd.SingularAttachmentError)):
        alone.grasp(sd.State(alone), sd.Inertia.point(0.5), to="hole", twist=[0, 0, 0, 1, 0, 0])


def test_a_hole_takes_part_only_if_it_moves():
    with pytest.warns(sd.ScrewdynWarning):
        hole = sd.Inertia.effective(-1.0, 0, (-0.01, -0.01, -0.02))
    tree = sd.KinematicTree()
    tree.attach(hole, to="base", name="wall")
    caught = tree.grasp(sd.State(tree), sd.Inertia.point(0.5), to="wall", twist=[0, 0, 0, 1, 0, 0])
    close(caught.impulse, [0, 0, 0, -0.5, 0, 0], 1, 1e-15)
    tree.attach(hole, to="base", joint=sd.revolute("z"), name="disc")
    assert tree.copy().lock("disc", sd.State(tree)).energy_lost == 0
    with pytest.raises(sd.InertiaError, match="negative for link 'disc'"):
        tree.lock("disc", sd.State(tree, qd=[1.0]))


def test_states_that_were_unpickled_are_states():
    """Their arrays have another object for the type of numbers, which kernels compare by identity."""
    tree = sd.robots.ur5()
    state = sd.State(tree, np.full(6, 0.3), np.ones(6))
    fresh = tree.copy().lock("elbow_joint", sd.State(tree, state.q, state.qd))
    again, same = pickle.loads(pickle.dumps((tree, state)))
    locked = again.lock("elbow_joint", same)
    np.testing.assert_array_equal(locked.state.qd, fresh.state.qd)
