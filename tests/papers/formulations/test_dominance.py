import re
from pathlib import Path

import numpy as np
import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import screwdyn as sd
from screwdyn import formulations, robots
from screwdyn.papers.formulations import dominance
from screwdyn.testing import random_tree


def arm_of(seed):
    """An arm or tree of three revolute joints, and a trajectory of random set points."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 3, joints=["revolute"])
    return tree, rng.uniform(-2, 2, (3, 7, 3))


@pytest.fixture(scope="module")
def puma():
    arm = robots.puma560()
    s = np.linspace(0, 2 * np.pi, 31)[:, None]
    way = np.array([1.5, 0.8, -1.5, 1.0, -1.3, 1.5])
    return arm, np.array([way * (s - np.sin(s)) / 2 / np.pi, way * (1 - np.cos(s)), 2 * np.pi * way * np.sin(s)])


def relative(error, tree, trajectory):
    return np.abs(error).max(axis=0) / np.abs(tree.inverse_dynamics(*trajectory)).max(axis=0)


def torques_of_parts(tree, trajectory, kept):
    """Whether each part is kept, and its torque; D_ij and D_ji together."""
    found, qdd = dominance.parts(tree, trajectory), trajectory[2]
    for values, keep in zip(found, kept, strict=True):
        for index in zip(
            *np.nonzero(np.triu(np.ones(keep.shape)) if keep.ndim == 2 else np.ones(tree.nv)), strict=True
        ):
            torque = np.zeros_like(qdd)
            for i, *j in {index, index[::-1]}:
                torque[:, i] += values[:, i, j[0]] * qdd[:, j[0]] if j else values[:, i]
            yield keep[index], torque


def check_order(model, tree, trajectory, error):
    """Smallest first: with all smaller parts that are left out, each part that is kept exceeds the tolerance."""
    torques = list(torques_of_parts(tree, trajectory, model.kept))
    sizes = [relative(torque, tree, trajectory).max() for _, torque in torques]
    total = np.zeros_like(error)
    for k in np.argsort(sizes):
        kept, torque = torques[k]
        if kept:
            assert (relative(total - torque, tree, trajectory) > model.tolerance - 1e-12).any()
        else:
            total -= torque
    assert_allclose(total, error, atol=1e-11)


def test_parts_add_up_to_the_dynamics_of_the_library(puma):
    arm, (q, qd, qdd) = puma
    found = dominance.parts(arm, (q, qd, qdd))
    assert_allclose(found.D_tran + found.D_rot, arm.mass_matrix(q), atol=1e-13)
    assert_allclose(found.h_tran + found.h_rot, arm.velocity_product(q, qd), atol=1e-13)
    fu = formulations.generalized_dalembert(arm)
    assert_allclose(found.D_tran[9], fu.D_tran(q[9]), atol=1e-13)
    assert_allclose(found.h_rot[9], fu.h_rot(q[9], qd[9]), atol=1e-13)


def test_point_masses_have_no_rotational_parts():
    """Two point masses on massless rods of 1 m and 2 m: D_11 = m1 l1² + m2 (l1² + l2² + 2 l1 l2 cos q2), …"""
    rows = [{"a": 1.0, "inertia": sd.Inertia.point(3.0)}, {"a": 2.0, "inertia": sd.Inertia.point(0.5)}]
    arm = sd.KinematicTree.from_dh(rows)
    q, qd = np.random.default_rng(0).uniform(-2, 2, (2, 5, 2))
    found = dominance.parts(arm, (q, qd, qd))
    assert not found.D_rot.any() and not found.h_rot.any()
    c, s = np.cos(q[:, 1]), np.sin(q[:, 1])
    assert_allclose(found.D_tran[:, 0, 0], 3 + 0.5 * (5 + 4 * c), atol=1e-13)
    assert_allclose(found.h_tran[:, 1], 0.5 * 2 * s * qd[:, 0] ** 2, atol=1e-13)
    D, h = found.translational_share()
    assert (D == 1).all() and (h == 1).all()


def test_the_share_of_a_rod():
    """m l²/4 by translation and m l²/12 by rotation; a single joint has no h."""
    arm = sd.KinematicTree(gravity=(0, 0, 0))
    arm.attach(sd.Inertia.rod(1.2, 0.5, "x", (0.25, 0, 0)), to="base", joint=sd.revolute("z"))
    D, h = dominance.parts(arm, ([[0.3]], [[1]], [[2]])).translational_share()
    assert_allclose(D, [[0.75]], atol=1e-14)
    assert np.isnan(h).all()
    # The rotational part is a quarter of the torque of an acceleration: it is left out at that tolerance.
    trajectory = np.array([[[0.3], [0.4]], [[0], [0]], [[2], [-4]]])
    assert dominance.simplified(arm, trajectory, 0.2499).kept.D_rot.all()
    model = dominance.simplified(arm, trajectory, 0.2501)
    assert (model.kept.D_tran.item(), model.kept.D_rot.item()) == (True, False)
    inertia = 1.2 * 0.5**2
    assert_allclose(model.inverse_dynamics([0.3], [1], [2]), [inertia / 4 * 2], atol=1e-14)
    error = model.error
    assert_allclose(error.peak, [inertia / 3 * 4])
    assert_allclose(error.max, [inertia / 12 * 4])
    assert_allclose(error.rms, [inertia / 12 * np.sqrt(10)])
    assert_allclose(error.relative, [0.25])
    # At rest without gravity there are no torques, and nothing is wrong.
    rest = model.error_along(np.zeros((3, 4, 1)))
    assert rest.relative == rest.peak == 0


@given(seed=st.integers(0, 2**32 - 1), tolerance=st.floats(0, 0.5))
def test_the_tolerance_bounds_the_torque_error(seed, tolerance):
    tree, trajectory = arm_of(seed)
    model = dominance.simplified(tree, trajectory, tolerance)
    error = model.inverse_dynamics(*trajectory) - tree.inverse_dynamics(*trajectory)
    assert (relative(error, tree, trajectory) <= tolerance + 1e-12).all()
    assert_allclose(model.error.max, np.abs(error).max(axis=0), atol=1e-11)
    assert_allclose(model.error.rms, np.sqrt((error**2).mean(axis=0)), atol=1e-11)
    check_order(model, tree, trajectory, error)


@pytest.mark.slow
def test_simplified_models_of_the_puma(puma):
    arm, trajectory = puma
    models = [dominance.simplified(arm, trajectory, tolerance) for tolerance in (0, 0.02, 0.15, 10)]
    kept = [sum(part.sum() for part in model.kept) for model in models]
    # D_i6^tran and h_6^tran are zero: the last link's centre of mass is on its axis.
    assert kept[0] == 72 + 12 - 12 and 72 > kept[1] > kept[2] > kept[3] == 0
    counts = [model.operation_count()["mul"] for model in models]
    assert models[1].full_operation_count()["mul"] >= counts[0] > counts[1] > counts[2] > counts[3]
    for model in models:
        assert (model.kept.D_tran == model.kept.D_tran.T).all() and (model.kept.D_rot == model.kept.D_rot.T).all()
        check_order(model, arm, trajectory, model.inverse_dynamics(*trajectory) - arm.inverse_dynamics(*trajectory))
    assert models[0].error.relative.max() < 1e-12 < models[1].error.relative.max()
    assert_allclose(models[3].inverse_dynamics(*trajectory), arm.gravity_vector(trajectory[0]), atol=1e-13)
    # A motion twice as fast
    fast = trajectory * np.array([1, 2, 4])[:, None, None]
    expected = relative(models[2].inverse_dynamics(*fast) - arm.inverse_dynamics(*fast), arm, fast)
    assert_allclose(models[2].error_along(fast).relative, expected, atol=1e-12)
    assert expected.max() > 0.1


def test_the_page_has_the_share_of_every_element(puma):
    """Numbers of the table "Fu's conclusions", in the order of its elements."""
    root = Path(__file__).parents[3]
    page = (root / "docs/dominance.md").read_text(encoding="utf-8")
    start, end = np.radians([[0, -45, 180, 0, 45, 0], [90, 0, 90, 60, -30, 90]])
    trajectory = sd.selection.Trajectory.cycloidal(start, end, duration=1.0, step=1 / 30)
    found = dominance.parts(puma[0], trajectory)
    shares = dict(zip(("D", "h"), found.translational_share(), strict=True))
    seen = set()
    for row in page.partition("## Fu's conclusions")[2].splitlines():
        names = re.findall(r"`([Dh])_(\d+)`", row)
        seen |= {*names}
        if row.startswith("|") and "below 1e-18" not in row:
            numbers = re.findall(r"\b[01]\.\d\d\b", row.split("|")[3].partition(":")[0])
            expected = [shares[name][tuple(int(x) - 1 for x in index)] for name, index in names]
            assert numbers == [f"{x:.2f}" for x in expected]
    assert len(seen) == 21 + 6


def test_a_model_reads_as_a_table():
    arm = robots.two_link()
    model = dominance.simplified(arm, ([[0, 1]], [[1, 2]], [[1, 1]]), 0.02)
    first, one, two, last = repr(model).splitlines()
    assert first == "SimplifiedModel: parts kept for a tolerance of 0.02 (t: translation, r: rotation)"
    assert one.startswith("  theta1  D: t·  tr  h: t·  error: 0.99% of 16.8 N m")
    assert two.startswith("  theta2  D: tr  ")
    few, full = model.operation_count(), model.full_operation_count()
    assert last == f"  multiplications/additions: {few['mul']}/{few['add']} of {full['mul']}/{full['add']}"


def test_a_run_is_a_trajectory():
    arm = robots.two_link()
    run = sd.simulate(arm, sd.State(arm, [0.3, 0.2]), 0.5, torque=lambda t, state: [3, t], step=0.1)
    found = dominance.parts(arm, run)
    assert len(found.h_tran) == len(run.t)
    assert_allclose(found.D_tran + found.D_rot, arm.mass_matrix(run.q), atol=1e-13)
    model = dominance.simplified(arm, run, 0.1)
    assert_allclose(model.error.peak, np.abs(run.tau).max(axis=0), atol=1e-9)
    assert_allclose(model.error_along(run).max, model.error.max)


def test_a_model_keeps_the_tree_that_it_was_made_from(puma):
    arm, trajectory = robots.two_link(), np.ones((3, 2, 2))
    model = dominance.simplified(arm, trajectory, 0.0)
    before = model.inverse_dynamics(*trajectory)
    arm.attach(sd.Inertia.point(3), to="link2")
    assert (model.inverse_dynamics(*trajectory) == before).all()
    assert model.inverse_dynamics([0, 1], [1, 1], [1, 1]).shape == (2,)


def test_wrong_arguments_are_refused():
    arm, good = robots.two_link(), np.zeros((3, 4, 2))
    with pytest.raises(
        sd.ShapeError, match="three arrays, q, qd and qdd, or an object that has them, such as a Run; got 2"
    ):
        dominance.parts(arm, good[:2])
    with pytest.raises(sd.ShapeError, match=r"the same shape \(…, 2\); got q \(4, 2\), qd \(3, 2\), qdd \(4, 2\)"):
        dominance.parts(arm, (good[0], good[1, :3], good[2]))
    for wrong in (good[:, :0], good[:, 0], good[:, None]):
        with pytest.raises(sd.ShapeError, match=r"must have shape \(set points, 2\); got \("):
            dominance.parts(arm, wrong)
    with pytest.raises(sd.ShapeError, match="qdd has entries that are not finite"):
        dominance.parts(arm, (good[0], good[1], good[2] + np.nan))
    for wrong in (None, {"q": good[0]}, iter(good), sd.State(arm, [0, 0])):
        with pytest.raises(
            sd.ShapeError, match="a trajectory is three arrays, q, qd and qdd, or an object that has them"
        ):
            dominance.parts(arm, wrong)
        with pytest.raises(sd.ShapeError, match="a trajectory is three arrays"):
            dominance.simplified(arm, good, 0.1).error_along(wrong)
    with pytest.raises(sd.ScrewdynError, match="is made from a KinematicTree; got None"):
        dominance.parts(None, good)
    for tolerance in (-0.1, np.nan, "5 %", True):
        with pytest.raises(sd.ScrewdynError, match="tolerance must be a fraction of the largest torques"):
            dominance.simplified(arm, good, tolerance)
    with pytest.raises(sd.ScrewdynError, match="covers joints with revolute axes; 'b3' is prismatic"):
        dominance.simplified(robots.stanford(), np.zeros((3, 1, 6)), 0.1)
    with pytest.raises(sd.UnboundSymbolError, match="m"):
        dominance.parts(robots.two_link(m1=sp.Symbol("m")), good)


def test_a_tree_without_joints():
    tree, trajectory = sd.KinematicTree(), np.zeros((3, 4, 0))
    assert [x.shape for x in dominance.parts(tree, trajectory)] == [(4, 0, 0), (4, 0, 0), (4, 0), (4, 0)]
    model = dominance.simplified(tree, trajectory, 0.1)
    assert model.error.relative.shape == model.inverse_dynamics([], [], []).shape == (0,)
    assert "multiplications/additions: 0/0 of 0/0" in repr(model)


@pytest.mark.slow
def test_figures(puma):
    arm, trajectory = puma
    found = dominance.parts(arm, trajectory)
    figure = found.plot()
    assert len(figure.axes) == 21 + 6
    first = figure.axes[0]
    assert first.get_title(loc="left") == "$D_{11}$ (kg m²)"
    for line, expected in zip(first.lines, (found.D_tran, found.D_rot, arm.mass_matrix(trajectory[0])), strict=True):
        assert_allclose(line.get_ydata(), expected[:, 0, 0], atol=1e-13)
    model = dominance.simplified(arm, trajectory, 0.1)
    left, right = model.plot().axes[2:4]
    full, reduced = (line.get_ydata() for line in left.lines)
    assert_allclose(full, arm.inverse_dynamics(*trajectory)[:, 1], atol=1e-12)
    assert_allclose(right.lines[0].get_ydata(), reduced - full, atol=1e-12)
    assert_allclose(np.abs(reduced - full).max(), model.error.max[1])
