"""Every example runs in a temporary folder without a warning."""

import itertools
import re
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import sympy as sp
from numpy.testing import assert_allclose

import screwdyn as sd

EXAMPLES = sorted(Path(__file__).parents[1].glob("examples/*.py"))
# Examples that other tests run and check.
ELSEWHERE = {
    "export_controller": "forms/test_c_source.py",
    "dask_study": "cluster/test_dask.py",
    "hook_in_c": "forms/test_c_table.py",
}
# Examples with a test of their own below, which runs them too.
BELOW = {"lightest_arm", "pelican_crucible"}
# Figures that examples draw, besides those that tests below name.
FIGURES = {
    "arm_selection": ["arm_selection_planar.png", "arm_selection_spatial.png"],
    "dominance_puma": ["dominance_puma.png"],
    "mpc_in_c": ["mpc_in_c.png"],
    "truc_feedforward": ["truc_feedforward.png"],
    "well_conditioned_arm": ["well_conditioned_arm.png"],
}


def below(bound, pattern):
    """Whether the numbers that an example prints at a place are small."""

    def check(found, out):
        numbers = [float(number) for number in re.findall(pattern, out)]
        assert numbers
        assert max(numbers) < bound

    return check


def selected(found, out):
    numbers = np.array(re.findall(r"closed form (\S+), by sampling (\S+) ± (\S+)", out), dtype=float)
    assert len(numbers) == 4
    assert (np.abs(numbers[:, 0] - numbers[:, 1]) < 6 * numbers[:, 2]).all()


def derived(found, out):
    for name, total in found.totals.items():
        assert sp.simplify(found.sums[name].matrix(found.forms.coordinates) - total).is_zero_matrix


def skew(found, out):
    rows = np.array([row.split()[-3:] for row in out.splitlines()[1:]], dtype=float)
    assert (rows[:, :2] < 1e-12).all()
    assert [*(rows[:, 2] < 1e-12)] == [True, True, False, False]


def closed(found, out):
    """By what an example compares with the closed forms of its paper."""
    assert len(found.compared) > 20
    for value, closed_form in found.compared:
        assert_allclose(value, closed_form, rtol=1e-12, atol=1e-14)


def feedforward(found, out):
    closed(found, out)
    assert np.abs(found.errors).max() < 1e-9
    exact = found.arm.inverse_dynamics(*np.moveaxis(found.references, -1, 1)).T
    assert_allclose(found.torques, exact, rtol=1e-9, atol=1e-9)


def conditioned(found, out):
    assert found.found.success, found.found.message
    assert_allclose(found.best, found.by_hand, rtol=1e-4)


def steered(found, out):
    assert found.late[True] < 0.2 * found.late[False]


# What examples claim, from the names that they have at their end and what they print.
CLAIMS = {
    "arm_selection": selected,
    "derive_a_paper": derived,
    "fu_two_link": closed,
    "mass_matrix_by_definition": below(1e-12, r"library's by (\S+) kg"),
    "mpc_in_c": steered,
    "payload_monte_carlo": below(1e-11, r"attached: (\S+) N m"),
    "payload_rollouts": below(1e-7, r"one run: (\S+) rad"),
    "skew_symmetry": skew,
    "truc_feedforward": feedforward,
    "well_conditioned_arm": conditioned,
}
# Arguments that shorten an example.
ARGUMENTS = {"arm_selection": ["--samples", "256"]}


def follow(path, monkeypatch, folder, *arguments):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", [str(path), *arguments])
    return runpy.run_path(str(path), run_name="__main__")


def test_there_are_examples():
    assert {path.stem for path in EXAMPLES} > BELOW
    for name, module in ELSEWHERE.items():
        assert f"{name}.py" in Path(__file__).parent.joinpath(module).read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", [p for p in EXAMPLES if p.stem not in {*ELSEWHERE, *BELOW}], ids=lambda path: path.stem
)
def test_an_example_runs_and_says_something(path, tmp_path, monkeypatch, capsys):
    found = follow(path, monkeypatch, tmp_path, *ARGUMENTS.get(path.stem, []))
    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) > 3
    assert not re.search(r"\bassert", path.read_text(encoding="utf-8"))  # what is checked lives here
    assert "nan" not in shown.out
    if path.stem in CLAIMS:
        CLAIMS[path.stem](SimpleNamespace(**found), shown.out)
    drawn = sorted(tmp_path.glob("*.png"))
    assert [made.name for made in drawn] == FIGURES.get(path.stem, [])
    assert all(made.read_bytes().startswith(b"\x89PNG") and made.stat().st_size > 20_000 for made in drawn)


