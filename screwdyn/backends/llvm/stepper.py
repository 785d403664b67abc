"""Compiled steps: many steps of an integrator in one call, for a batch of states."""

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from screwdyn.backends.kernels.entry import address
from screwdyn.backends.llvm.call import drive, inertias
from screwdyn.backends.llvm.code_cache import MEMORY, Kept, Nodes, Opened, Structure, TooLong
from screwdyn.backends.llvm.host import host
from screwdyn.backends.llvm.program import Program, kept, planned
from screwdyn.backends.tape.step import NUMBERS, Kind, step
from screwdyn.backends.tape.tape import Tape
from screwdyn.physics.charts import Charts
from screwdyn.physics.model import Model
from screwdyn.physics.table import MASS, PARENT

__all__ = ["LARGEST", "Stepper"]

Array = npt.NDArray[np.float64]
# Steps with more operations are not compiled; compiling this many takes about 6 s.
LARGEST = 100_000


def _program(table: Array, opened: Opened, what: Any) -> Program:
    """The steps of a structure."""
    return kept(("steps", table.tobytes(), opened.tobytes(), *what), partial(_recorded, table, opened, what))


def _recorded(table: Array, opened: Opened, what: Any) -> Program:
    """The steps of a structure, recorded on a tape and planned."""
    kind, charts = what
    tape, own = Tape(), Tape()
    tape.nodes, own.nodes = Nodes(), Nodes()
    structure = Structure(table, opened, charts and Charts(*map(np.array, charts)))
    subject = structure.subject(own).with_zeros()
    n = subject.nv
    lengths = {"q": subject.nq, "qd": n, **{x: subject.nq if x == "q_target" else n for x in kind.control}}
    if kind.rows:
        lengths["bodies"] = NUMBERS * len(kind.rows)
    return planned("step", tape, lengths, step(tape, own, subject, kind))


_programs = Kept(_program, MEMORY)


class Stepper:
    """Steps of one kind of a model.

    Parameters
    ----------
    model : Model
    kind : Kind
    values : mapping from the name of a parameter to its value
        The step, and the parameters of the joints' own forces.

    Raises
    ------
    TooLong
        If a step has too many operations to be compiled.
    Undetermined
        If some joint feels no inertia in any state.
    """

    def __init__(self, model: Model, kind: Kind, values: Mapping[Hashable, float]) -> None:
        charts = model.charts and tuple(map(_frozen, model.charts))
        table = model.table.copy()
        table[-1, MASS:PARENT] = 0.0  # bodies welded to the base have no influence
        self._program = _programs.serving(table, model.loaded, (kind, charts))
        plan = self._program.plan  # another thread may discard it
        if plan is not None and plan.size > LARGEST:
            raise TooLong
        self._program.compile_steps()
        self._known = self._program.parameters({**inertias(table), **values})

    def run(
        self, samples: int, every: int, inputs: Sequence[Array], varying: Sequence[bool], outputs: Sequence[Array]
    ) -> bool:
        """Compute ``samples`` · ``every`` steps; False if a state became NaN.

        Parameters
        ----------
        samples : int
        every : int
            Number of steps between two samples.
        inputs : sequence of arrays
            For each group of inputs (count, n), or (count, steps, n) if it varies with time.
        varying : sequence of bool
        outputs : sequence of arrays
            Positions and rates, (count, samples, n), and the number of steps until the state became NaN, (count, 1).
        """
        program, lanes = self._program, host().width
        lengths = program.lengths
        header = np.array([samples, every, *(n * v for n, v in zip(lengths, varying, strict=True))])
        context = np.concatenate([header.astype(np.int64).view(np.float64), self._known])
        rows = [n * (samples * every if v else 1) for n, v in zip(lengths, varying, strict=True)]
        rows += [samples * lengths[0], samples * lengths[1], 1]
        numbers = np.array([*range(lanes), *range(max(rows) + lanes)], dtype=np.int64)
        slots = [address(numbers[lanes:])] * len(rows)
        return drive(program.batch, context, inputs, outputs, rows, slots, [False] * len(rows))


def _frozen(array: Any) -> Any:
    """An array as nested tuples, which are hashable."""
    return tuple(map(_frozen, array)) if array.ndim else array.item()
