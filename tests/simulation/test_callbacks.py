"""Torques and wrenches from functions: called once per period or for every trial, over all or the active freedoms."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import screwdyn as sd

G = 9.81


def cart(**options):
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    tree.attach(sd.Inertia.point(2.0), to="base", joint=sd.prismatic("x", **options), name="cart")
    return tree


def test_controller_is_called_once_per_period_in_order():
    tree, calls = cart(), []

    def torque(t, state):
        calls.append((t, state["cart"]))
        return [np.cos(t)]

    run = sd.simulate(tree, sd.State(tree), 1.0, torque, control_period=0.1, step=0.05)
    times, places = np.array(calls).T
    assert_allclose(times, 0.1 * np.arange(10), atol=1e-15)
    # Velocity and position under forces that are constant over each period.
    speed = np.concatenate([[0], np.cumsum(np.cos(times) / 2 * 0.1)])
    way = np.concatenate([[0], np.cumsum(0.1 * speed[:-1] + np.cos(times) / 4 * 0.01)])
    assert_allclose(places, way[:-1], atol=1e-12)
    assert_allclose(run.states[-1].q, way[-1], atol=1e-12)
    # A sample at the time of a call has the new torque, and the last sample the torque held until then.
    period = np.minimum(np.floor(run.t / 0.1 + 1e-9).astype(int), 9)
    assert_allclose(run.torque("cart"), np.cos(times)[period], rtol=1e-15)
    assert_allclose(run.energy.work, run.energy.kinetic, atol=1e-12)


class Counter:
    """Returns the number of its calls."""

    calls = 0

    def __call__(self, t, state):
        self.calls += 1
        return [self.calls]


@pytest.mark.parametrize("period", [0.1, 0.3, 0.07])
def test_there_is_no_call_at_the_end(period):
    """Also where the product of number and period is a rounding error below the duration."""
    tree = cart()
    for n in (1, 3, 7, 41):
        for duration in (round(n * period, 10), np.nextafter(n * period, np.inf)):
            run = sd.simulate(tree, sd.State(tree), duration, Counter(), control_period=period, step=period)
            assert run.torque("cart")[-1] == n


@pytest.mark.slow
def test_controller_with_a_memory():
    """A PID controller holds a pendulum against an unknown load, as the same controller computed step by step does."""
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.point(2.0, (0, 0, -0.5)), to="base", joint=sd.revolute("y", damping=0.2), name="bob")
    period = 0.01

    class PID:
        integral, last = 0.0, None

        def __call__(self, t, state):
            error = 0.7 - state["bob"]
            self.integral += error * period
            rate = 0.0 if self.last is None else (error - self.last) / period
            self.last = error
            return [60 * error + 80 * self.integral + 8 * rate]

    run = sd.simulate(tree, sd.State(tree), 4.0, PID(), control_period=period, step=0.1)
    assert_allclose(run["bob"][-1], 0.7, atol=2e-3)
    again = sd.simulate(tree, sd.State(tree), 4.0, PID(), control_period=period, step=0.5)
    assert_allclose(again.states[-1].q, run.states[-1].q, atol=1e-8)
    # Period by period, with the torque constant in each.
    pid, state = PID(), sd.State(tree)
    for k in range(400):
        tau = pid(k * period, state)
        state = sd.simulate(tree, state, period, lambda t, s, tau=tau: tau, step=period).states[-1]
    assert_allclose(state.q, run.states[-1].q, atol=1e-7)


def test_an_event_within_a_period_does_not_call_the_controller():
    tree, calls = cart(), []

    def torque(t, state):
        calls.append((round(t, 9), state.coordinates))
        return {name: 3.0 for name in state.coordinates}

    grasp = sd.Grasp(
        sd.Inertia.point(1.0), to="cart", joint=sd.prismatic("y"), twist="co_moving", name="arm", time=0.25
    )
    run = sd.simulate(tree, sd.State(tree), 0.4, torque, [grasp, sd.Release("arm", time=0.35)], control_period=0.1)
    both = ("cart", "arm")
    assert calls == [(0, ("cart",)), (0.1, ("cart",)), (0.2, ("cart",)), (0.3, both)]
    held = (run.t > 0.25) & (run.t < 0.3 - 1e-9)
    assert_array_equal(run.torque("arm")[held], 0.0)
    assert_array_equal(run.torque("cart"), 3.0)
    assert_array_equal(run.torque("arm")[(run.t > 0.301) & (run.t < 0.349)], 3.0)
    assert np.abs(run.energy.residual).max() < 1e-10


def test_an_event_at_the_time_of_a_call_happens_first():
    tree, calls = cart(), []

    def torque(t, state):
        calls.append(len(state.tree.links))
        return {}

    grasps = [
        sd.Grasp(sd.Inertia.point(1.0), to="cart", twist="co_moving", name=name, time=time)
        for name, time in (("one", 0.0), ("two", 0.5))
    ]
    sd.simulate(tree, sd.State(tree), 1.0, torque, grasps, control_period=0.5)
    assert calls == [3, 4]


def test_conditions_wrenches_and_friction_between_calls():
    """Wrenches act continuously, conditions are located, and friction holds until the controller pulls harder."""
    tree = cart(friction=1.0)
    mark = sd.Grasp(
        sd.Inertia.point(1e-9), to="cart", twist="co_moving", name="mark", when=lambda t, state: state["cart"] - 0.1
    )
    run = sd.simulate(
        tree,
        sd.State(tree),
        2.0,
        lambda t, state: [np.floor(t / 0.5 + 1e-9)],
        [mark],
        control_period=0.5,
        wrenches=lambda t, state: {"cart": [0, 0, 0, 0.5 * t, 0, 0]},
        step=0.05,
    )
    # Force 1 + t/2 against friction 1 from t = 0.5 s on, 2 + t/2 from 1 s, 3 + t/2 from 1.5 s; 2 kg.
    t = 0.5
    x = v = 0.0
    for k in (1, 2, 3):
        h = 0.5
        a, slope = (k - 1 + 0.5 * t) / 2, 0.25
        x, v = x + v * h + a * h**2 / 2 + slope * h**3 / 6, v + a * h + slope * h**2 / 2
        t += h
    assert_allclose(run.states[-1].q, [x], rtol=1e-8)
    assert not run["cart"][run.t < 0.5].any()
    assert_allclose(run.events[0].event.state["cart"], 0.1, atol=1e-10)


@pytest.mark.slow
def test_bang_bang_controller_with_a_period():
    tree = cart()
    run = sd.simulate(
        tree, sd.State(tree, [0.3]), 4.5, lambda t, s: -5 * np.sign(s.q + s.qd), control_period=4e-3, step=0.05
    )
    assert abs(run["cart"][-1]) < 0.01


@pytest.mark.parametrize("period", [0, -0.1, np.nan, "1"])
def test_bad_periods(period):
    tree = cart()
    with pytest.raises(sd.ScrewdynError, match="control_period must be a finite number of seconds > 0"):
        sd.simulate(tree, sd.State(tree), 1.0, lambda t, s: [0], control_period=period)


def test_period_without_a_controller():
    tree = cart()
    with pytest.raises(sd.ScrewdynError, match="control_period needs a torque to call"):
        sd.simulate(tree, sd.State(tree), 1.0, control_period=0.1)


@pytest.mark.parametrize("what", ["step", "control_period"])
def test_periods_below_the_resolution_of_floats(what):
    tree = cart()
    with pytest.raises(
        sd.ScrewdynError, match=rf"{what}=1e-07 s is shorter than the resolution of times at t0 = 1e\+10"
    ):
        sd.simulate(tree, sd.State(tree), 1e-3, lambda t, s: [0], t0=1e10, **{"step": 1e-4} | {what: 1e-7})


@pytest.mark.parametrize("what", ["step", "control_period"])
@pytest.mark.parametrize("value", [1e-300, 1e-9])
def test_absurd_periods(what, value):
    tree = cart()
    with pytest.raises(sd.ScrewdynError, match=rf"{what}={value:g} s makes .* more than 1e\+07; choose it larger"):
        sd.simulate(tree, sd.State(tree), 1.0, lambda t, s: [0], **{what: value})


# Torques of the active freedoms --------------------------------------------------------------------------------------


def test_torques_of_the_active_freedoms_only():
    tree = sd.KinematicTree()
    body = sd.Inertia.box(1.0, (0.1, 0.2, 0.3), (0, 0, -0.2))
    tree.attach(body, to="base", joint=sd.revolute("y"), name="one")
    tree.attach(body, to="one", joint=sd.spherical(passive=True), at=(0, 0, -0.4), name="loose")
    tree.attach(body, to="one", joint=sd.universal(), at=(0, 0, -0.4), name="two")
    active = np.array([0.3, -0.2, 0.1])
    state = sd.State(tree)
    fewer = sd.simulate(tree, state, 0.2, lambda t, s: active, step=0.05)
    whole = sd.simulate(tree, state, 0.2, lambda t, s: tree.actuation_matrix @ active, step=0.05)
    assert_array_equal(fewer.q, whole.q)
    assert_array_equal(fewer.tau, whole.tau)
    assert fewer.torque("two[w2]")[0] == 0.1 and not fewer.torque("loose[wx]").any()
    with pytest.raises(sd.ShapeError, match=r"shape \(4,\).*or for each active one: one, two\[w1\], two\[w2\];"):
        sd.simulate(tree, state, 0.2, lambda t, s: np.zeros(4))


def test_active_torques_remain_valid_when_a_payload_swings_from_a_passive_joint():
    tree = cart()
    load = sd.Inertia.point(1.0, (0, 0, -0.3))
    hook = sd.revolute("y", passive=True)
    grasp = sd.Grasp(load, to="cart", joint=hook, twist="at_rest", name="load", time=0.1)
    run = sd.simulate(tree, sd.State(tree), 0.2, lambda t, state: [1.0], [grasp], step=0.05)
    assert_array_equal(run.torque("cart"), 1.0)
    assert_array_equal(run.torque("load")[run.t > 0.1], 0.0)


def test_saturated_torques_by_hand():
    """A cart of 2 kg is pushed by 3 t with an effort of 1.5: t²·3/4 of speed until 0.5 s, then 0.75 m/s²."""
    tree = cart(effort=1.5)
    run = sd.simulate(tree, sd.State(tree), 1.0, lambda t, state: [3 * t], saturate=True, step=0.01)
    speed = np.where(run.t < 0.5, 0.75 * run.t**2, 0.1875 + 0.75 * (run.t - 0.5))
    assert_allclose(run.velocity("cart"), speed, rtol=1e-8, atol=1e-9)
    assert_allclose(run.torque("cart"), np.minimum(3 * run.t, 1.5), rtol=1e-12)
    assert_allclose(run.energy.work, run.energy.kinetic, atol=1e-9)
    free = sd.simulate(tree, sd.State(tree), 1.0, lambda t, state: [3 * t], step=0.01)
    assert_allclose(free.states[-1].qd, [0.75], rtol=1e-9)


@pytest.mark.parametrize("period", [None, 0.01])
def test_saturation_is_that_of_a_controller_that_clips(period):
    tree = sd.KinematicTree()
    body = sd.Inertia.box(1.0, (0.4, 0.1, 0.1), (0.2, 0, 0))
    tree.attach(body, "base", sd.revolute("y", effort=2.0, name="a"), name="one")
    tree.attach(body, "one", sd.revolute("y", name="b"), (0.4, 0, 0), "two")
    tree.attach(body, "two", sd.universal("y", "x", effort=0.3, name="c"), (0.4, 0, 0), "three")

    def pd(t, state):
        return tree.gravity_vector(state.q) - 20 * state.q - 2 * state.qd + 1

    largest = np.array([2.0, np.inf, 0.3, 0.3])

    def clipped(t, state):
        return np.clip(pd(t, state), -largest, largest)

    start = sd.State(tree, [0.5, -0.2, 0.3, 0.1])
    runs = [
        sd.simulate(tree, start, 0.2, torque, saturate=saturate, control_period=period, step=2e-3)
        for torque, saturate in ((pd, True), (clipped, False))
    ]
    assert_array_equal(runs[0].states[-1].q, runs[1].states[-1].q)
    assert np.abs(runs[0].torque("a")).max() == 2.0
    assert np.abs(runs[0].torque("b")).max() > 2.0


@pytest.mark.slow
def test_the_effort_of_a_joint_that_follows_clips_nothing():
    tree = cart(effort=1.5)
    follower = sd.prismatic("x", effort=0.1, mimic=sd.Mimic("cart"), name="second")
    tree.attach(sd.Inertia.point(1.0), "base", follower)
    run = sd.simulate(tree, sd.State(tree), 0.2, lambda t, state: [3.0], saturate=True, step=0.02)
    assert_array_equal(run.torque("cart"), 1.5)


def test_saturation_without_a_torque_is_refused():
    tree = cart(effort=1.0)
    with pytest.raises(sd.ScrewdynError, match="saturate needs a torque to clip"):
        sd.simulate(tree, sd.State(tree), 1.0, saturate=True)
