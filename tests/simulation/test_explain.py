"""The ledger in sentences, against the ledger."""

import re
from dataclasses import replace

import numpy as np
import pytest

import screwdyn as sd

CRATE = sd.Inertia.box(1.0, (0.1, 0.1, 0.1), com=(0, 0, -0.2))


def numbers(text: str) -> list[float]:
    """The energies in a text, J."""
    return [float(x) for x in re.findall(r"(\d\S*) J", text)]


def only(text: str, what: str) -> str:
    (line,) = (line for line in text.splitlines() if what in line)
    return line


@pytest.fixture(scope="module")
def run() -> sd.Run:
    tree = sd.robots.pelican()
    hook = sd.revolute("z", passive=True, damping=0.05)
    events = [
        sd.Grasp(CRATE, to="link2", joint=hook, twist="at_rest", name="crate", time=0.1),
        sd.Lock(tree.coordinates[1], time=0.2),
        sd.Release("crate", time=0.3),
    ]
    return sd.simulate(tree, sd.State(tree, [0.3, 0.2], [2, 1]), 0.4, lambda t, s: {tree.coordinates[0]: 2.0}, events)


@pytest.mark.slow
def test_the_numbers_are_those_of_the_ledger(run):
    text, E = run.explain(), run.energy
    for what, k in (("at the start", 0), ("at the end", -1)):
        found = numbers(only(text, what))
        assert found == pytest.approx([E.kinetic[k], abs(E.potential[k]), E.total[k]], rel=1e-3)
        assert ("kinetic − " in only(text, what)) == (E.potential[k] < 0)
    change = E.total[-1] - E.total[0]
    assert only(text, "The robot").startswith("The robot gains" if change > 0 else "The robot loses")
    assert numbers(only(text, "The robot")) == pytest.approx([abs(change)], rel=1e-3)
    signed = {
        what: (-1 if "−" in line else 1) * numbers(line)[0]
        for what in ("work of the motors", "bodies that come or go", "damping and friction", "heat of impacts")
        for line in [only(text, what)]
    }
    expected = [E.work[-1], E.exchanged[-1], -E.dissipated[-1], -E.impact_loss[-1]]
    assert [*signed.values()] == pytest.approx(expected, rel=1e-3)
    assert sum(signed.values()) == pytest.approx(change, rel=1e-2)
    assert numbers(only(text, "Unaccounted")) == pytest.approx([np.abs(E.residual).max()], rel=0.1)
    assert "rounding" in only(text, "Unaccounted")


@pytest.mark.slow
def test_every_event_states_what_it_cost(run):
    text = run.explain()
    grasp, lock, release = (only(text, f"{happened.verb} {happened.subject};") for happened in run.events)
    lost = [happened.event.energy_lost for happened in run.events]
    assert min(lost[:2]) > 0
    assert "the robot gains" in grasp and numbers(grasp)[-1] == pytest.approx(lost[0], rel=1e-3)
    assert lock.startswith("  t = 0.2 s: lock ") and numbers(lock) == pytest.approx(lost[1:2], rel=1e-3)
    assert "the robot loses" in release and "lost" not in release


def test_a_body_below_the_base_is_told_by_what_the_robot_gains():
    """Without a body of negative potential energy, the robot has more energy."""
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.point(1.0), to="base", at=(0, 0, -2), joint=sd.prismatic("x"), name="slide")
    tree.attach(sd.Inertia.point(0.5), to="slide", name="load")
    run = sd.simulate(tree, sd.State(tree, [0.0]), 0.2, events=[sd.Release("load", time=0.1)])
    assert "t = 0.1 s: release load; the robot gains 9.81 J by it" in run.explain()


def test_a_file_of_a_run_is_explained_alike(run, tmp_path):
    run.to_npz(tmp_path / "run.npz")
    assert sd.Run.from_npz(tmp_path / "run.npz").explain() == run.explain()


def test_what_happens_often_is_told_once():
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.point(1.0), to="base", joint=sd.prismatic("z", limits=(0, 9)), name="ball")
    run = sd.simulate(tree, sd.State(tree, [0.001]), 0.3, stops=sd.SpringStop(1e5), step=0.01)
    happened = only(run.explain(), "reach limit of ball")
    assert len(run.events) > 5
    assert happened.startswith(f"  {len(run.events)} times, t = {run.events[0].t:.6g} s to {run.events[-1].t:.6g} s")
    assert happened.endswith("no energy is lost.")


def test_a_run_at_rest_has_no_noise():
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    tree.attach(CRATE, to="base", joint=sd.revolute("z"), name="mast")
    text = sd.simulate(tree, sd.State(tree), 0.1, step=0.05).explain()
    assert "The robot keeps its energy" in text and "Unaccounted for: 0 J." in text
    assert "Nothing is attached" in text


def test_what_is_unaccounted_for_is_judged(run):
    for error, meaning in ((1e-8, "smaller rtol= and atol="), (1e-3, "not a function of time and state")):
        work = run.energy.work + error * np.abs(run.energy.total).max()
        wrong = replace(run, energy=replace(run.energy, work=work)).explain()
        assert meaning in only(wrong, "Unaccounted") and meaning not in run.explain()


@pytest.mark.slow
def test_a_torque_without_a_period_is_what_costs_time(tmp_path):
    arm, asked = sd.robots.pelican(), []

    def torque(t, state):
        asked.append(t)
        return -state.qd

    def length(**how):
        asked.clear()
        return sd.simulate(arm, sd.State(arm), 0.2, torque, step=0.01, **how)

    run = length()
    words = f"computed {len(asked)} times, {len(asked) / 21:.0f} times a sample"
    assert run.trial_calls == len(asked) > 200 and words in only(run.explain(), "control_period=")
    run.to_npz(tmp_path / "run.npz")
    assert words in sd.Run.from_npz(tmp_path / "run.npz").explain()
    assert (run + sd.simulate(arm, run.states[-1], 0.1, torque, t0=0.2, step=0.01)).trial_calls == len(asked)
    assert "control_period" not in length(control_period=1e-3).explain() and len(asked) == 200


def test_an_event_of_a_run_is_one_line():
    arm = sd.robots.pelican()
    grasp = sd.Grasp(sd.Inertia.point(1), to="link2", twist="at_rest", name="crate", time=0.01)
    run = sd.simulate(arm, sd.State(arm), 0.02, events=[grasp])
    assert repr(run.events) == "(<grasp crate at 0.01 s>,)"


def test_notebooks_show_tables(run):
    tree = run.tree
    shown = {x: x._repr_html_() for x in (tree, run.states[-1], run)}
    assert all(x.startswith("<table><caption>") and x.count("<tr>") == x.count("</tr>") for x in shown.values())
    assert shown[tree].count("<tr>") == 1 + len(tree.links) and "<td>locked revolute elbow</td>" in shown[tree]
    assert "<td>0.2</td><td>lock elbow</td>" in shown[run]
    state = sd.State(sd.testing.random_tree(np.random.default_rng(0), 20, joints=["free"]))
    assert "<td>joint1[w]</td><td>1</td><td></td>" in state._repr_html_()
    assert "; 220 rows are not shown" in state._repr_html_()
    loose = sd.KinematicTree("<b>")
    assert "&lt;b&gt;" in loose._repr_html_() and "<b>" not in loose._repr_html_()


def test_it_shows_itself_as_it_is_printed(run):
    text = run.explain()
    assert repr(text) == str(text) and text._repr_html_().startswith("<pre>The run lasts 0.4 s")
