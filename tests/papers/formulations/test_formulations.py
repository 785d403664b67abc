"""All formulations against the recursions of the library, which none of them uses."""

import inspect
import math

import numpy as np
import pytest
import sympy as sp
from closed_forms import evaluated
from numpy.testing import assert_allclose

import screwdyn as sd
from screwdyn import formulations, robots
from screwdyn.backends.tape.tape import Tape
from screwdyn.backends.tape.trace import inputs
from screwdyn.testing import random_tree

NAMES = formulations.__all__
CHRISTOFFEL = ["kronecker", "lagrange_euler", "lagrangian", "progressive"]
JOINTS = ("revolute", "prismatic", "helical", "universal", "cylindrical", "fixed")


def state_of(tree, seed=0):
    return np.random.default_rng(seed).uniform(-2, 2, (3, tree.nv))


def equal(actual, expected):
    assert_allclose(actual, expected, rtol=1e-10, atol=1e-10)


def check(tree, names, seed=0):
    q, qd, qdd = state_of(tree, seed)
    for name in names:
        witness = getattr(formulations, name)(tree)
        assert witness.coordinates == tree.coordinates
        equal(witness.mass_matrix(q), tree.mass_matrix(q))
        equal(witness.velocity_product(q, qd), tree.velocity_product(q, qd))
        equal(witness.gravity_vector(q), tree.gravity_vector(q))
        equal(witness.inverse_dynamics(q, qd, qdd), tree.inverse_dynamics(q, qd, qdd))
        if name in CHRISTOFFEL:
            equal(witness.coriolis_matrix(q, qd), tree.coriolis_matrix(q, qd))


@pytest.mark.parametrize("seed", range(3))
def test_random_trees_of_revolute_joints(seed):
    tree = random_tree(np.random.default_rng(seed), 4, joints=["revolute"])
    check(tree, NAMES, seed)


@pytest.mark.parametrize("seed", range(3))
def test_random_trees_of_all_joints_that_are_covered(seed):
    tree = random_tree(np.random.default_rng(seed), 5, joints=JOINTS)
    check(tree, [name for name in NAMES if name != "generalized_dalembert"], seed)


@pytest.mark.parametrize("make", [robots.stanford, robots.truc_3r], ids=lambda make: make.__name__)
def test_arms_of_the_papers(make):
    tree = make()
    names = [name for name in NAMES if make is robots.truc_3r or name != "generalized_dalembert"]
    check(tree, names)


@pytest.mark.parametrize("name", NAMES)
def test_a_tree_without_freedoms(name):
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.point(1), to="base")
    witness = getattr(formulations, name)(tree)
    assert witness.inverse_dynamics([], [], []).shape == (0,)
    assert witness.mass_matrix([]).shape == (0, 0)


@pytest.mark.parametrize("name", NAMES)
def test_traced_scalars(name):
    tree = robots.two_link()
    state = state_of(tree)
    tape, groups = Tape(), ("q", "qd", "qdd")
    tau = getattr(formulations, name)(tree).inverse_dynamics(*(inputs(tape, group, range(2)) for group in groups))
    values = {(group, i): state[k, i] for k, group in enumerate(groups) for i in range(2)}
    equal(tape.evaluate(list(tau), values), tree.inverse_dynamics(*state))


@pytest.mark.parametrize("name", NAMES)
def test_symbols(name):
    length, mass = sp.symbols("l m", positive=True)
    inertia = sd.Inertia(mass, (-length / 2, 0, 0), (0, mass * length**2 / 12, mass * length**2 / 12))
    rows = [{"a": length, "inertia": inertia, "joint": f"theta{i}"} for i in (1, 2)]
    tree = sd.KinematicTree.from_dh(rows, gravity=(0, -9.81, 0))
    state = sp.symbols("q:2"), sp.symbols("qd:2"), sp.symbols("qdd:2")
    tau = getattr(formulations, name)(tree).inverse_dynamics(*state)
    values = {length: 0.7, mass: 1.3}
    numeric = tree.subs(values)
    numbers = state_of(numeric)
    at = values | dict(zip([x for group in state for x in group], numbers.ravel(), strict=True))
    equal(evaluated(([], sp.Matrix(tau)), at, 2), numeric.inverse_dynamics(*numbers))
    # A numeric state of a tree with symbols
    tau = getattr(formulations, name)(tree).inverse_dynamics(*numbers)
    equal(evaluated(([], sp.Matrix(tau)), values, 2), numeric.inverse_dynamics(*numbers))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kronecker", "lagrangian", "progressive"])
