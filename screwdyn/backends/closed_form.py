"""The tape of a tree, which serves all its revisions, as SymPy expressions, their C text, and functions of other tools.

Equal operations occur once on the tape, and each becomes one expression that all revisions and functions use. After an
attachment only new operations are derived. For JAX and CasADi, the tape is evaluated on the arrays or symbols of these
tools.
"""

import functools
import itertools
import math
import operator
import re
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import sympy
from sympy import Expr, cos, sin
from sympy.core.function import Application
from sympy.printing.c import C99CodePrinter
from sympy.printing.latex import LatexPrinter
from sympy.printing.numpy import NumPyPrinter

from screwdyn.backends.c import identifiers, number
from screwdyn.backends.tape.tape import Recorded, Scalar, Tape
from screwdyn.backends.tape.trace import Scalars, scalars
from screwdyn.core import ScrewdynError, ShapeError, expressions
from screwdyn.core.expressions import without_rounding
from screwdyn.physics.charts import ConfigurationSpace

Intermediates = list[tuple[sympy.Symbol, sympy.Expr]]
Result = TypeVar("Result")
# Matrices with more terms than this, counted before cancellation, are not shortened. The second number is for robots
# without symbols, where shortening gains less.
_MANY_TERMS, _MANY_NUMBERS = 700, 100

# Symbols of a joint of one freedom are named after it, with these endings.
_ENDINGS = {"q": "", "qd": "_dot", "qdd": "_ddot", "tau": "_tau", "qd_ref": "_dot_ref", "qdd_ref": "_ddot_ref"}
# Names of the freedoms of joints of several freedoms, which are rates: "hip[wx]", "base[vz]", "pin[w]".
_FREEDOM = re.compile(r"(.+)\[([wv][xyz12]?)\]")
_RATE_ENDINGS = {"qd": "", "qdd": "_dot", "tau": "_tau", "qd_ref": "_ref", "qdd_ref": "_dot_ref"}
# Names of the positions of such joints: "hip[w]", "base[px]", "pin[angle]".
_POSITION = re.compile(r"(.+)\[([xyzw]|p[xyz]?|angle[12]?)\]")


# LaTeX of the symbols of rates, accelerations and torques. This is a setting of SymPy's printer, not a subclass of
# Symbol, because SymPy compares and substitutes by type.
_WRITTEN: dict[sympy.Symbol, str] = {}
LatexPrinter.set_global_settings(symbol_names=_WRITTEN)


def symbol(group: str, name: str) -> sympy.Symbol:
    """The real symbol of a position ("q"), or of a freedom for another argument of quantities, such as "qd" or "tau".

    A joint "elbow" has elbow, elbow_dot, elbow_ddot, elbow_tau; a freedom "hip[wx]" has hip_wx, hip_wx_dot, hip_wx_tau.
    Those of a reference motion end with _ref.
    """
    several = (_POSITION if group == "q" else _FREEDOM).fullmatch(name)
    ending = _ENDINGS[group]
    if several:
        name = "_".join(several.groups())
        ending = _RATE_ENDINGS.get(group, "")
    made = sympy.Symbol(name + ending, real=True)
    if ending == "_tau":
        _WRITTEN[made] = rf"\tau_{{{sympy.latex(sympy.Symbol(name))}}}"
    elif ending:
        dotted, of_reference = ending.removesuffix("_ref")[1:], ending.endswith("_ref")
        written = sympy.latex(sympy.Symbol(f"{name}_r" if of_reference else name))
        _WRITTEN[made] = re.sub("^[^_^]+", rf"\\{dotted}{{\g<0>}}", written) if dotted else written
    return made


