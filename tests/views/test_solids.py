import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import screwdyn as sd
from screwdyn.views.scene import (
    ACTIVE,
    LOOP,
    PASSIVE,
    Solid,
    ball,
    box,
    capsule,
    creased,
    equivalent_box,
    grown_body,
    helix,
    joint_solids,
    loop_solids,
    shape_solids,
    tube,
)

RED = (1.0, 0.0, 0.0, 1.0)
X, Z = np.eye(3)[0], np.eye(3)[2]
BLUE = (0.0, 0.0, 1.0, 1.0)
LENGTHS = st.floats(0.01, 2.0)


def volume(solid: Solid) -> float:
    """Of the body within a closed surface whose faces turn outwards, by Gauss's theorem."""
    a, b, c = (solid.vertices[solid.faces[:, k]] for k in range(3))
    return float(np.einsum("fi,fi->", a, np.cross(b, c))) / 6


def test_solids_are_closed_and_turn_their_faces_outwards() -> None:
    assert volume(box((1.0, 2.0, 3.0), RED)) == pytest.approx(6.0, rel=1e-12)
    sector = 0.5 * np.sin(2 * np.pi / 24) * 24
    length = float(np.linalg.norm([0.3, 1.1, -0.4]))
    slanted = tube([(0.1, 0.2, 0.3), (0.4, 1.3, -0.1)], 0.05, RED, sides=24)
    assert volume(slanted) == pytest.approx(sector * 0.05**2 * length, rel=1e-12)
    assert volume(ball(0.5, (1.0, 2.0, 3.0), RED)) == pytest.approx(4 / 3 * np.pi * 0.125, rel=0.07)
    caps = volume(capsule(0.5, 0.0, RED))
    section = volume(capsule(0.5, 2.0, RED)) - caps
    assert section == pytest.approx(0.5 * np.sin(2 * np.pi / 16) * 16 * 0.25 * 2.0, rel=1e-12)
    # Of a wire, by Pappus's theorem: area times length of the curve.
    wire = helix(Z, np.zeros(3), 0.02, 0.25, 0.1, 0.005, RED)
    turns = 0.25 / (2 * np.pi * 0.02)
    curve = turns * 2 * np.pi * np.hypot(0.1, 0.02)
    assert volume(wire) == pytest.approx(0.5 * np.sin(np.pi / 3) * 6 * 0.005**2 * curve, rel=0.02)


@pytest.mark.parametrize("pitch", [0.02, -0.02])
def test_a_helix_has_the_pitch_and_the_hand_of_its_screw(pitch: float) -> None:
    axis, point = np.array([0.6, 0.0, 0.8]), np.array([1.0, 2.0, 3.0])
    wire = helix(axis, point, pitch, 0.3, 0.1, 1e-6, RED)
    away = wire.vertices - point
    along = away @ axis
    across = away - np.outer(along, axis)
    np.testing.assert_allclose(np.linalg.norm(across, axis=1), 0.1, atol=2e-6)
    frame = np.linalg.svd(axis[None])[2][1:]
    frame[1] = np.cross(axis, frame[0])
    angle = np.unwrap(np.arctan2(across @ frame[1], across @ frame[0]))
    slope = np.polyfit(angle, along, 1)[0]
    assert slope == pytest.approx(pitch, rel=1e-3)
    assert np.ptp(along) == pytest.approx(0.3, rel=1e-3)


def test_a_helix_has_from_half_a_turn_to_eight_turns() -> None:
    assert np.ptp(helix(Z, np.zeros(3), 1.0, 0.1, 0.1, 1e-6, RED).vertices[:, 2]) == pytest.approx(np.pi, rel=1e-3)
    fine = helix(Z, np.zeros(3), 1e-4, 0.1, 0.1, 1e-6, RED)
    assert np.ptp(fine.vertices[:, 2]) == pytest.approx(16e-4 * np.pi, rel=0.01)


def test_only_edges_of_more_than_forty_degrees_are_sharp() -> None:
    for solid, apart in ((box((1, 2, 3), RED), 24), (tube([(0, 0, 0), (0, 0, 1)], 0.5, RED, 24), 4 * 24 + 2)):
        vertices, faces = creased(solid.vertices, solid.faces)
        assert len(vertices) == apart  # the ends of a tube are flat, with a centre each
        assert volume(Solid(vertices, faces, RED)) == pytest.approx(volume(solid), rel=1e-12)
    smooth = capsule(0.5, 1.0, RED)
    vertices, faces = creased(smooth.vertices, smooth.faces)
    assert len(vertices) == len(np.unique(smooth.vertices[smooth.faces].reshape(-1, 3), axis=0))


def test_equal_solids_look_the_same() -> None:
    assert box((1, 1, 1), RED).equals(box((1, 1, 1), RED))
    assert not box((1, 1, 1), RED).equals(box((1, 1, 2), RED))
    assert not box((1, 1, 1), RED).equals(box((1, 1, 1), (1.0, 0.0, 0.0, 0.5)))
    assert not box((1, 1, 1), RED).equals(ball(1.0, X, RED))


