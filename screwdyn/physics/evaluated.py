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
    """

    def __init__(self, name: str, tape: Tape, groups: Sequence[str], n: int, outputs: Sequence[Scalars]) -> None:
        self._tape, self._groups, self._outputs = tape, groups, outputs
        self._program = native.Program(name, tape, groups, n, outputs)
        self._bound = native.Bound(self._program)
        self._compiled = n > 0 and self._program.plan.size <= native.LARGEST
        self._entry: Any = None

    def single(self, *state: Any) -> tuple[Array, ...] | None:
        """The outputs for one state in contiguous arrays of the right shape; None for anything else."""
        if self._entry is None:
            if self._compiled and not self._program.single:
                self._program.compile_single()
            self._entry = self._bound.builtin(_refuse) if self._compiled else _refuse
        outputs = tuple([np.empty(shape) for shape in self._program.shapes])
        given = self._entry(*state, out=outputs if len(outputs) > 1 else outputs[0])
        return None if given is None else outputs

    def many(self, inputs: Sequence[Array]) -> tuple[list[Array], bool]:
        """The outputs for any number of states along the first axis, and whether all that the tape assumes is true."""
        count = len(inputs[0])
        if not self._compiled:
            return self._played(inputs, count)
        outputs = [np.empty((count, *shape)) for shape in self._program.shapes]
        if count == 1:
            return outputs, self._bound.one(inputs, outputs)
        if not self._program.batch:
            self._program.compile_batch()
        return outputs, self._bound.many(
            inputs, [out.reshape(count, len(out[0]), -1) if count else out for out in outputs]
        )

    def _played(self, inputs: Sequence[Array], count: int) -> tuple[list[Array], bool]:
        values: dict[Hashable, Any] = {
            (group, i): x[:, i] for group, x in zip(self._groups, inputs, strict=True) for i in range(x.shape[1])
        }
        assumed = [x for pair in self._tape.assumed for x in pair]
        scalars = [x for out in self._outputs for x in out.ravel()]
        played = iter(self._tape.play([*scalars, *assumed], values, np.sin, np.cos))
        results = [np.empty((count, *out.shape)) for out in self._outputs]
        for out in results:
            for where in np.ndindex(out.shape[1:]):
                out[:, *where] = next(played)
        bounds = list(played)
        return results, all(np.all(x > least) for x, least in zip(bounds[::2], bounds[1::2], strict=True))


def _refuse(*state: Any, out: Any) -> None:
    """What is not one state in plain arrays is for others."""
