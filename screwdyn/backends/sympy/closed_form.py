"""The tape of a tree, which serves all its revisions, and its operations as SymPy expressions.

Equal operations occur once on the tape, and each becomes one expression that all revisions and functions use. After an
attachment only new operations are derived.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterable, Sequence
from itertools import count
from typing import Any, TypeVar

import numpy as np
import sympy
from sympy.printing.latex import LatexPrinter

from screwdyn.backends.sympy.shorten import shortest
from screwdyn.backends.tape.tape import Recorded, Scalar, Tape
from screwdyn.backends.tape.trace import Scalars
from screwdyn.core import expressions

__all__ = ["Derivation", "Intermediates", "key_of", "rows_and_columns", "symbol"]

Intermediates = list[tuple[sympy.Symbol, sympy.Expr]]
Result = TypeVar("Result")
# Matrices with more terms than this, counted before cancellation, are not shortened. The second number is for robots
# without symbols, where shortening gains less.
_MANY_TERMS, _MANY_NUMBERS = 700, 100

# Symbols of a joint of one freedom are named after it, with these endings.
_ENDINGS = {"q": "", "qd": "_dot", "qdd": "_ddot", "tau": "_tau"}
# Names of the freedoms of joints of several freedoms, which are rates: "hip[wx]", "base[vz]", "pin[w]".
_FREEDOM = re.compile(r"(.+)\[([wv][xyz12]?)\]")
_RATE_ENDINGS = {"qd": "", "qdd": "_dot", "tau": "_tau"}
# Names of the positions of such joints: "hip[w]", "base[px]", "pin[angle]".
_POSITION = re.compile(r"(.+)\[([xyzw]|p[xyz]?|angle[12]?)\]")


# LaTeX of the symbols of rates, accelerations and torques. This is a setting of SymPy's printer, not a subclass of
# Symbol, because SymPy compares and substitutes by type.
_WRITTEN: dict[sympy.Symbol, str] = {}
LatexPrinter.set_global_settings(symbol_names=_WRITTEN)


def symbol(group: str, name: str) -> sympy.Symbol:
    """The real symbol of a position ("q"), or of the rate, acceleration or torque of a freedom ("qd", "qdd", "tau").

    For a joint "elbow" of one freedom: elbow, elbow_dot, elbow_ddot, elbow_tau. For the freedom "hip[wx]" of a
    joint of several freedoms, which is a rate: hip_wx, hip_wx_dot, hip_wx_tau; for its position "hip[x]": hip_x.
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
        _WRITTEN[made] = re.sub("^[^_^]+", rf"\\{ending[1:]}{{\g<0>}}", sympy.latex(sympy.Symbol(name)))
    return made


