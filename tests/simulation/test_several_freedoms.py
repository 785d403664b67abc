"""Simulations with joints of several freedoms: elliptic functions, conservation laws, events."""

import numpy as np
import pytest
from kinds import EVERY
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ellipj, ellipkinc

import screwdyn as sd
from screwdyn import screw
from screwdyn.testing import random_inertia, random_pose, random_tree

G = 9.81


def random_state(rng, tree):
    return sd.State(tree, tree.integrate(tree.neutral(), rng.uniform(-1, 1, tree.nv)), rng.uniform(-1, 1, tree.nv))


def assert_ledger_closes(run, tolerance=1e-6):
    E = run.energy
    turnover = max(np.ptp(x) for x in (E.kinetic, E.potential, E.work, E.external, E.dissipated, E.exchanged))
    assert np.abs(E.residual).max() < tolerance * turnover


# Elliptic functions ------------------------------------------------------------------------------------------------


def test_free_body_against_elliptic_functions():
    """Euler's equations without torque, for L² > 2 E I₂: ω = (a dn, −b sn, c cn) of p t (Landau and Lifshitz §37)."""
    A, B, C = 3.0, 2.0, 1.0
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    tree.attach(sd.Inertia(2.0, (0, 0, 0), (A, B, C)), to="base", joint=sd.free(), name="body")
    w0, v0 = np.array([1.0, 0.0, 0.5]), np.array([0.3, -0.2, 0.1])
    run = sd.simulate(tree, sd.State(tree, qd=[*w0, *v0]), 40.0, step=0.1, rtol=1e-12, atol=1e-12)

    I = np.array([A, B, C])
    E2, L2 = I @ w0**2, I**2 @ w0**2
    assert L2 > E2 * B
    a, b = np.sqrt((L2 - E2 * C) / (A * (A - C))), np.sqrt((E2 * A - L2) / (B * (A - B)))
    c, p = np.sqrt((E2 * A - L2) / (C * (A - C))), np.sqrt((L2 - E2 * C) * (A - B) / (A * B * C))
    sn, cn, dn, _ = ellipj(p * run.t, (B - C) * (E2 * A - L2) / ((A - B) * (L2 - E2 * C)))
    w = np.stack([run.velocity(f"body[w{axis}]") for axis in "xyz"], axis=1)
    assert_allclose(w, np.stack([a * dn, -b * sn, c * cn], axis=1), atol=1e-9)

    # The velocity of the centre of mass and the momentum are constant.
    p = np.stack([run[f"body[p{axis}]"] for axis in "xyz"], axis=1)
    assert_allclose(p, run.t[:, None] * v0, atol=1e-9)
    momenta = np.array([tree.momentum(state.q, state.qd) for state in run.states])
    assert_allclose(momenta, np.tile(momenta[0], (len(momenta), 1)), atol=1e-9)
    assert np.ptp(run.energy.kinetic) < 1e-9


