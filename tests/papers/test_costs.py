"""Operations of arms with general parameters, as the formulas of Bhangale, Saha and Agrawal 2004 count them."""

import numpy as np
import pytest

import screwdyn as sd
from screwdyn.papers import selection
from screwdyn.papers.selection import Trajectory, operations, time_ratios
from screwdyn.papers.workspace import Arm


def general_arm(types):
    """An arm without zeros or equal numbers among its parameters."""
    tensor = np.array([[0.4, 0.03, -0.02], [0.03, 0.5, 0.05], [-0.02, 0.05, 0.6]])
    rows = []
    for k, type in enumerate(types):
        body = sd.Inertia(2.3 + k, com=np.array([0.1, 0.2, -0.3]) + 0.07 * k, tensor=tensor * (1.1 + k))
        constant = {"d": 0.3 + k} if type == "R" else {"theta": 0.2 + k}
        rows.append({"type": type, "a": 0.4 + 0.3 * k, "alpha": 0.5 + k, "inertia": body, **constant})
    arm = sd.KinematicTree.from_dh(rows)
    limits = {name: (0, 1) for name, type in zip(arm.positions, types, strict=True) if type == "P"}
    return Arm.of(types, arm, None, limits)


@pytest.fixture(scope="module")
def counts():
    return {types: operations(general_arm(types)) for types in ("PRR", "RRP", "RRR")}


@pytest.mark.parametrize("quantity", ["M", "C"])
def test_prismatic_first_is_cheaper_than_prismatic_last_as_in_table_v(counts, quantity):
    for what in (quantity, f"{quantity}, DeNOC"):
        first, last, none = (sum(counts[types][what].values()) for types in ("PRR", "RRP", "RRR"))
        assert first < last < none


def test_counts_of_denoc_that_the_documentation_states(counts):
    found = {types: [(c[f"{m}, DeNOC"]["mul"], c[f"{m}, DeNOC"]["add"]) for m in "MC"] for types, c in counts.items()}
    assert found["PRR"] == [(290, 225), (541, 405)] and found["RRP"] == [(319, 247), (607, 415)]


def test_turns_of_ranges():
    arm = Arm.of("arm", sd.robots.stanford(), None, {"theta1": (-np.pi, np.pi), "theta2": (0, 3), "b3": (0, 7)})
    assert arm.turning.tolist() == [True, False, False] and arm.tip == "link3"


def test_without_llvmlite_the_default_kernels_are_timed(monkeypatch):
    monkeypatch.setattr(selection, "processor", lambda: None)
    monkeypatch.setattr(sd.KinematicTree, "compile", None)
    arms = {types: general_arm(types) for types in ("RR", "RRRRRR")}
    paths = {types: Trajectory.cycloidal(arm.low, arm.high) for types, arm in arms.items()}
    ratios = time_ratios(arms, paths)
    assert ratios["RR"] == 1 and ratios["RRRRRR"] > 1
