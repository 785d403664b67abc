"""Pages in a real browser: ``pytest -m browser``, with Chromium on the path."""

import time
from urllib.parse import urlsplit

import numpy as np
import pytest
from chromium import Page, browser
from film import CRATE, END, GRASP, RELEASE, arm, node_of, swing

from screwdyn.simulation.film import run_scene
from screwdyn.views.scene import Camera

pytestmark = pytest.mark.browser

HELD, FLYING = 0.4, 0.6
assert GRASP < HELD < RELEASE < FLYING


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.fixture
def page(opened):
    opened.fresh()
    return opened


def canvas(page: Page) -> dict:
    page.wait_for("document.querySelector('canvas') !== null")
    return page.evaluate("document.querySelector('canvas').getBoundingClientRect().toJSON()")


def is_orange(pixel) -> bool:
    red, green, blue = pixel
    return bool(red > 1.2 * green and green > 1.5 * blue and red > 0.3)


def crate_at(spot):
    """Whether a picture shows the orange crate at a row and column."""
    return lambda picture: is_orange(picture[spot])


def test_requests_are_noticed(page, tmp_path) -> None:
    """So that the absence of requests in the next test means something."""
    elsewhere = tmp_path / "page.html"
    elsewhere.write_text(
        "<script>fetch('https://example.org/a').catch(() => 0); new WebSocket('ws://example.org/b')</script>"
    )
    page.open(elsewhere.as_uri())
    page.wait_for("document.readyState === 'complete'")
    assert {"https://example.org/a", "ws://example.org/b"} <= set(page.requests)


def test_a_film_needs_no_network_and_shows_the_crate_where_it_is(page, tmp_path) -> None:
    """At the moment in its address, where it does not play on, and at others."""
    run = swing()
    path, scene = run.animate(tmp_path / "run.html", fps=50).path, run_scene(run.motions, run.events, 50)

    def spot(t):
        T = node_of(scene, "crate").poses[round(50 * t)]
        return pixel(scene.camera, box, T[:3, :3] @ CRATE.com + T[:3, 3])

    time_shown = "Number(document.querySelector('[role=slider]')?.getAttribute('aria-valuenow'))"
    page.open(f"{path.as_uri()}#t={HELD}")
    box = canvas(page)
    page.wait_for(f"{time_shown} === {HELD}")
    here, there = spot(HELD), spot(FLYING)
    held = page.still_picture(crate_at(here))
    assert page.evaluate(time_shown) == HELD  # it does not play on
    page.seek(FLYING)
    flying = page.still_picture(crate_at(there))
    assert held.std() > 0.02 and flying.std() > 0.02
    assert not is_orange(held[there]) and not is_orange(flying[here])
    for fragment, found in (("t=.6", 0.6), ("t=99", END), ("elsewhere", END), ("t=.44", 0.44)):
        page.evaluate(f"location.hash = '{fragment}'")
        page.wait_for(f"{time_shown} === {found}")
    assert {url.split(":")[0] for url in page.requests} <= {"file", "data", "blob"}
    assert not page.errors


def test_a_film_on_a_phone_shows_as_much_to_the_sides(page, tmp_path) -> None:
    run = swing()
    path, scene = run.animate(tmp_path / "run.html", fps=10).path, run_scene(run.motions, run.events, 10)
    page.call("Emulation.setDeviceMetricsOverride", width=300, height=600, deviceScaleFactor=1, mobile=True)
    page.open(f"{path.as_uri()}#t={HELD}")
    box = canvas(page)
    T = node_of(scene, "crate").poses[round(10 * HELD)]
    page.still_picture(crate_at(pixel(scene.camera, box, T[:3, :3] @ CRATE.com + T[:3, 3], tall=600 / 300)))
    assert not page.errors


def pixel(camera: Camera, box: dict, point, tall: float = 1.0) -> tuple[int, int]:
    """Row and column of a point on the canvas of a window, by the geometry of a pinhole camera."""
    sight = camera.target - camera.position
    sight /= np.linalg.norm(sight)
    right = np.cross(sight, camera.up)
    right /= np.linalg.norm(right)
    ray = point - camera.position
    scale = box["height"] / 2 / tall / np.tan(np.radians(Camera.FIELD_OF_VIEW / 2)) / (ray @ sight)
    row = box["top"] + box["height"] / 2 - scale * (ray @ np.cross(right, sight))
    return round(row), round(box["left"] + box["width"] / 2 + scale * (ray @ right))


def test_a_window_follows_the_robot_and_the_robot_its_sliders(page) -> None:
    with arm().show([0.5, 0.5], browser=False) as viewer:
        page.open(viewer.url)
        canvas(page)
        page.wait_for("document.querySelector('[role=slider]') !== null")
        before = page.still_picture(lambda picture: picture.std() > 0.02)
        viewer.update([-0.5, -0.5])
        end = time.monotonic() + 60
        while (np.abs(page.picture() - before) > 0.1).mean() < 0.005:
            assert time.monotonic() < end
        page.evaluate("document.querySelector('[role=slider]').focus()")
        page.press("ArrowRight")
        while viewer.q[0] <= -0.5:
            assert time.monotonic() < end
            time.sleep(0.05)
        assert {urlsplit(url).netloc for url in page.requests if url.startswith(("http", "ws"))} == {
            viewer.url.removeprefix("http://")
        }
        assert not page.errors
