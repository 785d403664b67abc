"""Closing and opening of loops in motion: the impact, its accounts, and simulations of closed loops."""

import numpy as np
import pytest
from cases import FULL_SOAK, norm
from hypothesis import assume, given
from hypothesis import strategies as st
from kinds import OF_LOOPS
from numpy.testing import assert_allclose, assert_array_equal

import screwdyn as sd
from screwdyn.screws.screw import Ad, inverse
from screwdyn.testing import random_tree


def bar(length=1.0):
    return sd.Inertia.box(length, (length, 0.1, 0.1), com=(length / 2, 0, 0))


def two_bars():
    """Two equal bars on one pin."""
    tree = sd.KinematicTree(gravity=(0, -9.81, 0))
    for name in ("left", "right"):
        tree.attach(bar(), to="base", joint=sd.revolute("z"), name=name)
    return tree


def four_bar():
    """Crank 1 m, coupler 2.5 m, rocker 2 m and ground 2.2 m, and a state of it."""
    tree = sd.KinematicTree(gravity=(0, -9.81, 0))
    tree.attach(bar(), to="base", joint=sd.revolute("z"), name="crank")
    tree.attach(bar(2.5), to="crank", joint=sd.revolute("z"), at=(1, 0, 0), name="coupler")
    tree.attach(bar(2.0), to="base", joint=sd.revolute("z"), at=(2.2, 0, 0), name="rocker")
    tree.close("rocker", to="coupler", joint=sd.revolute("z", (2, 0, 0)), at=(0.5, 0, 0), name="pin")
    return tree, sd.State(tree, *tree.project([0.7, -0.2, 1.5], [2.0, 0, 0], hold=["crank"]))


def random_state(rng, least=4):
    tree = random_tree(rng, 7)
    assume(len(tree.links) > 2 and tree.nv >= least)
    q = tree.random_configuration(rng)
    return tree, sd.State(tree, q, rng.normal(size=tree.nv))


@given(st.integers(0, 2**32 - 1), st.lists(st.sampled_from(sorted(OF_LOOPS)), min_size=1, max_size=3))
def test_closing_in_motion(seed, kinds):
    """One loop after the other: the rates are allowed, the impulses act on both links alike, and the energies agree."""
    rng = np.random.default_rng(seed)
    tree, before = random_state(rng)
    M = tree.mass_matrix(before.q)
    assume(np.linalg.cond(M) < 1e8)
    for k, kind in enumerate(kinds):
        link, to = rng.choice(tree.links, 2, replace=False)
        event = tree.close(link, to=to, joint=OF_LOOPS[kind], state=before, name=f"loop{k}")
        assert (event.loop, event.link, tree.loops[-1]) == (f"loop{k}", link, f"loop{k}")
        after, J = event.state, tree.constraint_jacobian(before.q)
        assert_allclose(tree.gap(after.q), 0, rtol=0, atol=1e-10)
        assert_allclose(J @ after.qd, 0, rtol=0, atol=1e-9 * (1 + norm(before.qd)) * (1 + norm(J)))
        # M (q̇⁺ − q̇⁻) is the joint force of the impulses on the links and of the opposite ones on the other links.
        force = np.zeros(tree.nv)
        for name, impulse in event.impulses.items():
            loop = tree.loop(name)
            T = inverse(tree.forward_kinematics(loop.to, before.q)) @ tree.forward_kinematics(loop.link, before.q)
            both = {loop.link: impulse}, {loop.to: -Ad(inverse(T)).T @ impulse}
            force = force + sum(tree.wrench_torque(before.q, one) for one in both)
            # The screws of a loop's joint feel nothing of the impulse.
            assert_allclose(loop.joint.screws.T @ impulse, 0, rtol=0, atol=1e-9 * (1 + norm(impulse)))
        change = M @ (after.qd - before.qd)
        assert_allclose(change, force, rtol=0, atol=1e-8 * (1 + norm(M @ before.qd)))
        lost = tree.kinetic_energy(before.q, before.qd) - tree.kinetic_energy(after.q, after.qd)
        assert_allclose(event.energy_lost, lost + event.kinetic_energy_brought, rtol=0, atol=1e-9 * (1 + abs(lost)))
        assert event.energy_lost >= 0
        before = after
    again = tree.open(event.handle, state=after)
    assert_array_equal(again.state.qd, after.qd)
    assert (len(tree.loops), again.energy_lost, again.loop) == (len(kinds) - 1, 0.0, event.loop)


