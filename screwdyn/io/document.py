"""What readers share: documents, their entries with places, all of whose problems are collected, expressions, names.

Expressions of SymPy are written as text and read back; the text is parsed, never evaluated as Python code.
"""

from __future__ import annotations

import ast
import json
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import count
from keyword import iskeyword
from math import inf, isfinite, prod
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from unicodedata import normalize

from screwdyn.core import ModelError, ScrewdynError, ScrewdynWarning, URDFError, expressions
from screwdyn.core.types import NAME, Array, ArrayLike, is_name
from screwdyn.mechanism.inertia import Inertia, failing_condition

# What could not be read: a function that adds a problem returns None in its place.
Missing = TypeVar("Missing")


@dataclass(frozen=True, slots=True)
class PlacedProblem:
    """One problem of a document.

    Attributes
    ----------
    place : str
        The keys that lead to the entry, such as ``links[3].joint.damping``; empty for the document itself.
    message, hint : str
        The problem, and what to do about it (may be empty).
    """

    place: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        place = f"{self.place}: " if self.place else ""
        return f"{place}{self.message}" + (f"; {self.hint}" if self.hint else "")


class NotANumber(str):
    """The text of a number that is not finite: NaN, Infinity, or one that no float can hold."""


class Table(dict[str, Any]):
    """A mapping of a document, made of its keys and values, with the keys that are given more than once."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        counts = Counter(key for key, _ in pairs) if len(self) < len(pairs) else {}
        self.repeated = [key for key, count in counts.items() if count > 1]


def listed(title: str, problems: Sequence[object]) -> str:
    """The message of an error with all problems of a document."""
    count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
    return "\n  ".join([f"{count} in {title}", *map(str, problems)])


class Entry:
    """A value of a document, its place, and the list that receives its problems.

    The readers return ``None`` (or nothing) after they have added a problem. If there are symbols, by name, numbers may
    be texts with expressions.
    """

    __slots__ = ("place", "problems", "symbols", "value")

    def __init__(self, value: Any, place: str, problems: list[PlacedProblem], symbols: Any = None) -> None:
        self.value, self.place, self.problems, self.symbols = value, place, problems, symbols

    @property
    def plain(self) -> Entry:
        """The same entry, whose numbers are no expressions."""
        return Entry(self.value, self.place, self.problems)

    def wrong(self, message: str, hint: str = "") -> Missing | None:
        """Add a problem of this entry; returns None, in place of what cannot be read."""
        self.problems.append(PlacedProblem(self.place, message, hint))
        return None

    def unexpected(self, expected: str) -> Missing | None:
        """Add the problem that the value is not what was expected, likewise."""
        return self.wrong(f"expected {expected}; got {_described(self.value)}")

    def made(self, make: Callable[..., Missing], *given: Any, **options: Any) -> Missing | None:
        """What a function returns, such as a constructor; its error becomes a problem."""
        try:
            return make(*given, **options)
        except ScrewdynError as error:
            return self.wrong(str(error))
        except ArithmeticError as error:  # of exact numbers that SymPy cannot tell from 0
            return self.wrong(f"SymPy cannot compute its numbers ({str(error) or type(error).__name__})")

    def near(self, name: str, known: Iterable[str]) -> str:
        """A hint with the known names that are similar, or some of them."""
        return similar(name, known, len(self.problems))

    def table(self, required: Sequence[str] = (), optional: Sequence[str] = ()) -> dict[str, Entry]:
        """Entries by key; missing, unknown and repeated keys are problems."""
        if not isinstance(self.value, dict):
            self.unexpected(f"the keys {', '.join((*required, *optional))}")
            return {}
        known = (*required, *optional)
        for key in self.value:
            if key not in known:
                self.below(key).wrong("unknown key", self.near(key, known))
        for key in required:
            if key not in self.value:
                self.wrong(f"the key {key!r} is missing")
        found = self.entries()
        return {key: found[key] for key in known if key in found}

    def read(
        self, required: Mapping[str, Callable[[Entry], Any]], optional: Mapping[str, Callable[[Entry], Any]]
    ) -> dict[str, Any] | None:
        """What readers make of the entries by key; None after a problem, which missing and unknown keys are too."""
        before, readers = len(self.problems), {**required, **optional}
        found = {key: readers[key](entry) for key, entry in self.table([*required], [*optional]).items()}
        return found if len(self.problems) == before else None

    def variant(self, key: str, known: Iterable[str]) -> Any:
        """One of some words under the key that decides which other keys there are; these are not checked here."""
        if not isinstance(self.value, dict):
            return self.unexpected(f"the key {key!r}, which is one of {', '.join(known)}, and others")
        if key not in self.value:
            near = get_close_matches(key, map(str, self.value), n=1)
            return self.wrong(f"the key {key!r} is missing", f"write it instead of {near[0]!r}" if near else "")
        return self.below(key).one_of(*known)

    def entries(self) -> dict[str, Entry]:
        """Entries by key, whatever the keys are; repeated keys are problems."""
        if not isinstance(self.value, dict):
            self.unexpected("keys and values")
            return {}
        for key in getattr(self.value, "repeated", ()):
            self.below(key).wrong("the key is given more than once", "keep one")
        return {key: self.below(key) for key in self.value}

    def items(self, what: str = "a list") -> list[Entry]:
        """The entries of a list."""
        if not isinstance(self.value, list):
            self.unexpected(what)
            return []
        return [Entry(x, f"{self.place}[{k}]", self.problems, self.symbols) for k, x in enumerate(self.value)]

    def text(self, what: str = NAME) -> str | None:
        """A string that is a name."""
        whole = is_name(self.value) and type(self.value) is not NotANumber
        return str(self.value) if whole else self.unexpected(what)

    def one_of(self, *known: Any) -> Any:
        """One of some words or integers."""
        whole = type(self.value) in (str, int) and self.value in known
        return self.value if whole else self.unexpected(f"one of {', '.join(map(repr, known))}")

    def flag(self) -> bool | None:
        """True or false."""
        return self.value if isinstance(self.value, bool) else self.unexpected("true or false")

    def number(self, what: str = "a number", largest: float = expressions.LARGEST) -> Any:
        """A finite number or an expression; above `largest` in magnitude is a problem: products would overflow."""
        value = self.value
        if type(value) is str and self.symbols is not None:
            try:
                value = expression_of(value, self.symbols)
            except ValueError as error:
                return self.wrong(f"the expression {shown(value)!r}: {error}")
            if value.free_symbols:
                return value
        elif type(value) not in (float, int, NotANumber):
            return self.unexpected(what)
        # SymPy takes seconds to compare some exact numbers, which it evaluates at once.
        size = inf if type(value) is NotANumber else float(value) if expressions.is_expression(value) else value
        if -largest <= size <= largest:
            return value
        bound = "not a finite number" if size != size or abs(size) == inf else f"larger than {largest:g}"
        return self.wrong(f"{_described(value)} is {bound}", "give a finite value in SI units")

    def numbers(self, count: int) -> list[Any] | None:
        """A list of so many finite numbers."""
        value = self.value
        if type(value) is not list or len(value) != count:
            return self.unexpected(f"a list of {count} numbers")
        if all(type(x) is float and -expressions.LARGEST <= x <= expressions.LARGEST for x in value):
            return value
        found = [x.number() for x in self.items()]
        return None if any(x is None for x in found) else found

    def matrix(self, columns: int, rows: int | None = None) -> list[list[Any]] | None:
        """A list of rows of so many finite numbers, at least one row."""
        items = self.items(f"rows of {columns} numbers")
        found = [row.numbers(columns) for row in items]
        if isinstance(self.value, list) and (not items or rows not in (None, len(items))):
            return self.unexpected(f"{'some' if rows is None else rows} rows of {columns} numbers")
        whole = [row for row in found if row is not None]
        return whole if items and len(whole) == len(items) else None

    def below(self, key: str) -> Entry:
        """The entry under a key, whose value is None if there is none."""
        place = key if key.isidentifier() else repr(shown(key))
        value = self.value.get(key) if isinstance(self.value, dict) else None
        place = f"{self.place}.{place}" if self.place else place
        return Entry(value, place, self.problems, self.symbols)


def _described(value: object) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if type(value) is str:
        return repr(shown(value))
    return shown(str(value))


class Source(NamedTuple):
    """A document, what messages call it, its encoding and file if they are known, and empty lines cut off before it."""

    title: str
    document: bytes
    encoding: str | None = None
    skipped_lines: int = 0
    path: Path | None = None


def read_source(path_or_text: str | os.PathLike[str], kind: str, opening: str, error: type[ScrewdynError]) -> Source:
    """Read a document of a kind such as "URDF"; a string is text if it begins with a character of `opening`."""
    hint = f"give the path of a {kind} file, or its text beginning with {opening[0]!r}"
    if isinstance(path_or_text, str):
        text = path_or_text.lstrip("\ufeff \t\r\n")
        if text.startswith(tuple(opening)):
            skipped = path_or_text[: len(path_or_text) - len(text)]
            return Source(f"the {kind} text", text.encode("utf-8", "replace"), "utf-8", skipped.count("\n"))
        if not text:
            raise error(f"cannot read the file {shown(path_or_text)!r}: the path is empty; {hint}")
    elif not isinstance(path_or_text, os.PathLike):
        decode = "; decode bytes to a str first" if isinstance(path_or_text, bytes) else ""
        raise error(f"a {type(path_or_text).__name__} is not a {kind}: {hint}{decode}")
    path = Path(path_or_text)
    name = shown(str(path_or_text), 200)
    try:
        return Source(name, path.read_bytes(), path=path)
    except (OSError, ValueError) as wrong:
        reason = wrong.strerror if isinstance(wrong, OSError) else str(wrong)
        raise error(f"cannot read the file {name!r}: {reason}; {hint}") from None


def shown(text: str, width: int = 60) -> str:
    """Text for a message, shortened to a width."""
    return text if len(text) <= width else text[: width - 1] + "…"


def some(names: Iterable[str], most: int = 8) -> str:
    """Names for a message, of which the first are listed."""
    first, more = (names := list(names))[:most], len(names) > most
    return ", ".join(first) + ", …" * more


def similar(name: str, known: Iterable[str], problems: int = 0) -> str:
    """The known names that are similar, or some of them; `problems` is the number of those found before."""
    # The search is slow: only in the first problems of a document, among not too many names.
    if problems >= 50:
        return ""
    names = list(known)
    near = get_close_matches(name, names, n=3, cutoff=0.5) if len(names) <= 1000 else []
    if near:
        return f"did you mean {' or '.join(repr(shown(x)) for x in near)}?"
    return f"known: {some(map(shown, names), 30) or 'none'}"


def unused(stem: str, taken: set[str]) -> str:
    """The first of stem, stem_2, stem_3, … that is not taken; it is taken then."""
    names = (stem if k == 1 else f"{stem}_{k}" for k in count(1))
    name = next(name for name in names if name not in taken)
    taken.add(name)
    return name


def known_effective(mass: float, com: ArrayLike, tensor: ArrayLike) -> Inertia:
    """`Inertia.effective` without its warning; the caller reports it with the line or row."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ScrewdynWarning)
        return Inertia.effective(mass, com, tensor)


