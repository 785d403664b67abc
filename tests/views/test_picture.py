import sys

import matplotlib.image
import numpy as np
import pytest
from film import swing
from matplotlib.tri import Triangulation
from PIL import Image
from scipy.spatial import ConvexHull

import screwdyn as sd
from screwdyn.views import picture
from screwdyn.views.scene import Camera, Solid, box, distinct, still


@pytest.fixture(scope="module")
def run():
    return swing()


def test_a_ball_has_the_outline_of_a_sphere_in_perspective(tmp_path) -> None:
    tree = sd.KinematicTree()
    shape = sd.Shape.sphere(0.3, color=(1, 0, 0))
    tree.attach(sd.Inertia.point(1.0), to="base", at=(0, 0, 0.5), name="ball", shape=shape)
    found = tree.draw(tmp_path / "ball.png")
    image = matplotlib.image.imread(found.path)
    red = image[..., 0] > 2 * image[..., 1]  # also where it is bright

    camera = still(tree, np.zeros(0)).camera
    sight = camera.target - camera.position
    ray = np.array([0, 0, 0.5]) - camera.position
    # The cone of tangents has the half angle asin(r / d); about an axis at an angle from the line of sight its section
    # with the picture is an ellipse.
    half, off = (
        np.arcsin(0.3 / np.linalg.norm(ray)),
        np.arccos(sight @ ray / np.linalg.norm(sight) / np.linalg.norm(ray)),
    )
    focal = 240 / np.tan(np.radians(Camera.FIELD_OF_VIEW / 2))
    major = focal * np.sin(2 * half) / 2 / (np.cos(half) ** 2 - np.sin(off) ** 2)
    minor = focal * np.sin(half) / np.sqrt(np.cos(half) ** 2 - np.sin(off) ** 2)
    # A polyhedron of 16 sides is smaller by some percent.
    assert 0.92 < red.sum() / (np.pi * major * minor) < 1.02


def test_bodies_that_are_smaller_than_a_pixel_are_left_out(tmp_path) -> None:
    points = np.random.default_rng(0).normal(size=(900, 3))
    points *= 0.02 / np.linalg.norm(points, axis=1)[:, None]
    hull = ConvexHull(points)
    solid = Solid(points, hull.simplices, (1.0, 0.0, 0.0, 1.0))
    assert len(picture._Surface(solid, 1.0).faces) == 0 < len(picture._Surface(solid, 1e-4).faces)


def test_near_bodies_hide_far_ones(tmp_path) -> None:
    colors = []
    for near, far in (((1.0, 0, 0), (0, 0, 1.0)), ((0, 0, 1.0), (1.0, 0, 0))):
        tree = sd.KinematicTree(gravity=(0, 0, 0))
        body = sd.Inertia.point(1.0)
        for name, color, side in (("a", near, 1), ("b", far, -1)):
            cube = sd.Shape.box((0.5, 0.5, 0.5), color=color)
            # The camera looks along this line.
            tree.attach(body, to="base", at=0.4 * side * np.array([0.75, -0.65, 0.45]), name=name, shape=cube)
        image = matplotlib.image.imread(tree.draw(tmp_path / "cubes.png").path)
        colors.append(image[240, 320, :3])
    assert colors[0].argmax() == 0 and colors[1].argmax() == 2


def test_bodies_that_cross_each_other_are_seen_where_they_are_nearer(tmp_path) -> None:
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    for name, color, slope in (("a", (1, 0, 0), 1), ("b", (0, 0, 1), -1)):
        plate = sd.Shape.box((1, 0.01, 1), color=color, pose=sd.screw.exp([0, 0, 0.5 * slope, 0, 0, 0]))
        tree.attach(sd.Inertia.point(1.0), to="base", name=name, shape=plate)
    image = matplotlib.image.imread(tree.draw(tmp_path / "plates.png", camera=(0, -1, 0), hide="grid").path)
    # Seen along y, the red plate is nearer on the left, and the blue one on the right of the line where they cross.
    assert image[240, 200:310].argmax(axis=1).tolist() == [0] * 110
    assert image[240, 330:440].argmax(axis=1).tolist() == [2] * 110


def test_of_surfaces_in_one_plane_the_last_one_is_seen(tmp_path) -> None:
    tree = sd.KinematicTree(gravity=(0, 0, 0))
    for name, color, angle in (("a", (1, 0, 0), 0.0), ("b", (0, 0, 1), 0.3)):
        plate = sd.Shape.box((1, 1, 0.01), color=color, pose=sd.screw.exp([0, 0, angle, 0, 0, 0]))
        tree.attach(sd.Inertia.point(1.0), to="base", name=name, shape=plate)
    image = matplotlib.image.imread(tree.draw(tmp_path / "plates.png", hide="grid").path)
    assert (image[220:260, 300:340].argmax(axis=2) == 2).all()


