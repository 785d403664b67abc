"""Functions of a tree beyond its structure: gravity, configurations, models."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kinds import EVERY
from numpy.testing import assert_allclose, assert_array_equal

from screwdyn import (
    Inertia,
    KinematicTree,
    Link,
    ScrewdynError,
    ShapeError,
    UnknownNameError,
    free,
    helical,
    prismatic,
    revolute,
    robots,
    spherical,
)
from screwdyn.testing import random_tree


def mixed():
    tree = KinematicTree(gravity=(1, 2, 3))
    body = Inertia.sphere(1, 0.1)
    tree.attach(Link("a", body), to="base", joint=revolute(limits=(-1, 2)))
    tree.attach(Link("b", body), to="a", joint=prismatic("x", passive=True, limits=(0.1, 0.2)))
    tree.attach(Link("c"), to="b")
    tree.attach(Link("d", body), to="c", joint=helical("x", 0.1, limits=(-np.inf, 1)))
    tree.attach(Link("e", body), to="a", joint=revolute("y", passive=True))
    return tree


def test_gravity_is_a_copy_that_cannot_be_edited_in_place():
    g = np.array([1.0, 2, 3])
    tree = KinematicTree(gravity=g)
    g[0] = 7
    assert_array_equal(tree.gravity, [1, 2, 3])
    with pytest.raises(ValueError, match="read-only"):
        tree.gravity[0] = 7
    assert_array_equal(KinematicTree().gravity, [0, 0, -9.81])


@pytest.mark.parametrize("bad", [9.81, (0, 9.81), (0, 0, np.nan), (0, 0, np.inf), "down", None, np.zeros((1, 3))])
def test_bad_gravity_is_refused_and_nothing_changes(bad):
    with pytest.raises(ShapeError, match="gravity must be three"):
        KinematicTree(gravity=bad)
    tree = mixed()
    revision = tree.revision
    with pytest.raises(ShapeError, match="gravity must be three"):
        tree.gravity = bad
    assert_array_equal(tree.gravity, [1, 2, 3])
    assert tree.revision == revision


def test_the_actuation_matrix_leaves_out_passive_freedoms():
    assert_array_equal(mixed().actuation_matrix, [[1, 0], [0, 0], [0, 1], [0, 0]])
    assert KinematicTree().actuation_matrix.shape == (0, 0)


def test_configurations_stay_within_the_limits():
    tree = mixed()
    rng = np.random.default_rng(0)
    many = np.array([tree.random_configuration(rng) for _ in range(500)])
    low, high = [-1, 0.1, -np.pi, -np.pi], [2, 0.2, np.pi, np.pi]
    assert (many >= low).all()
    assert (many <= high).all()
    assert (np.ptp(many, axis=0) > 0.95 * np.subtract(high, low)).all()
    assert_array_equal(tree.neutral(), [0, 0, 0, 0])
    assert KinematicTree().neutral().shape == KinematicTree().random_configuration(rng).shape == (0,)


def test_integrate_and_difference_undo_each_other():
    tree = mixed()
    q0, v = np.random.default_rng(0).normal(size=(2, 5, 4))
    q1 = tree.integrate(q0, v)
    assert_array_equal(q1, q0 + v)
    np.testing.assert_allclose(tree.difference(q0, q1), v, atol=1e-15)
    assert_array_equal(tree.integrate(q0, v[0]), q0 + v[0])


# joints of several freedoms


@st.composite
def trees(draw):
    kinds = draw(st.sampled_from([*((kind,) for kind in EVERY), EVERY]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return random_tree(rng, draw(st.integers(0, 6)), kinds), rng


def same_place(tree, one, two):
    """Whether two configurations are the same but for signs of quaternions and whole turns of planar joints."""
    assert np.abs(tree.difference(one, two)).max(initial=0) < 1e-10


@given(trees())
def test_names_are_as_many_as_freedoms_and_positions(drawn):
    tree, rng = drawn
    assert len(tree.coordinates) == tree.nv == tree.model.nv == sum(tree.joint(name).nv for name in tree.joints)
    assert len(tree.positions) == tree.nq == tree.model.nq == sum(tree.joint(name).nq for name in tree.joints)
    assert (tree.coordinates, tree.positions) == (tree.model.coordinates, tree.model.positions)
    assert len({*tree.coordinates}) == tree.nv and len({*tree.positions}) == tree.nq
    assert tree.neutral().shape == tree.random_configuration(rng).shape == (tree.nq,)
    assert tree.actuation_matrix.shape == (tree.nv, tree.nv)
    tree.model.flat(q=tree.neutral())


@given(trees())
def test_integrate_and_difference_are_a_group_s(drawn):
    tree, rng = drawn
    q0, q1 = (np.array([tree.random_configuration(rng) for _ in range(4)]).reshape(4, tree.nq) for _ in range(2))
    v = rng.uniform(-1.5, 1.5, (4, tree.nv))
    # inverse of each other in both orders
    assert_allclose(tree.difference(q0, tree.integrate(q0, v)), v, atol=1e-11)
    same_place(tree, tree.integrate(q0, tree.difference(q0, q1)), q1)
    # the identity, the way back, and two halves
    same_place(tree, tree.integrate(q0, np.zeros(tree.nv)), q0)
    same_place(tree, tree.integrate(tree.integrate(q0, v), -v), q0)
    same_place(tree, tree.integrate(tree.integrate(q0, v / 2), v / 2), tree.integrate(q0, v))
    assert_allclose(tree.difference(q1, q0), -tree.difference(q0, q1), atol=1e-9)


@given(trees())
def test_positions_move_at_their_rate(drawn):
    tree, rng = drawn
    q, v, h = tree.random_configuration(rng), rng.normal(size=(3, tree.nv)), 1e-5
    slope = (tree.integrate(q, h * v) - tree.integrate(q, -h * v)) / (2 * h)
    assert_allclose(tree.position_rate(q, v), slope, atol=1e-8)


def test_motion_of_a_free_body_is_in_its_own_frame():
    tree = KinematicTree()
    tree.attach(Inertia.sphere(1, 0.1), to="base", joint=free(), name="body")
    quarter = [0, 0, np.sqrt(0.5), np.sqrt(0.5), 1, 2, 3]
    forward = [0, 0, 0, 0.5, 0, 0]
    assert_allclose(tree.integrate(quarter, forward), [*quarter[:4], 1, 2.5, 3], atol=1e-15)
    assert_allclose(tree.position_rate(quarter, forward), [0, 0, 0, 0, 0, 0.5, 0], atol=1e-15)


@pytest.mark.slow
def test_orientations_are_drawn_evenly():
    tree = KinematicTree()
    tree.attach(Inertia.sphere(1, 0.1), to="base", joint=spherical(), name="ball")
    rng = np.random.default_rng(4)
    q = np.array([tree.random_configuration(rng) for _ in range(20000)])
    assert_allclose(np.linalg.norm(q, axis=1), 1, atol=1e-15)
    assert_allclose(q.T @ q / len(q), np.eye(4) / 4, atol=0.01)


def test_passive_joints_lose_all_their_freedoms():
    tree = KinematicTree()
    body = Inertia.sphere(1, 0.1)
    tree.attach(body, to="base", joint=spherical(passive=True), name="ball")
    tree.attach(body, to="ball", joint=revolute(), name="hinge")
    assert_array_equal(tree.actuation_matrix, [[0], [0], [0], [1]])


def test_the_snapshot_is_made_once_and_again_after_a_change():
    tree = mixed()
    model = tree.model
    tree.mass_matrix(np.zeros(4))
    assert tree.model is model
    tree.gravity = (0, 0, 0)
    assert tree.model is not model


def test_a_tree_hangs_from_its_base_however_it_is_called():
    rng = np.random.default_rng(1)
    tree = random_tree(rng, 4)
    world = KinematicTree("world", gravity=tree.gravity)
    world.attach(tree, to="world")
    q, qd, qdd = rng.normal(size=(3, 4))
    assert_array_equal(world.inverse_dynamics(q, qd, qdd), tree.inverse_dynamics(q, qd, qdd))
    assert world.coordinates == tree.coordinates


@pytest.mark.parametrize("rng", [None, 3, np.random])
def test_a_random_configuration_needs_a_generator(rng):
    with pytest.raises(ScrewdynError, match="rng must be a numpy"):
        KinematicTree().random_configuration(rng)


def test_a_misspelt_attribute_is_refused():
    tree = robots.two_link()
    with pytest.raises(UnknownNameError, match=r"no attribute of a tree 'gravty'; did you mean 'gravity'"):
        tree.gravty = (0, 0, 0)
    tree.gravity = (0, 0, 0)
    assert not tree.gravity_vector([0.3, 0.2]).any()

    class Arm(KinematicTree):
        """May have attributes of its own."""

    arm = Arm()
    arm.color = "red"
    assert arm.copy().color == "red"
