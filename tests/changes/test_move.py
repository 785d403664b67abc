"""Changes in motion other than grasp and release: against maximal coordinates, laws, and cases by hand."""

import pickle
from dataclasses import dataclass

import maximal
import numpy as np
import pytest
import sympy
from cases import close, norm
from hypothesis import given
from hypothesis import strategies as st
from kinds import EVERY, MOVING, random_joint
from numpy.testing import assert_allclose, assert_array_equal
from small_arm import fingerprint

import screwdyn as sd
from screwdyn import screw
from screwdyn.changes import law
from screwdyn.testing import random_inertia, random_pose, random_tree

# Relative to the terms that cancel; the error is rounding times the condition of the mass matrix.
TIGHT = 1e-8


@dataclass
class Motion:
    """A tree in motion, a link of it with a moving joint, and numbers for a change."""

    tree: sd.KinematicTree
    state: sd.State
    link: str
    rng: np.random.Generator

    @property
    def joint(self):
        return next(name for name in self.tree.joints if self.tree.topology.carried[name] == self.link)

    @property
    def own(self):
        return list(self.tree.topology.attachments[self.link].coordinates)

    def __repr__(self):
        return f"<{self.tree}\n{self.state}, {self.link}>"


@st.composite
def motions(draw, floating=None):
    """Random trees, on a fixed base or on a floating trunk, in random motion."""
    n, kinds = draw(st.integers(1, 6)), draw(st.sampled_from([MOVING, *((kind,) for kind in MOVING)]))
    floats = draw(st.booleans()) if floating is None else floating
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    tree = random_tree(rng, n, kinds)
    if floats:
        robot, tree = tree, sd.KinematicTree("world")
        tree.attach(sd.Link("trunk", random_inertia(rng)), to="world", joint=sd.free(passive=True))
        tree.attach(robot, to="trunk", at=random_pose(rng), prefix="r/")
    state = sd.State(tree, tree.integrate(tree.neutral(), rng.uniform(-2, 2, tree.nv)), rng.uniform(-2, 2, tree.nv))
    candidates = [link for link in tree.links if "link" in link]
    return Motion(tree, state, candidates[int(rng.integers(len(candidates)))], rng)


def assert_impact(motion, event, before, push=None):
    """The state after an event is that of maximal coordinates, from the twists before it; so are energy and impulse."""
    tree, link = motion.tree, motion.link
    bodies, old = maximal.inertias(tree), maximal.kinetic_energy(tree, before)
    expected = maximal.impact(tree, event.state.q, before)
    found = maximal.twists(tree, event.state.q, event.state.qd)
    scale = norm([*before.values()])
    for name, V in expected.items():
        close(found[name], V, scale, TIGHT)
    close(event.energy_lost, old - maximal.kinetic_energy(tree, expected), old, TIGHT)
    assert event.energy_lost >= 0
    assert event.kinetic_energy_brought == 0
    assert event.state.tree is tree
    total = np.zeros(6)
    for name in tree.subtree(link):
        T = screw.inverse(tree.forward_kinematics(name, event.state.q)) @ tree.forward_kinematics(link, event.state.q)
        total += screw.Ad(T).T @ bodies[name] @ (expected[name] - before[name])
    if isinstance(event, sd.ImpactEvent):
        close(event.impulse, total, norm(total) + sum(map(norm, bodies.values())) * scale, TIGHT)


def assert_poses_stay(tree, poses, state):
    for link, pose in poses.items():
        close(tree.forward_kinematics(link, state.q), pose, 1 + norm(pose), 1e-12)


def poses(motion):
    return {link: motion.tree.forward_kinematics(link, motion.state.q) for link in motion.tree.links}


def twists(motion):
    return maximal.twists(motion.tree, motion.state.q, motion.state.qd)


# Lock and unlock ---------------------------------------------------------------------------------------------------


@given(motions())
def test_lock_in_maximal_coordinates(motion):
    tree, before, where = motion.tree, twists(motion), poses(motion)
    event = tree.lock(motion.joint, motion.state)
    assert_poses_stay(tree, where, event.state)
    assert_impact(motion, event, before)
    assert (event.link, event.joint) == (motion.link, motion.joint)
    assert tree.locked == (motion.joint,)


@given(motions())
def test_lock_satisfies_the_rows_of_the_mass_matrix(motion):
    """M_rr q̇_r⁺ = M_rr q̇_r⁻ + M_rj q̇_j⁻, and the row of the lock is its impulse."""
    tree, state = motion.tree, motion.state
    M, names = tree.mass_matrix(state.q), state.coordinates
    event = tree.lock(motion.joint, state)
    after = np.array([dict(event.state.to_dict()["qd"]).get(name, 0.0) for name in names])
    impulse = M @ (after - state.qd)
    own = np.isin(names, event.state.coordinates, invert=True)
    close(impulse[~own], np.zeros(np.sum(~own)), norm(M) * norm(state.qd), TIGHT)
    close(event.impulse, impulse[own], norm(M) * norm(state.qd), TIGHT)
    # Setting the rate to zero alone would be another motion.
    assert event.state.coordinates == tuple(name for name in names if name in event.state.coordinates)


