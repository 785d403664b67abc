"""Machine code of a tape: sine and cosine, and equality with the tape to the last bit in every lane."""

import math

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from screwdyn.backends.llvm import emit, ir
from screwdyn.backends.llvm import program as native
from screwdyn.backends.llvm.machine import with_lanes
from screwdyn.backends.llvm.program import Function, Interpreter
from screwdyn.backends.tape.tape import Tape
from screwdyn.forms.compiled import AT_ONCE
from screwdyn.physics.quantities import CATALOGUE
from screwdyn.robots import puma560


@pytest.fixture(scope="module")
def turned():
    """Sine and cosine of an array by the shared code, from tapes of one operation each."""
    tape = Tape()
    x = tape.input(("x", 0))
    program = native.planned("turned", tape, {"x": 1}, [np.array([x.sin(), x.cos()], dtype=object)])
    program.compile("single")
    program.compile("batch")
    bound = Function(program)

    def turn(angles):
        out = np.empty((len(angles), 2))
        assert bound.batch([np.ascontiguousarray(angles)[:, None]], [out])
        return out.T

    turn.bound = bound
    return turn


def ulps(found, function, x):
    """Largest distance from a function to 120 bits, in units of the last place."""
    with mpmath.workprec(120):
        exact = [function(mpmath.mpf(a)) for a in x.tolist()]
        return max(abs(mpmath.mpf(f) - e) / math.ulp(float(e)) for f, e in zip(found.tolist(), exact, strict=True))


def angles(rng, size=2_000):
    """Of every order of magnitude up to the range, and close to multiples of π/2, where the reduction cancels most."""
    logarithmic = 10 ** rng.uniform(-18, np.log10(ir.RANGE), size) * rng.choice([-1, 1], size)
    multiples = rng.integers(-(2**29), 2**29, size) * (math.pi / 2)
    small = np.arange(-40, 41) * (math.pi / 2)
    around = np.concatenate([np.nextafter(small, -np.inf), small, np.nextafter(small, np.inf)])
    ordinary = rng.uniform(-10, 10, size)
    return np.concatenate([logarithmic, multiples, around, ordinary, [0.0, -0.0, 5e-324, 1e-310, ir.RANGE]])


def test_sine_and_cosine_are_good_to_two_units_of_the_last_place(turned):
    x = angles(np.random.default_rng(0))
    assert np.abs(x).max() <= ir.RANGE
    s, c = turned(x)
    assert ulps(s, mpmath.sin, x) <= 2
    assert ulps(c, mpmath.cos, x) <= 2


def test_angles_next_to_multiples_of_a_right_angle_keep_all_digits(turned):
    """The sine or cosine of the double nearest k π/2 is its distance from k π/2, computed from π/2 in three parts."""
    k = np.arange(1, 2000)
    x = k * (math.pi / 2)
    parts = [math.pi / 2, 6.123233995736766e-17, -1.4973849048591833e-33]
    miss = np.array([math.fsum([a, *(-float(n) * p for p in _split(parts))]) for a, n in zip(x, k, strict=True)])
    s, c = turned(x)
    near_zero = np.where(k % 2, c, s)
    expected = miss * np.where((k % 4 == 1) | (k % 4 == 2), -1, 1)
    np.testing.assert_allclose(near_zero, expected, rtol=5e-16)


def _split(parts):
    """Every part as two of 26 bits, so that products with small integers are exact."""
    for p in parts:
        head = float(np.float64(p) * 134217729 - (np.float64(p) * 134217729 - p))
        yield head
        yield p - head


def test_angles_beyond_the_range_go_to_the_library(turned):
    x = np.array([1e10, -1e15, 1e22, 1e60, 2.0**30 + 1, 1.0, -2.0])
    s, c = turned(x)
    assert_array_equal(s[:5], [math.sin(a) for a in x[:5]])
    assert_array_equal(c[:5], [math.cos(a) for a in x[:5]])
    assert_array_equal(np.stack([s, c])[:, 5:], turned(x[5:]))


def test_what_is_not_finite_is_reported(turned):
    out = np.empty((9, 2))
    for bad in (np.nan, np.inf, -np.inf):
        for lane in range(9):
            x = np.zeros((9, 1))
            x[lane] = bad
            assert not turned.bound.batch([x], [out])
            assert not turned.bound.single([x[lane]], [out[0]])
    assert turned.bound.batch([np.zeros((9, 1))], [out])


@pytest.mark.parametrize("x", [1e61, -1e160, 1.7e308])
def test_numbers_whose_fifth_power_overflows_are_reported(turned, x):
    """A mass matrix could be infinite: the default kernel decides."""
    for other in (0.0, -x):
        angles = np.array([[x], [other]])
        assert not turned.bound.batch([angles], [np.empty((2, 2))])
    assert not turned.bound.single([angles[0]], [np.empty(2)])