@given(st.floats(0.1, 50.0), st.tuples(LENGTHS, LENGTHS, LENGTHS), st.integers(0, 2**32 - 1))
def test_the_equivalent_box_has_the_inertia(mass, edges, seed) -> None:
    rng = np.random.default_rng(seed)
    R, com = sd.screw.exp(np.r_[rng.normal(size=3), 0, 0, 0])[:3, :3], rng.normal(size=3)
    given_box = sd.Inertia.box(mass, edges)
    turned = sd.Inertia(mass, com, R @ given_box.tensor @ R.T)
    sizes, T = equivalent_box(turned)
    again = sd.Inertia.box(mass, sizes)
    np.testing.assert_allclose(T[:3, 3], com)
    np.testing.assert_allclose(T[:3, :3] @ again.tensor @ T[:3, :3].T, turned.tensor, rtol=1e-9, atol=1e-12 * mass)
    assert np.linalg.det(T[:3, :3]) == pytest.approx(1.0)


def link(inertia, joint=None, size=1.0, **more):
    tree = sd.KinematicTree()
    tree.attach(inertia, to="base", joint=joint or sd.revolute("z"), name="link", **more)
    return [*grown_body(tree.topology, "link", size, BLUE)]


def extent(solids):
    vertices = np.concatenate([solid.vertices for solid in solids])
    return np.ptp(vertices, axis=0), (vertices.max(axis=0) + vertices.min(axis=0)) / 2


def test_a_body_is_the_box_of_its_inertia_and_a_rod_from_its_joint() -> None:
    body, rod = link(sd.Inertia.box(24.0, (0.2, 0.3, 0.4), com=(0.5, 0, 0)))
    np.testing.assert_allclose(extent([body])[0], (0.2, 0.3, 0.4))
    np.testing.assert_allclose(extent([body])[1], (0.5, 0, 0), atol=1e-15)
    assert body.color == BLUE
    np.testing.assert_allclose(extent([rod])[0][0], 0.5)
    # From the axis of its joint, which need not be at the origin.
    _, rod = link(sd.Inertia.box(24.0, (0.2, 0.3, 0.4), com=(0.5, 0, 0)), sd.revolute("z", point=(0.1, 0, 0)))
    np.testing.assert_allclose(extent([rod])[0][0], 0.4)


def test_massless_links_are_rods_to_their_children_and_points_are_balls() -> None:
    tree = sd.KinematicTree()
    tree.attach(sd.Link("arm"), to="base", joint=sd.revolute("z"))
    tree.attach(sd.Inertia.point(4.0), to="arm", at=(0.3, 0.4, 0), name="bob")
    (rod,) = grown_body(tree.topology, "arm", 1.0, BLUE)
    ends = rod.vertices[np.argsort(rod.vertices @ (0.6, 0.8, 0.0))]
    np.testing.assert_allclose(ends[:24].mean(axis=0), (0, 0, 0), atol=1e-12)
    np.testing.assert_allclose(ends[-24:].mean(axis=0), (0.3, 0.4, 0), atol=1e-12)
    (ball,) = grown_body(tree.topology, "bob", 1.0, BLUE)
    np.testing.assert_allclose(extent([ball])[0][2], 2 * (3 * 4.0 / (4 * np.pi * 2000.0)) ** (1 / 3))
    assert not [*grown_body(tree.topology, "base", 1.0, BLUE)]


def test_a_box_of_no_density_is_drawn_within_reach_of_the_link() -> None:
    fluffy = sd.Inertia(1.2, (0.1, 0, 0), (0.11, 0.11, 0.2))
    body, _ = link(fluffy)
    edges = equivalent_box(fluffy)[0]
    assert edges.max() > 0.9
    np.testing.assert_allclose(np.sort(extent([body])[0]) / 0.2, np.sort(edges) / edges.max())
    (frame,) = link(sd.Inertia(0.01, 0, (0.1, 0.1, 0.1)))  # as of a sole, which has a foot around it
    np.testing.assert_allclose(extent([frame])[0], (0.01 / 100) ** (1 / 3))


def test_inertias_of_no_body_do_not_stop_the_drawing() -> None:
    with pytest.warns(sd.ScrewdynWarning):
        lamina = sd.Inertia.effective(2.0, (0.2, 0, 0), (0, 0, 0.35))
    assert len(link(lamina)) == 2
    with pytest.warns(sd.ScrewdynWarning):
        assert not link(sd.Inertia.effective(0.0, 0, (0, 0.35, 0)))


