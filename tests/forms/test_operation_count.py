"""Operation counts against published ones (docs/mathematics.md §4; mul/add, sine and cosine apart)."""

from math import pi
from pathlib import Path

import numpy as np
import pytest
import sympy as sp

import screwdyn as sd
from screwdyn import Inertia, KinematicTree, Link, ScrewdynError, revolute
from screwdyn.backends.tape.tape import Tape
from screwdyn.backends.tape.trace import Subject, constants, open_inertias, record
from screwdyn.forms.requests import operations_of
from screwdyn.physics.reductions import base_parameters
from screwdyn.physics.table import COLUMNS, MASS, PARENT
from screwdyn.testing import random_tree

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
        columns.append([x + np.zeros(states.shape[-1]) for x in tape.evaluate(outputs, values, np.sin, np.cos)])
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
