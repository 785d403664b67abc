"""Text of the loop over a batch: blocks of states, brought from any layout into structures of arrays and back.

It is the same for every function. An array is described by ``FIELDS`` integers: address, distance of states, rows,
columns, distance of rows, distance of columns (distances in bytes), offset of its scratch space in bytes, and whether
it is written; an input of n entries has one row.
"""

__all__ = ["DRIVER", "FIELDS", "FIELD_NAMES", "driver"]

DRIVER = "drive"
FIELD_NAMES = ("address", "states", "rows", "columns", "row", "column", "scratch", "written")
FIELDS = len(FIELD_NAMES)

# One array's block into structure of arrays, all lanes at a time; states beyond the last are the last one over again.
_PACK = """
define internal void @pack(ptr %far, ptr %near, i64 %pitch, i64 %ss, i64 %rows, i64 %columns, i64 %rs, i64 %cs,
                           i64 %count, i64 %last) {{
entry:
  %ahead = shl i64 %ss, 5
  br label %states
states:
  %s = phi i64 [ 0, %entry ], [ %s1, %states_end ]
  %ns = getelementptr double, ptr %near, i64 %s
{pointers}
  br label %row
row:
  %r = phi i64 [ 0, %states ], [ %r1, %row_end ]
  %ro = phi i64 [ 0, %states ], [ %ro1, %row_end ]
  %nr = phi ptr [ %ns, %states ], [ %n1, %row_end ]
  br label %column
column:
  %c = phi i64 [ 0, %row ], [ %c1, %column ]
  %o = phi i64 [ %ro, %row ], [ %o1, %column ]
  %n = phi ptr [ %nr, %row ], [ %n1, %column ]
{loads}
  store <{lanes} x double> {vector}, ptr %n, align 8
  %o1 = add i64 %o, %cs
  %n1 = getelementptr i8, ptr %n, i64 %pitch
  %c1 = add i64 %c, 1
  %c_more = icmp slt i64 %c1, %columns
  br i1 %c_more, label %column, label %row_end
row_end:
  %ro1 = add i64 %ro, %rs
  %r1 = add i64 %r, 1
  %r_more = icmp slt i64 %r1, %rows
  br i1 %r_more, label %row, label %states_end
states_end:
  %s1 = add i64 %s, {lanes}
  %s_more = icmp slt i64 %s1, %count
  br i1 %s_more, label %states, label %end
end:
  ret void
}}
"""

# And back, state by state, so that memory is written in its order.
_UNPACK = """
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)

define internal void @unpack(ptr %far, ptr %near, i64 %pitch, i64 %ss, i64 %rows, i64 %columns, i64 %rs, i64 %cs,
                             i64 %count) {
entry:
  %ahead = shl i64 %ss, 5
  br label %state
state:
  %s = phi i64 [ 0, %entry ], [ %s1, %state_end ]
  %so = mul i64 %s, %ss
  %fs = getelementptr i8, ptr %far, i64 %so
  %ns = getelementptr double, ptr %near, i64 %s
  %later = getelementptr i8, ptr %fs, i64 %ahead
  call void @llvm.prefetch.p0(ptr %later, i32 1, i32 3, i32 1)
  br label %row
row:
  %r = phi i64 [ 0, %state ], [ %r1, %row_end ]
  %fr = phi ptr [ %fs, %state ], [ %fr1, %row_end ]
  %nr = phi ptr [ %ns, %state ], [ %n1, %row_end ]
  br label %column
column:
  %c = phi i64 [ 0, %row ], [ %c1, %column ]
  %f = phi ptr [ %fr, %row ], [ %f1, %column ]
  %n = phi ptr [ %nr, %row ], [ %n1, %column ]
  %v = load double, ptr %n, align 8
  store double %v, ptr %f, align 8
  %f1 = getelementptr i8, ptr %f, i64 %cs
  %n1 = getelementptr i8, ptr %n, i64 %pitch
  %c1 = add i64 %c, 1
  %c_more = icmp slt i64 %c1, %columns
  br i1 %c_more, label %column, label %row_end
row_end:
  %fr1 = getelementptr i8, ptr %fr, i64 %rs
  %r1 = add i64 %r, 1
  %r_more = icmp slt i64 %r1, %rows
  br i1 %r_more, label %row, label %state_end
state_end:
  %s1 = add i64 %s, 1
  %s_more = icmp slt i64 %s1, %count
  br i1 %s_more, label %state, label %end
end:
  ret void
}
"""


