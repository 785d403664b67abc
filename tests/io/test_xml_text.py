"""Attributes are read back as they were written, and writing them needs no module of the network."""

import subprocess
import sys
from xml.etree import ElementTree

import pytest

from screwdyn.io.xml_text import quoted


@pytest.mark.parametrize("text", ["arm", "", "a \"b\" & 'c' <d>", "two\nlines\tand\rmore", "ω₁"])
def test_attributes_are_read_back(text):
    assert ElementTree.fromstring(f"<link name={quoted(text)}/>").get("name") == text


def test_no_module_of_the_network_is_imported():
    """They take a sixth of the time of ``import screwdyn``."""
    code = "import sys, numpy; before = {*sys.modules}; import screwdyn; print(*sorted({*sys.modules} - before))"
    imported = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "screwdyn.io.xml_text" in imported
    assert not {"ssl", "http.client"} & {*imported}
