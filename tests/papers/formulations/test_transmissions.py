"""Rotors, armatures, and joints that follow others: by substitution in the equations of the sources."""

import math

import numpy as np
import pytest
import sympy as sp
from closed_forms import evaluated
from numpy.testing import assert_allclose

import screwdyn as sd
from screwdyn import formulations
from screwdyn.testing import random_inertia, random_pose, random_tree

NAMES = formulations.__all__
CHRISTOFFEL = ["kronecker", "lagrange_euler", "lagrangian", "progressive"]


def equal(actual, expected):
    assert_allclose(actual, expected, rtol=1e-10, atol=1e-10)


def transmissions(seed, joints):
    """A random tree with a rotor, which its carrier may contain at rest, an armature, and followers in a chain."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 2, joints=joints)
    make = [getattr(sd, kind) for kind in joints]
    rotors = sd.Rotor(1e-3, 30, "y", (0.1, 0, 0.2)), sd.Rotor(1e-3, -20, "x", mass=0.3, across=2e-3, carrier="link1")
    for k, rotor in enumerate(rotors):
        motor = make[-k](rng.normal(size=3), rotor=rotor, armature=0.1 + k, damping=0.7, friction=0.2, name=f"motor{k}")
        tree.attach(random_inertia(rng), rng.choice(tree.links[1:3]), motor, random_pose(rng), f"driven{k}")
    for k, leader in enumerate(("motor0", "follow0")):
        mimic = sd.Mimic(leader, *rng.uniform(-2, 2, 2))
        joint = make[k](rng.normal(size=3), mimic=mimic, armature=0.3, damping=0.5, friction=0.4, name=f"follow{k}")
        tree.attach(random_inertia(rng), "driven1", joint, random_pose(rng), f"body{k}")
    return tree


@pytest.mark.parametrize("joints", [["revolute", "revolute"], ["revolute", "prismatic"]], ids=" ".join)
def test_random_trees(joints):
    tree = transmissions(0, joints)
    q, qd, qdd = np.random.default_rng(1).uniform(-2, 2, (3, tree.nv))
    for name in NAMES if joints[1] == "revolute" else [name for name in NAMES if name != "generalized_dalembert"]:
        witness = getattr(formulations, name)(tree)
        assert witness.coordinates == tree.coordinates
        assert {*witness.joints} == {*tree.coordinates, "motor0_rotor", "motor1_rotor", "follow0", "follow1"}
        equal(witness.mass_matrix(q), tree.mass_matrix(q))
        equal(witness.velocity_product(q, qd), tree.velocity_product(q, qd))
        equal(witness.gravity_vector(q), tree.gravity_vector(q))
        equal(witness.inverse_dynamics(q, qd, qdd), tree.inverse_dynamics(q, qd, qdd))
        if name in CHRISTOFFEL:
            equal(witness.coriolis_matrix(q, qd), tree.coriolis_matrix(q, qd))


def test_motor_torques_and_wrenches():
    """Damping and Coulomb friction of a joint that follows act on its leader as r² b and |r| f."""
    tree = transmissions(0, ["revolute", "prismatic"])
    state = np.random.default_rng(5).uniform(-2, 2, (3, tree.nv))
    push = {link: np.random.default_rng(6).normal(size=6) for link in ("body1", "motor1_rotor")}
    r0, r1 = (tree.joint(name).mimic.ratio for name in ("follow0", "follow1"))
    damping = [0.7 + 0.5 * (r0**2 + (r0 * r1) ** 2), 0.7] * state[1, -2:]
    friction = [0.2 + 0.4 * (abs(r0) + abs(r0 * r1)), 0.2] * np.sign(state[1, -2:])
    assert tree.coordinates[-2:] == ("motor0", "motor1")
    damping, friction = (np.pad(x, (tree.nv - 2, 0)) for x in (damping, friction))
    expected = tree.inverse_dynamics(*state, push)
    newton, lecture = formulations.newton_euler(tree), formulations.lagrangian(tree)
    equal(newton.inverse_dynamics(*state, push), expected)
    equal(newton.inverse_dynamics_in_base_frame(*state, push), expected)
    equal(newton.motor_torque(*state, push), expected + damping)
    equal(lecture.motor_torque(*state, push), expected + damping + friction)


def test_the_parts_of_dominance_add_up():
    tree = transmissions(2, ["revolute", "revolute"])
    trajectory = np.random.default_rng(8).uniform(-2, 2, (3, 2, tree.nv))
    found = formulations.dominance.parts(tree, trajectory)
    equal(found.D_tran + found.D_rot, tree.mass_matrix(trajectory[0]))
    equal(found.h_tran + found.h_rot, tree.velocity_product(*trajectory[:2]))
    exact = formulations.dominance.simplified(tree, trajectory, 0.0)
    equal(exact.inverse_dynamics(*trajectory), tree.inverse_dynamics(*trajectory))


def test_a_rotor_is_one_more_body_of_progressive_dynamics():
    """Laus, footnote 2: its Jacobian has the transmission ratio in the column of the motor's joint."""
    tree = transmissions(1, ["revolute", "revolute"])
    q, qd = np.random.default_rng(7).uniform(-2, 2, (2, tree.nv))
    laus = formulations.progressive(tree)
    x, rates = laus.joint_positions(q), laus.joint_rates(qd)
    i = laus.joints.index("motor0_rotor")
    part = tree.contribution("motor0_rotor", q, qd)
    W = laus.W[list(laus.rows[i].path)][:, [tree.coordinates.index(name) for name in part.coordinates]]
    assert W[-1].tolist() == [30.0 * (name == "motor0") for name in part.coordinates]
    equal(laus.J(i, x) @ W, part.J)
    equal(W.T @ laus.M_i(i, x) @ W, part.M.array)
    equal(W.T @ laus.C_i(i, x, rates) @ W, part.C.array)
    equal(laus.g_i(i, x) @ W, part.g.array)
    with pytest.raises(sd.ShapeError, match=r"q of one state must have an entry for each of .*motor0_rotor"):
        laus.J(i, q)


