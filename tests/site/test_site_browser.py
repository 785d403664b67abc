"""The built site (nox -s docs) in a real browser: ``pytest -m browser``."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest
from chromium import browser

pytestmark = pytest.mark.browser
PAGE = Path(__file__).parents[2] / "docs/_build/html/mathematics.html"


def test_formulas_are_drawn_without_a_network(tmp_path):
    assert PAGE.exists(), "build it with: nox -s docs"
    with browser(tmp_path) as page:
        page.open(PAGE.as_uri())
        count = "document.querySelectorAll('{}').length".format
        page.wait_for("window.MathJax?.startup?.promise !== undefined")
        assert page.evaluate("MathJax.startup.promise.then(() => 'drawn')") == "drawn"
        assert page.evaluate(count("mjx-container")) > 500
        assert page.evaluate(count("mjx-container")) == page.evaluate(count("span.math, div.math"))
        assert page.evaluate(count("mjx-merror")) == 0
        assert page.errors == []
        assert page.requests and {urlsplit(request).scheme for request in page.requests} <= {"file", "data"}
