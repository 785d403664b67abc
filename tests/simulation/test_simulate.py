"""Simulations: motions with known solutions, the energy ledger, and events."""

import io
import sys
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ellipk

import screwdyn as sd
from screwdyn import screw
from screwdyn.changes.change import Change, Scheduled
from screwdyn.forms import search
from screwdyn.testing import random_inertia, random_pose, random_tree

G = 9.81


def pendulum(**options):
    """A point mass of 2 kg on a massless rod of 0.5 m; at q = 0 it hangs."""
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.point(2.0, (0, 0, -0.5)), to="base", joint=sd.revolute("y", **options), name="bob")
    return tree


def pelican_with_crucible():
    tree = sd.robots.pelican()
    crucible = sd.Inertia.planar(0.5, (-0.06, 0), 1e-3)
    tree.attach(crucible, to="link2", joint=sd.revolute("z", (-0.1, 0, 0), passive=True), at=(0.1, 0, 0), name="cup")
    return tree


def assert_ledger_closes(run, tolerance=1e-6):
    """The residual relative to the exchanged energy."""
    E = run.energy
    turnover = max(np.ptp(x) for x in (E.kinetic, E.potential, E.work, E.dissipated, E.exchanged))
    assert np.abs(E.residual).max() < tolerance * turnover


# Known motions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("amplitude", [0.1, 1.0, 3.0])
def test_period_of_a_pendulum_is_an_elliptic_integral(amplitude):
    period = 4 * np.sqrt(0.5 / G) * ellipk(np.sin(amplitude / 2) ** 2)
    tree = pendulum()
    run = sd.simulate(tree, sd.State(tree, [amplitude]), 3 * period, step=0.1)
    assert_allclose(run.states[-1].q, [amplitude], rtol=1e-6)
    assert_allclose(run.velocity("bob")[-1], 0, atol=1e-5)
    quarter = sd.simulate(tree, sd.State(tree, [amplitude]), period / 4, step=0.1)
    assert_allclose(quarter.states[-1].q, [0], atol=1e-7)


def test_damped_oscillator():
    m, k, c, rest, x0 = 2.0, 50.0, 3.0, 0.1, 0.4
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    joint = sd.prismatic("x", stiffness=k, damping=c, rest=rest)
    tree.attach(sd.Inertia.point(m), to="base", joint=joint, name="cart")
    run = sd.simulate(tree, sd.State(tree, [x0]), 4.0, step=0.02)
    decay, omega = c / (2 * m), np.sqrt(k / m - (c / (2 * m)) ** 2)
    shape = np.cos(omega * run.t) + decay / omega * np.sin(omega * run.t)
    assert_allclose(run["cart"], rest + (x0 - rest) * np.exp(-decay * run.t) * shape, atol=1e-8)
    assert_allclose(run.energy.total + run.energy.dissipated, 0.5 * k * (x0 - rest) ** 2, rtol=1e-8)
    assert_ledger_closes(run)


def test_oscillator_in_resonance():
    m, k = 2.0, 50.0
    omega = np.sqrt(k / m)
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    tree.attach(sd.Inertia.point(m), to="base", joint=sd.prismatic("x", stiffness=k), name="cart")
    run = sd.simulate(tree, sd.State(tree), 3.0, step=0.02, torque=lambda t, state: [np.cos(omega * t)])
    assert_allclose(run["cart"], run.t * np.sin(omega * run.t) / (2 * m * omega), atol=1e-8)
    assert_allclose(run.torque("cart"), np.cos(omega * run.t), atol=1e-15)
    assert_allclose(run.energy.work, run.energy.total, atol=1e-8)


def test_free_fall_down_a_slope():
    axis = np.array([3.0, 0, -4.0])
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.sphere(2.0, 0.1), to="base", joint=sd.prismatic(axis), name="sledge")
    run = sd.simulate(tree, sd.State(tree, qd=[-1.0]), 2.0)
    assert_allclose(run["sledge"], -run.t + 0.5 * 0.8 * G * run.t**2, atol=1e-9)


