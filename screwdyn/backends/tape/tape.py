"""A tape: scalar operations that are recorded instead of computed, equal operations once.

The recursions run on traced scalars (:class:`Recorded`) as on floats, which records a sequence of operations without
loops. During recording, zeros, ones and constants are folded, equal operations are shared, minus signs are merged into
subtractions, and sums such as sin α cos β + cos α sin β, which parallel axes cause, become sin(α + β).
"""

import math
import operator
from bisect import bisect_left
from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple


class Node(NamedTuple):
    """One operation: "input", "constant", "+", "-", "*", "/", "sin", "cos", "sqrt" or "tanh".

    In C and LLVM also "positive" and "negative", whether the operand is.
    """

    op: str
    a: Any  # position of the first operand, the name of an input, or the absolute value of a constant
    b: Any = None  # position of the second operand

    @property
    def operands(self) -> tuple[int, ...]:
        """Positions of the operands."""
        if self.op in ("input", "constant"):
            return ()
        return (self.a,) if self.b is None else (self.a, self.b)


class Recorded:
    """A traced scalar: plus or minus the result of one operation on a tape."""

    __slots__ = ("minus", "node", "tape")

    def __init__(self, tape: "Tape", node: int, minus: bool = False) -> None:
        self.tape, self.node, self.minus = tape, node, minus

    def __neg__(self) -> "Recorded":
        return Recorded(self.tape, self.node, not self.minus)

    def __add__(self, other: "Scalar") -> "Scalar":
        return self.tape.add(self, other) if _is_scalar(other) else NotImplemented

    __radd__ = __add__

    def __sub__(self, other: "Scalar") -> "Scalar":
        return self.tape.add(self, -other) if _is_scalar(other) else NotImplemented

    def __rsub__(self, other: "Scalar") -> "Scalar":
        return self.tape.add(-self, other) if _is_scalar(other) else NotImplemented

    def __mul__(self, other: "Scalar") -> "Scalar":
        return self.tape.multiply(self, other) if _is_scalar(other) else NotImplemented

    __rmul__ = __mul__

    def __truediv__(self, other: "Scalar") -> "Scalar":
        return self.tape.divide(self, other)

    def __rtruediv__(self, other: "Scalar") -> "Scalar":
        return self.tape.divide(other, self)

    def sin(self) -> "Recorded":
        """Sine: sin(−x) is recorded as −sin x."""
        return Recorded(self.tape, self.tape.position(Node("sin", self.node)), self.minus)

    def cos(self) -> "Recorded":
        """Cosine: cos(−x) is recorded as cos x."""
        return Recorded(self.tape, self.tape.position(Node("cos", self.node)))

    def sqrt(self) -> "Recorded":
        """Square root."""
        tape, at = self.tape, self.node
        if self.minus:
            at = tape.position(Node("-", tape.constant(0.0).node, at))
        return Recorded(tape, tape.position(Node("sqrt", at)))

    def tanh(self) -> "Recorded":
        """Hyperbolic tangent: tanh(−x) is recorded as −tanh x."""
        return Recorded(self.tape, self.tape.position(Node("tanh", self.node)), self.minus)

    def positive(self) -> "Recorded":
        """1 if it is positive, 0 otherwise."""
        return Recorded(self.tape, self.tape.position(Node("negative" if self.minus else "positive", self.node)))

    def negative(self) -> "Recorded":
        """1 if it is negative, 0 otherwise."""
        return (-self).positive()


Scalar = Recorded | float
_BINARY = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
_SCALARS = Recorded, float, int


def _is_scalar(x: object) -> bool:
    """Whether an operand is a traced scalar or any number; arrays and dual numbers have operations of their own."""
    return isinstance(x, _SCALARS) or (hasattr(x, "__float__") and not hasattr(x, "__len__"))


class TooLong(Exception):
    """There are more operations than a tape may have."""


