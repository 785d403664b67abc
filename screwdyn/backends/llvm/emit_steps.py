"""Text of many steps of an integrator in LLVM's intermediate representation, with one state in each lane."""

from screwdyn.backends.llvm.emit import AHEAD, Writer, add_size, call_sincos, read_sincos, too_large
from screwdyn.backends.llvm.ir import PREFETCH, Code
from screwdyn.backends.llvm.plan import Plan

__all__ = ["STEPS", "context_length", "steps"]

STEPS = "steps"
_NAN = float("nan")


def context_length(plan: Plan) -> int:
    """Number of integers before the known values: samples, steps between them, and rows per step for every input."""
    return 2 + len(plan.groups)


def steps(plan: Plan, width: int) -> str:
    """Module text of ``i64 steps(count, context, arrays)``, over structures of arrays as in ``emit.batch``.

    The first inputs of the plan are the state, and the outputs are the state after a step. ``arrays`` has a pair for
    every input, for every output, and for the number of steps done. An output has the rows of all samples in order. An
    input that changes with time has the rows of all steps in order, otherwise the rows of one; the context has the
    number of rows that it advances in a step. A state with entries that are not finite, or for which a bound does not
    hold, becomes NaN, and its steps are not counted any more. The result is nonzero if there is such a state.
    """
    code = Code(width)
    t, mask, size = code.type, f"<{width} x i1>", 8 * width
    groups, lengths = list(plan.groups.items()), [len(out) for out in plan.outputs]
    carried = [(group, k) for group, n in groups[: len(lengths)] for k in range(n)]
    place = {entry: at for at, entry in enumerate(carried)}

    def integer(k: int) -> str:
        return code.let(f"load i64, ptr {code.let(f'getelementptr i64, ptr %context, i64 {k}')}, align 8")

    code.do(f"%parameters = getelementptr i64, ptr %context, i64 {context_length(plan)}")
    read_sincos(code, plan)
    code.do(f"%state = alloca {t}, i64 {len(carried) + 1}, align {size}")
    samples, every = integer(0), integer(1)
    bases = []
    for array in range(len(groups) + len(lengths) + 1):
        first, second = (code.let(f"getelementptr i64, ptr %arrays, i64 {2 * array + k}") for k in (0, 1))
        bases.append((code.let(f"load ptr, ptr {first}, align 8"), code.let(f"load i64, ptr {second}, align 8")))
    advances = [code.let(f"mul i64 {integer(2 + k)}, {bases[k][1]}") for k in range(len(groups))]

    def local(at: int) -> str:
        return code.let(f"getelementptr {t}, ptr %state, i64 {at}")

    def row(pointer: str, array: int, k: int | str) -> str:
        return code.let(f"getelementptr i8, ptr {pointer}, i64 {code.let(f'mul i64 {bases[array][1]}, {k}')}")

    code.do("br label %lanes")
    code.label("lanes")
    code.do("%lane = phi i64 [ 0, %0 ], [ %next, %lanes_end ]")
    code.do(f"%failed = phi {mask} [ zeroinitializer, %0 ], [ %failed1, %lanes_end ]")
    current = [code.let(f"getelementptr double, ptr {pointer}, i64 %lane") for pointer, _ in bases]
    # Of the next states, for calls of few steps.
    for array, n in enumerate([*plan.groups.values(), *lengths]):
        for k in range(n):
            code.prefetch(row(current[array], array, k), AHEAD, write=array >= len(groups))
    names = [group for group, _ in groups]
    for at, (group, k) in enumerate(carried):
        array = names.index(group)
        code.do(f"store {t} {code.let(f'load {t}, ptr {row(current[array], array, k)}, align 8')}, ptr {local(at)}")
    code.do(f"store {t} zeroinitializer, ptr {local(len(carried))}, align {size}")
    code.do("br label %sample")

    code.label("sample")
    code.do("%k = phi i64 [ 0, %lanes ], [ %k1, %sample_end ]")
    code.do("%start = phi i64 [ 0, %lanes ], [ %until, %sample_end ]")
    code.do(f"%until = add i64 %start, {every}")
    code.do("br label %step")

    code.label("step")
    code.do("%s = phi i64 [ %start, %sample ], [ %s1, %step ]")
    loaded = {entry: code.let(f"load {t}, ptr {local(at)}, align {size}") for entry, at in place.items()}
    here = [
        code.let(f"getelementptr i8, ptr {current[array]}, i64 {code.let(f'mul i64 %s, {advances[array]}')}")
        for array in range(len(groups))
    ]

    def load(group: str, k: int) -> str:
        if (group, k) in loaded:
            return loaded[group, k]
        array = names.index(group)
        return code.let(f"load {t}, ptr {row(here[array], array, k)}, align 8")

    def turn(angles: list[str]) -> list[tuple[str, str]]:
        return [call_sincos(code, t, angle) for angle in angles]

    after: dict[tuple[str, int], str] = {}

    def store(array: int, k: int, value: str) -> None:
        after[names[array], k] = value

    problems = Writer(plan, code, load, turn, store).write()
    total = code.constant(0.0)
    for value in after.values():
        total = add_size(code, total, value)
    wrong = too_large(code, total)
    for problem in problems:
        wrong = code.let(f"or {mask} {wrong}, {problem}")
    for entry, value in after.items():
        kept = code.let(f"select {mask} {wrong}, {t} {code.constant(_NAN)}, {t} {value}")
        code.do(f"store {t} {kept}, ptr {local(place[entry])}, align {size}")
    done = code.let(f"load {t}, ptr {local(len(carried))}, align {size}")
    further = code.binary("fadd", done, code.constant(1.0))
    now = code.let(f"select {mask} {wrong}, {t} {done}, {t} {further}")
    code.do(f"store {t} {now}, ptr {local(len(carried))}, align {size}")
    code.do("%s1 = add i64 %s, 1")
    # A group of states that are all NaN takes no further steps before the next sample.
    more, lanes = code.let("icmp slt i64 %s1, %until"), code.let(f"bitcast {mask} {wrong} to i{width}")
    alive = code.let(f"icmp ne i{width} {lanes}, -1")
    code.do(f"br i1 {code.let(f'and i1 {more}, {alive}')}, label %step, label %sample_end")

    code.label("sample_end")
    for out, n in enumerate(lengths):
        array = len(groups) + out
        first = row(current[array], array, code.let(f"mul i64 %k, {n}"))
        for k in range(n):
            value = code.let(f"load {t}, ptr {local(place[names[out], k])}, align {size}")
            code.do(f"store {t} {value}, ptr {row(first, array, k)}, align 8")
    code.do("%k1 = add i64 %k, 1")
    code.do(f"br i1 {code.let(f'icmp slt i64 %k1, {samples}')}, label %sample, label %lanes_end")

    code.label("lanes_end")
    count = code.let(f"load {t}, ptr {local(len(carried))}, align {size}")
    code.do(f"store {t} {count}, ptr {current[-1]}, align 8")
    code.do(f"%failed1 = or {mask} %failed, {wrong}")
    code.do(f"%next = add i64 %lane, {width}")
    code.do(f"br i1 {code.let('icmp slt i64 %next, %count')}, label %lanes, label %end")
    code.label("end")
    bits = code.let(f"bitcast {mask} %failed1 to i{width}")
    code.do(f"ret i64 {code.let(f'zext i{width} {bits} to i64')}")
    return "\n".join(
        [
            f"define i64 @{STEPS}(i64 %count, ptr %context, ptr %arrays) alignstack({size}) {{",
            *code.lines,
            "}",
            code.declarations(),
            PREFETCH,
        ]
    )
