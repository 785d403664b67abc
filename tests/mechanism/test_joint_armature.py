"""Armatures of joints: constants on the diagonal of M, in every form."""

from dataclasses import replace

import numpy as np
import pytest
import sympy as sp
from cases import close, norm
from hypothesis import given
from hypothesis import strategies as st
from kinds import MOVING
from numpy.testing import assert_allclose, assert_array_equal

import screwdyn as sd
from screwdyn.testing import random_inertia, random_pose, random_tree


def rebuilt(tree, armature):
    """The tree with other armatures of its joints, from the joint's name, as far as they take one."""
    new = sd.KinematicTree(tree.link(tree.base), tree.gravity)
    for at in list(tree.topology.attachments.values())[1:]:
        takes = at.joint.chart is None and at.joint.screws.size
        joint = replace(at.joint, armature=armature()) if takes else at.joint
        new.attach(at.link, at.parent, joint, at.home)
    return new


def pair(seed, n=5):
    """A random tree without and with armatures, what these add to the diagonal of M, and a state."""
    rng = np.random.default_rng(seed)
    plain = random_tree(rng, n, MOVING)
    tree = rebuilt(plain, lambda: float(rng.uniform(0, 2)))
    joints = map(tree.joint, tree.joints)
    added = np.concatenate([np.zeros(0), *(np.full(joint.nv, joint.armature) for joint in joints)])
    return plain, tree, added, plain.random_configuration(rng), *rng.uniform(-2, 2, (2, plain.nv))


@given(st.integers(0, 2**32 - 1))
def test_an_armature_is_a_constant_on_the_diagonal_of_the_mass_matrix(seed):
    plain, tree, added, q, qd, qdd = pair(seed)
    M, C, g = plain.dynamics(q, qd)
    close(tree.mass_matrix(q), M + np.diag(added), norm(M), 1e-14)
    assert_array_equal(tree.gravity_vector(q), g)
    if not any(tree.joint(name).chart for name in tree.joints):
        assert_array_equal(tree.coriolis_matrix(q, qd), C)
    close(tree.coriolis_matrix(q, qd), C, norm(C), 1e-14)
    tau = plain.inverse_dynamics(q, qd, qdd) + added * qdd
    close(tree.inverse_dynamics(q, qd, qdd), tau, norm(tau), 1e-13)
    expected = np.linalg.solve(M + np.diag(added), tau - C @ qd - g)
    close(tree.forward_dynamics(q, qd, tau), expected, norm(expected) + norm(tau), 1e-9)
    close(tree.kinetic_energy(q, qd), plain.kinetic_energy(q, qd) + 0.5 * added @ qd**2, norm(M) * norm(qd) ** 2, 1e-13)
    assert_array_equal(tree.momentum(q, qd), plain.momentum(q, qd))


@given(st.integers(0, 2**32 - 1))
def test_the_contribution_of_the_carried_link_contains_it(seed):
    _, tree, _, q, qd, _ = pair(seed)
    M = tree.mass_matrix(q)
    total = sd.padded_sum(part.M for part in tree.contributions(q, qd))
    close(total.matrix(tree.coordinates), M, norm(M), 1e-13)
    whole = tree.subtree_contribution(tree.base, q, qd).M
    close(whole.matrix(tree.coordinates), M, norm(M), 1e-13)


def arm():
    tree = sd.KinematicTree()
    box = sd.Inertia.box(1.0, (0.4, 0.1, 0.2), (0.2, 0.05, 0))
    tree.attach(box, "base", sd.revolute("z", armature=0.3, name="a"), name="one")
    tree.attach(box, "one", sd.universal("x", "y", armature=0.2, name="b"), (0.4, 0, 0), "two")
    tree.attach(box, "two", sd.prismatic("x", armature=0.7, name="c"), (0.4, 0, 0), "three")
    tree.attach(box, "one", sd.revolute("x", armature=0.5, mimic=sd.Mimic("a", -2.0), name="d"), (0, 0.3, 0), "four")
    return tree, rebuilt(tree, lambda: 0.0), np.array([0.3 + 2.0**2 * 0.5, 0.2, 0.2, 0.7])


Q, QD, QDD = np.random.default_rng(0).uniform(-1, 1, (3, 4))


@pytest.mark.slow
def test_compiled_functions_and_derivatives_have_it():
    tree, plain, added = arm()
    M = plain.mass_matrix(Q) + np.diag(added)
    assert_allclose(tree.mass_matrix(Q), M, rtol=1e-13, atol=1e-14)
    fast = tree.compile()
    fast.wait()
    assert_allclose(fast.mass_matrix(Q), M, rtol=1e-13, atol=1e-14)
    assert_allclose(fast.forward_dynamics(Q, QD, QDD), tree.forward_dynamics(Q, QD, QDD), rtol=1e-11)
    assert_allclose(fast.kinetic_energy(Q, QD), tree.kinetic_energy(Q, QD), rtol=1e-13)
    of_tree, of_plain = tree.derivatives, plain.derivatives
    by_q, by_qd, by_qdd = of_tree.inverse_dynamics(Q, QD, QDD)
    assert_allclose(by_qdd, M, rtol=1e-12, atol=1e-14)
    for found, expected in zip((by_q, by_qd), of_plain.inverse_dynamics(Q, QD, QDD), strict=False):
        assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
    assert_allclose(of_tree.forward_dynamics(Q, QD, QDD)[2], np.linalg.inv(M), rtol=1e-11, atol=1e-13)
    # τ = Y π + armature q̈
    Y, pi = of_tree.regressor(Q, QD, QDD), of_tree.parameters()
    assert_allclose(Y @ pi + added * QDD, tree.inverse_dynamics(Q, QD, QDD), rtol=1e-12)


