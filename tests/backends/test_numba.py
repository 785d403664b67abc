"""The compiled kernels: invalid input, many rows, and the cache folder."""

import itertools
import os
import pickle
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from numba.core.registry import cpu_target
from numpy.testing import assert_array_equal
from screwdyn.testing import random_tree

from screwdyn import Inertia, KinematicTree, Link, padded_sum, revolute
from screwdyn.backends.native import disk
from screwdyn.backends.native.entry import Computation
from screwdyn.backends.numba import jit, kernels
from screwdyn.physics import link_steps
from screwdyn.physics.quantities import CATALOGUE


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
            assert of_model.fill(entry, context, 1, state, outs) == kernels.WRONG_INPUT
        assert all((out == 7).all() for out in outs)


@pytest.mark.parametrize("value", [[0.0, 0, 0], [], None, np.zeros(3, dtype=np.float32), np.zeros((1, 3)), "abc"])
def test_what_is_not_one_state_in_a_plain_array_is_left_to_others(model, value):
    of_model = kernels.Kernels(model)
    assert of_model.gravity_vector(of_model.context, value) is None


def test_kernels_of_one_link_know_the_links_of_their_model(model):
    of_model, q = kernels.Kernels(model), np.zeros(3)
    assert of_model.jacobian(of_model.of_link["link1", "com"], q).shape == (6, 3)
    assert of_model.of_link["link1", "com"] is of_model.of_link["link1", "com"]
    for unknown in ("leg", None, 3):
        with pytest.raises(KeyError):
            of_model.of_link[unknown, "com"]
        with pytest.raises(KeyError):
            of_model.of_subtree[unknown, "body"]


@pytest.mark.parametrize("name", ["contribution", "subtree_contribution"])
def test_paths_of_contributions_are_followed_once(name, monkeypatch):
    """Of subtrees with all freedoms, and with some."""
    tree = random_tree(np.random.default_rng(3), 5)
    contribution, q, qd = getattr(tree, name), *np.random.default_rng(0).normal(size=(2, 5))
    expected = [contribution(link, q[None], qd[None]) for link in tree.links]
    assert len({part.coordinates for part in expected}) > 2
    for link in tree.links:
        contribution(link, q, qd)
    for forgotten in ("path", "subtree"):
        monkeypatch.setattr(type(tree.model), forgotten, None)
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


def test_long_chains_take_memory_in_proportion_to_their_length():
    """A horizontal chain of n rods of length l: the joint that carries k of them holds τ = m g l k² / 2."""
    mass, length, chain = 2.0, 0.1, KinematicTree(Link("rod", Inertia.rod(2.0, 0.1, com=(0.05, 0, 0))))
    for doubling in range(11):
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
    assert n == 2048
    assert peak < 3000 * n  # bytes; as much as all quantities need together would be 100 n²
    carried = np.arange(n, 0, -1)
    np.testing.assert_allclose(tau, -mass * 9.81 * length * carried**2 / 2, rtol=1e-12)
    residual = tree.inverse_dynamics(zero, zero, qdd) - tau
    assert np.abs(residual).max() < 1e-12 * np.abs(tau).max()


def third(context, arrays):
    return context[2]


def value(kernel):
    """What the kernel ``third`` returns for a context with 17 at place 2."""
    context = np.array([3, 5, 17])
    return Computation(kernel.address)(context.ctypes.data, context.ctypes.data)


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """The file of a kernel."""
    monkeypatch.setenv("SCREWDYN_CACHE", str(tmp_path))
    jit.compiled(third)
    (file,) = (file for file in tmp_path.rglob("*") if file.is_file())
    return file


def test_a_kernel_is_compiled_once_for_each_text_of_the_physics(kept, tmp_path, monkeypatch, capsys):
    kept.unlink()
    for printed in (f"screwdyn: compiling third for this machine (once; kept in {kept.parent})\n", ""):
        assert value(jit.compiled(third)) == 17
        assert capsys.readouterr().err == printed
    assert kept.exists()
    edited = tmp_path / "steps.py"
    edited.write_text(Path(link_steps.__file__).read_text() + "\n# edited\n")
    monkeypatch.setattr(link_steps, "__file__", str(edited))
    monkeypatch.setattr(jit, "_source", jit._source.__wrapped__)
    assert value(jit.compiled(third)) == 17
    assert "compiling third" in capsys.readouterr().err


@pytest.mark.parametrize("left", [0.0, 0.01, 0.5, 0.999, "list", "nothing", "folder"])
def test_a_damaged_kernel_is_compiled_anew(kept, left, capsys):
    """Cut, of another type with a digest that is right, or no file at all."""
    whole = kept.read_bytes()
    if left == "folder":
        kept.unlink()
        kept.mkdir()
    elif isinstance(left, str):
        disk.write(kept.name, pickle.dumps([1, 2]) if left == "list" else b"")
    else:
        kept.write_bytes(whole[: int(left * len(whole))])
    capsys.readouterr()
    for compilations in (1, int(left == "folder")):
        assert value(jit.compiled(third)) == 17
        assert capsys.readouterr().err.count("compiling third") == compilations


def test_no_bit_of_a_kernel_can_be_flipped_unnoticed(kept):
    whole, rng = kept.read_bytes(), np.random.default_rng(45)
    target, here = cpu_target.target_context, jit._OnDisk(third)
    for _ in range(45):
        place, bit = int(rng.integers(len(whole))), int(rng.integers(8))
        kept.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :])
        assert here.load_overload(None, target) is None
    kept.write_bytes(whole)
    assert here.load_overload(None, target) is not None


def test_kernels_need_no_disk(kept, monkeypatch, capsys):
    """It is full, or off; /dev/full is always full."""
    kept.unlink()
    with monkeypatch.context() as full:
        full.setattr(disk.tempfile, "mkstemp", lambda dir: (os.open("/dev/full", os.O_WRONLY), str(kept)))
        full.setattr(disk.os, "unlink", lambda path: None)
        assert value(jit.compiled(third)) == 17
    assert not kept.exists()
    capsys.readouterr()
    monkeypatch.setenv("SCREWDYN_CACHE", "off")
    assert value(jit.compiled(third)) == 17
    assert capsys.readouterr().err == "screwdyn: compiling third for this machine (not kept on disk)\n"


def test_a_function_that_calls_may_be_using_is_never_replaced():
    """As when a signal handler asks for a quantity while it is being loaded."""

    class Owner:
        mass_matrix = kernels._OnFirstUse("mass_matrix")

        @staticmethod
        def function(name):
            if name not in made:
                made.append(name)
                first.append(Owner.mass_matrix)
            return object()

    made, first = [], []
    assert Owner.mass_matrix is first[0]
    assert Owner().mass_matrix is Owner.mass_matrix is first[0]


FIRST_CALLS = """
import threading
import numba
import numpy as np
from screwdyn.robots import two_link
tree, q, ready, found = two_link(), np.array([0.1, 0.2]), threading.Barrier(4), []
def work():
    ready.wait()
    for _ in range(300):
        found.append((tree.mass_matrix(q).tobytes(), tree.gravity_vector(q).tobytes()))
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(found), len(set(found)), numba.config.CACHE_DIR == before)
"""


def test_threads_may_make_the_first_call_together():
    program = FIRST_CALLS.replace("import numpy", "before = numba.config.CACHE_DIR\nimport numpy", 1)
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert done.stdout.split() == ["1200", "1", "True"]