def test_closing_by_hand():
    """Two equal bars on one pin that are connected share their momentum about the pin."""
    tree = two_bars()
    state = sd.State(tree, [0.3, 0.8], [1.0, 0.0])
    event = tree.close("right", to="left", joint=sd.cylindrical("x"), state=state)
    assert_allclose(event.state.qd, [0.5, 0.5], rtol=1e-12)
    inertia = tree.mass_matrix([0, 0])[0, 0]
    assert_allclose(event.energy_lost, 0.25 * inertia, rtol=1e-12)
    # Both frames are on the pin, about which the bars exchange half of the momentum.
    assert_allclose(event.impulse[[0, 2, 3]], [0, 0.5 * inertia, 0], rtol=0, atol=1e-12)


def test_a_free_mechanism_keeps_its_momentum():
    """A closed loop in free flight exerts no external impulse: linear and angular momentum are conserved."""
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    tree.attach(bar(), to="base", joint=sd.free(name="flight"), name="body")
    tree.attach(bar(), to="body", joint=sd.revolute("z"), at=(1, 0, 0), name="arm")
    tree.attach(bar(), to="body", joint=sd.revolute("y"), at=(0, 0.5, 0), name="other")
    rng = np.random.default_rng(5)
    state = sd.State(tree, tree.random_configuration(rng), rng.normal(size=8))
    before = tree.momentum(state.q, state.qd)
    event = tree.close("other", to="arm", joint=sd.spherical(), state=state)
    assert event.energy_lost > 0.01
    assert_allclose(tree.momentum(event.state.q, event.state.qd), before, rtol=0, atol=1e-12 * (1 + norm(before)))


def test_a_wide_gap_is_refused_with_its_size():
    tree = two_bars()
    state, before = sd.State(tree), tree.topology
    with pytest.raises(sd.LoopError, match=r"loop 'x' is open by 250 mm along \(-1, .*0\) of 'right'; move the links"):
        tree.close("right", to="left", at=(0.25, 0, 0), name="x", state=state)
    assert tree.topology is before
    with pytest.raises(sd.UnknownNameError, match="lft"):
        tree.close("right", to="lft", state=state)
    with pytest.raises(sd.UnknownNameError, match="pin"):
        tree.open("pin", state=state)
    assert tree.topology is before
    tree.close("right", to="left", joint=sd.revolute("z"), at=(1e-9, 0, 0), state=state)


def test_two_loops_share_an_impulse():
    """A second loop is closed while the first one stands: both transmit the impact, and both stay closed."""
    rng = np.random.default_rng(2)
    tree = sd.KinematicTree()
    for k in range(3):
        tree.attach(bar(), to="base", joint=sd.spherical(), at=(k, 0, 0), name=f"bar{k}")
    state = sd.State(tree, tree.random_configuration(rng), rng.normal(size=9))
    first = tree.close("bar1", to="bar0", joint=sd.spherical((1, 0, 0)), name="first", state=state)
    second = tree.close("bar2", to="bar1", joint=sd.spherical((1, 0, 0)), name="second", state=first.state)
    assert set(second.impulses) == {"first", "second"}
    assert all(norm(x) > 1e-3 for x in second.impulses.values())
    assert_array_equal(second.impulses["second"], second.impulse)
    assert_allclose(tree.constraint_jacobian(state.q) @ second.state.qd, 0, rtol=0, atol=1e-12)


def test_energy_and_gap_of_a_simulation():
    """The loops stay closed to rounding, and the energy drifts as that of a tree with the same tolerance."""
    tree, state = four_bar()
    run = sd.simulate(tree, state, 5.0)
    assert np.abs(tree.gap(run.q)).max() < 1e-12
    assert np.abs(tree.constraint_jacobian(run.q) @ run.qd[..., None]).max() < 1e-12 * norm(run.qd)
    open_tree = sd.robots.two_link()
    other = sd.simulate(open_tree, sd.State(open_tree, [1.0, 0.5]), 5.0)
    drift, usual = (np.ptp(x.energy.total) / np.ptp(x.energy.kinetic) for x in (run, other))
    assert drift < max(10 * usual, 1e-8)
    assert norm(run.qd) > 3