# The two-link arm with the motor of joint 2 on link 1, and a bar on link 2 that follows joint 2
L, B, R, K, J_R, A_1, G, C = SYMBOLS = sp.symbols("l b r k J a g c", positive=True)
ANGLE = sp.symbols("q1 q2", real=True)
RATE = sp.symbols("q1_dot q2_dot", real=True)
MASS = {"link1": sp.Rational(3, 2), "link2": sp.Rational(3, 4), "rotor": sp.Rational(1, 4), "bar": sp.Rational(1, 2)}


def geared_arm():
    """Rods of length l; a rotor at the tip of link 1, which turns by r q2; a bar with a point at b, by k q2 + c."""

    def rod(mass):
        return sd.Inertia(mass, (-L / 2, 0, 0), (0, mass * L**2 / 12, mass * L**2 / 12))

    motor = sd.Rotor(J_R, R, mass=MASS["rotor"], across=J_R)
    tree = sd.KinematicTree(gravity=(0, -G, 0))
    first = sd.revolute("z", (-L, 0, 0), armature=A_1, name="q1")
    tree.attach(sd.Link("link1", rod(MASS["link1"])), "base", first, (L, 0, 0))
    second = sd.revolute("z", (-L, 0, 0), rotor=motor, name="q2")
    tree.attach(sd.Link("link2", rod(MASS["link2"])), "link1", second, (L, 0, 0))
    bar = sd.revolute("z", mimic=sd.Mimic("q2", K, C), name="follower")
    tree.attach(sd.Link("bar", sd.Inertia.point(MASS["bar"], (B, 0, 0))), "link2", bar)
    return tree


