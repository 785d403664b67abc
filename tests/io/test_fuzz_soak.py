"""A long chain of links is read."""

import os

import pytest
import test_fuzz

pytestmark = pytest.mark.soak


def test_a_long_chain():
    test_fuzz.read_and_written(100_000 if os.environ.get("SCREWDYN_SOAK") == "full" else 3_000)
