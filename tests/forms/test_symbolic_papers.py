"""Closed forms equal those of the literature, and are as short as printed."""

from functools import cache

import pytest
import sympy as sp
from sympy import Matrix, Rational, cos, sin

import screwdyn as sd

T1, T2, T3 = sp.symbols("theta1:4", real=True)
D1, D2, D3 = sp.symbols("theta1_dot theta2_dot theta3_dot", real=True)
E1, E2 = sp.symbols("theta1_ddot theta2_ddot", real=True)
c1, c2, c3, c12, c23, c123 = cos(T1), cos(T2), cos(T3), cos(T1 + T2), cos(T2 + T3), cos(T1 + T2 + T3)
s1, s2, s3, s12, s23, s123 = sin(T1), sin(T2), sin(T3), sin(T1 + T2), sin(T2 + T3), sin(T1 + T2 + T3)


def same(actual, printed):
    difference = actual - Matrix(printed)
    assert all(map(vanishes, difference)), difference


def vanishes(x):
    """Whether an expression is 0: a quotient of polynomials in sines and cosines of symbols, modulo sin² + cos² = 1."""
    x = sp.expand_trig(x.replace(lambda f: isinstance(f, sin | cos), lambda f: f.func(sp.expand(f.args[0]))))
    angles = sorted({wave.args[0] for wave in x.atoms(sin, cos)}, key=str)
    waves = {wave(angle): sp.Dummy() for wave in (sin, cos) for angle in angles}
    x = sp.numer(sp.together(x.xreplace(waves)))
    circles = [waves[sin(angle)] ** 2 + waves[cos(angle)] ** 2 - 1 for angle in angles]
    return sp.reduced(x, circles, *waves.values())[1] == 0 if angles else sp.expand(x) == 0


def operations(matrix):
    return sum(map(sp.count_ops, Matrix(matrix)))


# Laus section 3: the pelican and its payload
a1, a2, a3, l1, l2, l3, m1, m2, m3, I1, I2, I3, g = sp.symbols("a1:4 l1:4 m1:4 I1:4 g")
M1 = [[m1 * l1**2 + I1]]  # Eq. 47
M2 = [
    [m2 * (a1**2 + l2**2 + 2 * a1 * l2 * c2) + I2, m2 * l2 * (l2 + a1 * c2) + I2],
    [m2 * l2 * (l2 + a1 * c2) + I2, m2 * l2**2 + I2],
]
# Eq. 58 has m3 once too often in its first entry: m3 (…)² + m3 (…)² m3.
M3 = [
    [
        m3 * (l3 + a2 * c3 + a1 * c23) ** 2 + m3 * (a2 * s3 + a1 * s23) ** 2 + I3,
        m3 * (a2**2 + l3**2 + a1 * a2 * c2 + 2 * a2 * l3 * c3 + a1 * l3 * c23) + I3,
        l3 * m3 * (l3 + a2 * c3 + a1 * c23) + I3,
    ],
    [
        m3 * (a2**2 + l3**2 + a1 * a2 * c2 + 2 * a2 * l3 * c3 + a1 * l3 * c23) + I3,
        m3 * (a2**2 + l3**2 + 2 * a2 * l3 * c3) + I3,
        l3 * m3 * (l3 + a2 * c3) + I3,
    ],
    # The last entry is printed like the one before it; m3 l3² + I3 is meant, as in M1 and M2.
    [l3 * m3 * (l3 + a2 * c3 + a1 * c23) + I3, m3 * l3 * (l3 + a2 * c3) + I3, m3 * l3**2 + I3],
]
C2 = [[-m2 * a1 * l2 * s2 * D2, -m2 * a1 * l2 * s2 * (D1 + D2)], [m2 * a1 * l2 * s2 * D1, 0]]  # Eq. 48
# Eq. 59, where a1 is missing before (a2 s2 + l3 s23) in the second entry, and the middle one is printed like its
# neighbour; it is −m3 l3 a2 s3 θ̇3.
C3 = [
    [
        -m3 * (a1 * (a2 * s2 + l3 * s23) * D2 + l3 * (a2 * s3 + a1 * s23) * D3),
        -m3 * (a1 * (a2 * s2 + l3 * s23) * (D1 + D2) + l3 * (a2 * s3 + a1 * s23) * D3),
        -m3 * l3 * (a2 * s3 + a1 * s23) * (D1 + D2 + D3),
    ],
    [
        m3 * (a1 * (a2 * s2 + l3 * s23) * D1 - a2 * l3 * s3 * D3),
        -m3 * l3 * a2 * s3 * D3,
        -m3 * l3 * a2 * s3 * (D1 + D2 + D3),
    ],
    [m3 * l3 * (a2 * s3 * (D1 + D2) + a1 * s23 * D1), m3 * l3 * a2 * s3 * (D1 + D2), 0],
]
g1 = [m1 * g * l1 * c1]  # Eqs. 51, 52, 61
g2 = [m2 * g * (a1 * c1 + l2 * c12), m2 * g * l2 * c12]
g3 = [m3 * g * (a1 * c1 + a2 * c12 + l3 * c123), m3 * g * (a2 * c12 + l3 * c123), m3 * g * l3 * c123]


