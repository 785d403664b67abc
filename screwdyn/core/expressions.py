"""Numbers that may be SymPy expressions.

Every number of a robot (a mass, a length, a pose, an axis) may be an expression. An array with expressions has dtype
object; all other arrays are float64. This module imports SymPy only if an expression is given.
"""

import itertools
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt

from screwdyn.core.errors import ShapeError, UnboundSymbolError, UnknownNameError
from screwdyn.core.types import Array

# Largest number of a robot in SI units: products of a few of them do not overflow.
LARGEST = 1e50
# Expressions with more terms when expanded are not expanded; those with more operations are not searched for sums of
# squares of sines and cosines: both would take seconds.
_MANY_TERMS, _MANY_OPERATIONS = 150, 60
_FLOAT64 = np.dtype(np.float64)  # found again by its identity


def is_expression(value: object) -> bool:
    """Whether a value is a SymPy expression."""
    return hasattr(value, "xreplace")


def is_number(value: Any) -> bool:
    """Whether a value has no free symbols."""
    return not getattr(value, "free_symbols", ())


def free_symbols(values: Iterable[Any]) -> set[Any]:
    """Free symbols of all entries of some arrays, numbers and expressions."""
    found: set[Any] = set()
    for value in values:
        for entry in value.flat if isinstance(value, np.ndarray) and value.dtype == object else (value,):
            found |= getattr(entry, "free_symbols", set())
    return found


def possible() -> bool:
    """Whether there can be expressions, which is the case after SymPy has been imported."""
    return "sympy" in sys.modules


def array(value: Any) -> Array:
    """A new array of float64, or of objects if an entry is an expression; TypeError or ValueError for other entries."""
    if type(value) is np.ndarray and value.dtype is _FLOAT64:
        return value.copy()
    given = _given(value)
    if given.dtype == object and possible() and any(map(is_expression, given.flat)):
        given = np.array([*map(_entry, given.flat)], dtype=object).reshape(given.shape)
        if any(map(is_expression, given.flat)):
            return given
    return np.array(_float64(given))


def real(value: Any) -> Array:
    """A float64 array of real numbers, possibly the given one; errors as for :func:`array`, and for expressions."""
    return value if type(value) is np.ndarray and value.dtype is _FLOAT64 else _float64(_given(value))


def _given(value: Any) -> npt.NDArray[Any]:
    """The value as an array; TypeError for strings, dates, complex numbers, masked arrays and None."""
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError("an array with a mask is not read")
    given = np.asarray(value)
    kind = given.dtype.kind
    if kind not in "biufO" or (kind == "O" and any(x is None or isinstance(x, str | bytes) for x in given.flat)):
        raise TypeError("the entries are not real numbers")
    return given


def _float64(given: npt.NDArray[Any]) -> Array:
    try:
        return np.asarray(given, dtype=np.float64)
    except OverflowError as error:  # an integer above 1e308
        raise ValueError(str(error)) from None


def number(value: Any) -> Any:
    """One float or expression; errors as for :func:`array`, and for True and False."""
    if type(value) is float:
        return value
    entry = array(value)
    if entry.shape != () or isinstance(value, bool | np.bool_):
        raise ValueError(f"one number is expected; got {value!r}")
    return entry.item()


def _entry(value: Any) -> Any:
    """An entry of an object array: expressions and integers exactly, other numbers as floats."""
    from sympy import Expr

    if is_expression(value) and not isinstance(value, Expr):
        raise TypeError(f"{value} is not a number")
    if is_expression(value) and not (is_number(value) and (value.is_Float or not math.isfinite(float(value)))):
        return int(value) if value.is_Integer else _whole(value)
    return whole(float(value))


def whole(x: Any) -> Any:
    """An integral float as an integer, so that 1.0 x is x; anything else unchanged."""
    return int(x) if isinstance(x, float) and x.is_integer() else x


def _whole(expression: Any) -> Any:
    """The expression with integral floats as integers, so that 1.0 x is x."""
    from sympy import Float, Integer

    whole = {x: Integer(int(x)) for x in expression.atoms(Float) if float(x).is_integer()}
    return expression.xreplace(whole).doit() if whole else expression


def tidied(entries: Iterable[Any]) -> tuple[Any, ...]:
    """Constants of one dimension, multiplied out, with sin² + cos² summed and without rounding, if that is shorter."""
    entries = tuple(entries)
    if not any(map(is_expression, entries)):
        return entries
    from sympy import count_ops, expand, trigsimp
    from sympy.functions.elementary.trigonometric import TrigonometricFunction

    def folded(x: Any) -> Any:
        if not is_expression(x) or terms_when_expanded(x) > _MANY_TERMS:
            return x
        x = expand(x)
        return trigsimp(x) if x.has(TrigonometricFunction) and count_ops(x) <= _MANY_OPERATIONS else x

    given = [_whole(x) if is_expression(x) else x for x in entries]
    short = without_rounding([folded(x) for x in given])
    return tuple(min(_whole(a), x, key=count_ops) if is_expression(x) else x for a, x in zip(short, given, strict=True))


