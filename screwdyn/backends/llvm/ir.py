"""Text in LLVM's intermediate representation that serves all functions: operations on values of one width, sine and
cosine, and the loop over a batch.

The order of operations and every fused multiply-add are explicit, and the compiler may not reorder them. The results
for a state therefore have the same bits alone, in any lane of a batch and with any number of threads.
"""

import math
import struct
from typing import NamedTuple

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
        return self.call("fma", a, b, c)

    def splat(self, scalar: str) -> str:
        """A scalar in every lane."""
        if self.width == 1:
            return scalar
        first = self.let(f"insertelement {self.type} poison, double {scalar}, i64 0")
        zeros = f"<{self.width} x i32> zeroinitializer"
        return self.let(f"shufflevector {self.type} {first}, {self.type} poison, {zeros}")

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
    c.do(f"br i1 {any_far}, label %exact, label %done, !prof !0")
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

_HEAD = """
define internal void @{name}(ptr %far, ptr %near, i64 %pitch, i64 %ss, i64 %rows, i64 %columns, i64 %rs, i64 %cs,
                             i64 %count, i64 %last, ptr %slots, i64 %streamed) {{
"""

_DRIVE = """
define i64 @{driver}(ptr %body, i64 %count, ptr %parameters, i64 %arrays, ptr %table, ptr %space, i64 %block) {{
entry:
  %pitch = shl i64 %block, 3
  %pairs_size = shl i64 %arrays, 1
  %pairs = alloca i64, i64 %pairs_size, align 8
  br label %blocks
blocks:
  %first = phi i64 [ 0, %entry ], [ %following, %blocks_end ]
  %status = phi i64 [ 0, %entry ], [ %status1, %blocks_end ]
  %left = sub i64 %count, %first
  %short = icmp slt i64 %left, %block
  %full = and i64 %left, -{width}
  %none = icmp eq i64 %full, 0
  %tail = select i1 %none, i64 %left, i64 %full
  %now = select i1 %short, i64 %tail, i64 %block
  %last = sub i64 %now, 1
  %up = add i64 %last, {width}
  %whole = and i64 %up, -{width}
  %even = icmp eq i64 %whole, %now
  br label %inward
inward:
  %a = phi i64 [ 0, %blocks ], [ %a1, %inward_end ]
{fields}
  %far = getelementptr i8, ptr %address, i64 %offset
  %near = getelementptr i8, ptr %space, i64 %scratch
  %allowed = icmp ne i64 %in_place, 0
  %direct = and i1 %allowed, %even
  %base = select i1 %direct, ptr %far, ptr %near
  %distance = select i1 %direct, i64 %column_step, i64 %pitch
  %pair = getelementptr {{ptr, i64}}, ptr %pairs, i64 %a
  store ptr %base, ptr %pair, align 8
  %pair_distance = getelementptr i64, ptr %pair, i64 1
  store i64 %distance, ptr %pair_distance, align 8
  %is_output = icmp ne i64 %written, 0
  %stays = or i1 %direct, %is_output
  br i1 %stays, label %inward_end, label %copy
copy:
  call void @pack(ptr %far, ptr %near, i64 %pitch, i64 %states, i64 %rows, i64 %columns, i64 %row_step,
                  i64 %column_step, i64 %whole, i64 %last, ptr %slots, i64 %streamed)
  br label %inward_end
inward_end:
  %a1 = add i64 %a, 1
  %a_more = icmp slt i64 %a1, %arrays
  br i1 %a_more, label %inward, label %compute
compute:
  %bad = call i64 %body(i64 %whole, ptr %parameters, ptr %pairs)
  %status1 = or i64 %status, %bad
  br label %outward
outward:
  %o = phi i64 [ 0, %compute ], [ %o1, %outward_end ]
{fields_out}
  %o_far = getelementptr i8, ptr %o_address, i64 %o_offset
  %o_near = getelementptr i8, ptr %space, i64 %o_scratch
  %o_pair = getelementptr {{ptr, i64}}, ptr %pairs, i64 %o
  %o_base = load ptr, ptr %o_pair, align 8
  %o_is_output = icmp ne i64 %o_written, 0
  %o_is_near = icmp eq ptr %o_base, %o_near
  %o_moves = and i1 %o_is_output, %o_is_near
  br i1 %o_moves, label %o_copy, label %outward_end
o_copy:
  call void @unpack(ptr %o_far, ptr %o_near, i64 %pitch, i64 %o_states, i64 %o_rows, i64 %o_columns,
                    i64 %o_row_step, i64 %o_column_step, i64 %whole, i64 %last, ptr %o_slots,
                    i64 %o_streamed)
  br label %outward_end
outward_end:
  %o1 = add i64 %o, 1
  %o_more = icmp slt i64 %o1, %arrays
  br i1 %o_more, label %outward, label %blocks_end
blocks_end:
  %following = add i64 %first, %now
  %more = icmp slt i64 %following, %count
  br i1 %more, label %blocks, label %end
end:
  fence seq_cst
  ret i64 %status1
}}
"""


