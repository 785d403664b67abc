"""Shapes of URDF files: read, written and wrong."""

import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import screwdyn as sd
from screwdyn import KinematicTree, Shape
from screwdyn.io import check_urdf
from screwdyn.testing import random_pose


def robot(*inside, globally=""):
    """A robot whose link a has some elements, one per line; the first is on line 3."""
    lines = ['<robot name="r">', '<link name="a">', *inside, "</link>", globally, "</robot>"]
    return "\n".join(lines)


def visual(body, more="", tag="visual"):
    return f"<{tag}>{more}<geometry>{body}</geometry></{tag}>"


def shapes(text, **given):
    return KinematicTree.from_urdf(text, **given).shapes("a")


BALL = '<sphere radius="0.5"/>'


@pytest.mark.parametrize(
    ("body", "shape"),
    [
        ('<box size="0.1 0.2 0"/>', Shape.box((0.1, 0.2, 0))),
        ('<cylinder radius="0.1" length="0.2"/>', Shape.cylinder(0.1, 0.2)),
        ('<capsule radius="0.1" length="0.2"/>', Shape.capsule(0.1, 0.2)),
        ('<sphere radius="0.1"/>', Shape.sphere(0.1)),
    ],
)
@pytest.mark.parametrize("use", ["visual", "collision"])
def test_every_body_is_read(body, shape, use):
    (found,) = shapes(robot(visual(body, '<origin xyz="1 2 3" rpy="0 0 1.5707963267948966"/>', use)))
    assert (found.kind, found.size, found.use, found.color) == (shape.kind, shape.size, use, None)
    assert_allclose(found.pose, [[0, -1, 0, 1], [1, 0, 0, 2], [0, 0, 1, 3], [0, 0, 0, 1]], atol=1e-15)


def test_a_mesh_is_the_path_of_its_file(tmp_path):
    (tmp_path / "arm" / "urdf").mkdir(parents=True)
    mesh = tmp_path / "arm" / "link.stl"
    mesh.touch()
    path = tmp_path / "arm" / "urdf" / "arm.urdf"
    names = ["package://arm/link.stl", "../link.stl", f"file://{mesh}", str(mesh)]
    path.write_text(robot(*(visual(f'<mesh filename="{name}" scale="1 2 -1"/>') for name in names)))
    assert KinematicTree.from_urdf(path).shapes("a") == (Shape.mesh(mesh, (1, 2, -1)),) * 4
    (once,) = shapes(robot(visual('<mesh filename="package://arm/link.stl"/>')), package_dirs=tmp_path)
    assert once == Shape.mesh(mesh)


def test_missing_meshes_are_one_warning_that_names_them():
    names = [f"package://arm/{k}.stl" for k in (0, 1, 1)]
    text = robot(visual(BALL), *(visual(f'<mesh filename="{name}"/>') for name in names))
    with pytest.warns(sd.ScrewdynWarning) as caught:
        found = shapes(text)
    (warning,) = caught
    assert Path(warning.filename).name == "test_urdf_shapes.py"
    (problem,) = check_urdf(text)
    assert str(problem) in str(warning.message)
    assert (problem.line, problem.severity) == (4, "warning")
    assert problem.message == "2 meshes are missing: package://arm/0.stl, package://arm/1.stl"
    assert "package_dirs=" in problem.hint
    assert "ROS_PACKAGE_PATH" in problem.hint
    # The names are kept.
    assert [shape.path for shape in found] == [None, *names]
    with pytest.raises(sd.URDFError, match="meshes are missing"):
        shapes(text, strict=True)


def test_many_missing_meshes_are_no_flood():
    (problem,) = check_urdf(robot(*(visual(f'<mesh filename="{k}.stl"/>') for k in range(1000))))
    assert problem.message.startswith("1000 meshes are missing: 0.stl, 1.stl")
    assert len(str(problem)) < 500


