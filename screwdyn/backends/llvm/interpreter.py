"""Interpreter for functions that are not compiled: a kernel executes the operations of the tape in order."""

from collections.abc import Sequence
from itertools import chain, islice

import numpy as np
import numpy.typing as npt

from screwdyn.backends.kernels import of_model as kernels
from screwdyn.backends.llvm.plan import Plan
from screwdyn.backends.tape.tape import Recorded, Scalar
from screwdyn.physics.quantities import LARGEST

__all__ = ["Interpreter"]

Array = npt.NDArray[np.float64]
# States at a time: the width of a vector, because the results of all operations are stored.
_LANES = 8


class Interpreter:
    """A function on a tape as an array that a kernel reads; every operation has a row for its result.

    Parameters
    ----------
    plan : Plan

    Attributes
    ----------
    nbytes : int
        Memory that is kept, approximately.
    """

    def __init__(self, plan: Plan) -> None:
        nodes, groups = plan.tape.nodes, list(plan.groups)
        ends = [x for x in chain(*plan.outputs, *plan.bounds) if isinstance(x, Recorded)]
        row = {at: k for k, at in enumerate(plan.known)}
        for at in plan.tape.live(ends, row):
            row[at] = len(row)
        start = [0.0] * len(row)
        self._inputs: list[tuple[int, int, int]] = []
        code = []
        for at, k in islice(row.items(), len(plan.known), None):
            op, a, b = nodes[at]
            if op == "constant":
                start[k] = a
            elif op == "input":
                self._inputs.append((k, groups.index(a[0]), a[1]))
            else:
                code.append((kernels.OPERATIONS.index(op), k, row[a], row[a if b is None else b]))
        self._code = np.array(code, dtype=np.int64).reshape(-1, 4)

        def found(entries: Sequence[Scalar]) -> tuple[npt.NDArray[np.int64], Array]:
            """Rows of some scalars, and their signs."""
            rows, signs = [], []
            for x in entries:
                if isinstance(x, Recorded):
                    rows.append(row[x.node])
                    signs.append(-1.0 if x.minus else 1.0)
                else:
                    rows.append(len(start))
                    signs.append(1.0)
                    start.append(float(x))
            return np.array(rows, dtype=np.int64), np.array(signs)[:, None]

        self._outputs = [found(entries) for entries in plan.outputs]
        self._carried = found([x for x, _ in plan.bounds])
        self._least = found([least for _, least in plan.bounds])
        self._start, self._known = np.array(start)[:, None], len(plan.known)
        self.nbytes = self._code.nbytes + self._start.nbytes

    def __call__(self, parameters: Array, inputs: Sequence[Array], outputs: Sequence[Array]) -> bool:
        """Compute states along the first axis; return whether the assumptions of the tape hold for all of them."""
        count, sound = len(inputs[0]), all([np.abs(x).max(initial=0.0) < LARGEST for x in inputs])
        lanes = min(count, _LANES)
        results = np.repeat(self._start, lanes, axis=1)
        results[: self._known] = parameters[: self._known, None]
        for first in range(0, count, _LANES):
            first = min(first, count - lanes)  # the last ones overlap those before
            now = slice(first, first + lanes)
            for row, group, k in self._inputs:
                results[row] = inputs[group][now, k]
            kernels.play(self._code, results)
            for (rows, signs), out in zip(self._outputs, outputs, strict=True):
                out[now] = (results[rows] * signs).T.reshape(out[now].shape)
            (carried, a), (least, b) = self._carried, self._least
            sound &= bool((results[carried] * a > results[least] * b).all())
        return sound
