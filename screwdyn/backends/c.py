"""A tape as C99 statements: a sequence of ``const double``; all inputs are read before any output is written.

A result that is used once is inlined into the expression that uses it, with parentheses that keep the order of
operations of the tape, so that the compiled code rounds in the same way.
"""

import math
import re
import unicodedata
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence

from screwdyn.backends.tape.tape import Recorded, Scalar, Tape
from screwdyn.core.errors import ScrewdynError

# Identifiers, and comments in ASCII

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
RESERVED = frozenset(_WORDS.split())
# ASCII replacements for the symbols in docstrings of quantities.
_SIGNS = {
    "⁻ᵀ": "^-T", "Ŝ": "S",
    "q̇": "qd", "q̈": "qdd", "ν̇": "qdd", "ν": "qd", "ċ": "c_dot", "ḣ": "h_dot", "J̇": "J_dot", "Ȧ": "A_dot", "Ṁ": "M_dot",
    "J̄": "J", "M̄": "M", "τ": "tau", "π": "pi", "Σ": "sum", "Λ": "Lambda", "ω": "w", "½": "1/2", "⁻¹": "^-1", "ᵀ": "^T",
    "²": "^2", "³": "^3", "₀": "0", "−": "-", "×": "x", "·": " ", "…": "...", "∂": "d", "‡": "padded +", "’": "'",
}  # fmt: skip


def identifiers(names: Sequence[str], taken: Collection[str] = ()) -> list[str]:
    """A C identifier for each name; equal ones, keywords of C or C++ and those in ``taken`` get a number."""
    plain = [identifier(name) for name in names]
    used, found = {*RESERVED, *taken, *plain}, []
    for i, name in enumerate(plain):
        if name in RESERVED or name in taken or re.fullmatch("M_[A-Z0-9_]+", name) or plain.count(name) > 1:
            while name in used:
                name += f"_{i}"
            used.add(name)
        found.append(name)
    return found


def identifier(name: str) -> str:
    """A name of ASCII letters, digits and underscores that begins with a letter."""
    letters = "".join(_letter(x) for x in unicodedata.normalize("NFKD", name) if not unicodedata.combining(x))
    letters = re.sub("__+", "_", letters).strip("_")  # leading and double underscores are reserved
    return letters if letters[:1].isalpha() else f"p_{letters}".rstrip("_")


def _letter(x: str) -> str:
    if x.isascii():
        return x if x.isalnum() else "_"
    greek = re.fullmatch(r"GREEK (SMALL|CAPITAL) LETTER (?:FINAL )?([A-Z]+)( SYMBOL)?", unicodedata.name(x, ""))
    if greek is None:
        return f"u{ord(x):04x}"
    return greek[2].lower() if greek[1] == "SMALL" else greek[2].capitalize()


def ascii_text(text: str) -> str:
    """The first sentence of a docstring in ASCII, without references, markup and batch shapes, for a comment."""
    text = unicodedata.normalize("NFC", text)
    text = re.sub(r",? ?(?:and )?\(…[^)]*\)| \((?:docs/|§|Laus)[^)]*\)", "", text)
    text = re.sub(r":meth:`([^`]*)`|``([^`]*)``", lambda match: match[1] or match[2], text).split(". ")[0]
    for sign, word in _SIGNS.items():
        text = text.replace(unicodedata.normalize("NFC", sign), word)
    return text.encode("ascii", "backslashreplace").decode().replace("*/", "* /").replace("??", "? ?").rstrip(".")


# Statements

_LONGEST = 44  # largest number of characters of an inlined expression; keeps lines below 120
_STRENGTH = {"+": 1, "-": 1, "*": 2, "/": 2}
_SIGNS_OF = {"positive": "{} > 0.0 ? 1.0 : 0.0", "negative": "{} < 0.0 ? 1.0 : 0.0"}


def number(value: float) -> str:
    """C text of a double, with all its digits."""
    if not math.isfinite(value):
        raise ScrewdynError(f"a constant of the robot is {value}, which is not finite; rescale the model")
    return repr(float(value))


def statements(tape: Tape, outputs: Mapping[str, Sequence[Scalar]], read: Callable[[Hashable], str]) -> list[str]:
    """C statements that compute some arrays."""
    scalars = [x for array in outputs.values() for x in array]
    live = tape.live(scalars)
    # Outputs are not inlined: no argument may be read after the first output is written.
    uses = dict.fromkeys(live, 0)
    for at in live:
        for operand in tape.nodes[at].operands:
            uses[operand] += 1
    written = {x.node for x in scalars if isinstance(x, Recorded)}
    text: dict[int, tuple[str, int]] = {}
    inputs, lines = [], []
    for at in live:
        op, a, b = tape.nodes[at]
        if op == "constant":
            text[at] = number(a), 3
            continue
        if op == "input":
            inputs.append(f"const double x{at} = {read(a)};")
            text[at] = f"x{at}", 3
            continue
        if op in _SIGNS_OF:
            expression, strength = _SIGNS_OF[op].format(_operand(text[a], 1)), 0
        elif b is None:
            expression, strength = f"{op}({text[a][0]})", 3
        else:
            strength = _STRENGTH[op]
            expression = f"{_operand(text[a], strength)} {op} {_operand(text[b], strength + 1)}"
        if uses[at] == 1 and at not in written and len(expression) <= _LONGEST:
            text[at] = expression, strength
        else:
            lines.append(f"const double x{at} = {expression};")
            text[at] = f"x{at}", 3
    for name, array in outputs.items():
        for i, x in enumerate(array):
            value = ("-" if x.minus else "") + text[x.node][0] if isinstance(x, Recorded) else number(x)
            lines.append(f"{name}[{i}] = {value};")
    return inputs + lines


def _operand(text: tuple[str, int], strength: int) -> str:
    """An operand, in parentheses if its operation has lower precedence than the enclosing one."""
    expression, own = text
    return expression if own >= strength else f"({expression})"
