"""Dry friction and inelastic stops beside closed loops, against reductions to one freedom and trees without loops."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import solve_ivp
from scipy.optimize import lsq_linear

import screwdyn as sd

G = 9.81
L, D, M = 0.5, 0.8, 1.0


def bar(length):
    return sd.Inertia.rod(M, length, "x", (length / 2, 0, 0))


def parallelogram(friction, gravity=G, limits=None):
    """Two cranks a and c of length L, and a coupler b of length D between them that stays level."""
    a, b, c = ({"friction": f, "name": name} for f, name in zip(friction, "abc", strict=True))
    tree = sd.KinematicTree(gravity=(0, 0, -gravity))
    tree.attach(bar(L), to="base", joint=sd.revolute("y", limits=limits, **a), name="crank")
    tree.attach(bar(D), to="crank", joint=sd.revolute("y", **b), at=(L, 0, 0), name="coupler")
    tree.attach(bar(L), to="base", joint=sd.revolute("y", **c), at=(D, 0, 0), name="rocker")
    tree.close("coupler", to="rocker", joint=sd.revolute("y", point=(D, 0, 0)), at=(L - D, 0, 0), name="pin")
    return tree


def pendulum(friction, gravity=G, limits=None):
    """One crank with the inertia and the weight of the parallelogram."""
    tree = sd.KinematicTree(gravity=(0, 0, -gravity))
    body = sd.Inertia(3 * M, (2 / 3 * L, 0, 0), np.diag([0, 1, 1]) * (2 / 3 + 1 - 4 / 3) * M * L**2)
    tree.attach(body, to="base", joint=sd.revolute("y", friction=friction, name="a", limits=limits), name="crank")
    return tree


def level(angle):
    """The position of the parallelogram, and its rates for a rate of 1, with the crank at an angle."""
    return np.array([angle, -angle, angle]), np.array([1.0, -1, 1])


def assert_ledger_closes(run, tolerance=1e-8):
    E = run.energy
    size = max(np.ptp(E.kinetic), np.ptp(E.potential), np.ptp(E.work), 1e-3)
    assert np.abs(E.residual).max() < tolerance * size
    assert (np.diff(E.dissipated) >= -1e-12).all() and (np.diff(E.impact_loss) >= 0).all()


def test_friction_in_all_joints_of_a_parallelogram():
    """It swings and comes to rest like a pendulum with the sum of the frictions."""
    tree, one = parallelogram([0.6, 0.5, 0.4]), pendulum(1.5)
    assert_allclose(tree.reduced(level(0.3)[0], np.zeros(3), "a").M, one.mass_matrix([0.3]), rtol=1e-12)
    run = sd.simulate(tree, sd.State(tree, level(0.4)[0]), 6.0, step=0.05)
    expected = sd.simulate(one, sd.State(one, [0.4]), 6.0, step=0.05)
    assert_allclose(run.q, np.outer(expected["a"], [1, -1, 1]), atol=1e-7)
    assert_allclose(run.energy.dissipated, expected.energy.dissipated, atol=1e-7)
    assert not run.qd[-1].any() and not expected.qd[-1].any() and np.ptp(run["a"]) > 1
    assert_allclose(run.q[-1], run.q[-10], atol=1e-14)
    assert_ledger_closes(run)


@pytest.mark.slow
@pytest.mark.parametrize("friction", [(0.6, 0.5, 0.4), (0, 1.5, 0), (1.0, 0, 0.5)])
def test_a_load_is_shared_before_it_moves_anything(friction):
    """Redundant joints hold until all of them together cannot: the crank turns after 1.5 s."""
    tree = parallelogram(friction, gravity=0)
    q, _ = level(0.7)
    run = sd.simulate(tree, sd.State(tree, q), 2.0, lambda t, state: {"a": t}, step=0.05)
    inertia = pendulum(0).mass_matrix([0])[0, 0]
    assert_allclose(run["a"], 0.7 + np.maximum(run.t - 1.5, 0) ** 3 / (6 * inertia), atol=1e-9)
    assert_allclose(run.q[run.t < 1.5], np.broadcast_to(q, (30, 3)), atol=1e-14)
    assert_ledger_closes(run)


def test_a_stop_beside_a_loop():
    """The crank strikes its stop, where everything comes to rest, and leaves it when the torque turns."""

    def torque(t, state):
        return {"a": 20.0 * t - 4.0}

    tree, one = parallelogram([0, 0, 0], 0, (0.5, 1.5)), pendulum(0, 0, (0.5, 1.5))
    q, rates = level(1.2)
    run = sd.simulate(tree, sd.State(tree, q, -1.5 * rates), 0.7, torque, stops="inelastic", step=0.01)
    expected = sd.simulate(one, sd.State(one, [1.2], [-1.5]), 0.7, torque, stops="inelastic", step=0.01)
    assert_allclose(run.q, np.outer(expected["a"], [1, -1, 1]), atol=1e-8)
    ((t, event), *_), ((t1, event1), *_) = ([(x.t, x.event) for x in r.events] for r in (run, expected))
    assert_allclose([t, event.energy_lost, event.impulse[0]], [t1, event1.energy_lost, event1.impulse[0]], rtol=1e-7)
    assert_array_equal(event.impulse[1:], 0)
    assert (run["a"] >= 0.5 - 1e-12).all() and run["a"][-1] > 0.6
    assert_ledger_closes(run)


def slider_crank(friction=0.0, limits=None, crank=0.3, rod=0.7):
    tree = sd.KinematicTree(gravity=(0, 0, -G))
    tree.attach(bar(crank), to="base", joint=sd.revolute("y", friction=friction, name="a"), name="crank")
    tree.attach(bar(rod), to="crank", joint=sd.revolute("y", friction=friction, name="b"), at=(crank, 0, 0), name="rod")
    slide = sd.prismatic("x", limits=limits, friction=10 * friction, name="x")
    tree.attach(sd.Inertia.point(2.0), to="base", joint=slide, name="piston")
    tree.close("rod", to="piston", joint=sd.revolute("y", point=(rod, 0, 0)), at=(-rod, 0, 0), name="pin")
    return tree, tree.assemble([0.7, -1.0, 0.9], hold="a")


def test_a_piston_against_its_stop():
    """The mechanism has one freedom, so the impact of the piston stops everything: all kinetic energy is lost."""
    tree, q = slider_crank()
    tree, _ = slider_crank(limits=(q[2] - 0.1, 2))
    q, qd = tree.project(q, [2.0, 0, 0], hold="a")
    run = sd.simulate(tree, sd.State(tree, q, qd), 1.0, stops="inelastic", step=0.01)
    happened = run.events[0]
    before = run.at(happened.t, "before")
    assert before.velocity("x") < -0.1
    assert_allclose(happened.event.energy_lost, tree.kinetic_energy(before.q, before.qd), rtol=1e-9)
    assert_allclose(happened.event.state.qd, 0, atol=1e-12)
    assert_allclose(run["x"].min(), tree.joint("x").limits[0], atol=1e-12)
    assert_ledger_closes(run)


def reduced_motion(tree, q, rate, times, friction):
    """The crank's angle by the equation of one freedom, M ÿ + C ẏ + g = −Zᵀ F sgn(Z ẏ), while it turns one way."""

    def slope(t, y):
        place = tree.assemble([*y[:1], *guess[1:]], hold="a")
        guess[:] = place
        J = tree.constraint_jacobian(place)
        Z = np.append(1.0, -np.linalg.lstsq(J[:, 1:], J[:, 0])[0])
        found = tree.reduced(place, Z * y[1], "a")
        push = found.Z.T @ (-friction * np.sign(found.Z @ y[1:])) - found.C @ y[1:] - found.g
        return [y[1], (push / found.M[0])[0]]

    guess = np.array(q)
    return solve_ivp(slope, (0, times[-1]), [q[0], rate], "DOP853", times, rtol=1e-8, atol=1e-10).y[0]


