"""What one link exerts on another in a run, by joints and by loops, against balances of momentum and known forces."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import screwdyn as sd
from screwdyn.screws.screw import Ad, inverse

LEG = sd.Inertia.rod(2.0, 0.5, axis="z", com=(0, 0, -0.25))
FEET = "left foot", "right foot"


def standing():
    """A floating trunk with two bent legs, whose feet a loop holds on the ground each."""
    tree = sd.KinematicTree("world")
    trunk = sd.Inertia.box(8.0, (0.3, 0.4, 0.5), com=(0.05, 0, 0.1))
    tree.attach(trunk, to="world", joint=sd.free(passive=True), name="trunk")
    bent = {}
    for side, y in (("left", 0.2), ("right", -0.2)):
        tree.attach(LEG, to="trunk", joint=sd.spherical(), at=(0, y, 0), name=f"{side} hip")
        tree.attach(LEG, to=f"{side} hip", joint=sd.revolute("y"), at=(0, 0, -0.5), name=f"{side} knee")
        sole = sd.Inertia.box(1.0, (0.2, 0.1, 0.05), com=(0.05, 0, -0.02))
        ankle = sd.universal("x", "y")
        tree.attach(sole, to=f"{side} knee", joint=ankle, at=(0, 0, -0.5), name=f"{side} foot")
        thigh = [0, np.sin(-0.15), 0, np.cos(-0.15)]
        bent |= {f"{side} hip": thigh, f"{side} knee": 0.6, f"{side} foot": [0, -0.3]}
    state = sd.State(tree, bent)
    for foot in FEET:
        tree.close(foot, to="world", at=tree.forward_kinematics(foot, state.q), name=f"{foot} on the ground")
    return tree, sd.State(tree, state.q)


def push(t):
    return np.array([1, 0, 2, 30 * t, 3, -4])


@pytest.fixture(scope="module")
def run():
    tree, state = standing()
    held, active = tree.holding_torque(state.q), tree.actuation_matrix.any(axis=1)

    def torque(t, s):
        return np.where(active, held + 5 * np.sin(9 * t + np.arange(tree.nv)) - 8 * s.qd, 0.0)

    return sd.simulate(tree, state, 0.1, torque, wrenches=lambda t, s: {"trunk": push(t)}, step=0.002)


def in_base(tree, link, q, F):
    return Ad(inverse(tree.forward_kinematics(link, q))).T @ F


@pytest.mark.slow
def test_the_ground_gives_what_gravity_and_motion_take(run):
    """Σ reactions + weight + push = the rate of the momentum, by differences; between samples, to order 2."""
    tree, h = run.tree, 3e-4

    def momentum(t):
        state = run.at(t)
        return tree.momentum(state.q, state.qd)

    for times, error in ((run.t[5:45:13], 1e-6), (run.t[5:45:13] + 0.001, 0.02)):
        feet = {foot: run.wrench(foot, times, by="world") for foot in FEET}
        for k, t in enumerate(times):
            rate = (8 * (momentum(t + h) - momentum(t - h)) - momentum(t + 2 * h) + momentum(t - 2 * h)) / (12 * h)
            q = run.at(t).q
            weight = tree.mass * tree.gravity
            given = np.concatenate([np.cross(tree.center_of_mass(q), weight), weight])
            given += in_base(tree, "trunk", q, push(t))
            given += sum(in_base(tree, foot, q, F[k]) for foot, F in feet.items())
            assert_allclose(given, rate, rtol=0, atol=error * tree.mass)


def test_all_that_acts_on_a_foot_moves_it(run):
    """What the ground and the shin exert on it, which is the opposite of what it exerts on the shin."""
    for foot, shin in zip(FEET, ("left knee", "right knee"), strict=True):
        whole = run.wrench(foot)
        parts = run.wrench(foot, by="world") + run.wrench(foot, by=shin)
        assert_allclose(parts, whole, rtol=0, atol=1e-9)
        q = run.q[17]
        here, there = (in_base(run.tree, a, q, run.wrench(a, by=b)[17]) for a, b in ((foot, shin), (shin, foot)))
        assert_allclose(here, -there, rtol=0, atol=1e-9)
        assert_allclose(run.wrench("world", by=foot)[17], -in_base(run.tree, foot, q, run.wrench(foot, by="world")[17]))
    ankle = run.tree.coordinates.index("left foot[w2]")
    assert_allclose(run.wrench("left foot", by="left knee")[:, 1], run.tau[:, ankle], rtol=0, atol=1e-8)


def test_two_feet_at_rest_share_the_weight():
    tree, state = standing()
    held = tree.holding_torque(state.q)
    run = sd.simulate(tree, state, 0.01, lambda t, s: held, step=0.01)
    for foot in FEET:
        force = run.wrench(foot, by="world")[:, 5]
        assert_allclose(force, tree.mass * 9.81 / 2, rtol=1e-9)


def test_a_reaction_that_more_loops_than_needed_share():
    """Three balls under a plate: what they give together is determined. With a leg to the side it is not."""
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.box(3, (1, 1, 0.1)), to="base", joint=sd.free(passive=True), name="plate")
    tree.attach(sd.Inertia.box(1, (1, 1, 1)), to="base", at=(1, 0, 0), name="block")
    for k, point in enumerate(((0.5, 0.5, 0), (-0.5, 0.5, 0), (0, -0.5, 0))):
        tree.close("plate", to="base", joint=sd.spherical(point), at=(0, 0, 0), name=f"ball {k}")
    run = sd.simulate(tree, sd.State(tree), 0.01, step=0.01)
    weight = [0, 0, 0, 0, 0, 3 * 9.81]
    assert_allclose(run.wrench("plate", by="base"), [weight] * 2, atol=1e-9)
    tree.close("plate", to="block", joint=sd.spherical((0.5, 0, 0)), at=(-1, 0, 0), name="side")
    run = sd.simulate(tree, sd.State(tree), 0.01, step=0.01)
    assert np.isnan(run.wrench("plate", by="base")).all() and np.isnan(run.wrench("block", by="plate")).all()
    assert_allclose(run.wrench("plate"), [weight] * 2, atol=1e-9)


def test_the_reaction_begins_and_ends_with_its_loop():
    tree, state = standing()
    held = tree.holding_torque(state.q)
    events = [sd.Open("left foot on the ground", time=0.005)]
    run = sd.simulate(tree, state, 0.01, lambda t, s: held, events, step=0.001)
    after = run.t > 0.0051
    left = run.wrench("left foot", by="world")
    assert (left[after] == 0).all() and (abs(left[run.t < 0.0049][:, 5] - tree.mass * 9.81 / 2) < 1e-6).all()
    assert run.wrench("left foot", 0.005, "before", by="world")[5] > 80
    with pytest.raises(sd.UnknownNameError, match="there is no link 'left fot'; did you mean 'left foot'"):
        run.wrench("trunk", by="left fot")
    with pytest.raises(sd.ScrewdynError, match="nothing connects 'left foot' with 'trunk', but with left knee, world"):
        run.wrench("left foot", by="trunk")
    with pytest.raises(sd.UnknownNameError, match="did you mean 'left foot'"):
        run.wrench("left food", by="world")
