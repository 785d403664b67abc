"""The calls of docs/coming_from.md in other libraries, whose numbers are compared on that page."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.oracle

TEXT = (Path(__file__).parents[2] / "docs/coming_from.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## From (.+?)\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL))
EXECUTED = ("Pinocchio", "MuJoCo", "SymPy mechanics")


@pytest.mark.parametrize("library", EXECUTED)
def test_both_sides_give_the_same_numbers(library):
    names = {}
    begin = re.search(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)[1]
    blocks = re.findall(r"^```(python|py)\n(.*?)^```$", SECTIONS[library], re.MULTILINE | re.DOTALL)
    assert [kind for kind, _ in blocks] == ["python", "py", "py"]
    assert blocks[-1][1].count("assert_allclose") >= 2
    for text in (begin, *(text for _, text in blocks)):
        exec(compile(text, f"coming_from.md, {library}", "exec"), names)


def test_no_other_section_claims_to_be_executed():
    assert {library for library, text in SECTIONS.items() if "```py\n" in text} == set(EXECUTED)
