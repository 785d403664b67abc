"""Requests by name, operation counts against published ones, and closed loops written out as operations."""

from math import pi
from pathlib import Path

import numpy as np
import pytest
import sympy as sp
from c_compiler import load, pointer
from mechanisms import LENGTHS, bricard, door, four_bar, moving_bricard, slider_crank
from numpy.testing import assert_allclose, assert_array_equal

import screwdyn as sd
from screwdyn import Inertia, KinematicTree, Link, ScrewdynError, revolute
from screwdyn.backends.tape.tape import Tape
from screwdyn.backends.tape.trace import Subject, constants, open_inertias, record
from screwdyn.forms.closed_loops import independent_constraints
from screwdyn.forms.requests import operations_of, requested
from screwdyn.physics.reductions import base_parameters
from screwdyn.physics.table import COLUMNS, MASS, PARENT
from screwdyn.testing import random_tree

LINKS = ("base", "rod", "rod:body", "tool")


@pytest.mark.parametrize(
    ("name", "link", "frame"),
    [
        ("jacobian:rod", "rod", None),
        ("jacobian:tool:body", "tool", "body"),
        ("jacobian:tool:LOCAL", "tool", "body"),
        ("jacobian:rod:body", "rod:body", None),
        ("jacobian:rod:body:com", "rod:body", "com"),
        ("forward_kinematics:tool", "tool", None),
        ("mass_matrix", None, None),
    ],
)
def test_what_names_stand_for(name, link, frame):
    request = requested(name, LINKS)
    assert (request.entry.name, request.link, request.frame) == (name.split(":")[0], link, frame)


@pytest.mark.parametrize(
    ("name", "kind", "match"),
    [
        ("jacobian:tool:foo", sd.ShapeError, "frame must be 'com', 'body', 'base' or 'mixed'; got 'foo'"),
        ("jacobian:tol:body", sd.UnknownNameError, "no link 'tol'; did you mean 'tool'"),
        ("jacobian:tol:foo", sd.UnknownNameError, "no link 'tol:foo'"),
        ("jacobian", sd.ScrewdynError, "write 'jacobian:<link>' or, with a frame, 'jacobian:<link>:body'"),
        ("jacobian:body", sd.ScrewdynError, "is a quantity of a link; write 'jacobian:<link>'"),
        ("contribution", sd.ScrewdynError, "write 'contribution:<link>'$"),
        ("forward_kinematics:tool:body", sd.ScrewdynError, "has no frame; write 'forward_kinematics:tool'"),
        ("mass_matrix:tool", sd.ScrewdynError, "of the whole tree"),
        ("mass_matriks", sd.ScrewdynError, "did you mean 'mass_matrix'"),
    ],
)
def test_errors_say_how(name, kind, match):
    with pytest.raises(kind, match=match):
        requested(name, LINKS)


MODEL = ("mass_matrix", "coriolis_matrix", "gravity_vector")
GRAVITY_Z = (-1, 2)  # where a table holds gravity along z

# Standard inertial parameters in the order of a row: M, MX, MY, MZ, XX, XY, XZ, YY, YZ, ZZ.
BASE_PARAMETERS = {0: (9,)} | {row: (1, 2, 4, 5, 6, 8, 9) for row in range(1, 6)}


def beats(count, mul, add):
    return count["mul"] <= mul and count["add"] <= add


def parametric_count(tree, functions, table):
    """Operations with symbolic inertias; operations on parameters alone are not counted."""
    tape = Tape()
    subject = Subject(table(tree.model.table, tape))
    outputs = [x for name in functions for y in record(tape, name, subject) for x in y.ravel()]
    return tape.count(outputs, lambda name: name[0] in ("inertia", "length", "gravity"))


def test_puma_560_by_its_numbers():
    puma = sd.robots.puma560()
    assert beats(puma.operation_count(*MODEL), 500, 345)
    assert beats(puma.operation_count("inverse_dynamics"), 180, 145)
    assert beats(puma.operation_count("forward_dynamics"), 345, 260)


def test_puma_560_with_ten_open_inertial_parameters_a_link():
    """The reference counts for inertias that are not zero hold even if none is zero."""
    puma = sd.robots.puma560()

    def table(rows, tape):
        return base_parameters(open_inertias(rows, tape))

    assert beats(parametric_count(puma, MODEL, table), 816, 662)
    assert beats(parametric_count(puma, ["inverse_dynamics"], table), 298, 283)


def test_puma_560_with_its_nonzero_inertial_parameters_open():
    """Without base parameters: the parameters of Corke's table."""

    def table(rows, tape):
        opened = constants(rows)
        for row, k in np.argwhere(rows[:-1, MASS:PARENT]):
            opened[row, MASS + k] = tape.input(("inertia", (row, k)))
        return opened

    puma = sd.robots.puma560()
    assert beats(parametric_count(puma, MODEL, table), 816, 662)
    assert beats(parametric_count(puma, ["inverse_dynamics"], table), 298, 283)