class Derivation:
    """A tape of inputs ("q", coordinate), … and ("symbol", expression), its operations as expressions, and results."""

    def __init__(self) -> None:
        self.tape = Tape()
        self._expressions: dict[int, sympy.Expr] = {}
        self._terms: list[int] = []
        self._shortest: dict[sympy.Expr, sympy.Expr] = {}
        self._results: dict[Hashable, Any] = {}

    def once(self, key: Hashable, make: Callable[[], Result]) -> Result:
        """The result for a key, from ``make`` in the first call."""
        if key not in self._results:
            self._results[key] = make()
        result: Result = self._results[key]
        return result

    def scalars(self, constants: Iterable[Any]) -> Scalars:
        """Constants of the robot as floats where these are exact, or else as inputs."""
        return scalars(self.tape, constants, exact=True)

    def expressions(self, outputs: Scalars) -> Scalars:
        """Outputs as an array of expressions, which are not shortened."""
        found = np.empty(outputs.shape, dtype=object)
        found.ravel()[:] = self._play(outputs.ravel().tolist(), self._expressions)
        return found

    def matrix(self, outputs: Scalars) -> sympy.ImmutableDenseMatrix:
        """Outputs as a matrix of expressions, shortened if it has few terms; equal outputs return the same object."""
        return self.once(("matrix", _key_of(outputs)), lambda: self._written(outputs))

    def _written(self, outputs: Scalars) -> sympy.ImmutableDenseMatrix:
        scalars, nodes = outputs.ravel().tolist(), self.tape.nodes
        values = self._play(scalars, self._expressions)
        self._count_terms()
        terms = sum(self._terms[x.node] for x in scalars if isinstance(x, Recorded))
        symbols = (nodes[at].op == "input" and nodes[at].a[0] == "symbol" for at in self.tape.live(scalars))
        if terms <= _MANY_NUMBERS or (terms <= _MANY_TERMS and any(symbols)):
            values = [self._shortened(x, value) for x, value in zip(scalars, values, strict=True)]
        return _matrix(outputs, values)

    def _count_terms(self) -> None:
        """Count, for new operations on the tape, the terms of each operation when multiplied out."""
        for op, a, b in self.tape.nodes[len(self._terms) :]:
            if op in "+-":
                terms = self._terms[a] + self._terms[b]
            elif op == "*":
                terms = self._terms[a] * self._terms[b]
            elif op == "input":
                terms = expressions.terms_when_expanded(a[1]) if a[0] == "symbol" else 1
            else:
                terms = self._terms[a] if op == "/" else 1
            self._terms.append(min(terms, _MANY_TERMS + 1))

    def _shortened(self, x: Scalar, value: sympy.Expr) -> sympy.Expr:
        if not isinstance(x, Recorded):
            return value
        if value not in self._shortest:
            inputs = (self.tape.nodes[at] for at in self.tape.live([x]))
            rates = [symbol(*node.a) for node in inputs if node.op == "input" and node.a[0] in _RATE_ENDINGS]
            self._shortest[value] = shortest(value, rates)
        return self._shortest[value]

    def shared(
        self, outputs: Sequence[Scalars], taken: Iterable[sympy.Symbol]
    ) -> tuple[Intermediates, list[sympy.ImmutableDenseMatrix]]:
        """Outputs as matrices over intermediates x0, x1, … that are not ``taken``: operations used more than once."""
        known = frozenset(x.name for x in taken)

        def made() -> tuple[Intermediates, list[sympy.ImmutableDenseMatrix]]:
            scalars = [x for part in outputs for x in part.ravel().tolist()]
            nodes, live = self.tape.nodes, self.tape.live(scalars)
            uses = Counter(at for node in live for at in nodes[node].operands)
            uses.update(x.node for x in scalars if isinstance(x, Recorded))
            done: dict[int, Any] = {}
            self._play([Recorded(self.tape, at) for at in live if nodes[at].op == "input"], done)
            names = (sympy.Symbol(name) for i in itertools.count() if (name := f"x{i}") not in known)
            intermediates = []
            for at in live:
                if uses[at] > 1:
                    (expression,) = self._play([Recorded(self.tape, at)], done)
                    if not expression.is_Atom and not (-expression).is_Atom:
                        done[at] = next(names)
                        intermediates.append((done[at], expression))
            values = iter(self._play(scalars, done))
            return intermediates, [_matrix(part, [next(values) for _ in range(part.size)]) for part in outputs]

        intermediates, matrices = self.once(("shared", known, *map(_key_of, outputs)), made)
        return [*intermediates], [*matrices]

    def _play(self, scalars: Sequence[Scalar], done: dict[int, Any]) -> list[sympy.Expr]:
        """Scalars as expressions; ``done`` has the expressions of known positions, and new ones are added."""
        for at in self.tape.live(scalars, done):
            op, name, _ = self.tape.nodes[at]
            if op == "input":
                group, what = name
                done[at] = what if group == "symbol" else symbol(group, what)
            elif op == "constant":
                done[at] = _exact(name)
        found = self.tape.evaluate(scalars, {}, sympy, done)
        return [sympy.sympify(_exact(x)) for x in found]


