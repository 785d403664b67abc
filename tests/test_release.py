"""What a release needs besides the code: one version, a changelog that knows it, and a recipe that agrees."""

import re
import tomllib
from pathlib import Path

import pytest

import screwdyn

ROOT = Path(__file__).parents[1]


def test_changelog_has_a_section_of_this_version_and_the_citation_has_its_date():
    heading = rf"^## \[{re.escape(screwdyn.__version__)}\] - (\d{{4}}-\d\d-\d\d)$"
    found = re.search(heading, (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert found is not None
    assert f"\ndate-released: {found[1]}\n" in (ROOT / "CITATION.cff").read_text()


def test_citation_says_what_the_project_says():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = (ROOT / "CITATION.cff").read_text()
    for key, value in {
        "version": screwdyn.__version__,
        "license": project["license"],
        "repository-code": f'"{project["urls"]["Source"]}"',
        "url": f'"{project["urls"]["Documentation"]}"',
        "abstract": f'"{project["description"]}"',
    }.items():
        assert f"\n{key}: {value}\n" in citation
    assert items(citation, "keywords") == project["keywords"]


def test_continuous_integration_has_all_supported_pythons():
    classifiers = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text())
    workflow = re.findall(r"^ +(3\.\d+)$", (ROOT / ".github/workflows/ci.yml").read_text(), re.MULTILINE)
    assert sorted(workflow) == sorted(classifiers)
    assert classifiers[-2:] == ["3.14", "3.15"]


@pytest.fixture(scope="module")
def recipe():
    return (ROOT / "recipe/recipe.yaml").read_text()


def items(recipe, section):
    """The plain entries of a list of the recipe for conda-forge, or of the citation."""
    found = re.search(rf"^( *){section}:\n((?:\1 +- .*\n)+)", recipe, re.MULTILINE)
    assert found is not None
    return re.findall(r"^ +- (.*)$", found[2], re.MULTILINE)


def test_recipe_has_the_requirements_of_the_project(recipe):
    given = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = {x.replace(">=", " >=") for x in given["project"]["dependencies"]}
    assert {*items(recipe, "run")} == {"python", *wanted}
    wanted = {x.replace(">=", " >=") for x in given["build-system"]["requires"]}
    assert {*items(recipe, "host")} == {"python", "python-abi3", "pip", *wanted}


def test_recipe_has_the_names_and_versions_of_the_project(recipe):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert items(recipe, "entry_points") == [f"{name} = {place}" for name, place in project["scripts"].items()]
    lowest = project["requires-python"].removeprefix(">=")
    assert f'skip: match(python, "!={lowest}.*")' in recipe
    assert items(recipe, "python_version") == [f'"{lowest}.*"', '"*"']
    for key, value in {
        "version": f'"{screwdyn.__version__}"',
        "summary": f'"{project["description"]}"',
        "license": project["license"],
        "homepage": project["urls"]["Source"],
        "documentation": project["urls"]["Documentation"],
    }.items():
        assert f"  {key}: {value}\n" in recipe
