"""Test settings: figures need no display, and random examples are the same in every run except a full soak.

The environment variable SCREWDYN_SOAK sets the number of random examples of a property:

* unset: some, for everyday runs;
* ``brief``: a few, for tests of another Python or of other versions of the dependencies;
* ``short``: more, the same ones each time (``SCREWDYN_SOAK=short pytest -m soak``, as CI does);
* ``full``: very many, new ones each time; a failure prints how to repeat it.
"""

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from screwdyn.backends.llvm import machine
from screwdyn.forms import compiled
from screwdyn.testing import random_tree

os.environ.setdefault("MPLBACKEND", "Agg")

# Compilation and a busy machine are slow, which does not depend on the example.
UNTIMED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}

settings.register_profile("brief", derandomize=True, max_examples=5, **UNTIMED)
settings.register_profile("everyday", derandomize=True, max_examples=6, **UNTIMED)
settings.register_profile("short", derandomize=True, max_examples=12, **UNTIMED)
settings.register_profile("full", max_examples=3000, print_blob=True, **UNTIMED)

# Modules whose properties have many examples in runs with the mark soak, besides some in everyday runs.
LAWS = [
    "forms/test_numbers.py",
    "papers/formulations/test_dominance.py",
    "io/test_fuzz.py",
    "mechanism/test_joint_armature.py",
    "physics/test_couplings.py",
    "changes/test_closing.py",
    "changes/test_grasp.py",
    "changes/test_motors_in_motion.py",
    "changes/test_move.py",
    "simulation/test_coulomb.py",
    "simulation/test_impacts.py",
]


def pytest_configure(config: pytest.Config) -> None:
    profile = os.environ.get("SCREWDYN_SOAK", "everyday")
    if profile not in ("everyday", "brief", "short", "full"):
        raise pytest.UsageError(f"SCREWDYN_SOAK is {profile!r}; set it to brief, short or full, or unset it")
    settings.load_profile(profile)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip modules that name a mark nowhere when tests of this mark alone are selected: importing all takes longer."""
    mark, tests = config.option.markexpr, Path(__file__).parent
    if not (mark.isidentifier() and collection_path.name.startswith("test_") and collection_path.suffix == ".py"):
        return None
    text = collection_path.read_text(encoding="utf-8")
    law = mark == "soak" and "SCREWDYN_SOAK" in os.environ and collection_path in {tests / name for name in LAWS}
    return None if law or f"mark.{mark}" in text else True


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Select the properties of LAWS with the mark soak if SCREWDYN_SOAK asks for many examples."""
    if os.environ.get("SCREWDYN_SOAK") in ("short", "full"):
        modules = {Path(__file__).parent / name for name in LAWS}
        assert all(module.exists() for module in modules)
        for item in items:
            if item.path in modules and hasattr(getattr(item, "function", None), "hypothesis"):
                item.add_marker(pytest.mark.soak)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect without garbage collections, and freeze what lives to the end of the run: modules and tests.

    Later collections pass over what is frozen, and are rarer: together a fifth of the time of all tests.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(50_000, 20, 20)
        gc.enable()


@pytest.fixture(autouse=True)
def patched_code_stays_in_memory(request: pytest.FixtureRequest) -> None:
    """Code is neither written to the disk nor read from it while modules are patched."""
    if "monkeypatch" in request.fixturenames:
        for name in ("folder", "read", "write"):
            request.getfixturevalue("monkeypatch").setattr(machine, name, lambda *_: None)


@pytest.fixture(scope="module")
def compiled_when_called() -> Iterator[None]:
    """No function of a tree is compiled before it is called, as those that rollouts do not need."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "AT_ONCE", ())
        yield


@pytest.fixture(scope="session")
def arm():
    """A robot of five joints for the tests of compiled trees, which do not change it."""
    return random_tree(np.random.default_rng(3), 5)


@pytest.fixture(scope="session")
def fast(arm):
    """The same, compiled."""
    return arm.compile(threads=1).wait()