def _exact(x: Any) -> Any:
    """A multiple of ½ as an exact rational number, since formulas contain factors 2 and ½; others unchanged."""
    return sympy.Rational(int(2 * x), 2) if isinstance(x, float) and (2 * x).is_integer() else x


def _matrix(outputs: Scalars, values: Sequence[sympy.Expr]) -> sympy.ImmutableDenseMatrix:
    return sympy.ImmutableDenseMatrix(*rows_and_columns(outputs.shape), values)


def rows_and_columns(shape: tuple[int, ...]) -> tuple[int, int]:
    """Shape of an array as a matrix: a vector is a column, the matrices of a stack are below each other."""
    return (math.prod(shape[:-1]), shape[-1]) if len(shape) > 1 else (math.prod(shape), 1)


def _key_of(outputs: Scalars) -> Hashable:
    """A key that is equal for equal outputs on one tape."""
    entries = ((x.node, x.minus) if isinstance(x, Recorded) else x for x in outputs.ravel().tolist())
    return outputs.shape, *entries


# The shortest of several forms of an expression: as derived, multiplied out, or a sum of sines and cosines. All forms
# are rearrangements; there is no search for identities as in ``sympy.simplify``.

Angle: TypeAlias = frozenset[tuple[Expr, Expr]]

# Expressions with more terms or operations than this, multiplied out, are not shortened, which would take more than
# tenths of a second; the longest formula of the papers has three quarters of these numbers.
_MOST_TERMS, _LONG = 150, 500


def shortest(expression: Expr, rates: Collection[sympy.Symbol] = ()) -> Expr:
    """The form of an expression with the fewest operations; the expression itself if no other form has fewer.

    All its terms must have the same physical dimension: coefficients that are rounding relative to others are dropped.
    It is a polynomial in ``rates``, such as velocities. Each coefficient is also shortened separately, so that inverse
    dynamics becomes a sum of mass matrix, Christoffel symbols and gravity.
    """
    if expression.is_Atom:
        return expression
    multiplied = sympy.expand(expression)
    if len(sympy.Add.make_args(multiplied)) > _MOST_TERMS:
        return expression
    (multiplied,) = without_rounding([multiplied])
    coefficients: dict[Expr, list[Expr]] = {}
    for term in sympy.Add.make_args(multiplied):
        coefficient, monomial = term.as_independent(*rates, as_Add=False)
        coefficients.setdefault(monomial, []).append(coefficient)
    if len(coefficients) > 1:
        short = {monomial: _shortest(sympy.Add(*of)) for monomial, of in coefficients.items()}
        collected = sympy.Add(*(monomial * coefficient for monomial, coefficient in short.items()))
        ways = [expression, collected, sympy.factor_terms(collected), _nested(collected)]
        expression = min(ways, key=sympy.count_ops)
    return min(expression, _shortest(multiplied, rates), key=sympy.count_ops)


