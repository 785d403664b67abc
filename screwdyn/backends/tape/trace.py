"""Quantities on a tape: recorded from their recursions, with as few operations as possible, and differentiated.

The recursion of a quantity runs once on traced scalars, which records it. Inputs are named (group, name):
("q", position), ("qd", coordinate), ("qdd", …), ("tau", …), with indices unless names are given; and
("inertia", (row, k)) for inertial numbers of a row that are inputs of the tape.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from screwdyn.backends.tape.tape import Recorded, Scalar, Tape
from screwdyn.core import expressions
from screwdyn.physics import Model, link_steps
from screwdyn.physics import charts as charting
from screwdyn.physics import couplings as coupling
from screwdyn.physics.charts import Charts
from screwdyn.physics.couplings import COLUMN, OFFSET
from screwdyn.physics.quantities import ACCELERATIONS, CATALOGUE, INTERNAL, Dimension, Quantity, Result
from screwdyn.physics.recursions.loops import REDUNDANT
from screwdyn.physics.reductions import base_parameters, moved_zeros
from screwdyn.physics.table import (
    FIRST,
    INERTIA,
    MASS,
    PARENT,
    PLACE,
    ROW,
    SLIDE,
    home,
    joint_screw,
    parent,
    path_of,
    workspace,
)
from screwdyn.screws.screw import LENGTH_TOLERANCE

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
    path: int | None = None  # number of freedoms on the path to the link, if the table has a part of these only

    @property
    def nv(self) -> int:
        """Number of freedoms."""
        return 1 + max(self.freedoms, default=-1)

    @property
    def nq(self) -> int:
        """Number of positions."""
        # A quaternion has one position more than freedoms.
        return self.nv + sum(int(group[charting.ORIENTATION]) == 4 for group in self.chart.groups)

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

    def rows(self, q: Scalars) -> tuple[Scalars, Scalars]:
        """The table, with the poses of group joints in the homes of their first rows, and the rows' coordinates."""
        table, x, chart, couplings = self.table, q.copy(), self.chart, self.couplings
        if couplings is not None or len(chart.groups):
            table, x = table.copy(), zeros(len(table) - 1)
            charting.recentre(self.table, chart.where, chart.groups, q, table, x)
        if couplings is not None:
            couplings = couplings.astype(object)
            if self.zeros is not None:
                couplings[:, OFFSET] += self.zeros
            coupling.follow(couplings, x)
        elif self.zeros is not None:
            x = x + self.zeros
        for angle in x:
            if isinstance(angle, Recorded):
                angle.tape.coordinates.add(angle.node)
        return table, x

    def of_rows(self, v: Scalars) -> Scalars:
        """Rates or accelerations of the rows, from those of the freedoms; a copy."""
        if self.couplings is None:
            return v.copy()
        rows = zeros(len(self.table) - 1)
        coupling.spread(self.couplings, v, rows)
        return rows

    def contracted(self, result: Result, rows: Scalars) -> Scalars:
        """A result over the freedoms, from that over the rows."""
        contraction, couplings = result.contraction, self.couplings
        if contraction is None or couplings is None:
            return rows
        if "k" in result.shape:
            assert self.places is not None
            couplings = coupling.of_path(self.table, couplings, int(self.places[0, ROW]))
        out = zeros(*map(self.size, result.shape))
        whole = out.reshape(len(rows), out.shape[-1]) if out.ndim > 2 else out  # several matrices form one
        contraction(couplings, rows, whole)
        return out

    def size(self, dimension: Dimension, over_rows: bool = False) -> int:
        """The number that a dimension of a result stands for, or that of a recursion over the rows."""
        if isinstance(dimension, int):
            return dimension
        if dimension == "k":
            if self.path is not None:
                return self.path
            path = [] if self.places is None else path_of(self.table, int(self.places[0, ROW]))
            freedoms = self.freedoms
            return len(path) if over_rows else len({freedoms[i] for i in path})
        if dimension in ("L", "10L"):
            return 0 if self.places is None else len(self.places) * (10 if dimension == "10L" else 1)
        return {"v": len(self.table) - 1 if over_rows else self.nv, "q": self.nq}[dimension]


