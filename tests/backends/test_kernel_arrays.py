"""Arrays in kernels, and what compilation leaves behind."""

import ctypes
import gc

import numba
import numpy as np
import pytest
from numba import types
from numpy.testing import assert_array_equal

from screwdyn.backends.numba import jit
from screwdyn.backends.numba.arrays import address_of, array, integers


@numba.extending.register_jitable
def last(row):
    return row[row.shape[0] - 1]


def kernel(at, indices):
    """Exercise items of each kind: of a vector, a matrix and three axes, and rows."""
    cube, k = array(at, (2, 3, 4)), integers(indices, (2,))
    cube[1, 2, k[0]] += 0.5
    matrix = array(at, (6, 4))
    matrix[k[1], 0] = 7
    matrix[0][3] = last(matrix[5])
    cube[1][0, 1] = cube.shape[0] + address_of(matrix[1]) - at
    return matrix.shape[0]


def test_items_are_those_of_numpy():
    made = numba.cfunc(types.int64(types.int64, types.int64), error_model="numpy")(kernel)
    found, k = np.arange(24.0).reshape(6, 4), np.array([3, 2])
    expected = found.copy()
    cube = expected.reshape(2, 3, 4)
    cube[1, 2, 3] += 0.5
    expected[2, 0] = 7
    expected[0, 3] = expected[5, 3]
    cube[1, 0, 1] = 2 + 4 * 8
    call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(made.address)
    assert call(found.ctypes.data, k.ctypes.data) == 6
    assert_array_equal(found, expected)


@pytest.mark.parametrize("collected", [True, False])
def test_compilation_leaves_the_garbage_collector_as_it_was(collected, monkeypatch):
    """Also a compilation that fails."""

    def failing(*_, **__):
        assert not gc.isenabled()
        raise MemoryError

    monkeypatch.setattr(jit.CFunc, "compile", failing)
    before = gc.isenabled()
    try:
        (gc.enable if collected else gc.disable)()
        with pytest.raises(MemoryError):
            jit.compiled(kernel)
        assert gc.isenabled() is collected
    finally:
        (gc.enable if before else gc.disable)()
