"""Text in LLVM's intermediate representation: operations on values of one width, and sine and cosine.

The order of operations and every fused multiply-add are explicit, and the compiler may not reorder them. The results
for a state therefore have the same bits alone, in any lane of a batch and with any number of threads.
"""

import math
import struct

__all__ = ["PREFETCH", "RANGE", "SELDOM", "SINCOS", "Code", "near_sincos", "number", "sincos", "tanh"]

# Larger angles, in radians, are passed to the C library.
RANGE = 2.0**30
SINCOS = "sincos"
# Metadata of branches that are hardly ever taken.
SELDOM = '!0 = !{!"branch_weights", i32 1, i32 1000}'
# Declaration for modules that use ``Code.prefetch``.
PREFETCH = "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)"

# Minimax polynomials of sin(r)/r − 1 and cos(r) − 1 + r²/2 on |r| ≤ π/4 in powers of r², highest first: Moshier,
# Cephes Mathematical Library, sin.c (coefficients sincof and coscof).
_SIN = (
    1.58962301576546568060e-10,
    -2.50507477628578072866e-8,
    2.75573136213857245213e-6,
    -1.98412698295895385996e-4,
    8.33333333332211858878e-3,
    -1.66666666666666307295e-1,
)
_COS = (
    -1.13585365213876817300e-11,
    2.08757008419747316778e-9,
    -2.75573141792967388112e-7,
    2.48015872888517045348e-5,
    -1.38888888888730564116e-3,
    4.16666666666665929218e-2,
)
# π/2 in three parts of 53 bits (Cody & Waite, Software Manual for the Elementary Functions, 1980).
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33)
# ln 2 in two parts, the first with trailing zeros; and the degree of the Taylor polynomial of exp up to ln 2 / 2.
_LN_2, _TAYLOR = (0.693145751953125, 1.4286068203094173e-06), 13
# Adding it to a double puts the nearest integer into the lowest bits.
_SHIFT = 1.5 * 2.0**52


def number(x: float) -> str:
    """Text of a constant, exact to the last bit."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"


class Code:
    """Operations on values of one width, in the order in which they are written.

    Attributes
    ----------
    width : int
        Lanes; 1 for scalars.
    type : str
    lines : list of str
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self.type = "double" if width == 1 else f"<{width} x double>"
        self.suffix = "f64" if width == 1 else f"v{width}f64"
        self.lines: list[str] = []
        self._count = 0

    def let(self, operation: str) -> str:
        """Write an operation; returns the name of its result."""
        self._count += 1
        name = f"%t{self._count}"
        self.lines.append(f"  {name} = {operation}")
        return name

    def do(self, line: str) -> None:
        """Write an operation without a result."""
        self.lines.append(f"  {line}")

    def label(self, name: str) -> None:
        """Begin a block."""
        self.lines.append(f"{name}:")

    def constant(self, x: float) -> str:
        """A number in every lane."""
        text = number(x)
        return text if self.width == 1 else "<" + ", ".join([f"double {text}"] * self.width) + ">"

    def integers(self, k: int) -> str:
        """An integer in every lane."""
        return "<" + ", ".join([f"i64 {k}"] * self.width) + ">"

    def binary(self, op: str, a: str, b: str) -> str:
        """Sum, difference, product or quotient: op is fadd, fsub, fmul or fdiv."""
        return self.let(f"{op} {self.type} {a}, {b}")

    def negative(self, a: str) -> str:
        """−a."""
        return self.let(f"fneg {self.type} {a}")

    def fma(self, a: str, b: str, c: str) -> str:
        """a b + c, rounded once."""
        t = self.type
        return self.let(f"call {t} @llvm.fma.{self.suffix}({t} {a}, {t} {b}, {t} {c})")

    def splat(self, scalar: str) -> str:
        """A scalar in every lane."""
        if self.width == 1:
            return scalar
        first = self.let(f"insertelement {self.type} poison, double {scalar}, i64 0")
        zeros = f"<{self.width} x i32> zeroinitializer"
        return self.let(f"shufflevector {self.type} {first}, {self.type} poison, {zeros}")

    def prefetch(self, pointer: str, ahead: str | int, write: bool) -> None:
        """Prefetch ``ahead`` bytes after an address; there are more streams than the processor prefetches itself.

        Data are read to the second-level cache: the first has too few ways for so many streams.
        """
        later = self.let(f"getelementptr i8, ptr {pointer}, i64 {ahead}")
        self.do(f"call void @llvm.prefetch.p0(ptr {later}, i32 {int(write)}, i32 2, i32 1)")

    def sqrt(self, a: str) -> str:
        """The square root, correctly rounded."""
        return self.let(f"call {self.type} @llvm.sqrt.{self.suffix}({self.type} {a})")

    def declarations(self) -> str:
        """Declarations of the functions that operations call."""
        t = self.type
        arguments = {"fma": 3, "sqrt": 1, "fabs": 1, "copysign": 2}
        return "\n".join(
            f"declare {t} @llvm.{name}.{self.suffix}({', '.join([t] * n)})" for name, n in arguments.items()
        )


