"""Rollouts against loops of single steps, the laws of the motion, and SciPy."""

import io
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import solve_ivp

from screwdyn import (
    Feedback,
    Inertia,
    KinematicTree,
    Link,
    Mimic,
    ShapeError,
    SingularAttachmentError,
    free,
    planar,
    prismatic,
    revolute,
    robots,
    spherical,
)
from screwdyn.backends.llvm import program as native
from screwdyn.backends.llvm.program import MEMORY, Kept
from screwdyn.forms import compiled as forms
from screwdyn.forms import search
from screwdyn.testing import random_inertia, random_tree

pytestmark = pytest.mark.usefixtures("compiled_when_called")

KINDS = {
    "revolute prismatic helical": ("revolute", "prismatic", "helical"),
    "spherical revolute": ("spherical", "revolute"),
    "planar universal": ("planar", "universal"),
    "free": ("free",),
}
RUNS, DT = 21, 2e-3


def furnished(rng, tree):
    """The same tree, whose joints of one freedom have damping, dry friction and springs."""
    found = KinematicTree(gravity=tree.gravity)
    edges = {link: (parent, edge) for parent, link, edge in tree.graph.edges(data=True)}
    for link in tree.links[1:]:
        parent, edge = edges[link]
        joint = replace(edge["joint"], name=edge["name"])
        if joint.kind in ("revolute", "prismatic"):
            damping, friction, stiffness, rest = rng.uniform(0.1, 1, 4)
            joint = replace(joint, damping=damping, friction=friction, stiffness=stiffness, rest=rest)
        found.attach(Link(link, tree.link(link).inertia), to=parent, joint=joint, at=edge["home"])
    return found


def starts(tree, rng, runs=RUNS, size=1.0):
    return np.array([tree.random_configuration(rng) for _ in range(runs)]), size * rng.normal(size=(runs, tree.nv))


def accelerations(tree, q, qd, tau):
    return tree.forward_dynamics(q, qd, tau + tree.joint_force(q, qd))


def euler(tree, q, qd, dt, torque):
    qd = qd + dt * accelerations(tree, q, qd, torque(q, qd))
    return tree.integrate(q, dt * qd), qd


def rk4(tree, q, qd, dt, torque):
    """Written with a table of coefficients."""
    unit = tree.model.configurations.normalized
    rates = [(np.zeros_like(q), np.zeros_like(qd))]
    for c in (0.0, 0.5, 0.5, 1.0):
        x, v = unit(q + c * dt * rates[-1][0]), qd + c * dt * rates[-1][1]
        rates.append((tree.position_rate(x, v), accelerations(tree, x, v, torque(x, v))))
    weighted = [sum(b * k[i] for b, k in zip((1, 2, 2, 1), rates[1:], strict=True)) / 6 for i in (0, 1)]
    return unit(q + dt * weighted[0]), qd + dt * weighted[1]


STEP = {"semi_implicit_euler": euler, "rk4": rk4}


def loop(tree, q, qd, steps, dt, method="semi_implicit_euler", torque=lambda k, q, qd: 0.0 * qd):
    """All states, from the tree's default kernels."""
    states = [(tree.model.configurations.normalized(q), qd)]
    for k in range(steps):
        states.append(STEP[method](tree, *states[-1], dt, lambda q, qd, k=k: torque(k, q, qd)))
    return [np.array(x) for x in zip(*states, strict=True)]


def close(found, expected):
    assert np.isfinite(expected).all()
    assert_allclose(found, expected, rtol=0, atol=1e-11 * max(1.0, np.abs(expected).max()))


@pytest.mark.slow
@pytest.mark.parametrize("method", STEP)
@pytest.mark.parametrize("kinds", KINDS)
def test_steps_are_those_of_a_loop_over_the_tree(kinds, method):
    rng = np.random.default_rng([len(kinds), 1])
    tree = furnished(rng, random_tree(rng, 4, KINDS[kinds]))
    q, qd = starts(tree, rng)
    found = tree.compile(threads=1).rollout(q, qd, 10, DT, method=method, every=1, t0=2.0)
    Q, Qd = loop(tree, q, qd, 10, DT, method)
    close(found.q, Q)
    close(found.qd, Qd)
    assert_allclose(found.t, 2.0 + DT * np.arange(11), rtol=1e-15)
    assert not found.failed.any()
    assert (found.steps == 10).all()


