"""A link that is let go hangs on a loop that holds it: bodies move on as before, whichever joint is cut."""

import numpy as np
import pytest
from cases import norm
from hypothesis import assume, given
from hypothesis import strategies as st
from kinds import EVERY, OF_LOOPS
from maximal import impact, kinetic_energy, twists
from numpy.testing import assert_allclose, assert_array_equal

import screwdyn as sd
from screwdyn.screws.screw import inverse
from screwdyn.testing import random_tree


def relative(tree, q, link, to):
    return inverse(tree.forward_kinematics(to, q)) @ tree.forward_kinematics(link, q)


def bridged(rng, kind):
    """A tree, a state of it, and a link with a loop from one link at or beyond it to one of the rest."""
    tree = random_tree(rng, 7, EVERY, frames=0)
    root = str(rng.choice(tree.links[1:]))
    beyond = tree.subtree(root)
    link, to = rng.permutation([rng.choice(beyond), rng.choice([x for x in tree.links if x not in beyond])])
    q = tree.random_configuration(rng)
    tree.close(link, to=to, joint=OF_LOOPS[kind], at=relative(tree, q, link, to), name="loop")
    return tree, sd.State(tree, *tree.project(q, rng.normal(size=tree.nv))), root


def accelerations(tree, state, forces):
    """Of the centres of mass and frames of all links, under the weight and forces on some coordinates."""
    tau = np.array([forces.get(name, 0.0) for name in tree.coordinates])
    qdd = tree.forward_dynamics(state.q, state.qd, tau)
    return {x: tree.link_acceleration(x, state.q, state.qd, qdd, "base") for x in tree.links}


@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(OF_LOOPS)))
def test_bodies_move_on_as_before(seed, kind):
    rng = np.random.default_rng(seed)
    tree, before, root = bridged(rng, kind)
    # The same without a graft: the link is on the base by a free joint, and the loop stays.
    cut = tree.copy()
    free = cut.release(before, root, into_world=True).state
    assert cut.loops == ("loop",)
    rest = [x for x in before.coordinates if x not in tree.topology.attachments[root].coordinates]
    former = tree.copy()
    try:
        event = tree.release(before, root)
    except sd.SingularAttachmentError:  # only the joint that is cut moved the inertia beyond another one
        assert tree.topology is former.topology
        assume(False)
    after = event.state
    assert (tree.loops, event.loop, event.link, event.energy_lost) == ((), "loop", root, 0.0)
    assert root not in tree.joints
    assert tree.joint("loop").passive == (kind != "fixed")
    assert {*tree.coordinates} >= {*rest}
    staying = [x for x in rest if former.topology.carried[x.partition("[")[0]] not in former.subtree(root)]
    assert [*tree.coordinates[: len(staying)]] == staying
    assert [after.velocity(x) for x in staying] == [before.velocity(x) for x in staying]
    # Maximal coordinates: poses, and twists that are composed from joint to joint.
    for link in tree.links:
        T = former.forward_kinematics(link, before.q)
        assert_allclose(tree.forward_kinematics(link, after.q), T, rtol=0, atol=1e-11 * (1 + norm(T)))
    V, V_before = twists(tree, after.q, after.qd), twists(former, before.q, before.qd)
    assert V.keys() == V_before.keys()
    for link, V_link in V.items():
        assert_allclose(V_link, V_before[link], rtol=0, atol=1e-10 * (1 + norm(before.qd)))
    energy = kinetic_energy(former, V_before)
    motors = former.kinetic_energy(before.q, before.qd) - energy
    assert_allclose(tree.kinetic_energy(after.q, after.qd), energy + motors + event.kinetic_energy_brought, rtol=1e-10)
    # Whichever joint is cut, forces on coordinates that mean the same accelerate all bodies alike.
    assume(np.linalg.cond(tree.mass_matrix(after.q)) < 1e6)
    forces = {x: rng.normal() for x in rest if "[" not in x}
    one, other = accelerations(tree, after, forces), accelerations(cut, free, forces)
    scale = 1 + max(map(norm, one.values()))
    for link, a in one.items():
        assert_allclose(a, other[link], rtol=0, atol=1e-6 * scale)


