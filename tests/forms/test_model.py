"""The snapshot of a tree: it goes on answering for the tree as it was, and is copied and sent like any value."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from screwdyn.testing import random_inertia, random_pose, random_tree

import screwdyn as sd

POLES = {"turn": sd.revolute, "slide": sd.prismatic, "screw": lambda axis, **at: sd.helical(axis, 0.3, **at)}


def numbers(of, q, qd, links):
    found = [*of.mass_and_coriolis(q, qd), of.gravity_vector(q), of.inverse_dynamics(q, qd, qd), of.momentum(q, qd)]
    for link in links:
        found += [of.forward_kinematics(link, q), of.jacobian(link, q), of.jacobian_dot(link, q, qd)]
    return [np.array(a) for a in found]


@pytest.mark.parametrize("twin_of", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_of_a_used_tree_and_of_its_snapshot_give_the_same_numbers(twin_of):
    tree = sd.robots.ur5()
    q, qd = np.random.default_rng(0).uniform(-1, 1, (2, tree.nv))
    M, C = tree.mass_and_coriolis(q, qd)
    for twin in (twin_of(tree), twin_of(tree.model)):
        assert twin.coordinates == tree.coordinates
        again = twin.mass_and_coriolis(q, qd)
        assert np.array_equal(again[0], M) and np.array_equal(again[1], C)


def test_a_snapshot_answers_with_the_tree_s_numbers():
    rng = np.random.default_rng(0)
    tree = random_tree(rng, 5)
    q, qd = rng.normal(size=(2, 5))
    model = tree.model
    assert model.model is model
    assert (model.coordinates, model.nv, model.revision) == (tree.coordinates, 5, tree.revision)
    for a, b in zip(numbers(model, q, qd, tree.links), numbers(tree, q, qd, tree.links), strict=True):
        assert_array_equal(a, b)


def test_a_snapshot_stays_what_it_was_while_the_tree_changes():
    rng = np.random.default_rng(1)
    tree = random_tree(rng, 5)
    q, qd = rng.normal(size=(2, 5))
    model, links = tree.model, tree.links
    before = numbers(model, q, qd, links)
    tree.attach(random_inertia(rng), to="link5", joint=sd.revolute(), at=random_pose(rng))
    tree.mass_matrix(np.zeros(6))
    tree.detach("link3")
    tree.gravity = (0, 0, 0)
    tree.mass_matrix(np.zeros(tree.nq))
    for a, b in zip(numbers(model, q, qd, links), before, strict=True):
        assert_array_equal(a, b)


def test_a_snapshot_refuses_questions_about_a_newer_link():
    tree = random_tree(np.random.default_rng(2), 3)
    model = tree.model
    tree.attach(sd.Inertia.sphere(1, 0.1), to="link3", name="crate")
    zero = np.zeros(3)
    for ask in (
        lambda: model.forward_kinematics("crate", zero),
        lambda: model.jacobian("crate", zero),
        lambda: model.inverse_dynamics(zero, zero, zero, {"crate": np.zeros(6)}),
    ):
        with pytest.raises(sd.StaleHandleError, match=f"revision {model.revision} of the tree has no link 'crate'"):
            ask()
    assert tree.forward_kinematics("crate", zero).shape == (4, 4)


@pytest.mark.parametrize("joint", POLES.values(), ids=POLES)
@pytest.mark.parametrize("axis", [*np.eye(3), *-np.eye(3), [1, 1, 0], [0, -1, 1], [1, 0, 1e-9], [1, 1, 1]])
def test_no_direction_of_an_axis_is_special(joint, axis):
    """The same joint seen from a link frame turned any way: the numbers of its coordinate do not change."""
    rng = np.random.default_rng(3)
    body, home, R = random_inertia(rng), random_pose(rng), random_pose(rng)
    R[:3, 3] = 0
    one, two = sd.KinematicTree(), sd.KinematicTree()
    for tree, turn in ((one, np.eye(4)), (two, R)):
        back = sd.screw.inverse(turn)
        hinge = joint(back[:3, :3] @ axis)
        tree.attach(body.transformed(back), to="base", joint=hinge, at=home @ turn, name="a")
        tree.attach(random_tree(np.random.default_rng(4), 2), to="a", at=back, name="stem")
    q, qd, qdd = rng.normal(size=(3, 3))
    tau = one.inverse_dynamics(q, qd, qdd)
    np.testing.assert_allclose(two.inverse_dynamics(q, qd, qdd), tau, rtol=1e-12, atol=1e-12)
    turned = two.forward_kinematics("a", q) @ sd.screw.inverse(R)
    np.testing.assert_allclose(turned, one.forward_kinematics("a", q), rtol=1e-12, atol=1e-13)


def test_numbers_do_not_depend_on_where_a_body_s_link_frame_is():
    rng = np.random.default_rng(5)
    T, body = random_pose(rng), random_inertia(rng)
    q, qd, qdd = rng.normal(size=(3, 4))
    torques = []
    for pose, inertia in ((np.eye(4), body), (T, body.transformed(sd.screw.inverse(T)))):
        tree = random_tree(np.random.default_rng(6), 4)
        tree.attach(inertia, to="link4", at=pose)
        torques.append(tree.inverse_dynamics(q, qd, qdd))
    np.testing.assert_allclose(*torques, rtol=1e-12, atol=1e-12)


def test_right_angles_in_floats_cost_no_operations():
    """cos(π/2) is 6e-17 in floats; the rows hold 0, and a chain of such turns as few operations as an exact one."""
    costs, rows = [], []
    for c, s in ((np.cos(np.pi / 2), np.sin(np.pi / 2)), (0.0, 1.0)):
        tree, bend = sd.KinematicTree(), np.eye(4)
        bend[1:3, 1:3] = [[c, -s], [s, c]]
        bend[:3, 3] = 0.1, 0.2, 0.3
        for k in range(4):
            tree.attach(
                sd.Inertia.point(1.0, (0.1, 0.0, 0.0)), to=tree.links[-1], joint=sd.revolute(), at=bend, name=f"b{k}"
            )
        costs.append(tree.operation_count("inverse_dynamics"))
        rows.append(tree.model.table)
    assert costs[0] == costs[1]
    assert_array_equal(*rows)


def test_small_angles_are_not_taken_for_none():
    tree, bend = sd.KinematicTree(), np.eye(4)
    bend[:2, :2] = [[1.0, -1e-12], [1e-12, 1.0]]
    tree.attach(sd.Inertia.sphere(1.0, 0.1), to="base", joint=sd.revolute(), at=bend)
    assert tree.model.table[0, 3] == 1e-12


def test_welding_is_the_sum_of_inertias():
    rng = np.random.default_rng(7)
    first, second, T = random_inertia(rng), random_inertia(rng), random_pose(rng)
    q, qd, qdd = rng.normal(size=(3, 3))
    apart, together = (random_tree(np.random.default_rng(8), 3) for _ in range(2))
    apart.attach(first, to="link3", name="one")
    apart.attach(second, to="one", at=T, name="two")
    together.attach(first + second.transformed(T), to="link3")
    expected = together.inverse_dynamics(q, qd, qdd)
    np.testing.assert_allclose(apart.inverse_dynamics(q, qd, qdd), expected, rtol=1e-12, atol=1e-12)
