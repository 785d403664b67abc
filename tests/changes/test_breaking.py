"""Loops that break, at instants with closed forms."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

import screwdyn as sd

G = 9.81


def carried(*joints, mass=2.0, com=(0, 0, 0)):
    """A payload on a free joint, held by a loop at the tip of a tool with some joints."""
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.sphere(1.0, 0.1), to="base", joint=joints[0], name="tool")
    tree.attach(sd.Inertia.sphere(mass, 0.1, com=com), to="base", joint=sd.free(), name="load")
    tree.close("load", to="tool", name="grip")
    return tree


def broken(tree, limit, torque, duration=2.0, **more):
    """When the loop breaks, and the run."""
    run = sd.simulate(tree, sd.State(tree), duration, torque, events=[sd.Break("grip", limit, **more)], step=0.1)
    (found,) = [happened for happened in run.events if happened.verb == "break"]
    assert found.event.loop == "grip"
    assert run.tree.loops == ()
    assert np.abs(run.energy.residual).max() < 1e-7
    return found.t, run


def lifted(jerk, weight=3.0):
    """The torque that accelerates the tool and the load upwards by jerk · t."""
    return lambda t, state: {"tool": weight * (G + jerk * t) if "grip" in state.tree.loops else 0.0}


def test_a_hook_opens_at_a_pull_that_the_motor_causes():
    """It bears m (g + j t) = 30 N."""
    tree = carried(sd.prismatic("z"))
    t, run = broken(tree, sd.Pull(30.0, axis=(0, 0, -2)), lifted(4.0))
    assert_allclose(t, (30 / 2 - G) / 4, rtol=1e-9)
    after = run.at(2.0)
    fall = 2.0 - t
    assert_allclose(after.qd[after.coordinates.index("load[vz]")], 2 * t**2 - G * fall, rtol=1e-7)


def test_a_swinging_arm_loses_what_it_holds():
    """At the angle φ below the horizontal, its rope bears 3 m g sin φ."""
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.sphere(1e-6, 1e-3), to="base", joint=sd.revolute("y"), name="rope")
    tree.attach(sd.Inertia.sphere(2.0, 1e-4), to="base", joint=sd.free(), at=(1, 0, 0), name="load")
    tree.close("load", to="rope", at=(1, 0, 0), name="grip")
    _, run = broken(tree, sd.Pull(40.0, axis=(1, 0, 0)), None, 0.6)
    happened = run.events[0]
    angle = run.at(happened.t, side="before").q[0]
    assert_allclose(np.sin(angle), 40 / (3 * 2 * G), rtol=1e-6)


CUP = {"pressure": 4e4, "radius": 0.02, "friction": 0.4, "axis": (0, 0, -1)}
N = 4e4 * np.pi * 0.02**2


@pytest.mark.parametrize("how", ["off", "slips", "tilts", "turns"])
def test_a_suction_cup(how):
    """Its rim pushes with N = Δp S − m g; a tool that moves along x or turns about z adds what it does not bear."""
    mass = 2.0
    rim = N - mass * G
    cup = sd.SuctionCup(**CUP)
    if how == "off":
        t, _ = broken(carried(sd.prismatic("z")), cup, lifted(10.0))
        expected = (N / mass - G) / 10
    elif how == "slips":
        t, _ = broken(carried(sd.prismatic("x")), cup, lambda t, state: {"tool": 3 * 5 * t})
        expected = 0.4 * rim / mass / 5
    elif how == "turns":
        tree = carried(sd.revolute("z"))
        inertia = tree.link("load").inertia.tensor[2, 2]
        whole = inertia + tree.link("tool").inertia.tensor[2, 2]
        t, _ = broken(tree, cup, lambda t, state: {"tool": whole * 50 * t})
        expected = 2 / 3 * 0.4 * 0.02 * rim / inertia / 50
    else:
        tree = carried(sd.prismatic("x"), com=(0, 0, -0.1))
        t, _ = broken(tree, sd.SuctionCup(**(CUP | {"friction": 4.0})), lambda t, state: {"tool": 3 * 5 * t})
        expected = 0.02 * rim / 2 / (mass * 0.1) / 5
    assert_allclose(t, expected, rtol=1e-8)


def test_a_bolt_bears_a_force_and_a_moment():
    """(m (g + a) / F)² + (m (g + a) l / N)² = 1."""
    t, _ = broken(carried(sd.prismatic("z"), com=(0.3, 0, 0)), sd.Bolt(40.0, 12.0), lifted(4.0))
    assert_allclose(t, (1 / np.hypot(2 / 40, 2 * 0.3 / 12) - G) / 4, rtol=1e-8)


@pytest.mark.parametrize("fingers", [2, 3, 4])
def test_a_hand_holds_by_friction(fingers):
    """Fingers around the load, at the height of its centre, bear μ F each."""
    angles = 2 * np.pi * np.arange(fingers) / fingers
    points = 0.05 * np.column_stack([np.cos(angles), np.sin(angles), 0 * angles])
    hand = sd.Hand(points, -points, force=40 / fingers, friction=0.7)
    t, _ = broken(carried(sd.prismatic("z")), hand, lifted(4.0))
    assert_allclose(t, (0.7 * 40 / 2 - G) / 4, rtol=1e-7)


def test_two_fingers_bear_no_moment_about_their_line():
    hand = sd.Hand([(0.05, 0, 0), (-0.05, 0, 0)], [(-1, 0, 0), (1, 0, 0)], force=100.0)
    assert hand.level(np.array([0, 0, 0.0]), np.array([0, 0, 40.0])) < 0
    assert hand.level(np.array([0, 0, 1.0]), np.array([0, 0, 40.0])) < 0
    assert hand.level(np.array([1e-3, 0, 0]), np.array([0, 0, 40.0])) > 0


def test_a_limit_may_count_from_a_time_on_and_is_written():
    limits = {
        "pull": sd.Pull(5.0),
        "suction_cup": sd.SuctionCup(**CUP),
        "bolt": sd.Bolt(1.0, 2.0, at=(1, 2, 3)),
        "hand": sd.Hand([(1, 0, 0), (-1, 0, 0)], [(-2, 0, 0), (1, 0, 0)], 3.0),
    }
    for name, limit in limits.items():
        record = sd.Break("grip", limit, time=0.5).to_dict()
        assert (record["event"], record["limit"]["kind"]) == ("break", name)
        again = sd.read_change(json.loads(json.dumps(record)))
        assert again.to_dict() == record
    t, _ = broken(carried(sd.prismatic("z")), sd.Pull(5.0, axis=(0, 0, -1)), lifted(0.0), time=0.5)
    assert t == 0.5
    late, _ = broken(carried(sd.prismatic("z")), sd.Pull(30.0, axis=(0, 0, -2)), lifted(4.0), time=0.5)
    assert_allclose(late, (30 / 2 - G) / 4, rtol=1e-9)  # after the time at which it begins to count


def test_what_is_refused():
    for wrong, words in (
        (lambda: sd.Break("grip", 30.0), r"a Break needs a Pull\(…\), .*; got 30.0"),
        (lambda: sd.Break("grip", sd.Pull(3.0), when=lambda t, state: True), "no when="),
        (lambda: sd.Pull(0.0), "force= of a Pull must be a number > 0; got 0.0"),
        (lambda: sd.Pull(1.0, axis=(0, 0, 0)), "axis= of a Pull must be three numbers, not all zero"),
        (lambda: sd.Hand([], [], 1.0), "points= of a Hand must be rows of three numbers"),
        (lambda: sd.SuctionCup(1e4, 0.01, -1.0), "friction= of a SuctionCup"),
        (lambda: sd.Hand([(0, 0, 1)], [(0, 0, 1), (1, 0, 0)], 1.0), "a normal for each point; got 2 for 1"),
    ):
        with pytest.raises(sd.ScrewdynError, match=words):
            wrong()
    tree = carried(sd.prismatic("z"))
    with pytest.raises(sd.UnknownNameError, match="there is no loop 'gripp'"):
        sd.simulate(tree, sd.State(tree), 1.0, events=[sd.Break("gripp", sd.Pull(30.0))])
    with pytest.raises(sd.ScrewdynError, match=r"a Break of 'grip' has no sensitivities, .* give an Open with time="):
        sd.simulate(
            tree,
            sd.State(tree),
            1.0,
            lifted(4.0),
            events=[sd.Break("grip", sd.Pull(30.0, (0, 0, -1)))],
            sensitivities=True,
        )
