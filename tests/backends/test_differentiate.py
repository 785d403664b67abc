"""Derivatives on a tape against the complex step: Im f(x + ih)/h is f'(x) up to rounding."""

import math

import numpy as np
import pytest
from cases import EPS, close, norm
from hypothesis import given
from hypothesis import strategies as st
from tangents import joint_cases

import screwdyn
from screwdyn.backends.tape.tape import Recorded, Tape
from screwdyn.backends.tape.trace import (
    Subject,
    constants,
    derivatives,
    gradient,
    mass_matrix_dot,
    open_inertias,
    record,
    regressor,
    tangent,
)
from screwdyn.physics.quantities import CATALOGUE
from screwdyn.physics.recursions.links import MIXED
from screwdyn.physics.table import MASS, PARENT

TINY = 1e-30


def evaluated(tape, outputs, values):
    """Outputs of any shape evaluated on numbers, or on arrays of them, whose axes come last."""
    results = tape.evaluate(np.ravel(outputs).tolist(), values, np)
    shape = np.broadcast_shapes(*(np.shape(x) for x in values.values()))
    results = [np.broadcast_to(x, shape) for x in results]
    return np.array(results).reshape((*np.shape(outputs), *shape))


def complex_step(tape, outputs, values, names):
    """∂outputs/∂names, with the name as the last index."""
    steps = 1j * TINY * np.eye(len(names))
    moved = {name: x + np.zeros(len(names)) for name, x in values.items()}
    for name, step in zip(names, steps, strict=True):
        moved[name] = moved[name] + step
    return evaluated(tape, outputs, moved).imag / TINY


@st.composite
def programs(draw):
    """A tape with one output that took some random operations on three inputs, and numbers for the inputs."""
    tape = Tape()
    scalars = [tape.input(name) for name in "xyz"] + [0.7, -1.0]
    for _ in range(draw(st.integers(1, 25))):
        a, b = (scalars[draw(st.integers(0, len(scalars) - 1))] for _ in range(2))
        op = draw(st.sampled_from(["+", "-", "*", "/", "sin", "cos", "neg"]))
        if op == "+":
            scalars.append(a + b)
        elif op == "-":
            scalars.append(a - b)
        elif op == "*":
            scalars.append(a * b)
        elif op == "neg":
            scalars.append(-a)
        elif isinstance(a, Recorded):
            # A denominator of at least 2, and angles that stay small.
            bounded = a.sin()
            scalars.append({"/": b / (bounded + 3.0), "sin": bounded, "cos": a.cos()}[op])
    x = draw(st.tuples(*[st.floats(-1, 1)] * 3))
    return tape, scalars, dict(zip("xyz", x, strict=True))


@given(programs())
def test_both_modes_agree_with_the_complex_step(program):
    tape, scalars, values = program
    for output in scalars[-3:]:
        expected = complex_step(tape, np.array([output], dtype=object), values, "xyz")[0]
        forward = [tangent(tape, [output], {name: 1.0})[0] for name in "xyz"]
        backward = gradient(tape, output, "xyz")
        # Rounding is relative to large intermediate values.
        live = tape.live([*forward, *backward])
        size = norm(tape.evaluate([Recorded(tape, at) for at in live], values)) if live else 0.0
        for found in (forward, backward):
            close(evaluated(tape, np.array(found, dtype=object), values), expected, 1 + size, 1e3 * EPS)


def test_rates_may_stand_on_the_tape():
    tape = Tape()
    x, y, rate = (tape.input(name) for name in ("x", "y", "rate"))
    (along,) = tangent(tape, [x * x * y], {"x": rate, "y": 2.0})
    assert evaluated(tape, along, {"x": 3.0, "y": 5.0, "rate": 7.0}) == 2 * 3 * 5 * 7 + 9 * 2


def test_what_does_not_depend_has_no_derivative():
    tape = Tape()
    x, y = tape.input("x"), tape.input("y")
    count = len(tape.nodes)
    assert tangent(tape, [x * 2.0, 3.0, y.sin()], {"z": 1.0}) == [0.0, 0.0, 0.0]
    assert gradient(tape, 3.0, ["x", "y"]) == [0.0, 0.0]
    assert gradient(tape, y, ["x"]) == [0.0]
    assert len(tape.nodes) <= count + 3


def test_derivatives_share_operations_with_the_function():
    tape = Tape()
    x = tape.input("x")
    (first,) = tangent(tape, [x.sin()], {"x": 1.0})
    (second,) = tangent(tape, [first], {"x": 1.0})
    assert (first.node, first.minus) == (x.cos().node, False)
    assert (second.node, second.minus) == (x.sin().node, True)
    assert math.isclose(tape.evaluate([second], {"x": 0.3})[0], -math.sin(0.3))


def subject(tree):
    places = tree.model.places("one", tree.links[-1], MIXED)
    return Subject(constants(tree.model.table), tree.model.charts, constants(places))


def values_of(case, tau):
    groups = {"q": case.q, "qd": case.qd, "qdd": case.qdd, "tau": tau, "qd_ref": tau, "qdd_ref": case.qd}
    return {(group, i): x for group, row in groups.items() for i, x in enumerate(row)}