def tanh(c: Code, x: str) -> str:
    """Write the hyperbolic tangent in every lane of a vector, with an error of at most 3 units in the last place.

    tanh |x| = e / (e + 2) with e = exp(y) − 1 and y = 2 |x|, which is limited to 40 because tanh 20 rounds to 1. With
    y = k ln 2 + r and |r| ≤ ln 2 / 2, e = 2ᵏ p + (2ᵏ − 1), where p = exp(r) − 1 by its Taylor polynomial.
    """
    integers = f"<{c.width} x i64>"
    size = c.let(f"call {c.type} @llvm.fabs.{c.suffix}({c.type} {x})")
    y = c.binary("fadd", size, size)
    # The comparison is false for NaN, which stays NaN.
    large = c.let(f"fcmp ogt {c.type} {y}, {c.constant(40.0)}")
    y = c.let(f"select <{c.width} x i1> {large}, {c.type} {c.constant(40.0)}, {c.type} {y}")
    shifted = c.fma(y, c.constant(1 / math.log(2)), c.constant(_SHIFT))
    k, r = c.binary("fsub", shifted, c.constant(_SHIFT)), y
    for part in _LN_2:
        r = c.fma(k, c.constant(-part), r)
    p = c.constant(1 / math.factorial(_TAYLOR))
    for power in range(_TAYLOR - 1, 0, -1):
        p = c.fma(p, r, c.constant(1 / math.factorial(power)))
    p = c.binary("fmul", p, r)
    exponent = c.let(f"add {integers} {c.let(f'bitcast {c.type} {shifted} to {integers}')}, {c.integers(1023)}")
    scale = c.let(f"bitcast {integers} {c.let(f'shl {integers} {exponent}, {c.integers(52)}')} to {c.type}")
    e = c.fma(scale, p, c.binary("fsub", scale, c.constant(1.0)))
    t = c.binary("fdiv", e, c.binary("fadd", e, c.constant(2.0)))
    return c.let(f"call {c.type} @llvm.copysign.{c.suffix}({c.type} {t}, {c.type} {x})")