@pytest.mark.slow
def test_the_paper_in_its_own_order(tmp_path, monkeypatch, capsys):
    found = follow(
        EXAMPLES[[p.stem for p in EXAMPLES].index("pelican_crucible")], monkeypatch, tmp_path, "--output", "made.png"
    )
    closed(SimpleNamespace(**found), "")
    out = capsys.readouterr().out
    # The order of the paper, in which the totals M, C and g follow the contributions of the arm.
    numbered = [int(word[:2]) for word in out.split("Eq. ")[1:]]
    assert numbered == sorted(numbered, key=lambda n: 52.5 if n == 32 else n)
    assert {37, 38, 39, 40, 41, 42, 45, 46, 47, 48, 49, 50, 51, 52, 32, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64} == {
        *numbered
    }
    assert "unchanged to the last bit: True" in out
    # Two decimal places of M_3's first row, from Eq. 58 by hand.
    u = 0.26 * np.sin(-0.5) + 0.26 * np.sin(0.4)
    v = 0.08 + 0.26 * np.cos(-0.5) + 0.26 * np.cos(0.4)
    assert f"M_3 = [[{1.5 * (u**2 + v**2) + 0.006:.4f}" in out
    made = tmp_path / "made.png"
    assert made.read_bytes().startswith(b"\x89PNG") and made.stat().st_size > 50_000
    assert not (tmp_path / "pelican_crucible.png").exists()


@pytest.mark.slow
def test_the_lightest_arm_is_that_of_trees_built_one_by_one(tmp_path, monkeypatch, capsys):
    example = follow(
        EXAMPLES[[p.stem for p in EXAMPLES].index("lightest_arm")], monkeypatch, tmp_path, "--lengths", "0.4"
    )
    out = capsys.readouterr().out
    choice = [example["Module"](*parts) for parts in itertools.product(example["MOTORS"], "yz", [0.4])]
    best, count, reaching, fitting = example["search"](choice)
    assert f"{count} arms of 3" in out and "lightest: 3.14 kg" in out
    assert count == 8**3 > reaching > fitting > 0
    motions, suitable = {}, []
    for modules in itertools.product(choice, repeat=3):
        arm, to, at = sd.KinematicTree(), "base", None
        for k, (motor, axis, length) in enumerate(modules):
            joint = sd.revolute(axis, name=f"q{k}")
            stem = sd.KinematicTree(sd.Link(f"stem{k}", sd.Inertia.cylinder(motor.mass, 0.04, 0.08, axis=axis)))
            stem.attach(sd.Inertia.rod(1.2 * length, length, "z", (0, 0, length / 2)), to=f"stem{k}", name=f"tube{k}")
            arm.attach(stem, to=to, joint=joint, at=at)
            to, at = f"stem{k}", (0, 0, length)
        arm.attach(example["PAYLOAD"], to=to, at=at, name="payload")
        axes = tuple(module.axis for module in modules)
        if axes not in motions:
            motions[axes] = example["motion"](arm)
        way = motions[axes]
        if way is None:
            continue
        poses = arm.forward_kinematics("payload", way.q)
        assert_allclose(poses[..., :3, 3], np.broadcast_to(example["path"]()[0], way.q.shape), atol=1e-6)
        accelerations = arm.link_acceleration("payload", way.q, way.qd, way.qdd, "mixed")[..., 3:]
        assert_allclose(accelerations, np.broadcast_to(example["path"]()[2], way.q.shape), atol=1e-10)
        tau = arm.mass_matrix(way.q) @ way.qdd[..., None] + arm.bias_force(way.q, way.qd)[..., None]
        most = np.abs(tau[..., 0]).max(axis=1), np.abs(way.qd).max(axis=1)
        limits = [[getattr(module.motor, what) for module in modules] for what in ("torque", "rate")]
        if ((most[0] <= limits[0]) & (most[1] <= limits[1])).all(axis=1).any():
            suitable.append((arm.mass, modules))
    assert len(suitable) == fitting
    assert min(suitable, key=lambda one: one[0])[1] == best
