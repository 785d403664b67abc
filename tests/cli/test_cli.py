import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

import screwdyn as sd
from screwdyn.cli.main import main

DATA = Path(__file__).parents[1] / "data"
ARM = DATA / "urdf" / "arm.urdf"
BAD = DATA / "urdf_bad"
ERRORS = {
    "comma": 3,
    "cycle": 4,
    "entities": 1,
    "missing_parent": 4,
    "neg_mass": 3,
    "trunc": 3,
    "two_parents": 4,
    "unknown_type": 4,
    "zero_axis": 4,
}


def command(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main([str(a) for a in arguments])
    return code, *capsys.readouterr()


# check


@pytest.mark.parametrize("name, line", ERRORS.items())
def test_check_names_the_line_of_every_error(capsys: pytest.CaptureFixture[str], name: str, line: int) -> None:
    path = BAD / f"{name}.urdf"
    code, out, err = command(capsys, "check", path)
    assert (code, err) == (1, "")
    *problems, count = out.splitlines()
    pattern = re.compile(rf"{re.escape(str(path))}:\d+: (error|warning): <[^:]+>: .+")
    assert all(pattern.fullmatch(problem) for problem in problems)
    assert any(problem.startswith(f"{path}:{line}: error: ") for problem in problems)
    assert re.fullmatch(rf"{re.escape(str(path))}: 1 error, \d warnings?", count)


def test_every_bad_file_is_tried() -> None:
    assert {path.stem for path in BAD.glob("*.urdf")} == {*ERRORS, "mimic_missing", "ok", "tri"}


def test_check_accepts_a_good_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(capsys, "check", BAD / "ok.urdf") == (0, f"{BAD / 'ok.urdf'}: 0 errors, 0 warnings\n", "")


def test_check_lets_a_dangling_mimic_pass(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = command(capsys, "check", BAD / "mimic_missing.urdf")
    assert (code, err) == (0, "")
    assert "4: warning: <mimic> of <joint name=\"k\">: mimics an unknown joint 'nope'" in out


def test_check_lets_warnings_pass(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = command(capsys, "check", BAD / "tri.urdf")
    assert (code, err) == (0, "")
    assert f'{BAD / "tri.urdf"}:3: warning: <inertial> of <link name="b">: principal moments' in out
    assert out.endswith("0 errors, 1 warning\n")


@pytest.mark.parametrize("verb", ["check", "info"])
def test_files_that_cannot_be_opened(capsys: pytest.CaptureFixture[str], tmp_path: Path, verb: str) -> None:
    for path, reason in ((tmp_path / "missing.urdf", "No such file"), (tmp_path, "Is a directory")):
        code, out, err = command(capsys, verb, path)
        assert (code, out) == (2, "")
        assert err.startswith(f"screwdyn: cannot read the file {str(path)!r}: {reason}")
        assert "text" not in err
        assert "Traceback" not in err


def test_a_file_name_that_begins_like_xml_is_still_a_file_name(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = command(capsys, "check", "<robot/>")
    assert code == 2
    assert "cannot read the file '<robot/>'" in err


@pytest.mark.parametrize("content", [b"\x7fELF\x02\x01\x01\x00\x93\xff", b"", b"\x00" * 100, b"\xff\xfe<\x00"])
def test_a_file_that_is_no_text(capsys: pytest.CaptureFixture[str], tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "robot.urdf"
    path.write_bytes(content)
    code, out, err = command(capsys, "check", path)
    assert (code, err) == (1, "")
    assert ": error: " in out
    for verb in (["info", path], ["demo", "--urdf", path, "--output", tmp_path / "a.png"]):
        code, out, err = command(capsys, *verb)
        assert (code, out) == (2, "")
        assert err.startswith("screwdyn: 1 problem in ")


# info


def test_info_shows_tree_masses_and_coordinates(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = command(capsys, "info", ARM)
    assert (code, err) == (0, "")
    tree = sd.KinematicTree.from_urdf(ARM)
    assert out.startswith(str(tree))
    for fact in ("base: foot", "links: 7", "coordinates: 4", "mass: 13.4 kg"):
        assert fact in out.splitlines()
    table = [re.split(r"  +", row) for row in out.splitlines()[-4:]]
    assert table == [
        ["turn", "revolute", "-2 to 1.5 rad", "active", "0.25", "0.5"],
        ["push", "prismatic", "-0.1 to 0.4 m", "active", "0", "0"],
        ["spin", "revolute", "none", "active", "0", "0"],
        ["bend", "revolute", "-1 to 1 rad", "active", "0", "0"],
    ]


def test_info_lists_freedoms_and_positions_of_joints_with_several(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = command(capsys, "info", "--floating-base", ARM)
    assert code == 0
    assert out.splitlines()[:2] == ["world", "└─ foot [passive free base] 7 kg"]
    for fact in ("base: world", "coordinates: 10", "positions: 11"):
        assert fact in out.splitlines()
    *_, joints, freedoms = out.split("\n\n")
    assert re.split(r"  +", joints.splitlines()[1]) == ["base", "free", "none", "passive", "0", "0"]
    assert len(joints.splitlines()) == 6
    assert [re.split(r"  +", row) for row in freedoms.splitlines()] == [
        ["joint", "freedoms", "positions"],
        ["base", "[wx] [wy] [wz] [vx] [vy] [vz]", "[x] [y] [z] [w] [px] [py] [pz]"],
    ]


def test_info_of_a_robot_that_cannot_move(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "block.urdf"
    path.write_text('<robot name="block"><link name="block"/></robot>')
    code, out, _ = command(capsys, "info", path)
    assert code == 0
    assert out.splitlines() == ["block", "", "base: block", "links: 1", "coordinates: 0", "mass: 0 kg"]
    code, _, err = command(capsys, "demo", "--urdf", path, "--output", tmp_path / "a.png")
    assert code == 2
    assert err == "screwdyn: no joint moves link 'block'; the robot has no movable joint, and the demo needs one\n"


def test_info_warns_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = command(capsys, "info", BAD / "tri.urdf")
    assert code == 0
    assert out.startswith("a")
    assert err.startswith(f"screwdyn: warning: 1 problem in {BAD / 'tri.urdf'}\n")
    assert ".py" not in err


def test_info_of_a_broken_file_lists_its_problems(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = command(capsys, "info", BAD / "zero_axis.urdf")
    assert (code, out) == (2, "")
    assert "line 4, <axis>" in err


# demo


@pytest.mark.slow
def test_code_is_made_beforehand(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """In a process of its own, which finds nothing in memory."""
    file = tmp_path / "arm.json"
    file.write_text(sd.robots.two_link().to_json(), encoding="utf-8")
    for cache, code in ((str(tmp_path), 0), ("off", 2)):
        command, environment = ["-m", "screwdyn", "warm-up", str(file)], {**os.environ, "SCREWDYN_CACHE": cache}
        done = subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True)
        assert (done.returncode, "code is not kept on disk" in done.stderr) == (code, code == 2)
        # Of the robot, of two derivatives, of seven functions, and of a step of rollouts.
        assert len([x for x in tmp_path.rglob("*") if x.is_file()]) >= 11


def test_demo_with_a_robot_of_ones_own(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("screwdyn.cli.demo.SAMPLES", 100)
    code, out, err = command(capsys, "demo", "--urdf", ARM, "--to", "tool0", "--output", tmp_path / "a.png")
    # Not a terminal: no progress bar, at most a word about the first compilation.
    assert (code, [words for words in err.splitlines() if "compiling" not in words]) == (0, [])
    assert "tool0 picks up a crate" in out
    assert (tmp_path / "a.png").stat().st_size > 10_000
    with Image.open(tmp_path / "a.png") as image:
        # The least letters, of 7 points, where a phone shows the figure 358 pixels wide.
        assert 7 / 72 * image.info["dpi"][0] / image.width * 358 > 6


def test_demo_with_an_unknown_link_names_the_near_ones(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, err = command(capsys, "demo", "--to", "toool0", "--output", tmp_path / "a.png")
    assert (code, out) == (2, "")
    assert err == "screwdyn: there is no link 'toool0'; did you mean 'tool0'?\n"
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["nowhere/a.png", "arm.urdf"])
def test_demo_refuses_a_bad_place_for_its_figure(capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str) -> None:
    code, out, err = command(capsys, "demo", "--output", tmp_path / name)
    assert (code, out) == (2, "")
    assert err.startswith("screwdyn: cannot ")


def test_an_interruption_is_no_traceback(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("screwdyn.cli.demo.demo", interrupted)
    assert command(capsys, "demo") == (130, "", "\nscrewdyn: interrupted\n")


# the command itself


@pytest.mark.parametrize("arguments", [[], ["dance"], ["check"], ["info", "a", "b"], ["demo", "--speed"]])
def test_wrong_usage(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert "usage: screwdyn" in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"screwdyn {sd.__version__}\n"


@pytest.mark.slow
def test_the_package_runs_as_a_module_even_where_only_ascii_can_be_shown() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "utf8=0", "-m", "screwdyn", "info", str(ARM)],
        capture_output=True,
        check=False,
        env={"PYTHONIOENCODING": "ascii", "PYTHONPATH": ":".join(sys.path)},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"?? turret [revolute turn] 3.1 kg" in done.stdout


def shell(line: str) -> subprocess.CompletedProcess[str]:
    environment = {"PYTHONPATH": ":".join(sys.path), "PATH": "/usr/bin:/bin"}
    return subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False, env=environment)


@pytest.mark.slow
def test_a_full_disk_and_a_closed_pipe() -> None:
    info = f"{sys.executable} -m screwdyn info {ARM}"
    full = shell(f"{info} > /dev/full")
    assert (full.returncode, full.stderr) == (2, "screwdyn: [Errno 28] No space left on device\n")
    left = shell(f"({info}; echo code $? >&2) | true")
    assert left.stderr == "code 0\n"
