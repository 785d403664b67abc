"""What has been written down of a tree so far: one tape for every revision, and its operations as SymPy expressions.

Equal operations stand on the tape once and become one expression, whatever tree or function asks for them. So a tree
to which something is attached finds all that it knew before.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import count
from typing import Any, TypeVar

import numpy as np
import sympy

from screwdyn.backends.sympy.shorten import shortest
from screwdyn.backends.tape.tape import Recorded, Scalar, Tape
from screwdyn.backends.tape.trace import Scalars
from screwdyn.core import expressions

__all__ = ["SUFFIXES", "Derivation", "Intermediates", "symbol"]

Intermediates = list[tuple[sympy.Symbol, sympy.Expr]]
Result = TypeVar("Result")
# So many operations, written out in full, a matrix may have to be looked at for a shorter way to write it.
READABLE = 10_000
# The same for a robot without symbols of its own: in larger ones numbers hide what could be put together.
SMALL = 300

# How the symbols of each group are called after a coordinate.
SUFFIXES = {"q": "", "qd": "_dot", "qdd": "_ddot", "tau": "_tau"}


def symbol(group: str, coordinate: str) -> sympy.Symbol:
    """The real symbol of a coordinate, its rate, acceleration or torque."""
    return sympy.Symbol(coordinate + SUFFIXES[group], real=True)


class Derivation:
    """A tape, the expressions that its operations are, and the results that have been put together from them.

    Attributes
    ----------
    tape : Tape
        Inputs are ("q", coordinate), ("qd", coordinate), … and ("symbol", expression) for the constants of the robot
        that are no plain numbers.
    """

    def __init__(self) -> None:
        self.tape = Tape()
        self._expressions: dict[int, sympy.Expr] = {}
        self._lengths: list[int] = []
        self._shortest: dict[sympy.Expr, sympy.Expr] = {}
        self._results: dict[Hashable, Any] = {}

    def once(self, key: Hashable, make: Callable[[], Result]) -> Result:
        """The result that belongs to a key; made the first time."""
        if key not in self._results:
            self._results[key] = make()
        result: Result = self._results[key]
        return result

    def scalar(self, x: Any) -> Scalar:
        """A constant of the robot: a float, if nothing is lost by it, or an input of its own."""
        if not expressions.is_expression(x) or (x.is_Rational and (2 * x).is_Integer):
            return float(x)
        minus = bool(x.could_extract_minus_sign())
        scalar = self.tape.input(("symbol", -x if minus else x))
        return -scalar if minus else scalar

    def scalars(self, constants: Iterable[Any]) -> Any:
        """Constants of the robot as a tuple of scalars."""
        return tuple(map(self.scalar, constants))

    def table(self, rows: Iterable[Sequence[Any]]) -> Scalars:
        """Rows of a model, the base's last, as scalars; see ``physics.table``."""
        return np.array([[self.scalar(x) for x in row] for row in rows], dtype=object)

    def matrix(self, outputs: Scalars) -> sympy.ImmutableDenseMatrix:
        """Outputs as a matrix (a column, if they are a vector) of expressions.

        Short ones are meant for reading and written in the shortest way, most of all if the robot has symbols.
        """
        scalars = outputs.ravel().tolist()
        values = self._play(scalars, self._expressions)
        if self._are_readable(scalars):
            values = [self._in_short(x) for x in values]
        return _matrix(outputs, values)

    def _are_readable(self, scalars: Sequence[Scalar]) -> bool:
        nodes = self.tape.nodes
        for node in nodes[len(self._lengths) :]:
            self._lengths.append(1 + sum(self._lengths[at] for at in node.operands))
        length = sum(self._lengths[x.node] for x in scalars if isinstance(x, Recorded))
        if not SMALL < length <= READABLE:
            return length <= SMALL
        live = (nodes[at] for at in self.tape.live(scalars))
        return any(node.op == "input" and node.a[0] == "symbol" for node in live)

    def _in_short(self, x: sympy.Expr) -> sympy.Expr:
        if x not in self._shortest:
            self._shortest[x] = shortest(x)
        return self._shortest[x]

    def shared(
        self, outputs: Sequence[Scalars], taken: Iterable[sympy.Symbol]
    ) -> tuple[Intermediates, list[sympy.ImmutableDenseMatrix]]:
        """Outputs as matrices over intermediates: a symbol for every operation that is used more than once.

        Intermediates are called x0, x1, …, unless one of the symbols that are taken is called so.
        """
        scalars = [x for part in outputs for x in part.ravel().tolist()]
        nodes = self.tape.nodes
        live = self.tape.live(scalars)
        uses = Counter(at for node in live for at in nodes[node].operands)
        uses.update(x.node for x in scalars if not isinstance(x, float | int))
        done: dict[int, Any] = {}
        self._play([Recorded(self.tape, at) for at in live if nodes[at].op == "input"], done)
        known = {x.name for x in taken}
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
        """Scalars as expressions of what is done."""
        for at in self.tape.live(scalars, done):
            op, name, _ = self.tape.nodes[at]
            if op == "input":
                group, what = name
                done[at] = what if group == "symbol" else symbol(group, what)
            elif op == "constant":
                done[at] = _exact(name)
        return [sympy.sympify(_exact(x)) for x in self.tape.evaluate(scalars, {}, sympy.sin, sympy.cos, done)]


def _exact(x: Any) -> Any:
    """A whole or half number exactly, since physics brings in twos and halves; anything else as it is."""
    return sympy.Rational(int(2 * x), 2) if isinstance(x, float) and (2 * x).is_integer() else x


def _matrix(outputs: Scalars, values: Sequence[sympy.Expr]) -> sympy.ImmutableDenseMatrix:
    rows, *columns = outputs.shape
    return sympy.ImmutableDenseMatrix(rows, *(columns or [1]), values)