def terms_when_expanded(x: Any) -> int:
    """The number of terms of an expression when it is multiplied out and nothing cancels."""
    if x.is_Add:
        return sum(map(terms_when_expanded, x.args))
    if x.is_Mul:
        return math.prod(map(terms_when_expanded, x.args))
    if x.is_Pow and x.exp.is_Integer:
        return int(terms_when_expanded(x.base) ** min(abs(int(x.exp)), 100))
    return 1


def without_rounding(sums: Sequence[Any]) -> list[Any]:
    """Sums of one physical dimension without terms whose coefficient is below 1e-15 of the largest of their kind.

    Terms are of one kind if they have the same factors other than sines and cosines, which are at most 1.
    """
    from sympy import Add, Mul, cos, sin, sympify

    def split(term: Any) -> tuple[float, Any]:
        coefficient, rest = term.as_coeff_Mul()
        powers = [(factor, *factor.as_base_exp()) for factor in Mul.make_args(rest)]
        others = [x for x, base, n in powers if not (isinstance(base, sin | cos) and n.is_Integer and n > 0)]
        return abs(float(coefficient)), Mul(*others)

    terms = [[(term, *split(term)) for term in Add.make_args(sympify(x))] for x in sums]
    largest: dict[Any, float] = {}
    for _, size, kind in itertools.chain(*terms):
        largest[kind] = max(size, largest.get(kind, 0.0))
    kept = [[term for term, size, kind in of if size > 1e-15 * largest[kind]] for of in terms]
    return [Add(*some) if len(some) < len(all_) else x for x, some, all_ in zip(sums, kept, terms, strict=True)]


def read(value: Any, what: str, must: str = "be numbers", error: type[Exception] = ShapeError, by: Any = array) -> Any:
    """What a function makes of a value, by default :func:`array`; an error that names the value if that raises one."""
    try:
        return by(value)
    except (TypeError, ValueError) as wrong:
        raise error(f"{what} must {must}; got {value!r}") from wrong


def read_or_nan(value: Any, by: Any = real) -> Any:
    """The same, but NaN instead of an error, for callers that also refuse numbers that are not finite."""
    try:
        return by(value)
    except (TypeError, ValueError):
        return np.array(np.nan)


def is_bounded(a: Array, largest: float = LARGEST) -> bool:
    """Whether no entry is infinite, NaN or larger than 1e50; entries with symbols count as bounded."""
    entries = a.ravel().tolist()  # the arrays are small: half as long as by NumPy
    if a.dtype.hasobject:
        entries = [x for x in entries if not is_expression(x)]
    return all([abs(x) <= largest for x in entries])


def is_finite(a: Array) -> bool:
    """Whether no entry is infinite or NaN; entries with symbols count as finite."""
    return is_bounded(a, sys.float_info.max)


def floats(value: Any, what: str = "this") -> Array:
    """A float64 array from an array that may contain expressions; UnboundSymbolError if an entry has free symbols."""
    a = np.asarray(value)
    if a.dtype != object:
        return np.asarray(a, dtype=np.float64)
    if symbols := free_symbols([a]):
        raise UnboundSymbolError.of(symbols, what)
    return np.asarray(a, dtype=np.float64)


def as_matrix(entries: Array) -> Any:
    """An immutable SymPy matrix of the entries of an array; a vector is a column."""
    from sympy import ImmutableDenseMatrix

    rows, columns = entries.shape if entries.ndim == 2 else (entries.size, 1)
    return ImmutableDenseMatrix(rows, columns, entries.ravel().tolist())


def is_matrix(value: object) -> bool:
    """Whether a value is a matrix of SymPy."""
    return bool(getattr(value, "is_Matrix", False))


def entries_of(matrix: Any) -> Array:
    """The entries of a SymPy matrix as an array of objects."""
    return np.array([*matrix], dtype=object).reshape(matrix.shape)


def substituted(value: Any, values: Mapping[Any, Any]) -> Any:
    """What may contain expressions with the values of :func:`bound`, all at once: x and y may change places."""
    if isinstance(value, Parametric):
        return replace(value, **{x.name: substituted(getattr(value, x.name), values) for x in fields(value)})
    if isinstance(value, np.ndarray) and value.dtype == object:
        return array([substituted(x, values) for x in value.flat]).reshape(value.shape)
    return number(value.xreplace(values)) if is_expression(value) else value


