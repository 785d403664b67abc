"""Derivatives of scalars on a tape, appended to the same tape, so that they share its operations.

Every operation is differentiated by its rule, so the derivatives are exact up to rounding. Operations that do not
depend on the variable are skipped: the derivative along a coordinate involves only the links beyond its joint
(docs/mathematics.md §10).
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from screwdyn.backends.tape.outputs import LTDL, factors, outputs
from screwdyn.backends.tape.tape import Recorded, Scalar, Tape
from screwdyn.backends.tape.trace import Scalars, Subject, record
from screwdyn.physics.charts import position_rate
from screwdyn.physics.link_steps import Matrix, Pose, RigidInertia, Vector, inertia_to_parent
from screwdyn.physics.quantities import CATALOGUE
from screwdyn.physics.table import MASS, PARENT

__all__ = ["derivatives", "mass_matrix_dot", "regressor"]

# Bodies that rows carry: for each body its row and its pose in the row's frame.
Bodies = Sequence[tuple[int, Matrix, Vector]]


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
            for operand, partial in _partials(tape, at):
                if operand in rates:
                    rate = rate + partial * rates[operand]
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
            for operand, partial in _partials(tape, at):
                if operand in depends:
                    weights[operand] = weights.get(operand, 0.0) + partial * weights[at]
    return [weights.get(at, 0.0) for at in wanted]


def partial(tape: Tape, outputs: Scalars, argument: str, subject: Subject) -> Scalars:
    """∂outputs/∂argument, with one more axis of length n at the end.

    With respect to "q" the derivatives are along the tangents dq/dt of ν = e_k (docs/mathematics.md §7 and §10).
    Reverse mode if there are fewer outputs than freedoms, forward mode otherwise.
    """
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
        rates = np.full(len(given), 0.0, dtype=object)
        position_rate(subject.chart.where, subject.chart.groups, given, along[subject.freedoms], rates)
    return {tape.nodes[x.node].a: rate for x, rate in zip(given, rates, strict=True)}


# Quantities whose derivatives take fewer operations than the general method


def inverse_dynamics(tape: Tape, subject: Subject) -> list[Scalars]:
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
    return [partial(tape, tau, "q", subject), by_rate, M]


def forward_dynamics(tape: Tape, subject: Subject) -> list[Scalars]:
    """∂ν̇/∂q = −M⁻¹ ∂τ/∂q, ∂ν̇/∂ν = −M⁻¹ ∂τ/∂ν and ∂ν̇/∂τ = M⁻¹."""
    n = subject.nv
    found = factors(tape, subject)
    (bias,) = outputs(tape, "bias_force", subject)
    acceleration = found.solve(subject.inputs(tape, "tau") - bias)
    dq, dqd, _ = inverse_dynamics(tape, subject)
    # τ was differentiated at a given acceleration: substitute the acceleration that the forces cause.
    values: dict[Hashable, Scalar] = {node.a: tape.input(node.a) for node in tape.nodes if node.op == "input"}
    given = subject.inputs(tape, "qdd")
    values |= {tape.nodes[x.node].a: y for x, y in zip(given, acceleration, strict=True)}
    substituted = tape.evaluate(dq.ravel(), values, sin=lambda x: x.sin(), cos=lambda x: x.cos())
    dq = np.array(substituted, dtype=object).reshape(n, n)
    inverse = _solved(found, np.eye(n).astype(object))
    return [_solved(found, -dq), _solved(found, -dqd), np.where(np.tri(n, dtype=bool), inverse, inverse.T)]


def _solved(factors: LTDL, B: Scalars) -> Scalars:
    """M⁻¹ B."""
    columns = [factors.solve(B[:, k]) for k in range(B.shape[1])]
    return np.array(columns, dtype=object).reshape(B.T.shape).T


_SPECIAL = {"inverse_dynamics": inverse_dynamics, "forward_dynamics": forward_dynamics}


def derivatives(tape: Tape, quantity: str, subject: Subject) -> list[Scalars]:
    """Derivatives of a quantity's results with respect to each of its arguments in order."""
    if quantity in _SPECIAL:
        return _SPECIAL[quantity](tape, subject)
    results = outputs(tape, quantity, subject)
    return [partial(tape, y, argument, subject) for argument in CATALOGUE[quantity].arguments for y in results]


def mass_matrix_dot(tape: Tape, subject: Subject) -> Scalars:
    """Ṁ, the derivative of M along ν."""
    (M,) = outputs(tape, "mass_matrix", subject)
    rates = tangent(tape, M.ravel(), _direction(tape, "q", subject, subject.inputs(tape, "qd")))
    return np.array(rates, dtype=object).reshape(M.shape)


def regressor(tape: Tape, subject: Subject, bodies: Bodies) -> Scalars:
    """Y with τ = Y π, (n, 10 · number of bodies): τ is linear in the ten inertial numbers of each body.

    The rows carry these bodies only. The columns of a body on row −1, the base, are zero (docs/mathematics.md §10).
    """
    names = [("body", (b, k)) for b in range(len(bodies)) for k in range(10)]
    loaded = subject.table.copy()
    loaded[:-1, MASS:PARENT] = 0.0
    for b, (row, R, p) in enumerate(bodies):
        if row >= 0:
            m, hx, hy, hz, xx, xy, xz, yy, yz, zz = (tape.input(("body", (b, k))) for k in range(10))
            own = RigidInertia(m, (hx, hy, hz), (xx, xy, xz, yy, yz, zz))
            m, h, I = inertia_to_parent(Pose(R, p), own)
            loaded[row, MASS:PARENT] += np.array([m, *h, *I], dtype=object)
    (tau,) = record(tape, "inverse_dynamics", subject._replace(table=loaded))
    rows = [gradient(tape, x, names) for x in tau]
    return np.array(rows, dtype=object).reshape(len(tau), len(names))
