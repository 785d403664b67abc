"""Numbers of a robot with SymPy symbols, in C: a parameter struct, and expressions of its members."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import sympy
from sympy.printing.c import C99CodePrinter

from screwdyn.backends.c.names import identifiers
from screwdyn.backends.c.statements import number
from screwdyn.core.errors import ScrewdynError

__all__ = ["computed", "member_names"]


def member_names(symbols: Iterable[sympy.Symbol], taken: Collection[str] = ()) -> dict[sympy.Symbol, str]:
    """The name of the struct member for each symbol; see :func:`screwdyn.backends.c.names.identifiers`.

    Raises
    ------
    ScrewdynError
        If two of the symbols have the same name.
    """
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
    """C text of some expressions: statements for their common subexpressions, and the text of each expression.

    Parameters
    ----------
    expressions : SymPy expressions
    members : mapping
        Names of the struct members for all symbols of the expressions.
    struct : str
        Name of a pointer to that struct.

    Raises
    ------
    ScrewdynError
        If an expression contains a function that C does not have.
    """
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
