"""The built site (nox -s docs): it is complete, and its pages load nothing from elsewhere."""

import inspect
import re
import zlib
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import screwdyn as sd

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


def inventory():
    """The names of Python objects that other sites can refer to, with their pages."""
    text = zlib.decompress((SITE / "objects.inv").read_bytes().split(b"\n", 4)[4]).decode()
    entries = re.findall(r"^(\S+) py:\w+ \S+ (\S+) ", text, re.MULTILINE)
    return {name: place.replace("$", name) for name, place in entries}


def test_every_public_name_has_an_entry_to_which_a_link_leads():
    found = inventory()
    # Attributes that are given in the docstring of their class have no entry of their own.
    attributes = {"Padded", "Contribution"}
    for name in sd.__all__:
        thing = getattr(sd, name)
        if inspect.ismodule(thing):
            inner = getattr(thing, "__all__", ()) if name != "errors" else ()
            wanted = [f"{thing.__name__}.{k}" for k in inner]
        elif inspect.isclass(thing) and not issubclass(thing, Exception) and name not in attributes:
            inner = [k for k, v in inspect.getmembers(thing) if not k.startswith("_") and inspect.getdoc(v)]
            members = [k for k in inner if callable(getattr(thing, k)) or isinstance(getattr(thing, k), property)]
            wanted = [f"screwdyn.{name}", *(f"screwdyn.{name}.{k}" for k in members)]
        else:
            wanted = [f"screwdyn.{name}"]
        for entry in wanted:
            assert entry in found, f"docs/reference lacks {entry}"
            page, _, place = found[entry].partition("#")
            assert f'id="{place}"' in (SITE / page).read_text(encoding="utf-8")


def test_signatures_are_those_of_the_source():
    page = (SITE / "reference/quantities.html").read_text(encoding="utf-8")
    text = re.sub(r"<[^>]+>|\s", "", page)
    assert "contributions(q:ArrayLike,qd:ArrayLike)→list[Contribution]" in unescape(text)
    assert "mass_matrix(q)" in unescape(text)  # a method in C has no annotations
    assert "_SupportsArray" not in text and "Union[" not in text
    properties = re.sub(r"<[^>]+>|\s", "", (SITE / "reference/tree.html").read_text(encoding="utf-8"))
    assert "KinematicTree.nv:int" in properties  # read by a function in C too
