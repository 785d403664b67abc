"""Rollouts with contacts against closed forms, event-driven runs, and the same scheme in plain Python."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import screwdyn as sd
from screwdyn.physics.time_stepping import HIT, SETTLED, SOFT, SWEEPS

pytestmark = pytest.mark.usefixtures("compiled_when_called")

SIZE = (0.4, 0.3, 0.2)
G = 9.80665


def crate(friction=0.3, restitution=0.0, points=None, joint=None):
    """A crate of 3 kg on a floor, or above it."""
    tree = sd.KinematicTree(gravity=(0, 0, -G))
    body, look = sd.Inertia.box(3.0, SIZE), sd.Shape.box(SIZE)
    tree.attach(body, to="base", joint=joint or sd.free(), name="crate", shape=look)
    on = {"on": sd.Plane(), "friction": friction, "restitution": restitution}
    tree.touch("crate", to="base", points=points, name="floor", **on)
    return tree


def ball(friction=0.0, restitution=0.0, joint=None, radius=0.1):
    tree = sd.KinematicTree(gravity=(0, 0, -G))
    look, joint = sd.Shape.sphere(radius), joint or sd.prismatic("z", limits=(-1, 9))
    tree.attach(sd.Inertia.sphere(2.0, radius), to="base", joint=joint, name="ball", shape=look)
    tree.touch("ball", to="base", on=sd.Plane(), friction=friction, restitution=restitution, name="floor")
    return tree


def resting(tree, height=0.1, **rates):
    q, qd = tree.neutral(), np.zeros(tree.nv)
    q[tree.positions.index("crate[pz]" if "crate[pz]" in tree.positions else "ball[pz]")] = height
    for name, value in rates.items():
        qd[[k for k, x in enumerate(tree.coordinates) if x.endswith(f"[{name}]")]] = value
    return q, qd


def energy(tree, q, qd):
    return tree.kinetic_energy(q, qd) + tree.potential_energy(q)


# Closed forms


def test_a_crate_that_slides():
    """It stops after v² / (2 μ g); half a step makes half of the error."""
    tree, errors = crate(0.3), []
    q, qd = resting(tree, vx=2.0)
    fast = tree.compile(threads=1)
    for steps in (500, 1000, 2000):
        found = fast.rollout(q, qd, steps, 1.0 / steps)
        errors.append(found.q[4] - 2.0**2 / (2 * 0.3 * G))
        assert abs(found.qd).max() < 1e-9
    assert abs(errors[-1]) < 1.1e-3
    assert_allclose(np.divide(errors[:-1], errors[1:]), 2.0, rtol=0.05)


@pytest.mark.parametrize("e", [0.0, 0.5, 1.0])
def test_a_ball_that_bounces(e):
    """Heights fall by e², bounces end at the limit time, and a ball with e = 1 bounces for ever."""
    tree = ball(restitution=e)
    found = tree.compile(threads=1).rollout([0.6], [0.0], 40_000, 5e-5, every=1)
    z = found.q[:, 0]
    peaks = z[1:-1][(z[1:-1] > z[:-2]) & (z[1:-1] >= z[2:])] - 0.1
    expected = 0.5 * e ** (2 * np.arange(1, 4))
    assert_allclose(peaks[:3] if e else peaks[:0], expected[: len(peaks)] if e else [], rtol=5e-3)
    assert z.min() > 0.1 - 1e-3
    if e < 1:
        fall = np.sqrt(2 * 0.5 / G)
        limit = fall * (1 + 2 * e / (1 - e))
        assert_allclose(z[found.t > limit + 0.02], 0.1, atol=1e-7)
        assert abs(found.qd[-1]) < 1e-9
    else:
        assert_allclose(peaks, 0.5, rtol=1e-3)


def test_a_ball_that_slides_then_rolls():
    """It keeps 5/7 of its speed, and does not sink while it rolls."""
    tree = ball(0.4, joint=sd.free())
    q, qd = resting(tree, vx=1.4)
    found = tree.compile(threads=1).rollout(q, qd, 2000, 5e-4, every=100)
    speed = np.diff(found.q[:, 4]) / np.diff(found.t)
    assert_allclose(speed[-5:], 1.0, rtol=1e-3)
    assert_allclose(tree.contact_gaps(found.q), 0.0, atol=2e-6)
    slip = tree.contact_rows(found.q[-1], found.qd[-1]).rates[0, 1:]
    assert abs(slip).max() < 1e-3


def test_a_crate_that_is_set_down_stays():
    tree = crate(0.3)
    q, qd = np.tile(tree.neutral(), (12, 1)), np.zeros((12, 6))
    turned = np.random.default_rng(3).normal(size=(12, 4))
    q[:, :4], q[:, 6] = turned / np.linalg.norm(turned, axis=1, keepdims=True), 0.4
    found = tree.compile(threads=1).rollout(q, qd, 6000, 1e-3, every=1000)
    assert not found.failed.any()
    assert abs(found.q[-1] - found.q[-2]).max() < 1e-9
    assert abs(found.qd[-1]).max() < 1e-9
    assert_allclose(found.forces[-1, ..., 0].sum(axis=1), 3 * G, rtol=10 * SETTLED)
    # Four corners of a face share the load: it lies flat.
    flat = np.sort(tree.contact_gaps(found.q[-1]), axis=1)[:, :4]
    assert_allclose(flat, 0.0, atol=3e-6)


@pytest.mark.slow
def test_a_slope_holds_what_friction_can_hold():
    """A crate on a slope of angle a slips where tan a > μ, with g (sin a − μ cos a), and does not creep otherwise."""
    a = 0.3
    tree = crate(np.tan(a) * 1.001)
    tree.gravity = (G * np.sin(a), 0.0, -G * np.cos(a))
    q, qd = resting(tree)
    held = tree.compile(threads=1).rollout(q, qd, 1000, 1e-3, every=500)
    assert abs(held.q[1, 4]) < 1e-5
    assert abs(held.q[2] - held.q[1]).max() < 1e-12
    tree = crate(0.2)
    tree.gravity = (G * np.sin(a), 0.0, -G * np.cos(a))
    slid = tree.compile(threads=1).rollout(q, qd, 1000, 1e-3)
    assert slid.qd[3] == pytest.approx(G * (np.sin(a) - 0.2 * np.cos(a)), rel=1e-4)


@pytest.mark.slow
def test_a_stack_comes_to_rest():
    """A heavy box falls onto a light one, and neither creeps."""
    tree, size = sd.KinematicTree(gravity=(0, 0, -G)), (0.4, 0.4, 0.2)
    for name, mass in (("low", 1.0), ("high", 10.0)):
        tree.attach(sd.Inertia.box(mass, size), to="base", joint=sd.free(), name=name)
    corners = np.array([(x, y, -0.1) for x in (-0.2, 0.2) for y in (-0.2, 0.2)])
    tree.touch("low", to="base", on=sd.Plane(), points=corners, friction=0.5, name="floor")
    tops = corners * 0.9
    tree.touch("high", to="low", on=sd.Shape.box(size), points=tops, radius=0.01, friction=0.5, name="top")
    q, rng = np.tile(tree.neutral(), (16, 1)), np.random.default_rng(0)
    q[:, tree.positions.index("low[pz]")] = 0.1
    q[:, tree.positions.index("high[pz]")] = 0.31 + rng.uniform(0, 0.05, 16)
    q[:, tree.positions.index("high[px]")] = rng.normal(0, 0.005, 16)
    found = tree.compile(threads=1).rollout(q, np.zeros((16, 12)), 2000, 1e-3, every=500)
    assert abs(found.q[-1] - found.q[-2]).max() < 1e-7
    assert_allclose(tree.contact_gaps(found.q[-1]), 0.0, atol=1e-5)
    assert_allclose(found.forces[-1, :, :4, 0].sum(axis=1), 11 * G, rtol=1e-3)
    assert_allclose(found.forces[-1, :, 4:, 0].sum(axis=1), 10 * G, rtol=1e-3)


def test_a_run_fails_where_links_sink_into_each_other():
    """Sweeps do not find what a ball bears that has 1e-6 of the mass on it."""
    tree = sd.KinematicTree()
    for name, mass in (("low", 1.0), ("high", 1.0)):
        tree.attach(sd.Inertia.sphere(mass, 0.1), to="base", joint=sd.prismatic("z"), name=name)
    tree.touch("low", to="base", on=sd.Plane(), points=(0, 0, 0), radius=0.1, name="floor")
    tree.touch("high", to="low", on=sd.Ball(0.1), points=(0, 0, 0), radius=0.1, name="top")
    light = [sd.Inertia.sphere(mass, 0.1) for mass in (1.0, 1e-6)]
    start = np.tile([0.1, 0.3], (2, 1))
    run = tree.compile(threads=1).rollout(start, np.zeros((2, 2)), 1000, 1e-3, payload={"low": light})
    assert list(run.failed) == [False, True]
    assert_allclose(run.q[0], start[0], atol=2e-6)
    assert 10 < run.steps[1] < 1000


# The scheme


def in_python(tree, q, qd, steps, h, tau):
    """The same scheme with M⁻¹ Jᵀ, for one run; also impulses of the last step, and the number of steps with some."""
    owners = tree.model.topology.touching
    impulses, touched = np.zeros((len(owners), 3)), 0
    for _ in range(steps):
        M, J, gaps = tree.mass_matrix(q), tree.contact_jacobian(q), tree.contact_gaps(q)
        Y = np.linalg.solve(M, J.reshape(-1, len(qd)).T).T.reshape(J.shape)
        before, free = qd, qd + h * tree.forward_dynamics(q, qd, tau)
        free[3:6] += h * np.cross(qd[:3], qd[3:6])  # the crate's velocity keeps its direction, not its components
        bound, soft = -gaps / h, np.full(len(gaps), SOFT)
        for k, contact in enumerate(owners):
            u, resting = J[k, 0] @ before, HIT * SOFT * (J[k, 0] @ Y[k, 0]) * impulses[k, 0]
            if -u > resting and J[k, 0] @ free < bound[k]:
                soft[k] = 0.0
                bound[k] = max(bound[k], -contact.restitution * u) if contact.restitution else bound[k]
        qd = free + np.einsum("kr,krn->n", impulses, Y)
        for _ in range(SWEEPS):
            last = qd
            for k, contact in enumerate(owners):
                A = J[k] @ Y[k].T
                new = impulses[k].copy()
                rest = J[k, 0] @ qd - bound[k] + soft[k] * A[0, 0] * new[0]
                new[0] = max(0.0, new[0] - rest / (A[0, 0] * (1 + soft[k])))
                moving = qd + (new[0] - impulses[k, 0]) * Y[k, 0]
                slide = new[1:] - J[k, 1:] @ moving / np.linalg.eigvalsh(A[1:, 1:])[1]
                size = np.linalg.norm(slide)
                new[1:] = slide * min(1.0, contact.friction * new[0] / size) if size else 0.0
                qd, impulses[k] = qd + (new - impulses[k]) @ Y[k], new
            if (qd - last) @ M @ (qd - last) <= SETTLED**2 * (qd - free) @ M @ (qd - free):
                break
        R, turn = tree.forward_kinematics("crate", q)[:3, :3], np.where(np.isin(np.arange(len(qd)), (3, 4, 5)), 0.0, qd)
        last, q = q, tree.integrate(q, h * turn)
        q[4:7] = last[4:7] + h * R @ qd[3:6]
        qd[3:6] = tree.forward_kinematics("crate", q)[:3, :3].T @ R @ qd[3:6]
        touched += impulses.any()
    return q, qd, impulses, touched


def scene(rng):
    """An arm above a crate between two coupled fingers and a post, all of which touch each other and the floor."""
    tree = sd.KinematicTree(gravity=(0.5, 0.3, -G))
    tree.attach(sd.Inertia.box(2.0, SIZE), to="base", joint=sd.free(passive=True), name="crate")
    tree.attach(sd.Inertia.box(1.0, (0.5, 0.1, 0.1)), to="base", joint=sd.revolute("y"), name="arm", at=(-0.6, 0, 0.5))
    tree.attach(sd.Inertia.box(0.8, (0.4, 0.1, 0.05)), to="arm", joint=sd.spherical(), name="hand", at=(0.3, 0, 0))
    corners = np.array([(x, y, -0.1) for x in (-0.2, 0.2) for y in (-0.15, 0.15)])
    on = {"friction": rng.uniform(0.1, 0.9), "restitution": rng.choice([0.0, 0.6])}
    tree.touch("crate", to="base", on=sd.Plane(), points=corners, name="floor", **on)
    tips = [(0.3, 0, 0), (0.1, 0.1, 0)]
    tree.touch("hand", to="crate", on=sd.Shape.box(SIZE), points=tips, radius=0.05, friction=0.5, name="push")
    pose = np.eye(4)
    pose[:3, 3] = 0.35, 0.0, 0.2
    post = sd.Shape.capsule(0.05, 0.3, pose=pose)
    tree.touch("crate", to="base", on=post, points=[(0.2, 0, 0)], radius=0.02, name="post")
    follows = sd.Mimic("gap", -1.0)
    for name, side, joint in (
        ("left", -1, sd.prismatic("y", name="gap")),
        ("right", 1, sd.prismatic("y", mimic=follows)),
    ):
        tree.attach(sd.Inertia.box(0.3, (0.1, 0.02, 0.1)), to="base", joint=joint, name=name, at=(0, 0.19 * side, 0.1))
        tree.touch(
            name, to="crate", on=sd.Shape.box(SIZE), points=[(0, 0, 0)], radius=0.02, friction=0.4, name=f"{name} pad"
        )
    tree.touch("arm", to="base", on=sd.Plane(), points=[(0.3, 0, 0)], radius=0.04, restitution=0.3, name="elbow")
    return tree


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])  # with and without restitution
def test_against_the_same_scheme_in_python(seed):
    rng = np.random.default_rng(seed)
    tree = scene(rng)
    q, qd = tree.neutral(), 0.7 * rng.normal(size=tree.nv)
    q[tree.positions.index("crate[pz]")] = 0.1 + rng.uniform(0, 0.005)
    tau = np.where(tree.model.passive, 0.0, rng.normal(size=tree.nv))
    *expected, touched = in_python(tree, q, qd, 100, 2e-3, tau)
    found = tree.compile(threads=1).rollout(q, qd, 100, 2e-3, tau)
    assert touched > 20
    for ours, theirs in zip((found.q, found.qd, 2e-3 * found.forces), expected, strict=True):
        assert_allclose(ours, theirs, atol=1e-10 * (1 + abs(theirs).max()), rtol=0)


@pytest.mark.slow
def test_order_of_convergence():
    """Against the run that follows all events: a thrown ball that slides, then rolls up a slope."""
    tree = ball(0.3, joint=sd.free())
    tree.gravity = (-2.0, 0.0, -G)
    q, qd = resting(tree, vx=2.0, wy=-5.0)
    exact = sd.simulate(tree, sd.State(tree, q, qd), 0.5, step=0.01)
    errors = []
    for steps in (100, 200, 400):
        found = tree.compile(threads=1).rollout(q, qd, steps, 0.5 / steps)
        apart = tree.difference(exact.q[-1], found.q), found.qd - exact.qd[-1]
        errors.append(np.abs(np.hstack(apart)).max())
    assert errors[-1] < 1e-2
    assert_allclose(np.divide(errors[:-1], errors[1:]), 2.0, rtol=0.15)


def test_contacts_take_energy_and_give_none():
    """Of tumbling crates; in flight, the energy of a step of order 1 changes by h m g ż / 2 and turns back."""
    tree, h = crate(0.5), 5e-4
    rng = np.random.default_rng(5)
    q, qd = np.tile(tree.neutral(), (24, 1)), rng.normal(size=(24, 6)) * [1, 1, 1, 2, 2, 1]
    turned = rng.normal(size=(24, 4))
    q[:, :4], q[:, 6] = turned / np.linalg.norm(turned, axis=1, keepdims=True), 0.5
    found = tree.compile(threads=1).rollout(q, qd, 4000, h, every=20)
    total = energy(tree, found.q, found.qd)
    highest = np.maximum.accumulate(total[::-1], axis=0)[::-1]
    assert (highest - total).max() < 0.02 * (total[0].max() - total[-1].min())
    assert (total[-1] < total[0] - 5).all()


def test_newton_cradle_of_carts_keeps_momentum():
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    for k in range(3):
        tree.attach(
            sd.Inertia.sphere(1.0, 0.1), to="base", joint=sd.prismatic("x"), name=f"cart{k}", at=(0.5 * k, 0, 0)
        )
        if k:
            on = sd.Shape.sphere(0.1)
            tree.touch(f"cart{k}", to=f"cart{k - 1}", on=on, points=[(0, 0, 0)], radius=0.1, restitution=1.0)
    found = tree.compile(threads=1).rollout(np.zeros(3), [1.0, 0.0, 0.0], 1000, 1e-3)
    assert_allclose(found.qd, [0.0, 0.0, 1.0], atol=1e-9)


# Changes within the runs


def sledge():
    """Two runners on the floor, on which it moves along x, and its start."""
    tree = crate(0.3, joint=sd.planar("y"), points=[(-0.2, 0, -0.1), (0.2, 0, -0.1)])
    return tree, np.array([0, 0, -0.1]), np.array([0, 2.0, 0])


def test_a_payload_on_a_sledge():
    """It takes speed in the impact, and presses the runners: each run stops where friction says."""
    tree, q, qd = sledge()
    load = sd.Inertia.box(6.0, (0.1, 0.1, 0.1), com=(0, 0, -0.1))
    grasp = sd.Grasp(load, to="crate", at=(0, 0, 0.1), name="load", twist="at_rest")
    fast = tree.compile(threads=1)
    found = fast.rollout(q, qd, 4000, 5e-4, events=[(grasp, np.array([0, 400, -1]))])
    decelerated = 0.3 * G
    before = 2.0 - decelerated * 0.2
    at = [(2 / 3) ** 2 / (2 * decelerated), 0.0, 4 / (2 * decelerated)]
    at[1] = 2.0 * 0.2 - decelerated * 0.2**2 / 2 + (before / 3) ** 2 / (2 * decelerated)
    assert_allclose(found.q[:, 1], at, atol=1.5e-3)
    assert_allclose(found.forces[..., 0].sum(axis=1), [9 * G, 9 * G, 3 * G], rtol=10 * SETTLED)


def test_a_leg_that_is_released_holds_no_more():
    tree, q, _ = sledge()
    tree.attach(sd.Inertia.box(0.5, (0.3, 0.1, 0.1)), to="crate", name="leg", at=(0, 0, -0.2))
    tree.touch("leg", to="base", on=sd.Plane(), points=[(-0.1, 0, -0.1), (0.1, 0, -0.1)], name="tip", friction=0.5)
    q = np.array([0, 0, -0.3])
    steps = np.array([-1, 100, 300])
    found = tree.compile(threads=1).rollout(q, np.zeros(3), 1000, 1e-3, events=[(sd.Release("leg"), steps)], every=250)
    assert_allclose(-found.q[-1, :, 2], [0.3, 0.1, 0.1], atol=1e-5)
    assert_allclose(-found.q[1, :, 2], [0.3, max(0.1, 0.3 - G * 0.15**2 / 2), 0.3], atol=2e-3)
    assert_allclose(found.forces[-1, :, :, 0].sum(axis=-1), [3.5 * G, 3 * G, 3 * G], rtol=10 * SETTLED)


def test_locks_and_inertias_of_each_run():
    """A brake stops a sliding ball, and its floor bears the ball of each run."""
    tree = sd.KinematicTree(gravity=(0, 0, -G))
    tree.attach(sd.Inertia.point(0.1), to="base", joint=sd.prismatic("x", name="brake"), name="slide")
    tree.attach(sd.Inertia.sphere(1.0, 0.1), to="slide", joint=sd.prismatic("z"), name="ball", at=(0, 0, 0.1))
    tree.touch("ball", to="base", on=sd.Plane(), points=[(0, 0, 0)], radius=0.1, friction=0.2)
    bodies = [sd.Inertia.sphere(m, 0.1) for m in (0.5, 1.0, 2.0)]
    events = [(sd.Lock("brake"), np.array([100, 200, -1]))]
    given = np.zeros(2), np.array([1.0, 0.0]), 2000, 1e-3
    found = tree.compile(threads=1).rollout(*given, events=events, payload={"ball": bodies})
    mass = np.array([0.5, 1.0, 2.0])
    slowed = 0.2 * G * mass / (mass + 0.1)
    until = np.minimum([0.1, 0.2, np.inf], 1 / slowed)
    assert_allclose(found.q[:, 0], until - slowed * until**2 / 2, atol=1e-3)
    assert_allclose(found.forces[:, 0, 0], mass * G, rtol=10 * SETTLED)
    assert_allclose(found.qd, 0.0, atol=1e-9)


@pytest.mark.slow
def test_a_crate_is_pushed_lifted_and_set_down():
    """On a free joint of the hand, it stands on the floor; locking this joint is a grasp where it is, in each run."""
    tree, block = sd.KinematicTree(gravity=(0, 0, -G)), sd.Inertia.box(1.0, (0.1, 0.1, 0.1))
    tree.attach(block, to="base", joint=sd.prismatic("x"), name="slide")
    tree.attach(block, to="slide", joint=sd.prismatic("z"), name="hand", at=(0, 0, 0.3))
    grip = sd.free(passive=True, name="grip")
    tree.attach(sd.Inertia.box(1.0, (0.2, 0.2, 0.2)), to="hand", joint=grip, name="crate", at=(0.3, 0, -0.2))
    feet = [(x, y, -0.1) for x in (-0.1, 0.1) for y in (-0.1, 0.1)]
    tree.touch("crate", to="base", on=sd.Plane(), points=feet, friction=0.4, name="floor")
    pads = [(0.1, y, -0.2) for y in (-0.05, 0.05)]
    tree.touch("hand", to="crate", on=sd.Shape.box((0.2, 0.2, 0.2)), points=pads, radius=0.05, name="push")
    h, steps, runs = 2e-3, 1500, 8
    t = np.arange(steps) * h

    def ramp(start, end, by):
        return by * np.clip((t - start) / (end - start), 0, 1)

    along, up = ramp(0, 0.5, 0.2) + ramp(1.2, 1.8, 0.3), ramp(0.8, 1.1, 0.2) - ramp(1.9, 2.3, 0.2) + ramp(2.6, 2.9, 0.1)
    hold = sd.Feedback(2000.0, 90.0, q_target=np.stack([along, up], axis=1)[:, None], tau=[0, 3 * G])
    grasped = np.full(runs, int(0.7 / h)) + np.arange(runs)
    grasped[-1] = -1  # this one is only pushed
    events = [(sd.Lock("grip"), grasped), (sd.Unlock("grip"), np.where(grasped < 0, -1, int(2.4 / h)))]
    start = np.tile(tree.neutral(), (runs, 1))
    start[:, tree.positions.index("grip[px]")] = np.linspace(0, 0.02, runs)
    run = tree.compile(threads=1).rollout(start, np.zeros((runs, tree.nv)), steps, h, hold, every=50, events=events)
    height = run.compiled.forward_kinematics("crate", run.q)[..., 2, 3]
    place = run.compiled.forward_kinematics("crate", run.q)[..., 0, 3]
    pushed, lifted = place[int(0.6 / h / 50)], height[int(1.5 / h / 50)]
    assert (pushed > 0.34).all()
    assert_allclose(lifted, np.where(grasped < 0, 0.1, 0.3), atol=0.02)
    assert_allclose(height[-1], 0.1, atol=1e-5)
    assert_allclose(place[-1, :-1], pushed[:-1] + 0.3, atol=0.02)
    assert_allclose(run.forces[-1, :-1, :4, 0].sum(axis=1), G, rtol=1e-3)


# Batches and refusals


@pytest.mark.slow
def test_bits_do_not_depend_on_the_batch_or_the_samples():
    tree, rng = crate(0.4, 0.3), np.random.default_rng(2)
    q, qd = np.tile(tree.neutral(), (21, 1)), rng.normal(size=(21, 6))
    q[:, 6] = rng.uniform(0.25, 0.5, 21)
    fast = tree.compile(threads=2)
    whole = fast.rollout(q, qd, 600, 1e-3, every=100)
    assert whole.forces.shape == (7, 21, 8, 3)
    assert_array_equal(whole.forces[0], 0.0)
    for k in (0, 9, 20):
        alone = fast.rollout(q[k], qd[k], 600, 1e-3)
        for ours, theirs in zip((alone.q, alone.qd, alone.forces), (whole.q, whole.qd, whole.forces), strict=True):
            assert_array_equal(ours, theirs[-1, k])
    called = fast.rollout(q[:5], qd[:5], 600, 1e-3, lambda t, q, qd: np.zeros((5, 6)))
    assert_array_equal(called.q, whole.q[-1, :5])
    tau = np.zeros((21, 6))
    tau[4] = 1e70
    wild = fast.rollout(q, qd, 600, 1e-3, tau)
    assert_array_equal(wild.failed, np.arange(21) == 4)
    assert np.isnan(wild.forces[4]).all()
    assert_array_equal(wild.q[5:], whole.q[-1, 5:])


def test_links_that_do_not_move_push_nothing():
    tree, q, qd = sledge()
    tree.attach(sd.Inertia.box(0.5, (0.3, 0.1, 0.1)), to="crate", name="lid", at=(0, 0, 0.14))
    tree.touch("lid", to="crate", on=sd.Shape.box(SIZE), points=[(0, 0, -0.05)], radius=0.01, friction=0.5, name="seam")
    found = tree.compile(threads=1).rollout(q, qd, 200, 1e-3)
    assert found.forces[0, 0] > 0
    assert_array_equal(found.forces[2], 0.0)
    assert found.qd[1] == pytest.approx(2.0 - 0.3 * G * 0.2, abs=2e-3)


def test_what_is_refused():
    tree = crate(points=[(x, 0, -0.1) for x in np.linspace(-0.2, 0.2, 17)])
    q, qd = resting(tree)
    with pytest.raises(
        sd.ContactError, match=r"at most 16 points of contacts; this tree has 17, at 'floor': give fewer"
    ):
        tree.compile().rollout(q, qd, 1, 1e-3)
    fast = crate().compile()
    with pytest.raises(sd.ScrewdynError, match=r"method='rk4' is not available for a tree with contacts, here 'floor'"):
        fast.rollout(q, qd, 1, 1e-3, method="rk4")
    with pytest.raises(sd.ScrewdynError, match="stops is not available for a tree with contacts"):
        fast.rollout(q, qd, 1, 1e-3, stops="inelastic")
    q[6] = 0.05
    with pytest.raises(
        sd.ContactError, match=r"'crate' is 50 mm inside 'base' at contact 'floor' in run 0; start from"
    ):
        fast.rollout(q, qd, 1, 1e-3)
    tree = crate()
    tree.touch("crate", to="base", on=sd.Shape.box((1, 1, 1)), points=[(0, 0, 0.5)], name="table")
    with pytest.raises(sd.ContactError, match="'table' has points without radius on a box"):
        tree.compile().rollout(*resting(tree), 1, 1e-3)
