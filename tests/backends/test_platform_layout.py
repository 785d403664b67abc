"""The assumed memory layout of objects holds here; results are the same where it does not."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from screwdyn import ShapeError
from screwdyn.backends.llvm import code_cache
from screwdyn.backends.native import platform_layout
from screwdyn.backends.numba import kernels
from screwdyn.forms.compiled import AT_ONCE
from screwdyn.physics.quantities import CATALOGUE
from screwdyn.robots import two_link


def test_the_layout_of_objects_is_understood_here():
    """On CPython with NumPy 2, for which the layout is known."""
    assert platform_layout.understood()


@pytest.mark.parametrize("constant", ["TYPE", "TUPLE_SIZE", "TUPLE_ITEMS", "DATA", "SHAPE", "DESCRIPTOR", "FLAGS"])
def test_another_layout_is_noticed(monkeypatch, constant):
    step = -8 if constant == "TUPLE_ITEMS" else 8  # as if there were no hash before the items, or no length
    monkeypatch.setattr(platform_layout, constant, getattr(platform_layout, constant) + step)
    assert not platform_layout.understood.__wrapped__()


@pytest.fixture
def unknown(monkeypatch):
    """A compiled arm on a platform whose layout is unknown."""
    monkeypatch.setattr(platform_layout, "understood", lambda: False)
    monkeypatch.setattr(code_cache, "_programs", code_cache.Kept(code_cache._programs._make, 10**9))
    return two_link().compile(threads=1).wait()


def test_without_the_layout_all_answers_are_the_same(unknown):
    assert set(unknown.compiled) == set(AT_ONCE)
    shortcut = two_link().compile(threads=1)
    rng = np.random.default_rng(0)
    for name in AT_ONCE:
        groups = CATALOGUE[name].arguments
        plain = getattr(unknown, name)
        assert not isinstance(plain, type(len))
        for shape in ((2,), (17, 2)):
            state = rng.uniform(-2, 2, (len(groups), *shape))
            expected = getattr(shortcut, name)(*state)
            found = plain(*state)
            out = tuple(np.empty_like(x) for x in expected) if name == "dynamics" else np.empty_like(expected)
            assert plain(*state, out=out) is out
            for x, y, z in zip(expected, found, out, strict=True):
                assert_array_equal(x, y)
                assert_array_equal(x, z)
        for wrong in (np.full(2, np.nan), np.zeros(3), "word"):
            with pytest.raises(ShapeError):
                plain(wrong, *state[1:, 0])


@pytest.mark.parametrize("known", [True, False])
def test_kernels_take_arrays_of_any_kind(monkeypatch, known):
    """Unaligned, of the other byte order, a list, a row of a matrix; with the entry and without."""
    if not known:
        monkeypatch.setattr(platform_layout, "understood", lambda: False)
        slow = kernels.Kernels.function("gravity_vector")
        assert not isinstance(slow, type(len))
        monkeypatch.setattr(
            kernels, "Kernels", type("Slow", (kernels.Kernels,), {"gravity_vector": staticmethod(slow)})
        )
    tree, q = two_link(), np.array([0.25, -0.5])
    unaligned = np.zeros(q.nbytes + 1, np.uint8)[1:].view(float)
    unaligned[:] = q
    expected = two_link().compile().wait().gravity_vector(q)
    for state in (q, unaligned, q.astype(">f8"), [0.25, -0.5], np.stack([q, q]).astype(">f8")[1], q.astype("f4")):
        found = tree.gravity_vector(state)
        assert_allclose(found, expected, rtol=1e-15)
        assert_array_equal(found, tree.gravity_vector(q))
