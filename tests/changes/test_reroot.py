"""Another link becomes the one that the free joint of a floating tree carries: the same motion, other coordinates."""

import numpy as np
import pytest
import sympy
from cases import norm
from hypothesis import assume, given
from hypothesis import strategies as st
from kinds import EVERY
from maximal import kinetic_energy, twists
from numpy.testing import assert_allclose, assert_array_equal

import screwdyn as sd
from screwdyn.testing import random_inertia, random_pose, random_tree

BOX = sd.Inertia.box(1.0, (0.1, 0.2, 0.4), com=(0, 0, 0.2))


def floating(rng):
    """A tree of all kinds of joints on a free joint beside a body on the base, and a state of it."""
    tree = sd.KinematicTree("ground", gravity=rng.uniform(-9, 9, 3))
    free = sd.free(name="float", passive=True)
    tree.attach(random_tree(rng, 3, EVERY), to="ground", joint=free, at=random_pose(rng), name="trunk")
    tree.set_inertia("trunk", random_inertia(rng))
    tree.attach(random_inertia(rng), to="ground", joint=sd.revolute("x"), name="door")
    tree.attach(random_tree(rng, 3, EVERY), to="link2", at=random_pose(rng), prefix="later/")
    return tree, sd.State(tree, tree.random_configuration(rng), rng.normal(size=tree.nv))


def entries(state):
    return [x for part in state.to_dict().values() for x in part.items()]


def apart(one, other):
    """The largest difference of the entries of two states, by name."""
    one, other = dict(entries(one)), dict(entries(other))
    assert one.keys() == other.keys()
    return max(abs(one[name] - other[name]) for name in one)


@given(st.integers(0, 2**32 - 1))
def test_all_links_move_as_before(seed):
    """Poses, and twists that are composed from joint to joint; accelerations under the same weight and forces."""
    rng = np.random.default_rng(seed)
    tree, state = floating(rng)
    before, link = tree.copy(), str(rng.choice(tree.subtree("trunk")))
    event = tree.reroot(link, state)
    after = event.state
    assert (event.link, event.energy_lost, event.kinetic_energy_brought) == (link, 0.0, 0.0)
    assert (tree.parent(link), tree.joint("float").kind, tree.joint("float").passive) == ("ground", "free", True)
    assert {*tree.links} == {*before.links}
    assert sorted(tree.coordinates) == sorted(before.coordinates)
    assert tree.links.index("door") == before.links.index("door")
    for name in tree.links:
        T = before.forward_kinematics(name, state.q)
        assert_allclose(tree.forward_kinematics(name, after.q), T, rtol=0, atol=1e-13 * (1 + norm(T)))
    V, V_before = twists(tree, after.q, after.qd), twists(before, state.q, state.qd)
    for name, twist in V.items():
        assert_allclose(twist, V_before[name], rtol=0, atol=1e-12 * (1 + max(map(norm, V_before.values()))))
    assert_allclose(kinetic_energy(tree, V), before.kinetic_energy(state.q, state.qd), rtol=1e-11)
    assume(np.linalg.cond(before.mass_matrix(state.q)) < 1e7)
    single = [name for name in before.coordinates if "[" not in name]
    forces = dict(zip(single, rng.normal(size=len(single)), strict=True))
    found = []
    for one, at in ((before, state), (tree, after)):
        qdd = one.forward_dynamics(at.q, at.qd, [forces.get(name, 0.0) for name in one.coordinates])
        found.append(np.array([one.link_acceleration(name, at.q, at.qd, qdd, "base") for name in before.links]))
    assert_allclose(found[1], found[0], rtol=0, atol=1e-8 * (1 + norm(found[0])))


@given(st.integers(0, 2**32 - 1))
def test_there_and_back(seed):
    """The same links, joints and names, and the same state; in the same order from the second way on."""
    rng = np.random.default_rng(seed)
    tree, state = floating(rng)
    before, link = tree.copy(), str(rng.choice(tree.subtree("trunk")))
    there = tree.reroot(link, state).state
    back = tree.reroot("trunk", there).state
    assert apart(back, state) < 1e-13 * (1 + max(abs(x) for _, x in entries(there)))
    for name in before.links[1:]:
        one, other = before.topology.attachments[name], tree.topology.attachments[name]
        assert (one.parent, one.name, one.serial) == (other.parent, other.name, other.serial)
        assert_allclose(other.joint.screws, one.joint.screws, rtol=0, atol=1e-13)
        assert_allclose(other.home, one.home, rtol=0, atol=1e-13)
    names = tree.links, tree.coordinates
    back = tree.reroot("trunk", tree.reroot(link, back).state).state
    assert (tree.links, tree.coordinates) == names
    if before.path(link)[2:] == before.links[2 : len(before.path(link))]:
        assert names == (before.links, before.coordinates)
    same = tree.reroot("trunk", back).state
    assert apart(same, back) < 1e-13 * (1 + norm(back.q))


