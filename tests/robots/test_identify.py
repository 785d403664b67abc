"""Identified bodies against a pendulum by hand, known loads, and the statistics of their errors."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import chi2

import screwdyn as sd
from screwdyn.robots.identification import INERTIAL, fit

G = 9.81
LOAD = sd.Inertia.box(3.0, (0.2, 0.3, 0.4), com=(0.05, 0.1, 0.2))
SIGMA = np.array([0.5, 0.4, 0.3, 0.2, 0.1, 0.1])


def motion(count=60, nv=6, seed=0):
    return np.random.default_rng(seed).uniform(-2, 2, (3, count, nv))


@pytest.fixture(scope="module")
def arm():
    """A UR5 with an unknown load; compiled once."""
    arm = sd.robots.ur5()
    arm.attach(sd.Link("load"), to="tool0")
    return arm


def torques(arm, load, *state):
    loaded = arm.copy()
    loaded.set_inertia("load", load)
    return loaded.inverse_dynamics(*state)


def pendulum(**joint):
    """A link on a horizontal axis, z, with gravity along −y."""
    tree = sd.KinematicTree(gravity=(0, -G, 0))
    tree.attach(sd.Link("bob"), to="base", joint=sd.revolute("z", name="pin", **joint), name="bob")
    return tree


def test_a_pendulum_by_hand():
    q, qd, qdd = motion(40, 1)
    rng = np.random.default_rng(1)
    tau = 0.9 * qdd + G * (1.2 * np.cos(q) - 0.4 * np.sin(q)) + 0.3 * qd + 0.2 * np.sign(qd) + 0.1
    tau = tau + rng.normal(0, 0.05, tau.shape)
    with pytest.warns(sd.ScrewdynWarning, match="do not determine m; hz; Ixx; Ixy; Ixz; Iyy; Iyz; give motions"):
        found = sd.identify(pendulum(), "bob", q, qd, qdd, tau, friction=True, noise=0.05)
    columns = np.hstack([qdd, G * np.cos(q), -G * np.sin(q), qd, np.tanh(qd / 1e-3), np.ones_like(q)])
    expected, covariance = np.linalg.lstsq(columns, tau[:, 0])[0], 0.05**2 * np.linalg.inv(columns.T @ columns)
    names = ["Izz", "hx", "hy", "pin.viscous", "pin.dry", "pin.offset"]
    assert_allclose([found[name] for name in names], expected, rtol=1e-6)
    where = [found.names.index(name) for name in names]
    assert_allclose(found.covariance[np.ix_(where, where)], covariance, rtol=1e-9, atol=1e-18)
    assert_allclose([found.standard_error(name) for name in names], np.sqrt(np.diag(covariance)), rtol=1e-9)
    assert found.friction["pin"] == (found["pin.viscous"], found["pin.dry"], found["pin.offset"])
    assert_allclose(found.residual[:, 0], tau[:, 0] - columns @ expected, atol=1e-6)
    assert found.standard_error("m") == found.standard_error("cx") == np.inf
    assert found.inertia.is_physical
    assert_allclose(found.inertia.origin_tensor[2, 2], expected[0], rtol=1e-6)
    with pytest.raises(sd.ScrewdynError, match="do not determine 'm' and 'hx'"):
        found.ellipse("m", "hx")


def test_errors_are_as_large_as_the_covariance_states(arm):
    state, rng = motion(), np.random.default_rng(2)
    exact = torques(arm, LOAD, *state)
    squares, residuals, inside, runs = [], [], 0, 60
    for _ in range(runs):
        found = sd.identify(arm, "load", *state, exact + rng.normal(0, SIGMA, exact.shape), noise=SIGMA)
        assert not found.adjusted
        error = found.parameters - LOAD.parameters
        squares.append(error @ np.linalg.solve(found.covariance, error))
        residuals.append(np.sum((found.residual / SIGMA) ** 2))
        inside += encloses(found.ellipse("m", "cx"), [LOAD.mass, LOAD.com[0]])
    # Sums of squares of normal numbers: within what they exceed or fall below once in 10⁶ cases.
    for total, freedoms in ((squares, 10 * runs), (residuals, (exact.size - 10) * runs)):
        assert chi2.ppf(1e-6, freedoms) < np.sum(total) < chi2.isf(1e-6, freedoms)
    assert 0.85 * runs < inside < runs


def encloses(border, point):
    """Whether a convex curve, counter-clockwise or not, goes around a point."""
    x, y = (border - point).T
    turns = x[:-1] * y[1:] - x[1:] * y[:-1]
    return np.all(turns > 0) or np.all(turns < 0)


def test_the_noise_of_each_joint_is_estimated(arm):
    state, rng = motion(300), np.random.default_rng(3)
    tau = torques(arm, LOAD, *state)
    tau = tau + rng.normal(0, SIGMA, tau.shape)
    found, given = sd.identify(arm, "load", *state, tau), sd.identify(arm, "load", *state, tau, noise=SIGMA)
    assert_allclose(found.noise, SIGMA, rtol=0.2)
    assert_array_equal(given.noise, SIGMA)
    assert_allclose(found.standard_errors, given.standard_errors, rtol=0.2)
    error = found.parameters - LOAD.parameters
    assert error @ np.linalg.solve(found.covariance, error) < chi2.isf(1e-6, 10)


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [np.full(6, 0.3), SIGMA, np.array([3, 1, 0.3, 0.1, 0.03, 0.01])])
def test_errors_are_as_large_as_the_covariance_states_with_the_noise_estimated(arm, sigma):
    rng, runs = np.random.default_rng(7), 150
    Y = arm.derivatives.regressor(*motion(), "load")
    squares, ratios = [], []
    for _ in range(runs):
        tau = Y @ LOAD.parameters + rng.normal(0, sigma, Y.shape[:2])
        found = fit(Y, tau, None, np.zeros(10), INERTIAL, INERTIAL, arm.coordinates)
        error = found.values - LOAD.parameters
        squares.append(error @ np.linalg.solve(found.covariance, error))
        ratios.append((found.noise / sigma) ** 2)
    assert abs(np.mean(squares) - 10) < 3 * np.std(squares) / np.sqrt(runs)
    assert_allclose(np.mean(ratios, axis=0), 1, atol=4 * np.sqrt(2 / 50 / runs))


@pytest.mark.parametrize(
    "load",
    [
        LOAD,
        sd.Inertia.point(0.3, (0.1, 0, 0.05)),
        sd.Inertia.rod(2.0, 0.4, "z", (0.1, 0.2, 0)),
        sd.Inertia.sphere(1e-3, 0.01),
    ],
)
def test_exact_torques_give_the_body_also_at_the_edge_of_possibility(arm, load):
    state = motion()
    found = sd.identify(arm, "load", *state, torques(arm, load, *state))
    assert found.inertia.is_physical
    assert_allclose(found.parameters, load.parameters, rtol=1e-7, atol=1e-8 * load.mass)


@pytest.mark.filterwarnings("ignore:the data hardly determine")
@pytest.mark.parametrize("options", [{}, {"noise": 0.1}, {"friction": True}])
def test_an_empty_hand_carries_nothing(arm, options):
    state = motion()
    found = sd.identify(arm, "load", *state, arm.inverse_dynamics(*state), **options)
    assert found.inertia.is_physical
    assert_allclose(found.parameters[:10], 0, rtol=0, atol=1e-6)


def test_a_body_that_does_not_exist_is_replaced_by_the_nearest(arm):
    state, rng = motion(20), np.random.default_rng(4)
    tau = torques(arm, LOAD, *state) + rng.normal(0, 30, (20, 6))
    with pytest.warns(sd.ScrewdynWarning, match="hardly determine .*Ixx.* of 'load'"):
        found = sd.identify(arm, "load", *state, tau, noise=30.0)
    assert found.adjusted
    assert found.inertia.is_physical
    assert "Ixx" in found.poorly_determined
    assert "no rigid body has" in repr(found)
    assert "the data hardly determine " in repr(found)
    # Least squares alone explains the torques better, but hardly.
    Y = arm.derivatives.regressor(*state, "load").reshape(-1, 10)
    rest = (tau - arm.inverse_dynamics(*state)).ravel()
    alone = np.linalg.lstsq(Y, rest)[0]
    with pytest.raises(sd.InertiaError):
        sd.Inertia.from_parameters(alone)
    excess = np.sum(found.residual**2) - np.sum((rest - Y @ alone) ** 2)
    assert 0 < excess / 30**2 < chi2.isf(1e-6, 10)


def test_friction_of_a_known_size(arm):
    state = motion()
    viscous, dry, offset = np.random.default_rng(5).uniform(0.1, 2, (3, 6))
    tau = torques(arm, LOAD, *state) + viscous * state[1] + dry * np.tanh(state[1] / 1e-3) + offset
    found = sd.identify(arm, "load", *state, tau, friction=True)
    assert_allclose(found.parameters, LOAD.parameters, atol=1e-9)
    assert_allclose(list(found.friction.values()), np.transpose([viscous, dry, offset]), rtol=1e-9)
    assert tuple(found.friction) == arm.coordinates
    assert sd.identify(arm, "load", *state, tau - viscous * state[1], noise=1.0).friction == {}


def test_friction_and_a_body_at_the_edge_of_possibility(arm):
    state, rod = motion(), sd.Inertia.rod(2.0, 0.4, "z", (0.1, 0.2, 0))
    tau = torques(arm, rod, *state) + 0.7 * state[1] + np.random.default_rng(6).normal(0, 0.01, (60, 6))
    found = sd.identify(arm, "load", *state, tau, friction=True, noise=0.01)
    assert found.adjusted
    assert_allclose(found.parameters, rod.parameters, atol=1e-2)
    assert_allclose([f.viscous for f in found.friction.values()], 0.7, atol=2e-2)
    # At the minimum, the residual is perpendicular to the columns of friction.
    assert_allclose(np.sum(found.residual, axis=0), 0, atol=1e-9)
    assert_allclose(np.sum(found.residual * state[1], axis=0), 0, atol=1e-9)


def test_known_friction_and_springs_of_the_tree_are_part_of_the_model():
    q, qd, qdd = motion(40, 1)
    tau = 0.9 * qdd + G * 1.2 * np.cos(q) + 0.3 * qd + 5.0 * (q - 0.1)
    known = pendulum(damping=0.3, stiffness=5.0, rest=0.1)
    with pytest.warns(sd.ScrewdynWarning):
        found = sd.identify(known, "bob", q, qd, qdd, tau)
    assert_allclose([found["Izz"], found["hx"], found["hy"]], [0.9, 1.2, 0], atol=1e-9)


def test_at_rest_only_mass_and_centre_are_determined(arm):
    q, _, _ = motion()
    state = (q, 0 * q, 0 * q)
    tau = torques(arm, LOAD, *state)
    with pytest.warns(sd.ScrewdynWarning, match="do not determine Ixx; Ixy; Ixz; Iyy; Iyz; Izz; give motions"):
        found = sd.identify(arm, "load", *state, tau)
    assert found.undetermined == INERTIAL[4:]
    assert found.poorly_determined == INERTIAL[4:]
    assert_array_equal(np.isinf(found.standard_errors), [False] * 4 + [True] * 6)
    assert_allclose(found.inertia.com, LOAD.com, rtol=1e-9)
    assert found.inertia.is_physical
    assert "undetermined" in repr(found)
    # What the tree has for the link remains where the data say nothing.
    guess = sd.Inertia.box(2.9, (0.2, 0.3, 0.4), com=(0.06, 0.1, 0.2))
    nominal = arm.copy()
    nominal.set_inertia("load", guess)
    with pytest.warns(sd.ScrewdynWarning):
        found = sd.identify(nominal, "load", *state, tau)
    assert not found.adjusted
    assert_allclose(found.parameters, [*LOAD.parameters[:4], *guess.parameters[4:]], rtol=1e-9, atol=1e-12)


def test_a_load_on_a_passive_hook_from_the_torques_of_the_motors():
    tree = sd.robots.pelican()
    tree.attach(sd.Link("hook"), to="link2", joint=sd.revolute("z", passive=True, damping=0.1), name="hook")
    state, load = motion(50, 3), sd.Inertia.box(1.5, (0.1, 0.2, 0.1), (0.05, -0.3, 0))
    loaded = tree.copy()
    loaded.set_inertia("hook", load)
    q, qd, tau = *state[:2], state[2][:, :2]
    full = np.column_stack([tau, np.zeros(50)])
    qdd = loaded.forward_dynamics(q, qd, full + loaded.joint_force(q, qd))
    with pytest.warns(sd.ScrewdynWarning, match="m \\+|m -|hz; "):
        found = sd.identify(tree, "hook", q, qd, qdd, tau)
    assert_allclose([found["Izz"], found["hx"], found["hy"]], load.parameters[[9, 1, 2]], rtol=1e-9)


def test_a_load_from_the_samples_of_a_simulation():
    arm = pendulum(damping=0.3)
    arm.set_inertia("bob", sd.Inertia.box(0.7, (0.1, 0.1, 0.2), com=(0.5, -0.1, 0)))
    run = sd.simulate(arm, sd.State(arm, [0.4]), 2.0, torque=lambda t, state: [3 * np.sin(5 * t)], step=0.02)
    with pytest.warns(sd.ScrewdynWarning, match="do not determine m; hz; "):
        found = sd.identify(arm, "bob", run.q, run.qd, run.qdd, run.tau, noise=0.01)
    assert_allclose(found["Izz"], arm.link("bob").inertia.parameters[9], rtol=1e-9)
    assert_allclose(run.tau - found.residual, run.tau, atol=1e-9)


def test_the_tree_is_not_changed_and_samples_may_have_any_leading_axes(arm):
    before, state = arm.revision, motion()
    tau = torques(arm, LOAD, *state)
    found = sd.identify(arm, "load", *state, tau)
    folded = sd.identify(arm, "load", *(x.reshape(4, 15, 6) for x in (*state, tau)))
    assert_array_equal(found.values, folded.values)
    assert arm.revision == before
    assert found.link == "load"
    table = repr(found)
    assert table.startswith("inertial parameters of 'load': 60 samples, condition number ")
    assert [line.split()[0] for line in table.splitlines()[2:]] == [*INERTIAL, "cx", "cy", "cz"]


def test_wrong_arguments_are_named(arm):
    state = motion()
    tau = torques(arm, LOAD, *state)
    for arguments, options, message in [
        (("lod", *state, tau), {}, "'load'"),
        (("load", *state, tau[:7]), {}, "tau has 7 samples, but the motion has 60"),
        (("load", *state, tau[:, :3]), {}, "tau has shape"),
        (("load", *state, tau), {"noise": 0.0}, "standard deviation of the torques"),
        (("load", *state, tau), {"noise": [1.0, 2.0]}, "standard deviation of the torques"),
        (("load", *(x[:1] for x in (*state, tau))), {}, "6 measured torques cannot determine 6 unknowns and the noise"),
        (("base_link", *state, tau), {}, "do not depend on 'base_link'"),
        ((None, *state, tau), {}, "there is no link None"),
    ]:
        with pytest.raises(sd.ScrewdynError, match=message):
            sd.identify(arm, *arguments, **options)
    found = sd.identify(arm, "load", *state, tau)
    with pytest.raises(sd.UnknownNameError, match="'Ixx'"):
        found["Ixxx"]
    with pytest.raises(sd.ScrewdynError, match="level must be between"):
        found.ellipse("m", "cx", 95)


def test_warnings_point_to_the_call():
    q, qd, qdd = motion(10, 1)
    tau = 0.9 * qdd + G * np.cos(q)
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        sd.identify(pendulum(), "bob", q, qd, qdd, tau, noise=30.0)
        sd.identification.base_parameters(pendulum()).estimate(q, 0 * q, 0 * q, tau)
    assert [str(x.message).split()[2] for x in issued] == ["do", "hardly", "do"]
    assert {x.filename for x in issued} == {__file__}
