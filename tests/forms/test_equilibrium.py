"""Equilibria against closed forms, exact second derivatives of the energy, and damped motions that come to rest."""

import numpy as np
import pytest
from cases import CENTRAL
from hypothesis import given, settings
from hypothesis import strategies as st
from mechanisms import driven_by_the_crank, four_bar, swept
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import brentq

import screwdyn as sd
from screwdyn.forms.search import Balance, stable_equilibrium
from screwdyn.testing import random_tree

G = 9.81
ROD = sd.Inertia.rod(2.0, 1.0, com=(0.5, 0, 0))
MOMENT = 2.0 * G * 0.5  # of the horizontal rod about its end


def pendulum(**joint):
    """A rod that is horizontal at 0 and hangs at π/2."""
    tree = sd.KinematicTree()
    tree.attach(ROD, to="base", joint=sd.revolute("y", **joint), name="rod")
    return tree


@pytest.mark.parametrize("start", [0.0, -1.5, -np.pi / 2, 1.0, np.pi / 2, 3.0])
def test_a_pendulum_hangs_plumb_from_any_start_also_from_its_upper_equilibrium(start):
    q = pendulum(passive=True).equilibrium([start])
    assert_allclose(np.sin(q), 1, rtol=0, atol=1e-15)


@pytest.mark.parametrize("beside", [1e-6, -1e-7, 3e-8, -1e-9, 1e-11])
def test_passive_joints_leave_an_upper_equilibrium_that_is_given_inexactly(beside):
    """An angle is often known to seven or eight digits only, such as one in single precision."""
    tree = pendulum(passive=True)
    tree.attach(ROD, to="rod", at=(1, 0, 0), joint=sd.revolute("y", passive=True), name="beyond")
    for start in ([-np.pi / 2 + beside, 0.0], [np.pi / 2, np.pi + beside], [-np.pi / 2 + beside, np.pi - beside]):
        q = tree.equilibrium(start)
        assert_allclose([np.sin(q[0]), np.cos(q[1])], 1, rtol=0, atol=1e-15)
    # Constant torques lead to the nearest equilibrium, stable or not.
    assert_allclose(pendulum().equilibrium([-np.pi / 2 + beside], [0.0]), [-np.pi / 2], rtol=1e-15)


@pytest.mark.parametrize("beside", [0.0, 1e-9, 1e-6])
def test_a_ball_joint_that_feels_hardly_any_force_about_one_axis_hangs(beside):
    """Rounding looks like a negative curvature there: forces are compared with the largest one."""
    tree, com = sd.KinematicTree(), np.array([0.0, 0.3, beside])
    tree.attach(sd.Inertia.box(1, (0.1, 0.1, 0.1), com), to="base", joint=sd.spherical(passive=True), name="load")
    rng = np.random.default_rng(0)
    for start in (tree.neutral(), *(tree.random_configuration(rng) for _ in range(5))):
        pose = tree.forward_kinematics("load", tree.equilibrium(start))
        assert_allclose(pose[2, :3] @ com, -np.linalg.norm(com), rtol=1e-12)


def test_what_moves_without_bound_is_named_with_its_remedy():
    lift = sd.KinematicTree()
    lift.attach(ROD, to="base", joint=sd.prismatic("z", name="lift"))
    with pytest.raises(sd.EquilibriumError, match=r"'lift', .* under its force of 500; give it another force, or a sp"):
        lift.equilibrium([0.0], [500.0])
    with pytest.raises(sd.EquilibriumError, match=r"'lift', which moves without bound; give it a force or a spring"):
        lift.equilibrium([0.0], [0.0])
    with pytest.raises(sd.EquilibriumError, match=r"without bound; give it a spring, or make it active"):
        lift.replace_joint("payload", sd.prismatic("z", name="lift", passive=True))
        lift.equilibrium([0.0])


def test_a_spring_and_the_weight_balance():
    k, rest = 6.0, -0.3
    q = pendulum(passive=True, stiffness=k, rest=rest).equilibrium([0.0])
    root = brentq(lambda x: -MOMENT * np.cos(x) + k * (x - rest), 0, 2, xtol=1e-15)
    assert_allclose(q, [root], rtol=1e-14)


