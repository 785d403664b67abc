"""Changes in any order of trees whose joints follow others and have rotors."""

import numpy as np
from cases import close
from hypothesis import given
from test_every_change import BODY, SEEDS, bits

import screwdyn as sd


def random_joint(rng, tree, name):
    """A joint with a rotor on some link, one that follows another, or one with neither."""
    carrier = some(rng, tree.links) if rng.random() < 0.5 else None
    makers = [
        lambda: sd.revolute("z", rotor=sd.Rotor(1e-3, 20, "y", carrier=carrier), name=name),
        lambda: sd.prismatic("x", rotor=sd.Rotor(1e-3, 20, mass=0.1, across=1e-3, carrier=carrier), name=name),
        lambda: sd.revolute("y", mimic=sd.Mimic(some(rng, tree.joints), 1.5, 0.1), name=name),
        lambda: sd.spherical(name=name),
        lambda: sd.revolute("x", armature=0.02, name=name),
        lambda: sd.fixed(name),
    ]
    return some(rng, makers)()


def some(rng, things):
    return things[int(rng.integers(len(things)))] if len(things) else "none"


def changed(rng, tree, state, name):
    """The event of a change of some kind, None of a change at rest."""
    link, to = some(rng, tree.links[1:]), some(rng, tree.links)
    joint, state = random_joint(rng, tree, name), state if rng.random() < 0.5 else None
    at_rest = [
        lambda: tree.attach(BODY, to, joint, (0.2, 0, 0.1), name=name),
        lambda: tree.attach(BODY, to, joint, (0.2, 0, 0.1), name=name),
        lambda: tree.detach(link),
    ]
    in_motion = [
        lambda: tree.grasp(state, BODY, to=to, twist=rng.normal(size=6), joint=joint, at=(0.2, 0, 0.1), name=name),
        lambda: tree.release(state, link),
        lambda: tree.release(state, link, into_world=True),
    ]
    either = [
        lambda: tree.lock(some(rng, tree.joints), state),
        lambda: tree.unlock(some(rng, tree.locked), state),
        lambda: tree.replace_joint(link, joint, state),
        lambda: tree.move(link, to, joint, state=state),
        lambda: tree.set_inertia(link, BODY, state),
    ]
    event = some(rng, [*either, *either, *(at_rest if state is None else in_motion)])()
    return event if state is not None else None


def check_a_sequence(seed, steps):
    rng, tree = np.random.default_rng(seed), sd.KinematicTree()
    tree.attach(BODY, "base", sd.revolute("z", rotor=sd.Rotor(1e-3, 20), name="first"), name="first")
    for step in range(steps):
        q = tree.random_configuration(rng)
        state, before = sd.State(tree, q, rng.normal(size=tree.nv)), tree.topology
        energy = tree.kinetic_energy(state.q, state.qd)
        try:
            event = changed(rng, tree, state, f"x{step}")
        except sd.ScrewdynError:
            assert tree.topology is before
            continue
        if event is not None:
            after = tree.kinetic_energy(event.state.q, event.state.qd)
            close(after, energy + event.kinetic_energy_brought - event.energy_lost, max(1, energy, after), 1e-8)
        joints = [lock.joint if (lock := tree.lock_of(name)) else tree.joint(name) for name in tree.joints]
        assert sum(joint.rotor is not None for joint in joints) == sum(x.endswith("_rotor") for x in tree.links)
    assert bits(sd.KinematicTree.from_json(tree.to_json())) == bits(tree)


@given(SEEDS)
def test_rotors_and_followers_stay_with_their_joints(seed):
    check_a_sequence(seed, 20)
