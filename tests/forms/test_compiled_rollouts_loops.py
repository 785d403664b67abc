"""Rollouts of trees with closed loops against steps by the tree, which is really changed."""

import numpy as np
import pytest
from mechanisms import door, four_bar, slider_crank
from test_switches import HOOK, alone, compare

import screwdyn as sd
from screwdyn import Grasp, Inertia, LoopError, Release, SetInertia

pytestmark = pytest.mark.usefixtures("compiled_when_called")

CRATE = Inertia.box(3.0, (0.3, 0.2, 0.2), com=(0, -0.3, 0))
RUNS, STEPS = 5, 12


@pytest.mark.slow
@pytest.mark.parametrize("method", ["semi_implicit_euler", "rk4"])
@pytest.mark.parametrize("mechanism", [four_bar, slider_crank, door])
def test_steps_are_those_of_the_tree(mechanism, method):
    tree, (q, qd) = mechanism()
    tau = np.where(tree.model.passive, 0.0, 1.0) * np.linspace(-1, 1, tree.nv)
    starts = np.linspace(0.5, 1, RUNS)[:, None] * qd
    run = tree.compile().rollout(q, starts, STEPS, 2e-3, tau, every=1, method=method)
    assert not run.failed.any()
    for b, start in enumerate(starts):
        compare(run, b, alone(tree, q, start, STEPS, [], dict(zip(tree.coordinates, tau, strict=True)), method))


@pytest.mark.parametrize("twist", ["at_rest", "co_moving"])
@pytest.mark.parametrize("joint", [None, HOOK])
def test_grasps_and_releases_beside_loops(joint, twist):
    """Impacts keep the loops closed, and remove what the method has opened them by."""
    tree, (q, qd) = slider_crank()
    grasp = Grasp(CRATE, to="piston", joint=joint, name="crate", twist=twist)
    heavier = SetInertia("rod", Inertia.box(4.0, (1.0, 0.1, 0.1), com=(0.6, 0, 0)))
    grasped, released, changed = np.array([2, 0, 5, -1, 3]), np.array([8, 9, 7, -1, 4]), np.array([3, -1, 6, 1, 3])
    events = [(grasp, grasped), (Release("crate"), released), (heavier, changed)]
    run = tree.compile().rollout(q[None], qd, STEPS, 2e-3, 0.7, every=1, method="rk4", events=events)
    assert not run.failed.any()
    torque = dict.fromkeys(tree.active, 0.7)
    for b in range(RUNS):
        own = [(event, int(at[b])) for event, at in events]
        compare(run, b, alone(tree, q, qd, STEPS, own, torque, "rk4"))


@pytest.mark.slow
def test_a_lock_beside_a_loop_is_that_of_the_tree():
    tree, (q, qd) = four_bar()
    tree.attach(Inertia.box(1, (0.5, 0.1, 0.1), com=(0.25, 0, 0)), to="rocker", joint=sd.revolute("z"), name="flap")
    q, qd = np.append(q, 0.3), np.append(qd, 2.0)
    events = [(sd.Lock("flap"), [4, -1]), (sd.Unlock("flap"), [9, -1])]
    run = tree.compile().rollout(q, qd, STEPS, 2e-3, events=events, every=1, method="rk4")
    for b in range(2):
        compare(run, b, alone(tree, q, qd, STEPS, [(x, at[b]) for x, at in events], {}, "rk4"))


def test_loops_open_by_the_error_of_the_method():
    tree, (q, qd) = four_bar()
    fast = tree.compile()
    gaps = {
        (method, n): np.abs(tree.gap(fast.rollout(q, qd, n, 0.5 / n, method=method).q)).max()
        for method, n in (("semi_implicit_euler", 500), ("semi_implicit_euler", 1000), ("rk4", 250), ("rk4", 500))
    }
    assert gaps["semi_implicit_euler", 1000] < 0.6 * gaps["semi_implicit_euler", 500]
    assert gaps["rk4", 500] < 0.1 * gaps["rk4", 250] < 1e-8


def test_what_loops_do_not_allow_is_refused():
    tree, (q, qd) = four_bar()
    fast = tree.compile()
    with pytest.raises(LoopError, match=r"'pin' is open by .*; start run 1 from tree.project"):
        fast.rollout([q, q + 0.1], qd, 2, 1e-3)
    with pytest.raises(LoopError, match=r"the rates open the loops .*; start run 0 from tree.project"):
        fast.rollout(q, [qd + 1, qd], 2, 1e-3)
    with pytest.raises(LoopError, match=r"joint 'rocker' is in loop 'pin'.* locked, freed or stopped"):
        fast.rollout(q, qd, 4, 1e-3, events=[(sd.Lock("rocker"), 2)])
    tree.touch("rocker", to="base", on=sd.Plane((0, 1, 0), -9), points=[(0, 0, 0)])
    with pytest.raises(LoopError, match="a rollout with contacts is not available"):
        tree.compile().rollout(q, qd, 4, 1e-3)