CHANGES = {
    "lock": lambda tree, state, root, rest: tree.lock(tree.topology.attachments[root].name, state),
    "move": lambda tree, state, root, rest: tree.move(root, rest, sd.spherical(), state=state),
    "replace_joint": lambda tree, state, root, rest: tree.replace_joint(root, sd.universal("x", "z"), state),
    "grasp": lambda tree, state, root, rest: tree.grasp(
        state, root, to=rest, joint=sd.revolute((1, 2, 3), (0.3, 0, 0))
    ),
}


@pytest.mark.parametrize("change", CHANGES)
@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(OF_LOOPS)))
def test_impacts_beside_a_loop(change, seed, kind):
    """A loop stays while a joint that it bridges changes: all twists are those of bodies with six rates each."""
    rng = np.random.default_rng(seed)
    tree, before, root = bridged(rng, kind)
    assume(tree.topology.attachments[root].joint.nv)
    rest = str(rng.choice([x for x in tree.links if x not in tree.subtree(root)]))
    V = twists(tree, before.q, before.qd)
    assert not any(tree.joint(name).armature for name in tree.joints)
    event = CHANGES[change](tree, before, root, rest)
    assert tree.loops == ("loop",)
    assume(np.linalg.cond(tree.mass_matrix(event.state.q)) < 1e8)
    found, expected = twists(tree, event.state.q, event.state.qd), impact(tree, event.state.q, V)
    for link, twist in expected.items():
        assert_allclose(found[link], twist, rtol=0, atol=1e-7 * (1 + norm(before.qd)))
    lost = kinetic_energy(tree, V) - kinetic_energy(tree, expected)
    assert_allclose(event.energy_lost, lost, rtol=0, atol=1e-8 * (1 + kinetic_energy(tree, V)))


def two_arms(bar_on="left/", joint=None):
    """Two arms of three joints with one bar, which one of them carries; a loop connects it to the other one."""
    tree = sd.KinematicTree()
    arm = sd.KinematicTree("foot")
    for k, axis in enumerate("zyx"):
        to = "foot" if k == 0 else f"link{k}"
        arm.attach(
            sd.Inertia.box(1 + k, (0.5, 0.1, 0.1), com=(0.25, 0, 0)), to, sd.revolute(axis), (0.5, 0, 0), f"link{k + 1}"
        )
    q = np.array([0.3, -0.5, 0.2, -0.3, 0.4, 0.9])
    for side, y in (("left/", 0.4), ("right/", -0.4)):
        tree.attach(arm, to="base", at=(0, y, 0), prefix=side)
    other = "right/" if bar_on == "left/" else "left/"
    bar = sd.Inertia.box(3.0, (0.6, 0.05, 0.05), com=(0.3, 0, 0))
    hand = tree.forward_kinematics("left/link3", q)
    tree.attach(bar, to=f"{bar_on}link3", name="bar", at=inverse(tree.forward_kinematics(f"{bar_on}link3", q)) @ hand)
    tree.close("bar", to=f"{other}link3", joint=joint, at=relative(tree, q, "bar", f"{other}link3"), name="grip")
    return tree, sd.State(tree, *tree.project(q, [1.0, -0.5, 0.3, 0.2, 0.8, -1.0]))


def test_a_bar_passes_from_hand_to_hand():
    """All six coordinates stay, and the bar lets go of the left hand as if the right one had carried it before."""
    tree, state = two_arms()
    event = tree.release(state, "bar")
    assert tree.parent("bar") == "right/link3"
    assert_array_equal(event.state.qd, state.qd)
    assert_array_equal(event.state.q, state.q)
    assert event.released.tree.loops == ()
    twin, other = two_arms("right/")
    twin.open("grip")
    other, tau = sd.State(twin, state.q, state.qd), np.arange(6.0)
    found = tree.forward_dynamics(event.state.q, event.state.qd, tau)
    assert_allclose(found, twin.forward_dynamics(other.q, other.qd, tau), rtol=0, atol=1e-10 * norm(found))
    with pytest.raises(sd.UnknownNameError, match="no loop 'grip'"):
        tree.open("grip")


