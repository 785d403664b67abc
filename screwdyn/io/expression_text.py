"""SymPy expressions as text and back. The text is parsed, never evaluated as Python code."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from keyword import iskeyword
from math import inf, isfinite, prod
from typing import Any
from unicodedata import normalize

FUNCTIONS = ("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "exp", "log", "sqrt", "Abs")
CONSTANTS = ("pi", "E")
KNOWN = (*FUNCTIONS, *CONSTANTS)
NOT_FINITE = ("nan", "inf", "infinity", "oo", "zoo")
# They bound the time and memory that a text can take: characters, levels, bits of a number, a power, and terms in the
# arguments of what SymPy searches for real and imaginary parts.
LONGEST, DEEPEST, MOST_BITS, HIGHEST, WIDEST = 100_000, 100, 2048, 32, 10
SEARCHED = ("sinh", "cosh", "tanh")


def text_of(expression: Any) -> str:
    """An expression in Python's notation, with all digits of its floats; ValueError if it could not be read again."""
    from sympy import Add, Mul, Number, Pow, Symbol, preorder_traversal
    from sympy.printing.str import StrPrinter

    for part in preorder_traversal(expression):
        if isinstance(part, Symbol):
            # Python's parser does not read keywords as names, and turns a micro sign into a Greek mu.
            name = part.name
            readable = name.isidentifier() and name == normalize("NFKC", name) and not iskeyword(name)
            if not readable or name in KNOWN or name.lower() in NOT_FINITE:
                raise ValueError(f"the symbol {name!r} cannot be written; rename it")
        elif not isinstance(part, Add | Mul | Pow | Number) and {str(part.func), str(part)}.isdisjoint(KNOWN):
            raise ValueError(f"{part.func} cannot be written; known: {', '.join(KNOWN)}")

    class AllDigits(StrPrinter):  # type: ignore[misc]
        def _print_Float(self, x: Any) -> str:
            return repr(float(x))

    text = str(AllDigits().doprint(expression))
    expression_of(text, {})  # Python's parser limits the number of terms
    return text


def expression_of(text: str, symbols: Mapping[str, Any]) -> Any:
    """The expression of a text such as ``m*L**2/3``, in which names are the given symbols, or others.

    ValueError if it contains anything but numbers, names, ``+ - * / **``, parentheses, and the functions and constants
    above; is too long or too deeply nested; or has a number that is not finite or has more than ``MOST_BITS`` bits, a
    power above ``HIGHEST``, or what :meth:`_Reader.width` forbids.
    """
    if len(text) > LONGEST:
        raise ValueError(f"it has {len(text)} characters; at most {LONGEST} are read")
    try:
        return _Reader(symbols).value(ast.parse(text.strip(), mode="eval").body, 0)
    except SyntaxError as error:
        raise ValueError(f"it is not an expression ({error.msg})") from None
    except (RecursionError, MemoryError):
        raise ValueError("it is nested too deeply") from None
    except (TypeError, ArithmeticError) as error:  # of numbers that SymPy cannot tell from 0, or from real ones
        raise ValueError(f"SymPy cannot compute its numbers ({str(error) or type(error).__name__})") from None


def symbol_of(name: str, assumptions: Mapping[str, bool | None]) -> Any:
    """A symbol with assumptions such as ``{"positive": True}``; ValueError if there are no such ones."""
    from sympy import Symbol
    from sympy.core.facts import InconsistentAssumptions

    unknown = [what for what in assumptions if not hasattr(Symbol, f"is_{what}")]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not known")
    try:
        return Symbol(name, **assumptions)
    except InconsistentAssumptions as error:
        raise ValueError(str(error)) from None


def assumptions_of(symbol: Any) -> dict[str, bool]:
    """What makes the symbol again in :func:`symbol_of`: one assumption if the others follow from it, otherwise all."""
    known = {what: value for what, value in symbol.assumptions0.items() if what != "commutative"}
    alone = ({what: value} for what, value in known.items())
    return next((one for one in alone if symbol_of(symbol.name, one) == symbol), known)


