"""The compiled kernels: what they refuse, many rows, and the folder that keeps them."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from screwdyn.testing import random_tree

from screwdyn import padded_sum
from screwdyn.backends.numba import kernels as looped
from screwdyn.physics import link_steps as steps


@pytest.fixture
def table():
    return random_tree(np.random.default_rng(0), 3).model.table


@pytest.mark.parametrize("bad", [np.zeros(2), np.zeros(4), np.array([0, np.nan, 0]), np.array([0, 0, np.inf])])
def test_what_does_not_fit_is_refused_before_anything_is_computed(table, bad):
    good = np.zeros(3)
    out, square = np.full(3, 7.0), np.full((3, 3), 7.0)
    six = np.full((3, 6), 7.0)
    calls = [
        *(
            looped.inverse_dynamics(table, *state, out)
            for state in ((bad, good, good), (good, bad, good), (good, good, bad))
        ),
        *(
            looped.forward_dynamics(table, *state, out)
            for state in ((bad, good, good), (good, bad, good), (good, good, bad))
        ),
        looped.gravity_vector(table, bad, out),
        looped.mass_matrix(table, bad, square),
        looped.coriolis_matrix(table, bad, good, square, square),
        looped.coriolis_matrix(table, good, bad, square, square),
        looped.motion(table, bad, good, np.full((3, 12), 7.0), six),
        looped.jacobian(table, good, bad, 0, six, six),
        looped.wrench_torque(table, bad, six, out),
    ]
    assert calls == [looped.WRONG_INPUT] * len(calls)
    assert (out == 7).all() and (square == 7).all() and (six == 7).all()


@pytest.mark.parametrize("value", [[0.0, 0, 0], [], None, np.zeros(3, dtype=np.float32), np.zeros((1, 3)), "abc"])
def test_types_that_a_kernel_is_not_made_for_raise_one_of_the_refusals(table, value):
    with pytest.raises(looped.REFUSALS):
        looped.gravity_vector(table, value, np.zeros(3))


@pytest.mark.parametrize("n", [looped.SMALL - 1, looped.SMALL, looped.SMALL + 1, 130])
def test_scratch_space_is_large_enough_for_any_number_of_rows(n):
    """On the stack or not, and for one state after another."""
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
    kappa = np.linalg.cond(M).max()
    np.testing.assert_allclose(back, qdd, rtol=0, atol=kappa * 2.3e-16 * np.abs(tau).max() / np.abs(M).max())


def test_kernels_are_kept_in_a_folder_named_after_the_text_of_the_physics(tmp_path, monkeypatch):
    monkeypatch.setattr(looped.config, "CACHE_DIR", str(tmp_path))
    folder = Path(looped._cache_folder.__wrapped__())
    assert folder.is_dir()
    assert folder.parent == tmp_path / "screwdyn"
    assert Path(looped._cache_folder.__wrapped__()) == folder
    edited = tmp_path / "steps.py"
    edited.write_text(Path(steps.__file__).read_text() + "\n# edited\n")
    monkeypatch.setattr(steps, "__file__", str(edited))
    assert Path(looped._cache_folder.__wrapped__()) != folder
