"""The site of the documentation: ``nox -s docs`` builds it into docs/_build/html.

Everything that a page needs is in the built folder: a page loads nothing from elsewhere, which tests/site checks.
"""

import inspect
import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.logging import getLogger

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "docs/lab"), str(ROOT / "tests/site")]

import laboratory  # noqa: E402

import screwdyn  # noqa: E402
from screwdyn.mechanism.structure import Mechanism  # noqa: E402

project = "screwdyn"
author = "screwdyn developers"
copyright = "screwdyn developers, BSD-3-Clause"
release = version = screwdyn.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.githubpages",
    "sphinx.ext.mathjax",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "**/GALLERY_HEADER.rst", "paper.md"]
nitpicky = True
# Types such as "(…, nv) array" are no names; tests/test_docs.py finds references to classes that are none.
nitpick_ignore_regex = [("py:class", ".*"), ("py:func", r"scipy\..*")]

# Pages in Markdown are also read on GitHub, which has ```math blocks and $…$ as well.
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 3
# GitHub shows dollars in code; formulas with labels and spaces beside the dollars are not used.
myst_dmath_allow_space = False
myst_dmath_double_inline = False

html_theme = "furo"
html_title = f"screwdyn {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_theme_options = {
    "source_repository": "https://github.com/screwdyn/screwdyn/",
    "source_branch": "main",
    "source_directory": "docs/",
}

autodoc_typehints_format = "short"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
python_maximum_signature_line_length = 100
add_module_names = False
toc_object_entries_show_parents = "hide"

# Every file of examples/gallery and examples/lessons is executed, except those that begin with an underscore.
sphinx_gallery_conf = {
    "examples_dirs": ["../examples/lessons", "../examples/gallery"],
    "gallery_dirs": ["lessons", "gallery"],
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"^_",
    "within_subsection_order": "FileNameSortKey",
    # What examples say is checked on what they have just computed.
    "image_scrapers": ("matplotlib", "test_gallery_claims.keep"),
    "reset_modules": ("matplotlib", "test_gallery_claims.check"),
    "reset_modules_order": "after",
    "thumbnail_size": (640, 360),
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "write_computation_times": False,  # its page would load a script from elsewhere
}

PUBLISHED = "https://screwdyn.github.io/screwdyn"
TO_RUN = """

To run this notebook, install what it needs in a clone of https://github.com/screwdyn/screwdyn:

```sh
python3 -m venv .venv && .venv/bin/pip install -e {packages} && .venv/bin/jupyter lab
```
"""

# MathJax is copied from a package; of its renderers and extensions, the pages need one bundle and its fonts.
MATHJAX = (
    Path(next(iter(find_spec("sphinx-mathjax-offline").submodule_search_locations)))
    / "static/mathjax"
)
MATHJAX_FILES = ("tex-chtml.js", "output/chtml/fonts/woff-v2")
mathjax_path = "mathjax/tex-chtml.js"
mathjax3_config = {"options": {"enableMenu": False}}


def begin_with_readme(app: Sphinx, page: str, source: list[str]) -> None:
    """Begin the first page with the README instead of what is before its cards; links are from the folder above."""
    if page == "index":
        text = (ROOT / "README.md").read_text(encoding="utf-8")
        text = text.partition("## What it does\n")[0]
        text = re.sub(r"\]\((docs/)?", lambda link: "](./" if link[1] else "](../", text)
        source[0] = text + source[0][source[0].index("::::{grid}") :]


def link_outside(app: Sphinx, page: str, source: list[str]) -> None:
    """Let links to files outside docs/ lead to the repository."""

    def absolute(link: re.Match[str]) -> str:
        target = (Path(app.srcdir, page).parent / link[1]).resolve()
        if target.is_relative_to(app.srcdir):
            return link[0]
        if target.parent == ROOT / "examples" and target.is_dir():
            return f"](/{target.name}/index.rst)"
        return f"](https://github.com/screwdyn/screwdyn/blob/main/{target.relative_to(ROOT)})"

    source[0] = re.sub(r"\]\((\.\./[^)#\s]+)\)", absolute, source[0])


def annotate_properties(of: type) -> None:
    """Give the properties of a class that are read by functions of C, which have no annotations, those of the class."""
    for name, kind in inspect.get_annotations(of).items():
        if isinstance(found := vars(of).get(name), property):

            def get(thing: Any, read: Callable[[Any], Any] = found.fget) -> Any:
                return read(thing)

            get.__annotations__ = {"return": kind}
            setattr(of, name, property(get, doc=found.__doc__))


class Written(str):
    """An annotation that is shown without quotes."""

    __repr__ = str.__str__


def signature_as_written(
    app: Sphinx,
    what: str,
    name: str,
    thing: Any,
    options: Any,
    text: str | None,
    result: str | None,
) -> tuple[str | None, str | None]:
    """The signature as it is in the source, where ArrayLike is a name; autodoc evaluates it."""
    if text is None:
        return text, result
    signature = inspect.signature(thing)
    parameters = [
        given.replace(annotation=Written(given.annotation))
        if isinstance(given.annotation, str)
        else given
        for given in signature.parameters.values()
        if given.name != "self" and (what, given.name) != ("method", "tree")
    ]
    arguments = str(
        signature.replace(
            parameters=parameters, return_annotation=inspect.Signature.empty
        )
    )
    returned = None if what in ("class", "exception") else signature.return_annotation
    return arguments, returned if isinstance(returned, str) else None


