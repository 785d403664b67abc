"""Dask: what is sent to workers, and that they compute what one process computes."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import screwdyn as sd

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).parents[2]
STUDY = ROOT / "examples" / "dask_study.py"


def run(*command, **environment):
    """Output of another process, whose workers end with it."""
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        capture_output=True,
        text=True,
        timeout=100,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_workers_count_the_states_that_one_process_counts():
    shown = run(STUDY, "--payloads", 6, "--states", 20_000, "--workers", 2)
    study = runpy.run_path(str(STUDY))
    arm = sd.robots.ur5()
    total = np.zeros((10, arm.nv, study["BINS"]), dtype=np.int64)
    for payload in range(6):
        mass, counts = study["study"](arm, payload, 20_000)
        total[int(mass)] += counts
    assert total.sum() == 6 * 20_000 * arm.nv
    assert study["table"](total) in shown
    assert re.search(r"120,000 states of 6 payloads, 2 workers: [0-9.]+ s", shown)


WORKER = """
import numpy as np
from dask.distributed import Client, LocalCluster
import screwdyn as sd

def refuse(*_):
    raise AssertionError("compiled again")

def probe(tree, fast, method, state):
    from screwdyn.backends.llvm import program
    program.object_file = refuse
    found = [form.coriolis_matrix(*state).tobytes() for form in (tree.compile(threads=1).wait(), fast.wait())]
    return [*found, method(*state).tobytes()]

if __name__ == "__main__":
    tree, state = sd.robots.pelican(), np.random.default_rng(0).normal(size=(2, 2))
    fast = tree.compile(threads=1).wait()
    cluster = LocalCluster(1, threads_per_worker=1, host="127.0.0.1", dashboard_address=None)
    with cluster, Client(cluster) as client:
        assert cluster.scheduler_address.startswith("tcp://127.0.0.1:")
        found = client.submit(probe, tree, fast, fast.coriolis_matrix, state).result()
    assert found == [fast.coriolis_matrix(*state).tobytes()] * 3
    print("from disk")
"""


def test_workers_take_trees_and_compiled_trees_and_load_their_code_from_disk(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(WORKER)
    assert run(script, SCREWDYN_CACHE=str(tmp_path)) == "from disk\n"


def test_the_code_of_the_page_runs(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8"), re.DOTALL)
    (block,) = (text for text in blocks if "dask" in text)
    script = tmp_path / "script.py"
    script.write_text(block.replace("] * 100, range(100)", "] * 2, range(2)"), encoding="utf-8")
    found = np.array(run(script).strip("[]\n").split(), dtype=float)
    assert found.shape == (6,) and (found > 0.1).all() and (found < 200).all()