@pytest.fixture(scope="module")
def arm():
    return robots.ur5()


@pytest.fixture(scope="module")
def fast(arm):
    return arm.compile(threads=1)


@pytest.fixture
def given(arm):
    return starts(arm, np.random.default_rng(5))


def test_samples_are_those_of_separate_rollouts(fast, given):
    found = fast.rollout(*given, 12, DT, every=4)
    assert found.q.shape == (4, RUNS, 6)
    for k, steps in enumerate((4, 8, 12), start=1):
        alone = fast.rollout(*given, steps, DT)
        assert_array_equal(found.q[k], alone.q)
        assert_array_equal(found.qd[k], alone.qd)
        assert found.t[k] == alone.t
    assert_array_equal(found.q[0], given[0])


@pytest.mark.parametrize("shape", [(), (6,), (RUNS, 6), (12, 1, 6), (12, RUNS, 6)])
@pytest.mark.parametrize("every", [None, 1, 3, 12])
def test_torques_of_any_shape(arm, fast, given, shape, every, monkeypatch):
    # Several calls, with several steps each.
    monkeypatch.setattr(forms, "_ROWS", 40)
    monkeypatch.setattr(forms, "_CALL", 5 * RUNS)
    tau = 10 * np.random.default_rng(2).normal(size=shape)
    per_step = (
        np.broadcast_to(tau if tau.ndim == 3 else tau[None], (12, RUNS, 6)) if shape else np.full((12, 1, 6), tau)
    )
    Q, Qd = loop(arm, *given, 12, DT, torque=lambda k, q, qd: per_step[k])
    found = fast.rollout(*given, 12, DT, tau, every=every)
    close(found.q, Q[-1] if every is None else Q[::every])
    close(found.qd, Qd[-1] if every is None else Qd[::every])


@pytest.mark.parametrize("method", STEP)
def test_a_function_is_called_once_per_step_with_all_runs(arm, fast, given, method):
    calls = []

    def torque(t, q, qd):
        calls.append((t, q.copy(), qd.copy()))
        return np.sin(t) - qd

    found = fast.rollout(*given, 5, DT, torque, method=method, t0=1.0)
    assert_allclose([t for t, *_ in calls], 1.0 + DT * np.arange(5), rtol=1e-15)
    Q, Qd = given
    for k in range(5):
        close(calls[k][1], Q)
        held = np.sin(1.0 + k * DT) - Qd
        Q, Qd = STEP[method](arm, Q, Qd, DT, lambda q, qd, held=held: held)
    close(found.qd, Qd)
    with pytest.raises(ValueError, match="read-only"):
        fast.rollout(*given, 1, DT, lambda t, q, qd: q.fill(0))


@pytest.mark.parametrize("method", STEP)
def test_feedback_is_computed_in_every_stage(arm, fast, given, method):
    rng = np.random.default_rng(3)
    law = Feedback(
        kp=rng.uniform(20, 90, (RUNS, 6)),
        kd=rng.uniform(1, 9, 6),
        q_target=rng.normal(size=(8, 1, 6)),
        qd_target=0.5,
        tau=rng.normal(size=(RUNS, 6)),
    )

    def torque(k, q, qd):
        return law.tau + law.kp * (law.q_target[k] - q) + law.kd * (law.qd_target - qd)

    Q, Qd = loop(arm, *given, 8, DT, method, torque)
    found = fast.rollout(*given, 8, DT, law, method=method, every=1)
    close(found.q, Q)
    close(found.qd, Qd)


