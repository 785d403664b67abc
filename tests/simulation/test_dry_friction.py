"""Dry friction: sticking, sliding, and the changes between them, against motions with a known solution."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import screwdyn as sd
from screwdyn.forms.configurations import Limits
from screwdyn.simulation.bounded import Bounded
from screwdyn.testing import random_tree

G = 9.81


def slider(friction, mass=2.0, slope=0.0, gravity=G, **options):
    """A box on a plane that descends along +x by the angle ``slope``."""
    tree = sd.KinematicTree(gravity=(gravity * np.sin(slope), 0, -gravity * np.cos(slope)))
    joint = sd.prismatic("x", friction=friction, **options)
    tree.attach(sd.Inertia.point(mass), to="base", joint=joint, name="box")
    return tree


def arm(frictions, **options):
    tree = sd.KinematicTree()
    rod = sd.Inertia.rod(1.0, 0.5, "x", (0.25, 0, 0))
    for k, friction in enumerate(frictions):
        joint = sd.revolute("y", friction=friction, **options)
        tree.attach(rod, to=tree.links[-1], joint=joint, at=(0.5 * (k > 0), 0, 0), name=f"link{k}")
    return tree


def assert_ledger_closes(run, tolerance=1e-8):
    E = run.energy
    assert np.abs(E.residual).max() < tolerance * max(np.ptp(E.kinetic), np.ptp(E.potential), np.ptp(E.work))
    assert (np.diff(E.dissipated) >= -1e-15).all()


@pytest.mark.parametrize("method", ["DOP853", "RK45", "Radau", "LSODA"])
def test_less_force_than_friction_moves_nothing(method):
    tree = slider(2.0, gravity=0)
    run = sd.simulate(tree, sd.State(tree), 10.0, lambda t, state: [1.0], method=method, step=0.5)
    assert not run["box"].any() and not run.velocity("box").any()


def test_force_equal_to_friction_moves_nothing():
    tree = slider(2.0, gravity=0)
    run = sd.simulate(tree, sd.State(tree), 1.0, lambda t, state: [-2.0], step=0.1)
    assert not run["box"].any()


@pytest.mark.parametrize("method", ["DOP853", "RK45", "Radau", "LSODA"])
def test_friction_brings_a_box_to_rest(method):
    m, F, v0 = 2.0, 3.0, 4.0
    tree = slider(F, m)
    run = sd.simulate(tree, sd.State(tree, qd=[v0]), 4.0, method=method, step=0.01)
    t = np.minimum(run.t, v0 * m / F)
    assert_allclose(run["box"], v0 * t - F / (2 * m) * t**2, atol=1e-7)
    assert not run.velocity("box")[run.t > v0 * m / F].any()
    assert_allclose(run.energy.dissipated[-1], 0.5 * m * v0**2, rtol=1e-8)
    assert_ledger_closes(run)


@pytest.mark.parametrize("load, slides", [(0.999, False), (1.001, True)])
def test_box_on_a_slope(load, slides):
    """It slides if and only if its weight along the slope exceeds the friction."""
    m, slope = 2.0, 0.2
    F = m * G * np.sin(slope) / load
    tree = slider(F, m, slope)
    run = sd.simulate(tree, sd.State(tree), 2.0, step=0.05)
    assert_allclose(run["box"], slides * 0.5 * (G * np.sin(slope) - F / m) * run.t**2, atol=1e-10)
    assert run["box"].any() == slides


def test_sliding_begins_when_a_growing_force_exceeds_friction():
    m, F = 2.0, 3.0
    tree = slider(F, m, gravity=0)
    run = sd.simulate(tree, sd.State(tree), 5.0, lambda t, state: [t], step=0.1)
    assert_allclose(run["box"], np.where(run.t > F, (run.t - F) ** 3 / (6 * m), 0), atol=1e-9)
    assert_ledger_closes(run)


def test_oscillator_loses_the_same_amplitude_in_each_half_cycle():
    m, k, F, x0 = 2.0, 50.0, 5.0, 1.05
    tree = slider(F, m, gravity=0, stiffness=k)
    run = sd.simulate(tree, sd.State(tree, [x0]), 10.0, step=0.01)
    half, loss = np.pi / np.sqrt(k / m), 2 * F / k
    # Turning points at 1.05, −0.85, 0.65, −0.45, 0.25 and −0.05, where the spring is weaker than friction.
    cycles = np.minimum(np.floor(run.t / half), 5)
    sign = (-1.0) ** cycles
    swing = sign * (x0 - loss * (cycles + 0.5)) * np.cos(np.sqrt(k / m) * (run.t - cycles * half))
    expected = np.where(run.t < 5 * half, swing + sign * F / k, -0.05)
    assert_allclose(run["box"], expected, atol=1e-8)
    assert_array_equal(run["box"][run.t > 5 * half + 0.01], run["box"][-1])
    assert_allclose(run.energy.dissipated[-1], 0.5 * k * (x0**2 - 0.05**2), rtol=1e-8)


def test_arm_held_against_gravity():
    weights = np.abs(arm([0, 0, 0]).gravity_vector([0.1, 0.2, 0.3]))
    tree = arm(1.01 * weights)
    run = sd.simulate(tree, sd.State(tree, [0.1, 0.2, 0.3]), 10.0, step=1.0)
    assert_array_equal(run.q, np.tile([0.1, 0.2, 0.3], (len(run.t), 1)))
    assert not run.energy.dissipated.any()


def test_a_joint_that_sticks_is_a_fixed_joint():
    """The other joints move as if it were welded, until the load on it exceeds its friction."""
    tree = arm([0.0, 50.0, 0.0])
    run = sd.simulate(tree, sd.State(tree, [0.1, 0.4, 0.3]), 1.0, step=0.05)
    welded = sd.KinematicTree()
    rod = sd.Inertia.rod(1.0, 0.5, "x", (0.25, 0, 0))
    welded.attach(rod, to="base", joint=sd.revolute("y"), name="link0")
    c, s = np.cos(0.4), np.sin(0.4)
    bent = np.array([[c, 0, s, 0.5], [0, 1, 0, 0], [-s, 0, c, 0], [0, 0, 0, 1]])
    welded.attach(rod, to="link0", at=bent, name="link1")
    welded.attach(rod, to="link1", joint=sd.revolute("y"), at=(0.5, 0, 0), name="link2")
    there = sd.simulate(welded, sd.State(welded, [0.1, 0.3]), 1.0, step=0.05)
    assert_allclose(run["link0"], there["link0"], atol=1e-7)
    assert_allclose(run["link2"], there["link2"], atol=1e-7)
    assert (run["link1"] == 0.4).all() and np.ptp(run["link0"]) > 0.5


def test_several_joints_come_to_rest():
    tree = arm([6.0, 2.0, 0.4])
    run = sd.simulate(tree, sd.State(tree, [0.1, 0.2, 0.3], [1.0, -2.0, 3.0]), 10.0, step=0.05)
    assert not run.qd[-1].any()
    assert_ledger_closes(run)
    assert (np.abs(tree.gravity_vector(run.q[-1])) <= [6.0, 2.0, 0.4]).all()
    assert_allclose(run.energy.dissipated[-1], run.energy.total[0] - run.energy.total[-1], rtol=1e-8)


def test_freedoms_of_a_spherical_joint_stick_one_by_one():
    """A ball that spins about a principal axis keeps to it, and its spin decreases at a constant rate."""
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    box = sd.Inertia.box(1.0, (0.1, 0.2, 0.3))
    tree.attach(box, to="base", joint=sd.spherical(friction=0.01), name="ball")
    run = sd.simulate(tree, sd.State(tree, qd={"ball[wz]": 3.0}), 2.0, step=0.05)
    about = box.tensor[2, 2]
    assert_allclose(run.velocity("ball[wz]"), np.maximum(3.0 - 0.01 / about * run.t, 0), atol=1e-8)
    assert not run.velocity("ball[wx]").any() and not run.velocity("ball[wy]").any()
    tumbling = sd.simulate(tree, sd.State(tree, qd={"ball": [1.0, 3.0, 2.0]}), 4.0, step=0.05)
    assert_ledger_closes(tumbling)
    assert not tumbling.qd[-1].any()


def test_free_base_with_friction_in_one_joint_keeps_its_momentum():
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    body = sd.Inertia.box(3.0, (0.3, 0.4, 0.5))
    tree.attach(body, to="base", joint=sd.free(), name="ship")
    tree.attach(sd.Inertia.box(1.0, (0.1, 0.1, 0.4), (0, 0, 0.3)), "ship", sd.revolute("x", friction=0.05), name="fin")
    state = sd.State(tree, qd={"fin": 2.0, "ship[wy]": 0.3})
    run = sd.simulate(tree, state, 5.0, step=0.05)
    before = tree.momentum(state.q, state.qd)
    for later in (run.states[30], run.states[-1]):
        assert_allclose(tree.momentum(later.q, later.qd), before, atol=1e-8)
    assert run.velocity("fin")[-1] == 0 and run.velocity("ship[wx]")[-1] != 0
    assert_ledger_closes(run)


def test_impact_moves_a_joint_that_sticks():
    """Friction is a finite force: it exerts no impulse."""
    tree = slider(5.0, gravity=0)
    ball = sd.Inertia.sphere(1.0, 0.05)
    hit = sd.Grasp(ball, to="box", twist=[0, 0, 0, 3.0, 0, 0], name="ball", time=0.5)
    run = sd.simulate(tree, sd.State(tree), 2.0, events=[hit], step=0.05)
    # v = 1 m/s, then rest after m v / F = 0.6 s.
    assert_allclose(run["box"][-1], 0.5 * 1.0 * 0.6, atol=1e-9)
    assert run.velocity("box")[-1] == 0
    assert_ledger_closes(run)


@given(st.integers(0, 2**32 - 1))
def test_friction_at_rest_is_the_only_one_that_fits(seed):
    """Of all combinations of sticking and sliding, one is consistent; it is found."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 4)
    n = tree.nv
    q, qd = tree.random_configuration(rng), rng.normal(size=n)
    at_rest = rng.permutation(n)[: min(n, 3)]
    qd[at_rest] = 0
    force, friction = 10 * rng.normal(size=n), rng.uniform(1, 10, n)
    found = Bounded(tree, friction, Limits.of(tree, lambda joint: False), q)
    found.settle(q, qd, force)
    M, b = tree.mass_matrix(q), tree.bias_force(q, qd)
    fitting = []
    for directions in itertools.product([-1, 0, 1], repeat=len(at_rest)):
        direction = np.sign(qd)
        direction[at_rest] = directions
        total, sticks = force - friction * direction - b, at_rest[np.array(directions) == 0]
        free = np.setdiff1d(np.arange(n), sticks)
        qdd = np.zeros(n)
        qdd[free] = np.linalg.solve(M[np.ix_(free, free)], total[free])
        held = np.abs((M @ qdd - total)[sticks]) <= friction[sticks]
        slides = at_rest[np.array(directions) != 0]
        if held.all() and (direction[slides] * qdd[slides] > 0).all():
            fitting.append(direction)
            assert_allclose(found.forward_dynamics(q, qd, force + found.force), qdd, rtol=1e-7, atol=1e-7)
    assert len(fitting) == 1
    assert_array_equal(found.direction, fitting[0])


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=6)
def test_friction_in_random_trees(seed):
    """A random tree with friction in every joint, under torques that are held for a while."""
    rng = np.random.default_rng(seed)
    kinds = ("revolute", "prismatic", "helical", "universal", "spherical", "planar")
    tree = random_tree(rng, 3, kinds, frames=0)
    for k in (1, 2, 3):
        tree.replace_joint(f"link{k}", replace(tree.joint(f"joint{k}"), friction=rng.uniform(1, 20), damping=0.1))
    state = sd.State(tree, tree.random_configuration(rng), rng.uniform(-1, 1, tree.nv))
    push = {name: 20 * rng.normal() for name in tree.active}
    run = sd.simulate(tree, state, 0.5, lambda t, s: push if t < 0.2 else {}, control_period=0.1, step=0.05)
    E = run.energy
    assert np.abs(E.residual).max() < 1e-6 * max(np.ptp(E.kinetic), np.ptp(E.potential), np.ptp(E.work), 1e-3)
    assert (np.diff(E.dissipated) >= -1e-12).all()
    # Where a joint sticks, the other forces on it do not exceed its friction.
    limits = tree.model.joint_forces.friction
    for q, qd, qdd, tau in zip(run.q, run.qd, run.qdd, run.tau, strict=True):
        forces = tree.model.joint_forces
        held = tree.inverse_dynamics(q, qd, qdd) - tau - forces.viscous_force(qd) - forces.spring_force(q)
        sticks = (qd == 0) & (qdd == 0)
        assert (np.abs(held[sticks]) <= limits[sticks] * (1 + 1e-6)).all()
        moves = np.abs(qd) > 1e-9
        assert_allclose(held[moves], -(limits * np.sign(qd))[moves], rtol=1e-6, atol=1e-7)


def test_joint_that_feels_no_inertia():
    tree = sd.KinematicTree()
    tree.attach(sd.Link("shell"), to="base", joint=sd.revolute("z", friction=1.0))
    with pytest.raises(sd.SingularAttachmentError, match="nothing beyond joint 'shell'"):
        sd.simulate(tree, sd.State(tree), 1.0)