@given(motions())
def test_unlock_restores_every_bit_and_continues_the_rates(motion):
    tree, names, labels = motion.tree, motion.tree.coordinates, motion.tree.positions
    *before, _, nodes, edges, numbers = fingerprint_of_groups(tree)
    locked = tree.lock(motion.joint, motion.state)
    assert motion.joint in tree.joints
    assert not {*motion.own} & {*tree.coordinates}
    event = tree.unlock(motion.joint, locked.state)
    assert (tree.coordinates, tree.positions, tree.locked) == (names, labels, ())
    assert_allclose(event.state.q, motion.state.q, rtol=0, atol=1e-15)
    for name in names:
        assert event.state.velocity(name) == (0.0 if name in motion.own else locked.state.velocity(name))
    assert (event.energy_lost, event.kinetic_energy_brought) == (0, 0)
    assert_array_equal(event.impulse, np.zeros(len(motion.own)))
    *after, _, new_nodes, new_edges, new_numbers = fingerprint_of_groups(tree)
    assert (after, new_nodes, new_edges, new_numbers) == (before, nodes, edges, numbers)


def fingerprint_of_groups(tree):
    """As ``fingerprint``, for trees with quaternions."""
    q = tree.integrate(tree.neutral(), np.linspace(-1, 1, tree.nv))
    edges = [(a, b, e["joint"], e["home"].tobytes(), e["name"], e["locked"]) for a, b, e in tree.graph.edges(data=True)]
    nodes = [(name, data["link"], data["serial"]) for name, data in tree.graph.nodes.items()]
    numbers = [tree.mass_matrix(q), tree.coriolis_matrix(q, np.ones(tree.nv)), tree.gravity_vector(q)]
    return tree.links, tree.joints, tree.coordinates, tree.revision, nodes, edges, [a.tobytes() for a in numbers]


@given(motions(), st.sampled_from(MOVING))
def test_grasp_by_a_joint_then_lock_is_a_fixed_grasp(motion, kind):
    tree, rng = motion.tree, motion.rng
    options = {"to": motion.link, "at": random_pose(rng), "twist": rng.uniform(-2, 2, 6), "name": "load"}
    body, joint, twin = random_inertia(rng), random_joint(rng, kind, "pin"), tree.copy()
    at_once = twin.grasp(motion.state, body, **options)
    hung = tree.grasp(motion.state, body, joint=joint, **options)
    locked = tree.lock("pin", hung.state)
    assert locked.state.coordinates == at_once.state.coordinates
    close(locked.state.qd, at_once.state.qd, norm(at_once.state.qd), TIGHT)
    close(hung.energy_lost + locked.energy_lost, at_once.energy_lost, at_once.energy_lost, TIGHT)


def test_coaxial_wheels_locked():
    """Angular momentum about the axle stays: ω⁺ = ω₁ + I₂ ω₂ / (I₁ + I₂)."""
    I1, I2, first, second = 0.7, 0.2, 3.0, 5.0
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia(1.0, tensor=(1, 1, I1)), to="base", joint=sd.revolute("z"), name="inner")
    tree.attach(sd.Inertia(1.0, tensor=(1, 1, I2)), to="inner", joint=sd.revolute("z"), name="outer")
    event = tree.lock("outer", sd.State(tree, [0.1, 0.2], [first, second]))
    assert_allclose(event.state.qd, [first + I2 * second / (I1 + I2)], rtol=1e-14)
    assert_allclose(event.impulse, [-I1 * I2 / (I1 + I2) * second], rtol=1e-14)
    assert_allclose(event.energy_lost, 0.5 * I1 * I2 / (I1 + I2) * second**2, rtol=1e-14)


# Other joints, other inertias ----------------------------------------------------------------------------------------


@given(motions(), st.sampled_from(EVERY))
def test_replaced_joint_in_maximal_coordinates(motion, kind):
    tree, before, where = motion.tree, twists(motion), poses(motion)
    links, handles = tree.links, fingerprint_of_groups(tree)[4]
    joint = random_joint(motion.rng, kind)
    event = tree.replace_joint(motion.link, joint, motion.state)
    assert_poses_stay(tree, where, event.state)
    assert_impact(motion, event, before)
    assert tree.links == links
    assert fingerprint_of_groups(tree)[4] == handles
    # In place, and the name stays.
    assert tree.joint(motion.joint).kind == joint.kind