def test_links_between_come_first_and_others_follow():
    tree = sd.KinematicTree("ground")
    tree.attach(BOX, to="ground", joint=sd.revolute("z"), name="door")
    tree.attach(BOX, to="ground", joint=sd.free(), name="trunk")
    for side in ("left ", "right "):
        for part, to in (("hip", "trunk"), ("shin", f"{side}hip"), ("foot", f"{side}shin")):
            tree.attach(BOX, to=to, joint=sd.revolute("y"), name=f"{side}{part}")
    tree.attach(BOX, to="ground", joint=sd.revolute("z"), name="gate")
    handle = tree.attach(BOX, to="right foot", name="toe")
    tree.reroot("right foot")
    right, left = [[f"{side} {part}" for part in ("hip", "shin", "foot")] for side in ("right", "left")]
    assert tree.links == ("ground", "door", *right[::-1], "trunk", *left, "gate", "toe")
    assert tree.joints == ("door", "trunk", *right[::-1], *left, "gate", "toe")
    assert tree.coordinates[1:8] == (*(f"trunk[{x}]" for x in ("wx", "wy", "wz", "vx", "vy", "vz")), "right foot")
    assert tree.resolve(handle) == "toe"


def robot():
    """A floating robot with everything that a joint may have on the path to its toe."""
    tree = sd.KinematicTree("ground", gravity=(0.5, 0, -9.81))
    tree.attach(BOX, to="ground", joint=sd.free(name="float", passive=True), at=(0, 0, 1), name="trunk")
    knee = sd.revolute("y", name="knee", damping=0.3, stiffness=5.0, rest=0.2, rotor=sd.Rotor(1e-4, 50))
    for name, to, joint in (
        ("arm", "trunk", sd.spherical(damping=0.1)),
        ("thigh", "trunk", sd.universal("x", "y", name="hip", damping=0.2)),
        ("shin", "thigh", knee),
        ("heel", "shin", sd.revolute("y", mimic=sd.Mimic("knee", -0.5, 0.1), name="ankle")),
        ("sole", "heel", sd.prismatic("z", name="pad", stiffness=200.0, armature=0.3, friction=0.1)),
        ("ball", "sole", sd.spherical(name="joint")),
        ("toe", "ball", sd.revolute("x", name="hinge")),
    ):
        tree.attach(random_inertia(np.random.default_rng(len(name))), to, joint, (0.1, 0.02, -0.3), name)
    tree.lock("hinge", at=0.4)
    rng = np.random.default_rng(7)
    rates = {"pad": 0.3, "knee": 0.7, "hip[w1]": -1.0, "float[wx]": 2.0, "joint[wz]": 3.0, "arm[wx]": 1.0}
    return tree, sd.State(tree, tree.integrate(tree.neutral(), rng.uniform(-0.5, 0.5, tree.nv)), rates)


def test_forces_rotors_couplings_and_locks_stay():
    tree, state = robot()
    before = tree.copy()
    after = tree.reroot("toe", state).state
    assert tree.path("trunk") == ("ground", "toe", "ball", "sole", "heel", "shin", "thigh", "trunk")
    assert (tree.parent("knee_rotor"), tree.locked, tree.joint("ankle").mimic.joint) == ("thigh", ("hinge",), "knee")
    for energy in ("kinetic_energy", "potential_energy"):
        args = (1, 2) if energy == "kinetic_energy" else (1,)
        values = [getattr(x, energy)(*(s.q, s.qd)[: len(args)]) for x, s in ((tree, after), (before, state))]
        assert_allclose(values[0], values[1], rtol=1e-12)
    forces = [
        dict(zip(x.coordinates, x.joint_force(s.q, s.qd), strict=True)) for x, s in ((tree, after), (before, state))
    ]
    for name in ("knee", "pad"):
        assert_allclose(forces[0][name], forces[1][name], rtol=1e-12)
    assert [after.velocity(f"hip[w{k}]") for k in "12"] == [state.velocity(f"hip[w{k}]") for k in "21"]
    assert apart(tree.reroot("trunk", after).state, state) < 1e-13
    tree.unlock("hinge")
    assert tree.lock_of("knee") is None


