"""Xacro: expansion, and the errors if it is impossible."""

import sys
from pathlib import Path

import pytest
from numpy.testing import assert_allclose

from screwdyn import KinematicTree, ScrewdynError, ScrewdynWarning, URDFError
from screwdyn.cli.main import main
from screwdyn.io import check_urdf

HEAD = '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">\n'
MACRO = """<xacro:macro name="body" params="name mass">
<link name="${name}"><inertial><mass value="${mass}"/>
<inertia ixx="${mass * 0.1}" ixy="0" ixz="0" iyy="${mass * 0.1}" iyz="0" izz="${mass * 0.1}"/></inertial></link>
</xacro:macro>
"""
TWO = """<link name="base"/><xacro:body name="arm" mass="${2 * pi}"/>
<joint name="turn" type="continuous"><parent link="base"/><child link="arm"/><origin rpy="0 0 ${pi / 2}"/></joint>
"""


def only_problem(text):
    (problem,) = check_urdf(text, xacro=True)
    return problem


@pytest.mark.parametrize("front", ["", "\n  ", '<?xml version="1.0" encoding="latin-1"?>'])
def test_text_is_expanded(front):
    tree = KinematicTree.from_urdf(front + HEAD + MACRO + TWO + "</robot>", strict=True, xacro=True)
    assert tree.coordinates == ("turn",)
    assert tree.link("arm").inertia.mass == pytest.approx(6.283185307179586, rel=1e-15)
    assert_allclose(tree.forward_kinematics("arm", [0.0])[:2, :2], [[0, -1], [1, 0]], atol=1e-15)


