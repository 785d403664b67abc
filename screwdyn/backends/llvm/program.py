"""A planned function on a tape, and its machine code."""

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from screwdyn.backends import entry
from screwdyn.backends.background import compiling
from screwdyn.backends.llvm import emit
from screwdyn.backends.llvm.interpreter import Interpreter
from screwdyn.backends.llvm.machine import Loaded, host
from screwdyn.backends.llvm.plan import Plan
from screwdyn.backends.platform_layout import address
from screwdyn.backends.tape.tape import Recorded, Tape
from screwdyn.backends.tape.trace import Scalars

__all__ = ["LARGEST", "Program"]

Array = npt.NDArray[np.float64]
# Functions with more operations are not compiled; compiling this many takes about 5 s.
LARGEST = 50_000
# Memory of an operation on a tape, in bytes.
_OPERATION = 250


class Program:
    """A planned function, and the machine code that is made from it on request.

    Parameters
    ----------
    name : str
    tape : Tape
    groups : mapping from str to int
        Names of the input arrays in order, and their numbers of entries; inputs are named (group, index). Other inputs
        are parameters.
    outputs : sequence of arrays of scalars

    Attributes
    ----------
    plan : Plan or None
        None when all code has been made.
    compiled : bool
        Whether it is compiled: it is short enough, and has inputs and outputs. Other functions use the ``interpreter``.
    lengths : list of int
        Of the inputs.
    shapes : list of tuples
        Of the outputs.
    sparse : list of bool
        Whether each output has many zeros, which share a row of scratch space.
    rows : list of int
        Number of rows of scratch space of every input and output.
    slots : list of int
        Addresses of the slots of each of them; see ``batch_loop.Field``.
    single, batch : int
        Addresses of the code for one state and of the code for many states; 0 if not made yet.
    """

    def __init__(self, name: str, tape: Tape, groups: Mapping[str, int], outputs: Sequence[Scalars]) -> None:
        self.name, self.lengths = name, list(groups.values())
        self.shapes = [out.shape for out in outputs]
        entries = [out.ravel().tolist() for out in outputs]
        plan = Plan(tape, groups, entries, tape.assumed, host().fused)
        self.plan: Plan | None = plan
        self.sparse = plan.sparse
        self.compiled = plan.size <= LARGEST and sum(self.lengths) > 0 and len(outputs) > 0
        self._known = tape.excerpt([Recorded(tape, at) for at in plan.known])
        slots = [list(range(n)) for n in self.lengths] + plan.slots
        self.rows = [1 + max(here, default=-1) for here in slots]
        lanes = range(host().width)
        self._slots = [
            np.array([*lanes, *here, *(n + k for k in lanes)], dtype=np.int64)
            for n, here in zip(self.rows, slots, strict=True)
        ]
        self.slots = [address(here[len(lanes) :]) for here in self._slots]
        self._code: list[Loaded] = []
        self._interpreter: Interpreter | None = None
        self.single = self.batch = 0

    @property
    def nbytes(self) -> int:
        """Memory that is kept in bytes, with an error of a few per cent."""
        operations = len(self._known[0].nodes) + (len(self.plan.tape.nodes) if self.plan else 0)
        interpreter = self._interpreter.nbytes if self._interpreter else 0
        return _OPERATION * operations + interpreter + sum(x.nbytes for x in self._code)

    def parameters(self, values: Mapping[Hashable, float]) -> Array:
        """The array that the code reads: known values, from the values of the parameters, and an address."""
        tape, known = self._known
        # Values that are not finite violate the bounds of the program.
        with np.errstate(divide="ignore", invalid="ignore"):
            array = np.array([*tape.evaluate(known, values), 0.0], dtype=np.float64)
        array[-1:].view(np.int64)[0] = host().sincos
        return array

    @compiling
    def compile_single(self) -> None:
        """Make the code for one state unless it exists."""
        if self.single:
            return
        assert self.plan is not None
        code = self._load(emit.single(self.plan, host().width))
        entry.prepare(len(self.lengths), [*map(len, self.shapes)])  # so that a call does not wait for it
        self.single = code.address(emit.SINGLE)
        self._forget()

    @compiling
    def compile_batch(self) -> None:
        """Make the code for many states, unless it exists."""
        if self.batch:
            return
        assert self.plan is not None
        code = self._load(emit.batch(self.plan, host().width))
        self.batch = code.address(emit.BATCH)
        self._forget()

    @compiling
    def interpreter(self) -> Interpreter:
        """The interpreter of the function, used instead of code."""
        if self._interpreter is None:
            assert self.plan is not None
            self._interpreter, self.plan = Interpreter(self.plan), None
        return self._interpreter

    def _load(self, text: str) -> Loaded:
        code = Loaded(text)
        self._code.append(code)
        return code

    def _forget(self) -> None:
        if self.single and self.batch:
            self.plan = None