def walker():
    """A chain that stands on one foot, with everything that a joint may have; the other foot is on the ground too."""
    tree = sd.KinematicTree(gravity=(0, 0, -9.81))
    tree.attach(sd.Inertia.box(1.0, (0.2, 0.2, 0.1)), to="base", joint=sd.revolute("z", name="stance"), name="heel")
    knee = sd.revolute("y", name="knee", damping=0.3, stiffness=5.0, rest=0.2, limits=(-1, 2), rotor=sd.Rotor(1e-4, 50))
    for name, to, joint in (
        ("shin", "heel", sd.revolute("y", name="ankle", armature=0.1)),
        ("thigh", "shin", knee),
        ("hip", "thigh", sd.revolute("y", mimic=sd.Mimic("knee", -0.5, 0.1))),
        ("lamp", "hip", sd.spherical()),
        ("leg", "hip", sd.universal("y", "z", name="cross")),
        ("toe", "leg", sd.revolute("x", name="toe joint")),
    ):
        tree.attach(
            sd.Inertia.box(2, (0.5, 0.1, 0.2), com=(0.25, 0, 0)), to=to, joint=joint, at=(0.5, 0.1, 0), name=name
        )
    tree.lock("toe joint", at=0.4)
    rng = np.random.default_rng(5)
    q = tree.random_configuration(rng)
    tree.close("toe", to="base", joint=sd.spherical(), at=relative(tree, q, "toe", "base"), name="step")
    return tree, sd.State(tree, *tree.project(q, rng.normal(size=tree.nv)))


def test_a_chain_that_steps_onto_its_other_foot():
    """Joints between are reversed: what their motors, springs, limits and couplings do stays the same."""
    tree, state = walker()
    before, force = tree.copy(), tree.joint_force(state.q, state.qd)
    event = tree.release(state, "heel")
    assert tree.path("heel") == ("base", "toe", "leg", "hip", "thigh", "shin", "heel")
    assert (tree.parent("knee_rotor"), tree.locked) == ("shin", ("toe joint",))
    assert tree.coordinates[:3] == ("step[wx]", "step[wy]", "step[wz]")
    found = dict(zip(tree.coordinates, tree.joint_force(event.state.q, event.state.qd), strict=True))
    kept = [x for x in before.coordinates if x != "stance" and "cross" not in x]
    assert_allclose(
        [found[x] for x in kept], [dict(zip(before.coordinates, force, strict=True))[x] for x in kept], atol=1e-12
    )
    assert_allclose([event.state[x] for x in ("ankle", "knee")], [state[x] for x in ("ankle", "knee")], rtol=0)
    assert [event.state.velocity(f"cross[w{k}]") for k in "12"] == [state.velocity(f"cross[w{k}]") for k in "21"]
    assert event.kinetic_energy_brought == 0
    energies = [x.kinetic_energy(s.q, s.qd) for x, s in ((tree, event.state), (before, state))]
    assert_allclose(*energies, rtol=1e-12)
    # Back on the first foot: the same tree but for the loop's joint, and the unlocked toe moves as it did.
    tree.close("heel", to="base", joint=sd.revolute("z"), at=relative(tree, event.state.q, "heel", "base"), name="s")
    back = tree.release(sd.State(tree, event.state.q, event.state.qd), "toe").state
    assert tree.path("toe") == before.path("toe")
    tree.unlock("toe joint")
    before.unlock("toe joint")
    q, q_before = back.onto(tree)[0].q, state.onto(before)[0].q
    for link in ("toe", "lamp"):
        assert_allclose(tree.forward_kinematics(link, q), before.forward_kinematics(link, q_before), atol=1e-12)
    for x in ("toe joint", "knee"):
        assert_allclose(tree.joint(x).screws, before.joint(x).screws, rtol=0, atol=1e-12)


