"""The entry of kernels and of compiled code: the same answers where it is Python, and arguments of any kind."""

import inspect
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from screwdyn import ShapeError
from screwdyn.backends.kernels import entry, in_python
from screwdyn.backends.llvm import program as native
from screwdyn.forms.compiled import AT_ONCE, Compiled
from screwdyn.forms.numbers import Numbers
from screwdyn.physics.quantities import CATALOGUE
from screwdyn.robots import two_link


@pytest.fixture
def unknown(monkeypatch):
    """A compiled arm in an installation without a C compiler."""
    monkeypatch.setattr(entry.machine, "builtin_at", in_python.builtin_at)
    monkeypatch.setattr(native, "_programs", native.Kept(native._programs._make, 10**9))
    return two_link().compile(threads=1).wait()


def test_in_python_all_answers_are_the_same(unknown):
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


def slow_kernels(monkeypatch):
    """Kernels of trees as in an installation without a C compiler."""
    entry._methods("", False, True)  # methods in C, which are left, know no kernels in Python
    monkeypatch.setattr(entry, "machine", in_python)
    monkeypatch.setattr(entry, "_functions", entry._functions.__wrapped__)
    assert not isinstance(entry.Kernels(two_link().model).dynamics, type(len))


def test_in_python_one_state_is_passed_on_directly(unknown, monkeypatch):
    """Not by the general functions, which check and convert arguments of all kinds and take ten times as long."""
    tree, q, qd = two_link(), np.array([0.25, -0.5]), np.array([1.0, 2.0])
    expected = tree.gravity_vector(q), tree.dynamics(q, qd), tree.jacobian(tree.links[-1], q)
    slow_kernels(monkeypatch)
    tree = two_link()

    def refuse(*_, **__):
        raise AssertionError

    monkeypatch.setattr(Numbers, "_evaluate", refuse)
    monkeypatch.setattr(Compiled, "_answer", refuse)
    assert_array_equal(tree.gravity_vector(q), expected[0])
    for found, wanted in zip(tree.dynamics(q, qd), expected[1], strict=True):
        assert_array_equal(found, wanted)
    assert_array_equal(tree.jacobian(tree.links[-1], q), expected[2])
    tau = unknown.gravity_vector(q)
    assert_allclose(tau, expected[0], rtol=1e-14)
    assert_allclose(unknown.mass_matrix(q), expected[1][0], rtol=1e-14)
    assert_allclose(pickle.loads(pickle.dumps(unknown.gravity_vector))(q), tau, rtol=1e-14)


def test_in_python_what_overlaps_or_is_read_only_is_computed_aside(unknown):
    q, qd, qdd = np.array([[0.25, -0.5], [1.0, 2.0], [3.0, -4.0]])
    expected = unknown.inverse_dynamics(q, qd, qdd)
    given = qdd.copy()
    assert unknown.inverse_dynamics(q, qd, given, out=given) is given
    assert_array_equal(given, expected)
    for array in (q, qd, qdd, frozen := np.zeros(2)):
        array.setflags(write=False)
    assert_array_equal(unknown.inverse_dynamics(q, qd, qdd), expected)
    with pytest.raises(ShapeError, match="read-only"):
        unknown.inverse_dynamics(q, qd, qdd, out=frozen)


def test_batches_and_lists_are_bound_without_inspect(monkeypatch):
    tree = two_link()
    tree.mass_matrix([0, 0]), tree.jacobian(tree.links[-1], [0, 0])
    monkeypatch.setattr(inspect.Signature, "bind", None)
    M, at_tip = tree.mass_matrix(np.zeros((3, 2))), tree.jacobian(link=tree.links[-1], q=[0, 0], frame="com")
    assert (M.shape, at_tip.shape) == ((3, 2, 2), (6, 2))


