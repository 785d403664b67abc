"""A function on a tape that is compiled in its first call; or interpreted, if it is too long or llvmlite is missing."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from screwdyn.backends.llvm.call import Function
from screwdyn.backends.llvm.program import Program

__all__ = ["Evaluator"]

Array = npt.NDArray[np.float64]


class Evaluator:
    """A function on a tape, for one state or many.

    Code for one state and code for batches are made in the first call with one state or with a batch.

    Parameters
    ----------
    program : Program
    table : array, optional
        The table whose inertias are its parameters.

    Attributes
    ----------
    shapes : list of tuples
        Of the outputs.
    compiled : bool
        As of the program.
    """

    def __init__(self, program: Program, table: Array | None = None) -> None:
        self._program = program
        self.shapes = program.shapes
        self.compiled = program.compiled
        self._function = Function(program, table)
        self._entry: Any = None

    def single(self, state: Sequence[Any], out: Any = None) -> Sequence[Array] | None:
        """The outputs for one state in contiguous arrays of the right shape; None for other arguments."""
        if self._entry is None:
            if self.compiled:
                self._program.compile_single()
            self._entry = self._function.builtin(_refuse) if self.compiled else _refuse
        if self._entry is _refuse:
            return None
        several = len(self.shapes) > 1
        found = self._entry(*state) if out is None else self._entry(*state, out=out if several else out[0])
        return found if several or found is None else (found,)

    def many(self, inputs: Sequence[Array], out: Sequence[Array] | None = None) -> tuple[Sequence[Array], bool]:
        """The outputs for states along the first axis, and whether the assumptions of the tape hold for all of them.

        Arguments are contiguous, do not overlap, and have been checked.
        """
        count = len(inputs[0])
        results = self._parts(np.empty(count * sum(map(math.prod, self.shapes))), count) if out is None else out
        if self.compiled:
            return results, self._run(inputs, results)
        return results, self._program.interpreter()(self._function.parameters, inputs, results)

    def _run(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> bool:
        count = len(inputs[0])
        if count == 1:
            return self._function.single(inputs, outputs)
        self._program.compile_batch()
        return self._function.batch(inputs, [out.reshape(count, 1, math.prod(out.shape[1:])) for out in outputs])

    def _parts(self, block: Array, count: int) -> list[Array]:
        """Output arrays in one block of memory, which is allocated faster than several blocks."""
        ends = np.cumsum([count * math.prod(shape) for shape in self.shapes])[:-1]
        parts = np.split(block, ends)
        return [part.reshape(count, *shape) for part, shape in zip(parts, self.shapes, strict=True)]


def _refuse(*state: Any, out: Any = None) -> None:
    """Return None: the arguments are not one state in contiguous arrays."""
