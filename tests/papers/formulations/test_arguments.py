"""All public methods take states alike, under the names of the library and of the sources."""

import inspect
import math

import numpy as np
import pytest
import sympy as sp
from closed_forms import evaluated
from numpy.testing import assert_allclose, assert_array_equal

import screwdyn as sd
from screwdyn import formulations, robots

STATE = {"q": [0, 1], "qd": [1, 2], "qdd": [2, -1]}
STATE |= {"theta": STATE["q"], "thetad": STATE["qd"]}


def methods(name):
    """Every public method of a state, and the states that it takes."""
    for method, function in inspect.getmembers(getattr(formulations, name), inspect.isfunction):
        groups = [x for x in inspect.signature(function).parameters if x in STATE]
        if groups and not method.startswith("_"):
            yield method, groups


def call(witness, method, **state):
    """The result, with the other arguments of the method; blocks and steps as tuples of arrays."""
    known = {"i": 1, "at": None}
    if method == "twists":
        known["at"] = witness.blocks([0.0, 1.0])
    function = getattr(witness, method)
    arguments = state | {x: known[x] for x in inspect.signature(function).parameters if x in known}
    return function(**arguments)


def arrays(found):
    """The arrays in a result, which may be in lists and tuples."""
    if isinstance(found, list | tuple):
        return [a for entry in found for a in arrays(entry)]
    return [found]


def test_the_methods_with_the_names_of_the_sources_are_among_them():
    found = [f"{name}.{method}" for name in formulations.__all__ for method, _ in methods(name)]
    assert {"lagrange_euler.D", "denoc.MCI", "kronecker.dM", "progressive.C_i", "lagrangian.c_ijk"} <= {*found}
    assert len(found) > 70


@pytest.mark.parametrize("name", formulations.__all__)
def test_states_of_integers_and_lists(name):
    witness = getattr(formulations, name)(robots.two_link())
    for method, groups in methods(name):
        expected = arrays(call(witness, method, **{x: np.array(STATE[x], dtype=float) for x in groups}))
        for kind in (np.array, list, lambda x: np.array(x, dtype=object)):
            found = arrays(call(witness, method, **{x: kind(STATE[x]) for x in groups}))
            for a, b in zip(found, expected, strict=True):
                assert_array_equal(a, b)


@pytest.mark.parametrize("name", formulations.__all__)
def test_states_of_symbols(name):
    witness = getattr(formulations, name)(robots.two_link())
    symbols = {x: sp.symbols(f"{x}:2") for x in STATE}
    values = {a: b for x in STATE for a, b in zip(symbols[x], STATE[x], strict=True)}
    for method, groups in methods(name):
        expected = arrays(call(witness, method, **{x: STATE[x] for x in groups}))
        numbers = {"qd"} if method == "motor_torque" else {}  # friction has their signs
        found = arrays(call(witness, method, **{x: (STATE if x in numbers else symbols)[x] for x in groups}))
        for a, b in zip(found, expected, strict=True):
            entries = [evaluated(sp.sympify(x), values) for x in a.flat]
            assert_allclose(np.reshape(entries, a.shape), b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", formulations.__all__)
def test_wrong_states(name):
    witness = getattr(formulations, name)(robots.two_link())
    for method, groups in methods(name):
        for group in groups:
            for wrong in ([0.1, 0.2, 0.3], [0.1, math.nan], [0.1, None], ["a", "b"], [[1], [2, 3]], None):
                with pytest.raises(sd.ShapeError, match=f"^{group} "):
                    call(witness, method, **{x: STATE[x] for x in groups} | {group: wrong})


def test_object_arrays_keep_expressions_only():
    witness = formulations.lagrange_euler(robots.two_link())
    x = sp.Symbol("x")
    for wrong in ([x, None], [x, "a"], [x, math.inf], [x, 1j]):
        with pytest.raises(sd.ShapeError, match=r"^q "):
            witness.D(np.array(wrong, dtype=object))
    assert witness.D(np.array([x, 1], dtype=object)).dtype == object
    assert witness.D(np.array([0, 1], dtype=object)).dtype == float


@pytest.mark.parametrize("name", formulations.__all__)
@pytest.mark.parametrize("wrong", [None, "arm", robots.two_link])
def test_what_is_no_tree_is_refused(name, wrong):
    with pytest.raises(sd.ScrewdynError, match="is made from a KinematicTree; got"):
        getattr(formulations, name)(wrong)


@pytest.mark.parametrize("name", ["newton_euler", "lagrangian"])
def test_wrenches_by_names_of_links(name):
    witness, zero = getattr(formulations, name)(robots.two_link()), [0, 0]
    for wrong in ([1, 2], 3, np.zeros(6)):
        with pytest.raises(sd.ShapeError, match=r"wrenches must map names of links to \[n; f\]"):
            witness.motor_torque(zero, zero, zero, wrong)


@pytest.mark.parametrize(("name", "rate", "expected"), [("newton_euler", "v", "-n_z + v"), ("lagrangian", 0, "-n_z")])
def test_closed_forms_of_motor_torques_have_no_factors_of_one(name, rate, expected):
    arm = sd.KinematicTree(gravity=(0, 0, 0))
    arm.attach(sd.Link("link"), to="base", joint=sd.revolute("z", damping=1.0))
    witness = getattr(formulations, name)(arm)
    (tau,) = witness.motor_torque([0], [sp.sympify(rate)], [0], {"link": sp.symbols("n_x n_y n_z f_x f_y f_z")})
    assert str(tau) == expected


def test_friction_needs_rates_that_are_numbers():
    witness = formulations.lagrangian(robots.two_link())
    with pytest.raises(sd.ShapeError, match=r"qd must be numbers, because friction has their signs; not so theta1"):
        witness.motor_torque([0, 0], [sp.Symbol("v"), 1], [0, 0])


def test_links_of_progressive_dynamics_are_rows():
    witness = formulations.progressive(robots.two_link())
    for method in (
        "M_bar",
        "M_i",
        "J",
        "J_by_transformation",
        "J_by_rotation",
        "J_bar",
        "C_i",
        "C_by_christoffel",
        "g_i",
    ):
        for wrong in (-1, 2, 1.5, "link2"):
            arguments = {"M_bar": (), "C_i": ([0, 0], [0, 0]), "C_by_christoffel": ([0, 0], [0, 0])}
            with pytest.raises(sd.UnknownNameError, match="links are rows, counted from 0, of 2"):
                getattr(witness, method)(wrong, *arguments.get(method, ([0, 0],)))
