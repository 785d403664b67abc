"""Factors of the mass matrix along the tree, and solutions with them."""

import numpy as np
import pytest
from cases import EPS, close, norm
from hypothesis import given
from tangents import joint_cases

import screwdyn as sd
from screwdyn.backends.tape.tape import Tape
from screwdyn.backends.tape.trace import Subject, Undetermined, _carried, constants, factors, forward_dynamics
from screwdyn.physics.table import ARMATURE, PARENT, path_of


def subject(tree):
    return Subject(constants(tree.model.table), tree.model.charts)


def evaluated(tape, outputs, **state):
    """Numbers of an array on a tape."""
    values = {(group, i): x for group, numbers in state.items() for i, x in enumerate(numbers.tolist())}
    return np.reshape([float(x) for x in tape.evaluate(outputs.ravel(), values)], outputs.shape)


@given(joint_cases(least=1))
def test_factors_make_up_the_mass_matrix(case):
    tree, tape = case.tree, Tape()
    found = factors(tape, subject(tree))
    L, D = evaluated(tape, found.L, q=case.q), evaluated(tape, found.D, q=case.q)
    lower = np.eye(tree.nv) + np.tril(L, -1)
    M = tree.mass_matrix(case.q)
    close(lower.T @ np.diag(D) @ lower, M, norm(M), 1e3 * EPS)
    for k in range(tree.nv):  # zero but for the rows that carry this one
        assert {*np.flatnonzero(np.tril(found.L, -1)[k])} <= {*path_of(tree.model.table, k)}
    noted = np.array(tape.assumed, dtype=object).reshape(-1, 2)
    carried, least = evaluated(tape, noted, q=case.q).T
    assert (carried > least).all()


@given(joint_cases(least=1))
def test_what_joints_carry_is_bounded_for_every_angle(case):
    """The bound of ∫ r² dm holds, and is exact for a joint that carries its own link only."""
    tree, tape = case.tree, Tape()
    bounds = np.array(_carried(*subject(tree).rows(subject(tree).inputs(tape, "q"))), dtype=object).reshape(-1, 2)
    mass, spread = evaluated(tape, bounds, q=case.q).T
    for name, at in tree.model.placements.items():
        if not at.freedoms:
            continue
        row, own = tree.model.index[at.coordinate], sd.screw.pose(np.reshape(at.pose.R, (3, 3)), at.pose.p)
        origin = (tree.forward_kinematics(name, case.q) @ sd.screw.inverse(own))[:3, 3]
        beyond = [link for link in tree.subtree(name) if tree.link(link).inertia is not None]
        true = 0.0
        for link in beyond:
            body = tree.link(link).inertia
            com = (tree.forward_kinematics(link, case.q) @ [*body.com, 1.0])[:3]
            true += np.trace(body.tensor) / 2 + body.mass * ((com - origin) ** 2).sum()
        close(mass[row], sum(tree.link(link).inertia.mass for link in beyond), tree.mass, 10 * EPS)
        assert spread[row] >= true * (1 - 1e-13)
        if row not in tree.model.table[:-1, PARENT]:
            close(spread[row], true, 1 + true, 100 * EPS)


@given(joint_cases(least=1))
def test_solutions_solve(case):
    tree, tape = case.tree, Tape()
    found = factors(tape, subject(tree))
    x = evaluated(tape, found.solve(case.qdd.astype(object)), q=case.q)
    M = tree.mass_matrix(case.q)
    close(M @ x, case.qdd, norm(M) * norm(x) + norm(case.qdd), 1e3 * EPS)


def test_armature_is_felt_by_its_own_joint():
    tree, tape = sd.robots.pelican(), Tape()
    own, q = np.array([0.25, 0.5]), np.array([0.3, -0.7])
    driven = subject(tree)
    driven.table[:-1, ARMATURE] = own.tolist()
    found = factors(tape, driven)
    inverse = [evaluated(tape, found.solve(unit.astype(object)), q=q) for unit in np.eye(2)]
    np.testing.assert_allclose(inverse, np.linalg.inv(tree.mass_matrix(q) + np.diag(own)), rtol=1e-13)
    tau = np.array([1.0, 2.0])
    qdd = evaluated(tape, forward_dynamics(tape, driven), q=q, qd=0 * q, tau=tau)
    np.testing.assert_allclose(qdd, np.linalg.solve(tree.mass_matrix(q) + np.diag(own), tau - tree.gravity_vector(q)))


@pytest.mark.parametrize("solve", [factors, forward_dynamics])
def test_a_joint_that_never_carries_anything_has_no_factors(solve):
    tree = sd.robots.pelican()
    tree.attach(sd.Link("flag"), to=tree.links[-1], joint=sd.revolute())
    with pytest.raises(Undetermined) as found:
        solve(Tape(), subject(tree))
    assert found.value.row == 2
