"""Stops at joint limits, against motions with a known solution and the laws of impacts."""

import itertools
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad

import screwdyn as sd
from screwdyn.forms.configurations import Limits
from screwdyn.simulation.bounded import Bounded
from screwdyn.testing import random_tree

G = 9.81
METHODS = ["DOP853", "RK45", "Radau", "LSODA"]


def lift(limits=(0.0, np.inf), mass=2.0, **options):
    """A box that moves up and down."""
    tree = sd.KinematicTree(gravity=(0, 0, -G))
    joint = sd.prismatic("z", limits=limits, name="z", **options)
    tree.attach(sd.Inertia.point(mass), to="base", joint=joint, name="box")
    return tree


def double_pendulum(limits, gravity=(0, 0, -G), floating=False):
    tree = sd.KinematicTree(gravity=gravity)
    if floating:
        tree.attach(sd.Inertia.box(3.0, (0.3, 0.2, 0.1)), to="base", joint=sd.free(), name="body")
    rod = sd.Inertia.rod(1.0, 0.5, "x", (0.25, 0, 0))
    tree.attach(rod, to=tree.links[-1], joint=sd.revolute("y", name="shoulder"), name="upper")
    joint = sd.revolute("y", limits=limits, name="elbow")
    tree.attach(rod, to="upper", joint=joint, at=(0.5, 0, 0), name="fore")
    return tree


def assert_ledger_closes(run, tolerance=1e-7):
    E = run.energy
    size = max(np.ptp(E.kinetic), np.ptp(E.potential), np.ptp(E.work), 1e-3)
    assert np.abs(E.residual).max() < tolerance * size
    assert (np.diff(E.impact_loss) >= 0).all() and (np.diff(E.dissipated) >= -1e-9 * size).all()


@pytest.mark.parametrize("method", METHODS)
def test_box_falls_on_its_stop_and_stays(method):
    tree, height = lift(), 0.7
    run = sd.simulate(tree, sd.State(tree, [height]), 1.0, stops="inelastic", step=5e-3, method=method)
    (happened,) = run.events
    fall = np.sqrt(2 * height / G)
    assert_allclose(happened.t, fall, atol=1e-7)
    assert_allclose(happened.event.energy_lost, 2.0 * G * height, rtol=1e-6)
    assert_allclose(happened.event.impulse, [2.0 * G * fall], rtol=1e-6)
    assert (happened.event.coordinate, happened.event.side) == ("z", "lower")
    later = run.t > happened.t
    assert later.sum() > 100 and not run["z"][later].any() and not run.velocity("z")[later].any()
    assert_allclose(run.at(happened.t, "before").qd, [-G * fall], rtol=1e-6)
    assert run.at(happened.t).qd == 0
    assert_ledger_closes(run)
    assert run.energy.impact_loss[-1] == happened.event.energy_lost


def test_pendulum_falls_on_its_stop():
    """From rest at the horizontal to 1 rad below it, where it loses all of its kinetic energy."""
    m, L, limit = 1.3, 0.6, 1.0
    tree = sd.KinematicTree(gravity=(0, 0, -G))
    joint = sd.revolute("y", limits=(-0.1, limit), passive=True)
    tree.attach(sd.Inertia.rod(m, L, "x", (L / 2, 0, 0)), to="base", joint=joint, name="rod")
    run = sd.simulate(tree, sd.State(tree), 2.0, stops={"rod": "inelastic"})
    # q̇² = 3 g sin(q) / L; with q = x², the integrand is smooth.
    time = quad(lambda x: 2 * x / np.sqrt(3 * G / L * np.sin(x**2)), 0, 1, epsabs=1e-13)[0]
    (happened,) = run.events
    assert_allclose(happened.t, time, atol=1e-8)
    assert_allclose(happened.event.energy_lost, m * G * L / 2 * np.sin(limit), rtol=1e-8)
    assert_allclose(run.energy.kinetic[-1], 0, atol=0)
    assert_allclose(run["rod"][-1], limit, atol=1e-15)


