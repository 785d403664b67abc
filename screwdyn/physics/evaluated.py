"""Any function on a tape, carried out: compiled for this processor, or by NumPy where it is too long to be compiled."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from . import native
from .tape import Tape
from .unrolled import Scalars

__all__ = ["Evaluated"]

Array = npt.NDArray[np.float64]


class Evaluated:
    """A function on a tape with arrays of outputs, for one state or many.

    Code is made when a state, or a batch, is first given.

    Parameters
    ----------
    name : str
    tape : Tape
    groups : sequence of str
        Names of the input arrays in order; inputs are named (group, index).
    n : int
        Entries of every input array.
    outputs : sequence of arrays of scalars

    Attributes
    ----------
    shapes : list of tuples
        Of the outputs.
    compiled : bool
        Whether it is short enough for that, and gives anything.
    """

    def __init__(self, name: str, tape: Tape, groups: Sequence[str], n: int, outputs: Sequence[Scalars]) -> None:
        self._tape, self._groups, self._outputs = tape, groups, outputs
        self.shapes = [out.shape for out in outputs]
        self._program = native.Program(name, tape, groups, n, outputs)
        self.compiled = n > 0 and len(outputs) > 0 and self._program.plan.size <= native.LARGEST
        self._bound = native.Bound(self._program)
        self._entry: Any = None

    def single(self, state: Sequence[Any], out: Any = None) -> Sequence[Array] | None:
        """The outputs for one state in contiguous arrays of the right shape; None where that is not what is given."""
        if self._entry is None:
            if self.compiled:
                self._program.compile_single()
            self._entry = self._bound.builtin(_refuse) if self.compiled else _refuse
        if self._entry is _refuse:
            return None
        outputs = tuple([np.empty(shape) for shape in self.shapes]) if out is None else out
        given = self._entry(*state, out=outputs if len(self.shapes) > 1 else outputs[0])
        return None if given is None else outputs

    def many(self, inputs: Sequence[Array], out: Sequence[Array] | None = None) -> tuple[Sequence[Array], bool]:
        """The outputs for states along the first axis, and whether all that the tape assumes is true of them.

        Arguments are contiguous, apart from each other, and have been checked.
        """
        count = len(inputs[0])
        results = self._parts(np.empty(count * sum(map(_size, self.shapes))), count) if out is None else out
        if self.compiled:
            return results, self._run(inputs, results)
        values: dict[Hashable, Any] = {
            (group, i): x[:, i] for group, x in zip(self._groups, inputs, strict=True) for i in range(x.shape[1])
        }
        entries = [x for whole in self._outputs for x in whole.ravel()]
        columns = [column for y in results for column in y.reshape(count, _size(y.shape[1:])).T]
        for column, x in zip(columns, self._tape.play(entries, values, np.sin, np.cos), strict=True):
            column[:] = x
        return results, True

    def _run(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> bool:
        count = len(inputs[0])
        if count == 1:
            return self._bound.one(inputs, outputs)
        if not self._program.batch:
            self._program.compile_batch()
        return self._bound.many(inputs, [out.reshape(count, 1, _size(out.shape[1:])) for out in outputs])

    def _parts(self, block: Array, count: int) -> list[Array]:
        """Output arrays in one block of memory, which the operating system is less often asked for than for several."""
        ends = np.cumsum([count * _size(shape) for shape in self.shapes])[:-1]
        parts = np.split(block, ends)
        return [part.reshape(count, *shape) for part, shape in zip(parts, self.shapes, strict=True)]


def _size(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape))


def _refuse(*state: Any, out: Any) -> None:
    """What is not one state in plain arrays is for others."""