class TestLaus:
    """Laus Eqs. 45-64."""

    @classmethod
    @cache
    def derived(cls):
        """The closed forms of the arm without and with its payload, and those derived before the attachment."""

        def body(m, length, a, I):
            return sd.Inertia.planar(m, (length - a, 0), I)

        rows = [
            {"a": a1, "inertia": body(m1, l1, a1, I1), "joint": "theta1"},
            {"a": a2, "inertia": body(m2, l2, a2, I2), "joint": "theta2"},
        ]
        tree = sd.KinematicTree.from_dh(rows, gravity=(0, -g, 0))
        alone = tree.symbolic()
        before = alone.contributions()
        # The frame of the payload lies a3 beyond its joint, as the frames of Table 1 do.
        hook = sd.revolute("z", point=(-a3, 0, 0), name="theta3", passive=True)
        tree.attach(body(m3, l3, a3, I3), to="link2", joint=hook, at=(a3, 0, 0), name="payload")
        return alone, tree.symbolic(), before

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("link", "J"),
        [
            ("link1", [[0], [0], [1], [0], [l1], [0]]),
            ("link2", [[0, 0], [0, 0], [1, 1], [a1 * s2, 0], [l2 + a1 * c2, l2], [0, 0]]),
            (
                "payload",
                [
                    [0, 0, 0],
                    [0, 0, 0],
                    [1, 1, 1],
                    [a2 * s3 + a1 * s23, a2 * s3, 0],
                    [l3 + a2 * c3 + a1 * c23, l3 + a2 * c3, l3],
                    [0, 0, 0],
                ],
            ),
        ],
    )
    def test_jacobians(self, link, J):
        """Eqs. 46 and 57."""
        part = self.derived()[1].contribution(link)
        same(part.J, J)
        assert operations(part.J) <= operations(J)

    def test_jacobians_in_the_base(self):
        """Eq. 45, and Eqs. 43 and 44, whose z and p × z its columns are."""
        alone, *_ = self.derived()
        same(alone.jacobian("link1", "base")[:, 0], [0, 0, 1, 0, 0, 0])
        same(alone.jacobian("link2", "base"), [[0, 0], [0, 0], [1, 1], [0, a1 * s1], [0, -a1 * c1], [0, 0]])

    @pytest.mark.slow
    def test_poses(self):
        """Eqs. 53 to 55."""
        sym = self.derived()[1]
        A2, A3 = sym.forward_kinematics("link2"), sym.forward_kinematics("payload")
        x, y = a1 * c1 + a2 * c12 + a3 * c123, a1 * s1 + a2 * s12 + a3 * s123
        same(A3, [[c123, -s123, 0, x], [s123, c123, 0, y], [0, 0, 1, 0], [0, 0, 0, 1]])
        same(A2.inv() * A3, [[c3, -s3, 0, a3 * c3], [s3, c3, 0, a3 * s3], [0, 0, 1, 0], [0, 0, 0, 1]])
        com = A3 * Matrix([l3 - a3, 0, 0, 1])
        same(com, [a1 * c1 + a2 * c12 + l3 * c123, a1 * s1 + a2 * s12 + l3 * s123, 0, 1])

    @pytest.mark.slow
    def test_screw_transformation(self):
        """Eq. 56, with l3 where b3 is printed, is [[R, 0], [−R S(p), R]] of Eq. 22, and gives Eq. 57 from Eq. 23."""
        sym = self.derived()[1]
        A = sym.forward_kinematics("payload")
        R, com = A[:3, :3].T, A * Matrix([l3 - a3, 0, 0, 1])
        T = sp.BlockMatrix([[R, sp.zeros(3)], [-R * com[:3, 0].hat(), R]]).as_explicit()
        x, y = a1 * c1 + a2 * c12 + l3 * c123, a1 * s1 + a2 * s12 + l3 * s123
        printed = [
            [c123, s123, 0, 0, 0, 0],
            [-s123, c123, 0, 0, 0, 0],
            [0, 0, 1, 0, 0, 0],
            [0, 0, a2 * s3 + a1 * s23, c123, s123, 0],
            [0, 0, l3 + a2 * c3 + a1 * c23, -s123, c123, 0],
            [y, -x, 0, 0, 0, 1],
        ]
        same(T, printed)
        same(Matrix(printed) * sym.jacobian("payload", "base"), sym.contribution("payload").J)

    @pytest.mark.parametrize(
        ("link", "x", "y"),
        [
            ("link1", [l1 * c1], [l1 * s1]),
            ("link2", [a1 * c1 + l2 * c12, l2 * c12], [a1 * s1 + l2 * s12, l2 * s12]),
            (
                "payload",
                [a1 * c1 + a2 * c12 + l3 * c123, a2 * c12 + l3 * c123, l3 * c123],
                [a1 * s1 + a2 * s12 + l3 * s123, a2 * s12 + l3 * s123, l3 * s123],
            ),
        ],
    )
    def test_jacobians_of_centres_of_mass_in_base_axes(self, link, x, y):
        """Eqs. 49, 50 and 60: J̄ of Eq. 31. Eq. 49 has a column too many, Eq. 60 two entries too few."""
        sym = self.derived()[1]
        R = sym.forward_kinematics(link)[:3, :3]
        J = sp.diag(R, R) * sym.contribution(link).J
        k = len(x)
        same(J, [[0] * k, [0] * k, [1] * k, [-entry for entry in y], x, [0] * k])

    @pytest.mark.parametrize("which", "MCg")
    def test_contributions(self, which):
        """Eqs. 47, 48, 51, 52, 58, 59 and 61: right, and in no more operations than printed."""
        _, full, _ = self.derived()
        printed = {
            "M": (M1, M2, M3),
            "C": ([[0]], C2, C3),
            "g": (g1, g2, g3),
        }[which]
        for link, matrix in zip(("link1", "link2", "payload"), printed, strict=True):
            actual = getattr(full.contribution(link), which).array
            same(actual, matrix)
            assert operations(actual) <= operations(matrix)

    @pytest.mark.slow
    def test_model(self):
        """Eqs. 62-64: the padded sum of the contributions."""
        _, full, _ = self.derived()
        totals = full.mass_matrix(), full.coriolis_matrix(), full.gravity_vector()
        for total, which in zip(totals, "MCg", strict=True):
            found = sd.padded_sum(getattr(part, which) for part in full.contributions())
            assert found.coordinates == full.coordinates
            same(total, found.array)

    def test_payload_alone_is_derived(self):
        _, full, before = self.derived()
        assert all(full.contribution(part.link) is part for part in before)

    def test_pelican_is_as_compact_as_printed(self):
        alone, *_ = self.derived()
        M = Matrix(M2) + Matrix([[M1[0][0], 0], [0, 0]])
        assert operations(alone.mass_matrix()) <= operations(M)
        assert operations(alone.coriolis_matrix()) <= operations(C2)
        assert operations(alone.gravity_vector()) <= operations([g1[0] + g2[0], g2[1]])
        assert str(alone.gravity_vector()[1]) == "g*l2*m2*cos(theta1 + theta2)"
        assert str(alone.contribution("link2").C["theta2", "theta1"]) == "a1*l2*m2*theta1_dot*sin(theta2)"


