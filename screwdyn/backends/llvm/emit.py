"""Text of a planned function in LLVM's intermediate representation, for one state and for one state in each lane."""

from collections.abc import Callable
from typing import Any

from screwdyn.backends.llvm.ir import PREFETCH, SELDOM, Code, near_sincos, number, tanh
from screwdyn.backends.llvm.plan import Plan, is_zero
from screwdyn.backends.tape.tape import Node, Recorded

__all__ = [
    "AHEAD",
    "BATCH",
    "SINGLE",
    "Writer",
    "add_size",
    "batch",
    "call_sincos",
    "read_sincos",
    "single",
    "too_large",
]

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
    """Writes the operations of a plan as instructions on values of one width.

    Parameters
    ----------
    plan : Plan
    code : Code
        Receives the instructions.
    load : callable
        ``load(group, index)`` reads an input.
    turn : callable
        ``turn(angles)`` returns sine and cosine of several angles.
    store : callable
        ``store(array, entry, value)`` writes an output.
    """

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