def constants(table: npt.NDArray[np.float64]) -> Scalars:
    """A model's table as plain numbers, which the tape folds."""
    return np.array(table.tolist(), dtype=object).reshape(table.shape)


def scalars(tape: Tape, numbers: Iterable[Any], exact: bool = False) -> Scalars:
    """Numbers of a robot as floats, or as inputs ("symbol", expression): those with symbols, or not ``exact`` floats.

    Multiples of ½ are exact floats.
    """

    def scalar(x: Any) -> Scalar:
        inexact = expressions.is_expression(x) and not (x.is_Rational and (2 * x).is_Integer)
        if not inexact or (not exact and expressions.is_number(x)):
            return float(x)
        minus = bool(x.could_extract_minus_sign())
        given = tape.input(("symbol", -x if minus else x))
        return -given if minus else given

    return np.array([scalar(x) for x in numbers], dtype=object)


def subject_of(
    model: Model, tape: Tape, places: Iterable[Sequence[Any]], read: Callable[[Iterable[Any]], Scalars] | None = None
) -> Subject:
    """The subject of a recording: the table of a model, its charts, and some places.

    ``read`` converts the robot's numbers to scalars; by default :func:`scalars` does if there are symbols.
    """
    numbers = read is None and model.ready is not None
    read = partial(scalars, tape) if read is None else read
    table, zeros = moved_zeros(constants(model.table) if numbers else model.entries.astype(object))
    rows = read(x for row in places for x in row).reshape(-1, PLACE)
    charts = model.charts
    if charts is not None:
        charts = charts._replace(couplings=read(charts.couplings.flat).reshape(charts.couplings.shape))
    return Subject(read(table.flat).reshape(table.shape), charts, rows, zeros=read(zeros))


def open_inertias(table: npt.NDArray[np.float64], tape: Tape, which: npt.NDArray[np.bool_] | bool = True) -> Scalars:
    """A model's table in which inertial numbers are inputs: all of them, or ``which``, (n, 10) of bool."""
    opened = constants(table)
    for row, k in np.argwhere(np.broadcast_to(which, (len(table) - 1, PARENT - MASS))).tolist():
        opened[row, MASS + k] = tape.input(("inertia", (row, k)))
    return opened


def record(tape: Tape, quantity: str, subject: Subject) -> list[Scalars]:
    """The results of a quantity as arrays of scalars on the tape and plain numbers; Undetermined if it has none."""
    _assume_unit_quaternions(tape, subject)
    return computed(CATALOGUE[quantity], subject, partial(subject.inputs, tape))


