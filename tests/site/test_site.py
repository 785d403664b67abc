"""The built site (nox -s docs): it is complete, and its pages load nothing from elsewhere."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

pytestmark = pytest.mark.site
SITE = Path(__file__).parents[2] / "docs/_build/html"
PAGES = sorted(SITE.rglob("*.html"))
# Attributes whose file a browser fetches by itself; <a href> is fetched when the reader follows it.
FETCHED = {
    ("script", "src"),
    ("img", "src"),
    ("iframe", "src"),
    ("source", "src"),
    ("video", "src"),
    ("object", "data"),
}


class Fetched(HTMLParser):
    """The addresses of all files that a page loads, and its scripts and styles."""

    def __init__(self, text):
        super().__init__()
        self.addresses, self.styles, self.inside = [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.inside = tag
        values = dict(attrs)
        self.addresses += [value for name, value in attrs if (tag, name) in FETCHED]
        self.styles += [values["style"]] if values.get("style") else []
        if tag == "link" and values["rel"] not in ("index", "search", "next", "prev", "canonical"):
            self.addresses.append(values["href"])

    def handle_data(self, data):
        if self.inside == "style":
            self.styles.append(data)


def in_styles(text):
    return [
        address.strip("'\"")
        for address in re.findall(r"url\(([^)]+)\)|@import\s+['\"]([^'\"]+)", text)
        for address in address
        if address
    ]


def test_the_site_is_built():
    assert len(PAGES) > 20, "build it with: nox -s docs"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(SITE)))
def test_a_page_loads_files_of_the_site_only(page):
    found = Fetched(page.read_text(encoding="utf-8"))
    addresses = found.addresses + [address for style in found.styles for address in in_styles(style)]
    assert addresses
    for address in addresses:
        if not address.startswith(("data:", "#")):
            parts = urlsplit(address)
            assert not parts.scheme and not parts.netloc, f"{page.name} loads {address}"
            assert (page.parent / unquote(parts.path)).is_file(), f"{page.name} loads {address}, which is not built"


def test_styles_load_files_of_the_site_only():
    styles = sorted(SITE.rglob("*.css"))
    assert len(styles) > 3
    for style in styles:
        for address in in_styles(style.read_text(encoding="utf-8")):
            assert address.startswith(("data:", "#")) or (style.parent / urlsplit(address).path).is_file(), address
