"""Runs of parts that nothing couples, against the closed forms of each: one's events leave the others as they move."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import screwdyn as sd
from screwdyn.simulation.islands import islands

g = 9.81
SPIN, DAMPING, INERTIA = 2.0, 0.05, 1.01 / 12
V0 = 2.0


def attach_ball(tree, name, restitution, to="base"):
    tree.attach(sd.Inertia.sphere(2.0, 0.1), to="base", joint=sd.free(), name=name)
    ball = {"points": (0, 0, 0), "radius": 0.1, "friction": 0.3, "restitution": restitution}
    tree.touch(name, to, on=sd.Plane(), name=f"under {name}", **ball)


@pytest.fixture(scope="module")
def moving():
    """A ball that bounces, a door with a damper that passes its limit, and a ball that slides and then rolls."""
    tree = sd.KinematicTree()
    attach_ball(tree, "bounces", 0.6)
    door = sd.Inertia.box(1.0, (1, 0.1, 1))
    tree.attach(door, to="base", joint=sd.revolute("z", name="hinge", damping=DAMPING, limits=(-1, 0.5)), name="door")
    attach_ball(tree, "rolls", 0.0)
    q, qd = tree.neutral(), np.zeros(13)
    q[6], q[14], qd[6], qd[10] = 1.1, 0.1, SPIN, V0
    return sd.simulate(tree, sd.State(tree, q, qd), 0.8, step=0.02, rtol=1e-12, atol=1e-14)


def height(t):
    """Of the ball above its rest, from 1 m, until its second bounce."""
    first = math.sqrt(2 / g)
    up, since = 0.6 * math.sqrt(2 * g), t - first
    return np.where(t < first, 1 - g * t**2 / 2, up * since - g * since**2 / 2)


def test_all_samples_are_of_all_islands(moving):
    run = moving
    t, q, qd = (np.concatenate([getattr(motion, name) for motion in run.motions]) for name in ("t", "q", "qd"))
    slides = np.minimum(t, 2 * V0 / (7 * 0.3 * g))
    rolled = V0 * slides - 0.3 * g * slides**2 / 2 + (t - slides) * 5 / 7 * V0
    assert (np.diff(t) >= 0).all()
    assert_allclose(q[:, 6] - 0.1, height(t), atol=1e-12)
    assert_allclose(qd[:, 6], SPIN * np.exp(-DAMPING / INERTIA * t), atol=1e-10)
    assert_allclose(q[:, 12], rolled, atol=1e-9)
    assert_allclose(q[:, 14], 0.1, atol=1e-14)
    middle = run.at(0.333)
    assert_allclose(middle.q[6] - 0.1, height(0.333), atol=1e-12)
    assert_allclose(middle.qd[6], SPIN * math.exp(-DAMPING / INERTIA * 0.333), atol=1e-10)


def test_events_are_in_order_with_the_state_of_all(moving):
    run, first = moving, math.sqrt(2 / g)
    passed = -math.log(1 - 0.5 * DAMPING / (INERTIA * SPIN)) * INERTIA / DAMPING
    rest = 2 * V0 / (7 * 0.3 * g)
    expected = [(passed, "door"), (rest, "rolls"), (first, "bounces")]
    assert [x.event.link for x in run.events] == [link for _, link in sorted(expected)]
    assert_allclose([x.t for x in run.events], sorted(t for t, _ in expected), atol=1e-8)
    for x in run.events:
        assert x.event.state.tree.coordinates == run.tree.coordinates
        assert_allclose(x.event.state.q[6] - 0.1, height(x.t), atol=1e-8)
        assert_allclose(x.event.state.qd[6], SPIN * math.exp(-DAMPING / INERTIA * x.t), atol=1e-10)
    first = next(x.t for x in run.events if x.event.link == "bounces")
    assert_allclose(run.at(first, "before").qd[5], -math.sqrt(2 * g), atol=1e-10)
    assert_allclose(run.at(first, "after").qd[5], 0.6 * math.sqrt(2 * g), atol=1e-10)


def test_forces_accelerations_and_ledger(moving):
    run = moving
    below = run.contact("under rolls", 0.7)
    assert below.states == ("sticks",)
    assert_allclose(below.forces, [(0, 0, 2 * g)], atol=1e-9)
    assert run.contact("under bounces", 0.7).states == ("open",)
    t, qdd = (np.concatenate([getattr(motion, name) for motion in run.motions]) for name in ("t", "qdd"))
    assert_allclose(qdd[:, 5], -g, atol=1e-7)
    assert_allclose(qdd[:, 6], -DAMPING / INERTIA * SPIN * np.exp(-DAMPING / INERTIA * t), atol=1e-7)
    assert np.abs(run.energy.residual).max() < 1e-10
    assert_allclose(run.energy.impact_loss[-1], (1 - 0.36) * 2 * g, rtol=1e-11)
    spun = 0.5 * INERTIA * SPIN**2 * (1 - math.exp(-2 * DAMPING / INERTIA * 0.8))
    assert_allclose(run.energy.dissipated[-1], spun + 2 * V0**2 / 7, rtol=1e-10)


def test_what_touches_or_bears_each_other_is_one_island():
    """A table that no joint moves belongs to all; a crate on a lift is of the lift's island."""
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.box(1.0, (1, 1, 1)), to="base", name="table")
    tree.attach(sd.Inertia.box(1.0, (1, 1, 1)), to="base", joint=sd.prismatic("z"), name="lift")
    tree.attach(sd.Inertia.box(1.0, (1, 1, 1)), to="lift", joint=sd.revolute("z"), name="turntable")
    for name, to in (("a", "table"), ("b", "table"), ("c", "turntable")):
        attach_ball(tree, name, 0.0, to)
    assert [sorted(part.links) for part in islands(tree)] == [
        ["base", "c", "lift", "table", "turntable"],
        ["a", "base", "table"],
        ["b", "base", "table"],
    ]
    tree.touch("a", "b", on=sd.Ball(0.1), points=(0, 0, 0), radius=0.1)
    assert len(islands(tree)) == 2