def computed(entry: Quantity, subject: Subject, state: Callable[[str], Scalars]) -> list[Scalars]:
    """The results of a quantity for the scalars of a state by group; Undetermined if it has none."""
    chart, over_rows = subject.chart, partial(subject.size, over_rows=True)
    if subject.couplings is not None and entry.coupled is not None:
        quantities = (CATALOGUE.get(name) or INTERNAL[name] for name in entry.coupled.quantities)
        parts = [x for quantity in quantities for x in computed(quantity, subject, state)]
        parts += [state(group) for group in entry.coupled.arguments]
        parts += [zeros(*map(subject.size, shape)) for shape in entry.coupled.scratch]
        outputs = [zeros(*map(subject.size, result.shape)) for result in entry.results]
        work = workspace(subject.table, zeros)._replace(parents=range(-1, subject.nv - 1))
        if failed := entry.coupled.finish(*parts, work, *outputs):
            raise Undetermined(entry.name, failed)
        return outputs
    given = {group: state(group) for group in entry.arguments}
    given |= {group: zeros(subject.nv) for group in entry.at_rest}
    table, given["q"] = subject.rows(given["q"])
    rates = {*ACCELERATIONS, *ACCELERATIONS.values()}
    given |= {group: subject.of_rows(x) for group, x in given.items() if group in rates}
    for acceleration in given.keys() & ACCELERATIONS:
        charting.drift(chart.terms, given["qd"], given[ACCELERATIONS[acceleration]], given[acceleration])
    results = {}
    for result in entry.results:  # a recursion fills numbers of shape (1,), and stacks of matrices as one matrix
        *before, last = map(over_rows, result.shape or (1,))
        results[result.name] = zeros(*([math.prod(before)] if before else []), last)
    places = [subject.places] if entry.places else []
    scratch = [tuple(zeros(*map(over_rows, shape)) for shape in entry.scratch)] if entry.scratch else []
    work = workspace(table, zeros)
    if status := entry.recursion(table, *given.values(), *places, *scratch, work, *entry.handed([*results.values()])):
        raise Undetermined(entry.name, status)
    for result in entry.results:
        if result.rate_of:
            charting.add_drift_of_columns(chart.terms, given["qd"], results[result.rate_of], results[result.name])
        if result.acceleration:
            charting.subtract_drift(chart.terms, given["qd"], results[result.name])
        if result.momentum:
            result.drifted(chart.terms, given["qd"], results[result.momentum], results[result.name])
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


def zeros(*shape: int) -> Scalars:
    """An array of zeros to be recorded in."""
    return np.full(shape, 0.0, dtype=object)


# Forward dynamics by factors of M, also of closed loops

# Pivots below this multiple of their rounding are left to the articulated-body algorithm, which keeps more digits.
_STRICTER = 12
# Pivots of a tree with couplings below this fraction of their diagonal entry are left to the default kernel.
_ROUNDING = 1e-13
# Sum of the squares of the depths of the rows, per joint, at which both algorithms take about as long.
_EVEN = 75


class LTDL(NamedTuple):
    """M = Lᵀ D L."""

    L: Scalars  # (n, n), valid below the diagonal only; zero unless one of two joints carries the other
    D: Scalars  # (n,)

    def solve(self, b: Scalars) -> Scalars:
        """The solution x of M x = b, (n,) or (n, k)."""
        return self.outward((self.inward(b).T / self.D).T)

    def inward(self, b: Scalars) -> Scalars:
        """L⁻ᵀ b, (n,)."""
        x = b.copy()
        for i in reversed(range(len(x))):
            for k in reversed(range(i + 1, len(x))):
                x[i] = x[i] - self.L[k, i] * x[k]
        return x

    def outward(self, b: Scalars) -> Scalars:
        """L⁻¹ b, (n,)."""
        x = b.copy()
        for k in range(len(x)):
            for i in reversed(range(k)):
                x[k] = x[k] - self.L[k, i] * x[i]
        return x


def factors(tape: Tape, subject: Subject) -> LTDL:
    """LTDL of M(q), with the assumption on the tape that each pivot exceeds its rounding for all angles beyond."""
    table, x = subject.rows(subject.inputs(tape, "q"))
    (M,) = record(tape, "mass_matrix", subject._replace(table=base_parameters(subject.table)))
    if subject.couplings is not None:
        return _factored(M, _ROUNDING * M.diagonal())
    carried = enumerate(_carried(table, x))
    least = [link_steps.pivot_rounding(2 * spread, m, joint_screw(table, k)) for k, (m, spread) in carried]
    return _factored(M, _STRICTER * np.array(least, dtype=object))


def _factored(M: Scalars, least: Any) -> LTDL:
    """LTDL of M, which is overwritten, with the assumption on the tape that each pivot exceeds the least one."""
    for k in reversed(range(len(M))):
        if not link_steps.exceeds(M[k, k], least[k]):
            raise Undetermined("forward_dynamics", k + 1)
        for i in reversed(range(k)):
            a = M[k, i] / M[k, k]
            for j in range(i + 1):
                M[i, j] = M[i, j] - a * M[k, j]
            M[k, i] = a
    return LTDL(M, M.diagonal())