def test_heavy_top_against_elliptic_functions():
    """cos(nutation) moves between two roots of a cubic, u = u₁ + (u₂ − u₁) sn²; 3 s at 40 rad/s."""
    m, l, A, C = 1.0, 0.5, 0.3, 0.1
    tree = sd.KinematicTree()
    body = sd.Inertia(m, (0, 0, l), (A - m * l**2, A - m * l**2, C))
    tree.attach(body, to="base", joint=sd.spherical(), name="top")
    q = [np.sin(0.3), 0, 0, np.cos(0.3)]
    state = sd.State(tree, q, [0.0, 0.4, 40.0])
    run = sd.simulate(tree, state, 3.0, step=0.02, rtol=1e-12, atol=1e-12)

    axis = np.array([tree.forward_kinematics("top", state.q)[2, :3] for state in run.states])
    w = np.array([state.qd for state in run.states])
    u, Lz, L3 = axis[:, 2], (axis * [A, A, C] * w).sum(axis=1), C * w[:, 2]
    mgl = m * G * l
    energy = 0.5 * (w**2 @ [A, A, C]) + mgl * u
    for kept in (Lz, L3, energy):
        assert np.ptp(kept) < 1e-10 * np.abs(kept).max()
    assert_allclose(run.energy.total, energy, rtol=1e-10)

    E = energy[0] - L3[0] ** 2 / (2 * C)
    cubic = [2 * mgl / A, -2 * E / A - (L3[0] / A) ** 2]
    cubic += [2 * Lz[0] * L3[0] / A**2 - 2 * mgl / A, 2 * E / A - (Lz[0] / A) ** 2]
    low, high, far = np.sort(np.roots(cubic).real)
    modulus, rate = (high - low) / (far - low), np.sqrt(mgl / 2 / A * (far - low))
    rising = 1 if axis[0] @ np.cross(w[0], [0, 0, 1]) >= 0 else -1
    phase = rising * ellipkinc(np.arcsin(np.sqrt((u[0] - low) / (high - low))), modulus)
    assert_allclose(u, low + (high - low) * ellipj(rate * run.t + phase, modulus)[0] ** 2, atol=1e-8)


def test_spherical_pendulum_in_a_plane_is_a_pendulum():
    tree, plane = sd.KinematicTree(), sd.KinematicTree()
    bob = sd.Inertia.cylinder(2.0, 0.05, 0.4, com=(0, 0, -0.5))
    tree.attach(bob, to="base", joint=sd.spherical(damping=0.3), name="bob")
    plane.attach(bob, to="base", joint=sd.revolute("y", damping=0.3), name="bob")
    run = sd.simulate(tree, sd.State(tree, {"bob": [0, np.sin(0.5), 0, np.cos(0.5)]}), 3.0, step=0.05)
    there = sd.simulate(plane, sd.State(plane, [1.0]), 3.0, step=0.05)
    assert_allclose(2 * np.arctan2(run["bob[y]"], run["bob[w]"]), there["bob"], atol=1e-7)
    assert_allclose(run.velocity("bob[wy]"), there.velocity("bob"), atol=1e-7)
    assert_allclose(run.energy.dissipated, there.energy.dissipated, atol=1e-7)


def test_puck_on_a_plane():
    """Free motion in a plane: the velocity of the centre of mass and the angular velocity are constant."""
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    tree.attach(sd.Inertia.cylinder(0.2, 0.04, 0.02), to="base", joint=sd.planar(), name="puck")
    run = sd.simulate(tree, sd.State(tree, qd={"puck[w]": 3.0, "puck[vx]": 1.0, "puck[vy]": -0.5}), 2.0, step=0.1)
    assert_allclose(run["puck[angle]"], 3.0 * run.t, atol=1e-9)
    assert_allclose(run["puck[px]"], run.t, atol=1e-9)
    assert_allclose(run["puck[py]"], -0.5 * run.t, atol=1e-9)


