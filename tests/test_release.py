"""What a release needs besides the code: one version, and a changelog that knows it."""

import re
from pathlib import Path

import screwdyn

ROOT = Path(__file__).parents[1]


def test_citation_has_the_version_of_the_package():
    found = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert found is not None
    assert found[1] == screwdyn.__version__


def test_changelog_has_a_section_of_this_version_or_announces_it():
    changelog = (ROOT / "CHANGELOG.md").read_text()
    version = re.escape(screwdyn.__version__)
    assert re.search(rf"^## \[{version}\] - \d{{4}}-\d\d-\d\d$|^To be released as {version}\b", changelog, re.MULTILINE)


def test_continuous_integration_has_all_supported_pythons():
    classifiers = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text())
    workflow = re.findall(r"^ +(3\.\d+)$", (ROOT / ".github/workflows/ci.yml").read_text(), re.MULTILINE)
    assert sorted(workflow) == sorted(classifiers)
    assert classifiers[-2:] == ["3.14", "3.15"]
