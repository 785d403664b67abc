"""Operations that steps need besides those of quantities: roots, hyperbolic tangents, sines of computed angles."""

import math

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from screwdyn import Inertia, KinematicTree, Link, free, revolute
from screwdyn.backends.llvm import program as native
from screwdyn.backends.llvm.machine import with_lanes
from screwdyn.backends.llvm.program import MEMORY, Function, Kept, planned
from screwdyn.backends.tape.tape import Tape
from screwdyn.backends.tape.trace import tangent

RNG = np.random.default_rng(0)


def compiled(function, columns):
    """The results of a function of traced scalars for rows of numbers, by compiled code and by the tape."""
    tape = Tape()
    outputs = function(*(tape.input(("x", k)) for k in range(columns.shape[1])))
    program = planned("f", tape, {"x": columns.shape[1]}, [np.array(outputs, dtype=object)])
    program.compile("batch")
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


@pytest.mark.slow
@pytest.mark.parametrize("method", ["semi_implicit_euler", "rk4"])
def test_processors_with_other_vectors_give_the_same(monkeypatch, method):
    body = Inertia.box(2.0, (0.1, 0.2, 0.3), (0.02, 0, 0.1))
    tree = KinematicTree()
    tree.attach(Link("hull", body), to="base", joint=free())
    tree.attach(Link("arm", body), to="hull", joint=revolute("y", damping=0.2, friction=0.3, stiffness=3), at=(0, 0, 1))
    rng = np.random.default_rng(1)
    q, qd = np.array([tree.random_configuration(rng) for _ in range(11)]), rng.normal(size=(11, 7))
    found = []
    for width, fused in ((2, True), (4, True), (8, True), (4, False)):
        other = with_lanes(width, fused)
        monkeypatch.setattr(native, "host", lambda other=other: other)
        monkeypatch.setattr(native, "_steps", Kept(native._stepped, MEMORY))
        runs = tree.compile(threads=1).rollout(q, qd, 6, 1e-3, method=method, every=2)
        assert not runs.failed.any()
        found.append(np.concatenate([runs.q, runs.qd], axis=-1))
    assert_array_equal(found[0], found[1])
    assert_array_equal(found[0], found[2])
    assert_allclose(found[3], found[0], rtol=0, atol=1e-13)
