"""Forward dynamics of closed loops written out as operations, and closed forms over independent coordinates."""

import numpy as np
import pytest
import sympy as sp
from c_compiler import load, pointer
from mechanisms import LENGTHS, bricard, door, four_bar, moving_bricard, slider_crank
from numpy.testing import assert_allclose, assert_array_equal

import screwdyn as sd
from screwdyn.forms.requests import independent_constraints


def parallelogram():
    """A four-bar of equal opposite bars in its flat position, in which a constraint is redundant."""
    tree = sd.KinematicTree(gravity=(0, -9.81, 0))
    rod = sd.Inertia.rod(1.0, 1.0, com=(0.5, 0, 0))
    tree.attach(rod, to="base", joint=sd.revolute("z"), name="crank")
    tree.attach(rod, to="crank", joint=sd.revolute("z"), at=(1, 0, 0), name="coupler")
    tree.attach(rod, to="base", joint=sd.revolute("z"), at=(1, 0, 0), name="rocker")
    tree.close("rocker", to="coupler", joint=sd.revolute("z", (1, 0, 0)), name="pin")
    return tree


def symbolic_slider_crank():
    r, rod, m1, m2, m3, g = sp.symbols("r l m1 m2 m3 g", positive=True)
    tree = sd.KinematicTree(gravity=(0, -g, 0))
    tree.attach(sd.Inertia.box(m1, (r, 0, 0), com=(r / 2, 0, 0)), to="base", joint=sd.revolute("z"), name="crank")
    link = sd.Inertia.box(m2, (rod, 0, 0), com=(rod / 2, 0, 0))
    tree.attach(link, to="crank", joint=sd.revolute("z"), at=(r, 0, 0), name="rod")
    tree.attach(sd.Inertia.point(m3), to="base", joint=sd.prismatic("x"), name="piston")
    tree.close("piston", to="rod", joint=sd.revolute("z"), at=(rod, 0, 0), name="gudgeon")
    return tree, {r: 0.5, rod: 1.2, m1: 1.0, m2: 2.0, m3: 3.0, g: 9.81}


def symbolic_five_bar():
    a, b, e = sp.symbols("a b e", positive=True)
    tree = sd.KinematicTree(gravity=(0, -9, 0))

    def bar(length):
        return sd.Inertia.box(2, (length, 0, 0), com=(length / 2, 0, 0))

    tree.attach(bar(a), to="base", joint=sd.revolute("z"), name="left")
    tree.attach(bar(b), to="left", joint=sd.revolute("z"), at=(a, 0, 0), name="upper left")
    tree.attach(bar(a), to="base", joint=sd.revolute("z"), at=(e, 0, 0), name="right")
    tree.attach(bar(b), to="right", joint=sd.revolute("z"), at=(a, 0, 0), name="upper right")
    tree.close("upper right", to="upper left", joint=sd.revolute("z", (b, 0, 0)), name="pin")
    return tree, {a: 0.5, b: 1.0, e: 0.4}


@pytest.mark.parametrize("mechanism", [four_bar, slider_crank, moving_bricard, door])
def test_forms_of_forward_dynamics(mechanism, tmp_path):
    """C, machine code and a lambdified closed form against the default kernel, which chooses in every state."""
    tree, (q, qd) = mechanism()
    tau = np.linspace(1.3, -0.4, tree.nv)
    expected = tree.forward_dynamics(q, qd, tau)
    tolerance = {"rtol": 0, "atol": 1e-12 * np.abs(expected).max()}
    fast = tree.compile().wait()
    assert "forward_dynamics" in fast.compiled
    assert_allclose(fast.forward_dynamics(q, qd, tau), expected, **tolerance)
    assert_allclose(fast.forward_dynamics([q, q, q], qd, tau), [expected] * 3, **tolerance)
    assert_allclose(tree.symbolic().lambdify("forward_dynamics")(q, qd, tau), expected, **tolerance)
    library, found = load(tree.c_source("forward_dynamics"), tmp_path), np.empty(tree.nv)
    library.forward_dynamics(*map(pointer, (q, qd, tau, found)))
    assert_allclose(found, expected, **tolerance)


def test_machine_code_leaves_singular_states_to_the_kernel():
    tree = parallelogram()
    fast, zero = tree.compile().wait(), np.zeros(3)
    assert "forward_dynamics" in fast.compiled
    assert tree.freedoms(zero) == 2
    expected = tree.forward_dynamics(zero, zero, [1.0, 0, 0])
    assert np.isfinite(expected).all()
    assert_array_equal(fast.forward_dynamics(zero, zero, [1.0, 0, 0]), expected)
    q, qd = tree.project([0.7, -0.7, 0.7], [1.0, -1.0, 1.0])
    expected = tree.forward_dynamics(q, qd, [1.0, 0, 0])
    assert_allclose(fast.forward_dynamics(q, qd, [1.0, 0, 0]), expected, rtol=0, atol=1e-12 * abs(expected).max())


