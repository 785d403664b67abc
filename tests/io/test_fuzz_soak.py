"""A long chain of links is read."""

import pytest
import test_fuzz
from cases import FULL_SOAK

pytestmark = pytest.mark.soak


def test_a_long_chain():
    test_fuzz.read_and_written(100_000 if FULL_SOAK else 1_500)
