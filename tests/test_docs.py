"""The code in the documentation runs: docstring examples, and the Python blocks of README.md and docs/."""

import doctest
import importlib
import pkgutil
import re
import runpy
import tomllib
from pathlib import Path

import pytest
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

import screwdyn

ROOT = Path(__file__).parents[1]
DRAWN = runpy.run_path(str(ROOT / "docs/figures.py"))
FIGURES = DRAWN["FIGURES"]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md")), ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
# Pages whose code other tests run.
ELSEWHERE = {"scaling.md": "cluster/test_dask.py"}
# Pages that need an extra: nox -s handover runs them.
HANDOVER = {"handover.md"}
# Characters of code in the column of the site, 46 em with furo's fonts.
COLUMN = 90
MODULES = sorted(
    module.name for module in pkgutil.walk_packages(screwdyn.__path__, "screwdyn.") if "__main__" not in module.name
)


def python_blocks(page):
    """The fenced blocks marked as Python, each padded so that an error names its line of the page, and their output.

    The output is None unless a block marked as output follows.
    """
    text = page.read_text(encoding="utf-8")
    for block in re.finditer(r"^```python\n(.*?)^```$(?:\n\n^```output\n(.*?)^```$)?", text, re.MULTILINE | re.DOTALL):
        yield "\n" * text.count("\n", 0, block.start(1)) + block[1], block[2]


def test_references_lead_to_what_exists_by_its_present_name():
    found, lost = 0, []
    for source in sorted((ROOT / "screwdyn").rglob("*.py")):
        for reference in re.findall(r":\w+:`~?(screwdyn\.[\w.]+)`", source.read_text(encoding="utf-8")):
            found += 1
            module = max((m for m in ("screwdyn", *MODULES) if f"{reference}.".startswith(f"{m}.")), key=len)
            thing = importlib.import_module(module)
            for name in reference.split(".")[module.count(".") + 1 :]:
                thing = getattr(thing, name, None) or getattr(thing, "__annotations__", {}).get(name)
            if thing is None:
                lost.append(f"{source.name}: {reference}")
    assert found > 20 and lost == []


@pytest.mark.slow
def test_docstring_examples():
    modules = [importlib.import_module(name) for name in ("screwdyn", *MODULES)]
    found = [doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE) for module in modules]
    assert [module.__name__ for module, one in zip(modules, found, strict=True) if one.failed] == []
    assert sum(one.attempted > 0 for one in found) >= 2


def executed(page):
    marks = pytest.mark.handover if page.name in HANDOVER else pytest.mark.slow if page.name != "README.md" else ()
    return pytest.param(page, id=page.name, marks=marks)