def test_events_close_and_open_in_a_run():
    """The ledger balances through a grasp by two hands: close, carry, open."""
    tree = two_bars()
    events = [
        sd.Close("right", to="left", name="bridge", time=0.2),
        sd.Open("bridge", when=lambda t, state: t - 0.5),
    ]
    run = sd.simulate(tree, sd.State(tree, [0.3, -0.4], [1.0, 0.0]), 1.0, events=events)
    closed, opened = run.events
    assert (closed.verb, closed.subject, opened.verb, opened.subject) == ("close", "bridge", "open", "bridge")
    assert_allclose([closed.t, opened.t], [0.2, 0.5], rtol=0, atol=1e-12)
    assert closed.event.energy_lost > 1e-3
    assert tree.loops == ()
    assert_allclose(run.energy.residual, 0, rtol=0, atol=1e-7)
    # Between them both bars turn alike.
    between = (run.t > 0.2) & (run.t < 0.5)
    assert_allclose(run.qd[between, 0], run.qd[between, 1], rtol=0, atol=1e-9)
    after = run.t > 0.6
    assert np.abs(run.qd[after, 0] - run.qd[after, 1]).min() > 1e-4
    assert "close bridge" in str(run.explain())


def test_the_start_of_a_run_is_closed():
    tree, state = four_bar()
    with pytest.raises(sd.LoopError, match="'pin' is open by"):
        sd.simulate(tree, sd.State(tree, state.q + np.array([0, 0, 1e-3]), state.qd), 0.1)
    with pytest.raises(sd.LoopError, match="the rates open the loops at up to"):
        sd.simulate(tree, sd.State(tree, state.q, [1.0, 1.0, 1.0]), 0.1)
    with pytest.raises(sd.LoopError, match="'BDF' cannot keep loops closed"):
        sd.simulate(tree, state, 0.1, method="BDF")
    tree.replace_joint("crank", sd.revolute("z", friction=0.1))
    rough = sd.State(tree, state.q, state.qd)
    found = sd.simulate(tree.without_friction(), rough, 0.1, step=0.05)
    np.testing.assert_array_equal(found.q, sd.simulate(four_bar()[0], state, 0.1, step=0.05).q)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["RK45", "DOP853"])
def test_methods_agree(method):
    tree, state = four_bar()
    run = sd.simulate(tree, state, 0.3, method=method, rtol=1e-10, atol=1e-12, step=0.3)
    # By the independent equation of one freedom, M_r ÿ + C_r ẏ + g_r = 0, in many small steps.
    q, qd, y, v, h = state.q, state.qd, state.q[0], state.qd[0], 0.3 / 60
    for _ in range(60):
        slopes = []
        for part, last in ((0, None), (0.5, 0), (0.5, 1), (1, 2)):
            y_k = y if last is None else y + part * h * slopes[last][0]
            v_k = v if last is None else v + part * h * slopes[last][1]
            q, qd = tree.project([y_k, *q[1:]], [v_k, 0, 0], hold=["crank"])
            found = tree.reduced(q, qd, ["crank"])
            slopes.append((v_k, float(-(found.C[0, 0] * v_k + found.g[0]) / found.M[0, 0])))
        y, v = (
            x + h / 6 * (s[0] + 2 * s[1] + 2 * s[2] + s[3])
            for x, s in zip((y, v), zip(*slopes, strict=True), strict=True)
        )
    assert_allclose([run.q[-1, 0], run.qd[-1, 0]], [y, v], rtol=0, atol=1e-6)


def test_changes_of_trees_with_loops():
    """A lock, a grasp and a hand-over keep the loops closed, lose energy, and obey Newton's law of the bodies."""
    tree, state = four_bar()
    grasp = tree.grasp(state, sd.Inertia.sphere(2.0, 0.1), to="rocker", twist="at_rest", at=(1, 0, 0), name="ball")
    J = tree.constraint_jacobian(grasp.state.q)
    assert_allclose(J @ grasp.state.qd, 0, rtol=0, atol=1e-12)
    # One freedom: the momentum M_r ẏ of the mechanism without the ball is that of the whole after.
    before = four_bar()[0].reduced(state.q, state.qd, ["crank"]).M[0, 0] * state.qd[0]
    assert_allclose(
        tree.reduced(grasp.state.q, grasp.state.qd, ["crank"]).M[0, 0] * grasp.state.qd[0], before, rtol=1e-10
    )
    lost = tree.kinetic_energy(state.q, grasp.state.qd)
    assert_allclose(four_bar()[0].kinetic_energy(state.q, state.qd) - lost, grasp.energy_lost, rtol=1e-10)
    released = tree.release(grasp.state, "ball")
    assert_array_equal(released.state.qd, grasp.state.qd)
    locked = tree.lock("crank", released.state)
    assert_allclose(locked.state.qd, 0, rtol=0, atol=1e-10)
    assert_allclose(locked.energy_lost, four_bar()[0].kinetic_energy(state.q, grasp.state.qd), rtol=1e-9)
    # The lock takes the whole momentum of the mechanism's one freedom.
    whole = four_bar()[0].reduced(state.q, grasp.state.qd, ["crank"]).M[0, 0] * grasp.state.qd[0]
    assert_allclose(locked.impulse, [-whole], rtol=1e-8)


