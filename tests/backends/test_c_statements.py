"""A tape in C: its results, to the last bit, and its text."""

import math

import numpy as np
import pytest
from c_compiler import load, pointer
from cases import FUNCTIONS

from screwdyn.backends.c import number, statements
from screwdyn.backends.tape.tape import Tape
from screwdyn.backends.tape.trace import Subject, constants, record
from screwdyn.testing import random_tree


def read(name):
    group, i = name
    return f"{group}[{i}]"


def function(tape, outputs):
    arguments = ("q", "qd", "qdd", "tau")
    inputs = ", ".join(f"const double *{x}" for x in arguments)
    head = f"void f({inputs}, double *y)"
    lines = [*(f"(void){x};" for x in arguments), *statements(tape, {"y": outputs}, read)]
    return "\n".join(["#include <math.h>", f"{head};", head, "{", *lines, "}", ""])


def run(text, folder, values):
    given = [np.array(values.get(x, [0.0]), dtype=float) for x in ("q", "qd", "qdd", "tau")]
    y = np.full(text.count("\ny["), np.nan)
    load(text, folder).f(*map(pointer, given), pointer(y))
    return y


@pytest.mark.parametrize("name", FUNCTIONS)
def test_rounds_as_the_tape_does(name, tmp_path):
    """The order of operations is the same, so all bits are equal."""
    rng = np.random.default_rng(4)
    tree = random_tree(rng, 5)
    tape = Tape()
    outputs = record(tape, name, Subject(constants(tree.model.table)))[0].ravel()
    values = dict(zip(("q", "qd", "qdd", "tau"), rng.normal(size=(4, tree.nv)), strict=True))
    named = {(group, i): float(x) for group, array in values.items() for i, x in enumerate(array)}
    assert run(function(tape, outputs), tmp_path, values).tolist() == tape.evaluate(outputs, named)


def test_parentheses_keep_the_order_of_operations(tmp_path):
    tape = Tape()
    a, b, c = (tape.input(("q", i)) for i in range(3))
    outputs = [a - (b - c), a + (b + c), (a - b) - c, a / (b * c), a * (b / c), (a + b) * c, a / (b / c), (a * b).sin()]
    values = [1e16, 3.0, 0.7]
    named = {("q", i): x for i, x in enumerate(values)}
    text = function(tape, outputs)
    assert run(text, tmp_path, {"q": values}).tolist() == tape.evaluate(outputs, named)
    assert "x0 - (x1 - x2)" in text and "x2 - (x0 - x1)" in text and "x0 / (x1 * x2)" in text


def test_signs_constants_and_repeated_outputs(tmp_path):
    tape = Tape()
    a = tape.input(("q", 0))
    outputs = [-a, a, a * a, -(a * a), 0, -2.5, tape.constant(-1e-300), 1 / (a - 1)]
    expected = [-3.0, 3.0, 9.0, -9.0, 0.0, -2.5, -1e-300, 0.5]
    assert run(function(tape, outputs), tmp_path, {"q": [3.0]}).tolist() == expected


def test_inputs_are_read_before_anything_is_written(tmp_path):
    tape = Tape()
    a, b = tape.input(("q", 0)), tape.input(("q", 1))
    library = load(function(tape, [b, a, a + b]), tmp_path)
    q = np.array([1.0, 2.0, 0.0])
    library.f(*[pointer(q)] * 5)
    assert q.tolist() == [2, 1, 3]


def test_results_used_once_are_inlined_and_sines_are_computed_once():
    tape = Tape()
    a, b = tape.input(("q", 0)), tape.input(("q", 1))
    s = (a + b).sin()
    lines = statements(tape, {"y": [s * a, s * b]}, read)
    assert [line for line in lines if "sin" in line] == [f"const double x{s.node} = sin(x0 + x1);"]
    assert sum("+" in line for line in lines) == 1


def test_lines_stay_short():
    tape = Tape()
    total = tape.input(("q", 0))
    for i in range(1, 200):
        total = total + tape.input(("q", i)) * (0.1 * i)
    assert max(map(len, statements(tape, {"y": [total]}, read))) < 120


@pytest.mark.parametrize("x", [0.1, 1 / 3, 1e22, 5e-324, math.pi, -2.0, 1.7976931348623157e308])
def test_numbers_are_written_with_all_digits(x, tmp_path):
    tape = Tape()
    assert float(number(x)) == x
    assert run(function(tape, [x]), tmp_path, {}).tolist() == [x]


def test_whole_numbers_are_doubles_too():
    assert number(2) == "2.0"
