"""The compiled kernels: invalid input, many rows, and the same bits as the recursions run as Python."""

import itertools
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kinds import EVERY
from numpy.testing import assert_array_equal

from screwdyn import (
    Inertia,
    KinematicTree,
    Link,
    Mimic,
    Plane,
    Shape,
    ShapeError,
    padded_sum,
    revolute,
    spherical,
)
from screwdyn.backends.kernels import _compiled, in_python
from screwdyn.backends.kernels import entry as kernels
from screwdyn.changes import law
from screwdyn.physics.quantities import ARGUMENTS, CATALOGUE, INTERNAL
from screwdyn.robots import two_link
from screwdyn.testing import random_inertia, random_tree


@pytest.fixture
def model():
    return random_tree(np.random.default_rng(0), 3).model


BAD = [np.zeros(2), np.zeros(4), np.array([0, np.nan, 0]), np.array([0, 0, np.inf])]


@pytest.mark.parametrize("name", [name for name in CATALOGUE if not CATALOGUE[name].places])
def test_what_does_not_fit_is_refused_before_anything_is_computed(model, name):
    entry, good, of_model = CATALOGUE[name], np.zeros(3), kernels.Kernels(model)
    call, context = getattr(of_model, name), of_model.context
    for wrong, bad in itertools.product(range(len(entry.arguments)), BAD):
        outs = tuple(np.full(shape, 7.0) for shape in model.shapes(entry))
        state = [bad if k == wrong else good for k in range(len(entry.arguments))]
        assert call(context, *state) is None
        assert call(context, *state, out=outs if len(outs) > 1 else outs[0]) is None
        if bad.size == 3:
            assert of_model.fill(entry, context, 1, state, outs) == in_python.WRONG_INPUT
        assert all((out == 7).all() for out in outs)


@pytest.mark.parametrize("value", [[0.0, 0, 0], [], None, np.zeros(3, dtype=np.float32), np.zeros((1, 3)), "abc"])
def test_what_is_not_one_state_in_a_plain_array_is_left_to_others(model, value):
    of_model = kernels.Kernels(model)
    assert of_model.gravity_vector(of_model.context, value) is None


def test_kernels_of_one_link_know_the_links_of_their_model(model):
    of_model, q, jacobian = kernels.Kernels(model), np.zeros(3), CATALOGUE["jacobian"]
    assert of_model.jacobian(of_model.found(jacobian, "link1", "com"), q).shape == (6, 3)
    assert of_model.found(jacobian, "link1", "com") is of_model.found(jacobian, "link1", "com")
    for unknown in ("leg", None, 3):
        with pytest.raises(KeyError):
            of_model.found(jacobian, unknown, "com")
        with pytest.raises(KeyError):
            of_model.found(CATALOGUE["subtree_contribution"], unknown)


@pytest.mark.parametrize("name", ["contribution", "subtree_contribution"])
def test_paths_of_contributions_are_followed_once(name, monkeypatch):
    """Of subtrees with all freedoms, and with some."""
    tree = random_tree(np.random.default_rng(3), 5)
    contribution, q, qd = getattr(tree, name), *np.random.default_rng(0).normal(size=(2, 5))
    expected = [contribution(link, q[None], qd[None]) for link in tree.links]
    assert len({part.coordinates for part in expected}) > 2
    for link in tree.links:
        contribution(link, q, qd)
    for owner, forgotten in ((tree.model, "path"), (tree.topology, "subtree")):
        monkeypatch.setattr(type(owner), forgotten, None)
    for whole in expected:
        found = contribution(whole.link, q, qd)
        assert (found.link, found.coordinates) == (whole.link, whole.coordinates)
        for a, b in zip(found.arrays, whole.arrays, strict=True):
            assert_array_equal(a, b[0])


