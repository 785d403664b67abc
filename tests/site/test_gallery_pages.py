"""The gallery of the built site: every example drew a picture, and notebooks of two run.

Sphinx-Gallery executes the examples and converts them to notebooks; an example that fails stops the build.
"""

from pathlib import Path

import pytest

pytestmark = pytest.mark.site
ROOT = Path(__file__).parents[2]
BUILT = ROOT / "docs/gallery"
EXAMPLES = sorted(path.stem for path in (ROOT / "examples/gallery").glob("*.py"))
LESSONS = sorted(path.stem for path in (ROOT / "examples/lessons").glob("*.py"))
NOTEBOOKS = ["crucible", "two_arms_hand_over"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_drew_a_picture(name):
    picture = BUILT / f"images/sphx_glr_{name}_001.png"
    assert picture.stat().st_size > 10_000


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_is_a_notebook_of_ten_to_twenty_cells_with_outputs(name):
    import nbformat

    cells = nbformat.read(ROOT / f"docs/lessons/{name}.ipynb", as_version=4).cells
    assert 10 <= len(cells) <= 20
    assert cells[0].source.count("pip install -e '.[compile,plot,view]' jupyterlab") == 1
    shown = [out for cell in cells if cell.cell_type == "code" for out in cell.outputs]
    assert any("image/png" in out.get("data", {}) for out in shown)
    assert any(out.output_type == "stream" for out in shown)
    assert not any("](.." in cell.source for cell in cells)  # a link that leads nowhere where a notebook is downloaded
    assert (ROOT / f"docs/lessons/images/sphx_glr_{name}_001.png").stat().st_size > 5_000


def test_the_hand_over_shows_its_film():
    page = (ROOT / "docs/_build/html/gallery/two_arms_hand_over.html").read_text(encoding="utf-8")
    assert "<iframe srcdoc=" in page and "__VISER_EMBED_DATA__" in page


@pytest.mark.parametrize("name", NOTEBOOKS)
# Jupyter's own modules, on shutdown of a kernel and about folders to come
@pytest.mark.filterwarnings("default::ResourceWarning", "default::DeprecationWarning")
def test_a_notebook_runs(name, tmp_path, monkeypatch):
    monkeypatch.delenv("MPLBACKEND", raising=False)  # the kernel has its own
    import nbclient
    import nbformat

    notebook = nbformat.read(BUILT / f"{name}.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=60, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [out for cell in notebook.cells if cell.cell_type == "code" for out in cell.outputs]
    assert any("image/png" in out.get("data", {}) for out in shown)
