"""Numbers of a robot with symbols, in C: valid names of members, and values of expressions."""

import ctypes
import math

import pytest
import sympy as sp
from c_compiler import load

from screwdyn import ScrewdynError
from screwdyn.backends.closed_form import computed, member_names


def test_valid_c_names_are_kept():
    symbols = sp.symbols("m L_1 Theta x9")
    assert member_names(symbols) == dict(zip(symbols, ("m", "L_1", "Theta", "x9"), strict=True))


@pytest.mark.parametrize(
    ("name", "member"),
    [
        ("λ", "lamda"),
        ("Ω_1", "Omega_1"),
        ("ϕ", "phi"),
        ("ς", "sigma"),
        (r"\theta_{1}", "theta_1"),
        ("1x", "p_1x"),
        ("_", "p"),
        ("é", "e"),
        ("漢", "u6f22"),
        ("*/ int x; /*", "int_x"),
        ("__m", "m"),
        ("double", "double_0"),
        ("virtual", "virtual_0"),
        ("NAN", "NAN_0"),
        ("M_PI", "M_PI_0"),
        ("ARM_NV", "ARM_NV_0"),
    ],
)
def test_other_names_are_made_valid(name, member):
    assert list(member_names([sp.Symbol(name)], ["ARM_NV"]).values()) == [member]


@pytest.mark.parametrize("names", [("a b", "a-b", "a_b"), ("a_b_0", "a b", "a-b"), ("int", "int_0", "INT"), ("é", "e")])
def test_no_two_members_have_the_same_name(names):
    members = list(member_names(map(sp.Symbol, names)).values())
    assert len(set(members)) == len(names)


def test_two_symbols_of_one_name_are_refused():
    with pytest.raises(ScrewdynError, match="m is the name of two symbols"):
        member_names([sp.Symbol("m"), sp.Symbol("m", positive=True)])


x, y = sp.symbols("x y")
EXPRESSIONS = [
    x,
    2 * x,
    -x / 3,
    x * y**2,
    x**3 - y**-2,
    (x + y) ** 2 / (x - y) ** 3,
    sp.sqrt(x),
    x ** sp.Rational(-3, 2),
    x**y,
    sp.exp(-x) * sp.log(y),
    sp.sin(x) * sp.cos(y) + sp.tan(x * y),
    sp.atan2(x, y) + sp.asin(x / 10) + sp.acos(y / 10),
    sp.cosh(x) - sp.tanh(y),
    sp.Max(x, y, 1) + sp.Min(x, y),
    sp.Abs(x - y) + sp.sign(x - y),
    sp.Piecewise((x, x > y), (2 * y, True)),
    sp.pi * x + sp.E * y + sp.sqrt(2),
    0.1 * x + 1e300 * y,
    10**30 * x + sp.Rational(10**25, 3) * y,
    sp.floor(x) + sp.ceiling(y),
]


@pytest.mark.parametrize("language", ["c", "cpp"])
def test_values(tmp_path, language):
    """Separately, and together with common subexpressions."""
    lines, texts = computed(EXPRESSIONS, member_names([x, y]), "values")
    head = 'extern "C" ' if language == "cpp" else ""
    text = ["#include <math.h>", "typedef struct { double x; double y; } parameters;"]
    for name, here, values in [
        ("together", lines, list(texts.values())),
        *(
            (f"alone{i}", here, list(found.values()))
            for i, e in enumerate(EXPRESSIONS)
            for here, found in [computed([e], member_names([x, y]), "values")]
        ),
    ]:
        signature = f"{head}void {name}(const parameters *values, double *out)"
        written = [f"out[{i}] = {value};" for i, value in enumerate(values)]
        text += [f"{signature};", signature, "{", *here, *written, "}"]
    library = load("\n".join([*text, ""]), tmp_path, language)
    given = (ctypes.c_double * 2)(2.75, 1.625)
    expected = [float(e.subs({x: 2.75, y: 1.625})) for e in EXPRESSIONS]
    out = (ctypes.c_double * len(EXPRESSIONS))()
    library.together(given, out)
    assert list(out) == pytest.approx(expected, rel=1e-15)
    for i, value in enumerate(expected):
        getattr(library, f"alone{i}")(given, out)
        assert math.isclose(out[0], value, rel_tol=1e-15)


def test_shared_parts_are_computed_once():
    lines, texts = computed([x * sp.sin(y), y * sp.sin(y) ** 2], member_names([x, y]), "p")
    assert lines == ["const double c0 = sin(p->y);"]
    assert list(texts.values()) == ["c0*p->x", "(c0*c0)*p->y"]


@pytest.mark.parametrize(
    ("expression", "name"),
    [(sp.Function("f")(x), "f"), (sp.Mod(x, y), "Mod"), (sp.zeta(x), "zeta"), (sp.I * x, "ImaginaryUnit")],
)
def test_what_c_has_no_function_for_is_refused(expression, name):
    with pytest.raises(ScrewdynError, match=f"C has no function for {name}, which"):
        computed([expression], member_names([x, y]), "values")


def test_numbers_that_are_not_finite_are_refused():
    with pytest.raises(ScrewdynError, match="not finite"):
        computed([sp.Integer(10) ** 400 * x], member_names([x]), "values")