@pytest.mark.parametrize("n", [1, 130])
def test_scratch_space_is_large_enough_for_any_number_of_rows(n):
    """For one state after another."""
    rng = np.random.default_rng(n)
    tree = random_tree(rng, n)
    q, qd, qdd = rng.normal(size=(3, 3, n))
    parts = tree.contributions(q[1], qd[1])
    M, C = tree.mass_and_coriolis(q, qd)
    for found, name in ((M[1], "M"), (C[1], "C")):
        expected = padded_sum(getattr(part, name) for part in parts).matrix(tree.coordinates)
        scale = np.abs(M[1]).max() * np.abs(qd[1]).sum()
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13 * scale)
    tau = tree.inverse_dynamics(q, qd, qdd)
    for i in range(3):
        assert_array_equal(tau[i], tree.inverse_dynamics(q[i], qd[i], qdd[i]))
    back = tree.forward_dynamics(q, qd, tau)
    kappa, terms = np.linalg.cond(M).max(), np.abs(tau).max() + np.abs(tree.bias_force(q, qd)).max()
    np.testing.assert_allclose(back, qdd, rtol=0, atol=4 * kappa * 2.3e-16 * terms / np.abs(M).max())


@pytest.mark.slow
def test_long_chains_take_memory_in_proportion_to_their_length():
    """A horizontal chain of n rods of length l: the joint that carries k of them holds τ = m g l k² / 2."""
    mass, length, chain = 2.0, 0.1, KinematicTree(Link("rod", Inertia.rod(2.0, 0.1, com=(0.05, 0, 0))))
    for doubling in range(10):
        chain.attach(chain, to=chain.links[-1], joint=revolute("y"), at=(length, 0, 0), prefix=f"{doubling}/")
    tree = KinematicTree("base")
    tree.attach(chain, to="base", joint=revolute("y"))
    zero, n = np.zeros(tree.nv), tree.nv

    def compute(tree, zero):
        tau = tree.inverse_dynamics(zero, zero, zero)
        tree.contribution(tree.links[2], zero, zero)
        return tau, tree.forward_dynamics(zero, zero, tau)

    compute(random_tree(np.random.default_rng(0), 3), np.zeros(3))
    _ = tree.model
    tracemalloc.start()
    tau, qdd = compute(tree, zero)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert n == 1024
    assert peak < 3000 * n  # bytes; as much as all quantities need together would be 100 n²
    carried = np.arange(n, 0, -1)
    np.testing.assert_allclose(tau, -mass * 9.81 * length * carried**2 / 2, rtol=1e-12)
    residual = tree.inverse_dynamics(zero, zero, qdd) - tau
    assert np.abs(residual).max() < 1e-12 * np.abs(tau).max()