def test_feedback_beside_joints_of_several_freedoms():
    rng = np.random.default_rng(8)
    tree = KinematicTree()
    tree.attach(Link("hull", random_inertia(rng)), to="base", joint=free())
    tree.attach(Link("arm", random_inertia(rng)), to="hull", joint=revolute("y"), name="elbow")
    q, qd = starts(tree, rng)
    kp, kd = np.array([0.0] * 6 + [30.0]), np.array([1.0] * 6 + [2.0])

    def torque(k, q, qd):
        return kp * np.concatenate([np.zeros((RUNS, 6)), 0.4 - q[:, 7:]], axis=1) - kd * qd

    Q, _ = loop(tree, q, qd, 8, DT, "rk4", torque)
    found = tree.compile(threads=1).rollout(q, qd, 8, DT, Feedback(kp, kd, q_target=0.4), method="rk4")
    close(found.q, Q[-1])


def test_torques_of_the_active_freedoms_only():
    rng = np.random.default_rng(8)
    tree = KinematicTree()
    for k in range(4):
        joint = revolute("y", passive=k in (0, 2))
        tree.attach(Link(f"link{k}", random_inertia(rng)), to=tree.links[-1], joint=joint, at=(0.1, 0, 0.2))
    fast, start = tree.compile(threads=1), starts(tree, rng)
    tau = rng.normal(size=(5, RUNS, 2))
    full = np.zeros((5, RUNS, 4))
    full[..., [1, 3]] = tau
    expected = fast.rollout(*start, 5, DT, full)
    assert_array_equal(fast.rollout(*start, 5, DT, tau).q, expected.q)
    assert_array_equal(fast.rollout(*start, 5, DT, lambda t, q, qd: tau[round(t / DT)]).q, expected.q)
    some = fast.rollout(*start, 5, DT, Feedback(2.0, [0.1, 0.2], tau=1.0))
    same = fast.rollout(*start, 5, DT, Feedback([0, 2.0, 0, 2.0], [0, 0.1, 0, 0.2], tau=[0, 1.0, 0, 1.0]))
    assert_array_equal(some.q, same.q)


def test_targets_of_the_active_freedoms_only():
    """Beside a floating base, a ball joint with motors, and a joint that follows another one."""
    rng = np.random.default_rng(9)
    tree = KinematicTree()
    tree.attach(Link("hull", random_inertia(rng)), to="base", joint=free(passive=True))
    tree.attach(Link("arm", random_inertia(rng)), to="hull", joint=revolute("y", name="elbow"))
    tree.attach(Link("tail", random_inertia(rng)), to="hull", joint=revolute("x", passive=True), at=(1, 0, 0))
    tree.attach(Link("hip", random_inertia(rng)), to="hull", joint=spherical())
    tree.attach(Link("slide", random_inertia(rng)), to="arm", joint=prismatic("x", name="slide"))
    mimic = revolute("z", mimic=Mimic("slide", 0.5), name="follower")
    tree.attach(Link("finger", random_inertia(rng)), to="slide", joint=mimic)
    start, fast = starts(tree, rng), tree.compile(threads=1)
    assert tree.active == ("elbow", "hip[wx]", "hip[wy]", "hip[wz]", "slide") and (tree.nq, tree.nv) == (14, 12)
    kp, kd, targets, rates = [30, 0, 0, 0, 9], [2.0] * 5, rng.normal(size=(8, 1, 5)), rng.normal(size=(RUNS, 5))
    q, qd = np.zeros((8, 1, tree.nq)), np.zeros((RUNS, tree.nv))
    q[..., [tree.positions.index(name) for name in ("elbow", "slide")]] = targets[..., [0, 4]]
    qd[:, [tree.coordinates.index(name) for name in tree.active]] = rates
    some, same = (fast.rollout(*start, 8, DT, Feedback(kp, kd, *given)).q for given in ((targets, rates), (q, qd)))
    assert_array_equal(some, same)
    for target in (np.zeros(4), np.zeros(13)):
        with pytest.raises(
            ShapeError, match=r"q_target has shape .*; expected \(14,\).*entries for the active freedoms"
        ):
            fast.rollout(*start, 8, DT, Feedback(kp, kd, target))