class TestTruc:
    """The three-link manipulator, Truc Eqs. 58-70."""

    l0, l1, l2, r0, r1, r2, m1, m2, m3, g = sp.symbols("l0:3 r0:3 m1:4 g")
    I1, I2, I3 = ((sp.Symbol(f"I{i}xx"), sp.Symbol(f"I{i}yy"), sp.Symbol(f"I{i}zz")) for i in (1, 2, 3))
    q1, q2, q3 = sp.symbols("q1:4", real=True)
    d1, d2, d3 = sp.symbols("q1_dot q2_dot q3_dot", real=True)

    @classmethod
    @cache
    def derived(cls):
        rows = [
            {"d": cls.l0, "alpha": -sp.pi / 2, "m": cls.m1, "com": (0, cls.l0 - cls.r0, 0), "inertia": cls.I1},
            {"a": cls.l1, "m": cls.m2, "com": (cls.r1 - cls.l1, 0, 0), "inertia": cls.I2},
            {"a": cls.l2, "m": cls.m3, "com": (cls.r2 - cls.l2, 0, 0), "inertia": cls.I3},
        ]
        named = [{**row, "joint": f"q{i}"} for i, row in enumerate(rows, start=1)]
        return sd.KinematicTree.from_dh(named, gravity=(0, 0, -cls.g)).symbolic()

    @pytest.mark.slow
    def test_angular_velocity(self):
        """Eqs. 58 and 59."""
        s2, c2 = sin(self.q2), cos(self.q2)
        s23, c23 = sin(self.q2 + self.q3), cos(self.q2 + self.q3)
        same(self.derived().contribution("link1").J[:3, :], [[0], [-1], [0]])
        same(self.derived().contribution("link2").J[:3, :], [[-s2, 0], [-c2, 0], [0, 1]])
        same(self.derived().contribution("link3").J[:3, :], [[-s23, 0, 0], [-c23, 0, 0], [0, 1, 1]])

    def test_centres_of_mass(self):
        """Eqs. 60 to 62."""
        l0, l1, l2, r0, r1, r2 = self.l0, self.l1, self.l2, self.r0, self.r1, self.r2
        s1, c1, s2, c2 = sin(self.q1), cos(self.q1), sin(self.q2), cos(self.q2)
        s23, c23 = sin(self.q2 + self.q3), cos(self.q2 + self.q3)
        x, z = c2 * l1 + c23 * r2, l1 * s2 + r2 * s23
        expected = {
            "link1": ([0, l0 - r0, 0], [0, 0, r0], [[0], [0], [0]]),
            "link2": (
                [r1 - l1, 0, 0],
                [r1 * c1 * c2, r1 * s1 * c2, l0 - r1 * s2],
                [[-s1 * c2 * r1, -c1 * s2 * r1], [c1 * c2 * r1, -s1 * s2 * r1], [0, -c2 * r1]],
            ),
            "link3": (
                [r2 - l2, 0, 0],
                [x * c1, x * s1, l0 - z],
                [[-s1 * x, -c1 * z, -c1 * s23 * r2], [c1 * x, -s1 * z, -s1 * s23 * r2], [0, -x, -c23 * r2]],
            ),
        }
        for link, (own, position, J) in expected.items():
            A = self.derived().forward_kinematics(link)
            same((A * Matrix([*own, 1]))[:3, 0], position)
            same(A[:3, :3] * self.derived().contribution(link).J[3:, :], J)

    def test_mass_matrix(self):
        """Eqs. 63 to 65."""
        m2, m3, l1, r1, r2 = self.m2, self.m3, self.l1, self.r1, self.r2
        s2, c2, c3 = sin(self.q2), cos(self.q2), cos(self.q3)
        s23, c23 = sin(self.q2 + self.q3), cos(self.q2 + self.q3)
        M11 = self.I3[1] * c23**2 + self.I3[0] * s23**2 + self.I2[0] * s2**2 + self.I1[1]
        M11 += (m2 * r1**2 + self.I2[1]) * c2**2 + m3 * (r2 * c23 + l1 * c2) ** 2
        M22 = 2 * l1 * m3 * r2 * c3 + (l1**2 + r2**2) * m3 + m2 * r1**2 + self.I3[2] + self.I2[2]
        M23, M33 = l1 * m3 * r2 * c3 + m3 * r2**2 + self.I3[2], m3 * r2**2 + self.I3[2]
        same(self.derived().mass_matrix(), [[M11, 0, 0], [0, M22, M23], [0, M23, M33]])

    @pytest.mark.slow
    def test_coriolis_matrix(self):
        """Eqs. 66, 67 and 70."""
        m2, m3, l1, r1, r2, d1, d2, d3 = self.m2, self.m3, self.l1, self.r1, self.r2, self.d1, self.d2, self.d3
        s2, c2, s3 = sin(self.q2), cos(self.q2), sin(self.q3)
        s23, c23 = sin(self.q2 + self.q3), cos(self.q2 + self.q3)
        K = m3 * r2**2 + self.I3[1] - self.I3[0]
        C13 = -((K * s23 + l1 * s2 * m3 * r2) * c23 + l1 * m3 * r2 * s3) * d1
        shoulder = (l1**2 * m3 + m2 * r1**2 - self.I2[0] + self.I2[1]) * c2 * s2
        C12 = -((K * s23 + 2 * l1 * s2 * m3 * r2) * c23 + shoulder + l1 * m3 * r2 * s3) * d1
        C11 = -(K * (d2 + d3) * s23 + m3 * r2 * l1 * (2 * d2 + d3) * s2) * c23 - shoulder * d2
        C11 -= l1 * m3 * r2 * s3 * (d2 + d3)
        k = l1 * m3 * r2 * s3
        C = [[C11, C12, C13], [-C12, -k * d3, -k * (d2 + d3)], [-C13, k * d2, 0]]
        same(self.derived().coriolis_matrix(), C)
        assert operations(self.derived().coriolis_matrix()) <= operations(C)
        M, q, rates = self.derived().mass_matrix(), [self.q1, self.q2, self.q3], [d1, d2, d3]
        M_dot = sum((sp.diff(M, x) * rate for x, rate in zip(q, rates, strict=True)), sp.zeros(3))
        # (∂M/∂q)(q̇ ⊗ 1): column j is (∂M/∂q_j) q̇.
        across = Matrix.hstack(*(sp.diff(M, x) * Matrix(rates) for x in q))
        same(self.derived().coriolis_matrix(), (M_dot + across - across.T) / 2)
        # Eq. 70 is printed with I3zz for I3xx.
        N = [[0, -2 * C12, -2 * C13], [2 * C12, 0, k * (2 * d2 + d3)], [2 * C13, -k * (2 * d2 + d3), 0]]
        same(M_dot - 2 * self.derived().coriolis_matrix(), N)

    def test_gravity(self):
        """Eqs. 68 and 69."""
        c2, c23, s2, s23 = cos(self.q2), cos(self.q2 + self.q3), sin(self.q2), sin(self.q2 + self.q3)
        a, b = (self.l1 * self.m3 + self.m2 * self.r1) * self.g, self.m3 * self.r2 * self.g
        same(self.derived().gravity_vector(), [0, -a * c2 - b * c23, -b * c23])
        P = self.g * (self.l0 * (self.m2 + self.m3) + self.m1 * self.r0) - a * s2 - b * s23
        assert vanishes(self.derived().potential_energy() - P)


def test_fu_two_link():
    """Fu section 3.2.6: two thin rods, whose thirds stay exact."""
    m1, m2, length, g = sp.symbols("m1 m2 l g")
    sym = sd.robots.two_link(m1, m2, length, g).symbolic()
    third, half, square = Rational(1, 3), Rational(1, 2), length**2
    D12 = third * m2 * square + half * m2 * square * c2
    D11 = third * m1 * square + 4 * third * m2 * square + m2 * c2 * square
    same(sym.mass_matrix(), [[D11, D12], [D12, third * m2 * square]])
    h = [-half * m2 * s2 * square * D2**2 - m2 * s2 * square * D1 * D2, half * m2 * s2 * square * D1**2]
    same(sym.coriolis_matrix() * sym.qd, h)
    c = [
        half * m1 * g * length * c1 + half * m2 * g * length * c12 + m2 * g * length * c1,
        half * m2 * g * length * c12,
    ]
    same(sym.gravity_vector(), c)
    tau = [D11 * E1 + D12 * E2 + h[0] + c[0], D12 * E1 + third * m2 * square * E2 + h[1] + c[1]]
    same(sym.inverse_dynamics(), tau)
    assert not sym.inverse_dynamics().atoms(sp.Float)
