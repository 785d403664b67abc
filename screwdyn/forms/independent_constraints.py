"""Constraints of closed loops that imply the others, chosen where operations are written out and cannot choose."""

from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from screwdyn.backends.tape.tape import Tape
from screwdyn.backends.tape.trace import Scalars, Subject, constants, record
from screwdyn.core import expressions
from screwdyn.core.errors import LoopError
from screwdyn.core.types import Array
from screwdyn.forms.closed_loops import _assembled, _free, dependent, indices
from screwdyn.forms.numbers import Numbers
from screwdyn.mechanism.loops import check_open
from screwdyn.physics.catalogue import Quantity
from screwdyn.physics.closure import Closure, significant
from screwdyn.physics.internal import WITH_LOOPS
from screwdyn.physics.model import Model
from screwdyn.physics.recursions.constrained import orthonormal_rows
from screwdyn.physics.table import COLUMNS, PLACE

__all__ = ["Independent", "independent_constraints", "written_places"]

# Number of random configurations from which the loops are closed, and of those near a closed one; their distance.
_RANDOM, _AWAY = 3, 0.3


class Independent(NamedTuple):
    """Independent constraints of the loops of a model.

    Attributes
    ----------
    chosen : tuple of int
        Their indices among all constraints.
    J : (…, rank, nv) array
        Their Jacobians in some configurations in which the loops are closed.
    """

    chosen: tuple[int, ...]
    J: Array

    def dependent(self, model: Model, independent: Iterable[str]) -> list[int]:
        """Indices of the freedoms that others determine, in the configuration in which they do so most clearly.

        Errors as for :meth:`ClosedLoops.reduced`.
        """
        given = indices(model, independent)
        least = np.linalg.svd(np.delete(self.J, given, axis=-1), compute_uv=False).min(axis=-1, initial=np.inf)
        return dependent(model, self.J[np.argmax(least)], len(self.chosen), given)


@lru_cache(maxsize=32)
def independent_constraints(model: Model) -> Independent:
    """Independent constraints of a model, in the order of all constraints.

    They are chosen in configurations in which the loops are closed, because constraints of some mechanisms are
    redundant only there (docs/mathematics.md §12). If the model has symbols, these get arbitrary values, and the loops
    are not closed: only what is redundant for all values is recognised.

    Raises
    ------
    LoopError
        If the loops cannot be closed.
    """
    jacobians = np.stack([_of_symbols(model)] if model.ready is None else _closed(model))
    chosen = max(map(_chosen, jacobians), key=len)
    return Independent(chosen, jacobians[:, chosen])


def written_places(entry: Quantity, model: Model, link: str, frame: int) -> list[list[Any]]:
    """The places for a recording, as by :meth:`Model.rows_of_places`; for forward dynamics of closed loops, those of
    independent constraints.

    Raises
    ------
    LoopError
        If the quantity would ignore the loops.
    """
    if not model.constraints or entry.name not in WITH_LOOPS:
        return model.rows_of_places(entry.places, link, frame)
    if WITH_LOOPS[entry.name] is None:
        check_open(model.topology, f"{entry.name} in this form", f"use tree.{entry.name}(…), which knows them")
    return [model.constraints[k] for k in independent_constraints(model).chosen]


def _closed(model: Model) -> list[Array]:
    """J_c in some configurations with closed loops: one, which may be singular, and others near it."""
    one, rng, space = Numbers(model), np.random.default_rng(0), model.configurations
    closure = Closure(one, model)
    q = _near(closure, [space.neutral, *(space.random(rng) for _ in range(_RANDOM))])
    found = [one.constraint_jacobian(q)]
    for _ in range(_RANDOM):
        with suppress(LoopError):
            near = space.integrate(q, rng.uniform(-_AWAY, _AWAY, model.nv))
            found.append(one.constraint_jacobian(_assembled(closure, near, _free(model, ()))))
    return found


def _near(closure: Closure, starts: Iterable[Array]) -> Array:
    """The closed configuration near the first start from which the loops can be closed; LoopError if there is none."""
    reason = None
    for start in starts:
        try:
            return _assembled(closure, start, _free(closure.model, ()))
        except LoopError as error:
            reason = reason or error
    assert reason is not None
    raise reason


def _of_symbols(model: Model) -> Array:
    """J_c for arbitrary values of the symbols, and in an arbitrary configuration."""
    tape, rng = Tape(), np.random.default_rng(0)
    values: dict[Any, float] = {}

    def given(numbers: Any) -> Scalars:
        for symbol in sorted(expressions.free_symbols(numbers) - values.keys(), key=str):
            values[symbol] = rng.uniform(0.5, 1.5)
        return constants(np.array([float(expressions.substituted(x, values)) for x in numbers]))

    charts = model.charts
    if charts is not None:
        groups, couplings = (given(x.flat).reshape(x.shape) for x in (charts.groups, charts.couplings))
        charts = charts._replace(groups=groups, couplings=couplings)
    table = given([x for row in (*model.rows, model.base_row) for x in row]).reshape(-1, COLUMNS)
    places = given([x for row in model.constraints for x in row]).reshape(-1, PLACE)
    subject = Subject(table, charts, places)
    (recorded,) = record(tape, "constraint_jacobian", subject)
    q = dict(zip(range(model.nq), model.configurations.random(rng), strict=True))
    found = tape.evaluate(recorded.ravel().tolist(), {("q", k): x for k, x in q.items()})
    return np.array(found, dtype=np.float64).reshape(recorded.shape)


def _chosen(J: Array) -> tuple[int, ...]:
    """Independent rows, by Gram-Schmidt, which does not depend on inertias: code is kept when a payload changes."""
    m = len(J)
    order = np.zeros((m, 2))
    rank = orthonormal_rows(significant(J), np.zeros((m, m)), order)
    return tuple(sorted(map(int, order[:rank, 0])))
