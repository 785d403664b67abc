"""C source of robots with symbols: a parameter struct, compared with the tree with values."""

import ctypes
import re

import numpy as np
import pytest
import sympy as sp
from c_compiler import load, pointer
from cases import FUNCTIONS, close, norm

import screwdyn as sd
from screwdyn import Inertia, KinematicTree, Link, ScrewdynError, prismatic, revolute

m, length, alpha, g = sp.symbols("m length alpha g")
VALUES = {m: 1.7, length: 0.6, alpha: 0.4, g: 9.81, sp.Symbol("λ"): 0.3, sp.Symbol("int"): 2.5, sp.Symbol("NV"): 0.2}


def arm():
    """Symbols, expressions of them and plain numbers in masses, inertias, poses, axes, a pitch and gravity."""
    twist, load, wide = sp.symbols("λ int NV")
    rod = Inertia(m, (length / 2, 0, 0), (m * wide**2, m * length**2 / 12, m * length**2 / 10))
    tree = KinematicTree(gravity=(0, sp.Rational(1, 10), -g))
    tree.attach(Link("rod", rod), to="base", joint=revolute((0, sp.sin(alpha), sp.cos(alpha))))
    offset = (sp.sqrt(length**2 + wide**2), 0.1, 0)
    tree.attach(Link("slide", Inertia(2 * load, (0.1, 0, 0))), to="rod", joint=prismatic("x"), at=offset)
    screw = sd.helical("z", twist / sp.pi)
    tree.attach(Link("screw", Inertia(1.5, (0.1, 0.2, 0.3), (0.1, 0.1, 0.1))), to="slide", joint=screw, at=(0, wide, 0))
    tree.attach(Link("box", Inertia(load, (0, 0, wide))), to="screw")
    return tree


def parameters(text, values):
    """The struct of the text with the values of the symbols, which comments name if a member has another name."""
    declared = re.search(r"typedef struct \{\n(.*?)\n\} (\w+);", text, re.DOTALL)[1]
    members = re.findall(r'    double (\w+);(?: /\* "(.*)" \*/)?', declared)
    named = {symbol.name: value for symbol, value in values.items()}
    entries = [named[(symbol or member).encode().decode("unicode_escape")] for member, symbol in members]
    return (ctypes.c_double * len(entries))(*entries)


def called(function, inputs, given, shape, *bits):
    out = np.full(shape, np.nan)
    function(*map(pointer, inputs), given, *map(ctypes.c_ulong, bits), pointer(out))
    return out


def shape(tree, name):
    return (tree.nv,) * (2 if name in ("mass_matrix", "coriolis_matrix") else 1)


@pytest.mark.slow
@pytest.mark.parametrize("language", ["c", "cpp"])
def test_numbers_of_a_robot_with_symbols(tmp_path, language):
    tree = arm()
    text = tree.c_source(FUNCTIONS, prefix="arm_")
    library, given, bound = load(text, tmp_path, language), parameters(text, VALUES), tree.subs(VALUES)
    for state in np.random.default_rng(0).uniform(-2, 2, (5, 4, tree.nv)):
        at = dict(zip(("q", "qd", "qdd", "tau"), state, strict=True))
        for name, arguments in FUNCTIONS.items():
            inputs = [at[x] for x in arguments]
            expected = getattr(bound, name)(*inputs)
            actual = called(getattr(library, f"arm_{name}"), inputs, given, expected.shape)
            close(actual, expected, 100 * norm(bound.mass_matrix(at["q"])), 1e-13)


def test_other_values_need_no_other_text(tmp_path):
    tree = arm()
    library = load(tree.c_source(["mass_matrix"]), tmp_path)
    rng, q = np.random.default_rng(1), np.array([0.3, -0.2, 0.5])
    for _ in range(3):
        values = {symbol: x * rng.uniform(0.9, 1.1) for symbol, x in VALUES.items()}
        given = parameters(tree.c_source(["mass_matrix"]), values)
        expected = tree.subs(values).mass_matrix(q)
        close(called(library.mass_matrix, [q], given, (3, 3)), expected, norm(expected), 1e-14)


def test_optional_links_may_hold_symbols(tmp_path):
    tree = arm()
    text = tree.c_source(FUNCTIONS, optional=["box"])
    library, given = load(text, tmp_path), parameters(text, VALUES)
    bound = tree.subs(VALUES)
    state = dict(zip(("q", "qd", "qdd", "tau"), np.random.default_rng(2).uniform(-1, 1, (4, 3)), strict=True))
    for carried in (1, 0):
        if not carried:
            bound.detach("box")
        for name, arguments in FUNCTIONS.items():
            inputs = [state[x] for x in arguments]
            expected = getattr(bound, name)(*inputs)
            actual = called(getattr(library, name), inputs, given, expected.shape, carried)
            close(actual, expected, 100 * norm(bound.mass_matrix(state["q"])), 1e-13)


def test_what_the_text_says():
    text = arm().c_source(["gravity_vector"], prefix="arm_")
    assert "#define ARM_NV 3\n" in text
    assert '    double lamda; /* "\\u03bb" */\n' in text and re.search(r'    double int_\d; /\* "int" \*/\n', text)
    assert "    double length;\n" in text and "    double NV;\n" in text
    assert "} arm_parameters;\n" in text
    assert "    const double q[ARM_NQ],\n    const arm_parameters *values,\n    double g[ARM_NV]);" in text
    assert 'Gravity, in the base frame: (0.0, 0.1, "-g") m/s^2.' in text


def test_members_do_not_bear_the_names_of_macros(tmp_path):
    tree = arm()
    text = tree.c_source(["mass_matrix"])
    assert '    double NV_0; /* "NV" */\n' in text
    load(text, tmp_path)


def test_robots_without_symbols_have_no_parameters():
    tree = KinematicTree(gravity=(0, 0, -sp.Rational(981, 100)))
    tree.attach(Inertia(sp.sqrt(2), (sp.pi / 10, 0, 0), (1, 1, 1)), to="base", joint=revolute("y"))
    text = tree.c_source(["gravity_vector"])
    assert "parameters" not in text and "values" not in text


def test_the_text_is_the_same_every_time():
    assert arm().c_source(FUNCTIONS) == arm().c_source(FUNCTIONS)


def test_refusals():
    tree = KinematicTree()
    tree.attach(Inertia(sp.Function("f")(m)), to="base", joint=prismatic("z"))
    with pytest.raises(ScrewdynError, match="C has no function for f"):
        tree.c_source(["mass_matrix"])
    tree.attach(Inertia(sp.Symbol("m", positive=True)), to="base", joint=prismatic("x"))
    with pytest.raises(ScrewdynError, match="m is the name of two symbols"):
        tree.c_source(["mass_matrix"])