def order(tree, method, torque=None):
    """Slope of the error of q against the length of the step, from DOP853 at tight tolerances."""
    rng = np.random.default_rng(4)
    q, qd = starts(tree, rng, 3, 0.5)
    fast, space, end = tree.compile(threads=1), tree.model.configurations, 0.4

    def rate(t, y):
        x, v = space.normalized(y[: tree.nq]), y[tree.nq :]
        return np.concatenate([space.rate(y[: tree.nq], v), accelerations(tree, x, v, 0.0 * v)])

    exact = [
        solve_ivp(rate, (0, end), [*a, *b], "DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
        for a, b in zip(q, qd, strict=True)
    ]
    steps = np.array([40, 80, 160])
    errors = []
    for n in steps:
        found = fast.rollout(q, qd, int(n), end / n, method=method)
        errors.append(np.abs(np.hstack([space.normalized(found.q), found.qd]) - exact).max())
    return np.polyfit(np.log(end / steps), np.log(errors), 1)[0]


@pytest.mark.slow
@pytest.mark.parametrize("joints", [(revolute("y"), revolute("y"), revolute("z")), (free(), spherical(), planar())])
@pytest.mark.parametrize(("method", "expected"), [("semi_implicit_euler", 1.0), ("rk4", 4.0)])
def test_order_of_convergence(joints, method, expected):
    rng = np.random.default_rng(11)
    tree, last = KinematicTree(), "base"
    for k, joint in enumerate(joints):
        if joint.chart is None:
            joint = replace(joint, damping=0.3, stiffness=2.0, rest=0.3)
        last = tree.attach(Link(f"link{k}", random_inertia(rng)), to=last, joint=joint, at=(0.2, 0, 0.3)).name
    assert order(tree, method) == pytest.approx(expected, abs=0.12 * expected)


def test_energy_drifts_with_the_fourth_order():
    tree = random_tree(np.random.default_rng(6), 4)
    q, qd = starts(tree, np.random.default_rng(7))

    def drift(steps):
        found = tree.compile(threads=1).rollout(q, qd, steps, 0.2 / steps, method="rk4")
        before = tree.kinetic_energy(q, qd) + tree.potential_energy(q)
        return np.abs(tree.kinetic_energy(found.q, found.qd) + tree.potential_energy(found.q) - before).max()

    assert drift(400) < 1e-6
    assert drift(400) < drift(200) / 14


def crates(rng, count):
    return [
        Inertia.box(m, size, com)
        for m, size, com in zip(
            rng.uniform(0.5, 4, count), rng.uniform(0.1, 0.4, (count, 3)), rng.normal(0, 0.1, (count, 3)), strict=True
        )
    ]


@pytest.mark.slow
@pytest.mark.parametrize("method", STEP)
@pytest.mark.parametrize("form", ["list", "array"])
def test_payloads_of_every_run_against_separate_trees(given, method, form):
    rng = np.random.default_rng(9)
    bodies = {"crate": crates(rng, RUNS), "lid": crates(rng, RUNS), "forearm": crates(rng, RUNS)}

    def loaded(crate, lid, forearm):
        tree = robots.ur5()
        tree.attach(Link("crate", crate), to="tool0", at=(0.1, 0.2, 0.3))
        tree.attach(Link("lid", lid), to="crate", joint=revolute("x", passive=True), at=(0, 0, 0.1))
        tree.attach(Link("forearm", forearm), to="forearm_link", at=(0.2, 0, 0))
        return tree

    tree = loaded(*crates(rng, 3))
    q, qd = (np.hstack([x, np.full((RUNS, 1), 0.2)]) for x in given)
    payload = bodies if form == "list" else {name: [x.parameters for x in found] for name, found in bodies.items()}
    found = tree.compile(threads=1).rollout(q, qd, 6, DT, method=method, payload=payload)
    for k in range(0, RUNS, 5):
        Q, Qd = loop(loaded(*(x[k] for x in bodies.values())), q[k], qd[k], 6, DT, method)
        close(found.q[k], Q[-1])
        close(found.qd[k], Qd[-1])


def test_one_start_for_many_payloads(arm, given):
    with arm.attached(Link("crate", Inertia.point(1.0)), to="tool0"):
        fast = arm.compile(threads=1)
        bodies = crates(np.random.default_rng(1), 3)
        found = fast.rollout(given[0][0], given[1][0], 4, DT, payload={"crate": bodies})
        assert found.q.shape == (3, 6)
        same = fast.rollout(given[0][:1], given[1][:1], 4, DT, payload={"crate": bodies[1]})
        assert_array_equal(found.q[1], same.q[0])
        on_base = fast.rollout(*given, 4, DT, payload={"base_link": bodies[0]})
        assert_array_equal(on_base.q, fast.rollout(*given, 4, DT).q)


@pytest.mark.parametrize("method", STEP)
def test_bits_do_not_depend_on_the_batch_or_the_threads(arm, given, method, monkeypatch):
    monkeypatch.setattr(forms, "_STEPS", 10)
    tau = 5 * np.random.default_rng(2).normal(size=(30, RUNS, 6))
    fast = arm.compile(threads=1)
    whole = fast.rollout(*given, 30, DT, tau, method=method, every=10)
    shared = arm.compile(threads=3).rollout(*given, 30, DT, tau, method=method, every=10)
    assert_array_equal(whole.q, shared.q)
    assert_array_equal(whole.qd, shared.qd)
    for k in (0, 7, 8, RUNS - 1):
        alone = fast.rollout(given[0][k], given[1][k], 30, DT, tau[:, k], method=method, every=10)
        assert_array_equal(alone.q, whole.q[:, k])
    columns = [np.asfortranarray(x) for x in given]
    assert_array_equal(fast.rollout(*columns, 30, DT, tau, method=method).qd, whole.qd[-1])


def test_threads_that_ask_together(given, monkeypatch):
    """The first call compiles; the others wait for the same code."""
    monkeypatch.setattr(native, "_steps", Kept(native._stepped, MEMORY))
    fast = robots.ur5().compile(threads=1)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda k: fast.rollout(*given, 20, DT), range(8)))
    for other in found[1:]:
        assert_array_equal(other.q, found[0].q)


