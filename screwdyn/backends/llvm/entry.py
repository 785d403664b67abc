"""The entry of a compiled function of one state: machine code that Python calls and that reads the arrays itself.

The entry answers f(q, …) and f(q, …, out=array) for plain, contiguous, aligned float64 arrays of the right lengths,
where ``out`` is writeable and overlaps no other array. Any other call is passed on, with its arguments unread, to a
Python function that answers everything.
"""

import math
from collections.abc import Sequence

import numpy as np

from screwdyn.backends import platform_layout as layout
from screwdyn.backends.llvm.emit import SINGLE
from screwdyn.backends.llvm.ir import Code

__all__ = ["ENTRY", "entry"]

ENTRY = "entry"


def entry(lengths: Sequence[int], shapes: Sequence[tuple[int, ...]]) -> str:
    """Text that joins a module with ``single``: a function that Python calls.

    Parameters
    ----------
    lengths : sequence of int
        Of the inputs.
    shapes : sequence of tuples
        Of the outputs.

    Notes
    -----
    Its ``self`` is a tuple of the array of parameters and the function for all that does not fit. Several outputs make
    a tuple, and are expected as one.
    """
    code, inputs = Code(1), len(lengths)

    def read(address: str, offset: int, kind: str = "i64") -> str:
        at = code.let(f"getelementptr i8, ptr {address}, i64 {offset}")
        return code.let(f"load {kind}, ptr {at}, align {4 if kind == 'i32' else 8}")

    blocks = iter(range(1000))

    def require(equal: Sequence[tuple[str, str, str]]) -> None:
        """Go on only if all pairs of values of some type are equal."""
        wrong = "false"
        for kind, x, y in equal:
            wrong = code.let(f"or i1 {wrong}, {code.let(f'icmp ne {kind} {x}, {y}')}")
        label = f"next{next(blocks)}"
        code.do(f"br i1 {wrong}, label %slow, label %{label}")
        code.label(label)

    def pointer(thing: object) -> str:
        return f"inttoptr (i64 {id(thing)} to ptr)"

    def array_checks(arrays: Sequence[str], shapes: Sequence[tuple[int, ...]], flags: int) -> list[str]:
        """Go on only if objects are plain arrays of some shapes; returns where their entries begin."""
        require([("ptr", read(a, layout.TYPE, "ptr"), pointer(np.ndarray)) for a in arrays])
        pairs = []
        for a, shape in zip(arrays, shapes, strict=True):
            pairs += [
                ("i32", read(a, layout.NDIM, "i32"), str(len(shape))),
                ("ptr", read(a, layout.DESCRIPTOR, "ptr"), pointer(layout.FLOAT64)),
                ("i32", code.let(f"and i32 {read(a, layout.FLAGS, 'i32')}, {flags}"), str(flags)),
            ]
        require(pairs)
        pairs = []
        for a, shape in zip(arrays, shapes, strict=True):
            extents = read(a, layout.SHAPE, "ptr")
            pairs += [("i64", read(extents, 8 * axis), str(length)) for axis, length in enumerate(shape)]
        require(pairs)
        return [read(a, layout.DATA, "ptr") for a in arrays]

    def compute(outs: Sequence[str]) -> str:
        parameters = read(read("%self", layout.TUPLE_ITEMS, "ptr"), layout.DATA, "ptr")
        handed = ", ".join(f"ptr {data}" for data in (parameters, *given, *outs))
        return code.let(f"call i64 @{SINGLE}({handed})")

    require([("i64", "%count", str(inputs))])
    objects = [read("%args", 8 * k, "ptr") for k in range(inputs)]
    given = array_checks(objects, [(n,) for n in lengths], layout.CONTIGUOUS | layout.ALIGNED)
    code.do(f"br i1 {code.let('icmp eq ptr %names, null')}, label %fresh, label %named")

    code.label("named")
    require(
        [
            ("i64", read("%names", layout.TUPLE_SIZE), "1"),
            ("ptr", read("%names", layout.TUPLE_ITEMS, "ptr"), pointer(layout.OUT)),
        ]
    )
    out = read("%args", 8 * inputs, "ptr")
    outs = [out]
    if len(shapes) > 1:
        require([("ptr", read(out, layout.TYPE, "ptr"), pointer(tuple))])
        require([("i64", read(out, layout.TUPLE_SIZE), str(len(shapes)))])
        outs = [read(out, layout.TUPLE_ITEMS + 8 * k, "ptr") for k in range(len(shapes))]
    starts = array_checks(outs, shapes, layout.CONTIGUOUS | layout.ALIGNED | layout.WRITEABLE)
    sizes = [8 * n for n in lengths] + [8 * math.prod(shape) for shape in shapes]
    spans = [
        (start, code.let(f"getelementptr i8, ptr {start}, i64 {size}"))
        for start, size in zip((*given, *starts), sizes, strict=True)
    ]
    # What is written must not overlap anything else.
    apart = []
    for k in range(inputs, len(spans)):
        for j in range(k):
            before = code.let(f"icmp ult ptr {spans[k][0]}, {spans[j][1]}")
            after = code.let(f"icmp ult ptr {spans[j][0]}, {spans[k][1]}")
            apart.append(("i1", code.let(f"and i1 {before}, {after}"), "false"))
    require(apart)
    require([("i64", compute(starts), "0")])
    code.do(f"call void {_function('Py_IncRef')}(ptr {out})")
    code.do(f"ret ptr {out}")

    def must(made: str, failed: str) -> None:
        """Go on only if an object was made."""
        label = f"next{next(blocks)}"
        code.do(f"br i1 {code.let(f'icmp eq ptr {made}, null')}, label %{failed}, label %{label}")
        code.label(label)

    code.label("fresh")
    several, axes = len(shapes) > 1, max(map(len, shapes))
    extents = code.let(f"alloca [{axes} x i64], align 8")
    result, arrays = "", []
    if several:
        result = code.let(f"call ptr {_function('PyTuple_New')}(i64 {len(shapes)})")
        must(result, "failed")
    for k, shape in enumerate(shapes):
        # PyArray_New: type, axes, shape, double, no strides, no data, …
        for axis, length in enumerate(shape):
            at = code.let(f"getelementptr i64, ptr {extents}, i64 {axis}")
            code.do(f"store i64 {length}, ptr {at}, align 8")
        details = f"i32 {len(shape)}, ptr {extents}, i32 {layout.DOUBLE}, ptr null, ptr null, i32 0, i32 0, ptr null"
        new = code.let(
            f"call ptr inttoptr (i64 {layout.array_function(layout.NEW)} to ptr)(ptr {pointer(np.ndarray)}, {details})"
        )
        must(new, "unmade" if several else "failed")
        if several:
            # The tuple owns it from now on.
            code.let(f"call i32 {_function('PyTuple_SetItem')}(ptr {result}, i64 {k}, ptr {new})")
        arrays.append(new)
    result = result or arrays[0]
    bad = code.let(f"icmp ne i64 {compute([read(new, layout.DATA, 'ptr') for new in arrays])}, 0")
    code.do(f"br i1 {bad}, label %drop, label %good")
    code.label("good")
    if not several and not shapes[0]:
        # A number instead of an array without axes, as NumPy's functions give.
        scalar = code.let(f"call ptr inttoptr (i64 {layout.array_function(layout.RETURN)} to ptr)(ptr {result})")
        code.do(f"ret ptr {scalar}")
    else:
        code.do(f"ret ptr {result}")
    code.label("drop")
    code.do(f"call void {_function('Py_DecRef')}(ptr {result})")
    code.do("br label %slow")
    if several:
        code.label("unmade")
        code.do(f"call void {_function('Py_DecRef')}(ptr {result})")
        code.do("br label %failed")
    code.label("failed")
    code.do("ret ptr null")

    code.label("slow")
    slow = read("%self", layout.TUPLE_ITEMS + 8, "ptr")
    call = f"{_function('PyObject_Vectorcall')}(ptr {slow}, ptr %args, i64 %count, ptr %names)"
    code.do(f"ret ptr {code.let(f'call ptr {call}')}")
    signature = "ptr %self, ptr %args, i64 %count, ptr %names"
    return "\n".join([f"define ptr @{ENTRY}({signature}) {{", *code.lines, "}"])


def _function(name: str) -> str:
    return f"inttoptr (i64 {layout.address_of(name)} to ptr)"