def _move(lanes: int, inward: bool) -> str:
    """Pack a block into a structure of arrays, or unpack it, by transposed squares if entries are contiguous."""
    c = Code(lanes)
    # Offset in bytes from the preceding vector boundary to the row.
    within = 8 * lanes - 1
    c.do(f"%before = and i64 {c.let('ptrtoint ptr %far to i64')}, {within}")
    c.do(f"%aligned = sub i64 0, {c.let('lshr i64 %before, 3')}")
    uneven = c.let(f"and i64 {c.let('or i64 %ss, %rs')}, {within}")
    c.do(f"%streams = icmp ult i64 {uneven}, %streamed")
    c.do("br label %states")
    c.label("states")
    c.do("%s = phi i64 [ 0, %0 ], [ %s1, %states_end ]")
    c.do("%ns = getelementptr double, ptr %near, i64 %s")
    states = []
    for k in range(lanes):
        at = c.let(f"add i64 %s, {k}")
        beyond = c.let(f"icmp sgt i64 {at}, %last")
        offset = c.let(f"mul i64 {c.let(f'select i1 {beyond}, i64 %last, i64 {at}')}, %ss")
        states.append(c.at("%far", offset, "i8"))
    c.do("br label %row")
    c.label("row")
    c.do("%r = phi i64 [ 0, %states ], [ %r1, %row_end ]")
    c.do("%ro = phi i64 [ 0, %states ], [ %ro1, %row_end ]")
    c.do("%re = phi i64 [ 0, %states ], [ %re1, %row_end ]")
    c.do("%ao = sub i64 %ro, %before")
    c.do("%ae = add i64 %re, %aligned")
    c.do(f"br i1 {c.let('icmp eq i64 %cs, 8')}, label %side, label %column")
    c.label("side")
    c.do("br label %square" if inward else "br i1 %streams, label %stream, label %square")
    loops = [("column", "row", 1, ("0", "%ro", "%re")), ("square", "side", lanes, ("0", "%ro", "%re"))]
    if not inward:
        loops.append(("stream", "side", lanes, ("%aligned", "%ao", "%ae")))
    for block, before, width, first in loops:
        c.label(block)
        for name, value in zip("coe", first, strict=True):
            c.do(f"%{block}_{name} = phi i64 [ {value}, %{before} ], [ %{block}_{name}1, %{block}_end ]")
        far = [c.at(state, f"%{block}_o", "i8") for state in states]
        slots = c.at("%slots", f"%{block}_e", "i64")
        near = []
        for k in range(width):
            slot = c.load(c.at(slots, k, "i64"), "i64")
            near.append(c.at("%ns", c.let(f"mul i64 %pitch, {slot}"), "i8"))
        if block == "stream":
            _stream(c, far, near)
        else:
            (_square if block == "square" else _column)(c, far, near, inward)
        c.do(f"br label %{block}_end")
        c.label(f"{block}_end")
        c.do(f"%{block}_c1 = add i64 %{block}_c, {width}")
        c.do(f"%{block}_o1 = add i64 %{block}_o, {c.let(f'mul i64 %cs, {width}')}")
        c.do(f"%{block}_e1 = add i64 %{block}_e, {width}")
        c.do(f"br i1 {c.let(f'icmp slt i64 %{block}_c1, %columns')}, label %{block}, label %row_end")
    c.label("row_end")
    c.do("%r1 = add i64 %r, 1")
    c.do("%ro1 = add i64 %ro, %rs")
    c.do("%re1 = add i64 %re, %columns")
    c.do(f"br i1 {c.let('icmp slt i64 %r1, %rows')}, label %row, label %states_end")
    c.label("states_end")
    c.do(f"%s1 = add i64 %s, {lanes}")
    c.do(f"br i1 {c.let('icmp slt i64 %s1, %count')}, label %states, label %end")
    c.label("end")
    c.do("ret void")
    name = "pack" if inward else "unpack"
    return "\n".join([_HEAD.format(name=name), *c.lines, "}"])


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
    there = f"<{n} x i1> {_there(c, '%square_c')}"
    if inward:
        load = f"call {t} @llvm.masked.load.{c.suffix}.p0"
        rows = [c.let(f"{load}(ptr {pointer}, i32 8, {there}, {t} zeroinitializer)") for pointer in far]
        for row, pointer in zip(_transposed(c, rows), near, strict=True):
            c.do(f"store {t} {row}, ptr {pointer}, align 8")
    else:
        rows = [c.load(pointer) for pointer in near]
        for row, pointer in zip(_transposed(c, rows), far, strict=True):
            c.do(f"call void @llvm.masked.store.{c.suffix}.p0({t} {row}, ptr {pointer}, i32 8, {there})")


