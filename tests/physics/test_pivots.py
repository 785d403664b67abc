"""Joints without inertia in forward dynamics: rounding is an error, small inertia is not."""

import numpy as np
import pytest

import screwdyn as sd
from screwdyn import Inertia, KinematicTree, Link, SingularAttachmentError, prismatic, revolute
from screwdyn.testing import random_inertia, random_pose

BALL = Inertia(1.0, (0, 0, 0), (0.4, 0.4, 0.4))


def gimbal(rng=None):
    """Three axes through the centre of a ball; massless rings."""
    axes = np.eye(3) if rng is None else random_pose(rng)[:3, :3].T
    tree = KinematicTree()
    for k, a in enumerate(axes):
        tree.attach(Link(f"ring{k}", BALL if k == 2 else None), to=tree.links[-1], joint=revolute(a))
    return tree


@pytest.mark.parametrize(("angle", "tolerance"), [(1e-3, 1e-8), (1e-6, 1e-2), (1e-7, 0.2)])
@pytest.mark.parametrize("seed", [None, *range(5)])
def test_a_gimbal_near_its_lock_has_an_acceleration(angle, tolerance, seed):
    """The first axis feels I sin²δ, at 1e-7 rad 1e-14 of the ball's inertia and 45 times its rounding."""
    tree = gimbal(None if seed is None else np.random.default_rng(seed))
    q = np.array([0.3, np.pi / 2 - angle, -0.4])
    qdd = tree.forward_dynamics(q, np.zeros(3), [1.0, 0.0, 0.0])
    assert qdd[0] == pytest.approx(1 / (0.4 * np.sin(angle) ** 2), rel=tolerance)


@pytest.mark.parametrize("seed", [None, *range(20)])
def test_a_locked_gimbal_has_none(seed):
    tree = gimbal(None if seed is None else np.random.default_rng(seed))
    with pytest.raises(
        SingularAttachmentError, match=r"joint 'ring0' resists its motion: it feels .* of the 0.8|1.2 kg m"
    ):
        tree.forward_dynamics([0.3, np.pi / 2, -0.4], np.zeros(3), np.ones(3))


@pytest.mark.parametrize("seed", range(20))
def test_a_thin_rod_has_none_about_itself(seed):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=3)
    a /= np.linalg.norm(a)
    tree = KinematicTree()
    tree.attach(Link("hub"), to="base", joint=revolute(a), at=random_pose(rng))
    tree.attach(Inertia(1.0, 0.3 * a, np.eye(3) - np.outer(a, a)), to="hub")
    with pytest.raises(SingularAttachmentError, match="'hub'"):
        tree.forward_dynamics([rng.normal()], [0.0], [1.0])