def test_energy_of_a_run_with_a_step():
    tree, state = walker()
    tree.replace_joint("hip", sd.revolute("y"))
    state = sd.State(tree, *tree.project([*state.q[:3], 0.1, *state.q[3:]], [*state.qd[:3], 0.2, *state.qd[3:]]))
    run = sd.simulate(tree, state, 0.02, events=[sd.Release("heel", time=0.01)], step=0.01)
    assert [happened.verb for happened in run.events] == ["release"]
    assert run.tree.parent("toe") == "base"
    assert np.abs(run.energy.residual).max() < 1e-7


def test_a_closed_mechanism_leaves_with_its_loops():
    tree, state = two_arms()
    robot = sd.KinematicTree()
    robot.attach(tree, to="base", joint=sd.free(), name="cart")
    q = sd.State(robot, {x: state[x] for x in state.positions}).q
    moving = sd.State(robot, q, np.append(np.arange(6.0), state.qd))
    event = robot.release(moving, "cart")
    assert (event.loop, robot.links, event.released.tree.loops) == (None, ("base",), ("grip",))
    assert_allclose(event.released.tree.gap(event.released.state.q), 0, rtol=0, atol=1e-12)
    assert_allclose(event.released.kinetic_energy, -event.kinetic_energy_brought, rtol=1e-12)


def test_a_release_that_is_refused_changes_nothing():
    tree, state = two_arms()
    wrong = {
        "is open by": (sd.State(tree, state.q + 0.1, state.qd), "bar"),
        "the rates open the loops": (sd.State(tree, state.q, state.qd + 0.1), "bar"),
    }
    for message, (moving, link) in wrong.items():
        before, entries = tree.topology, moving.to_dict()
        with pytest.raises(sd.LoopError, match=message):
            tree.release(moving, link)
        assert tree.topology is before
        assert moving.to_dict() == entries
    before = tree.topology
    with pytest.raises(sd.TopologyError, match=r"'grip' connects .* release 'bar' with a state"):
        tree.detach("bar")
    assert tree.topology is before


@pytest.mark.parametrize("joint", [sd.planar("z", damping=0.1), sd.free(friction=0.1)], ids=lambda joint: joint.kind)
def test_what_cannot_be_reversed_is_named(joint):
    tree = sd.KinematicTree()
    body = sd.Inertia.box(1.0, (1, 0.1, 0.2))
    tree.attach(body, to="base", joint=sd.revolute("x"), name="one")
    tree.attach(body, to="one", joint=joint, name="two")
    tree.close("base", to="two", joint=sd.revolute("x"), name="pin")
    before = tree.topology
    with pytest.raises(sd.JointError, match=f"joint 'two' of 'two': a {joint.kind} joint with damping or friction"):
        tree.release(sd.State(tree), "one")
    assert tree.topology is before


def test_the_joint_of_a_rotor_is_not_reversed():
    tree = sd.KinematicTree()
    body = sd.Inertia.box(1.0, (1, 0.1, 0.2))
    tree.attach(body, to="base", joint=sd.revolute("z"), name="one")
    tree.attach(body, to="one", joint=sd.revolute("y", rotor=sd.Rotor(1e-4, 10)), name="two")
    tree.attach(body, to="two_rotor", name="flag")
    tree.close("flag", to="base", joint=sd.spherical(), name="pin")
    before = tree.topology
    with pytest.raises(sd.TopologyError, match="'two_rotor' is the rotor of joint 'two'"):
        tree.release(sd.State(tree), "one")
    assert tree.topology is before


