"""The robots against values from independent engines and the closed forms of their sources."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from screwdyn import robots
from screwdyn.views.scene import still

ORACLES = Path(__file__).parents[1] / "data" / "oracles"


def state_of(seed, n):
    rng = np.random.default_rng(seed)
    return rng.uniform(-3, 3, (3, n))


@pytest.mark.parametrize(
    ("name", "oracle"),
    [
        ("puma560", "puma560"),
        ("stanford", "stanford_rrp"),
        ("rtx", "rtx_prr"),
        ("truc_3r", "truc_3r"),
        ("ur5", "ur5"),
        ("panda", "panda"),
    ],
)
def test_robot_agrees_with_outside_engine(name, oracle):
    oracle = json.loads((ORACLES / f"{oracle}.json").read_text())
    tree = getattr(robots, name)()
    assert_allclose(tree.gravity, oracle["gravity"])
    assert len(oracle["states"]) == 3
    for state in oracle["states"]:
        q, qd, qdd = (np.array(state[key]) for key in ("q", "qd", "qdd"))
        assert_allclose(tree.mass_matrix(q), state["mass_matrix"], rtol=1e-9, atol=1e-9)
        assert_allclose(tree.coriolis_matrix(q, qd), state["coriolis_matrix"], rtol=1e-9, atol=1e-9)
        assert_allclose(tree.gravity_vector(q), state["gravity_vector"], rtol=1e-9, atol=1e-9)
        assert_allclose(tree.inverse_dynamics(q, qd, qdd), state["inverse_dynamics"], rtol=1e-9, atol=1e-9)
        for link, pose in state.get("poses", {}).items():
            assert_allclose(tree.forward_kinematics(link, q), pose, rtol=0, atol=1e-12)


def test_ur5_has_the_description_s_mass_matrix_and_names():
    oracle = json.loads((ORACLES / "ur5.json").read_text())
    tree = robots.ur5()
    assert list(tree.coordinates) == oracle["coordinates"]
    for state in oracle["states"]:
        assert_allclose(tree.mass_matrix(state["q"]), state["mass_matrix"], rtol=0, atol=1e-12)
    names = set(tree.links)
    assert {"world", "base_link", "base", "ee_link", "tool0", "wrist_3_link"} <= names
    assert tree.link("tool0").inertia is None
    assert_allclose(tree.joint("elbow_joint").limits, (-np.pi, np.pi))
    assert_allclose(tree.joint("wrist_1_joint").limits, (-2 * np.pi, 2 * np.pi))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "efforts"), [("ur5", [150.0] * 3 + [28.0] * 3), ("panda", [87.0] * 4 + [12.0] * 3)])
def test_arms_look_like_arms_and_have_the_limits_of_their_sources(name, efforts):
    tree = getattr(robots, name)()
    assert [tree.joint(joint).effort for joint in tree.coordinates] == efforts
    assert all(tree.joint(joint).velocity > 2 for joint in tree.coordinates)
    # Links with mass have shapes, which touch those of their neighbours however the joints turn.
    dressed = [link for link in tree.links if tree.shapes(link)]
    assert dressed == [link for link in tree.links if tree.link(link).inertia is not None]
    for q in np.random.default_rng(0).uniform(-2, 2, (3, tree.nq)):
        scene = still(tree, q)
        clouds = [
            np.concatenate([solid.placed(node.poses[0]).vertices for part in node.parts for solid in part.solids])
            for node in scene.nodes
            if node.name in dressed
        ]
        gaps = [np.linalg.norm(a[:, None] - b, axis=2).min() for a, b in pairwise(clouds)]
        assert max(gaps) < 0.03


@pytest.mark.parametrize(
    ("name", "coordinates"),
    [
        ("pelican", ("shoulder", "elbow")),
        ("two_link", ("theta1", "theta2")),
        ("puma560", tuple(f"joint{i}" for i in range(1, 7))),
        ("stanford", ("theta1", "theta2", "b3")),
        ("rtx", ("b1", "theta2", "theta3")),
        ("truc_3r", ("q1", "q2", "q3")),
        ("planar_rp", ("theta1", "b2")),
        ("planar_pr", ("b1", "theta2")),
    ],
)
def test_robots_of_papers_have_the_papers_coordinates(name, coordinates):
    tree = getattr(robots, name)()
    assert tree.coordinates == coordinates
    assert list(tree.links) == ["base", *(f"link{i + 1}" for i in range(len(coordinates)))]


def test_every_robot_is_listed_and_fresh():
    for name in robots.__all__:
        make = getattr(robots, name)
        first, second = make(), make()
        first.attach(first.link(first.base), to=first.links[-1], name="payload")
        assert len(first.links) > len(second.links)


@pytest.mark.parametrize("seed", range(3))
def test_pelican_is_laus_section_3(seed):
    """Laus Eqs. (47), (48), (51), (52) as printed."""
    a1, l1, l2, m1, m2, I1, I2, g = 0.26, 0.0983, 0.0229, 6.5225, 2.0458, 0.1213, 0.0116, 9.81
    tree = robots.pelican()
    q, qd, qdd = state_of(seed, 2)
    s2, c2, c1, c12 = np.sin(q[1]), np.cos(q[1]), np.cos(q[0]), np.cos(q.sum())
    M12 = m2 * l2 * (l2 + a1 * c2) + I2
    M2 = np.array([[m2 * (a1**2 + l2**2 + 2 * a1 * l2 * c2) + I2, M12], [M12, m2 * l2**2 + I2]])
    k = m2 * a1 * l2 * s2
    C = np.array([[-k * qd[1], -k * qd.sum()], [k * qd[0], 0]])
    g2 = m2 * g * np.array([a1 * c1 + l2 * c12, l2 * c12])
    M = M2 + np.diag([m1 * l1**2 + I1, 0])
    gravity = g2 + np.array([m1 * g * l1 * c1, 0])
    assert_allclose(tree.mass_matrix(q), M, rtol=1e-12)
    assert_allclose(tree.coriolis_matrix(q, qd), C, rtol=1e-12, atol=1e-14)
    assert_allclose(tree.gravity_vector(q), gravity, rtol=1e-12, atol=1e-14)
    assert_allclose(tree.inverse_dynamics(q, qd, qdd), M @ qdd + C @ qd + gravity, rtol=1e-12, atol=1e-13)


def test_pelican_s_frames_are_at_the_distal_joints():
    T = robots.pelican().forward_kinematics("link2", [np.pi / 2, -np.pi / 2])
    assert_allclose(T[:3, 3], [0.26, 0.26, 0], atol=1e-15)


@pytest.mark.parametrize("seed", range(3))
def test_two_link_is_fu_section_3_2_6(seed):
    """Fu's final equations of motion, the same in 3.2.6 and 3.4.2.

    The pseudo-inertias printed on the way there have 1/2 m l^2 where the result needs 1/3.
    """
    m1, m2, l, g = 1.3, 0.7, 0.9, 9.8062
    tree = robots.two_link(m1, m2, l)
    q, qd, qdd = state_of(seed, 2)
    s2, c2, c1, c12 = np.sin(q[1]), np.cos(q[1]), np.cos(q[0]), np.cos(q.sum())
    M12 = m2 * l**2 * (1 / 3 + c2 / 2)
    M = np.array([[m1 * l**2 / 3 + m2 * l**2 * (4 / 3 + c2), M12], [M12, m2 * l**2 / 3]])
    h = m2 * l**2 * s2 * np.array([-(qd[1] ** 2) / 2 - qd[0] * qd[1], qd[0] ** 2 / 2])
    gravity = g * l * np.array([m1 * c1 / 2 + m2 * c12 / 2 + m2 * c1, m2 * c12 / 2])
    assert_allclose(tree.mass_matrix(q), M, rtol=1e-12)
    assert_allclose(tree.coriolis_matrix(q, qd) @ qd, h, rtol=1e-11, atol=1e-13)
    assert_allclose(tree.gravity_vector(q), gravity, rtol=1e-12, atol=1e-14)
    assert_allclose(tree.inverse_dynamics(q, qd, qdd), M @ qdd + h + gravity, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_truc_3r_has_the_closed_forms_of_its_source(seed):
    """Truc Eqs. (64), (65), (67), (69) with the numbers of (71)."""
    l1, r1, r2, m2, m3, g = 0.19, 0.088, 0.08, 2.412, 1.577, 9.807
    I1yy, (I2x, I2y, I2z), (I3x, I3y, I3z) = 0.0304, (0.0159, 0.0405, 0.0405), (0.0079, 0.0202, 0.0202)
    tree = robots.truc_3r()
    q, qd, _ = state_of(seed, 3)
    s2, c2, s3, c3 = np.sin(q[1]), np.cos(q[1]), np.sin(q[2]), np.cos(q[2])
    s23, c23 = np.sin(q[1] + q[2]), np.cos(q[1] + q[2])
    M = np.zeros((3, 3))
    M[0, 0] = (
        I3y * c23**2 + I3x * s23**2 + I2x * s2**2 + I1yy + (m2 * r1**2 + I2y) * c2**2 + m3 * (r2 * c23 + l1 * c2) ** 2
    )
    M[1, 1] = 2 * l1 * m3 * r2 * c3 + (l1**2 + r2**2) * m3 + m2 * r1**2 + I3z + I2z
    M[2, 2] = m3 * r2**2 + I3z
    M[1, 2] = M[2, 1] = l1 * m3 * r2 * c3 + m3 * r2**2 + I3z
    k3, k2, bend = m3 * r2**2 + I3y - I3x, l1**2 * m3 + m2 * r1**2 - I2x + I2y, l1 * m3 * r2 * s3
    C = np.zeros((3, 3))
    C[0, 0] = (
        -(k3 * (qd[1] + qd[2]) * s23 + m3 * r2 * l1 * (2 * qd[1] + qd[2]) * s2) * c23
        - k2 * c2 * s2 * qd[1]
        - bend * (qd[1] + qd[2])
    )
    C[1, 0] = ((k3 * s23 + 2 * l1 * s2 * m3 * r2) * c23 + k2 * c2 * s2 + bend) * qd[0]
    C[2, 0] = ((k3 * s23 + l1 * s2 * m3 * r2) * c23 + bend) * qd[0]
    C[0, 1:] = -C[1:, 0]
    C[1, 1:] = -bend * qd[2], -bend * (qd[1] + qd[2])
    C[2, 1] = bend * qd[1]
    gravity = -g * np.array([0, (l1 * m3 + m2 * r1) * c2 + m3 * r2 * c23, m3 * r2 * c23])
    assert_allclose(tree.mass_matrix(q), M, rtol=1e-12, atol=1e-15)
    assert_allclose(tree.gravity_vector(q), gravity, rtol=1e-12, atol=1e-14)
    assert_allclose(tree.coriolis_matrix(q, qd), C, rtol=1e-11, atol=1e-14)


def test_planar_arms_have_the_jacobians_of_bhangale():
    rp, pr = robots.planar_rp(a1=0.3), robots.planar_pr(a2=0.7)
    theta, b = 0.4, 0.5
    assert_allclose(rp.forward_kinematics("link2", [theta, b])[:2, 3], 0.8 * np.array([np.cos(theta), np.sin(theta)]))
    # Eq. 22
    J = [[1, -0.7 * np.sin(theta)], [0, 0.7 * np.cos(theta)]]
    assert_allclose(pr.jacobian("link2", [b, theta], "mixed")[3:5], J, atol=1e-15)
    m2, M = 2.45, pr.mass_matrix([b, theta])
    off = -m2 * 0.35 * np.sin(theta)
    assert_allclose(M, [[14.7, off], [off, m2 * 0.7**2 / 3]], rtol=1e-13)
    M = rp.mass_matrix([theta, b])
    assert_allclose(M, np.diag([12.25 * 0.01 / 2 + m2 * (0.8584**2 / 12 + (0.8 - 0.4292) ** 2), m2]), atol=1e-14)