def test_elbow_on_its_stop_is_locked_for_an_instant():
    """The other rates follow M_rr q̇_r⁺ = M_rr q̇_r⁻ + M_rj q̇_j⁻, and the losses are those of a lock."""
    tree = double_pendulum((-1.0, 0.4))
    run = sd.simulate(tree, sd.State(tree, [0.2, 0.0], [0.5, 8.0]), 0.3, stops="inelastic")
    t, event = run.events[0].t, run.events[0].event
    before, after = run.at(t, "before"), run.at(t)
    M = tree.mass_matrix(before.q)
    assert_allclose(after.qd, [before.qd[0] + M[0, 1] * before.qd[1] / M[0, 0], 0], rtol=1e-10)
    lock = tree.copy().lock("elbow", sd.State(tree, before.q, before.qd))
    assert_allclose(event.energy_lost, lock.energy_lost, rtol=1e-9)
    assert_allclose(event.impulse, [0, *lock.impulse], rtol=1e-9)
    assert_array_equal(event.state.q, after.q)
    assert_ledger_closes(run)


def test_stop_holds_against_gravity_until_it_would_pull():
    """The force of the stop is that of inverse dynamics; the arm leaves when a torque exceeds it."""
    tree = double_pendulum((-1.0, 0.0))
    state = sd.State(tree)
    weight = tree.gravity_vector(state.q)  # both negative: gravity pushes the elbow towards its upper limit
    assert (weight < 0).all()
    ramp = 0.5 * weight[1]

    def torque(t, state):
        # The shoulder is balanced; the elbow is pulled ever more, and leaves the stop after 2 s.
        return [weight[0], ramp * t]

    run = sd.simulate(tree, state, 2.2, torque, stops="inelastic", step=0.01)
    still = run.t < 2 - 1e-6
    assert not run["elbow"][still].any() and not run["shoulder"][still].any()
    assert (run["elbow"][run.t > 2.05] < 0).all()
    # After the time 2 + s, the elbow's acceleration is (M⁻¹)_ee ramp s.
    s = 0.01
    bend = np.linalg.inv(tree.mass_matrix(state.q))[1, 1] * ramp
    assert_allclose(run.at(2 + s)["elbow"], bend * s**3 / 6, rtol=2e-3)
    assert not run.events
    assert_ledger_closes(run)


@pytest.mark.parametrize("method", METHODS)
def test_box_is_lifted_from_its_stop_when_the_force_exceeds_its_weight(method):
    m, slope = 2.0, 30.0
    tree = lift(mass=m)
    run = sd.simulate(tree, sd.State(tree), 1.0, lambda t, _: [slope * t], stops="inelastic", step=5e-3, method=method)
    s = np.maximum(run.t - m * G / slope, 0)
    assert_allclose(run["z"], slope * s**3 / (6 * m), atol=1e-7)
    assert not run.events and s[-1] > 0.3
    assert_ledger_closes(run)


@pytest.mark.slow
def test_stop_and_friction_hold_together():
    """Friction opposes the lift from the stop as well, and the fall back onto it."""
    m, F, slope = 2.0, 4.0, 30.0
    tree = lift(mass=m, friction=F)
    force = [lambda t: slope * t, lambda t: 0.0]
    run = sd.simulate(
        *(tree, sd.State(tree), 1.5, lambda t, state: [force[t > 1.0](t)]),
        **{"stops": "inelastic", "control_period": 4e-3, "step": 4e-3},
    )
    begins = (m * G + F) / slope
    assert_allclose(run.t[np.argmax(run["z"] > 0)], begins, atol=5e-3)
    (happened,) = run.events
    assert happened.t > 1.1 and run["z"][-1] == 0 and run.velocity("z")[-1] == 0
    assert_ledger_closes(run)


def test_start_at_a_limit():
    """At rest it stays; a rate into the stop is lost at once, and one away from it is kept."""
    for rate, lost in ((0.0, 0.0), (-3.0, 9.0), (3.0, 0.0)):
        tree = lift()
        run = sd.simulate(tree, sd.State(tree, [0.0], [rate]), 0.2, stops="inelastic", step=2e-3, t0=1.0)
        assert_allclose(run.energy.impact_loss[-1], lost, rtol=1e-14)
        assert [h.t for h in run.events] == [1.0] * (lost > 0)
        assert_allclose(run["z"][-1], (0.2 * rate - 0.02 * G) * (rate > 0), atol=1e-9)
        assert_ledger_closes(run)


