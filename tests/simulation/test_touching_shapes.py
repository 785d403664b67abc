"""Simulations of capsules and boxes that touch each other, against closed forms, and their ledger."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp

import screwdyn as sd
from screwdyn.simulation.equations import EquationsOfMotion

g = 9.81
ALONG_X = sd.screw.exp([0, np.pi / 2, 0, 0, 0, 0])
ALONG_Y = sd.screw.exp([np.pi / 2, 0, 0, 0, 0, 0])
FINE = {"rtol": 1e-10, "atol": 1e-12}


def resting(shape, on, size, at, turned=(0, 0, 0), **options):
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.box(3.0, size), to="base", joint=sd.free(), name="body", shape=shape)
    tree.touch("body", "base", on=on, name="touch", **options)
    return tree, tree.integrate(tree.integrate(tree.neutral(), [0, 0, 0, *at]), [*turned, 0, 0, 0])


def bearing(run, t):
    found = run.contact("touch", t)
    closed = np.array(found.states) != "open"
    return found.points[closed], found.forces[closed]


def test_planks_crosswise_bear_where_their_edges_cross():
    """m g / 4 at each of four crossings, which corners do not see."""
    plank, r = (1.0, 0.2, 0.1), 1e-3
    tree, q = resting(sd.Shape.box(plank), sd.Shape.box((0.2, 1.0, 0.1)), plank, (0, 0, 0.1), radius=r, friction=0.4)
    points, forces = bearing(sd.simulate(tree, sd.State(tree, q), 0.1, step=0.01), 0.1)
    assert_allclose(np.abs(points), [(0.1 - r, 0.1 - r, 0.05)] * 4, atol=1e-15)
    assert_allclose(forces, [(0, 0, 3 * g / 4)] * 4, atol=1e-12)


def test_a_plank_slides_across_an_edge_and_tips():
    """It leaves its rear crossings when its middle has passed the front ones, after v t − μ g t² / 2."""
    plank, r, v, mu = (1.0, 0.2, 0.1), 1e-3, 2.0, 0.2
    tree, q = resting(sd.Shape.box(plank), sd.Shape.box((0.2, 1.0, 0.1)), plank, (0, 0, 0.1), radius=r, friction=mu)
    run = sd.simulate(tree, sd.State(tree, q, [0, 0, 0, v, 0, 0]), 0.1, step=0.01, **FINE)
    left = next(x.t for x in run.events if x.event.change == "leave")
    # With friction below it, the middle of the pressure is μ h ahead of that of the plank. A force has to fall below
    # zero by 1e-9 of the load, which it does within 1e-8 m.
    assert_allclose(v * left - mu * g * left**2 / 2, 0.1 - r - mu * 0.05, rtol=0, atol=1e-8)
    assert np.abs(run.energy.residual).max() < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("turn", [0.0, 1e-16])
def test_a_capsule_along_another_rests_on_both_ends_of_their_overlap(turn):
    """By the law of the lever; dropped tilted, it comes to rest there too."""
    rod, on = sd.Shape.capsule(0.1, 1.0, pose=ALONG_X), sd.Shape.capsule(0.2, 1.0, pose=ALONG_X)
    tree, q = resting(rod, on, (1, 0.1, 0.1), (0.3, 0, 0.3), (0, 0, turn), friction=0.3)
    points, forces = bearing(sd.simulate(tree, sd.State(tree, q), 0.1, step=0.01), 0.1)
    order = np.argsort(points[:, 0])
    assert_allclose(points[order], [(-0.2, 0, 0.2), (0.5, 0, 0.2)], atol=1e-15)
    assert_allclose(forces[order, 2], 3 * g * np.array([0.2, 0.5]) / 0.7, atol=1e-12)
    tree, q = resting(rod, on, (1, 0.1, 0.1), (0.3, 0, 0.4), (0, 0.1, 0), friction=0.3)
    run = sd.simulate(tree, sd.State(tree, q), 0.5, step=0.01, **FINE)
    points, forces = bearing(run, 0.5)
    middle = run.q[-1, 4] - points[:, 0]
    assert_allclose(forces[:, 2], 3 * g * np.abs(middle[::-1]) / np.ptp(middle), atol=1e-9)
    assert np.abs(run.energy.residual).max() < 1e-9


def test_a_rod_rolls_on_a_cylinder():
    """x = (R + r) sin θ − R θ cos θ and z alike, v² = (r² + R² θ²) θ̇²; the contact moves by R θ along the rod."""
    r, R, mass = 0.05, 0.3, 3.0
    rod, on = sd.Shape.capsule(r, 2.0, pose=ALONG_X), sd.Shape.capsule(R, 1.0, pose=ALONG_Y)
    size = (2.0, 0.1, 0.1)

    def at(theta):
        s, c = np.sin(theta), np.cos(theta)
        return (R + r) * s - R * theta * c, 0.1, (R + r) * c + R * theta * s

    tree, q = resting(rod, on, size, at(0.3), (0, 0.3, 0), friction=1.0)
    run = sd.simulate(tree, sd.State(tree, q), 1.5, step=0.02, **FINE)
    thetas = 2 * np.arctan2(run.q[:, 1], run.q[:, 3])
    assert thetas.min() < -0.29  # half a swing
    assert_allclose(run.q[:, 4:], np.transpose(np.broadcast_arrays(*at(thetas))), atol=1e-8)
    inertia = mass * (size[0] ** 2 + size[2] ** 2) / 12
    kinetic = (mass * (r**2 + R**2 * thetas**2) + inertia) * run.qd[:, 1] ** 2 / 2
    assert_allclose(kinetic, mass * g * (at(0.3)[2] - at(thetas)[2]), atol=1e-7)
    points, _ = bearing(run, 1.5)
    end = np.linalg.inv(tree.forward_kinematics("body", run.q[-1])) @ [*points[0], 1]
    assert_allclose(end[:3], (R * thetas[-1], 0, -r), atol=1e-8)
    assert np.abs(run.energy.residual).max() < 1e-9


@pytest.mark.slow
def test_a_crate_that_turns_on_an_equal_one_bears_where_edges_cross():
    """Corners on corners, then an octagon of eight crossings, m g / 8 each by symmetry."""
    size = (0.4, 0.3, 0.2)
    tree, q = resting(sd.Shape.box(size), sd.Shape.box(size), size, (0, 0, 0.2), radius=1e-3, friction=0.4)
    run = sd.simulate(tree, sd.State(tree, q, [0, 0, 0.5, 0, 0, 0]), 0.1, step=0.01, **FINE)
    _, forces = bearing(run, 0.1)
    assert_allclose(forces, [(0, 0, 3 * g / 8)] * 8, atol=1e-9)
    assert np.abs(run.energy.residual).max() < 1e-9


def test_a_ball_rolls_off_a_cylinder_slips_and_leaves(monkeypatch):
    """It slips where 2/7 m g sin a = μ N, and leaves where N = m (g cos a − (R + r) ȧ²) = 0."""
    friction, reach, slopes = 0.3, 0.6, EquationsOfMotion.jacobian
    tree, counted = sd.KinematicTree(gravity=(0, -9.81, 0)), []
    tree.attach(sd.Inertia.sphere(2.0, 0.1), to="base", joint=sd.free(), name="ball")
    tree.touch("ball", on=sd.Capsule(0.5, 3.0), points=(0, 0, 0), radius=0.1, friction=friction, name="cylinder")
    monkeypatch.setattr(EquationsOfMotion, "jacobian", lambda *own: counted.append(own[1]) or slopes(*own))
    start = sd.State(tree, [0, 0, 0, 1, reach * np.sin(0.2), reach * np.cos(0.2), 0])
    run = sd.simulate(tree, start, 0.67, step=0.01, rtol=1e-10, atol=1e-12)

    def normal(a, rate):
        return 9.81 * np.cos(a) - reach * rate**2

    def slips(t, y):
        return 2 / 7 * 9.81 * np.sin(y[0]) - friction * normal(*y)

    def leaves(t, y):
        return -normal(*y)

    slips.terminal = leaves.terminal = True
    options = {"rtol": 1e-12, "atol": 1e-14, "method": "DOP853"}
    rolled = solve_ivp(
        lambda t, y: [y[1], 5 / 7 * 9.81 / reach * np.sin(y[0])], (0, 1), [0.2, 0], events=slips, **options
    )
    slid = solve_ivp(
        lambda t, y: [y[1], (9.81 * np.sin(y[0]) - friction * normal(*y)) / reach],
        (rolled.t[-1], 1),
        rolled.y[:, -1],
        events=leaves,
        **options,
    )
    assert [x.event.change for x in run.events] == ["slip", "leave"]
    assert_allclose([x.t for x in run.events], [rolled.t[-1], slid.t[-1]], atol=1e-8)
    assert len(counted) < 100  # in the millisecond in which the slip begins