def along_freedoms(case, tape, outputs, argument, values):
    """∂outputs/∂argument by complex steps; with respect to q, of dq/dt at q̇ = e_k."""
    n = case.tree.nv
    if not n:
        return np.zeros((*outputs.shape, 0))
    steps = np.eye(n) if argument != "q" else case.tree.position_rate(np.tile(case.q, (n, 1)), np.eye(n))
    moved = {name: x + np.zeros(n) for name, x in values.items()}
    for i, step in enumerate(steps.T):
        moved[argument, i] = moved[argument, i] + 1j * TINY * step
    return evaluated(tape, outputs, moved).imag / TINY


ONE_RESULT = [
    name
    for name, entry in CATALOGUE.items()
    if len(entry.given) == 1
    and entry.places in ("one", None)
    and name not in ("forward_dynamics", "operational_inertia")
]


@pytest.mark.slow
@pytest.mark.parametrize("name", ONE_RESULT)
@given(joint_cases(least=1, most=2))
def test_along_freedoms(name, case):
    tape, of, n = Tape(), subject(case.tree), case.tree.nv
    (original,) = record(tape, name, of)
    values = values_of(case, np.zeros(n))
    size = norm(evaluated(tape, original, values))
    for argument, found in zip(CATALOGUE[name].arguments, derivatives(tape, name, of), strict=True):
        assert found.shape == (*original.shape, n)
        expected = along_freedoms(case, tape, original, argument, values)
        scale = (1 + norm(case.qd) ** 2 + norm(case.qdd)) * (1 + case.tree.mass) * 10 * (1 + n) + size
        close(evaluated(tape, found, values), expected, scale, 100 * EPS)


@pytest.mark.slow
@given(joint_cases(least=1, most=4))
def test_forward_dynamics_against_articulated_bodies(case):
    tape, of, n = Tape(), subject(case.tree), case.tree.nv
    if not n:
        return
    values = values_of(case, case.rng.uniform(-5, 5, n))
    (original,) = record(tape, "forward_dynamics", of)
    found = derivatives(tape, "forward_dynamics", of)
    M = case.tree.mass_matrix(case.q)
    assumed = evaluated(tape, np.array(tape.assumed, dtype=object), values)
    assert all(x > least for x, least in assumed.reshape(-1, 2))
    for argument, derivative in zip(("q", "qd", "tau"), found, strict=True):
        expected = along_freedoms(case, tape, original, argument, values)
        tolerance = 1e3 * np.linalg.cond(M) * EPS
        close(evaluated(tape, derivative, values), expected, 1 + norm(expected) + norm(np.linalg.inv(M)), tolerance)


@given(joint_cases(most=4))
def test_rate_of_the_mass_matrix(case):
    tape, of, n = Tape(), subject(case.tree), case.tree.nv
    rate = mass_matrix_dot(tape, of)
    values = values_of(case, np.zeros(n))
    (M,) = record(tape, "mass_matrix", of)
    D = along_freedoms(case, tape, M, "q", values)
    close(evaluated(tape, rate, values), D @ case.qd, norm(D) * np.abs(case.qd).sum(), 100 * EPS)


@given(joint_cases(least=1, most=4))
def test_regressor_is_the_gradient_by_inertial_numbers(case):
    tape, model = Tape(), case.tree.model
    n = model.nv
    if not n:
        return
    (tau,) = record(tape, "inverse_dynamics", Subject(open_inertias(model.table, tape), model.charts))
    values = values_of(case, np.zeros(n))
    names = [("inertia", (row, k)) for row in range(n) for k in range(PARENT - MASS)]
    values |= dict(zip(names, model.table[:-1, MASS:PARENT].ravel(), strict=True))
    expected = complex_step(tape, tau, values, names)
    # With one body in each row's frame, the parameters are the numbers of the rows.
    at_rest = ((1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 0.0))
    Y = regressor(tape, subject(case.tree), [(row, *at_rest) for row in range(n)])
    assert Y.shape == (n, 10 * n)
    close(evaluated(tape, Y, values), expected, 1 + norm(expected), 1e3 * EPS)


@pytest.mark.parametrize(
    ("name", "mul", "add"),
    [
        ("inverse_dynamics", 860, 610),
        ("forward_dynamics", 1460, 1180),
        ("mass_matrix", 280, 170),
        ("gravity_vector", 15, 10),
        ("kinetic_energy", 330, 230),
    ],
)
def test_operations_for_a_known_arm(name, mul, add):
    tape = Tape()
    outputs = derivatives(tape, name, subject(screwdyn.robots.ur5()))
    cost = tape.count([x for out in outputs for x in out.ravel()])
    assert (cost["mul"] <= mul, cost["add"] <= add, cost["sincos"] <= 12) == (True, True, True), (name, cost)


def test_operations_of_the_rate_of_the_mass_matrix():
    tape = Tape()
    cost = tape.count(mass_matrix_dot(tape, subject(screwdyn.robots.ur5())).ravel())
    assert (cost["mul"] <= 290, cost["add"] <= 200) == (True, True), cost
