"""Calls of a compiled function with NumPy arrays, for one state and for batches in any layout."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from screwdyn.backends.kernels.entry import Computation, address, addresses, builtin_at
from screwdyn.backends.llvm.host import host
from screwdyn.backends.llvm.program import Program
from screwdyn.physics.table import MASS, PARENT

__all__ = ["Function", "drive", "inertias"]

Array = npt.NDArray[np.float64]
# Largest number of states in a block, and of entries of all their arrays; number of states in a block without copies.
_STATES, _ENTRIES, _IN_PLACE = 32, 25_000, 2048
# Results of more bytes than this do not fit into the processor's caches.
_CACHED = 2**22


class Function:
    """A program with the parameters of one table, if it has parameters.

    Parameters
    ----------
    program : Program
    table : array, optional
        The table whose inertias are its parameters.
    """

    def __init__(self, program: Program, table: Array | None = None) -> None:
        self.program = program
        self.parameters = program.parameters({} if table is None else inertias(table))

    def builtin(self, slow: Callable[..., Any]) -> Any:
        """The built-in function for one state, which calls ``slow`` for other arguments; ``slow`` if there is none."""
        program, parameters = self.program, self.parameters
        arrays = program.lengths, program.shapes
        return builtin_at(program.name, program.single, address(parameters), *arrays, slow, (program, parameters))

    def single(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> bool:
        """Compute one state in contiguous arrays; False if an input is not finite or a bound does not hold."""
        arrays = addresses([*inputs, *outputs])
        return not Computation(self.program.single)(address(self.parameters), address(arrays))

    def batch(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> bool:
        """Compute states along the first axis of arrays of any strides; False as for :meth:`single`, for any state."""
        program = self.program
        shared = [False] * len(inputs) + program.sparse
        return drive(program.batch, self.parameters, inputs, outputs, program.rows, program.slots, shared)


def drive(
    code: int,
    parameters: Array,
    inputs: Sequence[Array],
    outputs: Sequence[Array],
    rows: Sequence[int],
    slots: Sequence[int],
    shared: Sequence[bool],
) -> bool:
    """Call code for a batch on arrays of any strides, with states along the first axis; False if it returns nonzero.

    ``rows``, ``slots`` and ``shared`` describe the scratch space of every input and output: see ``batch_loop.Field``.
    """
    count = len(outputs[0])
    if count == 0:
        return True
    arrays, lanes, given = [*inputs, *outputs], host().width, len(inputs)
    grids = [_grid(a) for a in arrays]
    block = _IN_PLACE
    if any(shared) or any([a.strides[0] != a.itemsize or grid[0] > 1 for a, grid in zip(arrays, grids, strict=True)]):
        # The scratch space of a block fits into the second-level cache.
        block = min(_STATES, max(lanes, _power_of_two(_ENTRIES // sum(rows))))
    streamed = sum([out.nbytes for out in outputs]) > _CACHED
    scratch = np.empty((sum(rows) + lanes, block))
    fields: list[int] = []  # of the ``Field`` of each array, in order; named tuples take longer
    row = 0
    for k, a in enumerate(arrays):
        fields += address(a), a.strides[0], *grids[k], 8 * block * row
        fields += k >= given, slots[k], shared[k], k >= given and streamed
        row += rows[k]
        if shared[k]:
            scratch[row - 1] = 0.0
    table = np.array(fields, dtype=np.int64)
    arguments = len(arrays), address(table), address(scratch), block
    return not host().drive(code, count, address(parameters), *arguments)


def inertias(table: Array) -> dict[Hashable, float]:
    """The inertial numbers of all rows, by their names on a tape."""
    numbers = table[:-1, MASS:PARENT]
    return {("inertia", at): x for at, x in np.ndenumerate(numbers)}


def _grid(a: Array) -> tuple[int, int, int, int]:
    """Numbers of rows and columns of each state's entries, and their strides; one row if that is possible."""
    rows, columns = a.shape[1:] if a.ndim == 3 else (1, a.shape[1])
    row_step, column_step = a.strides[1:] if a.ndim == 3 else (0, a.strides[1])
    if rows == 1 or row_step == columns * column_step:
        return 1, rows * columns, 0, column_step
    return rows, columns, row_step, column_step


def _power_of_two(most: int) -> int:
    """The largest power of two up to ``most``; 0 if there is none."""
    return (1 << most.bit_length()) >> 1