def test_files_are_expanded_with_what_they_include(tmp_path, monkeypatch):
    (tmp_path / "macros.xacro").write_text('<robot xmlns:xacro="http://www.ros.org/wiki/xacro">' + MACRO + "</robot>")
    path = tmp_path / "robot.urdf.xacro"
    path.write_text(HEAD + '<xacro:include filename="macros.xacro"/>' + TWO + "</robot>")
    assert KinematicTree.from_urdf(path).links == ("base", "arm")
    # Files included by a text are searched in the working directory.
    monkeypatch.chdir(tmp_path)
    assert KinematicTree.from_urdf(path.read_text(), xacro=True).links == ("base", "arm")


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    """As a clone of repositories in a workspace of ROS, which has another package installed."""
    for name in ("ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH"):
        monkeypatch.delenv(name, raising=False)
    robot = tmp_path / "ws/src/robots/arm_description/urdf/arm.urdf.xacro"
    files = {
        robot: HEAD
        + '<xacro:include filename="$(find macros)/urdf/body.xacro"/><xacro:include filename="$(find tool)/t.xacro"/>'
        + '<xacro:arg name="mass" default="2"/><link name="base"/><xacro:body name="arm" mass="$(arg mass)"/>'
        + '<joint name="turn" type="continuous"><parent link="base"/><child link="arm"/></joint></robot>',
        tmp_path / "ws/src/common/libraries/macros/urdf/body.xacro": HEAD
        + MACRO.replace(
            "</link>",
            '<visual><geometry><mesh filename="package://macros/m.stl"/></geometry></visual>'
            '<visual><geometry><mesh filename="package://tool/t.stl"/></geometry></visual></link>',
        ).replace("${mass *", "${float(mass) *")
        + "</robot>",
        tmp_path / "ws/src/common/libraries/macros/m.stl": "",
        tmp_path / "ws/install/tool/share/tool/t.xacro": HEAD + "</robot>",
        tmp_path / "ws/install/tool/share/tool/t.stl": "",
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return robot


def test_packages_of_a_workspace_without_ros(workspace):
    tree = KinematicTree.from_urdf(workspace)
    assert tree.link("arm").inertia.mass == 2
    assert [Path(shape.path).name for shape in tree.shapes("arm")] == ["m.stl", "t.stl"]
    assert all(Path(shape.path).is_file() for shape in tree.shapes("arm"))


def test_arguments_of_xacro(workspace):
    for given, mass in (({"mass": 3.5}, 3.5), ({}, 2), (True, 2)):
        assert KinematicTree.from_urdf(workspace, xacro=given).link("arm").inertia.mass == mass


def test_an_argument_that_a_file_does_not_have_is_named(workspace):
    with pytest.warns(ScrewdynWarning, match=r"this xacro has no argument 'mas'.*did you mean 'mass'"):
        KinematicTree.from_urdf(workspace, xacro={"mas": 3.5})
    with pytest.raises(URDFError, match="no argument 'mas'"):
        KinematicTree.from_urdf(workspace, xacro={"mas": 3.5}, strict=True)
    # The same order in every run, and a name that is used without a declaration is known.
    document = (
        HEAD + '<xacro:arg name="a" default="1"/><xacro:arg name="b" default="1"/><link name="$(arg c)"/></robot>'
    )
    assert KinematicTree.from_urdf(document, xacro={"c": "x"}).links == ("x",)
    with pytest.warns(ScrewdynWarning, match=r"no argument 'zzz'; known: a, b, c$"):
        KinematicTree.from_urdf(document, xacro={"zzz": 1, "c": "x"})


def test_arguments_of_xacro_on_the_command_line(workspace, capsys):
    """Also for the robot of a scenario."""
    workspace.write_text(workspace.read_text().replace('default="2"', 'default="unknown"'))
    scenario = workspace.parent / "run.toml"
    scenario.write_text(f'robot = "{workspace.name}"\nduration = 0.1')
    for command in (["info", str(workspace)], ["simulate", str(scenario)]):
        assert main(command) == 2
        assert main([*command, "--xacro-arg", "mass:=5"]) == 0
    assert main(["info", str(workspace), "--xacro-arg", "mass:=5"]) == 0
    assert "mass: 5 kg" in capsys.readouterr().out
    for text in ("mass=5", ":=5"):
        assert main(["info", str(workspace), "--xacro-arg", text]) == 2
        assert "--xacro-arg must be NAME:=VALUE" in capsys.readouterr().err


def test_a_package_that_is_not_found_is_named(workspace, tmp_path):
    from xacro import substitution_args

    own = substitution_args._eval_find
    (tmp_path / "ws/install/tool/share/tool").rename(tmp_path / "elsewhere")
    where = "there is no package 'tool' in package_dirs=, ROS_PACKAGE_PATH, AMENT_PREFIX_"
    with pytest.raises(URDFError, match=where) as found:
        KinematicTree.from_urdf(workspace)
    assert str(found.value).count("no package") == 1 and "<class" not in str(found.value)
    assert substitution_args._eval_find is own
    (tmp_path / "elsewhere").rename(tmp_path / "tool")
    assert KinematicTree.from_urdf(workspace, package_dirs=tmp_path / "tool").link("arm").inertia.mass == 2


def test_problems_after_expansion_say_whose_lines_they_have():
    text = HEAD + MACRO + TWO.replace("${2 * pi}", "-1") + "</robot>"
    note, problem = check_urdf(text, xacro=True)
    assert (note.severity, note.line) == ("warning", 1)
    assert "lines are those of the URDF that it expands to" in note.message
    assert "the mass is negative (-1 kg)" in problem.message
    with pytest.raises(URDFError, match="lines are those of the URDF that it expands to"):
        KinematicTree.from_urdf(text, xacro=True)
    heavy = HEAD + MACRO.replace('izz="${mass * 0.1}"', 'izz="${mass}"') + TWO + "</robot>"
    with pytest.warns(ScrewdynWarning, match="lines are those of the URDF"):
        KinematicTree.from_urdf(heavy, xacro=True)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('<xacro:include filename="no_such_file"/>', 2, "xacro cannot expand this"),
        ('<link name="${prefix}a"/>', 2, "'prefix' is not defined"),
        ('<link name="a"><inertial>\n<mass value="${1 / 0}"/></inertial></link>', 3, "division by zero"),
        ('<link name="$(find nowhere)"/>', 2, "xacro cannot expand this"),
        ('<xacro:property name="p" value="$(eval 1 / 0)"/><link name="${p}"/>', 2, "expand this: division by zero \n"),
        ('<link name="$(env NO_SUCH)"/>', 2, "xacro cannot expand this: environment variable 'NO_SUCH' is not set"),
        ("<xacro:nothing/>", 2, "xacro:nothing"),
        ('<link name="$${a}"/>', 2, "this is still xacro after expansion (name='${a}')"),
    ],
)
def test_what_cannot_be_expanded_is_refused_with_its_line(text, line, words):
    problem = only_problem(HEAD + text + "</robot>")
    assert problem.severity == "error"
    assert words in str(problem)
    assert problem.line == line or "still" in words
    with pytest.raises(URDFError):
        KinematicTree.from_urdf(HEAD + text + "</robot>", xacro=True)