def solved(M: Scalars, b: Scalars) -> Scalars:
    """The solution of M x = b for a positive definite M, (n, n)."""
    return _factored(M.copy(), np.zeros(len(M))).solve(b)


def forward_dynamics(tape: Tape, subject: Subject) -> Scalars:
    """Accelerations, (n,), from ``q``, ``qd`` and ``tau`` on the tape; parameters and errors as for :func:`factors`."""
    (bias,) = record(tape, "bias_force", subject._replace(table=base_parameters(subject.table)))
    return factors(tape, subject).solve(subject.inputs(tape, "tau") - bias)


def touching_dynamics(tape: Tape, subject: Subject) -> list[Scalars]:
    """Accelerations without contacts, the gaps of contacts, their rows J, and Z with M⁻¹ = Z Zᵀ, for ``moreau``."""
    (gaps,), (J,) = (record(tape, f"contact_{what}", subject) for what in ("gaps", "jacobian"))
    alone = subject._replace(places=None)
    (bias,) = record(tape, "bias_force", alone._replace(table=base_parameters(subject.table)))
    M = factors(tape, alone)
    Z = M.outward(np.diag([1.0 / link_steps.square_root(pivot) for pivot in M.D]))
    return [Z @ (Z.T @ (subject.inputs(tape, "tau") - bias)), gaps, J, Z]


def _carried(table: Scalars, x: Scalars) -> list[tuple[Scalar, Scalar]]:
    """The mass that each joint carries, and a bound of its ∫ r² dm about the row's origin for all angles beyond."""
    n = len(x)
    carried = [(row[MASS], (row[INERTIA] + row[INERTIA + 3] + row[INERTIA + 5]) / 2) for row in table[:-1]]
    for k in range(n - 1, -1, -1):
        above, (mass, spread) = parent(table, k), carried[k]
        if above >= 0:
            R, p = home(table, k)
            origin = link_steps.add(p, link_steps.scale(table[k, SLIDE] * x[k], (R[2], R[5], R[8])))
            m, own = carried[above]
            # (a + b)² ≤ (1 + 1/n) a² + (1 + n) b²; the origin is that of the present q of prismatic joints and charts.
            carried[above] = m + mass, own + (1 + 1 / n) * spread + (1 + n) * (mass * link_steps.dot(origin, origin))
    return carried


# Closed loops


def loop_dynamics(tape: Tape, subject: Subject, loose: Sequence[int] = ()) -> Scalars:
    """Accelerations, (n,), on the tape; parameters and errors as for :func:`constrained`."""
    alone = subject._replace(table=base_parameters(subject.table), places=None)
    (bias,), (J_dot,) = record(tape, "bias_force", alone), record(tape, "constraint_jacobian_dot", subject)
    opening = J_dot @ subject.inputs(tape, "qd")
    return constrained(tape, subject, subject.inputs(tape, "tau") - bias, -opening, loose)


def constrained(tape: Tape, subject: Subject, forces: Scalars, given: Any = 0.0, loose: Sequence[int] = ()) -> Scalars:
    """The x of M x = forces + J_cᵀ λ with J_c x + D λ as given, (n,); assumes that M and J_c M⁻¹ J_cᵀ + D are regular.

    D is the diagonal matrix of the inputs "loose" of some constraints, and zero for others.
    """
    M, (J,) = factors(tape, subject._replace(places=None)), record(tape, "constraint_jacobian", subject)
    z, Y = M.inward(forces), [M.inward(row) for row in J]
    wanted: Scalars = given - np.array([(row / M.D) @ z for row in Y], dtype=object)
    K = np.array([(row / M.D) @ column for row in Y for column in Y], dtype=object).reshape(len(Y), len(Y))
    K[list(loose), list(loose)] += inputs(tape, "loose", range(len(loose)))
    multipliers = _factored(K, REDUNDANT**2 * K.diagonal()).solve(wanted)
    for row, force in zip(Y, multipliers, strict=True):
        z = z + row * force
    return M.outward(z / M.D)


