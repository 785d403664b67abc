"""A quantity on a tape with as few operations as possible."""

from screwdyn.backends.tape import constrained
from screwdyn.backends.tape.ltdl import favoured, forward_dynamics
from screwdyn.backends.tape.tape import Tape
from screwdyn.backends.tape.trace import Scalars, Subject, record
from screwdyn.physics.base_parameters import base_parameters
from screwdyn.physics.quantities import CATALOGUE
from screwdyn.physics.table import MASS, PARENT

__all__ = ["outputs"]


def outputs(tape: Tape, quantity: str, subject: Subject, extra: Scalars | float = 0.0) -> list[Scalars]:
    """The results of a quantity on a tape, from base parameters if the catalogue allows it.

    Forward dynamics is by LTDL factors or by articulated bodies, whichever takes less time. With places it is that of
    closed loops, whose independent constraints are at the places.

    Parameters
    ----------
    tape : Tape
    quantity : str
    subject : Subject
    extra : (n + 1, 10) array or 0
        Inertial numbers that are added to those of the table. They are not converted to base parameters, which would
        take operations, because they are not known in advance.

    Raises
    ------
    Undetermined
        If there are no results for any state.
    """
    solves = quantity == "forward_dynamics"
    if solves and subject.places is not None and len(subject.places):
        return [constrained.forward_dynamics(tape, subject)]
    regrouped = CATALOGUE[quantity].base_parameters and not solves
    table = base_parameters(subject.table) if regrouped else subject.table.copy()
    table[:, MASS:PARENT] += extra
    subject = subject._replace(table=table)
    return [forward_dynamics(tape, subject)] if solves and favoured(subject) else record(tape, quantity, subject)
