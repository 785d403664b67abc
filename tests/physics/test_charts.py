"""Charts of group joints: coordinates, their rates, and motion along quasi-velocities."""

import definition
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from screwdyn import Joint, KinematicTree, free, padded_sum, planar, revolute, screw, spherical
from screwdyn.mechanism import chart as charts_of_joints
from screwdyn.physics.charts import ConfigurationSpace
from screwdyn.testing import random_inertia, random_pose

KINDS = {
    "spherical": lambda rng: spherical(rng.normal(size=3)),
    "free": lambda rng: free(),
    "planar": lambda rng: planar(rng.normal(size=3), rng.normal(size=3)),
}
seeds = st.integers(0, 2**32 - 1)
kinds = st.sampled_from(list(KINDS))


def drawn(kind, seed, *batch):
    rng = np.random.default_rng(seed)
    joint = KINDS[kind](rng)
    return joint, ConfigurationSpace({"": joint}), rng.normal(size=(*batch, joint.nq)), rng


@given(kinds, seeds)
def test_coordinates_move_along_the_joint_s_screws(kind, seed):
    """T · exp(S ν), with ν on the right, for any axes, center and length of the quaternion."""
    joint, space, q, rng = drawn(kind, seed, 5)
    nu = rng.normal(size=(5, joint.nv))
    moved = joint.chart.pose(space.integrate(q, nu))
    assert_allclose(moved, joint.chart.pose(q) @ screw.exp(nu @ joint.screws.T), atol=1e-13)


@given(kinds, seeds)
def test_the_difference_is_the_motion_between_two_configurations(kind, seed):
    joint, space, q, rng = drawn(kind, seed, 5)
    chart, nu = joint.chart, rng.uniform(-1.7, 1.7, (5, joint.nv))
    assert_allclose(chart.difference(q, space.integrate(q, nu)), nu, atol=1e-12)
    there = rng.normal(size=q.shape)
    assert_allclose(chart.pose(space.integrate(q, chart.difference(q, there))), chart.pose(there), atol=1e-11)


@given(kinds, seeds)
def test_the_rate_is_the_derivative_of_the_motion(kind, seed):
    joint, space, q, rng = drawn(kind, seed)
    chart, nu, h = joint.chart, rng.normal(size=joint.nv), 1e-5
    if chart.orientation == 4:
        q[:4] /= np.linalg.norm(q[:4])
    slope = (space.integrate(q, h * nu) - space.integrate(q, -h * nu)) / (2 * h)
    assert_allclose(space.rate(q, nu), slope, atol=1e-8)


@given(kinds, seeds)
def test_poses_form_a_group(kind, seed):
    joint, space, q, _ = drawn(kind, seed)
    chart = joint.chart
    assert_allclose(chart.pose(np.array(chart.neutral)), np.eye(4), atol=1e-14)
    back = space.integrate(np.array(chart.neutral), -chart.difference(np.array(chart.neutral), q))
    for inverse in (back, chart.inverse(q)):
        assert_allclose(chart.pose(inverse) @ chart.pose(q), np.eye(4), atol=1e-12)


@pytest.mark.parametrize("kind", ["spherical", "free"])
def test_the_length_and_sign_of_a_quaternion_do_not_matter(kind):
    joint, _, q, _ = drawn(kind, 1)
    for factor in (2.0, -1.0, 1e-3):
        scaled = q.copy()
        scaled[:4] *= factor
        assert_allclose(joint.chart.pose(scaled), joint.chart.pose(q), atol=1e-14)
        assert_allclose(joint.chart.difference(q, scaled), 0, atol=1e-14)


def test_a_quaternion_is_scalar_last_and_turns_by_its_angle():
    half = np.array([np.sin(0.2), 0, 0, np.cos(0.2)])
    assert_allclose(spherical().chart.pose(half), screw.exp([0.4, 0, 0, 0, 0, 0]), atol=1e-15)
    assert_array_equal(spherical().chart.pose(np.array([0, 0, 0, 1.0])), np.eye(4))


def test_a_half_turn_and_whole_turns_have_a_way_back():
    flip = np.array([1.0, 0, 0, 0])
    way = spherical().chart.difference(np.array([0, 0, 0, 1.0]), flip)
    assert_allclose(np.abs(way), [np.pi, 0, 0], atol=1e-15)
    turned = planar().chart.difference(np.zeros(3), np.array([2 * np.pi + 0.1, 3, 4]))
    assert_allclose(turned, planar().chart.difference(np.zeros(3), np.array([0.1, 3, 4])), atol=1e-13)


def test_a_group_of_four_freedoms_is_a_chart_and_no_more(monkeypatch):
    """Motions of Schoenflies, an angle and three translations, against the definition, energies and differences."""
    monkeypatch.setitem(charts_of_joints._KINDS, (1, 3), "schoenflies")
    rng, tree = np.random.default_rng(0), KinematicTree()
    for name, to in (("a", "base"), ("b", "a"), ("c", "b")):
        chart = charts_of_joints.Chart(1, 3, random_pose(rng)[:3, :3], rng.normal(size=3))
        joint = revolute("x") if name == "b" else Joint(chart.screws, chart=chart)
        tree.attach(random_inertia(rng), to=to, joint=joint, at=random_pose(rng), name=name)
    assert tree.positions == (*(f"a[{x}]" for x in ("angle", "px", "py", "pz")), "b", *tree.positions[5:])
    q, v, h = rng.normal(size=tree.nq), rng.normal(size=tree.nv), 1e-6
    for part, expected in zip(tree.contributions(q, v), definition.contributions(tree, q, v), strict=True):
        for what in ("J", "J_dot", "M", "C", "g"):
            assert_allclose(np.asarray(getattr(part, what)), np.asarray(getattr(expected, what)), atol=1e-11)
    total = padded_sum(part.M for part in tree.contributions(q, v))
    assert_allclose(tree.mass_matrix(q), total.matrix(tree.coordinates), atol=1e-12)
    ends = ([tree.integrate(q, sign * x) for x in h * np.eye(tree.nv)] for sign in (1, -1))
    up, down = (np.array([tree.potential_energy(end) for end in some]) for some in ends)
    assert_allclose((up - down) / (2 * h), tree.gravity_vector(q), atol=1e-6)
    for link, pose in zip(tree.links, tree.link_poses(q), strict=True):
        assert_allclose(pose, tree.forward_kinematics(link, q), atol=1e-13)
    assert_allclose(tree.difference(q, tree.integrate(q, v)), v, atol=1e-12)
    assert_allclose(tree.forward_dynamics(q, v, tree.inverse_dynamics(q, v, v)), v, atol=1e-11)