def test_colours_of_materials():
    def material(name, rgba=""):
        return f'<material name="{name}">{f"<color rgba={rgba!r}/>" if rgba else ""}</material>'

    materials = [
        *(material("own", "0 0 1 1"), material("global"), material("later"), material("", "0 1 0 0.5")),
        *(material("global", "1 1 1 1"), material("unknown"), ""),
    ]
    text = robot(
        *(visual(BALL, more) for more in materials),
        visual(BALL, material("later", "0.5 0.5 0.5 1")),
        globally=material("global", "1 0 0 1"),
    )
    grey = (0.5, 0.5, 0.5, 1)
    expected = [(0, 0, 1, 1), (1, 0, 0, 1), grey, (0, 1, 0, 0.5), (1, 0, 0, 1), None, None, grey]
    assert [shape.color for shape in shapes(text)] == expected


def test_shapes_of_links_behind_fixed_joints_stay_with_them():
    text = robot(
        visual(BALL),
        globally='<link name="b"><visual><geometry><box size="1 1 1"/></geometry></visual></link>'
        '<joint name="j" type="fixed"><parent link="a"/><child link="b"/></joint>',
    )
    tree = KinematicTree.from_urdf(text, floating_base=True)
    assert [tree.shapes(link) for link in tree.links] == [(), (Shape.sphere(0.5),), (Shape.box((1, 1, 1)),)]


@pytest.mark.parametrize(
    ("element", "words"),
    [
        (visual('<box size="1 1"/>'), "size='1 1' has 2; expected 3 numbers"),
        (visual('<box size="1 -1 1"/>'), "the edge y of a box must be >= 0 m; got -1; the shape is left out"),
        (visual("<box/>"), "the attribute 'size' is missing"),
        (visual('<cylinder radius="1"/>'), "the attribute 'length' is missing"),
        (visual('<cylinder radius="nan" length="1"/>'), "nan is not a finite number"),
        (visual('<sphere radius="${r}"/>'), "is not a number"),
        (visual('<mesh scale="1 1 1"/>'), "the attribute 'filename' is missing or empty; the shape is left out"),
        (visual('<mesh filename=""/>'), "the attribute 'filename' is missing or empty"),
        (visual('<mesh filename="a.stl" scale="0 1 1"/>'), "the scale x of a mesh must not be 0"),
        (visual('<mesh filename="a.stl" scale="0.001"/>'), "expected 3 numbers"),
        (visual('<mesh filename="$(find arm)/a.stl"/>'), "the mesh is missing: $(find arm)/a.stl"),
        (visual("<cone/>"), "<geometry> has none of box, cylinder, capsule, sphere, mesh; the shape is left out"),
        (visual(BALL + BALL), "<geometry> has several bodies"),
        ("<visual/>", "<geometry> has none of"),
        (visual(BALL, '<origin xyz="a b c"/>'), "'a' is not a number"),
        (visual(BALL, '<origin quat_xyzw="0 0 0 1"/>'), "quat_xyzw is not supported"),
        (visual(BALL, '<material name="m"><color rgba="1 0 0"/></material>'), "expected 4 numbers"),
        (visual(BALL, '<material name="m"><color rgba="255 0 0 1"/></material>'), "are not from 0 to 1"),
        (visual(BALL, '<material name="m"><color/></material>'), "the attribute 'rgba' is missing"),
    ],
)
def test_a_wrong_shape_is_a_warning_and_the_robot_is_read(element, words):
    text = robot(visual(BALL), element, visual(BALL))
    problems = check_urdf(text)
    assert any(problem.line == 4 and problem.severity == "warning" and words in str(problem) for problem in problems)
    with pytest.warns(sd.ScrewdynWarning):
        found = shapes(text)
    assert found[0] == found[-1] == Shape.sphere(0.5)
    assert len(found) in (2, 3)


def every_shape(rng):
    """A shape of each kind that URDF has, each on a pose of its own."""
    options = [
        {"use": "collision"},
        {"color": (0.1, 0.2, 0.3)},
        {"color": (0.1, 0.2, 0.3, 0.5)},
        {"color": (0.1, 0.2, 0.3)},
    ]
    makes = [
        lambda **given: Shape.box((0.1, 1 / 3, 0.2), **given),
        lambda **given: Shape.cylinder(0.1, 1 / 7, **given),
        lambda **given: Shape.sphere(0.1, **given),
        lambda **given: Shape.mesh(Path(__file__), (1, -1, 0.001), **given),
    ]
    return [make(pose=random_pose(rng), **given) for make, given in zip(makes, options, strict=True)]


