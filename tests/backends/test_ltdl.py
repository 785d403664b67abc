"""M factored along the tree, and what is solved with its factors."""

import numpy as np
import pytest
from cases import EPS, cases, close, norm
from hypothesis import given

import screwdyn as sd
from screwdyn.backends.tape.ltdl import _carried, factors, forward_dynamics
from screwdyn.backends.tape.tape import Tape
from screwdyn.backends.tape.trace import constants, inputs
from screwdyn.physics import recursions
from screwdyn.physics.table import PARENT, WIDTHS, Workspace


def evaluated(tape, outputs, **state):
    """Numbers of an array on a tape."""
    values = {(group, i): x for group, numbers in state.items() for i, x in enumerate(numbers.tolist())}
    return np.reshape([float(x) for x in tape.evaluate(outputs.ravel(), values)], outputs.shape)


@given(cases(least=1))
def test_factors_make_up_the_mass_matrix(case):
    tree, tape = case.tree, Tape()
    found = factors(tape, constants(tree.model.table))
    rows = range(tree.nv)
    L, D = evaluated(tape, found.L, q=case.q), evaluated(tape, found.D, q=case.q)
    lower = np.eye(tree.nv)
    for k in rows:
        lower[k, found.above[k]] = L[k, found.above[k]]
    M = tree.mass_matrix(case.q)
    close(lower.T @ np.diag(D) @ lower, M, norm(M), 1e3 * EPS)
    parents = [tree.coordinates.index(name) if name else -1 for name in carriers(tree)]
    assert [above[:1] or [-1] for above in found.above] == [[k] for k in parents]
    noted = np.array(tape.assumed, dtype=object).reshape(-1, 2)
    carried, least = evaluated(tape, noted, q=case.q).T
    assert (carried > least).all()


def carriers(tree):
    """The coordinate that carries each coordinate's link."""
    placements = tree.model.placements.values()
    return [at.parent for at in placements if at.freedoms]


@given(cases(least=1))
def test_what_joints_carry_is_bounded_for_every_state(case):
    """The bound of ∫ r² dm, half the trace of the composite inertia, holds at any state and is no wild guess at all."""
    tree, tape = case.tree, Tape()
    table, n = tree.model.table, tree.nv
    bounds = np.array(_carried(constants(table), inputs(tape, "q", range(n))), dtype=object).reshape(-1, 2)
    mass, spread = evaluated(tape, bounds, q=case.q).T
    work = Workspace(*(np.zeros((n, width)) for width in WIDTHS))
    recursions.mass_matrix(table, case.q, work, np.zeros((n, n)))
    true = work.inertias[:, [4, 7, 9]].sum(axis=1) / 2
    close(mass, work.inertias[:, 0], tree.mass, 10 * EPS)
    assert (spread >= true * (1 - 1e-13)).all()
    # Exact where a joint carries its own link only.
    carriers_of = set(table[:-1, PARENT].astype(int))
    tips = [k for k in range(n) if k not in carriers_of]
    close(spread[tips], true[tips], 1 + true.max(initial=0), 10 * EPS)


@given(cases(least=1))
def test_solutions_solve(case):
    tree, tape = case.tree, Tape()
    found = factors(tape, constants(tree.model.table))
    x = evaluated(tape, found.solve(case.qdd.astype(object)), q=case.q)
    M = tree.mass_matrix(case.q)
    close(M @ x, case.qdd, norm(M) * norm(x) + norm(case.qdd), 1e3 * EPS)


def test_armature_is_felt_by_its_own_joint():
    tree, tape = sd.robots.pelican(), Tape()
    own, q = np.array([0.25, 0.5]), np.array([0.3, -0.7])
    found = factors(tape, constants(tree.model.table), own.tolist())
    inverse = [evaluated(tape, found.solve(unit.astype(object)), q=q) for unit in np.eye(2)]
    np.testing.assert_allclose(inverse, np.linalg.inv(tree.mass_matrix(q) + np.diag(own)), rtol=1e-13)
    tau = np.array([1.0, 2.0])
    qdd = evaluated(tape, forward_dynamics(tape, constants(tree.model.table), own.tolist()), q=q, qd=0 * q, tau=tau)
    np.testing.assert_allclose(qdd, np.linalg.solve(tree.mass_matrix(q) + np.diag(own), tau - tree.gravity_vector(q)))


@pytest.mark.parametrize("solve", [factors, forward_dynamics])
def test_a_joint_that_never_carries_anything_has_no_factors(solve):
    tree = sd.robots.pelican()
    tree.attach(sd.Link("flag"), to=tree.links[-1], joint=sd.revolute())
    assert solve(Tape(), constants(tree.model.table)) is None
