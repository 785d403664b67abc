"""Inverse kinematics against closed forms of a planar arm and of the UR5, on random trees, and out of reach."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kinds import EVERY
from mechanisms import stewart_platform
from numpy.testing import assert_allclose, assert_array_equal

import screwdyn as sd
from screwdyn.forms.search import _Target
from screwdyn.testing import random_tree

ROD = sd.Inertia.rod(1.0, 1.0, com=(0.5, 0, 0))


def planar(upper=1.0, lower=0.7, **elbow):
    """Two links in a plane, and a tip."""
    tree = sd.KinematicTree()
    tree.attach(ROD, to="base", joint=sd.revolute("z", name="shoulder"), name="upper")
    tree.attach(ROD, to="upper", joint=sd.revolute("z", name="elbow", **elbow), at=(upper, 0, 0), name="lower")
    tree.attach(sd.Link("tip"), to="lower", at=(lower, 0, 0))
    return tree


@pytest.mark.parametrize("side", [1, -1])
def test_two_links_reach_a_point_by_the_law_of_cosines(side):
    x, y = 0.9, 0.8
    q = planar().inverse_kinematics("tip", (x, y, 0), [0, 0.5 * side])
    elbow = side * np.arccos((x * x + y * y - 1 - 0.49) / 1.4)
    shoulder = np.arctan2(y, x) - np.arctan2(0.7 * np.sin(elbow), 1 + 0.7 * np.cos(elbow))
    assert_allclose(q, [shoulder, elbow], rtol=1e-12)


def test_out_of_reach_the_arm_is_stretched_towards_the_point():
    with pytest.raises(sd.InverseKinematicsError, match=r"nearest of 20 searches misses it by 0.8 m; choose") as caught:
        planar().inverse_kinematics("tip", (1.5, 2.0, 0))
    error = caught.value
    assert_allclose(error.position_error, 2.5 - 1.7, rtol=1e-12)
    assert error.angle_error == 0
    # The distance is flat to second order there.
    assert_allclose(planar().forward_kinematics("tip", error.q)[:3, 3], 1.7 * np.array([0.6, 0.8, 0]), atol=1e-6)


def test_a_limit_that_prevents_a_pose_is_named():
    tree = planar(limits=(0.0, 0.5))
    q = tree.inverse_kinematics("tip", (1.64, 0.35, 0), [0, -1.0])
    assert 0 <= q[1] <= 0.5
    with pytest.raises(sd.InverseKinematicsError, match="'elbow' at the limits") as caught:
        tree.inverse_kinematics("tip", (0.5, 0.8, 0))
    assert_allclose(caught.value.q[1], 0.5, rtol=1e-15)
    reach = np.sqrt(1 + 0.49 + 1.4 * np.cos(0.5))
    assert_allclose(caught.value.position_error, reach - np.hypot(0.5, 0.8), rtol=1e-12)


def test_a_limit_also_holds_for_a_joint_that_follows():
    tree = sd.KinematicTree()
    tree.attach(ROD, to="base", joint=sd.prismatic("x", name="x", limits=(-1, 1)), name="carriage")
    follower = sd.prismatic("x", mimic=sd.Mimic("x", 2.0), limits=(-0.5, 0.5), name="y")
    tree.attach(ROD, to="carriage", joint=follower, name="stage")
    assert_allclose(tree.inverse_kinematics("stage", (0.6, 0, 0)), [0.2], rtol=1e-12)
    with pytest.raises(sd.InverseKinematicsError, match="'x' at the limits") as caught:
        tree.inverse_kinematics("stage", (0.9, 0, 0))
    assert_allclose(caught.value.q, [0.25], rtol=1e-14)


def test_a_rotation_at_its_limit_goes_on_a_whole_turn_earlier():
    tree = sd.KinematicTree()
    tree.attach(ROD, to="base", joint=sd.revolute("z", limits=(-4.0, 4.0)), name="rod")
    # 4.5 is nearest but beyond the limit; 4.5 − 2π is the same pose.
    target = tree.forward_kinematics("rod", [4.5])
    assert_allclose(tree.inverse_kinematics("rod", target, [3.5], searches=1), [4.5 - 2 * np.pi], rtol=1e-12)
    # Also if the range is open on the other side, and beside a joint without limits.
    tree = sd.KinematicTree()
    tree.attach(ROD, to="base", joint=sd.revolute("z", limits=(-np.inf, 4.0)), name="rod")
    tree.attach(ROD, to="rod", joint=sd.revolute("x"), name="other")
    target = tree.forward_kinematics("other", [4.5, 0.3])
    found = tree.inverse_kinematics("other", target, [3.5, 0], searches=1)
    assert_allclose(found, [4.5 - 2 * np.pi, 0.3], rtol=1e-12)


# The UR5's Denavit-Hartenberg numbers, m.
D1, A2, A3, D4, D5, D6 = 0.089159, -0.425, -0.39225, 0.10915, 0.09465, 0.0823


def dh(angle, d, a, twist):
    c, s, ct, st_ = np.cos(angle), np.sin(angle), np.cos(twist), np.sin(twist)
    return np.array([[c, -s * ct, s * st_, a * c], [s, c * ct, -c * st_, a * s], [0, st_, ct, d], [0, 0, 0, 1]])


def solutions_of_ur5(T):
    """All configurations for a pose of tool0, by the closed form of R. Keating (2014), from a base turned by π."""
    T = np.diag([-1.0, -1, 1, 1]) @ T
    wrist = T @ [0, 0, -D6, 1]
    found = []
    for left, flip, up in itertools.product((1, -1), repeat=3):
        q1 = np.arctan2(wrist[1], wrist[0]) + left * np.arccos(D4 / np.hypot(*wrist[:2])) + np.pi / 2
        q5 = flip * np.arccos((T[0, 3] * np.sin(q1) - T[1, 3] * np.cos(q1) - D4) / D6)
        row = np.sin(q1) * T[0, :2] - np.cos(q1) * T[1, :2]
        q6 = np.arctan2(-row[1] / np.sin(q5), row[0] / np.sin(q5))
        end = dh(q5, D5, 0, -np.pi / 2) @ dh(q6, D6, 0, 0)
        arm = np.linalg.inv(dh(q1, D1, 0, np.pi / 2)) @ T @ np.linalg.inv(end)
        x, y = (arm @ [0, -D4, 0, 1])[:2]
        cosine = (x * x + y * y - A2**2 - A3**2) / (2 * A2 * A3)
        if abs(cosine) > 1:
            continue
        q3 = up * np.arccos(cosine)
        q2 = np.arctan2(y, x) - np.arctan2(A3 * np.sin(q3), A2 + A3 * np.cos(q3))
        last = np.linalg.inv(dh(q2, 0, A2, 0) @ dh(q3, 0, A3, 0)) @ arm
        found.append([q1, q2, q3, np.arctan2(last[1, 0], last[0, 0]), q5, q6])
    return np.array(found)


def apart(q0, q1):
    """Largest difference of two configurations up to whole turns."""
    return np.abs((q0 - q1 + np.pi) % (2 * np.pi) - np.pi).max(axis=-1)


@pytest.mark.slow
def test_each_solution_of_the_ur5_is_one_of_its_closed_form():
    arm, rng = sd.robots.ur5(), np.random.default_rng(2)
    branches = set()
    for _ in range(25):
        T = arm.forward_kinematics("tool0", arm.random_configuration(rng))
        closed = solutions_of_ur5(T)
        assert_allclose(arm.forward_kinematics("tool0", closed), np.broadcast_to(T, (len(closed), 4, 4)), atol=1e-12)
        q = arm.inverse_kinematics("tool0", T, arm.random_configuration(rng))
        distances = apart(q, closed)
        assert distances.min() < 1e-6
        branches.add(int(distances.argmin()))
        # The closed form's configuration next to the start is found from there.
        near = closed[int(rng.integers(len(closed)))]
        near = (near + np.pi) % (2 * np.pi) - np.pi
        if np.linalg.cond(arm.jacobian("tool0", near)) < 30:
            assert_allclose(arm.inverse_kinematics("tool0", T, near + 0.02), near, atol=1e-8)
    assert len(branches) >= 4


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_any_tree_finds_a_pose_that_it_has_near_the_start(seed, n):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, n, EVERY)
    link = tree.links[-1]
    q = tree.integrate(tree.neutral(), rng.uniform(-1, 1, tree.nv))
    start = tree.integrate(q, rng.uniform(-0.05, 0.05, tree.nv))
    for pose in (tree.forward_kinematics(link, q), tree.forward_kinematics(link, q)[:3, 3]):
        found = tree.inverse_kinematics(link, pose, start, freedoms=tree.coordinates)
        reached = tree.forward_kinematics(link, found)
        assert_allclose(reached if pose.ndim == 2 else reached[:3, 3], pose, rtol=0, atol=1e-8)
        still = [k for k, name in enumerate(tree.coordinates) if name not in tree.model.path(link)]
        assert_allclose(tree.difference(start, found)[still], 0, atol=1e-15)


def five_bar():
    """Two cranks of 0.5 m, 0.4 m apart, and two bars of 0.8 m that meet at the tip."""
    tree = sd.KinematicTree(gravity=(0, -9.81, 0))
    for side, x in (("left", 0.0), ("right", 0.4)):
        tree.attach(ROD, to="base", joint=sd.revolute("z"), at=(x, 0, 0), name=side)
        tree.attach(ROD, to=side, joint=sd.revolute("z", passive=True), at=(0.5, 0, 0), name=f"upper {side}")
    tree.attach(sd.Link("tip"), to="upper left", at=(0.8, 0, 0))
    tree.close("upper right", to="tip", joint=sd.revolute("z", (0.8, 0, 0)), at=(-0.8, 0, 0), name="pin")
    return tree


def test_a_five_bar_reaches_a_point_by_the_law_of_cosines():
    """Passive freedoms follow; the start does not close the loop."""
    tree, x, y = five_bar(), 0.3, 0.9
    q = tree.inverse_kinematics("tip", (x, y, 0), [1.9, -1.2, 1.1, 0.9])
    assert_allclose(tree.gap(q), 0, rtol=0, atol=1e-12)
    for name, foot, sign in (("left", 0.0, 1), ("right", 0.4, -1)):
        far = np.hypot(x - foot, y)
        inner = np.arccos((0.25 + far**2 - 0.64) / far)
        assert_allclose(q[tree.positions.index(name)], np.arctan2(y, x - foot) + sign * inner, rtol=1e-12)


@pytest.mark.slow
def test_out_of_reach_loops_stay_closed():
    with pytest.raises(sd.InverseKinematicsError, match=r"misses it by 1.53 m; choose") as caught:
        five_bar().inverse_kinematics("tip", (2, 2, 0), searches=4)
    assert_allclose(caught.value.position_error, 2 * np.sqrt(2) - 1.3, rtol=1e-5)
    assert_allclose(five_bar().gap(caught.value.q), 0, rtol=0, atol=1e-12)


def test_lengths_of_the_legs_of_a_stewart_platform():
    tree, feet, balls = stewart_platform()
    pose = sd.screw.pose(sd.screw.exp([0.02, -0.04, 0.2, 0, 0, 0])[:3, :3], (0.1, -0.05, 1.0))
    q = tree.inverse_kinematics("platform", pose)
    assert_allclose(tree.forward_kinematics("platform", q), pose, rtol=0, atol=1e-12)
    for k, (foot, ball) in enumerate(zip(feet, balls, strict=True)):
        assert_allclose(q[tree.positions.index(f"rod{k}")], np.linalg.norm((pose @ [*ball, 1])[:3] - foot), rtol=1e-11)


def test_passive_freedoms_and_those_left_out_stay():
    tree = planar(passive=True)
    with pytest.raises(sd.InverseKinematicsError) as caught:
        tree.inverse_kinematics("tip", (0.9, 0.8, 0), [0.1, 0.6])
    assert caught.value.q[1] == 0.6
    q = tree.inverse_kinematics("tip", (0.9, 0.8, 0), [0.1, 0.6], freedoms=tree.coordinates)
    assert_allclose(tree.forward_kinematics("tip", q)[:3, 3], (0.9, 0.8, 0), atol=1e-12)
    shoulder = planar().inverse_kinematics(
        "upper", planar().forward_kinematics("upper", [0.3, 0]), [0, 1], freedoms="shoulder"
    )
    assert_allclose(shoulder, [0.3, 1], rtol=1e-14)


def test_same_bits_in_every_call():
    arm = sd.robots.ur5()
    T = arm.forward_kinematics("tool0", [1, 1, 1, 1, 1, 1])
    assert_array_equal(arm.inverse_kinematics("tool0", T), arm.inverse_kinematics("tool0", T))


def test_a_link_that_nothing_moves_is_where_it_is():
    tree = planar()
    tree.attach(sd.Link("table"), to="base", at=(1, 0, 0))
    assert_array_equal(tree.inverse_kinematics("table", (1, 0, 0), [0.2, 0.3]), [0.2, 0.3])
    with pytest.raises(sd.InverseKinematicsError, match="nearest of 1 searches misses it by 1 m"):
        tree.inverse_kinematics("table", (1, 1, 0))
    with pytest.raises(sd.InverseKinematicsError, match=r"choose a pose within reach, or more freedoms \("):
        tree.inverse_kinematics("table", (1, 1, 0), freedoms=[])


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("tip", np.eye(3)), {}, r"pose must be a 4x4 matrix, or three numbers .* shape \(3, 3\)"),
        (("tip", 2 * np.eye(4)), {}, "not orthonormal"),
        (("tip", [[0, 1], [0]]), {}, "pose must be an array of real numbers"),
        (("tipp", (1, 0, 0)), {}, "'tip'"),
        (([0.2, 0.3], "tip", np.eye(4)), {}, r"no link \[0.2, 0.3\]: .* arguments are \(link, …\)"),
        (("tip", (1, 0, 0), np.zeros((3, 2))), {}, "one state"),
        (("tip", (1, 0, 0), [0.0]), {}, r"q0 has shape \(1,\)"),
        (("tip", (1, 0, 0)), {"freedoms": ["elbo"]}, "'elbow'"),
        (("tip", (1, 0, 0)), {"searches": 0}, "searches must be at least 1"),
        (("tip", (1, 0, 0)), {"tolerance": 0.0}, "tolerance positive"),
    ],
)
def test_wrong_arguments_are_named(arguments, options, message):
    with pytest.raises(sd.ScrewdynError, match=message):
        planar().inverse_kinematics(*arguments, **options)


@pytest.mark.parametrize("end", [1, -1])
def test_a_joint_of_several_turns_is_turned_back_to_the_middle(end):
    tree = sd.KinematicTree()
    tree.attach(ROD, to="base", joint=sd.revolute("z", limits=(-6 * np.pi, 6 * np.pi)), name="rod")
    target, limit = _Target(tree, "rod", np.eye(4), True, np.zeros(1), ["rod"]), np.array([end * 6 * np.pi])
    assert_allclose(target.turned_back(limit), 0, rtol=0, atol=1e-14)
    # Not if another joint follows it, which a whole turn would move to another pose.
    tree.attach(ROD, to="rod", joint=sd.revolute("z", mimic=sd.Mimic("rod", 0.25)), name="gear")
    assert _Target(tree, "rod", np.eye(4), True, np.zeros(1), ["rod"]).turned_back(limit) is None
