"""The location of rises through zero within a step."""

import numpy as np
import pytest

from screwdyn.simulation.integrators import Crossings


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
    assert found == (None if at is None else (pytest.approx(at, abs=1e-12), 1, 1))


def test_the_first_of_several_rises():
    crossings = Crossings([lambda t, y: y - 0.7, lambda t, y: y - [0.9, 0.4]], 0.0, np.zeros(1))
    assert crossings.first(1.0, np.ones(1), Line()) == (pytest.approx(0.4), 1, 1)


@pytest.mark.parametrize("at", [1e-6, 0.1, 0.2, 0.25, 0.3, 0.7, 1 - 2**-53])
@pytest.mark.parametrize(
    "level", [lambda x, at: 1.0 if x >= at else -1.0, lambda x, at: x - at, lambda x, at: x**3 - at**3]
)
def test_a_rise_is_the_first_float_where_the_function_is_positive(level, at):
    def f(t, y):
        return level(float(y[0]), at)

    found, _, _ = Crossings([f], 0.0, np.zeros(1)).first(1.0, np.ones(1), Line())
    assert f(found, [found]) > 0 >= f(np.nextafter(found, 0), [np.nextafter(found, 0)])


def test_a_rise_at_the_end_that_the_solution_just_misses():
    """The solution over the step meets its end only to rounding."""

    class Short(Line):
        def __call__(self, t):
            return np.array([t * (1 - 1e-16)])

    crossings = Crossings([lambda t, y: 1.0 if y[0] >= 1 else -1.0], 0.0, np.zeros(1))
    assert crossings.first(1.0, np.ones(1), Short()) == (1.0, 0, 0)