def test_a_torque_and_the_weight_balance_at_the_nearest_angle_stable_or_not():
    tree = pendulum()
    for start, side in ((0.3, 1), (-0.3, -1)):
        q = tree.equilibrium([start], tau=[-0.8 * MOMENT])
        assert_allclose(q, [side * np.arccos(0.8)], rtol=1e-14)
    assert_allclose(tree.equilibrium([0.0], {"rod": -0.8 * MOMENT}), [np.arccos(0.8)], rtol=1e-14)
    assert_allclose(tree.equilibrium([0.0], [0.0]), [np.pi / 2], rtol=1e-15)


def test_a_torque_that_exceeds_the_weight_has_no_equilibrium():
    with pytest.raises(sd.EquilibriumError, match=r"'rod' needs .*, and gets -9.82; change the force"):
        pendulum().equilibrium([0.2], tau=[-9.82])


def test_a_slide_that_nothing_holds_has_no_equilibrium():
    tree = pendulum()
    tree.attach(ROD, to="rod", joint=sd.prismatic("z", passive=True, name="slide"))
    with pytest.raises(sd.EquilibriumError, match="nothing holds 'slide'"):
        tree.equilibrium([0.1, 0.0])
    lift = sd.KinematicTree()
    lift.attach(ROD, to="base", joint=sd.prismatic("z", name="lift"))
    assert_array_equal(lift.equilibrium([0.3], [2 * G]), [0.3])
    with pytest.raises(sd.EquilibriumError, match="nothing holds 'lift'"):
        lift.equilibrium([0.3], [1.0])
    floating = sd.KinematicTree()
    floating.attach(ROD, to="base", joint=sd.free(passive=True, name="body"))
    with pytest.raises(sd.EquilibriumError, match=r"'body\[v.\]'"):
        floating.equilibrium(floating.neutral())


def test_a_sprung_slide_sinks_by_its_weight():
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.point(3.0, (0, 0, 0)), to="base", joint=sd.prismatic("z", passive=True, stiffness=0.02))
    assert_allclose(tree.equilibrium([0.0]), [-3 * G / 0.02], rtol=1e-14)


def test_a_light_payload_hangs_as_plumb_as_a_heavy_one():
    tree = sd.robots.ur5()
    q0 = np.array([0.3, -1.1, 0.8, 0.4, -0.2, 0.7])
    for name, mass in (("light", 1e-6), ("heavy", 1e3)):
        to, joint = tree.links[6], sd.spherical(passive=True)
        tree.attach(sd.Inertia.sphere(mass, 0.01, (0.02, 0.1, 0.3)), to=to, joint=joint, name=name)
    q = tree.equilibrium(np.concatenate([q0, tree.neutral()[6:]]))
    assert_array_equal(q[:6], q0)
    for name in ("light", "heavy"):
        down = tree.forward_kinematics(name, q)[:3, :3] @ (0.02, 0.1, 0.3)
        assert_allclose(down[:2], 0, atol=1e-12)
        assert down[2] < 0


def test_freedoms_that_gravity_does_not_move_stay():
    tree = sd.KinematicTree()
    tree.attach(ROD, to="base", joint=sd.revolute("z", passive=True, name="turn"))
    tree.attach(ROD, to="payload", joint=sd.revolute("y", passive=True, name="swing"))
    q = tree.equilibrium([0.4, 0.2])
    assert_allclose(q, [0.4, np.pi / 2], rtol=1e-14)
    tree.gravity = (0, 0, 0)
    assert_array_equal(tree.equilibrium([0.4, 0.2]), [0.4, 0.2])


@given(st.integers(0, 2**32 - 1), st.integers(1, 7))
def test_passive_trees_come_to_a_minimum_of_the_energy(seed, n):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, n, ("revolute", "universal", "spherical"))
    q0 = tree.random_configuration(rng)
    moving = [x for name in tree.joints if rng.random() < 0.8 for x in tree.joint(name).freedom_names(name)]
    q = stable_equilibrium(tree, q0, moving)
    at = [tree.coordinates.index(name) for name in moving]
    held = np.delete(tree.difference(q0, q), at)
    assert_allclose(held, 0, atol=1e-15)
    weight = 9.81 * tree.mass
    assert_allclose(tree.gravity_vector(q)[at], 0, atol=1e-12 * weight)
    # Exact, from a differentiated tape.
    by = tree.derivatives.gravity_vector(q)[np.ix_(at, at)]
    assert np.linalg.eigvalsh((by + by.T) / 2).min(initial=0) > -1e-6 * weight
    assert tree.potential_energy(q) <= tree.potential_energy(q0) + 1e-12 * weight


