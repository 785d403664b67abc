"""Laws and observers in C against those in Python, with payloads that come and go."""

import ctypes

import numpy as np
import pytest
import sympy
from c_compiler import load, pointer
from numpy.testing import assert_allclose

import screwdyn as sd
from screwdyn import control

CRATE = sd.Inertia.box(2.0, (0.3, 0.2, 0.25), com=(0.02, 0.03, 0.1))
BOB = sd.Inertia.sphere(0.6, 0.05, com=(0.01, 0, -0.2))


def robot():
    """Joints with springs, friction and a motor of little effort, a pair of fingers, a passive joint of its own."""
    tree = sd.KinematicTree()
    rail = sd.prismatic("x", name="rail", damping=3.0, friction=0.5, stiffness=4.0, rest=0.1, effort=80.0)
    tree.attach(sd.Inertia.box(5.0, (0.3, 0.3, 0.2)), to="base", joint=rail, name="cart")
    pole = sd.revolute("y", name="pole", passive=True, damping=0.1)
    tree.attach(sd.Inertia.rod(1.0, 0.5, com=(0, 0, -0.25)), to="cart", joint=pole, name="rod")
    arm = sd.universal(name="arm", effort=15.0)
    tree.attach(sd.Inertia.box(2.0, (0.1, 0.2, 0.3), com=(0.1, 0, 0.2)), to="rod", joint=arm, at=(0, 0, -0.5))
    left, right = (sd.prismatic("x", name="left"), sd.prismatic("x", mimic=sd.Mimic("left", -1.0), name="right"))
    for joint in (left, right):
        tree.attach(sd.Inertia.box(0.3, (0.1, 0.05, 0.1)), to=tree.links[3], joint=joint, at=(0, 0, 0.3))
    return tree


def payload(tree, links):
    """The tree with some of a crate, with an estimate, and a bob on a passive ball joint."""
    tree = tree.copy()
    if "crate" in links:
        tree.attach(CRATE, to=tree.links[3], at=(0, 0.1, 0.3), name="crate")
    if "bob" in links:
        tree.attach(BOB, to=tree.links[3], joint=sd.spherical(name="hook", passive=True), at=(0.1, 0, 0.3), name="bob")
    return tree


ARM, OPTIONAL = robot(), ("crate", "bob")
WHOLE = payload(ARM, OPTIONAL)
TREES = {bits: payload(ARM, [x for k, x in enumerate(OPTIONAL) if bits >> k & 1]) for bits in range(4)}
HELD = {"q": WHOLE.nq, "qd": WHOLE.nv, "q_ref": WHOLE.nq, "qd_ref": WHOLE.nv, "qdd_ref": WHOLE.nv}


def arguments(rng, scale=0.5):
    q = WHOLE.random_configuration(rng)
    q_ref = q + 0.1 * scale * rng.normal(size=WHOLE.nq)
    return [q, *scale * rng.normal(size=(1, WHOLE.nv)), q_ref, *scale * rng.normal(size=(2, WHOLE.nv))]


def in_python(bits, given):
    """The state in the tree of some bits, and the reference of the driven joints."""
    tree, (q, qd, *reference) = TREES[bits], given
    at_q, at_v = ([whole.index(x) for x in own] for whole, own in names(tree))
    driven_q, driven_v = ([whole.index(x) for x in own] for whole, own in names(ARM, LAW))
    wanted = reference[0][driven_q], reference[1][driven_v], reference[2][driven_v]
    return sd.State(tree, q[at_q], qd[at_v]), wanted, at_v


def names(tree, law=None):
    of = tree if law is None else law
    return (WHOLE.positions, of.positions), (WHOLE.coordinates, of.coordinates)


LAW = control.GravityCompensation(ARM)
GAINS = {"stiffness": [3.0, 4.0, 5.0, 6.0], "damping": [9.0, 8.0, 7.0, 6.0]}


def made(kind, reference=lambda t: None):
    n = len(LAW.coordinates)
    return {
        "computed_torque": lambda: control.ComputedTorque(ARM, reference, kp=np.arange(1.0, n + 1), kd=4.0),
        "passivity_control": lambda: control.PassivityControl(ARM, reference, **GAINS),
        "gravity_compensation": lambda: control.GravityCompensation(ARM, damping=2.0),
    }[kind]()


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("c")
    laws = [made(kind) for kind in ("computed_torque", "passivity_control", "gravity_compensation")]
    return load(WHOLE.c_source([*laws, adaptive(), control.MomentumObserver(80.0)], optional=OPTIONAL), folder)


def adaptive(reference=lambda t: None, **others):
    mass = {"mass": (0.2, 2.5), "still": 0.4, "rate": 30.0} | others
    return control.AdaptiveControl(ARM, reference, ["crate"], **GAINS, **mass)


