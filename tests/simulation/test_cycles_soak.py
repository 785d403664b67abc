"""Many cycles of changes: at rest no bit changes, in motion momentum and energy are kept, and memory stays flat."""

import gc
import os
import sys

import numpy as np
import pytest
from cases import norm

import screwdyn as sd
from screwdyn.testing import random_inertia, random_pose, random_tree

pytestmark = pytest.mark.soak

LENGTH = {"brief": 1e-3, "everyday": 1e-2, "short": 3e-3, "full": 1}[os.environ.get("SCREWDYN_SOAK", "everyday")]


def numbers(tree, q, qd):
    """Bits of M, C and g."""
    M, C, g = tree.dynamics(q[: tree.nq], qd[: tree.nv])
    return M.tobytes() + C.tobytes() + g.tobytes()


def blocks_after(cycles, cycle):
    """How many more blocks of memory the interpreter holds after all cycles than after half of them.

    In a new process, caches of the interpreter and of NumPy fill during some hundred cycles.
    """
    for k in range(cycles // 2):
        cycle(k)
    gc.collect()
    before = sys.getallocatedblocks()
    for k in range(cycles // 2, cycles):
        cycle(k)
    gc.collect()
    return sys.getallocatedblocks() - before


def test_a_million_attachments_leave_every_bit():
    rng = np.random.default_rng(0)
    tree, hand = random_tree(rng, 6, ("revolute", "prismatic", "helical", "spherical")), sd.KinematicTree("palm")
    hand.attach(random_inertia(rng), to="palm", joint=sd.prismatic("x"), name="finger")
    bodies = [random_inertia(rng), hand, sd.Link("frame"), sd.Inertia.point(0.5)]
    joints = [None, sd.revolute("y"), sd.spherical(passive=True)]
    variants = [
        (bodies[k % 4], tree.links[k % len(tree.links)], joints[k % 3], random_pose(rng), f"body{k}") for k in range(12)
    ]
    q = np.concatenate([tree.integrate(tree.neutral(), rng.uniform(-1, 1, tree.nv)), np.zeros(5)])
    qd = rng.normal(size=tree.nv + 4)
    q_with = [np.concatenate([q[: tree.nq], (joint or sd.fixed()).neutral, [0.2]]) for _, _, joint, _, _ in variants]
    start, seen = numbers(tree, q, qd), {}
    names = tree.links, tree.coordinates

    def cycle(k):
        k %= len(variants)
        body, to, joint, at, name = variants[k]
        handle = tree.attach(body, to, joint, at, name)
        found = numbers(tree, q_with[k], qd)
        assert found == seen.setdefault(k, found)
        tree.detach(handle)
        assert numbers(tree, q, qd) == start

    assert blocks_after(round(1e6 * LENGTH), cycle) < 200
    assert len(seen) == len(variants)
    assert len(set(seen.values())) > 8
    assert (tree.links, tree.coordinates) == names


def spacecraft(rng):
    """A free base with two arms, and a crate that flies beside it."""
    tree = sd.KinematicTree("space", gravity=(0, 0, 0))
    tree.attach(sd.Link("bus", random_inertia(rng)), to="space", joint=sd.free(passive=True, name="bus"))
    kinds = {"left": sd.universal, "right": sd.spherical}
    for side, shoulder in kinds.items():
        tree.attach(
            sd.Link(f"{side} arm", random_inertia(rng)),
            to="bus",
            joint=shoulder(name=f"{side} shoulder"),
            at=random_pose(rng),
        )
        tree.attach(
            sd.Link(side, random_inertia(rng)),
            to=f"{side} arm",
            joint=sd.revolute("y", name=f"{side} elbow"),
            at=random_pose(rng),
        )
    crate = sd.KinematicTree(sd.Link("crate", random_inertia(rng)), gravity=(0, 0, 0))
    crate.attach(random_inertia(rng), to="crate", joint=sd.revolute("z", name="lid"), at=random_pose(rng), name="lid")
    tree.attach(crate, to="space", joint=sd.free(passive=True, name="crate"), at=(1, 0, 0))
    return tree


def drift(tree, q, qd, h):
    """One step of length h without forces: the commutator-free method of order 4 of Celledoni and Owren."""

    def rates(q, v):
        return v, tree.forward_dynamics(q, v, np.zeros(tree.nv))

    v1, a1 = rates(q, qd)
    q2 = tree.integrate(q, h / 2 * v1)
    v2, a2 = rates(q2, qd + h / 2 * a1)
    v3, a3 = rates(tree.integrate(q, h / 2 * v2), qd + h / 2 * a2)
    v4, a4 = rates(tree.integrate(q2, h * (v3 - v1 / 2)), qd + h * a3)
    half = tree.integrate(q, h / 12 * (3 * v1 + 2 * v2 + 2 * v3 - v4))
    return tree.integrate(half, h / 12 * (-v1 + 2 * v2 + 2 * v3 + 3 * v4)), qd + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)


def driven(rng, tree, state):
    """The state after impulses of the motors that give the arms random rates; they change no momentum."""
    free = [name.startswith(("bus", "crate", "lid", "grip")) for name in state.coordinates]
    arms = np.flatnonzero(~np.array(free))
    rest = np.flatnonzero(free)
    M, jump = tree.mass_matrix(state.q), np.zeros(tree.nv)
    jump[arms] = rng.uniform(-1, 1, len(arms)) - state.qd[arms]
    jump[rest] = -np.linalg.solve(M[np.ix_(rest, rest)], M[np.ix_(rest, arms)] @ jump[arms])
    return sd.State(tree, state.q, state.qd + jump)


GRIPS = (
    sd.fixed("grip"),
    sd.revolute((1, 2, 3), passive=True, name="grip"),
    sd.spherical(passive=True, name="grip"),
    sd.prismatic("x", passive=True, name="grip"),
)


def test_a_hundred_thousand_grasps_in_motion_keep_the_momentum():
    """Grasp by one hand, hand-over to the other, release; the motors move the arms in between."""
    rng = np.random.default_rng(1)
    tree = spacecraft(rng)
    q = tree.integrate(tree.neutral(), rng.uniform(-1, 1, tree.nv))
    state = sd.State(tree, q, rng.uniform(-1, 1, tree.nv))
    momentum = tree.momentum(state.q, state.qd)
    names = set(tree.coordinates)
    far = lost = before = 0.0
    losses = 0

    def happened(event):
        """The event's state, after its energy and momentum have been checked against those of the bodies."""
        nonlocal lost, losses
        after = tree.kinetic_energy(event.state.q, event.state.qd)
        scale = max(before, after)
        lost = max(lost, abs(before + event.kinetic_energy_brought - event.energy_lost - after) / scale)
        losses += event.energy_lost > 1e-9 * scale
        return event.state, after

    def cycle(k):
        nonlocal far, state, before
        here, there = ("left", "right") if k % 2 else ("right", "left")
        state = driven(rng, tree, state)
        before = tree.kinetic_energy(state.q, state.qd)
        if k % 3 == 0:  # by way of a body outside the tree
            event = tree.release(state, "crate")
            state, before = happened(event)
            state, before = happened(tree.grasp(state, event.released, to=here, joint=GRIPS[k % 4]))
        else:
            state, before = happened(tree.grasp(state, "crate", to=here, joint=GRIPS[k % 4]))
        state = sd.State(tree, *drift(tree, state.q, state.qd, 1e-4))
        state = driven(rng, tree, state)
        before = tree.kinetic_energy(state.q, state.qd)
        state, before = happened(tree.move("crate", there, GRIPS[(k + 1) % 4], state=state))
        state, before = happened(tree.release(state, "crate", into_world=True))
        far = max(far, norm(tree.momentum(state.q, state.qd) - momentum) / norm(momentum))

    cycles = round(1e5 * LENGTH)
    blocks = blocks_after(cycles, cycle)
    print(f"{cycles} cycles: relative drift of momentum {far:.1e}, of energy {lost:.1e}; {blocks} blocks of memory")
    assert far < 1e-9
    assert lost < 1e-9
    assert losses > cycles
    assert set(tree.coordinates) == names
    assert blocks < 200


LOOPS = (
    sd.fixed(),
    sd.revolute((1, 2, 3)),
    sd.spherical((0.1, 0, 0)),
    sd.cylindrical("z"),
    sd.planar("y"),
    sd.helical("x", 0.1),
)


def test_ten_thousand_loops_in_motion_keep_the_momentum():
    """One hand seizes the crate, then the other, which closes a second loop; both let go. Motors push all the time."""
    rng = np.random.default_rng(2)
    tree = spacecraft(rng)
    arms = [tree.coordinates.index(name) for name in tree.coordinates if "shoulder" in name or "elbow" in name]
    q = tree.integrate(tree.neutral(), rng.uniform(-1, 1, tree.nv))
    state = sd.State(tree, q, rng.uniform(-1, 1, tree.nv))
    momentum = tree.momentum(state.q, state.qd)
    far = open_by = unbooked = 0.0
    losses = 0

    def happened(event):
        """The event's state, after its energy has been checked against that of the bodies."""
        nonlocal unbooked, losses
        before, after = tree.kinetic_energy(state.q, state.qd), tree.kinetic_energy(event.state.q, event.state.qd)
        unbooked = max(unbooked, abs(before - event.energy_lost - after) / before)
        losses += event.energy_lost > 1e-9 * before
        return event.state

    def pushed():
        """The state after impulses of the motors of the arms, and a moment later."""
        impulse = np.zeros(tree.nv)
        impulse[arms] = rng.uniform(-0.1, 0.1, len(arms))
        kick = np.linalg.solve(tree.mass_matrix(state.q), impulse)
        _, qd = tree.project(state.q, state.qd + kick)
        q, qd = tree.project(*drift(tree, state.q, qd, 1e-3))
        return sd.State(tree, q, qd)

    def cycle(k):
        nonlocal state, far, open_by
        handles = []
        for hand in ("left", "right"):
            event = tree.close("crate", to=hand, joint=LOOPS[(k + len(handles)) % len(LOOPS)], state=state)
            handles.append(event.handle)
            state = happened(event)
            open_by = max(open_by, np.abs(tree.gap(state.q)).max())
            state = pushed()
            far = max(far, norm(tree.momentum(state.q, state.qd) - momentum) / norm(momentum))
        for handle in handles:
            state = happened(tree.open(handle, state))

    cycles = round(3e4 * LENGTH)
    blocks = blocks_after(cycles, cycle)
    print(f"{cycles} cycles: drift of momentum {far:.1e}, of energy {unbooked:.1e}; gap {open_by:.1e}; {blocks} blocks")
    assert far < 1e-9
    assert open_by < 1e-12
    assert unbooked < 1e-9
    assert losses > cycles
    assert not tree.loops
    assert blocks < 200
