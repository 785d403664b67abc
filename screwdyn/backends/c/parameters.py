"""Numbers of a robot that hold SymPy symbols, in C: a struct of parameters, and what is computed from its members."""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import sympy
from sympy.printing.c import C99CodePrinter

from screwdyn.backends.c.statements import number
from screwdyn.core.errors import ScrewdynError

__all__ = ["computed", "member_names"]

# Keywords of C99 and C++20, and macros that <math.h> or a compiler's GNU dialect defines.
_WORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class co_await
co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype default delete do
double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable namespace
new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires restrict
return short signed sizeof static static_assert static_cast struct switch template this thread_local throw true try
typedef typeid typename typeof union unsigned using virtual void volatile wchar_t while xor xor_eq linux unix i386
DOMAIN FP_FAST_FMA FP_ILOGB0 FP_ILOGBNAN FP_INFINITE FP_NAN FP_NORMAL FP_SUBNORMAL FP_ZERO HUGE HUGE_VAL HUGE_VALF
HUGE_VALL INFINITY MATH_ERREXCEPT MATH_ERRNO MAXFLOAT NAN OVERFLOW PLOSS SING TLOSS UNDERFLOW X_TLOSS math_errhandling
"""
_RESERVED = frozenset(_WORDS.split())


def member_names(symbols: Iterable[sympy.Symbol], taken: Collection[str] = ()) -> dict[sympy.Symbol, str]:
    """A C name for each symbol: its own name as far as C takes it, Greek letters by their names.

    What is no letter, digit or underscore becomes an underscore. Where two names come out the same, or one is a keyword
    of C or C++ or ``taken`` by a macro, underscores and a number are added.

    Raises
    ------
    ScrewdynError
        If two of the symbols have the same name.
    """
    symbols = list(symbols)
    repeated = sorted(name for name, times in Counter(x.name for x in symbols).items() if times > 1)
    if repeated:
        raise ScrewdynError(
            f"{', '.join(repeated)} is the name of two symbols that are assumed to be different things; use one of them"
        )
    plain = [_plain(x.name) for x in symbols]
    used, names = {*_RESERVED, *taken, *plain}, []
    for i, name in enumerate(plain):
        if name in _RESERVED or name in taken or re.fullmatch("M_[A-Z0-9_]+", name) or plain.count(name) > 1:
            while name in used:
                name += f"_{i}"
            used.add(name)
        names.append(name)
    return dict(zip(symbols, names, strict=True))


def _plain(name: str) -> str:
    """A name in letters, digits and underscores of ASCII, beginning with a letter."""
    letters = "".join(_letter(x) for x in unicodedata.normalize("NFKD", name) if not unicodedata.combining(x))
    letters = re.sub("__+", "_", letters).strip("_")  # leading and double underscores belong to compilers
    return letters if letters[:1].isalpha() else f"p_{letters}".rstrip("_")


def _letter(x: str) -> str:
    if x.isascii():
        return x if x.isalnum() else "_"
    greek = re.fullmatch(r"GREEK (SMALL|CAPITAL) LETTER (?:FINAL )?([A-Z]+)( SYMBOL)?", unicodedata.name(x, ""))
    if greek is None:
        return f"u{ord(x):04x}"
    return greek[2].lower() if greek[1] == "SMALL" else greek[2].capitalize()


def computed(
    expressions: Iterable[sympy.Expr], members: Mapping[sympy.Symbol, str], struct: str
) -> tuple[list[str], dict[sympy.Expr, str]]:
    """C for some expressions: statements that compute what several of them share, and the text of each.

    Parameters
    ----------
    expressions : SymPy expressions
    members : mapping
        Names of the members of a struct for all their symbols.
    struct : str
        A pointer to that struct.

    Raises
    ------
    ScrewdynError
        If C has no function for something in the expressions.
    """
    wanted = list(expressions)
    shared, reduced = sympy.cse(wanted, symbols=sympy.numbered_symbols("c", cls=sympy.Dummy))
    names: dict[Any, str] = {symbol: f"{struct}->{name}" for symbol, name in members.items()}
    names |= {symbol: symbol.name for symbol, _ in shared}
    printer = _Printer(names)
    lines = [f"const double {symbol.name} = {printer.text(value)};" for symbol, value in shared]
    return lines, {x: printer.text(value) for x, value in zip(wanted, reduced, strict=True)}


class _Printer(C99CodePrinter):  # type: ignore[misc]  # SymPy has no types
    """Doubles throughout, with all their digits, and no constant that strict C99 lacks."""

    def __init__(self, names: Mapping[Any, str]) -> None:
        super().__init__({"human": False, "math_macros": {}})
        self._names = names

    def text(self, expression: sympy.Expr) -> str:
        constants, unknown, text = self.doprint(expression)
        assert not constants
        if unknown:
            strange = sorted({x.func.__name__ for x in unknown})
            raise ScrewdynError(f"C has no function for {', '.join(strange)}, which a number of the robot holds")
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