@given(motions())
def test_a_joint_replaced_by_itself_loses_nothing(motion):
    tree, joint = motion.tree, motion.tree.joint(motion.joint)
    energy = tree.kinetic_energy(motion.state.q, motion.state.qd)
    event = tree.replace_joint(motion.link, joint, motion.state)
    assert tree.coordinates == motion.state.coordinates
    if joint.kind != "universal":  # which starts with its first axis as at angle2 = 0
        close(event.energy_lost, 0, energy, 1e-20)
        close(event.state.qd, motion.state.qd, norm(motion.state.qd), 1e-12)


@given(motions())
def test_a_free_joint_takes_the_motion_on(motion):
    tree, others = motion.tree, [name for name in motion.tree.coordinates if name not in motion.own]
    before = twists(motion)
    event = tree.replace_joint(motion.link, sd.free(name="loose"), motion.state)
    for name in others:
        close(event.state.velocity(name), motion.state.velocity(name), norm(motion.state.qd), 1e-13)
    after = maximal.twists(tree, event.state.q, event.state.qd)
    close(after[motion.link], before[motion.link], norm(before[motion.link]), 1e-12)


def test_joints_of_links_without_mass_that_only_armatures_resist():
    tree = sd.KinematicTree()
    tree.attach(sd.Link("hub"), to="base", joint=sd.revolute(name="a", armature=0.1))
    tree.attach(sd.Link("rim"), to="hub", joint=sd.revolute(name="b", armature=0.2))
    event = tree.replace_joint("hub", sd.prismatic(name="slide", armature=0.3), sd.State(tree, [0.0, 0.0], [2.0, 3.0]))
    assert_array_equal(event.state.qd, [0.0, 3.0])
    assert_array_equal(event.impulse, np.zeros(6))
    # The armature of the former joint leaves with its energy.
    assert (event.energy_lost, event.kinetic_energy_brought) == (0.0, -0.5 * 0.1 * 2.0**2)


@given(motions())
def test_rates_continue_when_an_inertia_changes(motion):
    tree, state = motion.tree, motion.state
    energy = tree.kinetic_energy(state.q, state.qd)
    for inertia in (random_inertia(motion.rng), None):
        event = tree.set_inertia(motion.link, inertia, state)
        assert tree.link(motion.link).inertia is inertia
        assert_array_equal(event.state.q, state.q)
        assert_array_equal(event.state.qd, state.qd)
        new = tree.kinetic_energy(state.q, state.qd)
        close(event.kinetic_energy_brought, new - energy, new + energy, 1e-12)
        assert (event.energy_lost, event.link) == (0, motion.link)
        energy, state = new, event.state


# Moves and hand-overs ------------------------------------------------------------------------------------------------


@given(motions(), st.sampled_from([*EVERY, None]))
def test_hand_over_in_maximal_coordinates(motion, kind):
    tree, before, where = motion.tree, twists(motion), poses(motion)
    beyond = tree.subtree(motion.link)
    rest = [link for link in tree.links if link not in beyond]
    to = rest[int(motion.rng.integers(len(rest)))]
    handle = sd.Handle(motion.link, tree.topology.attachments[motion.link].serial)
    joint = None if kind is None else random_joint(motion.rng, kind, "seat")
    event = tree.move(handle, to, joint, state=motion.state)
    assert_poses_stay(tree, where, event.state)
    assert_impact(motion, event, before)
    assert tree.links == (*rest, *beyond)
    assert tree.parent(motion.link) == to
    assert tree.resolve(handle) == motion.link


@given(motions(floating=True), st.sampled_from(["lock", "replace", "move"]))
def test_a_floating_tree_keeps_its_spatial_momentum(motion, change):
    tree, state = motion.tree, motion.state
    before = tree.momentum(state.q, state.qd)
    if change == "lock":
        event = tree.lock(motion.joint, state)
    elif change == "replace":
        event = tree.replace_joint(motion.link, random_joint(motion.rng, "revolute"), state)
    else:
        event = tree.move(motion.link, "trunk", random_joint(motion.rng, "revolute", "seat"), state=state)
    after = tree.momentum(event.state.q, event.state.qd)
    terms = sum(norm(I) for I in maximal.inertias(tree).values()) * norm(state.qd)
    close(after, before, norm(before) + terms, TIGHT)


@given(motions())
def test_hand_over_is_a_release_and_a_grasp_at_once(motion):
    tree, twin = motion.tree, motion.tree.copy()
    seat = random_joint(motion.rng, "spherical", "seat")
    over = tree.move(motion.link, tree.base, seat, state=motion.state)
    gone = twin.release(motion.state, motion.link)
    caught = twin.grasp(gone.state, gone.released, to=twin.base, joint=seat)
    assert caught.state.coordinates == over.state.coordinates
    close(caught.state.qd, over.state.qd, norm(over.state.qd), TIGHT)
    close(caught.energy_lost, over.energy_lost, over.energy_lost, TIGHT)
    close(caught.impulse, over.impulse, norm(over.impulse), TIGHT)
    close(gone.kinetic_energy_brought, -caught.kinetic_energy_brought, caught.kinetic_energy_brought, 1e-12)


