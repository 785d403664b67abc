"""The walks run as plain Python, on arrays and on lists of Python floats, and give what they give compiled."""

import numpy as np
import pytest
from cases import cases, close, norm, total
from hypothesis import given
from screwdyn.testing import random_tree

from screwdyn.backends.numba import kernels as looped
from screwdyn.physics import recursions as sweeps
from screwdyn.physics.table import WORK

# Compiled, a product and a sum may be rounded once instead of twice.
ROUNDING = 1e-13


def plain(a):
    """The same numbers as Python floats."""
    return np.array(np.asarray(a).tolist(), dtype=object).reshape(np.shape(a))


def empty(*shape):
    return np.full(shape, np.nan)


@pytest.mark.parametrize("numbers", [np.asarray, plain], ids=["float64", "python floats"])
@given(case=cases(most=6))
def test_plain_python_is_what_is_compiled(numbers, case):
    model, n = case.tree.model, case.tree.nv
    tau, F = case.rng.normal(size=n), case.rng.normal(size=(n, 6))
    table, (q, qd, qdd), work = numbers(model.table), map(numbers, (case.q, case.qd, case.qdd)), numbers(empty(n, WORK))
    compiled = model.table, case.q, case.qd
    M, C, M2 = (empty(n, n) for _ in range(3))
    assert looped.mass_matrix(model.table, case.q, M) == looped.coriolis_matrix(*compiled, M2, C) == 0
    mine, also, third = (numbers(empty(n, n)) for _ in range(3))
    sweeps.mass_matrix(table, q, 0, work, mine)
    sweeps.coriolis_matrix(table, q, qd, 0, work, also, third)
    forces = norm(M) * (total(case.qdd) + total(case.qd) ** 2) + 10 * case.tree.mass

    def same(found, expected, scale):
        close(np.asarray(found, dtype=float), expected, scale + 1e-300, ROUNDING)

    same(mine, M, norm(M))
    same(also, M2, norm(M))
    same(third, C, norm(M) * total(case.qd))
    expected, found = empty(n), numbers(empty(n))
    looped.inverse_dynamics(*compiled, case.qdd, expected)
    sweeps.inverse_dynamics(table, q, qd, qdd, 0, work, found)
    same(found, expected, forces)
    looped.gravity_vector(model.table, case.q, expected)
    sweeps.gravity_vector(table, q, 0, work, found)
    same(found, expected, forces)
    looped.wrench_torque(model.table, case.q, F, expected)
    sweeps.wrench_torque(table, q, numbers(F), 0, work, found)
    same(found, expected, 10 * total(F))
    looped.forward_dynamics(*compiled, tau, expected)
    assert sweeps.forward_dynamics(table, q, qd, numbers(tau), 0, work, found) == -1
    kappa = np.linalg.cond(M) if n else 1
    same(found, expected, kappa * (norm(expected) + total(case.qd) ** 2 + 1))
    pose, twist, pose2, twist2 = empty(n, 12), empty(n, 6), numbers(empty(n, 12)), numbers(empty(n, 6))
    looped.motion(*compiled, pose, twist)
    sweeps.motion(table, q, qd, 0, work, pose2, twist2)
    same(pose2, pose, 1 + norm(pose))
    same(twist2, twist, 1 + norm(twist))
    J, J_dot, J2, J_dot2 = empty(n, 6), empty(n, 6), numbers(empty(n, 6)), numbers(empty(n, 6))
    for row in range(-1, n):
        looped.jacobian(*compiled, row, J, J_dot)
        sweeps.jacobian(table, q, qd, row, 0, work, J2, J_dot2)
        same(J2, J, 1 + norm(J))
        same(J_dot2, J_dot, 1 + norm(J) * total(case.qd))


def test_a_walk_touches_its_own_state_only():
    """``s`` says where one state lies among several."""
    rng = np.random.default_rng(0)
    table = random_tree(rng, 3).model.table
    q, qd, qdd = rng.normal(size=(3, 9))
    tau, M, C = empty(9), empty(9, 3), empty(9, 3)
    sweeps.inverse_dynamics(table, q, qd, qdd, 3, empty(3, WORK), tau)
    sweeps.coriolis_matrix(table, q, qd, 3, empty(3, WORK), M, C)
    for out in (tau, M, C):
        assert np.isnan(out[:3]).all() and np.isnan(out[6:]).all() and np.isfinite(out[3:6]).all()