def _shortest(multiplied: Expr, rates: Collection[sympy.Symbol] = ()) -> Expr:
    """The form with the fewest operations of an expression that is multiplied out."""
    if multiplied.is_Atom or sympy.count_ops(multiplied) > _LONG:
        return multiplied
    within = sympy.factor_terms if multiplied.has(sympy.Float) else sympy.factor
    angles = set().union(rates, *(wave.free_symbols for wave in multiplied.atoms(sin, cos)))
    # Numbers of a robot have no common factors, for which SymPy would search the longest.
    parameters = within is sympy.factor or not multiplied.free_symbols <= angles
    ways = [multiplied]
    for way in dict.fromkeys((multiplied, _waves(multiplied))):
        if way.is_Add and parameters:
            ways += [sympy.factor_terms(way), sympy.factor_terms(_collected(way, within))]
        ways.append(_nested(way))
    return min(ways, key=sympy.count_ops)


def _collected(way: Expr, within: Callable[[Expr], Expr]) -> Expr:
    """A sum, grouped by the power of the first sine or cosine of each term: as ``sympy.collect``, in less time."""
    functions = sorted(way.atoms(sin, cos), key=sympy.default_sort_key)
    groups: dict[Expr, list[Expr]] = {}
    for term in sympy.Add.make_args(way):
        powers = term.as_powers_dict()
        first = next((f ** powers[f] for f in functions if f in powers), sympy.S.One)
        groups.setdefault(first, []).append(term / first)
    return sympy.Add(*(first * within(sympy.Add(*terms)) for first, terms in groups.items()))


def _nested(way: Expr) -> Expr:
    """Horner's scheme for several variables: factor out the most frequent factor, then treat both parts likewise."""
    terms = sympy.Add.make_args(way)
    counts = Counter(factor for term in terms for factor in _factors(term))
    factor = max(counts, key=lambda f: (counts[f], str(f)), default=None)
    if factor is None or counts[factor] < 2:
        return way
    taken = [term for term in terms if factor in _factors(term)]
    rest = [term for term in terms if term not in taken]
    return factor * _nested(sympy.Add(*(term / factor for term in taken))) + _nested(sympy.Add(*rest))


def _factors(term: Expr) -> set[Expr]:
    """Factors of a product that can be factored out, without numbers, denominators and roots."""
    powers = (factor.as_base_exp() for factor in sympy.Mul.make_args(term))
    return {base for base, power in powers if power.is_Integer and power > 0 and not base.is_number}


