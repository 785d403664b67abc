"""Mechanisms of the literature: Andrews' squeezer, and N four-bars, whose flat position is singular."""

import numpy as np
import pytest
from cases import norm
from mechanisms import bar, four_bar
from numpy.testing import assert_allclose

import screwdyn as sd

# The test set's solution at 0.03 s, computed with tolerances of 1e-14: β, Θ, γ, Φ, δ, Ω, ε and their rates.
LINKS = ("K1", "K2", "K3", "K4", "K5", "K6", "K7")
POSITIONS = [15.81077119629904, -15.75637105984298, 0.04082224013073101, -0.5347301163226948]
POSITIONS += [0.5244099658805304, 0.5347301163226948, 1.048080741042263]
RATES = [1139.920302151208, -1424.379294994111, 11.03291221937134, 19.29337464421385]
RATES += [0.5735699284790808, -19.29337464421385, 0.3231791658026955]


def andrews_forces(t, state):
    """The motor of K1, and the spring's moment about the pin of K3."""
    gamma = state["K3"]
    turn = np.array([[np.cos(gamma), -np.sin(gamma)], [np.sin(gamma), np.cos(gamma)]])
    arm = turn @ [0.02, -0.018]
    along = np.array([-0.03635, 0.03273]) + arm - [0.014, 0.072]
    length = np.hypot(*along)
    force = -4530 * (1 - 0.07785 / length) * along
    return {"K1": 0.033, "K3": arm[0] * force[1] - arm[1] * force[0]}


def andrews():
    """The mechanism, and its configuration at the start, of which the source gives these digits."""
    tree = sd.robots.andrews()
    q = tree.assemble([-0.06, 0, 0.46, 0.49, 0.22, 1.23, -0.22], hold=["K2"])
    start = [-0.0617138900142764496, 0.0, 0.455279819163070380, 0.222668390165885885]
    start += [0.487364979543842550, -0.222668390165885885, 1.23054744454982120]
    assert_allclose(q, by_name(tree, start), rtol=0, atol=1e-12)
    return tree, np.array(by_name(tree, start))


def by_name(tree, values):
    given = dict(zip(LINKS, values, strict=True))
    return [given[name] for name in tree.coordinates]


def test_andrews_accelerations_at_the_start():
    """The source gives β̈ and Θ̈, and two components of the constraint forces; all others are zero."""
    tree, q = andrews()
    assert_allclose(tree.gap(q), 0, rtol=0, atol=1e-16)
    tau = andrews_forces(0.0, sd.State(tree, q))
    qdd = tree.forward_dynamics(q, np.zeros(7), [tau.get(name, 0.0) for name in tree.coordinates])
    expected = by_name(tree, [14222.4439199541138705911625887, -10666.8329399655854029433719415, *[0] * 5])
    assert_allclose(qdd, expected, rtol=1e-11, atol=1e-7)
    found = tree.constraint_wrenches(q, np.zeros(7), [tau.get(name, 0.0) for name in tree.coordinates]).wrenches
    turned = tree.forward_kinematics("K3", q)[:3, :3] @ found["K3-K2"][3:]
    assert_allclose(np.abs(turned[:2]), [98.5668703962410896, 6.12268834425566265], rtol=1e-9)


def test_andrews_squeezer():
    tree, q = andrews()
    run = sd.simulate(tree, sd.State(tree, q), 0.03, torque=andrews_forces, step=0.0015)
    assert_allclose(run.q[-1], by_name(tree, POSITIONS), rtol=0, atol=5e-9)
    assert_allclose(run.qd[-1], by_name(tree, RATES), rtol=0, atol=5e-6)
    assert np.abs(tree.gap(run.q)).max() < 1e-15


def rods(count, rate):
    """Upright parallel rods of 1 m whose ends are connected by others, and the rates of a common fall."""
    tree, pin = sd.KinematicTree(gravity=(0, -9.81, 0)), sd.revolute("z")
    rod = sd.Inertia.box(1.0, (1, 0.01, 0.01), com=(0.5, 0, 0))
    tree.attach(rod, to="base", joint=pin, name="rod0")
    for k in range(count):
        tree.attach(rod, to=f"rod{k}", joint=pin, at=(1, 0, 0), name=f"bar{k}")
        tree.attach(rod, to="base", joint=pin, at=(k + 1, 0, 0), name=f"rod{k + 1}")
        tree.close(f"rod{k + 1}", to=f"bar{k}", joint=sd.revolute("z", (1, 0, 0)), name=f"pin{k}")
    signs = np.array([1 if name.startswith("rod") else -1 for name in tree.coordinates])
    return tree, sd.State(tree, signs * np.pi / 2, signs * rate)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_four_bars_pass_their_flat_position(count):
    """A rod and a half of turns: the energy is that of the fall by hand, and the loops stay closed."""
    tree, start = rods(count, -1.3)
    assert [tree.freedoms(start.q), tree.freedoms(np.zeros(tree.nv))] == [1, 1 + count]
    run = sd.simulate(tree, start, 2.0)
    assert np.ptp(run.q[:, 0]) > 2 * np.pi
    assert np.abs(tree.gap(run.q)).max() < 1e-12
    # All bars are parallel to the base: m(θ) is constant, and all centres of mass fall with sin θ.
    mass, weight = (count + 1) / 3 + count, 9.81 * ((count + 1) / 2 + count)
    mass += (count + 1) * 0.01**2 / 12
    expected = 1.3**2 + 2 * weight / mass * (1 - np.sin(run.q[:, 0]))
    parallel = np.abs(run.q[:, 0] + run.q[:, 1]) < 1e-6
    assert parallel[run.q[:, 0] > 0.1].all()
    assert_allclose(run.qd[parallel, 0] ** 2, expected[parallel], rtol=1e-6)
    assert np.ptp(run.energy.total) < 1e-6 * norm(run.energy.kinetic)


