"""Tracing: the recursion of a quantity runs once on traced scalars, which records it on a tape.

Inputs are named (group, name): ("q", position), ("qd", coordinate), ("qdd", …), ("tau", …), with indices unless names
are given; and ("inertia", (row, k)) for inertial numbers of a row that are inputs of the tape.
"""

import math
from collections.abc import Hashable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from screwdyn.backends.tape.tape import Recorded, Tape
from screwdyn.physics import charts as charting
from screwdyn.physics.charts import COLUMN, OFFSET, Charts
from screwdyn.physics.quantities import CATALOGUE, Dimension, Result
from screwdyn.physics.reductions import moved_zeros
from screwdyn.physics.table import MASS, PARENT, ROW, path_of, workspace
from screwdyn.screws.groups import LENGTH_TOLERANCE

__all__ = ["Scalars", "Subject", "Undetermined", "constants", "inputs", "open_inertias", "record"]

Scalars = npt.NDArray[np.object_]


class Undetermined(Exception):
    """The recursion has no result to record; ``status`` gives the reason, as in ``recursions``."""

    def __init__(self, quantity: str, status: int) -> None:
        super().__init__(f"{quantity} is undetermined: status {status}")
        self.status = status

    @property
    def row(self) -> int:
        """The row whose joint feels no inertia, if that is the reason."""
        return self.status - 1


class Subject(NamedTuple):
    """The arguments of a recording other than the state."""

    table: Scalars  # (n + 1, 27), rows of a model; see ``physics.table``
    charts: Charts | None = None  # of a model with group joints or couplings
    places: Scalars | None = None  # (links, 25), of the links of the quantity
    # Names of the inputs: nq of "q", n of each other group. Indices by default.
    positions: Sequence[Hashable] | None = None
    coordinates: Sequence[Hashable] | None = None
    zeros: Scalars | None = None  # (n,), added to the coordinates of the rows; see :meth:`with_zeros`

    @property
    def nv(self) -> int:
        """Number of freedoms."""
        return 1 + max(self.freedoms, default=-1)

    @property
    def nq(self) -> int:
        """Number of positions."""
        return self.nv + charting.number_of_quaternions(self.chart.groups)

    @property
    def chart(self) -> Charts:
        """The charts, which add nothing if there are no group joints and no couplings."""
        where, none = np.arange(len(self.table) - 1), np.zeros((0, 4))
        return self.charts or Charts(where, none, none, none)

    @property
    def couplings(self) -> Scalars | None:
        """Couplings of the rows, if there are any."""
        return self.chart.couplings if self.chart.coupled else None

    @property
    def freedoms(self) -> list[int]:
        """The freedom of each row, or the one that it follows."""
        couplings = self.couplings
        return [*range(len(self.table) - 1)] if couplings is None else [int(row[COLUMN]) for row in couplings]

    def with_zeros(self) -> "Subject":
        """The subject with homes that do not depend on where coordinates are zero; its table has no traced homes."""
        table, zeros = moved_zeros(self.table)
        return self._replace(table=table, zeros=zeros)

    def inputs(self, tape: Tape, group: str) -> Scalars:
        """The inputs of a group, such as "qd"."""
        names = self.positions if group == "q" else self.coordinates
        return inputs(tape, group, range(self.nq if group == "q" else self.nv) if names is None else names)

    def rows(self, tape: Tape) -> tuple[Scalars, Scalars]:
        """The table, with the poses of group joints in the homes of their first rows, and the rows' coordinates."""
        table, x, chart = self.table.copy(), _zeros(len(self.table) - 1), self.chart
        charting.recentre(self.table, chart.where, chart.groups, self.inputs(tape, "q"), table, x)
        zeros = 0.0 if self.zeros is None else self.zeros
        if self.couplings is None:
            x = x + zeros
        else:
            couplings = self.couplings.astype(object)
            couplings[:, OFFSET] += zeros
            charting.follow(couplings, x)
        tape.coordinates.update(angle.node for angle in x if isinstance(angle, Recorded))
        return table, x

    def of_rows(self, v: Scalars) -> Scalars:
        """Rates or accelerations of the rows, from those of the freedoms; a copy."""
        if self.couplings is None:
            return v.copy()
        rows = _zeros(len(self.table) - 1)
        charting.spread(self.couplings, v, rows)
        return rows

    def contracted(self, result: Result, rows: Scalars) -> Scalars:
        """A result over the freedoms, from that over the rows."""
        contraction, couplings = result.contraction, self.couplings
        if contraction is None or couplings is None:
            return rows
        if "k" in result.shape:
            assert self.places is not None
            couplings = charting.couplings_of_path(self.table, couplings, int(self.places[0, ROW]))
        out = _zeros(*map(self.size, result.shape))
        contraction(couplings, rows, out)
        return out

    def size(self, dimension: Dimension, over_rows: bool = False) -> int:
        """The number that a dimension of a result stands for, or that of a recursion over the rows."""
        if isinstance(dimension, int):
            return dimension
        if dimension == "k":
            path = [] if self.places is None else path_of(self.table, int(self.places[0, ROW]))
            freedoms = self.freedoms
            return len(path) if over_rows else len({freedoms[i] for i in path})
        if dimension == "L":
            return 0 if self.places is None else len(self.places)
        return {"v": len(self.table) - 1 if over_rows else self.nv, "q": self.nq}[dimension]