def test_a_run_goes_on_as_without_it():
    """Whatever joints have, and with a torque and a wrench; the ledger closes and books nothing."""
    runs = []
    for events in ([], [sd.Reroot("toe", time=0.1), sd.Reroot("sole", when=lambda t, state: t - 0.2)]):
        tree, state = robot()
        runs.append(
            sd.simulate(
                *(tree, state, 0.3),
                events=events,
                torque=lambda t, state: {"knee": np.sin(20 * t)},
                wrenches=lambda t, state: {"heel": [0.1, 0, 0, 0, 1, 0]},
                step=0.01,
                rtol=1e-11,
                atol=1e-12,
            )
        )
    assert [happened.verb for happened in runs[1].events] == ["reroot", "reroot"]
    assert runs[1].tree.parent("sole") == "ground"
    assert_array_equal(runs[1].energy.impact_loss, 0)
    assert np.abs(runs[1].energy.exchanged).max() < 1e-12  # rounding of the potential energy
    assert np.abs(runs[1].energy.residual).max() < 1e-8
    ends = [run.states[-1] for run in runs]
    for link in runs[0].tree.links:
        poses = [end.tree.forward_kinematics(link, end.q) for end in ends]
        assert_allclose(poses[1], poses[0], rtol=0, atol=1e-9)
    assert_allclose(ends[1]["pad"], ends[0]["pad"], rtol=0, atol=1e-9)
    assert_allclose(ends[1].velocity("knee"), ends[0].velocity("knee"), rtol=0, atol=1e-9)


def test_the_quaternion_stays_on_its_side():
    tree = sd.KinematicTree("ground")
    tree.attach(BOX, to="ground", joint=sd.free(name="float"), name="trunk")
    tree.attach(BOX, to="trunk", joint=sd.revolute("y"), name="arm")
    for w in (-0.6, 0.6):
        state = sd.State(tree, {"float": [0.8, 0, 0, w, 1, 2, 3], "arm": 0.1})
        copy = tree.copy()
        there = copy.reroot("arm", state).state
        assert there["float[w]"] * w > 0
        assert apart(copy.reroot("trunk", there).state, state) < 1e-15 * 10


def test_beyond_a_free_joint_on_another_link():
    """A drone above a ship: its coordinates are relative to the ship, which moves."""
    tree = sd.KinematicTree("sea")
    tree.attach(BOX, to="sea", joint=sd.planar("z"), name="ship")
    tree.attach(BOX, to="ship", joint=sd.free(name="flight", passive=True), at=(0, 0, 2), name="drone")
    tree.attach(BOX, to="drone", joint=sd.revolute("y", name="gimbal"), at=(0.1, 0, -0.1), name="camera")
    rng = np.random.default_rng(0)
    state = sd.State(tree, tree.random_configuration(rng), rng.normal(size=tree.nv))
    before = tree.copy()
    after = tree.reroot("camera", state).state
    V, V_before = twists(tree, after.q, after.qd), twists(before, state.q, state.qd)
    for link in V:
        assert_allclose(V[link], V_before[link], rtol=0, atol=1e-13)
    assert [after.velocity(f"ship[{x}]") for x in ("w", "vx", "vy")] == [*state.qd[:3]]


def test_without_a_state():
    """The structure alone changes, as with one; a state of the tree before does not fit it."""
    tree, state = robot()
    moving = tree.copy()
    moving.reroot("shin", state)
    assert tree.reroot("shin") is None
    assert (tree.links, tree.coordinates) == (moving.links, moving.coordinates)
    q = tree.random_configuration(np.random.default_rng(1))
    assert_array_equal(tree.mass_matrix(q), moving.mass_matrix(q))
    with pytest.raises(sd.StaleHandleError, match="give its positions, onto"):
        state.onto(tree)


def held(joint):
    """A trunk on a joint, a leg on it, and a foot."""
    tree = sd.KinematicTree("ground")
    tree.attach(BOX, to="ground", joint=joint, name="trunk")
    tree.attach(BOX, to="trunk", joint=sd.revolute("y", name="hip", rotor=sd.Rotor(1e-4, 10)), name="leg")
    tree.attach(BOX, to="leg", joint=sd.planar("z", damping=0.1), name="foot")
    tree.attach(BOX, to="hip_rotor", name="flag")
    return tree


REFUSED = {
    "no free joint": (
        lambda: held(sd.revolute("z")),
        "leg",
        sd.TopologyError,
        r"by 'trunk' \(revolute\) → 'hip' \(rev",
    ),
    "the base": (lambda: held(sd.free()), "ground", sd.TopologyError, "by nothing, because it is the base"),
    "locked": (lambda: locked(held(sd.free())), "leg", sd.TopologyError, r"by 'trunk' \(locked free\) → 'hip'"),
    "damping": (lambda: held(sd.free(damping=1)), "leg", sd.JointError, "free joint 'trunk' has damping or friction"),
    "friction": (lambda: held(sd.free(friction=1)), "leg", sd.JointError, "remove them by replace_joint"),
    "a damped plane": (lambda: held(sd.free()), "foot", sd.JointError, "joint 'foot' of 'foot': a planar joint with"),
    "a rotor": (lambda: held(sd.free()), "hip_rotor", sd.TopologyError, "'hip_rotor' is the rotor of joint 'hip'"),
    "beyond a rotor": (lambda: held(sd.free()), "flag", sd.TopologyError, "'hip_rotor' is the rotor of joint 'hip'"),
    "symbols": (lambda: tall(held(sd.free())), "head", sd.UnboundSymbolError, "still depends on height"),
    "no link": (lambda: held(sd.free()), "lag", sd.UnknownNameError, "did you mean"),
    "a joint": (lambda: held(sd.free()), "hip", sd.UnknownNameError, "that is a joint, which carries the link 'leg'"),
}