def test_shapes_come_back():
    tree = sd.robots.two_link()
    given = every_shape(np.random.default_rng(0))
    tree.attach(sd.Link("tool"), to="link2", joint=sd.revolute("x", (0, 1, 0)), name="tool", shape=given)
    tree.attach(sd.Link("bare"), to="tool", shape=Shape.sphere(0.1))
    with pytest.warns(sd.ScrewdynWarning, match="no place"):  # for gravity
        text = tree.to_urdf()
    twin = KinematicTree.from_urdf(text, strict=True)
    assert twin.shapes("bare") == (Shape.sphere(0.1),)
    for found, shape in zip(twin.shapes("tool"), given, strict=True):
        assert_allclose(found.pose, shape.pose, atol=1e-15)
        assert Shape(found.kind, found.size, found.path, shape.pose, found.color, found.use) == shape
    # Three of them have two colours.
    assert text.count('<material name="color_1">') == 2
    assert text.count('<material name="color_2">') == 1


def test_a_capsule_is_written_as_a_cylinder_and_two_spheres():
    tree = KinematicTree(sd.Link("a", None, Shape.capsule(0.1, 1.0, pose=(1, 2, 3), color=(1, 0, 0))))
    red = {"color": (1, 0, 0)}
    ends = (Shape.sphere(0.1, pose=(1, 2, z), **red) for z in (3.5, 2.5))
    assert shapes(tree.to_urdf()) == (Shape.cylinder(0.1, 1.0, pose=(1, 2, 3), **red), *ends)


def test_what_urdf_cannot_say_of_shapes():
    tree = KinematicTree(sd.Link("a", None, Shape.sphere(0.1, color=(1, 0, 0), use="collision")))
    with pytest.warns(sd.ScrewdynWarning, match="the colours of collision shapes of link 'a'"):
        assert shapes(tree.to_urdf()) == (Shape.sphere(0.1, use="collision"),)
    tree.set_shapes("a", Shape.mesh("a\0.stl"))
    with pytest.raises(sd.URDFError, match=r"the path 'a\\x00\.stl' of a mesh contains"):
        tree.to_urdf()


def test_meshes_are_not_read(tmp_path):
    (tmp_path / "a.stl").write_bytes(b"no mesh")
    path = tmp_path / "a.urdf"
    path.write_text(robot(visual('<mesh filename="a.stl"/>')))
    tree = KinematicTree.from_urdf(path)
    twin = pickle.loads(pickle.dumps(tree))
    assert twin.shapes("a") == KinematicTree.from_json(tree.to_json()).shapes("a") == tree.shapes("a")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert shapes(tree.to_urdf()) == tree.shapes("a")


def test_collision_elements_touch():
    """Those of both links serve as they are; what links look like does not count beside them."""
    text = """<robot name="lift"><link name="table"><visual><geometry><sphere radius="9"/></geometry></visual>
      <collision><origin xyz="0 0 -0.1"/><geometry><box size="1 1 0.2"/></geometry></collision></link>
      <link name="load"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
        <collision><origin xyz="0 0 0.5"/><geometry><sphere radius="0.1"/></geometry></collision>
        <collision><origin xyz="0.2 0 0.5"/><geometry><box size="0.1 0.1 0.1"/></geometry></collision></link>
      <joint name="slide" type="prismatic"><parent link="table"/><child link="load"/><axis xyz="0 0 1"/>
        <limit effort="1" velocity="1" lower="-1" upper="1"/></joint></robot>"""
    tree = sd.KinematicTree.from_urdf(text)
    tree.touch("load", "table", radius=0.01)
    gaps = tree.contact_gaps([-0.3])
    np.testing.assert_allclose([gaps[0], gaps[1:].min()], [0.1, 0.15], atol=1e-15)
