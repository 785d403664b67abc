"""Payloads that bring their pose and motion, start positions, payloads that hang, and free bodies in the world."""

from dataclasses import replace

import maximal
import numpy as np
import pytest
from cases import close, norm
from hypothesis import given
from hypothesis import strategies as st
from kinds import EVERY, MOVING, random_joint
from numpy.testing import assert_allclose, assert_array_equal
from small_arm import fingerprint

import screwdyn as sd
from screwdyn import screw
from screwdyn.testing import random_inertia, random_pose, random_tree

BALL = sd.Inertia.sphere(1.0, 0.1)


def moving(rng, tree):
    return sd.State(tree, tree.integrate(tree.neutral(), rng.uniform(-1, 1, tree.nv)), rng.uniform(-2, 2, tree.nv))


def robot_with_load(seed, kind):
    """A robot that holds a tree of two links by a joint, all in motion."""
    rng = np.random.default_rng(seed)
    tree, load = random_tree(rng, 4, MOVING), sd.KinematicTree(sd.Link("crate", random_inertia(rng)))
    load.attach(random_inertia(rng), to="crate", joint=random_joint(rng, "revolute"), at=random_pose(rng), name="lid")
    joint = random_joint(rng, kind, "hook")
    tree.attach(load, to="link4", joint=joint, at=random_pose(rng))
    return rng, tree, moving(rng, tree), joint


# The law -------------------------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.sampled_from(EVERY), st.booleans())
def test_grasp_in_maximal_coordinates(seed, kind, floats):
    """Of a tree of two links, by every joint, on a fixed base and on a floating trunk."""
    rng = np.random.default_rng(seed)
    tree, load = sd.KinematicTree("world"), sd.KinematicTree(sd.Link("crate", random_inertia(rng)))
    mount = sd.free(passive=True) if floats else sd.fixed()
    tree.attach(sd.Link("trunk", random_inertia(rng)), to="world", joint=mount)
    tree.attach(random_tree(rng, 4, MOVING), to="trunk", at=random_pose(rng), prefix="r/")
    load.attach(random_inertia(rng), to="crate", joint=random_joint(rng, "universal"), at=random_pose(rng), name="lid")
    state, inner, V = moving(rng, tree), moving(rng, load), rng.uniform(-2, 2, 6)
    before = maximal.twists(tree, state.q, state.qd)
    lid = maximal.twists(load, inner.q, inner.qd)["lid"]
    before |= {"crate": V, "lid": screw.Ad(screw.inverse(load.forward_kinematics("lid", inner.q))) @ V + lid}
    joint = random_joint(rng, kind, "hook")
    event = tree.grasp(
        state,
        load,
        to="r/link3",
        joint=joint,
        at=random_pose(rng),
        twist=V,
        body_state=inner,
        start=joint_positions(rng, joint) or None,
    )
    expected = maximal.impact(tree, event.state.q, before)
    found = maximal.twists(tree, event.state.q, event.state.qd)
    for name in tree.links[1:]:
        close(found[name], expected[name], norm([*before.values()]), 1e-8)
    energy = maximal.kinetic_energy(tree, before)
    close(event.energy_lost, energy - maximal.kinetic_energy(tree, expected), energy, 1e-9)
    pushes = {name: I @ (expected[name] - before[name]) for name, I in maximal.inertias(tree).items()}
    into = screw.Ad(screw.inverse(load.forward_kinematics("lid", inner.q)))
    close(event.impulse, pushes["crate"] + into.T @ pushes["lid"], sum(map(norm, pushes.values())) + energy, 1e-8)


# Released bodies -----------------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.sampled_from([kind for kind in EVERY if kind != "universal"]))
def test_a_released_body_is_grasped_again_as_it_is(seed, kind):
    _, tree, state, joint = robot_with_load(seed, kind)
    names = tree.links
    free = tree.release(state, "crate")
    event = tree.grasp(free.state, free.released, to="link4", joint=joint)
    assert tree.links == names
    assert event.link == "crate"
    close(event.energy_lost, 0, tree.kinetic_energy(event.state.q, event.state.qd), 1e-14)
    for name in state.coordinates:
        close(event.state.velocity(name), state.velocity(name), norm(state.qd), 1e-8)
    assert event.state["lid"] == state["lid"]
    close(tree.forward_kinematics("lid", event.state.q), lid_of(free), 1, 1e-12)
    close(event.kinetic_energy_brought, free.released.kinetic_energy, event.kinetic_energy_brought, 1e-13)