def inertia_of(mass: float, com: Array, tensor: Array, doubtful: Callable[[str], None]) -> Inertia | None:
    """The inertia of a link, None if it has neither mass nor moments; `doubtful` is told why no rigid body has it."""
    if mass == 0 and not tensor.any():
        return None
    failing = failing_condition(mass, tensor)
    if failing is None:
        return Inertia(mass, com, tensor)
    doubtful(failing)
    return known_effective(mass, com, tensor)


class Findings:
    """What is wrong with a model or a tree: errors, and warnings, which are reported together under two titles."""

    def __init__(self, error: type[ModelError] | type[URDFError], refused: str, lost: str) -> None:
        self.error, self.refused, self.lost = error, refused, lost
        self.errors: list[str] = []
        self.warnings: list[str] = []

    def report(self, strict: bool = False) -> None:
        """Raise the error with all errors (and, if `strict`, all warnings), or issue one ScrewdynWarning."""
        problems = [*self.errors, *(self.warnings if strict else ())]
        if problems:
            raise self.error("\n  ".join([self.refused, *problems]), problems)
        if self.warnings:
            # The caller of KinematicTree.from_… or to_…
            warnings.warn("\n  ".join([self.lost, *self.warnings]), ScrewdynWarning, stacklevel=4)

    def inertia(self, link: str, mass: float, com: Array, tensor: Array) -> Inertia | None:
        """The inertia of a link; a warning if no rigid body has it."""
        doubt = f"link {link!r}: no rigid body has its inertia, which is used as it is"
        return inertia_of(mass, com, tensor, lambda failing: self.warnings.append(f"{doubt}: {failing}"))


# Expressions ----------------------------------------------------------------------------------------------------------

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