def opened_puma():
    """PUMA 560 with a symbol for each of the ten inertial numbers of every link."""
    puma, tree = sd.robots.puma560(), KinematicTree()
    for row, name in enumerate(puma.links[1:]):
        m, x, y, z = sp.symbols(f"m{row} x{row} y{row} z{row}")
        tensor = sp.Matrix(3, 3, lambda i, j, row=row: sp.Symbol(f"I{row}{min(i, j)}{max(i, j)}"))
        body = Link(name, Inertia.effective(m, (x, y, z), np.array(tensor)))
        edge = puma.graph.edges[puma.parent(name), name]
        tree.attach(body, to=tree.links[-1], joint=edge["joint"], at=edge["home"])
    return tree


def test_symbols_count_as_numbers_do():
    puma = opened_puma()
    assert beats(puma.operation_count(*MODEL), 816, 662)
    assert beats(puma.operation_count("inverse_dynamics"), 298, 283)
    loose = KinematicTree()
    loose.attach(Link("a", Inertia.point(sp.Symbol("m"))), to="base", joint=revolute())
    with pytest.raises(sd.SingularAttachmentError):
        loose.operation_count("forward_dynamics")


def rx90():
    """Stäubli RX-90 in modified DH: W. Khalil, E. Dombre, Modeling, Identification and Control of Robots, 2002."""
    rows = [{"alpha": alpha} for alpha in (0, pi / 2, 0, -pi / 2, pi / 2, -pi / 2)]
    rows[2] |= {"a": 0.45}
    rows[3] |= {"d": 0.45}
    return KinematicTree.from_dh(rows, "modified")


def with_base_parameters(rows, tape):
    """Geometry and gravity by name where they are not zero, and one input for each base parameter."""
    table = constants(rows)
    for row, k in np.argwhere(rows[:-1, 9:12]):
        table[row, 9 + k] = np.sign(rows[row, 9 + k]) * tape.input(("length", (row, k)))
    table[GRAVITY_Z] = -tape.input(("gravity", 0))
    table[:, MASS:PARENT] = 0.0
    for row, kept in BASE_PARAMETERS.items():
        for k in kept:
            table[row, MASS + k] = tape.input(("inertia", (row, k)))
    return table


def inverse_dynamics_regressor(tree, states):
    """Joint forces of unit standard parameters at many states, (states * nv, 10 nv)."""
    tape = Tape()
    n = tree.nv
    (outputs,) = record(tape, "inverse_dynamics", Subject(open_inertias(tree.model.table, tape)))
    columns = []
    for unit in np.eye(10 * n).reshape(10 * n, n, 10):
        values = {("inertia", at): x for at, x in np.ndenumerate(unit)}
        values |= {(group, i): states[g, i] for g, group in enumerate(("q", "qd", "qdd")) for i in range(n)}
        columns.append([x + np.zeros(states.shape[-1]) for x in tape.evaluate(outputs, values, np)])
    return np.array(columns).reshape(10 * n, -1).T


def test_the_base_parameters_of_the_rx_90_are_a_base():
    """Their 36 columns of the regressor are independent and span those of all 60 standard parameters."""
    tree = rx90()
    assert tree.model.table.shape == (7, COLUMNS)
    states = np.random.default_rng(0).uniform(-2, 2, (3, 6, 60))
    Y = inverse_dynamics_regressor(tree, states)
    kept = [10 * row + k for row, which in BASE_PARAMETERS.items() for k in which]
    assert len(kept) == 36
    for columns in (Y[:, kept], Y):
        s = np.linalg.svd(columns, compute_uv=False)
        assert (s > 1e-10 * s[0]).sum() == 36
        assert s[35] > 1e-3 * s[0]


def test_rx_90_with_base_parameters():
    """Published: 253/238 (SYMORO), 247/228. The count is printed in docs/mathematics.md §4."""
    count = parametric_count(rx90(), ["inverse_dynamics"], with_base_parameters)
    assert beats(count, 247, 228)
    page = (Path(__file__).parents[2] / "docs/mathematics.md").read_text(encoding="utf-8")
    assert f"| RX-90, 36 symbolic base parameters | | {count['mul']} / {count['add']} | |" in page


def planar(n):
    tree = KinematicTree(gravity=(0, -9.81, 0))
    for i in range(n):
        body = Link(f"link{i + 1}", Inertia(1.0 + i, (0.3, 0.1, 0.2), (0.1, 0.2, 0.25)))
        tree.attach(body, to=tree.links[-1], joint=revolute("z"), at=(0.5 if i else 0, 0, 0))
    return tree