def test_many_changes_of_a_floating_robot_keep_its_momentum_and_book_its_energy():
    rng = np.random.default_rng(0)
    tree = sd.KinematicTree("world", gravity=(0, 0, 0))
    tree.attach(sd.Link("trunk", random_inertia(rng)), to="world", joint=sd.free(passive=True))
    for side in ("left/", "right/"):
        tree.attach(random_tree(rng, 3), to="trunk", at=random_pose(rng), prefix=side)
    tree.attach(random_inertia(rng), to="left/link3", joint=sd.spherical(), name="crate")
    state = sd.State(tree, qd=rng.uniform(-1, 1, tree.nv))
    momentum, energy = tree.momentum(state.q, state.qd), tree.kinetic_energy(state.q, state.qd)
    for k in range(60):
        kind = EVERY[k % len(EVERY)]
        event = tree.move("crate", ("right/link3", "left/link3")[k % 2], random_joint(rng, kind), state=state)
        energy -= event.energy_lost
        if k % 3 == 0:
            state = tree.release(event.state, "crate", into_world=True).state
            event = tree.grasp(state, "crate", to="trunk", joint=random_joint(rng, "universal"))
            energy -= event.energy_lost
        if k % 4 == 0:
            event = tree.lock("left/joint2", event.state)
            energy -= event.energy_lost
            event = tree.unlock("left/joint2", event.state)
        state = event.state
    close(tree.momentum(state.q, state.qd), momentum, norm(momentum), 1e-11)
    close(tree.kinetic_energy(state.q, state.qd), energy, energy, 1e-11)


def two_turntables(I1=0.7, I2=0.4, m=2.5, r=0.3):
    tree = sd.KinematicTree()
    for name, I in (("one", I1), ("two", I2)):
        tree.attach(sd.Inertia(1.0, tensor=(1, 1, I)), to="base", joint=sd.revolute("z"), name=name)
    handle = tree.attach(sd.Inertia.point(m), to="one", at=(r, 0, 0), name="crate")
    return tree, handle


def test_a_crate_handed_to_a_turntable_at_rest():
    """The first turntable keeps ω; the second one gets m r² ω / (I₂ + m r²)."""
    tree, handle = two_turntables()
    event = tree.move(handle, "two", state=sd.State(tree, [0.4, -0.3], [3.0, 0.0]))
    shared = 2.5 * 0.3**2
    assert_allclose(event.state.qd, [3.0, shared * 3.0 / (0.4 + shared)], rtol=1e-14)
    assert_allclose(event.energy_lost, 0.5 * 0.4 * shared / (0.4 + shared) * 9, rtol=1e-14)
    assert_allclose(event.impulse, [0, 0, 0, 0, 2.5 * 0.3 * (event.state.velocity("two") - 3.0), 0], atol=1e-14)


def test_at_of_a_hand_over_tells_the_positions_of_the_joint():
    tree, _ = two_turntables()
    state = sd.State(tree, [0.4, -0.3], [3.0, 0.0])
    event = tree.move("crate", "two", sd.revolute("z", (-0.3, 0, 0), name="pin"), (0.3, 0, 0), state)
    assert_allclose(event.state["pin"], 0.7, rtol=1e-14)
    started = two_turntables()[0]
    again = started.move("crate", "two", sd.revolute("z", (-0.3, 0, 0), name="pin"), state=state, start=0.5)
    assert again.state["pin"] == 0.5
    for robot, end in ((tree, event), (started, again)):
        pose = robot.forward_kinematics("crate", end.state.q)
        assert_allclose(pose[:2, 3], 0.3 * np.array([np.cos(0.4), np.sin(0.4)]))


HANDED = {
    "move": lambda tree, state: tree.move("lamp", "two", state=state),
    "grasp": lambda tree, state: tree.grasp(state, "lamp", to="two"),
    "hand over": lambda tree, state: sd.HandOver("lamp", "two", time=0.0).happen(tree, state),
}


def lamp(joint):
    """A lamp that hangs by a joint on the first of two turntables, in motion."""
    tree, _ = two_turntables()
    tree.attach(sd.Inertia.box(0.5, (0.2, 0.3, 0.4), com=(0.1, 0.2, -0.4)), "one", joint, (0, 0.2, 0), "lamp")
    rng = np.random.default_rng(3)
    return tree, sd.State(tree, tree.random_configuration(rng), rng.normal(size=tree.nv))


