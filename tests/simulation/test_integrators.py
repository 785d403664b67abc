"""Integrators: the steps of SciPy's DOP853, and the location of rises through zero within a step."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import DOP853, RK45

import screwdyn as sd
from screwdyn.simulation.integrators import Crossings, RungeKutta8, solution


def pendulum(t, y):
    return np.array([y[1], -9.81 * np.sin(y[0]) - 0.1 * y[1] + np.cos(3 * t)])


def kepler(t, y):
    """A comet, whose steps change by orders of magnitude."""
    return np.array([*y[2:], *(-y[:2] / np.hypot(*y[:2]) ** 3)])


def steep(t, y):
    """A change of the right side that makes steps fail."""
    return np.array([np.tanh(200 * (t - 1)), -30 * y[1]])


def writing(f):
    def rate(t, y, out):
        out[:] = f(t, y)

    return rate


CASES = [
    (pendulum, [1.0, 0.5], 10.0, np.inf),
    (pendulum, [1.0, 0.5], 10.0, 0.05),
    (kepler, [1.0, 0.0, 0.0, 0.3], 12.0, np.inf),
    (steep, [0.0, 1.0], 2.0, np.inf),
    (pendulum, [0.0, 0.0], 1.0, np.inf),
    (lambda t, y: np.zeros(1), [1.0], 1.0, np.inf),
]


@pytest.mark.slow
@pytest.mark.parametrize("case", range(len(CASES)))
@pytest.mark.parametrize("tolerance", [1e-4, 1e-9])
def test_each_step_is_that_of_scipy(case, tolerance):
    f, start, until, longest = CASES[case]
    theirs = DOP853(f, 0.0, start, until, max_step=longest, rtol=tolerance, atol=0.1 * tolerance)
    while theirs.status == "running":
        before, planned = theirs.y, theirs.h_abs
        theirs.step()
        length = theirs.t - theirs.t_old
        ours = RungeKutta8(
            writing(f), theirs.t_old, before, until, longest, min(planned, longest), tolerance, 0.1 * tolerance
        )
        ours.step()
        # The error estimates, and with them the lengths of steps, amplify rounding.
        assert_allclose(ours.t, theirs.t, rtol=1e-4)
        assert_allclose(ours.h_abs, theirs.h_abs, rtol=1e-2)
        if ours.t != theirs.t:
            ours = RungeKutta8(writing(f), theirs.t_old, before, until, longest, length, tolerance, 0.1 * tolerance)
            ours.step()
        assert ours.status == theirs.status
        assert_allclose(ours.y, theirs.y, rtol=1e-13, atol=1e-14)
        times = np.linspace(theirs.t_old, theirs.t, 7)
        piece = ours.dense_output()
        assert_allclose(piece(times), theirs.dense_output()(times), rtol=1e-12, atol=1e-13)
        assert_allclose(piece(times[3]), piece(times)[:, 3], rtol=1e-14, atol=1e-15)
        assert (piece.t_old, piece.t) == (theirs.t_old, theirs.t)


@pytest.mark.parametrize("case", range(len(CASES)))
def test_as_many_evaluations_as_scipy(case):
    f, start, until, longest = CASES[case]
    calls = []

    def counted(t, y):
        calls.append(t)
        return f(t, y)

    theirs = DOP853(f, 0.0, start, until, max_step=longest, rtol=1e-9, atol=1e-10)
    ours = RungeKutta8(writing(counted), 0.0, np.array(start), until, longest, 0.0, 1e-9, 1e-10)
    for solver in (theirs, ours):
        while solver.status == "running":
            solver.step()
    assert_allclose(len(calls), theirs.nfev, rtol=0.05)
    assert_allclose(ours.y, theirs.y, rtol=1e-6, atol=1e-8)


def test_first_step_that_is_given():
    ours = RungeKutta8(writing(pendulum), 0.0, np.array([1.0, 0.5]), 10.0, np.inf, 0.01, 1e-9, 1e-10)
    ours.step()
    assert ours.t == 0.01


def test_step_that_no_length_makes_possible():
    ours = RungeKutta8(
        lambda t, y, out: out.fill(np.nan if t > 0.5 else 1.0), 0.0, np.zeros(1), 1.0, 1.0, 0.1, 1e-6, 1e-8
    )
    with np.errstate(invalid="ignore"):
        while ours.status == "running":
            message = ours.step()
    assert ours.status == "failed" and "less than spacing" in message
    assert_allclose(ours.t, 0.5, atol=1e-12)


@pytest.mark.parametrize("rate", 10.0 ** -np.arange(150, 170, 0.5))
def test_rates_whose_errors_have_squares_that_underflow(rate):
    tree = sd.KinematicTree()
    rod = sd.Inertia.rod(1, 1, axis="x", com=(0.5, 0, 0))
    tree.attach(rod, to="base", joint=sd.revolute("z", damping=0.3), name="arm")
    assert sd.simulate(tree, sd.State(tree, [0.0], [rate]), 0.1, step=0.01).qd[-1] < rate


def test_start_is_not_changed():
    y = np.array([1.0, 0.5])
    ours = RungeKutta8(writing(pendulum), 0.0, y, 1.0, np.inf, 0.0, 1e-9, 1e-10)
    ours.step()
    assert y.tolist() == [1.0, 0.5]


class Line:
    """The solution y(t) = t over a step."""

    t_old, t = 0.0, 1.0

    def __call__(self, t):
        return np.array([t])


@pytest.mark.parametrize(
    ("level", "at"),
    [
        (lambda x: x - 0.3, 0.3),
        (lambda x: -1.0 if x < 0.3 else 1.0, 0.3),
        (lambda x: 0.3 - x, None),
        (lambda x: 0.0, None),
        (lambda x: x * (x - 0.3), 0.3),  # begins with zero, falls, and then rises
        (lambda x: x * (x - 1e-6), 1e-6),
        (lambda x: x, 0.0),
    ],
)
def test_a_rise_is_located(level, at):
    crossings = Crossings([lambda t, y: -1.0, lambda t, y: [-1.0, level(float(y[0]))]], 0.0, np.zeros(1))
    found = crossings.first(1.0, np.ones(1), Line())
    assert found == (None if at is None else (pytest.approx(at, abs=1e-12), 2))


def test_the_first_of_several_rises():
    crossings = Crossings([lambda t, y: y - 0.7, lambda t, y: y - [0.9, 0.4]], 0.0, np.zeros(1))
    assert crossings.first(1.0, np.ones(1), Line()) == (pytest.approx(0.4), 2)


@pytest.mark.parametrize("at", [1e-6, 0.1, 0.2, 0.25, 0.3, 0.7, 1 - 2**-53])
@pytest.mark.parametrize(
    "level", [lambda x, at: 1.0 if x >= at else -1.0, lambda x, at: x - at, lambda x, at: x**3 - at**3]
)
def test_a_rise_is_the_first_float_where_the_function_is_positive(level, at):
    def f(t, y):
        return level(float(y[0]), at)

    found, _ = Crossings([f], 0.0, np.zeros(1)).first(1.0, np.ones(1), Line())
    assert f(found, [found]) > 0 >= f(np.nextafter(found, 0), [np.nextafter(found, 0)])


def test_a_rise_at_the_end_that_the_solution_just_misses():
    """The solution over the step meets its end only to rounding."""

    class Short(Line):
        def __call__(self, t):
            return np.array([t * (1 - 1e-16)])

    crossings = Crossings([lambda t, y: 1.0 if y[0] >= 1 else -1.0], 0.0, np.zeros(1))
    assert crossings.first(1.0, np.ones(1), Short()) == (1.0, 0)


@pytest.mark.parametrize("own", [True, False])
def test_values_of_all_steps_at_once_are_those_of_each(own):
    """A mass on a spring in closed form, at times in any order, also at the ends and none."""

    def spring(t, y):
        return np.array([y[1], -4.0 * y[0]])

    options = {"rtol": 1e-10, "atol": 1e-12}
    if own:
        solver = RungeKutta8(writing(spring), 0.0, np.array([1.0, 0.0]), 5.0, np.inf, 0.0, *options.values())
    else:
        solver = RK45(spring, 0.0, np.array([1.0, 0.0]), 5.0, **options)
    pieces = []
    while solver.status == "running":
        solver.step()
        pieces.append(solver.dense_output())
    times = np.array([5.0, 0.0, 3.3, 0.1, 4.9, 2.2])
    found = solution(pieces, times, 2)
    assert_allclose(found, np.column_stack([np.cos(2 * times), -2 * np.sin(2 * times)]), atol=1e-7)
    assert_allclose(solution(pieces, times, 1), found[:, :1], rtol=1e-15)
    assert solution(pieces, times[:0], 2).shape == (0, 2)
