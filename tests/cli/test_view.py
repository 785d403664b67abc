from pathlib import Path

import numpy as np
from film import recording, replay

import screwdyn as sd
from screwdyn.cli import main
from screwdyn.views.web import Viewer

ARM = Path(__file__).parents[1] / "data" / "urdf" / "arm.urdf"


def test_view_writes_a_page(tmp_path, capsys) -> None:
    tree = sd.KinematicTree.from_urdf(ARM)
    name = tree.positions[0]
    assert main(["view", str(ARM), "--q", f"{name}=0.4", "--html", str(tmp_path / "arm.html")]) == 0
    assert capsys.readouterr().out == f"Page: {tmp_path / 'arm.html'}\n"
    played = recording((tmp_path / "arm.html").read_text())
    assert played["durationSeconds"] == 0
    link = tree.links[-1]
    T = tree.forward_kinematics(link, sd.State(tree, {name: 0.4}).q)
    np.testing.assert_allclose(replay(played, f"/links/{link}", 0.0)[1], T[:3, 3], atol=1e-5)


def test_view_opens_the_browser_and_waits_for_ctrl_c(monkeypatch, capsys) -> None:
    opened = []

    def interrupt(viewer: Viewer) -> None:
        opened.append(viewer)
        raise KeyboardInterrupt

    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr(Viewer, "wait", interrupt)
    assert main(["view", str(ARM)]) == 130
    url, viewer = opened
    assert viewer.url == url == capsys.readouterr().out.strip() and "closed" in repr(viewer)


def test_wrong_positions_are_refused(capsys) -> None:
    assert main(["view", str(ARM), "--q", "0.4"]) == 2
    assert "--q must be POSITION=VALUE with a number, such as elbow=0.5; got '0.4'" in capsys.readouterr().err
    assert main(["view", str(ARM), "--q", "nothing=0.4"]) == 2
    assert "there is no coordinate 'nothing'" in capsys.readouterr().err
