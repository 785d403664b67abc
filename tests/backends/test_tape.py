"""Folding, sharing and dead code on a tape, and equality of its results."""

import inspect
import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from screwdyn.backends.tape.tape import Recorded, Tape


def fresh(*names):
    tape = Tape()
    return tape, *(tape.input(name) for name in names)


def same(x, y):
    """One operation with one sign."""
    return isinstance(x, Recorded) and (x.node, x.minus) == (y.node, y.minus)


def test_zeros_and_ones_are_folded_exactly():
    tape, x = fresh("x")
    negative = -x
    for y in (x + 0, 0 + x, x - 0, x * 1, 1.0 * x, x / 1, -negative, -1 * (x * -1)):
        assert same(y, x)
    for y in (0 - x, x * -1, x / -1.0):
        assert same(y, -x)
    for y in (x * 0, 0.0 * x, x - x, 0 / x):
        assert y == 0 and not isinstance(y, Recorded)
    assert x / x == 1 and x / -x == -1
    assert len(tape.nodes) == 1


def test_arrays_are_operands_entry_by_entry_and_exact_numbers_are_constants():
    _, x = fresh("x")
    a = np.array([2.0, 3.0])
    for found, expected in ((x * a, 2 * x), (x + a, x + 2), (x - a, x - 2), (a - x, 2 - x)):
        assert found.shape == (2,) and same(found[0], expected)
    assert same(x * Fraction(1, 2), 0.5 * x) and same(x + np.int64(2), x + 2)


def test_a_quotient_times_its_divisor_is_its_dividend():
    _, x, y = fresh("x", "y")
    assert same(-y * (x / y), -x) and same(-(x / y) * y, -x)
    assert 1 / x * -x == -1


def test_constants_are_folded_and_gathered_in_front():
    tape, x, y = fresh("x", "y")
    two, three = tape.constant(2), tape.constant(-3)
    assert two * three == -6 and two + three == -1 and three / two == -1.5
    assert same(2 * (3 * x), 6 * x)
    assert same((2 * x) * (y * 3), 6 * (x * y))
    assert same(x / 4, 0.25 * x)
    assert same(2 * (0.5 * x), x)
    assert same(-2 * x, -(x * 2))
    assert same((x + 2) + 3, x + 5) and same(1 - (2 - x), x - 1) and same((x - 2) + 2, x)


def test_multiples_of_one_scalar_and_equal_multiples_are_gathered():
    _, x, y = fresh("x", "y")
    assert same(x + x, 2 * x)
    assert same(x + 2 * x, 3 * x)
    assert same(2 * x - 5 * x, -3 * x)
    assert 2 * x - 2 * x == 0
    assert same(0.5 * x - 0.5 * y, 0.5 * (x - y))


def test_equal_operations_are_recorded_once():
    tape, x, y = fresh("x", "y")
    assert same(x * y, y * x) and same(x + y, y + x)
    assert same(x - y, -(y - x)) and same(-x - y, -(x + y))
    assert same((-x) * y, -(x * y)) and same((-x) / y, x / (-y))
    before = len(tape.nodes)
    (x + y) * (x * y) / (x - y)
    assert len(tape.nodes) == before + 2
    (y + x) * (y * x) / (x - y)
    assert len(tape.nodes) == before + 2


def test_signs_become_subtractions():
    tape, x, y, z = fresh("x", "y", "z")
    result = -(x * y) + z
    assert tape.count([result]) == {"mul": 1, "add": 1, "div": 0, "sincos": 0}
    assert tape.evaluate([result], {"x": 2.0, "y": 3.0, "z": 1.0}) == [-5]
    assert same(x.cos(), (-x).cos()) and same(x.sin(), -((-x).sin()))


def test_signs_of_roots_and_whether_scalars_are_positive():
    tape, x, y = fresh("x", "y")
    results = [(y - x).sqrt(), (x - y).positive(), (y - x).positive()]
    for values, expected in (((1.0, 5.0), (2.0, 0.0, 1.0)), ((5.0, 5.0), (0.0, 0.0, 0.0))):
        given = dict(zip("xy", values, strict=True))
        assert tape.evaluate(results, given) == list(expected)
    other, a, b = fresh("a", "b")
    recorded = tape.evaluate(results, {"x": a, "y": b})
    assert other.evaluate(recorded, {"a": 1.0, "b": 5.0}) == [2.0, 0.0, 1.0]


def test_sines_and_cosines_of_sums():
    _, a, b, k = fresh("a", "b", "k")
    sa, ca, sb, cb = a.sin(), a.cos(), b.sin(), b.cos()
    assert same(sa * cb + ca * sb, (a + b).sin())
    assert same(ca * cb - sa * sb, (a + b).cos())
    assert same(sa * cb - ca * sb, (a - b).sin())
    assert same(ca * sb - sa * cb, (b - a).sin())
    assert same(ca * cb + sa * sb, (a - b).cos())
    assert same(-(ca * cb) - sa * sb, -((a - b).cos()))
    assert same(sa * sb - ca * cb, -((a + b).cos()))
    assert same((k * sa) * cb + (k * ca) * sb, k * (a + b).sin())
    assert same(2 * (k * (sa * cb)) + 2 * (sb * (ca * k)), 2 * (k * (a + b).sin()))
    assert sa * sa + ca * ca == 1
    assert same(k * sa * sa + k * ca * ca, k)


