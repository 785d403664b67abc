"""Changes in motion of joints with motors: rotors and armatures, against maximal coordinates."""

from dataclasses import replace

import maximal
import numpy as np
import pytest
from cases import close, norm
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import screwdyn as sd
from screwdyn import screw
from screwdyn.testing import random_inertia, random_pose, random_tree

TIGHT = 1e-8
MAKE = {"revolute": sd.revolute, "prismatic": sd.prismatic}


def random_motor(rng, carrier, contained):
    """A rotor on a link; one that the carrier's inertia contains has no mass, and less inertia than any carrier."""
    about = rng.uniform(1e-3, 4e-3) * (0.1 if contained else 1)
    body = {} if contained else {"mass": rng.uniform(0.2, 1), "across": about * rng.uniform(0.6, 2)}
    com, axis = rng.uniform(-0.2, 0.2, 3), rng.normal(size=3)
    return sd.Rotor(about, rng.uniform(5, 30) * rng.choice([-1, 1]), axis, com, carrier=carrier, **body)


def driven(rng, kind, name, carrier, contained, armature):
    rotor = random_motor(rng, carrier, contained)
    return MAKE[kind](rng.normal(size=3), rotor=rotor, armature=armature, name=name)


class Motion:
    """A robot in motion with a motor on a link, which has a child; the joint of this link may be exchanged."""

    def __init__(self, seed, kind, contained):
        rng = self.rng = np.random.default_rng(seed)
        self.kind, self.contained = kind, contained
        tree = self.tree = sd.KinematicTree("world")
        tree.attach(random_inertia(rng), "world", sd.free(passive=True), name="trunk")
        tree.attach(random_tree(rng, 3), "trunk", at=random_pose(rng), prefix="r/")
        joint = driven(rng, kind, "drive", "r/link2", contained, 0.3)
        tree.attach(random_inertia(rng), "r/link1", joint, random_pose(rng), "arm")
        tree.attach(random_inertia(rng), "arm", sd.revolute(rng.normal(size=3)), random_pose(rng), "hand")
        q = tree.integrate(tree.neutral(), rng.uniform(-1, 1, tree.nv))
        self.state = sd.State(tree, q, rng.uniform(-2, 2, tree.nv))

    def twists(self):
        return maximal.twists(self.tree, self.state.q, self.state.qd)


motions = st.builds(Motion, st.integers(0, 2**32 - 1), st.sampled_from([*MAKE]), st.booleans())


def moved_with(tree, q, rotor, carrier, V):
    """The twist of a rotor that does not turn in its carrier, in its own frame."""
    T = screw.inverse(tree.forward_kinematics(rotor, q)) @ tree.forward_kinematics(carrier, q)
    return screw.Ad(T) @ V


def assert_as_in_maximal_coordinates(tree, event, before, motors=()):
    """Twists after an event by the balance of all bodies before it, the rotors among them; and the energy."""
    q = event.state.q
    expected = maximal.impact(tree, q, before, motors)
    found, scale = maximal.twists(tree, q, event.state.qd), norm([*before.values()])
    for name, V in expected.items():
        close(found[name], V, max(scale, norm(V)), TIGHT)
    old = maximal.kinetic_energy(tree, before) + sum(0.5 * a * rate**2 for a, rate in dict(motors).values())
    new = tree.kinetic_energy(q, event.state.qd)
    close(event.energy_lost, old - new, old, TIGHT)
    assert event.energy_lost >= 0


def mounted(tree, q, joint, before):
    """The twists before with those of the rotor of a new joint, which its carrier carries."""
    names = [name for name in (f"{joint}_rotor", f"{joint}_rotor_at_rest") if name in tree.links]
    assert names
    return before | {name: moved_with(tree, q, name, tree.parent(name), before[tree.parent(name)]) for name in names}


@given(motions, st.booleans())
def test_a_replaced_joint(motion, with_motor):
    tree, before, old = motion.tree, motion.twists(), motion.tree.kinetic_energy(motion.state.q, motion.state.qd)
    kept = {name: V for name, V in before.items() if "rotor" not in name}
    new = driven(motion.rng, "revolute", "drive", "arm", not motion.contained, 0.5) if with_motor else sd.spherical()
    event = tree.replace_joint("arm", new, motion.state)
    motors = {"drive": (0.5, 0.0)} if with_motor else {}
    if with_motor:
        kept = mounted(tree, event.state.q, "drive", kept)
    else:
        assert not any("rotor" in name for name in tree.links)
    assert_as_in_maximal_coordinates(tree, event, kept, motors)
    after = tree.kinetic_energy(event.state.q, event.state.qd)
    close(after - old, event.kinetic_energy_brought - event.energy_lost, old + after, 1e-9)


