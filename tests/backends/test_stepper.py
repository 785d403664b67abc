"""Operations that steps need besides those of quantities: roots, hyperbolic tangents, sines of computed angles."""

import math

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose

from screwdyn.backends.llvm.call import Function
from screwdyn.backends.llvm.program import Program
from screwdyn.backends.tape.differentiate import tangent
from screwdyn.backends.tape.tape import Tape

RNG = np.random.default_rng(0)


def compiled(function, columns):
    """The results of a function of traced scalars for rows of numbers, by compiled code and by the tape."""
    tape = Tape()
    outputs = function(*(tape.input(("x", k)) for k in range(columns.shape[1])))
    program = Program("f", tape, {"x": columns.shape[1]}, [np.array(outputs, dtype=object)])
    program.compile_batch()
    out = np.empty((len(columns), len(outputs)))
    assert Function(program).batch([columns], [out])
    expected = [tape.evaluate(outputs, {("x", k): x for k, x in enumerate(row)}) for row in columns.tolist()]
    return out, np.array(expected)


def test_tanh_is_good_to_three_units_of_the_last_place():
    small = 10 ** RNG.uniform(-300, 2, 4000) * RNG.choice([-1, 1], 4000)
    x = np.concatenate([small, RNG.uniform(-25, 25, 4000), [0.0, 20.0, -20.0, 1e50, 0.1732, 0.1733, 5e-324]])
    found = compiled(lambda x: [x.tanh()], x[:, None])[0][:, 0]
    with mpmath.workprec(120):
        for a, t in zip(x.tolist(), found.tolist(), strict=True):
            exact = mpmath.tanh(mpmath.mpf(a))
            assert abs(mpmath.mpf(t) - exact) <= 3 * math.ulp(float(exact)), a
    assert np.signbit(compiled(lambda x: [x.tanh()], np.array([[-0.0]] * 8))[0]).all()


def test_roots_are_rounded_correctly():
    x = 10 ** RNG.uniform(-100, 50, (500, 1))
    assert (compiled(lambda x: [x.sqrt()], x)[0] == np.sqrt(x)).all()


def test_sines_of_computed_angles():
    def function(x, y):
        a = x.sin() + y  # a computed angle
        b = a * y
        return [a.sin(), (a + b).cos(), (a - b).sin(), (a + b).sin() * b.cos(), (x + y).sin(), (y * 2.0).tanh().cos()]

    found, expected = compiled(function, RNG.uniform(-3, 3, (50, 2)))
    assert_allclose(found, expected, rtol=0, atol=2e-15)


@pytest.mark.parametrize("name", ["sqrt", "tanh"])
def test_derivatives(name):
    tape = Tape()
    x = tape.input("x")
    (rate,) = tape.evaluate(tangent(tape, [getattr(x, name)()], {"x": 1.0}), {"x": 0.7})
    h = 1e-6
    by_difference = (getattr(math, name)(0.7 + h) - getattr(math, name)(0.7 - h)) / (2 * h)
    assert rate == pytest.approx(by_difference, rel=1e-8)


def test_tanh_is_odd():
    tape = Tape()
    x = tape.input("x")
    assert ((-x).tanh() + x.tanh()) == 0
