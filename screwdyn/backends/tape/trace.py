"""The sweeps run once on recording scalars: what a function of a tree is, written out on a tape.

Inputs are named (group, index): ("q", 0), ("qd", 2), …, and ("inertia", (row, k)) for the ten inertial numbers of a
row where they are left open.
"""

from collections.abc import Hashable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from screwdyn.backends.tape.tape import Tape
from screwdyn.physics import recursions as sweeps
from screwdyn.physics.table import MASS, PARENT, WORK

__all__ = ["FUNCTIONS", "Scalars", "Undetermined", "constants", "inputs", "open_inertias", "record"]

Scalars = npt.NDArray[np.object_]

# What each function is a function of, in order.
FUNCTIONS: dict[str, tuple[str, ...]] = {
    "mass_matrix": ("q",),
    "coriolis_matrix": ("q", "qd"),
    "gravity_vector": ("q",),
    "bias_force": ("q", "qd"),
    "inverse_dynamics": ("q", "qd", "qdd"),
    "forward_dynamics": ("q", "qd", "tau"),
}


class Undetermined(Exception):
    """A joint carries no inertia along its screw, so that there is no acceleration to record; ``row`` says which."""

    def __init__(self, row: int) -> None:
        super().__init__(f"row {row} carries no inertia along its joint")
        self.row = row


def constants(table: npt.NDArray[np.float64]) -> Scalars:
    """A model's table as plain numbers, which fold."""
    return np.array(table.tolist(), dtype=object).reshape(table.shape)


def open_inertias(table: npt.NDArray[np.float64], tape: Tape, which: npt.NDArray[np.bool_] | bool = True) -> Scalars:
    """A model's table in which inertial numbers are left open, as inputs: all, or ``which`` of each row's ten."""
    opened = constants(table)
    for row, k in np.argwhere(np.broadcast_to(which, (len(table) - 1, PARENT - MASS))).tolist():
        opened[row, MASS + k] = tape.input(("inertia", (row, k)))
    return opened


def record(tape: Tape, table: Scalars, function: str, names: Sequence[Hashable] | None = None) -> Scalars:
    """One of ``FUNCTIONS`` on the tape: its outputs, (n,) or (n, n), of scalars on the tape and plain numbers.

    The inputs of a row are named after its number, or by the names given.
    """
    n = len(table) - 1
    given = {group: inputs(tape, group, range(n) if names is None else names) for group in ("q", "qd", "qdd", "tau")}
    q, qd = given["q"], given["qd"]
    work, out = _zeros(n, WORK), _zeros(n)
    if function == "mass_matrix":
        out = _zeros(n, n)
        sweeps.mass_matrix(table, q, 0, work, out)
    elif function == "coriolis_matrix":
        out = _zeros(n, n)
        sweeps.coriolis_matrix(table, q, qd, 0, work, _zeros(n, n), out)
    elif function == "gravity_vector":
        sweeps.gravity_vector(table, q, 0, work, out)
    elif function == "bias_force":
        sweeps.inverse_dynamics(table, q, qd, _zeros(n), 0, work, out)
    elif function == "inverse_dynamics":
        sweeps.inverse_dynamics(table, q, qd, given["qdd"], 0, work, out)
    elif function == "forward_dynamics":
        massless = sweeps.forward_dynamics(table, q, qd, given["tau"], 0, work, out)
        if massless >= 0:
            raise Undetermined(massless)
    else:
        raise ValueError(f"there is no function {function!r} to record; known: {', '.join(FUNCTIONS)}")
    return out


def inputs(tape: Tape, group: str, names: Iterable[Hashable]) -> Scalars:
    """One input of a group for every name."""
    return np.array([tape.input((group, name)) for name in names], dtype=object)


def _zeros(*shape: int) -> Scalars:
    return np.full(shape, 0.0, dtype=object)
