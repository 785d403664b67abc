"""The kernels evaluated by the tapes from which compiled code, closed forms and C are made."""

import math
from functools import lru_cache
from types import SimpleNamespace

import numpy as np

from screwdyn.backends.kernels import entry as kernels
from screwdyn.backends.kernels.in_python import WRONG_INPUT
from screwdyn.backends.llvm.program import inertias
from screwdyn.backends.tape.tape import Tape
from screwdyn.backends.tape.trace import Subject, Undetermined, constants, open_inertias, record
from screwdyn.physics.charts import COUPLING, GROUP, Charts
from screwdyn.physics.quantities import CATALOGUE
from screwdyn.physics.reductions import base_parameters
from screwdyn.physics.table import PLACE

__all__ = ["Kernels"]


def each(function):
    """A function of every entry separately, so that a state has the same bits alone and in a batch."""
    return lambda x: np.array([function(entry) for entry in x])


@lru_cache(maxsize=256)
def recorded(name, shape, table, charts, places):
    """A tape with the results of a quantity; all inertial numbers but zeros are inputs."""
    entry, tape = CATALOGUE[name], Tape()
    rows = np.frombuffer(table).reshape(shape)
    numbers = open_inertias(rows, tape, rows[:-1, 14:24] != 0)
    if entry.base_parameters:
        numbers = base_parameters(numbers)
    if charts is not None:
        where, groups, *numbered = charts
        whole = np.frombuffer(where, np.int64), np.frombuffer(groups, np.int64).reshape(-1, GROUP)
        widths = zip(numbered, (4, COUPLING), strict=True)
        charts = Charts(*whole, *(constants(np.frombuffer(x).reshape(-1, width)) for x, width in widths))
    places = None if places is None else constants(np.frombuffer(places).reshape(-1, PLACE))
    return tape, record(tape, name, Subject(numbers, charts, places)), inertias(rows)


class Kernels(kernels.Kernels):
    """Kernels whose results come from tapes."""

    def _bind(self, solving):
        """Leave every call of a method to Python."""
        functions = kernels._functions(self._kind, self._loops)
        self.__dict__.update({name: f for name, f in functions.items() if name not in CATALOGUE})

    def places_in(self, context):
        places = (x for x in self._kept if kernels.address(x) == context[kernels._PLACES])
        return next(places)

    def fill(self, entry, context, states, arguments, results):
        given = entry, context, states, arguments, results
        if (
            self._kind
            or self._loops
            or entry.name not in CATALOGUE
            or entry.name in ("contribution", "subtree_contribution")
        ):
            return super().fill(*given)
        count, model, state = states, self.model, dict(zip(entry.arguments, arguments, strict=True))
        if not all(np.isfinite(x**5).all() for x in state.values()):
            return WRONG_INPUT
        if not count or not model.nv:
            return super().fill(*given)
        table = model.table
        charts = model.charts and tuple(np.ascontiguousarray(x).tobytes() for x in model.charts)
        key = table.shape, table.tobytes(), charts, self.places_in(context).tobytes() if entry.places else None
        try:
            tape, found, values = recorded(entry.name, *key)
        except Undetermined as undetermined:
            return undetermined.status
        columns = {g: x.reshape(count, -1) for g, x in state.items()}
        values = values | {(g, i): x[:, i] for g, x in columns.items() for i in range(x.shape[1])}
        bounds = [x for pair in tape.assumed for x in pair]
        entries = [x for result in found for x in result.ravel()]
        with np.errstate(all="ignore"):  # the results are invalid if the bounds do not hold
            numbers = tape.evaluate(entries + bounds, values, SimpleNamespace(sin=each(math.sin), cos=each(math.cos)))
        least = numbers[len(entries) :]
        if not all(np.all(x > y) for x, y in zip(least[::2], least[1::2], strict=True)):
            return super().fill(*given)
        at = 0
        for result, out in zip(found, results, strict=True):
            flat = out.reshape(count, result.size)
            for k in range(result.size):
                flat[:, k] = numbers[at + k]
            at += result.size
        return 0


# Every call goes to ``fill``.
for name in CATALOGUE:
    setattr(Kernels, name, staticmethod(kernels.refuse))
