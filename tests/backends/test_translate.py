"""What is not in the dialect of the recursions is refused, by an error that names the line."""

import linecache

import pytest

from screwdyn.backends.kernels.written import CArray, DialectError, Reals, Translator
from screwdyn.physics import table

ARGUMENTS = {"x": "real", "n": "integer", "a": CArray("real", 1), "v": Reals(3)}


def translated(*lines, arguments=ARGUMENTS, **names):
    """The C of a function with these lines, in which names have a meaning."""
    source, to = f"def f({', '.join(arguments)}):\n    " + "\n    ".join(lines), Translator()
    to.function(function(source, **names), tuple(arguments.values()))
    return to.text()


def function(source, **names):
    """The function f of a source that is in no file."""
    linecache.cache["<f>"] = len(source), None, source.splitlines(keepends=True), "<f>"
    made = {"__name__": "m", **names}
    exec(compile(source, "<f>", "exec"), made)
    return made["f"]


def test_loops_choices_tuples_and_entries_are_in_the_dialect():
    text = translated(
        "s, (p, _, r) = 0, v",
        "for i in range(n - 1, -1, -1):",
        "    if i > 2 and a[i] != 0.0:",
        "        continue",
        "    s += abs(a[i]) if x > 0 else max(x, p)",
        "while n > 0:",
        "    n -= 1",
        "a[0] = a.shape[0] * s",
        "return (r, s, -x / 2)",
    )
    assert "for (i = n - 1; i > -1; i += -1) {" in text
    assert "s += a.data" not in text and "real x, p, r, s;" not in text
    assert "a.data[0] = (real)a.shape[0] * s;" in text


def test_a_value_on_every_path_is_in_the_dialect():
    text = translated(
        "for i in range(n):",
        "    if a[i] > 0.0:",
        "        continue",
        "    elif x > 0.0:",
        "        y = a[i]",
        "    else:",
        "        y = -a[i]",
        "    x += y",
        "return x + int(bool(x))",
    )
    assert "x += y;" in text and "(integer)(x != 0)" in text


def test_signs_and_quotients_are_those_of_python():
    text = translated("y = n", "y /= 2", "return - -x * y")
    assert "real y;" in text and "y /= (real)(2);" in text
    assert "return -(-x) * y;" in text


def test_constants_of_one_name_are_one_if_they_have_one_kind():
    to = Translator()
    assert to.constant("ONE", 1) == ("ONE", "integer")
    assert to.constant("ONE", 1.0) == ("ONE_", "real")


def test_records_are_read_and_written_by_rows():
    lines = ("link = table.load(A, i, table.Place)", "table.add_to(A, i, link.com, 3)", "return link.rows")
    text = translated(*lines, arguments={"A": CArray("real", 2), "i": "integer"}, table=table)
    assert "x.row = (integer)A.data[i * A.shape[1] + k + 0];" in text and "integer m_f(" in text
    assert "x.pose.R.x8 = A.data[i * A.shape[1] + k + 10];" in text
    assert "A.data[i * A.shape[1] + k + 2] += x.x2;" in text and "add_to_Numbers3(A, i, link.com, 3);" in text


def test_constants_of_modules_are_known():
    assert "#define COLUMNS 27" in translated("return x + table.COLUMNS", table=table)


REFUSED = {
    "return a[1:n]": "an expression Slice",
    "return a[-1]": "a negative index",
    "return a[n, n]": "an entry of a Array1",
    "return [x, x]": "an expression List",
    "return x ** 2": "the operator Pow",
    "return n // 2": "the operator FloorDiv",
    "return 2.0 * v": "real and Numbers3 for one value",
    "return 0.0 < x < 1.0": "a comparison of other kinds",
    "return x and 2.0": "a choice of values by 'and' or 'or'",
    "return min(x, x)": "a call of <built-in function min>",
    "return max(x, x, x)": "3 values for 2",
    "return abs(x=x)": "a call of something unknown, or with keywords or stars",
    "return f(x, n, a, v)": "f calls itself",
    "return v.w": "an attribute w of a Numbers3",
    "return y": "y has no value yet, or on some paths only",
    "return x + 10000000000000000000000": "the constant 10000000000000000000000, which C does not have",
    "return x + 1e999": "the constant inf, which C does not have",
    "double = x": "the name double, which means something else in C",
    "x += a[1.0]": "an index that is no integer",
    "return v[3]": "an entry 3 of a Numbers3",
    "v += v": "+= of a Numbers3 and a Numbers3",
    "return 'abc'": "the constant 'abc'",
    "return": "a return without a value",
    "y = z = x": "a chain of assignments",
    "y, z = v": "2 values for 3",
    "x = a": "real and Array1 for one value",
    "f = lambda y: y": "an expression Lambda",
    "assert x": "a statement Assert",
    "for y in a: x += y": "a loop over something else than a range",
    "for i in range(n): n -= i": "an else of a loop, or a loop that changes its range",
    "for i in range(5, 0, n): x += i": "a range whose step is no number",
    "n += x": "the argument n becomes a real",
    "n /= 2": "the argument n becomes a real",
}


@pytest.mark.parametrize(("line", "reason"), REFUSED.items())
def test_what_is_not_in_the_dialect_is_an_error_that_names_the_line(line, reason):
    with pytest.raises(DialectError) as caught:
        translated("s = x", line)
    assert str(caught.value).startswith("<f>, line 3: ") and str(caught.value).endswith(f": {reason}")


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (("while n > 0:", "    n -= 1", "else:", "    n = 5"), "an else of a loop"),
        (("for i in range(n):", "    x += i", "else:", "    x = 5.0"), "an else of a loop, or a loop that changes its"),
        (("for i in range(n):", "    x += i", "return i"), "i is read after its loop"),
        (("for i in range(n):", "    x += i", "if x > 5.0:", "    i = 0", "return i"), "i is read after its loop"),
        (("i = 0", "while i < n:", "    for i in range(n):", "        x += i"), "i is read after its loop"),
        (("i = 0", "while x < 5.0:", "    x += i", "    for i in range(n):", "        x += i"), "i is read after its"),
        (("if x > 0:", "    return x"), "^<f>, line 1: f: a result on some paths only"),
        (("if x > 0:", "    y = x", "return y"), "^<f>, line 4: return y: y has no value yet, or on some paths only"),
        (("for i in range(n):", "    y = x", "return y"), "y has no value yet, or on some paths only"),
        (("try:", "    y = x", "finally:", "    pass"), "^<f>, line 2: try:: a statement Try$"),
    ],
)
def test_loops_that_c_would_end_otherwise_are_refused(lines, reason):
    with pytest.raises(DialectError, match=reason):
        translated(*lines)


def squared(x):
    """A function in a file."""
    return x**2


def test_the_error_names_the_file_of_a_function_that_is_called():
    f = function("def f(x):\n    return 2.0 * squared(x)", squared=squared)
    with pytest.raises(DialectError) as caught:
        Translator().function(f, ("real",))
    line = squared.__code__.co_firstlineno + 2
    assert str(caught.value) == f"{__file__}, line {line}: return x ** 2: the operator Pow"