def test_external_wrenches():
    """A cart accelerated by a constant force on its payload; a pendulum held by a force on its bob."""
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    tree.attach(sd.Inertia.point(2.0), to="base", joint=sd.prismatic("x"), name="cart")
    tree.attach(sd.Inertia.point(1.0), to="cart", at=(0, 0, 1), name="crate")
    run = sd.simulate(tree, sd.State(tree), 1.0, wrenches=lambda t, state: {"crate": [0, 0, 0, 6.0, 1.0, 0]}, step=0.1)
    assert_allclose(run["cart"], run.t**2, atol=1e-9)
    assert_allclose(run.energy.external, 6.0 * run["cart"], atol=1e-8)
    assert not run.energy.work.any()
    assert_ledger_closes(run)

    def weight(t, state):
        up = state.tree.forward_kinematics("bob", state.q)[:3, :3].T @ [0, 0, 2.0 * G]
        return {"bob": [*np.cross([0, 0, -0.5], up), *up]}

    held = pendulum()
    run = sd.simulate(held, sd.State(held, [1.0], [0.5]), 1.0, wrenches=weight, step=0.1)
    assert_allclose(run["bob"], 1.0 + 0.5 * run.t, atol=1e-8)
    assert_ledger_closes(run)


@pytest.mark.parametrize("method", ["DOP853", "RK45", "Radau", "BDF", "LSODA"])
def test_every_method_of_the_integrator(method):
    tree = pendulum(damping=0.1, friction=0.05)
    state = sd.State(tree, [1.0])
    there = sd.simulate(tree, state, 1.0, step=0.05).states[-1].q
    here = sd.simulate(tree, state, 1.0, method=method, step=0.05, rtol=1e-7, atol=1e-9).states[-1].q
    assert_allclose(here, there, atol=1e-5)


def test_released_payload_has_the_pose_and_twist_of_its_link():
    """A stone released by a turning arm."""
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.rod(1.0, 1.0, "x", (0.5, 0, 0)), to="base", joint=sd.revolute("y"), name="arm")
    stone = sd.Inertia.sphere(0.5, 0.04)
    start = tree.grasp(sd.State(tree, [0.2], [-3.0]), stone, to="arm", at=(1, 0, 0), name="stone", twist="co_moving")
    run = sd.simulate(tree, start.state, 1.0, events=[sd.Release("stone", time=0.4)], step=0.05)
    before = run.states[np.searchsorted(run.t, 0.4)]
    free = run.events[0].event.released
    q, qd = before["arm"], before.velocity("arm")
    assert_allclose(free.pose[:3, 3], [np.cos(q), 0, -np.sin(q)], atol=1e-15)
    v = free.pose[:3, :3] @ free.twist[3:]
    assert_allclose(v, qd * np.array([-np.sin(q), 0, -np.cos(q)]), atol=1e-14)
    # The ledger contains its energy, and the arm continues without it.
    own = free.kinetic_energy + 0.5 * G * free.pose[2, 3]
    assert_allclose(run.energy.exchanged[-1], -own, rtol=1e-12)
    alone = sd.simulate(tree, run.events[0].event.state, 0.6, step=0.05)
    assert_allclose(run.states[-1].q, alone.states[-1].q, atol=1e-8)


# The ledger --------------------------------------------------------------------------------------------------------


def test_passive_pelican_with_a_crucible_keeps_its_energy():
    tree = pelican_with_crucible()
    run = sd.simulate(tree, sd.State(tree, [0.3, -0.5, 0.2]), 10.0, step=0.05)
    assert np.ptp(run.energy.total) < 1e-6 * run.energy.kinetic.max()
    assert not run.energy.work.any() and not run.energy.dissipated.any()
    # The motion is large.
    assert np.ptp(run["shoulder"]) > 2 and np.ptp(run["cup"]) > 2