class Derivation:
    """A tape, the expression of each of its operations, and results made from them.

    Attributes
    ----------
    tape : Tape
        Inputs are ("q", coordinate), ("qd", coordinate), … and ("symbol", expression) for the constants of the robot
        that are not plain numbers.
    """

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

    def scalar(self, x: Any) -> Scalar:
        """A constant of the robot as a float if that is exact, or else as an input."""
        if not expressions.is_expression(x) or (x.is_Rational and (2 * x).is_Integer):
            return float(x)
        minus = bool(x.could_extract_minus_sign())
        scalar = self.tape.input(("symbol", -x if minus else x))
        return -scalar if minus else scalar

    def scalars(self, constants: Iterable[Any]) -> Scalars:
        """Constants of the robot as an array of scalars."""
        return np.array([self.scalar(x) for x in constants], dtype=object)

    def expressions(self, outputs: Scalars) -> Scalars:
        """Outputs as an array of expressions, which are not shortened."""
        found = np.empty(outputs.shape, dtype=object)
        found.ravel()[:] = self._play(outputs.ravel().tolist(), self._expressions)
        return found

    def matrix(self, outputs: Scalars) -> sympy.ImmutableDenseMatrix:
        """Outputs as a matrix of expressions, shortened if it has few terms; equal outputs return the same object.

        A vector becomes a column, a number a 1x1 matrix; the matrices of a stack are placed below each other.
        """
        return self.once(("matrix", key_of(outputs)), lambda: self._written(outputs))

    def _written(self, outputs: Scalars) -> sympy.ImmutableDenseMatrix:
        scalars = outputs.ravel().tolist()
        values = self._play(scalars, self._expressions)
        self._count_terms()
        terms = sum(self._terms[x.node] for x in scalars if isinstance(x, Recorded))
        if terms <= _MANY_NUMBERS or (terms <= _MANY_TERMS and self._has_symbols(scalars)):
            values = [self._shortened(x, value) for x, value in zip(scalars, values, strict=True)]
        return _matrix(outputs, values)

    def _has_symbols(self, scalars: Sequence[Scalar]) -> bool:
        live = (self.tape.nodes[at] for at in self.tape.live(scalars))
        return any(node.op == "input" and node.a[0] == "symbol" for node in live)

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
        """Outputs as matrices over intermediates: a symbol for every operation that is used more than once.

        The names of intermediates are x0, x1, …, without the names of the symbols in ``taken``. The returned lists are
        copies.
        """
        known = frozenset(x.name for x in taken)
        keys = "shared", known, *map(key_of, outputs)
        intermediates, matrices = self.once(keys, lambda: self._over_intermediates(outputs, known))
        return [*intermediates], [*matrices]

    def _over_intermediates(
        self, outputs: Sequence[Scalars], known: Container[str]
    ) -> tuple[Intermediates, list[sympy.ImmutableDenseMatrix]]:
        scalars = [x for part in outputs for x in part.ravel().tolist()]
        nodes = self.tape.nodes
        live = self.tape.live(scalars)
        uses = Counter(at for node in live for at in nodes[node].operands)
        uses.update(x.node for x in scalars if not isinstance(x, float | int))
        done: dict[int, Any] = {}
        self._play([Recorded(self.tape, at) for at in live if nodes[at].op == "input"], done)
        names = (sympy.Symbol(name) for i in count() if (name := f"x{i}") not in known)
        intermediates = []
        for at in live:
            if uses[at] > 1:
                (expression,) = self._play([Recorded(self.tape, at)], done)
                if not expression.is_Atom and not (-expression).is_Atom:
                    done[at] = next(names)
                    intermediates.append((done[at], expression))
        values = iter(self._play(scalars, done))
        return intermediates, [_matrix(part, [next(values) for _ in range(part.size)]) for part in outputs]

    def _play(self, scalars: Sequence[Scalar], done: dict[int, Any]) -> list[sympy.Expr]:
        """Scalars as expressions; ``done`` has the expressions of known positions, and new ones are added."""
        for at in self.tape.live(scalars, done):
            op, name, _ = self.tape.nodes[at]
            if op == "input":
                group, what = name
                done[at] = what if group == "symbol" else symbol(group, what)
            elif op == "constant":
                done[at] = _exact(name)
        return [sympy.sympify(_exact(x)) for x in self.tape.evaluate(scalars, {}, sympy.sin, sympy.cos, done)]


def _exact(x: Any) -> Any:
    """A multiple of ½ as an exact rational number, since formulas contain factors 2 and ½; others unchanged."""
    return sympy.Rational(int(2 * x), 2) if isinstance(x, float) and (2 * x).is_integer() else x


def _matrix(outputs: Scalars, values: Sequence[sympy.Expr]) -> sympy.ImmutableDenseMatrix:
    return sympy.ImmutableDenseMatrix(*rows_and_columns(outputs.shape), values)


def rows_and_columns(shape: tuple[int, ...]) -> tuple[int, int]:
    """Shape of an array as a matrix: a vector is a column, the matrices of a stack are below each other."""
    return (math.prod(shape[:-1]), shape[-1]) if len(shape) > 1 else (math.prod(shape), 1)


def key_of(outputs: Scalars) -> Hashable:
    """A key that is equal for equal outputs on one tape."""
    entries = ((x.node, x.minus) if isinstance(x, Recorded) else x for x in outputs.ravel().tolist())
    return outputs.shape, *entries