def call(function, given, *rest, real=np.float64):
    out = np.full(WHOLE.nv, np.nan, dtype=real)
    function.restype = None
    function(*(pointer(np.asarray(x, dtype=real)) for x in given), *rest, pointer(out))
    return out


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["computed_torque", "passivity_control", "gravity_compensation"])
def test_torques_are_those_of_python(library, kind):
    rng, clipped = np.random.default_rng(1), 0
    for _ in range(25):
        given = arguments(rng, rng.choice([0.3, 3.0]))
        for bits in TREES:
            state, wanted, at = in_python(bits, given)
            law = made(kind, lambda t, wanted=wanted: wanted)
            expected = law(0.0, state)
            count = 2 if kind == "gravity_compensation" else 5
            tau = call(getattr(library, kind), given[:count], ctypes.c_ulong(bits))
            assert_allclose(tau[at], expected, rtol=1e-9, atol=1e-9)
            assert not np.delete(tau, at).any()
            clipped += bool(law.saturated)
    assert 10 < clipped < 90 or kind == "gravity_compensation"


def test_estimates_move_begin_and_end_as_in_python(library):
    """600 periods; the crate is there in the second and the last quarter, the bob in the third and the last."""
    rng, dt, t = np.random.default_rng(2), 4e-3, 0.0
    wanted = [None]
    law, kept, masses = adaptive(lambda t: wanted[0]), np.zeros(16), []
    now, speed = arguments(rng, 0.0), rng.normal(size=WHOLE.nv)
    for k in range(600):
        bits = k // 150
        phase = 6 * dt * k
        given = [now[0], np.sin(phase) * speed, now[0], np.cos(phase) * speed, np.sin(phase) * speed]
        state, wanted[0], at = in_python(bits, given)
        expected = law(t, state)
        step = ctypes.c_double(dt if k else 0.0)
        tau = call(library.adaptive_control, given, step, ctypes.c_ulong(bits), pointer(kept))
        assert_allclose(tau[at], expected, rtol=1e-8, atol=1e-8)
        t += dt
        if bits & 1:
            R = kept.reshape(4, 4)
            masses.append(law.estimates["crate"].mass)
            assert (R @ R.T)[3, 3] == pytest.approx(masses[-1], rel=1e-9)
        else:
            assert not kept.any()
    assert max(masses) == pytest.approx(2.5) and len({round(m, 6) for m in masses}) > 50


def test_external_torques_are_those_of_python(library):
    rng, dt, t = np.random.default_rng(3), 2e-3, 0.0
    observer, kept = control.MomentumObserver(80.0), np.zeros(3 * WHOLE.nv + 3)
    given, bits = arguments(rng), 1
    for k in range(80):
        bits = {20: 3, 40: 0, 60: 2}.get(k, bits)
        q, qd, tau = given[0], given[1] + 0.1 * np.sin(0.1 * k), rng.normal(size=WHOLE.nv)
        state, _, at = in_python(bits, [q, qd, *given[2:]])
        expected = observer(t, state, tau[at])
        r = call(library.momentum_observer, [q, qd, tau], ctypes.c_double(dt), ctypes.c_ulong(bits), pointer(kept))
        assert_allclose(r[at], expected, rtol=1e-9, atol=1e-9)
        assert not np.delete(r, at).any()
        t += dt
    assert np.abs(r).max() > 1.0


@pytest.mark.slow
@pytest.mark.parametrize(("real", "digits"), [("double", 1e-12), ("float", 1e-4)])
def test_gains_along_a_run_are_those_of_python(tmp_path, real, digits):
    """Before, between and after the samples of a run whose arm has a crucible on a hook in its second part."""
    arm, hook = sd.robots.pelican(), sd.revolute("z", passive=True, name="hook")
    crucible = sd.Link("crucible", sd.Inertia.planar(1.5, (0.08, 0), 0.006))

    def torque(t, state):
        push = 8 * (np.array([-0.6, 1 + 0.2 * np.sin(t)]) - state.q[:2]) - 3 * state.qd[:2]
        return np.append(state.tree.gravity_vector(state.q)[:2] + push, np.zeros(state.tree.nv - 2))

    pick = sd.Grasp(crucible, to="link2", joint=hook, twist="at_rest", time=0.4)
    events = [pick, sd.Release("crucible", time=1.1)]
    run = sd.simulate(arm, sd.State(arm, [-1.0, 0.8]), 1.5, torque, events, step=0.02)
    law = control.TimeVaryingLQR(run, lambda names: [1e2] * len(names) + [1.0] * len(names), 0.01)
    whole = arm.copy()
    whole.attach(crucible, to="link2", joint=hook)
    function = load(whole.c_source([law], optional=["crucible"], real=real), tmp_path).time_varying_lqr
    function.restype, rng = None, np.random.default_rng(6)
    for t in [*run.t[::7], *rng.uniform(-0.2, 1.8, 40)]:
        q, qd, tau = np.array([-0.8, 1.0, 0.1]) + 0.1 * rng.normal(size=3), 0.1 * rng.normal(size=3), np.full(3, np.nan)
        given = [x.astype(real if real == "double" else np.float32) for x in (q, qd, tau)]
        for bit, tree in enumerate((arm, whole)):
            clock = ctypes.c_double(t) if real == "double" else ctypes.c_float(t)
            function(clock, *map(pointer, given[:2]), ctypes.c_ulong(bit), pointer(given[2]))
            expected = law(t, sd.State(tree, q[: tree.nv], qd[: tree.nv]))
            assert_allclose(given[2][: tree.nv], expected, atol=digits * 100)
            assert not given[2][tree.nv :].any()
    alone = load(arm.c_source([control.TimeVaryingLQR(run, 1.0, 1.0)], prefix="a_"), tmp_path).a_time_varying_lqr
    alone.restype = None
    alone(ctypes.c_double(0.7), *map(pointer, (q, qd, tau)))
    assert np.isfinite(tau[:2]).all()


