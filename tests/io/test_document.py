"""Expressions as text: they come back equal, and a text can neither run code nor take much time."""

import json
import signal

import pytest
import sympy
from hypothesis import assume, given
from hypothesis import strategies as st

import screwdyn as sd
from screwdyn.io.document import assumptions_of, expression_of, symbol_of, text_of

X, Y = sympy.symbols("x y")
LEAVES = st.one_of(
    st.sampled_from([X, Y, sympy.pi, sympy.E, sympy.Rational(1, 3)]),
    st.integers(-5, 5).map(sympy.Integer),
    st.floats(-10, 10, allow_subnormal=False).map(sympy.Float),
)


def grown(inner):
    one = st.sampled_from([sympy.sin, sympy.cos, sympy.atan, sympy.Abs, lambda x: x**2, lambda x: sympy.sqrt(x**2 + 1)])
    two = st.sampled_from([lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, sympy.atan2])
    return st.one_of(
        st.tuples(one, inner).map(lambda p: p[0](p[1])), st.tuples(two, inner, inner).map(lambda p: p[0](p[1], p[2]))
    )


@given(st.recursive(LEAVES, grown, max_leaves=8))
def test_an_expression_comes_back(expression):
    at = {X: 0.3, Y: -1.7}
    assume(sympy.N(expression.subs(at)).is_Float)  # atan2(0, 0) is not a number
    back = expression_of(text_of(expression), {})
    assert back.free_symbols == expression.free_symbols
    assert abs(sympy.N(back.subs(at)) - sympy.N(expression.subs(at))) <= 1e-12 * (1 + abs(sympy.N(expression.subs(at))))


@pytest.mark.parametrize("value", [0.1, 1e-300, 1 / 3, 123456789.123456789, 5e-324])
def test_floats_keep_all_digits(value):
    back = expression_of(text_of(X * sympy.Float(value)), {})
    assert float(back.coeff(X) if value != 1 else 1) == value


def test_symbols_keep_what_is_assumed_of_them():
    for symbol in (X, sympy.Symbol("L", positive=True), sympy.Symbol("n", integer=True, nonnegative=True)):
        assert symbol_of(symbol.name, assumptions_of(symbol)) == symbol
    L = sympy.Symbol("L", positive=True)
    assert expression_of("sqrt(L**2)", {"L": L}) == L
    assert assumptions_of(L) == {"positive": True}
    for wrong in ({"positive": True, "negative": True}, {"tall": True}):
        with pytest.raises(ValueError):
            symbol_of("x", wrong)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x +",
        "x.y",
        "x[0]",
        "lambda: 0",
        "[x]",
        "'x'",
        "True",
        "1j",
        "x if y else 0",
        "x < y",
        "f(x)",
        "sin(x, y)",
        "sin(x=1)",
        "atan2(x)",
        "__import__('os')",
        "sin",
        "x; y",
        "x := 3",
        "x // y",
        "x @ y",
        "~x",
        "1/0",
        "log(0)",
        "sqrt(-1)",
        "nan",
        "inf*x",
        "1e999",
        "9**9**9**9",
        "(((9**99)**99)**99)",
        "(1/7)**1000000",
        "2**-1000000",
        "exp(exp(exp(100)))",
        "9" * 5000,
        "x" * 200_000,
        "(" * 1000 + "x" + ")" * 1000,
        "-" * 50_000 + "x",
        "sin(" * 200 + "x" + ")" * 200,
        "x**" * 500 + "x",
        "\x00",
        "x\ny",
    ],
    ids=lambda text: text[:20],
)
def test_other_texts_are_refused(text):
    with pytest.raises(ValueError, match=r"\w"):
        expression_of(text, {})


@pytest.mark.slow
def test_long_sums_and_products_are_read():
    assert expression_of("x+" * 500 + "x", {}) == 501 * X
    assert expression_of("*".join(f"x{k}" for k in range(500)) + "*y/y", {}) == sympy.prod(sympy.symbols("x:500"))
    assert expression_of("x - (y - x) - y", {}) == 2 * X - 2 * Y