def test_a_singular_configuration_is_named():
    """Near the flat position, an integration that does not get on names the loop whose constraints are dependent."""
    from screwdyn.simulation.equations import ENERGIES, EquationsOfMotion
    from screwdyn.simulation.hybrid import StallGuard
    from screwdyn.simulation.integrators import Integrator

    tree, start = rods(2, -1.0)
    near = np.concatenate([start.q * 1e-4, start.qd, np.zeros(ENERGIES)])
    y = np.concatenate([start.q, start.qd, np.zeros(ENERGIES)])
    equations = EquationsOfMotion(tree, None, None, None, y)
    assert equations.dependent(y) == []
    error = StallGuard(equations, Integrator("DOP853", 1e-9, 1e-10), 1.0, 0.5, near).error(0.5, "the steps are short")
    assert isinstance(error, sd.LoopError)
    assert "singular configuration at t = 0.5 s, near which constraints of 'pin0', 'pin1' are dependent" in str(error)


@pytest.mark.slow
def test_a_start_in_a_singular_configuration_is_named():
    """The piston of a crank as long as its rod stands in the centre of the crank, about which both may turn."""
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    tree.attach(bar(1.0, 0.5), to="base", joint=sd.revolute("z"), name="crank")
    tree.attach(bar(1.0, 0.5), to="crank", joint=sd.revolute("z"), at=(0.5, 0, 0), name="rod")
    tree.attach(sd.Inertia.box(1.0, (0.1, 0.1, 0.1)), to="base", joint=sd.prismatic("x"), name="piston")
    tree.close("piston", to="rod", joint=sd.revolute("z"), at=(0.5, 0, 0), name="gudgeon")
    q = np.array([np.pi / 2, -np.pi, 0])
    assert tree.freedoms(q) == 2
    start = sd.State(tree, *tree.project(q, [1.0, 2.0, 3.0]))
    with pytest.raises(sd.LoopError, match="near which constraints of 'gudgeon' are dependent"):
        sd.simulate(tree, start, 1.0, step=0.01)
    # Along the motion in which the piston stays, it stands there for ever.
    turning = sd.simulate(tree, sd.State(tree, q, [1.0, 0, 0]), 1.0, step=0.05)
    assert_allclose(turning.q[-1], [np.pi / 2 + 1, -np.pi, 0], rtol=0, atol=1e-9)


@pytest.mark.slow
def test_constraints_that_are_dependent_only_together_are_named():
    """Legs that cannot turn about z do not determine whether an upright torso pitches or they spread sideways."""
    leg, pins = sd.KinematicTree("pelvis"), [sd.revolute(axis, name=f"{axis}{k}") for k, axis in enumerate("xyyyx")]
    small, bone = sd.Inertia.box(1.0, (0.1, 0.1, 0.1)), sd.Inertia.rod(4.0, 0.4, "z", (0, 0, -0.2))
    for k, (body, drop) in enumerate([(small, 0), (bone, 0), (bone, 0.4), (small, 0.4), (small, 0)]):
        leg.attach(body, to=f"part{k - 1}" if k else "pelvis", joint=pins[k], at=(0, 0, -drop), name=f"part{k}")
    robot = sd.KinematicTree("ground")
    robot.attach(sd.Inertia.box(30.0, (0.3, 0.2, 0.5)), to="ground", joint=sd.free(), name="torso")
    for side, y in (("l/", 0.1), ("r/", -0.1)):
        robot.attach(leg, to="torso", at=(0, y, -0.25), prefix=side)
    bent = {f"{side}/{name}": q for side in "lr" for name, q in (("y1", -0.3), ("y2", 0.6), ("y3", -0.3))}
    state = sd.State(robot, bent)
    for side in "lr":
        state = robot.weld(f"{side}/part4", "ground", state).state
    # Squatting straight, it stays where they are dependent, and the motion is determined.
    straight = sd.simulate(robot, state, 0.1, lambda t, now: {"l/y2": 20.0, "r/y2": 20.0})
    assert np.abs(straight.energy.residual).max() < 1e-11
    assert_allclose(straight["l/y2"], straight["r/y2"], rtol=1e-9)
    with pytest.raises(sd.LoopError, match="constraints of 'l/part4-ground', 'r/part4-ground' are dependent"):
        sd.simulate(robot, state, 0.1, lambda t, now: {"l/y2": 40.0, "r/x0": -10.0})


@pytest.mark.slow
def test_a_stiff_closed_loop_is_not_sent_to_implicit_methods():
    tree, (q, qd) = four_bar()
    tree.replace_joint("rocker", sd.revolute("z", damping=1e9))
    with pytest.raises(sd.StalledError, match=r"must follow\. Reduce the damping") as error:
        sd.simulate(tree, sd.State(tree, q, qd), 1.0)
    assert "Radau" not in str(error.value)


@pytest.mark.slow
def test_wrenches_on_a_link_of_a_loop():
    """The four-bar at rest without gravity: what a motor of the crank exerts on the rocker passes through the pin."""
    tree, (q, _) = four_bar()
    tree.gravity = (0, 0, 0)
    run = sd.simulate(tree, sd.State(tree, q), 0.01, torque=lambda t, state: {"crank": 1.3}, step=2e-3)
    pin = tree.constraint_wrenches(q, np.zeros(3), [1.3, 0, 0]).wrenches["pin"]
    bearing = run.wrench("rocker", 0.0) - pin
    assert_allclose(bearing[2], 0, rtol=0, atol=1e-9)  # a passive joint
    assert abs(pin[2]) > 0.1 and norm(bearing[3:5]) > 1
