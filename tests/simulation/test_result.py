"""Events of a simulation, and access to its result."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import screwdyn as sd
from screwdyn.changes.change import seconds

BALL = sd.Inertia.sphere(1.0, 0.05)


@pytest.mark.parametrize("value", [0, 2, 0.5, np.float64(0.5), np.float32(0.5), np.int64(3)])
def test_numbers_as_times(value):
    assert seconds("time", value) == float(value)
    assert type(seconds("time", value)) is float


@pytest.mark.parametrize("value", [-1, np.nan, np.inf, "1", None, [1.0], 1j])
def test_bad_times(value):
    with pytest.raises(sd.ScrewdynError, match="time must be a finite number of seconds >= 0; got"):
        seconds("time", value)
    with pytest.raises(sd.ScrewdynError, match="duration must be a finite number of seconds > 0; got"):
        seconds("duration", value, positive=True)


def test_duration_is_positive():
    with pytest.raises(sd.ScrewdynError, match="duration must be a finite number of seconds > 0; got 0"):
        seconds("duration", 0, positive=True)


def test_grasp_without_a_twist_lists_the_choices():
    for omitted in ({}, {"twist": None}):
        with pytest.raises(sd.ShapeError, match="twist must be 'co_moving', 'at_rest' or six numbers"):
            sd.Grasp(BALL, to="base", time=0, **omitted)


def test_event_has_either_a_time_or_a_condition():
    options = {"time": 1.0, "when": lambda t, state: True}
    with pytest.raises(sd.ScrewdynError, match="a Grasp needs either time= or when="):
        sd.Grasp(BALL, to="base", twist="at_rest", **options)
    with pytest.raises(sd.ScrewdynError, match="a Release needs either time= or when="):
        sd.Release("ball", **options)


@pytest.mark.parametrize("time", [-0.1, np.nan, np.inf, "noon"])
def test_bad_times_of_events(time):
    with pytest.raises(sd.ScrewdynError, match="the time of a Release must be a finite number of seconds >= 0"):
        sd.Release("ball", time=time)


def test_condition_is_a_function():
    with pytest.raises(sd.ScrewdynError, match="when= of a Release must be a function"):
        sd.Release("ball", when=1.0)


def test_levels():
    state = sd.State(sd.robots.pelican())
    at = sd.Release("ball", time=1.0)
    assert [at.level(t, state) > 0 for t in (0.0, np.nextafter(1.0, 0), 1.0, 2.0)] == [False, False, True, True]
    for value, level in [(True, 1), (False, -1), (np.True_, 1), (np.False_, -1), (0.25, 0.25), (-3, -3)]:
        assert sd.Release("ball", when=lambda t, state, v=value: v).level(0.0, state) == level
    assert sd.Release("ball", when=lambda t, state: 0.0).level(0.0, state) < 0


@pytest.mark.parametrize("value", [np.nan, np.inf, None, "soon", np.zeros(2)])
def test_condition_returns_a_number_or_a_truth_value(value):
    event = sd.Release("ball", when=lambda t, state: value)
    with pytest.raises(sd.ScrewdynError, match=r"when= of a Release must return .* at t = 0\.5 s"):
        event.level(0.5, sd.State(sd.robots.pelican()))


@pytest.fixture(scope="module")
def run():
    """A slider under a constant force that carries a ball on a hinge from 1 s to 2 s."""
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.point(2.0), to="base", joint=sd.prismatic("x"), name="cart")
    hung = sd.Inertia.point(1.0, (0, 0, -0.3))
    events = [
        sd.Grasp(hung, to="cart", joint=sd.revolute("y", passive=True), name="ball", twist="at_rest", time=1.0),
        sd.Release("ball", time=2.0),
    ]
    return sd.simulate(tree, sd.State(tree), 3.0, lambda t, state: {"cart": 2.0}, events, step=0.25)


def test_samples(run):
    assert_allclose(
        run.t, [*np.arange(0, 1.01, 0.25), *np.arange(1, 2.01, 0.25), *np.arange(2, 3.01, 0.25)], atol=1e-12
    )
    assert len(run.states) == len(run.torques) == len(run.t)
    assert run.coordinates == ("cart", "ball")
    assert run.joints["ball"].passive
    assert run.tree.links == ("base", "cart")
    entries = ("kinetic", "potential", "work", "dissipated", "impact_loss", "exchanged", "external")
    for name in (*entries, "total", "residual"):
        assert getattr(run.energy, name).shape == run.t.shape


def test_histories_are_nan_where_the_coordinate_is_absent(run):
    held = np.array([len(state.coordinates) == 2 for state in run.states])
    assert_array_equal(held, [False] * 5 + [True] * 5 + [False] * 5)
    for history in (run.__getitem__, run.velocity, run.torque):
        assert_array_equal(np.isnan(history("ball")), ~held)
        assert not np.isnan(history("cart")).any()
    assert_array_equal(run["cart"], [state["cart"] for state in run.states])
    assert_array_equal(run.velocity("cart"), [state.velocity("cart") for state in run.states])
    assert_array_equal(run.torque("cart"), np.full(15, 2.0))
    assert_array_equal(run.torque("ball")[held], np.zeros(5))


@pytest.mark.parametrize("t", ["x", [0.0, 0.1], [[0.1]]])
def test_a_state_is_at_one_time(run, t):
    with pytest.raises(sd.ScrewdynError, match="t must be"):
        run.at(t)


def test_links_are_asked_for_at_numbers(run):
    with pytest.raises(sd.ScrewdynError, match="t must be a number of seconds; got 'x'"):
        run.pose("base", "x")


def test_short_repr(run):
    assert repr(run) == "<Run: 3 s, 15 samples, 2 events, 2 coordinates (cart, ball)>"
    grasp = run.events[0].event
    assert repr(grasp) == f"<GraspEvent: {grasp.link}, {grasp.energy_lost:.4g} J lost>"
    assert repr(grasp.handle) == f"Handle(name={grasp.link!r})"
    assert repr(run.energy).startswith("<Energy: 0 J to ")
    many = sd.robots.ur5()
    run = sd.simulate(many, sd.State(many), 0.01)
    assert len(repr(run)) < 200
    assert len(repr(run.energy)) < 200


def test_unknown_histories_list_the_near_names(run):
    for history in (run.__getitem__, run.velocity, run.torque):
        with pytest.raises(sd.UnknownLinkError, match="no coordinate 'cat'; did you mean 'cart'"):
            history("cat")


def test_events_hold_what_was_given_and_its_outcome(run):
    grasp, release = run.events
    assert (grasp.t, release.t) == (1.0, 2.0)
    assert isinstance(grasp.what, sd.Grasp) and isinstance(grasp.event, sd.GraspEvent)
    assert isinstance(release.what, sd.Release) and isinstance(release.event, sd.ReleaseEvent)
    assert_array_equal(grasp.event.state.q, run.states[5].q)
    assert_array_equal(grasp.event.state.qd, run.states[5].qd)
    assert_array_equal(release.event.state.q, run.states[10].q)
    assert release.event.released.tree.base == "ball"


@pytest.mark.slow
def test_plot(run, tmp_path):
    figure = run.plot()
    figure.savefig(tmp_path / "run.png")
    assert (tmp_path / "run.png").stat().st_size > 10_000
