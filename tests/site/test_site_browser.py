"""The built site (nox -s docs) in a real browser: ``pytest -m browser``."""

import contextlib
import io
import math
import re
from html import unescape
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import numpy as np
import pytest
from chromium import browser

import screwdyn as sd

pytestmark = pytest.mark.browser
SITE = Path(__file__).parents[2] / "docs/_build/html"
MATHEMATICS, LABORATORY = SITE / "mathematics.html", SITE / "lab.html"
NEWS = "document.getElementById('news').textContent"


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.fixture
def page(opened):
    opened.fresh()
    return opened


def test_formulas_are_drawn_without_a_network(page):
    assert MATHEMATICS.exists(), "build it with: nox -s docs"
    page.open(MATHEMATICS.as_uri())
    count = "document.querySelectorAll('{}').length".format
    page.wait_for("window.MathJax?.startup?.promise !== undefined")
    assert page.evaluate("MathJax.startup.promise.then(() => 'drawn')") == "drawn"
    assert page.evaluate(count("mjx-container")) > 500
    assert page.evaluate(count("mjx-container")) == page.evaluate(count("span.math, div.math"))
    assert page.evaluate(count("mjx-merror")) == 0
    assert page.errors == []
    assert page.requests and {urlsplit(request).scheme for request in page.requests} <= {"file", "data"}


def test_a_search_from_files_shows_the_words_that_it_found(page):
    page.open((SITE / "search.html").as_uri() + "?q=quaternion")
    page.wait_for("document.querySelectorAll('#search-results p.context').length > 3")
    texts = "[...document.querySelectorAll('#search-results p.context')].map((x) => x.innerText)"
    assert sum("quaternion" in text.lower() for text in page.evaluate(texts)) > 3
    assert page.errors == []


