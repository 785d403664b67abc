"""Compiled trees: the values of the tree in every layout, and an error for any invalid input."""

import copy
import gc
import inspect
import pickle
import subprocess
import sys

import numpy as np
import pytest
from cases import EPS, Case, christoffel, close, derivative, norm, total, unaligned
from hypothesis import given
from hypothesis import strategies as st
from kinds import SINGLE
from numpy.testing import assert_array_equal

from screwdyn import Inertia, KinematicTree, ShapeError, UnknownNameError, revolute
from screwdyn.backends.llvm import program as native
from screwdyn.forms.compiled import AT_ONCE, Compiled
from screwdyn.physics.quantities import CATALOGUE
from screwdyn.robots import puma560, ur5
from screwdyn.testing import random_inertia, random_tree

ARGUMENTS = {name: len(CATALOGUE[name].arguments) for name in AT_ONCE if name != "dynamics"}
SIZES = (0, 1, 3, 7, 8, 9, 64, 65, 1000)


def asked(fast, name, *arguments, **keywords):
    """A compiled function called as machine code and through Python."""
    answer = getattr(fast, name)(*arguments, **keywords)
    again = getattr(Compiled, name)(fast, *arguments, **keywords)
    assert_array_equal(answer, again)
    return answer


@st.composite
def few(draw):
    """Random trees of each kind of joint; each is compiled, so there are few."""
    kinds = draw(st.sampled_from([*((kind,) for kind in SINGLE), SINGLE]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    tree = random_tree(rng, draw(st.integers(1, 5)), kinds)
    q, qd, qdd = rng.uniform(-2, 2, (3, 17, tree.nq))
    return Case(tree, q, qd, qdd, rng)


@pytest.mark.slow
@given(few())
def test_the_numbers_are_the_tree_s_and_obey_the_equation_of_motion(case):
    """One test for both, since every tree is compiled."""
    fast = case.tree.compile().wait()
    the_numbers_are_the_tree_s(case, fast)
    it_obeys_the_equation_of_motion(case, fast)


def the_numbers_are_the_tree_s(case, fast):
    tree, arguments = case.tree, (case.q, case.qd, case.qdd)
    M = tree.mass_matrix(case.q)
    scale = norm(M) * (total(case.qdd[0]) + 4 * tree.nq**2) + 9.81 * tree.mass
    for name, count in ARGUMENTS.items():
        expected = getattr(tree, name)(*arguments[:count])
        size = norm(expected) if name == "mass_matrix" else scale
        if name == "forward_dynamics":
            size = norm(expected) * np.linalg.cond(M).max()
        close(getattr(fast, name)(*arguments[:count]), expected, size, 1e-14)
    for each, one in zip(
        fast.dynamics(case.q, case.qd), ("mass_matrix", "coriolis_matrix", "gravity_vector"), strict=True
    ):
        close(each, getattr(tree, one)(*arguments[: ARGUMENTS[one]]), scale, 1e-14)


def it_obeys_the_equation_of_motion(case, fast):
    q, qd, qdd = case.q[0], case.qd[0], case.qdd[0]
    M, C, g = fast.dynamics(q, qd)
    scale = norm(M) * (total(qdd) + total(qd) ** 2) + 9.81 * case.tree.mass
    close(M, M.T, 1, 0)
    close(fast.inverse_dynamics(q, qd, qdd), M @ qdd + C @ qd + g, scale, 1e-13)
    close(fast.bias_force(q, qd), C @ qd + g, scale, 1e-13)
    close(C, christoffel(fast.mass_matrix, q, qd), norm(M) * total(qd), 1e-11)
    close(C + C.T, derivative(fast.mass_matrix, q, qd), norm(M) * total(qd), 1e-11)
    tau = fast.inverse_dynamics(q, qd, qdd)
    weight = 9.81 * case.tree.mass / np.linalg.norm(M, 2)
    terms = np.linalg.norm(qdd) + np.linalg.norm(qd) ** 2 + weight
    bound = 4 * np.linalg.cond(M) * EPS * terms
    assert np.linalg.norm(fast.forward_dynamics(q, qd, tau) - qdd) <= bound


LAYOUTS = {
    "rows": np.copy,
    "beside": lambda a: np.ascontiguousarray(np.moveaxis(a, 0, -1)).transpose(a.ndim - 1, *range(a.ndim - 1)),
    "reversed": lambda a: a[::-1].copy()[::-1],
    "every other": lambda a: np.repeat(a, 2, axis=0)[::2],
    "inner gaps": lambda a: np.repeat(a, 3, axis=-1)[..., ::3],
    "columns first": lambda a: np.asfortranarray(a),
    "unaligned": unaligned,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ARGUMENTS)
@pytest.mark.parametrize("size", SIZES)
def test_every_layout_and_size_gives_the_bits_of_single_states(arm, fast, name, size):
    rng = np.random.default_rng(size)
    count = ARGUMENTS[name]
    arguments = rng.uniform(-2, 2, (3, size, arm.nv))[:count]
    single = [asked(fast, name, *(a[i] for a in arguments)) for i in range(size)]
    shape = (size, *getattr(arm, name)(*np.zeros((count, arm.nv))).shape)
    expected = np.reshape(single, shape)
    for into, lay in LAYOUTS.items():
        given = [lay(a) for a in arguments]
        assert_array_equal(getattr(fast, name)(*given), expected, into)
        # NaN around the result must remain: nothing else is written.
        wide = lay(np.full((size + 2, *shape[1:]), np.nan))
        out = wide[1:-1]
        assert getattr(fast, name)(*given, out=out) is out
        assert_array_equal(out, expected, into)
        memory = wide if wide.base is None or wide.base.dtype != float else wide.base
        assert np.count_nonzero(~np.isnan(memory)) == out.size, into


def test_leading_axes_broadcast(arm, fast):
    rng = np.random.default_rng(0)
    q, qd, qdd = rng.normal(size=(4, 1, arm.nv)), rng.normal(size=(3, arm.nv)), rng.normal(size=arm.nv)
    tau = fast.inverse_dynamics(q, qd, qdd)
    assert tau.shape == (4, 3, arm.nv)
    assert_array_equal(tau[2, 1], fast.inverse_dynamics(q[2, 0], qd[1], qdd))
    out = np.empty((3, 4, arm.nv)).transpose(1, 0, 2)
    assert fast.inverse_dynamics(q, qd, qdd, out=out) is out
    assert_array_equal(out, tau)
    assert fast.mass_matrix(np.zeros((2, 0, arm.nv))).shape == (2, 0, arm.nv, arm.nv)


def test_results_lie_as_the_arguments_do(arm, fast):
    q = np.random.default_rng(0).normal(size=(arm.nv, 100))
    assert fast.gravity_vector(q.T).T.flags.c_contiguous
    assert np.moveaxis(fast.mass_matrix(q.T), 0, -1).flags.c_contiguous
    assert fast.gravity_vector(q.T.copy()).flags.c_contiguous


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_threads_change_no_bit(arm, fast, threads):
    arguments = np.random.default_rng(1).uniform(-2, 2, (3, 30_011, arm.nv))
    shared = arm.compile(threads).wait()
    for name, count in ARGUMENTS.items():
        assert_array_equal(getattr(shared, name)(*arguments[:count]), getattr(fast, name)(*arguments[:count]))


def test_angles_beyond_the_reduction_keep_their_lane_only(arm, fast):
    q = np.random.default_rng(2).uniform(-2, 2, (40, arm.nv))
    expected = fast.gravity_vector(q)
    q[5, :2] = 1e12, -1e50
    found = fast.gravity_vector(q)
    # The constant of a joint's zero is added to 1e12, with the rounding of a number of this size.
    close(found[5], arm.gravity_vector(q[5]), 9.81 * arm.mass * 1e50, 1e-14 + np.spacing(1e12) / 2)
    assert_array_equal(np.delete(found, 5, axis=0), np.delete(expected, 5, axis=0))


@pytest.mark.parametrize("name", ARGUMENTS)
def test_out_may_share_memory_with_the_arguments(arm, fast, name):
    rng = np.random.default_rng(4)
    for shape in ((arm.nv,), (33, arm.nv)):
        arguments = rng.uniform(-2, 2, (3, *shape))[: ARGUMENTS[name]]
        expected = getattr(fast, name)(*arguments)
        memory = np.zeros(expected.size + arguments[0].size)
        for shift in (0, 3, expected.size):
            last = memory[shift : shift + arguments[-1].size].reshape(shape)
            last[...] = arguments[-1]
            out = memory[: expected.size].reshape(expected.shape)
            assert getattr(fast, name)(*arguments[:-1], last, out=out) is out
            assert_array_equal(out, expected)


def test_outs_of_dynamics(arm, fast):
    n = arm.nv
    q, qd = np.random.default_rng(5).normal(size=(2, n))
    expected = fast.dynamics(q, qd)
    out = np.empty((n, n)), np.empty((n, n)), np.empty(n)
    assert fast.dynamics(q, qd, out=out) is out
    for a, b in zip(out, expected, strict=True):
        assert_array_equal(a, b)
    for wrong in (list(out), out[:2], (*out, q), out[0], None, (out[0], out[1], None), (out[1], out[2], out[0])):
        if wrong is not None:
            with pytest.raises(ShapeError, match="out"):
                fast.dynamics(q, qd, out=wrong)
    many = np.random.default_rng(5).normal(size=(2, 21, n))
    for a, one in zip(fast.dynamics(*many), ("mass_matrix", "coriolis_matrix", "gravity_vector"), strict=True):
        assert a.shape == getattr(arm, one)(*many[: ARGUMENTS[one]]).shape


# What it is a function of ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_it_answers_while_it_compiles():
    tree = random_tree(np.random.default_rng(10), 6)
    q = np.random.default_rng(10).normal(size=(50, 6))
    fast = tree.compile()
    first = fast.mass_matrix(q)
    close(first, fast.wait().mass_matrix(q), norm(first), 1e-14)
    assert fast.ready
    close(first, tree.mass_matrix(q), norm(first), 1e-14)


@pytest.mark.slow
def test_another_payload_needs_no_other_code():
    tree = puma560()
    rng = np.random.default_rng(11)
    q = rng.normal(size=6)
    handle = tree.attach(random_inertia(rng), to=tree.links[-1], name="payload")
    tree.compile().wait()
    for _ in range(5):
        tree.detach(handle)
        handle = tree.attach(random_inertia(rng), to=tree.links[-1], name="payload")
        fast = tree.compile()
        assert fast.ready
        close(fast.mass_matrix(q), tree.mass_matrix(q), 10, 1e-14)


@pytest.mark.slow
def test_a_row_whose_zeros_change_stays_open():
    rng = np.random.default_rng(12)
    tree = ur5()
    inner = tree.links[3]
    tree.compile().wait()
    for _ in range(3):
        handle = tree.attach(random_inertia(rng), to=inner)
        fast = tree.compile().wait()
        q = rng.normal(size=6)
        close(fast.gravity_vector(q), tree.gravity_vector(q), 1000, 1e-15)
        tree.detach(handle)
        assert tree.compile().ready


def test_it_says_what_is_compiled(monkeypatch):
    monkeypatch.setattr(native, "LARGEST", 300)
    tree = puma560()
    tree.gravity = (0.5, 0.25, -9)
    fast = tree.compile()
    assert repr(fast).startswith("<Compiled 6 coordinates, ")
    fast.wait()
    assert "mass_matrix" in fast.compiled and "coriolis_matrix" not in fast.compiled
    assert repr(fast) == f"<Compiled 6 coordinates, ready: {', '.join(fast.compiled)}>"
    assert KinematicTree().compile().compiled == ()


def test_compiled_functions_can_be_asked_what_they_take(fast):
    assert isinstance(fast.inverse_dynamics, type(len))
    assert str(inspect.signature(fast.inverse_dynamics)) == "(q, qd, qdd, wrenches=None, *, out=None)"
    assert fast.inverse_dynamics.__doc__ == Compiled.inverse_dynamics.__doc__


def test_it_is_a_snapshot():
    rng = np.random.default_rng(13)
    tree = random_tree(rng, 3)
    fast = tree.compile()
    q, qd = rng.normal(size=(2, 3))
    fast.forward_kinematics("link3", q)  # from now on it is compiled
    M, pose = fast.wait().mass_matrix(q), fast.forward_kinematics("link3", q)
    tree.attach(Inertia.sphere(1, 0.1), to="link3", joint=revolute(), name="crate")
    assert_array_equal(fast.mass_matrix(q), M)
    assert_array_equal(fast.forward_kinematics("link3", q), pose)
    assert fast.kinetic_energy(q, qd) == pytest.approx(0.5 * qd @ M @ qd, rel=1e-12)
    with pytest.raises(UnknownNameError, match="has no link 'crate'; use a new one"):
        fast.forward_kinematics("crate", q)
    with pytest.raises(UnknownNameError, match="did you mean 'link3'"):
        fast.forward_kinematics("lnk3", q)


def test_wrenches_act(arm, fast):
    rng = np.random.default_rng(14)
    link = arm.links[-1]
    for shape in ((arm.nv,), (10, arm.nv)):
        state, wrench = rng.normal(size=(3, *shape)), {link: rng.normal(size=6)}
        for name in ("inverse_dynamics", "forward_dynamics"):
            expected = getattr(arm, name)(*state, wrench)
            close(getattr(fast, name)(*state, wrench), expected, 100 * norm(expected), 1e-13)
            out = np.empty(shape)
            assert getattr(fast, name)(*state, wrenches=wrench, out=out) is out
            close(out, expected, 100 * norm(expected), 1e-13)
            with pytest.raises(ShapeError, match="wrenches must map names of links"):
                getattr(fast, name)(*state, wrenches=np.zeros((2, 6)))


def test_a_tree_without_coordinates(tmp_path):
    tree = KinematicTree()
    tree.attach(Inertia.point(1), to="base")
    fast = tree.compile().wait()
    assert fast.ready
    assert fast.mass_matrix([]).shape == (0, 0)
    assert fast.inverse_dynamics(np.zeros((7, 0)), [], []).shape == (7, 0)
    assert [a.shape for a in fast.dynamics([], [])] == [(0, 0), (0, 0), (0,)]


def test_copies_take_the_same_code(arm, fast):
    q = np.random.default_rng(15).normal(size=arm.nv)
    for twin in (copy.deepcopy(fast), pickle.loads(pickle.dumps(fast))):
        assert twin.ready
        assert_array_equal(twin.mass_matrix(q), fast.mass_matrix(q))


@pytest.mark.slow
def test_a_process_exits_without_waiting_for_the_compiler():
    program = """
import numpy as np
from screwdyn.backends.llvm import program as native
from screwdyn.testing import random_tree
native.Program.compile = lambda self, name: print("late") if name == "batch" else None
random_tree(np.random.default_rng(0), 20).compile()
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.count("late") <= 1
    assert "Error" not in run.stderr


def test_calls_leave_no_reference_behind(arm, fast):
    q, tau, many = np.zeros(arm.nv), np.zeros(arm.nv), np.zeros((3, arm.nv))
    bad, short = np.full(arm.nv, np.nan), np.zeros(2)
    new = np.zeros(1)
    once = sys.getrefcount(new)
    before = [sys.getrefcount(q), sys.getrefcount(tau), sys.getrefcount(many), sys.getrefcount(bad)]
    for _ in range(100):
        assert fast.gravity_vector(q, out=tau) is tau
        new = fast.gravity_vector(q)
        assert sys.getrefcount(new) == once
        fast.gravity_vector(many)
        for wrong in (bad, short):
            for keywords in ({}, {"out": tau}):
                with pytest.raises(ShapeError):
                    fast.gravity_vector(wrong, **keywords)
        new = fast.dynamics(q, q)[0]
        assert sys.getrefcount(new) == once
    del keywords, wrong
    gc.collect()
    assert [sys.getrefcount(q), sys.getrefcount(tau), sys.getrefcount(many), sys.getrefcount(bad)] == before


def test_functions_outlive_what_they_were_taken_from(arm):
    g = arm.compile().wait().gravity_vector
    q = np.zeros(arm.nv)
    gc.collect()
    close(g(q, out=np.empty(arm.nv)), arm.gravity_vector(q), 100, 1e-15)
    assert g.__doc__
    assert g.__name__ == "gravity_vector"