def dependent_rates(
    tape: Tape, subject: Subject, independent: Sequence[int], others: Sequence[int]
) -> tuple[Scalars, Scalars]:
    """Z, (n, r), of q̇ = Z ẏ and B, (n, m), of Ż = B Z, by Cramer's rule: short for few constraints, no pivots."""
    (J,), (J_dot,) = (record(tape, f"constraint_jacobian{end}", subject) for end in ("", "_dot"))
    adjugate, determinant = _adjugate(J[:, others])
    Z, B = zeros(subject.nv, len(independent)), zeros(subject.nv, subject.nv)
    Z[independent, range(len(independent))] = 1.0
    Z[others] = -(adjugate @ J[:, independent]) / determinant
    B[others] = -(adjugate @ J_dot) / determinant
    return Z, B


def _adjugate(A: Scalars) -> tuple[Scalars, Scalar]:
    """adj A and det A, A adj A = det A, by expansion along the first rows, each minor once."""
    n = len(A)

    @cache
    def minor(rows: tuple[int, ...], columns: tuple[int, ...]) -> Scalar:
        if not rows:
            return 1.0
        value: Scalar = 0.0
        for k, column in enumerate(columns):
            value = value + (-1.0) ** k * (A[rows[0], column] * minor(rows[1:], columns[:k] + columns[k + 1 :]))
        return value

    everything = tuple(range(n))
    without = [everything[:k] + everything[k + 1 :] for k in everything]
    cofactors = [(-1.0) ** (i + j) * minor(without[i], without[j]) for j in everything for i in everything]
    adjugate: Scalars = np.array(cofactors, dtype=object).reshape(n, n)
    return adjugate, minor(everything, everything)


def outputs(
    tape: Tape, quantity: str, subject: Subject, extra: Scalars | float = 0.0, plain: bool = False
) -> list[Scalars]:
    """The results of a quantity in the way that takes less time; with places, forward dynamics of closed loops."""
    solves = quantity == "forward_dynamics"
    if solves and subject.places is not None and len(subject.places):
        return [loop_dynamics(tape, subject)]
    if plain:
        return record(tape, quantity, subject)
    regrouped = CATALOGUE[quantity].base_parameters and not solves
    table = base_parameters(subject.table) if regrouped else subject.table.copy()
    table[:, MASS:PARENT] += extra
    subject = subject._replace(table=table)
    rows = subject.table[:-1]
    squares = sum(len(path_of(subject.table, k)) ** 2 for k in range(len(rows)))
    few = subject.couplings is not None or squares <= _EVEN * len({int(row[FIRST]) for row in rows})
    return [forward_dynamics(tape, subject)] if solves and few else record(tape, quantity, subject)


# Derivatives, appended to the same tape, so that they share its operations. Every operation is differentiated by its
# rule, so they are exact up to rounding. Operations that do not depend on the variable are skipped: the derivative
# along a coordinate involves only the links beyond its joint (docs/mathematics.md §10).

# Bodies that rows carry: for each body its row and its pose in the row's frame.
Bodies = Sequence[tuple[int, link_steps.Matrix, link_steps.Vector]]


# Derivatives of an operation with respect to its operands x and y; z is its result.
_RULES: dict[str, Callable[[Recorded, Recorded, Recorded], tuple[Scalar, ...]]] = {
    "+": lambda x, y, z: (1.0, 1.0),
    "-": lambda x, y, z: (1.0, -1.0),
    "*": lambda x, y, z: (y, x),
    "/": lambda x, y, z: (1.0 / y, -z / y),
    "sin": lambda x, y, z: (x.cos(),),
    "cos": lambda x, y, z: (-x.sin(),),
    "sqrt": lambda x, y, z: (0.5 / z,),
    "tanh": lambda x, y, z: (1.0 - z * z,),
}


