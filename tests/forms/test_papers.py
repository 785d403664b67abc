"""Closed forms printed in the literature, entry by entry, with their misprints named.

Laus is docs/mathematics.md [1]. Closed forms of two more papers are in ``test_robots``.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from screwdyn import Inertia, KinematicTree, Link, padded_sum, revolute, robots, screw

SEEDS = range(3)


class Crucible:
    """Laus section 3 with random dimensions: the arm, its payload, a state, and the paper's abbreviations."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.a1, self.a2, self.a3, self.l1, self.l2, self.l3 = rng.uniform(0.1, 0.9, 6)
        self.m1, self.m2, self.m3 = rng.uniform(0.5, 5, 3)
        self.I1, self.I2, self.I3 = rng.uniform(0.01, 0.5, 3)
        self.g = 9.81
        self.q, self.qd, self.qdd = rng.uniform(-3, 3, (3, 3))
        q1, q2, q3 = self.q
        self.s1, self.s2, self.s3, self.s12, self.s23, self.s123 = np.sin([q1, q2, q3, q1 + q2, q2 + q3, q1 + q2 + q3])
        self.c1, self.c2, self.c3, self.c12, self.c23, self.c123 = np.cos([q1, q2, q3, q1 + q2, q2 + q3, q1 + q2 + q3])
        self.arm = robots.pelican(self.a1, self.a2, self.l1, self.l2, self.m1, self.m2, self.I1, self.I2, self.g)
        self.tree = self.arm.copy()
        # The link frame lies at the distal end, Table 1; the hook is at the tip of link 2.
        self.tree.attach(
            Inertia.planar(self.m3, (self.l3 - self.a3, 0), self.I3),
            to="link2",
            joint=revolute("z", (-self.a3, 0, 0), passive=True, name="swing"),
            at=(self.a3, 0, 0),
            name="crucible",
        )
        self.parts = self.tree.contributions(self.q, self.qd)

    def in_base_axes(self, part):
        """J̄ of Laus Eq. 30: the twist at the centre of mass in axes of the base."""
        R = self.tree.forward_kinematics(part.link, self.q)[:3, :3]
        return np.kron(np.eye(2), R) @ part.J

    def M3(self):
        """Eq. 58 without its misprints."""
        a1, a2, l3, m3, I3 = self.a1, self.a2, self.l3, self.m3, self.I3
        m11 = m3 * (l3 + a2 * self.c3 + a1 * self.c23) ** 2 + m3 * (a2 * self.s3 + a1 * self.s23) ** 2 + I3
        m12 = m3 * (a2**2 + l3**2 + a1 * a2 * self.c2 + 2 * a2 * l3 * self.c3 + a1 * l3 * self.c23) + I3
        m13 = l3 * m3 * (l3 + a2 * self.c3 + a1 * self.c23) + I3
        m22 = m3 * (a2**2 + l3**2 + 2 * a2 * l3 * self.c3) + I3
        m23 = l3 * m3 * (l3 + a2 * self.c3) + I3
        m33 = m3 * l3**2 + I3
        return np.array([[m11, m12, m13], [m12, m22, m23], [m13, m23, m33]])

    def C3(self):
        """Eq. 59 without its misprints."""
        a1, a2, l3, m3 = self.a1, self.a2, self.l3, self.m3
        s2, s3, s23, (d1, d2, d3) = self.s2, self.s3, self.s23, self.qd
        bend, swing = a1 * (a2 * s2 + l3 * s23), l3 * (a2 * s3 + a1 * s23)
        return m3 * np.array(
            [
                [-bend * d2 - swing * d3, -bend * (d1 + d2) - swing * d3, -swing * (d1 + d2 + d3)],
                [bend * d1 - a2 * l3 * s3 * d3, -l3 * a2 * s3 * d3, -l3 * a2 * s3 * (d1 + d2 + d3)],
                [l3 * (a2 * s3 * (d1 + d2) + a1 * s23 * d1), l3 * a2 * s3 * (d1 + d2), 0],
            ]
        )


@pytest.fixture(params=SEEDS)
def laus(request):
    return Crucible(request.param)


def equal(actual, expected):
    assert_allclose(actual, expected, rtol=1e-12, atol=1e-13)


