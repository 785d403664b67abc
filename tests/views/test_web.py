import sys

import numpy as np
import pytest
from film import END, GRASP, RELEASE, recording, replay, swing

import screwdyn as sd
from screwdyn.screws.screw import rotation_of


@pytest.fixture(scope="module")
def run():
    return swing()


@pytest.fixture(scope="module")
def page(run, tmp_path_factory):
    out = tmp_path_factory.mktemp("page") / "run.html"
    animation = run.animate(out, fps=20, show=("com", "momentum"))
    assert animation.path == out
    return animation


@pytest.mark.slow
def test_the_recording_has_the_poses_of_the_run(run, page) -> None:
    played = recording(page.path.read_text())
    assert played["durationSeconds"] == pytest.approx(END + 1 / 20)
    for link in ("upper", "lower", "crate"):
        for t in (0.0, GRASP, 0.35, RELEASE - 0.05) if link != "crate" else (GRASP, 0.35, RELEASE - 0.05):
            visible, position, wxyz = replay(played, f"/links/{link}", t + 1e-6)
            T = run.pose(link, t)
            assert visible
            np.testing.assert_allclose(position, T[:3, 3], atol=2e-5)
            np.testing.assert_allclose(rotation_of(wxyz[[1, 2, 3, 0]]), T[:3, :3], atol=1e-4)


@pytest.mark.slow
def test_the_crate_waits_pale_hangs_and_falls(run, page) -> None:
    played = recording(page.path.read_text())
    for part, shown in (("body 2", (True, False, False)), ("joint", (False, True, False))):
        found = [replay(played, f"/links/crate/{part}", t)[0] for t in (0.1, 0.35, 0.7)]
        assert tuple(found) == shown
    heights = [replay(played, "/links/crate", t)[1][1] for t in (RELEASE + 1e-6, END)]
    assert heights[1] < heights[0] - 0.2
    texts = {m["props"]["text"] for _, m in played["messages"] if m["type"] == "LabelMessage"}
    assert "release crate" in texts and any(text.startswith("grasp crate: ") for text in texts)


@pytest.mark.parametrize("size", [1e-6, 1e-3, 1.0, 1e3])
def test_robots_of_every_size_are_within_the_planes_of_the_camera_and_keep_their_places(tmp_path, size) -> None:
    tree = sd.KinematicTree()
    rod = sd.Inertia.rod(1.0, size, com=(0, 0, size / 2))
    tree.attach(rod, to="base", joint=sd.revolute("x", name="hip"), name="leg")
    tree.attach(rod, to="leg", joint=sd.revolute("x", name="knee"), at=(0, 0, size), name="shank")
    played = recording(tree.draw(tmp_path / "leg.html", [0.5, -0.7]).path.read_text())
    _, position, _ = replay(played, "/links/shank", 0.0)
    np.testing.assert_allclose(position, [0, -size * np.sin(0.5), size * np.cos(0.5)], atol=1e-6 * size)
    said = {m["type"]: m for _, m in played["messages"]}
    eye = np.array(said["SetCameraPositionMessage"]["position"])
    assert said["SetCameraNearMessage"]["near"] < 0.1 * np.linalg.norm(eye)
    assert said["SetCameraFarMessage"]["far"] > 10 * np.linalg.norm(eye)
    assert said["GridMessage"]["props"]["fade_distance"] > 10 * size


def test_a_film_can_be_opened_at_a_moment_and_has_the_name_of_its_file(page, tmp_path) -> None:
    text, still = page.path.read_text(), sd.robots.pelican().draw(tmp_path / "a & b.html").path.read_text()
    assert f"const last = {END};" in text and "location.hash" in text
    assert "const last" not in still
    assert "<title>run</title>" in text and "<title>a &amp; b</title>" in still


def test_a_page_has_all_it_needs(page) -> None:
    text = page.path.read_text()
    assert text.count("<script src=") == 0 and '<link rel="stylesheet"' not in text
    assert len(text) < 1_500_000
    shown = page._repr_html_()
    assert shown.startswith("<iframe srcdoc=") and len(shown) > len(text)


def test_a_film_shows_itself_from_another_folder_too(run, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    film = run.animate("run.html", fps=5)
    monkeypatch.chdir("/")
    assert film.path == tmp_path / "run.html" and film._repr_html_().startswith("<iframe srcdoc=")


def test_nothing_is_printed_and_no_server_stays(run, tmp_path, capfd) -> None:
    run.animate(tmp_path / "run.html", fps=5)
    assert capfd.readouterr() == ("", "")


def test_what_cannot_be_animated_is_refused_before_the_work(run, tmp_path) -> None:
    with pytest.raises(sd.ScrewdynError, match=r"'run.pdf': its name must end in .html"):
        run.animate("run.pdf")
    with pytest.raises(sd.ScrewdynError, match="there is no folder"):
        run.animate(tmp_path / "none" / "run.html")
    run.to_npz(tmp_path / "run.npz")
    with pytest.raises(sd.ScrewdynError, match="has the samples of a run, but not its robot"):
        sd.Run.from_npz(tmp_path / "run.npz").animate(tmp_path / "run.html")


@pytest.mark.parametrize("package", ["rich", "viser"])
def test_without_the_extra_the_error_says_what_to_install(run, tmp_path, monkeypatch, package) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, "screwdyn.views.web", raising=False)
    with pytest.raises(
        sd.ScrewdynError, match=rf"needs the extra view \(.*{package}.*\): pip install 'screwdyn\[view\]'"
    ):
        run.animate(tmp_path / "run.html")