def test_closed_forms_of_puma_share_intermediates(name):
    """C q̇: with products multiplied out, lagrangian has 5495 different parts, progressive 2653, which take a minute."""
    tree, symbols = robots.puma560(), np.reshape(sp.symbols("q:6 qd:6"), (2, 6))
    state = state_of(tree)[:2]
    product = getattr(formulations, name)(tree).velocity_product(*symbols)
    values = dict(zip(symbols.flat, state.flat, strict=True))
    equal(evaluated(sp.Matrix(product), values, 6), tree.velocity_product(*state))
    parts, waiting = set(), [*product]
    while waiting:
        if (part := waiting.pop()) not in parts:
            parts.add(part)
            waiting += part.args
    assert len(parts) < (2400 if name == "progressive" else 3500)


def test_closed_forms_have_no_factors_of_one():
    M = formulations.newton_euler(robots.two_link()).mass_matrix(sp.symbols("q:2"))
    assert str(M[0, 0]) == "(cos(q1) + 1/2)*cos(q1) + sin(q1)**2 + cos(q1)/2 + 0.666666666666667"


# Why the source stops at joints of several freedoms and at loops
SCOPES = {
    "denoc": "Bhangale, section 2, has an open-loop robot with one displacement",
    "generalized_dalembert": "Fu, section 3.4, has arms with rotary joints",
    "kronecker": "Truc, Eqs. 15 and 16, has one chain of poses",
    "lagrange_euler": "Fu, section 3.2, has a chain of links with one variable",
    "lagrangian": "the lecture, Eq. 35, has an open chain",
    "newton_euler": "Fu, section 3.3, has an open chain",
    "progressive": "Laus, Eq. 23, has an open chain .* leaves closed chains to future works",
}


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_covered_is_named_with_the_place_of_the_source(name):
    tree = robots.two_link()
    tree.attach(sd.Link("hand"), to="link2", joint=sd.spherical(name="wrist"))
    tree.attach(sd.Link("puck"), to="hand", joint=sd.planar(name="table"))
    with pytest.raises(sd.ScrewdynError, match=f"'wrist' is spherical, 'table' is planar: {SCOPES[name]}"):
        getattr(formulations, name)(tree)
    loop = robots.two_link()
    loop.close("link2", "base", sd.revolute("z"), name="bar")
    with pytest.raises(sd.LoopError, match=f"the forces in 'bar'; open the loops .*: {SCOPES[name]}"):
        getattr(formulations, name)(loop)


def test_d_alembert_s_equations_cover_revolute_joints_only():
    with pytest.raises(sd.ScrewdynError, match="GeneralizedDAlembert covers joints with revolute axes; 'b3' is prism"):
        formulations.generalized_dalembert(robots.stanford())


def test_wrong_states_are_refused_with_the_names_of_the_coordinates():
    witness = formulations.lagrange_euler(robots.two_link())
    with pytest.raises(
        sd.ShapeError, match=r"qd of one state must have an entry for each of theta1, theta2; got.*\(3,"
    ):
        witness.inverse_dynamics([0, 0], [0, 0, 0], [0, 0])
    with pytest.raises(sd.ShapeError, match="q has entries that are not finite"):
        witness.mass_matrix([0, math.nan])
    with pytest.raises(sd.ShapeError, match="q must be numbers"):
        witness.mass_matrix(["0", "1"])


@pytest.mark.parametrize("name", NAMES)
def test_each_formulation_is_short_enough_to_be_read_beside_its_source(name):
    assert len(inspect.getsourcelines(getattr(formulations, name))[0]) <= 130


def test_a_formulation_keeps_the_tree_that_it_was_made_from():
    tree = robots.two_link()
    witness = formulations.lagrangian(tree)
    before = tree.mass_matrix([0.1, 0.2])
    tree.attach(sd.Inertia.point(3), to="link2")
    equal(witness.mass_matrix([0.1, 0.2]), before)
