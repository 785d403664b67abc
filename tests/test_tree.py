"""What a tree adds to its structure: gravity, configurations, snapshots."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from screwdyn.testing import random_tree

from screwdyn import Inertia, JointError, KinematicTree, Link, ScrewdynError, ShapeError, helical, prismatic, revolute


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


def test_a_floating_base_is_refused_by_name():
    text = '<robot name="r"><link name="a"/></robot>'
    assert KinematicTree.from_urdf(text, floating_base=False).links == ("a",)
    with pytest.raises(JointError, match="a floating base needs a free joint, which is not supported yet"):
        KinematicTree.from_urdf(text, floating_base=True)


@pytest.mark.parametrize("rng", [None, 3, np.random])
def test_a_random_configuration_needs_a_generator(rng):
    with pytest.raises(ScrewdynError, match="rng must be a numpy"):
        KinematicTree().random_configuration(rng)