def test_two_stops_at_once():
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    tree.attach(sd.Inertia.point(1.0), to="base", joint=sd.prismatic("x", limits=(-1, 1), name="x"), name="a")
    tree.attach(sd.Inertia.point(2.0), to="a", joint=sd.prismatic("y", limits=(-1, 1), name="y"), name="b")
    run = sd.simulate(tree, sd.State(tree, qd=[4.0, -4.0]), 1.0, stops="inelastic")
    assert [(h.event.coordinate, h.event.side) for h in run.events] == [("x", "upper"), ("y", "lower")]
    assert_allclose([h.t for h in run.events], 0.25, atol=1e-12)
    assert_allclose(sum(h.event.energy_lost for h in run.events), 0.5 * 16 * (3 + 2), rtol=1e-12)
    assert_allclose(sum(h.event.impulse for h in run.events), [-12, 8], rtol=1e-12)
    assert_allclose(run.q[-1], [1, -1], atol=1e-12)


@given(st.integers(0, 2**32 - 1))
def test_impact_is_the_only_one_that_fits(seed):
    """Of all sets of freedoms that stop, one is consistent; no energy is gained, and only the stops push."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 4, ("revolute", "prismatic", "helical", "spherical"))
    for name in tree.joints:
        joint = tree.joint(name)
        if joint.nq == 1:
            tree.replace_joint(tree.topology.carried[name], replace(joint, limits=(0.0, 5.0)))
    q, qd = tree.random_configuration(rng), rng.normal(size=tree.nv)
    limits = Limits.of(tree, lambda joint: True)
    at = limits.where[limits.sign < 0]
    q[at] = 0.0
    rows = limits.rows[limits.sign < 0]
    struck = Bounded(tree, rng.uniform(0, 9, tree.nv), limits, q).strike(q, qd, 0 * qd, False)
    after, impulse, lost = struck.qd, struck.pushes, struck.lost
    M = tree.mass_matrix(q)
    fitting = []
    for chosen in itertools.product([False, True], repeat=len(rows)):
        stopped = rows[np.array(chosen, dtype=bool)]
        J = np.eye(tree.nv)[stopped]
        K = np.block([[M, -J.T], [J, np.zeros((len(stopped), len(stopped)))]])
        solved = np.linalg.solve(K, np.concatenate([M @ qd, np.zeros(len(stopped))]))
        rates, pushes = solved[: tree.nv], solved[tree.nv :]
        if (rates[np.setdiff1d(rows, stopped)] >= 0).all() and (pushes >= 0).all():
            fitting.append(rates)
            assert_allclose(after, rates, rtol=1e-6, atol=1e-8)
            assert_allclose(impulse, J.T @ pushes, rtol=1e-6, atol=1e-8 * np.abs(M).max())
    assert len(fitting) == 1
    energies = [0.5 * rates @ M @ rates for rates in (qd, after)]
    assert_allclose(energies[0] - energies[1], lost, rtol=1e-6, atol=1e-8 * energies[0])
    assert lost >= 0


def carts(*, on, friction, masses=(1.0, 1.0)):
    """Two carts on a rail, A with friction; B has a stop at 1 m and stands on a link."""
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    tree.attach(sd.Inertia.point(masses[0]), "base", sd.prismatic("x", friction=friction, name="a"), name="A")
    tree.attach(sd.Inertia.point(masses[1]), on, sd.prismatic("x", limits=(-1, 1), name="b"), name="B")
    return tree


def test_friction_elsewhere_has_no_impulse():
    """B hits its stop at 0.5 s; A, which nothing connects to it, slides on until its friction has stopped it."""
    tree = carts(on="base", friction=0.5)
    run = sd.simulate(tree, sd.State(tree, [0, 0], [0.55, 2.0]), 1.5, stops="inelastic", step=0.01)
    (happened,) = run.events
    assert_allclose(happened.event.impulse, [0, -2], atol=1e-12)
    assert_allclose(happened.event.energy_lost, 2.0, rtol=1e-12)
    s = np.minimum(run.t, 1.1)
    assert_allclose(run["a"], 0.55 * s - 0.25 * s**2, atol=1e-9)
    assert not run.velocity("a")[run.t > 1.1 + 1e-9].any()
    assert_ledger_closes(run)


def test_friction_resumes_after_an_impact():
    """B slides on A, which sticks; at B's stop they get their common rate, and friction then stops both."""
    (a, b), F, v = (2.0, 1.0), 3.0, 1.5
    tree = carts(on="A", friction=F, masses=(a, b))
    run = sd.simulate(tree, sd.State(tree, qd=[0, v]), 1.5, stops="inelastic", step=0.01)
    (happened,) = run.events
    common = b * v / (a + b)
    assert_allclose(happened.event.state.qd, [common, 0], rtol=1e-12)
    assert_allclose(happened.event.energy_lost, 0.5 * b * v**2 - 0.5 * (a + b) * common**2, rtol=1e-12)
    s, slows = run.t - 1 / v, F / (a + b)
    s = np.clip(s, 0, common / slows)
    assert_allclose(run["a"], common * s - 0.5 * slows * s**2, atol=1e-9)
    assert run.q[-1, 1] == 1 and not run.qd[-1].any()
    assert_ledger_closes(run)