def near_sincos(c: Code, x: str) -> tuple[str, str, str]:
    """Write sine and cosine in every lane; returns their names, and a condition that an angle is beyond ``RANGE``.

    x = k π/2 + r with |r| ≤ π/4: the first fused step of the reduction is exact, the second rounds r once, the third
    adds the remaining digits of π/2.
    """
    t, n = c.type, c.width
    integers = f"<{n} x i64>"
    shifted = c.fma(x, c.constant(0.6366197723675814), c.constant(_SHIFT))
    k, r = c.binary("fsub", shifted, c.constant(_SHIFT)), x
    for part in _HALF_PI:
        r = c.fma(k, c.constant(-part), r)
    r2 = c.binary("fmul", r, r)
    s, o = c.constant(_SIN[0]), c.constant(_COS[0])
    for a, b in zip(_SIN[1:], _COS[1:], strict=True):
        s, o = c.fma(s, r2, c.constant(a)), c.fma(o, r2, c.constant(b))
    s = c.fma(c.binary("fmul", r, r2), s, r)
    o = c.fma(r2, c.fma(r2, o, c.constant(-0.5)), c.constant(1.0))
    # Odd quadrants swap the two; the second bit of k, and of k + 1, is the sign.
    bits = c.let(f"bitcast {t} {shifted} to {integers}")
    odd = c.let(f"trunc {integers} {bits} to <{n} x i1>")
    values = []
    for which, (yes, no) in enumerate(((o, s), (s, o))):
        value = c.let(f"select <{n} x i1> {odd}, {t} {yes}, {t} {no}")
        quadrant = c.let(f"add {integers} {bits}, {c.integers(which)}") if which else bits
        sign = c.let(f"and {integers} {c.let(f'shl {integers} {quadrant}, {c.integers(62)}')}, {c.integers(-(2**63))}")
        signed = c.let(f"xor {integers} {c.let(f'bitcast {t} {value} to {integers}')}, {sign}")
        values.append(c.let(f"bitcast {integers} {signed} to {t}"))
    size = c.let(f"call {t} @llvm.fabs.{c.suffix}({t} {x})")
    return values[0], values[1], c.let(f"fcmp ugt {t} {size}, {c.constant(RANGE)}")


def sincos(width: int) -> str:
    """Text of a module with ``sincos``: sine and cosine in every lane, without branches up to ``RANGE``.

    Angles beyond the range are passed to the C library one by one.
    """
    c = Code(width)
    t, n = c.type, width
    *values, far = near_sincos(c, "%x")
    mask = c.let(f"bitcast <{n} x i1> {far} to i{n}")
    any_far = c.let(f"icmp ne i{n} {mask}, 0")
    pair = f"{{ {t}, {t} }}"
    c.do(f"br i1 {any_far}, label %lane, label %done, !prof !0")
    c.label("lane")
    c.do("%i = phi i64 [ 0, %0 ], [ %next, %after ]")
    c.do(f"%s0 = phi {t} [ {values[0]}, %0 ], [ %s1, %after ]")
    c.do(f"%c0 = phi {t} [ {values[1]}, %0 ], [ %c1, %after ]")
    c.do(f"%here = extractelement <{n} x i1> {far}, i64 %i")
    c.do("br i1 %here, label %exact, label %after")
    c.label("exact")
    c.do(f"%angle = extractelement {t} %x, i64 %i")
    c.do("%sine = call double @sin(double %angle)")
    c.do("%cosine = call double @cos(double %angle)")
    c.do(f"%s2 = insertelement {t} %s0, double %sine, i64 %i")
    c.do(f"%c2 = insertelement {t} %c0, double %cosine, i64 %i")
    c.do("br label %after")
    c.label("after")
    c.do(f"%s1 = phi {t} [ %s0, %lane ], [ %s2, %exact ]")
    c.do(f"%c1 = phi {t} [ %c0, %lane ], [ %c2, %exact ]")
    c.do("%next = add i64 %i, 1")
    c.do(f"%more = icmp ult i64 %next, {n}")
    c.do("br i1 %more, label %lane, label %done")
    c.label("done")
    c.do(f"%s = phi {t} [ {values[0]}, %0 ], [ %s1, %after ]")
    c.do(f"%c = phi {t} [ {values[1]}, %0 ], [ %c1, %after ]")
    c.do(f"%p = insertvalue {pair} poison, {t} %s, 0")
    c.do(f"%pc = insertvalue {pair} %p, {t} %c, 1")
    c.do(f"ret {pair} %pc")
    return "\n".join(
        [
            f"define {pair} @{SINCOS}({t} %x) {{",
            *c.lines,
            "}",
            c.declarations(),
            "declare double @sin(double)",
            "declare double @cos(double)",
            SELDOM,
        ]
    )
