"""Comparisons: the tables of Bhangale, Saha and Agrawal 2004, and closed forms."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import screwdyn as sd
from screwdyn.papers.selection import Trajectory, compare

SPATIAL = {"RTX": {"b1": (0.0, 1.0)}, "Stanford": {"b3": (0.0, 1.0)}}


@pytest.fixture(scope="module")
def spatial():
    arms = {"RTX": sd.robots.rtx(), "Stanford": sd.robots.stanford()}
    return compare(
        arms, {name: Trajectory.cycloidal(np.zeros(3), np.full(3, np.pi)) for name in arms}, limits=SPATIAL, samples=512
    )


@pytest.fixture(scope="module")
def planar():
    arms = {"RP": sd.robots.planar_rp(a1=0.6), "PR": sd.robots.planar_pr(a2=0.6)}
    return compare(arms, limits={"RP": {"b2": (0, 0.6)}, "PR": {"b1": (0, 0.6)}}, samples=512)


def total(criteria, what):
    return sum(criteria.operations[what].values())


@pytest.mark.slow
def test_rtx_needs_fewer_operations_than_stanford_as_in_table_v(spatial):
    rtx, stanford = spatial["RTX"], spatial["Stanford"]
    assert all(total(rtx, what) < total(stanford, what) for what in rtx.operations)
    assert rtx.operations["M"] == sd.robots.rtx().operation_count("mass_matrix")
    # Zeros of the tables of Denavit and Hartenberg are left out: far below 142M 138A and 170M 154A of the paper.
    assert rtx.operations["M, DeNOC"] == {"mul": 21, "add": 16, "div": 0, "sincos": 4}
    assert stanford.operations["M, DeNOC"] == {"mul": 115, "add": 82, "div": 0, "sincos": 4}


@pytest.mark.slow
def test_pr_needs_fewer_operations_than_rp_unlike_in_table_iii(planar):
    rp, pr = planar["RP"], planar["PR"]
    assert all(total(pr, what) < total(rp, what) for what in pr.operations)


def test_only_rp_has_a_diagonal_mass_matrix(planar):
    assert_allclose(planar["RP"].coupling, 1)
    # M = [[m1 + m2, −½ m2 a s], [·, ⅓ m2 a²]]: coupling (1 + c)/(1 − c) with c² = (½ m2 s)² / ((m1 + m2) ⅓ m2)
    c = 0.5 * 2.45 / np.sqrt(14.7 * 2.45 / 3)
    largest = (1 + c) / (1 - c)
    assert planar["PR"].coupling.median < planar["PR"].coupling.largest <= largest
    assert planar["PR"].coupling.largest > 0.95 * largest


def test_condition_numbers_of_a_diagonal_matrix_are_ratios(planar):
    rod = 12.25 * 0.01 / 2 + 2.45 * 0.8584**2 / 12
    M11 = rod + 2.45 * (np.linspace(0.6, 1.2, 1000) - 0.4292) ** 2
    ratio = np.maximum(M11 / 2.45, 2.45 / M11)
    assert_allclose(planar["RP"].condition.largest, ratio.max(), rtol=0.05)
    assert planar["RP"].condition.largest <= ratio.max()


def test_forces_of_figure_6(spatial):
    rtx = spatial["RTX"]
    t = rtx.trajectory.t
    acceleration = np.pi * 2 * np.pi / 100 * np.sin(2 * np.pi * t / 10)
    assert rtx.coordinates[0] == "b1" and rtx.units == ("N", "N m", "N m")
    assert_allclose(rtx.torque[:, 0], 19 * (9.81 + acceleration), rtol=1e-12)
    # At rest at both ends, where link 3 of the Stanford arm hangs, and then stands upright.
    assert_allclose(spatial["Stanford"].torque[[0, -1], 2], [-4 * 9.81, 4 * 9.81], rtol=1e-12)


def test_sections_show_manipulability(spatial, planar):
    section = spatial["RTX"].section
    assert section.labels == ("x", "z")
    x, z = section.axes
    r, w = np.meshgrid(np.abs(x), z, indexing="ij")[0], section.w
    inside = (r > 0.24) & (r < 0.625) & (z > 0.02) & (z < 0.98)
    cosine = (r[inside] ** 2 - 0.432**2 - 0.2**2) / (2 * 0.0864)
    assert_allclose(w[inside], 0.0864 * np.sqrt(1 - cosine**2), atol=1e-5)
    assert np.isnan(w[(r < 0.225) | (r > 0.64)]).all() and inside.sum() > 100
    assert planar["PR"].section.labels == ("x", "y")


def test_the_table_marks_the_better_values(spatial):
    lines = {line.split("  ")[0]: line for line in repr(spatial).splitlines()}
    assert lines["workspace"].endswith("m³ *") and "0.0864  " in lines["manipulability, largest"]
    assert "21 mul, 16 add, 4 sin/cos *" in lines["M, DeNOC: operations"]
    assert "time of inverse dynamics / RTX" in lines
    assert spatial["RTX"].time == 1 and 0 < spatial["Stanford"].time < np.inf


def test_workspaces_of_different_dimensions_are_not_ranked():
    slider = sd.KinematicTree()
    slider.attach(sd.Inertia.point(2.0), to="base", joint=sd.prismatic("x", limits=(0, 2)), name="slide")
    found = compare({"RP": sd.robots.planar_rp(a1=0.6), "P": slider}, limits={"RP": {"b2": (0, 0.6)}}, samples=64)
    lines = {line.split("  ")[0]: line for line in repr(found).splitlines()}
    assert "m²  " in lines["workspace"] and "*" not in lines["workspace"]
    assert_allclose(found["P"].workspace.value, 2)
    assert lines["M: operations"].endswith("none *")
    assert found["P"].dimension == 1 and found["P"].section.w.ndim == 1
    assert len(found.plot().axes) > 5


def test_the_figure_has_all_arms(spatial):
    titles = [ax.get_title(loc="left") for ax in spatial.plot().axes]
    for name in ("RTX", "Stanford"):
        assert f"{name}: section of the workspace" in titles
        assert f"{name}: torques and forces along the trajectory" in titles


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limits": {"a": {"theta3": (0, 1)}}}, "no position of 'a' 'theta3'; did you mean 'theta2' or 'theta1'"),
        ({"limits": {"a": {"theta1": (1, 0)}}}, "the range of 'theta1' of 'a' is empty: 1 to 0"),
        ({"limits": {"b": {}}}, "there is no arm 'b'; known: a"),
        ({"tips": {"a": "hand"}}, "there is no link 'hand'"),
        ({"trajectories": {"a": Trajectory.cycloidal([0], [1])}}, "has 1 coordinates; expected ['theta1', 'theta2']"),
        ({"samples": 0}, "samples must be an integer, at least 1; got 0"),
        ({"samples": 2.5}, "samples must be an integer, at least 1; got 2.5"),
        ({"samples": "x"}, "samples must be an integer, at least 1; got 'x'"),
        ({"seed": -1}, "seed must be an integer, at least 0; got -1"),
        (
            {"limits": {"a": {"theta1": (-np.inf, 1)}}},
            "'theta1' of 'a' must be two finite numbers (low, high); got (-inf, 1)",
        ),
        ({"limits": {"a": {"theta1": (np.nan, 1)}}}, "must be two finite numbers (low, high); got (nan, 1)"),
        ({"limits": {"a": {"theta1": (1, 2, 3)}}}, "must be two finite numbers (low, high); got (1, 2, 3)"),
        ({"limits": {"a": {"theta1": None}}}, "must be two finite numbers (low, high); got None"),
        ({"limits": {"a": None}}, "limits['a'] must be a Mapping; got None"),
        ({"limits": [1]}, "limits must be a mapping from name of an arm to Mapping; got [1]"),
        ({"trajectories": {"a": np.zeros(3)}}, "trajectories['a'] must be a Trajectory or Run; got array("),
        (
            {"trajectories": Trajectory.cycloidal([0], [1])},
            "trajectories must be a mapping from name of an arm to Traj",
        ),
        ({"tips": {"a": 3}}, "tips['a'] must be a str; got 3"),
    ],
)
def test_errors_have_names(options, message):
    with pytest.raises(sd.ScrewdynError) as caught:
        compare({"a": sd.robots.two_link()}, **options)
    assert message in str(caught.value)


def test_arms_that_cannot_be_compared():
    with pytest.raises(sd.ScrewdynError, match="at least one arm"):
        compare({})
    with pytest.raises(sd.ScrewdynError, match="arms must be a mapping from name of an arm to KinematicTree; got "):
        compare([sd.robots.two_link()])
    with pytest.raises(sd.ScrewdynError, match=r"arms\['a'\] must be a KinematicTree; got 3"):
        compare({"a": 3})
    with pytest.raises(sd.ScrewdynError, match=r"'b1' of 'RTX' can slide without end.*\{'RTX': \{'b1': \(0, 1\)"):
        compare({"RTX": sd.robots.rtx()})
    ball = sd.KinematicTree()
    ball.attach(sd.Inertia.point(1.0, (1, 0, 0)), to="base", joint=sd.spherical(name="hip"), name="leg")
    with pytest.raises(sd.ScrewdynError, match="'hip' is spherical"):
        compare({"leg": ball})


def test_what_an_arm_does_not_have_is_not_available():
    """A tip on a circle has no workspace; all else is compared, also of an arm with an armature."""
    tree = sd.KinematicTree()
    rod = sd.Inertia.rod(1.0, 0.5, "x", (0.25, 0, 0))
    tree.attach(rod, "base", sd.revolute("z", armature=0.1), name="upper")
    tree.attach(rod, "upper", at=(0.5, 0, 0), name="fore")
    found = compare({"two": sd.robots.two_link(), "one": tree}, tips={"one": "fore"}, samples=64)
    one = found["one"]
    assert one.dimension == 0 and one.section is None and np.isnan(one.workspace.value)
    assert total(one, "M, DeNOC") == 0 and total(one, "inverse dynamics") == 1 and one.time > 0
    assert_allclose(one.torque, tree.inverse_dynamics(one.trajectory.q, one.trajectory.qd, one.trajectory.qdd))
    lines = {line.split("  ")[0]: line for line in repr(found).splitlines()}
    for label in ("workspace", "manipulability, mean", "coupling of M, median"):
        assert lines[label].endswith("n/a") and "*" not in lines[label]
    assert "n/a" not in lines["M, DeNOC: operations"]
    assert "n/a of 'one': the tip 'fore' of 'one' moves on a surface or curve that is not straight" in repr(found)
    found.plot()


def test_a_range_so_small_that_no_position_is_reached():
    found = compare({"a": sd.robots.two_link()}, samples=1, limits={"a": {"theta2": (0, 1e-3)}})
    assert found["a"].missing == ("the tip of 'a' reaches none of 16 positions; give more samples",)
