"""Derivatives of runs with three events and more, against differences of whole runs along random directions."""

import numpy as np
import pytest
import sympy
from cases import FULL_SOAK

import screwdyn as sd
from screwdyn import control
from screwdyn.simulation.sensitivities import _larger

# Weights of a central difference of fourth order, and its step, within which no event meets a call of the controller.
CENTRAL, STEP = ((1, 2 / 3), (2, -1 / 12)), 5e-5
DURATION = 0.4


def bar(mass=1.0, length=0.5):
    return sd.Inertia.box(mass, (length, 0.08, 0.06), com=(length / 2, 0.01, 0.02))


class Law:
    """Torques on all active joints towards a reference."""

    def __init__(self, tree, kp):
        self.kp, self.kd, self.driven = kp, 0.2, control.GravityCompensation(tree).coordinates

    def __call__(self, t, state):
        at = zip(state.coordinates, state.q, state.qd, strict=False)  # joints of payloads come last
        return {x: self.kp * (np.sin(2 * t) - q) - self.kd * qd for x, q, qd in at if x in self.driven}


def arm_that_grasps(rng, late, body):
    """A UR5 grasps a crate on a hook, locks the hook, and releases it."""
    tree, hook = sd.robots.ur5(), sd.universal("x", "y", passive=True, name="hook")
    events = [
        sd.Grasp(body, to="tool0", joint=hook, name="crate", twist="at_rest", time=late(0.11)),
        sd.Lock("hook", time=late(0.22)),
        sd.Release("crate", time=late(0.33)),
    ]
    return tree, rng.uniform(-1.5, 1.5, 6), events


def crane_on_condition(rng, late, body):
    """A double pendulum takes a load when it passes an angle; its joints are locked and free again."""
    tree = sd.robots.pelican()
    ball = sd.spherical(passive=True, name="rope")
    level = rng.uniform(0.05, 0.1)
    events = [
        sd.Grasp(body, to="link2", joint=ball, name="crate", twist="at_rest", when=lambda t, x: x["elbow"] - level),
        sd.Lock("shoulder", time=late(0.21)),
        sd.Unlock("shoulder", time=late(0.29)),
        sd.Release("crate", time=late(0.36)),
    ]
    return tree, np.array([0.3, 0.0]), events


def arms_that_hand_over(rng, late, body):
    """A crate passes from one arm to another one, is set down, and changes its inertia."""
    tree = sd.KinematicTree()
    for side, x in (("left", 0.0), ("right", 0.9)):
        tree.attach(bar(2.0), to="base", joint=sd.revolute("y"), at=(x, 0, 0), name=side)
        tree.attach(bar(), to=side, joint=sd.universal("y", "z"), at=(0.5, 0, 0), name=f"{side} hand")
    tree.attach(sd.Link("crate", body), to="left hand", joint=sd.fixed(), at=(0.5, 0, 0))
    events = [
        sd.HandOver("crate", to="right hand", joint=sd.revolute("z", passive=True, name="grip"), time=late(0.1)),
        sd.Lock("grip", time=late(0.2)),
        sd.HandOver("crate", to="base", joint=sd.free(passive=True, name="flight"), time=late(0.3)),
    ]
    return tree, rng.uniform(-1, 1, 6), events


def loops_that_close(rng, late, body):
    """Two chains are connected by a slot, which opens; then they are connected elsewhere."""
    tree = sd.KinematicTree(gravity=(0, -9.81, 0))
    for side, x in (("left", 0.0), ("right", 0.7)):
        tree.attach(bar(2.0), to="base", joint=sd.revolute("z"), at=(x, 0, 0), name=side)
        tree.attach(bar(), to=side, joint=sd.revolute("z"), at=(0.5, 0, 0), name=f"{side} hand")
    tree.attach(sd.Link("crate", body), to="left hand", joint=sd.revolute("z", passive=True), at=(0.5, 0, 0))
    events = [
        sd.Close("crate", to="right hand", joint=sd.prismatic("x"), name="slot", time=late(0.1)),
        sd.Open("slot", time=late(0.2)),
        sd.Close("left hand", to="right", joint=sd.revolute("z"), name="pin", time=late(0.3)),
    ]
    return tree, rng.uniform(0.2, 1.2, 5), events