def test_stop_just_before_friction_stops_the_cart():
    """Within one step it passes its stop and would turn, 1 µm beyond, as friction does not reverse in the step."""
    F, v = 0.5, 1.0
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    joint = sd.prismatic("x", friction=F, limits=(-1, v**2 / (2 * F) - 1e-6), name="x")
    tree.attach(sd.Inertia.point(1.0), "base", joint, name="cart")
    run = sd.simulate(tree, sd.State(tree, qd=[v]), 3.0, stops="inelastic", step=0.1)
    (happened,) = run.events
    assert_allclose(happened.event.energy_lost, F * 1e-6, rtol=1e-6)
    assert run["x"].max() == run["x"][-1] == joint.limits[1]
    assert_ledger_closes(run)


@pytest.mark.slow
def test_stops_that_strike_by_turns_without_end():
    """Each impact throws the other coordinate off its stop, in intervals that shrink to zero before 2 s."""
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    for k, (mass, limits) in enumerate([(0.2, (0, 1)), (1.0, (-1, 0))]):
        joint = sd.prismatic("x", limits=limits, name=f"x{k}")
        tree.attach(sd.Inertia.point(mass), to=tree.links[-1], joint=joint, name=f"box{k}")
    state = sd.State(tree, [0.1, -0.1])
    run = sd.simulate(tree, state, 2.5, lambda t, state: [-6.0, 5.0], stops="inelastic", step=0.01)
    assert len(run.events) > 100 and run.events[-1].t < 2
    assert not run.q[-1].any() and not run.qd[-1].any()
    assert_allclose(run.energy.impact_loss[-1], 1.1, rtol=1e-12)
    assert_ledger_closes(run)


@pytest.mark.slow
def test_floating_base_keeps_its_momentum():
    tree = double_pendulum((-0.5, 0.5), gravity=(0, 0, 0), floating=True)
    rng = np.random.default_rng(1)
    state = sd.State(tree, qd=np.concatenate([0.3 * rng.normal(size=6), [0.5, 3.0]]))
    run = sd.simulate(tree, state, 2.0, lambda t, s: {"shoulder": 2 * np.sin(5 * t)}, stops="inelastic", step=0.01)
    assert len(run.events) >= 2
    momenta = np.array([tree.momentum(q, qd) for q, qd in zip(run.q, run.qd, strict=True)])
    assert_allclose(momenta, np.broadcast_to(momenta[0], momenta.shape), atol=1e-8)
    assert (np.abs(run["elbow"]) <= 0.5 + 1e-12).all()
    assert_ledger_closes(run)


