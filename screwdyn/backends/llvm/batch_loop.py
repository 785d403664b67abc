"""LLVM text of the loop over a batch: blocks of states, packed from any layout into structures of arrays and back.

All functions share it.
"""

from typing import NamedTuple

from screwdyn.backends.llvm.ir import PREFETCH, Code

__all__ = ["DRIVER", "Field", "driver"]

DRIVER = "drive"


class Field(NamedTuple):
    """Description of an array for the loop, as integers; strides are in bytes.

    Rows that are contiguous in units of the column stride must be described as one row.

    Attributes
    ----------
    address
    states
        Stride of the states.
    rows, columns
        Numbers of rows and columns of a state's entries.
    row_step, column_step
        Their strides.
    scratch
        Offset of the array's scratch space in bytes.
    written
        1 for outputs, 0 for inputs.
    slots
        Address of an array with the scratch row of each entry. The loop may read as many integers as there are lanes
        before the first one, and as many scratch rows must follow the last.
    shared
        1 if entries share a row, so that the array must be packed into scratch space.
    streamed
        1 for outputs larger than the caches: non-temporal stores are used if all vectors can be aligned.
    """

    address: int
    states: int
    rows: int
    columns: int
    row_step: int
    column_step: int
    scratch: int
    written: int
    slots: int
    shared: int
    streamed: int


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
  %uneven = icmp ne i64 %whole, %now
  br label %inward
inward:
  %a = phi i64 [ 0, %blocks ], [ %a1, %inward_end ]
{fields}
  %far = getelementptr i8, ptr %address, i64 %offset
  %near = getelementptr i8, ptr %space, i64 %scratch
  %together = icmp eq i64 %states, 8
  %even = xor i1 %uneven, true
  %one_row = icmp eq i64 %rows, 1
  %close = and i1 %together, %even
  %single_row = and i1 %close, %one_row
  %unshared = icmp eq i64 %shared, 0
  %direct = and i1 %single_row, %unshared
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
    """Pack one array's block into a structure of arrays, or unpack it; the last state fills up the last lanes.

    Contiguous entries are moved as square matrices, transposed in registers; others one by one.
    """
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
        states.append(c.let(f"getelementptr i8, ptr %far, i64 {offset}"))
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
        far = [c.let(f"getelementptr i8, ptr {state}, i64 %{block}_o") for state in states]
        slots = c.let(f"getelementptr i64, ptr %slots, i64 %{block}_e")
        near = []
        for k in range(width):
            slot = c.let(f"load i64, ptr {c.let(f'getelementptr i64, ptr {slots}, i64 {k}')}, align 8")
            near.append(c.let(f"getelementptr i8, ptr %ns, i64 {c.let(f'mul i64 %pitch, {slot}')}"))
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
            x = c.let(f"load double, ptr {pointer}, align 8")
            vector = c.let(f"insertelement {c.type} {vector}, double {x}, i64 {k}")
        c.do(f"store {c.type} {vector}, ptr {near[0]}, align 8")
    else:
        vector = c.let(f"load {c.type}, ptr {near[0]}, align 8")
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
        rows = [c.let(f"load {t}, ptr {pointer}, align 8") for pointer in near]
        for row, pointer in zip(_transposed(c, rows), far, strict=True):
            c.do(f"call void @llvm.masked.store.{c.suffix}.p0({t} {row}, ptr {pointer}, i32 8, {there})")


def _stream(c: Code, far: list[str], near: list[str]) -> None:
    """Unpack with non-temporal stores; masked stores for partial vectors at the start and the end."""
    n, t = c.width, c.type
    rows = _transposed(c, [c.let(f"load {t}, ptr {pointer}, align 8") for pointer in near])
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