@pytest.mark.parametrize("size", [(320, 200), (200, 320)])
def test_a_picture_has_its_size_and_the_robot_fills_it(tmp_path, size) -> None:
    tree = sd.KinematicTree()
    shape = sd.Shape.box((1, 1, 1), color=(1, 0, 0))
    tree.attach(sd.Inertia.point(1.0), to="base", name="cube", shape=shape)
    image = matplotlib.image.imread(tree.draw(tmp_path / "a.png", size=size, hide=("grid",)).path)
    assert image.shape == (*size[::-1], 3)
    rows, columns = np.nonzero(image[..., 1] < 0.9)
    # Centred, and no farther away than it has to be: the cube's corner towards the camera is seen.
    for found, pixels in ((rows, size[1]), (columns, size[0])):
        assert (
            found.min() > 0 and found.max() < pixels - 1 and abs(found.min() + found.max() + 1 - pixels) < 0.2 * pixels
        )
    assert max(np.ptp(rows) / size[1], np.ptp(columns) / size[0]) > 0.6


@pytest.mark.slow
def test_grid_and_text_are_drawn_unless_hidden(run, tmp_path) -> None:
    def ink(hide):
        with Image.open(run.animate(tmp_path / "run.gif", fps=2, hide=(*hide, *run.tree.links, "crate")).path) as gif:
            return (np.asarray(gif.convert("L")) < 250).mean()

    assert ink(["grid", "text"]) == 0
    assert ink(["grid"]) > 0 and ink(["text"]) > 0


def test_translucent_bodies_have_no_web_of_lines(tmp_path) -> None:
    tree = sd.KinematicTree()
    glass = sd.Shape.box((1, 1, 1), color=(0.9, 0.6, 0.1, 0.45))
    tree.attach(sd.Inertia.point(1.0), to="base", at=(-0.5, -0.5, -0.5), name="glass", shape=glass)
    image = matplotlib.image.imread(tree.draw(tmp_path / "glass.png").path)[..., :3]
    ahead = image[200:240, 200:240]
    assert ahead.mean() < 0.9 and ahead.std(axis=(0, 1)).max() < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("package", ["PIL", "matplotlib"])
def test_without_the_extra_the_error_says_what_to_install(run, tmp_path, monkeypatch, package) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, "screwdyn.views.picture", raising=False)
    with pytest.raises(sd.ScrewdynError, match=rf"\(.*{package}.*\): pip install 'screwdyn\[plot\]'"):
        run.animate(tmp_path / "run.gif")


def test_triangles_cover_the_pixels_whose_centres_are_inside() -> None:
    """By the signs of areas; and those of a plane that is cut into triangles cover each pixel once."""
    rng = np.random.default_rng(0)
    x, y = rng.uniform((-3, -3), (23, 15), (3, 40, 2)).T.swapaxes(1, 2)
    centres = np.stack(np.meshgrid(np.arange(20) + 0.5, np.arange(12) + 0.5), axis=-1)
    found = np.zeros((40, 12, 20), dtype=int)
    np.add.at(found, picture._covered(x, y, 20, 12), 1)
    a, b, c = np.moveaxis(np.stack([x, y], axis=-1), 0, 0)[:, :, None, None]
    areas = [
        np.linalg.det(np.stack([(q - p) + 0 * centres, centres - p], axis=-1)) for p, q in ((a, b), (b, c), (c, a))
    ]
    np.testing.assert_array_equal(found, np.abs(np.sign(areas).sum(axis=0)) == 3)

    # Corners also at centres of pixels, with horizontal and upright edges.
    points = np.concatenate(
        [rng.uniform(-5, 25, (200, 2)), np.stack(np.mgrid[-3:24:2.5, -3:24:2.5], -1).reshape(-1, 2)]
    )
    points = np.concatenate([points, [(-9, -9), (-9, 30), (30, -9), (30, 30)]])
    corners = points[Triangulation(*points.T).triangles].T
    once = np.zeros((12, 20), dtype=int)
    np.add.at(once, picture._covered(*corners, 20, 12)[1:], 1)
    assert (once == 1).all()


def test_of_a_closed_surface_only_the_front_is_painted() -> None:
    cube, far = box((1, 1, 1), (1, 0, 0, 1)), box((1, 1, 1), (1, 0, 0, 1)).placed(sd.screw.pose(np.eye(3), (1, 1, 0)))
    # Both have an edge in common, which four triangles share.
    both = Solid(np.concatenate([cube.vertices, far.vertices]), np.concatenate([cube.faces, far.faces + 8]), cube.color)
    assert picture._Surface(both, 1e-3).closed
    assert not picture._Surface(Solid(cube.vertices, cube.faces[:-1], cube.color), 1e-3).closed  # a hole
    assert not picture._Surface(Solid(cube.vertices, cube.faces[:, ::-1], cube.color), 1e-3).closed  # inside out


def test_distinct_rows_are_those_of_numpy() -> None:
    rows = np.random.default_rng(0).integers(-2, 3, (200, 3)) * 0.5
    for found, expected in zip(distinct(rows), np.unique(rows, axis=0, return_inverse=True), strict=True):
        np.testing.assert_array_equal(found, expected.reshape(found.shape))