@pytest.mark.slow
@given(st.integers(0, 2**32 - 1), st.booleans())
@example(1000000, False)  # leaves a stop at 3e-10 rad/s
@settings(max_examples=8)
def test_random_trees_stay_within_their_stops(seed, soft):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 3, ("revolute", "prismatic", "universal", "spherical"), frames=0)
    stopped = [name for name in tree.joints if tree.joint(name).chart is None and tree.joint(name).nv]
    for name in stopped:
        joint = replace(tree.joint(name), limits=(-0.3, 0.3), damping=0.01, friction=rng.choice([0.0, 0.5]))
        tree.replace_joint(tree.topology.carried[name], joint)
    state = sd.State(tree, qd=rng.uniform(-2, 2, tree.nv))
    stop = sd.SpringStop(2e3, 5.0) if soft else "inelastic"
    run = sd.simulate(tree, state, 0.6, stops=stop, step=0.01)
    assert_ledger_closes(run, 1e-6)
    if not soft:
        for name in stopped:
            for position in tree.joint(name).position_names(name):
                assert (np.abs(run[position]) <= 0.3 + 1e-9).all()


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_spring_stop_returns_the_box_after_half_a_period(method):
    m, k, v = 2.0, 5e3, 1.5
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    joint = sd.prismatic("x", limits=(-1.0, 0.3), name="x")
    tree.attach(sd.Inertia.point(m), to="base", joint=joint, name="box")
    run = sd.simulate(tree, sd.State(tree, qd=[v]), 0.5, stops=sd.SpringStop(k), step=2.5e-3, method=method)
    (happened,) = run.events
    hit, contact, depth = 0.3 / v, np.pi * np.sqrt(m / k), v * np.sqrt(m / k)
    assert_allclose(happened.t, hit, atol=1e-7)
    s = np.clip(run.t - hit, 0, contact)
    expected = np.where(run.t < hit, v * run.t, 0.3 + depth * np.sin(s * np.sqrt(k / m)))
    expected -= v * np.maximum(run.t - hit - contact, 0)
    assert_allclose(run["x"], expected, atol=1e-6)
    assert_allclose(run.velocity("x")[-1], -v, rtol=1e-6)
    assert_allclose(run.energy.total, run.energy.total[0], rtol=1e-6)
    assert_ledger_closes(run, 1e-6)


@pytest.mark.slow
def test_damped_spring_stop_never_pulls():
    """A strongly damped stop is left while it is still compressed; what is left in it is dissipated."""
    m, k, d, v = 1.0, 100.0, 16.0, 2.0
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    tree.attach(sd.Inertia.point(m), to="base", joint=sd.prismatic("x", limits=(-9, 0.1), name="x"), name="box")
    run = sd.simulate(tree, sd.State(tree, qd=[v]), 1.0, stops={"x": sd.SpringStop(k, d)}, step=4e-3)
    assert (run.qdd <= 1e-9).all()
    # x = v/b e^{-at} sin bt; the force ends where k x + d ẋ = 0, with tan bt = 2ab/(a² − b²)
    a, b = d / (2 * m), np.sqrt(k / m - (d / (2 * m)) ** 2)
    end = np.arctan2(2 * a * b, a**2 - b**2) / b
    rate = v * np.exp(-a * end) * (np.cos(b * end) - a / b * np.sin(b * end))
    assert rate < 0
    assert_allclose(run.velocity("x")[-1], rate, rtol=1e-7)
    assert_allclose(run.energy.dissipated[-1], 0.5 * m * (v**2 - rate**2), rtol=1e-7)
    assert_ledger_closes(run)


def test_box_rests_on_a_spring_stop():
    tree, k = lift(), 1e4
    run = sd.simulate(tree, sd.State(tree, [0.01]), 3.0, stops=sd.SpringStop(k, 100.0), step=0.01)
    assert_allclose(run["z"][-1], -2.0 * G / k, rtol=1e-6)
    assert_ledger_closes(run)