def _pack(lanes: int) -> str:
    pointers, loads, vector = [], [], "poison"
    for k in range(lanes):
        pointers += [f"%i{k} = add i64 %s, {k}", f"%beyond{k} = icmp sgt i64 %i{k}, %last"]
        pointers += [f"%k{k} = select i1 %beyond{k}, i64 %last, i64 %i{k}", f"%b{k} = mul i64 %k{k}, %ss"]
        pointers += [f"%state{k} = getelementptr i8, ptr %far, i64 %b{k}"]
        pointers += [f"%later{k} = getelementptr i8, ptr %state{k}, i64 %ahead"]
        pointers += [f"call void @llvm.prefetch.p0(ptr %later{k}, i32 0, i32 3, i32 1)"]
        loads += [f"%p{k} = getelementptr i8, ptr %state{k}, i64 %o", f"%x{k} = load double, ptr %p{k}, align 8"]
        loads += [f"%v{k} = insertelement <{lanes} x double> {vector}, double %x{k}, i64 {k}"]
        vector = f"%v{k}"
    return _PACK.format(lanes=lanes, vector=vector, pointers=_lines(pointers), loads=_lines(loads))


def _lines(lines: list[str]) -> str:
    return "\n".join(f"  {line}" for line in lines)


_DRIVE = """
define i64 @{driver}(ptr %body, i64 %count, ptr %parameters, i64 %arrays, ptr %table, ptr %scratch, i64 %block) {{
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
  %now = select i1 %short, i64 %left, i64 %block
  %last = sub i64 %now, 1
  %up = add i64 %last, {width}
  %whole = and i64 %up, -{width}
  %uneven = icmp ne i64 %whole, %now
  br label %inward
inward:
  %a = phi i64 [ 0, %blocks ], [ %a1, %inward_end ]
{fields}
  %far = getelementptr i8, ptr %address, i64 %offset
  %near = getelementptr i8, ptr %scratch, i64 %scratch_offset
  %together = icmp eq i64 %states, 8
  %even = xor i1 %uneven, true
  %whole_row = mul i64 %columns, %column_step
  %one_row = icmp eq i64 %rows, 1
  %regular_row = icmp eq i64 %whole_row, %row_step
  %regular = or i1 %one_row, %regular_row
  %close = and i1 %together, %even
  %direct = and i1 %close, %regular
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
                  i64 %column_step, i64 %whole, i64 %last)
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
  %o_near = getelementptr i8, ptr %scratch, i64 %o_scratch_offset
  %o_pair = getelementptr {{ptr, i64}}, ptr %pairs, i64 %o
  %o_base = load ptr, ptr %o_pair, align 8
  %o_is_output = icmp ne i64 %o_written, 0
  %o_is_near = icmp eq ptr %o_base, %o_near
  %o_moves = and i1 %o_is_output, %o_is_near
  br i1 %o_moves, label %o_copy, label %outward_end
o_copy:
  call void @unpack(ptr %o_far, ptr %o_near, i64 %pitch, i64 %o_states, i64 %o_rows, i64 %o_columns,
                    i64 %o_row_step, i64 %o_column_step, i64 %now)
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
  ret i64 %status1
}}
"""


def driver(width: int) -> str:
    """Module text of ``i64 drive(body, count, parameters, arrays, table, scratch, block)``.

    ``body`` is a compiled ``batch``, ``count`` > 0, ``block`` a multiple of the width. Scratch space is needed for
    ``block`` states of every array. The last state is repeated where lanes are left over, and nothing is read or
    written that does not belong to a state.
    """
    return (
        _pack(width)
        + _UNPACK
        + _DRIVE.format(driver=DRIVER, width=width, fields=_fields("%a", "%"), fields_out=_fields("%o", "%o_"))
    )


def _fields(index: str, prefix: str) -> str:
    """Read one array's description, and where the block's first state stands in it."""
    names = ("address", "states", "rows", "columns", "row_step", "column_step", "scratch_offset", "written")
    lines = [f"{prefix}start = mul i64 {index}, {FIELDS}"]
    for k, name in enumerate(names):
        kind = "ptr" if name == "address" else "i64"
        lines.append(f"{prefix}at{k} = add i64 {prefix}start, {k}")
        lines.append(f"{prefix}p{k} = getelementptr i64, ptr %table, i64 {prefix}at{k}")
        lines.append(f"{prefix}{name} = load {kind}, ptr {prefix}p{k}, align 8")
    lines.append(f"{prefix}offset = mul i64 {prefix}states, %first")
    return _lines(lines)