def test_a_page_suits_a_phone_in_the_dark(page):
    page.call("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=1, mobile=True)
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    page.open((SITE / "index.html").as_uri())
    page.wait_for("document.readyState === 'complete'")
    edges = page.evaluate(
        "['.theme-toggle-header', '.toc-header-icon'].map((x) => document.querySelector(x).getBoundingClientRect())"
        ".flatMap((x) => [x.left, x.right])"
    )
    assert edges[0] < edges[1] and edges[1] + 10 < edges[2] < edges[3] < 390
    assert page.evaluate("getComputedStyle(document.querySelector('article img')).filter") == "brightness(0.75)"


@pytest.fixture
def laboratory(page):
    """The laboratory, paused, as a phone shows it in the dark."""
    assert LABORATORY.exists(), "build it with: nox -s docs"
    page.call("Emulation.setDeviceMetricsOverride", width=360, height=740, deviceScaleFactor=1, mobile=True)
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    page.open(LABORATORY.as_uri())
    page.wait_for("window.lab !== undefined")
    page.evaluate("lab.run(false)")
    yield page
    assert page.errors == []
    assert {urlsplit(request).scheme for request in page.requests} <= {"file", "data"}


def press_enter(page, button):
    page.evaluate(f"document.getElementById('{button}').focus()")
    for key in ({"type": "keyDown", "text": "\r"}, {"type": "keyUp"}):
        page.call("Input.dispatchKeyEvent", key="Enter", code="Enter", **key)


def coordinates(page):
    """The heads of the rows of M that the page shows."""
    return page.evaluate("[...document.querySelectorAll('#M th[scope=row]')].map((x) => x.textContent)")


def orange(picture):
    """Where a picture shows the crate."""
    red, green, blue = np.moveaxis(picture, -1, 0)
    return (red > 1.2 * green) & (green > 1.5 * blue) & (red > 0.3)


def test_the_laboratory_is_one_file_that_fits_a_phone_in_the_dark(laboratory):
    assert LABORATORY.stat().st_size < 2e6
    press_enter(laboratory, "hang")
    assert laboratory.evaluate("document.documentElement.scrollWidth") <= 360
    picture = laboratory.still_picture(lambda picture: np.median(picture) < 0.2 and orange(picture).sum() > 100)
    assert orange(picture).sum() < 0.1 * picture[..., 0].size


def test_the_laboratory_changes_a_moving_arm_by_keys(laboratory):
    page = laboratory
    assert coordinates(page) == ["q1", "q2", "q3", "q4", "q5", "q6"]
    page.evaluate("lab.swing.target[0] += 1; lab.advance(0.5)")
    press_enter(page, "hang")
    assert coordinates(page)[6:] == ["θ1", "θ2"]
    assert "same bits" in page.evaluate("document.getElementById('news').textContent")
    page.evaluate("lab.advance(0.3)")
    moved = page.evaluate("Math.hypot(...lab.swing.qd.slice(6))")
    assert moved > 0.1
    press_enter(page, "swap")
    assert page.evaluate("lab.swing.load.name") == "plank" and page.evaluate("lab.swing.flying.load.name") == "crate"
    page.evaluate("lab.advance(0.2)")
    press_enter(page, "weld")
    assert len(coordinates(page)) == 6 and page.evaluate("lab.swing.robot.links.length") == 11 + 1
    press_enter(page, "drop")
    assert page.evaluate("lab.swing.robot.links.length") == 11
    assert page.evaluate("lab.swing.ledger.lost") > 0.01
    assert abs(page.evaluate("lab.swing.unaccounted")) < 1e-6
    page.evaluate("document.getElementById('joint').value = 'ball'")
    press_enter(page, "hang")
    assert coordinates(page)[6:] == ["θ1", "θ2", "θ3"]
    page.evaluate("lab.swing.target[0] -= 1; lab.advance(0.5)")
    assert page.evaluate("Math.hypot(...lab.swing.q.slice(6))") == pytest.approx(1, abs=1e-12)
    assert abs(page.evaluate("lab.swing.unaccounted")) < 1e-6
    yaw = page.evaluate("lab.view.yaw")
    page.evaluate("document.getElementById('view').focus()")
    page.press("ArrowLeft")
    assert page.evaluate("lab.view.yaw") != yaw


def test_the_laboratory_closes_a_loop_by_keys(laboratory):
    page = laboratory
    press_enter(page, "hang")
    page.evaluate("lab.swing.target[0] += 1; lab.advance(0.5)")
    before = page.evaluate("lab.swing.robot.dynamics(lab.swing.q, lab.swing.qd).M")
    press_enter(page, "close")
    news = page.evaluate("document.getElementById('news').textContent")
    assert "5 of 8 freedoms are left" in news and "The M of the 6 links have the same bits" in news
    assert page.evaluate("lab.swing.robot.dynamics(lab.swing.q, lab.swing.qd).M") == before
    place = page.evaluate("lab.swing.anchor")
    page.evaluate("lab.swing.target[1] += 0.3; lab.advance(0.5)")
    hand = page.evaluate("lab.swing.robot.poses(lab.swing.q)[lab.swing.bare.hand]")
    np.testing.assert_allclose(hand[3:12:4], place, rtol=0, atol=1e-12)
    assert page.evaluate("lab.swing.ledger.lost") > 0.01 and abs(page.evaluate("lab.swing.unaccounted")) < 1e-6
    press_enter(page, "close")
    assert page.evaluate("lab.swing.robot.loop.length") == 0


def follow(page, lesson):
    """Open the state of the laboratory to which a lesson leads."""
    (address,) = re.findall(r'href="(\.\./lab\.html#[^"]*)"', lesson.read_text(encoding="utf-8"))
    page.open("about:blank")
    page.open(urljoin(lesson.as_uri(), unescape(address)))


def test_the_closed_form_of_a_lesson_has_the_numbers_of_the_laboratory(laboratory):
    follow(laboratory, SITE / "lessons/lesson_4_closed_forms_and_c.html")
    laboratory.wait_for("window.lab?.running === false")
    cells = laboratory.evaluate("[...document.querySelectorAll('#g td')].map((x) => Number(x.textContent))")
    np.testing.assert_allclose(cells[1:4], [-5.49, -15.37, 0], atol=0.05)
    colours = laboratory.evaluate("[...document.querySelectorAll('#C td')].map((x) => x.style.backgroundColor)")
    assert len(colours) == 36 and all(float(x.strip("rgba()").split(",")[3]) < 0.01 for x in colours)


def test_a_lesson_leads_to_its_state_in_the_laboratory(laboratory):
    follow(laboratory, SITE / "lessons/lesson_3_payload_in_motion.html")
    laboratory.wait_for("window.lab?.swing.load != null")
    state = sd.State(sd.robots.ur5(), [0, -1.8, 1.6, 0.2, 1.57, 0], [0.5, 0.2, -0.3, 0, 0, 0])
    assert laboratory.evaluate("[lab.running, lab.swing.load.mass, lab.swing.joint]") == [False, 3, "pin"]
    assert laboratory.evaluate("lab.swing.q.slice(0, 6)") == state.q.tolist()
    load = sd.Inertia.box(3.0, size=(0.3, 0.2, 0.2), com=(0, 0, 0.3))
    pin = sd.revolute("x", passive=True)
    event = state.tree.grasp(state, load, to="tool0", joint=pin, start="hanging", twist="at_rest")
    np.testing.assert_allclose(laboratory.evaluate("lab.swing.qd"), event.state.qd, rtol=0, atol=1e-12)


def test_the_laboratory_says_what_it_does_not_take_from_an_address(laboratory):
    laboratory.evaluate("location.hash = '#q=1,2&qd=1e6,0,0,0,0,0&joint=xx&load=plank&mass=-5&motors=off&weld&hang'")
    laboratory.wait_for(f"{NEWS}.includes('did not take')")
    news = laboratory.evaluate(NEWS)
    for refused in ("weld,", "joint=xx,", "mass=-5,", "q=1,2 (it needs 6", "qd=1e6,0,0,0,0,0 (it needs 6"):
        assert refused in news
    assert "load=" not in news and "motors=" not in news
    taken = laboratory.evaluate("[lab.swing.load.name, lab.swing.load.mass, lab.swing.joint, lab.swing.motors]")
    assert taken == ["plank", 3, "hook", "off"] and "The plank hangs" in news


def test_the_laboratory_pauses_a_motion_that_is_too_fast(laboratory):
    laboratory.evaluate("lab.act('hang'); lab.swing.qd.fill(1e5); lab.run(true)")
    laboratory.wait_for("!lab.running")
    assert "too fast for this page" in laboratory.evaluate(NEWS) and "press “Reset”" in laboratory.evaluate(NEWS)
    assert laboratory.evaluate("lab.swing.load.name") == "crate"


def test_the_laboratory_has_the_bits_of_python(laboratory):
    """In a state whose sines have the same bits here, as nearly all have (tests/backends/test_wasm.py)."""
    page = laboratory
    page.evaluate("lab.swing.target[0] += 1; lab.advance(0.4); lab.act('hang')")
    for _ in range(20):
        page.evaluate("lab.advance(0.1)")
        sines, cosines = page.evaluate("lab.swing.robot.kernels.sines(lab.swing.q)")
        q = page.evaluate("lab.swing.q")
        if sines == [math.sin(x) for x in q] and cosines == [math.cos(x) for x in q]:
            break
    press_enter(page, "same")
    page.wait_for("!document.getElementById('digests').hidden")
    printed, lines = io.StringIO(), page.evaluate("document.getElementById('python').textContent")
    with contextlib.redirect_stdout(printed):
        exec(lines, {})
    shown = page.evaluate("document.getElementById('digests').textContent")
    assert "hook" in lines and len(shown.split()) == 3
    assert printed.getvalue().split() == shown.split()
