"""The examples of the gallery are short and draw a figure; tests/site executes them, and checks what they claim."""

import ast
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
GALLERY, LESSONS = (sorted((EXAMPLES / folder).glob("*.py")) for folder in ("gallery", "lessons"))


def asserts(tree):
    return any(isinstance(node, ast.Assert) for node in ast.walk(tree))


def test_there_are_at_least_twelve():
    assert len(GALLERY) >= 12


@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_an_example_is_short_and_has_title_and_figure(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 70
    tree = ast.parse(text)
    title, underline, blank, *explanation = ast.get_docstring(tree).splitlines()
    assert underline == "=" * len(title) and not blank and explanation
    assert not asserts(tree)
    assert "plt." in text and text.endswith("plt.show()\n")


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_shows_has_exercises_with_solutions_and_leads_to_the_laboratory(path):
    text = path.read_text(encoding="utf-8")
    assert not asserts(ast.parse(text))
    assert "<../lab.html#" in text
    assert text.index("# Exercises\n") < text.index("# Solutions\n") < text.rindex("print(")
