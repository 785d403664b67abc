"""What a function on a tape becomes: a plan, and text in LLVM's intermediate representation.

The plan is the order of its operations, and the values that do not depend on the state. The text is for one state, for
one state in each lane, or for many steps of an integrator with one state in each lane.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import accumulate, chain
from typing import Any, NamedTuple

from screwdyn.backends.llvm.ir import PREFETCH, SELDOM, Code, near_sincos, number, tanh
from screwdyn.backends.tape.tape import Node, Recorded, Tape

SINGLE, BATCH, STEPS = "single", "batch", "steps"
# Arrays with more zeros than this are sparse.
_FEW = 100
# Largest input, 1.6e60: the fifth power of a greater one overflows.
_LARGEST = 2.0**200
# The product of this and a greater input overflows. A sum of products that has overflowed stays infinite or becomes
# NaN, and 0 times either is NaN.
_SCALE = 2.0**824
# Number of bytes to prefetch ahead.
_AHEAD = 768
_OPERATIONS = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}


# Groups of inputs: the variables of a loop, and what they are after it.
SOUGHT, FOUND = "sought", "found"
_PHASES = {SOUGHT: 1, FOUND: 2}


class Loop(NamedTuple):
    """Operations that are repeated until the last variable is not positive in any lane, at most so many times.

    The variables are inputs (SOUGHT, k); inputs (FOUND, k) are what they are after the loop.
    """

    start: Sequence[Any]
    after: Sequence[Any]  # what they are after one time
    most: int


class Plan:
    """A function on a tape, divided into values that are known before the state, angles, and other operations."""

    def __init__(
        self,
        tape: Tape,
        groups: Mapping[str, int],  # lengths of the arrays of inputs (group, index), in order
        outputs: Sequence[Sequence[Any]],
        bounds: Sequence[tuple[Any, Any]],  # results are valid if all x > least hold
        fused: bool,  # whether there is a fused multiply-add
        loop: Loop | None = None,
    ) -> None:
        self.tape, self.groups, self.outputs, self.bounds, self.loop = tape, dict(groups), outputs, bounds, loop
        ends = [*chain(*outputs, *bounds), *(chain(loop.start, loop.after) if loop else ())]
        nodes, live = tape.nodes, tape.live(ends)
        given: set[int] = set()
        # Whether an operation is before the loop, within it or after it.
        phase: dict[int, int] = {}
        for at in live:
            node = nodes[at]
            is_input = node.op == "input"
            phase[at] = max([_PHASES.get(node.a[0], 0) if is_input else 0, *(phase[x] for x in node.operands)])
            if not phase[at] and (node.a[0] not in groups if is_input else given.issuperset(node.operands)):
                given.add(at)
        steps = [at for at in live if at not in given and nodes[at].op != "input"]
        uses: dict[int, list[int]] = {at: [] for at in live}
        for at in steps:
            for operand in nodes[at].operands:
                uses[operand].append(at)
        kept = {x.node for x in ends if isinstance(x, Recorded)}
        # For each known divisor the position of its inverse, which is known too; the division becomes a product.
        one = tape.constant(1.0).node
        divisors = Counter(nodes[at].b for at in steps if nodes[at].op == "/")
        self.inverse = {at: tape.position(Node("/", one, at)) for at in divisors if at in given}
        # Positions that depend on parameters only and that other operations read; the code reads them from an array.
        read = sorted({at for at in given if uses[at] or at in kept} | set(self.inverse.values()))
        self.known = [at for at in read if nodes[at].op != "constant"]
        turns = {at for at in steps if nodes[at].op in ("sin", "cos")}
        self.angles = sorted({nodes[at].a for at in turns})
        late: set[int] = set()
        for at in steps:
            own = phase[at] or nodes[at].op in ("sin", "cos", "sqrt", "tanh")
            if own or not late.isdisjoint(nodes[at].operands):
                late.add(at)
        # The angles that do not depend on sines, cosines, roots or hyperbolic tangents: they are turned first.
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
        # The other operations, in order, and sines and cosines of the angles that are not early.
        first = [at for at in steps if at not in self.inner and not (at in turns and nodes[at].a not in late)]
        self.steps = sorted(first, key=lambda at: phase[at])
        self.phases = [sum(phase[at] <= k for at in first) for k in (0, 1)]
        self.size = len(steps)
        # Whether each output has many zeros, which then share one scratch row after the others, to which nothing is
        # written; and the scratch row of each of its entries in a batch.
        self.sparse = [bool(sum(map(_is_zero, entries)) > _FEW) for entries in outputs]
        self.slots = [
            _packed(entries) if sparse else list(range(len(entries)))
            for entries, sparse in zip(outputs, self.sparse, strict=True)
        ]


def _is_zero(x: Any) -> bool:
    """Whether an output is the constant zero."""
    return not isinstance(x, Recorded) and x == 0


def _packed(entries: Sequence[Any]) -> list[int]:
    """Rows of the entries: consecutive numbers for entries that are not zero, and one further number for all zeros."""
    after = list(accumulate(not _is_zero(x) for x in entries))
    return [after[-1] if _is_zero(x) else k - 1 for k, x in zip(after, entries, strict=True)]


class _Writer:
    """Writes the operations of a plan as instructions on values of one width."""

    def __init__(
        self,
        plan: Plan,
        code: Code,
        load: Callable[[str, int], str],  # of an input
        turn: Callable[[list[str]], list[tuple[str, str]]],  # sine and cosine of several angles
        store: Callable[[int, int, str], None],  # an entry of an output
    ) -> None:
        self._plan, self._code, self._load, self._turn, self._store = plan, code, load, turn, store
        self._value: dict[int, str] = {}
        self._inverses: dict[int, str] = {}
        self._pairs: dict[int, tuple[str, str]] = {}
        self._place = {at: k for k, at in enumerate(plan.known)}
        self._angles = set(plan.angles)

    def write(self) -> list[str]:
        """Write every operation; return conditions that are true if a bound does not hold."""
        plan, code = self._plan, self._code
        stores: dict[int, list[tuple[int, int, Any]]] = {}
        for array, entries in enumerate(plan.outputs):
            for k, x in enumerate(entries):
                if isinstance(x, Recorded):
                    stores.setdefault(x.node, []).append((array, k, x))
                elif not (plan.sparse[array] and _is_zero(x)):
                    self._store(array, k, self._scalar(x))
        self._turns()
        before, within = plan.phases
        for n, at in enumerate(plan.steps):
            if n == before and plan.loop:
                self._repeat(plan.loop, plan.steps[before:within])
            self._read(at)
            for array, k, x in stores.pop(at, ()):
                self._store(array, k, self._scalar(x))
        for array, k, x in chain(*stores.values()):
            self._store(array, k, self._scalar(x))
        return [code.let(f"fcmp ule {code.type} {self._scalar(x)}, {self._scalar(least)}") for x, least in plan.bounds]

    def _repeat(self, loop: Loop, steps: Sequence[int]) -> None:
        """Write a loop."""
        code, tape = self._code, self._plan.tape
        first, before, names = [self._scalar(x) for x in loop.start], code.block, range(len(loop.start))
        for k in names:
            self._value[tape.input((SOUGHT, k)).node] = f"%sought{k}"
        with code.loop("sweep", "%sweep_last"):
            begin = len(code.lines)
            for at in steps:
                self._read(at)
            after = [self._scalar(x) for x in loop.after]
            further = code.let(f"fcmp ogt {code.type} {after[-1]}, {code.constant(0.0)}")
            mask = code.let(f"bitcast <{code.width} x i1> {further} to i{code.width}")
            code.do(f"%sweep_last = select i1 {code.let(f'icmp ne i{code.width} {mask}, 0')}, i64 {loop.most}, i64 0")
        code.lines[begin:begin] = [
            f"  %sought{k} = phi {code.type} [ {first[k]}, %{before} ], [ {after[k]}, %sweep_end ]" for k in names
        ]
        self._value.update((tape.input((FOUND, k)).node, after[k]) for k in names)

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
            return code.splat(code.load(code.at("%parameters", self._place[at], "double"), "double"))
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
            return code.call(op, self._read(a)) if op == "sqrt" else tanh(code, self._read(a))
        if op in ("positive", "negative"):
            zero, t = code.constant(0.0), code.type
            holds = code.let(f"fcmp {'ogt' if op == 'positive' else 'olt'} {t} {self._read(a)}, {zero}")
            return code.let(f"select <{code.width} x i1> {holds}, {t} {code.constant(1.0)}, {t} {zero}")
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
        return code.binary(_OPERATIONS[op], self._read(a), self._read(b))


def single(plan: Plan, width: int) -> str:
    """Module text of ``i64 single(parameters, arrays)``, where ``arrays`` has the address of every input and output.

    ``parameters`` has the known values of the plan, then the address of ``ir.sincos``; the angles are lanes of its
    calls. The result is nonzero if an input is not finite or a bound does not hold.
    """
    code, wide = Code(1), Code(width)
    _read_sincos(code, plan)
    inputs = {group: f"%x{i}" for i, group in enumerate(plan.groups)}
    for k, name in enumerate([*inputs.values(), *(f"%y{i}" for i in range(len(plan.outputs)))]):
        code.do(f"{name} = load ptr, ptr {code.at('%arrays', k, 'ptr')}, align 8")
    problems = ["false"]
    # Arrays of one length are checked together.
    for n in sorted(set(plan.groups.values()) - {0}):
        whole = f"<{n} x double>"
        zeros, scale = ("<" + ", ".join([f"double {number(x)}"] * n) + ">" for x in (0.0, _SCALE))
        total = ""
        for name in (name for group, name in inputs.items() if plan.groups[group] == n):
            scaled = code.let(f"fmul {whole} {code.load(name, whole)}, {scale}")
            total = code.let(f"fadd {whole} {total}, {scaled}") if total else scaled
        nothing = code.let(f"fmul {whole} {total}, {zeros}")
        lanes = code.let(f"fcmp uno {whole} {nothing}, {zeros}")
        mask = code.let(f"bitcast <{n} x i1> {lanes} to i{n}")
        problems.append(code.let(f"icmp ne i{n} {mask}, 0"))

    def load(group: str, index: int) -> str:
        return code.load(code.at(inputs[group], index, "double"))

    def turn(angles: list[str]) -> list[tuple[str, str]]:
        pairs = []
        for first in range(0, len(angles), width):
            part = angles[first : first + width]
            packed = "zeroinitializer"
            for i, angle in enumerate(part):
                packed = code.let(f"insertelement {wide.type} {packed}, double {angle}, i64 {i}")
            s, c = _call_sincos(code, wide.type, packed)
            for i in range(len(part)):
                sine, cosine = (code.let(f"extractelement {wide.type} {x}, i64 {i}") for x in (s, c))
                pairs.append((sine, cosine))
        return pairs

    def store(array: int, k: int, value: str) -> None:
        code.do(f"store double {value}, ptr {code.at(f'%y{array}', k, 'double')}, align 8")

    for array, entries in enumerate(plan.outputs):
        if plan.sparse[array]:
            code.do(f"call void @llvm.memset.p0.i64(ptr align 8 %y{array}, i8 0, i64 {8 * len(entries)}, i1 false)")
    problems += _Writer(plan, code, load, turn, store).write()
    code.do(f"ret i64 {code.let(f'zext i1 {_any(code, problems)} to i64')}")
    # The compiler may assume that arrays do not overlap.
    head = f"i64 @{SINGLE}(ptr noalias %parameters, ptr noalias %arrays)"
    return code.function(head, "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")


def batch(plan: Plan, width: int) -> str:
    """Module text of ``i64 batch(count, parameters, arrays)``, over structures of arrays; parameters as ``single``.

    ``arrays`` has a pair for every input and output, address and row stride in bytes: entry k of state s is the double
    at address + k·stride + 8 s, where k is a slot of an output. ``count`` is a positive multiple of the width. The
    result is nonzero if an input is not finite or a bound does not hold. Outputs must not overlap inputs.
    """
    code = Code(width)
    t, mask = code.type, f"<{width} x i1>"
    _read_sincos(code, plan)
    bases = _pairs(code, len(plan.groups) + len(plan.outputs))
    current: list[str] = []

    def address(array: int, k: int) -> str:
        return code.at(current[array], code.let(f"mul i64 {bases[array][1]}, {k}"), "i8")

    names, total = list(plan.groups), code.constant(0.0)
    loaded: dict[tuple[str, int], str] = {}

    def load(group: str, k: int) -> str:
        """An input, read and prefetched where it is first used: together they would exceed the registers and queues."""
        nonlocal total
        if (group, k) not in loaded:
            place = address(names.index(group), k)
            loaded[group, k] = x = code.load(place)
            code.prefetch(place, _AHEAD, write=False)
            total = _add_size(code, total, x)
        return loaded[group, k]

    turned = False

    def turn(angles: list[str]) -> list[tuple[str, str]]:
        """Sine and cosine of the early angles are written out, side by side; those of others are called."""
        nonlocal turned
        if turned:
            return [_call_sincos(code, t, angle) for angle in angles]
        turned, any_far = True, code.let(f"xor {mask} zeroinitializer, zeroinitializer")
        near = []
        for angle in angles:
            s, c, far = near_sincos(code, angle)
            near.append((s, c))
            any_far = code.let(f"or {mask} {any_far}, {far}")
        bits = code.let(f"bitcast {mask} {any_far} to i{width}")
        code.branch(code.let(f"icmp ne i{width} {bits}, 0"), "far", "turned", seldom=True)
        code.label("far")
        exact = [_call_sincos(code, t, angle) for angle in angles]
        code.do("br label %turned")
        code.label("turned")

        def either(near: str, exact: str) -> str:
            return code.let(f"phi {t} [ {near}, %lane_begin ], [ {exact}, %far ]")

        return [(either(s, x), either(c, y)) for (s, c), (x, y) in zip(near, exact, strict=True)]

    def store(array: int, k: int, value: str) -> None:
        place = address(len(plan.groups) + array, plan.slots[array][k])
        code.do(f"store {t} {value}, ptr {place}, align 8")
        if not plan.sparse[array]:
            code.prefetch(place, _AHEAD, write=True)

    with code.loop("lane", "%count", width):
        code.do(f"%wrong = phi {mask} [ zeroinitializer, %0 ], [ %now, %lane_end ]")
        current += [code.at(pointer, "%lane", "double") for pointer, _ in bases]
        problems = _Writer(plan, code, load, turn, store).write()
        for group, n in plan.groups.items():
            for k in range(n):
                load(group, k)  # to check those that are not used, too
        code.do(f"%now = or {mask} {_any(code, ['%wrong', *problems])}, {_too_large(code, total)}")
    return _over_lanes(code, f"i64 @{BATCH}(i64 %count, ptr %parameters, ptr %arrays)", "%now", PREFETCH, SELDOM)


def steps(plan: Plan, width: int) -> str:
    """Module text of ``i64 steps(count, context, arrays)``, over structures of arrays as in ``batch``.

    The first inputs of the plan are the state, and the outputs are the state after a step. ``arrays`` has a pair for
    every input, for every output, and for the number of steps done. An output has the rows of all samples in order. An
    input that changes with time has the rows of all steps in order, otherwise the rows of one. The context begins with
    the numbers of samples and of steps between them, and for each input the number of rows that it advances in a step;
    the parameters follow. A state with entries that are not finite, or for which a bound does not hold, becomes NaN,
    and its steps are not counted any more. The result is nonzero if there is such a state.
    """
    code = Code(width)
    t, mask, size = code.type, f"<{width} x i1>", 8 * width
    groups, lengths = list(plan.groups.items()), [len(out) for out in plan.outputs]
    names = [group for group, _ in groups]
    carried = [(group, k) for group, n in groups[: len(lengths)] for k in range(n)]
    place = {entry: at for at, entry in enumerate(carried)}

    def integer(k: int) -> str:
        return code.load(code.at("%context", k, "i64"), "i64")

    code.do(f"%parameters = getelementptr i64, ptr %context, i64 {2 + len(groups)}")
    _read_sincos(code, plan)
    code.do(f"%state = alloca {t}, i64 {len(carried) + 1}, align {size}")
    samples, every = integer(0), integer(1)
    bases = _pairs(code, len(groups) + len(lengths) + 1)
    advances = [code.let(f"mul i64 {integer(2 + k)}, {bases[k][1]}") for k in range(len(groups))]

    def local(at: int) -> str:
        return code.at("%state", at)

    def row(pointer: str, array: int, k: int | str) -> str:
        return code.at(pointer, code.let(f"mul i64 {bases[array][1]}, {k}"), "i8")

    def turn(angles: list[str]) -> list[tuple[str, str]]:
        return [_call_sincos(code, t, angle) for angle in angles]

    def step(current: list[str]) -> str:
        """Write a step; returns the condition that it fails, or has failed before."""
        loaded = {entry: code.load(local(at), align=size) for entry, at in place.items()}
        here = [code.at(at, code.let(f"mul i64 %s, {by}"), "i8") for at, by in zip(current, advances, strict=False)]

        def load(group: str, k: int) -> str:
            array = names.index(group)
            return loaded.get((group, k)) or code.load(row(here[array], array, k))

        after: dict[tuple[str, int], str] = {}

        def store(array: int, k: int, value: str) -> None:
            after[names[array], k] = value

        problems = _Writer(plan, code, load, turn, store).write()
        total = code.constant(0.0)
        for value in after.values():
            total = _add_size(code, total, value)
        wrong = _any(code, [_too_large(code, total), *problems])
        for entry, value in after.items():
            kept = code.let(f"select {mask} {wrong}, {t} {code.constant(float('nan'))}, {t} {value}")
            code.do(f"store {t} {kept}, ptr {local(place[entry])}, align {size}")
        done = code.load(local(len(carried)), align=size)
        further = code.binary("fadd", done, code.constant(1.0))
        now = code.let(f"select {mask} {wrong}, {t} {done}, {t} {further}")
        code.do(f"store {t} {now}, ptr {local(len(carried))}, align {size}")
        return wrong

    with code.loop("lane", "%count", width):
        code.do(f"%failed = phi {mask} [ zeroinitializer, %0 ], [ %failed1, %lane_end ]")
        current = [code.at(pointer, "%lane", "double") for pointer, _ in bases]
        # Of the next states, for calls of few steps.
        for array, n in enumerate([*plan.groups.values(), *lengths]):
            for k in range(n):
                code.prefetch(row(current[array], array, k), _AHEAD, write=array >= len(groups))
        for at, (group, k) in enumerate(carried):
            array = names.index(group)
            code.do(f"store {t} {code.load(row(current[array], array, k))}, ptr {local(at)}")
        code.do(f"store {t} zeroinitializer, ptr {local(len(carried))}, align {size}")
        with code.loop("k", samples, start=("0", every)):
            code.do(f"%until = add i64 %k_start, {every}")
            with code.loop("s", "%last", first="%k_start"):
                wrong = step(current)
                # A group of states that are all NaN takes no further steps before the next sample.
                alive = code.let(f"icmp ne i{width} {code.let(f'bitcast {mask} {wrong} to i{width}')}, -1")
                code.do(f"%last = select i1 {alive}, i64 %until, i64 0")
            for out, n in enumerate(lengths):
                array = len(groups) + out
                first = row(current[array], array, code.let(f"mul i64 %k, {n}"))
                for k in range(n):
                    value = code.load(local(place[names[out], k]), align=size)
                    code.do(f"store {t} {value}, ptr {row(first, array, k)}, align 8")
        code.do(f"store {t} {code.load(local(len(carried)), align=size)}, ptr {current[-1]}, align 8")
        code.do(f"%failed1 = or {mask} %failed, {wrong}")
    return _over_lanes(code, f"i64 @{STEPS}(i64 %count, ptr %context, ptr %arrays)", "%failed1", PREFETCH)


def _any(code: Code, conditions: Sequence[str]) -> str:
    """Whether one of some conditions holds, in each lane."""
    kind = "i1" if code.width == 1 else f"<{code.width} x i1>"
    return reduce(lambda a, b: code.let(f"or {kind} {a}, {b}"), conditions)


def _pairs(code: Code, arrays: int) -> list[tuple[str, str]]:
    """Read the address and the row stride of structures of arrays."""
    found = []
    for k in range(0, 2 * arrays, 2):
        first, second = code.at("%arrays", k, "i64"), code.at("%arrays", k + 1, "i64")
        found.append((code.load(first, "ptr"), code.load(second, "i64")))
    return found


def _over_lanes(code: Code, head: str, wrong: str, *others: str) -> str:
    """Text of a module with a function that returns a mask."""
    bits = code.let(f"bitcast <{code.width} x i1> {wrong} to i{code.width}")
    code.do(f"ret i64 {code.let(f'zext i{code.width} {bits} to i64')}")
    # Aligned, so that vectors spilled to the stack do not straddle two cache lines.
    return code.function(f"{head} alignstack({8 * code.width})", *others)


def _add_size(code: Code, total: str, x: str) -> str:
    """total + |x|: sums take other units of the processor than fused multiply-adds, which limit the speed."""
    return code.binary("fadd", total, code.call("fabs", x))


def _too_large(code: Code, total: str) -> str:
    """Whether a sum of sizes is NaN, or so large that the fifth power of a term may overflow."""
    return code.let(f"fcmp ugt {code.type} {total}, {code.constant(_LARGEST)}")


def _read_sincos(code: Code, plan: Plan) -> None:
    """Read the address of ``ir.sincos``, which differs between processes, from the end of ``parameters``."""
    code.do(f"%sincos = load ptr, ptr {code.at('%parameters', len(plan.known), 'ptr')}, align 8")


def _call_sincos(code: Code, t: str, angles: str) -> tuple[str, str]:
    """Call ``ir.sincos`` for a vector of type ``t``; returns the names of sines and cosines."""
    pair = f"{{ {t}, {t} }}"
    both = code.let(f"call {pair} %sincos({t} {angles})")
    return code.let(f"extractvalue {pair} {both}, 0"), code.let(f"extractvalue {pair} {both}, 1")