def lagrange():
    """M, C q̇ and g of that arm from the positions and angles of its bodies, by Lagrange's equations."""
    q1, q2 = ANGLE

    def arm(length, angle):
        return sp.Matrix([sp.cos(angle), sp.sin(angle)]) * length

    tip = arm(L, q1)
    end = tip + arm(L, q1 + q2)
    turn = q1 + q2 + K * q2 + C
    bodies = [
        (MASS["link1"], arm(L / 2, q1), MASS["link1"] * L**2 / 12, q1),
        (MASS["link2"], tip + arm(L / 2, q1 + q2), MASS["link2"] * L**2 / 12, q1 + q2),
        (MASS["rotor"], tip, J_R, q1 + R * q2),
        (MASS["bar"], end + arm(B, turn), 0, turn),
    ]
    q, qd = sp.Matrix(ANGLE), sp.Matrix(RATE)
    M, U = sp.diag(A_1, 0), 0
    for m, p, I, angle in bodies:
        J, u = p.jacobian(q), sp.Matrix([angle]).jacobian(q)
        M += m * J.T * J + I * u.T * u
        U += m * G * p[1]
    momentum, energy = M * qd, (qd.T * M * qd)[0] / 2
    product = momentum.jacobian(q) * qd - sp.Matrix([sp.diff(energy, x) for x in ANGLE])
    return [*M, *product, *(sp.diff(U, x) for x in ANGLE)]


EXPECTED = lagrange()
# Polynomials of the symbols, and of the cosine and sine of each term of the angles
POLYNOMIALS, *VARIABLES = sp.ring([*SYMBOLS, *RATE, *sp.symbols("C:5 S:5")], sp.QQ)
WAVES = dict(
    zip([*ANGLE, K * ANGLE[1], R * ANGLE[1], C], zip(*np.reshape(VARIABLES[-10:], (2, 5)), strict=True), strict=True)
)
ONE = [c**2 + s**2 - 1 for c, s in WAVES.values()]


def polynomial(x, known):
    """An expression with rational numbers as a polynomial; those of its parts are known."""
    if x in known:
        return known[x]
    if isinstance(x, sp.sin | sp.cos):
        c, s = POLYNOMIALS(1), POLYNOMIALS(0)
        for angle in sp.Add.make_args(x.args[0]):
            sign = -1 if angle.could_extract_minus_sign() else 1
            C, S = WAVES[sign * angle]
            c, s = c * C - sign * s * S, s * C + sign * c * S
        found = s if isinstance(x, sp.sin) else c
    elif x.is_Number:
        found = POLYNOMIALS(sp.QQ.from_sympy(sp.Rational(float(x))))
    elif x.is_Pow:
        found = polynomial(x.base, known) ** int(x.exp)
    else:
        found = (sum if x.is_Add else math.prod)(polynomial(part, known) for part in x.args)
    known[x] = found
    return found


@pytest.mark.parametrize("name", NAMES)
def test_every_entry_is_that_of_lagrange_s_equations(name):
    """In symbols: the difference of each entry is 0 as a polynomial with sin² + cos² = 1."""
    witness = getattr(formulations, name)(geared_arm())
    M, product, g = witness.mass_matrix(ANGLE), witness.velocity_product(ANGLE, RATE), witness.gravity_vector(ANGLE)
    known = dict(zip([*SYMBOLS, *RATE], VARIABLES, strict=False))
    for entry, expected in zip([*M.flat, *product, *g], EXPECTED, strict=True):
        difference = polynomial(entry, known) - polynomial(expected, known)
        assert polynomial(expected, known) != 0
        assert difference.rem(ONE) == 0


def test_armatures_and_followers_with_symbols_have_the_numbers_of_the_tree():
    tree, values = geared_arm(), {L: 0.7, B: 0.3, R: 20, K: -1.5, J_R: 1e-3, A_1: 0.2, G: 9.81, C: 0.5}
    q, qd, qdd = np.random.default_rng(0).uniform(-2, 2, (3, 2))
    tau = formulations.newton_euler(tree).inverse_dynamics(q, qd, qdd)
    equal(evaluated(sp.Matrix(tau), values, 2), tree.subs(values).inverse_dynamics(q, qd, qdd))
