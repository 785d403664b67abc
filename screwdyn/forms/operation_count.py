"""Operation counts of quantities written out for one tree."""

from collections.abc import Iterable

from screwdyn.backends.tape.tape import Tape
from screwdyn.core.errors import ScrewdynError
from screwdyn.forms.requests import requested, results
from screwdyn.physics.model import Model

__all__ = ["operation_count"]


def operation_count(model: Model, names: Iterable[str]) -> dict[str, int]:
    """See :meth:`screwdyn.KinematicTree.operation_count`."""
    requests = [requested(name, tuple(model.placements)) for name in names]
    if not requests:
        raise ScrewdynError("name at least one function to count")
    tape = Tape()
    outputs = [x for request in requests for y in results(request, model, tape) for x in y.ravel()]
    return tape.count(outputs, lambda name: isinstance(name, tuple) and name[0] == "symbol")