def lid_of(event):
    free = event.released
    return free.pose @ free.tree.forward_kinematics("lid", free.state.q)


def test_a_released_body_may_be_caught_elsewhere_and_later():
    _, tree, state, _ = robot_with_load(3, "revolute")
    free = tree.release(state, "crate")
    flown = replace(free.released, pose=free.released.pose @ screw.exp([0, 0, 0.2, 0.1, 0, 0]))
    event = tree.grasp(free.state, flown, to="link1", name="box", prefix="new/")
    assert tree.parent("new/box") == "link1"
    assert event.state["new/lid"] == state["lid"]
    assert_allclose(tree.forward_kinematics("new/box", event.state.q), flown.pose, atol=1e-14)


# Pose, at and start --------------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.sampled_from(EVERY))
def test_a_payload_with_a_pose_is_attached_where_it_is(seed, kind):
    rng = np.random.default_rng(seed)
    tree, joint, pose = random_tree(rng, 3, MOVING), random_joint(rng, kind, "hook"), random_pose(rng)
    state = moving(rng, tree)
    start = dict(zip(joint.position_names("hook"), joint_positions(rng, joint), strict=True))
    event = tree.grasp(
        state, BALL, to="link3", joint=joint, pose=pose, start=start or None, twist=rng.uniform(-1, 1, 6), name="ball"
    )
    close(tree.forward_kinematics("ball", event.state.q), pose, 1, 1e-12)
    assert {name: event.state[name] for name in start} == pytest.approx(start, abs=1e-15)
    assert_array_equal(event.payload.pose[3], [0, 0, 0, 1])
    close(event.payload.pose, pose, 1, 1e-12)
    # The same, with the home known and the positions worked out.
    home = tree.topology.attachments["ball"].home
    twin = tree.copy()
    twin.detach("ball")
    again = twin.grasp(state, BALL, to="link3", joint=joint, pose=pose, at=home, twist=event.payload.twist, name="ball")
    if kind != "universal":  # two pairs of angles reach the same pose
        for name, value in start.items():
            assert abs(abs(again.state[name]) - abs(value)) < 1e-9
    close(twin.forward_kinematics("ball", again.state.q), pose, 1, 1e-12)


def joint_positions(rng, joint):
    tree = sd.KinematicTree()
    tree.attach(BALL, to="base", joint=joint)
    return tree.integrate(tree.neutral(), rng.uniform(-1, 1, tree.nv)).tolist()


def test_start_without_a_pose_moves_the_payload():
    tree = sd.robots.pelican()
    state = sd.State(tree, [0.3, -0.2], [1.0, 0.5])
    event = tree.grasp(state, BALL, to="link2", joint=sd.revolute("z", (0, 0.2, 0)), start=0.4, twist="co_moving")
    assert event.state["payload"] == 0.4
    expected = tree.forward_kinematics("link2", event.state.q) @ screw.exp(0.4 * tree.joint("payload").screw)
    assert_allclose(tree.forward_kinematics("payload", event.state.q), expected, atol=1e-15)
    assert_allclose(event.payload.pose, expected, atol=1e-15)
    assert_array_equal(event.state.qd, [1.0, 0.5, 0.0])


# Hanging -------------------------------------------------------------------------------------------------------------


def crate(com=(0, 0, -0.4)):
    return sd.Inertia.box(2.0, (0.1, 0.1, 0.1), com=com)