def body_that_floats(rng, late, body):
    """A floating chain gets another base, is welded to the ground and comes off."""
    tree = sd.KinematicTree(gravity=(0, 0, -1.6))
    tree.attach(bar(3.0), to="base", joint=sd.free(name="float"), name="trunk")
    tree.attach(bar(), to="trunk", joint=sd.revolute("y"), at=(0.5, 0, 0), name="thigh")
    tree.attach(sd.Link("crate", body), to="thigh", joint=sd.revolute("z"), at=(0.5, 0, 0))
    events = [
        sd.Reroot("crate", time=late(0.1)),
        sd.Lock("thigh", time=late(0.2)),
        sd.Reroot("trunk", time=late(0.3)),
    ]
    return tree, tree.integrate(tree.neutral(), rng.uniform(-0.5, 0.5, 8)), events


def stops_and_friction(rng, late, body):
    """The arm runs against a stop and sticks in another joint while a load comes and goes."""
    tree, hook = sd.KinematicTree(gravity=(0, -9.81, 0)), sd.revolute("z", passive=True, name="hook")
    tree.attach(bar(2.0), to="base", joint=sd.revolute("z", friction=2.0), name="left")
    tree.attach(bar(), to="left", joint=sd.revolute("z", limits=(-2, 0.1)), at=(0.5, 0, 0), name="hand")
    events = [
        sd.Grasp(body, to="hand", joint=hook, at=(0.5, 0, 0), name="crate", twist="at_rest", time=late(0.07)),
        sd.Lock("hook", time=late(0.25)),
        sd.Release("crate", time=late(0.35)),
    ]
    return tree, np.array([-1.2, -0.1]), events


def loop_with_friction(rng, late, body):
    """The crank of a four-bar linkage sticks; a load on the coupler comes and goes."""
    tree = sd.KinematicTree(gravity=(0, -9.81, 0))
    tree.attach(bar(1.0, 0.3), to="base", joint=sd.revolute("z", friction=8.0), name="crank")
    tree.attach(bar(1.0, 0.9), to="crank", joint=sd.revolute("z", passive=True), at=(0.3, 0, 0), name="coupler")
    tree.attach(bar(1.0, 0.6), to="base", joint=sd.revolute("z"), at=(0.8, 0, 0), name="rocker")
    tree.close("coupler", to="rocker", joint=sd.revolute("z", (0.9, 0, 0)), at=(-0.3, 0, 0), name="pin")
    hook = sd.revolute("z", passive=True, name="hook")
    events = [
        sd.Grasp(body, to="coupler", joint=hook, at=(0.5, 0, 0), name="crate", twist="at_rest", time=late(0.1)),
        sd.Lock("hook", time=late(0.3)),
        sd.Release("crate", time=late(0.35)),
    ]
    return tree, tree.assemble([1.2, -0.6, 1.4]), events