@pytest.mark.parametrize("change", HANDED)
def test_a_link_that_is_handed_over_keeps_its_joint(change):
    joint = sd.spherical(name="cord", damping=0.3, passive=True)
    tree, state = lamp(joint)
    pose = tree.forward_kinematics("lamp", state.q)
    event = HANDED[change](tree, state)
    assert tree.parent("lamp") == "two" and tree.joint("cord") == joint
    assert_allclose(tree.forward_kinematics("lamp", event.state.q), pose, atol=1e-14)
    assert [event.state[name] for name in joint.position_names("cord")] == pytest.approx(
        [state[name] for name in joint.position_names("cord")], abs=1e-15
    )
    assert_allclose(event.impulse[:3], 0, atol=1e-14)  # a ball joint has no moment about its centre
    assert norm(event.impulse[3:]) > 1e-3


def test_a_link_that_is_handed_over_stays_locked_and_is_fixed_if_it_was_free():
    for change in HANDED.values():
        tree, state = lamp(sd.revolute("x", name="hinge"))
        event = tree.lock("hinge", state)
        angle = tree.lock_of("hinge").q
        change(tree, event.state)
        assert tree.locked == ("hinge",) and tree.lock_of("hinge").q == angle
        tree, state = lamp(sd.free(passive=True))
        change(tree, state)
        assert tree.joint("lamp").kind == "fixed"


def test_a_link_that_is_moved_at_rest_keeps_its_joint():
    tree, _ = lamp(sd.revolute("x", name="hinge"))
    tree.lock("hinge", at=0.3)
    tree.move("lamp", "two", at=(0, 0, 1))
    assert tree.lock_of("hinge").q == (0.3,)
    assert_allclose(tree.forward_kinematics("lamp", [0, 0])[1:3, 2], [-np.sin(0.3), np.cos(0.3)])
    tree.unlock("hinge")
    tree.move("lamp", "one")
    assert tree.coordinates == ("one", "two", "hinge") and tree.joint("hinge").kind == "revolute"


# Without a state -----------------------------------------------------------------------------------------------------


def test_changes_without_a_state_change_the_structure_only():
    tree, handle = two_turntables()
    assert tree.lock("one", at=0.3) is None
    assert tree.coordinates == ("two",)
    assert_allclose(tree.forward_kinematics("crate", [0.0])[:2, 3], 0.3 * np.array([np.cos(0.3), np.sin(0.3)]))
    assert str(tree).splitlines()[1] == "├─ one [locked revolute] 1 kg"
    assert tree.unlock("one") is None
    assert tree.replace_joint("two", sd.prismatic("z", name="lift")) is None
    assert tree.coordinates == ("one", "lift")
    assert tree.set_inertia(handle, None) is None
    assert tree.mass == 2
    assert tree.move(handle, "two", sd.revolute("x"), (0, 0, 1)) is None
    assert tree.links == ("base", "one", "two", "crate")
    assert_allclose(tree.forward_kinematics("crate", [0.1, 0.2, 0.3])[:3, 3], [0, 0, 1.2])
    assert tree.detach(handle).base == "crate"


def test_a_locked_joint_tells_what_it_is_unlocked_and_where_it_is_locked():
    tree, hinge = sd.KinematicTree(), sd.revolute("z", limits=(-1, 2), rotor=sd.Rotor(1e-4, 50), name="hinge")
    tree.attach(sd.Inertia.box(1, (0.1, 0.2, 0.3)), "base", hinge, (0.5, 0, 0), "arm")
    assert tree.lock_of("hinge") is None
    home = tree.graph.edges["base", "arm"]["home"]
    tree.lock("hinge", at=0.25)
    lock = tree.lock_of("hinge")
    assert (lock.joint, lock.q, tree.joint("hinge").kind) == (hinge, (0.25,), "fixed")
    assert_array_equal(lock.home, home)
    assert tree.lock_of("hinge_rotor").q == (12.5,)
    with pytest.raises(sd.UnknownNameError, match="hinge"):
        tree.lock_of("hing")


def test_lock_at_positions_of_several_freedoms():
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.sphere(1, 0.1), to="base", joint=sd.spherical(name="hip"), name="leg")
    tree.attach(sd.Inertia.sphere(1, 0.1), to="leg", joint=sd.universal(name="knee"), at=(0, 0, -1), name="shin")
    q = np.array([0.5, -0.5, 0.5, 0.5, 0.3, -0.4])
    pose = tree.forward_kinematics("shin", q)
    tree.lock("hip", at=q[:4])
    tree.lock("knee", at=q[4:])
    assert (tree.nv, tree.locked) == (0, ("hip", "knee"))
    assert_allclose(tree.forward_kinematics("shin", []), pose, atol=1e-15)
    with pytest.raises(sd.TopologyError, match=r"a joint and of a freedom or position of joint 'hip'"):
        tree.attach(sd.Inertia.sphere(1, 0.1), to="base", joint=sd.revolute(name="hip[wx]"))
    tree.unlock("hip")
    assert tree.positions == ("hip[x]", "hip[y]", "hip[z]", "hip[w]")


