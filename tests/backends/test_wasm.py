"""The kernels as WebAssembly, built by Zig and called from Node."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import screwdyn as sd
from screwdyn.backends.kernels import written
from screwdyn.backends.kernels.source import KERNELS, Context
from screwdyn.physics.table import integers_of

pytestmark = pytest.mark.wasm
HERE = Path(written.__file__).parent
SCRIPT = Path(__file__).parents[1] / "wasm.mjs"


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    """A module that exports all kernels."""
    folder = tmp_path_factory.mktemp("wasm")
    source, built = folder / "kernels.c", folder / "kernels.wasm"
    written.main([str(source)])
    flags = "-target wasm32-wasi -std=c99 -O1 -ffp-contract=off -fvisibility=default -mexec-model=reactor"
    exports = [f"-Wl,--export={name}" for name in ("malloc", "screwdyn_kernels")]
    exports += [f"-Wl,--export=screwdyn_{kind}{name}" for name in KERNELS for kind in ("run_", "scratch_")]
    command = [sys.executable, "-m", "ziglang", "cc", *flags.split(), f"-I{HERE}", str(source), "-o", str(built)]
    subprocess.run([*command, *exports, "-lm"], check=True)
    return built


def test_numbers_are_those_of_python(module):
    """Their last bits depend on the sine and cosine of the mathematical library."""
    node = shutil.which("node")
    assert node, "this test runs the module: install Node (apt-get install nodejs)"
    tree = sd.robots.ur5()
    table, q = tree.model.table, np.linspace(-2, 2, 6)
    parents, firsts = integers_of(table)
    integers = {"Parents": parents.tolist(), "Firsts": firsts.tolist()}
    context = Context(1, tree.nv, tree.nq, 0, 0, 0, 0, 0, "Table", 0, 0, 0, "Table", 0, "Parents", "Firsts")
    given = {"context": context, "integers": integers, "reals": {"Table": table.ravel().tolist()}, "q": q.tolist()}
    done = subprocess.run([node, SCRIPT, module], input=json.dumps(given), capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    M = tree.mass_matrix(q)
    assert found["status"] == 0
    np.testing.assert_allclose(np.reshape(found["M"], (6, 6)), M, rtol=0, atol=1e-14 * np.abs(M).max())