def constants(table: npt.NDArray[np.float64]) -> Scalars:
    """A model's table as plain numbers, which the tape folds."""
    return np.array(table.tolist(), dtype=object).reshape(table.shape)


def open_inertias(table: npt.NDArray[np.float64], tape: Tape, which: npt.NDArray[np.bool_] | bool = True) -> Scalars:
    """A model's table in which inertial numbers are inputs: all of them, or ``which``, (n, 10) of bool."""
    opened = constants(table)
    for row, k in np.argwhere(np.broadcast_to(which, (len(table) - 1, PARENT - MASS))).tolist():
        opened[row, MASS + k] = tape.input(("inertia", (row, k)))
    return opened


def record(tape: Tape, quantity: str, subject: Subject) -> list[Scalars]:
    """The results of a quantity as arrays of scalars on the tape and plain numbers; Undetermined if it has none."""
    entry, chart, over_rows = CATALOGUE[quantity], subject.chart, partial(subject.size, over_rows=True)
    _assume_unit_quaternions(tape, subject)
    if subject.couplings is not None and entry.coupled is not None:
        parts = [x for name in entry.coupled.quantities for x in record(tape, name, subject)]
        parts += [subject.inputs(tape, group) for group in entry.coupled.arguments]
        outputs = [_zeros(*map(subject.size, result.shape)) for result in entry.results]
        work = workspace(subject.table, _zeros)._replace(parents=range(-1, subject.nv - 1))
        if failed := entry.coupled.finish(*parts, work, *outputs):
            raise Undetermined(entry.name, failed)
        return outputs
    state = {group: subject.inputs(tape, group) for group in entry.arguments}
    state |= {group: _zeros(subject.nv) for group in entry.at_rest}
    table, state["q"] = subject.rows(tape)
    state |= {group: subject.of_rows(x) for group, x in state.items() if group in ("qd", "qdd")}
    if "qdd" in state:
        charting.drift(chart.terms, state["qd"], state["qdd"])
    results = {}
    for result in entry.results:  # a recursion fills numbers of shape (1,), and stacks of matrices as one matrix
        *before, last = map(over_rows, result.shape or (1,))
        results[result.name] = _zeros(*([math.prod(before)] if before else []), last)
    places = [subject.places] if entry.places else []
    scratch = [_zeros(*map(over_rows, shape)) for shape in entry.scratch]
    work = workspace(table, _zeros)
    if status := entry.recursion(table, *state.values(), *places, *scratch, work, *results.values()):
        raise Undetermined(quantity, status)
    for result in entry.results:
        if result.rate_of:
            charting.add_drift_of_columns(chart.terms, state["qd"], results[result.rate_of], results[result.name])
        if result.acceleration:
            charting.subtract_drift(chart.terms, state["qd"], results[result.name])
    found = ((result, subject.contracted(result, results[result.name])) for result in entry.given)
    return [x.reshape(tuple(map(subject.size, result.shape))) for result, x in found]


def _assume_unit_quaternions(tape: Tape, subject: Subject) -> None:
    for group in subject.chart.groups:
        if int(group[charting.ORIENTATION]) == 4:
            q, at = subject.inputs(tape, "q"), int(group[charting.POSITION])
            square = sum((x * x for x in q[at : at + 4]), 0.0)
            tolerance = 2 * LENGTH_TOLERANCE
            for assumption in ((square, 1 - tolerance), (1 + tolerance, square)):
                if not any(known[0] is assumption[0] or known == assumption for known in tape.assumed):
                    tape.assumed.append(assumption)


def inputs(tape: Tape, group: str, names: Iterable[Hashable]) -> Scalars:
    """One input of a group for every name."""
    return np.array([tape.input((group, name)) for name in names], dtype=object)


def _zeros(*shape: int) -> Scalars:
    return np.full(shape, 0.0, dtype=object)