def test_ledger_closes_across_grasps_and_releases():
    """Torques, damping, springs and friction; a body and a tree are grasped and released."""
    tree = sd.KinematicTree()
    upper, lower = sd.Inertia.box(2.0, (0.3, 0.1, 0.1), (0.15, 0, 0)), sd.Inertia.cylinder(1.0, 0.04, 0.3, "x")
    first = sd.revolute("z", damping=0.3, friction=0.2)
    tree.attach(upper, to="base", joint=first, name="upper")
    second = sd.revolute("y", (-0.15, 0, 0), stiffness=4.0, rest=0.3, damping=0.05)
    tree.attach(lower, to="upper", joint=second, at=(0.45, 0, 0), name="lower")
    cup = sd.KinematicTree(sd.Link("cup", sd.Inertia.sphere(0.6, 0.05)))
    spoon = sd.revolute((1, 1, 0), damping=0.02, stiffness=0.4, rest=-0.5, passive=True)
    cup.attach(sd.Inertia.rod(0.2, 0.2, "z", (0, 0, -0.1)), to="cup", joint=spoon, name="spoon")
    hook = sd.helical((0, 1, 0.2), 0.02, (0, 0, 0.08), passive=True, damping=0.01, stiffness=0.3, rest=0.1, name="hook")
    events = [
        sd.Grasp(
            cup,
            to="lower",
            joint=hook,
            at=(0.2, 0, 0),
            twist=[0.5, -0.3, 1.0, 0.2, 0.4, -0.6],
            body_state=sd.State(cup, [0.4], [-1.5]),
            time=0.7,
        ),
        sd.Grasp(sd.Inertia.point(0.4), to="upper", at=(0.1, 0, 0.2), twist="at_rest", name="lump", time=1.1),
        sd.Release("lump", time=1.6),
        sd.Release("cup", time=2.2),
    ]

    def torque(t, state):
        return {"upper": np.sin(3 * t), "lower": -0.5 * state.velocity("lower") + 0.8 * np.cos(5 * t)}

    run = sd.simulate(tree, sd.State(tree, [0.1, -0.2], [1.0, 0.5]), 3.0, torque, events, step=0.02)
    assert_ledger_closes(run)
    E = run.energy
    assert E.work[-1] != 0 and E.dissipated[-1] > 0.1 and E.impact_loss[-1] > 0.01
    assert [h.t for h in run.events] == [0.7, 1.1, 1.6, 2.2]

    # The energy that came or went with a payload, computed from the payload alone.
    come, lump, _, gone = (h.event for h in run.events)
    alone = sd.KinematicTree()
    assert_allclose(lump.payload.kinetic_energy, 0)
    for free, sign in ((come.payload, 1), (gone.released, -1)):
        with alone.attached(free.tree, to="base", at=free.pose):
            own = (
                free.kinetic_energy
                + alone.potential_energy(free.state.q)
                + alone.model.joint_forces.spring_energy(free.state.q)
            )
        i = np.flatnonzero(run.t == (0.7 if sign > 0 else 2.2))
        hung = come.state if sign > 0 else run.states[i[0]]
        spring = 0.5 * 0.3 * (hung["hook"] - 0.1) ** 2
        assert_allclose(np.diff(E.exchanged[i]), sign * (own + spring), rtol=1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_ledger_closes_on_random_trees(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 4)
    at = random_pose(rng)
    joint = [sd.fixed(), sd.revolute("x", damping=0.1), sd.prismatic("y", stiffness=5.0), sd.helical("z", 0.1)][seed]
    events = [
        sd.Grasp(random_inertia(rng), to="link4", joint=joint, at=at, twist=rng.normal(size=6), name="load", time=0.2),
        sd.Release("load", time=0.4),
    ]
    push = rng.normal(size=4)
    names = tree.coordinates
    state = sd.State(tree, *rng.uniform(-1, 1, (2, 4)))
    run = sd.simulate(tree, state, 0.5, lambda t, s: dict(zip(names, push, strict=True)), events, step=0.01)
    assert_ledger_closes(run)
    assert run.energy.impact_loss[-1] > 0


def test_grasp_at_the_start_is_in_the_ledger():
    tree = pendulum()
    ball = sd.Inertia.sphere(1.0, 0.05)
    event = sd.Grasp(ball, to="bob", at=(0, 0, -0.5), twist="at_rest", name="ball", time=0)
    run = sd.simulate(tree, sd.State(tree, [0.0], [2.0]), 0.5, events=[event])
    assert_array_equal(run.t[:3] == 0, [True, True, False])
    assert run.energy.impact_loss[0] == 0 < run.energy.impact_loss[1]
    assert_ledger_closes(run)


# Events ------------------------------------------------------------------------------------------------------------

BALL = sd.Inertia.point(1.0)


def grab(name="ball", **when):
    return sd.Grasp(BALL, to="bob", at=(0, 0, -0.5), twist="at_rest", name=name, **when)


def swing(events, duration=1.0, step=0.02, **options):
    tree = pendulum()
    return sd.simulate(tree, sd.State(tree, [1.0]), duration, events=events, step=step, **options)


@pytest.mark.parametrize(
    "when",
    [
        lambda t, state: -state["bob"],
        lambda t, state: state["bob"] < 0,
        lambda t, state: np.float64(-state["bob"]),
        lambda t, state: np.bool_(state["bob"] < 0),
    ],
    ids=["number", "bool", "float64", "bool_"],
)
def test_a_condition_is_located(when):
    """The bob passes the lowest point after a quarter of its period."""
    quarter = np.sqrt(0.5 / G) * ellipk(np.sin(0.5) ** 2)
    run = swing([grab(when=when)])
    (grasped,) = run.events
    assert_allclose(grasped.t, quarter, atol=1e-8)
    assert_allclose(grasped.event.state["bob"], 0, atol=1e-8)
    assert_ledger_closes(run)


def test_a_condition_that_holds_at_the_start_happens_at_once():
    run = swing([grab(when=lambda t, state: True)])
    assert [h.t for h in run.events] == [0.0]


def test_a_condition_that_never_holds_never_happens():
    run = swing([grab(when=lambda t, state: state["bob"] > 2)])
    assert run.events == ()
    assert run.tree.links == ("base", "bob")


def test_short_condition_is_found():
    """At rest the integrator would take very long steps."""
    tree = pendulum()
    run = sd.simulate(tree, sd.State(tree), 10.0, events=[grab(when=lambda t, state: 5.0 < t < 5.02)])
    (grasped,) = run.events
    assert_allclose(grasped.t, 5.0, atol=1e-9)


@pytest.mark.slow
def test_short_torque_is_integrated():
    tree = pendulum()
    run = sd.simulate(tree, sd.State(tree), 10.0, lambda t, state: [5.0 * (5.0 < t < 5.02)])
    # 5 N m for 0.02 s on 0.5 kg m².
    assert_allclose(run.velocity("bob").max(), 0.2, rtol=0.01)


def test_condition_may_depend_on_the_payload():
    def high(t, state):
        return "ball" in state.tree.links and state["bob"] < -0.5

    run = swing([sd.Release("ball", when=high), grab(time=0.1)])
    assert [type(h.what).__name__ for h in run.events] == ["Grasp", "Release"]
    assert_allclose(run.events[1].event.state["bob"], -0.5, atol=1e-8)


def test_events_of_one_time_happen_in_the_order_given():
    for names in (["one", "two", "three"], ["three", "one", "two"]):
        run = swing([grab(name, time=0.5) for name in names])
        assert list(run.tree.links[2:]) == names
        assert [h.t for h in run.events] == [0.5] * 3
        assert np.count_nonzero(run.t == 0.5) == 2
        assert_ledger_closes(run)


@pytest.mark.parametrize("later_first", [False, True])
def test_two_conditions_of_one_step_happen_in_the_order_of_their_times(later_first):
    """The integrator's first steps are far longer than the millisecond between the conditions."""
    early, late = grab("early", when=lambda t, s: t - 0.5), grab("late", when=lambda t, s: t - 0.501)
    run = swing([late, early] if later_first else [early, late], step=1.0)
    assert [h.link for h in run.events] == ["early", "late"]
    assert_allclose([h.t for h in run.events], [0.5, 0.501], atol=1e-12)


@pytest.mark.parametrize("names", [("one", "two", "three"), ("three", "two", "one"), ("two", "three", "one")])
@pytest.mark.parametrize("when", [lambda t, s: t - 0.5, lambda t, s: t > 0.5, lambda t, s: -s["bob"]])
def test_conditions_that_coincide_happen_in_the_order_given(when, names):
    run = swing([grab(name, when=when) for name in names])
    assert tuple(h.link for h in run.events) == names
    assert_allclose([h.t for h in run.events], run.events[0].t, atol=1e-9)


def test_release_and_grasp_at_one_time():
    run = swing(
        [grab("one", time=0.2), sd.Release("one", time=0.5), grab("two", time=0.5), sd.Release("two", time=0.5)]
    )
    assert run.tree.links == ("base", "bob")
    assert [h.t for h in run.events] == [0.2, 0.5, 0.5, 0.5]


def test_events_at_both_ends():
    run = swing([sd.Release("ball", time=1), grab(time=0)], duration=np.int64(1))
    assert [h.t for h in run.events] == [0.0, 1.0]
    assert (run.t[0], run.t[1], run.t[-2], run.t[-1]) == (0, 0, 1, 1)
    assert run.tree.links == ("base", "bob")
    assert run.states[-1].coordinates == ("bob",)


def test_events_a_rounding_error_apart():
    run = swing([grab("one", time=0.5), grab("two", time=np.nextafter(0.5, 1))])
    assert run.tree.links[2:] == ("one", "two")


def test_positions_are_continuous_and_samples_ascend():
    run = swing([grab(time=0.3), sd.Release("ball", time=0.7)], step=0.05)
    assert (np.diff(run.t) >= 0).all()
    assert_array_equal(run.t[np.flatnonzero(np.diff(run.t) == 0)], [0.3, 0.7])
    for t in (0.3, 0.7):
        before, after = np.flatnonzero(run.t == t)
        assert_array_equal(run.states[after].q, run.states[before].q)
    # The bob slows down when it grasps the ball at rest, and not when it releases it.
    before, after = np.flatnonzero(run.t == 0.3)
    assert_allclose(run.states[after].qd, run.states[before].qd * 2 / 3, rtol=1e-12)
    before, after = np.flatnonzero(run.t == 0.7)
    assert_array_equal(run.states[after].qd, run.states[before].qd)


def test_there_are_no_two_samples_of_one_time_without_an_event():
    run = swing([], step=0.3)
    assert_allclose(run.t, [0, 0.3, 0.6, 0.9, 1.0], atol=1e-15)


def test_a_past_state_holds_the_tree_as_it_was():
    run = swing([grab(time=0.3), sd.Release("ball", time=0.7)], step=0.1)
    for t, state in zip(run.t, run.states, strict=True):
        held = len(state.tree.links) == 3
        assert held == (state.tree.mass > 2.5)
        assert held or not 0.3 < t < 0.7
        assert not held or 0.3 <= t <= 0.7
    grasped, released = run.events
    assert grasped.event.state.tree.links == ("base", "bob", "ball")
    assert released.event.state.tree.links == run.tree.links == ("base", "bob")


@pytest.mark.parametrize(
    "change",
    [
        lambda tree: tree.attach(sd.Inertia.point(5.0), to="bob", name="flag"),
        lambda tree: tree.detach("bob"),
        lambda tree: tree.set_inertia("bob", sd.Inertia.point(50.0)),
        lambda tree: setattr(tree, "gravity", (0, 0, 0)),
    ],
)
def test_functions_that_change_the_tree_of_their_state_change_nothing(change):
    """Each state has a tree of its own, so that every call can change it in the same way."""

    def torque(t, state):
        change(state.tree)
        return {}

    def never(t, state):
        change(state.tree)
        return -1.0

    tree = pendulum()
    calm = sd.simulate(tree, sd.State(tree, [1.0]), 0.2, lambda t, state: {}, step=0.05)
    options = {"wrenches": torque, "events": [sd.Release("bob", when=never)], "step": 0.05}
    run = sd.simulate(tree, sd.State(tree, [1.0]), 0.2, torque, **options)
    assert tree.links == ("base", "bob")
    assert_array_equal(run["bob"], calm["bob"])
    change(run.states[1].tree)
    for past in (*run.states, run.at(0.1)):
        assert past.tree.topology is tree.topology


def test_the_tree_of_a_state_is_the_same_each_time_it_is_asked_for():
    tree = pendulum()
    state = sd.simulate(tree, sd.State(tree, [1.0]), 0.1, step=0.05).states[0]
    assert state.tree is state.tree is not tree
    assert state.tree.derivatives is tree.derivatives


def test_an_event_of_another_kind_enters_the_ledger():
    @dataclass(frozen=True, eq=False)
    class Stop(Scheduled):
        verb = "stop"

        def enact(self, tree, state):
            stopped = sd.State(tree, state.q)
            return Change(state=stopped, link="bob", energy_lost=float(tree.kinetic_energy(state.q, state.qd)))

    tree = pendulum()
    run = sd.simulate(tree, sd.State(tree, [1.0]), 0.4, events=[Stop(time=0.2)])
    (stop,) = run.events
    assert (stop.verb, stop.link) == ("stop", "bob")
    assert_allclose(run.energy.impact_loss[-1], run.energy.kinetic[run.t == 0.2][0])
    assert run.energy.impact_loss[-1] > 1
    assert_ledger_closes(run)
    assert run.plot().axes


def test_robot_without_coordinates():
    tree = sd.KinematicTree()
    rod = sd.Inertia.rod(1.0, 0.6, "x", (0.3, 0, 0))
    events = [
        sd.Grasp(rod, to="base", joint=sd.revolute("y", passive=True), name="rod", twist="at_rest", time=0.5),
        sd.Release("rod", time=1.0),
    ]
    run = sd.simulate(tree, sd.State(tree), 1.5, events=events, step=0.05)
    assert_array_equal(np.isnan(run["rod"][[0, -1]]), [True, True])
    alone = sd.KinematicTree()
    alone.attach(rod, to="base", joint=sd.revolute("y"), name="rod")
    there = sd.simulate(alone, sd.State(alone), 0.5, step=0.05).states[-1].q
    assert_allclose(run.states[np.searchsorted(run.t, 1.0)].q, there, atol=1e-9)
    nothing = sd.KinematicTree()
    assert sd.simulate(nothing, sd.State(nothing), 1.0, step=0.5).states[-1].coordinates == ()


def test_coordinates_are_followed_by_name():
    """Taking the first payload off moves the second one's coordinate to another place, not to another name."""
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    tree.attach(sd.Inertia.point(1.0), to="base", joint=sd.prismatic("x"), name="cart")
    start = sd.State(tree)
    for name, v in (("one", 1.0), ("two", 2.0)):
        start = tree.grasp(
            start, sd.Inertia.point(1.0), to="cart", joint=sd.prismatic("y"), twist=[0, 0, 0, 0, v, 0], name=name
        ).state
    run = sd.simulate(tree, start, 1.0, events=[sd.Release("one", time=0.5)], step=0.05)
    assert_allclose(run["two"], 2.0 * run.t, atol=1e-9)
    held = run.t < 0.5
    assert_allclose(run["one"][held], run.t[held], atol=1e-9)
    assert np.isnan(run["one"][-1])
    assert run.states[-1].coordinates == ("cart", "two")


# Independence of the result ---------------------------------------------------------------------------------


def test_result_does_not_depend_on_the_sampling():
    outcomes = []
    for step in (1.0, 0.1, 0.00317):
        run = swing([grab(when=lambda t, state: -state["bob"]), sd.Release("ball", time=0.8)], step=step)
        outcomes.append([*run.states[-1].q, *run.states[-1].qd, run.events[0].t, run.energy.exchanged[-1]])
    assert_allclose(outcomes[1:], [outcomes[0]] * 2, atol=1e-7)


def test_one_run_equals_two_runs_in_a_row():
    tree = pelican_with_crucible()
    state = sd.State(tree, [0.3, -0.5, 0.2], [1.0, 2.0, 0.0])
    whole = sd.simulate(tree, state, 1.0, step=0.05)
    half = sd.simulate(tree, state, 0.5, step=0.05)
    rest = sd.simulate(tree, half.states[-1], 0.5, step=0.05)
    assert_allclose(rest.states[-1].q, whole.states[-1].q, atol=1e-7)
    assert_array_equal(state.q, [0.3, -0.5, 0.2])


def test_controller_with_the_payload_model_follows_its_path():
    """Computed torque from ``state.tree``: no error before the grasp, and none a moment after it."""
    tree = sd.robots.pelican()

    def planned(t):
        return np.array([np.sin(2 * t), 0.5 * np.cos(3 * t)]), np.array([2 * np.cos(2 * t), -1.5 * np.sin(3 * t)])

    def torque(t, state):
        (q, qd), qdd = planned(t), np.array([-4 * np.sin(2 * t), -4.5 * np.cos(3 * t)])
        a = qdd + 60 * (qd - state.qd) + 900 * (q - state.q)
        return state.tree.inverse_dynamics(state.q, state.qd, a)

    event = sd.Grasp(sd.Inertia.point(1.0), to="link2", twist="at_rest", time=0.5)
    run = sd.simulate(tree, sd.State(tree, *planned(0)), 1.5, torque, [event], step=0.01)
    error = np.abs(run["elbow"] - 0.5 * np.cos(3 * run.t))
    assert error[run.t < 0.5].max() < 1e-8
    assert error.max() > 1e-3 and error[-1] < 1e-8
    assert_ledger_closes(run)


def test_a_progress_bar(capsys):
    swing([grab(when=lambda t, state: -state["bob"]), sd.Release("ball", time=0.8)], progress=True)
    shown = capsys.readouterr()
    assert "1.00/1.00 s" in shown.err
    assert shown.out == ""
    swing([])
    assert capsys.readouterr().err == ""


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_long_run_shows_its_progress_on_a_terminal(monkeypatch):
    shown = {}
    for long, progress in ((0.0, None), (60.0, None), (0.0, False)):
        monkeypatch.setattr(search, "LONG", long)
        monkeypatch.setattr(sys, "stderr", Terminal())
        swing([], progress=progress)
        shown[long, progress] = sys.stderr.getvalue()
    assert "1.00/1.00 s" in shown[0.0, None] and not shown[60.0, None] and not shown[0.0, False]
    monkeypatch.setattr(search, "LONG", 0.0)
    monkeypatch.setattr(sys, "stderr", Terminal())
    sd.robots.pelican().equilibrium([0.1, 0.2], [0.0, 0.0])
    assert "search of an equilibrium: " in sys.stderr.getvalue()


def test_released_payload_grasped_by_another_robot():
    thrower, catcher = pendulum(), pendulum()
    held = thrower.grasp(sd.State(thrower, [0.0], [2.0]), BALL, to="bob", at=(0, 0, -0.5), name="b", twist="co_moving")
    free = sd.simulate(thrower, held.state, 0.2, events=[sd.Release("b", time=0.1)], step=0.05).events[0].event.released
    # Both robots hang at the same place.
    q = np.arctan2(-free.pose[0, 3], -free.pose[2, 3])
    state = sd.State(catcher, [q])
    at = screw.inverse(catcher.forward_kinematics("bob", state.q)) @ free.pose
    event = catcher.grasp(state, free.tree, to="bob", at=at, twist=free.twist)
    speed = free.twist[4] if abs(free.twist[4]) > 0 else free.twist[3]
    assert_allclose(event.state.qd, [-speed * 0.5 * 1.0 / (3.0 * 0.25)], rtol=1e-10)


@pytest.mark.parametrize(
    "when, fires",
    [
        (lambda t, s: 0.0, None),
        (lambda t, s: 0, None),
        (lambda t, s: t * t - t, None),
        (lambda t, s: int(t > 0.5), 0.5),
        (lambda t, s: np.int64(t > 0.5), 0.5),
        (lambda t, s: max(0.0, t - 0.5), 0.5),
        (lambda t, s: t - 0.5, 0.5),
        (lambda t, s: 1.0, 0.0),
    ],
)
def test_condition_that_is_zero_does_not_hold(when, fires):
    tree = sd.robots.pelican()
    tree.attach(sd.Inertia.box(1, (0.1, 0.1, 0.1)), "link2", name="c")
    run = sd.simulate(tree, sd.State(tree, [0.5, 0.3]), 1.0, events=[sd.Release("c", when=when)], step=0.05)
    assert [e.t for e in run.events] == ([] if fires is None else [pytest.approx(fires, abs=1e-9)])