def test_laus_centres_of_mass(laus):
    """Eqs. 40 and 55, from the poses of Eqs. 38, 39 and 54."""
    x1, y1 = laus.a1 * laus.c1, laus.a1 * laus.s1
    x2, y2 = x1 + laus.a2 * laus.c12, y1 + laus.a2 * laus.s12
    expected = {
        "link1": (laus.l1 * laus.c1, laus.l1 * laus.s1, 0),
        "link2": (x1 + laus.l2 * laus.c12, y1 + laus.l2 * laus.s12, 0),
        "crucible": (x2 + laus.l3 * laus.c123, y2 + laus.l3 * laus.s123, 0),
    }
    for name, p in expected.items():
        T = laus.tree.forward_kinematics(name, laus.q)
        equal(T[:3, :3] @ laus.tree.link(name).inertia.com + T[:3, 3], p)


def test_laus_jacobians(laus):
    """Eqs. 45, 46 and 57: the columns in the base frame, and each link's own in its com frame."""
    J0 = laus.tree.jacobian("link2", laus.q, "base")
    equal(J0[:, :2], np.transpose([[0, 0, 1, 0, 0, 0], [0, 0, 1, laus.a1 * laus.s1, -laus.a1 * laus.c1, 0]]))
    equal(laus.tree.jacobian("link1", laus.q, "base")[:, 0], [0, 0, 1, 0, 0, 0])
    one, two, three = (part.J for part in laus.parts)
    equal(one, np.transpose([[0, 0, 1, 0, laus.l1, 0]]))
    reach = laus.l2 + laus.a1 * laus.c2
    equal(two, np.transpose([[0, 0, 1, laus.a1 * laus.s2, reach, 0], [0, 0, 1, 0, laus.l2, 0]]))
    x, y = laus.a2 * laus.s3, laus.l3 + laus.a2 * laus.c3
    first = [0, 0, 1, x + laus.a1 * laus.s23, y + laus.a1 * laus.c23, 0]
    equal(three, np.transpose([first, [0, 0, 1, x, y, 0], [0, 0, 1, 0, laus.l3, 0]]))


def test_laus_jacobians_in_axes_of_the_base(laus):
    """Eqs. 49, 50 and 60. Eq. 49 is printed with a zero column too many, Eq. 60 without its last two entries."""
    arms = [
        [(laus.l1 * laus.c1, laus.l1 * laus.s1)],
        [(laus.a1 * laus.c1, laus.a1 * laus.s1), (laus.l2 * laus.c12, laus.l2 * laus.s12)],
        [
            (laus.a1 * laus.c1, laus.a1 * laus.s1),
            (laus.a2 * laus.c12, laus.a2 * laus.s12),
            (laus.l3 * laus.c123, laus.l3 * laus.s123),
        ],
    ]
    for part, arm in zip(laus.parts, arms, strict=True):
        columns = [np.sum(arm[k:], axis=0) for k in range(len(arm))]
        equal(laus.in_base_axes(part), np.transpose([[0, 0, 1, -y, x, 0] for x, y in columns]))


def test_laus_contributions_of_the_arm(laus):
    """Eqs. 47, 48, 51 and 52."""
    one, two, _ = laus.parts
    equal(one.M, [[laus.m1 * laus.l1**2 + laus.I1]])
    equal(one.C, [[0]])
    equal(one.g, [laus.m1 * laus.g * laus.l1 * laus.c1])
    m, a, l, I = laus.m2, laus.a1, laus.l2, laus.I2
    M12 = m * l * (l + a * laus.c2) + I
    equal(two.M, [[m * (a**2 + l**2 + 2 * a * l * laus.c2) + I, M12], [M12, m * l**2 + I]])
    k, (d1, d2) = m * a * l * laus.s2, laus.qd[:2]
    equal(two.C, [[-k * d2, -k * (d1 + d2)], [k * d1, 0]])
    equal(two.g, [m * laus.g * (a * laus.c1 + l * laus.c12), m * laus.g * l * laus.c12])


def test_laus_contribution_of_the_payload(laus):
    """Eqs. 58, 59 and 61."""
    payload = laus.parts[2]
    assert payload.coordinates == ("shoulder", "elbow", "swing")
    equal(payload.M, laus.M3())
    equal(payload.C, laus.C3())
    third = laus.l3 * laus.c123
    second = laus.a2 * laus.c12 + third
    equal(payload.g, laus.m3 * laus.g * np.array([laus.a1 * laus.c1 + second, second, third]))