def test_several_batch_axes(fast, given):
    q, qd = (x[:20].reshape(4, 5, 6) for x in given)
    tau = np.random.default_rng(2).normal(size=(6, 4, 1, 6))
    found = fast.rollout(q, qd[:, :1], 6, DT, tau, every=3)
    assert found.q.shape == (3, 4, 5, 6)
    assert found.failed.shape == (4, 5)
    alone = fast.rollout(q[2, 3], qd[2, 0], 6, DT, tau[:, 2, 0])
    assert_array_equal(found.q[-1, 2, 3], alone.q)
    assert alone.q.shape == (6,)
    assert alone.failed.shape == ()


def test_out_may_be_the_start(fast, given):
    expected = fast.rollout(*given, 10, DT, every=5)
    out = np.empty((3, RUNS, 6)), np.empty((RUNS, 3, 6)).swapaxes(0, 1)
    found = fast.rollout(*given, 10, DT, every=5, out=out)
    assert found.q is out[0]
    assert found.qd is out[1]
    assert_array_equal(out[0], expected.q)
    assert_array_equal(out[1], expected.qd)
    q, qd = (x.copy() for x in given)
    fast.rollout(q, qd, 10, DT, out=(q, qd))
    assert_array_equal(q, expected.q[-1])
    assert_array_equal(qd, expected.qd[-1])


# Failures


@pytest.mark.parametrize("method", STEP)
def test_a_run_that_diverges_disturbs_no_other(fast, given, method):
    # Negative damping drives one run away.
    tame, wild = np.ones((2, RUNS, 6))
    wild[4] = -50
    expected = fast.rollout(*given, 40, DT, Feedback(0.0, tame), method=method, every=10)
    found = fast.rollout(*given, 40, DT, Feedback(0.0, wild), method=method, every=10)
    assert_array_equal(found.failed, np.arange(RUNS) == 4)
    assert 0 < found.steps[4] < 40
    assert np.isnan(found.q[-1, 4]).all()
    assert np.isnan(found.qd[-1, 4]).all()
    others = np.arange(RUNS) != 4
    assert_array_equal(found.q[:, others], expected.q[:, others])
    assert_array_equal(found.qd[:, others], expected.qd[:, others])
    # The samples before the failure are finite.
    assert_array_equal(np.isfinite(found.q[:, 4]).all(axis=-1), np.arange(5) * 10 <= found.steps[4])


