"""Observers of momentum: external torques that are known, and loads with a covariance that is calibrated."""

import numpy as np
import pytest
from loaded_arm import CENTRE, LOAD, A, reference, with_link

import screwdyn as sd
from screwdyn import control


def hold(arm, q):
    return control.ComputedTorque(arm, lambda t: (q, np.zeros(6), np.zeros(6)), kp=400, kd=40)


def test_a_constant_push_is_found_with_the_given_lag():
    """On one pendulum that is held still, r = τ (1 − exp(−K t))."""
    arm = sd.KinematicTree(gravity=(0, 0, 0))
    arm.attach(sd.Inertia.point(2.0, (0.5, 0, 0)), to="base", joint=sd.revolute("y", name="a"), name="one")
    observer, K = control.MomentumObserver(gain=40.0, threshold=1.0), 40.0
    for k in range(101):
        t = 1e-3 * k
        r = observer(t, sd.State(arm), [-3.0])  # a motor that gives −3 N m and does not move is pushed with 3 N m
    assert r[0] == pytest.approx(3.0 * (1 - np.exp(-K * t)), rel=0.02)
    assert observer.alarms == ("a",)


def test_a_lost_payload_shows_as_its_weight():
    arm, bare = sd.robots.ur5(), sd.robots.ur5()
    arm.attach(LOAD, to="tool0", name="crate")
    q, observer = CENTRE, control.MomentumObserver(gain=100.0)
    tau = bare.gravity_vector(q)  # what a motion at rest needs without the payload
    for k in range(301):
        r = observer(1e-3 * k, sd.State(arm, q), tau)
    assert np.abs(r - (arm.gravity_vector(q) - tau)).max() < 1e-6


@pytest.mark.slow
def test_a_push_on_a_moving_arm_around_a_law_and_through_a_grasp():
    arm, observer = sd.robots.ur5(), control.MomentumObserver(gain=200.0)
    push = {"wrist_1_link": np.array([0, 0, 0, 10.0, 0, 20.0])}
    law = hold(arm, CENTRE)
    sd.simulate(
        *(arm, sd.State(arm, CENTRE, A), 0.5),
        torque=observer.around(law),
        wrenches=lambda t, state: push,
        control_period=2e-3,
        step=2e-3,
        events=[sd.Grasp(LOAD, to="tool0", name="crate", twist="co_moving", time=0.2)],
    )
    expected = arm.wrench_torque(CENTRE, push)
    assert np.abs(observer.residual - expected).max() < 0.02 * np.abs(expected).max()


def chi_squared(seed, sigma, count=300, h=2e-3):
    """(π̂ − π)ᵀ Σ⁻¹ (π̂ − π) of one run with noise of its torques: 10 in the mean."""
    rng = np.random.default_rng(seed)
    plant, arm = sd.robots.ur5(), with_link()
    plant.attach(LOAD, to="tool0", name="crate")
    estimator = control.PayloadEstimator("crate", noise=dict(zip(arm.coordinates, sigma, strict=True)), window=20)
    for k in range(count + 1):
        torque = plant.inverse_dynamics(*reference(h * (k - 0.5)))
        estimator(h * k, sd.State(arm, *reference(h * k)[:2]), torque + sigma * rng.normal(size=6))
    error = estimator.parameters - LOAD.parameters
    return error @ np.linalg.solve(estimator.covariance, error), estimator


@pytest.mark.slow
def test_the_covariance_of_a_payload_is_calibrated():
    """The mean of runs is 10, to three standard errors."""
    sigma = np.array([3.0, 3.0, 2.0, 0.5, 0.5, 0.2])
    found = [chi_squared(seed, sigma)[0] for seed in range(40)]
    assert np.mean(found) == pytest.approx(10.0, abs=3 * np.sqrt(20 / len(found)))


def test_an_estimate_is_a_body_that_can_exist():
    _, estimator = chi_squared(3, np.full(6, 40.0), count=100)
    assert estimator.inertia.is_physical
    assert np.sqrt(estimator.covariance[0, 0]) > 0.01


@pytest.mark.slow
def test_a_floating_base_without_torques():
    """A satellite that moves its arm: the momentum of its base is conserved."""
    truth = sd.Inertia.box(4.0, (0.3, 0.3, 0.2), com=(0.05, 0.02, 0.1))
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    tree.attach(sd.Inertia.box(30, (0.6, 0.5, 0.4)), to="base", joint=sd.free(passive=True, name="ship"), name="ship")
    tree.attach(
        sd.Inertia.rod(2, 0.6, com=(0.3, 0, 0)), to="ship", joint=sd.revolute("z", name="a"), at=(0.3, 0, 0), name="arm"
    )
    tree.attach(sd.Link("load"), to="arm", joint=sd.revolute("y", name="b"), at=(0.6, 0, 0))
    real = tree.copy()
    real.set_inertia("load", truth)

    def torque(t, state=None):
        return np.r_[np.zeros(6), np.cos(5 * t), 0.7 * np.sin(4 * t)]

    start = sd.State(real, qd=[0.1, -0.2, 0.15, 0.1, 0, 0, 0.3, 0.2])
    run = sd.simulate(real, start, 1.0, torque=torque, rtol=1e-10, step=0.02)
    noise = {name: 0.05 for name in ("a", "b")}
    ship = {name: 1e-4 for name in tree.coordinates[:6]}
    estimator = control.PayloadEstimator("load", noise=noise, momentum_noise=ship, window=10)
    for k in range(500):
        now = run.at(2e-3 * k)
        estimator(2e-3 * k, sd.State(tree, now.q, now.qd), torque(2e-3 * (k - 0.5)))
    assert estimator.inertia.mass == pytest.approx(4.0, rel=1e-3)
    assert np.abs(estimator.inertia.com - truth.com).max() < 1e-3