@pytest.mark.parametrize("name", ["lambda", "None", "sin", "a b", "\u00b5", "nan"])
def test_a_symbol_that_would_be_read_as_something_else_is_not_written(name):
    with pytest.raises(ValueError, match=f"the symbol '{name}' cannot be written; rename it"):
        text_of(X * sympy.Symbol(name, positive=True))


def test_a_greek_mu_is_written():
    mu = sympy.Symbol("\u03bc", positive=True)
    assert expression_of(text_of(2 * mu), {mu.name: mu}) == 2 * mu


def test_an_expression_that_cannot_be_read_again_is_not_written():
    nested = X
    for _ in range(150):
        nested = sympy.sin(nested)
    with pytest.raises(ValueError, match="too deeply"):
        text_of(nested)


@pytest.mark.slow
def test_a_closed_form_comes_back_exactly():
    """Of two links of a general shape, turned and moved by expressions."""
    a, h, m, n = sympy.symbols("a h m n", positive=True)
    alpha = sympy.Symbol("alpha", real=True)
    turned = sympy.rot_axis3(alpha) * sympy.rot_axis1(alpha / 2)
    place = turned.row_join(sympy.Matrix([a * sympy.cos(alpha), sympy.sqrt(a**2 + h**2), sympy.atan2(h, a)]))
    body = sd.Inertia(m * (1 + h / a) ** n, (a / 2, 0, h), (m * h**2, m * a**2, m * (a**2 + h**2)))
    tree = sd.KinematicTree()
    tree.attach(body, to="base", joint=sd.revolute("z"), name="one")
    home = place.col_join(sympy.Matrix([[0, 0, 0, 1]])).tolist()
    tree.attach(body, to="one", joint=sd.revolute("x", (0, 0, h)), at=home, name="two")
    assert sd.KinematicTree.from_json(tree.to_json()).to_json() == tree.to_json()
    forms = [*tree.symbolic().mass_matrix(), *tree.symbolic().gravity_vector()]
    symbols = {symbol.name: symbol for form in forms for symbol in form.free_symbols}
    for form in forms:
        assert expression_of(text_of(form), symbols) == form


@pytest.mark.parametrize(
    "text",
    [
        "cosh(tanh(y**2000)**(tan(x)**y))",
        "2**(10**9*log(3)/log(2))",
        "exp(10**9*log(3)/2)",
        "y**100",
        "(1 + sqrt(2))**2000",
        "tanh(" * 20 + "x" + ")" * 20,
        "cosh(cosh(cosh(" + "+".join(f"x{k}" for k in range(200)) + ")))",
        "log(cosh(sqrt(((x + atan(z))/z/(pi - cos(3 + log(y))))**2)))",
        "Abs(cosh(1/(1/(1/(1/(1/(x + y) + z) + a) + b) + c)))",
        "log(tanh((x + y + 1)*(z + w + 2)*(a + b + 3)*(c + d)))",
        "x**" * 20 + "x",
        "acos(0.3**atan2(atan(-1), 10**100))*(0.3 + E)**2",
        "exp(atan2(-1, tan(cosh(pi))))",
        "sqrt(atan2(E, tan(E)) + log(cosh(8)) + sqrt(3)*(7 + E))",
    ],
    ids=lambda text: text[:20],
)
@pytest.mark.parametrize("what", ["mass", "damping"])
def test_any_text_is_read_or_refused_within_a_second(text, what):
    document = json.loads(sd.robots.two_link().to_json())
    link = document["links"][0]
    (link["inertia"] if what == "mass" else link["joint"])[what] = text

    def late(*_):
        raise AssertionError(f"{text} takes longer than a second")

    former = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, 1.0)
    try:
        tree = sd.KinematicTree.from_json(json.dumps(document))
        print(tree, tree.mass)
    except sd.JSONError as error:
        assert what in str(error)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, former)
