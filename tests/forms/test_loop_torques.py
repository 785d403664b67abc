"""Joint forces of closed loops: Lagrange's equation of one freedom, and two hands on one block by hand."""

import numpy as np
import pytest
from cases import CENTRAL, norm
from mechanisms import driven_by_the_crank, four_bar, moving_bricard, slider_crank, swept
from numpy.testing import assert_allclose, assert_array_equal

import screwdyn as sd


def two_hands():
    """Two slides along x of 1 and 2 kg; the left one holds a block of 3 kg, which the right one holds as well."""
    tree = sd.KinematicTree(gravity=(0, 0, -9.81))
    for name, mass in (("left", 1.0), ("right", 2.0)):
        tree.attach(sd.Inertia.point(mass), to="base", joint=sd.prismatic("x"), name=name)
    tree.attach(sd.Inertia.point(3.0), to="left", at=(0.5, 0, 0), name="block")
    tree.close("right", to="block", name="hold")
    return tree, tree.assemble([0.0, 0.4])


@pytest.mark.parametrize("mechanism", [four_bar, slider_crank, moving_bricard])
def test_shortest_torques_of_a_motion(mechanism):
    tree, (q, qd) = mechanism()
    given = np.linspace(1.3, -0.4, tree.nv)
    qdd = tree.forward_dynamics(q, qd, given)
    tau = tree.inverse_dynamics(q, qd, qdd)
    assert_allclose(tree.forward_dynamics(q, qd, tau), qdd, rtol=0, atol=1e-10 * norm(qdd))
    assert norm(tau) < norm(given)
    assert_allclose(tau @ (given - tau), 0, rtol=0, atol=1e-11 * norm(given) ** 2)


def test_motor_of_a_four_bar_by_lagrange():
    """τ = m ÿ + ½ m′ ẏ² + U′ with m(y) and U(y) by differences of assembled configurations."""
    tree, (q, qd) = driven_by_the_crank()
    at, h, wanted = swept(tree, q, "crank"), 1e-2, -3.0
    mass, _ = at(q[0])
    slope = sum(w * (np.array(at(q[0] + k * h)) - at(q[0] - k * h)) / h for k, w in CENTRAL)
    found = tree.reduced(q, qd, ["crank"])
    qdd = found.Z @ [wanted] + found.Z_dot @ qd[:1]
    expected = mass * wanted + 0.5 * slope[0] * qd[0] ** 2 + slope[1]
    assert_allclose(tree.inverse_dynamics(q, qd, qdd), [expected, 0, 0], rtol=1e-7)


def test_two_hands_press_on_a_block():
    """By hand: m a = τ ± the chosen force, and without a choice the forces of both hands are equal."""
    tree, q = two_hands()
    zero, qdd = np.zeros(2), np.full(2, 0.7)
    assert_allclose(tree.inverse_dynamics(q, zero, qdd), [2.1, 2.1], rtol=1e-12)
    # The block pushes the right hand outwards by 5 N, so the left motor gives 5 N more and the right one 5 N less.
    pressed = {"hold": [0, 0, 0, 5.0, 0, 0]}
    assert_allclose(tree.squeezing_torque(q, zero, qdd, pressed), [4 * 0.7 + 5, 2 * 0.7 - 5], rtol=1e-12)
    wrench = tree.constraint_wrenches(q, zero, [4 * 0.7 + 5, 2 * 0.7 - 5]).wrenches["hold"]
    assert_allclose(wrench[3], 5.0, rtol=1e-12)
    pushed = tree.squeezing_torque(q, zero, qdd, pressed, wrenches={"block": [0, 0, 0, 1.0, 0, 0]})
    assert_allclose(pushed, [4 * 0.7 + 5 - 1, 2 * 0.7 - 5], rtol=1e-12)


def test_batches_and_external_wrenches():
    tree, (q, qd) = four_bar()
    qdd = tree.forward_dynamics(q, qd, [1.3, 0, 0])
    F = np.array([[0, 0, 0.7, 1.0, -2.0, 0], np.zeros(6)])
    found = tree.inverse_dynamics(q, qd, [qdd, qdd], wrenches={"rocker": F})
    assert_array_equal(found[1], tree.inverse_dynamics(q, qd, qdd))
    again = tree.forward_dynamics(q, qd, found[0], wrenches={"rocker": F[0]})
    assert_allclose(again, qdd, rtol=0, atol=1e-10 * norm(qdd))
    assert_array_equal(tree.compile().inverse_dynamics([q, q], qd, qdd)[0], found[1])


def test_accelerations_that_open_a_loop():
    tree, (q, qd) = four_bar()
    qdd = tree.forward_dynamics(q, qd, [1.3, 0, 0])
    with pytest.raises(sd.LoopError, match="these accelerations open 'pin'"):
        tree.inverse_dynamics(q, qd, qdd + np.eye(3)[0])


def test_accelerations_that_motors_cannot_give():
    tree, (q, qd) = driven_by_the_crank(motor=False)
    free = tree.forward_dynamics(q, qd, np.zeros(3))
    assert_array_equal(tree.inverse_dynamics(q, qd, free), 0)
    driven = tree.forward_dynamics(q, qd, [1.0, 0, 0])
    with pytest.raises(
        sd.LoopError, match=r"the motors \(none\) cannot give these accelerations: the passive joints 'crank'"
    ):
        tree.inverse_dynamics(q, qd, driven)


@pytest.mark.parametrize(
    ("squeeze", "error", "message"),
    [
        ({"pin": [0, 0, 1.0, 0, 0, 0]}, sd.LoopError, "revolute joint of loop 'pin' yields to the wrench"),
        ({"pim": [0.0] * 6}, sd.UnknownNameError, "'pim'.*'pin'"),
        ({"pin": [0.0] * 5}, sd.ShapeError, "must be six finite numbers"),
        ([0.0] * 6, sd.ShapeError, "squeeze must map names of loops"),
    ],
)
def test_wrong_wrenches(squeeze, error, message):
    tree, (q, qd) = four_bar()
    with pytest.raises(error, match=message):
        tree.squeezing_torque(q, qd, np.zeros(3), squeeze)


def test_accelerations_that_are_rounding():
    """Forward dynamics leaves them at rest in balance, and in a structure that cannot move."""
    tree, (q, _) = driven_by_the_crank()
    rest, rounding = np.zeros(3), np.full(3, 1e-14)
    assert_allclose(tree.inverse_dynamics(q, rest, rounding), tree.holding_torque(q), rtol=1e-9)
    tree.close("coupler", to="base", at=tree.forward_kinematics("coupler", q), name="clamp")
    assert tree.freedoms(q) == 0
    assert_array_equal(tree.inverse_dynamics(q, rest, rounding), 0)