@pytest.mark.slow
def test_friction_where_the_piston_turns():
    """At its dead points the piston is at rest for an instant, and its friction turns; the crank goes on."""
    tree, q = slider_crank(friction=0.3)
    q, qd = tree.project(q, [12.0, 0, 0], hold="a")
    run = sd.simulate(tree, sd.State(tree, q, qd), 0.4, step=0.05)
    assert (run.velocity("a") > 1).all() and np.ptp(np.sign(run.velocity("x"))) == 2
    friction = tree.model.joint_forces.friction
    assert_allclose(run["a"], reduced_motion(tree, q, 12.0, run.t, friction), atol=1e-6)
    assert_ledger_closes(run)


def five_bar(friction):
    """Two freedoms: two arms of two links that meet in a pin."""
    tree = sd.KinematicTree(gravity=(0, 0, -G))
    for k, (side, x) in enumerate((("l", 0.0), ("r", 0.6))):
        at = (x, 0, 0)
        for part in "12":
            to = "base" if part == "1" else f"{side}1"
            joint = sd.revolute("y", friction=friction[2 * k + int(part) - 1], damping=0.05, name=f"q{side}{part}")
            tree.attach(bar(0.5), to=to, joint=joint, at=at, name=side + part)
            at = (0.5, 0, 0)
    tree.close("l2", to="r2", joint=sd.revolute("y", point=(0.5, 0, 0)), at=(0, 0, 0), name="pin")
    return tree, tree.assemble([-2.0, 1.0, -1.1, -1.0])


def test_a_joint_that_sticks_beside_a_loop_is_locked():
    tree, q = five_bar([0, 50.0, 0, 0])
    run = sd.simulate(tree, sd.State(tree, q), 0.8, step=0.05)
    locked = tree.copy()
    locked.lock("ql2", sd.State(locked, q))
    expected = sd.simulate(
        locked, sd.State(locked, {n: x for n, x in zip(tree.positions, q, strict=True) if n != "ql2"}), 0.8, step=0.05
    )
    for name in locked.positions:
        assert_allclose(run[name], expected[name], atol=1e-7)
    assert_allclose(run["ql2"], q[1], atol=1e-13)
    assert not run.velocity("ql2").any() and np.ptp(run["ql1"]) > 0.2
    assert np.abs([tree.gap(x) for x in run.q]).max() < 1e-9