@pytest.mark.slow
@pytest.mark.parametrize("states", [1, 400])
def test_threads_do_not_share_scratch_space(states):
    """Also of joints of several freedoms, whose poses are recentred in a copy of the table."""
    tree, rng = random_tree(np.random.default_rng(0), 40, EVERY), np.random.default_rng(1)
    q = [tree.integrate(np.tile(tree.neutral(), (states, 1)), rng.normal(size=(states, tree.nv))) for _ in range(2)]
    given = [(q[k], *rng.normal(size=(2, states, tree.nv))) for k in range(2)]
    expected, ready = [tree.inverse_dynamics(*state).tobytes() for state in given], threading.Barrier(2)

    def agrees(k):
        ready.wait()
        return all(tree.inverse_dynamics(*given[k]).tobytes() == expected[k] for _ in range(4000 // states))

    with ThreadPoolExecutor(2) as pool:
        assert all(pool.map(agrees, range(2)))


@pytest.mark.parametrize("name", ["dynamics", "forward_kinematics"])
def test_threads_that_share_a_batch_give_the_bits_of_one(name, monkeypatch):
    tree, rng = random_tree(np.random.default_rng(2), 7, EVERY), np.random.default_rng(1)
    q = tree.integrate(np.tile(tree.neutral(), (101, 1)), rng.normal(size=(101, tree.nv)))
    state = (q, rng.normal(size=(101, tree.nv))) if name == "dynamics" else (tree.links[-1], q)
    whole, counted = getattr(tree, name)(*state), []
    compute = kernels.machine.batch

    def counting(name, context, states, arrays):
        counted.append(states)
        return compute(name, context, states, arrays)

    monkeypatch.setattr(kernels, "machine", SimpleNamespace(batch=counting))
    monkeypatch.setattr(kernels, "_LARGE", 1)
    monkeypatch.setattr(kernels.os, "sched_getaffinity", lambda _: range(3), raising=False)
    for a, b in zip(*(x if isinstance(x, tuple) else (x,) for x in (getattr(tree, name)(*state), whole)), strict=True):
        assert_array_equal(a, b)
    assert sorted(counted) == [33, 34, 34]
    q[70, :] = np.nan
    with pytest.raises(ShapeError, match="nan"):
        getattr(tree, name)(*state)


def test_large_batches_need_no_further_thread(monkeypatch):
    """None can be started at the end of a process, or where their number is limited."""

    def refused(self):
        raise RuntimeError("can't start new thread")

    tree, q = two_link(), np.ones((101, 2))
    whole = tree.mass_matrix(q)
    monkeypatch.setattr(kernels, "_LARGE", 1)
    monkeypatch.setattr(kernels.os, "sched_getaffinity", lambda _: range(3), raising=False)
    monkeypatch.setattr(threading.Thread, "start", refused)
    assert_array_equal(tree.mass_matrix(q), whole)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_c_has_the_bits_that_the_recursions_have_as_python(seed):
    """Every kernel of random trees with all joints, followers, rotors and loops."""
    check_bits(seed)


@pytest.mark.soak
@given(st.integers(0, 2**32 - 1))
def test_c_has_the_bits_of_python_for_many_trees(seed):
    check_bits(seed)


def check_bits(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, int(rng.integers(1, 9)), EVERY)
    if seed % 2:
        tree.attach(random_inertia(rng), to=tree.links[-1], joint=revolute("z", name="lead"), name="leader")
        tree.attach(
            random_inertia(rng), to="leader", joint=revolute("x", mimic=Mimic("lead", 1.5, 0.1)), name="follower"
        )
    if seed % 3 == 0 and len(tree.links) > 3:
        tree.close(tree.links[-1], to=tree.links[1], joint=spherical(), name="loop")
    for on in (Plane((1, 2, 3)), Shape.box((0.1, 0.2, 0.3)), Shape.capsule(0.1, 0.2), Shape.sphere(0.1)):
        if len(tree.links) > 1:
            tree.touch(tree.links[-1], tree.links[0], on=on, points=rng.normal(size=(2, 3)), radius=0.1, name=repr(on))
    of_model, q = kernels.Kernels(tree.model), tree.integrate(tree.neutral(), rng.normal(size=(3, tree.nv)))
    state = {"q": q} | {name: rng.normal(size=(3, tree.nv)) for name in ARGUMENTS[1:]}
    state |= {"slip": rng.normal(size=(3, 1, 18)), "opening": rng.normal(size=(3, len(tree.model.constraints)))}
    parts = law._parts(tree.model, tree.links[int(rng.integers(1, len(tree.links)))])
    for entry in (*CATALOGUE.values(), *INTERNAL.values()):
        if not {*entry.arguments} <= {*state}:  # the step of one link: see test_recursions
            continue
        name = of_model.kernel_of(entry)
        context = of_model.found(
            entry, *((tree.links[-1], "body") if entry.places in ("one", "subtree", "bodies") else ())
        )
        if "slip" in entry.arguments:
            context = of_model.with_places(parts)
        shapes = tree.model.shapes(entry, tree.links[-1])
        results = [[np.full((3, *shape), 7.0) for shape in shapes] for _ in range(2)]
        statuses = [
            machine.batch(name, context, 3, (*(state[x] for x in entry.arguments), *out))
            for machine, out in zip((_compiled, in_python), results, strict=True)
        ]
        assert statuses[0] == statuses[1], name
        if statuses[0] == 0:
            for a, b in zip(*results, strict=True):
                assert_array_equal(a.view(np.int64), b.view(np.int64), err_msg=name)