@pytest.mark.parametrize("joint", [revolute, prismatic])
def test_more_axes_than_a_point_can_move_are_refused(joint):
    """Four screws of a space of three: some motion of the joints moves nothing, in any configuration."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        tree = KinematicTree()
        for k in range(4):
            body = random_inertia(rng) if k == 3 else None
            tree.attach(Link(f"link{k}", body), to=tree.links[-1], joint=joint(rng.normal(size=3)))
        with pytest.raises(SingularAttachmentError, match="motion of 'link0', 'link1', 'link2' and 'link3' together"):
            tree.forward_dynamics(rng.normal(size=4), np.zeros(4), np.ones(4))


def test_a_small_inertia_beside_a_far_one():
    """100 kg at a kilometre along the axis do not change the inertia of a rotor of 1e-6 kg m²."""
    tree = KinematicTree(gravity=(0, 0, 0))
    tree.attach(Inertia(0.1, (0, 0, 0), (1e-6, 1e-6, 1e-6)), to="base", joint=revolute("z"), name="rotor")
    tree.attach(Inertia.point(100, (0, 0, 1000)), to="rotor")
    assert tree.forward_dynamics([0.2], [0.0], [1e-6]) == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("axis", ["z", (1, 2, 3)])
def test_a_body_far_along_the_axis_about_which_it_turns(axis):
    """A cylindrical joint feels m and I about its axis, wherever along it the body is; a gimbal there stays locked."""
    body, force = Inertia(1.0, (0.1, 0, 0), (0.1, 0.1, 0.1)), np.array([1.0, 2.0])
    tree = KinematicTree(gravity=(0, 0, 0))
    tree.attach(body, to="base", joint=sd.cylindrical(axis))
    a = np.array([0, 0, 1.0]) if axis == "z" else np.array(axis) / np.sqrt(14)
    expected = force / [0.1 + 0.01 * (1 - a[0] ** 2), 1.0]
    for dynamics in (tree.forward_dynamics, tree.compile(threads=1).wait().forward_dynamics):
        for s in (0.0, 1e7, -1e15):
            assert dynamics([0.3, s], np.zeros(2), force) == pytest.approx(expected, rel=1e-14)
    for s in (0.0, 1e7):
        far = KinematicTree(gravity=(0, 0, 0))
        far.attach(gimbal(), to="base", joint=sd.cylindrical(axis), prefix="far/")
        with pytest.raises(SingularAttachmentError, match="'far/ring0'"):
            far.forward_dynamics([0.3, s, 0.2, np.pi / 2, -0.4], np.zeros(5), np.ones(5))


def test_small_robots_are_not_refused():
    """A millimetre and a microgram: the condition is relative."""
    tree = KinematicTree()
    for k in range(2):
        body = Inertia(1e-9, (1e-3, 0, 0), (1e-16, 1e-16, 1e-16))
        tree.attach(Link(f"link{k}", body), to=tree.links[-1], joint=revolute("z"), at=(1e-3 * k, 0, 0))
    M = tree.mass_matrix([0.1, 0.2])
    qdd = tree.forward_dynamics([0.1, 0.2], np.zeros(2), [1e-16, 0.0])
    assert qdd == pytest.approx(np.linalg.solve(M, [1e-16, 0.0]), rel=1e-9)


def test_a_point_on_its_pin_is_refused_within_the_rounding_of_poses():
    for offset, refused in ((0.0, True), (1e-13, True), (1e-11, False)):
        tree = KinematicTree(gravity=(0, 0, 0))
        tree.attach(Inertia.point(2.0, (offset, 0, 0)), to="base", joint=revolute("z"), name="pin")
        if refused:
            with pytest.raises(SingularAttachmentError, match="'pin'"):
                tree.forward_dynamics([0.0], [0.0], [1.0])
        else:
            assert np.isfinite(tree.forward_dynamics([0.0], [0.0], [1.0])).all()


def test_what_was_compared_is_told_of_the_first_state_that_fails():
    tree = gimbal()
    q = np.array([[0.3, 0.1, 0.2], [0.0, np.pi / 2, 0.0]])
    with pytest.raises(
        SingularAttachmentError, match=r"it feels \S+ of the 1.2 kg m\^2 that it carries, which is no more"
    ):
        tree.forward_dynamics(q, np.zeros((2, 3)), np.ones((2, 3)))
    ball = KinematicTree()
    ball.attach(Link("socket"), to="base", joint=sd.spherical())
    with pytest.raises(SingularAttachmentError, match=r"'socket\[wz\]' resists its motion in any configuration"):
        ball.forward_dynamics([0, 0, 0, 1], np.zeros(3), np.ones(3))
    lumped = KinematicTree()
    with pytest.warns(sd.ScrewdynWarning):
        negative = sd.Inertia.effective(-1.0, (0, 0, 0), -np.eye(3))
    lumped.attach(negative, to="base", joint=sd.revolute("z"))
    with pytest.raises(SingularAttachmentError, match=r"it feels -1 of the -3 kg m\^2 .*, which is negative"):
        lumped.forward_dynamics([0.0], [0.0], [1.0])


def test_compiled_trees_give_what_the_tree_gives_near_a_lock():
    tree = gimbal()
    fast = tree.compile(threads=1).wait()
    q = np.array([0.3, np.pi / 2 - 1e-7, -0.4])
    assert np.array_equal(
        fast.forward_dynamics(q, np.zeros(3), np.ones(3)), tree.forward_dynamics(q, np.zeros(3), np.ones(3))
    )


def test_a_free_body_feels_nothing_of_small_ones_far_beyond_it():
    """Bodies of millimetres and milligrams, metres apart on free joints: each flies as it would alone."""
    for seed in range(20):
        rng, tree = np.random.default_rng(seed), sd.KinematicTree()
        alone = sd.KinematicTree()
        for k in range(3):
            body = sd.Inertia(1e-6, 1e-3 * rng.normal(size=3), 1e-12 * np.array([1.0, 1.2, 1.5]))
            tree.attach(body, tree.links[-1], sd.free(), name=f"body{k}")
            if not k:
                alone.attach(body, "base", sd.free())
        q, qd = tree.random_configuration(rng), rng.normal(size=18)
        expected = alone.forward_dynamics(q[:7], qd[:6], np.zeros(6))
        found = tree.forward_dynamics(q, qd, np.zeros(18))[:6]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13 * np.abs(expected).max())