def _partials(tape: Tape, at: int) -> list[tuple[int, Scalar]]:
    """The operands of an operation, each with the derivative of the operation with respect to it."""
    op, a, b = tape.nodes[at]
    if op not in _RULES:
        return []
    derivatives = _RULES[op](Recorded(tape, a), Recorded(tape, b), Recorded(tape, at))
    return list(zip(tape.nodes[at].operands, derivatives, strict=True))


def tangent(tape: Tape, outputs: Iterable[Scalar], direction: Mapping[Hashable, Scalar]) -> list[Scalar]:
    """Σ ∂output/∂input · rate, by forward mode; the rate of inputs without one in ``direction`` is zero."""
    outputs = list(outputs)
    rates: dict[int, Scalar] = {}
    for at in tape.live(outputs):
        node = tape.nodes[at]
        rate: Scalar = 0.0
        if node.op == "input":
            rate = direction.get(node.a, 0.0)
        elif not rates.keys().isdisjoint(node.operands):
            for operand, slope in _partials(tape, at):
                if operand in rates:
                    rate = rate + slope * rates[operand]
        if isinstance(rate, Recorded) or rate != 0:
            rates[at] = rate
    found = [rates.get(x.node, 0.0) if isinstance(x, Recorded) else 0.0 for x in outputs]
    return [-rate if isinstance(x, Recorded) and x.minus else rate for x, rate in zip(outputs, found, strict=True)]


def gradient(tape: Tape, output: Scalar, inputs: Iterable[Hashable]) -> list[Scalar]:
    """Derivatives of one output with respect to the inputs of these names, by reverse mode."""
    wanted = [tape.input(name).node for name in inputs]
    live = tape.live([output])
    depends = set(wanted)
    for at in live:
        if not depends.isdisjoint(tape.nodes[at].operands):
            depends.add(at)
    weights: dict[int, Scalar] = {output.node: -1.0 if output.minus else 1.0} if isinstance(output, Recorded) else {}
    for at in reversed(live):
        if at in depends and at in weights:
            for operand, slope in _partials(tape, at):
                if operand in depends:
                    weights[operand] = weights.get(operand, 0.0) + slope * weights[at]
    return [weights.get(at, 0.0) for at in wanted]


def derivative(tape: Tape, outputs: Scalars, argument: str, subject: Subject) -> Scalars:
    """∂outputs/∂argument, with one more axis; with respect to "q" along the tangents dq/dt of ν = e_k."""
    flat, n = outputs.ravel().tolist(), subject.nv
    directions = [_direction(tape, argument, subject, e) for e in np.eye(n).astype(object)]
    if len(flat) < n:
        names = list(directions[0])
        gradients = [dict(zip(names, gradient(tape, y, names), strict=True)) for y in flat]
        found = [[sum((rate * by[x] for x, rate in to.items()), 0.0) for to in directions] for by in gradients]
        return np.array(found, dtype=object).reshape(*outputs.shape, n)
    columns = [tangent(tape, flat, direction) for direction in directions]
    return np.array(columns, dtype=object).reshape(n, len(flat)).T.reshape(*outputs.shape, n)


def _direction(tape: Tape, argument: str, subject: Subject, along: Scalars) -> dict[Hashable, Scalar]:
    """Rates of the inputs of an argument: dq/dt for ν = ``along`` if the argument is q, or ``along`` itself."""
    given = subject.inputs(tape, argument)
    rates: Any = along
    if argument == "q":
        rates = zeros(len(given))
        charting.position_rate(subject.chart.where, subject.chart.groups, given, along[subject.freedoms], rates)
    return {tape.nodes[x.node].a: rate for x, rate in zip(given, rates, strict=True)}


# Quantities whose derivatives take fewer operations than the general method