@given(motions)
def test_a_move(motion):
    tree, before, old = motion.tree, motion.twists(), motion.tree.kinetic_energy(motion.state.q, motion.state.qd)
    kept = {name: V for name, V in before.items() if "rotor" not in name}
    joint = driven(motion.rng, motion.kind, "seat", None, motion.contained, 0.2)
    event = tree.move("arm", "r/link3", joint, state=motion.state)
    assert tree.parent("seat_rotor") == "r/link3"
    kept = mounted(tree, event.state.q, "seat", kept)
    assert_as_in_maximal_coordinates(tree, event, kept, {"seat": (0.2, 0.0)})
    after = tree.kinetic_energy(event.state.q, event.state.qd)
    close(after - old, event.kinetic_energy_brought - event.energy_lost, old + after, 1e-9)


@pytest.mark.slow
@given(motions, st.sampled_from([None, "load", "r/link1"]))
def test_a_grasp_and_a_release(motion, carrier):
    tree, rng, before = motion.tree, motion.rng, motion.twists()
    old = tree.kinetic_energy(motion.state.q, motion.state.qd)
    joint = driven(rng, motion.kind, "grip", carrier, motion.contained, 0.4)
    V = rng.uniform(-2, 2, 6)
    event = tree.grasp(
        motion.state, random_inertia(rng), to="hand", joint=joint, at=random_pose(rng), twist=V, name="load"
    )
    kept = mounted(tree, event.state.q, "grip", before | {"load": V})
    motors = {"grip": (0.4, 0.0), "drive": (0.3, motion.state.velocity("drive"))}
    assert_as_in_maximal_coordinates(tree, event, kept, motors)
    after = tree.kinetic_energy(event.state.q, event.state.qd)
    close(after - old, event.kinetic_energy_brought - event.energy_lost, old + after, 1e-9)
    # Away with the payload, into the world: its motor is gone, the rates of all others continue.
    twin = tree.copy()
    flown = twin.release(event.state, "load", into_world=True)
    assert "grip_rotor" not in twin.links
    assert_allclose(flown.state.velocity("drive"), event.state.velocity("drive"), rtol=1e-14)
    left = twin.kinetic_energy(flown.state.q, flown.state.qd)
    close(left - after, flown.kinetic_energy_brought, old + after, 1e-9)
    gone = tree.release(event.state, "load")
    left = tree.kinetic_energy(gone.state.q, gone.state.qd)
    close(left - after, gone.kinetic_energy_brought, old + after, 1e-9)


@given(motions)
def test_a_lock_stops_the_rotor_and_a_detachment_takes_it_along(motion):
    tree, state = motion.tree, motion.state
    M = tree.mass_matrix(state.q)
    event = tree.lock("drive", state)
    own = state.coordinates.index("drive")
    rest = [k for k in range(len(M)) if k != own]
    expected = np.linalg.solve(M[np.ix_(rest, rest)], M[rest] @ state.qd)
    close(event.state.qd, expected, norm(expected) + norm(state.qd), TIGHT)
    close(event.impulse, M[[own]] @ (np.insert(event.state.qd, own, 0.0) - state.qd), norm(M) * norm(state.qd), TIGHT)
    tree.detach("arm")
    assert not any("rotor" in name for name in tree.links)


def test_a_motor_on_the_base_by_hand():
    """A wheel of inertia I, spinning at Ω, is put on a geared motor at rest: I Ω = (I + r² I_s) ω."""
    I, spin, motor = 0.5, 3.0, sd.Rotor(1e-3, 20.0)
    tree = sd.KinematicTree()
    wheel = sd.Inertia(2.0, tensor=(0.3, 0.3, I))
    event = tree.grasp(
        sd.State(tree), wheel, to="base", joint=sd.revolute("z", rotor=motor), twist=[0, 0, spin, 0, 0, 0], name="wheel"
    )
    omega = I * spin / (I + 20.0**2 * 1e-3)
    assert_allclose(event.state.qd, [omega], rtol=1e-12)
    assert_allclose(event.energy_lost, 0.5 * I * spin**2 - 0.5 * I * spin * omega, rtol=1e-12)
    assert_allclose(event.impulse[2], I * (omega - spin), rtol=1e-12)