@given(st.integers(0, 2**32 - 1), st.sampled_from(["spherical", "universal", "revolute"]))
def test_a_hanging_payload_hangs_plumb(seed, kind):
    """Its centre of mass is below the joint, as far as the joint allows; nothing accelerates it."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 3)
    state = sd.State(tree, rng.uniform(-1, 1, tree.nq))
    joint = {"spherical": sd.spherical(), "universal": sd.universal("x", "y"), "revolute": sd.revolute("x")}[kind]
    event = tree.grasp(state, crate(), to="link3", joint=joint, start="hanging", twist="co_moving", name="crate")
    own = [k for k, name in enumerate(event.state.coordinates) if name not in state.coordinates]
    g = tree.gravity_vector(event.state.q)
    assert np.abs(g[own]).max() < 1e-9
    assert_array_equal(event.state.qd, np.zeros(tree.nv))
    assert_array_equal(event.state.q[: len(state.q)], state.q)
    if kind != "revolute":
        T = tree.forward_kinematics("crate", event.state.q)
        down = tree.gravity / np.linalg.norm(tree.gravity)
        assert_allclose(T[:3, :3] @ [0, 0, -1], down, atol=1e-7)


@pytest.mark.parametrize(("q", "com"), [(-1.55, (0, 0, 0.2)), (0.0, (0.2, 0, 0)), (2.1, (0.2, 0, 0))])
def test_a_payload_hangs_by_the_nearer_quaternion(q, com):
    """Of the two quaternions of its orientation; the descent may end in the other."""
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.rod(1, 1, com=(0.5, 0, 0)), to="base", joint=sd.revolute("y"), name="arm")
    given = {"to": "arm", "joint": sd.spherical(passive=True), "name": "crate", "twist": "at_rest"}
    event = tree.grasp(sd.State(tree, [q]), crate(com), start="hanging", **given)
    assert event.state["crate[w]"] >= 0
    T = tree.forward_kinematics("crate", event.state.q)
    assert_allclose(T[:3, :3] @ com / np.linalg.norm(com), [0, 0, -1], atol=1e-7)


def test_a_payload_hangs_on_its_spring_and_by_its_own_joints():
    """On a spring of rest 0: m g l sin q = k (tilt − q); a passive lid hangs too, an active one keeps its position."""
    tree = sd.KinematicTree()
    tree.attach(sd.Link("arm", sd.Inertia.sphere(1, 0.1)), to="base", joint=sd.revolute("x"))
    load = sd.KinematicTree(sd.Link("crate", crate()))
    load.attach(crate(), to="crate", joint=sd.revolute("x", passive=True, name="loose"), name="lid")
    load.attach(crate(), to="crate", joint=sd.revolute("x", name="held"), name="flap")
    inner = sd.State(load, {"loose": 0.1, "held": 0.2})
    joint = sd.revolute("x", stiffness=30.0, name="hook")
    event = tree.grasp(
        sd.State(tree, [0.6]), load, to="arm", joint=joint, start="hanging", twist="at_rest", body_state=inner
    )
    hook, loose, held = (event.state[name] for name in ("hook", "loose", "held"))
    assert held == 0.2
    assert_allclose(0.6 + hook + loose, 0, atol=1e-9)
    moments = 2 * 9.81 * 0.4 * (np.sin(0.6 + hook) + np.sin(0.8 + hook))
    assert_allclose(moments, -30.0 * hook, rtol=1e-9)
    assert_array_equal(event.payload.state.q, [loose, held])
    assert event.energy_lost == 0


@pytest.mark.parametrize("limits", [(-0.1, 0.1), (-4.0, 4.0)])
def test_a_payload_hangs_within_the_limits_of_its_joint(limits):
    tree = sd.robots.pelican()
    state, hook = sd.State(tree, [0.4, 0.3]), sd.revolute("z", passive=True, limits=limits, name="hook")
    given = {"to": "link2", "joint": hook, "start": "hanging", "twist": "at_rest", "name": "crate"}
    if limits[1] > 1:
        event = tree.grasp(state, crate((0.1, 0, 0)), **given)
        assert abs(tree.gravity_vector(event.state.q)[2]) < 1e-9
        return
    before = tree.topology
    with pytest.raises(sd.EquilibriumError, match=r"'hook' .* beyond the (lower|upper) limit of joint 'hook'"):
        tree.grasp(state, crate((0.1, 0, 0)), **given)
    assert tree.topology is before


def test_a_chain_hangs_by_passive_joints_of_several_axes():
    """Each freedom counts once: those of the hook, and those of the payload beyond it."""
    body = sd.Inertia.box(1.0, (1, 0.1, 0.2), com=(0.5, 0.1, 0))
    tree, chain = sd.KinematicTree(), sd.KinematicTree("shell")
    chain.attach(body, to="shell", joint=sd.universal("y", "z", passive=True), at=(0.3, 0, 0), name="inner")
    tree.attach(body, to="base", joint=sd.revolute("y"), name="arm")
    given = {"to": "arm", "joint": sd.universal("x", "y", passive=True), "at": (1, 0, 0), "twist": "co_moving"}
    q = tree.grasp(sd.State(tree, [0.4]), chain, start="hanging", **given).state.q
    assert_allclose(tree.gravity_vector(q)[1:], 0, rtol=0, atol=1e-12)


def test_a_hanging_payload_stays_at_rest_in_a_run():
    tree = sd.robots.pelican()
    tree.gravity = (0, -9.81, 0)
    tree.lock("shoulder", at=0.5)
    tree.lock("elbow", at=0.4)
    hook = sd.revolute("z", (0.1, 0.2, 0), passive=True, name="hook")
    grasp = sd.Grasp(crate((0.1, 0, 0)), to="link2", joint=hook, start="hanging", twist="at_rest", time=0.1)
    run = sd.simulate(tree, sd.State(tree), 0.5, events=[grasp])
    swing = run["hook"][run.t > 0.1]
    assert np.ptp(swing) < 1e-9
    assert abs(swing[0]) > 0.1


# Free bodies in the world --------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.sampled_from(EVERY))
def test_release_into_the_world_changes_nothing_but_the_joint(seed, kind):
    _, tree, state, _ = robot_with_load(seed, kind)
    twin, handle = tree.copy(), sd.Handle("crate", tree.topology.attachments["crate"].serial)
    event, away = tree.release(state, handle, into_world=True), twin.release(state, "crate")
    joint = tree.joint("crate")
    assert (tree.parent("crate"), joint.kind, joint.passive) == (tree.base, "free", True)
    assert tree.coordinates[-7:] == (*(f"crate[{x}]" for x in ("wx", "wy", "wz", "vx", "vy", "vz")), "lid")
    assert (event.energy_lost, event.kinetic_energy_brought, event.link) == (0, 0, "crate")
    for name in away.state.coordinates:
        assert event.state.velocity(name) == away.state.velocity(name)
    assert_array_equal([event.state.velocity(name) for name in tree.coordinates[-7:-1]], away.released.twist)
    for link in ("crate", "lid"):
        pose = tree.forward_kinematics(link, event.state.q)
        assert_allclose(pose, away.released.pose if link == "crate" else lid_of(away), atol=1e-12)
    position = [event.state[f"crate[p{x}]"] for x in "xyz"]
    assert_allclose(position, tree.forward_kinematics("crate", event.state.q)[:3, 3], atol=1e-13)
    assert_array_equal(event.released.pose, away.released.pose)
    # Grasped by name from there, as by the released body.
    hook = sd.spherical(name="hook2")
    by_name = tree.grasp(event.state, "crate", to="link1", joint=hook)
    by_body = twin.grasp(away.state, away.released, to="link1", joint=hook)
    for name in by_body.state.coordinates:
        close(by_name.state.velocity(name), by_body.state.velocity(name), norm(by_body.state.qd), 1e-8)
    close(by_name.energy_lost, by_body.energy_lost, by_body.energy_lost, 1e-8)
    close(by_name.payload.twist, by_body.payload.twist, norm(by_body.payload.twist), 1e-9)
    close(by_name.payload.pose, by_body.payload.pose, 1, 1e-12)
    assert (by_name.kinetic_energy_brought, by_name.handle) == (0, handle)
    assert tree.release(by_name.state, handle).released.tree.links == ("crate", "lid")


@pytest.mark.slow
def test_a_run_shows_the_flight_of_a_released_body():
    """Thrown by an arm, the centre of a ball flies on a parabola until a wall catches it."""
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.rod(1.0, 0.5, axis="x", com=(0.25, 0, 0)), to="base", joint=sd.revolute("y"), name="arm")
    tree.attach(BALL, to="arm", at=(0.5, 0, 0), name="ball")
    events = [
        sd.Release("ball", into_world=True, time=0.1),
        sd.Grasp("ball", to="base", joint=sd.revolute("y", passive=True, name="wall"), time=0.4),
    ]
    run = sd.simulate(tree, sd.State(tree, qd=[-6.0]), 0.5, events=events, step=0.005)
    flight = (run.t >= 0.1) & (run.t <= 0.4) & ~np.isnan(run["ball[px]"])
    t = run.t[flight] - 0.1
    first = run.states[int(np.flatnonzero(flight)[0])]
    twist = run.events[0].event.released.twist
    v = run.events[0].event.released.pose[:3, :3] @ twist[3:]
    for k, axis in enumerate("xyz"):
        expected = first[f"ball[p{axis}]"] + v[k] * t + 0.5 * tree.gravity[k] * t**2
        assert_allclose(run[f"ball[p{axis}]"][flight], expected, atol=1e-8)
    assert np.ptp(run["ball[pz]"][flight]) > 0.1
    assert np.abs(run.energy.residual).max() < 1e-7
    assert [(happened.verb, happened.link) for happened in run.events] == [("release", "ball"), ("grasp", "ball")]
    assert run.events[1].event.energy_lost > 0.1
    assert run.plot().axes


# Errors --------------------------------------------------------------------------------------------------------------

REFUSED = {
    "a FreeBody with a twist": (sd.ShapeError, "a FreeBody has its own twist; leave out twist=", {"twist": "at_rest"}),
    "a FreeBody with pose and state": (
        sd.ShapeError,
        "a FreeBody has its own pose, body_state; leave out pose=, body_state=",
        {"pose": (0, 0, 0), "body_state": sd.State(sd.robots.pelican())},
    ),
    "a name with a twist": (
        sd.ShapeError,
        "'crate' is a link of the tree, which has its own twist, name, prefix; leave out",
        {"body": "crate", "twist": "at_rest", "name": "x", "prefix": "y"},
    ),
    "a name that hangs": (sd.ShapeError, "'crate' stays where it is", {"body": "crate", "start": "hanging"}),
    "the base": (sd.TopologyError, "is the base", {"body": "base"}),
    "beneath itself": (
        sd.TopologyError,
        "cannot be moved to 'lid', which is beyond it",
        {"body": "crate", "to": "lid"},
    ),
    "an unknown word": (sd.ShapeError, "or 'hanging' for a payload without a pose; got 'up'", {"start": "up"}),
    "a FreeBody that hangs": (sd.ShapeError, "or 'hanging' for a payload without a pose", {"start": "hanging"}),
    "a start of a fixed joint": (
        sd.ShapeError,
        "is rigid, and has no start or other position: leave it out; got 0.1",
        {"start": 0.1},
    ),
    "two numbers": (
        sd.ShapeError,
        "the position of joint 'payload' must be a finite number for each of: payload",
        {"body": BALL, "twist": "at_rest", "joint": sd.revolute(), "start": [1, 2]},
    ),
    "a short quaternion": (
        sd.ShapeError,
        "holds a quaternion of length 0.5",
        {"body": BALL, "twist": "at_rest", "joint": sd.spherical(), "start": [0, 0, 0, 0.5]},
    ),
    "out of reach": (
        sd.ShapeError,
        "'ball' is not where the fixed joint at= can carry it",
        {"at": (9, 9, 9), "name": "ball"},
    ),
    "nothing to hang by": (
        sd.EquilibriumError,
        "'payload' hangs at rest by its prismatic joint .* give start= as positions .*nothing holds 'payload'",
        {"body": BALL, "twist": "at_rest", "joint": sd.prismatic("z"), "start": "hanging"},
    ),
    "no joint": (sd.TopologyError, "joint must be made by", {"joint": "hook", "start": 0.1}),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_grasps_change_nothing(case):
    error, message, changed = REFUSED[case]
    _, tree, state, _ = robot_with_load(5, "revolute")
    free = tree.copy().release(state, "crate").released
    # In an upright world, so that a vertical slide finds nothing to hang by.
    before = fingerprint_of(tree)
    options = {"body": free, "to": "link1"} | changed
    if options["body"] is free:
        options.setdefault("name", "other")
        options.setdefault("prefix", "new/") if "name" not in changed else options.setdefault("prefix", "n/")
        message = message.replace("'ball'", "'n/ball'")
    with pytest.raises(error, match=message):
        tree.grasp(state, **options)
    assert fingerprint_of(tree) == before


def fingerprint_of(tree):
    return fingerprint(tree) if tree.nq == tree.nv else (tree.topology, tree.revision)
