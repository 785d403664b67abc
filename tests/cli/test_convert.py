"""Conversion between file formats by the command line."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import screwdyn as sd
from screwdyn.cli.main import main

ARM = Path(__file__).parents[1] / "data" / "urdf" / "arm.urdf"


def command(capsys, *arguments):
    code = main([str(a) for a in arguments])
    return code, *capsys.readouterr()


def test_from_urdf_to_json_and_back(capsys, tmp_path):
    there, back = tmp_path / "arm.json", tmp_path / "back.URDF"
    assert command(capsys, "convert", ARM, there) == (0, "", "")
    assert command(capsys, "convert", there, back) == (0, "", "")
    arm = sd.KinematicTree.from_urdf(ARM)
    q = np.linspace(0.1, 0.4, arm.nv)
    assert_array_equal(sd.KinematicTree.from_json(there).mass_matrix(q), arm.mass_matrix(q))
    assert_allclose(sd.KinematicTree.from_urdf(back).mass_matrix(q), arm.mass_matrix(q), rtol=1e-13, atol=1e-14)
    assert back.read_text(encoding="utf-8").startswith('<robot name="arm">')


def test_shapes_are_kept_and_counted(capsys, tmp_path):
    there, back, mesh = tmp_path / "arm.json", tmp_path / "there" / "back.urdf", tmp_path / "a.stl"
    back.parent.mkdir()
    mesh.touch()
    arm, looks = sd.KinematicTree.from_urdf(ARM), (sd.Shape.mesh(mesh), sd.Shape.sphere(0.1))
    for link in arm.links[:2]:
        arm.set_shapes(link, looks)
    there.write_text(arm.to_json(), encoding="utf-8")
    assert command(capsys, "convert", there, back) == (0, "", "")
    assert sd.KinematicTree.from_urdf(back).shapes(arm.base) == looks
    code, out, _ = command(capsys, "info", back)
    assert code == 0
    assert "links with shapes: 2" in out.splitlines()


def test_a_floating_base(capsys, tmp_path):
    there = tmp_path / "arm.json"
    assert command(capsys, "convert", "--floating-base", ARM, there) == (0, "", "")
    assert sd.KinematicTree.from_json(there).base == "world"
    code, out, err = command(capsys, "convert", "--floating-base", there, tmp_path / "arm.urdf")
    assert (code, out) == (2, "")
    assert "--floating-base is for URDF" in err


def test_info_shows_json(capsys, tmp_path):
    path = tmp_path / "arm.json"
    path.write_text(sd.robots.two_link().to_json(), encoding="utf-8")
    code, out, _ = command(capsys, "info", path)
    assert code == 0
    assert out.startswith(str(sd.robots.two_link()))


def test_what_is_lost_is_said(capsys, tmp_path):
    path = tmp_path / "arm.json"
    path.write_text(sd.robots.pelican().to_json(), encoding="utf-8")
    code, _, err = command(capsys, "convert", path, tmp_path / "arm.urdf")
    assert code == 0
    assert "warning: URDF has no place for" in err


@pytest.mark.parametrize(
    ("source", "target", "words"),
    [
        ("arm.urdf", "arm.dae", "its suffix must be .urdf, .json or .xml"),
        ("arm.urdf", "arm.urdf", "is both the source and the target"),
        ("arm.urdf", "nowhere/arm.json", "No such file"),
        ("missing.json", "arm.urdf", "cannot read the file 'missing.json': No such file or directory\n"),
        ("missing.urdf", "arm.json", "cannot read the file 'missing.urdf': No such file or directory\n"),
        ("nut.jso", "arm.json", "cannot read 'nut.jso': its suffix must be .urdf, .xacro, .json or .xml\n"),
        ("broken.json", "arm.urdf", "not valid JSON"),
        ("nut.json", "nut.urdf", "'thread' has the helical freedom"),
        ("nut.json", "nut.xml", "'thread' has the helical freedom"),
    ],
)
def test_what_cannot_be_converted(capsys, tmp_path, monkeypatch, source, target, words):
    monkeypatch.chdir(tmp_path)
    Path("arm.urdf").write_bytes(ARM.read_bytes())
    Path("broken.json").write_text("{", encoding="utf-8")
    nut = sd.KinematicTree()
    nut.attach(sd.Inertia(1.0), to="base", joint=sd.helical("z", 0.1, name="thread"), name="nut")
    for name in ("nut.json", "nut.jso"):
        Path(name).write_text(nut.to_json(), encoding="utf-8")
    code, out, err = command(capsys, "convert", source, target)
    assert (code, out) == (2, "")
    assert words in err
    assert Path("arm.urdf").read_bytes() == ARM.read_bytes()
    assert not Path("nut.urdf").exists()