@pytest.mark.parametrize("known", [True, False])
def test_kernels_take_arrays_of_any_kind(monkeypatch, known):
    """Unaligned, of the other byte order, a list, a row of a matrix; with the entry and without."""
    if not known:
        slow_kernels(monkeypatch)
    tree, q = two_link(), np.array([0.25, -0.5])
    unaligned = np.zeros(q.nbytes + 1, np.uint8)[1:].view(float)
    unaligned[:] = q
    expected = two_link().compile().wait().gravity_vector(q)
    for state in (q, unaligned, q.astype(">f8"), [0.25, -0.5], np.stack([q, q]).astype(">f8")[1], q.astype("f4")):
        found = tree.gravity_vector(state)
        assert_allclose(found, expected, rtol=1e-15)
        assert_array_equal(found, tree.gravity_vector(q))


def test_lists_of_numbers_are_converted_and_passed_on_directly(monkeypatch):
    tree, q = two_link(), [0.25, -1]
    expected = tree.gravity_vector(np.array(q)), tree.jacobian(tree.links[-1], np.array(q), "mixed")
    monkeypatch.setattr(tree, "_evaluate", None, raising=False)
    assert_array_equal(tree.gravity_vector(q), expected[0])
    assert_array_equal(tree.jacobian(tree.links[-1], q, "mixed"), expected[1])


def test_arguments_by_name_and_frames_need_no_python():
    """After the first call, also of contributions and of compiled code of a link; what does not fit is an error."""
    if entry.machine is in_python:
        pytest.skip("methods are Python without compiled kernels")
    tree, q, qd = two_link(), np.array([0.25, -0.5]), np.array([1.0, 2.0])
    fast, link = tree.compile(threads=1), tree.links[-1]
    out, mass, none = np.empty((6, 2)), np.empty((2, 2)), {"wrenches": None}

    def answers(form):
        found = [form.jacobian(link, q, frame) for frame in ("com", "body", "base", "mixed", "world")]
        found += [form.jacobian(q=q, link=link), form.jacobian(link, frame="base", q=q)]
        found += [form.contribution(link, qd=qd, q=q).J_dot, np.asarray(form.subtree_contribution(link, q=q, qd=qd).C)]
        return found

    expected = [*answers(tree), tree.mass_matrix(q=q), tree.inverse_dynamics(q, qd, qdd=qd, **none)]
    for _ in range(2):
        fast.wait().mass_matrix(q)
        answers(fast)
    fast.wait()
    compiled = answers(fast)
    for x, y in zip(compiled, expected, strict=False):
        assert_allclose(x, y, rtol=0, atol=1e-14)
    files = set()
    sys.setprofile(lambda frame, event, _: files.add(frame.f_code.co_filename) if event == "call" else None)
    try:
        found, again = answers(tree), answers(fast)
        found += [tree.mass_matrix(q=q), tree.inverse_dynamics(q, qd, qdd=qd, **none)]
        assert fast.jacobian(link, q, out=out, frame="base") is out
        assert fast.mass_matrix(out=mass, q=q) is mass
    finally:
        sys.setprofile(None)
    assert not {Path(file).stem for file in files} & {"numbers", "compiled", "entry", "quantities"}
    for x, y in zip([*found, *again, out], [*expected, *compiled, compiled[2]], strict=True):
        assert_array_equal(x, y)
    for form in (tree, fast):
        for args, named in (
            ((link, q, "com", out), {}),
            ((link, q), {"link": link}),
            ((link,), {"frame": "com"}),
            ((link, q), {"framed": "com"}),
        ):
            with pytest.raises(TypeError):
                form.jacobian(*args, **named)
    assert_allclose(mass, expected[-2], rtol=0, atol=1e-14)
    for wrong in ({"q": q, "qd": qd}, {"out": mass}, {"framed": q}):
        with pytest.raises(TypeError):
            fast.mass_matrix(**wrong)
    with pytest.raises(TypeError):
        tree.jacobian(link, q, out=out)
    with pytest.raises(ShapeError):
        tree.jacobian(link, q, "middle")