def test_choice():
    """Of Bricard's five constraints one is redundant where the loop is closed, and only there."""
    assert len(independent_constraints(bricard().model).chosen) == 4
    tree, _ = symbolic_slider_crank()
    assert len(independent_constraints(tree.model).chosen) == 2


def test_loops_that_cannot_be_closed():
    tree, values = symbolic_slider_crank()
    far = tree.subs(values)
    far.close("piston", to="base", at=(9, 0, 0), name="stop")
    with pytest.raises(sd.errors.LoopError, match="cannot be closed from here"):
        far.c_source("forward_dynamics")


@pytest.mark.parametrize(
    ("mechanism", "independent", "start"),
    [
        (symbolic_slider_crank, ["crank"], [0.8, -1.1, 1.5]),
        (symbolic_five_bar, ["left", "right"], [1.9, -1.2, 1.1, 0.9]),
    ],
)
def test_closed_form_over_independent_coordinates(mechanism, independent, start):
    """Against the numbers of ``reduced``, which is checked by Lagrange's equation."""
    tree, values = mechanism()
    form, numeric = tree.symbolic(), tree.subs(values)
    found = form.reduced(*independent)
    q, qd = numeric.project(start, np.linspace(1.0, 2.0, tree.nv), hold=independent)
    expected = numeric.reduced(q, qd, independent)
    state = [*form.q, *form.qd, *values]
    numbers = [*q, *qd, *values.values()]
    for name in ("M", "C", "g", "Z", "Z_dot"):
        value = np.array(sp.lambdify(state, getattr(found, name))(*numbers), dtype=float)
        wanted = getattr(expected, name)
        assert_allclose(value.reshape(wanted.shape), wanted, rtol=0, atol=1e-12 * (1 + np.abs(wanted).max()))
    assert found.independent == expected.independent == tuple(independent)


def test_slider_crank_of_the_textbook():
    """Speeds of rod and piston: −r cos θ / (l cos β) and −r sin θ + r cos θ tan β, with l sin β = −r sin θ."""
    tree, values = symbolic_slider_crank()
    r, rod = list(values)[:2]
    form = tree.symbolic()
    Z = form.reduced("crank").Z
    theta, phi, x = form.q
    beta = sp.asin(-r * sp.sin(theta) / rod)
    closed = {phi: beta - theta, x: r * sp.cos(theta) + rod * sp.cos(beta)}
    expected = sp.Matrix([1, -r * sp.cos(theta) / (rod * sp.cos(beta)) - 1, 0])
    expected[2] = -r * sp.sin(theta) + r * sp.cos(theta) * sp.tan(beta)
    assert sp.simplify(Z.subs(closed) - expected) == sp.zeros(3, 1)


def test_freedoms_that_do_not_determine_the_others():
    tree, _ = symbolic_slider_crank()
    form = tree.symbolic()
    with pytest.raises(sd.errors.LoopError, match="leave 1 of 3 freedoms"):
        form.reduced("crank", "rod")
    with pytest.raises(sd.UnknownNameError, match="crnk"):
        form.reduced("crnk")


def test_payload_keeps_the_choice():
    """The choice does not depend on inertias, so the code of a structure is kept when a payload changes."""
    tree, _ = four_bar()
    before = independent_constraints(tree.model).chosen
    tree.attach(sd.Inertia.point(40.0, (0.3, 0, 0)), to="coupler", name="load")
    assert independent_constraints(tree.model).chosen == before
    assert len(before) == len(LENGTHS) - 2


def test_a_freedom_that_determines_the_others_but_at_a_dead_centre():
    """The neutral position of the slider-crank is one: the piston is at rest there while the crank turns."""
    tree, (q, qd) = slider_crank()
    form = tree.symbolic()
    closed, expected = form.reduced("piston"), tree.reduced(q, qd, ["piston"])
    values = dict(zip([*form.q, *form.qd], [*q, *qd], strict=True))
    found = [closed.M, closed.C, closed.g]
    assert_allclose([float(X[0].subs(values)) for X in found], [X.item() for X in expected[1:4]], rtol=1e-12)
    with pytest.raises(sd.LoopError, match="leave 1 of 3 freedoms"):
        form.reduced("piston", "crank")