def test_sums_of_known_angles_are_added_not_turned_again():
    tape = Tape()
    a, b = (tape.input(("x", k)) for k in range(2))
    outputs = [x.sin() for x in (a, b, a + b, a - b)] + [x.cos() for x in (a, b, a + b, a - b)]
    program = native.planned("sums", tape, {"x": 2}, [np.array(outputs, dtype=object)])
    text = emit.batch(program.plan, 4)
    assert text.count(" %sincos(") == 2
    program.compile("single")
    out, x = np.empty(8), np.array([0.7, -2.3])
    assert Function(program).single([x], [out])
    each = np.array([*x, x[0] + x[1], x[0] - x[1]])
    np.testing.assert_allclose(out, [*np.sin(each), *np.cos(each)], rtol=0, atol=4e-16)


def test_constants_signs_divisions_and_bounds():
    tape = Tape()
    a, b = (tape.input(("x", k)) for k in range(2))
    outputs = [0.0, -3.5, a, -b, a / b, 1.0 / b, -(a * b) - 2.0, a * a - b * b, (a - b) / b]
    tape.assumed.append((b, 0.25))
    program = native.planned("mixed", tape, {"x": 2}, [np.array(outputs, dtype=object)])
    program.compile("single")
    program.compile("batch")
    bound = Function(program)
    x = np.random.default_rng(1).uniform(0.5, 2, (37, 2))
    many, one = np.empty((37, 9)), np.empty(9)
    assert bound.batch([x], [many])
    u, v = x.T
    expected = [0 * u, 0 * u - 3.5, u, -v, u / v, 1 / v, -u * v - 2, u * u - v * v, (u - v) / v]
    np.testing.assert_allclose(many, np.transpose(expected), rtol=1e-14, atol=1e-15)
    for k in range(37):
        assert bound.single([x[k]], [one])
        assert_array_equal(one, many[k])
    x[35, 1] = 0.25
    assert not bound.batch([x], [many])
    assert not bound.single([x[35]], [one])


@pytest.fixture
def uneven():
    """A function of arrays of 5, 3 and 5 numbers."""
    tape, lengths = Tape(), {"q": 5, "qd": 3, "s": 5}
    q, qd, s = ([tape.input((group, k)) for k in range(n)] for group, n in lengths.items())
    products = [q[i] * qd[k] for i in range(5) for k in range(3)]
    sums = [a.sin() + b for a, b in zip(q, s, strict=True)]
    outputs = [np.array(products, dtype=object).reshape(5, 3), np.array(sums, dtype=object)]
    program = native.planned("uneven", tape, lengths, outputs)
    return program


def test_arguments_may_have_different_lengths(uneven):
    assert uneven.plan
    interpreter = Interpreter(uneven.plan)
    uneven.compile("single")
    uneven.compile("batch")
    assert not uneven.plan
    bound = Function(uneven)
    rng = np.random.default_rng(5)
    q, qd, s = (rng.uniform(-2, 2, (21, n)) for n in uneven.lengths)
    expected = q[:, :, None] * qd[:, None], np.sin(q) + s
    many = [np.empty((21, 5, 3)), np.empty((21, 5))]
    played = [np.empty((21, 5, 3)), np.empty((21, 5))]
    assert bound.batch([q, qd, s], many)
    assert interpreter(bound.parameters, [q, qd, s], played)
    assert_array_equal(many[0], expected[0])
    assert_allclose(many[1], expected[1], rtol=0, atol=1e-15)
    for found, other in zip(many, played, strict=True):
        assert_allclose(found, other, rtol=0, atol=1e-15)
    call_python = bound.builtin(lambda q, qd, s, *, out=None: "not in order")
    for k in range(21):
        for found, one in zip(many, call_python(q[k], qd[k], s[k]), strict=True):
            assert_array_equal(one, found[k])
    for wrong in ((q[0, :3], qd[0], s[0]), (q[0], q[0], s[0]), (q[0], qd[0], s[0, :4])):
        assert call_python(*wrong) == "not in order"