def _of_inverse_dynamics(tape: Tape, subject: Subject) -> list[Scalars]:
    """∂τ/∂q, ∂τ/∂ν = 2 C − M ad(ν) and ∂τ/∂ν̇ = M."""
    (tau,), (C,), (M,) = (
        outputs(tape, name, subject) for name in ("inverse_dynamics", "coriolis_matrix", "mass_matrix")
    )
    by_rate = 2.0 * C
    v, freedoms = subject.inputs(tape, "qd"), subject.freedoms
    for *rows, c in subject.chart.terms.tolist():
        m, k, l = (freedoms[int(row)] for row in rows)
        by_rate[:, k] -= M[:, m] * (c * v[l])
        by_rate[:, l] += M[:, m] * (c * v[k])
    return [derivative(tape, tau, "q", subject), by_rate, M]


def _of_forward_dynamics(tape: Tape, subject: Subject) -> list[Scalars]:
    """∂ν̇/∂q = −M⁻¹ ∂τ/∂q, ∂ν̇/∂ν = −M⁻¹ ∂τ/∂ν and ∂ν̇/∂τ = M⁻¹."""
    n = subject.nv
    found = factors(tape, subject)
    (bias,) = outputs(tape, "bias_force", subject)
    acceleration = found.solve(subject.inputs(tape, "tau") - bias)
    dq, dqd, _ = _of_inverse_dynamics(tape, subject)
    # τ was differentiated at a given acceleration: substitute the acceleration that the forces cause.
    values: dict[Hashable, Scalar] = {node.a: tape.input(node.a) for node in tape.nodes if node.op == "input"}
    given = subject.inputs(tape, "qdd")
    values |= {tape.nodes[x.node].a: y for x, y in zip(given, acceleration, strict=True)}
    substituted = tape.evaluate(dq.ravel(), values)
    dq = np.array(substituted, dtype=object).reshape(n, n)
    inverse = found.solve(np.eye(n).astype(object))
    return [
        found.solve(-dq),
        found.solve(-dqd),
        np.where(np.tri(n, dtype=bool), inverse, inverse.T),
    ]


_SPECIAL = {"inverse_dynamics": _of_inverse_dynamics, "forward_dynamics": _of_forward_dynamics}


def derivatives(tape: Tape, quantity: str, subject: Subject) -> list[Scalars]:
    """Derivatives of a quantity's results with respect to each of its arguments in order."""
    if quantity in _SPECIAL:
        return _SPECIAL[quantity](tape, subject)
    results = outputs(tape, quantity, subject)
    return [derivative(tape, y, argument, subject) for argument in CATALOGUE[quantity].arguments for y in results]


def mass_matrix_dot(tape: Tape, subject: Subject) -> Scalars:
    """Ṁ, the derivative of M along ν."""
    (M,) = outputs(tape, "mass_matrix", subject)
    rates = tangent(tape, M.ravel(), _direction(tape, "q", subject, subject.inputs(tape, "qd")))
    return np.array(rates, dtype=object).reshape(M.shape)


def regressor(tape: Tape, subject: Subject, bodies: Bodies) -> Scalars:
    """Y with τ = Y π, (n, 10 · bodies), for rows that carry these bodies only; row −1 is the base (§10)."""
    names = [("body", (b, k)) for b in range(len(bodies)) for k in range(10)]
    loaded = subject.table.copy()
    loaded[:-1, MASS:PARENT] = 0.0
    for b, (row, R, p) in enumerate(bodies):
        if row >= 0:
            m, hx, hy, hz, xx, xy, xz, yy, yz, zz = (tape.input(("body", (b, k))) for k in range(10))
            own = link_steps.RigidInertia(m, (hx, hy, hz), (xx, xy, xz, yy, yz, zz))
            m, h, I = link_steps.inertia_to_parent(link_steps.Pose(R, p), own)
            loaded[row, MASS:PARENT] += np.array([m, *h, *I], dtype=object)
    (tau,) = record(tape, "inverse_dynamics", subject._replace(table=loaded))
    rows = [gradient(tape, x, names) for x in tau]
    return np.array(rows, dtype=object).reshape(len(tau), len(names))
