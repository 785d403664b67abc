"""What a tape becomes: the text of a function of one state, and of many states at a time, one in each lane."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any

from screwdyn.backends.llvm.ir import PREFETCH, Code
from screwdyn.backends.tape.tape import Node, Recorded, Tape

__all__ = ["BATCH", "SINGLE", "Plan", "batch", "single"]

SINGLE, BATCH = "single", "batch"
# Bytes for which the memory is asked beforehand.
_AHEAD = 512
# Zeros in an array up to which they are written like other entries.
_FEW = 100


class Plan:
    """A function on a tape, sorted into what is known before the state, its angles, and the rest.

    Parameters
    ----------
    tape : Tape
    groups : mapping from str to int
        Names of the input arrays in order, and how many entries each has; inputs are named (group, index).
    outputs : sequence of sequences of scalars
        Entries of every output array.
    bounds : sequence of (x, least)
        What must hold for the result to mean anything: x > least.
    fused : bool
        Whether the processor multiplies and adds in one rounding.

    Attributes
    ----------
    known : list of int
        Positions that depend on parameters only and that the rest reads: the code finds their values in an array.
    size : int
        Operations that a state costs.
    sparse : list of bool
        Outputs with many zeros, which ``write`` leaves to others.
    slots : list of lists of int
        Where a batch keeps the entries of each output: in order, but the zeros of a sparse one all in one place behind
        the others, to which nothing is written.
    """

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
        # A division by what is known beforehand is a product with its inverse, which is known as well.
        one = tape.constant(1.0).node
        divisors = Counter(nodes[at].b for at in steps if nodes[at].op == "/")
        self._inverse = {at: tape.position(Node("/", one, at)) for at in divisors if at in given}
        read = sorted({at for at in given if uses[at] or at in kept} | set(self._inverse.values()))
        self.known = [at for at in read if nodes[at].op != "constant"]
        self.angles = sorted({nodes[at].a for at in steps if nodes[at].op in ("sin", "cos")})
        # A product that is only ever added to something needs no instruction of its own.
        self._inner: set[int] = set()
        if fused:
            for at in steps:
                if nodes[at].op == "*" and at not in kept and all(nodes[u].op in "+-" for u in uses[at]):
                    self._inner.add(at)
            for at in steps:
                # Of two products that are added, the later one is fused and the other computed.
                node = nodes[at]
                if node.op in "+-" and {node.a, node.b} <= self._inner:
                    self._inner.discard(min(node.a, node.b))
        # Several divisions by one number are one, and products; the slowest operation there is.
        self._often = {at for at, times in divisors.items() if times > 1}
        self._steps = [at for at in steps if at not in self._inner and nodes[at].op not in ("sin", "cos")]
        self.size = len(steps)
        self.sparse = [sum(map(_zero, entries)) > _FEW for entries in outputs]
        self.slots = [
            _packed(entries) if sparse else list(range(len(entries)))
            for entries, sparse in zip(outputs, self.sparse, strict=True)
        ]

    def write(
        self,
        code: Code,
        load: Callable[[str, int], str],
        turn: Callable[[Code, list[str]], list[tuple[str, str]]],
        store: Callable[[int, int, str], None],
    ) -> list[str]:
        """Write every operation; returns conditions, true where the result means nothing.

        ``load(group, index)`` reads an input, ``turn`` gives sine and cosine of several angles, and
        ``store(array, entry, value)`` writes an output.
        """
        nodes = self.tape.nodes
        value: dict[int, str] = {}
        inverses: dict[int, str] = {}
        place = {at: k for k, at in enumerate(self.known)}

        def read(at: int) -> str:
            """An operand: parameters are read where they are used."""
            if at in value:
                return value[at]
            node = nodes[at]
            if node.op == "constant":
                return code.constant(node.a)
            if at in place:
                address = code.let(f"getelementptr double, ptr %parameters, i64 {place[at]}")
                return code.splat(code.let(f"load double, ptr {address}, align 8"))
            if node.op == "input":
                value[at] = load(*node.a)
            else:
                value[at] = self._operation(code, node, read, inverses)
            return value[at]

        def scalar(x: Any) -> str:
            if not isinstance(x, Recorded):
                return code.constant(float(x))
            return code.negative(read(x.node)) if x.minus else read(x.node)

        wanted: dict[int, list[tuple[int, int, Any]]] = {}
        for array, entries in enumerate(self.outputs):
            for k, x in enumerate(entries):
                if isinstance(x, Recorded):
                    wanted.setdefault(x.node, []).append((array, k, x))
                elif not (self.sparse[array] and _zero(x)):
                    store(array, k, scalar(x))
        self._turns(code, read, turn, value)
        for at in self._steps:
            read(at)
            for array, k, x in wanted.pop(at, ()):
                store(array, k, scalar(x))
        for stores in wanted.values():
            for array, k, x in stores:
                store(array, k, scalar(x))
        return [code.let(f"fcmp ule {code.type} {scalar(x)}, {scalar(least)}") for x, least in self.bounds]

    def _turns(self, code: Code, read: Callable[[int], str], turn: Any, value: dict[int, str]) -> None:
        """Sines and cosines. Those of a sum of two angles whose own are needed follow from these."""
        nodes = self.tape.nodes
        pair: dict[int, tuple[str, str]] = {}
        sums = [at for at in self.angles if nodes[at].op in "+-" and set(nodes[at].operands) <= set(self.angles)]
        own = [at for at in self.angles if at not in sums]
        pair.update(zip(own, turn(code, [read(at) for at in own]), strict=True))
        for at in sums:
            (sa, ca), (sb, cb) = pair[nodes[at].a], pair[nodes[at].b]
            if nodes[at].op == "-":
                sb = code.negative(sb)
            s = code.fma(sa, cb, code.binary("fmul", ca, sb))
            c = code.fma(ca, cb, code.negative(code.binary("fmul", sa, sb)))
            pair[at] = s, c
        for at, (s, c) in pair.items():
            for op, result in (("sin", s), ("cos", c)):
                node = self.tape.position(Node(op, at))
                value[node] = result

    def _operation(self, code: Code, node: Node, read: Callable[[int], str], inverses: dict[int, str]) -> str:
        op, a, b = node
        if op in "+-":
            inner = [x for x in (a, b) if x in self._inner]
            if inner:
                product = self.tape.nodes[inner[-1]]
                x, y = read(product.a), read(product.b)
                if inner[-1] == b:
                    return code.fma(code.negative(x) if op == "-" else x, y, read(a))
                return code.fma(x, y, code.negative(read(b)) if op == "-" else read(b))
        if op == "/" and b in self._inverse:
            return code.binary("fmul", read(a), read(self._inverse[b]))
        if op == "/" and b in self._often:
            inverse = inverses.get(b)
            if inverse is None:
                inverse = inverses[b] = code.binary("fdiv", code.constant(1.0), read(b))
            top = self.tape.nodes[a]
            return inverse if top == Node("constant", 1.0) else code.binary("fmul", read(a), inverse)
        return code.binary({"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}[op], read(a), read(b))


def _zero(x: Any) -> bool:
    return not isinstance(x, Recorded) and x == 0


def _packed(entries: Sequence[Any]) -> list[int]:
    """Numbers of the entries that are not zero, and one number more for all that are."""
    after = list(accumulate(not _zero(x) for x in entries))
    return [after[-1] if _zero(x) else k - 1 for k, x in zip(after, entries, strict=True)]


def single(plan: Plan, width: int, sincos: int) -> str:
    """Module text of ``i64 single(parameters, inputs…, outputs…)``; nonzero: some input is not finite or bound broken.

    The angles go through ``sincos`` together, as lanes.
    """
    code, wide = Code(1), Code(width)
    inputs = {group: f"%x{i}" for i, group in enumerate(plan.groups)}
    arrays = [f"ptr noalias {name}" for name in ("%parameters", *inputs.values())]
    arrays += [f"ptr noalias %y{i}" for i in range(len(plan.outputs))]
    problems = []
    # Arrays of one length are checked together: 0 x is NaN unless x is finite.
    for n in sorted(set(plan.groups.values()) - {0}):
        whole = f"<{n} x double>"
        zeros = "<" + ", ".join(["double 0.0"] * n) + ">"
        total = ""
        for name in (name for group, name in inputs.items() if plan.groups[group] == n):
            x = code.let(f"load {whole}, ptr {name}, align 8")
            nothing = code.let(f"fmul {whole} {x}, {zeros}")
            total = code.let(f"fadd {whole} {total}, {nothing}") if total else nothing
        lanes = code.let(f"fcmp uno {whole} {total}, {zeros}")
        mask = code.let(f"bitcast <{n} x i1> {lanes} to i{n}")
        problems.append(code.let(f"icmp ne i{n} {mask}, 0"))

    def load(group: str, index: int) -> str:
        address = code.let(f"getelementptr double, ptr {inputs[group]}, i64 {index}")
        return code.let(f"load double, ptr {address}, align 8")

    def turn(code: Code, angles: list[str]) -> list[tuple[str, str]]:
        pairs = []
        for first in range(0, len(angles), width):
            part = angles[first : first + width]
            packed = "zeroinitializer"
            for i, angle in enumerate(part):
                packed = code.let(f"insertelement {wide.type} {packed}, double {angle}, i64 {i}")
            s, c = _sincos(code, wide.type, packed, sincos)
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
    problems += plan.write(code, load, turn, store)
    any_problem = "false"
    for problem in problems:
        any_problem = code.let(f"or i1 {any_problem}, {problem}")
    code.do(f"ret i64 {code.let(f'zext i1 {any_problem} to i64')}")
    return "\n".join(
        [
            f"define i64 @{SINGLE}({', '.join(arrays)}) {{",
            *code.lines,
            "}",
            code.fma_declaration(),
            "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
        ]
    )


def batch(plan: Plan, width: int, sincos: int) -> str:
    """Module text of ``i64 batch(count, parameters, arrays)``, over structures of arrays.

    ``arrays`` holds a pair for every input and output, address and distance of rows in bytes: entry k of state s is
    the double at address + k·distance + 8 s, where k counts the ``slots`` of an output. ``count`` is a positive
    multiple of the width.
    """
    code = Code(width)
    t, mask = code.type, f"<{width} x i1>"
    bases = []
    for array in range(len(plan.groups) + len(plan.outputs)):
        first, second = (code.let(f"getelementptr i64, ptr %arrays, i64 {2 * array + k}") for k in (0, 1))
        bases.append((code.let(f"load ptr, ptr {first}, align 8"), code.let(f"load i64, ptr {second}, align 8")))
    code.do("br label %loop")
    code.label("loop")
    code.do("%lane = phi i64 [ 0, %0 ], [ %next, %loop ]")
    code.do(f"%wrong = phi {mask} [ zeroinitializer, %0 ], [ %now, %loop ]")
    current = [code.let(f"getelementptr double, ptr {pointer}, i64 %lane") for pointer, _ in bases]

    def address(array: int, k: int) -> str:
        offset = code.let(f"mul i64 {bases[array][1]}, {k}")
        return code.let(f"getelementptr i8, ptr {current[array]}, i64 {offset}")

    loaded: dict[tuple[str, int], str] = {}
    total = code.constant(0.0)
    for array, (group, n) in enumerate(plan.groups.items()):
        for k in range(n):
            loaded[group, k] = x = code.let(f"load {t}, ptr {address(array, k)}, align 8")
            code.prefetch(address(array, k), _AHEAD, write=False)
            total = code.fma(x, code.constant(0.0), total)

    def turn(code: Code, angles: list[str]) -> list[tuple[str, str]]:
        return [_sincos(code, t, angle, sincos) for angle in angles]

    def store(array: int, k: int, value: str) -> None:
        place = address(len(plan.groups) + array, plan.slots[array][k])
        code.do(f"store {t} {value}, ptr {place}, align 8")
        if not plan.sparse[array]:
            code.prefetch(place, _AHEAD, write=True)

    problems = [code.let(f"fcmp uno {t} {total}, {total}")]
    problems += plan.write(code, lambda group, k: loaded[group, k], turn, store)
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
            # Vectors that are put aside on the stack would else straddle two cache lines, wherever the stack begins.
            f"define i64 @{BATCH}(i64 %count, ptr %parameters, ptr %arrays) alignstack({8 * width}) {{",
            *code.lines,
            "}",
            code.fma_declaration(),
            PREFETCH,
        ]
    )


def _sincos(code: Code, t: str, angles: str, function: int) -> tuple[str, str]:
    pair = f"{{ {t}, {t} }}"
    both = code.let(f"call {pair} inttoptr (i64 {function} to ptr)({t} {angles})")
    return code.let(f"extractvalue {pair} {both}, 0"), code.let(f"extractvalue {pair} {both}, 1")