class Tape:
    """Operations in an order in which they can be evaluated; equal operations are stored once."""

    def __init__(self, most: float = math.inf) -> None:
        self.nodes: list[Node] = []
        self._most = most
        self.assumed: list[tuple[Scalar, Scalar]] = []  # valid for states in which x > least for all (x, least)
        self._positions: dict[Node, int] = {}
        self._factors: dict[int, tuple[int, ...]] = {}
        self.coordinates: set[int] = set()  # scalars that remain terms of angles, such as q + c, unless they cancel

    def input(self, name: Hashable) -> Recorded:
        """A scalar whose value is an argument of the evaluation."""
        return Recorded(self, self.position(Node("input", name)))

    def position(self, node: Node) -> int:
        """Position of an operation; a new operation is appended."""
        at = self._positions.get(node)
        if at is None:
            at = self._positions[node] = len(self.nodes)
            if at > self._most:
                raise TooLong
            self.nodes.append(node)
        return at

    def constant(self, value: float) -> Recorded:
        """A number as a scalar on the tape."""
        return Recorded(self, self.position(Node("constant", abs(float(value)))), value < 0)

    # Arithmetic, with all rules of folding

    def add(self, x: "Scalar", y: "Scalar") -> "Scalar":
        """x + y."""
        a, b = self._read(x), self._read(y)
        if not isinstance(a, Recorded) and not isinstance(b, Recorded):
            return a + b
        if not isinstance(a, Recorded):
            a, b = b, a
        assert isinstance(a, Recorded)
        if not isinstance(b, Recorded):
            if b == 0:
                return a
            for term, rest in self._terms(a):
                number = self._read(term)
                if not isinstance(number, Recorded):
                    return self.add(rest, number + b)
            b = self.constant(b)
        for p, q in ((a, b), (b, a)):
            for term, rest in self._terms(p):
                if term.node == q.node and term.minus != q.minus:
                    return rest
        merged = self._angle_sum(a, b)
        if merged is not None:
            return merged
        (k, u), (m, v) = self._multiple(a), self._multiple(b)
        if u.node == v.node:
            return self.multiply((-k if u.minus else k) + (-m if v.minus else m), Recorded(self, u.node))
        if k == m != 1:
            return self.multiply(k, self.add(u, v))
        first, second = sorted((a, b), key=lambda s: s.node)
        op = "+" if first.minus == second.minus else "-"
        return Recorded(self, self.position(Node(op, first.node, second.node)), first.minus)

    def multiply(self, x: "Scalar", y: "Scalar") -> "Scalar":
        """x y."""
        a, b = self._read(x), self._read(y)
        if not isinstance(a, Recorded):
            a, b = b, a
        if not isinstance(a, Recorded):
            assert not isinstance(b, Recorded)
            return a * b
        if not isinstance(b, Recorded):
            if b == 0:
                return 0.0
            if abs(b) == 1:
                return a if b > 0 else -a
            inner, rest = self._multiple(a)
            if rest is not a:
                return self.multiply(inner * b, rest)
            c = self.constant(b)
            # The constant is the first operand, so that constant factors are found and combined.
            return Recorded(self, self.position(Node("*", c.node, a.node)), a.minus != c.minus)
        # A constant factor is moved to the front of the whole product.
        for p, q in ((a, b), (b, a)):
            inner, rest = self._multiple(p)
            if rest is not p:
                return self.multiply(inner, self.multiply(rest, q))
        for p, q in ((a, b), (b, a)):
            node = self.nodes[p.node]
            if node.op == "/" and node.b == q.node:
                return self._read(Recorded(self, node.a, a.minus != b.minus))
        first, second = sorted((a.node, b.node))
        return Recorded(self, self.position(Node("*", first, second)), a.minus != b.minus)

    def divide(self, x: "Scalar", y: "Scalar") -> "Scalar":
        """x / y."""
        a, b = self._read(x), self._read(y)
        if not isinstance(b, Recorded):
            return self.multiply(1.0 / b, a)
        if not isinstance(a, Recorded):
            if a == 0:
                return 0.0
            a = self.constant(a)
        if a.node == b.node:
            return -1.0 if a.minus != b.minus else 1.0
        return Recorded(self, self.position(Node("/", a.node, b.node)), a.minus != b.minus)

    def _read(self, x: "Scalar") -> "Scalar":
        """The value of a constant on the tape; other scalars unchanged."""
        if isinstance(x, Recorded):
            node = self.nodes[x.node]
            if node.op == "constant":
                value: float = -node.a if x.minus else node.a
                return value
        return x

    def _terms(self, x: Recorded) -> "tuple[tuple[Recorded, Recorded], ...]":
        """The two terms of a sum or difference, each followed by the other; empty for other scalars."""
        node = self.nodes[x.node]
        if node.op not in ("+", "-"):
            return ()
        terms = Recorded(self, node.a, x.minus), Recorded(self, node.b, x.minus != (node.op == "-"))
        return terms, terms[::-1]

    def _multiple(self, x: Recorded) -> tuple[float, Recorded]:
        """A scalar as the product of a positive number and another scalar."""
        node = self.nodes[x.node]
        if node.op == "*" and self.nodes[node.a].op == "constant":
            return self.nodes[node.a].a, Recorded(self, node.b, x.minus)
        return 1.0, x

    def _angle_sum(self, a: Recorded, b: Recorded) -> "Scalar | None":
        """k sin α cos β ± k cos α sin β = k sin(α ± β), and likewise for cosines; None if a + b is not such a sum."""
        if self.nodes[a.node].op != "*" or self.nodes[b.node].op != "*":
            return None
        left, right = list(self._factors_of(a.node)), list(self._factors_of(b.node))
        common = []
        for f in list(left):
            if f in right:
                left.remove(f)
                right.remove(f)
                common.append(f)
        if len(left) != 2 or len(right) != 2:
            return None
        sides = [[(self.nodes[f].op, self.nodes[f].a) for f in side] for side in (left, right)]
        if not {op for side in sides for op, _ in side} <= {"sin", "cos"}:
            return None
        ((p, alpha), (r, beta)), ((s, gamma), (t, delta)) = map(sorted, sides)
        minus, negative = a.minus != b.minus, a.minus
        if p == s == "cos" and r == t == "sin" and (alpha, beta) == (delta, gamma):
            angle = self._angle(beta, alpha, minus)
        elif p == r != s == t and (alpha, beta) == (gamma, delta):
            angle = self._angle(alpha, beta, not minus)
            negative ^= minus and p == "sin"
        else:
            return None
        if angle is None:
            return None
        turn = "cos" if p == r else "sin"
        turned: Scalar = getattr(angle, turn)() if isinstance(angle, Recorded) else getattr(math, turn)(angle)
        turned = -turned if negative else turned
        for f in sorted(common):
            turned = self.multiply(Recorded(self, f), turned)
        return turned

    def _angle(self, alpha: int, beta: int, minus: bool) -> "Scalar | None":
        """α + β, or α − β with ``minus``, in a fixed order; None if it would need another sine or cosine."""
        sums = [self._terms_of(((alpha, 1), (beta, -1 if minus else 1)), whole) for whole in (False, True)]
        terms = min(sums, key=len)  # of equally long sums the one whose constants become one
        if any(abs(times) > 1 and self.nodes[at].op != "constant" for at, times in terms.items()):
            return None
        angle: Scalar = 0.0
        for at in sorted(terms, key=lambda at: (self.nodes[at].op == "constant", at)):
            angle = self.add(angle, self.multiply(float(terms[at]), Recorded(self, at)))
        return angle

    def _terms_of(self, weighted: Iterable[tuple[int, int]], whole: bool) -> dict[int, int]:
        """Positions and multiplicities of the terms of a nested sum; coordinates that are sums stay if ``whole``."""
        terms: dict[int, int] = {}
        waiting = list(weighted)
        while waiting:
            at, times = waiting.pop()
            op, a, b = self.nodes[at]
            if op in "+-" and not (whole and at in self.coordinates):
                waiting += [(a, times), (b, times if op == "+" else -times)]
            else:
                terms[at] = terms.get(at, 0) + times
        return {at: times for at, times in terms.items() if times}

    def _factors_of(self, at: int) -> tuple[int, ...]:
        """Positions of the factors of a product, with nested products expanded."""
        known = self._factors.get(at)
        if known is None:
            node = self.nodes[at]
            known = (*self._factors_of(node.a), *self._factors_of(node.b)) if node.op == "*" else (at,)
            self._factors[at] = known
        return known

    # Queries

    def live(self, outputs: Iterable["Scalar"], known: Container[int] = ()) -> list[int]:
        """Positions, in order, of the operations that some outputs depend on, without those in ``known``."""
        needed: set[int] = set()
        waiting = [x.node for x in outputs if isinstance(x, Recorded)]
        while waiting:
            at = waiting.pop()
            if at not in needed and at not in known:
                needed.add(at)
                waiting += self.nodes[at].operands
        return sorted(needed)

    def excerpt(self, outputs: Iterable["Scalar"]) -> tuple["Tape", list["Scalar"]]:
        """A tape of the operations that some outputs depend on, and the outputs on it."""
        outputs, part = list(outputs), Tape()
        place: dict[int, int] = {}
        for at in self.live(outputs):
            op, a, b = self.nodes[at]
            if op not in ("input", "constant"):
                a, b = place[a], None if b is None else place[b]
            place[at] = part.position(Node(op, a, b))
        return part, [Recorded(part, place[x.node], x.minus) if isinstance(x, Recorded) else x for x in outputs]

    def count(self, outputs: Iterable["Scalar"], given: Callable[[Hashable], bool] | None = None) -> dict[str, int]:
        """Numbers of operations that outputs depend on, by kind, without those on constants and ``given`` inputs."""
        # A square root takes about as long as a division.
        kinds = {"*": "mul", "+": "add", "-": "add", "/": "div", "sqrt": "div", "sin": "sincos", "cos": "sincos"}
        counts = dict.fromkeys(("mul", "add", "div", "sincos"), 0)
        known: set[int] = set()
        for at in self.live(outputs):
            node = self.nodes[at]
            if node.op == "constant" or (node.op == "input" and given is not None and given(node.a)):
                known.add(at)
            elif node.op != "input":
                if known.issuperset(node.operands):
                    known.add(at)
                else:
                    counts[kinds[node.op]] += 1
        return counts

    def evaluate(
        self,
        outputs: Iterable["Scalar"],
        values: Mapping[Hashable, Any],
        functions: Any = math,
        done: dict[int, Any] | None = None,
        order: Sequence[int] | None = None,
    ) -> list[Any]:
        """Values of outputs from those of the inputs, numbers or arrays; ``done`` has, and gets, known results.

        ``functions`` is the module that has sines of such numbers, and so on. ``order`` is what :meth:`live` gives, if
        it is known.
        """
        outputs = list(outputs)
        done = {} if done is None else done
        signs = {"positive": lambda x: float(x > 0), "negative": lambda x: float(x < 0)}
        for at in self.live(outputs, done) if order is None else order:
            op, a, b = self.nodes[at]
            if op in ("input", "constant"):
                done[at] = values[a] if op == "input" else a
            elif op in _BINARY:
                done[at] = _BINARY[op](done[a], done[b])
            else:
                x = done[a]
                done[at] = getattr(x, op)() if isinstance(x, Recorded) else (signs.get(op) or getattr(functions, op))(x)
        return [(-done[x.node] if x.minus else done[x.node]) if isinstance(x, Recorded) else x for x in outputs]


# Numbers below the first, in SI units, are rounding of zero; numbers that differ by less than the second are equal.
_ZERO, _RELATIVE = 1e-13, 1e-11


class CountingTape(Tape):
    """A tape on which numbers that differ by rounding are one number: for counts in exact arithmetic, not for code."""

    def __init__(self) -> None:
        super().__init__()
        self._known = [0.0, 1.0]  # absolute values, in order

    def _read(self, x: Scalar) -> Scalar:
        """As in `Tape`; of numbers, the first that differed from it by rounding."""
        x = super()._read(x)
        if isinstance(x, Recorded):
            return x
        size = abs(x)
        at = bisect_left(self._known, size)
        for known in self._known[at - 1 : at + 1] if at else self._known[:1]:
            if abs(size - known) <= (_RELATIVE * known or _ZERO):
                return known if x > 0 else -known
        self._known.insert(at, size)
        return x