def test_what_is_not_excited_has_infinite_variance():
    arm = sd.KinematicTree()
    arm.attach(sd.Link("one"), to="base", joint=sd.revolute("z"))
    estimator = control.PayloadEstimator("one", noise=0.1, window=5)
    for k in range(60):
        t = 0.01 * k
        estimator(t, sd.State(arm, [np.sin(t)], [np.cos(t)]), [-0.4 * np.sin(t - 0.005)])
    covariance = np.diag(estimator.covariance)
    assert np.isfinite(covariance[9]) and np.isinf(covariance[:4]).all()
    assert estimator.parameters[9] == pytest.approx(0.4, rel=1e-3)


def twice(observer, state, tau):
    observer(0.0, state, tau)
    observer(0.1, state, tau)


@pytest.mark.parametrize(
    ("what", "error", "match"),
    [
        (lambda s: control.MomentumObserver(gain=0.0), sd.ScrewdynError, "gain must be a finite number above 0"),
        (lambda s: control.MomentumObserver([1, 2]), sd.ScrewdynError, "gain must be a finite number"),
        (
            lambda s: control.MomentumObserver()(np.nan, s, np.zeros(6)),
            sd.ScrewdynError,
            "observer was called with the",
        ),
        (
            lambda s: control.PayloadEstimator("tool0", noise=0.1)(np.nan, s, 0.0),
            sd.ScrewdynError,
            "estimator was called with the time nan",
        ),
        (lambda s: control.MomentumObserver()(0.0, s.q, s.qd), sd.ShapeError, "called with a time and a State"),
        (lambda s: control.PayloadEstimator("crate", noise=0.1)(0.0, s, np.zeros(6)), sd.UnknownNameError, "crate"),
        (lambda s: control.PayloadEstimator("tool0", noise=0.0)(0.0, s, np.zeros(6)), sd.ScrewdynError, "noise"),
        (lambda s: control.PayloadEstimator("tool0", noise=0.1, window=0), sd.ScrewdynError, "number of at least 1"),
        (lambda s: control.PayloadEstimator("tool0", noise=0.1, window=2.5), sd.ScrewdynError, "whole number"),
        (
            lambda s: control.PayloadEstimator("tool0", noise=-0.1),
            sd.ScrewdynError,
            "noise must be a finite number of at least 0",
        ),
        (lambda s: control.PayloadEstimator("tool0", noise={"elbw": 1.0})(0.0, s, 0.0), sd.UnknownNameError, "elbow"),
        (lambda s: twice(control.MomentumObserver(), s, np.full(6, np.nan)), sd.ShapeError, "must be finite"),
        (lambda s: twice(control.MomentumObserver(), s, {"elbw": 1.0}), sd.UnknownNameError, "elbow_joint"),
        (lambda s: control.PayloadEstimator("tool0", noise=0.1).inertia, sd.ScrewdynError, "no window has ended"),
    ],
)
def test_errors(what, error, match):
    with pytest.raises(error, match=match):
        what(sd.State(sd.robots.ur5()))


@pytest.mark.slow
@pytest.mark.parametrize(
    "given", [lambda tree, tau: tau[:2], lambda tree, tau: dict(zip(tree.coordinates, tau[:2], strict=False))]
)
def test_a_law_may_name_active_freedoms_only_while_a_load_hangs_on_a_hook(given):
    arm = sd.robots.two_link()
    hook = sd.revolute("y", passive=True)
    grasp = sd.Grasp(
        sd.Inertia.sphere(0.5, 0.05, (0, 0, -0.2)), to=arm.links[-1], joint=hook, name="bob", twist="at_rest", time=0.1
    )
    observer = control.MomentumObserver(200.0, threshold=0.1)

    def law(t, state):
        return given(state.tree, state.tree.gravity_vector(state.q))

    sd.simulate(arm, sd.State(arm, [0.3, 0.4]), 0.3, observer.around(law), [grasp], control_period=1e-3, step=0.02)
    np.testing.assert_allclose(observer.residual, 0, atol=2e-3)
    assert observer.alarms == ()
