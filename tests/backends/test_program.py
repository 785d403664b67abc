"""Code is cached by structure, and serves all models that differ in inertias only."""

import numpy as np

from screwdyn.backends.llvm import program as native
from screwdyn.backends.llvm.program import Kept
from screwdyn.robots import ur5


def compilation(table, loaded):
    return native._programs.serving(table, loaded, "gravity_vector")


def test_a_structure_is_kept_by_what_it_is_made_for():
    model = ur5().model
    nowhere = np.zeros(model.nv, dtype=bool)
    first = compilation(model.table, nowhere)
    heavier = model.table.copy()
    heavier[:-1, 14:24] *= 1.5
    assert compilation(heavier, nowhere) is first
    tilted = model.table.copy()
    tilted[-1, 0] = 1.0
    other = compilation(tilted, nowhere)
    assert other is not first
    fuller = model.table.copy()
    fuller[2, 15] = 0.125
    wider = compilation(fuller, nowhere)
    assert wider is not first
    fuller[2, 14:24] = 1
    assert compilation(fuller, nowhere) is wider
    assert compilation(model.table, nowhere) is wider
    for kept in (first, other, wider):
        assert kept.single.result() is kept.batch.result() is kept.program
    assert native.compilation_of("gravity_vector", model) is native.compilation_of("gravity_vector", model)


class Numbered(int):
    nbytes = 1


class Named(str):
    """An object whose size is the length of its name."""

    __slots__ = ()
    nbytes = property(len)


def test_a_row_whose_zeros_change_is_opened_altogether():
    table, made = ur5().model.table, []
    nowhere = np.zeros(6, dtype=bool)
    kept = Kept(lambda structure, what: made.append((structure, what)) or Numbered(len(made)), 2)
    assert kept.serving(table, nowhere) == kept.serving(table, nowhere) == 1
    (frame, opened, *_), _ = made[0]
    assert not frame[:-1, 14:24].any()
    np.testing.assert_array_equal(opened, table[:-1, 14:24] != 0)
    fuller = table.copy()
    fuller[2, 15] = 0.125
    assert kept.serving(fuller, nowhere) == 2
    assert made[1][0].opened[2].all()
    assert kept.serving(table, nowhere) == 2
    assert kept.serving(table, nowhere, "of another kind") == 3


def test_as_many_of_the_last_ones_are_kept_as_memory_is_allowed():
    table, made = ur5().model.table, []
    nowhere = np.zeros(6, dtype=bool)
    kept = Kept(lambda _, what: made.append(what) or Named(what), 2)
    for what in ("a", "b", "a", "c", "a", "b"):
        assert kept.serving(table, nowhere, what) == what
    assert made == ["a", "b", "c", "b"]
    for what in ("large", "large", "b"):
        kept.serving(table, nowhere, what)
    assert made[4:] == ["large", "b"]
