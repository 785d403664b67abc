"""Runs that would not end raise an error that names the time, the coordinate and a remedy; fast motions do not."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import screwdyn as sd


def pendulum(**options):
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.point(2.0, (0, 0, -0.5)), to="base", joint=sd.revolute("y", **options), name="bob")
    return tree


def stall(tree, state, torque=None, **options):
    before = tree.revision, tree.links
    with pytest.raises(sd.StalledError) as raised:
        sd.simulate(tree, state, 10.0, torque, **options)
    assert (tree.revision, tree.links) == before
    assert 0 <= raised.value.t < 1.0
    return raised.value


@pytest.mark.slow
@pytest.mark.parametrize("method", ["DOP853", "RK45"])
def test_discontinuous_torque_on_every_joint(method):
    arm = sd.robots.ur5()
    error = stall(arm, sd.State(arm), lambda t, s: -20 * np.sign(s.q), method=method)
    assert error.coordinate in arm.coordinates
    assert f"the torque on '{error.coordinate}' jumps between -20 and 20" in str(error)
    assert "control_period=" in str(error) and f"t = {error.t:.9g} s" in str(error)


@pytest.mark.parametrize("method", ["DOP853", "Radau"])
def test_torque_that_slides_along_its_discontinuity(method):
    tree = pendulum()
    error = stall(tree, sd.State(tree, [1.0]), lambda t, s: -20 * np.sign(s.q + s.qd), method=method)
    assert error.coordinate == "bob" and "jumps between -20 and 20" in str(error)


@pytest.mark.slow
def test_discontinuous_wrenches():
    tree = pendulum()

    def wrenches(t, state):
        return {"bob": [0, -10 * np.sign(state.qd[0]), 0, 0, 0, 0]}

    error = stall(tree, sd.State(tree, [1.0]), wrenches=wrenches)
    assert "the force of wrenches= on 'bob' jumps between -10 and 10" in str(error)


def test_discontinuous_torque_that_is_crossed_ends():
    tree = pendulum()
    run = sd.simulate(tree, sd.State(tree, [1.0]), 1.0, lambda t, s: [-5.0 * np.sign(s["bob"])], method="RK45")
    assert np.abs(run.energy.residual).max() < 1e-6 and np.ptp(run["bob"]) > 1


@pytest.mark.slow
@pytest.mark.parametrize("cause", ["damping", "gain"])
def test_stiff_joints_under_an_explicit_method(cause):
    tree = sd.KinematicTree()
    rod = sd.Inertia.rod(1.0, 0.5, "x", (0.25, 0, 0))
    tree.attach(rod, to="base", joint=sd.revolute("y"), name="free")
    damping = 1e6 if cause == "damping" else 0.0
    tree.attach(rod, to="free", joint=sd.revolute("y", damping=damping), at=(0.5, 0, 0), name="stiff")
    torque = None if cause == "damping" else lambda t, s: {"stiff": -1e6 * s.velocity("stiff")}
    error = stall(tree, sd.State(tree), torque)
    assert error.coordinate == "stiff"
    assert "the explicit method DOP853" in str(error) and "method='Radau' or 'LSODA'" in str(error)
    run = sd.simulate(tree, sd.State(tree), 1.0, torque, method="Radau", rtol=1e-6, atol=1e-8, step=0.1)
    assert abs(run["stiff"][-1]) < 1e-3 and np.ptp(run["free"]) > 1


@pytest.mark.slow
def test_bars_that_are_stretched_between_two_pins():
    """They cannot move: in each step, the loop takes back what gravity has done."""
    tree, bar = sd.KinematicTree(gravity=(0, -9.81, 0)), sd.Inertia.rod(1.0, 1.0, com=(0.5, 0, 0))
    tree.attach(bar, to="base", joint=sd.revolute("z"), name="a")
    tree.attach(bar, to="a", joint=sd.revolute("z"), at=(1, 0, 0), name="b")
    tree.close("b", to="base", joint=sd.revolute("z", (1, 0, 0)), at=(1, 0, 0), name="pin")
    with pytest.raises(sd.StalledError, match="stretched between two pins, lock their joints"):
        sd.simulate(tree, sd.State(tree, [0, 0]), 0.05)


@pytest.mark.slow
def test_fast_motion_is_no_stall():
    """Thousands of steps of a vibration, which the motion needs."""
    k = 1e9
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    tree.attach(sd.Inertia.point(1.0), to="base", joint=sd.prismatic("x", stiffness=k), name="mass")
    duration = 2 * np.pi * 200 / np.sqrt(k)
    run = sd.simulate(tree, sd.State(tree, [1e-3]), duration, rtol=1e-8, step=duration / 10)
    assert_allclose(run["mass"], 1e-3, rtol=1e-3)


@pytest.mark.parametrize("kind", ["torque", "wrenches", "when"])
def test_function_that_changes_the_tree(kind):
    tree = pendulum()

    def change(t, state):
        tree.attach(sd.Inertia.point(1.0), to="bob", joint=sd.revolute("x", (0, 0, 1)))
        return -1.0 if kind == "when" else {}

    options = {"events": [sd.Release("bob", when=change)]} if kind == "when" else {kind: change}
    with pytest.raises(sd.TopologyError, match=r"a function changed the simulated tree at t = 0.3 s; use events="):
        sd.simulate(tree, sd.State(tree), 1.0, t0=0.3, **options)
    assert tree.links == ("base", "bob")


def test_an_error_in_a_function_has_a_note_with_the_time():
    tree = pendulum()

    def late(t, state):
        return {} if t < 0.4 else {}["gain"]

    with pytest.raises(KeyError, match="gain") as caught:
        sd.simulate(tree, sd.State(tree), 1.0, late, control_period=0.1, t0=0.3)
    assert caught.value.__notes__ == ["in a call of the run at t = 0.4 s"]


@pytest.mark.parametrize("period", [None, 0.1])
def test_function_that_removes_a_link_of_the_simulated_tree(period):
    """The error comes after the first call, before the function meets the changed tree."""
    tree = pendulum()
    calls = []

    def torque(t, state):
        calls.append(t)
        tree.detach("bob")
        return {}

    with pytest.raises(sd.TopologyError, match=r"at t = 0 s; use events="):
        sd.simulate(tree, sd.State(tree), 1.0, torque, control_period=period)
    assert calls == [0.0]
    assert tree.links == ("base", "bob")
