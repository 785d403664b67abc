"""Test settings: drawings need no screen, and random examples are the same in every run but a full soak.

The environment variable SCREWDYN_SOAK says how many random examples a property is tried on:

* unset: some, for everyday runs;
* ``brief``: a few, where another Python or other versions of the dependencies are the question;
* ``short``: many, the same ones each time (``SCREWDYN_SOAK=short pytest -m soak``, as CI does);
* ``full``: very many, new ones each time; a failure prints how to repeat it.
"""

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from screwdyn.testing import random_tree

os.environ.setdefault("MPLBACKEND", "Agg")

# A compiled kernel's first call and a loaded machine are slow: neither says anything about the example.
UNTIMED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}

settings.register_profile("brief", derandomize=True, max_examples=5, **UNTIMED)
settings.register_profile("everyday", derandomize=True, max_examples=15, **UNTIMED)
settings.register_profile("short", derandomize=True, max_examples=150, **UNTIMED)
settings.register_profile("full", max_examples=3000, print_blob=True, **UNTIMED)


def pytest_configure(config: pytest.Config) -> None:
    profile = os.environ.get("SCREWDYN_SOAK", "everyday")
    if profile not in ("everyday", "brief", "short", "full"):
        raise pytest.UsageError(f"SCREWDYN_SOAK is {profile!r}; set it to brief, short or full, or unset it")
    settings.load_profile(profile)


@pytest.fixture(scope="session")
def arm():
    """A robot of five joints that the tests of compiled trees share, and leave as it is."""
    return random_tree(np.random.default_rng(3), 5)


@pytest.fixture(scope="session")
def fast(arm):
    """The same, compiled."""
    return arm.compile(threads=1).wait()