@pytest.mark.slow
def test_joints_that_reach_their_springs_at_the_same_time_all_return():
    """After half an oscillation each, also where a joint is locked at that time."""
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    for name in ("one", "two", "three"):
        hinge = sd.revolute("z", limits=(-1, 1), name=name)
        tree.attach(sd.Inertia.rod(1, 1, "x", (0.5, 0, 0)), to="base", joint=hinge, name=f"rod {name}")
    tree.attach(sd.Inertia.rod(1, 1, "x", (0.5, 0, 0)), to="base", joint=sd.revolute("z", name="other"), name="rod")
    state = sd.State(tree, qd=np.ones(4))
    run = sd.simulate(
        tree, state, 2.0, stops=sd.SpringStop(100.0), events=[sd.Lock("other", time=1.0)], rtol=1e-11, step=0.05
    )
    assert_allclose(run.states[-1].q, np.pi * np.sqrt(1 / 3 / 100), rtol=1e-9)
    assert_ledger_closes(run)


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.0, 0.5, -0.5])
def test_spring_stop_at_the_start(rate):
    """At the limit with any rate, under a force that grows from zero, and compressed."""
    m, k = 2.0, 50.0
    for x0 in (0.0, 0.1):
        tree = sd.KinematicTree(gravity=(0, 0, 0))
        tree.attach(sd.Inertia.point(m), to="base", joint=sd.prismatic("x", limits=(-9, 0), name="x"), name="box")
        run = sd.simulate(tree, sd.State(tree, [x0], [rate]), 0.2, lambda t, s: [t], stops=sd.SpringStop(k), step=2e-3)
        if x0 > 0 or rate >= 0:
            w = np.sqrt(k / m)
            x = x0 * np.cos(w * run.t) + (rate - 1 / k) / w * np.sin(w * run.t) + run.t / k
        else:
            x = rate * run.t + run.t**3 / (6 * m)
        stays = np.cumsum(x < 0) == 0 if x0 > 0 else x < np.inf
        assert stays.sum() > 50
        assert_allclose(run["x"][stays], x[stays], atol=1e-8)
        assert_ledger_closes(run)


def test_stops_of_a_mapping_concern_its_joints_only():
    tree = double_pendulum((-0.2, 0.2), gravity=(0, 0, 0))
    tree.replace_joint("upper", sd.revolute("y", limits=(-0.1, 0.1), name="shoulder"))
    run = sd.simulate(tree, sd.State(tree, qd=[1.0, 1.0]), 0.6, stops={"elbow": "inelastic"})
    assert run["shoulder"].max() > 0.3 and run["elbow"].max() <= 0.2
    assert {h.event.coordinate: h.event.energy_lost > 0 for h in run.events} == {"shoulder": False, "elbow": True}


def test_group_joints_have_no_stops():
    tree = sd.KinematicTree()
    body = sd.Inertia.box(1.0, (0.3, 0.2, 0.1), (0.2, 0, 0))
    tree.attach(body, to="base", joint=sd.spherical(name="ball"), name="body")
    runs = [
        sd.simulate(tree, sd.State(tree), 1.0, stops=stops, step=0.01)
        for stops in (None, "inelastic", sd.SpringStop(1.0))
    ]
    for run in runs:
        assert not run.events
        assert_array_equal(run.q, runs[0].q)


def test_joints_that_follow_stop_with_the_one_they_follow():
    """A gripper closes on its stop; its limits are those of the finger that leads."""
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    finger = sd.Inertia.point(1.0)
    tree.attach(finger, to="base", joint=sd.prismatic("x", limits=(0, 0.04), name="left"), name="l")
    follower = sd.prismatic("x", limits=(-0.05, 0), mimic=sd.Mimic("left", -1.0), name="right")
    tree.attach(finger, to="base", joint=follower, name="r")
    run = sd.simulate(tree, sd.State(tree, qd=[0.1]), 1.0, stops="inelastic", step=0.01)
    (happened,) = run.events
    assert_allclose([happened.t, happened.event.energy_lost, *run.q[-1]], [0.4, 0.01, 0.04], rtol=1e-9)


def test_grasp_that_drives_a_joint_at_rest_into_its_stop():
    """The box rests on its stop; what it grasps moves down."""
    tree = lift()
    ball = sd.Inertia.sphere(1.0, 0.05)
    hit = sd.Grasp(ball, to="box", twist=[0, 0, 0, 0, 0, -3.0], name="ball", time=0.1)
    run = sd.simulate(tree, sd.State(tree), 0.2, events=[hit], stops="inelastic")
    assert [h.verb for h in run.events] == ["grasp", "reach limit of"]
    assert_allclose(run.energy.impact_loss[-1], 4.5, rtol=1e-9)
    assert not run["z"].any()
    assert_ledger_closes(run)


def test_controller_is_not_called_by_an_impact():
    times = []

    def torque(t, state):
        times.append(t)
        return [0.0]

    tree = lift()
    run = sd.simulate(tree, sd.State(tree, [0.7]), 1.0, torque, stops="inelastic", control_period=0.1)
    assert len(run.events) == 1
    assert_allclose(times, 0.1 * np.arange(10), atol=1e-12)