def _waves(expression: Expr) -> Expr:
    """An expression with products of sines and cosines as those of sums of angles, unless it has more terms then."""
    terms = sympy.Add.make_args(expression)
    sums: dict[tuple[Expr, bool, Angle], Expr] = {}
    for term in terms:
        coefficient, factors = term.as_coeff_Mul()
        rest: list[Expr] = []
        angles: list[tuple[bool, Mapping[Expr, Expr]]] = []
        for factor in sympy.Mul.make_args(factors):
            base, power = factor.as_base_exp()
            if isinstance(base, sin | cos) and power.is_Integer and power > 0:
                angles += [(isinstance(base, sin), base.args[0].as_coefficients_dict())] * int(power)
            else:
                rest.append(factor)
        others, sines = sympy.Mul(*rest), sum(odd for odd, _ in angles)
        # The product is a mean over all signs of the angles but the first.
        choices = list(itertools.product(*[(1, -1)] * (len(angles) - 1))) if angles else [()]
        coefficient *= sympy.Rational((-1) ** (sines // 2), len(choices))
        for choice in choices:
            signs = (1, *choice)
            total: Counter[Expr] = Counter()
            for sign, (_, angle) in zip(signs, angles, strict=False):
                total.update({x: sign * times for x, times in angle.items()})
            minus = math.prod(sign for sign, (odd, _) in zip(signs, angles, strict=False) if odd)
            first = min((x for x in total if total[x]), key=str, default=None)
            turn = -1 if first is not None and total[first] < 0 else 1
            key = others, sines % 2 == 1, frozenset((x, turn * n) for x, n in total.items() if n)
            sums[key] = sums.get(key, 0) + coefficient * minus * (turn if sines % 2 else 1)
    written = (
        n * others * (sin if odd else cos)(sympy.Add(*(times * x for x, times in angle)))
        for (others, odd, angle), n in sums.items()
    )
    (waves,) = without_rounding([sympy.Add(*written)])
    return waves if len(sympy.Add.make_args(waves)) <= len(terms) else expression


# C: a parameter struct, and expressions of its members


def member_names(symbols: Iterable[sympy.Symbol], taken: Collection[str] = ()) -> dict[sympy.Symbol, str]:
    """The name of the struct member for each symbol; ScrewdynError if two of the symbols have the same name."""
    symbols = list(symbols)
    repeated = sorted(name for name, times in Counter(x.name for x in symbols).items() if times > 1)
    if repeated:
        raise ScrewdynError(
            f"{', '.join(repeated)} is the name of two symbols with different assumptions; use one symbol"
        )
    return dict(zip(symbols, identifiers([x.name for x in symbols], taken), strict=True))


def computed(
    expressions: Iterable[sympy.Expr], members: Mapping[sympy.Symbol, str], struct: str
) -> tuple[list[str], dict[sympy.Expr, str]]:
    """C statements for common subexpressions, and the text of each expression; ScrewdynError if C has no function."""
    wanted = list(expressions)
    shared, reduced = sympy.cse(wanted, symbols=sympy.numbered_symbols("c", cls=sympy.Dummy))
    names: dict[Any, str] = {symbol: f"{struct}->{name}" for symbol, name in members.items()}
    names |= {symbol: symbol.name for symbol, _ in shared}
    printer = _Printer(names)
    lines = [f"const double {symbol.name} = {printer.text(value)};" for symbol, value in shared]
    return lines, {x: printer.text(value) for x, value in zip(wanted, reduced, strict=True)}


class _Printer(C99CodePrinter):  # type: ignore[misc]  # SymPy has no types
    """Prints all numbers as doubles with all digits, without constants that strict C99 does not define."""

    def __init__(self, names: Mapping[Any, str]) -> None:
        super().__init__({"human": False, "math_macros": {}})
        self._names = names

    def text(self, expression: sympy.Expr) -> str:
        constants, unknown, text = self.doprint(expression)
        assert not constants
        if unknown:
            strange = sorted({x.func.__name__ for x in unknown})
            raise ScrewdynError(f"C has no function for {', '.join(strange)}, which a number of the robot contains")
        return " ".join(str(text).split())

    def _print_Symbol(self, expression: Any) -> str:
        return self._names[expression]

    _print_Dummy = _print_Symbol

    def _number(self, expression: Any) -> str:
        return number(float(expression))

    _print_Integer = _print_Rational = _print_Float = _print_NumberSymbol = _number
    _print_Zero = _print_One = _print_NegativeOne = _print_Half = _number

    def _unknown(self, expression: Any) -> str:
        return str(self._print_not_supported(expression))

    # C's remainder has the sign of the dividend, SymPy's that of the divisor.
    _print_Mod = _print_ImaginaryUnit = _unknown

    def _print_Pow(self, expression: Any) -> str:
        base, exponent = expression.as_base_exp()
        if base.is_Symbol and exponent in (2, 3):
            factors = "*".join([self._print(base)] * int(exponent))
            return f"({factors})"
        return str(super()._print_Pow(expression))


# Functions for ``sympy.lambdify``, JAX and CasADi

# Functions with the same name and meaning in all tools.
_ELEMENTARY = {
    *(sympy.sin, sympy.cos, sympy.tan, sympy.asin, sympy.acos, sympy.atan, sympy.atan2),
    *(sympy.sinh, sympy.cosh, sympy.tanh, sympy.exp, sympy.log, sympy.Abs, sympy.Piecewise),
}


class Handover(NamedTuple):
    """Results on a tape, of which functions for other tools are made; one result is an array, several are a tuple."""

    derivation: Derivation
    function: str  # its name, for messages
    outputs: Sequence[Scalars]
    # In order: q has an entry for each position, all others have one for each freedom.
    arguments: Mapping[str, Sequence[str]]
    parameters: Sequence[sympy.Symbol]  # whose values are the last argument, if there are any
    configurations: ConfigurationSpace  # of the positions

    def lambdify(self, modules: Any) -> Callable[..., Any]:
        """See :meth:`screwdyn.forms.symbolic.Symbolic.lambdify`."""
        groups = [[symbol(group, x) for x in names] for group, names in self.arguments.items()]
        if self.parameters:
            groups.append(list(self.parameters))
        # Dummy symbols, because a joint or a parameter may have the name of a function of the module.
        safe = {x: sympy.Dummy() for group in groups for x in group}
        intermediates, matrices = self.derivation.shared(self.outputs, safe)
        intermediates = [(x, e.xreplace(safe)) for x, e in intermediates]
        entries = [x for matrix in matrices for x in matrix.xreplace(safe)]
        arguments = [[safe[x] for x in group] for group in groups]
        made: Callable[..., Any] = sympy.lambdify(arguments, entries, modules, cse=lambda _: (intermediates, entries))

        @functools.wraps(made)
        def checked(*given: Any) -> Any:
            batch = self._batch(given)
            try:
                numbers = np.asarray(_entries(given[0]), dtype=np.float64)
            except (TypeError, ValueError):  # symbols, or values that are traced
                pass
            else:
                self.configurations.check("q", numbers)
            # One array for each coordinate, over the batch.
            rows = [np.ascontiguousarray(np.moveaxis(np.asarray(x), -1, 0)) if batch else _entries(x) for x in given]
            return self._split(made(*rows), batch, np)

        return checked

    def jax(self) -> Callable[..., Any]:
        """See :meth:`screwdyn.forms.symbolic.Symbolic.jax`."""
        try:
            import jax.numpy as jnp
        except ModuleNotFoundError as missing:
            raise ScrewdynError(f"functions for JAX need it ({missing}): pip install 'screwdyn[jax]'") from missing

        def made(*arguments: Any) -> Any:
            batch = self._batch(arguments)
            # With the states in the last axis, vector instructions process several states at once.
            values = self._values([jnp.moveaxis(jnp.asarray(x), -1, 0) for x in arguments], jnp)
            entries = self.derivation.tape.evaluate(self._scalars, values, jnp)
            return self._split(entries, batch, jnp)

        return made

    def casadi(self) -> Any:
        """See :meth:`screwdyn.forms.symbolic.Symbolic.casadi`."""
        try:
            import casadi
        except ModuleNotFoundError as missing:
            raise ScrewdynError(
                f"functions for CasADi need it ({missing}): pip install 'screwdyn[casadi]'"
            ) from missing

        arguments = {name: casadi.SX.sym(name, n) for name, n in self._lengths.items()}
        values, results = self._values([*arguments.values()], casadi), []
        for part in self.outputs:
            # CasADi stores matrices column by column.
            rows, columns = rows_and_columns(part.shape)
            by_columns = part.reshape(rows, columns).T.ravel().tolist()
            entries = self.derivation.tape.evaluate(by_columns, values, casadi)
            results.append(casadi.reshape(casadi.vertcat(*entries), rows, columns))
        names = ["value"] if len(results) == 1 else [f"value{i}" for i in range(len(results))]
        return casadi.Function(self.function, [*arguments.values()], results, [*arguments], names)

    @property
    def _scalars(self) -> list[Any]:
        """All entries of the results, row by row."""
        return [x for part in self.outputs for x in part.ravel().tolist()]

    @property
    def _lengths(self) -> dict[str, int]:
        """Numbers of entries of the arguments."""
        last = {"parameters": self.parameters} if self.parameters else {}
        return {name: len(names) for name, names in {**self.arguments, **last}.items()}

    def _batch(self, given: Sequence[Any]) -> tuple[int, ...]:
        """The batch axes of some arguments; ShapeError for wrong numbers or lengths."""
        lengths, shapes = self._lengths, [_shape(x) for x in given]
        with suppress(IndexError, TypeError, ValueError):
            if [shape[-1] for shape in shapes] == list(lengths.values()):
                return np.broadcast_shapes(*(shape[:-1] for shape in shapes))
        wanted = ", ".join(f"{name} of {length}" for name, length in lengths.items())
        got = ", ".join(str(shape[0] if len(shape) == 1 else f"shape {shape}") for shape in shapes) or "nothing"
        raise ShapeError(f"{self.function} takes {wanted} entries, with batch axes before them; got {got}")

    def _split(self, entries: Sequence[Any], batch: tuple[int, ...], module: Any) -> Any:
        """The results as arrays with the batch axes first, from all entries as numbers or arrays over the batch."""
        own = [module.broadcast_to(module.asarray(x), batch) for x in entries]
        whole, results, end = module.stack(own) if own else module.zeros((0, *batch)), [], 0
        for part in self.outputs:
            first, end = end, end + part.size
            stacked = whole[first:end].reshape((*part.shape, *batch))
            results.append(module.moveaxis(stacked, range(part.ndim), range(-part.ndim, 0)))
        return results[0] if len(results) == 1 else tuple(results)

    def _values(self, arguments: Sequence[Any], module: Any) -> Mapping[Any, Any]:
        """Values of the tape's inputs: entries of the arguments, and constants computed from the parameters."""
        tape, groups = self.derivation.tape, zip(self.arguments.items(), arguments, strict=False)
        values = {(group, x): given[i] for (group, names), given in groups for i, x in enumerate(names)}
        live = (tape.nodes[at] for at in tape.live(self._scalars))
        constants = [node.a for node in live if node.op == "input" and node.a[0] == "symbol"]
        if constants:
            strange = {str(f.func) for _, e in constants for f in e.atoms(Application) if f.func not in _ELEMENTARY}
            if strange:
                name = module.__name__.split(".")[0]
                raise ScrewdynError(f"{', '.join(sorted(strange))} in a number of the robot cannot be used in {name}")
            settings = {"fully_qualified_modules": False, "inline": True, "allow_unknown_functions": True}
            made = sympy.lambdify(
                self.parameters,
                [expression for _, expression in constants],
                [{"select": _select, "greater_equal": operator.ge}, vars(module), "math"],
                printer=NumPyPrinter(settings),
                dummify=True,
            )
            given = [arguments[-1][i] for i in range(len(self.parameters))]
            values |= zip(constants, made(*given), strict=True)
        return values


def _select(conditions: Sequence[Any], choices: Sequence[Any], default: float) -> Any:
    """``numpy.select`` by arithmetic, for the conditions of a ``Piecewise``, of which the last is True."""
    value: Any = choices[-1]
    for condition, choice in zip(conditions[-2::-1], choices[-2::-1], strict=True):
        value = value + condition * (choice - value)
    return value


def _entries(x: Any) -> Any:
    """The entries of a SymPy matrix as a list; a list or array unchanged."""
    return list(x) if isinstance(x, sympy.MatrixBase) else x


def _shape(x: Any) -> tuple[Any, ...]:
    """Shape of an array, a list or a SymPy column; () for other objects."""
    if isinstance(x, sympy.MatrixBase):
        return (x.rows,) if x.cols == 1 else x.shape
    if not isinstance(x, Sequence) or isinstance(x, str):
        return tuple(getattr(x, "shape", ()))
    # Entry by entry, because NumPy does not know the shape of traced values.
    shapes = {_shape(entry) for entry in x}
    if len(shapes) > 1:
        return ()
    return (len(x), *(shapes.pop() if shapes else ()))