@pytest.mark.parametrize("kind", ["fixed", "revolute", "spherical", "cylindrical"])
def test_an_object_passes_from_hand_to_hand(kind):
    """Closed to the other hand and released by the first, it moves on with that joint, and nothing jumps."""
    rng = np.random.default_rng(8)
    tree = sd.KinematicTree()
    for side, y in (("left", 0.3), ("right", -0.3)):
        tree.attach(bar(), to="base", joint=sd.universal("x", "y"), at=(0, y, 0), name=f"{side} arm")
        tree.attach(bar(), to=f"{side} arm", joint=sd.spherical(), at=(1, 0, 0), name=side)
    tree.attach(bar(0.5), to="left", joint=sd.revolute("z", armature=0.1), at=(1, 0, 0), name="object")
    tree.attach(sd.Inertia.sphere(0.3, 0.1), to="object", joint=sd.revolute("x"), name="lid")
    start = sd.State(tree, tree.random_configuration(rng), rng.normal(size=tree.nv))
    closed = tree.close("object", to="right", joint=OF_LOOPS[kind], name="grip", state=start)
    before = closed.state
    motor = 0.05 * before.qd[before.coordinates.index("object")] ** 2
    poses = {x: tree.forward_kinematics(x, before.q) for x in tree.links}
    twists = {x: tree.link_twist(x, before.q, before.qd) for x in tree.links}
    energy = tree.kinetic_energy(before.q, before.qd)
    others = [name for name in before.coordinates if name not in ("object", "lid")]
    passed = tree.release(before, "object")
    after = passed.state
    assert (tree.loops, tree.parent("object")) == ((), "right")
    assert list(after.coordinates)[: len(others)] == others
    for name, twist in twists.items():
        assert_allclose(tree.forward_kinematics(name, after.q), poses[name], rtol=0, atol=1e-10)
        assert_allclose(tree.link_twist(name, after.q, after.qd), twist, rtol=0, atol=1e-10)
    assert_allclose(passed.energy_lost, 0, rtol=0, atol=1e-12)
    assert_allclose(tree.kinetic_energy(after.q, after.qd), energy - motor, rtol=1e-10)
    assert_allclose(passed.kinetic_energy_brought, -motor, rtol=1e-8)


def test_a_link_that_a_loop_holds_is_freed_but_not_detached():
    tree, state = four_bar()
    with pytest.raises(sd.TopologyError, match="which would be separated"):
        tree.detach("rocker")
    free = tree.release(state, "rocker", into_world=True)  # the pin to the coupler stays
    assert tree.loops == ("pin",)
    assert_allclose(tree.constraint_jacobian(free.state.q) @ free.state.qd, 0, rtol=0, atol=1e-10)


@given(st.integers(0, 2**32 - 1), st.lists(st.sampled_from(sorted(OF_LOOPS)), min_size=1, max_size=2))
def test_runs_that_close_and_open(seed, kinds):
    """Loops between arbitrary links are closed one after the other and opened again; every account balances."""
    rng = np.random.default_rng(seed)
    tree, start = random_state(rng, least=6)
    assume(np.linalg.cond(tree.mass_matrix(start.q)) < 1e4)
    pairs = [rng.choice(tree.links, 2, replace=False) for _ in kinds]
    events = [
        sd.Close(*pair, joint=OF_LOOPS[kind], name=f"loop{k}", time=0.03 * (k + 1))
        for k, (kind, pair) in enumerate(zip(kinds, pairs, strict=True))
    ]
    events += [sd.Open(f"loop{k}", time=0.1 + 0.02 * k) for k in range(len(kinds))]
    run = sd.simulate(tree, start, 0.15, events=events, step=0.01, stops=None)
    assert len([x for x in run.events if x.what is not None]) == len(events)
    scale = 1 + norm(run.energy.kinetic) + norm(run.energy.potential)
    assert_allclose(run.energy.residual, 0, rtol=0, atol=1e-6 * scale)
    for state in run.states:
        if state.tree.loops:
            assert_allclose(state.tree.gap(state.q), 0, rtol=0, atol=1e-11)