class _Reader:
    """Makes expressions from the nodes of Python's syntax tree."""

    def __init__(self, symbols: Mapping[str, Any]) -> None:
        self.symbols = symbols
        self.widths: dict[Any, float] = {}

    def value(self, node: ast.expr, depth: int) -> Any:
        import sympy

        if depth > DEEPEST:
            raise ValueError("it is nested too deeply")
        match node:
            case ast.Constant(value=int() | float() as x) if not isinstance(x, bool):
                return self.bounded(sympy.sympify(x))
            case ast.Name(id=name) if name in CONSTANTS:
                return getattr(sympy, name)
            case ast.Name(id=name) if name not in FUNCTIONS and name.lower() not in NOT_FINITE:
                return self.symbols.get(name) or sympy.Symbol(name)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
                x = self.value(operand, depth + 1)
                return -x if isinstance(sign, ast.USub) else x
            case ast.BinOp(op=ast.Add() | ast.Sub()):
                return self.bounded(sympy.Add(*self.chain(node, ast.Add, ast.Sub, depth)))
            case ast.BinOp(op=ast.Mult() | ast.Div()):
                return self.bounded(sympy.Mul(*self.chain(node, ast.Mult, ast.Div, depth)))
            case ast.BinOp(op=ast.Pow(), left=left, right=right):
                return self.power(self.value(left, depth + 1), self.value(right, depth + 1))
            case ast.Call(func=ast.Name(id=name), args=given, keywords=[]) if name in FUNCTIONS:
                arguments = [self.value(x, depth + 1) for x in given]
                if name == "exp":
                    _check_logarithms(*arguments)
                if len(arguments) != (2 if name == "atan2" else 1):
                    raise ValueError(f"{name} is given {len(arguments)} arguments")
                as_given = getattr(sympy, name)(*arguments, evaluate=False)
                self.width(as_given)
                value = getattr(sympy, name)(*arguments)
                # SymPy writes the atan2 of some numbers as a complex logarithm.
                return self.bounded(as_given if value.has(sympy.I) else value)
        raise ValueError(f"{ast.unparse(node)[:60]!r} is not allowed in an expression")

    def chain(self, node: ast.expr, plain: type[ast.operator], inverse: type[ast.operator], depth: int) -> list[Any]:
        """The terms of a sum or the factors of a product, which Python nests on the left."""
        from sympy import sympify

        parts = []
        while isinstance(node, ast.BinOp) and isinstance(node.op, plain | inverse):
            x = self.value(node.right, depth + 1)
            if isinstance(node.op, inverse):
                x = -x if inverse is ast.Sub else self.power(x, -1)
            parts.append(x)
            node = node.left
        if inverse is ast.Div and parts and isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            # SymPy multiplies a sum out by a number that is its only other factor.
            return [sympify(-1), self.value(node.operand, depth + 1), *reversed(parts)]
        return [self.value(node, depth + 1), *reversed(parts)]

    def power(self, base: Any, exponent: Any) -> Any:
        """A power; ValueError if it is too high, before it is computed."""
        from sympy import Pow, sympify

        exponent = sympify(exponent)
        if base.is_Rational and exponent.is_Rational:
            bits = max(int(base.p).bit_length(), int(base.q).bit_length())
            if bits > 1 and bits * abs(exponent) > MOST_BITS:
                raise ValueError("it contains a power that is too large")
        _check_logarithms(exponent)
        self.width(Pow(base, exponent, evaluate=False))
        return self.bounded(Pow(base, exponent))

    def bounded(self, x: Any) -> Any:
        """The same expression; ValueError as for :meth:`width`, for a number that is not finite, or too many digits."""
        self.width(x)
        if x.is_Rational and max(int(x.p).bit_length(), int(x.q).bit_length()) > MOST_BITS:
            raise ValueError("it contains a number with too many digits")
        if not x.free_symbols:
            try:
                finite = isfinite(float(x))
            except (TypeError, OverflowError):
                finite = False
            if not finite:
                raise ValueError("it contains a number that is not real and finite")
        return x

    def width(self, x: Any) -> float:
        """About the number of terms of the real and the imaginary part; infinite for all but rational functions.

        SymPy may search hyperbolic functions, and powers with a symbol in the exponent, for these parts whenever it
        simplifies what contains them, which takes minutes unless they are short: ValueError.
        """
        if x in self.widths:
            return self.widths[x]
        parts = [self.width(part) for part in x.args]
        power = x.is_Pow and x.exp.is_number
        if power and not x.base.is_Number and abs(x.exp) > HIGHEST:
            raise ValueError(f"it contains a power above {HIGHEST}")
        found = sum(parts)
        if x.is_number or x.is_Symbol:
            found = float(not x.is_Number)
        elif found > WIDEST and (str(x.func) in SEARCHED or (x.is_Pow and not power)):
            raise ValueError(
                f"{', '.join(SEARCHED)} and powers with symbols in the exponent can only have sums, products and whole "
                f"powers of at most {WIDEST} terms"
            )
        elif x.is_Function or (x.is_Pow and not x.exp.is_Integer):
            found = inf
        elif x.is_Pow:
            found *= int(x.exp) if x.exp > 0 else -4 * int(x.exp)
        elif x.is_Mul:
            found = max(found, prod(max(1.0, part) for part in parts))
        self.widths[x] = found
        return found


def _check_logarithms(*exponents: Any) -> None:
    """Raise ValueError for large numbers beside a logarithm: SymPy computes 3**10**9 of 2**(10**9*log(3)/log(2))."""
    from sympy import Rational, log

    for exponent in exponents:
        large = any(max(abs(int(n.p)), int(n.q)) > MOST_BITS for n in exponent.atoms(Rational))
        if large and exponent.has(log):
            raise ValueError("it contains a power that is too large")