def locked(tree):
    tree.lock("trunk")
    return tree


def tall(tree):
    tree.attach(BOX, to="trunk", joint=sd.revolute("y"), at=(0, 0, sympy.Symbol("height")), name="head")
    return tree


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused(what):
    make, link, error, message = REFUSED[what]
    for moving in (False, True):
        tree = make()
        before = tree.topology
        with pytest.raises(error, match=message):
            tree.reroot(link, sd.State(tree) if moving else None)
        assert tree.topology is before


def test_a_stale_handle_or_state_is_refused():
    tree = held(sd.free())
    handle, state = tree.attach(BOX, to="foot", name="toe"), sd.State(tree)
    tree.detach(handle)
    tree.replace_joint("foot", sd.fixed())
    with pytest.raises(sd.StaleHandleError):
        tree.reroot(handle)
    with pytest.raises(sd.StaleHandleError):
        tree.reroot("leg", state)


def worm():
    """An inchworm in a plane, at rest: two feet and three hinges between them."""
    tree = sd.KinematicTree("ground")
    rod = sd.Inertia.rod(1.0, 0.5, com=(0.25, 0, 0))
    tree.attach(sd.Inertia.box(0.5, (0.1, 0.1, 0.1)), "ground", sd.free(name="float", passive=True), name="tail")
    tree.attach(rod, "tail", sd.revolute("y", name="a"), name="first")
    tree.attach(rod, "first", sd.revolute("y", name="b"), (0.5, 0, 0), "second")
    tree.attach(sd.Inertia.box(0.5, (0.1, 0.1, 0.1)), "second", sd.revolute("y", name="c"), (0.5, 0, 0), "head")
    return tree


def crouch(bend):
    """Torques that hold the weight and bend the worm, whichever foot carries it."""
    goal = {"a": -bend, "b": 2 * bend, "c": -bend}

    def torque(t, state):
        weight = dict(zip(state.coordinates, state.tree.gravity_vector(state.q), strict=True))
        return {x: weight[x] + 60 * (goal[x] - state[x]) - 6 * state.velocity(x) for x in goal}

    return torque


@pytest.mark.slow
def test_an_inchworm_walks():
    """It stands on one foot and moves the other; then stands on both, and lets go of the first: forwards, as feet hold.

    The worm that stands has no coordinates but those of its hinges: the free joint, which carries the foot, is locked.
    """
    tree = worm()
    state = tree.weld("tail", "ground", sd.State(tree, {"a": -1.0, "b": 2.0, "c": -1.0})).state
    feet, places = ("tail", "head"), []
    for step in range(4):
        stands, moves = feet if step % 2 == 0 else feet[::-1]
        held = tree.forward_kinematics(stands, state.q)
        torque = crouch(0.2 if stands == "tail" else 1.0)
        state = sd.simulate(tree, state, 0.6, torque, method="Radau", rtol=1e-4, step=0.02).states[-1]
        assert {*tree.coordinates} == {"a", "b", "c"}
        assert_allclose(tree.forward_kinematics(stands, state.q), held, rtol=0, atol=1e-13)
        places.append([tree.forward_kinematics(foot, state.q)[0, 3] for foot in feet])
        landed = tree.weld(moves, "ground", state)
        assert (tree.loops, landed.by, landed.energy_lost >= 0) == ((landed.by,), f"{moves}-ground", True)
        lifted = tree.unweld(stands, "ground", landed.state)
        rooted = tree.reroot(moves, lifted.state)
        stood = tree.weld(moves, "ground", tree.unweld(moves, "ground", rooted.state).state)
        assert (stood.by, tree.loops, tree.parent(moves)) == ("float", (), "ground")
        assert stood.energy_lost < 1e-12
        state = stood.state
    tails, heads = np.array(places).T
    assert np.diff(heads[::2]).min() > 0.2
    assert np.diff(tails[1::2]).min() > 0.2


def test_the_rotor_of_a_reversed_joint_stays_on_its_carrier():
    tree = sd.KinematicTree("ground")
    tree.attach(BOX, to="ground", joint=sd.free(), name="trunk")
    tree.attach(BOX, to="trunk", joint=sd.revolute("y", name="hip", rotor=sd.Rotor(1e-4, 10)), name="leg")
    tree.reroot("leg")
    assert (tree.parent("hip_rotor"), tree.joint("hip").rotor.carrier) == ("trunk", "trunk")