def test_a_second_loop_closes_what_the_first_one_leaves_open():
    """A gap within the tolerance, which only the closing of a single loop at the present pose need not look for."""
    tree, state = four_bar()
    q = state.q + 1e-8 * np.arange(1, tree.nq + 1)
    assert np.abs(tree.gap(q)).max() > 1e-9
    event = tree.close(tree.links[1], to=tree.base, joint=sd.revolute("z"), name="again", state=sd.State(tree, q))
    assert np.abs(tree.gap(event.state.q)).max() < 1e-14


@pytest.mark.parametrize("mass", [1e4, 1e6, 1e12])
def test_a_loop_of_a_heavy_link_and_a_light_one(mass):
    """Each has a constraint of its own: that on the heavy one is not redundant beside that on the other."""
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    tree.attach(sd.Inertia.box(mass, (1, 1, 1)), to="base", joint=sd.prismatic("x"), name="ram")
    tree.attach(sd.Inertia.box(1.0, (0.02, 0.02, 0.02)), to="base", joint=sd.revolute("z"), name="knob")
    event = tree.close("ram", to="knob", state=sd.State(tree, qd=[1.0, 1.0]))
    assert_allclose(event.state.qd, 0, atol=1e-9)
    assert_allclose(event.energy_lost, 0.5 * mass, rtol=1e-6)
    assert tree.freedoms(event.state.q) == 0


def test_a_loop_that_would_not_hold_is_refused():
    """Two slots that a heavy ram and a light pad share: both constraints act on the pad alone, but for rounding."""
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    tree.attach(sd.Inertia.box(1e12, (1, 1, 1)), to="base", joint=sd.prismatic("x"), name="ram")
    tree.attach(sd.Inertia.box(1.0, (1, 1, 1)), to="base", joint=sd.prismatic("y"), name="pad")
    start = sd.State(tree, qd=[1.0, 1.0])
    event = tree.close("ram", to="pad", joint=sd.prismatic((1, -1, 0)), name="slot", state=start)
    before = tree.topology
    with pytest.raises(sd.LoopError, match=r"would open the loops 'slot', 'other' at up to .* their links have"):
        tree.close("ram", to="pad", joint=sd.prismatic((1, 1, 0)), name="other", state=event.state)
    assert tree.topology is before


def test_the_impulses_of_redundant_loops_are_the_least():
    """Of all impulses with the same effect, over links whose masses differ a thousandfold."""
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    for name, mass, joint in (("ram", 1e3, sd.prismatic("x")), ("pad", 1.0, sd.prismatic("y"))):
        tree.attach(sd.Inertia.box(mass, (1, 1, 1)), to="base", joint=joint, name=name)
    tree.attach(sd.Inertia.box(1.0, (1, 1, 1)), to="base", joint=sd.universal("y", "x"), name="knob")
    tree.close("ram", to="pad", joint=sd.revolute("z"), name="one")
    tree.close("pad", to="knob", joint=sd.cylindrical((1, 2, 0)), name="two")
    state = sd.State(tree, qd=[1.0, 1.0, 0.5, 0.2])
    event = tree.close("knob", to="ram", joint=sd.prismatic((1, 1, 0)), name="three", state=state)
    found = [np.linalg.lstsq(tree.loop(x).wrenches, event.impulses[x], rcond=None)[0] for x in tree.loops]
    J, p = tree.constraint_jacobian(state.q), tree.mass_matrix(state.q) @ (event.state.qd - state.qd)
    assert np.linalg.matrix_rank(J) < len(J)
    assert_allclose(np.concatenate(found), np.linalg.lstsq(J.T, p, rcond=None)[0], rtol=0, atol=1e-9)


def test_the_energy_of_a_gap_that_is_closed_is_in_the_accounts():
    tree, state = four_bar()
    before = sd.State(tree, state.q + 1e-7 * np.arange(1, tree.nq + 1), [2.0, 1.0, -1.5])
    event = tree.close("crank", to="base", joint=sd.revolute("z"), name="again", state=before)
    assert abs(event.kinetic_energy_brought) > 1e-6
    expected = tree.kinetic_energy(before.q, before.qd) + event.kinetic_energy_brought - event.energy_lost
    assert_allclose(tree.kinetic_energy(event.state.q, event.state.qd), expected, rtol=0, atol=1e-11)


@pytest.mark.soak
def test_loops_stay_closed_for_long():
    tree, state = four_bar()
    run = sd.simulate(tree, state, 100.0 if FULL_SOAK else 30.0)
    assert np.abs(tree.gap(run.q)).max() < 1e-12
    assert np.ptp(run.energy.total) < 1e-6 * run.energy.kinetic.max()
