"""What callers of a compiled function need besides its code."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from screwdyn.backends.llvm.plan import Plan
from screwdyn.backends.tape.tape import Node, Recorded, Tape
from screwdyn.backends.tape.trace import Scalars

__all__ = ["Interface", "interface", "restored"]


class Interface(NamedTuple):
    """The arrays of a compiled function, and the values that it reads before the state is known.

    Attributes
    ----------
    name : str
    lengths : list of int
        Of the inputs.
    shapes : list of tuples
        Of the outputs.
    sparse : list of bool
        Whether each output has many zeros, which share a row of scratch space.
    slots : list of lists of int
        For each input and output the row of scratch space of every entry in a batch.
    known : (Tape, list of Recorded)
        The values that depend on parameters only, in the order in which the code reads them.
    """

    name: str
    lengths: list[int]
    shapes: list[tuple[int, ...]]
    sparse: list[bool]
    slots: list[list[int]]
    known: tuple[Tape, list[Any]]

    def plain(self) -> list[Any]:
        """The interface as lists, texts and numbers, for JSON."""
        tape, known = self.known
        return [*self[:-1], tape.nodes, [x.node for x in known]]


def interface(name: str, plan: Plan, outputs: Sequence[Scalars]) -> Interface:
    """The interface of a planned function."""
    lengths = list(plan.groups.values())
    slots = [list(range(n)) for n in lengths] + plan.slots
    known = plan.tape.excerpt([Recorded(plan.tape, at) for at in plan.known])
    return Interface(name, lengths, [x.shape for x in outputs], plan.sparse, slots, known)


def restored(plain: list[Any]) -> Interface:
    """The interface from what :meth:`Interface.plain` has returned."""
    name, lengths, shapes, sparse, slots, nodes, known = plain
    tape = Tape()
    tape.nodes = [Node(op, _hashable(a), b) for op, a, b in nodes]
    return Interface(name, lengths, [*map(tuple, shapes)], sparse, slots, (tape, [Recorded(tape, at) for at in known]))


def _hashable(x: Any) -> Any:
    """A list as nested tuples, as in the names of inputs."""
    return tuple(map(_hashable, x)) if isinstance(x, list) else x
