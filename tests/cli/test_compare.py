import numpy as np
import pytest

import screwdyn as sd
from screwdyn.cli.main import main


def written(folder, name):
    path = folder / f"{name}.json"
    path.write_text(getattr(sd.robots, name)().to_json())
    return str(path)


@pytest.mark.slow
def test_a_table_and_a_figure(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    arm = sd.robots.two_link()
    sd.simulate(arm, sd.State(arm, [0.1, 0.2], [0.3, 0]), 0.2, step=0.02).to_csv("run.csv")
    ranges = ["--limits", "two_link:theta1=0,1.5", "--limits", f"two_link:theta2=0,{np.pi}"]
    assert main(["compare", written(tmp_path, "two_link"), "--path", "run.csv", "--output", "arms.png", *ranges]) == 0
    out = capsys.readouterr().out
    assert "two_link" in out.splitlines()[0] and "workspace" in out and str(tmp_path / "arms.png") in out
    # ∫∫ l1 l2 |sin theta2| over the ranges
    size = next(line for line in out.splitlines() if line.startswith("workspace")).split()[1]
    assert abs(float(size) - 3) < 0.1
    assert (tmp_path / "arms.png").read_bytes().startswith(b"\x89PNG")


def test_ranges_of_joints_are_options(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    arm = written(tmp_path, "planar_rp")
    assert main(["compare", arm]) == 2
    err = capsys.readouterr().err
    assert "'b2' of 'planar_rp' can slide without end" in err and "--limits planar_rp:b2=0,1" in err
    for given, message in (
        ("planar_rp:b2=0", "--limits is given as NAME:POSITION=LOW,HIGH; got 'planar_rp:b2=0'"),
        ("planar_rp:b2", "--limits is given as NAME:POSITION=LOW,HIGH; got 'planar_rp:b2'"),
        ("planar_pr:b2=0,1", "there is no robot 'planar_pr'; did you mean 'planar_rp'"),
        ("planar_rp:b3=0,1", "there is no position of 'planar_rp' 'b3'; did you mean 'b2'"),
        ("planar_rp:b2=0,inf", "'b2' of 'planar_rp' must be two finite numbers (low, high); got (0.0, inf)"),
    ):
        assert main(["compare", arm, "--limits", given]) == 2
        assert message in capsys.readouterr().err


def test_errors_name_columns_and_files(tmp_path, capsys):
    arm, other = written(tmp_path, "two_link"), written(tmp_path, "pelican")
    path, figure = tmp_path / "path.csv", str(tmp_path / "arms.png")
    path.write_text("t,q:theta1,q:theta2\n")
    assert main(["compare", arm, other, "--path", str(path), "--output", figure]) == 2
    assert "no samples" in capsys.readouterr().err
    path.write_text("t,q:theta1\n")
    assert main(["compare", arm, "--path", str(path), "--output", figure]) == 2
    assert "no column 'q:theta2'" in capsys.readouterr().err
    assert main(["compare", arm, arm, "--output", figure]) == 2
    assert "given twice" in capsys.readouterr().err
    assert main(["compare", arm, "--tip", "hand", "--output", figure]) == 2
    assert "there is no link 'hand'" in capsys.readouterr().err
    assert main(["compare", arm, "--output", str(tmp_path / "arms.txt")]) == 2
    assert "its name must end in" in capsys.readouterr().err
