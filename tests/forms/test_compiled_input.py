"""Input of compiled functions: any input returns a result or raises an error, without memory errors."""

import numpy as np
import pytest
from cases import close, norm, unaligned
from numpy.testing import assert_array_equal
from small_arm import nearly_singular

from screwdyn import Inertia, KinematicTree, Link, ShapeError, SingularAttachmentError, prismatic, revolute
from screwdyn.forms.compiled import AT_ONCE
from screwdyn.physics.quantities import CATALOGUE
from screwdyn.testing import random_tree

ARGUMENTS = {name: len(CATALOGUE[name].arguments) for name in AT_ONCE if name != "dynamics"}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_wrong_arguments_are_refused_as_by_the_tree(arm, fast, name):
    good = list(np.random.default_rng(6).normal(size=(ARGUMENTS[name], arm.nv)))
    out = np.empty(getattr(arm, name)(*good).shape)
    bad_values = [
        np.zeros(arm.nv + 1),
        np.zeros(arm.nv - 1),
        np.float64(3.0),
        np.array(1.0),
        np.zeros((2, 3)),
        [1.0, np.nan, 0, 0, 0],
        np.full(arm.nv, np.inf),
        np.full((1, arm.nv), -np.inf)[0],
        np.zeros(arm.nv, dtype=complex),
        "word",
        None,
        object(),
        [[1, 2], [3]],
    ]
    for position in range(len(good)):
        for bad in bad_values:
            arguments = [*good[:position], bad, *good[position + 1 :]]
            with pytest.raises(ShapeError) as theirs:
                getattr(arm, name)(*arguments)
            for keywords in ({}, {"out": out}):
                with pytest.raises(ShapeError) as ours:
                    getattr(fast, name)(*arguments, **keywords)
                assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_wrong_outs_are_refused(arm, fast, name):
    good = list(np.random.default_rng(6).normal(size=(ARGUMENTS[name], arm.nv)))
    expected = getattr(fast, name)(*good)
    frozen = expected.copy()
    frozen.setflags(write=False)
    for out in (
        frozen,
        expected.astype(">f8"),
        expected.astype(np.float32),
        expected[1:].copy(),
        expected[None].copy(),
    ):
        with pytest.raises(ShapeError, match="out"):
            getattr(fast, name)(*good, out=out)
    for out in (list(expected), 3.0, "out", object(), np.zeros(())):
        with pytest.raises(ShapeError, match="out"):
            getattr(fast, name)(*good, out=out)


def test_an_out_that_overlaps_itself_is_refused(arm, fast):
    q = np.zeros((4, 5))
    for steps in ((0, 8), (16, 8), (8, 8), (8, -8)):
        folded = np.lib.stride_tricks.as_strided(np.zeros(60)[20:], (4, 5), steps)
        with pytest.raises(ShapeError, match="overlap in memory"):
            fast.gravity_vector(q, out=folded)
    for steps in ((8, 32), (48, 8), (-40, 8), (80, -16)):
        apart = np.lib.stride_tricks.as_strided(np.zeros(80)[20:], (4, 5), steps)
        assert fast.gravity_vector(q, out=apart) is apart


def test_out_may_lie_where_a_state_lies_that_is_nearly_singular():
    """The compiled function refuses the last state, so the default kernel computes all of them."""
    tree = nearly_singular()
    fast = tree.compile(threads=1).wait()
    rng = np.random.default_rng(8)
    memory = np.zeros((2, 7, 3))
    q = memory[:, :6:2]
    given, qd, tau = rng.normal(size=(3, 2, 3, 3))
    declined = 0
    for given[1, 2, 2] in np.linspace(1e-12, 3e-12, 41):
        q[...] = given
        try:
            expected = tree.forward_dynamics(given, qd, tau)
        except SingularAttachmentError:
            continue
        declined += np.array_equal(fast.forward_dynamics(given, qd, tau), expected)
        found = fast.forward_dynamics(q, qd, tau, out=memory.reshape(-1)[:18].reshape(2, 3, 3))
        assert_array_equal(found, fast.forward_dynamics(given, qd, tau))
    assert declined