# Conservation ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_floating_tree_keeps_its_spatial_momentum_and_its_energy(seed):
    rng = np.random.default_rng(seed)
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    tree.attach(random_inertia(rng), to="base", joint=sd.free(), at=random_pose(rng), name="trunk")
    limbs = [
        sd.spherical(rng.uniform(-0.3, 0.3, 3)),
        sd.planar(rng.normal(size=3)),
        sd.universal(),
        sd.cylindrical("x"),
    ]
    for i, joint in enumerate(limbs):
        tree.attach(random_inertia(rng), to=tree.links[1 + i // 2], joint=joint, at=random_pose(rng), name=f"limb{i}")
    run = sd.simulate(tree, random_state(rng, tree), 2.0, step=0.1, rtol=1e-11, atol=1e-11)
    momenta = np.array([tree.momentum(state.q, state.qd) for state in run.states])
    assert_allclose(momenta, np.tile(momenta[0], (len(momenta), 1)), atol=1e-8)
    assert np.ptp(run.energy.kinetic) < 1e-8 * run.energy.kinetic[0]


@pytest.mark.parametrize("seed", range(6))
def test_ledger_closes_on_random_trees_of_every_joint(seed):
    """Damping, torques, wrenches, a grasp of a tree by a joint of several freedoms, and its release."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 3, EVERY)
    load = sd.KinematicTree(sd.Link("load", random_inertia(rng)))
    load.attach(random_inertia(rng), to="load", joint=sd.spherical(damping=0.05), at=random_pose(rng), name="tail")
    makers = [sd.spherical, sd.free, sd.planar, sd.cylindrical, sd.universal]
    joint = makers[seed % 5](damping=0.1, friction=0.02, name="hook")
    events = [
        sd.Grasp(load, to="link3", joint=joint, at=random_pose(rng), twist=rng.normal(size=6), time=0.1),
        sd.Release("load", time=0.3),
    ]
    push = dict(zip(tree.coordinates, rng.normal(size=tree.nv), strict=True))
    wrench = rng.normal(size=6)
    run = sd.simulate(
        tree,
        random_state(rng, tree),
        0.4,
        lambda t, s: push,
        events,
        wrenches=lambda t, s: {"link3": wrench},
        step=0.02,
    )
    assert_ledger_closes(run)
    assert all(np.isfinite(run.torque(name)[0]) for name in tree.coordinates)
    held = np.array(["load" in state.tree.links for state in run.states])
    for history, names in (
        (run.__getitem__, joint.position_names("hook")),
        (run.velocity, joint.freedom_names("hook")),
    ):
        for name in names:
            assert_array_equal(np.isnan(history(name)), ~held)
    for state in run.states:
        turns = [state.q[state.positions.index(f"{n[:-3]}[x]") :][:4] for n in state.positions if n.endswith("[w]")]
        assert_allclose(np.linalg.norm(np.reshape(turns, (-1, 4)), axis=1), 1, rtol=1e-15)


def test_quaternions_need_no_projection():
    """The integrator keeps the length of a quaternion without projection; the motion does not depend on it."""
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.box(1.0, (0.1, 0.2, 0.3), (0.1, 0, 0.2)), to="base", joint=sd.spherical(), name="hip")
    state = sd.State(tree, qd=[1.0, -2.0, 10.0])
    coarse = sd.simulate(tree, state, 2.0, step=0.5, rtol=1e-6, atol=1e-8)
    fine = sd.simulate(tree, state, 2.0, step=0.5)
    assert_allclose(coarse.states[-1].q, fine.states[-1].q, atol=1e-4)
    longer = sd.State(tree, qd=state.qd)
    longer.q *= 1.0005
    assert_allclose(sd.simulate(tree, longer, 2.0, step=0.5).states[-1].q, fine.states[-1].q, atol=1e-8)


# Events ------------------------------------------------------------------------------------------------------------


def test_released_payload_flies_a_parabola():
    """A payload released from a spherical joint, then simulated on a free joint."""
    tree = sd.robots.ur5()
    rng = np.random.default_rng(4)
    crate = sd.Inertia.box(1.5, (0.2, 0.3, 0.1), (0.05, 0.02, 0.1))
    start = tree.grasp(
        sd.State(tree, rng.uniform(-1, 1, 6), rng.uniform(-1, 1, 6)),
        crate,
        to="tool0",
        joint=sd.spherical(name="hook"),
        twist="at_rest",
        name="crate",
    ).state
    run = sd.simulate(tree, start, 0.2, events=[sd.Release("crate", time=0.1)], step=0.01)
    free = run.events[0].event.released
    before = run.states[np.flatnonzero(run.t == 0.1)[0]]
    held = before.tree
    assert_allclose(free.pose, held.forward_kinematics("crate", before.q), atol=1e-14)
    assert_allclose(free.twist, held.jacobian("crate", before.q, "body") @ before.qd, atol=1e-13)
    flight = sd.KinematicTree()
    flight.attach(free.tree, to="base", joint=sd.free(), at=free.pose, name="crate")
    flown = sd.simulate(flight, sd.State(flight, qd=free.twist), 0.5, step=0.05)
    place = np.array([flight.forward_kinematics("crate", s.q) @ [*crate.com, 1] for s in flown.states])[:, :3]
    R, t = free.pose[:3, :3], flown.t[:, None]
    velocity = R @ (free.twist[3:] + np.cross(free.twist[:3], crate.com))
    assert_allclose(place, place[0] + velocity * t - 0.5 * G * np.array([0, 0, 1]) * t**2, atol=1e-9)
    assert_allclose(np.ptp(flown.energy.total), 0, atol=5e-8)


def test_names_of_positions_and_rates_stay_with_their_joints():
    """Releasing the first of two payloads on ball joints moves the second one's numbers, not their names."""
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    tree.attach(sd.Inertia.point(1.0), to="base", joint=sd.prismatic("x"), name="cart")
    state = sd.State(tree)
    for name, spin in (("one", 1.0), ("two", 2.0)):
        ball = sd.Inertia.sphere(1.0, 0.1)
        state = tree.grasp(state, ball, to="cart", joint=sd.spherical(), twist=[0, 0, spin, 0, 0, 0], name=name).state
    run = sd.simulate(tree, state, 1.0, events=[sd.Release("one", time=0.5)], step=0.05)
    assert_allclose(run["two[z]"], np.sin(run.t), atol=1e-9)
    assert_allclose(run.velocity("two[wz]"), 2.0, atol=1e-9)
    assert np.isnan(run["one[w]"][-1])
    assert run.states[-1].positions == ("cart", "two[x]", "two[y]", "two[z]", "two[w]")
    assert run.positions == ("cart", *(f"{n}[{i}]" for n in ("one", "two") for i in "xyzw"))
    with pytest.raises(sd.UnknownLinkError, match=r"no coordinate 'two\[wz\]'; did you mean 'two\[z\]' or"):
        run["two[wz]"]
    with pytest.raises(sd.UnknownLinkError, match=r"no coordinate 'two\[z\]'"):
        run.velocity("two[z]")


def test_torques_of_a_free_joint_are_a_wrench_on_its_link():
    """The torques of a free joint are a wrench on the body, in its own frame."""
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.box(2.0, (0.1, 0.2, 0.3), (0.1, 0, 0)), to="base", joint=sd.free(), name="drone")
    start = sd.State(tree, tree.integrate(tree.neutral(), [0.3, -0.5, 0.2, 1.0, 2.0, 3.0]))
    run = sd.simulate(tree, start, 0.5, lambda t, state: state.tree.gravity_vector(state.q), step=0.05)
    assert_allclose(run.states[-1].q, start.q, atol=1e-12)
    same = sd.simulate(
        tree, start, 0.5, wrenches=lambda t, state: {"drone": state.tree.gravity_vector(state.q)}, step=0.05
    )
    assert_allclose(same.states[-1].q, start.q, atol=1e-12)
    pose = tree.forward_kinematics("drone", start.q)
    assert_allclose(pose, tree.forward_kinematics("drone", run.states[-1].q), atol=1e-12)
    assert_allclose(screw.log(pose)[:3], [0.3, -0.5, 0.2], atol=1e-14)


def test_torques_of_a_ball_joint_by_its_name():
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.box(2.0, (0.1, 0.2, 0.3)), to="base", joint=sd.spherical(), name="hip")
    run = sd.simulate(tree, sd.State(tree), 0.1, lambda t, state: {"hip": [0.1, 0.2, -0.3]}, step=0.05)
    assert [run.torque(f"hip[w{axis}]")[0] for axis in "xyz"] == [0.1, 0.2, -0.3]
    with pytest.raises(
        sd.ShapeError, match=r"torque of 'hip' has shape \(2,\); expected one number for each of: hip\[wx\]"
    ):
        sd.simulate(tree, sd.State(tree), 0.1, lambda t, state: {"hip": [0.1, 0.2]})
