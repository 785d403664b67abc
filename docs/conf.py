"""The site of the documentation: ``nox -s docs`` builds it into docs/_build/html.

Everything that a page needs is in the built folder: a page loads nothing from elsewhere, which tests/site checks.
"""

import re
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import screwdyn  # noqa: E402

project = "screwdyn"
author = "screwdyn developers"
copyright = "screwdyn developers, BSD-3-Clause"
release = version = screwdyn.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "**/GALLERY_HEADER.rst", "paper.md"]
nitpicky = True

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

# Signatures as they are written: ArrayLike remains ArrayLike.
autodoc_default_options = {"members": True, "inherited-members": True, "show-inheritance": False}
autodoc_member_order = "groupwise"
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_preprocess_types = False
python_maximum_signature_line_length = 100
add_module_names = False
toc_object_entries_show_parents = "hide"

# Every file of examples/gallery is executed, except those that begin with an underscore.
sphinx_gallery_conf = {
    "examples_dirs": ["../examples/gallery"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"^_",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "write_computation_times": False,  # its page would load a script from elsewhere
}

# MathJax is copied from a package; of its renderers and extensions, the pages need one bundle and its fonts.
MATHJAX = Path(next(iter(find_spec("sphinx-mathjax-offline").submodule_search_locations))) / "static/mathjax"
MATHJAX_FILES = ("tex-chtml.js", "output/chtml/fonts/woff-v2")
mathjax_path = "mathjax/tex-chtml.js"
mathjax3_config = {"options": {"enableMenu": False}}


def link_outside(app: Sphinx, page: str, source: list[str]) -> None:
    """Let links to files outside docs/ lead to the repository."""

    def absolute(link: re.Match[str]) -> str:
        target = (Path(app.srcdir, page).parent / link[1]).resolve()
        if target.is_relative_to(app.srcdir):
            return link[0]
        return f"](https://github.com/screwdyn/screwdyn/blob/main/{target.relative_to(ROOT)})"

    source[0] = re.sub(r"\]\((\.\./[^)#\s]+)\)", absolute, source[0])


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


def setup(app: Sphinx) -> None:
    """Connect what this file adds to a build."""
    app.connect("source-read", link_outside)
    app.connect("build-finished", copy_mathjax)