def test_results_may_not_overwrite_each_other(arm, fast):
    for batch in ((), (12,)):
        M, g = np.empty((*batch, 5, 5)), np.empty((*batch, 5))
        q, qd = np.random.default_rng(7).normal(size=(2, *batch, 5))
        for out in ((M, M, g), (M, np.empty_like(M), M[..., 0])):
            with pytest.raises(ShapeError, match="overlaps"):
                fast.dynamics(q, qd, out=out)
        record = np.zeros((*batch, 55))
        M, C = (record[..., k : k + 25].reshape(*batch, 5, 5) for k in (0, 25))
        M, C, g = fast.dynamics(q, qd, out=(M, C, record[..., 50:]))
        assert all(np.shares_memory(x, record) for x in (M, C, g))
        close(C, arm.coriolis_matrix(q, qd), norm(C) + norm(M), 1e-12)
        close(M, arm.mass_matrix(q), norm(M), 1e-13)


def test_calls_that_python_refuses(fast, arm):
    q = np.zeros(arm.nv)
    for call in (
        lambda: fast.gravity_vector(),
        lambda: fast.gravity_vector(q, q),
        lambda: fast.gravity_vector(out=q),
        lambda: fast.gravity_vector(q, out=q, more=1),
        lambda: fast.gravity_vector(q, into=q),
    ):
        with pytest.raises(TypeError):
            call()
    assert_array_equal(fast.gravity_vector(q=q, **{"".join(["o", "ut"]): np.empty(arm.nv)}), fast.gravity_vector(q))


class Sub(np.ndarray):
    """An array of another type."""


@pytest.mark.slow
def test_any_mixture_of_arguments_is_answered_or_refused(arm, fast):
    """Three thousand calls with random arguments: a correct result or an error, without memory errors."""
    rng = np.random.default_rng(8)
    n = arm.nv
    memory = rng.uniform(-1, 1, 400)

    def anything():
        kind = rng.integers(16)
        start = int(rng.integers(0, 300))
        one = memory[start : start + n]
        square = memory[start : start + n * n].reshape(n, n)
        frozen = one.copy()
        frozen.setflags(write=False)
        makers = (
            *(lambda: one, lambda: one, lambda: one, lambda: square, one.copy, lambda: one[::-1]),
            *(lambda: one.astype(np.float32), lambda: frozen, lambda: one.view(Sub)),
            *(lambda: memory[start : start + 2 * n : 2], lambda: list(one), lambda: np.float64(1)),
            *(lambda: np.zeros(()), lambda: None, lambda: unaligned(one), lambda: memory[: n + 1]),
        )
        return makers[kind]()

    answered = 0
    for _ in range(3000):
        name = list(ARGUMENTS)[rng.integers(len(ARGUMENTS))]
        arguments = [anything() for _ in range(ARGUMENTS[name])]
        out = anything()
        try:
            expected = getattr(arm, name)(*arguments)
        except ShapeError:
            expected = None
        copies = memory.copy()
        try:
            result = getattr(fast, name)(*arguments, out=out)
        except ShapeError:
            assert_array_equal(memory, copies)
            continue
        assert expected is not None or out is None
        answered += 1
        assert out is None or result is out
        close(result, expected, norm(expected) + 30 * n, 1e-13)
        memory[:] = copies
    assert answered > 150


def test_a_joint_that_carries_nothing_is_named():
    rng = np.random.default_rng(9)
    tree = random_tree(rng, 2)
    tree.attach(Link("ghost"), to="link2", joint=revolute(), name="ghost")
    fast = tree.compile().wait()
    for shape in ((3,), (20, 3)):
        with pytest.raises(SingularAttachmentError, match="ghost"):
            fast.forward_dynamics(*rng.normal(size=(3, *shape)))
        with pytest.raises(SingularAttachmentError, match="ghost"):
            fast.forward_dynamics(*rng.normal(size=(3, *shape)), out=np.empty(shape))
    q = rng.normal(size=3)
    close(fast.mass_matrix(q), tree.mass_matrix(q), 10, 1e-14)
    needle = KinematicTree()
    needle.attach(Inertia(1, (0, 0, 1), np.diag([1, 1, 0])), to="base", joint=revolute("z"), name="needle")
    with pytest.raises(SingularAttachmentError, match="needle"):
        needle.compile().wait().forward_dynamics([0], [0], [0])
    only = KinematicTree()
    only.attach(Link("a"), to="base", joint=prismatic(), name="a")
    with pytest.raises(SingularAttachmentError, match="'a'"):
        only.compile().wait().forward_dynamics([0], [0], [0])
