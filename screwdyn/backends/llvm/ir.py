"""Text in LLVM's intermediate representation that serves all functions: operations on values of one width, sine and
cosine, and the loop over a batch.

The order of operations and every fused multiply-add are explicit, and the compiler may not reorder them. The results
for a state therefore have the same bits alone, in any lane of a batch and with any number of threads.
"""

import math
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

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
    """Operations on values of one width, in the order in which they are written."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.type = "double" if width == 1 else f"<{width} x double>"
        self.suffix = "f64" if width == 1 else f"v{width}f64"
        self.lines: list[str] = []
        self._count, self.block = 0, "0"

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
        self.block = name

    def branch(self, condition: str, yes: str, no: str, seldom: bool = False) -> None:
        """End a block and continue with one of two others; metadata !0 tells if the first is ``seldom`` taken."""
        self.do(f"br i1 {condition}, label %{yes}, label %{no}{', !prof !0' * seldom}")

    @contextmanager
    def loop(
        self, name: str, end: str, step: int | str = 1, first: str = "0", **others: tuple[str, str]
    ) -> Iterator[None]:
        """Repeat a block for an integer %name from ``first`` on until it is ``end``, and at least once.

        Of ``others``, %name_x has a first value and a step too. The block ends at the label name_end.
        """
        counters = {name: (first, str(step)), **{f"{name}_{x}": given for x, given in others.items()}}
        before = self.block
        self.do(f"br label %{name}_begin")
        self.label(f"{name}_begin")
        for x, (start, _) in counters.items():
            self.do(f"%{x} = phi i64 [ {start}, %{before} ], [ %{x}1, %{name}_end ]")
        yield
        self.do(f"br label %{name}_end")
        self.label(f"{name}_end")
        for x, (_, by) in counters.items():
            self.do(f"%{x}1 = add i64 %{x}, {by}")
        self.branch(self.let(f"icmp slt i64 %{name}1, {end}"), f"{name}_begin", f"{name}_after")
        self.label(f"{name}_after")

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
        return self.call("fma", a, b, c)

    def splat(self, scalar: str, kind: str = "double") -> str:
        """A scalar in every lane."""
        if self.width == 1:
            return scalar
        vector, zeros = f"<{self.width} x {kind}>", f"<{self.width} x i32> zeroinitializer"
        first = self.let(f"insertelement {vector} poison, {kind} {scalar}, i64 0")
        return self.let(f"shufflevector {vector} {first}, {vector} poison, {zeros}")

    def prefetch(self, pointer: str, ahead: str | int, write: bool) -> None:
        """Prefetch to the second-level cache: the first has too few ways for so many streams."""
        later = self.at(pointer, ahead, "i8")
        self.do(f"call void @llvm.prefetch.p0(ptr {later}, i32 {int(write)}, i32 2, i32 1)")

    def call(self, name: str, *a: str) -> str:
        """A function of LLVM in every lane: fma, sqrt (correctly rounded), fabs or copysign."""
        arguments = ", ".join(f"{self.type} {x}" for x in a)
        return self.let(f"call {self.type} @llvm.{name}.{self.suffix}({arguments})")

    def at(self, pointer: str, k: str | int, kind: str = "") -> str:
        """Address of entry k after a pointer, by default to values of the width."""
        return self.let(f"getelementptr {kind or self.type}, ptr {pointer}, i64 {k}")

    def load(self, pointer: str, kind: str = "", align: int = 8) -> str:
        """The value at an address."""
        return self.let(f"load {kind or self.type}, ptr {pointer}, align {align}")

    def function(self, head: str, *others: str) -> str:
        """Text of a module with the operations as a function, what they call, and other texts."""
        t, called = self.type, {"fma": 3, "sqrt": 1, "fabs": 1, "copysign": 2}
        known = (f"declare {t} @llvm.{name}.{self.suffix}({', '.join([t] * n)})" for name, n in called.items())
        return "\n".join([f"define {head} {{", *self.lines, "}", *known, *others])


def tanh(c: Code, x: str) -> str:
    """Write the hyperbolic tangent in every lane of a vector, with an error of at most 3 units in the last place.

    tanh |x| = e / (e + 2) with e = exp(y) − 1 and y = 2 |x|, which is limited to 40 because tanh 20 rounds to 1. With
    y = k ln 2 + r and |r| ≤ ln 2 / 2, e = 2ᵏ p + (2ᵏ − 1), where p = exp(r) − 1 by its Taylor polynomial.
    """
    integers = f"<{c.width} x i64>"
    size = c.call("fabs", x)
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
    return c.call("copysign", t, x)


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
    size = c.call("fabs", x)
    return values[0], values[1], c.let(f"fcmp ugt {t} {size}, {c.constant(RANGE)}")


def sincos(width: int) -> str:
    """Module text of ``sincos`` of every lane; the C library computes those of angles beyond ``RANGE``."""
    c = Code(width)
    t, n = c.type, width
    *values, far = near_sincos(c, "%x")
    mask = c.let(f"bitcast <{n} x i1> {far} to i{n}")
    any_far = c.let(f"icmp ne i{n} {mask}, 0")
    pair = f"{{ {t}, {t} }}"
    c.branch(any_far, "exact", "done", seldom=True)
    c.label("exact")
    exact = ["poison", "poison"]
    for lane in range(n):
        angle = c.let(f"extractelement {t} %x, i64 {lane}")
        for k, function in enumerate(("sin", "cos")):
            y = c.let(f"call double @{function}(double {angle})")
            exact[k] = c.let(f"insertelement {t} {exact[k]}, double {y}, i64 {lane}")
    chosen = [c.let(f"select <{n} x i1> {far}, {t} {y}, {t} {x}") for y, x in zip(exact, values, strict=True)]
    c.do("br label %done")
    c.label("done")
    s, o = (c.let(f"phi {t} [ {x}, %0 ], [ {y}, %exact ]") for x, y in zip(values, chosen, strict=True))
    whole = c.let(f"insertvalue {pair} {c.let(f'insertvalue {pair} poison, {t} {s}, 0')}, {t} {o}, 1")
    c.do(f"ret {pair} {whole}")
    return c.function(f"{pair} @{SINCOS}({t} %x)", "declare double @sin(double)", "declare double @cos(double)", SELDOM)


# The loop over a batch: blocks of states, packed from any layout into structures of arrays and back

DRIVER = "drive"


class Field(NamedTuple):
    """An array for the loop, as integers; strides are in bytes, and rows with one stride of columns are one row."""

    address: int
    states: int  # stride of the states
    rows: int  # of a state's entries
    columns: int
    row_step: int
    column_step: int
    scratch: int  # offset of the array's scratch space in bytes
    written: int  # 1 for outputs, 0 for inputs
    # Address of an array with the scratch row of each entry. The loop may read as many integers as there are
    # lanes before the first one, and as many scratch rows must follow the last
    slots: int
    in_place: int  # 1 if full vectors need no copy: states are contiguous, in one row, and no entries share a slot
    streamed: int  # 1 for outputs larger than the caches: non-temporal stores are used if all vectors can be aligned


# Number of states to prefetch ahead, unless their stride exceeds this many bytes: then the processor prefetches itself.
_AHEAD, _FAR = 64, 1024

# Arguments of the functions that move the states of a block to scratch space and back.
_MOVED = (
    "ptr %far, ptr %near, i64 %pitch, i64 %ss, i64 %rows, i64 %columns, i64 %rs, i64 %cs, i64 %count, i64 %last, "
    "ptr %slots, i64 %streamed"
)


def _move(lanes: int, inward: bool) -> str:
    """Pack a block into a structure of arrays, or unpack it, by transposed squares if entries are contiguous."""
    c = Code(lanes)
    # Offset in bytes from the preceding vector boundary to the row.
    within = 8 * lanes - 1
    before = c.let(f"and i64 {c.let('ptrtoint ptr %far to i64')}, {within}")
    aligned = c.let(f"sub i64 0, {c.let(f'lshr i64 {before}, 3')}")
    uneven = c.let(f"and i64 {c.let('or i64 %ss, %rs')}, {within}")
    streams = c.let(f"icmp ult i64 {uneven}, %streamed")
    with c.loop("s", "%count", lanes):
        c.do("%ns = getelementptr double, ptr %near, i64 %s")
        states = []
        for k in range(lanes):
            at = c.let(f"add i64 %s, {k}")
            beyond = c.let(f"icmp sgt i64 {at}, %last")
            offset = c.let(f"mul i64 {c.let(f'select i1 {beyond}, i64 %last, i64 {at}')}, %ss")
            states.append(c.at("%far", offset, "i8"))
        with c.loop("r", "%rows", o=("0", "%rs"), e=("0", "%columns")):
            start = "0", "%r_o", "%r_e"
            from_boundary = aligned, c.let(f"sub i64 %r_o, {before}"), c.let(f"add i64 %r_e, {aligned}")
            c.branch(c.let("icmp eq i64 %cs, 8"), "side", "by_column")
            c.label("side")
            c.do("br label %by_square") if inward else c.branch(streams, "by_stream", "by_square")
            ways = [(_column, 1, start), (_square, lanes, start)]
            ways += [] if inward else [(_stream, lanes, from_boundary)]
            for move, width, (first, o, e) in ways:
                name = move.__name__[1:]
                c.label(f"by_{name}")
                with c.loop(name, "%columns", width, first, o=(o, f"%{name}_by"), e=(e, str(width))):
                    c.do(f"%{name}_by = mul i64 %cs, {width}")
                    far = [c.at(state, f"%{name}_o", "i8") for state in states]
                    slots = [c.at(c.at("%slots", f"%{name}_e", "i64"), k, "i64") for k in range(width)]
                    near = [c.at("%ns", c.let(f"mul i64 %pitch, {c.load(slot, 'i64')}"), "i8") for slot in slots]
                    move(c, far, near, inward)
                c.do("br label %moved")
            c.label("moved")
    c.do("ret void")
    return "\n".join([f"define internal void @{'pack' if inward else 'unpack'}({_MOVED}) {{", *c.lines, "}"])


def _column(c: Code, far: list[str], near: list[str], inward: bool) -> None:
    """Move one entry of every state."""
    if inward:
        vector = "poison"
        for k, pointer in enumerate(far):
            x = c.load(pointer, "double")
            vector = c.let(f"insertelement {c.type} {vector}, double {x}, i64 {k}")
        c.do(f"store {c.type} {vector}, ptr {near[0]}, align 8")
    else:
        vector = c.load(near[0])
        for k, pointer in enumerate(far):
            c.do(f"store double {c.let(f'extractelement {c.type} {vector}, i64 {k}')}, ptr {pointer}, align 8")


def _square(c: Code, far: list[str], near: list[str], inward: bool) -> None:
    """Move as many entries of every state as there are lanes, with a mask for the last ones."""
    n, t = c.width, c.type
    apart = c.let(f"icmp sgt i64 %ss, {_FAR}")
    ahead = c.let(f"select i1 {apart}, i64 0, i64 {c.let(f'mul i64 %ss, {_AHEAD}')}")
    for pointer in far:
        c.prefetch(pointer, ahead, write=not inward)
    there = f"<{n} x i1> {_there(c, '%square')}"
    if inward:
        load = f"call {t} @llvm.masked.load.{c.suffix}.p0"
        rows = [c.let(f"{load}(ptr {pointer}, i32 8, {there}, {t} zeroinitializer)") for pointer in far]
        for row, pointer in zip(_transposed(c, rows), near, strict=True):
            c.do(f"store {t} {row}, ptr {pointer}, align 8")
    else:
        rows = [c.load(pointer) for pointer in near]
        for row, pointer in zip(_transposed(c, rows), far, strict=True):
            c.do(f"call void @llvm.masked.store.{c.suffix}.p0({t} {row}, ptr {pointer}, i32 8, {there})")


def _stream(c: Code, far: list[str], near: list[str], inward: bool) -> None:
    """Unpack with non-temporal stores; masked stores for partial vectors at the start and the end."""
    n, t = c.width, c.type
    rows = _transposed(c, [c.load(pointer) for pointer in near])
    there = f"<{n} x i1> {_there(c, '%stream')}"
    mask = c.let(f"bitcast {there} to i{n}")
    c.branch(c.let(f"icmp eq i{n} {mask}, -1"), "past", "part")
    c.label("past")
    for row, pointer in zip(rows, far, strict=True):
        c.do(f"store {t} {row}, ptr {pointer}, align {8 * n}, !nontemporal !0")
    c.do("br label %stream_end")
    c.label("part")
    following = c.let(f"mul i64 %ss, {n}")
    for row, pointer in zip(rows, far, strict=True):
        c.prefetch(pointer, following, write=True)
        c.do(f"call void @llvm.masked.store.{c.suffix}.p0({t} {row}, ptr {pointer}, i32 8, {there})")


def _there(c: Code, first: str) -> str:
    """Mask of the lanes whose entry, ``first`` + lane, is a column; ``first`` may be negative."""
    t, start, end = f"<{c.width} x i64>", c.splat(first, "i64"), c.splat("%columns", "i64")
    numbers = "<" + ", ".join(f"i64 {k}" for k in range(c.width)) + ">"
    # In an unsigned comparison, negative numbers are greater than the last column.
    return c.let(f"icmp ult {t} {c.let(f'add {t} {start}, {numbers}')}, {end}")


def _transposed(c: Code, rows: list[str]) -> list[str]:
    """Transpose a square matrix: exchange its off-diagonal blocks, then those of each block, and so on."""
    n, rows, size = c.width, list(rows), c.width // 2
    while size:
        # Lanes of a pair of rows, of the first and then of the second.
        upper = [k if not k & size else n + k - size for k in range(n)]
        lower = [k + size if not k & size else n + k for k in range(n)]
        for i in range(n):
            if not i & size:
                a, b = rows[i], rows[i + size]
                for at, lanes in ((i, upper), (i + size, lower)):
                    mask = ", ".join(f"i32 {k}" for k in lanes)
                    rows[at] = c.let(f"shufflevector {c.type} {a}, {c.type} {b}, <{n} x i32> <{mask}>")
        size //= 2
    return rows


def driver(width: int) -> str:
    """Module text of ``i64 drive(body, count, parameters, arrays, table, space, block)``.

    ``body`` is the address of a compiled ``batch``, ``count`` > 0, and ``block`` a multiple of the width. The scratch
    space has ``block`` numbers for every row of every array, and for ``width`` further rows after them. The states that
    do not fill all lanes come last, with the last state repeated; only memory of states is read and written.
    """
    c, vector, suffix = Code(1), f"<{width} x double>", f"v{width}f64.p0"
    pitch, size = c.let("shl i64 %block, 3"), c.let("shl i64 %arrays, 1")
    pairs = c.let(f"alloca i64, i64 {size}, align 8")
    with c.loop("first", "%count", "%now"):
        c.do("%status = phi i64 [ 0, %0 ], [ %status1, %first_end ]")
        left = c.let("sub i64 %count, %first")
        full = c.let(f"and i64 {left}, -{width}")
        tail = c.let(f"select i1 {c.let(f'icmp eq i64 {full}, 0')}, i64 {left}, i64 {full}")
        c.do(f"%now = select i1 {c.let(f'icmp slt i64 {left}, %block')}, i64 {tail}, i64 %block")
        last = c.let("sub i64 %now, 1")
        whole = c.let(f"and i64 {c.let(f'add i64 {last}, {width}')}, -{width}")
        even = c.let(f"icmp eq i64 {whole}, %now")
        for way in ("pack", "unpack"):
            with c.loop(way, "%arrays"):
                array = _field(c, f"%{way}")
                far = c.at(array.address, c.let(f"mul i64 {array.states}, %first"), "i8")
                near = c.at("%space", array.scratch, "i8")
                output = c.let(f"icmp ne i64 {array.written}, 0")
                pair = c.at(pairs, f"%{way}", "{ptr, i64}")
                if way == "pack":
                    direct = c.let(f"and i1 {c.let(f'icmp ne i64 {array.in_place}, 0')}, {even}")
                    c.do(f"store ptr {c.let(f'select i1 {direct}, ptr {far}, ptr {near}')}, ptr {pair}, align 8")
                    distance = c.let(f"select i1 {direct}, i64 {array.column_step}, i64 {pitch}")
                    c.do(f"store i64 {distance}, ptr {c.at(pair, 1, 'i64')}, align 8")
                    stays = c.let(f"or i1 {direct}, {output}")
                else:
                    there = c.let(f"icmp ne ptr {c.load(pair, 'ptr')}, {near}")
                    stays = c.let(f"or i1 {there}, {c.let(f'xor i1 {output}, true')}")
                c.branch(stays, f"{way}_stays", f"{way}_moves")
                c.label(f"{way}_moves")
                layout = array.states, array.rows, array.columns, array.row_step, array.column_step, whole, last
                numbers = ", ".join(f"i64 {x}" for x in (pitch, *layout))
                moved = f"ptr {far}, ptr {near}, {numbers}, ptr {array.slots}, i64 {array.streamed}"
                c.do(f"call void @{way}({moved})")
                c.do(f"br label %{way}_stays")
                c.label(f"{way}_stays")
            if way == "pack":
                bad = c.let(f"call i64 %body(i64 {whole}, ptr %parameters, ptr {pairs})")
                c.do(f"%status1 = or i64 %status, {bad}")
    c.do("fence seq_cst")
    c.do("ret i64 %status1")
    arguments = "ptr %body, i64 %count, ptr %parameters, i64 %arrays, ptr %table, ptr %space, i64 %block"
    return "\n".join(
        [
            PREFETCH,
            f"declare {vector} @llvm.masked.load.{suffix}(ptr, i32, <{width} x i1>, {vector})",
            f"declare void @llvm.masked.store.{suffix}({vector}, ptr, i32, <{width} x i1>)",
            _move(width, inward=True),
            _move(width, inward=False),
            "!0 = !{i32 1}",
            *(f"define i64 @{DRIVER}({arguments}) {{", *c.lines, "}"),
        ]
    )


def _field(c: Code, index: str) -> Any:
    """Read the description of an array; a :class:`Field` of the names of its values."""
    start = c.at("%table", c.let(f"mul i64 {index}, {len(Field._fields)}"), "i64")
    kinds = ["ptr" if name in ("address", "slots") else "i64" for name in Field._fields]
    return Field._make(c.load(c.at(start, k, "i64"), kind) for k, kind in enumerate(kinds))