def test_an_encoding_that_is_not_declared_is_named(tmp_path):
    path = tmp_path / "robot.xacro"
    path.write_bytes((HEAD + MACRO + "<!-- Größe --></robot>").encode("latin-1"))
    with pytest.raises(URDFError, match=r"xacro cannot expand this: not well-formed.*; declare its encoding"):
        KinematicTree.from_urdf(path)


def test_without_xacro_installed_the_error_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "xacro", None)
    for text, line in (('<link name="${prefix}a"/>', 2), ('<link name="a"/>\n<xacro:include filename="x"/>', 3)):
        problem = only_problem(HEAD + text + "</robot>")
        assert problem.line == line
        assert "this is xacro, not URDF" in problem.message
        assert problem.hint == "pip install 'screwdyn[xacro]', or expand it first: xacro FILE > robot.urdf"


def test_a_document_type_is_refused_before_anything_is_expanded():
    text = '<!DOCTYPE robot [<!ENTITY a "b">]>' + HEAD + MACRO + "</robot>"
    assert "document types are not allowed" in only_problem(text).message


def test_code_in_a_file_runs_only_where_it_is_asked_for(tmp_path, capsys):
    document = HEAD + "<link name=\"${open('%s', 'w').close() or 1}\"/></robot>"
    mark, path = tmp_path / "mark", tmp_path / "robot.urdf"
    text = document % mark
    path.write_text(text)
    scenario = tmp_path / "run.toml"
    scenario.write_text('robot = "robot.urdf.xacro"\nduration = 0.1')
    (tmp_path / "robot.urdf.xacro").write_text(text)
    advice = "expand it by xacro=True or --xacro, which runs the Python expressions in it"
    for given in (path, text):
        for arguments in ({}, {"xacro": False}):
            with pytest.raises(URDFError, match=advice):
                KinematicTree.from_urdf(given, **arguments)
    for command in (["check", path], ["info", path], ["simulate", scenario]):
        assert main([str(word) for word in command])
        out, err = capsys.readouterr()
        assert advice in out + err
    assert not mark.exists()
    with pytest.raises(ScrewdynError, match=r"xacro must be True or False, .* or arguments .* by name; got 'yes'"):
        KinematicTree.from_urdf(path, xacro="yes")


def test_the_command_line_asks_by_an_option(tmp_path, capsys):
    path, scenario = tmp_path / "robot.urdf", tmp_path / "run.toml"
    path.write_text(HEAD + MACRO + TWO + "</robot>")
    path.with_suffix(".xacro").write_text(path.read_text())
    scenario.write_text('robot = "robot.xacro"\nduration = 0.1')
    for command in (["info", path, "--xacro"], ["info", path.with_suffix(".xacro")], ["simulate", scenario, "--xacro"]):
        assert main([str(word) for word in command]) == 0
        assert "turn" in capsys.readouterr().out
