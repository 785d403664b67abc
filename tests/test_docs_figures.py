"""Figures of the documentation that do not depend on the machine are those of this version.

Times are measured: `benchmarks/README.md` has the script of each, the date and the machine.
"""

import re
import runpy
from pathlib import Path

import numpy as np
import pytest
import sympy

import screwdyn as sd
from screwdyn import formulations
from screwdyn.forms.requests import operations_of
from screwdyn.testing import random_inertia

ROOT = Path(__file__).parents[1]
MODEL = ("mass_matrix", "coriolis_matrix", "gravity_vector")


def text_of(page):
    return (ROOT / page).read_text(encoding="utf-8")


def table(page, after):
    """The first table after a line that begins so: cells without bold, by row and column."""
    below = text_of(page).split(f"\n{after}", 1)[1]
    lines = re.search(r"(?:^\|.*\n)+", below, re.MULTILINE)[0].replace("**", "").splitlines()
    head, _, *rows = ([cell.strip() for cell in line.split("|")[1:-1]] for line in lines)
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}


def operations(count):
    """Multiplications/additions."""
    return f"{count['mul']}/{count['add']}"


def spaced(count):
    return operations(count).replace("/", " / ")


def by_denoc(arm):
    """Operations of M and C by DeNOC."""
    witness, n = formulations.denoc(arm), arm.nv
    return operations_of(witness.mass_matrix, q=n), operations_of(witness.coriolis_matrix, q=n, qd=n)


@pytest.fixture(scope="module")
def benchmark():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        yield runpy.run_path(str(ROOT / "benchmarks/operations.py"))


def test_operations_of_the_puma_560(benchmark):
    formulas = table("docs/mathematics.md", "The table counts multiplications / additions")
    measured = table("benchmarks/README.md", "## Operations")
    labels = {"numeric": "its numbers", "symbolic": "ten symbolic inertial parameters per link"}
    for column, tree in {"numeric": sd.robots.puma560(), "symbolic": benchmark["open_puma"]()}.items():
        row = formulas[f"PUMA 560, {labels[column]}"]
        together, inverse = tree.operation_count(*MODEL), tree.operation_count("inverse_dynamics")
        forward = tree.operation_count("forward_dynamics")
        assert row["$M$, $C$ and $g$"] == measured["M, C and g"][column] == spaced(together)
        assert row["inverse dynamics"] == measured["inverse dynamics"][column] == spaced(inverse)
        assert row["forward dynamics"] == f"{spaced(forward)}, {forward['div']} divisions"


def test_operations_of_a_planar_arm(benchmark):
    row = table("docs/mathematics.md", "The table counts multiplications / additions")["planar arm of three links"]
    arm = benchmark["planar_arm"]()
    assert row["$M$, $C$ and $g$"] == spaced(arm.operation_count(*MODEL))
    assert row["inverse dynamics"] == spaced(arm.operation_count("inverse_dynamics"))


def test_operations_of_the_ur5():
    arm = sd.robots.ur5()
    for label, row in table("benchmarks/README.md", "function of a planar arm, the PUMA 560").items():
        count = arm.operation_count(*(MODEL if label.startswith("dynamics ") else [label]))
        assert {kind: row[kind] for kind in count} == {kind: str(number) for kind, number in count.items()}, label


def test_operations_of_the_closed_form_of_the_puma_560():
    shared, matrices = sd.robots.puma560().symbolic().shared(*MODEL)
    total = sum(sympy.count_ops(x) for x in [*(x for _, x in shared), *(x for matrix in matrices for x in matrix)])
    printed = f"over {len(shared)} shared intermediates take {total} operations"
    assert printed in " ".join(text_of("benchmarks/README.md").split())


@pytest.mark.parametrize(
    ("after", "arms"),
    [
        ("## Table III", {"RP": sd.robots.planar_rp(0.8584), "PR": sd.robots.planar_pr(0.8584)}),
        ("## Table V", {"RTX": sd.robots.rtx(), "Stanford": sd.robots.stanford()}),
    ],
)
def test_operations_of_the_arms_of_a_paper(after, arms):
    page = table("docs/arm_selection.md", after)
    for name, arm in arms.items():
        printed = {label: row[f"{name}, here"] for label, row in page.items()}
        assert (printed["M, DeNOC"], printed["C, DeNOC"]) == tuple(map(operations, by_denoc(arm)))
        ours = [operations(arm.operation_count(quantity)) for quantity in MODEL[:2]]
        assert printed["M, C of the library"] == ", ".join(ours)
        if "inverse dynamics" in printed:
            assert printed["inverse dynamics"].startswith(operations(arm.operation_count("inverse_dynamics")))