def test_a_planar_arm_needs_three_of_six_dimensions_only():
    """Operations out of the plane are omitted: an arm with general axes takes several times as many.

    A screw system of order λ = 3 halves every vector and quarters every matrix of the general λ = 6.
    """
    functions = (*MODEL, "inverse_dynamics")
    flat = planar(3).operation_count(*functions)
    spatial = random_tree(np.random.default_rng(0), 3, ["revolute"], frames=0)
    spatial = spatial.operation_count(*functions)
    assert 3 * (flat["mul"] + flat["add"]) < spatial["mul"] + spatial["add"]
    # M of a planar arm: three cosines of differences at most, whose products with lengths are numbers.
    assert planar(2).operation_count("mass_matrix")["sincos"] <= 2
    three = planar(3).operation_count("mass_matrix")
    assert three["mul"] + three["add"] <= 30


def test_functions_together_cost_no_more_than_apart():
    tree = sd.robots.stanford()
    together = tree.operation_count(*MODEL)
    apart = [tree.operation_count(name) for name in MODEL]
    for kind in ("mul", "add", "sincos"):
        assert max(count[kind] for count in apart) <= together[kind] < sum(count[kind] for count in apart)
    assert tree.operation_count("mass_matrix", "mass_matrix") == tree.operation_count("mass_matrix")


def test_a_fixed_tree_costs_nothing():
    tree = KinematicTree()
    tree.attach(Link("table", Inertia(3.0)), to="base")
    assert tree.operation_count(*MODEL) == {"mul": 0, "add": 0, "div": 0, "sincos": 0}


def test_refusals():
    tree = sd.robots.two_link()
    with pytest.raises(ScrewdynError, match="did you mean 'mass_matrix'"):
        tree.operation_count("massmatrix")
    with pytest.raises(ScrewdynError, match="no function 'x'"):
        tree.operation_count("x")
    with pytest.raises(ScrewdynError, match=r"no function .'mass_matrix'."):
        tree.operation_count(["mass_matrix"])
    with pytest.raises(ScrewdynError, match="at least one"):
        tree.operation_count()


def test_operations_of_any_function_of_vectors():
    def function(q, qd):
        return np.array([q[0] * qd[1] + 3.0, q[0] * qd[1] - np.cos(q[1]), 0 * q[0]])

    assert operations_of(function, q=2, qd=2) == {"mul": 1, "add": 2, "div": 0, "sincos": 1}


def test_rounding_takes_no_operations():
    """0.1 + 0.2 − 0.3 is zero, 1.1 − 0.1 is one, and 0.1 · 3 is 0.3; a small number remains a number."""

    def function(q):
        rest = 0.1 + 0.2 - 0.3
        return np.array([q[0] + rest * q[1], (1.1 - 0.1) * q[1], 0.1 * 3 * q[0] - 0.3 * q[0], 1e-9 * q[1]])

    assert 0.1 + 0.2 - 0.3 != 0 and 0.1 * 3 != 0.3
    assert operations_of(function, q=2) == {"mul": 1, "add": 0, "div": 0, "sincos": 0}


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
    a, b = sp.symbols("a b", positive=True)
    tree = sd.KinematicTree(gravity=(0, -9, 0))

    def bar(length):
        return sd.Inertia.box(2, (length, 0, 0), com=(length / 2, 0, 0))

    tree.attach(bar(a), to="base", joint=sd.revolute("z"), name="left")
    tree.attach(bar(b), to="left", joint=sd.revolute("z"), at=(a, 0, 0), name="upper left")
    tree.attach(bar(a), to="base", joint=sd.revolute("z"), at=(sp.Rational(2, 5), 0, 0), name="right")
    tree.attach(bar(b), to="right", joint=sd.revolute("z"), at=(a, 0, 0), name="upper right")
    tree.close("upper right", to="upper left", joint=sd.revolute("z", (b, 0, 0)), name="pin")
    return tree, {a: 0.5, b: 1.0}


@pytest.mark.slow
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
    assert len(independent_constraints(bricard().model)[0]) == 4
    tree, _ = symbolic_slider_crank()
    assert len(independent_constraints(tree.model)[0]) == 2


def test_loops_that_cannot_be_closed():
    tree, values = symbolic_slider_crank()
    far = tree.subs(values)
    far.close("piston", to="base", at=(9, 0, 0), name="stop")
    with pytest.raises(sd.errors.LoopError, match="cannot be closed from here"):
        far.c_source("forward_dynamics")


@pytest.mark.slow
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
        value = np.array(sp.lambdify(state, getattr(found, name), cse=True)(*numbers), dtype=float)
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
    before = independent_constraints(tree.model)[0]
    tree.attach(sd.Inertia.point(40.0, (0.3, 0, 0)), to="coupler", name="load")
    assert independent_constraints(tree.model)[0] == before
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
