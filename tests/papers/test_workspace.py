"""Sizes of workspaces and manipulability against closed forms, which do not involve sampling."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import screwdyn as sd
from screwdyn.core.errors import ScrewdynError
from screwdyn.papers.workspace import Arm, Reach

FULL = {}


def two_links(l1, l2, **limits):
    tree = sd.KinematicTree()
    for name, length in (("q1", l1), ("q2", l2)):
        rod = sd.Inertia.rod(1.0, length, axis="x", com=(-length / 2, 0, 0))
        joint = sd.revolute("z", point=(-length, 0, 0), name=name, limits=limits.get(name))
        tree.attach(rod, to=tree.links[-1], joint=joint, at=(length, 0, 0), name=f"link {name}")
    return tree


def sliders(*axes):
    tree = sd.KinematicTree()
    for k, axis in enumerate(axes):
        tree.attach(sd.Inertia.point(1.0), to=tree.links[-1], joint=sd.prismatic(axis, limits=(0, 0.5)), name=f"s{k}")
    return tree


def reach(tree, limits=FULL, seed=3, tip=None):
    return Reach(Arm.of("arm", tree, tip, limits), np.random.default_rng(seed))


def lens(a, d):
    """Area that two discs of radius a have in common if their centres are at the distance d < 2a."""
    return 2 * a**2 * np.arccos(d / (2 * a)) - d / 2 * np.sqrt(4 * a**2 - d**2)


@pytest.mark.parametrize(
    ("tree", "limits", "size"),
    [
        pytest.param(two_links(0.5, 0.5), FULL, np.pi, id="2R"),
        pytest.param(two_links(0.9, 0.3), FULL, np.pi * (1.2**2 - 0.6**2), id="2R with a hole"),
        pytest.param(two_links(0.3, 0.9, q2=(0.5, 4.0)), FULL, None, id="2R with an elbow that passes pi"),
        pytest.param(two_links(1, 1, q2=(0, np.pi / 2)), FULL, 2 * np.pi, id="2R with a limited elbow"),
        pytest.param(two_links(1, 1, q1=(0, np.pi / 2), q2=(0, np.pi)), FULL, np.pi, id="2R in a quadrant"),
        # Bhangale, Table III and the text after Eq. 22
        pytest.param(sd.robots.planar_rp(0.6), {"b2": (0, 0.5)}, np.pi * (2 * 0.6 * 0.5 + 0.5**2), id="RP"),
        pytest.param(sd.robots.planar_rp(2.0), {"b2": (0, 1)}, 5 * np.pi, id="RP of the text"),
        pytest.param(sd.robots.planar_pr(0.4), {"b1": (0, 1)}, np.pi * 0.4**2 + 2 * 0.4, id="PR, long stroke"),
        # Shorter strokes leave a hole, which the source does not have.
        pytest.param(sd.robots.planar_pr(1.0), {"b1": (0, 1)}, np.pi + 2 - lens(1, 1), id="PR"),
        pytest.param(sd.robots.planar_pr(2.0), {"b1": (0, 1)}, 4 * (np.pi + 1) - lens(2, 1), id="PR of the text"),
        # Bhangale, Table V; the volume of a ball with a bore of the same height does not depend on the bore.
        pytest.param(sd.robots.rtx(), {"b1": (0, 0.7)}, 4 * np.pi * 0.7 * 0.432 * 0.2, id="RTX"),
        pytest.param(sd.robots.stanford(), {"b3": (0, 0.8)}, 4 / 3 * np.pi * 0.8**3, id="Stanford"),
        pytest.param(sliders("x", "z"), FULL, 0.25, id="PP"),
        pytest.param(sliders("y"), FULL, 0.5, id="P"),
        pytest.param(sliders("y", (0, 1, 1)), FULL, 0.25 / np.sqrt(2), id="PP, oblique"),
        pytest.param(sliders("x", "x", (1, 1, 1)), FULL, None, id="PPP, oblique and redundant"),
    ],
)
def test_sizes_have_closed_forms(tree, limits, size):
    if size is None:
        if tree.nv == 3:
            size = 1.0 * 0.5 * np.sqrt(2 / 3)
        else:
            # The distance of the tip is monotonic in the elbow up to pi; beyond it, the arm reaches nothing new.
            size = np.pi * (0.3**2 + 0.9**2 + 2 * 0.3 * 0.9 * np.cos(0.5) - 0.6**2)
    found, q = reach(tree, limits).measure(1024)
    assert abs(found.value - size) < 5 * found.error
    assert 0 < found.error < 0.03 * size
    arm = Arm.of("arm", tree, None, limits)
    assert ((q >= arm.low - 1e-12) & (q <= arm.high + 1e-12)).all()


def test_positions_are_reached_and_those_out_of_reach_are_not():
    found = reach(two_links(0.7, 0.4, q2=(0.3, 2.0)))
    x = np.random.default_rng(5).uniform(-1.2, 1.2, (400, 2))
    r2 = np.sum(x**2, axis=1)
    low, high = (0.7**2 + 0.4**2 + 2 * 0.7 * 0.4 * np.cos(elbow) for elbow in (2.0, 0.3))
    q, reached = found.solve(x)
    np.testing.assert_array_equal(reached, (r2 > low) & (r2 < high))
    assert 50 < reached.sum() < 350
    assert_allclose(found.position(q[reached]), x[reached], atol=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_positions_of_any_configuration_are_in_the_box_and_are_reached(seed):
    rng = np.random.default_rng(seed)
    tree = sd.KinematicTree()
    for k in range(3 + seed % 3):
        kind = sd.prismatic if rng.random() < 0.3 else sd.revolute
        joint = kind(rng.normal(size=3), limits=tuple(np.sort(rng.uniform(-2, 2, 2))), name=f"j{k}")
        body = sd.Inertia.sphere(1.0, 0.1)
        tree.attach(body, to=tree.links[-1], joint=joint, at=0.3 * rng.normal(size=3), name=f"link{k}")
    tree.attach(sd.Link("hand"), to=tree.links[-1], at=(0.2, 0.1, 0.3))
    found = reach(tree, tip="hand")
    x = found.position(rng.uniform(found.arm.low, found.arm.high, (1000, tree.nv)))
    assert ((x > found.low - 1e-9) & (x < found.high + 1e-9)).all()
    # The few that Newton's method misses bias the size of the workspace.
    assert found.solve(x)[1].mean() > 0.997


@pytest.mark.parametrize(
    ("tree", "limits", "closed_form", "largest"),
    [
        pytest.param(two_links(0.7, 0.4), FULL, lambda q: 0.7 * 0.4 * np.abs(np.sin(q[1])), 0.28, id="2R"),
        pytest.param(sd.robots.planar_rp(0.6), {"b2": (0, 0.5)}, lambda q: 0.6 + q[1], 1.1, id="RP"),
        pytest.param(sd.robots.planar_pr(0.8), {"b1": (0, 1)}, lambda q: 0.8 * np.abs(np.cos(q[1])), 0.8, id="PR"),
        pytest.param(sd.robots.rtx(), {"b1": (0, 1)}, lambda q: 0.0864 * np.abs(np.sin(q[2])), 0.0864, id="RTX"),
        # The source has the cosine: its angle begins elsewhere than the table of Denavit and Hartenberg.
        pytest.param(
            sd.robots.stanford(), {"b3": (0, 0.9)}, lambda q: q[2] ** 2 * np.abs(np.sin(q[1])), 0.81, id="Stanford"
        ),
    ],
)
def test_manipulability_has_closed_forms(tree, limits, closed_form, largest):
    found = reach(tree, limits)
    q = np.random.default_rng(2).uniform(found.arm.low, found.arm.high, (50, tree.nv))
    assert_allclose(found.manipulability(q), closed_form(q.T), atol=1e-14)
    assert_allclose(found.greatest(found.manipulability), largest, rtol=1e-9)


def test_manipulability_of_a_redundant_arm_is_the_root_of_the_determinant():
    arm = sd.robots.ur5()
    q = np.random.default_rng(0).uniform(-3, 3, (20, 6))
    J = arm.jacobian("tool0", q, "mixed")[:, 3:]
    assert_allclose(reach(arm).manipulability(q), np.sqrt(np.linalg.det(J @ J.swapaxes(1, 2))), rtol=1e-6, atol=1e-9)


def test_samples_are_uniform_in_the_workspace():
    found = reach(sd.robots.planar_rp(0.6), {"b2": (0, 0.5)})
    _, q = found.measure(4096)
    # The mean distance from the centre of an annulus
    assert_allclose(found.manipulability(q).mean(), 2 / 3 * (1.1**3 - 0.6**3) / (1.1**2 - 0.6**2), rtol=5e-3)


def test_boxes_have_their_exact_size():
    found, _ = reach(sliders("x", "y", "z")).measure(64)
    assert_allclose(found, (0.125, 0.125 / 64), rtol=1e-9)


def test_equal_seeds_give_equal_results():
    first, again, other = (reach(sd.robots.two_link(), seed=seed).measure(256) for seed in (1, 1, 2))
    assert first[0] == again[0] != other[0]


def test_tips_that_have_no_workspace():
    tree = two_links(0.7, 0.4)
    with pytest.raises(ScrewdynError, match="'base' of 'arm' does not move"):
        reach(tree, tip="base")
    with pytest.raises(ScrewdynError, match=r"'link q1' of 'arm' moves on a surface or curve .* in 2 dimensions"):
        reach(tree, tip="link q1")
    shoulder = sd.KinematicTree()
    shoulder.attach(sd.Inertia.point(1.0), to="base", joint=sd.revolute("z"), name="pan")
    shoulder.attach(sd.Inertia.point(1.0), to="pan", joint=sd.revolute("y", point=(-1, 0, 0)), at=(1, 0, 0), name="tip")
    with pytest.raises(ScrewdynError, match="in 3 dimensions"):
        reach(shoulder)