def test_runs_with_stops_continue_and_are_pickled():
    tree = lift()
    first = sd.simulate(tree, sd.State(tree, [0.7]), 0.5, stops="inelastic")
    whole = first + sd.simulate(tree, first.states[-1], 0.5, stops="inelastic", t0=0.5)
    assert len(whole.events) == 1 and not whole["z"][-10:].any()
    assert pickle.loads(pickle.dumps(whole)).events[0].event.side == "lower"


@pytest.mark.parametrize(
    "stops, error, message",
    [
        ("elastic", sd.ScrewdynError, "stops must be 'inelastic' or a SpringStop"),
        ({"elbow": 3.0}, sd.ScrewdynError, "SpringStop of 'elbow'"),
        ({"elbo": "inelastic"}, sd.UnknownNameError, "elbow"),
        ({"shoulder": "inelastic"}, sd.ScrewdynError, "'shoulder' has no limits"),
    ],
)
def test_wrong_stops(stops, error, message):
    tree = double_pendulum((-1, 1))
    with pytest.raises(error, match=message):
        sd.simulate(tree, sd.State(tree), 1.0, stops=stops)


def test_stops_of_joints_that_events_bring():
    """Each joint falls to its limit and stays there."""
    tree = double_pendulum(None)
    hinge = sd.revolute("y", name="new", limits=(-0.1, 0.1))
    tree.replace_joint("upper", replace(hinge, name="shoulder"))
    tree.lock("shoulder")
    rod = sd.Inertia.rod(1.0, 0.5, "x", (0.25, 0, 0))
    tree.attach(sd.Inertia.box(1.0, (0.5, 0.2, 0.1), (0.25, 0, 0)), to="base", joint=sd.free(), name="stone")
    tool = sd.KinematicTree("tool")
    tool.attach(rod, "tool", replace(hinge, name="finger", rotor=sd.Rotor(1e-3, 2.0, axis="y")), name="jaw")
    events = {
        "new": sd.Grasp(rod, to="fore", joint=hinge, name="c", twist="at_rest", time=0.1),
        "left/finger": sd.Grasp(tool, to="base", prefix="left/", twist="at_rest", time=0.1),
        "stone": sd.Grasp("stone", to="base", joint=replace(hinge, name=None), time=0.0),
        "held": sd.HandOver("stone", "base", joint=replace(hinge, name="held"), time=0.0),
        "elbow": sd.ReplaceJoint("fore", replace(hinge, name=None), time=0.0),
        "shoulder": sd.Unlock("shoulder", time=0.1),
    }
    for name, event in events.items():
        here = tree.copy()
        run = sd.simulate(here, sd.State(tree), 0.5, step=0.005, events=[event], stops={name: "inelastic"})
        assert any(isinstance(happened.event, sd.LimitEvent) for happened in run.events), name
        assert np.nanmax(np.abs(run[name])) == pytest.approx(0.1, abs=1e-9)
        with pytest.raises(sd.UnknownNameError, match=f"did you mean '{name}'"):
            sd.simulate(tree.copy(), sd.State(tree), 0.5, events=[event], stops={name[:-1]: "inelastic"})


def test_start_beyond_an_inelastic_stop():
    tree = double_pendulum((-1, 1))
    with pytest.raises(
        sd.ScrewdynError, match=r"'elbow' is at -1.2, beyond -1, where joint 'elbow' has a stop at its lower limit"
    ):
        sd.simulate(tree, sd.State(tree, [0, -1.2]), 1.0, stops="inelastic")


@pytest.mark.parametrize("numbers", [(0,), (-1,), (np.inf,), ("1",), (1, -1), (1, np.nan)])
def test_wrong_springs(numbers):
    with pytest.raises(sd.ScrewdynError, match="SpringStop must be a finite number"):
        sd.SpringStop(*numbers)


def test_a_limit_that_is_passed_is_reported_once_though_the_tree_changes():
    tree = double_pendulum((-1.0, 1.0))
    grasp = sd.Grasp(sd.Inertia.point(0.5), to="fore", twist="co_moving", time=0.02)
    run = sd.simulate(tree, sd.State(tree, [0.0, 1.5]), 0.04, events=[grasp], stops=None)
    assert [(x.t, type(x.event)) for x in run.events] == [(0.0, sd.LimitEvent), (0.02, sd.GraspEvent)]
