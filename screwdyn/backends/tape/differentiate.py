"""Derivatives of what is on a tape, appended to the same tape, so that they share its operations.

Every operation has the rule of the textbook, so the derivatives are exact. Operations that do not depend on a variable
are skipped: the derivative along a coordinate reads only the links beyond its joint (docs/mathematics.md §10).
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

import numpy as np

from screwdyn.backends.tape import ltdl as solved
from screwdyn.backends.tape.tape import Recorded, Scalar, Tape
from screwdyn.backends.tape.trace import Scalars, Subject, inputs, record
from screwdyn.physics.base_parameters import base_parameters
from screwdyn.physics.link_steps import inertia_to_parent
from screwdyn.physics.spatial import Matrix, Pose, RigidInertia, Vector
from screwdyn.physics.table import MASS, PARENT

__all__ = ["DERIVATIVES", "Bodies", "gradient", "regressor", "tangent"]

# Bodies that rows carry: for each one the row and the pose in the row's frame.
Bodies = Sequence[tuple[int, Matrix, Vector]]


def _partials(tape: Tape, at: int) -> list[tuple[int, Scalar]]:
    """The operands of an operation, each with the derivative of the operation with respect to it."""
    op, a, b = tape.nodes[at]
    if op == "+":
        return [(a, 1.0), (b, 1.0)]
    if op == "-":
        return [(a, 1.0), (b, -1.0)]
    if op == "*":
        return [(a, Recorded(tape, b)), (b, Recorded(tape, a))]
    if op == "/":
        return [(a, 1.0 / Recorded(tape, b)), (b, -Recorded(tape, at) / Recorded(tape, b))]
    if op == "sin":
        return [(a, Recorded(tape, a).cos())]
    if op == "cos":
        return [(a, -Recorded(tape, a).sin())]
    return []


def tangent(tape: Tape, outputs: Iterable[Scalar], direction: Mapping[Hashable, Scalar]) -> list[Scalar]:
    """Derivatives of some outputs along a direction in the space of the inputs, by forward mode.

    Parameters
    ----------
    tape : Tape
    outputs : scalars on the tape
    direction : mapping from the name of an input to its rate
        The rate of all other inputs is zero. Rates may be scalars on the tape.

    Returns
    -------
    list of scalars
        For each output, Σ ∂output/∂input · rate.
    """
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


# The derivatives of a tree's functions. Each is given the table of a model and returns arrays of scalars.


def _along(tape: Tape, outputs: Scalars, group: str, n: int) -> Scalars:
    """∂outputs/∂(group, k), with k as the last index."""
    flat = outputs.ravel().tolist()
    columns = [tangent(tape, flat, {(group, k): 1.0}) for k in range(n)]
    return np.array(columns, dtype=object).reshape(n, *outputs.shape).transpose(*range(1, outputs.ndim + 1), 0)


def inverse_dynamics(tape: Tape, table: Scalars) -> list[Scalars]:
    """∂τ/∂q, ∂τ/∂q̇ = 2 C and ∂τ/∂q̈ = M."""
    n, subject = len(table) - 1, Subject(base_parameters(table))
    (tau,), (C,), (M,) = (record(tape, x, subject) for x in ("inverse_dynamics", "coriolis_matrix", "mass_matrix"))
    dq = _along(tape, tau, "q", n)
    return [dq, 2.0 * C, M]


def forward_dynamics(tape: Tape, table: Scalars) -> list[Scalars]:
    """∂q̈/∂q = −M⁻¹ ∂τ/∂q, ∂q̈/∂q̇ = −M⁻¹ ∂τ/∂q̇ and ∂q̈/∂τ = M⁻¹; nothing if some joint never carries anything."""
    n = len(table) - 1
    found = solved.factors(tape, table)
    if found is None:
        return []
    (bias,) = record(tape, "bias_force", Subject(base_parameters(table)))
    qdd = found.solve(inputs(tape, "tau", range(n)) - bias)
    dq, dqd, _ = inverse_dynamics(tape, table)
    # q̈ was held while τ was differentiated; only now does it become what τ makes it.
    values: dict[Hashable, Scalar] = {node.a: tape.input(node.a) for node in tape.nodes if node.op == "input"}
    values |= {("qdd", i): qdd[i] for i in range(n)}
    substituted = tape.evaluate(dq.ravel(), values, sin=lambda x: x.sin(), cos=lambda x: x.cos())
    dq = np.array(substituted, dtype=object).reshape(n, n)
    inverse = _solved(found, np.eye(n).astype(object))
    return [_solved(found, -dq), _solved(found, -dqd), np.where(np.tri(n, dtype=bool), inverse, inverse.T)]


def _solved(factors: solved.Factors, B: Scalars) -> Scalars:
    """M⁻¹ B."""
    columns = [factors.solve(B[:, k]) for k in range(B.shape[1])]
    return np.array(columns, dtype=object).reshape(B.T.shape).T


def mass_matrix(tape: Tape, table: Scalars) -> list[Scalars]:
    """∂M_ij/∂q_k at [i, j, k]."""
    (M,) = record(tape, "mass_matrix", Subject(base_parameters(table)))
    return [_along(tape, M, "q", len(table) - 1)]


def mass_matrix_dot(tape: Tape, table: Scalars) -> list[Scalars]:
    """Ṁ, the derivative of M along q̇."""
    n = len(table) - 1
    (M,) = record(tape, "mass_matrix", Subject(base_parameters(table)))
    rates = tangent(tape, M.ravel(), {("q", i): tape.input(("qd", i)) for i in range(n)})
    return [np.array(rates, dtype=object).reshape(n, n)]


def gravity_vector(tape: Tape, table: Scalars) -> list[Scalars]:
    """∂g/∂q."""
    (g,) = record(tape, "gravity_vector", Subject(base_parameters(table)))
    return [_along(tape, g, "q", len(table) - 1)]


# What each is a function of, and how it is recorded.
DERIVATIVES: dict[str, tuple[tuple[str, ...], Callable[[Tape, Scalars], list[Scalars]]]] = {
    "inverse_dynamics": (("q", "qd", "qdd"), inverse_dynamics),
    "forward_dynamics": (("q", "qd", "tau"), forward_dynamics),
    "mass_matrix": (("q",), mass_matrix),
    "mass_matrix_dot": (("q", "qd"), mass_matrix_dot),
    "gravity_vector": (("q",), gravity_vector),
}


def regressor(tape: Tape, table: Scalars, bodies: Bodies) -> list[Scalars]:
    """Y with τ = Y π, (n, 10 · number of bodies): τ is linear in the ten numbers of each body.

    The rows carry these bodies and no others. A body on row −1, the base, moves nothing.
    """
    n, names = len(table) - 1, [("body", (b, k)) for b in range(len(bodies)) for k in range(10)]
    loaded = table.copy()
    loaded[:-1, MASS:PARENT] = 0.0
    for b, (row, R, p) in enumerate(bodies):
        if row >= 0:
            m, hx, hy, hz, xx, xy, xz, yy, yz, zz = (tape.input(("body", (b, k))) for k in range(10))
            own = RigidInertia(m, (hx, hy, hz), (xx, xy, xz, yy, yz, zz))
            m, h, I = inertia_to_parent(Pose(R, p), own)
            loaded[row, MASS:PARENT] += np.array([m, *h, *I], dtype=object)
    (tau,) = record(tape, "inverse_dynamics", Subject(loaded))
    rows = [gradient(tape, tau[i], names) for i in range(n)]
    return [np.array(rows, dtype=object).reshape(n, len(names))]
