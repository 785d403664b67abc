"""What a function on a tape becomes: a plan, and text in LLVM's intermediate representation.

The plan is the order of its operations, and the values that do not depend on the state. The text is for one state, for
one state in each lane, or for many steps of an integrator with one state in each lane.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any

from screwdyn.backends.llvm.ir import PREFETCH, SELDOM, Code, near_sincos, number, tanh
from screwdyn.backends.tape.tape import Node, Recorded, Tape

__all__ = ["BATCH", "SINGLE", "STEPS", "Plan", "batch", "single", "steps"]

# Arrays with more zeros than this are sparse.
_FEW = 100


class Plan:
    """A function on a tape, divided into values that are known before the state, angles, and other operations."""

    def __init__(
        self,
        tape: Tape,
        groups: Mapping[str, int],
        outputs: Sequence[Sequence[Any]],
        bounds: Sequence[tuple[Any, Any]],
        fused: bool,
    ) -> None:
        self.tape, self.groups, self.outputs, self.bounds = tape, dict(groups), outputs, bounds
        ends = [x for out in outputs for x in out] + [x for pair in bounds for x in pair]
        ends = [x for x in ends if isinstance(x, Recorded)]
        nodes = tape.nodes
        live = tape.live(ends)
        given: set[int] = set()
        for at in live:
            node = nodes[at]
            if node.a[0] not in groups if node.op == "input" else given.issuperset(node.operands):
                given.add(at)
        steps = [at for at in live if at not in given and nodes[at].op != "input"]
        uses: dict[int, list[int]] = {at: [] for at in live}
        for at in steps:
            for operand in nodes[at].operands:
                uses[operand].append(at)
        kept = {x.node for x in ends}
        # A division by a known value becomes a product with its inverse, which is also known.
        one = tape.constant(1.0).node
        divisors = Counter(nodes[at].b for at in steps if nodes[at].op == "/")
        self.inverse = {at: tape.position(Node("/", one, at)) for at in divisors if at in given}
        read = sorted({at for at in given if uses[at] or at in kept} | set(self.inverse.values()))
        self.known = [at for at in read if nodes[at].op != "constant"]
        turns = {at for at in steps if nodes[at].op in ("sin", "cos")}
        self.angles = sorted({nodes[at].a for at in turns})
        late: set[int] = set()
        for at in steps:
            if nodes[at].op in ("sin", "cos", "sqrt", "tanh") or not late.isdisjoint(nodes[at].operands):
                late.add(at)
        self.early = [at for at in self.angles if at not in late]
        # A product that is only used as a term of one or two sums becomes part of fused multiply-adds. In more sums it
        # is computed once, because sums take other units of the processor than products.
        self.inner: set[int] = set()
        if fused:
            for at in steps:
                terms = nodes[at].op == "*" and at not in kept and all(nodes[u].op in "+-" for u in uses[at])
                if terms and len(uses[at]) <= 2:
                    self.inner.add(at)
            for at in steps:
                # If two products are added, the later one is fused and the other is computed.
                node = nodes[at]
                if node.op in "+-" and {node.a, node.b} <= self.inner:
                    self.inner.discard(min(node.a, node.b))
        # Several divisions by one number become one division and products: division is the slowest operation.
        self.often = {at for at, times in divisors.items() if times > 1}
        self.steps = [at for at in steps if at not in self.inner and not (at in turns and nodes[at].a not in late)]
        self.size = len(steps)
        self.sparse = [bool(sum(map(is_zero, entries)) > _FEW) for entries in outputs]
        self.slots = [
            _packed(entries) if sparse else list(range(len(entries)))
            for entries, sparse in zip(outputs, self.sparse, strict=True)
        ]


def is_zero(x: Any) -> bool:
    """Whether an output is the constant zero."""
    return not isinstance(x, Recorded) and x == 0


def _packed(entries: Sequence[Any]) -> list[int]:
    """Rows of the entries: consecutive numbers for entries that are not zero, and one further number for all zeros."""
    after = list(accumulate(not is_zero(x) for x in entries))
    return [after[-1] if is_zero(x) else k - 1 for k, x in zip(after, entries, strict=True)]


# Text

SINGLE, BATCH = "single", "batch"
# Called by ``single`` with one argument for each array, so that the compiler can assume that arrays do not overlap.
_APART = "apart"
# Largest input, 1.6e60: the fifth power of a greater one overflows.
_LARGEST = 2.0**200
# The product of this and a greater input overflows. A sum of products that has overflowed stays infinite or becomes
# NaN, and 0 times either is NaN.
_SCALE = 2.0**824
# Number of bytes to prefetch ahead.
AHEAD = 768


class Writer:
    """Writes the operations of a plan as instructions on values of one width."""

    def __init__(
        self,
        plan: Plan,
        code: Code,
        load: Callable[[str, int], str],
        turn: Callable[[list[str]], list[tuple[str, str]]],
        store: Callable[[int, int, str], None],
    ) -> None:
        self._plan, self._code, self._load, self._turn, self._store = plan, code, load, turn, store
        self._value: dict[int, str] = {}
        self._inverses: dict[int, str] = {}
        self._pairs: dict[int, tuple[str, str]] = {}
        self._place = {at: k for k, at in enumerate(plan.known)}
        self._angles = set(plan.angles)

    def write(self) -> list[str]:
        """Write every operation; return conditions that are true if a bound does not hold."""
        plan = self._plan
        stores: dict[int, list[tuple[int, int, Any]]] = {}
        for array, entries in enumerate(plan.outputs):
            for k, x in enumerate(entries):
                if isinstance(x, Recorded):
                    stores.setdefault(x.node, []).append((array, k, x))
                elif not (plan.sparse[array] and is_zero(x)):
                    self._store(array, k, self._scalar(x))
        self._turns()
        for at in plan.steps:
            self._read(at)
            for array, k, x in stores.pop(at, ()):
                self._store(array, k, self._scalar(x))
        for left in stores.values():
            for array, k, x in left:
                self._store(array, k, self._scalar(x))
        code = self._code
        return [code.let(f"fcmp ule {code.type} {self._scalar(x)}, {self._scalar(least)}") for x, least in plan.bounds]

    def _scalar(self, x: Any) -> str:
        if not isinstance(x, Recorded):
            return self._code.constant(float(x))
        return self._code.negative(self._read(x.node)) if x.minus else self._read(x.node)

    def _read(self, at: int) -> str:
        """The value at a position; known values are loaded where they are used."""
        if at in self._value:
            return self._value[at]
        code, node = self._code, self._plan.tape.nodes[at]
        if node.op == "constant":
            return code.constant(node.a)
        if at in self._place:
            address = code.let(f"getelementptr double, ptr %parameters, i64 {self._place[at]}")
            return code.splat(code.let(f"load double, ptr {address}, align 8"))
        self._value[at] = self._load(*node.a) if node.op == "input" else self._operation(node)
        return self._value[at]

    def _turns(self) -> None:
        """Write sines and cosines of the early angles together."""
        early = self._plan.early
        own = [at for at in early if not self._is_sum(at)]
        self._pairs.update(zip(own, self._turn([self._read(at) for at in own]), strict=True))
        for at in early:
            self._turned(at)

    def _is_sum(self, at: int) -> bool:
        """Whether an angle is a sum of two other angles, so that its sine and cosine are computed from theirs."""
        node = self._plan.tape.nodes[at]
        return node.op in "+-" and set(node.operands) <= self._angles

    def _turned(self, at: int) -> None:
        """Write sine and cosine of an angle."""
        code, tape = self._code, self._plan.tape
        node, pair = tape.nodes[at], self._pairs.get(at)
        if pair is None and self._is_sum(at):
            for part in node.operands:
                self._turned(part)
            (sa, ca), (sb, cb) = self._pairs[node.a], self._pairs[node.b]
            if node.op == "-":
                sb = code.negative(sb)
            s = code.fma(sa, cb, code.binary("fmul", ca, sb))
            pair = s, code.fma(ca, cb, code.negative(code.binary("fmul", sa, sb)))
        elif pair is None:
            (pair,) = self._turn([self._read(at)])
        self._pairs[at] = pair
        for op, result in zip(("sin", "cos"), pair, strict=True):
            self._value[tape.position(Node(op, at))] = result

    def _operation(self, node: Node) -> str:
        (op, a, b), code, plan = node, self._code, self._plan
        if op in ("sin", "cos"):
            self._turned(a)
            return self._value[plan.tape.position(node)]
        if op in ("sqrt", "tanh"):
            return code.sqrt(self._read(a)) if op == "sqrt" else tanh(code, self._read(a))
        if op in "+-":
            inner = [x for x in (a, b) if x in plan.inner]
            if inner:
                product = plan.tape.nodes[inner[-1]]
                x, y = self._read(product.a), self._read(product.b)
                if inner[-1] == b:
                    return code.fma(code.negative(x) if op == "-" else x, y, self._read(a))
                return code.fma(x, y, code.negative(self._read(b)) if op == "-" else self._read(b))
        if op == "/" and b in plan.inverse:
            return code.binary("fmul", self._read(a), self._read(plan.inverse[b]))
        if op == "/" and b in plan.often:
            inverse = self._inverses.get(b)
            if inverse is None:
                inverse = self._inverses[b] = code.binary("fdiv", code.constant(1.0), self._read(b))
            top = plan.tape.nodes[a]
            return inverse if top == Node("constant", 1.0) else code.binary("fmul", self._read(a), inverse)
        return code.binary({"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}[op], self._read(a), self._read(b))


def single(plan: Plan, width: int) -> str:
    """Module text of ``i64 single(parameters, arrays)``, where ``arrays`` has the address of every input and output.

    ``parameters`` has the known values of the plan, then the address of ``ir.sincos``; the angles are lanes of its
    calls. The result is nonzero if an input is not finite or a bound does not hold.
    """
    code, wide = Code(1), Code(width)
    read_sincos(code, plan)
    inputs = {group: f"%x{i}" for i, group in enumerate(plan.groups)}
    for k, name in enumerate([*inputs.values(), *(f"%y{i}" for i in range(len(plan.outputs)))]):
        place = code.let(f"getelementptr ptr, ptr %arrays, i64 {k}")
        code.do(f"{name} = load ptr, ptr {place}, align 8")
    problems = []
    # Arrays of one length are checked together.
    for n in sorted(set(plan.groups.values()) - {0}):
        whole = f"<{n} x double>"
        zeros, scale = ("<" + ", ".join([f"double {number(x)}"] * n) + ">" for x in (0.0, _SCALE))
        total = ""
        for name in (name for group, name in inputs.items() if plan.groups[group] == n):
            x = code.let(f"load {whole}, ptr {name}, align 8")
            scaled = code.let(f"fmul {whole} {x}, {scale}")
            total = code.let(f"fadd {whole} {total}, {scaled}") if total else scaled
        nothing = code.let(f"fmul {whole} {total}, {zeros}")
        lanes = code.let(f"fcmp uno {whole} {nothing}, {zeros}")
        mask = code.let(f"bitcast <{n} x i1> {lanes} to i{n}")
        problems.append(code.let(f"icmp ne i{n} {mask}, 0"))

    def load(group: str, index: int) -> str:
        address = code.let(f"getelementptr double, ptr {inputs[group]}, i64 {index}")
        return code.let(f"load double, ptr {address}, align 8")

    def turn(angles: list[str]) -> list[tuple[str, str]]:
        pairs = []
        for first in range(0, len(angles), width):
            part = angles[first : first + width]
            packed = "zeroinitializer"
            for i, angle in enumerate(part):
                packed = code.let(f"insertelement {wide.type} {packed}, double {angle}, i64 {i}")
            s, c = call_sincos(code, wide.type, packed)
            for i in range(len(part)):
                sine, cosine = (code.let(f"extractelement {wide.type} {x}, i64 {i}") for x in (s, c))
                pairs.append((sine, cosine))
        return pairs

    def store(array: int, k: int, value: str) -> None:
        address = code.let(f"getelementptr double, ptr %y{array}, i64 {k}")
        code.do(f"store double {value}, ptr {address}, align 8")

    for array, entries in enumerate(plan.outputs):
        if plan.sparse[array]:
            code.do(f"call void @llvm.memset.p0.i64(ptr align 8 %y{array}, i8 0, i64 {8 * len(entries)}, i1 false)")
    problems += Writer(plan, code, load, turn, store).write()
    any_problem = "false"
    for problem in problems:
        any_problem = code.let(f"or i1 {any_problem}, {problem}")
    code.do(f"ret i64 {code.let(f'zext i1 {any_problem} to i64')}")
    return "\n".join(
        [
            f"define i64 @{SINGLE}(ptr noalias %parameters, ptr noalias %arrays) {{",
            *code.lines,
            "}",
            code.declarations(),
            "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
        ]
    )


def batch(plan: Plan, width: int) -> str:
    """Module text of ``i64 batch(count, parameters, arrays)``, over structures of arrays; parameters as ``single``.

    ``arrays`` has a pair for every input and output, address and row stride in bytes: entry k of state s is the double
    at address + k·stride + 8 s, where k is a slot of an output. ``count`` is a positive multiple of the width. The
    result is nonzero if an input is not finite or a bound does not hold. Outputs must not overlap inputs.
    """
    code = Code(width)
    t, mask = code.type, f"<{width} x i1>"
    read_sincos(code, plan)
    bases = []
    for array in range(len(plan.groups) + len(plan.outputs)):
        first, second = (code.let(f"getelementptr i64, ptr %arrays, i64 {2 * array + k}") for k in (0, 1))
        bases.append((code.let(f"load ptr, ptr {first}, align 8"), code.let(f"load i64, ptr {second}, align 8")))
    code.do("br label %loop")
    code.label("loop")
    code.do("%lane = phi i64 [ 0, %0 ], [ %next, %turned ]")
    code.do(f"%wrong = phi {mask} [ zeroinitializer, %0 ], [ %now, %turned ]")
    current = [code.let(f"getelementptr double, ptr {pointer}, i64 %lane") for pointer, _ in bases]

    def address(array: int, k: int) -> str:
        offset = code.let(f"mul i64 {bases[array][1]}, {k}")
        return code.let(f"getelementptr i8, ptr {current[array]}, i64 {offset}")

    names, total = list(plan.groups), code.constant(0.0)
    loaded: dict[tuple[str, int], str] = {}

    def load(group: str, k: int) -> str:
        """An input, read and prefetched where it is first used: together they would exceed the registers and queues."""
        nonlocal total
        if (group, k) not in loaded:
            place = address(names.index(group), k)
            loaded[group, k] = x = code.let(f"load {t}, ptr {place}, align 8")
            code.prefetch(place, AHEAD, write=False)
            total = add_size(code, total, x)
        return loaded[group, k]

    turned = False

    def turn(angles: list[str]) -> list[tuple[str, str]]:
        """Sine and cosine of the early angles are written out, side by side; those of others are called."""
        nonlocal turned
        if turned:
            return [call_sincos(code, t, angle) for angle in angles]
        turned, any_far = True, code.let(f"xor {mask} zeroinitializer, zeroinitializer")
        near = []
        for angle in angles:
            s, c, far = near_sincos(code, angle)
            near.append((s, c))
            any_far = code.let(f"or {mask} {any_far}, {far}")
        bits = code.let(f"bitcast {mask} {any_far} to i{width}")
        code.do(f"br i1 {code.let(f'icmp ne i{width} {bits}, 0')}, label %far, label %turned, !prof !0")
        code.label("far")
        exact = [call_sincos(code, t, angle) for angle in angles]
        code.do("br label %turned")
        code.label("turned")
        return [
            (code.let(f"phi {t} [ {s}, %loop ], [ {x}, %far ]"), code.let(f"phi {t} [ {c}, %loop ], [ {y}, %far ]"))
            for (s, c), (x, y) in zip(near, exact, strict=True)
        ]

    def store(array: int, k: int, value: str) -> None:
        place = address(len(plan.groups) + array, plan.slots[array][k])
        code.do(f"store {t} {value}, ptr {place}, align 8")
        if not plan.sparse[array]:
            code.prefetch(place, AHEAD, write=True)

    problems = Writer(plan, code, load, turn, store).write()
    for group, n in plan.groups.items():
        for k in range(n):
            load(group, k)  # to check those that are not used, too
    problems.append(too_large(code, total))
    wrong = "%wrong"
    for problem in problems[:-1]:
        wrong = code.let(f"or {mask} {wrong}, {problem}")
    code.do(f"%now = or {mask} {wrong}, {problems[-1]}")
    code.do(f"%next = add i64 %lane, {width}")
    code.do("%more = icmp slt i64 %next, %count")
    code.do("br i1 %more, label %loop, label %end")
    code.label("end")
    bits = code.let(f"bitcast {mask} %now to i{width}")
    code.do(f"ret i64 {code.let(f'zext i{width} {bits} to i64')}")
    return "\n".join(
        [
            # Aligned, so that vectors spilled to the stack do not straddle two cache lines.
            f"define i64 @{BATCH}(i64 %count, ptr %parameters, ptr %arrays) alignstack({8 * width}) {{",
            *code.lines,
            "}",
            code.declarations(),
            PREFETCH,
            SELDOM,
        ]
    )


def add_size(code: Code, total: str, x: str) -> str:
    """total + |x|: sums take other units of the processor than fused multiply-adds, which limit the speed."""
    return code.binary("fadd", total, code.let(f"call {code.type} @llvm.fabs.{code.suffix}({code.type} {x})"))


def too_large(code: Code, total: str) -> str:
    """Whether a sum of sizes is NaN, or so large that the fifth power of a term may overflow."""
    return code.let(f"fcmp ugt {code.type} {total}, {code.constant(_LARGEST)}")


def read_sincos(code: Code, plan: Plan) -> None:
    """Read the address of ``ir.sincos``, which differs between processes, from the end of ``parameters``."""
    place = code.let(f"getelementptr ptr, ptr %parameters, i64 {len(plan.known)}")
    code.do(f"%sincos = load ptr, ptr {place}, align 8")


def call_sincos(code: Code, t: str, angles: str) -> tuple[str, str]:
    """Call ``ir.sincos`` for a vector of type ``t``; returns the names of sines and cosines."""
    pair = f"{{ {t}, {t} }}"
    both = code.let(f"call {pair} %sincos({t} {angles})")
    return code.let(f"extractvalue {pair} {both}, 0"), code.let(f"extractvalue {pair} {both}, 1")


# Steps of an integrator

STEPS = "steps"
_NAN = float("nan")


def context_length(plan: Plan) -> int:
    """Number of integers before the known values: samples, steps between them, and rows per step for every input."""
    return 2 + len(plan.groups)


def steps(plan: Plan, width: int) -> str:
    """Module text of ``i64 steps(count, context, arrays)``, over structures of arrays as in ``batch``.

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
