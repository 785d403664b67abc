"""The plan of a function on a tape: the order of its operations, and the values that do not depend on the state."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from screwdyn.backends.tape.tape import Node, Recorded, Tape

__all__ = ["Plan", "is_zero"]

# Arrays with more zeros than this are sparse.
_FEW = 100


class Plan:
    """A function on a tape, divided into values that are known before the state, angles, and other operations.

    Parameters
    ----------
    tape : Tape
    groups : mapping from str to int
        Names of the input arrays in order, and their numbers of entries; inputs are named (group, index).
    outputs : sequence of sequences of scalars
        Entries of every output array.
    bounds : sequence of (x, least)
        Conditions x > least under which the results are valid.
    fused : bool
        Whether the processor has a fused multiply-add.

    Attributes
    ----------
    known : list of int
        Positions that depend on parameters only and that other operations read; the code reads their values from an
        array.
    inverse : dict of int
        For each known divisor the position of its inverse, which is known too; the division becomes a product.
    angles : list of int
        Positions of which sine or cosine is computed.
    early : list of int
        The angles that do not depend on sines, cosines, roots or hyperbolic tangents: they are turned first.
    steps : list of int
        Positions of the other operations, in order, and of sines and cosines of the angles that are not early.
    inner : set of int
        Products that become part of a fused multiply-add.
    often : set of int
        Divisors of several divisions: their inverse is computed once.
    size : int
        Number of operations for a state.
    sparse : list of bool
        Whether each output has many zeros, which are then stored together.
    slots : list of lists of int
        For each output, the scratch row of each entry in a batch: in order, except that all zeros of a sparse output
        share one row after the others, to which nothing is written.
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