@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_constant_torques_lead_back_to_the_configuration_that_they_hold(seed, n):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, n, ("revolute", "prismatic", "spherical"))
    q = tree.random_configuration(rng)
    tau = tree.gravity_vector(q)
    start = tree.integrate(q, rng.uniform(-1e-3, 1e-3, tree.nv))
    try:
        found = tree.equilibrium(start, tau)
    except sd.EquilibriumError:  # forces at a fold of q → g(q), or that turn with a slide that gravity does not hold
        singular = np.linalg.svd(tree.derivatives.gravity_vector(q), compute_uv=False)
        assert singular[-1] < 1e-2 * singular[0]
        return
    assert_allclose(tree.gravity_vector(found), tau, rtol=0, atol=1e-10 * 9.81 * tree.mass)


@pytest.mark.slow
@settings(max_examples=10)
@given(st.integers(0, 2**32 - 1))
def test_a_damped_motion_comes_to_rest_in_a_stable_equilibrium(seed):
    rng = np.random.default_rng(seed)
    tree = sd.KinematicTree(gravity=(0, 0, -G))
    for k, axis in enumerate(("y", "x")):
        joint = sd.revolute(axis, passive=True, damping=4.0, stiffness=rng.uniform(0, 3), rest=rng.uniform(-1, 1))
        tree.attach(sd.Inertia.box(2, (0.1, 0.2, 1), (0.1, 0.05, -0.5)), to=tree.links[-1], joint=joint, at=(0, 0, -k))
    q0 = rng.uniform(-0.5, 0.5, 2)
    run = sd.simulate(tree, sd.State(tree, q0), 60.0, step=1.0, method="LSODA")
    assert_allclose(tree.equilibrium(q0), run.states[-1].q, atol=1e-7)


def test_wrong_arguments_are_named():
    tree = pendulum(passive=True)
    with pytest.raises(sd.JointError, match="'rod' is passive"):
        tree.equilibrium([0.0], tau=[1.0] * tree.nv)
    with pytest.raises(sd.ShapeError, match="q0 must be that of one state"):
        tree.equilibrium(np.zeros((2, 1)))
    with pytest.raises(sd.ShapeError, match=r"^q must be that of one state"):
        tree.holding_torque(np.zeros((2, 1)))
    with pytest.raises(sd.UnknownNameError, match="'rod'"):
        tree.equilibrium([0.0], tau={"rot": 1.0})
    with pytest.raises(sd.ShapeError, match=r"tau has shape \(3,\)"):
        tree.equilibrium([0.0], tau=[0.0] * 3)


def test_torques_that_hold_a_configuration_are_the_inverse_of_its_equilibrium():
    tree = pendulum(stiffness=6.0, rest=-0.3)
    assert_allclose(tree.holding_torque([0.4]), [-MOMENT * np.cos(0.4) + 6.0 * 0.7], rtol=1e-14)
    arm = sd.robots.pelican()
    q = np.array([0.3, -1.1])
    tau = arm.holding_torque(q)
    assert_allclose(arm.forward_dynamics(q, np.zeros(2), tau), 0, atol=1e-12)
    assert_allclose(arm.equilibrium(q + 0.01, tau), q, rtol=1e-12)


def test_torques_that_hold_a_tree_whose_passive_joint_hangs():
    tree = pendulum(name="arm")
    tree.attach(ROD, to="rod", joint=sd.revolute("y", passive=True, name="hook"), at=(1, 0, 0), name="load")
    q = tree.equilibrium([0.2, 0.0])
    # The second rod hangs below the end of the first one.
    assert_allclose(tree.holding_torque(q), [-(MOMENT + 2.0 * G) * np.cos(0.2), 0], rtol=1e-12)
    with pytest.raises(sd.EquilibriumError, match=r"passive freedom 'hook' needs -9\.614.*tree\.equilibrium"):
        tree.holding_torque([0.2, 0.0])