@pytest.mark.parametrize("page", [executed(page) for page in PAGES if page.name not in ELSEWHERE])
def test_python_blocks(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block, output in python_blocks(page):
        exec(compile(block, str(page), "exec"), names)
        assert capsys.readouterr().out == (output or "")
    if page.stem in FIGURES:
        FIGURES[page.stem](names)
    if page.name in ("README.md", "start.md"):  # the crate hangs below its hook
        up = names["grasp"].payload.pose[2, :3] @ names["crate"].com
        assert abs(up + 0.3) < 1e-3  # m


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_fits_the_column(page):
    """What programs print and shells read wraps on the site; code does not."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    code = [
        line for kind, block in blocks if kind not in ("output", "text", "sh", "math") for line in block.splitlines()
    ]
    assert [line for line in code if len(line) > COLUMN] == []


@pytest.mark.parametrize("name", FIGURES)
def test_pages_show_their_figures_with_a_description(name):
    page = (ROOT / f"docs/{name}.md").read_text(encoding="utf-8")
    assert re.search(rf"^!\[[^]]+\]\({DRAWN['FILES'].get(name, name)}\.png\)", page, re.MULTILINE)


@pytest.mark.slow
def test_figures_of_pages_whose_code_runs_elsewhere():
    for page in ELSEWHERE:
        FIGURES[Path(page).stem]({})


def test_pages_whose_code_runs_elsewhere_are_named_there():
    for page, module in ELSEWHERE.items():
        assert page in Path(__file__).parent.joinpath(module).read_text(encoding="utf-8")


def test_the_readme_begins_with_code_that_runs():
    assert len(list(python_blocks(ROOT / "README.md"))) >= 1


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_files_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_first_page_leads_readers_of_the_repository_on():
    """On the site, the README stands in place of this text."""
    before, grid, _ = (ROOT / "docs/index.md").read_text(encoding="utf-8").partition("::::{grid}")
    assert grid and {"](../README.md)", "](start.md)"} <= {*re.findall(r"\]\([^)]*\)", before)}


def test_pages_install_from_a_clone_what_they_use():
    """The package is on no index, so that `pip install 'screwdyn[view]'` finds nothing before it is installed."""
    extras = set(
        tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    )
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert "install 'screwdyn" not in text and "install screwdyn" not in text, page.name
        for named in re.findall(r"pip install [^`\n]*'\.\[([a-z,]+)\]'", text):
            assert set(named.split(",")) <= extras, f"{page.name} installs {named}"
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "screwdyn").rglob("*.py"))
    found = {*re.findall(r"(?:screwdyn\[|\bextra (?:``)?)([a-z]+)", sources)}  # in messages and docstrings
    assert {"compile", "plot", "view", "mjcf"} <= found <= extras
    start = (ROOT / "docs/start.md").read_text(encoding="utf-8")
    assert "run.plot()" in start and 'run.animate("run.html")' in start and "'.[plot,view]'" in start


def test_every_page_is_in_a_table_of_contents():
    listed = set()
    for page in ROOT.glob("docs/**/*.md"):
        for table in re.findall(
            r"^```\{toctree\}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
        ):
            listed |= {(page.parent / line).resolve() for line in table.split() if not line.startswith(":")}
    sources = [*ROOT.glob("docs/*.md"), *ROOT.glob("docs/[!_]*/*.md"), *ROOT.glob("docs/reference/*.rst")]
    pages = {page.with_suffix("") for page in sources if ROOT / "docs/gallery" not in page.parents}
    # paper.md is a paper, not a page
    assert sorted(pages - listed - {ROOT / "docs/index", ROOT / "docs/paper"}) == []


@pytest.mark.slow
def test_words_of_headings_fit_a_phone():
    """A page is 320 px wide with margins of 16 px; DejaVu Sans is wider than the fonts of most phones."""
    style = (ROOT / "docs/_static/site.css").read_text(encoding="utf-8").partition("@media (max-width: 30em)")[2]
    em = dict(re.findall(r"h(\d) \{ font-size: ([\d.]+)em; \}", style))
    font = FontProperties(family="DejaVu Sans", weight="bold")
    found = [page.read_text(encoding="utf-8").partition("\n")[0] for page in ROOT.glob("docs/reference/*.rst")]
    headings = [("#", line) for line in found]
    for page in ROOT.glob("docs/**/*.md"):
        headings += re.findall(r"^(#{1,3}) ([^`\n]*)", page.read_text(encoding="utf-8"), re.MULTILINE)
    words = {(len(level), word) for level, line in headings for word in line.split() if len(word) > 9}
    assert {(1, "KinematicTree:"), (3, "SingularAttachmentError:")} <= words
    wide = {
        word
        for level, word in words
        if TextPath((0, 0), word, 16 * float(em[str(level)]), prop=font).get_extents().width > 320 - 2 * 16
    }
    assert wide == set()


def test_every_public_name_is_in_the_reference():
    text = "\n".join(page.read_text(encoding="utf-8") for page in sorted(ROOT.glob("docs/reference/*.rst")))
    entries = re.findall(r"^\.\. (auto\w+|data):: (\S+)", text, re.MULTILINE)
    named = {name.removeprefix("screwdyn.") for _, name in entries}
    modules = {importlib.import_module(name) for kind, name in entries if kind == "automodule"}
    for name in screwdyn.__all__:
        assert name in named or getattr(screwdyn, name) in modules | {screwdyn.errors}, f"docs/reference lacks {name}"
    lacking = {f"KinematicTree.{name}" for name in dir(screwdyn.KinematicTree) if not name.startswith("_")} - named
    # The model is for the library itself
    assert lacking == {"KinematicTree.model"}


def test_the_mathematics_begin_with_a_table_of_their_sections():
    text = (ROOT / "docs/mathematics.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| (\d+) \| (.*) \|$", text, re.MULTILINE)
    assert listed == re.findall(r"^## (\d+)\. (.*)$", text, re.MULTILINE)


def test_files_named_in_contributing_exist():
    tables = re.findall(r"^\| (`.*?) \|", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.MULTILINE)
    paths = [path for cell in tables for path in re.findall(r"`([\w/]+/[\w/.]*)`", cell)]
    assert len(paths) > 10
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_formulas_of_the_mathematics_are_typeset():
    text = (ROOT / "docs/mathematics.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^```(.*)\n", text, re.MULTILINE)) == {"math", ""}, "formulas are in ```math blocks"
    assert text.count("```math\n") > 40
    words = re.sub(r"^```math\n.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    assert len(re.findall(r"\$[^$]+\$", words)) > 500
    code = re.findall(r"`[^`]+`", words)
    assert [name for name in code if not name.isascii()] == [], (
        "formulas are between dollars, names of the code are not"
    )