def reference_by_public_name(app: Sphinx, env: Any, node: Any, text: Any) -> Any:
    """Resolve a name that docstrings have from where they are: of another module, or by a module's own path."""
    if node.get("refdomain") != "py":
        return None
    domain, target = env.domains.python_domain, node["reftarget"]
    *path, last = target.removeprefix("screwdyn.").split(".")
    shorter = [".".join(("screwdyn", *path[:k], last)) for k in range(len(path))]
    ending = [name for name in domain.objects if name.endswith(f".{target}")]
    for name in (*shorter, *(ending if len(ending) == 1 else ())):
        if name in domain.objects:
            return domain.resolve_xref(
                env, node["refdoc"], app.builder, node["reftype"], name, node, text
            )
    return None


def label_sections(app: Sphinx, document: nodes.document) -> None:
    """Give the numbered sections of mathematics.md the labels mathematics-1, mathematics-2, …"""
    env = app.env
    if env.docname == "mathematics":
        for section in document.findall(nodes.section):
            if (title := section[0].astext())[0].isdigit():
                label = f"mathematics-{title.partition('.')[0]}"
                env.domains.standard_domain.anonlabels[label] = (
                    env.docname,
                    section["ids"][0],
                )


def link_pages(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]
) -> None:
    """Let "docs/mathematics.md §2" in a docstring lead to that page of the site."""

    def link(found: re.Match[str]) -> str:
        page, section = found.groups()
        return (
            f":ref:`{found[0]} <{page}-{section}>`"
            if section
            else f":doc:`{found[0]} </{page}>`"
        )

    lines[:] = (re.sub(r"docs/([a-z_]+)\.md(?: §(\d+))?", link, line) for line in lines)


def copy_mathjax(app: Sphinx, error: Exception | None) -> None:
    """Copy MathJax and its fonts into the built site."""
    if error is None and app.builder.format == "html":
        for name in MATHJAX_FILES:
            source, target = MATHJAX / name, app.outdir / "_static/mathjax" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, dirs_exist_ok=True)
            else:
                shutil.copy(source, target)


def outline(node: nodes.Node) -> str:
    """The text of a page in its sections, as HTML."""
    if isinstance(node, nodes.Text | nodes.Invisible | nodes.raw):
        return escape(node.astext()) if isinstance(node, nodes.Text) else ""
    between = "" if isinstance(node, nodes.TextElement) else "\n"
    inner = between.join(map(outline, node.children))
    return (
        f'<section id="{node["ids"][0]}">{inner}</section>'
        if isinstance(node, nodes.section)
        else inner
    )


def write_texts(app: Sphinx, error: Exception | None) -> None:
    """Write what the search page shows of its results where pages are files."""
    if error is None and app.builder.format == "html":
        pages = {name: outline(app.env.get_doctree(name)) for name in app.env.found_docs}
        pages = {name: f'<div role="main">{text}</div>' for name, text in pages.items()}
        script = f"const TEXTS = {json.dumps(pages, ensure_ascii=False)};"
        (app.outdir / "_static/texts.js").write_text(script, encoding="utf-8")


def add_texts(app: Sphinx, page: str, template: str, context: Any, document: Any) -> None:
    """Let the search page use them."""
    if page == "search":
        app.add_js_file("search_in_files.js")


def finish_notebooks(app: Sphinx) -> None:
    """Say in notebooks how to run them, and give lessons their outputs and links to the published laboratory."""
    import nbformat

    folders = (Path(app.srcdir, name) for name in ("lessons", "gallery"))
    for path in (path for folder in folders for path in sorted(folder.glob("*.ipynb"))):
        notebook = nbformat.read(path, as_version=4)
        if TO_RUN.strip()[:20] in notebook.cells[0].source:
            continue  # it is of the build before
        used = {"control", "gymnasium"} & set(
            re.findall(r"^import (\w+)", path.with_suffix(".py").read_text("utf-8"), re.M)
        )
        packages = " ".join(["'.[compile,plot,view]'", "jupyterlab", *sorted(used)])
        notebook.cells[0].source += TO_RUN.format(packages=packages)
        for cell in notebook.cells:
            cell.source = cell.source.replace("../lab.html", f"{PUBLISHED}/lab.html")
        if (
            path.parent.name == "lessons"
            and app.config.sphinx_gallery_conf["plot_gallery"]
        ):
            execute(notebook)
        nbformat.write(notebook, path)


def execute(notebook: Any) -> None:
    """Fill in the outputs of a notebook."""
    from nbclient import NotebookClient

    inline = {name: value for name, value in os.environ.items() if name != "MPLBACKEND"}
    paths = [str(ROOT), *filter(None, [inline.get("PYTHONPATH")])]
    NotebookClient(notebook, timeout=300).execute(
        env=inline | {"PYTHONPATH": os.pathsep.join(paths)}
    )


def write_laboratory(app: Sphinx, error: Exception | None) -> None:
    """Write the laboratory into the built site; without a compiler, a page that says what is missing."""
    if error is None and app.builder.format == "html":
        text = "<link rel='icon' href='data:,'>This site was built without the package ziglang, which makes this page."
        if laboratory.can_compile():
            text = laboratory.page()
        else:
            getLogger(__name__).info(
                "The laboratory is left out: it needs a compiler, pip install ziglang"
            )
        (app.outdir / "lab.html").write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Connect what this file adds to a build."""
    annotate_properties(Mechanism)
    annotate_properties(screwdyn.State)
    app.connect("autodoc-process-signature", signature_as_written)
    app.connect("autodoc-process-docstring", link_pages)
    app.connect("doctree-read", label_sections)
    app.connect("missing-reference", reference_by_public_name)
    app.connect("source-read", begin_with_readme)
    app.connect("source-read", link_outside)
    app.connect("builder-inited", finish_notebooks, priority=900)  # after they are made
    app.connect("build-finished", copy_mathjax)
    app.connect("build-finished", write_laboratory)
    app.connect("build-finished", write_texts)
    app.connect("html-page-context", add_texts)
