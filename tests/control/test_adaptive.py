"""Adaptation of an unknown load: the error, bodies that exist, and what changes of the tree do to estimates."""

import numpy as np
import pytest
from loaded_arm import LOAD, reference, with_link

import screwdyn as sd
from screwdyn import control

GAINS = {"stiffness": 8.0, "damping": [60, 60, 40, 8, 8, 3.0]}


def adaptive(rate=10.0, **others):
    return control.AdaptiveControl(sd.robots.ur5(), reference, ["crate"], rate=rate, **GAINS, **others)


def follow(law, duration, noise=0.005, period=2e-3, seed=0):
    """The largest error after 2.5 s; every estimate is a body that can exist."""
    plant, arm, rng = sd.robots.ur5(), with_link(), np.random.default_rng(seed)
    plant.attach(LOAD, to="tool0", name="crate")
    q, qd, _ = reference(0.0)
    worst = 0.0
    for k in range(round(duration / period)):
        tau = law(k * period, sd.State(arm, q, qd + noise * rng.normal(size=6)))
        assert all(body.is_physical for body in law.estimates.values())
        qd = qd + period * plant.forward_dynamics(q, qd, tau)
        q = q + period * qd
        if k * period > 2.5:
            worst = max(worst, np.abs(q - reference((k + 1) * period)[0]).max())
    return worst


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.soak)])
def test_the_error_is_less_than_a_sixth_of_that_without_adaptation(seed):
    assert follow(adaptive(), 4.0, seed=seed) < follow(adaptive(0.0), 4.0, seed=seed) / 6


@pytest.mark.slow
def test_without_noise_the_weight_is_learned():
    law = adaptive()
    assert follow(law, 6.0, noise=0.0) < 0.003
    assert law.estimates["crate"].mass == pytest.approx(3.0, rel=0.05)


@pytest.mark.slow
def test_estimates_begin_with_a_grasp_and_end_with_a_release():
    arm = sd.robots.ur5()
    law = adaptive()
    q, qd, _ = reference(0.0)
    grasp = sd.Grasp(LOAD, to="tool0", name="crate", time=0.1, twist="at_rest")
    seen = []

    def torque(t, state):
        tau = law(t, state)
        seen.append((t, law.estimates))
        return tau

    release = sd.Release("crate", time=1.3)
    sd.simulate(arm, sd.State(arm, q, qd), 1.4, torque=torque, control_period=2e-3, events=[grasp, release], step=0.02)
    for t, estimates in seen:
        assert bool(estimates) == (0.1 <= t < 1.3 - 1e-12), t
    masses = [estimates["crate"].mass for t, estimates in seen if estimates]
    assert abs(masses[0] - 1.0) < 0.1 and abs(masses[-1] - 3.0) < 1.0


def test_bounds_and_rest():
    law = adaptive(mass=(0.5, 2.0))
    follow(law, 0.6)
    assert law.estimates["crate"].mass == pytest.approx(2.0)
    still = adaptive(still=1e6)
    follow(still, 0.05)
    assert still.estimates["crate"].mass == 1.0


def test_a_rate_that_is_too_high_stays_finite():
    follow(adaptive(1e6), 0.3)


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        ({"start": sd.Inertia.point(1.0, (0, 0, 0.1))}, sd.InertiaError, "body with volume"),
        ({"start": sd.Inertia.box(9.0, (1, 1, 1)), "mass": (0.0, 2.0)}, sd.InertiaError, "between 0 and 2 kg"),
        ({"start": {"box": LOAD}}, sd.UnknownNameError, "crate"),
        ({"mass": (3.0, 1.0)}, sd.ScrewdynError, "least and the largest mass"),
        ({"start": 3.0}, sd.ScrewdynError, "must be an Inertia"),
        ({"mass": 3}, sd.ScrewdynError, "least and the largest mass"),
        ({"rate": -1.0}, sd.ScrewdynError, "rate must be a finite number of at least 0"),
        ({"rate": [1, 2]}, sd.ScrewdynError, "rate must be a finite number"),
        ({"still": np.nan}, sd.ScrewdynError, "still must be a number of at least 0; got nan"),
        ({"still": -1}, sd.ScrewdynError, "still must be a number"),
    ],
)
def test_errors(given, error, match):
    with pytest.raises(error, match=match):
        adaptive(**given)


def test_a_link_that_is_misspelt():
    law, arm = control.AdaptiveControl(sd.robots.ur5(), reference, ["crat"]), sd.robots.ur5()
    law(0.0, sd.State(arm))
    arm.attach(LOAD, to="tool0", name="crate")
    with pytest.warns(sd.ScrewdynWarning, match="no link 'crat', whose inertia shall be learned, but 'crate'"):
        law(0.1, sd.State(arm))
    for links in ([], "crate", [1]):
        with pytest.raises(sd.ScrewdynError, match="links must be a sequence of one or more names"):
            control.AdaptiveControl(arm, reference, links)


def test_time_does_not_go_back():
    law, state = adaptive(), sd.State(with_link(), *reference(0.0)[:2])
    law(1.0, state)
    with pytest.raises(sd.ScrewdynError, match=r"time went back from 1 to 0.5 s"):
        law(0.5, state)
    with pytest.raises(sd.ScrewdynError, match="the law was called with the time nan"):
        law(np.nan, state)


def test_a_load_that_is_grasped_again_between_two_calls_is_learned_anew():
    arm, (q, qd, _) = sd.robots.ur5(), reference(0.0)
    law, state = adaptive(), sd.State(arm, q, qd)
    state = arm.grasp(state, LOAD, to="tool0", name="crate", twist="co_moving").state
    for k in range(50):
        law(1e-3 * k, state)
    learned = law.estimates["crate"].mass
    state = arm.grasp(state, "crate", to="wrist_3_link").state
    law(0.05, state)
    assert abs(law.estimates["crate"].mass - learned) < 0.01 < abs(learned - 1.0)
    state = arm.release(state, "crate").state
    state = arm.grasp(state, LOAD, to="tool0", name="crate", twist="co_moving").state
    law(0.05, state)
    assert law.estimates["crate"].mass == pytest.approx(1.0)


def test_a_law_with_a_memory_has_no_derivatives():
    arm, (q, qd, _) = sd.robots.ur5(), reference(0.0)
    for law, name in ((adaptive(), "AdaptiveControl"), (control.MomentumObserver().around(adaptive()), "observed")):
        with pytest.raises(sd.ScrewdynError, match=rf"torque= is a law with a memory \({name}\)"):
            sd.simulate(arm, sd.State(arm, q, qd), 0.1, law, control_period=1e-2, sensitivities=True)