@dataclass(frozen=True, eq=False)
class Parametric:
    """A dataclass whose fields are numbers or arrays that may contain symbols, such dataclasses, or anything else."""

    @property
    def free_symbols(self) -> set[Any]:
        """SymPy symbols that the numbers depend on."""
        return free_symbols(getattr(self, field.name) for field in fields(self))

    def subs(self, values: Mapping[Any, Any]) -> Self:
        """The same with values substituted for symbols, given by symbol or name; the errors of its class for these."""
        return cast(Self, substituted(self, bound(values, self.free_symbols)))


def bound(values: Mapping[Any, Any], symbols: set[Any]) -> dict[Any, Any]:
    """Values by symbol, as SymPy's numbers, from a mapping by symbols, whatever is assumed of them, or by names."""
    if not isinstance(values, Mapping):
        raise ShapeError(f"values must be a mapping from symbols or their names; got {values!r}")
    known = sorted({symbol.name for symbol in symbols})
    for key, value in values.items():
        if isinstance(key, str):
            UnknownNameError.check(key, known, "symbol")
        elif not getattr(key, "is_Symbol", False):
            raise ShapeError(f"values are given by symbols or their names; got {key!r}")
        read(value, f"the value of {key}", "be a number or an expression", by=number)
        if value != value:
            raise ShapeError(f"the value of {key} is not a number; got {value!r}")
    if not symbols:
        return {}
    from sympy import sympify

    found = {}
    for symbol in symbols:
        own = [value for key, value in values.items() if key in (symbol, symbol.name)]
        own = own or [value for key, value in values.items() if str(key) == symbol.name]
        if any(value != own[0] for value in own[1:]):
            raise ShapeError(f"{symbol} is given several values: {', '.join(map(str, own))}")
        if own:
            found[symbol] = sympify(own[0])
    return found


def alike(*tuples: Any) -> Any:
    """The same tuples of numbers, with integral floats as integers if one of them contains an expression."""
    if not possible() or {*map(type, itertools.chain(*tuples))} == {float}:
        return tuples
    return tuple(tuple(map(whole, entries)) for entries in tuples)


def is_zero(x: Any) -> bool:
    """Whether a number is 0, or an expression is 0 for all values of its symbols."""
    if x == 0 or not is_expression(x):
        return bool(x == 0)
    from sympy import simplify

    return bool(simplify(x) == 0)


def is_never_positive(x: Any) -> bool:
    """Whether a number is at most 0, or an expression is at most 0 for all values of its symbols."""
    return x.is_nonpositive is True if is_expression(x) else bool(x <= 0)


def side(x: Any) -> Any:
    """1 if an expression is at least 0, −1 otherwise: a number if the sign is known for real symbols."""
    from sympy import Dummy, Piecewise

    real = x.xreplace({symbol: Dummy(real=True) for symbol in x.free_symbols if symbol.is_real is None})
    if real.is_nonnegative:
        return 1
    return -1 if real.is_nonpositive else Piecewise((1, x >= 0), (-1, True))


def root(x: Any) -> Any:
    """Square root of a number or an expression."""
    if not is_expression(x) and not isinstance(x, int):
        return math.sqrt(x)
    from sympy import sqrt

    return number(sqrt(*tidied([x])))


def cos_sin(x: Any) -> tuple[Any, Any]:
    """Cosine and sine of a number, of an expression, or of a scalar with these methods, such as a traced one."""
    if is_expression(x):
        from sympy import cos, sin

        return cos(x), sin(x)
    return (x.cos(), x.sin()) if hasattr(x, "cos") else (math.cos(x), math.sin(x))


def angle(sine: Any, cosine: Any) -> tuple[Any, int] | None:
    """The angle with some sine and cosine: a part that is at most π/4 if they are numbers, and quarter turns.

    None for expressions that are not the sine and cosine of one angle in them.
    """
    if not is_expression(sine) and not is_expression(cosine):
        whole = math.atan2(sine, cosine)
        quarters = round(whole / (math.pi / 2))
        return whole - quarters * (math.pi / 2), quarters
    from sympy import atan2, cos, pi, sin

    if is_number(sine) and is_number(cosine):
        return atan2(sine, cosine), 0
    for found in sorted(cosine.atoms(sin, cos), key=str) if is_expression(cosine) else ():
        for part in (found.args[0], -found.args[0]):
            for quarters in range(4):
                if (sin(part + quarters * pi / 2), cos(part + quarters * pi / 2)) == (sine, cosine):
                    return part, quarters
    return None


def short(x: Any, digits: int = 4) -> str:
    """Text of a number with some significant digits, or of an expression in full."""
    return f"{float(x):.{digits}g}" if is_number(x) else str(x)