def test_a_sum_of_angles_is_the_same_however_it_came_about():
    _, a, b, c = fresh("a", "b", "c")

    def turned(x, y):
        return x.sin() * y.cos() + x.cos() * y.sin()

    ab, bc = a + b, b + c
    assert same(turned(ab, c), turned(a, bc))
    assert same(ab.cos() * a.cos() + ab.sin() * a.sin(), b.cos())
    assert same(turned(ab, -b), a.sin())


def test_a_coordinate_remains_a_term_of_angles_unless_terms_of_it_cancel():
    tape, a, b = fresh("a", "b")
    x, y, opposite = a + 0.25, b + 0.25, 0.5 - a
    tape.coordinates |= {x.node, y.node, opposite.node}

    def turned(x, y):
        return x.sin() * y.cos() + x.cos() * y.sin()

    assert same(turned(x, y), (x + y).sin())
    assert same(turned(x + y, -y), x.sin())
    assert turned(x, opposite) == math.sin(0.75)
    assert same(turned(x + y, opposite), (b + 1.0).sin())


def test_a_double_angle_needs_no_further_sine():
    tape, a, b = fresh("a", "b")
    sums = [a.cos() * a.cos() - a.sin() * a.sin(), a.cos() * (a + b).sin() + a.sin() * (a + b).cos()]
    assert tape.count(sums)["sincos"] == 4
    x, y = 0.3, 1.1
    assert tape.evaluate(sums, {"a": x, "b": y}) == pytest.approx([math.cos(2 * x), math.sin(2 * x + y)], abs=1e-15)


def test_other_sums_of_products_are_not_changed():
    tape, a, b, c = fresh("a", "b", "c")
    for x in (
        a.sin() * b.cos() + c.cos() * b.sin(),
        a.sin() * b.cos() + a.sin() * b.sin(),
        a.sin() * b.sin() + c.cos() * b.cos(),
        a.sin() * a.cos() + b.sin() * b.cos(),
        a.sin() * a.sin() - b.cos() * b.cos(),
    ):
        at = tape.nodes[x.node]
        assert at.op in "+-" and tape.count([x])["mul"] == 2


def test_dead_code_is_neither_counted_nor_evaluated():
    tape, x, y = fresh("x", "y")
    1 / (x - 1) * y.sin()
    kept = x * x
    assert tape.live([kept]) == [x.node, kept.node]
    assert tape.count([kept, kept, 3.0]) == {"mul": 1, "add": 0, "div": 0, "sincos": 0}
    assert tape.evaluate([kept, -kept, 3.0], {"x": 1.0}) == [1, -1, 3]


def test_what_depends_on_given_inputs_only_is_not_counted():
    tape, length, mass, q = fresh("length", "mass", "q")
    x = mass * (length * length) + mass * length * q.cos() + q
    every = tape.count([x])
    assert every == {"mul": 4, "add": 2, "div": 0, "sincos": 1}
    assert tape.count([x], lambda name: name in ("length", "mass")) == {"mul": 1, "add": 2, "div": 0, "sincos": 1}
    assert tape.count([x], lambda name: True) == dict.fromkeys(every, 0)


def test_plays_on_arrays_and_counts_divisions():
    tape, x, y = fresh("x", "y")
    result = (x + 2) / (y * y) - x.sin()
    assert tape.count([result]) == {"mul": 1, "add": 2, "div": 1, "sincos": 1}
    a, b = np.linspace(1, 2, 5), np.linspace(3, 4, 5)
    (evaluated,) = tape.evaluate([result], {"x": a, "y": b}, np)
    assert (evaluated == (a + 2) / (b * b) - np.sin(a)).all()


def wave(name, x):
    return getattr(x, name)() if isinstance(x, Recorded) else getattr(math, name)(x)


@given(st.lists(st.tuples(st.sampled_from("+-*sc0k"), st.integers(0, 60), st.integers(0, 60)), min_size=1, max_size=40))
def test_any_program_computes_what_it_says(program):
    """Random sums, products, sines and cosines of three inputs, with constants in between."""
    tape = Tape()
    numbers = {"x": 0.3, "y": -1.2, "z": 0.7}
    recorded = [tape.input(name) for name in numbers]
    plain = list(numbers.values())
    sizes = [1.0] * 3
    for op, i, j in program:
        i, j = i % len(plain), j % len(plain)
        size = sizes[i] * sizes[j] if op == "*" else 1.0 + sizes[i] if op in "sc" else 2 * (sizes[i] + sizes[j])
        if size > 1e3:
            continue
        sizes.append(size)
        for scalars in (recorded, plain):
            a, b = scalars[i], scalars[j]
            if op in "sc":
                scalars.append(wave("sin" if op == "s" else "cos", a))
            else:
                scalars.append({"+": a + b, "-": a - b, "*": a * b, "0": 0 * a + b, "k": -1.5 * a + 0.5 * b}[op])
    for got, expected, size in zip(tape.evaluate(recorded, numbers), plain, sizes, strict=True):
        assert abs(got - expected) <= 1e-13 * size


def test_sums_of_very_many_angles():
    """More angles than calls can be nested."""
    tape, *angles = fresh(*range(200))
    s, c = 0.0, 1.0
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 100)
    try:
        for angle in angles:
            sin, cos = angle.sin(), angle.cos()
            s, c = s * cos + c * sin, c * cos - s * sin
        assert isinstance(s, Recorded) and tape.nodes[s.node].op == "sin"
        assert tape.count([s])["sincos"] == 1
    finally:
        sys.setrecursionlimit(limit)
