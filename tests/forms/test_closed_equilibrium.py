"""Equilibria of closed loops, by the potential U(y) of assembled configurations."""

import numpy as np
import pytest
from cases import CENTRAL
from mechanisms import driven_by_the_crank, four_bar, swept
from numpy.testing import assert_allclose, assert_array_equal

import screwdyn as sd

H = 1e-2


def slope_and_curvature(tree, q):
    """U′ and U″ of the crank's angle."""
    energy = swept(tree, q, "crank")
    values = {k: energy(q[0] + k * H)[1] for k in range(-3, 4)}
    slope = sum(w * (values[k] - values[-k]) for k, w in CENTRAL) / H
    return slope, (values[1] - 2 * values[0] + values[-1]) / H**2


def test_torque_that_holds_a_four_bar():
    tree, (q, _) = driven_by_the_crank()
    tau = tree.holding_torque(q)
    assert_allclose(tau, [slope_and_curvature(tree, q)[0], 0, 0], rtol=1e-9)
    assert_allclose(tree.forward_dynamics(q, np.zeros(3), tau), 0, rtol=0, atol=1e-12)


def test_four_bar_that_hangs():
    tree, (q, _) = driven_by_the_crank(motor=False)
    found = tree.equilibrium(q)
    slope, curvature = slope_and_curvature(tree, found)
    assert_allclose(slope, 0, rtol=0, atol=1e-8 * curvature)
    assert curvature > 1
    assert_allclose(tree.gap(found), 0, rtol=0, atol=1e-12)
    assert_array_equal(tree.holding_torque(found), 0)


def test_equilibrium_under_a_torque():
    tree, (q, _) = driven_by_the_crank()
    tau = 1.05 * tree.holding_torque(q)
    found = tree.equilibrium(q, tau)
    assert_allclose(slope_and_curvature(tree, found)[0], tau[0], rtol=1e-9)
    assert_array_equal(tree.equilibrium(q), q)  # without torques, active joints keep their positions


def test_no_equilibrium():
    tree, (q, _) = driven_by_the_crank()
    with pytest.raises(sd.EquilibriumError, match="is unbalanced in a motion of the closed loops, mostly of"):
        tree.equilibrium(q, 50 * tree.holding_torque(q))
    loose, (q, _) = driven_by_the_crank(motor=False)
    with pytest.raises(sd.EquilibriumError, match="no torques of the motors hold"):
        loose.holding_torque(q)
    tree, (q, _) = four_bar()
    with pytest.raises(sd.LoopError, match="'pin' is open by"):
        tree.equilibrium(q + 0.1)


@pytest.mark.parametrize("closed", [True, False])
def test_a_mechanism_that_lies_flat(closed):
    """Gravity is along all axes but for rounding, so every configuration is an equilibrium of the passive joints."""
    turn = sd.screw.exp([0.3, -0.2, 0.5, 1, 2, 3])
    tree = sd.KinematicTree(gravity=turn[:3, :3] @ [0, 0, -9.81])
    tree.attach(driven_by_the_crank(motor=False)[0], to="base", at=turn, name="bench")
    q = tree.assemble([0.7, -0.2, 1.5], hold=["crank"])
    if not closed:
        tree.open("pin")
    assert np.abs(tree.gravity_vector(q)).max() > 0
    assert_array_equal(tree.holding_torque(q), 0)
    assert_allclose(tree.equilibrium(q), q, rtol=0, atol=1e-12)
    if closed:
        assert_array_equal(tree.inverse_dynamics(q, np.zeros(3), np.zeros(3)), 0)
