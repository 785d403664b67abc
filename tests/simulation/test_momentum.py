"""The bodies of a tree, and their impacts."""

import maximal
import numpy as np
import pytest
from cases import close, norm
from hypothesis import given
from hypothesis import strategies as st
from kinds import EVERY
from numpy.testing import assert_allclose

import screwdyn as sd
from screwdyn.simulation.momentum import bodies, impact, kinetic_energy
from screwdyn.testing import random_inertia, random_pose, random_tree


def drawn(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 6, EVERY)
    tree.attach(random_inertia(rng), to="link6", joint=sd.revolute("x", armature=0.3), name="driven")
    return rng, tree, tree.integrate(tree.neutral(), rng.uniform(-2, 2, tree.nv))


@given(st.integers(0, 2**32 - 1), st.integers(0, 6))
def test_bodies_carry_the_whole_mass_matrix(seed, apart):
    """A term of M that no body has, such as a rotor's, would be missing in every impact."""
    _, tree, q = drawn(seed)
    beyond = tree.subtree(f"link{apart}") if apart else ()
    links, poses, J, inertias, armatures = bodies(tree, q, beyond)
    M = tree.mass_matrix(q)
    close(np.einsum("nij,nik,nkl->jl", J, inertias, J) + np.diag(armatures), M, norm(M), 1e-13)
    assert len(links) <= len(tree.links)
    for link, pose in zip(links, poses, strict=True):
        close(pose, tree.forward_kinematics(link, q), 1, 1e-14)


@given(st.integers(0, 2**32 - 1))
def test_links_that_are_welded_together_are_one_body(seed):
    rng, tree, q = drawn(seed)
    alone = bodies(tree, q)
    for k in range(3):
        tree.attach(random_inertia(rng), to="link3", at=random_pose(rng), name=f"weld{k}")
    whole = bodies(tree, q)
    fixed_to_base = not tree.model.path("link3")
    assert len(whole.links) <= len(alone.links) + fixed_to_base
    assert len(bodies(tree, q, ["weld1"]).links) == len(whole.links) + 1


@given(st.integers(0, 2**32 - 1))
def test_kinetic_energy_of_a_tree_whose_base_moves(seed):
    rng, tree, q = drawn(seed)
    qd, twist = rng.uniform(-2, 2, tree.nv), rng.uniform(-2, 2, 6)
    floating, joint = sd.KinematicTree("ground"), sd.free(name="floating")
    floating.attach(tree, to="ground", joint=joint)
    q_all, rates = [*joint.neutral, *q], np.concatenate([twist, qd])
    expected = floating.kinetic_energy(q_all, rates)
    close(kinetic_energy(tree, q, qd, twist), expected, expected, 1e-13)
    of_links = maximal.kinetic_energy(floating, maximal.twists(floating, np.array(q_all), rates))
    close(of_links + 0.5 * 0.3 * qd[-1] ** 2, expected, expected, 1e-12)


@given(st.integers(0, 2**32 - 1))
def test_without_a_slip_there_is_no_impact(seed):
    _, tree, q = drawn(seed)
    result = impact(tree, q, np.zeros(tree.nv), "link4", np.zeros(6))
    assert not result.rates.any()
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