def test_a_spindle_of_many_turns():
    """A spindle drives a nut, (I + m p²) ω̇ = τ + m g p; without its bearing it hangs in the nut by the thread."""
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.box(1.0, (0.1, 0.1, 0.5)), to="base", joint=sd.revolute("z"), name="spindle")
    tree.attach(sd.Inertia.point(3.0), to="base", joint=sd.prismatic("z", passive=True), name="nut")
    tree.close("spindle", to="nut", joint=sd.helical("z", pitch=0.01), name="thread")
    start = sd.State(tree, *tree.project([0.3, 0.0], [5.0, 0.0], hold=["spindle"]))
    run = sd.simulate(tree, start, 2.0, torque=lambda t, state: {"spindle": 0.05}, step=0.05)
    angle = 0.3 + 5 * run.t + 0.5 * (0.05 + 3 * 9.81 * 0.01) / (0.02 / 12 + 3 * 0.01**2) * run.t**2
    assert angle[-1] > 50 * np.pi
    assert_allclose(run["spindle"], angle, rtol=1e-9)
    assert_allclose(run["nut"], -0.01 * angle, rtol=1e-9)
    assert np.abs(run.energy.residual).max() < 1e-9
    state = run.states[-1]
    before = tree.forward_kinematics("spindle", state.q)
    after = tree.release(state, "spindle").state
    assert_allclose(after["thread"], angle[-1], rtol=1e-9)
    assert_allclose(tree.forward_kinematics("spindle", after.q), before, rtol=0, atol=1e-12)


def test_a_link_on_two_loops_hangs_on_the_one_that_was_closed_first():
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.box(1.0, (1, 0.1, 0.2)), to="base", joint=sd.revolute("z"), name="bar")
    for name in ("first", "second"):
        tree.close("bar", to="base", joint=sd.spherical(), name=name)
    event = tree.release(sd.State(tree), "bar")
    assert (event.loop, tree.joints, tree.loops) == ("first", ("first",), ("second",))


def test_a_link_whose_release_leaves_a_joint_without_inertia_stays():
    tree = sd.KinematicTree()
    tree.attach(sd.Link("frame"), to="base", joint=sd.revolute("z"))
    tree.attach(sd.Inertia.box(1.0, (1, 0.1, 0.2)), to="frame", joint=sd.revolute("z"), at=(1, 0, 0), name="bar")
    tree.close("bar", to="base", joint=sd.revolute("z"), at=(1, 0, 0), name="pin")
    before = tree.topology
    with pytest.raises(sd.SingularAttachmentError, match="nothing beyond joint 'frame' resists"):
        tree.release(sd.State(tree), "bar")
    assert tree.topology is before


def test_a_loop_of_three_turning_axes_takes_the_rates_of_its_present_position():
    """Its motions are a group, but the screws of the last axes move with the first ones."""
    gimbal, bar = sd.Joint(np.eye(6)[:, :3]), sd.Inertia.box(1.0, (1, 0.1, 0.2), com=(0.5, 0, 0))
    tree = sd.KinematicTree()
    tree.attach(bar, to="base", joint=sd.spherical(), name="arm")
    tree.attach(bar, to="arm", joint=sd.universal("x", "y"), at=(1, 0, 0), name="bar")
    q = tree.integrate(tree.neutral(), np.array([0.3, 0.4, 0.5, 0.6, -0.7]))
    turned = sd.screw.exp([0.5, 0, 0, 0, 0, 0]) @ sd.screw.exp([0, 0.7, 0, 0, 0, 0])
    tree.close("bar", to="base", joint=gimbal, at=tree.forward_kinematics("bar", q) @ inverse(turned), name="gimbal")
    before = sd.State(tree, *tree.project(q, np.arange(1.0, 6.0)))
    twist = tree.link_twist("bar", before.q, before.qd)
    after = tree.release(before, "bar").state
    assert_allclose([after["gimbal[angle1]"], after["gimbal[angle2]"]], [0.5, 0.7], rtol=1e-12)
    assert_allclose(tree.link_twist("bar", after.q, after.qd), twist, rtol=0, atol=1e-12)


def test_a_link_whose_joint_is_followed_is_not_hung_on_a_loop():
    tree, box = sd.KinematicTree(), sd.Inertia.box(1.0, (1, 0.1, 0.2))
    tree.attach(box, to="base", joint=sd.revolute("z"), name="bar")
    tree.attach(box, to="base", joint=sd.revolute("z", mimic=sd.Mimic("bar")), name="twin")
    tree.close("bar", to="base", joint=sd.spherical(), name="pin")
    before = tree.topology
    with pytest.raises(sd.JointError, match="joint 'bar' is followed by another one"):
        tree.release(sd.State(tree), "bar")
    assert tree.topology is before
