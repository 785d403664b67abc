"""How much a function of a tree costs, in operations."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

from screwdyn.backends.tape.ltdl import forward_dynamics
from screwdyn.backends.tape.tape import Scalar, Tape
from screwdyn.backends.tape.trace import FUNCTIONS, Scalars, Subject, constants, record
from screwdyn.core import expressions
from screwdyn.core.errors import ScrewdynError, SingularAttachmentError
from screwdyn.forms.numbers import Numbers
from screwdyn.physics.base_parameters import base_parameters
from screwdyn.physics.model import Model
from screwdyn.physics.table import MASS, PARENT

__all__ = ["known_function", "operation_count", "scalar", "scalar_table", "written_out"]


def operation_count(model: Model, functions: Iterable[str]) -> dict[str, int]:
    """See :meth:`screwdyn.KinematicTree.operation_count`."""
    names = [known_function(name) for name in functions]
    if not names:
        raise ScrewdynError(f"name at least one function to count; known: {', '.join(FUNCTIONS)}")
    tape = Tape()
    outputs = [x for name in names for x in written_out(model, tape, scalar_table(model, tape), name)]
    return tape.count(outputs, lambda name: isinstance(name, tuple) and name[0] == "symbol")


def scalar_table(model: Model, tape: Tape) -> Scalars:
    """A model's table on a tape, with an input ("symbol", expression) for each number that holds symbols."""
    if model.ready is not None:
        return constants(model.ready)
    return np.array([[scalar(tape, x) for x in row] for row in (*model.rows, model.base_row)], dtype=object)


def scalar(tape: Tape, x: Any) -> Scalar:
    """A number of the robot as a float, or as an input ("symbol", expression) if it holds symbols."""
    if expressions.is_number(x):
        return float(x)
    minus = bool(x.could_extract_minus_sign())
    given = tape.input(("symbol", -x if minus else x))
    return -given if minus else given


def written_out(
    model: Model,
    tape: Tape,
    table: Scalars,
    function: str,
    optional: Scalars | float = 0.0,
    armature: Sequence[Scalar] = (),
) -> list[Scalar]:
    """The outputs of a function on a tape, row by row, with as few inertial numbers as will do.

    Parameters
    ----------
    table : array
        The model's rows.
    optional : (nv, 10) array or 0
        Inertial numbers to add to those of the rows, of scalars on the tape. They are not regrouped, which would cost
        operations where they are not known.
    armature : sequence
        For ``forward_dynamics``, inertia that each joint has besides, felt by no other joint.

    Raises
    ------
    SingularAttachmentError
        If a joint carries no inertia, whatever the state, so that there are no accelerations to write out.
    """
    table = table.copy() if function == "forward_dynamics" else base_parameters(table)
    table[:-1, MASS:PARENT] += optional
    if function != "forward_dynamics":
        return [x for part in record(tape, function, Subject(table)) for x in part.ravel()]
    outputs = forward_dynamics(tape, table, armature)
    if outputs is None:
        if model.ready is not None:
            Numbers(model).forward_dynamics(*np.zeros((3, model.nv)))  # names the joint
        raise SingularAttachmentError("some joint carries no more inertia than rounding leaves it")
    return list(outputs)


def known_function(name: str) -> str:
    """The name of a function that can be written out, as it is.

    Raises
    ------
    ScrewdynError
        If there is no such function; with the nearest name.
    """
    if not isinstance(name, str) or name not in FUNCTIONS:
        near = get_close_matches(str(name), FUNCTIONS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(FUNCTIONS)}"
        raise ScrewdynError(f"no function {name!r} can be written out; {hint}")
    return name