def test_locked_joints_stay_locked_in_copies_and_parts():
    tree, _ = two_turntables()
    tree.attach(sd.Inertia.sphere(1, 0.1), to="one", joint=sd.revolute("x", name="lid"), name="top")
    tree.lock("lid", at=0.3)
    twin = tree.copy()
    tree.unlock("lid")
    assert (twin.locked, tree.locked) == (("lid",), ())
    host = sd.KinematicTree()
    host.attach(twin.detach("one"), to="base", prefix="a/")
    assert host.locked == ("a/lid",)
    assert host.graph.edges["a/one", "a/top"]["locked"].q == (0.3,)
    host.unlock("a/lid")
    assert host.coordinates == ("a/lid",)


def test_a_locked_joint_may_be_replaced_and_its_tree_pickled():
    tree = stand()
    again = pickle.loads(pickle.dumps(tree))
    assert again.locked == ("shut",)
    again.unlock("shut")
    assert again.coordinates == ("one", "two", "lid", "shut")
    state = sd.State(tree, [0.1, 0.2, 0.3], [1.0, 2.0, 3.0])
    pose = tree.forward_kinematics("door", state.q)
    event = tree.replace_joint("door", sd.prismatic("y"), state)
    assert (tree.locked, tree.coordinates[-1]) == ((), "shut")
    assert_allclose(tree.forward_kinematics("door", event.state.q), pose, atol=1e-15)
    assert_array_equal(event.state.qd, [1.0, 2.0, 3.0, 0.0])
    assert event.energy_lost == 0


def test_symbols_of_a_locked_joint_are_those_of_the_tree():
    sympy = pytest.importorskip("sympy")
    L, k = sympy.symbols("L k", positive=True)
    tree = sd.KinematicTree()
    joint = sd.revolute("y", stiffness=k)
    tree.attach(sd.Inertia.point(1.0, (0, 0, -0.5)), to="base", joint=joint, at=(0, 0, L), name="bob")
    tree.lock("bob")
    assert tree.free_symbols == {L, k}
    bound = tree.subs({"L": 2.0, "k": 3.0})
    bound.unlock("bob")
    assert bound.joint("bob").stiffness == 3.0
    assert_array_equal(bound.graph.edges["base", "bob"]["home"][:3, 3], [0, 0, 2])


