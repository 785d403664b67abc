"""The documents of ``test_fuzz`` in the number that SCREWDYN_SOAK sets, and a long chain of links."""

import os

import pytest
import test_fuzz

pytestmark = pytest.mark.soak

laws = {name: law for name, law in vars(test_fuzz).items() if hasattr(law, "hypothesis")}
globals().update(laws)


def test_there_are_laws_to_try():
    assert len(laws) == 8


def test_a_long_chain():
    test_fuzz.read_and_written(100_000 if os.environ.get("SCREWDYN_SOAK") == "full" else 10_000)
