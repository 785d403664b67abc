"""Random trees: their structure, reproducibility and valid inertias."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import screwdyn.testing as random_trees
from screwdyn import JointError
from screwdyn.mechanism import joint as joints
from screwdyn.testing import random_inertia, random_pose, random_tree

# Freedoms and positions of each kind.
KINDS = {
    "revolute": (1, 1),
    "prismatic": (1, 1),
    "helical": (1, 1),
    "cylindrical": (2, 2),
    "universal": (2, 2),
    "spherical": (3, 4),
    "planar": (3, 3),
    "free": (6, 7),
    "fixed": (0, 0),
}


def kinds_in(tree):
    return {tree.joint(name).kind for name in tree.joints if name.startswith("joint")}


def test_every_link_has_a_freedom_unless_fixed_joints_are_asked_for():
    tree = random_tree(np.random.default_rng(0), 30)
    assert tree.coordinates == tuple(f"joint{i}" for i in range(1, 31))
    assert kinds_in(tree) == {"revolute", "prismatic", "helical"}
    bodies = [name for name in tree.links if tree.link(name).inertia is not None]
    assert bodies == [f"link{i}" for i in range(1, 31)]


def test_every_kind_of_joint_is_among_them():
    assert set(random_trees.KINDS) == set(joints.KINDS) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_kinds_asked_for(kind):
    tree = random_tree(np.random.default_rng(1), 12, joints=(kind,))
    assert kinds_in(tree) == {kind}
    assert (tree.nv, tree.nq) == tuple(12 * np.array(KINDS[kind]))


def test_nothing_at_all_is_a_base():
    assert random_tree(np.random.default_rng(2), 0).links == ("base",)


def test_massless_frames_come_now_and_then():
    def count(frames):
        tree = random_tree(np.random.default_rng(3), 40, frames=frames)
        return sum(name.startswith("frame") for name in tree.links)

    assert count(0) == 0
    assert 0 < count(0.2) < 20
    assert count(1) == 40


def test_links_branch_and_hang_on_frames_too():
    tree = random_tree(np.random.default_rng(4), 40, frames=0.5)
    parents = [tree.parent(name) for name in tree.links[1:]]
    assert len(set(parents)) < len(parents)
    assert any(name.startswith("frame") for name in parents)


def test_same_seed_same_tree():
    one, two = (random_tree(np.random.default_rng(5), 9) for _ in range(2))
    assert str(one) == str(two)
    q = np.linspace(-1, 1, 9)
    assert_array_equal(one.mass_matrix(q), two.mass_matrix(q))
    assert_array_equal(one.gravity, two.gravity)


@pytest.mark.parametrize("kinds", [(), ("ball",), ("revolute", "hinge")])
def test_unknown_kinds_are_refused(kinds):
    with pytest.raises(JointError, match=r"joints must be some of revolute, .*, fixed; got"):
        random_tree(np.random.default_rng(6), 3, joints=kinds)


@pytest.mark.parametrize("seed", range(5))
def test_bodies_are_possible_and_poses_rigid(seed):
    rng = np.random.default_rng(seed)
    inertia = random_inertia(rng)
    assert inertia.is_physical
    assert np.linalg.eigvalsh(inertia.matrix).min() > 0
    T = random_pose(rng)
    assert_allclose(T[:3, :3] @ T[:3, :3].T, np.eye(3), atol=1e-15)
    assert np.linalg.det(T[:3, :3]) > 0
    assert_array_equal(T[3], [0, 0, 0, 1])
