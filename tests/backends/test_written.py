"""The C file with all kernels: the compiled kernels are current, and the header has what the source says."""

import hashlib
import re
from pathlib import Path

import pytest

from screwdyn.backends.kernels import entry, source, written
from screwdyn.physics import table

HEADER = Path(written.__file__).with_name("screwdyn.h").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_kernels_were_compiled_from_the_formulas_as_they_are_now():
    digest = getattr(entry.machine, "DIGEST", None)
    assert digest == hashlib.sha256(written.text().encode()).hexdigest(), (
        "the formulas, or what makes C of them, have changed since these kernels were compiled; "
        "run pip install -e . again"
    )


def test_the_fields_of_a_context_have_the_order_of_the_header():
    body = re.search(r"struct screwdyn_context \{(.*?)\};", HEADER, re.DOTALL)
    fields = re.findall(r"(\w+)[,;]", re.sub(r"/\*.*?\*/", "", body[1], flags=re.DOTALL))
    assert tuple(fields) == source.Context._fields


def test_the_columns_of_the_table_have_the_numbers_of_the_header():
    columns = {name: int(k) for name, k in re.findall(r"SCREWDYN_(\w+) = (\d+)", HEADER)}
    del columns["AXES"]
    names = {name: getattr(table, name) for name in columns if hasattr(table, name)}
    assert {name: columns[name] for name in names} == names
    assert {"PARENT", "COLUMNS"} <= {*names}


@pytest.mark.parametrize("name", ["Python.h", "numpy"])
def test_the_kernels_need_no_python(name):
    assert name not in HEADER