def test_without_a_state_the_rotor_comes_and_goes_too():
    tree = sd.robots.two_link()
    link, links = tree.links[-1], tree.links
    joint = tree.joint(tree.joints[-1])
    tree.replace_joint(link, replace(joint, rotor=sd.Rotor(1e-3, 30)))
    assert tree.links[len(links) :] == (f"{tree.joints[1]}_rotor", f"{tree.joints[1]}_rotor_at_rest")
    tree.move(link, "base", sd.revolute("z", name="other", rotor=sd.Rotor(1e-3, 30)))
    assert tree.links[-2:] == ("other_rotor", "other_rotor_at_rest")
    assert not [name for name in tree.links if name.startswith(links[-1]) and "rotor" in name]
    tree.attach(sd.Link("disc"), "other_rotor")
    before = tree.topology
    with pytest.raises(sd.TopologyError, match="the rotor 'other_rotor' carries 'disc'"):
        tree.replace_joint(link, joint)
    assert tree.topology is before


@pytest.mark.parametrize(
    "change",
    [
        lambda tree, state: tree.release(state, "tool"),
        lambda tree, state: tree.release(state, "tool", into_world=True),
        lambda tree, state: tree.move("tool", "base", state=state),
        lambda tree, state: tree.replace_joint("tool", sd.spherical(), state),
    ],
)
def test_the_rotor_of_a_locked_joint_leaves_with_its_energy(change):
    tree = sd.robots.two_link()
    rotor = sd.Rotor(1e-3, 30, mass=0.2, across=1e-3)
    tree.attach(sd.Inertia.box(1, (0.1, 0.2, 0.3)), tree.links[-1], sd.revolute("x", rotor=rotor), name="tool")
    state = tree.lock("tool", sd.State(tree, [0.1, 0.2, 0.3], [1.0, -2.0, 3.0])).state
    before, carried = tree.kinetic_energy(state.q, state.qd), tree.link_twist("tool_rotor", state.q, state.qd, "body")
    event = change(tree, state)
    after = tree.kinetic_energy(event.state.q, event.state.qd)
    assert_allclose(after - before, event.kinetic_energy_brought - event.energy_lost, rtol=1e-10)
    own = 0.5 * carried @ rotor.bodies[0].matrix @ carried
    payload = getattr(event, "released", None)
    gone = 0.0 if payload is None or "tool" in tree.links else payload.kinetic_energy
    assert_allclose(event.kinetic_energy_brought, -own - gone, rtol=1e-10)


def test_what_follows_the_rest_stays_coupled_in_flight_and_in_a_grasp():
    """A joint of the payload follows the arm, and its motor stands on the arm: only the copy in the event is free."""
    box, tree = sd.Inertia.box(1, (0.1, 0.2, 0.3), (0.05, 0.02, 0.1)), sd.KinematicTree()
    tree.attach(box, "base", sd.revolute("z", name="a"), name="A")
    tree.attach(box, "A", sd.revolute("y", name="b"), (0.2, 0.1, 0), "B")
    tree.attach(box, "B", sd.revolute("x", name="c", rotor=sd.Rotor(1e-3, 50, carrier="A")), (0.1, 0.2, 0), "C")
    tree.attach(box, "B", sd.prismatic("x", name="m", mimic=sd.Mimic("a", 0.7, 0.1)), (0, 0.2, 0), "M")
    state = sd.State(tree, [0.1, 0.2, 0.3], [1.0, 2.0, 3.0])
    energy, poses = tree.kinetic_energy(state.q, state.qd), tree.link_poses(state.q)
    flying, held = tree.copy(), tree.copy()
    released = flying.release(state, "B", into_world=True)
    grasped = held.grasp(state, "B", to="base", joint=sd.free())
    for after, event, body in ((flying, released, released.released), (held, grasped, grasped.payload)):
        q, qd = event.state.q, event.state.qd
        assert_allclose(after.kinetic_energy(q, qd), energy, rtol=1e-13)
        for k, link in enumerate(tree.links):
            assert_allclose(after.forward_kinematics(link, q), poses[k], atol=1e-14)
            if link in body.tree.links:
                found = body.pose @ body.tree.forward_kinematics(link, body.state.q)
                assert_allclose(found, poses[k], atol=1e-14)
                twist = screw.Ad(screw.inverse(body.tree.forward_kinematics(link, body.state.q))) @ body.twist
                own = body.tree.link_twist(link, body.state.q, body.state.qd, "body")
                assert_allclose(twist + own, tree.link_twist(link, state.q, state.qd, "body"), atol=1e-14)
        assert body.tree.coordinates == ("c", "m") and body.tree.joint("c").rotor is None
        assert after.joint("c").rotor is not None and after.joint("m").mimic is not None
    with pytest.raises(sd.TopologyError, match="from which it would be separated"):
        tree.release(state, "B")