@pytest.mark.slow
@given(st.integers(0, 2**32 - 1))
@settings(max_examples=4)
def test_stick_and_slip_of_a_five_bar(seed):
    """The ledger closes, and forces hold what is at rest."""
    rng = np.random.default_rng(seed)
    tree, q = five_bar(rng.uniform(0.1, 3, 4) * (rng.random(4) < 0.7))
    push = {name: 6 * rng.normal() for name in tree.active}
    run = sd.simulate(tree, sd.State(tree, q), 1.0, lambda t, s: push if t < 0.5 else {}, control_period=0.1, step=0.01)
    assert_ledger_closes(run, 1e-6)
    assert np.abs([tree.gap(x) for x in run.q]).max() < 1e-8
    motors = tree.model.joint_forces
    for state, qdd, tau in zip(run.states, run.qdd, run.tau, strict=True):
        still = np.abs(state.qd) < 1e-9
        Z = np.linalg.svd(tree.constraint_jacobian(state.q))[2][2:].T
        load = tau + motors.viscous_force(state.qd) - motors.friction * np.sign(state.qd) * ~still
        missing = Z.T @ (tree.mass_matrix(state.q) @ qdd + tree.bias_force(state.q, state.qd) - load)
        # Some forces of the joints at rest within their friction balance what is missing.
        bound = motors.friction[still] + 1e-9
        left = (
            lsq_linear(Z[still].T, missing, (-bound, bound), "bvls", 1e-15).cost if still.any() else missing @ missing
        )
        assert left < 1e-10


def test_what_is_held_is_held_in_another_process():
    tree, q = five_bar([0, 50.0, 0, 0])
    held = pickle.loads(pickle.dumps(tree._holding((1,))))
    here = tree._holding((1,)).forward_dynamics(q, np.zeros(4), np.ones(4))
    assert_array_equal(held.forward_dynamics(q, np.zeros(4), np.ones(4)), here)
    assert abs(here[1]) < 1e-99 < abs(here[0])


def test_a_biped_stands_by_the_friction_of_its_joints():
    """Both feet are welded to the ground, which bears its weight; less friction lets it sink."""
    for friction in (60.0, 5.0):
        tree = sd.KinematicTree()
        tree.attach(sd.Inertia.box(30, (0.2, 0.3, 0.5)), to="base", joint=sd.free(name="float"), name="torso")
        for side, y in (("left/", 0.1), ("right/", -0.1)):
            to, at = "torso", (0, y, -0.25)
            kinds = sd.spherical(friction=friction), sd.revolute("y", friction=friction)
            kinds += (sd.universal("y", "x", friction=friction),)
            for part, mass, joint in zip(("thigh", "shank", "foot"), (6, 3, 1), kinds, strict=True):
                body = sd.Inertia.box(mass, (0.1, 0.1, 0.4), com=(0, 0, -0.2))
                to = tree.attach(body, to=to, joint=joint, at=at, name=side + part).name
                at = (0, 0, -0.4)
        bent = {"thigh[y]": -np.sin(0.15), "thigh[w]": np.cos(0.15), "shank": 0.6, "foot[angle1]": -0.3}
        state = sd.State(
            tree, {f"{side}/{x}": v for side in ("left", "right") for x, v in bent.items()} | {"float[pz]": 1.2}
        )
        for foot in ("left/foot", "right/foot"):
            state = tree.weld(foot, "base", state).state
        run = sd.simulate(tree, state, 0.2, step=0.02)
        stands = friction == 60
        assert (np.abs(run.qd).max() < 1e-12) == stands
        assert_ledger_closes(run)
        if stands:
            push = sum(run.wrench(foot, by="base") for foot in ("left/foot", "right/foot"))
            assert_allclose(push[-1, 3:], [0, 0, 50 * G], atol=1e-9)


def test_a_four_bar_rests_under_torques_that_hold_it():
    """Up to the friction of its joints: the law of friction is one of rounding errors where all forces balance."""
    tree = sd.KinematicTree(gravity=(0, -G, 0))
    for name, to, length, at, friction in (
        ("crank", "base", 1.0, (0, 0, 0), 0.5),
        ("coupler", "crank", 2.5, (1, 0, 0), 0.5),
        ("rocker", "base", 2.0, (2.2, 0, 0), 0.0),
    ):
        body = sd.Inertia.box(length, (length, 0.02, 0.02), com=(length / 2, 0, 0))
        tree.attach(body, to=to, joint=sd.revolute("z", friction=friction), at=at, name=name)
    tree.close("rocker", to="coupler", joint=sd.revolute("z", (2, 0, 0)), at=(0.5, 0, 0), name="pin")
    q = tree.assemble([0.7, -0.2, 1.5], hold=["crank"])
    for more in (0.0, 1e-9, 1e-3):
        torque = tree.holding_torque(q) + np.array([more, 0, 0])
        run = sd.simulate(tree, sd.State(tree, q), 0.02, lambda t, state, torque=torque: torque, step=1e-3)
        assert np.abs(run.q - q).max() < 1e-14 and np.abs(run.qd).max() < 1e-14
