import os
import shutil
import stat
import sys
from pathlib import Path
from types import SimpleNamespace

import matplotlib.image
import numpy as np
import pytest
from film import CRATE, END, GRASP, RELEASE, arm, node_of, swing
from PIL import Image

import screwdyn as sd
from screwdyn.simulation.film import run_scene
from screwdyn.views import film
from screwdyn.views.film import film_rate
from screwdyn.views.picture import Painter
from screwdyn.views.scene import Camera, View


@pytest.fixture(scope="module")
def run():
    return swing()


def pixel(scene, point) -> tuple[int, int]:
    """Row and column of a point, by the geometry of a pinhole camera."""
    camera = scene.camera
    sight = camera.target - camera.position
    sight /= np.linalg.norm(sight)
    right = np.cross(sight, camera.up)
    right /= np.linalg.norm(right)
    ray = point - camera.position
    scale = 240 / np.tan(np.radians(Camera.FIELD_OF_VIEW / 2)) / (ray @ sight)
    return round(240 - scale * (ray @ np.cross(right, sight))), round(320 + scale * (ray @ right))


def is_orange(color) -> bool:
    red, green, blue = np.asarray(color, dtype=float)[:3] / max(color[:3])
    return bool(red == 1 and 0.5 < green < 0.8 and blue < 0.3)


@pytest.mark.slow
def test_a_gif_shows_the_crate_where_it_is_held_and_where_it_flies(run, tmp_path) -> None:
    path = run.animate(tmp_path / "run.gif", fps=10, show=("com", "momentum")).path
    scene = run_scene(run.motions, run.events, 10, View(("com", "momentum")))
    with Image.open(path) as gif:
        assert gif.n_frames == 9 and gif.info["duration"] == 100 and gif.size == (640, 480)
        frames = []
        for k in range(gif.n_frames):
            gif.seek(k)
            frames.append(np.asarray(gif.convert("RGB")))
    # In order, though two are drawn at a time, and without a colour that the palette lacks.
    for k, found in enumerate(frames):
        assert np.abs(found - np.asarray(Painter(scene).draw(k), dtype=float)).max() < 16
    spots = []
    for t in (0.4, 0.6):
        k = round(10 * t)
        T = node_of(scene, "crate").poses[k]
        spots.append((k, *pixel(scene, T[:3, :3] @ CRATE.com + T[:3, 3])))
    (held, *here), (flying, *there) = spots
    assert GRASP < 0.1 * held < RELEASE < 0.1 * flying < END
    assert is_orange(frames[held][*here]) and is_orange(frames[flying][*there])
    assert not is_orange(frames[held][*there]) and not is_orange(frames[flying][*here])


@pytest.mark.parametrize("size", [640, (640,), (640.5, 480), (8, 480), (640, 10**6), "large"])
def test_sizes_of_no_picture_are_refused(size) -> None:
    with pytest.raises(sd.ScrewdynError, match=r"size is \(width, height\) in pixels, whole numbers from 16 to 4096"):
        arm().draw("arm.png", size=size)


def test_frames_of_a_gif_last_hundredths_of_a_second() -> None:
    assert film_rate(Path("a.gif"), 30) == pytest.approx(100 / 3)
    assert film_rate(Path("a.gif"), 1000) == 50 and film_rate(Path("a.html"), 30) == 30


@pytest.mark.slow
def test_ffmpeg_gets_every_frame(run, tmp_path, monkeypatch) -> None:
    encoder = tmp_path / "bin" / "ffmpeg"
    encoder.parent.mkdir()
    encoder.write_text(f"#!{sys.executable}\nimport sys\nopen(sys.argv[-1], 'wb').write(sys.stdin.buffer.read())\n")
    encoder.chmod(encoder.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(encoder.parent), prepend=os.pathsep)
    shown = run.animate(tmp_path / "run.mp4", fps=5, size=(320, 200))
    assert shown.path.stat().st_size == 5 * 320 * 200 * 3
    assert shown._repr_html_().startswith('<video controls loop src="data:video/mp4;base64,')


def test_without_ffmpeg_the_error_says_what_to_install(run, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(sd.ScrewdynError, match="an MP4 needs ffmpeg: pip install imageio-ffmpeg"):
        run.animate(tmp_path / "run.mp4")
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", SimpleNamespace(get_ffmpeg_exe=lambda: "/opt/ffmpeg"))
    assert film.ffmpeg() == "/opt/ffmpeg"


def test_a_picture_shows_itself_in_a_notebook(tmp_path) -> None:
    shown = arm().draw(tmp_path / "arm.png", {"elbow": 0.5}, show=("com",))
    assert shown._repr_html_().startswith('<img src="data:image/png;base64,')
    assert matplotlib.image.imread(shown.path).shape == (480, 640, 3)
    with pytest.raises(sd.ScrewdynError, match=r"its name must end in .html, .png"):
        arm().draw("arm.gif")


@pytest.mark.parametrize("suffix", ["html", "gif", "mp4"])
def test_an_interrupted_film_leaves_the_former_file(run, tmp_path, monkeypatch, suffix) -> None:
    (tmp_path / f"run.{suffix}").write_text("the film of yesterday")
    encoder = tmp_path / "bin" / "ffmpeg"
    encoder.parent.mkdir()
    encoder.write_text('#!/bin/sh\nfor file; do :; done\ncat > "$file"\n')
    encoder.chmod(encoder.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(encoder.parent), prepend=os.pathsep)

    def interrupted(*frames, **_):
        yield 0
        yield 1
        raise KeyboardInterrupt

    monkeypatch.setattr("screwdyn.views.film.tqdm", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run.animate(tmp_path / f"run.{suffix}", fps=5)
    assert (tmp_path / f"run.{suffix}").read_text() == "the film of yesterday"
    assert {path.name for path in tmp_path.iterdir()} == {f"run.{suffix}", "bin"}


def test_names_in_a_picture_are_no_formulas(tmp_path) -> None:
    tree = sd.KinematicTree()
    tree.attach(CRATE, to="base", joint=sd.revolute("x", name="a"), name="$x_$")
    run = sd.simulate(tree, sd.State(tree), 0.1, events=[sd.Lock("a", time=0.05)])
    run.animate(tmp_path / "run.gif", fps=20, wrenches=("$x_$",))
    assert (tmp_path / "run.gif").stat().st_size > 1000


def test_an_error_of_ffmpeg_is_told(run, tmp_path, monkeypatch) -> None:
    encoder = tmp_path / "ffmpeg"
    encoder.write_text("#!/bin/sh\necho 'Unknown encoder h264' >&2\nexit 1\n")
    encoder.chmod(encoder.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(encoder.parent), prepend=os.pathsep)
    with pytest.raises(sd.ScrewdynError, match=r"cannot write '.*run.mp4': ffmpeg: Unknown encoder h264$"):
        run.animate(tmp_path / "run.mp4", fps=5)
    assert not (tmp_path / "run.mp4").exists()


def test_a_folder_is_not_written_into(run, tmp_path) -> None:
    (tmp_path / "run.mp4").mkdir()
    with pytest.raises(sd.ScrewdynError, match="it is a folder"):
        run.animate(tmp_path / "run.mp4")
