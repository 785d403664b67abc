"""How much a function of a tree costs, in operations."""

from collections.abc import Iterable
from difflib import get_close_matches

import numpy as np

from .errors import ScrewdynError
from .model import Model
from .physics.regrouped import regrouped
from .physics.tape import Recorded, Scalar, Tape
from .physics.unrolled import FUNCTIONS, Scalars, constants, record

__all__ = ["known_function", "operation_count", "written_out"]


def operation_count(model: Model, functions: Iterable[str]) -> dict[str, int]:
    """See :meth:`screwdyn.KinematicTree.operation_count`."""
    names = [known_function(name) for name in functions]
    if not names:
        raise ScrewdynError(f"name at least one function to count; known: {', '.join(FUNCTIONS)}")
    tape = Tape()
    table = regrouped(constants(model.table))
    return tape.count(x for name in names for x in written_out(model, tape, table, name))


def written_out(model: Model, tape: Tape, table: Scalars, function: str) -> list[Scalar]:
    """The outputs of a function on a tape, row by row; ``table`` holds the model's numbers, as far as they are known.

    Raises
    ------
    SingularAttachmentError
        If a joint carries no inertia, whatever the state, so that there are no accelerations to write out.
    """
    outputs: list[Scalar] = record(tape, table, function).ravel().tolist()
    if function == "forward_dynamics" and outputs and not any(isinstance(x, Recorded) for x in outputs):
        model.forward_dynamics(*np.zeros((3, model.nv)))  # names the joint
    return outputs


def known_function(name: str) -> str:
    """The name of a function that can be written out, as it is.

    Raises
    ------
    ScrewdynError
        If there is no such function; with the nearest name.
    """
    if name not in FUNCTIONS:
        near = get_close_matches(str(name), FUNCTIONS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(FUNCTIONS)}"
        raise ScrewdynError(f"no function {name!r} can be written out; {hint}")
    return name
