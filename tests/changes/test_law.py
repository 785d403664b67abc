"""The law of all changes, and its passes."""

import maximal
import numpy as np
import pytest
from cases import close, norm
from hypothesis import given
from hypothesis import strategies as st
from kinds import EVERY
from numpy.testing import assert_allclose

import screwdyn as sd
from screwdyn.testing import random_inertia, random_tree


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