def test_laus_totals(laus):
    """Eqs. 62 to 64: ‡ over the arm and the payload is the whole; over the arm alone, the arm."""
    tree, arm, q, qd = laus.tree, laus.arm, laus.q, laus.qd
    one, two, three = laus.parts
    names = tree.coordinates
    equal(tree.mass_matrix(q), (one.M + two.M + three.M).matrix(names))
    equal(tree.coriolis_matrix(q, qd), (one.C + two.C + three.C).matrix(names))
    equal(tree.gravity_vector(q), (one.g + two.g + three.g).matrix(names))
    equal(arm.mass_matrix(q[:2]), padded_sum([one.M, two.M]).matrix(names[:2]))
    equal(arm.coriolis_matrix(q[:2], qd[:2]), padded_sum([one.C, two.C]).matrix(names[:2]))
    equal(arm.gravity_vector(q[:2]), padded_sum([one.g, two.g]).matrix(names[:2]))
    equal(tree.actuation_matrix, [[1, 0], [0, 1], [0, 0]])


def test_laus_misprints(laus):
    """The printed entries of Eqs. 58 and 59 that differ from those above; units or symmetry exclude the printed ones.

    * m_3,11 has a factor m_3 too many on its second square (kg² m²).
    * m_3,33 repeats m_3,32; a link's inertia about its own axis does not depend on θ_3.
    * The entries m_3,21 and m_3,23 are printed under the names m_3,22 and m_3,31.
    * c_3,12 lacks a factor a_1 (its unit is that of a force).
    * c_3,22 repeats c_3,23; it is ½ ∂m_3,22/∂θ_3 θ̇_3.
    * Several lines of Eq. 58 come twice.
    * Eq. 56 has b_3 for l_3, and $_g above Eq. 49 five entries for six.
    """
    a1, a2, l3, m3 = laus.a1, laus.a2, laus.l3, laus.m3
    d1, d2, d3 = laus.qd
    M, C = laus.M3(), laus.C3()
    square = (a2 * laus.s3 + a1 * laus.s23) ** 2
    m11 = m3 * (l3 + a2 * laus.c3 + a1 * laus.c23) ** 2 + m3 * square * m3 + laus.I3
    assert m11 - M[0, 0] == pytest.approx(m3 * (m3 - 1) * square, rel=1e-9)
    m33 = m3 * l3 * (l3 + a2 * laus.c3) + laus.I3
    assert m33 - M[2, 2] == pytest.approx(m3 * l3 * a2 * laus.c3, rel=1e-9)
    c12 = -m3 * ((a2 * laus.s2 + l3 * laus.s23) * (d1 + d2) + l3 * (a2 * laus.s3 + a1 * laus.s23) * d3)
    missing = m3 * (a1 - 1) * (a2 * laus.s2 + l3 * laus.s23) * (d1 + d2)
    assert c12 - C[0, 1] == pytest.approx(missing, rel=1e-9)
    c22 = -m3 * l3 * a2 * laus.s3 * (d1 + d2 + d3)
    assert c22 - C[1, 1] == pytest.approx(-m3 * l3 * a2 * laus.s3 * (d1 + d2), rel=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_truc_energy_and_skewness(seed):
    """Truc Eqs. 61, 68 and 70 with the numbers of Eq. 71; in Eq. 70, I_3zz is printed for I_3xx, both times."""
    l0, r0, l1, r1, r2 = 0.294, 0.140, 0.190, 0.088, 0.080
    m1, m2, m3, g = 5.248, 2.412, 1.577, 9.807
    I2x, I2y, I3x, I3y = 0.0159, 0.0405, 0.0079, 0.0202
    tree = robots.truc_3r()
    q, qd = np.random.default_rng(seed).uniform(-3, 3, (2, 3))
    s1, s2, s3, c1, c2 = np.sin(q[0]), np.sin(q[1]), np.sin(q[2]), np.cos(q[0]), np.cos(q[1])
    s23, c23 = np.sin(q[1] + q[2]), np.cos(q[1] + q[2])
    reach = c2 * l1 + c23 * r2
    centres = {
        "link1": (0, 0, r0),
        "link2": (r1 * c1 * c2, r1 * s1 * c2, l0 - r1 * s2),
        "link3": (reach * c1, reach * s1, l0 - l1 * s2 - r2 * s23),
    }
    for name, p in centres.items():
        T = tree.forward_kinematics(name, q)
        equal(T[:3, :3] @ tree.link(name).inertia.com + T[:3, 3], p)
    P = g * (l0 * m2 + l0 * m3 + m1 * r0 - (l1 * m3 + m2 * r1) * s2 - m3 * r2 * s23)
    equal(tree.potential_energy(q), P)
    C = tree.coriolis_matrix(q, qd)
    skew = C.T - C  # Ṁ − 2C with Ṁ = C + Cᵀ
    k, bend = (m3 * r2**2 + I3y - I3x) * s23, l1 * m3 * r2 * s3
    sway = (l1**2 * m3 + m2 * r1**2 - I2x + I2y) * c2 * s2
    equal(skew[0, 1], 2 * ((k + 2 * l1 * s2 * m3 * r2) * c23 + sway + bend) * qd[0])
    equal(skew[0, 2], 2 * ((k + l1 * s2 * m3 * r2) * c23 + bend) * qd[0])
    equal(skew[1, 2], bend * (2 * qd[1] + qd[2]))


class TestModernRobotics:
    """The three links of an arm similar to the UR5, the example of functions of the modern_robotics package.

    Numbers as in the documentation of MassMatrix, VelQuadraticForces, GravityForces, EndEffectorForces,
    InverseDynamics and ForwardDynamics (K. M. Lynch, F. C. Park, "Modern Robotics", Cambridge 2017, chapter 8), to all
    eight digits. Link frames lie at the centres of mass; the joints are given as screws in the base frame. The first of
    them, [1, 0, 1; 0, 1, 0], is no unit screw: it turns √2 radians per unit of its coordinate, hence ``unit``.
    """

    unit = np.array([np.sqrt(2), 1, 1])
    q, qd, qdd = unit * [0.1, 0.1, 0.1], unit * [0.1, 0.2, 0.3], unit * [2, 1.5, 1]

    @pytest.fixture
    def push(self):
        """By the hand on the world there, so that the world's on the hand is its negative."""
        return {"hand": -np.ones(6)}

    @pytest.fixture
    def tree(self):
        turned = np.array([[0, 0, 1, 0.28], [0, 1, 0, 0.13585], [-1, 0, 0, 0], [0, 0, 0, 1]])
        homes = [(0, 0, 0.089159), turned, (0, -0.1197, 0.395)]
        bodies = [
            (3.7, (0.010267, 0.010267, 0.00666)),
            (8.393, (0.22689, 0.22689, 0.0151074)),
            (2.275, (0.0494433, 0.0494433, 0.004095)),
        ]
        screws = np.array([[1, 0, 1, 0, 1, 0], [0, 1, 0, -0.089, 0, 0], [0, 1, 0, -0.089, 0, 0.425]], dtype=float)
        tree = KinematicTree(gravity=(0, 0, -9.8))
        T = np.eye(4)
        for i, (home, (mass, moments), S) in enumerate(zip(homes, bodies, screws, strict=True), start=1):
            T = T @ screw.as_pose(home)
            joint = revolute(*screw.axis(screw.Ad(screw.inverse(T)) @ S))
            tree.attach(Link(f"link{i}", Inertia(mass, tensor=moments)), to=tree.links[-1], joint=joint, at=home)
        tree.attach(Link("hand"), to="link3", at=(0, 0, 0.14225))
        return tree

    def test_mass_matrix(self, tree):
        expected = [
            [22.5433380, -0.307146754, -0.00718426391],
            [-0.307146754, 1.96850717, 0.432157368],
            [-0.00718426391, 0.432157368, 0.191630858],
        ]
        M = tree.mass_matrix(self.q) * np.outer(self.unit, self.unit)
        assert_allclose(M, expected, rtol=5e-9)

    def test_velocity_quadratic_forces(self, tree):
        expected = [0.26453118, -0.05505157, -0.00689132]
        C = tree.coriolis_matrix(self.q, self.qd)
        assert_allclose(self.unit * (C @ self.qd), expected, rtol=0, atol=5.1e-9)
        assert_allclose(self.unit * tree.velocity_product(self.q, self.qd), expected, rtol=0, atol=5.1e-9)

    def test_gravity_forces(self, tree):
        g = self.unit * tree.gravity_vector(self.q)
        assert_allclose(g, [28.40331262, -37.64094817, -5.4415892], rtol=0, atol=5.1e-9)

    def test_end_effector_forces(self, tree, push):
        expected = [1.40954608, 1.85771497, 1.392409]
        assert_allclose(-self.unit * tree.wrench_torque(self.q, push), expected, rtol=0, atol=5.1e-9)

    def test_inverse_dynamics(self, tree, push):
        tau = self.unit * tree.inverse_dynamics(self.q, self.qd, self.qdd, push)
        assert_allclose(tau, [74.69616155, -33.06766016, -3.23057314], rtol=0, atol=5.1e-9)

    def test_forward_dynamics(self, tree, push):
        tau = np.array([0.5, 0.6, 0.7]) / self.unit
        qdd = tree.forward_dynamics(self.q, self.qd, tau, push)
        assert_allclose(qdd / self.unit, [-0.97392907, 25.58466784, -32.91499212], rtol=0, atol=5.1e-9)