def test_every_argument_is_checked_for_nan(uneven):
    """Each entry of each argument, in every lane: of a batch, of a state, and of a call from Python."""
    uneven.compile("single")
    uneven.compile("batch")
    bound = Function(uneven)
    call_python = bound.builtin(lambda q, qd, s, *, out=None: "not in order")
    out = [np.empty((9, 5, 3)), np.empty((9, 5))]
    for position, n in enumerate(uneven.lengths):
        for k in range(n):
            for bad in (np.nan, np.inf, -np.inf):
                given = [np.zeros((9, length)) for length in uneven.lengths]
                lane = (3 * position + k) % 9
                given[position][lane, k] = bad
                assert not bound.batch(given, out), (position, k)
                state = [x[lane] for x in given]
                assert not bound.single(state, [x[lane] for x in out]), (position, k)
                assert call_python(*state) == "not in order"
    assert bound.batch([np.zeros((9, length)) for length in uneven.lengths], out)


@pytest.mark.slow
@pytest.mark.parametrize("fused", [True, pytest.param(False, marks=pytest.mark.soak)])
@pytest.mark.parametrize("width", [2, 8, pytest.param(4, marks=pytest.mark.soak)])
def test_processors_with_other_vectors_give_the_same(monkeypatch, width, fused):
    """This processor can execute such code, although slowly."""
    other = with_lanes(width, fused)
    monkeypatch.setattr(native, "host", lambda: other)
    tree = puma560()
    states = np.random.default_rng(3).uniform(-2, 2, (3, 21, 6))
    opened = np.full((6, 10), True)
    structure = native.Structure(tree.model.table, opened)
    for name in AT_ONCE:
        groups = CATALOGUE[name].arguments
        program = native.recorded(name, structure)
        program.compile("single")
        program.compile("batch")
        bound = Function(program, tree.model.table)
        arguments = states[: len(groups)]
        for count in (1, 2, 7, 8, 21):
            for lay in (np.ascontiguousarray, np.asfortranarray, lambda a: np.repeat(a, 2, axis=-1)[..., ::2]):
                given = [lay(a[:count]) for a in arguments]
                out = [lay(np.full((count, *shape), np.nan)) for shape in program.shapes]
                assert bound.batch(given, out)
                for k in range(count):
                    one = [np.empty(shape) for shape in program.shapes]
                    assert bound.single([np.ascontiguousarray(a[k]) for a in given], one)
                    for x, y in zip(out, one, strict=True):
                        assert_array_equal(x[k], y)
        if name != "dynamics":
            expected = getattr(tree, name)(*arguments)
            assert_allclose(out[0], expected, rtol=1e-11, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("few", [1, 100])
@pytest.mark.parametrize("cached", [-1, 2**22])
@pytest.mark.parametrize("width", [2, 4, 8])
def test_matrices_of_many_states_may_lie_anywhere(monkeypatch, width, cached, few):
    """With vectors that are never aligned, or only after the first entries, with and without sparse storage."""
    other = with_lanes(width, True)
    monkeypatch.setattr(native, "host", lambda: other)
    monkeypatch.setattr(native, "_CACHED", cached)
    monkeypatch.setattr(emit, "_FEW", few)
    rng, tape = np.random.default_rng(4), Tape()
    a, b = (tape.input(("x", k)) for k in range(2))
    entries = [a, 0.0, 0.0, -b, a * b, 2.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, a + b, 0.0, 0.0, a]
    program = native.planned("sixteen", tape, {"x": 2}, [np.array(entries, dtype=object).reshape(4, 4)])
    program.compile("batch")
    bound = Function(program)
    for count in (1, 7, 8, 9, 70):
        x = rng.uniform(-1, 1, (count, 2))
        u, v = x.T
        expected = np.zeros((count, 16))
        expected[:, [0, 3, 4, 5, 12, 15]] = np.transpose([u, -v, u * v, 0 * u + 2.5, u + v, u])
        for start in range(9):
            memory = np.full(32 * count + 16, np.nan)
            whole = memory[start : start + 16 * count].reshape(count, 4, 4)
            rows = memory[start : start + 32 * count].reshape(count, 4, 8)[..., 2:6]
            columns = memory[start : start + 16 * count].reshape(4, 4, count).transpose(2, 0, 1)
            for out in (whole, rows, columns):
                memory[:] = np.nan
                assert bound.batch([x], [out])
                assert_array_equal(out, expected.reshape(count, 4, 4))
                assert np.count_nonzero(~np.isnan(memory)) == out.size


def test_functions_too_large_are_left_to_the_kernels(monkeypatch):
    monkeypatch.setattr(native, "LARGEST", 300)
    tree = puma560()
    tree.gravity = (0.25, 0.5, -9)
    fast = tree.compile(threads=1).wait()
    q, qd = np.random.default_rng(2).normal(size=(2, 6))
    assert_array_equal(fast.coriolis_matrix(q, qd), tree.coriolis_matrix(q, qd))
    assert isinstance(fast.gravity_vector, type(len))
    assert not isinstance(fast.coriolis_matrix, type(len))