def test_a_joint_that_feels_no_inertia_in_one_run():
    tree = KinematicTree()
    tree.attach(Link("link", Inertia.rod(1, 1.0)), to="base", joint=revolute("z"))
    tree.attach(Link("bob", Inertia.point(1.0, (0, 0.5, 0))), to="link", joint=revolute("z"), at=(1, 0, 0))
    bodies = np.array([Inertia.point(m, (0, 0.5, 0)).parameters for m in (1.0, 2.0, 3.0)])
    bodies[1] = 0
    found = tree.compile(threads=1).rollout(np.zeros((1, 2)), np.zeros((1, 2)), 5, DT, payload={"bob": bodies})
    assert_array_equal(found.failed, [False, True, False])
    assert_array_equal(found.steps, [5, 0, 5])


def test_a_run_without_the_bodies_of_the_last_joint():
    """Without rounding that remains of their numbers, which would count as inertia."""
    tree, zeros, q, qd = robots.pelican(), np.zeros(10), [0.3, 0.2], [0.0, 0.0]
    crate = tree.attach(Link("crate", Inertia.box(0.7, (0.1, 0.2, 0.3))), to="link2", at=(0.1, 0.2, 0.3))
    light = np.array([zeros, Inertia.box(1e-9, (0.1, 0.2, 0.3)).parameters])
    found = tree.compile(threads=1).rollout([q] * 2, [qd] * 2, 5, DT, payload={"crate": zeros, "link2": light})
    assert_array_equal(found.failed, [True, False])
    assert_array_equal(found.steps, [0, 5])
    tree.detach(crate)
    with tree.attached(Inertia.box(1e-9, (0.1, 0.2, 0.3)), to="link2"):
        tree.set_inertia("link2", None)
        close(found.q[1], loop(tree, np.array(q), np.array(qd), 5, DT)[0][-1])
    with pytest.raises(SingularAttachmentError, match="elbow"):
        tree.forward_dynamics(q, qd, [0.0, 0.0])


def test_a_function_may_return_nan_for_a_run(fast, given):
    found = fast.rollout(*given, 4, DT, lambda t, q, qd: np.where(np.arange(RUNS)[:, None] == 3, np.nan, 0.0))
    assert_array_equal(found.failed, np.arange(RUNS) == 3)


def test_many_lengths_of_a_step(fast, given):
    """More of them than are kept."""
    expected = fast.rollout(*given, 3, DT)
    for k in range(1, forms._KEPT + 3):
        fast.rollout(*given, 1, k * 1e-4)
    assert_array_equal(fast.rollout(*given, 3, DT).q, expected.q)


def test_samples_after_all_runs_have_failed(fast, given):
    found = fast.rollout(*given, 200, DT, Feedback(0.0, -500.0), every=50)
    assert found.failed.all()
    assert np.isnan(found.q[2:]).all()
    assert (found.steps < 100).all()


def test_a_tree_without_joints():
    found = KinematicTree().compile().rollout(np.zeros((4, 0)), np.zeros((4, 0)), 5, DT, every=5)
    assert found.q.shape == (2, 4, 0)
    assert not found.failed.any()


def test_no_runs(fast):
    found = fast.rollout(np.zeros((0, 6)), np.zeros((0, 6)), 5, DT)
    assert found.q.shape == (0, 6)


def test_a_long_rollout_shows_its_progress_on_a_terminal(arm, fast, monkeypatch):
    for long, shown in ((1, True), (1000, False)):
        monkeypatch.setattr(forms, "_LONG", long)
        monkeypatch.setattr(search, "LONG", 0.0)
        monkeypatch.setattr(sys, "stderr", Terminal())
        fast.rollout(arm.neutral(), np.zeros(arm.nv), 100, 1e-3)
        assert ("100/100" in sys.stderr.getvalue()) == shown


class Terminal(io.StringIO):
    def isatty(self):
        return True
