"""Every example runs in a temporary folder without a warning."""

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = sorted(Path(__file__).parents[1].glob("examples/*.py"))
# Examples that other tests run and check.
ELSEWHERE = {"export_controller": "test_c_source.py"}


def follow(path, monkeypatch, folder, *arguments):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", [str(path), *arguments])
    return runpy.run_path(str(path), run_name="__main__")


def test_there_are_examples():
    assert "pelican_crucible" in [path.stem for path in EXAMPLES]
    for name, module in ELSEWHERE.items():
        assert f"{name}.py" in Path(__file__).with_name("forms").joinpath(module).read_text(encoding="utf-8")


@pytest.mark.parametrize("path", [p for p in EXAMPLES if p.stem not in ELSEWHERE], ids=lambda path: path.stem)
def test_an_example_runs_and_says_something(path, tmp_path, monkeypatch, capsys):
    follow(path, monkeypatch, tmp_path)
    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) > 3
    assert "nan" not in shown.out


def test_the_paper_in_its_own_order(tmp_path, monkeypatch, capsys):
    follow(
        EXAMPLES[[p.stem for p in EXAMPLES].index("pelican_crucible")], monkeypatch, tmp_path, "--output", "made.png"
    )
    out = capsys.readouterr().out
    # The order of the paper, in which the totals M, C and g follow the contributions of the arm.
    numbered = [int(word[:2]) for word in out.split("Eq. ")[1:]]
    assert numbered == sorted(numbered, key=lambda n: 52.5 if n == 32 else n)
    assert {37, 38, 39, 40, 41, 42, 45, 46, 47, 48, 49, 50, 51, 52, 32, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64} == {
        *numbered
    }
    assert "unchanged to the last bit" in out
    # Two decimal places of M_3's first row, from Eq. 58 by hand.
    u = 0.26 * np.sin(-0.5) + 0.26 * np.sin(0.4)
    v = 0.08 + 0.26 * np.cos(-0.5) + 0.26 * np.cos(0.4)
    assert f"M_3 = [[{1.5 * (u**2 + v**2) + 0.006:.4f}" in out
    made = tmp_path / "made.png"
    assert made.read_bytes().startswith(b"\x89PNG") and made.stat().st_size > 50_000
    assert not (tmp_path / "pelican_crucible.png").exists()