@pytest.mark.parametrize("seed", range(6))
def test_numbers_after_changes_in_place_are_those_of_a_tree_built_directly(seed):
    """Bit by bit: numbers of links beyond a changed one are computed again."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 8, MOVING)
    tree.mass_matrix(tree.neutral())
    for _ in range(6):
        link = f"link{rng.integers(1, 9)}"
        name = next(name for name in tree.joints if tree.topology.carried[name] == link)
        if name in tree.locked:
            tree.unlock(name)
        elif rng.random() < 0.4:
            q = sd.State(tree, tree.random_configuration(rng))
            tree.lock(name, at=[q[x] for x in tree.joint(name).position_names(name)])
        elif rng.random() < 0.5:
            tree.set_inertia(link, random_inertia(rng))
        else:
            tree.replace_joint(link, random_joint(rng, "helical"))
        rebuilt = sd.KinematicTree(gravity=tree.gravity)
        for name in tree.links[1:]:
            edge = tree.graph.edges[tree.parent(name), name]
            rebuilt.attach(tree.link(name), tree.parent(name), edge["joint"], edge["home"])
        assert fingerprint_of_groups(rebuilt)[6] == fingerprint_of_groups(tree)[6]


# Errors --------------------------------------------------------------------------------------------------------------

CRATE = sd.Inertia.point(1.0, (0.1, 0, 0))


def stand():
    tree, _ = two_turntables()
    tree.attach(sd.Inertia.sphere(1, 0.1), to="crate", joint=sd.revolute("x", name="lid"), name="top")
    tree.attach(sd.Inertia.sphere(1, 0.1), to="base", joint=sd.revolute("x", name="shut"), name="door")
    tree.lock("shut", at=0.25)
    return tree


def with_rates(state, qd):
    """A state whose rates have been exchanged."""
    state.qd = qd
    return state


REFUSED = {
    "an unknown joint": (sd.UnknownNameError, "did you mean 'lid'", lambda t, s: t.lock("ldi", s)),
    "a link that is no joint": (sd.UnknownNameError, "which joint 'lid' carries", lambda t, s: t.lock("top", s)),
    "no joint": (sd.UnknownNameError, "no joint None", lambda t, s: t.lock(None, s)),
    "a fixed joint": (
        sd.TopologyError,
        "'crate' is fixed, so there is nothing to lock",
        lambda t, s: t.lock("crate", s),
    ),
    "locked": (sd.TopologyError, "'shut' is locked already; unlock it", lambda t, s: t.lock("shut", s)),
    "locked, at rest": (sd.TopologyError, "'shut' is locked already", lambda t, s: t.lock("shut")),
    "not locked": (sd.TopologyError, "'lid' is not locked; locked joints: shut", lambda t, s: t.unlock("lid", s)),
    "unlock unknown": (sd.UnknownNameError, "no joint 'x'", lambda t, s: t.unlock("x")),
    "two positions": (sd.ShapeError, "a finite number for each of: lid; got", lambda t, s: t.lock("lid", at=[1, 2])),
    "not finite": (sd.ShapeError, "a finite number for each of: lid", lambda t, s: t.lock("lid", at=np.nan)),
    "no number": (sd.ShapeError, "the position of joint 'lid' must be numbers", lambda t, s: t.lock("lid", at="up")),
    "at and a state": (sd.ShapeError, "at= cannot be given with a state", lambda t, s: t.lock("lid", s, at=0.1)),
    "base has no joint": (
        sd.TopologyError,
        "the base, which has no joint",
        lambda t, s: t.replace_joint("base", sd.free()),
    ),
    "base moved": (sd.TopologyError, "'base' is the base", lambda t, s: t.move("base", "one")),
    "no joint given": (sd.TopologyError, "joint must be made by", lambda t, s: t.replace_joint("top", "x", s)),
    "a taken joint": (
        sd.TopologyError,
        "there is a joint 'one' already; give the joint another name",
        lambda t, s: t.replace_joint("top", sd.revolute(name="one"), s),
    ),
    "a taken freedom": (
        sd.TopologyError,
        "would be that of a joint and of a freedom",
        lambda t, s: (t.replace_joint("top", sd.free(name="a")), t.replace_joint("one", sd.revolute(name="a[wx]"))),
    ),
    "beneath itself": (
        sd.TopologyError,
        "cannot be moved to 'top', which is beyond it",
        lambda t, s: t.move("one", "top"),
    ),
    "beneath itself, moving": (
        sd.TopologyError,
        "cannot be moved to 'top', which is beyond it",
        lambda t, s: t.move("one", "top", state=s),
    ),
    "onto itself": (sd.TopologyError, "cannot be moved to 'one'", lambda t, s: t.move("one", "one", state=s)),
    "to nowhere": (sd.UnknownNameError, "no link 'three'", lambda t, s: t.move("one", "three", state=s)),
    "to nowhere, at rest": (sd.UnknownNameError, "no link 'three'", lambda t, s: t.move("one", "three")),
    "no pose": (sd.ShapeError, "the pose of 'crate' on 'two'", lambda t, s: t.move("crate", "two", at=(1, 2))),
    "out of reach": (
        sd.ShapeError,
        "'crate' is not where the fixed joint at= can carry it: it is off by",
        lambda t, s: t.move("crate", "two", at=(1, 2, 3), state=s),
    ),
    "at and start": (
        sd.ShapeError,
        "give at= or start=, not both",
        lambda t, s: t.move("crate", "two", sd.revolute("z"), (0.3, 0, 0), s, 0.1),
    ),
    "start at rest": (sd.ShapeError, "start= needs a state", lambda t, s: t.move("crate", "two", start=0.1)),
    "unknown start": (
        sd.UnknownNameError,
        "no position of the new joint 'pen'; did you mean 'pin'",
        lambda t, s: t.move("crate", "two", sd.revolute("z", name="pin"), state=s, start={"pen": 1}),
    ),
    "no inertia": (sd.InertiaError, "must be a screwdyn.Inertia or None", lambda t, s: t.set_inertia("top", 3.0, s)),
    "unknown link": (sd.UnknownNameError, "no link 'tip'", lambda t, s: t.set_inertia("tip", CRATE, s)),
    "a massless lid": (
        sd.SingularAttachmentError,
        "nothing beyond joint 'lid'",
        lambda t, s: t.lock("one", t.set_inertia("top", None, s).state),
    ),
    "no state": (sd.ShapeError, "must be a State", lambda t, s: t.lock("lid", [0.1, 0.2, 0.3])),
    "cut rates": (sd.ShapeError, "qd has shape", lambda t, s: t.release(with_rates(s, s.qd[:-1]), "top")),
} | {
    f"absurd rates, {name}": (sd.ShapeError, "results would overflow", change)
    for name, change in {
        "lock": lambda t, s: t.lock("one", with_rates(s, 1e200 * s.qd)),
        "grasp": lambda t, s: t.grasp(with_rates(s, 1e200 * s.qd), CRATE, to="top", twist="at_rest"),
        "release": lambda t, s: t.release(with_rates(s, 1e200 * s.qd), "top"),
        "inertia": lambda t, s: t.set_inertia("top", CRATE, with_rates(s, 1e200 * s.qd)),
    }.items()
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_changes_change_nothing(case):
    error, message, change = REFUSED[case]
    tree = stand()
    state = sd.State(tree, [0.1, 0.2, 0.3], [1.0, 2.0, 3.0])
    before = fingerprint(tree)
    with pytest.raises(error, match=message), tree.transaction():
        change(tree, state)
    assert fingerprint(tree) == before


@pytest.mark.parametrize("change", ["lock", "replace_joint", "move", "unlock", "set_inertia"])
def test_interrupted_changes_change_nothing(monkeypatch, change):
    tree = stand()
    state = sd.State(tree, [0.1, 0.2, 0.3], [1.0, 2.0, 3.0])
    before = fingerprint(tree)

    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(sd.State, "onto", interrupt)
    monkeypatch.setattr(law, "stopped", interrupt)
    calls = {
        "lock": lambda: tree.lock("lid", state),
        "unlock": lambda: tree.unlock("shut", state),
        "replace_joint": lambda: tree.replace_joint("top", sd.free(), state),
        "move": lambda: tree.move("crate", "two", state=state),
        "set_inertia": lambda: tree.set_inertia("top", CRATE, state),
    }
    with pytest.raises(KeyboardInterrupt):
        calls[change]()
    assert fingerprint(tree) == before


def test_a_state_of_a_joint_that_has_been_replaced_is_stale():
    tree, _ = two_turntables()
    state = sd.State(tree, [0.1, 0.2], [1.0, 2.0])
    event = tree.replace_joint("one", sd.prismatic("z"), state)
    assert event.state.coordinates == state.coordinates
    with pytest.raises(sd.StaleHandleError, match="joint 'one' of the tree has other screws, another home pose or"):
        tree.lock("two", state)
    tree.lock("two", event.state)


@pytest.mark.slow
def test_many_changes_keep_a_home_a_rotation():
    """Rounding does not add up; a home that JSON gives back is then the same to the last bit."""
    rng, tree = np.random.default_rng(0), sd.KinematicTree()
    tree.attach(sd.Inertia.box(1.0, (0.1, 0.2, 0.3)), to="base", joint=sd.spherical(), name="a")
    for _ in range(1000):
        q = tree.integrate(tree.neutral(), rng.uniform(-1, 1, 3))
        tree.replace_joint("a", sd.spherical(), sd.State(tree, q))
        home = tree.topology.attachments["a"].home
        assert_array_equal(screw.as_pose(home), home)


def test_changes_in_motion_need_numbers():
    tree, body = sd.KinematicTree(), sd.Inertia.box(1, (0.1, 0.2, 0.3))
    for name in ("a", "b"):
        tree.attach(body, tree.links[-1], sd.revolute("z", name=f"joint {name}"), name=name)
    state, unknown = sd.State(tree), sd.Inertia.point(sympy.Symbol("m"), (1, 0, 0))
    before = tree.topology
    with pytest.raises(sd.UnboundSymbolError, match="the inertia of 'b' still depends on m"):
        tree.set_inertia("b", unknown, state)
    assert tree.topology is before
    tree.set_inertia("a", unknown)
    before = tree.topology
    with pytest.raises(sd.UnboundSymbolError, match="the robot still depends on m"):
        tree.lock("joint b", state)
    assert tree.topology is before


def test_a_link_that_a_joint_beyond_it_is_named_after_moves_by_a_joint_of_another_name():
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.sphere(1, 0.1), to="base", joint=sd.revolute("z", name="hinge"), name="lid")
    tree.attach(sd.Inertia.sphere(1, 0.1), to="lid", joint=sd.revolute("z", name="lid"), at=(1, 0, 0), name="knob")
    before, state = tree.topology, sd.State(tree)
    for refused in (
        lambda: tree.move("lid", to="base", joint=sd.revolute("x")),
        lambda: tree.release(state, "lid", into_world=True),
    ):
        with pytest.raises(sd.TopologyError, match=r"named 'lid', as that of 'knob' .* tree.move\('lid', …, joint="):
            refused()
        assert tree.topology is before
    assert tree.move("lid", to="base", joint=sd.free(name="flight"), state=state).energy_lost == 0


@pytest.mark.parametrize("moving", [True, False])
def test_a_link_on_a_locked_free_joint_is_fixed_where_it_goes(moving):
    """A free joint holds nothing, so a lock of it does not go along, in motion or at rest."""
    tree, body = sd.KinematicTree(), sd.Inertia.box(1, (0.1, 0.2, 0.3))
    tree.attach(body, to="base", joint=sd.free(name="flight"), name="a")
    tree.attach(body, to="base", joint=sd.revolute("z"), name="b")
    state = tree.lock("flight", sd.State(tree, {"flight[px]": 0.3})).state
    tree.move("a", "b", state=state) if moving else tree.move("a", "b")
    assert tree.joint("a").kind == "fixed" and tree.lock_of("a") is None and tree.coordinates == ("b",)