def test_joints_are_screws() -> None:
    tree = sd.KinematicTree()
    body = sd.Inertia.box(1.0, (0.1, 0.1, 0.1))
    tree.attach(body, to="base", joint=sd.revolute("y", point=(0, 0, 0.5)), name="turn")
    tree.attach(body, to="turn", joint=sd.prismatic("x", passive=True), name="slide")
    tree.attach(body, to="slide", joint=sd.helical("z", pitch=0.01), name="screw")
    tree.attach(body, to="screw", joint=sd.spherical(), name="ball")
    tree.attach(body, to="ball", joint=sd.universal("x", "y"), at=(0, 0, 1), name="cross")
    tree.attach(body, to="base", joint=sd.free(), name="ship")
    solids = {name: [*joint_solids(tree.topology, name, 1.0)] for name in tree.links}
    assert (
        len(solids["turn"]) == len(solids["slide"]) == len(solids["screw"]) == 2
        and not solids["ship"]
        and not solids["base"]
    )
    size, middle = extent(solids["turn"])
    assert np.argmax(size) == 1
    np.testing.assert_allclose(middle, (0, 0, 0.5), atol=1e-12)
    assert np.argmax(extent(solids["slide"])[0]) == 0
    assert {solid.color for solid in solids["slide"]} == {PASSIVE} and solids["turn"][0].color == ACTIVE
    assert len(solids["screw"][0].vertices) > 200
    # The first axis of a universal joint stays in the parent, the last one in the child.
    in_parent, in_child = extent(solids["ball"][1:]), extent(solids["cross"])
    assert np.argmax(in_parent[0]) == 0 and np.argmax(in_child[0]) == 1
    np.testing.assert_allclose(in_parent[1], (0, 0, 1), atol=1e-12)
    np.testing.assert_allclose(in_child[1], 0, atol=1e-12)


def test_the_joint_of_a_loop_is_a_screw_in_a_colour_of_its_own() -> None:
    tree = sd.KinematicTree()
    rocker = tree.attach(sd.Link("rocker"), to="base", joint=sd.revolute("z"), at=(1, 0, 0))
    tree.attach(sd.Link("crank"), to="base", joint=sd.revolute("z"))
    tree.close("rocker", to="crank", joint=sd.revolute("z", point=(0, 2, 0)), at=(0.5, -2, 0), name="pin")
    tree.close("rocker", to="crank", at=(0, 1, 0), name="glue")
    pin, line = loop_solids(tree.loop("pin"), 1.0)
    np.testing.assert_allclose(extent([pin, line])[1], (0, 2, 0), atol=1e-12)
    assert extent([line])[0][2] == pytest.approx(0.24) and {pin.color, line.color} == {LOOP}
    (cube,) = loop_solids(tree.loop("glue"), 1.0)
    np.testing.assert_allclose(extent([cube]), [(0.04, 0.04, 0.04), (0, 0, 0)], atol=1e-12)
    # Rods lead to both ends of the loops: to the pin at y = 2 in the rocker, and at x = 0.5 in the crank.
    (rod,) = grown_body(tree.topology, rocker.name, 1.0, BLUE)
    assert extent([rod])[0][1] == pytest.approx(2)
    ends = [extent([rod])[0] for rod in grown_body(tree.topology, "crank", 1.0, BLUE)]
    np.testing.assert_allclose([ends[0][0], ends[1][1]], (0.5, 1), atol=1e-12)


def test_a_flat_cylinder_is_a_disk() -> None:
    (disk,) = shape_solids(sd.Shape.cylinder(0.5, 0.0), RED)
    np.testing.assert_allclose(np.ptp(disk.vertices, axis=0), (1.0, 1.0, 0.0))


def test_a_light_box_within_reach_of_the_link_is_drawn_as_large_as_it_is() -> None:
    body, _ = link(sd.Inertia.box(0.01, (0.2, 0.3, 0.4), com=(0.5, 0, 0)))
    np.testing.assert_allclose(extent([body])[0], (0.2, 0.3, 0.4))


def test_a_rod_leads_to_the_center_of_mass_only_if_there_is_no_other_joint() -> None:
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.box(24.0, (0.2, 0.3, 0.4), com=(0, 2, 0)), to="base", joint=sd.revolute("z"), name="link")
    tree.attach(sd.Link("tip"), to="link", at=(1, 0, 0))
    _, rod = grown_body(tree.topology, "link", 1.0, BLUE)
    np.testing.assert_allclose(extent([rod])[1], (0.5, 0, 0), atol=1e-12)


def test_a_pin_does_not_end_in_the_faces_of_a_body_of_round_size():
    """There a browser, whose depths are rounded, would show parts of the pin and parts of the body."""
    tree = sd.KinematicTree()
    tree.attach(sd.Inertia.box(1.0, size=(0.5, 0.1, 0.2)), to=tree.base, joint=sd.revolute("y"), name="plate")
    pin = next(joint_solids(tree.topology, "plate", 1.0))
    assert np.abs(pin.vertices[:, 1]).max() > 0.5 * 0.1 + 5e-4


def test_dark_shapes_are_light_enough_for_a_shading():
    drawn = {(0, 0, 0): (0.25, 0.25, 0.25, 1), (0.1, 0, 0): (0.25, 0.15, 0.15, 1), (0.3, 0, 0): (0.3, 0, 0, 1)}
    for color, lit in drawn.items():
        (solid,) = shape_solids(sd.Shape.box((1, 1, 1), color=color), RED)
        assert solid.color == pytest.approx(lit)