def test_operations_of_general_arms_by_the_formulation_of_a_paper():
    """The sentence of docs/arm_selection.md on arms with the sequences of joints of RTX and Stanford."""
    rng, keys, counts = np.random.default_rng(0), ("d", "a", "alpha", "theta"), []
    for kinds in ("PRR", "RRP"):
        lengths = rng.uniform(0.2, 1.2, (3, 4))
        rows = [
            dict(zip(keys, row, strict=True)) | {"type": kind, "inertia": random_inertia(rng)}
            for kind, row in zip(kinds, lengths, strict=True)
        ]
        counts.append(by_denoc(sd.KinematicTree.from_dh(rows)))
    (prr_M, prr_C), (rrp_M, rrp_C) = counts
    M, C = (sum(map(b.get, ("mul", "add"))) / sum(map(a.get, ("mul", "add"))) for a, b in zip(*counts, strict=True))
    words = " ".join(text_of("docs/arm_selection.md").split())
    assert f"M by DeNOC in {operations(prr_M)} (PRR) and {operations(rrp_M)} (RRP)" in words
    assert f"C in {operations(prr_C)} and {operations(rrp_C)}" in words
    assert f"RRP takes {M:.2f} (M) and {C:.2f} (C) times the operations of PRR" in words


def test_the_counts_for_six_joints_are_a_row_of_the_counts_for_all():
    """docs/papers/counts.md prints them twice; its own test computes rows of the long tables."""
    page = "docs/papers/counts.md"
    folded, written = (table(page, f"**Inverse dynamics, {kind}**")["6"] for kind in ("folded", "written"))
    matrices = table(page, "**M and C, folded")["6"]
    short = {label.replace("`", ""): row for label, row in table(page, "## Six joints").items()}
    assert short.pop("denoc: M only")["folded"] == matrices["`denoc M`"]
    assert short.pop("denoc: C only")["folded"] == matrices["`denoc C`"]
    assert short.pop("tree.inverse_dynamics")["folded"] == folded["`tree`"]
    assert short.pop("tree.mass_matrix")["folded"] == matrices["`tree M`"]
    assert short.pop("tree.coriolis_matrix")["folded"] == matrices["`tree C`"]
    for name, row in short.items():
        assert (row["folded"], row["written"]) == (folded[f"`{name}`"], written[f"`{name}`"]), name


def test_the_readme_has_the_figures_of_the_benchmarks():
    numbers = table("README.md", "## In numbers")
    calls = table("benchmarks/README.md", "## Single calls from Python")
    attaching = table("benchmarks/README.md", "## Attaching")
    names = "inverse dynamics", "M", "C", "forward dynamics"
    row = "a call from Python, UR5: inverse dynamics, M, C, forward dynamics"
    for column, label in {"UR5 (6)": row, "Talos, fixed base (32)": "the same for Talos, 32 joints"}.items():
        ratios = [float(calls[name][column]) for name in names]
        assert numbers[label]["beside"].startswith(f"{min(ratios):.2f} to {max(ratios):.2f} of ")
    for number in numbers[row]["screwdyn"].removesuffix(" µs").split(", "):
        assert re.search(rf"Default calls on the UR5 take [^:]*\b{number}\b", text_of("benchmarks/README.md"))
    payload = numbers["to attach a payload and compute M, C and g: UR5, Talos"]
    times, ratios = ([attaching[line][robot] for robot in ("UR5", "Talos")] for line in ("screwdyn", "ratio"))
    assert payload["screwdyn"] == f"{float(times[0].removesuffix(' µs')):.0f}, {times[1]} µs"
    assert payload["beside"].startswith(f"{float(ratios[0]):.1f}, {ratios[1]} of ")
    assert numbers["ten seconds of a UR5 with a controller at 1 kHz"]["beside"].startswith(
        f"{float(table('benchmarks/README.md', '## Simulations')['controller at 1 kHz']['UR5 (6)']):.1f} of "
    )
    imported = table("benchmarks/README.md", "## Start-up")["`import screwdyn`, which loads the kernels"]
    assert numbers["`import screwdyn`; a process from its start to its first M"]["screwdyn"].startswith(
        imported["measured"]
    )


def test_the_paper_has_the_figures_of_the_benchmarks():
    paper = " ".join(text_of("docs/paper.md").split())
    rows = table("docs/paper.md", "<!-- benchmarks/peers.py -->").values()
    measured = table("benchmarks/README.md", "## A grasp in six libraries").values()
    for printed, row in zip(rows, measured, strict=True):
        found = [row[column].split(",")[0] for column in ("momentum gained or lost", "error of M'", "ms")]
        assert [*printed.values()] == found
    attaching = table("benchmarks/README.md", "## Attaching")["ratio"]
    assert f"{float(attaching['UR5']):.1f} of Pinocchio's time on a UR5 and {attaching['Talos']} on" in paper
    calls = table("benchmarks/README.md", "## Single calls from Python").values()
    robots = "UR5 (6)", "Panda (9)", "Talos, fixed base (32)", "Talos, free base (38)"
    ratios = [float(x) for row in calls for robot in robots for x in row[robot].split(", ")]
    assert f"take {min(ratios)} to {max(ratios)} of the time of Pinocchio's calls" in paper
    loops = re.search(r"\(ratio ([\d.]+)\) and [\d.]+ µs \(([\d.]+)\)", text_of("benchmarks/README.md"))
    assert f"takes {loops[1]} of the time of Pinocchio's proximal solver and {loops[2]} of" in paper
    million = re.search(r"(\d+ to \d+ million) inverse dynamics", text_of("README.md"))[1]
    assert million in paper
    rollouts = re.search(r"(\d+ to \d+) times as many steps as MuJoCo", text_of("README.md"))[1]
    assert f"{rollouts} times as many steps per second as MuJoCo" in paper