@pytest.mark.slow
def test_parameters_of_a_payload_are_those_of_python(tmp_path):
    """The crate is there in all quarters but the third, the bob, which another window takes up, in the second."""
    noise = {name: 0.5 for name in WHOLE.coordinates if not name.startswith("hook")}
    given = {"noise": noise, "momentum_noise": 0.02, "window": 7}
    library = load(WHOLE.c_source([control.PayloadEstimator("crate", **given)], optional=OPTIONAL), tmp_path)
    library.payload_estimator.restype, rng, n = None, np.random.default_rng(7), WHOLE.nv
    kept, found, t = np.zeros(100 + 10 + 1 + 22 * n + 2 + 3), np.zeros(10), 0.0
    estimator, windows, compared = control.PayloadEstimator("crate", **given), [], 0
    start, speed, wave = arguments(rng)[0], rng.normal(size=n), rng.uniform(0.1, 0.5, n + 2)
    for k in range(200):
        bits, q, qd = (1, 3, 2, 1)[k // 50], start + 0.5 * np.sin(wave[:-1] * k), speed * np.cos(wave[1:-1] * k)
        q[-4:] = start[-4:]
        tau = rng.normal(size=n)
        clock = ctypes.c_double(4e-3 if k else 0.0), ctypes.c_ulong(bits)
        library.payload_estimator(*map(pointer, (q, qd, tau)), *clock, pointer(kept), pointer(found))
        if not bits & 1:
            estimator = control.PayloadEstimator("crate", **given)
            assert not kept[:-3].any() and not found.any()
            continue
        state, _, at = in_python(bits, [q, qd, *3 * [q]])
        estimator(t := 4e-3 * k, state, tau[at])
        windows.append(estimator.windows)
        assert kept[110] == estimator.windows
        assert_allclose(kept[:100].reshape(10, 10), estimator._information, rtol=1e-9, atol=1e-9)
        if estimator._scaled[1][0] > 1e-6:  # otherwise some are hardly determined
            compared += 1
            assert_allclose(found, estimator.parameters, rtol=1e-7, atol=1e-7)
    assert compared > 20
    assert windows[49] == 6 and windows[99] == 12 and windows[-1] == 6 and t > 0


@pytest.mark.parametrize(("real", "digits"), [("double", 1e-6), ("float", 2e-2)])
def test_parameters_that_the_motion_leaves_open_are_those_of_least_norm(tmp_path, real, digits):
    arm = sd.robots.two_link()
    arm.attach(sd.Link("crate"), to="link2", at=(0.7, 0.1, 0))
    estimator, kind = control.PayloadEstimator("crate", noise=0.1, window=5), np.float64 if real == "double" else "f4"
    function = load(arm.c_source([estimator], real=real), tmp_path).payload_estimator
    function.restype, kept, found = None, np.zeros(100 + 10 + 1 + 44 + 3, dtype=kind), np.zeros(10, dtype=kind)
    loaded = sd.robots.two_link()
    loaded.attach(CRATE, to="link2", at=(0.7, 0.1, 0), name="crate")
    for k in range(400):
        at, middle = 0.01 * k, 0.01 * (k - 0.5)
        q, qd = (np.array([np.sin(2 * at), np.cos(3 * at)]), np.array([2 * np.cos(2 * at), -3 * np.sin(3 * at)]))
        q_, qd_, qdd_ = (np.array(x) for x in zip(_wave(1, 2, middle), _wave(1, 3, middle + np.pi / 6), strict=True))
        tau = loaded.inverse_dynamics(q_, qd_, qdd_)
        step = ctypes.c_double(0.01 * (k > 0)) if real == "double" else ctypes.c_float(0.01 * (k > 0))
        function(*(pointer(x.astype(kind)) for x in (q, qd, tau)), step, pointer(kept), pointer(found))
        estimator(at, sd.State(arm, q, qd), tau)
    assert np.isinf(np.diag(estimator.covariance)).sum() >= 5
    assert_allclose(found, estimator.parameters, atol=digits)


def _wave(size, speed, t):
    """A sine and its derivatives."""
    s, c = np.sin(speed * t), np.cos(speed * t)
    return size * s, size * speed * c, -size * speed**2 * s


@pytest.mark.slow
def test_single_precision_and_a_regulator(tmp_path):
    arm = sd.robots.ur5()
    arm.attach(CRATE, to="tool0", name="crate")
    goal = np.array([0.3, -1.2, 1.4, -0.5, 1.0, 0.2])
    still = goal, np.zeros(6), np.zeros(6)
    laws = [control.PassivityControl(arm, lambda t: still), control.LQR(arm, goal, 1.0, 1e-3)]
    text = arm.c_source([*laws, control.AdaptiveControl(arm, lambda t: still, ["crate"])], real="float")
    assert "double" not in text[text.index("#include <math.h>") :] and "float root_of_crate[16];" in text
    library, rng = load(text, tmp_path), np.random.default_rng(4)
    q, qd = goal + 0.1 * rng.normal(size=6), 0.1 * rng.normal(size=6)
    for law, name in zip(laws, ("passivity_control", "lqr"), strict=True):
        tau = np.empty(6, dtype=np.float32)
        given = [np.asarray(x, dtype=np.float32) for x in ([q, qd, *still] if name != "lqr" else [q, qd])]
        getattr(library, name)(*map(pointer, given), pointer(tau))
        assert_allclose(tau, law(0.0, sd.State(arm, q, qd)), atol=1e-4)


@pytest.mark.parametrize(
    ("tree", "functions", "match"),
    [
        (WHOLE, lambda: [("mass_matrix", adaptive())], "a law with a state is a function of its own"),
        (ARM, lambda: [made("computed_torque")] * 2, "have the same name in C, computed_torque"),
        (sd.robots.panda(), lambda: made("computed_torque"), "none of the joints that this law drives"),
    ],
)
def test_errors(tree, functions, match):
    with pytest.raises(sd.ScrewdynError, match=match):
        tree.c_source(functions())


def test_numbers_of_the_robot_may_be_symbols(tmp_path):
    tree, m = sd.robots.two_link(), sympy.Symbol("m")
    tree.attach(sd.Inertia.point(m, (1, 0, 0)), to="link2", name="load")
    q, qd, *wanted = np.random.default_rng(5).uniform(-1, 1, (5, 2))
    laws = [control.AdaptiveControl(tree, lambda t: wanted, ["load"]), control.ComputedTorque(tree, lambda t: wanted)]
    library, heavy = load(tree.c_source(laws), tmp_path), tree.subs({m: 1.5})
    for law, more in zip(laws, ([ctypes.c_double(0.0)], []), strict=True):
        tau, kept = np.zeros(2), [pointer(np.zeros(16))] if more else []
        function = library.adaptive_control if more else library.computed_torque
        function(*map(pointer, (q, qd, *wanted)), *more, pointer(np.array([1.5])), *kept, pointer(tau))
        assert_allclose(tau, law(0.0, sd.State(heavy, q, qd)), rtol=1e-12)


@pytest.mark.slow
def test_laws_that_c_does_not_have():
    ball = sd.KinematicTree()
    ball.attach(BOB, to="base", joint=sd.spherical(name="wrist"), name="hand")
    with pytest.raises(sd.ScrewdynError, match="positions are numbers, not wrist"):
        ball.c_source([control.ComputedTorque(ball, lambda t: None)])
    assert "void gravity_compensation(" in ball.c_source([control.GravityCompensation(ball)])
    free = sd.KinematicTree()
    free.attach(BOB, to="base", joint=sd.prismatic("x", name="rail"), name="cart")
    run = sd.simulate(free, sd.State(free), 0.01, step=0.01)
    regulator = control.TimeVaryingLQR(run, 1.0, 1.0)
    free.attach(BOB, to="cart", joint=sd.spherical(name="hook", passive=True), name="bob")
    with pytest.raises(sd.ScrewdynError, match="positions are numbers, not hook"):
        free.c_source([regulator])
    with pytest.raises(sd.ScrewdynError, match="it lacks rail"):
        sd.robots.two_link().c_source([regulator])


def test_an_estimate_that_no_joint_moves_stays():
    tree = sd.robots.two_link()
    tree.attach(CRATE, to="base", name="pedestal")
    text = tree.c_source([control.AdaptiveControl(tree, lambda t: None, ["pedestal"])])
    assert "root_of_pedestal[16]" in text