H = 1e-2


def slope_and_curvature(tree, q):
    """U′ and U″ of the crank's angle."""
    energy = swept(tree, q, "crank")
    values = {k: energy(q[0] + k * H)[1] for k in range(-3, 4)}
    slope = sum(w * (values[k] - values[-k]) for k, w in CENTRAL) / H
    return slope, (values[1] - 2 * values[0] + values[-1]) / H**2


def test_torque_that_holds_a_four_bar():
    tree, (q, _) = driven_by_the_crank()
    tau = tree.holding_torque(q)
    assert_allclose(tau, [slope_and_curvature(tree, q)[0], 0, 0], rtol=1e-9)
    assert_allclose(tree.forward_dynamics(q, np.zeros(3), tau), 0, rtol=0, atol=1e-12)


def test_four_bar_that_hangs():
    tree, (q, _) = driven_by_the_crank(motor=False)
    found = tree.equilibrium(q)
    slope, curvature = slope_and_curvature(tree, found)
    assert_allclose(slope, 0, rtol=0, atol=1e-8 * curvature)
    assert curvature > 1
    assert_allclose(tree.gap(found), 0, rtol=0, atol=1e-12)
    assert_array_equal(tree.holding_torque(found), 0)


def test_equilibrium_under_a_torque():
    tree, (q, _) = driven_by_the_crank()
    tau = 1.05 * tree.holding_torque(q)
    found = tree.equilibrium(q, tau)
    assert_allclose(slope_and_curvature(tree, found)[0], tau[0], rtol=1e-9)
    assert_array_equal(tree.equilibrium(q), q)  # without torques, active joints keep their positions


def test_no_equilibrium(monkeypatch):
    monkeypatch.setattr("screwdyn.forms.search._MOST_STEPS", 20)  # of 500, which find none either
    tree, (q, _) = driven_by_the_crank()
    with pytest.raises(sd.EquilibriumError, match="is unbalanced in a motion of the closed loops, mostly of"):
        tree.equilibrium(q, 50 * tree.holding_torque(q))
    loose, (q, _) = driven_by_the_crank(motor=False)
    with pytest.raises(sd.EquilibriumError, match="no torques of the motors hold"):
        loose.holding_torque(q)
    tree, (q, _) = four_bar()
    with pytest.raises(sd.LoopError, match="'pin' is open by"):
        tree.equilibrium(q + 0.1)


@pytest.mark.parametrize("closed", [True, False])
def test_a_mechanism_that_lies_flat(closed):
    """Gravity is along all axes but for rounding, so every configuration is an equilibrium of the passive joints."""
    turn = sd.screw.exp([0.3, -0.2, 0.5, 1, 2, 3])
    tree = sd.KinematicTree(gravity=turn[:3, :3] @ [0, 0, -9.81])
    tree.attach(driven_by_the_crank(motor=False)[0], to="base", at=turn, name="bench")
    q = tree.assemble([0.7, -0.2, 1.5], hold=["crank"])
    if not closed:
        tree.open("pin")
    assert np.abs(tree.gravity_vector(q)).max() > 0
    assert_array_equal(tree.holding_torque(q), 0)
    assert_allclose(tree.equilibrium(q), q, rtol=0, atol=1e-12)
    if closed:
        assert_array_equal(tree.inverse_dynamics(q, np.zeros(3), np.zeros(3)), 0)


def test_the_slope_and_curvature_of_closed_loops_are_those_of_the_work():
    """Also away from an equilibrium, where the forces in the loops curve the motion."""
    tree, (q, _) = four_bar()
    balance, h = Balance(tree, np.arange(3), np.zeros(3), q), 1e-4
    (slope,), ((curvature,),) = balance.at(q)
    ahead, behind = (balance.work(q, np.array([x])) for x in (h, -h))
    assert_allclose((ahead - behind) / (2 * h), slope, rtol=1e-7)
    assert_allclose((ahead + behind) / h**2, curvature, rtol=1e-4)
