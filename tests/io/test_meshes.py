"""Where meshes are looked for."""

import os
from pathlib import Path

import pytest

from screwdyn import KinematicTree, ScrewdynError
from screwdyn.io.urdf import Meshes


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A folder with packages, without any of the environment."""
    for name in ("ws/arm/meshes/a.stl", "ws/arm/urdf/x", "ws/arm-main/meshes/b.stl", "other/hand/c d.stl", "e.stl"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    for name in ("ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def found(files, name, **given):
    path = Meshes(**given).find(name)
    return None if path is None else Path(path).relative_to(files).as_posix()


def test_packages_above_the_file(files):
    beside = {"folder": files / "ws/arm/urdf"}
    assert found(files, "package://arm/meshes/a.stl", **beside) == "ws/arm/meshes/a.stl"
    assert found(files, "package:///arm/meshes/a.stl", **beside) == "ws/arm/meshes/a.stl"
    assert found(files, "model://arm/meshes/a.stl", **beside) == "ws/arm/meshes/a.stl"
    assert found(files, "package://arm/meshes/b.stl", **beside) is None
    # A clone of the package in a folder with another name.
    assert found(files, "package://arm/meshes/b.stl", folder=files / "ws/arm-main/urdf") == "ws/arm-main/meshes/b.stl"
    assert found(files, "package://hand/c d.stl", **beside) is None
    assert found(files, "package://arm/meshes/a.stl") is None


@pytest.mark.parametrize(
    "place", ["src/leg", "src/repository/leg", "src/a/b/leg", "install/leg/share/leg", "install/share/leg"]
)
def test_packages_of_a_workspace(files, place):
    path = files / "ws" / place / "f.stl"
    path.parent.mkdir(parents=True)
    path.touch()
    assert found(files, "package://leg/f.stl", folder=files / "ws/src/arm/urdf") == f"ws/{place}/f.stl"
    assert found(files, "package://l[e]g/f.stl", folder=files / "ws/src/arm/urdf") is None
    assert found(files, "package://leg/f.stl", folder=files / "other") is None


def test_packages_in_folders_that_are_given(files):
    for folders in (files / "ws", str(files / "ws"), [files / "other", files / "ws"], [files / "ws/arm"], ["ws"]):
        assert found(files, "package://arm/meshes/a.stl", package_dirs=folders) == "ws/arm/meshes/a.stl"
    assert found(files, "package://arm/meshes/a.stl", package_dirs=[files / "other"]) is None
    assert found(files, "package://arm/meshes/a.stl", package_dirs=[files / "none"]) is None


@pytest.mark.parametrize(("variable", "inside"), [("ROS_PACKAGE_PATH", ""), ("AMENT_PREFIX_PATH", "share")])
def test_packages_of_the_environment(files, monkeypatch, variable, inside):
    path = files / "install" / inside / "leg" / "f.stl"
    path.parent.mkdir(parents=True)
    path.touch()
    assert found(files, "package://leg/f.stl") is None
    monkeypatch.setenv(variable, os.pathsep.join(["", str(files / "other"), str(files / "install")]))
    assert Meshes().find("package://leg/f.stl") == str(path)


def test_files_and_paths(files):
    beside = {"folder": files / "ws/arm/urdf"}
    assert found(files, "../meshes/a.stl", **beside) == "ws/arm/meshes/a.stl"
    assert found(files, f"file://{files}/e.stl", **beside) == "e.stl"
    assert found(files, f"file://{files}/other/hand/c%20d.stl") == "other/hand/c d.stl"
    assert found(files, f"{files}/other/hand/c d.stl") == "other/hand/c d.stl"
    assert found(files, "e.stl") == "e.stl"  # of a text: in the present folder
    assert found(files, "e.stl", **beside) is None
    assert found(files, "hand/c d.stl", folder=files / "ws", package_dirs="other") == "other/hand/c d.stl"


@pytest.mark.parametrize(
    "name",
    [
        "",
        "/",
        "package://",
        "package://arm",
        "package://\0/a",
        "package://*/urdf/x",
        "package://../ws/e",
        "file://",
        "http://a/b.stl",
        "\0",
        "x" * 9999,
    ],
)
def test_names_without_a_file(files, name):
    assert found(files, name, folder=files / "ws", package_dirs=[files / "ws"]) is None


@pytest.mark.parametrize("wrong", [3, [3], [None], b"a"])
def test_folders_are_paths(wrong):
    with pytest.raises(ScrewdynError, match="package_dirs are paths of folders; got"):
        KinematicTree.from_urdf("<robot><link name='a'/></robot>", package_dirs=wrong)