def test_it_may_be_a_symbol():
    a = sp.Symbol("a", positive=True)
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.rod(3.0, 1.0, com=(0.5, 0, 0)), "base", sd.revolute("z", armature=a, name="hinge"))
    assert tree.free_symbols == {a}
    assert sp.simplify(tree.symbolic().mass_matrix()[0] - (1 + a)) == 0
    assert_allclose(tree.subs({a: 0.5}).mass_matrix([0.0]), [[1.5]], rtol=1e-14)
    with pytest.raises(sd.JointError, match="armature must be a finite number >= 0; got -1"):
        tree.subs({a: -1})


def test_json_keeps_it():
    tree, _, _ = arm()
    twin = sd.KinematicTree.from_json(tree.to_json())
    assert [twin.joint(name).armature for name in "abcd"] == [0.3, 0.2, 0.7, 0.5]
    assert_array_equal(twin.mass_matrix(Q), tree.mass_matrix(Q))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sd.revolute(armature=-0.1), "armature must be a finite number >= 0; got -0.1"),
        (lambda: sd.revolute(armature=np.inf), "armature must be a finite number"),
        (
            lambda: replace(sd.spherical(), armature=0.1),
            "a spherical joint takes no stiffness, rest, limits or armature",
        ),
    ],
)
def test_bad_armatures_are_refused(make, message):
    with pytest.raises(sd.JointError, match=message):
        make()


def test_a_joint_that_carries_nothing_but_its_motor():
    tree = sd.KinematicTree()
    tree.attach(sd.Link("frame"), "base", sd.revolute("z", armature=0.5, name="hinge"))
    assert_allclose(tree.forward_dynamics([0.1], [2.0], [1.5]), [3.0])
    run = sd.simulate(tree, sd.State(tree, [0.0], [1.0]), 1.0)
    assert_allclose(run.states[-1].q, [1.0], rtol=1e-9)


@given(st.integers(0, 2**32 - 1))
def test_a_lock_stops_the_motor_too(seed):
    _, tree, _, q, qd, _ = pair(seed)
    joint = next(name for name in tree.joints if tree.joint(name).nv)
    M, names = tree.mass_matrix(q), tree.coordinates
    own = np.isin(names, tree.topology.carrying(joint).coordinates)
    before = tree.kinetic_energy(q, qd)
    event = tree.lock(joint, sd.State(tree, q, qd))
    after = np.zeros(len(names))
    after[~own] = event.state.qd
    impulse = M @ (after - qd)
    close(impulse[~own], np.zeros((~own).sum()), norm(M) * norm(qd), 1e-8)
    close(event.impulse, impulse[own], norm(M) * norm(qd), 1e-8)
    kept = tree.kinetic_energy(event.state.q, event.state.qd)
    close(before - kept, event.energy_lost, before, 1e-9)


@given(st.integers(0, 2**32 - 1))
def test_a_grasp_conserves_momentum_along_every_freedom_with_motors_at_rest(seed):
    """M ν⁺ = M_robot ν⁻ + Jᵀ 𝓜 V⁻: the motor of the new joint brings nothing."""
    _, tree, _, q, qd, _ = pair(seed, 3)
    rng = np.random.default_rng(seed)
    body, V = random_inertia(rng), rng.uniform(-2, 2, 6)
    M, before = tree.mass_matrix(q), tree.kinetic_energy(q, qd)
    joint, at = sd.revolute(rng.normal(size=3), armature=0.8), random_pose(rng)
    event = tree.grasp(sd.State(tree, q, qd), body, to=tree.links[-1], joint=joint, at=at, twist=V, name="load")
    state = event.state
    J = tree.jacobian("load", state.q, "body")
    momentum = np.concatenate([M @ qd, [0.0]]) + J.T @ body.matrix @ V
    close(tree.mass_matrix(state.q) @ state.qd, momentum, norm(M) * norm(qd) + norm(momentum), 1e-9)
    after = tree.kinetic_energy(state.q, state.qd)
    close(after, before + event.kinetic_energy_brought - event.energy_lost, before + after, 1e-9)
    gone = tree.release(state, "load")
    left = tree.kinetic_energy(gone.state.q, gone.state.qd)
    close(left, after + gone.kinetic_energy_brought, after, 1e-9)
