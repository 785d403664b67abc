"""Operation counts of quantities written out for one tree."""

from collections.abc import Callable, Iterable

from screwdyn.backends.tape.counting import CountingTape
from screwdyn.backends.tape.tape import Tape
from screwdyn.backends.tape.trace import inputs
from screwdyn.core.errors import ScrewdynError
from screwdyn.core.types import Array
from screwdyn.forms.requests import requested, results
from screwdyn.physics.model import Model

__all__ = ["operation_count", "operations_of"]


def operation_count(model: Model, names: Iterable[str]) -> dict[str, int]:
    """See :meth:`screwdyn.KinematicTree.operation_count`."""
    requests = [requested(name, tuple(model.placements)) for name in names]
    if not requests:
        raise ScrewdynError("name at least one function to count")
    tape = Tape()
    outputs = [x for request in requests for y in results(request, model, tape) for x in y.ravel()]
    return tape.count(outputs, lambda name: isinstance(name, tuple) and name[0] == "symbol")


def operations_of(function: Callable[..., Array], **sizes: int) -> dict[str, int]:
    """Number of operations of a function of vectors, as in :meth:`screwdyn.KinematicTree.operation_count`.

    Constants that differ by rounding count as equal, and those below 1e-13 as zero, so that the numbers are those of
    exact arithmetic.

    Parameters
    ----------
    function : callable
        Takes arrays of scalars and returns an array.
    **sizes : int
        Number of entries of each argument, such as ``q=3, qd=3``.
    """
    tape = CountingTape()
    result = function(*(inputs(tape, name, range(n)) for name, n in sizes.items()))
    return tape.count(list(result.ravel()), lambda name: False)