KINDS = [
    arm_that_grasps,
    crane_on_condition,
    arms_that_hand_over,
    loops_that_close,
    body_that_floats,
    stops_and_friction,
    loop_with_friction,
]
# Each kind comes in four styles, of which a short soak takes two.
SEEDS = [k for k in range(28) if FULL_SOAK or (k + k // len(KINDS)) % 2]


@pytest.mark.soak
@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_direction(seed):
    make, style = KINDS[seed % len(KINDS)], seed // len(KINDS)
    rng = np.random.default_rng(seed)
    noise = rng.uniform(-1, 1, 40)
    direction = rng.uniform(-1, 1, 40)
    units = 0.1 * np.repeat([1.0, 0.05, 0.05**2], [1, 3, 6])

    def run(s, **options):
        """The run in which everything has changed by a step along the direction."""
        shifts = iter(s * direction[:4])
        body = _larger(sd.Inertia.box(1.5, (0.3, 0.2, 0.2), com=(0.05, -0.2, 0)), s * units * direction[10:20])
        tree, q, events = make(np.random.default_rng(seed), lambda t: t + next(shifts), body)
        q, qd = tree.project(q, noise[: tree.nv])
        q, qd = tree.integrate(q, s * direction[20 : 20 + tree.nv]), qd + s * direction[30 : 30 + tree.nv]
        state = sd.State(tree, *tree.project(q, qd))
        if make is crane_on_condition:
            state = sd.State(tree, state.q, state.qd + np.array([0, 1.5]))
        elif make is stops_and_friction:
            state = sd.State(tree, state.q, state.qd * 0.2 + np.array([1.0, 2.0]))
            options["stops"] = "inelastic"
        if style in (1, 2) and make is not body_that_floats:
            options["torque"] = Law(tree, 2.0 + s * direction[5])
            options["control_period"] = 0.0107 if style == 2 else None
        return sd.simulate(tree, state, DURATION, events=events, rtol=1e-12, atol=1e-13, step=0.02, **options)

    gains = ["torque.kp"] if style in (1, 2) and make is not body_that_floats else []
    base = run(0.0, sensitivities=["crate", *gains])
    n, end = base.motions[0].tree.nv, base.states[-1]
    assert sum(x.what is not None for x in base.events) >= 3
    along = dict.fromkeys(base.sensitivities.parameters, 0.0)
    names = [x for x in along if x.startswith("time of")]
    scale = 0.2 if make is stops_and_friction else 1.0
    along |= dict(zip(names, direction[:4], strict=False))
    along |= dict(zip([x for x in along if x.startswith("crate.")], units * direction[10:20], strict=True))
    along |= dict.fromkeys(gains, direction[5])
    values = np.array([*along.values()])
    values[:n], values[n : 2 * n] = direction[20 : 20 + n], scale * direction[30 : 30 + n]
    space, found = end.tree.model.configurations, base.sensitivity(DURATION) @ values
    expected = 0.0
    for k, weight in CENTRAL:
        for sign in (1, -1):
            there = run(sign * k * STEP).states[-1]
            expected += sign * weight / STEP * np.concatenate([space.difference(end.q, there.q), there.qd])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7 * np.abs(expected).max())


LATER = {
    "hand over": [
        sd.HandOver("crate", to="right hand", joint=sd.revolute("z", passive=True, name="grip"), time=0.1),
        sd.Lock("grip", time=0.2),
        sd.HandOver("crate", to="base", joint=sd.free(passive=True, name="flight"), time=0.3),
    ],
    "weld": [
        sd.Weld("crate", to="right hand", time=0.1),
        sd.Unweld("crate", "right hand", time=0.2),
        sd.Release("crate", time=0.3),
    ],
    "close": [
        sd.Close("lid", to="right hand", joint=sd.spherical(), name="slot", time=0.1),
        sd.Open("slot", time=0.2),
        sd.Release("lid", time=0.3),
    ],
}


@pytest.mark.soak
@pytest.mark.parametrize("events", LATER.values(), ids=LATER)
def test_symbols_through_changes(events):
    """A length, a mass, an axis and a damping of two arms, one of which holds a crate with a lid."""
    length, mass, x, damping = sympy.symbols("length mass x damping", positive=True)
    design = sd.KinematicTree()
    for side, place in (("left", 0.0), ("right", 0.9)):
        design.attach(bar(2.0), to="base", joint=sd.revolute("y"), at=(place, 0, 0), name=side)
        wrist = sd.universal("y", "z", damping=damping)
        design.attach(bar(), to=side, joint=wrist, at=(length, 0, 0), name=f"{side} hand")
    design.attach(sd.Link("crate", sd.Inertia.point(mass, (0.1, 0.2, 0))), to="left hand", at=(0.5, x, 0))
    design.attach(bar(0.4, 0.2), to="crate", joint=sd.revolute("y", (x, 0, 0)), at=(0.1, 0, 0), name="lid")
    values = {"length": 0.5, "mass": 0.7, "x": 0.1, "damping": 0.2}
    direction = np.random.default_rng(3).uniform(-1, 1, 4)

    def run(s, **options):
        moved = {name: y * (1 + s * d) for (name, y), d in zip(values.items(), direction, strict=True)}
        tree = design.subs(moved)
        state = sd.State(tree, np.linspace(-0.8, 0.9, 7), np.linspace(0.7, -0.6, 7))
        return sd.simulate(tree, state, DURATION, events=events, rtol=1e-12, atol=1e-13, step=0.02, **options)

    base = run(0.0, sensitivities=[*values])
    names, end = base.sensitivities.parameters, base.states[-1]
    rows = [names.index(name) for name in values]
    found = base.sensitivity(DURATION)[:, rows] @ (direction * [*values.values()])
    space, expected = end.tree.model.configurations, 0.0
    for k, weight in CENTRAL:
        for sign in (1, -1):
            there = run(sign * k * 2e-4).states[-1]
            expected += sign * weight / 2e-4 * np.concatenate([space.difference(end.q, there.q), there.qd])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7 * np.abs(expected).max())