def _stream(c: Code, far: list[str], near: list[str]) -> None:
    """Unpack with non-temporal stores; masked stores for partial vectors at the start and the end."""
    n, t = c.width, c.type
    rows = _transposed(c, [c.load(pointer) for pointer in near])
    there = f"<{n} x i1> {_there(c, '%stream_c')}"
    mask = c.let(f"bitcast {there} to i{n}")
    c.do(f"br i1 {c.let(f'icmp eq i{n} {mask}, -1')}, label %past, label %part")
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
    t, zeros = f"<{c.width} x i64>", f"<{c.width} x i32> zeroinitializer"
    start, end = (
        c.let(f"shufflevector {t} {c.let(f'insertelement {t} poison, i64 {x}, i64 0')}, {t} poison, {zeros}")
        for x in (first, "%columns")
    )
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
    t, suffix = f"<{width} x double>", f"v{width}f64.p0"
    return "\n".join(
        [
            PREFETCH,
            f"declare {t} @llvm.masked.load.{suffix}(ptr, i32, <{width} x i1>, {t})",
            f"declare void @llvm.masked.store.{suffix}({t}, ptr, i32, <{width} x i1>)",
            _move(width, inward=True),
            _move(width, inward=False),
            "!0 = !{i32 1}",
            _DRIVE.format(driver=DRIVER, width=width, fields=_fields("%a", "%"), fields_out=_fields("%o", "%o_")),
        ]
    )


def _fields(index: str, prefix: str) -> str:
    """Read one array's description, and the offset of the block's first state."""
    lines = [f"{prefix}start = mul i64 {index}, {len(Field._fields)}"]
    for k, name in enumerate(Field._fields):
        kind = "ptr" if name in ("address", "slots") else "i64"
        lines.append(f"{prefix}at{k} = add i64 {prefix}start, {k}")
        lines.append(f"{prefix}p{k} = getelementptr i64, ptr %table, i64 {prefix}at{k}")
        lines.append(f"{prefix}{name} = load {kind}, ptr {prefix}p{k}, align 8")
    lines.append(f"{prefix}offset = mul i64 {prefix}states, %first")
    return "\n".join(f"  {line}" for line in lines)
